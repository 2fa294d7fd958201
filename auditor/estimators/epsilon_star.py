"""``epsilon_star.gaussian`` and ``epsilon_star.mixture``: the parametric Epsilon* of Negoescu et al. 2024.

Section 3.1 and Appendix B. It describes one model, and bounds the epsilon of the training algorithm neither from above
nor from below.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from auditor.core import validate
from auditor.core.options import Census, Members, Sample
from auditor.core.values import Estimate, FittedPair, Floats, GoodnessOfFit, KSGrid, Losses, Subject
from auditor.curves.gaussian import Gaussian, fit_gaussian
from auditor.curves.mixture import MixtureOfGaussians
from auditor.curves.tradeoff import ThresholdCounts
from auditor.curves.transforms import Transform, log_odds, published
from auditor.estimators import supremum
from auditor.estimators.evidence import Evidence
from auditor.estimators.limits import finite
from auditor.estimators.supremum import BRANCHES, Branch, Supremum, gaussian_supremum


def fitted_normals(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the Epsilon* of two fitted normals, with what it is to be read beside."""
    asked, pair = evidence.setting, evidence.normals
    extra: dict[str, Any] = dict(fit_gap(evidence.counts, pair))
    if asked.delta > 0:
        extra |= alternatives(evidence.losses, delta=asked.delta)
        floor = noise_floor(
            evidence.transformed, delta=asked.delta, clip=asked.delta, rng=evidence.rng("noise floor")
        )
        extra["noise_floor"] = {
            "mean": float(floor.mean()),
            "q95": float(np.quantile(floor, 0.95)),
            "permutations": int(floor.size),
        }
    return (
        gaussian(pair, delta=asked.delta, confidence=asked.confidence, members=asked.members, extra=extra),
    )


def fitted_mixtures(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the Epsilon* of two fitted mixtures, where they were asked for."""
    asked, pair = evidence.setting, evidence.mixtures
    if pair is None:
        return ()
    # Without the floor: that of two normals is far below what mixtures find between groups that do not differ.
    extra = fit_gap(evidence.counts, pair)
    return (
        mixture(pair, delta=asked.delta, confidence=asked.confidence, members=asked.members, extra=extra),
    )


# A rate counts as reached by the data when this many records are expected beyond it.
_RECORDS_BEYOND = 10
_HALF = 0.5
# With fewer, the bound misses more often than it says even on normal data (10% of the runs at 100 for 5%).
_ENOUGH_RECORDS = 300
_ENOUGH_FOR_MIXTURES = 2000
_CEILING = "the value is a ceiling, not an estimate with an error"
_CHOSEN = "the number of components was chosen from the data, and the error of that choice is not known"
_LAWS = {"gaussian": ("normals", "normal"), "mixture": ("mixtures of normals", "mixtures of normals")}


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
    >>> from auditor.curves.gaussian import fit_gaussian_pair
    >>> rng = np.random.default_rng(0)
    >>> from auditor.core.values import Losses
    >>> losses = Losses(member=rng.normal(-1, 1, 5000), nonmember=rng.normal(0, 1, 5000))
    >>> estimate = gaussian(fit_gaussian_pair(losses, rng=rng), delta=1e-5)
    >>> estimate.lower < 3.984 < estimate.value + 0.5
    True
    """
    delta = validate.fraction("delta", delta, zero=True)
    validate.confidence(confidence)
    member, nonmember = _normals(pair)
    details = {"transform": pair.transform, "fit": _fit_details(pair), **(extra or {})}
    if delta == 0:
        return _without_value(_estimate("gaussian", None, None, None, delta, details))
    found = supremum.gaussian_supremum(member, nonmember, delta=delta, clip=delta)
    sizes = _sizes(pair, members)
    lower, without = None, _why_no_lower(pair, _ENOUGH_RECORDS)
    if without is None:
        lower = branch_lower_bound(found, member, nonmember, sizes=sizes, confidence=confidence)
        without = None if lower is not None else _CEILING
    se = standard_error(found.best, member, nonmember, sizes=sizes)
    robust = standard_error(found.best, member, nonmember, sizes=sizes, normal=False)
    details |= _place_details(found, pair, delta) | {
        "unclipped": supremum.gaussian_supremum(member, nonmember, delta=delta).value,
        "supported": _supported(pair, delta),
        "standard_error": se if math.isfinite(se) else None,
        "standard_error_from_moments": robust if math.isfinite(robust) else None,
        "best_region": supremum.best_region(member, nonmember, delta=delta),
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
        pair: Mixtures fitted to transformed losses; see `auditor.curves.mixture.fit_mixture_pair`.
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
    >>> from auditor.core.options import Mixture
    >>> from auditor.curves.mixture import fit_mixture_pair
    >>> from auditor.core.values import Losses
    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 4000), nonmember=rng.normal(0, 1, 4000))
    >>> estimate = mixture(fit_mixture_pair(losses, choice=Mixture(2), rng=rng), delta=1e-5)
    >>> 3.5 < estimate.value < 4.5
    True
    """
    delta = validate.fraction("delta", delta, zero=True)
    validate.confidence(confidence)
    laws = _mixtures(pair)
    details = {"transform": pair.transform, "fit": _fit_details(pair), **(extra or {})}
    if delta == 0:
        return _without_value(_estimate("mixture", None, None, None, delta, details))
    found = supremum.mixture_supremum(*laws, delta=delta, clip=delta)
    lower, without, se = _mixture_lower(found, pair, confidence, _sizes(pair, members))
    details |= _place_details(found, pair, delta) | {
        "unclipped": supremum.mixture_supremum(*laws, delta=delta).value,
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
    member, nonmember = (QuantileVariance(law) for law in _mixtures(pair))
    errors = [mixture_standard_error(branch, member, nonmember, sizes=sizes) for branch in found.branches]
    se = errors[found.branches.index(found.best)]
    without = _why_no_lower(pair, _ENOUGH_FOR_MIXTURES)
    if without is None and max(law.components for law in _mixtures(pair)) > 1:
        without = _CHOSEN
    lower = None if without else _largest_lower_bound(found, errors, confidence=confidence)
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
        found = supremum.gaussian_supremum(pair.member, pair.nonmember, delta=delta, clip=clip)
    else:
        found = supremum.mixture_supremum(*_mixtures(pair), delta=delta, clip=clip)
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


# --- What was fitted and how it was tested, JSON-like ---


def _fit_details(pair: FittedPair) -> dict[str, Any]:
    """Return both laws, the test that decides, the published test and, where components were chosen, its grid."""
    sides = {
        "member": (pair.member, pair.member_fit, pair.member_grid),
        "nonmember": (pair.nonmember, pair.nonmember_fit, pair.nonmember_grid),
    }
    details: dict[str, Any] = {"rejected": pair.rejected}
    details |= {side: {**_law_details(law), **_test_details(fit)} for side, (law, fit, _) in sides.items()}
    details["paper"] = {
        side: {**_test_details(fit.paper), "rejected": fit.paper.rejected}
        for side, (_, fit, _) in sides.items()
        if fit.paper is not None
    }
    grids = {side: _grid_details(grid) for side, (_, _, grid) in sides.items() if grid is not None}
    return {**details, "grid": grids} if grids else details


def _law_details(law: Any) -> dict[str, Any]:
    moments = {"mean": law.mean, "sd": law.sd}
    if isinstance(law, Gaussian):
        return {**moments, "skew": law.skew, "kurtosis": law.kurtosis}
    columns = {"weights": list(law.weights), "means": list(law.means), "sds": list(law.sds)}
    return {**moments, "components": law.components, **columns}


def _test_details(fit: GoodnessOfFit) -> dict[str, Any]:
    details = {
        "test": fit.test,
        "ks_statistic": fit.statistic,
        "ks_p_value": fit.p_value,
        "ks_n": fit.n,
        "level": fit.level,
    }
    # Where two tests decide together, the p-value above is that of both.
    joined = {"distance_p_value": fit.distance_p_value, "likelihood_p_value": fit.likelihood_p_value}
    return details | {name: p for name, p in joined.items() if p is not None}


def _grid_details(grid: KSGrid) -> dict[str, Any]:
    return {
        "components": list(grid.components),
        "sample_sizes": list(grid.sample_sizes),
        "p_values": [list(row) for row in grid.p_values],
        "choice_p_values": list(grid.choice_p_values),
    }


# --- The error of the Epsilon* of two normals, and the lower bound that follows [own] ---
#
# By the envelope theorem only the laws move, not the threshold. With h the branch's hazard and z the threshold in
# standard units of each law, the variance is h^2 times the sum over both laws of sd^2/n (1 + z^2/2). For a sample that is
# not normal, 1 + z^2/2 becomes 1 + z skew + z^2 (kurtosis - 1)/4. A census knows its law.


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
    member_first, upper = BRANCHES[branch.name]
    numerator, denominator = sides if member_first else sides[::-1]
    sign = -1.0 if upper else 1.0
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

    Linear in the fitted parameters, so it needs records: on normal data its misses stay near the level from about 300
    records in each group on, and it is conditional on normality. None where the value is a ceiling.
    """
    errors = [standard_error(branch, member, nonmember, sizes=sizes) for branch in found.branches]
    return _largest_lower_bound(found, errors, confidence=confidence)


def _largest_lower_bound(found: Supremum, errors: Sequence[float], *, confidence: float) -> float | None:
    """Return max(0, max_j [eps_j - z SE_j]) from the standard errors of the four branches; None at a ceiling.

    Args:
        found: From `supremum`.
        errors: One for each branch, in their order.
        confidence: Each branch is tested at a quarter of its error.
    """
    if found.saturated or (found.value > 0 and math.isnan(found.best.hazard)):
        return None
    z = -float(special.ndtri((1 - confidence) / 4))
    return max(
        0.0, *(branch.epsilon - z * error for branch, error in zip(found.branches, errors, strict=True))
    )


# --- The error of the Epsilon* of two mixtures [own] ---
#
# Again only the laws move. With h the branch's hazard, the variance is h^2 times the sum over both laws of
# g' I^-1 g / n, where g is the gradient of the law's quantile at the threshold in its parameters and I the Fisher
# information of one record under the fitted law, by quadrature. For one component this is the normal's
# sd^2/n (1 + z^2/2). Where components can hardly be told apart I is close to singular, the likelihood is far from
# quadratic, and there is no standard error; nor is there one where components lie so far apart that the numbers leave
# the range of a double.


_NODES = np.linspace(-9.0, 9.0, 361)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
# Parameters are in natural units, so an eigenvalue this small beside the largest is a direction without information.
_SINGULAR = 1e-7


class QuantileVariance:
    """The variance of a fitted law's quantile, for one record, at any point."""

    def __init__(self, law: MixtureOfGaussians) -> None:
        self.law = law
        x = law.spread(_NODES)
        scores = _scores(law, x)
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.exp(law.log_pdf(x)) * _widths(law, x)
            information = np.einsum("ni,nj->ij", scores * weight[:, None], scores)
        # Numbers beyond the range of a double are no information.
        values, self._vectors = np.linalg.eigh(
            information if np.isfinite(information).all() else np.zeros_like(information)
        )
        self._values = values
        self.singular = bool(not values[0] > _SINGULAR * values[-1])

    def at(self, point: float, *, upper: bool) -> float:
        """Return n times the variance of the quantile at a point of a tail; infinite where it is not known."""
        if self.singular:
            return math.inf
        with np.errstate(over="ignore", invalid="ignore"):
            along = np.einsum("ij,i->j", self._vectors, _quantile_gradient(self.law, point, upper=upper))
            variance = float((along * along / self._values).sum())
        return variance if math.isfinite(variance) else math.inf


def mixture_standard_error(
    branch: Branch,
    member: QuantileVariance,
    nonmember: QuantileVariance,
    *,
    sizes: tuple[float, float],
) -> float:
    """Return the standard error of one branch's epsilon; infinite where there is none.

    Args:
        branch: From `auditor.estimators.supremum.mixture_supremum`.
        member: Of the fitted member law.
        nonmember: Of the fitted non-member law.
        sizes: Members and non-members they were fitted on; ``math.inf`` members for a census.
    """
    if branch.epsilon == 0:
        return 0.0
    if math.isnan(branch.hazard):
        return math.inf
    upper = BRANCHES[branch.name][1]
    variance = sum(
        law.at(branch.threshold, upper=upper) / n
        for law, n in ((member, sizes[0]), (nonmember, sizes[1]))
        if math.isfinite(n)
    )
    error = branch.hazard * math.sqrt(variance)
    return error if math.isfinite(error) else math.inf


def _shares(law: MixtureOfGaussians, x: Floats) -> tuple[Floats, Floats]:
    """Distances in standard units, and the posterior share of each component, both of shape (n, components)."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = (x[..., None] - np.array(law.means)) / np.array(law.sds)
        logs = -0.5 * z * z - _LOG_SQRT_2PI - np.log(law.sds) + np.log(law.weights)
        return z, np.exp(logs - law.log_pdf(x)[..., None])


def _widths(law: MixtureOfGaussians, x: Floats) -> Floats:
    """The width that each node of the quadrature stands for.

    Within a component's nodes it is never above their step. Between components without common nodes it would be the
    whole gap, which at enough standard deviations makes much of next to no density, so every component caps it.
    """
    _, share = _shares(law, x)
    caps = (_NODES[1] - _NODES[0]) * np.array(law.sds)
    return np.asarray((share * np.minimum(np.gradient(x)[:, None], caps)).sum(axis=-1))


def _scores(law: MixtureOfGaussians, x: Floats) -> Floats:
    """Derivatives of the log-density in mean/sd, log sd and all but the first log-weight; shape (n, 3 k - 1)."""
    z, share = _shares(law, x)
    z = np.where(share == 0, 0.0, z)  # of a component without a share its distance, squared, may overflow
    return np.concatenate([share * z, share * (z * z - 1), (share - law.weights)[..., 1:]], axis=-1)


def _quantile_gradient(law: MixtureOfGaussians, point: float, *, upper: bool) -> Floats:
    """Minus the derivatives of the distribution function over the density, in the same parameters.

    The sign of the tail does not matter: the square is what counts.
    """
    x = np.array(point)
    z, share = _shares(law, x)
    sds = np.array(law.sds)
    sign = -1.0 if upper else 1.0
    tails = np.log(law.weights) + special.log_ndtr(sign * z)
    tail = law.log_sf(x) if upper else law.log_cdf(x)
    density = law.log_pdf(x)
    # The weight of a component moves its own tail up and, since all weights sum to 1, everything down.
    by_weight = np.exp(tails - density) - np.array(law.weights) * np.exp(tail - density)
    z = np.where(share == 0, 0.0, z)
    return np.concatenate([share * sds, share * sds * z, -sign * by_weight[1:]])


# --- The noise floor: the Epsilon* that pure chance gives on records like these ---
#
# Membership is permuted and the normals refitted. Only sums over the new groups matter, so the records are put into
# fine bins of the pooled transformed losses and the members of each bin drawn from the multivariate hypergeometric
# distribution: the cost of a permutation does not depend on the number of records. The bins are 1/4096 of the range
# wide, which adds about 1e-7 to the variance.


_BINS = 4096


def noise_floor(
    losses: Losses, *, delta: float, clip: float, rng: np.random.Generator, permutations: int = 40
) -> Floats:
    """Return the parametric Epsilon* of ``permutations`` random relabellings of the records.

    Args:
        losses: Transformed losses.
        delta: As for the value it is shown beside.
        clip: Likewise.
        rng: Draws the relabellings.
        permutations: How many.

    >>> values = np.linspace(0.0, 1.0, 200)
    >>> floor = noise_floor(Losses(member=values, nonmember=values), delta=1e-3, clip=1e-3, rng=np.random.default_rng(0))
    >>> floor.shape, bool((floor >= 0).all())
    ((40,), True)
    """
    low = min(losses.member.min(), losses.nonmember.min())
    high = max(losses.member.max(), losses.nonmember.max())
    if low == high:
        return np.zeros(permutations)
    counts = np.zeros(_BINS, dtype=np.int64)
    for values in (losses.member, losses.nonmember):
        index = ((values - low) * ((_BINS - 1) / (high - low))).astype(np.int32)
        counts += np.bincount(index, minlength=_BINS)
    used = np.flatnonzero(counts)
    centres = used / (_BINS - 1)
    drawn = rng.multivariate_hypergeometric(
        counts[used], losses.n_member, size=permutations, method="marginals"
    )
    return np.array([_value(centres, row, counts[used] - row, delta, clip) for row in drawn])


def _value(centres: Floats, member: Floats, nonmember: Floats, delta: float, clip: float) -> float:
    return gaussian_supremum(
        fit_gaussian(centres, member), fit_gaussian(centres, nonmember), delta=delta, clip=clip
    ).value


# --- The Epsilon* of two normals without a few records, and with the other transform ---


_TRIMMED = 0.001
_EXACT_TAIL = 2000
_RUN = 32


def alternatives(losses: Losses, *, delta: float) -> dict[str, float]:
    """Return Epsilon* refitted without the most extreme 0.1% of each group, and with the scale-free transform.

    Args:
        losses: Before any transform.
        delta: In (0, 1); also the clip, as published.

    >>> values = np.linspace(0.0, 1.0, 500)
    >>> sorted(alternatives(Losses(member=values, nonmember=values), delta=1e-3))
    ['scale_free', 'without_extremes']
    """
    groups = losses.sorted_member, losses.sorted_nonmember
    trimmed, whole = [_condensed(_trim(group)) for group in groups], [_condensed(group) for group in groups]
    return {
        "without_extremes": _epsilon_star(losses, trimmed, published(), delta),
        "scale_free": _epsilon_star(losses, whole, log_odds, delta),
    }


def _trim(ordered: Floats) -> Floats:
    """Without the most extreme 0.1% of the records, half of them from each end and at least one from each."""
    cut = max(1, math.ceil(ordered.size * _TRIMMED / 2))
    return ordered[cut:-cut] if ordered.size >= 2 * cut + 2 else ordered


def _condensed(ordered: Floats) -> tuple[Floats, Floats]:
    """Values and weights that stand for a long sorted sample: exact in both tails, means of short runs between.

    The transforms are smooth, so the moments of the transformed sample change by far less than the 10% looked for.
    """
    runs = (ordered.size - 2 * _EXACT_TAIL) // _RUN
    if runs < _EXACT_TAIL:
        return ordered, np.ones(ordered.size)
    end = _EXACT_TAIL + runs * _RUN
    means = ordered[_EXACT_TAIL:end].reshape(runs, _RUN).mean(axis=1)
    values = np.concatenate([ordered[:_EXACT_TAIL], means, ordered[end:]])
    weights = np.ones(values.size)
    weights[_EXACT_TAIL : _EXACT_TAIL + runs] = _RUN
    return values, weights


def _epsilon_star(
    losses: Losses, groups: list[tuple[Floats, Floats]], transform: Transform, delta: float
) -> float:
    (member, member_weights), (nonmember, nonmember_weights) = groups
    moved = transform(Losses(member=member, nonmember=nonmember, scale=losses.scale))
    fits = fit_gaussian(moved.member, member_weights), fit_gaussian(moved.nonmember, nonmember_weights)
    return gaussian_supremum(*fits, delta=delta, clip=delta).value


# --- How far the fitted curve lies from the measured one ---


_REACHED = 10


def fit_gap(counts: ThresholdCounts, pair: FittedPair) -> dict[str, float]:
    """Return the largest gap of fitted and measured log TPR, in nats, where at least 10 non-members lie below.

    Empty where too few records reach that far.
    """
    n1, n0 = counts.n_member, counts.n_nonmember
    wanted = np.unique(np.geomspace(_REACHED, max(n0 // 2, _REACHED), 60).astype(np.int64))
    at = np.searchsorted(counts.fp_below, wanted)
    at = at[at < counts.thresholds.size]
    at = at[(counts.fp_below[at] >= _REACHED) & (counts.tp_below[at] >= _REACHED)]
    if at.size == 0 or min(pair.member.sd, pair.nonmember.sd) == 0:
        return {}
    fpr = counts.fp_below[at] / n0
    thresholds = pair.nonmember.quantile(fpr)
    gaps = pair.member.log_cdf(thresholds) - np.log(counts.tp_below[at] / n1)
    worst = int(np.argmax(np.abs(gaps)))
    return {"curve_gap": float(gaps[worst]), "curve_gap_fpr": float(fpr[worst])}
