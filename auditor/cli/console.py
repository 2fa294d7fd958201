"""The terminal: results on standard output, and progress and errors on standard error."""

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

from auditor.core import COMMAND, UNSEEN, OutputError, clean, shown_place, without_credentials

# --- The command line, for the provenance of results ---

_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def remember(arguments: Sequence[str]) -> None:
    """Store the arguments of the process."""
    _ARGUMENTS.set(tuple(arguments))


def debugging() -> bool:
    """Whether tracebacks are requested."""
    return "--debug" in _ARGUMENTS.get()


def cut_places(values: Iterable[Any]) -> None:
    """Shorten the paths and the addresses in the stored arguments to the part that a result may show."""
    parts = (part for value in values for part in (value if isinstance(value, list | tuple) else [value]))
    places = {str(part) for part in parts if isinstance(part, Path)}

    def shortened(value: str) -> str:
        return shown_place(value) if "://" in value or str(Path(value)) in places else value

    def cut(argument: str) -> str:
        name, sign, value = argument.partition("=")
        whole = shortened(argument)
        if not sign or whole != argument:
            return whole
        return f"{name}={cut(value) if name == '--set' else shortened(value)}"

    _ARGUMENTS.set(tuple(map(cut, _ARGUMENTS.get())))


def command_line() -> str:
    """Return the command line as a user types it in the folder of its files."""
    return shlex.join(["auditor", *_ARGUMENTS.get()])


# --- Standard output, and the characters of a terminal ---


_BEGUN = re.compile(r"(?m)^(\s*)(?=::|section_(?:start|end):)")  # commands that begin a line
_UNSEEN = re.compile(f"(?!\n)[{UNSEEN}]|{COMMAND}")
_COLOUR = re.compile("(\x1b\\[[0-9;]*m)")  # used by our tables, and by no text in them


def _no_commands(text: str) -> str:
    """Return the text without commands for a terminal or a build server."""
    parts = _COLOUR.split(text) if colour() else [text]
    parts[::2] = [_UNSEEN.sub(lambda sign: f"⟨U+{ord(sign[0]):04X}⟩", part) for part in parts[::2]]
    return _BEGUN.sub(r"\1\\", "".join(parts))


def say(text: str) -> None:
    """Print to standard output; a name at the start of a line cannot command a build server.

    Raises:
        OutputError: Standard output is closed or full. A reader that stops early, such as ``head``, is no error.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed; open it, or write to files and add --quiet.")
    try:
        sys.stdout.write(_no_commands(text))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has stopped: discard the flush of the interpreter at exit.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - open until the exit
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror or error}.") from None


def hand_out(data: str) -> None:
    """Print JSON to standard output with escapes for all but printable ASCII characters, so that it cannot command a terminal.

    Raises:
        OutputError: Standard output is closed or full, as in :func:`say`.
    """
    # `json` does not escape U+007F, which is ASCII.
    data = re.sub("[^\n -~]", lambda sign: json.dumps(sign[0])[1:-1].replace("\x7f", "\\u007f"), data)
    say(re.sub(COMMAND, r"\\u0023", data))


def colour() -> bool:
    """Whether to print colours to standard output: a terminal that is not dumb (https://no-color.org, https://force-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def width(*, least: int = 80) -> int:
    """Return the columns of the terminal, at least the minimum of the output; in a pipe, enough for every table."""
    return max(least, shutil.get_terminal_size((110, 24)).columns)


# Replacements for characters that the encoding of a terminal lacks; all others become a question mark.
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
    """Print a plain character or a question mark in place of one that the terminal cannot show."""
    codecs.register_error("plain-signs", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain-signs")


def keep_warnings_inside() -> None:
    """Hide the warnings of Python, which name source files; commands print the messages for users.

    Child processes hide them too. ``-W`` and ``PYTHONWARNINGS`` still enable them.
    """
    if not sys.warnoptions:
        os.environ["PYTHONWARNINGS"] = "ignore"
        warnings.showwarning = lambda *_, **__: None


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(sign, "?") for sign in lacking), error.end


def open_page(path: Path) -> None:
    """Open a page in the browser, if there is one."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        explain([f"No browser is available; open {path.resolve()} manually."])


# --- Standard error ---


def explain(sentences: Iterable[str]) -> None:
    """Print errors and the reasons for a nonzero exit code, one line each; with --quiet too."""
    if sys.stderr is None:
        return
    for sentence in sentences:
        try:
            line = " ".join(clean(without_credentials(sentence)).split())
            print(_no_commands(line), file=sys.stderr)  # noqa: T201 - this is the terminal
        except OSError:
            return  # standard error is closed; the exit code remains


def announcer(*, quiet: bool) -> Callable[[str], None]:
    """Return a function that reports progress on standard error if it is a terminal."""
    if not _is_watched(quiet=quiet):
        return lambda _: None
    return lambda line: explain([line])


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a function that updates the progress of a stage (words, done, total) on standard error; None if quiet.

    A new stage replaces the previous one. Without a terminal, progress is one line every half minute.
    """
    if not _is_watched(quiet=quiet) or os.environ.get("TERM") == "dumb":
        yield None if quiet else _in_lines(time.monotonic())
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    terminal: Any = nullcontext(sys.stderr)
    with suppress(OSError):  # a separate stream remains valid while a model redirects descriptor 2
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
    """Return a function that prints a line of progress at most every half minute."""

    def move(words: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS:
            last = time.monotonic()
            explain([f"{words}: {100 * done // max(1, total)}% done ({done:,} of {total:,})"])

    return move


def _is_watched(*, quiet: bool) -> bool:
    """Whether to report progress: standard error is a terminal."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()
