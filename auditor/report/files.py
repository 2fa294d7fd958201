"""Writing results: whole or not at all."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from auditor.errors import OutputError

__all__ = ["check_writable", "write_all"]


def check_writable(paths: Iterable[Path]) -> None:
    """Refuse, before any work is done, a path that a result cannot be written to.

    Raises:
        OutputError: The folder is missing or not writable, the path is a folder, or two outputs share a path.
    """
    seen: set[Path] = set()
    for path in paths:
        folder = path.parent
        if path.is_dir():
            raise OutputError(f"output path {str(path)!r} is a folder; name a file in it.")
        if not folder.is_dir():
            raise OutputError(
                f"output path {str(path)!r}: the folder {str(folder)!r} does not exist; create it first."
            )
        if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
            raise OutputError(f"output path {str(path)!r} cannot be written: permission denied.")
        if path.resolve() in seen:
            raise OutputError(
                f"output path {str(path)!r} is named twice; give each output a file of its own."
            )
        seen.add(path.resolve())


def write_all(texts: Mapping[Path, str]) -> None:
    """Write every text to its path, or none of them.

    Each goes to a temporary file beside its target first; the targets are replaced only once all are on disk.

    Raises:
        OutputError: A path cannot be written.
    """
    check_writable(texts)
    drafts: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
            drafts[path] = Path(name)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            drafts[path].chmod(0o666 & ~_umask())
        for path, draft in drafts.items():
            draft.replace(path)
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
