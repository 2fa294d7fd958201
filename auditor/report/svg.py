"""A matplotlib figure as an inline ``<svg>`` that belongs on a page: text kept as text, colours that follow the theme."""

import hashlib
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from markupsafe import escape

from auditor.report import formatting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ACCENT", "CARD", "GRID", "INK", "MUTED", "NEUTRAL", "STYLE", "TIP", "any_letter", "svg"]

# One accent colour for what is measured on members; everything else is ink or grey.
INK, MUTED, GRID, NEUTRAL, ACCENT = "#1c2733", "#566270", "#d9dee4", "#8b96a3", "#0b6e75"
CARD = "#fffffe"  # what a figure stands on; not quite white, so that no other white is taken for it
_THEME = {INK: "ink", MUTED: "muted", GRID: "grid", NEUTRAL: "neutral", ACCENT: "accent", CARD: "card"}

# How the id of a mark begins that has a title: the rest is what it says when it is pointed at.
TIP = "tip: "

STYLE: dict[Any, Any] = {
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "xtick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.color": MUTED,
    "ytick.labelsize": 8,
}

_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def svg(figure: "Figure", *, alt: str, key: str | None = None) -> str:
    """Return a figure as an inline ``<svg>`` element, the same text for the same figure.

    Args:
        figure: Any matplotlib figure.
        alt: What the figure shows, for readers who cannot see it.
        key: Prefix of the ids inside; must differ between figures on one page. Default: from the content.
    """
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": key or "figure"}), any_letter():
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA, transparent=True)
    text = buffer.getvalue()
    key = key or "f" + hashlib.sha256((alt + text).encode("utf-8", "replace")).hexdigest()[:10]
    return _opening(text, alt=alt, key=key) + _body(text, key=key)


@contextmanager
def any_letter() -> Iterator[None]:
    """Draw letters that the drawing font lacks without a warning: on a page the browser's own fonts show them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings(
            "ignore", message="Matplotlib currently does not support", category=UserWarning
        )
        yield


def _opening(text: str, *, alt: str, key: str) -> str:
    box = re.search(r'viewBox="([^"]+)"', text)
    words, view = escape(formatting.clean(alt)), box[1] if box else "0 0 100 100"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" role="img" aria-labelledby="{key}-title"'
        f' style="stroke-linejoin:round;stroke-linecap:butt"><title id="{key}-title">{words}</title>'
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


_TAG = re.compile(r"<\w+\s[^>]*>")  # with attributes; matplotlib writes no ">" inside a tag, nor "<" outside
_REFERENCE = re.compile(r'href="#([^"]+)"|url\(#([^)]+)\)')
_TITLED = re.compile(rf"""<g id=(["']){TIP}(.*)\1>""", re.DOTALL)


def _titled(tag: str) -> str | None:
    """A group with its title instead of the id that holds it."""
    found = _TITLED.fullmatch(tag)
    return f"<g><title>{found[2]}</title>" if found else None


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
