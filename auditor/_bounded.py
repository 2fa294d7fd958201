"""Files from others: only ordinary ones, no larger than is sensible, and JSON that cannot exhaust memory or the stack."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auditor import _validate
from auditor.errors import InputError

__all__ = ["json_value", "read_bytes"]

_MEGABYTE = 1_000_000
_VALUES = 2_000_000  # commas and brackets, counted before anything is parsed
_DEEPEST = 40
_LONGEST_LIST = 200_000
_LONGEST_TEXT = 100_000
_DIGITS = 400
_INT64 = 2**63
_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


def read_bytes(path: str | os.PathLike[str], *, what: str, most: int) -> bytes:
    """Return the content of an ordinary file of at most ``most`` bytes; nothing else is waited for or read.

    Raises:
        InputError: It is missing, larger, or a folder, pipe, socket or device; ``what`` begins the sentence.

    >>> read_bytes("/", what="result file", most=10)
    Traceback (most recent call last):
    auditor.errors.InputError: result file '/' is a folder; name an ordinary file.
    """
    named = f"{what} {str(path)!r}"
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if Path(path).is_dir():  # which not every system opens
            raise InputError(f"{named} is a folder; name an ordinary file.")
        handle = os.open(path, flags)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                kind = next((word for holds, word in _KINDS if holds(found.st_mode)), "a device")
                raise InputError(f"{named} is {kind}; name an ordinary file.")
            content = b"" if found.st_size > most else file.read(most + 1)
    except OSError as error:
        raise InputError(f"{named} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{named} cannot be read: {_validate.one_line(error)}.") from None
    size = max(found.st_size, len(content))
    if size > most:
        shown = f"{most / _MEGABYTE:g} MB" if most >= _MEGABYTE else f"{most:,} bytes"
        raise InputError(f"{named} is larger than {shown} ({size:,} bytes), which is the most that is read.")
    return content


def json_value(content: bytes, *, named: str) -> Any:
    """Return the JSON value in these bytes (UTF-8, or UTF-16 and 32 by their marks), strictly read and within limits.

    Refused are the tokens NaN and Infinity, numbers beyond the range of a float, a key that stands twice in an object,
    and more values, levels, entries or characters than any result has.

    Raises:
        InputError: It is no such JSON; ``named`` begins the sentence.

    >>> json_value(b'{"a": 1, "a": 2}', named="file 'x'")
    Traceback (most recent call last):
    auditor.errors.InputError: file 'x' is not valid JSON: the key 'a' stands twice in one object.
    """
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError as error:
        raise InputError(f"{named} is not text in UTF-8: {error.reason} at byte {error.start:,}.") from None
    # Text within quotation marks is counted too: a limit that no honest file comes near need not be exact.
    if sum(text.count(sign) for sign in ",[{") > _VALUES:
        raise InputError(f"{named} has more than {_VALUES:,} values, which is the most that is read.")
    try:
        value = json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_float,
            parse_int=_int,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise InputError(f"{named} is nested more than {_DEEPEST} levels deep.") from None
    except ValueError as error:
        raise InputError(f"{named} is not valid JSON: {_validate.one_line(error)}.") from None
    for problem in _problems(value):
        raise InputError(f"{named} {problem}.")
    return value


def _problems(value: Any) -> Iterator[str]:
    """What is larger than anything a result has; the stack is a list, so depth costs nothing."""
    waiting = [(value, 1)]
    while waiting:
        item, level = waiting.pop()
        if isinstance(item, str):
            if len(item) > _LONGEST_TEXT:
                yield f"has a text of more than {_LONGEST_TEXT:,} characters ({len(item):,})"
        elif isinstance(item, dict | list):
            if level > _DEEPEST:
                yield f"is nested more than {_DEEPEST} levels deep"
            elif len(item) > _LONGEST_LIST:
                yield f"has a list of more than {_LONGEST_LIST:,} entries ({len(item):,})"
            else:
                inside = [*item, *item.values()] if isinstance(item, dict) else item
                waiting.extend((part, level + 1) for part in inside)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {_short(digits)} is too large")
    return value


def _int(digits: str) -> int | float:
    """A whole number; beyond 64 bits the nearest float, as it would be in arrays."""
    if len(digits) > _DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    value = int(digits)
    return value if -_INT64 <= value < _INT64 else _float(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {_short(twice)!r} stands twice in one object")
    return found


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004
