"""Exact one-sided limits of a count in a finite set, from a sample drawn without repetition, vectorised.

With H the number of marked records among the drawn ones and M the number marked in all:

L(x) = min{M: P[H >= x] > a},  U(x) = max{M: P[H <= x] > a}
"""

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]

__all__ = ["lower_count", "upper_count"]


def lower_count(found: npt.ArrayLike, *, drawn: int, population: int, alpha: float) -> Counts:
    """Return the level 1 - alpha lower limit of the number of marked records in the whole set.

    Args:
        found: Marked records among the drawn ones, any shape.
        drawn: Records drawn at random without repetition.
        population: Records in the whole set, ``drawn`` or more.
        alpha: Probability that the limit is too high, in (0, 1).

    >>> lower_count([0, 95, 100], drawn=100, population=200, alpha=0.05).tolist()
    [0, 183, 196]
    """
    from scipy import stats

    x = np.asarray(found, dtype=np.int64)
    # P[H >= x] rises with the number marked: 0 below x, 1 where every record not drawn is marked too.
    below, enough = x - 1, x + (population - drawn)
    while np.any(enough - below > 1):
        middle = (below + enough) // 2
        possible = stats.hypergeom.sf(x - 1, population, np.maximum(middle, 0), drawn) > alpha
        below, enough = np.where(possible, below, middle), np.where(possible, middle, enough)
    return np.asarray(np.where(x <= 0, 0, enough), dtype=np.int64)


def upper_count(found: npt.ArrayLike, *, drawn: int, population: int, alpha: float) -> Counts:
    """Return the level 1 - alpha upper limit of the number of marked records in the whole set.

    The same holds for the records above the (x + 1)-th largest of the drawn ones: r or more of them lie above it if
    and only if at most x of the r largest were drawn [own].

    >>> upper_count([0, 5, 100], drawn=100, population=200, alpha=0.05).tolist()
    [4, 17, 200]
    """
    unmarked = drawn - np.asarray(found, dtype=np.int64)
    return np.asarray(population - lower_count(unmarked, drawn=drawn, population=population, alpha=alpha))
