"""What the trade-off figures show, in words with the numbers of one audit."""

from collections.abc import Sequence

import numpy as np

from auditor.report import formatting, traces
from auditor.report.figures.high_end import certified_point, high_reach, is_high, turned
from auditor.report.figures.rates import WHOLE_CLAIM, drawn_claim, quoted_rates, rate_words, reach
from auditor.result import AuditResult, NamedCurve

__all__ = ["tradeoff_high_words", "tradeoff_log_words", "tradeoff_words"]

_FAR, _NEAR = (0.5, 0.1, 0.01), (0.1, 0.01, 0.001, 1e-4)


def tradeoff_words(result: AuditResult) -> str:
    """Return what the figure on linear axes shows, with the rates of this audit."""
    finest, _ = reach(result)
    parts = [
        f"Trade-off curves on linear axes. {_READS}",
        _rates(traces.curves(result), _FAR, finest=finest),
        _claimed(result),
        _bound(result, high=is_high(result)),
    ]
    return " ".join(part for part in parts if part)


def tradeoff_log_words(result: AuditResult) -> str:
    """Return what the figure on logarithmic axes shows, with the quoted rates and where the records run out."""
    finest, least = reach(result)
    quoted = [f"{rate_words(rate, row)}." for rate, row in quoted_rates(result)]
    end = f"Below {formatting.percent(finest)} false alarms, shaded, there are no records to measure with."
    parts = [
        f"Trade-off curves on logarithmic axes. {_READS}",
        _rates(traces.curves(result), _NEAR, finest=finest),
        _claimed(result),
        *quoted,
        "The certified bound comes from the other end of the curve." if is_high(result) else "",
        _bound(result, high=False),
        end if least < finest else "",
    ]
    return " ".join(part for part in parts if part)


def tradeoff_high_words(result: AuditResult) -> str:
    """Return what the figure of the other end shows, with where the certified bound is read."""
    if not is_high(result):
        return "The other end of the trade-off curves: the certified bound of this audit does not come from there."
    finest, least = high_reach(result)
    parts = [
        f"The other end of the trade-off curves on logarithmic axes. {_CLEARS}",
        _rates(turned(traces.curves(result)), _NEAR, finest=finest, errors=_CLEARED),
        _claimed(result),
        _bound(result, high=True),
        f"Below {formatting.percent(finest)} {_CLEARED}, shaded, there are no records to measure with."
        if least < finest
        else "",
    ]
    return " ".join(part for part in parts if part)


_CLEARED = "of training records wrongly cleared"
_CLEARS = (
    "They show the share of other records that an attacker rightly says were not in the training data against the share"
    " of training records of which this is wrongly said."
)
_READS = (
    "They show the share of training records that an attacker recognises against the share of false alarms."
)


def _rates(
    curves: dict[str, NamedCurve], places: Sequence[float], *, finest: float, errors: str = "false alarms"
) -> str:
    shown = [place for place in places if place >= finest] or [0.5]
    return " ".join(f"At {formatting.percent(place)} {errors}: {_at(place, curves)}." for place in shown)


def _bound(result: AuditResult, *, high: bool) -> str:
    point = certified_point(result)
    return f"{point.words}." if point is not None and point.high is high else ""


def _claimed(result: AuditResult) -> str:
    names = traces.curves(result)
    claim = drawn_claim(result) if {"claim", WHOLE_CLAIM} & names.keys() else None
    if claim is None:
        return ""
    at = "" if claim.delta is None else f" at delta {formatting.given(claim.delta)}"
    said = f"The claim is epsilon {formatting.given(claim.value)}{at} ({claim.adjacency})."
    if WHOLE_CLAIM not in names:
        return said
    return f"{said} Its line is the whole curve of the claimed training, not of that one epsilon."


def _at(place: float, curves: dict[str, NamedCurve]) -> str:
    def rate(name: str, toward: str = "nearest") -> str:
        found = float(np.interp(place, *traces.finite(curves[name].fpr, curves[name].tpr)))
        return formatting.percent(min(max(found, 0.0), 1.0), toward=toward)

    parts = [f"measured {rate('empirical')}"] if "empirical" in curves else []
    if {"band_lower", "band_upper"} <= curves.keys():
        parts.append(f"band {rate('band_lower', 'down')} to {rate('band_upper', 'up')}")
    names = (
        ("gaussian", "Gaussian fit"),
        ("mixture", "mixture fit"),
        ("claim", "most the claim allows"),
        (WHOLE_CLAIM, "most the claimed training allows"),
    )
    parts += [f"{words} {rate(name)}" for name, words in names if name in curves]
    return ", ".join([*parts, f"guessing {formatting.percent(place)}"])
