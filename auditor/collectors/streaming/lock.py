"""One process at a time: the working folder beside an output belongs to whoever holds the lock in it."""

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor.collectors.streaming.writing import unwritable
from auditor.errors import OutputError

__all__ = ["NoFolderError", "locked"]

_NAME = "lock"
_ATTEMPTS = 1000  # a folder that is made and never there is none, as under /proc
# Where a file can be removed while it is open, it is removed while it is held, so that nobody takes it in between;
# on Windows it cannot, not even if somebody took it in between, and so must be let go of first.
_HELD_FILES_CAN_GO = os.name != "nt"


class NoFolderError(OutputError):
    """There is no folder to hold, and none can be made."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made if it is not there; left empty, it is removed in the end.

    The system lets go of the lock when the process ends, in whatever way, so that none is ever left behind.

    Raises:
        NoFolderError: It cannot be made or written to, as on a disk that is read only.
        OutputError: Another process holds it, or the disk has no locks.
    """
    path = folder / _NAME
    handle = _acquired(folder, path)
    try:
        yield
    finally:
        if not _HELD_FILES_CAN_GO:
            os.close(handle)
        with contextlib.suppress(OSError):
            if [item.name for item in folder.iterdir()] == [_NAME]:
                path.unlink()
                folder.rmdir()
        if _HELD_FILES_CAN_GO:
            os.close(handle)


def _acquired(folder: Path, path: Path) -> int:
    for attempt in itertools.count():
        try:
            folder.mkdir(exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError as error:
            if folder.parent.is_dir() and attempt < _ATTEMPTS:
                continue  # its holder removed it just now
            raise NoFolderError(str(unwritable(folder, error))) from error
        except OSError as error:
            raise NoFolderError(str(unwritable(folder, error))) from error
        try:
            _take(handle)
            if _is_still(handle, path):
                return handle
        except OSError as error:
            os.close(handle)
            raise _refusal(folder, error) from error
        os.close(handle)
    raise AssertionError  # counting never ends


def _is_still(handle: int, path: Path) -> bool:
    """Whether the file that was locked is the one in the folder, and not one that was removed meanwhile."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _refusal(folder: Path, error: OSError) -> OutputError:
    if isinstance(error, BlockingIOError | PermissionError):
        output = str(folder.with_suffix(""))
        return OutputError(
            f"output path {output!r} is being collected by another process; wait for it, or name another output."
        )
    return OutputError(
        f"folder {str(folder)!r} cannot be locked: {error.strerror or error}; name an output on a local disk."
    )


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
