"""The command line: the list of commands, their dispatch, and their errors."""

import gc
import importlib
import pkgutil
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from auditor._version import __version__
from auditor.cli import console
from auditor.core.errors import INTERRUPTED, AuditorError, ExitCode, InputError, without_credentials

# By purpose, in the order in which a user meets them.
COMMANDS = {
    "Audit a model": {
        "demo": "demo",
        **dict.fromkeys(("collect", "summarise"), "collect"),
        **dict.fromkeys(("audit", "report", "compare"), "audit"),
        **dict.fromkeys(("instances", "runs"), "many"),
        "canaries": "canaries",
    },
    "Promise and plan": dict.fromkeys(("claim", "power"), "many"),
}
_HOMES = {name: home for group in COMMANDS.values() for name, home in group.items()}
_HELP = ("--help", "-h", "--help-all")
_LONGEST = 1000  # characters of a sentence


def command_of(name: str) -> Callable[..., Any]:
    """Return the function of a command.

    Raises:
        InputError: The command does not exist.
    """
    if name not in _HOMES:
        from auditor.core import validate

        meant = validate.did_you_mean(validate.nearest(name.lower(), _HOMES))
        kind = "option" if name.startswith("-") else "command"
        behind = " in front of the command; options follow it" if kind == "option" else ""
        raise InputError(f"no such {kind} {name!r}{behind}{meant} See 'auditor --help'.")
    result: Callable[..., Any] = getattr(importlib.import_module(f"auditor.cli.{_HOMES[name]}"), name)
    return result


def overview() -> str:
    """Return the help of `auditor`: examples, and every command by purpose."""
    from auditor.core import entries

    words = entries("auditor.cli", "overview.toml")
    lines = [words["before"]]
    for purpose, group in COMMANDS.items():
        rows = (f"  {name:<10} {_first_line(name, home)}" for name, home in group.items())
        lines.append("\n".join([f"{purpose}:", *rows, ""]))
    return "\n".join([*lines, words["after"]])


def _first_line(name: str, home: str) -> str:
    """Return the first line of the docstring of a command, without an import of its module."""
    source = (pkgutil.get_data("auditor.cli", f"{home}.py") or b"").decode()
    result = re.search(rf'^def {name}\([^"]*?:\n    r?"""(.*)$', source, re.MULTILINE)
    return result[1] if result else ""


def _install_completion() -> int:
    """Write the completion of this shell for all commands."""
    from cyclopts import App

    from auditor.cli import parsing
    from auditor.core import validate

    whole = App(name="auditor", help="", version=__version__)
    for name in _HOMES:
        whole.command(parsing.parser(command_of(name), name))
    try:
        place = whole.install_completion()
    except (RuntimeError, OSError, ValueError) as error:
        raise InputError(f"completion cannot be installed here: {validate.one_line(error)}.") from None
    console.say(f"Completion is installed in {place}; open a new shell.\n")
    return ExitCode.DONE


def _dispatch(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in _HELP:
        console.say(overview())
        return ExitCode.DONE
    if words[0] == "--version":
        console.say(f"auditor {__version__}\n")
        return ExitCode.DONE
    if words[0] == "--install-completion":
        return _install_completion()
    name, typed = words[0], words[1:]
    command = command_of(name)
    wanted = [word for word in typed[: (*typed, "--").index("--")] if word in _HELP]
    if wanted:
        from auditor.cli import parsing

        console.say(parsing.help_text(command, name, rare="--help-all" in wanted))
        return ExitCode.DONE
    try:
        return _run(name, command, typed)
    except KeyboardInterrupt as stop:
        console.explain([str(stop) or "interrupted."])
        raise SystemExit(INTERRUPTED) from None


def _run(name: str, command: Callable[..., Any], typed: Sequence[str]) -> int:
    """Run a command with the settings of a file, which the typed options override."""
    from auditor.cli import parsing, settings

    settings.forget()
    tokens, context = settings.tokens_of(command_of, _HOMES, name, parsing.typed_texts(typed))
    values = parsing.parsed(
        command, name, [*tokens, *typed], lambda: {home: command_of(home) for home in _HOMES}
    )
    if context is not None:
        values.setdefault("context", context)
    settings.announce_use(quiet=bool(values.get("quiet")))
    values |= {
        key: without_credentials(x)
        for key, x in values.items()
        if type(x) is str and not (name == "collect" and key == "model")
    }
    console.cut_places([*values.values(), Path(str(values.get("model")))])
    if "fail_if" in values:
        values["fail_if"] = tuple(dict.fromkeys(values["fail_if"]))
    code = command(**parsing.packed(command, values))
    settings.explain_stop(code)
    return int(code or ExitCode.DONE)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; an error is one sentence on standard error with code 2."""
    console.remember(arguments)
    try:
        return _dispatch(arguments)
    except Exception as error:  # noqa: BLE001 - the last handler that can turn an error into a sentence
        _complain(error, arguments)
        return ExitCode.BAD_INPUT


def _complain(error: Exception, arguments: Sequence[str]) -> None:
    """Print an error as one sentence; with --debug, print the traceback first."""
    from auditor.cli import settings
    from auditor.core import validate

    if console.debugging():
        console.explain(_frames(error))
    sentence = validate.shortened(" ".join(_sentence(error).split()), most=_LONGEST)
    trusted = [f"--set=trusted-types={name}" for name in getattr(error, "types", ())]
    line = without_credentials(shlex.join(["auditor", *arguments, *trusted]))
    more = f" To trust them, run: {line}" if trusted else ""
    console.explain([f"error: {settings.located(sentence)}{more}"])


def _frames(error: BaseException) -> list[str]:
    """Return the tracebacks of an error and its causes, with types but without messages, which may quote records."""
    cause = error.__cause__ or error.__context__
    before = [] if cause in (None, error) else _frames(cause)
    lines = [line.splitlines()[0] for line in traceback.format_tb(error.__traceback__)]
    return [*before, "Traceback (most recent call last):", *lines, type(error).__qualname__]


def _sentence(error: Exception) -> str:
    if isinstance(error, AuditorError):
        return str(error)
    if isinstance(error, MemoryError):
        reason = str(error) or "none is left"
        return f"there is not enough memory ({reason}); free some, or use fewer records."
    options = isinstance(error, OSError | ImportError)
    words = error if options else "its message is left out, since it may quote records"
    return f"unexpected {type(error).__name__}: {words} (this is a bug; --debug shows the traceback)"


def main() -> None:
    """Run the command line on the process's own arguments."""
    console.forgive_unknown_signs()
    # Modules and figures are millions of permanent small objects: garbage collection among them took a tenth of the time.
    gc.set_threshold(500_000)
    console.keep_warnings_inside()
    sys.exit(run(sys.argv[1:]))
