"""The file with settings: what it can set of a command, how it is found, read and checked, and what of it was used.

It is `auditor.toml`, or the table `[tool.auditor]` of `pyproject.toml`. Each command has a table, whose keys are its long
options without dashes: they are read from the command's own declarations, so that there is one list of them.
"""

import difflib
import inspect
import json
import os
import re
import stat
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from typer.models import ArgumentInfo, OptionInfo

from auditor.cli import console
from auditor.cli.console import with_options
from auditor.cli.options import declared
from auditor.core import validate
from auditor.core.errors import AuditorError, InputError
from auditor.results import reading

# --- An option, as a file sets it ---

_Command = Callable[..., Any]

# Why these belong on the command line alone.
_REFUSED = {
    "debug": "it is read before any file",
    "factory": "it runs code",
    "ray-address": "machines that work for you run code",
    "trust-pickle": "it lets a model run code",
    "trusted-type": "it lets a model run code",
}
_WANTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text in quotation marks",
    Path: "a path in quotation marks",
}
_FOUND = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}


@dataclass(frozen=True)
class Option:
    """One option of a command, as a file sets it.

    Attributes:
        key: The long name without dashes in front, such as ``fail-if``.
        name: The parameter of the command's function.
        kind: bool, int, float, str, Path or an enum.
        many: Whether it can be repeated; in a file it is then a list.
        default: What holds without it; none where something else decides.
        help: One or two sentences.
    """

    key: str
    name: str
    kind: type
    many: bool
    default: Any
    help: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it takes, if it takes no others."""
        return tuple(map(str, self.kind)) if issubclass(self.kind, StrEnum) else ()

    @property
    def is_path(self) -> bool:
        """Whether its value is a path, which a file means from its own folder."""
        return self.kind is Path or self.key == "json"  # a text, since a dash is standard output

    @property
    def refusal(self) -> str | None:
        """Why no file can set it, if so."""
        return _REFUSED.get(self.key)

    def checked(self, value: Any, *, where: str) -> Any:
        """Return a value from a file, if it is of the option's kind; its range is the command's own affair.

        Raises:
            InputError: It is of another kind; ``where`` begins the sentence.
        """
        if not self.many:
            return self._one(value, where)
        if not isinstance(value, list):
            raise InputError(
                f"{where} must be a list, since it can be given several times, got {_found(value)}; write it in [ ]."
            )
        return [
            self._one(item, f"{where} (entry {index}, counting from 0)") for index, item in enumerate(value)
        ]

    def _one(self, value: Any, where: str) -> Any:
        if self.choices:
            return validate.known(where, value, self.choices)
        taken = {float: (int, float), Path: (str,)}.get(self.kind, (self.kind,))
        if not isinstance(value, taken) or (isinstance(value, bool) and self.kind is not bool):
            hint = _hint(self.kind, value)
            raise InputError(f"{where} must be {_WANTED[self.kind]}, got {_found(value)}{hint}.")
        return value


def _found(value: Any) -> str:
    if isinstance(value, dict | list):
        return _FOUND[type(value)]
    text = (
        str(value).lower()
        if isinstance(value, bool)
        else repr(value)
        if type(value) in _FOUND
        else str(value)
    )
    return f"{_FOUND.get(type(value), 'a date or time')} ({text if len(text) <= 60 else text[:60] + '...'})"  # noqa: PLR2004


def _hint(kind: type, value: Any) -> str:
    if isinstance(value, str) and kind in (bool, int, float):
        return "; leave out its quotation marks"
    return "; it takes one value" if isinstance(value, list) else ""


def options_of(command: _Command) -> Mapping[str, Option]:
    """Return the options of a command by their keys, in its order."""
    found = {}
    for name, parameter in declared(command).items():
        base, about = typing.get_args(parameter.annotation)
        if not isinstance(about, OptionInfo):
            continue
        long = next((text for text in about.param_decls or () if text.startswith("--")), f"--{name}")
        parts = [part for part in _parts(base) if part is not type(None)]
        many = typing.get_origin(parts[0]) is list
        kind = typing.get_args(parts[0])[0] if many else parts[0]
        default = None if parameter.default is inspect.Parameter.empty else parameter.default
        key = long.lstrip("-").replace("_", "-")
        found[key] = Option(key, name, kind, many, default, about.help or "")
    return found


def _arguments_of(command: _Command) -> tuple[str, ...]:
    """Return the names of a command's positional arguments."""
    return tuple(
        name
        for name, parameter in declared(command).items()
        if isinstance(typing.get_args(parameter.annotation)[1], ArgumentInfo)
    )


def table_of(command: _Command) -> str:
    """Return the name of a command, which is that of its table."""
    return command.__name__.replace("_", "-")


def _parts(base: Any) -> tuple[Any, ...]:
    return typing.get_args(base) if isinstance(base, types.UnionType) else (base,)


# --- The file: read and checked as a whole, before any work ---

_LARGEST_FILE = 64_000
_LARGEST_PROJECT = 1_000_000  # it is not ours alone
_PARTS = 32  # of a dotted key: time grows with their square
_PART = r"""(?:"(?:[^"\\\n]|\\.){0,99}+"|'[^'\n]{0,99}+'|(?<![\w-])[\w-]{1,99}+)"""  # longer ones are few
_DOTTED = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{_PARTS}}}", re.ASCII)
_PROJECT = "pyproject.toml"

_Tables = Mapping[str, Mapping[str, Any]]


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


def validated(tables: Any, *, named: str, commands: Sequence[_Command], prefix: str = "") -> _Tables:
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


def _no_table(table: str, settings: Any, by_table: Mapping[str, _Command], prefix: str) -> str:
    shown = _short(table)
    if table in by_table:
        return f"{shown} must be a table, written [{prefix}{table}]."
    if not isinstance(settings, dict):
        homes = [name for name, command in by_table.items() if table.replace("_", "-") in options_of(command)]
        home = homes[0] if homes else "audit"
        return f"the key {shown} stands outside every table; put it below the line [{prefix}{home}]."
    if table == "tool" and not prefix and "auditor" in settings:
        return "[tool.auditor.audit] is for pyproject.toml; here its name is [audit]."
    return f"there is no command {shown} that takes settings{validate.did_you_mean(validate.nearest(table, by_table))} Known: {', '.join(by_table)}."


def _checked(settings: Mapping[str, Any], command: _Command, *, named: str, where: str) -> dict[str, Any]:
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


def _advice(key: str, command: _Command, options: Mapping[str, Option]) -> str:
    if key.replace("-", "_") in _arguments_of(command):
        return ": it is an argument, not an option; give it on the command line."
    meant = validate.did_you_mean(validate.nearest(key.replace("_", "-").lower(), options))
    return f"{meant} 'auditor {table_of(command)} --help' lists the options."


def _short(key: str) -> str:
    return repr(key if len(key) <= 60 else f"{key[:60]}...")  # noqa: PLR2004


def named_file(path: Path) -> File:
    """Return the file of that path; of one called pyproject.toml, its table ``[tool.auditor]``."""
    raw = _parsed(path, _read(path))
    if path.name != _PROJECT:
        return File(path, "", raw)
    tables = _project_tables(raw)
    if tables is None:
        raise InputError(f"configuration file {str(path)!r} has no table [tool.auditor].")
    return File(path, "tool.auditor.", tables)


def _project_tables(raw: Mapping[str, Any]) -> Any:
    """Return what stands in ``[tool.auditor]``, if it is there."""
    tool = raw.get("tool")
    return tool.get("auditor") if isinstance(tool, dict) else None


def _read(path: Path) -> bytes:
    """Return the content of a file with settings."""
    most = _LARGEST_PROJECT if path.name == _PROJECT else _LARGEST_FILE
    return reading.read_bytes(path, what="configuration file", most=most)


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
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
        raise InputError(f"{named} is not valid TOML: {validate.one_line(error)}.") from None
    except RecursionError:
        raise InputError(f"{named} is nested too deeply to be a configuration.") from None
    except ValueError:  # the one thing that Python takes for too long
        raise InputError(f"{named} has a whole number of thousands of digits.") from None


# --- Where it is looked for: the current directory, then the folders above it, the nearest first ---
#
# The nearest folder that has `auditor.toml`, or the table `[tool.auditor]` in its `pyproject.toml`, decides alone: settings
# of several files are never mixed. The search ends with the first folder that is the root of a repository (it has `.git`),
# the home folder or the root of the file system, which is looked at too.

_OWN = "auditor.toml"
_ADVICE = "--config names another file, and --no-config reads none"


@dataclass(frozen=True)
class _Search:
    """What a search found.

    Attributes:
        file: The nearest file that holds settings, if there is one.
        looked: The files that were looked for, in order, each with what became of it.
        end: The folder in which the search ended, in words.
    """

    file: File | None
    looked: tuple[str, ...]
    end: str

    def sentence(self) -> str:
        """Return all of it in words."""
        words = (
            f"settings: looked for {', '.join(self.looked)}" if self.looked else "settings: looked nowhere"
        )
        return f"{words}; {self.end}."


def search(*, commands: Sequence[_Command], above: bool = False) -> _Search:
    """Return the nearest file with settings.

    Args:
        commands: What a file can configure.
        above: Whether to look only above the current directory.

    Raises:
        InputError: A folder on the way has two such files, one that cannot be read, or one whose name, or the name of
            a table in it, is nearly right; or the file is somebody else's, in a folder where everyone can write.
    """
    looked: list[str] = []
    end = "the current directory is gone"
    for depth, (folder, last) in enumerate(_folders()):
        end = f"the search ended at {last}" if last else end
        if above and not depth:
            continue
        found = _in_folder(folder, looked, commands)
        if found is not None:
            if depth:
                _check_owner(found.path, folder)
            return _Search(found, tuple(looked), f"{str(found.path)!r} is used")
    return _Search(None, tuple(looked), end)


def _folders() -> Iterator[tuple[Path, str]]:
    """The folders to look in, as seen from the current one, each with why it is the last, if it is."""
    try:
        here = Path.cwd()
    except OSError:  # somebody deleted it
        return
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # there is none
        home = None
    for depth, folder in enumerate((here, *here.parents)):
        last = "the root of the file system" if folder == folder.parent else ""
        last = "the home folder" if folder == home else last
        last = "the root of a repository" if os.path.lexists(folder / ".git") else last
        yield Path(*[os.pardir] * depth), last
        if last:
            return


def _in_folder(folder: Path, looked: list[str], commands: Sequence[_Command]) -> File | None:
    own, project = folder / _OWN, folder / _PROJECT
    has_own = os.path.lexists(own)
    of_project = _of_project(project, commands)
    if has_own and of_project is not None:
        raise InputError(
            f"both {str(own)!r} and [tool.auditor] in {str(project)!r} hold settings; remove one, or say which with"
            " --config."
        )
    looked.append(f"{str(own)!r} ({'there' if has_own else 'not there'})")
    there = "not there" if not os.path.lexists(project) else "has no [tool.auditor]"
    looked.append(f"{str(project)!r} ({there if of_project is None else 'has [tool.auditor]'})")
    if has_own:
        return named_file(own)
    if of_project is None:
        near = _file_nearly_right(folder, commands=commands)
        if near is not None:
            raise InputError(
                f"{str(near)!r} looks like settings, which are read from {_OWN!r}, in TOML; rename it ({_ADVICE})."
            )
    return of_project


def _of_project(path: Path, commands: Sequence[_Command]) -> File | None:
    """The settings in a pyproject.toml; one that does not speak of us may be as it likes."""
    if not os.path.isfile(path):  # noqa: PTH113 - which is no error where nobody may look
        return None
    content = _read(path)
    try:
        raw = _parsed(path, content)
    except InputError:
        if b"auditor" in content:
            raise
        return None
    near = _table_nearly_right(raw, commands=commands)
    if near is not None:
        raise InputError(
            f"configuration file {str(path)!r} has the table [{near}], which nothing reads; did you mean [tool.auditor]?"
            f" ({_ADVICE})"
        )
    tables = _project_tables(raw)
    return None if tables is None else File(path, "tool.auditor.", tables)


def _check_owner(path: Path, folder: Path) -> None:
    """Refuse what another user put above us, as into /tmp: settings say which files are written."""
    if not hasattr(os, "geteuid"):
        return
    everyone = folder.stat().st_mode & stat.S_IWOTH
    if everyone and path.lstat().st_uid not in (0, os.geteuid()):
        raise InputError(
            f"configuration file {str(path)!r} belongs to another user and stands in a folder where everyone can write;"
            f" name it with --config if it is meant ({_ADVICE})."
        )


# --- What was meant as settings and is not read as such: files and tables whose names are nearly right ---
#
# Gates live in settings, so that a slip in a name must not switch them off in silence.

_NAMES = ("auditor", "privacy-auditor")  # of the command, and of the package
_OTHER_FORMATS = ("cfg", "conf", "ini", "json", "yaml", "yml")
_ONE_SLIP = 0.85  # one letter wrong, missing, too many or in another place ...
_TWO_SLIPS = 0.8  # ... or two missing, as in "audit", which can also be another tool's
_LARGEST_SLIP = 1_000_000


def _table_nearly_right(raw: Mapping[str, Any], *, commands: Sequence[_Command]) -> str | None:
    """Return the table of a pyproject.toml that was probably meant as ``tool.auditor``, if there is one.

    >>> _table_nearly_right({"tool": {"auditro": {}, "black": {}}}, commands=())
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


def _is_meant(name: str, table: Any, commands: Sequence[_Command]) -> bool:
    if not isinstance(table, dict):
        return False
    likeness = _likeness(name, _NAMES)
    return likeness >= _ONE_SLIP or (likeness >= _TWO_SLIPS and _speaks_of_us(table, commands))


def _likeness(name: str, names: Iterable[str]) -> float:
    plain = name.casefold().strip().replace("_", "-").replace(" ", "-")
    return max(difflib.SequenceMatcher(None, plain, known, autojunk=False).ratio() for known in names)


def _speaks_of_us(table: Mapping[str, Any], commands: Sequence[_Command]) -> bool:
    keys = {key.casefold().replace("_", "-") for key in table}
    return any(table_of(command) in keys or keys & options_of(command).keys() for command in commands)


def _file_nearly_right(folder: Path, *, commands: Sequence[_Command]) -> Path | None:
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


def _holds_settings(path: Path, commands: Sequence[_Command]) -> bool:
    """Whether a JSON file does; one that cannot be read may."""
    try:
        content = reading.read_bytes(path, what="file", most=64 * _LARGEST_SLIP)
        if len(content) > _LARGEST_SLIP:
            return False
        raw = json.loads(content)
    except (InputError, ValueError, RecursionError):
        return True
    if not isinstance(raw, dict) or "schema_version" in raw:
        return False
    tables = {key for key, value in raw.items() if isinstance(value, dict)}
    return "fail-if" in raw or "fail_if" in raw or bool(tables & {table_of(command) for command in commands})


# --- What the command that runs takes from it: told to people, kept in results, and never written over ---


@dataclass(frozen=True)
class Used:
    """A file, and what a command takes from it.

    Attributes:
        file: Its path, as seen from the current directory.
        table: Of the command, in brackets.
        settings: Keys with their values as they stand there: those that count, once the command line is read.
        quoted: The texts by which a sentence can speak of a setting without its option: paths, columns and gates, as
            they are meant.
        names: Keys by the names of their parameters.
        overruled: Keys that the command line overruled.
    """

    file: str
    table: str
    settings: Mapping[str, Any]
    quoted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    overruled: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Return what is taken from the file, and what the command line overruled."""
        words = f"sets {', '.join(self.settings)}" if self.settings else "sets nothing here"
        more = f"; the command line overrules {', '.join(self.overruled)}" if self.overruled else ""
        return f"Settings: {self.table} of {self.file!r} {words}{more}."


USED: ContextVar[Used | None] = ContextVar("used", default=None)


def used_file() -> tuple[Path, ...]:
    """Return the file with settings that this command reads, or nothing: no output may take its place."""
    used = USED.get()
    return () if used is None else (Path(used.file),)


def located(error: Exception, *, arguments: Sequence[str]) -> Exception:
    """Return the error with the file added, if it speaks of an option that a file has set.

    Args:
        error: What went wrong.
        arguments: The command line: what was typed is not the file's.
    """
    used = USED.get()
    if used is None:
        return error
    if not isinstance(error, AuditorError):
        return _of_parser(error, used)
    sentence = str(error)
    keys = _spoken_of(sentence, used, arguments)
    return error if not keys else type(error)(_with_place(sentence, keys, used))


def _spoken_of(sentence: str, used: Used, arguments: Sequence[str]) -> list[str]:
    """The keys that a sentence names as options; where it names no option at all, those whose values it quotes."""
    named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?![\w-])", with_options(sentence)))
    if named:
        return [key for key in used.settings if key in named]
    typed = {word.partition("=")[2] if word.startswith("-") else word for word in arguments}
    return [
        key
        for key in used.settings
        if any(repr(text) in sentence and text not in typed for text in used.quoted.get(key, ()))
    ]


def _with_place(sentence: str, keys: Sequence[str], used: Used) -> str:
    words, verb = " and ".join(f"'{key}'" for key in keys), "is" if len(keys) == 1 else "are"
    return f"{sentence.rstrip('.')} ({words} {verb} set in {used.table} of {used.file!r})."


def _of_parser(error: Any, used: Used) -> Exception:
    """An error about a value that the parser took from the file, as one sentence with the value and the place."""
    param, context = getattr(error, "param", None), getattr(error, "ctx", None)
    key = None if param is None else used.names.get(param.name)
    if param is None or key is None or context is None:
        return error  # type: ignore[no-any-return]
    source = context.get_parameter_source(param.name)
    if source is None or source.name != "DEFAULT_MAP":
        return error  # type: ignore[no-any-return]
    shown = [part for value in _listed(used.settings[key]) for part in (f"--{key}", str(value))]
    return InputError(
        _with_place(console.parser_sentence(error, shown).split(" See 'auditor ")[0], [key], used)
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
