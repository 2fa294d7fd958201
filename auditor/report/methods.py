"""How each number was made: its method, its equation and where that comes from, and the papers as a numbered list."""

from collections.abc import Sequence
from typing import Any

from auditor.report import rows
from auditor.report.equations import equation
from auditor.report.references import Reference, cited
from auditor.result import AuditResult
from auditor.values import Estimate, Status

__all__ = ["methods_section"]


def methods_section(result: AuditResult) -> dict[str, Any]:
    """Return what lies behind each estimate, with the numbers of its references, and the references."""
    items = [_behind(item) for item in result.estimates]
    others = cited([*_claims(result), *_checks(result), *_wording(result)])
    used = list(dict.fromkeys([*(paper for _, papers in items for paper in papers), *others]))
    places = {paper.key: str(place) for place, paper in enumerate(used, start=1)}
    return {
        "behind": _together([item | {"cites": _cites(papers, places)} for item, papers in items]),
        "references": [{"key": paper.key, "number": places[paper.key], "full": paper.full} for paper in used],
        "also": _cites(others, places),
    }


def _behind(estimate: Estimate) -> tuple[dict[str, Any], tuple[Reference, ...]]:
    """What lies behind an estimate, and the papers that it rests on."""
    formula, source = equation(estimate)
    shown = rows.behind(estimate)
    names = [{"name": shown.pop("name"), "title": shown.pop("title")}]
    return shown | {"names": names, "equation": formula, "source": source}, cited([estimate.method, source])


def _cites(papers: Sequence[Reference], places: dict[str, str]) -> list[dict[str, str]]:
    found = [{"key": paper.key, "number": places[paper.key]} for paper in papers]
    return sorted(found, key=lambda item: int(item["number"]))


def _together(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, with estimates that were made alike under one heading."""
    found: list[dict[str, Any]] = []
    for item in items:
        alike = [other for other in found if {**other, "names": None} == {**item, "names": None}]
        if alike:
            alike[0]["names"] += item["names"]
        else:
            found.append(item)
    return found


def _claims(result: AuditResult) -> list[str]:
    return [f"{item.method} {item.note}" for item in result.claims]


def _checks(result: AuditResult) -> list[str]:
    """The sources of checks that looked at more than the losses."""
    looked = {item.name for item in result.checks if item.status is not Status.UNKNOWN}
    return ["Lopez-Paz and Oquab 2017"] if "shift" in looked else []


def _wording(result: AuditResult) -> list[str]:
    told = any(item.metric == "epsilon" and item.value is not None for item in result.claims)
    return ["Nanayakkara et al. 2023"] if told else []
