"""References: what models that were trained on neither group make of the same records."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.scores._labels import comparable
from auditor.values import Floats, Losses, PerGroup

__all__ = ["References", "loss_matrix"]


@dataclass(frozen=True, eq=False)
class References:
    """Losses of one or more reference models on the audited records, on the same scale as the target's losses.

    The reference models must have been trained on neither group; nothing in their losses can show that.

    Attributes:
        member: Shape (n1,) for one model or (n1, models), finite; kept as (n1, models), read-only.
        nonmember: Shape (n0,) or (n0, models), as above.
        id: Optional record ids, a pair of arrays (members, non-members). Where the losses have ids too, records are
            matched by id; otherwise row by row.

    Raises:
        InputError: NaN or infinite losses, another number of models in the groups, or columns of different lengths.

    >>> References(member=[0.4, 0.2], nonmember=[0.3, 0.1, 0.9]).models
    1
    """

    member: Floats
    nonmember: Floats
    id: PerGroup | None = None

    def __post_init__(self) -> None:
        for name in ("member", "nonmember"):
            object.__setattr__(self, name, loss_matrix(f"reference {name}", getattr(self, name)))
        same_models("reference member losses", self.member, "reference nonmember losses", self.nonmember)
        if self.id is not None:
            object.__setattr__(self, "id", self._ids(self.id))

    def _ids(self, ids: Any) -> PerGroup:
        if not isinstance(ids, tuple | list) or len(ids) != 2:  # noqa: PLR2004
            raise InputError(f"reference id must be a pair (members, non-members), got {type(ids).__name__}.")
        pair = PerGroup(
            _validate.column("reference member id", ids[0]),
            _validate.column("reference nonmember id", ids[1]),
        )
        for side in ("member", "nonmember"):
            names = (f"reference {side} losses", f"reference {side} id")
            _validate.same_length(names, (len(getattr(self, side)), getattr(pair, side).size))
        return pair

    @property
    def models(self) -> int:
        """Number of reference models."""
        return int(self.member.shape[1])

    def take(self, rows: PerGroup) -> "References":
        """Return the records at these rows, as `HoldOut` names them.

        Args:
            rows: Positions or masks, a pair (members, non-members).

        >>> References(member=[0.1, 0.2], nonmember=[0.3, 0.4]).take(PerGroup(np.array([1]), np.array([1]))).member
        array([[0.2]])
        """
        ids = (
            None
            if self.id is None
            else PerGroup(self.id.member[rows.member], self.id.nonmember[rows.nonmember])
        )
        return References(member=self.member[rows.member], nonmember=self.nonmember[rows.nonmember], id=ids)

    def aligned(self, losses: Losses) -> PerGroup:
        """Return the reference losses of these records, in their order: by id where both have ids, else row by row.

        Raises:
            InputError: A record without a reference loss, an id given twice, or other numbers of rows.

        >>> reference = References(member=[0.1, 0.2], nonmember=[0.3, 0.4], id=(["a", "b"], ["c", "d"]))
        >>> losses = Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0], id=(["b", "a"], ["c", "d"]))
        >>> reference.aligned(losses).member.ravel()
        array([0.2, 0.1])
        """
        if self.id is None or losses.id is None:
            for side in ("member", "nonmember"):
                names = (f"{side} losses", f"reference {side} losses")
                _validate.same_length(names, (getattr(losses, side).size, len(getattr(self, side))))
            return PerGroup(self.member, self.nonmember)
        at = (
            _rows_of(getattr(losses.id, side), getattr(self.id, side), side=side) for side in PerGroup._fields
        )
        return PerGroup(self.member[next(at)], self.nonmember[next(at)])


def _rows_of(wanted: npt.NDArray[Any], own: npt.NDArray[Any], *, side: str) -> npt.NDArray[np.intp]:
    """The row of each wanted id."""
    (wanted, given), (own, _) = comparable(wanted), comparable(own)
    order = np.argsort(own, kind="stable")
    ranked = own[order]
    asked = np.isin(ranked, wanted)
    repeated = int(np.count_nonzero(asked[1:] & (ranked[1:] == ranked[:-1])))
    if repeated:
        raise InputError(
            f"reference {side} ids must be unique, got {repeated:,} repeated; keep one row of each record."
        )
    at = np.minimum(np.searchsorted(ranked, wanted), max(ranked.size - 1, 0))
    missing = ~given | (ranked[at] != wanted) if ranked.size else np.ones(wanted.size, dtype=bool)
    if missing.any():
        raise InputError(
            f"every {side} needs reference losses, got none for {int(missing.sum()):,} of {wanted.size:,} ids (first at"
            f" row {int(np.argmax(missing))}, counting from 0); score those records with the reference models too."
        )
    return np.asarray(order[at])


def same_models(first: str, one: Floats, second: str, other: Floats) -> None:
    """Refuse two matrices of reference losses with different numbers of models."""
    if one.shape[1] != other.shape[1]:
        raise InputError(
            f"{first} and {second} must come from the same models, got {one.shape[1]} and {other.shape[1]} columns."
        )


def loss_matrix(name: str, values: object) -> Floats:
    """Return a fresh, read-only, finite (records, models) array of losses."""
    try:
        raw = np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name} losses must be one column per model, got rows of different lengths."
        ) from None
    if raw.ndim == 1:
        raw = raw[:, np.newaxis]
    if raw.ndim != 2 or raw.size == 0:  # noqa: PLR2004 - records and models
        raise InputError(f"{name} losses must have shape (records,) or (records, models), got {raw.shape}.")
    several = raw.shape[1] > 1
    columns = [
        _validate.loss_vector(f"{name} (model {model})" if several else name, column, least=1)
        for model, column in enumerate(raw.T)
    ]
    matrix = np.stack(columns, axis=1)
    matrix.setflags(write=False)
    return matrix
