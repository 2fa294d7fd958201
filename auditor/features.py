"""The features of the audited records, in whatever form they come: both groups, aligned with the losses.

Importing it loads numpy only. Nothing here looks at a loss, so what is said about features cannot come from the model.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.values import Losses

__all__ = ["Features", "Table"]

Column = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """The features of one group.

    Attributes:
        names: One for each column.
        cells: A numeric array of shape (n, d), a sparse matrix in CSR form, or a tuple of d columns of any type.
        n: Number of records.
    """

    names: tuple[str, ...]
    cells: Any
    n: int

    @property
    def sparse(self) -> bool:
        """Whether the cells are a sparse matrix."""
        return hasattr(self.cells, "indptr")

    def rows(self, at: npt.NDArray[Any]) -> "Table":
        """Return the records at these positions."""
        cells = (
            tuple(column[at] for column in self.cells) if isinstance(self.cells, tuple) else self.cells[at]
        )
        return Table(self.names, cells, int(np.size(at)))

    def column(self, place: int) -> Column:
        """Return one column as a dense array."""
        if isinstance(self.cells, tuple):
            return np.asarray(self.cells[place])
        if self.sparse:
            return np.asarray(self.cells[:, [place]].toarray())[:, 0]
        return np.asarray(self.cells[:, place])


@dataclass(frozen=True, eq=False)
class Features:
    """What is known of the audited records besides their losses, for the checks on the two groups.

    Give what a reviewer would call the record: the inputs of the model, and the label too where class proportions
    should agree. Missing values are allowed, and equal to each other.

    Attributes:
        member: An array of shape (n1, ...), a DataFrame of any column types, a dictionary of columns, a sparse matrix,
            or a list of records or texts; in the order of the member losses.
        nonmember: Likewise, with the same columns.

    Raises:
        InputError: No table of records, or columns that differ between the groups.

    >>> features = Features(member=[[23, 1.5], [51, 0.2]], nonmember=[[44, 1.0]])
    >>> features.n_member, features.n_nonmember, features.names
    (2, 1, ('column 0', 'column 1'))
    """

    member: Any
    nonmember: Any
    tables: tuple[Table, Table] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        member, nonmember = _table("member", self.member), _table("nonmember", self.nonmember)
        object.__setattr__(self, "tables", (member, _matched(member, nonmember)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.tables[0].names

    @property
    def n_member(self) -> int:
        """Number of members."""
        return self.tables[0].n

    @property
    def n_nonmember(self) -> int:
        """Number of non-members."""
        return self.tables[1].n

    def check_rows(self, losses: Losses) -> None:
        """Refuse losses of another number of records.

        Raises:
            InputError: A group has not one row of features for each loss.

        >>> Features(member=[1, 2], nonmember=[3, 4]).check_rows(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4]))
        """
        for name, table, n in (
            ("member", self.tables[0], losses.n_member),
            ("nonmember", self.tables[1], losses.n_nonmember),
        ):
            if table.n != n:
                raise InputError(
                    f"{name} features must have one row for each loss, in the same order, got {table.n} rows for {n}"
                    " losses; give the features of the audited records."
                )


def _table(name: str, values: Any) -> Table:
    if isinstance(values, Table):
        return values
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        return _frame(values)
    if isinstance(values, dict):
        return _columns(name, values)
    if hasattr(values, "tocsr") and getattr(values, "ndim", 2) == 2:  # noqa: PLR2004
        cells = values.tocsr().copy()
        cells.sum_duplicates()  # in place, so on a copy
        return Table(_numbered(cells.shape[1]), cells, int(cells.shape[0]))
    array = _array(name, values)
    n = array.shape[0]
    width = int(np.prod(array.shape[1:], dtype=np.int64))
    flat = array.reshape(n, width)
    if array.dtype.kind in "fiub":
        return Table(_numbered(width), flat, n)
    return Table(_numbered(width), tuple(flat[:, place] for place in range(width)), n)


def _array(name: str, values: Any) -> npt.NDArray[Any]:
    if isinstance(values, str | bytes | set) or np.ma.is_masked(values):
        kind = "masked values" if np.ma.is_masked(values) else type(values).__name__
        raise InputError(
            f"{name} features must be an array, a DataFrame, a sparse matrix or a list of records, got {kind}."
        )
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
            array = np.asarray(values, dtype=object)  # a list that mixes numbers and text keeps its numbers
    except ValueError:
        raise InputError(
            f"{name} features must have equally many in each row, got rows of different lengths."
        ) from None
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"{name} features must be a table, got {type(values).__name__}: {_validate.one_line(error)}."
        ) from error
    if array.ndim == 0 or array.dtype.names is not None or array.dtype.kind in "cV":
        raise InputError(
            f"{name} features must hold one row for each record, got an array of shape {array.shape} and type {array.dtype}."
        )
    return array


def _columns(name: str, values: dict[str, Any]) -> Table:
    columns = [_array(f"{name} {key}", column) for key, column in values.items()]
    _validate.same_length([f"{name} {key}" for key in values], [column.shape[0] for column in columns])
    if not columns or any(column.ndim > 1 for column in columns):
        raise InputError(f"{name} features must hold one-dimensional columns, got {len(columns)} columns.")
    return Table(tuple(map(str, values)), tuple(columns), int(columns[0].shape[0]))


def _frame(frame: Any) -> Table:
    columns = tuple(_plain(frame.iloc[:, place]) for place in range(frame.shape[1]))
    return Table(tuple(map(str, frame.columns)), columns, int(frame.shape[0]))


def _plain(series: Any) -> Column:
    """One column of a DataFrame: numbers stay numbers, with what is missing as NaN; everything else becomes objects."""
    if getattr(series.dtype, "kind", "O") in "fiubM" and isinstance(series.dtype, np.dtype):
        return np.asarray(series)
    values = np.asarray(series, dtype=object)
    kind = getattr(series.dtype, "kind", "O")
    if kind in "fiub":  # a nullable type of pandas or Arrow
        missing = np.asarray(series.isna())
        if not missing.any():
            return np.asarray(series.to_numpy(dtype=getattr(series.dtype, "numpy_dtype", np.float64)))
        values[missing] = np.nan
    return values


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"column {place}" for place in range(width))


def _matched(member: Table, nonmember: Table) -> Table:
    """The non-members with their columns in the members' order."""
    if member.names == nonmember.names:
        return nonmember
    if len(member.names) != len(nonmember.names):
        raise InputError(
            "member and nonmember features must have the same columns, got"
            f" {len(member.names)} and {len(nonmember.names)}; give the same ones for both."
        )
    unshared = set(member.names) ^ set(nonmember.names)
    if unshared or len(set(member.names)) < len(member.names):
        shown = ", ".join(map(repr, sorted(unshared)[:5])) or "repeated names in another order"
        raise InputError(
            f"member and nonmember features must have the same columns, got {shown}; name them alike in both."
        )
    place = {name: at for at, name in enumerate(nonmember.names)}
    order = [place[name] for name in member.names]
    cells = (
        tuple(nonmember.cells[at] for at in order)
        if isinstance(nonmember.cells, tuple)
        else nonmember.cells[:, order]
    )
    return Table(member.names, cells, nonmember.n)
