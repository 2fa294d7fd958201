"""The largest epsilon that the scores of two groups refute, by every threshold at once, with an exact p-value [own].

The law. Whoever thresholds scores of an (epsilon, delta) separation finds at most T(x) of the members where he finds x of
the non-members: T jumps to delta at 0, rises with slope e^epsilon up to its corner, and with slope e^-epsilon from there
to 1. Whatever grows with the strict comparisons of members with non-members is largest where the non-members are uniform
and the members follow T, whatever the scores' laws and ties; the proof is in `auditor.estimators.joint_test`.

The statistic. At the (k+1)-th smallest non-member lie h members strictly below, and at the (k+1)-th largest member h
non-members strictly above. At each rank k of either group the Clopper-Pearson limits of the two rates give a bound on
epsilon, as if that rank were the only one; the statistic is the largest of them. As a bound that is the field's most
common error: it exceeds the truth far too often. As a statistic it is as valid as any that grows with the hits, and **it
does not hang on the epsilon that is tested**: so its p-value grows with epsilon, as the law's hits do, and the largest
epsilon that is refuted at alpha can be found by bisection. That one exceeds the truth with probability at most alpha.

The p-value. "The statistic is as large as observed" says that at some rank there are more hits than a number known for
that rank. Hits from above are hits from below read the other way round, so this says of the path of the pooled scores,
from the smallest to the largest, that after some number j of non-members it has passed more than most[j] members. Where T
is straight, given how many scores of both groups lie there, all their orders are equally likely: as likely as tosses of a
coin with that many heads, whatever the coin. So the chance to stay below is a sum over the places where the path can cross
the corner of T: of the chance to be there, times that of the tosses that lead there from below, times that of those from
above. What lies in T's jump (members below all else; in the mirror, non-members above all else) is summed over too.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import optimize, special
from scipy.linalg import lapack

from auditor.core.values import Floats, Losses
from auditor.estimators.joint_test import ranks_below_half
from auditor.estimators.limits import lower_limit, upper_limit

_Integers = npt.NDArray[np.int64]

_MOST, _DIGITS, _REACH = 20.0, 4, 0.1  # of epsilon, in nats
_STEP = 10.0**-_DIGITS
_ALIKE = 1e-9  # of two ratios: the same hits, whatever the rounding
_ROUNDING = 1e-9  # of a p-value: what sums and factorials lose

# --- The hits at ranks that are fixed before any data are seen ---

_GROWTH = 1.03  # of neighbouring ranks: on scores of few values some rank is that near to the end of each


def dense_ranks(size: int) -> _Integers:
    """Return ranks below half of the size: all of the first ones, and further on each 3% above the one before.

    >>> dense_ranks(100)[[0, 1, -1]].tolist(), dense_ranks(10_000).size
    ([0, 1, 49], 205)
    """
    return ranks_below_half(size, growth=_GROWTH)


@dataclass(frozen=True, eq=False)
class Hits:
    """How many of the other group lie strictly beyond the order statistics of either group, at `dense_ranks`.

    Attributes:
        members: n1.
        nonmembers: n0.
        below: Members below the (k+1)-th smallest non-member, at each rank k of the non-members.
        above: Non-members above the (k+1)-th largest member, at each rank k of the members.
    """

    members: int
    nonmembers: int
    below: _Integers
    above: _Integers

    @classmethod
    def of(cls, losses: Losses) -> "Hits":
        """Count them; smaller scores mean more like a member."""
        member, nonmember = losses.sorted_member, losses.sorted_nonmember
        n1, n0 = member.size, nonmember.size
        below = np.searchsorted(member, nonmember[dense_ranks(n0)], side="left")
        above = n0 - np.searchsorted(nonmember, member[n1 - 1 - dense_ranks(n1)], side="right")
        return cls(n1, n0, below, above)

    @classmethod
    def perfect(cls, members: int, nonmembers: int) -> "Hits":
        """Those of an attack that tells all members from all non-members."""
        below = np.full(dense_ranks(nonmembers).size, members)
        return cls(members, nonmembers, below, np.full(dense_ranks(members).size, nonmembers))


@dataclass(frozen=True, eq=False)
class ExactTest:
    """The test of every epsilon, for observed hits.

    Attributes:
        hits: See `Hits.of`.
        delta: In [0, 1).
        alpha: In (0, 1), the level that the test is made for; at 1e-9 and below nothing is refuted.

    >>> apart = Losses(member=np.arange(100), nonmember=np.arange(100) + 100)
    >>> test = ExactTest(Hits.of(apart), delta=0.0, alpha=0.05)
    >>> test.p_value(3.0) < 0.01, round(test.epsilon_bound, 1)
    (True, 4.2)
    """

    hits: Hits
    delta: float
    alpha: float

    @cached_property
    def statistic(self) -> float:
        """The largest log ratio of limits of all ranks; minus infinity where no rate of hits is above delta for sure."""
        n1, n0 = self.hits.members, self.hits.nonmembers
        lower, upper = self._bounds(self.hits.below, n1, n0), self._bounds(self.hits.above, n0, n1)
        return float(max(lower.max(), upper.max()))

    def _bounds(self, hits: _Integers, others: int, ranked: int) -> Floats:
        """What each rank alone would be bounded at: half of alpha for each of the two rates."""
        numerator = np.maximum(lower_limit(hits, others, self.alpha / 2) - self.delta, 0.0)
        with np.errstate(divide="ignore"):
            return np.log(numerator) - np.log(upper_limit(dense_ranks(ranked), ranked, self.alpha / 2))

    def _most_hits(self, others: int, ranked: int) -> _Integers:
        """At each rank the most hits that keep the statistic below what was observed; beyond the last rank: all."""
        ratio = math.exp(self.statistic) * (1 - _ALIKE)
        rates = ratio * upper_limit(dense_ranks(ranked), ranked, self.alpha / 2) + self.delta
        # The lower limit of so many hits lies above a rate at which as many or more are improbable.
        most, beyond = np.zeros(rates.size, dtype=np.int64), np.full(rates.size, others + 1)
        while np.any(beyond - most > 1):
            middle = (most + beyond) // 2
            likely = special.bdtrc(middle - 1.0, others, np.minimum(rates, 1.0)) > self.alpha / 2
            most, beyond = np.where(likely, middle, most), np.where(likely, beyond, middle)
        return np.append(most, others)

    @cached_property
    def _most(self) -> _Integers:
        """After j non-members so many members at most, or the statistic is as large as observed; shape (n0 + 1,)."""
        n1, n0 = self.hits.members, self.hits.nonmembers
        # Hits grow from rank to rank: what the next rank allows is allowed between.
        below = self._most_hits(n1, n0)[np.searchsorted(dense_ranks(n0), np.arange(n0 + 1))]
        above = self._most_hits(n0, n1)[np.searchsorted(dense_ranks(n1), np.arange(n1))]
        # With the i-th smallest member come all that may have so many non-members above, or fewer.
        needed = n0 - np.minimum.accumulate(above[::-1])
        passed = np.searchsorted(needed, np.arange(n0 + 1), side="right")
        return np.asarray(np.minimum.accumulate(np.minimum(below, passed)[::-1])[::-1])

    def p_value(self, epsilon: float) -> float:
        """Return the p-value of "epsilon at most this": it never falls as epsilon grows; 1 above 20, which is not refuted."""
        if self.statistic == -math.inf or epsilon > _MOST:
            return 1.0
        if epsilon not in self._known:
            self._known[epsilon] = self._chance_at_least(epsilon)
        return self._known[epsilon]

    @cached_property
    def _known(self) -> dict[float, float]:
        return {}

    def _chance_at_least(self, epsilon: float) -> float:
        stays = chance_to_stay_below(self._most, members=self.hits.members, epsilon=epsilon, delta=self.delta)
        return min(1.0, max(0.0, 1.0 - stays) + _ROUNDING)

    @cached_property
    def epsilon_bound(self) -> float:
        """The largest epsilon whose p-value is up to alpha, rounded down to 1e-4, and up to 20; 0 if none is."""

        def excess(epsilon: float) -> float:
            return math.log(self.p_value(epsilon) / self.alpha)

        if self.statistic == -math.inf:
            return 0.0
        # The statistic itself is not far off: from there outwards until the bound is enclosed.
        low = high = min(max(0.0, self.statistic), _MOST)
        reach = _REACH
        while excess(low) > 0:
            if low == 0:
                return 0.0
            low, high, reach = max(0.0, low - reach), low, 2 * reach
        while high < _MOST and excess(high) <= 0:
            low, high, reach = high, min(_MOST, high + reach), 2 * reach
        found = _MOST if excess(high) <= 0 else optimize.brentq(excess, low, high, xtol=_STEP)
        # A root within the step may lie on either side of the level.
        steps = math.floor(found / _STEP)
        steps -= excess(steps * _STEP) > 0
        return max(0.0, round(steps * _STEP, _DIGITS))


# --- The chance to stay below, by the tosses that lead to the corner from both ends ---

_LEFT_OUT = 1e-10
# Numbers of records in a jump that are told apart; of more than so many, the worst of a group stands for all of it.
_STARTS = 40
# Standard deviations and records beyond which paths are left out, and so counted as if they did not stay below.
_FAR, _SOME = 6.0, 20


def chance_to_stay_below(most: _Integers, *, members: int, epsilon: float, delta: float) -> float:
    """Return the chance that for all j the (j+1)-th smallest non-member, or the end, has at most most[j] members below.

    Args:
        most: Shape (n0 + 1,), non-decreasing, the last one n1.
        members: n1.
        epsilon: 0 or more, in nats.
        delta: In [0, 1).

    >>> most = np.array([1, 2, 2])  # of two records each: not both members below both non-members
    >>> round(6 * chance_to_stay_below(most, members=2, epsilon=0.0, delta=0.0), 9)
    5.0
    """
    n1, n0 = members, most.size - 1
    beyond = float(special.expit(-epsilon))  # of the members outside the jump: those above the corner
    (first, first_chances), (last, last_chances) = _in_the_jump(n1, delta), _in_the_jump(n0, delta)
    # Where the path may cross the corner, and how many of both groups are expected on its two sides.
    j, i = _likely(n0, beyond, int(last[-1]), 0), _likely(n1, 1 - beyond, 0, int(first[-1]))
    rise, fall = n1 * (1 - beyond) + n0 * beyond, n1 * beyond + n0 * (1 - beyond)
    below = _paths(first, most, n1 * (1 - beyond) / rise, rows=j, columns=i)
    # Read from above, so many members go with at most so many non-members.
    room = n0 - np.searchsorted(most, np.arange(n1, -1, -1), side="left")
    mirrored = range(n1 - i[-1], n1 - i[0] + 1), range(n0 - j[-1], n0 - j[0] + 1)
    above = _paths(last, room, n0 * (1 - beyond) / fall, rows=mirrored[0], columns=mirrored[1])
    both = np.arange(j[0] + i[0], j[-1] + i[-1] + 1)
    stays = 0.0
    for a, one in zip(first.tolist(), below * first_chances[:, None, None], strict=True):
        for b, other in zip(last.tolist(), above[:, ::-1, ::-1] * last_chances[:, None, None], strict=True):
            # Of so many scores below the corner: their chance over that of the tosses, without the binomials of each order.
            s, t = np.maximum(both - a, 0), np.maximum(n1 + n0 - b - both, 0)
            logs = s * math.log(rise) + t * math.log(fall) - special.gammaln(s + 1) - special.gammaln(t + 1)
            logs += math.lgamma(n1 - a + 1) - (n1 - a) * math.log(n1)
            logs += math.lgamma(n0 - b + 1) - (n0 - b) * math.log(n0)
            chances = np.lib.stride_tricks.sliding_window_view(np.exp(logs), len(i))
            stays += float(np.einsum("ji,ij,ji->", one, other, chances))
    return stays


def _in_the_jump(size: int, delta: float) -> tuple[_Integers, Floats]:
    """Numbers of records that the jump may hold, and their chances; the largest of a group stands for all of it."""
    counts = np.arange(min(size, int(size * delta + _FAR * math.sqrt(size * delta)) + _SOME) + 1)
    at_most = special.bdtr(counts, size, delta)
    kept = counts[(at_most > _LEFT_OUT) & (np.append(0.0, at_most[:-1]) < 1 - _LEFT_OUT)]
    ends = np.array([group[-1] for group in np.array_split(kept, min(kept.size, _STARTS))])
    return ends, np.diff(at_most[ends], prepend=0.0)


def _likely(size: int, share: float, fewer: int, more: int) -> range:
    """How many of a group may lie below the corner: all numbers whose chance matters, whatever lies in the jumps."""
    reach = _FAR * math.sqrt(size * share * (1 - share)) + _SOME
    return range(max(0, int(size * share - reach) - fewer), min(size, int(size * share + reach) + more) + 1)


def _paths(
    starts: _Integers, most: _Integers, share: float, *, rows: range, columns: range
) -> npt.NDArray[np.float64]:
    """Return the chance that tosses pass through (row, column) and stay below; shape (starts, rows, columns).

    Args:
        starts: Columns in which a path may begin, in row 0.
        most: In each row the largest column; never falls.
        share: The chance that a toss leads to the next column and not to the next row.
        rows: Of which the chances are returned.
        columns: Likewise.
    """
    found = np.zeros((starts.size, len(rows), len(columns)))
    steps = np.asfortranarray([np.ones(columns.stop), np.full(columns.stop, -share)])
    low, high = int(starts[0]), -1
    chances = np.zeros((starts.size, 0))
    for row in range(rows.stop):
        middle, spread = row * share / (1 - share), (_FAR * math.sqrt(row) + _SOME) / (1 - share)
        top = min(int(most[row]), columns.stop - 1, int(starts[-1] + middle + spread))
        start = max(low, int(starts[0] + middle - spread))
        if start > top:
            break
        entered = np.zeros((starts.size, top - start + 1))
        if row == 0:
            inside = starts <= top
            entered[inside, starts[inside] - start] = 1.0
        elif start <= high:
            entered[:, : high - start + 1] = (1 - share) * chances[:, start - low :]
        # Each column's chance is what came from the row before, and its share of the column to its left.
        solved, _ = lapack.dtbtrs(steps[:, : top - start + 1], entered.T, uplo="L", diag="U", overwrite_b=1)
        chances, low, high = solved.T, start, top
        if row in rows and (left := max(low, columns.start)) <= high:
            found[:, row - rows.start, left - columns.start : high + 1 - columns.start] = chances[
                :, left - low :
            ]
    return found
