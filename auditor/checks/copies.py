"""Checks for records that appear twice, or in both groups."""

from dataclasses import replace

import numpy as np

from auditor.checks.answers import answer, said
from auditor.core.numbers import LEAST_SHOWN, about, percent, sentence
from auditor.core.options import EachRecord, Rows
from auditor.core.values import WORST_FIRST, Check, Floats, Losses, PerGroup, Status
from auditor.estimators.twins import SURELY, distinct_contents, twins
from auditor.records.labels import PersonsFound, codes, per_person

_LEVEL = 1e-3


def duplicates(losses: Losses, *, units: PersonsFound | None = None) -> Check:
    """Fail when the groups overlap or hold copies; warn of other duplicates; unknown without ids and fingerprints.

    An id in both groups fails. Rows that share an id within a group are one record; the check fails where they could not be
    combined, and where combined scores differ without any leak because ids have more rows in one group. Equal content need
    not be an overlap: records with few or coarse features have natural twins, and a fresh record of the population may equal
    a training record. So the contents that occur in both groups are compared with how many a random split of all records
    would put there: more than that fails at the 1% level, whatever their share. Copies within a group, beyond what a random
    split explains, fail too.

    Args:
        losses: The rows.
        units: Units of the audit; by default each id.

    >>> duplicates(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4], id=(["a", "b"], ["b", "c"]))).status
    <Status.FAIL: 'fail'>
    """
    answers, counted = [], per_person(losses, choice=EachRecord()) if units is None else units
    if losses.id is not None:
        answers.append(_by_id(losses.id, counted))
    if losses.fingerprint is not None:
        answers.append(_by_content(distinct_contents(losses, counted)))
    if not answers:
        return answer("duplicates", "unknown/nothing to compare")
    worst = min(answers, key=lambda answer: WORST_FIRST.index(answer.status)).status
    alike = " ".join(answer.message for answer in answers if answer.status is worst)
    details = {name: value for answer in answers for name, value in answer.details.items()}
    return Check("duplicates", worst, alike, details)


def _by_id(ids: PerGroup, units: PersonsFound) -> Check:
    columns = codes(ids)
    member, nonmember = (column[column >= 0] for column in (columns.member, columns.nonmember))
    counted = twins(PerGroup(member, nonmember))
    blank = columns.member.size + columns.nonmember.size - member.size - nonmember.size
    within = counted.repeats
    details: dict[str, object] = {
        "across": counted.shared,
        "within_members": within[0],
        "within_nonmembers": within[1],
        "without_id": blank,
    }
    if units.by_id.combined and not counted.shared:
        details["trained"] = list(units.trained)
    if counted.shared:
        return answer("duplicates", "fail/ids in both", details, ids=about(counted.shared).capitalize())
    if units.by_id.combined:
        return _of_rows(units, details)
    repeat = said("duplicates", "repeat", members=about(within[0]), others=about(within[1]))
    repeat = sentence(repeat).rstrip(".")
    if units.by_id.largest > 1:
        return answer("duplicates", "fail/ids", details, repeat=repeat)
    if any(within):
        return answer("duplicates", "warn/ids", details, repeat=repeat)
    return answer("duplicates", "unknown/ids" if blank else "ok/ids", details, blank=about(blank))


def _of_rows(units: PersonsFound, details: dict[str, object]) -> Check:
    """Check rows that were combined by id."""
    by_id, sizes = units.by_id, units.by_id.sizes
    if by_id.sizes_p_value < _LEVEL:
        means = [float(size.mean()) for size in sizes]
        return answer("duplicates", "fail/rows", details, members=means[0], others=means[1])
    what = "scorings of one training record" if units.choice.rows is Rows.SCORINGS else "training records"
    counts = {"rows": sum(by_id.rows), "ids": sizes.member.size + sizes.nonmember.size}
    words = {"largest": by_id.largest, "by": units.choice.by, "what": what}
    combined = answer("duplicates", "ok/rows", details, **counts, **words)
    claim = said("duplicates", "groups", size=units.group) if units.group > 1 else ""
    return replace(combined, message=combined.message + claim)


def _by_content(fingerprint: PerGroup) -> Check:
    shared = twins(fingerprint)
    share = shared.nonmembers_with_twin / fingerprint.nonmember.size
    details = {
        "contents_in_both": shared.shared,
        "contents_in_both_expected": shared.expected,
        "more_than_chance_p_value": shared.p_more,
        "fewer_than_chance_p_value": shared.p_fewer,
        "nonmembers_with_twin": shared.nonmembers_with_twin,
        "nonmembers_with_twin_share": share,
        "repeated_content_members": shared.repeats[0],
        "repeated_content_nonmembers": shared.repeats[1],
    }
    telling = min(shared.nonmembers_with_twin, shared.shared) < LEAST_SHOWN
    much = f" ({percent(share)})", f", where chance gives about {shared.expected:,.0f}"
    much = ("", "") if telling else much  # which would reveal how many
    alike = {"records": about(shared.nonmembers_with_twin).capitalize(), "contents": about(shared.shared)}
    text = said("duplicates", "twins", share=much[0], expected=much[1], **alike)
    if shared.shared and shared.p_more < SURELY:
        return answer("duplicates", "fail/overlap", details, twins=text)
    repeats = {"members": about(shared.repeats[0]), "others": about(shared.repeats[1])}
    parts = [said("duplicates", "natural", twins=text)] if shared.shared else []
    if shared.p_fewer < SURELY:
        copies = said("duplicates", "copies", **repeats)
        parts.append(f"{copies[0].upper()}{copies[1:]}")
    if not parts:
        parts = [said("duplicates", "few" if any(shared.repeats) else "none", **repeats)]
    status = Status.FAIL if shared.p_fewer < SURELY else Status.OK
    return Check("duplicates", status, " ".join(parts), details)


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
        return answer("repeats", "fail/constant", details)
    often = distinct > _FEW_VALUES and repeated - beside > repetitions_allowed(distinct, variance=beside)
    return answer("repeats", "fail" if often else "ok", details, repeated=repeated, distinct=distinct)


def repetitions_allowed(scores: int, *, variance: float) -> float:
    """Return how many repetitions beyond those expected are no sign of runs that were counted twice."""
    return float(max(_FEW, _SHARE * scores) + _ERRORS * variance**0.5)


def _repeated(values: Floats) -> tuple[int, int, int]:
    """Return the number of distinct scores, of scores that occur more than once, and of those expected by chance.

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
