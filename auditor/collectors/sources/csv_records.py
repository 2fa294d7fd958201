"""Records in a CSV file, read onwards in constant memory; the types are settled in one look at the whole file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.cells import BELOW_HEADER, readable
from auditor.collectors.csv_table import CsvTable
from auditor.collectors.sources.arrow_plan import Plan
from auditor.collectors.sources.arrow_reader import ArrowReader
from auditor.collectors.sources.reader import Kind
from auditor.errors import InputError

__all__ = ["CsvRecords"]

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
        self._table = CsvTable(path)
        self.names = self._table.names
        self.asides = frozenset(name for name in self.names if not name)

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

    def plan(self) -> Plan:
        import pyarrow as pa

        if self._blank:
            return Plan(Kind.BLANK, pa.float64(), gaps=True)
        kind = Kind.TEXT if self._left[0] == pa.string() else Kind.NUMBER
        return Plan(kind, self._left[0], gaps=self._gaps)


class _CsvReader(ArrowReader):
    _blank = np.nan  # as pandas has it where it reads a CSV

    def __init__(
        self, table: CsvTable, *, place: str, rows: int, plans: Mapping[str, Plan], text: Sequence[str]
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


def _text() -> Plan:
    import pyarrow as pa

    return Plan(Kind.TEXT, pa.string())


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
