"""The command `auditor power`: how many records an audit takes."""

from typing import Annotated

import typer

from auditor.commands import arguments
from auditor.commands import options as given
from auditor.commands.options import MembersOption, SplitOption
from auditor.gates import ExitCode

__all__ = ["power"]


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
