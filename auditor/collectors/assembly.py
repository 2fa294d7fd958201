"""Losses of batches become `Losses`, with what a reader must know about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor.collectors.batch_losses import BatchLosses, settled_pair
from auditor.errors import InputError
from auditor.values import Losses, LossScale, PerGroup

__all__ = ["assembled", "distinct_classes", "history"]


def assembled(
    member: BatchLosses,
    *,
    nonmember: BatchLosses,
    words: str,
    scale: LossScale,
    labels: dict[str, PerGroup | None],
    noticed: Sequence[str] = (),
) -> Losses:
    """Return the losses of both groups with what a reader must know about them, ``noticed`` sentences included."""
    saturated = (int(member.saturated.sum()), int(nonmember.saturated.sum()))
    first, second = settled_pair(member, nonmember)
    return Losses(
        member=first,
        nonmember=second,
        **labels,
        scale=scale,
        saturated=saturated,
        history=(*history(words, saturated=saturated, hard=member.hard and nonmember.hard), *noticed),
    )


def history(words: str, *, saturated: tuple[int, int], hard: bool) -> tuple[str, ...]:
    """Return what a reader must know about collected losses."""
    steps = [words]
    if any(saturated):
        steps.append(
            f"{saturated[0]} member and {saturated[1]} non-member probabilities were exactly 0 or 1 and were placed"
            " at the end of the scale"
        )
    if hard:
        steps.append("the outputs are hard labels (only 0 and 1), so this is a weaker 0/1-loss audit")
    return tuple(steps)


def distinct_classes(classes: Sequence[Any]) -> list[Any]:
    """Return the classes as a list of different labels."""
    try:
        flat = np.ndim(classes) == 1
    except ValueError:  # rows of different lengths
        flat = False
    if not flat:
        raise InputError(f"classes must be a list of labels, one for each output column, got {classes!r}.")
    names = list(np.asarray(classes).tolist())
    if len(set(names)) != len(names):
        raise InputError(f"classes must be distinct, got {names!r}.")
    return names
