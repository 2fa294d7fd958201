"""Any supported model, or a predict callable, becomes `Losses`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors import scikit_learn
from auditor.collectors.log_odds import LogOdds, settled
from auditor.collectors.outputs import Output
from auditor.collectors.records import Predict, Records, records, score
from auditor.errors import AuditorError, InputError
from auditor.features import Features
from auditor.fingerprints import fingerprints
from auditor.values import Losses, LossScale, PerGroup

__all__ = ["assembled", "collect"]


def collect(
    model: Any,
    *,
    members: tuple[Any, Any],
    nonmembers: tuple[Any, Any],
    classes: Sequence[Any] | None = None,
    output: Output = Output.PROBABILITIES,
    ids: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    persons: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    batch_size: int | None = None,
) -> Losses:
    """Score a model's members and non-members: the negative log-odds of each record's true class.

    Args:
        model: A fitted scikit-learn style classifier (with ``predict_proba`` and ``classes_``; pipelines and
            searches too), or any callable from features to outputs of shape (n, K), or (n,) for class 1 of two.
        members: The pair (X, y) of records the model was trained on. X is an array, a DataFrame, a sparse matrix or
            a list; y holds the true labels: strings, integers, booleans or whole floats.
        nonmembers: The pair (X, y) of records from the same population that the model never saw.
        classes: The label of each output column; default the model's ``classes_``, or 0, 1, ... for a callable.
        output: What a callable returns. Logits lose no precision; probabilities may.
        ids: Optional record ids, a pair (members, non-members).
        groups: Optional slices to report by, likewise.
        persons: Optional data subject of each record, likewise.
        batch_size: Records for each call of the model; default all of a group at once.

    Returns:
        Losses in nats with ``scale=LossScale.LOG_ODDS``, the count of saturated records, a fingerprint of each record's
        features (none where they cannot be hashed, as for lists of images), and a history that says which output of the
        model was used. Probabilities of exactly 0 or 1 are placed at the logit of the spacing
        of the floats the model returned, or further out (`auditor.collectors.log_odds.settled`).

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
    member, nonmember = records("member", "members", members), records("nonmember", "nonmembers", nonmembers)
    labels = {"id": _pair("ids", ids, member, nonmember), "group": _pair("groups", groups, member, nonmember)}
    labels["person"] = _pair("persons", persons, member, nonmember)
    labels["label"] = PerGroup(member.labels, nonmember.labels)
    labels["fingerprint"] = _fingerprint(member, nonmember)
    output = Output(_validate.known("output", output, [str(item) for item in Output]))
    names = None if classes is None else _distinct(classes)
    size = None if batch_size is None else _validate.at_least("batch_size", batch_size, least=1)
    _refuse_unsupported(model)
    if scikit_learn.accepts(model):
        if output is not Output.PROBABILITIES:
            raise InputError(
                f"output says what a callable returns, got {str(output)!r} with a {type(model).__name__};"
                " leave it out: the most precise output of the model is found by itself."
            )
        scored = scikit_learn.scored(
            model, member=member, nonmember=nonmember, classes=names, batch_size=size
        )
        return assembled(scored.member, nonmember=scored.nonmember, source=scored.source, labels=labels)
    name = _name(model)
    first, second = (
        score(_guarded(model, name, group.name), group, output=output, classes=names, batch_size=size)
        for group in (member, nonmember)
    )
    source = f"the {output} that {name} returned"
    return assembled(first, nonmember=second, source=source, labels=labels)


def _name(model: Any) -> str:
    name = str(getattr(model, "__name__", type(model).__name__))
    return "the callable" if name == "<lambda>" else name


def _guarded(model: Any, name: str, group: str) -> Predict:
    """Return the callable; whatever it raises becomes one sentence, with the cause kept."""

    def predict(features: Any) -> Any:
        try:
            return model(features)
        except AuditorError:
            raise
        except Exception as error:
            reason = ": ".join(filter(None, (type(error).__name__, _validate.one_line(error))))
            raise InputError(f"{name} failed on the {group} records: {reason}.") from error

    return predict


def assembled(
    member: LogOdds, *, nonmember: LogOdds, source: str, labels: dict[str, PerGroup | None]
) -> Losses:
    """Return the losses of both groups with what a reader must know about them."""
    saturated = (int(member.saturated.sum()), int(nonmember.saturated.sum()))
    history = [f"negative log-odds of the true class from {source}"]
    if any(saturated):
        history.append(
            f"{saturated[0]} member and {saturated[1]} non-member probabilities were exactly 0 or 1 and were placed"
            " at the end of the scale"
        )
    if member.hard and nonmember.hard:
        history.append("the outputs are hard labels (only 0 and 1), so this is a weaker 0/1-loss audit")
    first, second = settled(member, nonmember)
    return Losses(
        member=first,
        nonmember=second,
        **labels,
        scale=LossScale.LOG_ODDS,
        saturated=saturated,
        history=tuple(history),
    )


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


def _distinct(classes: Sequence[Any]) -> list[Any]:
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


def _refuse_unsupported(model: Any) -> None:
    if isinstance(model, type):
        raise InputError(
            f"model must be a fitted model, got the class {model.__name__} itself; build and fit one."
        )
    if not (scikit_learn.accepts(model) or callable(model)):
        raise InputError(
            f"model must be a fitted classifier with predict_proba and classes_, or a callable from features to"
            f" probabilities or logits, got {type(model).__name__}."
        )
