"""The commands for a training algorithm: its promise, audits of several models or many runs, and planning."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from auditor import theory
from auditor.cli import console, options as shared, settings
from auditor.cli.parsing import Of, Options, argument
from auditor.core import Claim, Estimate, ExitCode, InputError, Losses, Subject, options as choices, validate
from auditor.results.document import ClaimResult, made_now

# --- The command `auditor claim`: the promise of a training run, or the parameters that keep a promise ---


@dataclass(frozen=True)
class _Promised(Options, title="The numbers"):
    """The quantities to report for a training run.

    Attributes:
        delta: Delta at which to state epsilon.
        fpr: False positive rates of the reported true positive rates, separated by commas.
        prior: Prior probability of membership; default: 0.5.
        every_method: Show each quantity by every method, instead of the best method only.
        compositions: Also report epsilon by every composition theorem.
    """

    delta: float | None = None
    fpr: str = "0.1,0.01,0.001"
    prior: float | None = None
    every_method: bool = False
    compositions: bool = False

    def rates(self) -> tuple[float, ...]:
        """Return the rates, each once."""
        rates = [validate.fraction("--fpr", rate, one=True) for rate in shared.names("--fpr", self.fpr)]
        # Six digits, as in the names of the quantities.
        return tuple(dict.fromkeys(float(f"{rate:g}") for rate in rates))

    def further(self, training: choices.DPSGD, *, delta: float) -> tuple[Claim, ...]:
        """Return epsilon by every composition theorem, if requested."""
        kinds = choices.Adjacency if self.compositions else ()
        rows = (
            theory.compare_compositions(training, delta=delta, adjacency=adjacency) for adjacency in kinds
        )
        return tuple(chain.from_iterable(rows))


@dataclass(frozen=True)
class _Wish(Options, title="Parameters that keep a promise"):
    """The parameter to solve for, and the promise to keep.

    Attributes:
        solve_for: Compute this parameter from the other two, so that the training keeps the promise of --target.
        target: Promise to keep: advantage:0.05, bayes-security:0.9, epsilon:2,delta=1e-5, tpr:0.1,at_fpr=0.01 or
            success:0.6,prior=0.5, followed by adjacency=add-remove or adjacency=replace-one after a comma.
    """

    solve_for: Literal["noise-multiplier", "sampling-rate", "steps"] | None = None
    target: str | None = None

    def solved(self, training: shared.Training) -> Any:
        """Return the value of the missing parameter that keeps the promise."""
        shared.refuse(training, "epochs", "schedule", "records_per_person", goes="without --solve-for")
        name = str(self.solve_for).replace("-", "_")
        there = {
            key: getattr(training, key) for key in shared.PARAMETERS if getattr(training, key) is not None
        }
        if {*there, name} != {*shared.PARAMETERS} or name in there:
            others = " and ".join(shared.spelled(key) for key in shared.PARAMETERS if key != name)
            raise InputError(f"--solve-for {self.solve_for} needs {others} and computes the third one.")
        if self.target is None:
            raise InputError(
                "--solve-for needs --target, the promise to keep, such as --target advantage:0.05; got none."
            )
        find = getattr(theory, f"{name}_for")
        return find(self.target, **there, sampling=training.sampling())


def claim(
    training: shared.Training,
    promised: _Promised,
    wish: _Wish,
    gates: shared.Gates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    r"""Report the privacy promise of a DP-SGD training run, or compute parameters that keep a promise.

    Examples:
        Report the promise of a training run:
          auditor claim --noise-multiplier 1.1 --sampling-rate 256/60000 \
            --set epochs=10 --delta 1e-5

        Report it by every method and composition theorem, as JSON:
          auditor claim --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 \
            --delta 1e-5 --every-method --compositions --json -

        Report the promise to people with up to 5 records:
          auditor claim --noise-multiplier 10 --sampling-rate 0.01 --steps 1000 \
            --delta 1e-5 --set records-per-person=5

        Stop a pipeline whose promise is too weak, for both adjacencies or for one:
          auditor claim --set schedule=steps.csv --delta 1e-5 --fail-if "epsilon > 8" \
            --fail-if "advantage.replace-one > 0.3"

        Compute the noise that keeps the advantage of every attacker below 0.05:
          auditor claim --solve-for noise-multiplier --target advantage:0.05 \
            --sampling-rate 0.01 --steps 1000

    Exit codes:
        0 done, and every gate passed; 1 a gate failed; 2 bad input;
        3 a limit cannot be evaluated.
        If several apply: 2, then 1, then 3.
    """
    if wish.solve_for is not None:
        return _solve(training, promised, wish, gates, files, common)
    shared.refuse(wish, *vars(wish), goes="with --solve-for, for the promise to keep")
    from auditor.report.terminal import claims_text

    files.check(inputs=(training.schedule,))
    if promised.delta is None:
        raise InputError("--delta must be given: the delta at which to state epsilon.")
    rates, delta, prior = promised.rates(), promised.delta, 0.5 if promised.prior is None else promised.prior
    description = training.described()
    further = promised.further(description, delta=delta)
    claims = theory.overview(description, delta=delta, rates=rates, prior=prior)
    result = settings.recorded(_result(description, claims, further, delta=delta, prior=prior, rates=rates))
    led = claims if promised.every_method else theory.leading(claims)
    about: dict[str, Any] = {"more": further, "sentences": result.in_words}
    table = claims_text(description, led, width=console.width(), color=console.colour(), **about)
    return files.write_all(gates.on(result), quiet=common.quiet, text=f"{table}\n")


def _solve(
    training: shared.Training,
    promised: _Promised,
    wish: _Wish,
    gates: shared.Gates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    """Print the noise multiplier, sampling rate or number of steps that keeps the target promise."""
    from auditor.report.terminal import found_to_json

    goes = "without --solve-for, whose result is one number"
    shared.refuse(files, "html", "markdown", "junit", "sarif", goes=goes)
    shared.refuse(gates, "fail_if", goes=goes)
    shared.refuse(promised, "delta", "prior", "every_method", "compositions", goes=goes)
    files.check()
    solution = wish.solved(training)
    files.write(found_to_json(solution), summary=solution.in_words() + "\n", quiet=common.quiet)
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
    """Return the promise, with the best value of each quantity for gates, and the curves for a page."""
    from auditor.curves.views import claimed_line
    from auditor.report.terminal import described
    from auditor.theory.promises import in_words

    best: dict[tuple[choices.Adjacency, str], Claim] = {}
    for item in theory.leading(claims):
        # Of two values of mu, the first one is proven.
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
    """One result for each model.

    Attributes:
        results: Results of audits for insiders (--disclosure insiders, .json), one for each model of the
            training algorithm.
    """

    results: tuple[Path, ...] = argument("RESULTS")


_INSTANCES = Of(
    "auditor.many.instances.InstancesOptions",
    common=("delta", "confidence", "split", "together", "seed", "disclosure"),
    without=("claim",),
    title="The measurement, and declared facts of the models",
)


def instances(
    models: _Instances,
    measured: Annotated[dict[str, Any], _INSTANCES],
    claimed: shared.ClaimOptions,
    gates: shared.ClaimGates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    r"""Audit a training algorithm from several of its models, each trained on a new random split.

    Examples:
        Several models of one training algorithm, each trained on a new random split:
          auditor instances first.json second.json third.json --split random \
            --delta 1e-5

        Judge a claim:
          auditor instances first.json second.json third.json --split random \
            --together independent-runs --claim-epsilon 2 --claim-delta 1e-5

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --set allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.many.instances import InstancesOptions, audit_instances
    from auditor.results.reading import read_result

    files.check(inputs=(*models.results, claimed.schedule))
    measured |= {"claim": claimed.claim()}
    InstancesOptions(**measured)  # refuse invalid options before any file is read
    result = audit_instances([read_result(path) for path in models.results], **measured)
    return files.write_all(gates.on(settings.recorded(result)), quiet=common.quiet)


# --- Many runs of one training algorithm, with a canary and without ---


@dataclass(frozen=True, kw_only=True)
class _ScoreTable(shared.LossColumns, title="The runs"):
    """A table with one score for each run.

    Attributes:
        table: Table with one score for each run (.csv, .parquet, .npz, .arrow) and a column for the canary; or use
            --counts.
        loss_column: Column of scores; a smaller score is more typical of a run with the canary.
        member_column: Column that is 1 for runs with the canary and 0 for runs without it.
        higher_is_member: A larger score is more typical of a run with the canary.
        threshold_runs: Table of other runs, from which the threshold is selected.
    """

    table: Path | None = argument("TABLE", default=None)
    threshold_runs: Path | None = None

    def evidence(self, judged: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scores and the threshold rule, or the counts, as arguments of `audit_runs`."""
        if (self.table is None) == ("counts" not in judged):
            raise InputError("give either a TABLE of scores, or --counts.")
        if self.table is None:
            goes = "with a TABLE of scores: counts belong to one threshold fixed in advance"
            shared.refuse(self, "higher_is_member", "threshold_runs", goes=goes)
            return dict(judged)
        others = self.threshold_runs and self.read_table(self.threshold_runs)
        scores = {"losses": self.read_table(self.table), "threshold_runs": others}
        rule = choices.from_text("threshold", judged.get("threshold"), choices.THRESHOLDS)
        if isinstance(rule, choices.FixedThreshold) and self.higher_is_member:
            # The reader negates scores that are larger with the canary; negate their threshold too.
            rule = dataclasses.replace(rule, threshold=-rule.threshold)
        return {**judged, **scores, "threshold": rule}


_RUNS = Of(
    "auditor.many.runs.RunsOptions",
    common=("counts", "delta", "confidence", "adjacency", "threshold", "test"),
    without=("losses", "claim", "threshold_runs"),
    title="The measurement and the test",
)


def runs(
    scores: _ScoreTable,
    judged: Annotated[dict[str, Any], _RUNS],
    claimed: shared.ClaimOptions,
    gates: shared.ClaimGates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    r"""Audit a training algorithm from many runs, with a canary and without.

    Fix the number of runs in advance, or use --test sequential, which is valid at any stopping time.

    Examples:
        Scores of many training runs, half of them with a canary (from
        auditor.collect_runs):
          auditor runs scores.csv --delta 1e-5

        Judge a claim on the training by its complete trade-off curve:
          auditor runs scores.csv --claim-epsilon 0.21 --claim-delta 1e-5

        Runs in their order, stopped when the evidence was sufficient:
          auditor runs scores.csv --test sequential --noise-multiplier 1 \
            --sampling-rate 0.01 --steps 1000 --delta 1e-5

        The canary replaced another record, and earlier runs select the threshold:
          auditor runs scores.csv --adjacency replace-one \
            --threshold-runs earlier.csv --delta 1e-5

        A published audit, as counts (Tramer et al. 2022):
          auditor runs --counts 4922 100000 174 100000 --delta 1e-5 \
            --confidence 0.9999999999

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --set allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.many.runs import audit_runs

    files.check(inputs=(scores.table, scores.threshold_runs, claimed.schedule))
    claim = claimed.claim()
    choices.delta_or_that_of(claim, judged.get("delta"))  # refuse an invalid delta before any file is read
    result = audit_runs(claim=claim, **scores.evidence(judged))
    source = scores.table and scores.table.name
    origin = {**result.provenance, "source": source, "command": console.command_line()}
    data = {**result.data, **({"higher_is_member": True} if scores.higher_is_member else {})}
    result = settings.recorded(dataclasses.replace(result, data=data, provenance=origin))
    return files.write_all(gates.on(result), quiet=common.quiet)


# --- The number of records or runs for an audit ---


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
    without=("claim", "control"),
    title="The plan",
)


@dataclass(frozen=True)
class _Control(Options, title="The attack, as measured"):
    """A training without noise, on canaries.

    Attributes:
        control: Losses of canaries under a model trained without noise, as for auditor audit, in place of --attack.
    """

    control: Path | None = None

    def read(self) -> Losses | None:
        """Return the losses, if there are any."""
        from auditor.collectors import read_losses

        return None if self.control is None else read_losses(self.control)


def power(
    target: Annotated[dict[str, Any], _PLAN],
    measured: _Control,
    claimed: shared.ClaimOptions,
    files: shared.JsonFile,
    common: shared.Common,
) -> int:
    r"""Plan an audit: compute the number of records or runs that reaches a target, for an assumed attack (default: perfect).

    Examples:
        How many records certify an epsilon of 2 with a perfect attack?
          auditor power --epsilon 2 --delta 1e-5 --split random

        With an attack whose scores are two normals one standard deviation apart:
          auditor power --epsilon 2 --delta 1e-5 --split random --attack gaussian:1

        How many runs, or canaries in one run, refute a claim?
          auditor power --runs fixed-number --claim-epsilon 1 --claim-delta 1e-5 \
            --attack gaussian:2
          auditor power --split bernoulli --noise-multiplier 1 --sampling-rate 1 --steps 1

        With the canaries of a training without noise, whose losses were collected:
          auditor power --split bernoulli --claim-epsilon 1 --claim-delta 1e-5 \
            --control control.csv

    Exit codes:
        0 done; 2 bad input; 3 no number is sufficient.
    """
    from auditor.many.planning import records_needed
    from auditor.report.terminal import plan_text

    files.check(inputs=(claimed.schedule, measured.control))
    plan = records_needed(claim=claimed.claim(), control=measured.read(), **target)
    text = json.dumps(plan.to_dict(), indent=2, allow_nan=False) + "\n"
    files.write(text, summary=plan_text(plan), quiet=common.quiet)
    return ExitCode.NOT_EVALUABLE if plan.n_member is None else ExitCode.DONE
