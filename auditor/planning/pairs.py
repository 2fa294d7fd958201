"""The chance that the one-run bound on random pairs reaches an epsilon, by the test of Steinke et al.

m pairs, the r most confident guesses, each right with a probability a that the attack's curve gives: about Bin(r, a)
right guesses. As m grows at a fixed delta, the test refutes every q = expit(eps) below a - 2 d/(s a'), s = r/m and a'
the error of one number of guesses: the delta term is then 2 m d/(r (a - q)) [own].
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.estimators.guesses import numbers_of_guesses
from auditor.planning.attacks import Attack, PerfectAttack
from auditor.values import Floats

__all__ = ["PairAudit", "largest_refuted", "p_value"]

_GRID = 1000  # quantiles of each group
_LARGEST_EPSILON, _STEP, _HALVINGS = 60.0, 0.25, 50


@dataclass(frozen=True)
class PairAudit:
    """``epsilon_bound.one_run`` on a `RandomSplit` with its default test, planned."""

    delta: float
    alpha: float

    def ceiling(self, n_member: int, n_nonmember: int) -> float:
        """Return what a perfect attack would be certified at."""
        bits = min(n_member, n_nonmember)
        numbers = numbers_of_guesses(bits)
        share = self.alpha / len(numbers)

        def perfect(guesses: int) -> float:
            return largest_refuted(lambda eps: p_value(bits, guesses, guesses, eps, self.delta) <= share)

        return max(map(perfect, numbers))

    def limit(self, attack: Attack) -> float:
        """Return the largest epsilon that the attack shows by this test however many pairs there are."""
        many = 1_000_000
        numbers = numbers_of_guesses(many)
        shown = 0.0
        for r in numbers:
            right = _accuracy(attack, r / many) - 2 * self.delta * len(numbers) / (self.alpha * r / many)
            shown = max(shown, float(special.logit(right)) if right > 0 else 0.0)
        return shown

    def chance(self, n: int, *, epsilon: float, attack: Attack) -> float:
        """Return the chance that n records in each group certify the epsilon."""
        numbers = numbers_of_guesses(n)
        return max(self._chance(n, r, self.alpha / len(numbers), epsilon, attack) for r in numbers)

    def _chance(self, bits: int, guesses: int, alpha: float, epsilon: float, attack: Attack) -> float:
        """Of one number of guesses: the fewest right guesses that refute, and the chance of so many."""
        if p_value(bits, guesses, guesses, epsilon, self.delta) > alpha:
            return 0.0
        low, high = 0, guesses
        while high - low > 1:
            middle = (low + high) // 2
            if p_value(bits, guesses, middle, epsilon, self.delta) <= alpha:
                high = middle
            else:
                low = middle
        return float(special.betainc(high, guesses - high + 1, _accuracy(attack, guesses / bits)))


def largest_refuted(refuted: Callable[[float], bool]) -> float:
    """Return the largest epsilon that is refuted, 0 if none; the p-value need not rise with epsilon throughout."""
    grid = np.arange(0.0, _LARGEST_EPSILON + _STEP, _STEP)
    last = max((index for index, epsilon in enumerate(grid) if refuted(float(epsilon))), default=-1)
    if last in (-1, grid.size - 1):
        return 0.0 if last < 0 else _LARGEST_EPSILON
    low, high = float(grid[last]), float(grid[last + 1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def p_value(bits: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Return the p-value of Steinke, Nasr and Jagielski 2023, Theorem 5.2, in O(log guesses) steps.

    >>> round(p_value(1000, 600, 600, 4.0, 1e-5), 10)
    0.0012625634
    """
    if correct == 0:
        return 1.0
    q = float(special.expit(epsilon))
    tail = float(special.betainc(correct, guesses - correct + 1, q))
    extra = 2 * bits * delta * _largest_mean_mass(guesses, correct, q) if delta else 0.0
    return min(1.0, tail + extra)


def _largest_mean_mass(n: int, v: int, q: float) -> float:
    """Max over i of P[v - i <= W <= v - 1]/i, W ~ Bin(n, q): going down from v - 1 the mass rises, then falls.

    So its running mean grows until the next mass is below it, and falls from there on.
    """

    def mass(w: int) -> float:
        log_choose = special.gammaln(n + 1) - special.gammaln(w + 1) - special.gammaln(n - w + 1)
        return math.exp(log_choose + special.xlogy(w, q) + special.xlog1py(n - w, -q)) if w >= 0 else 0.0

    def mean(i: int) -> float:
        if i == 1:
            return mass(v - 1)
        at_least = 1.0 if v == i else float(special.betainc(v - i, n - v + i + 1, q))
        return (at_least - float(special.betainc(v, n - v + 1, q))) / i

    mode = min(n, math.floor((n + 1) * q))
    if v - 1 <= mode:  # the nearest mass is the largest
        return mass(v - 1)
    # Down to the mode the next mass exceeds the mean, though both may be too small for a double.
    low, high = max(1, v - 1 - mode), v
    while high - low > 1:
        middle = (low + high) // 2
        if mass(v - 1 - middle) > mean(middle):
            low = middle
        else:
            high = middle
    return mean(high)


@lru_cache(maxsize=256)
def _accuracy(attack: Attack, share: float) -> float:
    """How often the most confident share of the guesses is right, confidence being the distance in pooled ranks."""
    if isinstance(attack, PerfectAttack):
        return 1.0
    distance, right = _all_pairs(attack)
    size = max(1, round(share * distance.size))
    chosen = np.argpartition(-distance, size - 1)[:size]
    # A grid cannot show that less than half a pair is wrong.
    return min(float(right[chosen].mean()), 1 - 0.5 / size)


@lru_cache(maxsize=4)
def _all_pairs(attack: Attack) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Distance in pooled ranks and whether the member's loss is lower, over a grid of quantiles of both groups."""
    levels = (np.arange(_GRID) + 0.5) / _GRID
    # On the scale of the non-members' distribution function a non-member is uniform.
    member, nonmember = attack.fpr(levels)[:, None], levels[None, :]
    pooled = [(attack.tpr(place) + place) / 2 for place in (member, nonmember)]
    return np.abs(pooled[0] - pooled[1]).ravel(), (member < nonmember).ravel()
