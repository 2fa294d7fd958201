"""JSON both ways: the features of a batch with every digit, and the outputs in an answer."""

import csv
import datetime as dt
import decimal
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from auditor.collectors.base.named import NamedOutputs
from auditor.collectors.base.records import Records, is_frame
from auditor.collectors.served.transport import UnusableError
from auditor.core import Array, InputError
from auditor.records.labels import is_missing

# --- Features as values of JSON ---


@dataclass(frozen=True, eq=False)
class Payload:
    """The features of some records.

    Attributes:
        rows: One item for each record: a list of cells, a nested list, or a single value; None if it is missing.
        columns: The names of the cells, where they have any.
        shape: The shape of one record: (4,) for four cells, () for a single value.
        text: Whether any cell of the batch is text.
    """

    rows: Sequence[Any]
    columns: tuple[str, ...] | None
    shape: tuple[int, ...]
    text: bool

    def part(self, start: int, stop: int) -> "Payload":
        """Return the records from ``start`` to before ``stop``."""
        return replace(self, rows=self.rows[start:stop])

    def objects(self) -> list[dict[str, Any]]:
        """Return each record as a dictionary by the names of the columns."""
        return [dict(zip(self.columns or (), row, strict=True)) for row in self.rows]


def json_text(value: Any) -> str:
    """Return JSON without spaces; floats keep every digit.

    >>> json_text([0.1, 1 / 3, True, "a"])
    '[0.1,0.3333333333333333,true,"a"]'
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def csv_text(rows: Sequence[Any]) -> str:
    r"""Return CSV without a header: floats with every digit, truth values as 0 and 1, missing cells empty.

    Raises:
        InputError: Cells that hold several values.

    >>> csv_text([[0.1, True, None], [1 / 3, False, "a,b"]])
    '0.1,1,\n0.3333333333333333,0,"a,b"\n'
    """
    table = [row if isinstance(row, list) else [row] for row in rows]
    if any(isinstance(cell, list) for row in table for cell in row):
        raise InputError(
            "X must have one value in each column where the request has {{csv}}, got several; use {{rows}}."
        )
    text = io.StringIO()
    numbers = ([int(cell) if isinstance(cell, bool) else cell for cell in row] for row in table)
    csv.writer(text, lineterminator="\n").writerows(numbers)
    return text.getvalue()


def json_payload(records: Records) -> Payload:
    """Return the features of a batch.

    Raises:
        InputError: Cells that JSON cannot carry; the sentence names the first row and column.

    >>> batch = Records("member", np.array([[0.5, 2.0]], dtype=np.float32), np.array([1]))
    >>> json_payload(batch).rows, json_payload(batch).shape
    ([[0.5, 2.0]], (2,))
    """
    features = records.features
    columns = tuple(map(str, features.columns)) if is_frame(features) else None
    array = _array(features, records)
    if array.dtype.kind in "OM" or (array.dtype.kind == "f" and np.isnan(array).any()):
        # Not np.frompyfunc, which warns wherever Python's own comparison with a NaN sets the processor's flag.
        cells = map(_plain, array.astype(np.object_).flat)
        array = np.fromiter(cells, dtype=np.object_, count=array.size).reshape(array.shape)
        good = np.fromiter(map(_is_sendable, array.flat), np.bool_, count=array.size).reshape(array.shape)
    else:
        good = np.isfinite(array) if array.dtype.kind in "fiub" else np.zeros(array.shape, dtype=np.bool_)
    if not good.all():
        row, *place = np.argwhere(~good)[0].tolist()
        value = array[row, *place]
        got = value if isinstance(value, float | np.floating) else type(value).__name__
        column = repr(columns[place[0]]) if columns else ", ".join(map(str, place))
        raise InputError(
            f"{records.name} X must hold finite numbers or text to be sent, got {got} (first at"
            f" {records.row(row)}{', column ' if column else ''}{column}); JSON has no infinite numbers and no"
            " other types: convert them, or leave those records out."
        )
    text = array.dtype.kind == "O" and any(isinstance(cell, str) for cell in array.flat)
    return Payload(array.tolist(), columns, array.shape[1:], text)


def _array(features: Any, records: Records) -> Array:
    """Return an array of numbers, or one of objects, in which no number became text."""
    try:
        if is_frame(features):
            columns = [np.fromiter(features[name], dtype=np.object_) for name in features.columns]
            return np.stack(columns, axis=1)
        array = np.asarray(features.toarray() if hasattr(features, "toarray") else features)
        return np.asarray(features, dtype=np.object_) if array.dtype.kind in "US" else array
    except (ValueError, TypeError):
        raise InputError(
            f"{records.name} X must be a table, an array or a list of texts, got rows of different lengths."
        ) from None


def _plain(value: Any) -> Any:
    """Return a cell as a value of JSON, as far as it is one: times as ISO text, decimals as numbers, None if missing."""
    if isinstance(value, np.generic | np.ndarray) and not isinstance(value, np.datetime64):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_missing(value):
        return None
    if isinstance(value, dt.date | np.datetime64):
        return str(value).replace(" ", "T")
    return float(value) if isinstance(value, decimal.Decimal) else value


def _is_sendable(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_sendable, value))
    return (
        value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    )


# --- Choice among several outputs ---


# Names of the probabilities among several outputs of servers, the surest first.
PROBABILITIES = (
    *("predict_proba", "probabilities", "probability", "output_probability", "probs", "proba", "prob"),
    *("softmax", "scores"),
)

_DIFFERENT, _LOG = "answered with rows of different outputs", "look into the server's log"
# Their names for the names of the classes, and other words for the probabilities that stand beside these.
CLASSES = (
    *("classes", "class_names", "classnames", "displaynames", "labels", "class", "label"),
    *("displayname", "tagname"),
)
_SCORES = (*PROBABILITIES, "score", "confidences", "confidence")
_NUMBER = int | float | None  # null is refused by its row later on


def _first(ranked: Sequence[str], names: Iterable[Any]) -> Any:
    """Return the name of the highest rank, in capitals or not; None if there is none."""
    by_name = {str(name).casefold(): name for name in reversed([*names])}
    return next((by_name[name] for name in ranked if name in by_name), None)


@dataclass(frozen=True)
class Wanted:
    """Output that is requested of a model.

    Attributes:
        name: The one that the caller named, if any.
        probabilities: Whether class probabilities are looked for; a regression takes any output.
    """

    name: str | None
    probabilities: bool

    def one_of(self, names: Sequence[str]) -> str:
        """Return which of several outputs is meant.

        Raises:
            UnusableError: It is not known.

        >>> Wanted(None, probabilities=True).one_of(["label", "probabilities"])
        'probabilities'
        """
        if self.name in names or (self.name is None and len(names) == 1):
            return self.name or names[0]
        likely = self.likely(names)
        if likely is None:
            missing = "" if self.name is None else f", not {self.name!r}"
            raise UnusableError(
                f"answered with the outputs {{said}}{missing}",
                said=", ".join(f"'{name}'" for name in names) or "none",
                fix="name the one to use with output_name=",
            )
        return likely

    def likely(self, names: Sequence[str]) -> str | None:
        """Return the output that is called after probabilities, if they are wanted and nothing is named."""
        return _first(PROBABILITIES, names) if self.probabilities and self.name is None else None

    def rows(self, value: Any) -> Any:
        """Return the rows of an answer; objects of several outputs become the one that is meant.

        A row with a name for each number, in any of the forms of `by_name`, becomes an object of numbers by name. A row
        that lacks what most have becomes None, for `unanswered`.

        >>> Wanted(None, probabilities=True).rows([{"label": 1, "probs": [0.2, 0.8]}])
        [[0.2, 0.8]]
        >>> Wanted(None, probabilities=True).rows([{"classes": ["b", "a"], "scores": [0.8, 0.2]}])
        [{'b': 0.8, 'a': 0.2}]
        """
        if isinstance(value, dict):  # columnar: one list for each output
            rows = self._by_record(value)
            return value[self.one_of(list(value))] if rows is None else self.rows(rows)
        first: Any = value[0] if isinstance(value, list) and value else None
        if not isinstance(first[0] if isinstance(first, list) and first else first, dict) or None in value:
            return value
        named = [self.by_name(row) for row in value]
        if 2 * named.count(None) < len(named):
            return named
        objects = [row if isinstance(row, dict) else {} for row in value]
        name = self.one_of(list(dict.fromkeys(chain.from_iterable(objects))))
        return [row.get(name) for row in objects]

    def by_name(self, row: Any) -> dict[str, Any] | None:
        """Return the numbers of one record by their names; None if they have no names.

        The forms are ``{"cat": 0.8}``, such an object as an output among others, ``{"classes": ["cat"], "scores": [0.8]}``,
        ``{"label": "cat", "score": 0.8}`` and a list of such.
        """
        items = row if isinstance(row, list) and all(isinstance(item, dict) for item in row) else []
        pairs = [self._named_scores(item) for item in items]
        if pairs and all(isinstance(name, str | int) and isinstance(of, _NUMBER) for name, of in pairs):
            row = {"classes": [pair[0] for pair in pairs], self.name or "scores": [pair[1] for pair in pairs]}
        if not isinstance(row, dict) or (self.name or "").casefold() in CLASSES:
            return None  # or the labels alone are wanted
        names, scores = self._named_scores(row)
        if isinstance(names, str | int) and "score" in row:
            names, scores = [names], [scores]
        if isinstance(names, list) and isinstance(scores, list):
            by_class = dict(zip(map(str, names), scores, strict=False))
            if len(by_class) < len(names) == len(scores):
                raise UnusableError("answered with two scores of one class", fix=_LOG)
            return by_class if len(by_class) == len(names) == len(scores) else None
        plain = self.name is None and _first(_SCORES, row) is None
        by_class = scores if isinstance(scores, dict) else row if plain else {}
        numbers = all(isinstance(cell, _NUMBER) for cell in by_class.values())
        return by_class if numbers and (by_class or not row) else None

    def _named_scores(self, outputs: dict[str, Any]) -> tuple[Any, Any]:
        """Return the output that names classes, and that with their scores."""
        names, scores = (outputs.get(_first(ranked, outputs)) for ranked in (CLASSES, _SCORES))
        return names, scores if self.name is None else outputs.get(self.name)

    def _by_record(self, outputs: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return columns of classes and their scores as an object for each record; None for others."""
        columns = self._named_scores(outputs)
        if all(isinstance(cells, list) and cells and isinstance(cells[0], list) for cells in columns):
            keys = CLASSES[0], self.name or PROBABILITIES[0]
            return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=False)]
        return None


# --- Content of an answer: numbers with one row for each record, or a reason why not ---


def named_outputs(rows: Sequence[dict[Any, Any]]) -> NamedOutputs:
    """Return numbers by name of each record as a table with a column for each name.

    >>> named_outputs([{"a": 0.5, "b": 0.25}, {"b": 0.75}]).values
    array([[0.5 , 0.25],
           [ nan, 0.75]])
    """
    if not all(isinstance(row, dict) for row in rows) or not any(rows):
        raise UnusableError(_DIFFERENT, fix=_LOG)
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    cells = np.array([[row.get(name, np.nan) for name in names] for row in rows], dtype=np.object_)
    values = as_float32_if_rounded(answer_rows(cells, n=len(rows)).reshape(len(rows), -1))
    absent = np.array([[name not in row for name in names] for row in rows])
    return NamedOutputs(names, values, absent, one_order=len({tuple(row) for row in rows}) == 1)


def joined_answers(arrays: Sequence[Array]) -> Array | NamedOutputs:
    """Return the parts read from several answers as one.

    Raises:
        UnusableError: Rows of different lengths or outputs.
    """
    if len({array.shape[1:] for array in arrays}) > 1:
        raise UnusableError("answered with rows of different lengths", fix=_LOG)
    outputs = np.concatenate(arrays)
    if outputs.dtype.kind == "O" and any(isinstance(row, dict) for row in outputs):
        return named_outputs(outputs.tolist())
    return as_float32_if_rounded(outputs)


def unanswered(value: Any, *, n: int) -> int | None:
    """Return the position of the first of ``n`` records whose answer is null or empty; None if all have one.

    >>> unanswered([[0.2, 0.8], None], n=2), unanswered([0.2, 0.8], n=2)
    (1, None)
    """
    rows = value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind == "O" else value
    rows = rows if isinstance(rows, list) else []
    return next(
        (place for place, row in zip(range(n), rows, strict=False) if row in (None, [], [None])), None
    )


def answer_rows(value: Any, *, n: int) -> Array:
    """Return rows as an array with one row for each of ``n`` records: floats, or labels of text and numbers by name as objects.

    ``null`` among the numbers of a record becomes NaN, which is refused by row later on; a number may stand as text ("NaN").

    Raises:
        UnusableError: Rows of different lengths, another number of them, or a number that no float can be.

    >>> answer_rows([[0.25, None]], n=1)
    array([[0.25,  nan]])
    """
    try:
        # Of objects, for an array of text takes the room of the longest for each.
        array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=np.object_)
        one_each = array.size == len(np.atleast_1d(array))
        named = one_each and all(isinstance(label, str | dict) for label in array.flat)
        if array.dtype.kind == "O" and not named:
            array = array.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        fix = "check the protocol, and which part of the answer is used (output_name=, or response_path=)"
        raise UnusableError("answered with something other than a table of numbers", fix=fix) from None
    if array.ndim == 0 or len(array) != n:
        got = "no rows" if array.ndim == 0 else f"{len(array)} rows"
        fix = "send one record at a time with max_request_records=1, or check the model's input shape"
        raise UnusableError(f"answered with {got} instead of {n}", fix=fix)
    return array.reshape(n, -1)[:, 0] if array.size == n else array


def as_float32_if_rounded(values: Array) -> Array:
    """Return float32 where the numbers of an answer are those of a float32 model, which JSON does not say.

    They are if each is exactly a float32, or the decimal (shortest, or of nine digits) that one is written as. Numbers
    that every type has, such as 0, 1 and 0.5, say nothing, and nor do short decimals such as 0.35, as a forest of a
    hundred trees gives. It matters where probabilities saturate.

    >>> as_float32_if_rounded(np.array([float(np.float32(0.1)), 1.0])).dtype, as_float32_if_rounded(np.array([0.1 + 1e-12])).dtype
    (dtype('float32'), dtype('float64'))
    """
    if values.dtype != np.float64:
        return values
    flat = values[(np.abs(values) < _SINGLE_MOST)]  # no NaN, and nothing that a float32 cannot hold
    looked = flat[flat * 4096 != np.round(flat * 4096)][:_LOOKED].tolist()
    telling = list(islice((value for value in looked if _digits(value) >= _LONG), _EVIDENCE))
    if telling and all(map(_is_single, telling)):
        return values.astype(np.float32)
    return values


_SINGLE_MOST = 1e30
_LOOKED = 4096  # numbers of a batch that are looked at
_LONG = 7  # significant digits from which on a decimal shows what it was rounded to: float32 has seven
_EVIDENCE = 64  # numbers of a batch that say how many digits the model has


def _digits(value: float) -> int:
    """Return how many significant digits the shortest decimal of a number has."""
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def _is_single(value: float) -> bool:
    single = np.float32(value)
    return value in (float(single), float(str(single)), float(f"{single:.9g}"))
