"""Scored losses: new values under the same labels."""

import dataclasses

import numpy as np
import numpy.typing as npt

from auditor.values import Floats, Losses, LossScale

__all__ = ["finite_difference", "finite_ratio", "scored"]

_LARGEST = float(np.finfo(np.float64).max)


def scored(losses: Losses, *, member: Floats, nonmember: Floats, step: str) -> Losses:
    """Return the losses with new values, all labels kept, and the step in the history; their scale is now unknown."""
    for fresh in (member, nonmember):
        fresh.setflags(write=False)  # so that it need not be copied
    return dataclasses.replace(
        losses, member=member, nonmember=nonmember, scale=LossScale.UNKNOWN, history=(*losses.history, step)
    )


def finite_difference(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Return x - y, cut at the largest float."""
    with np.errstate(over="ignore"):
        return np.clip(np.subtract(x, y), -_LARGEST, _LARGEST)


def finite_ratio(x: Floats, y: Floats) -> Floats:
    """Return x/y for y > 0, cut at the largest float."""
    with np.errstate(over="ignore"):
        return np.clip(x / y, -_LARGEST, _LARGEST)
