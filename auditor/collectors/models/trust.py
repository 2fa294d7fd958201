"""Trust in a model's file, the places of its weights, and the messages that its library may print."""

import contextlib
import ctypes
import os
import pkgutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from auditor.collectors.base.records import listed
from auditor.core import InputError, UntrustedError, clean, without_credentials
from auditor.core.validate import explained, own_words, with_kind


def named(path: Path) -> str:
    """Return a file as sentences call it: by its name, without its place."""
    return f"{'folder' if path.is_dir() else 'file'} {Path(without_credentials(str(path))).name!r}"


def readable(path: Path, *, kind: str) -> AbstractContextManager[None]:
    """Turn any exception of a reader into one sentence, and keep the cause."""

    def reason(error: Exception) -> str:
        words = own_words(error).replace(str(path.resolve()), path.name).replace(str(path), path.name)
        return f"{words}; is it complete?"

    return explained(f"{named(path)} must be {kind}, but it cannot be read", reason=reason)


def refuse_elsewhere(folder: Path, entry: Any, *, place: str) -> None:
    """Refuse an entry that leads to no ordinary file within the model's folder, links followed.

    Args:
        folder: The folder of the model.
        entry: The relative path of a file, as the model names it.
        place: Name of the file, the subject of the sentence.
    """
    try:
        parts = [PurePosixPath(entry), PureWindowsPath(entry)]
        away = any(part.drive or part.root or {"..", "_ORT_MEM_ADDR_"} & set(part.parts) for part in parts)
        file = (folder / entry).resolve()
        within = not away and file.is_relative_to(folder.resolve()) and file.is_file()
    except (OSError, RuntimeError, TypeError, ValueError):  # a circle of links, no text, a NUL
        within = False
    if not within:
        raise InputError(
            f"{place} reads {entry!r}, which must be an ordinary file in its own folder and no link to elsewhere; copy the"
            " file itself to that place, or save the model again with its weights beside it."
        )


@dataclass(frozen=True)
class Trust:
    """Permissions for loading a model.

    Attributes:
        factory: Function that builds the network that a state dict fills: a callable, or "module:function".
        code: Whether code in the file may run.
        types: Names of further types that may be built.
    """

    factory: Callable[[], Any] | str | None = None
    code: bool = False
    types: frozenset[str] = frozenset()

    def refuse_code(self, path: Path, is_what: str, *, fix: str) -> None:
        """Refuse a file from which loading can run any code, unless it is trusted to do so."""
        if not self.code:
            raise InputError(
                f"{named(path)} {is_what}, and so could run any code when it is loaded or used; {fix}, or, if you trust"
                " its source as you would a program, pass trust_pickle=True (--trust-pickle)."
            )

    def refuse_types(self, path: Path, types: set[str]) -> None:
        """Refuse types that the file names, are not known to be harmless, and are not trusted by name."""
        unknown = sorted(types - self.types)
        if unknown:
            error = UntrustedError(
                f"{named(path)} holds types that are not known to be harmless: {listed(unknown)}; if you trust them, name them in"
                " trusted_types (--set trusted-types=TYPE), or save the model without them or as ONNX."
            )
            error.types = tuple(unknown)
            raise error

    def built(self) -> Any:
        """Return the network that the factory builds.

        Raises:
            InputError: A factory that cannot be found or fails.
        """
        factory = _imported(self.factory) if isinstance(self.factory, str) else self.factory
        if not callable(factory):
            raise InputError(f"factory must be a callable or 'module:function', got {self.factory!r}.")
        with explained("factory must build the network without arguments, but it failed", reason=with_kind):
            return factory()


def _imported(name: str) -> Any:
    """Return the function of a module that lies in the working directory or is installed."""
    if not all(name.partition(":")):
        raise InputError(f"factory must be written 'module:function', got {name!r}.")
    here = os.getcwd()  # noqa: PTH109 - the import path holds strings
    sys.path.insert(0, here)
    try:
        must = f"factory {name!r} must be importable from the working directory"
        with explained(f"{must}, but that failed", reason=with_kind):
            return pkgutil.resolve_name(name)
    finally:
        if here in sys.path:
            sys.path.remove(here)


# --- Output of libraries to the terminal while a model is loaded or scored, with names and values of the model in it ---
#
# Descriptors 1 and 2 lead to a file meanwhile. Into a pipe, a library that holds Python's lock could write no more than the
# pipe takes, and then would wait without end.


_SHOWN = 2**20  # bytes of it that are read, at its end
_LOCK, _USERS, _BACK = threading.Lock(), [0], contextlib.ExitStack()
if hasattr(os, "register_at_fork"):  # a child process that inherited the lock in use would wait without end
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Capture the output of libraries to descriptors 1 and 2, and then show it on standard error without control codes.

    Nothing of it reaches standard output, which may carry a result. Each line begins with ``model:``. May be nested, and used
    by several threads at once: the last to leave shows the output of all. If the process crashes, the text stays in
    ``auditor-model-*`` in the folder of temporary files.
    """
    with _LOCK:
        if not _USERS[0]:
            _lead_away()
        _USERS[0] += 1
    try:
        yield
    finally:
        with _LOCK:
            _USERS[0] -= 1
            if not _USERS[0]:
                _BACK.close()


def _lead_away() -> None:
    _flush()
    while (hole := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 - closed ones, which the next file would become
        pass
    os.close(hole)
    try:
        file, path = tempfile.mkstemp(prefix="auditor-model-")
    except OSError:  # nothing can be kept
        file, path = os.open(os.devnull, os.O_RDWR), ""
    _BACK.callback(_show, file, path)
    for place in (1, 2):
        copy = os.dup(place)
        _BACK.callback(os.close, copy)
        _BACK.callback(os.dup2, copy, place)
        os.dup2(file, place)
    _BACK.callback(_flush)
    # The streams of a progress bar or a notebook lead elsewhere.
    _BACK.enter_context(contextlib.redirect_stdout(sys.__stdout__))
    _BACK.enter_context(contextlib.redirect_stderr(sys.__stderr__))


def _flush() -> None:
    """Flush the output buffers of Python and of the C library."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):  # none, closed or full
            stream.flush()  # type: ignore[union-attr]
    with contextlib.suppress(Exception):  # no such library
        ctypes.CDLL(None).fflush(None)


def _show(file: int, path: str) -> None:
    with open(file, "rb") as stream:
        stream.seek(max(0, os.fstat(file).st_size - _SHOWN))
        lines = clean(stream.read().decode(errors="replace")).split("\n")
    with contextlib.suppress(AttributeError, OSError, ValueError):  # none, closed or full
        sys.stderr.writelines(f"model: {line}\n" for line in lines if line.strip())
        sys.stderr.flush()
    with contextlib.suppress(OSError):  # none
        Path(path).unlink()
