"""Is the model that goes on the one that began: some of its losses are computed again and compared."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from auditor.collectors.batch_losses import BatchLosses, far
from auditor.collectors.scorer import Scorer
from auditor.collectors.sources.source import Source
from auditor.collectors.streaming.engine import read_stretch
from auditor.errors import InputError
from auditor.values import Floats, LossScale

__all__ = ["refuse_other_model"]

_FIRST = 10  # records
_TOLERANCE = 1e-6  # relative, on outputs
_ROUNDINGS = 4  # of a float, that the same model may differ by in another batch


def refuse_other_model(
    scorer: Scorer,
    *,
    source: Source,
    start: int,
    expected: Floats,
    kept: str,
    placed: Callable[[BatchLosses], Floats] = lambda losses: losses.loss,
) -> None:
    """Refuse a model that gives other losses than those on disk.

    Ten records are scored again. The same model may give them other roundings in so small a batch; where they differ,
    the whole batch is scored again as it was, before anybody is accused.

    Args:
        scorer: The model.
        source: The table that the records are in.
        start: The first of them.
        expected: The losses on disk of one batch of the model that begins there.
        kept: What is on disk, the subject of the sentence.
        placed: Gives the losses of a batch the places that they have on disk.

    Raises:
        InputError: The losses differ.
    """
    records = read_stretch(source, start=start, stop=start + expected.size).records
    for n in sorted({min(_FIRST, expected.size), expected.size}):
        again = scorer.score(records.part(0, n))
        same = _agree(expected[:n], placed(again), eps=again.eps, scale=scorer.scale)
        if same.all():
            return
    row = int(np.argmax(~same))
    raise InputError(
        f"{kept}, but the model changed, or answers differently each time: the loss of {records.name} row"
        f" {records.first_row + row}, counting from 0, was {expected[row]:.9g} and is now {placed(again)[row]:.9g};"
        " give the same model, delete the folder or the file to begin anew, or name another output."
    )


def _agree(first: Floats, second: Floats, *, eps: float, scale: LossScale) -> npt.NDArray[np.bool_]:
    """Which losses are equal within the rounding of the outputs.

    A log-odds loss from a probability p of rounding eps is known to eps / (p (1 - p)) = eps (2 + e^l + e^-l).
    """
    if first.shape != second.shape:
        return np.zeros(first.shape, dtype=np.bool_)
    end = far(eps)
    size = np.minimum(np.maximum(np.abs(first), np.abs(second)), end)
    rounding = _ROUNDINGS * eps * (2 + np.exp(size)) if scale is LossScale.LOG_ODDS else 0.0
    near = np.clip(first, -end, end), np.clip(second, -end, end)
    with np.errstate(invalid="ignore"):
        exact = (first == second) | (np.abs(first - second) <= _TOLERANCE * (1 + np.abs(first)) + rounding)
    beyond = np.isinf(first) | np.isinf(second)
    return np.where(beyond, np.abs(near[0] - near[1]) <= _TOLERANCE + rounding, exact)
