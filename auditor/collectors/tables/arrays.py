"""Records in arrays by name: a dictionary in memory, or an ``.npz`` archive of which only the rows asked for are read."""

import math
import weakref
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from auditor.collectors.tables.sources import FROM_ZERO, Column, ColumnTable, Kind, readable
from auditor.core.errors import InputError

# --- Rows of one array of an ``.npz`` archive, without reading all of it; never pickled ---


def _npz_names(path: Path) -> list[str]:
    """Return the names of the arrays."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"file {str(path)!r} is not a whole .npz archive; write it again with numpy.savez.")
    with readable(path), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


class _NpzArray:
    """An array in an archive, of which only the header is read at first.

    Attributes:
        shape: Of the whole array.
        dtype: Of its cells.
    """

    def __init__(self, path: Path, name: str) -> None:
        """Read the header."""
        self._path, self._name = path, name
        self._stream: IO[bytes] | None = None
        self._whole: Column | None = None
        with readable(path), zipfile.ZipFile(path) as archive:
            entry = f"{name}.npy" if f"{name}.npy" in archive.namelist() else name
            self._entry = entry
            with archive.open(entry) as stream:
                self.shape, self._columns_first, self.dtype = self._header(stream)
                self._start = stream.tell()
            size = archive.getinfo(entry).file_size
        if self.dtype.names is not None or self.dtype.kind == "V":
            raise InputError(
                f"{self._words} must hold numbers or text, got {self.dtype}; save one array for each."
            )
        self._row = math.prod(self.shape[1:]) * self.dtype.itemsize
        if self._start + math.prod(self.shape) * self.dtype.itemsize != size:
            raise InputError(f"{self._words} is damaged: it is not as long as it says; write the file again.")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_stream": None, "_whole": None}

    def rows(self, start: int, stop: int) -> Column:
        """Return some rows; quick where calls follow the order of the array."""
        with readable(self._path):
            return _plain(self._fortran()[start:stop] if self._columns_first else self._read(start, stop))

    @property
    def _words(self) -> str:
        return f"array {self._name!r} of {str(self._path)!r}"

    def _header(self, stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        try:
            version = np.lib.format.read_magic(stream)
            read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[
                version
            ]
            shape, columns_first, dtype = read(stream)
        except (KeyError, ValueError) as error:
            raise InputError(
                f"{self._words} must be a NumPy array; write the file again with numpy.savez."
            ) from error
        if dtype.hasobject:
            raise InputError(
                f"{self._words} is refused: it holds Python objects, and loading a pickle runs whatever code is in it;"
                " save it as an array of numbers or strings."
            )
        return tuple(map(int, shape)), columns_first and len(shape) > 1, dtype

    def _read(self, start: int, stop: int) -> Column:
        if self._stream is None:
            archive = zipfile.ZipFile(self._path)
            self._stream = archive.open(self._entry)  # for the next rows
            weakref.finalize(self, _close, self._stream, archive)
        self._stream.seek(self._start + start * self._row)
        size = (stop - start) * self._row
        content = self._stream.read(size)
        if len(content) != size:
            raise InputError(f"{self._words} changed while it was read; collect it again.")
        if stop == self.shape[0]:
            self._stream.read(1)  # at the end the checksum is compared
        shape = (stop - start, *self.shape[1:])
        return np.ndarray(shape, self.dtype, content) if size else np.zeros(shape, self.dtype)

    def _fortran(self) -> Column:
        """An array whose columns lie together has no rows that could be read alone."""
        if self._whole is None:
            with zipfile.ZipFile(self._path) as archive, archive.open(self._entry) as stream:
                self._whole = np.lib.format.read_array(stream, allow_pickle=False)
        return self._whole


def _close(stream: IO[bytes], archive: zipfile.ZipFile) -> None:
    stream.close()
    archive.close()


def _plain(column: Column) -> Column:
    """Return the cells in the byte order of this machine, and text as text."""
    if column.dtype.kind == "U":
        column.tolist()  # raises if a character is none, which nothing else would notice
    if column.dtype.kind == "S":
        return np.char.decode(column, "utf-8", "replace")
    return column.astype(column.dtype.newbyteorder("="), copy=False)


# --- Arrays by name as a table ---


_TABLE = 2  # dimensions


class ArrayRecords(ABC):
    """Named arrays; one of two dimensions or more is all the features."""

    rows = FROM_ZERO
    asides: frozenset[str] = frozenset()

    def __init__(self, names: Sequence[str], *, place: str) -> None:
        """Keep the names."""
        self.place = place
        self.names = list(names)

    @abstractmethod
    def _array(self, name: str) -> "_NpzArray | _InMemory":
        """Return one array, of which no row is read yet."""

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
        super().__init__(_npz_names(path), place=place)
        self._path = path

    def _array(self, name: str) -> _NpzArray:
        return _NpzArray(self._path, name)


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
    def __init__(self, arrays: "Mapping[str, _NpzArray | _InMemory]") -> None:
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


def _kind(array: _NpzArray | _InMemory) -> Kind:
    if len(array.shape) >= _TABLE:
        return Kind.VECTOR
    values = array.cells if isinstance(array, _InMemory) else np.empty(0, array.dtype)
    return _kind_of_array(values)


def _kind_of_array(values: Any) -> Kind:
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


# --- Records in a pandas DataFrame, whose types are kept ---


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
        self.kinds = {name: _kind_of_series(frame.iloc[:, place]) for place, name in enumerate(names)}

    def __len__(self) -> int:
        return int(self._frame.shape[0])

    def read(self, start: int, stop: int) -> _FrameStretch:
        return _FrameStretch(self._frame.iloc[start:stop], self._names)


def _kind_of_series(values: Any) -> Kind:
    if getattr(values.dtype, "categories", None) is not None:
        return _kind_of_series(values.dtype.categories.to_series())
    kind = getattr(values.dtype, "kind", "O")
    if kind in "fiubMm":
        return _kind_of_array(np.empty(0, np.dtype(f"{kind}8[ns]" if kind in "Mm" else "f8")))
    return _kind_of_array(np.asarray(values, dtype=object))


# --- Whole columns of an ``.npz`` archive ---


class NpzColumns(ColumnTable):
    """A NumPy archive: each array is a column."""

    rows = FROM_ZERO

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not zipfile.is_zipfile(path):
            raise InputError(
                f"file {str(path)!r} is not a whole .npz archive; write it again with numpy.savez."
            )
        with self._opened() as archive:
            self.names = list(archive.files)

    def read(self, numeric: Sequence[str], *, text: Sequence[str]) -> dict[str, Column]:
        """Return the arrays; an array of Python objects is a pickle and is refused."""
        with self._opened() as archive:
            columns = {name: self._array(archive, name) for name in (*numeric, *text)}
        for name, column in columns.items():
            if column.ndim != 1:
                raise InputError(
                    f"array {name!r} of {str(self._path)!r} must be one-dimensional, got shape {column.shape}; save one"
                    " number for each row."
                )
        return columns

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        # NumPy leaves a file open that turns out to be no archive, so it is opened and closed here.
        with (
            readable(self._path),
            self._path.open("rb") as stream,
            np.load(stream, allow_pickle=False) as archive,
        ):
            yield archive

    def _array(self, archive: Any, name: str) -> Column:
        try:
            column: Column = archive[name]
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise InputError(
                f"array {name!r} of {str(self._path)!r} is refused: it holds Python objects, and loading a pickle runs"
                " whatever code is in it; save it as an array of numbers or strings."
            ) from None
        if not isinstance(column, np.ndarray):
            raise InputError(
                f"entry {name!r} of {str(self._path)!r} must be a NumPy array; write it again with numpy.savez."
            )
        if column.dtype.kind == "U":
            column.tolist()  # raises if a character is none, which nothing else would notice
        return np.char.decode(column, "utf-8", "replace") if column.dtype.kind == "S" else column
