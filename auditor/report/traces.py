"""What the figures draw: the data of a result, cleaned, thinned and put on logarithmic axes."""

import functools
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.report import formatting
from auditor.report.lookup import number
from auditor.result import AuditResult, Histogram, NamedCurve

__all__ = ["curves", "density", "finite", "floor", "histogram", "logarithmic", "plain", "thinned"]

Floats = npt.NDArray[np.float64]

_MOST_POINTS = 420  # more than an audit keeps of any curve
_MOST_BINS = 500  # of a histogram, finer than a screen shows
_BETWEEN = 160  # points that make a straight line bend on a logarithmic scale
_FARTHEST = 1e306  # beyond, the span of an axis would overflow


def curves(result: AuditResult) -> dict[str, NamedCurve]:
    """Return the curves that have at least two points, by name: the points that can be drawn, as arrays."""
    return dict(_sound(_Same(result.curves)))


@dataclass(frozen=True, eq=False)
class _Same:
    """What is equal to nothing but itself, so that a look-up need not compare a million numbers."""

    items: tuple[NamedCurve, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.items is other.items

    def __hash__(self) -> int:
        return id(self.items)


@functools.lru_cache(maxsize=4)
def _sound(curves: _Same) -> dict[str, NamedCurve]:
    """Every figure, caption and title of a result asks for its curves; they are looked through once."""
    last = {curve.name: curve for curve in curves.items}
    points = {name: finite(curve.fpr, curve.tpr) for name, curve in last.items()}
    for side in (side for pair in points.values() for side in pair):
        side.setflags(write=False)  # shared by all who ask
    arrays: dict[str, dict[str, Any]] = {name: {"fpr": x, "tpr": y} for name, (x, y) in points.items()}
    return {name: replace(last[name], **found) for name, found in arrays.items() if found["fpr"].size > 1}


def histogram(result: AuditResult, index: int) -> Histogram | None:
    """Return the histogram of that index where it can be drawn, neighbouring bins as one where there are too many."""
    if index >= len(result.histograms):
        return None
    found = result.histograms[index]
    edges = np.asarray(_floats(found.edges))
    counts = [_counts(item) for item in (found.member, found.nonmember)]
    fits = [None if item is None else _counts(item) for item in (found.member_fit, found.nonmember_fit)]
    bins = edges.size - 1
    drawable = bins > 0 and bool((np.abs(edges) < _FARTHEST).all() and (edges[1:] >= edges[:-1]).all())
    if not drawable or any(item is not None and len(item) != bins for item in (*counts, *fits)):
        return None
    quantiles = {key: tuple(_floats(item)) for key, item in found.quantiles.items()}
    starts = np.unique(np.linspace(0, bins, min(bins, _MOST_BINS) + 1).round().astype(int))
    member, nonmember, member_fit, nonmember_fit = (_merged(item, starts) for item in (*counts, *fits))
    places = tuple(edges[starts].tolist())
    return Histogram(str(found.scale), places, member, nonmember, member_fit, nonmember_fit, quantiles)


def _merged(counts: tuple[float, ...] | None, starts: npt.NDArray[np.int64]) -> Any:
    """Counts of so many bins that each can be seen: neighbours count as one."""
    return None if counts is None else tuple(np.add.reduceat(np.asarray(counts), starts[:-1]).tolist())


def finite(x: Sequence[float | None] | Floats, y: Sequence[float | None] | Floats) -> tuple[Floats, Floats]:
    """Return the points of which both coordinates are known and small enough to be drawn."""
    size = min(len(x), len(y))
    pair = tuple(np.asarray(_floats(side), dtype=np.float64)[:size] for side in (x, y))
    drawable = (np.abs(pair) < _FARTHEST).all(axis=0)
    return pair[0][drawable], pair[1][drawable]


def _floats(values: Any) -> tuple[float, ...] | Floats:
    """Numbers as they are, and NaN for all that is none."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        return values
    if not isinstance(values, list | tuple | np.ndarray):
        return ()
    if set(map(type, values)) == {float}:
        return tuple(values)
    known = (number(x.item() if isinstance(x, np.generic) else x) for x in values)
    return tuple(math.nan if x is None else float(x) for x in known)


def _counts(values: Any) -> tuple[float, ...]:
    found = np.asarray(_floats(values), dtype=np.float64)
    return tuple(np.where(np.isfinite(found) & (found > 0), found, 0.0).tolist())


def thinned(curve: NamedCurve | tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return at most 420 points, the ends among them."""
    x, y = curve if isinstance(curve, tuple) else finite(curve.fpr, curve.tpr)
    if x.size <= _MOST_POINTS:
        return x, y
    keep = np.unique(np.linspace(0, x.size - 1, _MOST_POINTS).round().astype(int))
    return x[keep], y[keep]


def logarithmic(curve: NamedCurve, *, least: float, lowest: float = 0.0) -> tuple[Floats, Floats]:
    """Return the points from ``least`` on: every corner, and more between, where straight lines bend on a log scale.

    Of more than 580 corners some are left out, where no eye would miss them; none is moved.
    """
    x, y = finite(curve.fpr, curve.tpr)
    grid = np.geomspace(least, 1, _BETWEEN)
    grid = grid[~np.isin(grid, x)]
    there = x >= least
    rates = np.concatenate([x[there], grid])
    hits = np.maximum(np.concatenate([y[there], np.interp(grid, x, y)]), lowest)
    order = np.argsort(rates, kind="stable")
    order = order[hits[order] > 0]
    return _spread(*_corners(rates[order], hits[order]), least=least)


def _spread(x: Floats, y: Floats, *, least: float) -> tuple[Floats, Floats]:
    """Of too many points, some of them at even distances along the line as it looks on logarithmic axes, and both ends."""
    if x.size <= _MOST_POINTS + _BETWEEN:
        return x, y
    steps = (np.abs(np.diff(np.log(np.maximum(side, least / 10)))) for side in (x, y))
    along = np.concatenate([[0.0], np.cumsum(sum(steps))])
    keep = np.searchsorted(along, np.linspace(0, along[-1], _MOST_POINTS))
    keep = np.unique(np.append(keep, x.size - 1))
    return x[keep], y[keep]


def _corners(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The same line without the points inside a level or an upright piece."""
    if x.size < 3:  # noqa: PLR2004
        return x, y
    new = np.concatenate(
        [[True], (np.diff(x) != 0) | (np.diff(y) != 0)]
    )  # a doubled corner would count as inside
    x, y = x[new], y[new]
    inside = ((x[:-2] == x[1:-1]) & (x[1:-1] == x[2:])) | ((y[:-2] == y[1:-1]) & (y[1:-1] == y[2:]))
    keep = np.concatenate([[True], ~inside, [True]])
    return x[keep], y[keep]


def floor(finest: float, place: float | None) -> float:
    """Return where logarithmic axes begin: the decade below the finest rate that matters."""
    least = min(finest, place) if place and place > 0 else finest
    return float(10.0 ** math.floor(math.log10(min(max(least, 1e-7), 0.01))))


def density(counts: Sequence[float], edges: Floats, *, total: float) -> Floats:
    """Return the share of records per width of the widest bin, or per bin where bins have no width."""
    widths = np.diff(edges)
    shares = np.asarray(counts, dtype=np.float64) / total
    return shares if (widths <= 0).any() else shares / (widths / widths.max())


def plain(text: str, *, most: int = 50) -> str:
    r"""Return text for a drawing, on one line of at most so many columns; letters of wide scripts take two.

    Every letter stays: the browser has fonts for those that the drawing font lacks.

    >>> plain("caf\u00e9 \u202e\x00"), plain("x" * 60, most=10), plain("\u6a21\u578b" * 9, most=10)
    ('café ⟨U+202E⟩⟨U+0000⟩', 'xxxxxxx...', '模型模...')
    """
    line = " ".join(formatting.clean(text).split())
    signs = _SIGN.findall(line[: 4 * most])  # the marks of what is unseen are cut as wholes
    ends = [*accumulate(map(_columns, signs))]
    if len(line) <= 4 * most and (not ends or ends[-1] <= most):
        return line
    return "".join(sign for sign, end in zip(signs, ends, strict=True) if end <= most - 3) + "..."


_SIGN = re.compile(r"⟨U\+[0-9A-F]{4,6}⟩|.")


def _columns(sign: str) -> int:
    """As terminals count: none for an accent on the letter before, two for a letter of a wide script."""
    if len(sign) > 1:
        return len(sign)
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
