"""Why a gate that is not true may not be taken as passed: the audit could not have made it true, or contradicts itself."""

from collections.abc import Callable, Iterator

from auditor import _format, gate_words
from auditor.compare import why_blind
from auditor.result import AuditResult
from auditor.values import Estimate, Subject

__all__ = ["why_no_pass"]

_CERTIFIED = "epsilon_bound.clopper_pearson"
_FITTED = ("epsilon_star.gaussian", "epsilon_star.mixture")
_UPWARD = (">", ">=")


def why_no_pass(
    estimate: Estimate, *, result: AuditResult, symbol: str, bound: float, holds: Callable[[float], bool]
) -> str | None:
    """Return why a gate that does not hold says nothing, as a clause without a capital; null where it has passed.

    Args:
        estimate: The one that the gate names.
        result: The audit that it comes from.
        symbol: The gate's operator.
        bound: The gate's number.
        holds: Whether the gate would be true of a number.

    Three things keep a gate from passing: an audit that could not have shown any leak; a bound with a ceiling at which
    the gate would not be true either; a rejected fit whose number lies below what the same audit certifies.
    """
    blind = why_blind(result.checks)
    if blind is not None or symbol not in _UPWARD:
        return blind
    return _out_of_reach(estimate, holds) or _contradicted(estimate, result, bound, holds)


def _out_of_reach(estimate: Estimate, holds: Callable[[float], bool]) -> str | None:
    from auditor.report.lookup import ceiling

    top = ceiling(estimate) if estimate.name.startswith("epsilon_bound.") else None
    if top is None or holds(top):
        return None
    shown = _format.number(top, toward="down")
    return f"its ceiling is {shown}, so with these records it could not have been larger, whatever the model leaks"


def _contradicted(
    estimate: Estimate, result: AuditResult, bound: float, holds: Callable[[float], bool]
) -> str | None:
    from auditor.report.lookup import dig

    if estimate.name not in _FITTED or dig(estimate.details, "fit", "rejected") is not True:
        return None
    largest = max((low for low in _certified(estimate, result) if holds(low)), default=None)
    if largest is None:
        return None
    shown = gate_words.apart(largest, bound=bound, toward="down")
    return f"its fit is rejected and the certified bound of the same model at the same delta is {shown}"


def _certified(estimate: Estimate, result: AuditResult) -> Iterator[float]:
    """What is certified about the model of an estimate, at its delta."""
    from auditor.report.lookup import dig, number

    for item in result.estimates:
        alike = (item.subject, item.delta) == (Subject.MODEL, estimate.delta)
        low = number(item.lower)
        if item.name == _CERTIFIED and alike and low is not None and not dig(item.details, "approximate"):
            yield low
