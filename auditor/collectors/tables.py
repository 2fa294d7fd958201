"""Columns from ``.csv``, ``.parquet`` and ``.npz`` files: only the ones asked for, and nothing pickled, ever.

Each reader knows the names of the columns before it reads any of them.
"""

import os
import stat
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from auditor.collectors.cells import FROM_ZERO, Column, plain, readable
from auditor.collectors.csv_table import CsvTable
from auditor.errors import InputError

__all__ = ["Table", "opened"]

_PICKLES = (".pkl", ".pickle", ".joblib", ".npy", ".pt", ".pth", ".sav")


class Table(Protocol):
    """A file whose columns can be read one set at a time."""

    rows: str

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        ...

    def read(self, numeric: Sequence[str], *, text: Sequence[str]) -> dict[str, Column]:
        """Return some columns; those in ``text`` stay strings where the file has strings."""
        ...


def opened(path: Path) -> Table:
    """Return the reader for a file, after the checks that need no parsing.

    Raises:
        InputError: A file that is missing, a directory, empty, of an unknown kind, or may be pickled.
    """
    suffix = path.suffix.lower()
    if suffix in _PICKLES:
        raise InputError(
            f"file {str(path)!r} is refused: {suffix} files may be pickled, and loading a pickle runs whatever code is in"
            " it; save the columns as .parquet, .csv or .npz."
        )
    with readable(path):
        status = _status(path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise InputError(f"file {str(path)!r} is a directory; name the file inside it.")
        if suffix not in _READERS:
            shown = repr(suffix) if suffix else "no extension"
            raise InputError(
                f"file {str(path)!r} must end in {', '.join(_READERS)}, got {shown}; save it as one of these."
            )
        if status is None:
            raise InputError(f"file {str(path)!r} does not exist; check the name and the folder.")
        if status.st_size == 0:
            raise InputError(f"file {str(path)!r} is empty; write it again.")
        return _READERS[suffix](path)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


class ParquetTable:
    """An Apache Parquet file."""

    rows = FROM_ZERO

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self._path = path
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


class NpzTable:
    """A NumPy archive: each array is a column."""

    rows = FROM_ZERO

    def __init__(self, path: Path) -> None:
        self._path = path
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


_READERS: dict[str, type[CsvTable] | type[ParquetTable] | type[NpzTable]] = {
    ".csv": CsvTable,
    ".parquet": ParquetTable,
    ".npz": NpzTable,
}
