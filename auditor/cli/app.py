"""The command line: which commands there are, and how every one of them begins and ends."""

import copy
import functools
import gc
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from auditor._version import __version__
from auditor.cli import console, sentences, settings
from auditor.cli.audit import audit, compare, report, site, verify
from auditor.cli.canaries import canaries
from auditor.cli.collect import collect, summarise
from auditor.cli.mechanism import claim, instances, parameters, power, runs
from auditor.cli.options import declared, packed
from auditor.cli.project import demo
from auditor.core.errors import INTERRUPTED, without_credentials
from auditor.core.lazy import docstring
from auditor.verdicts.gates import ExitCode

# --- Help: options in sections, commands by purpose; plain text, in a terminal as in a pipe ---


def texts(command: Callable[..., Any]) -> dict[str, Any]:
    """Return what a docstring says before and after the options; from its examples on every line stays as it is."""
    words, title, examples = docstring(command).partition("\n\nExamples:\n")
    return {"help": words, "epilog": (title + examples).replace("\n    ", "\n  ")}


def _help_option(command: Any, context: Any) -> Any:
    """The option --help, which prints as every command does: what cannot be printed is one sentence."""
    found = super(type(command), command).get_help_option(context)
    found.callback = _print_help
    return found


def _print_help(context: Any, param: Any, value: bool) -> None:  # noqa: FBT001 - of the parser's protocol
    if value and not context.resilient_parsing:
        context.meta[_WHOLE] = param.name == _WHOLE
        console.say(context.get_help() + "\n")
        context.exit()


_WHOLE = "help_all"
_LONG = 24  # options from which on a command's help begins with those that most people need
_FIRST = {
    *("members", "nonmembers", "loss_column", "label_column", "split", "features", "reference"),
    *("records", "label", "classes", "task", "output", "out", "text_column", "protocol"),
    *("sequential", "counts", "adjacency", "independent_runs", "epsilon", "runs", "canaries", "chance"),
    *("claim_epsilon", "claim_delta", "noise_multiplier", "delta", "fail_if", "model_name"),
    *("json", "html", "markdown", "quiet", "help", _WHOLE),
}


class Command(TyperCommand):
    """A command whose help begins with examples, and has its options in sections, with the title of their group's class."""

    get_help_option: Any = _help_option

    def get_params(self, ctx: Any) -> list[Any]:
        """Return what the command takes: where that is much, with an option that shows all of it."""
        found = list(super().get_params(ctx))
        if len(found) > _LONG:
            whole = copy.copy(self.get_help_option(ctx))
            whole.name, whole.opts, whole.help = _WHOLE, ["--help-all"], f"Show all {len(found)} options."
            found.append(whole)
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the examples before the options."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        formatter.write(f"{self.epilog}\n")
        self.format_options(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, section by section; of very many those that most people need."""
        sections: dict[str, list[tuple[str, str]]] = {}
        params = self.get_params(ctx)
        short = len(params) > _LONG and not ctx.meta.get(_WHOLE)
        for param in sorted(params, key=lambda param: param.param_type_name):  # arguments first
            record = param.get_help_record(ctx)
            argument = param.param_type_name == "argument"
            title = getattr(param, "rich_help_panel", None) or ("Arguments" if argument else "Options")
            title = "General" if param.name in {"help", _WHOLE} else title
            if record is not None and (argument or param.name in _FIRST or not short):
                sections.setdefault(title, []).append(record)
        _write(formatter, sections)


class Group(TyperGroup):
    """The command `auditor` itself: takes `auditor help COMMAND` for `COMMAND --help`."""

    get_help_option: Any = _help_option

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `help COMMAND` as `COMMAND --help`."""
        if args[:1] == ["help"]:
            args = args[1:] if ctx.resilient_parsing else [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by purpose."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.commands[name]
            row = name, command.get_short_help_str(limit=1000)
            sections.setdefault(command.rich_help_panel, []).append(row)
        _write(formatter, sections)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - of the parser's protocol
        """Write the examples as they stand, so that each can be pasted."""
        formatter.write(f"{self.epilog}\n")


def _write(formatter: Any, sections: dict[str, list[tuple[str, str]]]) -> None:
    for title, rows in sections.items():
        with formatter.section(title):
            formatter.write_dl(rows)


# --- The commands, and how each begins and ends ---


app = typer.Typer(
    name="auditor",
    cls=Group,
    # No line is longer than can be read.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


_OF_EVERY = "Of every command, as behind its name."


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    config: Annotated[Path | None, typer.Option(help=_OF_EVERY)] = None,  # noqa: ARG001 - read by the command's own
    no_config: Annotated[bool, typer.Option("--no-config", help=_OF_EVERY)] = False,  # noqa: ARG001 - likewise
) -> None:
    """Measure what a trained model gives away about its training records, and set it beside what is claimed.

    Examples:
        auditor demo                                  a whole audit, on data at hand
        auditor audit losses.csv --html report.html   audit a table of losses
        auditor help collect                          how to make such a table
        auditor help COMMAND                          examples and options

    Exit codes:
        0 done; 1 a gate failed or the claim is refuted; 2 bad input;
        3 a gate cannot be evaluated, or the claim could not be judged.
    """
    if version:
        console.say(f"auditor {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        console.say(context.get_help() + "\n")


def _runnable(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command as the parser takes it, with each option of its groups a parameter, and settings from a file."""
    found = declared(command)
    options = [
        name for name, item in found.items() if isinstance(typing.get_args(item.annotation)[1], OptionInfo)
    ]

    def run(_context: typer.Context, **given: Any) -> Any:
        sentences.OPTIONS.set(tuple(options))
        settings.keep_what_counts(_context)
        settings.tell_what_is_used(quiet=bool(given.get("quiet")))
        given = settings.settled(_context, given)
        given |= {k: without_credentials(x) for k, x in given.items() if type(x) is str and k != "model"}
        root = (_context.parent or _context).params
        console.cut_places([*root.values(), *given.values(), Path(str(given.get("model")))])
        try:
            code = command(**packed(command, given))
        except KeyboardInterrupt as stop:  # the parser would keep its words to itself
            console.explain([str(stop) or "interrupted."])
            raise SystemExit(INTERRUPTED) from None
        settings.tell_what_stopped(code)
        return code

    context = inspect.Parameter("_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    functools.update_wrapper(run, command)
    vars(run)["__signature__"] = inspect.Signature([context, *found.values()])
    run.__annotations__ = {item.name: item.annotation for item in (context, *found.values())}
    return run


# In the order in which somebody meets them.
_COMMANDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "Audit a model": (
        *(demo, collect, summarise, audit, report, site, verify),
        *(compare, instances, runs, canaries),
    ),
    "Promise and plan": (claim, parameters, power),
}
app.callback(invoke_without_command=True, **texts(_root))(_root)
for _purpose, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(cls=Command, rich_help_panel=_purpose, **texts(_command))(_runnable(_command))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; an error is one sentence on standard error and code 2."""
    console.remember(arguments)
    settings.forget()
    sentences.OPTIONS.set(())
    try:
        code = int(app(args=list(arguments), prog_name="auditor", standalone_mode=False) or 0)
    except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence
        sentences.complain(error)
        return ExitCode.BAD_INPUT
    if code == INTERRUPTED:  # while the parser read the options or the settings
        console.explain(["interrupted."])
    return code


def main() -> None:
    """Run the command line on the process's own arguments."""
    console.forgive_unknown_signs()
    # Modules and figures are millions of small objects that stay: looking for garbage among them took a tenth of the time.
    gc.set_threshold(500_000)
    console.keep_warnings_inside()
    sys.exit(run(sys.argv[1:]))
