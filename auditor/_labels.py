"""Labels of records (ids, groups, persons), compared by what they say rather than by the type that holds them.

A whole number is the same label as an integer, as a float and as text; blanks, None and NaN are no labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.values import PerGroup

Column = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]

__all__ = ["Codes", "codes", "text"]

_NO_LABEL = ("", "None", "nan", "NaN", "NaT", "<NA>")


@dataclass(frozen=True, eq=False)
class Codes:
    """One column of labels as numbers: equal labels have equal codes in both groups, and -1 means no label.

    Attributes:
        member: Shape (n1,), codes from 0, in the order in which the labels first appear.
        nonmember: Shape (n0,), likewise.
        labels: The label of each code.
    """

    member: Integers
    nonmember: Integers
    labels: Column

    @property
    def names(self) -> npt.NDArray[np.str_]:
        """The label of each code as text."""
        return self.labels.astype(np.str_)


def text(column: Column) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.bool_]]:
    """Return the labels as text, and which records have none.

    >>> text(np.array([7.0, np.nan]))
    (array(['7', 'nan'], dtype='<U3'), array([False,  True]))
    """
    if column.dtype.kind in "fOS":
        words = np.array([_word(item) for item in column.tolist()], dtype=np.str_)
    else:
        words = column.astype(np.str_)
    words = np.char.strip(words)
    # Text is taken at its word, so that a person called None is one; other types spell what is missing like this.
    missing = words == "" if column.dtype.kind in "US" else np.isin(words, _NO_LABEL)
    return words, np.asarray(missing)


def codes(pair: PerGroup) -> Codes:
    """Return a column of labels as numbers that are equal where the labels are, in both groups.

    >>> found = codes(PerGroup(np.array(["b", "a", ""]), np.array([" a", "c"])))
    >>> found.member, found.nonmember, found.names
    (array([ 0,  1, -1]), array([1, 2]), array(['b', 'a', 'c'], dtype='<U1'))
    """
    import pandas as pd

    split = pair.member.size
    if pair.member.dtype == pair.nonmember.dtype and pair.member.dtype.kind in "iu":
        numbers, labels = pd.factorize(np.concatenate(pair))  # no blanks to find, and no text to make
    else:
        (member, no_member), (nonmember, no_nonmember) = text(pair.member), text(pair.nonmember)
        joined = np.concatenate([member, nonmember]).astype(object)
        joined[np.concatenate([no_member, no_nonmember])] = None
        numbers, labels = pd.factorize(joined)
    numbers = np.asarray(numbers, dtype=np.int64)
    return Codes(numbers[:split], numbers[split:], np.asarray(labels))


def _word(item: Any) -> str:
    if isinstance(item, bytes):
        return item.decode("utf-8", errors="backslashreplace")
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)
