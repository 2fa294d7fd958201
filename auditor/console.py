"""The terminal: what is printed, and how an error becomes one sentence."""

import io
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from auditor.errors import AuditorError, OutputError

__all__ = ["announcer", "colour", "complain", "forgive_unknown_signs", "progress", "say", "width"]

# How the command line spells what a sentence calls by its Python name.
_OPTIONS = {
    "claimed epsilon": "--claim-epsilon",
    "claimed delta": "--claim-delta",
    "power": "--chance",
    "wanted Bayes security": "--bayes-security",
    "wanted advantage": "--advantage",
    "wanted epsilon": "--epsilon",
    "wanted true positive rate": "--tpr",
    "at_fpr": "--at-fpr",
    "max_components": "--max-components",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            "confidence",
            "delta",
            "inclusion",
            "noise_multiplier",
            "prior",
            "sampling_rate",
            "seed",
            "steps",
            "training_size",
        )
    },
}


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
    stream = sys.stderr
    if quiet or stream is None or not stream.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=stream), transient=True) as bar:
        task = bar.add_task(words, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


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
        return _with_options(str(error))
    from_parser = getattr(error, "format_message", None)
    if from_parser is not None:
        return f"{from_parser().rstrip('.')}{_received(error, arguments)}. See 'auditor --help'."
    return f"unexpected {type(error).__name__}: {error} (this is a bug; --debug shows the traceback)"


def _with_options(sentence: str) -> str:
    """Name an argument as the command line does, where the sentence begins with its Python name."""
    for name, option in _OPTIONS.items():
        if sentence.startswith(f"{name} "):
            return option + sentence[len(name) :]
    return sentence


def _received(error: Exception, arguments: Sequence[str]) -> str:
    """The value that the parser could not take, if it can be found."""
    for option in getattr(getattr(error, "param", None), "opts", ()):
        if option in arguments[:-1]:
            return f", got {arguments[list(arguments).index(option) + 1]!r}"
    return ""
