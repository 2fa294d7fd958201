"""Records in arrays by name: a dictionary, an ``.npz`` archive of which only some rows are read, or a DataFrame."""

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from auditor.collectors.tables.sources import Column, Kind, OnceOpened, Table
from auditor.core import validate
from auditor.core.errors import InputError

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
        """One array, of which no row is read yet, with its shape and type."""
        values = self._arrays[self.names.index(name)]
        if hasattr(values, "tocsr"):
            return values.tocsr()
        return _without_fields(validate.array(words, values), words)


def _without_fields(array: Any, words: str) -> Any:
    if array.dtype.kind == "V":
        raise InputError(f"{words} must hold numbers or text, got {array.dtype}; give one array for each.")
    return array


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


# --- Arrays of an ``.npz`` archive, of which only the rows that are read are in memory; never pickled ---


class NpzTable(ArrayTable):
    """An archive, whose entries are arrays."""

    path: Path

    def __init__(self, path: Path, *, place: str) -> None:
        """Read the names."""
        super().__init__({}, place=place)
        self.path, self._file = path, OnceOpened(path)
        if not zipfile.is_zipfile(self._file.handle):
            raise InputError(f"{place} is not a whole .npz archive; write it again with numpy.savez.")
        entries = [name for name in self.archive.namelist() if name.endswith(".npy")]
        self.names = [name.removesuffix(".npy") for name in entries]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "archive"}

    @cached_property
    def archive(self) -> zipfile.ZipFile:
        """The open archive."""
        return zipfile.ZipFile(self._file.handle)

    def _array(self, name: str, words: str) -> "_NpzArray":
        array: _NpzArray = _without_fields(_NpzArray(self, name, words), words)
        return array


_SKIPPED = 1 << 24  # bytes at once


class _NpzArray:
    """An array in an archive, of which only the header is read at first.

    Attributes:
        shape: Shape of the whole array.
        dtype: Type of its cells.
    """

    def __init__(self, table: NpzTable, name: str, words: str) -> None:
        self._table, self._entry, self._words = table, f"{name}.npy", words
        self._stream: IO[bytes] | None = None
        self._whole: Column | None = None
        with table.archive.open(self._entry) as stream:
            try:
                headers = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
                header = headers[np.lib.format.read_magic(stream)[0]](stream)
            except (KeyError, ValueError) as error:
                raise InputError(
                    f"{words} must be a NumPy array; write the file again with numpy.savez."
                ) from error
            self.shape, columns_first, self.dtype = header
            self._start, size = stream.tell(), table.archive.getinfo(self._entry).file_size
        if self.dtype.hasobject:
            raise InputError(
                f"{words} is refused: it holds Python objects, and loading a pickle runs whatever code is in it; save it as"
                " an array of numbers or strings."
            )
        self._columns_first = columns_first and len(self.shape) >= _TABLE
        self._row = math.prod(self.shape[1:]) * self.dtype.itemsize
        if self._start + math.prod(self.shape) * self.dtype.itemsize != size:
            raise InputError(f"{words} is damaged: it is not as long as it says; write the file again.")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_stream": None, "_whole": None}

    def __getitem__(self, rows: slice) -> Column:
        """Return some rows; quick where calls follow the order of the array."""
        start, stop, _ = rows.indices(self.shape[0])
        self._table.hold((self.shape[0] if self._columns_first else stop - start) * self._row)
        if not self._columns_first:
            return _plain(self._read(start, stop))
        if self._whole is None:  # where columns lie together, no row could be read alone
            with self._table.archive.open(self._entry) as stream:
                self._whole = np.lib.format.read_array(stream, allow_pickle=False)
        return _plain(self._whole[start:stop])

    def _read(self, start: int, stop: int) -> Column:
        place = self._start + start * self._row
        if self._stream is None or self._stream.tell() > place:
            self._stream = self._table.archive.open(self._entry)  # which stays open for the next rows
        # Not seek: in Python 3.12.1 that of one entry goes by where another was read last.
        while (left := place - self._stream.tell()) > 0 and self._stream.read(min(left, _SKIPPED)):
            pass
        size = (stop - start) * self._row
        content = self._stream.read(size)
        if len(content) != size:
            raise InputError(f"{self._words} changed while it was read; collect it again.")
        if stop == self.shape[0]:
            self._stream.read(1)  # at the end the checksum is compared
        shape = (stop - start, *self.shape[1:])
        return np.ndarray(shape, self.dtype, content) if size else np.zeros(shape, self.dtype)


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
        if frame.columns.nlevels > 1:
            raise InputError(
                f"{place} must have one line of column names, got {frame.columns.nlevels}; flatten its columns."
            )
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
