"""Records in arrays by name: a dictionary in memory, or an ``.npz`` archive of which only the rows asked for are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from auditor.collectors.cells import FROM_ZERO, Column
from auditor.collectors.sources.npz_array import NpzArray, npz_names
from auditor.collectors.sources.reader import Kind
from auditor.errors import InputError

__all__ = ["ArrayRecords", "DictionaryRecords", "NpzRecords", "kind_of_array"]

_TABLE = 2  # dimensions


class _Rows(Protocol):
    """An array of which rows can be read."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...

    def rows(self, start: int, stop: int) -> Any: ...


class ArrayRecords:
    """Named arrays; one of two dimensions or more is all the features."""

    rows = FROM_ZERO
    asides: frozenset[str] = frozenset()

    def __init__(self, names: Sequence[str], *, place: str) -> None:
        """Keep the names."""
        self.place = place
        self.names = list(names)

    def _array(self, name: str) -> _Rows:
        raise NotImplementedError

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> "_ArrayReader":  # noqa: ARG002 - text is text here
        """Return a reader of some arrays, which must have one row for each record."""
        arrays = {name: self._array(name) for name in names}
        for name, array in arrays.items():
            if not array.shape:
                raise InputError(
                    f"array {name!r} of {self.place} must have a row for each record, got a single value; name the"
                    " features."
                )
        lengths = [array.shape[0] for array in arrays.values()]
        if len(set(lengths)) > 1:
            listed = ", ".join(f"{name!r} has {n}" for name, n in zip(arrays, lengths, strict=True))
            raise InputError(
                f"arrays of {self.place} must have one row for each record: {listed}; name the features."
            )
        return _ArrayReader(arrays)


class NpzRecords(ArrayRecords):
    """An archive."""

    def __init__(self, path: Path, *, place: str) -> None:
        """Read the names."""
        super().__init__(npz_names(path), place=place)
        self._path = path

    def _array(self, name: str) -> NpzArray:
        return NpzArray(self._path, name)


class DictionaryRecords(ArrayRecords):
    """Arrays in memory."""

    def __init__(self, arrays: Mapping[str, Any], *, place: str) -> None:
        """Keep the arrays."""
        super().__init__([str(name) for name in arrays], place=place)
        self._arrays = {str(name): array for name, array in arrays.items()}

    def _array(self, name: str) -> "_InMemory":
        return _InMemory.of(f"array {name!r} of {self.place}", self._arrays[name])


@dataclass(frozen=True, eq=False)
class _InMemory:
    cells: Any

    @classmethod
    def of(cls, words: str, values: Any) -> "_InMemory":
        if hasattr(values, "tocsr"):
            return cls(values.tocsr())
        if np.ma.is_masked(values):
            raise InputError(f"{words} must have no masked values; leave those records out.")
        if isinstance(values, str | bytes | dict | set):
            raise InputError(f"{words} must be an array or a list, got {type(values).__name__}.")
        try:
            array = np.asarray(values)
            if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
                array = np.asarray(
                    values, dtype=object
                )  # a list that mixes numbers and text keeps its numbers
        except ValueError:
            raise InputError(
                f"{words} must hold rows of equal length, got rows of different lengths."
            ) from None
        if array.dtype.names is not None:
            raise InputError(
                f"{words} must hold numbers or text, got {array.dtype}; give one array for each."
            )
        return cls(array)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(int, self.cells.shape))

    @property
    def dtype(self) -> Any:
        return self.cells.dtype

    def rows(self, start: int, stop: int) -> Any:
        return self.cells[start:stop]


class _ArrayReader:
    def __init__(self, arrays: Mapping[str, _Rows]) -> None:
        self._arrays = dict(arrays)
        self.kinds = {name: _kind(array) for name, array in self._arrays.items()}

    def __len__(self) -> int:
        return next(iter(self._arrays.values())).shape[0]

    def read(self, start: int, stop: int) -> "_ArrayStretch":
        return _ArrayStretch({name: array.rows(start, stop) for name, array in self._arrays.items()})


@dataclass(frozen=True, eq=False)
class _ArrayStretch:
    arrays: Mapping[str, Any]

    def column(self, name: str) -> Column:
        found: Column = self.arrays[name]
        return found

    def table(self, names: Sequence[str]) -> Any:
        import pandas as pd

        return pd.DataFrame({name: _cells(self.arrays[name]) for name in names})


def _cells(array: Any) -> Any:
    if array.ndim < _TABLE:
        return array
    cells = np.empty(array.shape[0], dtype=object)
    for row in range(array.shape[0]):
        cells[row] = array[row]
    return cells


def _kind(array: _Rows) -> Kind:
    if len(array.shape) >= _TABLE:
        return Kind.VECTOR
    values = array.cells if isinstance(array, _InMemory) else np.empty(0, array.dtype)
    return kind_of_array(values)


def kind_of_array(values: Any) -> Kind:
    """Return what the cells of a one-dimensional array are."""
    kinds = {"f": Kind.NUMBER, "i": Kind.NUMBER, "u": Kind.NUMBER, "b": Kind.NUMBER}
    kinds |= {"U": Kind.TEXT, "S": Kind.TEXT, "T": Kind.TEXT, "M": Kind.TIME, "m": Kind.TIME}
    if values.dtype.kind != "O":
        return kinds.get(values.dtype.kind, Kind.OTHER)
    from pandas.api.types import infer_dtype

    found = infer_dtype(values, skipna=True)
    if found in {"integer", "floating", "mixed-integer-float", "boolean", "decimal"}:
        return Kind.NUMBER
    if found in {"datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"}:
        return Kind.TIME
    return {"string": Kind.TEXT, "empty": Kind.BLANK}.get(found, Kind.OTHER)
