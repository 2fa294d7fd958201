"""Uncertainty of the parametric Epsilon* [own].

By the envelope theorem only the laws move, not the threshold. With h the branch's hazard and z the threshold in
standard units of each law, the variance is h^2 times the sum over both laws of

    sd^2/n (1 + z^2/2)

For a sample that is not normal, 1 + z^2/2 becomes 1 + z skew + z^2 (kurtosis - 1)/4. A census knows its law.
"""

import math
from collections.abc import Sequence

from scipy import special

from auditor.estimators.branches import BRANCHES, Branch, Supremum
from auditor.fitters.gaussian import Gaussian

__all__ = ["branch_lower_bound", "largest_lower_bound", "standard_error"]


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
    return largest_lower_bound(found, errors, confidence=confidence)


def largest_lower_bound(found: Supremum, errors: Sequence[float], *, confidence: float) -> float | None:
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
