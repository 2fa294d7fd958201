"""records_needed() and ceiling(): the certifiable epsilon of an audit of a given size, and the size that a target needs."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, cast

from scipy import special

from auditor.checks.answers import said
from auditor.core import InputError, Losses, Subject, as_stated, number, of_options, options, plain, validate
from auditor.curves.tradeoff import count
from auditor.estimators.one_run import OF_BETS
from auditor.estimators.rates import auc
from auditor.many import planned_audits as planned
from auditor.many.assumed_attacks import ATTACKS, Attack, GaussianAttack, PerfectAttack
from auditor.many.whole_curve import RUNS_TESTS, RunsTest, Sequential
from auditor.theory.accountant import claimed_curve

# --- How many records certify an epsilon, or refute a claim, if the attack is as assumed ---

_PERFECT = PerfectAttack()
# Audits whose target can be an epsilon.
_BOUNDS = (planned.ModelAudit, planned.OneRunAudit, planned.LabelsAudit)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Number of records, or of runs, that certifies an epsilon or refutes a claim.

    Attributes:
        epsilon: The target, in nats; None if a claim is the target.
        delta: The delta at which it would be certified; None if a claim is the target.
        confidence: Confidence level of the bound.
        n_member: Members to score, or runs with the canary; None if no number suffices. Of a `BernoulliSplit` the expected
            number.
        n_nonmember: Non-members to score, or runs without the canary.
        chance: Chance that so many reach the target if the attack is as assumed; 1 if nothing is random.
        power: The requested chance.
        ceiling: Certified bound of a perfect attack on so many records; None if a claim is the target.
        limit: The largest epsilon that the assumed attack shows by this method, however many records there are; None if a
            claim is the target.
        subject: Whether the bound is about the model or about the training algorithm.
        adjacency: The neighbouring relation, for a bound about the training algorithm.
        estimate: The name of the planned bound.
        method: Method of computation, in words.
        attack: The assumed attack, in words.
        reason: Reason why no number suffices, or None.
        claim: The claim that is to be refuted, in words, or None.
        unit: Unit of the counts: "records", "runs" or, of an audit of labels, "labels".
    """

    epsilon: float | None
    delta: float | None
    confidence: float
    n_member: int | None = None
    n_nonmember: int | None = None
    chance: float | None = None
    power: float
    ceiling: float | None = None
    limit: float | None
    subject: Subject
    adjacency: options.Adjacency | None
    estimate: str
    method: str
    attack: str
    reason: str | None = None
    claim: str | None = None
    unit: str = "records"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, infinities as strings."""
        return dict(plain(self))


@dataclass(frozen=True, eq=False)
class PlanOptions:
    """Target to certify or to refute, and the assumed quality of the attack.

    These are the arguments of `records_needed` and the options of the command.

    Attributes:
        epsilon: To certify, in nats, above 0; or else a claim.
        delta: To certify it at, in [0, 1); a claim has its own.
        claim: To refute, by its whole curve; needs a declared split, or runs.
        runs: ``fixed-number`` (`FixedNumber`) or ``sequential`` (`Sequential`), if runs with a canary and without are to
            refute the claim. In a sequential audit the wanted chance is that of having refuted it by then, from a few
            hundred simulated audits, fewer where they are long.
        confidence: Confidence level of the bound, in (0, 1).
        coverage: Scored part of the training records: ``sample`` (the default), ``census`` or ``subset:50000``;
            only the model's own bound depends on it.
        split: Assignment of membership: ``unknown``, ``random``, ``propensity`` or ``bernoulli:0.3``, which is for
            canaries too, each with a coin of its own.
        attack: ``perfect`` (`PerfectAttack`, the default), ``gaussian:MU`` (`GaussianAttack`: scores of two normals so many
            standard deviations apart) or ``randomised-response:EPSILON`` (`RandomisedResponse`: guesses as right as its own).
        control: Losses of canaries under a model that was trained without noise (`Losses`), in place of an attack: the plan
            is for canaries that separate as well as these, by their AUC.
        power: The chance of reaching the target that the plan gives, in (0, 1).
        adjacency: Difference between the runs, ``add-remove`` or ``replace-one``.
        labels: Number of classes, if `auditor.audit_labels` is planned; features make each as likely as the others. The
            attack is then perfect or names a label by `RandomisedResponse`, and ``n_member`` counts the training records.

    Raises:
        InputError: An option that cannot be used; the message says which and why.
    """

    epsilon: float | None = None
    _: KW_ONLY
    delta: float | None = None
    claim: options.TrainingClaim | None = None
    runs: RunsTest | str | None = None
    confidence: float = 0.95
    coverage: options.Coverage | str = field(default=options.Sample())
    split: options.MembershipSplit | str = field(default=options.UnknownSplit())
    attack: Attack | str = _PERFECT
    control: Losses | None = None
    power: float = 0.8
    adjacency: options.Adjacency | str | None = None
    labels: int | None = None

    def __post_init__(self) -> None:
        for name, kinds in _CHOICES.items():
            vars(self)[name] = options.chosen(name, getattr(self, name), kinds, optional=name == "runs")
        if self.adjacency is not None and self.runs is None:
            raise InputError("adjacency is the difference between runs: leave it out, or give runs.")
        vars(self)["adjacency"] = options.Adjacency.named(self.adjacency or options.Adjacency.ADD_REMOVE)
        validate.instance("control", self.control, (Losses, type(None)))
        if self.control is not None and self.attack != _PERFECT:
            raise InputError(f"attack must be left out with control, which shows it, got {self.attack}.")
        validate.fraction("power", self.power)
        validate.confidence(self.confidence)


_CHOICES: dict[str, Mapping[str, Any]] = {
    "runs": RUNS_TESTS,
    "coverage": options.COVERAGES,
    "split": options.SPLITS,
    "attack": ATTACKS,
}


class _Setting(PlanOptions):
    """The checked options."""

    runs: RunsTest | None
    coverage: options.Coverage
    split: options.MembershipSplit
    attack: Attack
    adjacency: options.Adjacency


@of_options(PlanOptions)
def records_needed(chosen: PlanOptions) -> Plan:
    """Return how many records certify an epsilon, or how many records or runs refute a claim, if the attack is as assumed.

    Without a declared split the plan is for the model's own bound, with a `RandomSplit` or a `BernoulliSplit` (the coins of
    canaries are one) for the one-run audit of the training algorithm by its default test, with a `Propensity` for the bound by
    estimated odds where the groups overlap entirely, the fewest that can do, and with ``runs`` for
    `auditor.audit_runs`. A perfect attack gives the fewest that any attack could do with. The plan is the smallest number
    that has the wanted chance, up to half a percent; a larger one can have a little less where a bound shares its error
    among more thresholds.

    Raises:
        InputError: An argument that cannot be used; the message says which and why.

    >>> plan = records_needed(1.0, delta=1e-5, split=options.RandomSplit())
    >>> plan.n_member, plan.estimate
    (19, 'epsilon_bound.one_run')
    """
    setting = cast("_Setting", chosen)
    epsilon, delta, claim, labels = setting.epsilon, setting.delta, setting.claim, setting.labels
    attack, power = setting.attack, setting.power
    audit: planned.Audit
    if claim is not None and epsilon is None and delta is None and labels is None:
        audit = _refuting(setting, claim)
        target = f"refute the claim of {claim.in_words()}"
    elif claim is None and setting.runs is None and epsilon is not None and delta is not None:
        audit = _certifying(setting, epsilon, delta)
        target = f"certify {as_stated(epsilon)} at delta {as_stated(delta)}"
    else:
        raise InputError(
            "a plan has one target: give epsilon and delta to certify, or a claim to refute; runs refute claims, and audits of labels none."
        )
    shown = attack if setting.control is None else _shown(setting.control)
    attack = shown or attack
    n = _fewest(audit, attack, power) if shown is not None and audit.in_reach(attack) else None
    bound = audit if isinstance(audit, _BOUNDS) and claim is None else None
    plan = Plan(
        epsilon=epsilon,
        delta=delta,
        confidence=setting.confidence,
        power=power,
        limit=None if bound is None else bound.limit(attack),
        subject=audit.subject,
        adjacency=audit.adjacency,
        estimate=audit.estimate,
        method=audit.method,
        unit=audit.unit,
        attack="a training without noise" if shown is None else attack.in_words(),
        claim=None if claim is None else claim.in_words(),
    )
    if n is None:
        why = said("control", "alike").rstrip(".") if shown is None else _why_not(audit, attack, target)
        return replace(plan, reason=why)
    sizes = (n, 0) if labels is not None else _sizes(n, setting.split)
    chance, ceiling = audit.chance(n, attack), None if bound is None else bound.ceiling(*sizes)
    return replace(plan, n_member=sizes[0], n_nonmember=sizes[1], chance=chance, ceiling=ceiling)


def _shown(control: Losses) -> Attack | None:
    """Return the attack on normal losses whose AUC is that of a training without noise; None if chance explains it."""
    area = auc(count(control))
    if area.value is None or (area.lower or 0.0) <= _CHANCE:
        return None
    return _PERFECT if area.value == 1 else GaussianAttack(math.sqrt(2) * float(special.ndtri(area.value)))


_CHANCE = 0.5


def _certifying(
    setting: _Setting, epsilon: float, delta: float
) -> planned.ModelAudit | planned.OneRunAudit | planned.LabelsAudit:
    """Return the audit whose bound on epsilon is planned."""
    split, labels, alpha = setting.split, setting.labels, 1 - setting.confidence
    epsilon, delta = validate.positive("epsilon", epsilon), validate.fraction("delta", delta, zero=True)
    if delta and (labels is not None or isinstance(split, options.Propensity)):
        raise InputError(
            "delta must be 0 in the plan of an audit of labels or on estimated odds, which states its bound there, got"
            f" {delta:g}."
        )
    if labels is not None:
        if not isinstance(split, options.UnknownSplit):
            raise InputError(f"split must be left out in the plan of an audit of labels, got {split}.")
        return planned.LabelsAudit(validate.at_least("labels", labels, least=2), alpha, epsilon)
    if isinstance(split, options.UnknownSplit):
        return planned.ModelAudit(epsilon, delta, alpha, setting.coverage)
    if isinstance(split, options.Propensity):
        return planned.PropensityAudit(options.BernoulliSplit(), alpha, epsilon, 0.0)
    return planned.OneRunAudit(split, alpha if delta else alpha * (1 - OF_BETS), epsilon, delta)


def _refuting(
    setting: _Setting, claim: options.TrainingClaim
) -> planned.OneRunAudit | planned.RunsAudit | planned.SequentialAudit:
    """Return the audit that is planned to refute a claim."""
    split, runs, alpha = setting.split, setting.runs, 1 - setting.confidence
    if isinstance(split, options.NO_CHANCE) == (runs is None):
        raise InputError(
            "a claim is refuted by one run on a declared split, random or by coins (canaries), or by many runs; give one"
            " of the two."
        )
    claimed = claimed_curve(claim, adjacency=planned.neighbours(split) if runs is None else setting.adjacency)
    curve = claimed.curve
    if curve is None:
        raise InputError(f"no such audit refutes the claim of {claim.in_words()}: {claimed.note}.")
    if isinstance(split, options.NO_CHANCE):
        audit = planned.SequentialAudit if isinstance(runs, Sequential) else planned.RunsAudit
        return audit(curve, alpha, setting.adjacency)
    at_none = curve.tpr_at(0.0)
    if at_none == 0:  # a pure claim is audited at delta 0, by its epsilon
        return planned.OneRunAudit(split, alpha * (1 - OF_BETS), curve.epsilon_at(0.0), 0.0)
    return planned.OneRunAudit(split, alpha, 0.0, at_none, curve)


def _sizes(n: int, split: options.MembershipSplit) -> tuple[int, int]:
    if isinstance(split, options.Propensity):
        return n // 2, n - n // 2
    if not isinstance(split, options.BernoulliSplit):
        return n, n
    inside = min(max(round(n * planned.common_inclusion(split)), 1), n - 1)
    return inside, n - inside


def _why_not(audit: planned.Audit, attack: Attack, target: str) -> str:
    if audit.in_reach(attack):
        return f"even {audit.marks[-1]:,} {audit.counted} do not {target}"
    if isinstance(audit, _BOUNDS) and audit.whole is None:
        most = number(audit.limit(attack), toward="down")
        return f"with {attack.in_words()} this audit shows at most {most}, however large it is: too little to {target}"
    return f"with {attack.in_words()} this audit stays within the claim, however large it is"


# --- The smallest number that has the wanted chance ---

_CLOSE = 1 / 200  # as a share; a perfect attack's number is exact
# Numbers of guesses are rounded, so that somewhat fewer may do.
_EARLIER = (0.76, 0.8, 0.84, 0.88, 0.92, 0.96)


def _fewest(audit: planned.Audit, attack: Attack, power: float) -> int | None:
    """Return it, None if there is none: between two marks of an audit the chance grows with the number, but for rounding."""
    close = 0.0 if isinstance(attack, PerfectAttack) else _CLOSE
    # The first that looks good enough is a lucky one: simulated, it has to be better by two standard errors.
    power = min(1.0, power + 2 * math.sqrt(power * (1 - power) / planned.DRAWS))

    def enough(n: int) -> bool:
        return audit.chance(n, attack) >= power

    low = 1
    for mark in audit.marks:
        if enough(mark):
            high = mark
            while high - low > max(1.0, close * high):
                middle = (low + high) // 2
                low, high = (low, middle) if enough(middle) else (middle, high)
            return next(filter(enough, sorted({max(2, int(share * high)) for share in _EARLIER})), high)
        low = mark
    return None
