"""Tables of records as the content of files that other programs open."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from auditor._labels import text
from auditor.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["encoded"]

_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def encoded(frame: "pd.DataFrame", path: Path, *, note: str) -> str | bytes:
    """Return a table as the content of a ``.csv`` or ``.parquet`` file.

    Labels are written as text. In CSV those that a spreadsheet would run as a formula get an apostrophe in front, unless
    they are numbers; Parquet keeps them as they are and holds the note in its metadata.

    Raises:
        InputError: A path with another ending.
    """
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".parquet"}:
        raise InputError(f"path must end in .csv or .parquet, got {str(path)!r}; name the file so.")
    if suffix == ".csv":
        return _as_text(frame, harmless=True).to_csv(index=False, lineterminator="\n")
    return _parquet(_as_text(frame, harmless=False), note)


def _as_text(frame: "pd.DataFrame", *, harmless: bool) -> "pd.DataFrame":
    """Labels of whatever type as text, and what is missing as missing."""
    result = frame.copy()
    for name in frame.columns:
        column = np.asarray(frame[name])
        if column.dtype.kind not in "iufb":
            words, missing = text(column)
            labels = [_harmless(word) if harmless else word for word in words.tolist()]
            result[name] = np.where(missing, np.array(None), np.array(labels, dtype=object))
    return result


def _harmless(label: str) -> str:
    if not label.startswith(_STARTS_A_FORMULA):
        return label
    try:
        float(label)
    except ValueError:
        return f"'{label}"
    return label


def _parquet(frame: "pd.DataFrame", note: str) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"note": note.encode()})
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()
