"""An audit for other programs: test results (JUnit XML), findings beside a change (SARIF), and part of a model card.

JUnit and SARIF report the claim, each gate and each check. Failures are a refuted claim, a true gate and a failed check. A
claim or gate that could not be decided never counts as passed. A warning passes in JUnit, with its message as the output
of the test, and is a finding in SARIF. SARIF omits everything that passed.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from auditor._version import __version__
from auditor.checks.registry import CHECKS
from auditor.core import BRIEF, Estimate, ExitCode, Status, Verdict, clean, count, plain
from auditor.report.annex import annex_of
from auditor.report.html import environment, escaped
from auditor.report.kinds import view_of
from auditor.report.view import View, texts
from auditor.results.document import AuditResult, Document, made_at
from auditor.verdicts.limits import exit_code

_clipped = partial(clean, most=BRIEF)


def _brief(text: object) -> str:
    """Return foreign text on one line: a build server reads some lines as commands."""
    return " ".join(_clipped(text).split())


@dataclass(frozen=True)
class _Item:
    """The outcome of the claim, of a gate or of a check.

    Attributes:
        group: ``claim``, ``gates`` or ``checks``.
        name: Name without numbers.
        outcome: In JUnit's words: failure, error or skipped; None if it passed.
        kind: Outcome in the words of the audit.
        words: Message and advice.
        rule: SARIF rule that it breaks; empty if none.
        level: SARIF level of the finding.
        output: Output of a passed test.
    """

    group: str
    name: str
    outcome: str | None
    kind: str
    words: str
    rule: str = ""
    level: str = "error"
    output: str = ""


_OF_VERDICT: dict[Verdict | None, tuple[str | None, str, str]] = {
    None: ("skipped", "", ""),
    Verdict.REFUTED: ("failure", "claim/refuted", "error"),
    Verdict.NOT_REFUTED: (None, "", ""),
    Verdict.INCONCLUSIVE: ("error", "claim/undecided", "warning"),
    Verdict.NOT_EVALUABLE: ("error", "claim/undecided", "warning"),
}
_OF_GATE = {
    ExitCode.FAILED: ("failure", "gate/failed"),
    ExitCode.NOT_EVALUABLE: ("error", "gate/not-evaluable"),
}
_OF_CHECK = {Status.FAIL: "failure", Status.UNKNOWN: "skipped"}
_LEVELS = {Status.FAIL: "error", Status.WARN: "warning", Status.UNKNOWN: "note"}


def _items(view: View) -> Iterator[_Item]:
    verdict, words = view.result.verdict, f"{view.verdict.sign.word}. {view.verdict.sentence}"
    outcome, rule, level = _OF_VERDICT[verdict]
    passed = "" if outcome else words
    yield _Item("claim", "claim", outcome, str(verdict or "no claim"), words, rule, level, passed)
    for item in view.outcomes:
        outcome, rule = _OF_GATE.get(item.code, (None, ""))
        passed = "" if outcome else item.sentence
        kind = item.code.name.lower()
        yield _Item("gates", item.gate.text, outcome, kind, item.sentence, rule, output=passed)
    for check in view.checks:
        level = _LEVELS.get(check.status, "")
        warned = f"{check.sign.word}: {check.words}" if check.status is Status.WARN else ""
        yield _Item(
            *("checks", check.name, _OF_CHECK.get(check.status), str(check.status), check.words),
            rule=_check_rule(check.name) if level else "",
            level=level,
            output=warned,
        )


# --- JUnit XML, as Jenkins, GitLab and GitHub's actions take it ---


def junit(result: Document) -> str:
    """Return an audit as JUnit XML."""
    view, made = view_of(result), made_at(result.provenance)
    items = list(_items(view))
    outcomes = Counter(item.outcome for item in items)
    # The time is 0 seconds, as some readers need it.
    counts = {"tests": len(items), "failures": outcomes["failure"], "errors": outcomes["error"], "time": 0}
    root = _element(None, "testsuites", name="auditor", **counts)
    suite = _element(root, "testsuite", name=view.heading, **counts, skipped=outcomes["skipped"])
    if made:  # the schema asks for a time without a zone
        suite.set("timestamp", made.replace(tzinfo=None, microsecond=0).isoformat())
    properties = _element(suite, "properties")
    for title, value in view.facts:
        _element(properties, "property", name=title, value=value)
    for item in items:
        case = _element(
            suite, "testcase", classname=f"auditor.{item.group}", name=item.name or "unnamed", time=0
        )
        if item.outcome:
            _element(case, item.outcome, item.words, message=item.words, type=item.kind)
        if item.output:
            _element(case, "system-out", item.output)
    # The decision, the verdict and the main numbers, for readers of the suite.
    opening = (f"{item.sign.word}. {item.sentence}" for item in (view.decision, *view.opening))
    lines = [*opening, *(row.line for row in view.numbers)]
    _element(suite, "system-out").text = "\n".join(map(_brief, lines))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _element(parent: ET.Element | None, tag: str, text: object = None, **attributes: object) -> ET.Element:
    """Return a new element, appended to its parent, with every foreign text on one line."""
    element = ET.Element(tag, {name: _brief(value) for name, value in attributes.items()})
    element.text = None if text is None else _brief(text)
    if parent is not None:
        parent.append(element)
    return element


# --- SARIF 2.1.0 ---
#
# The fingerprint of a finding does not depend on its numbers, so that hosts track it from run to run.


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_DRIVER = {
    "name": "auditor",
    "fullName": "auditor: black-box privacy audits of trained models",
    "version": __version__,
}
_CHECK = "check/"
_LONGEST_RULE_NAME = 100
_LONGEST_NAME = 255  # characters of a file name
# The source of an audit of two files.
_PAIR = re.compile(r"(.+) \(members\), (.+) \(non-members\)", re.DOTALL)
_ENDED = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "a gate failed or the claim is refuted",
    ExitCode.NOT_EVALUABLE: "a gate cannot be evaluated, or the claim could not be judged",
}


def sarif(result: Document) -> str:
    """Return an audit's findings as SARIF 2.1.0."""
    view, made = view_of(result), made_at(result.provenance)
    code, items = exit_code(result, view.outcomes), [item for item in _items(view) if item.rule]
    rules, files = list(dict.fromkeys(item.rule for item in items)), _files(result)
    place: dict[str, Any] = {"logicalLocations": [{"name": _clipped(view.model), "kind": "resource"}]}
    if files:  # the whole file is meant; hosts require a line all the same
        location = {"artifactLocation": {"uri": files[0], "index": 0}, "region": {"startLine": 1}}
        place["physicalLocation"] = location
    invocation = {
        "executionSuccessful": True,
        "exitCode": int(code),
        "exitCodeDescription": _ENDED[code],
        **({"endTimeUtc": made.strftime("%Y-%m-%dT%H:%M:%SZ")} if made else {}),
    }
    properties = {
        "decision": str(view.decided or "none"),
        "verdict": str(result.verdict or "none"),
        "meaning": _clipped(view.finding.sentence),
        **({"file": _clipped(view.carried.sentence)} if view.carried else {}),
        **({"audience": _clipped(f"For insiders only. {view.audience}")} if view.audience else {}),
    }
    run = {
        "tool": {"driver": {**_DRIVER, "rules": [_rule(rule, view) for rule in rules]}},
        "invocations": [invocation],
        "artifacts": [{"location": {"uri": uri}} for uri in files],
        "results": [
            {
                "ruleId": item.rule,
                "ruleIndex": rules.index(item.rule),
                "level": item.level,
                "message": {"text": _message(item.words)},
                "partialFingerprints": _fingerprints(item, view.model, files),
                "locations": [place],
            }
            for item in items
        ],
        "columnKind": "unicodeCodePoints",
        "properties": properties,
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _check_rule(name: str) -> str:
    """Return the id of the rule of a check.

    >>> _check_rule("goodness_of_fit")
    'check/goodness-of-fit'
    """
    return _CHECK + (clean(name, most=_LONGEST_RULE_NAME).replace("_", "-") or "unnamed")


def _rule(rule: str, view: View) -> dict[str, Any]:
    """Return the description of a rule."""
    name = rule.removeprefix(_CHECK)
    spec = CHECKS.get(name.replace("-", "_"))
    question = "Can these numbers be relied on?" if spec is None else view.worded(spec.title)
    written = texts("rules").get(rule) or texts("rules")["check/*"]
    words = {key: view.worded(text) for key, text in written.items()}
    fields = {"{name}": name, "{question}": question}
    short = re.sub(r"\{name\}|\{question\}", lambda match: fields[match[0]], words["short"])
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


def _fingerprints(item: _Item, model: str, files: Sequence[str]) -> dict[str, str]:
    about = json.dumps([item.rule, item.name, model, *files])
    mark = hashlib.sha256(about.encode("utf-8", errors="backslashreplace")).hexdigest()[:32]
    return {"auditorFinding/v1": mark, "primaryLocationLineHash": f"{mark[:16]}:1"}


def _files(result: Document) -> list[str]:
    """The audited files, members first, as references relative to the place of the log; empty if unknown."""
    source = result.provenance.get("source") or ""
    if not source.strip():
        return []
    pair = _PAIR.fullmatch(source)
    return list(dict.fromkeys(_reference(name) for name in (pair.groups() if pair else (source,))))


def _reference(name: str) -> str:
    """Return a relative URI reference: only the name if the path is absolute or contains ``..``."""
    parts = [part for part in re.split(r"[/\\]", clean(name, most=_LONGEST_NAME)) if part not in ("", ".")]
    outside = re.match(r"[/\\]|[A-Za-z]:|~", name) or ".." in parts
    inside = [part for part in parts if part != ".."]
    inside = inside[-1:] if outside else inside
    return "/".join(quote(part, safe="") for part in inside) or "losses"


# --- Part of a model card on the Hugging Face Hub: metadata in YAML, and a section in Markdown ---


def model_card(result: AuditResult) -> str:
    """Return an audit as part of a model card for the Hugging Face Hub: metadata in YAML, and a section in Markdown."""
    view = view_of(result)
    metadata = {
        "tags": ["privacy-audit", "membership-inference"],
        "model-index": [{"name": view.model, "results": [_hub_result(view)]}],
    }
    section = environment(escaped, autoescape=False).get_template("model-card.md.jinja")
    front = "\n".join(["---", *_yaml(metadata), "---"])
    return f"{front}\n\n{section.render(view=view, annex=annex_of(view))}\n"


def _hub_result(view: View) -> dict[str, Any]:
    """Return the numbers as the Hub's model index holds them."""
    data, sha256 = view.result.data, view.result.provenance.get("input_sha256")
    members, others = count(data.get("n_member")), count(data.get("n_nonmember"))
    records = f"{members} {view.units.members} and {others} {view.units.others}"
    return {
        "task": {"type": "membership-inference", "name": "Privacy audit by membership inference"},
        "dataset": {
            "type": "audited-records",
            "name": records,
            **({"args": {"input_sha256": sha256}} if sha256 else {}),
        },
        "metrics": [
            {
                "type": row.name,
                "name": f"{row.title} (about {row.about})",
                "value": row.estimate.value,
                "args": {"interval": row.interval} | _bounds(row.estimate),
            }
            for row in view.rows
            if row.has_value
        ],
    }


def _bounds(estimate: Estimate) -> dict[str, float]:
    values = {name: getattr(estimate, name) for name in ("lower", "upper", "confidence", "delta")}
    return {name: value for name, value in values.items() if value is not None}


def _yaml(value: Any) -> Iterator[str]:
    """Yield the lines of a mapping or a list as block YAML, in the usual style of model cards."""
    if isinstance(value, dict):
        for key, item in value.items():
            if item and isinstance(item, (dict, list)):
                yield f"{key}:"
                yield from (f"{'  ' * isinstance(item, dict)}{line}" for line in _yaml(item))
            else:
                yield f"{key}: {_scalar(item)}"
    else:
        for item in value:
            first, *rest = _yaml(item) if isinstance(item, dict) else [_scalar(item)]
            yield from (f"- {first}", *(f"  {line}" for line in rest))


def _scalar(value: Any) -> str:
    """Return a text or a number as JSON and YAML both read it: without a sign that hides, and 1e-5 with a point."""
    cleaned = _clipped(value) if isinstance(value, str) else plain(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(cleaned, ensure_ascii=False))
