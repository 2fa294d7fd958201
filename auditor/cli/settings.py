"""Settings from a configuration file: defaults of the command line, which results record.

The file is `auditor.toml`, or the table `[tool.auditor]` of `pyproject.toml`. Each command has a table, whose keys are its
long options without dashes. The command line overrides the file, and the file overrides the defaults. Paths are relative to
the folder of the file. Every other value is parsed by its option, as if it were typed.

The file is reported to a terminal before the work, in the provenance of the result, in an error about one of its
settings, and with a nonzero exit code if the file contains gates or a claim.
"""

import json
import os
import re
import reprlib
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from auditor.cli import console
from auditor.cli.parsing import Option, options_of
from auditor.core import ExitCode, InputError, read_bytes, shown_place, validate

T = TypeVar("T", bound=Any)

# Options for the command line only, with the reason.
REFUSED = {
    "config": "it names the file itself",
    "no-config": "it disables the file itself",
    "debug": "it is read before any file",
    "factory": "it runs code",
    "ray-address": "machines that work for you run code",
    "trust-pickle": "it lets a model run code",
    "trusted-types": "it lets a model run code",
}
_COMMON = ("policy", "severity")  # keys outside the tables, for the commands about one model
_OF_MODELS = ("audit", "report")
_TABLE = "context"  # a key that may be a table
# Options that can stop a pipeline, besides claims.
_OF_TRAINING = {"noise-multiplier", "sampling-rate", "steps", "schedule", "sampler"}
_STOPPING = {"policy", "fail-if", "fail-if-worse"} | _OF_TRAINING
# Options that write a file; ``records`` writes one in ``audit`` only, and elsewhere names an input table.
OUTPUTS = {"out", "coins", "records", "json", "html", "markdown", "junit", "sarif", "model-card"}


@dataclass(frozen=True)
class _Used:
    """A configuration file, and the settings that a command uses.

    Attributes:
        file: Path relative to the current directory; empty without a file.
        table: Name of the table of the command, in brackets.
        settings: The used keys with their values in the file; paths and addresses are shortened as in a result.
        tables: The table that each used key is in.
        overridden: Keys that the command line overrides.
    """

    file: str
    table: str
    settings: Mapping[str, Any]
    tables: Mapping[str, str]
    overridden: tuple[str, ...] = ()

    def tables_of(self, keys: Iterable[str]) -> str:
        """Return the tables of these keys, in words; that of the command without a key."""
        return " and ".join(dict.fromkeys(self.tables[key] for key in keys)) or self.table

    def place(self, keys: Iterable[str]) -> str:
        """Return the place of these keys, in words."""
        return f"{self.tables_of(keys)} of {self.file!r}"


_NONE = _Used("", "", {}, {})
_USED: ContextVar[_Used] = ContextVar("used", default=_NONE)


def tokens_of(
    command_of: Callable[[str], Callable[..., Any]], names: Iterable[str], name: str, typed: Mapping[str, str]
) -> tuple[list[str], Any]:
    """Return the settings of a file for a command, as typed arguments, and the context if it is a table.

    Args:
        command_of: Function from a name to the command.
        names: Names of all commands.
        name: Name of the command that runs.
        typed: Text of each typed option. Typed options override the file; typed gates are added to its gates.

    Raises:
        InputError: The file cannot be read, a value is invalid, or an output is outside its folder.
    """
    if "config" in typed and "no-config" in typed:
        raise InputError("--config and --no-config contradict each other; give one of the two.")
    if typed.get("config") == "":
        raise InputError("--config needs a value, got none.")
    file = None
    if "no-config" not in typed:
        file = _named(Path(typed["config"])) if "config" in typed else nearest()
    if file is None:
        return [], None
    by_key = {item.key: item for item in options_of(command_of(name))}
    tables = _checked(file, {options: command_of(options) for options in names})
    mine, table = tables.get(name, {}), f"[{file.prefix}{name}]"
    own = {key: tables[key] for key in _COMMON if key in tables and name in _OF_MODELS} | dict(mine)
    counts = {key: value for key, value in own.items() if key == "fail-if" or key not in typed}
    recorded_values, tokens = dict(counts), []
    top = f"[{file.prefix[:-1]}]" if file.prefix else "the top level"
    places = {key: table if key in mine else top for key in counts}
    for key, value in counts.items():
        if key == _TABLE and isinstance(value, dict):
            continue
        item = by_key[key]
        is_path = Path in (item.kind, *getattr(item.kind, "__args__", ()))
        where = f"configuration file {str(file.path)!r}: the key {key!r} in {'table ' * (key in mine)}{places[key]}"
        parts = _as_texts(item, value, where=where)
        if is_path:
            parts = [part if part == "-" else str(file.path.parent / part) for part in parts]
            _refuse_outside(file, name, key, parts, table)
        if isinstance(value, str) and (is_path or "://" in value):
            recorded_values[key] = shown_place(value)
        tokens += [item.spelled, *parts] if item.count else [y for x in parts for y in _as_typed(item, x)]
    overridden = tuple(key for key in own if key not in counts)
    _USED.set(_Used(str(file.path), table, recorded_values, places, overridden))
    return tokens, counts.get(_TABLE) if isinstance(counts.get(_TABLE), dict) else None


def _as_texts(item: Option, value: Any, *, where: str) -> list[str]:
    """Return a setting as texts of the command line."""
    parts = value if isinstance(value, list) and item.repeats else [value]
    if any(isinstance(part, dict | list) or isinstance(part, bool) != item.is_flag for part in parts):
        wanted = "true or false" if item.is_flag else "one value, neither true nor false"
        wanted = "a list of texts" if item.repeats else wanted
        raise InputError(f"{where} must be {wanted}, got {reprlib.repr(value)}.")
    return [str(part) for part in parts]


def _as_typed(item: Option, part: str) -> list[str]:
    if item.is_flag:
        return [item.spelled] if part == "True" else []
    return [part] if "argument" in item.about else [f"{item.spelled}={part}"]


def _refuse_outside(file: "File", command: str, key: str, paths: Sequence[str], table: str) -> None:
    """Refuse an output outside the folder of the file, after resolving links; the command line may name one."""
    if key not in OUTPUTS or (key == "records" and command != "audit"):
        return
    folder = file.path.parent.resolve()
    for path in paths:
        if path != "-" and not Path(path).resolve().is_relative_to(folder):
            raise InputError(
                f"configuration file {str(file.path)!r}: the key {key!r} in table {table} must name a file in the folder of"
                f" the configuration file, got {path!r}; name one there, or give --{key} on the command line."
            )


# --- The file: search, reading and complete validation, before any work ---
#
# Settings come from the nearest folder with `auditor.toml`, or with the table `[tool.auditor]` in `pyproject.toml`; settings
# of several files are never combined. The search includes, and ends with, the first folder that is the root of a repository
# (it contains `.git`), the home folder or the root of the file system.

OWN, _PROJECT = "auditor.toml", "pyproject.toml"
_LARGEST = 64_000  # bytes
_LARGEST_PROJECT = 1_000_000  # shared with other tools
_PARTS = 32  # maximum parts of a dotted key: time and memory of parsing are quadratic
_PART = r"""(?:"(?:[^"\\\n]|\\.){0,99}+"|'[^'\n]{0,99}+'|(?<![\w-])[\w-]{1,99}+)"""  # a file has room for few longer ones
_DOTTED = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{_PARTS}}}", re.ASCII)


@dataclass(frozen=True)
class File:
    """A configuration file and its unchecked content.

    Attributes:
        path: Path as typed.
        prefix: Prefix of its tables: ``tool.auditor.`` in pyproject.toml.
        tables: Tables of all commands.
    """

    path: Path
    prefix: str
    tables: Any


def nearest() -> File | None:
    """Return the nearest configuration file, if there is one.

    Raises:
        InputError: A folder on the path has two such files, or one that cannot be read; or the file belongs to another
            user, in a folder where everyone can write.
    """
    for depth, folder in enumerate(_folders()):
        result = _in_folder(folder)
        if result is not None:
            if depth:
                _check_owner(result.path, folder)
            return result
    return None


def _folders() -> Iterator[Path]:
    """Yield the folders to search, relative to the current one."""
    try:
        here = Path.cwd()
    except OSError:  # the folder was deleted
        return
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # no home folder
        home = None
    for depth, folder in enumerate((here, *here.parents)):
        yield Path(*[os.pardir] * depth)
        if folder == home or os.path.lexists(folder / ".git"):
            return


def _in_folder(folder: Path) -> File | None:
    own, project = folder / OWN, folder / _PROJECT
    of_project = _read(project) if os.path.isfile(project) else None  # noqa: PTH113 - no error without permission
    if not os.path.lexists(own):
        return of_project
    if of_project is not None:
        raise InputError(
            f"both {str(own)!r} and [tool.auditor] in {str(project)!r} contain settings; remove one, or choose one with"
            " --config."
        )
    return _named(own)


def _check_owner(path: Path, folder: Path) -> None:
    """Refuse a file of another user in a folder above, such as /tmp: settings choose which files are written."""
    if not hasattr(os, "geteuid"):
        return
    everyone = folder.stat().st_mode & stat.S_IWOTH
    if everyone and path.lstat().st_uid not in (0, os.geteuid()):
        raise InputError(
            f"configuration file {str(path)!r} belongs to another user and is in a folder where everyone can write;"
            " name it with --config to use it, or add --no-config to ignore it."
        )


def _named(path: Path) -> File:
    """Return a file, which must contain settings."""
    result = _read(path)
    if result is None:
        raise InputError(f"configuration file {str(path)!r} has no table [tool.auditor].")
    return result


def _read(path: Path) -> File | None:
    """Return the content of a file; None for a pyproject.toml without our table, which is not checked."""
    most = _LARGEST_PROJECT if path.name == _PROJECT else _LARGEST
    content = read_bytes(path, what="configuration file", most=most)
    named = f"configuration file {str(path)!r}"
    if path.name != _PROJECT:
        return File(path, "", _of_toml(content, named=named))
    tool = _of_toml(content, named=named).get("tool") if b"auditor" in content else None
    if not isinstance(tool, dict) or "auditor" not in tool:
        return None
    return File(path, "tool.auditor.", tool["auditor"])


def table_of(source: Any) -> tuple[Any, str]:
    """Return the content of a small file, JSON by extension or else TOML, or a table unchanged; and its name in errors."""
    if isinstance(source, dict):
        return source, "table [audit.context]"
    from auditor.results.reading import json_value

    named, content = f"context file {str(source)!r}", read_bytes(source, what="context file", most=_LARGEST)
    return (json_value if source.suffix.lower() == ".json" else _of_toml)(content, named=named), named


def _of_toml(content: bytes, *, named: str) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    try:
        text = content.decode("utf-8-sig")
        dotted = _DOTTED.search(text)
        if dotted is not None:
            line = text.count("\n", 0, dotted.start()) + 1
            raise InputError(f"{named} has a key of more than {_PARTS} parts (at line {line}).")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{named} is not text in UTF-8 (byte {error.start}); save it as UTF-8.") from None
    except RecursionError:
        raise InputError(f"{named} is nested too deeply to be a configuration.") from None
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        if isinstance(error, InputError):
            raise
        raise InputError(f"{named} is not valid TOML: {validate.one_line(error)}.") from None


def _checked(file: File, commands: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of a file, each of which must name a command, with options of this command as keys."""
    named = f"configuration file {str(file.path)!r}:"
    if not isinstance(file.tables, dict):
        raise InputError(f"{named} [tool.auditor] must be a table, not a single value.")
    for table, settings in file.tables.items():
        if table in _COMMON:
            continue
        if not isinstance(settings, dict):
            raise InputError(
                f"{named} the key {reprlib.repr(table)} is outside every table, where only {' and '.join(_COMMON)} may be; move"
                f" it below the line [{file.prefix}audit], or the line of another command."
            )
        command = commands[validate.one_of(f"{named} the name of a table", table, commands)]
        options = {item.key: item for item in options_of(command)}
        for key in settings:
            where = f"{named} table [{file.prefix}{table}]"
            if key in REFUSED and key in options:
                raise InputError(
                    f"{where} has the key {key!r}, which cannot be set in a file, because {REFUSED[key]}; give it on"
                    " the command line."
                )
            if key not in options:
                meant = validate.did_you_mean(validate.nearest(key.replace("_", "-").lower(), options))
                raise InputError(
                    f"{where} has the unknown key {reprlib.repr(key)}{meant} 'auditor {table} --help-all' lists the options."
                )
    return file.tables


# --- The used settings: reported to people, recorded in results, and protected from outputs ---


def forget() -> None:
    """Reset the used settings for a new command line."""
    _USED.set(_NONE)


def of_file() -> set[str]:
    """Return the names of the options that this command has from a file."""
    return {key.replace("-", "_") for key in _USED.get().settings}


def used_file() -> tuple[Path, ...]:
    """Return the configuration file of this command, if any, which no output may replace."""
    file = _USED.get().file
    return (Path(file),) if file else ()


def announce_use(*, quiet: bool) -> None:
    """Report the configuration file to a terminal."""
    used = _USED.get()
    if not used.file:
        return
    sets = f"sets {', '.join(used.settings)}" if used.settings else "sets nothing here"
    more = f"; the command line overrides {', '.join(used.overridden)}" if used.overridden else ""
    console.announcer(quiet=quiet)(f"Settings: {used.place(used.settings)} {sets}{more}.")


def explain_stop(code: Any) -> None:
    """Print the gates and claims from a file that may have caused the exit code."""
    used = _USED.get()
    keys = [key for key in used.settings if key in _STOPPING or key.startswith("claim-")]
    if keys and code in (ExitCode.FAILED, ExitCode.NOT_EVALUABLE):
        console.explain([f"Set in {used.place(keys)}: {', '.join(keys)}."])


def recorded(result: T) -> T:
    """Return a result whose provenance records the used settings; the same result without settings.

    Args:
        result: A frozen dataclass with ``provenance``, such as `auditor.AuditResult`.
    """
    used = _USED.get()
    if not used.settings:
        return result
    settings = json.loads(json.dumps(used.settings, default=str))  # TOML has dates
    config = {"file": Path(used.file).name, "table": used.tables_of(used.settings), "settings": settings}
    return replace(result, provenance={**result.provenance, "config": config})


def located(sentence: str) -> str:
    """Return a sentence with the place of its settings, if it names an option that a file sets, or no option."""
    used = _USED.get()
    if not used.settings:
        return sentence
    options = set(re.findall(r"(?<![\w-])--(?:set )?([a-z][a-z-]*[a-z])(?![\w-])", sentence))
    argument = re.match(r"(?:claimed )?([a-z_]+)(?= (?:must|needs|says)\b)", sentence)
    named = options | ({argument[1].replace("_", "-")} if argument else set())
    keys = [key for key in used.settings if key in named]
    if options and not keys:
        return sentence
    place = "with settings from"
    if keys:
        place = f"{' and '.join(map(repr, keys))} {'is' if len(keys) == 1 else 'are'} set in"
    return f"{sentence.rstrip('.')} ({place} {used.place(keys or used.settings)})."
