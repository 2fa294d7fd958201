"""Labels of records as they are compared: by text, with blanks set aside, whatever type they were read as."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["coded", "comparable", "n_shared"]

_BLANK = ("", "None", "nan", "NaN", "<NA>")


def comparable(column: npt.NDArray[Any]) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.bool_]]:
    """Return the labels as text and which of them are there; a whole number is the same label in any type."""
    if column.dtype.kind in "fO":
        column = np.array([_whole(x) for x in column.tolist()], dtype=object)
    text = np.char.strip(column.astype(str))
    blank = np.isin(text, _BLANK) if column.dtype.kind == "O" else text == ""
    return text, np.asarray(~blank)


def _whole(label: Any) -> Any:
    return int(label) if isinstance(label, float) and label.is_integer() else label


def _whole_numbers(*columns: npt.NDArray[Any]) -> bool:
    """Whether the columns need no text: whole numbers of one type, as two types may meet in floats."""
    return columns[0].dtype.kind in "iu" and len({column.dtype for column in columns}) == 1


def coded(column: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return a number from 0 on for each label that is there, and which are."""
    labels, given = (
        (column, np.ones(column.size, dtype=bool)) if _whole_numbers(column) else comparable(column)
    )
    return np.asarray(np.unique(labels[given], return_inverse=True)[1]), given


def n_shared(own: npt.NDArray[Any], others: Iterable[npt.NDArray[Any]]) -> int | None:
    """Return how many entries of a column are in one of the others; None where a side has nothing but blanks."""
    listed = list(others)
    if _whole_numbers(own, *listed):
        return int(np.logical_or.reduce([np.isin(own, column) for column in listed]).sum())
    text, given = comparable(own)
    pairs = [comparable(column) for column in listed]
    theirs = np.concatenate([labels[there] for labels, there in pairs])
    if not given.any() or not theirs.size:
        return None
    return int(np.isin(text[given], theirs).sum())
