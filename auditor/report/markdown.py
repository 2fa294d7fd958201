"""The summary for a pull request, in GitHub-flavoured Markdown: foreign text in it is text and nothing else."""

import re
from collections.abc import Iterable, Sequence

from auditor.gates import ExitCode, GateOutcome
from auditor.report.gated import gates_first
from auditor.report.summary import Number, Summary, summary, told
from auditor.result import AuditResult

__all__ = ["escaped", "render"]

_MARKS = re.compile(r"[\\`*\[\]{}|<>&~^$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#(?=#*$)")
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "$": "&#36;"}  # the others get a backslash
_STARTS = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=#])")  # what makes a line a list, a heading or a rule
_ADDRESS = re.compile(r"(?<=[A-Za-z])://|\bwww\.", re.IGNORECASE)
_REFERS = re.compile(
    r"([@#!%])(?=[\w\"'-])|(:)(?=[^\W\d])"
)  # a person, an issue, a request, a milestone, a picture
_OUTCOME = {
    ExitCode.DONE: "✓ passed",
    ExitCode.FAILED: "✕ failed",
    ExitCode.NOT_EVALUABLE: "? not evaluable",
}
_LONGEST = 500  # characters of one foreign text: a summary that nobody can read is none
_HOW_TO_READ = (
    "A number *about this model* compares its losses on training records with its losses on others. Only a number"
    " *about the training algorithm* can refute a claim. A certified bound holds at the stated confidence, whatever the"
    " losses look like; a point estimate has no interval. No evidence of leakage is not proof of privacy."
)


def escaped(text: object) -> str:
    r"""Return text that Markdown shows as it is: on one line, with no mark-up, link, picture, mention or reference.

    >>> escaped("a | b *c* @everyone\n# <b>")
    'a &#124; b \\*c\\* @&#8203;everyone # &lt;b&gt;'
    """
    line = re.sub(r"\s+", " ", told(text, longest=_LONGEST)).strip()
    held = _REFERS.sub(
        lambda found: f"{found[0]}\u200b", _ADDRESS.sub(lambda found: "\u200b".join(found[0]), line)
    )
    safe = _MARKS.sub(lambda found: _NAMED.get(found[0], f"\\{found[0]}"), held)
    start = _STARTS.match(safe)
    if start is not None:
        sign = start[2] or start[3]
        safe = f"{start[1] or ''}&#{ord(sign)};{safe[start.end() :]}"
    return safe.replace("\u200b", "&#8203;")


def render(result: AuditResult, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return the summary of an audit for a pull request.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown = summary(result)
    parts = [
        f"## Privacy audit: {escaped(shown.model)}",
        _stopped(gates),
        *(
            f"**{escaped(item.sign.symbol)} {item.sign.word}.** {escaped(item.sentence)}"
            for item in shown.opening
        ),
        _gates(gates),
        _numbers(shown),
        _checks(shown),
        f"<details>\n<summary>How to read this, and where it comes from</summary>\n\n{_HOW_TO_READ}\n\n{_facts(shown)}\n\n</details>",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _stopped(gates: Sequence[GateOutcome]) -> str:
    stopped = gates_first(gates)
    return stopped and f"**✕ {escaped(stopped)}**"


def _gates(gates: Sequence[GateOutcome]) -> str:
    if not gates:
        return ""
    return _section("Gates", (f"- **{_OUTCOME[item.code]}**: {escaped(item.sentence)}" for item in gates))


def _numbers(shown: Summary) -> str:
    head = [
        "| Quantity | Value | Interval and confidence | Delta | About |",
        "| :-- | --: | :-- | --: | :-- |",
    ]
    table = "\n".join([*head, *map(_row, shown.numbers)])
    return f"### Main numbers\n\n{escaped(shown.lead)}\n\n{table}" if shown.numbers else ""


def _row(item: Number) -> str:
    cells = (item.title, item.value, item.interval, item.delta, item.about)
    return f"| {' | '.join(escaped(cell) or ' ' for cell in cells)} |"


def _checks(shown: Summary) -> str:
    found = [
        f"- **{item.word}: {escaped(item.title)}.** {escaped(item.message)} {escaped(item.advice)}".rstrip()
        for item in shown.to_read
    ]
    others = len(shown.checks) - len(found)
    if not found:
        return f"No check failed or warns ({others} made)." if others else ""
    return _section("Checks to read before relying on this", found)


def _facts(shown: Summary) -> str:
    return "\n".join(f"- {title}: {escaped(value)}" for title, value in shown.facts)


def _section(title: str, lines: Iterable[str]) -> str:
    return f"### {title}\n\n" + "\n".join(lines)
