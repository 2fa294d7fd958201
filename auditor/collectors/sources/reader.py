"""What every kind of table becomes: named columns, of which stretches of rows can be read."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from auditor.collectors.cells import Column

__all__ = ["Kind", "OpenTable", "Reader", "Stretch"]


class Kind(StrEnum):
    """What the cells of a column are, as far as two tables must agree on it."""

    NUMBER = "numbers"
    TEXT = "text"
    TIME = "times"
    VECTOR = "arrays of numbers"
    OTHER = "other values"
    BLANK = "nothing"  # every cell is missing, which agrees with everything


class Stretch(Protocol):
    """Some rows of some columns."""

    def column(self, name: str) -> Column:
        """Return one column: categories as their values, vectors stacked, a missing number as NaN, other gaps as None."""
        ...

    def table(self, names: Sequence[str]) -> Any:
        """Return some columns as a DataFrame of them alone, in the types that the whole table has."""
        ...


class Reader(Protocol):
    """Chosen columns of a table. It can be pickled, so that another process can read them too.

    The type of a column is settled for the whole table before any stretch is read, so that it depends on none.
    """

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """What the cells of each chosen column are."""
        ...

    def __len__(self) -> int:
        """How many rows there are."""
        ...

    def read(self, start: int, stop: int) -> Stretch:
        """Return rows; quick where calls follow the order of the table.

        Raises:
            InputError: Rows that cannot be read.
        """
        ...


class OpenTable(Protocol):
    """A table of which only the names of the columns are known yet."""

    @property
    def place(self) -> str:
        """The table in error sentences."""
        ...

    @property
    def rows(self) -> str:
        """How its rows are counted, in error sentences."""
        ...

    @property
    def names(self) -> list[str]:
        """The names of all columns, in order."""
        ...

    @property
    def asides(self) -> frozenset[str]:
        """Columns that are features only if they are named: those without a name, and the index of pandas."""
        ...

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> Reader:
        """Return a reader of some columns; those in ``text`` stay text where the table has text.

        Raises:
            InputError: Columns that cannot be read, or that are no columns of one length.
        """
        ...
