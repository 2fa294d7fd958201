"""The units of a long collection: whose records, scored by what, and the part that each becomes on disk."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from auditor.collectors.base.records import Batch, Source
from auditor.collectors.base.scorer import Scorer, in_batches
from auditor.collectors.base.tasks import BatchLosses
from auditor.core.errors import InputError, OutputError
from auditor.core.files import whole
from auditor.records.labels import is_missing

_UNITS = 10_000  # at most about so many: each is a file, and a kill costs no more than one of them


@dataclass(frozen=True)
class Unit:
    """A stretch of one table that is scored and written as a whole.

    Attributes:
        index: Its place in the output, from 0.
        source: Which table, by its place among the sources.
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
    """Return how many records a unit has: one batch, or several where that would make too many files."""
    batches = -(-sum(map(len, sources)) // batch_size)
    return batch_size * max(1, -(-batches // _UNITS))


@dataclass(eq=False)
class Scoring:
    """The work of a collection: each unit is scored, and its part written.

    Attributes:
        factory: Builds the scorer, in whatever process is to score.
        sources: The tables, in the order of the output.
        folder: Where the parts go.
        batch_size: Records in each call of the model; the last call of a unit may have fewer.
        unit_size: Records in each unit, a multiple of the batch size; the last unit of a table may have fewer.
        key: A hash of the model, the data and the setting, by which no part is mixed with another collection's.
        identity: That of the model in the process that began; none where it cannot be known.
        scorer: What this process has built.
    """

    factory: Callable[[], Scorer]
    sources: tuple[Source, ...]
    folder: Path
    batch_size: int
    unit_size: int
    key: str
    identity: str | None = None
    scorer: Scorer | None = None

    sent: ClassVar[str] = "model and tables"
    if_not_sent: ClassVar[str] = "name the model's file, or use the local engine"
    if_too_large: ClassVar[str] = "a smaller batch size"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "scorer": None}  # another process builds its own

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units in the order of the output; the batches in them are the same in every run."""
        stretches = (
            (place, start, min(start + self.unit_size, len(source)))
            for place, source in enumerate(self.sources)
            for start in range(0, len(source), self.unit_size)
        )
        return tuple(Unit(index, *stretch) for index, stretch in enumerate(stretches))

    def prepare(self) -> None:
        """Build the scorer.

        Raises:
            InputError: It is another one than that of the process that began, and its losses would be mixed.
        """
        if self.scorer is None:
            scorer = self.factory()
            if scorer.identity != self.identity:
                raise InputError(
                    "model must be the same in every worker, but a Ray worker built another one than the process that"
                    " started it; leave the model's file alone while records are scored, and fix what is drawn at"
                    " random when it is built."
                )
            self.scorer = scorer

    def named(self, unit: Unit) -> str:
        """Return whose rows these are."""
        return f"{self.sources[unit.source].name} rows {unit.start} to {unit.stop - 1}, counting from 0,"

    def __call__(self, unit: Unit) -> Unit:
        """Score one unit and write its part, whole or not at all; done twice, it writes the same part.

        Raises:
            InputError: Records or outputs that cannot be scored.
            OutputError: The part cannot be written.
        """
        if self.scorer is None:
            raise RuntimeError("prepare() comes first.")
        batch = read_stretch(self.sources[unit.source], start=unit.start, stop=unit.stop)
        losses = in_batches(self.scorer, batch.records, size=self.batch_size)
        _refuse_bad(losses, batch)
        write_part(part_path(self.folder, unit), unit=unit, key=self.key, batch=batch, losses=losses)
        return unit

    def part(self, unit: Unit) -> Any:
        """Return the table of a part that was written.

        Raises:
            OutputError: It is no longer as it was.
        """
        path = part_path(self.folder, unit)
        table = read_part(path, unit=unit, key=self.key)
        if table is None:
            raise OutputError(
                f"part {str(path)!r} was damaged or removed since it was written; run the same again, which scores only"
                " its records."
            )
        return table


def read_stretch(source: Source, *, start: int, stop: int) -> Batch:
    """Return some records, as many as asked for."""
    batch = source.read(start, stop)
    found = {len(batch.records), batch.member.size, *(column.shape[0] for column in batch.columns.values())}
    if batch.fingerprint is not None:
        found.add(batch.fingerprint.size)
    if found != {stop - start}:
        raise InputError(
            f"{source.name} must keep its records while it is read, got {min(found)} where {stop - start} were"
            f" expected from row {start}, counting from 0; leave the table alone and start again."
        )
    return batch


def _refuse_bad(losses: BatchLosses, batch: Batch) -> None:
    """Refuse what no scorer should return, before it is on disk."""
    n = len(batch.records)
    wrong = {values.shape for values in (losses.loss, losses.saturated, *losses.more.values())} - {(n,)}
    if wrong:
        raise InputError(
            f"{batch.records.name} must get one loss for each of {n} records, got shape {wrong.pop()}."
        )
    bad = np.isnan(losses.loss)
    if bad.any():
        raise InputError(
            f"{batch.records.name} losses must be numbers, got {int(bad.sum())} NaN (first at"
            f" {batch.records.row(int(np.argmax(bad)))}); mend the model's input."
        )


# --- The part of one unit: a Parquet file behind a seal, which is used only as it was written for this unit of this collection ---


OWN_COLUMNS = ("loss", "member", "id", "group", "person", "label", "fingerprint", "saturated", "correct")

_FACTS = b"auditor-part"
_NAME = re.compile(r"part-[0-9]{8}")
_SEAL = hashlib.sha256().digest_size


def part_path(folder: Path, unit: Unit) -> Path:
    """Return where the part of a unit lies."""
    return folder / f"part-{unit.index:08d}"


def parts_in(folder: Path) -> list[Path]:
    """Return what has the name of a part."""
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def write_part(path: Path, *, unit: Unit, key: str, batch: Batch, losses: BatchLosses) -> None:
    """Write the losses of a unit with what is known of its records; infinite losses stay infinite."""
    facts = json.dumps({"eps": float(losses.eps), "hard": bool(losses.hard), "shown": losses.shown})
    sink = pa.BufferOutputStream()
    parquet.write_table(_table(batch, losses).replace_schema_metadata({_FACTS: facts}), sink)
    content = sink.getvalue().to_pybytes()
    with whole(path, folder=path.parent) as draft:
        draft.write_bytes(_seal(content, unit, key) + content)


def read_part(path: Path, *, unit: Unit, key: str) -> Any:
    """Return the table of a part; none if it is not there, damaged, cut off, another unit's or another collection's."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    seal, content = content[:_SEAL], content[_SEAL:]
    return parquet.read_table(pa.BufferReader(content)) if seal == _seal(content, unit, key) else None


def part_facts(table: Any) -> tuple[float, bool, int]:
    """Return ``eps``, ``hard`` and ``shown`` of the losses of a part, as `BatchLosses` has them."""
    facts = json.loads(table.schema.metadata[_FACTS])
    return facts["eps"], facts["hard"], facts["shown"]


def _seal(content: bytes, unit: Unit, key: str) -> bytes:
    return hashlib.sha256(f"{key} {unit}\n".encode() + content).digest()


def _table(batch: Batch, losses: BatchLosses) -> Any:
    strange = (set(batch.columns) | set(losses.more)) & {"loss", "member", "fingerprint", "saturated"}
    twice = strange | (set(batch.columns) & set(losses.more))
    if twice:
        raise InputError(f"{batch.records.name} must have each column once, got {min(twice)!r} twice.")
    columns: dict[str, Any] = {"loss": np.asarray(losses.loss, dtype=np.float64), "member": batch.member}
    columns |= {name: batch.columns[name] for name in OWN_COLUMNS if name in batch.columns}
    if batch.fingerprint is not None:
        columns["fingerprint"] = batch.fingerprint
    columns |= {"saturated": losses.saturated, **losses.more}
    return pa.table({name: _arrow(np.asarray(values)) for name, values in columns.items()})


def _arrow(values: npt.NDArray[Any]) -> Any:
    """Return a column in the nearest type of Arrow, what is missing as null; objects that share none become text."""
    try:
        if values.dtype.kind in "fiubM":
            return pa.array(values)
        return pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([None if is_missing(value) else str(value) for value in values.tolist()], pa.string())
