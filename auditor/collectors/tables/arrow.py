"""Tables in Arrow's types: Parquet files, files in the IPC formats (Feather), and Tables and Datasets in memory.

All are read onwards in record batches, of which stretches from anywhere are made.
"""

import itertools
import json
import math
import os
import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc, types

from auditor.collectors.tables.sources import WORD, Column, Kind, Table, readable
from auditor.core import validate
from auditor.core.errors import InputError

# --- Arrow types: what their cells are, and the plain type that each is read in ---


_TEXTS = types.is_string, types.is_large_string


def _kind_of(plain: Any) -> Kind:
    """Return what the cells of a column of this plain type are."""
    kinds = {
        Kind.NUMBER: (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal),
        Kind.TEXT: _TEXTS,
        Kind.TIME: (types.is_temporal,),
        Kind.BLANK: (types.is_null,),
        Kind.VECTOR: (_is_vector,),
    }
    return next((kind for kind, among in kinds.items() if any(is_one(plain) for is_one in among)), Kind.OTHER)


def _plain_type(kind: Any) -> Any:
    """Return the type that a column is read in: of categories that of their values, of an extension its storage."""
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.FixedShapeTensorType):
        return _plain_type(kind.storage_type)
    return pa.large_string() if types.is_string_view(kind) else kind


def _in_type(column: Any, plain: Any) -> Any:
    """Return a column of a record batch in its plain type, or in one that holds more."""
    from pyarrow.compute import run_end_decode

    if column.type == plain:
        return column
    if types.is_dictionary(column.type):
        return _in_type(column.dictionary_decode(), plain)
    if types.is_run_end_encoded(column.type):
        return _in_type(run_end_decode(column), plain)
    if isinstance(column.type, pa.BaseExtensionType):
        return _in_type(column.storage, plain)
    return column.cast(plain)


def _decoded(column: Any) -> int:
    """How many bytes a column of a record batch takes at most in its plain type, where values may stand for many cells."""
    if types.is_dictionary(column.type):
        values = column.dictionary
    elif types.is_run_end_encoded(column.type):
        values = column.values
    else:
        return int(column.nbytes)
    return len(column) * (WORD + _longest(values))


def _listed_values(batch: Any) -> Iterator[Any]:
    return (column.dictionary for column in batch.columns if types.is_dictionary(column.type))


def _longest(values: Any) -> int:
    """How many bytes the longest of some values takes beyond a number."""
    import pyarrow.compute as pc

    return (pc.max(pc.binary_length(values)).as_py() or 0) if _has_lengths(values.type) else 0


def _has_lengths(kind: Any) -> bool:
    """Return whether each value of an Arrow type is as long as it is: text, or bytes."""
    return any(holds(kind) for holds in (*_TEXTS, types.is_binary, types.is_large_binary))


def plain_array(column: Any) -> Column:
    """Return a chunked column as an array, numbers without importing pandas, which takes as long as a small audit."""
    numbers = types.is_integer(column.type) or types.is_floating(column.type)
    if numbers and column.num_chunks and not column.null_count:
        return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])
    values: Column = column.to_numpy()
    return values


# --- Columns of equal-length vectors, each of which becomes one array ---


def _is_list(kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_vector(kind: Any) -> bool:
    """Return whether an Arrow type is a list (of lists) of numbers, or a tensor."""
    if not _is_list(kind):
        return isinstance(kind, pa.FixedShapeTensorType)
    inner = kind.value_type
    return bool(
        types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner) or _is_vector(inner)
    )


def _stacked(column: Any, *, words: str, first_row: int) -> npt.NDArray[Any]:
    """Return a chunked column of vectors as an array with one row for each.

    Args:
        column: Lists of numbers, lists of such, or tensors.
        words: The column and its table, for error sentences.
        first_row: The number of the first row in its table.

    Raises:
        InputError: A vector that is missing, or of another length than the first.
    """
    import pyarrow.compute as pc

    cells = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if cells.null_count:
        row = int(np.argmax(~np.asarray(cells.is_valid())))
        raise InputError(
            f"{words} must hold a vector in each row, got none in row {first_row + row}, counting from 0; leave that row"
            " out."
        )
    if isinstance(cells.type, pa.FixedShapeTensorType):
        return np.asarray(cells.to_numpy_ndarray())
    shape = [len(cells)]
    while _is_list(cells.type):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(cells), -1))
        other = lengths != lengths[:1]
        if other.any():
            at = int(np.argmax(other))
            raise InputError(
                f"{words} must hold vectors of equal length, got {max(0, int(lengths[at]))} numbers in row"
                f" {first_row + at // math.prod(shape[1:])}, counting from 0, after {int(lengths[0])}; make them equally"
                " long."
            )
        shape.append(int(lengths[0]) if lengths.size else 0)
        cells = cells.flatten()
    return np.asarray(cells.to_numpy(zero_copy_only=False)).reshape(shape)


# --- What the columns of a table are, settled for the table as a whole ---


@dataclass
class ColumnPlan:
    """What is known of a column as a whole.

    Attributes:
        type: The plain Arrow type that it is read in.
        gaps: Whether any cell is missing; only known of integers and truth values, which pandas then takes for others.
        categories: The values of a categorical column, in the order of the table that was written; none otherwise.
        ordered: Whether the order of the categories has a meaning.
        shape: Of one vector; none if there is none.
    """

    type: Any
    gaps: bool = False
    categories: dict[Any, None] | None = None
    ordered: bool = False
    shape: tuple[int, ...] | None = None

    @property
    def kind(self) -> Kind:
        """What the cells are."""
        return _kind_of(self.type)

    @property
    def unknown(self) -> bool:
        """Whether cells must be looked at to know what a stretch of the column becomes."""
        whole = types.is_integer(self.type) or types.is_boolean(self.type) or self.categories is not None
        return bool(whole) or (self.kind is Kind.VECTOR and self.shape is None)

    @property
    def uniform(self) -> bool:
        """Whether pandas makes the same of every stretch of the column, as it does of plain numbers."""
        return self.categories is None and bool(types.is_integer(self.type) or types.is_floating(self.type))

    def look(self, column: Any, words: str) -> None:
        """Take up some cells."""
        self.gaps |= column.null_count > 0
        if self.categories is not None:
            values = column.dictionary.to_pylist()
            self.categories.update((value, None) for value in values if value is not None)
        elif self.kind is Kind.VECTOR and self.shape is None and len(column):
            first = pa.chunked_array([_in_type(column.slice(0, 1), self.type)])
            self.shape = _stacked(first, words=words, first_row=0).shape[1:]

    def typed(self, column: Any, words: str) -> Any:  # noqa: ARG002 - for sentences about text
        """Return a column of a record batch in its plain type."""
        return _in_type(column, self.type)


def _planned(names: Sequence[str], schemas: Mapping[str, Any]) -> dict[str, ColumnPlan]:
    """Return what each column is, as far as the schemas of a table's files say, by how error sentences call each file.

    Raises:
        InputError: A file without one of the columns, with two of that name, or with another kind of cells.
    """
    first, kinds, common = next(iter(schemas)), [], pa.schema([])
    for place, schema in schemas.items():
        hint = f"Every part must have the columns of {first}."
        for name in names:
            validate.column_name(name, what="records", file=place, options=schema.names, hint=hint)
        kinds.append([schema.field(name).type for name in names])
        part = pa.schema(zip(names, map(_plain_type, kinds[-1]), strict=True))
        try:
            common = pa.unify_schemas([common, part], promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(
                f"{place} must hold what {first} holds, got columns of other types ({validate.one_line(error)}); write the"
                " parts with the same types."
            ) from None
    found = {}
    for name, plain, own in zip(names, common.types, zip(*kinds, strict=True), strict=True):
        category = all(map(types.is_dictionary, own))
        found[name] = ColumnPlan(
            plain, categories={} if category else None, ordered=category and own[0].ordered
        )
    return found


# --- A table that comes in record batches ---


class BatchTable(Table):
    """A table that comes in Arrow record batches, in blocks at each of which reading can begin."""

    blank: Any = None  # what a missing text is in a DataFrame; none leaves it to pandas

    @abstractmethod
    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:
        """Yield the record batches of some columns, from those of a block on."""

    def joined(self, batches: Iterable[Any], schema: Any) -> Any:
        """Return record batches as one Arrow table, unless they take more memory than they may."""
        found, size = [], 0
        for batch in batches:
            found.append(batch)
            size += batch.nbytes
            self.hold(size)
        return pa.Table.from_batches(found, schema=schema)

    def columns(self, names: Sequence[str], *, text: Sequence[str] = ()) -> dict[str, Column]:
        """Return all rows of some columns."""
        found = super().columns(names, text=text)
        pa.default_memory_pool().release_unused()  # which Arrow would keep for later tables
        return found


class BatchReader:
    """Chosen columns of a table.

    It reads on where a stretch follows the one before it, and begins anew where it does not. What is half read stays in
    this process: a pickled copy begins anew.
    """

    def __init__(self, table: BatchTable, plans: Mapping[str, ColumnPlan], sizes: Sequence[int]) -> None:
        """Keep what is known of the columns, and how many rows each block has."""
        self._table, self.plans = table, dict(plans)
        self._starts = np.cumsum([0, *sizes])
        self._coming: Iterator[Any] | None = None
        self._held: Any = None  # the batch that is not used up
        self._at = 0  # the row of the table that comes next

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_coming": None, "_held": None}

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """What the cells of each column are."""
        return {name: plan.kind for name, plan in self.plans.items()}

    def read(self, start: int, stop: int) -> "_BatchStretch":
        """Return rows.

        Raises:
            InputError: There are fewer rows than there were.
        """
        schema = pa.schema([(name, plan.type) for name, plan in self.plans.items()])
        content = self._table.joined(self._rows(start, stop), schema)
        return _BatchStretch(content, self.plans, self._table, start)

    def _rows(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the rows from ``start`` to before ``stop`` in record batches."""
        if start >= stop:
            return
        block = int(np.searchsorted(self._starts[:-1], start, side="right")) - 1
        coming, self._coming = self._coming, None  # what breaks is not read on
        if coming is None or start < self._at or self._starts[block] > self._at:
            coming, self._at, self._held = self._begun(block), int(self._starts[block]), None
        while self._at < stop:
            batch = next(coming, None) if self._held is None else self._held
            if batch is None:
                raise InputError(
                    f"{self._table.place} has only {self._at} rows and had {len(self)} when it was opened; do not change"
                    " it while it is read."
                )
            skipped = min(max(0, start - self._at), batch.num_rows)
            taken = min(stop - self._at, batch.num_rows)
            if taken > skipped:
                yield batch.slice(skipped, taken - skipped)
            self._held = batch.slice(taken) if taken < batch.num_rows else None
            self._at += taken
        self._coming = coming

    def _begun(self, block: int) -> Iterator[Any]:
        """Yield the record batches from a block on, in the types that are settled."""
        for batch in self._table.batches(list(self.plans), block):
            self._table.hold(sum(map(_decoded, batch.columns)))
            columns = [
                plan.typed(batch[name], f"column {name!r} of {self._table.place}")
                for name, plan in self.plans.items()
            ]
            yield pa.RecordBatch.from_arrays(columns, names=list(self.plans))


@dataclass(frozen=True, eq=False)
class _BatchStretch:
    """Some rows of a table.

    Attributes:
        content: The rows, as an Arrow table of the chosen columns in their plain types.
        plans: What each column is.
        source: The table.
        first_row: The number of the first row.
    """

    content: Any
    plans: Mapping[str, ColumnPlan]
    source: BatchTable
    first_row: int

    def column(self, name: str) -> Column:
        """Return one column as an array."""
        if self.plans[name].kind is Kind.VECTOR:
            return self._vectors(name)
        values = plain_array(self._stable(name))
        return values.astype(object) if self.plans[name].gaps and values.dtype.kind == "b" else values

    def table(self, names: Sequence[str]) -> Any:
        """Return some columns as a DataFrame."""
        columns = [self._stable(name) for name in names]
        frame = pa.table(columns, names=list(names)).to_pandas(ignore_metadata=True)
        for name in (name for name in names if not self.plans[name].uniform):
            changed = self._changed(name, frame[name])
            if changed is not None:
                frame[name] = changed
        return frame

    def _stable(self, name: str) -> Any:
        """The column in a type of which pandas and NumPy make the same in every stretch."""
        plan, column = self.plans[name], self.content[name]
        if plan.kind is Kind.VECTOR:
            return pa.nulls(len(column))  # the vectors are put in afterwards
        if plan.gaps and plan.categories is None and types.is_integer(plan.type):
            return column.cast(pa.float64(), safe=False)
        return column

    def _changed(self, name: str, values: Any) -> Any:
        """Return what pandas would have made of the whole column, where it made something else of a stretch."""
        import pandas as pd

        plan = self.plans[name]
        if plan.kind is Kind.VECTOR:
            return pd.Series(list(self._vectors(name)), index=values.index, dtype=object)
        if plan.categories is not None:
            return values.astype(pd.CategoricalDtype(list(plan.categories), ordered=plan.ordered))
        if plan.gaps and values.dtype == bool:
            return values.astype(object)
        if self.source.blank is not None and values.dtype == object:
            return values.where(values.notna(), self.source.blank)
        return None

    def _vectors(self, name: str) -> Column:
        words, shape = f"column {name!r} of {self.source.place}", self.plans[name].shape
        found = _stacked(self.content[name], words=words, first_row=self.first_row)
        if found.shape[0] and found.shape[1:] != shape:
            raise InputError(
                f"{words} must hold vectors of equal length, got shape {found.shape[1:]} in row {self.first_row}, counting"
                f" from 0, and {shape} in the first row; make them equally long."
            )
        return found


# --- Tables with schemas, which say what most columns are ---


class SchemaTable(BatchTable):
    """A table whose columns are those of the first of its schemas."""

    def __init__(self, schemas: Mapping[str, Any], *, place: str, path: Path | None = None) -> None:
        """Keep the Arrow schema of each file, by how error sentences call the file."""
        first = next(iter(schemas.values()))
        super().__init__(first.names, place=place, path=path)
        self._schemas, self.asides = schemas, _asides(first)
        self.later = {name for schema in schemas.values() for name in schema.names} - {*first.names}

    @abstractmethod
    def sizes(self) -> list[int]:
        """Return how many rows each block has."""

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> BatchReader:
        """Return a reader of some columns, after a look at the cells of those whose schema does not say it all."""
        found = self.whole_reader(names, text=text)
        unknown = {name: plan for name, plan in found.plans.items() if plan.unknown}
        for batch in self.batches(list(unknown)) if unknown else ():
            for name, plan in unknown.items():
                plan.look(batch[name], f"column {name!r} of {self.place}")
            if not any(plan.unknown for plan in unknown.values()):
                break  # the first vector says it all
        return found

    def whole_reader(self, names: Sequence[str], *, text: Sequence[str]) -> BatchReader:  # noqa: ARG002 - text is text here
        """Return a reader that knows what the schemas say, which is enough to read all rows at once."""
        return BatchReader(self, _planned(names, self._schemas), self.sizes())


_ROWS = 2**16  # of a batch


class ArrowTable(SchemaTable):
    """A pyarrow Table, or a Dataset, which may be larger than memory; in one block."""

    def __init__(self, data: Any, *, place: str, path: Path | None = None) -> None:
        """Keep the data."""
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
        batches: Iterator[Any] = self._data.scanner(columns=list(names), **few).to_batches()
        return batches


_MAGIC = b"ARROW1"


class IpcTable(SchemaTable):
    """A ``.arrow`` or ``.feather`` file, in the file format or, as one block, the stream format."""

    path: Path

    def __init__(self, path: Path, *, place: str) -> None:
        """Read the schema."""
        self.path = path
        with path.open("rb") as stream:
            self._whole = stream.read(len(_MAGIC)) == _MAGIC
            stream.seek(_START if self._whole else 0)
            self._messages = list(_messages(stream))
        with self._opened(()) as opened:
            super().__init__({place: opened.schema}, place=place, path=path)
            self._arrays = [len(pa.nulls(0, field.type).buffers()) for field in opened.schema]

    def sizes(self) -> list[int]:
        """Return how many rows each block has."""
        rows = [message.rows for message in self._messages if not message.listed]
        return rows if self._whole else [sum(rows)]

    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:
        """Yield the record batches from a block on, each checked: damaged offsets would lead anywhere."""
        fields = [self.names.index(name) for name in names]
        self._refuse_large(fields)
        with self._opened(fields) as opened:
            blocks = map(opened.get_batch, range(first, opened.num_record_batches)) if self._whole else opened
            for batch in blocks:
                batch.validate(full=True)
                yield from (batch.slice(at, _ROWS) for at in range(0, batch.num_rows, _ROWS))

    @contextmanager
    def _opened(self, fields: Sequence[int]) -> Iterator[Any]:
        """A reader of some columns; of all, if none is named."""
        # Read and not mapped: a file that is cut off while it is mapped ends the process.
        with pa.OSFile(str(self.path)) as stream:
            options = ipc.IpcReadOptions(included_fields=list(fields), use_threads=False)
            with (ipc.open_file if self._whole else ipc.open_stream)(stream, options=options) as opened:
                yield opened

    def _refuse_large(self, fields: Sequence[int]) -> None:
        """Refuse a file of which one batch of these columns, with all values that are listed once, is too large."""
        ends = np.cumsum([0, *self._arrays])
        largest = listed = 0
        for message in self._messages:
            if message.listed:
                listed += sum(message.sizes)
            elif ends[-1] == len(message.sizes):
                chosen = (sum(message.sizes[ends[field] : ends[field + 1]]) for field in fields)
                largest = max(largest, sum(chosen))
            else:  # a type of which nobody knows how many buffers it has
                largest = max(largest, sum(message.sizes))
        self.hold(largest + listed)


# --- What an IPC file says of its batches before any is decoded: their rows, and how large their buffers become ---


_START = 8  # where the messages of a file begin
_MARK = 0xFFFFFFFF  # before the length of a message; not yet there in the oldest files
_LISTED, _BATCH = 2, 3  # kinds of messages: values that are listed once, and a record batch


class _Message(NamedTuple):
    """A record batch, or values that are listed once: the rows, and what each buffer takes once decoded."""

    listed: bool
    rows: int
    sizes: list[int]


class _Flat(NamedTuple):
    """A table in a FlatBuffer: the bytes, and where it begins in them; its fields have numbers."""

    content: bytes
    at: int

    def _place(self, field: int) -> int:
        """Where a field is; 0 if it is left out."""
        head = self.at - self._read("<i", self.at)
        inside = 4 + 2 * field
        offset = self._read("<H", head + inside) if inside < self._read("<H", head) else 0
        return self.at + offset if offset else 0

    def _read(self, form: str, at: int) -> int:
        return int(struct.unpack_from(form, self.content, at)[0])

    def number(self, field: int, form: str) -> int:
        """Return a number; 0 if it is left out."""
        place = self._place(field)
        return self._read(form, place) if place else 0

    def table(self, field: int) -> "_Flat | None":
        """Return a table in this one; none if it is left out."""
        place = self._place(field)
        return _Flat(self.content, place + self._read("<I", place)) if place else None

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a list of pairs of numbers of 64 bits."""
        place = self._place(field)
        start = place + self._read("<I", place) if place else 0
        count = self._read("<I", start) if place else 0
        return list(struct.iter_unpack("<qq", self.content[start + 4 : start + 4 + 16 * count]))


def _messages(stream: IO[bytes]) -> Iterator[_Message]:
    """Yield what the messages of a file say, without their content.

    Source: the Arrow columnar format, "Encapsulated message format" and its FlatBuffers schema Message.fbs.
    """
    while len(head := stream.read(8)) == 8:  # noqa: PLR2004 - the mark and the length
        length, after = struct.unpack("<II", head)
        if length != _MARK:
            stream.seek(-4, os.SEEK_CUR)
            after = length
        if after == 0:
            return
        content = stream.read(after)
        message, start = _Flat(content, struct.unpack_from("<I", content)[0]), stream.tell()
        kind, found, body = message.number(1, "<B"), message.table(2), message.number(3, "<q")
        if kind == _LISTED and found:
            found = found.table(1)
        if kind in (_LISTED, _BATCH) and found:
            yield _Message(kind == _LISTED, found.number(0, "<q"), _sizes(stream, start, found))
        stream.seek(start + max(0, body))


def _sizes(stream: IO[bytes], start: int, batch: _Flat) -> list[int]:
    """What each buffer of a batch takes once decoded; a compressed one begins with that."""
    found = []
    for offset, length in batch.pairs(2):
        size = length
        if length and batch.table(3):
            stream.seek(start + offset)
            size = struct.unpack("<q", stream.read(8))[0]
        found.append(length if size < 0 else size)  # -1: not compressed after all
    return found


_BYTES = 2**25  # decoded at a time, about
_LEAST = 2**4  # rows decoded at a time


class _RowGroup(NamedTuple):
    """Where a row group is, its rows, and the bytes of all its columns.

    What the file says of single columns is not asked for: where it is damaged, Arrow ends the process.
    """

    file: Path
    at: int
    rows: int
    bytes: int


class ParquetTable(SchemaTable):
    """A Parquet file, or several one after another, whose blocks are their row groups."""

    def __init__(self, files: Sequence[Path], *, place: str, path: Path) -> None:
        """Read the schemas, and where the row groups are."""
        schemas: dict[str, Any] = {}
        self._groups: list[_RowGroup] = []
        for file in files:
            with _opened(file) as opened:
                schemas[f"file {str(file)!r}"] = opened.schema_arrow
                for at in range(opened.metadata.num_row_groups):
                    group = opened.metadata.row_group(at)
                    self._groups.append(_RowGroup(file, at, group.num_rows, group.total_byte_size))
        super().__init__(schemas, place=place, path=path)

    def sizes(self) -> list[int]:
        """Return how many rows each row group has."""
        return [group.rows for group in self._groups]

    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:
        """Yield the row groups from this one on, in batches that are small, however large the groups are."""
        for file, groups in itertools.groupby(self._groups[first:], key=attrgetter("file")):
            schema = self._schemas[f"file {str(file)!r}"]
            texts = [name for name in names if _has_lengths(_plain_type(schema.field(name).type))]
            with _opened(file) as opened, _opened(file, listed=texts) as listed:
                for group in groups:
                    rows = self._rows_at_once(group, names, texts, listed)
                    yield from opened.iter_batches(
                        rows, row_groups=[group.at], columns=list(names), use_threads=False
                    )

    def _rows_at_once(self, group: _RowGroup, names: Sequence[str], texts: list[str], listed: Any) -> int:
        """Return how many rows of a row group are decoded at a time; refuse it if even a few are too large."""
        size = group.bytes * len(names) // len(self.names)
        rows = max(_LEAST, min(_ROWS, _BYTES * group.rows // max(1, size)))
        self.hold((group.bytes if texts else size) * min(1.0, rows / max(1, group.rows)))
        # A text that is listed once may stand for every row: one row, and the list with it, says how long they are.
        once = {"row_groups": [group.at], "columns": texts, "use_threads": False}
        first = next(listed.iter_batches(1, **once), None) if texts else None
        longest = 0 if first is None else sum(map(_longest, _listed_values(first)))
        rows = min(rows, max(_LEAST, _BYTES // max(1, longest)))
        self.hold(min(rows, group.rows) * longest)
        return rows


@contextmanager
def _opened(file: Path, *, listed: Sequence[str] = ()) -> Iterator[Any]:
    from pyarrow import parquet

    # Neither prefetched nor mapped: only the pages that are being decoded are in memory.
    small = {"pre_buffer": False, "buffer_size": 2**16, "memory_map": False}
    with (
        readable(file),
        parquet.ParquetFile(
            str(file), page_checksum_verification=True, read_dictionary=list(listed), **small
        ) as opened,
    ):
        yield opened


def _asides(schema: Any) -> frozenset[str]:
    """Return the columns that hold the index of the DataFrame that a table was written from, and those without a name."""
    try:
        found = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = []
    listed = found if isinstance(found, list) else []
    named = {name for name in listed if isinstance(name, str)}
    return frozenset(named | {name for name in schema.names if not name.strip()})
