"""Collection of `Losses` from members, non-members and any supported model, in memory or in a file that is written part by part."""

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.named import NamedOutputs, class_columns, column_names
from auditor.collectors.base.outputs import Output
from auditor.collectors.base.records import Records, labels_beside
from auditor.collectors.base.scorer import file_warnings, in_batches, losses_of, refuse_policies
from auditor.collectors.base.tasks import Classification, Classifier, Task, records_of
from auditor.collectors.streaming.engines import Engine, LocalEngine
from auditor.collectors.streaming.loaders import is_loader, losses_in_one_pass, refuse_loaders
from auditor.collectors.streaming.scorers import (
    OutputColumns,
    ScorerRecipe,
    ScoringOptions,
    hushed,
    is_scorer,
    opened_model,
    opened_scorer,
)
from auditor.collectors.streaming.trial import columns_noticed, preflight
from auditor.collectors.tables.arrays import is_map_style
from auditor.collectors.tables.opening import RecordTable, TableSource, open_groups
from auditor.collectors.tables.reading import read_losses
from auditor.collectors.tables.sources import Kind, marks, path_of
from auditor.collectors.texts.models import LongTexts
from auditor.collectors.texts.scorer import text_scorer
from auditor.collectors.texts.scores import MeanTokenLoss
from auditor.collectors.texts.secrets import Secret
from auditor.core import InputError, Losses, PerGroup, alike, check_writable, temporary, validate
from auditor.records.features import Features, fingerprints

if TYPE_CHECKING:
    from auditor.collectors.streaming.resume import CollectedReport


_OWN = 2.0**63  # bytes: what has just been collected is read, however much it is


@alike
def collect(
    model: Any,
    members: tuple[Any, Any] | RecordTable | Any = None,
    nonmembers: tuple[Any, Any] | RecordTable | Any = None,
    *,
    records: RecordTable | Any = None,
    label: str | Sequence[str] | None = None,
    task: Task | str | None = None,
    classes: Sequence[Any] | None = None,
    output: Output | str | None = None,
    ids: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    persons: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    batch_size: int | None = None,
    repeats: int = 1,
    policies: str | Iterable[str] = (),
) -> Losses:
    """Score a model's members and non-members; a classifier's losses are the negative log-odds of the true class.

    Args:
        model: A fitted scikit-learn style classifier (with ``predict_proba`` and ``classes_``; pipelines, searches,
            XGBoost and LightGBM too) or regressor, a PyTorch, Keras or ONNX model, the path of a model's file (see
            `load_model`; a `ModelFile` where it needs more than the path), an `Endpoint` or its address, any
            callable from features to outputs of shape (n, K), or (n,) for class 1 of two, or `OutputColumns` if the tables
            hold the outputs.
        members: The pair (X, y) of records the model was trained on. X is an array, a DataFrame, a sparse matrix or
            a list; y holds the true labels: strings, integers, booleans or whole floats. Or a `RecordTable`, or with
            ``label`` the data of one: a DataFrame, a dictionary of arrays, or the path of a file. Or a loader, which is
            read once: a PyTorch ``DataLoader`` or ``Dataset`` (the indices of two ``Subset`` of one become ids), a
            ``tf.data.Dataset``, a Lightning data module that is set up (its train loader are the members, its test loader,
            or else its validation loader, the non-members), an ``IterableDataset`` of Hugging Face, or an iterator of
            batches. A batch is a pair (x, y), or with ``label`` a dictionary.
        nonmembers: Records of the same population that the model never saw, in the same form.
        records: A `RecordTable` of both groups with a column of membership, instead of the two.
        label: Column of true labels in tables, or key of them in batches that are dictionaries.
        task: Task that the model was trained for: ``classification`` (`Classification`, the default), ``multi-label``
            (`MultiLabel`), ``regression`` (`SquaredError`) or ``gaussian`` (`GaussianLogLoss`). Without labels it is
            ``confidence`` (`Confidence`), also ``confidence:entropy`` or ``confidence:margin``; y may then be None.
        classes: The label of each output column; default those that the model knows or the names of the columns that it
            returns, or else 0, 1, ...
        output: Kind of output that the model returns; default probabilities for a callable, and detected for any other model.
            Logits lose no precision; probabilities may.
        ids: Optional record ids, a pair (members, non-members); the columns of a `RecordTable` have them themselves.
        groups: Optional slices to report by, a pair too.
        persons: Optional data subject of each record, a pair too.
        batch_size: Most records for each call of the model; default all of a group at once, or as the model requires, and the
            batches of a loader. A function that gets each group at once is not tried on a few records before, and is
            called once for each.
        repeats: Calls for each batch, whose outputs are averaged; for a model that answers differently on repeat.
        policies: Restricted answers in place of the full outputs, such as ``"digits=2,top1,label"``, or other scores of
            them, ``"score=entropy"``, ``score=largest`` and ``score=margin``: the same outputs are scored under each too,
            without further requests, and `auditor.audit` reports their effect.

    Returns:
        Losses in nats with ``scale=LossScale.LOG_ODDS``, the count of saturated records, a fingerprint of each record's
        features (none where they cannot be hashed, as for lists of images), and a history that says which output of the
        model was used. Probabilities of exactly 0 or 1 are placed at the logit of the spacing
        of the floats the model returned, or further out (`auditor.collectors.base.tasks.clip_saturated`).

    Raises:
        InputError: A model that is not supported or not fitted, features it refuses, labels it does not know,
            outputs that contradict ``output``, lengths that do not match, or a callable that raises (its
            exception is the cause).

    Source: Negoescu et al. 2024, footnote 1.

    >>> import numpy as np
    >>> logit = lambda X: X[:, 0]
    >>> X = np.array([[2.0], [-1.0]])
    >>> losses = collect(logit, members=(X, [1, 0]), nonmembers=(X, [0, 1]), output=Output.LOGITS)
    >>> losses.member, losses.nonmember
    (array([-2., -1.]), array([2., 1.]))
    """
    options = ScoringOptions(task, classes, output, batch_size, repeats, policies)
    tables = _tables(label, members=members, nonmembers=nonmembers, records=records)
    if any(isinstance(table, RecordTable) or is_loader(table) for table in tables.values()):
        _refuse_pairs(ids=ids, groups=groups, persons=persons)
    if any(map(is_loader, tables.values())):
        refuse_loaders(records=tables["records"])
        losses, noticed = losses_in_one_pass(model, tables["members"], tables["nonmembers"], options=options)
    elif any(isinstance(table, RecordTable) for table in tables.values()):
        with temporary("losses.parquet") as path:
            report = collect_to(path, model, **tables, **vars(options))
            losses, noticed = read_losses(report.path, memory=_OWN), report.warnings
    else:
        losses, noticed = _of_pairs(model, members, nonmembers, options, id=ids, group=groups, person=persons)
    for sentence in noticed:
        warnings.warn(sentence, stacklevel=3)
    return losses


def _of_pairs(
    model: Any, members: Any, nonmembers: Any, options: ScoringOptions, **beside: Any
) -> tuple[Losses, tuple[str, ...]]:
    """Return the losses of two pairs (X, y), and the warnings for the caller."""
    both = (
        records_of("member", "members", members, options.task),
        records_of("nonmember", "nonmembers", nonmembers, options.task),
    )
    labels = labels_beside(both, values="y", **beside)
    if isinstance(options.task, Classifier) and all(pair[1] is not None for pair in (members, nonmembers)):
        labels["label"] = PerGroup(both[0].labels, both[1].labels)
    model = opened_model(model)
    with hushed(model), ThreadPoolExecutor(1) as aside:
        # While the model computes. Outputs are no features: records that look alike to the model need not be the same.
        hashed = None if isinstance(model, OutputColumns) else aside.submit(_pair_fingerprint, *both)
        scorer, tried = opened_scorer(model, both, options)
        member, nonmember = in_batches(scorer, both, size=options.batch_size)
        tried = tried or columns_noticed(scorer, both)
        labels["fingerprint"] = None if hashed is None else hashed.result()
    losses = losses_of(scorer, member, nonmember, labels=labels, noticed=tried.warnings)
    return losses, (*tried.warnings, *tried.provisional, *file_warnings(losses))


@alike
def losses_from_probabilities(
    probabilities: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    *,
    member: npt.ArrayLike,
    task: Task | str | None = None,
    classes: Sequence[Any] | None = None,
    output: Output | str = Output.PROBABILITIES,
    id: npt.ArrayLike | None = None,  # noqa: A002  # the name of the field in Losses
    group: npt.ArrayLike | None = None,
    person: npt.ArrayLike | None = None,
    policies: str | Iterable[str] = (),
) -> Losses:
    """Return the losses of outputs that are at hand: the negative log-odds of the true class, or another task's loss.

    Args:
        probabilities: Outputs of one model for members and non-members, shape (n, K), or (n,) for class 1 of two. The
            names of a DataFrame's columns are the classes where the labels are among them.
        y: The true labels, shape (n,); None with ``task="confidence"``.
        member: 1 for a record that this very model was trained on and 0 for one that it never saw, shape (n,). Of a
            cross-validation each fold has a model of its own, with the records of its fold as non-members.
        task: Task that the model was trained for, as for `collect`.
        classes: The label of each column; default the names of the columns, or else 0, 1, ...
        output: `Output.LOGITS` where they are logits, which lose no precision; or log-probabilities.
        id: Optional record ids, shape (n,).
        group: Optional slices to report by, shape (n,).
        person: Optional data subject of each record, shape (n,).
        policies: Restricted answers, as for `collect`.

    Raises:
        InputError: Numbers that contradict ``output``, labels that are no class, lengths that do not match, or
            fewer than two records in a group.

    Source: Negoescu et al. 2024, footnote 1.

    >>> losses = losses_from_probabilities([0.6, 0.9, 0.2, 0.6], [1, 1, 0, 0], member=[1, 1, 0, 0])
    >>> losses.member.round(3), losses.nonmember.round(3)
    (array([-0.405, -2.197]), array([-1.386,  0.405]))
    """
    rows = validate.array("probabilities", probabilities)
    target = {} if y is None else {"y": validate.array("y", y)}
    names = column_names(probabilities)

    def asarray(part: Any) -> Any:
        return part if names is None else NamedOutputs(names, part)

    mask = marks(validate.column("member", member), place="member")
    labels = {
        name: validate.column(name, column)
        for name, column in (("id", id), ("group", group), ("person", person))
        if column is not None
    }
    columns = {"probabilities": rows, **target, "member": mask, **labels}
    validate.same_length(list(columns), [len(np.atleast_1d(column)) for column in columns.values()])
    pairs = [(rows[side], target["y"][side] if target else None) for side in (mask, ~mask)]
    beside: dict[str, Any] = {f"{name}s": (column[mask], column[~mask]) for name, column in labels.items()}
    result = collect(asarray, *pairs, task=task, classes=classes, output=output, policies=policies, **beside)
    # The outputs are no features: records that look alike to the model need not be the same.
    return replace(result, fingerprint=None)


def _refuse_pairs(**pairs: Any) -> None:
    """Refuse labels in pairs beside data that name the columns of them."""
    for name, pair in pairs.items():
        if pair is not None:
            raise InputError(
                f"{name} go with pairs (X, y): a RecordTable names the column itself, as {name[:-1]}=..."
            )


def _tables(label: str | Sequence[str] | None, **given: Any) -> dict[str, Any]:
    """Return tables of records with this column of labels; a `RecordTable`, and without a label anything, as it is."""
    as_they_are = (RecordTable, type(None)) if label is not None else (object,)
    return {
        name: value if isinstance(value, as_they_are) else RecordTable(value, label=label)
        for name, value in given.items()
    }


_ROWS = 2**16  # whose labels are read at once


def _with_outputs(
    model: OutputColumns, sources: Sequence[TableSource], options: ScoringOptions, *, listed: bool
) -> tuple[OutputColumns, tuple[TableSource, ...]]:
    """Return the classes of the columns of outputs, and the tables with these columns as features.

    Args:
        model: Classes, if they are known.
        sources: The tables.
        options: Scoring options.
        listed: Whether the features of the tables were named.
    """
    place, features = sources[0].name, sources[0].roles.features
    names = [name for name, kind in sources[0].kinds.items() if kind in (Kind.NUMBER, Kind.VECTOR)]
    classes = {
        validate.column_name(name, what="outputs", file=place, options=features): value
        for name, value in model.classes.items()
    }
    if not classes and isinstance(options.task, Classification):
        seen = options.classes or dict.fromkeys(
            label
            for source in sources
            for start in range(0, len(source), _ROWS)
            for label in source.read(start, start + _ROWS).records.labels.tolist()
        )
        positional, others = listed or len(names) == 1, options.classes is None
        classes = class_columns(names, [*seen], place=place, others=others, optional=positional)
    chosen = tuple(classes) or (features if listed else tuple(names))
    own = (replace(source, roles=replace(source.roles, features=chosen)) for source in sources)
    return OutputColumns(classes), tuple(own)


def _pair_fingerprint(member: Records, nonmember: Records) -> PerGroup | None:
    """Return hashes of the features, by which records of equal content are found; None if they are no plain values."""
    try:
        return fingerprints(Features(member=member.features, nonmember=nonmember.features))
    except InputError:
        return None


_TextLabels = tuple[npt.ArrayLike, npt.ArrayLike]


@alike
def collect_texts(
    model: Any,
    *,
    members: Any,
    nonmembers: Any,
    tokenizer: Any = None,
    score: Any = MeanTokenLoss(),  # noqa: B008 - a frozen value
    longest: int | None = None,
    long_texts: LongTexts = LongTexts.REFUSE,
    reference: Any = None,
    secret: Secret | str | None = None,
    ids: _TextLabels | None = None,
    groups: _TextLabels | None = None,
    persons: _TextLabels | None = None,
    batch_size: int | None = None,
) -> Losses:
    """Score a language model's texts by the log-probabilities of their tokens; smaller looks more like a member.

    Args:
        model: A causal language model of transformers (or peft), any PyTorch module from token ids of shape (n, T) to logits of
            shape (n, T, V), the folder of a saved one (see `load_language_model`), or a `CompletionsEndpoint`.
        members: Texts that the model was trained on: a list, an array or a column of strings. Or prompts with completions (a
            table of these columns, pairs, or dictionaries with these keys), or lists of chat messages with ``role`` and
            ``content`` (also as ``messages`` of dictionaries), which the tokenizer's chat template renders; then only the
            tokens of the completions, or of the assistant's turns, are scored. Dictionaries may have them as ``text``. Or a
            `RecordTable`, or a loader as for `collect`, which is read once; columns ``id``, ``group`` and ``person`` are
            taken along.
        nonmembers: Texts of the same population that it never saw.
        tokenizer: The tokenizer of a model in this process: of transformers or tokenizers, or a callable from a list of
            texts to a list of lists of token ids. An endpoint and a folder have their own.
        score: Score that becomes the loss: ``mean`` (`MeanTokenLoss`), ``sum`` (`SumTokenLoss`), ``min-k`` or ``min-k:20``
            (`MinK`), or ``zlib`` (`ZlibRatio`).
        longest: The most tokens of a text, 2 or more; default as the model and the tokenizer declare.
        long_texts: Whether texts of more tokens are refused (``refuse``), cut (``cut``), or scored in windows (``windows``)
            that move by half their length: each token is scored once, after half a window of context at least.
        reference: A base model that saw none of the texts, whose score of the same text is subtracted (attack with a reference
            model, Carlini et al. 2021, Section 5.2): a model in memory with the same tokenizer, a pair (model, tokenizer), the
            folder of a saved model, or a `CompletionsEndpoint`.
        secret: Part of each text that an attacker wants the model to write, for an audit of extraction: a `Secret`, or
            ``completion``, ``pattern:EXPRESSION``, ``marks:BEFORE,AFTER`` or ``tokens:PREFIX,SUFFIX`` for sampling at
            temperature 1. The loss is then the negative log of the chance that one sample writes its tokens, given the text
            before it. Other tokens may spell the same secret, so this chance is a lower bound.
        ids: Optional record ids, a pair (members, non-members).
        groups: Optional slices to report by, as a pair.
        persons: Optional data subject of each text, as a pair.
        batch_size: Texts for each call; default as the model requires, and the batches of a loader.

    Returns:
        Losses with a fingerprint of each text and a history that says which score of which model they are. A text with
        a token to which the model gives probability 0 is counted as saturated and placed at the end of the scale.

    Raises:
        InputError: A model that is not supported; texts that are no strings, of fewer than 2 tokens or too long; token
            log-probabilities that are none; lengths that do not match.
        MissingExtraError: A package that the model needs is not installed.
    """
    reading: dict[str, Any] = {
        "longest": longest,
        "long_texts": long_texts,
        "reference": reference,
        "secret": secret,
    }
    scorer = text_scorer(model, tokenizer=tokenizer, score=score, also=(), **reading)
    if any(is_loader(group) or isinstance(group, RecordTable) for group in (members, nonmembers)):
        _refuse_pairs(ids=ids, groups=groups, persons=persons)
    options, beside = ScoringOptions(batch_size=batch_size), {"id": ids, "group": groups, "person": persons}
    return losses_in_one_pass(scorer, members, nonmembers, options=options, **beside)[0]


@alike
def collect_to(
    path: str | os.PathLike[str],
    model: Any,
    *,
    members: RecordTable | Any = None,
    nonmembers: RecordTable | Any = None,
    records: RecordTable | Any = None,
    label: str | Sequence[str] | None = None,
    task: Task | str | None = None,
    classes: Sequence[Any] | None = None,
    output: Output | str | None = None,
    repeats: int = 1,
    batch_size: int | None = None,
    policies: str | Iterable[str] = (),
    engine: Engine | None = None,
    overwrite: bool = False,
    announce: Callable[[str], None] = lambda _: None,
    progress: Callable[[str, int, int], None] = lambda _stage, _done, _total: None,
) -> "CollectedReport":
    """Score tables of records by a model, into a file that `read_losses` and ``auditor audit`` take as it is.

    Memory does not grow with the tables. Scored records are on disk at once, part by part, in the folder
    ``<path>.parts``: the same call after an interruption scores only the rest, in the same batches, and gives the same
    file. A model, table or setting that is no longer the same is refused.

    Args:
        path: The file to write, ``.parquet``.
        model: Any model that `collect` takes: an object, the path of a file or a `ModelFile`, an address or an
            `Endpoint`; or a `TextScorer`, for texts.
        members: The records that the model was trained on; with ``label`` also the data of a `RecordTable`; or a map-style
            ``Dataset`` of PyTorch.
        nonmembers: Records of the same population that it never saw.
        records: Both in one table instead, which has a column of membership.
        label: Column of true labels.
        task: Task that the model was trained for, as for `collect`.
        classes: The label of each output column; default those that the model knows, or else 0, 1, ...
        output: Kind of output that the model returns; detected by default.
        repeats: Calls for each batch, whose outputs are averaged; for a model that answers differently on repeat.
        batch_size: Most records for each call of the model; default as the model requires, or 10,000.
        policies: Restricted answers, as for `collect`; a column of losses for each. Texts have none.
        engine: Executor of the work: `LocalEngine()` (the default) or `RayEngine(workers)`.
        overwrite: Whether losses of another collection in the same place are replaced.
        announce: Called with a sentence about each event.
        progress: Called with the stage, the records that are done, and all of them.

    Returns:
        Place and number of the losses, the number scored by this call, and warnings for readers.

    Raises:
        InputError: As for `collect`, or a file or folder of another collection.
        OutputError: A file that cannot be written, or that another process is writing.
        MissingExtraError: A package that the model or the engine needs is not installed.

    >>> import tempfile, pathlib
    >>> def logit(table):
    ...     return table["x"].to_numpy()
    >>> inside = RecordTable({"x": [2.0, 1.0], "y": [1, 1]}, label="y")
    >>> outside = RecordTable({"x": [-1.0, 0.5], "y": [1, 0]}, label="y")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.parquet"
    ...     report = collect_to(path, logit, members=inside, nonmembers=outside, output=Output.LOGITS)
    >>> report.n_member, report.scored_now
    (2, 4)
    """
    from auditor.collectors.streaming.resume import Collection

    options = ScoringOptions(task, classes, output, batch_size, repeats, policies)
    tables: Any = _tables(label, members=members, nonmembers=nonmembers, records=records)
    tables = {name: RecordTable(data) if is_map_style(data) else data for name, data in tables.items()}
    refuse_loaders(data_sets=True, **tables)
    data = [table.data for table in tables.values() if isinstance(table, RecordTable)]
    check_writable([Path(path)], inputs=[place for item in data if (place := path_of(item)) is not None])
    target = Path(path).resolve()
    if target.suffix.lower() != ".parquet":
        raise InputError(
            f"output path {str(path)!r} must end in .parquet, got {target.suffix or 'no extension'!r}; name it so."
        )
    of = None if is_scorer(model) else options.task
    kinds, what = ((), "score of a text") if of is None else (of.answers, of.words)
    refuse_policies(options.policies, kinds=kinds, what=what, repeats=options.repeats)
    sources = open_groups(**tables, task=of)
    if isinstance(model, OutputColumns):
        listed = all(table.features is not None for table in tables.values() if table is not None)
        model, sources = _with_outputs(model, sources, options, listed=listed)

    # As text, since it goes into the file's metadata; the batches stand there by themselves.
    setting: dict[str, Any] = {
        name: str(value) for name, value in vars(options).items() if name != "batch_size"
    }
    setting["features"] = [list(source.roles.features) for source in sources]
    setting["alone"] = [source.roles.alone for source in sources]
    setting["scores"] = [score.name for score in getattr(model, "also", ())]
    setting |= {} if getattr(model, "secret", None) is None else {"secret": str(model.secret)}

    return Collection(
        path=target,
        scorer=ScorerRecipe(model, options, sources),
        sources=sources,
        batch_size=options.batch_size,
        setting=setting,
        without=("fingerprint",) if isinstance(model, OutputColumns) else (),
        trial=partial(preflight, batch_size=options.batch_size),
        engine=LocalEngine() if engine is None else engine,
        overwrite=overwrite,
        announce=announce,
        progress=progress,
    ).run()
