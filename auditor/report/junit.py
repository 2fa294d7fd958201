"""The audit as test results that build servers read: JUnit XML, as Jenkins, GitLab and GitHub's actions take it.

One suite holds a test for the claim, one for each gate and one for each check. A failure is a refuted claim, a gate
that is true or a failed check; an error is what was asked and could not be decided, which never counts as passed;
skipped is what was not asked or could not be looked at. A warning passes, with its words as the test's output.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from auditor.gates import ExitCode, GateOutcome
from auditor.report.gated import gates_first
from auditor.report.summary import CheckLine, Summary, summary, told
from auditor.result import AuditResult
from auditor.values import Status, Verdict

__all__ = ["render"]

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


def render(result: AuditResult, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return an audit as JUnit XML.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown = summary(result)
    cases = list(_cases(result, shown, gates))
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome == _FAILURE for case in cases)),
        "errors": str(sum(case.outcome == _ERROR for case in cases)),
        "time": _TIME,
    }
    suites = ET.Element("testsuites", {"name": "auditor", **counts})
    skipped = str(sum(case.outcome == _SKIPPED for case in cases))
    named = {"name": told(f"Privacy audit: {shown.model}"), **counts, "skipped": skipped}
    suite = ET.SubElement(suites, "testsuite", named | _timestamp(result))
    properties = ET.SubElement(suite, "properties")
    for title, value in shown.facts:
        ET.SubElement(properties, "property", {"name": title, "value": told(value)})
    for case in cases:
        _add(suite, case)
    ET.SubElement(suite, "system-out").text = _first(shown, gates)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="unicode", short_empty_elements=True)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _cases(result: AuditResult, shown: Summary, gates: Sequence[GateOutcome]) -> Iterator[_Case]:
    outcome = _OF_VERDICT.get(result.verdict)
    kind = str(result.verdict or "no claim")
    yield _Case("claim", "claim", outcome, kind, shown.sentence, "" if outcome else shown.sentence)
    for item in gates:
        stopped = _OF_GATE.get(item.code)
        output = "" if stopped else item.sentence
        yield _Case("gates", item.gate.text, stopped, item.code.name.lower(), item.sentence, output)
    yield from map(_of_check, shown.checks)


def _of_check(item: CheckLine) -> _Case:
    words = f"{item.message} {item.advice}".rstrip()
    output = f"{item.word}: {words}" if item.status is Status.WARN else ""
    return _Case("checks", item.name, _OF_CHECK.get(item.status), str(item.status), words, output)


def _add(suite: ET.Element, case: _Case) -> None:
    place = {"classname": f"auditor.{case.group}", "name": told(case.name) or "unnamed", "time": _TIME}
    element = ET.SubElement(suite, "testcase", place)
    if case.outcome is not None:
        outcome = ET.SubElement(element, case.outcome, {"message": _line(case.words), "type": case.kind})
        outcome.text = told(case.words)
    if case.output:
        ET.SubElement(element, "system-out").text = told(case.output)


def _line(words: str) -> str:
    return " ".join(told(words).split())


def _first(shown: Summary, gates: Sequence[GateOutcome]) -> str:
    """What stopped the pipeline, what was found, and the main numbers, for those who open the suite."""
    stopped = gates_first(gates)
    rows = [
        told(f"{item.title}: {item.value} ({item.interval}; about {item.about}; delta {item.delta})")
        for item in shown.numbers
    ]
    opening = [told(f"{item.sign.word}. {item.sentence}") for item in shown.opening]
    return "\n".join([*([stopped] if stopped else []), *opening, *rows])


def _timestamp(result: AuditResult) -> dict[str, str]:
    """When the audit was made, in the form without a zone that the schema asks for (in UTC), if that is known."""
    try:
        made = datetime.fromisoformat(str(result.provenance.get("created")))
        moment = made.astimezone(UTC) if made.tzinfo else made
        return {"timestamp": moment.replace(tzinfo=None, microsecond=0).isoformat()}
    except (AttributeError, ValueError, OverflowError):
        return {}
