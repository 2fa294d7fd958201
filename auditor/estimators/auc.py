"""``auc``: the chance that a random member has a lower loss than a random non-member, ties counting half."""

import math

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from auditor import _validate
from auditor.tradeoff import ThresholdCounts
from auditor.values import Estimate, Floats, Subject

__all__ = ["auc", "interval"]

_INSIDE = 1e-12
_FEW = 20


def auc(counts: ThresholdCounts, *, confidence: float = 0.95) -> Estimate:
    """Return the area under the trade-off curve with a two-sided interval.

    The interval is the hull of two: DeLong's variance on the logit scale, and Newcombe's score interval (2006,
    method 5), which stays open where the sample separates perfectly and DeLong's variance is 0. With fewer than 20
    records in a group it is widened to what the Dvoretzky-Kiefer-Wolfowitz inequality guarantees. Members are taken for
    a sample, which for a census is wider than needed.

    Args:
        counts: From `auditor.tradeoff.count`.
        confidence: Of the interval, in (0, 1).

    Raises:
        InputError: A confidence outside (0, 1).

    >>> from auditor.tradeoff import count
    >>> from auditor.values import Losses
    >>> auc(count(Losses(member=[1.0, 2.0], nonmember=[2.0, 3.0]))).value
    0.875
    """
    alpha = 1 - _validate.confidence(confidence)
    value, variance = _delong(counts)
    low, high = interval(value, variance, sizes=(counts.n_member, counts.n_nonmember), alpha=alpha)
    return Estimate(
        name="auc",
        value=value,
        lower=low,
        upper=high,
        confidence=confidence,
        method="Mann-Whitney; hull of DeLong's logit interval and Newcombe's score interval",
        subject=Subject.MODEL,
        assumptions=("records within each group are independent draws", "large-sample interval"),
        details={"standard_error": math.sqrt(variance)},
    )


def interval(value: float, variance: float, *, sizes: tuple[int, int], alpha: float) -> tuple[float, float]:
    """Return both ends of the interval that `auc` describes.

    Args:
        value: The area, in [0, 1].
        variance: DeLong's, 0 or more.
        sizes: Numbers of members and of non-members.
        alpha: In (0, 1), the error of the interval.

    >>> [round(end, 3) for end in interval(0.6, 0.0001, sizes=(1000, 1000), alpha=0.05)]
    [0.575, 0.624]
    """
    z = -float(special.ndtri(alpha / 2))
    low, high = _score_interval(value, *sizes, z)
    if 0 < value < 1 and variance > 0:
        half = z * math.sqrt(variance) / (value * (1 - value))
        centre = float(special.logit(value))
        low, high = (
            min(low, float(special.expit(centre - half))),
            max(high, float(special.expit(centre + half))),
        )
    if min(sizes) < _FEW:
        # Both intervals lean on many records: with few, allow for all that two distribution functions can be off.
        band = sum(math.sqrt(math.log(4 / alpha) / (2 * n)) for n in sizes)
        low, high = max(0.0, min(low, value - band)), min(1.0, max(high, value + band))
    return low, high


def _delong(counts: ThresholdCounts) -> tuple[float, float]:
    """The area and DeLong's variance of it (DeLong et al. 1988), from the counts alone."""
    n1, n0 = counts.n_member, counts.n_nonmember
    run = counts.fp_upto - counts.fp_below
    below = (counts.tp_below + counts.tp_upto) / (2 * n1)
    value = _dot(run, below) / n0
    variance_0 = _dot(run, np.square(below - value)) / max(1, n0 - 1)
    # Placements of the members: strictly between two thresholds, tied with one, or above all.
    between = counts.tp_below.copy()
    between[1:] -= counts.tp_upto[:-1]
    above = (n0 - counts.fp_below) / n0
    tied = counts.tp_upto - counts.tp_below
    beyond = n1 - int(counts.tp_upto[-1])
    squares = _dot(between, np.square(above - value)) + beyond * value * value
    if tied.any():
        half_above = (2 * n0 - counts.fp_below - counts.fp_upto) / (2 * n0)
        squares += _dot(tied, np.square(half_above - value))
    variance_1 = squares / max(1, n1 - 1)
    return min(1.0, max(0.0, value)), variance_1 / n1 + variance_0 / n0


def _dot(counts: npt.NDArray[np.int64], values: Floats) -> float:
    # einsum and not @: a threaded dot product waits for cores that other processes hold.
    return float(np.einsum("i,i->", counts, values))


def _score_interval(value: float, n1: int, n0: int, z: float) -> tuple[float, float]:
    """Roots of (theta - value)^2 = z^2 V(theta); Newcombe 2006, method 5."""
    centre = (n1 + n0) / 2 - 1

    def excess(theta: float) -> float:
        spread = 1 + centre * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return (theta - value) ** 2 - z * z * theta * (1 - theta) * spread / (n1 * n0)

    # At 0 and 1 the variance vanishes too: step just inside, where the excess is negative.
    inside = min(max(value, _INSIDE), 1 - _INSIDE)
    low = 0.0 if value == 0 else float(optimize.brentq(excess, 0.0, inside))
    high = 1.0 if value == 1 else float(optimize.brentq(excess, inside, 1.0))
    return low, high
