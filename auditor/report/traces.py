"""What the figures draw: the data of a result, cleaned, thinned and put on logarithmic axes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.report.lookup import number
from auditor.result import AuditResult, Histogram, NamedCurve

__all__ = ["curves", "density", "finite", "floor", "histogram", "logarithmic", "plain", "thinned"]

Floats = npt.NDArray[np.float64]

_MOST_POINTS = 420  # more than an audit keeps of any curve
_FARTHEST = 1e306  # beyond, the span of an axis would overflow


def curves(result: AuditResult) -> dict[str, NamedCurve]:
    """Return the curves that have at least two points, by name."""
    sound = (replace(curve, fpr=_floats(curve.fpr), tpr=_floats(curve.tpr)) for curve in result.curves)
    return {curve.name: curve for curve in sound if finite(curve.fpr, curve.tpr)[0].size > 1}


def histogram(result: AuditResult, index: int) -> Histogram | None:
    """Return the histogram of that index where it can be drawn."""
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
    quantiles = {key: _floats(item) for key, item in found.quantiles.items()}
    return Histogram(str(found.scale), tuple(edges), counts[0], counts[1], fits[0], fits[1], quantiles)


def finite(x: Sequence[float | None], y: Sequence[float | None]) -> tuple[Floats, Floats]:
    """Return the points of which both coordinates are known and small enough to be drawn."""
    pairs = np.array([*zip(_floats(x), _floats(y), strict=False)], dtype=np.float64).reshape(-1, 2)
    pairs = pairs[(np.abs(pairs) < _FARTHEST).all(axis=1)]
    return pairs[:, 0], pairs[:, 1]


def _floats(values: Any) -> tuple[float, ...]:
    """Numbers as they are, and NaN for all that is none."""
    if not isinstance(values, list | tuple | np.ndarray):
        return ()
    known = (number(x.item() if isinstance(x, np.generic) else x) for x in values)
    return tuple(math.nan if x is None else float(x) for x in known)


def _counts(values: Any) -> tuple[Any, ...]:
    return tuple(x if math.isfinite(x) and x > 0 else 0.0 for x in _floats(values))


def thinned(curve: NamedCurve | tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return at most 420 points, the ends among them."""
    x, y = curve if isinstance(curve, tuple) else finite(curve.fpr, curve.tpr)
    if x.size <= _MOST_POINTS:
        return x, y
    keep = np.unique(np.linspace(0, x.size - 1, _MOST_POINTS).round().astype(int))
    return x[keep], y[keep]


def logarithmic(curve: NamedCurve, *, least: float, lowest: float = 0.0) -> tuple[Floats, Floats]:
    """Return the points from ``least`` on: every corner, and more between, where straight lines bend on a log scale."""
    x, y = finite(curve.fpr, curve.tpr)
    grid = np.geomspace(least, 1, 160)
    grid = grid[~np.isin(grid, x)]
    there = x >= least
    rates = np.concatenate([x[there], grid])
    hits = np.maximum(np.concatenate([y[there], np.interp(grid, x, y)]), lowest)
    order = np.argsort(rates, kind="stable")
    order = order[hits[order] > 0]
    return _corners(rates[order], hits[order])


def _corners(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The same line without the points inside a level or an upright piece."""
    if x.size < 3:  # noqa: PLR2004
        return x, y
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
    r"""Return text in letters that every drawing font has, cut to fit on one line.

    >>> plain("caf\u00e9 \u202e\x00"), plain("x" * 60, most=10)
    ('caf? ??', 'xxxxxxx...')
    """
    # Others would raise a warning for every reader; the page's own text shows them all.
    kept = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in str(text))
    return kept if len(kept) < most else kept[: most - 3] + "..."
