"""The command line: parse, call, write, exit code; no mathematics."""

import shlex
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor import console
from auditor._version import __version__
from auditor.choices import (
    DPSGD,
    Adjacency,
    BernoulliSplit,
    Census,
    MembershipSplit,
    RandomSplit,
    Sample,
    StatedClaim,
    TrainingClaim,
    UnknownSplit,
)
from auditor.errors import InputError
from auditor.gates import ExitCode, exit_code, parse
from auditor.report.files import check_writable, write_all

__all__ = ["main", "run"]

app = typer.Typer(
    name="auditor",
    help="Measure what a trained model gives away about its training records, and set it beside what is claimed.",
    epilog="Exit codes: 0 done; 1 a gate failed or the claim is refuted; 2 bad input; 3 a gate cannot be evaluated.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class MembersOption(StrEnum):
    """What the scored members are."""

    CENSUS = "census"
    SAMPLE = "sample"


class SplitOption(StrEnum):
    """How membership was decided."""

    UNKNOWN = "unknown"
    RANDOM = "random"
    BERNOULLI = "bernoulli"


# The command line as given, for the provenance of what it makes.
_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())

_JSON = typer.Option("--json", metavar="PATH", help="Write the result as JSON; - for standard output.")
_HTML = typer.Option("--html", metavar="PATH", help="Write the report as one offline HTML page.")
_QUIET = typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, if asked for).")
_DEBUG = typer.Option("--debug", help="Show the traceback of an error.")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        console.say(f"auditor {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        console.say(context.get_help() + "\n")


@app.command()
def demo(
    html: Annotated[Path, _HTML] = Path("auditor-demo.html"),
    seed: Annotated[int, typer.Option(help="Of the split, the training and the audits.")] = 0,
    quiet: Annotated[bool, _QUIET] = False,
    debug: Annotated[bool, _DEBUG] = False,  # noqa: ARG001 - read by run()
) -> None:
    """Audit two classifiers on data that comes with scikit-learn, and write one page comparing them."""
    from auditor import demo as example
    from auditor.report import html as page
    from auditor.report.table import text

    check_writable([html])
    results = example.run(seed=seed, announce=console.announcer(quiet=quiet))
    write_all({html: page.render(results, title="Privacy audit: two classifiers on the digits data")})
    if not quiet:
        for result in results:
            console.say(text(result, width=console.width(), color=console.colour()) + "\n")
    console.say(f"Report: {html.resolve()}\n")


@app.command()
def audit(
    losses: Annotated[
        Path | None, typer.Argument(help="Table of losses (.csv, .parquet, .npz) with a membership column.")
    ] = None,
    member_file: Annotated[
        Path | None, typer.Option(help="Table of member losses, instead of LOSSES.")
    ] = None,
    nonmember_file: Annotated[Path | None, typer.Option(help="Table of non-member losses.")] = None,
    loss_column: Annotated[str, typer.Option(help="Column of losses.")] = "loss",
    member_column: Annotated[str, typer.Option(help="Column of membership, 0 or 1.")] = "member",
    higher_is_member: Annotated[
        bool,
        typer.Option("--higher-is-member", help="The column is a score: larger means more like a member."),
    ] = False,
    delta: Annotated[float | None, typer.Option(help="Default: the claim's, otherwise 1/(n ln n).")] = None,
    confidence: Annotated[float, typer.Option(help="Of every interval.")] = 0.95,
    members: Annotated[
        MembersOption, typer.Option(help="Whether every training record was scored, or a sample.")
    ] = MembersOption.SAMPLE,
    training_size: Annotated[
        int | None, typer.Option(help="Number of training records; default: number of member losses.")
    ] = None,
    split: Annotated[SplitOption, typer.Option(help="How membership was decided.")] = SplitOption.UNKNOWN,
    inclusion: Annotated[
        float | None, typer.Option(help="Probability of inclusion, for --split bernoulli.")
    ] = None,
    claim_epsilon: Annotated[float | None, typer.Option(help="Claimed epsilon.")] = None,
    claim_delta: Annotated[float | None, typer.Option(help="Delta of the claim.")] = None,
    claim_adjacency: Annotated[
        Adjacency | None, typer.Option(help="Of the claim; default: add-remove.")
    ] = None,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Claimed DP-SGD: noise over clipping norm.")
    ] = None,
    sampling_rate: Annotated[
        float | None, typer.Option(help="Claimed DP-SGD: chance that a record is in a step.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Claimed DP-SGD: number of steps.")] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help="Exit 1 when true, such as 'epsilon_star.gaussian > 1'; repeatable."),
    ] = None,
    model_name: Annotated[str | None, typer.Option(help="Name of the model, for the report.")] = None,
    html: Annotated[Path | None, _HTML] = None,
    json: Annotated[str | None, _JSON] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    quiet: Annotated[bool, _QUIET] = False,
    debug: Annotated[bool, _DEBUG] = False,  # noqa: ARG001 - read by run()
) -> int:
    """Audit a model from a table of per-record losses (smaller means a better prediction)."""
    from auditor import pipeline

    gates = [parse(text) for text in fail_if or []]
    _check_outputs(html, json, inputs=(losses, member_file, nonmember_file))
    claim = _claim(
        {
            "--claim-epsilon": claim_epsilon,
            "--claim-delta": claim_delta,
            "--claim-adjacency": claim_adjacency,
        },
        {"--noise-multiplier": noise_multiplier, "--sampling-rate": sampling_rate, "--steps": steps},
    )
    declared = _split(split, inclusion)
    announce = console.announcer(quiet=quiet)
    announce("Reading losses ...")
    source, collected = _read(
        losses, member_file, nonmember_file, loss_column, member_column, higher_is_member
    )
    announce("Auditing ...")
    result = pipeline.audit(
        collected,
        delta=delta,
        confidence=confidence,
        members=Census() if members is MembersOption.CENSUS else Sample(),
        split=declared,
        claim=claim,
        training_size=training_size,
        seed=seed,
        model=model_name,
        source=source,
        command=shlex.join(["auditor", *_ARGUMENTS.get()]),
    )
    code = exit_code(result, gates)
    _write(result, html=html, json=json, quiet=quiet)
    return int(code)


@app.command()
def claim(
    noise_multiplier: Annotated[float, typer.Option(help="Noise standard deviation over the clipping norm.")],
    sampling_rate: Annotated[float, typer.Option(help="Chance that a record is in a step.")],
    steps: Annotated[int, typer.Option(help="Number of steps.")],
    delta: Annotated[float, typer.Option(help="Delta to state the epsilon at.")],
    json: Annotated[str | None, _JSON] = None,
    quiet: Annotated[bool, _QUIET] = False,
    debug: Annotated[bool, _DEBUG] = False,  # noqa: ARG001 - read by run()
) -> None:
    """Print what a DP-SGD training description promises."""
    from auditor import theory
    from auditor.report import claims as shown

    _check_outputs(None, json)
    description = DPSGD(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, steps=steps)
    claims = theory.claims(description, delta=delta)
    if json is not None:
        text = shown.to_json(description, claims)
        console.say(text) if json == "-" else write_all({Path(json): text})
    if json != "-" and not quiet:
        console.say(shown.text(description, claims, width=console.width(), color=console.colour()) + "\n")


def _check_outputs(html: Path | None, json: str | None, *, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse outputs that cannot be written before any work is done."""
    if str(html) == "-":
        raise InputError(
            "--html - is not offered: the page goes to a file; name one, or use --json - for the data."
        )
    paths = [] if html is None else [html]
    paths += [] if json in (None, "-") else [Path(str(json))]
    check_writable(paths, inputs=[path for path in inputs if path is not None])


def _claim(stated: dict[str, Any], trained: dict[str, Any]) -> TrainingClaim | None:
    """One claim or none: stated in epsilon and delta, or as a DP-SGD description."""
    by_words = {name for name, value in stated.items() if value is not None}
    by_training = {name for name, value in trained.items() if value is not None}
    if by_words and by_training:
        raise InputError(
            f"one claim at a time: {', '.join(sorted(by_words))} states an epsilon and"
            f" {', '.join(sorted(by_training))} describes DP-SGD; give one of the two."
        )
    if by_training:
        missing = sorted(set(trained) - by_training)
        if missing:
            raise InputError(f"a DP-SGD claim needs {', '.join(trained)}; missing: {', '.join(missing)}.")
        return DPSGD(*trained.values())
    if by_words:
        missing = [name for name in ("--claim-epsilon", "--claim-delta") if stated[name] is None]
        if missing:
            raise InputError(
                f"a stated claim needs --claim-epsilon and --claim-delta (0 for pure differential privacy);"
                f" missing: {', '.join(missing)}."
            )
        epsilon, delta, adjacency = stated.values()
        return StatedClaim(epsilon, delta, adjacency or Adjacency.ADD_REMOVE)
    return None


def _split(split: SplitOption, inclusion: float | None) -> MembershipSplit:
    if (split is SplitOption.BERNOULLI) != (inclusion is not None):
        raise InputError(
            "--split bernoulli and --inclusion go together: give the probability of inclusion, in (0, 1)."
        )
    if split is SplitOption.BERNOULLI and inclusion is not None:
        return BernoulliSplit(inclusion)
    return RandomSplit() if split is SplitOption.RANDOM else UnknownSplit()


def _read(
    losses: Path | None,
    member_file: Path | None,
    nonmember_file: Path | None,
    loss_column: str,
    member_column: str,
    higher_is_member: bool,  # noqa: FBT001
) -> tuple[str, Any]:
    """The losses and where they come from: one table, or one for each group."""
    from auditor import collectors

    options: dict[str, Any] = {"loss_column": loss_column, "higher_is_member": higher_is_member}
    if losses is not None and member_file is None and nonmember_file is None:
        return losses.name, collectors.read_losses(losses, member_column=member_column, **options)
    if losses is None and member_file is not None and nonmember_file is not None:
        read = collectors.read_loss_pair(member_file, nonmember_file, member_column=member_column, **options)
        return f"{member_file.name} (members), {nonmember_file.name} (non-members)", read
    raise InputError("give either one LOSSES table, or both --member-file and --nonmember-file.")


def _write(result: Any, *, html: Path | None, json: str | None, quiet: bool) -> None:
    """Make every text first, so that the files appear together or not at all; then print."""
    from auditor.report.table import text

    texts = {} if html is None else {html: result.to_html()}
    as_json = "" if json is None else result.to_json()
    if json not in (None, "-"):
        texts[Path(str(json))] = as_json
    write_all(texts)
    if json == "-":
        console.say(as_json)
    elif not quiet:
        console.say(text(result, width=console.width(), color=console.colour()) + "\n")


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; an error is one sentence on standard error and code 2."""
    _ARGUMENTS.set(tuple(arguments))
    try:
        return int(app(args=list(arguments), prog_name="auditor", standalone_mode=False) or 0)
    except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence
        console.complain(error, arguments=arguments)
        return ExitCode.BAD_INPUT


def main() -> None:
    """Run the command line on the process's own arguments."""
    console.forgive_unknown_signs()
    sys.exit(run(sys.argv[1:]))
