"""Cells of a file as numbers, and one sentence for whatever goes wrong while a file is read."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import AuditorError, InputError
from auditor.values import Floats

Column = npt.NDArray[Any]

__all__ = ["BELOW_HEADER", "FROM_ZERO", "Column", "numbers", "plain", "readable", "without_gaps"]

FROM_ZERO = "counting from 0"
BELOW_HEADER = "counting from 0 below the header"

_BLANK = ("", "na", "n/a", "nan", "null", "none", "<na>")
_TRUTH = {"true": 1.0, "false": 0.0}
_FIX = "write it with a decimal point and without other characters"
_PERMISSION = (errno.EACCES, errno.EPERM)


def numbers(
    column: Column, *, place: str, rows: str, truth: bool = False, fix: str = _FIX, first_row: int = 0
) -> Floats:
    """Return a column as float64, blanks as NaN; text is read as numbers (true and false too, if they may occur).

    Raises:
        InputError: A value that is no number; the sentence names the first, and ends in the fix.
    """
    words = dict.fromkeys(_BLANK, np.nan) | (_TRUTH if truth else {})
    if column.dtype.kind in "fiub":
        with np.errstate(
            over="ignore"
        ):  # a longdouble beyond the doubles becomes infinite, and is refused as such
            return column.astype(np.float64, copy=False)
    if column.dtype.kind not in "OUT":
        raise InputError(
            f"{place} must hold numbers, got values of type {column.dtype}; name the right column."
        )
    result = np.empty(column.shape)
    for row, value in enumerate(column.tolist()):
        word = str(value).strip().lower()
        try:
            result[row] = (
                words[word] if word in words else float(word.replace("_", "?"))
            )  # 1_000 is no number here
        except ValueError:
            raise InputError(
                f"{place} must hold numbers, got {str(value)!r} (first at row {first_row + row}, {rows}); {fix}."
            ) from None
    return result


def plain(column: Any) -> Column:
    """Return an Arrow column as an array: categories as their values, a missing string as an empty one."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.fill_null("")
    values: Column = column.to_numpy(zero_copy_only=False) if column.num_chunks == 1 else column.to_numpy()
    return values


def without_gaps(column: Column) -> Column:
    """Return a column of objects in which what is missing is an empty text; any other column as it is."""
    if column.dtype.kind != "O":
        return column
    return np.array(["" if _missing(value) else value for value in column.tolist()], dtype=object)


def _missing(value: Any) -> bool:
    return value is None or (value != value) is True or type(value).__name__ in {"NAType", "NaTType"}  # noqa: PLR0124


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever a reader raises about a damaged or mislabelled file into one sentence."""
    try:
        yield
    except (AuditorError, ImportError):
        raise
    except Exception as error:  # damaged bytes make the readers raise nearly everything
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    file, kind = f"file {str(path)!r}", path.suffix.lower()
    reason = getattr(error, "strerror", None)
    if reason:
        check = (
            "its permissions" if getattr(error, "errno", None) in _PERMISSION else "the name and the folder"
        )
        return InputError(f"{file} cannot be read: {reason}; check {check}.")
    if isinstance(error, UnicodeDecodeError) and kind == ".csv":
        return InputError(f"{file} is not UTF-8 text; save it again as a UTF-8 .csv file.")
    words = _validate.one_line(error, longest=200) or type(error).__name__
    if isinstance(error, MemoryError):
        return InputError(
            f"{file} does not fit in memory ({words}); it is damaged, or too large to audit here."
        )
    whole = f"a whole {kind} file" if kind else "a whole table"
    return InputError(f"{file} is not {whole} ({words}); write it again, or name it after what it is.")
