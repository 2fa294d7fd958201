"""Losses of batches become `Losses`, with what a reader must know about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor.collectors.batch_losses import BatchLosses, settled_pair
from auditor.errors import InputError
from auditor.values import Losses, LossScale, PerGroup

__all__ = ["BY_CHANCE", "assembled", "distinct_classes", "history", "noted"]

BY_CHANCE = (
    "natural twins, which are no more than chance gives"  # of records in both groups: no cause for concern
)
_HARD = "the outputs are hard labels (only 0 and 1), so this is a weaker 0/1-loss audit"


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
    hard = member.hard and nonmember.hard
    first, second = settled_pair(member, nonmember)
    return Losses(
        member=first,
        nonmember=second,
        **labels,
        scale=scale,
        saturated=saturated,
        history=(*history(words, saturated=saturated, hard=hard), *noticed),
        notes=noted(noticed, hard=hard),
    )


def history(words: str, *, saturated: tuple[int, int], hard: bool) -> tuple[str, ...]:
    """Return where collected losses come from, and what their outputs hid."""
    steps = [words]
    if hard:  # and so all are saturated
        steps.append(_HARD)
    elif any(saturated):
        steps.append(
            f"{saturated[0]} member and {saturated[1]} non-member probabilities were exactly 0 or 1 and were placed"
            " at the end of the scale"
        )
    return tuple(steps)


def noted(noticed: Sequence[str], *, hard: bool) -> tuple[str, ...]:
    """Return the steps of the history that a reader must know before relying on the losses.

    >>> noted([f"there are 3 equal records: {BY_CHANCE}.", "the model answers at random."], hard=False)
    ('the model answers at random.',)
    """
    return (*([_HARD] if hard else []), *(sentence for sentence in noticed if BY_CHANCE not in sentence))


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
