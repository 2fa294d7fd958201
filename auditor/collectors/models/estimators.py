"""Fitted estimators with scikit-learn's interface: choice and check of the output that reveals most.

A probability rounds to exactly 0 or 1 long before the model runs out of confidence, so an output that keeps going is
preferred, but only after a numerical test that it is the same model:

1. ``decision_function`` (in XGBoost and LightGBM the raw margin) as logits, if its softmax (sigmoid for two classes, or
   for each of several labels) is ``predict_proba``;
2. ``predict_log_proba``, if ``predict_proba`` is computed from it, or if it is still finite where that is 0;
3. ``predict_proba``.
"""

import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from auditor.collectors.base.outputs import Output, reproduces, shaped_outputs
from auditor.collectors.base.records import Records, is_frame, refuse_width, spread
from auditor.collectors.base.scorer import Predictor
from auditor.collectors.base.tasks import Classifier, GaussianLogLoss, MultiLabel, Task
from auditor.core import Array, InputError, explained, is_a, validate

# --- Features in the form that an estimator was fitted on: a DataFrame with its columns by name, or a plain matrix ---


_TEXT = "sklearn.feature_extraction.text"


def as_fitted(model: Any, records: Records) -> Any:
    """Return the features of a batch in the form that the model was fitted on.

    A DataFrame is put into the order of the names that the model knows; without such names it becomes a matrix. An
    array gets the names. Arguments that the model does not know are passed unchanged.

    Raises:
        InputError: Another number of columns than the model was fitted on.
    """
    features, names = validate.detached(records.features), _fitted_names(model)
    if is_frame(features):
        columns = list(features.columns)
        if names is not None:
            return features[names] if set(names) <= set(columns) and columns != names else features
        if _reads_text(model) and len(columns) == 1:
            return features[columns[0]]
    wanted = getattr(model, "n_features_in_", None)
    if not wanted:  # CatBoost's models from files have none
        return features
    refuse_width(features, wanted=wanted, model=type(model).__name__, place=records.name)
    if is_frame(features):
        return features.to_numpy()
    if names is not None and isinstance(features, np.ndarray) and features.ndim == 2:  # noqa: PLR2004
        import pandas as pd

        return pd.DataFrame(features, columns=names, copy=False)
    return features


def _fitted_names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted on; none where it was fitted on an array."""
    features = getattr(model, "feature_names_in_", None)
    if features is None:
        return None
    names = [str(name) for name in features]
    # LightGBM makes names up for the columns of an array.
    return None if all(re.fullmatch(rf"Column_{i}", name) for i, name in enumerate(names)) else names


def _last_step(model: Any) -> Any:
    """Return the estimator that decides: the last step of a pipeline, the best one of a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(steps := getattr(model, "steps", None), list) and steps:
            model = steps[-1][1]
        else:
            return model


def _reads_text(model: Any) -> bool:
    """Return whether the first step of a pipeline, or of the best one of a search, counts words."""
    model = getattr(model, "best_estimator_", model)
    steps = getattr(model, "steps", None)
    return counts_words(steps[0][1] if isinstance(steps, list) and steps else model)


def counts_words(step: Any) -> bool:
    """Return whether an estimator is one of those of scikit-learn that take texts."""
    return any(cls.__module__ == _TEXT for cls in type(step).__mro__)


# --- The outputs of a fitted estimator by name ---


@dataclass(frozen=True, eq=False)
class _Method:
    """Method of a model that returns outputs: its name, and the function of the features."""

    name: str
    ask: Callable[[Any], Any]
    model: Any

    def __call__(self, records: Records) -> Any:
        """Return the outputs; an exception of the model about its input becomes one sentence, with the cause kept."""
        from sklearn.exceptions import NotFittedError

        kind = type(self.model).__name__
        refused = f"{records.name} X must suit the model, but {kind}.{self.name} refused it"
        # predict_log_proba is often the log of an exact 0.
        with explained(refused), np.errstate(divide="ignore"):
            try:
                with warnings.catch_warnings():
                    # Of names that an array, a sparse matrix or a list cannot have.
                    warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
                    return self.ask(as_fitted(self.model, records))
            except NotFittedError as error:
                raise InputError(f"model must be fitted, got an unfitted {kind}; call fit first.") from error


def _method(model: Any, name: str) -> _Method:
    """Return a method of the model."""
    return _Method(name, getattr(model, name), model)


def _logits(model: Any) -> Iterator[_Method]:
    """Yield candidates for the logits of a classifier, to be tested."""
    if hasattr(model, "decision_function"):
        yield _method(model, "decision_function")
    final = _last_step(model)
    best = getattr(model, "best_estimator_", model)
    if is_a(final, "xgboost", "XGBModel"):
        yield _Method("predict(output_margin=True)", partial(best.predict, output_margin=True), model)
    if is_a(final, "lightgbm", "LGBMModel"):
        yield _Method("predict_proba(raw_score=True)", partial(best.predict_proba, raw_score=True), model)


def _positives(model: Any) -> _Method:
    """Return the probability of 1 of each label of a model of several labels, shape (n, K)."""
    classes = getattr(model, "classes_", None)

    def ask(features: Any) -> Array:
        tables = model.predict_proba(features)
        if not isinstance(tables, list):
            return np.asarray(tables)
        labels = classes if isinstance(classes, list) else [np.arange(part.shape[1]) for part in tables]
        return np.stack([_of_one(part, own) for part, own in zip(tables, labels, strict=True)], axis=1)

    return _Method("predict_proba", ask, model)


def _of_one(part: Array, classes: Any) -> Array:
    """Return the column of class 1; a label that training never saw as 1 has none and is certainly 0."""
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
    best = getattr(model, "best_estimator_", model)

    def ask(features: Any) -> Array:
        mean, deviation = (np.asarray(part) for part in best.predict(features, return_std=True))
        shape = (len(mean), -1)
        return np.concatenate([mean.reshape(shape), deviation.reshape(shape)], axis=1)

    return _Method("predict(return_std=True)", ask, model)


# --- Scored output of a fitted estimator ---


_ROWS = 500  # of each group, on which outputs are compared
_TOLERANCE = 1e-6  # absolute, on probabilities


def is_estimator(model: Any) -> bool:
    """Return whether this is an estimator, fitted or not, rather than a plain callable."""
    return hasattr(model, "predict_proba") or (hasattr(model, "fit") and hasattr(model, "get_params"))


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return the most precise output that is the model's own, as far as the sample of its records shows."""
    if output not in (None, Output.PROBABILITIES):
        raise InputError(
            f"output declares the outputs of a callable, got {str(output)!r} with a {type(model).__name__};"
            " leave it out: the most precise output of the model is chosen automatically."
        )
    if getattr(model, "refit", True) is False and hasattr(model, "estimator"):
        raise InputError(
            f"model must hold a fitted estimator, got {type(model).__name__} with refit=False, which keeps none; search with"
            " refit=True, or fit sklearn.base.clone(model.estimator).set_params(**model.best_params_) and pass that."
        )
    if not task.has_output:
        return _regression(model, task)
    several, name = isinstance(task, MultiLabel), type(model).__name__
    if not several and _is_regressor(model):
        raise InputError(
            f"task must be named for a model that predicts numbers, such as {name}: SquaredError(), or GaussianLogLoss(...)"
            " for a normal distribution around them."
        )
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"model must give probabilities, got {name} without predict_proba; wrap a classifier in CalibratedClassifierCV, name the"
            " task if it predicts numbers, or pass a callable that returns probabilities or logits."
        )
    classes = None if several else tuple(_classes(model))
    plain = _positives(model) if several else _method(model, "predict_proba")
    kind, words = Output.PROBABILITIES, f"predict_proba of {name}"
    if (logits := _true_logits(model, plain, sample, labels=several)) is not None:
        kind, words = Output.LOGITS, f"{logits.name} of {name}: as logits they reproduce its predict_proba"
    elif not several and any(_logs_say_more(model, part) for part in spread(sample, most=_ROWS)):
        logits = _method(model, "predict_log_proba")
        kind = Output.LOG_PROBABILITIES
        words = f"predict_log_proba of {name}: it keeps going where predict_proba rounds to 0"
    return Predictor(predict=logits or plain, source=words, output=kind, classes=classes)


def _regression(model: Any, task: Task) -> Predictor:
    name = type(model).__name__
    # CatBoost's regressors have empty classes_.
    if not hasattr(model, "predict") or (hasattr(model, "classes_") and not _is_regressor(model)):
        raise InputError(f"task {type(task).__name__} needs a regression model, got {name}.")
    alone = not (isinstance(task, GaussianLogLoss) and task.standard_deviation is None)
    method = _method(model, "predict") if alone else _mean_and_deviation(model)
    return Predictor(predict=method, source=f"{method.name} of {name}")


def _is_regressor(model: Any) -> bool:
    """Return whether an estimator says of itself that it predicts numbers."""
    from sklearn.base import is_regressor

    with suppress(Exception):  # one that only looks like scikit-learn's says nothing
        return bool(is_regressor(model))
    return False


def _classes(model: Any) -> list[Any]:
    name, classes = type(model).__name__, getattr(model, "classes_", None)
    if classes is None:
        if not any(key.endswith("_") and key[0] != "_" for key in vars(_last_step(model))):
            raise InputError(f"model must be fitted, got {name} without classes_; call fit first.")
        raise InputError(
            f"model must be a classifier, got a fitted {name} without classes_; pass a function that returns the probability of"
            " each class, or audit the negative log-densities -model.score_samples(X) of both groups as losses at hand."
        )
    if isinstance(classes, list) and any(np.ndim(part) for part in classes):
        raise InputError(
            f"model must predict one label, got {name} with {len(classes)}; name the task MultiLabel() if"
            " all are 0 or 1, or score one at a time, with a callable such as lambda X: model.predict_proba(X)[0]."
        )
    if len(classes) < 2:  # noqa: PLR2004
        raise InputError(
            f"model must know at least 2 classes, got {name} fitted on one; a loss needs an alternative."
        )
    return list(np.asarray(classes).tolist())


# --- Are these the logits of the probabilities? ---


def _true_logits(model: Any, truth: _Method, groups: Sequence[Records], *, labels: bool) -> _Method | None:
    """Return the method that gives the logits of the probabilities; None if nothing reproduces them.

    They are compared on a spread of rows; on all rows only if every probability in the spread is rounded away.
    """
    for candidate in _logits(model):
        same = reproduces(candidate, truth, spread(groups, most=_ROWS), labels=labels)
        if reproduces(candidate, truth, groups, labels=labels) if same is None else same:
            return candidate
    return None


# --- Do the log-probabilities say more than the probabilities? ---


def _logs_say_more(model: Any, part: Records) -> bool:
    """Compare: probabilities computed as exp(log) are that bit for bit, and not the reverse."""
    if not hasattr(model, "predict_log_proba"):
        return False
    chances = np.asarray(_method(model, "predict_proba")(part))
    logs = np.asarray(_method(model, "predict_log_proba")(part))
    usable = chances.dtype.kind == "f" and logs.dtype.kind == "f" and chances.shape == logs.shape
    if not usable or np.isnan(logs).any() or np.isnan(chances).any():
        return False
    with np.errstate(divide="ignore"):
        first = np.array_equal(np.exp(logs), chances) and not np.array_equal(np.log(chances), logs)
    return bool(first) or _outlast(chances, logs)


def _outlast(chances: Array, logs: Array) -> bool:
    """Return whether logs go on below the smallest float: a log of a true underflow lies below the log of that.

    A method that only puts a floor under the zeros before taking the log returns a larger value, and is not believed.
    """
    floor = float(np.log(np.finfo(chances.dtype).smallest_subnormal))
    zero = (chances == 0) & np.isfinite(logs)
    if not zero.any():
        return False
    return bool(np.all(logs[zero] <= floor) and np.allclose(np.exp(logs), chances, rtol=0, atol=_TOLERANCE))


# --- Boosters of XGBoost and LightGBM, as their own model files hold them: raw margins as logits where that is true ---


def booster_predictor(
    model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]
) -> Predictor:
    """Return a booster as the collectors see it."""
    of_xgboost = is_a(model, "xgboost", "Booster")
    name = "an XGBoost booster" if of_xgboost else "a LightGBM booster"
    width = int(model.num_features() if of_xgboost else model.num_feature())

    def predict(records: Records, *, margin: bool) -> Array:
        features = records.features
        features = features if hasattr(features, "shape") else np.asarray(features)
        refuse_width(features, wanted=width, model=name, place=records.name)
        with explained(f"{records.name} X must suit the model, but {name} refused it"):
            return shaped_outputs(_predicted(model, features, margin), records)

    plain, margin = partial(predict, margin=False), partial(predict, margin=True)
    if not task.has_output:
        return Predictor(predict=plain, source=f"predictions of {name}")
    if not isinstance(task, Classifier):
        raise InputError(f"task {type(task).__name__} is not supported for {name}.")
    if output is None:
        true = (of_xgboost and _only_labels(model)) or reproduces(margin, plain, spread(sample))
        output = Output.LOGITS if true else Output.PROBABILITIES
    scored, word = (margin, "raw margin") if output is Output.LOGITS else (plain, "predictions")
    return Predictor(predict=scored, source=f"{word} of {name}", output=output)


def _only_labels(model: Any) -> bool:
    """Return whether a booster of XGBoost predicts labels, of which the margins are the logits all the same."""
    objective = json.loads(model.save_config())["learner"]["objective"]["name"]
    return bool(objective == "multi:softmax")


def _predicted(model: Any, features: Any, margin: bool) -> Any:  # noqa: FBT001 - the last of three
    if is_a(model, "lightgbm", "Booster"):
        return model.predict(features, raw_score=margin)
    import xgboost

    data = xgboost.DMatrix(features, enable_categorical=True)
    named = hasattr(features, "columns") and model.feature_names is not None
    return model.predict(data, output_margin=margin, validate_features=named)
