"""A comparison for a terminal: the sentences, a line for each audit, and a line for each strategy."""

from typing import TYPE_CHECKING, Any

from auditor.report import formatting
from auditor.report.comparison import context
from auditor.report.terminal import TONES, printed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from auditor.audits.comparison import AuditsComparison

__all__ = ["text"]


def text(comparison: "AuditsComparison", *, width: int = 100, color: bool = False) -> str:
    """Return a comparison as lines of text.

    Args:
        comparison: What to show.
        width: Columns of the terminal.
        color: Whether to add colour codes.
    """
    from rich.text import Text

    shown = context(comparison, command_line=True)

    def draw(console: "Console") -> None:
        sign = shown["sign"]
        console.print(Text(f"{sign['symbol']} {sign['word']}", style=TONES[sign["tone"]]))
        for words in (*shown["changes"], shown["compared"], shown["frontier"], *shown["warnings"]):
            console.print(Text(formatting.clean(words)))
        console.print()
        console.print(_audits(shown))
        if shown["shared"]:
            console.print(Text(shown["shared"]))
        if shown["several_instances"]:
            console.print(_strategies(shown))
        for name, reason in shown["left_out"]:
            console.print(Text(formatting.clean(f"Not in the landscape: {name}: {reason}")))
        for note in shown["notes"][: 2 if shown["bounds_what"] else 1]:
            console.print(Text(note))
        for hint in shown["hints"]:
            console.print(Text(hint))

    return printed(draw, width=width, color=color)


def _table(*columns: tuple[str, bool]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title, number in columns:
        table.add_column(title, justify="right" if number else "left", no_wrap=number)
    return table


def _add(table: "Table", *cells: str) -> None:
    from rich.text import Text

    table.add_row(*(Text(formatting.clean(cell)) for cell in cells))


def _audits(shown: dict[str, Any]) -> "Table":
    measure = formatting.clean(shown["measure"])
    table = _table(
        ("Audit", False),
        ("Strategy", False),
        ("Utility", True),
        (measure, True),
        ("Interval", False),
        ("Verdict", False),
    )
    verdicts = {row["name"]["number"]: row["verdict"]["word"] for row in shown["bounds"]}
    for row in shown["audits"]:
        name = row["name"]
        _add(
            table,
            f"{name['number']}. {name['title']}",
            row["strategy"]["text"],
            row["utility"]["text"],
            row["measure"]["text"],
            "; ".join(row["measure"]["notes"]),
            verdicts[name["number"]],
        )
    return table


def _strategies(shown: dict[str, Any]) -> "Table":
    utility = formatting.clean(shown["utility"])
    names = (
        ("Strategy", False),
        ("Mean bound" if shown["bounds_what"] else "Mean", True),
        ("Range", False),
        (f"Mean {utility}", True),
        ("Range", False),
    )
    table = _table(*names, ("Models", True), *([("Frontier", False)] if shown["ranked"] else []))
    for row in shown["strategies"]:
        ranges = ["; ".join(row[axis]["notes"]) for axis in ("measure", "utility")]
        _add(
            table,
            f"{row['number']}. {row['name']}",
            row["measure"]["text"],
            ranges[0],
            row["utility"]["text"],
            ranges[1],
            row["models"]["text"],
            *([row["frontier"]["text"]] if shown["ranked"] else []),
        )
    return table
