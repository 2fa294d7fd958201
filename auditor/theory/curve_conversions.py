"""From a trade-off curve to epsilon, delta, mu and advantage, exactly for curves made of straight pieces.

Every number here is the smallest one whose own curve lies above the given one. The other way round there are
`TradeoffCurve.from_epsilon_delta`, `TradeoffCurve.from_profile`, `auditor.theory.gdp_curve` and
`auditor.theory.curve_from_renyi`. The curve is taken as exact: from measured losses these are estimates, not bounds.
"""

import sys

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.tradeoff import TradeoffCurve
from auditor.values import Floats

__all__ = [
    "advantage_from_curve",
    "delta_from_curve",
    "epsilon_from_curve",
    "mu_from_curve",
    "profile_from_curve",
]

# How far rates near 1 may be from the exact ones: they are held as doubles.
_ROUNDING = 2.3e-16
# The smallest double that has all its digits.
_SMALLEST = sys.float_info.min
# The double below 1, for rates that were rounded to 1.
_LARGEST = 1 - sys.float_info.epsilon / 2
# A true positive rate at no false positive that is only rounding.
_NEGLIGIBLE = 1e-300


def epsilon_from_curve(curve: TradeoffCurve, *, delta: float) -> float:
    """Return the smallest epsilon whose (epsilon, delta) curve lies above this one.

    The largest of log((TPR - delta)/FPR) and log((1 - FPR - delta)/(1 - TPR)) over the corners; between two corners
    each ratio rises or falls throughout.

    Args:
        curve: Taken as exact, corners joined by straight lines.
        delta: In [0, 1).

    Returns:
        Epsilon in nats, 0 or more; infinity where a TPR above delta comes without a false positive.

    Raises:
        InputError: Delta is out of range.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 2.4; Wasserman and Zhou 2010.

    >>> round(epsilon_from_curve(TradeoffCurve([0.0, 0.1, 1.0], [0.0, 0.5, 1.0]), delta=0.1), 6)  # log 4
    1.386294
    """
    delta = _validate.fraction("delta", delta, zero=True)
    low, high = _corners(curve)
    above = high > delta + (_NEGLIGIBLE if delta == 0 else 0.0)
    low, high = low[above], high[above]
    if np.any(low == 0):
        return float("inf")
    ratios = np.log(high - delta) - np.log(low)
    return max(0.0, float(ratios.max(initial=0.0)))


def delta_from_curve(curve: TradeoffCurve, *, epsilon: float) -> float:
    """Return the smallest delta whose (epsilon, delta) curve lies above this one, in [0, 1].

    Args:
        curve: Taken as exact, corners joined by straight lines.
        epsilon: In nats, 0 or more.

    Raises:
        InputError: Epsilon is out of range.

    Source: Dong, Roth and Su 2022, Proposition 2.12 (delta = 1 + f*(-e^epsilon)), for both orders.

    >>> delta_from_curve(TradeoffCurve([0.0, 0.25, 1.0], [0.0, 0.5, 1.0]), epsilon=0.0)
    0.25
    """
    return float(profile_from_curve(curve, epsilons=[_validate.nonnegative("epsilon", epsilon)])[0])


def profile_from_curve(curve: TradeoffCurve, *, epsilons: npt.ArrayLike) -> Floats:
    """Return the privacy profile of a trade-off curve: `delta_from_curve` at many epsilons.

    Args:
        curve: Taken as exact, corners joined by straight lines.
        epsilons: Shape (k,), in nats, 0 or more.

    Returns:
        Shape (k,), in [0, 1], never rising with epsilon.

    Raises:
        InputError: An epsilon is negative or not a number.

    >>> curve = TradeoffCurve.from_epsilon_delta(1.0, delta=0.1)
    >>> profile_from_curve(curve, epsilons=[0.0, 1.0, 2.0]).round(6).tolist()
    [0.515905, 0.1, 0.1]
    """
    values = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    wrong = ~(values >= 0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"epsilons must be 0 or more, got {values[at]:g} at position {at}.")
    low, high = _corners(curve)
    # In logs, because the slope may be beyond a double where the rate is not.
    with np.errstate(divide="ignore"):
        log_low = np.log(low)
    with np.errstate(over="ignore"):
        gaps = [float(np.max(high - np.exp(np.minimum(log_low + value, 1.0)))) for value in values]
    return np.clip(gaps, 0.0, 1.0)


def advantage_from_curve(curve: TradeoffCurve) -> float:
    """Return the largest TPR - FPR on a trade-off curve, in [0, 1]; Bayes security is 1 minus it.

    Args:
        curve: Taken as exact, corners joined by straight lines.

    Source: Cherubin et al. 2024, Section 2.

    >>> advantage_from_curve(TradeoffCurve([0.0, 0.25, 1.0], [0.0, 0.75, 1.0]))
    0.5
    """
    return delta_from_curve(curve, epsilon=0.0)


def mu_from_curve(curve: TradeoffCurve) -> float:
    """Return the smallest mu whose Gaussian-DP curve lies above this one: the largest Phi^-1(TPR) - Phi^-1(FPR).

    Exact for straight pieces, since the curve of mu-GDP is concave and so lies above them if it does at the corners, as
    far as the rates go: those within 1e-16 of 1 have been rounded.

    Args:
        curve: Taken as exact, corners joined by straight lines.

    Returns:
        mu, 0 or more; infinity where a TPR above 0 comes without a false positive.

    Source: Dong, Roth and Su 2022, Definition 2.6.

    >>> round(mu_from_curve(TradeoffCurve([0.0, 0.15865525393145707, 1.0], [0.0, 0.5, 1.0])), 6)
    1.0
    """
    from scipy.special import ndtr, ndtri

    low, high = _corners(curve)
    # A corner and its mirror image say the same, and below the line TPR = 1 - FPR no digit is lost.
    rising = (high > low) & (high > 0) & (low + high <= 1)
    low, high = low[rising], np.minimum(high[rising], _LARGEST)
    sure = low >= _SMALLEST
    mu = float(np.max(ndtri(high[sure]) - ndtri(low[sure]), initial=0.0))
    # A Gaussian curve too jumps at 0 if it is held in doubles: as far as it gets below the smallest of them.
    jump = float(np.max(high[~sure], initial=0.0))
    return mu if jump <= float(ndtr(ndtri(_SMALLEST) + mu)) else float("inf")


def _corners(curve: TradeoffCurve) -> tuple[Floats, Floats]:
    """Return the corners (FPR, TPR) together with their mirror images (1 - TPR, 1 - FPR), as far as these say anything new.

    What holds for both orders of two neighbours is a condition on both kinds. In the upper right of a curve rates lie so
    near 1 that their distance from it has lost its digits; where the curve is its own mirror image, the corners in its
    lower left say the same with all of them.
    """
    low, high = 1 - curve.tpr, 1 - curve.fpr
    covered = np.interp(low + _ROUNDING, curve.fpr, curve.tpr) >= high - 4 * _ROUNDING
    new = ~covered
    return np.concatenate([curve.fpr, low[new]]), np.concatenate([curve.tpr, high[new] - _ROUNDING])
