"""What recognition means for people, as dots to count: after ODDS-VIS, Nanayakkara et al. 2023.

On the left stand training records, with the certified share that is recognised; on the right others, with the share
that is falsely accused at the same time.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor.core import numbers
from auditor.core.values import Estimate
from auditor.report.figures.canvas import ACCENT, INK, NEUTRAL, WIDTH, sheet
from auditor.results.document import AuditDocument
from auditor.results.rows import finest, out_of_many, units
from auditor.verdicts.judging import failed_validity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_WIDTHS = {100: 10, 1_000: 40, 10_000: 100}  # dots in a row
_PANEL = 1.76  # inches


class _Counted(NamedTuple):
    """A certified rate as counts out of a round number: the training records recognised, the others falsely accused."""

    base: int
    hits: int
    alarms: int
    row: Estimate


def _counted(result: AuditDocument) -> _Counted | None:
    """Return the counts; null where nothing beyond guessing is certified, a validity check failed, or dots would be too many."""
    rate, row = finest(result) or (0.0, None)
    if row is None or failed_validity(result.checks) or not 0 < rate < (row.lower or 0) <= 1:
        return None
    counts = out_of_many(rate, row.lower or 0)
    return _Counted(*counts, row) if counts[0] in _WIDTHS else None  # more dots than anybody could look at


def odds_figure(result: AuditDocument) -> "Figure | None":
    """Return two fields of dots: large ones are recognised or falsely accused, small ones are not."""
    counts = _counted(result)
    if counts is None:
        return None
    base, words = f"{counts.base:,}", units(result.data)
    hits = "every one recognised" if counts.hits >= counts.base else f"at least {counts.hits:,} recognised"
    alarms = f"at most {counts.alarms:,} falsely accused"
    sides = (
        (counts.hits, ACCENT, f"Of {base} {words.members}", hits),
        (counts.alarms, INK, f"Of {base} {words.others}", alarms),
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
    confidence = counts.row.confidence
    level = "" if confidence is None else f"At {numbers.percent(confidence, toward='down')} confidence: "
    base, words = f"{counts.base:,}", units(result.data)
    hits = "every one is" if counts.hits >= counts.base else f"at least {_are(counts.hits)}"
    return (
        f"Two fields of {base} dots. {level}of {base} {words.members} {hits} recognised, while of {base} {words.others} at"
        f" most {_are(counts.alarms)} falsely accused. Guessing would recognise no more than it falsely accuses."
    )


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count:,} are"
