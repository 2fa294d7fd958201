"""Does a record appear twice, or in both groups?"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.core.numbers import percent
from auditor.core.values import WORST_FIRST, Check, Floats, Losses, PerGroup, Status
from auditor.records.labels import codes

_SURELY = 0.01


def duplicates(losses: Losses) -> Check:
    """Fail when the groups overlap; warn of other duplicates; unknown without ids and fingerprints.

    An id in both groups fails. Equal content need not be an overlap: records with few or coarse features have natural
    twins, and a fresh record of the population may equal a training record. So the contents that occur in both groups
    are compared with how many a random split of all records would put there: more than that fails at the 1% level,
    whatever their share, and up to it warns. Copies within a group, beyond what a random split explains, warn too.

    >>> duplicates(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4], id=(["a", "b"], ["b", "c"]))).status
    <Status.FAIL: 'fail'>
    """
    answers = []
    if losses.id is not None:
        answers.append(_by_id(losses.id))
    if losses.fingerprint is not None:
        answers.append(_by_content(losses.fingerprint))
    if not answers:
        message = "Records carry neither ids nor features, so duplicates cannot be looked for."
        return Check("duplicates", Status.UNKNOWN, message)
    worst = min(answers, key=lambda answer: WORST_FIRST.index(answer.status)).status
    alike = " ".join(answer.message for answer in answers if answer.status is worst)
    details = {name: value for answer in answers for name, value in answer.details.items()}
    return Check("duplicates", worst, alike, details)


def _by_id(ids: PerGroup) -> Check:
    found = codes(ids)
    member, nonmember = (column[column >= 0] for column in (found.member, found.nonmember))
    counted = twins(PerGroup(member, nonmember))
    blank = found.member.size + found.nonmember.size - member.size - nonmember.size
    within = counted.repeats
    details = {
        "across": counted.shared,
        "within_members": within[0],
        "within_nonmembers": within[1],
        "without_id": blank,
    }
    if counted.shared:
        message = (
            f"{counted.shared:,} id(s) are both member and non-member: the groups overlap, so the comparison is not valid."
            " Remove those records from one group and audit again."
        )
        return Check("duplicates", Status.FAIL, message, details)
    if any(within):
        message = (
            f"{within[0]:,} member and {within[1]:,} non-member records repeat an id: records are not independent, so"
            " the intervals are too narrow. Keep one record for each id."
        )
        return Check("duplicates", Status.WARN, message, details)
    if blank:
        message = f"No id appears twice, but {blank:,} record(s) have no id and could not be compared."
        return Check("duplicates", Status.UNKNOWN, message, details)
    return Check("duplicates", Status.OK, "No id appears twice.", details)


def _by_content(fingerprint: PerGroup) -> Check:
    found = twins(fingerprint)
    details = {
        "contents_in_both": found.shared,
        "contents_in_both_expected": found.expected,
        "more_than_chance_p_value": found.p_more,
        "fewer_than_chance_p_value": found.p_fewer,
        "nonmembers_with_twin": found.nonmembers_with_twin,
        "nonmembers_with_twin_share": found.nonmembers_with_twin / fingerprint.nonmember.size,
        "repeated_content_members": found.repeats[0],
        "repeated_content_nonmembers": found.repeats[1],
    }
    share = percent(found.nonmembers_with_twin / fingerprint.nonmember.size)
    seen = (
        f"{found.nonmembers_with_twin:,} non-member records ({share}) have an exact twin among the members (equal in"
        f" every feature; {found.shared:,} different contents, where chance gives about {found.expected:,.1f})"
    )
    repeats = f"{found.repeats[0]:,} member and {found.repeats[1]:,} non-member records repeat"
    if found.shared and found.p_more < _SURELY:
        return Check("duplicates", Status.FAIL, f"{seen}, {_OVERLAP}", details)
    words = [f"{seen}, {_NATURAL}"] if found.shared else []
    if found.p_fewer < _SURELY:
        words.append(f"{repeats} the features of another of their group, {_COPIES}")
        return Check("duplicates", Status.WARN, " ".join(words), details)
    if words:
        return Check("duplicates", Status.OK, words[0], details)
    if not any(found.repeats):
        return Check("duplicates", Status.OK, "No two records have the same features.", details)
    few = f"{repeats} those of another of their group, no more than chance explains."
    return Check("duplicates", Status.OK, f"No record is in both groups by its features; {few}", details)


_OVERLAP = (
    "more than a random split of these records explains: the groups overlap, so the comparison is not valid. Remove"
    " those records and their twins from both groups and audit again."
)
_COPIES = (
    "far more often than such twins are in different groups: they look like copies, which are not independent, so the"
    " intervals are too narrow. Keep one of each."
)
_NATURAL = (
    "no more than a random split of records with natural twins gives: they are not truly unseen, so the leak of the others"
    " may be larger than measured. To leave them out, remove their twins among the members too."
)


# --- Labels that occur several times: within the groups, in both, and how many in both a random split would give ---
#
# With c records of a content among N = n1 + n0, a random split puts it in both groups with probability
# q_c = 1 - [n1]_c/[N]_c - [n0]_c/[N]_c, where [n]_c = n (n-1) ... (n-c+1). The number of contents in both groups is
# taken for a sum of independent coins with these probabilities: exactly so if each record had its own coin, and if
# anything wider than under a split of fixed sizes [own].


@dataclass(frozen=True)
class _Twins:
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


def twins(labels: PerGroup) -> _Twins:
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
    return _Twins(
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
        return min(1.0, float(self.law[max(0, shared - self.first) :].sum()))

    def p_fewer(self, shared: int) -> float:
        """The probability of as many or fewer."""
        return min(1.0, float(self.law[: max(0, shared - self.first + 1)].sum()))


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
    from scipy.special import logit

    from auditor.estimators.limits import poisson_binomial

    kinds, numbers = np.unique(sizes[sizes > 1], return_counts=True)
    # The probability that a random split puts a label with so many records in both groups.
    alone = [np.exp(_log_falling(n, kinds) - _log_falling(n1 + n0, kinds)) for n in (n1, n0)]
    chances = np.clip(1 - alone[0] - alone[1], 0.0, 1.0)
    first, law = poisson_binomial(logit(chances), numbers)
    return ByChance(float(np.einsum("i,i->", numbers, chances)), first, law)


def _log_falling(n: int, counts: npt.NDArray[np.int64]) -> Floats:
    """Log of n (n-1) ... (n-c+1); minus infinity where c > n."""
    from scipy import special

    result = special.gammaln(n + 1) - special.gammaln(np.maximum(n - counts, 0) + 1)
    return np.where(counts > n, -np.inf, result)


# --- Runs that are counted twice, in an audit of many runs ---


_FEW_VALUES = 20  # of a score, such as a decision, which repeats itself by nature
_FEW = 3  # values that may repeat themselves
_SHARE = 0.01  # or as a part of all
_ERRORS = 5.0  # standard errors
_ALIKE = 1e-9  # of the spread of the scores: a rounding error, and no step


def repeats(losses: Losses) -> Check:
    """Fail when runs repeat each other: a run that is counted twice is one run.

    A training that ignores its seed separates the worlds perfectly.

    Args:
        losses: The scores of runs with the canary and of runs without it.
    """
    worlds = losses.sorted_member, losses.sorted_nonmember
    constant = [bool(values[0] == values[-1]) for values in worlds]
    distinct, repeated, beside = (sum(item) for item in zip(*map(_repeated, worlds), strict=True))
    details = {
        "constant_with": constant[0],
        "constant_without": constant[1],
        "distinct": distinct,
        "repeated": repeated,
    }
    if all(constant) and not all_equal(losses):
        message = (
            "Every run of a world gave the same score: check that the training draws its randomness from the seed of the"
            " run; repeated runs count as one, and no bound here holds for them. If it has no randomness, it is not"
            " differentially private, and no audit is needed to say so."
        )
        return Check("repeats", Status.FAIL, message, details)
    if distinct > _FEW_VALUES and repeated - beside > repetitions_allowed(distinct, variance=beside):
        message = (
            f"{repeated:,} of {distinct:,} different scores occur more than once in the same world: check that every run has"
            " a seed of its own and is listed once, because no bound here holds for runs that are counted twice; if the"
            " score moves in steps, return it in whole steps, such as a count or a rank."
        )
        return Check("repeats", Status.FAIL, message, details)
    return Check("repeats", Status.OK, "Scores do not repeat more often than chance allows.", details)


def repetitions_allowed(scores: int, *, variance: float) -> float:
    """Return how many repetitions beyond those expected are no sign of runs that were counted twice."""
    return float(max(_FEW, _SHARE * scores) + _ERRORS * variance**0.5)


def _repeated(values: Floats) -> tuple[int, int, int]:
    """How many different scores there are, how many occur more than once, and how many might by chance.

    Scores that move in steps, as rounded ones and counts do, repeat themselves by chance. Then they also fall on
    neighbouring steps, and whatever the law, if it is smooth, at least as often: (1 - e^-k)^2 >= 1 - (1 + k) e^-k, where
    k runs are expected on a step. Runs that were made twice have equal scores without such neighbours.
    """
    scores, counts = np.unique(values, return_counts=True)
    if scores.size == 1:
        return 1, int(counts[0] > 1), 1
    gaps = np.diff(scores)
    # Of the bulk, so that one score of a training that diverged decides nothing.
    alike = _ALIKE * float(scores[int(0.9 * scores.size)] - scores[int(0.1 * scores.size)])
    even = gaps[gaps > alike]
    beside = [int((gaps < even.min() + alike).sum())]
    for kind in (np.float16, np.float32):  # whose steps grow with the number
        with np.errstate(over="ignore"):
            short = scores.astype(kind)
        if np.array_equal(short.astype(np.float64), scores):
            beside.append(int((np.nextafter(short, kind(np.inf))[:-1] == short[1:]).sum()))
    return int(scores.size), int((counts > 1).sum()), max(beside)


def all_equal(losses: Losses) -> bool:
    """Return whether all losses of both groups are one number."""
    first, second = losses.sorted_member, losses.sorted_nonmember
    return bool(first[0] == first[-1] == second[0] == second[-1])
