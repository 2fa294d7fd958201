"""The rows of a comparison's tables, as strings, each with what it sorts by."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from auditor.audits.differences import DECIDES, Difference
from auditor.audits.readings import REJECTED, Reading, is_lower_bound
from auditor.audits.runs import Run
from auditor.audits.strategies import Spread, Strategy
from auditor.compare import failed_validity
from auditor.report import formatting, labels, rows
from auditor.report.comparison_words import CHANGE
from auditor.report.lookup import CERTIFIED, ONE_RUN, dig, find
from auditor.values import Estimate, Status

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison, RunChange

__all__ = [
    "Shared",
    "audit_row",
    "bound_row",
    "change_rows",
    "level",
    "not_compared",
    "provenance_row",
    "shared",
    "strategy_row",
]

Cell = dict[str, Any]
T = TypeVar("T")


class Shared(NamedTuple):
    """What every number of a table has in common, each null where the numbers differ in it."""

    confidence: float | None
    delta: float | None
    utility: str | None

    @property
    def words(self) -> str:
        """The same for a reader."""
        parts = [
            ""
            if self.confidence is None
            else f"Intervals and bounds at {formatting.percent(self.confidence)} confidence",
            "" if self.delta is None else f"epsilons at delta {formatting.given(self.delta)}",
        ]
        found = ", ".join(part for part in parts if part)
        return f"{found[0].upper()}{found[1:]}." if found else ""


def _cell(text: str, *notes: str, by: float | str | None = None) -> Cell:
    """What a cell shows, and the number or the text that its column is sorted by; missing ones come last."""
    missing = by is None or (isinstance(by, float) and math.isnan(by))
    order: float | str | None = None if missing else by
    if isinstance(order, float) and math.isinf(order):
        order = math.copysign(1e308, order)
    return {
        "text": text,
        "notes": [note for note in notes if note],
        "by": "" if order is None else str(order),
    }


def _name(run: Run) -> Cell:
    return {"number": run.number, "title": run.title, "by": str(run.number)}


def strategy_row(item: Strategy, *, measure: str) -> dict[str, Any]:
    """Return a strategy: its averages with their ranges, its instances, and whether it is on the frontier."""
    used = len(item.runs)
    models = formatting.count(item.given) if used == item.given else f"{used} of {item.given}"
    return {
        "number": item.number,
        "name": item.name,
        "category": item.category,
        "measure": _spread(item.measure, name=measure, ceiling=item.ceiling),
        "utility": _spread(item.utility, name="utility"),
        "models": _cell(models, by=float(used)),
        "frontier": _cell("On it" if item.on_frontier else "", by=0.0 if item.on_frontier else 1.0),
        "marks": list(item.marks),
    }


def _spread(spread: Spread | None, *, name: str, ceiling: Spread | None = None) -> Cell:
    if spread is None:
        return _cell(formatting.MISSING)
    toward = "down" if is_lower_bound(name) else "nearest"
    mean, low, high = (
        formatting.value(x, name=name, toward=toward) for x in (spread.mean, spread.least, spread.most)
    )
    span = "" if spread.least == spread.most else f"{low} to {high}"
    return _cell(mean, span, _ceilings(ceiling), by=spread.mean)


def _ceilings(spread: Spread | None) -> str:
    if spread is None:
        return ""
    low, high = (formatting.number(end, toward="down") for end in (spread.least, spread.most))
    return f"ceiling {low}" if low == high else f"ceilings {low} to {high}"


def audit_row(item: Reading, *, shared: Shared) -> dict[str, Any]:
    """Return an audit: its utility, and the measure with its interval and delta, less what all audits share."""
    run, estimate = item.run, item.estimate
    utility = run.utility
    return {
        "name": _name(run),
        "strategy": _cell(run.strategy or formatting.MISSING, run.category or "", by=run.strategy),
        "utility": _cell(
            formatting.MISSING if utility is None else formatting.number(utility.value),
            "" if utility is None or utility.name == shared.utility else utility.name,
            by=None if utility is None else utility.value,
        ),
        "measure": _measured(estimate, shared),
        "auc": _measured(find(run.result, "auc"), shared),
        "advantage": _measured(find(run.result, "advantage"), shared),
        "marks": [mark for mark in item.marks if mark != REJECTED],  # its cell says so
        "left_out": formatting.sentence(item.reason or ""),
    }


def shared(comparison: "AuditsComparison") -> Shared:
    """Return what all audits share, so that it is said once above a table and not in every cell."""
    shown = (comparison.measure, "auc", "advantage", CERTIFIED, ONE_RUN)
    estimates = [
        item
        for run in comparison.runs
        for name in shown
        if (item := find(run.result, name)) and item.value is not None
    ]
    levels = {item.confidence for item in estimates if item.confidence is not None}
    deltas = {item.delta for item in estimates if item.delta is not None}
    names = {run.utility.name for run in comparison.runs if run.utility is not None}
    return Shared(_only(levels), _only(deltas), _only(names))


def _only(found: set[T]) -> T | None:
    return next(iter(found)) if len(found) == 1 else None


def _measured(estimate: Estimate | None, shared: Shared) -> Cell:
    if estimate is None or estimate.value is None:
        return _cell(formatting.MISSING)
    words = rows.interval_words(estimate)
    if estimate.confidence is not None and estimate.confidence == shared.confidence:
        words = words.replace(f" at {formatting.percent(estimate.confidence)} confidence", "", 1)
    alone = estimate.delta is not None and estimate.delta != shared.delta
    at = f"delta {formatting.given(estimate.delta)}" if alone else ""
    return _cell(rows.value(estimate), words, at, by=float(estimate.value))


def bound_row(run: Run, *, shared: Shared) -> dict[str, Any]:
    """Return the certified bounds of an audit beside its verdict."""
    failed = failed_validity(run.result.checks)
    warned = [check for check in run.result.checks if check.status is Status.WARN]
    claim = run.result.data.get("claim")
    return {
        "name": _name(run),
        "verdict": asdict(labels.VERDICT[run.result.verdict]),
        "claim": str(claim) if claim is not None else "",
        "bound": _measured(find(run.result, CERTIFIED), shared),
        "algorithm": _measured(find(run.result, ONE_RUN), shared),
        "failed": [check.name.replace("_", " ") for check in failed],
        "warned": [check.name.replace("_", " ") for check in warned],
    }


def change_rows(change: "RunChange", *, level: float | None) -> list[dict[str, Any]]:
    """Return what changed from the baseline to one audit: what has a difference, and the deciding quantities always."""
    shown = [item for item in change.differences if item.value is not None or item.name in DECIDES]
    return [_difference(change.run, item, decides=item.name in DECIDES, level=level) for item in shown]


def _difference(run: Run, item: Difference, *, decides: bool, level: float | None) -> dict[str, Any]:
    kind = item.name
    old, new = (formatting.value(x, name=kind) for x in (item.old, item.new))
    interval = formatting.MISSING
    if item.lower is not None and item.upper is not None:
        interval = f"{_signed(item.lower, toward='down')} to {_signed(item.upper, toward='up')}"
    alone = item.confidence is not None and item.confidence != level
    at = f"at {formatting.percent(item.confidence, toward='down')} confidence" if alone else ""
    return {
        "name": _name(run),
        "quantity": _cell(_title(run, kind), "decides" if decides else "", by=kind),
        "old": _cell(old, by=item.old),
        "new": _cell(new, by=item.new),
        "difference": _cell(formatting.MISSING if item.value is None else _signed(item.value), by=item.value),
        "interval": _cell(interval, at, by=item.lower),
        "sign": asdict(CHANGE[item.verdict]),
        "reason": formatting.sentence(item.reason) if item.value is None else "",
    }


def _title(run: Run, name: str) -> str:
    estimate = find(run.result, name)
    return name if estimate is None else labels.describe(estimate).title


def _signed(x: float, *, toward: str = "nearest") -> str:
    shown = formatting.unit(
        abs(x), toward=toward if x >= 0 else {"down": "up", "up": "down"}.get(toward, toward)
    )
    return f"+{shown}" if x > 0 else f"−{shown}" if x < 0 else shown  # noqa: RUF001 the true minus sign


def level(comparison: "AuditsComparison") -> float | None:
    """Return the confidence of the differences, or null where it is not the same for all."""
    stated = (item.confidence for change in comparison.changes for item in change.differences)
    found = {level for level in stated if level is not None}
    return _only(found)


def not_compared(comparison: "AuditsComparison") -> list[dict[str, Any]]:
    """Return the quantities without a difference, once for each reason."""
    found: dict[str, dict[str, None]] = {}
    for change in comparison.changes:
        for item in change.differences:
            if item.value is None and item.name not in DECIDES:
                found.setdefault(item.reason, {})[_title(change.run, item.name)] = None
    return [
        {"names": ", ".join(names), "reason": formatting.sentence(reason)} for reason, names in found.items()
    ]


def provenance_row(run: Run) -> dict[str, Any]:
    """Return where a result comes from."""
    facts = run.result.provenance
    versions = facts.get("versions")
    own = dig(versions, "privacy-auditor")
    return {
        "name": _name(run),
        "file": run.source or formatting.MISSING,
        "source": str(facts.get("source") or formatting.MISSING),
        "created": str(facts.get("created") or formatting.MISSING),
        "sha256": run.sha256 or formatting.MISSING,
        "version": str(own or ""),
        "records": f"{formatting.count(run.result.data.get('n_member'))} and {formatting.count(run.result.data.get('n_nonmember'))}",
    }
