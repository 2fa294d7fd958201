"""Who is at risk, as strings: the slices by group and by loss percentile."""

from typing import Any

from auditor.persons import MIXED
from auditor.report import formatting, rows
from auditor.report.drawn import is_finite
from auditor.report.lookup import CERTIFIED, amount
from auditor.report.units import Units, units
from auditor.result import AuditResult
from auditor.slices import Slice, SliceKind
from auditor.values import Estimate

__all__ = ["risk_section"]

_MOST = 60  # rows of a table that a reader looks through


def risk_section(result: AuditResult) -> dict[str, Any] | None:
    """Return the two tables with what their intervals mean; null without slices."""
    if not result.slices:
        return None
    note = _note(result.slices, str(result.data.get("members", "sample")))
    if max(item.compared for item in result.slices) == 0:
        return {"note": note, "tables": [], "bands": [], "overall": ""}
    words = units(result.data)
    tables = [
        (heading, [_group(item, words) for item in result.slices if item.kind is kind][:_MOST])
        for heading, kind in (("By class", SliceKind.CLASS), ("By group", SliceKind.GROUP))
    ]
    bands = [item for item in result.slices if item.kind is SliceKind.PERCENTILE]
    return {
        "note": note,
        "tables": [{"heading": heading, "rows": shown} for heading, shown in tables if shown],
        "bands": [_band(item, words) for item in bands[:_MOST]],
        "overall": _overall(bands),
    }


def _note(found: tuple[Slice, ...], members: str) -> str:
    compared = max(item.compared for item in found)
    if compared == 0:
        return "No slice has enough records for an interval."
    level = formatting.percent(found[0].confidence, toward="down")
    told = "so the slice that stands out most may be quoted."
    if members != "sample":
        told += " Members count as draws here: chance in who was drawn is allowed for."
    if any(is_finite(estimate) for item in found for estimate in item.estimates):  # an older result
        told = (
            "but of these training records only: the slice that stands out most may do so by chance alone, without any"
            " leakage."
        )
    return (
        f"All {formatting.count(compared)} slices with an interval are compared at once: each kind of interval holds for"
        f" every slice together at {level} confidence, {told}{_mixed(found)}"
    )


def _mixed(found: tuple[Slice, ...]) -> str:
    if any(item.label == MIXED for item in found):
        return f" {MIXED} stands for persons whose records are in several groups."
    return ""


def _group(item: Slice, words: Units) -> dict[str, str]:
    bound = _find(item, CERTIFIED)
    delta = formatting.given(bound.delta) if bound else formatting.MISSING
    return {
        **_sizes(item, words),
        "bound": rows.value(bound),
        "limit": rows.ceiling_words(bound) if bound and bound.value is not None else "",
        "delta": "" if delta == formatting.MISSING else f"delta {delta}",
        "auc": rows.value(_find(item, "auc")),
        "auc_interval": _interval(_find(item, "auc")),
        "advantage": rows.value(_find(item, "advantage")),
        "advantage_interval": _interval(_find(item, "advantage")),
    }


def _band(item: Slice, words: Units) -> dict[str, str]:
    share = _find(item, "member_share")
    lift = amount(share.details, "lift") if share else None
    times = "" if lift is None else f"{lift:.2f} times the overall share"
    low, high = (share.lower, share.upper) if share else (None, None)
    interval = formatting.MISSING
    if low is not None and high is not None:
        interval = f"{formatting.percent(low, toward='down')} to {formatting.percent(high, toward='up')}"
    return {
        **_sizes(item, words),
        "share": formatting.MISSING if share is None else formatting.percent(share.value),
        "interval": interval,
        "lift": times,
    }


def _many(number: int, one: str, many: str) -> str:
    return f"{formatting.count(number)} {one if number == 1 else many}"


def _sizes(item: Slice, words: Units) -> dict[str, str]:
    return {
        "label": formatting.tidy(item.label),
        "sizes": f"{_many(item.n_member, words.member, words.members)}, {_many(item.n_nonmember, 'other', 'others')}",
        "reason": formatting.sentence(item.reason) if item.reason else "",
    }


def _overall(bands: list[Slice]) -> str:
    members, others = sum(item.n_member for item in bands), sum(item.n_nonmember for item in bands)
    return formatting.percent(members / (members + others)) if members + others else formatting.MISSING


def _find(item: Slice, name: str) -> Estimate | None:
    return next((estimate for estimate in item.estimates if estimate.name == name), None)


def _interval(estimate: Estimate | None) -> str:
    return formatting.interval(estimate) if estimate is not None and estimate.value is not None else ""
