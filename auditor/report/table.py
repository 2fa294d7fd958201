"""The same result for a terminal: the verdict, what it means, a compact table, and the checks that are not fine."""

import io
from typing import TYPE_CHECKING

from auditor.report import formatting
from auditor.report.context import context
from auditor.result import AuditResult

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["text"]

_STYLES = {"bad": "bold red", "caution": "bold yellow", "good": "green", "plain": "bold"}


def text(result: AuditResult, *, width: int = 100, color: bool = False) -> str:
    """Return a result as lines of text.

    Args:
        result: What to show.
        width: Columns of the terminal.
        color: Whether to add colour codes.
    """
    from rich.console import Console
    from rich.text import Text

    shown = context(result)
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    verdict = shown["verdict"]
    console.print(Text(f"{verdict['symbol']} {verdict['word']}", style=_STYLES[verdict["tone"]]))
    for words in (verdict["sentence"], shown["meaning"]):
        console.print(Text(formatting.clean(words)))
    console.print()
    console.print(_table(shown))
    for row in (row for group in shown["groups"] for row in group["rows"] if row["reason"]):
        console.print(Text(formatting.clean(f"{row['title']}: {row['reason']}"), style="dim"))
    for check in shown["checks"]:
        sign = check["status"]
        if sign["tone"] == "good":
            continue
        line = Text(f"{sign['symbol']} {sign['word']}", style=_STYLES[sign["tone"]])
        console.print(
            line.append(formatting.clean(f" {check['title']}: {check['message']}"), style="not bold default")
        )
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _table(shown: dict[str, object]) -> "Table":
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
    groups = shown["groups"]
    for group in groups if isinstance(groups, list) else []:
        about = (
            group["heading"]
            .removeprefix("About ")
            .removeprefix("the ")
            .removeprefix("this ")
            .removesuffix(" algorithm")
        )
        for row in group["rows"]:
            ceiling = row["limit"].removeprefix("ceiling ")
            cells = (
                row["title"],
                row["value"],
                row["interval"],
                row["confidence"],
                ceiling,
                row["delta"],
                about,
            )
            table.add_row(*(Text(formatting.clean(cell)) for cell in cells))
    return table
