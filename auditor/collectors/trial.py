"""A few records scored on trial: outputs, losses and the time that they took."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.batch_losses import BatchLosses, joined
from auditor.collectors.outputs import Output, shaped
from auditor.collectors.records import Records
from auditor.collectors.rounding import differences
from auditor.collectors.samples import asked
from auditor.collectors.scorer import ModelScorer, Scorer
from auditor.collectors.served.asking import ServedModel
from auditor.values import Floats, LossScale

__all__ = ["Answer", "Trial", "as_probabilities", "classes_of", "gap", "kind_of"]

_BATCH = 10_000  # records of a batch, where the model does not say


@dataclass(frozen=True, eq=False)
class Answer:
    """What some records gave: outputs, where there are any, and losses."""

    records: Records
    outputs: npt.NDArray[Any] | None
    losses: BatchLosses


class Trial:
    """Scores a few records, in batches as the collection will, and keeps the time that it takes."""

    def __init__(self, scorer: Scorer, *, batch_size: int | None = None) -> None:
        self._scorer = scorer
        self._most = batch_size or scorer.records_at_once
        self._seconds: dict[
            int, float
        ] = {}  # by the number of records; the last call counts, for the first warms up

    def score(self, records: Records) -> Answer:
        """Return one answer of the model, without averaging."""
        n = len(records)
        step = self._most or n
        parts = [asked(self._answer, records.part(start, start + step)) for start in range(0, n, step)]
        outputs = [part.outputs for part in parts if part.outputs is not None]
        return Answer(
            records,
            np.concatenate(outputs) if outputs else None,
            joined([part.losses for part in parts]),
        )

    def _answer(self, records: Records) -> Answer:
        scorer, begun = self._scorer, time.perf_counter()
        if not isinstance(scorer, ModelScorer):
            losses = scorer.score(records)
            self._seconds[len(records)] = time.perf_counter() - begun
            return Answer(records, None, losses)
        raw = scorer.predictor.predict(records)
        self._seconds[len(records)] = time.perf_counter() - begun
        losses = scorer.task.losses(raw, records=records, output=kind_of(scorer), classes=classes_of(scorer))
        return Answer(records, shaped(raw, n=len(records), place=records.name), losses)

    def seconds_per_record(self) -> float:
        """Return the time of a record in a long collection: a call costs something, and each record in it."""
        times, scorer = self._seconds, self._scorer
        least, most = min(times), max(times)
        each = max(0.0, (times[most] - times[least]) / (most - least)) if most > least else times[most] / most
        call = max(0.0, times[least] - least * each)
        served = scorer.predictor.predict if isinstance(scorer, ModelScorer) else None
        repeats = scorer.repeats if isinstance(scorer, ModelScorer) else 1
        if isinstance(served, ServedModel):
            one = call / served.records_per_request + each
            return repeats * one / served.endpoint.concurrency
        return repeats * (call / (scorer.records_at_once or _BATCH) + each)


def kind_of(scorer: ModelScorer) -> Output:
    """Return what the model's outputs are."""
    return scorer.predictor.output or Output.PROBABILITIES


def classes_of(scorer: ModelScorer) -> Sequence[Any] | None:
    """Return the label of each output column, where it is known."""
    return scorer.predictor.classes if scorer.classes is None else scorer.classes


def gap(first: BatchLosses, second: BatchLosses, scale: LossScale) -> float | None:
    """Return how far two answers about the same records are apart, or none where rounding explains it."""
    apart = differences(
        first.loss,
        second.loss,
        eps=max(first.eps, second.eps),
        scale=scale,
        saturated=first.saturated | second.saturated,
    )
    return float(apart.max()) if apart.any() else None


def as_probabilities(values: Floats, kind: Output) -> Floats:
    """Return the probability of each class, shape (n, K), from outputs of any kind."""
    if values.ndim == 1:
        if kind is Output.LOGITS:
            values = np.exp(-np.logaddexp(0, -values))
        elif kind is Output.LOG_PROBABILITIES:
            values = np.exp(values)
        return np.stack([1 - values, values], axis=1)
    if kind is Output.PROBABILITIES:
        return values
    raised = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
