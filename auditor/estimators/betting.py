"""Evidence against a claim that grows with the runs and holds whenever it is looked at: bets on pairs of runs [own].

A claim's curve lies below each of its lines: for whatever set of scores, P_with(S) <= e^s P_without(S) + delta(s), and the
same with the two worlds exchanged, where the curve covers both orders. One pair of runs, one with the canary and one
without, pays at a threshold that was fixed before it

    Z = 1{with is at or below it} - e^s 1{without is} - delta(s),

or, of the mirrored bet, 1{without is above it} - e^s 1{with is} - delta(s): under the claim nothing on average, or less.
So 1 + lambda Z has a mean of at most 1 for every stake lambda in [0, 1/(e^s + delta)) that earlier pairs fixed, and so has
what is left of each bet after any number of pairs, and their average by weights that were fixed before the first. By
Ville's inequality that average ever reaches 1/alpha with probability at most alpha, however often it is looked at.

Thresholds and stakes may follow *earlier* pairs, and past winnings are never recomputed. The pairs come in the order of
their numbers: in the order of completion, runs that end sooner for some scores would choose what is seen.
"""

import bisect
import math
from dataclasses import dataclass

import numpy as np

from auditor.core.values import Floats
from auditor.curves.tradeoff import TradeoffCurve

_DECAY = 0.5  # of the weights: a line that is steeper by 1 has e^-1/2 of the weight
_CORNERS = 8  # of a claim of a few points: their own lines are bet on too
_STAKES = np.linspace(0.0, 0.9, 19)  # shares of the stake that can lose everything
_EVERY, _GROWTH = 30, 1.03  # pairs up to which thresholds move with every one, and how seldom after


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines above a curve, P_with(S) <= e^slope P_without(S) + slack, and the same with the worlds exchanged.

    Attributes:
        slopes: Shape (k,), 0 or more.
        slack: Shape (k,), the delta of each.
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
        """Weights of the bets, fixed before the first pair."""
        weights = np.exp(-_DECAY * self.slopes)
        return np.asarray(weights / weights.sum())


def _of_few_corners(curve: TradeoffCurve) -> Floats:
    """Return the slopes of a claim of few straight pieces, on the steep side, as their logs."""
    rise, run = np.diff(curve.tpr), np.diff(curve.fpr)
    steep = (run > 0) & (rise > run)
    return np.log(rise[steep] / run[steep]) if np.count_nonzero(steep) <= _CORNERS else np.empty(0)


class Bets:
    """Wealth of the bets against some lines; mutable, and updated with pairs of runs in the order of their numbers.

    >>> bets = Bets(Lines.of_curve(TradeoffCurve.from_epsilon_delta(1.0, delta=1e-5)))
    >>> for pair in range(40):
    ...     bets.add(0.0, 1.0)
    >>> bets.log_evidence > math.log(20)
    True
    """

    def __init__(self, lines: Lines) -> None:
        """Put equal stakes on each line and its mirror."""
        # Members low, and the mirror: non-members high.
        self._lines, self._cost = lines, np.tile(np.exp(lines.slopes), 2)
        self._slack = np.tile(lines.slack, 2)
        self._log_won = np.zeros(self._cost.size)
        self._with: list[float] = []
        self._without: list[float] = []
        # Where the bets stand, until how many pairs, and how they did on all earlier pairs.
        self._thresholds, self._moves = np.empty(0), 1
        self._counts = np.zeros((2, self._cost.size))
        self._most = 0.0

    @property
    def pairs(self) -> int:
        """Number of pairs seen."""
        return len(self._with)

    @property
    def log_of_each(self) -> Floats:
        """The log of the e-value against each line alone, shape (k,)."""
        return np.asarray(np.logaddexp(*np.split(self._log_won, 2)) - math.log(2))

    @property
    def log_evidence(self) -> float:
        """The log of the e-value against all of the lines at once."""
        return float(np.logaddexp.reduce(np.log(self._lines.weights) + self.log_of_each))

    @property
    def most(self) -> float:
        """The largest log that the evidence ever had; 1/e^most is a p-value whenever it is looked at."""
        return self._most

    def add(self, with_canary: float, without: float) -> None:
        """Settle the bets on one pair, and only then look at it."""
        if self.pairs:
            self._settle(with_canary, without)
            self._most = max(self._most, self.log_evidence)
        bisect.insort(self._with, with_canary)
        bisect.insort(self._without, without)

    def _settle(self, with_canary: float, without: float) -> None:
        if self.pairs >= self._moves:
            self._thresholds = self._best_thresholds()
            self._moves = self.pairs + 1 if self.pairs < _EVERY else math.ceil(self.pairs * _GROWTH)
            self._counts = self._called(np.array(self._with), np.array(self._without))
        hit, alarm = called = self._called(np.array([with_canary]), np.array([without]))
        payoff = hit - self._cost * alarm - self._slack
        self._log_won = self._log_won + np.log1p(self._stakes() * payoff)
        self._counts = self._counts + called

    def _called(self, with_canary: Floats, without: Floats) -> Floats:
        """Return the hits and the alarms that each bet counts among ordered scores, at its threshold."""
        below = [np.searchsorted(group, self._thresholds, side="right") for group in (with_canary, without)]
        (low_with, high_with), (low_without, high_without) = (np.split(counts, 2) for counts in below)
        hits = np.concatenate([low_with, without.size - high_without])
        alarms = np.concatenate([low_without, with_canary.size - high_with])
        return np.stack([hits, alarms]).astype(np.float64)

    def _best_thresholds(self) -> Floats:
        """Return the threshold at which each bet would have paid most on the earlier pairs: between two neighbouring scores."""
        scores = np.unique(np.concatenate([self._with, self._without]))
        between = np.append(scores[:-1] / 2 + scores[1:] / 2, scores[-1])
        with_canary, without = (
            np.searchsorted(group, between, side="right") for group in (self._with, self._without)
        )
        cost = self._cost[: self._cost.size // 2, None]
        low = np.argmax(with_canary - cost * without, axis=1)
        high = np.argmax(cost * with_canary - without, axis=1)
        return np.asarray(between[np.concatenate([low, high])])

    def _stakes(self) -> Floats:
        """Return the stakes that grow fastest at the rates of the earlier pairs, with half a run more of each kind."""
        hit, alarm = (self._counts + 0.5) / (self.pairs + 1)
        least = self._cost + self._slack
        stake = _STAKES[:, None] / least
        growth = (
            hit * (1 - alarm) * np.log1p(stake * (1 - self._slack))
            + (1 - hit) * alarm * np.log1p(-stake * least)
            + hit * alarm * np.log1p(stake * (1 - least))
            + (1 - hit) * (1 - alarm) * np.log1p(-stake * self._slack)
        )
        return np.asarray(stake[np.argmax(growth, axis=0), np.arange(least.size)])


# --- A bound on epsilon that holds at any time: the last epsilon of a fixed grid before the first that is not refuted ---

_STEP, _LARGEST = 1 / 16, 12.0


def grid_lines(delta: float) -> Lines:
    """Return the line of each (epsilon, delta) of the grid; ``Bets.log_of_each`` is then the evidence against each."""
    slopes = np.arange(0.0, _LARGEST + _STEP / 2, _STEP)
    return Lines(slopes, np.full(slopes.size, delta))


def epsilon_bound(most: Floats, *, alpha: float) -> float:
    """Return the largest epsilon before which the bets on `grid_lines` refuted all, 0 if none.

    Args:
        most: Shape (k,), the largest log that the evidence against each line ever had.
        alpha: In (0, 1).
    """
    standing = np.flatnonzero(most < -math.log(alpha))
    last = int(standing[0]) - 1 if standing.size else most.size - 1
    return max(0, last) * _STEP


# --- Results of a perfect attack ---


def epsilon_ceiling(pairs: int, *, delta: float, alpha: float) -> float:
    """Return the bound for pairs of a perfect attack."""
    bets = Bets(grid_lines(delta))
    for _ in range(pairs):
        bets.add(0.0, 1.0)
    return epsilon_bound(bets.log_of_each, alpha=alpha)


_MOST_PAIRS = 10_000


def pairs_needed(curve: TradeoffCurve, *, alpha: float) -> int | None:
    """Return after how many pairs a perfect attack refutes the curve; None if ten thousand do not."""
    bets = Bets(Lines.of_curve(curve))
    for pair in range(1, _MOST_PAIRS + 1):
        bets.add(0.0, 1.0)
        if bets.most >= -math.log(alpha):
            return pair
    return None
