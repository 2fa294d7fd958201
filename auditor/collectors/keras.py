"""Keras models (TensorFlow), those trained with tensorflow-privacy included: called as for prediction, weights untouched.

Most end in a float32 softmax or sigmoid, which saturates. Where the last layer's activation is one of them, the model is
also asked without it, and if that reproduces its answers (`agreement`) the logits are scored.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.agreement import agreement, label_agreement
from auditor.collectors.extras import is_a
from auditor.collectors.keras_inputs import given, inputs_of
from auditor.collectors.outputs import Output, Widened, shaped, type_name
from auditor.collectors.predictor import Predictor
from auditor.collectors.recognition import recognised, remark, worded
from auditor.collectors.records import Records
from auditor.collectors.samples import spread
from auditor.collectors.tasks import MultiLabel, Task
from auditor.collectors.torch_network import plain
from auditor.errors import AuditorError, InputError

__all__ = ["accepts", "identity", "predictor"]

_AT_ONCE = 4096
_SATURATING = ("softmax", "sigmoid")
_HOMES = ("keras", "tf_keras")

Call = Callable[[Records], npt.NDArray[Any]]


def accepts(model: Any) -> bool:
    """Return whether this is a Keras model."""
    return any(is_a(model, home, "Model") for home in _HOMES)


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return a Keras model as the collectors see it."""
    tried = spread(sample)
    asked = _asking(model, lambda features: model(features, training=False))
    answers = [shaped(asked(part), n=len(part), place=part.name) for part in tried]
    kind = output if task.has_output else None
    where = ""
    if task.has_output and output is None:
        same = label_agreement if isinstance(task, MultiLabel) else agreement
        for layer, candidate in _without_activation(model):
            if _is_true(candidate, tried, answers, same):
                asked, kind, where = candidate, Output.LOGITS, f", without the activation of its last {layer}"
                break
        else:
            values = np.concatenate(answers) if answers else np.zeros(0)
            kind = recognised(values, task=task) if answers else Output.PROBABILITIES
            where = "" if _activation(_last(model)) == "sigmoid" else remark(values, task=task)
    dtype = type_name(answers[0]) if answers else str(getattr(model, "compute_dtype", "float32"))
    return Predictor(
        predict=asked,
        source=f"{worded(kind, dtype=dtype)} of {_name(model)} (Keras){where}",
        output=kind,
        identity=identity(model),
        records_at_once=_AT_ONCE,
    )


def identity(model: Any) -> str:
    """Return a hash of the class, the layers with their settings, and every weight."""
    digest = hashlib.sha256(_name(model).encode())
    try:
        config = json.dumps(model.get_config(), sort_keys=True, default=repr)
    except Exception:  # noqa: BLE001 - a subclass need not know its settings, and says so in many ways
        config = ""
    digest.update(re.sub(r" at 0x[0-9a-f]+", "", config).encode())
    for weight in model.get_weights():
        array = np.ascontiguousarray(weight)
        digest.update(f"{array.dtype} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _name(model: Any) -> str:
    return type(model).__name__


def _is_true(
    candidate: Call, tried: Sequence[Records], answers: Sequence[npt.NDArray[Any]], same: Callable[..., Any]
) -> bool:
    """Return whether the logits are those of the outputs, on the sample."""
    found = []
    for part, probabilities in zip(tried, answers, strict=True):
        try:
            logits = shaped(candidate(part), n=len(part), place=part.name)
        except InputError:
            return False  # what goes wrong in the model as it is has been said before
        found.append(same(logits, probabilities=probabilities))
    return True in found and False not in found


def _asking(model: Any, call: Callable[[Any], Any]) -> Call:
    """Return what predicts a batch; whatever the model raises becomes one sentence, with the cause kept."""
    inputs = inputs_of(model)
    name = _name(model)

    def predict(records: Records) -> npt.NDArray[Any]:
        features = given(inputs, records, model=name)
        try:
            return _array(call(features), name)
        except AuditorError:
            raise
        except Exception as error:
            reason = _validate.one_line(error) or type(error).__name__
            raise InputError(
                f"{records.name} X must suit the model, but {name} refused it: {reason}."
            ) from error

    return predict


def _array(output: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, list | tuple):
        if len(output) != 1:
            raise InputError(
                f"model must have one output, got {len(output)} from {name}; build a keras.Model with the one to score."
            )
        output = output[0]
    if hasattr(output, "detach"):  # Keras on PyTorch
        return plain(output)
    array = np.asarray(output)
    if array.dtype.kind in "fiub":
        return array
    return Widened(array.astype(np.float32), of=str(array.dtype))  # bfloat16, which numpy does not know


# --- The last layer --------------------------------------------------------------------------------


def _without_activation(model: Any) -> Iterator[tuple[str, Call]]:
    """Yield ways to ask for what goes into the last activation, to be tested, and the name of the layer."""
    last = _last(model)
    if last is None:
        return
    layer = type(last).__name__
    if _activation(last) in _SATURATING:

        def call(features: Any) -> Any:
            with _linear(last):
                return model(features, training=False)

        yield layer, _asking(model, call)
    elif layer == "Softmax" and getattr(model, "inputs", None) and last in model.layers:
        shorter = _plain_model(model)(model.inputs, last.input)
        yield layer, _asking(model, lambda features: shorter(features, training=False))


def _activation(layer: Any) -> str:
    return str(getattr(getattr(layer, "activation", None), "__name__", ""))


def _last(model: Any) -> Any:
    """Return the last layer, inside models that are the last layer of a model."""
    last = model
    while layers := getattr(last, "layers", None):
        last = layers[-1]
    return None if last is model else last


def _plain_model(model: Any) -> Any:
    """Return Keras's own class of models, of the Keras that this model is of."""
    return next(
        cls
        for cls in type(model).__mro__
        if cls.__name__ == "Model" and cls.__module__.partition(".")[0] in _HOMES
    )


@contextmanager
def _linear(layer: Any) -> Iterator[None]:
    activation = layer.activation
    try:
        layer.activation = _unchanged
        yield
    finally:
        layer.activation = activation


def _unchanged(values: Any) -> Any:
    return values
