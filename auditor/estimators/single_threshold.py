"""Bounds at one threshold that was fixed without looking at the counts.

With L and U the limits of a rate, half of the error for each of the two rates, which covers both ratios:

    eps_L = max(log((L(TPR) - d)/U(FPR)), log((L(TNR) - d)/U(FNR)))

Katz et al. 1978 bound the log of each ratio itself, by its large-sample variance; half of the error for each ratio.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from auditor.choices import FixedThreshold, Jeffreys, Katz, Sample, ThresholdInterval
from auditor.errors import InputError
from auditor.estimators.binomial import upper_limit
from auditor.estimators.member_limits import MemberLimits
from auditor.values import Losses

__all__ = ["Candidate", "Counts", "bound_at", "ceiling", "threshold_bound"]

_FEW = 60


@dataclass(frozen=True)
class Candidate:
    """A bound before it is cut at 0, and where it comes from."""

    epsilon: float
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Counts:
    """How many members and non-members were called members at one threshold."""

    true_positives: int
    members: int
    false_positives: int
    nonmembers: int


def threshold_bound(
    counts: Counts, limits: MemberLimits, *, delta: float, alpha: float, interval: ThresholdInterval
) -> Candidate:
    """Return the larger of the two ratios' lower limits, with the counts it comes from."""
    if isinstance(interval, Katz | Jeffreys) and not isinstance(limits.members, Sample):
        raise InputError(
            f"{type(interval).__name__}() limits are offered for members=Sample() only, got {limits.members};"
            " use ClopperPearson() limits."
        )
    if isinstance(interval, Katz):
        ratios, shown = _katz(counts, delta, alpha), {}
    else:
        tpr, fpr, fnr = _rates(counts, limits, alpha, interval)
        # A miss rate of exactly 0 in a census says nothing about leakage: the training set is finite.
        empty = limits.known and counts.true_positives == counts.members
        ratios = _log_ratio(tpr, fpr, delta), -math.inf if empty else _log_ratio(1 - fpr, fnr, delta)
        shown = {"tpr_lower": tpr, "fpr_upper": fpr}
    tail = "lower" if ratios[0] >= ratios[1] else "upper"
    return Candidate(max(ratios), {"tail": tail, **vars(counts), **shown})


def bound_at(
    losses: Losses, limits: MemberLimits, delta: float, alpha: float, rule: FixedThreshold
) -> Candidate:
    """Return the bound of these losses at the threshold of a rule, with the counts it comes from."""
    tp = int(np.searchsorted(losses.sorted_member, rule.threshold, side="right"))
    fp = int(np.searchsorted(losses.sorted_nonmember, rule.threshold, side="right"))
    counts = Counts(tp, losses.n_member, fp, losses.n_nonmember)
    found = threshold_bound(counts, limits, delta=delta, alpha=alpha, interval=rule.interval)
    return Candidate(found.epsilon, {**found.details, "threshold": rule.threshold})


def ceiling(limits: MemberLimits, n0: int, delta: float, alpha: float, interval: ThresholdInterval) -> float:
    """Return the largest bound that these numbers of records can show."""
    n1 = limits.scored
    perfect = [Counts(n1, n1, 0, n0)]
    if limits.known:
        # In a census a miss rate of exactly 0 counts for nothing, so one missed member can show more than none.
        perfect.append(Counts(n1 - 1, n1, 0, n0))
    if isinstance(interval, Katz):
        # Its limit is undefined for an empty cell, and largest for z^2/4 records in that cell.
        perfect = [Counts(n1, n1, alarms, n0) for alarms in range(1, min(n0, _FEW))]
        perfect += [Counts(n1 - misses, n1, 0, n0) for misses in range(1, min(n1, _FEW))]
    bounds = (threshold_bound(c, limits, delta=delta, alpha=alpha, interval=interval) for c in perfect)
    return max(0.0, *(bound.epsilon for bound in bounds))


def _log_ratio(numerator: float, denominator: float, delta: float) -> float:
    """Log of (numerator - d)/denominator; minus infinity where nothing is left above delta."""
    if numerator <= delta:
        return -math.inf
    return math.inf if denominator == 0 else math.log((numerator - delta) / denominator)


def _rates(
    counts: Counts, limits: MemberLimits, alpha: float, interval: ThresholdInterval
) -> tuple[float, float, float]:
    """Limits of the TPR (lower), the FPR and the FNR (upper)."""
    hits, misses = counts.true_positives, counts.members - counts.true_positives
    level = alpha / limits.limits
    if isinstance(interval, Jeffreys):
        fnr = _jeffreys_upper(misses, counts.members, level)
        return 1 - fnr, _jeffreys_upper(counts.false_positives, counts.nonmembers, level), fnr
    fpr = upper_limit(counts.false_positives, counts.nonmembers, level)
    return float(limits.tpr_lower(hits, level)), float(fpr), float(limits.fnr_upper(misses, level))


def _jeffreys_upper(successes: int, trials: int, alpha: float) -> float:
    """Upper quantile of Beta(x + 1/2, n - x + 1/2), and 1 at x = n."""
    if successes == trials:
        return 1.0
    return float(special.betainccinv(successes + 0.5, trials - successes + 0.5, alpha))


def _katz(counts: Counts, delta: float, alpha: float) -> tuple[float, float]:
    """Lower limits of both log-ratios; a ratio with an empty cell has no variance and so no limit."""
    n1, n0 = counts.members, counts.nonmembers
    hits, alarms = counts.true_positives, counts.false_positives
    z = -float(special.ndtri(alpha / 2))
    return _katz_ratio(hits, n1, alarms, n0, delta, z), _katz_ratio(n0 - alarms, n0, n1 - hits, n1, delta, z)


def _katz_ratio(above: int, trials: int, below: int, others: int, delta: float, z: float) -> float:
    p, q = above / trials, below / others
    if below == 0 or p <= delta:
        return -math.inf
    # A rate of exactly 1 would have no variance: then half a record counts as missed.
    kept = min(p, (trials - 0.5) / trials)
    variance = kept * (1 - kept) / (trials * (p - delta) ** 2) + (1 - q) / below
    return math.log((p - delta) / q) - z * math.sqrt(variance)
