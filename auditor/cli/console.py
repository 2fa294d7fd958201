"""The terminal: what is printed, and how an error becomes one sentence."""

import codecs
import io
import json
import os
import re
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from auditor.core import validate
from auditor.core.errors import AuditorError, OutputError
from auditor.core.numbers import UNSEEN

if TYPE_CHECKING:
    from rich.progress import TaskID


# --- The command line as given, for the provenance of what it makes ---

_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def remember(arguments: Sequence[str]) -> None:
    """Keep what the process was given."""
    _ARGUMENTS.set(tuple(arguments))


def command_line() -> str:
    """Return the command line as one would type it."""
    return shlex.join(["auditor", *_ARGUMENTS.get()])


# --- Standard output, and what a terminal can show ---


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


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN_SIGNS.get(sign, "?") for sign in lacking), error.end


# --- Progress, on standard error ---

_INTERRUPTED = 130  # 128 and the number of the signal


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


def _is_watched(*, quiet: bool) -> bool:
    """Whether somebody looks at standard error."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


# --- An error as one sentence ---

_LONGEST = 1000  # characters of a sentence


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
        return parser_sentence(error, arguments)
    return f"unexpected {type(error).__name__}: {error} (this is a bug; --debug shows the traceback)"


# --- What the parser could not take: the name, what it must be, what came, and the nearest ---

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


def parser_sentence(error: Any, arguments: Sequence[str]) -> str:
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
    return validate.did_you_mean(parts[0] if parts else validate.nearest(wanted, known))


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


# --- How the command line spells what a sentence calls by its Python name: the one table, and its use ---

_QUOTED = re.compile(r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|(?<!\w)"(?:[^"\\]|\\.)*"(?!\w)""")
_HELD = re.compile("\x00(\\d+)\x00")

_SAME_NAMES = (
    "allow_plain_http allow_shared_rows batch_size ca_file classes concurrency cut_long_texts factory features longest"
    " max_request_bytes max_request_records max_response_bytes output_name overwrite protocol repeats request_template"
    " response_path retries standard_deviation timeout token_variable trust_pickle use_proxies workers"
)
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME_NAMES.split()} | {
    "address": "--ray-address",
    "columns": "--features",
    "header_variables": "--header-variable",
    "model": "--served-model",
    "percent": "--min-k-percent",
    "trusted_types": "--trusted-type",
}
# Names that begin a sentence, whatever follows.
_SUBJECTS_OF_OPTIONS = "at_fpr confidence delta inclusion max_components noise_multiplier prior sampling_rate seed steps training_size"
_SUBJECTS = {
    "claimed epsilon": "--claim-epsilon",
    "claimed delta": "--claim-delta",
    "power": "--chance",
    "wanted Bayes security": "--bayes-security",
    "wanted advantage": "--advantage",
    "wanted epsilon": "--epsilon",
    "wanted true positive rate": "--tpr",
    "members and nonmembers": "--members and --nonmembers",
    "url": "MODEL",
    **{name: f"--{name.replace('_', '-')}" for name in _SUBJECTS_OF_OPTIONS.split()},
    **{name: option for name, option in _OPTIONS.items() if name != "model"},
}
# Whole turns of phrase, anywhere; quoted text is not searched. The first that fits is used.
_PHRASES = (
    # What names its option already: the option alone.
    (r"\b(?:[a-z_]+=[\w.()]*|[a-z]+_[a-z_]+) \((--[a-z-]+(?: [a-z-]+)?)(?: on the command line)?\)", r"\1"),
    (r"\((--[a-z-]+) on the command line\)", r"(\1)"),
    (r"\bfactory must name (.*?): a callable, or (.*) \(--factory\)", r"--factory must name \1: \2"),
    (r"^factory must be a callable or ", "--factory must be "),
    (r"^factory must be written ", "--factory must be written "),
    (
        r"^task must give the standard deviation, as in GaussianLogLoss\(.*?\)",
        "--standard-deviation must be given",
    ),
    (r"^(task|output|label|score) (?=must |says |needs )", r"--\1 "),
    (r"^model must (?=name |be the name )", "--served-model must "),
    (
        r"^give either members and nonmembers, or records:",
        "give either --members and --nonmembers, or --records:",
    ),
    (r"; use CompletionsEndpoint for texts\b", "; give --text-column for texts"),
    (r"\bname the task:? (?=SquaredError|MultiLabel)", "give "),
    (r"(?<!=)\bSquaredError\(\)", "--task regression"),
    (r"(?<!=)\bGaussianLogLoss\(.*?\)", "--task gaussian"),
    (r"(?<!=)\bMultiLabel\(\)", "--task multi-label"),
    (r"\btask=MultiLabel\(\)", "--task multi-label"),
    (r"\btask=SquaredError\(\)", "--task regression"),
    (r"\btask=GaussianLogLoss\(.*?\)", "--task gaussian"),
    (r"\boutput=Output\.LOGITS\b", "--output logits"),
    (r"\boutput=Output\.LOG_PROBABILITIES\b", "--output log-probabilities"),
    (r"\boutput=Output\.PROBABILITIES\b", "--output probabilities"),
    (r"\blong_texts=LongTexts\.CUT\b", "--cut-long-texts"),
    (r"\bask for (?:it|the file) to be overwritten\b", "give --overwrite"),
    (r"\bby listing the classes with labels=", "with --accept-labels and --classes"),
    (r"\bwhich is not in labels=", "which is not in --classes"),
    (r"\blabels=(?:\[.*?\])?", "--accept-labels"),
    (r"\bread no ids \(id=None\)", "read no ids (--id-column '')"),
    # A keyword with a value, then without.
    (rf"\b({'|'.join(_OPTIONS)})=True\b", lambda found: _OPTIONS[found[1]]),
    (rf"\b({'|'.join(_OPTIONS)})=(?=[\w\x00])", lambda found: f"{_OPTIONS[found[1]]} "),
    (rf"\b({'|'.join(_OPTIONS)})=", lambda found: _OPTIONS[found[1]]),
    (r"\b(trusted_types|request_template|response_path)\b", lambda found: _OPTIONS[found[1]]),
    (rf"^({'|'.join(_SUBJECTS)}) ", lambda found: f"{_SUBJECTS[found[1]]} "),
)


def with_options(sentence: str) -> str:
    """Name arguments as the command line does, but in quoted text, which is a value that somebody gave.

    >>> with_options("label 'classes=' is none; name the classes with classes=.")
    "label 'classes=' is none; name the classes with --classes."
    """
    quoted: list[str] = []

    def hold(found: re.Match[str]) -> str:
        quoted.append(found[0])
        return f"\x00{len(quoted) - 1}\x00"

    result = _QUOTED.sub(hold, sentence)
    for pattern, option in _PHRASES:
        result = re.sub(pattern, option, result)
    return _HELD.sub(lambda found: quoted[int(found[1])], result)
