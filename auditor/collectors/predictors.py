"""Which kind of model this is: each kind has a module that says whether it accepts an object and what it returns."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from auditor import _validate
from auditor.collectors.outputs import Output
from auditor.collectors.predictor import Predictor
from auditor.collectors.records import Records
from auditor.collectors.tasks import Task
from auditor.errors import AuditorError, InputError

__all__ = ["guarded", "is_recognised", "predictor"]

# Each module has accepts(model) and predictor(model, task=, output=, sample=); the first that accepts is used. Every
# kind is recognised without importing its library, which is loaded by then if the object is there.
_KINDS = ("endpoint", "pytorch", "keras", "onnx", "boosters", "scikit_learn")


def predictor(
    model: Any, *, task: Task, output: Output | None = None, sample: Sequence[Records] = ()
) -> Predictor:
    """Return the model as the collectors see it.

    Args:
        model: A model of a supported kind, or a callable from features to outputs.
        task: What it was trained to predict.
        output: What its outputs are, where the caller knows; otherwise it is found out from the model and the sample.
        sample: Some records of each group, on which the model may be tried.

    Raises:
        InputError: A model that is not supported, not fitted, or refuses the sample.
    """
    if isinstance(model, Predictor):
        return model
    if isinstance(model, type):
        raise InputError(
            f"model must be a fitted model, got the class {model.__name__} itself; build and fit one."
        )
    for kind in _KINDS:
        module = importlib.import_module(f"auditor.collectors.{kind}")
        if module.accepts(model):
            found: Predictor = module.predictor(model, task=task, output=output, sample=sample)
            return found
    if not callable(model):
        raise InputError(
            "model must be a fitted classifier with predict_proba and classes_, or a callable from features to"
            " probabilities or logits, or a PyTorch, Keras or ONNX model, or an Endpoint, got"
            f" {type(model).__name__}."
        )
    return _of_callable(model, output=output, task=task)


def is_recognised(model: Any) -> bool:
    """Return whether a model is of a kind that is known, and not just any callable."""
    return isinstance(model, Predictor) or any(
        importlib.import_module(f"auditor.collectors.{kind}").accepts(model) for kind in _KINDS
    )


def _of_callable(model: Any, *, output: Output | None, task: Task) -> Predictor:
    name = str(getattr(model, "__name__", type(model).__name__))
    name = "the callable" if name == "<lambda>" else name
    kind = (output or Output.PROBABILITIES) if task.has_output else None
    source = f"the {kind or 'predictions'} that {name} returned"
    return Predictor(predict=guarded(model, name), source=source, output=kind)


def guarded(function: Callable[[Any], Any], name: str) -> Callable[[Records], Any]:
    """Return what predicts a batch; whatever the function raises becomes one sentence, with the cause kept."""

    def predict(records: Records) -> Any:
        try:
            return function(records.features)
        except AuditorError:
            raise
        except Exception as error:
            reason = ": ".join(filter(None, (type(error).__name__, _validate.one_line(error))))
            raise InputError(f"{name} failed on the {records.name} records: {reason}.") from error

    return predict
