"""The audit's findings as SARIF 2.1.0, which code hosts show beside the change that caused them.

A finding is what somebody has to look at: a refuted claim, a claim that could not be judged, a gate that stopped or
could not be evaluated, a check that failed, warns or could not be made. What passed is no finding. A finding keeps its
fingerprint from run to run, whatever its numbers, so that hosts follow it instead of listing it anew.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from auditor._version import __version__
from auditor.gates import ExitCode, GateOutcome, exit_code
from auditor.report.sarif_rules import (
    CLAIM_REFUTED,
    CLAIM_UNDECIDED,
    GATE_TRUE,
    GATE_UNDECIDED,
    check_rule,
    message,
    rules,
)
from auditor.report.summary import Summary, summary, told
from auditor.result import AuditResult
from auditor.values import Status, Verdict

__all__ = ["render"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Status.FAIL: "error", Status.WARN: "warning", Status.UNKNOWN: "note"}
_LONGEST_NAME = 255  # characters of a file name
_PAIR = re.compile(
    r"(.+) \(members\), (.+) \(non-members\)", re.DOTALL
)  # how the two files of one audit are told
_ENDED = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "a gate failed or the claim is refuted",
    ExitCode.NOT_EVALUABLE: "a gate cannot be evaluated",
}


@dataclass(frozen=True)
class _Finding:
    rule: str
    level: str
    words: str
    key: str  # what it is about, without its numbers


def render(result: AuditResult, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return an audit's findings as SARIF 2.1.0.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown = summary(result)
    found = list(_findings(result, shown, gates))
    used = list(dict.fromkeys(item.rule for item in found))
    files = _files(result)
    run = {
        "tool": {"driver": _driver(used)},
        "invocations": [_invocation(result, gates)],
        "artifacts": [{"location": {"uri": uri}} for uri in files],
        "results": [_result(item, used, files, shown.model) for item in found],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": str(result.verdict or "none"), "meaning": told(shown.meaning)},
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _findings(result: AuditResult, shown: Summary, gates: Sequence[GateOutcome]) -> Iterator[_Finding]:
    if result.verdict is Verdict.REFUTED:
        yield _Finding(CLAIM_REFUTED, "error", shown.sentence, "claim")
    elif result.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_EVALUABLE):
        yield _Finding(CLAIM_UNDECIDED, "warning", shown.sentence, "claim")
    for item in gates:
        if item.code is not ExitCode.DONE:
            rule = GATE_TRUE if item.code is ExitCode.FAILED else GATE_UNDECIDED
            yield _Finding(rule, "error", item.sentence, item.gate.text)
    for check in shown.checks:
        if check.status in _LEVELS:
            words = f"{check.message} {check.advice}".rstrip()
            yield _Finding(check_rule(check.name), _LEVELS[check.status], words, check.name)


def _driver(used: Sequence[str]) -> dict[str, Any]:
    return {
        "name": "auditor",
        "fullName": "auditor: black-box privacy audits of trained models",
        "version": __version__,
        "rules": rules(used),
    }


def _invocation(result: AuditResult, gates: Sequence[GateOutcome]) -> dict[str, Any]:
    code = exit_code(result, gates)
    ended = {"executionSuccessful": True, "exitCode": int(code), "exitCodeDescription": _ENDED[code]}
    return ended | _end(result.provenance)


def _end(provenance: Mapping[str, Any]) -> dict[str, str]:
    """When the audit was made, in UTC, if that is known."""
    try:
        made = datetime.fromisoformat(str(provenance.get("created"))).astimezone(UTC)
        return {"endTimeUtc": made.strftime("%Y-%m-%dT%H:%M:%SZ")}
    except (AttributeError, ValueError, OverflowError):
        return {}


def _result(item: _Finding, used: Sequence[str], files: Sequence[str], model: str) -> dict[str, Any]:
    about = json.dumps([item.rule, item.key, model, *files])
    mark = hashlib.sha256(about.encode("utf-8", errors="backslashreplace")).hexdigest()[:32]
    found: dict[str, Any] = {
        "ruleId": item.rule,
        "ruleIndex": used.index(item.rule),
        "level": item.level,
        "message": {"text": message(item.words)},
        "partialFingerprints": {"auditorFinding/v1": mark, "primaryLocationLineHash": f"{mark[:16]}:1"},
    }
    place: dict[str, Any] = {"logicalLocations": [{"name": told(model), "kind": "resource"}]}
    if files:  # a whole file is meant; hosts ask for a line all the same
        physical = {"artifactLocation": {"uri": files[0], "index": 0}, "region": {"startLine": 1}}
        place["physicalLocation"] = physical
    return found | {"locations": [place]}


def _files(result: AuditResult) -> list[str]:
    """The audited files, members first, as references relative to wherever the log is read; none where none is known."""
    source = result.provenance.get("source") if hasattr(result.provenance, "get") else None
    if not isinstance(source, str) or not source.strip():
        return []
    pair = _PAIR.fullmatch(source)
    return list(dict.fromkeys(_reference(name) for name in (pair.groups() if pair else (source,))))


def _reference(name: str) -> str:
    """A relative URI reference. Of a path from a root, from a drive or through ``..`` only the name is told."""
    parts = [part for part in re.split(r"[/\\]", told(name, longest=_LONGEST_NAME)) if part not in ("", ".")]
    outside = re.match(r"[/\\]|[A-Za-z]:|~", name) or ".." in parts
    kept = [part for part in parts if part != ".."]
    kept = kept[-1:] if outside else kept
    return "/".join(quote(part, safe="") for part in kept) or "losses"
