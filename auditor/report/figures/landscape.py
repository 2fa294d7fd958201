"""Several audits as matplotlib figures: the privacy-utility landscape (Negoescu et al. 2024, Figures 1 and 2), and a history.

Each point is a strategy, averaged over its instances; lines reach over the intervals of all its models, and bars from the
least to the largest of them; the dashed line is the Pareto frontier, where the values can be ranked; a lower bound has an
arrow towards more. Up and left are better.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from auditor.comparison import AuditsComparison
from auditor.comparison.runs import COMPARED, higher_is_better
from auditor.comparison.strategies import Spread, Strategy
from auditor.core import numbers
from auditor.report.figures import canvas
from auditor.results.metrics import metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- Labels beside the points of a figure, kept apart from each other ---


NAMED = 12  # strategies up to which each has its name at its point, and from which on its number

# Around a point: the first place where nothing else is, or else where least of anything is hidden.
_SIDES_OF_A_POINT = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])
_PLACES = np.tile(_SIDES_OF_A_POINT, (4, 1))
_AWAY = np.repeat([7.0, 14.0, 21.0, 28.0], 8)[:, None]  # points of the figure from a point to its label
_SIDES = {-1: ("right", "top"), 0: ("center", "center"), 1: ("left", "bottom")}

_WIDER = np.array([1.1, 1.0])  # a reader's browser may have a wider font


def _write_labels(figure: "Figure", axes: "Axes", points: "Sequence[_Point]", line: canvas.Floats) -> None:
    """Write the name of each strategy, or of many its number, beside its point, away from points, labels and the line.

    Args:
        figure: Laid out, so that distances on paper are known; nothing may move afterwards.
        axes: Where the points are.
        points: The strategies.
        line: Shape (n, 2), along the frontier.
    """
    scale = figure.dpi / 72
    centres = np.stack(_centres(points), axis=1)
    there = axes.transData.transform(np.vstack([centres, line]))
    taken = np.vstack([np.hstack([there - 3 * scale, there + 3 * scale]), _bars(axes, points, pad=scale)])
    frame = np.asarray(axes.get_window_extent().extents)
    for place in sorted(range(len(points)), key=lambda place: not points[place].strategy.on_frontier):
        item = points[place].strategy
        words = canvas.one_line(item.name, most=26) if len(points) <= NAMED else str(item.number)
        look: dict[str, Any] = {"fontsize": 7.5, "color": canvas.INK, "zorder": 6, "annotation_clip": False}
        label = axes.annotate(words, centres[place], xytext=(0, 0), textcoords="offset points", **look)
        with canvas.any_letter():
            size = np.asarray(label.get_window_extent().size) * _WIDER
        low = there[place] + _PLACES * _AWAY * scale + (_PLACES - 1) / 2 * size
        moved = np.clip(low, frame[:2], frame[2:] - size) - low  # no letter leaves the axes
        boxes = np.hstack([low + moved, low + moved + size])
        hidden = _shared(boxes, np.delete(taken, place, axis=0)).sum(axis=1)
        best = int(hidden.argmin())
        taken = np.vstack([taken, boxes[best]])
        x, y = _PLACES[best]
        position = _PLACES[best] * _AWAY[best] + moved[best] / scale
        label.set(position=tuple(position), ha=_SIDES[x][0], va=_SIDES[y][1])


def _bars(axes: "Axes", points: "Sequence[_Point]", *, pad: float) -> canvas.Floats:
    """Where the lines and bars of the points are, as boxes."""
    ends = []
    for item in points:
        along = item.x.least, item.x.most, *_interval(item)
        ends.append(((min(along), item.y.mean), (max(along), item.y.mean)))
        ends.append(((item.x.mean, item.y.least), (item.x.mean, item.y.most)))
    low, high = (axes.transData.transform(np.array(side)) for side in zip(*ends, strict=True))
    return np.hstack([np.minimum(low, high) - pad, np.maximum(low, high) + pad])


def _interval(item: "_Point") -> tuple[float, ...]:
    """Both ends, or nothing."""
    return tuple(end for end in (item.strategy.lower, item.strategy.upper) if end is not None)


def _centres(points: "Sequence[_Point]") -> tuple[canvas.Floats, canvas.Floats]:
    """Where the points are: the measure, and the utility."""
    return np.array([item.x.mean for item in points]), np.array([item.y.mean for item in points])


def _shared(boxes: canvas.Floats, others: canvas.Floats) -> canvas.Floats:
    """The area that each box shares with each of the others; boxes are left, bottom, right, top."""
    low = np.maximum(boxes[:, None, :2], others[:, :2])
    high = np.minimum(boxes[:, None, 2:], others[:, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(axis=2))


# --- The words of the privacy-utility landscape: its axes, what a point says, and the whole picture for who cannot see it ---


_SHOWN = 20  # strategies named with their numbers before the rest are left to the table


def _axis_words(comparison: AuditsComparison) -> str:
    """Return the title of the axis of the measure."""
    title = canvas.one_line(comparison.measure_title)
    if metric(comparison.measure).lower_bound:
        return f"{title}\n(a lower bound: the truth may be larger)"
    worse = "more is given away" if metric(comparison.measure).more_is_worse else "less is given away"
    return f"{title}\n(larger: {worse})"


def _utility_words(comparison: AuditsComparison) -> str:
    """Return the title of the axis of the utility."""
    name = canvas.one_line(comparison.utility_title)
    return f"{name[:1].upper()}{name[1:]}\n({'larger' if higher_is_better(comparison.runs) else 'smaller'} is better)"


def _value(x: float, comparison: AuditsComparison) -> str:
    """A value of the measure; a lower bound is never rounded up."""
    return numbers.number(x, toward="down" if metric(comparison.measure).lower_bound else "nearest")


def tip_words(item: "_Point", comparison: AuditsComparison) -> str:
    """Return the tooltip of a point."""
    one = metric(comparison.measure).lower_bound and len(item.strategy.runs) == 1
    parts = (
        f"{item.strategy.number}. {item.strategy.name}",
        f"{comparison.measure_title} {'at least ' if one else ''}{_value(item.x.mean, comparison)}",
        f"{comparison.utility_title} {numbers.number(item.y.mean)}",
        *item.strategy.marks,
    )
    return ", ".join(parts)


def alt(comparison: AuditsComparison) -> str:
    """Describe the picture."""
    points = _points(comparison)
    values, useful = _centres(points)
    of = " (lower bounds, each with an arrow towards more)" if metric(comparison.measure).lower_bound else ""
    span = f"from {_value(values.min(), comparison)} to {_value(values.max(), comparison)}"
    return (
        f"Privacy-utility landscape of {len(points)} strategies: {comparison.measure_title}{of} {span} against"
        f" {comparison.utility_title} from {numbers.number(useful.min())} to {numbers.number(useful.max())}."
        f" {_frontier(comparison)} The table of strategies has every number."
    )


def _frontier(comparison: AuditsComparison) -> str:
    if comparison.no_frontier is not None:
        return "No frontier is drawn."
    corners = ", ".join(
        f"{item.number} ({_value(item.measure.mean, comparison)} and {numbers.number(item.utility.mean)})"
        for item in comparison.frontier[:_SHOWN]
        if item.measure is not None and item.utility is not None
    )
    more = len(comparison.frontier) - _SHOWN
    return f"The Pareto frontier goes through the strategies numbered {corners}{f' and {more} more' if more > 0 else ''}."


_SIZE = (canvas.WIDTH, 3.9)
_WIDE = 30.0  # a larger ratio of the measures needs a logarithmic axis
_DAYS = 5  # audits of a history that have their names
_COLOURS = (canvas.ACCENT, canvas.INK, canvas.NEUTRAL, canvas.MUTED)
_STYLES = tuple(zip("os^D", _COLOURS, strict=True))
_OTHERS = "Other categories"


class _Point(NamedTuple):
    """A strategy with both coordinates, and the category that it is shown with."""

    strategy: Strategy
    category: str
    x: Spread
    y: Spread


def _points(comparison: AuditsComparison) -> list[_Point]:
    if comparison.no_landscape is not None:
        return []
    named = categories(comparison.strategies)
    return [
        _Point(item, item.category if item.category in named else _OTHERS, item.measure, item.utility)
        for item in comparison.strategies
        if item.measure is not None and item.utility is not None
    ]


def categories(strategies: Sequence[Strategy]) -> tuple[str, ...]:
    """Return the categories that have a sign of their own, in the order of the strategies; the rest share one."""
    names = list(dict.fromkeys(item.category for item in strategies if item.placed))
    return tuple(names if len(names) <= len(_STYLES) else [*names[: len(_STYLES) - 1], _OTHERS])


def landscape_figure(comparison: AuditsComparison) -> "Figure | None":
    """Return the privacy-utility landscape; None if no audit has a utility."""
    points = _points(comparison)
    if not points:
        return None
    groups = categories(comparison.strategies)
    by_group = [[item for item in points if item.category == category] for category in groups]
    with canvas.axes(_SIZE) as (figure, axes):
        _scale(axes, logarithmic(comparison))
        for place, mine in enumerate(by_group):
            _draw(axes, mine, comparison, place=place, named=len(groups) > 1)
        if metric(comparison.measure).lower_bound:
            _draw_arrows(axes, points)
        line = _draw_frontier(axes, [item for item in points if item.strategy.on_frontier])
        _orient(axes, comparison)
        axes.set(xlabel=_axis_words(comparison), ylabel=_utility_words(comparison))
        canvas.legend(figure)
        canvas.make_room(figure, [axes])
        _write_labels(figure, axes, points, line)
    return figure


def logarithmic(comparison: AuditsComparison) -> float | None:
    """Return the value from which the axis of the measure is logarithmic; None if it is linear."""
    if comparison.measure in COMPARED:
        return None  # from 0 to 1
    ends = np.array([end for item in _points(comparison) for end in (item.x.least, item.x.most)])
    positive = ends[ends > 0]
    if not positive.size or (ends < 0).any() or positive.max() <= _WIDE * positive.min():
        return None
    return float(max(positive.min(), positive.max() * 1e-4))


def _scale(axes: "Axes", from_zero: float | None) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator, SymmetricalLogLocator

    if from_zero is None:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    else:
        axes.set_xscale("symlog", linthresh=from_zero, linscale=0.5)
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=from_zero, subs=[1, 2, 5]))
        axes.xaxis.set_minor_locator(NullLocator())

    def words(x: float, _: object) -> str:
        near_zero = from_zero is not None and 0 < abs(x) < 0.99 * from_zero  # where ticks stand too close
        return "" if near_zero else canvas.true_minus(numbers.number(float(f"{x:.6g}")))

    axes.xaxis.set_major_formatter(words)
    axes.margins(0.09)


def _draw(
    axes: "Axes", points: Sequence[_Point], comparison: AuditsComparison, *, place: int, named: bool
) -> None:
    sign, colour = _STYLES[place]
    across, up = (
        [(item.mean - item.least, item.most - item.mean) for item in axis]
        for axis in zip(*((item.x, item.y) for item in points), strict=True)
    )
    bars: dict[str, Any] = {"xerr": np.transpose(across), "yerr": np.transpose(up), "ecolor": colour}
    axes.errorbar(*_centres(points), **bars, linestyle="none", elinewidth=0.9, capsize=2, zorder=4)
    style: dict[str, Any] = {"color": colour, "marker": sign, "linestyle": "none", "markersize": 5.5}
    if named:
        axes.plot([], [], **style, label=canvas.one_line(points[0].category))
    for item in points:
        if ends := _interval(item):
            axes.plot(ends, [item.y.mean] * 2, color=colour, linewidth=2, alpha=0.35)
        look = style | {"markerfacecolor": canvas.CARD if item.strategy.marks else colour, "clip_on": True}
        canvas.mark(axes, item.x.mean, item.y.mean, tip_words(item, comparison), **look, zorder=5)


def _draw_arrows(axes: "Axes", points: Sequence[_Point]) -> None:
    """An arrow of one length at each lower bound: the truth may lie anywhere in its direction."""
    style: dict[str, Any] = {"arrowstyle": "<-", "color": canvas.MUTED, "linewidth": 0.9}
    away: dict[str, Any] = {"xytext": (20, 0), "textcoords": "offset points", "zorder": 3}
    for item in points:
        axes.annotate("", (item.x.mean, item.y.mean), arrowprops=style | {"shrinkA": 0, "shrinkB": 4}, **away)


def _draw_frontier(axes: "Axes", corners: Sequence[_Point]) -> canvas.Floats:
    """Draw it straight in the plane, and so bent on a logarithmic axis; return points along it."""
    if not corners:
        return np.empty((0, 2))
    along = sorted(corners, key=lambda item: item.y.mean)
    x, y = _centres(along)
    steps = np.arange(0, x.size - 1 + 1e-9, 1 / 40) if x.size > 1 else np.zeros(1)
    whole = np.arange(x.size)
    line = np.interp(steps, whole, x), np.interp(steps, whole, y)
    dashes: dict[str, Any] = {"linewidth": 1.1, "linestyle": (0, (4, 2)), "zorder": 3}
    axes.plot(*line, color=canvas.INK, label="Pareto frontier", **dashes)
    ring: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "linestyle": "none", "zorder": 4}
    axes.plot(x, y, color=canvas.INK, markersize=10.5, markeredgewidth=0.9, **ring)
    return np.stack(line, axis=1)


def _orient(axes: "Axes", comparison: AuditsComparison) -> None:
    """Better is up and to the left."""
    if not metric(comparison.measure).more_is_worse:
        axes.invert_xaxis()
    if not higher_is_better(comparison.runs):
        axes.invert_yaxis()


# --- The same strategies over time -------------------------------------------------------------------


def history_figure(comparison: AuditsComparison) -> "Figure | None":
    """Return the measure of each audit in the order of their dates; None without dates."""
    history = comparison.history
    if not history:
        return None
    with canvas.axes() as (figure, axes):
        places = np.arange(len(history))
        ends = np.array([item.ends or (item.value, item.value) for item in history], dtype=np.float64)
        values = np.array([item.value for item in history], dtype=np.float64)
        axes.vlines(places, *ends.T, color=canvas.ACCENT, linewidth=2, alpha=0.35)
        axes.plot(places, values, color=canvas.MUTED, linewidth=0.9, zorder=3)
        for place, item in enumerate(history):
            words = f"{item.run.title}, {item.day}, {_value(values[place], comparison)}"
            look: dict[str, Any] = {"marker": "o", "color": canvas.ACCENT, "markersize": 5.5, "clip_on": True}
            canvas.mark(axes, place, values[place], words, zorder=4, **look)
        every = -(-len(history) // _DAYS)
        ticks = [f"{canvas.one_line(item.run.title, most=12)}\n{item.day}" for item in history[::every]]
        axes.set_xticks(places[::every], ticks, fontsize=7)
        axes.set(ylabel=canvas.one_line(comparison.measure_title), xlim=(-0.5, len(history) - 0.5))
        axes.grid(visible=False, axis="x")
    return figure
