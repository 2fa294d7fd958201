"""Records in arrays by name: a dictionary, an ``.npz`` archive, or a DataFrame."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.tables.sources import Column, Kind, OnceOpened, Table
from auditor.core import InputError, explained, is_a, validate, with_kind

_TABLE = 2  # dimensions of an array that is all the features

# --- Arrays by name as a table ---


class ArrayTable(Table):
    """Named arrays in memory; one of two dimensions or more is all the features."""

    def __init__(self, arrays: Mapping[str, Any], *, place: str) -> None:
        """Keep the arrays."""
        super().__init__([str(name) for name in arrays], place=place)
        self._arrays = list(arrays.values())

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> "_ArrayReader":  # noqa: ARG002 - text is text here
        """Return a reader of some arrays, which must have one row for each record."""
        arrays = {name: self._array(name, f"array {name!r} of {self.place}") for name in names}
        lengths = {name: array.shape[0] if array.shape else None for name, array in arrays.items()}
        if len(set(lengths.values())) > 1 or None in lengths.values():
            listed = ", ".join(f"{name!r} has {n or 'no rows'}" for name, n in lengths.items())
            raise InputError(
                f"arrays of {self.place} must have one row for each record: {listed}; name the right arrays."
            )
        return _ArrayReader(arrays)

    def _array(self, name: str, words: str) -> Any:
        """Return one array."""
        values = self._arrays[self.names.index(name)]
        if hasattr(values, "tocsr"):
            return values.tocsr()
        if is_a(values, "zarr", "Array"):
            return values  # each stretch of it becomes an array
        return _without_fields(validate.array(words, values), words)


def _without_fields(array: Any, words: str) -> Any:
    if array.dtype.kind == "V":
        raise InputError(f"{words} must hold numbers or text, got {array.dtype}; give one array for each.")
    return array


def is_map_style(data: Any) -> bool:
    """Return whether data are a data set of PyTorch whose records are read by number."""
    of_torch, iterable = (is_a(data, "torch", name) for name in ("Dataset", "IterableDataset"))
    return of_torch and not iterable and hasattr(data, "__len__")


class DataSetTable(ArrayTable):
    """A map-style data set of PyTorch, whose records are dictionaries, pairs (x, y), or x alone."""

    def __init__(self, data: Any, *, place: str) -> None:
        """Read the first record."""
        self._data, self.place = data, place
        first = self.read(0, 1)
        super().__init__(first.arrays, place=place)
        self.kinds = first.kinds
        self.label = "y" if not isinstance(data[0], Mapping) and "y" in self.names else None

    def __len__(self) -> int:
        return len(self._data)

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> Any:  # noqa: ARG002 - every table has the same method
        """Return this table, of which each stretch is read whole."""
        return self

    def read(self, start: int, stop: int) -> "_ArrayReader":
        """Return records, put together by PyTorch."""
        from torch.utils.data import default_collate

        failed = f"{self.place} data must hold dictionaries, pairs (x, y) or x alone, but {type(self._data).__name__} failed"
        with explained(failed, reason=with_kind):
            parts = default_collate([self._data[row] for row in range(start, stop)])
            if not isinstance(parts, Mapping):
                parts = [parts] if hasattr(parts, "shape") or isinstance(parts[0], str) else parts
                parts = dict(zip("xy"[: len(parts)], parts, strict=True))
        return _ArrayReader(
            {name: validate.array(f"{self.place} {name}", part) for name, part in parts.items()}
        )


@dataclass(frozen=True, eq=False)
class _ArrayReader:
    """All rows of arrays, or some."""

    arrays: Mapping[str, Any]

    def __len__(self) -> int:
        return int(next(iter(self.arrays.values())).shape[0])

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        return {
            name: Kind.VECTOR if len(array.shape) >= _TABLE else _kind_of(array)
            for name, array in self.arrays.items()
        }

    def read(self, start: int, stop: int) -> "_ArrayReader":
        return _ArrayReader({name: array[start:stop] for name, array in self.arrays.items()})

    def column(self, name: str) -> Column:
        array: Column = self.arrays[name]
        return array

    def table(self, names: Sequence[str]) -> Any:
        import pandas as pd

        columns: dict[str, Any] = {name: self.arrays[name] for name in names}
        for name, array in columns.items():
            if array.ndim >= _TABLE:
                columns[name] = pd.Series(list(array), dtype=object)
        return pd.DataFrame(columns)


_KINDS = {
    **dict.fromkeys("fiub", Kind.NUMBER),
    **dict.fromkeys("UST", Kind.TEXT),
    **dict.fromkeys("Mm", Kind.TIME),
}


def _kind_of(values: Any) -> Kind:
    """Return the type of one-dimensional cells: for categories the type of their values, for objects their common type."""
    if getattr(values.dtype, "categories", None) is not None:
        return _kind_of(values.dtype.categories)
    kind = getattr(values.dtype, "kind", "O")
    if kind != "O":
        return _KINDS.get(kind, Kind.OTHER)
    import pyarrow as pa

    from auditor.collectors.tables.arrow import kind_of

    try:
        cells = np.asarray(values, dtype=object)  # without an index, which may begin anywhere
        return kind_of(pa.infer_type(cells, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return Kind.OTHER


# --- Arrays of an ``.npz`` archive, each read whole; never pickled ---


class NpzTable(ArrayTable):
    """An archive, whose entries are arrays."""

    path: Path

    def __init__(self, path: Path, *, place: str) -> None:
        """Read the names."""
        super().__init__({}, place=place)
        self.path, self._file = path, OnceOpened(path)
        entries = [name for name in self.archive.namelist() if name.endswith(".npy")]
        self.names = [name.removesuffix(".npy") for name in entries]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "archive"}

    @cached_property
    def archive(self) -> zipfile.ZipFile:
        """The open archive."""
        return zipfile.ZipFile(self._file.handle)

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> "_ArrayReader":
        """Return a reader of some arrays, which are held in memory together."""
        self.hold(sum(self.archive.getinfo(f"{name}.npy").file_size for name in names))
        return super().reader(names, text=text)

    def _array(self, name: str, words: str) -> Column:
        with self.archive.open(f"{name}.npy") as stream:
            try:
                array: Column = np.lib.format.read_array(stream, allow_pickle=False)
            except ValueError as error:
                raise InputError(
                    f"{words} must be a whole NumPy array of numbers or strings, since loading a pickle runs whatever code is"
                    f" in it ({validate.one_line(error)}); write the file again with numpy.savez."
                ) from error
        return _plain(_without_fields(array, words))


def _plain(column: Column) -> Column:
    """Return the cells in the byte order of this machine, and text as text."""
    if column.dtype.kind == "U":
        # Every text as long as it is; and it raises if a character is none, which nothing else would notice.
        return np.array(column.tolist(), dtype=object).reshape(column.shape)
    if column.dtype.kind == "S":
        return _plain(np.char.decode(column, "utf-8", "replace"))
    return column.astype(column.dtype.newbyteorder("="), copy=False)


# --- Records in a pandas DataFrame, whose types are kept ---


class FrameTable(Table):
    """A DataFrame; its index is ignored."""

    def __init__(self, frame: Any, *, place: str) -> None:
        """Keep the frame."""
        super().__init__([str(name) for name in frame.columns], place=place)
        self._frame = frame

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> "_FrameReader":  # noqa: ARG002 - text is text here
        """Return a reader of some columns."""
        return _FrameReader(self._frame.iloc[:, [self.names.index(name) for name in names]], list(names))


@dataclass(frozen=True, eq=False)
class _FrameReader:
    """All rows of a frame, or some."""

    frame: Any
    names: list[str]

    def __len__(self) -> int:
        return int(self.frame.shape[0])

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        return {name: _kind_of(self.frame.iloc[:, place]) for place, name in enumerate(self.names)}

    def read(self, start: int, stop: int) -> "_FrameReader":
        return _FrameReader(self.frame.iloc[start:stop], self.names)

    def column(self, name: str) -> Column:
        return np.asarray(self.frame.iloc[:, self.names.index(name)])

    def table(self, names: Sequence[str]) -> Any:
        return self.frame.iloc[:, [self.names.index(name) for name in names]]
