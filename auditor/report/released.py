"""The words about what was released: a synthetic table in place of a model, and training records in a model's file."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from auditor.checks.carried import parts_of
from auditor.core import Disclosure, numbers
from auditor.core.facts import Carried, Released, released_of
from auditor.report.words import RELEASED


def released_in(data: Mapping[str, Any]) -> Released:
    """Return the facts about what was released; none where they are missing or of another form."""
    released = data.get("released")
    present = released.items() if isinstance(released, Mapping) else ()
    try:
        return released_of({key: item for key, item in present if item is not None})
    except ValueError:
        return Released()


# --- Copies in a synthetic table ---


class Copies(NamedTuple):
    """Records with copies in a synthetic table, and the distance test that others use.

    Attributes:
        kinds: Copies, near copies and typical rows, each with a count and a share of the members and of the non-members.
        reading: How to read them.
        test: The distance test, and what it misses.
        line: The copies and the test on one line.
    """

    kinds: list[tuple[str, list[tuple[str, str]]]]
    reading: str
    test: tuple[str, str]
    line: str


def copies_in(data: Mapping[str, Any]) -> Copies | None:
    """Return the copies in the synthetic table in words; None if no table was audited."""
    table, words = released_in(data).table, RELEASED["copies"]
    if table is None:
        return None
    sizes = data.get("records") or (data.get("n_member"), data.get("n_nonmember"))
    public = data.get("disclosure") == Disclosure.PUBLIC
    copies, near = (_counted(counts, sizes, public=public) for counts in (table.copies, table.near))
    rests = [
        size and max(0, size - sum(some)) for size, *some in zip(sizes, table.copies, table.near, strict=True)
    ]
    typical = [(f"about {count}", f"about {share}") for count, share in _counted(rests, sizes)]
    values = {"nearer": numbers.percent(table.nearer), "rows": numbers.count(table.rows)}
    places = (f"{count} ({share})" for pair in zip(copies, near, strict=True) for count, share in pair)
    return Copies(
        [(words["copies"], copies), (words["near"], near), (words["typical"], typical)],
        words["reading"] + words["rounded"] * public,
        (words["test"].format(**values), words["misses"]),
        words["line"].format(*places, **values),
    )


def _counted(
    counts: Sequence[int | None], sizes: Sequence[int | None], *, public: bool = False
) -> list[tuple[str, str]]:
    """Return each count with its share; in a shared result, 10 stands for 1 to 10."""
    cells = []
    for count, size in zip(counts, sizes, strict=True):
        few = public and count == numbers.LEAST_SHOWN
        share = min(1.0, count / size) if size and count is not None else None
        shown = numbers.percent(share, toward="up" if few else "nearest")
        cells.append((f"1 to {count}", f"at most {shown}") if few else (numbers.count(count), shown))
    return cells


# --- Training records in the file of a model ---


def carried_in(data: Mapping[str, Any]) -> tuple[str, str]:
    """Return whether a model's file carries records, or only leaves with few of them, and the parts that do; else empty."""
    rows = released_in(data).rows
    kind = "leaves" if all(item.form is Carried.LEAVES for item in rows) else "records"
    return (kind, parts_of(rows)) if rows else ("", "")
