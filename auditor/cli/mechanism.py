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
from auditor.api import ClaimResult
from auditor.cli import console, options as shared, settings
from auditor.core import options as choices, validate
from auditor.core.errors import InputError
from auditor.core.values import Claim, Estimate, Subject
from auditor.results.document import made_now
from auditor.verdicts.gates import ExitCode

# --- The commands `auditor claim`, what a training promises, and `auditor parameters`, the training that keeps a promise ---


# --- What a training promises ---

_SECONDS_PER_DRAW, _MINUTE = 1e-8, 60.0  # of one step of one simulated run, on one processor


@dataclass(frozen=True)
class _Promised(shared.Options):
    """What is told of a training, and at which numbers.

    Attributes:
        delta: Delta to state epsilon at.
        fpr: False positive rates, separated by commas.
        prior: Chance that a record was in, before the attacker looks.
        every_method: Show each number by every method, not only by the best.
        compositions: Add epsilon by every composition theorem.
        monte_carlo: Add the advantage by so many simulated runs.
        seed: Seed of --monte-carlo.
    """

    delta: float
    fpr: str = "0.1,0.01,0.001"
    prior: float = 0.5
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

    def further(self, training: choices.DPSGD, *, progress: Any) -> tuple[Claim, ...]:
        """Return epsilon by every composition theorem, and the advantage by simulation, as asked for."""
        import numpy as np

        from auditor.theory.monte_carlo import total_variation_monte_carlo

        found: list[Claim] = []
        rng = np.random.default_rng(validate.at_least("--seed", self.seed, least=0))
        for adjacency in choices.Adjacency:
            if self.compositions:
                found += theory.compare_compositions(training, delta=self.delta, adjacency=adjacency)
            if self.monte_carlo is not None:
                samples = validate.at_least("--monte-carlo", self.monte_carlo, least=2)
                found.append(
                    total_variation_monte_carlo(
                        training, adjacency=adjacency, samples=samples, rng=rng, progress=progress
                    )
                )
        return tuple(found)


def claim(
    training: shared.Training,
    asked: _Promised,
    gates: shared.Gates,
    files: shared.AuditFiles,
    common: shared.Common,
) -> int:
    r"""Print what a DP-SGD training description promises, for both kinds of neighbours; JSON has every method.

    Examples:
        What does a training run promise?
          auditor claim --noise-multiplier 1.1 --sampling-rate 256/60000 --epochs 10 \
            --delta 1e-5

        By every method and composition theorem, as JSON:
          auditor claim --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 \
            --delta 1e-5 --every-method --compositions --json -

        Steps that differ, from a table:
          auditor claim --schedule steps.csv --delta 1e-5

        What does it promise people who have up to 5 records?
          auditor claim --noise-multiplier 10 --sampling-rate 0.01 --steps 1000 \
            --delta 1e-5 --records-per-person 5

        Stop a pipeline that promises too little, for both kinds of neighbours or for one:
          auditor claim --schedule steps.csv --delta 1e-5 --fail-if "epsilon > 8" \
            --fail-if "advantage.replace-one > 0.3"

    Exit codes:
        0 done, and every gate passed; 1 a gate failed; 2 bad input;
        3 a gate asks for what cannot be evaluated.
        If several apply: 2, then 1, then 3.
    """
    from auditor.report.terminal import claims_text

    wanted = gates.parsed()
    files.check(inputs=(training.schedule,))
    rates, delta, prior = asked.rates(), asked.delta, asked.prior
    description = training.described()
    console.explain([] if common.quiet else asked.warnings(description))
    with console.progress(quiet=common.quiet) as move:
        further = asked.further(description, progress=move and partial(move, "Simulating"))
    claims = theory.overview(description, delta=delta, rates=rates, prior=prior)
    found = settings.recorded(_result(description, claims, further, asked))
    led = claims if asked.every_method else theory.leading(claims)
    shown: dict[str, Any] = {"more": further, "sentences": found.in_words}
    table = claims_text(description, led, width=console.width(), color=console.colour(), **shown)
    return files.write_all(found, gates.judged(found, wanted), quiet=common.quiet, text=f"{table}\n")


def _result(
    training: choices.DPSGD, claims: Sequence[Claim], further: Sequence[Claim], asked: _Promised
) -> ClaimResult:
    """What is promised, with the best number of each kind for gates, and the curves for a page."""
    from auditor.report.terminal import described
    from auditor.results.views import claimed_line
    from auditor.theory.promises import in_words

    best: dict[tuple[choices.Adjacency, str], Claim] = {}
    for item in theory.leading(claims):
        # Of two for mu the proven one, which is the first.
        best.setdefault((item.adjacency, item.metric), item)
    whole = {kind: theory.claimed_curve(training, adjacency=kind) for kind in choices.Adjacency}
    return ClaimResult(
        data={
            "claim": training.in_words(),
            "delta": asked.delta,
            "notes": {str(kind): item.note for kind, item in whole.items()},
        },
        description=described(training),
        delta=asked.delta,
        prior=asked.prior,
        estimates=tuple(map(_for_gates, best.values())),
        claims=(*claims, *further),
        in_words=in_words(
            claims, rates=asked.rates(), prior=asked.prior, records=training.records_per_person
        ),
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


# --- The training that keeps a promise ---


@dataclass(frozen=True)
class _Wish(shared.Options):
    """The one promise that is wanted.

    Attributes:
        advantage: Largest wanted advantage (TPR - FPR).
        bayes_security: Smallest wanted Bayes security.
        epsilon: Largest wanted epsilon, with --delta.
        delta: Delta of the wanted epsilon.
        tpr: Largest wanted true positive rate, with --at-fpr.
        at_fpr: False positive rate of the wanted TPR.
        success: Largest wanted share of records that an attacker is right about, with --prior.
        prior: How likely the attacker finds membership before looking.
    """

    advantage: float | None = None
    bayes_security: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    tpr: float | None = None
    at_fpr: float | None = None
    success: float | None = None
    prior: float | None = None

    def promise(self, adjacency: choices.Adjacency | None) -> Any:
        """Return the promise as a value."""
        kinds: dict[str, tuple[Any, ...]] = {
            "--advantage": (theory.WantedAdvantage, self.advantage),
            "--bayes-security": (theory.WantedBayesSecurity, self.bayes_security),
            "--epsilon": (theory.WantedEpsilon, self.epsilon, self.delta),
            "--tpr": (theory.WantedTPR, self.tpr, self.at_fpr),
            "--success": (theory.WantedSuccess, self.success, self.prior),
        }
        made = [name for name, (_, value, *_) in kinds.items() if value is not None]
        if len(made) != 1:
            wanted, got = ", ".join(kinds), ", ".join(made) or "none"
            raise InputError(f"one wish at a time: give one of {wanted}, got {got}.")
        for wish, beside in (("--epsilon", "--delta"), ("--tpr", "--at-fpr"), ("--success", "--prior")):
            if (wish in made) != (kinds[wish][-1] is not None):
                raise InputError(f"{wish} and {beside} go together: give both or neither.")
        kind, *values = kinds[made[0]]
        return kind(*values) if adjacency is None else kind(*values, adjacency=adjacency)


@dataclass(frozen=True)
class _Parameters(shared.Steps):
    """Two of three parameters, and how the third is found.

    Attributes:
        adjacency: Default: replace-one; for an epsilon add-remove.
        method: Exact, or one of the closed forms (approximate).
    """

    adjacency: choices.Adjacency | None = None
    method: Literal["exact", "closed-form", "moment-matched"] = "exact"

    def third(self, wanted: Any) -> Any:
        """Return the parameter that was left out, found for the promise."""
        from auditor.theory.parameters import Exact

        methods = {
            "exact": Exact(),
            "closed-form": theory.Corollary7(),
            "moment-matched": theory.MomentMatched(),
        }
        parameters = ("noise_multiplier", "sampling_rate", "steps")
        there = {name: getattr(self, name) for name in parameters if getattr(self, name) is not None}
        missing = [name for name in parameters if name not in there]
        if len(missing) != 1:
            options = ", ".join(map(shared.spelled, parameters))
            raise InputError(f"give two of {options}, and the third is found; got {len(there)}.")
        find = getattr(theory, f"{missing[0]}_for")
        return find(wanted, **there, sampling=self.sampling(), method=methods[self.method])


def parameters(wish: _Wish, known: _Parameters, files: shared.JsonFile, common: shared.Common) -> None:
    r"""Find the noise multiplier, sampling rate or number of steps that keeps a wanted promise, from the other two.

    Examples:
        How much noise keeps the advantage of every attacker below 0.05?
          auditor parameters --advantage 0.05 --sampling-rate 0.01 --steps 1000

        How many steps keep epsilon below 2?
          auditor parameters --epsilon 2 --delta 1e-5 --noise-multiplier 1 \
            --sampling-rate 0.01
    """
    from auditor.report.terminal import found_to_json

    files.check()
    found = known.third(wish.promise(known.adjacency))
    files.write(found_to_json(found), shown=found.in_words() + "\n", quiet=common.quiet)


# --- The commands about a training algorithm: `auditor instances`, `auditor runs`, and `auditor power`, which plans audits ---


# --- Several models of one training algorithm ---


@dataclass(frozen=True)
class _Instances(shared.Options, title="How the records were chosen"):
    """One audit for each model.

    Attributes:
        results: Results of audits --for-insiders (.json), one for each model that the same algorithm trained.
        split: How membership was decided.
        independent_runs: The splits and the trainings of all models were independent: no shared seed, no warm start, no
            cross-validation. Their pairs are then one audit.
        inclusion: Probability of inclusion, for --split bernoulli; by default 0.5.
    """

    results: list[Path] = shared.argument("RESULTS")
    split: shared.Split = "unknown"
    independent_runs: bool = False
    inclusion: float | None = None


def instances(
    models: _Instances,
    measured: shared.Measured,
    claimed: shared.ClaimOptions,
    gates: shared.ClaimGates,
    files: shared.AuditFiles,
    readers: shared.Readers,
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
        (unless --allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.api import audit_instances
    from auditor.results.reading import read_result

    wanted = gates.parsed()
    files.check(inputs=(*models.results, claimed.schedule))
    claim = claimed.claim()
    delta = shared.delta_or_that_of(claim, measured.delta)
    split = shared.split(models.split, inclusion=models.inclusion)
    found = audit_instances(
        [read_result(path) for path in models.results],
        delta=delta,
        confidence=measured.confidence,
        looks=measured.looks,
        split=split,
        claim=claim,
        together=choices.IndependentRuns() if models.independent_runs else None,
        seed=measured.seed,
        disclosure=readers.disclosure,
    )
    return files.write_all(settings.recorded(found), gates.judged(found, wanted), quiet=common.quiet)


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
    """

    table: Path | None = shared.argument("TABLE", default=None)
    counts: tuple[int, int, int, int] | None = shared.option(metavar="TP N1 FP N0")
    adjacency: choices.Adjacency = choices.Adjacency.ADD_REMOVE
    sequential: bool = False

    def evidence(self, choice: "_ThresholdChoice", *, seed: int) -> dict[str, Any]:
        """Return the scores and how they are judged, or the counts, as `audit_runs` takes them."""
        from auditor.mechanism.whole_curve import Sequential

        if (self.table is None) == (self.counts is None):
            raise InputError("give either a TABLE of scores, or --counts.")
        if self.table is None:
            goes = "with a TABLE of scores: counts are of one threshold fixed in advance"
            shared.refuse(self, "sequential", "higher_is_member", goes=goes)
            shared.refuse(choice, "threshold", "threshold_runs", "rank_grid", goes=goes)
            return {"counts": self.counts}
        return {
            "losses": self.read_table(self.table),
            "threshold": choice.rule(higher_is_member=self.higher_is_member, seed=seed),
            "threshold_runs": choice.threshold_runs and self.read_table(choice.threshold_runs),
            "test": Sequential() if self.sequential else None,
        }


@dataclass(frozen=True)
class _ThresholdChoice(shared.Options, title="How the threshold is chosen"):
    """One way to choose the threshold.

    Attributes:
        threshold: Threshold on the score, chosen without any of these runs; default: on half of them.
        threshold_runs: Other runs, which choose the threshold.
        rank_grid: Certify at many ranks at once; gives the certified bound alone.
    """

    threshold: float | None = None
    threshold_runs: Path | None = None
    rank_grid: bool = False

    def rule(self, *, higher_is_member: bool, seed: int) -> choices.ThresholdRule:
        """Return how the threshold is chosen; one way at a time."""
        asked = shared.given(self, "threshold", "threshold_runs", "rank_grid")
        if len(asked) > 1:
            raise InputError(f"one way to choose the threshold at a time: give {asked[0]} or {asked[1]}.")
        if self.threshold is not None:
            # Scores that are larger with the canary are negated when they are read, and so is their threshold.
            return choices.FixedThreshold(-self.threshold if higher_is_member else self.threshold)
        if self.threshold_runs is not None:
            return choices.Split()
        return choices.RankGrid() if self.rank_grid else choices.Split(seed=seed)


def runs(
    scores: _ScoreTable,
    choice: _ThresholdChoice,
    measured: shared.Measured,
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
        (unless --allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.api import audit_runs

    wanted = gates.parsed()
    files.check(inputs=(scores.table, choice.threshold_runs, claimed.schedule))
    claim = claimed.claim()
    delta = shared.delta_or_that_of(claim, measured.delta)
    found = audit_runs(
        **scores.evidence(choice, seed=measured.seed),
        delta=delta,
        confidence=measured.confidence,
        looks=measured.looks,
        adjacency=scores.adjacency,
        claim=claim,
    )
    source = scores.table and scores.table.name
    origin = {**found.provenance, "source": source, "command": console.command_line()}
    data = {**found.data, **({"higher_is_member": True} if scores.higher_is_member else {})}
    found = settings.recorded(dataclasses.replace(found, data=data, provenance=origin))
    return files.write_all(found, gates.judged(found, wanted), quiet=common.quiet)


# --- How many records, or runs, an audit takes ---


@dataclass(frozen=True, kw_only=True)
class _Plan(shared.Sampled):
    """What is to be certified or refuted, and how good the attack is assumed to be.

    Attributes:
        epsilon: Epsilon to certify; or else a claim to refute.
        delta: Delta to certify it at.
        confidence: Of every interval.
        runs: Refute the claim by runs with a canary and without.
        sequential: Stop those runs as soon as the claim is refuted.
        adjacency: What the runs differ by; default: add-remove.
        canaries: In one run on canaries, each with a fair coin; short for --split bernoulli --inclusion 0.5.
        mu: Assume scores of two normals so many standard deviations apart.
        attack_epsilon: Assume guesses as right as randomised response of this epsilon.
        labels: Of an audit of labels (audit_labels in Python), of so many classes that features make equally likely; at delta 0.
        chance: Chance of reaching the target that is wanted.
        members: The same as --member-coverage, as it was called before.
    """

    epsilon: float | None = None
    delta: float | None = None
    confidence: float = 0.95
    runs: bool = False
    sequential: bool = False
    adjacency: choices.Adjacency | None = None
    canaries: bool = False
    mu: float | None = None
    attack_epsilon: float | None = None
    labels: int | None = None
    chance: float = 0.8
    members: choices.Coverage | None = shared.option(hidden=True)

    def attack(self) -> Any:
        """Return the attack that is assumed."""
        from auditor.mechanism.planned_audits import GaussianAttack, PerfectAttack, RandomisedResponse

        if self.mu is not None and self.attack_epsilon is not None:
            raise InputError("one attack at a time: give --mu or --attack-epsilon, not both.")
        if self.mu is not None:
            return GaussianAttack(self.mu)
        return PerfectAttack() if self.attack_epsilon is None else RandomisedResponse(self.attack_epsilon)

    def how(self) -> dict[str, Any]:
        """Return how membership is decided: in one run, or by which runs there are."""
        from auditor.mechanism.whole_curve import FixedNumber, Sequential

        if not self.runs:
            shared.refuse(self, "sequential", "adjacency", goes="with --runs: it says how the runs are made")
        if self.canaries and (self.split != "unknown" or self.inclusion is not None):
            raise InputError("--canaries is --split bernoulli --inclusion 0.5; give one of the two.")
        declared = shared.split(self.split, inclusion=self.inclusion)
        split = choices.BernoulliSplit() if self.canaries else declared
        runs = (Sequential() if self.sequential else FixedNumber()) if self.runs else None
        return {"split": split, "runs": runs, "adjacency": self.adjacency or choices.Adjacency.ADD_REMOVE}


def power(asked: _Plan, claimed: shared.ClaimOptions, files: shared.JsonFile, common: shared.Common) -> int:
    """Plan an audit: how many records or runs reach a target, if the attack is as good as assumed (default: perfect).

    Examples:
        How many records certify an epsilon of 2, if the attack is perfect?
          auditor power --epsilon 2 --delta 1e-5 --split random

        If it is as weak as two normals one standard deviation apart:
          auditor power --epsilon 2 --delta 1e-5 --split random --mu 1

        How many runs, or canaries in one run, refute a claim?
          auditor power --runs --claim-epsilon 1 --claim-delta 1e-5 --mu 2
          auditor power --canaries --noise-multiplier 1 --sampling-rate 1 --steps 1

    Exit codes:
        0 done; 2 bad input; 3 no number is enough.
    """
    from auditor.mechanism.planning import records_needed
    from auditor.report.terminal import plan_text

    files.check(inputs=(claimed.schedule,))
    members = asked.scored_members(asked.members)
    if not isinstance(members, choices.Subset):
        goes = "with --member-coverage subset: a plan for a sample does not depend on it"
        shared.refuse(asked, "training_size", goes=goes)
    plan = records_needed(
        asked.epsilon,
        delta=asked.delta,
        claim=claimed.claim(),
        confidence=asked.confidence,
        members=members,
        attack=asked.attack(),
        power=asked.chance,
        labels=asked.labels,
        **asked.how(),
    )
    text = json.dumps(plan.to_dict(), indent=2, allow_nan=False) + "\n"
    files.write(text, shown=plan_text(plan), quiet=common.quiet)
    return ExitCode.NOT_EVALUABLE if plan.n_member is None else ExitCode.DONE
