"""The exception tree: everything this package raises on purpose.

>>> issubclass(InputError, ValueError) and issubclass(InputError, AuditorError)
True
"""

import importlib
import logging
import re
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote_plus


class ExitCode(IntEnum):
    """Exit codes of the process.

    0, done: nothing to stop for. 1, failed: a gate is true, or the claim is refuted, with or without a gate. 2, bad
    input: a file, an option or a gate that cannot be used; nothing was written. 3, not evaluable: a gate needs a number that
    this audit cannot give (a missing number, an undecided verdict or check, a failed validity check, an audit that
    could not have reached the gate's limit), which never counts as passed; or a claim could not be judged, unless that
    is allowed; or the result was altered since it was written. Where several hold, 2 comes before 1, and 1 before 3.
    """

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    NOT_EVALUABLE = 3


INTERRUPTED = 130  # the exit code: 128 and the number of the signal

# --- Addresses: credentials in them, the place to read these from, and the part that may be shown ---

_VERSION = re.compile(r"\d{4}-\d\d-\d\d(-preview)?|v?\d+(\.\d+)+|.{0,5}")  # of an interface, or too short
_ELSEWHERE = r"(?i)\b{}://(?!(localhost|127(\.\d+){{3}}|\[::1\])(:\d*)?([/?#]|$))"
# A quote before it, if any, its scheme, and the rest: to that quote again, or to a blank.
_ADDRESS = re.compile(r"""(['"])?(?<!\w)([A-Za-z][\w+.-]+:/+)((?(1)(?:(?!\1).)*|[^\s'"<>]*))""")


def credentials(address: str) -> list[str]:
    """Return possible credentials in an address: a user and password, and any value of six or more characters.

    Names do not decide, since there are too many. A date or a version number is no credential.

    >>> credentials("https://host/x?api-version=2024-02-01&v=3&sig=abc%3D123")
    ['abc%3D123', 'abc=123']
    >>> credentials("zip://a.parquet::https://user:word@host/x#bearer-token")
    ['user:word', 'bearer-token', 'bearer-token']
    """
    values = (re.sub("^[^=]*=(?=.)", "", item) for item in re.split("[?#;&]", address)[1:])
    result = [x for value in values if not _VERSION.fullmatch(value) for x in (value, unquote_plus(value))]
    return re.findall("://([^/?#]*)@", address) + result


def elsewhere(address: str, scheme: str = "https?") -> bool:
    """Return whether an address leads over this scheme to another machine than this one.

    >>> [elsewhere(f"http://{host}", "http") for host in ("localhost:80/x", "127.0.0.2", "[::1]:80", "localhost.example")]
    [False, False, False, True]
    """
    return re.search(_ELSEWHERE.format(scheme), address) is not None


def without_credentials(text: str) -> str:
    """Return a text in which every address is without user, password, query, parameters and fragment.

    >>> without_credentials("file 'https://user:word@host/x.parquet?sig=a b' is not here; see s3://b/c?d#e.")
    "file 'https://host/x.parquet' is not here; see s3://b/c"
    """
    return _ADDRESS.sub(_bare, text) if ":/" in text else text


def _bare(match: re.Match[str]) -> str:
    quote, scheme, rest = match.groups("")
    place = re.split(r"[?#;](?=\S)", rest, maxsplit=1)[0]
    # A password may hold a question mark, and a query an at sign: which is which cannot be known.
    return quote + scheme + ("***" if "@" in rest[len(place) :] else place.rpartition("@")[2])


def shown_place(place: str) -> str:
    """Return the displayed part of a path, the name of the file, or of an address, its scheme.

    >>> shown_place("https://user:word@host:8080/v2/models/income?sig=abcdef"), shown_place("/home/me/losses.csv")
    ('https://***', 'losses.csv')
    """
    scheme, is_address, _ = place.partition("://")
    return f"{scheme}://***" if is_address else Path(place).name


def keep_from_logs() -> None:
    """Keep possible credentials out of the logs of the packages that open addresses."""
    for name in ("httpx", "fsspec", "fsspec.http"):
        logging.getLogger(name).addFilter(_logged)


def _logged(record: logging.LogRecord) -> bool:
    # As a whole, and without the traceback, which quotes them too.
    record.msg, record.args, record.exc_info = without_credentials(record.getMessage()), (), None
    return True


class AuditorError(Exception):
    """The root of every error that this package raises on purpose; its sentence shows no credentials of an address."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(without_credentials(x) if isinstance(x, str) else x for x in arguments))


class InputError(AuditorError, ValueError):
    """An argument or a file that cannot be used; the message names it, the place and the fix."""


class UntrustedError(InputError):
    """A file holds types that are not trusted; ``types`` has their names."""

    types: tuple[str, ...] = ()


class OutputError(AuditorError, OSError):
    """A place where a result should be written and cannot be."""


class MissingExtraError(AuditorError, ImportError):
    """An optional package is missing; the message holds the command that installs it."""


def import_optional(module: str, *, purpose: str, extra: str) -> ModuleType:
    """Return an optional module, or say in one sentence how it is installed.

    Args:
        module: Module to import: ``onnxruntime``.
        purpose: Purpose, the subject of the sentence: "scoring an ONNX model".
        extra: The extra of this package that brings it, or, with a space in it, the packages to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        wanted = extra.strip() if " " in extra else f"'privacy-auditor[{extra}]'"
        raise MissingExtraError(
            f"{purpose} needs {module}, which cannot be imported here: pip install {wanted}."
        ) from error
