"""One batch of records to score: their features, their labels, and their place in error sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.log_odds import Codes
from auditor.errors import InputError

Rows = slice | npt.NDArray[np.intp]

__all__ = ["Records", "Rows", "length", "plain_labels", "spelled", "taken"]

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
