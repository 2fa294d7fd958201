"""Tables in Arrow's types: Parquet files, Tables and Datasets in memory, and files in the IPC formats (Feather).

Records are read onwards in record batches, of which stretches from anywhere are made.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.tables.sources import FROM_ZERO, Column, ColumnTable, Kind, readable
from auditor.core import validate
from auditor.core.errors import InputError

# --- Arrow types: what their cells are, and the plain type that each is read in ---


def _kind_of(kind: Any) -> Kind:
    """Return what the cells of a column of this plain type are."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return Kind.NUMBER
    if types.is_string(kind) or types.is_large_string(kind):
        return Kind.TEXT
    if types.is_temporal(kind):
        return Kind.TIME
    if types.is_null(kind):
        return Kind.BLANK
    return Kind.VECTOR if is_vector(kind) else Kind.OTHER


def _is_category(kind: Any) -> bool:
    """Return whether the cells are categories."""
    from pyarrow import types

    return bool(types.is_dictionary(kind))


def _plain_type(kind: Any) -> Any:
    """Return the type that a column is read in: of categories that of their values, of an extension its storage."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.FixedShapeTensorType):
        return _plain_type(kind.storage_type)
    if getattr(types, "is_string_view", lambda _: False)(kind):
        return pa.large_string()
    return kind


def _needs_a_look(kind: Any) -> bool:
    """Return whether cells must be looked at to know what a stretch of such a column becomes."""
    from pyarrow import types

    plain = _plain_type(kind)
    return bool(_is_category(kind) or is_vector(plain) or types.is_integer(plain) or types.is_boolean(plain))


def _common_types(names: Sequence[str], *, schemas: Sequence[Any], places: Sequence[str]) -> dict[str, Any]:
    """Return for each column a type that holds what every one of several tables has in it.

    Raises:
        InputError: A table without one of the columns, with two of that name, or with another kind of cells.
    """
    found = {name: schemas[0].field(schemas[0].names.index(name)).type for name in names}
    for schema, place in zip(schemas[1:], places[1:], strict=True):
        for name in names:
            validate.column_name(
                name,
                what="records",
                file=place,
                options=schema.names,
                hint=f"Every part must have the columns of {places[0]}.",
            )
            kind = schema.field(schema.names.index(name)).type
            found[name] = _common(found[name], kind, words=f"column {name!r} of {place}", first=places[0])
    return found


def _common(one: Any, other: Any, *, words: str, first: str) -> Any:
    import pyarrow as pa

    if one == other:
        return one
    if _is_category(one) and _is_category(other) and one.value_type == other.value_type:
        return one
    plain = [_plain_type(kind) for kind in (one, other)]
    kinds = {_kind_of(kind) for kind in plain} - {Kind.BLANK}
    try:
        if len(kinds) > 1:
            raise pa.ArrowTypeError
        fields = [pa.schema([pa.field("column", kind)]) for kind in plain]
        return pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except pa.ArrowException:
        raise InputError(
            f"{words} must hold what it holds in {first}, got {other} and not {one}; write the parts with the same types."
        ) from None


def _in_plain_types(batch: Any, types: Mapping[str, Any]) -> Any:
    """Return these columns of a record batch in these plain types."""
    import pyarrow as pa

    columns = [_in_type(batch.column(batch.schema.names.index(name)), kind) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(types.items())))


def _in_type(column: Any, kind: Any) -> Any:
    import pyarrow as pa
    from pyarrow import types
    from pyarrow.compute import run_end_decode

    if types.is_dictionary(column.type):
        return _in_type(column.dictionary_decode(), kind)
    if types.is_run_end_encoded(column.type):
        return _in_type(run_end_decode(column), kind)
    if isinstance(column.type, pa.BaseExtensionType) and column.type != kind:
        return _in_type(column.storage, kind)
    return column if column.type == kind else column.cast(kind)


# --- Columns as arrays: one of equal-length vectors becomes one array ---


def column_array(column: Any) -> Column:
    """Return an Arrow column as an array: categories as their values, a missing string as an empty one."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.fill_null("")
    values: Column = column.to_numpy(zero_copy_only=False) if column.num_chunks == 1 else column.to_numpy()
    return values


def is_vector(kind: Any) -> bool:
    """Return whether an Arrow type is a list (of lists) of numbers, or a tensor."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(kind, pa.FixedShapeTensorType):
        return True
    if not _is_list(kind):
        return False
    inner = kind.value_type
    number = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
    return bool(number) or (_is_list(inner) and is_vector(inner))


def stacked(column: Any, *, name: str, place: str, first_row: int) -> npt.NDArray[Any]:
    """Return an Arrow column of vectors as an array with one row for each.

    Args:
        column: A chunked array of lists of numbers, of lists of such, or of tensors.
        name: Of the column, for error sentences.
        place: The table, for error sentences.
        first_row: The number of the first row in its table.

    Raises:
        InputError: A vector that is missing, or of another length than the first.
    """
    import pyarrow as pa

    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # no chunk at all, or more than one array can hold
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    if whole.null_count:
        row = int(np.argmax(~np.asarray(whole.is_valid())))
        raise InputError(
            f"column {name!r} of {place} must hold a vector in each row, got none in row {first_row + row}, counting from"
            " 0; leave that row out."
        )
    if isinstance(column.type, pa.FixedShapeTensorType):
        return np.asarray(whole.to_numpy_ndarray())
    return _stacked(whole, words=f"column {name!r} of {place}", first_row=first_row, each=1)


def _stacked(whole: Any, *, words: str, first_row: int, each: int) -> npt.NDArray[Any]:
    """Return lists as an array; each row of the table has so many of them."""
    import pyarrow.compute as pc

    if not _is_list(whole.type):
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(whole), -1))
    width = int(lengths[0]) if lengths.size else 0
    bad = lengths != width
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"{words} must hold vectors of equal length, got {max(0, int(lengths[at]))} numbers in row"
            f" {first_row + at // each}, counting from 0, after {width}; make them equally long."
        )
    inner = _stacked(whole.flatten(), words=words, first_row=first_row, each=each * max(1, width))
    return inner.reshape(lengths.size, width, *inner.shape[1:])


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


# --- What the columns of an Arrow table are, settled for the table as a whole ---


@dataclass(frozen=True)
class ColumnPlan:
    """What is known of a column as a whole.

    Attributes:
        kind: What its cells are.
        type: The plain Arrow type that it is read in.
        gaps: Whether any cell is missing; only known of integers and truth values, which pandas then takes for others.
        categories: The values of a categorical column, in the order of the table that was written; none otherwise.
        ordered: Whether the order of the categories has a meaning.
        shape: Of one vector.
    """

    kind: Kind
    type: Any
    gaps: bool = False
    categories: tuple[Any, ...] | None = None
    ordered: bool = False
    shape: tuple[int, ...] = ()


@dataclass
class _Found:
    """What the cells of one column showed."""

    gaps: bool = False
    categories: dict[Any, None] = field(default_factory=dict)
    shape: tuple[int, ...] | None = None


def _planned(
    types: Mapping[str, Any], batches: Callable[[Sequence[str]], Iterable[Any]], *, place: str
) -> dict[str, ColumnPlan]:
    """Return what each column is.

    Args:
        types: The Arrow type of each column, as it was written.
        batches: All rows of some columns; asked for only if columns must be looked at.
        place: The table, for error sentences.

    Raises:
        InputError: A first vector that is none.
    """
    found = {name: _Found() for name in types}
    look = {name: kind for name, kind in types.items() if _needs_a_look(kind)}
    only_vectors = all(is_vector(_plain_type(kind)) for kind in look.values())
    for batch in batches(list(look)) if look else ():
        for name, kind in look.items():
            _look(found[name], batch.column(batch.schema.names.index(name)), kind, name=name, place=place)
        if only_vectors and all(found[name].shape is not None for name in look):
            break  # the first vector says it all
    return {name: _plan(kind, found[name]) for name, kind in types.items()}


def _look(found: _Found, column: Any, kind: Any, *, name: str, place: str) -> None:
    import pyarrow as pa

    found.gaps |= column.null_count > 0
    if _is_category(kind):
        found.categories.update(dict.fromkeys(column.dictionary.to_pylist()))
    elif found.shape is None and len(column) and is_vector(_plain_type(kind)):
        first = pa.chunked_array([column.slice(0, 1).cast(_plain_type(kind))])
        found.shape = stacked(first, name=name, place=place, first_row=0).shape[1:]


def _plan(kind: Any, found: _Found) -> ColumnPlan:
    plain = _plain_type(kind)
    category = _is_category(kind)
    return ColumnPlan(
        kind=_kind_of(plain),
        type=plain,
        gaps=found.gaps,
        categories=tuple(value for value in found.categories if value is not None) if category else None,
        ordered=bool(kind.ordered) if category else False,
        shape=found.shape or (),
    )


# --- Stretches of a table that comes in Arrow batches ---


class ArrowReader(ABC):
    """Chosen columns of a table, whose batches have the plain types that the plans say.

    It reads on where a stretch follows the one before it, and begins anew where it does not. What is half read stays in
    this process: a pickled copy begins anew.
    """

    _blank: Any = None

    def __init__(self, *, place: str, rows: int, plans: Mapping[str, ColumnPlan]) -> None:
        """Keep what is known of the table: how error sentences call it, how many rows it has, and its columns."""
        self.place = place
        self._rows = rows
        self._plans = dict(plans)
        self._coming: Iterator[Any] | None = None
        self._held: Any = None  # the batch that is not used up
        self._at = 0  # the row of the table that comes next

    def __len__(self) -> int:
        return self._rows

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_coming": None, "_held": None, "_at": 0}

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the cells of each column are."""
        return {name: plan.kind for name, plan in self._plans.items()}

    @property
    def types(self) -> dict[str, Any]:
        """The plain Arrow type of each column."""
        return {name: plan.type for name, plan in self._plans.items()}

    def read(self, start: int, stop: int) -> "_ArrowStretch":
        """Return rows."""
        import pyarrow as pa

        batches = self._batches_of(start, stop)
        content = pa.Table.from_batches(batches, schema=pa.schema(list(self.types.items())))
        return _ArrowStretch(content, self._plans, self.place, start, self._blank)

    @abstractmethod
    def _begin(self, start: int) -> int:
        """Return the nearest row at or before this one from which reading can begin."""

    @abstractmethod
    def _from(self, begin: int) -> Iterator[Any]:
        """Return the record batches from a row on which reading can begin."""

    def _batches_of(self, start: int, stop: int) -> list[Any]:
        """Return the rows from ``start`` to before ``stop`` as Arrow record batches.

        Raises:
            InputError: There are fewer rows than there were.
        """
        if start >= stop:
            return []
        if self._coming is None or start < self._at or self._begin(start) > self._at:
            self._at = self._begin(start)
            self._coming, self._held = self._from(self._at), None
        found = []
        while self._at < stop:
            try:
                batch = self._next()
            except BaseException:
                self._coming = self._held = None  # what broke is not read on
                raise
            skipped = min(max(0, start - self._at), batch.num_rows)
            taken = min(stop - self._at, batch.num_rows)
            if taken > skipped:
                found.append(batch.slice(skipped, taken - skipped))
            self._held = batch.slice(taken) if taken < batch.num_rows else None
            self._at += taken
        return found

    def _next(self) -> Any:
        if self._held is not None:
            return self._held
        batch = next(self._coming or iter(()), None)
        if batch is None:
            raise InputError(
                f"{self.place} has only {self._at} rows and had {self._rows} when it was opened; do not change it while"
                " it is read."
            )
        return batch


@dataclass(frozen=True, eq=False)
class _ArrowStretch:
    """Some rows of an Arrow table.

    Attributes:
        content: The rows, as an Arrow table of the chosen columns in their plain types.
        plans: What each column is.
        place: The table, for error sentences.
        first_row: The number of the first row.
        blank: What a missing text is in a DataFrame; none leaves it to pandas.
    """

    content: Any
    plans: Mapping[str, ColumnPlan]
    place: str
    first_row: int
    blank: Any = None

    def column(self, name: str) -> Column:
        """Return one column as an array."""
        if self.plans[name].kind is Kind.VECTOR:
            return self._vectors(name)
        values = self.table([name]).iloc[:, 0]
        if self.plans[name].categories is not None:
            values = values.astype(object)
        column = np.asarray(values)
        if column.dtype.kind != "O":
            return column
        column = column.copy()
        column[np.asarray(values.isna())] = None
        return column

    def table(self, names: Sequence[str]) -> Any:
        """Return some columns as a DataFrame."""
        import pyarrow as pa

        columns = [_pandas_stable(self.content[name], self.plans[name]) for name in names]
        frame = pa.table(columns, names=list(names)).to_pandas(ignore_metadata=True)
        for name in names:
            changed = self._changed(name, frame[name])
            if changed is not None:
                frame[name] = changed
        return frame

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
        if self.blank is not None and values.dtype == object:
            return values.where(values.notna(), self.blank)
        return None

    def _vectors(self, name: str) -> Column:
        shape = self.plans[name].shape
        found = stacked(self.content[name], name=name, place=self.place, first_row=self.first_row)
        if found.shape[0] and found.shape[1:] != shape:
            raise InputError(
                f"column {name!r} of {self.place} must hold vectors of equal length, got shape {found.shape[1:]} in row"
                f" {self.first_row}, counting from 0, and {shape} in the first row; make them equally long."
            )
        return found


def _pandas_stable(column: Any, plan: ColumnPlan) -> Any:
    """Return the column in a type of which pandas makes the same in every stretch."""
    import pyarrow as pa
    from pyarrow import types

    if plan.kind is Kind.VECTOR:
        return pa.nulls(len(column))  # the vectors are put in afterwards
    if plan.gaps and plan.categories is None and types.is_integer(plan.type):
        return column.cast(pa.float64(), safe=False)
    return column


# --- Where the rows are: in blocks of record batches, at each of which reading can begin ---


_ROWS = 2**16
_MAGIC = b"ARROW1"


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """A pyarrow Table, in blocks of as many rows as are read at a time."""

    table: Any

    @property
    def schemas(self) -> list[Any]:
        """The Arrow schema."""
        return [self.table.schema]

    def sizes(self) -> list[int]:
        """How many rows each block has."""
        n = self.table.num_rows
        return [min(_ROWS, n - start) for start in range(0, n, _ROWS)]

    def batches(self, names: Sequence[str], first: int) -> Iterator[Any]:
        """Return the record batches of some columns, from the first of this block on."""
        chosen = self.table.select(list(names)).slice(first * _ROWS)
        yield from chosen.to_batches(max_chunksize=_ROWS)


@dataclass(frozen=True, eq=False)
class ArrowDataset:
    """A pyarrow Dataset, which may be larger than memory, in one block."""

    dataset: Any

    @property
    def schemas(self) -> list[Any]:
        """The Arrow schema."""
        return [self.dataset.schema]

    def sizes(self) -> list[int]:
        """How many rows there are."""
        return [self.dataset.count_rows()]

    def batches(self, names: Sequence[str], first: int) -> Iterator[Any]:  # noqa: ARG002 - there is only one block
        """Return all record batches."""
        scanner = self.dataset.scanner(
            columns=list(names), batch_size=_ROWS, batch_readahead=1, fragment_readahead=1
        )
        yield from scanner.to_batches()


@dataclass(frozen=True, eq=False)
class IpcFile:
    """A ``.arrow`` or ``.feather`` file, in the file format or, as one block, the stream format."""

    path: Path
    schema: Any = None

    def __post_init__(self) -> None:
        with readable(self.path):
            with self.path.open("rb") as stream:
                magic = stream.read(len(_MAGIC))
            if magic.startswith(b"FEA1"):
                raise InputError(
                    f"file {str(self.path)!r} is in the first version of Feather; write it again in the second."
                )
            with self._reader(None) as reader:
                object.__setattr__(self, "schema", reader.schema)

    @property
    def schemas(self) -> list[Any]:
        """The Arrow schema."""
        return [self.schema]

    def sizes(self) -> list[int]:
        """How many rows each block has."""
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


_BYTES = 2**25  # decoded at a time, about
_PAGES = 2**21  # bytes of pages of a column that are in memory at a time, about
_LEAST, _MOST = 2**4, 2**16  # rows decoded at a time


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """The Parquet files of a table, one after another, whose blocks are their row groups."""

    files: tuple[Path, ...]

    @cached_property
    def schemas(self) -> list[Any]:
        """The Arrow schema of each file."""
        found = []
        for file in self.files:
            with readable(file), _opened(file) as opened:
                found.append(opened.schema_arrow)
        return found

    def sizes(self) -> list[int]:
        """How many rows each row group has."""
        return [group.rows for group in self._groups]

    def batches(self, names: Sequence[str], first: int) -> Iterator[Any]:
        """Yield row groups, from this one on, in batches that are small, however large the groups are."""
        for group in self._groups[first:]:
            if group.rows <= 0:
                continue
            size = group.bytes * len(names) // max(1, group.columns)
            rows = max(_LEAST, min(_MOST, _BYTES * group.rows // max(1, size)))
            with readable(group.file), _opened(group.file) as opened:
                if size <= _PAGES * len(names):  # smaller as a whole than the pages that are read at a time
                    whole = opened.read_row_group(group.place, columns=list(names), use_threads=False)
                    yield from whole.to_batches(max_chunksize=rows)
                else:
                    yield from opened.iter_batches(
                        rows, row_groups=[group.place], columns=list(names), use_threads=False
                    )

    @cached_property
    def _groups(self) -> list["_RowGroup"]:
        found = []
        for file in self.files:
            with readable(file), _opened(file) as opened:
                metadata = opened.metadata
                for place in range(metadata.num_row_groups):
                    group = metadata.row_group(place)
                    found.append(
                        _RowGroup(file, place, group.num_rows, group.total_byte_size, group.num_columns)
                    )
        return found


@dataclass(frozen=True)
class _RowGroup:
    """Where a row group is, its rows, and the bytes of all its columns.

    What the file says of single columns is not asked for: where it is damaged, Arrow ends the process.
    """

    file: Path
    place: int
    rows: int
    bytes: int
    columns: int


def _opened(file: Path) -> Any:
    from pyarrow import parquet

    # Neither prefetched nor mapped: only the pages that are being decoded are in memory.
    return parquet.ParquetFile(
        str(file), page_checksum_verification=True, pre_buffer=False, buffer_size=2**16, memory_map=False
    )


# --- Records in blocks become a table to open ---


_Blocks = ArrowTable | ArrowDataset | IpcFile | ParquetFiles


class ArrowRecords:
    """A table of which only the schemas are known yet; its columns are those of the first file."""

    rows = FROM_ZERO

    def __init__(self, blocks: _Blocks, *, place: str, files: Sequence[str] = ()) -> None:
        """Keep where the rows are, and how error sentences call the table and each of its files."""
        self.place = place
        self.names = list(blocks.schemas[0].names)
        self.asides = _index_columns(blocks.schemas[0])
        self._blocks, self._files = blocks, files or [place]

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> ArrowReader:  # noqa: ARG002 - text is text here
        """Return a reader of some columns."""
        types = _common_types(names, schemas=self._blocks.schemas, places=self._files)
        plans = _planned(types, lambda look: self._blocks.batches(look, 0), place=self.place)
        return _BlockReader(self._blocks, place=self.place, plans=plans)


class _BlockReader(ArrowReader):
    def __init__(self, blocks: _Blocks, *, place: str, plans: Mapping[str, ColumnPlan]) -> None:
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
            yield _in_plain_types(batch, types)


def _index_columns(schema: Any) -> frozenset[str]:
    """Return the columns that hold the index of the DataFrame that a table was written from, and those without a name."""
    try:
        found = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = []
    listed = found if isinstance(found, list) else []
    named = {name for name in listed if isinstance(name, str)}
    return frozenset(named | {name for name in schema.names if not name.strip()})


# --- Whole columns of a Parquet file ---


class ParquetColumns(ColumnTable):
    """An Apache Parquet file."""

    rows = FROM_ZERO

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        super().__init__(path)
        with readable(path):
            self.names = list(parquet.read_schema(str(path)).names)

    def read(self, numeric: Sequence[str], *, text: Sequence[str]) -> dict[str, Column]:
        """Return the columns in the types they were written in."""
        from pyarrow import parquet

        with readable(self._path):
            wanted = [*numeric, *text]
            file = parquet.ParquetFile(str(self._path), page_checksum_verification=True)
            table = file.read(columns=wanted)
            return {name: column_array(table[name]) for name in wanted}
