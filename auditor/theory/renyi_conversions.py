"""From Renyi divergences to epsilon, delta and advantage, and to Renyi divergences from epsilon and mu.

A Renyi guarantee bounds D_alpha(P || Q), in nats and for both orders of two neighbours, at one or several alpha > 1.
Every conversion from it holds for all mechanisms that meet it; with several alpha the best one counts.
"""

import math

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.tradeoff import TradeoffCurve
from auditor.values import Floats

__all__ = [
    "advantage_from_renyi",
    "curve_from_renyi",
    "delta_from_renyi",
    "epsilon_from_renyi",
    "renyi_from_mu",
    "renyi_from_pure_epsilon",
]

_LARGEST_EPSILON = 700.0


def epsilon_from_renyi(orders: npt.ArrayLike, *, divergences: npt.ArrayLike, delta: float) -> float:
    """Return an epsilon that Renyi divergences imply at this delta.

    At each order D + log(1 - 1/alpha) - log(alpha delta)/(alpha - 1); and 0 where delta^2 >= 1 - e^-D, since that
    bounds the total variation.

    Args:
        orders: alpha, each above 1, shape (k,) or one number.
        divergences: D_alpha at each order, 0 or more; infinity is allowed.
        delta: In [0, 1); 0 gives infinity unless a divergence is 0.

    Returns:
        Epsilon in nats, 0 or more, possibly infinite.

    Raises:
        InputError: A number out of range, or arrays that differ in length.

    Source: Canonne, Kamath and Steinke 2020, Proposition 12; Bretagnolle and Huber 1979 for the second.

    >>> round(epsilon_from_renyi([2, 4, 8, 16], divergences=[1, 2, 4, 8], delta=1e-5), 4)
    5.0879
    """
    alpha, renyi = _guarantee(orders, divergences)
    delta = _validate.fraction("delta", delta, zero=True)
    if delta**2 >= -math.expm1(-float(renyi.min())):
        return 0.0
    if delta == 0:
        return math.inf
    with np.errstate(over="ignore"):
        epsilons = renyi + np.log1p(-1 / alpha) - (np.log(alpha) + math.log(delta)) / (alpha - 1)
    return max(0.0, float(epsilons.min()))


def delta_from_renyi(orders: npt.ArrayLike, *, divergences: npt.ArrayLike, epsilon: float) -> float:
    """Return a delta that Renyi divergences imply at this epsilon, in [0, 1].

    At each order the smaller of e^((alpha - 1)(D - epsilon)) (1 - 1/alpha)^(alpha - 1) / alpha and sqrt(1 - e^-D).

    Args:
        orders: alpha, each above 1, shape (k,) or one number.
        divergences: D_alpha at each order, 0 or more; infinity is allowed.
        epsilon: In nats, 0 or more.

    Raises:
        InputError: A number out of range, or arrays that differ in length.

    Source: Canonne, Kamath and Steinke 2020, Proposition 12; Bretagnolle and Huber 1979 for the second.

    >>> round(delta_from_renyi([2, 4, 8, 16], divergences=[1, 2, 4, 8], epsilon=5.0879), 8)
    1e-05
    """
    alpha, renyi = _guarantee(orders, divergences)
    epsilon = _validate.nonnegative("epsilon", epsilon)
    return float(_deltas(alpha, renyi, np.array([epsilon]))[0])


def advantage_from_renyi(orders: npt.ArrayLike, *, divergences: npt.ArrayLike) -> float:
    """Return a bound on the advantage (TPR - FPR) that Renyi divergences imply, in [0, 1].

    The smallest of sqrt(D/2) (Pinsker), sqrt(1 - e^-D) (Bretagnolle and Huber) and the delta at epsilon 0. The first two
    are best as alpha tends to 1.

    Args:
        orders: alpha, each above 1, shape (k,) or one number.
        divergences: D_alpha at each order, 0 or more; infinity is allowed.

    Raises:
        InputError: A number out of range, or arrays that differ in length.

    Source: Mahloujifar et al. 2022, Section 3.2 (Pinsker); Canonne 2022, A short note on an inequality between KL and TV.

    >>> round(advantage_from_renyi([1.001], divergences=[0.02]), 6)
    0.1
    """
    alpha, renyi = _guarantee(orders, divergences)
    return min(math.sqrt(float(renyi.min()) / 2), float(_deltas(alpha, renyi, np.zeros(1))[0]))


def curve_from_renyi(
    orders: npt.ArrayLike, *, divergences: npt.ArrayLike, points: int = 401
) -> TradeoffCurve:
    """Return a trade-off curve that Renyi divergences imply: the lowest of those of their (epsilon, delta).

    So it never lies below the curve of a mechanism that meets them.

    Args:
        orders: alpha, each above 1, shape (k,) or one number.
        divergences: D_alpha at each order, 0 or more; infinity is allowed.
        points: Number of epsilons, 2 or more.

    Raises:
        InputError: A number out of range, or arrays that differ in length.

    Source: Canonne, Kamath and Steinke 2020, Proposition 12; Dong, Roth and Su 2022, Proposition 2.12.

    >>> round(curve_from_renyi([2, 4, 8, 16], divergences=[1, 2, 4, 8]).tpr_at(0.01), 3)  # 1-GDP, which they come from, allows .092
    0.142
    """
    alpha, renyi = _guarantee(orders, divergences)
    points = _validate.at_least("points", points, least=2)
    furthest = min(epsilon_from_renyi(alpha, divergences=renyi, delta=1e-300), _LARGEST_EPSILON)
    epsilons = furthest * np.linspace(0.0, 1.0, points) ** 2
    return TradeoffCurve.from_profile(epsilons, deltas=_deltas(alpha, renyi, epsilons))


def renyi_from_mu(mu: float, *, order: float) -> float:
    """Return the Renyi divergence that mu-GDP implies, alpha mu^2 / 2: exact for a Gaussian mechanism.

    Args:
        mu: 0 or more.
        order: alpha, above 1.

    Raises:
        InputError: A number out of range.

    Source: Dong, Roth and Su 2022, Corollary B.6; Mironov 2017, Proposition 7.

    >>> renyi_from_mu(2.0, order=3.0)
    6.0
    """
    mu = _validate.nonnegative("mu", mu)
    # The order last, so that a square beyond a double is infinite and not an error.
    return mu * (mu / 2) * _order(order)


def renyi_from_pure_epsilon(epsilon: float, *, order: float) -> float:
    """Return the largest Renyi divergence of an (epsilon, 0)-DP mechanism: that of randomised response.

    log((e^(alpha epsilon) + e^((1 - alpha) epsilon)) / (1 + e^epsilon)) / (alpha - 1), at most epsilon and about
    alpha epsilon^2 / 2 for small epsilons.

    Args:
        epsilon: In nats, 0 or more.
        order: alpha, above 1.

    Raises:
        InputError: A number out of range.

    Source: Mironov 2017, Proposition 5 and Table II.

    >>> round(renyi_from_pure_epsilon(1.0, order=2.0), 6)
    0.735326
    """
    epsilon, alpha = _validate.nonnegative("epsilon", epsilon), _order(order)
    if alpha * epsilon > 1:
        whole = np.logaddexp(alpha * epsilon, (1 - alpha) * epsilon) - np.logaddexp(0.0, epsilon)
        return min(epsilon, float(whole) / (alpha - 1))
    # The difference of two hyperbolic cosines as a product, so that a small epsilon keeps its digits.
    product = 2 * math.sinh(alpha * epsilon / 2) * math.sinh((alpha - 1) * epsilon / 2)
    return math.log1p(product / math.cosh(epsilon / 2)) / (alpha - 1)


def _deltas(alpha: Floats, renyi: Floats, epsilons: Floats) -> Floats:
    """The smallest delta over the orders at each epsilon."""
    with np.errstate(over="ignore"):
        exponents = (alpha - 1) * (renyi - epsilons[:, None] + np.log1p(-1 / alpha)) - np.log(alpha)
    tails = np.exp(np.minimum(exponents, 0.0).min(axis=1))
    return np.asarray(np.minimum(tails, math.sqrt(-math.expm1(-float(renyi.min())))))


def _order(order: float) -> float:
    order = _validate.number("order", order)
    if order <= 1:
        raise InputError(f"order must be above 1, got {order:g}.")
    return order


def _guarantee(orders: npt.ArrayLike, divergences: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Orders and divergences as two checked arrays."""
    alpha, renyi = np.atleast_1d(
        np.asarray(orders, dtype=np.float64), np.asarray(divergences, dtype=np.float64)
    )
    _validate.same_length(("orders", "divergences"), (alpha.size, renyi.size))
    _validate.at_least("number of orders", alpha.size, least=1)
    for name, values, wrong, rule in (
        ("orders", alpha, ~((alpha > 1) & (alpha < np.inf)), "be finite and above 1"),
        ("divergences", renyi, ~(renyi >= 0), "be 0 or more"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(f"{name} must {rule}, got {values[at]:g} at position {at}.")
    return alpha, renyi
