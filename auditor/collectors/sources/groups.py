"""Tables of records become sources: one for each group, or one that holds both."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from auditor import _validate
from auditor.collectors.cells import readable
from auditor.collectors.record_table import RecordTable
from auditor.collectors.sources.array_records import ArrayRecords
from auditor.collectors.sources.opening import opened, path_of
from auditor.collectors.sources.reader import Kind
from auditor.collectors.sources.roles import Roles, roles
from auditor.collectors.sources.table_source import TableSource
from auditor.collectors.tasks import Task
from auditor.errors import InputError

__all__ = ["open_groups", "open_source"]

_SHOWN = 5


def open_groups(
    *,
    members: RecordTable | None = None,
    nonmembers: RecordTable | None = None,
    records: RecordTable | None = None,
    task: Task | None,
) -> tuple[TableSource, ...]:
    """Return the sources of both groups.

    Args:
        members: The records that the model was trained on, with ``nonmembers``.
        nonmembers: Records of the same population that it never saw, with the same features.
        records: Both in one table instead, which has a column of membership.
        task: What the labels are for; none where there is nothing to predict, as for texts.

    Raises:
        InputError: Tables that cannot be read, are the same, lack a column, or differ in their features.
    """
    if records is not None and members is None and nonmembers is None:
        return (open_source(records, task=task, member=None, name="records"),)
    if records is not None or members is None or nonmembers is None:
        raise InputError(
            "give either members and nonmembers, or records: one table with a column of membership."
        )
    _refuse_same(members, nonmembers)
    first = open_source(members, task=task, member=True, name="member")
    second = open_source(nonmembers, task=task, member=False, name="nonmember")
    return first, _matched(first, second)


def open_source(table: RecordTable, *, task: Task | None, member: bool | None, name: str) -> TableSource:
    """Return a table as a source.

    Args:
        table: Where the records are, and which column plays which part.
        task: What the labels are for; none where there is nothing to predict.
        member: Whether all records are members, or none of them is; none where a column says so.
        name: What error sentences call records in memory; files are called by their paths.

    Raises:
        InputError: A table that cannot be read, has no records, or lacks a column.
    """
    _validate.instance("table", table, [RecordTable])
    found = opened(table.data, name=name)
    if member is None:
        hint = "Name the column of membership if it is called otherwise, or give members and non-members as two tables."
        _validate.column_name(
            table.member or "member", what="membership", file=found.place, options=found.names, hint=hint
        )
        table = replace(table, member=table.member or "member")
    if task is not None and table.label is None:
        raise InputError(
            f"label must name the column of true labels of {found.place}, got none; its columns are"
            f" {', '.join(map(repr, found.names[:20]))}."
        )
    parts = roles(table, found)
    path = path_of(table.data)
    with nullcontext() if path is None else readable(path):
        reader = found.reader(parts.names, text=parts.text)
    if len(reader) == 0:
        raise InputError(f"{found.place} must hold records, got none; write it again.")
    if isinstance(found, ArrayRecords) and table.features is None:
        _refuse_ambiguous(found, parts, reader.kinds)
    return TableSource(reader, parts, task, member, found.place, found.rows, path)


def _refuse_ambiguous(found: ArrayRecords, parts: Roles, kinds: Any) -> None:
    """Refuse to guess which of several arrays are the features, where one of them is a table itself."""
    tables = [name for name in parts.features if kinds[name] is Kind.VECTOR]
    if tables and len(parts.features) > 1:
        shown = ", ".join(map(repr, parts.features[:20]))
        raise InputError(
            f"features must be named for {found.place}, in which {tables[0]!r} is a table and not the only array beside"
            f" the labels; name one or more of {shown}."
        )


def _refuse_same(members: RecordTable, nonmembers: RecordTable) -> None:
    """Refuse a table that is compared with itself, which would read as no leakage."""
    for table in (members, nonmembers):
        _validate.instance("members and nonmembers", table, [RecordTable])
    first, second = path_of(members.data), path_of(nonmembers.data)
    if first is None or second is None:
        same = members.data is nonmembers.data
        shown = "the same object"
    else:
        same, shown = (
            first == second or (first.exists() and second.exists() and first.samefile(second)),
            repr(str(first)),
        )
    if same:
        raise InputError(
            f"members and nonmembers must be different tables, got {shown} twice; give one table with a column of"
            " membership as records instead, if it holds both."
        )


def _matched(first: TableSource, second: TableSource) -> TableSource:
    """Return the second table with its features in the order of the first."""
    names, others = first.roles.features, second.roles.features
    missing = [name for name in names if name not in others]
    extra = [name for name in others if name not in names]
    for found, here, there in ((missing, second, first), (extra, first, second)):
        if found:
            shown = ", ".join(map(repr, found[:_SHOWN])) + (", ..." if len(found) > _SHOWN else "")
            raise InputError(
                f"{here.name} must have the same features as {there.name}, got no {shown}; take the same columns in both,"
                " or name the features."
            )
    for name in names:
        kinds = first.kinds[name], second.kinds[name]
        if kinds[0] is not kinds[1] and Kind.BLANK not in kinds:
            raise InputError(
                f"column {name!r} must hold the same in both tables, got {kinds[0]} in {first.name} and {kinds[1]} in"
                f" {second.name}; write both in the same way."
            )
    return replace(second, roles=replace(second.roles, features=names))
