"""``epsilon_bound.clopper_pearson``: a certified, distribution-free lower bound on the model's epsilon.

For one threshold fixed in advance, with L and U the Clopper-Pearson limits:

    eps_L = max(0, log((L(TPR) - d)/U(FPR)), log((L(TNR) - d)/U(FNR)))

Choosing the best of many thresholds on the same data breaks the level; the rules here do not.
"""

import math

import numpy as np

from auditor import _validate
from auditor.choices import Census, FixedThreshold, Members, RankGrid, Sample, Split, ThresholdRule
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.estimators.rank_grid import Candidate, grid_bound
from auditor.values import Estimate, Floats, Losses, Subject

__all__ = ["clopper_pearson", "confusion_bound"]


def confusion_bound(
    true_positives: int,
    positives: int,
    false_positives: int,
    negatives: int,
    *,
    delta: float,
    confidence: float = 0.95,
) -> float:
    """Return eps_L of one threshold fixed in advance, from its four counts.

    Args:
        true_positives: Members called members.
        positives: Members.
        false_positives: Non-members called members.
        negatives: Non-members.
        delta: In [0, 1).
        confidence: In (0, 1); half of the error goes to each of the two rates, which covers both ratios.

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
    delta = _validate.fraction("delta", delta, zero=True)
    alpha = 1 - _validate.confidence(confidence)
    tpr = float(lower_limit(true_positives, positives, alpha / 2))
    fpr = float(upper_limit(false_positives, negatives, alpha / 2))
    # L(TNR) = 1 - U(FPR) and U(FNR) = 1 - L(TPR): the same two events cover the other ratio.
    return max(0.0, _log_ratio(tpr, fpr, delta), _log_ratio(1 - fpr, 1 - tpr, delta))


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
        members: `Sample` (default) or `Census`; see there.
        rule: `RankGrid` (default), `FixedThreshold` or `Split`.

    Raises:
        InputError: delta outside [0, 1) or confidence outside (0, 1).

    >>> losses = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> estimate = clopper_pearson(losses, delta=1e-5)
    >>> estimate.value == estimate.lower == estimate.details["ceiling"]
    True
    """
    delta = _validate.fraction("delta", delta, zero=True)
    alpha = 1 - _validate.confidence(confidence)
    census = isinstance(members, Census)
    match rule:
        case RankGrid():
            found, ceiling = grid_bound(losses, delta, alpha, rule, census=census)
        case FixedThreshold():
            found = _at_threshold(losses, delta, alpha, rule.threshold, census=census)
            ceiling = _ceiling_at_one(losses.n_member, losses.n_nonmember, delta, alpha, census=census)
        case Split():
            found, ceiling = _split(losses, delta, alpha, rule, census=census)
    value = max(0.0, found.epsilon)
    assumptions = ["records within each group are independent draws", "membership labels are right"]
    assumptions.append(_CENSUS if census else "the scored members are a random sample of the training set")
    return Estimate(
        name="epsilon_bound.clopper_pearson",
        value=value,
        lower=value,
        upper=None,
        confidence=confidence,
        method=f"Clopper-Pearson limits, {_DESCRIPTIONS[type(rule)]}",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=tuple(assumptions),
        details={"rule": type(rule).__name__, "ceiling": ceiling, **(found.details if value > 0 else {})},
    )


_CENSUS = (
    "every training record was scored: the bound compares this finite training set with the population,"
    " and can be positive without any leakage"
)
_DESCRIPTIONS = {
    RankGrid: "thresholds at ranks fixed in advance",
    FixedThreshold: "one threshold fixed in advance",
    Split: "threshold chosen on one part of the records and judged on the other",
}


# --- One threshold ---------------------------------------------------------------------------------


def _log_ratio(numerator: float, denominator: float, delta: float) -> float:
    if numerator <= delta:
        return -math.inf
    return math.inf if denominator == 0 else math.log((numerator - delta) / denominator)


def _single_limits(tp: int, n1: int, fp: int, n0: int, alpha: float, *, census: bool) -> tuple[float, float]:
    """Lower limit of the TPR and upper limit of the FPR; a census knows the TPR."""
    if census:
        return tp / n1, float(upper_limit(fp, n0, alpha))
    return float(lower_limit(tp, n1, alpha / 2)), float(upper_limit(fp, n0, alpha / 2))


def _from_counts(
    tp: int, n1: int, fp: int, n0: int, delta: float, alpha: float, *, census: bool
) -> Candidate:
    tpr, fpr = _single_limits(tp, n1, fp, n0, alpha, census=census)
    lower = _log_ratio(tpr, fpr, delta)
    # An FNR of exactly 0 in a census says nothing about leakage: the training set is finite.
    upper = -math.inf if census and tp == n1 else _log_ratio(1 - fpr, 1 - tpr, delta)
    counts = {"true_positives": tp, "members": n1, "false_positives": fp, "nonmembers": n0}
    tail = "lower" if lower >= upper else "upper"
    return Candidate(max(lower, upper), {"tail": tail, **counts, "tpr_lower": tpr, "fpr_upper": fpr})


def _at_threshold(losses: Losses, delta: float, alpha: float, threshold: float, *, census: bool) -> Candidate:
    tp = int(np.searchsorted(losses.sorted_member, threshold, side="right"))
    fp = int(np.searchsorted(losses.sorted_nonmember, threshold, side="right"))
    found = _from_counts(tp, losses.n_member, fp, losses.n_nonmember, delta, alpha, census=census)
    return Candidate(found.epsilon, {**found.details, "threshold": threshold})


def _ceiling_at_one(n1: int, n0: int, delta: float, alpha: float, *, census: bool) -> float:
    # In a census a miss rate of exactly 0 counts for nothing, so one missed member can show more than none.
    hits = (n1, n1 - 1) if census else (n1,)
    return max(0.0, *(_from_counts(tp, n1, 0, n0, delta, alpha, census=census).epsilon for tp in hits))


def _split(
    losses: Losses, delta: float, alpha: float, rule: Split, *, census: bool
) -> tuple[Candidate, float]:
    rng = np.random.default_rng(rule.seed)
    parts = [_halves(values, rule.fraction, rng) for values in (losses.member, losses.nonmember)]
    (choose1, judge1), (choose0, judge0) = parts
    choosing = Losses(member=choose1, nonmember=choose0)
    threshold = _most_telling(choosing, delta, alpha)
    # A census of which only a part is judged is a sample of the training set.
    judging = Losses(member=judge1, nonmember=judge0)
    found = _at_threshold(judging, delta, alpha, threshold, census=False)
    ceiling = _ceiling_at_one(judging.n_member, judging.n_nonmember, delta, alpha, census=False)
    note = {"census_judged_as_sample": True} if census else {}
    return Candidate(found.epsilon, {**found.details, **note}), ceiling


def _halves(values: Floats, share: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    first = round(share * values.size)
    _validate.at_least("records on each side of a split", min(first, values.size - first), least=2)
    order = rng.permutation(values.size)
    return values[order[:first]], values[order[first:]]


def _most_telling(losses: Losses, delta: float, alpha: float) -> float:
    """The threshold at which this part alone would give the largest single-threshold bound."""
    thresholds = np.unique(np.concatenate([losses.sorted_member, losses.sorted_nonmember]))
    tp = np.searchsorted(losses.sorted_member, thresholds, side="right")
    fp = np.searchsorted(losses.sorted_nonmember, thresholds, side="right")
    # The limits cost a root search each, so look at the corners of a coarse grid of counts only.
    step = max(1, thresholds.size // 2000)
    edge = min(200, thresholds.size)
    chosen = np.unique(
        np.concatenate(
            [
                np.arange(0, thresholds.size, step),
                np.arange(edge),
                np.arange(thresholds.size - edge, thresholds.size),
            ]
        )
    )
    tpr = lower_limit(tp[chosen], losses.n_member, alpha / 2)
    fpr = upper_limit(fp[chosen], losses.n_nonmember, alpha / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.log(np.maximum(tpr - delta, 0) / fpr)
        high = np.log(np.maximum(1 - fpr - delta, 0) / (1 - tpr))
    return float(thresholds[chosen][int(np.argmax(np.fmax(low, high)))])
