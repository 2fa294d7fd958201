"""What a long collection is to do: whose records, cut into which units, scored by what, into which file."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.records import Batch, Source
from auditor.collectors.base.scorer import Scorer, in_batches
from auditor.collectors.base.tasks import BatchLosses
from auditor.core.errors import InputError, OutputError
from auditor.core.files import whole
from auditor.records.labels import is_missing

# --- Units, and what is known of a collection and of each unit ---


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


@dataclass(frozen=True)
class UnitReport:
    """What is known of a unit once its part is on disk.

    Attributes:
        unit: Which one.
        counts: Members and non-members.
        saturated: How many member and non-member losses come from a probability of exactly 0 or 1.
        eps: The spacing near 1 of the floats that the model returned.
        hard: Whether all of its probabilities were 0 or 1.
        low: The smallest finite loss, or 0 if that is smaller.
        high: The largest finite loss, or 0 if that is larger.
    """

    unit: Unit
    counts: tuple[int, int]
    saturated: tuple[int, int]
    eps: float
    hard: bool
    low: float
    high: float

    @property
    def facts(self) -> dict[str, Any]:
        """The same in values of JSON."""
        return {**asdict(self), "unit": list(astuple(self.unit))}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        """Return a report from what JSON made of it, beside which there may be more."""
        found = {field.name: facts[field.name] for field in fields(cls)}
        pairs = {name: tuple(facts[name]) for name in ("counts", "saturated")}
        return cls(**{**found, **pairs, "unit": Unit(*facts["unit"])})


@dataclass(frozen=True, eq=False)
class Collection:
    """A collection, as an engine gets it; it can be pickled if its scorer's factory and its sources can.

    Attributes:
        scorer: Builds the scorer, in whatever process is to score.
        sources: The tables, in the order of the output.
        path: The output, a Parquet file.
        batch_size: Records in each call of the model; the last call of a unit may have fewer.
        unit_size: Records in each unit, a multiple of the batch size; the last unit of a table may have fewer.
        key: A hash of the model, the data and the setting, which every part carries so that none is mixed with
            another collection's.
        setting: Everything else that decides the numbers, by name.
    """

    scorer: Callable[[], Scorer]
    sources: tuple[Source, ...]
    path: Path
    batch_size: int
    unit_size: int
    key: str
    setting: Mapping[str, Any] = field(default_factory=dict)

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units in the order of the output; the batches in them are the same in every run."""
        stretches = (
            (place, start, min(start + self.unit_size, len(source)))
            for place, source in enumerate(self.sources)
            for start in range(0, len(source), self.unit_size)
        )
        return tuple(Unit(index, *stretch) for index, stretch in enumerate(stretches))


@dataclass(frozen=True, eq=False)
class BuiltScorer:
    """The factory of a scorer that is there already."""

    scorer: Scorer

    def __call__(self) -> Scorer:
        """Return it."""
        return self.scorer


def unit_size(sources: Sequence[Source], *, batch_size: int) -> int:
    """Return how many records a unit has: one batch, or several where that would make too many files."""
    batches = -(-sum(map(len, sources)) // batch_size)
    return batch_size * max(1, -(-batches // _UNITS))


# --- The part of one unit: a Parquet file that says what it is, and that is used only if all of it is as it was written ---


OWN_COLUMNS = ("loss", "member", "id", "group", "person", "label", "fingerprint", "saturated")

_KEY = b"auditor-part"
_NAME = re.compile(r"part-[0-9]{8}\.parquet")


def part_path(folder: Path, unit: Unit) -> Path:
    """Return where the part of a unit lies."""
    return folder / f"part-{unit.index:08d}.parquet"


def is_part(path: Path) -> bool:
    """Return whether a file has the name of a part."""
    return _NAME.fullmatch(path.name) is not None


def write_part(path: Path, *, unit: Unit, key: str, batch: Batch, losses: BatchLosses) -> UnitReport:
    """Write the losses of a unit with what is known of its records; infinite losses stay infinite."""
    from pyarrow import parquet

    table = _table(batch, losses)
    finite = losses.loss[np.isfinite(losses.loss)]
    report = UnitReport(
        unit=unit,
        counts=_by_group(np.ones_like(batch.member), batch.member),
        saturated=_by_group(losses.saturated, batch.member),
        eps=float(losses.eps),
        hard=bool(losses.hard),
        low=float(finite.min(initial=0.0)),
        high=float(finite.max(initial=0.0)),
    )
    facts = json.dumps({**report.facts, "key": key, "content": _digest(table, report)})
    with whole(path, folder=path.parent) as draft:
        parquet.write_table(
            table.replace_schema_metadata({_KEY: facts}), str(draft), write_page_checksum=True
        )
    return report


def checked_part(path: Path, *, unit: Unit, key: str) -> UnitReport | None:
    """Return what a part says of its unit; none if it is not there, damaged, cut off, or another collection's."""
    if not path.is_file():
        return None
    try:
        table = read_part(path)
        facts = json.loads(table.schema.metadata[_KEY])
        report = UnitReport.of(facts)
        good = (report.unit, facts["key"], facts["content"]) == (unit, key, _digest(table, report))
    except Exception:  # noqa: BLE001 - whatever cannot be pickled, in whatever way
        return None
    return report if good and table.num_rows == len(unit) else None


def read_part(path: Path, *, columns: list[str] | None = None) -> Any:
    """Return the table of a part, or some of its columns."""
    from pyarrow import parquet

    with parquet.ParquetFile(str(path), page_checksum_verification=True) as file:
        return file.read(columns=columns)


def read_whole_part(path: Path, *, columns: list[str] | None = None) -> Any:
    """Return the table of a part that was whole before, or some of its columns.

    Raises:
        OutputError: It is no longer.
    """
    from pyarrow import ArrowException

    try:
        return read_part(path, columns=columns)
    except (OSError, ArrowException) as error:
        raise OutputError(
            f"part {str(path)!r} was damaged or removed since it was written; run the same again, which scores only"
            " its records."
        ) from error


def _table(batch: Batch, losses: BatchLosses) -> Any:
    import pyarrow as pa

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
    import pyarrow as pa

    try:
        if values.dtype.kind in "fiubM":
            return pa.array(values)
        return pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([None if is_missing(value) else str(value) for value in values.tolist()], pa.string())


def _by_group(marked: npt.NDArray[np.bool_], member: npt.NDArray[np.bool_]) -> tuple[int, int]:
    return int((marked & member).sum()), int((marked & ~member).sum())


def _digest(table: Any, report: UnitReport) -> str:
    """A hash of the values of a table, however they are laid out, and of what is said of them."""
    digest = hashlib.sha256(json.dumps(report.facts).encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"{name}:".encode("utf-8", "surrogatepass"))
        digest.update(_bytes(column))
    return digest.hexdigest()


def _bytes(column: Any) -> bytes:
    from pyarrow import types

    kind = column.type
    if column.null_count == 0 and (
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    ):
        return f"{kind}:".encode() + bytes(column.to_numpy().tobytes())
    # Without the type, of which a file may have a finer one (milliseconds for seconds).
    return repr(column.to_pylist()).encode("utf-8", "surrogatepass")


# --- Engines score the units of a collection, one after another here or in other processes, and write their parts ---


class Engine(Protocol):
    """What scores units; whatever the engine, the same batches give the same losses."""

    def run(
        self,
        collection: Collection,
        units: Sequence[Unit],
        *,
        folder: Path,
        scorer: Scorer,
        done: Callable[[UnitReport], None],
    ) -> None:
        """Score these units with `score_unit`, in any order.

        Args:
            collection: What they belong to.
            units: Those whose parts are not on disk yet.
            folder: Where the parts go.
            scorer: The one that this process has built already; other processes build theirs with the factory.
            done: To be told, in this process, of each unit whose part is on disk.

        Raises:
            InputError: Records or outputs that cannot be scored.
            OutputError: A part that cannot be written.
        """
        ...


@dataclass(frozen=True)
class LocalEngine:
    """Scores one unit after another in this process.

    >>> LocalEngine()
    LocalEngine()
    """

    def run(
        self,
        collection: Collection,
        units: Sequence[Unit],
        *,
        folder: Path,
        scorer: Scorer,
        done: Callable[[UnitReport], None],
    ) -> None:
        """Score these units in order."""
        for unit in units:
            done(score_unit(collection, unit, folder=folder, scorer=scorer, sources=collection.sources))


def score_unit(
    collection: Collection, unit: Unit, *, folder: Path, scorer: Scorer, sources: Sequence[Source]
) -> UnitReport:
    """Score one unit and write its part, whole or not at all; done twice, it writes the same part.

    Args:
        collection: What the unit belongs to.
        unit: Which records.
        folder: Where the part goes.
        scorer: Scores them, in the batches of the collection.
        sources: The tables, as this process reads them.

    Raises:
        InputError: Records or outputs that cannot be scored.
        OutputError: The part cannot be written.
    """
    batch = read_stretch(sources[unit.source], start=unit.start, stop=unit.stop)
    losses = in_batches(scorer, batch.records, size=collection.batch_size)
    _refuse_bad(losses, batch)
    return write_part(part_path(folder, unit), unit=unit, key=collection.key, batch=batch, losses=losses)


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
