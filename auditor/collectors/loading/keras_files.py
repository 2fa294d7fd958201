"""Files of Keras: nothing in them runs Python code of others, unless it is trusted.

A ``.keras`` file names the classes to build by module. Keras imports whatever is named there, so the names are looked at
first. The bytecode of Lambda layers is refused in a ``.keras`` file and never loaded from a SavedModel, whose own graph
is used instead.
"""

import builtins
import json
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from auditor.collectors.extras import needed
from auditor.collectors.loading.damage import named, readable
from auditor.collectors.loading.trust import Trust
from auditor.errors import InputError

__all__ = ["read_hdf5", "read_keras", "read_saved_model"]

_LARGEST = 2**26  # bytes of a configuration
_HARMLESS = {
    *(f"keras.{room}" for room in ("layers", "models", "initializers", "regularizers", "constraints")),
    *(f"keras.{room}" for room in ("activations", "optimizers", "losses", "metrics", "dtype_policies")),
    *(f"keras.src.{room}" for room in ("engine.functional", "engine.sequential", "engine.training")),
    *(f"keras.src.models.{room}" for room in ("functional", "sequential", "model")),
    "keras",
}
_PRIVATE = "tensorflow_privacy.privacy.keras_models.dp_keras_model"


def read_keras(path: Path, trust: Trust) -> Any:
    """Return the model in a ``.keras`` file."""
    keras = _keras()
    with readable(path, kind="a model saved by Keras"):
        config = _config(path)
        unknown = sorted(set(_foreign(config)) - trust.types)
        if unknown:
            listed = ", ".join(map(repr, unknown))
            raise InputError(
                f"{named(path)} names code that is not of Keras: {listed}; if you trust it, name it in trusted_types."
            )
        try:
            return keras.models.load_model(
                str(path), custom_objects=_private(config, keras), compile=False, safe_mode=not trust.pickles
            )
        except ValueError as error:
            if "lambda" in str(error).lower() and not trust.pickles:
                raise InputError(
                    f"{named(path)} holds the bytecode of a Lambda layer, which could do anything when loaded; save the"
                    " model without it or as ONNX, or, if you trust its source as you would a program, pass"
                    " trust_pickle=True (--trust-pickle)."
                ) from error
            raise


def read_hdf5(path: Path, trust: Trust) -> Any:
    """Return the model in an HDF5 file, if it is trusted: the format has no safe way to be read."""
    if not trust.pickles:
        raise InputError(
            f"{named(path)} is in Keras's older HDF5 format, from which loading can run any code; save the model as"
            " .keras, or, if you trust its source as you would a program, pass trust_pickle=True (--trust-pickle)."
        )
    keras = _keras()
    with readable(path, kind="a model saved by Keras"):
        return keras.models.load_model(str(path), compile=False)


def read_saved_model(path: Path, trust: Trust) -> Any:
    """Return the Keras model in the folder of a SavedModel; bytecode in it is passed over for its graph."""
    if not (path / "saved_model.pb").is_file():
        raise InputError(
            f"{named(path)} must be a SavedModel, but it has no saved_model.pb; name the file of the model instead."
        )
    keras = _keras()
    with readable(path, kind="a SavedModel of Keras"), _safe(keras, on=not trust.pickles):
        model = keras.models.load_model(str(path), compile=False)
        if not isinstance(model, keras.Model):
            raise InputError(f"{named(path)} must be a SavedModel of Keras; save the model with model.save.")
        return model


def _keras() -> Any:
    needed("tensorflow", purpose="loading a Keras model", extra="tensorflow")
    return needed("keras", purpose="loading a Keras model", extra="tensorflow")


def _safe(keras: Any, *, on: bool) -> AbstractContextManager[Any]:
    """Keep Keras from building functions from bytecode, which its SavedModel reader does without being asked."""
    if not keras.__version__.startswith("2."):
        return nullcontext()  # later versions read no SavedModel
    scope: AbstractContextManager[Any] = needed(
        "keras.src.saving.serialization_lib", purpose="loading a SavedModel", extra="tensorflow"
    ).SafeModeScope(safe_mode=on)
    return scope


def _config(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo("config.json").file_size > _LARGEST:
            raise ValueError("its configuration is too large")
        return json.loads(archive.read("config.json"))


def _objects(config: Any) -> Iterator[dict[str, Any]]:
    """Yield every object that a configuration asks for, but those of training, which is left out."""
    waiting = [config]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "class_name" in item:
                yield item
            waiting += [value for name, value in item.items() if name != "compile_config"]
        elif isinstance(item, list):
            waiting += item


def _foreign(config: Any) -> Iterator[str]:
    """Yield what is to be imported from anywhere but the rooms of Keras that hold the parts of models."""
    for item in _objects(config):
        module, name = item.get("module"), str(item["class_name"])
        if name == "function":
            name = str(item.get("config"))
        if module == "builtins":
            if hasattr(builtins, name):
                yield f"builtins.{name}"
        elif module is not None and module not in _HARMLESS and module != _PRIVATE:
            yield f"{module}.{name}"


def _private(config: Any, keras: Any) -> dict[str, Any]:
    """Return the plain class in place of one of tensorflow-privacy, which predicts the same and cannot be found."""
    classes: dict[str, Any] = {}
    for item in _objects(config):
        if item.get("module") == _PRIVATE:
            functional = "input_layers" in (item.get("config") or {})
            classes[str(item["class_name"])] = keras.Model if functional else keras.Sequential
    return classes
