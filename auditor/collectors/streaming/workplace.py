"""The working folder beside an output: what is in it, and what is left of it in the end."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from auditor.collectors.streaming.collection import Collection, UnitReport
from auditor.collectors.streaming.manifest import Manifest, read_manifest, write_manifest
from auditor.collectors.streaming.part import checked_part, part_path
from auditor.collectors.streaming.writing import drafts, unwritable

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
        return any(self.folder.glob("part-*.parquet"))

    def begin(self, manifest: Manifest) -> None:
        """Write the manifest into a folder without parts."""
        self.clear()
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
        """Remove everything that was written here; that the output is there is forgotten last."""
        _remove([*drafts(self.folder), *sorted(self.folder.glob("part-*.parquet"))])
        _remove([self._manifest, self._finished])


def _remove(paths: list[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error
