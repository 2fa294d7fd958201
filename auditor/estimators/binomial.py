"""Exact one-sided limits of a binomial proportion (Clopper and Pearson 1934), vectorised.

U(k; n, a) = BetaInv(1 - a; k + 1, n - k), 1 at k = n
L(k; n, a) = BetaInv(a; k, n - k + 1),     0 at k = 0
"""

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.values import Floats

__all__ = ["lower_limit", "upper_limit"]


def upper_limit(successes: npt.ArrayLike, trials: npt.ArrayLike, alpha: float) -> Floats:
    """Return the level 1 - alpha upper limit of the proportion.

    The complementary inverse keeps its precision for alpha far below 1e-8.

    >>> float(upper_limit(0, 1000, 0.05).round(8))
    0.00299125
    """
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        inner = special.betainccinv(k + 1, np.maximum(n - k, 1), alpha)
    return np.where(k >= n, 1.0, inner)


def lower_limit(successes: npt.ArrayLike, trials: npt.ArrayLike, alpha: float) -> Floats:
    """Return the level 1 - alpha lower limit of the proportion.

    >>> float(lower_limit(950, 1000, 0.025).round(8))
    0.93460951
    """
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        inner = special.betaincinv(np.maximum(k, 1), n - k + 1, alpha)
    return np.where(k <= 0, 0.0, inner)
