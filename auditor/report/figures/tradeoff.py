"""Claimed against measured: training records recognised for every rate of false alarms, on linear and on log axes."""

from typing import TYPE_CHECKING, Any

from auditor.report import traces
from auditor.report.figures.canvas import TALL, axes, percent_axes, tip
from auditor.report.figures.high_end import certified_point
from auditor.report.figures.rates import observed_rate, quoted_rates, rate_words, reach
from auditor.report.figures.tradeoff_lines import (
    draw_band,
    draw_lines,
    draw_logarithmic,
    mark_bound,
    mark_star,
)
from auditor.report.lookup import STAR, find
from auditor.report.svg import CARD, INK, MUTED
from auditor.result import AuditResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["tradeoff_figure", "tradeoff_log_figure"]


def tradeoff_figure(result: AuditResult) -> "Figure | None":
    """Return hits against false alarms on linear axes: measured, its band, the fit, the claim, and guessing."""
    curves = traces.curves(result)
    if not curves:
        return None
    with axes(TALL) as (figure, panel):
        draw_band(panel, curves, result, shape=traces.thinned)
        draw_lines(panel, curves, result, shape=lambda name: traces.thinned(curves[name]))
        panel.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, label="Guessing", zorder=2)
        panel.set(xlim=(0, 1), ylim=(0, 1.005), aspect="equal")
        _mark_rates(panel, result, least=0.0)
        if (point := certified_point(result)) is not None:
            low, high = (point.errors, point.hits), (1 - point.hits, 1 - point.errors)
            mark_bound(panel, point, at=high if point.high else low)
        percent_axes(panel)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def tradeoff_log_figure(result: AuditResult) -> "Figure | None":
    """Return the same on logarithmic axes, where the rare false alarms are that matter for privacy.

    The measured curve stops where the non-members run out: a rate finer than one of them cannot be observed. The band
    goes on, since it says there too what cannot be ruled out.
    """
    curves = traces.curves(result)
    if not curves:
        return None
    finest, least = reach(result)
    point = certified_point(result)
    with axes(TALL) as (figure, panel):
        draw_logarithmic(panel, curves, result, finest=finest, least=least)
        _mark_rates(panel, result, least=least)
        if point is not None and not point.high:
            mark_bound(panel, point, at=(point.errors, point.hits), least=least)
        mark_star(panel, find(result, STAR), high=False, least=least)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def _mark_rates(panel: "Axes", result: AuditResult, *, least: float) -> None:
    """The quoted rates: what is certified there, a wedge, and what was observed at the same threshold, a ring.

    The threshold that keeps a rate for certain was observed to raise fewer false alarms: the ring stands to the left, on
    the measured curve, or beyond logarithmic axes where it raised none.
    """
    look: dict[str, Any] = {"color": INK, "zorder": 7, "clip_on": False}
    wedge: dict[str, Any] = {"marker": 6, "label": "Certified at a quoted rate"}
    ring: dict[str, Any] = {"marker": "o", "markerfacecolor": CARD, "label": "Observed at that threshold"}
    for rate, row in quoted_rates(result):
        low, seen = max(float(row.lower or 0), least), float(row.value or 0)
        if rate < least or not low <= seen <= 1:
            continue
        # A limit of 0 lies below logarithmic axes: the line then ends at their edge without a wedge.
        marks = [] if low <= least > 0 else [(rate, low, wedge)]
        place = observed_rate(result, row)
        if place is not None and place >= least:
            panel.plot([rate, place], [low, seen], linewidth=1.2, **look)
            marks.append((place, seen, ring))
        for x, y, mark in marks:
            (shown,) = panel.plot([x], [y], markersize=4.6, linestyle="none", **mark, **look)
            tip(shown, rate_words(rate, row))
            mark["label"] = "_again"
