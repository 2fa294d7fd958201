"""How many independent records are clustered ones worth? The design effect of persons with several records."""

import numpy as np

from auditor._labels import Integers
from auditor.values import Floats, Losses, PerGroup

__all__ = ["effective_numbers"]

_LEAST = 2


def effective_numbers(losses: Losses, owners: PerGroup) -> tuple[float, float]:
    """Return n / (1 + (m - 1) ICC) of each group, with m the size of a random record's person, sum(m_j^2)/n.

    The intraclass correlation is that of the placements (the share of the other group above each record), since the
    variance of the AUC is the variance of their means (DeLong et al. 1988) and the mean of n records in clusters of
    m_j with correlation ICC has the variance s^2/n (1 + (sum(m_j^2)/n - 1) ICC) (Kish 1965).

    Args:
        losses: The records.
        owners: The person of each record, as whole numbers.

    >>> losses = Losses(member=[0.0, 0.0, 1.0, 1.0], nonmember=[0.5, 0.5])
    >>> effective_numbers(losses, PerGroup(np.array([0, 0, 1, 1]), np.array([2, 3])))
    (2.0, 2.0)
    """
    result = []
    sides = ((losses.member, losses.sorted_nonmember), (losses.nonmember, losses.sorted_member))
    for (values, other), owner in zip(sides, owners, strict=True):
        unit, sizes = np.unique(owner, return_inverse=True, return_counts=True)[1:]
        if sizes.size == values.size:
            result.append(float(values.size))
            continue
        below, upto = (
            np.searchsorted(other, values, side="left"),
            np.searchsorted(other, values, side="right"),
        )
        icc = _intraclass((below + upto) / (2 * other.size), unit, sizes)
        weighted = float(np.square(sizes, dtype=np.float64).sum()) / values.size
        result.append(values.size / (1 + (weighted - 1) * icc))
    return result[0], result[1]


def _intraclass(scores: Floats, unit: Integers, sizes: Integers) -> float:
    """The intraclass correlation by one-way analysis of variance, in [0, 1]; 1 where it cannot be told."""
    n, persons = scores.size, sizes.size
    if persons < _LEAST:
        return 1.0
    means = np.bincount(unit, weights=scores) / sizes
    between = float((sizes * np.square(means - scores.mean())).sum()) / (persons - 1)
    within = float(np.square(scores - means[unit]).sum()) / (n - persons)
    typical = (n - float(np.square(sizes, dtype=np.float64).sum()) / n) / (persons - 1)
    spread = between + (typical - 1) * within
    return min(1.0, max(0.0, (between - within) / spread)) if spread > 0 else 1.0
