"""JSON both ways: the features of a batch with every digit, and the outputs in an answer."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.records import Records, column_names, is_frame
from auditor.collectors.served.transport import printable
from auditor.core.errors import InputError

# --- Features as values of JSON ---


_MISSING = "JSON has no missing values: fill them in, or leave those records out"
_WRITER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_TABLE = 2  # dimensions


@dataclass(frozen=True, eq=False)
class Payload:
    """The features of some records.

    Attributes:
        rows: One item for each record: a list of cells, a nested list, or a single value.
        columns: The names of the cells, where they have any.
        shape: The shape of one record: (4,) for four cells, () for a single value.
        text: Whether any cell is text.
    """

    rows: Sequence[Any]
    columns: tuple[str, ...] | None
    shape: tuple[int, ...]
    text: bool

    def part(self, start: int, stop: int) -> "Payload":
        """Return the records from ``start`` to before ``stop``."""
        return Payload(self.rows[start:stop], self.columns, self.shape, self.text)

    def texts(self) -> list[str]:
        """Return the JSON of each record as a list of cells."""
        return [json_text(row) for row in self.rows]

    def objects(self) -> list[dict[str, Any]]:
        """Return each record as a dictionary by the names of the columns."""
        return [dict(zip(self.columns or (), row, strict=True)) for row in self.rows]


def json_text(value: Any) -> str:
    """Return JSON without spaces; floats keep every digit.

    >>> json_text([0.1, 1 / 3, True, "a"])
    '[0.1,0.3333333333333333,true,"a"]'
    """
    return _WRITER.encode(value)


def json_payload(records: Records, *, columns: Sequence[str] | None = None) -> Payload:
    """Return the features of a batch; ``columns`` names those of an array.

    Raises:
        InputError: Missing values, or cells that JSON cannot carry; the sentence names the first row and column.

    >>> batch = Records("member", np.array([[0.5, 2.0]], dtype=np.float32), np.array([1]))
    >>> json_payload(batch).rows, json_payload(batch).shape
    ([[0.5, 2.0]], (2,))
    """
    features = records.features
    if hasattr(features, "toarray"):
        features = features.toarray()
    if is_frame(features):
        found = [_column(np.asarray(features[name]), records, name) for name in column_names(features)]
        return _of_columns(found, tuple(map(str, column_names(features))))
    array = _array(features, records)
    if array.dtype.kind in "fiub":
        _refuse_missing(array, records, columns)
        return Payload(array.tolist(), _names(columns, array, records), array.shape[1:], text=False)
    if array.ndim == 1:
        cells = _column(array, records, None)
        return Payload(cells, None, (), text=any(isinstance(cell, str) for cell in cells))
    if array.ndim != _TABLE:
        raise InputError(
            f"{records.name} X must hold numbers or one table of cells, got shape {array.shape}."
        )
    listed = _names(columns, array, records)
    found = [
        _column(array[:, place], records, listed[place] if listed else place)
        for place in range(array.shape[1])
    ]
    return _of_columns(found, listed)


def _of_columns(columns: Sequence[list[Any]], listed: tuple[str, ...] | None) -> Payload:
    rows = [list(row) for row in zip(*columns, strict=True)]
    text = any(isinstance(cell, str) for cells in columns for cell in cells)
    return Payload(rows, listed, (len(columns),), text=text)


def _array(features: Any, records: Records) -> npt.NDArray[Any]:
    """Return an array of numbers, or one of objects, in which no number became text."""
    try:
        array = np.asarray(features)
        if array.dtype.kind in "US":
            array = np.asarray(features, dtype=np.object_)
    except (ValueError, TypeError):
        raise InputError(
            f"{records.name} X must be a table, an array or a list of texts, got rows of different lengths."
        ) from None
    if array.ndim == 0 or len(array) != len(records):
        raise InputError(
            f"{records.name} X must have one row for each of {len(records)} records, got shape {array.shape}."
        )
    return array


def _names(
    columns: Sequence[str] | None, array: npt.NDArray[Any], records: Records
) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if array.ndim != _TABLE or array.shape[1] != len(columns):
        raise InputError(
            f"columns must name each column of {records.name} X, got {len(columns)} names for shape {array.shape}."
        )
    return tuple(columns)


def _refuse_missing(array: npt.NDArray[Any], records: Records, columns: Sequence[str] | None) -> None:
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    place = np.argwhere(bad)[0].tolist()
    column = f", column {columns[place[1]]!r}" if columns and len(place) == _TABLE else ""
    column = column or (f", column {', '.join(map(str, place[1:]))}" if place[1:] else "")
    value = array[tuple(place)]
    raise InputError(
        f"{records.name} X must hold finite numbers to be sent, got {value} (first at {records.row(place[0])}{column});"
        f" {_MISSING}."
    )


def _column(values: npt.NDArray[Any], records: Records, name: Any) -> list[Any]:
    """Return one column as values of JSON."""
    where = "" if name is None else f", column {name!r}"
    if values.dtype.kind in "fiub" and values.ndim == 1:
        bad = ~np.isfinite(values)
        if bad.any():
            raise _refused_missing(values[bad][0], records, int(np.argmax(bad)), where)
        cells: list[Any] = values.tolist()
        return cells
    if values.dtype.kind not in "OUT":
        raise InputError(
            f"{records.name} X{where} must hold numbers or text to be sent, got {values.dtype}; convert it first."
        )
    return [_cell(value, records, row, where) for row, value in enumerate(values.tolist())]


def _cell(value: Any, records: Records, row: int, where: str) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_cell(item, records, row, where) for item in value]
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        raise _refused_missing(value, records, row, where)
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused_missing(value, records, row, where)
    if not isinstance(value, str | bool | int | float):
        raise InputError(
            f"{records.name} X{where} must hold numbers or text to be sent, got {type(value).__name__} (first at"
            f" {records.row(row)}); convert it first."
        )
    return value


def _refused_missing(value: Any, records: Records, row: int, where: str) -> InputError:
    return InputError(
        f"{records.name} X must hold no missing or infinite values to be sent, got {value} (first at"
        f" {records.row(row)}{where}); {_MISSING}."
    )


# --- What an answer holds: numbers with one row for each record, or what stands in their way ---


# What servers call the probabilities among several outputs, the surest first.
PROBABILITIES = (
    *("predict_proba", "probabilities", "probability", "output_probability", "probs", "proba", "prob"),
    *("softmax", "scores"),
)
_SHOWN = 10
_SINGLE_MOST = 1e30
_LOOKED = 4096  # numbers of a batch that are looked at
_LONG = 7  # significant digits from which on a decimal shows what it was rounded to: float32 has seven
_EVIDENCE = 64  # numbers of a batch that say how many digits the model has


class UnusableError(Exception):
    """An answer that cannot be used: what it is, and what helps."""

    def __init__(self, words: str, *, fix: str) -> None:
        super().__init__(words)
        self.words, self.fix = words, fix


def chosen_output(names: Sequence[str], *, wanted: str | None, probabilities: bool) -> str:
    """Return which of several outputs is meant.

    Args:
        names: What there is.
        wanted: What the caller asked for, if anything.
        probabilities: Whether probabilities are looked for.

    Raises:
        UnusableError: It cannot be told.

    >>> chosen_output(["label", "probabilities"], wanted=None, probabilities=True)
    'probabilities'
    """
    if wanted is not None and wanted in names:
        return wanted
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None and probabilities:
        lowered = {name.casefold(): name for name in reversed(names)}
        for name in PROBABILITIES:
            if name in lowered:
                return lowered[name]
    listed = ", ".join(repr(printable(str(name), longest=60)) for name in names[:_SHOWN]) or "none"
    missing = "" if wanted is None else f", not {wanted!r}"
    raise UnusableError(
        f"answered with the outputs {listed}{missing}", fix="name the one to use with output_name="
    )


def wanted_rows(value: Any, *, wanted: str | None, probabilities: bool) -> Any:
    """Return the rows of an answer; objects of several outputs become the one that is meant.

    Objects whose values are all numbers are rows with a name for each column, as a table of probabilities by class.

    >>> wanted_rows([{"label": 1, "probs": [0.2, 0.8]}], wanted=None, probabilities=True)
    [[0.2, 0.8]]
    >>> wanted_rows([{"0": 0.2, "1": 0.8}], wanted=None, probabilities=True)
    [[0.2, 0.8]]
    """
    if isinstance(value, dict):  # columnar: one list for each output
        return value[chosen_output(list(value), wanted=wanted, probabilities=probabilities)]
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    names = list(value[0])
    if any(not isinstance(row, dict) or set(row) != set(names) for row in value):
        raise UnusableError("answered with rows of different outputs", fix="look into the server's log")
    plain = all(isinstance(cell, int | float) for cell in value[0].values())
    if plain and wanted is None and len(names) > 1 and not set(map(str.casefold, names)) & set(PROBABILITIES):
        return [[row[name] for name in names] for row in value]
    name = chosen_output(names, wanted=wanted, probabilities=probabilities)
    return [row[name] for row in value]


def answer_rows(value: Any, *, n: int) -> npt.NDArray[Any]:
    """Return rows as an array with one row for each of ``n`` records; of text where the server answers in text.

    ``null`` is no number and becomes NaN, which is refused by row later on.

    Raises:
        UnusableError: Rows of different lengths, or another number of them.

    >>> answer_rows([[0.25, None]], n=1)
    array([[0.25,  nan]])
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (ValueError, TypeError):
        raise UnusableError(
            "answered with what is no table of numbers",
            fix="check the protocol, and which part of the answer is used (output_name=, or the path of a template)",
        ) from None
    if array.ndim == 0 or len(array) != n:
        got = "no rows" if array.ndim == 0 else f"{len(array)} rows"
        raise UnusableError(
            f"answered with {got} instead of {n}",
            fix="send one record at a time with max_request_records=1, or check the model's input shape",
        )
    if array.dtype.kind in "US":
        array = _from_text(value, array)
    return array.reshape(n, -1)[:, 0] if array.size == n else array


def _from_text(value: Any, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers that were written as text ("NaN" among numbers, or rows of several); single words stay labels."""
    words = array.size == len(array) and all(isinstance(row, str | list) for row in value)
    flat = [row[0] if isinstance(row, list) and len(row) == 1 else row for row in value] if words else []
    if words and all(isinstance(item, str) for item in flat):
        return array
    try:
        return array.astype(np.float64)
    except ValueError:
        raise UnusableError(
            "answered with text among its numbers", fix="name the output to use with output_name="
        ) from None


def as_float32_if_rounded(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
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


def _digits(value: float) -> int:
    """Return how many significant digits the shortest decimal of a number has."""
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def _is_single(value: float) -> bool:
    single = np.float32(value)
    return value in (float(single), float(str(single)), float(f"{single:.9g}"))
