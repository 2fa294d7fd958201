"""What `--help` prints: options in sections, worked examples, exit codes; plain text, in a terminal as in a pipe."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

from auditor.commands.examples import EXIT_CODES, lines
from auditor.commands.sections import GENERAL, SECTIONS

__all__ = ["SETTINGS", "Command", "Group"]

# For `typer.Typer(context_settings=...)`: `-h` works everywhere, and no line is longer than can be read.
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

# How types are written, where the parser has names of its own for them.
_TYPES = {
    "<path>": "PATH",
    "<file>": "PATH",
    "<directory>": "PATH",
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<int>": "NUMBER",
    "<float>": "NUMBER",
    "INTEGER": "NUMBER",
    "FLOAT": "NUMBER",
}
_FIRST_STEPS = """
auditor demo                                 a whole audit, on data at hand
auditor audit losses.csv --html report.html  audit a table of losses
auditor help collect                         how to make such a table
auditor help COMMAND                         examples and options
"""
# The commands in the order of their use; what is named nowhere comes last.
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "Audit a model": ("demo", "collect", "audit", "report", "compare", "instances", "runs"),
    "Promise and plan": ("claim", "parameters", "power", "calibration"),
    "Set up": ("init", "schema"),
}


class Command(TyperCommand):
    """A command whose help has its options in sections, examples and exit codes."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments in capitals, as the texts name them; in square brackets those that may be missing."""
        return [
            piece.upper().strip("{}").replace("}...", "...") for piece in super().collect_usage_pieces(ctx)
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, section by section."""
        rows: dict[str, tuple[str, str]] = {}
        arguments: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                arguments.append((str(param.name).upper(), record[1]))
            else:
                rows[str(param.name)] = (_spelled(record[0]), record[1])
        _write(formatter, "Arguments", arguments)
        planned = SECTIONS.get(self.name or "", {})
        for title, names in planned.items():
            _write(formatter, title, [rows.pop(name) for name in names if name in rows])
        last = [rows.pop(name) for name in GENERAL if name in rows]
        _write(formatter, "More options" if planned else "Options", list(rows.values()))
        _write(formatter, "General", last)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples and the exit codes, then what the command itself ends with."""
        name = self.name or ""
        _verbatim(formatter, "Examples", lines(name, width=formatter.width - 2))
        if name in EXIT_CODES:
            _verbatim(formatter, "Exit codes", textwrap.wrap(EXIT_CODES[name], formatter.width - 2))
        super().format_epilog(ctx, formatter)


class Group(TyperGroup):
    """The command `auditor` itself: says where to begin, and takes `auditor help COMMAND` for `COMMAND --help`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `help COMMAND` as `COMMAND --help`."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"] if not ctx.resilient_parsing else args[1:]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the first steps, the commands by purpose, then the few options."""
        _verbatim(formatter, "Where to begin", _FIRST_STEPS.strip().splitlines(), width=formatter.width)
        rows = {name: self._summary(name) for name in self.list_commands(ctx)}
        width = max(map(len, rows))
        for title, names in _COMMANDS.items():
            _write(formatter, title, [(name.ljust(width), rows.pop(name)) for name in names if name in rows])
        _write(formatter, "More commands", list(rows.items()))
        records = [param.get_help_record(ctx) for param in self.get_params(ctx)]
        _write(formatter, "Options", [(_spelled(row[0]), row[1]) for row in records if row is not None])

    def _summary(self, name: str) -> str:
        return (self.commands[name].help or "").strip().split("\n")[0]


def _spelled(left: str) -> str:
    """An option's names with its type in capitals, choices as they are."""
    for theirs, ours in _TYPES.items():
        left = left.replace(theirs, ours)
    return left.replace("<", "").replace(">", "")


def _write(formatter: Any, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            # Older parsers escape the bracket of [default: ...] even where nothing reads markup.
            formatter.write_dl([(left, right.replace("\\[", "[")) for left, right in rows])


def _verbatim(formatter: Any, title: str, rows: Iterable[str], *, width: int | None = None) -> None:
    """Write lines as they are; with a width, what follows two blanks goes below where the line is too long."""
    found = list(rows)
    if not found:
        return
    with formatter.section(title):
        for line in found:
            if width is not None and len(line) + 2 > width:
                command, _, words = line.partition("  ")
                formatter.write(f"  {command}\n")
                formatter.write("".join(f"      {row}\n" for row in textwrap.wrap(words.strip(), width - 6)))
            else:
                formatter.write(f"  {line}\n" if line else "\n")
