"""A result as a notebook shows it: a small card of plain elements, in the notebook's own colours.

There is no script and no style sheet, which an untrusted notebook would take away; the few inline styles set no colour
of text or background, so that the card reads in light and dark themes alike, and it is complete without them.
"""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from auditor.report import formatting, labels
from auditor.report.summary import Number, number, summary, told
from auditor.result import AuditResult
from auditor.values import Status

if TYPE_CHECKING:
    from auditor.instances.result import InstancesResult
    from auditor.runs.result import RunsResult

__all__ = ["card", "instances_card", "runs_card"]

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


def card(result: AuditResult) -> str:
    """Return an audit as a card for notebooks."""
    shown = summary(result)
    parts = [
        _paragraph(f"Privacy audit: {shown.model}"),
        *(_leading(item.sign) + _paragraph(item.sentence) for item in shown.opening),
        _table(shown.numbers),
        _paragraph(shown.lead),
        _list(
            "Checks to read first", (f"{item.word}: {item.title}. {item.message}" for item in shown.to_read)
        ),
        _HINT,
    ]
    return _box(parts, tone=shown.opening[0].sign.tone)


def instances_card(result: "InstancesResult") -> str:
    """Return the audit of several models as a card for notebooks."""
    sign = labels.VERDICT[result.verdict]
    reason = next((item.reason for item in result.comparisons if item.verdict is result.verdict), "")
    count, delta = (
        formatting.count(result.data.get("n_instances")),
        formatting.given(result.data.get("delta")),
    )
    parts = [
        _paragraph("Privacy audit of several models of one training algorithm"),
        _leading(sign),
        _paragraph(formatting.sentence(reason)) if result.verdict is not None and reason else "",
        _paragraph(f"{count} models, delta {delta}"),
        _table([number(item) for item in result.estimates]),
        "<p><code>.to_json(path)</code> writes the result.</p>",
    ]
    return _box(parts, tone=sign.tone)


def runs_card(result: "RunsResult") -> str:
    """Return the audit of many runs as a card for notebooks."""
    from auditor.runs.text import ONE_JUDGES, counted, judged_as

    sign = labels.VERDICT[result.verdict]
    parts = [
        _paragraph("Privacy audit of many runs of one training algorithm"),
        _leading(sign),
        *map(_paragraph, judged_as(result)),
        *(_paragraph(formatting.sentence(item.reason)) for item in result.comparisons),
        _paragraph(counted(result)),
        _table([number(item) for item in result.estimates]),
        _paragraph(ONE_JUDGES),
        _list(
            "Checks to read first",
            (
                f"{labels.STATUS[item.status].word}: {item.message}"
                for item in result.checks
                if item.status is not Status.OK
            ),
        ),
        "<p><code>.to_json(path)</code> writes the result.</p>",
    ]
    return _box(parts, tone=sign.tone)


def _text(text: object) -> str:
    return escape(told(text))


def _leading(sign: labels.Sign) -> str:
    # Not a heading: a card has no level of its own in somebody else's page.
    return f"<p><strong>{_text(f'{sign.symbol} {sign.word}')}</strong></p>"


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>" if text else ""


def _table(numbers: Iterable[Number]) -> str:
    head = "".join(
        f'<th scope="col"{_NUMBER if title == "Value" else _TITLE}>{title}</th>'
        for title in ("Quantity", "Value", "Interval and confidence", "Delta", "About")
    )
    body = "".join(_row(item) for item in numbers)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return (
        f'<div style="overflow-x: auto;" tabindex="0" role="region" aria-label="Main numbers">{table}</div>'
        if body
        else ""
    )


def _row(item: Number) -> str:
    cells = ((item.value, _NUMBER), (item.interval, _CELL), (item.delta, _CELL), (item.about, _CELL))
    rest = "".join(f"<td{style}>{_text(text)}</td>" for text, style in cells)
    return f'<tr><th scope="row"{_CELL}>{_text(item.title)}</th>{rest}</tr>'


def _list(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<p><strong>{_text(title)}</strong></p><ul>{items}</ul>" if items else ""


def _box(parts: Iterable[str], *, tone: str) -> str:
    return f'<div style="{_BOX.format(edge=_EDGES[tone])}">{"".join(parts)}</div>'
