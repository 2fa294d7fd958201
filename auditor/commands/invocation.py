"""The command line as given, for the provenance of what it makes."""

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

__all__ = ["command_line", "remember"]

_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def remember(arguments: Sequence[str]) -> None:
    """Keep what the process was given."""
    _ARGUMENTS.set(tuple(arguments))


def command_line() -> str:
    """Return the command line as one would type it."""
    return shlex.join(["auditor", *_ARGUMENTS.get()])
