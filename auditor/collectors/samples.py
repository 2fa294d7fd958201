"""A few records of each group or table, spread over it, on which a model is tried."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from auditor.collectors.records import Records, Rows, taken
from auditor.collectors.sources.source import Batch, Source
from auditor.errors import InputError

__all__ = ["Sampled", "asked", "sampled", "sampled_groups", "spread"]

_ROWS = 200
_STRETCHES = 100  # of a table, each read at once
_STRETCH = 5  # records in a row

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Sampled(Records):
    """Some records of a group or table that need not follow each other in it.

    Attributes:
        rows: Shape (n,), the number of each in its group or table.
    """

    rows: npt.NDArray[np.intp] = field(kw_only=True)

    def part(self, start: int, stop: int) -> "Sampled":
        """Return the records from ``start`` to before ``stop``."""
        if start == 0 and stop >= len(self):
            return self
        return _sampled(self, slice(start, stop))

    def row(self, position: int) -> str:
        """Return the number of a record as error sentences say it."""
        return f"row {self.rows[position]}, counting from 0"


def spread(sample: Sequence[Records], *, most: int = _ROWS) -> list[Records]:
    """Return at most ``most`` records of each group that has any, evenly spread."""
    found: list[Records] = []
    for group in sample:
        step = -(-len(group) // most)
        if step > 1:
            # An index array, where it can be had, for a slice would not be contiguous in memory.
            plain = isinstance(group.features, np.ndarray)
            found.append(
                _sampled(group, np.arange(0, len(group), step) if plain else slice(None, None, step))
            )
        elif step:
            found.append(group)
    return found


def sampled(source: Source) -> tuple[Records, npt.NDArray[np.bool_]]:
    """Return 500 records of a table in 100 stretches, evenly spread and read in order, and which are members.

    A table may be sorted, and its first records are then of one kind. A table that has no more records comes whole.
    """
    n = len(source)
    if n <= _STRETCHES * _STRETCH:
        batch = source.read(0, n)
        return batch.records, batch.member
    starts = [place * (n - _STRETCH) // (_STRETCHES - 1) for place in range(_STRETCHES)]
    batches = [source.read(start, start + _STRETCH) for start in starts]
    return _joined(batches), np.concatenate([batch.member for batch in batches])


def sampled_groups(sources: Sequence[Source]) -> list[Records]:
    """Return records spread over the members of each table that has any, and over its non-members."""
    found: list[Records] = []
    for source in sources:
        if not len(source):
            continue
        records, member = sampled(source)
        if member.all() or not member.any():
            found.append(records)
        else:
            found += [_sampled(records, np.flatnonzero(member == group)) for group in (True, False)]
    return found


def asked(ask: Callable[[Records], T], records: Records) -> T:
    """Return what is asked of records; where that is refused, the sentence names the rows of the group or table.

    Sentences count on from the first record, so that of records that do not follow each other each run is asked again.

    Raises:
        InputError: What the asking raises.
    """
    try:
        return ask(records)
    except InputError:
        for start, stop in itertools.pairwise(_runs(records)):
            if stop - start < len(records):
                ask(records.part(start, stop))
        raise


def _runs(records: Records) -> list[int]:
    """Return where runs of records that follow each other begin, and the end."""
    breaks = np.flatnonzero(np.diff(_rows(records)) != 1) + 1
    return [0, *breaks.tolist(), len(records)]


def _rows(records: Records) -> npt.NDArray[np.intp]:
    if isinstance(records, Sampled):
        return records.rows
    return np.arange(records.first_row, records.first_row + len(records))


def _sampled(records: Records, rows: Rows) -> Sampled:
    numbers = _rows(records)[rows]
    first = int(numbers[0]) if numbers.size else 0
    return Sampled(
        records.name, taken(records.features, rows=rows), records.labels[rows], first, rows=numbers
    )


def _joined(batches: Sequence[Batch]) -> Sampled:
    parts = [batch.records for batch in batches]
    return Sampled(
        parts[0].name,
        _stacked([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
        parts[0].first_row,
        rows=np.concatenate([_rows(part) for part in parts]),
    )


def _stacked(features: Sequence[Any]) -> Any:
    """Return the features of stretches as those of one, in their own type."""
    if hasattr(features[0], "iloc"):
        import pandas as pd

        return pd.concat(features, ignore_index=True)
    if hasattr(features[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(features, format="csr")
    if isinstance(features[0], list | tuple):
        return list(itertools.chain.from_iterable(features))
    return np.concatenate(features)
