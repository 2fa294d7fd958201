"""One group of records to score: its features, its labels and its name in error sentences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.log_odds import Codes, LogOdds, joined, true_class_loss
from auditor.collectors.outputs import Output, checked, shaped
from auditor.errors import InputError

Rows = slice | npt.NDArray[np.intp]
Predict = Callable[[Any], Any]

__all__ = ["Predict", "Records", "records", "score", "taken"]

_SHOWN = 10  # classes listed in an error before the rest are left out


@dataclass(frozen=True, eq=False)
class Records:
    """Features and labels of one group."""

    name: str
    features: Any
    labels: npt.NDArray[Any]

    def __len__(self) -> int:
        return int(self.labels.size)

    def codes(self, classes: Sequence[Any]) -> Codes:
        """Return the position of each label among the classes; 1, 1.0 and True are the same label."""
        place = {label: position for position, label in enumerate(classes)}
        try:
            found = np.array([place.get(label, -1) for label in self.labels.tolist()], dtype=np.intp)
        except TypeError:
            raise InputError(
                f"{self.name} labels must be numbers or strings, got lists or dictionaries."
            ) from None
        bad = found < 0
        if bad.any():
            row = int(np.argmax(bad))
            listed = ", ".join(map(repr, classes[:_SHOWN])) + (", ..." if len(classes) > _SHOWN else "")
            raise InputError(
                f"{self.name} label {self.labels.tolist()[row]!r} (first at row {row}, counting from 0; {int(bad.sum())} such"
                f" records) is not one of the model's classes {listed}; leave those records out, or name the class of"
                " each output column with classes=."
            )
        return found


def records(name: str, argument: str, pair: Any) -> Records:
    """Return one group from its pair (X, y)."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004
        raise InputError(f"{argument} must be a pair (X, y), got {type(pair).__name__}.")
    features, target = pair
    labels = _labels(name, target)
    _validate.same_length((f"{name} X", f"{name} y"), (_length(name, features), labels.size))
    if labels.size < 2:  # noqa: PLR2004
        raise InputError(f"{argument} must hold at least 2 records, got {labels.size}; is X empty?")
    return Records(name=name, features=features, labels=labels)


def _labels(name: str, target: Any) -> npt.NDArray[Any]:
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
    if labels.ndim == 2 and labels.shape[1] == 1:  # noqa: PLR2004
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"{name} y must be one label for each record, got shape {labels.shape}.")
    return labels


def _length(name: str, features: Any) -> int:
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


def score(
    predict: Predict, group: Records, *, output: Output, classes: Sequence[Any] | None, batch_size: int | None
) -> LogOdds:
    """Return the log-odds losses of one group; without classes, the labels are the column numbers."""
    codes = None if classes is None else group.codes(classes)
    parts = []
    for start, stop, features in _batches(group, batch_size):
        raw = shaped(predict(features), n=stop - start, place=group.name)
        width = 2 if raw.ndim == 1 else raw.shape[1]
        if classes is not None and len(classes) != width:
            raise InputError(
                f"classes must name each of the model's {width} output columns, got {len(classes)} names."
            )
        if codes is None:
            if (
                raw.ndim == 1
            ):  # predicted labels passed for probabilities are named before labels are looked up
                checked(raw, output=output, place=group.name)
            codes = group.codes(range(width))
        parts.append(
            true_class_loss(raw, codes=codes[start:stop], output=output, place=group.name, first_row=start)
        )
    return joined(parts)


def _batches(group: Records, size: int | None) -> Iterator[tuple[int, int, Any]]:
    if size is None:
        yield 0, len(group), group.features
        return
    for start in range(0, len(group), size):
        stop = min(start + size, len(group))
        yield start, stop, taken(group.features, rows=slice(start, stop))
