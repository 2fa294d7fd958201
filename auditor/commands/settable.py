"""What a file can set of a command: its own options, read from its signature, so that there is one list of them."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from typer.models import ArgumentInfo, OptionInfo

from auditor import _validate
from auditor.errors import InputError

__all__ = ["Option", "arguments_of", "options_of", "table_of"]

# Why these belong on the command line alone.
_REFUSED = {
    "debug": "it is read before any file",
    "factory": "it runs code",
    "ray-address": "machines that work for you run code",
    "trust-pickle": "it lets a model run code",
    "trusted-type": "it lets a model run code",
}
# Texts that are paths; a dash is standard output.
_TEXT_PATHS = ("json", "markdown", "junit", "sarif")
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
        return self.kind is Path or self.key in _TEXT_PATHS

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
            return _validate.known(where, value, self.choices)
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


def options_of(command: Callable[..., Any]) -> Mapping[str, Option]:
    """Return the options of a command by their keys, in its order."""
    found = {}
    for name, parameter, base, about in _parameters(command):
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


def arguments_of(command: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a command's positional arguments."""
    return tuple(name for name, *_, about in _parameters(command) if isinstance(about, ArgumentInfo))


def table_of(command: Callable[..., Any]) -> str:
    """Return the name of a command, which is that of its table."""
    return command.__name__.replace("_", "-")


def _parameters(command: Callable[..., Any]) -> list[tuple[str, inspect.Parameter, Any, Any]]:
    hints = typing.get_type_hints(command, include_extras=True)
    return [
        (name, parameter, *typing.get_args(hints[name])[:2])
        for name, parameter in inspect.signature(command).parameters.items()
        if typing.get_origin(hints.get(name)) is typing.Annotated
    ]


def _parts(base: Any) -> tuple[Any, ...]:
    return typing.get_args(base) if isinstance(base, types.UnionType) else (base,)
