"""A few records of each group, spread over it, on which a model is tried."""

from collections.abc import Sequence

from auditor.collectors.records import Records, taken

__all__ = ["spread"]

_ROWS = 200


def spread(sample: Sequence[Records], *, most: int = _ROWS) -> list[Records]:
    """Return at most ``most`` records of each group that has any, evenly spread."""
    found = []
    for group in sample:
        if not len(group):
            continue
        rows = slice(None, None, -(-len(group) // most))
        found.append(Records(group.name, taken(group.features, rows=rows), group.labels[rows]))
    return found
