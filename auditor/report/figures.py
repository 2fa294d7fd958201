"""The figures of a report, each a matplotlib ``Figure`` that a paper can use as it is.

Only the object-oriented interface is used, and the style is set for the time of drawing: nothing global changes.
A figure for which the audit has no data is null.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from auditor.report import formatting, traces
from auditor.report.lookup import STAR, dig, find
from auditor.report.svg import ACCENT, INK, MUTED, NEUTRAL, STYLE, svg
from auditor.result import AuditResult, NamedCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["histogram_figure", "quantile_figure", "svg", "tradeoff_figure", "tradeoff_log_figure"]

Floats = npt.NDArray[np.float64]

_SIZE, _TALL = (4.4, 3.7), (4.4, 4.4)
_LINES: dict[str, dict[str, Any]] = {
    "empirical": {"color": ACCENT, "linewidth": 1.8, "zorder": 5},
    "gaussian": {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 2)), "zorder": 4},
    "claim": {"color": INK, "linewidth": 1.6, "linestyle": (0, (1, 1.2)), "zorder": 3},
}
_WORDS = {"empirical": "Measured", "gaussian": "Gaussian fit", "claim": "Most the claim allows"}


def tradeoff_figure(result: AuditResult) -> "Figure | None":
    """Return hits against false alarms on linear axes: measured, its band, the fit, the claim, and guessing."""
    curves = traces.curves(result)
    if not curves:
        return None
    with _axes(_TALL) as (figure, axes):
        _draw_band(axes, curves, shape=lambda curve: curve)
        for name, style in _LINES.items():
            if name in curves:
                axes.plot(*traces.thinned(curves[name]), label=_WORDS[name], **style)
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, label="Guessing", zorder=2)
        axes.set(xlim=(0, 1), ylim=(0, 1.005), aspect="equal")
        _percent_axes(axes)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def tradeoff_log_figure(result: AuditResult) -> "Figure | None":
    """Return the same on logarithmic axes, where the rare false alarms are that matter for privacy.

    The measured curve stops where the non-members run out: a rate finer than one of them cannot be observed.
    """
    curves = traces.curves(result)
    if not curves:
        return None
    finest = 1 / max(int(result.data.get("n_nonmember") or 1000), 2)
    star = find(result, STAR)
    place = dig(star.details, "at", "fpr") if star else None
    least = traces.floor(finest, place if isinstance(place, float) else None)
    with _axes(_TALL) as (figure, axes):
        axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.15))
        _draw_band(
            axes, curves, shape=lambda curve: traces.logarithmic(curve, least=finest, lowest=least / 10)
        )
        for name, style in _LINES.items():
            if name in curves:
                reach = finest if name == "empirical" else least
                axes.plot(*traces.logarithmic(curves[name], least=reach), label=_WORDS[name], **style)
        axes.plot([least, 1], [least, 1], color=MUTED, linewidth=0.8, label="Guessing", zorder=2)
        if least < finest:
            axes.axvspan(
                least, finest, color=NEUTRAL, alpha=0.13, linewidth=0, label="Finer than the records show"
            )
        _mark_star(axes, star, least=least)
        _percent_axes(axes)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def histogram_figure(result: AuditResult, *, index: int = 0) -> "Figure | None":
    """Return the losses of members and non-members on one scale, with the fitted curves where there are any."""
    histogram = traces.histogram(result, index)
    if histogram is None:
        return None
    edges = np.asarray(histogram.edges, dtype=np.float64)
    with _axes() as (figure, axes):
        sides = (
            ("Members", histogram.member, histogram.member_fit, ACCENT, "-"),
            ("Non-members", histogram.nonmember, histogram.nonmember_fit, NEUTRAL, (0, (4, 1.5))),
        )
        for name, counts, fit, colour, line in sides:
            total = max(float(np.sum(counts)), 1.0)
            axes.stairs(
                traces.density(counts, edges, total=total),
                edges,
                fill=True,
                color=colour,
                alpha=0.38,
                label=name,
            )
            if fit is not None:
                centres = (edges[1:] + edges[:-1]) / 2
                dark = ACCENT if colour == ACCENT else INK
                label = f"{name}, fit"
                axes.plot(
                    centres,
                    traces.density(fit, edges, total=total),
                    color=dark,
                    linewidth=1.3,
                    linestyle=line,
                    label=label,
                )
        scale = "as given" if histogram.scale == "loss" else traces.plain(histogram.scale)
        axes.set(xlabel=f"Loss, {scale}", ylabel="Share of records", ylim=(0, None))
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.legend(loc="best")
    return figure


def quantile_figure(result: AuditResult, *, index: int = 0) -> "Figure | None":
    """Return observed against fitted quantiles: points on the line mean that the fit holds there."""
    histogram = traces.histogram(result, index)
    if histogram is None or not histogram.quantiles:
        return None
    with _axes() as (figure, axes):
        ends: list[float] = []
        for side, name, colour, mark in (
            ("member", "Members", ACCENT, "o"),
            ("nonmember", "Non-members", NEUTRAL, "^"),
        ):
            x, y = (histogram.quantiles.get(f"{side}_{kind}", ()) for kind in ("fitted", "observed"))
            pairs = traces.finite(x, y)
            axes.plot(*pairs, color=colour, marker=mark, markersize=3.2, linestyle="none", label=name)
            ends.extend(float(end) for column in pairs if column.size for end in (column.min(), column.max()))
        if ends:
            axes.plot(
                [min(ends), max(ends)],
                [min(ends), max(ends)],
                color=MUTED,
                linewidth=0.8,
                label="Perfect fit",
            )
        axes.set(xlabel="Quantile of the fitted curve", ylabel="Quantile of the records")
        axes.legend(loc="upper left")
    return figure


# --- Drawing --------------------------------------------------------------------------------------


@contextmanager
def _axes(size: tuple[float, float] = _SIZE) -> "Iterator[tuple[Figure, Axes]]":
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.set_axisbelow(True)
        yield figure, axes
        # Rotated about its anchor, a label stays centred whichever font the reader's browser picks.
        axes.yaxis.label.set_rotation_mode("anchor")


def _percent_axes(axes: "Axes") -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    words = FuncFormatter(lambda x, _: formatting.percent(float(f"{x:.6g}")))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(words)
        axis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="False alarms (FPR)", ylabel="Training records recognised (TPR)")


def _draw_band(axes: "Axes", curves: dict[str, NamedCurve], *, shape: Callable[[Any], Any]) -> None:
    if not {"band_lower", "band_upper"} <= curves.keys():
        return
    low, high = (traces.thinned(shape(curves[name])) for name in ("band_lower", "band_upper"))
    x, y = (np.concatenate([upward, backward[::-1]]) for upward, backward in zip(low, high, strict=True))
    axes.fill(x, y, color=ACCENT, alpha=0.16, linewidth=0, label="Confidence band", zorder=1)


def _mark_star(axes: "Axes", star: Any, *, least: float) -> None:
    fpr, fnr = (dig(star.details, "at", rate) if star else None for rate in ("fpr", "fnr"))
    if fpr is None or fnr is None or dig(star.details, "branch") != "m1" or fpr < least or fnr >= 1:
        return
    words = "Epsilon* is read here"
    style: dict[str, Any] = {
        "color": INK,
        "marker": "o",
        "markersize": 5,
        "markerfacecolor": "none",
        "linestyle": "none",
    }
    axes.plot([fpr], [1 - fnr], label=words, zorder=6, clip_on=False, **style)
