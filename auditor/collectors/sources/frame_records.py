"""Records in a pandas DataFrame, whose types are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.collectors.cells import FROM_ZERO, Column
from auditor.collectors.sources.array_records import kind_of_array
from auditor.collectors.sources.reader import Kind
from auditor.errors import InputError

__all__ = ["FrameRecords"]


class FrameRecords:
    """A DataFrame; its index plays no part."""

    rows = FROM_ZERO
    asides: frozenset[str] = frozenset()

    def __init__(self, frame: Any, *, place: str) -> None:
        """Keep the frame."""
        if frame.columns.nlevels > 1:
            raise InputError(
                f"{place} must have one line of column names, got {frame.columns.nlevels}; flatten its columns."
            )
        self.place = place
        self.names = [str(name) for name in frame.columns]
        self._frame = frame

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> "_FrameReader":  # noqa: ARG002 - text is text here
        """Return a reader of some columns."""
        return _FrameReader(self._frame.iloc[:, [self.names.index(name) for name in names]], list(names))


@dataclass(frozen=True, eq=False)
class _FrameStretch:
    frame: Any
    names: list[str]

    def column(self, name: str) -> Column:
        return np.asarray(self.frame.iloc[:, self.names.index(name)])

    def table(self, names: Sequence[str]) -> Any:
        return self.frame.iloc[:, [self.names.index(name) for name in names]]


class _FrameReader:
    def __init__(self, frame: Any, names: list[str]) -> None:
        self._frame, self._names = frame, names
        self.kinds = {name: _kind(frame.iloc[:, place]) for place, name in enumerate(names)}

    def __len__(self) -> int:
        return int(self._frame.shape[0])

    def read(self, start: int, stop: int) -> _FrameStretch:
        return _FrameStretch(self._frame.iloc[start:stop], self._names)


def _kind(values: Any) -> Kind:
    if getattr(values.dtype, "categories", None) is not None:
        return _kind(values.dtype.categories.to_series())
    kind = getattr(values.dtype, "kind", "O")
    if kind in "fiubMm":
        return kind_of_array(np.empty(0, np.dtype(f"{kind}8[ns]" if kind in "Mm" else "f8")))
    return kind_of_array(np.asarray(values, dtype=object))
