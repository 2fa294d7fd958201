"""``epsilon_star.gaussian``: the parametric Epsilon* of Negoescu et al. 2024, Section 3.1 and Appendix B.

It describes one model, and bounds the epsilon of the training algorithm neither from above nor from below.
"""

import math
from typing import Any

from auditor import _validate
from auditor.choices import Census, Members, Sample
from auditor.estimators.gaussian_supremum import Supremum, best_region, supremum
from auditor.estimators.uncertainty import branch_lower_bound, standard_error
from auditor.fitters.gaussian import Gaussian
from auditor.values import Estimate, FittedPair, GoodnessOfFit, Subject

__all__ = ["gaussian"]

# A rate counts as reached by the data when this many records are expected beyond it.
_RECORDS_BEYOND = 10
_HALF = 0.5
# With fewer, the bound misses more often than it says even on normal data (10% of the runs at 100 for 5%).
_ENOUGH_RECORDS = 300


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

    Raises:
        InputError: delta outside [0, 1) or confidence outside (0, 1).

    >>> import numpy as np
    >>> from auditor.fitters import fit_gaussian_pair
    >>> rng = np.random.default_rng(0)
    >>> from auditor.values import Losses
    >>> losses = Losses(member=rng.normal(-1, 1, 5000), nonmember=rng.normal(0, 1, 5000))
    >>> estimate = gaussian(fit_gaussian_pair(losses, rng=rng), delta=1e-5)
    >>> estimate.lower < 3.984 < estimate.value + 0.5
    True
    """
    delta = _validate.fraction("delta", delta, zero=True)
    _validate.confidence(confidence)
    member, nonmember = _normals(pair)
    details = {"transform": pair.transform, "fit": _fit_details(pair), **(extra or {})}
    if delta == 0:
        reason = "delta is 0: the supremum over a normal's unbounded tail is infinite or undefined"
        return _gaussian_estimate(None, None, None, delta, {**details, "reason": reason})
    found = supremum(member, nonmember, delta=delta, clip=delta)
    sizes = (math.inf if isinstance(members, Census) else pair.n_member, pair.n_nonmember)
    lower, without = None, _why_no_lower(pair)
    if without is None:
        lower = branch_lower_bound(found, member, nonmember, sizes=sizes, confidence=confidence)
        without = None if lower is not None else "the value is a ceiling, not an estimate with an error"
    if without is not None:
        details["lower_reason"] = without
    details |= _value_details(found, pair, delta, sizes)
    return _gaussian_estimate(found.value, lower, None if lower is None else confidence, delta, details)


def _why_no_lower(pair: FittedPair) -> str | None:
    """Why there is no lower bound, if so: it is conditional on the fit, and linear in the fitted parameters."""
    if pair.rejected:
        return "the fit is rejected"
    if min(pair.member.sd, pair.nonmember.sd) == 0:
        return "a group has one single loss, so there is no spread to fit"
    if min(pair.n_member, pair.n_nonmember) < _ENOUGH_RECORDS:
        return (
            f"the lower bound needs at least {_ENOUGH_RECORDS} records in each group to hold its confidence"
        )
    return None


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
