"""Any data becomes an open table: whole columns, or records to score, a stretch at a time."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.records import Batch, Records
from auditor.collectors.base.tasks import Classification, Task
from auditor.collectors.tables import arrays, arrow, csv, sources
from auditor.collectors.tables.arrays import ArrayRecords
from auditor.collectors.tables.sources import Column, numbers
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.records.features import Features, fingerprints

# --- Data of any supported kind becomes an open table: of columns that are read as a whole, or of records read onwards ---


# --- Records, of which stretches are read ---


def _open_records(data: Any, *, name: str) -> sources.OpenTable:
    """Return the table, of which only the names of the columns are read.

    Args:
        data: What `RecordTable.data` may be.
        name: What error sentences call data in memory; files are called by their paths.

    Raises:
        InputError: Data of no supported kind, or a file that cannot be read.
    """
    path = sources.path_of(data)
    if path is not None:
        with sources.readable(path):
            return _file(path)
    kind = type(data).__module__.split(".")[0]
    if kind == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        return arrays.FrameRecords(data, place=name)
    if kind == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        return _arrow(data.to_arrow(), name)
    if kind == "pyarrow" and hasattr(data, "schema"):
        return _arrow(data, name)
    if isinstance(data, Mapping):
        return arrays.DictionaryRecords(data, place=name)
    raise InputError(
        "data must be the path of a table, a pandas or polars DataFrame, a pyarrow Table or Dataset, or a dictionary of"
        f" arrays, got {type(data).__name__}; convert it to one of these."
    )


def _arrow(data: Any, name: str) -> sources.OpenTable:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    return arrow.ArrowRecords(
        arrow.ArrowTable(data) if isinstance(data, pa.Table) else arrow.ArrowDataset(data), place=name
    )


def _file(path: Path) -> sources.OpenTable:
    kind, place = sources.checked_kind(path), f"file {str(path)!r}"
    if kind == ".csv":
        return csv.CsvRecords(path, place=place)
    if kind == ".npz":
        return arrays.NpzRecords(path, place=place)
    if kind not in {sources.FOLDER, ".parquet"}:
        return arrow.ArrowRecords(arrow.IpcFile(path), place=place)
    files = tuple(sources.parts(path)) if kind == sources.FOLDER else (path,)
    return arrow.ArrowRecords(
        arrow.ParquetFiles(files),
        place=f"folder {str(path)!r}" if kind == sources.FOLDER else place,
        files=[f"file {str(file)!r}" for file in files],
    )


# --- Columns, read as a whole ---


class _RecordColumns(sources.ColumnTable):
    """A folder, an Arrow file, or a table in memory."""

    def __init__(self, records: sources.OpenTable, path: Path | None) -> None:
        self._records = records
        self.rows, self.place, self.names = records.rows, records.place, records.names
        self.of = records.place if path is None else repr(str(path))
        self.title = "a table in memory" if path is None else path.name

    def read(self, numeric: Sequence[str], *, text: Sequence[str]) -> dict[str, Column]:
        """Return the columns, read as records are."""
        names = list(dict.fromkeys((*numeric, *text)))
        reader = self._records.reader(names, text=text)
        for name in names:
            if reader.kinds[name] is sources.Kind.VECTOR:
                raise InputError(
                    f"column {name!r} of {self.of} must hold numbers or text, got arrays; name the right column."
                )
        stretch = reader.read(0, len(reader))
        return {name: sources.without_gaps(stretch.column(name)) for name in names}


_READERS: dict[str, type[csv.CsvColumns | arrow.ParquetColumns | arrays.NpzColumns]] = {
    ".csv": csv.CsvColumns,
    ".parquet": arrow.ParquetColumns,
    ".npz": arrays.NpzColumns,
}


def open_columns(data: Any) -> sources.ColumnTable:
    """Return the reader for a path or for a table in memory, after the checks that need no parsing.

    Raises:
        InputError: A file that is missing, empty, of an unknown kind, or may be pickled; or no table.
    """
    path = sources.path_of(data)
    if path is None and not _is_table(data):
        path = sources.file_path(data)  # which says what it is instead
    kind = "" if path is None else sources.checked_kind(path)
    if path is not None and kind in _READERS:
        return _READERS[kind](path)
    return _RecordColumns(_open_records(data, name="the table"), path)


def _is_table(data: Any) -> bool:
    return hasattr(data, "columns") or hasattr(data, "schema") or isinstance(data, dict)


# --- Tables of records to score: which of their columns play which part, and the records a stretch at a time ---


@dataclass(frozen=True, eq=False)
class RecordTable:
    r"""Records to score: a file, a folder, a frame or arrays, and the names of the columns.

    Numbers, text and categories come to the model in the types that pandas gives them when it reads the same table;
    whatever has to be encoded is encoded by the model's own pipeline. In a CSV a column of which every cell is a number
    or missing holds numbers, one of true and false truth values, and any other one text; missing are the cells that
    pandas takes for missing (a blank, NA, NaN, null and the like). Ids, groups and persons of a CSV stay text.

    Attributes:
        data: The path of a ``.csv``, ``.parquet``, ``.npz``, ``.arrow`` or ``.feather`` file or of a folder of
            ``.parquet`` parts (in the order of their names); a pandas or polars DataFrame; a pyarrow Table or Dataset;
            or a dictionary of arrays by name.
        label: The column of true labels, or several for several labels or outputs; none where there is nothing to
            predict, as for texts.
        features: The columns that the model takes, in its order; default all that play no other part, in the order of
            the table. One name (not in a list) gives the column itself: texts, or one array of all the features.
            Columns without a name, and those that pandas wrote for its index, are features only if named.
        id: Record ids; read if the table has the column, an error if another name than the default is missing. None
            reads none, and a column of that name is then a feature like any other.
        group: Slices to report by, likewise.
        person: Data subject of each record, likewise.
        member: Membership, 1 for a member and 0 for a non-member, likewise; needed where one table holds both groups.

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

    def __post_init__(self) -> None:
        if self.data is None:
            raise InputError(
                "data must be a path, a DataFrame, an Arrow table or a dictionary of arrays, got None."
            )
        for name in ("id", "group", "person", "member"):
            value = getattr(self, name)
            if value is not None:
                _name(name, value)
        label = (self.label,) if isinstance(self.label, str) else self.label
        object.__setattr__(self, "label", _names("label", label))
        if not isinstance(self.features, str):
            object.__setattr__(self, "features", _names("features", self.features))
        else:
            _name("features", self.features)


def _names(argument: str, values: Any) -> tuple[str, ...] | None:
    """Return several names, all different."""
    if values is None:
        return None
    if isinstance(values, bytes | dict | set) or not hasattr(values, "__len__") or len(values) == 0:
        raise InputError(f"{argument} must be the name of a column or a list of names, got {values!r}.")
    names = tuple(_name(argument, value) for value in values)
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise InputError(f"{argument} must name each column once, got {twice[0]!r} more than once.")
    return names


def _name(argument: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{argument} must be the name of a column, got {value!r}.")
    if not value.strip():
        raise InputError(f"{argument} must be the name of a column, got an empty one; take it out.")
    return value


# --- Which column of a table plays which part ---


_MEANING = {"id": "record ids", "group": "slices", "person": "data subjects", "member": "membership"}


@dataclass(frozen=True)
class _Roles:
    """The columns that are read, by the part they play.

    Attributes:
        features: In the order in which the model takes them.
        alone: Whether the one feature is given as a column and not as a table of one column.
        labels: Of the true labels.
        beside: The columns of ids, groups and persons, by what they are.
        member: Of membership.
    """

    features: tuple[str, ...]
    alone: bool = False
    labels: tuple[str, ...] = ()
    beside: tuple[tuple[str, str], ...] = ()
    member: str | None = None

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        other = () if self.member is None else (self.member,)
        return list(dict.fromkeys((*self.features, *self.labels, *(name for _, name in self.beside), *other)))

    @property
    def text(self) -> list[str]:
        """The columns that stay text, unless they are something else as well."""
        others = {*self.features, *self.labels, self.member}
        return [name for _, name in self.beside if name not in others]


def _roles(table: RecordTable, opened: sources.OpenTable) -> _Roles:
    """Return the columns of an open table by their parts.

    Raises:
        InputError: A column that is missing or there twice, that plays two parts which exclude each other, or no
            feature at all.
    """
    found = {}
    for part, what in _MEANING.items():
        name = getattr(table, part)
        if name is not None and (name != part or name in opened.names):
            found[part] = _column(name, opened, what=what)
    member = found.pop("member", None)
    labels = tuple(_column(name, opened, what="labels") for name in table.label or ())
    if member in labels:
        raise InputError(f"label must not name {member!r}, the column of membership of {opened.place}.")
    features = _features(table, opened, others={*labels, *found.values(), member})
    _refuse_answers(features, opened, labels=labels, member=member)
    alone = isinstance(table.features, str)
    return _Roles(features, alone=alone, labels=labels, beside=tuple(found.items()), member=member)


def _features(table: RecordTable, opened: sources.OpenTable, *, others: set[str | None]) -> tuple[str, ...]:
    given = (table.features,) if isinstance(table.features, str) else table.features
    if given is not None:
        return tuple(_column(name, opened, what="features") for name in given)
    rest = [name for name in opened.names if name not in others and name not in opened.asides]
    if not rest:
        shown = ", ".join(map(repr, opened.names[:20])) or "no columns"
        raise InputError(
            f"{opened.place} must have a column of features beside the others, got {shown}; name the features."
        )
    return tuple(_column(name, opened, what="features") for name in rest)


def _refuse_answers(
    features: tuple[str, ...], opened: sources.OpenTable, *, labels: tuple[str, ...], member: str | None
) -> None:
    for name in features:
        if name in labels or name == member:
            part = "membership" if name == member else "labels"
            raise InputError(
                f"features must not name {name!r}, the column of {part} of {opened.place}; leave it out."
            )


def _column(name: str, opened: sources.OpenTable, *, what: str) -> str:
    return validate.column_name(name, what=what, file=opened.place, options=opened.names)


# --- A table of records as a source: its features, labels and the rest, a stretch at a time ---


_ONE_TABLE = "give one table that holds both groups, with the name of its column of membership"


@dataclass(frozen=True, eq=False)
class TableSource:
    """Records of an open table.

    Attributes:
        reader: The columns.
        roles: Which column plays which part.
        task: What the labels are for; none where there is nothing to predict.
        member: Whether all records are members, or none of them is; none where a column says so.
        name: The table in error sentences.
        rows: How its rows are counted, in error sentences.
        path: Its file or folder, whose damage may show only while it is read; none in memory.
    """

    reader: sources.Reader
    roles: _Roles
    task: Task | None
    member: bool | None
    name: str
    rows: str
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.reader)

    @property
    def kinds(self) -> dict[str, sources.Kind]:
        """What the cells of each feature are, in the order of the features."""
        return {name: self.reader.kinds[name] for name in self.roles.features}

    def read(self, start: int, stop: int) -> Batch:
        """Return the records from ``start`` to before ``stop``."""
        with nullcontext() if self.path is None else sources.readable(self.path):
            return self._batch(start, min(stop, len(self)))

    def _batch(self, start: int, stop: int) -> Batch:
        stretch = self.reader.read(start, stop)
        n = max(0, stop - start)
        features = self._features(stretch)
        labels = self._labels(stretch, n, start)
        columns = {field: sources.without_gaps(stretch.column(name)) for field, name in self.roles.beside}
        if isinstance(self.task, Classification | None) and self.roles.labels:
            columns["label"] = labels if self.task else self._target(stretch, start)
        return Batch(
            records=Records(self.name, features, labels, first_row=start),
            member=self._member(stretch, n, start),
            columns=columns,
            fingerprint=_fingerprint(features),
        )

    def _features(self, stretch: sources.Stretch) -> Any:
        names = self.roles.features
        one_array = len(names) == 1 and self.reader.kinds[names[0]] is sources.Kind.VECTOR
        if self.roles.alone or one_array:
            return stretch.column(names[0])
        return stretch.table(names)

    def _labels(self, stretch: sources.Stretch, n: int, start: int) -> npt.NDArray[Any]:
        if self.task is None:
            return np.zeros(n)
        return self.task.labels(self.name, self._target(stretch, start))

    def _target(self, stretch: sources.Stretch, start: int) -> Column:
        columns = [self._label(name, stretch.column(name), start) for name in self.roles.labels]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def _label(self, name: str, column: Column, start: int) -> Column:
        """Return one column of labels, none of which may be missing or infinite."""
        import pandas as pd

        flat = column.reshape(column.shape[0], -1)
        bad = np.asarray(pd.isna(flat)).any(axis=1)
        if column.dtype.kind == "f":
            bad |= np.isinf(flat).any(axis=1)
        if bad.any():
            raise InputError(
                f"label column {name!r} of {self.name} must have a label in each row, got {int(bad.sum())} that are missing"
                f" or infinite (first at row {start + int(np.argmax(bad))}, {self.rows}); leave those rows out."
            )
        return column

    def _member(self, stretch: sources.Stretch, n: int, start: int) -> npt.NDArray[np.bool_]:
        name = self.roles.member
        if name is None:
            return np.full(n, bool(self.member))
        place = f"column {name!r} of {self.name}"
        fix = validate.CODING if self.member is None else _ONE_TABLE
        values = numbers(
            sources.without_gaps(stretch.column(name)),
            place=place,
            rows=self.rows,
            truth=True,
            fix=fix,
            first_row=start,
        )
        wanted = (values == 0) | (values == 1) if self.member is None else values == self.member
        if not wanted.all():
            row = int(np.argmin(wanted))
            must = "hold only 0 (non-member) and 1 (member)"
            if self.member is not None:
                must = f"be {int(self.member)} in every row of a table of {'members' if self.member else 'non-members'}"
            raise InputError(
                f"{place} must {must}, got {values[row]:g} (first at row {start + row}, {self.rows}; {int((~wanted).sum())}"
                f" such values from there to row {start + n - 1}); {fix}."
            )
        return np.asarray(values == 1)


def _fingerprint(features: Any) -> npt.NDArray[np.uint64] | None:
    """Hashes of the features, as `auditor.collect` has them; none where they are no plain values."""
    empty: Any = features.iloc[:0] if hasattr(features, "iloc") else features[:0]
    try:
        return fingerprints(Features(member=features, nonmember=empty)).member
    except InputError:
        return None


_SHOWN = 5


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
        task: What the labels are for; none where there is nothing to predict, as for texts.

    Raises:
        InputError: Tables that cannot be read, are the same, lack a column, or differ in their features.
    """
    if records is not None and members is None and nonmembers is None:
        return (open_source(records, task=task, member=None, name="records"),)
    if records is not None or members is None or nonmembers is None:
        raise InputError(
            "give either members and nonmembers, or records: one table with a column of membership."
        )
    _refuse_same(members, nonmembers)
    first = open_source(members, task=task, member=True, name="member")
    second = open_source(nonmembers, task=task, member=False, name="nonmember")
    return first, _matched(first, second)


def open_source(table: RecordTable, *, task: Task | None, member: bool | None, name: str) -> TableSource:
    """Return a table as a source.

    Args:
        table: Where the records are, and which column plays which part.
        task: What the labels are for; none where there is nothing to predict.
        member: Whether all records are members, or none of them is; none where a column says so.
        name: What error sentences call records in memory; files are called by their paths.

    Raises:
        InputError: A table that cannot be read, has no records, or lacks a column.
    """
    validate.instance("table", table, [RecordTable])
    found = _open_records(table.data, name=name)
    if member is None:
        hint = "Name the column of membership if it is called otherwise, or give members and non-members as two tables."
        validate.column_name(
            table.member or "member", what="membership", file=found.place, options=found.names, hint=hint
        )
        table = replace(table, member=table.member or "member")
    if task is not None and table.label is None:
        raise InputError(
            f"label must name the column of true labels of {found.place}, got none; its columns are"
            f" {', '.join(map(repr, found.names[:20]))}."
        )
    parts = _roles(table, found)
    path = sources.path_of(table.data)
    with nullcontext() if path is None else sources.readable(path):
        reader = found.reader(parts.names, text=parts.text)
    if len(reader) == 0:
        raise InputError(f"{found.place} must hold records, got none; write it again.")
    if isinstance(found, ArrayRecords) and table.features is None:
        _refuse_ambiguous(found, parts, reader.kinds)
    return TableSource(reader, parts, task, member, found.place, found.rows, path)


def _refuse_ambiguous(found: ArrayRecords, parts: _Roles, kinds: Any) -> None:
    """Refuse to guess which of several arrays are the features, where one of them is a table itself."""
    tables = [name for name in parts.features if kinds[name] is sources.Kind.VECTOR]
    if tables and len(parts.features) > 1:
        shown = ", ".join(map(repr, parts.features[:20]))
        raise InputError(
            f"features must be named for {found.place}, in which {tables[0]!r} is a table and not the only array beside"
            f" the labels; name one or more of {shown}."
        )


def _refuse_same(members: RecordTable, nonmembers: RecordTable) -> None:
    """Refuse a table that is compared with itself, which would read as no leakage."""
    for table in (members, nonmembers):
        validate.instance("members and nonmembers", table, [RecordTable])
    first, second = sources.path_of(members.data), sources.path_of(nonmembers.data)
    if first is None or second is None:
        same = members.data is nonmembers.data
        shown = "the same object"
    else:
        same, shown = (
            first == second or (first.exists() and second.exists() and first.samefile(second)),
            repr(str(first)),
        )
    if same:
        raise InputError(
            f"members and nonmembers must be different tables, got {shown} twice; give one table with a column of"
            " membership as records instead, if it holds both."
        )


def _matched(first: TableSource, second: TableSource) -> TableSource:
    """Return the second table with its features in the order of the first."""
    names, others = first.roles.features, second.roles.features
    missing = [name for name in names if name not in others]
    extra = [name for name in others if name not in names]
    for found, here, there in ((missing, second, first), (extra, first, second)):
        if found:
            shown = ", ".join(map(repr, found[:_SHOWN])) + (", ..." if len(found) > _SHOWN else "")
            raise InputError(
                f"{here.name} must have the same features as {there.name}, got no {shown}; take the same columns in both,"
                " or name the features."
            )
    for name in names:
        kinds = first.kinds[name], second.kinds[name]
        if kinds[0] is not kinds[1] and sources.Kind.BLANK not in kinds:
            raise InputError(
                f"column {name!r} must hold the same in both tables, got {kinds[0]} in {first.name} and {kinds[1]} in"
                f" {second.name}; write both in the same way."
            )
    return replace(second, roles=replace(second.roles, features=names))
