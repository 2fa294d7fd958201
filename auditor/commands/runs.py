"""The command `auditor runs`: many runs of one training algorithm, with a canary and without."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.choices import Adjacency, FixedThreshold, RankGrid, Split, ThresholdRule
from auditor.commands import arguments, claim_arguments, configuration
from auditor.commands import options as given
from auditor.commands.invocation import command_line
from auditor.commands.outputs import explain
from auditor.errors import InputError
from auditor.gates import ExitCode
from auditor.values import Verdict

if TYPE_CHECKING:
    from auditor.runs import RunsResult

__all__ = ["runs"]

_Table = Annotated[
    Path,
    typer.Argument(
        help="Table with one score for each run (.csv, .parquet, .npz, .arrow) and whether it was with the canary."
    ),
]
_LossColumn = Annotated[str, typer.Option(help="Column of scores; smaller means more like with the canary.")]
_MemberColumn = Annotated[str, typer.Option(help="Column that is 1 for runs with the canary and 0 without.")]
_HigherIsMember = Annotated[
    bool, typer.Option("--higher-is-member", help="A larger score means more like with the canary.")
]
_Worlds = Annotated[
    Adjacency,
    typer.Option(help="What the runs differ by: the canary is there or not, or another record in its place."),
]
_Threshold = Annotated[
    float | None,
    typer.Option(help="Threshold on the score, chosen without any of these runs; default: on half of them."),
]
_ThresholdRuns = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Other runs, which choose the threshold.")
]
_RankGrid = Annotated[
    bool, typer.Option("--rank-grid", help="Certify at many ranks at once; gives the certified bound alone.")
]


def runs(
    table: _Table,
    loss_column: _LossColumn = "loss",
    member_column: _MemberColumn = "member",
    higher_is_member: _HigherIsMember = False,
    adjacency: _Worlds = Adjacency.ADD_REMOVE,
    delta: given.InstancesDelta = None,
    confidence: given.Confidence = 0.95,
    threshold: _Threshold = None,
    threshold_runs: _ThresholdRuns = None,
    rank_grid: _RankGrid = False,
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
    """Audit a training algorithm from many runs of it, with a canary and without.

    Fix the number of runs before you look: a bound that is looked at until it refutes does not hold.
    """
    from auditor import collectors
    from auditor import runs as many

    arguments.check_outputs(None, json, inputs=(table, threshold_runs, schedule))
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
    # Scores that are larger with the canary are negated when they are read, and so is their threshold.
    cut = -threshold if threshold is not None and higher_is_member else threshold
    chosen = _rule(cut, threshold_runs, rank_grid=rank_grid, seed=seed)

    read = functools.partial(
        collectors.read_losses,
        loss_column=loss_column,
        member_column=member_column,
        higher_is_member=higher_is_member,
    )
    found = many.audit_runs(
        read(table),
        delta=claim_arguments.needed_delta(delta, claim),
        confidence=confidence,
        adjacency=adjacency,
        claim=claim,
        threshold=chosen,
        threshold_runs=None if threshold_runs is None else read(threshold_runs),
    )
    found = configuration.recorded(_from_here(found, table, higher_is_member=higher_is_member))
    arguments.write_text(found.to_json(), json=json, quiet=quiet, shown=many.text(found))
    if found.verdict is not Verdict.REFUTED:
        return int(ExitCode.DONE)
    explain(["The claim is refuted.", *(item.reason for item in found.comparisons if item.reason)])
    return int(ExitCode.FAILED)


def _rule(threshold: float | None, others: Path | None, *, rank_grid: bool, seed: int) -> ThresholdRule:
    """How the threshold is chosen; one way at a time."""
    ways = {
        "--threshold": threshold is not None,
        "--threshold-runs": others is not None,
        "--rank-grid": rank_grid,
    }
    asked = [name for name, wanted in ways.items() if wanted]
    if len(asked) > 1:
        raise InputError(f"one way to choose the threshold at a time: give {asked[0]} or {asked[1]}.")
    if threshold is not None:
        return FixedThreshold(threshold)
    if others is not None:
        return Split()
    return RankGrid() if rank_grid else Split(seed=seed)


def _from_here(found: "RunsResult", table: Path, *, higher_is_member: bool) -> "RunsResult":
    """The same result, which says which file and which command line it comes from, and what its scores are."""
    origin = {**found.provenance, "source": table.name, "command": command_line()}
    data = {**found.data, **({"higher_is_member": True} if higher_is_member else {})}
    return dataclasses.replace(found, data=data, provenance=origin)
