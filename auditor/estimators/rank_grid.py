"""The rank grid [own]: certified bounds at many thresholds whose ranks are fixed before the data are seen.

t_k is the (k+1)-th smallest non-member loss; "member" if loss < t_k. F0(t_k-) is stochastically below
Beta(k + 1, n0 - k), so U(k; n0, a) bounds the FPR with no look at the data; the members below t_k give L. Ties only
help, because of the strict inequality. The upper tail does the same over the largest member losses. A union bound
over the ranks and the limits that each of them spends fixes a.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.choices import Melded, Members, RankGrid, Subset
from auditor.estimators import melded
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.estimators.member_limits import MemberLimits
from auditor.estimators.separating import just_above, just_below
from auditor.estimators.single_threshold import Candidate
from auditor.values import Floats, Losses

Counts1D = npt.NDArray[np.int64]

__all__ = ["grid_bound", "grid_ceiling", "ranks"]

_BASE = 1.5


def ranks(size: int) -> Counts1D:
    """Return the ranks {0} and round(1.5^j) below half the size, fixed before any data are seen.

    >>> ranks(20).tolist()
    [0, 1, 2, 3, 5, 8]
    """
    grid = {0}
    power = 1.0
    while power < size / 2 + 1:
        grid.add(round(power))
        power *= _BASE
    return np.array(sorted(rank for rank in grid if rank == 0 or rank < size / 2), dtype=np.int64)


@dataclass(frozen=True)
class _Tail:
    """One tail: ranks in the ranked group and, for each, how many of the other group lie beyond that threshold."""

    name: str
    ranks: Counts1D
    hits: Counts1D
    thresholds: Floats


def grid_bound(losses: Losses, *, delta: float, alpha: float, rule: RankGrid, members: Members) -> Candidate:
    """Return the best candidate of all ranks and tails; minus infinity where nothing is above delta."""
    limits = MemberLimits(members, losses.n_member)
    tails = []
    for name, ks in _tail_ranks(losses.n_member, losses.n_nonmember, rule, limits):
        if name == "lower":
            thresholds = losses.sorted_nonmember[ks]
            hits = np.searchsorted(losses.sorted_member, thresholds, side="left")
        else:
            thresholds = losses.sorted_member[losses.n_member - 1 - ks]
            hits = losses.n_nonmember - np.searchsorted(losses.sorted_nonmember, thresholds, side="right")
        tails.append(_Tail(name, ks, hits, thresholds))
    found = _best(tails, limits, losses.n_nonmember, delta=delta, alpha=alpha, rule=rule)
    if "threshold" not in found.details:
        return found
    beside = just_below if found.details["tail"] == "lower" else just_above
    return Candidate(
        found.epsilon, {**found.details, "threshold": beside(losses, found.details["threshold"])}
    )


@lru_cache(maxsize=256)
def grid_ceiling(
    n_member: int, n_nonmember: int, *, delta: float, alpha: float, rule: RankGrid, members: Members
) -> float:
    """Return the bound of a perfect attack: the most that these numbers of records can certify."""
    limits = MemberLimits(members, n_member)
    tails = [
        _Tail(name, ks, np.full(ks.size, n_member if name == "lower" else n_nonmember), np.zeros(ks.size))
        for name, ks in _tail_ranks(n_member, n_nonmember, rule, limits)
    ]
    return max(0.0, _best(tails, limits, n_nonmember, delta=delta, alpha=alpha, rule=rule).epsilon)


def _tail_ranks(n1: int, n0: int, rule: RankGrid, limits: MemberLimits) -> Iterator[tuple[str, Counts1D]]:
    if rule.tails != "upper":
        yield "lower", ranks(n0)
    if rule.tails != "lower":
        # In a census the FNR above the largest member is exactly 0, leakage or not: start at rank 1.
        yield "upper", ranks(n1)[1 if limits.known else 0 :]


def _best(
    tails: list[_Tail], limits: MemberLimits, n0: int, *, delta: float, alpha: float, rule: RankGrid
) -> Candidate:
    n1 = limits.scored
    candidates = max(1, sum(tail.ranks.size for tail in tails))
    level = alpha / (limits.limits * candidates)
    separate = (_separate(tail, limits, n0, delta, level) for tail in tails if tail.ranks.size)
    found = max(separate, key=lambda item: item.epsilon, default=Candidate(-math.inf))
    # Where a limit is exact there is nothing to meld; for a subset of a finite set two separate limits hold too.
    if not isinstance(rule.interval, Melded) or limits.known or isinstance(limits.members, Subset):
        return found
    for tail in tails:
        ranked, others = (n0, n1) if tail.name == "lower" else (n1, n0)
        ratios = melded.Ranked(tail.ranks, ranked, tail.hits, others)
        better = melded.best(ratios, delta=delta, level=alpha / candidates, least=found.epsilon)
        if better is not None:
            epsilon, at = better
            found = Candidate(epsilon, {**_counts(tail, at, n1, n0), "level_per_limit": alpha / candidates})
    return found


def _separate(tail: _Tail, limits: MemberLimits, n0: int, delta: float, level: float) -> Candidate:
    """The best of one tail by two limits for each rank."""
    n1 = limits.scored
    if tail.name == "lower":
        numerator, denominator = limits.tpr_lower(tail.hits, level), upper_limit(tail.ranks, n0, level)
    else:
        numerator, denominator = lower_limit(tail.hits, n0, level), limits.fnr_upper(tail.ranks, level)
    with np.errstate(divide="ignore"):
        logs = np.where(numerator > delta, np.log(np.maximum(numerator - delta, 0.0) / denominator), -np.inf)
    at = int(np.argmax(logs))
    names = ("tpr_lower", "fpr_upper") if tail.name == "lower" else ("tnr_lower", "fnr_upper")
    rates = dict(zip(names, (float(numerator[at]), float(denominator[at])), strict=True))
    return Candidate(float(logs[at]), {**_counts(tail, at, n1, n0), **rates, "level_per_limit": level})


def _counts(tail: _Tail, at: int, n1: int, n0: int) -> dict[str, Any]:
    hits, rank = int(tail.hits[at]), int(tail.ranks[at])
    where = {"tail": tail.name, "rank": rank, "threshold": float(tail.thresholds[at])}
    if tail.name == "lower":
        counts = {"true_positives": hits, "members": n1, "false_positives_at_most": rank, "nonmembers": n0}
    else:
        counts = {"true_negatives": hits, "nonmembers": n0, "false_negatives_at_most": rank, "members": n1}
    return {**where, **counts}
