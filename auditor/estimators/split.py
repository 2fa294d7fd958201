"""A threshold chosen on one random part of the records and judged on the other, so that choosing costs no error."""

from typing import Any

import numpy as np

from auditor import _validate
from auditor.choices import Census, FixedThreshold, Members, Sample, Split, Subset
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.estimators.member_limits import MemberLimits
from auditor.estimators.separating import just_above
from auditor.estimators.single_threshold import Candidate, bound_at, ceiling
from auditor.values import Floats, Losses

__all__ = ["halves", "most_telling", "split_bound"]


def split_bound(
    losses: Losses, delta: float, alpha: float, rule: Split, members: Members
) -> tuple[Candidate, float]:
    """Return the bound that the judging part certifies, and its ceiling."""
    rng = np.random.default_rng(rule.seed)
    parts = [halves(values, rule.fraction, rng) for values in (losses.member, losses.nonmember)]
    (choose1, judge1), (choose0, judge0) = parts
    choosing = Losses(member=choose1, nonmember=choose0)
    chosen = FixedThreshold(most_telling(choosing, delta, alpha))
    judging = Losses(member=judge1, nonmember=judge0)
    n0 = judging.n_nonmember
    limits = best = MemberLimits(Sample(), judging.n_member)
    # Told beside the record that it was chosen at: a result holds no raw losses.
    note: dict[str, Any] = {"threshold": just_above(losses, chosen.threshold)}
    if isinstance(members, Subset):
        # Given the part that chose the threshold, the other is a random subset of the records that are left.
        seen = choosing.n_member
        hits = int(np.searchsorted(choosing.sorted_member, chosen.threshold, side="right"))
        limits = MemberLimits(members, judging.n_member, seen=seen, seen_hits=hits)
        best = MemberLimits(members, judging.n_member, seen=seen, seen_hits=seen)
    elif isinstance(members, Census):
        note["census_judged_as_sample"] = True  # a part of a census is a sample of the training set
    found = bound_at(judging, limits, delta, alpha, chosen)
    return Candidate(found.epsilon, {**found.details, **note}), ceiling(
        best, n0, delta, alpha, chosen.interval
    )


def halves(values: Floats, share: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return a random part of so large a share, and the rest."""
    first = round(share * values.size)
    _validate.at_least("records on each side of a split", min(first, values.size - first), least=2)
    order = rng.permutation(values.size)
    return values[order[:first]], values[order[first:]]


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
