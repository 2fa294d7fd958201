"""The exact supremum behind the parametric Epsilon* of two mixtures of normals [own].

Each branch is the largest of log(P(q) - d) - log Q(q) for a numerator law P, a denominator law Q and one tail (see
`branches`); upper tails are reflected, so that only lower tails remain. The log-ratio of two mixtures can cross a level
many times, so the search is global and certified: on thresholds [a, b] no value can exceed log(P(b) - d) - log Q(a),
since both tails only grow. Intervals whose bound is no larger than the best value found are dropped, the others are
halved until none is left, and the best point is then polished. Without a clip only the thresholds between the
numerator's d quantile and the denominator's 1 - d quantile can exceed 0.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from auditor import _validate
from auditor.errors import InputError
from auditor.estimators.branches import BEYOND, BRANCHES, Branch, Supremum, nothing, point_mass, separated
from auditor.fitters.gaussian import Gaussian
from auditor.fitters.mixture import MixtureOfGaussians
from auditor.values import Floats

__all__ = ["supremum"]

Law = Gaussian | MixtureOfGaussians

# Intervals are dropped when they can gain no more than this, beside the value itself.
_TOLERANCE = 1e-6
_HALVINGS = 200
_MOST_INTERVALS = 200_000
_PEAKS = 5
_DISTANCES = np.linspace(-9.0, 9.0, 73)


@dataclass(frozen=True)
class _Lower:
    """One branch in lower-tail form."""

    p: MixtureOfGaussians
    q: MixtureOfGaussians
    delta: float

    def numerator(self, x: Floats) -> Floats:
        """Log of P(x) - delta, minus infinity where that is not above 0."""
        log_p = self.p.log_cdf(x)
        if self.delta == 0:
            return log_p
        gap = math.log(self.delta) - log_p
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(gap < 0, log_p + np.log(-np.expm1(np.minimum(gap, 0.0))), -np.inf))

    def value(self, x: Floats) -> Floats:
        """Log of the ratio."""
        return _difference(self.numerator(x), self.q.log_cdf(x))


def _difference(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(numerator), -np.inf, numerator - denominator)


def supremum(member: Law, nonmember: Law, *, delta: float, clip: float = 0.0) -> Supremum:
    """Return the exact parametric Epsilon* of two mixtures of normals.

    Args:
        member: Law of the member losses; a normal is a mixture of one.
        nonmember: Law of the non-member losses.
        delta: In [0, 1); 0 needs a clip.
        clip: Thresholds are confined to FPR and FNR in [clip, 1 - clip]; 0 for no clip. The paper clips at delta.

    Raises:
        InputError: delta = 0 without a clip, where the supremum is infinite or undefined.

    >>> unit = MixtureOfGaussians((1.0,), (0.0,), (1.0,))
    >>> round(supremum(unit, Gaussian(1.0, 1.0), delta=1e-5).value, 6)
    4.377178
    """
    _validate.fraction("delta", delta, zero=True)
    _validate.fraction("clip", clip, zero=True)
    if delta == 0 and clip == 0:
        raise InputError(
            "delta must be above 0 when there is no clip, got 0: the supremum is infinite; give a clip."
        )
    member, nonmember = _without_specks(_mixture(member), _mixture(nonmember))
    same_point = member.sd == 0 and nonmember.sd == 0 and member.mean == nonmember.mean
    if same_point or clip >= 0.5:  # noqa: PLR2004 - no threshold is allowed, and the ceiling is 0 too
        return nothing()
    low, high = _interval(member, nonmember, clip)
    apart = abs(member.mean / 2 - nonmember.mean / 2) > BEYOND * max(member.sd, nonmember.sd)
    if low > high or (member.sd == 0 and nonmember.sd == 0) or apart:
        return separated(clip, delta)
    if member.sd == 0 or nonmember.sd == 0:
        return point_mass(member, nonmember, delta, clip)
    branches = tuple(_branch(name, member, nonmember, delta, clip) for name in BRANCHES)
    best = max(branches, key=lambda branch: branch.epsilon)
    if math.isinf(best.epsilon):
        return separated(clip, delta)
    if best.epsilon == 0:
        return Supremum(0.0, branches, best, math.nan, math.nan)
    at = np.array(best.threshold)
    fpr, fnr = math.exp(float(nonmember.log_cdf(at))), math.exp(float(member.log_sf(at)))
    return Supremum(best.epsilon, branches, best, fpr, fnr)


def _mixture(law: Law) -> MixtureOfGaussians:
    if isinstance(law, Gaussian):
        return MixtureOfGaussians((1.0,), (law.mean,), (law.sd,))
    return law


def _without_specks(
    member: MixtureOfGaussians, nonmember: MixtureOfGaussians
) -> tuple[MixtureOfGaussians, MixtureOfGaussians]:
    """A law whose spread is nothing beside the other's is a point mass: its square would underflow."""
    laws = (member, nonmember)
    widest = max(law.sd for law in laws)
    member, nonmember = (
        _mixture(Gaussian(law.mean, 0.0)) if law.sd < widest / BEYOND else law for law in laws
    )
    return member, nonmember


def _reflected(law: MixtureOfGaussians) -> MixtureOfGaussians:
    return MixtureOfGaussians(law.weights, tuple(-mean for mean in law.means), law.sds)


def _quantiles(law: MixtureOfGaussians, tail: float) -> tuple[float, float]:
    """The lower and the upper quantile of a small tail."""
    level = np.array(tail)
    return float(law.quantile(level)), -float(_reflected(law).quantile(level))


def _interval(p: MixtureOfGaussians, q: MixtureOfGaussians, clip: float) -> tuple[float, float]:
    """Thresholds that keep both error rates in [clip, 1 - clip]."""
    if clip == 0:
        return -math.inf, math.inf
    ends = _quantiles(p, clip), _quantiles(q, clip)
    return max(low for low, _ in ends), min(high for _, high in ends)


def _branch(
    name: str, member: MixtureOfGaussians, nonmember: MixtureOfGaussians, delta: float, clip: float
) -> Branch:
    member_first, upper = BRANCHES[name]
    p, q = (member, nonmember) if member_first else (nonmember, member)
    if upper:
        p, q = _reflected(p), _reflected(q)
    lower = _Lower(p, q, delta)
    low, high = _interval(p, q, clip) if clip > 0 else (_quantiles(p, delta)[0], _quantiles(q, delta)[1])
    epsilon, at = _largest(lower, low, high)
    if not epsilon > 0:
        return Branch(name, 0.0)
    on_clip = clip > 0 and at in (low, high)
    hazard = _hazard(lower, at, clip, on_clip=on_clip)
    return Branch(name, epsilon, -at if upper else at, hazard=hazard, on_clip=on_clip)


def _largest(lower: _Lower, low: float, high: float) -> tuple[float, float]:
    """The largest log-ratio on [low, high] and where it is attained; 0 where it is nowhere above."""
    if not low < high:
        return 0.0, math.nan
    knots = np.concatenate(
        [lower.p.spread(_DISTANCES), lower.q.spread(_DISTANCES), np.linspace(low, high, 65)]
    )
    knots = np.unique(np.clip(knots, low, high))
    numerator, denominator = lower.numerator(knots), lower.q.log_cdf(knots)
    values = _difference(numerator, denominator)
    best, at = _peak(lower, knots, values)
    left, right = knots[:-1], knots[1:]
    ends = numerator[1:], denominator[:-1]
    for _ in range(_HALVINGS):
        keep = _difference(*ends) > best + _TOLERANCE * (1 + best)
        left, right, (top, bottom) = left[keep], right[keep], (ends[0][keep], ends[1][keep])
        middle = left + (right - left) / 2
        if left.size == 0 or left.size > _MOST_INTERVALS or ((middle <= left) | (middle >= right)).all():
            break
        numerator, denominator = lower.numerator(middle), lower.q.log_cdf(middle)
        values = _difference(numerator, denominator)
        index = int(np.argmax(values))
        if values[index] > best:
            best, at = _polished(lower, left[index], right[index], float(values[index]), float(middle[index]))
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        ends = np.concatenate([numerator, top]), np.concatenate([bottom, denominator])
    return best, at


def _peak(lower: _Lower, knots: Floats, values: Floats) -> tuple[float, float]:
    """The best of the highest local maxima among the knots, each polished."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values > 0) & (values >= padded[:-2]) & (values >= padded[2:]))
    highest = peaks[np.argsort(values[peaks], kind="stable")[-_PEAKS:]]
    best, at = 0.0, math.nan
    for index in highest:
        bracket = knots[max(index - 1, 0)], knots[min(index + 1, knots.size - 1)]
        value, where = _polished(lower, *bracket, float(values[index]), float(knots[index]))
        if value > best:
            best, at = value, where
    return best, at


def _polished(lower: _Lower, left: float, right: float, value: float, at: float) -> tuple[float, float]:
    """The larger of a value and of what a local search between two points finds."""
    if not math.isfinite(value) or not left < right:
        return value, at
    # In units of the bracket, so that no scale is too small for the search.
    width = right - left
    found = optimize.minimize_scalar(
        lambda share: -float(lower.value(np.array(left + share * width))),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return (-float(found.fun), left + float(found.x) * width) if -found.fun > value else (value, at)


def _hazard(lower: _Lower, at: float, clip: float, *, on_clip: bool) -> float:
    """Sensitivity of epsilon to a shift of a law, by the envelope theorem [own].

    At an interior optimum p/(P - delta) = q/Q. On a clip that law X holds, X's tail is fixed and the other law moves:
    its own hazard counts.
    """
    x = np.array(at)
    if on_clip and at in _quantiles(lower.p, clip):
        return _exp(float(lower.q.log_pdf(x) - lower.q.log_cdf(x)))
    return _exp(float(lower.p.log_pdf(x) - lower.numerator(x)))


def _exp(x: float) -> float:
    return math.exp(x) if x < math.log(np.finfo(float).max) else math.inf
