"""The losses of members and of non-members, binned: how far apart they lie, and where a fit goes wrong."""

from typing import TYPE_CHECKING, Any

import numpy as np

from auditor.report import formatting, traces
from auditor.report.figures.canvas import DASHED, Floats, axes, plain_axis, true_minus
from auditor.report.svg import ACCENT, INK, MUTED, NEUTRAL
from auditor.result import AuditResult, Histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["fitted_index", "histogram_figure", "histogram_words", "raw_index"]


def fitted_index(result: AuditResult) -> int:
    """Return which histogram carries the fits, the first one where none does."""
    return next((i for i, item in enumerate(result.histograms) if item.quantiles or item.member_fit), 0)


def raw_index(result: AuditResult) -> int | None:
    """Return which histogram shows the losses as given beside the fitted one, or null where there is no other."""
    return next((i for i in range(len(result.histograms)) if i != fitted_index(result)), None)


def histogram_figure(result: AuditResult, *, index: int | None = 0) -> "Figure | None":
    """Return the losses of members and non-members on one scale, with the fitted curves where there are any."""
    histogram = None if index is None else traces.histogram(result, index)
    if histogram is None:
        return None
    with axes() as (figure, panel):
        # Members are filled, non-members are a dashed outline: no colour is needed to tell them apart.
        look: dict[str, Any] = {"color": ACCENT, "alpha": 0.3, "fill": True, "linewidth": 0}
        _draw(panel, histogram, histogram.member, label="Members", **look)
        _draw(panel, histogram, histogram.member, color=ACCENT, linewidth=1.0)
        _draw(panel, histogram, histogram.nonmember, color=NEUTRAL, alpha=0.2, fill=True, linewidth=0)
        _draw(
            panel,
            histogram,
            histogram.nonmember,
            label="Non-members",
            color=MUTED,
            linewidth=1.0,
            linestyle=DASHED,
        )
        _draw_fits(panel, histogram)
        panel.set(xlabel=f"Loss, {_scale(histogram)}", ylabel="Share of records", ylim=(0, None))
        plain_axis(panel.xaxis)
        panel.set_yticks([])
        panel.grid(visible=False)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def _draw(panel: "Axes", histogram: Histogram, counts: Any, **look: Any) -> None:
    edges = np.asarray(histogram.edges, dtype=np.float64)
    panel.stairs(traces.density(counts, edges, total=_total(counts)), edges, **look)


def _draw_fits(panel: "Axes", histogram: Histogram) -> None:
    edges = np.asarray(histogram.edges, dtype=np.float64)
    sides = (
        ("Members, fit", histogram.member, histogram.member_fit, ACCENT, "-"),
        ("Non-members, fit", histogram.nonmember, histogram.nonmember_fit, INK, (0, (1, 1.2))),
    )
    for label, counts, fit, colour, line in sides:
        if fit is not None:
            shares = traces.density(fit, edges, total=_total(counts))
            centres = (edges[1:] + edges[:-1]) / 2
            panel.plot(centres, shares, color=colour, linewidth=1.7, linestyle=line, label=label)


def _total(counts: Any) -> float:
    return max(float(np.sum(counts)), 1.0)


def _scale(histogram: Histogram) -> str:
    return "as given" if histogram.scale == "loss" else traces.plain(histogram.scale)


def histogram_words(result: AuditResult, *, index: int | None = 0) -> str:
    """Return what the histogram shows, with the middle and the central part of both groups as far as bins tell."""
    histogram = None if index is None else traces.histogram(result, index)
    if histogram is None:
        return "Histogram of losses: there are no data for it."
    edges = np.asarray(histogram.edges, dtype=np.float64)
    sides = (("members", histogram.member), ("non-members", histogram.nonmember))
    middles = [f"half of the {name} lie {_middle(counts, edges)}" for name, counts in sides]
    scale = "as given" if histogram.scale == "loss" else formatting.clean(histogram.scale)[:80]
    fit = " The fitted normal curves are drawn over it." if histogram.member_fit is not None else ""
    return f"Histogram of losses, {scale}: {', and '.join(middles)}.{fit}"


def _middle(counts: Any, edges: Floats) -> str:
    """Between which bin edges the central half lies."""
    up_to = np.cumsum(np.asarray(counts, dtype=np.float64)) / _total(counts)
    low = edges[min(int(np.searchsorted(up_to, 0.25)), edges.size - 2)]
    high = edges[min(int(np.searchsorted(up_to, 0.75)), edges.size - 2) + 1]
    short = formatting.number(float(low)), formatting.number(float(high))
    texts = short if short[0] != short[1] else formatting.distinct(float(low), float(high))
    return f"between {true_minus(texts[0])} and {true_minus(texts[1])}"
