"""The largest epsilon that the scores of two groups refute, by every threshold at once, with a calibrated p-value [own].

The law. An attacker who thresholds scores of an (epsilon, delta) separation finds at most T(x) of the members where he finds x of
the non-members: T jumps to delta at 0, rises with slope e^epsilon up to its corner, and with slope e^-epsilon from there
to 1. Whatever grows with the strict comparisons of members with non-members is largest where the non-members are uniform
and the members follow T, whatever the scores' laws and ties; the proof is in `auditor.estimators.joint_test`.

A finite training set. In its epsilon a miss rate below one record counts as one record, for that no threshold above all N
misses any says nothing of leakage. At most T(x) of the set lie where x of the others do, so that its i-th smallest score x_i
has F0(x_i) >= T^-1(i/N); the largest has what the one before it has, and (1 - delta) e^-epsilon. Records that are drawn from
the set are drawn alike on both scales, and x_i < Y_j = F0^-1(V_j) means F0(x_i) < V_j: the proof goes through word by word,
with T^-1(i/N) in place of T^-1 of a uniform.

The statistic. At the (k+1)-th smallest non-member lie h members strictly below, and at the (k+1)-th largest member h
non-members strictly above. At each rank k of either group the melded limit of the two rates gives a bound on epsilon, as if
that rank were the only one, and the statistic is the largest of them. It grows with the hits, and **it does not depend on
the epsilon that is tested**: so its p-value grows with epsilon, as the law's hits do, and the largest epsilon that is
refuted at alpha can be found by bisection. That one exceeds the truth with probability at most alpha.

Beside `Melded`. The m ranks that `Melded` looks at have the level alpha/m here too, so that the statistic is never below the
bound of `Melded`. That an audit shows an epsilon by any of these m ranks has a chance of at most alpha, and of much less,
for the ranks are dependent; what is left is for the ranks between them, at a fraction of that level. So the chance of a
statistic above the epsilon of the law is below alpha, and the bound that is calibrated is at or above the statistic. The
tests compute that chance.

The p-value. "The statistic is as large as observed" says that at some rank there are more hits than a number known for
that rank: that some i-th member lies below a j-th non-member, (i, j) being one of some pairs of ranks. Its chance is known
in two ways: exactly where the members are a sample and few (`StayBelow`), and otherwise by audits that are drawn
from the law (`least_epsilons`), at any size and for members of a finite training set.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
import scipy
from scipy import special

from auditor.core.facts import Tail
from auditor.core.options import Census, Coverage, Sample, Subset
from auditor.core.values import Booleans, Floats, Integers, Losses
from auditor.estimators.joint_test import order_statistics, ranks_below_half
from auditor.estimators.limits import MemberLimits, chance_above, lower_limit, upper_limit
from auditor.estimators.melding import Ranked, best_ratio, p_value, range_of_ranks, ranks
from auditor.estimators.tosses import StayBelow

_Corners = tuple[Integers, Integers]

_MOST, _DIGITS, _REACH, _WIDE = 20.0, 4, 0.1, 0.4  # of epsilon, in nats
LEAST_BOUND = 10.0**-_DIGITS  # bounds are multiples of it
_ALIKE = 1e-9  # of two ratios: the same hits, whatever the rounding
# The level of a rank between those of `Melded`, of theirs. With half of it the chance of a statistic above the truth reaches
# .9 alpha at 100,000 records and an alpha of .001, which leaves too little for the error of drawn audits; with a quarter .83.
_BETWEEN = 0.25
_NEARLY_ALL = 0.8  # of a training set: from there on it is as if all of it were scored
_ROUNDING = 1e-9  # of a p-value: rounding in sums and factorials
_LARGEST_P = 1 - np.finfo(float).epsneg

# --- The hits at ranks that are fixed before any data are seen ---

_GROWTH = 1.03  # of neighbouring ranks: on scores of few values some rank is that near to the end of each


@lru_cache(maxsize=16)
def dense_ranks(size: int) -> Integers:
    """Return ranks below half of the size: all of the first ones, then each 3% above the one before, and those of `Melded`.

    >>> dense_ranks(100)[[0, 1, -1]].tolist(), dense_ranks(10_000).size
    ([0, 1, 49], 216)
    """
    return np.union1d(ranks_below_half(size, growth=_GROWTH), ranks(size))


_Ranks = Callable[[int], Integers]  # from the size of a group


class Hits(NamedTuple):
    """Numbers of the other group that lie strictly beyond the order statistics of either group, at some ranks.

    Attributes:
        lower: Members below the (k+1)-th smallest non-member, at each rank k of the non-members.
        upper: Non-members above the (k+1)-th largest member, at each rank k of the members.
    """

    lower: Ranked
    upper: Ranked

    @classmethod
    def of(cls, losses: Losses, ranks: _Ranks = dense_ranks) -> "Hits":
        """Count them at the ranks of both sizes; smaller scores mean more like a member."""
        member, nonmember = losses.sorted_member, losses.sorted_nonmember
        perfect = cls.perfect(member.size, nonmember.size, ranks)
        thresholds = nonmember[perfect.lower.ranks], member[member.size - 1 - perfect.upper.ranks]
        below = np.searchsorted(member, thresholds[0], side="left")
        above = nonmember.size - np.searchsorted(nonmember, thresholds[1], side="right")
        return cls(replace(perfect.lower, hits=below), replace(perfect.upper, hits=above))

    @classmethod
    def perfect(cls, members: int, nonmembers: int, ranks: _Ranks = dense_ranks) -> "Hits":
        """Hits of an attack that separates all members from all non-members."""
        low, high = ranks(nonmembers), ranks(members)
        lower = Ranked(low, nonmembers, np.full(low.size, members), members, Tail.LOWER)
        return cls(lower, Ranked(high, members, np.full(high.size, nonmembers), nonmembers, Tail.UPPER))


@dataclass(frozen=True, eq=False)
class Side:
    """One tail, and the bound of each rank.

    Attributes:
        tail: The ranks of a group, with hits.
        delta: In [0, 1).
        levels: Those of the bounds.
        limits: How the members were chosen.
        melded: Whether a bound is by one melded limit, and not by two separate ones.
    """

    tail: Ranked
    delta: float
    levels: Floats
    limits: MemberLimits
    melded: bool

    @cached_property
    def wrongly(self) -> Floats:
        """Upper limits of the rate of errors at each rank, one of two."""
        level = self.levels / self.limits.limits
        if self.tail.name == Tail.LOWER:
            return upper_limit(self.tail.ranks, self.tail.ranked, level)
        rates = self.limits.fnr_upper(self.tail.ranks, level)
        # Of a census the miss rate above the largest member is 0, leakage or not.
        return np.where(rates > 0, rates, math.inf)

    def rightly(self, hits: Integers) -> Floats:
        """Return lower limits of the rate of the hits at each rank, one of two."""
        level = self.levels / self.limits.limits
        if self.tail.name == Tail.LOWER:
            return self.limits.tpr_lower(hits, level)
        return lower_limit(hits, self.tail.others, level)

    @property
    def _counted(self) -> bool:
        """Whether the hits are all there are, so that their rate is known."""
        return self.limits.is_census and self.tail.name == Tail.LOWER

    def separate(self, hits: Integers) -> tuple[Floats, Floats]:
        """Return the bound of each rank by two separate limits, minus infinity where no rate is above delta; and `rightly`."""
        rates = self.rightly(hits)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(rates - self.delta, 0.0)) - np.log(self.wrongly), rates

    def largest(self, tail: Ranked, *, least: float = -_MOST) -> tuple[float, int, float | None]:
        """Return the largest bound of this tail with other hits, its place, and the limit of their rate.

        There is no such limit of a melded bound, which is above ``least``.
        """
        bounds, rates = self.separate(tail.hits)
        at = int(np.argmax(bounds))
        bound, better = float(bounds[at]), None
        if self.melded:
            better = best_ratio(tail, delta=self.delta, level=self.levels, least=max(bound, least))
        return (bound, at, float(rates[at])) if better is None else (*better, None)

    def most_hits(self, value: float) -> Integers:
        """Return the most hits at each rank that keep its bound below this value."""
        all_of_them = self.tail.hits
        least = np.zeros_like(all_of_them)
        separately = partial(self._separately, value, self.wrongly, self.levels / self.limits.limits)
        if not self.melded:
            return _most(separately, least, all_of_them)
        # Melded limits are no lower than two separate ones, and below for sure where V lies below its sqrt(a) quantile, B
        # above its own: both have the probability a together. So few hits are left to be looked at.
        share = np.sqrt(self.levels)
        wrongly = np.asarray(special.betainccinv(*self.tail.laws()[0], share), dtype=np.float64)
        surely = _most(partial(self._separately, value, wrongly, share), least, all_of_them)
        return _most_by_value(partial(self._excess, value), surely, _most(separately, surely, all_of_them))

    def _separately(
        self, value: float, wrongly: Floats, levels: Floats, hits: Integers, at: Integers
    ) -> Booleans:
        """Return whether the bound of some ranks by two separate limits lies below this value."""
        rates = math.exp(value) * (1 - _ALIKE) * wrongly[at] + self.delta
        if self._counted:
            return np.asarray(hits < rates * self.tail.others)
        return chance_above(hits - 1.0, self.tail.others, np.minimum(rates, 1.0)) > levels[at]

    def _excess(self, value: float, hits: Integers, at: Integers) -> Floats:
        """Return how far, in standard deviations, the melded bound of some ranks lies below this value."""
        some = replace(self.tail, ranks=self.tail.ranks[at], hits=hits)
        of_ranks = self._of_ranks[0][at], self._of_ranks[1][at]
        p = p_value(value - _ALIKE, some, delta=self.delta, level=self.levels[at], of_ranks=of_ranks)
        return np.asarray(special.ndtri(np.minimum(p, _LARGEST_P)) - special.ndtri(self.levels[at]))

    @cached_property
    def _of_ranks(self) -> tuple[Floats, Floats]:
        return range_of_ranks(self.tail, self.levels)


@dataclass(frozen=True)
class Statistic:
    """The largest bound of all ranks, each at a level of its own.

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
    chosen: Coverage = Sample()  # noqa: RUF009 - a frozen value
    tails: str = "both"

    @cached_property
    def sides(self) -> list[Side]:
        """The tails that are looked at."""
        n1 = self.members
        # A statistic may weigh the ranks as it likes: those of a subset by what is nearer, a sample or all.
        of = self.chosen.of if isinstance(self.chosen, Subset) else math.inf
        options = isinstance(self.chosen, Census) or n1 >= _NEARLY_ALL * of
        limits = MemberLimits(Census() if options else Sample(), n1)
        sides = [side for side in Hits.perfect(n1, self.nonmembers) if self.tails in ("both", side.name)]
        share = self.alpha / sum(ranks(side.ranked).size for side in sides)
        weights = (np.where(np.isin(side.ranks, ranks(side.ranked)), 1.0, _BETWEEN) for side in sides)
        return [
            Side(side, self.delta, share * weight, limits, melded=not limits.is_census)
            for side, weight in zip(sides, weights, strict=True)
        ]

    def _with_hits(self, hits: Hits) -> Iterator[tuple[Side, Ranked]]:
        """Yield the sides, each with the hits of its tail."""
        by_name = {tail.name: tail for tail in hits}
        return ((side, by_name[side.tail.name]) for side in self.sides)

    def largest(self, hits: Hits) -> tuple[float, Tail, int]:
        """Return it, its tail and its place among the ranks; minus infinity where no rate is above delta for sure."""
        result = ((side.largest(tail), tail.name) for side, tail in self._with_hits(hits))
        (value, at, _), tail = max(result, key=lambda item: item[0][0])
        return value, tail, at

    def about(self, hits: Hits) -> float:
        """Return a number that is quickly had and no larger: by two separate limits at every rank."""
        return max(float(side.separate(tail.hits)[0].max()) for side, tail in self._with_hits(hits))

    def reached(self, every: list[Hits], value: float) -> list[bool]:
        """Return which hits make it as large as that."""
        allowed = _most_hits(self, value)
        tails = ([tail.hits for _, tail in self._with_hits(hits)] for hits in every)
        return [any((seen > most).any() for seen, most in zip(each, allowed, strict=True)) for each in tails]

    def corners(self, value: float) -> _Corners:
        """Return the ranks (i, j) that decide: it is as large as that if any i-th member lies below the j-th non-member.

        Counted from 0 at the smallest, both ascending; none that follows from another.
        """
        i, j = [], []
        for side in self.sides:
            allowed, tail = side.most_hits(value), side.tail
            at, allowed = tail.ranks[allowed < tail.others], allowed[allowed < tail.others]
            lower = tail.name == Tail.LOWER
            i.append(allowed if lower else tail.ranked - 1 - at)
            j.append(at if lower else tail.others - 1 - allowed)
        members, nonmembers = np.concatenate(i), np.concatenate(j)
        order = np.lexsort((-nonmembers, members))
        members, nonmembers = members[order], nonmembers[order]
        # The smallest member of all that lie below a non-member, or below one beyond it.
        is_corner = np.diff(np.maximum.accumulate(nonmembers), prepend=-1) > 0
        return members[is_corner], nonmembers[is_corner]


def _most(below: Callable[[Integers, Integers], Booleans], least: Integers, most: Integers) -> Integers:
    """Return the most hits of each rank that are below, of those from ``least``, which are, to ``most``."""
    low, beyond = least.copy(), most + 1
    while (at := np.flatnonzero(beyond - low > 1)).size:
        middle = (low[at] + beyond[at]) // 2
        fits = below(middle, at)
        low[at[fits]], beyond[at[~fits]] = middle[fits], middle[~fits]
    return low


def _most_by_value(
    excess: Callable[[Integers, Integers], Floats], least: Integers, most: Integers
) -> Integers:
    """Return the same by straight lines through the excess, which is positive where hits are below, and nearly straight."""
    every = np.arange(least.size)
    low, beyond = least.copy(), most + 1
    at_low, at_beyond = excess(low, every), np.full(least.size, -math.inf)
    # Those beyond the most are above; but the most itself is nearer, where it is above too.
    at_most = excess(most, every)
    fits = at_most > 0
    low[fits], at_low[fits] = most[fits], at_most[fits]
    beyond[~fits], at_beyond[~fits] = most[~fits], at_most[~fits]
    while (at := np.flatnonzero(beyond - low > 1)).size:
        share = at_low[at] / (at_low[at] - at_beyond[at])
        between = np.clip(
            low[at] + (share * (beyond[at] - low[at])).astype(np.int64), low[at] + 1, beyond[at] - 1
        )
        now = excess(between, at)
        fits = now > 0
        low[at[fits]], at_low[at[fits]] = between[fits], now[fits]
        beyond[at[~fits]], at_beyond[at[~fits]] = between[~fits], now[~fits]
    return low


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
    _p_values: dict[float, float] = field(default_factory=dict, repr=False)
    _counted: list[StayBelow] = field(default_factory=list, repr=False)

    @property
    def statistic(self) -> float:
        """See `Statistic.largest`."""
        return self._largest[0]

    @property
    def best(self) -> tuple[Tail, int]:
        """The tail and the place among its `dense_ranks` where the statistic is that large."""
        return self._largest[1:]

    @cached_property
    def _largest(self) -> tuple[float, Tail, int]:
        return self.law.largest(self.hits)

    @cached_property
    def _corners(self) -> _Corners:
        return self.law.corners(self.statistic)

    def p_value(self, epsilon: float) -> float:
        """Return the p-value of "epsilon at most this": it never falls as epsilon grows; 1 above 20, which is not refuted."""
        if self.statistic == -math.inf or epsilon > _MOST:
            return 1.0
        if epsilon not in self._p_values:
            self._p_values[epsilon] = self._chance_at_least(epsilon)
        return self._p_values[epsilon]

    def p_value_beside(self, epsilon: float) -> float:
        """Return that p-value as it stands beside the bound: up to alpha where the bound is larger, and only there."""
        first_kept = self.epsilon_bound + 3 * LEAST_BOUND  # whatever the rounding of the bound
        return self.p_value(epsilon if epsilon < self.epsilon_bound else max(epsilon, first_kept))

    def _chance_at_least(self, epsilon: float) -> float:
        if self._is_perfect:
            missed = int(isinstance(self.law.chosen, Census) and self.best[0] == Tail.UPPER)
            return chance_of_separation(epsilon, self.law, missed=missed)
        if self.drawn:
            return self._by_draws(epsilon)
        return min(1.0, max(0.0, 1.0 - self._paths(epsilon).chance(epsilon)) + _ROUNDING)

    def _paths(self, epsilon: float) -> StayBelow:
        """Return the paths counted for a range of epsilon: near the statistic, where the bound is looked for, a wide one."""
        for known in self._counted:
            if known.low <= epsilon <= known.high:
                return known
        law, (own, at) = self.law, self._corners
        most = np.full(law.nonmembers + 1, law.members)
        most[at] = own
        most = np.minimum.accumulate(most[::-1])[::-1]
        wide = _WIDE if abs(epsilon - self.statistic) <= _WIDE else 0.0
        low, high = max(0.0, epsilon - wide / 4), epsilon + wide
        self._counted.append(StayBelow(most, members=law.members, delta=law.delta, low=low, high=high))
        return self._counted[-1]

    @property
    def _is_perfect(self) -> bool:
        """Whether nothing can be larger, and all that is as large is separation: its chance is known at any size."""
        apart = self.hits.lower.others == self.hits.lower.hits[0]
        return bool(apart) and not isinstance(self.law.chosen, Subset)

    def _by_draws(self, epsilon: float) -> float:
        least, chances = self._from_draws
        result, level = float(chances[np.searchsorted(least, epsilon, side="right")]), _KEPT * self.law.alpha
        if result <= level:
            return result
        # Far above the statistic audits that are drawn from the law itself are more informative.
        as_large = int(np.searchsorted(self._from_all_alike, epsilon, side="right"))
        if as_large < _COMMON * self._from_all_alike.size:
            return result
        return max(level, float(upper_limit(as_large, self._from_all_alike.size, _MISLED)))

    @cached_property
    def _from_draws(self) -> tuple[Floats, Floats]:
        """The smallest epsilons of drawn audits, and upper limits of the p-values below, and from each of them on."""
        # Of a subset all are drawn alike: what was left out of it decides too.
        near = None if isinstance(self.law.chosen, Subset) else max(0.0, self.statistic)
        least, weights = least_epsilons(self._corners, self.law, near=near)
        return least, chances_up_to(weights)

    @cached_property
    def _from_all_alike(self) -> Floats:
        return least_epsilons(self._corners, self.law)[0]

    @cached_property
    def epsilon_bound(self) -> float:
        """The largest epsilon whose p-value is up to alpha, rounded down to 1e-4, and up to 20; 0 if none is."""
        if self.statistic == -math.inf:
            return 0.0
        if self.drawn and not self._is_perfect:
            least, chances = self._from_draws
            enough = min(int(np.searchsorted(chances, self.law.alpha, side="right")), least.size)
            return 0.0 if enough == 0 else _rounded_down(min(float(least[enough - 1]), _MOST))

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
        result = _MOST if excess(high) <= 0 else scipy.optimize.brentq(excess, low, high, xtol=LEAST_BOUND)
        # A root within the step may lie on either side of the level.
        below = _rounded_down(result)
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
        missed: For a census, the number of the largest members that may lie anywhere.

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
    beyond = (1 - np.clip(place, 0.0, 1.0)) ** n0
    return min(1.0, (1 + _BY_STEPS) * float(np.einsum("i,i->", weights, beyond)))


# --- The chance by audits that are drawn from the law ---
#
# The pairs of ranks do not depend on epsilon: so their order statistics are drawn once for all of it. On the scale of the
# members' own law, where those of T are uniform, the one lies below T of the other. So every drawn audit has a smallest
# epsilon at which it shows what was observed, and the p-value of an epsilon is the share of those up to it.
#
# Few audits of the law show so much where alpha is small. So most are drawn from laws under which the two order statistics of
# one pair of ranks meet, and are weighted by how much less often the law itself gives them (importance sampling): the error
# of a p-value is then about the same share of it at any level.
#
# Members drawn from a finite training set. Of the N-n1 that were left out each is as likely to lie in any of the n1+1 gaps
# between the drawn ones as if all were uniform: the i-th smallest drawn one is the (i + those before it)-th of all. Of a
# census none is left out. That no training record lies above the largest one says nothing of leakage: a set is finite.
# So the largest one may lie anywhere above the second largest where the slope e^epsilon, the other limit, allows it.
#
# The stream is that of the sizes, delta and alpha alone, so that nobody can choose a seed. The p-value is an upper limit at
# 99.9% of what more draws would give: about 3.1 standard errors above, 10% to 15% of it. So the level of this one stream is
# up to alpha with a probability of about 1 - _MISLED.

# At small levels a bound by drawn audits has less room above `Melded`, for the error of the draws.
_DRAWS, _MORE, _SMALL, _BATCH = 2_500, 10_000, 0.02, 250
_MISLED, _FEWEST, _KEPT, _COMMON, _LEVEL_DIGITS = 1e-3, 30, 2.0, 0.05, 12
_ERRORS = float(special.ndtri(1 - _MISLED))


@lru_cache(maxsize=64)
def _most_hits(law: Statistic, value: float) -> list[Integers]:
    """Return the most hits at each rank that keep it below this value, of each tail; many audits of one size use the same."""
    return [side.most_hits(value) for side in law.sides]


def largest_count(draws: int, alpha: float) -> int | None:
    """Return the number of drawn audits that may be as extreme for a p-value up to alpha; None if not even none would do.

    >>> largest_count(4_000, 0.05), largest_count(4_000, 1e-3)
    (158, None)
    """
    counts = np.arange(int(draws * alpha) + 2)
    allowed = np.flatnonzero(upper_limit(counts, draws, _MISLED) <= alpha)
    return int(allowed[-1]) if allowed.size else None


def chances_up_to(weights: Floats) -> Floats:
    """Return upper limits of the chance of the first k draws, k = 0, 1, ...: 3.1 standard errors above the sum of weights.

    And what none of the draws may have shown, as if they were so many of one weight. Of fewer than 30 draws: that of 30.
    """
    sums, squares = (np.append(0.0, np.cumsum(each)) for each in (weights, weights**2))
    alike = np.append(weights[0], squares[1:] / sums[1:])
    error = np.sqrt(np.maximum(squares - sums**2 / weights.size, 0.0))
    result = sums + _ERRORS * error - math.log(_MISLED) * alike
    result[:_FEWEST] = result[_FEWEST]
    return np.asarray(np.minimum(np.maximum.accumulate(result) / weights.size, 1.0))


def least_epsilons(
    corners: _Corners, law: Statistic, *, near: float | None = None, draws: int | None = None
) -> tuple[Floats, Floats]:
    """Return, for each of so many drawn audits, the smallest epsilon at which it shows so much, ascending; and its weight.

    Args:
        corners: See `Statistic.corners`.
        law: The sizes, delta and how the members were chosen.
        near: See `drawn_places`.
        draws: By default as many as a bound rests on.
    """
    draws = draws or (_MORE if law.alpha < _SMALL else _DRAWS)
    if not corners[0].size:
        return np.full(draws, math.inf), np.ones(draws)
    least, weights = [], []
    for y, x, last, weight in drawn_places(corners, law, draws=draws, near=near):
        slopes = np.maximum((x - law.delta) / y, (1 - law.delta - y) / (1 - last)).min(axis=0)
        least.append(np.log(np.maximum(slopes, 1.0)))
        weights.append(weight)
    result = np.concatenate(least)
    order = np.argsort(result)
    return result[order], np.concatenate(weights)[order]


def drawn_places(
    corners: _Corners, law: Statistic, *, draws: int, near: float | None = None
) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """Yield, audit by audit in batches, where the non-members and the members lie whose order decides, and its weight.

    As rates of their group up to there; shapes (corners, audits). The second rate of the members is that at which the
    largest of a finite set counts as missed.

    Args:
        corners: See `Statistic.corners`.
        law: The sizes, delta and how the members were chosen.
        draws: Number of draws.
        near: The epsilon at which audits that show so much are drawn more often; by default all weigh the same.
    """
    own, at = corners
    members, chosen = law.members, law.chosen
    of = chosen.of if isinstance(chosen, Subset) else members * isinstance(chosen, Census)
    words = np.array([law.delta, round(law.alpha, _LEVEL_DIGITS)]).view(np.uint32).tolist()
    rng = np.random.default_rng([members, law.nonmembers, of, *words])
    tilt = None if near is None else _Tilt(corners, law, near)
    for _ in range(0, draws if at.size else 0, _BATCH):
        y = order_statistics(at, law.nonmembers, _BATCH, rng)
        x = order_statistics(own, members, _BATCH, rng)
        weight = np.ones(_BATCH)
        if tilt is not None:
            x, y, weight = tilt.moved(x, y, rng)
        if not of:
            yield y, x, x, weight
            continue
        before = (own + 1)[:, None] + _left_out_before(x, of - members, rng)
        yield y, before / of, np.minimum(before, of - 1) / of, weight


class _Tilt:
    """Draws audits with extreme results: at one corner at a time the two order statistics meet.

    Each has a beta law about another mean there, and all others follow from it. The weight of a draw is its density over
    that of the mixture of the corners.
    """

    _POINTS = np.linspace(0.0, 1.0, 33)[:, None]

    def __init__(self, corners: _Corners, law: Statistic, epsilon: float) -> None:
        """Find where the members' and the non-members' order statistics are likeliest to meet by T(epsilon)."""
        delta, up, down = law.delta, math.exp(epsilon), math.exp(-epsilon)
        sizes = np.array([[law.members + 1], [law.nonmembers + 1]])
        first = np.stack(corners) + 1.0
        u, v = first / sizes
        meets = np.maximum(np.maximum((u - delta) * down, 1 - delta - (1 - u) * up), v)
        y = v + self._POINTS * (meets - v)
        x = np.where(meets > v, np.minimum(delta + up * y, 1 - (1 - delta - y) * down), u)
        # Of a census the members' places are known.
        cost = sum(
            n * (special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q))
            for n, p, q in zip(sizes, (u, v), (x, y), strict=True)
        )
        best = np.full(u.size, -1) if isinstance(law.chosen, Census) else np.argmin(cost, axis=0)
        mean = np.stack([each[best, np.arange(u.size)] for each in (x, y)])
        self._law = sizes * mean, sizes * (1 - mean)
        self._more = self._law[0] - first, self._law[1] - (sizes - first)
        self._scale = special.betaln(first, sizes - first) - special.betaln(*self._law)
        logs = self._log_ratios(mean[:, :, None])[:, 0]
        self._shares = special.softmax(-logs)

    def _log_ratios(self, places: Floats) -> Floats:
        """Return the log of the density at each corner over that without it; shape (corners, audits)."""
        result = self._scale[:, :, None] + self._more[0][:, :, None] * np.log(places)
        return np.asarray((result + self._more[1][:, :, None] * np.log1p(-places)).sum(axis=0))

    def moved(self, x: Floats, y: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Return the places so that they meet at a corner that is drawn, and the weights."""
        corner, audit = rng.choice(self._shares.size, x.shape[1], p=self._shares), np.arange(x.shape[1])
        beyond = np.arange(self._shares.size)[:, None] > corner
        result = []
        for z, a, b in zip((x, y), *self._law, strict=True):
            now, before = rng.beta(a[corner], b[corner]), z[corner, audit]
            result.append(np.where(beyond, 1 - (1 - z) * ((1 - now) / (1 - before)), z * (now / before)))
        places = np.clip(np.stack(result), _LEAST_P, 1 - np.finfo(float).epsneg)
        mixed = special.logsumexp(self._log_ratios(places), axis=0, b=self._shares[:, None])
        return *result, np.exp(-mixed)


def _left_out_before(x: Floats, left: int, rng: np.random.Generator) -> Integers:
    """Return the number of left-out uniforms below each of the ascending x; same shape as x."""
    result, before, place = np.zeros(x.shape, dtype=np.int64), np.zeros(x.shape[1], dtype=np.int64), 0.0
    for row, now in enumerate(x if left else ()):
        before = before + rng.binomial(left - before, np.clip((now - place) / (1 - place), 0.0, 1.0))
        result[row], place = before, now
    return result
