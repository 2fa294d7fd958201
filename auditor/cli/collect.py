"""The commands `auditor collect`, from a model and tables of records to losses, and `auditor summarise`, from losses to counts."""

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from auditor.cli import console, options as shared
from auditor.cli.options import refuse
from auditor.cli.parsing import Of, Options, Typed, argument, option
from auditor.collectors.base.outputs import Output
from auditor.collectors.base.tasks import TASKS
from auditor.collectors.served.endpoint import Endpoint
from auditor.collectors.streaming.scorers import LanguageModelFile, ModelFile, OutputColumns
from auditor.collectors.texts.scores import SCORES
from auditor.collectors.texts.secrets import Secret
from auditor.core import InputError, from_text

_TAKE_FACTORY = (".pt", ".pth", ".ts", ".torchscript", ".safetensors")  # may contain weights only

# --- The options ---


@dataclass(frozen=True)
class RecordTables(shared.Columns, shared.InMemory, title="The records"):
    """The tables of records of each group.

    Attributes:
        label: Column of true labels; several, separated by commas, for --task multi-label. Required without --text-column
            and --task confidence.
        features: Feature columns, separated by commas; default: all columns without another role, in the order of the file.
        members: Training records of the model (.csv, .parquet, .npz, .arrow, .jsonl, a folder of .parquet or .csv, or an address
            such as s3://...). Needs --nonmembers.
        nonmembers: Records from the same population that the model has not seen. Needs --members.
        records: One table of both groups, with --member-column, instead of two tables.
        outputs: One table of both groups with the outputs of a model instead of MODEL and --records: a column for each class,
            named by the class or by a prefix and the class. Without MODEL also --members and --nonmembers hold outputs.
        member_column: Column of membership in --records or --outputs, 0 or 1.
    """

    label: str | None = None
    features: str | None = None
    members: Path | None = None
    nonmembers: Path | None = None
    records: Path | None = None
    outputs: Path | None = None
    member_column: str = "member"

    def _columns(self, text_column: str | None, task: str | None) -> dict[str, Any]:
        """Return the columns of a `RecordTable`, as its arguments."""
        columns: dict[str, Any] = {
            "id": self.id_column or None,  # '' means none
            "group": self.group_column or None,
            "person": self.person_column or None,
            "memory": self.memory,
        }
        if text_column is not None:
            refuse(self, "label", "features", goes="without --text-column: the text is the whole record")
            names = shared.names("--text-column", text_column)
            return {**columns, "features": names if len(names) > 1 else names[0]}
        if self.label is None and from_text("task", task or "classification", TASKS).needs_labels:
            raise InputError("--label must name the column of labels (or --text-column the column of texts).")
        features = None if self.features is None else shared.names("--features", self.features)
        label = None if self.label is None else shared.names("--label", self.label)
        return {**columns, "label": label, "features": features}

    def read_with(self, *, text_column: str | None = None, task: str | None = None) -> dict[str, Any]:
        """Return the tables of records of each group, as arguments of `collect_to`."""
        from auditor.collectors import RecordTable

        columns = self._columns(text_column, task)
        match self.members, self.nonmembers, self.records, self.outputs:
            case (Path() as members, Path() as nonmembers, None, None):
                return {
                    "members": RecordTable(members, **columns),
                    "nonmembers": RecordTable(nonmembers, **columns),
                }
            case (None, None, Path() as both, None) | (None, None, None, Path() as both):
                return {"records": RecordTable(both, member=self.member_column, **columns)}
        raise InputError(
            "give either both --members and --nonmembers, or --records or --outputs with a column of membership."
        )


@dataclass(frozen=True)
class LossesFile(Options, title="The losses"):
    """Output file of the losses.

    Attributes:
        out: Output file of losses (.parquet).
        overwrite: Replace a file with the losses of another collection.
    """

    out: Path
    overwrite: bool = False


@dataclass(frozen=True)
class Scoring(Options, title="The model"):
    """The model, its task and its outputs.

    Attributes:
        model: File or folder of a model (.skops, .onnx, .keras, SavedModel, .pt, a saved language model), or the address of
            a served model (https://...); with --released the file of a synthetic table. Not with --outputs.
        task: Task of the model: classification (default), multi-label, regression, or gaussian for a model that returns
            mean and standard deviation (gaussian:1.5 for a fixed standard deviation). confidence scores a classifier
            without labels, by its largest probability (also confidence:entropy and confidence:margin).
        classes: Label of each output column, separated by commas; default: the labels of the model, or 0, 1, ...
        output: Kind of the model outputs; default: inferred.
        policies: Alternative output policies, separated by commas: digits=N, topK, label; or other scores: score=entropy,
            score=largest, score=margin. The same outputs are also scored under each, without further requests, and the
            audit states the effect.
        repeats: Number of queries for each record, whose outputs are averaged, for a randomised model; default: 1.
        batch_size: Most records in each call of the model, and their number in each checkpoint.
        released: MODEL is a released synthetic table, made from the members: the losses are distances of the records to its
            nearest rows.
    """

    model: str | None = argument("MODEL", default=None)
    task: str | None = None
    classes: str | None = None
    output: Output | None = None
    policies: str | None = None
    repeats: int | None = option(rare=True)
    batch_size: int | None = None
    released: bool = False

    @property
    def is_served(self) -> bool:
        """Whether the model is served at an address."""
        return (self.model or "").lower().startswith(("http://", "https://"))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for `collect_to`."""
        return {
            "task": from_text("task", self.task or "classification", TASKS),
            "classes": self.labels(),
            "output": self.output,
            "policies": self.policies or (),
            "repeats": 1 if self.repeats is None else self.repeats,
            "batch_size": self.batch_size,
        }

    def labels(self) -> list[str] | None:
        """Return the labels of the output columns."""
        return None if self.classes is None else shared.names("--classes", self.classes)


@dataclass(frozen=True)
class Texts(Options, title="A language model"):
    """The texts, and their score.

    Attributes:
        text_column: Column of texts, or of lists of chat messages, for a language model as MODEL; or two columns, separated
            by a comma, of prompts and their completions. Of chats and completions only the responses are scored.
        score: Score of a text: mean (default), sum, min-k (min-k:20) or zlib; the other scores are written as further columns.
        reference: Base model, whose score of the same text is subtracted: its folder, or its name at the address of MODEL. With
            --released a table of records outside both groups, for distances relative to the nearest of them.
        secret: Part of each text to extract, given the text before it: completion, pattern:EXPRESSION, marks:BEFORE,AFTER or
            tokens:PREFIX,SUFFIX. The loss is then the negative log of the chance that one sample writes it.
    """

    text_column: str | None = None
    score: str | None = None
    reference: str | None = None
    secret: str | None = None


@dataclass(frozen=True)
class Served(Options, title="A served model"):
    """Requests and responses of a served model.

    Attributes:
        accept_labels: Accept a server that returns labels only (name them with --classes), for a weaker audit of the 0/1 loss.
        request_template: JSON of a request with one placeholder for the records: {{rows}} (lists of cells), {{records}}
            (objects by column), or {{row}} or {{record}} (one record in each request), as in '{"inputs": {{rows}}}'.
        response_path: Path of the outputs in a response, for --request-template, as in outputs.0.scores or
            results.*.probs.
        header_variable: HTTP header from an environment variable, HEADER=VARIABLE; repeatable.
    """

    accept_labels: bool = option(default=False, rare=True)
    request_template: Path | None = None
    response_path: str | None = option(rare=True)
    header_variable: tuple[str, ...] = option(default=(), rare=True)

    def arguments(self, scoring: Scoring) -> dict[str, Any]:
        """Return the arguments for an `Endpoint`."""
        result: dict[str, Any] = {}
        if self.header_variable:
            result["header_variables"] = dict(map(_header, self.header_variable))
        if self.accept_labels:
            classes = scoring.labels()
            if classes is None:
                raise InputError("--set accept-labels goes with --classes, which names the labels; add it.")
            whole = all(name.lstrip("-").isdigit() for name in classes)
            result["labels"] = [int(name) for name in classes] if whole else classes
        if self.request_template is None:
            refuse(self, "response_path", goes="with --request-template, for the responses to its requests")
            return result
        from auditor.collectors.served.protocols import Template
        from auditor.collectors.tables.sources import readable

        with readable(self.request_template):
            text = self.request_template.read_text(encoding="utf-8")
        return {**result, "protocol": Template(text, self.response_path or "")}


def _header(pair: str) -> tuple[str, str]:
    """Return the header of a pair, and the environment variable with its value."""
    name, _, variable = (part.strip() for part in pair.partition("="))
    if not (name and variable):
        raise InputError(
            f"--set header-variable must be HEADER=VARIABLE, a header and the name of an environment variable, got {pair!r}."
        )
    return name, variable


_CONNECTION = Of(
    Endpoint,
    common=("token_variable", "protocol"),
    without=("url", "pause", "output", "labels", "header_variables"),
    title="A served model",
    renamed=(("model", "served_model"),),
)
_FILE = Of(ModelFile, common=("factory", "trust_pickle"), without=("path",), title="The model")
_LANGUAGE = Of(LanguageModelFile, without=("path", "score", "reference", "secret"), title="A language model")
_SAMPLING = Of(Secret, without=("pattern", "marks", "prefix", "suffix"), title="A language model")


@dataclass(frozen=True)
class Engines(Options, title="The run"):
    """The engine of the computation.

    Attributes:
        engine: This process, or a Ray cluster.
        workers: Number of parallel processes, for --engine ray; default: 2.
        ray_address: Address of a running Ray cluster whose machines have access to the same files; default: start Ray here.
    """

    engine: Literal["local", "ray"] = "local"
    workers: int | None = None
    ray_address: str | None = option(rare=True)

    def chosen(self) -> Any:
        """Return the engine, or None for this process."""
        if self.engine == "local":
            refuse(self, "workers", "ray_address", goes="with --engine ray: the local engine is one process")
            return None
        from auditor.collectors.streaming.engines import RayEngine

        settings: dict[str, Any] = {"workers": self.workers, "address": self.ray_address}
        return RayEngine(**{name: value for name, value in settings.items() if value is not None})


# --- The command ---


def collect(
    scoring: Scoring,
    file: Annotated[Typed, _FILE],
    records: RecordTables,
    losses: LossesFile,
    texts: Texts,
    language: Annotated[Typed, _LANGUAGE],
    sampling: Annotated[Typed, _SAMPLING],
    served: Served,
    connection: Annotated[Typed, _CONNECTION],
    engines: Engines,
    common: shared.Common,
) -> None:
    r"""Score records with a model and write a table of losses; an interrupted run continues where it stopped.

    Examples:
        Losses of a model in a file, on two tables with a column of true labels:
          auditor collect model.skops --members train.csv --nonmembers holdout.csv \
            --label diagnosis --out losses.parquet

        Losses of a served model, with the token from an environment variable:
          auditor collect https://models.example.org/v2/models/income/infer \
            --token-variable INCOME_TOKEN --members train.csv \
            --nonmembers holdout.csv --label income --out losses.parquet

        Losses of a language model on texts:
          auditor collect ./my-language-model --members seen.csv \
            --nonmembers unseen.csv --text-column text --out losses.parquet

        Losses of probabilities in a file, with a column for each class:
          auditor collect --outputs probabilities.parquet --label y --out losses.parquet

        Distances of records to a released synthetic table:
          auditor collect synthetic.parquet --released --members train.csv \
            --nonmembers holdout.csv --out losses.parquet

    Exit codes:
        0 done; 2 bad input; 130 interrupted (run the command again to continue).
    """
    from auditor import collectors

    if scoring.released:
        goes = "without --released: distances to a table need no model and no labels; leave it out"
        refuse(scoring, "task", "classes", "output", "policies", "repeats", "batch_size", goes=goes)
        refuse(records, "label", "outputs", goes=goes)
        refuse(texts, "text_column", "score", "secret", goes=goes)
        refuse(served, *vars(served), goes=goes)
        refuse(engines, *["engine"] * (engines.engine != "local"), "workers", "ray_address", goes=goes)
        for typed in (file, language, sampling, connection):
            refuse(typed, *typed, goes=goes)
        _distances(scoring, records, losses, texts, common)
        return
    if texts.text_column is not None:
        why = "without --text-column: the score of a text depends on its tokens only; leave it out"
        refuse(scoring, "task", "classes", "output", "policies", "repeats", goes=why)
        refuse(served, "accept_labels", "request_template", "response_path", goes=why)
        refuse(connection, "output_name", goes=why)
    if scoring.model is None:
        refuse(texts, "text_column", goes="with a language model as MODEL; name its folder or address")
        refuse(scoring, "repeats", goes="with MODEL; leave it out")
    else:
        refuse(records, "outputs", goes=f"without MODEL, got {scoring.model!r} too; leave one out")
    if texts.secret is None:
        refuse(sampling, *sampling, goes="with --secret, whose sampling it describes")
    tables = records.read_with(text_column=texts.text_column, task=scoring.task)
    secret = None if texts.secret is None else Secret.from_text(texts.secret, **sampling)
    chosen = _model(scoring, file, texts, secret, language, served, connection)
    with console.progress(quiet=common.quiet) as move:
        report = collectors.collect_to(
            losses.out,
            chosen,
            **tables,
            **scoring.arguments(),
            engine=engines.chosen(),
            overwrite=losses.overwrite,
            announce=console.announcer(quiet=common.quiet),
            progress=move or (lambda _stage, _done, _total: None),
        )
    if not common.quiet:
        console.say(_summary(report, name=str(losses.out)))


def _distances(
    scoring: Scoring, records: RecordTables, losses: LossesFile, texts: Texts, common: shared.Common
) -> None:
    """Write the distances of the records to a released table."""
    from auditor.collectors import CollectedReport, RecordTable
    from auditor.collectors.streaming.resume import complete_file, refused_output
    from auditor.collectors.tables.collected import losses_content
    from auditor.collectors.tables.opening import open_groups, open_source
    from auditor.core.files import check_writable, write_all
    from auditor.scores import nearness

    if scoring.model is None:
        raise InputError("--released goes with the file of a synthetic table as MODEL; name it.")
    shared.refuse_ending("--out", losses.out, endings=[".parquet"])
    inputs = (scoring.model, texts.reference, records.members, records.nonmembers, records.records)
    check_writable([losses.out], inputs=[Path(place) for place in inputs if place is not None])
    if losses.out.exists() and not losses.overwrite:
        raise refused_output(losses.out, "may hold other losses")
    complete_file(losses.out, overwrite=True)  # refuses a file without losses
    sources = open_groups(**records.read_with(task="confidence"), task=None)
    columns: dict[str, Any] = {"features": sources[0].roles.features, "memory": records.memory}

    def table(place: str) -> Any:
        of = RecordTable(place, **columns, id=None, group=None, person=None)
        source = open_source(of, task=None, member=False, name="released")
        return source.read(0, len(source)).records.features

    batches = [source.read(0, len(source)) for source in sources]
    # One table holds both groups, or each holds one.
    sides = [(batches[0], batches[0].member), (batches[-1], ~batches[-1].member)]
    result = nearness(
        table(scoring.model),
        [batch.records.take(rows.nonzero()[0]).features for batch, rows in sides],
        reference=None if texts.reference is None else table(texts.reference),
        **{
            f"{name}s": [batch.columns[name][rows] for batch, rows in sides]
            for name in ("id", "group", "person")
            if all(name in batch.columns for batch in batches)
        },
    )
    write_all({losses.out: losses_content(result, losses.out)})
    if not common.quiet:
        counts = result.n_member, result.n_nonmember
        console.say(_summary(CollectedReport(losses.out, *counts, sum(counts), 0), name=str(losses.out)))


def _model(
    scoring: Scoring,
    file: Typed,
    texts: Texts,
    secret: Secret | None,
    language: Typed,
    served: Served,
    connection: Typed,
) -> Any:
    """Return the model: a file, an endpoint, or a scorer of texts."""
    place, got = scoring.model, f", got {scoring.model!r} as MODEL; leave it out"
    if texts.text_column is None:
        refuse(texts, "score", "reference", "secret", goes="with --text-column, for the score of a text")
    score = None if texts.text_column is None else from_text("score", texts.score or "mean", SCORES)
    if scoring.is_served or score is None:
        where = "a language model in a folder, got an address" if scoring.is_served else "--text-column"
        refuse(language, *language, goes=f"with {where}; leave it out")
    if place is not None and scoring.is_served:
        refuse(file, *file, goes=f"with the file of a model{got}")
        chosen = {**connection, **served.arguments(scoring)}
        if score is None:
            return Endpoint(place, **chosen)
        from auditor.collectors.texts.endpoints import CompletionsEndpoint
        from auditor.collectors.texts.scorer import text_scorer

        if (protocol := chosen.pop("protocol", "completions")) != "completions":
            raise InputError(f"--protocol must be completions with --text-column, got {protocol!r}.")
        endpoint = partial(CompletionsEndpoint, place, **{"model": "", **chosen})
        reference = None if texts.reference is None else endpoint(model=texts.reference)
        return text_scorer(endpoint(), score=score, reference=reference, secret=secret)
    goes = f"with the address of a served model{got}"
    refuse(served, *vars(served), goes=goes)
    refuse(connection, *connection, goes=goes)
    if place is None:
        refuse(file, *file, goes="with the file of a model as MODEL; leave it out")
        return OutputColumns()
    if score is not None:
        refuse(file, *file, goes="without --text-column: a language model is loaded from its folder")
        base = None if texts.reference is None else Path(texts.reference)
        return LanguageModelFile(place, score=score, reference=base, secret=secret, **language)
    if Path(place).suffix.lower() not in _TAKE_FACTORY:
        weights = f"a file of weights ({', '.join(_TAKE_FACTORY)})"
        refuse(file, "factory", goes=f"with {weights}{got}")
    return ModelFile(place, **file)


def _summary(report: Any, *, name: str) -> str:
    """Return the summary of a collection."""
    groups = f"{report.n_member:,} members and {report.n_nonmember:,} non-members"
    if not report.scored_now:
        first = f"{name} was already complete: losses of {groups}; nothing was scored."
    else:
        before = f" ({report.resumed:,} of them by an earlier run)" if report.resumed else ""
        first = f"{report.n_member + report.n_nonmember:,} losses in {name}: {groups}{before}."
    lines = [
        first,
        *(f"Note: {sentence.rstrip('.')}." for sentence in report.warnings),
        f"Next: auditor audit {shlex.quote(name)} --html report.html",
    ]
    return "\n".join(lines) + "\n"


# --- The command `auditor summarise`: losses of any number of records become additive counts ---


@dataclass(frozen=True, kw_only=True)
class SummaryFiles(shared.LossColumns, title="The losses"):
    """The losses to count, and the output file.

    Attributes:
        files: Tables of losses (.csv, .parquet, ...), summaries to add, folders of either, or addresses that fsspec supports
            (s3://...).
        out: Output file of the summary (.parquet).
        bits: Number of leading bits of a loss that define its bin, 13 to 24; sign and exponent take 12. Default: 22, for bins
            of a relative width of at most 1/1,024.
        every_bin: Keep every bin, for a part to add to others; a bin with one record almost discloses its loss. Default: merge
            neighbouring bins until each contains 0 or at least 10 members, and 0 or at least 10 non-members.
    """

    files: tuple[str, ...] = argument("FILES")
    out: Path
    bits: int | None = option(rare=True)
    every_bin: bool = False


def summarise(counted: SummaryFiles, engines: Engines, common: shared.Common) -> None:
    r"""Count losses in bins, in constant memory: a summary for auditor audit, to share or to add to others.

    Examples:
        Any number of records, in several files (or in a folder of files):
          auditor summarise part-1.parquet part-2.parquet --out summary.parquet

        Keep every bin of a part to add to others; the sum is merged:
          auditor summarise part-1.parquet --every-bin --out north.parquet
          auditor summarise north.parquet south.parquet --out both.parquet

        Many records, in several processes:
          auditor summarise all.parquet --engine ray --workers 8 --out summary.parquet

        From an address, with fsspec (pip install 'privacy-auditor[remote]'):
          auditor summarise https://data.example.org/losses.parquet --out summary.parquet
    """
    from auditor.collectors import Summary
    from auditor.core.files import check_writable

    shared.refuse_ending("--out", counted.out, endings=[".parquet"])
    check_writable([counted.out], inputs=[Path(file) for file in counted.files if "://" not in file])
    with console.progress(quiet=common.quiet) as move:
        every = Summary.from_files(
            counted.files,
            **counted.columns(),
            bits=counted.bits,
            engine=engines.chosen(),
            progress=move or (lambda _stage, _done, _total: None),
        )
    result = every if counted.every_bin else every.merged()
    result.write(counted.out)
    if not common.quiet:
        name = str(counted.out)
        merged = (
            f"{every.bin.size:,} bins became {result.bin.size:,}, each with 0 or at least 10 members, and 0 or at least 10 non-members:"
            " losses within one bin are no longer distinguished, which can only lower a bound. Use --every-bin for parts to add.\n"
        )
        counts = f"{result.n_member:,} members and {result.n_nonmember:,} non-members in {result.bin.size:,} bins: {name}.\n"
        console.say(
            f"{counts}{merged * (result.bin.size < every.bin.size)}Next: auditor audit {shlex.quote(name)} --html report.html\n"
        )
