"""From one way of stating privacy to another: epsilon and delta, mu of Gaussian DP, advantage, and error rates.

Also from one trade-off curve to another, as where a step gains by sampling; what a curve says is read off it with its
own methods, and Renyi divergences have theirs in `auditor.theory.renyi`.
Two kinds are kept apart: what holds for every mechanism with the first statement, and what holds for Gaussian mechanisms
only; each docstring says which. All epsilons are in nats.
"""

import math

import numpy as np

from auditor.core import validate
from auditor.curves.tradeoff import TradeoffCurve, concave_corners
from auditor.theory.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, log_mixture

# --- Between epsilon and delta, mu, the advantage and error rates ---


def epsilon_from_mu(mu: float, *, delta: float) -> float:
    """Return the smallest epsilon at this delta that mu-GDP implies, for every mu-GDP mechanism.

    Args:
        mu: 0 or more.
        delta: In [0, 1); at 0 only mu = 0 has a finite epsilon.

    Raises:
        InputError: A number out of range.

    Source: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.

    >>> round(epsilon_from_mu(0.5, delta=1e-5), 6)
    1.993091
    """
    mu, delta = validate.nonnegative("mu", mu), validate.fraction("delta", delta, zero=True)
    return gaussian_epsilon(mu, delta=delta)


def delta_from_mu(mu: float, *, epsilon: float) -> float:
    """Return the smallest delta at this epsilon that mu-GDP implies, for every mu-GDP mechanism.

    Args:
        mu: 0 or more.
        epsilon: 0 or more.

    Raises:
        InputError: A number out of range.

    Source: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.

    >>> round(delta_from_mu(1.0, epsilon=1.0), 8)
    0.12693674
    """
    mu, epsilon = validate.nonnegative("mu", mu), validate.nonnegative("epsilon", epsilon)
    return gaussian_delta(mu, epsilon=epsilon)


def mu_from_epsilon(epsilon: float, *, delta: float) -> float:
    """Return the mu of the Gaussian mechanism that is exactly (epsilon, delta)-DP.

    For Gaussian mechanisms only: (epsilon, delta)-DP with a delta above 0 implies no mu at all, since it allows a true
    positive rate of delta without a false positive.

    Args:
        epsilon: 0 or more.
        delta: In [0, 1); 0 gives 0.

    Raises:
        InputError: A number out of range.

    Source: Balle and Wang 2018, Theorem 8, solved for mu.

    >>> round(mu_from_epsilon(1.0, delta=1e-5), 6), round(mu_from_epsilon(8.0, delta=1e-5), 6)
    (0.268051, 1.666031)
    """
    epsilon = validate.nonnegative("epsilon", epsilon)
    return gaussian_mu(epsilon, delta=validate.fraction("delta", delta, zero=True))


def advantage_from_mu(mu: float) -> float:
    """Return the largest advantage (TPR - FPR) that mu-GDP allows, 2 Phi(mu/2) - 1; Bayes security is 1 minus it.

    Args:
        mu: 0 or more.

    Raises:
        InputError: mu is negative.

    Source: Dong, Roth and Su 2022, Corollary 2.13 at epsilon 0.

    >>> round(advantage_from_mu(1.0), 8)
    0.38292492
    """
    return math.erf(validate.nonnegative("mu", mu) / (2 * math.sqrt(2)))


def epsilon_from_rates(fpr: float, fnr: float, *, delta: float) -> float:
    """Return the smallest epsilon at which (epsilon, delta)-DP allows a test with these error rates.

    The rates are exact ones; for rates measured on records see `auditor.estimators.certified`.

    Args:
        fpr: False positive rate, in [0, 1].
        fnr: False negative rate, in [0, 1].
        delta: In [0, 1).

    Returns:
        Epsilon, 0 or more; infinity if no epsilon allows them.

    Raises:
        InputError: A rate out of range.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 2.4, for both orders of the two neighbours.

    >>> round(epsilon_from_rates(0.001, 0.8, delta=0.001), 6)
    5.293305
    """
    fpr, fnr = _rate("fpr", fpr), _rate("fnr", fnr)
    delta = validate.fraction("delta", delta, zero=True)
    pairs = ((1 - fnr, fpr), (1 - fpr, fnr), (fnr, 1 - fpr), (fpr, 1 - fnr))
    # Nothing over anything is no evidence, and a positive number over 0 infinite.
    ratios = [
        math.log(larger - delta) - math.log(smaller) if smaller else math.inf
        for larger, smaller in pairs
        if larger > delta
    ]
    return max([0.0, *ratios])


def _rate(name: str, value: float) -> float:
    return validate.fraction(name, value, zero=True, one=True)


# --- From one trade-off curve to another ---


def replaced_curve(curve: TradeoffCurve) -> TradeoffCurve:
    """Return what an add/remove curve T allows for replaced records: T(T(FPR)), removing and then adding.

    P(S) <= T(P'(S)) <= T(T(P''(S))), since T never falls. Exact on straight pieces: the corners lie where T has one, or
    leads to one. Covers both orders of two neighbours if T does.

    Args:
        curve: For added or removed records, concave, corners joined by straight lines.

    Raises:
        InputError: The curve is no TradeoffCurve.

    Source: Dong, Roth and Su 2022, Theorem 2.14, for groups of two.

    >>> pure = replaced_curve(TradeoffCurve.from_epsilon_delta(1.0, delta=0.0))
    >>> round(pure.tpr_at(0.01), 6)  # .01 e^2
    0.073891
    """
    validate.instance("curve", curve, [TradeoffCurve])
    # Without what comes before the jump at 0, and after TPR 1: there T is one number for each rate, and has an inverse.
    rising = np.concatenate([np.diff(curve.tpr) > 0, [False]]) | (curve.tpr == 1)
    first = int(np.flatnonzero(curve.fpr == 0)[-1])
    fpr, tpr = curve.fpr[first:], curve.tpr[first:]
    rising = rising[first:] & (np.cumsum(tpr == 1) <= 1)
    before = np.interp(fpr[fpr >= tpr[0]], tpr[rising], fpr[rising])
    corners = np.unique(np.concatenate([fpr, before]))
    twice = np.interp(np.interp(corners, fpr, tpr), fpr, tpr)
    return TradeoffCurve(
        fpr=np.concatenate([[0.0], corners]), tpr=np.concatenate([[0.0], np.maximum.accumulate(twice)])
    )


# --- What a step gains when it sees only a random part of the records: amplification by subsampling ---
#
# Let a step be (epsilon, delta)-DP on its batch. With sampling rate q the sampled step is
#
#     (log(1 + q (e^epsilon - 1)), q delta)-DP.
#
# Which neighbours this is about depends on how batches are drawn (Balle, Barthe and Gaboardi 2018):
#
# * independent coins (Poisson): add/remove, from the step's add/remove epsilon and delta;
# * batches of a fixed size without repetition: replace-one, from the step's replace-one epsilon and delta;
# * independent coins, replaced records: the same formula holds if the step is (epsilon, delta)-DP both when a record is
#   replaced and when it is left out [own, from their advanced joint convexity]. A Gaussian step's replace-one numbers
#   (twice the distance) cover both. It is loose: the step's own pair of laws gives less.


def amplified(epsilon: float, *, delta: float, sampling_rate: float) -> tuple[float, float]:
    """Return what an (epsilon, delta)-DP step promises on a random part of the records.

    Poisson sampling: for added or removed records. Batches of a fixed size: for replaced records. See the module.

    Args:
        epsilon: Of the step without sampling, in nats, 0 or more, for the same neighbours.
        delta: Of the step without sampling, in [0, 1].
        sampling_rate: Probability that a record is in the batch, in (0, 1].

    Raises:
        InputError: A number out of range.

    Source: Balle, Barthe and Gaboardi 2018, Theorems 8 and 9; Li, Qardaji and Su 2012.

    >>> [round(value, 12) for value in amplified(1.0, delta=1e-5, sampling_rate=0.01)]  # epsilon and delta
    [0.017036863236, 1e-07]
    """
    epsilon = validate.nonnegative("epsilon", epsilon)
    delta = validate.fraction("delta", delta, zero=True, one=True)
    rate = validate.fraction("sampling_rate", sampling_rate, one=True)
    return float(log_mixture(epsilon, rate)), rate * delta


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
    validate.instance("curve", curve, [TradeoffCurve])
    rate = validate.fraction("sampling_rate", sampling_rate, one=True)
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
