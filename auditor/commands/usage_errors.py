"""What the parser could not take, as one sentence of ours: the name, what it must be, what came, and the nearest."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["sentence"]

_WHOLE_NUMBER = re.compile(r"valid int")
_NUMBER = re.compile(r"valid (number|float)")
_RANGE = re.compile(r"(greater|less) than( or equal to)? (\S+)")
_CHOICES = re.compile(r"is not one of (.+)$", re.DOTALL)
_NO_COMMAND = re.compile(r"^No such command '(.*?)'\.", re.DOTALL)
_EXTRA = re.compile(r"unexpected extra arguments? ?(?:\(s\) )?\((.*)\)$", re.DOTALL)
_OF_OPTIONS = {
    "requires an argument": "must be followed by a value.",
    "does not take a value": "takes no value; leave out what follows the sign =.",
}
_TABLES = (".csv", ".parquet", ".npz", ".arrow")


def sentence(error: Any, arguments: Sequence[str]) -> str:
    """Return the one sentence about an error of the parser.

    Args:
        error: What the parser raised; it has ``format_message`` and, mostly, the command's context and the option.
        arguments: The command line, to tell what was received.
    """
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", " ".join(["auditor", *_first_word(arguments)]))
    message = str(error.format_message()).strip().rstrip(".")
    told = (
        _no_such_option(error, context, arguments)
        or _no_such_command(f"{message}.", context)
        or _about_a_parameter(error, message, arguments)
        or _extra(message)
        or f"{message}."
    )
    return f"{told} See '{command} --help'."


def _first_word(arguments: Sequence[str]) -> Sequence[str]:
    """The command, where the parser does not tell."""
    return [] if not arguments or arguments[0].startswith("-") else arguments[:1]


def _no_such_option(error: Any, context: Any, arguments: Sequence[str]) -> str | None:
    name = getattr(error, "option_name", None)
    if name is None or not hasattr(error, "possibilities"):
        return None
    if not name.startswith("--"):
        # The parser reads -html as -h -t -m -l, and complains of one letter.
        name = next((word for word in arguments if word.startswith("-") and name[-1:] in word[1:]), name)
    return f"no such option {name!r}{_nearest(name, _options(context))}"


def _options(context: Any) -> list[str]:
    if context is None:
        return []
    return [name for param in context.command.get_params(context) for name in param.opts if name[:1] == "-"]


def _nearest(word: str, known: Sequence[str]) -> str:
    wanted = f"--{word.lstrip('-')}" if word.startswith("-") else word
    # A word that is a part of the name is nearer than one that only looks like it: --epsilon and --claim-epsilon.
    parts = [name for name in known if name.endswith(f"-{wanted.lstrip('-')}")]
    found = parts or difflib.get_close_matches(wanted, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else "."


def _no_such_command(message: str, context: Any) -> str | None:
    found = _NO_COMMAND.match(message)
    if found is None:
        return None
    if found[1].lower().endswith(_TABLES):
        return f"no such command {found[1]!r}; to audit a table: 'auditor audit {found[1]}'."
    known = list(getattr(getattr(context, "command", None), "commands", ()))
    return f"no such command {found[1]!r}{_nearest(found[1], known)}"


def _about_a_parameter(error: Any, message: str, arguments: Sequence[str]) -> str | None:
    for end, words in _OF_OPTIONS.items():
        if message.endswith(end):
            return f"{getattr(error, 'option_name', 'the option')} {words}"
    param = getattr(error, "param", None)
    if param is None:
        return None
    name = param.opts[0] if param.param_type_name == "option" else str(param.name).upper()
    if message.startswith("Missing"):
        words = (getattr(param, "help", None) or "it has no default").rstrip(".")
        return f"{name} must be given: {words[:1].lower()}{words[1:]}."
    return _wrong_value(name, message, value=_received(param, arguments))


def _wrong_value(name: str, message: str, *, value: str | None) -> str:
    got = "" if value is None else f", got {value!r}"
    choices = _CHOICES.search(message)
    if choices is not None:
        listed = re.findall(r"'(.*?)'", choices[1].split(", got ")[0])
        return f"{name} must be one of {', '.join(map(repr, listed))}{got}{_nearest(value or '', listed)}"
    limit = _RANGE.search(message)
    if limit is not None:
        or_more = {"greater": "or more", "less": "or less"}[limit[1]]
        words = f"{limit[3]} {or_more}" if limit[2] else f"{limit[1]} than {limit[3]}"
        return f"{name} must be {words}{got}."
    if _WHOLE_NUMBER.search(message):
        return f"{name} must be a whole number{got}."
    return f"{name} must be a number{got}." if _NUMBER.search(message) else f"{message}{got}."


def _received(param: Any, arguments: Sequence[str]) -> str | None:
    """The value that the parser could not take, if it can be found: after its option, or behind the equals sign."""
    for here, word in enumerate(arguments):
        head, sign, value = word.partition("=")
        if head in param.opts and sign:
            return value
        if word in param.opts and here + 1 < len(arguments):
            return arguments[here + 1]
    return None


def _extra(message: str) -> str | None:
    found = _EXTRA.search(message)
    if found is None:
        return None
    return f"too many arguments, namely {found[1]!r}; put quotation marks around a name with blanks."
