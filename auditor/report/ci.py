"""The audit for build servers: as test results (JUnit XML), and as findings beside the change that caused them (SARIF).

Both tell the claim, each gate and each check. What failed is a refuted claim, a gate that is true or a failed check;
what was asked and could not be decided never counts as passed; a warning passes in JUnit, with its words as the test's
output, and is a finding in SARIF. What passed is no finding.
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

from auditor._version import __version__
from auditor.checks.registry import CHECKS
from auditor.core.errors import ExitCode
from auditor.core.numbers import BRIEF, clean
from auditor.core.values import Status, Verdict
from auditor.report.html import environment
from auditor.report.view import View, gates_first, texts, view_of
from auditor.results.document import Document, made_at
from auditor.verdicts.gates import GateOutcome, exit_code


def _brief(text: Any) -> str:
    """Foreign words on one line: a build server reads some lines as commands."""
    return " ".join(clean(text, most=BRIEF).split())


@dataclass(frozen=True)
class _Item:
    """What became of the claim, of a gate or of a check.

    Attributes:
        group: ``claim``, ``gates`` or ``checks``.
        name: What it is about, without its numbers.
        outcome: As JUnit has it: a failure, an error, skipped, or null where it passed.
        kind: The same in the words of the audit.
        words: What was found and what to do.
        rule: The rule of a SARIF log that it breaks; empty where it breaks none.
        level: Of that finding.
        output: What a passed test has to say.
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


def _items(shown: View, gates: Sequence[GateOutcome]) -> Iterator[_Item]:
    verdict, words = shown.result.verdict, f"{shown.verdict.sign.word}. {shown.verdict.sentence}"
    outcome, rule, level = _OF_VERDICT[verdict]
    passed = "" if outcome else words
    yield _Item("claim", "claim", outcome, str(verdict or "no claim"), words, rule, level, passed)
    for item in gates:
        outcome, rule = _OF_GATE.get(item.code, (None, ""))
        passed = "" if outcome else item.sentence
        kind = item.code.name.lower()
        yield _Item("gates", item.gate.text, outcome, kind, item.sentence, rule, output=passed)
    for check in shown.checks:
        level = _LEVELS.get(check.status, "")
        warned = f"{check.sign.word}: {check.words}" if check.status is Status.WARN else ""
        yield _Item(
            *("checks", check.name, _OF_CHECK.get(check.status), str(check.status), check.words),
            rule=_check_rule(check.name) if level else "",
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
    template = environment(_in_xml, autoescape=True).get_template("junit.xml.jinja")
    text = template.render(
        shown=shown,
        items=items,
        outcomes=Counter(item.outcome for item in items),
        stopped=gates_first(gates),
        # The schema asks for a time without a zone.
        made=made and made.replace(tzinfo=None, microsecond=0).isoformat(),
    )
    return f"{text}\n"


def _in_xml(value: Any) -> Any:
    return value if hasattr(value, "__html__") else _brief(value)


# --- SARIF 2.1.0 ---
#
# A finding keeps its fingerprint from run to run, whatever its numbers, so that hosts follow it instead of listing it
# anew.


_CHECK = "check/"
_LONGEST_RULE_NAME = 100
_LONGEST_NAME = 255  # characters of a file name
# How the two files of one audit are told.
_PAIR = re.compile(r"(.+) \(members\), (.+) \(non-members\)", re.DOTALL)
_ENDED = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "a gate failed or the claim is refuted",
    ExitCode.NOT_EVALUABLE: "a gate cannot be evaluated, or the claim could not be judged",
}


def sarif(result: Document, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return an audit's findings as SARIF 2.1.0.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown, code, made = view_of(result), exit_code(result, gates), made_at(result.provenance)
    items = [item for item in _items(shown, gates) if item.rule]
    used, files = list(dict.fromkeys(item.rule for item in items)), _files(result)
    template = environment(_in_json, autoescape=False).get_template("sarif.json.jinja")
    text = template.render(
        message=_message,
        shown=shown,
        version=__version__,
        rules=map(_rule, used),
        code=int(code),
        ended=_ENDED[code],
        made=made and made.strftime("%Y-%m-%dT%H:%M:%SZ"),
        files=files,
        found=[(item, used.index(item.rule), _mark(item, shown.model, files)) for item in items],
        verdict=str(result.verdict or "none"),
    )
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


_in_json = partial(json.dumps, ensure_ascii=False)


def _check_rule(name: str) -> str:
    """Return the id of the rule of a check.

    >>> _check_rule("goodness_of_fit")
    'check/goodness-of-fit'
    """
    return _CHECK + (clean(name, most=_LONGEST_RULE_NAME).replace("_", "-") or "unnamed")


def _rule(rule: str) -> dict[str, str]:
    """Return what a log says of a rule."""
    name = rule.removeprefix(_CHECK)
    spec = CHECKS.get(name.replace("-", "_"))
    question = "Can these numbers be relied on?" if spec is None else spec.title
    words = texts("rules").get(rule) or texts("rules")["check/*"]
    told = {"{name}": name, "{question}": question}
    short = re.sub(r"\{name\}|\{question\}", lambda match: told[match[0]], words["short"])
    joined = "".join(word.capitalize() for word in name.split("-") if word.isalnum())
    return {**words, "id": rule, "name": words["name"].replace("{name}", joined), "short": short}


def _message(words: str) -> str:
    r"""Return words as the text of a message, in which a link and a placeholder are text too (3.11.5 and 3.11.6).

    >>> _message("[x](http://y) {0}")
    '\\[x\\](http://y) {{0}}'
    """
    text = re.sub(r"\{(\d+)\}", r"{{\1}}", _brief(words))
    return re.sub(r"[\\\[\]]", r"\\\g<0>", text) if "[" in text else text


def _mark(item: _Item, model: str, files: Sequence[str]) -> str:
    about = json.dumps([item.rule, item.name, model, *files])
    return hashlib.sha256(about.encode("utf-8", errors="backslashreplace")).hexdigest()[:32]


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
