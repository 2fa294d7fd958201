"""A few records scored on trial: outputs, losses and the time that they took."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.batch_losses import BatchLosses, far
from auditor.collectors.outputs import Output, shaped
from auditor.collectors.records import Records
from auditor.collectors.scorer import ModelScorer, Scorer
from auditor.collectors.served.asking import ServedModel
from auditor.values import Floats, LossScale

__all__ = ["Answer", "Trial", "as_probabilities", "classes_of", "gap", "kind_of"]

_BATCH = 10_000  # records of a batch, where the model does not say
_TOLERANCE = 1e-6  # relative, on losses
_ROUNDINGS = 4  # of the model's floats, by which the same answer may differ


@dataclass(frozen=True, eq=False)
class Answer:
    """What some records gave: outputs, where there are any, and losses."""

    records: Records
    outputs: npt.NDArray[Any] | None
    losses: BatchLosses


class Trial:
    """Scores a few records and keeps the time that it takes."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._seconds: dict[
            int, float
        ] = {}  # by the number of records; the last call counts, for the first warms up

    def score(self, records: Records) -> Answer:
        """Return one answer of the model, without averaging."""
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
    """Return how far two answers about the same records are apart, or none where rounding explains it.

    A log-odds loss l from a probability of rounding eps is known to eps (2 + e^l + e^-l).
    """
    eps = max(first.eps, second.eps)
    end = far(eps)
    a, b = (np.clip(part.loss, -end, end) if part.saturated.any() else part.loss for part in (first, second))
    size = np.minimum(np.maximum(np.abs(a), np.abs(b)), end)
    rounding = _ROUNDINGS * eps * (2 + np.exp(size)) if scale is LossScale.LOG_ODDS else 0.0
    apart = np.abs(a - b)
    return None if bool(np.all(apart <= _TOLERANCE * (1 + np.abs(a)) + rounding)) else float(apart.max())


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
