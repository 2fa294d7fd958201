"""The commands about a training algorithm: what it promises, what several models or many runs show, and planning."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from auditor import theory
from auditor.cli import console, options as shared, settings
from auditor.cli.parsing import Of, Options, argument
from auditor.core import options as choices, validate
from auditor.core.errors import ExitCode, InputError
from auditor.core.values import Claim, Estimate, Subject
from auditor.results.document import ClaimResult, made_now

# --- The command `auditor claim`: what a training promises, or the training that keeps a promise ---

_SECONDS_PER_DRAW, _MINUTE = 1e-8, 60.0  # of one step of one simulated run, on one processor


@dataclass(frozen=True)
class _Promised(Options, title="What is shown"):
    """What is shown of a training, and at which numbers.

    Attributes:
        delta: Delta to state epsilon at.
        fpr: False positive rates, separated by commas.
        prior: Chance that a record was in, before the attacker looks; default: 0.5.
        every_method: Show each number by every method, not only by the best.
        compositions: Add epsilon by every composition theorem.
        monte_carlo: Add the advantage by so many simulated runs.
        seed: Seed of --monte-carlo.
    """

    delta: float | None = None
    fpr: str = "0.1,0.01,0.001"
    prior: float | None = None
    every_method: bool = False
    compositions: bool = False
    monte_carlo: int | None = None
    seed: int = 0

    def rates(self) -> tuple[float, ...]:
        """Return the rates between the commas, each once."""
        rates = [validate.fraction("--fpr", rate, one=True) for rate in shared.names("--fpr", self.fpr)]
        # Six digits, as the names of the quantities show them.
        return tuple(dict.fromkeys(float(f"{rate:g}") for rate in rates))

    def warnings(self, training: choices.DPSGD) -> list[str]:
        """Return how long the simulation takes, where that is a minute or more."""
        from auditor.collectors.streaming.engines import duration

        steps = sum(part.steps for part in training.phases if part.sampling_rate < 1)
        work = 2 * (self.monte_carlo or 0) * steps  # for both kinds of neighbours
        seconds = work * _SECONDS_PER_DRAW / (os.cpu_count() or 1)
        said = f"--monte-carlo simulates {work:,} steps, which takes about {duration(seconds)}."
        return [said] if seconds >= _MINUTE else []

    def further(self, training: choices.DPSGD, *, delta: float, progress: Any) -> tuple[Claim, ...]:
        """Return epsilon by every composition theorem, and the advantage by simulation, as asked for."""
        import numpy as np

        from auditor.theory.monte_carlo import total_variation_monte_carlo

        result: list[Claim] = []
        rng = np.random.default_rng(validate.at_least("--seed", self.seed, least=0))
        for adjacency in choices.Adjacency:
            if self.compositions:
                result += theory.compare_compositions(training, delta=delta, adjacency=adjacency)
            if self.monte_carlo is not None:
                samples = validate.at_least("--monte-carlo", self.monte_carlo, least=2)
                result.append(
                    total_variation_monte_carlo(
                        training, adjacency=adjacency, samples=samples, rng=rng, progress=progress
                    )
                )
        return tuple(result)


_PARAMETERS = ("noise_multiplier", "sampling_rate", "steps")


@dataclass(frozen=True)
class _Wish(Options, title="The training that keeps a promise"):
    """The parameter that is solved for, and the promise that it keeps.

    Attributes:
        solve_for: Find this parameter from the other two, so that the training keeps the promise of --target.
        target: The wanted promise: advantage:0.05, bayes-security:0.9, epsilon:2,delta=1e-5, tpr:0.1,at_fpr=0.01 or
            success:0.6,prior=0.5, with adjacency=add-remove or adjacency=replace-one behind a comma.
        method: Of --solve-for: exact (the default), or closed-form or moment-matched, which are approximations.
    """

    solve_for: Literal["noise-multiplier", "sampling-rate", "steps"] | None = None
    target: str | None = None
    method: str | None = None

    def solved(self, training: shared.Training) -> Any:
        """Return the parameter that was left out, found for the promise."""
        shared.refuse(training, "epochs", "schedule", "records_per_person", goes="without --solve-for")
        name = str(self.solve_for).replace("-", "_")
        there = {key: getattr(training, key) for key in _PARAMETERS if getattr(training, key) is not None}
        if {*there, name} != {*_PARAMETERS} or name in there:
            others = " and ".join(shared.spelled(key) for key in _PARAMETERS if key != name)
            raise InputError(f"--solve-for {self.solve_for} needs {others}, and finds the third from them.")
        if self.target is None:
            raise InputError(
                "--solve-for needs --target, the promise to keep, as in --target advantage:0.05; got none."
            )
        find = getattr(theory, f"{name}_for")
        return find(self.target, **there, sampling=training.sampling(), method=self.method or "exact")


def claim(
    training: shared.Training,
    shown: _Promised,
    wish: _Wish,
    gates: shared.Gates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    r"""Print what a DP-SGD training promises, for both kinds of neighbours; or find the training that keeps a promise.

    Examples:
        What does a training run promise?
          auditor claim --noise-multiplier 1.1 --sampling-rate 256/60000 \
            --set epochs=10 --delta 1e-5

        By every method and composition theorem, as JSON:
          auditor claim --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 \
            --delta 1e-5 --every-method --compositions --json -

        What does it promise people who have up to 5 records?
          auditor claim --noise-multiplier 10 --sampling-rate 0.01 --steps 1000 \
            --delta 1e-5 --set records-per-person=5

        Stop a pipeline that promises too little, for both kinds of neighbours or for one:
          auditor claim --set schedule=steps.csv --delta 1e-5 --fail-if "epsilon > 8" \
            --fail-if "advantage.replace-one > 0.3"

        How much noise keeps the advantage of every attacker below 0.05?
          auditor claim --solve-for noise-multiplier --target advantage:0.05 \
            --sampling-rate 0.01 --steps 1000

    Exit codes:
        0 done, and every gate passed; 1 a gate failed; 2 bad input;
        3 a gate asks for what cannot be evaluated.
        If several apply: 2, then 1, then 3.
    """
    if wish.solve_for is not None:
        return _solve(training, shown, wish, gates, files, common)
    shared.refuse(wish, *vars(wish), goes="with --solve-for: it is a promise that is wanted")
    from auditor.report.terminal import claims_text

    wanted = gates.parsed()
    files.check(inputs=(training.schedule,))
    if shown.delta is None:
        raise InputError("--delta must be given: the delta to state epsilon at.")
    rates, delta, prior = shown.rates(), shown.delta, 0.5 if shown.prior is None else shown.prior
    description = training.described()
    console.explain([] if common.quiet else shown.warnings(description))
    with console.progress(quiet=common.quiet) as move:
        further = shown.further(description, delta=delta, progress=move and partial(move, "Simulating"))
    claims = theory.overview(description, delta=delta, rates=rates, prior=prior)
    result = settings.recorded(_result(description, claims, further, delta=delta, prior=prior, rates=rates))
    led = claims if shown.every_method else theory.leading(claims)
    about: dict[str, Any] = {"more": further, "sentences": result.in_words}
    table = claims_text(description, led, width=console.width(), color=console.colour(), **about)
    return files.write_all(result, gates.judged(result, wanted), quiet=common.quiet, text=f"{table}\n")


def _solve(
    training: shared.Training,
    shown: _Promised,
    wish: _Wish,
    gates: shared.Gates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    """Find the noise multiplier, sampling rate or number of steps that keeps a wanted promise, from the other two."""
    from auditor.report.terminal import found_to_json

    goes = "without --solve-for, whose result is one number"
    shared.refuse(files, "html", "markdown", "junit", "sarif", goes=goes)
    shared.refuse(gates, "fail_if", goes=goes)
    shared.refuse(shown, "delta", "prior", "every_method", "compositions", "monte_carlo", goes=goes)
    files.check()
    solution = wish.solved(training)
    files.write(found_to_json(solution), shown=solution.in_words() + "\n", quiet=common.quiet)
    return ExitCode.DONE


def _result(
    training: choices.DPSGD,
    claims: Sequence[Claim],
    further: Sequence[Claim],
    *,
    delta: float,
    prior: float,
    rates: tuple[float, ...],
) -> Any:
    """What is promised, with the best number of each kind for gates, and the curves for a page."""
    from auditor.curves.views import claimed_line
    from auditor.report.terminal import described
    from auditor.theory.promises import in_words

    best: dict[tuple[choices.Adjacency, str], Claim] = {}
    for item in theory.leading(claims):
        # Of two for mu the proven one, which is the first.
        best.setdefault((item.adjacency, item.metric), item)
    whole = {kind: theory.claimed_curve(training, adjacency=kind) for kind in choices.Adjacency}
    return ClaimResult(
        data={
            "claim": training.in_words(),
            "delta": delta,
            "notes": {str(kind): item.note for kind, item in whole.items()},
        },
        description=described(training),
        delta=delta,
        prior=prior,
        estimates=tuple(map(_for_gates, best.values())),
        claims=(*claims, *further),
        in_words=in_words(claims, rates=rates, prior=prior, records=training.records_per_person),
        curves=tuple(
            dataclasses.replace(line, name=str(kind))
            for kind, item in whole.items()
            if item.curve is not None
            for line in claimed_line(best[kind, "epsilon"], item.curve)
        ),
        provenance={**made_now(), "command": console.command_line()},
    )


def _for_gates(claim: Claim) -> Estimate:
    details = {"promised": claim.status} | ({"reason": claim.note} if claim.value is None else {})
    about: Any = {"delta": claim.delta, "adjacency": claim.adjacency, "details": details}
    return Estimate(claim.metric, claim.value, None, None, None, claim.method, Subject.MECHANISM, **about)


# --- Several models of one training algorithm ---


@dataclass(frozen=True)
class _Instances(Options, title="The models"):
    """One audit for each model.

    Attributes:
        results: Results of audits for insiders (--disclosure insiders, .json), one for each model that the same algorithm
            trained.
    """

    results: tuple[Path, ...] = argument("RESULTS")


_INSTANCES = Of(
    "auditor.many.instances.InstancesOptions",
    common=("delta", "confidence", "split", "together", "seed", "disclosure"),
    without=("claim",),
    title="What is measured, and what is declared of the models",
)


def instances(
    models: _Instances,
    measured: Annotated[dict[str, Any], _INSTANCES],
    claimed: shared.ClaimOptions,
    gates: shared.ClaimGates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    r"""Audit a training algorithm from several models that it trained, each on a fresh random split.

    Examples:
        Several models of one training algorithm, each on a fresh random split:
          auditor instances first.json second.json third.json --split random \
            --delta 1e-5

        Judge a claim by them:
          auditor instances first.json second.json third.json --split random \
            --together independent-runs --claim-epsilon 2 --claim-delta 1e-5

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --set allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.many.instances import InstancesOptions, audit_instances
    from auditor.results.reading import read_result

    wanted = gates.parsed()
    files.check(inputs=(*models.results, claimed.schedule))
    measured |= {"claim": claimed.claim()}
    InstancesOptions(**measured)  # refused before any file is read
    result = audit_instances([read_result(path) for path in models.results], **measured)
    return files.write_all(settings.recorded(result), gates.judged(result, wanted), quiet=common.quiet)


# --- Many runs of one training algorithm, with a canary and without ---


@dataclass(frozen=True, kw_only=True)
class _ScoreTable(shared.LossColumns, title="The runs"):
    """A table with one score for each run.

    Attributes:
        table: Table with one score for each run (.csv, .parquet, .npz, .arrow) and whether it was with the canary; or else
            --counts.
        loss_column: Column of scores; smaller means more like with the canary.
        member_column: Column that is 1 for runs with the canary and 0 without.
        higher_is_member: A larger score means more like with the canary.
        threshold_runs: Table of other runs, which choose the threshold.
    """

    table: Path | None = argument("TABLE", default=None)
    threshold_runs: Path | None = None

    def evidence(self, judged: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scores and how they are judged, or the counts, as `audit_runs` takes them."""
        if (self.table is None) == ("counts" not in judged):
            raise InputError("give either a TABLE of scores, or --counts.")
        if self.table is None:
            goes = "with a TABLE of scores: counts are of one threshold fixed in advance"
            shared.refuse(self, "higher_is_member", "threshold_runs", goes=goes)
            return dict(judged)
        others = self.threshold_runs and self.read_table(self.threshold_runs)
        scores = {"losses": self.read_table(self.table), "threshold_runs": others}
        rule = choices.from_text("threshold", judged.get("threshold"), choices.THRESHOLDS)
        if isinstance(rule, choices.FixedThreshold) and self.higher_is_member:
            # Scores that are larger with the canary are negated when they are read, and so is their threshold.
            rule = dataclasses.replace(rule, threshold=-rule.threshold)
        return {**judged, **scores, "threshold": rule}


_RUNS = Of(
    "auditor.many.runs.RunsOptions",
    common=("counts", "delta", "confidence", "adjacency", "threshold", "test"),
    without=("losses", "claim", "threshold_runs"),
    title="What is measured, and how it is judged",
)


def runs(
    scores: _ScoreTable,
    judged: Annotated[dict[str, Any], _RUNS],
    claimed: shared.ClaimOptions,
    gates: shared.ClaimGates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    r"""Audit a training algorithm from many runs of it, with a canary and without.

    Fix the number of runs before you look, or say --test sequential: then the evidence holds whenever it is looked at.

    Examples:
        Scores of many trainings, half of them with a canary (auditor.collect_runs
        makes them):
          auditor runs scores.csv --delta 1e-5

        Judge what is claimed of the training, by its whole trade-off curve:
          auditor runs scores.csv --claim-epsilon 0.21 --claim-delta 1e-5

        Runs that were stopped when the evidence was enough, in their order:
          auditor runs scores.csv --test sequential --noise-multiplier 1 \
            --sampling-rate 0.01 --steps 1000 --delta 1e-5

        The canary took another record's place, and earlier runs choose the threshold:
          auditor runs scores.csv --adjacency replace-one \
            --threshold-runs earlier.csv --delta 1e-5

        An audit that others published, as counts (Tramer et al. 2022):
          auditor runs --counts 4922 100000 174 100000 --delta 1e-5 \
            --confidence 0.9999999999

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --set allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.many.runs import audit_runs

    wanted = gates.parsed()
    files.check(inputs=(scores.table, scores.threshold_runs, claimed.schedule))
    claim = claimed.claim()
    choices.delta_or_that_of(claim, judged.get("delta"))  # refused before any file is read
    result = audit_runs(claim=claim, **scores.evidence(judged))
    source = scores.table and scores.table.name
    origin = {**result.provenance, "source": source, "command": console.command_line()}
    data = {**result.data, **({"higher_is_member": True} if scores.higher_is_member else {})}
    result = settings.recorded(dataclasses.replace(result, data=data, provenance=origin))
    return files.write_all(result, gates.judged(result, wanted), quiet=common.quiet)


# --- How many records, or runs, an audit takes ---


_PLAN = Of(
    "auditor.many.planning.PlanOptions",
    common=(
        "epsilon",
        "delta",
        "confidence",
        "runs",
        "split",
        "coverage",
        "attack",
        "power",
        "adjacency",
        "labels",
    ),
    without=("claim",),
    title="The plan",
)


def power(
    target: Annotated[dict[str, Any], _PLAN],
    claimed: shared.ClaimOptions,
    files: shared.JsonFile,
    common: shared.Common,
) -> int:
    r"""Plan an audit: how many records or runs reach a target, if the attack is as good as assumed (default: perfect).

    Examples:
        How many records certify an epsilon of 2, if the attack is perfect?
          auditor power --epsilon 2 --delta 1e-5 --split random

        If it is as weak as two normals one standard deviation apart:
          auditor power --epsilon 2 --delta 1e-5 --split random --attack gaussian:1

        How many runs, or canaries in one run, refute a claim?
          auditor power --runs fixed-number --claim-epsilon 1 --claim-delta 1e-5 \
            --attack gaussian:2
          auditor power --split bernoulli --noise-multiplier 1 --sampling-rate 1 --steps 1

    Exit codes:
        0 done; 2 bad input; 3 no number is enough.
    """
    from auditor.many.planning import records_needed
    from auditor.report.terminal import plan_text

    files.check(inputs=(claimed.schedule,))
    plan = records_needed(claim=claimed.claim(), **target)
    text = json.dumps(plan.to_dict(), indent=2, allow_nan=False) + "\n"
    files.write(text, shown=plan_text(plan), quiet=common.quiet)
    return ExitCode.NOT_EVALUABLE if plan.n_member is None else ExitCode.DONE
