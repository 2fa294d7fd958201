"""Settings from a file become the defaults of the command line, and results say which did.

The file is `auditor.toml`, or the table `[tool.auditor]` of `pyproject.toml`. Each command has a table, whose keys are its
long options without dashes. The command line wins over the file, and the file over the defaults. Paths are meant from the
file's own folder; whatever else a setting says is read by its option, as if it had been typed.

Which file was used is told: to a terminal before the work, in the result's provenance, beside an error about what the
file sets, and where the exit code stops a pipeline that the file gave gates or a claim.
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
from auditor.core import validate
from auditor.core.errors import ExitCode, InputError, shown_place
from auditor.core.files import read_bytes

T = TypeVar("T", bound=Any)

# Why these belong on the command line alone.
REFUSED = {
    "config": "it names the file itself",
    "no-config": "it is about the file itself",
    "debug": "it is read before any file",
    "factory": "it runs code",
    "ray-address": "machines that work for you run code",
    "trust-pickle": "it lets a model run code",
    "trusted-types": "it lets a model run code",
}
_TABLE = "context"  # what a file may hold as a table of its own
# What can stop a pipeline, beside what is claimed.
_STOPPING = {"fail-if", "fail-if-worse", "noise-multiplier", "sampling-rate", "steps", "schedule", "sampler"}
# What writes a file; ``records`` does in ``audit`` alone, elsewhere it names a table to read.
OUTPUTS = {"out", "coins", "records", "json", "html", "markdown", "junit", "sarif", "model-card"}


@dataclass(frozen=True)
class _Used:
    """A file, and what a command takes from it.

    Attributes:
        file: Its path, as seen from the current directory; empty where none is used.
        table: Of the command, in brackets.
        settings: The keys that count with their values as they stand there, and of a path or an address what a result shows.
        overruled: Keys that the command line overruled.
    """

    file: str
    table: str
    settings: Mapping[str, Any]
    overruled: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where the settings stand, in words."""
        return f"{self.table} of {self.file!r}"


_NONE = _Used("", "", {})
_USED: ContextVar[_Used] = ContextVar("used", default=_NONE)


def tokens_of(
    command_of: Callable[[str], Callable[..., Any]],
    names: Iterable[str],
    name: str,
    typed: Mapping[str, str],
) -> tuple[list[str], Any]:
    """Return what a file of settings says of a command, as one would type it, and the context that it states as a table.

    Args:
        command_of: From a name to the command.
        names: Of all commands.
        name: Of the command that runs.
        typed: The text of each option that was typed. They overrule the file; gates stay, since typed ones are added to them.

    Raises:
        InputError: A file that cannot be read or says what no option takes, or an output outside its folder.
    """
    if "config" in typed and "no-config" in typed:
        raise InputError("--config and --no-config contradict each other; give one of them.")
    if typed.get("config") == "":
        raise InputError("--config needs a value, got none.")
    file = None
    if "no-config" not in typed:
        file = _named(Path(typed["config"])) if "config" in typed else nearest()
    if file is None:
        return [], None
    own = _checked(file, {options: command_of(options) for options in names}).get(name, {})
    by_key = {item.key: item for item in options_of(command_of(name))}
    counts = {key: value for key, value in own.items() if key == "fail-if" or key not in typed}
    shown, tokens = dict(counts), []
    table = f"[{file.prefix}{name}]"
    for key, value in counts.items():
        if key == _TABLE and isinstance(value, dict):
            continue
        item = by_key[key]
        is_path = Path in (item.kind, *getattr(item.kind, "__args__", ()))
        where = f"configuration file {str(file.path)!r}: the key {key!r} in table {table}"
        parts = _said(item, value, where=where)
        if is_path:
            parts = [part if part == "-" else str(file.path.parent / part) for part in parts]
            _refuse_outside(file, name, key, parts, table)
        if isinstance(value, str) and (is_path or "://" in value):
            shown[key] = shown_place(value)
        tokens += [item.spelled, *parts] if item.count else [y for x in parts for y in _as_typed(item, x)]
    _USED.set(_Used(str(file.path), table, shown, tuple(key for key in own if key not in counts)))
    return tokens, counts.get(_TABLE) if isinstance(counts.get(_TABLE), dict) else None


def _said(item: Option, value: Any, *, where: str) -> list[str]:
    """A setting as texts that the command line would say."""
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
    """Refuse an output outside the folder of the file, links followed; the command line may name one."""
    if key not in OUTPUTS or (key == "records" and command != "audit"):
        return
    folder = file.path.parent.resolve()
    for path in paths:
        if path != "-" and not Path(path).resolve().is_relative_to(folder):
            raise InputError(
                f"configuration file {str(file.path)!r}: the key {key!r} in table {table} must name a file in the folder of"
                f" the configuration file, got {path!r}; name one there, or give --{key} on the command line."
            )


# --- The file: where it is looked for, read and checked as a whole, before any work ---
#
# The nearest folder that has `auditor.toml`, or the table `[tool.auditor]` in its `pyproject.toml`, decides alone: settings
# of several files are never mixed. The search ends with the first folder that is the root of a repository (it has `.git`),
# the home folder or the root of the file system, which is looked at too.

OWN, _PROJECT = "auditor.toml", "pyproject.toml"
_LARGEST = 64_000  # bytes
_LARGEST_PROJECT = 1_000_000  # it is not ours alone
_PARTS = 32  # of a dotted key: time grows with their square
_PART = r"""(?:"(?:[^"\\\n]|\\.){0,99}+"|'[^'\n]{0,99}+'|(?<![\w-])[\w-]{1,99}+)"""  # longer ones are few
_DOTTED = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{_PARTS}}}", re.ASCII)


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


def nearest() -> File | None:
    """Return the nearest file with settings, if there is one.

    Raises:
        InputError: A folder on the way has two such files, or one that cannot be read; or the file is somebody else's, in
            a folder where everyone can write.
    """
    for depth, folder in enumerate(_folders()):
        result = _in_folder(folder)
        if result is not None:
            if depth:
                _check_owner(result.path, folder)
            return result
    return None


def _folders() -> Iterator[Path]:
    """The folders to look in, as seen from the current one."""
    try:
        here = Path.cwd()
    except OSError:  # somebody deleted it
        return
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # there is none
        home = None
    for depth, folder in enumerate((here, *here.parents)):
        yield Path(*[os.pardir] * depth)
        if folder == home or os.path.lexists(folder / ".git"):
            return


def _in_folder(folder: Path) -> File | None:
    own, project = folder / OWN, folder / _PROJECT
    of_project = _read(project) if os.path.isfile(project) else None  # noqa: PTH113 - no error where nobody may look
    if not os.path.lexists(own):
        return of_project
    if of_project is not None:
        raise InputError(
            f"both {str(own)!r} and [tool.auditor] in {str(project)!r} hold settings; remove one, or say which with"
            " --config."
        )
    return _named(own)


def _check_owner(path: Path, folder: Path) -> None:
    """Refuse what another user put above us, as into /tmp: settings say which files are written."""
    if not hasattr(os, "geteuid"):
        return
    everyone = folder.stat().st_mode & stat.S_IWOTH
    if everyone and path.lstat().st_uid not in (0, os.geteuid()):
        raise InputError(
            f"configuration file {str(path)!r} belongs to another user and stands in a folder where everyone can write;"
            " name it with --config if it is meant, or read none with --no-config."
        )


def _named(path: Path) -> File:
    """Return a file that holds settings."""
    result = _read(path)
    if result is None:
        raise InputError(f"configuration file {str(path)!r} has no table [tool.auditor].")
    return result


def _read(path: Path) -> File | None:
    """Return what a file says; nothing of a pyproject.toml that does not speak of us, which may be as it likes."""
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
    """Return what a small file says, JSON by its ending or else TOML, or a table as it is; and how errors name it."""
    if isinstance(source, dict):
        return source, "table [audit.context]"
    from auditor.results.reading import json_value

    named, content = f"context file {str(source)!r}", read_bytes(source, what="context file", most=_LARGEST)
    return (json_value if source.suffix.lower() == ".json" else _of_toml)(content, named=named), named


def _of_toml(content: bytes, *, named: str) -> dict[str, Any]:
    """Return the tables of a file, if it is TOML."""
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
    except ValueError as error:  # TOMLDecodeError is one; so is a number of thousands of digits
        if isinstance(error, InputError):
            raise
        raise InputError(f"{named} is not valid TOML: {validate.one_line(error)}.") from None


def _checked(file: File, commands: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of a file, if every one is a command's and every key in them an option of it."""
    named = f"configuration file {str(file.path)!r}:"
    if not isinstance(file.tables, dict):
        raise InputError(f"{named} [tool.auditor] must be a table, not a single value.")
    for table, settings in file.tables.items():
        if not isinstance(settings, dict):
            raise InputError(
                f"{named} the key {reprlib.repr(table)} stands outside every table; put it below the line"
                f" [{file.prefix}audit], or that of another command."
            )
        command = commands[validate.known(f"{named} the name of a table", table, commands)]
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


# --- What the command that runs takes from it: told to people, kept in results, and never written over ---


def forget() -> None:
    """Begin a new command line, which has taken nothing from a file yet."""
    _USED.set(_NONE)


def used_file() -> tuple[Path, ...]:
    """Return the file with settings that this command reads, or nothing: no output may take its place."""
    file = _USED.get().file
    return (Path(file),) if file else ()


def tell_what_is_used(*, quiet: bool) -> None:
    """Tell a terminal which file is used."""
    used = _USED.get()
    if not used.file:
        return
    sets = f"sets {', '.join(used.settings)}" if used.settings else "sets nothing here"
    more = f"; the command line overrules {', '.join(used.overruled)}" if used.overruled else ""
    console.announcer(quiet=quiet)(f"Settings: {used.place} {sets}{more}.")


def tell_what_stopped(code: Any) -> None:
    """Tell which gates and claims came from a file, where the exit code may be theirs."""
    used = _USED.get()
    keys = [key for key in used.settings if key in _STOPPING or key.startswith("claim-")]
    if keys and code in (ExitCode.FAILED, ExitCode.NOT_EVALUABLE):
        console.explain([f"Set in {used.place}: {', '.join(keys)}."])


def recorded(result: T) -> T:
    """Return a result whose provenance says what this command took from a file; the same result where that is nothing.

    Args:
        result: A frozen dataclass with ``provenance``, such as `auditor.AuditResult`.
    """
    used = _USED.get()
    if not used.settings:
        return result
    settings = json.loads(json.dumps(used.settings, default=str))  # TOML has dates
    config = {"file": Path(used.file).name, "table": used.table, "settings": settings}
    return replace(result, provenance={**result.provenance, "config": config})


def located(sentence: str) -> str:
    """Return a sentence with the place added, if it speaks of an option that a file has set, or of none by its name."""
    used = _USED.get()
    if not used.settings:
        return sentence
    options = set(re.findall(r"(?<![\w-])--(?:set )?([a-z][a-z-]*[a-z])(?![\w-])", sentence))
    argument = re.match(r"(?:claimed )?([a-z_]+)(?= (?:must|needs|says)\b)", sentence)
    named = options | ({argument[1].replace("_", "-")} if argument else set())
    keys = [repr(key) for key in used.settings if key in named]
    if options and not keys:
        return sentence
    place = (
        f"{' and '.join(keys)} {'is' if len(keys) == 1 else 'are'} set in" if keys else "with settings from"
    )
    return f"{sentence.rstrip('.')} ({place} {used.place})."
