"""Error rates of the attacker who thresholds the loss, and what is read off them: the advantage, Bayes security, AUC, Epsilon*."""

import math
import operator
from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from auditor.core import validate
from auditor.core.options import Census, Members, Sample
from auditor.core.values import Estimate, Floats, Losses, Subject
from auditor.curves.tradeoff import ThresholdCounts, count
from auditor.estimators.evidence import Evidence
from auditor.estimators.limits import MemberLimits, finite, just_below, upper_limit, with_draws


def measured_rates(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return what the counts alone say: the empirical Epsilon*, the advantage, Bayes security and the AUC."""
    asked, counts = evidence.setting, evidence.counts
    gap = advantage(counts, confidence=asked.confidence, members=asked.members)
    return (
        empirical(evidence.losses, delta=asked.delta, counts=counts),
        gap,
        bayes_security(gap),
        auc(counts, confidence=asked.confidence),
    )


def guaranteed_rates(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the true positive rate at each of the false positive rates that were asked for."""
    asked = evidence.setting
    return tuple(
        tpr_at_fpr(evidence.losses, rate=rate, confidence=asked.confidence, members=asked.members)
        for rate in asked.rates
    )


# --- ``tpr_at_fpr.*``: how many members are recognised at a false positive rate that is guaranteed ---


def tpr_at_fpr(
    losses: Losses,
    *,
    rate: float,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
) -> Estimate:
    """Return the TPR at a threshold whose FPR is at most ``rate``, with a certified lower limit.

    The threshold is the (k+1)-th smallest non-member loss (strictly below it means "member"), with k fixed before the
    data are seen. Half of the error covers the FPR, half the TPR (all of it the FPR, in a census). ``value`` is the
    observed TPR there, and ``details["fpr"]`` the observed FPR. Each rate has its own guarantee; they do not hold
    jointly. There is no upper limit: an attacker who sees more than the loss can do better.

    Args:
        losses: Smaller means more like a member.
        rate: The false positive rate that must not be exceeded, in (0, 1).
        confidence: In (0, 1).
        members: `Sample` (default), `Subset` or `Census`; the TPR is then that of the law, or of the training set, and
            ``details["as_draws"]`` keeps what is found with the members as a sample.

    Raises:
        InputError: A rate or confidence outside (0, 1), or a subset of fewer records than were scored.

    >>> losses = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> tpr_at_fpr(losses, rate=0.1).value
    1.0
    >>> tpr_at_fpr(losses, rate=0.001).reason
    'not resolvable with 500 non-member records: at least 3,688 are needed'
    """
    rate = validate.fraction("fpr", rate)
    alpha = 1 - validate.confidence(confidence)
    limits = MemberLimits(members, losses.n_member)
    spent = alpha / limits.limits
    n1, n0 = losses.n_member, losses.n_nonmember
    rank = guaranteed_rank(rate, n_nonmember=n0, alpha=spent)
    if rank is None:
        needed = int(np.ceil(np.log(spent) / np.log1p(-rate)))
        reason = f"not resolvable with {n0:,} non-member records: at least {needed:,} are needed"
        return _estimate(rate, (None, None), None, {"rate": rate, "reason": reason}, members)
    threshold = float(losses.sorted_nonmember[rank])
    hits = int(np.searchsorted(losses.sorted_member, threshold, side="left"))
    lower = float(limits.tpr_lower(hits, spent))
    alarms = int(np.searchsorted(losses.sorted_nonmember, threshold, side="left"))
    details: dict[str, Any] = {
        "rate": rate,
        "rank": rank,
        "fpr": alarms / n0,
        "threshold_below": just_below(losses, threshold),
        "true_positives": hits,
        "fpr_upper": float(upper_limit(rank, n0, spent)),
    }
    found = _estimate(rate, (hits / n1, lower), confidence, details, members)
    if isinstance(members, Sample):
        return found
    return with_draws(found, tpr_at_fpr(losses, rate=rate, confidence=confidence))


def guaranteed_rank(rate: float, *, n_nonmember: int, alpha: float) -> int | None:
    """Return the largest rank k with U(k; n0, alpha) <= rate, or None where not even k = 0 will do.

    k = 0 needs n0 >= ln(1/alpha)/rate, about.

    >>> guaranteed_rank(0.01, n_nonmember=1000, alpha=0.025)
    3
    >>> guaranteed_rank(0.001, n_nonmember=1000, alpha=0.025) is None
    True
    """
    # U rises with k: the last rank that keeps the rate.
    kept = bisect_right(range(n_nonmember), rate, key=lambda k: float(upper_limit(k, n_nonmember, alpha)))
    return kept - 1 if kept else None


def _estimate(
    rate: float,
    ends: tuple[float | None, float | None],
    confidence: float | None,
    details: dict[str, Any],
    members: Members,
) -> Estimate:
    value, lower = ends
    return Estimate(
        name=f"tpr_at_fpr.{rate:g}",
        value=value,
        lower=lower,
        upper=None,
        confidence=confidence,
        method="threshold at a non-member rank fixed in advance, Clopper-Pearson limits",
        subject=Subject.MODEL,
        assumptions=(
            "records within each group are independent draws",
            "membership labels are right",
            *finite(members),
        ),
        details=details,
    )


# --- ``advantage`` and ``bayes_security`` of the attacker who thresholds the loss ---
#
#     adv = sup_q (TPR - FPR),  beta = 1 - adv
#
# beta* of the best attacker can only be smaller, so `bayes_security` has an upper limit and no lower one.


_ASSUMPTIONS = ("records within each group are independent draws", "membership labels are right")


def advantage(
    counts: ThresholdCounts,
    *,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
) -> Estimate:
    """Return the largest TPR - FPR over thresholds, with a two-sided interval.

    Both distribution functions lie within c_i = sqrt(log(4/alpha)/(2 n_i)) of the empirical ones, on the sides that
    matter (Dvoretzky, Kiefer and Wolfowitz, with Massart's constant), so the supremum lies within c_1 + c_0 of the
    empirical one. A census knows the member side, and keeps the ends with the members as draws in
    ``details["as_draws"]``; a subset of the training set is treated as a sample. The plain value is biased upward on a
    finite sample.

    Args:
        counts: From `auditor.curves.tradeoff.count`.
        confidence: Of the interval, in (0, 1).
        members: `Sample` (default), `Subset` or `Census`.

    Raises:
        InputError: A confidence outside (0, 1).

    >>> from auditor.curves.tradeoff import count
    >>> from auditor.core.values import Losses
    >>> advantage(count(Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0]))).value
    1.0
    """
    alpha = 1 - validate.confidence(confidence)
    gap = counts.tp_below / counts.n_member - counts.fp_below / counts.n_nonmember
    at = int(np.argmax(gap))
    value = max(0.0, float(gap[at]))
    census = isinstance(members, Census)
    band = half_width(alpha, n_member=None if census else counts.n_member, n_nonmember=counts.n_nonmember)
    # How many are called members at the best threshold; the threshold itself would be a record's loss.
    called = {"true_positives": int(counts.tp_below[at]), "false_positives": int(counts.fp_below[at])}
    found = Estimate(
        name="advantage",
        value=value,
        lower=max(0.0, value - band),
        upper=min(1.0, value + band),
        confidence=confidence,
        method="largest gap of the two empirical distribution functions, Dvoretzky-Kiefer-Wolfowitz interval",
        subject=Subject.MODEL,
        assumptions=(*_ASSUMPTIONS, *(finite(members) if census else ())),
        details=called if value > 0 else {},
    )
    return with_draws(found, advantage(counts, confidence=confidence)) if census else found


def half_width(alpha: float, *, n_member: int | None, n_nonmember: int) -> float:
    """Return by how much the largest TPR - FPR can be off, with probability at most alpha: c_1 + c_0.

    Args:
        alpha: In (0, 1).
        n_member: Number of members, or None where the member side is known: a census.
        n_nonmember: Number of non-members.

    >>> round(half_width(0.05, n_member=None, n_nonmember=1000), 6)
    0.042947
    """
    sizes = [n_nonmember] if n_member is None else [n_member, n_nonmember]
    # Each distribution function can leave its band on two sides, and every side gets an equal part of the error.
    return sum(math.sqrt(math.log(2 * len(sizes) / alpha) / (2 * n)) for n in sizes)


def bayes_security(threshold_advantage: Estimate) -> Estimate:
    """Return 1 - advantage with its upper limit; stronger attackers may exist, so there is no lower limit.

    Args:
        threshold_advantage: From `advantage`, with a value and a lower limit.

    Raises:
        ValueError: An advantage without a value.

    Source: Cherubin et al. 2024, Section 2.3: beta = 1 - adv for two equally likely secrets.

    >>> from auditor.curves.tradeoff import count
    >>> from auditor.core.values import Losses
    >>> bayes_security(advantage(count(Losses(member=[1.0, 3.0], nonmember=[2.0, 4.0])))).value
    0.5
    """
    if threshold_advantage.value is None or threshold_advantage.lower is None:
        raise ValueError("an advantage without a value has no Bayes security")
    kept = threshold_advantage.details.get("as_draws")
    draws = (
        {}
        if kept is None
        else {"as_draws": {"value": 1.0 - kept["value"], "lower": None, "upper": 1.0 - kept["lower"]}}
    )
    return Estimate(
        name="bayes_security",
        value=1.0 - threshold_advantage.value,
        lower=None,
        upper=1.0 - threshold_advantage.lower,
        confidence=threshold_advantage.confidence,
        method="1 - advantage of the loss-threshold attacker",
        subject=Subject.MODEL,
        assumptions=(
            *threshold_advantage.assumptions,
            "only attackers who threshold the loss; stronger ones may exist",
        ),
        details=draws,
    )


# --- ``auc``: the chance that a random member has a lower loss than a random non-member, ties counting half ---


_INSIDE = 1e-12
_FEW = 20


def auc(counts: ThresholdCounts, *, confidence: float = 0.95) -> Estimate:
    """Return the area under the trade-off curve with a two-sided interval.

    The interval is the hull of two: DeLong's variance on the logit scale, and Newcombe's score interval (2006,
    method 5), which stays open where the sample separates perfectly and DeLong's variance is 0. With fewer than 20
    records in a group it is widened to what the Dvoretzky-Kiefer-Wolfowitz inequality guarantees. Members are taken for
    a sample, which for a census is wider than needed.

    Args:
        counts: From `auditor.curves.tradeoff.count`.
        confidence: Of the interval, in (0, 1).

    Raises:
        InputError: A confidence outside (0, 1).

    >>> from auditor.curves.tradeoff import count
    >>> from auditor.core.values import Losses
    >>> auc(count(Losses(member=[1.0, 2.0], nonmember=[2.0, 3.0]))).value
    0.875
    """
    alpha = 1 - validate.confidence(confidence)
    value, variance = _delong(counts)
    low, high = interval(value, variance, sizes=(counts.n_member, counts.n_nonmember), alpha=alpha)
    return Estimate(
        name="auc",
        value=value,
        lower=low,
        upper=high,
        confidence=confidence,
        method="Mann-Whitney; hull of DeLong's logit interval and Newcombe's score interval",
        subject=Subject.MODEL,
        assumptions=("records within each group are independent draws", "large-sample interval"),
        details={"standard_error": math.sqrt(variance)},
    )


def interval(value: float, variance: float, *, sizes: tuple[int, int], alpha: float) -> tuple[float, float]:
    """Return both ends of the interval that `auc` describes.

    Args:
        value: The area, in [0, 1].
        variance: DeLong's, 0 or more.
        sizes: Numbers of members and of non-members.
        alpha: In (0, 1), the error of the interval.

    >>> [round(end, 3) for end in interval(0.6, 0.0001, sizes=(1000, 1000), alpha=0.05)]
    [0.575, 0.624]
    """
    z = -float(special.ndtri(alpha / 2))
    low, high = _score_interval(value, *sizes, z)
    if 0 < value < 1 and variance > 0:
        half = z * math.sqrt(variance) / (value * (1 - value))
        centre = float(special.logit(value))
        low, high = (
            min(low, float(special.expit(centre - half))),
            max(high, float(special.expit(centre + half))),
        )
    if min(sizes) < _FEW:
        # Both intervals lean on many records: with few, allow for all that two distribution functions can be off.
        band = sum(math.sqrt(math.log(4 / alpha) / (2 * n)) for n in sizes)
        low, high = max(0.0, min(low, value - band)), min(1.0, max(high, value + band))
    return low, high


def _delong(counts: ThresholdCounts) -> tuple[float, float]:
    """The area and DeLong's variance of it (DeLong et al. 1988), from the counts alone."""
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
    if tied.any():
        half_above = (2 * n0 - counts.fp_below - counts.fp_upto) / (2 * n0)
        squares += _dot(tied, np.square(half_above - value))
    variance_1 = squares / max(1, n1 - 1)
    return min(1.0, max(0.0, value)), variance_1 / n1 + variance_0 / n0


def _dot(counts: npt.NDArray[np.int64], values: Floats) -> float:
    # einsum and not @: a threaded dot product waits for cores that other processes hold.
    return float(np.einsum("i,i->", counts, values))


def _score_interval(value: float, n1: int, n0: int, z: float) -> tuple[float, float]:
    """Roots of (theta - value)^2 = z^2 V(theta); Newcombe 2006, method 5."""
    centre = (n1 + n0) / 2 - 1

    def excess(theta: float) -> float:
        spread = 1 + centre * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return (theta - value) ** 2 - z * z * theta * (1 - theta) * spread / (n1 * n0)

    # At 0 and 1 the variance vanishes too: step just inside, where the excess is negative.
    inside = min(max(value, _INSIDE), 1 - _INSIDE)
    low = 0.0 if value == 0 else float(optimize.brentq(excess, 0.0, inside))
    high = 1.0 if value == 1 else float(optimize.brentq(excess, inside, 1.0))
    return low, high


# --- ``epsilon_star.empirical``: Epsilon* of Negoescu et al. 2024, Definition 2, from the counts themselves ---
#
# It describes one model, and bounds the epsilon of the training algorithm neither from above nor from below.


_Counts1D = npt.NDArray[np.int64]
# The paper keeps empirical error rates inside this open interval, for numerical stability.
_EMPIRICAL_CLIP = 0.001


def empirical(
    losses: Losses, *, delta: float, clip: float = _EMPIRICAL_CLIP, counts: ThresholdCounts | None = None
) -> Estimate:
    """Return the paper's empirical Epsilon*: a point estimate, biased upward by taking a maximum over noise.

    Args:
        losses: Smaller means more like a member.
        delta: In [0, 1).
        counts: From `auditor.curves.tradeoff.count`, if they are at hand.
        clip: Error rates are kept in the open interval (clip, 1 - clip); the paper's 0.001.

    An empty interval of thresholds is total separation when some threshold separates the groups that well: the value
    is then the clip's ceiling, flagged ``saturated``. When only ties empty it, the value is 0.

    >>> empirical(Losses(member=[1.0, 1.0], nonmember=[1.0, 1.0]), delta=1e-5).value
    0.0
    """
    delta = validate.fraction("delta", delta, zero=True)
    clip = validate.fraction("clip", clip)
    details: dict[str, Any] = {
        "clip": clip,
        "saturated": False,
        "lower_reason": "a maximum over noisy ratios has no interval of its own; the certified bound has one",
    }
    counts = count(losses) if counts is None else counts
    best = _largest_ratio(losses, counts, delta, clip)
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
    else:
        value = 0.0
    return Estimate(
        name="epsilon_star.empirical",
        value=value,
        lower=None,
        upper=None,
        confidence=None,
        method="maximum over empirical error rates; Negoescu et al. 2024, Definition 2",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=("biased upward: a maximum over noisy ratios",),
        details=details,
    )


def _largest_ratio(
    losses: Losses, counts: ThresholdCounts, delta: float, clip: float
) -> tuple[float, str, float, float] | None:
    """The largest of the four branches over all thresholds inside the clip: (epsilon, branch, FPR, TPR).

    m1 and m2 are largest at an upper-left corner of the curve, m3 and m4 at a lower-right one. Where the curve enters
    or leaves the square between corners, the last threshold inside is a member's own loss: those few are added.
    """
    below, upto = (counts.fp_below, counts.tp_below), (counts.fp_upto, counts.tp_upto)
    found = []
    for fp, tp in (below, upto, _crossings(losses, clip)):  # one after another, for there may be millions
        fpr, tpr = fp / counts.n_nonmember, tp / counts.n_member
        inside = (fpr > clip) & (fpr < 1 - clip) & (tpr > clip) & (tpr < 1 - clip)
        fpr, tpr = fpr[inside], tpr[inside]
        for name in ("m1", "m2", "m3", "m4") if fpr.size else ():
            ratio = _ratio(name, fpr, tpr, delta)
            at = int(np.argmax(ratio))
            found.append((float(ratio[at]), name, float(fpr[at]), float(tpr[at])))
    if not found:
        return None
    largest, name, at_fpr, at_tpr = max(found, key=operator.itemgetter(0))
    return math.log(largest) if largest > 0 else -math.inf, name, at_fpr, at_tpr


def _ratio(name: str, fpr: Floats, tpr: Floats, delta: float) -> Floats:
    top, bottom = (tpr, fpr) if name in ("m1", "m3") else (fpr, tpr)
    if name in ("m2", "m3"):
        return (1 - top - delta) / (1 - bottom)
    return (top - delta) / bottom


def _crossings(losses: Losses, clip: float) -> tuple[_Counts1D, _Counts1D]:
    """False and true positives at the members' own losses next to TPR = clip and TPR = 1 - clip, where no corner need be."""
    member, nonmember = losses.sorted_member, losses.sorted_nonmember
    ends = np.array([math.floor(clip * member.size), math.ceil((1 - clip) * member.size) - 2])
    values = member[np.clip(ends, 0, member.size - 1)]
    before = member[np.maximum(np.searchsorted(member, values, side="left") - 1, 0)]
    after = member[np.minimum(np.searchsorted(member, values, side="right"), member.size - 1)]
    thresholds = np.concatenate([before, values, after])
    fp, tp = (np.searchsorted(group, thresholds, side="right") for group in (nonmember, member))
    return fp, tp
