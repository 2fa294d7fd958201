"""The rank grid [own]: certified bounds at many thresholds whose ranks are fixed before the data are seen.

t_k is the (k+1)-th smallest non-member loss; "member" if loss < t_k. F0(t_k-) is stochastically below
Beta(k + 1, n0 - k), so U(k; n0, a) bounds the FPR with no look at the data; the members below t_k give L. Ties only
help, because of the strict inequality. The upper tail does the same over the largest member losses. A union bound
over the ranks and the two limits of each fixes a; in a census each candidate spends its error on one limit only.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.choices import RankGrid
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.values import Floats, Losses

__all__ = ["Candidate", "grid_bound", "ranks"]

_BASE = 1.5


@dataclass(frozen=True)
class Candidate:
    """The best of the candidates: the bound before it is cut at 0, and where it comes from."""

    epsilon: float
    details: dict[str, Any]


def ranks(size: int) -> npt.NDArray[np.int64]:
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


def grid_bound(
    losses: Losses, delta: float, alpha: float, rule: RankGrid, *, census: bool
) -> tuple[Candidate, float]:
    """Return the best candidate of all ranks and tails, and the ceiling of a perfect attack."""
    level = _grid_level(losses.n_member, losses.n_nonmember, alpha, rule, census=census)
    tails = _tails(losses, delta, level, rule, census=census)
    found = max(tails, key=lambda item: item.epsilon, default=Candidate(-math.inf, {}))
    n1, n0 = losses.n_member, losses.n_nonmember
    ceilings = [-math.inf]
    for tail, ks in _tail_ranks(n1, n0, rule, census=census):
        own, other = (n0, n1) if tail == "lower" else (n1, n0)
        hits = np.full(ks.size, other)
        numerator, denominator = _limits(hits, other, ks, own, level, tail, census=census)
        ceilings.append(_best_ratio(numerator, denominator, delta)[0])
    return found, max(0.0, *ceilings)


def _grid_level(n1: int, n0: int, alpha: float, rule: RankGrid, *, census: bool) -> float:
    """Return the error probability of each single limit."""
    spent_per_candidate = 1 if census else 2
    candidates = sum(ks.size for _, ks in _tail_ranks(n1, n0, rule, census=census))
    return alpha / (spent_per_candidate * max(1, candidates))


def _tail_ranks(
    n1: int, n0: int, rule: RankGrid, *, census: bool
) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    if rule.tails != "upper":
        yield "lower", ranks(n0)
    if rule.tails != "lower":
        # In a census the FNR above the largest member is exactly 0, leakage or not: start at rank 1.
        yield "upper", ranks(n1)[1 if census else 0 :]


def _limits(
    hits: npt.NDArray[np.int64],
    n_hits: int,
    ks: npt.NDArray[np.int64],
    n_ranked: int,
    level: float,
    tail: str,
    *,
    census: bool,
) -> tuple[Floats, Floats]:
    """Lower limits of the hit rate and upper limits of the ranked group's error rate; exact for a census's members."""
    exact_hits, exact_ranked = census and tail == "lower", census and tail == "upper"
    numerator = hits / n_hits if exact_hits else lower_limit(hits, n_hits, level)
    denominator = ks / n_ranked if exact_ranked else upper_limit(ks, n_ranked, level)
    return np.asarray(numerator), np.asarray(denominator)


def _best_ratio(numerator: Floats, denominator: Floats, delta: float) -> tuple[float, int]:
    if numerator.size == 0:
        return -math.inf, -1
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(numerator > delta, np.log(np.maximum(numerator - delta, 0.0) / denominator), -np.inf)
    best = int(np.argmax(logs))
    return float(logs[best]), best


def _tails(
    losses: Losses, delta: float, level: float, rule: RankGrid, *, census: bool
) -> Iterator[Candidate]:
    n1, n0 = losses.n_member, losses.n_nonmember
    for tail, ks in _tail_ranks(n1, n0, rule, census=census):
        if tail == "lower":
            own, other = n0, n1
            thresholds = losses.sorted_nonmember[ks]
            hits = np.searchsorted(losses.sorted_member, thresholds, side="left")
        else:
            own, other = n1, n0
            thresholds = losses.sorted_member[n1 - 1 - ks]
            hits = n0 - np.searchsorted(losses.sorted_nonmember, thresholds, side="right")
        numerator, denominator = _limits(hits, other, ks, own, level, tail, census=census)
        epsilon, at = _best_ratio(numerator, denominator, delta)
        if at < 0:
            continue
        rates = _rates(tail, float(numerator[at]), float(denominator[at]))
        counts = _counts(tail, int(hits[at]), int(ks[at]), n1, n0)
        details = {"tail": tail, "rank": int(ks[at]), "threshold": float(thresholds[at]), **counts, **rates}
        yield Candidate(epsilon, {**details, "level_per_limit": level})


def _rates(tail: str, numerator: float, denominator: float) -> dict[str, float]:
    if tail == "lower":
        return {"tpr_lower": numerator, "fpr_upper": denominator}
    return {"tnr_lower": numerator, "fnr_upper": denominator}


def _counts(tail: str, hits: int, rank: int, n1: int, n0: int) -> dict[str, int]:
    if tail == "lower":
        return {"true_positives": hits, "members": n1, "false_positives_at_most": rank, "nonmembers": n0}
    return {"true_negatives": hits, "nonmembers": n0, "false_negatives_at_most": rank, "members": n1}
