"""A certified rate beside a false alarm rate as whole numbers out of 100, 1,000, ...: what people can picture."""

import math

__all__ = ["at_least", "out_of_many"]

_MOST = 1_000_000
_ROUNDING = 1e-9  # of 0.29 * 100
_KEPT = 0.95  # of a ratio or a share, at least, when it is told in whole numbers: about two digits


def out_of_many(rate: float, low: float) -> tuple[int, int, int]:
    """Return the smallest base of 100, 1,000, ... in which whole numbers keep the ratio, the hits, the false alarms.

    Args:
        rate: Of false alarms, in (0, 1); rounded up.
        low: Lower limit of the rate of hits, above ``rate``; rounded down.

    >>> out_of_many(0.01, 0.016)
    (1000, 16, 10)
    >>> out_of_many(0.1, 0.29)
    (100, 29, 10)
    >>> out_of_many(0.012, 0.044)  # not 4 and 2 out of 100, which would tell half of the ratio
    (1000, 44, 12)
    """
    base = 100
    while True:
        hits, alarms = math.floor(low * base + _ROUNDING), math.ceil(rate * base - _ROUNDING)
        told = rate * base >= 1 - _ROUNDING and hits > alarms and hits * rate >= _KEPT * low * alarms
        if told or base >= _MOST:
            return base, hits, alarms
        base *= 10


def at_least(share: float) -> str:
    """Return a lower limit as a whole number out of 100, or of more where 100 would lose much of it.

    >>> at_least(0.019), at_least(0.925)
    ('19 out of 1,000', '92 out of 100')
    """
    base = 100
    while base < _MOST and math.floor(share * base + _ROUNDING) < _KEPT * share * base:
        base *= 10
    return f"{math.floor(share * base + _ROUNDING):,} out of {base:,}"
