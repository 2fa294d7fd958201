"""An error as one sentence, which calls arguments by the names of their options."""

import re
import traceback
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from auditor.cli import console, settings
from auditor.core import validate
from auditor.core.errors import AuditorError
from auditor.core.registry import entries

_LONGEST = 1000  # characters of a sentence: nobody reads a cell of a million letters that is quoted


def complain(error: Exception) -> None:
    """Say in one sentence what went wrong; with --debug, show the traceback first."""
    if console.debugging():
        console.explain(_frames(error))
    context = getattr(error, "ctx", None)
    if context is not None:
        settings.keep_what_counts(context)
    sentence = validate.shortened(" ".join(_sentence(error).split()), most=_LONGEST)
    console.explain([f"error: {settings.located(sentence)}"])


def _frames(error: BaseException) -> list[str]:
    """Where an error was raised, its cause first, and of what kind each is: what it says may quote records."""
    cause = error.__cause__ or error.__context__
    before = [] if cause in (None, error) else _frames(cause)
    lines = [line.splitlines()[0] for line in traceback.format_tb(error.__traceback__)]
    return [*before, "Traceback (most recent call last):", *lines, type(error).__qualname__]


def _sentence(error: Exception) -> str:
    if isinstance(error, AuditorError):
        return with_options(str(error))
    if hasattr(error, "format_message"):
        return _of_parser(error)
    if isinstance(error, MemoryError):
        reason = str(error) or "none is left"
        return f"there is not enough memory ({reason}); free some, or take fewer records."
    known = isinstance(error, OSError | ImportError)
    words = error if known else "its words, which may quote records, are left out"
    return f"unexpected {type(error).__name__}: {words} (this is a bug; --debug shows the traceback)"


def _of_parser(error: Any) -> str:
    """What the parser could not take: the option, what it must be, what came, and the nearest."""
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    if context is not None and hasattr(error, "option_name") and hasattr(error, "possibilities"):
        told = _no_such_option(error.option_name, context)
    elif param is None:
        told = error.format_message()
    else:
        told = _about(param, error)
    command = "auditor" if context is None else context.command_path
    return f"{told}{'' if told.endswith(('.', '?')) else '.'} See '{command} --help'."


def _no_such_option(name: str, context: Any) -> str:
    known = [name for param in context.command.get_params(context) for name in param.opts if name[:1] == "-"]
    meant = validate.nearest(f"--{name.lstrip('-')}", known)
    return f"no such option {name!r}{validate.did_you_mean(meant)}"


def _about(param: Any, error: Any) -> str:
    name = param.opts[0] if param.param_type_name == "option" else param.metavar
    if not error.message:
        words = (param.help or "it has no default").rstrip(".")
        return f"{name} must be given: {words[:1].lower()}{words[1:]}."
    found: list[Any] = getattr(error.__cause__, "errors", list)()
    got = f" cannot be {found[0]['input']!r}" if found else ""
    reason = error.message.removeprefix("Value error, ")
    return f"{name}{got}: {reason[:1].lower()}{reason[1:]}"


# --- How the command line spells what a sentence calls by its Python name ---

# Set when a command begins: the names of its options, as parameters.
OPTIONS: ContextVar[tuple[str, ...]] = ContextVar("options", default=())

# What is called otherwise on the command line.
_OTHERWISE = entries("auditor.cli", "otherwise.toml")
_QUOTED = r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|(?<!\w)"(?:[^"\\]|\\.)*"(?!\w)"""
_TWICE = r"(?:[a-z_]+=[\w.()]*|[a-z]+_[a-z_]+) \((--[a-z-]+(?: [a-z-]+)?)(?: on the command line)?\)"


def with_options(sentence: str, options: Iterable[str] = ()) -> str:
    """Name arguments as the command line does, but in quoted text, which is a value that somebody gave.

    An argument is what stands before an equals sign, begins a sentence about what it must be, or is followed by its option
    in brackets.

    Args:
        sentence: What a function says of its arguments.
        options: Names of the options, as parameters; default: of the command that runs.

    >>> with_options("label 'classes=' is none; name the classes with classes=.", ["classes"])
    "label 'classes=' is none; name the classes with --classes."
    """
    names = "|".join(options or OPTIONS.get()) or "(?!)"
    otherwise = "|".join(map(re.escape, _OTHERWISE))
    keyword = rf"({names})=(?:True\b)?((?=[\w'\"]))?"
    subject = rf"^({names})(?= (?:must|says|needs)\b)"
    pattern = rf"{_QUOTED}|\b{_TWICE}|\b({otherwise})|\b{keyword}|{subject}"

    def spell(found: re.Match[str]) -> str:
        option, phrase, name, value, first = found.groups()
        if name or first:
            return f"--{(name or first).replace('_', '-')}{'' if value is None else ' '}"
        return option or _OTHERWISE.get(phrase, found[0])

    return re.sub(pattern, spell, sentence)
