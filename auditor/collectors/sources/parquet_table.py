"""Records in a Parquet file, or in a folder of parts, which is one table in the order of their names."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.cells import FROM_ZERO, readable
from auditor.collectors.sources.arrow_plan import Plan, planned
from auditor.collectors.sources.arrow_reader import ArrowReader
from auditor.collectors.sources.arrow_types import common_types, tidied

__all__ = ["ParquetRecords", "index_columns"]

_BYTES = 2**25  # decoded at a time, about
_PAGES = 2**21  # bytes of pages of a column that are in memory at a time, about
_LEAST, _MOST = 2**4, 2**16  # rows decoded at a time


class ParquetRecords:
    """The files of a table, of which only the schemas are read."""

    rows = FROM_ZERO

    def __init__(self, files: Sequence[Path], *, place: str) -> None:
        """Read the schemas; the columns are those of the first file, which every other must have."""
        self.place = place
        self._files = tuple(files)
        self._schemas = []
        for file in self._files:
            with readable(file), _opened(file) as opened:
                self._schemas.append(opened.schema_arrow)
        self.names = list(self._schemas[0].names)
        self.asides = index_columns(self._schemas[0])

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> ArrowReader:  # noqa: ARG002 - text is text here
        """Return a reader of some columns."""
        words = [f"file {str(file)!r}" for file in self._files]
        types = common_types(names, schemas=self._schemas, places=words)
        groups = [group for file in self._files for group in _groups(file, len(names))]
        plans = planned(types, lambda look: _batches(groups, look), place=self.place)
        return _ParquetReader(groups, place=self.place, plans=plans)


def index_columns(schema: Any) -> frozenset[str]:
    """Return the columns that hold the index of the DataFrame that a table was written from, and those without a name."""
    try:
        found = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = []
    listed = found if isinstance(found, list) else []
    named = {name for name in listed if isinstance(name, str)}
    return frozenset(named | {name for name in schema.names if not name.strip()})


@dataclass(frozen=True)
class _Group:
    """A row group: where it is, its rows, and about how many bytes the chosen columns have."""

    file: Path
    place: int
    rows: int
    size: int


def _groups(file: Path, width: int) -> Iterator[_Group]:
    # What the file says of single columns is not asked for: where it is damaged, Arrow ends the process.
    with readable(file), _opened(file) as opened:
        metadata = opened.metadata
        for place in range(metadata.num_row_groups):
            group = metadata.row_group(place)
            size = group.total_byte_size * width // max(1, group.num_columns)
            yield _Group(file, place, group.num_rows, size)


def _opened(file: Path) -> Any:
    from pyarrow import parquet

    # Neither prefetched nor mapped: only the pages that are being decoded are in memory.
    return parquet.ParquetFile(
        str(file), page_checksum_verification=True, pre_buffer=False, buffer_size=2**16, memory_map=False
    )


def _batches(groups: Sequence[_Group], names: Sequence[str]) -> Iterator[Any]:
    """Yield row groups in batches that are small, however large the groups are."""
    for group in groups:
        if group.rows <= 0:
            continue
        rows = max(_LEAST, min(_MOST, _BYTES * group.rows // max(1, group.size)))
        with readable(group.file), _opened(group.file) as opened:
            if group.size <= _PAGES * len(names):  # smaller as a whole than the pages that are read at a time
                whole = opened.read_row_group(group.place, columns=list(names), use_threads=False)
                yield from whole.to_batches(max_chunksize=rows)
            else:
                yield from opened.iter_batches(
                    rows, row_groups=[group.place], columns=list(names), use_threads=False
                )


class _ParquetReader(ArrowReader):
    def __init__(self, groups: Sequence[_Group], *, place: str, plans: Mapping[str, Plan]) -> None:
        super().__init__(place=place, rows=sum(group.rows for group in groups), plans=plans)
        self._groups = tuple(groups)
        self._starts = np.cumsum([0, *(group.rows for group in groups)])[:-1]

    def _group_at(self, row: int) -> int:
        return int(np.searchsorted(self._starts, row, side="right")) - 1

    def _begin(self, start: int) -> int:
        return int(self._starts[self._group_at(start)])

    def _from(self, begin: int) -> Iterator[Any]:
        types = self.types
        for batch in _batches(self._groups[self._group_at(begin) :], list(types)):
            yield tidied(batch, types)
