"""Is the model still the one that began: some of its losses are computed again and compared."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from auditor.collectors.batch_losses import BatchLosses
from auditor.collectors.rounding import differences
from auditor.collectors.scorer import Scorer
from auditor.collectors.sources.source import Source
from auditor.collectors.streaming.collection import Collection, Unit
from auditor.collectors.streaming.engine import read_stretch
from auditor.collectors.streaming.part import part_path, whole_part
from auditor.errors import InputError
from auditor.values import Floats, LossScale

__all__ = ["ChangedModelError", "probe_part", "refuse_other_model"]

_FIRST = 10  # records


class ChangedModelError(InputError):
    """The model gives other losses than those on disk, so that the same call cannot go on."""


def probe_part(
    scorer: Scorer, *, collection: Collection, unit: Unit, folder: Path, kept: str, fix: str
) -> None:
    """Refuse a model that gives other losses than the first of a part.

    Args:
        scorer: The model.
        collection: What the part belongs to.
        unit: Which part.
        folder: Where it is.
        kept: What is on disk, the subject of the sentence.
        fix: What helps.

    Raises:
        ChangedModelError: The losses differ.
        OutputError: The part is damaged.
    """
    losses = whole_part(part_path(folder, unit), columns=["loss"])["loss"].to_numpy()
    refuse_other_model(
        scorer,
        source=collection.sources[unit.source],
        start=unit.start,
        expected=losses[: collection.batch_size],
        kept=kept,
        fix=fix,
    )


def refuse_other_model(
    scorer: Scorer,
    *,
    source: Source,
    start: int,
    expected: Floats,
    kept: str,
    fix: str,
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
        fix: What helps.
        placed: Gives the losses of a batch the places that they have on disk.

    Raises:
        ChangedModelError: The losses differ.
    """
    records = read_stretch(source, start=start, stop=start + expected.size).records
    for n in sorted({min(_FIRST, expected.size), expected.size}):
        again = scorer.score(records.part(0, n))
        same = _agree(expected[:n], placed(again), eps=again.eps, scale=scorer.scale)
        if same.all():
            return
    row = int(np.argmax(~same))
    raise ChangedModelError(
        f"{kept}, but the model changed, or answers differently each time: the loss of {records.name} row"
        f" {records.first_row + row}, counting from 0, was {expected[row]:.9g} and is now {placed(again)[row]:.9g};"
        f" {fix}."
    )


def _agree(first: Floats, second: Floats, *, eps: float, scale: LossScale) -> npt.NDArray[np.bool_]:
    """Which losses are equal within the rounding of the outputs."""
    if first.shape != second.shape:
        return np.zeros(first.shape, dtype=np.bool_)
    return np.asarray(differences(first, second, eps=eps, scale=scale) == 0)
