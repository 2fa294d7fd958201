"""Several audits as matplotlib figures: the privacy-utility landscape (Negoescu et al. 2024, Figures 1 and 2), and a history.

Each point is a strategy, averaged over its instances; lines reach over the intervals of all its models, and bars from the
least to the largest of them; the dashed line is the Pareto frontier, where the values can be ranked; a lower bound has an
arrow towards more. Along the axes stand the densities of categories of many strategies. Up and left are better.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from auditor.comparison.compare import measure_title, utility_title
from auditor.comparison.runs import COMPARED, higher_is_better, is_lower_bound, more_is_worse
from auditor.comparison.strategies import Spread, Strategy
from auditor.core import numbers
from auditor.report.figures import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from auditor.comparison.compare import AuditsComparison


# --- Labels beside the points of a figure, kept apart from each other ---


NAMED = 12  # strategies up to which each has its name at its point, and from which on its number
CROWDED = 40  # labels from which on some may be left out

# Around a point: the first place where nothing else is, or else where least of anything is hidden.
_PLACES = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])
_AWAY = 7.0  # points of the figure from a point to its label
_SIDES = {-1: ("right", "top"), 0: ("center", "center"), 1: ("left", "bottom")}


def _write_labels(figure: "Figure", axes: "Axes", points: "Sequence[_Point]", line: canvas.Floats) -> None:
    """Write the name of each strategy, or of many its number, beside its point, away from points, labels and the line.

    Of more than `CROWDED` strategies those on the frontier have one in any case, and others where there is room.

    Args:
        figure: Laid out here, so that distances on paper are known; nothing may move afterwards.
        axes: Where the points are.
        points: The strategies.
        line: Shape (n, 2), along the frontier.
    """
    with canvas.any_letter():
        figure.draw_without_rendering()
    scale = figure.dpi / 72
    centres = np.array([(item.x.mean, item.y.mean) for item in points])
    there = axes.transData.transform(np.vstack([centres, line]))
    taken = np.vstack([np.hstack([there - 3 * scale, there + 3 * scale]), _bars(axes, points, pad=scale)])
    frame = np.asarray(axes.get_window_extent().extents)
    for place in sorted(range(len(points)), key=lambda place: not points[place].strategy.on_frontier):
        item = points[place].strategy
        words = canvas.one_line(item.name, most=26) if len(points) <= NAMED else str(item.number)
        look: dict[str, Any] = {"fontsize": 7.5, "color": canvas.INK, "zorder": 6, "annotation_clip": False}
        label = axes.annotate(words, centres[place], xytext=(0, 0), textcoords="offset points", **look)
        with canvas.any_letter():
            size = np.asarray(label.get_window_extent().size)
        low = there[place] + _PLACES * _AWAY * scale + (_PLACES - 1) / 2 * size
        boxes = np.hstack([low, low + size])
        hidden = _shared(boxes, np.delete(taken, place, axis=0)).sum(axis=1)
        hidden += size.prod() - _shared(boxes, frame[None]).sum(axis=1)
        best = int(hidden.argmin())
        if len(points) > CROWDED and not item.on_frontier and hidden[best] > 0:
            label.remove()
            continue
        taken = np.vstack([taken, boxes[best]])
        x, y = _PLACES[best]
        label.set(position=(x * _AWAY, y * _AWAY), ha=_SIDES[x][0], va=_SIDES[y][1])


def _bars(axes: "Axes", points: "Sequence[_Point]", *, pad: float) -> canvas.Floats:
    """Where the lines and bars of the points are, as boxes."""
    ends = [
        ((min(spans), item.y.mean), (max(spans), item.y.mean))
        for item in points
        for spans in [[item.x.least, item.x.most, *_interval(item)]]
    ]
    ends += [((item.x.mean, item.y.least), (item.x.mean, item.y.most)) for item in points]
    low, high = (axes.transData.transform(np.array(side)) for side in zip(*ends, strict=True))
    return np.hstack([np.minimum(low, high) - pad, np.maximum(low, high) + pad])


def _interval(item: "_Point") -> tuple[float, ...]:
    """Both ends, or nothing."""
    return tuple(end for end in (item.strategy.lower, item.strategy.upper) if end is not None)


def _shared(boxes: canvas.Floats, others: canvas.Floats) -> canvas.Floats:
    """The area that each box shares with each of the others; boxes are left, bottom, right, top."""
    low = np.maximum(boxes[:, None, :2], others[:, :2])
    high = np.minimum(boxes[:, None, 2:], others[:, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(axis=2))


# --- The words of the privacy-utility landscape: its axes, what a point says, and the whole picture for who cannot see it ---


_SHOWN = 20  # strategies named with their numbers before the rest are left to the table


def _axis_words(comparison: "AuditsComparison") -> str:
    """Return what stands along the axis of the measure."""
    title = canvas.one_line(measure_title(comparison))
    if is_lower_bound(comparison.measure):
        return f"{title} (a lower bound: the truth may be larger)"
    worse = "more is given away" if more_is_worse(comparison.measure) else "less is given away"
    return f"{title} (larger: {worse})"


def _utility_words(comparison: "AuditsComparison") -> str:
    """Return what stands along the axis of the utility."""
    name = canvas.one_line(utility_title(comparison))
    return f"{name[:1].upper()}{name[1:]} ({'larger' if higher_is_better(comparison.runs) else 'smaller'} is better)"


def _value(x: float, comparison: "AuditsComparison") -> str:
    """A value of the measure; a lower bound is never rounded up."""
    return numbers.number(x, toward="down" if is_lower_bound(comparison.measure) else "nearest")


def tip_words(item: "_Point", comparison: "AuditsComparison") -> str:
    """Return what a point says when it is pointed at."""
    one = is_lower_bound(comparison.measure) and len(item.strategy.runs) == 1
    parts = (
        f"{item.strategy.number}. {item.strategy.name}",
        f"{measure_title(comparison)} {'at least ' if one else ''}{_value(item.x.mean, comparison)}",
        f"{utility_title(comparison)} {numbers.number(item.y.mean)}",
        *item.strategy.marks,
    )
    return ", ".join(parts)


def alt(comparison: "AuditsComparison") -> str:
    """Return what the picture shows, in words."""
    points = _points(comparison)
    values, useful = ([getattr(item, axis).mean for item in points] for axis in ("x", "y"))
    of = " (lower bounds, each with an arrow towards more)" if is_lower_bound(comparison.measure) else ""
    span = f"from {_value(min(values), comparison)} to {_value(max(values), comparison)}"
    return (
        f"Privacy-utility landscape of {len(points)} strategies: {measure_title(comparison)}{of} {span} against"
        f" {utility_title(comparison)} from {numbers.number(min(useful))} to {numbers.number(max(useful))}."
        f" {_frontier(comparison)} The table of strategies has every number."
    )


def _frontier(comparison: "AuditsComparison") -> str:
    if comparison.no_frontier is not None:
        return "No frontier is drawn."
    corners = ", ".join(
        f"{item.number} ({_value(item.measure.mean, comparison)} and {numbers.number(item.utility.mean)})"
        for item in comparison.frontier[:_SHOWN]
        if item.measure is not None and item.utility is not None
    )
    more = len(comparison.frontier) - _SHOWN
    return f"The Pareto frontier goes through the strategies numbered {corners}{f' and {more} more' if more > 0 else ''}."


_SIZE = (7.2, 5.6)
_WIDE = 30.0  # a larger ratio of the measures needs a logarithmic axis
DENSE = 8  # strategies for a density
_STYLES = (
    ("o", canvas.ACCENT),
    ("s", canvas.INK),
    ("^", canvas.NEUTRAL),
    ("D", canvas.MUTED),
    ("v", canvas.ACCENT),
    ("P", canvas.INK),
)
_LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1)), (0, (8, 2)))
_OTHERS = "Other categories"


class _Point(NamedTuple):
    """A strategy with both coordinates, and the category that it is shown with."""

    strategy: Strategy
    category: str
    x: Spread
    y: Spread


def _points(comparison: "AuditsComparison") -> list[_Point]:
    if comparison.no_landscape is not None:
        return []
    shown = categories(comparison.strategies)
    return [
        _Point(item, item.category if item.category in shown else _OTHERS, item.measure, item.utility)
        for item in comparison.strategies
        if item.measure is not None and item.utility is not None
    ]


def categories(strategies: Sequence[Strategy]) -> tuple[str, ...]:
    """Return the categories that have a sign of their own, in the order of the strategies; the rest share one."""
    found = list(dict.fromkeys(item.category for item in strategies if item.placed))
    return tuple(found if len(found) <= len(_STYLES) else [*found[: len(_STYLES) - 1], _OTHERS])


def landscape_figure(comparison: "AuditsComparison") -> "Figure | None":
    """Return the privacy-utility landscape, or null where there is none."""
    points = _points(comparison)
    if not points:
        return None
    from matplotlib.figure import Figure

    groups = categories(comparison.strategies)
    by_group = [[item for item in points if item.category == category] for category in groups]
    crowds = [mine for mine in by_group if len(mine) >= DENSE]
    with canvas.styled():
        figure = Figure(figsize=_SIZE, layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=(6, 1), height_ratios=(1, 6)) if crowds else None
        axes = figure.add_subplot(grid[1, 0]) if grid else figure.add_subplot()
        axes.set_axisbelow(True)
        _scale(axes, logarithmic(comparison))
        for place, mine in enumerate(by_group):
            _draw(axes, mine, comparison, place=place, named=len(groups) > 1)
        if is_lower_bound(comparison.measure):
            _draw_arrows(axes, points)
        line = _draw_frontier(axes, [item for item in points if item.strategy.on_frontier])
        _orient(axes, comparison)
        axes.set(xlabel=_axis_words(comparison), ylabel=_utility_words(comparison))
        axes.yaxis.label.set_rotation_mode("anchor")
        if grid:
            _margins(figure, axes, grid, by_group)
        if axes.get_legend_handles_labels()[1]:
            figure.legend(loc="outside lower center", ncols=2)
        _write_labels(figure, axes, points, line)
    return figure


def logarithmic(comparison: "AuditsComparison") -> float | None:
    """Return how far from 0 the axis of the measure begins to be logarithmic, or null where it is linear."""
    if comparison.measure in COMPARED:
        return None  # from 0 to 1
    ends = np.array([end for item in _points(comparison) for end in (item.x.least, item.x.most)])
    positive = ends[ends > 0]
    if not positive.size or (ends < 0).any() or positive.max() <= _WIDE * positive.min():
        return None
    return float(max(positive.min(), positive.max() * 1e-4))


def _scale(axes: "Axes", from_zero: float | None) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator, SymmetricalLogLocator

    if from_zero is None:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    else:
        axes.set_xscale("symlog", linthresh=from_zero, linscale=0.5)
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=from_zero, subs=[1, 2, 5]))
        axes.xaxis.set_minor_locator(NullLocator())

    def words(x: float, _: object) -> str:
        near_zero = from_zero is not None and 0 < abs(x) < 0.99 * from_zero  # where ticks stand too close
        return "" if near_zero else canvas.true_minus(numbers.number(float(f"{x:.6g}")))

    axes.xaxis.set_major_formatter(FuncFormatter(words))
    axes.margins(0.09)


def _draw(
    axes: "Axes", points: Sequence[_Point], comparison: "AuditsComparison", *, place: int, named: bool
) -> None:
    mark, colour = _STYLES[place]
    x, y = ([getattr(item, axis).mean for item in points] for axis in ("x", "y"))
    bars: dict[str, Any] = {
        f"{axis}err": [
            [getattr(item, axis).mean - getattr(item, axis).least for item in points],
            [getattr(item, axis).most - getattr(item, axis).mean for item in points],
        ]
        for axis in ("x", "y")
    }
    axes.errorbar(x, y, **bars, linestyle="none", elinewidth=0.9, capsize=2, ecolor=colour, zorder=4)
    style: dict[str, Any] = {"color": colour, "marker": mark, "linestyle": "none", "markersize": 5.5}
    if named:
        axes.plot([], [], **style, label=canvas.one_line(points[0].category))
    for item in points:
        if ends := _interval(item):
            axes.plot(ends, [item.y.mean] * 2, color=colour, linewidth=2, alpha=0.35)
        face = canvas.CARD if item.strategy.marks else colour
        (point,) = axes.plot(item.x.mean, item.y.mean, **style, markerfacecolor=face, zorder=5)
        canvas.tip(point, tip_words(item, comparison))


def _draw_arrows(axes: "Axes", points: Sequence[_Point]) -> None:
    """An arrow of one length at each lower bound: the truth may lie anywhere in its direction."""
    style: dict[str, Any] = {
        "arrowstyle": "<-",
        "color": canvas.MUTED,
        "linewidth": 0.9,
        "shrinkA": 0,
        "shrinkB": 4,
    }
    for item in points:
        place = item.x.mean, item.y.mean
        axes.annotate("", place, xytext=(20, 0), textcoords="offset points", arrowprops=style, zorder=3)


def _draw_frontier(axes: "Axes", corners: Sequence[_Point]) -> canvas.Floats:
    """Draw it straight in the plane, and so bent on a logarithmic axis; return points along it."""
    if not corners:
        return np.empty((0, 2))
    along = sorted(corners, key=lambda item: item.y.mean)
    x, y = (np.array([getattr(item, axis).mean for item in along]) for axis in ("x", "y"))
    steps = np.arange(0, x.size - 1 + 1e-9, 1 / 40) if x.size > 1 else np.zeros(1)
    whole = np.arange(x.size)
    line = np.interp(steps, whole, x), np.interp(steps, whole, y)
    axes.plot(
        *line, color=canvas.INK, linewidth=1.1, linestyle=(0, (4, 2)), zorder=3, label="Pareto frontier"
    )
    ring: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "linestyle": "none", "zorder": 4}
    axes.plot(x, y, color=canvas.INK, markersize=10.5, markeredgewidth=0.9, label="On the frontier", **ring)
    return np.stack(line, axis=1)


def _orient(axes: "Axes", comparison: "AuditsComparison") -> None:
    """Better is up and to the left."""
    if not more_is_worse(comparison.measure):
        axes.invert_xaxis()
    if not higher_is_better(comparison.runs):
        axes.invert_yaxis()


# --- Densities along the axes ------------------------------------------------------------------------


def _margins(figure: "Figure", axes: "Axes", grid: Any, by_group: Sequence[Sequence[_Point]]) -> None:
    above = figure.add_subplot(grid[0, 0], sharex=axes)
    beside = figure.add_subplot(grid[1, 1], sharey=axes)
    limits = axes.get_xlim(), axes.get_ylim()
    for side, axis, limit in ((above, "x", limits[0]), (beside, "y", limits[1])):
        side.axis("off")
        for place, mine in enumerate(by_group):
            curve = _density(np.array([getattr(item, axis).mean for item in mine]), limit, side, axis=axis)
            if curve is not None:
                look: dict[str, Any] = {"color": _STYLES[place][1], "linestyle": _LINES[place]}
                side.plot(*(curve if axis == "x" else curve[::-1]), linewidth=1.2, **look)
    axes.set(xlim=limits[0], ylim=limits[1])


def _density(
    values: canvas.Floats, limits: tuple[float, float], side: "Axes", *, axis: str
) -> tuple[canvas.Floats, canvas.Floats] | None:
    """A kernel density on the scale of the axis, its peak at 1; null for too few values, or for equal ones."""
    from scipy.stats import gaussian_kde

    transform = getattr(side, f"{axis}axis").get_transform()
    seen = np.asarray(transform.transform(values), dtype=np.float64)
    if seen.size < DENSE or float(np.ptp(seen)) <= 1e-9 * max(1.0, float(np.abs(seen).max())):
        return None
    low, high = (float(end) for end in np.sort(transform.transform(np.array(limits))))
    grid = np.linspace(low, high, 160)
    height = gaussian_kde(seen)(grid)
    return np.asarray(transform.inverted().transform(grid), dtype=np.float64), height / height.max()


# --- The same strategies over time -------------------------------------------------------------------


def history_figure(comparison: "AuditsComparison") -> "Figure | None":
    """Return what each audit measured in the order in which they were made, or null where they have no order in time."""
    told = comparison.history
    if not told:
        return None
    with canvas.axes((canvas.WIDTH * 1.8, 3.2)) as (figure, axes):
        places = np.arange(len(told))
        ends = np.array([item.ends or (item.value, item.value) for item in told], dtype=np.float64)
        values = np.array([item.value for item in told], dtype=np.float64)
        axes.vlines(places, *ends.T, color=canvas.ACCENT, linewidth=2, alpha=0.35)
        axes.plot(places, values, color=canvas.MUTED, linewidth=0.9, zorder=3)
        for place, item in enumerate(told):
            (point,) = axes.plot(place, values[place], "o", color=canvas.ACCENT, markersize=5.5, zorder=4)
            canvas.tip(point, f"{item.run.title}, {item.day}, {_value(values[place], comparison)}")
        every = -(-len(told) // NAMED)
        words = [f"{canvas.one_line(item.run.title, most=14)}\n{item.day}" for item in told[::every]]
        axes.set_xticks(places[::every], words, fontsize=7)
        axes.set(ylabel=canvas.one_line(measure_title(comparison)), xlim=(-0.5, len(told) - 0.5))
        axes.grid(visible=False, axis="x")
    return figure
