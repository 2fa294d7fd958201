"""Data of any supported kind becomes an open table."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auditor.collectors.cells import readable
from auditor.collectors.paths import FOLDER, checked_kind, file_path, parts
from auditor.collectors.sources.reader import OpenTable
from auditor.errors import InputError

__all__ = ["opened", "path_of"]


def path_of(data: Any) -> Path | None:
    """Return where data lie, or none if they are in memory."""
    return file_path(data) if isinstance(data, str | os.PathLike) else None


def opened(data: Any, *, name: str) -> OpenTable:
    """Return the table, of which only the names of the columns are read.

    Args:
        data: What `RecordTable.data` may be.
        name: What error sentences call data in memory; files are called by their paths.

    Raises:
        InputError: Data of no supported kind, or a file that cannot be read.
    """
    path = path_of(data)
    if path is not None:
        with readable(path):
            return _file(path)
    kind = _library(data)
    if kind == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        from auditor.collectors.sources.frame_records import FrameRecords

        return FrameRecords(data, place=name)
    if kind == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        return _arrow(data.to_arrow(), name)
    if kind == "pyarrow" and hasattr(data, "schema"):
        return _arrow(data, name)
    if isinstance(data, Mapping):
        from auditor.collectors.sources.array_records import DictionaryRecords

        return DictionaryRecords(data, place=name)
    raise InputError(
        "data must be the path of a table, a pandas or polars DataFrame, a pyarrow Table or Dataset, or a dictionary of"
        f" arrays, got {type(data).__name__}; convert it to one of these."
    )


def _library(data: Any) -> str:
    return type(data).__module__.split(".")[0]


def _arrow(data: Any, name: str) -> OpenTable:
    import pyarrow as pa

    from auditor.collectors.sources.arrow_table import ArrowRecords, Dataset, Table

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    return ArrowRecords(Table(data) if isinstance(data, pa.Table) else Dataset(data), place=name)


def _file(path: Path) -> OpenTable:
    kind, place = checked_kind(path), f"file {str(path)!r}"
    if kind == ".csv":
        from auditor.collectors.sources.csv_records import CsvRecords

        return CsvRecords(path, place=place)
    if kind == ".npz":
        from auditor.collectors.sources.array_records import NpzRecords

        return NpzRecords(path, place=place)
    if kind in {FOLDER, ".parquet"}:
        from auditor.collectors.sources.parquet_table import ParquetRecords

        files = parts(path) if kind == FOLDER else [path]
        return ParquetRecords(files, place=f"folder {str(path)!r}" if kind == FOLDER else place)
    from auditor.collectors.sources.arrow_table import ArrowRecords, IpcFile

    return ArrowRecords(IpcFile(path), place=place)
