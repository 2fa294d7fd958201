"""The joint test: the scores of two groups at every threshold at once, against a whole trade-off curve [own].

What is tested is that "member" is said of at most T(x) of the members wherever it is said of x of the non-members, for
whatever set of scores it is said of. T is a claimed curve that covers both orders of two neighbours.

The statistic. At the (k+1)-th smallest of the n0 non-member scores lie h members strictly below; under the law below that
many or more do with probability

    p_k(h) = E P[Bin(n1, T(Y)) >= h],   Y ~ Beta(k+1, n0-k),

and in the same way for the non-members strictly above the (k+1)-th largest of the members. The smallest over the ranks of both
tails is the statistic. Its level is not that of any one rank: it is calibrated, both tails together, on the law below.
The expectation is bounded from above, panel by panel of the law of Y: what grows with Y is in each at most what it is at
the panel's end. With ends where the chance of a larger Y falls by a factor of 1.54 from panel to panel, the bound is at
most 1.54 times the expectation, beside 1e-15: that of the growing f is the integral of P[Y > y] over df(y).

Why that law is the worst one. Let F1 and F0 be the two groups' distribution functions, so that F1 <= T(F0), and draw
Y_j = F0^-1(V_j), X_i = F1^-1(U_i) from uniform V_j and U_i, beside them X'_i = T^-1(U_i). Where X_i < Y_j, U_i <= F1(X_i)
<= T(F0(X_i)) and so X'_i <= F0(X_i) < V_j. So every pair with X_i < Y_j has X'_i < V_j too, and any statistic that grows
with the matrix of these pairs is stochastically largest where non-members are uniform and members follow T: whatever the
scores' laws, whatever their ties. All that is used here are strict comparisons, each of which grows with that matrix.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import special

from auditor.core.facts import Tail
from auditor.core.values import Floats, Integers, Losses
from auditor.curves.tradeoff import TradeoffCurve
from auditor.estimators.limits import chance_above

_Hits = tuple[Integers, Integers]

_GROWTH = 1.1  # of neighbouring ranks: closer ones gain nothing on scores that are all different
_PANELS, _TAIL = 80, 1e-15  # of a threshold's law: panels, and what lies beyond the last of them
_PANEL = -math.log(_TAIL) / _PANELS  # so much may the log of a p-value be too large
# Chances of a larger rate at the ends of the panels, the last of which ends at 1, and of a rate in each panel.
_BEYOND = np.append(np.exp(-_PANEL * np.arange(_PANELS + 1)), 0.0)
_WEIGHTS = -np.diff(_BEYOND)
_EVERY_COUNT = 4096  # members up to which p is computed for every h
_SOME_COUNTS = 256  # for how many h beyond
_FAR = 10.0  # standard deviations beyond a rate that a threshold may have
_DRAWS = (4_000, 20_000, 100_000)  # more of them only where the p-value is near the level
_ALIKE = 1e-9  # of two logs: the same counts, whatever the rounding
_CLEAR = 5.0  # standard errors from the level


@dataclass(frozen=True, eq=False)
class JointTest:
    """The test for two group sizes and one curve.

    Attributes:
        members: n1, 1 or more.
        nonmembers: n0, 1 or more.
        curve: T, from a claim; concave, and its own reflection in the line TPR = 1 - FPR, as the curves of
            `auditor.theory.accountant.claimed_curve` are.

    >>> test = JointTest(100, 100, TradeoffCurve.from_epsilon_delta(1.0, delta=1e-5))
    >>> apart = Losses(member=np.arange(100), nonmember=np.arange(100) + 100)
    >>> test.p_value(apart, alpha=0.05) < 1e-9
    True
    """

    members: int
    nonmembers: int
    curve: TradeoffCurve
    _kept: list[Floats] = field(default_factory=list, repr=False)

    @cached_property
    def _tails(self) -> tuple["_Tail", "_Tail"]:
        """Ranks of the non-members with hits among the members, and the other way round: by symmetry under the same T."""
        lower = _Tail(ranks_below_half(self.nonmembers), self.nonmembers, self.members, self._allowed)
        if self.members == self.nonmembers:
            return lower, lower
        return lower, _Tail(ranks_below_half(self.members), self.members, self.nonmembers, self._allowed)

    def _allowed(self, rate: Floats) -> Floats:
        return np.asarray(np.interp(rate, self.curve.fpr, self.curve.tpr))

    def p_value(self, losses: Losses, *, alpha: float) -> float:
        """Return the p-value of the curve, exact enough to be set beside this level; valid whatever the scores' laws.

        It comes from simulated audits, where it is not below what so many can show: then it is the smallest p-value of one
        rank times the number of ranks.

        Args:
            losses: As many of each group as the test is for; smaller means more like a member.
            alpha: In (0, 1).
        """
        return self.p_value_of(self.observed(losses), alpha=alpha)

    def p_value_of(self, hits: _Hits, *, alpha: float, steps: int = len(_DRAWS)) -> float:
        """Return the same of hits at every rank, those of `observed` or of a `perfect` attack."""
        least = min(float(tail.log_p(counts).min()) for tail, counts in zip(self._tails, hits, strict=True))
        return self._calibrated(least, math.exp(self.about(hits)), alpha, steps)

    @cached_property
    def perfect(self) -> _Hits:
        """The hits of scores that separate all members from all non-members: nothing has a smaller p-value."""
        lower, upper = (np.full((tail.ranks.size, 1), tail.others) for tail in self._tails)
        return lower, upper

    @property
    def number_of_ranks(self) -> int:
        """Number of ranks of both tails."""
        return sum(tail.ranks.size for tail in self._tails)

    def about(self, hits: _Hits) -> float:
        """Return the statistic, the log of the smallest p-value of one rank, within rounding and without a table."""
        return float(min(logs.min() for logs in self._logs(hits)))

    def point(self, hits: _Hits) -> dict[str, Any]:
        """Return where the claim was contradicted most.

        That is at how many of one group (``alarms`` of ``alarms_of``) how many of the other were beyond the threshold
        (``hits`` of ``hits_of``), in which ``tail`` ("lower": members were called members; "upper": non-members were called
        non-members), at an expected ``rate`` of alarms, where the claim allows a rate of hits of ``allowed``.
        """
        logs = self._logs(hits)
        side = int(logs[1].min() < logs[0].min())
        at, tail = int(np.argmin(logs[side])), self._tails[side]
        rank = int(tail.ranks[at])
        rate = (rank + 1) / (tail.ranked + 1)
        return {
            "tail": [*Tail][side],
            "alarms": rank,
            "alarms_of": tail.ranked,
            "hits": int(hits[side][at, 0]),
            "hits_of": tail.others,
            "rate": rate,
            "allowed": float(self._allowed(np.array(rate))),
        }

    def _logs(self, hits: _Hits) -> list[Floats]:
        return [tail.log_p_of(counts[:, 0]) for tail, counts in zip(self._tails, hits, strict=True)]

    def _calibrated(self, least: float, at_most: float, alpha: float, steps: int) -> float:
        """Return the chance of so small a statistic under the worst law, by (1 + as small ones)/(1 + draws)."""
        smaller = drawn = 0
        for enough, statistics in zip(_DRAWS[:steps], self._simulated(), strict=False):
            smaller += int(np.count_nonzero(statistics <= least + _ALIKE))
            drawn = enough
            result = (1 + smaller) / (1 + drawn)
            if abs(result - alpha) > _CLEAR * math.sqrt(alpha * (1 - alpha) / drawn):
                break
        return min(result, self.number_of_ranks * at_most) if smaller == 0 else result

    def _simulated(self) -> Iterator[Floats]:
        """Statistics of simulated audits, batch by batch, each drawn once; the stream is that of the question alone."""
        for batch, size in enumerate(np.diff(_DRAWS, prepend=0).tolist()):
            if batch == len(self._kept):
                rng = np.random.default_rng([batch, *self._seed])
                draws = [self.least(self.drawn(_DRAWS[0], rng)) for _ in range(size // _DRAWS[0])]
                self._kept.append(np.concatenate(draws))
            yield self._kept[batch]

    @cached_property
    def _seed(self) -> list[int]:
        words = np.concatenate([self.curve.fpr, self.curve.tpr]).view(np.uint32).tolist()
        seed = np.random.SeedSequence([self.members, self.nonmembers, *words])
        return [*map(int, seed.generate_state(4))]

    def least(self, hits: _Hits) -> Floats:
        """Return the statistic of every column of hits."""
        logs = [tail.log_p(counts) for tail, counts in zip(self._tails, hits, strict=True)]
        return np.asarray(np.minimum(*(rows.min(axis=0) for rows in logs)))

    # --- The hits at every rank of both tails: observed, and drawn from the worst law ---
    #
    # Upper ranks that reach down among the lower ones are counted on the grid of the lower ranks: of an (k+1)-th largest
    # member below the (s+1)-th smallest non-member it is counted that n0 - s non-members are above it, s being the first
    # lower rank with n1 - k hits or more. That grows with the hits, and needs no draw of its own.

    def observed(self, losses: Losses) -> _Hits:
        """Return the hits at every rank of both tails; shapes (r, 1)."""
        member, nonmember = losses.sorted_member, losses.sorted_nonmember
        lower, upper = self._tails
        below = np.searchsorted(member, nonmember[lower.ranks], side="left")[:, None]
        last = member[member.size - 1 - upper.ranks]
        above = nonmember.size - np.searchsorted(nonmember, last, side="right")[:, None]
        return below, self._on_the_grid(below, above)

    def _on_the_grid(self, below: Integers, above: Integers) -> Integers:
        lower, upper = self._tails
        result = above.copy()
        for row, rank in enumerate(upper.ranks.tolist()):
            reached = below[-1] >= self.members - rank
            if reached.any():
                first = np.count_nonzero(below[:, reached] < self.members - rank, axis=0)
                result[row, reached] = self.nonmembers - lower.ranks[first]
        return result

    def drawn(self, draws: int, rng: np.random.Generator) -> _Hits:
        """Return the hits of so many audits where members follow the curve, drawn; shapes (r, draws)."""
        lower, upper = self._tails
        below = np.empty((lower.ranks.size, draws), dtype=np.int64)
        hits, place, called = np.zeros(draws, dtype=np.int64), np.zeros(draws), np.zeros(draws)
        for row, place in enumerate(order_statistics(lower.ranks, self.nonmembers, draws, rng)):
            now = self._allowed(place)
            hits, called = hits + _further(hits, self.members, now - called, 1 - called, rng), now
            below[row] = hits
        # What is left lies above the last lower rank, and in the tail from above by the same T.
        members, nonmembers = self.members - hits, self.nonmembers - 1 - int(lower.ranks[-1])
        span, room = 1 - called, 1 - place
        above = np.zeros((upper.ranks.size, draws), dtype=np.int64)
        hits, reach, called, before = np.zeros(draws, dtype=np.int64), np.zeros(draws), np.zeros(draws), -1
        for row, rank in enumerate(upper.ranks.tolist()):
            there = members > rank
            # Of those beyond the last one, uniform on what is left of the span, the (rank - before)-th.
            step = rng.beta(rank - before, np.where(there, members - rank, 1))
            reach = reach + (span - reach) * step
            now = np.clip(self._allowed(reach), called, np.maximum(called, room))
            more = _further(hits, nonmembers, now - called, room - called, rng)
            hits, called, before = hits + more, now, rank
            above[row] = hits
        return below, self._on_the_grid(below, above)


def _further(
    hits: Integers, size: int | Integers, step: Floats, left: Floats, rng: np.random.Generator
) -> Integers:
    """Return the number of further hits when a step of the remaining mass is taken."""
    share = np.divide(step, left, out=np.ones_like(step), where=left > 0)
    return np.asarray(rng.binomial(size - hits, np.clip(share, 0.0, 1.0)))


def order_statistics(ranks: Integers, size: int, draws: int, rng: np.random.Generator) -> Floats:
    """Return the (k+1)-th smallest of so many uniforms at each ascending rank k, by sums of exponential spacings.

    Shape (ranks, draws).
    """
    spacings = np.empty((ranks.size, draws))
    for row, step in zip(spacings, np.diff(ranks, prepend=-1).tolist(), strict=True):
        rng.standard_gamma(step, out=row)  # half the time of all at once
    sums = np.cumsum(spacings, axis=0, out=spacings)
    sums /= sums[-1] + rng.standard_gamma(size - ranks[-1], draws)
    return np.asarray(sums)


def ranks_below_half(size: int, *, growth: float = _GROWTH) -> Integers:
    """Return ranks below half of the size, fixed before any data are seen: neighbours grow by a tenth, or by that factor.

    >>> ranks_below_half(30).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    """
    result = [0]
    while (rank := max(result[-1] + 1, round(growth * result[-1]))) < size / 2:
        result.append(rank)
    return np.array(result)


@dataclass(frozen=True, eq=False)
class _Tail:
    """The ranks of one group, and the p-value of every number of the other group's hits at each of them.

    Attributes:
        ranks: Shape (r,), ascending from 0.
        ranked: Records in the group whose order statistics are the thresholds.
        others: Records in the other group.
        allowed: T.
    """

    ranks: Integers
    ranked: int
    others: int
    allowed: Callable[[Floats], Floats]

    @property
    def exact(self) -> bool:
        """Whether the p-value is computed for every number of hits."""
        return self.others <= _EVERY_COUNT

    def log_p(self, hits: Integers) -> Floats:
        """Return the log of the p-value at each rank; shape (r, draws), as that of the hits."""
        counts, table = self._table
        if self.exact:
            return np.asarray(np.take_along_axis(table, hits, axis=1))
        # Straight lines between some counts still grow with the hits, which is all that the level needs.
        return np.stack([np.interp(*rows) for rows in zip(hits, counts, table, strict=True)])

    def log_p_of(self, hits: Integers) -> Floats:
        """Return about the same of one count at each rank, shape (r,), without a table of all counts."""
        tails = chance_above(hits[:, None] - 1.0, self.others, self.allowed(self._rates))
        return np.asarray(np.minimum(np.log(tails @ _WEIGHTS), 0.0))

    @cached_property
    def _rates(self) -> Floats:
        """Rates of alarms at the ends of the panels of every rank's threshold, shape (r, panels)."""
        a, b = (self.ranks + 1)[:, None], (self.ranked - self.ranks)[:, None]
        return np.asarray(special.betainccinv(a, b, _BEYOND[1:]))

    @cached_property
    def _table(self) -> tuple[Integers, Floats]:
        """Numbers of hits at each rank, and the log of the p-value of each; shapes (r, c)."""
        counts = self._some_counts
        if self.exact:
            counts = np.broadcast_to(np.arange(self.others + 1), (self.ranks.size, self.others + 1))
        rows = [
            _WEIGHTS @ _tails_of(row, self.others, self.allowed(rates))
            for row, rates in zip(counts, self._rates, strict=True)
        ]
        return counts, np.minimum(np.log(np.stack(rows)), 0.0)

    @property
    def _some_counts(self) -> Integers:
        """At each rank the counts that occur, close enough that straight lines between them lose no power, and the last."""
        a, b = self.ranks + 1, self.ranked - self.ranks
        ends = self.others * self.allowed(
            np.stack([special.betaincinv(a, b, _TAIL), special.betainccinv(a, b, _TAIL)])
        )
        spread = np.sqrt(ends * (1 - ends / self.others)) + 1
        low, high = (ends + _FAR * np.array([[-1], [1]]) * spread).clip(0, self.others)
        counts = np.linspace(low, high, _SOME_COUNTS, axis=1).round().astype(np.int64)
        return np.column_stack([counts, np.full(self.ranks.size, self.others)])


def _tails_of(counts: Integers, size: int, rates: Floats) -> Floats:
    """Return P[Bin(size, rate) >= h] for every rate and h."""
    if counts.size <= size:
        return chance_above(counts - 1.0, size, rates[:, None])
    sure = rates[:, None] >= 1
    rates = np.clip(rates, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)[:, None]
    choices = special.gammaln(size + 1) - special.gammaln(counts + 1) - special.gammaln(size - counts + 1)
    masses = np.exp(choices + counts * np.log(rates) + (size - counts) * np.log1p(-rates))
    return np.where(sure, 1.0, np.minimum(np.cumsum(masses[:, ::-1], axis=1)[:, ::-1], 1.0))


def of_curve(members: int, nonmembers: int, curve: TradeoffCurve) -> JointTest:
    """Return the test of a curve for two group sizes; the same ones are calibrated once."""
    return _of_corners(members, nonmembers, curve.fpr.tobytes(), curve.tpr.tobytes())


@lru_cache(maxsize=8)
def _of_corners(members: int, nonmembers: int, fpr: bytes, tpr: bytes) -> JointTest:
    corners = [np.frombuffer(column) for column in (fpr, tpr)]
    return JointTest(members, nonmembers, TradeoffCurve(*corners))
