"""What the figures draw: the data of a result, cleaned, thinned and put on logarithmic axes."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from auditor.result import AuditResult, Histogram, NamedCurve

__all__ = ["curves", "density", "finite", "floor", "histogram", "logarithmic", "plain", "thinned"]

Floats = npt.NDArray[np.float64]

_MOST_POINTS = 300


def curves(result: AuditResult) -> dict[str, NamedCurve]:
    """Return the curves that have at least two points, by name."""
    return {curve.name: curve for curve in result.curves if finite(curve.fpr, curve.tpr)[0].size > 1}


def histogram(result: AuditResult, index: int) -> Histogram | None:
    """Return the histogram of that index where it can be drawn."""
    histogram = result.histograms[index] if index < len(result.histograms) else None
    return (
        histogram if histogram and np.isfinite(np.asarray(histogram.edges, dtype=np.float64)).all() else None
    )


def finite(x: Sequence[float | None], y: Sequence[float | None]) -> tuple[Floats, Floats]:
    """Return the points of which both coordinates are known."""
    pairs = np.array([*zip(x, y, strict=False)], dtype=np.float64).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    return pairs[:, 0], pairs[:, 1]


def thinned(curve: NamedCurve | tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return at most 300 points, the ends among them."""
    x, y = curve if isinstance(curve, tuple) else finite(curve.fpr, curve.tpr)
    if x.size <= _MOST_POINTS:
        return x, y
    keep = np.unique(np.linspace(0, x.size - 1, _MOST_POINTS).round().astype(int))
    return x[keep], y[keep]


def logarithmic(curve: NamedCurve, *, least: float, lowest: float = 0.0) -> tuple[Floats, Floats]:
    """Points from ``least`` on: a straight line between two points is a bent one on logarithmic axes."""
    grid = np.geomspace(least, 1, 240)
    rates = np.maximum(np.interp(grid, *finite(curve.fpr, curve.tpr)), lowest)
    return grid[rates > 0], rates[rates > 0]


def floor(finest: float, place: float | None) -> float:
    """Return where logarithmic axes begin: the decade below the finest rate that matters."""
    least = min(finest, place) if place and place > 0 else finest
    return float(10.0 ** math.floor(math.log10(min(max(least, 1e-7), 0.01))))


def density(counts: Sequence[float], edges: Floats, *, total: float) -> Floats:
    """Return the share of records per unit of loss, or per bin where bins have no width."""
    widths = np.diff(edges)
    shares = np.asarray(counts, dtype=np.float64) / total
    return shares if (widths <= 0).any() else shares / widths


def plain(text: str) -> str:
    """Return text in letters that every drawing font has."""
    # Others would raise a warning for every reader; the page's own text shows them all.
    kept = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in str(text))
    return kept if len(kept) < 50 else kept[:47] + "..."  # noqa: PLR2004 a label fits on one line
