"""The command `auditor claim`: what a training description promises."""

from typing import Annotated

import typer

from auditor.commands import arguments, claim_arguments, console
from auditor.commands import options as given

__all__ = ["claim"]


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
    seed: Annotated[int, typer.Option(help="Seed of --monte-carlo.")] = 0,
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
