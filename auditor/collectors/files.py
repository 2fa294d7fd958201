"""Files of losses become `Losses`: one file with a membership column, or one file for each group."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from auditor import _validate
from auditor.collectors.arrays import from_columns, from_pair
from auditor.collectors.cells import Column, numbers
from auditor.collectors.collected import read_collected
from auditor.collectors.membership import member_name, membership, refuse_no_names
from auditor.collectors.sources.opening import path_of
from auditor.collectors.tables import NpzTable, Table, opened
from auditor.errors import InputError
from auditor.values import Floats, Losses, PerGroup

__all__ = ["read_loss_pair", "read_losses"]

_MEANING = {
    "id": "record ids",
    "group": "slices",
    "person": "data subjects",
    "label": "true classes",
}  # by default name
_GROUPS = (("members", 1), ("non-members", 0))
_ONE_TABLE = "give one table that holds both groups and the membership column, instead of two files"


def read_losses(
    path: str | os.PathLike[str] | Any,
    *,
    loss_column: str = "loss",
    member_column: str = "member",
    id_column: str | None = "id",
    group_column: str | None = "group",
    person_column: str | None = "person",
    label_column: str | None = None,
    higher_is_member: bool = False,
) -> Losses:
    r"""Read losses and membership from one file, or from one table in memory.

    What `auditor.collect_to` wrote says of itself what its losses are, how they came about and how many are saturated;
    together with its true classes and fingerprints they are what `auditor.collect` would have returned.

    Args:
        path: A ``.csv`` (UTF-8, commas, one line of names), ``.parquet``, ``.arrow``, ``.feather`` or ``.npz`` file (the
            arrays are the columns; never pickled), or a folder of ``.parquet`` parts. An ``.npz`` with the arrays
            ``member`` and ``nonmember`` and no loss column holds the losses of the two groups. Or a pandas or polars
            DataFrame, a pyarrow Table or Dataset, or a dictionary of columns.
        loss_column: The losses, finite numbers; smaller means more like a member.
        member_column: 1 for a member and 0 for a non-member; integers, floats or booleans.
        id_column: Record ids, read if the file has them; an error if another name than the default is missing.
            None reads none. In a CSV ids are read as text, so that leading zeros survive.
        group_column: Slices to report by, likewise.
        person_column: Data subject of each record, likewise.
        label_column: The true class of each record, to report by; read only if named, or if `auditor.collect_to` wrote
            it.
        higher_is_member: Whether a higher score means more like a member; the scores are then negated.

    Returns:
        The losses of both groups, each in the order of the file; ``history`` names the file without its folder.

    Raises:
        InputError: A file that cannot be read, a missing column, or values that are no finite losses or no 0/1
            membership; the sentence names the file, the column and the first row.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.csv"
    ...     _ = path.write_text("loss,member\n0.1,1\n0.9,0\n0.2,1\n0.7,0\n")
    ...     read_losses(path).member
    array([0.1, 0.2])
    """
    refuse_no_names(loss_column=loss_column, member_column=member_column)
    table = opened(path)
    if _is_two_arrays(table, loss_column):
        return _two_arrays(table, higher_is_member)
    collected = read_collected(path, loss_column=loss_column, names=table.names)
    if collected is not None and label_column is None:
        label_column = collected.label_column
    labels = _labels(
        table,
        id_column=id_column,
        group_column=group_column,
        person_column=person_column,
        label_column=label_column,
    )
    names = [_loss_name(loss_column, table), member_name(member_column, table)]
    more = [collected.fingerprint_column] if collected and collected.fingerprint_column else []
    columns = table.read([*names, *more], text=list(labels.values()))
    given: dict[str, Any] = {field: columns[name] for field, name in labels.items()}
    given["history"] = [f"column {loss_column!r} of {table.title}, membership from column {member_column!r}"]
    if collected is not None:
        given |= collected.given(columns, table=table, higher_is_member=higher_is_member)
    return from_columns(
        _losses(columns[loss_column], name=loss_column, table=table),
        member=membership(columns[member_column], table, member_column),
        **given,
        higher_is_member=higher_is_member,
    )


def read_loss_pair(
    member_path: str | os.PathLike[str] | Any,
    nonmember_path: str | os.PathLike[str] | Any,
    *,
    loss_column: str = "loss",
    member_column: str | None = "member",
    id_column: str | None = "id",
    group_column: str | None = "group",
    person_column: str | None = "person",
    label_column: str | None = None,
    higher_is_member: bool = False,
) -> Losses:
    r"""Read losses from two files, one for the members and one for the non-members.

    Args:
        member_path: Losses on training records; the kinds of file are those of `read_losses`.
        nonmember_path: Losses on records that the model never saw.
        loss_column: The losses in both files, finite numbers; smaller means more like a member.
        member_column: Membership, if a file has it: it must then be 1 in every row of the members' file and 0 in
            every row of the non-members'. An error if another name than the default is missing. None ignores it.
        id_column: Record ids, read if both files have them; see `read_losses`.
        group_column: Slices to report by, likewise.
        person_column: Data subject of each record, likewise.
        label_column: The true class of each record, to report by; read only if named.
        higher_is_member: Whether a higher score means more like a member; the scores are then negated.

    Returns:
        The losses of both groups, each in the order of its file.

    Raises:
        InputError: As for `read_losses`, or both paths name the same file, or a file mixes the groups.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [pathlib.Path(folder) / name for name in ("in.csv", "out.csv")]
    ...     _ = [path.write_text(text) for path, text in zip(paths, ("loss\n0.1\n0.2\n", "loss\n0.9\n0.7\n"))]
    ...     read_loss_pair(*paths).nonmember
    array([0.9, 0.7])
    """
    refuse_no_names(loss_column=loss_column)
    tables = [opened(path) for path in _different(member_path, nonmember_path)]
    wanted = {
        "id_column": id_column,
        "group_column": group_column,
        "person_column": person_column,
        "label_column": label_column,
    }
    found = [_labels(table, **wanted) for table in tables]
    shared = {field: name for field, name in found[0].items() if field in found[1]}
    parts = [_one_file(table, loss_column, shared) for table in tables]
    for table, group in zip(tables, _GROUPS, strict=True):
        _refuse_mixed(table, member_column if member_column != loss_column else None, group)
    history = [
        f"column {loss_column!r} of {tables[0].title} (members) and of {tables[1].title} (non-members)"
    ]
    alone = sorted({*found[0].values(), *found[1].values()} - set(shared.values()))
    if alone:
        history.append(f"left out, because only one of the files has it: {', '.join(alone)}")
    pairs = {field: PerGroup(parts[0][1][name], parts[1][1][name]) for field, name in shared.items()}
    return from_pair(
        parts[0][0], nonmember=parts[1][0], labels=pairs, higher_is_member=higher_is_member, history=history
    )


def _different(member_path: Any, nonmember_path: Any) -> tuple[Any, Any]:
    """Refuse a table that is compared with itself, which would read as no leakage."""
    first, second = path_of(member_path), path_of(nonmember_path)
    if member_path is nonmember_path or (first is not None and first == second):
        shown = "the same table" if first is None else repr(str(first))
        raise InputError(f"member and non-member files must differ, got {shown} twice.")
    return member_path, nonmember_path


def _one_file(table: Table, loss_column: str, labels: Mapping[str, str]) -> tuple[Floats, dict[str, Column]]:
    _loss_name(loss_column, table)
    columns = table.read([loss_column], text=list(labels.values()))
    return _losses(columns[loss_column], name=loss_column, table=table), columns


def _losses(column: Column, *, name: str, table: Table) -> Floats:
    place = f"column {name!r} of {table.of}"
    return _validate.finite_column(place, numbers(column, place=place, rows=table.rows), rows=table.rows)


def _loss_name(name: str, table: Table) -> str:
    hint = _header_hint(table)
    return _validate.column_name(name, what="losses", file=table.place, options=table.names, hint=hint)


def _refuse_mixed(table: Table, name: str | None, group: tuple[str, int]) -> None:
    """Refuse a file of one group whose membership column says that it holds others."""
    if name is None or (name == "member" and name not in table.names):
        return
    refuse_no_names(member_column=name)
    _validate.column_name(name, what="membership", file=table.place, options=table.names)
    words, code = group
    place = f"column {name!r} of {table.of}"
    values = numbers(
        table.read([name], text=[])[name], place=place, rows=table.rows, truth=True, fix=_ONE_TABLE
    )
    bad = values != code
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{place} must be {code} in every row of a file of {words}, got {int(bad.sum())} other values (first"
            f" {values[row]:g} at row {row}, {table.rows}); {_ONE_TABLE}."
        )


def _labels(table: Table, **columns: str | None) -> dict[str, str]:
    """Return which label columns to read: the default names if present, any other name in any case."""
    result = {}
    for argument, name in columns.items():
        field = argument.removesuffix("_column")
        if name is None or (name == field and name not in table.names):
            continue
        refuse_no_names(**{argument: name})
        result[field] = _validate.column_name(
            name, what=_MEANING[field], file=table.place, options=table.names
        )
    return result


def _header_hint(table: Table) -> str:
    """Return what is probably wrong with a CSV header in which a column was not found."""
    if len(table.names) == 1 and any(mark in table.names[0] for mark in ";\t|"):
        return "The columns must be separated by commas."
    if table.names and all(_is_number(name) for name in table.names):
        return "The first line must hold the names of the columns."
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_two_arrays(table: Table, loss_column: str) -> bool:
    names: Sequence[str] = table.names
    return isinstance(table, NpzTable) and loss_column not in names and {"member", "nonmember"} <= set(names)


def _two_arrays(table: Table, higher_is_member: bool) -> Losses:  # noqa: FBT001
    arrays = table.read(["member", "nonmember"], text=[])
    member, nonmember = (_losses(arrays[name], name=name, table=table) for name in arrays)
    history = [f"arrays 'member' and 'nonmember' of {table.title}"]
    return from_pair(
        member, nonmember=nonmember, labels={}, higher_is_member=higher_is_member, history=history
    )
