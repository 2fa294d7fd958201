"""Severity of a leak, from the lower limit of the membership advantage of all records or of the most exposed group."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from auditor.core import InputError, Severity, validate
from auditor.results import metrics
from auditor.results.document import Document, Slice, SliceKind, find, shown_by
from auditor.verdicts.judging import failed_validity

CUT_POINTS = (0.05, 0.2, 0.5)
_LEVELS = (Severity.SLIGHT, Severity.MARKED, Severity.SEVERE)


def cut_points(values: Sequence[float] | str) -> tuple[float, ...]:
    """Return the lower limits of the advantage from which a leak is slight, marked and severe, also of a text with commas.

    Raises:
        InputError: They are not three numbers that increase, in (0, 1].
    """
    listed: Any = values.split(",") if isinstance(values, str) else values
    listed = listed if isinstance(listed, list | tuple) else [listed]
    points = tuple(validate.number("severity", value) for value in listed)
    steps = itertools.pairwise((0.0, *points))
    if len(points) != len(_LEVELS) or points[-1] > 1 or not all(low < high for low, high in steps):
        raise InputError(
            "severity must be three advantages that increase, in (0, 1], from which a leak is slight, marked and severe,"
            f" such as 0.05, 0.2, 0.5; got {', '.join(map(str, points))}."
        )
    return points


def points_of(data: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the cut points of a result; the default ones if it has none that can be read."""
    try:
        return CUT_POINTS if data.get("severity") is None else cut_points(data["severity"])
    except InputError:
        return CUT_POINTS


def least_advantage(area: float) -> float:
    """Return the smallest advantage that an attacker has whose area under the curve is this; 0 up to 1/2 [own].

    A curve whose largest gap between TPR and FPR is J lies below min(1, FPR + J), so its area is at most 1/2 + J - J^2/2.

    >>> least_advantage(0.5), least_advantage(1.0), round(least_advantage(0.82), 3)
    (0.0, 1.0, 0.4)
    """
    return max(0.0, 1 - math.sqrt(2 * (1 - area))) if 0 <= area <= 1 else 0.0


def lower_limits(result: Document) -> tuple[float, float]:
    """Return the lower limits of the AUC and of the advantage over all records, each 0 if it is not above guessing.

    The limits of the advantage and of the AUC and the point of the band hold together, so the largest advantage may be
    taken. A result of an earlier release has each limit by itself.
    """
    together: Mapping[str, Any] = shown_by(result) or {}
    limits = together.get("limits")
    if limits is None:
        rows = {name: metrics.as_evidence(find(result, name), result) for name in ("advantage", "auc")}
        names = together.get("names", rows)
        limits = {
            name: row.lower
            for name, row in rows.items()
            if name in names and row and metrics.beyond_guessing(row)
        }
    area, point = limits.get("auc", 0.0), together.get("point")
    gap = 0.0 if point is None else point["hits"] - point["errors"]
    return area, max(limits.get("advantage", 0.0), least_advantage(area) if area else 0.0, gap, 0.0)


def group_advantage(one: Slice) -> float:
    """Return the lower limit of the advantage in a class or group, 0 if there is none; holds for all groups at once."""
    lows = {row.name: row.lower for row in one.estimates if row.lower is not None}
    return max(lows.get("advantage", 0.0), least_advantage(lows.get("auc", 0.0)))


def severity(result: Document, *, leaks: bool) -> tuple[Severity, float, Slice | None] | None:
    """Return the severity of a leak, the lower limit of the advantage behind it, and the class or group that has this limit.

    Without such a class or group the limit is that of all records. The whole is None if no number measures leakage.

    Args:
        result: An audit of one model.
        leaks: Whether leakage was found, by whatever number; it is then slight at least.
    """
    if result.kind is not None or result.altered or failed_validity(result.checks):
        return None
    groups = (one for one in getattr(result, "slices", ()) if one.kind is not SliceKind.PERCENTILE)
    lows = [(lower_limits(result)[1], None), *((group_advantage(one), one) for one in groups)]
    low, group = max(lows, key=lambda pair: pair[0])
    return level(low, points_of(result.data)) or (Severity.SLIGHT if leaks else Severity.NONE), low, group


def level(low: float, points: Sequence[float]) -> Severity | None:
    """Return the level that this lower limit of the advantage reaches; None below the first cut point."""
    return next((one for one, point in zip(_LEVELS[::-1], points[::-1], strict=True) if low >= point), None)
