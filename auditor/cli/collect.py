"""The commands `auditor collect`, from a model and tables of records to losses, and `auditor summarise`, to their counts."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from auditor.cli import console, options as shared
from auditor.cli.options import refuse
from auditor.cli.sentences import with_options
from auditor.collectors.base.outputs import Output
from auditor.core.errors import InputError

_TAKE_FACTORY = (".pt", ".pth", ".ts", ".torchscript", ".safetensors")  # may hold weights alone
# Options of a served model that an endpoint takes under another name, or not as they are.
_TEMPLATE = ("request_template", "response_path")
_OTHERWISE = ("protocol", "served_model", "header_variable", "accept_labels", *_TEMPLATE)

# --- The options ---


@dataclass(frozen=True)
class RecordTables(shared.Columns, shared.InMemory, title="The records"):
    """The tables of records, by the group that they hold.

    Attributes:
        label: Column of true labels; several, separated by commas, for --task multi-label.
        features: Feature columns, separated by commas; default: all that are nothing else, in the order of the file.
        members: Records the model was trained on (.csv, .parquet, .npz, .arrow, or a folder of .parquet).
        nonmembers: Records from the same population that it never saw.
        records: One table of both, with --member-column, instead of the two.
        member_column: Column of membership in --records, 0 or 1.
        allow_shared_rows: Go on where many rows are in both groups.
    """

    label: str | None = shared.option(also=["--label-column"])
    features: str | None = None
    members: Path | None = None
    nonmembers: Path | None = None
    records: Path | None = None
    member_column: str = "member"
    allow_shared_rows: bool = False

    def _columns(self, text_column: str | None) -> dict[str, Any]:
        """What a `RecordTable` is given of its columns; of texts, that they are all of a record."""
        columns: dict[str, Any] = {
            "id": self.id_column or None,  # '' is none
            "group": self.group_column or None,
            "person": self.person_column or None,
            "memory": self.memory,
        }
        if text_column is not None:
            refuse(self, "label", "features", goes="without --text-column: a text is all of its record")
            return {**columns, "features": text_column}
        if self.label is None:
            raise InputError("--label must name the column of true labels (or --text-column that of texts).")
        features = None if self.features is None else shared.names("--features", self.features)
        return {**columns, "label": shared.names("--label", self.label), "features": features}

    def read_with(self, *, text_column: str | None) -> dict[str, Any]:
        """Return the tables of records by the group that they hold."""
        from auditor.collectors import RecordTable

        columns = self._columns(text_column)
        match self.members, self.nonmembers, self.records:
            case (Path() as members, Path() as nonmembers, None):
                return {
                    "members": RecordTable(members, **columns),
                    "nonmembers": RecordTable(nonmembers, **columns),
                }
            case (None, None, Path() as records):
                return {"records": RecordTable(records, member=self.member_column, **columns)}
        raise InputError(
            "give either both --members and --nonmembers, or --records with a column of membership."
        )


@dataclass(frozen=True)
class LossesFile(shared.Options, title="The losses"):
    """Where the losses go.

    Attributes:
        out: Where the losses go (.parquet).
        overwrite: Replace losses of another collection in the same file.
    """

    out: Path
    overwrite: bool = False


@dataclass(frozen=True)
class ModelOptions(shared.Options, title="The model"):
    """What the model predicts, and how a file of it is loaded.

    Attributes:
        model: File or folder of a model (.skops, .onnx, .keras, SavedModel, .pt, a saved language model), or the address of
            a served one (https://...).
        task: What the model was trained to predict; default: classification.
        standard_deviation: Of the noise, for --task gaussian; default: the model returns it after the mean.
        classes: Label of each output column, separated by commas; default: the model's, or 0, 1, ...
        output: What the model returns; default: found out.
        policies: What it might answer instead, separated by commas: digits=N, topK, label. The same outputs are scored under
            each too, without further requests, and the audit says what it would help.
        repeats: Ask the model so often for every record and average, if it answers at random; default: 1.
        factory: Builds the PyTorch model of a state dict; the module is run, so name your own.
        trust_pickle: Load a file that may run any code: a pickle, TorchScript, a SavedModel, Lambda layers.
        trusted_type: Type that a .skops file may hold besides the known ones; repeatable.
    """

    model: str = shared.argument("MODEL")
    task: Literal["classification", "multi-label", "regression", "gaussian"] | None = None
    standard_deviation: float | None = None
    classes: str | None = None
    output: Output | None = None
    policies: str | None = None
    repeats: int | None = None
    factory: str | None = shared.option(metavar="MODULE:FUNCTION")
    trust_pickle: bool = False
    trusted_type: list[str] | None = None

    def chosen_task(self) -> Any:
        """Return what the model was trained to predict."""
        from auditor.collectors import Classification, GaussianLogLoss, MultiLabel, SquaredError

        if self.task == "gaussian":
            return GaussianLogLoss(self.standard_deviation)
        refuse(self, "standard_deviation", goes="with --task gaussian: it is that of the noise")
        kinds = {"multi-label": MultiLabel, "regression": SquaredError}
        return kinds.get(self.task or "", Classification)()

    def labels(self) -> list[str] | None:
        """Return the labels of the output columns."""
        return None if self.classes is None else shared.names("--classes", self.classes)


@dataclass(frozen=True)
class TextOptions(shared.Options, title="A language model"):
    """What of a text is scored.

    Attributes:
        text_column: Column of texts: MODEL is a language model.
        score: Of a text; the other scores stand beside it; default: mean.
        min_k_percent: Percent of least likely tokens, for --score min-k; default: 20.
        longest: Most tokens of a text; default: what the model takes.
        cut_long_texts: Cut texts of more tokens, instead of refusing them.
    """

    text_column: str | None = None
    score: Literal["mean", "sum", "min-k", "zlib"] | None = None
    min_k_percent: float | None = None
    longest: int | None = None
    cut_long_texts: bool = False

    def chosen_score(self) -> Any:
        """Return the score of a text, where the records are texts."""
        from auditor.collectors.texts.scores import MeanTokenLoss, MinK, SumTokenLoss, ZlibRatio

        if self.text_column is None:
            refuse(self, "score", "min_k_percent", goes="with --text-column: it is about the score of a text")
            return None
        if self.score == "min-k":
            return MinK() if self.min_k_percent is None else MinK(self.min_k_percent)
        refuse(self, "min_k_percent", goes="with --score min-k")
        kinds = {"sum": SumTokenLoss, "zlib": ZlibRatio}
        return kinds.get(self.score or "", MeanTokenLoss)()


@dataclass(frozen=True)
class ServedOptions(shared.Options, title="A served model"):
    """How a server is asked.

    Attributes:
        protocol: How it is spoken with; default: found out.
        served_model: Name of the model on the server, where the address has none.
        token_variable: Environment variable that holds the bearer token.
        header_variable: Header from an environment variable; repeatable.
        output_name: Which of several outputs to use; default: the probabilities.
        accept_labels: Take a server that answers with labels (name them with --classes): a weaker 0/1-loss audit.
        request_template: JSON of a request with one place for the records: {{rows}} (lists of cells), {{records}}
            (objects by column), or {{row}} or {{record}} (one a request), as in '{"inputs": {{rows}}}'.
        response_path: Where the outputs are in an answer, for --request-template, as in outputs.0.scores or
            results.*.probs.
        concurrency: Requests under way at a time; default: 8.
        timeout: Seconds to wait for an answer; default: 30.
        retries: How often a request is tried again; default: 5.
        max_request_records: Most records in one request.
        max_request_bytes: Largest request; default: 1000000.
        max_response_bytes: Largest answer that is read.
        allow_plain_http: Send credentials over http, where others can read them.
        use_proxies: Use the proxies of the environment (HTTPS_PROXY).
        ca_file: Certificates to trust, for a private server.
    """

    protocol: Literal["v2", "v1", "mlflow", "completions"] | None = None
    served_model: str | None = None
    token_variable: str | None = None
    header_variable: list[str] | None = shared.option(metavar="HEADER=VARIABLE")
    output_name: str | None = None
    accept_labels: bool = False
    request_template: Path | None = None
    response_path: str | None = None
    concurrency: int | None = None
    timeout: float | None = None
    retries: int | None = None
    max_request_records: int | None = None
    max_request_bytes: int | None = None
    max_response_bytes: int | None = None
    allow_plain_http: bool = False
    use_proxies: bool = False
    ca_file: Path | None = None

    def keywords(self, classes: str | None) -> dict[str, Any]:
        """Return what an endpoint is told of the connection, as far as it was given."""
        found = {name: value for name, value in vars(self).items() if name not in _OTHERWISE}
        found |= {"header_variables": self._headers(), "labels": self._answers(classes)}
        return {name: value for name, value in found.items() if shared.is_given(value)}

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
        from auditor.collectors.tables.sources import readable

        template = self.request_template
        if template is None:
            refuse(self, "response_path", goes="with --request-template: it is about the answers to it")
            return self.protocol
        refuse(self, "protocol", goes="without --request-template, which says how it is spoken with")
        with readable(template):
            return Template(template.read_text(encoding="utf-8"), self.response_path or "")


@dataclass(frozen=True)
class EngineOptions(shared.Options, title="The run"):
    """What does the work.

    Attributes:
        engine: This process, or a Ray cluster.
        workers: Processes at work at a time, for --engine ray; default: 2.
        ray_address: Of a running Ray cluster, whose machines see the same files; default: Ray is started here.
    """

    engine: Literal["local", "ray"] = "local"
    workers: int | None = None
    ray_address: str | None = None

    def chosen_engine(self) -> Any:
        """Return what does the work, if it is not this process."""
        if self.engine == "local":
            refuse(self, "workers", "ray_address", goes="with --engine ray: this process is one")
            return None
        from auditor.collectors.streaming.engines import RayEngine

        given: dict[str, Any] = {"workers": self.workers, "address": self.ray_address}
        return RayEngine(**{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True)
class RunOptions(EngineOptions):
    """How models are asked.

    Attributes:
        batch_size: Records for each call of the model, and of each checkpoint.
    """

    batch_size: int | None = None


# --- The command ---


def collect(
    model: ModelOptions,
    records: RecordTables,
    losses: LossesFile,
    texts: TextOptions,
    served: ServedOptions,
    run: RunOptions,
    common: shared.Common,
) -> None:
    r"""Score records by a model and write a table of losses; a run that was stopped goes on where it stopped.

    Examples:
        Losses of a model in a file, on two tables with a column of true labels:
          auditor collect model.skops --members train.csv --nonmembers holdout.csv \
            --label diagnosis --out losses.parquet

        Of a served model; the token comes from an environment variable:
          auditor collect https://models.example.org/v2/models/income/infer \
            --token-variable INCOME_TOKEN --members train.csv \
            --nonmembers holdout.csv --label income --out losses.parquet

        Of a PyTorch state dict, built by your own function:
          auditor collect weights.pt --factory my_project:build --members train.csv \
            --nonmembers holdout.csv --label y --out losses.parquet

        Of a language model, on texts:
          auditor collect ./my-language-model --members seen.csv \
            --nonmembers unseen.csv --text-column text --out losses.parquet

        Many records, in several processes:
          auditor collect model.onnx --records all.parquet --label y --engine ray \
            --workers 8 --out losses.parquet

    Exit codes:
        0 done; 2 bad input; 130 interrupted (start it again: it goes on where it
        stopped).
    """
    from auditor import collectors

    if texts.text_column is not None:
        why = "without --text-column, for the score of a text is of its tokens alone; leave it out"
        refuse(model, "task", "classes", "output", "policies", "repeats", goes=why)
        refuse(served, "accept_labels", "output_name", *_TEMPLATE, goes=why)
    tables = records.read_with(text_column=texts.text_column)
    chosen = chosen_model(model, texts, served)
    with console.progress(quiet=common.quiet) as move:
        report = collectors.collect_to(
            losses.out,
            chosen,
            **tables,
            task=model.chosen_task(),
            classes=model.labels(),
            output=model.output,
            repeats=1 if model.repeats is None else model.repeats,
            batch_size=run.batch_size,
            allow_shared_rows=records.allow_shared_rows,
            policies=() if model.policies is None else model.policies,
            engine=run.chosen_engine(),
            overwrite=losses.overwrite,
            announce=console.announcer(quiet=common.quiet),
            progress=move or (lambda _stage, _done, _total: None),
        )
    if not common.quiet:
        console.say(_summary(report, name=str(losses.out)))


def chosen_model(kind: ModelOptions, texts: TextOptions, served: ServedOptions) -> Any:
    """Return the model: a file, an endpoint, or what scores texts.

    Args:
        kind: What the model predicts, and how a file of it is loaded.
        texts: What of a text is scored.
        served: How a server is asked.
    """
    connection = served.keywords(kind.classes)
    score, place = texts.chosen_score(), kind.model
    is_served = place.lower().startswith(("http://", "https://"))
    if is_served or score is None:
        where = "a language model in a folder, got an address" if is_served else "--text-column"
        refuse(texts, "longest", "cut_long_texts", goes=f"with {where}; leave it out")
    got = f", got {place!r} as MODEL; leave it out"
    if not is_served:
        refuse(served, *vars(served), goes=f"with the address of a served model{got}")
        return _file(kind, texts, score)
    refuse(kind, "factory", "trust_pickle", "trusted_type", goes=f"with the file of a model{got}")
    if score is not None:
        return _completions(place, served, connection, score)
    from auditor.collectors.served.endpoint import Endpoint

    return Endpoint(place, protocol=served.chosen_protocol(), model=served.served_model, **connection)


def _file(kind: ModelOptions, texts: TextOptions, score: Any) -> Any:
    from auditor.collectors.streaming.scorers import LanguageModelFile, ModelFile

    place = kind.model
    if score is None:
        if Path(place).suffix.lower() not in _TAKE_FACTORY:
            weights = f"a file of weights ({', '.join(_TAKE_FACTORY)})"
            refuse(kind, "factory", goes=f"with {weights}, got {place!r} as MODEL; leave it out")
        trusted = tuple(kind.trusted_type or ())
        return ModelFile(place, factory=kind.factory, trust_pickle=kind.trust_pickle, trusted_types=trusted)
    whole = "without --text-column: a language model is loaded from its folder"
    refuse(kind, "factory", "trust_pickle", "trusted_type", goes=whole)
    from auditor.collectors.texts.models import LongTexts

    long_texts = LongTexts.CUT if texts.cut_long_texts else LongTexts.REFUSE
    return LanguageModelFile(place, score=score, longest=texts.longest, long_texts=long_texts)


def _completions(place: str, served: ServedOptions, connection: dict[str, Any], score: Any) -> Any:
    from auditor.collectors.texts.endpoints import CompletionsEndpoint
    from auditor.collectors.texts.scorer import text_scorer

    if served.protocol not in (None, "completions"):
        refuse(served, "protocol", goes=f"without --text-column but for completions, got {served.protocol!r}")
    return text_scorer(CompletionsEndpoint(place, model=served.served_model or "", **connection), score=score)


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


# --- The command `auditor summarise`: losses of any number of records become counts that add up ---


@dataclass(frozen=True, kw_only=True)
class SummaryFiles(shared.LossColumns, title="The losses"):
    """What is counted, and where the counts go.

    Attributes:
        files: Tables of losses (.csv, .parquet, ...), folders of .parquet parts, summaries to add, or addresses that fsspec
            knows (s3://...).
        out: Where the summary goes (.parquet).
        bits: How many bits of a loss decide its bin, 13 to 24; sign and exponent take 12. Default: 22, bins of up to 1/1,024
            of their value.
        every_bin: Keep every bin, for a part that is added to others; a bin with one record nearly gives its loss. Default:
            neighbouring bins are merged until each holds 0 or at least 10 members, and 0 or at least 10 non-members.
    """

    files: list[str] = shared.argument("FILES")
    out: Path
    bits: int | None = None
    every_bin: bool = False


def summarise(counted: SummaryFiles, run: EngineOptions, common: shared.Common) -> None:
    r"""Count losses in bins, in constant memory: a summary that auditor audit takes, to share or to add to others.

    Examples:
        Any number of records, in parts (or in a folder of parts):
          auditor summarise part-1.parquet part-2.parquet --out summary.parquet

        A part to add to others keeps every bin; the sum of two is merged:
          auditor summarise part-1.parquet --every-bin --out north.parquet
          auditor summarise north.parquet south.parquet --out both.parquet

        Many records, in several processes:
          auditor summarise all.parquet --engine ray --workers 8 --out summary.parquet

        From an address, by fsspec (pip install 'privacy-auditor[remote]'):
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
            engine=run.chosen_engine(),
            progress=move or (lambda _stage, _done, _total: None),
        )
    found = every if counted.every_bin else every.merged()
    found.write(counted.out)
    if not common.quiet:
        name = str(counted.out)
        merged = (
            f"{every.bin.size:,} bins became {found.bin.size:,}, each with 0 or at least 10 members, and 0 or at least 10 non-members:"
            " losses within one bin are no longer distinguished, which can only lower a bound. Parts to add need --every-bin.\n"
        )
        counts = f"{found.n_member:,} members and {found.n_nonmember:,} non-members in {found.bin.size:,} bins: {name}.\n"
        console.say(
            f"{counts}{merged * (found.bin.size < every.bin.size)}Next: auditor audit {shlex.quote(name)} --html report.html\n"
        )
