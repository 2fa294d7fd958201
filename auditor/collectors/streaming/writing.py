"""Files that are there whole or not at all, whatever happens in between."""

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor import _validate
from auditor.errors import AuditorError, OutputError

__all__ = ["drafts", "synced", "unwritable", "whole"]

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
    draft = folder / f"{_DRAFT}{uuid.uuid4().hex}"
    try:
        yield draft
        synced(draft)
        draft.replace(path)
        if os.name == "posix":
            synced(path.parent)
    except AuditorError:
        raise
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def synced(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    # Windows writes back only through a handle that may write, and has none for folders.
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def drafts(folder: Path) -> list[Path]:
    """Return what a process that was killed left unfinished."""
    return sorted(path for path in folder.iterdir() if _OWN.fullmatch(path.name))


def unwritable(path: Path, error: OSError) -> OutputError:
    """Return the sentence for a file that cannot be written."""
    reason = os.strerror(error.errno) if error.errno else _validate.one_line(error)
    return OutputError(f"output path {str(path)!r} cannot be written: {reason}.")
