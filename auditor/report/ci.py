"""The audit for build servers: as test results (JUnit XML), and as findings beside the change that caused them (SARIF).

Both tell the claim, each gate and each check. What failed is a refuted claim, a gate that is true or a failed check;
what was asked and could not be decided never counts as passed; a warning passes in JUnit, with its words as the test's
output, and is a finding in SARIF. What passed is no finding.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from auditor._version import __version__
from auditor.checks.registry import CHECKS
from auditor.core.numbers import BRIEF, clean
from auditor.core.values import Status, Verdict
from auditor.report.view import View, gates_first, texts, view_of
from auditor.results.document import Document, made_at
from auditor.verdicts.gates import ExitCode, GateOutcome, exit_code


def _brief(text: str) -> str:
    """Foreign words on one line: a build server reads some lines as commands."""
    return " ".join(clean(text, most=BRIEF).split())


_TIME = "0"  # seconds: a verdict takes no time, and some readers show nonsense where this is left out


@dataclass(frozen=True)
class _Item:
    """What became of the claim, of a gate or of a check.

    Attributes:
        group: ``claim``, ``gates`` or ``checks``.
        name: What it is about, without its numbers.
        outcome: As JUnit has it: a failure, an error, skipped, or null where it passed.
        kind: The same in the words of the audit.
        words: What was found and what to do.
        rule: The rule of a SARIF log that it breaks, or null.
        level: Of that finding.
        output: What a passed test has to say.
    """

    group: str
    name: str
    outcome: str | None
    kind: str
    words: str
    rule: str | None = None
    level: str = "error"
    output: str = ""


_OF_VERDICT: dict[Verdict | None, tuple[str | None, str | None, str]] = {
    None: ("skipped", None, ""),
    Verdict.REFUTED: ("failure", "claim/refuted", "error"),
    Verdict.NOT_REFUTED: (None, None, ""),
    Verdict.INCONCLUSIVE: ("error", "claim/undecided", "warning"),
    Verdict.NOT_EVALUABLE: ("error", "claim/undecided", "warning"),
}
_OF_GATE = {
    ExitCode.FAILED: ("failure", "gate/failed"),
    ExitCode.NOT_EVALUABLE: ("error", "gate/not-evaluable"),
}
_OF_CHECK = {Status.FAIL: "failure", Status.UNKNOWN: "skipped"}
_LEVELS = {Status.FAIL: "error", Status.WARN: "warning", Status.UNKNOWN: "note"}


def _items(shown: View, gates: Sequence[GateOutcome]) -> Iterator[_Item]:
    verdict, words = shown.result.verdict, f"{shown.verdict.sign.word}. {shown.verdict.sentence}"
    outcome, rule, level = _OF_VERDICT[verdict]
    passed = "" if outcome else words
    yield _Item("claim", "claim", outcome, str(verdict or "no claim"), words, rule, level, passed)
    for item in gates:
        outcome, rule = _OF_GATE.get(item.code, (None, None))
        passed = "" if outcome else item.sentence
        kind = item.code.name.lower()
        yield _Item("gates", item.gate.text, outcome, kind, item.sentence, rule, output=passed)
    for check in shown.checks:
        level = _LEVELS.get(check.status, "")
        warned = f"{check.sign.word}: {check.words}" if check.status is Status.WARN else ""
        yield _Item(
            *("checks", check.name, _OF_CHECK.get(check.status), str(check.status), check.words),
            rule=_check_rule(check.name) if level else None,
            level=level,
            output=warned,
        )


# --- JUnit XML, as Jenkins, GitLab and GitHub's actions take it ---


def junit(result: Document, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return an audit as JUnit XML.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown, made = view_of(result), made_at(result.provenance)
    items = list(_items(shown, gates))
    failures, errors, skipped = (
        str(sum(item.outcome == kind for item in items)) for kind in ("failure", "error", "skipped")
    )
    counts = {"tests": str(len(items)), "failures": failures, "errors": errors, "time": _TIME}
    suites = ET.Element("testsuites", {"name": "auditor", **counts})
    named = {"name": _brief(shown.heading), **counts, "skipped": skipped}
    # The schema asks for a time without a zone.
    when = {"timestamp": made.replace(tzinfo=None, microsecond=0).isoformat()} if made else {}
    suite = ET.SubElement(suites, "testsuite", named | when)
    properties = ET.SubElement(suite, "properties")
    for title, value in shown.facts:
        ET.SubElement(properties, "property", {"name": title, "value": _brief(value)})
    for item in items:
        _add(suite, item)
    ET.SubElement(suite, "system-out").text = _first(shown, gates)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="unicode", short_empty_elements=True)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _add(suite: ET.Element, item: _Item) -> None:
    place = {"classname": f"auditor.{item.group}", "name": _brief(item.name) or "unnamed", "time": _TIME}
    element = ET.SubElement(suite, "testcase", place)
    if item.outcome is not None:
        line = _brief(item.words)
        outcome = ET.SubElement(element, item.outcome, {"message": line, "type": item.kind})
        outcome.text = line
    if item.output:
        ET.SubElement(element, "system-out").text = _brief(item.output)


def _first(shown: View, gates: Sequence[GateOutcome]) -> str:
    """What stopped the pipeline, what was found, and the main numbers, for those who open the suite."""
    stopped = gates_first(gates)
    opening = [_brief(f"{item.sign.word}. {item.sentence}") for item in shown.opening]
    rows = [_brief(row.line) for row in shown.numbers]
    return "\n".join([*([stopped] if stopped else []), *opening, *rows])


# --- SARIF 2.1.0 ---
#
# A finding keeps its fingerprint from run to run, whatever its numbers, so that hosts follow it instead of listing it
# anew.


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_CHECK = "check/"
_LONGEST_RULE_NAME = 100
_LONGEST_NAME = 255  # characters of a file name
# How the two files of one audit are told.
_PAIR = re.compile(r"(.+) \(members\), (.+) \(non-members\)", re.DOTALL)
_ENDED = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "a gate failed or the claim is refuted",
    ExitCode.NOT_EVALUABLE: "a gate cannot be evaluated",
}


def sarif(result: Document, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return an audit's findings as SARIF 2.1.0.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown, code, made = view_of(result), exit_code(result, gates), made_at(result.provenance)
    found = [(item.rule, item) for item in _items(shown, gates) if item.rule is not None]
    used = list(dict.fromkeys(rule for rule, _ in found))
    files = _files(result)
    ended = {"executionSuccessful": True, "exitCode": int(code), "exitCodeDescription": _ENDED[code]}
    when = {"endTimeUtc": made.strftime("%Y-%m-%dT%H:%M:%SZ")} if made else {}
    driver = {
        "name": "auditor",
        "fullName": "auditor: black-box privacy audits of trained models",
        "version": __version__,
        "rules": [_rule(name) for name in used],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [ended | when],
        "artifacts": [{"location": {"uri": uri}} for uri in files],
        "results": [_result(rule, item, used, files, shown.model) for rule, item in found],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": str(result.verdict or "none"), "meaning": _brief(shown.finding.sentence)},
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _check_rule(name: str) -> str:
    """Return the id of the rule of a check.

    >>> _check_rule("goodness_of_fit")
    'check/goodness-of-fit'
    """
    return _CHECK + (clean(name, most=_LONGEST_RULE_NAME).replace("_", "-") or "unnamed")


def _rule(rule: str) -> dict[str, Any]:
    """Return what a log says of a rule."""
    name = rule.removeprefix(_CHECK)
    spec = CHECKS.get(name.replace("-", "_"))
    question = "Can these numbers be relied on?" if spec is None else spec.title
    words = texts("rules").get(rule) or texts("rules")["check/*"]
    told = {"{name}": name, "{question}": question}
    short = re.sub(r"\{name\}|\{question\}", lambda match: told[match[0]], words["short"])
    joined = "".join(word.capitalize() for word in name.split("-") if word.isalnum())
    return {
        "id": rule,
        "name": words["name"].replace("{name}", joined),
        "shortDescription": {"text": _message(short)},
        "fullDescription": {"text": _message(f"{short} {words['help']}")},
        "help": {"text": words["help"], "markdown": words["help"]},
        "defaultConfiguration": {"level": words["level"]},
        "properties": {"tags": ["privacy", "membership-inference"], "problem.severity": words["level"]},
    }


def _message(words: str) -> str:
    r"""Return words as the text of a message, in which a link and a placeholder are text too (3.11.5 and 3.11.6).

    >>> _message("[x](http://y) {0}")
    '\\[x\\](http://y) {{0}}'
    """
    text = re.sub(r"\{(\d+)\}", r"{{\1}}", _brief(words))
    return re.sub(r"[\\\[\]]", r"\\\g<0>", text) if "[" in text else text


def _result(rule: str, item: _Item, used: Sequence[str], files: Sequence[str], model: str) -> dict[str, Any]:
    about = json.dumps([rule, item.name, model, *files])
    mark = hashlib.sha256(about.encode("utf-8", errors="backslashreplace")).hexdigest()[:32]
    place: dict[str, Any] = {"logicalLocations": [{"name": _brief(model), "kind": "resource"}]}
    if files:  # a whole file is meant; hosts ask for a line all the same
        physical = {"artifactLocation": {"uri": files[0], "index": 0}, "region": {"startLine": 1}}
        place["physicalLocation"] = physical
    return {
        "ruleId": rule,
        "ruleIndex": used.index(rule),
        "level": item.level,
        "message": {"text": _message(item.words)},
        "partialFingerprints": {"auditorFinding/v1": mark, "primaryLocationLineHash": f"{mark[:16]}:1"},
        "locations": [place],
    }


def _files(result: Document) -> list[str]:
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
