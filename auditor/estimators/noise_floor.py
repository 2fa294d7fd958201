"""The noise floor: the Epsilon* that pure chance gives on records like these.

Membership is permuted and the normals refitted. Only sums over the new groups matter, so the records are put into
fine bins of the pooled transformed losses and the members of each bin drawn from the multivariate hypergeometric
distribution: the cost of a permutation does not depend on the number of records. The bins are 1/4096 of the range
wide, which adds about 1e-7 to the variance.
"""

import numpy as np

from auditor.estimators.gaussian_supremum import supremum
from auditor.fitters.gaussian import fit_gaussian
from auditor.values import Floats, Losses

__all__ = ["noise_floor"]

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
    return supremum(
        fit_gaussian(centres, member), fit_gaussian(centres, nonmember), delta=delta, clip=clip
    ).value
