"""The path of a table: which kind of file it is, after the checks that need no parsing."""

import os
import stat
from pathlib import Path

from auditor.collectors.cells import readable
from auditor.errors import InputError

__all__ = ["FOLDER", "SUFFIXES", "FileTable", "checked_kind", "file_path", "parts"]

SUFFIXES = (".csv", ".parquet", ".npz", ".arrow", ".feather")
FOLDER = "folder"  # of Parquet parts

_PICKLES = (".pkl", ".pickle", ".joblib", ".npy", ".pt", ".pth", ".sav")


class FileTable:
    """A table in a file, as error sentences and histories call it.

    Attributes:
        place: "file 'folder/losses.csv'".
        of: "'folder/losses.csv'", after the name of a column.
        title: "losses.csv", for a history, which may leave the house.
    """

    def __init__(self, path: Path) -> None:
        """Keep the path."""
        self._path = path
        self.place, self.of, self.title = f"file {str(path)!r}", repr(str(path)), path.name


def file_path(path: str | os.PathLike[str]) -> Path:
    """Return the path, refusing what no reader or report could name."""
    try:
        result = Path(path)
        str(result).encode()
    except TypeError:
        raise InputError(f"path must be the name of a file, got {type(path).__name__}.") from None
    except UnicodeEncodeError:  # neither Arrow nor a report could write such a name
        raise InputError(
            f"file {str(result)!r} must have a name in UTF-8; rename it or its folder."
        ) from None
    if "\0" in str(result):
        raise InputError(f"file {str(result)!r} must have a name without NUL characters; check the name.")
    return result


def checked_kind(path: Path) -> str:
    """Return the extension of a table's file, or `FOLDER`.

    Raises:
        InputError: A file that is missing, empty, of an unknown kind, or may be pickled.
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
            return FOLDER
        if suffix not in SUFFIXES:
            shown = repr(suffix) if suffix else "no extension"
            raise InputError(
                f"file {str(path)!r} must end in {', '.join(SUFFIXES)}, got {shown}; save it as one of these."
            )
        if status is None:
            raise InputError(f"file {str(path)!r} does not exist; check the name and the folder.")
        if status.st_size == 0:
            raise InputError(f"file {str(path)!r} is empty; write it again.")
        return suffix


def parts(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder in the order of their names; hidden ones, and those of Spark, are none."""
    with readable(folder):
        found = sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() == ".parquet" and path.name[0] not in "._" and path.is_file()
        )
    if not found:
        raise InputError(
            f"file {str(folder)!r} is a directory, and there is no .parquet file in it; name the file, or the folder that"
            " holds the parts."
        )
    return found


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
