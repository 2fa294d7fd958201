"""Auditing f-DP in one run (Mahloujifar, Melis and Chaudhuri 2024): which trade-off curves do the guesses refute?

m fair membership bits, r guesses fixed in number in advance, V of them right. Let T be the largest true positive
rate at a false positive rate, concave, for both orders of any two neighbours. Flipping one bit at a time shows that

    R_j = sum_{l >= j} l P[V = l]/m   and   H_j = sum_{l >= j} (r - l) P[V = l]/m   obey   R_{j+1} <= T(H_j).

Suppose P[V >= v] >= alpha. The least mass that these constraints then force, with finv(y) = inf{a: T(a) >= y}, is

    r_v = alpha v/m, h_v = alpha (r - v)/m, h_i = finv(r_{i+1}), r_i = r_{i+1} + i/(r - i) (h_i - h_{i+1}),

and T is refuted at level alpha if r_0 + h_0 > r/m, all the mass there is. If h_i would not grow in the first step it
never does, and nothing is refuted; once it grows, every true H_i >= h_i and R_i >= r_i (summation by parts) [own].
A smaller T forces more mass, so refuting a curve refutes every curve below it with the same guesses.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from statistics import NormalDist

from auditor import _validate
from auditor._envelope import concave_corners
from auditor.estimators.steinke import check_counts
from auditor.tradeoff import TradeoffCurve

__all__ = ["SmallestFpr", "epsilon_bound", "gdp_bound", "of_curve", "of_epsilon_delta", "of_gdp", "rejects"]

SmallestFpr = Callable[[float], float]
"""finv: the smallest false positive rate at which a curve reaches a true positive rate."""

# Where the bounds are looked for; a normal beyond 40 standard deviations has no mass in a double.
_LARGEST_EPSILON, _LARGEST_MU = 60.0, 40.0
_HALVINGS = 42  # to 2e-11


def of_gdp(mu: float) -> SmallestFpr:
    """Return finv of mu-Gaussian DP: Phi(Phi^-1(y) - mu).

    >>> round(of_gdp(1.0)(0.5), 6)
    0.158655
    """
    mu, quantile = _validate.nonnegative("mu", mu), NormalDist().inv_cdf

    def smallest_fpr(tpr: float) -> float:
        return 1.0 if tpr >= 1 else 0.5 * math.erfc((mu - quantile(tpr)) * math.sqrt(0.5))

    return smallest_fpr


def of_epsilon_delta(epsilon: float, *, delta: float) -> SmallestFpr:
    """Return finv of (epsilon, delta)-DP: max(0, 1 - d - e^eps (1 - y), e^-eps (y - d)).

    >>> of_epsilon_delta(0.0, delta=0.25)(0.5)
    0.25
    """
    epsilon, delta = _validate.nonnegative("epsilon", epsilon), _validate.fraction("delta", delta, zero=True)
    up, down = math.exp(min(epsilon, 700.0)), math.exp(-epsilon)

    def smallest_fpr(tpr: float) -> float:
        flat = max(0.0, down * (tpr - delta))
        # The steep piece begins above a half; below, its 1 - tpr would only lose digits.
        return flat if tpr < 0.5 else max(flat, 1 - delta - up * (1 - tpr))  # noqa: PLR2004

    return smallest_fpr


def of_curve(curve: TradeoffCurve) -> SmallestFpr:
    """Return finv of any trade-off curve, by way of the smallest concave curve above it.

    >>> of_curve(TradeoffCurve.from_epsilon_delta(0.0, delta=0.25))(0.5)
    0.25
    """
    fpr, tpr = (axis.tolist() for axis in concave_corners(curve.fpr, curve.tpr))

    def smallest_fpr(rate: float) -> float:
        at = min(bisect_left(tpr, rate), len(tpr) - 1)
        if at == 0:
            return float(fpr[0])
        share = (rate - tpr[at - 1]) / (tpr[at] - tpr[at - 1])
        return float(fpr[at - 1] + min(share, 1.0) * (fpr[at] - fpr[at - 1]))

    return smallest_fpr


def rejects(smallest_fpr: SmallestFpr, *, bits: int, guesses: int, correct: int, alpha: float) -> bool:
    """Return whether the guesses refute the trade-off curve at level ``alpha``.

    Args:
        smallest_fpr: finv of the curve (`of_gdp`, `of_epsilon_delta`, `of_curve`), which must bound both orders of
            two neighbours.
        bits: Membership bits m, each a fair coin.
        guesses: Guesses r <= m, their number fixed in advance.
        correct: Right guesses v <= r.
        alpha: In (0, 1).

    Raises:
        InputError: Counts that do not fit, or alpha outside (0, 1).

    Source: Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3; the argument is in this module's docstring.

    >>> rejects(of_gdp(2.08), bits=1000, guesses=600, correct=600, alpha=0.05)
    True
    >>> rejects(of_gdp(2.09), bits=1000, guesses=600, correct=600, alpha=0.05)
    False
    """
    check_counts(bits, guesses, correct)
    alpha = _validate.fraction("alpha", alpha)
    # A loop over numbers, not arrays: each step needs the one before, and about 10 sqrt(r) steps settle it.
    right, wrong, all_mass = alpha * correct / bits, alpha * (guesses - correct) / bits, guesses / bits
    previous = 0.0
    for i in range(correct - 1, -1, -1):
        least = smallest_fpr(right)
        if least <= wrong:
            return False
        mass = (least - wrong) / (guesses - i)  # P[V = i]/m
        right, wrong = right + i * mass, least
        if right + wrong > all_mass:
            return True
        # Past the peak, the i counts that are left would not add what is missing; to stop can only refute less.
        if mass < previous and mass * guesses * i < all_mass - right - wrong:
            return False
        previous = mass
    return False


def gdp_bound(*, bits: int, guesses: int, correct: int, alpha: float) -> float:
    """Return mu_L, the largest mu for which the guesses refute mu-Gaussian DP at level ``alpha``; 0 if none.

    Args:
        bits: Membership bits m, each a fair coin.
        guesses: Guesses r <= m, their number fixed in advance.
        correct: Right guesses v <= r.
        alpha: In (0, 1).

    Raises:
        InputError: Counts that do not fit, or alpha outside (0, 1).

    Source: Mahloujifar, Melis and Chaudhuri 2024.

    >>> round(gdp_bound(bits=1000, guesses=100, correct=95, alpha=0.05), 6)
    0.786812
    """
    return _largest(
        lambda mu: rejects(of_gdp(mu), bits=bits, guesses=guesses, correct=correct, alpha=alpha), _LARGEST_MU
    )


def epsilon_bound(*, bits: int, guesses: int, correct: int, delta: float, alpha: float) -> float:
    """Return eps_L, the largest epsilon for which the guesses refute (epsilon, delta)-DP at level ``alpha``; 0 if none.

    Args:
        bits: Membership bits m, each a fair coin.
        guesses: Guesses r <= m, their number fixed in advance.
        correct: Right guesses v <= r.
        delta: In [0, 1).
        alpha: In (0, 1).

    Raises:
        InputError: Counts that do not fit, delta outside [0, 1) or alpha outside (0, 1).

    Source: Mahloujifar, Melis and Chaudhuri 2024.

    >>> 4 < epsilon_bound(bits=1000, guesses=1000, correct=1000, delta=1e-5, alpha=0.05) < 6
    True
    """

    def refuted(epsilon: float) -> bool:
        curve = of_epsilon_delta(epsilon, delta=delta)
        return rejects(curve, bits=bits, guesses=guesses, correct=correct, alpha=alpha)

    return _largest(refuted, _LARGEST_EPSILON)


def _largest(refuted: Callable[[float], bool], most: float) -> float:
    """The largest refuted parameter: what is refuted at one is refuted at every smaller one."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
