"""Records to score: their features, their labels and their place in error sentences; stretches, samples, matrices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from auditor.core import Array, Booleans, InputError, PerGroup, validate
from auditor.records.features import hashes_of

Codes = npt.NDArray[np.intp]
_EXACT = 2**53
Rows = slice | Codes


@dataclass(frozen=True, eq=False)
class Records:
    """Features and labels of some records of one group or table.

    Attributes:
        name: Name of the group or table, the subject of error sentences: ``member``, or a file.
        features: Anything that the model takes, with one row (or item) for each record.
        labels: One label for each record; shape (n,), or (n, K) where a record has several.
        first_row: The number of the first record in its group or table, for error sentences.
        rows: Shape (n,), the number of each, where they do not follow each other.
    """

    name: str
    features: Any
    labels: Array
    first_row: int = 0
    rows: Codes | None = None

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    @property
    def numbers(self) -> Codes:
        """The number of each record in its group or table."""
        return np.arange(self.first_row, self.first_row + len(self)) if self.rows is None else self.rows

    def part(self, start: int, stop: int) -> "Records":
        """Return the records from ``start`` to before ``stop``, of features in their own type."""
        if start == 0 and stop >= len(self):
            return self
        return self.take(slice(start, stop))

    def take(self, rows: Rows) -> "Records":
        """Return some of the records, which keep their numbers."""
        features = take_rows(self.features, rows=rows)
        return Records(self.name, features, self.labels[rows], rows=self.numbers[rows])

    def row(self, position: int) -> str:
        """Return the number of a record as error sentences say it."""
        number = self.first_row + position if self.rows is None else self.rows[position]
        return f"row {number}, counting from 0"

    def stretch(self, start: int, stop: int) -> str:
        """Return in words which records are those from ``start`` to before ``stop``."""
        first, last = self.numbers[start], self.numbers[stop - 1]
        rows = f"row {first}" if first == last else f"rows {first} to {last}"
        return f"{self.name} {rows}, counting from 0"

    def refuse(self, bad: Booleans, must: str, *, got: Array, fix: str, start: int = 0) -> None:
        """Refuse the first record, if there is one, that has a bad value.

        Args:
            bad: Shape (n, ...), which values are bad.
            must: Constraint on the values: "outputs must be finite".
            got: Shape (n, ...), the values.
            fix: Fix.
            start: The position of the first of these records.

        Raises:
            InputError: Names the first bad value and its row.
        """
        if bad.any():
            row = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
            value = np.ravel(got[row])[int(np.argmax(bad[row]))]
            raise InputError(
                f"{self.name} {must}, got {value:.6g} (first at {self.row(start + row)}); {fix}."
            )

    def codes(self, classes: Sequence[Any]) -> Codes:
        """Return the position of each label among the classes; 1, 1.0 and True are the same label.

        Classes that are all text match labels that are not text by their spelling (`spelled`), for a CSV says nothing
        of types.
        """
        text = all(isinstance(name, str) for name in classes)
        text = text and not any(isinstance(label, str) for label in self.labels.tolist())
        names = spelled(classes) if text else list(classes)
        try:
            positions = _positions(self.labels, names)
        except TypeError:
            raise InputError(f"{self.name} labels must be numbers or strings, got others.") from None
        if positions is None:
            raise InputError(f"classes must be distinct, got {listed(names)}.")
        bad = positions < 0
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self.name} label {self.labels.tolist()[row]!r} (first at {self.row(row)}; at least {int(bad.sum())}"
                f" such records) is not one of the model's classes {listed(classes)}; leave those records out, or name the"
                " class of each output column with classes= (--classes)."
            )
        return positions


def _positions(labels: Array, names: Sequence[Any]) -> Codes | None:
    """Return the place of each label among distinct names, -1 of one that is none of them; None where names repeat."""
    both = [labels, np.asarray(names)]
    if len(names) and all(
        item.dtype.kind in "biuf" and ((item < _EXACT) & (item > -_EXACT)).all() for item in both
    ):
        values, options = (item.astype(np.float64) for item in both)  # exactly
        order = np.argsort(options)
        options = options[order]
        place = np.minimum(np.searchsorted(options, values), options.size - 1)
        found = np.where(options[place] == values, order[place], -1)
        return None if (options[1:] == options[:-1]).any() else found
    import pandas as pd

    index = pd.Index(names, dtype=object)
    return np.asarray(index.get_indexer(labels.astype(object))) if index.is_unique else None


def listed(names: Sequence[Any], *, most: int = 10) -> str:
    """Return names as sentences list them.

    >>> listed([1, "a", 2], most=2)
    "1, 'a', ..."
    """
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def places(names: Sequence[Any], classes: Sequence[Any]) -> list[int]:
    """Return the position of each name among the classes by value, or by the value that text spells; -1 if missing.

    >>> places(["1", "0"], [0, 1]), places(["cat", "fox"], ["fox"])
    ([1, 0], [-1, 0])
    """
    positions: list[int] = []
    for these, those in ((names, classes), (spelled(names), spelled(classes))):
        position = {name: place for place, name in enumerate(those)}
        positions = [position.get(name, -1) for name in these]
        if -1 not in positions:
            break
    return positions


def spelled(classes: Sequence[Any]) -> list[Any]:
    """Return text as the numbers and truth values that it spells, and as it is elsewhere or if two spell the same.

    >>> spelled(["0", "1.5", "true", "other"]), spelled(["1", "01"])
    ([0, 1.5, True, 'other'], ['1', '01'])
    """
    values = [_value(text) if isinstance(text, str) else text for text in classes]
    numbers = [value for value in values if not isinstance(value, str)]
    return values if len(set(numbers)) == len(numbers) else list(classes)


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


def plain_labels(name: str, target: Any) -> Array:
    """Return labels as an array, of one dimension where each record has one."""
    labels = validate.array(f"{name} y", target)
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels  # noqa: PLR2004


def count_records(name: str, features: Any) -> int:
    """Return how many records there are."""
    shape = getattr(features, "shape", None)
    if shape:
        return int(shape[0])
    one = isinstance(features, str | bytes | Mapping | set) or not hasattr(features, "__len__")
    one_of = "; pass one array of it as X, such as 'input_ids'" if isinstance(features, Mapping) else ""
    if shape is not None or one:
        raise InputError(
            f"{name} X must be an array, a DataFrame, a sparse matrix or a list of records,"
            f" got {type(features).__name__}{one_of}."
        )
    return len(features)


def labels_beside(groups: tuple[Records, Records], *, values: str, **pairs: Any) -> dict[str, Any]:
    """Return labels that stand beside the records as pairs (members, non-members), checked before a model spends any time.

    Args:
        groups: The records.
        values: Values, one for each record: ``y``.
        pairs: One label for each record of both groups, or None, by the name of the argument without its s: ``id``.
    """
    labels: dict[str, Any] = {}
    for name, pair in pairs.items():
        if pair is not None:
            columns = []
            for group, given in zip(groups, validate.pair(f"{name}s", pair), strict=True):
                columns.append(validate.column(f"{group.name} {name}s", given))
                names = (f"{group.name} {values}", f"{group.name} {name}s")
                validate.same_length(names, (len(group), columns[-1].size))
            labels[name] = PerGroup(*columns)
    return labels


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
    except (TypeError, KeyError, RuntimeError) as error:
        raise InputError(
            f"X must be an array or a list to be taken in parts, got {type(features).__name__}; convert it first."
        ) from error


# --- Records of a table: stretches of it in any order, and a few that are spread over it ---


@dataclass(frozen=True, eq=False)
class Batch:
    """Some records of a table, in the order of the table, with the facts besides features and labels.

    Attributes:
        records: Features and labels; its name is the source's and its first row that of the table.
        member: Shape (n,), which records the model was trained on.
        columns: Columns to add to the losses, by name: ``id``, ``group``, ``person``, and ``label`` where each
            record has one class; arrays of shape (n,).
    """

    records: Records
    member: Booleans
    columns: Mapping[str, Array]

    @cached_property
    def fingerprint(self) -> npt.NDArray[np.uint64] | None:
        """Shape (n,), a 64-bit hash of each record's features; None if they cannot be hashed."""
        try:
            return hashes_of(self.records.features)
        except InputError:
            return None


class Source(Protocol):
    """A table of records. It can be pickled, so that another process can read it too."""

    @property
    def name(self) -> str:
        """The table in error sentences: "file 'adult.csv'", "members"."""

    def __len__(self) -> int:
        """Return the number of records."""

    def read(self, start: int, stop: int) -> Batch:
        """Return the records from ``start`` to before ``stop``; quick where calls follow the order of the table.

        Raises:
            InputError: Rows that cannot be read, labels or membership that are none; the sentence names the first.
        """


_SPREAD = 200  # records of a group on which a model is tried
_LEAST, _SHARE = 50, 20  # so many at least, and else one in so many, so that trying costs little
_STRETCHES = 100  # of a table, each read at once
_STRETCH = 5  # records in a row


def spread(sample: Sequence[Records], *, most: int = _SPREAD, least: int = _LEAST) -> list[Records]:
    """Return at most ``most`` records of each group that has any, evenly spread; of a small group a twentieth, or ``least``."""
    groups: list[Records] = []
    for group in sample:
        step = -(-len(group) // min(most, max(least, len(group) // _SHARE)))
        if step > 1:
            # An index array, where it can be had, for a slice would not be contiguous in memory.
            plain = isinstance(group.features, np.ndarray)
            groups.append(group.take(np.arange(0, len(group), step) if plain else slice(None, None, step)))
        elif step:
            groups.append(group)
    return groups


def sampled(source: Source) -> tuple[Records, Booleans]:
    """Return 500 records of a table in 100 stretches, evenly spread and read in order, and which are members.

    A table may be sorted, and its first records are then of one kind. A table that has no more records comes whole.
    """
    n, size = len(source), _STRETCH
    starts = [place * (n - size) // (_STRETCHES - 1) for place in range(_STRETCHES)]
    if n <= _STRETCHES * size:
        starts, size = [0], n
    batches = [source.read(start, start + size) for start in starts]
    records = joined_records([batch.records for batch in batches])
    return records, np.concatenate([batch.member for batch in batches])


def joined_records(parts: Sequence[Records]) -> Records:
    """Return the records of several batches as one."""
    features = _concatenated([part.features for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    rows = np.concatenate([part.numbers for part in parts])
    return Records(parts[0].name, features, labels, rows=rows)


def sampled_groups(sources: Sequence[Source]) -> list[Records]:
    """Return records spread over the members of each table that has any, and over its non-members."""
    groups: list[Records] = []
    for source in sources:
        records, member = sampled(source)
        if member.all() or not member.any():
            groups.append(records)
        else:
            groups += [records.take(np.flatnonzero(member == group)) for group in (True, False)]
    return groups


def _concatenated(features: Sequence[Any]) -> Any:
    """Return the features of stretches as those of one, in their own type."""
    if hasattr(features[0], "iloc"):
        import pandas as pd

        return pd.concat(features, ignore_index=True)
    if hasattr(features[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(features, format="csr")
    if isinstance(features[0], list | tuple):
        return [item for part in features for item in part]
    if hasattr(features[0], "detach"):
        import torch

        return torch.cat(list(features))
    return np.concatenate(features)


# --- Features of any kind become the dense array of numbers that a network takes ---


_ENCODE = "the model's own pipeline must encode it, or leave the column out"


def is_frame(features: Any) -> bool:
    """Return whether features are a table with named columns (pandas or polars)."""
    return hasattr(features, "columns") and hasattr(features, "dtypes") and hasattr(features, "to_numpy")


def matrix(records: Records, *, dtype: npt.DTypeLike) -> Array:
    """Return the features of records as one array with a row for each.

    A column that holds vectors of equal length gives as many columns as they have entries; if it is the only column,
    arrays of any shape are stacked.

    Args:
        records: Records with features in an array of any dimensions, a DataFrame, a sparse matrix, or a list.
        dtype: Type that the model takes; an integer type takes whole numbers only.

    Raises:
        InputError: A column of text, or of anything that is no number; the sentence names the column.

    >>> matrix(Records("member", [[1, 2], [3, 4]], np.zeros(2)), dtype=np.float32)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    features = records.features
    if hasattr(features, "toarray"):
        features = features.toarray()
    if not is_frame(features):
        return _numbers(features, records, "X", np.dtype(dtype))
    if all(isinstance(kind, np.dtype) and kind.kind in "fiub" for kind in features.dtypes):
        return _numbers(features.to_numpy(), records, "X", np.dtype(dtype))
    parts = [column_array(records, name, dtype=dtype) for name in features.columns]
    if len(parts) == 1 and parts[0].ndim > 1:
        return parts[0]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def column_array(records: Records, name: Any, *, dtype: npt.DTypeLike) -> Array:
    """Return one column of a DataFrame as an array of shape (n,), or (n, ...) where it holds arrays; objects are text."""
    series = records.features[name]
    if np.dtype(dtype) == object:
        return _text(series)
    kind = getattr(series.dtype, "kind", "")
    if hasattr(series, "iloc") and not isinstance(series.dtype, np.dtype) and kind in "fiub":  # of pandas
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    elif kind == "O" or not hasattr(series, "to_numpy"):
        values = np.asarray(series, dtype=object)
    else:
        values = series.to_numpy()
    return _numbers(values, records, f"X, column {str(name)!r},", np.dtype(dtype))


def refuse_width(features: Any, *, wanted: int, model: str, place: str) -> None:
    """Refuse a table with another number of columns than the model takes; an array without columns is left to the model."""
    shape = getattr(features, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] != wanted:  # noqa: PLR2004
        columns = f"{wanted} column{'s' if wanted > 1 else ''}"
        raise InputError(
            f"{place} X must have the {columns} that {model} was trained on, got {shape[1]}; give those alone, in"
            " the order of training (features)."
        )


def _numbers(values: Any, records: Records, what: str, dtype: np.dtype[Any]) -> Array:
    array = _stacked(values, f"{records.name} {what}")
    if array.dtype.kind not in "fiub":
        kind = "text" if array.dtype.kind in "USTO" else str(array.dtype)
        example = next((item for item in array.ravel().tolist() if not isinstance(item, int | float)), None)
        raise InputError(
            f"{records.name} {what} must be numbers for this model, got {kind} ({example!r}); {_ENCODE}."
        )
    if dtype.kind in "iu" and array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            broken = ~(array == np.round(array)) | np.isinf(array)
        must = f"{what} must be whole numbers for this model"
        records.refuse(broken, must, got=array, fix="pass the codes it was trained on")
    # A number beyond the type becomes infinite; the model's output shows the effect.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=dtype)


def _stacked(values: Any, what: str) -> Array:
    """Return an array that is not one of objects, where its cells are numbers or arrays of equal shape."""
    try:
        array = np.asarray(validate.detached(values))
        if array.dtype.kind != "O":
            return array
        cells = array.ravel().tolist()
        if any(isinstance(cell, str | bytes) for cell in cells):
            return array
        stacked = np.stack([np.asarray(np.nan if cell is None else cell) for cell in cells])
    except ValueError:
        raise InputError(f"{what} must hold vectors of equal length, got different ones; pad them.") from None
    except TypeError as error:
        raise InputError(f"{what} must be numbers, got {validate.one_line(error)}; {_ENCODE}.") from error
    return stacked.reshape(array.shape + stacked.shape[1:])


# --- Records into the inputs that a model names: one that takes all columns, or one for each column by its name ---


@dataclass(frozen=True)
class Input:
    """One input of a model.

    Attributes:
        name: By which a column is found.
        shape: Shape of one record; sizes that are not fixed are None. None if unknown.
        dtype: Type that it takes; objects are text.
    """

    name: str
    shape: tuple[int | None, ...] | None
    dtype: np.dtype[Any]


def arrays(inputs: Sequence[Input], records: Records, *, model: str) -> dict[str, Array]:
    """Return the part of a batch for each input of a model.

    Raises:
        InputError: Text where numbers are wanted, another number of columns, or an input without a column.
    """
    features = records.features
    if len(inputs) == 1:
        values = _text(features) if inputs[0].dtype == object else matrix(records, dtype=inputs[0].dtype)
        return {inputs[0].name: _shaped(values, inputs[0], records, model)}
    names = [item.name for item in inputs]
    if not is_frame(features):
        raise InputError(
            f"{records.name} X must be a table with a column for each of the model's {len(inputs)} inputs"
            f" ({listed(names)}), got {type(features).__name__}."
        )
    missing = [name for name in names if name not in list(features.columns)]
    if missing:
        raise InputError(
            f"{records.name} X must have a column for each input of the model, but not all have one:"
            f" {listed(missing)}."
        )
    columns = [column_array(records, item.name, dtype=item.dtype) for item in inputs]
    return {
        item.name: _shaped(column, item, records, model) for item, column in zip(inputs, columns, strict=True)
    }


def _text(features: Any) -> Array:
    values = features.to_numpy() if hasattr(features, "to_numpy") else np.asarray(features)
    return np.asarray(values.astype(np.str_).astype(object))


def _shaped(array: Array, item: Input, records: Records, model: str) -> Array:
    """Return an array in the shape of an input: flat rows of an image become one, and a column a table of one."""
    own, shape = array.shape[1:], item.shape
    if shape is None:
        return array
    fixed = [size for size in shape if size is not None]
    if len(own) != len(shape) == len(fixed) and math.prod(own) == math.prod(fixed):
        return array.reshape(len(array), *fixed)
    if len(shape) == 1:
        array = array.reshape(len(array), -1)
        if fixed:
            refuse_width(array, wanted=fixed[0], model=model, place=records.name)
    return array
