"""Columns of a file of losses that describe the records become `Features`, in the order of the losses."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor import _validate
from auditor.collectors.cells import Column, numbers
from auditor.collectors.membership import member_name, membership, refuse_no_names
from auditor.collectors.tables import Table, opened
from auditor.errors import InputError
from auditor.features import Features

__all__ = ["read_feature_pair", "read_features"]


def read_features(
    path: str | os.PathLike[str] | Any,
    *,
    columns: Sequence[str],
    member_column: str = "member",
    not_features: Sequence[str] = (),
) -> Features:
    r"""Read what is known of the records beside their losses, from the file that holds the losses.

    Args:
        path: A file, or a table in memory; the kinds are those of `read_losses`.
        columns: The columns to read. A CSV column of which every cell is a number or blank holds numbers, any other
            one text; a blank is a missing value.
        member_column: 1 for a member and 0 for a non-member; integers, floats or booleans.
        not_features: Columns with another part to play, such as those of losses, ids and persons: none of them, nor
            that of membership, may be among the features. The column of groups may.

    Returns:
        The features of both groups, each in the order of the file, which is that of `read_losses`.

    Raises:
        InputError: A file that cannot be read, a missing column, one that is no feature, or membership other than 0 and 1.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.csv"
    ...     _ = path.write_text("loss,member,age,job\n0.1,1,31,cook\n0.9,0,45,\n0.2,1,28,judge\n")
    ...     features = read_features(path, columns=["age", "job"])
    >>> features.names, features.n_member, features.n_nonmember
    (('age', 'job'), 2, 1)
    """
    refuse_no_names(member_column=member_column)
    table = opened(path)
    names = _names(columns, table, (member_column, *_others(not_features)))
    marks = table.read([member_name(member_column, table)], text=[])[member_column]
    mask = membership(marks, table, member_column)
    found = _read(table, names)
    for name, column in found.items():
        _validate.same_length([member_column, name], [mask.size, column.size])
    return Features(*({name: column[side] for name, column in found.items()} for side in (mask, ~mask)))


def read_feature_pair(
    member_path: str | os.PathLike[str] | Any,
    nonmember_path: str | os.PathLike[str] | Any,
    *,
    columns: Sequence[str],
    not_features: Sequence[str] = (),
) -> Features:
    r"""Read what is known of the records from one file for each group, as `read_loss_pair` reads the losses.

    Args:
        member_path: Of the members.
        nonmember_path: Of the non-members, with the same columns.
        columns: The columns to read, as for `read_features`.
        not_features: Columns with another part to play, as for `read_features`.

    Raises:
        InputError: A file that cannot be read, a missing column, or one that is no feature.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [pathlib.Path(folder) / name for name in ("in.csv", "out.csv")]
    ...     _ = [path.write_text("loss,age\n0.1,31\n0.2,40\n") for path in paths]
    ...     read_feature_pair(*paths, columns=["age"]).n_nonmember
    2
    """
    sides = []
    for path in (member_path, nonmember_path):
        table = opened(path)
        sides.append(_read(table, _names(columns, table, _others(not_features))))
    return Features(*sides)


def _others(not_features: Sequence[str]) -> tuple[str, ...]:
    if isinstance(not_features, str) or not isinstance(not_features, Sequence):
        raise InputError(f"not_features must be a list of names of columns, got {not_features!r}.")
    return tuple(not_features)


def _names(columns: Sequence[str], table: Table, others: tuple[str, ...]) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise InputError(f"columns must be a list of names of columns, got {columns!r}.")
    for name in columns:
        refuse_no_names(columns=name)
        if not name.strip():
            raise InputError(f"columns must hold no empty name, got {list(columns)!r}; take it out.")
        if name in others and name in table.names:
            raise InputError(
                f"columns must not name {name!r} in {table.place}, which is a column of losses, membership, ids or persons:"
                " naming it makes any leak look like a shift; name columns that describe the records."
            )
    return [
        _validate.column_name(name, what="features", file=table.place, options=table.names)
        for name in dict.fromkeys(columns)
    ]


def _read(table: Table, names: list[str]) -> dict[str, Column]:
    columns = table.read(names, text=[])
    return {
        name: _typed(column, f"column {name!r} of {table.of}", table.rows) for name, column in columns.items()
    }


def _typed(column: Column, place: str, rows: str) -> Column:
    """Text that holds only numbers as numbers; other text as it is, with None where it is blank."""
    if column.dtype.kind not in "OUT":
        return column
    try:
        return numbers(column, place=place, rows=rows)
    except InputError:
        values = column.tolist()
        return np.array([None if value == "" else value for value in values], dtype=object)
