"""The commands about a training algorithm: what it promises, what several models or many runs show, and planning."""

import dataclasses
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli import console, options as shared, settings
from auditor.cli.console import command_line
from auditor.cli.options import ClaimOptions, Common, MembersOption, Options, SplitOption, flag, option
from auditor.cli.outputs import JsonFile, ResultFile, explain
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.options import Adjacency, FixedThreshold, RankGrid, Split, ThresholdRule
from auditor.core.training import DPSGD, FixedSizeSampling, PoissonSampling
from auditor.core.values import Claim, Verdict
from auditor.verdicts.gates import ExitCode

if TYPE_CHECKING:
    from auditor.api import InstancesResult, RunsResult


# --- The commands `auditor claim`, what a training promises, and `auditor parameters`, the training that keeps a promise ---


_NoiseMultiplier = Annotated[
    float | None, typer.Option(help="Noise standard deviation over the clipping norm.")
]
_SamplingRate = Annotated[float | None, typer.Option(help="Chance that a record is in a step.")]
_Steps = Annotated[int | None, typer.Option(help="Number of steps.")]


# --- What a training promises ---


@dataclass(frozen=True)
class _Training(Options):
    """A DP-SGD description."""

    noise_multiplier: _NoiseMultiplier = None
    sampling_rate: _SamplingRate = None
    steps: _Steps = None
    schedule: shared.Schedule = None
    fixed_size: shared.FixedSize = False


@dataclass(frozen=True)
class _More(Options):
    """What is told beyond the best proven numbers."""

    every_method: bool = flag("Show each number by every method, not only by the best.")
    compositions: bool = flag("Add epsilon by every composition theorem.")
    monte_carlo: int | None = option("Add the advantage by so many simulated runs.", metavar="RUNS")

    def claims(self, training: DPSGD, *, delta: float, seed: int, progress: Any) -> tuple[Claim, ...]:
        """Return epsilon by every composition theorem, and the advantage by simulation, as asked for."""
        import numpy as np

        from auditor import theory

        found: list[Claim] = []
        rng = np.random.default_rng(validate.at_least("--seed", seed, least=0))
        for adjacency in Adjacency:
            if self.compositions:
                found += theory.compare_compositions(training, delta=delta, adjacency=adjacency)
            if self.monte_carlo is not None:
                samples = validate.at_least("--monte-carlo", self.monte_carlo, least=2)
                found.append(
                    theory.total_variation_monte_carlo(
                        training, adjacency=adjacency, samples=samples, rng=rng, progress=progress
                    )
                )
        return tuple(found)


def claim(
    *,
    delta: Annotated[float, typer.Option(help="Delta to state epsilon at.")],
    training: _Training,
    fpr: Annotated[str, typer.Option(help="False positive rates, separated by commas.")] = "0.1,0.01,0.001",
    prior: Annotated[
        float, typer.Option(help="Chance that a record was in, before the attacker looks.")
    ] = 0.5,
    more: _More,
    files: JsonFile,
    seed: Annotated[int, typer.Option(help="Seed of --monte-carlo.")] = 0,
    common: Common,
) -> None:
    """Print what a DP-SGD training description promises, for both kinds of neighbours; JSON has every method."""
    from auditor import theory
    from auditor.report.terminal import claims_text, to_json

    files.check(inputs=(training.schedule,))
    rates = _false_positive_rates(fpr)
    description = shared.training(**vars(training))
    with console.progress("Simulating", quiet=common.quiet) as progress:
        further = more.claims(description, delta=delta, seed=seed, progress=progress)
    claims = theory.overview(description, delta=delta, rates=rates, prior=prior)
    sentences = theory.in_words(claims, rates=rates, prior=prior)
    table = claims_text(
        description,
        claims if more.every_method else theory.leading(claims),
        more=further,
        sentences=sentences,
        width=console.width(),
        color=console.colour(),
    )
    whole = to_json(description, (*claims, *further), delta=delta, prior=prior, sentences=sentences)
    files.write(whole, shown=table + "\n", quiet=common.quiet)


def _false_positive_rates(text: str) -> tuple[float, ...]:
    """The rates between the commas, each once."""
    rates = [validate.fraction("--fpr", rate, one=True) for rate in shared.names("--fpr", text)]
    # Six digits, as the names of the quantities show them.
    return tuple(dict.fromkeys(float(f"{rate:g}") for rate in rates))


# --- The training that keeps a promise ---


class _MethodOption(StrEnum):
    """How a promise follows from the parameters of a training run."""

    EXACT = "exact"
    CLOSED_FORM = "closed-form"
    MOMENT_MATCHED = "moment-matched"


@dataclass(frozen=True)
class _Wish(Options):
    """The one promise that is wanted."""

    advantage: float | None = option("Largest wanted advantage (TPR - FPR).")
    bayes_security: float | None = option("Smallest wanted Bayes security.")
    epsilon: float | None = option("Largest wanted epsilon, with --delta.")
    delta: float | None = option("Delta of the wanted epsilon.")
    tpr: float | None = option("Largest wanted true positive rate, with --at-fpr.")
    at_fpr: float | None = option("False positive rate of the wanted TPR.")

    def promise(self, adjacency: Adjacency | None) -> Any:
        """Return the promise as a value."""
        from auditor import theory

        wishes = ("advantage", "bayes_security", "epsilon", "tpr")
        made = [shared.spelled(name) for name in wishes if getattr(self, name) is not None]
        if len(made) != 1:
            raise InputError(
                f"one wish at a time: give one of {', '.join(map(shared.spelled, wishes))},"
                f" got {', '.join(made) or 'none'}."
            )
        for wish, beside, value in (("--epsilon", "--delta", self.delta), ("--tpr", "--at-fpr", self.at_fpr)):
            if (wish in made) != (value is not None):
                raise InputError(f"{wish} and {beside} go together: give both or neither.")
        chosen: dict[str, Any] = {} if adjacency is None else {"adjacency": adjacency}
        if self.advantage is not None:
            return theory.WantedAdvantage(self.advantage, **chosen)
        if self.bayes_security is not None:
            return theory.WantedBayesSecurity(self.bayes_security, **chosen)
        if self.epsilon is not None and self.delta is not None:
            return theory.WantedEpsilon(self.epsilon, self.delta, **chosen)
        rates: dict[str, Any] = {"most": self.tpr, "at_fpr": self.at_fpr}
        return theory.WantedTPR(**rates, **chosen)


@dataclass(frozen=True)
class _Parameters(Options):
    """Two of three parameters."""

    noise_multiplier: _NoiseMultiplier = None
    sampling_rate: _SamplingRate = None
    steps: _Steps = None

    def third(self, wanted: Any, *, fixed_size: bool, method: _MethodOption) -> Any:
        """Return the parameter that was left out, found for the promise."""
        from auditor import theory

        methods = {
            _MethodOption.EXACT: theory.Exact(),
            _MethodOption.CLOSED_FORM: theory.Corollary7(),
            _MethodOption.MOMENT_MATCHED: theory.MomentMatched(),
        }
        finders: dict[str, Any] = {
            "noise_multiplier": theory.noise_multiplier_for,
            "sampling_rate": theory.sampling_rate_for,
            "steps": theory.steps_for,
        }
        given = {name: value for name, value in vars(self).items() if value is not None}
        missing = [name for name in finders if name not in given]
        if len(missing) != 1:
            options = ", ".join(map(shared.spelled, finders))
            raise InputError(f"give two of {options}, and the third is found; got {len(given)}.")
        sampling = FixedSizeSampling() if fixed_size else PoissonSampling()
        return finders[missing[0]](wanted, **given, sampling=sampling, method=methods[method])


def parameters(
    *,
    wish: _Wish,
    given: _Parameters,
    adjacency: Annotated[
        Adjacency | None, typer.Option(help="Default: replace-one; for an epsilon add-remove.")
    ] = None,
    fixed_size: shared.FixedSize = False,
    method: Annotated[
        _MethodOption, typer.Option(help="Exact, or one of the closed forms (approximate).")
    ] = _MethodOption.EXACT,
    files: JsonFile,
    common: Common,
) -> None:
    """Find the noise multiplier, sampling rate or number of steps that keeps a wanted promise, from the other two."""
    from auditor.report.terminal import found_to_json

    files.check()
    found = given.third(wish.promise(adjacency), fixed_size=fixed_size, method=method)
    files.write(found_to_json(found), shown=found.in_words() + "\n", quiet=common.quiet)


# --- The commands about a training algorithm: `auditor instances`, `auditor runs`, and `auditor power`, which plans audits ---


def _exit(found: "InstancesResult | RunsResult") -> int:
    """The exit code of a result about a training algorithm, explained where it is not 0."""
    if found.verdict is not Verdict.REFUTED:
        return int(ExitCode.DONE)
    explain(["The claim is refuted.", *(item.reason for item in found.comparisons if item.reason)])
    return int(ExitCode.FAILED)


# --- Several models of one training algorithm ---


@dataclass(frozen=True)
class _Splits(Options, title="How the records were chosen"):
    """How the membership of every model was decided."""

    split: shared.SplitChoice = SplitOption.UNKNOWN


@dataclass(frozen=True)
class _Measured(Options, title="What is measured"):
    """At which delta and confidence."""

    delta: shared.DeltaOfClaim = None
    confidence: shared.Confidence = 0.95


@dataclass(frozen=True)
class _SeededMeasured(_Measured, title="What is measured"):
    """The same, where something is drawn at random."""

    seed: shared.Seed = 0


def instances(
    results: Annotated[
        list[Path],
        typer.Argument(help="Results of audits (.json), one for each model that the same algorithm trained."),
    ],
    splits: _Splits,
    measured: _SeededMeasured,
    claimed: ClaimOptions,
    files: ResultFile,
    common: Common,
) -> int:
    """Audit a training algorithm from several models that it trained, each on a fresh random split."""
    from auditor.api import audit_instances, read_result
    from auditor.report.terminal import algorithm_text

    files.check(inputs=(*results, claimed.schedule))
    claim = claimed.claim()
    found = audit_instances(
        [read_result(path) for path in results],
        delta=shared.delta_or_that_of(claim, measured.delta),
        confidence=measured.confidence,
        split=shared.split(splits.split),
        claim=claim,
        seed=measured.seed,
    )
    found = settings.recorded(found)
    files.write(found.to_json(), shown=algorithm_text(found), quiet=common.quiet)
    return _exit(found)


# --- Many runs of one training algorithm, with a canary and without ---


@dataclass(frozen=True)
class _ScoreTable(Options, title="The runs"):
    """A table with one score for each run."""

    table: Annotated[
        Path,
        typer.Argument(
            help="Table with one score for each run (.csv, .parquet, .npz, .arrow) and whether it was with the canary."
        ),
    ]
    loss_column: str = option("Column of scores; smaller means more like with the canary.", default="loss")
    member_column: str = option("Column that is 1 for runs with the canary and 0 without.", default="member")
    higher_is_member: bool = flag("A larger score means more like with the canary.")
    adjacency: Adjacency = option(
        "What the runs differ by: the canary is there or not, or another record in its place.",
        default=Adjacency.ADD_REMOVE,
    )

    def read(self, path: Path) -> Any:
        """Return the scores of a table of this form."""
        from auditor import collectors

        return collectors.read_losses(
            path,
            loss_column=self.loss_column,
            member_column=self.member_column,
            higher_is_member=self.higher_is_member,
        )


@dataclass(frozen=True)
class _ThresholdChoice(Options, title="How the threshold is chosen"):
    """One way to choose the threshold."""

    threshold: float | None = option(
        "Threshold on the score, chosen without any of these runs; default: on half of them."
    )
    threshold_runs: Path | None = option("Other runs, which choose the threshold.", metavar="FILE")
    rank_grid: bool = flag("Certify at many ranks at once; gives the certified bound alone.")
    seed: shared.Seed = 0

    def rule(self, *, higher_is_member: bool) -> ThresholdRule:
        """Return how the threshold is chosen; one way at a time."""
        ways = ("threshold", "threshold_runs", "rank_grid")
        asked = [shared.spelled(name) for name in ways if shared.is_given(getattr(self, name))]
        if len(asked) > 1:
            raise InputError(f"one way to choose the threshold at a time: give {asked[0]} or {asked[1]}.")
        if self.threshold is not None:
            # Scores that are larger with the canary are negated when they are read, and so is their threshold.
            return FixedThreshold(-self.threshold if higher_is_member else self.threshold)
        if self.threshold_runs is not None:
            return Split()
        return RankGrid() if self.rank_grid else Split(seed=self.seed)


def runs(
    scores: _ScoreTable,
    choice: _ThresholdChoice,
    measured: _Measured,
    claimed: ClaimOptions,
    files: ResultFile,
    common: Common,
) -> int:
    """Audit a training algorithm from many runs of it, with a canary and without.

    Fix the number of runs before you look: a bound that is looked at until it refutes does not hold.
    """
    from auditor.api import audit_runs
    from auditor.report.terminal import algorithm_text

    files.check(inputs=(scores.table, choice.threshold_runs, claimed.schedule))
    claim = claimed.claim()
    rule = choice.rule(higher_is_member=scores.higher_is_member)
    found = audit_runs(
        scores.read(scores.table),
        delta=shared.delta_or_that_of(claim, measured.delta),
        confidence=measured.confidence,
        adjacency=scores.adjacency,
        claim=claim,
        threshold=rule,
        threshold_runs=None if choice.threshold_runs is None else scores.read(choice.threshold_runs),
    )
    origin = {**found.provenance, "source": scores.table.name, "command": command_line()}
    told = {"higher_is_member": True} if scores.higher_is_member else {}
    found = dataclasses.replace(found, data={**found.data, **told}, provenance=origin)
    found = settings.recorded(found)
    files.write(found.to_json(), shown=algorithm_text(found), quiet=common.quiet)
    return _exit(found)


# --- How many records an audit takes ---


def power(
    *,
    epsilon: Annotated[float, typer.Option(help="Epsilon to certify.")],
    delta: Annotated[float, typer.Option(help="Delta to certify it at.")],
    confidence: shared.Confidence = 0.95,
    members: shared.MembersChoice = MembersOption.SAMPLE,
    training_size: shared.TrainingSize = None,
    split: shared.SplitChoice = SplitOption.UNKNOWN,
    inclusion: shared.Inclusion = None,
    mu: Annotated[
        float | None, typer.Option(help="Assume scores of two normals so many standard deviations apart.")
    ] = None,
    attack_epsilon: Annotated[
        float | None, typer.Option(help="Assume guesses as right as randomised response of this epsilon.")
    ] = None,
    chance: Annotated[float, typer.Option(help="Chance of certifying it that is wanted.")] = 0.8,
    files: JsonFile,
    common: Common,
) -> int:
    """Plan an audit: how many records certify a given epsilon, if the attack is as good as assumed (default: perfect)."""
    from auditor.mechanism.planning import records_needed
    from auditor.report.terminal import plan_text

    files.check()
    if training_size is not None and members is not MembersOption.SUBSET:
        raise InputError(
            "--training-size goes with --members subset: a plan for a sample does not depend on it."
        )
    plan = records_needed(
        epsilon,
        delta=delta,
        confidence=confidence,
        members=shared.members(members, training_size=training_size),
        split=shared.split(split, inclusion=inclusion),
        attack=_attack(mu, attack_epsilon),
        power=chance,
    )
    text = json.dumps(plan.to_dict(), indent=2, allow_nan=False) + "\n"
    files.write(text, shown=plan_text(plan), quiet=common.quiet)
    return int(ExitCode.NOT_EVALUABLE if plan.n_member is None else ExitCode.DONE)


def _attack(mu: float | None, epsilon: float | None) -> Any:
    """The attack that a plan assumes."""
    from auditor.mechanism.planning import GaussianAttack, PerfectAttack, RandomisedResponse

    if mu is not None and epsilon is not None:
        raise InputError("one attack at a time: give --mu or --attack-epsilon, not both.")
    if mu is not None:
        return GaussianAttack(mu)
    return PerfectAttack() if epsilon is None else RandomisedResponse(epsilon)
