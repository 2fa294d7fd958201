"""Training records that a model's file carries: rows of nearest neighbours and kernels, small leaves of trees, tables kept along.

Only attributes in the instances' own dictionaries are read, and no method of an estimator is called. Boosters of other libraries
are read through their own dumps.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from auditor.collectors.base.records import Records, take_rows
from auditor.collectors.models.estimators import as_fitted
from auditor.core import FEWEST_IN_LEAF, Array, Carried, CarriedRows
from auditor.records.features import hashes_of

_Kinds = frozenset[str]


def _kinds(part: Any) -> _Kinds:
    """Return the package and the name of a part's class and of each that this descends from, such as ``sklearn.SVC``."""
    return frozenset(f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(part).__mro__)


# --- Rows of the training table, by the attribute in which an estimator keeps them ---


_ROWS = ("_fit_X", "support_vectors_", "X_train_", "X_fit_", "_raw_data", "_BaseLibSVM__Xfit")  # of any class
_ROWS_OF = {
    "sklearn.BaseLabelPropagation": "X_",
    "sklearn.Nystroem": "components_",
    "sklearn.DBSCAN": "components_",
    "sklearn.AffinityPropagation": "cluster_centers_",
}
_OF_PAIRS = ("kernel", "metric", "affinity")  # where it is precomputed, rows are no records


def _rows(kinds: _Kinds, own: Mapping[str, Any]) -> int:
    """Return the number of training records that a part keeps as rows."""
    if any(isinstance(own.get(name), str) and own[name] == "precomputed" for name in _OF_PAIRS):
        return 0
    names = *_ROWS, *(_ROWS_OF[kind] for kind in kinds & _ROWS_OF.keys())
    tables = [own[name] for name in names if own.get(name) is not None]
    if "sklearn.KernelDensity" in kinds and "tree_" in own:
        tables.append(own["tree_"].data)
    return max((table.shape[0] if hasattr(table, "shape") else len(table) for table in tables), default=0)


# --- Training records of each leaf, where a model tells ---


def _histogram_leaves(model: Any) -> Array:
    trees = [tree.nodes for step in vars(model).get("_predictors", ()) for tree in step]
    return np.concatenate([nodes["count"][nodes["is_leaf"] != 0] for nodes in trees] or [np.empty(0)])


# A leaf's cover is a sum of second derivatives, which are 1, or the weight of a record, under these objectives alone.
_COUNTING = ("reg:squarederror", "reg:absoluteerror", "reg:quantileerror")


def _xgboost_leaves(booster: Any) -> Array | None:
    if json.loads(booster.save_config())["learner"]["objective"]["name"] not in _COUNTING:
        return None
    own = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    trees = own.get("gbtree", own)["model"].get("trees", ())
    pairs = [pair for tree in trees for pair in zip(tree["sum_hessian"], tree["left_children"], strict=True)]
    return np.array([cover for cover, child in pairs if child < 0])


def _lightgbm_leaves(booster: Any) -> Array:
    lines = re.findall(r"^leaf_count=(.*)$", booster.model_to_string(), flags=re.MULTILINE)
    return np.array(" ".join(lines).split(), dtype=np.float64)


_LEAVES: dict[str, Callable[[Any], Array | None]] = {
    "sklearn.Tree": lambda tree: np.asarray(tree.n_node_samples[tree.children_left < 0]),
    "sklearn.BaseHistGradientBoosting": _histogram_leaves,
    "xgboost.Booster": _xgboost_leaves,
    "lightgbm.Booster": _lightgbm_leaves,
    "catboost.CatBoost": lambda model: np.asarray(model.get_leaf_weights()),
}


def _leaves(kinds: _Kinds, part: Any) -> tuple[int, int] | None:
    """Return the number of leaves with few training records and of all leaves; None where a model does not tell.

    Sums of weights tell nothing unless they are whole numbers: a leaf has no more records than that.
    """
    if kinds.isdisjoint(_LEAVES):
        return 0, 0
    counts = next(_LEAVES[kind](part) for kind in kinds & _LEAVES.keys())
    if counts is None or np.any(counts != np.round(counts)):
        return None
    filled = counts[counts > 0]
    return int((filled < FEWEST_IN_LEAF).sum()), filled.size


# --- Tables with rows that are equal to audited records ---


_ALIKE = 10  # different records that a table must hold before it is one of training records
_AT_ONCE = 2**16  # rows


def _table_search(model: Any, sample: Sequence[Records]) -> Callable[[Any], int]:
    """Return the function that returns the number of rows of a table if it holds records of this sample, and 0 otherwise."""
    widths = {math.prod(np.shape(group.features)[1:]) for group in sample[:1]} - {1}  # values are no records

    @cache
    def audited() -> Array:
        return np.concatenate([hashes_of(as_fitted(model, group)) for group in sample])

    def search(table: Any) -> int:
        shape: tuple[int, ...] = getattr(table, "shape", ())
        found = set[int]()
        if len(shape) > 1 and shape[0] >= _ALIKE and math.prod(shape[1:]) in widths:
            with suppress(Exception):  # of cells that have no hash
                for start in range(0, shape[0], _AT_ONCE):
                    rows = take_rows(table, rows=slice(start, start + _AT_ONCE))
                    found.update(np.intersect1d(audited(), hashes_of(rows)).tolist())
                    if len(found) >= _ALIKE:
                        return shape[0]
        return 0

    return search


# --- The parts of an estimator ---


_MOST = 100_000  # parts that are looked at
_PLAIN = (str, bytes, int, float, complex, type, FunctionType, MethodType, ModuleType, np.generic, type(None))
# Readers know them by their own name, and not their parts.
_WHOLE = {
    "sklearn.BaseEnsemble",
    "sklearn.GaussianProcessClassifier",
    "xgboost.XGBModel",
    "lightgbm.LGBMModel",
}


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """A part of a model: its value, the name of the part that has it, and whether it gets features after a transform."""

    value: Any
    holder: str
    whole: bool = False
    transformed: bool = False

    def named(self, kinds: _Kinds) -> "_Part":
        """Return the part under the name of its own class, unless it belongs to a whole."""
        holder, whole = type(self.value).__name__, not kinds.isdisjoint(_WHOLE)
        return self if self.whole else replace(self, holder=holder, whole=whole)

    def parts(self, kinds: _Kinds, own: Mapping[str, Any]) -> Iterator["_Part"]:
        """Yield the parts in the attributes, or in a list, a dictionary or an array of objects."""
        value, changed = self.value, self.transformed
        if "sklearn.Pipeline" in kinds:
            for _, step in own.get("steps", ()):
                yield replace(self, value=step, transformed=changed)
                changed |= not (step in (None, "passthrough") or "sklearn.SelectorMixin" in _kinds(step))
            return
        items: Iterable[tuple[Any, Any]] = own.items()
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, list | tuple | set) or (
            isinstance(value, np.ndarray) and value.dtype.hasobject
        ):
            items = ((None, item) for item in getattr(value, "flat", value))
        for name, item in items:
            if not isinstance(item, _PLAIN):
                # Features of a final estimator are the predictions of others.
                after = changed or name == "final_estimator_"
                yield _Part(item, self.holder, self.whole, after)


def carried_rows(model: Any, sample: Sequence[Records] = ()) -> tuple[CarriedRows, ...] | None:
    """Return the training records that a fitted estimator or a booster carries.

    Rows that several parts of one class carry are counted in the part that has the most, for they may be the same; leaves are
    added up. A table of an unknown part counts whole if at least 10 different audited records are among its rows.

    Args:
        model: The model, whose parts are looked at wherever they are: in pipelines, searches, ensembles, lists.
        sample: Audited records, for the search of tables.

    Returns:
        An empty tuple if no part carries any; but None if a part does not tell how many records its leaves have.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> carried_rows(KNeighborsClassifier(1).fit([[0.0], [1.0], [2.0]], [0, 1, 1]))
    (CarriedRows(part='KNeighborsClassifier', form=<Carried.COPIES: 'copies'>, count=3, of=None),)
    """
    search, waiting = _table_search(model, sample), [_Part(model, type(model).__name__)]
    seen, unknown = set[int](), False
    rows, leaves = dict[tuple[str, Carried], int](), dict[str, tuple[int, int]]()
    while waiting:
        part = waiting.pop()
        if id(part.value) in seen:
            continue
        seen.add(id(part.value))
        try:
            kinds, own = _kinds(part.value), getattr(part.value, "__dict__", {})
            part = part.named(kinds) if own and not hasattr(part.value, "shape") else part
            form = Carried.TRANSFORMED if part.transformed else Carried.COPIES
            count, counted = _rows(kinds, own) or search(part.value), _leaves(kinds, part.value)
            if count:
                rows[part.holder, form] = max(count, rows.get((part.holder, form), 0))
            elif counted and counted[1]:
                few, of = leaves.get(part.holder, (0, 0))
                leaves[part.holder] = few + counted[0], of + counted[1]
            else:
                waiting += islice(part.parts(kinds, own), max(0, _MOST - len(seen) - len(waiting)))
            unknown |= counted is None or len(seen) + len(waiting) >= _MOST
        except Exception:  # noqa: BLE001 - of a class that refuses to be looked at
            unknown = True
    result = [CarriedRows(*key, count) for key, count in rows.items()]
    result += [CarriedRows(part, Carried.LEAVES, few, of) for part, (few, of) in leaves.items() if few]
    return tuple(result) if result or not unknown else None


# --- The graph of an ONNX model ---


_SELECTS = {"Cast", "Concat", "Identity", "ArrayFeatureExtractor", "Gather", "Reshape", "Flatten"}
_SCALES = {"Div", "Mul"}  # a kernel's own, of both the records of a call and the rows
_VECTORS = ("vectors_per_class", "n_supports")  # their numbers, by class of a classifier


def rows_in_graph(graph: Any) -> tuple[CarriedRows, ...] | None:
    """Return the training records in an ONNX graph: support vectors, and the rows to which it computes distances.

    Returns:
        Nothing, if it has none; None, if besides it has trees, whose leaves have no numbers of records.
    """
    heights = {item.name: item.dims[0] for item in graph.initializer if len(item.dims) == 2}  # noqa: PLR2004
    known = {item.name for item in graph.initializer}
    plain, found = {item.name for item in graph.input}, dict[tuple[str, Carried], int]()
    for node in graph.node:
        count = 0
        if node.op_type in ("SVMClassifier", "SVMRegressor"):
            count = sum(sum(item.ints) + item.i for item in node.attribute if item.name in _VECTORS)
        elif _is_distance(node):
            count = max((heights.get(name, 0) for name in node.input), default=0)
        untouched = all(name in plain or name in known for name in node.input)
        if count:
            part = node.op_type if node.op_type.startswith("SVM") else "CDist"
            key = part, Carried.COPIES if untouched else Carried.TRANSFORMED
            found[key] = max(count, found.get(key, 0))
        elif node.op_type in _SELECTS | _SCALES and untouched:
            plain.update(node.output)
            scaled = [heights[name] for name in node.input if name in heights]
            heights |= dict.fromkeys(node.output, max(scaled, default=0)) if node.op_type in _SCALES else {}
    trees = any(node.op_type.startswith("TreeEnsemble") for node in graph.node)
    return tuple(CarriedRows(*of, count) for of, count in found.items()) or (None if trees else ())


def _is_distance(node: Any) -> bool:
    """Return whether a node computes distances of records to the rows of a table, as skl2onnx writes them."""
    inner = {item.op_type for body in node.attribute for item in body.g.node}
    subtracts = "Sub" in inner and any(name.startswith("Reduce") for name in inner)
    return node.op_type in ("CDist", "dist_nan_euclidean") or (node.op_type == "Scan" and subtracts)
