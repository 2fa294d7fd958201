"""Numbers as text, for every sentence that a reader sees: the same number is written the same way everywhere.

A lower bound is rounded down and an upper bound up, so that no sentence promises more than was certified.
"""

import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

__all__ = ["MISSING", "apart", "count", "distinct", "given", "number", "percent", "unit"]

MISSING = "—"
_ROUNDING = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "nearest": ROUND_HALF_EVEN}
_LARGE, _SMALL = 1e5, 1e-3  # outside of these a number is written with an exponent
_MOST_DIGITS = 17  # what a double holds
_LARGEST = sys.float_info.max
_GIVEN_DIGITS = 6  # more than people type


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


def given(x: float | None, *, digits: int = 3) -> str:
    """Return a claimed number: as it was given where six digits hold it, rounded like any other where it was derived.

    >>> given(2.01352), given(2.0 / 3.0), given(1e-5)
    ('2.01352', '0.667', '1e-5')
    """
    if x is None or _special(x) is not None:
        return number(x)
    exact = Decimal(repr(float(x)))
    whole = exact == _rounded(exact, digits=_GIVEN_DIGITS, toward="nearest")
    return number(x, digits=_GIVEN_DIGITS if whole else digits)


def percent(x: float | None, *, toward: str = "nearest") -> str:
    """Return a rate as a percentage, never rounding a rate below 1 to 100%.

    >>> percent(0.1234), percent(0.01), percent(0.99996), percent(1.0)
    ('12.3%', '1%', '99.996%', '100%')
    """
    if _special(x) == "0":
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


def apart(claimed: float, bound: float) -> tuple[str, str]:
    """Return a claim and a bound, rounded down, with as many digits as it takes to see which is larger.

    >>> apart(3.0, 3.0004), apart(2.0136, 2.0138), apart(1.0, 4.516)
    (('3', '3.0004'), ('2.0136', '2.0138'), ('1', '4.51'))
    """
    order = _sign(claimed, bound)
    texts = given(claimed), number(bound, toward="down")
    for digits in range(4, _MOST_DIGITS + 1):
        if _sign(*map(_parsed, texts)) == order:
            break
        texts = given(claimed, digits=digits), number(bound, toward="down", digits=digits)
    return texts


def distinct(x: float, y: float) -> tuple[str, str]:
    """Return two different numbers with as many digits as it takes to tell them apart.

    >>> distinct(1e-5, 1.0004e-5)
    ('1e-5', '1.0004e-5')
    """
    texts = given(x), given(y)
    for digits in range(4, _MOST_DIGITS + 1):
        if texts[0] != texts[1]:
            break
        texts = given(x, digits=digits), given(y, digits=digits)
    return texts


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


def _special(x: Any) -> str | None:
    if isinstance(x, bool) or not isinstance(x, int | float) or x != x:  # noqa: PLR0124 NaN, and no overflow
        return MISSING
    if abs(x) > _LARGEST:
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


def _parsed(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf").replace(MISSING, "nan"))  # noqa: RUF001 as above


def _sign(low: float, high: float) -> int:
    return (high > low) - (high < low)
