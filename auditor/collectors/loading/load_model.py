"""A file of a model becomes the model, by its suffix; what would run code from the file is refused unless trusted."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from auditor.collectors.loading import (
    booster_files,
    estimator_files,
    keras_files,
    onnx_files,
    saved_models,
    torch_files,
)
from auditor.collectors.loading.damage import named
from auditor.collectors.loading.trust import Trust
from auditor.errors import InputError

__all__ = ["load_model"]

Reader = Callable[[Path, Trust], Any]

_READERS: dict[str, Reader] = {
    ".onnx": onnx_files.read,
    ".skops": estimator_files.read_skops,
    ".keras": keras_files.read_keras,
    ".h5": keras_files.read_hdf5,
    ".hdf5": keras_files.read_hdf5,
    **dict.fromkeys((".pt", ".pth", ".ts", ".torchscript"), torch_files.read_torch),
    ".safetensors": torch_files.read_safetensors,
    ".ubj": booster_files.read_xgboost,
    ".json": booster_files.read_xgboost,
    ".txt": booster_files.read_lightgbm,
    **dict.fromkeys((".joblib", ".pkl", ".pickle", ".sav"), estimator_files.read_pickle),
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
        return saved_models.read_saved_model(place, trust)
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
