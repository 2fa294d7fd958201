"""Exact limit for a ratio of two rates, at a threshold whose rank was fixed in advance: melded limits [own]."""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from scipy import special

from auditor.core.facts import Tail
from auditor.core.values import Floats, Integers

# --- Ranks that are fixed before any data are seen, and the hits at each of them ---

_Range = tuple[Floats, Floats]
_BASE = 1.5


def ranks(size: int) -> Integers:
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
class Ranked:
    """One tail: ranks k in a group of n0 and, for each, the hits v: the number of the n1 others beyond that threshold."""

    ranks: Integers
    ranked: int
    hits: Integers
    others: int
    name: Tail = Tail.LOWER

    def at(self, chosen: Integers) -> "Ranked":
        """Return some of the ranks."""
        return replace(self, ranks=self.ranks[chosen], hits=self.hits[chosen])

    def laws(self) -> tuple[_Range, _Range]:
        """Return the parameters of B and of V, below; those of V are of no use without hits."""
        ranks, hits = self.ranks.astype(np.float64), np.maximum(self.hits, 1).astype(np.float64)
        return (ranks + 1, self.ranked - ranks), (hits, self.others - hits + 1)


# --- One exact limit for a ratio of two rates, at a threshold whose rank was fixed in advance [own] ---
#
# t is the (k + 1)-th smallest of n0 losses, f = P[loss < t] in their law and v of the n1 other losses lie below t. If
# their rate is at most e^eps f + d, then f is stochastically below B ~ Beta(k + 1, n0 - k) and v, given t, is binomial:
#
#     P[v or more] <= E P[Bin(n1, e^eps B + d) >= v] = P[V <= e^eps B + d],  V ~ Beta(v, n1 - v + 1), independent of B
#
# so eps_L, the level-a quantile of log((V - d)/B), exceeds the truth with probability at most a. Two separate limits at
# a/2 give no more: P[V <= e^eps B + d] <= P[V <= L] + P[B >= U] = a where (L - d)/U = e^eps. Melding two beta laws
# in this way is due to Fay, Proschan and Brittain 2015; with ranks in place of counts its level is proven, not conjectured.


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(
    32
)  # more leave the result as it is, to 1e-10 of the level
# What lies outside the range of the integration, as a share of the level: counted in full, so on the safe side.
_OUTSIDE = 1e-7
_TOLERANCE = 1e-10
_STEP = 0.01


def best_ratio(
    candidates: Ranked, *, delta: float, level: float | Floats, least: float
) -> tuple[float, int] | None:
    """Return the largest eps_L of these candidates and its place, or None if none exceeds ``least``.

    Args:
        candidates: Ranks and hits.
        delta: In [0, 1).
        level: Level of every candidate, or one level for each.
        least: Where the search starts, for example the largest bound from two separate limits.
    """
    levels = np.broadcast_to(np.asarray(level, dtype=np.float64), candidates.hits.shape)
    ends = _ends(candidates, delta, levels)
    start, result = least, None
    place = np.flatnonzero(ends > start)
    while place.size:
        p = p_value(start, candidates.at(place), delta=delta, level=levels[place]) / levels[place]
        place, p = place[p < 1], p[p < 1]
        if place.size == 0:
            break
        at = place[[int(np.argmin(p))]]
        start = _crossing(candidates.at(at), delta, levels[at], start, float(ends[at[0]]))
        result = start, int(at[0])
        place = place[(place != at[0]) & (ends[place] > start)]
    return result


def p_value(
    epsilon: float,
    candidates: Ranked,
    *,
    delta: float,
    level: float | Floats = 1e-5,
    of_ranks: _Range | None = None,
    of_hits: _Range | None = None,
) -> Floats:
    """Return P[V <= e^eps B + d] of each candidate, rounded up by at most 3e-7 of ``level``.

    Args:
        epsilon: In nats.
        candidates: Ranks and hits; a candidate without hits has p-value 1.
        delta: In [0, 1).
        level: Level of all candidates, or of each, to compare with.
        of_ranks: `range_of_ranks` of the candidates and the level, if it is known.
        of_hits: `range_of_hits`, in the same way.

    >>> result = p_value(0.0, Ranked(np.array([0]), 10, np.array([10]), 10), delta=0.0)
    >>> math.isclose(result[0] * math.comb(20, 10), 1, rel_tol=1e-6)  # all 10 below the smallest of the other 10
    True
    """
    laws, scale = candidates.laws(), math.exp(epsilon)
    b_range = range_of_ranks(candidates, level) if of_ranks is None else of_ranks
    v_range = range_of_hits(candidates, level) if of_hits is None else of_hits
    low = np.maximum(b_range[0], (v_range[0] - delta) / scale)
    high = np.minimum(b_range[1], (v_range[1] - delta) / scale)
    half, middle = np.maximum(high - low, 0.0) / 2, (high + low) / 2
    b = np.clip(middle[:, None] + half[:, None] * _NODES, 0.0, 1.0)
    (first, second), (hits, others) = ([side[:, None] for side in law] for law in laws)
    log_density = (
        special.xlogy(first - 1, b) + special.xlog1py(second - 1, -b) - special.betaln(first, second)
    )
    below = special.betainc(hits, others, np.clip(scale * b + delta, 0.0, 1.0))
    inner = np.einsum("ij,j->i", np.exp(log_density) * below, _WEIGHTS) * half
    # Above `high` either B is improbable, or V is nearly surely below e^eps B + d.
    beyond = special.betaincc(*laws[0], np.clip(high, 0.0, 1.0))
    p = np.minimum(1.0, inner + beyond + 3 * _OUTSIDE * level)
    return np.where(candidates.hits <= 0, 1.0, p)


def range_of_ranks(candidates: Ranked, level: float | Floats) -> _Range:
    """Return between which rates B lies but for a negligible share of the level; it depends on the ranks alone."""
    return _range(candidates.laws()[0], level)


def range_of_hits(candidates: Ranked, level: float | Floats) -> _Range:
    """Return the same of V, which depends on the hits alone."""
    return _range(candidates.laws()[1], level)


def _range(law: _Range, level: float | Floats) -> _Range:
    outside = _OUTSIDE * level
    return np.asarray(special.betaincinv(*law, outside)), np.asarray(special.betainccinv(*law, outside))


def _ends(candidates: Ranked, delta: float, level: Floats) -> Floats:
    """Return an upper bound of each eps_L: V below its sqrt(a) quantile and B above its own have probability a together."""
    b, v = candidates.laws()
    share = np.sqrt(level)
    numerator = np.maximum(special.betaincinv(*v, share) - delta, 0.0)
    with np.errstate(divide="ignore"):
        ends = np.log(numerator / special.betainccinv(*b, share))
    return np.where(candidates.hits <= 0, -np.inf, ends)


def _crossing(one: Ranked, delta: float, level: Floats, start: float, end: float) -> float:
    """Return the epsilon at which the p-value of one candidate reaches the level, known to lie above ``start``."""
    known = {"of_ranks": range_of_ranks(one, level), "of_hits": range_of_hits(one, level)}

    def excess(epsilon: float) -> float:
        return float(p_value(epsilon, one, delta=delta, level=level, **known)[0] - level[0])

    end = max(end, start) + _TOLERANCE
    while excess(end) < 0:  # rounding can leave the end a hair short
        end += _STEP
    return float(scipy.optimize.brentq(excess, start, end, xtol=_TOLERANCE))
