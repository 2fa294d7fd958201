"""What a network's outputs are, as far as some of their values tell: networks say logits or probabilities nowhere.

Labels (whole numbers)                       probabilities, which later refuse all but 0 and 1
All in [0, 1], and rows that sum to 1        probabilities
All in [0, 1], and rows that do not          refused: as likely sigmoids of several labels as logits
None above 0, and exponentials that do       log-probabilities
Anything else                                logits

For one column, or several labels, there is no sum to go by: all values in [0, 1] are taken for probabilities, and the
history says so (`remark`). If that was a mistake, the first value outside is refused with its row when it comes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.outputs import Output, resolution
from auditor.collectors.tasks import Classification, Task
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["recognised", "remark", "worded"]

_TOLERANCE = 1e-3  # as in `outputs`: a float32 softmax over many classes
_RANGE = 1e-6


def recognised(outputs: npt.NDArray[Any], *, task: Task) -> Output | None:
    """Return which kind of output these are; none for a regression.

    Args:
        outputs: Shape (n, K), or (n,), of some records.
        task: What the model was trained to predict.

    Raises:
        InputError: Scores of classes that could be of either kind.

    >>> recognised(np.array([[0.25, 0.75], [0.5, 0.5]]), task=Classification())
    <Output.PROBABILITIES: 'probabilities'>
    >>> recognised(np.array([[0.25, 0.75], [0.5, 1.5]]), task=Classification())
    <Output.LOGITS: 'logits'>
    """
    if not task.has_output:
        return None
    values = outputs.astype(np.float64)
    if not values.size or np.isnan(values).any():
        return Output.LOGITS
    if outputs.dtype.kind in "iub" or (values.ndim == 1 and np.all(values == np.round(values))):
        return Output.PROBABILITIES
    tolerance = max(_TOLERANCE, 10 * resolution(outputs))
    sums = _has_sums(values, task)
    if _in_range(values):
        if sums:
            _refuse_sums(values.sum(axis=1), tolerance)
        return Output.PROBABILITIES
    if sums and np.all(values <= 0) and np.all(np.abs(np.exp(values).sum(axis=1) - 1) <= tolerance):
        return Output.LOG_PROBABILITIES
    return Output.LOGITS


def remark(outputs: npt.NDArray[Any], *, task: Task) -> str:
    """Return what the history says of outputs that were taken for probabilities by their range alone.

    >>> remark(np.array([0.25, 0.75]), task=Classification())
    ' (taken for probabilities, since all lie in [0, 1])'
    """
    values = outputs.astype(np.float64)
    if not task.has_output or not values.size or _has_sums(values, task) or not _in_range(values):
        return ""
    return " (taken for probabilities, since all lie in [0, 1])"


def _has_sums(values: Floats, task: Task) -> bool:
    return values.ndim > 1 and isinstance(task, Classification)


def _in_range(values: Floats) -> bool:
    return bool(np.all((values >= -_RANGE) & (values <= 1 + _RANGE)))


def _refuse_sums(sums: Floats, tolerance: float) -> None:
    bad = np.abs(sums - 1) > tolerance
    if bad.any():
        raise InputError(
            "model outputs must be told apart from probabilities, got values that all lie in [0, 1] in rows that do not"
            f" sum to 1 (the first such sum is {sums[int(np.argmax(bad))]:.6g}); pass output=Output.LOGITS"
            " (--output logits) if they are logits, or task=MultiLabel() (--task multi-label) if each column is a label"
            " of its own."
        )


def worded(output: Output | None, *, dtype: str) -> str:
    """Return the outputs in words: their type says what a probability can tell.

    >>> worded(Output.PROBABILITIES, dtype="float32")
    'float32 probabilities'
    """
    return f"{dtype} {output or 'predictions'}"
