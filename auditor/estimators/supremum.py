"""The four ratios of Epsilon* and their largest, for any laws, and their limits at the edges.

    eps* = log max(1, sup_q max(m1, m2, m3, m4)),  d = delta
    m1 = (TPR - d)/FPR   m2 = (TNR - d)/FNR   m3 = (FNR - d)/TNR   m4 = (FPR - d)/TPR

Negoescu et al. 2024, Definition 2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from scipy import special

from auditor.core.values import Booleans, Density, Floats
from auditor.curves.gaussian import Gaussian
from auditor.curves.mixture import MixtureOfGaussians

# name: (is the member law the numerator?, is it the upper tail?)
BRANCHES = {"m1": (True, False), "m2": (False, True), "m3": (True, True), "m4": (False, False)}
# Ratios of distances and spreads beyond this would overflow when squared, and no float could distinguish them anyway.
_BEYOND = 1e100


@dataclass(frozen=True)
class Branch:
    """One of the four ratios at its largest.

    Attributes:
        name: ``m1`` to ``m4``.
        epsilon: Log of the ratio, or 0 where it never exceeds 1.
        threshold: Where it is attained; NaN where ``epsilon`` is 0.
        z_numerator: Threshold in standard units of the numerator law, measured towards its lower tail.
        z_denominator: The same for the denominator law.
        hazard: d(epsilon)/d(threshold) that a shift of either law feels: the factor of the standard error; NaN for mixtures.
        on_clip: Whether a clip holds the threshold back.
    """

    name: str
    epsilon: float
    threshold: float = math.nan
    z_numerator: float = math.nan
    z_denominator: float = math.nan
    hazard: float = math.nan
    on_clip: bool = False


@dataclass(frozen=True)
class Supremum:
    """The largest of the four branches.

    Attributes:
        value: Epsilon*, in nats.
        branches: All four, m1 first.
        best: The largest branch.
        fpr: False positive rate at the best threshold; NaN at value 0 and when saturated.
        fnr: False negative rate there.
        saturated: The clip leaves no threshold because the laws are totally separated; ``value`` is the ceiling.
    """

    value: float
    branches: tuple[Branch, ...]
    best: Branch
    fpr: float
    fnr: float
    saturated: bool = False


# --- Two normals: the exact supremum; Negoescu et al. 2024, Section 3.1 ---
#
# Each branch is (P(q) - d)/Q(q) for a numerator law P, a denominator law Q and one tail. Upper tails are reflected,
# so that only lower tails remain. For a fixed epsilon the largest excess
#
#     H(eps) = max_q [P(q) - e^eps Q(q)]
#
# is at a root of the quadratic log p(q) - log q(q) = eps or at an end of the allowed interval; H falls in eps, and the
# branch's value is the root of H(eps) = d. This replaces the paper's grid of two million thresholds [own].


_EXP_LIMIT, _LEAST = 700.0, 1e-300
# Halvings of the range of an epsilon, and then straight lines between its ends.
_BISECTIONS, _SECANTS = 20, 4


def gaussian_supremum(member: Gaussian, nonmember: Gaussian, *, delta: float, clip: float = 0.0) -> Supremum:
    """Return the exact parametric Epsilon* of two normals.

    Args:
        member: Law of the member losses (on any scale on which they are normal).
        nonmember: Law of the non-member losses.
        delta: In [0, 1); 0 needs a clip.
        clip: Thresholds are confined to FPR and FNR in [clip, 1 - clip]; 0 for no clip. The paper clips at delta.

    >>> unit = Gaussian(0.0, 1.0)
    >>> round(gaussian_supremum(unit, Gaussian(1.0, 1.0), delta=1e-5).value, 6)
    4.377178
    """
    units = _in_units(member, nonmember, delta, clip)
    if isinstance(units, Supremum):
        return units
    (unit, member, nonmember, _), lower = units, _Lower.of([units])
    epsilon = lower.roots(delta)
    at = lower.largest_excess(epsilon)[1]
    z_p, z_q = (at - lower.mean_p) / lower.sd_p, (at - lower.mean_q) / lower.sd_q
    on_clip = (at == lower.low) | (at == lower.high)
    hazard = _hazard(lower, z_p, z_q, delta, on_clip) / unit.sd
    places = lower.sign * at
    columns = epsilon, unit.mean + unit.sd * places, z_p, z_q, hazard, on_clip
    branches = tuple(
        Branch(name, *row) if row[0] > 0 else Branch(name, 0.0)
        for name, *row in zip(BRANCHES, *(column.tolist() for column in columns), strict=True)
    )
    best = int(np.argmax(epsilon))
    if epsilon[best] == 0:
        return Supremum(0.0, branches, branches[best], math.nan, math.nan)
    fpr = float(special.ndtr((places[best] - nonmember.mean) / nonmember.sd))
    fnr = float(special.ndtr((member.mean - places[best]) / member.sd))
    return Supremum(float(epsilon[best]), branches, branches[best], fpr, fnr)


_Units = tuple[Gaussian, Gaussian, Gaussian, tuple[float, float]]


def _in_units(member: Gaussian, nonmember: Gaussian, delta: float, clip: float) -> Supremum | _Units:
    """Return the narrower law, both laws in its units, and the thresholds that are allowed; or the supremum, at an edge."""
    laws = _without_specks(member, nonmember)
    edge = _at_an_edge(*laws, delta, clip)
    if edge is not None:
        return edge
    unit = min((member, nonmember), key=lambda law: law.sd)
    # In units of the narrower law, where thresholds near it lose no digits to its distance from 0.
    member, nonmember = (Gaussian((law.mean - unit.mean) / unit.sd, law.sd / unit.sd) for law in laws)
    interval = _interval(member, nonmember, clip)
    return _separated(clip, delta) if interval[0] > interval[1] else (unit, member, nonmember, interval)


@dataclass(frozen=True)
class _Lower:
    """Branches in lower-tail form, with thresholds confined to [low, high]; shape (n,) each."""

    sign: Floats
    mean_p: Floats
    sd_p: Floats
    mean_q: Floats
    sd_q: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, pairs: Sequence[_Units]) -> "_Lower":
        """Return the four branches of each pair of laws."""
        rows = []
        for _, member, nonmember, interval in pairs:
            for member_first, upper in BRANCHES.values():
                p, q = (member, nonmember) if member_first else (nonmember, member)
                sign = -1.0 if upper else 1.0
                ends = sorted(sign * end for end in interval)
                rows.append((sign, sign * p.mean, p.sd, sign * q.mean, q.sd, *ends))
        return cls(*np.array(rows).T)

    @cached_property
    def _log_ratio(self) -> tuple[Floats, Floats, Floats]:
        return _log_ratio((self.mean_p - self.mean_q) / self.sd_q, self.sd_p / self.sd_q)

    def largest_excess(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Return H(epsilon), -1 where it is no larger, and where it is attained."""
        a, b, c = self._log_ratio
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            half = -0.5 * (b + np.copysign(np.sqrt(b * b - 4 * a * (c - epsilon)), b))
            roots = (self.mean_q + self.sd_q * x for x in (half / a, (c - epsilon) / half))
            at = np.stack([*roots, self.low, self.high])
            log_p = special.log_ndtr((at - self.mean_p) / self.sd_p)
            gap = epsilon + special.log_ndtr((at - self.mean_q) / self.sd_q) - log_p
            excess = -np.exp(log_p) * np.expm1(np.minimum(gap, _EXP_LIMIT))
            allowed = (self.low <= at) & (at <= self.high) & np.isfinite(at) & (gap < _EXP_LIMIT)
        excess = np.where(allowed, excess, -1.0)
        best = excess.argmax(axis=0), np.arange(epsilon.size)
        return excess[best], at[best]

    def roots(self, delta: float) -> Floats:
        """Return the epsilon of each branch, 0 where the ratio never exceeds 1."""
        below, above = np.zeros(self.low.size), np.ones(self.low.size)
        more = at_0 = self.largest_excess(below)[0] - delta
        while ((less := self.largest_excess(above)[0] - delta) > 0).any():
            above = np.where(less > 0, 2 * above, above)
        for step in range(_BISECTIONS + _SECANTS):
            share = 0.5 if step < _BISECTIONS else np.clip(more / np.maximum(more - less, _LEAST), 0.0, 1.0)
            middle = below + share * (above - below)
            excess = self.largest_excess(middle)[0] - delta
            larger = excess > 0
            below, more = np.where(larger, middle, below), np.where(larger, excess, more)
            above, less = np.where(larger, above, middle), np.where(larger, less, excess)
        return np.where(at_0 > 0, middle, 0.0)


def gaussian_suprema(
    pairs: Sequence[tuple[Gaussian, Gaussian]], *, delta: float, clip: float = 0.0
) -> Floats:
    """Return the values of `gaussian_supremum` of many pairs, by one bisection of all their branches.

    >>> unit, moved = Gaussian(0.0, 1.0), Gaussian(1.0, 1.0)
    >>> gaussian_suprema([(unit, moved), (unit, unit)], delta=1e-5).round(6).tolist()
    [4.377178, 0.0]
    """
    units = [_in_units(*pair, delta, clip) for pair in pairs]
    apart = [one for one in units if not isinstance(one, Supremum)]
    values = iter(_Lower.of(apart).roots(delta).reshape(-1, len(BRANCHES)).max(axis=1) if apart else ())
    return np.array([one.value if isinstance(one, Supremum) else next(values) for one in units])


def _log_ratio(m: Any, r: Any) -> tuple[Any, Any, Any]:
    """Return the coefficients of the log-ratio of N(m, r^2) to N(0, 1): A x^2 + B x + C."""
    a = (r - 1) * (r + 1) / (2 * r * r)
    return a, m / (r * r), -0.5 * (m / r) ** 2 - np.log(r)


def _quadratic_roots(a: float, b: float, c: float, level: float) -> tuple[float, ...]:
    """Return the real roots of a x^2 + b x + c = level, without cancellation, for a or b near 0 too."""
    constant = c - level
    discriminant = b * b - 4 * a * constant
    if discriminant < 0:
        return ()
    half = -0.5 * (b + math.copysign(math.sqrt(discriminant), b))
    ratios = (top / bottom for top, bottom in ((half, a), (constant, half)) if bottom != 0)
    return tuple(filter(math.isfinite, ratios))


def _falling_root(surplus: Callable[[float], float]) -> float | None:
    """Return the root of a falling function of epsilon, or None if it is never positive."""
    if surplus(0.0) <= 0:
        return None
    high = 1.0
    while surplus(high) > 0:
        high *= 2.0
    # disp=False: where rounding leaves no sign change to close in on, the last bracket is as good as it gets.
    return float(scipy.optimize.brentq(surplus, 0.0, high, xtol=1e-13, rtol=1e-14, disp=False))


def _hazard(lower: _Lower, z_p: Floats, z_q: Floats, delta: float, on_clip: Booleans) -> Floats:
    """Return the sensitivity of epsilon to a shift of a law, by the envelope theorem [own].

    At an interior optimum p/(P - delta) = q/Q. On a clip that law X holds, X's tail is fixed and the other law moves:
    its own hazard counts.
    """
    # phi(z)/Phi(z), by the scaled complementary error function, which neither over- nor underflows.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        own, other = (math.sqrt(2 / math.pi) / special.erfcx(-z / math.sqrt(2)) for z in (z_p, z_q))
        tail = np.exp(special.log_ndtr(z_p))
        moved = np.where(tail > delta, own / lower.sd_p * (tail / (tail - delta)), math.inf)
    # The clip is held by the law that is nearer to its own clip quantile, the larger standard distance.
    return np.where(on_clip & (np.abs(z_p) >= np.abs(z_q)), other / lower.sd_q, moved)


# --- Two normals: over all regions, not only thresholds ---


def best_region(member: Gaussian, nonmember: Gaussian, *, delta: float) -> float:
    """Return the largest epsilon over all regions, not only thresholds: the likelihood-ratio attacker's [own].

    With unequal variances the best region is an interval or its complement. No clip.

    >>> round(best_region(Gaussian(0.0, 1.0), Gaussian(0.0, 1.2), delta=1e-5), 6)
    3.5991
    """
    one, other = _without_specks(member, nonmember)
    if min(one.sd, other.sd) == 0:
        return 0.0 if (one.mean, one.sd) == (other.mean, other.sd) else math.inf
    by_threshold = gaussian_supremum(member, nonmember, delta=delta).value
    if math.isinf(by_threshold):
        return by_threshold
    return max(by_threshold, _region_epsilon(one, other, delta), _region_epsilon(other, one, delta))


def _region_epsilon(p: Density, q: Density, delta: float) -> float:
    """Return the root of P(R) - e^eps Q(R) = delta, with R where the log-ratio exceeds eps."""
    m, r = (p.mean - q.mean) / q.sd, p.sd / q.sd
    a, b, c = _log_ratio(m, r)

    def surplus(epsilon: float) -> float:
        roots = sorted(_quadratic_roots(a, b, c, epsilon))
        if not roots:  # nowhere is the log-ratio that large
            return -delta
        log_p, log_q = _log_mass([(x - m) / r for x in roots], a, b), _log_mass(roots, a, b)
        gap = epsilon + log_q - log_p
        return (-math.exp(log_p) * math.expm1(gap) if gap < _EXP_LIMIT else -1.0) - delta

    return _falling_root(surplus) or 0.0


def _log_mass(roots: list[float], a: float, b: float) -> float:
    """Return the log of the standard normal mass where the log-ratio is above its level, from the roots in standard units."""
    if len(roots) == 1:
        return float(special.log_ndtr(-roots[0] if b > 0 else roots[0]))
    low, high = roots
    if a > 0:
        return float(special.logsumexp([special.log_ndtr(low), special.log_ndtr(-high)]))
    # Between the roots: the difference of the two tails on the nearer side, so that nothing cancels.
    outer, inner = (low, high) if low + high < 0 else (-high, -low)
    log_outer, log_inner = float(special.log_ndtr(outer)), float(special.log_ndtr(inner))
    return log_inner + math.log(-math.expm1(log_outer - log_inner)) if log_outer < log_inner else -math.inf


# --- Two mixtures of normals: a certified search [own] ---
#
# Upper tails are reflected here too. The log-ratio of two mixtures can cross a level many times, so the search for the
# largest log(P(q) - d) - log Q(q) is global and certified: on thresholds [a, b] no value can exceed
# log(P(b) - d) - log Q(a), since both tails only grow. Intervals whose bound is no larger than the best value found are
# dropped, the others are halved until none is left, and the best point is then polished. Without a clip only the
# thresholds between the numerator's d quantile and the denominator's 1 - d quantile can exceed 0.


# Intervals are dropped when they can gain no more than this, beside the value itself.
_TOLERANCE = 1e-6
_HALVINGS = 200
_MOST_INTERVALS = 200_000
_PEAKS = 5
_DISTANCES = np.linspace(-9.0, 9.0, 73)


def mixture_supremum(member: Density, nonmember: Density, *, delta: float, clip: float = 0.0) -> Supremum:
    """Return the exact parametric Epsilon* of two mixtures of normals.

    Args:
        member: Law of the member losses; a normal is a mixture of one.
        nonmember: Law of the non-member losses.
        delta: In [0, 1); 0 needs a clip.
        clip: Thresholds are confined to FPR and FNR in [clip, 1 - clip]; 0 for no clip. The paper clips at delta.

    >>> unit = MixtureOfGaussians((1.0,), (0.0,), (1.0,))
    >>> round(mixture_supremum(unit, Gaussian(1.0, 1.0), delta=1e-5).value, 6)
    4.377178
    """
    laws = _without_specks(member, nonmember)
    edge = _at_an_edge(*laws, delta, clip)
    if edge is not None:
        return edge
    member, nonmember = map(_mixture, laws)
    branches = tuple(_mixture_branch(name, member, nonmember, delta, clip) for name in BRANCHES)
    best = max(branches, key=lambda branch: branch.epsilon)
    if math.isinf(best.epsilon):
        return _separated(clip, delta)
    if best.epsilon == 0:
        return Supremum(0.0, branches, best, math.nan, math.nan)
    at = np.array(best.threshold)
    fpr, fnr = math.exp(float(nonmember.log_cdf(at))), math.exp(float(member.log_sf(at)))
    return Supremum(best.epsilon, branches, best, fpr, fnr)


def _mixture(law: Density) -> MixtureOfGaussians:
    """Return the law as a mixture: a normal is a mixture of one."""
    return law if isinstance(law, MixtureOfGaussians) else MixtureOfGaussians((1.0,), (law.mean,), (law.sd,))


@dataclass(frozen=True)
class _MixtureLower:
    """One branch in lower-tail form."""

    p: MixtureOfGaussians
    q: MixtureOfGaussians
    delta: float

    def numerator(self, x: Floats) -> Floats:
        """Return the log of P(x) - delta, minus infinity where that is not above 0."""
        log_p = self.p.log_cdf(x)
        if self.delta == 0:
            return log_p
        gap = math.log(self.delta) - log_p
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(gap < 0, log_p + np.log(-np.expm1(np.minimum(gap, 0.0))), -np.inf))

    def value(self, x: Floats) -> Floats:
        """Return the log of the ratio."""
        return _difference(self.numerator(x), self.q.log_cdf(x))


def _difference(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(numerator), -np.inf, numerator - denominator)


def _reflected(law: MixtureOfGaussians) -> MixtureOfGaussians:
    return MixtureOfGaussians(law.weights, tuple(-mean for mean in law.means), law.sds)


def _quantiles(law: Density, tail: float) -> tuple[float, float]:
    """Return the lower and the upper quantile of a small tail."""
    if not isinstance(law, MixtureOfGaussians):
        reach = law.sd * float(special.ndtri(tail))
        return law.mean + reach, law.mean - reach
    level = np.array(tail)
    return float(law.quantile(level)), -float(_reflected(law).quantile(level))


def _mixture_branch(
    name: str, member: MixtureOfGaussians, nonmember: MixtureOfGaussians, delta: float, clip: float
) -> Branch:
    member_first, upper = BRANCHES[name]
    p, q = (member, nonmember) if member_first else (nonmember, member)
    if upper:
        p, q = _reflected(p), _reflected(q)
    lower = _MixtureLower(p, q, delta)
    low, high = _interval(p, q, clip) if clip > 0 else (_quantiles(p, delta)[0], _quantiles(q, delta)[1])
    epsilon, at = _largest(lower, low, high)
    if not epsilon > 0:
        return Branch(name, 0.0)
    on_clip = clip > 0 and at in (low, high)
    return Branch(name, epsilon, -at if upper else at, on_clip=on_clip)


def _largest(lower: _MixtureLower, low: float, high: float) -> tuple[float, float]:
    """Return the largest log-ratio on [low, high] and where it is attained; 0 where it is nowhere above."""
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


def _peak(lower: _MixtureLower, knots: Floats, values: Floats) -> tuple[float, float]:
    """Return the best of the highest local maxima among the knots, each polished."""
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


def _polished(
    lower: _MixtureLower, left: float, right: float, value: float, at: float
) -> tuple[float, float]:
    """Return the larger of a value and the result of a local search between two points."""
    if not math.isfinite(value) or not left < right:
        return value, at
    # In units of the bracket, so that no scale is too small for the search.
    width = right - left
    result = scipy.optimize.minimize_scalar(
        lambda share: -float(lower.value(np.array(left + share * width))),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return (-float(result.fun), left + float(result.x) * width) if -result.fun > value else (value, at)


# --- The four ratios at the edges, for any laws ---


def _without_specks(*laws: Density) -> tuple[Density, Density]:
    """Return the law, as a point mass if its spread is negligible beside the other's: its square would underflow."""
    widest = max(law.sd for law in laws)
    member, nonmember = (Gaussian(law.mean, 0.0) if law.sd < widest / _BEYOND else law for law in laws)
    return member, nonmember


def _interval(member: Density, nonmember: Density, clip: float) -> tuple[float, float]:
    """Return the thresholds that keep both error rates in [clip, 1 - clip]."""
    if clip == 0:
        return -math.inf, math.inf
    ends = [_quantiles(law, clip) for law in (member, nonmember)]
    return max(low for low, _ in ends), min(high for _, high in ends)


def _at_an_edge(member: Density, nonmember: Density, delta: float, clip: float) -> Supremum | None:
    """Return the supremum if a group has a single loss, or no threshold is allowed; otherwise None."""
    points = member.sd == 0, nonmember.sd == 0
    if clip >= 0.5 or (all(points) and member.mean == nonmember.mean):  # noqa: PLR2004 - the ceiling is 0 too
        branches = tuple(Branch(name, 0.0) for name in BRANCHES)
        return Supremum(0.0, branches, branches[0], math.nan, math.nan)
    low, high = _interval(member, nonmember, clip)
    far = abs(member.mean / 2 - nonmember.mean / 2) > _BEYOND * max(member.sd, nonmember.sd)
    if low > high or all(points) or far:
        return _separated(clip, delta)
    return _point_mass(member, nonmember, delta, clip) if any(points) else None


def _separated(clip: float, delta: float) -> Supremum:
    """Return the ceiling: no threshold keeps both error rates inside the clip, which is total separation, the worst leak."""
    ceiling = math.inf if clip == 0 else math.log(max(1.0, (1 - clip - delta) / clip))
    branches = tuple(Branch(name, ceiling, on_clip=clip > 0) for name in BRANCHES)
    return Supremum(ceiling, branches, branches[0], math.nan, math.nan, saturated=True)


def _point_mass(member: Density, nonmember: Density, delta: float, clip: float) -> Supremum:
    """Return the supremum for a single loss inside the other group's range: the limit of a standard deviation that goes to 0.

    At that loss the other law's tail F is fixed, and the point law's own rate runs through all of [clip, 1 - clip].
    """
    point, law = (member, nonmember) if member.sd == 0 else (nonmember, member)
    f = math.exp(float(law.log_cdf(np.array(point.mean))))
    ratios = [(1 - clip - delta, f), (1 - f - delta, clip), (1 - clip - delta, 1 - f), (f - delta, clip)]
    if law is member:
        ratios = [ratios[index] for index in (3, 2, 1, 0)]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [float(np.log(np.divide(*ratio))) if ratio[0] > 0 else 0.0 for ratio in ratios]
    branches = tuple(
        Branch(name, max(0.0, value), point.mean, on_clip=True)
        for name, value in zip(BRANCHES, logs, strict=True)
    )
    best = max(branches, key=lambda branch: branch.epsilon)
    # The point law's miss rate, or its false alarm rate.
    own = clip if best.name in ("m1", "m2") else 1 - clip
    fpr, fnr = (f, own) if law is nonmember else (own, 1 - f)
    return Supremum(best.epsilon, branches, best, fpr, fnr)
