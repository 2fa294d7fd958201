"""Loading of a model file by its suffix; a file that would run code is refused unless trusted."""

import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from auditor.collectors.models import onnx
from auditor.collectors.models.keras import read_keras
from auditor.collectors.models.skops import read_skops
from auditor.collectors.models.trust import Trust, named, quietly, readable
from auditor.core import InputError, import_optional, validate

# --- Pickles, where they are trusted ---


def _read_pickle(path: Path, trust: Trust) -> Any:
    """Return the content of a joblib or pickle file, if it is trusted."""
    trust.refuse_code(path, "is a pickle", fix="save the model with skops or as ONNX")
    joblib = import_optional("joblib", purpose="loading a joblib file", extra=" joblib")
    with readable(path, kind="a model saved by joblib or pickle"):
        return joblib.load(path)


# --- Files of PyTorch: weights that a factory's network takes; modules and TorchScript are programs, and need to be trusted ---


_PURPOSE = "loading a PyTorch file"
_WRAPPED = ("state_dict", "model_state_dict", "model")  # where checkpoints keep the weights
_PREFIXES = ("_module.", "module.", "_orig_mod.", "model.")  # Opacus, DataParallel, torch.compile, Lightning


def _read_torch(path: Path, trust: Trust) -> Any:
    """Return the factory's module with the weights of a state dict; if it is trusted, the module in the file."""
    torch = import_optional("torch", purpose=_PURPOSE, extra="torch")
    with readable(path, kind="a file saved by PyTorch"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch.jit")  # how it loads TorchScript
        try:
            content = torch.load(str(path), map_location="cpu", weights_only=not trust.code)
        except (pickle.UnpicklingError, RuntimeError) as error:
            if zipfile.is_zipfile(path):
                trust.refuse_code(path, "holds more than weights", fix="save its state dict or an ONNX file")
            # Its own words advise to trust the file.
            raise InputError(
                f"{named(path)} must be a file saved by PyTorch, but it cannot be read."
            ) from error
    if isinstance(content, torch.nn.Module):
        return content
    weights = _weights(content, torch)
    if weights is None:
        raise InputError(
            f"{named(path)} must hold a module or a state dict of PyTorch, got {type(content).__name__}."
        )
    return _filled(path, weights, trust, torch)


def _read_safetensors(path: Path, trust: Trust) -> Any:
    """Return the factory's network with the weights of a safetensors file."""
    torch = import_optional("torch", purpose=_PURPOSE, extra="torch")
    reader = import_optional("safetensors.torch", purpose="loading a .safetensors file", extra=" safetensors")
    with readable(path, kind="a safetensors file"):
        weights = reader.load_file(str(path), device="cpu")
    return _filled(path, weights, trust, torch)


def _weights(content: Any, torch: ModuleType) -> Mapping[str, Any] | None:
    """Return the state dict, wherever a checkpoint keeps it."""
    if not isinstance(content, Mapping):
        return None
    for inner in (*(content.get(name) for name in _WRAPPED), content):
        if isinstance(inner, Mapping) and any(map(torch.is_tensor, inner.values())):
            return inner
    return None


def _filled(path: Path, weights: Mapping[str, Any], trust: Trust, torch: ModuleType) -> Any:
    if trust.factory is None:
        raise InputError(
            f"{named(path)} holds weights alone, so factory must build the network: a callable, or"
            " 'module:function' (--factory)."
        )
    model = trust.built()
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"factory must build a torch.nn.Module, got {type(model).__name__}.")
    must = f"{named(path)} must hold the weights of {type(model).__name__}, but they do not fit"
    kinds = RuntimeError, TypeError, AttributeError
    with validate.explained(must, reason=validate.one_line, kinds=kinds):
        model.load_state_dict(_renamed(weights, model))
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


# --- Files of boosters: data, but the libraries that read them follow the addresses in them unchecked ---
#
# A child of a tree far beyond its end, or an array of 2**31 numbers that are not there, ends the process of XGBoost,
# LightGBM and CatBoost alike, and so may do worse.


def _booster(library: str, load: Callable[[Any, Path], Any]) -> "_Reader":
    """Return the reader of the files that a library's ``save_model`` wrote, if they are trusted."""

    def read(path: Path, trust: Trust) -> Any:
        trust.refuse_code(path, f"is read by {library} without checks", fix="save the model as ONNX")
        name = library.lower()
        package = import_optional(name, purpose=f"loading a model of {library}", extra=f" {name}")
        with readable(path, kind=f"a model saved by {library}"):
            return load(package, path)

    return read


def _catboost(catboost: ModuleType, path: Path) -> Any:
    """Return a classifier where the file knows classes, or else a regressor."""
    model = catboost.CatBoostClassifier().load_model(str(path), format="cbm")
    return model if len(model.classes_) else catboost.CatBoostRegressor().load_model(str(path), format="cbm")


_xgboost = _booster("XGBoost", lambda xgboost, path: xgboost.Booster(model_file=str(path)))
_lightgbm = _booster(
    "LightGBM", lambda lightgbm, path: lightgbm.Booster(model_str=path.read_text(encoding="utf-8"))
)


# --- Readers by file ---


_Reader = Callable[[Path, Trust], Any]

_READERS: dict[str, _Reader] = {
    ".onnx": lambda path, _: onnx.open_session(path),  # no code of others, and no file but its weights
    ".skops": read_skops,
    **dict.fromkeys((".keras", ".h5", ".hdf5"), read_keras),
    **dict.fromkeys((".pt", ".pth", ".ts", ".torchscript"), _read_torch),
    ".safetensors": _read_safetensors,
    ".ubj": _xgboost,
    ".json": _xgboost,
    ".txt": _lightgbm,
    ".cbm": _booster("CatBoost", _catboost),
    **dict.fromkeys((".joblib", ".pkl", ".pickle", ".sav"), _read_pickle),
}


@quietly()
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
    ``.keras``                                Keras
    ``.pt``, ``.pth``; ``.safetensors``       a PyTorch state dict with a factory
    ``.joblib``, ``.pkl``, ``.pickle``        refused unless trusted: loading one runs whatever code is in it
    ``.ubj``, ``.json``; ``.txt``; ``.cbm``   XGBoost; LightGBM; CatBoost: refused unless trusted, for damaged ones crash them
    ``.ts``, ``.pt`` with a module            TorchScript or a pickle of PyTorch; refused unless trusted
    ``.h5``, a folder with a SavedModel       Keras, also by ``model.export()``; refused unless trusted
    ========================================  =======================================================================

    Unless trusted, no Python code from the file runs, neither here nor when the model is scored, and no file is read or
    written but the model's own: a ``.keras`` file may name only parts that are known to be harmless, ONNX weights must be
    ordinary files in the folder of their model, a ``.skops`` file may hold the classes that scikit-learn defines, but no
    step that reads the files that records name and no tree whose nodes lead out of their table,
    and TorchScript, SavedModels and HDF5 files, whose graphs may touch other files, are refused. Output of libraries to
    the terminal meanwhile appears on standard error afterwards, in lines that begin with ``model:``, without codes. The
    graph in a file is still a program, which may take any time and memory, and bugs in the libraries that read it are
    theirs: keep them up to date.

    Args:
        path: The file or folder.
        factory: Function that builds the network that a state dict fills: a callable without arguments, or "module:function",
            imported from the working directory or the installed packages.
        trust_pickle: Whether the source of the file is trusted with running any code here, as a pickle, a Lambda layer,
            TorchScript or a SavedModel can.
        trusted_types: Names of types, such as "package.module.Class", that a ``.skops`` or ``.keras`` file may hold
            beside those known to be harmless.

    Returns:
        The model: an estimator, a Keras model, a PyTorch module on the processor, an onnxruntime session, or a booster.

    Raises:
        InputError: A file that is missing, damaged, of an unknown kind, or in need of trust.
        MissingExtraError: The package that reads it is not installed.
    """
    place = Path(path)
    trust = Trust(factory=factory, code=trust_pickle, types=frozenset(trusted_types))
    if place.is_dir():
        return read_keras(place, trust)
    reader = _READERS.get(place.suffix.lower())
    if reader is None:
        kinds = ", ".join(_READERS)
        raise InputError(
            f"{named(place)} must be a model in a file of a known kind ({kinds}) or the folder of a SavedModel."
        )
    if not place.exists() or place.stat().st_size == 0:
        fault = "it is empty" if place.exists() else "there is none at that path"
        raise InputError(f"{named(place)} must be the file of a model, but {fault}.")
    return reader(place, trust)
