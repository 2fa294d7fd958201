"""``epsilon_star.gaussian`` and ``epsilon_star.empirical``: Epsilon* of Negoescu et al. 2024, Definition 2.

Both describe one model. Neither bounds the epsilon of the training algorithm, from above or from below.
"""

import math
from typing import Any

import numpy as np
from scipy import special

from auditor import _validate
from auditor.choices import Census, Members, Sample
from auditor.estimators.gaussian_supremum import Branch, Supremum, best_region, supremum
from auditor.fitters.gaussian import Gaussian
from auditor.tradeoff import ThresholdCounts, count
from auditor.values import Estimate, FittedPair, Floats, GoodnessOfFit, Losses, Subject

__all__ = ["branch_lower_bound", "empirical", "gaussian", "standard_error"]

# The paper keeps empirical error rates inside this open interval, for numerical stability.
EMPIRICAL_CLIP = 0.001
# A rate counts as reached by the data when this many records are expected beyond it.
_RECORDS_BEYOND = 10
_HALF = 0.5
_MEMBER_FIRST = {"m1": True, "m2": False, "m3": True, "m4": False}
_UPPER_TAIL = {"m1": False, "m2": True, "m3": True, "m4": False}


# --- Uncertainty of the parametric value [own] ---------------------------------------------------
#
# By the envelope theorem only the laws move, not the threshold. With z the threshold in standard units of each law,
# the variance is h^2 times the sum over both laws of sd^2/n (1 + z^2/2).
# For a sample that is not normal, 1 + z^2/2 becomes 1 + z skew + z^2 (kurtosis - 1)/4. A census knows its law.


def standard_error(
    branch: Branch,
    member: Gaussian,
    nonmember: Gaussian,
    *,
    sizes: tuple[float, float],
    normal: bool = True,
) -> float:
    """Return the standard error of one branch's epsilon; infinite where the branch is a ceiling.

    Args:
        branch: From `supremum`.
        member: Fitted member law.
        nonmember: Fitted non-member law.
        sizes: Members and non-members they were fitted on; ``math.inf`` members for a census.
        normal: Use the moments of a normal rather than the sample's skewness and kurtosis.
    """
    if branch.epsilon == 0:
        return 0.0
    if math.isnan(branch.hazard):
        return math.inf
    sides = [(member, sizes[0]), (nonmember, sizes[1])]
    numerator, denominator = sides if _MEMBER_FIRST[branch.name] else sides[::-1]
    sign = -1.0 if _UPPER_TAIL[branch.name] else 1.0
    variance = 0.0
    for (law, n), z in ((numerator, branch.z_numerator), (denominator, branch.z_denominator)):
        spread = 1 + z * z / 2 if normal else 1 + sign * z * law.skew + z * z * (law.kurtosis - 1) / 4
        variance += law.sd**2 / n * max(spread, 0.0)
    return branch.hazard * math.sqrt(variance)


def branch_lower_bound(
    found: Supremum,
    member: Gaussian,
    nonmember: Gaussian,
    *,
    sizes: tuple[float, float],
    confidence: float,
) -> float | None:
    """Return max(0, max_j [eps_j - z SE_j]) over the four branches, each at a quarter of the error.

    It holds its level when the data are normal, and is conditional on that. None where the value is a ceiling.
    """
    if found.saturated:
        return None
    z = float(special.ndtri(1 - (1 - confidence) / 4))
    errors = [standard_error(branch, member, nonmember, sizes=sizes) for branch in found.branches]
    return max(
        0.0, *(branch.epsilon - z * error for branch, error in zip(found.branches, errors, strict=True))
    )


# --- The parametric value -------------------------------------------------------------------------


def gaussian(
    pair: FittedPair,
    *,
    delta: float,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
    extra: dict[str, Any] | None = None,
) -> Estimate:
    """Return the parametric Epsilon* of two fitted normals, clipped at delta as published.

    Args:
        pair: Normals fitted to transformed losses.
        delta: In [0, 1); at 0 the row has no value and says why.
        confidence: Of the lower bound, which is conditional on the fit and absent when the fit is rejected.
        members: `Sample` or `Census`.
        extra: More details to carry (the noise floor, the other transform).

    The details hold three values: without a clip, clipped at delta (the published one), and clipped where at least
    10 records are expected beyond the threshold; where the value is attained and whether the data reach there; the
    standard error; the best region's value; both fits.
    """
    delta = _validate.fraction("delta", delta, zero=True)
    _validate.fraction("confidence", confidence)
    member, nonmember = _normals(pair)
    details = {"transform": pair.transform, "fit": _fit_details(pair), **(extra or {})}
    if delta == 0:
        reason = "delta is 0: the supremum over a normal's unbounded tail is infinite or undefined"
        return _gaussian_estimate(None, None, None, delta, {**details, "reason": reason})
    found = supremum(member, nonmember, delta=delta, clip=delta)
    sizes = (math.inf if isinstance(members, Census) else pair.n_member, pair.n_nonmember)
    lower = None
    if not pair.rejected:
        lower = branch_lower_bound(found, member, nonmember, sizes=sizes, confidence=confidence)
    details |= _value_details(found, pair, delta, sizes)
    return _gaussian_estimate(found.value, lower, None if lower is None else confidence, delta, details)


def _normals(pair: FittedPair) -> tuple[Gaussian, Gaussian]:
    if not isinstance(pair.member, Gaussian) or not isinstance(pair.nonmember, Gaussian):
        raise TypeError("epsilon_star.gaussian needs two fitted normals")
    return pair.member, pair.nonmember


def _value_details(
    found: Supremum, pair: FittedPair, delta: float, sizes: tuple[float, float]
) -> dict[str, Any]:
    member, nonmember = _normals(pair)
    supported_clip = max(delta, _RECORDS_BEYOND / min(pair.n_member, pair.n_nonmember))
    se = standard_error(found.best, member, nonmember, sizes=sizes)
    robust = standard_error(found.best, member, nonmember, sizes=sizes, normal=False)
    # Half the records or more beyond the clip: too few to support any threshold.
    supported = None
    if supported_clip < _HALF:
        supported = supremum(member, nonmember, delta=delta, clip=supported_clip).value
    return {
        "clip": delta,
        "branch": found.best.name if found.value > 0 else None,
        "saturated": found.saturated,
        "at": _attained(found, pair),
        "unclipped": supremum(member, nonmember, delta=delta).value,
        "supported": {"clip": supported_clip, "value": supported},
        "standard_error": se if math.isfinite(se) else None,
        "standard_error_from_moments": robust if math.isfinite(robust) else None,
        "best_region": best_region(member, nonmember, delta=delta),
    }


def _attained(found: Supremum, pair: FittedPair) -> dict[str, Any] | None:
    """Where the value is attained, and whether the data reach there."""
    if found.saturated or found.value == 0:
        return None
    rates = {"m1": (found.fpr, pair.n_nonmember), "m2": (found.fnr, pair.n_member)}
    rates |= {"m3": (1 - found.fpr, pair.n_nonmember), "m4": (1 - found.fnr, pair.n_member)}
    rate, n = rates[found.best.name]
    return {
        "threshold": found.best.threshold,
        "fpr": found.fpr,
        "fnr": found.fnr,
        "on_clip": found.best.on_clip,
        "records_beyond": rate * n,
        "reached_by_data": bool(rate * n >= _RECORDS_BEYOND),
    }


def _fit_details(pair: FittedPair) -> dict[str, Any]:
    return {
        "rejected": pair.rejected,
        "member": _law_details(pair.member, pair.member_fit),
        "nonmember": _law_details(pair.nonmember, pair.nonmember_fit),
    }


def _law_details(law: Any, fit: GoodnessOfFit) -> dict[str, Any]:
    return {
        "mean": law.mean,
        "sd": law.sd,
        "skew": law.skew,
        "kurtosis": law.kurtosis,
        "test": fit.test,
        "ks_statistic": fit.statistic,
        "ks_p_value": fit.p_value,
        "ks_n": fit.n,
        "level": fit.level,
    }


def _gaussian_estimate(
    value: float | None, lower: float | None, confidence: float | None, delta: float, details: dict[str, Any]
) -> Estimate:
    return Estimate(
        name="epsilon_star.gaussian",
        value=value,
        lower=lower,
        upper=None,
        confidence=confidence,
        method="exact supremum over two fitted normals; Negoescu et al. 2024, Section 3.1 and Appendix B",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=(
            "transformed losses of each group are normal",
            "records within each group are independent draws",
            "model-based: extrapolates beyond the data, and can be biased upward when the fit is wrong",
        ),
        details=details,
    )


# --- The empirical value ---------------------------------------------------------------------------


def empirical(
    losses: Losses, *, delta: float, clip: float = EMPIRICAL_CLIP, counts: ThresholdCounts | None = None
) -> Estimate:
    """Return the paper's empirical Epsilon*: a point estimate, biased upward by taking a maximum over noise.

    Args:
        losses: Smaller means more like a member.
        delta: In [0, 1).
        counts: From `auditor.tradeoff.count`, if they are at hand.
        clip: Error rates are kept in the open interval (clip, 1 - clip); the paper's 0.001.

    An empty interval of thresholds is total separation when some threshold separates the groups that well: the value
    is then the clip's ceiling, flagged ``saturated``. When only ties empty it, the value is 0.

    >>> empirical(Losses(member=[1.0, 1.0], nonmember=[1.0, 1.0]), delta=1e-5).value
    0.0
    """
    delta = _validate.fraction("delta", delta, zero=True)
    clip = _validate.fraction("clip", clip)
    details: dict[str, Any] = {"clip": clip, "saturated": False}
    counts = count(losses) if counts is None else counts
    best = _largest_ratio(losses, counts, delta, clip)
    if best is not None:
        value = max(0.0, best[0])
        details |= {"branch": best[1], "at": {"fpr": best[2], "fnr": 1 - best[3]}} if value > 0 else {}
    elif _separated(counts, clip):
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


def _separated(counts: ThresholdCounts, clip: float) -> bool:
    """Whether the curve passes outside the clip's square through a corner, either way round."""
    below = counts.tp_below / counts.n_member - counts.fp_below / counts.n_nonmember
    upto = counts.fp_upto / counts.n_nonmember - counts.tp_upto / counts.n_member
    return bool(max(below.max(), upto.max()) >= 1 - 2 * clip)


def _largest_ratio(
    losses: Losses, counts: ThresholdCounts, delta: float, clip: float
) -> tuple[float, str, float, float] | None:
    """The largest of the four branches over all thresholds inside the clip: (epsilon, branch, FPR, TPR).

    m1 and m2 are largest at an upper-left corner of the curve, m3 and m4 at a lower-right one. Where the curve enters
    or leaves the square between corners, the last threshold inside is a member's own loss: those few are added.
    """
    edges = _crossings(losses, clip)
    upper_left = _inside(counts.fp_below / counts.n_nonmember, counts.tp_below / counts.n_member, clip)
    lower_right = _inside(counts.fp_upto / counts.n_nonmember, counts.tp_upto / counts.n_member, clip)
    extra = _inside(*edges, clip)
    for fpr, tpr in (upper_left, lower_right):
        extra = (
            np.append(extra[0], fpr[[0, -1]] if fpr.size else []),
            np.append(extra[1], tpr[[0, -1]] if tpr.size else []),
        )
    found = [_best_of(*upper_left, delta, ("m1", "m2")), _best_of(*lower_right, delta, ("m3", "m4"))]
    found.append(_best_of(*extra, delta, ("m1", "m2", "m3", "m4")))
    return max((item for item in found if item is not None), key=lambda item: item[0], default=None)


def _inside(fpr: Floats, tpr: Floats, clip: float) -> tuple[Floats, Floats]:
    inside = (fpr > clip) & (fpr < 1 - clip) & (tpr > clip) & (tpr < 1 - clip)
    return fpr[inside], tpr[inside]


def _crossings(losses: Losses, clip: float) -> tuple[Floats, Floats]:
    """Rates at the members' own losses next to TPR = clip and TPR = 1 - clip, where no corner need be."""
    member, nonmember = losses.sorted_member, losses.sorted_nonmember
    ends = np.array([math.floor(clip * member.size), math.ceil((1 - clip) * member.size) - 2])
    values = member[np.clip(ends, 0, member.size - 1)]
    before = member[np.maximum(np.searchsorted(member, values, side="left") - 1, 0)]
    after = member[np.minimum(np.searchsorted(member, values, side="right"), member.size - 1)]
    thresholds = np.concatenate([before, values, after])
    tp = np.searchsorted(member, thresholds, side="right")
    return np.searchsorted(nonmember, thresholds, side="right") / nonmember.size, tp / member.size


def _best_of(
    fpr: Floats, tpr: Floats, delta: float, names: tuple[str, ...]
) -> tuple[float, str, float, float] | None:
    if fpr.size == 0:
        return None
    ratios = {
        "m1": lambda: (tpr - delta) / fpr,
        "m2": lambda: (1 - fpr - delta) / (1 - tpr),
        "m3": lambda: (1 - tpr - delta) / (1 - fpr),
        "m4": lambda: (fpr - delta) / tpr,
    }
    best: tuple[float, str, float, float] | None = None
    for name in names:
        ratio = ratios[name]()
        at = int(np.argmax(ratio))
        epsilon = math.log(ratio[at]) if ratio[at] > 0 else -math.inf
        if best is None or epsilon > best[0]:
            best = (epsilon, name, float(fpr[at]), float(tpr[at]))
    return best
