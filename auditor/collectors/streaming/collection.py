"""What a long collection is to do: whose records, cut into which units, scored by what, into which file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auditor.collectors.scorer import Scorer
from auditor.collectors.sources.source import Source

__all__ = ["Collection", "Ready", "Unit", "UnitReport", "unit_size"]

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
class Ready:
    """The factory of a scorer that is there already."""

    scorer: Scorer

    def __call__(self) -> Scorer:
        """Return it."""
        return self.scorer


def unit_size(sources: Sequence[Source], *, batch_size: int) -> int:
    """Return how many records a unit has: one batch, or several where that would make too many files."""
    batches = -(-sum(map(len, sources)) // batch_size)
    return batch_size * max(1, -(-batches // _UNITS))
