"""The exact supremum behind the parametric Epsilon* of two normals; Negoescu et al. 2024, Section 3.1.

    eps* = log max(1, sup_q max(m1, m2, m3, m4)),  d = delta
    m1 = (TPR - d)/FPR   m2 = (TNR - d)/FNR   m3 = (FNR - d)/TNR   m4 = (FPR - d)/TPR

Each branch is (P(q) - d)/Q(q) for a numerator law P, a denominator law Q and one tail. Upper tails are reflected,
so that only lower tails remain. For a fixed epsilon the largest excess

    H(eps) = max_q [P(q) - e^eps Q(q)]

is at a root of the quadratic log p(q) - log q(q) = eps or at an end of the allowed interval; H falls in eps, and the
branch's value is the root of H(eps) = d. This replaces the paper's grid of two million thresholds [own].
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from scipy import optimize, special

from auditor import _validate
from auditor.errors import InputError
from auditor.estimators.branches import BEYOND, BRANCHES, Branch, Supremum, nothing, point_mass, separated
from auditor.fitters.gaussian import Gaussian

__all__ = ["Branch", "Supremum", "best_region", "supremum"]

_EXP_LIMIT = 700.0


@dataclass(frozen=True)
class _Lower:
    """One branch in lower-tail form, with thresholds confined to [low, high]."""

    mean_p: float
    sd_p: float
    mean_q: float
    sd_q: float
    low: float
    high: float

    def log_tails(self, at: float) -> tuple[float, float]:
        """Log of P(at) and log of Q(at)."""
        log_p = special.log_ndtr((at - self.mean_p) / self.sd_p)
        return float(log_p), float(special.log_ndtr((at - self.mean_q) / self.sd_q))

    def crossings(self, epsilon: float) -> tuple[float, ...]:
        """Thresholds where log p - log q = epsilon: roots of A x^2 + B x + C in standard units of Q."""
        m, r = (self.mean_p - self.mean_q) / self.sd_q, self.sd_p / self.sd_q
        roots = _quadratic_roots(*_log_ratio(m, r), epsilon)
        return tuple(self.mean_q + self.sd_q * x for x in roots)

    def largest_excess(self, epsilon: float) -> tuple[float, float]:
        """H(epsilon) and where it is attained."""
        candidates = [x for x in self.crossings(epsilon) if self.low <= x <= self.high]
        candidates += [x for x in (self.low, self.high) if math.isfinite(x)]
        best, where = -math.inf, math.nan
        for at in candidates:
            log_p, log_q = self.log_tails(at)
            gap = epsilon + log_q - log_p
            excess = -math.exp(log_p) * math.expm1(gap) if gap < _EXP_LIMIT else -math.inf
            if excess > best:
                best, where = excess, at
        return best, where


def _log_ratio(m: float, r: float) -> tuple[float, float, float]:
    """Coefficients of the log-ratio of N(m, r^2) to N(0, 1): A x^2 + B x + C."""
    a = (r - 1) * (r + 1) / (2 * r * r)
    return a, m / (r * r), -0.5 * (m / r) ** 2 - math.log(r)


def _quadratic_roots(a: float, b: float, c: float, level: float) -> tuple[float, ...]:
    """Real roots of a x^2 + b x + c = level, without cancellation, for a or b near 0 too."""
    constant = c - level
    discriminant = b * b - 4 * a * constant
    if discriminant < 0:
        return ()
    half = -0.5 * (b + math.copysign(math.sqrt(discriminant), b))
    roots = []
    if a != 0 and math.isfinite(half / a):
        roots.append(half / a)
    if half != 0 and math.isfinite(constant / half):
        roots.append(constant / half)
    return tuple(roots)


def supremum(member: Gaussian, nonmember: Gaussian, *, delta: float, clip: float = 0.0) -> Supremum:
    """Return the exact parametric Epsilon* of two normals.

    Args:
        member: Law of the member losses (on any scale on which they are normal).
        nonmember: Law of the non-member losses.
        delta: In [0, 1); 0 needs a clip.
        clip: Thresholds are confined to FPR and FNR in [clip, 1 - clip]; 0 for no clip. The paper clips at delta.

    Raises:
        InputError: delta = 0 without a clip, where the supremum is infinite or undefined.

    >>> unit = Gaussian(0.0, 1.0)
    >>> round(supremum(unit, Gaussian(1.0, 1.0), delta=1e-5).value, 6)
    4.377178
    """
    _validate.fraction("delta", delta, zero=True)
    _validate.fraction("clip", clip, zero=True)
    if delta == 0 and clip == 0:
        raise InputError(
            "delta must be above 0 when there is no clip, got 0: the supremum is infinite; give a clip."
        )
    member, nonmember = _without_specks(member, nonmember)
    same_point = member.sd == 0 and nonmember.sd == 0 and member.mean == nonmember.mean
    if same_point or clip >= 0.5:  # noqa: PLR2004 - no threshold is allowed, and the ceiling is 0 too
        return nothing()
    low, high = _interval(member, nonmember, clip)
    if low > high or (member.sd == 0 and nonmember.sd == 0):
        return separated(clip, delta)
    if abs(member.mean - nonmember.mean) > BEYOND * max(member.sd, nonmember.sd):
        return separated(clip, delta)
    if member.sd == 0 or nonmember.sd == 0:
        return point_mass(member, nonmember, delta, clip)
    unit = min(member, nonmember, key=lambda law: law.sd)
    return _in_units(_scaled(member, unit), _scaled(nonmember, unit), unit, delta, clip)


def _scaled(law: Gaussian, unit: Gaussian) -> Gaussian:
    return Gaussian((law.mean - unit.mean) / unit.sd, law.sd / unit.sd)


def _in_units(member: Gaussian, nonmember: Gaussian, unit: Gaussian, delta: float, clip: float) -> Supremum:
    """The supremum of two laws in units of the narrower one, where thresholds near it lose no digits to its distance from 0."""
    low, high = _interval(member, nonmember, clip)
    if low > high:
        return separated(clip, delta)
    scaled = [_branch(name, member, nonmember, delta, (low, high)) for name in BRANCHES]
    at = max(range(len(scaled)), key=lambda place: scaled[place].epsilon)
    branches = tuple(
        replace(item, threshold=unit.mean + unit.sd * item.threshold, hazard=item.hazard / unit.sd)
        for item in scaled
    )
    if scaled[at].epsilon == 0:
        return Supremum(0.0, branches, branches[at], math.nan, math.nan)
    fpr = float(special.ndtr((scaled[at].threshold - nonmember.mean) / nonmember.sd))
    fnr = float(special.ndtr((member.mean - scaled[at].threshold) / member.sd))
    return Supremum(scaled[at].epsilon, branches, branches[at], fpr, fnr)


def _without_specks(member: Gaussian, nonmember: Gaussian) -> tuple[Gaussian, Gaussian]:
    """A law whose spread is nothing beside the other's is a point mass: its square would underflow."""
    laws = (member, nonmember)
    widest = max(member.sd, nonmember.sd)
    member, nonmember = (Gaussian(law.mean, 0.0) if law.sd < widest / BEYOND else law for law in laws)
    return member, nonmember


def _interval(member: Gaussian, nonmember: Gaussian, clip: float) -> tuple[float, float]:
    """Thresholds that keep both error rates in [clip, 1 - clip]."""
    if clip == 0:
        return -math.inf, math.inf
    z = float(special.ndtri(clip))
    low = max(law.mean + law.sd * z for law in (member, nonmember))
    return low, min(law.mean - law.sd * z for law in (member, nonmember))


def _branch(
    name: str, member: Gaussian, nonmember: Gaussian, delta: float, interval: tuple[float, float]
) -> Branch:
    member_first, upper = BRANCHES[name]
    p, q = (member, nonmember) if member_first else (nonmember, member)
    sign = -1.0 if upper else 1.0
    low, high = sorted(sign * end for end in interval)
    lower = _Lower(sign * p.mean, p.sd, sign * q.mean, q.sd, low, high)
    epsilon = _root_in_epsilon(lower, delta)
    if epsilon is None:
        return Branch(name, 0.0)
    _, at = lower.largest_excess(epsilon)
    z_p, z_q = (at - lower.mean_p) / lower.sd_p, (at - lower.mean_q) / lower.sd_q
    on_clip = at in (low, high)
    return Branch(name, epsilon, sign * at, z_p, z_q, _hazard(lower, at, delta, on_clip=on_clip), on_clip)


def _root_in_epsilon(lower: _Lower, delta: float) -> float | None:
    """The root of H(eps) = delta, or None where H(0) is no larger."""

    def surplus(epsilon: float) -> float:
        return max(lower.largest_excess(epsilon)[0], -1.0) - delta

    return _falling_root(surplus)


def _falling_root(surplus: Callable[[float], float]) -> float | None:
    """The root of a falling function of epsilon, or None where it is never positive."""
    if surplus(0.0) <= 0:
        return None
    high = 1.0
    while surplus(high) > 0:
        high *= 2.0
    # disp=False: where rounding leaves no sign change to close in on, the last bracket is as good as it gets.
    return float(optimize.brentq(surplus, 0.0, high, xtol=1e-13, rtol=1e-14, disp=False))


def _hazard(lower: _Lower, at: float, delta: float, *, on_clip: bool) -> float:
    """Sensitivity of epsilon to a shift of a law, by the envelope theorem [own].

    At an interior optimum p/(P - delta) = q/Q. On a clip that law X holds, X's tail is fixed and the other law moves:
    its own hazard counts.
    """
    z_p, z_q = (at - lower.mean_p) / lower.sd_p, (at - lower.mean_q) / lower.sd_q
    # The clip is held by the law that is nearer to its own clip quantile, the larger standard distance.
    if on_clip and abs(z_p) >= abs(z_q):
        return _reversed_hazard(z_q) / lower.sd_q
    tail = math.exp(lower.log_tails(at)[0])
    rest = tail - delta
    return _reversed_hazard(z_p) / lower.sd_p * (tail / rest) if rest > 0 else math.inf


def _reversed_hazard(z: float) -> float:
    """phi(z)/Phi(z), by the scaled complementary error function, which neither over- nor underflows."""
    scaled = float(special.erfcx(-z / math.sqrt(2)))
    return math.sqrt(2 / math.pi) / scaled if scaled > 0 else math.inf


def best_region(member: Gaussian, nonmember: Gaussian, *, delta: float) -> float:
    """Return the largest epsilon over all regions, not only thresholds: the likelihood-ratio attacker's [own].

    With unequal variances the best region is an interval or its complement. No clip.

    >>> round(best_region(Gaussian(0.0, 1.0), Gaussian(0.0, 1.2), delta=1e-5), 6)
    3.5991
    """
    _validate.positive("delta", delta)
    member, nonmember = _without_specks(member, nonmember)
    if min(member.sd, nonmember.sd) == 0:
        return 0.0 if (member.mean, member.sd) == (nonmember.mean, nonmember.sd) else math.inf
    by_threshold = supremum(member, nonmember, delta=delta).value
    if math.isinf(by_threshold):
        return by_threshold
    return max(
        by_threshold, _region_epsilon(member, nonmember, delta), _region_epsilon(nonmember, member, delta)
    )


def _region_epsilon(p: Gaussian, q: Gaussian, delta: float) -> float:
    """The root of P(R) - e^eps Q(R) = delta, with R where the log-ratio exceeds eps."""
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
    """Log of the standard normal mass where the log-ratio is above its level, from the roots in standard units."""
    if len(roots) == 1:
        return float(special.log_ndtr(-roots[0] if b > 0 else roots[0]))
    low, high = roots
    if a > 0:
        return float(special.logsumexp([special.log_ndtr(low), special.log_ndtr(-high)]))
    # Between the roots: the difference of the two tails on the nearer side, so that nothing cancels.
    outer, inner = (low, high) if low + high < 0 else (-high, -low)
    log_outer, log_inner = float(special.log_ndtr(outer)), float(special.log_ndtr(inner))
    return log_inner + math.log(-math.expm1(log_outer - log_inner)) if log_outer < log_inner else -math.inf
