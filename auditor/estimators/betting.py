"""Evidence against a claim that grows with the runs and holds whenever it is looked at: bets on pairs of runs [own].

A claim's curve lies below each of its lines: for whatever set of scores, P_with(S) <= e^s P_without(S) + delta(s), and the
same with the two worlds exchanged, where the curve covers both orders. One pair of runs, one with the canary and one
without, pays at a threshold that was fixed before it

    Z = 1{with is at or below it} - e^s 1{without is} - delta(s),

or, of the mirrored bet, 1{without is above it} - e^s 1{with is} - delta(s): under the claim nothing on average, or less.
So, for the bets i on all lines and their mirrors, 1 + sum_i lambda_i Z_i has a mean of at most 1 for all lambda_i of 0 or more
that earlier pairs fixed. It is above 0 if sum_i lambda_i (e^s_i + delta_i) < 1, since Z_i is at least -(e^s_i + delta_i). The
product over the pairs is then a nonnegative supermartingale that begins at 1: by Ville's inequality it ever reaches 1/alpha
with probability at most alpha, however often it is looked at.

Thresholds and shares may follow *earlier* pairs, and past winnings are never recomputed. The shares go from the last ones
towards those that would have grown fastest on the earlier pairs, with the current thresholds. One bet on all lines together
grows faster than each apart, since what they lose by chance partly cancels. All stay for a block of pairs, about 10% of
those before it: the evidence then holds after any pair, in a block too, since what is bet on each was fixed before the
first of the block. The pairs come in the order of their numbers: in the order of completion, runs that end
sooner for some scores would choose what is seen.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.core.values import Floats
from auditor.curves.tradeoff import TradeoffCurve

_DECAY = 0.5  # of the weights: a line that is steeper by 1 has e^-1/2 of the weight
_CORNERS = 8  # of a claim of a few points: their own lines are bet on too
_MOST = 0.9  # of the wealth, which one pair can lose
_STEPS, _AGAIN = 10, 0.02  # towards the best shares, and the share of the first ones that a move brings back
_EVERY, _GROWTH = 16, 1.1  # pairs up to which every one ends a block, and the growth after
_TOGETHER = 256  # pairs that are settled at once, for the memory
_RANKS = (
    np.unique(np.geomspace(1, 1e9, 2000).astype(np.int64)) - 1
)  # that a threshold may have from either end


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines above a curve, P_with(S) <= e^slope P_without(S) + slack, and the same with the worlds exchanged.

    Attributes:
        slopes: Shape (*portfolios, k), 0 or more; one portfolio bets on k lines together.
        slack: Shape (*portfolios, k), the delta of each.
    """

    slopes: Floats
    slack: Floats

    @classmethod
    def of_curve(cls, curve: TradeoffCurve) -> "Lines":
        """Return the lines that are bet on, fixed by the claim: flat ones decide soon, steep ones at few alarms."""
        spread = np.concatenate(
            [np.arange(0, 1, 0.25), np.arange(1, 3, 0.5), [3.0, 4.0, 5.0, 6.0, 8.0, 10.0]]
        )
        slopes = np.unique(np.concatenate([spread, _of_few_corners(curve)]))
        slack = [float(np.max(curve.tpr - slope * curve.fpr)) for slope in np.exp(slopes)]
        return cls(slopes, np.maximum(slack, 0.0))

    @property
    def weights(self) -> Floats:
        """First weights of the lines of a portfolio."""
        weights = np.exp(-_DECAY * self.slopes)
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _of_few_corners(curve: TradeoffCurve) -> Floats:
    """Return the slopes of a claim of few straight pieces, on the steep side, as their logs."""
    rise, run = np.diff(curve.tpr), np.diff(curve.fpr)
    steep = (run > 0) & (rise > run)
    return np.log(rise[steep] / run[steep]) if np.count_nonzero(steep) <= _CORNERS else np.empty(0)


class Bets:
    """Wealth of the bets against some lines; mutable, and updated with pairs of runs in the order of their numbers.

    Attributes:
        pairs: Number of pairs seen.
        log_evidence: The log of the e-value of each portfolio, shape (*portfolios,).
        most: The largest that it ever was; 1/e^most is a p-value whenever it is looked at.

    >>> bets = Bets(Lines.of_curve(TradeoffCurve.from_epsilon_delta(1.0, delta=1e-5)))
    >>> grown = bets.add(np.zeros(40), np.ones(40))
    >>> grown.shape, bool(grown[-1] == bets.log_evidence > math.log(20))
    ((40,), True)
    """

    def __init__(self, lines: Lines) -> None:
        """Bet nothing on the first pair: no threshold could have been fixed before it."""
        self._cost, slack = np.exp(lines.slopes), lines.slack
        portfolios = slack.shape[:-1]
        self.pairs, self.log_evidence, self.most = 0, np.zeros(portfolios)[()], np.zeros(portfolios)[()]
        # The scores of both worlds, in order up to the last move, and those since.
        self._ordered, self._since = np.empty((2, 0)), list[Floats]()
        # Of each line members low, then of each the mirror: non-members high. What a call in either world pays.
        self._mirrored = np.repeat([False, True], slack.shape[-1])
        hit, alarm = np.ones_like(slack), -self._cost
        largest = _MOST / np.tile(self._cost + slack, 2)
        self._pay = largest * np.array(
            [np.concatenate(both, axis=-1) for both in ((hit, alarm), (alarm, hit))]
        )
        self._slack = largest * np.tile(slack, 2)
        self._prior = np.tile(lines.weights, 2) / 3
        self._shares, self._bet = self._prior, 0 * self._prior
        self._thresholds, self._moves = self._bet, 1

    def add(self, with_canary: npt.ArrayLike, without: npt.ArrayLike) -> Floats:
        """Settle the bets on pairs, a block at a time, and only then look at the block.

        Returns:
            The log of the evidence after each pair, shape (pairs, *portfolios).
        """
        scores, grown = np.array([with_canary, without], dtype=np.float64).reshape(2, -1), []
        while scores.size:
            if self.pairs == self._moves:
                self._move()
            block, scores = np.split(scores, [min(self._moves - self.pairs, _TOGETHER)], axis=1)
            grown.append(self._settle(block))
        return np.concatenate(grown)

    def _settle(self, block: Floats) -> Floats:
        called = self._called(block.reshape(*block.shape, *[1] * self._bet.ndim))
        paid = np.sum(called * (self._pay * self._bet)[:, None], axis=-1)
        growth = np.log1p(paid[0] + paid[1] - np.sum(self._slack * self._bet, axis=-1))
        growth[0] += self.log_evidence
        grown = np.cumsum(growth, axis=0)
        self.log_evidence, self.pairs = grown[-1], self.pairs + len(grown)
        self.most = np.maximum(self.most, grown.max(axis=0))
        self._since.append(block)
        return np.asarray(grown)

    def _called(self, scores: Floats) -> npt.NDArray[np.bool_]:
        """Return whether each bet calls each score: at or below its threshold, or above it if it is a mirror."""
        return np.asarray((scores <= self._thresholds) ^ self._mirrored)

    def _move(self) -> None:
        """Fix thresholds and shares of the next block by the pairs before it."""
        # A stable sort merges what is in order already.
        self._ordered = np.sort(np.concatenate([self._ordered, *self._since], axis=1), axis=1, kind="stable")
        self._since, self._thresholds = [], self._best_thresholds()
        self._moves = self.pairs + 1 if self.pairs < _EVERY else math.ceil(self.pairs * _GROWTH)
        self._shares = self._bet = self._best_shares()

    def _below(self, thresholds: Floats) -> Floats:
        """Return the numbers of ordered scores at or below each threshold, with the canary and without."""
        below = [np.searchsorted(group, thresholds, side="right") for group in self._ordered]
        return np.array(below, dtype=np.float64)

    def _best_thresholds(self) -> Floats:
        """Return the threshold at which each bet would have paid most on the earlier pairs: between two neighbouring scores.

        Of many scores only some are tried: the smallest, the largest, and ranks about 1% apart.
        """
        scores = np.sort(self._ordered, axis=None, kind="stable")
        scores = scores[np.append(scores[1:] > scores[:-1], True)]
        ranks = _RANKS[: np.searchsorted(_RANKS, scores.size)]
        left = np.concatenate([ranks, scores.size - 1 - ranks])
        between = scores[left] / 2 + scores[np.minimum(left + 1, scores.size - 1)] / 2
        with_canary, without = self._below(between)
        low = np.argmax(with_canary - self._cost[..., None] * without, axis=-1)
        high = np.argmax(self._cost[..., None] * with_canary - without, axis=-1)
        return np.asarray(between[np.concatenate([low, high], axis=-1)])

    def _best_shares(self) -> Floats:
        """Return shares that grow fast at the rates of the earlier pairs, with half a run more at either end of the scores.

        Of each cell between two thresholds we take the share of either world, and multiply the shares by the mean of what
        they pay over what all pay together (Cover 1984), a few times from the last shares.
        """
        cuts = np.sort(self._thresholds, axis=-1)
        chances = np.diff((self._below(cuts) + 0.5) / (self.pairs + 1), prepend=0, append=1)
        last = np.full((*cuts.shape[:-1], 1), np.inf)
        cells = np.concatenate([cuts, last], axis=-1)[..., None]
        called = (cells <= self._thresholds[..., None, :]) ^ self._mirrored
        pays = called * self._pay[..., None, :] - self._slack[..., None, :] / 2
        both, shares = (
            chances[0][..., None] * chances[1][..., None, :],
            self._shares + _AGAIN * (self._prior - self._shares),
        )
        for _ in range(_STEPS):
            paid = 0.5 + np.einsum("w...cb,...b->w...c", pays, shares)
            seen = both / (paid[0][..., None] + paid[1][..., None, :])
            ends = np.array([seen.sum(axis=-1), seen.sum(axis=-2)])
            shares = shares * (
                ends[0].sum(axis=-1, keepdims=True) + np.einsum("w...c,w...cb->...b", ends, pays)
            )
        return shares


# --- A bound on epsilon that holds at any time: the last epsilon of a fixed grid before the first that is not refuted ---

_STEP, _LARGEST = 1 / 16, 12.0


def grid_lines(delta: float) -> Lines:
    """Return the line of each (epsilon, delta) of the grid; a portfolio of its own is the evidence against each."""
    slopes = np.arange(0.0, _LARGEST + _STEP / 2, _STEP)[:, None]
    return Lines(slopes, np.full(slopes.shape, delta))


def epsilon_bound(most: Floats, *, alpha: float) -> float:
    """Return the largest epsilon before which the bets on `grid_lines` refuted all, 0 if none.

    Args:
        most: Shape (k,), the largest log that the evidence against each line ever had, ``Bets.most``.
        alpha: In (0, 1).
    """
    standing = np.flatnonzero(most < -math.log(alpha))
    last = int(standing[0]) - 1 if standing.size else most.size - 1
    return max(0, last) * _STEP


# --- Results of a perfect attack ---


def epsilon_ceiling(pairs: int, *, delta: float, alpha: float) -> float:
    """Return the bound for pairs of a perfect attack."""
    bets = Bets(grid_lines(delta))
    bets.add(np.zeros(pairs), np.ones(pairs))
    return epsilon_bound(bets.log_evidence, alpha=alpha)


_MOST_PAIRS, _AT_ONCE = 10_000, 100


def pairs_needed(curve: TradeoffCurve, *, alpha: float) -> int | None:
    """Return after how many pairs a perfect attack refutes the curve; None if ten thousand do not."""
    bets, enough = Bets(Lines.of_curve(curve)), -math.log(alpha)
    while bets.most < enough and bets.pairs < _MOST_PAIRS:
        grown = bets.add(np.zeros(_AT_ONCE), np.ones(_AT_ONCE))
    return bets.pairs - _AT_ONCE + int(np.argmax(grown >= enough)) + 1 if bets.most >= enough else None
