"""``epsilon_bound.clopper_pearson``: a certified, distribution-free lower bound on the model's epsilon.

For one threshold fixed in advance, with L and U the Clopper-Pearson limits:

    eps_L = max(0, log((L(TPR) - d)/U(FPR)), log((L(TNR) - d)/U(FNR)))

Choosing the best of many thresholds on the same data breaks the level; the rules here do not.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from auditor.core import options
from auditor.core.errors import InputError
from auditor.core.facts import Tail
from auditor.core.values import Estimate, Integers, Losses, Subject
from auditor.estimators.evidence import Evidence
from auditor.estimators.exact_test import LEAST_BOUND, CalibratedTest, Hits, Side, Statistic, dense_ranks
from auditor.estimators.limits import (
    MemberLimits,
    finite,
    just_above,
    lower_limit,
    threshold_at,
    upper_limit,
    with_draws,
)
from auditor.estimators.melding import Ranked, ranks


def certified_bound(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the certified bound of the audited losses, by the chosen rule."""
    setting = evidence.setting
    return (clopper_pearson(evidence.losses, rule=setting.threshold, **setting.of_model),)


_RULES = {
    options.RankGrid: "thresholds at ranks fixed in advance",
    options.FixedThreshold: "one threshold fixed in advance",
    options.Split: "threshold chosen on one part of the records and judged on the other",
}
_LIMITS: dict[type, str] = {
    options.Calibrated: "every rank of both tails, calibrated together",
    options.ClopperPearson: "Clopper-Pearson limits",
    options.Melded: "melded Clopper-Pearson limits",
}


def clopper_pearson(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    coverage: options.Coverage = options.Sample(),  # noqa: B008 - a frozen value
    rule: options.ThresholdRule = options.RankGrid(),  # noqa: B008
) -> Estimate:
    """Return the certified lower bound on the model's epsilon; value == lower, 0 means "no evidence".

    Args:
        losses: Smaller means more like a member.
        delta: In [0, 1).
        confidence: In (0, 1).
        coverage: `Sample` (default), `Subset` or `Census`; see there. Unless they are a sample, ``details["as_draws"]``
            keeps the result if they are taken for one.
        rule: `RankGrid` (default), `FixedThreshold` or `Split`.

    Raises:
        InputError: A subset of fewer records than were scored.

    >>> import numpy as np
    >>> losses = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> estimate = clopper_pearson(losses, delta=1e-5)
    >>> estimate.value == estimate.lower == estimate.details["ceiling"]
    True
    """
    alpha = 1 - confidence
    match rule:
        case options.RankGrid():
            rule = _in_reach(rule, alpha, coverage)
            hits = Hits.of(losses, _ranks_of(rule))
            result = _with_threshold(_grid_bound(hits, delta, alpha, rule, coverage), losses)
            sizes = losses.n_member, losses.n_nonmember
            most = grid_ceiling(*sizes, delta=delta, alpha=alpha, rule=rule, coverage=coverage)
        case options.FixedThreshold():
            limits = MemberLimits(coverage, losses.n_member)
            result = _bound_at(losses, limits, delta, alpha, rule.threshold)
            most = _ceiling(limits, losses.n_nonmember, delta, alpha)
        case options.Split():
            result, most = _split_bound(losses, delta, alpha, rule, coverage)
    value = max(0.0, min(result.epsilon, most))  # audits are drawn for each apart
    # Melded limits are for one sample each way: see the rank grid.
    own = isinstance(coverage, options.Sample)
    interval = rule.interval if isinstance(rule, options.RankGrid) else options.ClopperPearson()
    if not (own or isinstance(interval, options.Calibrated)):
        interval = options.ClopperPearson()
    about = finite(coverage, what="bound") or ("the scored members are a random sample of the training set",)
    details = {"rule": type(rule).__name__, "interval": type(interval).__name__, "ceiling": most}
    estimate = Estimate.at_least(
        "epsilon_bound.clopper_pearson",
        value,
        confidence=confidence,
        method=f"{_LIMITS[type(interval)]}, {_RULES[type(rule)]}",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=(
            "records within each group are independent draws",
            "membership labels are right",
            *about,
        ),
        details={**details, **(result.details if value > 0 else {})},
    )
    if own:
        return estimate
    return with_draws(estimate, clopper_pearson(losses, delta=delta, confidence=confidence, rule=rule))


# --- Bounds at one threshold that was fixed without looking at the counts ---
#
# With L and U the limits of a rate, half of the error for each of the two rates, which covers both ratios.


@dataclass(frozen=True)
class Counts:
    """Numbers of members and of non-members that are called members at one threshold."""

    true_positives: int
    members: int
    false_positives: int
    nonmembers: int

    @classmethod
    def at(cls, threshold: float, losses: Losses) -> "Counts":
        """Count the losses up to a threshold."""
        groups = losses.sorted_member, losses.sorted_nonmember
        hits, alarms = (int(np.searchsorted(group, threshold, side="right")) for group in groups)
        return cls(hits, losses.n_member, alarms, losses.n_nonmember)


@dataclass(frozen=True)
class _Candidate:
    """A bound before it is cut at 0, and its source."""

    epsilon: float
    details: dict[str, Any] = field(default_factory=dict)


def threshold_bound(counts: Counts, limits: MemberLimits, *, delta: float, alpha: float) -> _Candidate:
    """Return the larger of the two ratios' lower limits at one threshold fixed in advance, with its counts.

    >>> limits = MemberLimits(options.Sample(), 1000)
    >>> bound = threshold_bound(Counts(500, 1000, 10, 1000), limits, delta=1e-5, alpha=0.05)
    >>> round(bound.epsilon, 6)
    3.241995
    """
    tpr, fpr, fnr = _rates(counts, limits, alpha)
    # A miss rate of exactly 0 in a census says nothing about leakage: the training set is finite.
    empty = limits.is_census and counts.true_positives == counts.members
    ratios = _log_ratio(tpr, fpr, delta), -math.inf if empty else _log_ratio(1 - fpr, fnr, delta)
    tail = Tail.LOWER if ratios[0] >= ratios[1] else Tail.UPPER
    return _Candidate(max(ratios), {"tail": tail, **vars(counts), "tpr_lower": tpr, "fpr_upper": fpr})


def _bound_at(
    losses: Losses, limits: MemberLimits, delta: float, alpha: float, threshold: float
) -> _Candidate:
    """Return the bound of these losses at a threshold, with the counts it comes from."""
    result = threshold_bound(Counts.at(threshold, losses), limits, delta=delta, alpha=alpha)
    return _Candidate(result.epsilon, {**result.details, "threshold": threshold})


def _ceiling(limits: MemberLimits, n0: int, delta: float, alpha: float) -> float:
    """Return the largest bound that these numbers of records can show."""
    n1 = limits.scored
    perfect = [Counts(n1, n1, 0, n0)]
    if limits.is_census:
        # In a census a miss rate of exactly 0 counts for nothing, so one missed member can show more than none.
        perfect.append(Counts(n1 - 1, n1, 0, n0))
    bounds = (threshold_bound(counts, limits, delta=delta, alpha=alpha) for counts in perfect)
    return max(0.0, *(bound.epsilon for bound in bounds))


def _log_ratio(numerator: float, denominator: float, delta: float) -> float:
    """Return the log of (numerator - d)/denominator; minus infinity where nothing is left above delta."""
    if numerator <= delta:
        return -math.inf
    return math.inf if denominator == 0 else math.log((numerator - delta) / denominator)


def _rates(counts: Counts, limits: MemberLimits, alpha: float) -> tuple[float, float, float]:
    """Return the limits of the TPR (lower), the FPR and the FNR (upper)."""
    hits, misses = counts.true_positives, counts.members - counts.true_positives
    level = alpha / limits.limits
    fpr = upper_limit(counts.false_positives, counts.nonmembers, level)
    return float(limits.tpr_lower(hits, level)), float(fpr), float(limits.fnr_upper(misses, level))


# --- The rank grid [own]: certified bounds at many thresholds whose ranks are fixed before the data are seen ---
#
# t_k is the (k+1)-th smallest non-member loss; "member" if loss < t_k. F0(t_k-) is stochastically below
# Beta(k + 1, n0 - k), so U(k; n0, a) bounds the FPR with no look at the data; the members below t_k give L. Ties only
# help, because of the strict inequality. The upper tail does the same over the largest member losses. A union bound
# over the ranks and the limits that each of them spends fixes a.


def _ranks_of(rule: options.RankGrid) -> Callable[[int], Integers]:
    return dense_ranks if isinstance(rule.interval, options.Calibrated) else ranks


def _grid_bound(
    hits: Hits, delta: float, alpha: float, rule: options.RankGrid, coverage: options.Coverage
) -> _Candidate:
    """Return the best candidate of all ranks and tails; minus infinity where nothing is above delta."""
    lower, upper = hits
    if isinstance(rule.interval, options.Calibrated):
        drawn = not is_exact(upper.ranked, lower.ranked, alpha, coverage)
        law = Statistic(upper.ranked, lower.ranked, delta, alpha, coverage, rule.tails)
        test = CalibratedTest(hits, law, drawn)
        if test.epsilon_bound == 0:
            return _Candidate(0.0)
        name, at = test.best
        details = _counts(lower if name == Tail.LOWER else upper, at)
        return _Candidate(test.epsilon_bound, {**details, "p_value": test.p_value(0.0)})
    limits = MemberLimits(coverage, upper.ranked)
    if limits.is_census:
        # In a census the FNR above the largest member is exactly 0, leakage or not: start at rank 1.
        upper = upper.at(np.arange(1, upper.ranks.size))
    tails = [tail for tail in (lower, upper) if rule.tails in ("both", tail.name) and tail.ranks.size]
    level = alpha / max(1, sum(tail.ranks.size for tail in tails))
    # Where a limit is exact there is nothing to meld; for a subset of a finite set two separate limits hold too.
    melded = isinstance(rule.interval, options.Melded) and isinstance(coverage, options.Sample)
    sides = [Side(tail, delta, np.full(tail.ranks.size, level), limits, melded) for tail in tails]
    bounds = (float(side.separate(side.tail.hits)[0].max()) for side in sides if melded)
    least = max(0.0, max(bounds, default=0.0))
    best = _Candidate(-math.inf)
    for side in sides:
        best = max(best, _best_of(side, max(best.epsilon, least)), key=lambda item: item.epsilon)
    return best


def _with_threshold(best: _Candidate, losses: Losses) -> _Candidate:
    """Return the candidate with a threshold that gives its counts."""
    if not best.details:
        return best
    threshold = threshold_at(losses, best.details["tail"], best.details["rank"])
    return replace(best, details={**best.details, "threshold": threshold})


@lru_cache(maxsize=256)
def grid_ceiling(
    n_member: int,
    n_nonmember: int,
    *,
    delta: float,
    alpha: float,
    rule: options.RankGrid,
    coverage: options.Coverage,
) -> float:
    """Return the bound of a perfect attack: the most that these numbers of records can certify."""
    rule = _in_reach(rule, alpha, coverage)
    perfect = Hits.perfect(n_member, n_nonmember, _ranks_of(rule))
    return max(0.0, _grid_bound(perfect, delta, alpha, rule, coverage).epsilon)


# Records of both groups up to which the p-value is computed exactly, beyond which a draw of audits is quicker: a bound and
# its ceiling then take at most a quarter of a second. Of levels below the smallest the exact sums cannot be sure.
_EXACT_UP_TO, _SMALLEST = 2_000, 1e-8


_OF_SUBSETS = 0.01


def _in_reach(rule: options.RankGrid, alpha: float, coverage: options.Coverage) -> options.RankGrid:
    """Return the rule, with `Melded` in place of `Calibrated` for a subset at an error that drawn audits cannot show."""
    calibrated = isinstance(rule.interval, options.Calibrated)
    if not (calibrated and isinstance(coverage, options.Subset) and alpha < _OF_SUBSETS * (1 - LEAST_BOUND)):
        return rule
    return replace(rule, interval=options.Melded())


def is_exact(n_member: int, n_nonmember: int, alpha: float, coverage: options.Coverage) -> bool:
    """Return whether `Calibrated` computes the p-values and does not draw audits."""
    sample = isinstance(coverage, options.Sample)
    return sample and n_member + n_nonmember <= _EXACT_UP_TO and alpha > _SMALLEST


def positive_bounds(
    audits: Sequence[Losses],
    *,
    delta: float,
    confidence: float,
    rule: options.ThresholdRule,
    above: float = 0.0,
) -> int:
    """Return how many of these audits, with members as a sample, have a bound above 0; quick where their sizes are equal.

    Args:
        audits: Audits, of any sizes.
        delta: In [0, 1).
        confidence: In (0, 1).
        rule: As that of `clopper_pearson`.
        above: Another epsilon than 0.

    >>> apart = Losses(member=[1.0, 2.0, 3.0, 4.0], nonmember=[5.0, 6.0, 7.0, 8.0])
    >>> positive_bounds([apart] * 3, delta=0.0, confidence=0.95, rule=options.RankGrid())
    3
    """
    if not (isinstance(rule, options.RankGrid) and isinstance(rule.interval, options.Calibrated)):
        bounds = (clopper_pearson(audit, delta=delta, confidence=confidence, rule=rule) for audit in audits)
        return sum((bound.value or 0.0) > above for bound in bounds)
    alike: dict[Statistic, list[Hits]] = {}
    for hits in map(Hits.of, audits):
        law = Statistic(hits.upper.ranked, hits.lower.ranked, delta, 1 - confidence, tails=rule.tails)
        alike.setdefault(law, []).append(hits)
    return sum(_larger(law, every, above + LEAST_BOUND) for law, every in alike.items())


@lru_cache(maxsize=64)
def _seen(law: Statistic, epsilon: float) -> tuple[list[float], list[float]]:  # noqa: ARG001 - the key
    """Return the statistics known to have a bound that large, and those known not to: the least first, and the largest."""
    return [], []


def _larger(law: Statistic, every: list[Hits], epsilon: float) -> int:
    """Return the number of candidates whose bound is at least that large."""
    drawn = not is_exact(law.members, law.nonmembers, law.alpha, law.chosen)
    # The bound grows with the statistic. About as many are looked at first as the error allows.
    rated = sorted(((law.about(hits), hits) for hits in every), key=itemgetter(0), reverse=True)
    left = [hits for value, hits in rated if value > -math.inf]
    result, at = 0, math.ceil(law.alpha * len(every))
    large, small = ([], []) if drawn else _seen(law, epsilon)
    for seen, is_large in ((large, True), (small, False)):
        if seen:
            reached = law.reached(left, seen[0])
            result += sum(reached) * is_large
            left = [hits for hits, larger in zip(left, reached, strict=True) if larger != is_large]
    at = min(at, len(left) // 2) if large or small else at
    while left:
        one = left.pop(min(at, len(left) - 1))
        test = CalibratedTest(one, law, drawn)
        refuted = test.p_value(epsilon) <= law.alpha
        edge = test.statistic if refuted else test.statistic + LEAST_BOUND
        (large if refuted else small)[:] = [edge]  # those that are left lie between
        reached = law.reached(left, edge)
        result += (1 + sum(reached)) * refuted
        left = [hits for hits, larger in zip(left, reached, strict=True) if larger != refuted]
        at = len(left) // 2
    return result


def _best_of(side: Side, least: float) -> _Candidate:
    """Return the best candidate of one tail; of melded limits one above ``least``."""
    epsilon, at, rate = side.largest(side.tail, least=least)
    details, level = _counts(side.tail, at), float(side.levels[at])
    if rate is None:
        return _Candidate(epsilon, {**details, "level_per_limit": level})
    names = ("tpr_lower", "fpr_upper") if side.tail.name == Tail.LOWER else ("tnr_lower", "fnr_upper")
    details |= dict(zip(names, (rate, float(side.wrongly[at])), strict=True))
    return _Candidate(epsilon, {**details, "level_per_limit": level / side.limits.limits})


def _counts(tail: Ranked, at: int) -> dict[str, Any]:
    hits, rank = int(tail.hits[at]), int(tail.ranks[at])
    where = {"tail": tail.name, "rank": rank}
    if tail.name == Tail.LOWER:
        called = {"true_positives": hits, "members": tail.others, "false_positives_at_most": rank}
        return {**where, **called, "nonmembers": tail.ranked}
    called = {"true_negatives": hits, "nonmembers": tail.others, "false_negatives_at_most": rank}
    return {**where, **called, "members": tail.ranked}


# --- A threshold chosen on one random part of the records and judged on the other, so that choosing costs no error ---


def _split_bound(
    losses: Losses, delta: float, alpha: float, rule: options.Split, coverage: options.Coverage
) -> tuple[_Candidate, float]:
    """Return the bound that the judging part certifies, and its ceiling."""
    choosing, judging, threshold = split_by(rule, losses, delta, alpha)
    limits = best = MemberLimits(options.Sample(), judging.n_member)
    # A number beside the loss that it was chosen at: a result holds no raw losses.
    note: dict[str, Any] = {"threshold": just_above(losses, threshold)}
    if isinstance(coverage, options.Subset):
        # Given the part that chose the threshold, the other is a random subset of the records that are left.
        seen = choosing.n_member
        hits = Counts.at(threshold, choosing).true_positives
        limits = MemberLimits(coverage, judging.n_member, seen=seen, seen_hits=hits)
        best = MemberLimits(coverage, judging.n_member, seen=seen, seen_hits=seen)
    elif isinstance(coverage, options.Census):
        note["census_judged_as_sample"] = True  # a part of a census is a sample of the training set
    result = _bound_at(judging, limits, delta, alpha, threshold)
    most = _ceiling(best, judging.n_nonmember, delta, alpha)
    return _Candidate(result.epsilon, {**result.details, **note}), most


def split_by(rule: options.Split, losses: Losses, delta: float, alpha: float) -> tuple[Losses, Losses, float]:
    """Return the part that chooses the threshold, the part that is judged, and the threshold.

    Raises:
        InputError: A side of the split with fewer than 2 records of a group.
    """
    rng, parts = np.random.default_rng(rule.seed), []
    for values in (losses.member, losses.nonmember):
        first = round(rule.fraction * values.size)
        if (least := min(first, values.size - first)) < 2:  # noqa: PLR2004
            raise InputError(
                f"records on each side of a split must be 2 or more, got {least} at fraction {rule.fraction:g}; give more"
                " of them, or another fraction."
            )
        parts.append(np.split(values[rng.permutation(values.size)], [first]))
    choosing, judging = (Losses(*side) for side in zip(*parts, strict=True))
    return choosing, judging, most_telling(choosing, delta, alpha)


def most_telling(losses: Losses, delta: float, alpha: float) -> float:
    """Return the threshold at which this part alone would give the largest single-threshold bound."""
    thresholds = np.unique(np.concatenate([losses.sorted_member, losses.sorted_nonmember]))
    tp = np.searchsorted(losses.sorted_member, thresholds, side="right")
    fp = np.searchsorted(losses.sorted_nonmember, thresholds, side="right")
    # The limits cost a root search each, so look at the corners of a coarse grid of counts only.
    last = thresholds.size - 1
    edge = np.arange(min(200, thresholds.size))
    even = np.arange(0, thresholds.size, max(1, thresholds.size // 2000))
    chosen = np.unique(np.concatenate([even, edge, last - edge]))
    tpr = lower_limit(tp[chosen], losses.n_member, alpha / 2)
    fpr = upper_limit(fp[chosen], losses.n_nonmember, alpha / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.log(np.maximum(tpr - delta, 0) / fpr)
        high = np.log(np.maximum(1 - fpr - delta, 0) / (1 - tpr))
    return float(thresholds[chosen][int(np.argmax(np.fmax(low, high)))])
