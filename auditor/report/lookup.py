"""Finding things in a result where any of them may be missing."""

from typing import Any

from auditor.result import AuditResult
from auditor.values import Estimate

__all__ = ["CERTIFIED", "ONE_RUN", "STAR", "ceiling", "dig", "find"]

CERTIFIED = "epsilon_bound.clopper_pearson"
ONE_RUN = "epsilon_bound.one_run"
STAR = "epsilon_star.gaussian"


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


def ceiling(estimate: Estimate | None) -> float | None:
    """Return the largest bound that this audit could have certified."""
    found = None if estimate is None else dig(estimate.details, "ceiling")
    return float(found) if isinstance(found, int | float) else None
