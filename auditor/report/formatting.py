"""Numbers and foreign text as a reader should see them: the forms of `auditor._format`, and what only a report needs."""

import math
import re

from auditor._format import MISSING, apart, count, distinct, given, number, percent, unit
from auditor.values import Estimate

__all__ = [
    "MISSING",
    "UNSEEN",
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
_UNSAFE = re.compile(f"[{UNSEEN}]|(?!{_APART})[\u200c\u200d]")
_LONGEST, _HEAD, _TAIL = 4_000, 3_000, 500  # characters of one text
_NEARLY = 0.002  # a share of a number that nobody misses: 1 in 667 for 0.15%
_EXPONENT = re.compile(r"\b(\d+(?:\.\d+)?)e(?:\+|(-))0*(?=[1-9]\d*\b)")  # as Python writes them: 1e-05, 1e+16


def clean(text: object) -> str:
    r"""Return text in which every character that hides, or turns the direction, is visible, and the middle cut if endless.

    Joiners stay where a script needs them.

    >>> clean("a\x00b\u202ec\u200bd")
    'a⟨U+0000⟩b⟨U+202E⟩c⟨U+200B⟩d'
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
