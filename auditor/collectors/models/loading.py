"""A file of a model becomes the model, by its suffix; what would run code from the file is refused unless trusted."""

import json
import os
import re
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from auditor.collectors.base.scorer import import_optional
from auditor.collectors.models import onnx, trust as models_trust
from auditor.collectors.models.trust import Trust, named, readable
from auditor.core import validate
from auditor.core.errors import InputError

# --- Files of Keras: nothing in them runs Python code of others, unless it is trusted ---
#
# A ``.keras`` file names the classes to build by module, and Keras imports whatever is named there. So the model is built
# here, from a configuration in which every part is on a list (`auditor.collectors.models.trust`), and only numbers are read from the file:
# no pickled arrays, no files beside it, no assets.


_LARGEST = 2**26  # bytes of a configuration
_WEIGHTS = "model.weights.h5"
_TRUSTED = "if you trust its source as you would a program, pass trust_pickle=True (--trust-pickle)"
_CODE = {"keras.layers.Lambda", "Lambda", "__lambda__", "builtins.__lambda__"}
_SHOWN = 8  # parts listed in an error before the rest are left out


def _read_keras(path: Path, trust: Trust) -> Any:
    """Return the model in a ``.keras`` file."""
    keras = _keras_library()
    with readable(path, kind="a model saved by Keras"):
        if path.suffix != ".keras":
            raise InputError(
                f"{named(path)} must have the suffix .keras in small letters to be read by Keras."
            )
        config = models_trust.without_training(_config(path))
        if trust.pickles:
            return _trusted(path, keras)
        _refuse_parts(path, config, trust)
        _refuse_weights(path)
        lib = _serialization()
        with ExitStack() as scopes:
            scopes.enter_context(lib.SafeModeScope(safe_mode=True))
            scopes.enter_context(lib.ObjectSharingScope())
            model = keras.saving.deserialize_keras_object(config, safe_mode=True)
        if not isinstance(model, keras.Model):
            raise InputError(f"{named(path)} must hold a model of Keras, got {type(model).__name__}.")
        model.load_weights(str(path))
        return model


def _read_hdf5(path: Path, trust: Trust) -> Any:
    """Return the model in an HDF5 file, if it is trusted: the format has no safe way to be read."""
    if not trust.pickles:
        raise InputError(
            f"{named(path)} is in Keras's older HDF5 format, from which loading can run any code; save the model as"
            f" .keras, or, {_TRUSTED}."
        )
    keras = _keras_library()
    with readable(path, kind="a model saved by Keras"):
        return keras.models.load_model(str(path), compile=False)


def _keras_library() -> Any:
    """Return Keras, if it and TensorFlow are installed."""
    import_optional("tensorflow", purpose="loading a Keras model", extra="tensorflow")
    return import_optional("keras", purpose="loading a Keras model", extra="tensorflow")


def _serialization() -> Any:
    """Return the module of Keras that turns configurations into objects."""
    return import_optional(
        "keras.src.saving.serialization_lib", purpose="loading a Keras model", extra="tensorflow"
    )


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
    found = set(models_trust.unknown_parts(config))
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
    h5py = import_optional("h5py", purpose="loading a Keras model", extra="tensorflow")
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


# --- The folder of a SavedModel: its graphs, if they hold only operations that compute, and the layers around them ---
#
# Operations of a graph can read and write files or call Python, and a layer can be rebuilt from a description that names
# any function of TensorFlow. So graphs with such operations are refused, and layers that are not on the list of harmless
# parts (`auditor.collectors.models.trust`) are not rebuilt from their description but from their graph, which is the same function.


_METADATA = "keras_metadata.pb"
_UNKNOWN = {
    "layer was saved without config": True
}  # what Keras writes for a layer that does not know its settings
_PLAIN = {"_tf_keras_sequential": "Sequential", "_tf_keras_network": "Functional"}


def _read_saved_model(path: Path, trust: Trust) -> Any:
    """Return the Keras model in the folder of a SavedModel; bytecode in it is passed over for its graph."""
    if not (path / "saved_model.pb").is_file():
        raise InputError(
            f"{named(path)} must be a SavedModel, but it has no saved_model.pb; name the file of the model instead."
        )
    keras = _keras_library()
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
            models_trust.refuse_graph(place)
            with _serialization().SafeModeScope(safe_mode=True):
                return _model(path, place, keras)


def _model(path: Path, place: Path, keras: Any) -> Any:
    model = keras.models.load_model(str(place), compile=False)
    if not isinstance(model, keras.Model):
        raise InputError(f"{named(path)} must be a SavedModel of Keras; save the model with model.save.")
    return model


@contextmanager
def _harmless(path: Path) -> Iterator[Path]:
    """Give a folder with the same content but for the descriptions of layers that are not on the list."""
    messages = import_optional(
        "keras.protobuf.saved_metadata_pb2", purpose="loading a SavedModel", extra="tensorflow"
    )
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
    if identifier not in _PLAIN and not models_trust.is_known(layer, saved_model=True):
        found["config"] = _UNKNOWN
    return found


def _without_unknown(item: Any) -> Any:
    """Return a description in which objects that are not on the list have a name that nobody knows."""
    if isinstance(item, list):
        return [_without_unknown(part) for part in item]
    if not isinstance(item, dict):
        return item
    found = {name: _without_unknown(value) for name, value in item.items() if name != "training_config"}
    if "class_name" in item and not models_trust.is_known(item, saved_model=True):
        found["class_name"] = "Unknown"
    return found


# --- Files of scikit-learn estimators: skops, and pickles where they are trusted ---


# Holders of numbers, with no code that runs when they are read, which skops does not know.
_HARMLESS = {f"sklearn.neural_network._stochastic_optimizers.{name}Optimizer" for name in ("Adam", "SGD")}
_LARGEST_SCHEMA = 2**27  # bytes; that of a forest of 300 trees takes 5 MB
_DENSEST = 50  # times that a file of more than this may grow; forests grow tenfold


def _read_skops(path: Path, trust: Trust) -> Any:
    """Return the estimator in a skops file, if it holds only types that are trusted."""
    from skops import io as skops

    with readable(path, kind="an estimator saved by skops"):
        _refuse_bombs(path)
        found = set(skops.get_untrusted_types(file=path))
        unknown = sorted(found - trust.types - _HARMLESS)
        if unknown:
            shown = ", ".join(map(repr, unknown[:_SHOWN])) + (", ..." if len(unknown) > _SHOWN else "")
            raise InputError(
                f"{named(path)} holds types that are not known to be harmless: {shown}; if you trust them, name them in"
                " trusted_types (--trusted-type)."
            )
        with _versions(path):
            return skops.load(path, trusted=sorted(found))


def _refuse_bombs(path: Path) -> None:
    """Refuse a file that unpacks into far more than it holds, before anything is unpacked."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        schema = sum(part.file_size for part in parts if part.filename == "schema.json")
        whole = sum(part.file_size for part in parts)
    if schema > _LARGEST_SCHEMA:
        raise ValueError(f"its schema.json would take {schema / 1e6:.0f} MB")
    if whole > max(_LARGEST_SCHEMA, _DENSEST * path.stat().st_size):
        raise ValueError(f"its {path.stat().st_size / 1e6:.1f} MB would unpack into {whole / 1e6:.0f} MB")


def _read_pickle(path: Path, trust: Trust) -> Any:
    """Return what a joblib or pickle file holds, if it is trusted."""
    _refuse_pickle(path, trust, "save the model with skops or as ONNX")
    joblib = import_optional("joblib", purpose="loading a joblib file", extra=" joblib")
    with readable(path, kind="a model saved by joblib or pickle"), _versions(path):
        return joblib.load(path)


def _refuse_pickle(path: Path, trust: Trust, fix: str) -> None:
    """Refuse a pickle that is not trusted, with the reason."""
    if not trust.pickles:
        raise InputError(
            f"{named(path)} is a pickle, and loading one runs whatever code is in it; {fix}, or, if you trust its source"
            " as you would a program, pass trust_pickle=True (--trust-pickle)."
        )


@contextmanager
def _versions(path: Path) -> Iterator[None]:
    """Say once, in a sentence, that an estimator was saved by another version of scikit-learn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    others = {}
    for warning in caught:
        if type(warning.message).__name__ != "InconsistentVersionWarning":
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
            continue
        found = re.search(r"from version (\S+) when using version (\S+?)\.? ", str(warning.message))
        others[found.groups() if found else ("another version", "this one")] = True
    for saved, here in others:
        warnings.warn(
            f"{named(path)} was saved with scikit-learn {saved} and is loaded with {here}, so its outputs may differ from"
            f" those of its training; install scikit-learn {saved} to be sure.",
            stacklevel=5,
        )


# --- Files of PyTorch: TorchScript that only computes, and state dicts that a factory's network takes; no pickle unless trusted ---


_PURPOSE = "loading a PyTorch file"
_WRAPPED = ("state_dict", "model_state_dict", "model")  # where checkpoints keep the weights
_PREFIXES = ("_module.", "module.", "_orig_mod.", "model.")  # Opacus, DataParallel, torch.compile, Lightning


def _read_torch(path: Path, trust: Trust) -> Any:
    """Return the module in a TorchScript file, or the factory's with the weights of a state dict."""
    torch = import_optional("torch", purpose=_PURPOSE, extra="torch")
    if _is_script(path):
        with readable(path, kind="a TorchScript module"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript itself
            if not trust.pickles:
                models_trust.refuse_script(torch, path)
            return torch.jit.load(str(path), map_location="cpu")
    found = _content(torch, path, trust)
    if isinstance(found, torch.nn.Module):
        return found
    weights = _weights(found, torch)
    if weights is None:
        raise InputError(
            f"{named(path)} must hold a TorchScript module or a state dict, got {type(found).__name__}."
        )
    return _filled(path, weights, trust, torch)


def _read_safetensors(path: Path, trust: Trust) -> Any:
    """Return the factory's network with the weights of a safetensors file."""
    torch = import_optional("torch", purpose=_PURPOSE, extra="torch")
    reader = import_optional("safetensors.torch", purpose="loading a .safetensors file", extra=" safetensors")
    with readable(path, kind="a safetensors file"):
        weights = reader.load_file(str(path), device="cpu")
    return _filled(path, weights, trust, torch)


def _is_script(path: Path) -> bool:
    """Return whether this is an archive with TorchScript code."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/" in name for name in archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


def _content(torch: Any, path: Path, trust: Trust) -> Any:
    """Return what a file of torch.save holds: tensors and plain values, or anything at all if pickles are trusted."""
    import pickle

    try:
        with readable(path, kind="a file saved by PyTorch"):
            try:
                return torch.load(str(path), map_location="cpu", weights_only=True)
            except pickle.UnpicklingError:
                if not zipfile.is_zipfile(path) and not trust.pickles:
                    raise
                _refuse_pickle(path, trust, "save its state dict or an ONNX file")
                return torch.load(str(path), map_location="cpu", weights_only=False)
    except InputError as error:
        if isinstance(error.__cause__, pickle.UnpicklingError):
            raise InputError(
                f"{named(path)} must be a file saved by PyTorch, but it cannot be read."
            ) from error
        raise


def _weights(found: Any, torch: Any) -> Mapping[str, Any] | None:
    """Return the state dict, wherever a checkpoint keeps it."""
    if not isinstance(found, Mapping):
        return None
    if found and all(torch.is_tensor(value) for value in found.values()):
        return found
    for name in _WRAPPED:
        inner = found.get(name)
        if isinstance(inner, Mapping) and inner and any(torch.is_tensor(value) for value in inner.values()):
            return inner
    return found if any(torch.is_tensor(value) for value in found.values()) else None


def _filled(path: Path, weights: Mapping[str, Any], trust: Trust, torch: Any) -> Any:
    if trust.factory is None:
        raise InputError(
            f"{named(path)} holds weights alone, so factory must name what builds the network: a callable, or"
            " 'module:function' (--factory)."
        )
    model = trust.built()
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"factory must build a torch.nn.Module, got {type(model).__name__}.")
    try:
        model.load_state_dict(_renamed(weights, model))
    except (RuntimeError, TypeError, AttributeError) as error:
        raise InputError(
            f"{named(path)} must hold the weights of {type(model).__name__}, but they do not fit:"
            f" {validate.one_line(error)}."
        ) from error
    return model


def _renamed(weights: Mapping[str, Any], model: Any) -> Mapping[str, Any]:
    """Take off the prefixes that wrappers put before every name."""
    wanted = set(model.state_dict())
    while weights and not set(weights) & wanted:
        prefix = next((p for p in _PREFIXES if all(name.startswith(p) for name in weights)), None)
        if prefix is None:
            break
        weights = {name.removeprefix(prefix): value for name, value in weights.items()}
    return weights


# --- Files that are data: ONNX, XGBoost and LightGBM ---


def _read(path: Path, trust: Trust) -> Any:  # noqa: ARG001 - every reader has the same arguments
    """Return a session of the model in a file; an ONNX graph runs no code of others and reads no file but its weights."""
    return onnx.open_session(path)


def _read_xgboost(path: Path, trust: Trust) -> Any:  # noqa: ARG001 - every reader has the same arguments
    """Return the booster in a file that XGBoost's ``save_model`` wrote."""
    xgboost = import_optional("xgboost", purpose="loading an XGBoost model", extra=" xgboost")
    with readable(path, kind="a model saved by XGBoost"):
        return xgboost.Booster(model_file=str(path))


def _read_lightgbm(path: Path, trust: Trust) -> Any:  # noqa: ARG001 - every reader has the same arguments
    """Return the booster in a file that LightGBM's ``save_model`` wrote."""
    lightgbm = import_optional("lightgbm", purpose="loading a LightGBM model", extra=" lightgbm")
    with readable(path, kind="a model saved by LightGBM"):
        return lightgbm.Booster(model_str=path.read_text(encoding="utf-8"))


# --- Which reader a file has ---


_Reader = Callable[[Path, Trust], Any]

_READERS: dict[str, _Reader] = {
    ".onnx": _read,
    ".skops": _read_skops,
    ".keras": _read_keras,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
    **dict.fromkeys((".pt", ".pth", ".ts", ".torchscript"), _read_torch),
    ".safetensors": _read_safetensors,
    ".ubj": _read_xgboost,
    ".json": _read_xgboost,
    ".txt": _read_lightgbm,
    **dict.fromkeys((".joblib", ".pkl", ".pickle", ".sav"), _read_pickle),
}


def load_model(
    path: str | os.PathLike[str],
    *,
    factory: Callable[[], Any] | str | None = None,
    trust_pickle: bool = False,
    trusted_types: Sequence[str] = (),
) -> Any:
    """Load a model from a file that others wrote, for `collect`, without running Python code from it.

    ========================================  =======================================================================
    ``.onnx``                                 ONNX
    ``.skops``                                scikit-learn, saved with skops
    ``.keras``, a folder with a SavedModel    Keras
    ``.pt``, ``.pth``, ``.ts``                TorchScript, or a PyTorch state dict with a factory
    ``.safetensors``                          a PyTorch state dict with a factory
    ``.ubj``, ``.json``; ``.txt``             XGBoost; LightGBM
    ``.joblib``, ``.pkl``, ``.pickle``        refused unless trusted: loading one runs whatever code is in it
    ========================================  =======================================================================

    Unless trusted, no Python code from the file runs, neither here nor when the model is scored, and no file is read or
    written but the model's own: a ``.keras`` file may name only parts that are known to be harmless, a TorchScript file
    or SavedModel with operations that touch files or other processes is refused, and ONNX weights must lie beside their
    model. The graph in a file is still a program, which may take any time and memory, and bugs in the libraries that
    read it are theirs: keep them up to date.

    Args:
        path: The file or folder.
        factory: What builds the network that a state dict fills: a callable without arguments, or "module:function",
            imported from the working directory or the installed packages.
        trust_pickle: Whether the source of the file is trusted with running any code here, which a pickle can, a Lambda
            layer, or a graph with operations that touch files.
        trusted_types: Names of types, such as "package.module.Class", that a ``.skops`` or ``.keras`` file may hold
            beside those known to be harmless.

    Returns:
        The model: an estimator, a Keras model, a PyTorch module on the processor, an onnxruntime session, or a booster.

    Raises:
        InputError: A file that is missing, damaged, of an unknown kind, or in need of trust.
        MissingExtraError: The package that reads it is not installed.
    """
    place = Path(path)
    trust = Trust(factory=factory, pickles=trust_pickle, types=frozenset(trusted_types))
    if place.is_dir():
        return _read_saved_model(place, trust)
    reader = _READERS.get(place.suffix.lower())
    if reader is None:
        known = ", ".join(_READERS)
        raise InputError(
            f"{named(place)} must be a model in a file of a known kind ({known}) or the folder of a SavedModel."
        )
    if not place.exists():
        raise InputError(f"{named(place)} must be the file of a model, but there is none at that path.")
    if not os.access(place, os.R_OK):
        raise InputError(f"{named(place)} must be readable, but this user may not read it.")
    if place.stat().st_size == 0:
        raise InputError(f"{named(place)} must be the file of a model, but it is empty.")
    return reader(place, trust)
