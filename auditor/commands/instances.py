"""The command `auditor instances`: several models of one training algorithm."""

from pathlib import Path
from typing import Annotated

import typer

from auditor.commands import arguments, claim_arguments, configuration
from auditor.commands import options as given
from auditor.commands.options import SplitOption
from auditor.commands.outputs import explain
from auditor.gates import ExitCode
from auditor.values import Verdict

__all__ = ["instances"]


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
    found = configuration.recorded(found)
    arguments.write_text(found.to_json(), json=json, quiet=quiet, shown=several.text(found))
    if found.verdict is not Verdict.REFUTED:
        return int(ExitCode.DONE)
    explain(["The claim is refuted.", *(item.reason for item in found.comparisons if item.reason)])
    return int(ExitCode.FAILED)
