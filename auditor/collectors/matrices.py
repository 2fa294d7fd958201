"""Features of any kind become the dense array of numbers that a network takes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError

__all__ = ["column", "is_frame", "matrix", "names", "refuse_width"]

_ENCODE = "the model's own pipeline must encode it, or leave the column out"


def is_frame(features: Any) -> bool:
    """Return whether features are a table with named columns (pandas or polars)."""
    return hasattr(features, "columns") and hasattr(features, "dtypes") and hasattr(features, "to_numpy")


def names(features: Any) -> list[Any]:
    """Return the names of the columns of a table, in order."""
    return list(features.columns)


def matrix(features: Any, *, dtype: npt.DTypeLike, place: str, first_row: int = 0) -> npt.NDArray[Any]:
    """Return features as one array with a row for each record.

    A column that holds vectors of equal length gives as many columns as they have entries; if it is the only column,
    arrays of any shape are stacked.

    Args:
        features: An array of any dimensions, a DataFrame, a sparse matrix, or a list of records.
        dtype: What the model takes; an integer type takes whole numbers only.
        place: Whose features they are, the subject of error sentences: ``member``.
        first_row: The number of the first record, for error sentences.

    Raises:
        InputError: A column of text, or of anything that is no number; the sentence names the column.

    >>> matrix([[1, 2], [3, 4]], dtype=np.float32, place="member")
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if hasattr(features, "toarray"):
        features = features.toarray()
    if not is_frame(features):
        return _numbers(features, dtype=np.dtype(dtype), what=f"{place} X", first_row=first_row)
    if _plain(features):
        return _numbers(features.to_numpy(), dtype=np.dtype(dtype), what=f"{place} X", first_row=first_row)
    parts = [
        column(features, name, dtype=dtype, place=place, first_row=first_row) for name in names(features)
    ]
    if len(parts) == 1 and parts[0].ndim > 1:
        return parts[0]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def column(
    features: Any, name: Any, *, dtype: npt.DTypeLike, place: str, first_row: int = 0
) -> npt.NDArray[Any]:
    """Return one column of a DataFrame as an array of shape (n,), or (n, ...) where it holds arrays."""
    series = features[name]
    what = f"{place} X, column {str(name)!r},"
    if _nullable(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    elif getattr(series.dtype, "kind", "") == "O" or not hasattr(series, "to_numpy"):
        values = np.asarray(series, dtype=object)
    else:
        values = series.to_numpy()
    return _numbers(values, dtype=np.dtype(dtype), what=what, first_row=first_row)


def refuse_width(features: Any, *, wanted: int, model: str, place: str) -> None:
    """Refuse a table with another number of columns than the model takes; what has no columns is left to the model."""
    shape = getattr(features, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] != wanted:  # noqa: PLR2004
        columns = f"{wanted} column{'s' if wanted > 1 else ''}"
        raise InputError(
            f"{place} X must have the {columns} that {model} was trained on, got {shape[1]}; give those alone, in"
            " the order of training (--features on the command line)."
        )


def _plain(features: Any) -> bool:
    """Return whether all columns are numpy numbers or booleans, so that the table can be taken at once."""
    kinds = {getattr(dtype, "kind", "O") for dtype in features.dtypes}
    return all(isinstance(dtype, np.dtype) for dtype in features.dtypes) and kinds <= set("fiub")


def _nullable(series: Any) -> bool:
    """Return whether this is one of pandas' own types of numbers, which mark missing values by themselves."""
    return hasattr(series, "iloc") and not isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiub"


def _numbers(values: Any, *, dtype: np.dtype[Any], what: str, first_row: int) -> npt.NDArray[Any]:
    array = _stacked(values, what)
    if array.dtype.kind not in "fiub":
        kind = "text" if array.dtype.kind in "USTO" else str(array.dtype)
        shown = next((item for item in array.ravel().tolist() if not isinstance(item, int | float)), None)
        raise InputError(f"{what} must be numbers for this model, got {kind} ({shown!r}); {_ENCODE}.")
    if dtype.kind in "iu" and array.dtype.kind == "f":
        _refuse_fractions(array, what, first_row)
    with np.errstate(
        over="ignore"
    ):  # a number beyond the type becomes infinite; what the model makes of it is seen
        return np.ascontiguousarray(array, dtype=dtype)


def _stacked(values: Any, what: str) -> npt.NDArray[Any]:
    """Return an array that is not one of objects, where its cells are numbers or arrays of equal shape."""
    try:
        array = np.asarray(values)
        if array.dtype.kind != "O":
            return array
        cells = array.ravel().tolist()
        if any(isinstance(cell, str | bytes) for cell in cells):
            return array
        found = np.stack([np.asarray(np.nan if cell is None else cell) for cell in cells])
    except ValueError:
        raise InputError(f"{what} must hold vectors of equal length, got different ones; pad them.") from None
    except TypeError as error:
        raise InputError(f"{what} must be numbers, got {_validate.one_line(error)}; {_ENCODE}.") from error
    return found.reshape(array.shape + found.shape[1:])


def _refuse_fractions(array: npt.NDArray[Any], what: str, first_row: int) -> None:
    with np.errstate(invalid="ignore"):
        bad = ~(array == np.round(array)) | np.isinf(array)
    if bad.any():
        row = int(np.argmax(bad.reshape(len(array), -1).any(axis=1)))
        raise InputError(
            f"{what} must be whole numbers for this model, got {array[bad].ravel()[0]} (first at row {first_row + row},"
            " counting from 0); pass the codes it was trained on."
        )
