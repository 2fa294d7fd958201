"""The command `auditor collect`: from a model and tables of records to a table of losses."""

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import console, options as shared
from auditor.cli.console import with_options
from auditor.cli.options import Common, Options, flag, is_given, option, spelled
from auditor.collectors.base.outputs import Output
from auditor.core.errors import InputError


class TaskOption(StrEnum):
    """What the model was trained to predict."""

    CLASSIFICATION = "classification"
    MULTI_LABEL = "multi-label"
    REGRESSION = "regression"
    GAUSSIAN = "gaussian"


class EngineOption(StrEnum):
    """What does the work."""

    LOCAL = "local"
    RAY = "ray"


class ScoreOption(StrEnum):
    """The score of a text."""

    MEAN = "mean"
    SUM = "sum"
    MIN_K = "min-k"
    ZLIB = "zlib"


_TAKE_FACTORY = (".pt", ".pth", ".ts", ".torchscript", ".safetensors")  # may hold weights alone
_PROTOCOLS = ("v2", "v1", "mlflow", "completions", "template")
# What an endpoint takes under the name of its option.
_OF_CONNECTIONS = (
    *(
        "token_variable",
        "concurrency",
        "timeout",
        "retries",
        "output_name",
        "allow_plain_http",
        "use_proxies",
    ),
    *("max_request_bytes", "max_response_bytes", "max_request_records", "ca_file"),
)
# What goes with features and labels only.
_OF_TABLES = (
    *("task", "classes", "output", "repeats", "accept_labels", "output_name"),
    *("request_template", "response_path"),
)
_OF_TEXTS = ("score", "min_k_percent")


# --- The options ---


@dataclass(frozen=True)
class RecordTables(Options, title="The records"):
    """The tables of records, by the group that they hold."""

    members: Path | None = option(
        "Records the model was trained on (.csv, .parquet, .npz, .arrow, or a folder of .parquet).",
        metavar="FILE",
    )
    nonmembers: Path | None = option("Records from the same population that it never saw.", metavar="FILE")
    records: Path | None = option(
        "One table of both, with --member-column, instead of the two.", metavar="FILE"
    )
    member_column: str = option("Column of membership in --records, 0 or 1.", default="member")
    label: str | None = option(
        "Column of true labels; several, separated by commas, for --task multi-label.", metavar="COLUMN"
    )
    features: str | None = option(
        "Feature columns, separated by commas; default: all that are nothing else, in the order of the file.",
        metavar="NAMES",
    )
    id_column: shared.IdColumn = "id"
    group_column: shared.GroupColumn = "group"
    person_column: shared.PersonColumn = "person"
    allow_shared_rows: bool = flag("Go on where many rows are in both groups.")

    def read_with(self, *, text_column: str | None) -> dict[str, Any]:
        """Return the tables of records by the group that they hold."""
        from auditor.collectors import RecordTable

        columns: dict[str, Any] = {
            name: getattr(self, f"{name}_column") or None  # '' is none
            for name in ("id", "group", "person")
        }
        columns |= self._contents(text_column)
        given = {name: getattr(self, name) for name in ("members", "nonmembers", "records")}
        if [name for name, path in given.items() if path is not None] not in (
            ["members", "nonmembers"],
            ["records"],
        ):
            raise InputError(
                "give either both --members and --nonmembers, or --records with a column of membership."
            )
        member = {"records": self.member_column}
        return {
            name: None if path is None else RecordTable(path, member=member.get(name, "member"), **columns)
            for name, path in given.items()
        }

    def _contents(self, text_column: str | None) -> dict[str, Any]:
        """The columns of what the model sees and of what it should answer."""
        if text_column is not None:
            if self.label is not None or self.features is not None:
                raise InputError(
                    "--text-column goes without --label and --features: a text is all of its record."
                )
            return {"features": text_column}
        if self.label is None:
            raise InputError("--label must name the column of true labels (or --text-column that of texts).")
        features = None if self.features is None else shared.names("--features", self.features)
        return {"label": shared.names("--label", self.label), "features": features}


@dataclass(frozen=True)
class LossesFile(Options, title="The losses"):
    """Where the losses go."""

    out: Annotated[Path, typer.Option("--out", metavar="LOSSES", help="Where the losses go (.parquet).")]
    overwrite: bool = flag("Replace losses of another collection in the same file.")


@dataclass(frozen=True)
class ModelOptions(Options, title="The model"):
    """What the model predicts, and how a file of it is loaded."""

    task: TaskOption | None = option("What the model was trained to predict; default: classification.")
    standard_deviation: float | None = option(
        "Of the noise, for --task gaussian; default: the model returns it after the mean."
    )
    classes: str | None = option(
        "Label of each output column, separated by commas; default: the model's, or 0, 1, ...",
        metavar="LABELS",
    )
    output: Output | None = option("What the model returns; default: found out.")
    repeats: int | None = option(
        "Ask the model so often for every record and average, if it answers at random; default: 1."
    )
    factory: str | None = option(
        "Builds the PyTorch model of a state dict; the module is run, so name your own.",
        metavar="MODULE:FUNCTION",
    )
    trust_pickle: bool = flag(
        "Load a file that may run any code: a pickle, Lambda layers, a graph that touches files."
    )
    trusted_type: list[str] | None = option(
        "Type that a .skops file may hold besides the known ones; repeatable."
    )

    @property
    def of_files(self) -> dict[str, Any]:
        """What goes with a file of a model only."""
        return {name: getattr(self, name) for name in ("factory", "trust_pickle", "trusted_type")}

    def chosen_task(self) -> Any:
        """Return what the model was trained to predict."""
        from auditor.collectors import Classification, GaussianLogLoss, MultiLabel, SquaredError

        if self.standard_deviation is not None and self.task is not TaskOption.GAUSSIAN:
            raise InputError("--standard-deviation goes with --task gaussian: it is that of the noise.")
        if self.task is TaskOption.GAUSSIAN:
            return GaussianLogLoss(self.standard_deviation)
        kinds = {TaskOption.MULTI_LABEL: MultiLabel, TaskOption.REGRESSION: SquaredError}
        return kinds.get(self.task or TaskOption.CLASSIFICATION, Classification)()

    def labels(self) -> list[str] | None:
        """Return the labels of the output columns."""
        return None if self.classes is None else shared.names("--classes", self.classes)


@dataclass(frozen=True)
class TextOptions(Options, title="A language model"):
    """What of a text is scored."""

    text_column: str | None = option("Column of texts: MODEL is a language model.", metavar="COLUMN")
    score: ScoreOption | None = option("Of a text; the other scores stand beside it; default: mean.")
    min_k_percent: float | None = option("Percent of least likely tokens, for --score min-k; default: 20.")
    longest: int | None = option("Most tokens of a text; default: what the model takes.")
    cut_long_texts: bool = flag("Cut texts of more tokens, instead of refusing them.")

    def chosen_score(self) -> Any:
        """Return the score of a text, where the records are texts."""
        from auditor.collectors.texts.scores import MeanTokenLoss, MinK, SumTokenLoss, ZlibRatio

        if self.text_column is None:
            return None
        if self.min_k_percent is not None and self.score is not ScoreOption.MIN_K:
            raise InputError("--min-k-percent goes with --score min-k.")
        if self.score is ScoreOption.MIN_K:
            return MinK() if self.min_k_percent is None else MinK(self.min_k_percent)
        kinds = {ScoreOption.SUM: SumTokenLoss, ScoreOption.ZLIB: ZlibRatio}
        return kinds.get(self.score or ScoreOption.MEAN, MeanTokenLoss)()

    def check_tokens(self, *, served: bool) -> None:
        """Refuse what is said of tokens where no language model in a folder counts them."""
        for name in ("longest", "cut_long_texts"):
            if getattr(self, name):
                where = "a language model in a folder, got an address" if served else "--text-column"
                raise InputError(f"{spelled(name)} goes with {where}; leave it out.")


@dataclass(frozen=True)
class ServedOptions(Options, title="A served model"):
    """How a server is asked."""

    protocol: str | None = option(
        "v2, v1, mlflow, completions or template; default: found out.", metavar="NAME"
    )
    served_model: str | None = option(
        "Name of the model on the server, where the address has none.", metavar="NAME"
    )
    token_variable: str | None = option(
        "Environment variable that holds the bearer token.", metavar="VARIABLE"
    )
    header_variable: list[str] | None = option(
        "Header from an environment variable; repeatable.", metavar="HEADER=VARIABLE"
    )
    output_name: str | None = option(
        "Which of several outputs to use; default: the probabilities.", metavar="NAME"
    )
    accept_labels: bool = flag(
        "Take a server that answers with labels (name them with --classes): a weaker 0/1-loss audit."
    )
    request_template: Path | None = option(
        "JSON of a request with one place for the records: {{rows}} (lists of cells), {{records}} (objects by"
        " column), or {{row}} or {{record}} (one a request), as in '{\"inputs\": {{rows}}}'.",
        metavar="FILE",
    )
    response_path: str | None = option(
        "Where the outputs are in an answer, for --request-template, as in outputs.0.scores or results.*.probs.",
        metavar="PATH",
    )
    concurrency: int | None = option("Requests under way at a time; default: 8.")
    timeout: float | None = option("Seconds to wait for an answer; default: 30.")
    retries: int | None = option("How often a request is tried again; default: 5.")
    max_request_records: int | None = option("Most records in one request.")
    max_request_bytes: int | None = option("Largest request; default: 1000000.")
    max_response_bytes: int | None = option("Largest answer that is read.")
    allow_plain_http: bool = flag("Send credentials over http, where others can read them.")
    use_proxies: bool = flag("Use the proxies of the environment (HTTPS_PROXY).")
    ca_file: Path | None = option("Certificates to trust, for a private server.", metavar="FILE")

    def keywords(self, classes: str | None) -> dict[str, Any]:
        """Return what an endpoint is told of the connection, as far as it was given."""
        found = {name: getattr(self, name) for name in _OF_CONNECTIONS}
        found |= {"header_variables": self._headers(), "labels": self._answers(classes)}
        return {name: value for name, value in found.items() if is_given(value)}

    def _headers(self) -> dict[str, str] | None:
        """The environment variable of each header."""
        result = {}
        for pair in self.header_variable or ():
            name, sign, variable = pair.partition("=")
            if not (name.strip() and sign and variable.strip()):
                raise InputError(
                    f"--header-variable must be HEADER=VARIABLE, the name of an environment variable, got {pair!r}."
                )
            result[name.strip()] = variable.strip()
        return result or None

    def _answers(self, classes: str | None) -> list[Any] | None:
        """The labels that a server may answer with, if it may; those that are whole numbers as such."""
        if not self.accept_labels:
            return None
        if classes is None:
            raise InputError("--accept-labels goes with --classes, which names the labels; give them.")
        found = shared.names("--classes", classes)
        return [int(name) for name in found] if all(name.lstrip("-").isdigit() for name in found) else found

    def chosen_protocol(self) -> Any:
        """Return how records are sent, by name or as a template; nothing where it is to be found out."""
        from auditor.collectors.served.protocols import Template

        name, template = self.protocol, self.request_template
        if name is not None and name not in _PROTOCOLS:
            raise InputError(f"--protocol must be one of {', '.join(_PROTOCOLS)}, got {name!r}.")
        if name == "completions":
            raise InputError("--protocol completions goes with --text-column: it is asked for texts.")
        if template is None:
            if name == "template" or self.response_path is not None:
                raise InputError("--request-template must name a file of JSON with a place for the records.")
            return name
        if name not in (None, "template"):
            raise InputError(
                f"--request-template goes with --protocol template, got {name!r}; leave one of them out."
            )
        try:
            text = template.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise InputError(f"file {str(template)!r} cannot be read: {reason}; check the name.") from error
        return Template(text, self.response_path or "")


@dataclass(frozen=True)
class RunOptions(Options, title="The run"):
    """How the work is done."""

    batch_size: int | None = option("Records for each call of the model, and of each checkpoint.")
    engine: EngineOption = option("This process, or a Ray cluster.", default=EngineOption.LOCAL)
    workers: int | None = option("Models at work at a time, for --engine ray; default: 2.")
    ray_address: str | None = option(
        "Of a running Ray cluster, whose machines see the same files; default: Ray is started here.",
        metavar="ADDRESS",
    )

    def chosen_engine(self) -> Any:
        """Return what does the work, if it is not this process."""
        given = {name: value for name, value in vars(self).items() if name in ("workers", "ray_address")}
        given = {name: value for name, value in given.items() if value is not None}
        if self.engine is EngineOption.LOCAL:
            for name in given:
                raise InputError(f"{spelled(name)} goes with --engine ray: this process holds one model.")
            return None
        from auditor.collectors.streaming.ray import RayEngine

        return RayEngine(**{name.removeprefix("ray_"): value for name, value in given.items()})


# --- The command ---


def collect(
    *,
    model: Annotated[
        str,
        typer.Argument(
            help="File or folder of a model (.skops, .onnx, .keras, SavedModel, .pt, a saved language model), or the"
            " address of a served one (https://...)."
        ),
    ],
    records: RecordTables,
    losses: LossesFile,
    kind: ModelOptions,
    texts: TextOptions,
    served: ServedOptions,
    run: RunOptions,
    common: Common,
) -> None:
    """Score records by a model and write a table of losses; a run that was stopped goes on where it stopped."""
    from auditor import collectors

    _check_kind_of_records(texts, {**vars(kind), **vars(texts), **vars(served)})
    tables = records.read_with(text_column=texts.text_column)
    connection = served.keywords(kind.classes)
    chosen = _model(model, kind, texts, served, connection)
    with console.interruptible(), console.stages(quiet=common.quiet, unit="records") as move:
        report = collectors.collect_to(
            losses.out,
            chosen,
            **tables,
            task=kind.chosen_task(),
            classes=kind.labels(),
            output=kind.output,
            repeats=1 if kind.repeats is None else kind.repeats,
            batch_size=run.batch_size,
            allow_shared_rows=records.allow_shared_rows,
            engine=run.chosen_engine(),
            overwrite=losses.overwrite,
            announce=console.announcer(quiet=common.quiet),
            progress=move or (lambda _stage, _done, _total: None),
        )
    if not common.quiet:
        console.say(_summary(report, name=str(losses.out)))


def _check_kind_of_records(texts: TextOptions, given: dict[str, Any]) -> None:
    """Refuse what the kind of records, texts or rows of features, has no use for."""
    are_texts = texts.text_column is not None
    how = "without" if are_texts else "with"
    why = "the score of a text is of its tokens alone" if are_texts else "it is about the score of a text"
    for name in _OF_TABLES if are_texts else _OF_TEXTS:
        if is_given(given[name]):
            raise InputError(f"{spelled(name)} goes {how} --text-column, for {why}; leave it out.")


def _model(
    place: str, kind: ModelOptions, texts: TextOptions, served: ServedOptions, connection: dict[str, Any]
) -> Any:
    """The model: a file, an endpoint, or what scores texts.

    Args:
        place: A path or an address.
        kind: What the model predicts, and how a file of it is loaded.
        texts: What of a text is scored.
        served: How a server is asked.
        connection: The same as keywords of an endpoint.
    """
    score = texts.chosen_score()
    is_served = place.lower().startswith(("http://", "https://"))
    if score is None or is_served:
        texts.check_tokens(served=is_served)
    for name, value in (kind.of_files if is_served else vars(served)).items():
        if value:
            other = "the file of a model" if is_served else "the address of a served model"
            raise InputError(f"{spelled(name)} goes with {other}, got {place!r} as MODEL; leave it out.")
    if not is_served:
        return _file(place, kind, texts, score)
    if score is not None:
        return _completions(place, served, connection, score)
    from auditor.collectors.served.endpoint import Endpoint

    return Endpoint(place, protocol=served.chosen_protocol(), model=served.served_model, **connection)


def _file(place: str, kind: ModelOptions, texts: TextOptions, score: Any) -> Any:
    from auditor.collectors.streaming.scorers import LanguageModelFile, ModelFile

    if score is None:
        if kind.factory and Path(place).suffix.lower() not in _TAKE_FACTORY:
            raise InputError(
                f"--factory goes with a file of weights ({', '.join(_TAKE_FACTORY)}), got {place!r} as MODEL; leave it"
                " out."
            )
        trusted = tuple(kind.trusted_type or ())
        return ModelFile(place, factory=kind.factory, trust_pickle=kind.trust_pickle, trusted_types=trusted)
    for name in [name for name, value in kind.of_files.items() if value]:
        raise InputError(
            f"{spelled(name)} goes without --text-column: a language model is loaded from its folder."
        )
    from auditor.collectors.texts.models import LongTexts

    long_texts = LongTexts.CUT if texts.cut_long_texts else LongTexts.REFUSE
    return LanguageModelFile(place, score=score, longest=texts.longest, long_texts=long_texts)


def _completions(place: str, served: ServedOptions, connection: dict[str, Any], score: Any) -> Any:
    from auditor.collectors.texts.endpoints import CompletionsEndpoint
    from auditor.collectors.texts.scorer import text_scorer

    if served.protocol not in (None, "completions"):
        raise InputError(
            f"--protocol must be completions for texts (--text-column), got {served.protocol!r}; leave it out."
        )
    if served.served_model is None:
        raise InputError("--served-model must name the language model on its server; give its name.")
    return text_scorer(CompletionsEndpoint(place, model=served.served_model, **connection), score=score)


def _summary(report: Any, *, name: str) -> str:
    """What a person reads in the end."""
    groups = f"{report.n_member:,} members and {report.n_nonmember:,} non-members"
    if not report.scored_now:
        first = f"{name} was complete already: losses of {groups}; nothing was scored."
    else:
        before = f" ({report.resumed:,} of them by an earlier run)" if report.resumed else ""
        first = f"{report.n_member + report.n_nonmember:,} losses in {name}: {groups}{before}."
    lines = [
        first,
        *(f"Note: {with_options(sentence).rstrip('.')}." for sentence in report.warnings),
        f"Next: auditor audit {shlex.quote(name)} --html report.html",
    ]
    return "\n".join(lines) + "\n"
