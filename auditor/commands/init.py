"""The command `auditor init`: a file of settings to begin with, every option of an audit explained in it."""

import os
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.commands import console
from auditor.commands import options as given
from auditor.commands.audit import audit
from auditor.commands.configuration_search import search
from auditor.commands.settable import Option, options_of
from auditor.errors import InputError, OutputError
from auditor.report.files import write_all

__all__ = ["init", "text"]

_WIDTH = 100
_HEAD = """\
# Settings of auditor. It reads auditor.toml, or the table [tool.auditor] of pyproject.toml, of the folder where it runs
# or the nearest one above it that has either, up to the root of the repository (which has .git), the home folder or the
# root of the file system. --config FILE names another file, and --no-config reads none.
#
# Each command has a table: [audit], [collect], [claim], ... Its keys are the long options of the command without
# dashes in front. The command line wins over this file; of an option that can be repeated it replaces the whole list.
# Paths are meant from the folder of this file. An unknown table, key or type stops the command with exit code 2.
# Secrets do not belong here: options name the environment variables that hold them.
#
# Take away the # of what you want to set.

[audit]
# For example, a pipeline that stops when the claim is refuted or the certified epsilon is too large:
#
"""
# What most pipelines need; a test reads it as a file and runs it.
EXAMPLE = """\
split = "random"
claim-epsilon = 3.0
claim-delta = 1e-5
fail-if = ["epsilon_bound.clopper_pearson > 3", "verdict == refuted"]
html = "privacy-report.html"
"""
_BODY = """
# All options of `auditor audit`, each with its default, or with a word in capitals where it has none. Other commands
# have tables of their own: 'auditor COMMAND --help' lists their options.
"""
_PLACES = {int: "NUMBER", float: "NUMBER", str: '"TEXT"', Path: '"PATH"'}


def init(
    path: Annotated[Path, typer.Option("--path", metavar="PATH", help="Where the file goes.")] = Path(
        "auditor.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Write a file of settings that sets nothing yet, with every option of an audit explained."""
    if path.name == "pyproject.toml":
        raise InputError(
            "--path must not be pyproject.toml, which holds more than these settings; write auditor.toml and move what"
            " you set to a table [tool.auditor.audit]."
        )
    if os.path.lexists(path) and not force:
        raise OutputError(
            f"output path {str(path)!r} is there already; name another, or replace it with --force."
        )
    hidden = _hidden_by(path)
    write_all({path: text()})
    if not quiet:
        console.say(f"Wrote {path}: it sets nothing until you take away a #.{hidden}\n")


def _hidden_by(path: Path) -> str:
    """What a file in this directory puts out of force, in a sentence: only the nearest one is read."""
    if path != Path("auditor.toml"):
        return ""
    try:
        file = search(commands=(audit,), above=True).file
    except InputError:  # which an audit will tell, if it comes so far
        return ""
    return (
        "" if file is None else f" In this folder it takes the place of {str(file.path)!r}, gates included."
    )


def text() -> str:
    r"""Return the file: an explanation, a short example, and every option of an audit, all of it commented out.

    >>> print(*text().splitlines()[-2:], sep="\n")
    # Print nothing but errors (and JSON, if asked for).
    # quiet = false
    """
    example = "".join(f"# {line}\n" if line else "#\n" for line in EXAMPLE.splitlines())
    entries = [_entry(option) for option in options_of(audit).values() if not option.refusal]
    return _HEAD + example + _BODY + "".join(f"\n{entry}" for entry in entries)


def _entry(option: Option) -> str:
    words = option.help if option.help.endswith((".", "?", ")")) else f"{option.help}."
    if option.choices:
        words += f" One of: {', '.join(option.choices)}."
    lines = textwrap.wrap(words, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    return "\n".join([*lines, f"# {option.key} = {_value(option)}"]) + "\n"


def _value(option: Option) -> str:
    """The default as TOML, or what stands for a value where there is none: in capitals, to be replaced."""
    if option.default is not None:
        return _toml(option.default)
    one = f'"{option.choices[0]}"' if option.choices else _PLACES[Path if option.is_path else option.kind]
    return f"[{one}]" if option.many else one


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else f'"{value}"'
