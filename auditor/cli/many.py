"""The commands about a training algorithm: what it promises, what several models or many runs show, and planning."""

import dataclasses
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from auditor import theory
from auditor.cli import console, options as shared, settings
from auditor.cli.parsing import Options, argument, option
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
        delta: Delta to state epsilon at, or that of the wanted epsilon.
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
    """The one promise that is wanted, and what is solved for.

    Attributes:
        solve_for: Find this parameter from the other two, so that the training keeps one wanted promise.
        advantage: Largest wanted advantage (TPR - FPR).
        bayes_security: Smallest wanted Bayes security.
        epsilon: Largest wanted epsilon, with --delta.
        tpr: Largest wanted true positive rate, with --at-fpr.
        at_fpr: False positive rate of the wanted TPR.
        success: Largest wanted share of records that an attacker is right about, with --prior.
        adjacency: Of the wanted promise; default: replace-one; for an epsilon add-remove.
        method: Exact, or one of the closed forms (approximate); default: exact.
    """

    solve_for: Literal["noise-multiplier", "sampling-rate", "steps"] | None = None
    advantage: float | None = None
    bayes_security: float | None = None
    epsilon: float | None = None
    tpr: float | None = None
    at_fpr: float | None = None
    success: float | None = None
    adjacency: choices.Adjacency | None = None
    method: Literal["exact", "closed-form", "moment-matched"] | None = None

    def promise(self, shown: _Promised) -> Any:
        """Return the promise as a value."""
        kinds: dict[str, tuple[Any, ...]] = {
            "--advantage": (theory.WantedAdvantage, self.advantage),
            "--bayes-security": (theory.WantedBayesSecurity, self.bayes_security),
            "--epsilon": (theory.WantedEpsilon, self.epsilon, shown.delta),
            "--tpr": (theory.WantedTPR, self.tpr, self.at_fpr),
            "--success": (theory.WantedSuccess, self.success, shown.prior),
        }
        wanted = [name for name, (_, value, *_) in kinds.items() if value is not None]
        if len(wanted) != 1:
            names, got = ", ".join(kinds), ", ".join(wanted) or "none"
            raise InputError(f"one wish at a time: give one of {names}, got {got}.")
        for wish, beside in (("--epsilon", "--delta"), ("--tpr", "--at-fpr"), ("--success", "--prior")):
            if (wish in wanted) != (kinds[wish][-1] is not None):
                raise InputError(f"{wish} and {beside} go together: give both or neither.")
        kind, *values = kinds[wanted[0]]
        return kind(*values) if self.adjacency is None else kind(*values, adjacency=self.adjacency)

    def solved(self, training: shared.Training, shown: _Promised) -> Any:
        """Return the parameter that was left out, found for the promise."""
        from auditor.theory.parameters import Exact

        methods = {
            "exact": Exact(),
            "closed-form": theory.Corollary7(),
            "moment-matched": theory.MomentMatched(),
        }
        shared.refuse(training, "epochs", "schedule", "records_per_person", goes="without --solve-for")
        name = str(self.solve_for).replace("-", "_")
        there = {key: getattr(training, key) for key in _PARAMETERS if getattr(training, key) is not None}
        if {*there, name} != {*_PARAMETERS} or name in there:
            others = " and ".join(shared.spelled(key) for key in _PARAMETERS if key != name)
            raise InputError(f"--solve-for {self.solve_for} needs {others}, and finds the third from them.")
        find = getattr(theory, f"{name}_for")
        method = methods[self.method or "exact"]
        return find(self.promise(shown), **there, sampling=training.sampling(), method=method)


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
          auditor claim --solve-for noise-multiplier --advantage 0.05 \
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
    shared.refuse(shown, "every_method", "compositions", "monte_carlo", goes=goes)
    files.check()
    solution = wish.solved(training, shown)
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
        split: How membership was decided: unknown, random or bernoulli (bernoulli:0.3).
        independent_runs: The splits and the trainings of all models were independent: no shared seed, no warm start, no
            cross-validation. Their pairs are then one audit.
        disclosure: Who may read the result, public or insiders, as of auditor audit.
    """

    results: tuple[Path, ...] = argument("RESULTS")
    split: str = "unknown"
    independent_runs: bool = False
    disclosure: str = "public"


@dataclass(frozen=True)
class _Measured(Options, title="What is measured"):
    """At which delta and confidence.

    Attributes:
        confidence: Of every interval; default: 0.95.
        looks: How often this is looked at, as in a nightly pipeline: so many audits share the error.
        seed: Of everything random.
        delta: Delta to state epsilon at; default: the claim's.
    """

    confidence: float = 0.95
    looks: int = option(default=1, rare=True)
    seed: int = 0
    delta: float | None = None


def instances(
    models: _Instances,
    measured: _Measured,
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
            --independent-runs --claim-epsilon 2 --claim-delta 1e-5

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --set allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.many.instances import audit_instances
    from auditor.results.reading import read_result

    wanted = gates.parsed()
    files.check(inputs=(*models.results, claimed.schedule))
    claim = claimed.claim()
    delta = shared.delta_or_that_of(claim, measured.delta)
    split = choices.from_text("split", models.split, choices.SPLITS)
    result = audit_instances(
        [read_result(path) for path in models.results],
        delta=delta,
        confidence=measured.confidence,
        looks=measured.looks,
        split=split,
        claim=claim,
        together=choices.IndependentRuns() if models.independent_runs else None,
        seed=measured.seed,
        disclosure=models.disclosure,
    )
    return files.write_all(settings.recorded(result), gates.judged(result, wanted), quiet=common.quiet)


# --- Many runs of one training algorithm, with a canary and without ---


@dataclass(frozen=True, kw_only=True)
class _ScoreTable(shared.LossColumns, title="The runs"):
    """A table with one score for each run.

    Attributes:
        table: Table with one score for each run (.csv, .parquet, .npz, .arrow) and whether it was with the canary.
        loss_column: Column of scores; smaller means more like with the canary.
        member_column: Column that is 1 for runs with the canary and 0 without.
        higher_is_member: A larger score means more like with the canary.
        counts: In place of TABLE, what was counted at one threshold fixed in advance: true positives, runs with the canary,
            false positives, runs without it, such as 4922 100000 174 100000.
        adjacency: What the runs differ by: the canary is there or not, or another record in its place.
        sequential: Runs may have been stopped at any time: the rows of the table are in the order of the runs, which was
            fixed before they ran.
        threshold: How the threshold on the score is chosen: on half of the runs (split, the default), without any of these
            runs (fixed:VALUE), or at many ranks at once, which gives the certified bound alone (rank-grid).
        threshold_runs: Other runs, which choose the threshold.
    """

    table: Path | None = argument("TABLE", default=None)
    counts: tuple[int, int, int, int] | None = None
    adjacency: choices.Adjacency = choices.Adjacency.ADD_REMOVE
    sequential: bool = False
    threshold: str | None = None
    threshold_runs: Path | None = None

    def evidence(self, *, seed: int) -> dict[str, Any]:
        """Return the scores and how they are judged, or the counts, as `audit_runs` takes them."""
        from auditor.many.whole_curve import Sequential

        if (self.table is None) == (self.counts is None):
            raise InputError("give either a TABLE of scores, or --counts.")
        if self.table is None:
            goes = "with a TABLE of scores: counts are of one threshold fixed in advance"
            shared.refuse(self, "sequential", "higher_is_member", "threshold", "threshold_runs", goes=goes)
            return {"counts": self.counts}
        return {
            "losses": self.read_table(self.table),
            "threshold": self.rule(seed=seed),
            "threshold_runs": self.threshold_runs and self.read_table(self.threshold_runs),
            "test": Sequential() if self.sequential else None,
        }

    def rule(self, *, seed: int) -> choices.ThresholdRule:
        """Return how the threshold is chosen; one way at a time."""
        if self.threshold is not None and self.threshold_runs is not None:
            raise InputError(
                "one way to choose the threshold at a time: give --threshold or --threshold-runs."
            )
        if self.threshold_runs is not None:
            return choices.Split()
        rule: choices.ThresholdRule = choices.Split(seed=seed)
        if self.threshold not in (None, "split"):
            rule = choices.from_text("threshold", self.threshold, choices.THRESHOLDS)
        if isinstance(rule, choices.FixedThreshold) and self.higher_is_member:
            # Scores that are larger with the canary are negated when they are read, and so is their threshold.
            return dataclasses.replace(rule, threshold=-rule.threshold)
        return rule


def runs(
    scores: _ScoreTable,
    measured: _Measured,
    claimed: shared.ClaimOptions,
    gates: shared.ClaimGates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    r"""Audit a training algorithm from many runs of it, with a canary and without.

    Fix the number of runs before you look, or say --sequential: then the evidence holds whenever it is looked at.

    Examples:
        Scores of many trainings, half of them with a canary (auditor.collect_runs
        makes them):
          auditor runs scores.csv --delta 1e-5

        Judge what is claimed of the training, by its whole trade-off curve:
          auditor runs scores.csv --claim-epsilon 0.21 --claim-delta 1e-5

        Runs that were stopped when the evidence was enough, in their order:
          auditor runs scores.csv --sequential --noise-multiplier 1 \
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
    delta = shared.delta_or_that_of(claim, measured.delta)
    result = audit_runs(
        **scores.evidence(seed=measured.seed),
        delta=delta,
        confidence=measured.confidence,
        looks=measured.looks,
        adjacency=scores.adjacency,
        claim=claim,
    )
    source = scores.table and scores.table.name
    origin = {**result.provenance, "source": source, "command": console.command_line()}
    data = {**result.data, **({"higher_is_member": True} if scores.higher_is_member else {})}
    result = settings.recorded(dataclasses.replace(result, data=data, provenance=origin))
    return files.write_all(result, gates.judged(result, wanted), quiet=common.quiet)


# --- How many records, or runs, an audit takes ---


@dataclass(frozen=True, kw_only=True)
class _Plan(Options, title="The plan"):
    """What is to be certified or refuted, and how good the attack is assumed to be.

    Attributes:
        epsilon: Epsilon to certify; or else a claim to refute.
        delta: Delta to certify it at.
        confidence: Of every interval.
        runs: Refute the claim by runs with a canary and without.
        sequential: Stop those runs as soon as the claim is refuted.
        adjacency: What the runs differ by; default: add-remove.
        split: How membership will be decided: unknown, random or bernoulli (bernoulli:0.3), which is for canaries too, each with a
            coin of its own.
        coverage: How many of the training records will be scored: sample (default), census or subset:50000.
        mu: Assume scores of two normals so many standard deviations apart.
        attack_epsilon: Assume guesses as right as randomised response of this epsilon.
        labels: Of an audit of labels (audit_labels in Python), of so many classes that features make equally likely; at delta 0.
        chance: Chance of reaching the target that is wanted.
    """

    epsilon: float | None = None
    delta: float | None = None
    confidence: float = 0.95
    runs: bool = False
    sequential: bool = False
    adjacency: choices.Adjacency | None = None
    split: str = "unknown"
    coverage: str = "sample"
    mu: float | None = None
    attack_epsilon: float | None = None
    labels: int | None = None
    chance: float = 0.8

    def attack(self) -> Any:
        """Return the attack that is assumed."""
        from auditor.many.planned_audits import GaussianAttack, PerfectAttack, RandomisedResponse

        if self.mu is not None and self.attack_epsilon is not None:
            raise InputError("one attack at a time: give --mu or --attack-epsilon, not both.")
        if self.mu is not None:
            return GaussianAttack(self.mu)
        return PerfectAttack() if self.attack_epsilon is None else RandomisedResponse(self.attack_epsilon)

    def how(self) -> dict[str, Any]:
        """Return how membership is decided: in one run, or by which runs there are."""
        from auditor.many.whole_curve import FixedNumber, Sequential

        if not self.runs:
            shared.refuse(self, "sequential", "adjacency", goes="with --runs: it says how the runs are made")
        runs = (Sequential() if self.sequential else FixedNumber()) if self.runs else None
        return {
            "split": choices.from_text("split", self.split, choices.SPLITS),
            "coverage": choices.from_text("coverage", self.coverage, choices.COVERAGES),
            "runs": runs,
            "adjacency": self.adjacency or choices.Adjacency.ADD_REMOVE,
        }


def power(target: _Plan, claimed: shared.ClaimOptions, files: shared.JsonFile, common: shared.Common) -> int:
    """Plan an audit: how many records or runs reach a target, if the attack is as good as assumed (default: perfect).

    Examples:
        How many records certify an epsilon of 2, if the attack is perfect?
          auditor power --epsilon 2 --delta 1e-5 --split random

        If it is as weak as two normals one standard deviation apart:
          auditor power --epsilon 2 --delta 1e-5 --split random --mu 1

        How many runs, or canaries in one run, refute a claim?
          auditor power --runs --claim-epsilon 1 --claim-delta 1e-5 --mu 2
          auditor power --split bernoulli --noise-multiplier 1 --sampling-rate 1 --steps 1

    Exit codes:
        0 done; 2 bad input; 3 no number is enough.
    """
    from auditor.many.planning import records_needed
    from auditor.report.terminal import plan_text

    files.check(inputs=(claimed.schedule,))
    plan = records_needed(
        target.epsilon,
        delta=target.delta,
        claim=claimed.claim(),
        confidence=target.confidence,
        attack=target.attack(),
        power=target.chance,
        labels=target.labels,
        **target.how(),
    )
    text = json.dumps(plan.to_dict(), indent=2, allow_nan=False) + "\n"
    files.write(text, shown=plan_text(plan), quiet=common.quiet)
    return ExitCode.NOT_EVALUABLE if plan.n_member is None else ExitCode.DONE
