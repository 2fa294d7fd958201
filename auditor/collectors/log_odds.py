"""The loss of one record: the negative log-odds of its true class, computed so that nothing saturates.

With f_y the model's probability of the true class y (Negoescu et al. 2024, footnote 1)::

    several classes   loss = -(log f_y - log(1 - f_y))
    two classes       loss = (1 - 2y) (log f - log(1 - f)),  f the probability of class 1

1 - f_y is never computed by subtraction where the other classes are known: it is the sum of their probabilities.
From logits z the normaliser cancels, loss = -(z_y - logsumexp of the other z), exact at any confidence.

Edge cases, with eps the spacing of floats near 1 in the type the model *returned* (float32: 1.2e-7):
    f_y = 0 or its log is -inf           loss +inf here, saturated
    the others sum to 0 or to log -inf   loss -inf here, saturated
Everything is computed in float64. A record is saturated only when the returned numbers say exactly 0 or 1: a model
that computed in float32 and returned float64 is taken at its word. `batch_losses.settled` gives saturated records a finite
place.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.batch_losses import BatchLosses
from auditor.collectors.outputs import Output, checked, resolution
from auditor.errors import InputError
from auditor.values import Floats

Codes = npt.NDArray[np.intp]

__all__ = ["Codes", "one_column", "true_class_loss"]

_BLOCK = 2**20  # numbers converted to float64 at a time, so that a wide output is never copied whole


def true_class_loss(
    outputs: npt.NDArray[Any], *, codes: Codes, output: Output, place: str = "model", first_row: int = 0
) -> BatchLosses:
    """Return the negative log-odds of each record's true class.

    Args:
        outputs: Shape (n, K), or (n,) for class 1 of two; see `Output` for what they are.
        codes: Shape (n,), the column of the true class of each record.
        output: What the outputs are.
        place: Whose outputs they are, for the error sentence.
        first_row: The number of the first record, for the error sentence.

    Returns:
        The losses in nats; -inf or +inf where saturated.

    Raises:
        InputError: Outputs that are not what ``output`` says, or NaN; the sentence names the first row.

    >>> logits = np.array([[1e4, 0.0], [0.0, 1e4]])
    >>> true_class_loss(logits, codes=np.array([0, 0]), output=Output.LOGITS).loss
    array([-10000.,  10000.])
    """
    step = max(1, _BLOCK // (outputs.shape[1] if outputs.ndim > 1 else 1))
    loss = np.empty(outputs.shape[0])
    hard = output is not Output.LOGITS
    for start in range(0, loss.size, step):
        part = slice(start, start + step)
        row = first_row + start
        values = checked(outputs[part], output=output, place=place, first_row=row)
        hard = hard and _all_hard(values, output)
        formula = one_column if values.ndim == 1 else _columns
        loss[part] = formula(values, codes[part], output)
        _refuse_nan(loss[part], place, row)
    return BatchLosses(loss=loss, saturated=np.isinf(loss), eps=resolution(outputs), hard=hard)


def _all_hard(values: Floats, output: Output) -> bool:
    certain, excluded = (1.0, 0.0) if output is Output.PROBABILITIES else (0.0, -np.inf)
    return bool(np.all((values == certain) | (values == excluded)))


def one_column(values: Floats, codes: Codes, output: Output) -> Floats:
    """Losses of the second of two classes; infinite where its probability is exactly 0 or 1."""
    with np.errstate(divide="ignore"):
        if output is Output.LOGITS:
            logit = values
        elif output is Output.PROBABILITIES:
            logit = np.log(values) - np.log1p(-values)
        else:
            logit = values - np.log(-np.expm1(values))
    return np.where(codes == 1, -logit, logit)


def _columns(values: Floats, codes: Codes, output: Output) -> Floats:
    rows = np.arange(codes.size)
    own = values[rows, codes]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if values.shape[1] == 2:  # noqa: PLR2004 - the same as below, three times as quick
            other = values[rows, 1 - codes]
            return np.asarray(np.log(other) - np.log(own) if output is Output.PROBABILITIES else other - own)
        if output is Output.PROBABILITIES:
            values[rows, codes] = 0
            return np.asarray(np.log(values.sum(axis=1)) - np.log(own))
        values[rows, codes] = -np.inf
        top = values.max(axis=1)
        shift = np.where(np.isinf(top), 0, top)  # an infinite logit is its own sum
        return np.asarray(shift + np.log(np.exp(values - shift[:, None]).sum(axis=1)) - own)


def _refuse_nan(loss: Floats, place: str, first_row: int) -> None:
    bad = np.isnan(loss)
    if bad.any():
        raise InputError(
            f"{place} outputs must tell the true class from the others, got infinite values for both (first at row"
            f" {first_row + int(np.argmax(bad))}, counting from 0); return finite logits."
        )
