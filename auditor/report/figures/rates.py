"""What an audit of a model says along its trade-off curve: how far it reaches, which rates it quotes, which claim."""

import math

from auditor.report import formatting, labels
from auditor.report.lookup import STAR, amount, find
from auditor.report.traces import floor
from auditor.result import AuditResult
from auditor.values import Claim, Estimate

__all__ = [
    "WHOLE_CLAIM",
    "drawn_claim",
    "finest_of",
    "observed_rate",
    "quoted_rates",
    "rate_words",
    "reach",
    "runs_out",
]

WHOLE_CLAIM = (
    "claimed_training"  # the curve of a claimed training, where "claim" is that of one epsilon and delta
)


def reach(result: AuditResult) -> tuple[float, float]:
    """Return the finest rate that the non-members can show, and the rate that the logarithmic axes begin at."""
    star, finest = find(result, STAR), finest_of(result, "n_nonmember")
    return finest, floor(finest, amount(star.details, "at", "fpr") if star else None)


def finest_of(result: AuditResult, group: str) -> float:
    """Return the share that one record of a group is, ``n_member`` or ``n_nonmember``."""
    records = amount(result.data, group)
    return 1 / max(records if records and math.isfinite(records) else 1000, 2)


def runs_out(result: AuditResult) -> bool:
    """Return whether the logarithmic figure goes on where the records run out, so that a part of it is shaded."""
    finest, least = reach(result)
    return least < finest


def drawn_claim(result: AuditResult) -> Claim | None:
    """Return the claim that the dotted curve stands for: the one that was judged, else the first that was made."""
    judged = [item.claim for item in result.comparisons if item.verdict is not None]
    claims = [item for item in (*judged, *result.claims) if item.metric == "epsilon"]
    return next((item for item in claims if item.value is not None), None)


def quoted_rates(result: AuditResult) -> list[tuple[float, Estimate]]:
    """Return the ``tpr_at_fpr`` rows that have a certified lower limit, by rate."""
    rows = [(rate, item) for item in result.estimates if (rate := labels.rate_of(item)) is not None]
    known = [(rate, item) for rate, item in rows if item.lower is not None and item.value is not None]
    return sorted(((rate, item) for rate, item in known if 0 < rate < 1), key=lambda pair: pair[0])


def observed_rate(result: AuditResult, row: Estimate) -> float | None:
    """Return the rate of false alarms that was observed at the threshold of a ``tpr_at_fpr`` row, or null."""
    seen, rank, records = (
        amount(row.details, "fpr"),
        amount(row.details, "rank"),
        amount(result.data, "n_nonmember"),
    )
    if seen is None and rank is not None and records:  # an older result; exact where no two losses are equal
        seen = rank / records
    return seen if seen is not None and 0 <= seen <= 1 else None


def rate_words(rate: float, row: Estimate) -> str:
    """Return a quoted rate in words: what is certified there, and what was observed."""
    level = (
        ""
        if row.confidence is None
        else f" at {formatting.percent(row.confidence, toward='down')} confidence"
    )
    return (
        f"With false alarms certified at most {formatting.percent(rate)}: recognised at least {formatting.percent(row.lower, toward='down')}"
        f"{level}, observed {formatting.percent(row.value)}"
    )
