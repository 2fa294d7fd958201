"""Tests of guesses about membership: the epsilons, or the whole trade-off curves, that the right ones refute.

Two tests, each of which holds its level for any mechanism and any score: by the f-DP recursion of Mahloujifar, Melis and
Chaudhuri, and for pure epsilon, also by coins of each record's own, by every order and number of guesses together. The first
one takes the place of Theorem 5.2 of Steinke, Nasr and Jagielski 2023: on the same guesses its bound is larger, or smaller
by 0.02 at most.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.core.values import Floats
from auditor.curves.tradeoff import TradeoffCurve, concave_corners
from auditor.estimators.guesses import Guesses, GuessSet
from auditor.estimators.limits import lower_limit, upper_limit

LARGEST_EPSILON = 60.0


def first_enough(enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number that is enough, between one that is not and one that is, by halving."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# --- Auditing f-DP in one run (Mahloujifar, Melis and Chaudhuri 2024): the trade-off curves that the guesses refute ---
#
# m fair membership bits, r guesses fixed in number in advance, V of them right. Let T be the largest true positive
# rate at a false positive rate, concave, for both orders of any two neighbours. Flipping one bit at a time shows that
#
#     R_j = sum_{l >= j} l P[V = l]/m   and   H_j = sum_{l >= j} (r - l) P[V = l]/m   obey   R_{j+1} <= T(H_j).
#
# Suppose P[V >= v] >= alpha. The least mass that these constraints then force, with finv(y) = inf{a: T(a) >= y}, is
#
#     r_v = alpha v/m, h_v = alpha (r - v)/m, h_i = finv(r_{i+1}), r_i = r_{i+1} + i/(r - i) (h_i - h_{i+1}),
#
# and T is refuted at level alpha if r_0 + h_0 > r/m, all the mass there is. If h_i would not grow in the first step it
# never does, and nothing is refuted; once it grows, every true H_i >= h_i and R_i >= r_i (summation by parts) [own].
# A smaller T forces more mass, so refuting a curve refutes every curve below it with the same guesses.


SmallestFpr = Callable[[float], float]
"""finv: the smallest false positive rate at which a curve reaches a true positive rate."""
LARGEST_MU = 40.0  # a normal beyond so many standard deviations has no mass in a double
_LARGEST_LOG = 100.0  # of one over a p-value
_HALVINGS = 42  # of what is at most 100, to 3e-11


def rejects(smallest_fpr: SmallestFpr, *, bits: int, guesses: int, correct: int, alpha: float) -> bool:
    """Return whether the guesses refute the trade-off curve at level ``alpha``.

    Args:
        smallest_fpr: finv of the curve (`of_gdp`, `of_epsilon_delta`, `of_curve`), which must bound both orders of
            two neighbours.
        bits: Membership bits m, each a fair coin.
        guesses: Guesses r <= m, their number fixed in advance.
        correct: Right guesses v <= r.
        alpha: In (0, 1).

    Source: Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3; the argument is above.

    >>> rejects(of_gdp(2.08), bits=1000, guesses=600, correct=600, alpha=0.05)
    True
    >>> rejects(of_gdp(2.09), bits=1000, guesses=600, correct=600, alpha=0.05)
    False
    """
    # A loop over numbers, not arrays: each step needs the one before, and about 10 sqrt(r) steps settle it.
    right, wrong, all_mass = alpha * correct / bits, alpha * (guesses - correct) / bits, guesses / bits
    previous = 0.0
    for i in range(correct - 1, -1, -1):
        least = smallest_fpr(right)
        if least <= wrong:
            return False
        mass = (least - wrong) / (guesses - i)  # P[V = i]/m
        right, wrong = right + i * mass, least
        if right + wrong > all_mass:
            return True
        # Past the peak, the i counts that are left would not add what is missing; to stop can only refute less.
        if mass < previous and mass * guesses * i < all_mass - right - wrong:
            return False
        previous = mass
    return False


def of_gdp(mu: float) -> SmallestFpr:
    """Return finv of mu-Gaussian DP: Phi(Phi^-1(y) - mu).

    >>> round(of_gdp(1.0)(0.5), 6)
    0.158655
    """
    quantile, root = NormalDist().inv_cdf, math.sqrt(0.5)

    def smallest_fpr(tpr: float) -> float:
        return 1.0 if tpr >= 1 else 0.5 * math.erfc((mu - quantile(tpr)) * root)

    return smallest_fpr


def of_epsilon_delta(epsilon: float, *, delta: float) -> SmallestFpr:
    """Return finv of (epsilon, delta)-DP: max(0, 1 - d - e^eps (1 - y), e^-eps (y - d)).

    >>> of_epsilon_delta(0.0, delta=0.25)(0.5)
    0.25
    """
    up, down = math.exp(min(epsilon, 700.0)), math.exp(-epsilon)

    def smallest_fpr(tpr: float) -> float:
        flat = max(0.0, down * (tpr - delta))
        # The steep piece begins above a half; below, its 1 - tpr would only lose digits.
        return flat if tpr < 0.5 else max(flat, 1 - delta - up * (1 - tpr))  # noqa: PLR2004

    return smallest_fpr


def of_curve(curve: TradeoffCurve) -> SmallestFpr:
    """Return finv of any trade-off curve, by way of the smallest concave curve above it.

    >>> of_curve(TradeoffCurve.from_epsilon_delta(0.0, delta=0.25))(0.5)
    0.25
    """
    fpr, tpr = (axis.tolist() for axis in concave_corners(curve.fpr, curve.tpr))

    def smallest_fpr(rate: float) -> float:
        at = min(bisect_left(tpr, rate), len(tpr) - 1)
        if at == 0:
            return float(fpr[0])
        share = (rate - tpr[at - 1]) / (tpr[at] - tpr[at - 1])
        return float(fpr[at - 1] + min(share, 1.0) * (fpr[at] - fpr[at - 1]))

    return smallest_fpr


def epsilon_bound(*, bits: int, guesses: int, correct: int, delta: float, alpha: float) -> float:
    """Return eps_L, the largest epsilon for which the guesses refute (epsilon, delta)-DP at level ``alpha``; 0 if none.

    Args:
        bits: Membership bits m, each a fair coin.
        guesses: Guesses r <= m, their number fixed in advance.
        correct: Right guesses v <= r.
        delta: In [0, 1).
        alpha: In (0, 1).

    Source: Mahloujifar, Melis and Chaudhuri 2024.

    >>> 4 < epsilon_bound(bits=1000, guesses=1000, correct=1000, delta=1e-5, alpha=0.05) < 6
    True
    """
    return fdp_bound([GuessSet("all", 1.0, guesses, correct)], bits=bits, delta=delta, alpha=alpha)[0]


def largest_of_all_below(
    refuted: Callable[[float], bool], most: float, *, halvings: int = _HALVINGS
) -> float:
    """Return the largest refuted parameter, 0 if none: what is refuted at one is refuted at every smaller one."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, most
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


# --- Several numbers of guesses in several orders: for one error they share it ---


def largest_by_any(
    sets: Sequence[GuessSet], refuted: Callable[[GuessSet, float], bool], most: float
) -> tuple[float, GuessSet]:
    """Return the largest parameter that any set refutes, 0 if none, and the set; one that refutes refutes all below.

    Args:
        sets: Sets of guesses.
        refuted: Whether a set refutes a parameter.
        most: A parameter that none refutes.
    """
    # Those that refute the largest parameter so far, for no other can refute a larger one; of sets with equal counts the first.
    left = list({(item.guesses, item.correct, item.inside): item for item in sets[::-1]}.values())[::-1]

    def by_any(parameter: float) -> bool:
        refuting = [item for item in left if refuted(item, parameter)]
        left[:] = refuting or left
        return bool(refuting)

    return largest_of_all_below(by_any, most), left[0]


def fdp_bound(sets: Sequence[GuessSet], *, bits: int, delta: float, alpha: float) -> tuple[float, GuessSet]:
    """Return the largest epsilon for which any set refutes (epsilon, delta)-DP by `rejects`, 0 if none, and the set.

    Args:
        sets: Sets of guesses.
        bits: Membership bits m, each a fair coin.
        delta: In [0, 1).
        alpha: The error that the sets share.
    """

    def refuted(item: GuessSet, epsilon: float) -> bool:
        curve, share = of_epsilon_delta(epsilon, delta=delta), alpha / len(sets)
        return rejects(curve, bits=bits, guesses=item.guesses, correct=item.correct, alpha=share)

    return largest_by_any(sets, refuted, LARGEST_EPSILON)


def curve_p_value(smallest_fpr: SmallestFpr, *, bits: int, sets: Sequence[GuessSet]) -> float:
    """Return the p-value of a trade-off curve by `rejects` of several sets that share the error.

    >>> sets = [GuessSet("all", 1.0, guesses=1000, correct=600)]
    >>> round(curve_p_value(of_epsilon_delta(0.3, delta=1e-5), bits=1000, sets=sets), 4)
    0.0664
    """

    def not_at(item: GuessSet, log_level: float) -> bool:
        counts = {"guesses": item.guesses, "correct": item.correct}
        return log_level == 0 or rejects(smallest_fpr, bits=bits, **counts, alpha=math.exp(-log_level))

    result, _ = largest_by_any(sets, not_at, _LARGEST_LOG)
    return min(1.0, len(sets) * math.exp(-result))


# --- Every order and number of guesses at once, for pure epsilon [own] ---
#
# Let the coins be independent, record i a member with probability p_i, and the mechanism (eps, 0)-DP. Given the outputs and
# all other coins, Bayes' rule puts the odds of "i is a member" within e^eps of p_i/(1 - p_i): a guess "in" is right with
# probability at most expit(eps + logit p_i), a guess "out" with at most expit(eps - logit p_i). Coins about something else
# have other odds (`Guesses.odds`). Each coin is guessed in one direction, whatever the order; directions and orders may depend
# on the outputs, the losses, features and the p_i, on no coin. Revealing the coins one after another shows that the bits "this
# guess is right" are dominated, all together, by independent coins of those probabilities, and with them every statistic that
# grows with the bits. Guesses in opposite directions in two orders would break the domination.
#
# If the true prior odds of every guessed record lie within e^k of those assumed, every probability is at most that for
# eps + k: what is refuted at eps_L still refutes eps_L - k at the same level.
#
# Let E = c r KL(v/r || q) of a set, v > r q of whose r guesses are right, q the mean of their probabilities q_i, and 0 if v is
# smaller; c = q (1 - q) / mean q_i (1 - q_i) makes sets of equal and of unequal coins comparable. P[E >= y] <= e^-y/c (Chernoff,
# and the inequality of means for unequal coins). The largest E of the S sets takes few values, which would cost level, so that
# the statistic is T = max E + t log(sum e^E) with a small t. As T <= (1 + t) max E + t log S, P[T >= x] is at most the sum
# of e^-y/c over the sets, y = (x - t log S)/(1 + t). The law of T is drawn, cell by cell (`Guesses.cells`).
#
# "Epsilon at most eps" is a family of nested hypotheses, so the bound is the last point of a fixed grid before the first
# that is accepted. T falls with eps: below where that sum over the sets is under the level, all is rejected.


PURE_STEP = 1 / 32  # of the grid for up to 20,000 coins; half of it for four times as many, down to an eighth
# More of them only where the p-value is near the level, and at last about 600 that are beyond it, or 120,000.
_PURE_DRAWS, _PURE_TAIL, _MOST_PURE = (2_000, 12_000), 600, 120_000
_PURE_BATCH = 12_000
_MISLED = 1e-3  # the chance that so many draws make a p-value too small, or show too soon that it is above the level
_LARGEST_PURE = 30.0
_TIES, _HAIR, _NONE = 1e-4, 1e-9, 1e-300


def pure_step(bits: int) -> float:
    """Return the step of the grid of pure epsilons for so many coins.

    >>> PURE_STEP / pure_step(10_000), PURE_STEP / pure_step(40_000), PURE_STEP / pure_step(1_000_000)
    (1.0, 2.0, 8.0)
    """
    return PURE_STEP * 0.5 ** min(3, max(0, round(math.log2(bits / 10_000) / 2)))


def pure_p_value(guesses: Guesses, sets: Sequence[GuessSet], *, epsilon: float, alpha: float) -> float:
    """Return the p-value of "the mechanism is (epsilon, 0)-DP" by all sets together, exact enough beside this level.

    It is the 99.9% upper limit by as many draws, so that their error costs power and no level, and at most the sum over the sets.

    Args:
        guesses: Guesses with their priors, and the odds that follow from them.
        sets: All sets of these guesses, or of a perfect attack on them; fewer right ones can only make it larger.
        epsilon: 0 or more, in nats.
        alpha: In (0, 1).
    """
    counts, belongs = guesses.cells
    hits = guesses.chances(epsilon)
    if sets[0].correct == guesses.bits:  # nothing else is as large
        return float(np.exp(counts @ np.log(hits)))
    law = _Law.of(guesses, epsilon)
    least = float(law.statistic(_right(sets)))
    if least < _TIES * math.log(len(sets)) + _HAIR:  # no set has more right ones than on average
        return 1.0
    larger = drawn = 0
    for batch, enough in enumerate((*_PURE_DRAWS, min(_MOST_PURE, math.ceil(_PURE_TAIL / alpha)))):
        rng = np.random.default_rng([guesses.bits, round(epsilon / PURE_STEP * 2**20), batch])
        while drawn < enough:
            size = min(enough - drawn, _PURE_BATCH)
            # One size at a time, which is drawn three times as fast as many at once.
            bits = [
                rng.random(size) < hit if count == 1 else rng.binomial(count, hit, size)
                for count, hit in zip(counts, hits, strict=True)
            ]
            right = np.stack(bits, axis=1, dtype=np.float64) @ belongs.T
            larger += int(np.count_nonzero(law.statistic(right) >= least - _HAIR))
            drawn += size
        result = float(upper_limit(larger, drawn, _MISLED))
        if result <= alpha or lower_limit(larger, drawn, _MISLED) > alpha:
            break
    return min(result, law.by_sum(least))


def pure_bound(guesses: Guesses, sets: Sequence[GuessSet], *, alpha: float) -> tuple[float, GuessSet]:
    """Return the largest pure epsilon that the sets refute together, 0 if none, and the most informative set there.

    Args:
        guesses: Guesses with their priors, and the odds that follow from them.
        sets: All sets of these guesses, or of a perfect attack on them.
        alpha: In (0, 1).
    """
    used, unit = list(sets), pure_step(guesses.bits)
    most = round(_LARGEST_PURE / unit)

    def telling(step: int) -> int:
        return int(_Law.of(guesses, step * unit).exponents(_right(used)).argmax())

    def clear(step: int) -> bool:
        law = _Law.of(guesses, step * unit)
        return law.by_sum(float(law.statistic(_right(used)))) > alpha

    def accepts(step: int) -> bool:
        return pure_p_value(guesses, used, epsilon=step * unit, alpha=alpha) > alpha

    # What refutes every epsilon is chance: labels are revealed with odds that no leak can exceed. To leave it out refutes less.
    while not accepts(most):
        used[telling(most)] = replace(used[telling(most)], correct=0)
    refused = next(filter(accepts, range(first_enough(clear, -1, most), most + 1)))
    step = max(0, refused - 1)
    return step * unit, sets[telling(step)]


def _right(sets: Sequence[GuessSet]) -> npt.NDArray[np.int64]:
    return np.array([item.correct for item in sets])


class _Law(NamedTuple):
    """Sets of independent guesses.

    Attributes:
        sets: The sets.
        log_odds: Shape (sets,), of the mean of the probabilities of a set's guesses to be right.
        scale: Shape (sets,), the variance of as many coins of that mean by the variance of the set's, 1 or more.
    """

    sets: Sequence[GuessSet]
    log_odds: Floats
    scale: Floats

    @classmethod
    def of(cls, guesses: Guesses, epsilon: float) -> "_Law":
        """Return the law that dominates the right guesses."""
        counts, belongs = guesses.cells
        hits = guesses.chances(epsilon)
        mean, variance = (
            belongs @ (counts * each) / (belongs @ counts) for each in (hits, hits * (1 - hits))
        )
        return cls(guesses.sets, special.logit(mean), (mean * (1 - mean) + _NONE) / (variance + _NONE))

    def exponents(self, right: npt.NDArray[Any]) -> Floats:
        """Return E above of each set; shape as that of the right guesses, (..., sets)."""
        return self.scale * exponents(right, self.sets, self.log_odds)

    def statistic(self, right: npt.NDArray[Any]) -> Floats:
        """Return T above; shape that of the right guesses without the last axis."""
        return joint(self.exponents(right))

    def by_sum(self, statistic: float) -> float:
        """Return the limit above of the chance of so large a statistic, by the sum over the sets."""
        most = (statistic - _TIES * math.log(len(self.sets))) / (1 + _TIES)
        return float(np.exp(-most / self.scale).sum())


def joint(every: Floats) -> Floats:
    """Return T above from the exponents of all sets, shape (..., sets)."""
    most = every.max(axis=-1)
    return np.asarray(most + _TIES * (most + np.log(np.exp(every - most[..., None]).sum(axis=-1))))


def exponents(right: npt.NDArray[Any], sets: Sequence[GuessSet], log_odds: float | Floats) -> Floats:
    """Return the exponent r KL(v/r || q) of the sets with more than q right, 0 of the others; shape as that of the right guesses.

    Args:
        right: Shape (..., sets).
        sets: Sets of guesses.
        log_odds: Of q; epsilon for fair coins.
    """
    q, rest = special.expit(log_odds), special.expit(np.negative(log_odds))
    guesses = np.array([item.guesses for item in sets], dtype=np.float64)
    divergence = special.rel_entr(right, guesses * q) + special.rel_entr(guesses - right, guesses * rest)
    return np.where(right > guesses * q, divergence, 0.0)
