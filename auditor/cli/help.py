"""What `--help` prints: options in sections, worked examples, exit codes; plain text, in a terminal as in a pipe."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

# --- What is written below the options ---

# Of the commands whose codes say more than "done" or "bad input".
EXIT_CODES: Mapping[str, str] = {
    **dict.fromkeys(
        ("audit", "report"),
        "0 done, and every gate passed; 1 a gate failed or the claim is refuted; 2 bad input;"
        " 3 a gate asks for what cannot be evaluated. If several apply: 2, then 1, then 3.",
    ),
    "compare": "0 done; 1 a result gives away more than the baseline (--fail-if-worse); 2 bad input; 3 one cannot be"
    " compared with it (--fail-if-worse).",
    "instances": "0 done; 1 the claim is refuted; 2 bad input.",
    "runs": "0 done; 1 the claim is refuted; 2 bad input.",
    "power": "0 done; 2 bad input; 3 no number of records is enough.",
    "collect": "0 done; 2 bad input; 130 interrupted (start it again: it goes on where it stopped).",
}

# By command: what somebody wants, in words, and below it the line that does it. Quotation marks are double ones, which sh,
# PowerShell and cmd.exe all take.
_EXAMPLES: Mapping[str, str] = {
    "demo": """
        See a whole audit, of two models on data that is here already:
            auditor demo
        Put the page elsewhere:
            auditor demo --html "my first audit.html"
    """,
    "collect": """
        Losses of a model in a file, on two tables with a column of true labels:
            auditor collect model.skops --members train.csv --nonmembers holdout.csv --label diagnosis
                --out losses.parquet
        Of a served model; the token comes from an environment variable:
            auditor collect https://models.example.org/v2/models/income/infer
                --token-variable INCOME_TOKEN --members train.csv --nonmembers holdout.csv --label income
                --out losses.parquet
        Of a PyTorch state dict, built by your own function:
            auditor collect weights.pt --factory my_project:build --members train.csv
                --nonmembers holdout.csv --label y --out losses.parquet
        Of a language model, on texts:
            auditor collect ./my-language-model --members seen.csv --nonmembers unseen.csv
                --text-column text --out losses.parquet
        Many records, in several processes:
            auditor collect model.onnx --records all.parquet --label y --engine ray --workers 8
                --out losses.parquet
    """,
    "audit": """
        What does a table of losses give away?
            auditor audit losses.csv --html report.html
        Members and non-members in two files, with scores where larger is more like a member:
            auditor audit --member-file train.csv --nonmember-file holdout.csv --loss-column score
                --higher-is-member
        Is what is claimed true? Membership was drawn at random, so it can be judged:
            auditor audit losses.csv --split random --claim-epsilon 2 --claim-delta 1e-5
        Stop a pipeline when the model gives away too much:
            auditor audit losses.csv --fail-if "epsilon_bound.clopper_pearson > 1"
                --fail-if "bayes_security.upper < 0.9" --json result.json --quiet
        Say how good the model is, to compare it with others later (auditor compare):
            auditor audit losses.csv --model-name "release 7" --utility 0.87
                --utility-name "test accuracy" --json result.json
    """,
    "report": """
        Make the page of a stored result again:
            auditor report result.json --html report.html
        Ask a gate of it, and keep the answer for the pipeline's own pages:
            auditor report result.json --fail-if "auc.lower > 0.6" --junit gates.xml
                --markdown summary.md
    """,
    "compare": """
        Does this release give away more than the last? Exit 1 if it does:
            auditor compare last.json this.json --fail-if-worse --html comparison.html
        Set several models side by side, with a table that says how good each one is:
            auditor compare first.json second.json third.json --about models.csv --html comparison.html
    """,
    "init": """
        Write auditor.toml, with every option of an audit explained:
            auditor init
        Write it elsewhere:
            auditor init --path audits/auditor.toml
    """,
    "schema": """
        Print the JSON schema of results:
            auditor schema
        Keep it beside them:
            auditor schema > result.schema.json
    """,
    "claim": """
        What does a training run promise?
            auditor claim --noise-multiplier 1.1 --sampling-rate 0.004 --steps 14040 --delta 1e-5
        By every method and composition theorem, as JSON:
            auditor claim --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 --delta 1e-5
                --every-method --compositions --json -
        Steps that differ, from a table:
            auditor claim --schedule steps.csv --delta 1e-5
    """,
    "parameters": """
        How much noise keeps the advantage of every attacker below 0.05?
            auditor parameters --advantage 0.05 --sampling-rate 0.01 --steps 1000
        How many steps keep epsilon below 2?
            auditor parameters --epsilon 2 --delta 1e-5 --noise-multiplier 1 --sampling-rate 0.01
    """,
    "instances": """
        Several models of one training algorithm, each on a fresh random split:
            auditor instances first.json second.json third.json --split random --delta 1e-5
        Judge a claim by them:
            auditor instances first.json second.json third.json --split random --claim-epsilon 2
                --claim-delta 1e-5
    """,
    "runs": """
        Scores of many trainings, half of them with a canary (auditor.collect_runs makes them):
            auditor runs scores.csv --delta 1e-5
        Judge what is claimed of the training:
            auditor runs scores.csv --claim-epsilon 0.21 --claim-delta 1e-5
        The canary took another record's place, and earlier runs choose the threshold:
            auditor runs scores.csv --adjacency replace-one --threshold-runs earlier.csv --delta 1e-5
    """,
    "power": """
        How many records certify an epsilon of 2, if the attack is perfect?
            auditor power --epsilon 2 --delta 1e-5 --split random
        If it is as weak as two normals one standard deviation apart:
            auditor power --epsilon 2 --delta 1e-5 --split random --mu 1
    """,
}


def _read(examples: str) -> dict[str, str]:
    """The lines to type by what is wished; a line that goes on stands deeper."""
    found = {}
    for row in textwrap.dedent(examples).strip().splitlines():
        if not row.startswith(" "):
            wish, found[row] = row, ""
        else:
            found[wish] = f"{found[wish]} {row.strip()}".strip()
    return found


EXAMPLES = {name: _read(examples) for name, examples in _EXAMPLES.items()}


def _lines(name: str, *, width: int = 80) -> list[str]:
    """Return the examples of a command as lines of help: what is wished, and below it what to type.

    Args:
        name: Name of the command.
        width: Columns of the terminal; a longer command goes on after a backslash.

    >>> _lines("demo")[:2]
    ['See a whole audit, of two models on data that is here already:', '  auditor demo']
    """
    found: list[str] = []
    for wish, line in EXAMPLES.get(name, {}).items():
        found += ["", *textwrap.wrap(wish, width)] if found else textwrap.wrap(wish, width)
        found += [f"  {part}" for part in _folded(line, width=width - 2)]
    return found


def _folded(line: str, *, width: int) -> list[str]:
    """Break a command before its options, so that it can be pasted as it stands."""
    parts = line.replace(" --", "\n--").split("\n")
    rows = [parts[0]]
    for part in parts[1:]:
        if len(rows[-1]) + len(part) + 3 <= width:
            rows[-1] += f" {part}"
        else:
            rows[-1] += " \\"
            rows.append(f"    {part}")
    return rows


# Of every command, in this order, after everything else.
GENERAL = ("config", "no_config", "quiet", "debug", "help")

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
    "Promise and plan": ("claim", "parameters", "power"),
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
        """Write arguments and options, section by section: a group of options has the title of its class."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        general: dict[str, tuple[str, str]] = {}
        others: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            left, right = record
            title = getattr(param, "rich_help_panel", None)
            if param.param_type_name == "argument":
                sections["Arguments"].append((str(param.name).upper(), right))
            elif param.name in GENERAL:
                general[str(param.name)] = (_spelled(left), right)
            else:
                (others if title is None else sections.setdefault(title, [])).append((_spelled(left), right))
        sections["More options" if len(sections) > 1 else "Options"] = others
        sections["General"] = [general[name] for name in GENERAL if name in general]
        for title, rows in sections.items():
            _write(formatter, title, rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples and the exit codes, then what the command itself ends with."""
        name = self.name or ""
        _verbatim(formatter, "Examples", _lines(name, width=formatter.width - 2))
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
