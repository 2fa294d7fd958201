"""The options of `auditor collect`: names, types and help texts."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []  # everything here is for collect.py and collect_arguments.py


class TaskOption(StrEnum):
    """What the model was trained to predict."""

    CLASSIFICATION = "classification"
    MULTI_LABEL = "multi-label"
    REGRESSION = "regression"
    GAUSSIAN = "gaussian"


class OutputOption(StrEnum):
    """What the model returns."""

    PROBABILITIES = "probabilities"
    LOG_PROBABILITIES = "log-probabilities"
    LOGITS = "logits"


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


# --- The model ------------------------------------------------------------------------------------

Model = Annotated[
    str,
    typer.Argument(
        help="File or folder of a model (.skops, .onnx, .keras, SavedModel, .pt, a saved language model), or the"
        " address of a served one (https://...)."
    ),
]
Task = Annotated[
    TaskOption | None,
    typer.Option(help="What the model was trained to predict; default: classification."),
]
StandardDeviation = Annotated[
    float | None,
    typer.Option(help="Of the noise, for --task gaussian; default: the model returns it after the mean."),
]
Classes = Annotated[
    str | None,
    typer.Option(
        metavar="LABELS",
        help="Label of each output column, separated by commas; default: the model's, or 0, 1, ...",
    ),
]
Output = Annotated[OutputOption | None, typer.Option(help="What the model returns; default: found out.")]
Factory = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="Builds the PyTorch model of a state dict; the module is run, so name your own.",
    ),
]
TrustPickle = Annotated[
    bool,
    typer.Option(
        "--trust-pickle",
        help="Load a file that may run any code: a pickle, Lambda layers, a graph that touches files.",
    ),
]
TrustedType = Annotated[
    list[str] | None,
    typer.Option(help="Type that a .skops file may hold besides the known ones; repeatable."),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        help="Ask the model so often for every record and average, if it answers at random; default: 1."
    ),
]

# --- The records ----------------------------------------------------------------------------------

Members = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Records the model was trained on (.csv, .parquet, .npz, .arrow, or a folder of .parquet).",
    ),
]
Nonmembers = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Records from the same population that it never saw."),
]
RecordsFile = Annotated[
    Path | None,
    typer.Option(
        "--records", metavar="FILE", help="One table of both, with --member-column, instead of the two."
    ),
]
MemberColumn = Annotated[str, typer.Option(help="Column of membership in --records, 0 or 1.")]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of true labels; several, separated by commas, for --task multi-label."
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Feature columns, separated by commas; default: all that are nothing else, in the order of the file.",
    ),
]
TextColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of texts: MODEL is a language model.")
]
Score = Annotated[
    ScoreOption | None, typer.Option(help="Of a text; the other scores stand beside it; default: mean.")
]
MinKPercent = Annotated[
    float | None, typer.Option(help="Percent of least likely tokens, for --score min-k; default: 20.")
]
Longest = Annotated[int | None, typer.Option(help="Most tokens of a text; default: what the model takes.")]
CutLongTexts = Annotated[
    bool, typer.Option("--cut-long-texts", help="Cut texts of more tokens, instead of refusing them.")
]
AllowSharedRows = Annotated[
    bool, typer.Option("--allow-shared-rows", help="Go on where many rows are in both groups.")
]

# --- A served model -------------------------------------------------------------------------------

Protocol = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="v2, v1, mlflow, completions or template; default: found out."),
]
ServedModel = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name of the model on the server, where the address has none."),
]
TokenVariable = Annotated[
    str | None,
    typer.Option(metavar="VARIABLE", help="Environment variable that holds the bearer token."),
]
HeaderVariable = Annotated[
    list[str] | None,
    typer.Option(metavar="HEADER=VARIABLE", help="Header from an environment variable; repeatable."),
]
Concurrency = Annotated[int | None, typer.Option(help="Requests under way at a time; default: 8.")]
Timeout = Annotated[float | None, typer.Option(help="Seconds to wait for an answer; default: 30.")]
Retries = Annotated[int | None, typer.Option(help="How often a request is tried again; default: 5.")]
MaxRequestBytes = Annotated[int | None, typer.Option(help="Largest request; default: 1000000.")]
MaxRequestRecords = Annotated[int | None, typer.Option(help="Most records in one request.")]
OutputName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which of several outputs to use; default: the probabilities."),
]
AcceptLabels = Annotated[
    bool,
    typer.Option(
        "--accept-labels",
        help="Take a server that answers with labels (name them with --classes): a weaker 0/1-loss audit.",
    ),
]
AllowPlainHttp = Annotated[
    bool, typer.Option("--allow-plain-http", help="Send credentials over http, where others can read them.")
]
UseProxies = Annotated[
    bool, typer.Option("--use-proxies", help="Use the proxies of the environment (HTTPS_PROXY).")
]
MaxResponseBytes = Annotated[int | None, typer.Option(help="Largest answer that is read.")]
CaFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Certificates to trust, for a private server.")
]
RequestTemplate = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="JSON of a request with one place for the records: {{rows}} (lists of cells), {{records}} (objects by"
        " column), or {{row}} or {{record}} (one a request), as in '{\"inputs\": {{rows}}}'.",
    ),
]
ResponsePath = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Where the outputs are in an answer, for --request-template, as in outputs.0.scores or results.*.probs.",
    ),
]

# --- The run --------------------------------------------------------------------------------------

Out = Annotated[Path, typer.Option("--out", metavar="LOSSES", help="Where the losses go (.parquet).")]
BatchSize = Annotated[
    int | None, typer.Option(help="Records for each call of the model, and of each checkpoint.")
]
Engine = Annotated[EngineOption, typer.Option(help="This process, or a Ray cluster.")]
Workers = Annotated[int | None, typer.Option(help="Models at work at a time, for --engine ray; default: 2.")]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Of a running Ray cluster, whose machines see the same files; default: Ray is started here.",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace losses of another collection in the same file.")
]
