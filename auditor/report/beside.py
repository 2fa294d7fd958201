"""The claims beside the measurements, as strings."""

import itertools
from dataclasses import asdict
from typing import Any

from auditor.report import formatting, labels, rows
from auditor.report.lookup import find
from auditor.result import AuditResult
from auditor.values import Comparison

__all__ = ["claim_section"]


def claim_section(result: AuditResult) -> dict[str, Any] | None:
    """Return what was claimed and a row for each comparison, or null where there is no claim."""
    stated = result.data.get("claim")
    if not (result.claims or result.comparisons or stated):
        return None
    compared = [item.claim for item in result.comparisons]
    alone = [Comparison(item, "", None, "") for item in result.claims if item not in compared]
    compared_first = (*result.comparisons, *alone)
    shown = [_comparison(result, item) for item in compared_first]
    for place, (above, item) in enumerate(itertools.pairwise(compared_first), start=1):
        if item.claim == above.claim:
            shown[place]["basis"] = ""  # the same claim beside another measurement
        if item.reason and item.reason == above.reason:
            shown[place]["reason"] = "As above."
    return {"stated": str(stated) if stated else "", "rows": shown}


def _comparison(result: AuditResult, comparison: Comparison) -> dict[str, Any]:
    claim, estimate = comparison.claim, find(result, comparison.estimate)
    delta = formatting.number(claim.delta)
    terms = [] if delta == formatting.MISSING else [f"delta {delta}"]
    kind = [] if claim.proven else ["an approximation, not proven"]
    outcome = labels.Sign("Shown for comparison" if estimate else "Not measured", "", "plain")
    if comparison.verdict is not None:
        outcome = labels.VERDICT[comparison.verdict]
    return {
        "metric": labels.metric(claim.metric),
        "claimed": formatting.value(claim.value, name=claim.metric),
        "terms": ", ".join([*terms, str(claim.adjacency), *kind]),
        "basis": " ".join(formatting.sentence(text) for text in (claim.method, claim.note) if text),
        "measured": rows.value(estimate) if estimate else formatting.MISSING,
        "what": labels.describe(estimate).title if estimate else formatting.clean(comparison.estimate),
        "about": f"about {labels.ABOUT[estimate.subject]}" if estimate else "",
        "interval": rows.interval_words(estimate) if estimate and estimate.value is not None else "",
        "outcome": asdict(outcome),
        "reason": formatting.sentence(comparison.reason),
    }
