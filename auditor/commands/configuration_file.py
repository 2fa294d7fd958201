"""The file with settings: read and checked as a whole, before any work.

It is `auditor.toml`, or the table `[tool.auditor]` of `pyproject.toml`; where they are looked for is in
`configuration_search`. Each command has a table, whose keys are its long options without dashes.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor import _bounded, _validate
from auditor.commands.settable import Option, arguments_of, options_of, table_of
from auditor.errors import InputError

__all__ = ["PROJECT", "File", "named_file", "parsed", "project_tables", "read", "validated"]

_LARGEST_FILE = 64_000
_LARGEST_PROJECT = 1_000_000  # it is not ours alone
_PARTS = 32  # of a dotted key: time grows with their square
_PART = r"""(?:"(?:[^"\\\n]|\\.){0,99}+"|'[^'\n]{0,99}+'|(?<![\w-])[\w-]{1,99}+)"""  # longer ones are few
_DOTTED = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{_PARTS}}}", re.ASCII)
PROJECT = "pyproject.toml"

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
    if table == "tool" and not prefix and "auditor" in settings:
        return "[tool.auditor.audit] is for pyproject.toml; here its name is [audit]."
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
    raw = parsed(path, read(path))
    if path.name != PROJECT:
        return File(path, "", raw)
    tables = project_tables(raw)
    if tables is None:
        raise InputError(f"configuration file {str(path)!r} has no table [tool.auditor].")
    return File(path, "tool.auditor.", tables)


def project_tables(raw: Mapping[str, Any]) -> Any:
    """Return what stands in ``[tool.auditor]``, if it is there."""
    tool = raw.get("tool")
    return tool.get("auditor") if isinstance(tool, dict) else None


def read(path: Path) -> bytes:
    """Return the content of a file with settings."""
    most = _LARGEST_PROJECT if path.name == PROJECT else _LARGEST_FILE
    return _bounded.read_bytes(path, what="configuration file", most=most)


def parsed(path: Path, content: bytes) -> dict[str, Any]:
    """Return the tables of a file, if it is TOML."""
    named = f"configuration file {str(path)!r}"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{named} is not text in UTF-8 (byte {error.start}); save it as UTF-8.") from None
    dotted = _DOTTED.search(text)
    if dotted is not None:
        line = text.count("\n", 0, dotted.start()) + 1
        raise InputError(f"{named} has a key of more than {_PARTS} parts (at line {line}).")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{named} is not valid TOML: {_validate.one_line(error)}.") from None
    except RecursionError:
        raise InputError(f"{named} is nested too deeply to be a configuration.") from None
    except ValueError:  # the one thing that Python takes for too long
        raise InputError(f"{named} has a whole number of thousands of digits.") from None
