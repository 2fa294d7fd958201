"""Do several records belong to one person, and were they counted as if they did not?"""

from typing import Any

from auditor.choices import EachRecord
from auditor.persons import PersonsFound
from auditor.values import Check, Status

__all__ = ["persons"]

_LEVEL = 1e-3


def persons(found: PersonsFound) -> Check | None:
    """Say what the units of the audit are; None where records do not name their person.

    Fails where combined scores differ without any leak because persons have more records in one group (a smallest
    loss of eight is lower than a smallest loss of two). Warns where records of one person are counted as independent,
    and where persons have records in both groups.
    """
    if not found.named:
        return None
    details: dict[str, Any] = {
        "records": list(found.records),
        "persons": list(found.persons),
        "effective": list(found.effective),
        "largest": found.largest,
        "in_both": found.in_both,
        "unlabelled": list(found.unlabelled),
        "sizes_p_value": found.sizes_p_value,
        "combined": found.combined,
    }
    status, message = _answer(found)
    return Check("persons", status, message, details)


def _answer(found: PersonsFound) -> tuple[Status, str]:
    records, blank = sum(found.records), sum(found.unlabelled)
    if blank == records:
        words = "The person column is empty, so records of one person cannot be told from those of different persons."
        return Status.UNKNOWN, words
    if found.combined and found.sizes_p_value < _LEVEL:
        return Status.FAIL, _unequal(found)
    if found.largest > 1 and isinstance(found.choice, EachRecord):
        return Status.WARN, _dependent(found) + _both(found)
    words = f"{records:,} records of {_people(found):,} persons: intervals count persons."
    if blank:
        words += f" {blank:,} record(s) name nobody and count as one person each."
    if found.in_both:
        return Status.WARN, words + _both(found)
    return Status.UNKNOWN if blank else Status.OK, words


def _people(found: PersonsFound) -> int:
    return sum(found.persons) - found.in_both


def _unequal(found: PersonsFound) -> str:
    means = [count / people for count, people in zip(found.records, found.persons, strict=True)]
    return (
        f"Persons have {means[0]:.3g} records each among the members and {means[1]:.3g} among the non-members, spread"
        " differently than chance explains: scores that combine more records differ without any leak, so the comparison is not"
        " valid. Keep equally many records of each person, or audit each record."
    )


def _dependent(found: PersonsFound) -> str:
    members, others = (f"{int(number):,}" for number in found.effective)
    return (
        f"{sum(found.records):,} records of {_people(found):,} persons are counted as independent, and they"
        f" are not: {found.records[0]:,} members are worth about {members} and {found.records[1]:,} non-members about {others},"
        " so the intervals are too narrow. Ask for one score per person."
    )


def _both(found: PersonsFound) -> str:
    if not found.in_both:
        return ""
    return (
        f" {found.in_both:,} person(s) have records in both groups: what was learnt about them may also show in their"
        " non-member records, so the leak may be larger than measured."
    )
