"""What was audited and where the result comes from, as strings: the data, what was declared, and the provenance."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from auditor.report import formatting
from auditor.report.lookup import dig
from auditor.report.units import PERSONS, units
from auditor.result import AuditResult

__all__ = ["data_facts", "provenance_facts", "settings_sentence", "size", "versions"]

_GROUPS = ("members", "non-members")


def size(data: Mapping[str, Any]) -> str:
    """Return how many records, or persons, of each group were scored."""
    members, others = formatting.count(data.get("n_member")), formatting.count(data.get("n_nonmember"))
    records = _listed(data.get("records"))
    if units(data) is PERSONS and len(records) == len(_GROUPS):
        inside, outside = map(formatting.count, records)
        return f"{members} persons in the training data ({inside} records) and {others} others ({outside} records) scored"
    return f"{members} training records and {others} others scored"


def data_facts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was audited and what was declared, as names and texts."""
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
        *_comparable(data),
    ]


def _comparable(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What makes audits comparable: the strategy, and how good the model is."""
    found = []
    if data.get("strategy") is not None:
        found.append(("Strategy", str(data["strategy"])))
    value, name = dig(data.get("utility"), "value"), dig(data.get("utility"), "name")
    if value is not None:
        found.append(("Utility, as given", f"{formatting.given(value)} ({name or 'not named'})"))
    return found


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


def _whole(x: Any) -> Any:
    return round(x) if isinstance(x, float) and math.isfinite(x) else x


def provenance_facts(result: AuditResult) -> list[dict[str, str]]:
    """Return where a result comes from, each with whether it is code."""
    provenance = result.provenance
    found = [
        _fact(title, provenance[key], code=key in _CODE)
        for key, title in _TITLES.items()
        if provenance.get(key) is not None
    ]
    settings = settings_sentence(result)
    found += [_fact("Configuration", settings, code=True)] if settings else []
    more = [
        _fact(str(key).replace("_", " ").capitalize(), item, code=False)
        for key, item in provenance.items()
        if str(key) not in {*_TITLES, "command", "config", "versions"} and isinstance(item, str | int | float)
    ]
    command = provenance.get("command")
    text = " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command or "")
    shown = [_fact("Command", text, code=True)] if text else []
    return [*found, *more, *shown, _fact("Schema version of the result", result.schema_version, code=False)]


_TITLES = {
    "created": "Created",
    "source": "Source",
    "input_sha256": "Input SHA-256",
    "seed": "Seed",
}
_CODE = ("input_sha256",)


def _fact(name: str, text: object, *, code: bool) -> dict[str, str]:
    return {"name": name, "text": str(text), "code": "code" if code else ""}


def settings_sentence(result: AuditResult) -> str:
    """Return what a file set for the audit, as names and values; nothing where none did."""
    config = result.provenance.get("config")
    if not isinstance(config, Mapping):
        return "" if config is None else str(config)
    settings = ", ".join(f"{key} = {_spelled(item)}" for key, item in _pairs(config.get("settings")))
    return f"{config.get('table') or 'settings'} of {config.get('file') or 'a file'}: {settings or 'nothing set'}"


def _spelled(x: object) -> str:
    """A setting as its file spells it, or nearly so."""
    try:
        return json.dumps(x, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(x)


def versions(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the versions of everything that took part."""
    return [(str(key), str(item)) for key, item in _pairs(provenance.get("versions"))]


def _pairs(x: object) -> Iterable[tuple[object, object]]:
    return x.items() if isinstance(x, Mapping) else ()


def _listed(x: object) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, list | tuple) else ()


def _known(words: Mapping[str, str], key: object) -> str:
    return words.get(str(key), str(key) if key is not None else "unknown")
