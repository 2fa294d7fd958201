"""Transforms: losses in, losses out, and smaller still means more like a member.

The published chain (Negoescu et al. 2024, Appendix B) maps a loss l to phi = log p - log(1 - p) with
p = exp(-u), u = alpha + (l - min)/(max - min). phi falls as l rises, so -phi = log(exp(u) - 1) is returned:
the order of the records never changes.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from auditor.core.values import Counted, Floats, Losses, LossScale

Transform = Callable[[Losses], Losses]


# A cross-entropy below this comes from a probability within one float64 rounding of 1.
_SMALLEST_CROSS_ENTROPY = float(np.finfo(np.float64).eps)


def _mapped(losses: Losses, function: Callable[[Floats], Floats], step: str) -> Losses:
    """Apply an increasing function to both groups and add the step to the history."""
    member, nonmember = (_of_group(function, group) for group in (losses.member, losses.nonmember))
    return dataclasses.replace(losses, member=member, nonmember=nonmember, history=(*losses.history, step))


def _of_group(function: Callable[[Floats], Floats], group: Any) -> Any:
    if isinstance(group, Counted):
        return group.mapped(function)
    fresh = function(group)
    fresh.setflags(write=False)  # so that it need not be copied
    return fresh


def normalise(losses: Losses) -> Losses:
    """Map the losses linearly to [0, 1], with the minimum and maximum over both groups; equal losses map to 0.

    >>> normalise(Losses(member=[0.0, 1.0], nonmember=[2.0, 4.0])).member
    array([0.  , 0.25])
    """
    low = min(float(losses.member.min()), float(losses.nonmember.min()))
    high = max(float(losses.member.max()), float(losses.nonmember.max()))
    # Halves keep the width finite for losses near the largest float.
    half_width = high / 2 - low / 2
    if half_width == 0:
        return _mapped(losses, np.zeros_like, "normalise: all losses are equal")
    return _mapped(
        losses,
        lambda x: np.clip((x / 2 - low / 2) / half_width, 0.0, 1.0),
        "normalise over both groups, their least and largest loss to 0 and 1",
    )


def published(losses: Losses) -> Losses:
    """Map losses by the published chain: normalise over both groups, shift by alpha = 1, exponentiate, logit.

    Source: Negoescu et al. 2024, Appendix B. The result lies in [0.541325, 1.854587].

    >>> published(Losses(member=[0.0, 1.0], nonmember=[2.0, 4.0])).nonmember.round(6)
    array([1.247518, 1.854587])
    """
    shifted = _mapped(normalise(losses), lambda x: x + 1.0, "shift by 1")
    return _mapped(shifted, _log_expm1, "logit of exp(-loss), negated")


def log_odds(losses: Losses) -> Losses:
    """Map losses to the negative log-odds of the true class, with no minimum or maximum over the records.

    Losses that are already on that scale stay as they are; a cross-entropy -log p becomes log(exp(l) - 1). Losses of
    unknown scale are read as cross-entropy when none is negative, and stay as they are otherwise. A cross-entropy
    below the rounding of float64 is raised to it.

    >>> log_odds(Losses(member=[0.7, 2.0], nonmember=[1.0, 2.0], scale="cross-entropy")).member.round(4)
    array([0.0137, 1.8546])
    """
    scale = losses.scale
    if scale is LossScale.UNKNOWN:
        lowest = min(losses.member.min(), losses.nonmember.min())
        scale = LossScale.CROSS_ENTROPY if lowest >= 0 else LossScale.LOG_ODDS
    if scale is LossScale.LOG_ODDS:
        return dataclasses.replace(losses, history=(*losses.history, "log-odds: as they are"))
    mapped = _mapped(losses, log_odds_of_cross_entropy, "log-odds of the true class, from the cross-entropy")
    return dataclasses.replace(mapped, scale=LossScale.LOG_ODDS)


def log_odds_of_cross_entropy(loss: Floats) -> Floats:
    """Return the negative log-odds of cross-entropies, of any shape.

    >>> log_odds_of_cross_entropy(np.array([0.7, 2.0])).round(4)
    array([0.0137, 1.8546])
    """
    return _log_expm1(np.maximum(loss, _SMALLEST_CROSS_ENTROPY))


def _log_expm1(x: Floats) -> Floats:
    """Return log(exp(x) - 1) = x + log(1 - exp(-x)), which neither overflows nor cancels."""
    return np.asarray(x + np.log(-np.expm1(-x)))
