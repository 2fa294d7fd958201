"""Settings from a file become the defaults of the command line, and results say which did.

The file is `auditor.toml`, or the table `[tool.auditor]` of `pyproject.toml`. Each command has a table, whose keys are its
long options without dashes. The command line wins over the file, and the file over the defaults. Paths are meant from the
file's own folder; whatever else a setting says is read by its option, as if it had been typed.

Which file was used is told: to a terminal before the work, in the result's provenance, beside an error about what the
file sets, and where the exit code stops a pipeline that the file gave gates or a claim.
"""

import inspect
import json
import os
import re
import reprlib
import stat
import tomllib
import typing
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from auditor.cli import console
from auditor.core import validate
from auditor.core.errors import InputError, shown_place
from auditor.core.files import read_bytes
from auditor.core.options import Coverage
from auditor.results.reading import json_value
from auditor.verdicts.gates import ExitCode

if TYPE_CHECKING:
    from auditor.api import AnyResult

T = TypeVar("T", bound="AnyResult")

# Why these belong on the command line alone.
REFUSED = {
    "config": "it names the file itself",
    "no-config": "it is about the file itself",
    "debug": "it is read before any file",
    "factory": "it runs code",
    "ray-address": "machines that work for you run code",
    "trust-pickle": "it lets a model run code",
    "trusted-type": "it lets a model run code",
}
_PATH_OR_TABLE = "context"  # what a file may hold as a table of its own
_WORDS = typing.get_args(Coverage)  # what `--members` may say beside a path
# What writes a file; ``records`` does in ``audit`` alone, elsewhere it names a table to read.
OUTPUTS = {"out", "coins", "records", "json", "html", "markdown", "junit", "sarif", "model-card"}
# What can stop a pipeline.
_STOPPING = {
    *("fail-if", "fail-if-worse", "claim-epsilon", "claim-delta", "claim-mu", "claim-rho", "claim-points"),
    *("claim-adjacency", "claim-unit"),
    *("noise-multiplier", "sampling-rate", "steps", "schedule", "sampler", "fixed-size"),
}


@dataclass(frozen=True)
class _Used:
    """A file, and what a command takes from it.

    Attributes:
        file: Its path, as seen from the current directory; empty where none is used.
        table: Of the command, in brackets.
        settings: Keys with their values as they stand there, and of a path or an address what a result shows: those that count,
            once the command line is read.
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


def chosen(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Apply the settings once --config and --no-config are both read, in whatever order they were typed."""
    known = {**context.params, str(param.name): value}
    if (
        context.parent is not None
        and not context.resilient_parsing
        and {"config", "no_config"} <= known.keys()
    ):
        named, none = (known[name] or context.parent.params.get(name) for name in ("config", "no_config"))
        _apply(context, named, none=bool(none))
    return value


def _apply(context: Any, named: Path | None, *, none: bool) -> None:
    """Make a file's settings the defaults of the options that are read next."""
    if named is not None and none:
        raise InputError("--config and --no-config contradict each other; give one of them.")
    found = None if none else nearest() if named is None else _named(named)
    if found is None:
        return
    commands = context.parent.command.commands
    settings = _checked(found, {name: _options(command) for name, command in commands.items()})
    table = f"[{found.prefix}{context.info_name}]"
    own, options = settings.get(context.info_name, {}), _options(context.command)
    signature = inspect.signature(context.command.callback)
    context.default_map = {}
    for key, value in own.items():
        kind = typing.get_args(signature.parameters[options[key].name].annotation)[0]
        where = f"configuration file {str(found.path)!r}: the key {key!r} in table {table}"
        # What is read by a parser of its own is a path, or something else that the parser knows.
        is_path = Path in (kind, *typing.get_args(kind)) or (kind is Any and value not in _WORDS)
        folder = found.path.parent if is_path else None
        context.default_map[options[key].name] = _typed(options[key], value, where=where, folder=folder)
        if isinstance(value, str) and (is_path or "://" in value):
            own = {**own, key: shown_place(value)}
    _USED.set(_Used(str(found.path), table, own))


def _options(command: Any) -> dict[str, Any]:
    """The options of a command by their keys."""
    return {name[2:]: param for param in command.params for name in param.opts if name.startswith("--")}


def _typed(option: Any, value: Any, *, where: str, folder: Path | None) -> Any:
    """A setting as the command line would say it, so that the option reads it by itself."""
    if option.name == _PATH_OR_TABLE and isinstance(value, dict):
        return value
    several = option.multiple or option.nargs > 1
    parts = value if isinstance(value, list) and several else [value]
    if any(isinstance(part, dict | list) or isinstance(part, bool) != option.is_flag for part in parts):
        wanted = "true or false" if option.is_flag else "one value, neither true nor false"
        wanted = "a list of texts" if option.multiple else wanted
        raise InputError(f"{where} must be {wanted}, got {reprlib.repr(value)}.")
    if option.is_flag:
        return value
    said = [str(part if folder is None or part == "-" else folder / str(part)) for part in parts]
    return said if several else said[0]


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
        found = _in_folder(folder)
        if found is not None:
            if depth:
                _check_owner(found.path, folder)
            return found
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
    found = _read(path)
    if found is None:
        raise InputError(f"configuration file {str(path)!r} has no table [tool.auditor].")
    return found


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


def _checked(file: File, commands: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of a file, if every one is a command's and every key in them an option of it."""
    named = f"configuration file {str(file.path)!r}:"
    commands = {name: options for name, options in commands.items() if "config" in options}
    if not isinstance(file.tables, dict):
        raise InputError(f"{named} [tool.auditor] must be a table, not a single value.")
    for table, settings in file.tables.items():
        if not isinstance(settings, dict):
            raise InputError(
                f"{named} the key {reprlib.repr(table)} stands outside every table; put it below the line"
                f" [{file.prefix}audit], or that of another command."
            )
        options = commands[validate.known(f"{named} the name of a table", table, commands)]
        for key in settings:
            where = f"{named} table [{file.prefix}{table}]"
            if key not in options:
                meant = validate.did_you_mean(validate.nearest(key.replace("_", "-").lower(), options))
                raise InputError(
                    f"{where} has the unknown key {reprlib.repr(key)}{meant} 'auditor {table} --help' lists the options."
                )
            if key in REFUSED:
                raise InputError(
                    f"{where} has the key {key!r}, which cannot be set in a file, because {REFUSED[key]}; give --{key} on"
                    " the command line."
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


def keep_what_counts(context: Any) -> None:
    """Forget settings that the command line overruled; gates stay, since typed ones are added to them."""
    used, options = _USED.get(), _options(context.command)
    sources = {key: context.get_parameter_source(options[key].name) for key in used.settings}
    kept = {
        key: value
        for key, value in used.settings.items()
        if key == "fail-if" or getattr(sources[key], "name", "") == "DEFAULT_MAP"
    }
    _USED.set(replace(used, settings=kept, overruled=tuple(key for key in sources if key not in kept)))


def settled(context: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the gates of the file before those that were typed, which must not weaken a policy.

    Raises:
        InputError: The file would write outside its own folder, links followed; the command line may.
    """
    used, defaults = _USED.get(), context.default_map or {}
    read = set() if context.info_name == "audit" else {"records"}
    for key in (OUTPUTS - read) & used.settings.keys():
        folder, path = Path(used.file).parent.resolve(), defaults[key.replace("-", "_")]
        if path != "-" and not Path(path).resolve().is_relative_to(folder):
            raise InputError(
                f"configuration file {used.file!r}: the key {key!r} in table {used.table} must name a file in the folder of"
                f" the configuration file, got {path!r}; name one there, or give --{key} on the command line."
            )
    gates = [*defaults.get("fail_if", ()), *(given.get("fail_if") or ())]
    return {**given, "fail_if": list(dict.fromkeys(gates))} if gates else given


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
    keys = [key for key in used.settings if key in _STOPPING]
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
    named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?![\w-])", sentence))
    keys = [repr(key) for key in used.settings if key in named]
    if named and not keys:
        return sentence
    told = (
        f"{' and '.join(keys)} {'is' if len(keys) == 1 else 'are'} set in" if keys else "with settings from"
    )
    return f"{sentence.rstrip('.')} ({told} {used.place})."
