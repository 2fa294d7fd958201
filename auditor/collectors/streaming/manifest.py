"""The manifest of a collection: everything that decides its numbers, so that no other model, data or setting is mixed in."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from auditor._version import __version__
from auditor.collectors.streaming.writing import whole
from auditor.errors import InputError

__all__ = ["Manifest", "difference", "from_fields", "plain_setting", "read_manifest", "write_manifest"]

_FORMAT = 1
_LARGEST = 2**24  # bytes
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
            return from_fields(json.loads(file.read(_LARGEST)))  # longer ones are cut off, and so no JSON
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"file {str(path)!r} is damaged or of another version; delete its folder to begin anew, or name another"
            " output."
        ) from error


def from_fields(values: Any) -> Manifest:
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


def difference(old: Manifest, new: Manifest) -> str | None:
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
