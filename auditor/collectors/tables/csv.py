"""CSV files: whole columns, and records that are read onwards in constant memory."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.tables.arrow import ArrowReader, ColumnPlan, column_array
from auditor.collectors.tables.sources import BELOW_HEADER, Column, ColumnTable, Kind, readable
from auditor.core.errors import InputError

# --- Columns of a CSV file, read by Arrow once its header is understood ---


_BLOCK = 2**22  # bytes of text that are read at a time, where it is not all


class CsvColumns(ColumnTable):
    """Comma-separated UTF-8 text with one line of column names, which may be surrounded by spaces."""

    rows = BELOW_HEADER

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with readable(path), path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream)
            header = next((fields for fields in reader if fields), [])
            self._header_lines = reader.line_num
        self.names = [field.strip().strip('"').strip() for field in header]

    def read(self, numeric: Sequence[str], *, text: Sequence[str]) -> dict[str, Column]:
        """Return the columns; numbers take a fast path, and a slow one to find what is not a number."""
        import pyarrow as pa

        with readable(self._path):
            self.refuse_open_quote()
            try:
                columns = self._arrow(
                    {name: pa.float64() for name in numeric} | {name: pa.string() for name in text}
                )
            except pa.ArrowInvalid:
                try:
                    columns = self._arrow({name: pa.string() for name in (*numeric, *text)})
                except pa.ArrowInvalid:
                    self._refuse_ragged()
                    raise
            return {name: column_array(column) for name, column in columns.items()}

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield all rows of some columns as record batches of text, a few megabytes at a time."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        with readable(self._path):
            options = self._options({name: pa.string() for name in names})
            options["read_options"].block_size = _BLOCK
            try:
                with arrow.open_csv(str(self._path), **options) as reader:
                    for batch in reader:
                        yield pa.RecordBatch.from_arrays(batch.columns, names=list(names))
            except pa.ArrowInvalid as error:
                if "skip initial" in str(error):
                    return  # the header is all there is
                if "straddl" in str(error):
                    raise InputError(
                        f"file {str(self._path)!r} must have no row longer than {_BLOCK >> 20} MB; save it as .parquet."
                    ) from None
                self._refuse_ragged()
                raise

    def _arrow(self, types: Mapping[str, Any]) -> dict[str, Any]:
        from pyarrow import csv as arrow

        table = arrow.read_csv(str(self._path), **self._options(types))
        return dict(zip(types, table.columns, strict=True))

    def _options(self, types: Mapping[str, Any]) -> dict[str, Any]:
        from pyarrow import csv as arrow

        # Columns are named by position, so that repeated or padded names elsewhere in the header do no harm.
        keys = [str(self.names.index(name)) for name in types]
        return {
            "read_options": arrow.ReadOptions(
                column_names=[str(position) for position in range(len(self.names))],
                skip_rows=self._header_lines,
            ),
            # A blank line is a missing loss where there is only one column, and nothing elsewhere.
            "parse_options": arrow.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
            ),
            "convert_options": arrow.ConvertOptions(
                include_columns=keys,
                column_types=dict(zip(keys, types.values(), strict=True)),
                strings_can_be_null=False,
            ),
        }

    def refuse_open_quote(self) -> None:
        """Refuse a file with an odd number of quotation marks."""
        # A quote that is never closed would silently swallow every row below it.
        with self._path.open("rb") as stream:
            count = sum(block.count(b'"') for block in iter(lambda: stream.read(2**20), b""))
        if count % 2:
            raise InputError(
                f"file {str(self._path)!r} must close every quotation mark, got {count} of them; write the file again,"
                " or double the marks inside quoted text."
            )

    def _refuse_ragged(self) -> None:
        with self._path.open(encoding="utf-8-sig", newline="") as stream:
            lines = (fields for fields in csv.reader(stream) if fields)
            next(lines)
            for row, fields in enumerate(lines):
                if len(fields) != len(self.names):
                    raise InputError(
                        f"file {str(self._path)!r} must have {len(self.names)} fields in each row, got {len(fields)} in row"
                        f" {row}, {self.rows}; quote text that holds commas, or write the file again."
                    )


# --- Records of a CSV file, read onwards; the types are settled in one look at the whole file ---


# What pandas reads as missing, and as true and false.
_MISSING = (
    *(
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
    ),
    *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_TRUE, _FALSE = ("True", "TRUE", "true"), ("False", "FALSE", "false")


class CsvRecords:
    """Comma-separated UTF-8 text with one line of column names, of which only that line is read yet."""

    rows = BELOW_HEADER

    def __init__(self, path: Path, *, place: str) -> None:
        """Read the names."""
        self.place = place
        self._path = path
        self._table = CsvColumns(path)
        self.names = self._table.names
        self.asides: frozenset[str] = frozenset(name for name in self.names if not name)

    def reader(self, names: Sequence[str], *, text: Sequence[str]) -> ArrowReader:
        """Return a reader of some columns, after one look at all of their cells."""
        with readable(self._path):
            self._table.refuse_open_quote()
        found = {name: _Cells() for name in names if name not in text}
        rows = 0
        for batch in self._table.batches(names):
            for name, cells in found.items():
                cells.look(batch.column(name))
            rows += batch.num_rows
        plans = {name: found[name].plan() if name in found else _text() for name in names}
        return _CsvReader(self._table, place=self.place, rows=rows, plans=plans, text=text)


class _Cells:
    """What the cells of a column were so far: of the types that are left, the first holds them all."""

    def __init__(self) -> None:
        import pyarrow as pa

        self._left = [pa.int64(), pa.float64(), pa.bool_(), pa.string()]
        self._gaps, self._blank = False, True

    def look(self, column: Any) -> None:
        import pyarrow as pa

        cells = _with_gaps(column)
        self._gaps |= cells.null_count > 0
        if cells.null_count == len(cells):
            return
        while _parsed(cells, self._left[0]) is None:
            self._left.pop(0)
        if self._blank:
            self._blank = False
            # Numbers and truth values in one column are text.
            self._left = [kind for kind in self._left if kind != pa.bool_() or kind == self._left[0]]

    def plan(self) -> ColumnPlan:
        import pyarrow as pa

        if self._blank:
            return ColumnPlan(Kind.BLANK, pa.float64(), gaps=True)
        kind = Kind.TEXT if self._left[0] == pa.string() else Kind.NUMBER
        return ColumnPlan(kind, self._left[0], gaps=self._gaps)


class _CsvReader(ArrowReader):
    _blank = np.nan  # as pandas has it where it reads a CSV

    def __init__(
        self,
        table: CsvColumns,
        *,
        place: str,
        rows: int,
        plans: Mapping[str, ColumnPlan],
        text: Sequence[str],
    ) -> None:
        super().__init__(place=place, rows=rows, plans=plans)
        self._table = table
        self._text = frozenset(text)

    def _begin(self, start: int) -> int:  # noqa: ARG002 - where a row begins is not known without reading on
        return 0

    def _from(self, begin: int) -> Iterator[Any]:  # noqa: ARG002 - always 0
        import pyarrow as pa

        schema = pa.schema(list(self.types.items()))
        for batch in self._table.batches(schema.names):
            columns = [self._typed(name, batch.column(name), kind) for name, kind in self.types.items()]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _typed(self, name: str, column: Any, kind: Any) -> Any:
        if name in self._text:
            return column
        found = _parsed(_with_gaps(column), kind)
        if found is None:
            raise InputError(f"column {name!r} of {self.place} changed while it was read; collect it again.")
        return found


def _text() -> ColumnPlan:
    import pyarrow as pa

    return ColumnPlan(Kind.TEXT, pa.string())


def _with_gaps(column: Any) -> Any:
    """Return the text with what is missing as null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(column, value_set=pa.array(_MISSING))
    return pc.if_else(missing, pa.scalar(None, pa.string()), column) if pc.any(missing).as_py() else column


def _parsed(cells: Any, kind: Any) -> Any:
    """Return text as numbers or truth values; none if any cell is something else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == pa.string():
        return cells
    if kind == pa.bool_():
        words = pc.drop_null(cells)
        known = pc.all(pc.is_in(words, value_set=pa.array([*_TRUE, *_FALSE]))).as_py()
        true = pc.is_in(cells, value_set=pa.array(_TRUE))
        return (
            pc.if_else(pc.is_null(cells), pa.scalar(None, pa.bool_()), true) if known is not False else None
        )
    try:
        return cells.cast(kind)
    except pa.ArrowInvalid:
        bare = pc.replace_substring_regex(pc.utf8_trim_whitespace(cells), r"^\+([0-9.])", r"\1")
    try:
        return bare.cast(kind)
    except pa.ArrowInvalid:
        return None
