"""One result of a comparison as plain values: a row of its frame, an object of its JSON."""

from typing import TYPE_CHECKING, Any

from auditor.audits.readings import Reading

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison

__all__ = ["row"]


def row(comparison: "AuditsComparison", item: Reading) -> dict[str, Any]:
    """Return one result by the names of the columns."""
    run, estimate = item.run, item.estimate
    corners = {number for strategy in comparison.frontier for number in strategy.runs}
    return {
        "number": run.number,
        "model": run.model,
        "strategy": run.strategy,
        "category": run.category,
        "utility": None if run.utility is None else run.utility.value,
        "utility_name": None if run.utility is None else run.utility.name,
        "higher_is_better": None if run.utility is None else run.utility.higher_is_better,
        "value": item.value,
        "lower": None if estimate is None else estimate.lower,
        "upper": None if estimate is None else estimate.upper,
        "confidence": None if estimate is None else estimate.confidence,
        "delta": None if estimate is None else estimate.delta,
        "subject": None if estimate is None else str(estimate.subject),
        "strategy_on_frontier": None if comparison.no_frontier else run.number in corners,
        "left_out": item.reason,
        "marks": "; ".join(item.marks),
        "verdict": None if run.result.verdict is None else str(run.result.verdict),
        "file": run.source,
        "input_sha256": run.sha256,
        "created": run.result.provenance.get("created"),
    }
