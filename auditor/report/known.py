"""A result that others wrote, made safe to format: what is not of its kind counts as missing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from auditor.report.lookup import number
from auditor.result import AuditResult, TopRecord
from auditor.values import Check, Claim, Comparison, Estimate

if TYPE_CHECKING:
    from auditor.slices import Slice

__all__ = ["known"]

_LARGEST = 1e15  # of a count


def known(result: AuditResult) -> AuditResult:
    """Return the result with null for every number that is none, and an empty mapping for all that should be one."""
    return replace(
        result,
        data=_mapping(result.data),
        estimates=tuple(map(_estimate, result.estimates)),
        claims=tuple(map(_claim, result.claims)),
        comparisons=tuple(map(_comparison, result.comparisons)),
        checks=tuple(map(_check, result.checks)),
        slices=tuple(_slice(item) for item in result.slices),
        provenance=_mapping(result.provenance),
        top_records=tuple(map(_top_record, result.top_records)),
    )


def _text(x: Any) -> str:
    return "" if x is None else str(x)


def _mapping(x: Any) -> Mapping[str, Any]:
    return x if isinstance(x, Mapping) else {}


def _estimate(item: Estimate) -> Estimate:
    names = ("value", "lower", "upper", "confidence", "delta")
    numbers: dict[str, Any] = {name: number(getattr(item, name)) for name in names}
    details = _mapping(item.details)
    if "reason" in details:
        details = {**details, "reason": _text(details["reason"])}
    assumptions = tuple(map(_text, item.assumptions))
    return replace(
        item,
        **numbers,
        name=_text(item.name),
        method=_text(item.method),
        assumptions=assumptions,
        details=details,
    )


def _slice(item: "Slice") -> "Slice":
    return replace(item, label=_text(item.label), estimates=tuple(map(_estimate, item.estimates)))


def _claim(item: Claim) -> Claim:
    return replace(
        item,
        metric=_text(item.metric),
        value=number(item.value),
        delta=number(item.delta),
        method=_text(item.method),
        note=_text(item.note),
        lower=number(item.lower),
        upper=number(item.upper),
        confidence=number(item.confidence),
    )


def _comparison(item: Comparison) -> Comparison:
    return replace(item, claim=_claim(item.claim), estimate=_text(item.estimate), reason=_text(item.reason))


def _check(item: Check) -> Check:
    return replace(item, name=_text(item.name), message=_text(item.message), details=_mapping(item.details))


def _top_record(item: TopRecord) -> TopRecord:
    texts = {
        name: None if (found := getattr(item, name)) is None else _text(found) for name in ("group", "person")
    }
    odds = number(item.odds)
    return replace(
        item,
        rank=_whole(item.rank) or 0,
        id=_text(item.id),
        odds=0.0 if odds is None else float(odds),
        shared=_whole(item.shared),
        **texts,
    )


def _whole(x: Any) -> int | None:
    found = number(x)
    return int(found) if found is not None and abs(found) < _LARGEST else None
