"""A certified rate beside a false alarm rate as whole numbers out of 100, 1,000, ...: what people can picture."""

import math

__all__ = ["out_of_many"]

_MOST = 1_000_000
_ROUNDING = 1e-9  # of 0.29 * 100


def out_of_many(rate: float, low: float) -> tuple[int, int, int]:
    """Return the smallest base of 100, 1,000, ... of which whole numbers tell the two apart, the hits, the false alarms.

    Args:
        rate: Of false alarms, in (0, 1); rounded up.
        low: Lower limit of the rate of hits, above ``rate``; rounded down.

    >>> out_of_many(0.01, 0.016)
    (1000, 16, 10)
    >>> out_of_many(0.1, 0.29)
    (100, 29, 10)
    """
    base = 100
    while base < _MOST and (
        rate * base < 1 - _ROUNDING
        or math.floor(low * base + _ROUNDING) <= math.ceil(rate * base - _ROUNDING)
    ):
        base *= 10
    return base, math.floor(low * base + _ROUNDING), math.ceil(rate * base - _ROUNDING)
