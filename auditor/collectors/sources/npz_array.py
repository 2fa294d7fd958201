"""Rows of one array of an ``.npz`` archive, without reading all of it; never pickled."""

import math
import weakref
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from auditor.collectors.cells import Column, readable
from auditor.errors import InputError

__all__ = ["NpzArray", "npz_names"]


def npz_names(path: Path) -> list[str]:
    """Return the names of the arrays."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"file {str(path)!r} is not a whole .npz archive; write it again with numpy.savez.")
    with readable(path), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


class NpzArray:
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
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
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
