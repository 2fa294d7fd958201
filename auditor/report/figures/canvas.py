"""Common parts of figures: the sheet, the words on its axes, and marks with a tooltip."""

import hashlib
import io
import math
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from markupsafe import escape

from auditor.core import entries, numbers
from auditor.curves.views import NamedCurve
from auditor.results.document import Document

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


# --- What the figures draw: the data of a result, put on logarithmic axes ---


Floats = npt.NDArray[np.float64]
WORDS: dict[str, str] = entries("auditor.report", "texts/figures.toml")

_BETWEEN = 160  # points that make a straight line bend on a logarithmic scale
FARTHEST = 1e306  # beyond, the span of an axis would overflow


def curves(result: Document) -> dict[str, NamedCurve]:
    """Return the curves that have at least two points, by name."""
    return {curve.name: curve for curve in result.curves if len(curve.fpr) > 1}


def finite(x: Sequence[float | None] | Floats, y: Sequence[float | None] | Floats) -> tuple[Floats, Floats]:
    """Return the points of which both coordinates are known and small enough to be drawn."""
    size = min(len(x), len(y))
    pair = tuple(np.asarray(side, dtype=np.float64)[:size] for side in (x, y))  # None is NaN
    drawable = (np.abs(pair) < FARTHEST).all(axis=0)
    return pair[0][drawable], pair[1][drawable]


def logarithmic(curve: NamedCurve, *, least: float, lowest: float = 0.0) -> tuple[Floats, Floats]:
    """Return the points from ``least`` on, and more between them, where straight lines bend on a log scale."""
    x, y = np.asarray(curve.fpr), np.asarray(curve.tpr)
    grid = np.geomspace(least, 1, _BETWEEN)
    grid = grid[~np.isin(grid, x)]
    there = x >= least
    rates = np.concatenate([x[there], grid])
    hits = np.maximum(np.concatenate([y[there], np.interp(grid, x, y)]), lowest)
    order = np.argsort(rates, kind="stable")
    order = order[hits[order] > 0]
    return rates[order], hits[order]


def floor(finest: float) -> float:
    """Return where logarithmic axes begin: the decade below the finest rate that can be measured."""
    return float(10.0 ** math.floor(math.log10(min(max(finest, 1e-7), 0.01))))


def density(counts: Sequence[float], edges: Floats, *, total: float) -> Floats:
    """Return the share of records per width of the widest bin, or per bin where bins have no width."""
    widths = np.diff(edges)
    shares = np.asarray(counts, dtype=np.float64) / total
    return shares if (widths <= 0).any() else shares / (widths / widths.max())


def one_line(text: str, *, most: int = 50) -> str:
    r"""Return text for a drawing, on one line of at most so many columns; letters of wide scripts take two.

    Every letter stays: the browser has fonts for those that the drawing font lacks.

    >>> one_line("caf\u00e9 \u202e\x00"), one_line("x" * 60, most=10), one_line("\u6a21\u578b" * 9, most=10)
    ('café ⟨U+202E⟩⟨U+0000⟩', 'xxxxxxx...', '模型模...')
    """
    from rich.cells import cell_len, set_cell_size

    line = " ".join(numbers.clean(text).split())
    if cell_len(line) <= most:
        return line
    return re.sub(r"⟨[U+0-9A-F]*$", "", set_cell_size(line, most - 3).rstrip()) + "..."  # no half of a mark


# --- A matplotlib figure as an inline ``<svg>`` that belongs on a page: text kept as text, colours that follow the theme ---


# One accent colour for what is measured on members; everything else is ink or grey.
INK, MUTED, GRID, NEUTRAL, ACCENT = "#1c2733", "#566270", "#d9dee4", "#8b96a3", "#0b6e75"
CARD = "#fffffe"  # what a figure stands on; not quite white, so that no other white is taken for it
_THEME = {INK: "ink", MUTED: "muted", GRID: "grid", NEUTRAL: "neutral", ACCENT: "accent", CARD: "card"}

# How the id of a mark begins that has a title: the rest is what it says when it is pointed at.
TIP = "tip: "

_NAMED = {name: colour for colour, name in _THEME.items()}
STYLE: dict[Any, Any] = {
    name: _NAMED.get(value, value) for name, value in entries("auditor.report.figures", "style.toml").items()
}

_ONE_AT_A_TIME = threading.RLock()  # matplotlib's settings are the process's, whichever thread draws


@contextmanager
def styled(*, salt: str | None = None) -> Iterator[None]:
    """Draw in our style, and leave the settings as they were, whatever other threads draw; with a salt ids are the same."""
    import matplotlib as mpl

    with _ONE_AT_A_TIME, mpl.rc_context({**STYLE, "svg.hashsalt": salt}):
        yield


_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def svg(figure: "Figure", *, alt: str, key: str | None = None) -> str:
    """Return a figure as an inline ``<svg>`` element, the same text for the same figure.

    Args:
        figure: Any matplotlib figure.
        alt: What the figure shows, for readers who cannot see it.
        key: Prefix of the ids inside; must differ between figures on one page. Default: from the content.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    for patch in (figure.patch, *(panel.patch for panel in figure.axes)):
        patch.set(facecolor="none", edgecolor="none")
    buffer = io.StringIO()
    with styled(salt=key or "figure"), any_letter():
        # Not `savefig`, which goes through the whole drawing once before it draws.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=_NO_METADATA)
    text = buffer.getvalue()
    key = key or "f" + hashlib.sha256((alt + text).encode("utf-8", "replace")).hexdigest()[:10]
    return _opening(text, alt=alt, key=key) + _body(text, key=key)


@contextmanager
def any_letter() -> Iterator[None]:
    """Draw letters that the drawing font lacks without a warning: on a page the browser's own fonts show them."""
    with warnings.catch_warnings():
        lacking = "Glyph .* missing from|Matplotlib currently does not support"
        warnings.filterwarnings("ignore", message=lacking, category=UserWarning)
        yield


def _opening(text: str, *, alt: str, key: str) -> str:
    box = re.search(r'viewBox="([^"]+)"', text)
    words, view = escape(numbers.clean(alt)), box[1] if box else "0 0 100 100"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" role="img" aria-labelledby="{key}-title"'
        f' style="{_ON_A_PAGE}"><title id="{key}-title">{words}</title>'
    )


def _body(text: str, *, key: str) -> str:
    body = text[text.index(">", text.index("<svg")) + 1 :]
    # A style element inside an inline SVG would apply to the whole page; the opening tag carries it instead.
    body = re.sub(
        r"<defs>\s*<style.*?</style>\s*</defs>|<metadata>.*?</metadata>", "", body, count=2, flags=re.DOTALL
    )
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)  # matplotlib repeats every text in a comment
    wanted = {name for tag in _TAG.findall(body) for pair in _REFERENCE.findall(tag) for name in pair}
    # Foreign text stands between tags, or as the id of a mark: neither may be taken for markup.
    body = _TAG.sub(lambda tag: _titled(tag[0]) or _tag(tag[0], wanted, key=key), body)
    body = re.sub(r"<g>\s*(<text[^>]*>[^<]*</text>)\s*</g>", r"\1", body)
    return re.sub(r"\s*\n\s*", "\n", body).strip()


# As wide as its column, up to a width at which the letters of all figures are of one size.
_ON_A_PAGE = "stroke-linejoin:round;stroke-linecap:butt;min-width:0;max-width:30rem"
_TAG = re.compile(r"<\w+\s[^>]*>")  # with attributes; matplotlib writes no ">" inside a tag, nor "<" outside
_REFERENCE = re.compile(r'href="#([^"]+)"|url\(#([^)]+)\)')
_TITLED = re.compile(rf"""<g id=(["']){TIP}(.*)\1>""", re.DOTALL)


def _titled(tag: str) -> str | None:
    """A group with its title instead of the id that holds it."""
    title = _TITLED.fullmatch(tag)
    return f"<g><title>{title[2]}</title>" if title else None


def _tag(tag: str, wanted: set[str], *, key: str) -> str:
    """A tag for a page: ids only where they are referred to, the page's own font and colours, 0.01 pt."""

    def renamed(match: re.Match[str]) -> str:
        return f' id="{key}-{match[1]}"' if match[1] in wanted else ""

    tag = re.sub(r' id="([^"]*)"', renamed, tag.replace("xlink:href=", "href="))
    tag = tag.replace('href="#', f'href="#{key}-').replace("url(#", f"url(#{key}-")
    tag = re.sub(r" font-family: [^;\"]+;", "", tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]+\)"', "", tag)
    tag = re.sub(r'(?<= d=")[^"]+', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), tag)
    tag = re.sub(r' ([xy])="(-?\d+\.\d\d)\d+"', r' \1="\2"', tag)
    for colour, name in _THEME.items():
        tag = tag.replace(colour, f"var(--{name}, {colour})")
    return tag


# Narrow, so that letters are large enough on a phone, where a figure is shrunk to the width of the screen.
WIDTH = 4.0
_SIZE, TALL = (WIDTH, 2.8), (WIDTH, 3.7)
DASHED = (0, (4, 1.5))
_RIGHT, _TOP, _BOTTOM, _GAP = 0.16, 0.1, 0.44, 0.11  # inches


@contextmanager
def sheet(
    size: tuple[float, float], *, top: float = _TOP, **grid: Any
) -> "Iterator[tuple[Figure, list[Axes]]]":
    """Give an empty figure with axes in rows and columns; the style is set while it is drawn, and nothing global changes.

    Margins are fixed but for the words of the vertical axes: a layout that measures all takes longer than the drawing.

    Args:
        size: Width and height in inches; a legend is added to the height.
        top: Upper margin in inches.
        grid: As for ``Figure.subplots``: ``nrows``, ``ncols``, ``height_ratios``, ``sharex`` and the like.
    """
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=size)
        figure.subplots_adjust(top=1 - top / size[1], bottom=_BOTTOM / size[1], right=1 - _RIGHT / size[0])
        drawn = list(figure.subplots(**{"squeeze": False, **grid}).ravel())
        for panel in drawn:
            panel.set_axisbelow(True)
        yield figure, drawn
        make_room(figure, drawn, columns=grid.get("ncols", 1))


def make_room(figure: "Figure", panels: "Sequence[Axes]", *, columns: int = 1) -> None:
    """Give the words of the vertical axes the room that they need, left of each column of equal panels."""
    with any_letter():
        boxes = [panel.yaxis.get_tightbbox() for panel in panels]
    room = max((box.width / figure.dpi for box in boxes if box is not None), default=0.0) + _GAP
    width = float(figure.get_size_inches()[0])
    figure.subplots_adjust(left=room / width, wspace=room / ((width - _RIGHT) / columns - room))
    for panel in panels:
        # Rotated about its anchor, a label stays centred whichever font the reader's browser picks.
        panel.yaxis.label.set_rotation_mode("anchor")


@contextmanager
def axes(size: tuple[float, float] = _SIZE) -> "Iterator[tuple[Figure, Axes]]":
    """Give an empty figure with one pair of axes."""
    with sheet(size) as (figure, panels):
        yield figure, panels[0]


def true_minus(text: str) -> str:
    """Return a number's text with the true minus sign, which every drawing font has."""
    return text.replace("-", "−")  # noqa: RUF001


def plain_axis(axis: "Axis", *, most: int = 5) -> None:
    """Every tick in full, with as many digits as it takes to tell it from the next: no offset, no power aside."""
    from matplotlib.ticker import MaxNLocator

    def words(x: float, _: object) -> str:
        low, high = axis.get_view_interval()
        span, largest = abs(high - low), max(abs(low), abs(high))
        if span <= 0 or abs(x) < span * 1e-9:
            return numbers.number(0.0 if span > 0 else x)
        digits = min(max(math.ceil(math.log10(largest) - math.log10(span)) + 2, 3), 16)
        return true_minus(numbers.number(float(f"{x:.{digits}g}"), digits=digits))

    axis.set_major_locator(MaxNLocator(nbins=most))
    axis.set_major_formatter(words)


def percent_axes(panel: "Axes") -> None:
    """Rates as percentages, false alarms against training records recognised."""
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(lambda x, _: numbers.percent(float(f"{x:.6g}")))
    panel.minorticks_off()
    panel.set(xlabel="False alarms (FPR)", ylabel="Training records recognised (TPR)")


def tip(artist: Any, text: str) -> None:
    """Let a mark say this when a reader points at it: a ``<title>`` inside the SVG, which needs no script."""
    artist.set_gid(TIP + one_line(text, most=200))


def mark(panel: "Axes", x: float, y: float, text: str, **look: Any) -> None:
    """Draw one mark with its tip, over the edge of the axes too."""
    (drawn,) = panel.plot([x], [y], **{"linestyle": "none", "clip_on": False, **look})
    tip(drawn, text)


def legend(figure: "Figure", entries: Sequence[tuple[str, Any]] | None = None) -> None:
    """Explain the lines and marks below the axes; those with the same words are one entry. The figure grows by it.

    Args:
        figure: Any figure.
        entries: Words and what they explain. Default: whatever has a label on the first axes.
    """
    from matplotlib.legend_handler import HandlerTuple

    if entries is None:
        entries = list(zip(*figure.axes[0].get_legend_handles_labels()[::-1], strict=True))
    marks: dict[str, Any] = {}
    for words, handle in entries:
        marks[words] = (*marks.get(words, ()), handle)
    side_by_side = {tuple: HandlerTuple(ndivide=None, pad=0.3)}
    where: dict[str, Any] = {"loc": "lower center", "borderaxespad": 0, "ncols": 2}
    drawn = figure.legend(list(marks.values()), list(marks), handler_map=side_by_side, **where)
    with any_letter():
        rise = drawn.get_window_extent().height / figure.dpi if marks else 0.0
    (width, height), box = figure.get_size_inches(), figure.subplotpars
    figure.set_size_inches(width, height + rise)
    figure.subplots_adjust(
        **{side: (getattr(box, side) * height + rise) / (height + rise) for side in ("bottom", "top")}
    )


def sentences(*parts: str) -> str:
    """Return those sentences that are there as one text."""
    return " ".join(filter(None, parts))
