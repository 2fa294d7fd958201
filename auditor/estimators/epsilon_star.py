"""``epsilon_star.gaussian`` and ``epsilon_star.mixture``: the parametric Epsilon* of Negoescu et al. 2024.

Section 3.1 and Appendix B. It describes one model, and bounds the epsilon of the training algorithm neither from above
nor from below.
"""

import math
from dataclasses import replace
from typing import Any

from auditor import _validate
from auditor.choices import Census, Members, Sample
from auditor.estimators import gaussian_supremum, mixture_supremum, mixture_uncertainty
from auditor.estimators.as_draws import finite
from auditor.estimators.branches import Supremum
from auditor.estimators.fit_details import fit_details
from auditor.estimators.uncertainty import branch_lower_bound, largest_lower_bound, standard_error
from auditor.fitters.gaussian import Gaussian
from auditor.fitters.mixture import MixtureOfGaussians
from auditor.values import Estimate, FittedPair, Subject

__all__ = ["gaussian", "mixture"]

# A rate counts as reached by the data when this many records are expected beyond it.
_RECORDS_BEYOND = 10
_HALF = 0.5
# With fewer, the bound misses more often than it says even on normal data (10% of the runs at 100 for 5%).
_ENOUGH_RECORDS = 300
_ENOUGH_FOR_MIXTURES = 2000
_CEILING = "the value is a ceiling, not an estimate with an error"
_CHOSEN = "the number of components was chosen from the data, and the error of that choice is not known"


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
    details = {"transform": pair.transform, "fit": fit_details(pair), **(extra or {})}
    if delta == 0:
        return _without_value(_estimate("gaussian", None, None, None, delta, details))
    found = gaussian_supremum.supremum(member, nonmember, delta=delta, clip=delta)
    sizes = _sizes(pair, members)
    lower, without = None, _why_no_lower(pair, _ENOUGH_RECORDS)
    if without is None:
        lower = branch_lower_bound(found, member, nonmember, sizes=sizes, confidence=confidence)
        without = None if lower is not None else _CEILING
    se = standard_error(found.best, member, nonmember, sizes=sizes)
    robust = standard_error(found.best, member, nonmember, sizes=sizes, normal=False)
    details |= _place_details(found, pair, delta) | {
        "unclipped": gaussian_supremum.supremum(member, nonmember, delta=delta).value,
        "supported": _supported(pair, delta),
        "standard_error": se if math.isfinite(se) else None,
        "standard_error_from_moments": robust if math.isfinite(robust) else None,
        "best_region": gaussian_supremum.best_region(member, nonmember, delta=delta),
    }
    if without is not None:
        details["lower_reason"] = without
    return _about(members, _estimate("gaussian", found.value, lower, confidence, delta, details))


def mixture(
    pair: FittedPair,
    *,
    delta: float,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
    extra: dict[str, Any] | None = None,
) -> Estimate:
    """Return the parametric Epsilon* of two fitted mixtures of normals, clipped at delta as published.

    Args:
        pair: Mixtures fitted to transformed losses; see `auditor.fitters.fit_mixture_pair`.
        delta: In [0, 1); at 0 the row has no value and says why.
        confidence: Of the lower bound, which is conditional on the fit. There is one only where one component was enough
            for each group, of 2,000 records or more: with several, their number was chosen from the data, and no error of that choice is known.
            Between groups that do not differ, fits that no test rejects then put such a bound far above 0.
        members: `Sample` or `Census`.
        extra: More details to carry.

    The details are those of `gaussian`, except the best region, and the grid of published tests.

    Raises:
        InputError: delta outside [0, 1) or confidence outside (0, 1).

    >>> import numpy as np
    >>> from auditor.choices import Mixture
    >>> from auditor.fitters import fit_mixture_pair
    >>> from auditor.values import Losses
    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 4000), nonmember=rng.normal(0, 1, 4000))
    >>> estimate = mixture(fit_mixture_pair(losses, choice=Mixture(2), rng=rng), delta=1e-5)
    >>> 3.5 < estimate.value < 4.5
    True
    """
    delta = _validate.fraction("delta", delta, zero=True)
    _validate.confidence(confidence)
    laws = _mixtures(pair)
    details = {"transform": pair.transform, "fit": fit_details(pair), **(extra or {})}
    if delta == 0:
        return _without_value(_estimate("mixture", None, None, None, delta, details))
    found = mixture_supremum.supremum(*laws, delta=delta, clip=delta)
    lower, without, se = _mixture_lower(found, pair, confidence, _sizes(pair, members))
    details |= _place_details(found, pair, delta) | {
        "unclipped": mixture_supremum.supremum(*laws, delta=delta).value,
        "supported": _supported(pair, delta),
        "standard_error": se,
    }
    if without is not None:
        details["lower_reason"] = without
    return _about(members, _estimate("mixture", found.value, lower, confidence, delta, details))


def _mixture_lower(
    found: Supremum, pair: FittedPair, confidence: float, sizes: tuple[float, float]
) -> tuple[float | None, str | None, float | None]:
    """The lower bound, or why there is none, and the standard error of the value."""
    if min(pair.member.sd, pair.nonmember.sd) == 0 or found.saturated:
        return None, _why_no_lower(pair, _ENOUGH_FOR_MIXTURES) or _CEILING, None
    member, nonmember = (mixture_uncertainty.QuantileVariance(law) for law in _mixtures(pair))
    errors = [
        mixture_uncertainty.standard_error(branch, member, nonmember, sizes=sizes)
        for branch in found.branches
    ]
    se = errors[found.branches.index(found.best)]
    without = _why_no_lower(pair, _ENOUGH_FOR_MIXTURES)
    if without is None and max(law.components for law in _mixtures(pair)) > 1:
        without = _CHOSEN
    lower = None if without else largest_lower_bound(found, errors, confidence=confidence)
    return lower, without, se if math.isfinite(se) else None


def _sizes(pair: FittedPair, members: Members) -> tuple[float, float]:
    return math.inf if isinstance(members, Census) else pair.n_member, pair.n_nonmember


def _about(members: Members, estimate: Estimate) -> Estimate:
    """A census takes the member law for known, so its number describes that finite set."""
    known = finite(members) if isinstance(members, Census) else ()
    return replace(estimate, assumptions=(*estimate.assumptions, *known))


def _without_value(estimate: Estimate) -> Estimate:
    reason = "delta is 0: the supremum over a normal's unbounded tail is infinite or undefined"
    return replace(estimate, details={**estimate.details, "reason": reason})


def _why_no_lower(pair: FittedPair, enough: int) -> str | None:
    """Why there is no lower bound, if so: it is conditional on the fit, and linear in the fitted parameters."""
    if pair.rejected:
        return "the fit is rejected"
    if min(pair.member.sd, pair.nonmember.sd) == 0:
        return "a group has one single loss, so there is no spread to fit"
    if min(pair.n_member, pair.n_nonmember) < enough:
        return f"the lower bound needs at least {enough} records in each group to hold its confidence"
    return None


def _normals(pair: FittedPair) -> tuple[Gaussian, Gaussian]:
    if not isinstance(pair.member, Gaussian) or not isinstance(pair.nonmember, Gaussian):
        raise TypeError("epsilon_star.gaussian needs two fitted normals")
    return pair.member, pair.nonmember


def _mixtures(pair: FittedPair) -> tuple[MixtureOfGaussians, MixtureOfGaussians]:
    if not isinstance(pair.member, MixtureOfGaussians) or not isinstance(pair.nonmember, MixtureOfGaussians):
        raise TypeError("epsilon_star.mixture needs two fitted mixtures")
    return pair.member, pair.nonmember


def _place_details(found: Supremum, pair: FittedPair, delta: float) -> dict[str, Any]:
    return {
        "clip": delta,
        "branch": found.best.name if found.value > 0 else None,
        "saturated": found.saturated,
        "at": _attained(found, pair),
    }


def _supported(pair: FittedPair, delta: float) -> dict[str, Any]:
    """The value where at least 10 records are expected beyond the threshold."""
    clip = max(delta, _RECORDS_BEYOND / min(pair.n_member, pair.n_nonmember))
    if clip >= _HALF:  # too few records to support any threshold
        return {"clip": clip, "value": None}
    if isinstance(pair.member, Gaussian) and isinstance(pair.nonmember, Gaussian):
        found = gaussian_supremum.supremum(pair.member, pair.nonmember, delta=delta, clip=clip)
    else:
        found = mixture_supremum.supremum(*_mixtures(pair), delta=delta, clip=clip)
    return {"clip": clip, "value": found.value}


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


_LAWS = {"gaussian": ("normals", "normal"), "mixture": ("mixtures of normals", "mixtures of normals")}


def _estimate(
    family: str,
    value: float | None,
    lower: float | None,
    confidence: float | None,
    delta: float,
    details: dict[str, Any],
) -> Estimate:
    fitted, assumed = _LAWS[family]
    return Estimate(
        name=f"epsilon_star.{family}",
        value=value,
        lower=lower,
        upper=None,
        confidence=None if lower is None else confidence,
        method=f"exact supremum over two fitted {fitted}; Negoescu et al. 2024, Section 3.1 and Appendix B",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=(
            f"transformed losses of each group are {assumed}",
            "records within each group are independent draws",
            "model-based: extrapolates beyond the data, and can be biased upward when the fit is wrong",
        ),
        details=details,
    )
