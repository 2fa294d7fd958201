"""Does a record appear twice, or in both groups?"""

from dataclasses import dataclass
from typing import Any

from auditor._format import percent
from auditor._labels import codes
from auditor.checks._twins import Twins, twins
from auditor.values import Check, Losses, PerGroup, Status

__all__ = ["duplicates"]

_SURELY = 0.01
_ORDER = (Status.FAIL, Status.WARN, Status.UNKNOWN, Status.OK)


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
        return Check(
            "duplicates",
            Status.UNKNOWN,
            "Records carry neither ids nor features, so duplicates cannot be looked for.",
        )
    worst = min(answers, key=lambda answer: _ORDER.index(answer.status))
    alike = [answer.message for answer in answers if answer.status is worst.status]
    details = {name: value for answer in answers for name, value in answer.details.items()}
    return Check("duplicates", worst.status, " ".join(alike), details)


@dataclass(frozen=True)
class _Answer:
    status: Status
    message: str
    details: dict[str, Any]


def _by_id(ids: PerGroup) -> _Answer:
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
        return _Answer(Status.FAIL, message, details)
    if any(within):
        message = (
            f"{within[0]:,} member and {within[1]:,} non-member records repeat an id: records are not independent, so"
            " the intervals are too narrow. Keep one record for each id."
        )
        return _Answer(Status.WARN, message, details)
    if blank:
        message = f"No id appears twice, but {blank:,} record(s) have no id and could not be compared."
        return _Answer(Status.UNKNOWN, message, details)
    return _Answer(Status.OK, "No id appears twice.", details)


def _by_content(fingerprint: PerGroup) -> _Answer:
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
    if found.shared and found.p_more < _SURELY:
        return _Answer(Status.FAIL, f"{_seen(found, fingerprint)}, {_OVERLAP}", details)
    copied = found.p_fewer < _SURELY
    if found.shared or copied:
        words = [f"{_seen(found, fingerprint)}, {_NATURAL}"] if found.shared else []
        if copied:
            words.append(_copies(found))
        return _Answer(Status.WARN, " ".join(words), details)
    return _Answer(Status.OK, _within(found), details)


_OVERLAP = (
    "more than a random split of these records explains: the groups overlap, so the comparison is not valid. Remove"
    " those records and their twins from both groups and audit again."
)
_NATURAL = (
    "no more than a random split of records with natural twins gives: they are not truly unseen, so the leak of the others"
    " may be larger than measured. To leave them out, remove their twins among the members too."
)


def _seen(found: Twins, fingerprint: PerGroup) -> str:
    share = percent(found.nonmembers_with_twin / fingerprint.nonmember.size)
    return (
        f"{found.nonmembers_with_twin:,} non-member records ({share}) have an exact twin among the members (equal in"
        f" every feature; {found.shared:,} different contents, where chance gives about {found.expected:,.1f})"
    )


def _copies(found: Twins) -> str:
    return (
        f"{found.repeats[0]:,} member and {found.repeats[1]:,} non-member records repeat the features of another of their"
        " group, far more often than such twins are in different groups: they look like copies, which are not independent, so"
        " the intervals are too narrow. Keep one of each."
    )


def _within(found: Twins) -> str:
    if not any(found.repeats):
        return "No two records have the same features."
    return (
        f"No record is in both groups by its features; {found.repeats[0]:,} member and {found.repeats[1]:,} non-member"
        " records repeat those of another of their group, no more than chance explains."
    )
