"""The command `auditor parameters`: the training that keeps a promise."""

from typing import Annotated

import typer

from auditor.choices import Adjacency
from auditor.commands import arguments, claim_arguments
from auditor.commands import options as given
from auditor.commands.options import MethodOption

__all__ = ["parameters"]


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
