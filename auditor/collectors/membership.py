"""What readers of files share: the membership column, and the names of columns."""

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.cells import FROM_ZERO, Column, numbers
from auditor.collectors.tables import Table
from auditor.errors import InputError

__all__ = ["TWO_FILES", "member_name", "membership", "refuse_no_names"]

TWO_FILES = "give the two files as members and non-members instead"


def member_name(name: str, table: Table) -> str:
    """Return the name of the membership column, or list what the file has."""
    hint = f"Name the column of membership if it is called otherwise, or {TWO_FILES}."
    return _validate.column_name(name, what="membership", file=table.place, options=table.names, hint=hint)


def membership(column: Column, table: Table, name: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the members; both groups must be there."""
    place = f"column {name!r} of {table.of}"
    values = numbers(column, place=place, rows=table.rows, truth=True, fix=_validate.CODING)
    member = _validate.membership(_counted(place, table), values)
    count = int(member.sum())
    if count in (0, member.size):
        kind = "non-member (0)" if count else "member (1)"
        raise InputError(
            f"{place} must mark both groups, got {member.size} records and no {kind}; {_validate.CODING}, or"
            f" {TWO_FILES}."
        )
    return member


def _counted(place: str, table: Table) -> str:
    """Return how a place is named where rows count from below a header."""
    return place if table.rows == FROM_ZERO else f"{place} (rows below the header)"


def refuse_no_names(**arguments: object) -> None:
    """Refuse column names that are no text."""
    for argument, name in arguments.items():
        if not isinstance(name, str):
            raise InputError(f"{argument} must be the name of a column, got {name!r}.")
