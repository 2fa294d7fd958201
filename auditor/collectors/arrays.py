"""A loss column and a 0/1 membership column become `Losses`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.values import Losses, LossScale, PerGroup

Labels = npt.NDArray[Any]

__all__ = ["from_columns", "from_pair"]

_NEGATED = "negated, because a higher score means more like a member"


def from_columns(
    loss: npt.ArrayLike,
    *,
    member: npt.ArrayLike,
    id: npt.ArrayLike | None = None,  # noqa: A002  # the name of the field in Losses
    group: npt.ArrayLike | None = None,
    person: npt.ArrayLike | None = None,
    label: npt.ArrayLike | None = None,
    fingerprint: npt.ArrayLike | None = None,
    higher_is_member: bool = False,
    scale: LossScale = LossScale.UNKNOWN,
    saturated: tuple[int, int] = (0, 0),
    history: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Losses:
    """Split one column of losses into members and non-members.

    Args:
        loss: Shape (n,), finite numbers; smaller means more like a member.
        member: Shape (n,), 1 for a member and 0 for a non-member, of type int, float or bool.
        id: Optional record ids, shape (n,).
        group: Optional slices to report by, shape (n,).
        person: Optional data subject of each record, shape (n,).
        label: Optional true class of each record, shape (n,).
        fingerprint: Optional hash of each record's features, shape (n,).
        higher_is_member: Whether a higher score means more like a member; the scores are then negated.
        scale: What the loss is, if that is known.
        saturated: How many member and non-member losses came from a probability of exactly 0 or 1.
        history: Where the column came from, first step first.
        notes: What was noticed when the losses were collected, which a reader must know.

    Returns:
        The losses of both groups, each in the order of the column.

    Raises:
        InputError: Columns of different lengths, a loss that is not finite, a masked value, a membership other
            than 0 and 1 (NaN included), or a group with fewer than two records.

    >>> losses = from_columns([0.1, 0.9, 0.2, 0.7], member=[1, 0, 1, 0])
    >>> losses.member, losses.nonmember
    (array([0.1, 0.2]), array([0.9, 0.7]))
    """
    values = _validate.finite_column("the loss column", loss)
    mask = _mask("the member column", member)
    given = _given(id=id, group=group, person=person, label=label, fingerprint=fingerprint)
    labels = {name: _validate.column(f"the {name} column", column) for name, column in given.items()}
    names = ["loss", "member", *labels]
    _validate.same_length(names, [values.size, mask.size, *(column.size for column in labels.values())])
    pairs = {name: PerGroup(column[mask], column[~mask]) for name, column in labels.items()}
    return from_pair(
        values[mask],
        nonmember=values[~mask],
        labels=pairs,
        higher_is_member=higher_is_member,
        scale=scale,
        saturated=saturated,
        history=history or ["loss and membership columns"],
        notes=notes,
    )


def from_pair(
    member: npt.NDArray[np.float64],
    *,
    nonmember: npt.NDArray[np.float64],
    labels: Mapping[str, Any],
    higher_is_member: bool,
    history: Sequence[str],
    scale: LossScale = LossScale.UNKNOWN,
    saturated: tuple[int, int] = (0, 0),
    notes: Sequence[str] = (),
) -> Losses:
    """Build losses from two checked columns, negated if asked."""
    return Losses(
        member=-member if higher_is_member else member,
        nonmember=-nonmember if higher_is_member else nonmember,
        **labels,
        scale=scale,
        saturated=saturated,
        history=(*history, _NEGATED) if higher_is_member else tuple(history),
        notes=tuple(notes),
    )


def _mask(name: str, member: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    mask = _validate.membership(name, _validate.column(name, member))
    n_member = int(mask.sum())
    if mask.size and n_member in (0, mask.size):
        kind, digit = ("non-member", 0) if n_member else ("member", 1)
        raise InputError(
            f"{name} must mark both groups, got {mask.size} records and no {kind} (value {digit});"
            " an audit compares losses on training records with losses on records the model never saw;"
            f" {_validate.CODING}."
        )
    return mask


def _given(**columns: npt.ArrayLike | None) -> dict[str, npt.ArrayLike]:
    return {name: column for name, column in columns.items() if column is not None}
