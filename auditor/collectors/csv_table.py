"""Columns of a CSV file, read by Arrow once its header is understood."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.collectors.cells import BELOW_HEADER, Column, plain, readable
from auditor.collectors.paths import FileTable
from auditor.errors import InputError

__all__ = ["CsvTable"]

_BLOCK = 2**22  # bytes of text that are read at a time, where it is not all


class CsvTable(FileTable):
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
            return {name: plain(column) for name, column in columns.items()}

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
