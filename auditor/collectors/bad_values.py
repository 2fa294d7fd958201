"""Where the value stands that a model refused: the model's own sentence says what it is, and seldom where."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors import matrices
from auditor.collectors.records import Records

__all__ = ["bad_value"]

Mask = npt.NDArray[np.bool_]

_MISSING = re.compile(r"\bnan\b|\bmissing values?\b", re.IGNORECASE)
_INFINITE = re.compile(r"\binf(inity|inite)?\b|too large", re.IGNORECASE)
_TEXT = re.compile(r"\bstrings?\b", re.IGNORECASE)
_NO_VALUE = ("NAType", "NaTType")  # what pandas has in place of a missing number or time
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
        (_MISSING, _missing),
        (_INFINITE, lambda values: _infinite(values, short="float32" in reason)),
        (_TEXT, lambda values: _quoted(values, reason)),
    ):
        place = _first(records.features, is_bad) if words.search(reason) else None
        if place is not None:
            return f"{records.row(place[0])}, column {place[1]!r}"
    return None


def _first(features: Any, is_bad: Callable[[npt.NDArray[Any]], Mask]) -> tuple[int, str | int] | None:
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
    if matrices.is_frame(features):
        for name in matrices.names(features):
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


def _missing(values: npt.NDArray[Any]) -> Mask:
    if values.dtype.kind in "iubUS":
        return np.zeros(values.shape, dtype=np.bool_)
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.array([_is_missing(value) for value in values.tolist()], dtype=np.bool_)


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in _NO_VALUE


def _infinite(values: npt.NDArray[Any], *, short: bool) -> Mask:
    """Which numbers are beyond the largest that the model takes."""
    largest = float(np.finfo(np.float32 if short else np.float64).max)
    if values.dtype.kind in "iuf":
        return np.asarray(np.abs(values.astype(np.float64)) > largest)
    numbers = [
        isinstance(value, float | np.floating) and abs(float(value)) > largest for value in values.tolist()
    ]
    return np.array(numbers, dtype=np.bool_)


def _quoted(values: npt.NDArray[Any], reason: str) -> Mask:
    """Which values are the text that the model quotes: other text may be a category that it knows."""
    if values.dtype.kind in "iufb":
        return np.zeros(values.shape, dtype=np.bool_)
    quoted = [isinstance(value, str) and repr(value) in reason for value in values.tolist()]
    return np.array(quoted, dtype=np.bool_)
