"""Error rates of the attacker who thresholds the loss, and their summaries: TPR at FPR, AUC, the empirical Epsilon*."""

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy
from scipy import special

from auditor.core.fields import Placements
from auditor.core.options import Coverage, Sample
from auditor.core.values import Estimate, Floats, Integers, Losses, PerGroup, Subject
from auditor.curves.tradeoff import ThresholdCounts, count
from auditor.estimators.evidence import Evidence
from auditor.estimators.gap import advantage, bayes_security
from auditor.estimators.limits import MemberLimits, finite, just_below, lower_limit, upper_limit, with_draws


def measured_rates(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the estimates from the counts alone: the empirical Epsilon*, the advantage, Bayes security and the AUC."""
    setting, counts = evidence.setting, evidence.counts
    gap = advantage(counts, confidence=setting.confidence, coverage=setting.coverage)
    return (
        empirical(evidence.losses, delta=setting.delta, counts=counts),
        gap,
        bayes_security(gap),
        auc(counts, confidence=setting.confidence, correct=evidence.losses.correct),
    )


def guaranteed_rates(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the true positive rate at each of the requested false positive rates."""
    setting, losses = evidence.setting, evidence.losses
    alike = partial(
        tpr_at_fpr, confidence=setting.confidence, coverage=setting.coverage, counts=evidence.counts
    )
    return tuple(alike(losses, rate=rate) for rate in setting.fpr)


# --- ``tpr_at_fpr.*``: how many members are recognised at a false positive rate ---


# Of the error, for the upper limit: findings rest on the lower one.
_UPPER_SHARE = 0.2


def tpr_at_fpr(
    losses: Losses,
    *,
    rate: float,
    confidence: float = 0.95,
    coverage: Coverage = Sample(),  # noqa: B008 - a frozen value
    counts: ThresholdCounts | None = None,
) -> Estimate:
    """Return the TPR at a FPR of ``rate``: the observed value, with limits from ranks fixed before the data are seen.

    ``value`` is the concave hull of the observed curve, which an attacker reaches who may choose between two thresholds
    by chance. It is biased upward. Both limits hold together, one at 80% of the error, the other at 20%:

    * ``lower``: of the TPR below the (k+1)-th smallest non-member loss, whose FPR is within the rate for sure. Half of
      its error covers the FPR, half the TPR (all of it the FPR, in a census). None where the records are too few for any
      k, ``details["lower_reason"]`` then says so.
    * ``upper``: of the TPR up to the k-th smallest non-member loss, whose FPR is above the rate for sure, and never below
      the value. No single threshold within the rate recognises more, however ties are decided; an attacker who mixes two
      thresholds, or sees more than the loss, may.

    Rates have each a guarantee of their own; they do not hold jointly.

    Args:
        losses: Smaller means more like a member.
        rate: The false positive rate that must not be exceeded, in (0, 1).
        confidence: In (0, 1).
        coverage: `Sample` (default), `Subset` or `Census`; the TPR is then that of the law, or of the training set, and
            ``details["as_draws"]`` keeps the result with the members as a sample.
        counts: From `auditor.curves.tradeoff.count`, if they are at hand.

    Raises:
        InputError: A subset of fewer records than were scored.

    >>> losses = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> tpr_at_fpr(losses, rate=0.1).value
    1.0
    >>> estimate = tpr_at_fpr(losses, rate=0.001)
    >>> estimate.value, estimate.lower, estimate.details["lower_reason"]
    (1.0, None, 'not resolvable with 500 non-member records: at least 3,911 are needed')
    """
    alpha = 1 - confidence
    limits = MemberLimits(coverage, losses.n_member)
    value = _hull_at(rate, count(losses) if counts is None else counts)
    lower, details = certified_at(rate, losses, limits, (1 - _UPPER_SHARE) * alpha / limits.limits)
    upper, rank = _at_most(rate, losses, limits, _UPPER_SHARE * alpha / limits.limits)
    result = Estimate(
        name=f"tpr_at_fpr.{rate:g}",
        value=value,
        lower=lower,
        upper=max(value, upper),
        confidence=confidence,
        method="concave hull of the observed curve; Clopper-Pearson limits at non-member ranks fixed in advance",
        subject=Subject.MODEL,
        assumptions=(
            "records within each group are independent draws",
            "membership labels are right",
            "the value is biased upward: it follows the chance in these records",
            "the upper end is of attackers with one threshold on the loss; stronger ones may exist",
            *finite(coverage),
        ),
        details={"rate": rate, **details, "upper_rank": rank},
    )
    if isinstance(coverage, Sample):
        return result
    return with_draws(result, tpr_at_fpr(losses, rate=rate, confidence=confidence, counts=counts))


def certified_at(
    rate: float, losses: Losses, limits: MemberLimits, spent: float
) -> tuple[float | None, dict[str, Any]]:
    """Return the lower limit at the guaranteed rank, with its details; or why there is none.

    Args:
        rate: Rate of false positives, in (0, 1).
        losses: Smaller means more like a member.
        limits: How the members were chosen.
        spent: The error of each of the two limits.
    """
    n0 = losses.n_nonmember
    rank = guaranteed_rank(rate, n_nonmember=n0, alpha=spent)
    if rank is None:
        needed = math.ceil(math.log(spent) / math.log1p(-rate))
        reason = f"not resolvable with {n0:,} non-member records: at least {needed:,} are needed"
        return None, {"lower_reason": reason}
    threshold = float(losses.sorted_nonmember[rank])
    hits = int(np.searchsorted(losses.sorted_member, threshold, side="left"))
    details = {
        "rank": rank,
        "fpr": int(np.searchsorted(losses.sorted_nonmember, threshold, side="left")) / n0,
        "threshold_below": just_below(losses, threshold),
        "true_positives": hits,
        "fpr_upper": float(upper_limit(rank, n0, spent)),
    }
    return float(limits.tpr_lower(hits, spent)), details


def _at_most(rate: float, losses: Losses, limits: MemberLimits, spent: float) -> tuple[float, int | None]:
    """Return the upper limit at the first rank whose FPR is above the rate for sure, and that rank; 1 where none is."""
    n0 = losses.n_nonmember
    rank = 1 + bisect_left(range(1, n0 + 1), rate, key=lambda k: float(lower_limit(k, n0, spent)))
    if rank > n0:
        return 1.0, None
    hits = int(np.searchsorted(losses.sorted_member, losses.sorted_nonmember[rank - 1], side="right"))
    return 1 - float(limits.tpr_lower(losses.n_member - hits, spent)), rank


def _hull_at(rate: float, counts: ThresholdCounts) -> float:
    """Return the concave hull of the observed curve at a rate: the highest line between a corner on each side of it."""
    fpr = np.append(counts.fp_below / counts.n_nonmember, 1.0)
    tpr = np.append(counts.tp_below / counts.n_member, 1.0)
    beyond = int(np.searchsorted(fpr, rate, side="right"))
    left, right = beyond - 1, -1
    best = -1.0
    while True:
        # The steepest line from the one end, and back: each turn lifts it at the rate.
        right = beyond + int(np.argmax((tpr[beyond:] - tpr[left]) / (fpr[beyond:] - fpr[left])))
        left = int(np.argmin((tpr[right] - tpr[:beyond]) / (fpr[right] - fpr[:beyond])))
        slope = (tpr[right] - tpr[left]) / (fpr[right] - fpr[left])
        at = float(tpr[left] + slope * (rate - fpr[left]))
        if at <= best:
            return min(1.0, best)
        best = at


def guaranteed_rank(rate: float, *, n_nonmember: int, alpha: float) -> int | None:
    """Return the largest rank k with U(k; n0, alpha) <= rate, or None if not even k = 0 will do.

    k = 0 needs n0 >= ln(1/alpha)/rate, about.

    >>> guaranteed_rank(0.01, n_nonmember=1000, alpha=0.025)
    3
    >>> guaranteed_rank(0.001, n_nonmember=1000, alpha=0.025) is None
    True
    """
    # U rises with k: the last rank that keeps the rate.
    ranks = bisect_right(range(n_nonmember), rate, key=lambda k: float(upper_limit(k, n_nonmember, alpha)))
    return ranks - 1 if ranks else None


# --- ``auc``: the chance that a random member has a lower loss than a random non-member, ties counting half ---


_INSIDE = 1e-12
_FEW = 20


def auc(counts: ThresholdCounts, *, confidence: float = 0.95, correct: PerGroup | None = None) -> Estimate:
    """Return the area under the trade-off curve with a two-sided interval.

    `interval` describes the interval. Members are taken for a sample, which for a census is wider than needed.

    Args:
        counts: From `auditor.curves.tradeoff.count`.
        confidence: Confidence level of the interval, in (0, 1).
        correct: Whether each record is classified correctly, if that is known: ``details["accuracy_baseline"]`` is the
            AUC of calling those members that are (Yeom et al. 2018), 1/2 + (accuracy gap)/2.

    >>> from auditor.curves.tradeoff import count
    >>> from auditor.core.values import Losses
    >>> auc(count(Losses(member=[1.0, 2.0], nonmember=[2.0, 3.0]))).value
    0.875
    """
    alpha = 1 - confidence
    value, placements = _placements(counts)
    low, high = interval(value, placements, sizes=(counts.n_member, counts.n_nonmember), alpha=alpha)
    details = {"standard_error": math.sqrt(sum(placements["variances"])), "placements": placements}
    if correct is not None:
        details["accuracy_baseline"] = 0.5 + float(np.mean(correct.member) - np.mean(correct.nonmember)) / 2
    return Estimate(
        name="auc",
        value=value,
        lower=low,
        upper=high,
        confidence=confidence,
        method="Mann-Whitney; hull of DeLong's logit, Newcombe's score and beta limits of both groups",
        subject=Subject.MODEL,
        assumptions=("records within each group are independent draws", "large-sample interval"),
        details=details,
    )


def placements_of(estimate: Estimate) -> Placements | None:
    """Return the placements that `auc` keeps, or None if a stored result has none that an interval can rest on."""
    result = estimate.details.get("placements")
    usable = result and all(len(pair) == 2 and all(0 <= end <= 1 for end in pair) for pair in result.values())  # noqa: PLR2004
    return result if usable else None


def interval(
    value: float, placements: Placements, *, sizes: tuple[int, int], alpha: float
) -> tuple[float, float]:
    """Return both ends of the interval of an area, each the furthest of several limits at half the error.

    * DeLong's variance on the logit scale, and Newcombe's score interval (2006, method 5): for many records.
    * Beta limits of both groups [own]. The placements of a group lie between 0 and the largest one seen, so their mean is
      taken for a proportion of that, of as many records as explain its variance: exact limits where they take two
      values. The distances of both groups' limits from the area are squared and added.
    * The area times (alpha/2)^(1/k), k the size of the smaller group, for what it may not have shown. This is the exact
      limit where all members lie below all non-members, as P[area is 1] <= area^k: there are k pairs without a record
      in common, and each is in order.
    * With fewer than 20 records in a group, the exact limit of a proportion of k pairs. The area is an average of such
      proportions (Hoeffding 1963, Section 5), so it varies no more than one of them.

    Simulations hold each end at half the error for losses of two values in either group or both. No limit but the third,
    at an area of 1, is exact for every law.

    Args:
        value: The area, in [0, 1].
        placements: Placements of both groups, as ``details["placements"]`` of `auc` keeps them.
        sizes: Numbers of members and of non-members.
        alpha: In (0, 1), the error of the interval.

    >>> apart = {"variances": [0.0, 0.0], "least": [1.0, 1.0], "largest": [1.0, 1.0]}
    >>> [round(end, 3) for end in interval(1.0, apart, sizes=(2000, 25), alpha=0.05)]
    [0.863, 1.0]
    """
    least = [1 - end for end in placements["least"]]
    low = _lower_end(value, placements["variances"], placements["largest"], sizes, alpha / 2)
    return low, 1 - _lower_end(1 - value, placements["variances"], least, sizes, alpha / 2)


def _lower_end(
    value: float, variances: Sequence[float], largest: Sequence[float], sizes: tuple[int, int], error: float
) -> float:
    if value <= 0:
        return 0.0
    few, variance, z = min(sizes), sum(variances), -float(special.ndtri(error))
    off = [
        value - _beta_limit(value, most, value * (most - value) / own, error)
        for own, most in zip(variances, largest, strict=True)
        if own > 0 and value < most
    ]
    ends: list[float] = [value * error ** (1 / few), value - math.hypot(*off), _score_limit(value, *sizes, z)]
    if value < 1 and variance > 0:
        half = z * math.sqrt(variance) / (value * (1 - value))
        ends.append(float(special.expit(special.logit(value) - half)))
    if few < _FEW:
        ends.append(_beta_limit(value, 1.0, few, error))
    return max(0.0, min(ends))


def least_shown(sizes: tuple[int, int], *, alpha: float) -> tuple[float, float]:
    """Return from which area on the interval lies above a half, about, and the standard error of areas near it.

    Args:
        sizes: Numbers of members and of non-members.
        alpha: As that of `interval`.

    >>> least, error = least_shown((1000, 1000), alpha=0.05)
    >>> round(least, 3), round(error, 4)
    (0.525, 0.0129)
    """
    n1, n0 = sizes
    few, error = min(sizes), math.sqrt((n1 + n0 + 1) / (12 * n1 * n0))
    least = 0.5 - error * float(special.ndtri(alpha / 2))
    if few < _FEW:
        by_pairs = partial(_beta_limit, most=1.0, records=few, error=alpha / 2)
        sure = by_pairs(1.0) > 0.5  # noqa: PLR2004
        least = max(
            least, scipy.optimize.brentq(lambda area: by_pairs(area) - 0.5, 0.5, 1.0) if sure else 1.0
        )
    return least, error


def _beta_limit(value: float, most: float, records: float, error: float) -> float:
    """Return Clopper and Pearson's lower limit of a mean in [0, most], taken for a proportion of so many records."""
    share = min(1.0, value / most)
    return most * float(special.betaincinv(records * share, records * (1 - share) + 1, error))


def _placements(counts: ThresholdCounts) -> tuple[float, Placements]:
    """Return the area, and the placements of both groups: DeLong's variances of their means (DeLong et al. 1988), and the ends."""
    n1, n0 = counts.n_member, counts.n_nonmember
    run = counts.fp_upto - counts.fp_below
    below = (counts.tp_below + counts.tp_upto) / (2 * n1)
    value = _dot(run, below) / n0
    variance_0 = _dot(run, np.square(below - value)) / max(1, n0 - 1)
    # Placements of the members: strictly between two thresholds, tied with one, or above all.
    between = counts.tp_below.copy()
    between[1:] -= counts.tp_upto[:-1]
    above = (n0 - counts.fp_below) / n0
    tied = counts.tp_upto - counts.tp_below
    beyond = n1 - int(counts.tp_upto[-1])
    squares = _dot(between, np.square(above - value)) + beyond * value * value
    half_above = (2 * n0 - counts.fp_below - counts.fp_upto) / (2 * n0)
    if tied.any():
        squares += _dot(tied, np.square(half_above - value))
    variance_1 = squares / max(1, n1 - 1)
    seen = np.concatenate([above[between > 0], half_above[tied > 0], np.zeros(min(beyond, 1))])
    return min(1.0, max(0.0, value)), {
        "variances": [variance_1 / n1, variance_0 / n0],
        "least": [float(seen.min()), float(below[0])],
        "largest": [float(seen.max()), float(below[-1])],
    }


def _dot(counts: Integers, values: Floats) -> float:
    # einsum and not @: a threaded dot product waits for cores that other processes hold.
    return float(np.einsum("i,i->", counts, values))


def _score_limit(value: float, n1: int, n0: int, z: float) -> float:
    """Return the lower root of (theta - value)^2 = z^2 V(theta); Newcombe 2006, method 5."""
    centre = (n1 + n0) / 2 - 1

    def excess(theta: float) -> float:
        spread = 1 + centre * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return (theta - value) ** 2 - z * z * theta * (1 - theta) * spread / (n1 * n0)

    # At 0 and 1 the variance vanishes too: step just inside, where the excess is negative.
    return float(scipy.optimize.brentq(excess, 0.0, min(max(value, _INSIDE), 1 - _INSIDE)))


# --- ``epsilon_star.empirical``: Epsilon* of Negoescu et al. 2024, Definition 2, from the counts themselves ---
#
# It describes one model, and bounds the epsilon of the training algorithm neither from above nor from below.


# The paper keeps empirical error rates inside this open interval, for numerical stability.
_EMPIRICAL_CLIP = 0.001
_BLOCK = 256


def empirical(
    losses: Losses,
    *,
    delta: float,
    clip: float = _EMPIRICAL_CLIP,
    counts: ThresholdCounts | None = None,
    at_counts: bool = False,
) -> Estimate:
    """Return the paper's empirical Epsilon*: a point estimate, biased upward by taking a maximum over noise.

    Args:
        losses: Smaller means more like a member.
        delta: In [0, 1).
        counts: From `auditor.curves.tradeoff.count`, if they are at hand.
        clip: Error rates are kept in the open interval (clip, 1 - clip); the paper's 0.001.
        at_counts: Look at the thresholds of the counts alone.

    An empty interval of thresholds is total separation when some threshold separates the groups that well: the value
    is then the clip's ceiling, flagged ``saturated``. When only ties empty it, the value is 0.

    >>> empirical(Losses(member=[1.0, 1.0], nonmember=[1.0, 1.0]), delta=1e-5).value
    0.0
    """
    details: dict[str, Any] = {
        "clip": clip,
        "saturated": False,
        "lower_reason": "a maximum over noisy ratios has no interval of its own; the certified bound has one",
    }
    counts = count(losses) if counts is None else counts
    value, best = 0.0, _largest_ratio(None if at_counts else losses, counts, delta, clip)
    # Whether the curve passes outside the clip's square through a corner, either way round.
    below = counts.tp_below / counts.n_member - counts.fp_below / counts.n_nonmember
    upto = counts.fp_upto / counts.n_nonmember - counts.tp_upto / counts.n_member
    separated = max(below.max(), upto.max()) >= 1 - 2 * clip
    if best is not None:
        value = max(0.0, best[0])
        details |= {"branch": best[1], "at": {"fpr": best[2], "fnr": 1 - best[3]}} if value > 0 else {}
    elif separated:
        value = max(0.0, math.log(max(1.0, (1 - clip - delta) / clip)))
        details["saturated"] = True
    return Estimate.point(
        "epsilon_star.empirical",
        value,
        method="maximum over empirical error rates; Negoescu et al. 2024, Definition 2",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=("biased upward: a maximum over noisy ratios",),
        details=details,
    )


def _largest_ratio(
    losses: Losses | None, counts: ThresholdCounts, delta: float, clip: float
) -> tuple[float, str, float, float] | None:
    """Return the largest of the four branches over all thresholds inside the clip: (epsilon, branch, FPR, TPR).

    m1 and m2 are largest at an upper-left corner of the curve, m3 and m4 at a lower-right one. Where the curve enters
    or leaves the square between corners, the last threshold inside is a member's own loss: those few are added.
    """
    corners = [(counts.fp_below, counts.tp_below), (counts.fp_upto, counts.tp_upto)]
    corners += [] if losses is None else [_crossings(losses, clip)]
    result = []
    for fp, tp in corners:  # one after another, for there may be millions
        rates = fp / counts.n_nonmember, tp / counts.n_member
        start = max(int(np.searchsorted(rate, clip, side="right")) for rate in rates)
        stop = min(int(np.searchsorted(rate, 1 - clip)) for rate in rates)
        fpr, tpr = (rate[start:stop] for rate in rates)
        for name in ("m1", "m2", "m3", "m4") if fpr.size else ():
            at = _largest_at(name, fpr, tpr, delta)
            result.append(
                (float(_ratio(name, fpr[at], tpr[at], delta)), name, float(fpr[at]), float(tpr[at]))
            )
    if not result:
        return None
    largest, name, at_fpr, at_tpr = max(result, key=operator.itemgetter(0))
    return math.log(largest) if largest > 0 else -math.inf, name, at_fpr, at_tpr


def _largest_at(name: str, fpr: Floats, tpr: Floats, delta: float) -> int:
    """Return the first place of the largest ratio, if one is above 0, of rates that never fall.

    No ratio above 0 of a block exceeds that of its best corner.
    """
    starts = np.arange(0, fpr.size, _BLOCK)
    ends = np.minimum(starts + _BLOCK, fpr.size) - 1
    corner = (fpr[starts], tpr[ends]) if name in ("m1", "m2") else (fpr[ends], tpr[starts])
    bounds = _ratio(name, corner[0], corner[1], delta)
    least = min(bounds.max(), _ratio(name, fpr[starts], tpr[starts], delta).max())
    at = np.minimum(starts[bounds >= least][:, None] + np.arange(_BLOCK), fpr.size - 1).ravel()
    return int(at[np.argmax(_ratio(name, fpr[at], tpr[at], delta))])


def _ratio(name: str, fpr: Any, tpr: Any, delta: float) -> Any:
    top, bottom = (tpr, fpr) if name in ("m1", "m3") else (fpr, tpr)
    if name in ("m2", "m3"):
        return (1 - top - delta) / (1 - bottom)
    return (top - delta) / bottom


def _crossings(losses: Losses, clip: float) -> tuple[Integers, Integers]:
    """Return false and true positives at the members' own losses next to TPR = clip and TPR = 1 - clip, where no corner need be."""
    member, nonmember = losses.sorted_member, losses.sorted_nonmember
    ends = np.array([math.floor(clip * member.size), math.ceil((1 - clip) * member.size) - 2])
    values = member[np.clip(ends, 0, member.size - 1)]
    before = member[np.maximum(np.searchsorted(member, values, side="left") - 1, 0)]
    after = member[np.minimum(np.searchsorted(member, values, side="right"), member.size - 1)]
    thresholds = np.sort(np.concatenate([before, values, after]))
    fp, tp = (np.searchsorted(group, thresholds, side="right") for group in (nonmember, member))
    return fp, tp
