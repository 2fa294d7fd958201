"""The four ratios of Epsilon* and their largest, whatever the laws; what stays of them at the edges.

    eps* = log max(1, sup_q max(m1, m2, m3, m4)),  d = delta
    m1 = (TPR - d)/FPR   m2 = (TNR - d)/FNR   m3 = (FNR - d)/TNR   m4 = (FPR - d)/TPR

Negoescu et al. 2024, Definition 2.
"""

import math
from dataclasses import dataclass

import numpy as np

from auditor.values import Density

__all__ = ["BEYOND", "BRANCHES", "Branch", "Supremum", "nothing", "point_mass", "separated"]

# name: (is the member law the numerator?, is it the upper tail?)
BRANCHES = {"m1": (True, False), "m2": (False, True), "m3": (True, True), "m4": (False, False)}
# Ratios of distances and spreads beyond this would overflow when squared, and no float could tell them apart anyway.
BEYOND = 1e100


@dataclass(frozen=True)
class Branch:
    """One of the four ratios at its largest.

    Attributes:
        name: ``m1`` to ``m4``.
        epsilon: Log of the ratio, or 0 where it never exceeds 1.
        threshold: Where it is attained; NaN where ``epsilon`` is 0.
        z_numerator: Threshold in standard units of the numerator law, measured towards its lower tail.
        z_denominator: Likewise for the denominator law.
        hazard: d(epsilon)/d(threshold) that a shift of either law feels: the factor of the standard error.
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


def nothing() -> Supremum:
    """The laws do not differ, or no threshold is allowed."""
    branches = tuple(Branch(name, 0.0) for name in BRANCHES)
    return Supremum(0.0, branches, branches[0], math.nan, math.nan)


def separated(clip: float, delta: float) -> Supremum:
    """No threshold keeps both error rates inside the clip: total separation, the worst leak, reads as the ceiling."""
    ceiling = math.inf if clip == 0 else math.log(max(1.0, (1 - clip - delta) / clip))
    branches = tuple(Branch(name, ceiling, on_clip=clip > 0) for name in BRANCHES)
    return Supremum(ceiling, branches, branches[0], math.nan, math.nan, saturated=True)


def point_mass(member: Density, nonmember: Density, delta: float, clip: float) -> Supremum:
    """One group has a single loss inside the other's range: the limit of a standard deviation that goes to 0.

    At that loss the other law's tail F is fixed, and the point law's own rate runs through all of [clip, 1 - clip].
    """
    point, law = (member, nonmember) if member.sd == 0 else (nonmember, member)
    f = math.exp(float(law.log_cdf(np.array(point.mean))))
    ratios = [(1 - clip - delta, f), (1 - f - delta, clip), (1 - clip - delta, 1 - f), (f - delta, clip)]
    if law is member:
        ratios = [ratios[index] for index in (3, 2, 1, 0)]
    branches = tuple(
        Branch(name, _log_or_zero(*ratio), point.mean, on_clip=True)
        for name, ratio in zip(BRANCHES, ratios, strict=True)
    )
    best = max(branches, key=lambda branch: branch.epsilon)
    own = (
        clip if best.name in ("m1", "m2") else 1 - clip
    )  # the point law's miss rate, or its false alarm rate
    fpr, fnr = (f, own) if law is nonmember else (own, 1 - f)
    return Supremum(best.epsilon, branches, best, fpr, fnr)


def _log_or_zero(numerator: float, denominator: float) -> float:
    if numerator <= 0:
        return 0.0
    return math.inf if denominator == 0 else max(0.0, math.log(numerator / denominator))
