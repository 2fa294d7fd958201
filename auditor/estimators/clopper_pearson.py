"""``epsilon_bound.clopper_pearson``: a certified, distribution-free lower bound on the model's epsilon.

For one threshold fixed in advance, with L and U the Clopper-Pearson limits:

    eps_L = max(0, log((L(TPR) - d)/U(FPR)), log((L(TNR) - d)/U(FNR)))

Choosing the best of many thresholds on the same data breaks the level; the rules here do not.
"""

from auditor import _validate
from auditor.choices import (
    ClopperPearson,
    FixedThreshold,
    Jeffreys,
    Katz,
    Melded,
    Members,
    RankGrid,
    Sample,
    Split,
    ThresholdInterval,
    ThresholdRule,
)
from auditor.estimators.as_draws import finite, with_draws
from auditor.estimators.member_limits import MemberLimits
from auditor.estimators.rank_grid import grid_bound, grid_ceiling
from auditor.estimators.single_threshold import Counts, bound_at, ceiling, threshold_bound
from auditor.estimators.split import split_bound
from auditor.values import Estimate, Losses, Subject

__all__ = ["clopper_pearson", "confusion_bound"]


def confusion_bound(
    true_positives: int,
    positives: int,
    false_positives: int,
    negatives: int,
    *,
    delta: float,
    confidence: float = 0.95,
    interval: ThresholdInterval = ClopperPearson(),  # noqa: B008 - a frozen value
) -> float:
    """Return eps_L of one threshold fixed in advance, from its four counts.

    Args:
        true_positives: Members called members.
        positives: Members.
        false_positives: Non-members called members.
        negatives: Non-members.
        delta: In [0, 1).
        confidence: In (0, 1); half of the error goes to each of the two rates, which covers both ratios.
        interval: `ClopperPearson` (exact, the default), or the approximate `Katz` and `Jeffreys`.

    Raises:
        InputError: Counts that do not fit, delta outside [0, 1) or confidence outside (0, 1).

    >>> round(confusion_bound(500, 1000, 10, 1000, delta=1e-5), 6)
    3.241995
    """
    for name, hits, total in (
        ("true_positives", true_positives, positives),
        ("false_positives", false_positives, negatives),
    ):
        _validate.at_least(name, hits, least=0)
        _validate.at_least(f"trials for {name}", total, least=max(1, hits))
    _validate.instance("interval", interval, (ClopperPearson, Katz, Jeffreys))
    found = threshold_bound(
        Counts(true_positives, positives, false_positives, negatives),
        MemberLimits(Sample(), positives),
        delta=_validate.fraction("delta", delta, zero=True),
        alpha=1 - _validate.confidence(confidence),
        interval=interval,
    )
    return max(0.0, found.epsilon)


def clopper_pearson(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
    rule: ThresholdRule = RankGrid(),  # noqa: B008
) -> Estimate:
    """Return the certified lower bound on the model's epsilon; value == lower, 0 means "no evidence".

    Args:
        losses: Smaller means more like a member.
        delta: In [0, 1).
        confidence: In (0, 1).
        members: `Sample` (default), `Subset` or `Census`; see there. Unless they are a sample, ``details["as_draws"]``
            keeps what is found if they are taken for one.
        rule: `RankGrid` (default), `FixedThreshold` or `Split`.

    Raises:
        InputError: delta outside [0, 1) or confidence outside (0, 1), a subset of fewer records than were scored,
            or approximate limits for members that are not a sample.

    >>> import numpy as np
    >>> losses = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> estimate = clopper_pearson(losses, delta=1e-5)
    >>> estimate.value == estimate.lower == estimate.details["ceiling"]
    True
    """
    delta = _validate.fraction("delta", delta, zero=True)
    alpha = 1 - _validate.confidence(confidence)
    match rule:
        case RankGrid():
            found = grid_bound(losses, delta=delta, alpha=alpha, rule=rule, members=members)
            sizes = losses.n_member, losses.n_nonmember
            most = grid_ceiling(*sizes, delta=delta, alpha=alpha, rule=rule, members=members)
        case FixedThreshold():
            limits = MemberLimits(members, losses.n_member)
            found = bound_at(losses, limits, delta, alpha, rule)
            most = ceiling(limits, losses.n_nonmember, delta, alpha, rule.interval)
        case Split():
            found, most = split_bound(losses, delta, alpha, rule, members)
    value = max(0.0, found.epsilon)
    # Other limits than two exact ones are for one sample each way: see the rank grid and the single threshold.
    own = isinstance(members, Sample)
    interval = rule.interval if own and not isinstance(rule, Split) else ClopperPearson()
    details = {"rule": type(rule).__name__, "interval": type(interval).__name__, "ceiling": most}
    if isinstance(interval, Katz | Jeffreys):
        details["approximate"] = True
    estimate = Estimate(
        name="epsilon_bound.clopper_pearson",
        value=value,
        lower=value,
        upper=None,
        confidence=confidence,
        method=f"{_LIMITS[type(interval)]}, {_RULES[type(rule)]}",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=_assumptions(members, interval),
        details={**details, **(found.details if value > 0 else {})},
    )
    if own:
        return estimate
    return with_draws(estimate, clopper_pearson(losses, delta=delta, confidence=confidence, rule=rule))


_RULES = {
    RankGrid: "thresholds at ranks fixed in advance",
    FixedThreshold: "one threshold fixed in advance",
    Split: "threshold chosen on one part of the records and judged on the other",
}
_LIMITS: dict[type, str] = {
    ClopperPearson: "Clopper-Pearson limits",
    Melded: "melded Clopper-Pearson limits",
    Katz: "Katz log-ratio limits, an approximation",
    Jeffreys: "Jeffreys limits, an approximation",
}


def _assumptions(members: Members, interval: object) -> tuple[str, ...]:
    about = finite(members, what="bound") or ("the scored members are a random sample of the training set",)
    found = ("records within each group are independent draws", "membership labels are right", *about)
    if isinstance(interval, Katz | Jeffreys):
        return (
            *found,
            "approximate limits: the bound can exceed the truth more often than its confidence says",
        )
    return found
