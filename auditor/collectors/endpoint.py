"""Served models among the kinds of models that are scored."""

from collections.abc import Sequence
from typing import Any

from auditor.collectors.outputs import Output
from auditor.collectors.predictor import Predictor
from auditor.collectors.records import Records
from auditor.collectors.served.endpoint import Endpoint
from auditor.collectors.tasks import Task

__all__ = ["accepts", "predictor"]


def accepts(model: Any) -> bool:
    """Return whether this is an `Endpoint`."""
    return isinstance(model, Endpoint)


def predictor(
    model: Endpoint, *, task: Task, output: Output | None = None, sample: Sequence[Records] = ()
) -> Predictor:
    """Return a served model as the collectors see it.

    Args:
        model: The endpoint.
        task: What the model was trained to predict.
        output: What its outputs are, where the caller knows.
        sample: Some records, whose size says how many go into one request.

    Raises:
        InputError: A server that cannot be asked, in one sentence.
    """
    from auditor.collectors.served.asking import served_predictor

    return served_predictor(model, task=task, output=output, sample=sample)
