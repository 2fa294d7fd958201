"""The figures of a report, each a matplotlib ``Figure`` that a paper can use as it is.

Only the object-oriented interface is used, and the style is set for the time of drawing: nothing global changes.
A figure for which the audit has no data is null.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from auditor.report import formatting, traces
from auditor.report.lookup import STAR, amount, dig, find
from auditor.report.svg import ACCENT, INK, MUTED, NEUTRAL, STYLE, svg
from auditor.result import AuditResult, NamedCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["histogram_figure", "quantile_figure", "runs_out", "svg", "tradeoff_figure", "tradeoff_log_figure"]

Floats = npt.NDArray[np.float64]

_SIZE, _TALL = (4.4, 3.7), (4.4, 4.4)
_LINES: dict[str, dict[str, Any]] = {
    "empirical": {"color": ACCENT, "linewidth": 1.8, "zorder": 5},
    "gaussian": {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 2)), "zorder": 4},
    "mixture": {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 1.5, 1, 1.5)), "zorder": 4},
    "claim": {"color": INK, "linewidth": 1.6, "linestyle": (0, (1, 1.2)), "zorder": 3},
}
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
    finest, least = _reach(result)
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
        _mark_star(axes, find(result, STAR), least=least)
        _percent_axes(axes)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def runs_out(result: AuditResult) -> bool:
    """Whether the logarithmic figure goes on where the records run out, so that a part of it is shaded."""
    finest, least = _reach(result)
    return least < finest


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
        _plain_axis(axes.xaxis)
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
        if not ends or min(ends) == max(ends):
            return None  # nothing to compare: no points, or a single place
        span = [min(ends), max(ends)]
        axes.plot(span, span, color=MUTED, linewidth=0.8, label="Perfect fit")
        axes.set(xlabel="Quantile of the fitted curve", ylabel="Quantile of the records")
        _plain_axis(axes.xaxis)
        _plain_axis(axes.yaxis)
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


def _reach(result: AuditResult) -> tuple[float, float]:
    """The finest rate that the non-members can show, and the rate that the logarithmic axes begin at."""
    star, records = find(result, STAR), amount(result.data, "n_nonmember")
    finest = 1 / max(records if records and math.isfinite(records) else 1000, 2)
    return finest, traces.floor(finest, amount(star.details, "at", "fpr") if star else None)


def _plain_axis(axis: "Axis") -> None:
    """Every tick in full, with as many digits as it takes to tell it from the next: no offset, no power aside."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def words(x: float, _: object) -> str:
        low, high = axis.get_view_interval()
        span, most = abs(high - low), max(abs(low), abs(high))
        if span <= 0 or abs(x) < span * 1e-9:
            return formatting.number(0.0 if span > 0 else x)
        digits = min(max(math.ceil(math.log10(most) - math.log10(span)) + 2, 3), 16)
        return formatting.number(float(f"{x:.{digits}g}"), digits=digits).replace("-", "−")  # noqa: RUF001

    axis.set_major_locator(MaxNLocator(nbins=5))
    axis.set_major_formatter(FuncFormatter(words))


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
    fpr, fnr = (amount(star.details, "at", rate) if star else None for rate in ("fpr", "fnr"))
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
