"""What a file that `auditor.collect_to` wrote says of its losses beside their numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.collectors.cells import Column
from auditor.collectors.sources.opening import path_of
from auditor.collectors.tables import Table
from auditor.errors import InputError
from auditor.values import LossScale

__all__ = ["Collected", "read_collected"]

_LOSS, _LABEL, _FINGERPRINT = "loss", "label", "fingerprint"  # columns


@dataclass(frozen=True)
class Collected:
    """What is known of one column of scores.

    Attributes:
        main: Whether they are the losses that were asked for, and no other score that stands beside them.
        scale: What they are.
        history: How they came about.
        notes: What was noticed of the model and the records, which a reader must know.
        saturated: How many of members and non-members came from a probability of exactly 0 or 1.
        label_column: The column of true classes, if there is one.
        fingerprint_column: The column of hashes of the features, if there is one.
    """

    main: bool
    scale: LossScale
    history: tuple[str, ...]
    notes: tuple[str, ...]
    saturated: tuple[int, int]
    label_column: str | None
    fingerprint_column: str | None

    def given(self, columns: Mapping[str, Column], *, table: Table, higher_is_member: bool) -> dict[str, Any]:
        """Return what is to stand beside the losses; turned round, they are no longer on their scale."""
        result: dict[str, Any] = {"notes": self.notes}
        if self.fingerprint_column is not None:
            column = columns[self.fingerprint_column]
            if column.dtype.kind != "u" or column.dtype.itemsize != 8:  # noqa: PLR2004 - bytes
                raise InputError(
                    f"column {self.fingerprint_column!r} of {table.of} must hold whole numbers of 64 bits, got"
                    f" {column.dtype}; collect the losses again, or leave the column out."
                )
            result["fingerprint"] = column
        if self.main:
            result["history"] = self.history
        if self.main and not higher_is_member:
            result |= {"scale": self.scale, "saturated": self.saturated}
        return result


def read_collected(data: Any, *, loss_column: str, names: Sequence[str]) -> Collected | None:
    """Return what a collected file says of a column of scores; none for any other table.

    Raises:
        InputError: A file that says what this version cannot read.
    """
    path = path_of(data)
    if path is None or path.suffix.lower() != ".parquet" or path.is_dir():
        return None
    from auditor.collectors.streaming.metadata import read_metadata

    found = read_metadata(path)
    if found is None:
        return None
    return Collected(
        main=loss_column == _LOSS,
        scale=found.scale,
        history=found.history,
        notes=found.notes,
        saturated=found.saturated,
        label_column=_LABEL if _LABEL in names else None,
        fingerprint_column=_FINGERPRINT if _FINGERPRINT in names else None,
    )
