"""What recognition means for people, as dots to count: after ODDS-VIS, Nanayakkara et al. 2023.

On the left stand those of whom the attacker is right, with the certified share that is recognised, or ruled out; on the
right the others, with the share of errors at the same time.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor.core import numbers
from auditor.report.figures.canvas import ACCENT, INK, NEUTRAL, WIDTH, sheet
from auditor.results.document import AuditDocument, furthest_point
from auditor.results.rows import out_of_many, units
from auditor.verdicts.judging import failed_validity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_WIDTHS = {100: 10, 1_000: 40, 10_000: 100}  # dots in a row
_PANEL = 1.76  # inches


class _Counted(NamedTuple):
    """Two certified rates as counts out of a round number, with what each is called."""

    base: int
    hits: int
    errors: int
    of_hits: str
    of_errors: str
    rightly: str
    wrongly: str


def _counted(result: AuditDocument) -> _Counted | None:
    """Return the counts; null where nothing beyond guessing is certified, a validity check failed, or dots would be too many."""
    point, words = furthest_point(result), units(result.data)
    if point is None or failed_validity(result.checks):
        return None
    counts = out_of_many(point["errors"], point["hits"])
    if counts[0] not in _WIDTHS:
        return None  # more dots than anybody could look at
    if point["end"] == "low":
        return _Counted(*counts, words.members, words.others, "recognised", "falsely accused")
    return _Counted(*counts, words.others, words.members, "ruled out", "wrongly so")


def odds_figure(result: AuditDocument) -> "Figure | None":
    """Return two fields of dots: large ones are recognised or falsely accused, small ones are not."""
    counts = _counted(result)
    if counts is None:
        return None
    base = f"{counts.base:,}"
    hits = "every one" if counts.hits >= counts.base else f"at least {counts.hits:,}"
    sides = (
        (counts.hits, ACCENT, f"Of {base} {counts.of_hits}", f"{hits} {counts.rightly}"),
        (counts.errors, INK, f"Of {base} {counts.of_errors}", f"at most {counts.errors:,} {counts.wrongly}"),
    )
    wide = _WIDTHS[counts.base]
    tall = counts.base / wide / wide * _PANEL  # inches
    size = (WIDTH, tall + 0.72)
    with sheet(size, ncols=2) as (figure, panels):
        figure.set_layout_engine(
            "none"
        )  # the dots are spaced in inches, so the panels must stay where they are put
        for place, (panel, (marked, colour, title, told)) in enumerate(zip(panels, sides, strict=True)):
            left = 0.12 + place * (_PANEL + 0.24)
            panel.set_position((left / size[0], 0.4 / size[1], _PANEL / size[0], tall / size[1]))
            _draw(panel, marked, counts.base, colour)
            panel.set_title(title, loc="left", pad=4)
            panel.set_xlabel(told, color=colour, fontweight="bold", fontsize="medium", loc="left")
    return figure


def _draw(panel: "Axes", marked: int, base: int, colour: str) -> None:
    """Rows of dots from the top left; each row is a dotted line, so that ten thousand dots take a few letters."""
    wide = _WIDTHS[base]
    tall = base // wide
    panel.set(xlim=(-0.5, wide - 0.5), ylim=(tall - 0.5, -0.5), xticks=[], yticks=[])
    panel.grid(visible=False)
    for spine in panel.spines.values():
        spine.set_visible(False)
    ends = [min(max(marked - row * wide, 0), wide) for row in range(tall)]
    _dots(panel, [(0, end) for end in ends], colour, share=0.84)
    _dots(panel, [(end, wide) for end in ends], NEUTRAL, share=0.4)


def _dots(panel: "Axes", spans: list[tuple[int, int]], colour: str, *, share: float) -> None:
    """Dots at start, start + 1, ..., stop - 1 of each row, as wide as that share of the way between two."""
    pitch = _PANEL * 72 / float(panel.get_xlim()[1] + 0.5)  # points between two dots
    x, y = [], []
    for row, (start, stop) in enumerate(spans):
        if stop > start:
            x += [start, stop - 0.7, math.nan]
            y += [row, row, math.nan]
    # A dash without length has two round caps and no more: a dot. Dashes count in widths of the line.
    width, mark = pitch * share, 1e-3
    look: dict[str, Any] = {
        "linestyle": (0, (mark, 1 / share - mark)),
        "linewidth": width,
        "dash_capstyle": "round",
    }
    panel.plot(x, y, color=colour, clip_on=False, **look)


def odds_words(result: AuditDocument) -> str:
    """Return the same counts in words."""
    counts = _counted(result)
    if counts is None:
        return "Two fields of dots: nothing beyond guessing is certified."
    level, base = numbers.percent(result.data["confidence"], toward="down"), f"{counts.base:,}"
    hits = "every one is" if counts.hits >= counts.base else f"at least {_are(counts.hits)}"
    return (
        f"Two fields of {base} dots. At {level} confidence: of {base} {counts.of_hits} {hits} {counts.rightly}, while of"
        f" {base} {counts.of_errors} at most {_are(counts.errors)} {counts.wrongly}."
    )


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count:,} are"
