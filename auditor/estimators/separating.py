"""Thresholds that sort the audited records just as a record's own loss does, and are no record's loss.

A result holds no raw losses. Where a threshold is the loss of a record, any number between it and its neighbour gives the
same counts; the one with the fewest digits is told.
"""

import numpy as np

from auditor.values import Losses

__all__ = ["just_above", "just_below"]

_LARGEST = float(np.finfo(np.float64).max)
_DIGITS = 17  # what a double holds


def just_below(losses: Losses, threshold: float) -> float | None:
    """Return a number below this loss and above all smaller ones; None where no double lies between.

    >>> losses = Losses(member=[0.1234, 0.5], nonmember=[0.4567, 0.9])
    >>> just_below(losses, 0.4567), just_below(losses, 0.1234)
    (0.3, -0.07)
    """
    groups = losses.sorted_member, losses.sorted_nonmember
    places = [int(np.searchsorted(group, threshold, side="left")) for group in groups]
    smaller = [float(group[at - 1]) for group, at in zip(groups, places, strict=True) if at > 0]
    if smaller:
        return _between(max(smaller), threshold)
    return _between(threshold - _reach(threshold, max(float(group[-1]) for group in groups)), threshold)


def just_above(losses: Losses, threshold: float) -> float | None:
    """Return a number above this loss and below all larger ones; None where no double lies between.

    >>> just_above(Losses(member=[0.1234, 0.5], nonmember=[0.4567, 0.9]), 0.1234)
    0.3
    """
    groups = losses.sorted_member, losses.sorted_nonmember
    places = [int(np.searchsorted(group, threshold, side="right")) for group in groups]
    larger = [float(group[at]) for group, at in zip(groups, places, strict=True) if at < group.size]
    if larger:
        return _between(threshold, min(larger))
    return _between(threshold, threshold + _reach(threshold, min(float(group[0]) for group in groups)))


def _reach(threshold: float, other: float) -> float:
    """How far to look beyond the last loss: about as far as the losses reach."""
    return abs(threshold / 2 - other / 2) or abs(threshold) or 1.0


def _between(low: float, high: float) -> float | None:
    """The number of fewest digits strictly between, near the middle."""
    low, high = max(low, -_LARGEST), min(high, _LARGEST)
    middle = low / 2 + high / 2
    numbers = (float(f"{middle:.{digits}g}") for digits in range(1, _DIGITS + 1))
    return next((number for number in numbers if low < number < high), None)
