"""Which records make a slice: the groups, and the bands of loss percentiles; numbers of records decide, losses never."""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from auditor import _validate
from auditor._format import percent
from auditor._labels import codes
from auditor.errors import InputError
from auditor.values import Floats, Losses, PerGroup

__all__ = ["Part", "SliceKind", "bands", "groups", "shares"]

_SHOWN = 20


class SliceKind(StrEnum):
    """What the records of a slice share."""

    CLASS = "class"
    GROUP = "group"
    PERCENTILE = "percentile"


@dataclass(frozen=True, eq=False)
class Part:
    """A slice before it is looked at: with the ``reason`` if it is not compared, and with ``losses`` if it is a group."""

    kind: SliceKind
    label: str
    n_member: int
    n_nonmember: int
    losses: Losses | None = None
    reason: str = ""


def shares(given: Sequence[float]) -> tuple[float, ...]:
    """Return percentiles as shares, checked.

    >>> shares([5, 50])
    (0.05, 0.5)
    """
    values = [_validate.number("percentiles", item) for item in given]
    steps = np.diff([0.0, *values, 100.0])
    if not (steps > 0).all():
        raise InputError(
            f"percentiles must rise from above 0 to below 100, got {values[:_SHOWN]}; sort them and leave out repeats."
        )
    return tuple(value / 100 for value in values)


def groups(losses: Losses, least: int, most: int) -> Iterator[Part]:
    """Return the classes and the groups, each as `_labelled` has them; groups that are the classes are not said twice."""
    classes, others = losses.label, losses.group
    if classes is not None and (others is None or not _same(classes, others)):
        yield from _labelled(losses, classes, SliceKind.CLASS, least, most)
    if others is not None:
        yield from _labelled(losses, others, SliceKind.GROUP, least, most)


def _same(one: PerGroup, other: PerGroup) -> bool:
    first, second = codes(one), codes(other)
    return np.array_equal(first.member, second.member) and np.array_equal(first.nonmember, second.nonmember)


_NOUNS = {SliceKind.CLASS: ("class", "classes"), SliceKind.GROUP: ("group", "groups")}


def _labelled(losses: Losses, labels: PerGroup, kind: SliceKind, least: int, most: int) -> Iterator[Part]:
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
        yield Part(kind, str(names[code]), part.n_member, part.n_nonmember, losses=part)
    rest, small = order[most:enough] + 1, order[enough:] + 1
    reason = f"only the {most} largest of {size} {several} are compared (by the smaller of the numbers of members and non-members)"
    few = f"fewer than {least} members or fewer than {least} non-members"
    for some, words, why in ((rest, "smaller {}", reason), (small, "{} too small to audit", few)):
        if some.size:
            label = f"({some.size} {words.format(one if some.size == 1 else several)})"
            yield Part(kind, label, int(n1[some].sum()), int(n0[some].sum()), reason=why)
    if n1[0] or n0[0]:
        reason = f"these records carry no {one} label"
        yield Part(kind, "(no label)", int(n1[0]), int(n0[0]), reason=reason)


def bands(losses: Losses, least: int, ends: tuple[float, ...]) -> Iterator[Part]:
    """Return the bands between quantiles of all losses; ties stay together, and the labels say what share that makes."""
    n1, n0 = losses.n_member, losses.n_nonmember
    size = n1 + n0
    ranks = np.minimum(np.ceil(np.asarray(ends) * size).astype(np.int64), size) - 1
    edges: Floats = np.unique([_ranked(losses, rank) for rank in ranks.tolist()])
    upto1 = np.append(np.searchsorted(losses.sorted_member, edges, side="right"), n1)
    upto0 = np.append(np.searchsorted(losses.sorted_nonmember, edges, side="right"), n0)
    total = upto1 + upto0
    keep = np.diff(total, prepend=0) > 0
    upto1, upto0, total = upto1[keep], upto0[keep], total[keep]
    if total.size == 1:
        reason = "there is only one band: the losses are equal, or no percentiles were given"
        yield Part(SliceKind.PERCENTILE, "all records", n1, n0, reason=reason)
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
        yield Part(SliceKind.PERCENTILE, _label(start, end, size), k1, k0, reason=few)


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
