"""Records to score: their features, their labels and their place in error sentences; stretches, samples, matrices."""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.values import PerGroup
from auditor.records.labels import is_missing

Codes = npt.NDArray[np.intp]
Rows = slice | Codes


_SHOWN = 10  # classes listed in an error before the rest are left out


@dataclass(frozen=True, eq=False)
class Records:
    """Features and labels of some records of one group or table.

    Attributes:
        name: Whose records they are, the subject of error sentences: ``member``, or a file.
        features: Anything that the model takes, with one row (or item) for each record.
        labels: One label for each record; shape (n,), or (n, K) where a record has several.
        first_row: The number of the first record in its group or table, for error sentences.
    """

    name: str
    features: Any
    labels: npt.NDArray[Any]
    first_row: int = 0

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    def part(self, start: int, stop: int) -> "Records":
        """Return the records from ``start`` to before ``stop``, of features in their own type."""
        if start == 0 and stop >= len(self):
            return self
        features = take_rows(self.features, rows=slice(start, stop))
        return Records(self.name, features, self.labels[start:stop], self.first_row + start)

    def row(self, position: int) -> str:
        """Return the number of a record as error sentences say it."""
        return f"row {self.first_row + position}, counting from 0"

    def stretch(self, start: int, stop: int) -> str:
        """Return in words which records are those from ``start`` to before ``stop``."""
        first, last = self.first_row + start, self.first_row + stop - 1
        rows = f"row {first}" if first == last else f"rows {first} to {last}"
        return f"{self.name} {rows}, counting from 0"

    def codes(self, classes: Sequence[Any]) -> Codes:
        """Return the position of each label among the classes; 1, 1.0 and True are the same label.

        Classes that are all text match labels that are none by what they spell (`spelled`), for a CSV says nothing
        of types.
        """
        text = all(isinstance(name, str) for name in classes) and not _any_text(self.labels)
        found = _positions(self.labels, spelled(classes) if text else classes, name=self.name)
        bad = found < 0
        if bad.any():
            row = int(np.argmax(bad))
            listed = ", ".join(map(repr, classes[:_SHOWN])) + (", ..." if len(classes) > _SHOWN else "")
            raise InputError(
                f"{self.name} label {self.labels.tolist()[row]!r} (first at {self.row(row)}; at least {int(bad.sum())}"
                f" such records) is not one of the model's classes {listed}; leave those records out, or name the class of"
                " each output column with classes=."
            )
        return found


def spelled(classes: Sequence[str]) -> list[Any]:
    """Return text as the numbers and truth values that it spells, and as it is elsewhere or if two spell the same.

    >>> spelled(["0", "1.5", "true", "other"]), spelled(["1", "01"])
    ([0, 1.5, True, 'other'], ['1', '01'])
    """
    found = [_value(text) for text in classes]
    values = [value for value in found if not isinstance(value, str)]
    return found if len(set(values)) == len(values) else list(classes)


def _value(text: str) -> Any:
    word = text.strip().casefold()
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        return value if math.isfinite(value) and "_" not in word else text
    return text


def _any_text(labels: npt.NDArray[Any]) -> bool:
    if labels.dtype.kind == "O":
        return any(isinstance(label, str) for label in labels.tolist())
    return labels.dtype.kind not in "fiub"


def _positions(labels: npt.NDArray[Any], classes: Sequence[Any], *, name: str) -> Codes:
    """Return where each label stands among the classes, -1 for one that is none."""
    known = np.asarray(classes)
    if np.can_cast(labels.dtype, np.int64) and np.can_cast(known.dtype, np.int64):
        # The same as below, four times as quick.
        order = np.argsort(known, kind="stable")
        place = np.searchsorted(known[order], labels).clip(0, known.size - 1)
        return np.where(known[order][place] == labels, order[place], -1).astype(np.intp, copy=False)
    place_of = {label: position for position, label in enumerate(classes)}
    try:
        return np.array([place_of.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    except TypeError:
        raise InputError(f"{name} labels must be numbers or strings, got lists or dictionaries.") from None


def plain_labels(name: str, target: Any) -> npt.NDArray[Any]:
    """Return labels as an array, of one dimension where each record has one."""
    if np.ma.is_masked(target):
        raise InputError(
            f"{name} y must have no masked values, got {int(np.ma.getmaskarray(target).sum())};"
            " leave those records out."
        )
    try:
        labels = np.asarray(target)
    except ValueError:
        raise InputError(
            f"{name} y must be one label for each record, got rows of different lengths."
        ) from None
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels  # noqa: PLR2004


def count_records(name: str, features: Any) -> int:
    """Return how many records there are."""
    shape = getattr(features, "shape", None)
    if shape:
        return int(shape[0])
    if (
        shape is not None
        or isinstance(features, str | bytes | dict | set)
        or not hasattr(features, "__len__")
    ):
        raise InputError(
            f"{name} X must be an array, a DataFrame, a sparse matrix or a list of records,"
            f" got {type(features).__name__}."
        )
    return len(features)


def per_group(name: str, pair: Any, *, groups: tuple[Records, Records], values: str) -> PerGroup | None:
    """Return labels given beside the records as a pair (members, non-members), checked before a model spends any time.

    Args:
        name: The argument, the subject of error sentences: ``ids``.
        pair: One label for each record of both groups, or none.
        groups: The records.
        values: What the records have one of each: ``y``.
    """
    if pair is None:
        return None
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004
        raise InputError(f"{name} must be a pair (members, non-members), got {type(pair).__name__}.")
    columns = zip(groups, pair, strict=True)
    result = PerGroup(*(validate.column(f"{group.name} {name}", column) for group, column in columns))
    for group, column in zip(groups, result, strict=True):
        validate.same_length((f"{group.name} {values}", f"{group.name} {name}"), (len(group), column.size))
    return result


def take_rows(features: Any, *, rows: Rows) -> Any:
    """Return some rows of an array, a DataFrame, a sparse matrix or a list, in its own type."""
    if hasattr(features, "iloc"):
        return features.iloc[rows]
    if hasattr(features, "tocsr"):
        return features.tocsr()[rows]
    if isinstance(features, list | tuple) and not isinstance(rows, slice):
        return [features[row] for row in rows]
    try:
        return features[rows]
    except (TypeError, KeyError) as error:
        raise InputError(
            f"X must be an array or a list to be taken in parts, got {type(features).__name__}; convert it first."
        ) from error


# --- Records of a table: stretches of it in any order, and a few that are spread over it ---


@dataclass(frozen=True, eq=False)
class Batch:
    """Some records of a table, in the order of the table, with what is known of them beside features and labels.

    Attributes:
        records: Features and labels; its name is the source's and its first row that of the table.
        member: Shape (n,), which records the model was trained on.
        columns: What is to stand beside the losses, by name: ``id``, ``group``, ``person``, and ``label`` where each
            record has one class; arrays of shape (n,).
        fingerprint: Shape (n,), a 64-bit hash of each record's features; none where they cannot be hashed.
    """

    records: Records
    member: npt.NDArray[np.bool_]
    columns: Mapping[str, npt.NDArray[Any]]
    fingerprint: npt.NDArray[np.uint64] | None


class Source(Protocol):
    """A table of records. It can be pickled, so that another process can read it too."""

    @property
    def name(self) -> str:
        """The table in error sentences: "file 'adult.csv'", "members"."""
        ...

    def __len__(self) -> int:
        """How many records there are."""
        ...

    def read(self, start: int, stop: int) -> Batch:
        """Return the records from ``start`` to before ``stop``; quick where calls follow the order of the table.

        Raises:
            InputError: Rows that cannot be read, labels or membership that are none; the sentence names the first.
        """
        ...


_SPREAD = 200  # records of a group on which a model is tried
_STRETCHES = 100  # of a table, each read at once
_STRETCH = 5  # records in a row


_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Sampled(Records):
    """Some records of a group or table that need not follow each other in it.

    Attributes:
        rows: Shape (n,), the number of each in its group or table.
    """

    rows: npt.NDArray[np.intp] = field(kw_only=True)

    def part(self, start: int, stop: int) -> "Sampled":
        """Return the records from ``start`` to before ``stop``."""
        if start == 0 and stop >= len(self):
            return self
        return _sampled(self, slice(start, stop))

    def row(self, position: int) -> str:
        """Return the number of a record as error sentences say it."""
        return f"row {self.rows[position]}, counting from 0"


def spread(sample: Sequence[Records], *, most: int = _SPREAD) -> list[Records]:
    """Return at most ``most`` records of each group that has any, evenly spread."""
    found: list[Records] = []
    for group in sample:
        step = -(-len(group) // most)
        if step > 1:
            # An index array, where it can be had, for a slice would not be contiguous in memory.
            plain = isinstance(group.features, np.ndarray)
            found.append(
                _sampled(group, np.arange(0, len(group), step) if plain else slice(None, None, step))
            )
        elif step:
            found.append(group)
    return found


def sampled(source: Source) -> tuple[Records, npt.NDArray[np.bool_]]:
    """Return 500 records of a table in 100 stretches, evenly spread and read in order, and which are members.

    A table may be sorted, and its first records are then of one kind. A table that has no more records comes whole.
    """
    n = len(source)
    if n <= _STRETCHES * _STRETCH:
        batch = source.read(0, n)
        return batch.records, batch.member
    starts = [place * (n - _STRETCH) // (_STRETCHES - 1) for place in range(_STRETCHES)]
    batches = [source.read(start, start + _STRETCH) for start in starts]
    return _joined(batches), np.concatenate([batch.member for batch in batches])


def sampled_groups(sources: Sequence[Source]) -> list[Records]:
    """Return records spread over the members of each table that has any, and over its non-members."""
    found: list[Records] = []
    for source in sources:
        if not len(source):
            continue
        records, member = sampled(source)
        if member.all() or not member.any():
            found.append(records)
        else:
            found += [_sampled(records, np.flatnonzero(member == group)) for group in (True, False)]
    return found


def naming_rows(ask: Callable[[Records], _T], records: Records) -> _T:
    """Return what is asked of records; where that is refused, the sentence names the rows of the group or table.

    Sentences count on from the first record, so that of records that do not follow each other each run is asked again.

    Raises:
        InputError: What the asking raises.
    """
    try:
        return ask(records)
    except InputError:
        for start, stop in itertools.pairwise(_runs(records)):
            if stop - start < len(records):
                ask(records.part(start, stop))
        raise


def _runs(records: Records) -> list[int]:
    """Return where runs of records that follow each other begin, and the end."""
    breaks = np.flatnonzero(np.diff(_row_numbers(records)) != 1) + 1
    return [0, *breaks.tolist(), len(records)]


def _row_numbers(records: Records) -> npt.NDArray[np.intp]:
    if isinstance(records, Sampled):
        return records.rows
    return np.arange(records.first_row, records.first_row + len(records))


def _sampled(records: Records, rows: Rows) -> Sampled:
    numbers = _row_numbers(records)[rows]
    first = int(numbers[0]) if numbers.size else 0
    return Sampled(
        records.name, take_rows(records.features, rows=rows), records.labels[rows], first, rows=numbers
    )


def _joined(batches: Sequence[Batch]) -> Sampled:
    parts = [batch.records for batch in batches]
    return Sampled(
        parts[0].name,
        _concatenated([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
        parts[0].first_row,
        rows=np.concatenate([_row_numbers(part) for part in parts]),
    )


def _concatenated(features: Sequence[Any]) -> Any:
    """Return the features of stretches as those of one, in their own type."""
    if hasattr(features[0], "iloc"):
        import pandas as pd

        return pd.concat(features, ignore_index=True)
    if hasattr(features[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(features, format="csr")
    if isinstance(features[0], list | tuple):
        return list(itertools.chain.from_iterable(features))
    return np.concatenate(features)


# --- Features of any kind become the dense array of numbers that a network takes ---


_ENCODE = "the model's own pipeline must encode it, or leave the column out"


def is_frame(features: Any) -> bool:
    """Return whether features are a table with named columns (pandas or polars)."""
    return hasattr(features, "columns") and hasattr(features, "dtypes") and hasattr(features, "to_numpy")


def column_names(features: Any) -> list[Any]:
    """Return the names of the columns of a table, in order."""
    return list(features.columns)


def matrix(features: Any, *, dtype: npt.DTypeLike, place: str, first_row: int = 0) -> npt.NDArray[Any]:
    """Return features as one array with a row for each record.

    A column that holds vectors of equal length gives as many columns as they have entries; if it is the only column,
    arrays of any shape are stacked.

    Args:
        features: An array of any dimensions, a DataFrame, a sparse matrix, or a list of records.
        dtype: What the model takes; an integer type takes whole numbers only.
        place: Whose features they are, the subject of error sentences: ``member``.
        first_row: The number of the first record, for error sentences.

    Raises:
        InputError: A column of text, or of anything that is no number; the sentence names the column.

    >>> matrix([[1, 2], [3, 4]], dtype=np.float32, place="member")
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if hasattr(features, "toarray"):
        features = features.toarray()
    if not is_frame(features):
        return _numbers(features, dtype=np.dtype(dtype), what=f"{place} X", first_row=first_row)
    if _plain(features):
        return _numbers(features.to_numpy(), dtype=np.dtype(dtype), what=f"{place} X", first_row=first_row)
    parts = [
        column_array(features, name, dtype=dtype, place=place, first_row=first_row)
        for name in column_names(features)
    ]
    if len(parts) == 1 and parts[0].ndim > 1:
        return parts[0]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def column_array(
    features: Any, name: Any, *, dtype: npt.DTypeLike, place: str, first_row: int = 0
) -> npt.NDArray[Any]:
    """Return one column of a DataFrame as an array of shape (n,), or (n, ...) where it holds arrays."""
    series = features[name]
    what = f"{place} X, column {str(name)!r},"
    if _nullable(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    elif getattr(series.dtype, "kind", "") == "O" or not hasattr(series, "to_numpy"):
        values = np.asarray(series, dtype=object)
    else:
        values = series.to_numpy()
    return _numbers(values, dtype=np.dtype(dtype), what=what, first_row=first_row)


def refuse_width(features: Any, *, wanted: int, model: str, place: str) -> None:
    """Refuse a table with another number of columns than the model takes; what has no columns is left to the model."""
    shape = getattr(features, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] != wanted:  # noqa: PLR2004
        columns = f"{wanted} column{'s' if wanted > 1 else ''}"
        raise InputError(
            f"{place} X must have the {columns} that {model} was trained on, got {shape[1]}; give those alone, in"
            " the order of training (--features on the command line)."
        )


def _plain(features: Any) -> bool:
    """Return whether all columns are numpy numbers or booleans, so that the table can be taken at once."""
    kinds = {getattr(dtype, "kind", "O") for dtype in features.dtypes}
    return all(isinstance(dtype, np.dtype) for dtype in features.dtypes) and kinds <= set("fiub")


def _nullable(series: Any) -> bool:
    """Return whether this is one of pandas' own types of numbers, which mark missing values by themselves."""
    return hasattr(series, "iloc") and not isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiub"


def _numbers(values: Any, *, dtype: np.dtype[Any], what: str, first_row: int) -> npt.NDArray[Any]:
    array = _stacked(values, what)
    if array.dtype.kind not in "fiub":
        kind = "text" if array.dtype.kind in "USTO" else str(array.dtype)
        shown = next((item for item in array.ravel().tolist() if not isinstance(item, int | float)), None)
        raise InputError(f"{what} must be numbers for this model, got {kind} ({shown!r}); {_ENCODE}.")
    if dtype.kind in "iu" and array.dtype.kind == "f":
        _refuse_fractions(array, what, first_row)
    with np.errstate(
        over="ignore"
    ):  # a number beyond the type becomes infinite; what the model makes of it is seen
        return np.ascontiguousarray(array, dtype=dtype)


def _stacked(values: Any, what: str) -> npt.NDArray[Any]:
    """Return an array that is not one of objects, where its cells are numbers or arrays of equal shape."""
    try:
        array = np.asarray(values)
        if array.dtype.kind != "O":
            return array
        cells = array.ravel().tolist()
        if any(isinstance(cell, str | bytes) for cell in cells):
            return array
        found = np.stack([np.asarray(np.nan if cell is None else cell) for cell in cells])
    except ValueError:
        raise InputError(f"{what} must hold vectors of equal length, got different ones; pad them.") from None
    except TypeError as error:
        raise InputError(f"{what} must be numbers, got {validate.one_line(error)}; {_ENCODE}.") from error
    return found.reshape(array.shape + found.shape[1:])


def _refuse_fractions(array: npt.NDArray[Any], what: str, first_row: int) -> None:
    with np.errstate(invalid="ignore"):
        bad = ~(array == np.round(array)) | np.isinf(array)
    if bad.any():
        row = int(np.argmax(bad.reshape(len(array), -1).any(axis=1)))
        raise InputError(
            f"{what} must be whole numbers for this model, got {array[bad].ravel()[0]} (first at row {first_row + row},"
            " counting from 0); pass the codes it was trained on."
        )


# --- Where the value stands that a model refused: the model's own sentence says what it is, and seldom where ---


_Mask = npt.NDArray[np.bool_]

_MISSING = re.compile(r"\bnan\b|\bmissing values?\b", re.IGNORECASE)
_INFINITE = re.compile(r"\binf(inity|inite)?\b|too large", re.IGNORECASE)
_TEXT = re.compile(r"\bstrings?\b", re.IGNORECASE)
_TABLE = 2  # dimensions


def bad_value(records: Records, *, reason: str) -> str | None:
    """Return the place of the first value of the kind that a model complains of; none if no such value is found.

    Args:
        records: What the model refused.
        reason: What it says.

    >>> records = Records("member", np.array([[1.0, 2.0], [3.0, np.nan]]), np.zeros(2), first_row=10)
    >>> bad_value(records, reason="Input X contains NaN.")
    'row 11, counting from 0, column 1'
    """
    for words, is_bad in (
        (_MISSING, _missing_cells),
        (_INFINITE, lambda values: _infinite(values, short="float32" in reason)),
        (_TEXT, lambda values: _quoted(values, reason)),
    ):
        place = _first(records.features, is_bad) if words.search(reason) else None
        if place is not None:
            return f"{records.row(place[0])}, column {place[1]!r}"
    return None


def _first(features: Any, is_bad: Callable[[npt.NDArray[Any]], _Mask]) -> tuple[int, str | int] | None:
    """Return the row and the column of the first bad value, in the order of the rows."""
    found = [
        (int(rows[np.argmax(bad)]), place, name)
        for place, (name, rows, values) in enumerate(_columns(features))
        if (bad := is_bad(values)).any()
    ]
    row, _, name = min(found, default=(0, 0, None), key=lambda item: item[:2])
    return None if name is None else (row, name)


def _columns(features: Any) -> Iterator[tuple[str | int, npt.NDArray[Any], npt.NDArray[Any]]]:
    """Yield the name, the rows and the values of each column, as far as the features have columns."""
    if is_frame(features):
        for name in column_names(features):
            values = np.asarray(features[name])
            yield str(name), np.arange(len(values)), values
        return
    if hasattr(features, "tocsc"):
        sparse = features.tocsc().sorted_indices()
        for column in range(sparse.shape[1]):
            some = slice(sparse.indptr[column], sparse.indptr[column + 1])
            yield column, sparse.indices[some], sparse.data[some]
        return
    try:
        table = np.asarray(features, dtype=None if hasattr(features, "dtype") else object)
    except ValueError:  # rows of different lengths
        return
    if table.ndim == _TABLE:
        for column in range(table.shape[1]):
            yield column, np.arange(len(table)), table[:, column]


def _missing_cells(values: npt.NDArray[Any]) -> _Mask:
    if values.dtype.kind in "iubUS":
        return np.zeros(values.shape, dtype=np.bool_)
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.array(
        [
            is_missing(value) or (isinstance(value, np.floating) and np.isnan(value))
            for value in values.tolist()
        ],
        dtype=np.bool_,
    )


def _infinite(values: npt.NDArray[Any], *, short: bool) -> _Mask:
    """Which numbers are beyond the largest that the model takes."""
    largest = float(np.finfo(np.float32 if short else np.float64).max)
    if values.dtype.kind in "iuf":
        return np.asarray(np.abs(values.astype(np.float64)) > largest)
    numbers = [
        isinstance(value, float | np.floating) and abs(float(value)) > largest for value in values.tolist()
    ]
    return np.array(numbers, dtype=np.bool_)


def _quoted(values: npt.NDArray[Any], reason: str) -> _Mask:
    """Which values are the text that the model quotes: other text may be a category that it knows."""
    if values.dtype.kind in "iufb":
        return np.zeros(values.shape, dtype=np.bool_)
    quoted = [isinstance(value, str) and repr(value) in reason for value in values.tolist()]
    return np.array(quoted, dtype=np.bool_)
