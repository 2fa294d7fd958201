"""What a model was trained to predict, and so what its loss on one record is.

Classification
    The negative log-odds of the true class (`auditor.collectors.log_odds`).
MultiLabel
    Each label is a problem of two classes; the negative log-odds of the true side are summed over the labels.
SquaredError, GaussianLogLoss
    The model predicts numbers (`auditor.collectors.regression`).

In every one of them a smaller loss means a better prediction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from auditor.collectors.batch_losses import BatchLosses, far
from auditor.collectors.log_odds import one_column, true_class_loss
from auditor.collectors.outputs import Output, checked, resolution, shaped
from auditor.collectors.records import Records, plain_labels
from auditor.collectors.regression import GaussianLogLoss, SquaredError, refuse_infinite
from auditor.errors import InputError
from auditor.values import LossScale

__all__ = ["Classification", "GaussianLogLoss", "MultiLabel", "SquaredError", "Task"]

_TABLE = 2  # dimensions of a table


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
        if labels.ndim != _TABLE or labels.dtype.kind not in "fiub" or not np.isin(labels, (0, 1)).all():
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
        """Return the sum of the labels' losses, each between the ends that `_ends` gives the model's type of floats."""
        raw = shaped(outputs, n=len(records), place=records.name)
        raw = raw[:, None] if raw.ndim == 1 else raw
        truth = records.labels
        if raw.shape != truth.shape:
            raise InputError(
                f"{records.name} outputs must have a column for each of {truth.shape[1]} labels, got {raw.shape[1]}"
                " columns; give the labels in the order of the model's outputs."
            )
        low, high = _ends(raw, output)
        total, saturated, hard = np.zeros(len(records)), np.zeros(len(records), dtype=np.bool_), True
        for column in range(truth.shape[1]):
            values = checked(raw[:, column], output=output, place=records.name, first_row=records.first_row)
            loss = one_column(values, truth[:, column], output)
            infinite = np.isinf(loss) & (output is not Output.LOGITS)
            hard = hard and bool(infinite.all())
            saturated |= infinite
            total += np.clip(loss, low, high)
        refuse_infinite(total, records)
        return BatchLosses(loss=total, saturated=saturated, eps=resolution(raw), hard=hard)


def _ends(raw: npt.NDArray[Any], output: Output) -> tuple[float, float]:
    """Return the smallest and the largest loss that one label counts with, by which saturated ones get their place.

    With t the smallest number above 0 of the type, eps its spacing near 1, p the probability of the true side:
        probabilities        p = 1 at -logit(1 - eps), as far as it goes when 1 is returned for a label that is there;
                             p = 0 at -log t, as far as it goes when t is.
        log-probabilities    p = 1 at log t, for -t is as close to log 1 as they come; p = 0 at -log t of float64.
        logits               No ends.
    Losses beyond are drawn in, so that one that is saturated never looks less extreme than one that is not, and a label
    that is there counts as one that is not. The ends are the same for every batch.
    """
    if output is Output.LOGITS:
        return -np.inf, np.inf
    short = raw.dtype.kind == "f" and raw.dtype.itemsize < np.dtype(np.float64).itemsize
    own, widest = (
        _smallest_log(raw.dtype if short else np.dtype(np.float64)),
        _smallest_log(np.dtype(np.float64)),
    )
    if output is Output.LOG_PROBABILITIES:
        return own, -widest
    end = far(resolution(raw))
    return -end, max(end, -own)


def _smallest_log(dtype: np.dtype[Any]) -> float:
    """The logarithm of the smallest number above 0, computed where that number may be flushed to 0."""
    limits = np.finfo(dtype)
    return float((limits.minexp - limits.nmant) * np.log(2))


def _refuse_width(classes: Sequence[Any] | None, width: int) -> None:
    if classes is not None and len(classes) != width:
        raise InputError(
            f"classes must name each of the model's {width} output columns, got {len(classes)} names."
        )
