"""Exact one-sided limits of rates and counts, vectorised, for members that were sampled or all scored."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.core.errors import InputError
from auditor.core.facts import Tail
from auditor.core.options import Census, Coverage, Sample, Subset
from auditor.core.values import Counted, Estimate, Floats, Integers, Losses

# --- Limits of a binomial proportion (Clopper and Pearson 1934) ---
#
# U(k; n, a) = BetaInv(1 - a; k + 1, n - k), 1 at k = n
# L(k; n, a) = BetaInv(a; k, n - k + 1),     0 at k = 0


def upper_limit(successes: npt.ArrayLike, trials: npt.ArrayLike, alpha: float | Floats) -> Floats:
    """Return the level 1 - alpha upper limit of the proportion.

    The complementary inverse keeps its precision for alpha far below 1e-8.

    >>> float(upper_limit(0, 1000, 0.05).round(8))
    0.00299125
    """
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        inner = special.betainccinv(k + 1, np.maximum(n - k, 1), alpha)
    return np.where(k >= n, 1.0, inner)


def lower_limit(successes: npt.ArrayLike, trials: npt.ArrayLike, alpha: float | Floats) -> Floats:
    """Return the level 1 - alpha lower limit of the proportion.

    >>> float(lower_limit(950, 1000, 0.025).round(8))
    0.93460951
    """
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        inner = special.betaincinv(np.maximum(k, 1), n - k + 1, alpha)
    return np.where(k <= 0, 0.0, inner)


_BDTR_IS_EXACT = 10**6  # trials: 1e-9 off there, .001 at 10^7, .1 at 10^8, and not a number at 3 * 10^9


def chance_above(k: npt.ArrayLike, n: int, p: float | Floats) -> Floats:
    """Return P[Bin(n, p) > k], of any number of trials.

    >>> chance_above(4.0, 9, 0.5), round(float(chance_above(0.39 * 10**9, 10**9, 0.39)), 4)
    (array(0.5), 0.5)
    """
    k = np.asarray(k, dtype=np.float64)
    if n <= _BDTR_IS_EXACT:
        return np.asarray(special.bdtrc(k, n, p))
    inside = special.betainc(np.maximum(k + 1, 1), np.maximum(n - k, 1), p)
    return np.where(k < 0, 1.0, np.where(k < n, inside, 0.0))


def chance_up_to(k: npt.ArrayLike, n: int, p: float | Floats) -> Floats:
    """Return P[Bin(n, p) <= k]."""
    k = np.asarray(k, dtype=np.float64)
    if n <= _BDTR_IS_EXACT:
        return np.asarray(special.bdtr(k, n, p))
    inside = special.betaincc(np.maximum(k + 1, 1), np.maximum(n - k, 1), p)
    return np.where(k < 0, 0.0, np.where(k < n, inside, 1.0))


# --- How many of many unequal coins succeed? (Poisson-binomial) ---


_MOST_KINDS = 1024
_GUARD = 1e-12  # what rounding, and the law beyond its window, can hide from a tail
_BEYOND = 31.0  # log of two over the mass outside the window, by Bernstein's inequality


def poisson_binomial(log_odds: npt.ArrayLike, counts: npt.ArrayLike) -> tuple[int, Floats]:
    """Return the law of the number of successes of independent coins, and the smallest number that it begins at.

    The characteristic function at the roots of unity gives the law within a window that holds all but 1e-13 of it.

    Args:
        log_odds: Shape (k,), of the success of each kind of coin, in nats.
        counts: Shape (k,), how many there are of each kind.

    >>> low, law = poisson_binomial([0.0], [2])
    >>> low, law.round(12)
    (0, array([0.25, 0.5 , 0.25]))
    """
    odds, number = np.asarray(log_odds, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    hit, miss = special.expit(odds)[:, None], special.expit(-odds)[:, None]
    mean, variance = float(number @ hit[:, 0]), float(number @ (hit * miss)[:, 0])
    width = _BEYOND / 3 + math.sqrt(_BEYOND**2 / 9 + 2 * _BEYOND * variance)
    low, high = max(0, math.floor(mean - width)), min(round(float(number.sum())), math.ceil(mean + width))
    size = high - low + 1
    angles = 2 * math.pi / size * np.arange(size // 2 + 1)
    modulus, phase = np.zeros(angles.size), low * angles
    with np.errstate(divide="ignore"):  # a fair coin's is 0 at half a turn
        for part in np.array_split(np.arange(odds.size), 1 + odds.size * angles.size // 10**7):
            p, q = hit[part], miss[part]
            # Rounded, the product of two halves can exceed a quarter.
            turned = np.minimum(4 * p * q * np.square(np.sin(angles / 2)), 1.0)
            modulus += 0.5 * (number[part] @ np.log1p(-turned))
            phase -= number[part] @ np.arctan2(p * np.sin(angles), q + p * np.cos(angles))
    law = np.fft.irfft(np.exp(modulus) * np.exp(1j * phase), size)
    return low, np.maximum(law, 0.0)


def poisson_binomial_tail(log_odds: npt.ArrayLike, counts: npt.ArrayLike, least: int) -> float:
    """Return P[that many successes or more], by `poisson_binomial`: never less than the truth, and by 1e-12 more.

    >>> round(1024 * poisson_binomial_tail([0.0], [10], 9), 6)
    11.0
    """
    low, law = poisson_binomial(log_odds, counts)
    return 1.0 if least <= low else min(1.0, float(law[least - low :].sum()) + _GUARD)


def kinds_of(log_odds: Floats) -> tuple[Floats, Integers]:
    """Return the different log-odds of many coins and how many have each; of very many, log-odds that are a little larger.

    >>> kinds_of(np.array([0.5, -0.5, 0.5]))
    (array([-0.5,  0.5]), array([1, 2]))
    """
    kinds, counts = np.unique(log_odds, return_counts=True)
    if kinds.size <= _MOST_KINDS:
        return kinds, counts
    bins = ((kinds - kinds[0]) / (kinds[-1] - kinds[0]) * _MOST_KINDS).astype(np.int64)
    starts = np.unique(bins, return_index=True)[1]
    return kinds[np.append(starts[1:], kinds.size) - 1], np.add.reduceat(counts, starts)


# --- Limits of a count in a finite set, from a sample drawn without repetition ---
#
# With H the number of marked records among the drawn ones and M the number marked in all:
#
# L(x) = min{M: P[H >= x] > a},  U(x) = max{M: P[H <= x] > a}


def lower_count(marked: npt.ArrayLike, *, drawn: int, population: int, alpha: float | Floats) -> Integers:
    """Return the level 1 - alpha lower limit of the number of marked records in the whole set.

    Args:
        marked: Marked records among the drawn ones, any shape.
        drawn: Records drawn at random without repetition.
        population: Records in the whole set, ``drawn`` or more.
        alpha: Probability that the limit is too high, in (0, 1).

    >>> lower_count([0, 95, 100], drawn=100, population=200, alpha=0.05).tolist()
    [0, 183, 196]
    """
    from scipy import stats

    x = np.asarray(marked, dtype=np.int64)
    # P[H >= x] rises with the number marked: 0 below x, 1 where every record not drawn is marked too.
    below, enough = x - 1, x + (population - drawn)
    while np.any(enough - below > 1):
        middle = (below + enough) // 2
        possible = stats.hypergeom.sf(x - 1, population, np.maximum(middle, 0), drawn) > alpha
        below, enough = np.where(possible, below, middle), np.where(possible, middle, enough)
    return np.asarray(np.where(x <= 0, 0, enough), dtype=np.int64)


def upper_count(marked: npt.ArrayLike, *, drawn: int, population: int, alpha: float | Floats) -> Integers:
    """Return the level 1 - alpha upper limit of the number of marked records in the whole set.

    The same holds for the records above the (x + 1)-th largest of the drawn ones: r or more of them lie above it if
    and only if at most x of the r largest were drawn [own].

    >>> upper_count([0, 5, 100], drawn=100, population=200, alpha=0.05).tolist()
    [4, 17, 200]
    """
    unmarked = drawn - np.asarray(marked, dtype=np.int64)
    return np.asarray(population - lower_count(unmarked, drawn=drawn, population=population, alpha=alpha))


# --- Limits of the member loss distribution, by the choice of the scored members ---
#
# A sample leaves both rates uncertain (binomial limits), a random subset of a finite training set less so
# (hypergeometric limits), and a census leaves nothing uncertain.


@dataclass(frozen=True)
class MemberLimits:
    """Limits of the true positive and the false negative rate from counts of the ``scored`` members.

    Attributes:
        coverage: How the scored members were chosen.
        scored: Their number.
        seen: Training records that were looked at before, to choose a threshold, and are not scored again.
        seen_hits: Number of those at or below that threshold.

    Raises:
        InputError: A subset of a training set that has fewer records than were scored.
    """

    coverage: Coverage
    scored: int
    seen: int = 0
    seen_hits: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.coverage, Subset) and self.coverage.of < self.scored + self.seen:
            raise InputError(
                f"the training set of a Subset must have at least as many records as were scored, got of ="
                f" {self.coverage.of} for {self.scored + self.seen} member losses."
            )

    @property
    def is_census(self) -> bool:
        """Whether the scored members are all there is to know."""
        return isinstance(self.coverage, Census)

    @property
    def limits(self) -> int:
        """Number of limits among which a ratio of one member rate and one non-member rate divides the error."""
        return 1 if self.is_census else 2

    def tpr_lower(self, hits: npt.ArrayLike, alpha: float | Floats) -> Floats:
        """Return the lower limit of the true positive rate at a threshold that does not depend on the scored members."""
        if self.is_census:
            return np.asarray(np.asarray(hits) / self.scored)
        if not isinstance(self.coverage, Subset):
            return lower_limit(hits, self.scored, alpha)
        left = self.coverage.of - self.seen
        in_all = self.seen_hits + lower_count(hits, drawn=self.scored, population=left, alpha=alpha)
        return np.asarray(in_all / self.coverage.of)

    def fnr_upper(self, misses: npt.ArrayLike, alpha: float | Floats) -> Floats:
        """Return the upper limit of the false negative rate.

        At a threshold that does not depend on the scored members, or at the (misses + 1)-th largest of them.
        """
        if self.is_census:
            return np.asarray(np.asarray(misses) / self.scored)
        if not isinstance(self.coverage, Subset):
            return upper_limit(misses, self.scored, alpha)
        left = self.coverage.of - self.seen
        in_all = upper_count(misses, drawn=self.scored, population=left, alpha=alpha)
        # A training set is finite: that none of its records lies above a threshold says nothing about leakage.
        return np.asarray(np.maximum(in_all + self.seen - self.seen_hits, 1) / self.coverage.of)


# --- Leakage from a census: the same inference again, with the members counted as draws ---
#
# Numbers about all records of a finite training set, or about a random part of it, leave out the chance of which records
# were drawn into that set. They describe it exactly, and show a gap from the population without any leakage. Whether the
# model leaks is a question about records like these: there the members are a sample too.


_KEPT = ("ceiling", "tail", "p_value", "tpr_lower", "fpr_upper", "tnr_lower", "fnr_upper")


def finite(coverage: Coverage, *, what: str = "number") -> tuple[str, ...]:
    """Return the caveats of a number that describes a finite training set; empty for a sample.

    Args:
        coverage: How the scored members were chosen.
        what: The number, in a word.

    >>> finite(Sample())
    ()
    """
    match coverage:
        case Census():
            start, which = "every training record was scored", "this finite training set"
        case Subset(of=size):
            start = f"the scored members were drawn at random from the {size:,} training records"
            which = "that finite training set"
        case Sample():
            return ()
    said = f"the {what} compares {which} with the population, and can be positive without any leakage"
    return (f"{start}: {said}",)


def with_draws(estimate: Estimate, draws: Estimate) -> Estimate:
    """Return an estimate that also keeps the result with the members as draws, in ``details["as_draws"]``.

    Args:
        estimate: Estimate for a finite training set.
        draws: The same quantity at the same confidence, with the members as a sample.
    """
    details: dict[str, Any] = {name: draws.details[name] for name in _KEPT if name in draws.details}
    ends = {"value": draws.value, "lower": draws.lower, "upper": draws.upper}
    as_draws = {**ends, **details, "assumptions": list(draws.assumptions)}
    return replace(estimate, details={**estimate.details, "finite": True, "as_draws": as_draws})


# --- Thresholds that sort the audited records just as a record's own loss does, and are no record's loss ---
#
# A result holds no raw losses. Where a threshold is the loss of a record, any number between it and its neighbour gives the
# same counts; the one with the fewest digits is reported.


_LARGEST = float(np.finfo(np.float64).max)
_DIGITS = 17  # digits of a double


def just_below(losses: Losses, threshold: float) -> float | None:
    """Return a number below this loss and above all smaller ones; None if no double lies between.

    >>> losses = Losses(member=[0.1234, 0.5], nonmember=[0.4567, 0.9])
    >>> just_below(losses, 0.4567), just_below(losses, 0.1234)
    (0.3, -0.07)
    """
    # In the mirror what lies below lies above.
    groups = [_mirrored(group) for group in (losses.sorted_member, losses.sorted_nonmember)]
    result = _above(groups, -threshold)
    return None if result is None else 0.0 - result


def just_above(losses: Losses, threshold: float) -> float | None:
    """Return a number above this loss and below all larger ones; None if no double lies between.

    >>> just_above(Losses(member=[0.1234, 0.5], nonmember=[0.4567, 0.9]), 0.1234)
    0.3
    """
    return _above([losses.sorted_member, losses.sorted_nonmember], threshold)


def threshold_at(losses: Losses, tail: Tail, rank: int) -> float | None:
    """Return a threshold that calls the records strictly beyond the loss of this rank in a tail, as `just_below` or `just_above`."""
    if tail == Tail.LOWER:
        return just_below(losses, float(losses.sorted_nonmember[rank]))
    return just_above(losses, float(losses.sorted_member[losses.n_member - 1 - rank]))


def _mirrored(group: Any) -> Any:
    return group.mirrored() if isinstance(group, Counted) else -group[::-1]


def _above(groups: Sequence[Floats], low: float) -> float | None:
    """Return the number of fewest digits between this one and the next larger of any group, near the middle."""
    places = [int(np.searchsorted(group, low, side="right")) for group in groups]
    larger = [float(group[at]) for group, at in zip(groups, places, strict=True) if at < group.size]
    # Beyond the last loss, about as far as the losses reach.
    reach = abs(low / 2 - min(float(group[0]) for group in groups) / 2) or abs(low) or 1.0
    high = min(larger, default=min(low + reach, _LARGEST))
    middle = low / 2 + high / 2
    numbers = (float(f"{middle:.{digits}g}") for digits in range(1, _DIGITS + 1))
    return next((number for number in numbers if low < number < high), None)
