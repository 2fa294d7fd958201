"""The command line: which commands there are, and how every one of them ends."""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from auditor._version import __version__
from auditor.commands import configuration, console, help_page
from auditor.commands.audit import audit
from auditor.commands.calibration import calibration
from auditor.commands.claim import claim
from auditor.commands.collect import collect
from auditor.commands.compare import compare
from auditor.commands.demo import demo
from auditor.commands.init import init
from auditor.commands.instances import instances
from auditor.commands.invocation import remember
from auditor.commands.parameters import parameters
from auditor.commands.power import power
from auditor.commands.report import report
from auditor.commands.runs import runs
from auditor.commands.schema import schema
from auditor.gates import ExitCode

__all__ = ["main", "run"]

app = typer.Typer(
    name="auditor",
    help="Measure what a trained model gives away about its training records, and set it beside what is claimed.",
    epilog="Exit codes: 0 done; 1 a gate failed or the claim is refuted; 2 bad input; 3 a gate cannot be evaluated.",
    cls=help_page.Group,
    context_settings=help_page.SETTINGS,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    config: configuration.Config = None,  # noqa: ARG001 - read by the command's own
    no_config: configuration.NoConfig = False,  # noqa: ARG001 - likewise
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
    calibration,
)
for _command in _CONFIGURED:
    app.command(cls=help_page.Command)(configuration.configured(_command, among=_CONFIGURED))
# ... and not these, which are about such files and about what is written.
for _other in (init, schema):
    app.command(cls=help_page.Command)(_other)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; an error is one sentence on standard error and code 2."""
    remember(arguments)
    configuration.forget(debug="--debug" in arguments)
    try:
        return int(app(args=list(arguments), prog_name="auditor", standalone_mode=False) or 0)
    except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence
        console.complain(configuration.located(error, arguments=arguments), arguments=arguments)
        return ExitCode.BAD_INPUT


def main() -> None:
    """Run the command line on the process's own arguments."""
    console.forgive_unknown_signs()
    sys.exit(run(sys.argv[1:]))
