"""Rows of an audit as evidence of leakage: in a census the members count as draws, so that chance is allowed for."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from auditor.estimators.as_draws import FINITE
from auditor.report.lookup import CERTIFIED, amount, number
from auditor.result import AuditResult
from auditor.values import Estimate

__all__ = ["caution", "drawn", "is_finite"]

_AS_DRAWS = (
    "the training records count as draws from the same source as others like them, so chance in which of them were drawn"
    " is allowed for"
)
# Rows about the training set itself, by how the members were chosen.
_FINITE = {
    "census": ("tpr_at_fpr.", "advantage", "bayes_security", CERTIFIED),
    "subset": ("tpr_at_fpr.", CERTIFIED),
}


def is_finite(estimate: Estimate) -> bool:
    """Return whether a number describes one finite training set, so that it can be positive by chance alone."""
    return any(FINITE in item for item in estimate.assumptions)


def _was_finite(estimate: Estimate, result: AuditResult) -> bool:
    """The same in older results, whose rows do not say so."""
    return estimate.name.startswith(_FINITE.get(str(result.data.get("members")), ()))


def caution(estimate: Estimate) -> str:
    """Return what to know of a number that describes one finite training set; nothing for other numbers."""
    if not is_finite(estimate):
        return ""
    return f"describes this {FINITE} and can be positive by chance alone"


def drawn(estimate: Estimate | None, result: AuditResult) -> Estimate | None:
    """Return the estimate as evidence of leakage, with the members as draws; numbers that are none become null.

    A number that describes a finite training set is replaced by what was found beside it with the members as draws;
    null where an older result does not keep that.

    Args:
        estimate: A row of the result, or null.
        result: The audit that the row is from.
    """
    if estimate is None:
        return None
    if not (is_finite(estimate) or _was_finite(estimate, result)):
        return replace(estimate, confidence=number(estimate.confidence), **_ends(vars(estimate)))
    kept = estimate.details.get("as_draws")
    if not isinstance(kept, Mapping):
        return None
    return replace(
        estimate,
        **_ends(kept),
        confidence=number(estimate.confidence),
        assumptions=(*(item for item in estimate.assumptions if FINITE not in item), _AS_DRAWS),
        details=dict(kept),
    )


def _ends(of: Mapping[str, Any]) -> dict[str, Any]:
    return {name: amount(of, name) for name in ("value", "lower", "upper")}
