"""The losses that the curves are fitted to, and how well they fit: histograms and quantile plots."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from auditor.core import numbers
from auditor.curves.views import Histogram
from auditor.report.figures import canvas
from auditor.results.document import AuditResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- The losses of members and of non-members, binned: how far apart they lie, and where a fit goes wrong ---


def _histogram(result: AuditResult, *, raw: bool = False) -> Histogram | None:
    """Return the histogram that carries the fits, or the other one, of the losses as given; None if it cannot be drawn."""
    ordered = sorted(result.histograms, key=lambda item: not (item.quantiles or item.member_fit))
    for item in ordered[raw : raw + 1]:
        edges = np.asarray(item.edges)
        if (np.abs(edges) < canvas.FARTHEST).all() and (np.diff(edges) >= 0).all():
            return item
    return None


_COLUMNS = ("member", "nonmember", "member_fit", "nonmember_fit")


def _merged(whole: Histogram, keep: Sequence[int]) -> Histogram:
    """Return a histogram with these of its edges alone, both ends among them."""
    bars = {name: side for name in _COLUMNS if (side := getattr(whole, name)) is not None}
    sums: dict[str, Any] = {
        name: tuple(np.add.reduceat(np.asarray(side, dtype=np.float64), keep[:-1]).tolist())
        for name, side in bars.items()
    }
    return replace(whole, edges=tuple(np.take(whole.edges, keep).tolist()), **sums)


def histogram_figure(result: AuditResult, *, raw: bool = False) -> "Figure | None":
    """Return the losses of members and non-members on one scale, with the fitted curves where there are any.

    Args:
        result: The audit.
        raw: Whether to show the losses as given beside those that a curve was fitted to.
    """
    histogram = _histogram(result, raw=raw)
    if histogram is None:
        return None
    histogram, rest = _central(histogram)
    edges = np.asarray(histogram.edges, dtype=np.float64)
    groups = (histogram.member, histogram.member_fit), (histogram.nonmember, histogram.nonmember_fit)
    heights = np.zeros(edges.size - 1)
    with canvas.axes() as (figure, panel):
        for (counts, fit), name, (bars, line) in zip(groups, _NAMES.values(), _LOOKS, strict=True):
            shares, *fitted = (
                canvas.density(side, edges, total=_total(counts))
                for side in (counts, fit)
                if side is not None
            )
            heights = np.maximum(heights, shares)
            panel.stairs(shares, edges, fill=True, label=name, linewidth=1.0, **bars)
            for curve in fitted:
                panel.plot((edges[1:] + edges[:-1]) / 2, curve, label=f"{name}, fit", linewidth=1.7, **line)
        _cut_tall(panel, histogram, heights)
        panel.set(xlabel=f"Loss, {_scale(histogram)}{rest}", ylabel="Share of records", yticks=[])
        canvas.plain_axis(panel.xaxis)
        panel.grid(visible=False)
        canvas.legend(figure)
    return figure


_NAMES = {"member": "Members", "nonmember": "Non-members"}
# Of the bars and of the fit. Only the outline of non-members is dashed: no colour is needed to tell the groups apart.
_BAR: dict[str, Any] = {"facecolor": (canvas.ACCENT, 0.3), "edgecolor": canvas.ACCENT}
_OTHER = {"facecolor": (canvas.NEUTRAL, 0.2), "edgecolor": canvas.MUTED, "linestyle": canvas.DASHED}
_LINE: dict[str, Any] = {"color": canvas.INK, "linestyle": (0, (1, 1.2))}
_LOOKS = (_BAR, {"color": canvas.ACCENT}), (_OTHER, _LINE)
_CENTRE, _REACH, _WORTH = (0.05, 0.95), 2.5, 1.4  # shares of a group; times their distance, and times that
_FINEST, _END, _FEWEST_BARS = 1 / 90, 1 / 20, 8  # shares of the axis: a bar at least, and a bar at an end
_TALL, _MOST_TALL = 4, 3  # as many times higher than the next bar, and as many bars at most


def _central(whole: Histogram) -> tuple[Histogram, str]:
    """Return a histogram as it is drawn, and what the axis says of its ends.

    A few losses far out would press all others into one bar: the outermost bars then hold them. Cells too narrow to be
    seen become one with the next.
    """
    edges = np.asarray(whole.edges, dtype=np.float64)
    groups = [np.append(0.0, np.cumsum(side)) for side in (whole.member, whole.nonmember) if np.any(side)]
    ends = [np.interp(_CENTRE, group / group[-1], edges) for group in groups] or [edges[[0, -1]]]
    low, high = np.min(ends), np.max(ends)
    reach = _REACH * (high - low)
    inside = np.flatnonzero(np.abs(edges - (low + high) / 2) <= reach / 2)
    is_cut = inside.size > _FEWEST_BARS // 2 and edges[-1] - edges[0] > _WORTH * reach
    first, last = (inside[0], inside[-1]) if is_cut else (0, edges.size - 1)
    keep, span = [first], edges[last] - edges[first]
    for place in range(first + 1, last):
        if min(edges[place] - edges[keep[-1]], edges[last] - edges[place]) >= span * _FINEST:
            keep.append(place)
    drawn = _merged(whole, sorted({0, *keep, last, edges.size - 1}))
    places = np.clip(drawn.edges, edges[first] - span * _END, edges[last] + span * _END)
    return replace(drawn, edges=tuple(places)), "; the outermost bars hold the rest" if is_cut else ""


def _cut_tall(panel: "Axes", drawn: Histogram, heights: canvas.Floats) -> None:
    """End the axis where all bars can be seen: a few that would make the others flat are cut off, with their shares."""
    order = np.argsort(heights)[::-1]
    falling = heights[order]
    most = min(_MOST_TALL, int(np.count_nonzero(heights)) - _FEWEST_BARS)
    tall = max((k for k in range(1, most + 1) if falling[k - 1] > _TALL * falling[k]), default=0)
    top = (1.6 if tall else 1.06) * float(falling[tall]) or 1.0
    panel.set_ylim(0, top)
    if tall == 0:
        return
    cut, edges = order[:tall], np.asarray(drawn.edges)
    sides = drawn.member, drawn.nonmember
    shares = [numbers.percent(np.sum(np.take(side, cut)) / _total(side)) for side in sides]
    words = f"Cut off: {shares[0]} of members\nand {shares[1]} of non-members"
    panel.plot((edges[cut] + edges[cut + 1]) / 2, [top] * tall, "^", color=canvas.MUTED, clip_on=False)
    is_left = edges[cut[0]] < edges[[0, -1]].mean()
    at, away, side = (edges[cut + 1].max(), 5, "left") if is_left else (edges[cut].min(), -5, "right")
    look: dict[str, Any] = {"textcoords": "offset points", "ha": side, "va": "top", "fontsize": 7.4}
    panel.annotate(words, (at, top), xytext=(away, 0), **look)


def _total(counts: Any) -> float:
    return max(float(np.sum(counts)), 1.0)


def _scale(histogram: Histogram) -> str:
    return "as given" if histogram.scale == "loss" else canvas.one_line(histogram.scale)


def histogram_words(result: AuditResult, *, raw: bool = False) -> str:
    """Describe the histogram, with the middle and the central part of both groups as far as the bins show them."""
    histogram = _histogram(result, raw=raw)
    if histogram is None:
        return "Histogram of losses: there are no data for it."
    edges = np.asarray(histogram.edges, dtype=np.float64)
    sides = (("members", histogram.member), ("non-members", histogram.nonmember))
    middles = [f"half of the {name} lie {_middle(counts, edges)}" for name, counts in sides]
    fit = " The fitted normal curves are drawn over it." if histogram.member_fit is not None else ""
    return f"Histogram of losses, {_scale(histogram)}: {', and '.join(middles)}.{fit}"


def _middle(counts: Any, edges: canvas.Floats) -> str:
    """Between which bin edges the central half lies."""
    up_to = np.cumsum(np.asarray(counts, dtype=np.float64)) / _total(counts)
    first, last = np.minimum(np.searchsorted(up_to, (0.25, 0.75)), edges.size - 2)
    low, high = float(edges[first]), float(edges[last + 1])
    texts = numbers.number(low), numbers.number(high)
    texts = numbers.distinct(low, high) if texts[0] == texts[1] else texts
    return f"between {canvas.true_minus(texts[0])} and {canvas.true_minus(texts[1])}"


# --- Observed against fitted quantiles: whether a fitted curve holds where it is read, in the tails ---


_FEWEST = 3


class _Side(NamedTuple):
    """One group: its quantiles, and the band in which each observed one lies if the fit is true."""

    fitted: canvas.Floats
    observed: canvas.Floats
    low: canvas.Floats | None
    high: canvas.Floats | None


def quantile_figure(result: AuditResult) -> "Figure | None":
    """Return observed against fitted quantiles, one panel for each group: points in the band mean that the fit holds.

    The band is pointwise: at the audit's confidence each point by itself lies inside if the fitted curve is true. It
    comes from the Beta law of an order statistic; that the curve was fitted to the same records makes it too wide.
    """
    sides = _sides(result)
    if not sides:
        return None
    with canvas.sheet((canvas.WIDTH, 2.5), top=0.28, ncols=len(sides)) as (figure, panels):
        for panel, (name, side) in zip(panels, sides.items(), strict=True):
            _draw_quantiles(panel, name, side, level=_quantile_level(result))
            panel.set_xlabel("Quantile of the fit")
        panels[0].set_ylabel("Quantile of the records")
        canvas.legend(figure)
    return figure


def _sides(result: AuditResult) -> dict[str, _Side]:
    histogram = _histogram(result)
    if histogram is None or not histogram.quantiles:
        return {}
    sides = {name: _side(result, histogram, name) for name in _NAMES}
    return {name: side for name, side in sides.items() if side is not None}


def _side(result: AuditResult, histogram: Histogram, name: str) -> _Side | None:
    kinds = (histogram.quantiles.get(f"{name}_{kind}", ()) for kind in ("fitted", "observed"))
    fitted, observed = canvas.finite(*kinds)
    ends = [*fitted, *observed]
    if not ends or min(ends) == max(ends):
        return None  # nothing to compare: no points, or a single place
    whole = fitted.size == len(_levels(histogram, name))
    band = _band(result, histogram, name) if whole else None
    return _Side(fitted, observed, *(band or (None, None)))


def _quantile_level(result: AuditResult) -> float:
    level = result.data.get("confidence")
    return level if level is not None and 0 < level < 1 else 0.95


def _band(result: AuditResult, histogram: Histogram, name: str) -> tuple[canvas.Floats, canvas.Floats] | None:
    """Pointwise limits of each observed quantile if the fitted law is true.

    F of the k-th smallest of n records has the law Beta(k, n + 1 - k); the fitted quantile function takes its limits
    to the scale of the losses. It is known at the levels (k - 1/2)/n only, and continued between and beyond them on the
    scale of normal quantiles, where that of a normal law is straight.
    """
    from scipy.special import betaincinv, ndtri

    records = result.data.get(f"n_{name}")
    levels = np.asarray(_levels(histogram, name), dtype=np.float64)
    if records is None or not math.isfinite(records) or records < _FEWEST or not _proper(levels):
        return None
    k = _ranks(levels, records)
    z, fitted = ndtri((k - 0.5) / records), np.asarray(histogram.quantiles[f"{name}_fitted"])
    z, first = np.unique(z, return_index=True)
    if z.size < _FEWEST:
        return None
    spare = (1 - _quantile_level(result)) / 2
    limits = (ndtri(betaincinv(k, records + 1 - k, part)) for part in (spare, 1 - spare))
    low, high = (_continued(np.asarray(limit, dtype=np.float64), z, fitted[first]) for limit in limits)
    return low, high


def _levels(histogram: Histogram, name: str) -> Sequence[float]:
    """The share of a group below each of its quantiles; that of both groups in a result for insiders."""
    return histogram.quantiles.get(f"{name}_probability", histogram.quantiles.get("probability", ()))


def _proper(levels: canvas.Floats) -> bool:
    return levels.size >= _FEWEST and bool(((levels > 0) & (levels <= 1) & np.isfinite(levels)).all())


def _ranks(levels: canvas.Floats, records: float) -> canvas.Floats:
    """The rank of the record that each level was read at, from 1; six digits are too few near a level of 1."""
    mirrored = 1 - levels[::-1]
    if np.abs(mirrored - levels).max() < 1e-5:  # noqa: PLR2004 symmetric levels, but for rounding
        levels = np.where(levels > 0.5, mirrored, levels)  # noqa: PLR2004
    return np.asarray(np.clip(np.round(levels * records - 0.5), 0, records - 1) + 1)


def _continued(at: canvas.Floats, z: canvas.Floats, values: canvas.Floats) -> canvas.Floats:
    """Values between the known places, and straight on beyond the first and the last two."""
    reached = np.interp(at, z, values)
    for ends, outside in (((0, 1), at < z[0]), ((-2, -1), at > z[-1])):
        a, b = ends
        slope = (values[b] - values[a]) / (z[b] - z[a])
        reached = np.where(outside, values[a] + slope * (at - z[a]), reached)
    return reached


def _draw_quantiles(panel: "Axes", name: str, side: _Side, *, level: float) -> None:
    colour, mark = (canvas.ACCENT, "o") if name == "member" else (canvas.INK, "^")
    ends = np.concatenate([side.fitted, side.observed])
    span = [float(ends.min()), float(ends.max())]
    if side.low is not None and side.high is not None:
        words = f"{numbers.percent(level, toward='down')} of points, if the fit is true"
        order = np.argsort(side.fitted, kind="stable")
        x, low, high = (column[order] for column in (side.fitted, side.low, side.high))
        panel.fill_between(x, low, high, color=canvas.NEUTRAL, alpha=0.3, linewidth=0, label=words)
        for edge in (low, high):
            panel.plot(x, edge, color=canvas.MUTED, linewidth=0.5)
    panel.plot(span, span, color=canvas.MUTED, linewidth=0.9, linestyle=(0, (4, 2)), label="Perfect fit")
    panel.plot(side.fitted, side.observed, color=colour, marker=mark, markersize=2.8, linestyle="none")
    room = 0.04 * (span[1] - span[0])
    limits = span[0] - room, span[1] + room
    panel.set(title=_NAMES[name], xlim=limits, ylim=limits)
    canvas.plain_axis(panel.xaxis, most=3)
    canvas.plain_axis(panel.yaxis, most=4)


def quantile_words(result: AuditResult) -> str:
    """Describe the figure, with the number of points outside the band in each group."""
    sentences = [_words(name, side) for name, side in _sides(result).items()]
    level = numbers.percent(_quantile_level(result), toward="down")
    about = ["Quantiles of the records against quantiles of the fitted normal curves."]
    if sentences:
        about.append(f"The band holds {level} of the points, each by itself, if the fitted curve is true.")
    return " ".join(about + sentences)


def _words(name: str, side: _Side) -> str:
    if side.low is None or side.high is None:
        return f"{_NAMES[name]}: {side.fitted.size} points, no band."
    outside = (side.observed < side.low) | (side.observed > side.high)
    lower, upper = (int(part.sum()) for part in np.array_split(outside, 2))
    counts = {"outside": lower + upper, "points": outside.size, "lower": lower, "upper": upper}
    return canvas.WORDS["outside"].format(group=_NAMES[name], **counts)
