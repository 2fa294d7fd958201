"""Which training records to name as the most exposed ones, and when to name none.

To name a person is a statement about that person, so it is made only where the losses tell anything about membership:
the odds must predict the membership of held-out records better than chance does, and the audit must be one whose order
means something. A record that is not named is not therefore safe.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor._labels import text
from auditor.compare import failed_validity
from auditor.persons import PersonsFound
from auditor.ranking import Ranking, rank_records
from auditor.result import TopRecord
from auditor.values import Check, Losses, Status

__all__ = ["Exposed", "most_exposed"]

_UNNAMED = "(not named)"


@dataclass(frozen=True)
class Exposed:
    """The training records that come first, or why none is named.

    Attributes:
        records: First ones first.
        reason: Why there are none, as a sentence; null where there are some.
    """

    records: tuple[TopRecord, ...]
    reason: str | None


def most_exposed(
    found: PersonsFound, *, checks: Iterable[Check], most: int, rng: np.random.Generator
) -> Exposed:
    """Return the training records that come first in the ranking, by id; or the persons, where these are the units.

    They are those of ``rank_records(found.losses, rng=rng).top(most)``: of records with equal odds those whose
    losses are further on the members' side.

    Args:
        found: The units of the audit.
        checks: Of the audit: none is named where a validity check failed or members have the higher losses.
        most: How many to name at most, 0 or more.
        rng: Deals the folds of the ranking.

    >>> from auditor.choices import EachRecord
    >>> from auditor.persons import per_person
    >>> rng = np.random.default_rng(0)
    >>> ids = ([f"a{row}" for row in range(500)], [f"b{row}" for row in range(500)])
    >>> losses = Losses(member=rng.normal(-2, 1, 500), nonmember=rng.normal(0, 1, 500), id=ids)
    >>> named = most_exposed(per_person(losses, choice=EachRecord()), checks=(), most=2, rng=rng)
    >>> [item.rank for item in named.records], named.reason
    ([1, 1], None)
    """
    reason = _why_none(found, checks, most)
    if reason is not None:
        return Exposed((), reason)
    ranking = rank_records(found.losses, rng=rng)
    if not ranking.told:
        return Exposed(
            (),
            "No record is named: the losses predict the membership of held-out records no better than chance, so that"
            " any order of the records would be arbitrary.",
        )
    return Exposed(_named(ranking, persons=found.combined, most=most), None)


def _why_none(found: PersonsFound, checks: Iterable[Check], most: int) -> str | None:
    checks = tuple(checks)
    if most == 0:
        return "No record is named: the audit was asked to name none."
    if found.combined and found.losses.person is None:
        return "No record is named: scores stand for persons, and persons have no names."
    if not found.combined and found.losses.id is None:
        return "No record is named: records have no ids. Give the losses an id column to see which are most exposed."
    if failed := failed_validity(checks):
        return (
            f"No record is named: a validity check failed ({failed[0].name}), so that the order may show how the groups were"
            " made up rather than what the model gives away."
        )
    if any(check.name == "direction" and check.status is Status.WARN for check in checks):
        return (
            "No record is named: members have the higher losses, so the two groups may be swapped, and those named would"
            " then not be training records."
        )
    return None


def _named(ranking: Ranking, *, persons: bool, most: int) -> tuple[TopRecord, ...]:
    first = ranking.top(most)
    rows = np.array([item["row"] for item in first])
    shared = {
        rank: int((ranking.rank.member == rank).sum())
        for rank in dict.fromkeys(item["rank"] for item in first)
    }
    missing = {name: _missing(ranking.losses, name, rows) for name in ("id", "group", "person")}
    found = []
    for at, item in enumerate(first):
        labels = {name: None if missing[name][at] else item.get(name) for name in missing}
        name = labels["person"] if persons else labels["id"]
        found.append(
            TopRecord(
                rank=item["rank"],
                id=str(name or labels["id"] or _UNNAMED),
                group=labels["group"],
                person=labels["person"],
                odds=item["odds"],
                shared=shared[item["rank"]],
            )
        )
    return tuple(found)


def _missing(losses: Losses, name: str, rows: Any) -> list[bool]:
    """Which of these records have no such label."""
    pair = getattr(losses, name)
    return [True] * len(rows) if pair is None else [bool(item) for item in text(pair.member[rows])[1]]
