"""Observed against fitted quantiles: whether a fitted curve holds where it is read, in the tails."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from auditor.report import formatting, traces
from auditor.report.figures.canvas import WIDTH, Floats, plain_axis, sheet
from auditor.report.figures.losses import fitted_index
from auditor.report.lookup import amount
from auditor.report.svg import ACCENT, INK, MUTED, NEUTRAL
from auditor.result import AuditResult, Histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["quantile_figure", "quantile_words"]

_NAMES = {"member": "Members", "nonmember": "Non-members"}
_FEWEST = 3


class _Side(NamedTuple):
    """One group: its quantiles, and the band in which each observed one lies if the fit is true."""

    fitted: Floats
    observed: Floats
    low: Floats | None
    high: Floats | None


def quantile_figure(result: AuditResult, *, index: int | None = None) -> "Figure | None":
    """Return observed against fitted quantiles, one panel for each group: points in the band mean that the fit holds.

    The band is pointwise: at the audit's confidence each point by itself lies inside if the fitted curve is true. It
    comes from the Beta law of an order statistic; that the curve was fitted to the same records makes it too wide.

    Args:
        result: Any audit.
        index: Which histogram; default the one with the fits.
    """
    sides = _sides(result, index)
    if not sides:
        return None
    with sheet((WIDTH, 2.8), ncols=len(sides)) as (figure, panels):
        for panel, (name, side) in zip(panels, sides.items(), strict=True):
            _draw(panel, name, side, level=_level(result))
        panels[0].set_ylabel("Quantile of the records")
        figure.supxlabel("Quantile of the fitted curve", fontsize="medium", color=MUTED)
        handles, words = panels[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="outside upper center", ncols=len(words))
    return figure


def _sides(result: AuditResult, index: int | None) -> dict[str, _Side]:
    histogram = traces.histogram(result, fitted_index(result) if index is None else index)
    if histogram is None or not histogram.quantiles:
        return {}
    found = {name: _side(result, histogram, name) for name in _NAMES}
    return {name: side for name, side in found.items() if side is not None}


def _side(result: AuditResult, histogram: Histogram, name: str) -> _Side | None:
    kinds = (histogram.quantiles.get(f"{name}_{kind}", ()) for kind in ("fitted", "observed"))
    fitted, observed = traces.finite(*kinds)
    ends = [*fitted, *observed]
    if not ends or min(ends) == max(ends):
        return None  # nothing to compare: no points, or a single place
    band = (
        _band(result, histogram, name)
        if fitted.size == len(histogram.quantiles.get("probability", ()))
        else None
    )
    return _Side(fitted, observed, *(band or (None, None)))


def _level(result: AuditResult) -> float:
    level = amount(result.data, "confidence")
    return level if level is not None and 0 < level < 1 else 0.95


def _band(result: AuditResult, histogram: Histogram, name: str) -> tuple[Floats, Floats] | None:
    """Pointwise limits of each observed quantile if the fitted law is true.

    F of the k-th smallest of n records has the law Beta(k, n + 1 - k); the fitted quantile function takes its limits
    to the scale of the losses. It is known at the levels (k - 1/2)/n only, and continued between and beyond them on the
    scale of normal quantiles, where that of a normal law is straight.
    """
    from scipy.special import betaincinv, ndtri

    records = amount(result.data, f"n_{name}")
    levels = np.asarray(histogram.quantiles.get("probability", ()), dtype=np.float64)
    if records is None or not math.isfinite(records) or records < _FEWEST or not _proper(levels):
        return None
    k = _ranks(levels, records)
    z, fitted = ndtri((k - 0.5) / records), np.asarray(histogram.quantiles[f"{name}_fitted"])
    z, first = np.unique(z, return_index=True)
    if z.size < _FEWEST:
        return None
    spare = (1 - _level(result)) / 2
    limits = (ndtri(betaincinv(k, records + 1 - k, part)) for part in (spare, 1 - spare))
    low, high = (_continued(np.asarray(limit, dtype=np.float64), z, fitted[first]) for limit in limits)
    return low, high


def _proper(levels: Floats) -> bool:
    return levels.size >= _FEWEST and bool(((levels > 0) & (levels <= 1) & np.isfinite(levels)).all())


def _ranks(levels: Floats, records: float) -> Floats:
    """The rank of the record that each level was read at, from 1; six digits are too few near a level of 1."""
    mirrored = 1 - levels[::-1]
    if np.abs(mirrored - levels).max() < 1e-5:  # noqa: PLR2004 symmetric levels, but for rounding
        levels = np.where(levels > 0.5, mirrored, levels)  # noqa: PLR2004
    return np.asarray(np.clip(np.round(levels * records - 0.5), 0, records - 1) + 1)


def _continued(at: Floats, z: Floats, values: Floats) -> Floats:
    """Values between the known places, and straight on beyond the first and the last two."""
    found = np.interp(at, z, values)
    for ends, outside in (((0, 1), at < z[0]), ((-2, -1), at > z[-1])):
        a, b = ends
        slope = (values[b] - values[a]) / (z[b] - z[a])
        found = np.where(outside, values[a] + slope * (at - z[a]), found)
    return found


def _draw(panel: "Axes", name: str, side: _Side, *, level: float) -> None:
    colour, mark = (ACCENT, "o") if name == "member" else (INK, "^")
    ends = np.concatenate([side.fitted, side.observed])
    span = [float(ends.min()), float(ends.max())]
    if side.low is not None and side.high is not None:
        words = f"{formatting.percent(level, toward='down')} of points, if the fit is true"
        order = np.argsort(side.fitted, kind="stable")
        x, low, high = (column[order] for column in (side.fitted, side.low, side.high))
        panel.fill_between(x, low, high, color=NEUTRAL, alpha=0.3, linewidth=0, label=words)
        for edge in (low, high):
            panel.plot(x, edge, color=MUTED, linewidth=0.5)
    panel.plot(span, span, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)), label="Perfect fit")
    panel.plot(side.fitted, side.observed, color=colour, marker=mark, markersize=2.8, linestyle="none")
    room = 0.04 * (span[1] - span[0])
    panel.set(
        title=_NAMES[name], xlim=(span[0] - room, span[1] + room), ylim=(span[0] - room, span[1] + room)
    )
    plain_axis(panel.xaxis, most=3)
    plain_axis(panel.yaxis, most=4)


def quantile_words(result: AuditResult) -> str:
    """Return what the figure shows, with how many points leave the band in each group."""
    sentences = [_words(name, side) for name, side in _sides(result, None).items()]
    level = formatting.percent(_level(result), toward="down")
    band = (
        f" The band holds {level} of the points, each by itself, if the fitted curve is true."
        if sentences
        else ""
    )
    return f"Quantiles of the records against quantiles of the fitted normal curves.{band} {' '.join(sentences)}".strip()


def _words(name: str, side: _Side) -> str:
    if side.low is None or side.high is None:
        return f"{_NAMES[name]}: {side.fitted.size} points, no band."
    outside = (side.observed < side.low) | (side.observed > side.high)
    low_end, high_end = (int(part.sum()) for part in np.array_split(outside, 2))
    return (
        f"{_NAMES[name]}: {int(outside.sum())} of {outside.size} points lie outside the band,"
        f" {low_end} in the lower half and {high_end} in the upper half."
    )
