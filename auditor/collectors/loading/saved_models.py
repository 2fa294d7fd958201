"""The folder of a SavedModel: its graphs, if they hold only operations that compute, and the layers around them.

Operations of a graph can read and write files or call Python, and a layer can be rebuilt from a description that names
any function of TensorFlow. So graphs with such operations are refused, and layers that are not on the list of harmless
parts (`keras_parts`) are not rebuilt from their description but from their graph, which is the same function.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auditor.collectors.extras import needed
from auditor.collectors.loading import graph_operations, keras_parts
from auditor.collectors.loading.damage import named, readable
from auditor.collectors.loading.keras_files import keras_library, serialization
from auditor.collectors.loading.trust import Trust
from auditor.errors import InputError

__all__ = ["read_saved_model"]

_METADATA = "keras_metadata.pb"
_UNKNOWN = {
    "layer was saved without config": True
}  # what Keras writes for a layer that does not know its settings
_PLAIN = {"_tf_keras_sequential": "Sequential", "_tf_keras_network": "Functional"}


def read_saved_model(path: Path, trust: Trust) -> Any:
    """Return the Keras model in the folder of a SavedModel; bytecode in it is passed over for its graph."""
    if not (path / "saved_model.pb").is_file():
        raise InputError(
            f"{named(path)} must be a SavedModel, but it has no saved_model.pb; name the file of the model instead."
        )
    keras = keras_library()
    if not keras.__version__.startswith("2."):
        raise InputError(
            f"{named(path)} is a SavedModel, which Keras {keras.__version__} does not read; save the model as .keras."
        )
    with readable(path, kind="a SavedModel of Keras"):
        if trust.pickles:
            return _model(path, path, keras)
        if not (path / _METADATA).is_file():
            raise InputError(f"{named(path)} must be a SavedModel of Keras; save the model with model.save.")
        with _harmless(path) as place, readable(place, kind="a SavedModel of Keras"):
            graph_operations.refuse(place)
            with serialization().SafeModeScope(safe_mode=True):
                return _model(path, place, keras)


def _model(path: Path, place: Path, keras: Any) -> Any:
    model = keras.models.load_model(str(place), compile=False)
    if not isinstance(model, keras.Model):
        raise InputError(f"{named(path)} must be a SavedModel of Keras; save the model with model.save.")
    return model


@contextmanager
def _harmless(path: Path) -> Iterator[Path]:
    """Give a folder with the same content but for the descriptions of layers that are not on the list."""
    messages = needed("keras.protobuf.saved_metadata_pb2", purpose="loading a SavedModel", extra="tensorflow")
    metadata = messages.SavedMetadata.FromString((path / _METADATA).read_bytes())
    for node in metadata.nodes:
        node.metadata = json.dumps(_described(json.loads(node.metadata), node.identifier))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / (path.name or "model")
        place.mkdir()
        for item in path.iterdir():
            if item.name != _METADATA:
                _linked(item.resolve(), place / item.name)
        (place / _METADATA).write_bytes(metadata.SerializeToString())
        yield place


def _linked(item: Path, place: Path) -> None:
    """Link a file or folder to another place, or copy it where links are not allowed."""
    try:
        place.symlink_to(item, target_is_directory=item.is_dir())
    except OSError:
        if item.is_dir():
            shutil.copytree(item, place)
        else:
            shutil.copy(item, place)


def _described(layer: Any, identifier: str) -> Any:
    """Return the description of a layer, empty unless it is on the list, with nothing else in it that is not."""
    found = _without_unknown(layer)
    found["class_name"] = _PLAIN.get(identifier, layer.get("class_name"))
    if identifier not in _PLAIN and not keras_parts.is_known(layer, saved_model=True):
        found["config"] = _UNKNOWN
    return found


def _without_unknown(item: Any) -> Any:
    """Return a description in which objects that are not on the list have a name that nobody knows."""
    if isinstance(item, list):
        return [_without_unknown(part) for part in item]
    if not isinstance(item, dict):
        return item
    found = {name: _without_unknown(value) for name, value in item.items() if name != "training_config"}
    if "class_name" in item and not keras_parts.is_known(item, saved_model=True):
        found["class_name"] = "Unknown"
    return found
