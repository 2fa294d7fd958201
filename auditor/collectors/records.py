"""One batch of records to score: their features, their labels, and their place in error sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.log_odds import Codes
from auditor.errors import InputError

Rows = slice | npt.NDArray[np.intp]

__all__ = ["Records", "Rows", "length", "plain_labels", "taken"]

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
        features = taken(self.features, rows=slice(start, stop))
        return Records(self.name, features, self.labels[start:stop], self.first_row + start)

    def row(self, position: int) -> str:
        """Return the number of a record as error sentences say it."""
        return f"row {self.first_row + position}, counting from 0"

    def codes(self, classes: Sequence[Any]) -> Codes:
        """Return the position of each label among the classes; 1, 1.0 and True are the same label."""
        found = _positions(self.labels, classes, name=self.name)
        bad = found < 0
        if bad.any():
            row = int(np.argmax(bad))
            listed = ", ".join(map(repr, classes[:_SHOWN])) + (", ..." if len(classes) > _SHOWN else "")
            raise InputError(
                f"{self.name} label {self.labels.tolist()[row]!r} (first at {self.row(row)}; {int(bad.sum())} such"
                f" records) is not one of the model's classes {listed}; leave those records out, or name the class of"
                " each output column with classes=."
            )
        return found


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


def length(name: str, features: Any) -> int:
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


def taken(features: Any, *, rows: Rows) -> Any:
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
