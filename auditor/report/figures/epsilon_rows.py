"""The epsilon values of an audit as rows to draw: what kind of number each is, and what may stand beside it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from auditor.report import formatting, labels
from auditor.report.lookup import amount, ceiling, dig, powerless
from auditor.result import AuditResult
from auditor.values import Claim, Estimate, Subject

__all__ = ["EpsilonRow", "Kind", "claim_words", "epsilon_rows"]


class Kind(Enum):
    """How much a number can be relied on, which decides how it is drawn."""

    BOUND = "certified"
    CONDITIONAL = "only if the curve is Gaussian"
    INTERVAL = "interval, if the fit holds"
    POINT = "point estimate"
    REJECTED = "fit rejected"
    NONE = "not evaluable"


@dataclass(frozen=True)
class EpsilonRow:
    """One epsilon value.

    Attributes:
        title: What it is called on the page.
        subject: What it is about.
        kind: How much it can be relied on.
        value: The bound or the estimate, perhaps infinite; null where it is not evaluable.
        lower: The lower end of its interval, or null.
        upper: The upper end, or null.
        ceiling: The most that this audit could have certified, or null.
        claim: The claim that it was judged against, or null.
        adjacency: The neighbouring relation of a number about the training algorithm, else empty.
        words: The number as a reader should see it.
        note: What goes with it: kind, confidence, delta, ceiling.
    """

    title: str
    subject: Subject
    kind: Kind
    value: float | None
    lower: float | None
    upper: float | None
    ceiling: float | None
    claim: Claim | None
    adjacency: str
    words: str
    note: str


def epsilon_rows(result: AuditResult) -> dict[Subject, list[EpsilonRow]]:
    """Return the epsilon values about this model, then those about the training algorithm, in the order of the result."""
    judged = {
        item.estimate: item.claim
        for item in result.comparisons
        if item.verdict is not None and item.claim.metric == "epsilon" and item.claim.value is not None
    }
    rows = [_row(item, judged) for item in result.estimates if item.name.startswith("epsilon")]
    grouped = {subject: [row for row in rows if row.subject is subject] for subject in Subject}
    return {subject: found for subject, found in grouped.items() if found}


def _row(estimate: Estimate, judged: Mapping[str, Claim]) -> EpsilonRow:
    kind = _kind(estimate)
    top = ceiling(estimate)
    return EpsilonRow(
        title=labels.describe(estimate).title,
        subject=estimate.subject,
        kind=kind,
        value=estimate.value,
        lower=estimate.lower,
        upper=estimate.upper,
        ceiling=top if top is not None and top >= 0 else None,
        claim=judged.get(estimate.name),
        adjacency="" if estimate.adjacency is None else str(estimate.adjacency),
        words=_words(estimate, kind),
        note=_note(estimate, kind),
    )


def _kind(estimate: Estimate) -> Kind:
    if estimate.value is None or math.isnan(estimate.value):
        return Kind.NONE
    if dig(estimate.details, "fit", "rejected") is True:
        return Kind.REJECTED
    if dig(estimate.details, "conditional") or dig(estimate.details, "approximate"):
        return Kind.CONDITIONAL
    if estimate.confidence is None or (estimate.lower is None and estimate.upper is None):
        return Kind.POINT
    return Kind.BOUND if estimate.lower == estimate.value and estimate.upper is None else Kind.INTERVAL


def _words(estimate: Estimate, kind: Kind) -> str:
    if kind is Kind.NONE:
        return "not evaluable"
    low, high = (
        formatting.number(end, toward=way) for end, way in ((estimate.lower, "down"), (estimate.upper, "up"))
    )
    if kind in {Kind.BOUND, Kind.CONDITIONAL}:
        bound = low if estimate.lower is not None else formatting.number(estimate.value)
        none = "0, too few records" if powerless(estimate) else "0, no evidence"
        return f"at least {bound}" if estimate.value else none
    value = formatting.number(estimate.value)
    if kind is not Kind.INTERVAL:
        return value
    ends = (
        f"{low} to {high}" if estimate.upper is not None and estimate.lower is not None else f"at least {low}"
    )
    return f"{value} ({ends if estimate.lower is not None else f'at most {high}'})"


def _note(estimate: Estimate, kind: Kind) -> str:
    level = (
        ""
        if estimate.confidence is None
        else f"{formatting.percent(estimate.confidence, toward='down')} confidence"
    )
    parts = {
        Kind.BOUND: ["certified" if estimate.value else "", level],
        Kind.CONDITIONAL: [_condition(estimate), level],
        Kind.INTERVAL: [_holds(estimate), level],
        Kind.POINT: ["point estimate"],
        Kind.REJECTED: ["fit rejected: do not rely on it", level or "point estimate"],
        Kind.NONE: [],
    }[kind]
    if kind is not Kind.NONE and estimate.delta is not None:
        parts.append(f"delta {formatting.given(estimate.delta)}")
    top = ceiling(estimate)
    if top is not None and kind in {Kind.BOUND, Kind.CONDITIONAL}:
        parts.append(f"ceiling {formatting.number(top, toward='down')}")
    return ", ".join(part for part in parts if part)


def _condition(estimate: Estimate) -> str:
    return "approximate, not certified" if dig(estimate.details, "approximate") else "conditional"


def _holds(estimate: Estimate) -> str:
    fitted = (
        estimate.name.startswith("epsilon_star.")
        and amount(estimate.details, "fit", "member", "mean") is not None
    )
    return "if the fit holds" if fitted else "interval"


def claim_words(row: EpsilonRow) -> str:
    """Return the claim that a row was judged against, with its delta and adjacency; nothing without one."""
    if row.claim is None:
        return ""
    at = "" if row.claim.delta is None else f" at delta {formatting.given(row.claim.delta)}"
    return f"Claimed epsilon {formatting.given(row.claim.value)}{at} ({row.claim.adjacency})"
