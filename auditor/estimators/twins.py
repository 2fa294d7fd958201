"""Labels that occur several times: within the groups, in both, and the number in both expected from a random split."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from auditor.core.values import Floats, Integers, Losses, PerGroup
from auditor.records.labels import PersonsFound, codes, row_units

SURELY = 0.01

# With c records of a content among N = n1 + n0, a random split puts it in both groups with probability
# q_c = 1 - [n1]_c/[N]_c - [n0]_c/[N]_c, where [n]_c = n (n-1) ... (n-c+1). The number of contents in both groups is
# taken for a sum of independent coins with these probabilities: exactly so if each record had its own coin, and if
# anything wider than under a split of fixed sizes [own].


@dataclass(frozen=True)
class Twins:
    """Counts of labels and of the records that carry them.

    Attributes:
        shared: Labels that occur in both groups.
        expected: Average number of them in a random split.
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

    >>> result = twins(PerGroup(np.array([1, 1, 2, 3]), np.array([2, 4])))
    >>> result.shared, result.repeats
    (1, (1, 0))
    """
    n1, n0 = labels.member.size, labels.nonmember.size
    (members, several1), (nonmembers, several0) = (np.unique(side, return_counts=True) for side in labels)
    _, at1, at0 = np.intersect1d(members, nonmembers, assume_unique=True, return_indices=True)
    both = several1[at1], several0[at0]
    law = by_chance(
        np.concatenate([np.delete(several1, at1), np.delete(several0, at0), sum(both)]), n1=n1, n0=n0
    )
    return Twins(
        shared=at1.size,
        expected=law.expected,
        p_more=law.p_more(at1.size),
        p_fewer=law.p_fewer(at1.size),
        nonmembers_with_twin=int(both[1].sum()),
        repeats=(n1 - members.size, n0 - nonmembers.size),
    )


@dataclass(frozen=True, eq=False)
class ByChance:
    """Number of labels that a random split puts in both groups.

    Attributes:
        expected: On average.
        first: The smallest number that the law begins at.
        law: The probabilities of this number and of those that follow.
    """

    expected: float
    first: int
    law: Floats

    def p_more(self, shared: int) -> float:
        """Return the probability of as many or more."""
        return min(1.0, float(self.law[max(0, shared - self.first) :].sum()))

    def p_fewer(self, shared: int) -> float:
        """Return the probability of as many or fewer."""
        return min(1.0, float(self.law[: max(0, shared - self.first + 1)].sum()))


def by_chance(sizes: Integers, *, n1: int, n0: int) -> ByChance:
    """Return the expectation under a random split.

    Args:
        sizes: Number of records with each label, in both groups together; labels of one record may be left out.
        n1: Records in one group.
        n0: In the other.

    >>> law = by_chance(np.array([2]), n1=2, n0=2)
    >>> round(law.expected, 12), round(law.p_more(1), 12)
    (0.666666666667, 0.666666666667)
    """
    from scipy.special import logit

    from auditor.estimators.limits import poisson_binomial

    kinds, numbers = np.unique(sizes[sizes > 1], return_counts=True)
    # The probability that a random split puts a label with so many records in both groups.
    alone = [np.exp(_log_falling(n, kinds) - _log_falling(n1 + n0, kinds)) for n in (n1, n0)]
    chances = np.clip(1 - alone[0] - alone[1], 0.0, 1.0)
    first, law = poisson_binomial(logit(chances), numbers)
    return ByChance(float(np.einsum("i,i->", numbers, chances)), first, law)


def _log_falling(n: int, counts: Integers) -> Floats:
    """Return the log of n (n-1) ... (n-c+1); minus infinity where c > n."""
    from scipy import special

    result = special.gammaln(n + 1) - special.gammaln(np.maximum(n - counts, 0) + 1)
    return np.where(counts > n, -np.inf, result)


def distinct_contents(losses: Losses, units: PersonsFound) -> PerGroup:
    """Return the content of each record, without those that the same unit has several times.

    Args:
        losses: The rows, with fingerprints.
        units: Units of the audit.
    """
    content, owners = codes(cast("PerGroup", losses.fingerprint)), row_units(losses, persons=units.combined)
    pairs = zip(owners, (content.member, content.nonmember), strict=True)
    return PerGroup(*(np.unique(np.column_stack(pair), axis=0)[:, 1] for pair in pairs))


def copied(losses: Losses, units: PersonsFound) -> bool:
    """Return whether contents repeat within the groups far more often than in both: they look like copies."""
    return losses.fingerprint is not None and twins(distinct_contents(losses, units)).p_fewer < SURELY
