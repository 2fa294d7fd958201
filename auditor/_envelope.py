"""Corners of straight-line envelopes: the lowest of many bounds on a trade-off curve, and the concave curve above one."""

import numpy as np

from auditor.values import Floats

__all__ = ["concave_corners", "lowest_corners"]


def lowest_corners(epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats]:
    """Return the corners (FPR, TPR) of the lowest of the lines TPR = d + e^eps FPR, up to where TPR = 1 - FPR.

    Args:
        epsilons: Shape (k,), 0 or more.
        deltas: Shape (k,), in [0, 1].

    >>> [axis.tolist() for axis in lowest_corners(np.array([0.0]), np.array([0.5]))]
    [[0.0, 0.25], [0.5, 0.75]]
    """
    order = np.lexsort((deltas, epsilons))
    with np.errstate(over="ignore"):  # a line too steep for a double is upright
        slopes, offsets = np.exp(epsilons[order]), deltas[order]
    end = float(np.max((1 - offsets) / (1 + slopes)))
    lines: list[tuple[float, float]] = []
    for slope, offset in zip(slopes.tolist(), offsets.tolist(), strict=True):
        if lines and offset >= lines[-1][1]:
            continue  # steeper, and no lower at 0
        if lines and slope == lines[-1][0]:
            lines.pop()
        while len(lines) > 1 and _meet(lines[-2], lines[-1]) <= _meet(lines[-1], (slope, offset)):
            lines.pop()
        lines.append((slope, offset))
    fpr, tpr = [0.0], [lines[-1][1]]
    for flatter, steeper in zip(lines[-2::-1], lines[:0:-1], strict=True):
        at = _meet(flatter, steeper)
        if at < end:
            fpr.append(at)
            tpr.append(flatter[1] + flatter[0] * at)
    return np.array([*fpr, end]), np.array([*tpr, 1 - end])


def _meet(flatter: tuple[float, float], steeper: tuple[float, float]) -> float:
    """The FPR at which two lines (slope, offset) cross."""
    return (flatter[1] - steeper[1]) / (steeper[0] - flatter[0])


def concave_corners(fpr: Floats, tpr: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the smallest concave curve above a rising one; no two share a TPR.

    >>> [axis.tolist() for axis in concave_corners(np.array([0, 0.5, 1.0]), np.array([0, 0.1, 1.0]))]
    [[0.0, 1.0], [0.0, 1.0]]
    """
    kept: list[tuple[float, float]] = []
    for x, y in zip(fpr.tolist(), tpr.tolist(), strict=True):
        if kept and y <= kept[-1][1]:
            continue
        while len(kept) > 1 and _is_below(kept[-1], kept[-2], (x, y)):
            kept.pop()
        kept.append((x, y))
    corners = np.array(kept)
    return corners[:, 0], corners[:, 1]


def _is_below(point: tuple[float, float], left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Whether a point is on or below the line from left to right."""
    rise, run = point[1] - left[1], point[0] - left[0]
    return rise * (right[0] - left[0]) <= (right[1] - left[1]) * run
