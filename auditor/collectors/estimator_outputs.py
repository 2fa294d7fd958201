"""The outputs of a fitted estimator by name, and what they are worth: the parts that `scikit_learn` chooses from."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.bad_values import bad_value
from auditor.collectors.extras import is_a
from auditor.collectors.fitted_features import as_fitted, last_step, quiet, refuse_missing
from auditor.collectors.records import Records
from auditor.errors import AuditorError, InputError

__all__ = ["Method", "logits", "mean_and_deviation", "method", "positives"]

_LONGEST = 300  # characters of a model's sentence in an error
_SEARCHED = 10_000  # and of those in which the kind of the bad value is looked for


@dataclass(frozen=True, eq=False)
class Method:
    """One way to ask a model: what it is called, and the function of its features."""

    name: str
    of: str
    ask: Callable[[Any], Any]
    model: Any

    def __call__(self, records: Records) -> Any:
        """Return the outputs; what the model raises about its input becomes one sentence, with the cause kept."""
        from sklearn.exceptions import NotFittedError

        try:
            # predict_log_proba is often the log of an exact 0.
            with np.errstate(divide="ignore"), quiet():
                return self.ask(as_fitted(self.model, records))
        except NotFittedError as error:
            raise InputError(f"model must be fitted, got an unfitted {self.of}; call fit first.") from error
        except AuditorError:
            raise
        except Exception as error:
            refuse_missing(self.model, records)
            raise InputError(
                f"{records.name} X must suit the model, but {self.of}.{self.name} refused it: {_reason(error, records)}."
            ) from error


def _reason(error: Exception, records: Records) -> str:
    """Return what a model says of features, with the place of the value that it does not take where one is found."""
    whole = _validate.one_line(error, longest=_SEARCHED) or type(error).__name__
    place = bad_value(records, reason=whole)
    if place is not None:
        first = str(error).strip().splitlines()[0]
        return f"{_short(_validate.one_line(InputError(first), longest=_SEARCHED))} (first at {place}); correct it, or leave that record out"
    return _short(whole)


def _short(text: str) -> str:
    """Return text cut at a word."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} ..."


def method(model: Any, name: str) -> Method:
    """Return a method of the model."""
    return Method(name, type(model).__name__, getattr(model, name), model)


def logits(model: Any) -> Iterator[Method]:
    """Yield what may be the logits of a classifier, to be tested."""
    if hasattr(model, "decision_function"):
        yield method(model, "decision_function")
    final = last_step(model)
    asked = getattr(model, "best_estimator_", model)
    of = type(model).__name__
    if is_a(final, "xgboost", "XGBModel"):
        yield Method(
            "predict(output_margin=True)", of, lambda rows: asked.predict(rows, output_margin=True), model
        )
    if is_a(final, "lightgbm", "LGBMModel"):
        yield Method(
            "predict_proba(raw_score=True)", of, lambda rows: asked.predict_proba(rows, raw_score=True), model
        )


def positives(model: Any) -> Method:
    """Return the probability of 1 of each label of a model of several labels, shape (n, K)."""
    classes = getattr(model, "classes_", None)

    def ask(features: Any) -> npt.NDArray[Any]:
        found = model.predict_proba(features)
        if not isinstance(found, list):
            return np.asarray(found)
        known = classes if isinstance(classes, list) else [np.arange(part.shape[1]) for part in found]
        return np.stack([_of_one(part, own) for part, own in zip(found, known, strict=True)], axis=1)

    return Method("predict_proba", type(model).__name__, ask, model)


def _of_one(part: npt.NDArray[Any], classes: Any) -> npt.NDArray[Any]:
    """The column of class 1; a label that training never saw as 1 has none and is certainly 0."""
    place = [position for position, label in enumerate(np.asarray(classes).tolist()) if label == 1]
    return part[:, place[0]] if place else np.zeros(len(part), dtype=part.dtype)


def mean_and_deviation(model: Any) -> Method:
    """Return the means and then the standard deviations of a regression that knows both.

    Raises:
        InputError: A model that does not.
    """
    final, name = last_step(model), type(model).__name__
    if "return_std" not in inspect.signature(final.predict).parameters:
        raise InputError(
            f"task must give the standard deviation, as in GaussianLogLoss(1.5), because {name} returns none."
        )
    asked = getattr(model, "best_estimator_", model)

    def ask(features: Any) -> npt.NDArray[Any]:
        mean, deviation = (np.asarray(part) for part in asked.predict(features, return_std=True))
        shape = (len(mean), -1)
        return np.concatenate([mean.reshape(shape), deviation.reshape(shape)], axis=1)

    return Method("predict(return_std=True)", name, ask, model)
