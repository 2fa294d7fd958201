"""Finding things in a result where any of them may be missing."""

import math
import sys
from typing import Any

from auditor.result import AuditResult
from auditor.values import Estimate

__all__ = [
    "CERTIFIED",
    "MIXTURE",
    "ONE_RUN",
    "STAR",
    "amount",
    "ceiling",
    "dig",
    "find",
    "number",
    "powerless",
]

CERTIFIED = "epsilon_bound.clopper_pearson"
ONE_RUN = "epsilon_bound.one_run"
STAR = "epsilon_star.gaussian"
MIXTURE = "epsilon_star.mixture"


def find(result: AuditResult, name: str) -> Estimate | None:
    """Return the estimate of that name, or null where the audit has none."""
    return next((item for item in result.estimates if item.name == name), None)


def dig(details: Any, *keys: str) -> Any:
    """Return a nested detail, or null where any step of the way is missing."""
    for key in keys:
        if not hasattr(details, "get"):
            return None
        details = details.get(key)
    return details


def number(x: Any) -> float | None:
    """Return a number as it is, infinite or not, and null for NaN and all that is no number."""
    if not isinstance(x, int | float) or isinstance(x, bool):
        return None
    return (
        x if abs(x) <= sys.float_info.max or x in (math.inf, -math.inf) else None
    )  # not NaN, no endless integer


def amount(details: Any, *keys: str) -> float | None:
    """Return a nested number, or null where there is none."""
    found = number(dig(details, *keys))
    return None if found is None else float(found)


def ceiling(estimate: Estimate | None) -> float | None:
    """Return the largest bound that this audit could have certified."""
    return None if estimate is None else amount(estimate.details, "ceiling")


def powerless(estimate: Estimate | None) -> bool:
    """Whether this audit has too few records to certify anything, however much leaks."""
    top = ceiling(estimate)
    return top is not None and top <= 0
