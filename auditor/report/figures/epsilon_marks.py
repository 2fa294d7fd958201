"""How one epsilon value is drawn: a title and its number above, the mark in the middle, a note below."""

from typing import TYPE_CHECKING, Any

from auditor.report import formatting, traces
from auditor.report.figures.canvas import tip
from auditor.report.figures.epsilon_rows import EpsilonRow, Kind, claim_words
from auditor.report.svg import ACCENT, CARD, INK, MUTED, NEUTRAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BOUND_UNDER_A_CONDITION", "CEILING", "CLAIM", "ESTIMATES", "draw_row"]

_SMALL = 7.4  # points
_INSET = 0.012  # of the width, so that no letter touches the line at 0
_BAR = 0.14  # of a row's height, half of a bar's
CLAIM: dict[str, Any] = {"color": INK, "linewidth": 2.4, "linestyle": (0, (1, 0.8))}
CEILING: dict[str, Any] = {"color": INK, "marker": "|", "markersize": 9, "markeredgewidth": 1.4}
BOUND_UNDER_A_CONDITION: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": ACCENT,
    "linestyle": (0, (3, 1.5)),
}
# By kind: colour, mark and the colour inside, so that colour alone carries nothing.
ESTIMATES: dict[Kind, dict[str, Any]] = {
    Kind.INTERVAL: {"color": ACCENT, "marker": "o", "markerfacecolor": ACCENT, "markersize": 6},
    Kind.POINT: {"color": INK, "marker": "o", "markerfacecolor": CARD, "markersize": 6},
    Kind.REJECTED: {"color": MUTED, "marker": "X", "markerfacecolor": NEUTRAL, "markersize": 6},
    Kind.NONE: {"color": MUTED, "marker": "x", "markersize": 4.5},
}


def draw_row(panel: "Axes", place: int, row: EpsilonRow, *, most: float) -> None:
    """Draw a row at this place from the top; what lies beyond ``most`` ends in an arrow there."""
    text: dict[str, Any] = {"transform": panel.get_yaxis_transform(), "clip_on": False}
    quiet = row.kind in {Kind.REJECTED, Kind.NONE}
    upper = text | {"va": "bottom", "color": MUTED if quiet else INK}
    panel.text(_INSET, place - 0.2, traces.plain(row.title), **upper)
    words = traces.plain(row.words.replace("∞", "infinity"))
    panel.text(1, place - 0.2, words, ha="right", fontweight="bold", **upper)
    note = traces.plain(row.note, most=90)
    panel.text(_INSET, place + 0.19, note, va="top", color=MUTED, fontsize=_SMALL, **text)
    if row.kind is Kind.NONE:
        panel.plot([0], [place], linestyle="none", clip_on=False, **ESTIMATES[row.kind])
    elif row.kind in {Kind.BOUND, Kind.CONDITIONAL}:
        _draw_bound(panel, place, row, most=most)
    else:
        _draw_estimate(panel, place, row, most=most)
    _draw_claim(panel, place, row, most=most)


def _draw_claim(panel: "Axes", place: int, row: EpsilonRow, *, most: float) -> None:
    """A dotted line through this row only, with its number beside the bar."""
    if row.claim is None or row.claim.value is None or row.claim.value < 0:
        return
    at = min(row.claim.value, most)
    ends = [place - 0.17, place + 0.17]
    panel.plot([at, at], ends, color=CARD, linewidth=5, zorder=7.9)  # sets it off from the bar
    (line,) = panel.plot([at, at], ends, zorder=8, **CLAIM)
    tip(line, claim_words(row))
    left = at > most / 2 and at > (row.value or 0)  # there is no room on its right
    panel.annotate(
        f"claim {formatting.given(row.claim.value)}",
        (at if left else max(at, min(row.value or 0, most)), place),
        xytext=(-5 if left else 5, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=_SMALL,
        zorder=7,
        bbox={"facecolor": CARD, "linewidth": 0, "pad": 1},
    )


def _draw_bound(panel: "Axes", place: int, row: EpsilonRow, *, most: float) -> None:
    value = min(float(row.value or 0), most)
    filled = {"facecolor": ACCENT, "edgecolor": ACCENT}
    look: dict[str, Any] = filled if row.kind is Kind.BOUND else BOUND_UNDER_A_CONDITION
    bars = panel.barh(place, value, height=2 * _BAR, zorder=4, linewidth=1.0, **look)
    tip(bars[0], f"{row.title}: {row.words}. {row.note}")
    if row.value is not None and row.value > most:
        _arrow(panel, most, place, ACCENT)
    if row.ceiling is None:
        return
    top = min(row.ceiling, most)
    panel.plot([value, top], [place, place], color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), zorder=3)
    if row.ceiling > most:
        _arrow(panel, most, place, MUTED)
    else:
        (end,) = panel.plot([top], [place], linestyle="none", zorder=5, clip_on=False, **CEILING)
        words = formatting.number(row.ceiling, toward="down")
        tip(end, f"Ceiling: with these records no more than {words} can be certified")


def _draw_estimate(panel: "Axes", place: int, row: EpsilonRow, *, most: float) -> None:
    value, look = float(row.value or 0), ESTIMATES[row.kind]
    colour = look["color"]
    if row.lower is not None or row.upper is not None:
        low, high = (value if end is None else float(end) for end in (row.lower, row.upper))
        shown = (max(low, panel.get_xlim()[0]), min(high, most))
        panel.plot(shown, [place, place], color=colour, linewidth=1.8, zorder=4)
        ends = [end for end in (row.lower, row.upper) if end is not None and abs(end) <= most]
        panel.plot(
            ends,
            [place] * len(ends),
            color=colour,
            marker="|",
            markersize=7,
            markeredgewidth=1.4,
            linestyle="none",
            zorder=4,
        )
    at = min(max(value, panel.get_xlim()[0]), most)
    (dot,) = panel.plot([at], [place], linestyle="none", zorder=6, clip_on=False, **look)
    tip(dot, f"{row.title}: {row.words}. {row.note}")
    if value > most:
        _arrow(panel, most, place, colour)


def _arrow(panel: "Axes", at: float, place: int, colour: str) -> None:
    """It goes on beyond the axis."""
    panel.plot(
        [at], [place], marker=">", color=colour, markersize=6, linestyle="none", zorder=7, clip_on=False
    )
