"""A result in the few lines that fit into a notebook or a pull request: as a card, and in Markdown."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from auditor.core import numbers
from auditor.core.numbers import BRIEF, clean
from auditor.report.view import NumberLine, View, gates_first, view_of
from auditor.results import metrics
from auditor.results.document import AuditDocument
from auditor.verdicts.gates import ExitCode, GateOutcome

if TYPE_CHECKING:
    from auditor.results.document import InstancesDocument, RunsDocument


# --- A result as a notebook shows it: a small card of plain elements, in the notebook's own colours ---
#
# There is no script and no style sheet, which an untrusted notebook would take away; the few inline styles set no colour
# of text or background, so that the card reads in light and dark themes alike, and it is complete without them.


_BOX = "border: 1px solid #8888; border-left: 4px solid {edge}; border-radius: 4px; padding: 0.6em 1em; max-width: 60em; overflow-wrap: anywhere;"
_EDGES = {
    "bad": "#c0392b",
    "caution": "#c98a00",
    "good": "#2e8b57",
    "plain": "#888888",
}  # beside the word, never alone
_HINT = (
    "<p><code>.to_html(path)</code> writes the whole report, <code>.to_frame()</code> gives all numbers,"
    " <code>.figure(name)</code> a figure.</p>"
)
_CELL = ' style="text-align: left; padding: 0.15em 0.9em 0.15em 0; vertical-align: top;"'
# A number, and the title of a column, never break.
_NUMBER = (
    ' style="text-align: right; padding: 0.15em 0.9em 0.15em 0; vertical-align: top; overflow-wrap: normal;"'
)
_TITLE = (
    ' style="text-align: left; padding: 0.15em 0.9em 0.15em 0; vertical-align: top; overflow-wrap: normal;"'
)


def card(result: AuditDocument) -> str:
    """Return an audit as a card for notebooks."""
    shown = view_of(result)
    parts = [
        _paragraph(f"Privacy audit: {shown.model}"),
        *(_leading(item.sign) + _paragraph(item.sentence) for item in shown.opening),
        _table(shown.numbers),
        _paragraph(shown.headline.sentence),
        _list(
            "Checks to read first",
            (f"{item.sign.word}: {item.title}. {item.message}" for item in shown.to_read),
        ),
        _HINT,
    ]
    return _box(parts, tone=shown.opening[0].sign.tone)


def instances_card(result: "InstancesDocument") -> str:
    """Return the audit of several models as a card for notebooks."""
    sign = metrics.VERDICT[result.verdict]
    reason = next((item.reason for item in result.comparisons if item.verdict is result.verdict), "")
    count, delta = numbers.count(result.data["n_instances"]), numbers.given(result.data["delta"])
    parts = [
        _paragraph("Privacy audit of several models of one training algorithm"),
        _leading(sign),
        _paragraph(numbers.sentence(reason)) if result.verdict is not None and reason else "",
        _paragraph(f"{count} models, delta {delta}"),
        _table(map(NumberLine.of, result.estimates)),
        "<p><code>.to_json(path)</code> writes the result.</p>",
    ]
    return _box(parts, tone=sign.tone)


def runs_card(result: "RunsDocument") -> str:
    """Return the audit of many runs as a card for notebooks."""
    from auditor.report.terminal import ONE_JUDGES, counted, judged_as, to_read

    sign = metrics.VERDICT[result.verdict]
    parts = [
        _paragraph("Privacy audit of many runs of one training algorithm"),
        _leading(sign),
        *map(_paragraph, judged_as(result)),
        *(_paragraph(numbers.sentence(item.reason)) for item in result.comparisons),
        _paragraph(counted(result)),
        _table(map(NumberLine.of, result.estimates)),
        _paragraph(ONE_JUDGES),
        _list("Checks to read first", to_read(result)),
        "<p><code>.to_json(path)</code> writes the result.</p>",
    ]
    return _box(parts, tone=sign.tone)


def _text(text: object) -> str:
    return escape(clean(text, most=BRIEF))


def _leading(sign: metrics.Sign) -> str:
    # Not a heading: a card has no level of its own in somebody else's page.
    return f"<p><strong>{_text(f'{sign.symbol} {sign.word}')}</strong></p>"


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>" if text else ""


def _table(numbers: Iterable[NumberLine]) -> str:
    head = "".join(
        f'<th scope="col"{_NUMBER if title == "Value" else _TITLE}>{title}</th>'
        for title in ("Quantity", "Value", "Interval and confidence", "Delta", "About")
    )
    body = "".join(_card_row(item) for item in numbers)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return (
        f'<div style="overflow-x: auto;" tabindex="0" role="region" aria-label="Main numbers">{table}</div>'
        if body
        else ""
    )


def _card_row(item: NumberLine) -> str:
    cells = ((item.value, _NUMBER), (item.interval, _CELL), (item.delta, _CELL), (item.about, _CELL))
    rest = "".join(f"<td{style}>{_text(text)}</td>" for text, style in cells)
    return f'<tr><th scope="row"{_CELL}>{_text(item.title)}</th>{rest}</tr>'


def _list(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<p><strong>{_text(title)}</strong></p><ul>{items}</ul>" if items else ""


def _box(parts: Iterable[str], *, tone: str) -> str:
    return f'<div style="{_BOX.format(edge=_EDGES[tone])}">{"".join(parts)}</div>'


# --- The summary for a pull request, in GitHub-flavoured Markdown: foreign text in it is text and nothing else ---


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
    line = re.sub(r"\s+", " ", clean(text, most=_LONGEST)).strip()
    held = _REFERS.sub(
        lambda found: f"{found[0]}\u200b", _ADDRESS.sub(lambda found: "\u200b".join(found[0]), line)
    )
    safe = _MARKS.sub(lambda found: _NAMED.get(found[0], f"\\{found[0]}"), held)
    start = _STARTS.match(safe)
    if start is not None:
        sign = start[2] or start[3]
        safe = f"{start[1] or ''}&#{ord(sign)};{safe[start.end() :]}"
    return safe.replace("\u200b", "&#8203;")


def markdown(result: AuditDocument, *, gates: Sequence[GateOutcome] = ()) -> str:
    """Return the summary of an audit for a pull request.

    Args:
        result: What an audit found.
        gates: What became of the gates, if there were any.
    """
    shown = view_of(result)
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
        f"<details>\n<summary>How to read this, and where it comes from</summary>\n\n{_HOW_TO_READ}\n\n{_markdown_facts(shown)}\n\n</details>",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _stopped(gates: Sequence[GateOutcome]) -> str:
    stopped = gates_first(gates)
    return stopped and f"**✕ {escaped(stopped)}**"


def _gates(gates: Sequence[GateOutcome]) -> str:
    if not gates:
        return ""
    return _section("Gates", (f"- **{_OUTCOME[item.code]}**: {escaped(item.sentence)}" for item in gates))


def _numbers(shown: View) -> str:
    head = [
        "| Quantity | Value | Interval and confidence | Delta | About |",
        "| :-- | --: | :-- | --: | :-- |",
    ]
    table = "\n".join([*head, *map(_row, shown.numbers)])
    return f"### Main numbers\n\n{escaped(shown.headline.sentence)}\n\n{table}" if shown.numbers else ""


def _row(item: NumberLine) -> str:
    cells = (item.title, item.value, item.interval, item.delta, item.about)
    return f"| {' | '.join(escaped(cell) or ' ' for cell in cells)} |"


def _checks(shown: View) -> str:
    found = [
        f"- **{item.sign.word}: {escaped(item.title)}.** {escaped(item.message)} {escaped(item.advice)}".rstrip()
        for item in shown.to_read
    ]
    others = len(shown.checks) - len(found)
    if not found:
        return f"No check failed or warns ({others} made)." if others else ""
    return _section("Checks to read before relying on this", found)


def _markdown_facts(shown: View) -> str:
    return "\n".join(f"- {title}: {escaped(value)}" for title, value in shown.facts)


def _section(title: str, lines: Iterable[str]) -> str:
    return f"### {title}\n\n" + "\n".join(lines)
