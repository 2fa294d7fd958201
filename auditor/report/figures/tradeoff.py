"""Claimed against measured: training records recognised for every rate of false alarms, on linear and on log axes."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor.report import formatting, traces
from auditor.report.figures.canvas import TALL, axes, percent_axes, tip
from auditor.report.figures.rates import drawn_claim, quoted_rates, rate_words, reach
from auditor.report.lookup import STAR, amount, dig, find
from auditor.report.svg import ACCENT, CARD, INK, MUTED, NEUTRAL
from auditor.result import AuditResult, NamedCurve
from auditor.values import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["tradeoff_figure", "tradeoff_log_figure"]

_LINES: dict[str, dict[str, Any]] = {
    "empirical": {"color": ACCENT, "linewidth": 1.8, "zorder": 5},
    "gaussian": {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 2)), "zorder": 4},
    "mixture": {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 1.5, 1, 1.5)), "zorder": 4},
    "claim": {"color": INK, "linewidth": 1.8, "linestyle": (0, (1, 1.2)), "zorder": 3},
}
_DECADES = 5  # as many are spelled out
_WORDS = {
    "empirical": "Measured",
    "gaussian": "Gaussian fit",
    "mixture": "Mixture fit",
    "claim": "Most the claim allows",
}


def tradeoff_figure(result: AuditResult) -> "Figure | None":
    """Return hits against false alarms on linear axes: measured, its band, the fit, the claim, and guessing."""
    curves = traces.curves(result)
    if not curves:
        return None
    with axes(TALL) as (figure, panel):
        _draw_band(panel, curves, result, shape=traces.thinned)
        _draw_lines(panel, curves, result, shape=lambda name: traces.thinned(curves[name]))
        panel.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, label="Guessing", zorder=2)
        panel.set(xlim=(0, 1), ylim=(0, 1.005), aspect="equal")
        _mark_rates(panel, result, least=0.0)
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
    with axes(TALL) as (figure, panel):
        panel.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.15))
        _draw_band(
            panel,
            curves,
            result,
            shape=lambda curve: traces.logarithmic(curve, least=least, lowest=least / 10),
        )
        starts = {"empirical": finest}
        _draw_lines(
            panel,
            curves,
            result,
            shape=lambda name: traces.logarithmic(curves[name], least=starts.get(name, least)),
        )
        panel.plot([least, 1], [least, 1], color=MUTED, linewidth=0.8, label="Guessing", zorder=2)
        if least < finest:
            _shade(panel, least, finest)
        _mark_rates(panel, result, least=least)
        _mark_star(panel, find(result, STAR), least=least)
        percent_axes(panel)
        _space_decades(panel, least)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


# --- Drawing --------------------------------------------------------------------------------------


def _draw_lines(
    panel: "Axes", curves: dict[str, NamedCurve], result: AuditResult, *, shape: Callable[[str], Any]
) -> None:
    for name, style in _LINES.items():
        if name in curves:
            panel.plot(*shape(name), label=_label(name, result), **style)


def _label(name: str, result: AuditResult) -> str:
    claim = drawn_claim(result) if name == "claim" else None
    if claim is None:
        rejected = {"gaussian": STAR, "mixture": "epsilon_star.mixture"}.get(name)
        row = find(result, rejected) if rejected else None
        return _WORDS[name] + (", rejected" if row and dig(row.details, "fit", "rejected") is True else "")
    at = "" if claim.delta is None else f", delta {formatting.given(claim.delta)}"
    return f"{_WORDS[name]}\n(epsilon {formatting.given(claim.value)}{at})"


def _draw_band(
    panel: "Axes", curves: dict[str, NamedCurve], result: AuditResult, *, shape: Callable[[Any], Any]
) -> None:
    if not {"band_lower", "band_upper"} <= curves.keys():
        return
    low, high = (shape(curves[name]) for name in ("band_lower", "band_upper"))
    x, y = (np.concatenate([upward, backward[::-1]]) for upward, backward in zip(low, high, strict=True))
    level = amount(result.data, "confidence")
    words = f" ({formatting.percent(level, toward='down')})" if level and 0 < level < 1 else ""
    panel.fill(x, y, color=ACCENT, alpha=0.16, linewidth=0, label=f"Confidence band{words}", zorder=1)
    for side in (low, high):
        panel.plot(*side, color=ACCENT, linewidth=0.6, zorder=1.5)


def _space_decades(panel: "Axes", least: float) -> None:
    """A tick for each decade, or for every second one where their words would touch; 100% always has one."""
    decades = round(-math.log10(least))
    ticks = [10.0**-power for power in range(0, decades + 1, 1 if decades <= _DECADES else 2)]
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_ticks(ticks)


def _shade(panel: "Axes", least: float, finest: float) -> None:
    panel.axvspan(least, finest, color=NEUTRAL, alpha=0.13, linewidth=0, label="Finer than the records show")
    panel.axvline(finest, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1.2)


def _mark_rates(panel: "Axes", result: AuditResult, *, least: float) -> None:
    """The quoted rates: from the certified lower limit, a wedge, up to what was observed, a ring."""
    look: dict[str, Any] = {"color": INK, "linestyle": "none", "zorder": 7, "clip_on": False}
    names = ["Certified at a quoted rate", "Observed at that threshold"]
    for rate, row in quoted_rates(result):
        low, seen = max(float(row.lower or 0), least), float(row.value or 0)
        if rate < least or not low <= seen <= 1:
            continue
        panel.plot([rate, rate], [low, seen], color=INK, linewidth=1.2, zorder=7, clip_on=False)
        # A limit of 0 lies below logarithmic axes: the line then ends at their edge without a wedge.
        wedge: dict[str, Any] = {"marker": 6, "label": names[0]}
        ring: dict[str, Any] = {"marker": "o", "markerfacecolor": CARD, "label": names[1]}
        for at, mark in ((low, wedge), (seen, ring))[low <= least > 0 :]:
            (shown,) = panel.plot([rate], [at], markersize=4.6, **mark, **look)
            tip(shown, rate_words(rate, row))
        names = ["_again", "_again"]


def _mark_star(panel: "Axes", star: Estimate | None, *, least: float) -> None:
    fpr, fnr = (amount(star.details, "at", rate) if star else None for rate in ("fpr", "fnr"))
    if star is None or fpr is None or fnr is None or dig(star.details, "branch") != "m1":
        return
    if fpr < least or fnr >= 1:
        return
    (ring,) = panel.plot(
        [fpr],
        [1 - fnr],
        label="Epsilon* is read here",
        color=INK,
        marker="D",
        markersize=4.5,
        markerfacecolor="none",
        linestyle="none",
        zorder=6,
        clip_on=False,
    )
    tip(
        ring,
        f"Epsilon* {formatting.number(star.value)} is read here, at {formatting.percent(fpr)} false alarms",
    )
