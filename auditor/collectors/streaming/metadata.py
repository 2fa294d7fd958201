"""What a collected file says of itself in its Parquet metadata: read with care, since it may come from others."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from auditor._version import __version__
from auditor.collectors.streaming.manifest import Manifest, from_fields, plain_setting
from auditor.errors import InputError
from auditor.values import LossScale

__all__ = ["KEY", "CollectedMetadata", "metadata_text", "read_metadata"]

KEY = b"auditor"

_FORMAT = 1
_LARGEST = 2**22  # bytes
_STEPS = 100  # lines of a history
_LINE = 2_000  # characters of one


@dataclass(frozen=True)
class CollectedMetadata:
    """What is known of a file of losses beside its columns.

    Attributes:
        scale: What the column ``loss`` is.
        history: What was done to the losses, first step first.
        notes: The steps of the history that a reader must know before relying on the losses.
        saturated: How many member and non-member losses came from a probability of exactly 0 or 1; (0, 0) where
            records were taken out of the file since.
        scores: The columns of other scores of the same records, whose scale is unknown.
        counts: Members and non-members, when the file was written.
        placing: The spacing of the model's floats and the range of the finite losses, which gave the infinite ones
            their place.
        content: The SHA-256 of each of the columns ``loss`` and ``member``, as they were written.
        manifest: The collection that the file is the result of, as this version writes it; none otherwise.
    """

    scale: LossScale
    history: tuple[str, ...]
    notes: tuple[str, ...]
    saturated: tuple[int, int]
    scores: tuple[str, ...]
    counts: tuple[int, int]
    placing: tuple[float, float, float]
    content: Mapping[str, str]
    manifest: Manifest | None


def read_metadata(path: str | os.PathLike[str]) -> CollectedMetadata | None:
    """Return what a collected file says of itself; none if it is any other Parquet file, or none at all.

    Args:
        path: A Parquet file. What is wrong with the file as a whole is left to whoever reads its columns.

    Raises:
        InputError: Metadata that was damaged, or that a newer version wrote.
    """
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(str(path)) as file:
            text, rows = (file.schema_arrow.metadata or {}).get(KEY), file.metadata.num_rows
    except (OSError, ArrowException):
        return None
    if text is None:
        return None
    try:
        return _parsed(text, rows)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise InputError(
            f"file {str(Path(path))!r} says what its losses are in a way that this version cannot read; collect them"
            " again, or write the columns to a new file without the metadata 'auditor'."
        ) from error


def metadata_text(found: CollectedMetadata) -> str:
    """Return what is written into the file."""
    values = {**asdict(found), "scale": str(found.scale), "format": _FORMAT, "version": __version__}
    return json.dumps(plain_setting(values), sort_keys=True)


def _parsed(text: bytes, rows: int) -> CollectedMetadata:
    if len(text) > _LARGEST:
        raise ValueError
    values = json.loads(text)
    if not isinstance(values, dict) or values["format"] != _FORMAT:
        raise ValueError
    counts, saturated = _pair(values["counts"]), _pair(values["saturated"])
    if saturated[0] > counts[0] or saturated[1] > counts[1]:
        raise ValueError
    whole = sum(counts) == rows
    return CollectedMetadata(
        scale=LossScale(values["scale"]),
        history=_lines(values["history"]),
        notes=_lines(values["notes"]),
        saturated=saturated if whole else (0, 0),
        scores=_lines(values["scores"]),
        counts=counts,
        placing=_numbers(values["placing"]),
        content=_hashes(values["content"]),
        manifest=_manifest(values) if whole else None,
    )


def _pair(values: Any) -> tuple[int, int]:
    if not isinstance(values, list) or not all(type(value) is int and value >= 0 for value in values):
        raise TypeError
    first, second = values
    return first, second


def _numbers(values: Any) -> tuple[float, float, float]:
    if not isinstance(values, list):
        raise TypeError
    eps, low, high = map(float, values)
    if not (0 < eps < 1 and low <= 0 <= high and high - low < float("inf")):
        raise ValueError
    return eps, low, high


def _hashes(values: Any) -> dict[str, str]:
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise TypeError
    return values


def _lines(values: Any) -> tuple[str, ...]:
    """Short printable lines: they end up in reports and on terminals."""
    if not isinstance(values, list) or len(values) > _STEPS:
        raise ValueError
    if not all(isinstance(value, str) and len(value) <= _LINE for value in values):
        raise ValueError
    return tuple("".join(sign if sign.isprintable() else "?" for sign in value) for value in values)


def _manifest(values: Mapping[str, Any]) -> Manifest | None:
    try:
        return from_fields(values["manifest"])
    except ValueError:
        return None
