"""The command line: parse, call, write, exit code; no mathematics."""

import shlex
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

import typer

from auditor import arguments, claim_arguments, console
from auditor import options as given
from auditor._version import __version__
from auditor.choices import Adjacency, Melded, RankGrid
from auditor.collect_command import collect
from auditor.gates import ExitCode, exit_code, parse
from auditor.options import MembersOption, MethodOption, SplitOption
from auditor.report.files import check_writable, write_all
from auditor.values import Verdict

__all__ = ["main", "run"]

app = typer.Typer(
    name="auditor",
    help="Measure what a trained model gives away about its training records, and set it beside what is claimed.",
    epilog="Exit codes: 0 done; 1 a gate failed or the claim is refuted; 2 bad input; 3 a gate cannot be evaluated.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

# The command line as given, for the provenance of what it makes.
_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


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
    html: Annotated[
        Path, typer.Option("--html", metavar="PATH", help="Write the report as one offline HTML page.")
    ] = Path("auditor-demo.html"),
    seed: Annotated[int, typer.Option(help="Of the split, the training and the audits.")] = 0,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
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


app.command()(collect)


@app.command()
def audit(
    losses: given.LossTable = None,
    member_file: given.MemberFile = None,
    nonmember_file: given.NonmemberFile = None,
    loss_column: given.LossColumn = "loss",
    member_column: given.MemberColumn = "member",
    id_column: given.IdColumn = "id",
    group_column: given.GroupColumn = "group",
    person_column: given.PersonColumn = "person",
    label_column: given.LabelColumn = None,
    higher_is_member: given.HigherIsMember = False,
    features: given.Features = None,
    reference: given.Reference = None,
    delta: given.Delta = None,
    confidence: given.Confidence = 0.95,
    members: given.Members = MembersOption.SAMPLE,
    training_size: given.TrainingSize = None,
    persons: given.Persons = None,
    split: given.Split = SplitOption.UNKNOWN,
    stratified: given.Stratified = False,
    inclusion: given.Inclusion = None,
    one_run_test: given.OneRunTest = None,
    melded: given.Melded = False,
    mixture: given.Mixture = False,
    max_components: given.MaxComponents = None,
    claim_epsilon: given.ClaimEpsilon = None,
    claim_delta: given.ClaimDelta = None,
    claim_adjacency: given.ClaimAdjacency = None,
    noise_multiplier: given.NoiseMultiplier = None,
    sampling_rate: given.SamplingRate = None,
    steps: given.Steps = None,
    schedule: given.Schedule = None,
    fixed_size: given.FixedSize = False,
    fail_if: given.FailIf = None,
    model_name: given.ModelName = None,
    html: given.Html = None,
    json: given.Json = None,
    ranking: given.Ranking = None,
    seed: given.Seed = 0,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> int:
    """Audit a model from a table of per-record losses (smaller means a better prediction)."""
    from auditor import pipeline

    gates = [parse(text) for text in fail_if or []]
    inputs = (losses, member_file, nonmember_file, reference, schedule)
    arguments.check_outputs(html, json, others=(ranking,), inputs=inputs)
    arguments.check_ranking(ranking)
    claim = claim_arguments.claim(
        claim_epsilon,
        claim_delta,
        claim_adjacency,
        noise_multiplier,
        sampling_rate,
        steps,
        schedule,
        fixed_size=fixed_size,
    )
    declared = arguments.split(split, inclusion=inclusion, stratified=stratified)
    announce = console.announcer(quiet=quiet)
    announce("Reading losses ...")
    columns = {
        "loss_column": loss_column,
        "member_column": member_column,
        "id_column": id_column,
        "group_column": group_column,
        "person_column": person_column,
        "label_column": label_column,
        "higher_is_member": higher_is_member,
    }
    source, collected = arguments.read(losses, member_file, nonmember_file, **columns)
    announce("Auditing ...")
    with console.progress("Fitting mixtures", quiet=quiet) as progress:
        result = pipeline.audit(
            collected,
            delta=delta,
            confidence=confidence,
            members=arguments.members(members, training_size=training_size),
            split=declared,
            claim=claim,
            training_size=training_size,
            persons=arguments.persons(persons),
            one_run_test=arguments.one_run_test(one_run_test, split=split),
            threshold=RankGrid(interval=Melded()) if melded else RankGrid(),
            mixture=arguments.mixture(max_components, asked=mixture),
            features=arguments.features(
                losses,
                member_file,
                nonmember_file,
                features,
                member_column=member_column,
                not_features=(loss_column, id_column, person_column),
            ),
            reference=None if reference is None else arguments.read(reference, None, None, **columns)[1],
            seed=seed,
            model=model_name,
            source=source,
            command=shlex.join(["auditor", *_ARGUMENTS.get()]),
            progress=progress,
        )
    code = exit_code(result, gates)
    more = arguments.ranking(collected, ranking, seed=seed)
    arguments.write(result, html=html, json=json, quiet=quiet, more=more)
    return int(code)


@app.command()
def claim(
    delta: Annotated[float, typer.Option(help="Delta to state epsilon at.")],
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Noise standard deviation over the clipping norm.")
    ] = None,
    sampling_rate: Annotated[float | None, typer.Option(help="Chance that a record is in a step.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps.")] = None,
    schedule: given.Schedule = None,
    fixed_size: given.FixedSize = False,
    fpr: Annotated[str, typer.Option(help="False positive rates, separated by commas.")] = "0.1,0.01,0.001",
    prior: Annotated[
        float, typer.Option(help="Chance that a record was in, before the attacker looks.")
    ] = 0.5,
    every_method: Annotated[
        bool, typer.Option("--every-method", help="Show each number by every method, not only by the best.")
    ] = False,
    compositions: Annotated[
        bool, typer.Option("--compositions", help="Add epsilon by every composition theorem.")
    ] = False,
    monte_carlo: Annotated[
        int | None, typer.Option(metavar="RUNS", help="Add the advantage by so many simulated runs.")
    ] = None,
    json: given.Json = None,
    seed: Annotated[int, typer.Option(help="Of --monte-carlo.")] = 0,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Print what a DP-SGD training description promises, for both kinds of neighbours; JSON has every method."""
    from auditor import theory
    from auditor.report import claims as shown

    arguments.check_outputs(None, json, inputs=(schedule,))
    rates = claim_arguments.false_positive_rates(fpr)
    description = claim_arguments.training(
        noise_multiplier, sampling_rate, steps, schedule, fixed_size=fixed_size
    )
    with console.progress("Simulating", quiet=quiet) as progress:
        more = claim_arguments.more_claims(
            description,
            delta=delta,
            compositions=compositions,
            runs=monte_carlo,
            seed=seed,
            progress=progress,
        )
    claims = theory.overview(description, delta=delta, rates=rates, prior=prior)
    sentences = theory.in_words(claims, rates=rates, prior=prior)
    table = shown.text(
        description,
        claims if every_method else theory.leading(claims),
        more=more,
        sentences=sentences,
        width=console.width(),
        color=console.colour(),
    )
    whole = shown.to_json(description, (*claims, *more), delta=delta, prior=prior, sentences=sentences)
    arguments.write_text(whole, json=json, quiet=quiet, shown=table + "\n")


@app.command()
def parameters(
    advantage: Annotated[float | None, typer.Option(help="Largest wanted advantage (TPR - FPR).")] = None,
    bayes_security: Annotated[float | None, typer.Option(help="Smallest wanted Bayes security.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Largest wanted epsilon, with --delta.")] = None,
    delta: Annotated[float | None, typer.Option(help="Delta of the wanted epsilon.")] = None,
    tpr: Annotated[
        float | None, typer.Option(help="Largest wanted true positive rate, with --at-fpr.")
    ] = None,
    at_fpr: Annotated[float | None, typer.Option(help="False positive rate of the wanted TPR.")] = None,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="Noise standard deviation over the clipping norm.")
    ] = None,
    sampling_rate: Annotated[float | None, typer.Option(help="Chance that a record is in a step.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps.")] = None,
    adjacency: Annotated[
        Adjacency | None, typer.Option(help="Default: replace-one; for an epsilon add-remove.")
    ] = None,
    fixed_size: given.FixedSize = False,
    method: Annotated[
        MethodOption, typer.Option(help="Exact, or one of the closed forms (approximate).")
    ] = MethodOption.EXACT,
    json: given.Json = None,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Find the noise multiplier, sampling rate or number of steps that keeps a wanted promise, from the other two."""
    from auditor.report import claims as shown

    arguments.check_outputs(None, json)
    target = claim_arguments.wanted(
        adjacency,
        advantage=advantage,
        bayes_security=bayes_security,
        epsilon=epsilon,
        delta=delta,
        tpr=tpr,
        at_fpr=at_fpr,
    )
    found = claim_arguments.parameter(
        target, noise_multiplier, sampling_rate, steps, fixed_size=fixed_size, method=method
    )
    arguments.write_text(shown.found_to_json(found), json=json, quiet=quiet, shown=found.in_words() + "\n")


@app.command()
def instances(
    results: Annotated[
        list[Path],
        typer.Argument(help="Results of audits (.json), one for each model that the same algorithm trained."),
    ],
    split: given.Split = SplitOption.UNKNOWN,
    delta: given.InstancesDelta = None,
    confidence: given.Confidence = 0.95,
    claim_epsilon: given.ClaimEpsilon = None,
    claim_delta: given.ClaimDelta = None,
    claim_adjacency: given.ClaimAdjacency = None,
    noise_multiplier: given.NoiseMultiplier = None,
    sampling_rate: given.SamplingRate = None,
    steps: given.Steps = None,
    schedule: given.Schedule = None,
    fixed_size: given.FixedSize = False,
    json: given.Json = None,
    seed: given.Seed = 0,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> int:
    """Audit a training algorithm from several models that it trained, each on a fresh random split."""
    from auditor import instances as several
    from auditor.reading import read_result

    arguments.check_outputs(None, json, inputs=(*results, schedule))
    claim = claim_arguments.claim(
        claim_epsilon,
        claim_delta,
        claim_adjacency,
        noise_multiplier,
        sampling_rate,
        steps,
        schedule,
        fixed_size=fixed_size,
    )
    found = several.audit_instances(
        [read_result(path) for path in results],
        delta=claim_arguments.needed_delta(delta, claim),
        confidence=confidence,
        split=arguments.split(split, inclusion=None),
        claim=claim,
        seed=seed,
    )
    arguments.write_text(found.to_json(), json=json, quiet=quiet, shown=several.text(found))
    return int(ExitCode.FAILED if found.verdict is Verdict.REFUTED else ExitCode.DONE)


@app.command()
def power(
    epsilon: Annotated[float, typer.Option(help="Epsilon to certify.")],
    delta: Annotated[float, typer.Option(help="Delta to certify it at.")],
    confidence: given.Confidence = 0.95,
    members: given.Members = MembersOption.SAMPLE,
    training_size: given.TrainingSize = None,
    split: given.Split = SplitOption.UNKNOWN,
    inclusion: given.Inclusion = None,
    mu: Annotated[
        float | None,
        typer.Option(help="Assume scores of two normals so many standard deviations apart."),
    ] = None,
    attack_epsilon: Annotated[
        float | None, typer.Option(help="Assume guesses as right as randomised response of this epsilon.")
    ] = None,
    chance: Annotated[float, typer.Option(help="Chance of certifying it that is wanted.")] = 0.8,
    json: given.Json = None,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> int:
    """Plan an audit: how many records certify a given epsilon, if the attack is as good as assumed (default: perfect)."""
    import json as encoder

    from auditor import planning

    arguments.check_outputs(None, json)
    plan = planning.records_needed(
        epsilon,
        delta=delta,
        confidence=confidence,
        members=arguments.members(members, training_size=training_size, only_subset=True),
        split=arguments.split(split, inclusion=inclusion),
        attack=arguments.attack(mu, attack_epsilon),
        power=chance,
    )
    text = encoder.dumps(plan.to_dict(), indent=2, allow_nan=False) + "\n"
    arguments.write_text(text, json=json, quiet=quiet, shown=planning.plan_text(plan))
    return int(ExitCode.NOT_EVALUABLE if plan.n_member is None else ExitCode.DONE)


@app.command()
def calibration(
    runs: Annotated[int, typer.Option(help="Runs of each bound, law and size.")] = 1000,
    sizes: Annotated[str, typer.Option(help="Records in each group, separated by commas.")] = "100,1000",
    confidence: given.Confidence = 0.95,
    bounds: Annotated[
        str | None, typer.Option(help="Names of bounds, separated by commas; default: all.")
    ] = None,
    json: given.Json = None,
    seed: given.Seed = 0,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> int:
    """Measure how often every bound misses on laws whose truth is known, and print the table (Markdown)."""
    from auditor.calibration import calibrate

    arguments.check_outputs(None, json)
    table = calibrate(
        runs=runs,
        sizes=arguments.whole_numbers("--sizes", sizes),
        confidence=confidence,
        seed=seed,
        bounds=None if bounds is None else arguments.names("--bounds", bounds),
        announce=console.announcer(quiet=quiet),
    )
    arguments.write_text(table.to_json(), json=json, quiet=quiet, shown=table.to_markdown())
    return int(ExitCode.DONE if table.ok else ExitCode.FAILED)


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
