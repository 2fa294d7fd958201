"""Fitted estimators with scikit-learn's interface: which of their outputs says most, and is it true.

A probability rounds to exactly 0 or 1 long before the model runs out of confidence, so an output that keeps going is
preferred, but only after a numerical test that it is the same model:

1. ``decision_function`` (in XGBoost and LightGBM the raw margin) as logits, if its softmax (sigmoid for two classes, or
   for each of several labels) is ``predict_proba``;
2. ``predict_log_proba``, if ``predict_proba`` is computed from it, or if it is still finite where that is 0;
3. ``predict_proba``.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.collectors.agreement import agreement, label_agreement
from auditor.collectors.batch_losses import BatchLosses
from auditor.collectors.estimator_identity import estimator_identity
from auditor.collectors.estimator_outputs import Method, logits, mean_and_deviation, method, positives
from auditor.collectors.extras import is_a
from auditor.collectors.outputs import Output
from auditor.collectors.predictor import Predictor
from auditor.collectors.records import Records, Rows, taken
from auditor.collectors.scorer import ModelScorer, in_batches, refuse_other_order
from auditor.collectors.tasks import Classification, GaussianLogLoss, MultiLabel, Task
from auditor.errors import InputError

__all__ = ["Scored", "accepts", "agreement", "predictor", "refuse_output", "scored"]

_ROWS = 500  # of each group, on which outputs are compared
_TOLERANCE = 1e-6  # absolute, on probabilities
_OUTLASTING = "predict_log_proba of {name}: it keeps going where predict_proba rounds to 0"
_NOT_THESE = (("torch", "Module"), ("keras", "Model"), ("tf_keras", "Model"))


class Scored(NamedTuple):
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
    identity = estimator_identity(model)  # before the model is used, for a few count their calls
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
) -> Scored:
    """Return the losses of both groups from the most precise output that is the model's own."""
    own = _classes(model)
    refuse_other_order(classes, own=own)
    labels = own if classes is None else classes
    groups = (member, nonmember)
    for group in groups:
        group.codes(labels)  # an unknown label is found before the model spends any time

    def both(found: Method, output: Output) -> tuple[BatchLosses, BatchLosses]:
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
        losses = both(method(model, "predict_log_proba"), Output.LOG_PROBABILITIES)
    return Scored(*losses, source)


# --- Which output ----------------------------------------------------------------------------------


def _chosen(model: Any, sample: Sequence[Records]) -> tuple[Method, Output, str]:
    """Return what to ask a classifier, what that is, and both in words."""
    name = type(model).__name__
    for candidate in logits(model):
        if _logits_are_true(candidate, method(model, "predict_proba"), sample, agreement):
            source = f"{candidate.name} of {name}: as logits they reproduce its predict_proba"
            return candidate, Output.LOGITS, source
    if any(_logs_say_more(model, part) for part in _together(sample)):
        return (
            method(model, "predict_log_proba"),
            Output.LOG_PROBABILITIES,
            _OUTLASTING.format(name=name),
        )
    return method(model, "predict_proba"), Output.PROBABILITIES, f"predict_proba of {name}"


def _multi_label(model: Any, sample: Sequence[Records], identity: str | None) -> Predictor:
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"model must give probabilities, got {name} without predict_proba; pass a callable that returns a"
            " probability or logit for each label."
        )
    found, kind, source = positives(model), Output.PROBABILITIES, f"predict_proba of {name}"
    for candidate in logits(model):
        if _logits_are_true(candidate, found, sample, label_agreement):
            source = f"{candidate.name} of {name}: as logits they reproduce its predict_proba"
            found, kind = candidate, Output.LOGITS
    return Predictor(predict=found, source=source, output=kind, identity=identity)


def _regression(model: Any, task: Task, identity: str | None) -> Predictor:
    name = type(model).__name__
    if hasattr(model, "classes_") or not hasattr(model, "predict"):
        raise InputError(f"task {type(task).__name__} needs a regression model, got {name}.")
    alone = not (isinstance(task, GaussianLogLoss) and task.standard_deviation is None)
    found = method(model, "predict") if alone else mean_and_deviation(model)
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


# --- Are these the logits of the probabilities? ----------------------------------------------------

Agreement = Callable[..., bool | None]


def _logits_are_true(candidate: Method, truth: Method, groups: Sequence[Records], agree: Agreement) -> bool:
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


def _same_model(candidate: Method, truth: Method, part: Records, agree: Agreement) -> bool | None:
    probabilities = np.asarray(truth(part))
    try:
        found = np.asarray(candidate(part))
    except Exception:  # noqa: BLE001 - whatever is wrong with it, predict_proba remains
        return False
    return agree(found, probabilities=probabilities)


def _rows(group: Records, rows: Rows) -> Records:
    return Records(group.name, taken(group.features, rows=rows), group.labels[rows])


# --- Do the log-probabilities say more than the probabilities? -------------------------------------


def _both(model: Any, part: Records) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    if not hasattr(model, "predict_log_proba"):
        return None
    given = np.asarray(method(model, "predict_proba")(part))
    logs = np.asarray(method(model, "predict_log_proba")(part))
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
