"""The published goodness-of-fit tests as a grid: Negoescu et al. 2024, Appendix B.2 and Figure 6."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from auditor.report import formatting
from auditor.report.figures.canvas import sheet
from auditor.report.lookup import MIXTURE, STAR, amount, dig, find, number
from auditor.report.svg import ACCENT, INK, NEUTRAL
from auditor.result import AuditResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FitGrid", "fit_grid_figure", "fit_grid_words", "fit_grids"]

_NAMES = {"member": "Members", "nonmember": "Non-members"}
_LEVEL = 0.05
_APART = ("A", "B")  # names of the columns apart: a word would not fit below a cell
_REJECTED = (NEUTRAL, 0.45)
_MOST_ROWS, _MOST_COLUMNS = 30, 12
_LEAST_COLUMNS = 4  # a grid of one column is not stretched over the whole width
_ROWS_FOR_A_LABEL = 5  # fewer rows say themselves that they count components
_GAP = 0.2  # columns between the grid and the tests that choose and decide, and between those


@dataclass(frozen=True)
class FitGrid:
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


def fit_grids(result: AuditResult) -> dict[str, FitGrid]:
    """Return the grids of members and of non-members: those of the mixture, else those of the normal curves."""
    for name, chosen in ((MIXTURE, None), (STAR, 1)):
        estimate = find(result, name)
        fit = dig(estimate.details, "fit") if estimate else None
        found = {side: _grid(fit, side, chosen) for side in _NAMES}
        known = {side: grid for side, grid in found.items() if grid is not None}
        if known:
            return known
    return {}


def _grid(fit: Any, side: str, chosen: int | None) -> FitGrid | None:
    raw = dig(fit, "grid", side)
    components, sizes = (_counts(dig(raw, key)) for key in ("components", "sample_sizes"))
    rows = _listed(dig(raw, "p_values"))
    sound = bool(components and sizes and len(rows) == len(components))
    if not sound or any(len(_listed(row)) != len(sizes) for row in rows):
        return None
    named = amount(fit, side, "components")
    used = chosen if named is None or not math.isfinite(named) else int(named)
    choice = tuple(_p_value(p) for p in _listed(dig(raw, "choice_p_values"))[:_MOST_ROWS])
    level = amount(fit, side, "level")
    decided = _p_value(dig(fit, side, "ks_p_value"))
    if len(components) == 1:  # nothing to choose from: what is kept as the choice is the test that decides
        decided, choice = (choice[0] if decided is None and choice else decided), ()
    elif used not in components[: len(choice)] or _rejects(
        choice[components.index(used)], _LEVEL if level is None else level
    ):
        decided = None  # every number was rejected, and no other test followed
    return FitGrid(
        components=components[:_MOST_ROWS],
        sizes=sizes[:_MOST_COLUMNS],
        p_values=tuple(tuple(_p_value(p) for p in row[:_MOST_COLUMNS]) for row in rows[:_MOST_ROWS]),
        choice=choice,
        chosen=used,
        decided=decided,
    )


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, list | tuple) else []


def _counts(x: Any) -> tuple[int, ...]:
    known = [number(item) for item in _listed(x)]
    return tuple(int(item) if item is not None and math.isfinite(item) else 0 for item in known)


def _p_value(x: Any) -> float | None:
    p = number(x)
    return float(p) if p is not None and 0 <= p <= 1 else None


def _level(result: AuditResult, side: str) -> float:
    row = find(result, MIXTURE) or find(result, STAR)
    level = amount(row.details, "fit", side, "level") if row else None
    return level if level is not None and 0 < level < 1 else _LEVEL


# --- Drawing --------------------------------------------------------------------------------------


def fit_grid_figure(result: AuditResult) -> "Figure | None":
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
    with sheet((4.4, sum(ratios) + 0.75), nrows=len(grids), height_ratios=ratios) as (figure, panels):
        for panel, (side, grid) in zip(panels, grids.items(), strict=True):
            _draw(panel, grid, level=_level(result, side))
            panel.set_title(_NAMES[side], loc="left", fontweight="bold")
            if len(grid.components) >= _ROWS_FOR_A_LABEL:
                panel.set_ylabel("Components")
        lines = ["Records compared with as many draws from the fit", *_apart(grids)]
        panels[-1].set_xlabel("\n".join(lines), fontsize=7.5)
        _legend(figure, level=_level(result, next(iter(grids))))
    return figure


def _apart(grids: dict[str, FitGrid]) -> list[str]:
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


def _draw(panel: "Axes", grid: FitGrid, *, level: float) -> None:
    columns, rows = len(grid.sizes), len(grid.components)
    aside = grid.aside
    cells: list[tuple[float, int, float | None]] = [
        (column, row, p) for row, line in enumerate(grid.p_values) for column, p in enumerate(line)
    ]
    places = [columns + _GAP + at * (1 + _GAP) for at in range(len(aside))]
    cells += [
        (place, row, p) for place, (_, line) in zip(places, aside, strict=True) for row, p in line.items()
    ]
    _boxes(panel, [(x, y) for x, y, p in cells if _rejects(p, level)], facecolor=_REJECTED, edgecolor=INK)
    _boxes(
        panel, [(x, y) for x, y, p in cells if not _rejects(p, level)], facecolor="none", edgecolor=NEUTRAL
    )
    for x, y, p in cells:
        weight = "bold" if _rejects(p, level) else "normal"
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6.8, "fontweight": weight}
        panel.text(x + 0.5, y + 0.52, _short(p, level), **look)
    ticks = [column + 0.5 for column in range(columns)]
    ticks += [place + 0.5 for place in places]
    words = [*(formatting.count(size) for size in grid.sizes), *(name for name, _ in aside)]
    end = columns + len(aside) * (1 + _GAP)
    panel.set(xlim=(-0.06, max(end, _LEAST_COLUMNS) + 0.06), ylim=(rows + 0.06, -0.06))
    panel.set_xticks(ticks, words, fontsize=6.8)
    spell = formatting.count if rows >= _ROWS_FOR_A_LABEL else _normals
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
    return "1 normal" if components == 1 else f"{formatting.count(components)} normals"


def _count(components: int) -> str:
    return "1 component" if components == 1 else f"{formatting.count(components)} components"


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
        (-0.03, row), end + 0.06, 1, fill=False, edgecolor=ACCENT, linewidth=1.8, clip_on=False, zorder=5
    )
    panel.add_patch(frame)


def _legend(figure: "Figure", *, level: float) -> None:
    from matplotlib.patches import Patch

    words = formatting.number(level)
    marks = {
        f"p below {words}: rejected": Patch(facecolor=_REJECTED, edgecolor=INK),
        "not rejected": Patch(facecolor="none", edgecolor=NEUTRAL),
        "used": Patch(facecolor="none", edgecolor=ACCENT, linewidth=1.8),
    }
    figure.legend(list(marks.values()), list(marks), loc="outside lower center", ncols=3)


def fit_grid_words(result: AuditResult) -> str:
    """Return how many of the tests reject in each group, and which number of components is used."""
    sentences = [_said(side, grid, level=_level(result, side)) for side, grid in fit_grids(result).items()]
    if not sentences:
        return "P-values of the published test of the fit: this audit has none."
    return " ".join(["P-values of the published two-sample Kolmogorov-Smirnov test.", *sentences])


def _said(side: str, grid: FitGrid, *, level: float) -> str:
    known = [p for row in grid.p_values for p in row if p is not None]
    low = sum(p < level for p in known)
    sizes = _span([formatting.count(size) for size in grid.sizes], "record", one=grid.sizes == (1,))
    counts = _span([formatting.count(n) for n in grid.components], "component", one=grid.components == (1,))
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
        f"{_NAMES[side]}: {low} of {len(known)} tests reject at {formatting.number(level)}, for {counts} and"
        f" {sizes}.{used}"
    )


def _span(texts: list[str], noun: str, *, one: bool) -> str:
    """The first to the last of some counts, which may be one and the same."""
    counts = texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"
    return f"{counts} {noun}{'' if one else 's'}"
