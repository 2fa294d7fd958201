"""Engines score the units of a collection, one after another here or in other processes, and write their parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from auditor.collectors.batch_losses import BatchLosses
from auditor.collectors.scorer import Scorer, in_batches
from auditor.collectors.sources.source import Batch, Source
from auditor.collectors.streaming.collection import Collection, Unit, UnitReport
from auditor.collectors.streaming.part import part_path, write_part
from auditor.errors import InputError

__all__ = ["Engine", "LocalEngine", "read_stretch", "score_unit"]


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
