"""Argument checks: the only source of the sentences about a bad argument.

Every sentence names the argument, the constraint, the value received and where. Rows count from 0, and say so.
"""

import difflib
import math
import re
import reprlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.core.errors import AuditorError, InputError
from auditor.core.numbers import LEAST_SHOWN

_Floats = npt.NDArray[np.float64]
_SMALLEST_ERROR = 1e-12
CODING = "code members as 1 and non-members as 0"
_SHOWN = 20  # names listed before the rest are left out


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


def enough_to_share(name: str, count: int, disclosure: str) -> None:
    """Refuse a result that may be shared of fewer than 10 records.

    >>> enough_to_share("member losses", 4, "public")
    Traceback (most recent call last):
    auditor.core.errors.InputError: member losses must be of at least 10 records or people in a result that may be shared, got 4; audit more, or ask for a result for insiders (disclosure='insiders').
    """
    if disclosure == "public" and count < LEAST_SHOWN:
        raise InputError(
            f"{name} must be of at least {LEAST_SHOWN} records or people in a result that may be shared, got {count}; audit more, or ask for"
            " a result for insiders (disclosure='insiders')."
        )


def fraction(name: str, value: object, *, zero: bool = False, one: bool = False) -> float:
    """Return a number in (0, 1), including the ends if allowed."""
    result = number(name, value)
    low = result > 0 or (zero and result == 0)
    high = result < 1 or (one and result == 1)
    if not (low and high):
        interval = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise InputError(f"{name} must lie in {interval}, got {result:g}.")
    return result


def numbers(name: str, values: npt.ArrayLike, good: Callable[[_Floats], Any], words: str) -> _Floats:
    """Return an array of numbers that are all good, or name the first that is not; it must ``words``."""
    try:
        result = np.asarray(detached(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, got {values!r:.80}.") from None
    wrong = np.ravel(~good(result))
    if wrong.any():
        at = int(np.argmax(wrong))
        where = f" at position {at}, counting from 0" if result.ndim else ""
        raise InputError(f"{name} must {words}, got {result.ravel()[at]:g}{where}.")
    return result


def confidence(value: object) -> float:
    """Return a level in (0, 1) whose error is still far above the rounding of 1."""
    level = fraction("confidence", value)
    if 1 - level < _SMALLEST_ERROR:
        raise InputError(f"confidence must be at most 1 - {_SMALLEST_ERROR:g}, got {level!r}.")
    return level


def of_one_look(level: object, looks: object) -> float:
    """Return the level of each of so many looks that together hold at this one: they share the error.

    >>> round(of_one_look(0.95, 5), 12)
    0.99
    """
    return confidence(1 - (1 - confidence(level)) / at_least("looks", looks, least=1))


def several_looks(looks: int) -> dict[str, int]:
    """Return the declared number of looks as data of a result, which says so where there are several."""
    return {"looks": looks} if looks > 1 else {}


def instance(name: str, value: object, kinds: Sequence[type]) -> None:
    """Refuse a value of another type than these: a choice is a value, not its name or its class."""
    if isinstance(value, tuple(kinds)):
        return
    wanted = " or ".join("None" if kind is type(None) else _public(kind) for kind in kinds)
    if isinstance(value, type) and value in kinds:
        raise InputError(
            f"{name} must be an instance, got the class {value.__name__}; write {value.__name__}(...)."
        )
    fix = "; write auditor.StatedClaim(epsilon=..., delta=...)" if "StatedClaim" in wanted else ""
    raise InputError(f"{name} must be {wanted}, got {reprlib.repr(value)}{fix}.")


def _public(kind: type) -> str:
    """Return the public path of a type: in the package, in one of its rooms, or in its module."""
    if kind.__module__ == "builtins":
        return kind.__name__
    top = sys.modules["auditor"]
    rooms = [top, *(getattr(top, name) for name in dir(top) if name not in top.__all__)]
    home = next((room for room in rooms if kind.__name__ in getattr(room, "__all__", ())), None)
    return f"{home.__name__ if home else kind.__module__}.{kind.__name__}"


def is_a(model: Any, package: str, name: str) -> bool:
    """Return whether an object's class descends from a class of that name in that package, without importing it."""
    return any(
        cls.__name__ == name and cls.__module__.partition(".")[0] == package for cls in type(model).__mro__
    )


def one_of(name: str, value: object, options: Iterable[str]) -> str:
    """Return a value that is one of the options, or name the nearest."""
    listed = list(options)
    if isinstance(value, str) and value in listed:
        return value
    hint = did_you_mean(nearest(value, listed)) if isinstance(value, str) else "."
    raise InputError(f"{name} must be one of {', '.join(map(repr, listed))}, got {value!r}{hint}")


def nearest(word: str, options: Iterable[str]) -> str | None:
    """Return the option that somebody may have meant, if one is like the word: about two slips away."""
    cutoff = 0.5 if len(word) < 5 else 0.6  # noqa: PLR2004 - letters, of which two slips are half
    return next(iter(difflib.get_close_matches(word, list(options), n=1, cutoff=cutoff)), None)


def did_you_mean(option: str | None) -> str:
    """Return the end of a sentence about an unknown word: the nearest option, or a full stop where there is none."""
    return "." if option is None else f"; did you mean {option!r}?"


class Rows(NamedTuple):
    """Rows as error sentences count them: those of a file with a header as an editor or a spreadsheet shows them.

    Attributes:
        words: How they are counted.
        first: The number of the first of them.

    >>> FROM_ZERO.at(7), WITH_HEADER.at(7), FROM_ZERO.after(100).at(7)
    ('row 7, counting from 0', 'row 9, the header being row 1', 'row 107, counting from 0')
    """

    words: str = "counting from 0"
    first: int = 0

    def at(self, row: int) -> str:
        """Return which row one of them is."""
        return f"row {self.first + row}, {self.words}"

    def after(self, start: int) -> "Rows":
        """Return the rows from this one on."""
        return self._replace(first=self.first + start)


FROM_ZERO, WITH_HEADER = Rows(), Rows("the header being row 1", first=2)


def _first_bad(bad: npt.NDArray[np.bool_], rows: Rows = FROM_ZERO) -> str:
    return f"first at {rows.at(int(np.argmax(bad)))}"


SURROGATE = re.compile("[\ud800-\udfff]")  # half of a pair, which no UTF-8 holds
_EXACT = 2**53  # from here on a float64 stands for several whole numbers


def _numeric(said: str, raw: npt.NDArray[Any], rows: Rows = FROM_ZERO) -> npt.NDArray[Any]:
    """Refuse losses that are no numbers, or whole numbers that float64 cannot hold."""
    if raw.dtype.kind == "b":
        fix = "give the losses themselves; membership stands beside them, as in auditor.collectors.from_columns(loss, member=...)"
        raise InputError(f"{said}, got truth values (an array of type bool); {fix}.")
    if raw.dtype.kind not in "fiu":
        raise InputError(f"{said}, got an array of type {raw.dtype}; convert the column first.")
    if raw.dtype.kind in "iu" and raw.dtype.itemsize == 8:  # noqa: PLR2004 - narrower ones are held
        bad = np.abs(raw.astype(np.float64)) >= _EXACT
        if bad.any():
            raise InputError(
                f"{said} that float64 holds exactly, integers below 2^53, got {raw[int(np.argmax(bad))]}"
                f" ({_first_bad(bad, rows)}); give them as floats, or on another scale."
            )
    return raw


def _finite(said: str, values: npt.NDArray[Any], kinds: tuple[str, str], rows: Rows = FROM_ZERO) -> _Floats:
    """Return float64 numbers, of which none is missing or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.asarray(values, dtype=np.float64)
        total = array.sum()
    if not np.isfinite(total):  # one pass over good data; the slow look only at bad data
        for kind, bad in zip(kinds, (np.isnan(array), np.isinf(array)), strict=True):
            if bad.any():
                raise InputError(
                    f"{said}, got {int(bad.sum())} {kind} ({_first_bad(bad, rows)}); remove those records or correct the loss."
                )
    return array


def loss_vector(name: str, values: object, *, least: int = 2) -> _Floats:
    """Return a fresh, read-only, finite 1-D float64 array with at least ``least`` entries."""
    raw = _numeric(f"{name} losses must be numbers", column(f"{name} losses", values))
    if raw.size < least:
        raise InputError(
            f"{name} losses need at least {least} records, got {raw.size}; is the group or the file empty?"
        )
    # Copied, so that nobody can change it later, unless it already owns its memory and nobody can.
    is_own = raw.dtype == np.float64 and raw.flags.owndata and not raw.flags.writeable
    own = raw if is_own else np.array(raw, dtype=np.float64)
    array = _finite(f"{name} losses must be finite", own, ("NaN", "infinite values"))
    array.setflags(write=False)
    return array


def coin_column(place: str, values: object, *, rows: Rows = FROM_ZERO) -> _Floats:
    """Return a column of probabilities of coins that can fall both ways: 1-D, float64, in (0, 1)."""
    raw = np.asarray(_numeric(f"{place} must hold numbers", column(place, values), rows), dtype=np.float64)
    possible = (raw > 0) & (raw < 1)
    if not possible.all():
        at = int(np.argmin(possible))
        raise InputError(
            f"{place} must lie in (0, 1), got {raw[at]:g} (first at {rows.at(at)}); leave out the records whose membership no"
            " coin decided."
        )
    return raw


def pair(name: str, value: object, *, of: str = "") -> tuple[Any, Any]:
    """Return the two values, for the members and for the non-members."""
    if not isinstance(value, tuple | list) or len(value) != 2:  # noqa: PLR2004
        raise InputError(f"{name} must be a pair (members, non-members){of}, got {type(value).__name__}.")
    return value[0], value[1]


def same_length(names: Sequence[str], lengths: Sequence[int]) -> None:
    """Refuse columns of different lengths."""
    if len(set(lengths)) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in zip(names, lengths, strict=True))
        raise InputError(f"columns must have the same length: {listed}.")


def finite_column(place: str, values: object, *, rows: Rows = FROM_ZERO) -> _Floats:
    """Return a finite 1-D float64 column; ``place`` names it, and ``rows`` says how its rows are counted."""
    raw = _numeric(f"{place} must hold numbers", column(place, values), rows)
    if raw.size == 0:
        raise InputError(f"{place} is empty; at least 2 members and 2 non-members are needed.")
    return _finite(f"{place} must hold finite losses", raw, ("NaN or blank", "infinite"), rows)


def detached(values: Any) -> Any:
    """Return tensors of PyTorch, which may require gradients, as arrays, also those in a list; anything else as it is."""
    if isinstance(values, list | tuple) and any(hasattr(value, "detach") for value in values):
        return [detached(value) for value in values]
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def array(place: str, values: Any) -> npt.NDArray[Any]:
    """Return an array; of a list with text in it the cells as they are, for NumPy would make one width and type of them.

    >>> array("y", ["a", 1])
    array(['a', 1], dtype=object)
    """
    if isinstance(values, str | bytes | dict | set):
        raise InputError(f"{place} must be an array or a list, got {type(values).__name__}.")
    if np.ma.is_masked(values):
        masked = np.ma.getmaskarray(np.ma.asarray(values))
        raise InputError(
            f"{place} must have no masked values, got {int(masked.sum())} ({_first_bad(masked)});"
            " remove those records or fill them in."
        )
    with_text = isinstance(values, list | tuple) and any(isinstance(value, str | bytes) for value in values)
    try:
        values = detached(values)
        result = np.asarray(values, dtype=object if with_text else None)
        as_given = result.dtype.kind not in "US" or isinstance(values, np.ndarray)
        return result if as_given else np.asarray(values, dtype=object)
    except ValueError:
        raise InputError(f"{place} must hold rows of equal length, got rows of different lengths.") from None
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"{place} must be an array, got {type(values).__name__}: {one_line(error)}."
        ) from error


def label_column(place: str, values: Any, *, rows: Rows = FROM_ZERO) -> npt.NDArray[Any]:
    """Return a column of labels (ids, groups, people): one value for each record, all distinct when written as text; read-only."""
    raw = column(place, values)
    if raw.flags.writeable:
        raw = raw.view()
        raw.setflags(write=False)
    if raw.dtype.kind == "V":
        raise InputError(
            f"{place} must hold one value for each record, got {raw.dtype}; give one of its fields."
        )
    if raw.dtype.kind == "f":
        blurred = np.abs(raw) >= _EXACT
        if blurred.any() and not np.isinf(raw[blurred]).all():
            at = int(np.argmax(blurred))
            raise InputError(
                f"{place} must hold numbers below 2^53 where they are floats, got {raw[at]:.17g} (first at"
                f" {rows.at(at)}), which stands for several whole numbers; write them as text, or as"
                " integers without gaps."
            )
    return raw


def column(place: str, values: object) -> npt.NDArray[Any]:
    """Return a 1-D array of any type; rows of different lengths and masked values are refused."""
    raw = array(place, values)
    if raw.ndim != 1:
        flat = raw.ndim == 2 and 1 in raw.shape  # noqa: PLR2004
        fix = "flatten it with np.ravel" if flat else "give one value for each record"
        raise InputError(f"{place} must be one-dimensional, got shape {raw.shape}; {fix}.")
    return raw


def column_name(name: str, *, what: str, file: str, options: Sequence[str], hint: str = "") -> str:
    """Return the name of a column that the file has exactly once, or list its columns and name the nearest.

    The hint, if there is one, stands in place of the advice to name the column of ``what``.
    """
    if options.count(name) == 1:
        return name
    if name in options:
        raise InputError(f"{file} has {options.count(name)} columns named {name!r}; give each its own name.")
    lowered = {option.casefold(): option for option in reversed(options)}
    guess = did_you_mean(lowered.get(nearest(name.casefold(), lowered) or ""))
    columns = ", ".join(map(repr, options[:_SHOWN])) + (", ..." if len(options) > _SHOWN else "")
    advice = hint or f"Name the column of {what} if it is called otherwise."
    raise InputError(f"column {name!r} is not in {file}, which has {columns or 'no columns'}{guess} {advice}")


def one_line(error: Exception, *, longest: int = 300) -> str:
    """Return the message of an exception, on one printable line and without the full stop."""
    words = " ".join(str(error).split())[:longest].rstrip(".")
    return "".join(sign if sign.isprintable() else "?" for sign in words)


def own_words(error: Exception) -> str:
    """Return the message of an error on one line, without the places in a library's source; its class if it has none."""
    words = re.sub(
        r"^(\[[\d:]+\] )?\S+\.(cc|cpp|cu|h|py):\d+: |\s*Stack trace:.*", "", str(error), flags=re.DOTALL
    )
    return one_line(Exception(words)) or type(error).__name__


_Reason = Callable[[Exception], str]


@contextmanager
def explained(
    sentence: str, *, reason: _Reason = own_words, kinds: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Turn an exception of a model into one sentence that ends in its reason, and keep the cause.

    Args:
        sentence: Description of the failure: "member X must suit the model, but Net refused it".
        reason: Function from an error to its message; default its own words, or its class if it has none.
        kinds: Classes of the exceptions; those of this package pass.
    """
    try:
        yield
    except AuditorError:
        raise
    except kinds as error:
        raise InputError(f"{sentence}: {reason(error)}.") from error


def with_kind(error: Exception) -> str:
    """Return the class of an error and its words, if it has any."""
    return ": ".join(filter(None, (type(error).__name__, one_line(error))))


# --- Size limits of results: pages of read results open, and no audit makes a result that reading would refuse ---

_TOP_RECORDS = 1_000
_NAME = 1_000  # characters of the name of a model, a way of training or a utility
_KEPT = 10_000  # characters of a command line or a source
_TEXT = 100_000  # characters of one text
_TEXTS = 300_000  # characters of all texts together; an audit of many classes has 50,000
_MOST = {
    "estimates": 500,
    "claims": 100,
    "comparisons": 1_000,
    "checks": 100,
    "slices": 1_000,
    "top_records": _TOP_RECORDS,
    "policies": 100,
    "curves": 50,
    "histograms": 10,
}
_SAME = 10  # curves of one name
_POINTS = 2_000  # of a curve or a histogram; an audit keeps some hundreds
_OF_A_SLICE = 20  # estimates
_LISTED = 20_000  # of anything else
_LEVELS = 40
_MANY = 200_000  # keys and values of an object
_CONTAINERS = frozenset((list, dict))


def name(said: str, value: object) -> None:
    """Refuse a name that no page could show.

    >>> name("model", "x" * 2000)
    Traceback (most recent call last):
    auditor.core.errors.InputError: model must have at most 1,000 characters, got 2,000.
    """
    if isinstance(value, str) and len(value) > _NAME:
        raise InputError(f"{said} must have at most {_NAME:,} characters, got {len(value):,}.")


def top_records(value: int) -> None:
    """Refuse a number of records to name that nobody would read."""
    if value > _TOP_RECORDS:
        raise InputError(
            f"top_records must be at most {_TOP_RECORDS:,}, got {value:,}; a ranking of"
            " all records (records) has no such limit."
        )


def shortened(text: str, *, most: int = _KEPT) -> str:
    """Return a text without its middle, if it is longer than anybody reads."""
    more = len(text) - most
    return text if more <= 0 else f"{text[: most // 2]} [{more:,} characters left out] {text[-most // 2 :]}"


def problem(raw: Mapping[str, Any]) -> str | None:
    """Return the part of a result, as plain dictionaries and lists of any content, that is larger than allowed; or None.

    >>> problem({"curves": [{"name": "gaussian", "fpr": [0.5] * 3000}]})
    'curves[0].fpr has 3,000 entries, more than 2,000'
    """
    names = [str(item.get("name")) for item in _listed(raw.get("curves")) if isinstance(item, dict)]
    for named, count in Counter(names).items():
        if count > _SAME:
            return f"there are {count:,} curves of the name {named[:40]!r}, more than {_SAME}"
    total = dict.fromkeys(raw, 0)
    waiting: list[tuple[str, str, int, Any]] = [
        (key, key[:40], 2, value if isinstance(value, list | dict) else [value]) for key, value in raw.items()
    ]
    while waiting:
        key, place, level, item = waiting.pop()
        inside = item if isinstance(item, list) else [*item, *item.values()]
        kinds = set(map(type, inside))
        texts = [len(text) for text in inside if isinstance(text, str)] if str in kinds else [0]
        fault = _fault(
            inside, most=_most(place, key) if inside is item else _MANY, level=level, text=max(texts)
        )
        if fault:
            return f"{place} {fault}"
        total[key] += sum(texts)
        if not _CONTAINERS.isdisjoint(kinds):
            waiting += [(key, place + end, level + 1, part) for end, part in _containers(item)]
    if sum(total.values()) <= _TEXTS:
        return None
    key = max(total, key=lambda key: total[key])
    return (
        f"its texts have {sum(total.values()):,} characters, most of them in {key[:40]}, more than {_TEXTS:,}"
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _containers(item: list[Any] | dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return the lists and objects in a list or an object, each with the end of its place."""
    if isinstance(item, dict):
        return [(f".{key[:40]}", part) for key, part in item.items() if type(part) in _CONTAINERS]
    return [(f"[{index}]", part) for index, part in enumerate(item) if type(part) in _CONTAINERS]


def _fault(inside: list[Any], *, most: int, level: int, text: int) -> str:
    """Return the first fault in the values of a list, or in the keys and values of an object; ``text`` is the longest."""
    if len(inside) > most:
        return f"has {len(inside):,} entries, more than {most:,}"
    if level > _LEVELS:
        return f"is nested more than {_LEVELS} levels deep"
    if text > _TEXT:
        return f"has a text of {text:,} characters, more than {_TEXT:,}"
    endless = math.inf in inside or -math.inf in inside
    return "has a number beyond the range of floats" if endless else ""


def _most(place: str, key: str) -> int:
    if place == key:
        return _MOST.get(key, _LISTED)
    if key in ("slices", "policies") and place.endswith("].estimates"):
        return _OF_A_SLICE
    return _POINTS if key in ("curves", "histograms") else _LISTED
