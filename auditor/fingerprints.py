"""A 64-bit hash of each record's features, so that records of equal content are found without keeping the content.

The hash of a record is the sum of the hashes of its cells (with their column) modulo 2^64, cells of 0 counting 0: a
sparse matrix and its dense form agree. Equal content has equal hashes in every process and on every machine; among
2e6 different records, two share a hash with probability 1e-7. It hides nothing: who guesses a record can check the guess.
"""

import hashlib
import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.errors import InputError
from auditor.features import Features, Table
from auditor.values import PerGroup

__all__ = ["fingerprints"]

Hashes = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15  # the step of SplitMix64
_MISSING = np.uint64(0x7FF8000000000000)  # the bits of a quiet NaN
_LARGEST = int(np.finfo(np.float64).max)
_MASK = 2**64 - 1
_BLOCK = 2**15  # cells hashed at a time, so that they stay in the processor's cache


def fingerprints(features: Features) -> PerGroup:
    """Return one hash for each record; equal content gives equal hashes, whatever the types it is stored in.

    Numbers are equal by value (1, 1.0 and True; 0.0 and -0.0), missing values equal each other, text is equal letter
    by letter and never equals a number.

    Args:
        features: Of both groups; columns are matched by place.

    Returns:
        Arrays of 64-bit unsigned integers, of shapes (n1,) and (n0,), for `Losses.fingerprint`.

    Raises:
        InputError: A cell that is no number, text, date or other plain value.

    >>> found = fingerprints(Features(member=[[1, 2], [3, 4]], nonmember=[[3.0, 4.0], [4.0, 3.0]]))
    >>> (found.member[:, None] == found.nonmember).tolist()
    [[False, False], [True, False]]
    """
    member, nonmember = features.tables
    return PerGroup(_rows("member", member), _rows("nonmember", nonmember))


def _rows(name: str, table: Table) -> Hashes:
    if table.sparse:
        return _sparse(table)
    if isinstance(table.cells, tuple):
        total = np.zeros(table.n, dtype=np.uint64)
        for place, column in enumerate(table.cells):
            total += _salted(_words(f"{name} features, {table.names[place]}", column), _keys(place, 1))
        return total
    width = table.cells.shape[1]
    keys, step = _keys(0, width), max(1, _BLOCK // max(1, width))
    result = np.empty(table.n, dtype=np.uint64)
    for start in range(0, table.n, step):
        block = table.cells[start : start + step]
        result[start : start + step] = _salted(_numeric(block), keys).sum(axis=1, dtype=np.uint64)
    return result


def _sparse(table: Table) -> Hashes:
    cells = table.cells
    hashes = _salted(_numeric(cells.data), _keys(0, cells.shape[1])[cells.indices])
    # Differences of running sums, which wrap around like everything here.
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return np.asarray(running[cells.indptr[1:]] - running[cells.indptr[:-1]])


def _keys(first: int, count: int) -> Hashes:
    """One key for each column."""
    places = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return _mixed(places * np.uint64(_GOLDEN))


def _salted(words: Hashes, keys: Hashes) -> Hashes:
    """The hashes of cells under the keys of their columns; a cell of 0 counts 0."""
    result = _mixed(words ^ keys)
    result[words == 0] = 0
    return result


def _mixed(x: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014), a bijection that leaves no pattern; in place."""
    shifted = x >> np.uint64(30)
    x ^= shifted
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= np.right_shift(x, np.uint64(27), out=shifted)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= np.right_shift(x, np.uint64(31), out=shifted)
    return x


def _numeric(values: npt.NDArray[Any]) -> Hashes:
    """One word for each number: 0 for zero, else the bits of the float, or of the integer where no float is equal to it."""
    with np.errstate(over="ignore"):  # a longdouble beyond the doubles
        floats = values.astype(np.float64)
    floats += 0.0  # -0.0 becomes 0.0
    words = floats.view(np.uint64)
    missing = np.isnan(floats)
    if missing.any():
        words[missing] = _MISSING
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:  # noqa: PLR2004 - narrower ones are floats
        inexact = _inexact(values, floats)
        words[inexact] = values[inexact].view(np.uint64) ^ np.uint64(_GOLDEN)
    return words


def _inexact(whole: npt.NDArray[Any], floats: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which integers no float is equal to."""
    beyond = floats >= float(np.iinfo(whole.dtype).max)
    with np.errstate(invalid="ignore"):
        return np.asarray(beyond | (np.where(beyond, 0.0, floats).astype(whole.dtype) != whole))


def _words(place: str, column: npt.NDArray[Any]) -> Hashes:
    """One word for each cell of a column of any type."""
    if column.dtype.kind in "fiub":
        return _numeric(column)
    if column.dtype.kind == "M":
        return _times(column)
    known: dict[Any, int] = {}
    result = np.empty(column.size, dtype=np.uint64)
    for row, value in enumerate(column.tolist()):
        # The type is part of the key because 1 == True; it is not part of the word.
        key = (type(value), value)
        try:
            word = known.get(key)
        except TypeError:
            word = None
            key = (int, row)
        if word is None:
            word = known[key] = _word(value, place)
        result[row] = word
    return result


def _word(value: Any, place: str) -> int:
    """The word of one cell: the bits of a number, or a hash of the text of anything else."""
    if isinstance(value, str):
        return _digest("s", value)
    if value is None or type(value).__name__ in {"NAType", "NaTType"} or (value != value) is True:  # noqa: PLR0124
        return int(_MISSING)
    if isinstance(value, numbers.Real | np.bool_):
        return _number(value)
    if isinstance(value, bytes):
        return _digest("b", value.hex())
    if hasattr(value, "isoformat"):
        return _digest("t", value.isoformat())
    if type(value).__name__ in {"timedelta", "Timedelta", "Decimal", "Period", "Interval", "UUID"}:
        return _digest(type(value).__name__.lower(), str(value))
    raise InputError(
        f"{place}: cells must be numbers, text or dates, got {type(value).__name__}; leave the column out."
    )


def _number(value: Any) -> int:
    """The bits of the float that equals it; of the integer where none does."""
    if not isinstance(value, numbers.Integral | np.bool_):
        return _bits(float(value))
    value = int(value)
    if abs(value) <= _LARGEST and float(value) == value:
        return _bits(float(value))
    return (value & _MASK) ^ _GOLDEN if -(2**63) <= value <= _MASK else _digest("i", str(value))


def _bits(value: float) -> int:
    return int(_MISSING) if math.isnan(value) else int(np.array([value + 0.0]).view(np.uint64)[0])


def _digest(kind: str, text: str) -> int:
    """64 bits of a hash that is the same everywhere; never 0, which is kept for the number zero."""
    raw = hashlib.blake2b(f"{kind}:{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(raw, "little") or _MASK


def _times(column: npt.NDArray[Any]) -> Hashes:
    micro = column.astype("datetime64[us]")
    words = _mixed(micro.astype(np.int64).view(np.uint64) ^ np.uint64(_GOLDEN))
    words[np.isnat(micro)] = _MISSING
    words[words == 0] = np.uint64(1)
    return words
