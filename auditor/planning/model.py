"""The chance that the model-level bound reaches an epsilon: the hits that every rank takes, and simulated hits.

F0 at the order statistics of the grid's ranks is a chain of beta variables, and given them the members in between are
binomial: the lower tail is drawn without anything of size n. What is left above it is again uniform, so the upper tail
is drawn from it in the same way; upper ranks that reach down into the lower tail are left out, on the safe side.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.choices import Members, RankGrid
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.estimators.member_limits import MemberLimits
from auditor.estimators.rank_grid import grid_ceiling, ranks
from auditor.planning.attacks import Attack, PerfectAttack
from auditor.values import Floats

__all__ = ["ModelAudit"]

Counts = npt.NDArray[np.int64]

_DRAWS, _SEED = 2000, 0


@dataclass(frozen=True)
class ModelAudit:
    """``epsilon_bound.clopper_pearson`` with its default rank grid, planned."""

    delta: float
    alpha: float
    members: Members

    def ceiling(self, n_member: int, n_nonmember: int) -> float:
        """Return what a perfect attack would be certified at."""
        return grid_ceiling(
            n_member, n_nonmember, delta=self.delta, alpha=self.alpha, rule=RankGrid(), members=self.members
        )

    def limit(self, attack: Attack) -> float:
        """Return the largest epsilon that the attack shows however many records there are."""
        return attack.leak(self.delta)

    def chance(self, n: int, *, epsilon: float, attack: Attack) -> float:
        """Return the chance that n records in each group certify the epsilon."""
        if isinstance(attack, PerfectAttack):
            return float(self.ceiling(n, n) >= epsilon)
        (low_ranks, low_need), (high_ranks, high_need) = self._needs(n, epsilon)
        rng = np.random.default_rng(_SEED)
        sizes, ones = np.full(_DRAWS, n), np.ones(_DRAWS)
        low = _drawn(low_ranks, _Group(sizes, ones), _Group(sizes, ones), attack, rng)
        members = _Group(sizes - low.hits[-1], 1 - low.called)
        nonmembers = _Group(sizes - low_ranks[-1] - 1, 1 - low.rate)
        high = _drawn(high_ranks, members, nonmembers, attack, rng)
        reached = np.any(low.hits >= low_need[:, None], axis=0)
        return float(np.mean(reached | np.any(high.hits >= high_need[:, None], axis=0)))

    def _needs(self, n: int, epsilon: float) -> Iterator[tuple[Counts, Counts]]:
        """For each tail its ranks and the hits that they need; n + 1 where no number of hits is enough."""
        limits = MemberLimits(self.members, n)
        lower, upper = ranks(n), ranks(n)[1 if limits.known else 0 :]
        level = self.alpha / (limits.limits * (lower.size + upper.size))
        fpr, fnr = upper_limit(lower, n, level), limits.fnr_upper(upper, level)
        for ks, rate, rightly in (
            (lower, fpr, lambda hits: limits.tpr_lower(hits, level)),
            (upper, fnr, lambda hits: lower_limit(hits, n, level)),
        ):
            # Compared in logs: e^epsilon times a rate may overflow.
            target = np.exp(np.minimum(epsilon + np.log(np.maximum(rate, 1e-300)), 1.0)) + self.delta
            yield ks, _fewest(n, target, rightly)


def _fewest(n: int, target: Floats, rightly: Callable[[Any], Floats]) -> Counts:
    """The smallest numbers of hits whose limits reach the targets, by halving; n + 1 where there is none."""
    low, high = np.zeros(target.size, dtype=np.int64), np.full(target.size, n + 1, dtype=np.int64)
    while np.any(high - low > 1):
        middle = np.minimum((low + high) // 2, n)
        enough = rightly(middle) >= target
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


class _Group(NamedTuple):
    """Records of one group that are still to be drawn, in each simulation, and the span that they are uniform on."""

    size: Counts
    span: Floats


class _Tail(NamedTuple):
    """Simulated hits, shape (ranks, draws), -1 where the rank is not there; and where the last rank lies."""

    hits: Counts
    rate: Floats
    called: Floats


def _drawn(ks: Counts, ranked: _Group, other: _Group, attack: Attack, rng: np.random.Generator) -> _Tail:
    """Order statistics of one group, and how many of the other lie beyond each by the attack's curve."""
    rate, called = np.zeros(_DRAWS), np.zeros(_DRAWS)
    hits, before = np.zeros(_DRAWS, dtype=np.int64), -1
    rows = np.full((ks.size, _DRAWS), -1, dtype=np.int64)
    for row, k in enumerate(ks.tolist()):
        there = ranked.size > k
        # Of those beyond the last one, uniform on what is left of the span, the (k - before)-th.
        step = rng.beta(k - before, np.where(there, ranked.size - k, 1))
        rate = rate + (ranked.span - rate) * step
        now = np.clip(attack.tpr(np.clip(rate, 0.0, 1.0)), called, np.maximum(called, other.span))
        left = other.span - called
        share = np.divide(now - called, left, out=np.ones(_DRAWS), where=left > 0)
        hits = hits + rng.binomial(other.size - hits, np.clip(share, 0.0, 1.0))
        rows[row] = np.where(there, hits, -1)
        called, before = now, k
    return _Tail(rows, rate, called)
