"""A column of equal-length vectors becomes an array."""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.errors import InputError

__all__ = ["is_vector", "stacked"]


def is_vector(kind: Any) -> bool:
    """Return whether an Arrow type is a list (of lists) of numbers, or a tensor."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(kind, pa.FixedShapeTensorType):
        return True
    if not _is_list(kind):
        return False
    inner = kind.value_type
    number = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
    return bool(number) or (_is_list(inner) and is_vector(inner))


def stacked(column: Any, *, name: str, place: str, first_row: int) -> npt.NDArray[Any]:
    """Return an Arrow column of vectors as an array with one row for each.

    Args:
        column: A chunked array of lists of numbers, of lists of such, or of tensors.
        name: Of the column, for error sentences.
        place: The table, for error sentences.
        first_row: The number of the first row in its table.

    Raises:
        InputError: A vector that is missing, or of another length than the first.
    """
    import pyarrow as pa

    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # no chunk at all, or more than one array can hold
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    if whole.null_count:
        row = int(np.argmax(~np.asarray(whole.is_valid())))
        raise InputError(
            f"column {name!r} of {place} must hold a vector in each row, got none in row {first_row + row}, counting from"
            " 0; leave that row out."
        )
    if isinstance(column.type, pa.FixedShapeTensorType):
        return np.asarray(whole.to_numpy_ndarray())
    return _stacked(whole, words=f"column {name!r} of {place}", first_row=first_row, each=1)


def _stacked(whole: Any, *, words: str, first_row: int, each: int) -> npt.NDArray[Any]:
    """Return lists as an array; each row of the table has so many of them."""
    import pyarrow.compute as pc

    if not _is_list(whole.type):
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(whole), -1))
    width = int(lengths[0]) if lengths.size else 0
    bad = lengths != width
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{words} must hold vectors of equal length, got {max(0, int(lengths[at]))} numbers in row"
            f" {first_row + at // each}, counting from 0, after {width}; make them equally long."
        )
    inner = _stacked(whole.flatten(), words=words, first_row=first_row, each=each * max(1, width))
    return inner.reshape(lengths.size, width, *inner.shape[1:])


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
