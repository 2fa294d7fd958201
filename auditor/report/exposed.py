"""The training records that look most exposed, by id, as strings."""

from typing import Any

from auditor.ranking import NOTE
from auditor.report import formatting
from auditor.report.units import units
from auditor.result import AuditResult, TopRecord

__all__ = ["exposed_section"]

_MOST = 100  # rows of a table that a reader looks through
_SURE = 1e6


def exposed_section(result: AuditResult) -> dict[str, Any] | None:
    """Return the named records with what their order means; null where none is named."""
    records = result.top_records[:_MOST]
    if not records:
        return None
    words = units(result.data)
    columns = [
        (name, title)
        for name, title in (("group", "Group"), ("person", "Person"))
        if any(getattr(item, name) not in (None, item.id) for item in records)
    ]
    return {
        "note": f"The {words.members} whose losses speak most for membership: {NOTE}. Those of equal odds share a place; of"
        f" them the lower losses are named. Odds are estimated, as if half of all {words.many} were in the training data,"
        " and have no interval (point estimates). Who is not named may still be given away by a stronger attack.",
        "who": words.many.removesuffix("s").capitalize(),
        "personal": "Ids are personal data where they lead to a person. An audit with --top-records 0 leaves them out.",
        "columns": [title for _, title in columns],
        "rows": [_row(item, [name for name, _ in columns]) for item in records],
    }


def _row(item: TopRecord, columns: list[str]) -> dict[str, Any]:
    return {
        "rank": formatting.count(item.rank),
        "shared": f"shared by {formatting.count(item.shared)}" if item.shared and item.shared > 1 else "",
        "id": item.id,
        "more": [formatting.MISSING if (found := getattr(item, name)) is None else found for name in columns],
        "odds": _odds(item.odds),
    }


def _odds(odds: float) -> str:
    """Odds as people say them: 12 to 1, or 1 to 3."""
    if not odds > 0:
        return formatting.MISSING
    if odds >= _SURE:
        return f"over {formatting.count(int(_SURE))} to 1"
    if odds >= 1:
        return f"{formatting.number(odds)} to 1"
    return f"1 to {formatting.number(1 / odds)}"
