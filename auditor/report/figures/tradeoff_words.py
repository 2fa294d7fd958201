"""What the trade-off figures show, in words with the numbers of one audit."""

from collections.abc import Sequence

import numpy as np

from auditor.report import formatting, traces
from auditor.report.figures.rates import drawn_claim, quoted_rates, rate_words, reach
from auditor.result import AuditResult, NamedCurve

__all__ = ["tradeoff_log_words", "tradeoff_words"]

_FAR, _NEAR = (0.5, 0.1, 0.01), (0.1, 0.01, 0.001, 1e-4)


def tradeoff_words(result: AuditResult) -> str:
    """Return what the figure on linear axes shows, with the rates of this audit."""
    return f"Trade-off curves on linear axes. {_READS} {_rates(result, _FAR)} {_claimed(result)}".strip()


def tradeoff_log_words(result: AuditResult) -> str:
    """Return what the figure on logarithmic axes shows, with the quoted rates and where the records run out."""
    finest, least = reach(result)
    quoted = [f"{rate_words(rate, row)}." for rate, row in quoted_rates(result)]
    end = f"Below {formatting.percent(finest)} false alarms, shaded, there are no records to measure with."
    parts = [
        f"Trade-off curves on logarithmic axes. {_READS} {_rates(result, _NEAR)}",
        _claimed(result),
        *quoted,
        end if least < finest else "",
    ]
    return " ".join(part for part in parts if part)


_READS = (
    "They show the share of training records that an attacker recognises against the share of false alarms."
)


def _rates(result: AuditResult, places: Sequence[float]) -> str:
    curves, (finest, _) = traces.curves(result), reach(result)
    shown = [place for place in places if place >= finest] or [0.5]
    return " ".join(f"At {formatting.percent(place)} false alarms: {_at(place, curves)}." for place in shown)


def _claimed(result: AuditResult) -> str:
    claim = drawn_claim(result) if "claim" in traces.curves(result) else None
    if claim is None:
        return ""
    at = "" if claim.delta is None else f" at delta {formatting.given(claim.delta)}"
    return f"The claim is epsilon {formatting.given(claim.value)}{at} ({claim.adjacency})."


def _at(place: float, curves: dict[str, NamedCurve]) -> str:
    def rate(name: str, toward: str = "nearest") -> str:
        found = float(np.interp(place, *traces.finite(curves[name].fpr, curves[name].tpr)))
        return formatting.percent(min(max(found, 0.0), 1.0), toward=toward)

    parts = [f"measured {rate('empirical')}"] if "empirical" in curves else []
    if {"band_lower", "band_upper"} <= curves.keys():
        parts.append(f"band {rate('band_lower', 'down')} to {rate('band_upper', 'up')}")
    names = (("gaussian", "Gaussian fit"), ("mixture", "mixture fit"), ("claim", "most the claim allows"))
    parts += [f"{words} {rate(name)}" for name, words in names if name in curves]
    return ", ".join([*parts, f"guessing {formatting.percent(place)}"])
