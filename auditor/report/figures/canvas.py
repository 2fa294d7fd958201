"""What every figure shares: the sheet, the words on its axes, and marks that speak when they are pointed at."""

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from auditor.report import formatting, traces
from auditor.report.svg import STYLE, TIP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "DASHED",
    "SIZE",
    "TALL",
    "WIDTH",
    "Floats",
    "axes",
    "percent_axes",
    "plain_axis",
    "sheet",
    "tip",
    "true_minus",
]

Floats = npt.NDArray[np.float64]

# Narrow, so that letters are large enough on a phone, where a figure is shrunk to the width of the screen.
WIDTH = 4.0
SIZE, TALL = (WIDTH, 3.4), (WIDTH, 4.5)
DASHED = (0, (4, 1.5))


@contextmanager
def sheet(size: tuple[float, float], **grid: Any) -> "Iterator[tuple[Figure, list[Axes]]]":
    """Give an empty figure with axes in rows and columns; the style is set while it is drawn, and nothing global changes.

    Args:
        size: Width and height in inches.
        grid: As for ``Figure.subplots``: ``nrows``, ``ncols``, ``height_ratios``, ``sharex`` and the like.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        drawn = list(figure.subplots(**{"squeeze": False, **grid}).ravel())
        for panel in drawn:
            panel.set_axisbelow(True)
        yield figure, drawn
        for panel in drawn:
            # Rotated about its anchor, a label stays centred whichever font the reader's browser picks.
            panel.yaxis.label.set_rotation_mode("anchor")


@contextmanager
def axes(size: tuple[float, float] = SIZE) -> "Iterator[tuple[Figure, Axes]]":
    """Give an empty figure with one pair of axes."""
    with sheet(size) as (figure, panels):
        yield figure, panels[0]


def true_minus(text: str) -> str:
    """Return a number's text with the true minus sign, which every drawing font has."""
    return text.replace("-", "−")  # noqa: RUF001


def plain_axis(axis: "Axis", *, most: int = 5) -> None:
    """Every tick in full, with as many digits as it takes to tell it from the next: no offset, no power aside."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def words(x: float, _: object) -> str:
        low, high = axis.get_view_interval()
        span, largest = abs(high - low), max(abs(low), abs(high))
        if span <= 0 or abs(x) < span * 1e-9:
            return formatting.number(0.0 if span > 0 else x)
        digits = min(max(math.ceil(math.log10(largest) - math.log10(span)) + 2, 3), 16)
        return true_minus(formatting.number(float(f"{x:.{digits}g}"), digits=digits))

    axis.set_major_locator(MaxNLocator(nbins=most))
    axis.set_major_formatter(FuncFormatter(words))


def percent_axes(panel: "Axes") -> None:
    """Rates as percentages, false alarms against training records recognised."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    words = FuncFormatter(lambda x, _: formatting.percent(float(f"{x:.6g}")))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(words)
        axis.set_minor_formatter(NullFormatter())
    panel.set(xlabel="False alarms (FPR)", ylabel="Training records recognised (TPR)")


def tip(artist: Any, text: str) -> None:
    """Let a mark say this when a reader points at it: a ``<title>`` inside the SVG, which needs no script."""
    artist.set_gid(TIP + traces.plain(text, most=200))
