"""Tables to read from: the interface of every kind, their places, and their cells as numbers."""

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from auditor.core import MEMORY, Array, Booleans, Floats, validate
from auditor.core.errors import AuditorError, InputError, without_credentials
from auditor.records.labels import is_missing

Column = Array

_GIGABYTE = 1e9
WORD = 8  # bytes that a cell takes at least: a number, or where its text is

# Columns beside the features, by their default names.
_PARTS = {"id": "ids", "group": "slices", "person": "persons", "label": "classes", "member": "membership"}

# --- A table: named columns, of which stretches of rows are read, or all of them ---


class Kind(StrEnum):
    """Type of the cells of a column, as far as two tables must agree on it."""

    NUMBER = "numbers"
    TEXT = "text"
    TIME = "times"
    VECTOR = "arrays of numbers"
    OTHER = "other values"
    BLANK = "nothing"  # every cell is missing, which agrees with everything


class Stretch(Protocol):
    """Some rows of some columns."""

    def column(self, name: str) -> Column:
        """Return one column: categories as their values, vectors stacked, a missing number as NaN, other gaps as None."""

    def table(self, names: Sequence[str]) -> Any:
        """Return some columns as a DataFrame of them alone, in the types that the whole table has."""


class Reader(Protocol):
    """Chosen columns of a table. It can be pickled, so that another process can read them too.

    The type of a column is settled for the whole table before any stretch is read, so that it depends on none.
    """

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Types of the chosen columns."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def read(self, start: int, stop: int) -> Stretch:
        """Return rows; quick where calls follow the order of the table.

        Raises:
            InputError: Rows that cannot be read.
        """


class Table(ABC):
    """A table of which only the names of the columns are known yet.

    Attributes:
        place: The table in error sentences.
        rows: How its rows are counted, in error sentences.
        names: The names of all columns, in order.
        asides: Columns that are features only if they are named: those without a name, and the index of pandas.
        path: Its file or folder, whose damage may show only while it is read; none in memory.
        address: Its address, if it lies elsewhere.
        memory: Largest memory in bytes for the decoded part of a file.
        later: Columns that only a later part of a folder has.
    """

    rows = validate.FROM_ZERO
    memory = MEMORY
    address: str | None = None
    asides: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()

    def __init__(self, names: Sequence[str], *, place: str, path: Path | None = None) -> None:
        """Keep the names."""
        self.names, self.place, self.path = list(names), place, path

    def hold(self, needed: float) -> None:
        """Refuse, before it is decoded, a table that would take too much memory; data in memory takes none."""
        if self.origin is not None and needed > self.memory:
            raise InputError(
                f"{self.place} would need {needed / _GIGABYTE:.2g} GB of memory once decoded, more than the"
                f" {self.memory / _GIGABYTE:.2g} GB that a table may take; allow more with memory (in bytes; --set memory=N),"
                " write it with fewer rows or shorter texts, or count the losses in it with auditor summarise."
            )

    @property
    def origin(self) -> Path | str | None:
        """Its file, folder or address; none in memory."""
        return self.path or self.address

    @property
    def title(self) -> str:
        """The table in a history, which others may read."""
        return Path(without_credentials(str(self.origin))).name if self.origin else "a table in memory"

    def note(self, key: bytes) -> tuple[bytes | None, int]:  # noqa: ARG002 - only a Parquet file has notes
        """Return the file's metadata under a key, and its number of rows."""
        return None, 0

    def named(self, name: str, *, what: str, hint: str = "", argument: str = "") -> str:
        """Return the name of a column that is there exactly once; see `validate.column_name`."""
        if not isinstance(name, str):
            raise InputError(f"{argument} must be the name of a column, got {name!r}.")
        return validate.column_name(name, what=what, file=self.place, options=self.names, hint=hint)

    def beside(self, choices: Mapping[str, str | None], *, ending: str = "") -> dict[str, str]:
        """Return the columns with facts besides the records: default names if present, others in any case."""
        return {
            part: self.named(name, what=_PARTS[part], argument=f"{part}{ending}")
            for part, name in choices.items()
            if name is not None and (name != part or name in self.names)
        }

    @abstractmethod
    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> Reader:
        """Return a reader of some columns; those in ``text`` stay text where the table has text.

        Raises:
            InputError: Columns that cannot be read, or that are no columns of one length.
        """

    def whole_reader(self, names: Sequence[str], *, text: Sequence[str]) -> Reader:
        """Return a reader of which one stretch is read, of all rows."""
        return self.reader(names, text=text)

    def columns(self, names: Sequence[str], *, text: Sequence[str] = ()) -> dict[str, Column]:
        """Return all rows of some columns, a missing text as an empty one; those in ``text`` as for a reader.

        Raises:
            InputError: Columns that cannot be read, or whose cells are vectors.
        """
        with readable(self.origin):
            reader = self.whole_reader(list(dict.fromkeys(names)), text=text)
            for name, kind in reader.kinds.items():
                if kind is Kind.VECTOR:
                    raise InputError(
                        f"column {name!r} of {self.place} must hold numbers or text, got {kind}; name the right column."
                    )
            self.hold(WORD * len(reader) * len(reader.kinds))
            stretch = reader.read(0, len(reader))
            return {name: without_gaps(stretch.column(name)) for name in names}


# --- A file that is opened once, however often and by however many it is read ---


_ENDLESS = 2**62  # bytes, more than any file has


class OnceOpened:
    """A file that is opened when it is first read."""

    def __init__(self, path: Path | str, system: Any = None) -> None:
        """Keep the path, and the file system of fsspec if it is not that of this machine."""
        self.path, self.system = path, system

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "system": self.system}

    @cached_property
    def handle(self) -> Any:
        """The file as Arrow reads it: not mapped, because a file that is truncated while it is mapped ends the process."""
        import pyarrow as pa

        if self.system is not None:
            return pa.PythonFile(self.system.open(self.path, "rb"), mode="r")
        try:
            return pa.OSFile(str(self.path))
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0)) from None

    def stream(self) -> Any:
        """Return the file from its beginning, beside other streams of it."""
        return self.handle.get_stream(0, _ENDLESS)


# --- The file of a table: its kind, after the checks that need no parsing, and its possible faults ---


TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_SUFFIXES = (*TEXTS, ".parquet", ".npz", ".arrow", ".feather", ".jsonl")
FOLDER = "folder"  # of parts
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # of a path, in which // became /; a drive has one letter


def address_of(data: Any) -> str | None:
    """Return the address of data that lie elsewhere; None of a place on this machine, or of data in memory.

    >>> address_of("s3://bucket/a.parquet"), address_of(Path("s3://bucket/a.parquet")), address_of("a.parquet")
    ('s3://bucket/a.parquet', 's3://bucket/a.parquet', None)
    """
    place = os.fsdecode(data) if isinstance(data, str | os.PathLike) else ""
    if not ("://" in place or _ADDRESS.match(place)) or os.path.lexists(place):
        return None
    return place if "://" in place else place.replace(":/", ":///" if place.startswith("file:") else "://", 1)


_PICKLES = (".pkl", ".pickle", ".joblib", ".npy", ".pt", ".pth", ".sav")


def path_of(data: Any) -> Path | None:
    """Return the place of data, or None if they are in memory; refuse a name that no reader or report could print."""
    if isinstance(data, Table):
        return data.path
    if not isinstance(data, str | os.PathLike):
        return None
    result = Path(os.fsdecode(data))
    try:
        str(result).encode()
    except UnicodeEncodeError:  # neither Arrow nor a report could write such a name
        raise InputError(
            f"file {str(result)!r} must have a name in UTF-8; rename it or its folder."
        ) from None
    if "\0" in str(result):
        raise InputError(f"file {str(result)!r} must have a name without NUL characters; check the name.")
    return result


def refuse_same(first: Any, second: Any) -> None:
    """Refuse a table that is compared with itself, which would read as no leakage."""
    one, other = path_of(first), path_of(second)
    same, label = first is second, "the same object"
    if one is not None and other is not None:
        with readable(one):
            same = one == other or (one.exists() and other.exists() and one.samefile(other))
        label = repr(str(one))
    if same:
        raise InputError(
            f"members and nonmembers must be different tables, got {label} twice; give one table with a column of"
            " membership instead, if it holds both."
        )


def kind_of(path: Path) -> str:
    """Return the extension of a file, in small letters, with the one before it where the last says that it is compressed.

    >>> kind_of(Path("a.b.CSV.gz")), kind_of(Path("losses.parquet"))
    ('.csv.gz', '.parquet')
    """
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


def checked_kind(path: Path) -> str:
    """Return the extension of a table's file, or `FOLDER`.

    Raises:
        InputError: A file that is missing, empty, of an unknown kind, or may be pickled.
    """
    suffix = kind_of(path)
    if suffix in _PICKLES:
        raise InputError(
            f"file {str(path)!r} is refused: {suffix} files may be pickled, and loading a pickle runs whatever code is in"
            " it; save the columns as .parquet, .csv or .npz."
        )
    if path.is_dir():
        return FOLDER
    if suffix not in _SUFFIXES:
        extension = repr(suffix) if suffix else "no extension"
        raise InputError(
            f"file {str(path)!r} must end in {', '.join(_SUFFIXES)}, got {extension}; save it as one of these."
        )
    if not path.exists():
        raise InputError(f"file {str(path)!r} does not exist; check the name and the folder.")
    if path.stat().st_size == 0:
        raise InputError(f"file {str(path)!r} is empty; write it again.")
    return suffix


def csv_files(files: Iterable[str], folder: str) -> list[str]:
    """Return the CSV files among those below a folder, in order, if none is of Parquet; hidden ones are none.

    >>> csv_files(["a/k=2/x.csv", "a/k=1/y.tsv", "a/_SUCCESS", "a/.k/x.csv"], "a"), csv_files(["a.csv", "b.parquet"], "")
    (['a/k=1/y.tsv', 'a/k=2/x.csv'], [])
    """
    shown = [file for file in sorted(files) if not re.search(r"(^|[/\\])[._]", file.removeprefix(folder))]
    kinds = {file: kind_of(Path(without_credentials(file))) for file in shown}
    return [] if ".parquet" in kinds.values() else [file for file in shown if kinds[file] in TEXTS]


def parts(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, or else its CSV files, in the order of their names; hidden ones, and those of Spark, are none."""
    files = sorted(path for path in folder.iterdir() if path.name[0] not in "._" and path.is_file())
    for kinds in ((".parquet",), TEXTS):
        if found := [path for path in files if kind_of(path) in kinds]:
            return found
    raise InputError(
        f"file {str(folder)!r} is a directory, and there is no .parquet or .csv file in it; name the file, or the folder that"
        " holds the parts."
    )


def is_partitioned(folder: Path) -> bool:
    """Return whether a folder holds others that are called ``column=value``, as Hive and Spark write them, and no parts."""
    here = list(folder.iterdir())
    nested = any("=" in path.name and path.is_dir() for path in here)
    return nested and not any(path.suffix.lower() == ".parquet" and path.is_file() for path in here)


@contextmanager
def readable(path: Path | str | None) -> Iterator[None]:
    """Turn a reader's error about a damaged or mislabelled file, or an address, into one sentence; leave errors about data in memory."""
    try:
        yield
    except (AuditorError, ImportError):
        raise
    except Exception as error:  # damaged bytes make the readers raise nearly everything
        if path is None:
            raise
        if isinstance(path, str):  # each file system has errors of its own, which quote the address
            words = re.sub(r"[?#;]\S+", "", without_credentials(validate.one_line(error)))
            raise InputError(f"file {path!r} cannot be read ({words}); check the address.") from None
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    file, kind = f"file {str(path)!r}", kind_of(path)
    reason = getattr(error, "strerror", None)
    if reason:
        denied = getattr(error, "errno", None) in (errno.EACCES, errno.EPERM)
        check = "its permissions" if denied else "the name and the folder"
        return InputError(f"{file} cannot be read: {reason}; check {check}.")
    if isinstance(error, UnicodeDecodeError) and kind in TEXTS:
        return InputError(f"{file} is not UTF-8 text; save it again as a UTF-8 {kind} file.")
    words = validate.one_line(error, longest=200) or type(error).__name__
    if isinstance(error, MemoryError) or "launch worker thread" in words:
        return InputError(
            f"{file} does not fit in memory ({words}); it is damaged, or too large to audit here."
        )
    whole = f"a whole {kind} file" if kind else "a whole table"
    return InputError(f"{file} is not {whole} ({words}); write it again, or rename it to match its type.")


# --- Cells of a column ---


# The words that pandas reads as missing.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_BLANK = {word.casefold() for word in MISSING}
_TRUTH = {"true": 1.0, "false": 0.0}
_FIX = "write it with a decimal point and without other characters"


def numbers(
    column: Column, *, place: str, rows: validate.Rows, truth: bool = False, fix: str = _FIX
) -> Floats:
    """Return a column as float64, blanks as NaN; text is read as numbers (true and false too, if they may occur).

    Raises:
        InputError: A value that is no number; the sentence names the first, and ends in the fix.
    """
    words = dict.fromkeys(_BLANK, np.nan) | (_TRUTH if truth else {})
    if column.dtype.kind in "fiub":
        with np.errstate(over="ignore"):  # a longdouble beyond the doubles becomes infinite, and is refused
            return column.astype(np.float64, copy=False)
    if column.dtype.kind not in "OUT":
        raise InputError(
            f"{place} must hold numbers, got values of type {column.dtype}; name the right column."
        )
    result = np.empty(column.shape)
    for row, value in enumerate(column.tolist()):
        word = str(value).strip().casefold()
        try:
            # 1_000 is no number here
            result[row] = words[word] if word in words else float(word.replace("_", "?"))
        except ValueError:
            raise InputError(
                f"{place} must hold numbers, got {str(value)!r} (first at {rows.at(row)}); {fix}."
            ) from None
    return result


_ONE_TABLE = "give one table that holds both groups, with its column of membership, instead of two"


def marks(
    column: Column, *, place: str, rows: validate.Rows = validate.FROM_ZERO, group: bool | None = None
) -> Booleans:
    """Return which records are members, of marks that are 1 and 0; in a table of one group all must be of that group."""
    if column.dtype.kind == "b" and group is None:
        return column
    fix = validate.CODING if group is None else _ONE_TABLE
    values = numbers(column, place=place, rows=rows, truth=True, fix=fix)
    wrong = (values != 0) & (values != 1) if group is None else values != group
    if wrong.any():
        row, count = int(np.argmax(wrong)), int(wrong.sum())
        must = "hold only 0 (non-member) and 1 (member)"
        if group is not None:
            must = f"be {int(group)} in every row of a table of {'members' if group else 'non-members'}"
        raise InputError(
            f"{place} must {must}, got {values[row]:g} (first at {rows.at(row)}; {count} such"
            f" values up to {rows.at(values.size - 1)}); {fix}."
        )
    return np.asarray(values == 1)


def without_gaps(column: Column) -> Column:
    """Return a column of objects with missing values as empty texts; any other column unchanged."""
    if column.dtype.kind != "O":
        return column
    values = column.tolist()
    if set(map(type, values)) == {str}:
        return column
    return np.array(["" if is_missing(value) else value for value in values], dtype=object)


def plain_labels(column: Column, *, place: str, rows: validate.Rows) -> Column:
    """Return a column of ids, groups or people, with a missing text as an empty one.

    Raises:
        InputError: Several values for a record, floats that several whole numbers share, or text that no file could hold.
    """
    labels = without_gaps(validate.label_column(place, column, rows=rows))
    if labels.dtype.kind in "OU":
        for row, value in enumerate(labels.tolist()):
            if isinstance(value, str) and not value.isascii() and validate.SURROGATE.search(value):
                raise InputError(
                    f"{place} must hold valid Unicode, got half of a surrogate pair ({rows.at(row)});"
                    " write the text again as UTF-8."
                )
    return labels
