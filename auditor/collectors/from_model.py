"""Any supported model, or a predict callable, becomes `Losses`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors import scikit_learn
from auditor.collectors.batch_losses import BatchLosses, settled_pair
from auditor.collectors.outputs import Output
from auditor.collectors.predictors import predictor
from auditor.collectors.records import Records, length
from auditor.collectors.scorer import ModelScorer, in_batches
from auditor.collectors.tasks import Classification, Task
from auditor.errors import InputError
from auditor.features import Features
from auditor.fingerprints import fingerprints
from auditor.values import Losses, LossScale, PerGroup

__all__ = ["assembled", "collect", "distinct_classes", "history"]


def collect(
    model: Any,
    *,
    members: tuple[Any, Any],
    nonmembers: tuple[Any, Any],
    task: Task | None = None,
    classes: Sequence[Any] | None = None,
    output: Output | None = None,
    ids: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    persons: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    batch_size: int | None = None,
    repeats: int = 1,
) -> Losses:
    """Score a model's members and non-members; a classifier's losses are the negative log-odds of the true class.

    Args:
        model: A fitted scikit-learn style classifier (with ``predict_proba`` and ``classes_``; pipelines, searches,
            XGBoost and LightGBM too) or regressor, a PyTorch, Keras or ONNX model, an `Endpoint`, or any callable from
            features to outputs of shape (n, K), or (n,) for class 1 of two.
        members: The pair (X, y) of records the model was trained on. X is an array, a DataFrame, a sparse matrix or
            a list; y holds the true labels: strings, integers, booleans or whole floats.
        nonmembers: The pair (X, y) of records from the same population that the model never saw.
        task: What the model was trained to predict; default `Classification()`. See `MultiLabel`, `SquaredError` and
            `GaussianLogLoss`.
        classes: The label of each output column; default those that the model knows, or else 0, 1, ...
        output: What the model returns; default probabilities for a callable, and found out for any other model.
            Logits lose no precision; probabilities may.
        ids: Optional record ids, a pair (members, non-members).
        groups: Optional slices to report by, likewise.
        persons: Optional data subject of each record, likewise.
        batch_size: Records for each call of the model; default all of a group at once, or what the model wants.
        repeats: Calls for each batch, whose outputs are averaged; for a model that answers differently on repeat.

    Returns:
        Losses in nats with ``scale=LossScale.LOG_ODDS``, the count of saturated records, a fingerprint of each record's
        features (none where they cannot be hashed, as for lists of images), and a history that says which output of the
        model was used. Probabilities of exactly 0 or 1 are placed at the logit of the spacing
        of the floats the model returned, or further out (`auditor.collectors.batch_losses.settled`).

    Raises:
        InputError: A model that is not supported or not fitted, features it refuses, labels it does not know,
            outputs that are not what ``output`` says, lengths that do not match, or a callable that raises (its
            exception is the cause).

    Source: Negoescu et al. 2024, footnote 1.

    >>> logit = lambda X: X[:, 0]
    >>> X = np.array([[2.0], [-1.0]])
    >>> losses = collect(logit, members=(X, [1, 0]), nonmembers=(X, [0, 1]), output=Output.LOGITS)
    >>> losses.member, losses.nonmember
    (array([-2., -1.]), array([2., 1.]))
    """
    task = Classification() if task is None else task
    member, nonmember = (
        _group("member", "members", members, task),
        _group("nonmember", "nonmembers", nonmembers, task),
    )
    labels = {"id": _pair("ids", ids, member, nonmember), "group": _pair("groups", groups, member, nonmember)}
    labels["person"] = _pair("persons", persons, member, nonmember)
    labels["label"] = PerGroup(member.labels, nonmember.labels) if isinstance(task, Classification) else None
    labels["fingerprint"] = _fingerprint(member, nonmember)
    if output is not None:
        output = Output(_validate.known("output", output, [str(item) for item in Output]))
    names = None if classes is None else distinct_classes(classes)
    size = None if batch_size is None else _validate.at_least("batch_size", batch_size, least=1)
    if (
        isinstance(task, Classification)
        and repeats == 1
        and scikit_learn.accepts(model)
        and not isinstance(model, type)
    ):
        scikit_learn.refuse_output(model, output)
        scored = scikit_learn.scored(
            model, member=member, nonmember=nonmember, classes=names, batch_size=size
        )
        words = f"{task.words} from {scored.source}"
        return assembled(
            scored.member, nonmember=scored.nonmember, words=words, scale=task.scale, labels=labels
        )
    found = predictor(model, task=task, output=output, sample=(member, nonmember))
    scorer = ModelScorer(found, task=task, classes=names, repeats=repeats)
    for group in (member, nonmember):
        scorer.check(group)  # an unknown label is found before the model spends any time
    first, second = (in_batches(scorer, group, size=size) for group in (member, nonmember))
    return assembled(first, nonmember=second, words=scorer.words, scale=task.scale, labels=labels)


def assembled(
    member: BatchLosses,
    *,
    nonmember: BatchLosses,
    words: str,
    scale: LossScale,
    labels: dict[str, PerGroup | None],
) -> Losses:
    """Return the losses of both groups with what a reader must know about them."""
    saturated = (int(member.saturated.sum()), int(nonmember.saturated.sum()))
    first, second = settled_pair(member, nonmember)
    return Losses(
        member=first,
        nonmember=second,
        **labels,
        scale=scale,
        saturated=saturated,
        history=history(words, saturated=saturated, hard=member.hard and nonmember.hard),
    )


def history(words: str, *, saturated: tuple[int, int], hard: bool) -> tuple[str, ...]:
    """Return what a reader must know about collected losses."""
    steps = [words]
    if any(saturated):
        steps.append(
            f"{saturated[0]} member and {saturated[1]} non-member probabilities were exactly 0 or 1 and were placed"
            " at the end of the scale"
        )
    if hard:
        steps.append("the outputs are hard labels (only 0 and 1), so this is a weaker 0/1-loss audit")
    return tuple(steps)


def _group(name: str, argument: str, pair: Any, task: Task) -> Records:
    """Return one group from its pair (X, y)."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004
        raise InputError(f"{argument} must be a pair (X, y), got {type(pair).__name__}.")
    features, target = pair
    labels = task.labels(name, target)
    _validate.same_length((f"{name} X", f"{name} y"), (length(name, features), labels.shape[0]))
    if labels.shape[0] < 2:  # noqa: PLR2004
        raise InputError(f"{argument} must hold at least 2 records, got {labels.shape[0]}; is X empty?")
    return Records(name=name, features=features, labels=labels)


def _pair(name: str, pair: Any, member: Records, nonmember: Records) -> PerGroup | None:
    """Return per-record labels, checked before the model spends any time."""
    if pair is None:
        return None
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004
        raise InputError(f"{name} must be a pair (members, non-members), got {type(pair).__name__}.")
    columns = zip((member, nonmember), pair, strict=True)
    result = PerGroup(*(_validate.column(f"{group.name} {name}", column) for group, column in columns))
    for group, column in zip((member, nonmember), result, strict=True):
        _validate.same_length((f"{group.name} y", f"{group.name} {name}"), (len(group), column.size))
    return result


def _fingerprint(member: Records, nonmember: Records) -> PerGroup | None:
    """Hashes of the features, by which records of equal content are found; None where they are no plain values."""
    try:
        return fingerprints(Features(member=member.features, nonmember=nonmember.features))
    except InputError:
        return None


def distinct_classes(classes: Sequence[Any]) -> list[Any]:
    """Return the classes as a list of different labels."""
    try:
        flat = np.ndim(classes) == 1
    except ValueError:  # rows of different lengths
        flat = False
    if not flat:
        raise InputError(f"classes must be a list of labels, one for each output column, got {classes!r}.")
    names = list(np.asarray(classes).tolist())
    if len(set(names)) != len(names):
        raise InputError(f"classes must be distinct, got {names!r}.")
    return names
