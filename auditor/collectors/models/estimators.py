"""Fitted estimators with scikit-learn's interface: which of their outputs says most, and is it true.

A probability rounds to exactly 0 or 1 long before the model runs out of confidence, so an output that keeps going is
preferred, but only after a numerical test that it is the same model:

1. ``decision_function`` (in XGBoost and LightGBM the raw margin) as logits, if its softmax (sigmoid for two classes, or
   for each of several labels) is ``predict_proba``;
2. ``predict_log_proba``, if ``predict_proba`` is computed from it, or if it is still finite where that is 0;
3. ``predict_proba``.
"""

import hashlib
import importlib
import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.collectors.base import records as base_records
from auditor.collectors.base.outputs import Output, agreement, label_agreement, shaped_outputs
from auditor.collectors.base.records import Records, Rows, bad_value, spread, take_rows
from auditor.collectors.base.scorer import (
    ModelScorer,
    Predictor,
    explained,
    in_batches,
    is_a,
    refuse_other_order,
)
from auditor.collectors.base.tasks import BatchLosses, Classification, GaussianLogLoss, MultiLabel, Task
from auditor.core import validate
from auditor.core.errors import AuditorError, InputError

# --- Features in the form that an estimator was fitted on: a DataFrame with its columns by name, or a plain matrix ---


_SHOWN = 5  # missing columns listed before the rest are left out
_TEXT = "sklearn.feature_extraction.text"


def _as_fitted(model: Any, records: Records) -> Any:
    """Return the features of a batch in the form that the model was fitted on.

    A DataFrame is put into the order of the names that the model knows; without such names it becomes a matrix. An
    array gets the names. What the model knows nothing about is passed as it is.

    Raises:
        InputError: Another number of columns than the model was fitted on.
    """
    features, known = records.features, _fitted_names(model)
    if base_records.is_frame(features):
        if known is not None:
            given = base_records.column_names(features)
            complete = set(known) <= set(given)
            return features[known] if complete and given != known else features
        if _reads_text(model) and len(base_records.column_names(features)) == 1:
            return features[base_records.column_names(features)[0]]
    wanted = getattr(model, "n_features_in_", None)
    if wanted is None:
        return features
    base_records.refuse_width(features, wanted=wanted, model=type(model).__name__, place=records.name)
    if base_records.is_frame(features):
        return features.to_numpy()
    if known is not None and isinstance(features, np.ndarray) and features.ndim == 2:  # noqa: PLR2004
        import pandas as pd

        return pd.DataFrame(features, columns=known, copy=False)
    return features


def _refuse_missing(model: Any, records: Records) -> None:
    """Name the columns that a model was fitted on and a DataFrame does not have, if there are such."""
    known = _fitted_names(model)
    if known is None or not base_records.is_frame(records.features):
        return
    given = set(base_records.column_names(records.features))
    missing = [name for name in known if name not in given]
    if missing:
        shown = ", ".join(map(repr, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
        raise InputError(
            f"{records.name} X must have the {len(known)} columns that {type(model).__name__} was fitted on, but"
            f" {len(missing)} {'is' if len(missing) == 1 else 'are'} missing: {shown}."
        )


def _fitted_names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted on; none where it was fitted on an array."""
    found = getattr(model, "feature_names_in_", None)
    if found is None:
        return None
    known = [str(name) for name in found]
    # LightGBM makes names up for the columns of an array.
    return None if all(re.fullmatch(rf"Column_{i}", name) for i, name in enumerate(known)) else known


def _last_step(model: Any) -> Any:
    """Return the estimator that decides: the last step of a pipeline, the best one of a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(steps := getattr(model, "steps", None), list) and steps:
            model = steps[-1][1]
        else:
            return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep a model from warning of names that an array, a sparse matrix or a list cannot have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
        yield


def _reads_text(model: Any) -> bool:
    """Return whether the first step of a pipeline, or of the best one of a search, counts words."""
    model = getattr(model, "best_estimator_", model)
    steps = getattr(model, "steps", None)
    first = steps[0][1] if isinstance(steps, list) and steps else model
    return any(cls.__module__ == _TEXT for cls in type(first).__mro__)


# --- The outputs of a fitted estimator by name ---


_LONGEST = 300  # characters of a model's sentence in an error
_SEARCHED = 10_000  # and of those in which the kind of the bad value is looked for


@dataclass(frozen=True, eq=False)
class _Method:
    """One way to ask a model: what it is called, and the function of its features."""

    name: str
    ask: Callable[[Any], Any]
    model: Any

    @property
    def of(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

    def __call__(self, records: Records) -> Any:
        """Return the outputs; what the model raises about its input becomes one sentence, with the cause kept."""
        from sklearn.exceptions import NotFittedError

        try:
            # predict_log_proba is often the log of an exact 0.
            with np.errstate(divide="ignore"), _quiet():
                return self.ask(_as_fitted(self.model, records))
        except NotFittedError as error:
            raise InputError(f"model must be fitted, got an unfitted {self.of}; call fit first.") from error
        except AuditorError:
            raise
        except Exception as error:
            _refuse_missing(self.model, records)
            raise InputError(
                f"{records.name} X must suit the model, but {self.of}.{self.name} refused it: {_reason(error, records)}."
            ) from error


def _reason(error: Exception, records: Records) -> str:
    """Return what a model says of features, with the place of the value that it does not take where one is found."""
    whole = validate.one_line(error, longest=_SEARCHED) or type(error).__name__
    place = bad_value(records, reason=whole)
    if place is not None:
        first = str(error).strip().splitlines()[0]
        return f"{_short(validate.one_line(InputError(first), longest=_SEARCHED))} (first at {place}); correct it, or leave that record out"
    return _short(whole)


def _short(text: str) -> str:
    """Return text cut at a word."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} ..."


def _method(model: Any, name: str) -> _Method:
    """Return a method of the model."""
    return _Method(name, getattr(model, name), model)


def _logits(model: Any) -> Iterator[_Method]:
    """Yield what may be the logits of a classifier, to be tested."""
    if hasattr(model, "decision_function"):
        yield _method(model, "decision_function")
    final = _last_step(model)
    asked = getattr(model, "best_estimator_", model)
    if is_a(final, "xgboost", "XGBModel"):
        yield _Method(
            "predict(output_margin=True)", lambda rows: asked.predict(rows, output_margin=True), model
        )
    if is_a(final, "lightgbm", "LGBMModel"):
        yield _Method(
            "predict_proba(raw_score=True)", lambda rows: asked.predict_proba(rows, raw_score=True), model
        )


def _positives(model: Any) -> _Method:
    """Return the probability of 1 of each label of a model of several labels, shape (n, K)."""
    classes = getattr(model, "classes_", None)

    def ask(features: Any) -> npt.NDArray[Any]:
        found = model.predict_proba(features)
        if not isinstance(found, list):
            return np.asarray(found)
        known = classes if isinstance(classes, list) else [np.arange(part.shape[1]) for part in found]
        return np.stack([_of_one(part, own) for part, own in zip(found, known, strict=True)], axis=1)

    return _Method("predict_proba", ask, model)


def _of_one(part: npt.NDArray[Any], classes: Any) -> npt.NDArray[Any]:
    """The column of class 1; a label that training never saw as 1 has none and is certainly 0."""
    place = [position for position, label in enumerate(np.asarray(classes).tolist()) if label == 1]
    return part[:, place[0]] if place else np.zeros(len(part), dtype=part.dtype)


def _mean_and_deviation(model: Any) -> _Method:
    """Return the means and then the standard deviations of a regression that knows both.

    Raises:
        InputError: A model that does not.
    """
    final, name = _last_step(model), type(model).__name__
    if "return_std" not in inspect.signature(final.predict).parameters:
        raise InputError(
            f"task must give the standard deviation, as in GaussianLogLoss(1.5), because {name} returns none."
        )
    asked = getattr(model, "best_estimator_", model)

    def ask(features: Any) -> npt.NDArray[Any]:
        mean, deviation = (np.asarray(part) for part in asked.predict(features, return_std=True))
        shape = (len(mean), -1)
        return np.concatenate([mean.reshape(shape), deviation.reshape(shape)], axis=1)

    return _Method("predict(return_std=True)", ask, model)


# --- A hash of everything that a fitted estimator holds, the same in every process that loads it ---


def _estimator_identity(model: Any) -> str | None:
    """Return a hash of an estimator; none where it holds what cannot be hashed, as a lambda.

    It is joblib's hash but for what differs without making another model: how an array lies in memory, the gaps between
    the fields of an array of records (the nodes of trees), random states (of the whole process, if none was given),
    and the calls that a search tree of neighbours counts.
    """
    hashing = importlib.import_module("joblib.hashing")  # scikit-learn brings it

    class Hasher(hashing.NumpyHasher):  # type: ignore[name-defined,misc]
        def save(self, obj: Any) -> None:
            if isinstance(obj, np.ndarray) and obj.dtype.names:
                obj = [(name, np.ascontiguousarray(obj[name])) for name in obj.dtype.names]
            elif isinstance(obj, np.ndarray) and not obj.dtype.hasobject:
                content = hashlib.sha256(np.ascontiguousarray(obj).tobytes()).hexdigest()
                obj = ("array", obj.dtype.str, obj.shape, content)
            elif isinstance(obj, np.random.RandomState | np.random.Generator):
                obj = type(obj).__name__
            elif hasattr(obj, "get_arrays") and hasattr(obj, "get_n_calls"):
                obj = [type(obj).__name__, *map(np.asarray, obj.get_arrays())]
            super().save(obj)

    try:
        return f"{type(model).__name__}:{Hasher(hash_name='sha1').hash(model)}"
    except Exception:  # noqa: BLE001 - whatever cannot be pickled, in whatever way
        return None


# --- Which output of a fitted estimator is scored ---


_ROWS = 500  # of each group, on which outputs are compared
_TOLERANCE = 1e-6  # absolute, on probabilities
_OUTLASTING = "predict_log_proba of {name}: it keeps going where predict_proba rounds to 0"
_NOT_THESE = (("torch", "Module"), ("keras", "Model"), ("tf_keras", "Model"))


class _Scored(NamedTuple):
    """The losses of both groups and, in words, what they were computed from."""

    member: BatchLosses
    nonmember: BatchLosses
    source: str


def accepts(model: Any) -> bool:
    """Return whether this is an estimator, fitted or not, rather than a plain callable."""
    estimator = hasattr(model, "predict_proba") or (hasattr(model, "fit") and hasattr(model, "get_params"))
    return estimator and not any(is_a(model, package, name) for package, name in _NOT_THESE)


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return the most precise output that is the model's own, as far as the sample of its records shows."""
    refuse_output(model, output)
    identity = _estimator_identity(model)  # before the model is used, for a few count their calls
    if not task.has_output:
        return _regression(model, task, identity)
    if isinstance(task, MultiLabel):
        return _multi_label(model, sample, identity)
    if not isinstance(task, Classification):
        raise InputError(f"task {type(task).__name__} is not supported for {type(model).__name__}.")
    classes = tuple(_classes(model))
    found, kind, source = _chosen(model, sample)
    return Predictor(predict=found, source=source, output=kind, classes=classes, identity=identity)


def refuse_output(model: Any, output: Output | None) -> None:
    """Refuse to be told what is found out."""
    if output not in (None, Output.PROBABILITIES):
        raise InputError(
            f"output says what a callable returns, got {str(output)!r} with a {type(model).__name__};"
            " leave it out: the most precise output of the model is found by itself."
        )


def scored(
    model: Any, *, member: Records, nonmember: Records, classes: Sequence[Any] | None, batch_size: int | None
) -> _Scored:
    """Return the losses of both groups from the most precise output that is the model's own."""
    own = _classes(model)
    refuse_other_order(classes, own=own)
    labels = own if classes is None else classes
    groups = (member, nonmember)
    for group in groups:
        group.codes(labels)  # an unknown label is found before the model spends any time

    def both(found: _Method, output: Output) -> tuple[BatchLosses, BatchLosses]:
        scorer = ModelScorer(Predictor(predict=found, source=found.name, output=output), classes=labels)
        first, second = (in_batches(scorer, group, size=batch_size) for group in groups)
        return first, second

    found, kind, source = _chosen(model, groups)
    losses = both(found, kind)
    if kind is Output.PROBABILITIES and any(
        _logs_outlast(model, group, np.flatnonzero(part.saturated))
        for group, part in zip(groups, losses, strict=True)
    ):
        source = _OUTLASTING.format(name=type(model).__name__)
        losses = both(_method(model, "predict_log_proba"), Output.LOG_PROBABILITIES)
    return _Scored(*losses, source)


def _chosen(model: Any, sample: Sequence[Records]) -> tuple[_Method, Output, str]:
    """Return what to ask a classifier, what that is, and both in words."""
    name = type(model).__name__
    for candidate in _logits(model):
        if _logits_are_true(candidate, _method(model, "predict_proba"), sample, agreement):
            source = f"{candidate.name} of {name}: as logits they reproduce its predict_proba"
            return candidate, Output.LOGITS, source
    if any(_logs_say_more(model, part) for part in _together(sample)):
        return (_method(model, "predict_log_proba"), Output.LOG_PROBABILITIES, _OUTLASTING.format(name=name))
    return _method(model, "predict_proba"), Output.PROBABILITIES, f"predict_proba of {name}"


def _multi_label(model: Any, sample: Sequence[Records], identity: str | None) -> Predictor:
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"model must give probabilities, got {name} without predict_proba; pass a callable that returns a"
            " probability or logit for each label."
        )
    found, kind, source = _positives(model), Output.PROBABILITIES, f"predict_proba of {name}"
    for candidate in _logits(model):
        if _logits_are_true(candidate, found, sample, label_agreement):
            source = f"{candidate.name} of {name}: as logits they reproduce its predict_proba"
            found, kind = candidate, Output.LOGITS
    return Predictor(predict=found, source=source, output=kind, identity=identity)


def _regression(model: Any, task: Task, identity: str | None) -> Predictor:
    name = type(model).__name__
    if hasattr(model, "classes_") or not hasattr(model, "predict"):
        raise InputError(f"task {type(task).__name__} needs a regression model, got {name}.")
    alone = not (isinstance(task, GaussianLogLoss) and task.standard_deviation is None)
    found = _method(model, "predict") if alone else _mean_and_deviation(model)
    return Predictor(predict=found, source=f"{found.name} of {name}", identity=identity)


def _classes(model: Any) -> list[Any]:
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        fix = (
            "if it predicts numbers, name the task: SquaredError() or GaussianLogLoss(...)"
            if _predicts_numbers(model)
            else "wrap a classifier in CalibratedClassifierCV, or pass a callable that returns probabilities or logits"
        )
        raise InputError(f"model must give probabilities, got {name} without predict_proba; {fix}.")
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise InputError(f"model must be fitted, got {name} without classes_; call fit first.")
    if isinstance(classes, list) and any(np.ndim(part) for part in classes):
        raise InputError(
            f"model must predict one label, got {name} with {len(classes)}; name the task MultiLabel() if they are"
            " labels of 0 and 1, or pass a callable for one of them."
        )
    if len(classes) < 2:  # noqa: PLR2004
        raise InputError(
            f"model must know at least 2 classes, got {name} fitted on one; a loss needs an alternative."
        )
    return list(np.asarray(classes).tolist())


def _predicts_numbers(model: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(model))
    except AttributeError:  # not one of scikit-learn's own kind
        return False


# --- Are these the logits of the probabilities? ---

_Agreement = Callable[..., bool | None]


def _logits_are_true(
    candidate: _Method, truth: _Method, groups: Sequence[Records], agree: _Agreement
) -> bool:
    """Compare on a spread of rows; on all rows only if every probability in the spread is rounded away."""
    for step in (lambda n: -(-n // _ROWS), lambda _: 1):
        answers = [
            _same_model(candidate, truth, _rows(group, slice(None, None, step(len(group)))), agree)
            for group in groups
        ]
        if False in answers:
            return False
        if True in answers:
            return True
    return False


def _same_model(candidate: _Method, truth: _Method, part: Records, agree: _Agreement) -> bool | None:
    probabilities = np.asarray(truth(part))
    try:
        found = np.asarray(candidate(part))
    except Exception:  # noqa: BLE001 - whatever is wrong with it, predict_proba remains
        return False
    return agree(found, probabilities=probabilities)


def _rows(group: Records, rows: Rows) -> Records:
    return Records(group.name, take_rows(group.features, rows=rows), group.labels[rows])


# --- Do the log-probabilities say more than the probabilities? ---


def _both(model: Any, part: Records) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    if not hasattr(model, "predict_log_proba"):
        return None
    given = np.asarray(_method(model, "predict_proba")(part))
    logs = np.asarray(_method(model, "predict_log_proba")(part))
    usable = given.dtype.kind == "f" and logs.dtype.kind == "f" and given.shape == logs.shape
    return (given, logs) if usable and not (np.isnan(logs).any() or np.isnan(given).any()) else None


def _together(sample: Sequence[Records]) -> list[Records]:
    """Return a spread of rows of each group, in one where they are arrays: a forest is slow to ask, whatever for."""
    parts = [_rows(group, slice(None, None, -(-len(group) // _ROWS))) for group in sample if len(group)]
    arrays = [part.features for part in parts]
    if not arrays or any(
        type(part) is not np.ndarray or part.shape[1:] != arrays[0].shape[1:] for part in arrays
    ):
        return parts
    labels = np.concatenate([part.labels for part in parts])
    return [Records("members and non-members", np.concatenate(arrays), labels)]


def _logs_say_more(model: Any, part: Records) -> bool:
    """Compare: probabilities computed as exp(log) are that bit for bit, and not the reverse."""
    found = _both(model, part)
    if found is None:
        return False
    given, logs = found
    with np.errstate(divide="ignore"):
        first = np.array_equal(np.exp(logs), given) and not np.array_equal(np.log(given), logs)
    return bool(first) or _outlast(given, logs)


def _logs_outlast(model: Any, group: Records, saturated: npt.NDArray[np.intp]) -> bool:
    """Compare on saturated rows."""
    found = _both(model, _rows(group, saturated[:_ROWS])) if saturated.size else None
    return found is not None and _outlast(*found)


def _outlast(given: npt.NDArray[Any], logs: npt.NDArray[Any]) -> bool:
    """Return whether logs go on below the smallest float: a log of a true underflow lies below the log of that.

    A method that only puts a floor under the zeros before taking the log returns a larger value, and is not believed.
    """
    floor = float(np.log(np.finfo(given.dtype).smallest_subnormal))
    zero = (given == 0) & np.isfinite(logs)
    if not zero.any():
        return False
    return bool(np.all(logs[zero] <= floor) and np.allclose(np.exp(logs), given, rtol=0, atol=_TOLERANCE))


# --- Boosters of XGBoost and LightGBM, as their own model files hold them: raw margins as logits where that is true ---


_LABELS_ONLY = (
    "multi:softmax"  # XGBoost's objective that returns the label; its margins are those of softprob
)


def accepts_booster(model: Any) -> bool:
    """Return whether this is a booster of XGBoost or LightGBM (not their scikit-learn estimators)."""
    return is_a(model, "xgboost", "Booster") or is_a(model, "lightgbm", "Booster")


def booster_predictor(
    model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]
) -> Predictor:
    """Return a booster as the collectors see it."""
    booster = _XGBoost(model) if is_a(model, "xgboost", "Booster") else _LightGBM(model)
    plain, margin = _asking(booster, margin=False), _asking(booster, margin=True)
    if not task.has_output:
        return Predictor(predict=plain, source=f"predictions of {booster.name}", identity=booster.identity)
    if not isinstance(task, Classification):
        raise InputError(f"task {type(task).__name__} is not supported for {booster.name}.")
    if output is None:
        answers = [_same(plain, margin, part, booster) for part in spread(sample)]
        output = Output.LOGITS if True in answers and False not in answers else Output.PROBABILITIES
    found, word = (margin, "raw margin") if output is Output.LOGITS else (plain, "predictions")
    return Predictor(
        predict=found, source=f"{word} of {booster.name}", output=output, identity=booster.identity
    )


def _same(plain: Any, margin: Any, part: Records, booster: "_XGBoost | _LightGBM") -> bool | None:
    """Return whether the margins are the logits of the predictions."""
    if booster.objective == _LABELS_ONLY:
        return True
    logits = shaped_outputs(margin(part), n=len(part), place=part.name)
    return agreement(logits, probabilities=shaped_outputs(plain(part), n=len(part), place=part.name))


def _asking(booster: "_XGBoost | _LightGBM", *, margin: bool) -> Callable[[Records], npt.NDArray[Any]]:
    def predict(records: Records) -> npt.NDArray[Any]:
        base_records.refuse_width(
            records.features, wanted=booster.width, model=booster.name, place=records.name
        )
        with explained(f"{records.name} X must suit the model, but {booster.name} refused it"):
            return np.asarray(booster.ask(records.features, margin=margin))

    return predict


class _XGBoost:
    name = "an XGBoost booster"

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def width(self) -> int:
        return int(self._model.num_features())

    @property
    def identity(self) -> str:
        return hashlib.sha256(bytes(self._model.save_raw("ubj"))).hexdigest()

    @property
    def objective(self) -> str:
        return str(json.loads(self._model.save_config())["learner"]["objective"]["name"])

    def ask(self, features: Any, *, margin: bool) -> Any:
        import xgboost

        table = hasattr(features, "columns")
        data = xgboost.DMatrix(
            features if table or hasattr(features, "shape") else np.asarray(features), enable_categorical=True
        )
        named = table and self._model.feature_names is not None
        return self._model.predict(data, output_margin=margin, validate_features=named)


class _LightGBM:
    name = "a LightGBM booster"
    objective = ""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def width(self) -> int:
        return int(self._model.num_feature())

    @property
    def identity(self) -> str:
        return hashlib.sha256(self._model.model_to_string().encode()).hexdigest()

    def ask(self, features: Any, *, margin: bool) -> Any:
        data = features if hasattr(features, "shape") else np.asarray(features)
        return self._model.predict(data, raw_score=margin)
