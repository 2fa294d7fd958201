"""From one way of stating privacy to another: epsilon and delta, mu of Gaussian DP, advantage, and error rates.

Also for whole trade-off curves, and what a step gains by sampling; Renyi divergences have theirs in `auditor.theory.renyi`.
Two kinds are kept apart: what holds for every mechanism with the first statement, and what holds for Gaussian mechanisms
only; each docstring says which. All epsilons are in nats.
"""

import math
import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from auditor.core import validate
from auditor.core.values import Floats
from auditor.curves.tradeoff import TradeoffCurve, concave_corners
from auditor.theory.gaussian import array_of, gaussian_delta, gaussian_epsilon, gaussian_mu, log_mixture

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


def mu_from_rates(fpr: float, fnr: float) -> float:
    """Return the smallest mu at which mu-GDP allows a test with these error rates, |Phi^-1(1 - FPR) - Phi^-1(FNR)|.

    Args:
        fpr: False positive rate, in [0, 1].
        fnr: False negative rate, in [0, 1].

    Returns:
        mu, 0 or more; infinity if one rate is 0 or 1 and the other does not make up for it.

    Raises:
        InputError: A rate out of range.

    Source: Dong, Roth and Su 2022, Definition 2.6.

    >>> round(mu_from_rates(0.15865525393145707, 0.5), 6)
    1.0
    """
    fpr, fnr = _rate("fpr", fpr), _rate("fnr", fnr)
    if fpr + fnr == 1:
        return 0.0
    return abs(float(ndtri(fpr)) + float(ndtri(fnr)))


def _rate(name: str, value: float) -> float:
    return validate.fraction(name, value, zero=True, one=True)


# --- From a trade-off curve to epsilon, delta, mu and advantage, exactly for curves made of straight pieces ---
#
# Every number here is the smallest one whose own curve lies above the given one. The other way round there are
# `TradeoffCurve.from_epsilon_delta`, `TradeoffCurve.from_profile` and `auditor.theory.gdp_curve`. The curve is taken as
# exact: from measured losses these are estimates, not bounds.

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
    delta = validate.fraction("delta", delta, zero=True)
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
    return float(profile_from_curve(curve, epsilons=[validate.nonnegative("epsilon", epsilon)])[0])


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
    values = np.atleast_1d(array_of("epsilons", epsilons, lambda x: x >= 0, "0 or more"))
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
    epsilon = validate.nonnegative("epsilon", epsilon)
    delta = validate.fraction("delta", delta, zero=True, one=True)
    rate = validate.fraction("sampling_rate", sampling_rate, one=True)
    return EpsilonDelta(float(log_mixture(epsilon, rate)), rate * delta)


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
