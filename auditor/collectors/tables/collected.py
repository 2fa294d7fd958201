"""What a file that `auditor.collect_to` wrote says of its losses beside their numbers."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from auditor._version import __version__
from auditor.collectors.tables.sources import path_of
from auditor.core.errors import InputError
from auditor.core.files import whole
from auditor.core.values import LossScale

# --- The manifest of a collection: everything that decides its numbers, so that no other model, data or setting is mixed in ---


_FORMAT = 1
_LARGEST_MANIFEST = 2**24  # bytes
_SHOWN = 80  # characters of a value in an error
_FREE = ("warnings", "deterministic")  # found out about the model, and decide nothing


@dataclass(frozen=True)
class Manifest:
    """What a collection is, in values of JSON.

    Attributes:
        model: The scorer's hash; none where it cannot be known.
        losses: What the losses are and where they come from, in words.
        data: The hashes of the tables, by what is hashed.
        records: How many records each table has.
        counts: Members and non-members.
        setting: Everything else that decides the numbers, by name.
        batch_size: Records in each call of the model.
        unit_size: Records in each part.
        warnings: What was noticed before the first record was scored.
        deterministic: Whether the model answers alike when it is asked again, as far as anybody knows.
        version: Of this package.
        format: Of the working folder.
    """

    model: str | None
    losses: str
    data: Mapping[str, str]
    records: tuple[int, ...]
    counts: tuple[int, int]
    setting: Mapping[str, Any]
    batch_size: int
    unit_size: int
    warnings: tuple[str, ...] = ()
    deterministic: bool = True
    version: str = __version__
    format: int = _FORMAT

    @property
    def key(self) -> str:
        """A hash of all that decides the numbers."""
        decisive = {name: value for name, value in asdict(self).items() if name not in _FREE}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def plain_setting(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting in values of JSON, as it is when it comes back from a file."""
    result: dict[str, Any] = json.loads(json.dumps(dict(setting), default=_plain))
    return result


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest, whole or not at all."""
    with whole(path, folder=path.parent) as draft:
        draft.write_text(json.dumps(asdict(manifest), indent=1, sort_keys=True), encoding="utf-8")


def read_manifest(path: Path) -> Manifest | None:
    """Return a manifest; none if there is none.

    Raises:
        InputError: A file that is no manifest.
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as file:
            return _from_fields(
                json.loads(file.read(_LARGEST_MANIFEST))
            )  # longer ones are cut off, and so no JSON
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"file {str(path)!r} is damaged or of another version; delete its folder to begin anew, or name another"
            " output."
        ) from error


def _from_fields(values: Any) -> Manifest:
    """Return a manifest from what JSON made of it.

    Raises:
        ValueError: Fields that are missing, unknown or of another type.
    """
    checks: dict[str, Callable[[Any], bool]] = {
        "model": lambda value: value is None or isinstance(value, str),
        "losses": lambda value: isinstance(value, str),
        "data": lambda value: isinstance(value, dict) and _all(str, value.values()),
        "records": lambda value: isinstance(value, list) and _all(int, value),
        "counts": lambda value: isinstance(value, list) and len(value) == 2 and _all(int, value),  # noqa: PLR2004
        "setting": lambda value: isinstance(value, dict),
        "batch_size": lambda value: isinstance(value, int) and value > 0,
        "unit_size": lambda value: isinstance(value, int) and value > 0,
        "warnings": lambda value: isinstance(value, list) and _all(str, value),
        "deterministic": lambda value: isinstance(value, bool),
        "version": lambda value: isinstance(value, str),
        "format": lambda value: value == _FORMAT,
    }
    names = {field.name for field in fields(Manifest)}
    if not isinstance(values, dict) or set(values) != names:
        raise ValueError
    if not all(check(values[name]) for name, check in checks.items()):
        raise ValueError
    lists = {name: tuple(values[name]) for name in ("records", "counts", "warnings")}
    return Manifest(**{**values, **lists})


def _all(kind: type, values: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


def what_changed(old: Manifest, new: Manifest) -> str | None:
    """Return what changed, in words with both values; none if nothing did that decides a number."""
    for words, first, second in (
        ("the model changed: its hash", old.model, new.model),
        ("the numbers of records changed: they", list(old.records), list(new.records)),
    ):
        if first != second:
            return _changed(words, first, second)
    for name in sorted(old.data.keys() | new.data.keys()):
        if old.data.get(name) != new.data.get(name):
            return _changed(f"the data changed: the hash of {name}", old.data.get(name), new.data.get(name))
    for name in sorted(old.setting.keys() | new.setting.keys()):
        if old.setting.get(name) != new.setting.get(name):
            return _changed(f"the setting changed: {name}", old.setting.get(name), new.setting.get(name))
    for words, name in (("kind of losses", "losses"), ("batch_size", "batch_size"), ("version", "version")):
        if getattr(old, name) != getattr(new, name):
            return _changed(f"the setting changed: {words}", getattr(old, name), getattr(new, name))
    return None if old.key == new.key else "the setting changed"


def _changed(words: str, old: Any, new: Any) -> str:
    return f"{words} was {_shown(old)} and is now {_shown(new)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return "unknown" if value is None else text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# --- What a collected file says of itself in its Parquet metadata: read with care, since it may come from others ---


METADATA_KEY = b"auditor"

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
            text, rows = (file.schema_arrow.metadata or {}).get(METADATA_KEY), file.metadata.num_rows
    except (OSError, ArrowException):
        return None
    if text is None:
        return None
    try:
        return _from_text(text, rows)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise InputError(
            f"file {str(Path(path))!r} says what its losses are in a way that this version cannot read; collect them"
            " again, or write the columns to a new file without the metadata 'auditor'."
        ) from error


def metadata_text(found: CollectedMetadata) -> str:
    """Return what is written into the file."""
    values = {**asdict(found), "scale": str(found.scale), "format": _FORMAT, "version": __version__}
    return json.dumps(plain_setting(values), sort_keys=True)


def _from_text(text: bytes, rows: int) -> CollectedMetadata:
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
        return _from_fields(values["manifest"])
    except ValueError:
        return None


def metadata_of(data: Any) -> CollectedMetadata | None:
    """Return what a table says of itself, if it is a collected file; none for any other file, or data in memory.

    Raises:
        InputError: A file that says what this version cannot read.
    """
    path = path_of(data)
    if path is None or path.suffix.lower() != ".parquet" or path.is_dir():
        return None
    return read_metadata(path)
