"""The claims beside the measurements, as strings."""

import itertools
import math
from dataclasses import asdict
from typing import Any

from auditor.report import formatting, labels, rows
from auditor.report.lookup import find
from auditor.result import AuditResult
from auditor.values import Claim, Comparison, Estimate

__all__ = ["claim_section"]


def claim_section(result: AuditResult) -> dict[str, Any] | None:
    """Return what was claimed and a row for each comparison, the claim as it was made first; null without a claim."""
    stated = result.data.get("claim")
    if not (result.claims or result.comparisons or stated):
        return None
    compared = [item.claim for item in result.comparisons]
    alone = [Comparison(item, "", None, "") for item in result.claims if item not in compared]
    as_made = result.claims[0] if result.claims else None
    ordered = sorted((*result.comparisons, *alone), key=lambda item: item.claim != as_made)
    shown = [_comparison(result, item) for item in ordered]
    for place, (above, item) in enumerate(itertools.pairwise(ordered), start=1):
        if item.claim == above.claim:
            shown[place]["basis"] = ""  # the same claim beside another measurement
        if item.reason and item.reason == above.reason:
            shown[place]["reason"] = "As above."
    return {"stated": formatting.tidy(stated) if stated else "", "rows": shown}


def _comparison(result: AuditResult, comparison: Comparison) -> dict[str, Any]:
    claim, estimate = comparison.claim, find(result, comparison.estimate)
    delta = formatting.given(claim.delta)
    terms = [] if delta == formatting.MISSING else [f"delta {delta}"]
    kind = [] if claim.proven else ["an approximation, not proven"]
    outcome = labels.Sign("Shown for comparison" if estimate else "Not measured", "", "plain")
    if comparison.verdict is not None:
        outcome = labels.VERDICT[comparison.verdict]
    return {
        "metric": labels.metric(claim.metric),
        "claimed": _claimed(claim),
        "terms": ", ".join([*terms, str(claim.adjacency), *kind]),
        "basis": " ".join(formatting.sentence(text) for text in (claim.method, claim.note) if text),
        "measured": rows.value(estimate) if estimate else formatting.MISSING,
        "what": labels.describe(estimate).title if estimate else formatting.clean(comparison.estimate),
        **_at(claim, estimate),
        "about": f"about {labels.ABOUT[estimate.subject]}" if estimate else "",
        "interval": rows.interval_words(estimate) if estimate and estimate.value is not None else "",
        "outcome": asdict(outcome),
        "reason": formatting.sentence(comparison.reason),
    }


def _claimed(claim: Claim) -> str:
    if claim.metric == "epsilon":
        return formatting.given(claim.value)
    return formatting.value(claim.value, name=claim.metric)


def _at(claim: Claim, estimate: Estimate | None) -> dict[str, str]:
    """The delta that the measurement is stated at, and a mark where the claim's is another."""
    if estimate is None or estimate.delta is None:
        return {"delta": "", "mark": ""}
    if claim.delta is None or math.isclose(claim.delta, estimate.delta, rel_tol=1e-9):
        return {"delta": f"delta {formatting.given(estimate.delta)}", "mark": ""}
    claimed, measured = formatting.distinct(claim.delta, estimate.delta)
    return {"delta": f"delta {measured}", "mark": f"not the claim's delta of {claimed}"}
