"""The largest epsilon that the scores of two groups refute, by every threshold at once, with a calibrated p-value [own].

The law. Whoever thresholds scores of an (epsilon, delta) separation finds at most T(x) of the members where he finds x of
the non-members: T jumps to delta at 0, rises with slope e^epsilon up to its corner, and with slope e^-epsilon from there
to 1. Whatever grows with the strict comparisons of members with non-members is largest where the non-members are uniform
and the members follow T, whatever the scores' laws and ties; the proof is in `auditor.estimators.joint_test`.

A finite training set. In its epsilon a miss rate below one record counts as one record, for that no threshold above all N
misses any says nothing of leakage. At most T(x) of the set lie where x of the others do, so that its i-th smallest score x_i
has F0(x_i) >= T^-1(i/N); the largest has what the one before it has, and (1 - delta) e^-epsilon. Records that are drawn from
the set are drawn alike on both scales, and x_i < Y_j = F0^-1(V_j) means F0(x_i) < V_j: the proof goes through word by word,
with T^-1(i/N) in place of T^-1 of a uniform.

The statistic. At the (k+1)-th smallest non-member lie h members strictly below, and at the (k+1)-th largest member h
non-members strictly above. At each rank k of either group the Clopper-Pearson limits of the two rates give a bound on
epsilon, as if that rank were the only one; the statistic is the largest of them. As a bound that is the field's most
common error: it exceeds the truth far too often. As a statistic it is as valid as any that grows with the hits, and **it
does not hang on the epsilon that is tested**: so its p-value grows with epsilon, as the law's hits do, and the largest
epsilon that is refuted at alpha can be found by bisection. That one exceeds the truth with probability at most alpha.

The p-value. "The statistic is as large as observed" says that at some rank there are more hits than a number known for
that rank: that some i-th member lies below a j-th non-member, (i, j) being one of some pairs of ranks. Its chance is known
in two ways: exactly where the members are a sample and few (`chance_to_stay_below`), and otherwise by audits that are drawn
from the law (`least_epsilons`), at any size and for members of a finite training set.
"""

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, special
from scipy.linalg import lapack

from auditor.core.options import Census, Members, Sample, Subset
from auditor.core.values import Floats, Losses
from auditor.estimators.joint_test import order_statistics, ranks_below_half
from auditor.estimators.limits import MemberLimits, chance_above, lower_limit, upper_limit

_Integers = npt.NDArray[np.int64]
_Corners = tuple[_Integers, _Integers]

_MOST, _DIGITS, _REACH = 20.0, 4, 0.1  # of epsilon, in nats
LEAST_BOUND = 10.0**-_DIGITS  # bounds are multiples of it
_ALIKE = 1e-9  # of two ratios: the same hits, whatever the rounding
# The level of the limits of one rank, of alpha. With more of it the first few ranks decide, with less the middle ones: half
# of it loses 2% on normal losses and gains as much on those of few values, measured at 300 to 100,000 records.
_SPENT = 0.5
_NEARLY_ALL = 0.8  # of a training set: from there on it is as if all of it were scored
_ROUNDING = 1e-9  # of a p-value: what sums and factorials lose

# --- The hits at ranks that are fixed before any data are seen ---

_GROWTH = 1.03  # of neighbouring ranks: on scores of few values some rank is that near to the end of each


@lru_cache(maxsize=16)
def dense_ranks(size: int) -> _Integers:
    """Return ranks below half of the size: all of the first ones, and further on each 3% above the one before.

    >>> dense_ranks(100)[[0, 1, -1]].tolist(), dense_ranks(10_000).size
    ([0, 1, 49], 205)
    """
    return ranks_below_half(size, growth=_GROWTH)


_Ranks = Callable[[int], _Integers]  # from the size of a group


@dataclass(frozen=True, eq=False)
class Hits:
    """How many of the other group lie strictly beyond the order statistics of either group, at some ranks.

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
    def of(cls, losses: Losses, ranks: _Ranks = dense_ranks) -> "Hits":
        """Count them at the ranks of both sizes; smaller scores mean more like a member."""
        member, nonmember = losses.sorted_member, losses.sorted_nonmember
        n1, n0 = member.size, nonmember.size
        below = np.searchsorted(member, nonmember[ranks(n0)], side="left")
        above = n0 - np.searchsorted(nonmember, member[n1 - 1 - ranks(n1)], side="right")
        return cls(n1, n0, below, above)

    @classmethod
    def perfect(cls, members: int, nonmembers: int, ranks: _Ranks = dense_ranks) -> "Hits":
        """Those of an attack that tells all members from all non-members."""
        below = np.full(ranks(nonmembers).size, members)
        return cls(members, nonmembers, below, np.full(ranks(members).size, nonmembers))


class _Side(NamedTuple):
    """One tail: how many of the ``others`` lie beyond each of the ``dense_ranks`` of a group is set beside its rates.

    ``wrongly`` are upper limits of the rate of errors at each rank; ``level`` is that of the lower limits of the rates of
    hits, 1 where the rates are known.
    """

    tail: str
    ranked: int
    others: int
    wrongly: Floats
    level: float

    def rightly(self, hits: _Integers) -> Floats:
        """The lower limits of the rates of hits."""
        return hits / self.others if self.level == 1 else lower_limit(hits, self.others, self.level)

    def below(self, hits: _Integers, rates: Floats) -> npt.NDArray[np.bool_]:
        """Whether those limits lie below these rates: as many hits or more are not improbable there."""
        if self.level == 1:
            return np.asarray(hits < rates * self.others)
        return chance_above(hits - 1.0, self.others, np.minimum(rates, 1.0)) > self.level


@dataclass(frozen=True)
class Statistic:
    """The largest bound of all ranks, each as if it were the only one.

    Attributes:
        members: n1.
        nonmembers: n0.
        delta: In [0, 1).
        alpha: In (0, 1), the level that the limits are made for.
        chosen: How the members were chosen: `Sample`, `Subset` or `Census`.
        tails: ``"both"``, or only the ``"lower"`` or ``"upper"`` one; see `auditor.RankGrid`.
    """

    members: int
    nonmembers: int
    delta: float
    alpha: float
    chosen: Members = Sample()  # noqa: RUF009 - a frozen value
    tails: str = "both"

    @cached_property
    def _sides(self) -> list[_Side]:
        n1, n0, found = self.members, self.nonmembers, []
        # A statistic may weigh the ranks as it likes: those of a subset by what is nearer, a sample or all.
        of = self.chosen.of if isinstance(self.chosen, Subset) else math.inf
        known = isinstance(self.chosen, Census) or n1 >= _NEARLY_ALL * of
        limits = MemberLimits(Census() if known else Sample(), n1)
        level = _SPENT * self.alpha / limits.limits
        if self.tails != "upper":
            wrongly = upper_limit(dense_ranks(n0), n0, level)
            found.append(_Side("lower", n0, n1, wrongly, 1.0 if known else level))
        if self.tails != "lower":
            wrongly = limits.fnr_upper(dense_ranks(n1), level)
            # Of a census the miss rate above the largest member is 0, leakage or not.
            found.append(_Side("upper", n1, n0, np.where(wrongly > 0, wrongly, math.inf), level))
        return found

    def largest(self, hits: Hits) -> tuple[float, str, int]:
        """Return it, its tail and its place among the ranks; minus infinity where no rate is above delta for sure."""
        found = []
        for side in self._sides:
            counts = hits.below if side.tail == "lower" else hits.above
            with np.errstate(divide="ignore"):
                bounds = np.log(np.maximum(side.rightly(counts) - self.delta, 0.0)) - np.log(side.wrongly)
            at = int(np.argmax(bounds))
            found.append((float(bounds[at]), side.tail, at))
        return max(found, key=operator.itemgetter(0))

    def corners(self, value: float) -> _Corners:
        """Return the ranks (i, j) that decide: it is as large as that if any i-th member lies below the j-th non-member.

        Counted from 0 at the smallest, both ascending; none that follows from another.
        """
        i, j = [], []
        for side in self._sides:
            allowed, ranks = self._most_hits(side, value), dense_ranks(side.ranked)
            ranks, allowed = ranks[allowed < side.others], allowed[allowed < side.others]
            lower = side.tail == "lower"
            i.append(allowed if lower else side.ranked - 1 - ranks)
            j.append(ranks if lower else side.others - 1 - allowed)
        members, nonmembers = np.concatenate(i), np.concatenate(j)
        order = np.lexsort((-nonmembers, members))
        members, nonmembers = members[order], nonmembers[order]
        # The smallest member of all that lie below a non-member, or below one beyond it.
        kept = np.diff(np.maximum.accumulate(nonmembers), prepend=-1) > 0
        return members[kept], nonmembers[kept]

    def _most_hits(self, side: _Side, value: float) -> _Integers:
        """At each rank the most hits that keep it below this value."""
        rates = math.exp(value) * (1 - _ALIKE) * side.wrongly + self.delta
        most, beyond = np.zeros(rates.size, dtype=np.int64), np.full(rates.size, side.others + 1)
        while np.any(beyond - most > 1):
            middle = (most + beyond) // 2
            kept = side.below(middle, rates)
            most, beyond = np.where(kept, middle, most), np.where(kept, beyond, middle)
        return most


@dataclass(frozen=True, eq=False)
class CalibratedTest:
    """The test of every epsilon, for observed hits.

    Attributes:
        hits: See `Hits.of`.
        law: The statistic, and with it the sizes, delta and alpha.
        drawn: Whether by drawn audits, as where the members are no sample.

    >>> apart = Losses(member=np.arange(100), nonmember=np.arange(100) + 100)
    >>> test = CalibratedTest(Hits.of(apart), Statistic(100, 100, delta=0.0, alpha=0.05))
    >>> test.p_value(3.0) < 0.01, round(test.epsilon_bound, 1)
    (True, 4.2)
    """

    hits: Hits
    law: Statistic
    drawn: bool = False

    @property
    def statistic(self) -> float:
        """See `Statistic.largest`."""
        return self._largest[0]

    @property
    def best(self) -> tuple[str, int]:
        """The tail and the place among its `dense_ranks` where the statistic is that large."""
        return self._largest[1:]

    @cached_property
    def _largest(self) -> tuple[float, str, int]:
        return self.law.largest(self.hits)

    @cached_property
    def _corners(self) -> _Corners:
        return self.law.corners(self.statistic)

    @cached_property
    def _most(self) -> _Integers:
        most = np.full(self.law.nonmembers + 1, self.law.members)
        most[self._corners[1]] = self._corners[0]
        return np.asarray(np.minimum.accumulate(most[::-1])[::-1])

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
        if self._is_perfect:
            missed = int(isinstance(self.law.chosen, Census) and self.best[0] == "upper")
            return chance_of_separation(epsilon, self.law, missed=missed)
        if self.drawn:
            as_large = int(np.searchsorted(self._from_draws, epsilon, side="right"))
            return float(upper_limit(as_large, self._from_draws.size, _MISLED))
        law = self.law
        stays = chance_to_stay_below(self._most, members=law.members, epsilon=epsilon, delta=law.delta)
        return min(1.0, max(0.0, 1.0 - stays) + _ROUNDING)

    @property
    def _is_perfect(self) -> bool:
        """Whether nothing can be larger, and all that is as large is separation: its chance is known at any size."""
        apart = self.hits.members == self.hits.below[0]
        return bool(apart) and not isinstance(self.law.chosen, Subset)

    @cached_property
    def _from_draws(self) -> Floats:
        return least_epsilons(self._corners, self.law)

    @cached_property
    def epsilon_bound(self) -> float:
        """The largest epsilon whose p-value is up to alpha, rounded down to 1e-4, and up to 20; 0 if none is."""
        if self.statistic == -math.inf:
            return 0.0
        if self.drawn and not self._is_perfect:
            enough = largest_count(self._from_draws.size, self.law.alpha)
            return 0.0 if enough is None else _rounded_down(min(float(self._from_draws[enough]), _MOST))

        def excess(epsilon: float) -> float:
            return math.log(max(self.p_value(epsilon), _LEAST_P) / self.law.alpha)

        # The statistic itself is not far off: from there outwards until the bound is enclosed.
        low = high = min(max(0.0, self.statistic), _MOST)
        reach = _REACH
        while excess(low) > 0:
            if low == 0:
                return 0.0
            low, high, reach = max(0.0, low - reach), low, 2 * reach
        while high < _MOST and excess(high) <= 0:
            low, high, reach = high, min(_MOST, high + reach), 2 * reach
        found = _MOST if excess(high) <= 0 else optimize.brentq(excess, low, high, xtol=LEAST_BOUND)
        # A root within the step may lie on either side of the level.
        below = _rounded_down(found)
        return below if excess(below) <= 0 else max(0.0, round(below - LEAST_BOUND, _DIGITS))


def _rounded_down(epsilon: float) -> float:
    return round(math.floor(epsilon / LEAST_BOUND) * LEAST_BOUND, _DIGITS)


# --- The chance that all members lie below all non-members ---
#
# That of the smallest of n0 uniforms above the place of the largest member, (1 - place)^n0, over the law of the largest of
# n1 uniforms x = e^(-t/n1), step by step of t with what its middle has. What lies beyond the last step counts in full.

_STEPS, _ENOUGH, _LEAST_P = 20_000, 40.0, 1e-300
_BY_STEPS = 1e-4  # of the chance: far more than the steps lose


def chance_of_separation(epsilon: float, law: Statistic, *, missed: int = 0) -> float:
    """Return the chance that all members lie below all non-members.

    Args:
        epsilon: 0 or more, in nats.
        law: The sizes and delta; of a sample or a census.
        missed: Of a census, how many of the largest members may lie anywhere.

    >>> law = Statistic(10, 10, delta=0.0, alpha=0.05)
    >>> round(chance_of_separation(0.0, law) * math.comb(20, 10), 2)
    1.0
    """
    n1, n0, delta = law.members, law.nonmembers, law.delta
    ends = np.linspace(0.0, _ENOUGH - math.log(law.alpha), _STEPS)
    weights = -np.diff(np.exp(-ends), append=0.0)
    x = last = np.exp(-np.append((ends[1:] + ends[:-1]) / 2, math.inf) / n1)
    if isinstance(law.chosen, Census):
        weights, x, last = np.ones(1), np.array([(n1 - missed) / n1]), np.array([(n1 - 1) / n1])
    place = np.maximum((x - delta) * math.exp(-epsilon), 1 - delta - (1 - last) * math.exp(epsilon))
    return min(
        1.0, (1 + _BY_STEPS) * float(np.einsum("i,i->", weights, (1 - np.clip(place, 0.0, 1.0)) ** n0))
    )


# --- The chance by audits that are drawn from the law ---
#
# The pairs of ranks do not hang on epsilon: so their order statistics are drawn once for all of it. On the scale of the members' own law, where those of T are uniform, the one lies below T of the other. So every drawn audit has
# a smallest epsilon at which it shows what was observed, and the p-value of an epsilon is the share of those up to it.
#
# Members drawn from a finite training set. Of the N-n1 that were left out each is as likely to lie in any of the n1+1 gaps
# between the drawn ones as if all were uniform: the i-th smallest drawn one is the (i + those before it)-th of all. Of a
# census none is left out. That no training record lies above the largest one says nothing of leakage: a set is finite.
# So the largest one may lie anywhere above the second largest where the slope e^epsilon, the other limit, allows it.
#
# The stream is that of the sizes, delta and alpha alone, so that nobody can shop for a seed, and the level of this one
# stream is up to alpha with a probability of 1 - _MISLED, since as many fewer draws are allowed to be as small.

_DRAWS, _OF_SUBSETS, _BATCH = 4_000, 2_000, 250
_MISLED, _LEVEL_DIGITS = 1e-3, 12


@lru_cache(maxsize=16)
def largest_count(draws: int, alpha: float) -> int | None:
    """How many of the drawn audits may be as extreme for a p-value up to alpha; null where not even none would do.

    >>> largest_count(4_000, 0.05), largest_count(4_000, 1e-3)
    (158, None)
    """
    counts = np.arange(int(draws * alpha) + 2)
    allowed = np.flatnonzero(upper_limit(counts, draws, _MISLED) <= alpha)
    return int(allowed[-1]) if allowed.size else None


def drawn_level(alpha: float, chosen: Members) -> float:
    """Return the share of drawn audits that may be as extreme at this level; 0 where there are not draws enough.

    >>> drawn_level(0.05, Sample()), drawn_level(1e-4, Sample())
    (0.03975, 0.0)
    """
    draws = _OF_SUBSETS if isinstance(chosen, Subset) else _DRAWS
    count = largest_count(draws, alpha)
    return 0.0 if count is None else (count + 1) / draws


def least_epsilons(corners: _Corners, law: Statistic, *, draws: int | None = None) -> Floats:
    """Return, for each of so many drawn audits, the smallest epsilon at which it shows so much; ascending.

    Args:
        corners: See `Statistic.corners`.
        law: The sizes, delta and how the members were chosen.
        draws: By default as many as a bound rests on.
    """
    draws = draws or (_OF_SUBSETS if isinstance(law.chosen, Subset) else _DRAWS)
    least, delta = [np.full(draws, math.inf)], law.delta
    for y, x, last in drawn_places(corners, law, draws=draws):
        slopes = np.maximum((x - delta) / y, (1 - delta - y) / (1 - last)).min(axis=0)
        least.append(np.log(np.maximum(slopes, 1.0)))
    return np.sort(np.concatenate(least[1:] or least))


def drawn_places(corners: _Corners, law: Statistic, *, draws: int) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield, audit by audit in batches, where the non-members and the members lie whose order decides.

    As rates of their group up to there; shapes (corners, audits). The second rate of the members is that at which the
    largest of a finite set counts as missed.
    """
    own, at = corners
    members, chosen = law.members, law.chosen
    of = chosen.of if isinstance(chosen, Subset) else members * isinstance(chosen, Census)
    words = np.array([law.delta, round(law.alpha, _LEVEL_DIGITS)]).view(np.uint32).tolist()
    rng = np.random.default_rng([members, law.nonmembers, of, *words])
    for _ in range(0, draws if at.size else 0, _BATCH):
        y = order_statistics(at, law.nonmembers, _BATCH, rng)
        x = order_statistics(own, members, _BATCH, rng)
        if not of:
            yield y, x, x
            continue
        before = (own + 1)[:, None] + _left_out_before(x, of - members, rng)
        yield y, before / of, np.minimum(before, of - 1) / of


def _left_out_before(x: Floats, left: int, rng: np.random.Generator) -> _Integers:
    """How many of those that were left out, as many uniforms, lie below each of the ascending x; shape as that of x."""
    found, before, place = np.zeros(x.shape, dtype=np.int64), np.zeros(x.shape[1], dtype=np.int64), 0.0
    for row, now in enumerate(x if left else ()):
        before = before + rng.binomial(left - before, np.clip((now - place) / (1 - place), 0.0, 1.0))
        found[row], place = before, now
    return found


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
    # Of so many scores below the corner: their chance over that of the tosses, without the binomials of each order.
    both = np.arange(j[0] + i[0], j[-1] + i[-1] + 1)
    before = _weighted(below, first_chances, _scores(both, first, n1, rise), len(i))
    after = _weighted(above[:, ::-1, ::-1], last_chances, _scores(n1 + n0 - both, last, n0, fall), len(j))
    return float(np.einsum("ji,ij->", before, after))


def _scores(numbers: _Integers, jumped: _Integers, size: int, expected: float) -> Floats:
    """One side's factor of the chance that so many scores lie on it, ``jumped`` of a group apart; shape (jumped, numbers)."""
    s, left = np.maximum(numbers - jumped[:, None], 0), size - jumped[:, None]
    logs = s * math.log(expected) - expected - special.gammaln(s + 1)
    # What was expected on both sides and the sizes are as large together: neither factor leaves the range of numbers.
    logs += special.gammaln(left + 1) - left * math.log(size) + size
    return np.asarray(np.exp(logs))


def _weighted(paths: Floats, chances: Floats, scores: Floats, columns: int) -> Floats:
    """Sum the paths over their starts, each weighed by that of its start and of the number of scores, row + column."""
    windows = np.lib.stride_tricks.sliding_window_view(scores * chances[:, None], columns, axis=1)
    return np.asarray(np.einsum("sij,sij->ij", paths, windows))


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
