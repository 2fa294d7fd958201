"""The Pareto frontier of strategies in the plane of utility and privacy loss: which are worth choosing among?

Negoescu et al. 2024, Section 4.2: no convex combination of other strategies has a higher utility or a higher privacy.
Taken exactly: strategy i is off the frontier if there are weights w >= 0 that sum to 1 with

    sum_j w_j u_j >= u_i   and   sum_j w_j l_j <= l_i,   one of them strictly

A combination is what one gets, on average, by a coin between strategies. A strategy on the straight line between two
corners is on the frontier and no corner. One of infinite privacy loss is no part of any combination of finite loss, so it
is on the frontier just where its utility is above that of all others. Everything is decided on the numbers as they are,
without rounding.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from auditor import _validate
from auditor.errors import InputError

__all__ = ["is_on_frontier", "pareto_frontier"]

Exact = tuple[Fraction, Fraction]


def pareto_frontier(utility: Sequence[float], *, privacy_loss: Sequence[float]) -> tuple[int, ...]:
    """Return the positions of the corners of the frontier, lowest utility (and loss) first.

    Of strategies at the same place the first is named.

    Args:
        utility: Shape (n,), finite, more is better.
        privacy_loss: Shape (n,), less is better, such as an epsilon; may be infinite, never minus infinite.

    Raises:
        InputError: NaN, an infinite utility, a loss of minus infinity, or different lengths.

    >>> pareto_frontier([0.7, 0.9, 0.8, 0.75], privacy_loss=[1.0, 3.0, 2.5, 2.5])
    (0, 1)
    >>> pareto_frontier([0.7, 0.9, 0.85], privacy_loss=[1.0, float("inf"), 2.5])
    (0, 2, 1)
    """
    points = _points(utility, privacy_loss)
    corners = _corners(points)
    first = {point: at for at, point in reversed(list(enumerate(points)))}
    return tuple(first[point] for point in corners)


def is_on_frontier(utility: Sequence[float], *, privacy_loss: Sequence[float]) -> tuple[bool, ...]:
    """Return which strategies are on the frontier: its corners, what is at the same place, and what lies between two.

    Args:
        utility: Shape (n,), finite, more is better.
        privacy_loss: Shape (n,), less is better; may be infinite, never minus infinite.

    Raises:
        InputError: As for `pareto_frontier`.

    >>> is_on_frontier([1.0, 2.0, 3.0, 2.0], privacy_loss=[1.0, 2.0, 3.0, 3.0])
    (True, True, True, False)
    """
    points = _points(utility, privacy_loss)
    corners = _corners(points)
    finite = [(u, loss) for u, loss in corners if loss is not None]
    return tuple(point in corners or _between(point, finite) for point in points)


Point = tuple[Fraction, Fraction | None]  # the loss is None where it is infinite


def _points(utility: Sequence[float], privacy_loss: Sequence[float]) -> list[Point]:
    utility, privacy_loss = list(utility), list(privacy_loss)
    _validate.same_length(("utility", "privacy_loss"), (len(utility), len(privacy_loss)))
    found: list[Point] = []
    for at, (u, loss) in enumerate(zip(utility, privacy_loss, strict=True)):
        endless = loss == math.inf
        try:
            found.append(
                (
                    Fraction(_validate.number("utility", u)),
                    None if endless else Fraction(_validate.number("privacy_loss", loss)),
                )
            )
        except InputError as error:
            raise InputError(f"{str(error).removesuffix('.')} (strategy {at}, counting from 0).") from None
    return found


def _corners(points: Sequence[Point]) -> list[Point]:
    """The corners, in ascending order of both."""
    finite = {(u, loss) for u, loss in points if loss is not None}
    chain: list[Exact] = []
    # Cheapest first; of equally cheap ones only the most useful rises above what came before.
    for point in sorted(finite, key=lambda item: (item[1], -item[0])):
        if chain and point[0] <= chain[-1][0]:
            continue
        while len(chain) > 1 and _rise(chain[-2], chain[-1], point) >= 0:
            chain.pop()
        chain.append(point)
    most = max((u for u, loss in points if loss is None), default=None)
    endless: list[Point] = [] if most is None or (chain and most <= chain[-1][0]) else [(most, None)]
    return [*chain, *endless]


def _rise(first: Exact, middle: Exact, last: Exact) -> Fraction:
    """Above 0 where the utility grows faster after the middle than before it, 0 on a straight line."""
    return (last[0] - middle[0]) * (middle[1] - first[1]) - (middle[0] - first[0]) * (last[1] - middle[1])


def _between(point: Point, corners: Sequence[Exact]) -> bool:
    """Whether it lies on the straight line between two neighbouring corners."""
    u, loss = point
    if loss is None:
        return False
    return any(
        low[1] < loss < high[1] and _rise(low, (u, loss), high) == 0
        for low, high in itertools.pairwise(corners)
    )
