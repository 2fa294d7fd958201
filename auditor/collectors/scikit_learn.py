"""Fitted classifiers with ``predict_proba`` and ``classes_``: which of their outputs says most, and is it true.

A probability rounds to exactly 0 or 1 long before the model runs out of confidence, so an output that keeps going is
preferred, but only after a numerical test that it is the same model:

1. ``decision_function`` as logits, if its softmax (sigmoid for two classes) is ``predict_proba``;
2. ``predict_log_proba``, if it is still finite where ``predict_proba`` has underflowed to 0;
3. ``predict_proba``.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.batch_losses import BatchLosses
from auditor.collectors.outputs import Output, resolution
from auditor.collectors.predictor import Predictor
from auditor.collectors.records import Records, Rows, taken
from auditor.collectors.scorer import ModelScorer, in_batches
from auditor.collectors.tasks import Classification, Task
from auditor.errors import AuditorError, InputError
from auditor.values import Floats

__all__ = ["Scored", "accepts", "predictor", "refuse_output", "scored"]

_ROWS = 500  # of each group, on which outputs are compared
_TOLERANCE = 1e-6  # relative, on probabilities
_PINNED = 1e-3  # a probability known more coarsely than this (relative) says nothing about a logit


class Scored(NamedTuple):
    """The losses of both groups and, in words, what they were computed from."""

    member: BatchLosses
    nonmember: BatchLosses
    source: str


def accepts(model: Any) -> bool:
    """Return whether this is an estimator, fitted or not, rather than a plain callable."""
    return hasattr(model, "predict_proba") or (hasattr(model, "fit") and hasattr(model, "get_params"))


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return the most precise output that is the model's own, as far as the sample of its records shows."""
    if not isinstance(task, Classification):
        raise InputError(f"task must be Classification() for {type(model).__name__}.")
    refuse_output(model, output)
    classes = tuple(_classes(model))
    name = type(model).__name__
    if _logits_are_true(model, sample):
        method, kind = "decision_function", Output.LOGITS
        source = f"decision_function of {name}: as logits they reproduce its predict_proba"
    else:
        method, kind, source = "predict_proba", Output.PROBABILITIES, f"predict_proba of {name}"
    return Predictor(predict=_guarded(model, method), source=source, output=kind, classes=classes)


def refuse_output(model: Any, output: Output | None) -> None:
    """Refuse to be told what is found out."""
    if output not in (None, Output.PROBABILITIES):
        raise InputError(
            f"output says what a callable returns, got {str(output)!r} with a {type(model).__name__};"
            " leave it out: the most precise output of the model is found by itself."
        )


def scored(
    model: Any, *, member: Records, nonmember: Records, classes: Sequence[Any] | None, batch_size: int | None
) -> Scored:
    """Return the losses of both groups from the most precise output that is the model's own."""
    own = _classes(model)
    labels = own if classes is None else classes
    groups = (member, nonmember)
    name = type(model).__name__

    def one(group: Records, method: str, output: Output) -> BatchLosses:
        found = Predictor(predict=_guarded(model, method), source=method, output=output)
        return in_batches(ModelScorer(found, classes=labels), group, size=batch_size)

    def both(method: str, output: Output) -> tuple[BatchLosses, BatchLosses]:
        return one(member, method, output), one(nonmember, method, output)

    for group in groups:
        group.codes(labels)  # an unknown label is found before the model spends any time

    if _logits_are_true(model, groups):
        source = f"decision_function of {name}: as logits they reproduce its predict_proba"
        return Scored(*both("decision_function", Output.LOGITS), source)
    losses = both("predict_proba", Output.PROBABILITIES)
    if any(
        _logs_say_more(model, group, np.flatnonzero(part.saturated))
        for group, part in zip(groups, losses, strict=True)
    ):
        source = f"predict_log_proba of {name}: it is finite where predict_proba is 0"
        return Scored(*both("predict_log_proba", Output.LOG_PROBABILITIES), source)
    return Scored(*losses, f"predict_proba of {name}")


def _classes(model: Any) -> list[Any]:
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"model must give probabilities, got {name} without predict_proba; wrap a classifier in"
            " CalibratedClassifierCV, or pass a callable that returns probabilities or logits."
        )
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise InputError(f"model must be fitted, got {name} without classes_; call fit first.")
    if isinstance(classes, list) and any(np.ndim(part) for part in classes):
        raise InputError(
            f"model must predict one label, got {name} with {len(classes)}; pass a callable for one of them."
        )
    if len(classes) < 2:  # noqa: PLR2004
        raise InputError(
            f"model must know at least 2 classes, got {name} fitted on one; a loss needs an alternative."
        )
    return list(np.asarray(classes).tolist())


def _guarded(model: Any, method: str) -> Callable[[Records], Any]:
    """Return the method; what it raises about its input becomes one sentence, with the cause kept."""
    from sklearn.exceptions import NotFittedError

    name = type(model).__name__

    def predict(records: Records) -> Any:
        try:
            with np.errstate(divide="ignore"):  # predict_log_proba is often the log of an exact 0
                return getattr(model, method)(records.features)
        except NotFittedError as error:
            raise InputError(f"model must be fitted, got an unfitted {name}; call fit first.") from error
        except AuditorError:
            raise
        except Exception as error:
            reason = _validate.one_line(error) or type(error).__name__
            raise InputError(
                f"{records.name} X must suit the model, but {name}.{method} refused it: {reason}."
            ) from error

    return predict


# --- Is the decision function the logit of the probabilities? --------------------------------------


def _logits_are_true(model: Any, groups: Sequence[Records]) -> bool:
    """Compare on a spread of rows; on all rows only if every probability in the spread is rounded away."""
    if not hasattr(model, "decision_function"):
        return False
    for step in (lambda n: -(-n // _ROWS), lambda _: 1):
        answers = [_same_model(model, group, slice(None, None, step(len(group)))) for group in groups]
        if False in answers:
            return False
        if True in answers:
            return True
    return False


def _same_model(model: Any, group: Records, rows: Rows) -> bool | None:
    part = _rows(group, rows)
    probabilities = np.asarray(_guarded(model, "predict_proba")(part))
    try:
        logits = np.asarray(model.decision_function(part.features))
    except Exception:  # noqa: BLE001 - whatever is wrong with it, predict_proba remains
        return False
    return agreement(logits, probabilities=probabilities)


def _rows(group: Records, rows: Rows) -> Records:
    return Records(group.name, taken(group.features, rows=rows), group.labels[rows])


def agreement(logits: npt.NDArray[Any], *, probabilities: npt.NDArray[Any]) -> bool | None:
    """Return whether softmax(logits) is the probabilities: no, yes, or null when rounding hides the answer.

    A probability p carries a rounding error of about eps, so log p is known to within 4 eps / p. Any entry further
    from log softmax than that says no. An entry of at most one half says yes if it is known well enough (to 0.1%),
    or if it agrees to full relative precision, as the small side of a sigmoid does far beyond eps.
    """
    two = logits.ndim == 1 and probabilities.ndim == 2 and probabilities.shape[1] == 2  # noqa: PLR2004
    if not two and logits.shape != probabilities.shape:
        return False
    expected = _log_softmax(logits.astype(np.float64))
    given = probabilities.astype(np.float64)
    if not (np.isfinite(expected).all() and np.isfinite(given).all()):
        return False
    eps = max(resolution(probabilities), resolution(logits))
    with np.errstate(divide="ignore"):
        gap = np.abs(np.log(given) - expected)
        near = _TOLERANCE + 4 * eps * (8 + np.abs(expected))
        coarse = near + 4 * eps / given
    if np.any(np.where(given > 0, gap > coarse, expected > np.log(8 * eps))):
        return False
    evidence = (given > 0) & (given <= 0.5) & ((coarse < _PINNED) | (gap <= near))  # noqa: PLR2004
    return True if evidence.any() else None


def _log_softmax(logits: Floats) -> Floats:
    if logits.ndim == 1:
        return np.stack([-np.logaddexp(0, logits), -np.logaddexp(0, -logits)], axis=1)
    centred = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(centred - np.log(np.exp(centred).sum(axis=1, keepdims=True)))


# --- Do the log-probabilities outlast the probabilities? -------------------------------------------


def _logs_say_more(model: Any, group: Records, saturated: npt.NDArray[np.intp]) -> bool:
    """Compare on saturated rows: a log of a true underflow lies below the log of the smallest float.

    A method that only puts a floor under the zeros before taking the log returns a larger value, and is not believed.
    """
    if not saturated.size or not hasattr(model, "predict_log_proba"):
        return False
    part = _rows(group, saturated[:_ROWS])
    given = np.asarray(_guarded(model, "predict_proba")(part))
    logs = np.asarray(_guarded(model, "predict_log_proba")(part), dtype=np.float64)
    if given.dtype.kind != "f":
        return False
    floor = float(np.log(np.finfo(given.dtype).smallest_subnormal))
    zero = (given == 0) & np.isfinite(logs)
    if not zero.any() or np.isnan(logs).any():
        return False
    return bool(np.all(logs[zero] <= floor) and np.allclose(np.exp(logs), given, rtol=0, atol=_TOLERANCE))
