"""What a step gains when it sees only a random part of the records: amplification by subsampling.

Let a step be (epsilon, delta)-DP on its batch. With sampling rate q the sampled step is

    (log(1 + q (e^epsilon - 1)), q delta)-DP.

Which neighbours this is about depends on how batches are drawn (Balle, Barthe and Gaboardi 2018):

* independent coins (Poisson): add/remove, from the step's add/remove epsilon and delta;
* batches of a fixed size without repetition: replace-one, from the step's replace-one epsilon and delta;
* independent coins, replaced records: the same formula holds if the step is (epsilon, delta)-DP both when a record is
  replaced and when it is left out [own, from their advanced joint convexity]. A Gaussian step's replace-one numbers
  (twice the distance) cover both. It is loose: the step's own pair of laws gives less.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor._envelope import concave_corners
from auditor.tradeoff import TradeoffCurve
from auditor.values import Floats

__all__ = ["EpsilonDelta", "amplified", "amplified_curve", "amplified_epsilons", "symmetric_amplified_curve"]


class EpsilonDelta(NamedTuple):
    """One promise: epsilon in nats, 0 or more and possibly infinite; delta in [0, 1]."""

    epsilon: float
    delta: float


def amplified(epsilon: float, *, delta: float, sampling_rate: float) -> EpsilonDelta:
    """Return what an (epsilon, delta)-DP step promises on a random part of the records.

    Poisson sampling: for added or removed records. Batches of a fixed size: for replaced records. See the module.

    Args:
        epsilon: Of the step without sampling, in nats, 0 or more, for the same neighbours.
        delta: Of the step without sampling, in [0, 1].
        sampling_rate: Probability that a record is in the batch, in (0, 1].

    Raises:
        InputError: A number out of range.

    Source: Balle, Barthe and Gaboardi 2018, Theorems 8 and 9; Li, Qardaji and Su 2012.

    >>> small = amplified(1.0, delta=1e-5, sampling_rate=0.01)
    >>> round(small.epsilon, 8), round(small.delta, 12)
    (0.01703686, 1e-07)
    """
    epsilon = _validate.nonnegative("epsilon", epsilon)
    delta = _validate.fraction("delta", delta, zero=True, one=True)
    rate = _validate.fraction("sampling_rate", sampling_rate, one=True)
    return EpsilonDelta(float(amplified_epsilons(epsilon, sampling_rate=rate)), rate * delta)


def amplified_epsilons(epsilons: npt.ArrayLike, *, sampling_rate: npt.ArrayLike) -> Floats:
    """Return log(1 + q (e^epsilon - 1)) for arrays that go together, infinite epsilons too, without overflow."""
    epsilon, rate = np.asarray(epsilons, dtype=np.float64), np.asarray(sampling_rate, dtype=np.float64)
    # For small epsilons the first form keeps the digits, for large ones the second does not overflow.
    small = np.log1p(rate * np.expm1(np.minimum(epsilon, 1.0)))
    rest = np.where(rate < 1, np.log1p(-np.minimum(rate, 1 - 1e-16)), -np.inf)
    return np.asarray(np.where(epsilon <= 1, small, np.logaddexp(rest, np.log(rate) + epsilon)))


def amplified_curve(curve: TradeoffCurve, *, sampling_rate: float) -> TradeoffCurve:
    """Return the trade-off curve of a sampled step in one order, TPR = q T(FPR) + (1 - q) FPR.

    In the papers' error rates: f_q(x) = q f(x) + (1 - q)(1 - x). It is the curve of telling "the record may be in"
    from "the record is out"; the other order has its mirror image.

    Args:
        curve: Of the step without sampling.
        sampling_rate: Probability q that the record is in the batch, in (0, 1].

    Raises:
        InputError: The curve is no TradeoffCurve, or the sampling rate is out of range.

    Source: Dong, Roth and Su 2022, Section 4.

    >>> amplified_curve(TradeoffCurve([0.0, 0.2, 1.0], [0.0, 0.8, 1.0]), sampling_rate=0.5).tpr_at(0.2)
    0.5
    """
    _validate.instance("curve", curve, [TradeoffCurve])
    rate = _validate.fraction("sampling_rate", sampling_rate, one=True)
    tpr = rate * curve.tpr + (1 - rate) * curve.fpr
    # The two weights may add up to a rounding less than 1.
    tpr[-1] = 1.0
    return TradeoffCurve(fpr=curve.fpr, tpr=np.maximum.accumulate(np.minimum(tpr, 1.0)))


def symmetric_amplified_curve(curve: TradeoffCurve, *, sampling_rate: float) -> TradeoffCurve:
    """Return the trade-off curve of a sampled step for both orders, min(f_q, f_q^-1)** in the papers' error rates.

    As a curve of true positive rates: the smallest concave curve above that of `amplified_curve` and its mirror image
    in the line TPR = 1 - FPR. Exact on piecewise linear curves.

    Args:
        curve: Of the step without sampling, for both orders.
        sampling_rate: Probability that a record is in the batch, in (0, 1].

    Raises:
        InputError: The curve is no TradeoffCurve, or the sampling rate is out of range.

    Source: Dong, Roth and Su 2022, Theorem 4.2.

    >>> step = TradeoffCurve.from_epsilon_delta(1.0, delta=0.0)
    >>> round(symmetric_amplified_curve(step, sampling_rate=0.5).tpr_at(0.5), 6)
    0.731059
    """
    one = amplified_curve(curve, sampling_rate=sampling_rate)
    fpr, tpr = np.concatenate([one.fpr, 1 - one.tpr]), np.concatenate([one.tpr, 1 - one.fpr])
    order = np.lexsort((tpr, fpr))
    fpr, tpr = concave_corners(fpr[order], tpr[order])
    # A curve that reaches TPR 1 early has lost its last corner.
    ends = [1.0] if fpr[-1] < 1 else []
    return TradeoffCurve(fpr=np.concatenate([fpr, ends]), tpr=np.concatenate([tpr, ends]))
