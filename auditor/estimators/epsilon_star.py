"""``epsilon_star.gaussian`` and ``epsilon_star.mixture``: the parametric Epsilon* of Negoescu et al. 2024.

Section 3.1 and Appendix B. It describes one model, and bounds the epsilon of the training algorithm neither from above
nor from below.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from auditor.core.numbers import plain
from auditor.core.options import Census, Coverage, Sample
from auditor.core.values import (
    Density,
    Estimate,
    FittedPair,
    Floats,
    GoodnessOfFit,
    Integers,
    Losses,
    Subject,
    weighted,
)
from auditor.curves.gaussian import Gaussian, fit_gaussian
from auditor.curves.mixture import MixtureOfGaussians, Runs, condensed
from auditor.curves.tradeoff import ThresholdCounts
from auditor.curves.transforms import Transform, log_odds, published
from auditor.estimators import supremum
from auditor.estimators.evidence import Evidence
from auditor.estimators.limits import finite
from auditor.estimators.supremum import BRANCHES, Branch, Supremum, gaussian_suprema, gaussian_supremum


def fitted_normals(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the Epsilon* of two fitted normals, with the numbers to read beside it."""
    setting, pair = evidence.setting, evidence.normals
    extra: dict[str, Any] = dict(fit_gap(evidence.counts, pair))
    if setting.delta > 0:
        extra |= alternatives(evidence.losses, delta=setting.delta)
        floor = noise_floor(
            evidence.transformed, delta=setting.delta, clip=setting.delta, rng=evidence.rng("noise floor")
        )
        extra["noise_floor"] = {
            "mean": float(floor.mean()),
            "q95": float(np.quantile(floor, 0.95)),
            "permutations": int(floor.size),
        }
    return (parametric(pair, extra=extra, **setting.of_model),)


def fitted_mixtures(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the Epsilon* of two fitted mixtures, if requested."""
    if evidence.setting.mixture is not None and evidence.losses.bits is not None:
        reason = "a summary keeps bins of losses, and mixtures are fitted to losses"
        return (
            Estimate.missing("epsilon_star.mixture", reason, method=_MIXTURES.fitted, subject=Subject.MODEL),
        )
    pair, setting = evidence.mixtures, evidence.setting
    # Without the floor: that of two normals is far below the values of mixtures between groups that do not differ.
    if pair is None:
        return ()
    return (parametric(pair, extra=dict(fit_gap(evidence.counts, pair)), **setting.of_model),)


# A rate counts as reached by the data when this many records are expected beyond it.
_RECORDS_BEYOND = 10
_HALF = 0.5
_LOGISTIC = math.sqrt(3) / math.pi  # scale of a logistic law of standard deviation 1
_THRESHOLDS = 2001
_TAILS = "logistic laws of the same means and spreads give a value lower by more than the interval"
_CEILING = "the value is a ceiling, not an estimate with an error"
_ASSUMED = (
    "records within each group are independent draws",
    "model-based: extrapolates beyond the data, and can be biased upward when the fit is wrong",
)
_CHOSEN = "the number of components was chosen from the data, and the error of that choice is not known"


@dataclass(frozen=True)
class _Family:
    """Differences between the two parametric values.

    Attributes:
        name: As in the estimate's.
        fitted: Two of them, in words.
        assumed: Assumed law of the losses of a group.
        enough: Records of each group that a lower bound needs.
    """

    name: str
    fitted: str
    assumed: str
    enough: int


# With fewer than 300 the bound misses more often than it says even on normal data (10% of the runs at 100 for 5%).
_NORMALS = _Family("gaussian", "normals", "normal", 300)
_MIXTURES = _Family("mixture", "mixtures of normals", "mixtures of normals", 2000)


def parametric(
    pair: FittedPair,
    *,
    delta: float,
    confidence: float = 0.95,
    coverage: Coverage = Sample(),  # noqa: B008 - a frozen value
    extra: dict[str, Any] | None = None,
) -> Estimate:
    """Return the parametric Epsilon* of two fitted normals, or mixtures of them, clipped at delta as published.

    Args:
        pair: Fitted to transformed losses: normals, or mixtures by `auditor.curves.mixture.fit_mixture_pair`.
        delta: In [0, 1); at 0 the row has no value and says why.
        confidence: Confidence level of the lower bound, which is that of the value supported by the data: the smaller one of the fit and of
            logistic laws with the same means and spreads, less the interval of the published value. It is absent when the
            fit is rejected, and where both differ by more than that interval. Of mixtures there is one only of one component
            and 2,000 records in each group: with several it can be far above 0 between groups that do not differ.
        coverage: `Sample` or `Census`.
        extra: More details to carry (the noise floor, the other transform).

    The details hold three values: without a clip, clipped at delta (the published one), and clipped where at least 10 records
    are expected beyond the threshold, with what logistic laws then give; where the value is attained and whether the data
    reach there; the standard error, of one component each; the best region's value, of normals; both fits, and of mixtures the
    published tests.

    >>> import numpy as np
    >>> from auditor.core.options import Mixture
    >>> from auditor.core.values import Losses
    >>> from auditor.curves.gaussian import fit_gaussian_pair
    >>> from auditor.curves.mixture import fit_mixture_pair
    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 5000), nonmember=rng.normal(0, 1, 5000))
    >>> estimate = parametric(fit_gaussian_pair(losses, rng=rng), delta=1e-5)
    >>> 3.5 < estimate.value < 4.5, estimate.lower, estimate.details["lower_reason"]
    (True, None, 'logistic laws of the same means and spreads give a value lower by more than the interval')
    >>> estimate = parametric(fit_mixture_pair(losses, choice=Mixture(2), rng=rng), delta=1e-5)
    >>> 3.5 < estimate.value < 4.5
    True
    """
    family = _MIXTURES if isinstance(pair.member, MixtureOfGaussians) else _NORMALS
    laws = _normal(pair.member), _normal(pair.nonmember)
    details = {"transform": pair.transform, "fit": _fit_details(pair), **(extra or {})}
    about: dict[str, Any] = {
        "name": f"epsilon_star.{family.name}",
        "method": f"exact supremum over two fitted {family.fitted}; Negoescu et al. 2024, Section 3.1 and Appendix B",
        "subject": Subject.MODEL,
        "delta": delta,
        "assumptions": (f"transformed losses of each group are {family.assumed}", *_ASSUMED),
    }
    if delta == 0:
        reason = "delta is 0: the supremum over a normal's unbounded tail is infinite or undefined"
        return Estimate.missing(**about, reason=reason, details=details)
    several = any(isinstance(law, MixtureOfGaussians) for law in laws)
    largest = supremum.mixture_supremum if several else gaussian_supremum
    result = largest(*laws, delta=delta, clip=delta)
    sizes = math.inf if isinstance(coverage, Census) else pair.n_member, pair.n_nonmember
    errors = [math.inf] * len(result.branches) if several else _normal_errors(result, *laws, sizes=sizes)
    # Where at least 10 records are expected beyond the threshold; with too few records nowhere.
    clip = max(delta, _RECORDS_BEYOND / min(pair.n_member, pair.n_nonmember))
    supported = None if clip >= _HALF else largest(*laws, delta=delta, clip=clip).value
    spread = min(law.sd for law in laws)
    heavier = None if supported is None or spread == 0 else logistic_value(*laws, delta=delta, clip=clip)
    details |= {
        "clip": delta,
        "branch": result.best.name if result.value > 0 else None,
        "saturated": result.saturated,
        "at": _attained(result, pair),
        "unclipped": largest(*laws, delta=delta).value,
        "supported": {"clip": clip, "value": supported, "logistic": heavier},
        "standard_error": _finite(errors[result.branches.index(result.best)]),
    }
    if isinstance(pair.member, Gaussian) and isinstance(pair.nonmember, Gaussian):
        robust = _normal_errors(result, pair.member, pair.nonmember, sizes=sizes, normal=False)
        details["standard_error_from_moments"] = _finite(robust[result.branches.index(result.best)])
        details["best_region"] = supremum.best_region(pair.member, pair.nonmember, delta=delta)
        errors = [max(both) for both in zip(errors, robust, strict=True)]
    lower, without = None, _why_no_lower(pair, family) or (_CHOSEN if several else None)
    if without is None and supported is not None and heavier is not None:
        lower, without = _supported_lower(result, errors, supported, heavier, confidence)
    if without is not None:
        details["lower_reason"] = without
    # A census takes the member law for known, so its number describes that finite set.
    if isinstance(coverage, Census):
        details["finite"], about["assumptions"] = True, (*about["assumptions"], *finite(coverage))
    level = None if lower is None else confidence
    return Estimate(**about, value=result.value, lower=lower, upper=None, confidence=level, details=details)


def _normal(law: Any) -> Any:
    """Return a mixture of one component as a normal, and any other law as it is."""
    single = isinstance(law, MixtureOfGaussians) and law.components == 1
    return Gaussian(law.mean, law.sd) if single else law


def _supported_lower(
    peak: Supremum, errors: Sequence[float], supported: float, heavier: float, confidence: float
) -> tuple[float | None, str | None]:
    """Return the lower bound, or why there is none.

    The published value mostly lies where no record does, and there it is the tails of the normal that decide, which no
    test of some hundred records distinguishes from heavier ones [own].
    """
    own = largest_lower_bound(peak, errors, confidence=confidence)
    if own is None:
        return None, _CEILING
    interval = peak.value - own
    if supported - heavier > interval:
        return None, _TAILS
    return max(0.0, min(supported, heavier) - interval), None


def logistic_value(member: Density, nonmember: Density, *, delta: float, clip: float) -> float:
    """Return Epsilon* of two logistic laws with these means and standard deviations, on a grid of thresholds.

    Args:
        member: Fitted member law, of a standard deviation above 0.
        nonmember: Fitted non-member law, of a standard deviation above 0.
        delta: In [0, 1).
        clip: In (0, 0.5); FPR and FNR stay in [clip, 1 - clip].

    >>> round(logistic_value(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0), delta=0.0, clip=1e-9), 4)
    1.8138
    """
    means, scales = np.array([[law.mean, law.sd * _LOGISTIC] for law in (member, nonmember)]).T[:, :, None]
    reach = scales * special.logit(1 - clip)
    low, high = float((means - reach).max()), float((means + reach).min())
    if low > high:
        return max(0.0, math.log((1 - clip - delta) / clip))
    z1, z0 = (np.linspace(low, high, _THRESHOLDS) - means) / scales
    pairs = ((z1, z0), (-z0, -z1), (-z1, -z0), (z0, z1))
    ratios = [np.max((special.expit(of) - delta) / special.expit(over)) for of, over in pairs]
    return math.log(max(1.0, *map(float, ratios)))


def _finite(error: float) -> float | None:
    return error if math.isfinite(error) else None


def _why_no_lower(pair: FittedPair, family: _Family) -> str | None:
    """Return why there is no lower bound, if there is none: it is conditional on the fit, and linear in the fitted parameters."""
    laws = pair.member, pair.nonmember
    if pair.rejected:
        return "the fit is rejected"
    if min(law.sd for law in laws) == 0:
        return "a group has one single loss, so there is no spread to fit"
    if min(pair.n_member, pair.n_nonmember) < family.enough:
        return f"the lower bound needs at least {family.enough} records in each group to hold its confidence"
    return None


def _attained(peak: Supremum, pair: FittedPair) -> dict[str, Any] | None:
    """Return the threshold where the value is attained, and whether the data reach it."""
    if peak.saturated or peak.value == 0:
        return None
    rates = {"m1": (peak.fpr, pair.n_nonmember), "m2": (peak.fnr, pair.n_member)}
    rates |= {"m3": (1 - peak.fpr, pair.n_nonmember), "m4": (1 - peak.fnr, pair.n_member)}
    rate, n = rates[peak.best.name]
    return {
        "threshold": peak.best.threshold,
        "fpr": peak.fpr,
        "fnr": peak.fnr,
        "on_clip": peak.best.on_clip,
        "records_beyond": rate * n,
        "reached_by_data": bool(rate * n >= _RECORDS_BEYOND),
    }


# --- The fits and their tests, JSON-like ---


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
    grids = {side: plain(grid) for side, (_, _, grid) in sides.items() if grid is not None}
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


# --- The error of the Epsilon* of two normals, and the lower bound that follows [own] ---
#
# By the envelope theorem only the laws move, not the threshold. With h the branch's hazard and z the threshold in
# standard units of each law, the variance is h^2 times the sum over both laws of sd^2/n (1 + z^2/2). For a sample that is
# not normal, 1 + z^2/2 becomes 1 + z skew + z^2 (kurtosis - 1)/4. A census knows its law.


def standard_error(
    branch: Branch, member: Gaussian, nonmember: Gaussian, *, sizes: tuple[float, float], normal: bool = True
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


def _normal_errors(
    peak: Supremum, member: Gaussian, nonmember: Gaussian, *, sizes: tuple[float, float], normal: bool = True
) -> list[float]:
    return [standard_error(branch, member, nonmember, sizes=sizes, normal=normal) for branch in peak.branches]


def largest_lower_bound(peak: Supremum, errors: Sequence[float], *, confidence: float) -> float | None:
    """Return max(0, max_j [eps_j - z SE_j]) over the four branches; None if the value is a ceiling.

    Linear in the fitted parameters, so it needs records: on normal data its misses stay near the level from about 300
    records in each group on, and it is conditional on normality.

    Args:
        peak: From `supremum`.
        errors: The standard error of each branch, in their order.
        confidence: Each branch is tested at a quarter of its error.
    """
    if peak.saturated or (peak.value > 0 and math.isnan(peak.best.hazard)):
        return None
    z = -float(special.ndtri((1 - confidence) / 4))
    return max(
        0.0, *(branch.epsilon - z * error for branch, error in zip(peak.branches, errors, strict=True))
    )


# --- The noise floor: the Epsilon* that pure chance gives on records like these ---
#
# Membership is permuted and the normals refitted. Only sums over the new groups matter, so the records are put into
# fine bins of the pooled transformed losses and the members of each bin drawn from the multivariate hypergeometric
# distribution: the cost of a permutation does not depend on the number of records. The bins are 1/4096 of the range
# wide, which adds about 1e-7 to the variance.


_BINS = 4096
_DRAWN_EXACTLY = 10**9


def noise_floor(
    losses: Losses, *, delta: float, clip: float, rng: np.random.Generator, permutations: int = 40
) -> Floats:
    """Return the parametric Epsilon* of ``permutations`` random relabellings of the records.

    Args:
        losses: Transformed losses.
        delta: As for the value it is shown beside.
        clip: As for that value.
        rng: Draws the relabellings.
        permutations: Number of relabellings.

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
    for values, weights in map(weighted, (losses.member, losses.nonmember)):
        index = ((values - low) * ((_BINS - 1) / (high - low))).astype(np.int32)
        counts += np.bincount(index, weights, minlength=_BINS).astype(np.int64)
    used = np.flatnonzero(counts)
    centres = used / (_BINS - 1)
    drawn = relabelled(counts[used], losses.n_member, size=permutations, rng=rng)
    pairs = [(fit_gaussian(centres, row), fit_gaussian(centres, counts[used] - row)) for row in drawn]
    return gaussian_suprema(pairs, delta=delta, clip=clip)


def relabelled(counts: Integers, members: int, *, size: int, rng: np.random.Generator) -> Integers:
    """Return the members in each cell under so many random relabellings of all records; shape (size, cells)."""
    records = int(counts.sum())
    if records < _DRAWN_EXACTLY:
        return rng.multivariate_hypergeometric(counts, members, size=size, method="marginals")
    # More than NumPy draws: a coin for each record, for that the numbers then vary too moves no moment.
    return np.asarray(rng.binomial(counts, members / records, size=(size, counts.size)))


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
    fits = {
        "without_extremes": _refitted(losses, [_trimmed(group) for group in groups], published),
        "scale_free": _refitted(losses, groups, log_odds),
    }
    values = gaussian_suprema(list(fits.values()), delta=delta, clip=delta).tolist()
    return dict(zip(fits, values, strict=True))


def _trimmed(ordered: Floats) -> Floats:
    """Return the losses without the most extreme 0.1%, half of them from each end and at least one from each."""
    cut = max(1, math.ceil(ordered.size * _TRIMMED / 2))
    return ordered[cut:-cut] if ordered.size >= 2 * cut + 2 else ordered


def _refitted(losses: Losses, groups: Sequence[Floats], transform: Transform) -> tuple[Gaussian, Gaussian]:
    """Return the normals of groups in ascending order.

    Of long ones short runs stand for the middle: the transforms are smooth, so the moments of the transformed sample
    change by far less than the 10% looked for.
    """
    result = []
    for group, counts in map(weighted, groups):
        if counts is not None:
            result.append(Runs(group, counts.astype(np.float64), np.zeros(group.size)))
            continue
        runs = (group.size - 2 * _EXACT_TAIL) // _RUN
        result.append(
            condensed(group, tail=_EXACT_TAIL, runs=runs if runs >= _EXACT_TAIL else 0, length=_RUN)
        )
    member, nonmember = result
    moved = transform(Losses(member=member.values, nonmember=nonmember.values, scale=losses.scale))
    return fit_gaussian(moved.member, member.counts), fit_gaussian(moved.nonmember, nonmember.counts)


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
