"""The terminal: what is printed to standard output, and what of the work is told on standard error."""

import codecs
import io
import json
import os
import re
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from auditor.core.errors import OutputError, shown_place, without_credentials
from auditor.core.numbers import COMMAND, UNSEEN, clean

# --- The command line as given, for the provenance of what it makes ---

_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def remember(arguments: Sequence[str]) -> None:
    """Keep what the process was given."""
    _ARGUMENTS.set(tuple(arguments))


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return "--debug" in _ARGUMENTS.get()


def cut_places(values: Iterable[Any]) -> None:
    """Keep, of each path among these values and of each address, no more in the arguments than a result may show."""
    parts = (part for value in values for part in (value if isinstance(value, list | tuple) else [value]))
    places = {str(part) for part in parts if isinstance(part, Path)}

    def shown(value: str) -> str:
        return shown_place(value) if "://" in value or str(Path(value)) in places else value

    def cut(argument: str) -> str:
        name, sign, value = argument.partition("=")
        whole = shown(argument)
        return (
            f"{name}{sign}{cut(value) if name == '--set' else shown(value)}"
            if sign and whole == argument
            else whole
        )

    _ARGUMENTS.set(tuple(map(cut, _ARGUMENTS.get())))


def command_line() -> str:
    """Return the command line as one would type it in the folder of its files."""
    return shlex.join(["auditor", *_ARGUMENTS.get()])


# --- Standard output, and what a terminal can show ---


_BEGUN = re.compile(r"(?m)^(\s*)(?=::|section_(?:start|end):)")  # commands that begin a line
_UNSEEN = re.compile(f"(?!\n)[{UNSEEN}]|{COMMAND}")
_COLOUR = re.compile("(\x1b\\[[0-9;]*m)")  # which our own tables hold, and no text that they show


def _no_commands(text: str) -> str:
    """The same text, which commands neither a terminal nor a build server."""
    parts = _COLOUR.split(text) if colour() else [text]
    parts[::2] = [_UNSEEN.sub(lambda sign: f"⟨U+{ord(sign[0]):04X}⟩", part) for part in parts[::2]]
    return _BEGUN.sub(r"\1\\", "".join(parts))


def say(text: str) -> None:
    """Print to standard output; a name that the text begins a line with cannot command a build server.

    Raises:
        OutputError: It is closed or full. A reader that went away (as ``head`` does) is no error.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed; open it, or write to files and add --quiet.")
    try:
        sys.stdout.write(_no_commands(text))
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
    data = _escaped(data, f"(?!\n)[{UNSEEN}\u200c\u200d]")
    data = re.sub(COMMAND, r"\\u0023", data)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        data.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        data = _escaped(data, "[^\x00-\x7f]")
    say(data)


def _escaped(data: str, signs: str) -> str:
    """The same JSON with those signs as escapes; U+007F is ASCII, so that `json` leaves it alone."""
    return re.sub(signs, lambda sign: json.dumps(sign[0])[1:-1].replace("\x7f", "\\u007f"), data)


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


def keep_warnings_inside() -> None:
    """Show none of Python's warnings, which name a source file: what a user must know, a command says.

    In the processes that this one starts neither. Who asks for warnings (``-W``, ``PYTHONWARNINGS``) gets them.
    """
    if not sys.warnoptions:
        os.environ["PYTHONWARNINGS"] = "ignore"
        warnings.showwarning = lambda *_, **__: None


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(sign, "?") for sign in lacking), error.end


# --- What is told on standard error ---


def explain(sentences: Iterable[str]) -> None:
    """Tell of errors, and why the exit code is not 0, one line each; with --quiet too, since nothing else would."""
    if sys.stderr is None:
        return
    for sentence in sentences:
        try:
            shown = " ".join(clean(without_credentials(sentence)).split())
            print(_no_commands(shown), file=sys.stderr)  # noqa: T201 - this is the terminal
        except OSError:
            return  # nobody can be told; the exit code remains


def announcer(*, quiet: bool) -> Callable[[str], None]:
    """Return what tells of progress: on standard error, and only to a terminal."""
    if not _is_watched(quiet=quiet):
        return lambda _: None
    return lambda line: explain([line])


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield what moves the bar of a stage (words, done, total): on standard error, nothing if quiet.

    A new stage takes the place of the one before. Off a terminal it is a line every half minute.
    """
    if not _is_watched(quiet=quiet) or os.environ.get("TERM") == "dumb":
        yield None if quiet else _in_lines(time.monotonic())
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    terminal: Any = nullcontext(sys.stderr)
    with suppress(OSError):  # a stream of its own stays while a model runs and descriptor 2 leads elsewhere
        terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    with (
        terminal as file,
        Progress(*columns, console=Console(file=file), transient=True, speed_estimate_period=3600) as bar,
    ):
        task = bar.add_task("", visible=False)

        def move(words: str, done: int, total: int) -> None:
            if bar.tasks[0].description != words:
                bar.reset(task, description=words, total=total, visible=True)
            bar.update(task, completed=done)

        yield move


_SECONDS = 30.0  # between two lines of progress


def _in_lines(last: float) -> Callable[[str, int, int], None]:
    """Return what prints a line of progress where the last one is long ago."""

    def move(words: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS:
            last = time.monotonic()
            explain([f"{words}: {100 * done // max(1, total)}% done ({done:,} of {total:,})"])

    return move


def _is_watched(*, quiet: bool) -> bool:
    """Whether somebody looks at standard error."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()
