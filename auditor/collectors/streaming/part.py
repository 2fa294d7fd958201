"""The part of one unit: a Parquet file that says what it is, and that is used only if all of it is as it was written."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.batch_losses import BatchLosses
from auditor.collectors.sources.source import Batch
from auditor.collectors.streaming.collection import Unit, UnitReport
from auditor.collectors.streaming.writing import whole
from auditor.errors import InputError, OutputError

__all__ = ["OWN", "checked_part", "is_part", "part_path", "read_part", "whole_part", "write_part"]

OWN = ("loss", "member", "id", "group", "person", "label", "fingerprint", "saturated")

_KEY = b"auditor-part"
_NAME = re.compile(r"part-[0-9]{8}\.parquet")


def part_path(folder: Path, unit: Unit) -> Path:
    """Return where the part of a unit lies."""
    return folder / f"part-{unit.index:08d}.parquet"


def is_part(path: Path) -> bool:
    """Return whether a file has the name of a part."""
    return _NAME.fullmatch(path.name) is not None


def write_part(path: Path, *, unit: Unit, key: str, batch: Batch, losses: BatchLosses) -> UnitReport:
    """Write the losses of a unit with what is known of its records; infinite losses stay infinite."""
    from pyarrow import parquet

    table = _table(batch, losses)
    finite = losses.loss[np.isfinite(losses.loss)]
    report = UnitReport(
        unit=unit,
        counts=_by_group(np.ones_like(batch.member), batch.member),
        saturated=_by_group(losses.saturated, batch.member),
        eps=float(losses.eps),
        hard=bool(losses.hard),
        low=float(finite.min(initial=0.0)),
        high=float(finite.max(initial=0.0)),
    )
    facts = json.dumps({**_facts(report), "key": key, "content": _digest(table, report)})
    with whole(path, folder=path.parent) as draft:
        parquet.write_table(
            table.replace_schema_metadata({_KEY: facts}), str(draft), write_page_checksum=True
        )
    return report


def checked_part(path: Path, *, unit: Unit, key: str) -> UnitReport | None:
    """Return what a part says of its unit; none if it is not there, damaged, cut off, or another collection's."""
    if not path.is_file():
        return None
    try:
        table = read_part(path)
        facts = json.loads(table.schema.metadata[_KEY])
        report = UnitReport(
            unit=Unit(*facts["unit"]),
            counts=tuple(facts["counts"]),
            saturated=tuple(facts["saturated"]),
            eps=facts["eps"],
            hard=facts["hard"],
            low=facts["low"],
            high=facts["high"],
        )
        good = (report.unit, facts["key"], facts["content"]) == (unit, key, _digest(table, report))
    except Exception:  # noqa: BLE001 - whatever is wrong with it, its records are scored again
        return None
    return report if good and table.num_rows == len(unit) else None


def read_part(path: Path, *, columns: list[str] | None = None) -> Any:
    """Return the table of a part, or some of its columns."""
    from pyarrow import parquet

    with parquet.ParquetFile(str(path), page_checksum_verification=True) as file:
        return file.read(columns=columns)


def whole_part(path: Path, *, columns: list[str] | None = None) -> Any:
    """Return the table of a part that was whole before, or some of its columns.

    Raises:
        OutputError: It is no longer.
    """
    from pyarrow import ArrowException

    try:
        return read_part(path, columns=columns)
    except (OSError, ArrowException) as error:
        raise OutputError(
            f"part {str(path)!r} was damaged or removed since it was written; run the same again, which scores only"
            " its records."
        ) from error


def _table(batch: Batch, losses: BatchLosses) -> Any:
    import pyarrow as pa

    strange = (set(batch.columns) | set(losses.more)) & {"loss", "member", "fingerprint", "saturated"}
    twice = strange | (set(batch.columns) & set(losses.more))
    if twice:
        raise InputError(f"{batch.records.name} must have each column once, got {min(twice)!r} twice.")
    columns: dict[str, Any] = {"loss": np.asarray(losses.loss, dtype=np.float64), "member": batch.member}
    columns |= {name: batch.columns[name] for name in OWN if name in batch.columns}
    if batch.fingerprint is not None:
        columns["fingerprint"] = batch.fingerprint
    columns |= {"saturated": losses.saturated, **losses.more}
    return pa.table({name: _arrow(np.asarray(values)) for name, values in columns.items()})


def _arrow(values: npt.NDArray[Any]) -> Any:
    """Return a column in the nearest type of Arrow, what is missing as null; objects that share none become text."""
    import pyarrow as pa

    try:
        if values.dtype.kind in "fiubM":
            return pa.array(values)
        return pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([None if _missing(value) else str(value) for value in values.tolist()], pa.string())


def _missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in {"NAType", "NaTType"} or (value != value) is True  # noqa: PLR0124
    )


def _by_group(marked: npt.NDArray[np.bool_], member: npt.NDArray[np.bool_]) -> tuple[int, int]:
    return int((marked & member).sum()), int((marked & ~member).sum())


def _facts(report: UnitReport) -> dict[str, Any]:
    unit = report.unit
    return {
        "unit": [unit.index, unit.source, unit.start, unit.stop],
        "counts": list(report.counts),
        "saturated": list(report.saturated),
        "eps": report.eps,
        "hard": report.hard,
        "low": report.low,
        "high": report.high,
    }


def _digest(table: Any, report: UnitReport) -> str:
    """A hash of the values of a table, however they are laid out, and of what is said of them."""
    digest = hashlib.sha256(json.dumps(_facts(report)).encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"{name}:".encode("utf-8", "surrogatepass"))
        digest.update(_bytes(column))
    return digest.hexdigest()


def _bytes(column: Any) -> bytes:
    from pyarrow import types

    kind = column.type
    if column.null_count == 0 and (
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    ):
        return f"{kind}:".encode() + bytes(column.to_numpy().tobytes())
    # Without the type, of which a file may have a finer one (milliseconds for seconds).
    return repr(column.to_pylist()).encode("utf-8", "surrogatepass")
