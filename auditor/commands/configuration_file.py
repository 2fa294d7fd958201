"""The file with settings: found, read and checked as a whole, before any work.

It is `auditor.toml`, or the table `[tool.auditor]` of `pyproject.toml`, in the current directory; or a file by name.
Each command has a table, whose keys are its long options without dashes.
"""

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor import _bounded, _validate
from auditor.commands.settable import Option, arguments_of, options_of, table_of
from auditor.errors import InputError

__all__ = ["File", "found_file", "named_file", "validated"]

_LARGEST_FILE = 1_000_000
_OWN, _PROJECT = "auditor.toml", "pyproject.toml"

Tables = Mapping[str, Mapping[str, Any]]
Command = Callable[..., Any]


@dataclass(frozen=True)
class File:
    """A file that was read, and what it says; nothing of it is checked yet.

    Attributes:
        path: As it was named.
        prefix: Of its tables: ``tool.auditor.`` in pyproject.toml.
        tables: Of all commands.
    """

    path: Path
    prefix: str
    tables: Any

    def named(self) -> str:
        """Return what begins a sentence about it."""
        return f"configuration file {str(self.path)!r}"


def validated(tables: Any, *, named: str, commands: Sequence[Command], prefix: str = "") -> Tables:
    """Return the tables of a file, if every one is a command's and every key in them an option of it, of its kind.

    Raises:
        InputError: A table or key that is unknown, or a value of another kind; the sentence has the nearest known name.
    """
    by_table = {table_of(command): command for command in commands}
    if not isinstance(tables, dict):
        raise InputError(f"{named}: [{prefix.rstrip('.')}] must be a table, not a single value.")
    found = {}
    for table, settings in tables.items():
        if table not in by_table or not isinstance(settings, dict):
            raise InputError(f"{named}: {_no_table(table, settings, by_table, prefix)}")
        where = f"table [{prefix}{table}]"
        found[table] = _checked(settings, by_table[table], named=f"{named}:", where=where)
    return found


def _no_table(table: str, settings: Any, by_table: Mapping[str, Command], prefix: str) -> str:
    shown = _short(table)
    if table in by_table:
        return f"{shown} must be a table, written [{prefix}{table}]."
    if not isinstance(settings, dict):
        homes = [name for name, command in by_table.items() if table.replace("_", "-") in options_of(command)]
        home = homes[0] if homes else "audit"
        return f"the key {shown} stands outside every table; put it below the line [{prefix}{home}]."
    return f"there is no command {shown} that takes settings{_nearest(table, by_table)} Known: {', '.join(by_table)}."


def _checked(settings: Mapping[str, Any], command: Command, *, named: str, where: str) -> dict[str, Any]:
    options, found = options_of(command), {}
    for key, value in settings.items():
        option = options.get(key)
        if option is None:
            raise InputError(
                f"{named} {where} has the unknown key {_short(key)}{_advice(key, command, options)}"
            )
        if option.refusal:
            raise InputError(
                f"{named} the key {key!r} in {where} cannot be set in a file, because {option.refusal};"
                f" give --{key} on the command line."
            )
        found[key] = option.checked(value, where=f"{named} the key {key!r} in {where}")
    return found


def _advice(key: str, command: Command, options: Mapping[str, Option]) -> str:
    if key.replace("-", "_") in arguments_of(command):
        return ": it is an argument, not an option; give it on the command line."
    return f"{_nearest(key.replace('_', '-').lower(), options)} 'auditor {table_of(command)} --help' lists the options."


def _nearest(word: str, known: Mapping[str, Any]) -> str:
    nearest = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else "."


def _short(key: str) -> str:
    return repr(key if len(key) <= 60 else f"{key[:60]}...")  # noqa: PLR2004


def named_file(path: Path) -> File:
    """Return the file of that path; of one called pyproject.toml, its table ``[tool.auditor]``."""
    content = _bounded.read_bytes(path, what="configuration file", most=_LARGEST_FILE)
    if path.name != _PROJECT:
        return File(path, "", _parsed(path, content))
    tables = _in_project(_parsed(path, content))
    if tables is None:
        raise InputError(f"configuration file {str(path)!r} has no table [tool.auditor].")
    return File(path, "tool.auditor.", tables)


def found_file() -> File | None:
    """Return the file of the current directory, if there is one; two are refused, since either could be meant."""
    own, project = Path(_OWN), _of_project(Path(_PROJECT))
    if not os.path.lexists(own):
        return project
    if project is not None:
        raise InputError(
            f"both {_OWN!r} and [tool.auditor] in {_PROJECT!r} hold settings; remove one, or say which with --config."
        )
    return named_file(own)


def _of_project(path: Path) -> File | None:
    if not path.is_file():
        return None
    content = _bounded.read_bytes(path, what="configuration file", most=_LARGEST_FILE)
    if b"auditor" not in content:  # other tools' settings, which may be as they like
        return None
    tables = _in_project(_parsed(path, content))
    return None if tables is None else File(path, "tool.auditor.", tables)


def _in_project(raw: Mapping[str, Any]) -> Any:
    tool = raw.get("tool")
    return tool.get("auditor") if isinstance(tool, dict) else None


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    named = f"configuration file {str(path)!r}"
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{named} is not text in UTF-8 (byte {error.start}); save it as UTF-8.") from None
    except RecursionError:
        raise InputError(f"{named} is nested too deeply to be a configuration.") from None
    except ValueError as error:
        raise InputError(f"{named} is not valid TOML: {_validate.one_line(error)}.") from None
