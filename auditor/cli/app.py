"""The command line: which commands there are, and how every one of them ends."""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from auditor._version import __version__
from auditor.cli import console, settings, settings_file
from auditor.cli.audit import audit, compare, report
from auditor.cli.collect import collect
from auditor.cli.help import SETTINGS, Command, Group
from auditor.cli.mechanism import claim, instances, parameters, power, runs
from auditor.cli.project import demo, init, schema
from auditor.verdicts.gates import ExitCode

app = typer.Typer(
    name="auditor",
    help="Measure what a trained model gives away about its training records, and set it beside what is claimed.",
    epilog="Exit codes: 0 done; 1 a gate failed or the claim is refuted; 2 bad input; 3 a gate cannot be evaluated.",
    cls=Group,
    context_settings=SETTINGS,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    config: settings.Config = None,  # noqa: ARG001 - read by the command's own
    no_config: settings.NoConfig = False,  # noqa: ARG001 - likewise
) -> None:
    if version:
        console.say(f"auditor {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        console.say(context.get_help() + "\n")


# In the order in which somebody meets them. A file can configure these ...
_CONFIGURED: tuple[Callable[..., Any], ...] = (
    demo,
    collect,
    audit,
    report,
    compare,
    claim,
    parameters,
    instances,
    runs,
    power,
)
for _command in _CONFIGURED:
    app.command(cls=Command)(settings.configured(_command, among=_CONFIGURED))
# ... and not these, which are about such files and about what is written.
for _other in (init, schema):
    app.command(cls=Command)(_other)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; an error is one sentence on standard error and code 2."""
    console.remember(arguments)
    settings.forget(debug="--debug" in arguments)
    try:
        return int(app(args=list(arguments), prog_name="auditor", standalone_mode=False) or 0)
    except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence
        console.complain(settings_file.located(error, arguments=arguments), arguments=arguments)
        return ExitCode.BAD_INPUT


def main() -> None:
    """Run the command line on the process's own arguments."""
    console.forgive_unknown_signs()
    sys.exit(run(sys.argv[1:]))
