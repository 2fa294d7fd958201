"""Labels that occur several times: within the groups, in both, and how many in both a random split would give.

With c records of a content among N = n1 + n0, a random split puts it in both groups with probability
q_c = 1 - [n1]_c/[N]_c - [n0]_c/[N]_c, where [n]_c = n (n-1) ... (n-c+1). The number of contents in both groups is
taken for a sum of independent coins with these probabilities: exactly so if each record had its own coin, and if
anything wider than under a split of fixed sizes [own].
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.values import Floats, PerGroup

__all__ = ["ByChance", "Twins", "by_chance", "twins"]

_FAR = 12.0  # standard deviations beyond which a binomial has no mass that matters
_SPARE = 40


@dataclass(frozen=True)
class Twins:
    """Counts of labels and of the records that carry them.

    Attributes:
        shared: Labels that occur in both groups.
        expected: How many of them a random split gives on average.
        p_more: Probability that a random split gives as many or more.
        p_fewer: Probability that a random split gives as many or fewer.
        nonmembers_with_twin: Non-member records whose label occurs among the members.
        repeats: Records beyond the first of each label, in each group.
    """

    shared: int
    expected: float
    p_more: float
    p_fewer: float
    nonmembers_with_twin: int
    repeats: tuple[int, int]


def twins(labels: PerGroup) -> Twins:
    """Count the labels that several records carry.

    >>> found = twins(PerGroup(np.array([1, 1, 2, 3]), np.array([2, 4])))
    >>> found.shared, found.repeats
    (1, (1, 0))
    """
    n1, n0 = labels.member.size, labels.nonmember.size
    unit, size = np.unique(np.concatenate(labels), return_inverse=True, return_counts=True)[1:]
    member = np.bincount(unit[:n1], minlength=size.size)
    nonmember = size - member
    both = (member > 0) & (nonmember > 0)
    law = by_chance(size, n1=n1, n0=n0)
    shared = int(both.sum())
    return Twins(
        shared=shared,
        expected=law.expected,
        p_more=law.p_more(shared),
        p_fewer=law.p_fewer(shared),
        nonmembers_with_twin=int(nonmember[both].sum()),
        repeats=(n1 - int((member > 0).sum()), n0 - int((nonmember > 0).sum())),
    )


@dataclass(frozen=True, eq=False)
class ByChance:
    """How many labels a random split puts in both groups.

    Attributes:
        expected: On average.
        first: The smallest number that the law begins at.
        law: The probabilities of this number and of those that follow.
    """

    expected: float
    first: int
    law: Floats

    def p_more(self, shared: int) -> float:
        """The probability of as many or more."""
        return _mass(self.law[max(0, shared - self.first) :])

    def p_fewer(self, shared: int) -> float:
        """The probability of as many or fewer."""
        return _mass(self.law[: max(0, shared - self.first + 1)])


def by_chance(sizes: npt.NDArray[np.int64], *, n1: int, n0: int) -> ByChance:
    """Return what a random split gives.

    Args:
        sizes: How many records carry each label, in both groups together; labels of one record may be left out.
        n1: Records in one group.
        n0: In the other.

    >>> law = by_chance(np.array([2]), n1=2, n0=2)
    >>> round(law.expected, 12), round(law.p_more(1), 12)
    (0.666666666667, 0.666666666667)
    """
    kinds, numbers = np.unique(sizes[sizes > 1], return_counts=True)
    chances = _in_both(kinds, n1, n0)
    first, law = _sum_of_coins(numbers, chances)
    return ByChance(float(np.einsum("i,i->", numbers, chances)), first, law)


def _in_both(sizes: npt.NDArray[np.int64], n1: int, n0: int) -> Floats:
    """The probability that a random split puts a label with so many records in both groups."""
    alone = [np.exp(_log_falling(n, sizes) - _log_falling(n1 + n0, sizes)) for n in (n1, n0)]
    return np.asarray(np.clip(1 - alone[0] - alone[1], 0.0, 1.0))


def _log_falling(n: int, counts: npt.NDArray[np.int64]) -> Floats:
    """Log of n (n-1) ... (n-c+1); minus infinity where c > n."""
    result = special.gammaln(n + 1) - special.gammaln(np.maximum(n - counts, 0) + 1)
    return np.where(counts > n, -np.inf, result)


def _sum_of_coins(numbers: npt.NDArray[np.int64], chances: Floats) -> tuple[int, Floats]:
    """The law of the number of heads, and the smallest number it begins at; far tails of no mass are left out."""
    first, law = 0, np.ones(1)
    for n, p in zip(numbers.tolist(), chances.tolist(), strict=True):
        reach = _FAR * np.sqrt(n * p * (1 - p)) + _SPARE
        low, high = max(0, int(n * p - reach)), min(n, int(n * p + reach) + 1)
        law = np.convolve(law, _binomial(np.arange(low, high + 1), n, p))
        first += low
    return first, law


def _binomial(k: npt.NDArray[np.int64], n: int, p: float) -> Floats:
    logs = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(logs + special.xlogy(k, p) + special.xlog1py(n - k, -p)))


def _mass(law: Floats) -> float:
    return min(1.0, float(law.sum()))
