"""The options of the command line, declared once: names, types and help texts."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from auditor.choices import Adjacency
from auditor.commands import completions

__all__: list[str] = []  # everything here is for the commands and arguments.py


class MembersOption(StrEnum):
    """What the scored members are."""

    CENSUS = "census"
    SAMPLE = "sample"
    SUBSET = "subset"


class SplitOption(StrEnum):
    """How membership was decided."""

    UNKNOWN = "unknown"
    RANDOM = "random"
    BERNOULLI = "bernoulli"


class PersonsOption(StrEnum):
    """How the records of one person are joined."""

    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    EACH = "each"


class OneRunOption(StrEnum):
    """How the guesses of a one-run audit are judged."""

    STEINKE = "steinke"
    F_DP = "f-dp"
    ANY_GUESSES = "any-guesses"


class MethodOption(StrEnum):
    """How a promise follows from the parameters of a training run."""

    EXACT = "exact"
    CLOSED_FORM = "closed-form"
    MOMENT_MATCHED = "moment-matched"


# --- The records ----------------------------------------------------------------------------------

LossTable = Annotated[
    Path | None,
    typer.Argument(
        help="Table of losses (.csv, .parquet, .npz, .arrow, or a folder of .parquet) with a membership column."
    ),
]
MemberFile = Annotated[Path | None, typer.Option(help="Table of member losses, instead of LOSSES.")]
NonmemberFile = Annotated[Path | None, typer.Option(help="Table of non-member losses.")]
LossColumn = Annotated[str, typer.Option(help="Column of losses.")]
MemberColumn = Annotated[str, typer.Option(help="Column of membership, 0 or 1.")]
IdColumn = Annotated[str, typer.Option(help="Column of record ids, if there is one.")]
GroupColumn = Annotated[str, typer.Option(help="Column of groups to report by (class, region), if any.")]
PersonColumn = Annotated[str, typer.Option(help="Column of data subjects, if there is one.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column of true classes, to report by class.")]
HigherIsMember = Annotated[
    bool,
    typer.Option("--higher-is-member", help="The column is a score: larger means more like a member."),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", help="Feature columns of LOSSES, separated by commas: looks for shift and twins."
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(help="Losses of the same records under a model trained on neither group: a placebo audit."),
]

# --- What is asked --------------------------------------------------------------------------------

Delta = Annotated[float | None, typer.Option(help="Default: the claim's, otherwise 1/(n ln n).")]
InstancesDelta = Annotated[
    float | None, typer.Option(help="Delta to state epsilon at; default: the claim's.")
]
Confidence = Annotated[float, typer.Option(help="Of every interval.")]
Members = Annotated[
    MembersOption,
    typer.Option(
        help="Whether every training record was scored, a sample, or a random subset of --training-size."
    ),
]
TrainingSize = Annotated[
    int | None, typer.Option(help="Number of training records; default: number of member losses.")
]
Split = Annotated[SplitOption, typer.Option(help="How membership was decided.")]
Stratified = Annotated[
    bool, typer.Option("--stratified", help="The random split was stratified by the group column.")
]
Inclusion = Annotated[float | None, typer.Option(help="Probability of inclusion, for --split bernoulli.")]
OneRunTest = Annotated[
    OneRunOption | None,
    typer.Option(help="How the guesses about the training algorithm are judged; default: steinke."),
]
Persons = Annotated[
    PersonsOption | None,
    typer.Option(
        help="One score per person (the mean, min or max loss), or each record; default: mean, where persons are whole."
    ),
]
Melded = Annotated[
    bool,
    typer.Option("--melded", help="Certify with one limit for the ratio of rates: tighter, and as proven."),
]
Mixture = Annotated[bool, typer.Option("--mixture", help="Fit Gaussian mixtures too.")]
MaxComponents = Annotated[
    int | None, typer.Option(help="Largest number of components, for --mixture; default: 20.")
]

# --- What is claimed ------------------------------------------------------------------------------

ClaimEpsilon = Annotated[float | None, typer.Option(help="Claimed epsilon.")]
ClaimDelta = Annotated[float | None, typer.Option(help="Delta of the claim.")]
ClaimAdjacency = Annotated[Adjacency | None, typer.Option(help="Of the claim; default: add-remove.")]
NoiseMultiplier = Annotated[float | None, typer.Option(help="Claimed DP-SGD: noise over the clipping norm.")]
SamplingRate = Annotated[
    float | None, typer.Option(help="Claimed DP-SGD: chance that a record is in a step.")
]
Steps = Annotated[int | None, typer.Option(help="Claimed DP-SGD: number of steps.")]
Schedule = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="DP-SGD step by step: a table with noise_multiplier, sampling_rate and, if wanted, steps.",
    ),
]
FixedSize = Annotated[
    bool, typer.Option("--fixed-size", help="Batches have a fixed size; default: Poisson sampling.")
]

# --- What comes out -------------------------------------------------------------------------------

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GATE",
        help="Exit 1 when true, such as 'epsilon_star.gaussian > 1', 'auc.lower > 0.6', 'verdict == refuted' or"
        " 'checks.shift == fail'; exit 3 when it cannot be evaluated; repeatable.",
        autocompletion=completions.gates,
    ),
]
ModelName = Annotated[str | None, typer.Option(help="Name of the model, for the report.")]
Strategy = Annotated[
    str | None,
    typer.Option(
        help="How it was trained, such as 'DP, epsilon 10': auditor compare takes equal ones together."
    ),
]
UtilityValue = Annotated[
    float | None,
    typer.Option(
        "--utility", help="How good the model is at its task: auditor compare sets it against privacy."
    ),
]
UtilityName = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What --utility is, such as 'test accuracy'.")
]
LowerIsBetter = Annotated[
    bool, typer.Option("--lower-is-better", help="Of --utility: a lower value is a better model (an error).")
]
TopRecords = Annotated[
    int,
    typer.Option(
        min=0,
        help="How many of the most exposed training records to name by id; ids are personal data too: 0 names none.",
    ),
]
StoredResult = Annotated[
    Path,
    typer.Argument(metavar="RESULT", help="Result of an audit (.json), of this release or an older one."),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="PATH", help="Write the report as one offline HTML page.")
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="PATH", help="Write the result as JSON; - for standard output."),
]
Markdown = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="PATH", help="Write a summary for a pull request (Markdown)."),
]
Junit = Annotated[
    Path | None,
    typer.Option(
        "--junit", metavar="PATH", help="Write claim, gates and checks as test results (JUnit XML)."
    ),
]
Sarif = Annotated[
    Path | None,
    typer.Option("--sarif", metavar="PATH", help="Write what needs a look as SARIF 2.1.0, for code hosts."),
]
Ranking = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Write the records by how exposed they look (.csv or .parquet)."),
]
Seed = Annotated[int, typer.Option(help="Of everything random.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, if asked for).")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
