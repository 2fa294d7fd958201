"""What a model was trained to predict, and so what its loss on one record is.

Classification
    The negative log-odds of the true class (`auditor.collectors.log_odds`).
MultiLabel
    Each label is a problem of two classes; the negative log-odds of the true side are summed over the labels.
SquaredError
    (y - f)^2, summed over the outputs where there are several.
GaussianLogLoss
    ((y - f) / s)^2 / 2 + log s + log(2 pi) / 2, summed over the outputs; s is given, or the model's second output.

In every one of them a smaller loss means a better prediction.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.batch_losses import BatchLosses, far
from auditor.collectors.log_odds import one_column, true_class_loss
from auditor.collectors.outputs import Output, checked, resolution, shaped
from auditor.collectors.records import Records, plain_labels
from auditor.errors import InputError
from auditor.values import Floats, LossScale

__all__ = ["Classification", "GaussianLogLoss", "MultiLabel", "SquaredError", "Task"]

_SAMPLE_SHAPE = 2  # dimensions of a table


class Task(Protocol):
    """What the labels are, and the loss that outputs and labels give."""

    @property
    def scale(self) -> LossScale:
        """What the loss is."""
        ...

    @property
    def words(self) -> str:
        """The loss in words, for the history: "negative log-odds of the true class"."""
        ...

    @property
    def has_output(self) -> bool:
        """Whether the model returns one of the kinds of `Output` (a regression returns plain numbers)."""
        ...

    def labels(self, name: str, target: Any) -> npt.NDArray[Any]:
        """Return the labels of a group as an array with one row for each record, checked as far as they can be alone."""
        ...

    def check(self, records: Records, *, classes: Sequence[Any] | None) -> None:
        """Refuse labels that the classes do not have, before the model spends any time."""
        ...

    def losses(
        self, outputs: Any, *, records: Records, output: Output, classes: Sequence[Any] | None
    ) -> BatchLosses:
        """Return the losses of a batch from what the model returned."""
        ...


@dataclass(frozen=True)
class Classification:
    """Each record has one true class of two or more.

    >>> Classification().words
    'negative log-odds of the true class'
    """

    scale = LossScale.LOG_ODDS
    words = "negative log-odds of the true class"
    has_output = True

    def labels(self, name: str, target: Any) -> npt.NDArray[Any]:
        """Return one label for each record."""
        labels = plain_labels(name, target)
        if labels.ndim != 1:
            raise InputError(f"{name} y must be one label for each record, got shape {labels.shape}.")
        return labels

    def check(self, records: Records, *, classes: Sequence[Any] | None) -> None:
        """Refuse labels that are no class."""
        if classes is not None:
            records.codes(classes)

    def losses(
        self, outputs: Any, *, records: Records, output: Output, classes: Sequence[Any] | None
    ) -> BatchLosses:
        """Return the negative log-odds of each record's class."""
        raw = shaped(outputs, n=len(records), place=records.name)
        width = 2 if raw.ndim == 1 else raw.shape[1]
        _refuse_width(classes, width)
        if classes is None and raw.ndim == 1:
            # Predicted labels passed for probabilities are named before labels are looked up.
            checked(raw, output=output, place=records.name, first_row=records.first_row)
        codes = records.codes(range(width) if classes is None else classes)
        return true_class_loss(
            raw, codes=codes, output=output, place=records.name, first_row=records.first_row
        )


@dataclass(frozen=True)
class MultiLabel:
    """Each record has several labels of 0 or 1, a column for each; the model returns a column for each.

    >>> MultiLabel().words
    'sum over the labels of the negative log-odds of the true side'
    """

    scale = LossScale.UNKNOWN
    words = "sum over the labels of the negative log-odds of the true side"
    has_output = True

    def labels(self, name: str, target: Any) -> npt.NDArray[Any]:
        """Return the labels as a table of booleans, shape (n, K)."""
        dense = target.toarray() if hasattr(target, "toarray") else target
        labels = plain_labels(name, dense)
        labels = labels[:, None] if labels.ndim == 1 else labels
        if (
            labels.ndim != _SAMPLE_SHAPE
            or labels.dtype.kind not in "fiub"
            or not np.isin(labels, (0, 1)).all()
        ):
            raise InputError(
                f"{name} y must be a table of 0 and 1 with a column for each label, got shape {labels.shape} of type"
                f" {labels.dtype}."
            )
        return labels.astype(np.bool_)

    def check(self, records: Records, *, classes: Sequence[Any] | None) -> None:
        """Refuse a table with another number of columns than there are classes."""
        if classes is not None:
            _refuse_width(classes, records.labels.shape[1])

    def losses(
        self, outputs: Any, *, records: Records, output: Output, classes: Sequence[Any] | None
    ) -> BatchLosses:
        """Return the sum of the labels' losses; a label saturated at 0 or 1 counts as one spacing of floats from it."""
        raw = shaped(outputs, n=len(records), place=records.name)
        raw = raw[:, None] if raw.ndim == 1 else raw
        truth = records.labels
        if raw.shape != truth.shape:
            raise InputError(
                f"{records.name} outputs must have a column for each of {truth.shape[1]} labels, got {raw.shape[1]}"
                " columns; give the labels in the order of the model's outputs."
            )
        eps = resolution(raw)
        total, saturated, hard = np.zeros(len(records)), np.zeros(len(records), dtype=np.bool_), True
        for column in range(truth.shape[1]):
            values = checked(raw[:, column], output=output, place=records.name, first_row=records.first_row)
            loss = one_column(values, truth[:, column], output)
            infinite = np.isinf(loss) & (output is not Output.LOGITS)
            hard = hard and bool(infinite.all())
            saturated |= infinite
            total += np.where(infinite, np.copysign(far(eps), loss), loss)
        _refuse_infinite(total, records)
        return BatchLosses(loss=total, saturated=saturated, eps=eps, hard=hard)


@dataclass(frozen=True)
class SquaredError:
    """Each record has one number or more to predict; the loss is the squared error, in squared units of y.

    >>> SquaredError().words
    'squared error'
    """

    scale = LossScale.UNKNOWN
    words = "squared error"
    has_output = False

    def labels(self, name: str, target: Any) -> npt.NDArray[Any]:
        """Return the numbers to predict, shape (n, d)."""
        return _numbers(name, target)

    def check(self, records: Records, *, classes: Sequence[Any] | None) -> None:
        """Refuse classes: there are none."""
        _refuse_classes(classes)

    def losses(
        self,
        outputs: Any,
        *,
        records: Records,
        output: Output,
        classes: Sequence[Any] | None,
    ) -> BatchLosses:
        """Return the squared errors, summed over the outputs."""
        predicted = _predictions(outputs, records, width=records.labels.shape[1])
        return _finite_losses(((records.labels - predicted) ** 2).sum(axis=1), records)


@dataclass(frozen=True)
class GaussianLogLoss:
    """Each record has one number or more to predict, with normal noise; the loss is the negative log-likelihood, in nats.

    Attributes:
        standard_deviation: Of the noise, above 0, in units of y; none where the model returns it itself: a table of
            the means followed by as many standard deviations.

    >>> GaussianLogLoss(2.0).words
    'Gaussian log loss with standard deviation 2'
    """

    standard_deviation: float | None = None
    scale = LossScale.UNKNOWN
    has_output = False

    def __post_init__(self) -> None:
        if self.standard_deviation is not None:
            value = _validate.positive("standard_deviation", self.standard_deviation)
            object.__setattr__(self, "standard_deviation", value)

    @property
    def words(self) -> str:
        """The loss in words."""
        if self.standard_deviation is None:
            return "Gaussian log loss with the standard deviation that the model returned"
        return f"Gaussian log loss with standard deviation {self.standard_deviation:g}"

    def labels(self, name: str, target: Any) -> npt.NDArray[Any]:
        """Return the numbers to predict, shape (n, d)."""
        return _numbers(name, target)

    def check(self, records: Records, *, classes: Sequence[Any] | None) -> None:
        """Refuse classes: there are none."""
        _refuse_classes(classes)

    def losses(
        self,
        outputs: Any,
        *,
        records: Records,
        output: Output,
        classes: Sequence[Any] | None,
    ) -> BatchLosses:
        """Return the negative log-likelihoods, summed over the outputs."""
        width = records.labels.shape[1]
        if self.standard_deviation is None:
            both = _predictions(outputs, records, width=2 * width)
            predicted, deviation = both[:, :width], both[:, width:]
            _refuse_deviation(deviation, records)
        else:
            predicted = _predictions(outputs, records, width=width)
            deviation = np.full((1, width), self.standard_deviation)
        with np.errstate(over="ignore"):
            loss = ((records.labels - predicted) / deviation) ** 2 / 2 + np.log(deviation)
        return _finite_losses((loss + math.log(2 * math.pi) / 2).sum(axis=1), records)


def _refuse_width(classes: Sequence[Any] | None, width: int) -> None:
    if classes is not None and len(classes) != width:
        raise InputError(
            f"classes must name each of the model's {width} output columns, got {len(classes)} names."
        )


def _refuse_classes(classes: Sequence[Any] | None) -> None:
    if classes is not None:
        raise InputError("classes must be left out of a regression, which has none.")


def _numbers(name: str, target: Any) -> Floats:
    labels = plain_labels(name, target)
    labels = labels[:, None] if labels.ndim == 1 else labels
    if labels.ndim != _SAMPLE_SHAPE or labels.dtype.kind not in "fiub":
        raise InputError(
            f"{name} y must be one number to predict for each record, got shape {labels.shape} of type {labels.dtype}."
        )
    values = labels.astype(np.float64)
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputError(
            f"{name} y must be finite, got {int(bad.sum())} records with NaN or infinity (first at row"
            f" {int(np.argmax(bad))}, counting from 0); leave them out."
        )
    return values


def _predictions(outputs: Any, records: Records, *, width: int) -> Floats:
    raw = shaped(outputs, n=len(records), place=records.name)
    values = (raw[:, None] if raw.ndim == 1 else raw).astype(np.float64)
    if values.shape[1] != width:
        raise InputError(
            f"{records.name} outputs must have {width} column{'s' if width > 1 else ''}, got {values.shape[1]};"
            " return one number for each number to predict"
            " (and its standard deviation, if the task asks for it)."
        )
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputError(
            f"{records.name} outputs must be finite, got {int(bad.sum())} records with NaN or infinity (first at"
            f" {records.row(int(np.argmax(bad)))}); mend the model's input."
        )
    return values


def _refuse_deviation(deviation: Floats, records: Records) -> None:
    bad = (deviation <= 0).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{records.name} outputs must hold standard deviations above 0 after the means, got"
            f" {deviation[row].min():g} (first at {records.row(row)}); return deviations, not their logarithms."
        )


def _finite_losses(loss: Floats, records: Records) -> BatchLosses:
    _refuse_infinite(loss, records)
    return BatchLosses(loss=loss, saturated=np.zeros(loss.size, dtype=np.bool_))


def _refuse_infinite(loss: Floats, records: Records) -> None:
    bad = ~np.isfinite(loss)
    if bad.any():
        raise InputError(
            f"{records.name} outputs must give finite losses, got {int(bad.sum())} that are not (first at"
            f" {records.row(int(np.argmax(bad)))}); rescale y, or mend the model's outputs."
        )
