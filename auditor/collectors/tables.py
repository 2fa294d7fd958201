"""Columns from files and tables in memory: only the ones asked for, and nothing pickled, ever.

Each reader knows the names of the columns before it reads any of them.
"""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from auditor.collectors.cells import FROM_ZERO, Column, plain, readable, without_gaps
from auditor.collectors.csv_table import CsvTable
from auditor.collectors.paths import FileTable, checked_kind, file_path
from auditor.collectors.sources.opening import opened as opened_records
from auditor.collectors.sources.opening import path_of
from auditor.collectors.sources.reader import Kind, OpenTable
from auditor.errors import InputError

__all__ = ["NpzTable", "Table", "opened"]


class Table(Protocol):
    """A table whose columns can be read one set at a time; see `FileTable` for what it is called."""

    rows: str
    place: str
    of: str
    title: str

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        ...

    def read(self, numeric: Sequence[str], *, text: Sequence[str]) -> dict[str, Column]:
        """Return some columns; those in ``text`` stay strings where the file has strings."""
        ...


def opened(data: Any) -> Table:
    """Return the reader for a path or for a table in memory, after the checks that need no parsing.

    Raises:
        InputError: A file that is missing, empty, of an unknown kind, or may be pickled; or no table.
    """
    path = path_of(data)
    if path is None and not _is_table(data):
        path = file_path(data)  # which says what it is instead
    kind = "" if path is None else checked_kind(path)
    if path is not None and kind in _READERS:
        return _READERS[kind](path)
    return _Whole(opened_records(data, name="the table"), path)


def _is_table(data: Any) -> bool:
    return hasattr(data, "columns") or hasattr(data, "schema") or isinstance(data, dict)


class ParquetTable(FileTable):
    """An Apache Parquet file."""

    rows = FROM_ZERO

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        super().__init__(path)
        with readable(path):
            self.names = list(parquet.read_schema(str(path)).names)

    def read(self, numeric: Sequence[str], *, text: Sequence[str]) -> dict[str, Column]:
        """Return the columns in the types they were written in."""
        from pyarrow import parquet

        with readable(self._path):
            wanted = [*numeric, *text]
            file = parquet.ParquetFile(str(self._path), page_checksum_verification=True)
            table = file.read(columns=wanted)
            return {name: plain(table[name]) for name in wanted}


class NpzTable(FileTable):
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


class _Whole:
    """A folder, an Arrow file, or a table in memory."""

    def __init__(self, records: OpenTable, path: Path | None) -> None:
        self._records = records
        self.rows, self.place, self.names = records.rows, records.place, records.names
        self.of = records.place if path is None else repr(str(path))
        self.title = "a table in memory" if path is None else path.name

    def read(self, numeric: Sequence[str], *, text: Sequence[str]) -> dict[str, Column]:
        names = list(dict.fromkeys((*numeric, *text)))
        reader = self._records.reader(names, text=text)
        for name in names:
            if reader.kinds[name] is Kind.VECTOR:
                raise InputError(
                    f"column {name!r} of {self.of} must hold numbers or text, got arrays; name the right column."
                )
        stretch = reader.read(0, len(reader))
        return {name: without_gaps(stretch.column(name)) for name in names}


_READERS: dict[str, type[CsvTable] | type[ParquetTable] | type[NpzTable]] = {
    ".csv": CsvTable,
    ".parquet": ParquetTable,
    ".npz": NpzTable,
}
