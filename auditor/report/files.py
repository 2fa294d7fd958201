"""Writing results: whole or not at all."""

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from auditor.errors import OutputError

__all__ = ["check_writable", "write_all"]


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
            mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
            drafts[target].chmod(mode)
        for target, draft in drafts.items():
            draft.replace(target)
    except OSError as error:
        raise OutputError(
            f"output path {str(path)!r} cannot be written: {error.strerror or error}."
        ) from None
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
