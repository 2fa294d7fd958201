"""The published goodness-of-fit tests as a grid: Negoescu et al. 2024, Appendix B.2 and Figure 6."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from auditor.core import numbers
from auditor.report.figures import canvas
from auditor.results.document import AuditDocument, Histogram, detail
from auditor.results.metrics import fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- The losses of members and of non-members, binned: how far apart they lie, and where a fit goes wrong ---


def fitted_index(result: AuditDocument) -> int:
    """Return which histogram carries the fits, the first one where none does."""
    return next((i for i, item in enumerate(result.histograms) if item.quantiles or item.member_fit), 0)


def raw_index(result: AuditDocument) -> int | None:
    """Return which histogram shows the losses as given beside the fitted one, or null where there is no other."""
    return next((i for i in range(len(result.histograms)) if i != fitted_index(result)), None)


def histogram_figure(result: AuditDocument, *, index: int | None = 0) -> "Figure | None":
    """Return the losses of members and non-members on one scale, with the fitted curves where there are any."""
    histogram = None if index is None else canvas.histogram(result, index)
    if histogram is None:
        return None
    with canvas.axes() as (figure, panel):
        # Members are filled, non-members are a dashed outline: no colour is needed to tell them apart.
        look: dict[str, Any] = {"color": canvas.ACCENT, "alpha": 0.3, "fill": True, "linewidth": 0}
        _draw_histogram(panel, histogram, histogram.member, label="Members", **look)
        _draw_histogram(panel, histogram, histogram.member, color=canvas.ACCENT, linewidth=1.0)
        _draw_histogram(
            panel, histogram, histogram.nonmember, color=canvas.NEUTRAL, alpha=0.2, fill=True, linewidth=0
        )
        _draw_histogram(
            panel,
            histogram,
            histogram.nonmember,
            label="Non-members",
            color=canvas.MUTED,
            linewidth=1.0,
            linestyle=canvas.DASHED,
        )
        _draw_fits(panel, histogram)
        panel.set(xlabel=f"Loss, {_scale(histogram)}", ylabel="Share of records", ylim=(0, None))
        canvas.plain_axis(panel.xaxis)
        panel.set_yticks([])
        panel.grid(visible=False)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def _draw_histogram(panel: "Axes", histogram: Histogram, counts: Any, **look: Any) -> None:
    edges = np.asarray(histogram.edges, dtype=np.float64)
    panel.stairs(canvas.density(counts, edges, total=_total(counts)), edges, **look)


def _draw_fits(panel: "Axes", histogram: Histogram) -> None:
    edges = np.asarray(histogram.edges, dtype=np.float64)
    sides = (
        ("Members, fit", histogram.member, histogram.member_fit, canvas.ACCENT, "-"),
        ("Non-members, fit", histogram.nonmember, histogram.nonmember_fit, canvas.INK, (0, (1, 1.2))),
    )
    for label, counts, fit, colour, line in sides:
        if fit is not None:
            shares = canvas.density(fit, edges, total=_total(counts))
            centres = (edges[1:] + edges[:-1]) / 2
            panel.plot(centres, shares, color=colour, linewidth=1.7, linestyle=line, label=label)


def _total(counts: Any) -> float:
    return max(float(np.sum(counts)), 1.0)


def _scale(histogram: Histogram) -> str:
    return "as given" if histogram.scale == "loss" else canvas.one_line(histogram.scale)


def histogram_words(result: AuditDocument, *, index: int | None = 0) -> str:
    """Return what the histogram shows, with the middle and the central part of both groups as far as bins tell."""
    histogram = None if index is None else canvas.histogram(result, index)
    if histogram is None:
        return "Histogram of losses: there are no data for it."
    edges = np.asarray(histogram.edges, dtype=np.float64)
    sides = (("members", histogram.member), ("non-members", histogram.nonmember))
    middles = [f"half of the {name} lie {_middle(counts, edges)}" for name, counts in sides]
    scale = "as given" if histogram.scale == "loss" else numbers.clean(histogram.scale)[:80]
    fit = " The fitted normal curves are drawn over it." if histogram.member_fit is not None else ""
    return f"Histogram of losses, {scale}: {', and '.join(middles)}.{fit}"


def _middle(counts: Any, edges: canvas.Floats) -> str:
    """Between which bin edges the central half lies."""
    up_to = np.cumsum(np.asarray(counts, dtype=np.float64)) / _total(counts)
    low = edges[min(int(np.searchsorted(up_to, 0.25)), edges.size - 2)]
    high = edges[min(int(np.searchsorted(up_to, 0.75)), edges.size - 2) + 1]
    short = numbers.number(float(low)), numbers.number(float(high))
    texts = short if short[0] != short[1] else numbers.distinct(float(low), float(high))
    return f"between {canvas.true_minus(texts[0])} and {canvas.true_minus(texts[1])}"


# --- Observed against fitted quantiles: whether a fitted curve holds where it is read, in the tails ---


_NAMES = {"member": "Members", "nonmember": "Non-members"}
_FEWEST = 3


class _Side(NamedTuple):
    """One group: its quantiles, and the band in which each observed one lies if the fit is true."""

    fitted: canvas.Floats
    observed: canvas.Floats
    low: canvas.Floats | None
    high: canvas.Floats | None


def quantile_figure(result: AuditDocument, *, index: int | None = None) -> "Figure | None":
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
    with canvas.sheet((canvas.WIDTH, 2.8), ncols=len(sides)) as (figure, panels):
        for panel, (name, side) in zip(panels, sides.items(), strict=True):
            _draw_quantiles(panel, name, side, level=_quantile_level(result))
        panels[0].set_ylabel("Quantile of the records")
        figure.supxlabel("Quantile of the fitted curve", fontsize="medium", color=canvas.MUTED)
        handles, words = panels[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="outside upper center", ncols=len(words))
    return figure


def _sides(result: AuditDocument, index: int | None) -> dict[str, _Side]:
    histogram = canvas.histogram(result, fitted_index(result) if index is None else index)
    if histogram is None or not histogram.quantiles:
        return {}
    found = {name: _side(result, histogram, name) for name in _NAMES}
    return {name: side for name, side in found.items() if side is not None}


def _side(result: AuditDocument, histogram: Histogram, name: str) -> _Side | None:
    kinds = (histogram.quantiles.get(f"{name}_{kind}", ()) for kind in ("fitted", "observed"))
    fitted, observed = canvas.finite(*kinds)
    ends = [*fitted, *observed]
    if not ends or min(ends) == max(ends):
        return None  # nothing to compare: no points, or a single place
    band = (
        _band(result, histogram, name)
        if fitted.size == len(histogram.quantiles.get("probability", ()))
        else None
    )
    return _Side(fitted, observed, *(band or (None, None)))


def _quantile_level(result: AuditDocument) -> float:
    level = result.data.get("confidence")
    return level if level is not None and 0 < level < 1 else 0.95


def _band(
    result: AuditDocument, histogram: Histogram, name: str
) -> tuple[canvas.Floats, canvas.Floats] | None:
    """Pointwise limits of each observed quantile if the fitted law is true.

    F of the k-th smallest of n records has the law Beta(k, n + 1 - k); the fitted quantile function takes its limits
    to the scale of the losses. It is known at the levels (k - 1/2)/n only, and continued between and beyond them on the
    scale of normal quantiles, where that of a normal law is straight.
    """
    from scipy.special import betaincinv, ndtri

    records = result.data.get(f"n_{name}")
    levels = np.asarray(histogram.quantiles.get("probability", ()), dtype=np.float64)
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
    found = np.interp(at, z, values)
    for ends, outside in (((0, 1), at < z[0]), ((-2, -1), at > z[-1])):
        a, b = ends
        slope = (values[b] - values[a]) / (z[b] - z[a])
        found = np.where(outside, values[a] + slope * (at - z[a]), found)
    return found


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
    panel.set(
        title=_NAMES[name], xlim=(span[0] - room, span[1] + room), ylim=(span[0] - room, span[1] + room)
    )
    canvas.plain_axis(panel.xaxis, most=3)
    canvas.plain_axis(panel.yaxis, most=4)


def quantile_words(result: AuditDocument) -> str:
    """Return what the figure shows, with how many points leave the band in each group."""
    sentences = [_words(name, side) for name, side in _sides(result, None).items()]
    level = numbers.percent(_quantile_level(result), toward="down")
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


_LEVEL = 0.05
_APART = ("A", "B")  # names of the columns apart: a word would not fit below a cell
_REJECTED = (canvas.NEUTRAL, 0.45)
_MOST_ROWS, _MOST_COLUMNS = 30, 12
_LEAST_COLUMNS = 4  # a grid of one column is not stretched over the whole width
_ROWS_FOR_A_LABEL = 5  # fewer rows say themselves that they count components
_GAP = 0.2  # columns between the grid and the tests that choose and decide, and between those


@dataclass(frozen=True)
class _FitGrid:
    """The tests of one group.

    Attributes:
        components: Numbers of components, one for each row.
        sizes: Numbers of records compared with as many draws from the fit, one for each column.
        p_values: One row for each number of components; null where a p-value is not known.
        choice: The p-value that the choice went by, for the first rows; empty where nothing was chosen.
        chosen: The number of components that is used, or null.
        decided: The p-value of the test that decides whether the fit is rejected, where it is another than those that
            chose: it saw held-out records that took no part in the choice. Null otherwise.
    """

    components: tuple[int, ...]
    sizes: tuple[int, ...]
    p_values: tuple[tuple[float | None, ...], ...]
    choice: tuple[float | None, ...]
    chosen: int | None
    decided: float | None = None

    @property
    def aside(self) -> list[tuple[str, dict[int, float | None]]]:
        """What stands apart from the grid: the name of each column, and its p-values by row."""
        columns: list[tuple[str, dict[int, float | None]]] = []
        if self.choice:
            columns.append((_APART[0], dict(enumerate(self.choice[: len(self.components)]))))
        if self.decided is not None and self.chosen in self.components:
            columns.append((_APART[len(columns)], {self.components.index(self.chosen): self.decided}))
        return columns


def fit_grids(result: AuditDocument) -> dict[str, _FitGrid]:
    """Return the grids of members and of non-members: those of the mixture, else those of the normal curves."""
    for curve, estimate in reversed(fitted(result).items()):
        fit, chosen = detail(estimate, "fit"), 1 if curve == "gaussian" else None
        found = {side: _grid(fit, side, chosen) for side in _NAMES}
        known = {side: grid for side, grid in found.items() if grid is not None}
        if known:
            return known
    return {}


def _grid(fit: Any, side: str, chosen: int | None) -> _FitGrid | None:
    raw = ((fit or {}).get("grid") or {}).get(side) or {}
    components, sizes = (_counts(raw.get(key) or ()) for key in ("components", "sample_sizes"))
    rows = raw.get("p_values") or ()
    sound = bool(components and sizes and len(rows) == len(components))
    if not sound or any(len(row) != len(sizes) for row in rows):
        return None
    tested = fit.get(side) or {}
    named = tested.get("components")
    used = chosen if named is None or not math.isfinite(named) else int(named)
    choice = tuple(_p_value(p) for p in (raw.get("choice_p_values") or ())[:_MOST_ROWS])
    level = tested.get("level")
    decided = _p_value(tested.get("ks_p_value"))
    if len(components) == 1:  # nothing to choose from: what is kept as the choice is the test that decides
        decided, choice = (choice[0] if decided is None and choice else decided), ()
    elif used not in components[: len(choice)] or _rejects(
        choice[components.index(used)], _LEVEL if level is None else level
    ):
        decided = None  # every number was rejected, and no other test followed
    return _FitGrid(
        components=components[:_MOST_ROWS],
        sizes=sizes[:_MOST_COLUMNS],
        p_values=tuple(tuple(_p_value(p) for p in row[:_MOST_COLUMNS]) for row in rows[:_MOST_ROWS]),
        choice=choice,
        chosen=used,
        decided=decided,
    )


def _counts(x: Sequence[float | None]) -> tuple[int, ...]:
    return tuple(int(item) if item is not None and math.isfinite(item) else 0 for item in x)


def _p_value(p: float | None) -> float | None:
    return p if p is not None and 0 <= p <= 1 else None


def _level(result: AuditDocument, side: str) -> float:
    row = next(reversed(fitted(result).values()), None)
    level = detail(row, "fit", side, "level")
    return level if level is not None and 0 < level < 1 else _LEVEL


# --- Drawing --------------------------------------------------------------------------------------


def fit_grid_figure(result: AuditDocument) -> "Figure | None":
    """Return the p-values by components and sample size, one panel for each group; null without a grid.

    A p-value below the level rejects: its cell is grey with a dark edge, and its digits are bold. The row of the components that are used
    is framed. Apart on the right stand the test that the choice went by and the one that decides whether the fit is
    rejected, each against the fitted curve itself. The choosing records are among those of the columns; those that decide took no
    part in the choice.
    """
    grids = fit_grids(result)
    if not grids:
        return None
    rows = [len(grid.components) for grid in grids.values()]
    cell = 0.24 if max(rows) <= 10 else 0.175  # noqa: PLR2004 twenty rows still fit on a page
    ratios = [count * cell + 0.55 for count in rows]
    with canvas.sheet((4.4, sum(ratios) + 0.75), nrows=len(grids), height_ratios=ratios) as (figure, panels):
        for panel, (side, grid) in zip(panels, grids.items(), strict=True):
            _draw_grid(panel, grid, level=_level(result, side))
            panel.set_title(_NAMES[side], loc="left", fontweight="bold")
            if len(grid.components) >= _ROWS_FOR_A_LABEL:
                panel.set_ylabel("Components")
        lines = ["Records compared with as many draws from the fit", *_apart(grids)]
        panels[-1].set_xlabel("\n".join(lines), fontsize=7.5)
        _legend(figure, level=_level(result, next(iter(grids))))
    return figure


def _apart(grids: dict[str, _FitGrid]) -> list[str]:
    """What the columns apart are."""
    chose = any(grid.choice for grid in grids.values())
    decided = any(grid.decided is not None for grid in grids.values())
    lines = [f"{_APART[0]}: the test that chose the number of normals"] if chose else []
    if decided:
        same = "decides, the same test on records that did not choose"
        lines.append(
            f"{_APART[len(lines)]}: {same if chose else 'decides, the fitted curve against all held-out records'}"
        )
    return lines


def _draw_grid(panel: "Axes", grid: _FitGrid, *, level: float) -> None:
    columns, rows = len(grid.sizes), len(grid.components)
    aside = grid.aside
    cells: list[tuple[float, int, float | None]] = [
        (column, row, p) for row, line in enumerate(grid.p_values) for column, p in enumerate(line)
    ]
    places = [columns + _GAP + at * (1 + _GAP) for at in range(len(aside))]
    cells += [
        (place, row, p) for place, (_, line) in zip(places, aside, strict=True) for row, p in line.items()
    ]
    _boxes(
        panel, [(x, y) for x, y, p in cells if _rejects(p, level)], facecolor=_REJECTED, edgecolor=canvas.INK
    )
    _boxes(
        panel,
        [(x, y) for x, y, p in cells if not _rejects(p, level)],
        facecolor="none",
        edgecolor=canvas.NEUTRAL,
    )
    for x, y, p in cells:
        weight = "bold" if _rejects(p, level) else "normal"
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6.8, "fontweight": weight}
        panel.text(x + 0.5, y + 0.52, _short(p, level), **look)
    ticks = [column + 0.5 for column in range(columns)]
    ticks += [place + 0.5 for place in places]
    words = [*(numbers.count(size) for size in grid.sizes), *(name for name, _ in aside)]
    end = columns + len(aside) * (1 + _GAP)
    panel.set(xlim=(-0.06, max(end, _LEAST_COLUMNS) + 0.06), ylim=(rows + 0.06, -0.06))
    panel.set_xticks(ticks, words, fontsize=6.8)
    spell = numbers.count if rows >= _ROWS_FOR_A_LABEL else _normals
    panel.set_yticks([row + 0.5 for row in range(rows)], [spell(n) for n in grid.components])
    panel.grid(visible=False)
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
    if grid.chosen in grid.components:
        _frame(panel, grid.components.index(grid.chosen), end)


def _rejects(p: float | None, level: float) -> bool:
    return p is not None and p < level


def _boxes(panel: "Axes", places: list[tuple[float, float]], **look: Any) -> None:
    """Boxes as one shape: four hundred shapes of their own would be most of a page."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    boxes = [Rectangle((x + 0.02, y + 0.05), 0.96, 0.9) for x, y in places]
    if boxes:
        paths = [box.get_patch_transform().transform_path(box.get_path()) for box in boxes]
        panel.add_patch(PathPatch(Path.make_compound_path(*paths), linewidth=0.6, **look))


def _normals(components: int) -> str:
    return "1 normal" if components == 1 else f"{numbers.count(components)} normals"


def _count(components: int) -> str:
    return "1 component" if components == 1 else f"{numbers.count(components)} components"


def _short(p: float | None, level: float) -> str:
    """A p-value with two decimals, or as many as it takes to show on which side of the level it lies."""
    if p is None:
        return "?"
    if p < 0.001:  # noqa: PLR2004
        return "<.001"
    texts = (f"{p:.{digits}f}" for digits in range(2 if p >= 0.01 else 3, 6))  # noqa: PLR2004
    text = next((text for text in texts if (float(text) < level) == (p < level)), "?")
    return text.removeprefix("0") if text.startswith("0.") else "1"


def _spelled(short: str) -> str:
    """A short p-value in words."""
    return (
        "above 0.99" if short == "1" else f"below 0{short[1:]}" if short.startswith("<") else f"of 0{short}"
    )


def _frame(panel: "Axes", row: int, end: float) -> None:
    from matplotlib.patches import Rectangle

    frame = Rectangle(
        (-0.03, row),
        end + 0.06,
        1,
        fill=False,
        edgecolor=canvas.ACCENT,
        linewidth=1.8,
        clip_on=False,
        zorder=5,
    )
    panel.add_patch(frame)


def _legend(figure: "Figure", *, level: float) -> None:
    from matplotlib.patches import Patch

    words = numbers.number(level)
    marks = {
        f"p below {words}: rejected": Patch(facecolor=_REJECTED, edgecolor=canvas.INK),
        "not rejected": Patch(facecolor="none", edgecolor=canvas.NEUTRAL),
        "used": Patch(facecolor="none", edgecolor=canvas.ACCENT, linewidth=1.8),
    }
    figure.legend(list(marks.values()), list(marks), loc="outside lower center", ncols=3)


def fit_grid_words(result: AuditDocument) -> str:
    """Return how many of the tests reject in each group, and which number of components is used."""
    sentences = [_said(side, grid, level=_level(result, side)) for side, grid in fit_grids(result).items()]
    if not sentences:
        return "P-values of the published test of the fit: this audit has none."
    return " ".join(["P-values of the published two-sample Kolmogorov-Smirnov test.", *sentences])


def _said(side: str, grid: _FitGrid, *, level: float) -> str:
    known = [p for row in grid.p_values for p in row if p is not None]
    low = sum(p < level for p in known)
    sizes = _span([numbers.count(size) for size in grid.sizes], "record", one=grid.sizes == (1,))
    counts = _span([numbers.count(n) for n in grid.components], "component", one=grid.components == (1,))
    used = ""
    if grid.chosen is not None and grid.chosen in grid.components:
        tested = [p for p in grid.p_values[grid.components.index(grid.chosen)] if p is not None]
        rejecting = sum(p < level for p in tested)
        decided = (
            ""
            if grid.decided is None
            else f"; the test that decides has a p-value {_spelled(_short(grid.decided, level))}"
        )
        used = f" Used: {_count(grid.chosen)}, where {rejecting} of {len(tested)} reject{decided}."
    return (
        f"{_NAMES[side]}: {low} of {len(known)} tests reject at {numbers.number(level)}, for {counts} and"
        f" {sizes}.{used}"
    )


def _span(texts: list[str], noun: str, *, one: bool) -> str:
    """The first to the last of some counts, which may be one and the same."""
    counts = texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"
    return f"{counts} {noun}{'' if one else 's'}"
