"""Numbers and foreign text as a reader should see them: the forms of `auditor._format`, and what only a report needs."""

import math
import re

from auditor._format import MISSING, apart, count, distinct, given, number, percent, unit
from auditor.values import Estimate

__all__ = [
    "MISSING",
    "apart",
    "clean",
    "count",
    "distinct",
    "given",
    "interval",
    "number",
    "odds",
    "percent",
    "sentence",
    "tidy",
    "unit",
    "value",
]

_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff{_BIDI}]")
_LONGEST, _HEAD, _TAIL = 4_000, 3_000, 500  # characters of one text
_EXPONENT = re.compile(r"\b(\d+(?:\.\d+)?)e(?:\+|(-))0*(?=[1-9]\d*\b)")  # as Python writes them: 1e-05, 1e+16


def clean(text: object) -> str:
    r"""Return text in which every control, direction-changing or unpaired character is visible, the middle cut if endless.

    >>> clean("a\x00b\u202ec")
    'a⟨U+0000⟩b⟨U+202E⟩c'
    >>> len(clean("x" * 1_000_000)), clean("x" * 1_000_000)[2995:3030]
    (3531, 'xxxxx ⟨996,500 characters left out⟩')
    """
    shown = str(text)
    if len(shown) > _LONGEST:
        left_out = len(shown) - _HEAD - _TAIL
        shown = f"{shown[:_HEAD]} ⟨{left_out:,} characters left out⟩ {shown[-_TAIL:]}"
    return _UNSAFE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", shown)


def tidy(text: object) -> str:
    """Return quoted text with the numbers in it spelled as everywhere else on the page.

    >>> tidy("epsilon 1 at delta 1e-05")
    'epsilon 1 at delta 1e-5'
    """
    return _EXPONENT.sub(r"\1e\2", str(text))


def value(x: float | None, *, name: str, toward: str = "nearest") -> str:
    """Return a number in the form that suits the estimate or the claim of that name."""
    if name.startswith("tpr_at_fpr"):
        return percent(x, toward=toward)
    if name in {"auc", "advantage", "bayes_security", "attribute_advantage", "attribute_bayes_security"}:
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


def odds(rate: float) -> str:
    """Return a rate as "1 in 100", the way people speak of false alarms."""
    return (
        f"1 false alarm in {count(round(1 / rate))}"
        if 0 < rate < 1
        else f"a false alarm rate of {percent(rate)}"
    )


def sentence(text: str) -> str:
    """Return text that starts with a capital letter and ends with a full stop.

    >>> sentence("not resolvable with 80 non-member records")
    'Not resolvable with 80 non-member records.'
    """
    text = tidy(text).strip()
    first = text[:1] if text.startswith("f-") else text[:1].upper()  # f-DP has a small f
    return text and first + text[1:] + ("" if text[-1] in ".!?" else ".")
