"""Keras models (TensorFlow), those trained with tensorflow-privacy included: called as for prediction, weights untouched.

Most end in a float32 softmax or sigmoid, which saturates. Where the last layer's activation is one of them, the model is
also run without it, and if that reproduces its answers (`agreement`) the logits are scored.
"""

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from auditor.collectors.base.outputs import Output, Widened, reproduces, shaped_outputs, type_name
from auditor.collectors.base.records import Input, Records, arrays, spread
from auditor.collectors.base.scorer import Predictor, recognised_output
from auditor.collectors.base.tasks import MultiLabel, Task
from auditor.collectors.models.torch import as_array
from auditor.collectors.models.trust import Trust, named, readable, refuse_elsewhere
from auditor.core import Array, InputError, entries, explained, import_optional

# --- A Keras model as a predictor ---


_AT_ONCE = 4096
_SATURATING = ("softmax", "sigmoid")
MODELS = (("keras", "Model"), ("tf_keras", "Model"))  # of all models of Keras

_Call = Callable[[Records], Array]


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return a Keras model as the collectors see it."""
    tried = spread(sample)
    predict = _asking(model, lambda features: model(features, training=False))
    answers = [predict(part) for part in tried]
    true, kind = None, output
    if task.has_output and output is None:
        labels = isinstance(task, MultiLabel)
        ways = _without_activation(model)
        true = next((way for way in ways if reproduces(way[1], predict, tried, labels=labels)), None)
    if true is not None:
        predict, kind = true[1], Output.LOGITS
        where = f", without the activation of its last {true[0]}"
    else:
        kind, where = recognised_output(answers, task=task, output=output)
        where = "" if _activation(_last(model)) == "sigmoid" else where
    return Predictor(
        predict=predict,
        source=f"{type_name(answers[0])} {kind or 'predictions'} of {type(model).__name__} (Keras){where}",
        output=kind,
        records_at_once=_AT_ONCE,
    )


def _asking(model: Any, call: Callable[[Any], Any]) -> _Call:
    """Return the prediction function of a batch; any exception of the model becomes one sentence, with the cause kept."""
    inputs, name = _inputs(model), type(model).__name__

    def predict(records: Records) -> Array:
        columns = arrays(inputs, records, model=name)
        with explained(f"{records.name} X must suit the model, but {name} refused it"):
            features = {item: _text(array) for item, array in columns.items()}
            answer = _array(call(features if len(inputs) > 1 else features[inputs[0].name]), name)
        return shaped_outputs(answer, records)

    return predict


def _inputs(model: Any) -> list[Input]:
    """Return the inputs of a model; one of unknown shape if it declares none."""
    tensors = getattr(model, "inputs", None)
    if not tensors:
        return [Input("x", None, _dtype(getattr(model, "compute_dtype", None) or "float32"))]
    names = getattr(model, "input_names", None) or [tensor.name for tensor in tensors]
    return [
        Input(str(name), tuple(tensor.shape[1:]), _dtype(getattr(tensor.dtype, "name", tensor.dtype)))
        for name, tensor in zip(names, tensors, strict=True)
    ]


def _dtype(name: Any) -> np.dtype[Any]:
    return np.dtype({"string": "object", "bfloat16": "float32"}.get(str(name), str(name)))


def _text(array: Array) -> Any:
    """Return text as a tensor, and numbers as they are."""
    if array.dtype != object:
        return array
    import tensorflow as tf

    return tf.constant(array)


def _array(output: Any, name: str) -> Array:
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
    """Yield functions that return the input of the last activation, to be tested, and the name of the layer."""
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
    names = ((cls.__module__.partition(".")[0], cls.__name__) for cls in type(model).__mro__)
    return next(cls for cls, own in zip(type(model).__mro__, names, strict=True) if own in MODELS)


@contextmanager
def _linear(layer: Any) -> Iterator[None]:
    activation = layer.activation
    try:
        layer.activation = lambda values: values
        yield
    finally:
        layer.activation = activation


# --- Files of Keras: only numbers and layers that compute are taken from them, unless their code is trusted ---


_LARGEST = 2**26  # bytes of a configuration
_SMALL = 2**20  # numbers, of 8 bytes at most, that every array may have
_WEIGHTS = "model.weights.h5"
_CODE = {"keras.layers.Lambda", "Lambda", "__lambda__", "builtins.__lambda__"}  # which no name can vouch for
_FIX = "save the model without such layers as .keras, or as ONNX"
_PRIVATE = "tensorflow_privacy.privacy.keras_models.dp_keras_model"


def _imported(module: str) -> Any:
    return import_optional(module, purpose="loading a Keras model", extra="tensorflow")


def read_keras(path: Path, trust: Trust) -> Any:
    """Return the model in a ``.keras`` or HDF5 file, or in the folder of a SavedModel.

    Raises:
        InputError: Anything but numbers and layers that are known to be harmless, unless it is trusted.
    """
    if path.is_dir() and not (path / "saved_model.pb").is_file():
        raise InputError(
            f"{named(path)} must be a SavedModel, but it has no saved_model.pb; name the file of the model instead."
        )
    if path.is_dir() or path.suffix != ".keras":  # of which Keras would read the files beside a file M.KERAS
        kind = "a SavedModel" if path.is_dir() else "in another format than .keras"
        trust.refuse_code(path, f"is {kind}", fix=_FIX)
    for item in path.rglob("*") if path.is_dir() else ():
        if item.is_symlink() or not item.is_dir():
            refuse_elsewhere(path, str(item.relative_to(path)), place=named(path))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read once, when it is imported
    _imported("tensorflow")
    keras = _imported("keras")
    with readable(path, kind="a model saved by Keras"):
        model = _trusted(path, keras) if trust.code else _harmless(path, keras, trust)
        if not isinstance(model, keras.Model):
            raise InputError(f"{named(path)} must hold a model of Keras, got {type(model).__name__}.")
        return model


def _trusted(path: Path, keras: ModuleType) -> Any:
    """Return the model in a file whose source is trusted with running any code; only that of training is left out."""
    if path.is_dir() and not (path / "keras_metadata.pb").is_file():
        return _exported(path, keras)  # by `model.export()`: a graph, and no layers
    private = dict.fromkeys(("DPModelClass", "DPSequential"), keras.Sequential)
    return keras.models.load_model(str(path), custom_objects=private, compile=False, safe_mode=False)


def _exported(path: Path, keras: Any) -> Any:
    """Return the graph in a SavedModel as a model of Keras that answers, and has neither layers nor weights to be seen."""
    graph = _imported("tensorflow").saved_model.load(str(path))
    signature = graph.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]

    class Exported(keras.Model):  # type: ignore[misc]
        def call(self, features: Any, training: Any = None) -> Any:  # noqa: ARG002 - of the protocol of Keras
            return signature(**{name: features})

    return Exported()


def _harmless(path: Path, keras: ModuleType, trust: Trust) -> Any:
    """Return the model in a ``.keras`` file, built from parts that are on the list."""
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo("config.json").file_size > _LARGEST:
            raise ValueError("its configuration is too large")
        config = _without_training(json.loads(archive.read("config.json")))
    parts = set(_unknown_parts(config))
    if _CODE & parts:
        trust.refuse_code(path, "holds a Lambda layer", fix=_FIX)
    trust.refuse_types(path, parts)
    lib = _imported("keras.src.saving.serialization_lib")
    with ExitStack() as scopes:
        scopes.enter_context(lib.SafeModeScope(safe_mode=True))
        scopes.enter_context(lib.ObjectSharingScope())
        model = keras.saving.deserialize_keras_object(config, safe_mode=True)
    _refuse_weights(path, most=8 * max(_SMALL, *(int(np.prod(item.shape)) for item in model.weights)))
    model.load_weights(str(path))
    return model


def _refuse_weights(path: Path, *, most: int) -> None:
    """Refuse arrays of more bytes than any weight has, or from elsewhere than the file's own HDF5 archive: any file here."""
    h5py = _imported("h5py")

    def refused(name: str, item: Any) -> str | None:
        foreign = getattr(item, "is_virtual", False) or getattr(item, "external", None)
        return name if foreign or getattr(item, "nbytes", 0) > most else None

    with zipfile.ZipFile(path) as archive:
        if _WEIGHTS not in archive.namelist():
            raise InputError(
                f"{named(path)} must hold its weights in {_WEIGHTS}, but there are none; save it again."
            )
        with archive.open(_WEIGHTS) as raw, h5py.File(raw, "r") as weights:
            place = weights.visititems_links(
                lambda name, link: None if isinstance(link, h5py.HardLink) else name
            )
            place = place or weights.visititems(refused)
    if place is not None:
        raise InputError(
            f"{named(path)} takes the weights at {place!r} from another file, or declares more numbers there than any weight of"
            " its model has; save the model again."
        )


# --- Parts that a configuration may name: those in ``keras_parts.toml`` ---


def _allowed(names: str) -> frozenset[str]:
    """Return the words of a text as a set; a number sign stands for 1, 2 and 3.

    >>> sorted(_allowed("Dense Conv#D"))
    ['Conv1D', 'Conv2D', 'Conv3D', 'Dense']
    """
    return frozenset(word.replace("#", size) for word in names.split() for size in "123")


_PARTS = entries("auditor.collectors.models", "keras_parts.toml")
_VALUES, _ACTIVATIONS, _FUNCTIONS = (
    _allowed(_PARTS[kind]) for kind in ("values", "activations", "functions")
)
_KNOWN = {module: _allowed(names) for module, names in _PARTS["modules"].items()}
_WRAPPED = "keras.src.layers.core.tf_op_layer"  # a function of TensorFlow as a layer
_WRAPPERS = ("TFOpLambda", "SlicingOpLambda")


def _without_training(config: Any) -> Any:
    """Return a configuration without the parts for training alone.

    Models of tensorflow-privacy, which Keras cannot find again and which predict the same, become plain ones.
    """
    if isinstance(config, list):
        return [_without_training(item) for item in config]
    if not isinstance(config, dict):
        return config
    rest = {name: _without_training(value) for name, value in config.items() if name != "compile_config"}
    if rest.get("module") == _PRIVATE:
        inner = rest.get("config")
        functional = isinstance(inner, dict) and "input_layers" in inner
        kind = "Model" if functional else "Sequential"
        rest |= {"module": "keras", "class_name": kind, "registered_name": None}
    return rest


def _unknown_parts(config: Any) -> Iterator[str]:
    """Yield the names of the parts, at any depth, that are not on the list, functions included."""
    waiting = [config]
    while waiting:
        item = waiting.pop()
        waiting += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        if not isinstance(item, dict):
            continue
        for name, value in item.items():
            if name.endswith("activation") and isinstance(value, str) and value not in _ACTIVATIONS:
                yield f"keras.activations.{value}"
        if "class_name" in item and not _is_known(item):
            yield _called(item)


def _is_known(item: dict[str, Any]) -> bool:
    """Return whether an object is on the list, in the module where Keras will look for it."""
    name, module, inner = item["class_name"], item.get("module"), item.get("config")
    if not isinstance(name, str) or not isinstance(module, str | None) or _is_renamed(item):
        return False
    if name in _WRAPPERS:
        function = inner.get("function") if isinstance(inner, dict) else None
        return module == _WRAPPED and isinstance(function, str) and function in _FUNCTIONS
    if name == "function":
        vouched = isinstance(inner, str) and inner in _ACTIVATIONS
        return vouched and module in {"builtins", "keras.activations"}
    return name in (_VALUES if module in {None, "builtins"} else _KNOWN.get(str(module), ()))


def _is_renamed(item: dict[str, Any]) -> bool:
    """Return whether an object is to be found among those registered in this process, whatever else it says."""
    registered, inner = item.get("registered_name"), item.get("config")
    names = [None, item["class_name"], *([inner, "function"] if item["class_name"] == "function" else [])]
    return registered not in names


def _called(item: dict[str, Any]) -> str:
    """Return the name of an object in sentences and among trusted types."""
    inner = item.get("config")
    if item["class_name"] in _WRAPPERS and isinstance(inner, dict):
        return f"tf.{inner.get('function')}"
    last = inner if item["class_name"] == "function" else item["class_name"]
    if _is_renamed(item):
        last = item["registered_name"]
    return ".".join(str(part) for part in (item.get("module"), last) if part is not None)
