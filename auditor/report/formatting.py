"""Numbers and foreign text as a reader should see them.

A lower bound is rounded down and an upper bound up, so that no sentence promises more than was certified.
"""

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from auditor.values import Estimate

__all__ = ["MISSING", "apart", "clean", "count", "interval", "number", "odds", "percent", "sentence", "value"]

MISSING = "—"
_ROUNDING = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "nearest": ROUND_HALF_EVEN}
_LARGE, _SMALL = 1e5, 1e-3  # outside of these a number is written with an exponent
_MOST_DIGITS = 8
_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff{_BIDI}]")


def clean(text: object) -> str:
    r"""Return text in which every control, direction-changing or unpaired character is visible.

    >>> clean("a\x00b\u202ec")
    'a⟨U+0000⟩b⟨U+202E⟩c'
    """
    return _UNSAFE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", str(text))


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


def percent(x: float | None, *, toward: str = "nearest") -> str:
    """Return a rate as a percentage, never rounding a rate below 1 to 100%.

    >>> percent(0.1234), percent(0.01), percent(0.99996), percent(1.0)
    ('12.3%', '1%', '99.996%', '100%')
    """
    if x == 0:
        return "0%"
    if x is None or _special(x) is not None:
        return number(x)
    scaled = Decimal(repr(float(x))) * 100
    rounded = _short_of_whole(scaled, whole=Decimal(100), toward=toward)
    if scaled < Decimal("0.001"):
        return f"{_trimmed(f'{_rounded(scaled, digits=2, toward=toward):f}')}%"
    return f"{_trimmed(f'{rounded:f}')}%"


def unit(x: float | None, *, toward: str = "nearest") -> str:
    """Return a number on the scale from 0 to 1, never rounding one below 1 to 1.

    >>> unit(0.5321), unit(0.99996), unit(1.0)
    ('0.532', '0.99996', '1')
    """
    if x is None or _special(x) is not None or abs(x) < _SMALL:
        return number(x, toward=toward)
    exact = Decimal(repr(float(x)))
    rounded = _short_of_whole(exact, whole=Decimal(1), toward=toward)
    return _trimmed(f"{rounded:f}") if rounded == exact else f"{rounded:f}"


def value(x: float | None, *, name: str, toward: str = "nearest") -> str:
    """Return a number in the form that suits the estimate or the claim of that name."""
    if name.startswith("tpr_at_fpr"):
        return percent(x, toward=toward)
    if name in {"auc", "advantage", "bayes_security"}:
        return unit(x, toward=toward)
    return number(x, toward=toward)


def interval(estimate: Estimate) -> str:
    """Return an estimate's interval in words, its ends rounded outwards.

    >>> from auditor.values import Subject
    >>> interval(Estimate("auc", 0.6, 0.58, None, 0.95, "ranks", Subject.MODEL))
    'at least 0.58'
    """
    has_low, has_high = (end is not None and not math.isnan(end) for end in (estimate.lower, estimate.upper))
    low = value(estimate.lower, name=estimate.name, toward="down")
    high = value(estimate.upper, name=estimate.name, toward="up")
    if has_low and has_high:
        return f"{low} to {high}"
    if has_low:
        return f"at least {low}"
    return f"at most {high}" if has_high else MISSING


def apart(low: float, high: float, *, name: str = "") -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to tell them apart.

    >>> apart(3.0, 3.0004)
    ('3', '3.0004')
    """
    texts = (value(low, name=name), value(high, name=name, toward="down"))
    digits = 3
    while float(low) != float(high) and Decimal(repr(float(low))) and digits < _MOST_DIGITS:
        if abs(_parsed(texts[1]) - _parsed(texts[0])) > 0:
            break
        digits += 1
        texts = (number(low, digits=digits), number(high, digits=digits, toward="down"))
    return texts


def odds(rate: float) -> str:
    """Return a rate as "1 in 100", the way people speak of false alarms."""
    return (
        f"1 false alarm in {count(round(1 / rate))}"
        if 0 < rate < 1
        else f"a false alarm rate of {percent(rate)}"
    )


def count(x: Any) -> str:
    """Return a whole number with separators; anything else as text.

    >>> count(12500), count(None), count("many")
    ('12,500', '—', 'many')
    """
    if x is None:
        return MISSING
    if isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x):
        return str(x)
    return f"{x:,.0f}" if float(x).is_integer() else number(x)


def sentence(text: str) -> str:
    """Return text that starts with a capital letter and ends with a full stop.

    >>> sentence("not resolvable with 80 non-member records")
    'Not resolvable with 80 non-member records.'
    """
    text = str(text).strip()
    return text and text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def _special(x: float | None) -> str | None:
    if x is None or math.isnan(x):
        return MISSING
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"  # noqa: RUF001 the true minus sign
    return "0" if x == 0 else None


def _rounded(x: Decimal, *, digits: int, toward: str) -> Decimal:
    return x.quantize(Decimal(1).scaleb(x.adjusted() - digits + 1), rounding=_ROUNDING[toward])


def _short_of_whole(x: Decimal, *, whole: Decimal, toward: str) -> Decimal:
    rounded = _rounded(x, digits=3, toward=toward)
    for digits in range(4, _MOST_DIGITS):
        if rounded != whole or x == whole:
            break
        rounded = _rounded(x, digits=digits, toward=toward)
    return rounded


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _parsed(text: str) -> Decimal:
    text = text.rstrip("%").replace("−", "-")  # noqa: RUF001 as written by _special
    return Decimal(0) if text in {MISSING, "∞", "-∞"} else Decimal(text)
