"""Files of Keras: nothing in them runs Python code of others, unless it is trusted.

A ``.keras`` file names the classes to build by module, and Keras imports whatever is named there. So the model is built
here, from a configuration in which every part is on a list (`keras_parts`), and only numbers are read from the file:
no pickled arrays, no files beside it, no assets.
"""

import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from auditor.collectors.extras import needed
from auditor.collectors.loading import keras_parts
from auditor.collectors.loading.damage import named, readable
from auditor.collectors.loading.trust import Trust
from auditor.errors import InputError

__all__ = ["keras_library", "read_hdf5", "read_keras", "serialization"]

_LARGEST = 2**26  # bytes of a configuration
_WEIGHTS = "model.weights.h5"
_TRUSTED = "if you trust its source as you would a program, pass trust_pickle=True (--trust-pickle)"
_CODE = {"keras.layers.Lambda", "Lambda", "__lambda__", "builtins.__lambda__"}
_SHOWN = 8  # parts listed in an error before the rest are left out


def read_keras(path: Path, trust: Trust) -> Any:
    """Return the model in a ``.keras`` file."""
    keras = keras_library()
    with readable(path, kind="a model saved by Keras"):
        if path.suffix != ".keras":
            raise InputError(
                f"{named(path)} must have the suffix .keras in small letters to be read by Keras."
            )
        config = keras_parts.plain(_config(path))
        if trust.pickles:
            return _trusted(path, keras)
        _refuse_parts(path, config, trust)
        _refuse_weights(path)
        lib = serialization()
        with ExitStack() as scopes:
            scopes.enter_context(lib.SafeModeScope(safe_mode=True))
            scopes.enter_context(lib.ObjectSharingScope())
            model = keras.saving.deserialize_keras_object(config, safe_mode=True)
        if not isinstance(model, keras.Model):
            raise InputError(f"{named(path)} must hold a model of Keras, got {type(model).__name__}.")
        model.load_weights(str(path))
        return model


def read_hdf5(path: Path, trust: Trust) -> Any:
    """Return the model in an HDF5 file, if it is trusted: the format has no safe way to be read."""
    if not trust.pickles:
        raise InputError(
            f"{named(path)} is in Keras's older HDF5 format, from which loading can run any code; save the model as"
            f" .keras, or, {_TRUSTED}."
        )
    keras = keras_library()
    with readable(path, kind="a model saved by Keras"):
        return keras.models.load_model(str(path), compile=False)


def keras_library() -> Any:
    """Return Keras, if it and TensorFlow are installed."""
    needed("tensorflow", purpose="loading a Keras model", extra="tensorflow")
    return needed("keras", purpose="loading a Keras model", extra="tensorflow")


def serialization() -> Any:
    """Return the module of Keras that turns configurations into objects."""
    return needed("keras.src.saving.serialization_lib", purpose="loading a Keras model", extra="tensorflow")


def _config(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo("config.json").file_size > _LARGEST:
            raise ValueError("its configuration is too large")
        return json.loads(archive.read("config.json"))


def _trusted(path: Path, keras: Any) -> Any:
    """Return the model in a file whose source is trusted with running any code; only that of training is left out."""
    private = dict.fromkeys(("DPModelClass", "DPSequential"), keras.Sequential)
    return keras.models.load_model(str(path), custom_objects=private, compile=False, safe_mode=False)


def _refuse_parts(path: Path, config: Any, trust: Trust) -> None:
    """Refuse a configuration with parts that are neither on the list nor trusted by name."""
    found = set(keras_parts.foreign(config))
    if _CODE & found:  # which no name can vouch for
        raise InputError(
            f"{named(path)} holds a Lambda layer, whose code could do anything when loaded; save the model without it or"
            f" as ONNX, or, {_TRUSTED}."
        )
    unknown = sorted(found - trust.types)
    if unknown:
        listed = ", ".join(map(repr, unknown[:_SHOWN])) + (", ..." if len(unknown) > _SHOWN else "")
        raise InputError(
            f"{named(path)} names parts that are not known to be harmless: {listed}; save the model without them or as"
            f" ONNX, name those that you trust in trusted_types (--trusted-type), or, {_TRUSTED}."
        )


def _refuse_weights(path: Path) -> None:
    """Refuse weights that come from elsewhere than the file's own HDF5 archive, which could be any file here."""
    h5py = needed("h5py", purpose="loading a Keras model", extra="tensorflow")
    with zipfile.ZipFile(path) as archive:
        if _WEIGHTS not in archive.namelist():
            raise InputError(
                f"{named(path)} must hold its weights in {_WEIGHTS}, but there are none; save it again."
            )
        with archive.open(_WEIGHTS) as raw, h5py.File(raw, "r") as weights:
            for place in _elsewhere(weights, h5py):
                raise InputError(
                    f"{named(path)} takes the weights at {place!r} from another file, which its user did not name;"
                    f" save the model again, or, {_TRUSTED}."
                )


def _elsewhere(root: Any, h5py: Any) -> Iterator[str]:
    """Yield the names of links and arrays of an HDF5 file whose content is not in it."""
    waiting, seen = [root], set()
    while waiting:
        item = waiting.pop()
        address = h5py.h5o.get_info(item.id).addr
        if address in seen:
            continue
        seen.add(address)
        if isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                yield str(item.name)
            continue
        for name in item:
            if not isinstance(item.get(name, getlink=True), h5py.HardLink):
                yield f"{item.name}/{name}"
            else:
                waiting.append(item[name])
