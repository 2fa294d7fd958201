"""A model as the collectors see it: features in, outputs out, and what is known of the outputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from auditor.collectors.outputs import Output
from auditor.collectors.records import Records

__all__ = ["Predictor"]


@dataclass(frozen=True, eq=False)
class Predictor:
    """What every supported kind of model becomes.

    Attributes:
        predict: From a batch of records to an array of outputs with one row for each, of shape (n,) or (n, K). What
            goes wrong in it is raised as an `InputError` that names the batch (`Records.name`).
        source: What the outputs are, in words, for the history of the losses: "logits of Net (PyTorch)".
        output: Which kind of output they are; none for a regression.
        classes: The label of each output column, where the model knows.
        identity: A hash of everything that decides the outputs (weights, settings); none where it cannot be known, as
            for a callable or an endpoint.
        records_at_once: How many records should be asked for in one call; none where it makes no difference.
    """

    predict: Callable[[Records], Any]
    source: str
    output: Output | None = None
    classes: tuple[Any, ...] | None = None
    identity: str | None = None
    records_at_once: int | None = None
