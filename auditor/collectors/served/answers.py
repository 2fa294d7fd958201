"""What an answer holds: numbers with one row for each record, or what stands in their way."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.served.messages import short

__all__ = ["UnusableError", "chosen", "narrowed", "numbers", "rows_of"]

# What servers call the probabilities among several outputs, the surest first.
PROBABILITIES = (
    *("predict_proba", "probabilities", "probability", "output_probability", "probs", "proba", "prob"),
    *("softmax", "scores"),
)
_SHOWN = 10
_SINGLE_MOST = 1e30
_LOOKED = 4096  # numbers of a batch that are looked at
_LONG = 7  # significant digits from which on a decimal shows what it was rounded to: float32 has seven
_EVIDENCE = 64  # numbers of a batch that say how many digits the model has


class UnusableError(Exception):
    """An answer that cannot be used: what it is, and what helps."""

    def __init__(self, words: str, *, fix: str) -> None:
        super().__init__(words)
        self.words, self.fix = words, fix


def chosen(names: Sequence[str], *, wanted: str | None, probabilities: bool) -> str:
    """Return which of several outputs is meant.

    Args:
        names: What there is.
        wanted: What the caller asked for, if anything.
        probabilities: Whether probabilities are looked for.

    Raises:
        UnusableError: It cannot be told.

    >>> chosen(["label", "probabilities"], wanted=None, probabilities=True)
    'probabilities'
    """
    if wanted is not None and wanted in names:
        return wanted
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None and probabilities:
        lowered = {name.casefold(): name for name in reversed(names)}
        for name in PROBABILITIES:
            if name in lowered:
                return lowered[name]
    listed = ", ".join(repr(short(str(name), longest=60)) for name in names[:_SHOWN]) or "none"
    missing = "" if wanted is None else f", not {wanted!r}"
    raise UnusableError(
        f"answered with the outputs {listed}{missing}", fix="name the one to use with output_name="
    )


def rows_of(value: Any, *, wanted: str | None, probabilities: bool) -> Any:
    """Return the rows of an answer; objects of several outputs become the one that is meant.

    Objects whose values are all numbers are rows with a name for each column, as a table of probabilities by class.

    >>> rows_of([{"label": 1, "probs": [0.2, 0.8]}], wanted=None, probabilities=True)
    [[0.2, 0.8]]
    >>> rows_of([{"0": 0.2, "1": 0.8}], wanted=None, probabilities=True)
    [[0.2, 0.8]]
    """
    if isinstance(value, dict):  # columnar: one list for each output
        return value[chosen(list(value), wanted=wanted, probabilities=probabilities)]
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    names = list(value[0])
    if any(not isinstance(row, dict) or set(row) != set(names) for row in value):
        raise UnusableError("answered with rows of different outputs", fix="look into the server's log")
    plain = all(isinstance(cell, int | float) for cell in value[0].values())
    if plain and wanted is None and len(names) > 1 and not set(map(str.casefold, names)) & set(PROBABILITIES):
        return [[row[name] for name in names] for row in value]
    name = chosen(names, wanted=wanted, probabilities=probabilities)
    return [row[name] for row in value]


def numbers(value: Any, *, n: int) -> npt.NDArray[Any]:
    """Return rows as an array with one row for each of ``n`` records; of text where the server answers in text.

    ``null`` is no number and becomes NaN, which is refused by row later on.

    Raises:
        UnusableError: Rows of different lengths, or another number of them.

    >>> numbers([[0.25, None]], n=1)
    array([[0.25,  nan]])
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (ValueError, TypeError):
        raise UnusableError(
            "answered with what is no table of numbers",
            fix="check the protocol, and which part of the answer is used (output_name=, or the path of a template)",
        ) from None
    if array.ndim == 0 or len(array) != n:
        got = "no rows" if array.ndim == 0 else f"{len(array)} rows"
        raise UnusableError(
            f"answered with {got} instead of {n}",
            fix="send one record at a time with max_request_records=1, or check the model's input shape",
        )
    if array.dtype.kind in "US":
        array = _from_text(value, array)
    return array.reshape(n, -1)[:, 0] if array.size == n else array


def _from_text(value: Any, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers that were written as text ("NaN" among numbers, or rows of several); single words stay labels."""
    words = array.size == len(array) and all(isinstance(row, str | list) for row in value)
    flat = [row[0] if isinstance(row, list) and len(row) == 1 else row for row in value] if words else []
    if words and all(isinstance(item, str) for item in flat):
        return array
    try:
        return array.astype(np.float64)
    except ValueError:
        raise UnusableError(
            "answered with text among its numbers", fix="name the output to use with output_name="
        ) from None


def narrowed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return float32 where the numbers of an answer are those of a float32 model, which JSON does not say.

    They are if each is exactly a float32, or the decimal (shortest, or of nine digits) that one is written as. Numbers
    that every type has, such as 0, 1 and 0.5, say nothing, and nor do short decimals such as 0.35, as a forest of a
    hundred trees gives. It matters where probabilities saturate.

    >>> narrowed(np.array([float(np.float32(0.1)), 1.0])).dtype, narrowed(np.array([0.1 + 1e-12])).dtype
    (dtype('float32'), dtype('float64'))
    """
    if values.dtype != np.float64:
        return values
    flat = values[(np.abs(values) < _SINGLE_MOST)]  # no NaN, and nothing that a float32 cannot hold
    looked = flat[flat * 4096 != np.round(flat * 4096)][:_LOOKED].tolist()
    telling = list(islice((value for value in looked if _digits(value) >= _LONG), _EVIDENCE))
    if telling and all(map(_is_single, telling)):
        return values.astype(np.float32)
    return values


def _digits(value: float) -> int:
    """Return how many significant digits the shortest decimal of a number has."""
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def _is_single(value: float) -> bool:
    single = np.float32(value)
    return value in (float(single), float(str(single)), float(f"{single:.9g}"))
