"""Files of PyTorch: TorchScript that only computes, and state dicts that a factory's network takes; no pickle unless trusted."""

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auditor import _validate
from auditor.collectors.extras import needed
from auditor.collectors.loading import script_code
from auditor.collectors.loading.damage import named, readable
from auditor.collectors.loading.estimator_files import refuse_pickle
from auditor.collectors.loading.trust import Trust
from auditor.errors import InputError

__all__ = ["read_safetensors", "read_torch"]

_PURPOSE = "loading a PyTorch file"
_WRAPPED = ("state_dict", "model_state_dict", "model")  # where checkpoints keep the weights
_PREFIXES = ("_module.", "module.", "_orig_mod.", "model.")  # Opacus, DataParallel, torch.compile, Lightning


def read_torch(path: Path, trust: Trust) -> Any:
    """Return the module in a TorchScript file, or the factory's with the weights of a state dict."""
    torch = needed("torch", purpose=_PURPOSE, extra="torch")
    if _is_script(path):
        with readable(path, kind="a TorchScript module"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript itself
            if not trust.pickles:
                script_code.refuse(torch, path)
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


def read_safetensors(path: Path, trust: Trust) -> Any:
    """Return the factory's network with the weights of a safetensors file."""
    torch = needed("torch", purpose=_PURPOSE, extra="torch")
    reader = needed("safetensors.torch", purpose="loading a .safetensors file", extra=" safetensors")
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
                refuse_pickle(path, trust, "save its state dict or an ONNX file")
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
            f" {_validate.one_line(error)}."
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
