"""The same result for a terminal: what was found, the claim, a compact table, and the checks that are not fine."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from auditor.report import formatting
from auditor.report.context import context
from auditor.report.gated import gates_first
from auditor.report.known import known
from auditor.report.opening import openings
from auditor.report.origin import settings_sentence
from auditor.report.terminal import TONES, printed
from auditor.result import AuditResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from auditor.gates import GateOutcome

__all__ = ["text"]

_NARROW = 80  # columns below which a table would cut its numbers


def text(
    result: AuditResult, *, width: int = 100, color: bool = False, gates: Sequence["GateOutcome"] = ()
) -> str:
    """Return a result as lines of text: with a table of its numbers, or below 80 columns with a paragraph for each.

    Args:
        result: What to show.
        width: Columns of the terminal.
        color: Whether to add colour codes.
        gates: What became of the gates; where some stopped the pipeline, the first lines say how many.
    """
    result = known(result)
    shown = context(result)

    def draw(console: "Console") -> None:
        for line in _first(result, gates):
            console.print(line)
        console.print()
        if width < _NARROW:
            for line in _paragraphs(shown):
                console.print(line)
        else:
            console.print(_table(shown))
        for line in _last(result, shown):
            console.print(line)

    return printed(draw, width=width, color=color)


def _first(result: AuditResult, gates: Sequence["GateOutcome"]) -> Iterator["Text"]:
    """The model, the gates that stop the pipeline, what was found, and the verdict on the claim."""
    from rich.text import Text

    model = result.data.get("model")
    if model is not None and str(model).strip():
        yield Text(formatting.clean(f"Privacy audit: {model}"), style="bold")
    stopped = gates_first(gates)
    if stopped:
        yield Text(f"✕ {stopped}", style=TONES["bad"])
    for sign, sentence in openings(result):
        yield Text(f"{sign.symbol} {sign.word}", style=TONES[sign.tone])
        yield Text(formatting.clean(sentence))


def _last(result: AuditResult, shown: dict[str, Any]) -> Iterator["Text"]:
    """What to know of single numbers, the checks that are not fine, and what a file set."""
    from rich.text import Text

    for row in (row for group in shown["groups"] for row in group["rows"] if row["reason"]):
        yield Text(formatting.clean(f"{row['title']}: {row['reason']}"), style="dim")
    for check in shown["checks"]:
        sign = check["status"]
        if sign["tone"] == "good":
            continue
        line = Text(f"{sign['symbol']} {sign['word']}", style=TONES[sign["tone"]])
        yield line.append(
            formatting.clean(f" {check['title']}: {check['message']}"), style="not bold default"
        )
    settings = settings_sentence(result)
    if settings:
        yield Text(formatting.clean(f"Settings: {settings}"), style="dim")


def _rows(shown: dict[str, Any]) -> Iterator[tuple[dict[str, str], str]]:
    """Each number with what it is about."""
    for group in shown["groups"]:
        for row in group["rows"]:
            yield row, group["heading"].removeprefix("About ")


def _paragraphs(shown: dict[str, Any]) -> Iterator["Text"]:
    from rich.text import Text

    for row, about in _rows(shown):
        parts = [
            row["interval"] if row["interval"] != row["value"] else "",
            f"confidence {row['confidence']}" if row["confidence"][:1].isdigit() else row["confidence"],
            row["limit"],
            "" if row["delta"] == formatting.MISSING else f"delta {row['delta']}",
            f"about {about}",
        ]
        told = ", ".join(part for part in parts if part not in {"", formatting.MISSING})
        line = Text(formatting.clean(f"{row['title']}: {row['value']}"), style="bold")
        yield line.append(formatting.clean(f" ({told})"), style="not bold default")
    yield Text("")


def _table(shown: dict[str, Any]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Quantity", min_width=13)
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("Interval")
    table.add_column("Confidence")
    table.add_column("Ceiling", justify="right", no_wrap=True)
    table.add_column("Delta", justify="right", no_wrap=True)
    table.add_column("About", no_wrap=True, min_width=8)
    for row, about in _rows(shown):
        ceiling = row["limit"].removeprefix("ceiling ")
        short = about.removeprefix("the ").removeprefix("this ").removesuffix(" algorithm")
        cells = (row["title"], row["value"], row["interval"], row["confidence"], ceiling, row["delta"], short)
        table.add_row(*(Text(formatting.clean(cell)) for cell in cells))
    return table
