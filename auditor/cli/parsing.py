"""The parser of the command line: a command is a function, and each of its parameters is a dataclass of options."""

import dataclasses
import importlib
import re
import textwrap
import typing
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from inspect import Parameter as Argument, Signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal

from auditor.core import InputError, descriptions, docstring, validate

SET = "--set"  # prefix of rare options
_WIDTH = 100  # maximum columns of a line of help


class Options:
    """A group of options: a frozen dataclass, whose docstring contains the help text of each attribute."""

    title: ClassVar[str | None] = None

    def __init_subclass__(cls, *, title: str | None = None) -> None:
        """Store the title of the group in the help."""
        cls.title = title or cls.title


def option(*, default: Any = None, **more: Any) -> Any:
    """Return a field of a group.

    Args:
        default: Default value of the option.
        more: ``rare=True`` for an option of ``--set``, ``short`` for a letter, ``convert`` for a function of the text.
    """
    return dataclasses.field(default=default, metadata=more)


def argument(metavar: str, *, default: Any = dataclasses.MISSING) -> Any:
    """Return a field of a group for a positional argument, with its name in the help."""
    return dataclasses.field(default=default, metadata={"argument": metavar})


@dataclass(frozen=True)
class Of:
    """A parameter whose options are fields of a dataclass of the package; the command receives the typed ones, by name.

    Attributes:
        options: The dataclass, or its import path if only this command should load it.
        common: Fields with an option of their own; the others are options of ``--set``.
        without: Fields that have no text form, or that the command sets itself.
        title: Title of the group in the help.
        renamed: Other names of fields, where the command has another option with the same name.
    """

    options: Any
    common: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    title: str = ""
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def source(self) -> Any:
        """The dataclass."""
        if not isinstance(self.options, str):
            return self.options
        module, _, name = self.options.rpartition(".")
        return getattr(importlib.import_module(module), name)


class Typed(dict[str, Any]):
    """The typed options of a dataclass of the package, by the names of its fields."""

    def __init__(self, of: Of, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.of = of


@dataclass(frozen=True)
class Option:
    """One option of a command.

    Attributes:
        name: Name in Python.
        kind: Type of its value.
        default: Default value; `dataclasses.MISSING` if the option is required.
        words: Help text.
        title: Title of its group.
        about: Metadata of its field; see `option`.
    """

    name: str
    kind: Any
    default: Any
    words: str
    title: str | None
    about: Mapping[str, Any]

    @property
    def rare(self) -> bool:
        """Whether it is an option of ``--set``."""
        return bool(self.about.get("rare"))

    @property
    def spelled(self) -> str:
        """The option on the command line."""
        return str(self.about.get("argument") or f"{SET}.{self.key}" if self.rare else self.dashed)

    @property
    def key(self) -> str:
        """The name in a configuration file."""
        return self.name.replace("_", "-")

    @property
    def dashed(self) -> str:
        """The name with dashes, or the name of a positional argument."""
        return str(self.about.get("argument", f"--{self.key}"))

    @property
    def is_flag(self) -> bool:
        """Whether it has no value."""
        return self.kind is bool

    @property
    def count(self) -> int | None:
        """Number of values of the option; None for one."""
        parts = typing.get_args(self.kind)
        return len(parts) if typing.get_origin(self.kind) is tuple and ... not in parts else None

    @property
    def repeats(self) -> bool:
        """Whether the option is repeatable."""
        return typing.get_origin(self.kind) in (tuple, list)


@cache
def options_of(command: Callable[..., Any]) -> tuple[Option, ...]:
    """Return the options of a command, in their order."""
    return tuple(item for _, group in _groups(command) for item in _of_group(group))


def packed(command: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command, from the values of the typed options."""
    result: dict[str, Any] = {}
    for name, group in _groups(command):
        own = {item.name: values[item.name] for item in _of_group(group) if item.name in values}
        if isinstance(group, Of):
            former = {new: old for old, new in group.renamed}
            result[name] = Typed(group, {former.get(key, key): value for key, value in own.items()})
        else:
            result[name] = group(**own)
    return result


def _groups(command: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    for name, hint in typing.get_type_hints(command, include_extras=True).items():
        if typing.get_origin(hint) is Annotated:
            yield name, typing.get_args(hint)[1]
        elif isinstance(hint, type) and issubclass(hint, Options):
            yield name, hint


def _of_group(group: Any) -> Iterator[Option]:
    source = group.source if isinstance(group, Of) else group
    words, hints = descriptions(source), typing.get_type_hints(source)
    for item in dataclasses.fields(source):
        kind, text, name = _typed(hints[item.name]), words.get(item.name, ""), item.name
        about: Mapping[str, Any] = item.metadata
        if isinstance(group, Of):
            if name in group.without:
                continue
            about = {"rare": name not in group.common}
            name = dict(group.renamed).get(name, name)
        yield Option(name, kind, item.default, text, group.title, about)


def _typed(hint: Any) -> Any:
    """Return the type of an option on the command line: of several types, one with a text form."""
    parts = [part for part in typing.get_args(hint) if part is not NoneType]
    if typing.get_origin(hint) not in (typing.Union, UnionType):
        return hint
    listed = [part for part in parts if isinstance(part, type) and issubclass(part, Enum)]
    plain = [part for part in parts if part in (int, float)]
    return (
        (listed or parts)[0] if listed or len(parts) == 1 else plain[0] if plain and str not in parts else str
    )


# --- The parser and its messages ---


def parser(command: Callable[..., Any], name: str) -> Any:
    """Return the parser of a command as an application of cyclopts."""
    from cyclopts import App

    def run(**_: Any) -> None:
        """Serve as a placeholder for the command."""

    arguments = [_parameter(item) for item in options_of(command)]
    vars(run)["__signature__"] = Signature(sorted(arguments, key=lambda item: item.kind))
    run.__annotations__ = {item.name: item.annotation for item in arguments}
    app = App(name=name, help="", help_flags=[], version_flags=[])
    app.default(run)
    return app


def _parameter(item: Option) -> Argument:
    from cyclopts import Parameter

    positional = "argument" in item.about
    short = [f"-{item.about['short']}"] if "short" in item.about else []
    names = list(dict.fromkeys((item.spelled, item.dashed, *short)))
    more: dict[str, Any] = {} if positional else {"group": _section(item.title or "Options")}
    convert = item.about.get("convert") or _CONVERTERS.get(_element(item.kind))
    if convert is not None:
        more["converter"] = partial(_converted, convert, repeats=item.repeats)
    about = Parameter(
        name=names,
        help=item.words,
        negative=(),
        show=not item.rare,
        show_default=False,
        consume_multiple=positional and item.repeats,
        allow_repeating=True,  # the last value is used
        **more,
    )
    required = item.default is dataclasses.MISSING
    # Other options have no default here, so that only typed options reach the command.
    own = item.is_flag or (item.repeats and isinstance(item.default, tuple))
    default = item.default if own else None
    return Argument(
        item.name,
        Argument.POSITIONAL_ONLY if positional else Argument.KEYWORD_ONLY,
        default=Argument.empty if required else default,
        annotation=Annotated[item.kind | None if default is None and not required else item.kind, about],
    )


@cache
def _section(title: str) -> Any:
    """Return the section of the help with this title; sections are in order of creation."""
    from cyclopts import Group

    return Group.create_ordered(title)


def _element(kind: Any) -> Any:
    """Return the type of a value, or of each value of a tuple."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) is tuple else kind


def _converted(convert: Callable[[str], Any], _: Any, tokens: Sequence[Any], *, repeats: bool) -> Any:
    values = [convert(token.value) for token in tokens]
    return tuple(values) if repeats else values[-1]


def _numeric(kind: Callable[[str], Any], words: str, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"must be {words}, got {text!r}.") from None


_CONVERTERS: dict[Any, Callable[[str], Any]] = {
    float: partial(_numeric, float, "a number"),
    int: partial(_numeric, int, "a whole number"),
}


def parsed(
    command: Callable[..., Any],
    name: str,
    tokens: Sequence[str],
    others: Callable[[], Mapping[str, Callable[..., Any]]] = dict,
) -> dict[str, Any]:
    """Return the values of the options in these tokens, by name.

    Args:
        command: The command.
        name: Its name.
        tokens: Arguments of the command.
        others: Function that returns the other commands by name, among which an unknown option is looked up.

    Raises:
        InputError: The command does not accept an argument; the message names it and the nearest option.
    """
    from cyclopts import CycloptsError

    app, words = parser(command, name), list(_rare_ones(command, tokens))
    try:
        _, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        if isinstance(error.__cause__, InputError):
            typed = getattr(getattr(error, "token", None), "keyword", None)
            named = str(typed or getattr(getattr(error, "argument", None), "name", ""))
            raise InputError(f"{named.replace(f'{SET}.', f'{SET} ')} {error.__cause__}") from None
        sentence = _sentence(command, error, words)
        if type(error).__name__ == "UnknownOptionError":
            sentence = _unknown(command, sentence, others())
        raise InputError(f"{sentence} See 'auditor {name} --help'.") from None
    return dict(bound.arguments)


def _rare_ones(command: Callable[..., Any], tokens: Sequence[str]) -> Iterator[str]:
    """Yield the tokens, with each ``--set NAME=VALUE`` replaced by its option."""
    rare = {item.key: item for item in options_of(command) if item.rare}
    common = {item.key: item for item in options_of(command) if not item.rare}
    every = [*common.values(), *rare.values()]
    valued = {item.dashed for item in every if not item.is_flag and "argument" not in item.about}
    short = {f"-{item.about['short']}" for item in common.values() if "short" in item.about}
    waiting = iter(_joined(tokens, valued, {*short, "-h"}))
    for word in waiting:
        if word == "--":
            yield from (word, *waiting)
            return
        if word != SET and not word.startswith(f"{SET}="):
            yield word
            continue
        setting = next(waiting, "") if word == SET else word.removeprefix(f"{SET}=")
        name, sign, value = setting.partition("=")
        key = name.strip().replace("_", "-")
        if not key:
            raise InputError(f"{SET} must be NAME=VALUE, got {setting!r}; --help-all lists the names.")
        if key in common:
            raise InputError(f"{SET} is for rare options, got {setting!r}; write {common[key].dashed}.")
        item = rare[validate.one_of(SET, key, rare)]
        if not sign and not item.is_flag:
            raise InputError(f"{SET} must be NAME=VALUE, got {setting!r}.")
        yield item.spelled + (f"={value}" if sign else "")


def typed_texts(tokens: Sequence[str]) -> dict[str, str]:
    """Return the text of each option among these tokens, by its name in a configuration file; for a flag, the next token."""
    result: dict[str, str] = {}
    for word, following in zip(tokens, [*tokens, ""][1:], strict=True):
        if word == "--":
            break
        name, sign, value = word.partition("=")
        if name == SET:
            name, _, value = (value if sign else following).partition("=")
        elif not sign:
            value = following
        result[{"-q": "quiet"}.get(name, name.removeprefix("--").replace("_", "-"))] = value
    return result


def _joined(tokens: Sequence[str], valued: Container[str], short: Container[str]) -> Iterator[str]:
    """Yield the tokens, with a value that begins with a dash joined to its option; a single dash is standard output."""
    option = ""
    for word in tokens:
        is_value = bool(option) and re.match(r"-(?!-)", word) is not None and word not in short
        if option:
            yield f"{option}={word}" if is_value else option
        option = word if word in valued and not is_value else ""
        if not option and not is_value:
            yield "./-" if word == "-" else word
    if option:
        yield option


def _sentence(command: Callable[..., Any], error: Any, tokens: Sequence[str]) -> str:
    """Return the error of the parser as one sentence, with the option as a user types it."""
    words = " ".join(str(error).split()).replace(f"{SET}.", f"{SET} ").rstrip(".")
    options = {item.spelled: item for item in options_of(command)}
    missing = options.get(getattr(getattr(error, "argument", None), "name", ""))
    if type(error).__name__ == "MissingArgumentError" and missing is not None:
        if missing.dashed in tokens:
            return f"{missing.dashed} needs {f'{missing.count} values' if missing.count else 'a value, got none'}."
        return f"{missing.dashed} must be given: {missing.words[:1].lower()}{missing.words[1:]}"
    if type(error).__name__ == "UnusedCliTokensError":
        return f"{error.unused_tokens[0]!r} is one argument too many; options begin with two dashes."
    return f"{words[:1].lower()}{words[1:]}{'' if words.endswith('?') else '.'}"


def _unknown(command: Callable[..., Any], sentence: str, others: Mapping[str, Callable[..., Any]]) -> str:
    """Return a sentence on an unknown option that names the intended option, or another command with it."""
    token = sentence.removeprefix("unknown option: ").split()[0].rstrip(".").partition("=")[0]
    key = token.lstrip("-").replace("_", "-")
    homes = [name for name, other in others.items() if key in {item.key for item in options_of(other)}]
    if homes:
        return f"unknown option: {token}. It is an option of auditor {' and auditor '.join(homes)}."
    options = {item.key: item.dashed for item in options_of(command)}
    word = validate.nearest(key, options) or next((name for name in options if key in name.split("-")), None)
    return f"unknown option: {token}.{f' Did you mean {options[word]}?' if word else ''}"


def help_text(command: Callable[..., Any], name: str, *, rare: bool) -> str:
    """Return the help of a command: summary, options by group, and examples; ``rare`` also describes the rare options."""
    words, title, examples = docstring(command).partition("\n\nExamples:\n")
    options = options_of(command)
    arguments = " ".join(item.dashed for item in options if "argument" in item.about)
    sections: dict[str, list[str]] = {}
    for item in sorted(options, key=lambda item: "argument" not in item.about):
        if not item.rare:
            section = "Arguments" if "argument" in item.about else item.title or "Options"
            words_of = f"{item.words} Required." if item.default is dataclasses.MISSING else item.words
            sections.setdefault(section, []).append(_row(_headed(item), words_of))
    hidden = [item for item in options if item.rare]
    if hidden:
        names = ", ".join(item.key for item in hidden)
        short = [_row(f"{SET} NAME=VALUE", f"One of {names}. --help-all describes them.")]
        long = [_row(f"{SET} {item.key}{_shape(item)}", item.words) for item in hidden]
        sections["Rare options"] = long if rare else short
    body = "\n\n".join("\n".join([f"{head}:", *rows]) for head, rows in sections.items())
    ending = (title + examples).strip().replace("\n    ", "\n  ")
    return f"Usage: auditor {name} [OPTIONS] {arguments}".rstrip() + f"\n\n{words}\n\n{body}\n\n{ending}\n"


def _headed(item: Option) -> str:
    short = f", -{item.about['short']}" if "short" in item.about else ""
    return item.dashed if "argument" in item.about else f"{item.dashed}{short}{_shape(item, ' ')}"


def _shape(item: Option, sign: str = "=") -> str:
    """Return the type of a value for the help; empty for a flag."""
    parts = [part for part in typing.get_args(item.kind) if part not in (NoneType, ...)]
    if item.is_flag:
        return ""
    if typing.get_origin(item.kind) is Literal:
        return sign + "|".join(map(str, parts))
    kind = parts[0] if parts else item.kind
    if isinstance(kind, type) and issubclass(kind, Enum):
        return sign + "|".join(map(str, kind))
    return sign + {Path: "PATH", int: "N", float: "X"}.get(kind, "TEXT")


def _row(head: str, words: str) -> str:
    plain = re.sub(r"``?([^`]+)``?", r"\1", words)
    return textwrap.fill(
        f"{head}  {plain}", _WIDTH, initial_indent="  ", subsequent_indent=" " * 6, break_on_hyphens=False
    )
