"""The audit as test results that build servers read: JUnit XML, as Jenkins, GitLab and GitHub's actions take it.

One suite holds a test for the claim, one for each gate and one for each check. A failure is a refuted claim, a gate
that is true or a failed check; an error is what was asked and could not be decided, which never counts as passed;
skipped is what was not asked or could not be looked at. A warning passes, with its words as the test's output.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from auditor._version import __version__
from auditor.checks.registry import CHECKS
from auditor.core.numbers import BRIEF, clean
from auditor.core.values import Status, Verdict
from auditor.report.view import CheckLine, View, gates_first, view_of
from auditor.results.document import AuditDocument
from auditor.verdicts.gates import ExitCode, GateOutcome, exit_code

_brief = partial(clean, most=BRIEF)

# --- What each kind of finding means and what to do about it: the rules of a SARIF log ---


_CLAIM_REFUTED = "claim/refuted"
_CLAIM_UNDECIDED = "claim/undecided"
_GATE_TRUE = "gate/failed"
_GATE_UNDECIDED = "gate/not-evaluable"
_CHECK = "check/"
_LONGEST_RULE_NAME = 100


@dataclass(frozen=True)
class _Rule:
    name: str
    short: str
    help: str
    level: str


_RULES = {
    _CLAIM_REFUTED: _Rule(
        "ClaimRefuted",
        "The claimed privacy of the training algorithm is refuted.",
        "A certified lower bound on the training algorithm's epsilon exceeds the claim, at the stated confidence and at the"
        " same delta and adjacency. Look for a fault in the training code or in the accounting, and correct the claim.",
        "error",
    ),
    _CLAIM_UNDECIDED: _Rule(
        "ClaimUndecided",
        "The claimed privacy of the training algorithm could not be judged.",
        "Membership was not random, a validity check failed, or the audit had too little power. The claim is neither refuted"
        " nor supported. Audit a model whose training records were drawn at random and declare that split, or score more"
        " records.",
        "warning",
    ),
    _GATE_TRUE: _Rule(
        "GateFailed",
        "A gate of the pipeline is true, so the pipeline stops.",
        "The condition that was to stop the pipeline holds for this audit. Read the report, and either change the model or"
        " agree on another gate.",
        "error",
    ),
    _GATE_UNDECIDED: _Rule(
        "GateNotEvaluable",
        "A gate of the pipeline asks for what this audit cannot answer, so it does not pass.",
        "The number is missing, the verdict is undecided, a validity check failed, or the audit could not have shown what the"
        " gate asks for. Mend the audit, score more records, or ask for a number that it has.",
        "error",
    ),
}


def _check_rule(name: str) -> str:
    """Return the id of the rule of a check.

    >>> _check_rule("goodness_of_fit")
    'check/goodness-of-fit'
    """
    return _CHECK + (clean(name, most=_LONGEST_RULE_NAME).replace("_", "-") or "unnamed")


def _message(words: str) -> str:
    r"""Return words as the text of a message, in which a link and a placeholder are text too (3.11.5 and 3.11.6).

    >>> _message("[x](http://y) {0}")
    '\\[x\\](http://y) {{0}}'
    """
    text = re.sub(r"\{(\d+)\}", r"{{\1}}", _brief(words))
    return re.sub(r"[\\\[\]]", r"\\\g<0>", text) if "[" in text else text


def _rules(used: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rules of these ids, in their order."""
    return [_descriptor(name, _RULES.get(name) or _rule_of_check(name)) for name in used]


def _rule_of_check(rule: str) -> _Rule:
    name = rule.removeprefix(_CHECK)
    spec = CHECKS.get(name.replace("-", "_"))
    question = "Does this audit deserve trust?" if spec is None else spec.title
    return _Rule(
        "Check" + "".join(word.capitalize() for word in name.split("-") if word.isalnum()),
        f"Whether the audit can be trusted, check {name}: {question}",
        "A failed check can leave the numbers without their meaning; a warning says what to keep in mind; an unknown outcome"
        " says what was not looked at. The message says what was found and what to do.",
        "warning",
    )


def _descriptor(rule: str, words: _Rule) -> dict[str, Any]:
    return {
        "id": rule,
        "name": words.name,
        "shortDescription": {"text": _message(words.short)},
        "fullDescription": {"text": _message(f"{words.short} {words.help}")},
        "help": {"text": words.help, "markdown": words.help},
        "defaultConfiguration": {"level": words.level},
        "properties": {"tags": ["privacy", "membership-inference"], "problem.severity": words.level},
    }


# --- The audit's findings as SARIF 2.1.0, which code hosts show beside the change that caused them ---
#
# A finding is what somebody has to look at: a refuted claim, a claim that could not be judged, a gate that stopped or
# could not be evaluated, a check that failed, warns or could not be made. What passed is no finding. A finding keeps its
# fingerprint from run to run, whatever its numbers, so that hosts follow it instead of listing it anew.


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


def sarif(result: AuditDocument, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return an audit's findings as SARIF 2.1.0.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown = view_of(result)
    found = list(_findings(result, shown, gates))
    used = list(dict.fromkeys(item.rule for item in found))
    files = _files(result)
    run = {
        "tool": {"driver": _driver(used)},
        "invocations": [_invocation(result, gates)],
        "artifacts": [{"location": {"uri": uri}} for uri in files],
        "results": [_result(item, used, files, shown.model) for item in found],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": str(result.verdict or "none"), "meaning": _brief(shown.finding.sentence)},
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _findings(result: AuditDocument, shown: View, gates: Sequence[GateOutcome]) -> Iterator[_Finding]:
    if result.verdict is Verdict.REFUTED:
        yield _Finding(_CLAIM_REFUTED, "error", shown.verdict.sentence, "claim")
    elif result.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_EVALUABLE):
        yield _Finding(_CLAIM_UNDECIDED, "warning", shown.verdict.sentence, "claim")
    for item in gates:
        if item.code is not ExitCode.DONE:
            rule = _GATE_TRUE if item.code is ExitCode.FAILED else _GATE_UNDECIDED
            yield _Finding(rule, "error", item.sentence, item.gate.text)
    for check in shown.checks:
        if check.status in _LEVELS:
            words = f"{check.message} {check.advice}".rstrip()
            yield _Finding(_check_rule(check.name), _LEVELS[check.status], words, check.name)


def _driver(used: Sequence[str]) -> dict[str, Any]:
    return {
        "name": "auditor",
        "fullName": "auditor: black-box privacy audits of trained models",
        "version": __version__,
        "rules": _rules(used),
    }


def _invocation(result: AuditDocument, gates: Sequence[GateOutcome]) -> dict[str, Any]:
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
        "message": {"text": _message(item.words)},
        "partialFingerprints": {"auditorFinding/v1": mark, "primaryLocationLineHash": f"{mark[:16]}:1"},
    }
    place: dict[str, Any] = {"logicalLocations": [{"name": _brief(model), "kind": "resource"}]}
    if files:  # a whole file is meant; hosts ask for a line all the same
        physical = {"artifactLocation": {"uri": files[0], "index": 0}, "region": {"startLine": 1}}
        place["physicalLocation"] = physical
    return found | {"locations": [place]}


def _files(result: AuditDocument) -> list[str]:
    """The audited files, members first, as references relative to wherever the log is read; none where none is known."""
    source = result.provenance.get("source") or ""
    if not source.strip():
        return []
    pair = _PAIR.fullmatch(source)
    return list(dict.fromkeys(_reference(name) for name in (pair.groups() if pair else (source,))))


def _reference(name: str) -> str:
    """A relative URI reference. Of a path from a root, from a drive or through ``..`` only the name is told."""
    parts = [part for part in re.split(r"[/\\]", clean(name, most=_LONGEST_NAME)) if part not in ("", ".")]
    outside = re.match(r"[/\\]|[A-Za-z]:|~", name) or ".." in parts
    kept = [part for part in parts if part != ".."]
    kept = kept[-1:] if outside else kept
    return "/".join(quote(part, safe="") for part in kept) or "losses"


_FAILURE, _ERROR, _SKIPPED = "failure", "error", "skipped"
_TIME = (
    "0"  # seconds: a verdict takes no time of its own, and some readers show nonsense where this is left out
)
_OF_VERDICT = {
    None: _SKIPPED,
    Verdict.REFUTED: _FAILURE,
    Verdict.INCONCLUSIVE: _ERROR,
    Verdict.NOT_EVALUABLE: _ERROR,
}
_OF_GATE = {ExitCode.FAILED: _FAILURE, ExitCode.NOT_EVALUABLE: _ERROR}
_OF_CHECK = {Status.FAIL: _FAILURE, Status.UNKNOWN: _SKIPPED}


@dataclass(frozen=True)
class _Case:
    group: str
    name: str
    outcome: str | None
    kind: str
    words: str
    output: str = ""


def junit(result: AuditDocument, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return an audit as JUnit XML.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown = view_of(result)
    cases = list(_cases(result, shown, gates))
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome == _FAILURE for case in cases)),
        "errors": str(sum(case.outcome == _ERROR for case in cases)),
        "time": _TIME,
    }
    suites = ET.Element("testsuites", {"name": "auditor", **counts})
    skipped = str(sum(case.outcome == _SKIPPED for case in cases))
    named = {"name": _brief(f"Privacy audit: {shown.model}"), **counts, "skipped": skipped}
    suite = ET.SubElement(suites, "testsuite", named | _timestamp(result))
    properties = ET.SubElement(suite, "properties")
    for title, value in shown.facts:
        ET.SubElement(properties, "property", {"name": title, "value": _brief(value)})
    for case in cases:
        _add(suite, case)
    ET.SubElement(suite, "system-out").text = _first(shown, gates)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="unicode", short_empty_elements=True)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _cases(result: AuditDocument, shown: View, gates: Sequence[GateOutcome]) -> Iterator[_Case]:
    outcome = _OF_VERDICT.get(result.verdict)
    kind = str(result.verdict or "no claim")
    yield _Case(
        "claim", "claim", outcome, kind, shown.verdict.sentence, "" if outcome else shown.verdict.sentence
    )
    for item in gates:
        stopped = _OF_GATE.get(item.code)
        output = "" if stopped else item.sentence
        yield _Case("gates", item.gate.text, stopped, item.code.name.lower(), item.sentence, output)
    yield from map(_of_check, shown.checks)


def _of_check(item: CheckLine) -> _Case:
    words = f"{item.message} {item.advice}".rstrip()
    output = f"{item.sign.word}: {words}" if item.status is Status.WARN else ""
    return _Case("checks", item.name, _OF_CHECK.get(item.status), str(item.status), words, output)


def _add(suite: ET.Element, case: _Case) -> None:
    place = {"classname": f"auditor.{case.group}", "name": _brief(case.name) or "unnamed", "time": _TIME}
    element = ET.SubElement(suite, "testcase", place)
    if case.outcome is not None:
        outcome = ET.SubElement(element, case.outcome, {"message": _line(case.words), "type": case.kind})
        outcome.text = _brief(case.words)
    if case.output:
        ET.SubElement(element, "system-out").text = _brief(case.output)


def _line(words: str) -> str:
    return " ".join(_brief(words).split())


def _first(shown: View, gates: Sequence[GateOutcome]) -> str:
    """What stopped the pipeline, what was found, and the main numbers, for those who open the suite."""
    stopped = gates_first(gates)
    rows = [
        _brief(f"{item.title}: {item.value} ({item.interval}; about {item.about}; delta {item.delta})")
        for item in shown.numbers
    ]
    opening = [_brief(f"{item.sign.word}. {item.sentence}") for item in shown.opening]
    return "\n".join([*([stopped] if stopped else []), *opening, *rows])


def _timestamp(result: AuditDocument) -> dict[str, str]:
    """When the audit was made, in the form without a zone that the schema asks for (in UTC), if that is known."""
    try:
        made = datetime.fromisoformat(str(result.provenance.get("created")))
        moment = made.astimezone(UTC) if made.tzinfo else made
        return {"timestamp": moment.replace(tzinfo=None, microsecond=0).isoformat()}
    except (AttributeError, ValueError, OverflowError):
        return {}
