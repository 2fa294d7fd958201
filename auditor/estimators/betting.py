"""Evidence against a claim that grows with the runs and holds whenever it is looked at: bets on pairs of runs [own].

A claim's curve lies below each of its lines: for whatever set of scores, P_with(S) <= e^s P_without(S) + delta(s), and the
same with the two worlds exchanged, where the curve covers both orders. One pair of runs, one with the canary and one
without, pays at a threshold that was fixed before it

    Z = 1{with is at or below it} - e^s 1{without is} - delta(s),

or, of the mirrored bet, 1{without is above it} - e^s 1{with is} - delta(s): under the claim nothing on average, or less.
So for all bets i, on lines and mirrors, 1 + sum_i lambda_i Z_i has a mean of at most 1 for stakes lambda_i >= 0 that earlier
pairs fixed, and stays above 0 if sum_i lambda_i (e^s_i + delta_i) < 1. What is left after any number of pairs, the product,
has a mean of at most 1 too, and so has an average of such products by weights that were fixed before the first pair. By
Ville's inequality that average ever reaches 1/alpha with probability at most alpha, however often it is looked at.

Three quarters of the wealth are divided among bets on one line each, by fixed weights: lines that show nothing cost
little. The rest is one portfolio of all bets. Its shares move towards those that would have grown fastest on the earlier
pairs; what several bets lose by chance partly cancels, so that it grows faster. The log of all the evidence is at most
0.29, -log 0.75, behind that of the first part alone.

Thresholds, stakes and shares may follow *earlier* pairs, and past winnings are never recomputed. All stay for a block of
pairs, about 10% of those before it: the evidence then holds after any pair, in a block too, since what is bet on each was
fixed before the first of the block. The pairs come in the order of their numbers: in the order of completion, runs that
end sooner for some scores would choose what is seen.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.core.values import Floats
from auditor.curves.tradeoff import TradeoffCurve

_DECAY = 0.5  # of the weights: a line that is steeper by 1 has e^-1/2 of the weight
_CORNERS = 8  # of a claim of a few points: their own lines are bet on too
_STAKES = np.linspace(0.0, 0.9, 19)  # shares of the stake that can lose everything
_TOGETHER, _MOST = 0.25, 0.75  # of the wealth in the portfolio, and how much of it one pair can lose
_STEPS, _POWER, _AGAIN = 6, 6, 0.02  # towards the best shares; how much of the first ones a move brings back
_EVERY, _GROWTH = 16, 1.1  # pairs up to which every one ends a block, and the growth after
_RANKS = (
    np.unique(np.geomspace(1, 1e9, 2000).astype(np.int64)) - 1
)  # that a threshold may have from either end
# What a pair can be: whether the run with the canary, and the one without it, is at or below the threshold.
_ANSWERS = np.array([[0, 1, 0, 1], [0, 0, 1, 1]])[..., None]


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

    Attributes:
        pairs: Number of pairs seen.
        log_evidence: The log of the e-value against all of the lines at once.
        most: The largest log that the evidence ever had; 1/e^most is a p-value whenever it is looked at.
        most_of_each: The largest log that the evidence against each line alone ever had, shape (k,).

    >>> bets = Bets(Lines.of_curve(TradeoffCurve.from_epsilon_delta(1.0, delta=1e-5)))
    >>> grown = bets.add(np.zeros(40), np.ones(40))
    >>> grown.shape, bool(grown[-1] == bets.log_evidence > math.log(20))
    ((40,), True)
    """

    def __init__(self, lines: Lines, *, together: bool = True) -> None:
        """Divide the wealth among the lines and their mirrors; a portfolio of all, if there is one, gets a quarter."""
        self._weights, self._cost, self._slack = np.log(lines.weights), np.exp(lines.slopes), lines.slack
        self.pairs, self.log_evidence, self.most = 0, 0.0, 0.0
        self.most_of_each = np.zeros(lines.slopes.size)
        # The scores of both worlds, in order up to the last move, and those since.
        self._ordered, self._since = np.empty((2, 0)), list[Floats]()
        # Members low, and the mirror: non-members high. Nothing is bet on the first pair.
        self._log_won, self._thresholds = np.zeros((2, 2, lines.slopes.size))
        self._moves, self._growth = 1, np.zeros((4, 2, lines.slopes.size))
        low_with, low_without = _ANSWERS
        low, high = low_with - self._cost * low_without, 1 - low_without - self._cost * (1 - low_with)
        self._payoffs = np.stack([low, high], axis=1) - self._slack
        self._portfolio = _Portfolio(lines, self._payoffs) if together else None

    @property
    def log_of_each(self) -> Floats:
        """The log of the e-value against each line alone, shape (k,)."""
        return _of_both(self._log_won)

    def add(self, with_canary: npt.ArrayLike, without: npt.ArrayLike) -> Floats:
        """Settle the bets on pairs, a block at a time, and only then look at the block.

        Returns:
            The log of the evidence after each pair, shape (pairs,).
        """
        scores, grown = np.array([with_canary, without], dtype=np.float64).reshape(2, -1), []
        while scores.size:
            if self.pairs == self._moves:
                self._move()
            block, scores = np.split(scores, [self._moves - self.pairs], axis=1)
            grown.append(self._settle(block))
        return np.concatenate(grown)

    def _settle(self, block: Floats) -> Floats:
        low_with, low_without = block[..., None, None] <= self._thresholds
        outcomes = low_with + 2 * low_without
        growth = np.take_along_axis(self._growth, outcomes, axis=0)
        growth[0] += self._log_won
        won = np.cumsum(growth, axis=0)
        of_each = _of_both(won)
        evidence = np.logaddexp.reduce(self._weights + of_each, axis=1)
        if self._portfolio:
            apart, together = np.log([1 - _TOGETHER, _TOGETHER])
            evidence = np.logaddexp(apart + evidence, together + self._portfolio.settle(outcomes))
        self._log_won, self.pairs, self.log_evidence = won[-1], self.pairs + len(won), float(evidence[-1])
        self.most_of_each = np.maximum(self.most_of_each, of_each.max(axis=0))
        self.most = max(self.most, float(evidence.max()))
        self._since.append(block)
        return np.asarray(evidence)

    def _move(self) -> None:
        """Fix thresholds and stakes of the next block by the pairs before it."""
        # A stable sort merges what is in order already.
        self._ordered = np.sort(np.concatenate([self._ordered, *self._since], axis=1), axis=1, kind="stable")
        self._since, self._thresholds = [], self._best_thresholds()
        self._moves = self.pairs + 1 if self.pairs < _EVERY else math.ceil(self.pairs * _GROWTH)
        self._growth = np.log1p(self._stakes() * self._payoffs)
        if self._portfolio:
            # The runs of either world that lie between two neighbouring thresholds.
            cuts = np.sort(self._thresholds, axis=None)
            chances = np.outer(*np.diff(self._at_or_below(cuts), prepend=0, append=1))
            low = np.append(cuts, np.inf)[:, None, None] <= self._thresholds
            self._portfolio.move((low[:, None] + 2 * low)[chances > 0], chances[chances > 0])

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
        low = np.argmax(with_canary - self._cost[:, None] * without, axis=1)
        high = np.argmax(self._cost[:, None] * with_canary - without, axis=1)
        return np.asarray(between[[low, high]])

    def _at_or_below(self, thresholds: Floats) -> Floats:
        """Return the rates of the earlier pairs at or below each threshold, with half a run more on either side."""
        return np.asarray((self._below(thresholds) + 0.5) / (self.pairs + 1))

    def _stakes(self) -> Floats:
        """Return the stakes that grow fastest at the rates of the earlier pairs."""
        low_with, low_without = self._at_or_below(self._thresholds)
        neither, both = (1 - low_with) * (1 - low_without), low_with * low_without
        chances = np.array([neither, low_with * (1 - low_without), (1 - low_with) * low_without, both])
        stakes = _STAKES[:, None] / (self._cost + self._slack)
        growth = np.sum(chances * np.log1p(stakes[:, None, None] * self._payoffs), axis=1)
        return np.asarray(stakes[np.argmax(growth, axis=0), np.arange(self._cost.size)])


def _of_both(log_won: Floats) -> Floats:
    """Return the log of the mean of each bet and its mirror."""
    return np.asarray(np.logaddexp(log_won[..., 0, :], log_won[..., 1, :]) - math.log(2))


class _Portfolio:
    """Shares of cash and of all bets, each at its largest stake, as one bet on each pair."""

    def __init__(self, lines: Lines, payoffs: Floats) -> None:
        self._gains = _MOST / (np.exp(lines.slopes) + lines.slack) * payoffs
        self._first = np.concatenate([[1.0], lines.weights, lines.weights]) / 3
        self._log_won, self._shares, self._bet = 0.0, self._first, 0 * self._first

    def settle(self, outcomes: npt.NDArray[np.int_]) -> Floats:
        """Return the log of the wealth after each pair, of which each bet sees one of four outcomes."""
        growth = np.log1p(np.sum(self._of(outcomes) * self._bet[1:], axis=-1))
        growth[0] += self._log_won
        won = np.cumsum(growth)
        self._log_won = float(won[-1])
        return np.asarray(won)

    def move(self, outcomes: npt.NDArray[np.int_], chances: Floats) -> None:
        """Multiply each share by what it returns on average over what all return, a few times (after Cover 1984)."""
        returns = 1 + np.insert(self._of(outcomes), 0, 0.0, axis=1)
        shares = self._shares + _AGAIN * (self._first - self._shares)
        for _ in range(_STEPS):
            shares = shares * (chances / (returns @ shares) @ returns) ** _POWER
            shares /= shares.sum()
        self._shares = self._bet = shares

    def _of(self, outcomes: npt.NDArray[np.int_]) -> Floats:
        return np.take_along_axis(self._gains, outcomes, axis=0).reshape(len(outcomes), -1)


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
    bets = Bets(grid_lines(delta), together=False)
    bets.add(np.zeros(pairs), np.ones(pairs))
    return epsilon_bound(bets.log_of_each, alpha=alpha)


_MOST_PAIRS, _AT_ONCE = 10_000, 100


def pairs_needed(curve: TradeoffCurve, *, alpha: float) -> int | None:
    """Return after how many pairs a perfect attack refutes the curve; None if ten thousand do not."""
    bets, enough = Bets(Lines.of_curve(curve)), -math.log(alpha)
    while bets.most < enough and bets.pairs < _MOST_PAIRS:
        grown = bets.add(np.zeros(_AT_ONCE), np.ones(_AT_ONCE))
    return bets.pairs - _AT_ONCE + int(np.argmax(grown >= enough)) + 1 if bets.most >= enough else None
