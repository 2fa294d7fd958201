"""Regressions: what the loss on one record is when the model predicts numbers.

SquaredError
    (y - f)^2, summed over the outputs where there are several.
GaussianLogLoss
    ((y - f) / s)^2 / 2 + log s + log(2 pi) / 2, summed over the outputs; s is given, or the model's second output.
"""

# ruff: noqa: ARG002 - every task has the same methods, and not every one needs every argument

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.batch_losses import BatchLosses
from auditor.collectors.outputs import Output, shaped
from auditor.collectors.records import Records, plain_labels
from auditor.errors import InputError
from auditor.values import Floats, LossScale

__all__ = ["GaussianLogLoss", "SquaredError", "refuse_infinite"]

_TABLE = 2  # dimensions


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


def _refuse_classes(classes: Sequence[Any] | None) -> None:
    if classes is not None:
        raise InputError("classes must be left out of a regression, which has none.")


def _numbers(name: str, target: Any) -> Floats:
    labels = plain_labels(name, target)
    labels = labels[:, None] if labels.ndim == 1 else labels
    if labels.ndim != _TABLE or labels.dtype.kind not in "fiub":
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
    values = np.asarray(raw[:, None] if raw.ndim == 1 else raw).astype(np.float64)
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
    refuse_infinite(loss, records)
    return BatchLosses(loss=loss, saturated=np.zeros(loss.size, dtype=np.bool_))


def refuse_infinite(loss: Floats, records: Records) -> None:
    """Refuse losses that are not finite."""
    bad = ~np.isfinite(loss)
    if bad.any():
        raise InputError(
            f"{records.name} outputs must give finite losses, got {int(bad.sum())} that are not (first at"
            f" {records.row(int(np.argmax(bad)))}); rescale y, or mend the model's outputs."
        )
