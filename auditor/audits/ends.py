"""The interval of one row of one audit at another error, from what its result keeps; the members count as draws."""

from collections.abc import Callable, Mapping
from typing import Any

from auditor.estimators.advantage import half_width
from auditor.estimators.auc import interval
from auditor.values import Estimate

__all__ = ["ends"]

Ends = tuple[float, float]
_MOST = 2**53  # records


def ends(name: str, estimate: Estimate, *, data: Mapping[str, Any], alpha: float) -> Ends | None:
    """Return both ends, or null where the result does not keep what they rest on.

    Args:
        name: ``advantage`` or ``auc``.
        estimate: The row of that name, with a value.
        data: ``AuditResult.data``.
        alpha: The error of the interval, in (0, 1).
    """
    return _ENDS[name](estimate, data, alpha)


def _advantage_ends(estimate: Estimate, data: Mapping[str, Any], alpha: float) -> Ends | None:
    sizes = _sizes(data)
    if sizes is None:
        return None
    value = estimate.value or 0.0
    # In a census too: without its members' share of the error, two training sets would differ by chance alone.
    half = half_width(alpha, n_member=sizes[0], n_nonmember=sizes[1])
    return max(0.0, value - half), min(1.0, value + half)


def _auc_ends(estimate: Estimate, data: Mapping[str, Any], alpha: float) -> Ends | None:
    sizes, error = _sizes(data), estimate.details.get("standard_error")
    if sizes is None or not isinstance(error, int | float) or not 0 <= error <= 1:
        return None
    return interval(estimate.value or 0.0, error * error, sizes=sizes, alpha=alpha)


_ENDS: Mapping[str, Callable[[Estimate, Mapping[str, Any], float], Ends | None]] = {
    "advantage": _advantage_ends,
    "auc": _auc_ends,
}


def _sizes(data: Mapping[str, Any]) -> tuple[int, int] | None:
    sizes = data.get("n_member"), data.get("n_nonmember")
    if not all(isinstance(size, int) and 1 < size < _MOST for size in sizes):
        return None
    return int(sizes[0] or 0), int(sizes[1] or 0)
