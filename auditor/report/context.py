"""A result as the plain dictionary that the page is filled from: formatting only, nothing is recomputed."""

from dataclasses import asdict
from typing import Any

from auditor.compare import failed_validity
from auditor.report import formatting, labels, origin, rows, trust
from auditor.report.beside import claim_section
from auditor.report.exposed import exposed_section
from auditor.report.findings import finding
from auditor.report.fit import fit_sentences
from auditor.report.known import known
from auditor.report.lookup import CERTIFIED, MIXTURE, ONE_RUN, STAR, dig, find
from auditor.report.methods import methods_section
from auditor.report.pvalues import grid_tables
from auditor.report.recognition import recognition
from auditor.report.risk import risk_section
from auditor.report.units import units
from auditor.report.wording import headline, verdict_sentence
from auditor.result import AuditResult
from auditor.values import Estimate, Status, Subject

__all__ = ["context"]


def context(result: AuditResult) -> dict[str, Any]:
    """Return everything a page shows about one audit, as strings, lists and dictionaries."""
    result = known(result)
    found = finding(result)
    shown = [trust.check(item, result.data) for item in result.checks]
    loud = {str(status) for status in (Status.WARN, Status.FAIL)}
    return {
        "model": _model(result),
        "words": asdict(units(result.data)),
        "verdict": _verdict(result),
        "finding": asdict(found.sign),
        "meaning": found.sentence,
        "invalid": _INVALID if failed_validity(result.checks) else "",
        "odds": recognition(result),
        "headline": _headline(result),
        "tiles": _tiles(result),
        "attention": [
            item for item, check in zip(shown, result.checks, strict=True) if str(check.status) in loud
        ],
        "groups": _groups(result),
        "methods": methods_section(result),
        "claim": claim_section(result),
        "risk": risk_section(result),
        "exposed": exposed_section(result),
        "fit": fit_sentences(find(result, STAR), mixture=find(result, MIXTURE)),
        "grids": grid_tables(result),
        "read_first": trust.read_first(result.checks),
        "read_first_tone": "bad" if any(item.status is Status.FAIL for item in result.checks) else "caution",
        "checks": shown,
        "size": origin.size(result.data),
        "data": origin.data_facts(result.data),
        "provenance": origin.provenance_facts(result),
        "versions": origin.versions(result.provenance),
        "row": _summary(result),
    }


_INVALID = "A validity check failed: what follows shows how the two groups differ, and not what the model gives away."


def _model(result: AuditResult) -> str:
    name = result.data.get("model")
    return "Unnamed model" if name is None or not str(name).strip() else str(name)


def _verdict(result: AuditResult) -> dict[str, str]:
    return asdict(labels.VERDICT[result.verdict]) | {"sentence": verdict_sentence(result)}


def _headline(result: AuditResult) -> dict[str, str]:
    lead = headline(result)
    if lead.estimate is None:
        return {
            "label": "Headline",
            "value": formatting.MISSING,
            "note": "",
            "term": "",
            "about": "",
            "sentence": lead.sentence,
        }
    return _tile(result, lead.estimate) | {"sentence": lead.sentence}


def _tile(result: AuditResult, estimate: Estimate) -> dict[str, str]:
    """The tile of an estimate, which certifies nothing about leakage where a validity check failed."""
    invalid = {"note": "a validity check failed"} if failed_validity(result.checks) else {}
    return rows.tile(estimate) | invalid


# --- The numbers ----------------------------------------------------------------------------------


def _tiles(result: AuditResult) -> list[dict[str, str]]:
    lead = headline(result).estimate
    names = (CERTIFIED, ONE_RUN, "tpr_at_fpr.0.01", "auc")
    found = [item for name in names if (item := find(result, name)) is not None and item is not lead]
    return [_tile(result, item) for item in found if item.name != ONE_RUN or item.value is not None]


def _groups(result: AuditResult) -> list[dict[str, Any]]:
    notes = {
        Subject.MODEL: "How far this model's losses on its training records differ from its losses on others.",
        Subject.MECHANISM: "What the way of training gives away about any one record: what a claimed epsilon promises.",
    }
    groups = []
    for subject, note in notes.items():
        shown = [rows.row(item) for item in result.estimates if item.subject is subject]
        if shown:
            groups.append({"heading": f"About {labels.ABOUT[subject]}", "note": note, "rows": shown})
    return groups


def _summary(result: AuditResult) -> dict[str, str]:
    star = find(result, STAR)
    rejected = dig(star.details, "fit", "rejected") if star else None
    bound = find(result, CERTIFIED)
    return {
        "terms": "a validity check failed" if failed_validity(result.checks) else _terms(bound),
        "bound": rows.value(bound),
        "ceiling": rows.ceiling_words(bound) if bound else "",
        "star": rows.value(star),
        "star_note": "fit rejected" if rejected else "",
        "auc": rows.value(find(result, "auc")),
        "tpr": rows.value(find(result, "tpr_at_fpr.0.01")),
    }


def _terms(bound: Estimate | None) -> str:
    """At which confidence and delta the numbers of a comparison are stated."""
    if bound is None or bound.delta is None or bound.confidence is None:
        return ""
    return f"{formatting.percent(bound.confidence, toward='down')}, delta {formatting.number(bound.delta)}"
