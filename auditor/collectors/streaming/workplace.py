"""The working folder beside an output: what is in it, and what is left of it in the end."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from auditor.collectors.streaming.collection import Collection, UnitReport
from auditor.collectors.streaming.manifest import Manifest, read_manifest, write_manifest
from auditor.collectors.streaming.part import checked_part, is_part, part_path
from auditor.collectors.streaming.writing import drafts, unwritable
from auditor.errors import InputError, OutputError

__all__ = ["Workplace"]


@dataclass(frozen=True)
class Workplace:
    """A folder of parts with a manifest; nothing else in it is touched.

    Attributes:
        folder: Where it is.
    """

    folder: Path

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def _finished(self) -> Path:
        return self.folder / "finished.json"

    def manifest(self) -> Manifest | None:
        """Return what was begun here and has no output yet."""
        return read_manifest(self._manifest)

    def finished(self) -> Manifest | None:
        """Return what was completed by a process that was killed before the folder was gone."""
        return read_manifest(self._finished)

    def has_parts(self) -> bool:
        """Return whether anything that was scored is here, of whatever collection."""
        return bool(self._parts())

    def refuse_foreign(self) -> None:
        """Refuse a folder with files that have the names of parts, and no manifest that says whose they are.

        Raises:
            InputError: They are not of a collection, or it cannot be known of which.
        """
        found = self._parts()
        if found and not self._has_manifest:
            raise InputError(
                f"folder {str(self.folder)!r} must hold an interrupted collection or no parts, got {len(found)} such as"
                f" {found[0].name!r} without a manifest; move them away, name another output, or ask for it to be"
                " overwritten."
            )

    def refuse_elsewhere(self, output: Path) -> None:
        """Refuse a folder on another disk than the output, which no file can be moved to in one step.

        Raises:
            OutputError: It is a link, or a mounted disk.
        """
        if self.folder.stat().st_dev != output.parent.stat().st_dev:
            raise OutputError(
                f"folder {str(self.folder)!r} must be on the same disk as the output {output.name!r}, and is a link to"
                " another or one itself; remove it, or name an output on that disk."
            )

    def begin(self, manifest: Manifest) -> None:
        """Write the manifest into a folder without parts."""
        self._empty()
        write_manifest(self._manifest, manifest)

    def parts(self, collection: Collection, *, damaged: Callable[[Path], None]) -> dict[int, UnitReport]:
        """Return the reports of the parts that are whole, by unit; unfinished drafts are removed."""
        _remove(drafts(self.folder))
        found = {}
        for unit in collection.units:
            path = part_path(self.folder, unit)
            report = checked_part(path, unit=unit, key=collection.key)
            if report is not None:
                found[unit.index] = report
            elif path.exists():
                damaged(path)
        return found

    def finish(self) -> None:
        """Say that the output is there, and remove everything."""
        with contextlib.suppress(FileNotFoundError):
            self._manifest.replace(self._finished)
        self.clear()

    def clear(self) -> None:
        """Remove what a collection wrote here, if one did; that the output is there is forgotten last."""
        if self._has_manifest:
            self._empty()
        else:
            _remove(drafts(self.folder))

    @property
    def _has_manifest(self) -> bool:
        return self._manifest.exists() or self._finished.exists()

    def _parts(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if is_part(path))

    def _empty(self) -> None:
        _remove([*drafts(self.folder), *self._parts()])
        _remove([self._manifest, self._finished])


def _remove(paths: list[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error
