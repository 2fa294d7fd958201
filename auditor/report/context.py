"""A result as the plain dictionary that the page is filled from: formatting only, nothing is recomputed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from auditor.compare import failed_validity
from auditor.report import formatting, labels, rows
from auditor.report.beside import claim_section
from auditor.report.fit import fit_sentences
from auditor.report.known import known
from auditor.report.lookup import CERTIFIED, MIXTURE, ONE_RUN, STAR, dig, find
from auditor.report.risk import risk_section
from auditor.report.wording import headline, meaning, verdict_sentence
from auditor.result import AuditResult
from auditor.values import Check, Estimate, Status, Subject

__all__ = ["context"]


def context(result: AuditResult) -> dict[str, Any]:
    """Return everything a page shows about one audit, as strings, lists and dictionaries."""
    result = known(result)
    return {
        "model": _model(result),
        "verdict": _verdict(result),
        "meaning": meaning(result),
        "headline": _headline(result),
        "tiles": _tiles(result),
        "attention": [
            _check(item, result.data) for item in result.checks if item.status in {Status.WARN, Status.FAIL}
        ],
        "groups": _groups(result),
        "behind": [rows.behind(item) for item in result.estimates],
        "claim": claim_section(result),
        "risk": risk_section(result),
        "fit": fit_sentences(find(result, STAR), mixture=find(result, MIXTURE)),
        "read_first": _read_first(result.checks),
        "read_first_tone": "bad" if any(item.status is Status.FAIL for item in result.checks) else "caution",
        "checks": [_check(item, result.data) for item in result.checks],
        "size": _size(result.data),
        "data": _data(result.data),
        "provenance": _provenance(result.provenance),
        "versions": [(str(key), str(item)) for key, item in _pairs(result.provenance.get("versions"))],
        "row": _summary(result),
    }


def _model(result: AuditResult) -> str:
    name = result.data.get("model")
    return "Unnamed model" if name is None or not str(name).strip() else str(name)


def _verdict(result: AuditResult) -> dict[str, str]:
    return asdict(labels.VERDICT[result.verdict]) | {"sentence": verdict_sentence(result)}


def _headline(result: AuditResult) -> dict[str, str]:
    lead = headline(result)
    if lead.estimate is None:
        return {"label": "Headline", "value": formatting.MISSING, "note": "", "sentence": lead.sentence}
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
        "terms": _terms(bound),
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


# --- Checks, data, provenance ---------------------------------------------------------------------


def _check(check: Check, data: Mapping[str, Any]) -> dict[str, Any]:
    advice = dig(check.details, "advice") or labels.ADVICE.get((check.name, check.status), "")
    if check.name == "shift" and str(data.get("split")) in {"random", "bernoulli"}:
        found = check.status is Status.FAIL
        declared = labels.DECLARED_AND_CONTRADICTED if found else labels.DECLARED_RANDOM
        advice = dig(check.details, "advice") or declared
    return {
        "name": check.name,
        "title": _title(check),
        "status": asdict(labels.STATUS[check.status]),
        "message": formatting.sentence(check.message),
        "advice": "" if check.status is Status.OK else str(advice),
    }


def _title(check: Check) -> str:
    return check.name.replace("_", " ").capitalize()


def _read_first(checks: Sequence[Check]) -> str:
    """The checks to read before relying on the audit, failures first, or nothing."""
    kinds = ((Status.FAIL, "failed check"), (Status.WARN, "warning"))
    parts = []
    for status, kind in kinds:
        names = [_title(check).lower() for check in checks if check.status is status]
        plural = "" if len(names) == 1 else "s"
        parts += [f"{len(names)} {kind}{plural}: {', '.join(names)}"] if names else []
    return f"Before you rely on this, read {'; '.join(parts)}." if parts else ""


def _size(data: Mapping[str, Any]) -> str:
    members, others = formatting.count(data.get("n_member")), formatting.count(data.get("n_nonmember"))
    records = _listed(data.get("records"))
    if str(data.get("unit")).startswith("person") and len(records) == len(_GROUPS):
        inside, outside = map(formatting.count, records)
        return f"{members} persons in the training data ({inside} records) and {others} others ({outside} records) scored"
    return f"{members} training records and {others} others scored"


def _data(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    members = {
        "census": "every training record was scored",
        "sample": "a random sample of the training records",
        "subset": "drawn at random from the training set, of which the bounds speak",
    }
    split = {
        "unknown": "unknown, so nothing can be said about the training algorithm",
        "random": "declared uniformly random"
        + (", stratified by group" if data.get("stratified") is True else ""),
        "bernoulli": "declared independent coins",
    }
    saturated = _listed(data.get("saturated")) or (None, None)
    history = _listed(data.get("history"))
    return [
        *_units(data),
        ("Members", f"{formatting.count(data.get('n_member'))}; {_known(members, data.get('members'))}"),
        ("Non-members", formatting.count(data.get("n_nonmember"))),
        ("Training set size", formatting.count(data.get("training_size"))),
        ("How membership was decided", _known(split, data.get("split"))),
        ("Delta", formatting.given(data.get("delta"))),
        ("Confidence of intervals", formatting.percent(data.get("confidence"))),
        ("Scale of the losses", str(data.get("scale") or "unknown")),
        (
            "Saturated losses",
            " and ".join(formatting.count(item) for item in saturated) + " (members, non-members)",
        ),
        ("What was done to the losses", "; ".join(map(str, history)) or "nothing"),
    ]


def _units(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was counted, where records name their person."""
    records, persons = _listed(data.get("records")), _listed(data.get("persons"))
    effective = _listed(data.get("effective"))
    if len(records) != len(_GROUPS) or len(persons) != len(_GROUPS):
        return []
    words = [
        f"{formatting.count(n)} records of {formatting.count(m)} {who}"
        for n, m, who in zip(records, persons, _GROUPS, strict=True)
    ]
    shown = [
        ("Counted as one unit", str(data.get("unit") or "record")),
        ("Records and persons", "; ".join(words)),
    ]
    if len(effective) == len(_GROUPS):
        worth = " and ".join(formatting.count(_whole(x)) for x in effective)
        shown.append(("Independent records they are worth", f"about {worth} (members, non-members)"))
    return shown


_GROUPS = ("members", "non-members")


def _whole(x: Any) -> Any:
    return round(x) if isinstance(x, float) and math.isfinite(x) else x


def _pairs(x: object) -> Iterable[tuple[object, object]]:
    return x.items() if isinstance(x, Mapping) else ()


def _listed(x: object) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, list | tuple) else ()


def _known(words: Mapping[str, str], key: object) -> str:
    return words.get(str(key), str(key) if key is not None else "unknown")


def _provenance(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    titles = {"created": "Created", "source": "Source", "input_sha256": "Input SHA-256", "seed": "Seed"}
    known = [
        (title, str(provenance[key])) for key, title in titles.items() if provenance.get(key) is not None
    ]
    command = provenance.get("command")
    text = " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command or "")
    return [*known, ("Command", text)] if text else known
