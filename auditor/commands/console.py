"""The terminal: what is printed, and how an error becomes one sentence."""

import codecs
import io
import json
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from auditor.commands import usage_errors
from auditor.commands.option_names import with_options
from auditor.errors import AuditorError, OutputError

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = [
    "announcer",
    "colour",
    "complain",
    "forgive_unknown_signs",
    "hand_out",
    "interruptible",
    "pace",
    "progress",
    "say",
    "stages",
    "width",
]

_LONGEST = 1000  # characters of a sentence
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


def hand_out(data: str) -> None:
    """Print JSON to standard output so that it stays JSON and commands no terminal: what it may not hold becomes escapes.

    Those are controls, signs that hide or turn the direction, and, where its encoding lacks any sign, all beyond ASCII.

    Raises:
        OutputError: As :func:`say`.
    """
    from auditor.report.formatting import UNSEEN

    data = _escaped(data, f"(?!\n)[{UNSEEN}\u200c\u200d]")
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        data.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        data = _escaped(data, "[^\x00-\x7f]")
    say(data)


def _escaped(data: str, signs: str) -> str:
    """The same JSON with those signs as escapes; U+007F is ASCII, so that `json` leaves it alone."""
    return re.sub(signs, lambda sign: json.dumps(sign[0])[1:-1].replace("\x7f", "\\u007f"), data)


def announcer(*, quiet: bool) -> Callable[[str], None]:
    """Return what tells of progress: on standard error, and only to a terminal."""
    if not _is_watched(quiet=quiet):
        return lambda _: None
    return lambda line: print(line, file=sys.stderr)  # noqa: T201 - this is the terminal


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
    if not _is_watched(quiet=quiet) or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    last = TimeRemainingColumn() if unit is None else TextColumn("{task.fields[rate]}", markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), last)
    with Progress(
        *columns, console=Console(file=sys.stderr), transient=True, speed_estimate_period=3600
    ) as bar:
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
    """Whether standard output wants colours: a terminal that is not dumb (https://no-color.org, https://force-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def width(*, least: int = 80) -> int:
    """Columns of the terminal, or the least that what is shown needs; in a pipe, enough for every table."""
    return max(least, shutil.get_terminal_size((110, 24)).columns)


def _is_watched(*, quiet: bool) -> bool:
    """Whether somebody looks at standard error."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


# What stands for a sign that a terminal's encoding lacks; a question mark, which means "unknown" here, for all others.
_PLAIN_SIGNS = {
    "✓": "+",
    "✕": "x",
    "≤": "<=",
    "≈": "~",
    "∞": "inf",
    "…": "...",
    **dict.fromkeys("–—−─━", "-"),  # noqa: RUF001 dashes, a minus and lines are meant
    **dict.fromkeys("“”", '"'),
    **dict.fromkeys("‘’", "'"),  # noqa: RUF001 quotation marks are meant
}


def forgive_unknown_signs() -> None:
    """Let a terminal that cannot show a sign show a plain one or a question mark instead of failing."""
    codecs.register_error("plain-signs", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain-signs")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(sign, "?") for sign in lacking), error.end


def complain(error: Exception, *, arguments: Sequence[str]) -> None:
    """Say in one sentence what went wrong; with --debug, show the traceback first."""
    if sys.stderr is None:
        return
    if "--debug" in arguments:
        traceback.print_exception(error)
    sentence = _shortened(re.sub(r"\s+", " ", _sentence(error, arguments)).strip())
    try:
        print(f"error: {sentence}", file=sys.stderr)  # noqa: T201 - this is the terminal
    except OSError:
        return  # nobody can be told; the exit code remains


def _shortened(sentence: str) -> str:
    """Leave out the middle of what nobody would read, such as a cell of a million letters that is quoted."""
    more = len(sentence) - _LONGEST
    if more <= 0:
        return sentence
    return f"{sentence[: _LONGEST // 2]} [{more:,} characters left out] {sentence[-_LONGEST // 2 :]}"


def _sentence(error: Exception, arguments: Sequence[str]) -> str:
    if isinstance(error, AuditorError):
        return with_options(str(error))
    if hasattr(error, "format_message"):
        return usage_errors.sentence(error, arguments)
    return f"unexpected {type(error).__name__}: {error} (this is a bug; --debug shows the traceback)"
