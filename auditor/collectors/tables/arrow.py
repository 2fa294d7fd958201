"""Tables in Arrow's types: Parquet files, files in the IPC formats (Feather), and Tables and Datasets in memory.

All are read onwards in record batches, of which stretches from anywhere are made.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import ipc, types

from auditor.collectors.tables.sources import Column, Kind, OnceOpened, Table, readable
from auditor.core import Array, InputError, validate, without_credentials

_TEXTS = types.is_string, types.is_large_string
_NUMERIC = types.is_integer, types.is_floating
_NUMBERS = *_NUMERIC, types.is_boolean
_LISTS = types.is_list, types.is_large_list, types.is_fixed_size_list

# --- Arrow types: the type of their cells, and the plain type that each is read in ---


def _is(kind: Any, tests: Iterable[Any]) -> bool:
    return any(test(kind) for test in tests)


def _is_vector(kind: Any) -> bool:
    """Return whether an Arrow type is a list (of lists) of numbers."""
    return _is(kind, _LISTS) and _is(kind.value_type, (*_NUMBERS, _is_vector))


_KINDS = {
    Kind.NUMBER: (*_NUMBERS, types.is_decimal),
    Kind.TEXT: _TEXTS,
    Kind.TIME: (types.is_temporal,),
    Kind.BLANK: (types.is_null,),
    Kind.VECTOR: (_is_vector,),
}


@cache
def kind_of(plain: Any) -> Kind:
    """Return the type of the cells of a column of this Arrow type."""
    return next((kind for kind, tests in _KINDS.items() if _is(plain, tests)), Kind.OTHER)


def _plain_type(kind: Any) -> Any:
    """Return the type that a column is read in: of categories that of their values, of an extension its storage."""
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    return pa.large_string() if types.is_string_view(kind) else kind


def plain_array(column: Any) -> Column:
    """Return a chunked column as an array, numbers without importing pandas, which takes as long as a small audit."""
    if _is(column.type, _NUMERIC) and column.num_chunks and not column.null_count:
        return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])
    return np.asarray(column.to_numpy())


def _stacked(column: Any, *, place: str, first_row: int, like: tuple[int, ...] | None) -> Array:
    """Return a chunked column of lists of numbers, or lists of such, as an array with one row for each.

    Raises:
        InputError: A vector that is missing, or of another shape than those before, ``like`` which they must be.
    """
    import pyarrow.compute as pc

    cells = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    shape = [len(cells)]
    while _is(cells.type, _LISTS):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(cells), -1))
        size = like[len(shape) - 1] if like else int(lengths[0]) if lengths.size else 0
        other = (lengths != size) | (lengths < 0)
        if other.any():
            at = int(np.argmax(other))
            length = f"{lengths[at]} numbers" if lengths[at] >= 0 else "none"
            raise InputError(
                f"{place} must hold vectors of equal length in each row, got {length} in"
                f" {validate.FROM_ZERO.at(first_row + at // math.prod(shape[1:]))}, after {size}; make them equally long, or"
                " leave that row out."
            )
        shape.append(size)
        cells = cells.flatten()
    return np.asarray(cells.to_numpy(zero_copy_only=False)).reshape(shape)


# --- Types of the columns, settled for the table as a whole ---


@dataclass
class ColumnPlan:
    """Properties of a whole column.

    Attributes:
        type: The plain Arrow type that it is read in.
        gaps: Whether any cell is missing; only known of integers and truth values, which pandas then takes for others.
        categories: The values of a categorical column, in the order of the table that was written; none otherwise.
        ordered: Whether the order of the categories has a meaning.
        shape: Shape of the vectors that were read; none before, and where there are none.
    """

    type: Any
    gaps: bool = False
    categories: dict[Any, None] | None = None
    ordered: bool = False
    shape: tuple[int, ...] | None = None

    @property
    def kind(self) -> Kind:
        """Type of the cells."""
        return kind_of(self.type)

    @property
    def unknown(self) -> bool:
        """Whether the type of a stretch of the column depends on its cells."""
        return self.categories is not None or _is(self.type, (types.is_integer, types.is_boolean))

    def look(self, column: Any) -> None:
        """Look at some cells."""
        self.gaps |= column.null_count > 0
        if self.categories is not None:
            values = column.dictionary.to_pylist()
            self.categories.update((value, None) for value in values if value is not None)

    def typed(self, column: Any, place: str) -> Any:  # noqa: ARG002 - for sentences about text
        """Return a column of a record batch in its plain type."""
        return column if column.type == self.type else column.cast(self.type)

    def stable(self, column: Any) -> Any:
        """Return a column in a type of which pandas and NumPy make the same in every stretch."""
        if self.kind is Kind.VECTOR:
            return pa.nulls(len(column))  # the vectors are put in afterwards
        floats = self.gaps and self.categories is None and types.is_integer(self.type)
        return column.cast(pa.float64(), safe=False) if floats else column

    def as_whole(self, values: Any, *, blank: Any) -> Any:
        """Return a column of a DataFrame as pandas would have made it of the whole column."""
        import pandas as pd

        if self.categories is not None:
            return values.astype(pd.CategoricalDtype(list(self.categories), ordered=self.ordered))
        if self.gaps and values.dtype == bool:
            return values.astype(object)
        return values.where(values.notna(), blank) if blank is not None and values.dtype == object else values

    def vectors(self, column: Any, *, place: str, first_row: int) -> Column:
        """Return a column of vectors as an array, each as long as those that were read before."""
        values = _stacked(column, place=place, first_row=first_row, like=self.shape)
        self.shape = values.shape[1:] if len(values) else self.shape
        return values


def _planned(names: Sequence[str], schemas: Mapping[str, Any]) -> dict[str, ColumnPlan]:
    """Return the type of each column from the schemas of a table's files, by the names of the files in error sentences.

    Raises:
        InputError: A file without one of the columns, with two of that name, or with another kind of cells.
    """
    first, common = next(iter(schemas)), pa.schema([])
    for place, schema in schemas.items():
        hint = f"Every part must have the columns of {first}."
        for name in names:
            validate.column_name(name, what="records", file=place, options=schema.names, hint=hint)
        part = pa.schema([(name, _plain_type(schema.field(name).type)) for name in names])
        try:
            common = pa.unify_schemas([common, part], promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(
                f"{place} must have the columns of {first}, got other types ({validate.one_line(error)}); write the"
                " parts with the same types."
            ) from None
    plans = {}
    for name in names:
        own = [schema.field(name).type for schema in schemas.values()]
        category = all(map(types.is_dictionary, own))
        plans[name] = ColumnPlan(
            common.field(name).type, categories={} if category else None, ordered=category and own[0].ordered
        )
    return plans


# --- A table that comes in record batches, and stretches of it ---


class BatchTable(Table):
    """A table that comes in Arrow record batches, in blocks at each of which reading can begin."""

    blank: Any = None  # missing text in a DataFrame; None leaves it to pandas

    @abstractmethod
    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:
        """Yield the record batches of some columns, from those of a block on."""


class BatchReader:
    """Chosen columns of a table.

    It reads on where a stretch follows the one before it, and starts again where it does not. What is half read stays in
    this process: a pickled copy starts again.
    """

    def __init__(self, table: BatchTable, plans: Mapping[str, ColumnPlan], sizes: Sequence[int]) -> None:
        """Keep the properties of the columns, and the number of rows of each block."""
        self.table, self.plans = table, dict(plans)
        self._starts = np.cumsum([0, *sizes])
        self._coming: Iterator[Any] | None = None
        self._rest: Any = None  # of the batch that is not used up
        self._at = 0  # the row of the table that comes next

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_coming": None, "_rest": None}

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """Types of the cells by column."""
        return {name: plan.kind for name, plan in self.plans.items()}

    def place(self, name: str) -> str:
        """Return a column in error sentences."""
        return f"column {name!r} of {self.table.place}"

    def read(self, start: int, stop: int) -> "_BatchStretch":
        """Return rows.

        Raises:
            InputError: There are fewer rows than there were, or they take more memory than they may.
        """
        rows, size = [], 0
        for batch in self._rows(start, stop):
            rows.append(batch)
            size += batch.nbytes
            self.table.hold(size)
        schema = pa.schema([(name, plan.type) for name, plan in self.plans.items()])
        return _BatchStretch(pa.Table.from_batches(rows, schema=schema), self, start)

    def _rows(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the rows from ``start`` to before ``stop`` in record batches."""
        if start >= stop:
            return
        block = int(np.searchsorted(self._starts[:-1], start, side="right")) - 1
        coming, self._coming = self._coming, None  # a broken stream is not read further
        if coming is None or start < self._at or self._starts[block] > self._at:
            coming, self._at, self._rest = self._from_block(block), int(self._starts[block]), None
        while self._at < stop:
            batch = next(coming, None) if self._rest is None else self._rest
            if batch is None:
                raise InputError(
                    f"{self.table.place} has only {self._at} rows and had {len(self)} when it was opened; do not change"
                    " it while it is read."
                )
            skipped = min(max(0, start - self._at), batch.num_rows)
            taken = min(stop - self._at, batch.num_rows)
            if taken > skipped:
                yield batch.slice(skipped, taken - skipped)
            self._rest = batch.slice(taken) if taken < batch.num_rows else None
            self._at += taken
        self._coming = coming

    def _from_block(self, block: int) -> Iterator[Any]:
        """Yield the record batches from a block on, in the types that are settled."""
        for batch in self.table.batches(list(self.plans), block):
            columns = [plan.typed(batch[name], self.place(name)) for name, plan in self.plans.items()]
            typed = pa.RecordBatch.from_arrays(columns, names=list(self.plans))
            self.table.hold(typed.nbytes)
            yield typed


@dataclass(frozen=True, eq=False)
class _BatchStretch:
    """Some rows of a table: an Arrow table of the chosen columns in their plain types, from this row on."""

    content: Any
    reader: BatchReader
    first_row: int

    def column(self, name: str) -> Column:
        """Return one column as an array."""
        plan = self.reader.plans[name]
        if plan.kind is Kind.VECTOR:
            return plan.vectors(self.content[name], place=self.reader.place(name), first_row=self.first_row)
        values = plain_array(plan.stable(self.content[name]))
        return values.astype(object) if plan.gaps and values.dtype.kind == "b" else values

    def table(self, names: Sequence[str]) -> Any:
        """Return some columns as a DataFrame."""
        import pandas as pd

        plans = {name: self.reader.plans[name] for name in names}
        columns = [plan.stable(self.content[name]) for name, plan in plans.items()]
        frame = pa.table(columns, names=list(names)).to_pandas(ignore_metadata=True)
        for name, plan in plans.items():
            if plan.kind is Kind.VECTOR:
                frame[name] = pd.Series(list(self.column(name)), index=frame.index, dtype=object)
            elif plan.categories is not None or not _is(plan.type, _NUMERIC):
                values = frame[name]
                whole = plan.as_whole(values, blank=self.reader.table.blank)
                if whole is not values:
                    frame[name] = whole
        return frame


# --- Tables with schemas, which declare most columns ---


class SchemaTable(BatchTable):
    """A table whose columns are those of the first of its schemas."""

    def __init__(self, schemas: Mapping[str, Any], *, place: str, path: Path | None = None) -> None:
        """Keep the Arrow schema of each file, by how error sentences call the file."""
        first = next(iter(schemas.values()))
        super().__init__(first.names, place=place, path=path)
        self._schemas, self.asides = schemas, _asides(first)
        self.later = frozenset(name for schema in schemas.values() for name in schema.names) - {*first.names}

    def sizes(self) -> list[int]:
        """Return how many rows each block has; of one block, counted in the first column."""
        return [sum(batch.num_rows for batch in self.batches(self.names[:1]))]

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> BatchReader:
        """Return a reader of some columns, after a look at the cells of those whose schema does not say it all."""
        reader = self.whole_reader(names, text=text)
        unknown = {name: plan for name, plan in reader.plans.items() if plan.unknown}
        for batch in self.batches(list(unknown)) if unknown else ():
            for name, plan in unknown.items():
                plan.look(batch[name])
        return reader

    def whole_reader(self, names: Sequence[str], *, text: Sequence[str]) -> BatchReader:  # noqa: ARG002 - text is text here
        """Return a reader that uses the schemas alone, which is enough to read all rows at once."""
        return BatchReader(self, _planned(names, self._schemas), self.sizes())


def _asides(schema: Any) -> frozenset[str]:
    """Return the columns that hold the index of the DataFrame that a table was written from, and those without a name."""
    index: list[Any] = []
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        index = list(schema.pandas_metadata["index_columns"])
    return frozenset(name for name in schema.names if name in index or not name.strip())


_ROWS = 2**16  # of a batch


class ArrowTable(SchemaTable):
    """A pyarrow Table, or a Dataset, which may be larger than memory; in one block."""

    def __init__(self, data: Any, *, place: str, path: Path | None = None) -> None:
        """Store the data."""
        super().__init__({place: data.schema}, place=place, path=path)
        self._data = data

    def sizes(self) -> list[int]:
        """Return how many rows there are."""
        return [self._data.num_rows if hasattr(self._data, "num_rows") else self._data.count_rows()]

    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:  # noqa: ARG002 - there is only one block
        """Yield all record batches of some columns."""
        if hasattr(self._data, "select"):
            return iter(self._data.select(list(names)).to_batches(max_chunksize=_ROWS))
        few = {"batch_size": _ROWS, "batch_readahead": 1, "fragment_readahead": 1}
        return iter(self._data.scanner(columns=list(names), **few).to_batches())


class AddressTable(ArrowTable):
    """Parquet files at an address, as a Dataset."""

    def __init__(self, data: Any, address: str, memory: float) -> None:
        """Store the data."""
        super().__init__(data, place=without_credentials(f"file {address!r}"))
        self.address, self.memory = address, memory
        files = {f"file {part.path!r}": part.physical_schema for part in data.get_fragments()}
        if {*next(iter(files.values())).names} == {*self.names}:  # no column comes from the names of folders
            self._schemas = files

    def note(self, key: bytes) -> tuple[bytes | None, int]:
        """Return the file's metadata under a key, and its number of rows; None for several files."""
        found = (self._data.schema.metadata or {}).get(key) if len(self._data.files) == 1 else None
        return found, sum(self.sizes())


_LINES = 2**24  # bytes of lines that are parsed at a time; no line may be longer
_PARSED = 2  # times the size of a file that its text and its columns take in memory


class JsonTable(ArrowTable):
    """A ``.jsonl`` file, an object on each line; read whole, because the type of a column depends on every line."""

    def __init__(self, path: Path, *, place: str, memory: float) -> None:
        """Read the file."""
        from pyarrow import json

        self.path, self.place, self.memory = path, place, memory
        self.hold(_PARSED * path.stat().st_size)
        options = json.ReadOptions(use_threads=False, block_size=_LINES)
        super().__init__(json.read_json(OnceOpened(path).stream(), options), place=place, path=path)


# --- Parquet files ---


_AT_ONCE = 2**25  # bytes decoded at a time, about
_LEAST = 2**4  # rows decoded at a time
_MOST_OPEN = 100  # files


class _RowGroup(NamedTuple):
    """Place of a row group, its rows, and the bytes of all its columns.

    The file's metadata of single columns are not used: if they are damaged, Arrow ends the process.
    """

    file: Path
    at: int
    rows: int
    bytes: int


class ParquetTable(SchemaTable):
    """A Parquet file, or several one after another, whose blocks are their row groups; each file is opened once."""

    path: Path

    def __init__(self, files: Sequence[Path], *, place: str, path: Path) -> None:
        """Read the schemas, and where the row groups are."""
        schemas: dict[str, Any] = {}
        self._groups: list[_RowGroup] = []
        self._open: dict[Path, Any] = {}
        for file in files:
            with self._opened(file) as opened:
                schemas[f"file {str(file)!r}"] = opened.schema_arrow
                for at in range(opened.metadata.num_row_groups):
                    group = opened.metadata.row_group(at)
                    self._groups.append(_RowGroup(file, at, group.num_rows, group.total_byte_size))
        super().__init__(schemas, place=place, path=path)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_open": {}}

    def note(self, key: bytes) -> tuple[bytes | None, int]:
        """Return the file's metadata under a key, and its number of rows; None for a folder."""
        schema = next(iter(self._schemas.values()))
        return None if self.path.is_dir() else (schema.metadata or {}).get(key), sum(self.sizes())

    def sizes(self) -> list[int]:
        """Return how many rows each row group has."""
        return [group.rows for group in self._groups]

    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:
        """Yield the row groups from this one on, in batches that are small, however large the groups are."""
        for file, groups in itertools.groupby(self._groups[first:], key=attrgetter("file")):
            with self._opened(file) as opened:
                for group in groups:
                    rows = max(_LEAST, min(_ROWS, _AT_ONCE * group.rows // max(1, group.bytes)))
                    self.hold(group.bytes * min(1.0, rows / max(1, group.rows)))
                    yield from opened.iter_batches(
                        rows, row_groups=[group.at], columns=list(names), use_threads=False
                    )

    @contextmanager
    def _opened(self, file: Path) -> Iterator[Any]:
        """Yield an open file."""
        from pyarrow import parquet

        # Neither prefetched nor mapped: only the pages that are being decoded are in memory.
        few: dict[str, Any] = {"pre_buffer": False, "buffer_size": 2**16, "page_checksum_verification": True}
        with readable(file):
            if file not in self._open:
                self._open[file] = parquet.ParquetFile(OnceOpened(file).handle, **few)
            yield self._open[file]
        if len(self._open) > _MOST_OPEN:
            self._open.pop(file, None)


# --- Files in the IPC formats ---


_MAGIC = b"ARROW1"


class IpcTable(SchemaTable):
    """A ``.arrow`` or ``.feather`` file, in the file format or the stream format; in one block."""

    path: Path

    def __init__(self, path: Path, *, place: str) -> None:
        """Read the schema."""
        self._file = OnceOpened(path)
        self._is_file = self._file.handle.read(len(_MAGIC)) == _MAGIC
        with self._opened(()) as opened:
            super().__init__({place: opened.schema}, place=place, path=path)

    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:  # noqa: ARG002 - there is only one block
        """Yield all record batches of some columns, each checked: damaged offsets would lead anywhere."""
        with self._opened([self.names.index(name) for name in names]) as opened:
            blocks = map(opened.get_batch, range(opened.num_record_batches)) if self._is_file else opened
            for batch in blocks:
                batch.validate(full=True)
                yield from (batch.slice(at, _ROWS) for at in range(0, batch.num_rows, _ROWS))

    @contextmanager
    def _opened(self, fields: Sequence[int]) -> Iterator[Any]:
        """Yield a reader of some columns; of all, if none is named."""
        options = ipc.IpcReadOptions(included_fields=list(fields), use_threads=False)
        opening = ipc.open_file if self._is_file else ipc.open_stream
        with opening(self._file.handle if self._is_file else self._file.stream(), options=options) as opened:
            yield opened
