"""The terminal: what is printed, and how an error becomes one sentence."""

import io
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from auditor.commands.option_names import with_options
from auditor.errors import AuditorError, OutputError

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = [
    "announcer",
    "colour",
    "complain",
    "forgive_unknown_signs",
    "interruptible",
    "pace",
    "progress",
    "say",
    "stages",
    "width",
]

_INTERRUPTED = 130  # 128 and the number of the signal


def say(text: str) -> None:
    """Print to standard output.

    Raises:
        OutputError: It is closed or full. A reader that went away (as ``head`` does) is no error.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed; open it, or write to files and add --quiet.")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads any more: let the interpreter's own flush at exit go nowhere.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - kept until the exit
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror or error}.") from None


def announcer(*, quiet: bool) -> Callable[[str], None]:
    """Return what tells of progress: on standard error, and only to a terminal."""
    stream = sys.stderr
    if quiet or stream is None or not stream.isatty():
        return lambda _: None
    return lambda line: print(line, file=stream)


@contextmanager
def progress(words: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what moves a progress bar (done, total): on standard error, only on a terminal, and only once it is moved."""
    with stages(quiet=quiet) as move:
        yield None if move is None else lambda done, total: move(words, done, total)


@contextmanager
def stages(*, quiet: bool, unit: str | None = None) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield what moves the bar of a stage (words, done, total); a new stage takes the place of the one before.

    Args:
        quiet: Whether nothing is shown.
        unit: What is counted, in the plural: the bar then tells how many a second, and how long it will take.
    """
    stream = sys.stderr
    if quiet or stream is None or not stream.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    last = TimeRemainingColumn() if unit is None else TextColumn("{task.fields[rate]}", markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), last)
    with Progress(*columns, console=Console(file=stream), transient=True, speed_estimate_period=3600) as bar:
        known: dict[str, TaskID] = {}

        def move(words: str, done: int, total: int) -> None:
            if words not in known:
                for task in known.values():
                    bar.update(task, visible=False)
                known[words] = bar.add_task(words, total=total, rate="")
            bar.update(known[words], completed=done, total=total)
            speed = next(task.speed for task in bar.tasks if task.id == known[words])
            bar.update(known[words], rate=pace(speed, left=total - done, unit=unit or ""))

        yield move


@contextmanager
def interruptible() -> Iterator[None]:
    """Say in one sentence what an interrupt (Ctrl-C) left behind, and exit with the code of shells for it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if sys.stderr is not None:
            print(str(stop) or "interrupted.", file=sys.stderr)  # noqa: T201 - this is the terminal
        raise SystemExit(_INTERRUPTED) from None


def pace(speed: float | None, *, left: int, unit: str) -> str:
    """Return a speed (a second) and the time that is left, in words; nothing where no speed is known.

    >>> pace(1234.5, left=200_000, unit="records")
    '1,234 records/s, 3 min left'
    """
    if not speed:
        return ""
    seconds = left / speed
    for size, word in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{_rate(speed)} {unit}/s, {seconds / size:.0f} {word} left"
    return f"{_rate(speed)} {unit}/s, {seconds:.0f} s left"


def _rate(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"  # noqa: PLR2004


def colour() -> bool:
    """Whether standard output is a terminal that wants colours (https://no-color.org)."""
    return sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """Columns of the terminal; in a pipe, enough for every table."""
    return max(80, shutil.get_terminal_size((110, 24)).columns)


def forgive_unknown_signs() -> None:
    """Let a terminal that cannot show a sign show a question mark instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def complain(error: Exception, *, arguments: Sequence[str]) -> None:
    """Say in one sentence what went wrong; with --debug, show the traceback first."""
    if sys.stderr is None:
        return
    if "--debug" in arguments:
        traceback.print_exception(error)
    sentence = re.sub(r"\s+", " ", _sentence(error, arguments)).strip()
    try:
        print(f"error: {sentence}", file=sys.stderr)  # noqa: T201 - this is the terminal
    except OSError:
        return  # nobody can be told; the exit code remains


def _sentence(error: Exception, arguments: Sequence[str]) -> str:
    if isinstance(error, AuditorError):
        return with_options(str(error))
    from_parser = getattr(error, "format_message", None)
    if from_parser is not None:
        return f"{from_parser().rstrip('.')}{_received(error, arguments)}. See 'auditor --help'."
    return f"unexpected {type(error).__name__}: {error} (this is a bug; --debug shows the traceback)"


def _received(error: Exception, arguments: Sequence[str]) -> str:
    """The value that the parser could not take, if it can be found."""
    for option in getattr(getattr(error, "param", None), "opts", ()):
        if option in arguments[:-1]:
            return f", got {arguments[list(arguments).index(option) + 1]!r}"
    return ""
