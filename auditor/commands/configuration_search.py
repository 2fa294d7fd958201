"""Where the file with settings is looked for: the current directory, then the folders above it, the nearest first.

The nearest folder that has `auditor.toml`, or the table `[tool.auditor]` in its `pyproject.toml`, decides alone: settings
of several files are never mixed. The search ends with the first folder that is the root of a repository (it has `.git`),
the home folder or the root of the file system, which is looked at too.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.commands.configuration_file import PROJECT, File, named_file, parsed, project_tables, read
from auditor.commands.configuration_slips import file_nearly_right, table_nearly_right
from auditor.errors import InputError

__all__ = ["Search", "search"]

_OWN = "auditor.toml"
_ADVICE = "--config names another file, and --no-config reads none"

Command = Callable[..., Any]


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes:
        file: The nearest file that holds settings, if there is one.
        looked: The files that were looked for, in order, each with what became of it.
        end: The folder in which the search ended, in words.
    """

    file: File | None
    looked: tuple[str, ...]
    end: str

    def sentence(self) -> str:
        """Return all of it in words."""
        words = (
            f"settings: looked for {', '.join(self.looked)}" if self.looked else "settings: looked nowhere"
        )
        return f"{words}; {self.end}."


def search(*, commands: Sequence[Command], above: bool = False) -> Search:
    """Return the nearest file with settings.

    Args:
        commands: What a file can configure.
        above: Whether to look only above the current directory.

    Raises:
        InputError: A folder on the way has two such files, one that cannot be read, or one whose name, or the name of
            a table in it, is nearly right; or the file is somebody else's, in a folder where everyone can write.
    """
    looked: list[str] = []
    end = "the current directory is gone"
    for depth, (folder, last) in enumerate(_folders()):
        end = f"the search ended at {last}" if last else end
        if above and not depth:
            continue
        found = _in_folder(folder, looked, commands)
        if found is not None:
            if depth:
                _check_owner(found.path, folder)
            return Search(found, tuple(looked), f"{str(found.path)!r} is used")
    return Search(None, tuple(looked), end)


def _folders() -> Iterator[tuple[Path, str]]:
    """The folders to look in, as seen from the current one, each with why it is the last, if it is."""
    try:
        here = Path.cwd()
    except OSError:  # somebody deleted it
        return
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # there is none
        home = None
    for depth, folder in enumerate((here, *here.parents)):
        last = "the root of the file system" if folder == folder.parent else ""
        last = "the home folder" if folder == home else last
        last = "the root of a repository" if os.path.lexists(folder / ".git") else last
        yield Path(*[os.pardir] * depth), last
        if last:
            return


def _in_folder(folder: Path, looked: list[str], commands: Sequence[Command]) -> File | None:
    own, project = folder / _OWN, folder / PROJECT
    has_own = os.path.lexists(own)
    of_project = _of_project(project, commands)
    if has_own and of_project is not None:
        raise InputError(
            f"both {str(own)!r} and [tool.auditor] in {str(project)!r} hold settings; remove one, or say which with"
            " --config."
        )
    looked.append(f"{str(own)!r} ({'there' if has_own else 'not there'})")
    there = "not there" if not os.path.lexists(project) else "has no [tool.auditor]"
    looked.append(f"{str(project)!r} ({there if of_project is None else 'has [tool.auditor]'})")
    if has_own:
        return named_file(own)
    if of_project is None:
        near = file_nearly_right(folder, commands=commands)
        if near is not None:
            raise InputError(
                f"{str(near)!r} looks like settings, which are read from {_OWN!r}, in TOML; rename it ({_ADVICE})."
            )
    return of_project


def _of_project(path: Path, commands: Sequence[Command]) -> File | None:
    """The settings in a pyproject.toml; one that does not speak of us may be as it likes."""
    if not os.path.isfile(path):  # noqa: PTH113 - which is no error where nobody may look
        return None
    content = read(path)
    try:
        raw = parsed(path, content)
    except InputError:
        if b"auditor" in content:
            raise
        return None
    near = table_nearly_right(raw, commands=commands)
    if near is not None:
        raise InputError(
            f"configuration file {str(path)!r} has the table [{near}], which nothing reads; did you mean [tool.auditor]?"
            f" ({_ADVICE})"
        )
    tables = project_tables(raw)
    return None if tables is None else File(path, "tool.auditor.", tables)


def _check_owner(path: Path, folder: Path) -> None:
    """Refuse what another user put above us, as into /tmp: settings say which files are written."""
    if not hasattr(os, "geteuid"):
        return
    everyone = folder.stat().st_mode & stat.S_IWOTH
    if everyone and path.lstat().st_uid not in (0, os.geteuid()):
        raise InputError(
            f"configuration file {str(path)!r} belongs to another user and stands in a folder where everyone can write;"
            f" name it with --config if it is meant ({_ADVICE})."
        )
