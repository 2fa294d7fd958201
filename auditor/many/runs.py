"""audit_runs(): the scores of many runs, and the claim on the mechanism that made them."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, cast, get_args

import numpy as np
from scipy import special

from auditor import theory
from auditor.checks.answers import answer
from auditor.checks.copies import all_equal, repeats, repetitions_allowed
from auditor.checks.losses import direction
from auditor.checks.registry import sampler_check
from auditor.core import options, validate
from auditor.core.errors import InputError
from auditor.core.values import Check, Claim, Estimate, Losses, Status, Subject
from auditor.core.verb import of_options
from auditor.curves.tradeoff import count
from auditor.estimators.band import curves_of_runs
from auditor.estimators.certified import Counts, clopper_pearson, most_telling, split_by
from auditor.estimators.gdp import GDP, NO_EPSILON
from auditor.estimators.limits import upper_limit
from auditor.estimators.rates import auc
from auditor.estimators.setting import promises
from auditor.many.whole_curve import RUNS_TESTS, FixedNumber, RunsTest, Sequential, judging_row
from auditor.records.labels import per_record
from auditor.results.document import RunsResult, input_hash, provenance
from auditor.theory.accountant import claimed_curve
from auditor.theory.gaussian import gaussian_epsilon
from auditor.verdicts.judging import judge, overall

# --- Whether the scores of many runs can show anything, and whether they look like runs of their own ---


def _checks_of(losses: Losses) -> tuple[Check, ...]:
    """Return the checks on the scores of all runs.

    >>> losses = Losses(member=[0.0, 0.0, 0.0], nonmember=[1.0, 1.0, 1.0])
    >>> [(check.name, str(check.status)) for check in _checks_of(losses)]
    [('direction', 'ok'), ('ties', 'ok'), ('repeats', 'fail')]
    """
    result, equal = direction(auc(count(losses))), all_equal(losses)
    warned = result.status is Status.WARN
    swapped = answer("direction", "warn/runs" if warned else "ok/runs", {**result.details, "unit": "runs"})
    details = {"all_equal": equal, "unit": "runs"}
    return swapped, answer("ties", "warn/runs" if equal else "ok/runs", details), repeats(losses)


# --- One threshold, chosen without the runs that are judged by it, and the counts that it gives ---


@dataclass(frozen=True)
class _Judged:
    """The runs that are judged, and their threshold.

    Attributes:
        losses: The runs that are judged.
        rule: The name of the rule that chose the threshold.
        threshold: "With the canary" at or below it; None for a grid of ranks.
        chosen_on: Numbers of runs with and without the canary that chose it; None if none did.
    """

    losses: Losses
    rule: str
    threshold: float | None
    chosen_on: tuple[int, int] | None = None

    @property
    def counts(self) -> Counts | None:
        """Number of runs of each world called "with the canary"; None for a grid of ranks."""
        return None if self.threshold is None else Counts.at(self.threshold, self.losses)

    @property
    def choice(self) -> dict[str, Any]:
        """Choice of the threshold, as stored in a result."""
        chosen = None if self.chosen_on is None else list(self.chosen_on)
        return {"chosen_on": chosen, "rule": self.rule, "threshold": self.threshold}

    @property
    def in_words(self) -> str:
        """Choice of the threshold, as a clause."""
        if self.threshold is None:
            return "thresholds at ranks fixed in advance"
        if self.chosen_on is None:
            return "one threshold fixed in advance"
        first, second = self.chosen_on
        return f"one threshold chosen on {first:,} other runs with the canary and {second:,} without"


def _judged(
    losses: Losses, rule: options.ThresholdRule, threshold_runs: Losses | None, *, delta: float, alpha: float
) -> _Judged:
    """Return which runs are judged, and where.

    Raises:
        InputError: Too few runs, or the same runs twice.
    """
    if threshold_runs is not None:
        return _on_others(losses, threshold_runs, delta, alpha)
    match rule:
        case options.RankGrid():
            return _Judged(losses, "RankGrid", None)
        case options.FixedThreshold():
            return _Judged(losses, "FixedThreshold", rule.threshold)
        case options.Split():
            choosing, rest, chosen = split_by(rule, losses, delta, alpha)
            return _Judged(rest, "Split", chosen, (choosing.n_member, choosing.n_nonmember))


def _on_others(losses: Losses, others: Losses, delta: float, alpha: float) -> _Judged:
    if input_hash(others) == input_hash(losses):
        raise InputError(
            "threshold_runs must be other runs than those that are judged, got the same scores; collect them with another"
            " seed, because a threshold chosen on the runs that it judges makes every bound too high."
        )
    shared, total = _shared(losses, others), others.n_member + others.n_nonmember
    if shared is not None:
        raise InputError(
            f"threshold_runs must be other runs than those that are judged, but {shared:,} of their {total:,} scores are"
            " among the judged ones; collect them with another seed, because a threshold chosen on the runs that it judges"
            " makes every bound too high."
        )
    chosen = most_telling(others, delta, alpha)
    return _Judged(losses, "threshold_runs", chosen, (others.n_member, others.n_nonmember))


def _shared(losses: Losses, others: Losses) -> int | None:
    """Return the number of scores of the others among the judged ones if it exceeds chance; otherwise None.

    A new run has the score of a judged one about as often as one of the judged runs has that of another: hardly ever
    where scores are fine, and nearly always where they take few values, which then shows nothing.
    """
    shared, expected, variance = 0, 0.0, 0.0
    groups = ("sorted_member", "sorted_nonmember")
    for judged, other in ((getattr(losses, group), getattr(others, group)) for group in groups):
        values, counts = np.unique(judged, return_counts=True)
        # Two more runs that do and two that do not, so that few runs without a repetition do not exclude one.
        repeated = (float(counts[counts > 1].sum()) + 2) / (judged.size + 4)
        shared += int(np.isin(other, values).sum())
        expected += repeated * other.size
        variance += repeated * (1 - repeated) * other.size * (1 + other.size / judged.size)
    allowed = repetitions_allowed(others.n_member + others.n_nonmember, variance=variance)
    return shared if shared - expected > allowed else None


# --- The rows of an audit of many runs: two methods at one threshold, of which neither judges ---


CERTIFIED = "epsilon_bound.clopper_pearson"

_ONE_THRESHOLD = "it needs one threshold, and a grid of ranks has many; fix one in advance, or have it chosen on other runs"
_FIXED_ONLY = "it holds only where the number of runs was fixed before anybody looked"


@dataclass(frozen=True)
class _Basis:
    """Shared fields of all rows."""

    judged: _Judged
    delta: float
    confidence: float
    adjacency: options.Adjacency

    @property
    def alpha(self) -> float:
        return 1 - self.confidence

    @property
    def details(self) -> dict[str, Any]:
        """The threshold and its counts."""
        counts = self.judged.counts
        return {"unit": "runs", **self.judged.choice, **({} if counts is None else vars(counts))}

    @property
    def declared(self) -> tuple[str, ...]:
        """Assumptions of every row."""
        added = self.adjacency is options.Adjacency.ADD_REMOVE
        other = "without it" if added else "with another record in its place"
        return (
            "every run drew its own randomness, so that the scores are independent (declared, not checked)",
            f"the runs differ by nothing but one record: with the canary, or {other} (declared, not checked)",
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the rows at one threshold, or at ranks."""
        fixed = self.judged.chosen_on is None
        looked = "no threshold was chosen by looking at the runs that it judges"
        return (*self.declared, looked if fixed else "the threshold was chosen on other runs")

    def row(self, name: str, value: float, method: str, *assumptions: str, **details: Any) -> Estimate:
        """Return a lower bound; the value is the bound."""
        return Estimate.at_least(
            name,
            value,
            confidence=self.confidence,
            method=f"{method}; {self.judged.in_words}",
            subject=Subject.MECHANISM,
            delta=self.delta,
            adjacency=self.adjacency,
            assumptions=(*assumptions, *self.assumptions),
            details={**self.details, **details},
        )

    def without(self, name: str, method: str, reason: str, **details: Any) -> Estimate:
        """Return the row without a value."""
        return self.row(name, 0.0, method, reason=reason, **details).emptied(reason)


def _certified(basis: _Basis, rule: options.ThresholdRule) -> Estimate:
    threshold = basis.judged.threshold
    used = rule if threshold is None else options.FixedThreshold(threshold)
    base = clopper_pearson(basis.judged.losses, delta=basis.delta, confidence=basis.confidence, rule=used)
    details = {**base.details, "rule": basis.judged.rule}
    if basis.judged.counts is not None:
        details |= _limits(basis.judged.counts, basis.alpha)
    method = _METHODS.get(details["interval"], "Clopper-Pearson limits of both error rates")
    return basis.row(CERTIFIED, base.value or 0.0, method, **details)


_METHODS = {
    "Calibrated": "every rank of both tails, calibrated together",
    "Melded": "melded Clopper-Pearson limits",
}


def _limits(counts: Counts, alpha: float) -> dict[str, float]:
    """Return both rates with half of the error each, for the certified and the Gaussian row."""
    misses = counts.members - counts.true_positives
    fnr = float(upper_limit(misses, counts.members, alpha / 2))
    fpr = float(upper_limit(counts.false_positives, counts.nonmembers, alpha / 2))
    return {"tpr_lower": 1 - fnr, "fpr_upper": fpr, "fnr_upper": fnr}


def _gdp(basis: _Basis) -> Estimate:
    """Return mu_L = Phi^-1(1 - FPR_U) - Phi^-1(FNR_U): both upper limits (erratum to the lecture slides, which take a lower)."""
    method = "Gaussian trade-off curve through Clopper-Pearson limits; Nasr et al. 2023"
    counts = basis.judged.counts
    if counts is None:
        return basis.without(GDP, method, _ONE_THRESHOLD, conditional=True)
    limits = _limits(counts, basis.alpha)
    mu, most = _mu(counts, basis.alpha), _mu(_perfect(counts), basis.alpha)
    details = {"mu": mu, "ceiling_mu": most, "conditional": True, **limits}
    if basis.delta == 0:
        return basis.without(GDP, method, NO_EPSILON, **details)
    return basis.row(
        GDP,
        gaussian_epsilon(mu, delta=basis.delta),
        method,
        "conditional on a Gaussian trade-off curve: on other mechanisms it can exceed the truth",
        ceiling=gaussian_epsilon(most, delta=basis.delta),
        **details,
    )


def _perfect(counts: Counts) -> Counts:
    return Counts(counts.members, counts.members, 0, counts.nonmembers)


def _mu(counts: Counts, alpha: float) -> float:
    limits = _limits(counts, alpha)
    # As two lower tails, so that small rates keep their digits; a rate of 1 gives minus infinity, and so 0.
    return max(0.0, float(-special.ndtri(limits["fpr_upper"]) - special.ndtri(limits["fnr_upper"])))


_MOST_COUNTED = 10_000_000


def _scores_of(counts: Any, **others: Any) -> Losses:
    """Return scores that give these counts at a threshold of 0: 0 where a run was called one with the canary, else 1.

    Raises:
        InputError: They are no such counts, or stand beside what goes with scores alone.
    """
    for name, value in others.items():
        if value is not None:
            raise InputError(f"{name} must be left out beside counts, of one threshold fixed in advance.")
    if not isinstance(counts, Sequence) or len(counts) != len(fields(Counts)):
        raise InputError(
            "counts must be four numbers (true positives, runs with the canary, false positives, runs without it), got"
            f" {counts!r:.80}."
        )
    groups = []
    for hits, runs, world in ((*counts[:2], "with the canary"), (*counts[2:], "without it")):
        total = validate.at_least(f"counts of runs {world}", runs, least=2)
        called = validate.at_least(f"counts of positives among runs {world}", hits, least=0)
        if not called <= total <= _MOST_COUNTED:
            must = f"be at least as many as their positives and at most {_MOST_COUNTED:,}"
            raise InputError(f"counts of runs {world} must {must}, got {total:,} with {called:,} positives.")
        groups.append(np.repeat([0.0, 1.0], [called, total - called]))
    words = "{:,} of {:,} runs with the canary and {:,} of {:,} without it were called runs with it"
    return Losses(groups[0], groups[1], history=(words.format(*map(int, counts)),))


@dataclass(frozen=True, eq=False)
class RunsOptions:
    """Measurements, and the options for judging them.

    These are the arguments of `audit_runs` and the options of the command.

    Attributes:
        losses: One score for each run, smaller meaning more like a run with the canary: of runs with it (``member``) and
            without it (``nonmember``), as `collect_runs` makes them.
        counts: In place of scores the counts at one threshold fixed in advance, as publications report it: true
            positives, runs with the canary, false positives, runs without it, such as 4922 100000 174 100000.
        delta: In [0, 1); by default that of a stated claim. With a claim, all rows are stated at the claim's own delta, or
            at the one that follows from it for replaced records.
        confidence: Confidence level of every interval, in (0, 1).
        looks: Number of looks at this claim, in this audit and others like it, 1 or more: they share the error.
        adjacency: Difference between the two worlds: the canary is there or not (``add-remove``), or there is another record
            in its place (``replace-one``).
        claim: Claim about the training algorithm: `DPSGD`, or `StatedClaim` and its forms.
        threshold: Choice of the threshold on the score: on one part of the runs, and the rest is judged (``split``, the
            default; ``split:seed=3`` draws another part), without any of these runs (``fixed:VALUE``), or at many ranks at
            once, which gives the certified row alone (``rank-grid``).
        threshold_runs: Other runs of the same kind, which choose the threshold; then all runs are judged. Collect them with
            another seed: with the same one, `collect_runs` makes the same runs again.
        test: Rule for the number of runs: ``fixed-number`` (`FixedNumber`, the default) or ``sequential``
            (`Sequential`), for runs that may have been stopped at any time: they must be in the order of their numbers,
            which was fixed before they ran, and pairs share nothing with other pairs.

    Raises:
        InputError: An option that cannot be used; the message says which and why.
    """

    losses: Losses | None = None
    _: KW_ONLY
    counts: tuple[int, int, int, int] | None = None
    delta: float | None = None
    confidence: float = 0.95
    looks: int = 1
    adjacency: options.Adjacency | str = options.Adjacency.ADD_REMOVE
    claim: options.TrainingClaim | None = None
    threshold: options.ThresholdRule | str | None = None
    threshold_runs: Losses | None = None
    test: RunsTest | str | None = None

    def __post_init__(self) -> None:
        losses, rules = self.losses, options.THRESHOLDS
        threshold = options.chosen("threshold", self.threshold, rules, optional=True)
        if self.counts is not None:
            beside = ("losses", "threshold", "threshold_runs", "test")
            losses = _scores_of(self.counts, **{name: getattr(self, name) for name in beside})
            threshold = options.FixedThreshold(0.0)
        if self.threshold is not None and self.threshold_runs is not None:
            raise InputError("threshold must be left out beside threshold_runs, which choose it.")
        test = FixedNumber() if self.test is None else options.chosen("test", self.test, RUNS_TESTS)
        threshold = options.Split() if threshold is None else threshold
        validate.instance("losses", losses, (Losses,))
        validate.instance("threshold_runs", self.threshold_runs, (Losses, type(None)))
        between = options.Adjacency.named(self.adjacency)
        claim = _claim_of(self.claim, test, between)
        delta = options.delta_or_that_of(claim, self.delta)
        vars(self).update(losses=losses, threshold=threshold, test=test)
        vars(self).update(adjacency=between, claim=claim, delta=delta)


class _Setting(RunsOptions):
    """The checked options."""

    losses: Losses
    delta: float
    adjacency: options.Adjacency
    threshold: options.ThresholdRule
    test: RunsTest


@of_options(RunsOptions)
def audit_runs(chosen: RunsOptions) -> RunsResult:
    """Audit a training mechanism from the scores of many independent runs, with a canary and without.

    A claim is judged by its whole trade-off curve, at every threshold on the score at once (`FixedNumber`) or by bets that
    hold whenever they are looked at (`Sequential`), with all runs: none is spent on choosing a threshold. The result names
    the point of the curve that was contradicted. With `FixedNumber` fix the number of runs before you look: a test that is
    looked at again and again until it refutes no longer holds at its confidence.

    Beside it, for reading: one threshold guesses the world of a run, chosen on runs that it does not judge, because the
    best threshold of the judged runs themselves makes every bound too high. Its two error rates bound epsilon from below
    in both directions, by two methods.

    Raises:
        InputError: Arguments that cannot be used, or too few runs.

    Source: the joint test, the exact test and the bets are [own], derived in `auditor.estimators.joint_test`, `exact_test`
    and `betting`; Jagielski et al. 2020 and Nasr et al. 2021 (Clopper-Pearson), Nasr et al. 2023 (Gaussian).

    >>> import numpy as np
    >>> from auditor import StatedClaim
    >>> rng = np.random.default_rng(0)
    >>> runs = Losses(member=rng.normal(-3, 1, 2000), nonmember=rng.normal(0, 1, 2000))
    >>> result = audit_runs(runs, delta=1e-5, claim=StatedClaim(epsilon=1.0, delta=1e-5))
    >>> str(result.verdict), result.estimate("epsilon_bound.clopper_pearson").value > 3
    ('refuted', True)
    """
    setting = cast("_Setting", chosen)
    values, claim, between = setting.losses, setting.claim, setting.adjacency
    _refuse_other_scores(values, setting.test)
    losses = _each_run_once(values)
    threshold_runs = setting.threshold_runs and _each_run_once(setting.threshold_runs)
    confidence = validate.of_one_look(setting.confidence, setting.looks)
    claims, audited = _promised(claim, delta=setting.delta, adjacency=between)
    stated_at = setting.delta if audited is None or audited.delta is None else audited.delta
    result = _judged(losses, setting.threshold, threshold_runs, delta=stated_at, alpha=1 - confidence)
    basis = _Basis(result, stated_at, confidence, between)
    promised = None if claim is None else claimed_curve(claim, adjacency=between)
    # Whether the claim's curve for these worlds is that of one epsilon and delta.
    one_point = isinstance(claim, options.StatedClaim) and claim.adjacency is between
    whole = None if promised is None or one_point else promised.curve
    judging = judging_row(
        losses,
        test=setting.test,
        promised=promised,
        claimed=math.inf if audited is None or audited.value is None else audited.value,
        one_point=one_point,
        delta=stated_at,
        confidence=confidence,
        adjacency=between,
        declared=basis.declared,
    )
    reading = [_certified(basis, setting.threshold), _gdp(basis)]
    if isinstance(setting.test, Sequential):
        reading = [row.emptied(_FIXED_ONLY) for row in reading]
    own = _checks_of(losses)[: None if setting.counts is None else 2]  # of counts, all but the repeats
    checks = (*own, *filter(None, [sampler_check(claim)]))
    comparisons = () if audited is None else (judge(audited, judging, checks=checks),)
    seed = setting.threshold.seed if isinstance(setting.threshold, options.Split) else 0
    origin = provenance(values, seed=seed, source=None, command=None)
    origin |= {} if threshold_runs is None else {"threshold_runs_sha256": input_hash(threshold_runs)}
    return RunsResult(
        data={
            **_data(losses, basis, claim),
            "certified": judging.name,
            "test": type(setting.test).__name__,
            **validate.several_looks(setting.looks),
        },
        estimates=(judging, *reading),
        claims=claims,
        comparisons=comparisons,
        checks=checks,
        verdict=overall(comparisons),
        provenance=origin,
        curves=curves_of_runs(losses, judging, audited, whole, fixed=isinstance(setting.test, FixedNumber)),
    )


def _data(losses: Losses, basis: _Basis, claim: options.TrainingClaim | None) -> dict[str, Any]:
    """Return the description of the runs and of the way they are judged, for a result."""
    result, counts = basis.judged, basis.judged.counts
    return {
        "n_with": losses.n_member,
        "n_without": losses.n_nonmember,
        "judged": [result.losses.n_member, result.losses.n_nonmember],
        **result.choice,
        "true_positives": None if counts is None else counts.true_positives,
        "false_positives": None if counts is None else counts.false_positives,
        "delta": basis.delta,
        "confidence": basis.confidence,
        "adjacency": str(basis.adjacency),
        "claim": None if claim is None else claim.in_words(),
        "claim_delta": claim.delta if isinstance(claim, options.StatedClaim) else None,
        "history": list(losses.history),
    }


def _refuse_other_scores(losses: Losses, test: RunsTest) -> None:
    """Refuse summaries, and runs that were stopped by their evidence where their number is said to be fixed."""
    if losses.bits is not None:
        raise InputError(
            "losses must be the scores of single runs, got a summary; give the scores themselves."
        )
    if isinstance(test, FixedNumber):
        losses.refuse_stopped()


def _each_run_once(losses: Losses) -> Losses:
    """Return one score for each run, which may be listed several times.

    Raises:
        InputError: Ids with several scores in a world. Their mean would be right for a run that was scored several times, and
            wrong for a canary with several runs, which together show more than one does.
    """
    low, high = (per_record(losses, by=end) for end in ("min", "max"))
    if low.largest > 1 and not (low.combined and input_hash(low.losses) == input_hash(high.losses)):
        raise InputError(
            f"ids must name runs, which have one score each, got up to {low.largest:,} rows of one id in a world;"
            " if each row is a run, leave the ids out or name the runs, and if a run was scored several times, give"
            " their mean."
        )
    return low.losses


def _claim_of(
    claim: options.TrainingClaim | None, test: RunsTest, adjacency: options.Adjacency
) -> options.TrainingClaim | None:
    """Return the claim of the audit, or the one that the collection was watched for."""
    validate.instance("claim", claim, (*get_args(options.TrainingClaim), type(None)))
    if isinstance(test, FixedNumber) or test.claim is None:
        return claim
    if claim is not None and claim != test.claim:
        raise InputError(
            f"claim must be that of test=Sequential(claim=...) or be left out, got {claim.in_words()} beside"
            f" {test.claim.in_words()}."
        )
    if adjacency is not test.adjacency:
        said = f"adjacency must be that of test=Sequential(...), {test.adjacency}"
        raise InputError(f"{said}, got {adjacency}.")
    return test.claim


def _promised(
    claim: options.TrainingClaim | None, *, delta: float, adjacency: options.Adjacency
) -> tuple[tuple[Claim, ...], Claim | None]:
    """Return everything that the description promises, and the form of it for the worlds that were run."""
    if claim is None or adjacency is options.Adjacency.REPLACE_ONE:
        return promises(claim, delta=delta, split=options.RandomSplit())
    claims, _ = promises(claim, delta=delta, split=options.BernoulliSplit())
    at = claim.delta if isinstance(claim, options.StatedClaim) else delta
    return claims, theory.epsilon(claim, delta=at, adjacency=options.Adjacency.ADD_REMOVE)
