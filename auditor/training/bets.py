r"""Evidence against the noise of DP-SGD, from coins that are tossed inside its steps and hold at any time [own].

In step t canary i has a fair coin b, tossed after everything else but the noise was fixed. Heads inserts a gradient that
clipping cuts to a share k of the clipping norm C, so that its score g, the projection of the noised sum on its direction,
rises by 1 where a unit is k C. Under the claim of noise sigma C the outputs with and without the canary are neighbours at
mu = k / sigma: for each event A and each s, P1(A) - e^s P0(A) <= delta(s) = Phi(mu/2 - s/mu) - e^s Phi(-mu/2 - s/mu). This
holds given the past, the batch and the coins of all other canaries, so A may depend on these. Hence

    X = 2 1_A (b - e^s (1 - b)) - e^s (2 b - 1)

has a conditional mean of at most delta(s): the first term by the inequality, and the second, a control variate that lowers
the variance, has mean 0. X lies in [-e^s, max(2 - e^s, e^s)]. The mean of X over any of the canaries of a step has a mean of
at most the mean of their delta(s), however the canaries depend on one another, since expectations add up. So

    prod_t (1 + l_t (mean_i X_ti - mean_i delta_i)),   0 <= l_t < 1 / mean_i (e^s_i + delta_i),

is a nonnegative supermartingale for stakes and events that the past decides, and so is a mixture of such products with fixed
weights. By Ville's inequality it ever reaches 1/alpha with probability at most alpha: stop whenever you like. Exchanging
the two coins gives the other direction of the neighbours.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.core.values import Booleans, Floats

_SLOPES = np.array([0.0, 0.7, 1.5])  # s over mu; s is at most the next number
_STEEPEST = 4.0
_STAKES = np.array([0.1, 0.25, 0.5, 0.75, 0.95])  # shares of the largest stake
# Shares of the capital: all canaries together, on the noise of the step alone and after that of the step before, and the
# same divided among the parameter tensors. The first share is divided among the slopes, the flat one first.
_WHOLE, _WHOLE_AGAIN, _TENSORS, _TENSORS_AGAIN = 0.5, 0.125, 0.25, 0.125
_FLAT = 0.6
# Ratios of noise to claim that are tested beside the claim: fine around 1.
RATIOS = np.unique(
    np.exp(np.concatenate([np.arange(-460, -20, 5), np.arange(-20, 23), np.arange(23, 300, 5)]) / 100)
)
_FEW_STAKES = np.array([0.25, 0.6, 0.95])


def slack(mu: npt.ArrayLike, slope: npt.ArrayLike = 0.0) -> Floats:
    """Return delta(s), the largest P1(A) - e^s P0(A) of N(mu, 1) against N(0, 1).

    >>> round(float(slack(1.0)), 4)
    0.3829
    """
    mu, slope = np.asarray(mu, dtype=np.float64), np.asarray(slope, dtype=np.float64)
    low, high = special.log_ndtr(-mu / 2 - slope / mu), special.ndtr(mu / 2 - slope / mu)
    return np.asarray(high - np.exp(slope + low))


class StepBets:
    """The capital of bets against a claim of noise, step by step; mutable.

    Attributes:
        steps: Number of steps.
        most: The largest log of the evidence so far; 1/e^most is a p-value at any time. Shape ``copies``.
        grown: The largest log so far of the evidence of all canaries and of each tensor alone, against noise of each of
            `RATIOS` times the claim. Shape (*copies, groups, ratios).

    Args:
        shares: Shape (m,): the share k of the clipping norm that each canary keeps after clipping, in (0, 1].
        tensors: The canaries of each parameter tensor that is judged alone, as indices.
        whole: The canaries that are judged together, as indices; all by default.
        copies: Shape of independent audits at once, for simulations.

    >>> rng, bets = np.random.default_rng(0), StepBets(np.ones(64))
    >>> for _ in range(60):
    ...     coins = rng.random(64) < 0.5
    ...     bets.add(coins + rng.normal(0, 0.5, 64), coins, noise=1.0)  # half of the noise
    >>> bool(bets.most > math.log(20)), bool(0.5 < bets.at_most(0.05)[0] < 0.8)
    (True, True)
    """

    def __init__(
        self,
        shares: Floats,
        *,
        tensors: Sequence[npt.NDArray[np.intp]] = (),
        whole: npt.NDArray[np.intp] | None = None,
        copies: tuple[int, ...] = (),
    ) -> None:
        self._shares, groups = shares, [np.arange(shares.size) if whole is None else whole, *tensors]
        self._mean = np.zeros((shares.size, len(groups)))
        for place, members in enumerate(groups):
            self._mean[members, place] = 1 / len(members)
        each = 1 / max(len(tensors), 1)
        parts = [(_WHOLE, _WHOLE_AGAIN), *[(_TENSORS * each, _TENSORS_AGAIN * each)] * len(tensors)]
        own, again = np.array(parts).T / np.sum(parts)
        tilted = np.full(2 * _SLOPES.size - 1, (1 - _FLAT) / (2 * _SLOPES.size - 2))
        tilted[0] = _FLAT
        kinds = np.concatenate([tilted[:, None] * own, again[None]])  # bets x groups
        self._weights = np.log(kinds / _STAKES.size)[..., None]
        self._won = np.zeros((*copies, *kinds.shape, _STAKES.size))
        self._ratios = np.zeros((*copies, len(groups), RATIOS.size, _FEW_STAKES.size))
        self.grown = np.full((*copies, len(groups), RATIOS.size), 0.0)
        self.most, self.steps = np.zeros(copies), 0
        self._noise: float | None = None  # of the step for which the slacks are computed
        self._before: Any = None

    def add(self, scores: Floats, coins: Booleans, *, noise: float, shares: Floats | None = None) -> None:
        """Settle the bets on one step.

        Args:
            scores: Shape (*copies, m): the projections, in units of what a clipped canary adds, less any centre that the past
                and the batch decide.
            coins: Shape (*copies, m).
            noise: The claimed noise multiplier of the step.
            shares: The shares of the canaries from this step on, if they change.
        """
        changed = shares is not None and not np.array_equal(shares, self._shares)
        self._shares = shares if shares is not None else self._shares
        if noise != self._noise or changed:
            self._claimed(noise)
        heads = np.where(coins, 1.0, -1.0)
        # A step's own noise is predicted to be that of the step before, for bets on noise that is reused.
        predicted = np.zeros_like(scores) if self._before is None else self._before
        payoffs = [
            self._payoff(sign * (scores - 0.5), sign * heads, place)
            for place in range(_SLOPES.size)
            for sign in ((1.0, -1.0) if place else (1.0,))
        ]
        payoffs.append(self._payoff(scores - 0.5 - predicted, heads, 0))
        means = np.stack(payoffs, axis=-2) @ self._mean
        self._before = scores - coins
        self._won += np.log1p(self._stakes * (means - self._slack)[..., None])
        log_evidence = np.logaddexp.reduce(self._won + self._weights, axis=(-3, -2, -1))
        self.most = np.maximum(self.most, log_evidence)
        flat = means[..., 0, :, None]
        self._ratios += np.log1p(self._ratio_stakes * (flat - self._ratio_slack)[..., None])
        log_evidence = np.logaddexp.reduce(self._ratios, axis=-1) - math.log(_FEW_STAKES.size)
        self.grown = np.maximum(self.grown, log_evidence)
        self.steps += 1

    def _claimed(self, noise: float) -> None:
        """Set thresholds, slacks and stakes for the noise of a step."""
        mu = self._shares / noise
        slopes = np.minimum(_SLOPES[:, None] * mu, _STEEPEST)
        self._cost, self._shift = np.exp(slopes), slopes / mu**2
        kinds = [0, *np.repeat(np.arange(1, _SLOPES.size), 2), 0]
        allowed, cost = slack(mu, slopes)[kinds] @ self._mean, self._cost[kinds] @ self._mean
        self._slack, self._stakes = allowed, (_STAKES / (allowed + cost)[..., None])
        self._ratio_slack = self._mean.T @ slack(mu[:, None] / RATIOS)
        self._ratio_stakes = _FEW_STAKES / (1 + self._ratio_slack)[..., None]
        self._noise = noise

    def _payoff(self, above: Floats, heads: Floats, place: int) -> Floats:
        """Return X of each canary: 2 1_A (b - e^s (1 - b)) - e^s (2 b - 1), with A that the score is above its threshold."""
        cost = self._cost[place]
        gain = np.where(heads > 0, 2.0, -2 * cost) * (above > self._shift[place])
        return np.asarray(gain - cost * heads)

    def at_most(self, alpha: float) -> Floats:
        """Return the smallest ratio of noise to claim that is refuted, for all canaries and for each tensor; inf without one.

        All hold at once: the canaries together have half of the error alpha, and the tensors share the other half. Shape
        (*copies, groups).
        """
        groups = self.grown.shape[-2]
        needed = np.full(groups, -math.log(alpha / (2 * (groups - 1)) if groups > 1 else alpha))
        needed[0] = min(needed[0], -math.log(alpha / 2))
        refuted = self.grown >= needed[:, None]
        first = np.where(refuted.any(axis=-1), RATIOS[refuted.argmax(axis=-1)], math.inf)
        return np.asarray(first)
