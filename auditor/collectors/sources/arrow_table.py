"""Records in Arrow's own formats: a Table in memory, a Dataset, or a file in the IPC formats (Feather)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from auditor.collectors.cells import FROM_ZERO, readable
from auditor.collectors.sources.arrow_plan import Plan, planned
from auditor.collectors.sources.arrow_reader import ArrowReader
from auditor.collectors.sources.arrow_types import common_types, tidied
from auditor.collectors.sources.parquet_table import index_columns
from auditor.errors import InputError

__all__ = ["ArrowRecords", "Blocks", "Dataset", "IpcFile", "Table"]

_ROWS = 2**16
_MAGIC = b"ARROW1"
_FEATHER_1 = b"FEA1"


class Blocks(Protocol):
    """Rows that come in blocks, each of one record batch or more; reading can begin at any block."""

    @property
    def schema(self) -> Any:
        """The Arrow schema."""
        ...

    def sizes(self) -> list[int]:
        """How many rows each block has."""
        ...

    def batches(self, names: Sequence[str], first: int) -> Iterator[Any]:
        """Return the record batches of some columns, from the first of this block on."""
        ...


class ArrowRecords:
    """A table of which only the schema is known yet."""

    rows = FROM_ZERO

    def __init__(self, blocks: Blocks, *, place: str) -> None:
        """Keep where the rows are."""
        self.place = place
        self.names = list(blocks.schema.names)
        self.asides = index_columns(blocks.schema)
        self._blocks = blocks

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> ArrowReader:  # noqa: ARG002 - text is text here
        """Return a reader of some columns."""
        types = common_types(names, schemas=[self._blocks.schema], places=[self.place])
        plans = planned(types, lambda look: self._blocks.batches(look, 0), place=self.place)
        return _BlockReader(self._blocks, place=self.place, plans=plans)


class _BlockReader(ArrowReader):
    def __init__(self, blocks: Blocks, *, place: str, plans: Mapping[str, Plan]) -> None:
        sizes = blocks.sizes()
        super().__init__(place=place, rows=sum(sizes), plans=plans)
        self._blocks = blocks
        self._starts = np.cumsum([0, *sizes])[: len(sizes)]

    def _begin(self, start: int) -> int:
        return int(self._starts[self._block(start)])

    def _block(self, row: int) -> int:
        return int(np.searchsorted(self._starts, row, side="right")) - 1

    def _from(self, begin: int) -> Iterator[Any]:
        types = self.types
        for batch in self._blocks.batches(list(types), self._block(begin)):
            yield tidied(batch, types)


@dataclass(frozen=True, eq=False)
class Table:
    """A pyarrow Table."""

    table: Any

    @property
    def schema(self) -> Any:
        """The Arrow schema."""
        return self.table.schema

    def sizes(self) -> list[int]:
        """How many rows each block has."""
        n = self.table.num_rows
        return [min(_ROWS, n - start) for start in range(0, n, _ROWS)]

    def batches(self, names: Sequence[str], first: int) -> Iterator[Any]:
        """Return the record batches from a block on."""
        chosen = self.table.select(list(names)).slice(first * _ROWS)
        yield from chosen.to_batches(max_chunksize=_ROWS)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A pyarrow Dataset, which may be larger than memory."""

    dataset: Any

    @property
    def schema(self) -> Any:
        """The Arrow schema."""
        return self.dataset.schema

    def sizes(self) -> list[int]:
        """How many rows there are, in one block."""
        return [self.dataset.count_rows()]

    def batches(self, names: Sequence[str], first: int) -> Iterator[Any]:  # noqa: ARG002 - there is only one block
        """Return all record batches."""
        scanner = self.dataset.scanner(
            columns=list(names), batch_size=_ROWS, batch_readahead=1, fragment_readahead=1
        )
        yield from scanner.to_batches()


@dataclass(frozen=True, eq=False)
class IpcFile:
    """A ``.arrow`` or ``.feather`` file, in the file format or the stream format."""

    path: Path
    schema: Any = None

    def __post_init__(self) -> None:
        with readable(self.path):
            with self.path.open("rb") as stream:
                magic = stream.read(len(_MAGIC))
            if magic.startswith(_FEATHER_1):
                raise InputError(
                    f"file {str(self.path)!r} is in the first version of Feather; write it again in the second."
                )
            with self._reader(None) as reader:
                object.__setattr__(self, "schema", reader.schema)

    def sizes(self) -> list[int]:
        """How many rows each block has; the stream format is one block."""
        with readable(self.path), self._reader(self.schema.names[:1]) as reader:
            if hasattr(reader, "num_record_batches"):
                return [reader.get_batch(at).num_rows for at in range(reader.num_record_batches)]
            return [sum(batch.num_rows for batch in reader)]

    def batches(self, names: Sequence[str], first: int) -> Iterator[Any]:
        """Return the record batches from a block on, each checked: damaged offsets would lead anywhere."""
        with readable(self.path), self._reader(names) as reader:
            if hasattr(reader, "num_record_batches"):
                found = (reader.get_batch(at) for at in range(first, reader.num_record_batches))
            else:
                found = iter(reader)
            for batch in found:
                batch.validate(full=True)
                yield from (batch.slice(at, _ROWS) for at in range(0, batch.num_rows, _ROWS))

    @contextmanager
    def _reader(self, names: Sequence[str] | None) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import ipc

        # Read and not mapped: a file that is cut off while it is mapped ends the process.
        with pa.OSFile(str(self.path)) as stream:
            whole = stream.read(len(_MAGIC)) == _MAGIC
            stream.seek(0)
            fields = [self.schema.names.index(name) for name in names or ()]  # none are all
            options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            with (ipc.open_file if whole else ipc.open_stream)(stream, options=options) as reader:
                yield reader
