"""Conversion of any data into an open table; records to score come from one table, or from one for each group."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.base.records import Batch, Records
from auditor.collectors.base.tasks import Classifier, Task
from auditor.collectors.tables import arrays, sources
from auditor.core import MEMORY, Booleans, InputError, MissingExtraError, errors, import_optional, validate

# --- Data of any supported kind becomes an open table, of which only the names of the columns are read ---


def open_table(data: Any, *, name: str = "the table", memory: float = MEMORY) -> sources.Table:
    """Return the table.

    Args:
        data: As for `RecordTable.data`; an open table is returned unchanged.
        name: Name of data in memory in error sentences; files are named by their paths.
        memory: Largest memory in bytes for the decoded part of a file.

    Raises:
        InputError: Data of no supported kind, or a file that cannot be read or may be pickled.
    """
    if isinstance(data, sources.Table):
        return data
    path, memory = sources.path_of(data), validate.positive("memory", memory)
    address = sources.address_of(data)
    if path is None:
        return _in_memory(data, name)
    with sources.readable(address or path):
        table = tables_at(address, memory=memory)[0] if address else _file(path, memory)
    table.memory = memory
    return table


def tables_at(address: str, *, memory: float, apart: bool = False) -> Sequence[sources.Table]:
    """Return the CSV files at an address as one table, or the Parquet files as one or each, by fsspec: nothing else here looks beyond this machine."""
    fsspec = import_optional("fsspec", purpose="reading from an address", extra="remote")
    if re.search("://[^/?#]*@", address):
        raise InputError(
            "an address must hold no user or password, got one with an @; fsspec takes them from the environment."
        )
    if errors.credentials(address) and errors.elsewhere(address, "http"):
        raise InputError(
            f"file {address!r} must be read over https, since any value of six or more characters in an address may be a"
            " credential, which others can read over http; use its https address."
        )
    errors.keep_from_logs()
    from pyarrow import dataset

    from auditor.collectors.tables.arrow import AddressTable
    from auditor.collectors.tables.csv import CsvFolder

    try:
        system, root = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise MissingExtraError(
            f"reading {address!r} needs a package of its file system: {validate.one_line(error)}."
        ) from None
    alone = root.startswith("http") or not system.isdir(root)  # where a folder is a page of links
    if texts := sources.csv_files([root] if alone else system.find(root), root):
        opened = (sources.OnceOpened(file, system) for file in texts)
        table = CsvFolder(opened, folder=root, place=errors.without_credentials(f"file {address!r}"))
        table.address, table.memory = address, memory
        return [table]
    read = partial(dataset.dataset, filesystem=system, format="parquet")
    files = read(root).files
    if apart:
        return [AddressTable(read(file), system.unstrip_protocol(file), memory) for file in files]
    partitioned = any("=" in file.removeprefix(root) for file in files)
    return [AddressTable(read(root, partitioning="hive" if partitioned else None), address, memory)]


def _in_memory(data: Any, name: str) -> sources.Table:
    kind = type(data).__module__.split(".")[0]
    if kind == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        return arrays.FrameTable(data, place=name)
    if validate.is_a(data, "polars", "LazyFrame"):
        data = data.collect(engine="streaming")
    if kind == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        data, kind = data.to_arrow(), "pyarrow"
    if validate.is_a(data, "datasets", "Dataset"):
        data, kind = data.with_format("arrow")[:], "pyarrow"
    stream = hasattr(data, "__arrow_c_stream__") and not validate.is_a(data, "pyarrow", "Table")
    if stream or (kind == "pyarrow" and hasattr(data, "schema")):
        import pyarrow as pa

        from auditor.collectors.tables import arrow

        return arrow.ArrowTable(pa.table(data) if stream else data, place=name)
    if arrays.is_map_style(data):
        return arrays.DataSetTable(data, place=name)
    if isinstance(data, Mapping):
        return arrays.ArrayTable(data, place=name)
    raise InputError(
        "a table must be the path of a file or folder, a pandas or polars DataFrame, a pyarrow Table or Dataset, data with"
        " an Arrow stream (as of DuckDB), a Dataset of Hugging Face, or a dictionary of arrays, got"
        f" {type(data).__name__}; convert it to one of these."
    )


def _file(path: Path, memory: float) -> sources.Table:
    kind, place = sources.checked_kind(path), f"file {str(path)!r}"
    if kind == ".npz":
        return arrays.NpzTable(path, place=place)
    from auditor.collectors.tables import arrow, csv

    if kind == sources.FOLDER:
        return _folder(path, place=f"folder {str(path)!r}")
    if kind == ".parquet":
        return arrow.ParquetTable((path,), place=place, path=path)
    if kind == ".jsonl":
        return arrow.JsonTable(path, place=place, memory=memory)
    return (csv.CsvTable if kind in sources.TEXTS else arrow.IpcTable)(path, place=place)


def _folder(path: Path, *, place: str) -> sources.Table:
    from auditor.collectors.tables import arrow, csv

    nested = sources.is_partitioned(path)
    files = (str(file) for file in (path.rglob("*") if nested else path.iterdir()) if file.is_file())
    if texts := sources.csv_files(files, str(path)):
        return csv.CsvFolder(map(sources.OnceOpened, texts), folder=str(path), place=place, path=path)
    if not nested:
        return arrow.ParquetTable(sources.parts(path), place=place, path=path)
    from pyarrow import dataset

    data = dataset.dataset(str(path), format="parquet", partitioning="hive")
    return arrow.ArrowTable(data, place=place, path=path)


# --- Tables of records to score: the roles of their columns, and the records a stretch at a time ---


@dataclass(frozen=True, eq=False)
class RecordTable:
    r"""Records to score: a file, a folder, a frame or arrays, and the names of the columns.

    Numbers, text and categories come to the model in the types that pandas gives them when it reads the same table;
    whatever has to be encoded is encoded by the model's own pipeline. In a CSV a column of which every cell is a number
    or missing holds numbers, one of true and false truth values, and any other one text; missing are the cells that
    pandas takes for missing (a blank, NA, NaN, null and the like). Ids, groups and data subjects of a CSV stay text.

    Attributes:
        data: The path of a ``.csv`` or ``.tsv`` (also with ``.gz`` behind it), ``.parquet``, ``.npz``, ``.arrow``, ``.feather`` or ``.jsonl`` (an object on each line) file or of a folder of
            ``.parquet`` or CSV files (in the order of their names), also in folders ``column=value``, Parquet and CSV also at an address that fsspec knows (``s3://...``); a pandas or polars DataFrame (a LazyFrame is collected); a pyarrow Table or Dataset;
            data with an Arrow stream, such as a DuckDB relation; a ``datasets.Dataset`` of Hugging Face;
            or a dictionary of arrays by name, also memory maps and zarr arrays, which are read in stretches.
        label: The column of true labels, or several for several labels or outputs; none where there is nothing to
            predict, as for texts.
        features: The columns that the model takes, in its order; default all that play no other part, in the order of
            the table. One name (not in a list) gives the column itself: texts, or one array of all the features.
            Columns without a name, and those that pandas wrote for its index, are features only if named.
        id: Record ids; read if the table has the column, an error if another name than the default is missing. None
            reads none, and a column of that name is then a feature like any other.
        group: Slices to report by, read as ids are.
        person: Data subject of each record, read as ids are.
        member: Membership, 1 for a member and 0 for a non-member, read as ids are; needed where one table holds both groups.
        memory: Largest memory in bytes for the decoded part of a file: some records, or of a compressed block or an ``.npz`` file all.

    Raises:
        InputError: Names that are no text, empty or repeated, or no data.

    >>> RecordTable({"age": [31, 45], "job": ["cook", "judge"], "y": [0, 1]}, label="y").label
    ('y',)
    """

    data: Any = field(repr=False)
    _: KW_ONLY
    label: str | Sequence[str] | None = None
    features: str | Sequence[str] | None = None
    id: str | None = "id"
    group: str | None = "group"
    person: str | None = "person"
    member: str | None = "member"
    memory: float = MEMORY

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", validate.positive("memory", self.memory))
        if isinstance(self.label, str):
            object.__setattr__(self, "label", (self.label,))
        for argument in ("label", "features", *_BESIDE):
            value = getattr(self, argument)
            lists = "" if argument in _BESIDE else ", or a list of different names"
            several = lists and isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
            names = tuple(value) if several else (value,)
            good = names and all(isinstance(name, str) and name.strip() for name in names)
            if value is not None and (not good or len(set(names)) < len(names)):
                raise InputError(f"{argument} must be the name of a column{lists}, got {value!r}.")
            object.__setattr__(self, argument, names if several else value)


_BESIDE = ("id", "group", "person", "member")


@dataclass(frozen=True)
class _Roles:
    """The columns that are read, by the part they play.

    Attributes:
        features: In the order in which the model takes them.
        alone: Whether the one feature comes as a column and not as a table of one column.
        labels: Column of the true labels.
        beside: The columns of ids, groups and people, by their role.
        member: Column of membership.
    """

    features: tuple[str, ...]
    alone: bool
    labels: tuple[str, ...]
    beside: Mapping[str, str]
    member: str | None

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        other = () if self.member is None else (self.member,)
        return list(dict.fromkeys((*self.features, *self.labels, *self.beside.values(), *other)))

    @property
    def text(self) -> list[str]:
        """The columns that stay text, unless they are something else as well."""
        others = {*self.features, *self.labels, self.member}
        return [name for name in self.beside.values() if name not in others]


def _roles(table: RecordTable, opened: sources.Table) -> _Roles:
    """Return the columns of an open table by their parts.

    Raises:
        InputError: A column that is missing or there twice, that plays two parts which exclude each other, or no
            feature at all.
    """
    beside = opened.beside({part: getattr(table, part) for part in _BESIDE})
    member = beside.pop("member", None)
    labels = tuple(opened.named(name, what="labels") for name in table.label or ())
    alone = isinstance(table.features, str)
    others = {*labels, *beside.values(), member, *opened.asides}
    names = table.features or [name for name in opened.names if name not in others]
    listed = [names] if isinstance(names, str) else names
    features = tuple(opened.named(name, what="features") for name in listed)
    if not features:
        raise InputError(
            f"{opened.place} must have a column of features beside the others, got"
            f" {', '.join(map(repr, opened.names[:_LISTED])) or 'no columns'}; name the features."
        )
    twice = [("label", name) for name in labels if name == member]
    twice += [("features", name) for name in features if name in {*labels, member}]
    for argument, name in twice[:1]:
        part = "membership" if name == member else "labels"
        raise InputError(
            f"{argument} must not name {name!r}, the column of {part} of {opened.place}; leave it out."
        )
    return _Roles(features, alone, labels, beside, member)


# --- A table of records as a source: its features, labels and the rest, a stretch at a time ---


_LISTED = 20  # names of columns in an error


@dataclass(frozen=True, eq=False)
class TableSource:
    """Records of an open table.

    Attributes:
        reader: The columns.
        roles: Roles of the columns.
        task: Task of the labels; None if there is nothing to predict.
        member: Whether all records are members, or none of them is; none where a column says so.
        name: The table in error sentences.
        rows: How its rows are counted, in error sentences.
        origin: Its file, folder or address, whose damage may show only while it is read; none in memory.
    """

    reader: sources.Reader
    roles: _Roles
    task: Task | None
    member: bool | None
    name: str
    rows: validate.Rows
    origin: Path | str | None = None

    def __len__(self) -> int:
        return len(self.reader)

    @cached_property
    def kinds(self) -> dict[str, sources.Kind]:
        """Types of the features, in their order."""
        return {name: self.reader.kinds[name] for name in self.roles.features}

    def read(self, start: int, stop: int) -> Batch:
        """Return the records from ``start`` to before ``stop``."""
        with sources.readable(self.origin):
            stop = max(start, min(stop, len(self)))
            stretch = self.reader.read(start, stop)
            features = self._features(stretch)
            none, rows = np.zeros(stop - start), self.rows.after(start)
            target = self._target(stretch, rows) if self.roles.labels else none
            labels = self.task.labels(self.name, target) if self.task and self.roles.labels else none
            columns = {
                part: sources.plain_labels(
                    stretch.column(name), place=f"{part} column {name!r} of {self.name}", rows=rows
                )
                for part, name in self.roles.beside.items()
            }
            if isinstance(self.task, Classifier | None) and self.roles.labels:
                columns["label"] = labels if self.task else target
            return Batch(
                records=Records(self.name, features, labels, first_row=start),
                member=self._member(stretch, stop - start, rows),
                columns=columns,
            )

    def _features(self, stretch: sources.Stretch) -> Any:
        names = self.roles.features
        one_array = len(names) == 1 and self.reader.kinds[names[0]] is sources.Kind.VECTOR
        return stretch.column(names[0]) if self.roles.alone or one_array else stretch.table(names)

    def _target(self, stretch: sources.Stretch, rows: validate.Rows) -> sources.Column:
        """Return the columns of labels, none of which may be missing or infinite."""
        import pandas as pd

        columns = [stretch.column(name) for name in self.roles.labels]
        for name, column in zip(self.roles.labels, columns, strict=True):
            flat = column.reshape(column.shape[0], -1)
            bad = np.asarray(pd.isna(flat)).any(axis=1)
            if column.dtype.kind == "f":
                bad |= np.isinf(flat).any(axis=1)
            if bad.any():
                raise InputError(
                    f"label column {name!r} of {self.name} must have a label in each row, got {int(bad.sum())} that are"
                    f" missing or infinite (first at {rows.at(int(np.argmax(bad)))}); leave those"
                    " rows out."
                )
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def _member(self, stretch: sources.Stretch, n: int, rows: validate.Rows) -> Booleans:
        name = self.roles.member
        if name is None:
            return np.full(n, bool(self.member))
        column, place = sources.without_gaps(stretch.column(name)), f"column {name!r} of {self.name}"
        return sources.marks(column, place=place, rows=rows, group=self.member)


# --- Tables of records become sources: one for each group, or one that holds both ---


def open_groups(
    *,
    members: RecordTable | None = None,
    nonmembers: RecordTable | None = None,
    records: RecordTable | None = None,
    task: Task | None,
) -> tuple[TableSource, ...]:
    """Return the sources of both groups.

    Args:
        members: The records that the model was trained on, with ``nonmembers``.
        nonmembers: Records of the same population that it never saw, with the same features.
        records: Both in one table instead, which has a column of membership.
        task: Task of the labels; None if there is nothing to predict, as for texts.

    Raises:
        InputError: Tables that cannot be read, are the same, lack a column, or differ in their features.
    """
    if records is not None and members is None and nonmembers is None:
        return (open_source(records, task=task, member=None, name="records"),)
    if records is not None or members is None or nonmembers is None:
        raise InputError(
            "give either members and nonmembers, or records: one table with a column of membership."
        )
    first = open_source(members, task=task, member=True, name="member")
    second = open_source(nonmembers, task=task, member=False, name="nonmember")
    sources.refuse_same(members.data, nonmembers.data)
    return first, _matched(first, second)


def open_source(table: RecordTable, *, task: Task | None, member: bool | None, name: str) -> TableSource:
    """Return a table as a source.

    Args:
        table: Where the records are, and which column plays which part.
        task: Task of the labels; None if there is nothing to predict.
        member: Whether all records are members, or none of them is; none where a column says so.
        name: Name of records in memory in error sentences; files are named by their paths.

    Raises:
        InputError: A table that cannot be read, has no records, or lacks a column.
    """
    validate.instance("table", table, [RecordTable])
    opened = open_table(table.data, name=name, memory=table.memory)
    if member is None:
        table = replace(table, member=table.member or "member")
        hint = "Name the column of membership if it is called otherwise, or give members and non-members as two tables."
        opened.named(str(table.member), what="membership", hint=hint)
    if task is not None and table.label is None and isinstance(opened, arrays.DataSetTable):
        table = replace(table, label=opened.label)
    if task is not None and task.needs_labels and table.label is None:
        raise InputError(
            f"label must name the column of true labels of {opened.place}, got none; its columns are"
            f" {', '.join(map(repr, opened.names[:_LISTED]))}."
        )
    roles = _roles(table, opened)
    with sources.readable(opened.origin):
        reader = opened.reader(roles.names, text=roles.text)
    if len(reader) == 0:
        raise InputError(f"{opened.place} must hold records, got none; write it again.")
    source = TableSource(reader, roles, task, member, opened.place, opened.rows, opened.origin)
    vectors = [name for name, kind in source.kinds.items() if kind is sources.Kind.VECTOR]
    if isinstance(opened, arrays.ArrayTable) and table.features is None and vectors and len(source.kinds) > 1:
        raise InputError(
            f"features must be named for {opened.place}, in which {vectors[0]!r} is a table and not the only array beside"
            f" the labels; name one or more of {', '.join(map(repr, roles.features[:_LISTED]))}."
        )
    return source


def _matched(first: TableSource, second: TableSource) -> TableSource:
    """Return the second table with its features in the order of the first."""
    for here, there in ((second, first), (first, second)):
        own = set(here.roles.features)
        missing = [name for name in there.roles.features if name not in own]
        if missing:
            raise InputError(
                f"{here.name} must have the same features as {there.name}, got no"
                f" {', '.join(map(repr, missing[:_LISTED]))}; take the same columns in both, or name the features."
            )
    for name, kind in first.kinds.items():
        other = second.kinds[name]
        if kind is not other and sources.Kind.BLANK not in (kind, other):
            raise InputError(
                f"column {name!r} must hold the same in both tables, got {kind} in {first.name} and {other} in"
                f" {second.name}; write both in the same way."
            )
    return replace(second, roles=replace(second.roles, features=first.roles.features))
