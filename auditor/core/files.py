"""Files: written whole or not at all, and read within limits."""

import ctypes
import errno
import filecmp
import io
import os
import re
import shutil
import stat
import sys
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
        path: Where the file goes; one that is there is replaced, and keeps its permissions.
        folder: Where the draft lies until then, on the same disk.

    Raises:
        OutputError: The draft cannot be written, as on a full disk.
    """
    draft = folder / f"{_DRAFT}{uuid.uuid4().hex}"  # which `drafts` finds if this process is killed
    try:
        with writing(path):
            yield draft
            _synced(draft)
            _put(draft, path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the system into one sentence, with its cause."""
    try:
        yield
    except AuditorError:
        raise
    except OSError as error:
        raise unwritable(path, error) from error


def _put(draft: Path, target: Path) -> None:
    """Replace a file in one step; one whose name stays, as a mount or as another user's in a sticky folder, is written to."""
    _like(draft, target)
    try:
        draft.replace(target)
    except OSError as error:
        if error.errno not in {errno.EBUSY, errno.EPERM, errno.EACCES} or not target.is_file():
            raise
        with draft.open("rb") as content, target.open("r+b") as file:
            shutil.copyfileobj(content, file)
            file.truncate()
        _synced(target)
    _synced_names(target.parent)


def _undone(draft: Path, target: Path, old: Path) -> bool:
    """Return whether a file is restored to its state before the draft: its copy is put back, or it is removed if there was none."""
    with suppress(OSError):
        if old.exists() and not filecmp.cmp(old, target, shallow=False):
            _put(old, target)
        elif not old.exists() and not draft.exists():
            target.unlink(missing_ok=True)
        return True
    return False


def _like(path: Path, other: Path) -> None:
    """Give a file or folder the permissions of another one, if that is there."""
    if other.exists():
        shutil.copymode(other, path)


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
    """Return the unfinished files of a process that was killed."""
    return sorted(path for path in folder.iterdir() if _OWN.fullmatch(path.name))


def unwritable(path: Path, error: OSError, *, more: str = "") -> OutputError:
    """Return the sentence for a file that cannot be written; ``more`` ends it."""
    reason = os.strerror(error.errno) if error.errno else validate.one_line(error)
    return OutputError(f"output path {str(path)!r} cannot be written: {reason}{more}.")


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


_HANDLES = Path("/dev/fd")  # of this process, by their numbers, to which /dev/stdout leads


def _resolved(path: Path) -> Path:
    """Return the file that the path leads to, through links; of an open handle its name among those."""
    try:
        step = path
        for _ in range(40):  # more links in a row lead nowhere
            step = step.parent.resolve() / step.name
            if handle := re.fullmatch(rf"(/dev|/proc/{os.getpid()}(/task/\d+)?)/fd/(\d+)", str(step)):
                return _HANDLES / handle[3]
            if not step.is_symlink():
                break
            step = step.parent / step.readlink()
        return path.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise OutputError(f"output path {str(path)!r} is not a path that can be written: {error}.") from None


def _problem(target: Path, *, seen: set[Path], taken: set[Path]) -> str | None:
    handle = target.parent == _HANDLES
    try:
        if handle:
            os.write(int(target.name), b"")
        mode = target.stat().st_mode if target.exists() and not handle else None
        folder_is_there = target.parent.is_dir()
    except (OSError, ValueError) as error:
        return f"is not a path that can be written: {error}"
    is_there = mode is not None
    writable = handle or (os.access(target.parent, os.W_OK) and (not is_there or os.access(target, os.W_OK)))
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

    Each goes to a draft beside its target first. The targets are replaced only once all drafts are on disk, and are put back
    where one of them cannot be replaced. Output through a handle, as to /dev/stdout, goes last and stays.

    Raises:
        OutputError: A path cannot be written.
    """
    check_writable(texts)
    files: dict[Path, tuple[Path, Path, Path]] = {}
    begun: list[Path] = []
    path = Path()
    with ExitStack() as stack:
        try:
            for path, text in texts.items():
                target = _resolved(path)
                if target.parent != _HANDLES:
                    beside = stack.enter_context(scratch(target.parent))
                    files[path] = draft, _, old = beside / "draft", target, beside / "old"
                    draft.write_bytes(_content(text))
                    _synced(draft)
                    if target.exists():
                        shutil.copy2(target, old)
            for path, (draft, target, _) in files.items():
                begun.append(path)
                _put(draft, target)
            for path in texts.keys() - files.keys():
                # A reader that went away (as ``head`` does) is no error.
                with suppress(BrokenPipeError), os.fdopen(os.dup(int(_resolved(path).name)), "wb") as handle:
                    handle.write(_content(texts[path]))
                begun.append(path)
        except BaseException as error:
            stuck = [repr(str(one)) for one in begun if one not in files or not _undone(*files[one])]
            if not isinstance(error, OSError):
                raise
            count = f"; of {len(texts)} outputs {', '.join(stuck) or 'none'} was written"
            raise unwritable(path, error, more=count if len(texts) > 1 else "") from None


def _content(text: str | bytes) -> bytes:
    # Lone surrogates, as in a file name that is not text, are written as escapes.
    return text if isinstance(text, bytes) else text.encode("utf-8", errors="backslashreplace")


def write_folder(path: Path, texts: dict[str, str]) -> None:
    """Write a folder that holds these texts by their names and nothing else, whole or not at all; files that are there go.

    Raises:
        OutputError: The path cannot be written.
    """
    target = _resolved(path)
    with writing(path), scratch(target.parent) as beside:
        new = beside / "new"
        new.mkdir()
        for name, text in texts.items():
            (new / name).write_bytes(_content(text))
            _synced(new / name)
            _like(new / name, target / name)
        _synced_names(new)
        _like(new, target)
        if not target.exists():
            new.rename(target)
        elif not _exchanged(new, target):  # as where it is a mount, and on other systems
            # In turn, so that the first, which leads to the others, is the last to be replaced.
            write_all({target / name: texts[name] for name in reversed(texts)})
            for other in set(target.iterdir()) - {target / name for name in texts}:
                other.unlink()
        _synced_names(target.parent)


def _exchanged(one: Path, other: Path) -> bool:
    """Return whether the names of two folders were exchanged in one step, which Linux does on most disks."""
    with suppress(AttributeError, TypeError):  # another system
        # From AT_FDCWD to AT_FDCWD, with RENAME_EXCHANGE.
        return bool(ctypes.CDLL(None).renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0)
    return False


# --- Folders for drafts: a process locks its own, and those without a lock are of processes that were killed ---


if sys.platform == "win32":
    import msvcrt

    def take(handle: int, *, wait: bool = False) -> None:  # noqa: ARG001 - folders have no handles there
        """Lock an open file for this process alone, until it is closed or the process ends."""
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def take(handle: int, *, wait: bool = False) -> None:
        """Lock an open file for this process alone, until it is closed or the process ends."""
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Yield a folder for drafts in this one, which only this user can read and which is removed in the end."""
    sweep(folder)
    beside = folder / f".auditor-{uuid.uuid4().hex}.tmp"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, beside, ignore_errors=True)
        while not beside.exists():  # another process may sweep it before it is held
            beside.mkdir(mode=0o700)
            with suppress(OSError):  # Windows has no handles of folders, and some disks have no locks
                _hold(beside, stack, wait=True)
        yield beside


def sweep(folder: Path) -> None:
    """Remove the folders for drafts that processes of this user left here when they were killed."""
    for left in folder.glob(f".auditor-{'[0-9a-f]' * 32}.tmp"):
        with suppress(OSError, AttributeError), ExitStack() as stack:
            if left.lstat().st_uid == os.geteuid():
                _hold(left, stack)
                shutil.rmtree(left)


def _hold(folder: Path, stack: ExitStack, *, wait: bool = False) -> None:
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))  # not that of a pipe, which waits
    stack.callback(os.close, handle)
    take(handle, wait=wait)


@contextmanager
def temporary(name: str, content: IO[bytes] | None = None) -> Iterator[Path]:
    """Yield the path of a temporary file, with this content if there is any; afterwards it is removed.

    Raises:
        OutputError: It cannot be written, as on a full disk.
    """
    with ExitStack() as stack:
        try:
            path = stack.enter_context(scratch(Path(tempfile.gettempdir()))) / name
            if content is not None:
                with path.open("wb") as file:
                    shutil.copyfileobj(content, file)
        except OSError as error:
            words = f"temporary file {name!r} cannot be written: {error.strerror}"
            raise OutputError(f"{words}; make room, or name another folder in the variable TMPDIR.") from None
        yield path


def saved(text: str, path: Any) -> str:
    """Return the text; with a path write it there, whole or not at all, and return the path as text.

    Raises:
        InputError: The path is neither a text nor a path.
        OutputError: The path cannot be written.
    """
    if path is not None:
        if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
            raise InputError(f"path must be a text or a path, got {path!r}.")
        write_all({Path(path): text})
    return text if path is None else os.fspath(path)


def table_content(frame: Any, path: Path, *, note: str = "", key: bytes = b"note") -> str | bytes:
    """Return the content of a file of this name that holds a pandas table, and a Parquet file a note under a key of its metadata.

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
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), key: note.encode()})
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


# --- Reading within limits: tables within their memory, and small files ---


MEMORY = 1e9  # bytes that the table in a file may take once decoded, unless more is allowed


_MEGABYTE = 10**6
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
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                kind = next((word for holds, word in _NO_FILES if holds(status.st_mode)), "a device")
                raise InputError(f"{named} is {kind}; name an ordinary file.")
            content = b"" if status.st_size > most else file.read(most + 1)
    except OSError as error:
        raise InputError(f"{named} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{named} cannot be read: {validate.one_line(error)}.") from None
    size = max(status.st_size, len(content))
    if size > most:
        limit = f"{most / _MEGABYTE:g} MB" if most >= _MEGABYTE else f"{most:,} bytes"
        raise InputError(f"{named} is larger than {limit} ({size:,} bytes), the largest size that is read.")
    return content
