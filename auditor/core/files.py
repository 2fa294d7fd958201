"""Files: written whole or not at all, and read within limits."""

import io
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from auditor.core import validate
from auditor.core.errors import AuditorError, InputError, OutputError

# --- Files that are there whole or not at all, whatever happens in between ---


_DRAFT = ".draft-"
_OWN = re.compile(re.escape(_DRAFT) + "[0-9a-f]{32}")


@contextmanager
def whole(path: Path, *, folder: Path) -> Iterator[Path]:
    """Yield where to write a draft; once it is written and on disk it takes its place in one step.

    Args:
        path: Where the file goes; one that is there is replaced.
        folder: Where the draft lies until then, on the same disk.

    Raises:
        OutputError: The draft cannot be written, as on a full disk.
    """
    draft = folder / f"{_DRAFT}{uuid.uuid4().hex}"  # which `drafts` finds if this process is killed
    try:
        yield draft
        _synced(draft)
        draft.replace(path)
        _synced_names(path.parent)
    except AuditorError:
        raise
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _synced(path: Path, how: int = os.O_RDWR) -> None:
    """Wait until a file is on disk; Windows writes back only through a handle that may write."""
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _synced_names(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where there are handles for folders: not on Windows, nor on every disk."""
    with suppress(OSError):
        _synced(folder, os.O_RDONLY)


def drafts(folder: Path) -> list[Path]:
    """Return what a process that was killed left unfinished."""
    return sorted(path for path in folder.iterdir() if _OWN.fullmatch(path.name))


def unwritable(path: Path, error: OSError) -> OutputError:
    """Return the sentence for a file that cannot be written."""
    reason = os.strerror(error.errno) if error.errno else validate.one_line(error)
    return OutputError(f"output path {str(path)!r} cannot be written: {reason}.")


def check_writable(paths: Iterable[Path], *, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work is done, a path that a result cannot be written to.

    Args:
        paths: Where results are to go.
        inputs: Files that are read, which no result may replace.

    Raises:
        OutputError: The folder is missing or not writable, the path is a folder, a device or an input, or two outputs
            share a path.
    """
    taken = {_resolved(path) for path in inputs}
    seen: set[Path] = set()
    for path in paths:
        target = _resolved(path)
        problem = _problem(target, seen=seen, taken=taken)
        if problem is not None:
            raise OutputError(f"output path {str(path)!r} {problem}.")
        seen.add(target)


def _resolved(path: Path) -> Path:
    """The file that the path leads to, through links."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise OutputError(f"output path {str(path)!r} is not a path that can be written: {error}.") from None


def _problem(target: Path, *, seen: set[Path], taken: set[Path]) -> str | None:
    try:
        mode = target.stat().st_mode if target.exists() else None
        folder_is_there = target.parent.is_dir()
    except (OSError, ValueError) as error:
        return f"is not a path that can be written: {error}"
    is_there = mode is not None
    writable = os.access(target.parent, os.W_OK) and (not is_there or os.access(target, os.W_OK))
    problems = (
        (is_there and stat.S_ISDIR(mode or 0), "is a folder; name a file in it"),
        (is_there and not stat.S_ISREG(mode or 0), "is not an ordinary file; name one"),
        (
            not folder_is_there,
            f"cannot be written: the folder {str(target.parent)!r} does not exist; create it first",
        ),
        (not writable, "cannot be written: permission denied; name another or change the permission"),
        (target in seen, "is named twice; give each output a file of its own"),
        (target in taken, "is a file that this command reads; name another"),
    )
    return next((words for holds, words in problems if holds), None)


def write_all(texts: Mapping[Path, str | bytes]) -> None:
    """Write every text, or every content in bytes, to its path, or none of them; a file that is replaced keeps its permissions.

    Each goes to a temporary file beside its target first; the targets are replaced only once all are on disk.

    Raises:
        OutputError: A path cannot be written.
    """
    check_writable(texts)
    drafts: dict[Path, Path] = {}
    path = Path()
    try:
        for path, text in texts.items():
            target = _resolved(path)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=".auditor-", suffix=".tmp")
            drafts[target] = Path(name)
            # Lone surrogates, as in a file name that is not text, are written as escapes.
            content = text if isinstance(text, bytes) else text.encode("utf-8", errors="backslashreplace")
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            _synced(drafts[target])
            mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
            drafts[target].chmod(mode)
        for target, draft in drafts.items():
            draft.replace(target)
        for folder in {target.parent for target in drafts}:
            _synced_names(folder)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


def write_folder(path: Path, texts: Mapping[str, str]) -> None:
    """Write a folder that holds these texts by their names and nothing else, whole or not at all; one that is there goes.

    Raises:
        OutputError: The path cannot be written.
    """
    target = _resolved(path)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".auditor-", suffix=".tmp") as beside:
            new, old = Path(beside, "new"), Path(beside, "old")
            new.mkdir()
            for name, text in texts.items():
                (new / name).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
                _synced(new / name)
            _synced_names(new)
            if target.exists():
                target.rename(old)
            new.rename(target)
            _synced_names(target.parent)
    except OSError as error:
        raise unwritable(path, error) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def temporary(name: str, content: IO[bytes] | None = None) -> Iterator[Path]:
    """Yield the path of a temporary file, with this content if there is any; afterwards it is removed.

    Raises:
        OutputError: It cannot be written, as on a full disk.
    """
    with ExitStack() as stack:
        try:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="auditor-")), name)
            if content is not None:
                with path.open("wb") as file:
                    shutil.copyfileobj(content, file)
        except OSError as error:
            words = f"temporary file {name!r} cannot be written: {error.strerror}"
            raise OutputError(f"{words}; make room, or name another folder in the variable TMPDIR.") from None
        yield path


def kept(text: str, path: Any) -> str:
    """Return the text, once it is written where a path was given, whole or not at all.

    Raises:
        InputError: The path is neither a text nor a path.
        OutputError: The path cannot be written.
    """
    if path is not None:
        if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
            raise InputError(f"path must be a text or a path, got {path!r}.")
        write_all({Path(path): text})
    return text


def table_content(frame: Any, path: Path, *, note: str = "") -> str | bytes:
    """Return the content of a file of this name that holds a pandas table, and a Parquet file a note in its metadata.

    Raises:
        InputError: A path with another ending than ``.csv`` and ``.parquet``.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return str(frame.to_csv(index=False, lineterminator="\n"))
    if suffix != ".parquet":
        raise InputError(f"path must end in .csv or .parquet, got {str(path)!r}; name the file so.")
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    if note:
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"note": note.encode()})
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


# --- What is read within limits: tables in the memory that they may take, and small files ---


MEMORY = 1e9  # bytes that the table in a file may take once decoded, unless somebody allows more


def within_memory(place: str, needed: float, *, memory: float) -> None:
    """Refuse a table, before it is decoded, that needs more bytes of memory than it may take.

    >>> within_memory("file 'a.npz'", 3.9e9, memory=MEMORY)
    Traceback (most recent call last):
    auditor.core.errors.InputError: file 'a.npz' would need 3.9 GB of memory once decoded, more than the 1 GB that a table may take; allow more with memory (--memory, in bytes), or write it with fewer rows or shorter texts.
    """
    if needed > memory:
        raise InputError(
            f"{place} would need {needed / _GIGABYTE:.2g} GB of memory once decoded, more than the"
            f" {memory / _GIGABYTE:.2g} GB that a table may take; allow more with memory (--memory, in bytes), or write it"
            " with fewer rows or shorter texts."
        )


_MEGABYTE, _GIGABYTE = 10**6, 10**9
_NO_FILES = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


def read_bytes(path: str | os.PathLike[str], *, what: str, most: int) -> bytes:
    """Return the content of an ordinary file of at most ``most`` bytes; nothing else is waited for or read.

    Raises:
        InputError: It is missing, larger, or a folder, pipe, socket or device; ``what`` begins the sentence.

    >>> read_bytes("/", what="result file", most=10)
    Traceback (most recent call last):
    auditor.core.errors.InputError: result file '/' is a folder; name an ordinary file.
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
                kind = next((word for holds, word in _NO_FILES if holds(found.st_mode)), "a device")
                raise InputError(f"{named} is {kind}; name an ordinary file.")
            content = b"" if found.st_size > most else file.read(most + 1)
    except OSError as error:
        raise InputError(f"{named} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{named} cannot be read: {validate.one_line(error)}.") from None
    size = max(found.st_size, len(content))
    if size > most:
        shown = f"{most / _MEGABYTE:g} MB" if most >= _MEGABYTE else f"{most:,} bytes"
        raise InputError(f"{named} is larger than {shown} ({size:,} bytes), which is the most that is read.")
    return content
