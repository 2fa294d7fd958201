"""What the command that runs takes from a file: told to people, kept in results, and never written over."""

import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditor.commands import usage_errors
from auditor.commands.option_names import with_options
from auditor.errors import AuditorError, InputError

__all__ = ["USED", "Used", "located", "used_file"]


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
        _with_place(usage_errors.sentence(error, shown).split(" See 'auditor ")[0], [key], used)
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
