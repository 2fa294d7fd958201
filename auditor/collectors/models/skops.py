"""Estimators of scikit-learn in files of skops, from which nothing runs that the file says."""

# ruff: noqa: SLF001 - what is checked are the private parts of estimators

import importlib
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.models.estimators import counts_words
from auditor.collectors.models.trust import Trust, named, readable
from auditor.core import InputError, is_a

_LARGEST_SCHEMA = 2**27  # bytes; that of a forest of 300 trees takes 5 MB
_DENSEST = 50  # times that a file of more than this may grow; forests grow tenfold


def read_skops(path: Path, trust: Trust) -> Any:
    """Return the estimator in a skops file, if it holds only types that are trusted."""
    from skops import io as skops

    with readable(path, kind="an estimator saved by skops"):
        _refuse_bombs(path)
        types = set(skops.get_untrusted_types(file=path))
        trust.refuse_types(path, {name for name in types if not _is_harmless(name)})
        model = skops.load(path, trusted=sorted(types))
        _refuse_parts(path, model, trust)
        return model


def _refuse_bombs(path: Path) -> None:
    """Refuse a file that unpacks into far more than it holds, before anything is unpacked."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    schema = sum(part.file_size for part in parts if part.filename == "schema.json")
    whole = sum(part.file_size for part in parts)
    if schema > _LARGEST_SCHEMA or whole > max(_LARGEST_SCHEMA, _DENSEST * path.stat().st_size):
        raise ValueError(f"its {path.stat().st_size / 1e6:.1f} MB would unpack into {whole / 1e6:.0f} MB")


# --- Which types are trusted beside those that skops knows ---
#
# A type of the file can be made in three ways: __new__ and then __setstate__ (or __dict__), a call with arguments of the file,
# or as a value, which a step may call with records. For the Python classes that scikit-learn defines each of these only keeps
# attributes, or computes on arrays. Not so:
#
# * functions and bound methods, which a FunctionTransformer would call: only those named below are trusted;
# * what a module of scikit-learn merely imports, such as a function of subprocess: it is defined elsewhere;
# * modules that load data, start processes, write temporary files or come from others: _OUTSIDE;
# * compiled classes, whose state is memory: of those only three distances, and four kinds of trees once their tables are checked;
# * classes of SciPy: the state of a distribution (scipy.stats) holds text that __setstate__ executes.


_OUTSIDE = {"callback", "conftest", "datasets", "experimental", "externals", "inspection", "tests", "utils"}
_TREES = {
    "sklearn.tree._tree.Tree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
}
_HARMLESS = {
    *_TREES,
    "numpy.dtype",
    "sklearn.utils._bunch.Bunch",
    *(f"sklearn.utils._metadata_requests.{name}" for name in ("MetadataRequest", "MethodMetadataRequest")),
    *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in ("Euclidean", "Manhattan", "Minkowski")),
    *(
        f"sklearn.feature_selection._univariate_selection.{name}"
        for name in ("chi2", "f_classif", "f_regression", "r_regression")
    ),
}


def _is_harmless(name: str) -> bool:
    """Whether nothing that a file says runs where it names this type."""
    module, _, kind = name.rpartition(".")
    if name in _HARMLESS:
        return True
    if not module.startswith("sklearn.") or _OUTSIDE & set(module.split(".")):
        return False
    try:
        home = importlib.import_module(module)
    except ImportError:  # as of a method, whose class is no module
        return False
    found = getattr(home, kind, None)
    return isinstance(found, type) and found.__module__ == module and str(home.__file__).endswith(".py")


# --- What a trusted type may hold ---


def _refuse_parts(path: Path, model: Any, trust: Trust) -> None:
    """Refuse steps that read the files that records name, and trees that lead out of their tables; pickling meets every part."""
    sound: set[int] = set()
    met: set[int] = set()
    boosters = []

    class Parts(pickle.Pickler):
        def persistent_id(self, obj: Any) -> None:
            if hasattr(obj, "input") and counts_words(obj) and repr(obj.input) != "'content'":
                raise InputError(
                    f"{named(path)} holds a {type(obj).__name__} whose input is {obj.input!r}: it reads the files that the"
                    " records name. Fit it on the texts themselves and save the model again."
                )
            if is_a(obj, "sklearn", "BaseGradientBoosting") and hasattr(obj, "estimators_"):
                boosters.append(obj)
            if id(obj) not in met:
                met.add(id(obj))
                sound.update(map(id, _sound_trees(obj)))
            kind = f"{type(obj).__module__}.{type(obj).__name__}"
            if kind in _TREES and id(obj) not in sound:
                trust.refuse_types(path, {kind})
            sound.discard(id(obj))  # once: another part that holds it too may have other features

    with Path(os.devnull).open("wb") as nowhere:
        Parts(nowhere).dump(model)
    if not all(map(_writes_within, boosters)):
        trust.refuse_types(path, {"sklearn.tree._tree.Tree"})


def _sound_trees(holder: Any) -> list[Any]:
    """Return the trees of an estimator whose tables compiled code can follow: it follows them without looking at their ends."""
    if is_a(holder, "sklearn", "BaseDecisionTree") and hasattr(holder, "tree_"):
        tree = holder.tree_
        whole = tree.node_count == tree.capacity and tree.n_features == holder.n_features_in_
        return [tree] if whole and _leads_on(tree.__getstate__()["nodes"], tree.n_features) else []
    if is_a(holder, "sklearn", "BaseHistGradientBoosting") and hasattr(holder, "_predictors"):
        trees = [tree for step in holder._predictors for tree in step]
        plain = holder._preprocessor is None and not any(tree.nodes["is_categorical"].any() for tree in trees)
        return [tree for tree in trees if plain and _leads_on(tree.nodes, holder.n_features_in_)]
    if is_a(holder, "sklearn", "NeighborsBase") and is_a(
        getattr(holder, "_tree", None), "sklearn", "BinaryTree64"
    ):
        # Built again from the records, which is what fitting does.
        metric = {"metric": holder.effective_metric_, **holder.effective_metric_params_}
        holder._tree = type(holder._tree)(holder._fit_X, holder.leaf_size, **metric)
        return [holder._tree]
    return []


def _leads_on(nodes: Any, features: int) -> bool:
    """Whether each node that is no leaf leads to two nodes behind it, and asks for one of so many features."""
    plain = "left_child" in nodes.dtype.names  # of a tree, and not of histogram boosting
    names = ("left_child", "right_child", "feature") if plain else ("left", "right", "feature_idx")
    left, right, feature = (nodes[name].astype(np.int64) for name in names)
    inner = left != -1 if plain else nodes["is_leaf"] == 0
    least = np.arange(nodes.size)
    good = (least < left) & (left < nodes.size) & (least < right) & (right < nodes.size)
    return bool(nodes.size and np.all((good & (feature >= 0) & (feature < features)) | ~inner))


def _writes_within(booster: Any) -> bool:
    """Whether the trees of a gradient boosting have its features, and add to as many outputs as there are."""
    trees = [step.tree_ for step in booster.estimators_.ravel()]
    if any(tree.n_features != booster.n_features_in_ or tree.value.shape[1:] != (1, 1) for tree in trees):
        return False
    first = booster._raw_predict_init(np.zeros((1, booster.n_features_in_), dtype=np.float32))
    return bool(first.shape == (1, booster.estimators_.shape[1]))
