"""Features of a batch as the values that JSON has: numbers with every digit, text, truth values, and lists of them."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.matrices import is_frame, names
from auditor.collectors.records import Records
from auditor.errors import InputError

__all__ = ["Payload", "payload", "written"]

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
        return [written(row) for row in self.rows]

    def objects(self) -> list[dict[str, Any]]:
        """Return each record as a dictionary by the names of the columns."""
        return [dict(zip(self.columns or (), row, strict=True)) for row in self.rows]


def written(value: Any) -> str:
    """Return JSON without spaces; floats keep every digit.

    >>> written([0.1, 1 / 3, True, "a"])
    '[0.1,0.3333333333333333,true,"a"]'
    """
    return _WRITER.encode(value)


def payload(records: Records, *, columns: Sequence[str] | None = None) -> Payload:
    """Return the features of a batch; ``columns`` names those of an array.

    Raises:
        InputError: Missing values, or cells that JSON cannot carry; the sentence names the first row and column.

    >>> batch = Records("member", np.array([[0.5, 2.0]], dtype=np.float32), np.array([1]))
    >>> payload(batch).rows, payload(batch).shape
    ([[0.5, 2.0]], (2,))
    """
    features = records.features
    if hasattr(features, "toarray"):
        features = features.toarray()
    if is_frame(features):
        found = [_column(np.asarray(features[name]), records, name) for name in names(features)]
        return _of_columns(found, tuple(map(str, names(features))))
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
            raise _missing(values[bad][0], records, int(np.argmax(bad)), where)
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
        raise _missing(value, records, row, where)
    if isinstance(value, float) and not math.isfinite(value):
        raise _missing(value, records, row, where)
    if not isinstance(value, str | bool | int | float):
        raise InputError(
            f"{records.name} X{where} must hold numbers or text to be sent, got {type(value).__name__} (first at"
            f" {records.row(row)}); convert it first."
        )
    return value


def _missing(value: Any, records: Records, row: int, where: str) -> InputError:
    return InputError(
        f"{records.name} X must hold no missing or infinite values to be sent, got {value} (first at"
        f" {records.row(row)}{where}); {_MISSING}."
    )
