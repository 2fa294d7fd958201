"""CSV files: whole columns, and records that are read onwards in constant memory."""

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow

from auditor.collectors.tables.arrow import BatchReader, BatchTable, ColumnPlan, plain_array
from auditor.collectors.tables.sources import MISSING, Column, Kind, OnceOpened, kind_of, readable
from auditor.core import InputError, validate, without_credentials

_DECLARED = re.compile(r'"?sep=([^\s"])"?\r?\n')  # mark that spreadsheets write in front of the names
_BLOCK = 2**22  # bytes of text that are read at a time, where it is not all
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # in the name of a folder
_PER_COLUMN = 2**13  # of a wide table, for each block costs a call for each column


class CsvTable(BatchTable):
    """UTF-8 text, separated by commas or (``.tsv``) tabulators, with one line of column names, which may be surrounded by spaces.

    A first line such as ``sep=;`` names another separator.

    The types of records are settled in one look at the whole file.
    """

    rows = validate.WITH_HEADER
    blank = np.nan  # as pandas has it where it reads a CSV
    path: Path

    def __init__(self, path: Path, *, place: str, file: OnceOpened | None = None) -> None:
        """Read the names."""
        self._separator = "\t" if kind_of(path).startswith(".tsv") else ","
        self._file, self.place, self._packed = file or OnceOpened(path), place, path.suffix.lower() == ".gz"
        with self._text() as stream:
            # A line at a time, and none longer than any row may be.
            text = iter(lambda: self._short(stream.readline(_BLOCK + 1)), "")
            first = next(text, "")
            declared = _DECLARED.fullmatch(first)
            if declared:
                self._separator, self.rows = declared[1], validate.FROM_ZERO
                first = "\n"  # a line without fields
            lines = csv.reader(itertools.chain([first], text), delimiter=self._separator)
            header = next((fields for fields in lines if fields), [])
            self._header_lines = lines.line_num
        super().__init__([name.strip().strip('"').strip() for name in header], place=place, path=path)
        self.asides = frozenset(name for name in self.names if not name)
        # A quote that is never closed would silently swallow every row below it.
        stream = self._bytes()
        marks = sum(content.count(b'"') for content in iter(lambda: stream.read(_BLOCK), b""))
        if marks % 2:
            raise InputError(
                f"{self.place} must close every quotation mark, got {marks} of them; write the file again, or double the marks"
                " inside quoted text."
            )

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> BatchReader:
        """Return a reader of some columns, after one look at all of their cells."""
        return _reader(self, [self.batches], names, text)

    def columns(self, names: Sequence[str], *, text: Sequence[str] = ()) -> dict[str, Column]:
        """Return all rows of some columns, in one pass where all cells outside ``text`` are numbers."""
        types = {name: pa.string() if name in text else pa.float64() for name in names}
        parts, held = list[Any](), 0
        with readable(self.path), suppress(pa.ArrowInvalid):  # a cell that is no number
            for batch in self._batches(types):
                parts.append(batch)
                held += batch.nbytes
                self.hold(held)
            whole = pa.Table.from_batches(parts, pa.schema(types.items()))
            return {name: plain_array(whole[name]) for name in types}
        return super().columns(names, text=text)

    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:  # noqa: ARG002 - there is only one block
        """Yield all rows of some columns as record batches of text, a few megabytes at a time."""
        return self._batches(dict.fromkeys(names, pa.string()))

    def _batches(self, types: Mapping[str, Any]) -> Iterator[Any]:
        ragged, names = list[Any](), list(types)
        try:
            with arrow.open_csv(self._bytes(), **self._options(types, ragged)) as reader:
                for batch in reader:
                    yield pa.RecordBatch.from_arrays(batch.columns, names=names)
        except pa.ArrowInvalid as error:
            if "skip initial" in str(error):
                return  # the header is all there is
            if "straddl" in str(error):
                raise self._too_long() from None
            if ragged:
                raise InputError(
                    f"{self.place} must have {len(self.names)} fields in each row, got {ragged[0].actual_columns} in"
                    f" {self.rows.at(ragged[0].number - self._header_lines - 1)}; quote text that holds the separator,"
                    " or write the file again."
                ) from None
            raise

    def _options(self, types: Mapping[str, Any], ragged: list[Any]) -> dict[str, Any]:
        # Columns are named by position, so that repeated or padded names elsewhere in the header do no harm.
        keys = [str(self.names.index(name)) for name in types]
        return {
            "read_options": arrow.ReadOptions(
                column_names=[str(position) for position in range(len(self.names))],
                skip_rows=self._header_lines,
                block_size=max(_BLOCK, _PER_COLUMN * len(self.names)),
                use_threads=False,  # which know no numbers of rows
            ),
            # A blank line is a missing loss where there is only one column, and nothing elsewhere.
            "parse_options": arrow.ParseOptions(
                delimiter=self._separator,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,
                invalid_row_handler=lambda row: ragged.append(row) or "error",  # type: ignore[func-returns-value]
            ),
            "convert_options": arrow.ConvertOptions(
                include_columns=keys,
                column_types=dict(zip(keys, types.values(), strict=True)),
                strings_can_be_null=False,
            ),
        }

    def close(self) -> None:
        """Close the file, which is opened again when it is read."""
        self._file = copy(self._file)

    def _bytes(self) -> Any:
        """Return the file from its beginning, as it was before it was compressed."""
        stream = self._file.stream()
        return pa.CompressedInputStream(stream, "gzip") if self._packed else stream

    def _text(self) -> IO[str]:
        return io.TextIOWrapper(self._bytes(), encoding="utf-8-sig", newline="")

    def _short(self, line: str) -> str:
        if len(line) > _BLOCK:
            raise self._too_long()
        return line

    def _too_long(self) -> InputError:
        return InputError(
            f"{self.place} must have no row longer than {_BLOCK >> 20} MB; save it as .parquet."
        )


def _reader(
    table: BatchTable, blocks: Iterable[Callable[..., Any]], names: Sequence[str], text: Sequence[str]
) -> BatchReader:
    """Return a reader of some columns of a table, after one look at all of their cells in its blocks."""
    plans: dict[str, ColumnPlan] = {
        name: ColumnPlan(pa.string()) if name in text else _Cells() for name in names
    }
    sizes = list[int]()
    for block in blocks:
        sizes.append(0)
        for batch in block(names):
            for name, plan in plans.items():
                plan.look(batch[name])
            sizes[-1] += batch.num_rows
    return BatchReader(table, plans, sizes)


class CsvFolder(BatchTable):
    """CSV files of a folder, one after another, which have the columns of the first in any order; each is a block.

    The folders ``column=value`` between that folder and a file are columns too, of the file's rows.
    """

    blank = np.nan

    def __init__(
        self, files: Iterable[OnceOpened], *, folder: str, place: str, path: Path | None = None
    ) -> None:
        """Read the names."""
        self._files = list[tuple[CsvTable, dict[str, str]]]()
        for file in files:
            own = Path(without_credentials(str(file.path)))
            steps = [unquote(step) for step in Path(str(own).removeprefix(folder)).parts[:-1] if "=" in step]
            with readable(own):
                opened = CsvTable(own, place=f"file {str(own)!r}", file=file)
            opened.close()
            self._files.append((opened, dict(step.replace(_NO_VALUE, "").split("=", 1) for step in steps)))
        named = [[*file.names, *folders] for file, folders in self._files]
        super().__init__(named[0], place=place, path=path)
        self.asides = self._files[0][0].asides
        self.later = frozenset(itertools.chain.from_iterable(named)) - {*self.names}

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> BatchReader:
        """Return a reader of some columns, which every file must have."""
        hint = f"Every part must have the columns of {self._files[0][0].place}."
        for file, folders in self._files:
            for name in names:
                options = [*file.names, *folders]
                validate.column_name(name, what="records", file=file.place, options=options, hint=hint)
        return _reader(self, [partial(self._block, *file) for file in self._files], names, text)

    def batches(self, names: Sequence[str], first: int = 0) -> Iterator[Any]:
        """Yield the rows of some columns, from those of a file on."""
        for file in self._files[first:]:
            yield from self._block(*file, names)

    def _block(self, file: CsvTable, folders: Mapping[str, str], names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of a file."""
        own = [name for name in names if name not in folders] or file.names[:1]
        with readable(file.path):
            for batch in file.batches(own):
                columns = dict(zip(own, batch.columns, strict=True))
                columns |= {name: pa.repeat(value, batch.num_rows) for name, value in folders.items()}
                yield pa.RecordBatch.from_pydict({name: columns[name] for name in names})
        file.close()


# --- Cells of text as the values that they spell ---


_TRUE, _FALSE = ("True", "TRUE", "true"), ("False", "FALSE", "false")


class _Cells(ColumnPlan):
    """Types that still fit the cells of a column that were read; the first one holds them all."""

    def __init__(self) -> None:
        super().__init__(pa.float64())  # where all are missing
        self._left = [pa.int64(), pa.float64(), pa.bool_(), pa.string()]
        self._blank = True

    @property
    def kind(self) -> Kind:
        """Type of the cells."""
        return Kind.BLANK if self._blank else super().kind

    def look(self, column: Any) -> None:
        """Look at some cells."""
        floats = _floats(column) if pa.float64() in self._left else None
        cells = _with_gaps(column) if floats is None else column
        self.gaps |= cells.null_count > 0
        if cells.null_count == len(cells):
            return
        while (floats if self._left[0] == pa.float64() else _parsed(cells, self._left[0])) is None:
            if self._left.pop(0) == pa.int64() and floats is None:
                floats = _parsed(cells, pa.float64())
        if self._blank and pa.bool_() in self._left[1:]:
            self._left.remove(pa.bool_())  # numbers and truth values in one column are text
        self._blank, self.type = False, self._left[0]

    def typed(self, column: Any, place: str) -> Any:
        """Return cells in the type that was settled."""
        cells = _parsed(_with_gaps(column) if self.gaps else column, self.type)
        if cells is None:
            raise InputError(f"{place} changed while it was read; collect it again.")
        return cells


def _floats(column: Any) -> Any:
    """Return text as floats; None if any cell is missing or no number."""
    import pyarrow.compute as pc

    try:
        cells = column.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return None if pc.any(pc.is_nan(cells)).as_py() else cells


def _with_gaps(column: Any) -> Any:
    """Return the text with missing values as Arrow's null."""
    import pyarrow.compute as pc

    missing = pc.is_in(column, value_set=pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, pa.string()), column) if pc.any(missing).as_py() else column


def _parsed(cells: Any, kind: Any) -> Any:
    """Return text as numbers or truth values; none if any cell is something else."""
    import pyarrow.compute as pc

    if kind == pa.string():
        return cells
    if kind == pa.bool_():
        true, false = (pc.is_in(cells, value_set=pa.array(words)) for words in (_TRUE, _FALSE))
        options = pc.or_(pc.or_(true, false), pc.is_null(cells))
        values = pc.if_else(pc.is_null(cells), pa.scalar(None, pa.bool_()), true)
        return values if pc.all(options).as_py() is not False else None
    try:
        return cells.cast(kind)
    except pa.ArrowInvalid:
        bare = pc.replace_substring_regex(pc.utf8_trim_whitespace(cells), r"^\+([0-9.])", r"\1")
    try:
        return bare.cast(kind)
    except pa.ArrowInvalid:
        return None
