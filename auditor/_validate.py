"""Argument checks: the only author of the sentences a caller reads about a bad argument.

Every sentence names the argument, the constraint, the value received and where. Rows count from 0, and say so.
"""

import difflib
import math
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.errors import InputError

Floats = npt.NDArray[np.float64]

_SMALLEST_ERROR = 1e-12
_ROOMS = ("auditor.sensitivity", "auditor.theory")

__all__ = [
    "at_least",
    "confidence",
    "fraction",
    "instance",
    "known",
    "loss_vector",
    "membership",
    "nonnegative",
    "number",
    "positive",
    "same_length",
]


def number(name: str, value: object) -> float:
    """Return a finite real number."""
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {value!r}.") from None
    except OverflowError:
        raise InputError(f"{name} must be finite, got an integer too large for a float.") from None
    if not math.isfinite(result):
        raise InputError(f"{name} must be finite, got {result}.")
    return result


def positive(name: str, value: object) -> float:
    """Return a number above 0."""
    result = number(name, value)
    if result <= 0:
        raise InputError(f"{name} must be above 0, got {result:g}.")
    return result


def nonnegative(name: str, value: object) -> float:
    """Return a number of 0 or more."""
    result = number(name, value)
    if result < 0:
        raise InputError(f"{name} must be 0 or more, got {result:g}.")
    return result


def at_least(name: str, value: object, *, least: int) -> int:
    """Return a whole number of ``least`` or more."""
    result = number(name, value)
    if result != int(result) or result < least:
        raise InputError(f"{name} must be a whole number of {least} or more, got {value!r}.")
    return int(result)


def fraction(name: str, value: object, *, zero: bool = False, one: bool = False) -> float:
    """Return a number in (0, 1), the ends included as asked."""
    result = number(name, value)
    low = result > 0 or (zero and result == 0)
    high = result < 1 or (one and result == 1)
    if not (low and high):
        interval = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise InputError(f"{name} must lie in {interval}, got {result:g}.")
    return result


def confidence(value: object) -> float:
    """Return a level in (0, 1) whose error is still far above the rounding of 1."""
    level = fraction("confidence", value)
    if 1 - level < _SMALLEST_ERROR:
        raise InputError(f"confidence must be at most 1 - {_SMALLEST_ERROR:g}, got {level!r}.")
    return level


def instance(name: str, value: object, kinds: Sequence[type]) -> None:
    """Refuse a value of another type than these: a choice is a value, not its name or its class."""
    if isinstance(value, tuple(kinds)):
        return
    wanted = " or ".join("None" if kind is type(None) else _public(kind) for kind in kinds)
    if isinstance(value, type) and value in kinds:
        raise InputError(
            f"{name} must be an instance, got the class {value.__name__}; write {value.__name__}(...)."
        )
    raise InputError(f"{name} must be {wanted}, got {reprlib.repr(value)}.")


def _public(kind: type) -> str:
    """Where a caller finds a type: in the package, or in one of its rooms."""
    room = ".".join(kind.__module__.split(".")[:2])
    return f"{room if room in _ROOMS else 'auditor'}.{kind.__name__}"


def known(name: str, value: object, options: Iterable[str]) -> str:
    """Return a value that is one of the options, or name the nearest."""
    listed = list(options)
    if isinstance(value, str) and value in listed:
        return value
    if not isinstance(value, str):
        raise InputError(f"{name} must be one of {', '.join(map(repr, listed))}, got {value!r}.")
    nearest = difflib.get_close_matches(value, listed, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    raise InputError(f"{name} must be one of {', '.join(map(repr, listed))}, got {value!r}{hint}")


def _first_bad(bad: npt.NDArray[np.bool_]) -> str:
    return f"first at row {int(np.argmax(bad))}, counting from 0"


def loss_vector(name: str, values: object, *, least: int = 2) -> Floats:
    """Return a fresh, read-only, finite 1-D float64 array with at least ``least`` entries."""
    if np.ma.is_masked(values):
        raise InputError(f"{name} losses are masked; remove the masked records first.")
    try:
        raw = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} losses must be one-dimensional, got rows of different lengths.") from None
    if raw.dtype.kind not in "fiub":
        raise InputError(
            f"{name} losses must be numbers, got an array of type {raw.dtype}; convert the column first."
        )
    if raw.ndim != 1:
        raise InputError(f"{name} losses must be one-dimensional, got shape {raw.shape}.")
    if raw.size < least:
        raise InputError(
            f"{name} losses need at least {least} records, got {raw.size}; is the group or the file empty?"
        )
    # Copied, so that nobody can change it later, unless it already owns its memory and nobody can.
    kept = raw.dtype == np.float64 and raw.flags.owndata and not raw.flags.writeable
    array = raw if kept else np.array(raw, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if not np.isfinite(total):  # one pass over good data; the slow look only at bad data
        kinds = (("NaN", np.isnan(array)), ("infinite values", np.isinf(array)))
        for kind, bad in kinds:
            if bad.any():
                raise InputError(
                    f"{name} losses must be finite, got {int(bad.sum())} {kind} ({_first_bad(bad)});"
                    " remove those records or mend the loss."
                )
    array.setflags(write=False)
    return array


def membership(name: str, values: object) -> npt.NDArray[np.bool_]:
    """Return a boolean array from a 0/1 column of any numeric type."""
    raw = np.asarray(values)
    if raw.dtype.kind == "b":
        return raw
    if raw.dtype.kind not in "fiu":
        try:
            raw = raw.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"{name} must hold only 0 and 1, got an array of type {raw.dtype}; {CODING}."
            ) from None
    bad = (raw != 0) & (raw != 1)
    if bad.any():
        value = raw[int(np.argmax(bad))]
        raise InputError(
            f"{name} must hold only 0 (non-member) and 1 (member), got {value!s} and"
            f" {int(bad.sum())} such values in all ({_first_bad(bad)}); {CODING}."
        )
    return np.asarray(raw == 1)


def same_length(names: Sequence[str], lengths: Sequence[int]) -> None:
    """Refuse columns of different lengths."""
    if len(set(lengths)) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in zip(names, lengths, strict=True))
        raise InputError(f"columns must have the same length: {listed}.")


def finite_column(place: str, values: object, *, rows: str = "counting from 0") -> Floats:
    """Return a finite 1-D float64 column; ``place`` names it and ``rows`` says how its rows are counted."""
    raw = column(place, values)
    if raw.dtype.kind not in "fiub":
        raise InputError(
            f"{place} must hold numbers, got an array of type {raw.dtype}; convert the column first."
        )
    if raw.size == 0:
        raise InputError(f"{place} is empty; at least 2 members and 2 non-members are needed.")
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.asarray(raw, dtype=np.float64)
        total = array.sum()
    if not np.isfinite(total):
        for kind, bad in (("NaN or blank", np.isnan(array)), ("infinite", np.isinf(array))):
            if bad.any():
                raise InputError(
                    f"{place} must hold finite losses, got {int(bad.sum())} {kind} (first at row"
                    f" {int(np.argmax(bad))}, {rows}); remove those records or mend the loss."
                )
    return array


def column(place: str, values: object) -> npt.NDArray[Any]:
    """Return a 1-D array of any type; rows of different lengths and masked values are refused."""
    try:
        raw = np.asarray(values)
    except ValueError:
        raise InputError(f"{place} must be one-dimensional, got rows of different lengths.") from None
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"{place} must be an array, got {type(values).__name__}: {one_line(error)}."
        ) from error
    if raw.ndim != 1:
        raise InputError(f"{place} must be one-dimensional, got shape {raw.shape}.")
    if np.ma.is_masked(values):
        masked = np.ma.getmaskarray(np.ma.asarray(values))
        raise InputError(
            f"{place} must have no masked values, got {int(masked.sum())} ({_first_bad(masked)});"
            " remove those records or fill them in."
        )
    return raw


def column_name(name: str, *, what: str, file: str, options: Sequence[str], hint: str = "") -> str:
    """Return the name of a column that the file has exactly once, or list what it has and name the nearest.

    The hint, if there is one, stands in place of the advice to name the column of ``what``.
    """
    if options.count(name) == 1:
        return name
    if name in options:
        raise InputError(f"{file} has {options.count(name)} columns named {name!r}; give each its own name.")
    lowered = {option.casefold(): option for option in reversed(options)}
    nearest = difflib.get_close_matches(name.casefold(), list(lowered), n=1)
    guess = f"; did you mean {lowered[nearest[0]]!r}?" if nearest else "."
    shown = ", ".join(map(repr, options[:_SHOWN])) + (", ..." if len(options) > _SHOWN else "")
    advice = hint or f"Name the column of {what} if it is called otherwise."
    raise InputError(f"column {name!r} is not in {file}, which has {shown or 'no columns'}{guess} {advice}")


def one_line(error: Exception, *, longest: int = 300) -> str:
    """Return what an exception says, on one printable line and without the full stop."""
    words = " ".join(str(error).split())[:longest].rstrip(".")
    return "".join(sign if sign.isprintable() else "?" for sign in words)


CODING = "code members as 1 and non-members as 0"
_SHOWN = 20  # names listed before the rest are left out
