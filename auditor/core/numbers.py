"""Numbers as text, for every sentence that a reader sees: the same number is written the same way everywhere.

A lower bound is rounded down and an upper bound up, so that no sentence promises more than was certified.
"""

import dataclasses
import math
import re
import sys
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, TypeVar

MISSING = "—"
_ROUNDING = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "nearest": ROUND_HALF_EVEN}
_LARGE, _SMALL = 1e5, 1e-3  # outside of these a number is written with an exponent
_MOST_DIGITS = 17  # digits of a double
_LARGEST = sys.float_info.max
_GIVEN_DIGITS = 6  # more than people type
_Written = TypeVar("_Written")


def number(x: float | None, *, toward: str = "nearest", digits: int = 3) -> str:
    """Return a number with three significant digits; ``toward`` is ``down``, ``up`` or ``nearest``.

    >>> number(4.3771), number(2.2999, toward="down"), number(1e-5), number(None), number(float("inf"))
    ('4.38', '2.29', '1e-5', '—', '∞')
    """
    special = _special(x)
    if x is None or special is not None:
        return special or MISSING
    exact = Decimal(repr(float(x)))
    rounded = _rounded(exact, digits=digits, toward=toward)
    if not _SMALL <= abs(x) < _LARGE:
        mantissa, _, exponent = f"{rounded:e}".partition("e")
        return f"{_trimmed(mantissa)}e{int(exponent)}"
    text = f"{rounded:f}"
    return _trimmed(text) if rounded == exact else text


def rounded(x: float, *, toward: str, digits: int = 3) -> float:
    """Return a number of so many significant digits; one just below 1 keeps the digits of its distance to 1.

    >>> rounded(0.12345, toward="up"), rounded(-2.3456, toward="up"), rounded(0.99996, toward="nearest")
    (0.124, -2.34, 0.99996)
    """
    if _special(x) is not None:
        return x
    exact = Decimal(repr(float(x)))
    result = _rounded(exact, digits=digits, toward=toward)
    if result == 1 > exact and toward == "nearest":
        result = 1 - _rounded(1 - exact, digits=digits, toward=toward)
    return float(result)


def as_stated(x: float | None, *, digits: int = 3) -> str:
    """Return a claimed number as stated if six digits hold it; round a derived one like any other.

    >>> as_stated(2.01352), as_stated(2.0 / 3.0), as_stated(1e-5)
    ('2.01352', '0.667', '1e-5')
    """
    if x is None or _special(x) is not None:
        return number(x)
    exact = Decimal(repr(float(x)))
    whole = exact == _rounded(exact, digits=_GIVEN_DIGITS, toward="nearest")
    return number(x, digits=_GIVEN_DIGITS if whole else digits)


def percent(x: float | None, *, toward: str = "nearest") -> str:
    """Return a rate as a percentage, with three digits of its distance to 100% if that is below 0.1%.

    >>> percent(0.1234), percent(0.01), percent(0.99996), percent(1.0)
    ('12.3%', '1%', '99.996%', '100%')
    >>> percent(0.99999, toward="down"), percent(1 - 0.05 / 60, toward="down")
    ('99.999%', '99.9166%')
    """
    if _special(x) == "0":
        return "0%"
    if x is None or _special(x) is not None:
        return number(x)
    scaled = Decimal(repr(float(x))) * 100
    rest = 100 - scaled
    if 0 < rest < Decimal("0.1"):
        away = {"down": "up", "up": "down"}.get(toward, toward)
        return f"{_trimmed(f'{100 - _rounded(rest, digits=3, toward=away):f}')}%"
    rounded = _rounded(scaled, digits=2 if scaled < Decimal("0.001") else 3, toward=toward)
    return f"{_trimmed(f'{rounded:f}')}%"


def unit(x: float | None, *, toward: str = "nearest") -> str:
    """Return a number on the scale from 0 to 1, never rounding one below 1 to 1.

    >>> unit(0.5321), unit(0.99996), unit(1.0)
    ('0.532', '0.99996', '1')
    """
    if x is None or _special(x) is not None or abs(x) < _SMALL:
        return number(x, toward=toward)
    exact = Decimal(repr(float(x)))
    rounded = enough_digits(
        lambda digits: _rounded(exact, digits=digits, toward=toward), lambda value: value != 1 or exact == 1
    )
    return _trimmed(f"{rounded:f}") if rounded == exact else f"{rounded:f}"


def apart(claimed: float, bound: float) -> tuple[str, str]:
    """Return a claim and a bound, rounded down, with as many digits as it takes to see which is larger.

    >>> apart(3.0, 3.0004), apart(2.0136, 2.0138), apart(1.0, 4.516)
    (('3', '3.0004'), ('2.0136', '2.0138'), ('1', '4.51'))
    """
    order = _sign(claimed, bound)
    return enough_digits(
        lambda digits: (as_stated(claimed, digits=digits), number(bound, toward="down", digits=digits)),
        lambda texts: _sign(*map(_parsed, texts)) == order,
    )


def distinct(x: float, y: float) -> tuple[str, str]:
    """Return two different numbers with enough digits to distinguish them.

    >>> distinct(1e-5, 1.0004e-5)
    ('1e-5', '1.0004e-5')
    """
    return enough_digits(
        lambda digits: (as_stated(x, digits=digits), as_stated(y, digits=digits)),
        lambda texts: texts[0] != texts[1],
    )


def enough_digits(
    written: Callable[[int], _Written], enough: Callable[[_Written], bool], *, least: int = 3
) -> _Written:
    """Return the text with as few digits as are enough, from the least number of them on."""
    tried = map(written, range(least, _MOST_DIGITS + 1))
    return next(filter(enough, tried), written(_MOST_DIGITS))


def count(x: Any) -> str:
    """Return a whole number with separators; anything else as text.

    >>> count(12500), count(None), count("many")
    ('12,500', '—', 'many')
    """
    if x is None:
        return MISSING
    if isinstance(x, bool) or not isinstance(x, int | float) or not abs(x) <= _LARGEST:
        return str(x)
    return f"{x:,.0f}" if float(x).is_integer() else number(x)


LEAST_SHOWN = 10  # records that a view, or a number of records, must have to be shown to strangers


def about(records: int) -> str:
    """Return a number of records for a sentence that strangers may read: rounded to 5, and none below 10.

    >>> about(0), about(3), about(1234)
    ('no', 'fewer than 10', 'about 1,235')
    """
    if records == 0:
        return "no"
    return f"about {5 * round(records / 5):,}" if records >= LEAST_SHOWN else f"fewer than {LEAST_SHOWN}"


def _special(x: Any) -> str | None:
    if isinstance(x, bool) or not isinstance(x, int | float) or x != x:  # noqa: PLR0124 NaN, and no overflow
        return MISSING
    if abs(x) > _LARGEST:
        return "∞" if x > 0 else "−∞"  # noqa: RUF001 the true minus sign
    return "0" if x == 0 else None


def _rounded(x: Decimal, *, digits: int, toward: str) -> Decimal:
    return x.quantize(Decimal(1).scaleb(x.adjusted() - digits + 1), rounding=_ROUNDING[toward])


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _parsed(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf").replace(MISSING, "nan"))  # noqa: RUF001 as above


def _sign(low: float, high: float) -> int:
    return (high > low) - (high < low)


# --- Text from elsewhere, and numbers in it, as a reader should see them ---


# For a class of a regular expression: controls, halves of pairs, and what has no shape of its own, which are format
# characters (category Cf), fillers and selectors. The joiners are apart.
UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# The two joiners (U+200C, U+200D) stay where scripts need them and they are seen: after the sign that takes a vowel
# away in the scripts of India (a virama), and the first of them between Arabic letters that would else join.
_VIRAMAS, _INDIAN = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0c4d\u0ccd\u0d4d\u0dca", "\u0900-\u0dff"
_JOINING = "\u0626\u0628\u062a-\u062e\u0633-\u063a\u0641-\u0647\u0649\u064a\u0679\u067e\u0686\u06a9\u06af\u06be\u06c1\u06cc"
_JOINED = f"{_JOINING}\u0622-\u0625\u0627\u0629\u062f-\u0632\u0648\u0688\u0691\u0698\u06d2"
_APART = (
    f"(?<=[{_VIRAMAS}])\u200c(?=[{_INDIAN}])|(?<=[{_JOINING}])\u200c(?=[{_JOINED}])|(?<=[{_VIRAMAS}])\u200d"
)
# A number sign that begins a command of a build server, wherever it stands in a line.
COMMAND = r"(?i:#(?=#\[|#vso\[|#teamcity\[))"
_UNSAFE = re.compile(f"[{UNSEEN}]|(?!{_APART})[\u200c\u200d]|{COMMAND}")
_LONGEST, _HEAD, _TAIL = 4_000, 3_000, 500  # characters of one text
BRIEF = 2_000  # characters of one text in a short output: a name of a megabyte is no name
_NEARLY = 0.002  # a share of a number that nobody misses: 1 in 667 for 0.15%
_EXPONENT = re.compile(r"\b(\d+(?:\.\d+)?)e(?:\+|(-))0*(?=[1-9]\d*\b)")  # as Python writes them: 1e-05, 1e+16


def clean(text: object, *, most: int | None = None) -> str:
    r"""Return text in which every character that hides, or turns the direction, is visible, and the middle cut if endless.

    So is the sign that begins a command of a build server. Joiners stay where a script needs them.

    Args:
        text: Whatever was given, perhaps by strangers.
        most: Characters after which nobody reads on: the rest becomes an ellipsis.

    >>> clean("a\x00b\u202ec\u200bd")
    'a⟨U+0000⟩b⟨U+202E⟩c⟨U+200B⟩d'
    >>> clean("##vso[task.complete]")
    '⟨U+0023⟩#vso[task.complete]'
    >>> len(clean("x" * 1_000_000)), clean("x" * 1_000_000)[2995:3030]
    (3531, 'xxxxx ⟨996,500 characters left out⟩')
    >>> clean("abcdef", most=3)
    'abc…'
    """
    result = str(text)
    if most is not None and len(result) > most:
        result = f"{result[:most]}…"
    if len(result) > _LONGEST:
        left_out = len(result) - _HEAD - _TAIL
        result = f"{result[:_HEAD]} ⟨{left_out:,} characters left out⟩ {result[-_TAIL:]}"
    return _UNSAFE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", result)


_PLAIN = re.compile(r"[\w+/()@=:#&,-]+(?:[ .][\w+/()@=:#&,-]+)*")
_SPOKEN = 80  # characters of a name in a sentence


def quoted(name: object) -> str:
    """Return a name in quotation marks for a sentence, on one line, cut if it is long, with no such marks inside.

    >>> quoted("a” is private. “b")
    '“a" is private. "b”'
    """
    line = re.sub("[“”„«»‟]", '"', " ".join(str(name).split()))
    return f"“{line if len(line) <= _SPOKEN else line[: _SPOKEN - 1] + '…'}”"


def named(name: object) -> str:
    """Return a name for a sentence as it is, or in quotation marks where it could be taken for words of ours.

    >>> named("release 7.1"), named("B. No leakage found")
    ('release 7.1', '“B. No leakage found”')
    """
    line = str(name)
    return line if len(line) <= _SPOKEN and _PLAIN.fullmatch(line) else quoted(line)


def tidy(text: object) -> str:
    """Return quoted text with the numbers in it spelled as everywhere else on the page.

    >>> tidy("epsilon 1 at delta 1e-05")
    'epsilon 1 at delta 1e-5'
    """
    return _EXPONENT.sub(r"\1e\2", str(text))


def odds(rate: float) -> str:
    """Return a rate as "1 in 100", the way people speak of false alarms, or else as "40 out of 100".

    >>> odds(0.001), odds(0.4), odds(0.0015), odds(0.125), odds(0.123)
    ('1 false alarm in 1,000', 'a false alarm rate of 40 out of 100', '1 false alarm in 667', '1 false alarm in 8', 'a false alarm rate of 12.3%')
    """
    if not 0 < rate < 1:
        return f"a false alarm rate of {percent(rate)}"
    one, hundred = 1 / rate, 100 * rate
    if _is_whole(hundred) and not _is_whole(one):
        return f"a false alarm rate of {count(round(hundred))} out of 100"
    if one >= 2 and _is_whole(one, but=_NEARLY):  # noqa: PLR2004 - and not "1 in 1"
        return f"1 false alarm in {count(round(one))}"
    return f"a false alarm rate of {percent(rate)}"


def _is_whole(x: float, *, but: float = 1e-9) -> bool:
    return math.isclose(x, round(x), rel_tol=but)


def sentence(text: str) -> str:
    """Return text that starts with a capital letter and ends with a full stop.

    >>> sentence("not resolvable with 80 non-member records")
    'Not resolvable with 80 non-member records.'
    """
    text = tidy(text).strip()
    first = text[:1] if text.startswith("f-") else text[:1].upper()  # f-DP has a small f
    return text and first + text[1:] + ("" if text[-1] in ".!?" else ".")


# --- Values as JSON holds them. Infinite numbers are the strings ``inf`` and ``-inf``, missing ones null ---


def plain(value: Any) -> Any:
    """Return a JSON-like copy: enums as strings, arrays and tuples as lists, infinities as strings, NaN as null."""
    import numpy as np

    match value:
        case Mapping():
            result: Any = {str(key): plain(item) for key, item in value.items()}
        case np.ndarray() | list() | tuple():
            result = [plain(item) for item in value]
        case np.generic():
            result = plain(value.item())
        case float():
            result = _plain_float(value)
        case str():  # an enum's value too
            result = str(value)
        case _ if dataclasses.is_dataclass(value):
            result = {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
        case _:
            result = value
    return result


def _plain_float(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
