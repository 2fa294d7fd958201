"""The Gaussian mechanism's exact epsilon, delta and mu: what a composition of unsampled Gaussian steps amounts to.

N(mu, 1) against N(0, 1): delta(eps) = Phi(a) - e^eps Phi(a - mu) with a = mu/2 - eps/mu (Balle and Wang 2018,
Theorem 8). All functions here work with a, in which the two tails never cancel.
"""

import math
import sys

import numpy as np
import numpy.typing as npt

from auditor.values import Floats

__all__ = [
    "gaussian_delta",
    "gaussian_deltas",
    "gaussian_epsilon",
    "gaussian_epsilons",
    "gaussian_mu",
    "log_delta_at",
]

# Beyond this shift (in noise standard deviations) the squares below leave the range of a double.
_LARGEST_MU = 1e150
# Phi(-40) is about 4e-350, below every positive double, so the root below cannot lie further out.
_LOWEST = -40.0
# Phi(35) is 1 to 260 digits, and a little further out erfcx overflows.
_HIGHEST = 35.0
# From here on the tail is 0, and the square of a still is a double.
_FURTHEST = -1e8
# Halvings of [_LOWEST, _HIGHEST] until neighbouring doubles are reached.
_HALVINGS = 60
# Below this distance two tails are subtracted by their series.
_CLOSE = 1e-3
_TERMS = 5


def gaussian_epsilon(mu: float, *, delta: float) -> float:
    """Return the smallest epsilon at which N(mu, 1) and N(0, 1) are (epsilon, delta)-indistinguishable.

    Exact up to rounding for every mu, large or small: the unknown is a = mu/2 - epsilon/mu, in which the two
    normal tails never cancel.

    Args:
        mu: Distance of the means in noise standard deviations, 0 or more: sqrt(steps) / noise multiplier for
            add/remove neighbours, twice that for replace-one.
        delta: In [0, 1); 0 gives infinity unless ``mu`` is 0.

    Returns:
        Epsilon in nats, 0 or more, possibly infinity.

    Source: Balle and Wang 2018, Theorem 8.

    >>> round(gaussian_epsilon(1.0, delta=1e-5), 6)
    4.377178
    """
    from scipy.optimize import brentq
    from scipy.special import erfcx, log_ndtr

    # Edge cases: identical distributions; no finite epsilon.
    if mu == 0:
        return 0.0
    if delta == 0 or mu > _LARGEST_MU:
        return math.inf

    def excess(a: float) -> float:
        # delta = Phi(a) - e^eps Phi(a - mu) with eps = mu (mu/2 - a), and e^eps cancels against the densities:
        # e^eps Phi(a - mu) / Phi(a) = erfcx((mu - a)/sqrt2) / erfcx(-a/sqrt2).
        ratio = erfcx((mu - a) / math.sqrt(2)) / erfcx(-a / math.sqrt(2))
        # The floor keeps the sign right where mu is too small for the two tails to differ in a double.
        return float(log_ndtr(a)) + math.log(max(1 - ratio, sys.float_info.min)) - math.log(delta)

    highest = min(mu / 2, _HIGHEST)  # a = mu/2 is epsilon 0
    if excess(highest) <= 0:
        return 0.0
    return mu * (mu / 2 - float(brentq(excess, _LOWEST, highest, xtol=1e-13, rtol=1e-14)))


def gaussian_epsilons(mus: npt.ArrayLike, *, deltas: npt.ArrayLike) -> Floats:
    """Return `gaussian_epsilon` for many settings at once, rounded up.

    Args:
        mus: Any shape, 0 or more.
        deltas: A shape that goes with it, 0 or more; from 1 on the epsilon is 0.

    >>> gaussian_epsilons([0.5, 1.0, 2.0], deltas=1e-5).round(6).tolist()
    [1.993091, 4.377178, 9.997256]
    """
    mu, delta = np.broadcast_arrays(np.asarray(mus, dtype=np.float64), np.asarray(deltas, dtype=np.float64))
    usable = (mu > 0) & (mu <= _LARGEST_MU) & (delta > 0)
    result = np.where((mu == 0) | (delta >= 1), 0.0, np.inf)
    mu, log_delta = mu[usable], np.log(np.minimum(delta[usable], 1.0))
    low, high = np.full_like(mu, _LOWEST), np.minimum(mu / 2, _HIGHEST)
    none = log_delta_at(high, mu) <= log_delta
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        over = log_delta_at(middle, mu) > log_delta
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    result[usable] = np.where(none, 0.0, mu * (mu / 2 - low))
    return result


def gaussian_delta(mu: float, *, epsilon: float) -> float:
    """Return the smallest delta at which N(mu, 1) and N(0, 1) are (epsilon, delta)-indistinguishable.

    Args:
        mu: Distance of the means in noise standard deviations, 0 or more.
        epsilon: In nats, 0 or more.

    Returns:
        Delta in [0, 1], precise to its last digits even when tiny.

    Source: Balle and Wang 2018, Theorem 8.

    >>> round(gaussian_delta(1.0, epsilon=1.0), 8)
    0.12693674
    """
    return float(gaussian_deltas(mu, epsilons=epsilon))


def gaussian_deltas(mu: float, *, epsilons: npt.ArrayLike) -> Floats:
    """Return `gaussian_delta` at many epsilons at once, in their shape.

    >>> gaussian_deltas(1.0, epsilons=[0.0, 1.0]).round(8).tolist()
    [0.38292492, 0.12693674]
    """
    epsilon = np.asarray(epsilons, dtype=np.float64)
    if mu == 0:
        return np.zeros_like(epsilon)
    with np.errstate(over="ignore"):
        a = mu / 2 - epsilon / mu
    return np.asarray(np.exp(log_delta_at(np.clip(a, _FURTHEST, None), np.asarray(mu))))


def gaussian_mu(epsilon: float, *, delta: float) -> float:
    """Return the largest mu at which N(mu, 1) and N(0, 1) are (epsilon, delta)-indistinguishable.

    Args:
        epsilon: In nats, 0 or more.
        delta: In [0, 1); 0 gives 0, since no other Gaussian mechanism has a finite epsilon at delta 0.

    Source: Balle and Wang 2018, Theorem 8, solved for mu.

    >>> round(gaussian_mu(1.0, delta=1e-5), 6), round(gaussian_mu(8.0, delta=1e-5), 6)
    (0.268051, 1.666031)
    """
    from scipy.optimize import brentq
    from scipy.special import erfinv

    if delta == 0:
        return 0.0
    if epsilon == 0:  # delta = 2 Phi(mu/2) - 1
        return 2 * math.sqrt(2) * float(erfinv(delta))

    # With mu = sqrt(2 eps) e^u the unknown a = mu/2 - eps/mu is sqrt(2 eps) sinh(u): nothing cancels.
    scale = math.sqrt(2) * math.sqrt(epsilon)

    def excess(u: float) -> float:
        mu = scale * math.exp(u)
        return float(log_delta_at(np.asarray(scale * math.sinh(u)), np.asarray(mu))) - math.log(delta)

    low, high = math.asinh(_LOWEST / scale), math.asinh(_HIGHEST / scale)
    return scale * math.exp(float(brentq(excess, low, high, xtol=1e-16 * high, rtol=1e-15)))


def log_delta_at(a: Floats, mu: Floats) -> Floats:
    """Return log(Phi(a) - e^eps Phi(a - mu)), eps = mu (mu/2 - a), for a of -1e8 or more and mu above 0."""
    from scipy.special import erfcx, log_ndtr

    # e^eps Phi(a - mu) / Phi(a) = erfcx(x + h) / erfcx(x). Beyond the cap on a the second tail is nothing.
    x, h = -np.minimum(a, _HIGHEST) / math.sqrt(2), np.asarray(mu / math.sqrt(2))
    first = erfcx(x)
    # The Taylor series of erfcx around x, for tails that are too close to be subtracted.
    before, last = first, 2 * x * first - 2 / math.sqrt(math.pi)
    near = np.minimum(h, _CLOSE)
    series, power = -near * last, near
    for order in range(2, _TERMS + 1):
        before, last = last, 2 * (order - 1) * before + 2 * x * last
        power = power * near / order
        series = series - power * last
    gap = np.where(h < _CLOSE, series / first, 1 - erfcx(x + h) / first)
    return np.asarray(log_ndtr(a) + np.log(np.maximum(gap, sys.float_info.min)))
