"""What was meant as settings and is not read as such: files and tables whose names are nearly right.

Gates live in settings, so that a slip in a name must not switch them off in silence.
"""

import difflib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor import _bounded
from auditor.commands.settable import options_of, table_of
from auditor.errors import InputError

__all__ = ["file_nearly_right", "table_nearly_right"]

_NAMES = ("auditor", "privacy-auditor")  # of the command, and of the package
_OTHER_FORMATS = ("cfg", "conf", "ini", "json", "yaml", "yml")
_ONE_SLIP = 0.85  # one letter wrong, missing, too many or in another place ...
_TWO_SLIPS = 0.8  # ... or two missing, as in "audit", which can also be another tool's
_LARGEST_FILE = 1_000_000

Command = Callable[..., Any]


def table_nearly_right(raw: Mapping[str, Any], *, commands: Sequence[Command]) -> str | None:
    """Return the table of a pyproject.toml that was probably meant as ``tool.auditor``, if there is one.

    >>> table_nearly_right({"tool": {"auditro": {}, "black": {}}}, commands=())
    'tool.auditro'
    """
    tool = raw.get("tool")
    inside = tool if isinstance(tool, dict) else {}
    for name, table in inside.items():
        if name != "auditor" and _is_meant(name, table, commands):
            return f"tool.{name}"
    for name, table in raw.items():
        if name in ("tool", "project", "build-system") or not isinstance(table, dict):
            continue
        if _is_meant(name, table, commands):
            return name
        if _likeness(name, ("tool",)) >= _TWO_SLIPS:
            for inner, part in table.items():
                if _is_meant(inner, part, commands):
                    return f"{name}.{inner}"
    return None


def _is_meant(name: str, table: Any, commands: Sequence[Command]) -> bool:
    if not isinstance(table, dict):
        return False
    likeness = _likeness(name, _NAMES)
    return likeness >= _ONE_SLIP or (likeness >= _TWO_SLIPS and _speaks_of_us(table, commands))


def _likeness(name: str, names: Iterable[str]) -> float:
    plain = name.casefold().strip().replace("_", "-").replace(" ", "-")
    return max(difflib.SequenceMatcher(None, plain, known, autojunk=False).ratio() for known in names)


def _speaks_of_us(table: Mapping[str, Any], commands: Sequence[Command]) -> bool:
    keys = {key.casefold().replace("_", "-") for key in table}
    return any(table_of(command) in keys or keys & options_of(command).keys() for command in commands)


def file_nearly_right(folder: Path, *, commands: Sequence[Command]) -> Path | None:
    """Return the file of a folder that was probably meant as ``auditor.toml``, if there is one.

    A JSON file that has no table for a command is none: a result may be called auditor.json.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:  # which nobody can list
        return None
    for name in names:
        plain = name.casefold().removesuffix(".txt").lstrip(".")
        stem, _, suffix = plain.rpartition(".")
        near = stem == "auditor" if suffix in _OTHER_FORMATS else _likeness(stem, _NAMES) >= _ONE_SLIP
        if suffix not in ("toml", *_OTHER_FORMATS) or not near or name == "auditor.toml":
            continue
        path = folder / name
        if not path.is_dir() and (suffix != "json" or _holds_settings(path, commands)):
            return path
    return None


def _holds_settings(path: Path, commands: Sequence[Command]) -> bool:
    """Whether a JSON file does; one that cannot be read may."""
    try:
        content = _bounded.read_bytes(path, what="file", most=64 * _LARGEST_FILE)
        if len(content) > _LARGEST_FILE:
            return False
        raw = json.loads(content)
    except (InputError, ValueError, RecursionError):
        return True
    if not isinstance(raw, dict) or "schema_version" in raw:
        return False
    tables = {key for key, value in raw.items() if isinstance(value, dict)}
    return "fail-if" in raw or "fail_if" in raw or bool(tables & {table_of(command) for command in commands})
