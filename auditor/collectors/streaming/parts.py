"""The parts of a long collection: each unit of records is scored, and becomes a file of its own in a folder that is locked.

A part counts only where its seal, a hash of its content, its unit and the collection's key, says that it was written for this
unit of this collection. The key is a hash of all that decides the numbers: the model, the data and the setting.
"""

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from auditor.collectors.base.records import Batch, Source
from auditor.collectors.base.scorer import Scorer, score_batches
from auditor.collectors.base.tasks import BatchLosses
from auditor.collectors.streaming.engines import Work
from auditor.collectors.tables.collected import Manifest
from auditor.core import Array, InputError, OutputError, drafts, take, whole, writing
from auditor.records.labels import is_missing

OWN_COLUMNS = ("loss", "member", "id", "group", "person", "label", "fingerprint", "saturated", "correct")
_FACTS = b"auditor-part"
MANIFEST = "manifest.json"  # it makes a folder a collection's, and is removed last
_LOCK = "lock"
_UNITS = 10_000  # at most about so many: each is a file, and a kill costs no more than one of them
_AT_ONCE = 32
_SEAL = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Unit:
    """A stretch of one table that is scored and written as a whole.

    Attributes:
        index: Its place in the output, from 0.
        source: Table, by its place among the sources.
        start: Its first record in the table.
        stop: The record after its last.
    """

    index: int
    source: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def unit_size(sources: Sequence[Source], *, batch_size: int) -> int:
    """Return the number of records in a unit: one batch, or several where that would make too many files."""
    batches = -(-sum(map(len, sources)) // batch_size)
    return batch_size * max(1, -(-batches // _UNITS))


@dataclass(eq=False)
class Scoring(Work):
    """The work of a collection: each unit is scored, and its part written.

    Attributes:
        factory: Builds the scorer, in the process that is to score.
        sources: The tables, in the order of the output.
        folder: Folder of the parts.
        manifest: All that decides the numbers.
        scorer: Scorer of this process.
    """

    factory: Callable[[], Scorer]
    sources: tuple[Source, ...]
    folder: Path
    manifest: Manifest
    scorer: Scorer | None = None

    sent: ClassVar[str] = "model and tables"
    if_not_sent: ClassVar[str] = "name the model's file, or use the local engine"
    if_too_large: ClassVar[str] = "a smaller batch size"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "scorer": None}  # another process builds its own

    @property
    def at_once(self) -> int:
        """Units for each call of another process: several where a server answers about them at the same time."""
        return _AT_ONCE if getattr(self.scorer, "senders", ()) else 1

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """All units in the order of the output; the batches in them are the same in every run."""
        size = self.manifest.unit_size
        stretches = (
            (place, start, min(start + size, len(source)))
            for place, source in enumerate(self.sources)
            for start in range(0, len(source), size)
        )
        return tuple(Unit(index, *stretch) for index, stretch in enumerate(stretches))

    def prepare(self) -> None:
        """Build the scorer.

        Raises:
            InputError: It is another one than that of the process that began, and its losses would be mixed.
        """
        if self.scorer is None:
            scorer = self.factory()
            if scorer.identity != self.manifest.model:
                raise InputError(
                    "model must be the same in every worker, but a Ray worker built another one; leave the model's file"
                    " alone while records are scored, and fix the random choices when it is built."
                )
            self.scorer = scorer

    def named(self, unit: Unit) -> str:
        """Return whose rows these are."""
        return f"{self.sources[unit.source].name} rows {unit.start} to {unit.stop - 1}, counting from 0,"

    def __call__(self, unit: Unit) -> Unit:
        """Score one unit and write its part; see `each`."""
        return next(self.each([unit]))

    def each(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """Score units and write their parts in order, each whole or not at all; done twice, a part is the same.

        Raises:
            InputError: Records or outputs that cannot be scored.
            OutputError: The part cannot be written.
        """
        if self.scorer is None:
            raise RuntimeError("prepare() comes first.")
        read = deque[Unit]()

        def batches() -> Iterator[Batch]:
            for unit in units:
                read.append(unit)
                yield self.sources[unit.source].read(unit.start, unit.stop)

        with closing(score_batches(self.scorer, batches(), size=self.manifest.batch_size)) as scored:
            for batch, losses in scored:
                unit = read.popleft()
                self._write(unit, batch, losses)
                yield unit

    def _write(self, unit: Unit, batch: Batch, losses: BatchLosses) -> None:
        facts = json.dumps({"eps": float(losses.eps), "hard": bool(losses.hard), "shown": losses.shortest})
        sink = pa.BufferOutputStream()
        parquet.write_table(_table(batch, losses).replace_schema_metadata({_FACTS: facts}), sink)
        content = sink.getvalue().to_pybytes()
        with whole(self.path(unit), folder=self.folder) as draft:
            draft.write_bytes(self._seal(content, unit) + content)

    def path(self, unit: Unit) -> Path:
        """Return where the part of a unit lies."""
        return self.folder / f"part-{unit.index:08d}"

    def part(self, unit: Unit) -> Any:
        """Return the table of a part; none if it is not there, damaged, cut off, another unit's or another collection's."""
        try:
            content = self.path(unit).read_bytes()
        except OSError:
            return None
        seal, content = content[:_SEAL], content[_SEAL:]
        return parquet.read_table(pa.BufferReader(content)) if seal == self._seal(content, unit) else None

    def written(self, unit: Unit) -> Any:
        """Return the table of a part that was written.

        Raises:
            OutputError: It is no longer as it was.
        """
        table = self.part(unit)
        if table is None:
            raise OutputError(
                f"part {str(self.path(unit))!r} was damaged or removed since it was written; run the same again, which"
                " scores only its records."
            )
        return table

    def _seal(self, content: bytes, unit: Unit) -> bytes:
        return hashlib.sha256(f"{self.manifest.key} {unit}\n".encode() + content).digest()


def parts_in(folder: Path) -> list[Path]:
    """Return the files with the name of a part."""
    return sorted(folder.glob(f"part-{'[0-9]' * 8}"))


def facts_in(part: Any) -> BatchLosses:
    """Return the facts about the losses in the table of a part, without the losses."""
    eps, hard, shortest = json.loads(part.schema.metadata[_FACTS]).values()
    return BatchLosses(np.empty(0), np.empty(0, dtype=np.bool_), eps=eps, hard=hard, shortest=shortest)


def _table(batch: Batch, losses: BatchLosses) -> Any:
    """Return the columns of a part; infinite losses stay infinite."""
    columns: dict[str, Any] = {"loss": np.asarray(losses.loss, dtype=np.float64), "member": batch.member}
    columns |= {own: batch.columns[own] for own in OWN_COLUMNS[2:] if own in batch.columns}
    columns |= {} if batch.fingerprint is None else {"fingerprint": batch.fingerprint}
    columns["saturated"] = losses.saturated
    columns |= losses.more
    return pa.table({name: _arrow(np.asarray(values)) for name, values in columns.items()})


def _arrow(values: Array) -> Any:
    """Return a column in the nearest type of Arrow, with missing values as Arrow's null; objects that share none become text."""
    try:
        if values.dtype.kind in "fiubM":
            return pa.array(values)
        return pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([None if is_missing(value) else str(value) for value in values.tolist()], pa.string())


# --- The folder: one process at a time ---

# Where a file can be removed while it is open it is removed while it is held, so that no process takes it in between.
_HELD_FILES_CAN_GO = os.name != "nt"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, and create it if needed; an empty one is removed at the end.

    The system releases the lock when the process ends, in whatever way.

    Raises:
        OutputError: It cannot be made or written to, another process holds it, or the disk has no locks.
    """
    path = folder / _LOCK
    with writing(folder):
        folder.mkdir(exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with ExitStack() as stack:
        stack.callback(os.close, handle)
        try:
            take(handle)
            # Its holder may have removed it between the opening and the taking, and a lock on a removed folder is none.
            if not os.path.samestat(os.fstat(handle), path.stat()):
                raise BlockingIOError("another one is there")
        except OSError as error:
            raise OutputError(
                f"output path {str(folder.with_suffix(''))!r} is being collected by another process, or its disk has no"
                f" locks ({error.strerror or error}); wait for it, or name another output."
            ) from error
        try:
            yield
        finally:
            if not _HELD_FILES_CAN_GO:
                stack.close()
            with suppress(OSError):
                if [item.name for item in folder.iterdir()] == [_LOCK]:
                    path.unlink()
                    folder.rmdir()


def clear(folder: Path) -> None:
    """Remove the files of a collection here, if any; nothing else is touched."""
    remove([*parts_in(folder), folder / MANIFEST] if (folder / MANIFEST).exists() else [])
    remove(drafts(folder))


def remove(paths: Iterable[Path]) -> None:
    """Remove files."""
    for path in paths:
        with writing(path):
            path.unlink(missing_ok=True)
