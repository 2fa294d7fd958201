"""Limits of both error rates that hold at every threshold at once, so that a threshold may be chosen by looking."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from auditor.core.numbers import percent
from auditor.core.options import Census, Coverage, Sample
from auditor.core.values import Claim, Estimate, Floats, Integers, Losses
from auditor.curves.cells import Partition
from auditor.curves.tradeoff import ThresholdCounts, TradeoffCurve, count
from auditor.curves.views import NamedCurve, against_claim, empirical, named, rounded
from auditor.estimators.exact_test import largest_count
from auditor.estimators.joint_test import order_statistics, ranks_below_half
from auditor.estimators.limits import lower_limit, upper_limit

# --- One distribution function, at the order statistics of ranks that are fixed in advance ---
#
# At the (i+1)-th smallest of n draws it is at least as large as the (i+1)-th smallest of n uniforms. All ranks get limits
# of the same local level: the largest for which the order statistics of n uniforms leave them at any rank with the
# probability that is allowed. It is found on drawn uniforms, of which so many fewer may leave them that the level holds
# with a probability of .999 over the draws; and it is never below an equal share for each limit, which needs no draws.

_DRAWS = 4_000
_HALVINGS = 14


def ranks_of_both_ends(size: int) -> Integers:
    """Return the ranks: dense at both ends.

    >>> ranks_of_both_ends(6).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    low = ranks_below_half(size)
    return np.unique(np.concatenate([low, size - 1 - low]))


@lru_cache(maxsize=16)
def local_level(size: int, alpha: float) -> float:
    """Return the level of each limit so that all of them, lower and upper ones, fail with probability alpha at most.

    >>> 0.05 / (2 * ranks_of_both_ends(1000).size) < local_level(1000, 0.05) < 0.05 / 10
    True
    """
    ranks = ranks_of_both_ends(size)
    low = high = alpha / (2 * ranks.size)
    allowed = largest_count(_DRAWS, alpha)
    if allowed is None:
        return low
    drawn, high, surely = _drawn(size), alpha / 2, 0
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        ends = _limits_at(ranks, size, middle)
        leave = ((drawn < ends[0][:, None]) | (drawn > ends[1][:, None])).any(axis=0)
        # A draw that leaves the limits at one level leaves them at each larger one: only those not yet decided stay.
        left = surely + int(np.count_nonzero(leave))
        if left <= allowed:
            low, surely, drawn = middle, left, drawn[:, ~leave]
        else:
            high, drawn = middle, drawn[:, leave]
    return low


@lru_cache(maxsize=2)
def _drawn(size: int) -> Floats:
    return order_statistics(ranks_of_both_ends(size), size, _DRAWS, np.random.default_rng([size, _DRAWS]))


def _limits_at(ranks: Integers, size: int, level: float) -> tuple[Floats, Floats]:
    return lower_limit(ranks + 1, size, level), upper_limit(ranks, size, level)


@dataclass(frozen=True, eq=False)
class _Sampled:
    """The distribution function of one group, from the numbers of its records below a threshold or at it.

    The lower limits begin with that of no record, and the upper ones end with that of all.
    """

    ranks: Integers
    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, size: int, alpha: float) -> "_Sampled":
        ranks = ranks_of_both_ends(size)
        lower, upper = _limits_at(ranks, size, local_level(size, alpha))
        return cls(ranks, np.append(0.0, lower), np.append(upper, 1.0))

    def at_least(self, counts: Integers) -> Floats:
        """Return the lower limit: the one at the last ranked record among so many."""
        return self.lower[np.searchsorted(self.ranks, counts - 1, side="right")]

    def at_most(self, counts: Integers) -> Floats:
        """Return the upper limit: the one at the first ranked record beyond so many."""
        return self.upper[np.searchsorted(self.ranks, counts, side="left")]


@dataclass(frozen=True)
class _Census:
    """Distribution function of a group that was scored completely, so that both limits are the share."""

    size: int

    def at_least(self, counts: Integers) -> Floats:
        return np.asarray(counts / self.size)

    at_most = at_least


# --- The trade-off curve: limits of the FPR and of the TPR at the ranked records of both groups ---


@dataclass(frozen=True, eq=False)
class Band:
    """The trade-off curve passes above all of the one points and below all of the others; each ascending.

    Attributes:
        above: FPR and TPR, shape (2, thresholds): an attack with at most this FPR has at least this TPR.
        below: Pairs: with at least this FPR at most this TPR.
    """

    above: Floats
    below: Floats


Between = tuple[tuple[Integers, Integers], tuple[Integers, Integers]]


def simultaneous_band(
    losses: Losses, *, confidence: float, coverage: Coverage, at: Between | None = None
) -> Band:
    """Return the band that the whole trade-off curve of the loss lies in, at this confidence.

    Half of the error goes to each group's distribution function; in a `Census` that of the members is known. A subset of
    the training set is treated as a sample.

    Args:
        losses: Smaller means more like a member.
        confidence: In (0, 1).
        coverage: How the members were chosen.
        at: The fewest and the most members, and non-members, that may lie below some thresholds, if the band is wanted there alone.

    >>> apart = Losses(member=np.arange(1000), nonmember=np.arange(1000) + 1000)
    >>> band = simultaneous_band(apart, confidence=0.95, coverage=Census())
    >>> [round(rate, 3) for rate in band.above[:, np.argmax(band.above[1])].tolist()]
    [0.008, 1.0]
    """
    member, nonmember = losses.sorted_member, losses.sorted_nonmember
    census = isinstance(coverage, Census)
    alpha = (1 - confidence) / (1 if census else 2)
    wrongly = _Sampled.of(nonmember.size, alpha)
    rightly = _Census(member.size) if census else _Sampled.of(member.size, alpha)
    if at is not None:
        (fewest, most), (rarest, commonest) = at
        above = np.array([wrongly.at_most(commonest), rightly.at_least(fewest)])
        return Band(above, np.array([wrongly.at_least(rarest), rightly.at_most(most)]))
    at_others, at_own = nonmember[wrongly.ranks], member[ranks_of_both_ends(member.size)]
    # Called are those below a non-member, or up to a member; not called are those above either.
    upto = [
        np.searchsorted(group, np.append(at_others, at_own), side="right") for group in (nonmember, member)
    ]
    alarms, hits = (
        np.append(np.searchsorted(group, at_others), counts[at_others.size :])
        for group, counts in zip((nonmember, member), upto, strict=True)
    )
    above = np.array([wrongly.at_most(alarms), rightly.at_least(hits)])
    return Band(above, np.array([wrongly.at_least(upto[0]), rightly.at_most(upto[1])]))


def furthest(band: Band) -> dict[str, Any] | None:
    """Return the rates of errors and of hits of the band whose ratio is largest at one end, and which; None if none shows any.

    ``errors`` is an upper limit and ``hits`` a lower one: of false alarms and members recognised (``end`` is ``"low"``,
    by low losses), or of members wrongly ruled out and others rightly (``"high"``). Chosen by looking, and honest: the
    band holds everywhere at once.

    >>> point = furthest(Band(np.array([[0.01, 0.5], [0.2, 0.9]]), np.zeros((2, 0))))
    >>> [point[name] for name in ("errors", "hits", "end")]
    [0.01, 0.2, 'low']
    """
    (fpr, tpr), result = band.above, []
    for end, errors, hits in (("low", fpr, tpr), ("high", 1 - tpr, 1 - fpr)):
        seen = (errors > 0) & (hits > errors)
        if seen.any():
            at = int(np.argmax(np.where(seen, hits / np.where(seen, errors, 1.0), 0.0)))
            result.append({"errors": float(errors[at]), "hits": float(hits[at]), "end": end})
    return max(result, key=_telling, default=None)


_EXPECTED = 1.25  # recognised members are reported first, unless the other end says so many times as much


def _telling(point: dict[str, Any]) -> float:
    ratio: float = math.log(point["hits"] / point["errors"])
    return ratio * (_EXPECTED if point["end"] == "low" else 1.0)


# --- The lines of a plot that the band belongs to ---


def measured(
    losses: Losses,
    counts: ThresholdCounts,
    confidence: float,
    coverage: Coverage,
    partition: Partition | None = None,
) -> tuple[NamedCurve, ...]:
    """Return the empirical curve of the losses, and its band; with a partition at its cuts alone."""
    if partition is None:
        exact, at = named("empirical", "measured", empirical(counts)), None
    else:
        exact, at = named("empirical", "measured", partition.curve()), partition.limits
    return exact, *_band(losses, confidence, coverage, at)


def curves_of_runs(
    losses: Losses, bound: Estimate, claim: Claim | None, promised: TradeoffCurve | None, *, fixed: bool
) -> tuple[NamedCurve, ...]:
    """Return those lines and what the scores measure: with its band where the number of runs was fixed, as it needs."""
    curve = named("empirical", "measured, no interval", empirical(count(losses)))
    band = _band(losses, bound.confidence, Sample()) if fixed and bound.confidence else ()
    return (curve, *band, *against_claim(bound, claim, promised))


def _band(
    losses: Losses, confidence: float, coverage: Coverage, at: Between | None = None
) -> list[NamedCurve]:
    """Return both sides of the band as staircases: a lower limit holds to the right of its FPR, an upper one to the left."""
    band = simultaneous_band(losses, confidence=confidence, coverage=coverage, at=at)
    label = f"confidence band, all thresholds at once ({percent(confidence, toward='down')})"
    (fpr_high, tpr_low), (fpr_low, tpr_high) = _corners(band.above), _corners(1 - band.below)[:, ::-1]
    fpr_low, tpr_high = 1 - fpr_low, 1 - tpr_high
    lower = (
        np.concatenate([[0.0], np.repeat(fpr_high, 2), [1.0]]),
        np.concatenate([[0.0, 0.0], np.repeat(tpr_low, 2)]),
    )
    upper = (
        np.concatenate([[0.0], np.repeat(fpr_low, 2), [1.0]]),
        np.concatenate([np.repeat(tpr_high, 2), [1.0, 1.0]]),
    )
    return [
        NamedCurve("band_lower", label, *map(rounded, lower)),
        NamedCurve("band_upper", label, *map(rounded, upper)),
    ]


def _corners(points: Floats) -> Floats:
    """Return the points whose TPR no other point reaches at a smaller or equal FPR; ascending in both."""
    points = points[:, np.lexsort((-points[1], points[0]))]
    return points[:, np.diff(np.maximum.accumulate(points[1]), prepend=0.0) > 0]
