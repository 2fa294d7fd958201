"""Metadata of a file that `auditor.collect_to` wrote."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from auditor._version import __version__
from auditor.collectors.tables.opening import open_table
from auditor.collectors.tables.sources import Table, kind_of, path_of
from auditor.core import Array, Attacks, Losses, LossScale, Released, attack_states, table_content, whole
from auditor.core.errors import InputError

# --- The manifest of a collection: everything that decides its numbers, so that no other model, data or setting is mixed in ---


_FORMAT = 1
_LARGEST_MANIFEST = 2**24  # bytes
_SHOWN = 80  # characters of a value in an error
_FREE = ("warnings", "deterministic")  # found out about the model, and decide nothing


@dataclass(frozen=True)
class Manifest:
    """Description of a collection as JSON values.

    Attributes:
        model: The scorer's hash; none where it cannot be known.
        losses: Description of the losses and their source.
        data: The hashes of the tables, by their content.
        records: Number of records in each table.
        counts: Members and non-members.
        setting: Everything else that decides the numbers, by name.
        batch_size: Records in each call of the model.
        unit_size: Records in each part.
        warnings: Warnings before the first record was scored.
        deterministic: Whether the model answers alike to the same records again, as far as is known.
        version: Version of this package.
        format: Format of the working folder.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}
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

    @cached_property
    def key(self) -> str:
        """A hash of all that decides the numbers."""
        decisive = {name: value for name, value in asdict(self).items() if name not in _FREE}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


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
            # Longer ones are cut off, and so no JSON.
            return _checked(file.read(_LARGEST_MANIFEST))
    except (OSError, ValueError) as error:
        raise InputError(
            f"file {str(path)!r} is damaged or of another version; delete its folder to start again, or name another"
            " output."
        ) from error


def _checked(text: str | bytes) -> Manifest:
    """Return a manifest from JSON.

    Raises:
        ValueError: Fields that are missing, unknown or of another type.
    """
    manifest: Manifest = _from_json(Manifest, text)
    if manifest.format != _FORMAT or min(manifest.batch_size, manifest.unit_size) < 1:
        raise ValueError
    return manifest


def _from_json(cls: Any, text: str | bytes) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cls).validate_json(text, strict=True)


def what_changed(old: Manifest, new: Manifest) -> str | None:
    """Return the change, in words with both values; None if nothing changed that decides a number."""
    before, after = _decisive(old), _decisive(new)
    for words in before | after:
        values = before.get(words), after.get(words)
        if values[0] != values[1]:
            was, now = ("unknown" if value is None else f"{value!r:.{_SHOWN}}" for value in values)
            return f"{words} was {was} and is now {now}"
    return None if old.key == new.key else "the setting changed"


def _decisive(manifest: Manifest) -> dict[str, Any]:
    """Return the facts that decide the numbers of a collection, each by the words for its change."""
    return {
        "the model changed: its hash": manifest.model,
        "the numbers of records changed: they": list(manifest.records),
        **{f"the data changed: the hash of {name}": manifest.data[name] for name in sorted(manifest.data)},
        **{f"the setting changed: {name}": manifest.setting[name] for name in sorted(manifest.setting)},
        "the setting changed: kind of losses": manifest.losses,
        "the setting changed: batch_size": manifest.batch_size,
        "the setting changed: version": manifest.version,
    }


# --- Parquet metadata of a collected file: read with care, since it may come from others ---


METADATA_KEY = b"auditor"

_LARGEST = 2**22  # bytes
_STEPS = 100  # lines of a history
_LINE = 2_000  # characters of one


@dataclass(frozen=True)
class CollectedMetadata:
    """Metadata of a file of losses.

    Attributes:
        scale: Scale of the column ``loss``.
        history: Steps applied to the losses, first step first.
        notes: The steps of the history that a reader must know before relying on the losses.
        attacks: Attacks that the losses come from, and those that cannot apply to them.
        released: Facts about what was released.
        saturated: Numbers of member and non-member losses from a probability of exactly 0 or 1; (0, 0) where
            records were taken out of the file since.
        counts: Members and non-members, when the file was written.
        eps: The spacing near 1 of the model's floats, which gave infinite losses their place.
        content: The SHA-256 of each of the columns ``loss`` and ``member``, as they were written.
        manifest: The collection that the file is the result of, as this version writes it; none otherwise.
    """

    scale: LossScale
    history: tuple[str, ...]
    notes: tuple[str, ...]
    attacks: Attacks
    released: Released = field(default=Released(), kw_only=True)
    saturated: tuple[int, int]
    counts: tuple[int, int]
    eps: float
    content: Mapping[str, str]
    manifest: Manifest | None


def parquet_metadata(data: Any, key: bytes) -> tuple[bytes | None, int]:
    """Return a Parquet file's metadata under a key, and its number of rows; None for other files and data in memory.

    Faults of the file as a whole are found when its columns are read.
    """
    path = path_of(data)
    is_file = path is not None and kind_of(path) == ".parquet" and path.is_file()
    with suppress(InputError):
        return open_table(data).note(key) if is_file or isinstance(data, Table) else (None, 0)
    return None, 0


def read_metadata(data: Any) -> CollectedMetadata | None:
    """Return the metadata of a collected file; None for any other file, or data in memory.

    Raises:
        InputError: Metadata that was damaged, or that a newer version wrote.
    """
    text, rows = parquet_metadata(data, METADATA_KEY)
    if text is None:
        return None
    try:
        return _from_text(text, rows)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise InputError(
            f"file {str(path_of(data))!r} describes its losses in a way that this version cannot read; collect them"
            " again, or write the columns to a new file without the metadata 'auditor'."
        ) from error


def metadata_text(metadata: CollectedMetadata) -> str:
    """Return the metadata to write into the file."""
    values = {**asdict(metadata), "scale": str(metadata.scale), "format": _FORMAT, "version": __version__}
    return json.dumps(values, sort_keys=True)


def _from_text(text: bytes, rows: int) -> CollectedMetadata:
    if len(text) > _LARGEST:
        raise ValueError
    values = json.loads(text)
    if values["format"] != _FORMAT:
        raise ValueError
    metadata: CollectedMetadata = _from_json(CollectedMetadata, json.dumps({**values, "manifest": None}))
    saturated = zip(metadata.saturated, metadata.counts, strict=True)
    if not (all(0 <= some <= every for some, every in saturated) and 0 < metadata.eps < 1):
        raise ValueError
    whole, manifest = sum(metadata.counts) == rows, None
    if whole:
        with suppress(ValueError):  # of another version
            manifest = _checked(json.dumps(values["manifest"]))
    return replace(
        metadata,
        history=printable_lines(metadata.history),
        notes=printable_lines(metadata.notes),
        attacks=attack_states(metadata.attacks),
        saturated=metadata.saturated if whole else (0, 0),
        manifest=manifest,
    )


def printable_lines(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return short printable lines: they end up in reports and on terminals."""
    if len(values) > _STEPS or any(len(value) > _LINE for value in values):
        raise ValueError
    return tuple("".join(sign if sign.isprintable() else "?" for sign in value) for value in values)


# --- Are the losses of a collected file those that were collected? ---


Words = npt.NDArray[np.uint64]


class Digests(defaultdict[str, Any]):
    """Running SHA-256 by name, of one 64-bit word for each record, which do not depend on the stretches they come in."""

    def __init__(self) -> None:
        super().__init__(hashlib.sha256)

    def add(self, words: Mapping[str, Words]) -> None:
        """Add the next records."""
        for name, values in words.items():
            self[name].update(values.astype("<u8", copy=False).tobytes())

    def add_content(self, rows: Any) -> None:
        """Add the losses' bits and the members of some rows of Arrow or of arrays; other types give other words."""
        loss, member = (np.asarray(rows[name]) for name in ("loss", "member"))
        self.add({"loss": loss.view(np.uint64), "member": member.astype(np.uint64)})

    def result(self) -> dict[str, str]:
        """Return the hashes in hexadecimal."""
        return {name: digest.hexdigest() for name, digest in self.items()}


def refuse_altered(columns: Mapping[str, Array], metadata: CollectedMetadata, *, place: str) -> bool:
    """Refuse a collected file whose losses or members are no longer those that were collected.

    Args:
        columns: Columns; ``loss`` and ``member`` are compared, if both are there.
        metadata: Metadata of the file.
        place: The file in error sentences.

    Returns:
        Whether they were compared: not where records were taken out of the file.

    Raises:
        InputError: They are others.
    """
    if not {"loss", "member"} <= set(columns) or columns["loss"].size != sum(metadata.counts):
        return False
    both = {name: columns[name] for name in ("loss", "member")}
    content = Digests()
    if both["loss"].dtype == np.float64 and both["member"].dtype.kind in "biu":
        content.add_content(both)
    if content.result() != dict(metadata.content):
        raise InputError(
            f"{place} holds other losses or members than were collected; collect them again, or, if they were changed on"
            " purpose, write the columns to a new file without the metadata 'auditor'."
        )
    return True


def losses_content(losses: Losses, path: Path) -> str | bytes:
    """Return the content of a collected file with these losses, which are of no manifest."""
    frame, content = losses.to_frame(), Digests()
    content.add_content(frame)
    metadata = CollectedMetadata(
        scale=losses.scale,
        history=losses.history,
        notes=losses.notes,
        attacks=losses.attacks,
        released=losses.released,
        saturated=losses.saturated,
        counts=(losses.n_member, losses.n_nonmember),
        eps=float(np.finfo(np.float64).eps),
        content=content.result(),
        manifest=None,
    )
    return table_content(frame, path, note=metadata_text(metadata), key=METADATA_KEY)
