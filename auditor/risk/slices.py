"""Who is at risk: the audit repeated by group and by loss percentile, with one error probability for all slices.

Every quantity (the certified bound, the AUC, the advantage, the members' share of a percentile band) holds for all
slices at once with the stated confidence: each of m slices gets the error alpha/m (Bonferroni). Which slices are
compared depends on numbers of records and never on losses, so what is left out spends nothing. Holm's procedure would
need less for the tests, but it gives no interval for the hypotheses that it rejects.

Members always count as draws here, also where every training record was scored. Limits that take the members of a slice
for all there are would be positive in some slice by chance alone, the more so the smaller it is, and who is at risk is
asked about records like these.
"""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.numbers import percent
from auditor.core.values import Estimate, Floats, Losses, PerGroup, Subject
from auditor.curves.tradeoff import count
from auditor.estimators.certified import clopper_pearson
from auditor.estimators.limits import lower_limit, upper_limit
from auditor.estimators.rates import advantage, auc
from auditor.records.labels import codes
from auditor.results.document import Slice, SliceKind

_PERCENTILES = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0)
_BOUND, _SHARE = "epsilon_bound.clopper_pearson", "member_share"
_SMALLEST = 1e-12  # the least error that a confidence may leave; see auditor.core.validate
_SHOWN = 20
_NOUNS = {SliceKind.CLASS: ("class", "classes"), SliceKind.GROUP: ("group", "groups")}


@dataclass(frozen=True, eq=False)
class _Part:
    """A slice before it is looked at: with the ``reason`` if it is not compared, and with ``losses`` if it is a group."""

    kind: SliceKind
    label: str
    n_member: int
    n_nonmember: int
    losses: Losses | None = None
    reason: str = ""


def slices_of(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    min_records: int = 10,
    most: int = 50,
    percentiles: Sequence[float] = _PERCENTILES,
) -> tuple[Slice, ...]:
    """Return what can be said of each group and of each band of loss percentiles, all of it at once.

    A group is audited like the whole. Within a band that is cut out by the loss itself separation means nothing: there
    the members' share is given beside their share of all records, which is how often an attacker is right who calls
    such records members. Bands are cut at quantiles of all losses together, so they do not depend on who is a member:
    given the losses, the members in a band are a sum of independent coins, or of coins tied only by their total, and
    such a sum is less spread than a binomial of the same mean (Hoeffding 1956), which Clopper-Pearson limits cover.

    Args:
        losses: With ``label`` for slices by class and ``group`` for slices by group.
        delta: In [0, 1), of the certified bounds.
        confidence: Of each quantity, for all slices at once, in (0, 1).
        min_records: Fewest members, and fewest non-members, of a group that is compared; fewest records of a band. All
            smaller groups make one slice without their labels, since the counts of a group of one would tell which side
            its record was on.
        most: With more groups than this those with most records of both kinds are compared; one slice stands for the
            rest of those that are not too small.
        percentiles: Where bands end, ascending, in (0, 100).

    Raises:
        InputError: An argument out of range.

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(
    ...     member=np.concatenate([rng.normal(-3, 1, 500), rng.normal(0, 1, 500)]),
    ...     nonmember=rng.normal(0, 1, 1000),
    ...     group=(np.repeat(["cat", "dog"], 500), np.repeat(["cat", "dog"], 500)),
    ... )
    >>> cat, dog = slices_of(losses, delta=1e-5)[:2]
    >>> cat.estimate("epsilon_bound.clopper_pearson").value > 1, dog.estimate("epsilon_bound.clopper_pearson").value
    (True, 0.0)
    """
    validate.instance("losses", losses, (Losses,))
    delta = validate.fraction("delta", delta, zero=True)
    confidence = validate.confidence(confidence)
    alpha = 1 - confidence
    least = validate.at_least("min_records", min_records, least=2)
    most = validate.at_least("most", most, least=1)
    parts = [*_groups(losses, least, most), *bands(losses, least, shares(percentiles))]
    if alpha / len(parts) < _SMALLEST:
        reason = "the confidence is too high to be shared among slices"
        parts = [replace(part, losses=None, reason=reason) for part in parts]
    parts = _certifiable(parts, delta, alpha)
    compared = sum(not part.reason for part in parts)
    level = alpha / max(1, compared)
    return tuple(
        Slice(
            kind=part.kind,
            label=part.label,
            n_member=part.n_member,
            n_nonmember=part.n_nonmember,
            confidence=confidence,
            compared=compared,
            estimates=_estimates(part, losses, delta, level),
        )
        for part in parts
    )


def _certifiable(parts: list[_Part], delta: float, alpha: float) -> list[_Part]:
    """Leave out, smallest first, the groups in which not even a perfect attack would be certified."""
    while True:
        level = alpha / max(1, sum(not part.reason for part in parts))
        lost = [part for part in parts if part.losses is not None and _ceiling(part, delta, level) <= 0]
        if not lost:
            return parts
        smallest = min(lost, key=lambda part: min(part.n_member, part.n_nonmember))
        reason = "too few records: not even a perfect attack would be certified beside the other slices"
        parts = [replace(part, losses=None, reason=reason) if part is smallest else part for part in parts]


def _ceiling(part: _Part, delta: float, level: float) -> float:
    apart = Losses(member=np.zeros(part.n_member), nonmember=np.ones(part.n_nonmember))
    found = clopper_pearson(apart, delta=delta, confidence=1 - level)
    return float(found.details["ceiling"])


def _estimates(part: _Part, losses: Losses, delta: float, level: float) -> tuple[Estimate, ...]:
    if part.kind is SliceKind.PERCENTILE:
        return (_none(_SHARE, part.reason) if part.reason else _share(part, losses, level),)
    if part.losses is None:
        return (_none(_BOUND, part.reason, delta), _none("auc", part.reason), _none("advantage", part.reason))
    counts, confidence = count(part.losses), 1 - level
    return (
        clopper_pearson(part.losses, delta=delta, confidence=confidence),
        auc(counts, confidence=confidence),
        advantage(counts, confidence=confidence),
    )


def _share(part: _Part, losses: Losses, level: float) -> Estimate:
    k, n = part.n_member, part.n_member + part.n_nonmember
    overall = losses.n_member / (losses.n_member + losses.n_nonmember)
    value, low, high = k / n, float(lower_limit(k, n, level / 2)), float(upper_limit(k, n, level / 2))
    return Estimate(
        name=_SHARE,
        value=value,
        lower=low,
        upper=high,
        confidence=1 - level,
        method="Clopper-Pearson limits of the members' share of the records in this band",
        subject=Subject.MODEL,
        assumptions=("records are independent", "membership labels are right"),
        details={
            "overall_share": overall,
            "lift": value / overall,
            "lift_lower": low / overall,
            "lift_upper": high / overall,
        },
    )


def _none(name: str, reason: str, delta: float | None = None) -> Estimate:
    return Estimate(
        name=name,
        value=None,
        lower=None,
        upper=None,
        confidence=None,
        method="not computed for this slice",
        subject=Subject.MODEL,
        delta=delta,
        details={"reason": reason},
    )


# --- Which records make a slice: the groups, and the bands of loss percentiles; numbers of records decide, losses never ---


def shares(given: Sequence[float]) -> tuple[float, ...]:
    """Return percentiles as shares, checked.

    >>> shares([5, 50])
    (0.05, 0.5)
    """
    values = [validate.number("percentiles", item) for item in given]
    steps = np.diff([0.0, *values, 100.0])
    if not (steps > 0).all():
        raise InputError(
            f"percentiles must rise from above 0 to below 100, got {values[:_SHOWN]}; sort them and leave out repeats."
        )
    return tuple(value / 100 for value in values)


def bands(losses: Losses, least: int, quantiles: tuple[float, ...]) -> Iterator[_Part]:
    """Return the bands between quantiles of all losses; ties stay together, and the labels say what share that makes."""
    n1, n0 = losses.n_member, losses.n_nonmember
    size = n1 + n0
    ranks = np.minimum(np.ceil(np.asarray(quantiles) * size).astype(np.int64), size) - 1
    edges: Floats = np.unique([_ranked(losses, rank) for rank in ranks.tolist()])
    upto1 = np.append(np.searchsorted(losses.sorted_member, edges, side="right"), n1)
    upto0 = np.append(np.searchsorted(losses.sorted_nonmember, edges, side="right"), n0)
    total = upto1 + upto0
    keep = np.diff(total, prepend=0) > 0
    upto1, upto0, total = upto1[keep], upto0[keep], total[keep]
    if total.size == 1:
        reason = "there is only one band: the losses are equal, or no percentiles were given"
        yield _Part(SliceKind.PERCENTILE, "all records", n1, n0, reason=reason)
        return
    starts = np.concatenate([[0], total[:-1]])
    for start, end, k1, k0 in zip(
        starts.tolist(),
        total.tolist(),
        np.diff(upto1, prepend=0).tolist(),
        np.diff(upto0, prepend=0).tolist(),
        strict=True,
    ):
        few = f"fewer than {least} records" if k1 + k0 < least else ""
        yield _Part(SliceKind.PERCENTILE, _label(start, end, size), k1, k0, reason=few)


def _ranked(losses: Losses, rank: int) -> float:
    """The loss of this rank, from 0, among all records: by bisection in each sorted group, without sorting both together."""
    groups = losses.sorted_member, losses.sorted_nonmember

    def upto(value: float) -> int:
        return sum(int(np.searchsorted(group, value, side="right")) for group in groups)

    # The first loss of each group up to which there are enough records; the smaller of the two is the one.
    first = [bisect.bisect_left(group, rank + 1, key=lambda value: upto(float(value))) for group in groups]
    return min(float(group[at]) for group, at in zip(groups, first, strict=True) if at < group.size)


def _label(start: int, end: int, size: int) -> str:
    if start == 0:
        return f"lowest {percent(end / size)} of losses"
    if end == size:
        return f"highest {percent((size - start) / size)} of losses"
    return f"losses from {percent(start / size)} to {percent(end / size)}"


def _groups(losses: Losses, least: int, most: int) -> Iterator[_Part]:
    """Return the classes and the groups, each as `_labelled` has them; groups that are the classes are not said twice."""
    classes, others = losses.label, losses.group
    if classes is not None and (others is None or not _same(classes, others)):
        yield from _labelled(losses, classes, SliceKind.CLASS, least, most)
    if others is not None:
        yield from _labelled(losses, others, SliceKind.GROUP, least, most)


def _same(one: PerGroup, other: PerGroup) -> bool:
    first, second = codes(one), codes(other)
    return np.array_equal(first.member, second.member) and np.array_equal(first.nonmember, second.nonmember)


def _labelled(losses: Losses, labels: PerGroup, kind: SliceKind, least: int, most: int) -> Iterator[_Part]:
    """Return the groups, the one that can be seen best first; then what stands for all others, and for no group.

    A group with fewer than ``least`` members or non-members is not named: its counts could tell which side a record of
    its own was on. All such groups make one part together.
    """
    found = codes(labels)
    one, several = _NOUNS[kind]
    size = found.labels.size
    n1, n0 = (np.bincount(column + 1, minlength=size + 1) for column in (found.member, found.nonmember))
    names = found.names
    order = np.lexsort((-(n1 + n0)[1:], -np.minimum(n1, n0)[1:]))
    enough = int((np.minimum(n1, n0)[1:] >= least).sum())
    for code in order[: min(most, enough)].tolist():
        part = Losses(
            member=losses.member[found.member == code],
            nonmember=losses.nonmember[found.nonmember == code],
        )
        yield _Part(kind, str(names[code]), part.n_member, part.n_nonmember, losses=part)
    rest, small = order[most:enough] + 1, order[enough:] + 1
    reason = f"only the {most} largest of {size} {several} are compared (by the smaller of the numbers of members and non-members)"
    few = f"fewer than {least} members or fewer than {least} non-members"
    for some, words, why in ((rest, "smaller {}", reason), (small, "{} too small to audit", few)):
        if some.size:
            label = f"({some.size} {words.format(one if some.size == 1 else several)})"
            yield _Part(kind, label, int(n1[some].sum()), int(n0[some].sum()), reason=why)
    if n1[0] or n0[0]:
        reason = f"these records carry no {one} label"
        yield _Part(kind, "(no label)", int(n1[0]), int(n0[0]), reason=reason)
