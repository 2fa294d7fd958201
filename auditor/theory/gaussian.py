"""The Gaussian mechanism's exact epsilon: what a composition of unsampled Gaussian steps amounts to."""

import math
import sys

__all__ = ["gaussian_epsilon"]

# Beyond this shift (in noise standard deviations) the squares below leave the range of a double.
_LARGEST_MU = 1e150
# Phi(-40) is about 4e-350, below every positive double, so the root below cannot lie further out.
_LOWEST = -40.0
# Phi(35) is 1 to 260 digits, and a little further out erfcx overflows.
_HIGHEST = 35.0


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
