"""Keras models (TensorFlow), those trained with tensorflow-privacy included: called as for prediction, weights untouched.

Most end in a float32 softmax or sigmoid, which saturates. Where the last layer's activation is one of them, the model is
also asked without it, and if that reproduces its answers (`agreement`) the logits are scored.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.base import records as base_records
from auditor.collectors.base.outputs import (
    Output,
    Widened,
    agreement,
    label_agreement,
    shaped_outputs,
    type_name,
)
from auditor.collectors.base.records import Records, spread
from auditor.collectors.base.scorer import (
    Predictor,
    explained,
    is_a,
    output_words,
    range_remark,
    recognised_output,
)
from auditor.collectors.base.tasks import MultiLabel, Task
from auditor.collectors.models.torch import as_array
from auditor.core.errors import InputError

# --- Records into the inputs of a Keras model: one that takes all columns, or one for each column by name ---


_SHOWN = 5  # inputs listed in an error before the rest are left out


@dataclass(frozen=True)
class _Input:
    """One input of a model.

    Attributes:
        name: By which a column is found.
        shape: Of one record; sizes that are not fixed are none. None where nothing is known of it.
        dtype: The name of its type: ``float32``, ``string``.
    """

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str


def _inputs_of(model: Any) -> list[_Input]:
    """Return the inputs of a model; one of unknown shape where it does not tell."""
    tensors = getattr(model, "inputs", None)
    if not tensors:
        return [_Input("x", None, str(getattr(model, "compute_dtype", None) or "float32"))]
    names = getattr(model, "input_names", None) or [tensor.name for tensor in tensors]
    return [
        _Input(str(name), tuple(tensor.shape[1:]), str(getattr(tensor.dtype, "name", tensor.dtype)))
        for name, tensor in zip(names, tensors, strict=True)
    ]


def _given(inputs: Sequence[_Input], records: Records, *, model: str) -> Any:
    """Return the features of a batch as the model takes them.

    Raises:
        InputError: Text where numbers are wanted, another number of columns, or an input without a column.
    """
    features = records.features
    if len(inputs) == 1:
        (item,) = inputs
        if item.dtype == "string":
            return _tensor(_text(features), item, records, model)
        array = base_records.matrix(
            features, dtype=_number_type(item), place=records.name, first_row=records.first_row
        )
        return _tensor(array, item, records, model)
    if not base_records.is_frame(features):
        raise InputError(
            f"{records.name} X must be a table with a column for each of the model's {len(inputs)} inputs"
            f" ({_listed(inputs)}), got {type(features).__name__}."
        )
    missing = [item for item in inputs if item.name not in base_records.column_names(features)]
    if missing:
        raise InputError(
            f"{records.name} X must have a column for each input of the model, but not all have one:"
            f" {_listed(missing)}."
        )
    return {item.name: _tensor(_column(item, records), item, records, model) for item in inputs}


def _column(item: _Input, records: Records) -> npt.NDArray[Any]:
    if item.dtype == "string":
        return _text(records.features[item.name])
    return base_records.column_array(
        records.features, item.name, dtype=_number_type(item), place=records.name, first_row=records.first_row
    )


def _number_type(item: _Input) -> Any:
    return np.float32 if item.dtype == "bfloat16" else np.dtype(item.dtype)


def _text(features: Any) -> npt.NDArray[Any]:
    values = features.to_numpy() if hasattr(features, "to_numpy") else np.asarray(features)
    return values.astype(np.str_)


def _tensor(array: npt.NDArray[Any], item: _Input, records: Records, model: str) -> Any:
    """Return an array in the shape of an input: flat rows of an image become one, and a column a table of one."""
    if item.shape is not None:
        array = _shaped(array, item.shape, records, model)
    if item.dtype != "string":
        return array
    import tensorflow as tf

    return tf.constant(array)


def _shaped(
    array: npt.NDArray[Any], shape: tuple[int | None, ...], records: Records, model: str
) -> npt.NDArray[Any]:
    own = array.shape[1:]
    if len(own) == len(shape):
        if len(shape) == 1 and shape[0] is not None:
            base_records.refuse_width(array, wanted=shape[0], model=model, place=records.name)
        return array
    fixed = [size for size in shape if size is not None]
    if len(fixed) == len(shape) and math.prod(fixed) == math.prod(own):
        return array.reshape(len(array), *fixed)
    if len(shape) == 1 and shape[0] is not None:
        base_records.refuse_width(
            array.reshape(len(array), -1), wanted=shape[0], model=model, place=records.name
        )
    return array


def _listed(inputs: Sequence[_Input]) -> str:
    return ", ".join(repr(item.name) for item in inputs[:_SHOWN]) + (", ..." if len(inputs) > _SHOWN else "")


# --- A Keras model as a predictor ---


_AT_ONCE = 4096
_SATURATING = ("softmax", "sigmoid")
_HOMES = ("keras", "tf_keras")

_Call = Callable[[Records], npt.NDArray[Any]]


def accepts(model: Any) -> bool:
    """Return whether this is a Keras model."""
    return any(is_a(model, home, "Model") for home in _HOMES)


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return a Keras model as the collectors see it."""
    tried = spread(sample)
    asked = _asking(model, lambda features: model(features, training=False))
    answers = [shaped_outputs(asked(part), n=len(part), place=part.name) for part in tried]
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
            kind = recognised_output(values, task=task) if answers else Output.PROBABILITIES
            where = "" if _activation(_last(model)) == "sigmoid" else range_remark(values, task=task)
    dtype = type_name(answers[0]) if answers else str(getattr(model, "compute_dtype", "float32"))
    return Predictor(
        predict=asked,
        source=f"{output_words(kind, dtype=dtype)} of {_name(model)} (Keras){where}",
        output=kind,
        identity=_identity(model),
        records_at_once=_AT_ONCE,
    )


def _identity(model: Any) -> str:
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
    candidate: _Call, tried: Sequence[Records], answers: Sequence[npt.NDArray[Any]], same: Callable[..., Any]
) -> bool:
    """Return whether the logits are those of the outputs, on the sample."""
    found = []
    for part, probabilities in zip(tried, answers, strict=True):
        try:
            logits = shaped_outputs(candidate(part), n=len(part), place=part.name)
        except InputError:
            return False  # what goes wrong in the model as it is has been said before
        found.append(same(logits, probabilities=probabilities))
    return True in found and False not in found


def _asking(model: Any, call: Callable[[Any], Any]) -> _Call:
    """Return what predicts a batch; whatever the model raises becomes one sentence, with the cause kept."""
    inputs = _inputs_of(model)
    name = _name(model)

    def predict(records: Records) -> npt.NDArray[Any]:
        features = _given(inputs, records, model=name)
        with explained(f"{records.name} X must suit the model, but {name} refused it"):
            return _array(call(features), name)

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
        return as_array(output)
    array = np.asarray(output)
    if array.dtype.kind in "fiub":
        return array
    return Widened(array.astype(np.float32), of=str(array.dtype))  # bfloat16, which numpy does not know


# --- The last layer ---


def _without_activation(model: Any) -> Iterator[tuple[str, _Call]]:
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
