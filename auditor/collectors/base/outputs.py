"""Checked outputs of a model: probabilities, log-probabilities or logits, one row for each record."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from auditor.collectors.base.records import Records
from auditor.core import Array, Floats, InputError, Named, validate

_SUM_TOLERANCE = 1e-3  # a float32 softmax over many classes, or probabilities printed with three digits
_RANGE_TOLERANCE = 1e-6  # averages of float32 probabilities may leave [0, 1] by a rounding error
_WIDENED_EPS = {"bfloat16": 2.0**-7}  # of the types that numpy does not have
_DECIMALS, _FIRST = 7, 256  # the most decimals of rounded outputs; numbers that say so of most that are not
_FALLING = 5  # rows that say so beside another error
NAME_SCORES = (
    "name the class of each score: return a DataFrame whose columns are named after the classes, or from a server an object"
    " {class: score} for each record"
)
_NO_LOGITS = "they are probabilities: pass output=Output.PROBABILITIES (--output probabilities)"
_LOGITS_HINT = "if the model returns logits, pass output=Output.LOGITS"
_RANGE_HINT = (
    "return a probability for each class and not a predicted label, and divide percents by 100; if the model returns logits or log-probabilities, pass"
    " output=Output.LOGITS or output=Output.LOG_PROBABILITIES"
)
_SUM_HINT = (
    "pass a function that calls the model and divides each row by its sum (a row of zeros, as of one-vs-rest, becomes equal"
    " shares), or task=MultiLabel() if each column is a label; of a function that returns logits, pass output=Output.LOGITS; of a"
    " table of outputs, name the column of each class (features, --features)"
)


class Output(Named):
    """Kind of output that a predict callable returns for each record.

    >>> Output("logits") is Output.LOGITS
    True
    """

    PROBABILITIES = "probabilities"
    LOG_PROBABILITIES = "log-probabilities"
    LOGITS = "logits"


class Widened(np.ndarray[Any, np.dtype[Any]]):
    """Array of numbers with further facts; slices keep the facts.

    Attributes:
        of: The type that they came in, where numpy does not have it; these are of one that holds them all.
        classes: The class of each column, where the columns had names.
        shortest: Number of classes in the shortest answer; 0 if each names all.

    >>> resolution(Widened(np.ones((2, 3), dtype=np.float32), of="bfloat16")[:1, 0])
    0.0078125
    """

    of: str = ""
    classes: Sequence[Any] = ()
    shortest: int = 0

    def __new__(cls, values: Array, **facts: Any) -> Self:
        """Return the same numbers, not copied."""
        own = values.view(cls)
        vars(own).update(facts)
        return own

    def __array_finalize__(self, source: Any) -> None:
        vars(self).update(getattr(source, "__dict__", {}))


def shaped_outputs(outputs: Any, records: Records) -> Array:
    """Return the outputs of n records as an array of shape (n, K), K >= 2, or (n,) for the second of two classes."""
    n, place = len(records), records.name
    if np.ma.is_masked(outputs):
        raise InputError(f"{place} outputs must be numbers, got masked values; fill them in.")
    must = f"{place} outputs must be numbers in rows of equal length, got {type(outputs).__name__}"
    with validate.explained(must, reason=validate.one_line):
        raw = outputs if isinstance(outputs, Widened) else np.asarray(validate.detached(outputs))
        raw = raw.astype(np.float64) if raw.dtype.kind == "O" else raw
    if raw.dtype.kind not in "fiub":
        raise InputError(
            f"{place} outputs must be numbers, got an array of type {raw.dtype}; return a probability for each"
            " class, not the predicted label."
        )
    if raw.ndim == 2 and raw.shape[1] == 1:  # noqa: PLR2004
        raw = raw[:, 0]
    if raw.ndim not in (1, 2) or raw.shape[0] != n or raw.size == 0:
        raise InputError(
            f"{place} outputs must have one row for each of {n} records, shape ({n}, classes) or ({n},),"
            f" got shape {np.shape(outputs)}."
        )
    return raw


def resolution(outputs: Array) -> float:
    """Return the spacing of the source's floats near 1; whole numbers count as float64."""
    own = outputs.dtype if outputs.dtype.kind == "f" else np.float64
    return _WIDENED_EPS.get(type_name(outputs), float(np.finfo(own).eps))


def type_name(outputs: Array) -> str:
    """Return the name of the type that numbers came in.

    >>> type_name(np.ones(3)), type_name(Widened(np.ones(3), of="bfloat16"))
    ('float64', 'bfloat16')
    """
    return (outputs.of if isinstance(outputs, Widened) else "") or str(outputs.dtype)


def checked_outputs(outputs: Array, *, output: Output, records: Records, start: int = 0) -> Floats:
    """Return a fresh float64 copy of valid outputs of the records from ``start`` on.

    Raises:
        InputError: Outputs that contradict ``output``; the sentence names the first row.

    >>> thirds = np.array([[0.33, 0.33, 0.33]])  # rounded to two decimals
    >>> checked_outputs(thirds, output=Output.PROBABILITIES, records=Records("member", [], np.zeros(1))).sum().round(2)
    np.float64(0.99)
    """
    with np.errstate(over="ignore"):
        values = np.array(outputs, dtype=np.float64)
    refuse = partial(records.refuse, start=start)
    refuse(np.isnan(values), "outputs must be numbers", got=values, fix="fix the model's input")
    if output is Output.LOGITS:
        bad = np.full(values.shape, _are_probabilities(values, outputs))
        refuse(bad, "outputs must be logits, not rows in [0, 1] that sum to 1", got=values, fix=_NO_LOGITS)
        return values
    if output is Output.PROBABILITIES:
        bad = (values < -_RANGE_TOLERANCE) | (values > 1 + _RANGE_TOLERANCE)
        refuse(bad, "outputs must be probabilities in [0, 1]", got=values, fix=_RANGE_HINT)
        np.clip(values, 0, 1, out=values)
    else:
        bad = values > _SUM_TOLERANCE
        refuse(bad, "outputs must be log-probabilities, 0 or less", got=values, fix=_LOGITS_HINT)
    if values.ndim == 1:
        return np.minimum(values, 0) if output is Output.LOG_PROBABILITIES else values
    # Only ratios of probabilities enter the loss, so a sum within the tolerance changes nothing.
    logs = output is Output.LOG_PROBABILITIES
    sums = (np.exp(values) if logs else values).sum(axis=1)
    bad = np.abs(sums - 1) > sum_tolerance(outputs, logs=logs)
    fix = sorted_hint(values) or _SUM_HINT
    refuse(bad, "outputs must have probabilities that sum to 1 in each row", got=sums, fix=fix)
    return values


def _are_probabilities(values: Floats, outputs: Array) -> bool:
    """Return whether all values lie in [0, 1] in rows that sum to 1; one row may do so by chance."""
    if values.ndim < 2 or len(values) < 2 or not in_range(values):  # noqa: PLR2004
        return False
    return bool((np.abs(values.sum(axis=1) - 1) <= sum_tolerance(outputs)).all())


def sum_tolerance(outputs: Array, *, logs: bool = False) -> float:
    """Return how far from 1 the probabilities of a record may sum up to.

    Each of K probabilities that were rounded is off by half a unit of the last decimal at most, so that their sum is off
    by K/2 units; of their rounded logarithms each probability is off by that share of itself, and so is the sum.
    """
    places = decimals(outputs)
    half = 0.0 if places is None else 0.5 * 10.0**-places
    rounded = float(np.expm1(half)) if logs else outputs.shape[-1] * half
    return max(_SUM_TOLERANCE, 10 * resolution(outputs), rounded * (1 + _RANGE_TOLERANCE))


def decimals(outputs: Array) -> int | None:
    """Return how many decimals numbers have; None if they have more than seven, or all are whole.

    >>> decimals(np.array([0.25, 0.5])), decimals(np.array([0.0, 1.0])), decimals(np.array([1 / 3]))
    (2, None, None)
    """
    places, values, near = 0, outputs.ravel(), resolution(outputs)
    # More say nothing, for any number is near to one that has them.
    most = min(_DECIMALS, int(-np.log10(20 * near)))
    for part in (values[:_FIRST], values[_FIRST:]):
        some = part.astype(np.float64)[np.isfinite(part)] if places <= most else part[:0]
        size = near * np.maximum(1, np.abs(some))
        while places <= most and (np.abs(some - np.rint(some * 10.0**places) / 10.0**places) > size).any():
            places += 1
    return places if 0 < places <= most else None


def fall(values: Array, *, least: int) -> bool:
    """Return whether three scores or more fall, or rise, from left to right in each of so many rows, as sorted ones do."""
    if values.ndim < 2 or values.shape[1] < 3 or len(values) < least:  # noqa: PLR2004
        return False
    if (values[:_FIRST, 0] < values[:_FIRST, -1]).any():
        values = values[:, ::-1]
    return all((part[:, 1:] <= part[:, :-1]).all() for part in (values[:_FIRST], values))


def sorted_hint(values: Array) -> str:
    """Return the fix for scores that are sorted without their classes; nothing for others."""
    return NAME_SCORES if fall(values, least=_FALLING) else ""


def in_range(values: Floats) -> bool:
    """Return whether all values can be probabilities."""
    return bool(np.all((values >= -_RANGE_TOLERANCE) & (values <= 1 + _RANGE_TOLERANCE)))


# --- Are these the logits of those probabilities? Checked before an output that keeps going replaces one that rounds ---


_TOLERANCE = 1e-6  # relative, on probabilities
_PINNED = 1e-3  # a probability known more coarsely than this (relative) says nothing about a logit


def agreement(logits: Array, *, probabilities: Array) -> bool | None:
    """Return whether softmax(logits) is the probabilities: no, yes, or None when rounding hides the answer.

    A probability p carries a rounding error of about eps, so log p is known to within 4 eps / p. Any entry further
    from log softmax than that says no. An entry of at most one half says yes if it is known well enough (to 0.1%),
    or if it agrees to full relative precision, as the small side of a sigmoid does far beyond eps.

    Args:
        logits: Shape (n, K), or (n,) for the second of two classes.
        probabilities: Shape (n, K), or (n,) for the second of two classes.
    """
    from scipy.special import log_softmax

    eps = max(resolution(probabilities), resolution(logits))
    chances = probabilities.astype(np.float64)
    if chances.ndim == 1:
        chances = np.stack([1 - chances, chances], axis=1)
    two = logits.ndim == 1 and chances.shape[1] == 2  # noqa: PLR2004
    if chances.ndim != 2 or (not two and logits.shape != chances.shape):  # noqa: PLR2004
        return False
    scores = logits.astype(np.float64)
    expected = log_softmax(np.stack([np.zeros_like(scores), scores], axis=1) if two else scores, axis=1)
    if not (np.isfinite(expected).all() and np.isfinite(chances).all()):
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.abs(np.log(chances) - expected)
        near = _TOLERANCE + 4 * eps * (8 + np.abs(expected))
        coarse = near + 4 * eps / chances
    if np.any(np.where(chances > 0, gap > coarse, expected > np.log(8 * eps))):
        return False
    evidence = (chances > 0) & (chances <= 0.5) & ((coarse < _PINNED) | (gap <= near))  # noqa: PLR2004
    return True if evidence.any() else None


def reproduces(
    logits_of: Callable[[Records], Any],
    probabilities_of: Callable[[Records], Any],
    sample: Sequence[Records],
    *,
    labels: bool = False,
) -> bool | None:
    """Return whether one output of a model gives the logits of the other on some records: no, yes, or None as above.

    Whatever goes wrong with the logits says no, for the probabilities remain.

    Args:
        logits_of: Function from records to possible logits.
        probabilities_of: From records to the probabilities, in the same shape.
        sample: The records.
        labels: Whether each column is a label of two classes: each must then be reproduced by its own sigmoid.
    """
    answers = []
    for part in sample:
        probabilities = np.asanyarray(probabilities_of(part))
        try:
            logits = np.asanyarray(logits_of(part))
        except Exception:  # noqa: BLE001 - in whatever way
            return False
        if labels and (logits.shape != probabilities.shape or logits.ndim != 2):  # noqa: PLR2004
            return False
        pairs = zip(logits.T, probabilities.T, strict=True) if labels else [(logits, probabilities)]
        answers.append([agreement(own, probabilities=chances) for own, chances in pairs])
    if any(False in answer for answer in answers):
        return False
    return True if all(True in column for column in zip(*answers, strict=True)) else None
