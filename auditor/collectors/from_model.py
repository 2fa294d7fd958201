"""Any supported model, or a predict callable, becomes `Losses`."""

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from auditor import _validate
from auditor.collectors import scikit_learn
from auditor.collectors.assembly import assembled, distinct_classes
from auditor.collectors.outputs import Output
from auditor.collectors.predictors import is_recognised, predictor
from auditor.collectors.preflight import preflight
from auditor.collectors.record_table import RecordTable
from auditor.collectors.records import Records, length
from auditor.collectors.scorer import ModelScorer, in_batches
from auditor.collectors.scorers import opened_model
from auditor.collectors.tasks import Classification, Task
from auditor.errors import InputError
from auditor.features import Features
from auditor.fingerprints import fingerprints
from auditor.values import Losses, PerGroup

__all__ = ["collect"]


def collect(
    model: Any,
    *,
    members: tuple[Any, Any] | RecordTable | None = None,
    nonmembers: tuple[Any, Any] | RecordTable | None = None,
    records: RecordTable | None = None,
    task: Task | None = None,
    classes: Sequence[Any] | None = None,
    output: Output | None = None,
    ids: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    persons: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    batch_size: int | None = None,
    repeats: int = 1,
    allow_shared_rows: bool = False,
) -> Losses:
    """Score a model's members and non-members; a classifier's losses are the negative log-odds of the true class.

    Args:
        model: A fitted scikit-learn style classifier (with ``predict_proba`` and ``classes_``; pipelines, searches,
            XGBoost and LightGBM too) or regressor, a PyTorch, Keras or ONNX model, the path of a model's file (see
            `load_model`; a `ModelFile` where it needs more than the path), an `Endpoint` or its address, or any
            callable from features to outputs of shape (n, K), or (n,) for class 1 of two.
        members: The pair (X, y) of records the model was trained on. X is an array, a DataFrame, a sparse matrix or
            a list; y holds the true labels: strings, integers, booleans or whole floats. Or a `RecordTable`.
        nonmembers: The pair (X, y) of records from the same population that the model never saw. Or a `RecordTable`.
        records: A `RecordTable` of both groups with a column of membership, instead of the two.
        task: What the model was trained to predict; default `Classification()`. See `MultiLabel`, `SquaredError` and
            `GaussianLogLoss`.
        classes: The label of each output column; default those that the model knows, or else 0, 1, ...
        output: What the model returns; default probabilities for a callable, and found out for any other model.
            Logits lose no precision; probabilities may.
        ids: Optional record ids, a pair (members, non-members); the columns of a `RecordTable` have them themselves.
        groups: Optional slices to report by, likewise.
        persons: Optional data subject of each record, likewise.
        batch_size: Records for each call of the model; default all of a group at once, or what the model wants. A
            function that gets each group at once is not tried on a few records before.
        repeats: Calls for each batch, whose outputs are averaged; for a model that answers differently on repeat.
        allow_shared_rows: Whether to go on where many rows of tables are in both groups. (Of pairs the audit says so.)

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

    >>> import numpy as np
    >>> logit = lambda X: X[:, 0]
    >>> X = np.array([[2.0], [-1.0]])
    >>> losses = collect(logit, members=(X, [1, 0]), nonmembers=(X, [0, 1]), output=Output.LOGITS)
    >>> losses.member, losses.nonmember
    (array([-2., -1.]), array([2., 1.]))
    """
    if records is not None or isinstance(members, RecordTable) or isinstance(nonmembers, RecordTable):
        _refuse_pairs(ids=ids, groups=groups, persons=persons)
        return _from_tables(
            model,
            members=members,
            nonmembers=nonmembers,
            records=records,
            task=task,
            classes=classes,
            output=output,
            batch_size=batch_size,
            repeats=repeats,
            allow_shared_rows=allow_shared_rows,
        )
    task = Classification() if task is None else task
    model = opened_model(model)
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
    noticed: tuple[str, ...] = ()
    # A function that gets each group whole may be a table of outputs, which cannot answer about a few records.
    if size is not None or repeats > 1 or is_recognised(model):
        tried = preflight(scorer, (member, nonmember), batch_size=size)
        noticed = tried.warnings
        for sentence in (*noticed, *tried.provisional):
            warnings.warn(sentence, stacklevel=2)
    first, second = (in_batches(scorer, group, size=size) for group in (member, nonmember))
    return assembled(
        first,
        nonmember=second,
        words=scorer.words,
        scale=task.scale,
        labels=labels,
        noticed=noticed,
    )


def _from_tables(model: Any, **arguments: Any) -> Losses:
    """Return the losses of tables: those that `collect_to` would write."""
    from auditor.collectors.files import read_losses
    from auditor.collectors.to_file import collect_to

    with tempfile.TemporaryDirectory(prefix="auditor-") as folder:
        report = collect_to(Path(folder) / "losses.parquet", model, **arguments)
        for sentence in report.warnings:
            warnings.warn(sentence, stacklevel=3)
        return read_losses(report.path)


def _refuse_pairs(**pairs: Any) -> None:
    """Refuse labels beside tables, which hold them."""
    for name, pair in pairs.items():
        if pair is not None:
            raise InputError(
                f"{name} go with pairs (X, y): a RecordTable names the column itself, as {name[:-1]}=..."
            )


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
