"""A scorer turns a batch of records into their losses: what every way of collecting, near or far, runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from auditor import _validate
from auditor.collectors.batch_losses import BatchLosses, joined
from auditor.collectors.outputs import Output, Widened
from auditor.collectors.predictor import Predictor
from auditor.collectors.records import Records, spelled
from auditor.collectors.tasks import Classification, Task
from auditor.errors import InputError
from auditor.values import LossScale

__all__ = ["ModelScorer", "Scorer", "in_batches", "refuse_other_order"]

_SHOWN = 30  # classes listed in an error before the rest are left out


class Scorer(Protocol):
    """Batches of records in, losses out."""

    @property
    def words(self) -> str:
        """What the losses are and where they come from, for the history."""
        ...

    @property
    def scale(self) -> LossScale:
        """What the loss is."""
        ...

    @property
    def identity(self) -> str | None:
        """A hash of everything that decides the losses of a record; none where it cannot be known."""
        ...

    @property
    def records_at_once(self) -> int | None:
        """How many records a batch should have; none where it makes no difference."""
        ...

    def check(self, records: Records) -> None:
        """Refuse records that cannot be scored, as far as that is known without the model."""
        ...

    def score(self, records: Records) -> BatchLosses:
        """Return the losses of a batch.

        Raises:
            InputError: Records or outputs that cannot be scored; the sentence names the first.
        """
        ...


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """Scores records by a model's outputs.

    Attributes:
        predictor: The model.
        task: What it was trained to predict.
        classes: The label of each output column; default those that the model knows, or else the column numbers.
        repeats: Calls of the model for each batch; the outputs are averaged, for a model that answers at random.

    Raises:
        InputError: The classes that the model knows, in another order.
    """

    predictor: Predictor
    task: Task = Classification()  # noqa: RUF009 - a frozen value
    classes: Sequence[Any] | None = None
    repeats: int = 1

    def __post_init__(self) -> None:
        refuse_other_order(self.classes, own=self.predictor.classes)

    @property
    def words(self) -> str:
        """What the losses are and where they come from."""
        mean = f", averaged over {self.repeats} answers" if self.repeats > 1 else ""
        return f"{self.task.words} from {self.predictor.source}{mean}"

    @property
    def scale(self) -> LossScale:
        """What the loss is."""
        return self.task.scale

    @property
    def identity(self) -> str | None:
        """The identity of the model."""
        return self.predictor.identity

    @property
    def records_at_once(self) -> int | None:
        """What the model wants."""
        return self.predictor.records_at_once

    def check(self, records: Records) -> None:
        """Refuse labels that the model's classes do not have."""
        self.task.check(records, classes=self._classes)

    def score(self, records: Records) -> BatchLosses:
        """Return the losses of a batch."""
        return self.task.losses(
            self._outputs(records),
            records=records,
            output=self.predictor.output or Output.PROBABILITIES,
            classes=self._classes,
        )

    @property
    def _classes(self) -> Sequence[Any] | None:
        return self.predictor.classes if self.classes is None else self.classes

    def _outputs(self, records: Records) -> Any:
        first = self.predictor.predict(records)
        if _validate.at_least("repeats", self.repeats, least=1) == 1:
            return first
        logs = (
            self.predictor.output is Output.LOG_PROBABILITIES
        )  # whose exponentials are averaged, without being formed
        outputs = first if isinstance(first, Widened) else np.asarray(first)
        total = outputs.astype(np.float64)
        for _ in range(self.repeats - 1):
            again = np.asarray(self.predictor.predict(records)).astype(np.float64)
            total = np.logaddexp(total, again) if logs else total + again
        mean = total - np.log(self.repeats) if logs else total / self.repeats
        return mean.astype(outputs.dtype) if outputs.dtype.kind == "f" else mean


def refuse_other_order(classes: Sequence[Any] | None, *, own: Sequence[Any] | None) -> None:
    """Refuse the classes that a model knows (its own), if there are any, in another order than its own."""
    if classes is None or own is None:
        return
    as_text = all(isinstance(name, str) for name in classes) and not any(
        isinstance(name, str) for name in own
    )
    given = spelled(classes) if as_text else list(classes)
    if given != list(own) and len(given) == len(own) and set(given) == set(own):
        shown = [
            ",".join(map(str, names[:_SHOWN])) + (",..." if len(own) > _SHOWN else "")
            for names in (own, given)
        ]
        raise InputError(
            f"classes must be in the order of the output columns, which the model itself says is {shown[0]!r}, got"
            f" {shown[1]!r}; leave classes= (--classes) out."
        )


def in_batches(scorer: Scorer, records: Records, *, size: int | None) -> BatchLosses:
    """Return the losses of a whole group, scored in batches of that size (default: what the scorer wants, or all)."""
    step = size or scorer.records_at_once or len(records)
    return joined([scorer.score(records.part(start, start + step)) for start in range(0, len(records), step)])
