"""The smallest number of records that is enough, for bounds that grow with the records but not at every step."""

from collections.abc import Callable

__all__ = ["fewest"]

# A rank grid shares the error among more ranks where it grows, so more records can certify a little less just there.
_GROWTH = 1.5
_SETTLED = 4  # enough at so many marks in a row is enough from there on


def fewest(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number from which on all suffice, up to ``most``; null if there is none.

    It is looked for between the numbers at which a rank grid grows.

    >>> fewest(lambda n: n * n >= 1000, 10**9)
    32
    """
    marks, power = [2], 1.0
    while marks[-1] < most:
        marks.append(max(marks[-1] + 1, min(most, 2 * round(power) + 1)))
        power *= _GROWTH
    settled = 0
    low, high = 1, None
    for mark in marks:
        settled = settled + 1 if enough(mark) else 0
        high = mark if settled == 1 else high
        low = mark if settled == 0 else low
        if settled == _SETTLED:
            break
    if settled == 0 or high is None:
        return None
    # Just before a mark the grid is still the smaller one.
    if high - 1 > low and not enough(high - 1):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
