"""What every trade-off figure draws: the curves with their band and labels, logarithmic axes, and where numbers are read."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor.report import formatting, traces
from auditor.report.figures.canvas import percent_axes, tip
from auditor.report.figures.high_end import CertifiedPoint
from auditor.report.figures.rates import WHOLE_CLAIM, drawn_claim
from auditor.report.lookup import STAR, amount, dig, find
from auditor.report.svg import ACCENT, CARD, INK, MUTED, NEUTRAL
from auditor.result import AuditResult, NamedCurve
from auditor.values import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_band", "draw_lines", "draw_logarithmic", "mark_bound", "mark_star"]

_LINES: dict[str, dict[str, Any]] = {
    "empirical": {"color": ACCENT, "linewidth": 1.8, "zorder": 5},
    "gaussian": {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 2)), "zorder": 4},
    "mixture": {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 1.5, 1, 1.5)), "zorder": 4},
    "claim": {"color": INK, "linewidth": 1.8, "linestyle": (0, (1, 1.2)), "zorder": 3},
    WHOLE_CLAIM: {"color": INK, "linewidth": 1.8, "linestyle": (0, (1, 1.2)), "zorder": 3},
}
_DECADES = 5  # as many are spelled out
_WORDS = {
    "empirical": "Measured",
    "gaussian": "Gaussian fit",
    "mixture": "Mixture fit",
    "claim": "Most the claim allows",
    WHOLE_CLAIM: "Most the claimed\ntraining allows",
}


def draw_logarithmic(
    panel: "Axes", curves: dict[str, NamedCurve], result: AuditResult, *, finest: float, least: float
) -> None:
    """All curves on logarithmic axes that begin at ``least``; the measured one begins at ``finest``, one record."""
    panel.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.15))
    draw_band(
        panel,
        curves,
        result,
        shape=lambda curve: traces.logarithmic(curve, least=least, lowest=least / 10),
    )
    starts = {"empirical": finest}
    draw_lines(
        panel,
        curves,
        result,
        shape=lambda name: traces.logarithmic(curves[name], least=starts.get(name, least)),
    )
    panel.plot([least, 1], [least, 1], color=MUTED, linewidth=0.8, label="Guessing", zorder=2)
    if least < finest:
        _shade(panel, least, finest)
    percent_axes(panel)
    _space_decades(panel, least)


def draw_lines(
    panel: "Axes", curves: dict[str, NamedCurve], result: AuditResult, *, shape: Callable[[str], Any]
) -> None:
    """Every curve that there is, each with its label."""
    for name, style in _LINES.items():
        if name in curves:
            panel.plot(*shape(name), label=_label(name, result), **style)


def _label(name: str, result: AuditResult) -> str:
    claim = drawn_claim(result) if name in {"claim", WHOLE_CLAIM} else None
    if claim is None:
        rejected = {"gaussian": STAR, "mixture": "epsilon_star.mixture"}.get(name)
        row = find(result, rejected) if rejected else None
        return _WORDS[name] + (", rejected" if row and dig(row.details, "fit", "rejected") is True else "")
    # Short lines: two columns of words share the width of the figure.
    at = "" if claim.delta is None else f",\ndelta {formatting.given(claim.delta)}"
    return f"{_WORDS[name]}\n(epsilon {formatting.given(claim.value)}{at})"


def draw_band(
    panel: "Axes", curves: dict[str, NamedCurve], result: AuditResult, *, shape: Callable[[Any], Any]
) -> None:
    """The band between its two limits, where both are there."""
    if not {"band_lower", "band_upper"} <= curves.keys():
        return
    low, high = (shape(curves[name]) for name in ("band_lower", "band_upper"))
    x, y = (np.concatenate([upward, backward[::-1]]) for upward, backward in zip(low, high, strict=True))
    level = amount(result.data, "confidence")
    words = f" ({formatting.percent(level, toward='down')})" if level and 0 < level < 1 else ""
    # A census knows its members, so its band is about them alone.
    words += "\nof this finite training set" if result.data.get("members") == "census" else ""
    panel.fill(x, y, color=ACCENT, alpha=0.16, linewidth=0, label=f"Confidence band{words}", zorder=1)
    for side in (low, high):
        panel.plot(*side, color=ACCENT, linewidth=0.6, zorder=1.5)


def mark_star(panel: "Axes", star: Estimate | None, *, high: bool, least: float) -> None:
    """A diamond where Epsilon* is read, if that is on these axes: at the low losses, or at the high ones."""
    fpr, fnr = (amount(star.details, "at", rate) if star else None for rate in ("fpr", "fnr"))
    if star is None or fpr is None or fnr is None or dig(star.details, "branch") != ("m2" if high else "m1"):
        return
    x, y = (fnr, 1 - fpr) if high else (fpr, 1 - fnr)
    if x < least or y <= 0:
        return
    look: dict[str, Any] = {"marker": "D", "markersize": 4.5, "markerfacecolor": "none", "zorder": 6}
    (ring,) = panel.plot(
        [x], [y], label="Epsilon* is read here", color=INK, linestyle="none", clip_on=False, **look
    )
    errors = "of the training records wrongly cleared" if high else "false alarms"
    tip(ring, f"Epsilon* {formatting.number(star.value)} is read here, at {formatting.percent(x)} {errors}")


def mark_bound(panel: "Axes", point: CertifiedPoint, *, at: tuple[float, float], least: float = 0.0) -> None:
    """A square at the two limits that the certified bound is read from."""
    if min(at) < least:
        return
    look: dict[str, Any] = {
        "marker": "s",
        "markersize": 5.5,
        "color": ACCENT,
        "markeredgecolor": CARD,
        "zorder": 8,
    }
    (square,) = panel.plot(
        [at[0]], [at[1]], label="Certified bound is read here", linestyle="none", clip_on=False, **look
    )
    tip(square, point.words)


def _space_decades(panel: "Axes", least: float) -> None:
    """A tick for each decade, or for every second one where their words would touch; 100% always has one."""
    decades = round(-math.log10(least))
    ticks = [10.0**-power for power in range(0, decades + 1, 1 if decades <= _DECADES else 2)]
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_ticks(ticks)


def _shade(panel: "Axes", least: float, finest: float) -> None:
    panel.axvspan(least, finest, color=NEUTRAL, alpha=0.13, linewidth=0, label="Finer than the records show")
    panel.axvline(finest, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1.2)
