"""The output of a long collection and the working folder beside it: whose they are, what is in them, and how parts become one file."""

import contextlib
import hashlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.records import Batch, Source
from auditor.collectors.base.scorer import Scorer, collection_history, differences, reader_notes
from auditor.collectors.base.tasks import BatchLosses, clip_saturated
from auditor.collectors.streaming import units
from auditor.collectors.streaming.units import Collection, Unit, UnitReport, checked_part, is_part, part_path
from auditor.collectors.tables.collected import (
    METADATA_KEY,
    CollectedMetadata,
    Manifest,
    metadata_text,
    read_manifest,
    read_metadata,
    write_manifest,
)
from auditor.core.errors import InputError, OutputError
from auditor.core.files import drafts, unwritable, whole
from auditor.core.values import Floats, LossScale
from auditor.records.features import Features, fingerprints

# --- The working folder beside an output: what is in it, and what is left of it in the end ---


# --- One process at a time: the working folder beside an output belongs to whoever holds the lock in it ---


_NAME = "lock"
_ATTEMPTS = 1000  # a folder that is made and never there is none, as under /proc
# Where a file can be removed while it is open, it is removed while it is held, so that nobody takes it in between;
# on Windows it cannot, not even if somebody took it in between, and so must be let go of first.
_HELD_FILES_CAN_GO = os.name != "nt"


class NoFolderError(OutputError):
    """There is no folder to hold, and none can be made."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made if it is not there; left empty, it is removed in the end.

    The system lets go of the lock when the process ends, in whatever way, so that none is ever left behind.

    Raises:
        NoFolderError: It cannot be made or written to, as on a disk that is read only.
        OutputError: Another process holds it, or the disk has no locks.
    """
    path = folder / _NAME
    handle = _acquired(folder, path)
    try:
        yield
    finally:
        if not _HELD_FILES_CAN_GO:
            os.close(handle)
        with contextlib.suppress(OSError):
            if [item.name for item in folder.iterdir()] == [_NAME]:
                path.unlink()
                folder.rmdir()
        if _HELD_FILES_CAN_GO:
            os.close(handle)


def _acquired(folder: Path, path: Path) -> int:
    for attempt in itertools.count():
        try:
            folder.mkdir(exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError as error:
            if folder.parent.is_dir() and attempt < _ATTEMPTS:
                continue  # its holder removed it just now
            raise NoFolderError(str(unwritable(folder, error))) from error
        except OSError as error:
            raise NoFolderError(str(unwritable(folder, error))) from error
        try:
            _take(handle)
            if _is_still(handle, path):
                return handle
        except OSError as error:
            os.close(handle)
            raise _refusal(folder, error) from error
        os.close(handle)
    raise AssertionError  # counting never ends


def _is_still(handle: int, path: Path) -> bool:
    """Whether the file that was locked is the one in the folder, and not one that was removed meanwhile."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _refusal(folder: Path, error: OSError) -> OutputError:
    if isinstance(error, BlockingIOError | PermissionError):
        output = str(folder.with_suffix(""))
        return OutputError(
            f"output path {output!r} is being collected by another process; wait for it, or name another output."
        )
    return OutputError(
        f"folder {str(folder)!r} cannot be locked: {error.strerror or error}; name an output on a local disk."
    )


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


# --- The working folder ---


@dataclass(frozen=True)
class Workplace:
    """A folder of parts with a manifest; nothing else in it is touched.

    Attributes:
        folder: Where it is.
    """

    folder: Path

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def _finished(self) -> Path:
        return self.folder / "finished.json"

    def manifest(self) -> Manifest | None:
        """Return what was begun here and has no output yet."""
        return read_manifest(self._manifest)

    def finished(self) -> Manifest | None:
        """Return what was completed by a process that was killed before the folder was gone."""
        return read_manifest(self._finished)

    def has_parts(self) -> bool:
        """Return whether anything that was scored is here, of whatever collection."""
        return bool(self._parts())

    def refuse_foreign(self) -> None:
        """Refuse a folder with files that have the names of parts, and no manifest that says whose they are.

        Raises:
            InputError: They are not of a collection, or it cannot be known of which.
        """
        found = self._parts()
        if found and not self._has_manifest:
            raise InputError(
                f"folder {str(self.folder)!r} must hold an interrupted collection or no parts, got {len(found)} such as"
                f" {found[0].name!r} without a manifest; move them away, name another output, or ask for it to be"
                " overwritten."
            )

    def refuse_elsewhere(self, output: Path) -> None:
        """Refuse a folder on another disk than the output, which no file can be moved to in one step.

        Raises:
            OutputError: It is a link, or a mounted disk.
        """
        if self.folder.stat().st_dev != output.parent.stat().st_dev:
            raise OutputError(
                f"folder {str(self.folder)!r} must be on the same disk as the output {output.name!r}, and is a link to"
                " another or one itself; remove it, or name an output on that disk."
            )

    def begin(self, manifest: Manifest) -> None:
        """Write the manifest into a folder without parts."""
        self._empty()
        write_manifest(self._manifest, manifest)

    def parts(self, collection: Collection, *, damaged: Callable[[Path], None]) -> dict[int, UnitReport]:
        """Return the reports of the parts that are whole, by unit; unfinished drafts are removed."""
        _remove(drafts(self.folder))
        found = {}
        for unit in collection.units:
            path = part_path(self.folder, unit)
            report = checked_part(path, unit=unit, key=collection.key)
            if report is not None:
                found[unit.index] = report
            elif path.exists():
                damaged(path)
        return found

    def finish(self) -> None:
        """Say that the output is there, and remove everything."""
        with contextlib.suppress(FileNotFoundError):
            self._manifest.replace(self._finished)
        self.clear()

    def clear(self) -> None:
        """Remove what a collection wrote here, if one did; that the output is there is forgotten last."""
        if self._has_manifest:
            self._empty()
        else:
            _remove(drafts(self.folder))

    @property
    def _has_manifest(self) -> bool:
        return self._manifest.exists() or self._finished.exists()

    def _parts(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if is_part(path))

    def _empty(self) -> None:
        _remove([*drafts(self.folder), *self._parts()])
        _remove([self._manifest, self._finished])


def _remove(paths: list[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error


# --- The output of a long collection: what is to be in it, whether the model stays the same, and how the parts become it ---


# --- One look at all records before any is scored: are they fit, how many are there, and which are they ---


_LEAST = 2  # records in each group
_ROWS_LOOKED_AT = 512  # read at once at least, where batches are small


@dataclass(frozen=True)
class _Survey:
    """What tables hold, as far as anybody must know to tell whether they are still the same.

    Attributes:
        counts: Members and non-members.
        digests: A SHA-256 of each of features, labels, membership, and what else is known, by name.
    """

    counts: tuple[int, int]
    digests: dict[str, str]


@dataclass(eq=False)
class _Digests:
    """Running hashes by name, which do not depend on the stretches that the records come in."""

    running: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, words: npt.NDArray[np.uint64]) -> None:
        """Go on with the next records, one word for each."""
        self.running.setdefault(name, hashlib.sha256()).update(words.astype("<u8", copy=False).tobytes())

    def result(self) -> dict[str, str]:
        """Return the hashes in hexadecimal."""
        return {name: digest.hexdigest() for name, digest in self.running.items()}


def survey(
    sources: Sequence[Source],
    *,
    scorer: Scorer,
    step: int,
    watch: Callable[[Batch], None],
    progress: Callable[[int, int], None],
) -> _Survey:
    """Read all tables once.

    Args:
        sources: The tables.
        scorer: Checks the labels, without asking the model.
        step: Records in a batch of the model; about so many are in memory at once.
        watch: Told of each stretch, in order.
        progress: Told how many records of how many were read.

    Raises:
        InputError: Records that cannot be read or scored, or fewer than two in a group.
    """
    total, read, members = sum(map(len, sources)), 0, 0
    digests, rows = _Digests(), max(step, _ROWS_LOOKED_AT)
    for source in sources:
        for start in range(0, len(source), rows):
            batch = units.read_stretch(source, start=start, stop=min(start + rows, len(source)))
            scorer.check(batch.records)
            watch(batch)
            _add(digests, batch)
            read += len(batch.records)
            members += int(batch.member.sum())
            progress(read, total)
    if min(members, total - members) < _LEAST:
        raise InputError(
            f"the tables must hold at least {_LEAST} members and {_LEAST} non-members, got {members} and"
            f" {total - members}; name a table, or a membership column, that has both."
        )
    return _Survey(counts=(members, total - members), digests=digests.result())


def _add(digests: _Digests, batch: Batch) -> None:
    words = {"labels": _survey_words(batch.records.labels), "membership": batch.member.astype(np.uint64)}
    words |= {name: _survey_words(column) for name, column in batch.columns.items() if name != "label"}
    if batch.fingerprint is not None:
        words["features"] = batch.fingerprint
    for name, values in words.items():
        digests.add(name, values)


def _survey_words(column: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row of a column, or of a table."""
    table = column.reshape(column.shape[0], -1)
    try:
        return fingerprints(Features(member=table, nonmember=table[:0])).member
    except InputError:  # values of other types than a feature has
        texts = np.array([repr(row) for row in table.tolist()], dtype=object)[:, None]
        return fingerprints(Features(member=texts, nonmember=texts[:0])).member


# --- Is the model still the one that began: some of its losses are computed again and compared ---


_FIRST = 10  # records


class ChangedModelError(InputError):
    """The model gives other losses than those on disk, so that the same call cannot go on."""


def probe_part(
    scorer: Scorer, *, collection: Collection, unit: Unit, folder: Path, kept: str, fix: str
) -> None:
    """Refuse a model that gives other losses than the first of a part.

    Args:
        scorer: The model.
        collection: What the part belongs to.
        unit: Which part.
        folder: Where it is.
        kept: What is on disk, the subject of the sentence.
        fix: What helps.

    Raises:
        ChangedModelError: The losses differ.
        OutputError: The part is damaged.
    """
    losses = units.read_whole_part(units.part_path(folder, unit), columns=["loss"])["loss"].to_numpy()
    refuse_other_model(
        scorer,
        source=collection.sources[unit.source],
        start=unit.start,
        expected=losses[: collection.batch_size],
        kept=kept,
        fix=fix,
    )


def refuse_other_model(
    scorer: Scorer,
    *,
    source: Source,
    start: int,
    expected: Floats,
    kept: str,
    fix: str,
    placed: Callable[[BatchLosses], Floats] = lambda losses: losses.loss,
) -> None:
    """Refuse a model that gives other losses than those on disk.

    Ten records are scored again. The same model may give them other roundings in so small a batch; where they differ,
    the whole batch is scored again as it was, before anybody is accused.

    Args:
        scorer: The model.
        source: The table that the records are in.
        start: The first of them.
        expected: The losses on disk of one batch of the model that begins there.
        kept: What is on disk, the subject of the sentence.
        fix: What helps.
        placed: Gives the losses of a batch the places that they have on disk.

    Raises:
        ChangedModelError: The losses differ.
    """
    records = units.read_stretch(source, start=start, stop=start + expected.size).records
    for n in sorted({min(_FIRST, expected.size), expected.size}):
        again = scorer.score(records.part(0, n))
        same = _agree(expected[:n], placed(again), eps=again.eps, scale=scorer.scale)
        if same.all():
            return
    row = int(np.argmax(~same))
    raise ChangedModelError(
        f"{kept}, but the model changed, or answers differently each time: the loss of {records.name} row"
        f" {records.first_row + row}, counting from 0, was {expected[row]:.9g} and is now {placed(again)[row]:.9g};"
        f" {fix}."
    )


def _agree(first: Floats, second: Floats, *, eps: float, scale: LossScale) -> npt.NDArray[np.bool_]:
    """Which losses are equal within the rounding of the outputs."""
    if first.shape != second.shape:
        return np.zeros(first.shape, dtype=np.bool_)
    return np.asarray(differences(first, second, eps=eps, scale=scale) == 0)


# --- The hashes of losses and membership, by which an output is known for what was written ---


_ROWS_HASHED = 2**16


def _content_of(tables: Iterable[Any]) -> dict[str, str]:
    """Return the SHA-256 of each of the columns ``loss`` and ``member``, however the rows are cut into tables.

    Raises:
        TypeError: Columns that are no 64-bit floats and truth values.
    """
    digests = _Digests()
    for table in tables:
        if [str(table[name].type) for name in ("loss", "member")] != ["double", "bool"]:
            raise TypeError
        loss = table["loss"].to_numpy(zero_copy_only=False)
        digests.add("loss", loss.astype("<f8", copy=False).view("<u8"))
        digests.add("member", table["member"].to_numpy(zero_copy_only=False).astype(np.uint64))
    return digests.result()


def _file_content(path: Path) -> dict[str, str] | None:
    """Return the same of a file, read in constant memory; none if it cannot be read so."""
    from pyarrow import ArrowException

    try:
        return _content_of(_batches(path))
    except (ArrowException, OSError, KeyError, ValueError, TypeError):
        return None


def _batches(path: Path) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(str(path), page_checksum_verification=True) as file:
        yield from file.iter_batches(batch_size=_ROWS_HASHED, columns=["loss", "member"])


# --- The parts of a collection become its output, in constant memory: infinite losses get their place in the end ---


_ROWS = 2**16  # of a row group, at least


class ChangedDataError(InputError):
    """The tables are not what they were when the collection began, and neither are the losses in the parts."""


def _merged_metadata(
    scorer: Scorer,
    *,
    manifest: Manifest,
    reports: Sequence[UnitReport],
    names: Sequence[str],
    left: Sequence[str],
) -> CollectedMetadata:
    """Return what the output is to say of itself, but for its content: the same as `auditor.collect` says in memory.

    Args:
        scorer: What gave the losses.
        manifest: The collection.
        reports: Of all parts.
        names: The columns of the output.
        left: The columns that only some parts have.
    """
    saturated = sum(report.saturated[0] for report in reports), sum(report.saturated[1] for report in reports)
    hard = all(report.hard for report in reports)
    steps = collection_history(scorer.words, saturated=saturated, hard=hard)
    alone = [f"left out, because only some of the tables have it: {', '.join(left)}"] if left else []
    return CollectedMetadata(
        scale=scorer.scale,
        history=(*steps, *manifest.warnings, *alone),
        notes=reader_notes(manifest.warnings, hard=hard),
        saturated=saturated,
        scores=tuple(name for name in names if name not in units.OWN_COLUMNS),
        counts=manifest.counts,
        placing=(
            max(report.eps for report in reports),
            min(report.low for report in reports),
            max(report.high for report in reports),
        ),
        content={},
        manifest=manifest,
    )


def merge(
    collection: Collection,
    *,
    folder: Path,
    scorer: Scorer,
    manifest: Manifest,
    reports: Sequence[UnitReport],
    progress: Callable[[int, int], None],
) -> CollectedMetadata:
    """Write the output in the order of the tables, and return what it says of itself.

    Args:
        collection: Where to, and of which units.
        folder: Where the parts are.
        scorer: What gave the losses.
        manifest: The collection.
        reports: Of all parts, in the order of the units.
        progress: Told how many records of how many were written.

    Raises:
        InputError: The tables changed while they were scored.
        OutputError: A part is damaged, or the output cannot be written.
    """
    from pyarrow import parquet

    schema, left = _schema([units.part_path(folder, unit) for unit in collection.units])
    found = _merged_metadata(scorer, manifest=manifest, reports=reports, names=schema.names, left=left)
    # The footer says what the columns are before they are written, so that these two are read twice.
    content = _content_of(_losses_and_members(collection, folder, found=found))
    found = replace(found, content=content)
    schema = schema.with_metadata({METADATA_KEY: metadata_text(found)})
    text = [name for name in schema.names if not _is_number(schema.field(name).type)]
    settings = {"use_dictionary": text, "compression": "zstd", "write_page_checksum": True}
    with (
        whole(collection.path, folder=folder) as draft,
        parquet.ParquetWriter(str(draft), schema, **settings) as writer,
    ):
        done = 0
        for table in _tables(collection, folder, schema=schema, found=found):
            writer.write_table(table, row_group_size=table.num_rows)
            done += table.num_rows
            progress(done, sum(manifest.counts))
    return found


def _losses_and_members(collection: Collection, folder: Path, *, found: CollectedMetadata) -> Iterator[Any]:
    """Yield the losses and members of the output, part by part."""
    for unit in collection.units:
        yield _with_finite_losses(
            units.read_whole_part(units.part_path(folder, unit), columns=["loss", "member"]), found
        )


def _with_finite_losses(part: Any, found: CollectedMetadata) -> Any:
    """Return a part with its infinite losses at their places."""
    import pyarrow as pa

    eps, low, high = found.placing
    loss = clip_saturated(part["loss"].to_numpy(), eps=eps, low=low, high=high)
    return part.set_column(part.column_names.index("loss"), "loss", pa.array(loss))


def _tables(collection: Collection, folder: Path, *, schema: Any, found: CollectedMetadata) -> Iterator[Any]:
    """Yield the output in row groups; nothing is written after the last unless all is what was surveyed."""
    import pyarrow as pa

    digests, waiting, rows = _Digests(), [], 0
    for unit in collection.units:
        part = units.read_whole_part(units.part_path(folder, unit))
        digests.add("membership", _integers(part["member"]))
        if "fingerprint" in part.column_names:
            digests.add("features", _integers(part["fingerprint"]))
        waiting.append(_with_finite_losses(part, found).select(schema.names).cast(schema))
        rows += part.num_rows
        if rows >= _ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()
    _refuse_other_data(collection, digests, found)


def _refuse_other_data(collection: Collection, digests: _Digests, found: CollectedMetadata) -> None:
    surveyed = found.manifest.data if found.manifest else {}
    for name, digest in digests.result().items():
        if surveyed.get(name) != digest:
            raise ChangedDataError(
                f"the {name} of the tables changed while the records were scored; delete the folder"
                f" {collection.path.name + '.parts'!r} and collect again from tables that nobody writes to."
            )


def _integers(column: Any) -> Any:
    return column.to_numpy().astype(np.uint64)


def _schema(paths: Sequence[Path]) -> tuple[Any, list[str]]:
    """Return the columns that all parts have, each in a type that holds all of it, and the names of the others."""
    import pyarrow as pa
    from pyarrow import parquet

    types: dict[str, list[Any]] = {}
    for path in paths:
        schema = parquet.read_schema(str(path))
        for name in schema.names:
            types.setdefault(name, []).append(schema.field(name).type)
    shared = [name for name, found in types.items() if len(found) == len(paths)]
    schema = pa.schema([pa.field(name, _common(types[name])) for name in shared])
    return schema, [name for name in types if name not in shared]


def _common(types: Sequence[Any]) -> Any:
    """Return the type that holds values of all of these: text, where nothing nearer does."""
    import pyarrow as pa

    distinct = list(dict.fromkeys(types))
    try:
        fields = [pa.schema([pa.field("column", kind)]) for kind in distinct]
        return pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return pa.string()


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


# --- A file that lies there already: whose it is, and whether it is what was asked for ---


FOREIGN = "is not the result of a collection as this version writes it"


def refuse_foreign(target: Path, *, overwrite: bool) -> None:
    """Refuse a file that no collection made, before the tables are read; even where one may be overwritten."""
    if not target.exists():
        return
    if overwrite:
        with contextlib.suppress(InputError):  # of a collection, and damaged or of another version
            if read_metadata(target) is None:
                raise OutputError(
                    f"output path {str(target)!r} holds no collected losses, and nothing else is overwritten; name"
                    " another, or delete the file yourself."
                )
        return
    found = collected_metadata(target)
    if found is None or found.manifest is None:
        raise refused_output(target, FOREIGN)


def refused_output(target: Path, reason: str) -> InputError:
    """Return the sentence for a file that is in the way."""
    return InputError(
        f"output path {str(target)!r} exists already and {reason}; name another, or ask for it to be overwritten."
    )


def collected_metadata(target: Path) -> CollectedMetadata | None:
    """Return what a file says of itself; none if it is not there, or says nothing that can be read."""
    try:
        return read_metadata(target) if target.exists() else None
    except InputError:
        return None


def refuse_rewritten(target: Path, there: CollectedMetadata) -> None:
    """Refuse a file whose losses, or their order, are no longer those that were written.

    Raises:
        InputError: Others are in it.
    """
    if _file_content(target) != dict(there.content):
        raise refused_output(target, "holds losses that were changed since they were collected")


def probe_output(
    target: Path, there: CollectedMetadata, *, manifest: Manifest, scorer: Scorer, source: Source
) -> None:
    """Refuse a model that gives other losses than the first that are in the output.

    Args:
        target: The output.
        there: What it says of itself.
        manifest: What is asked for.
        scorer: The model.
        source: The first table that has records.

    Raises:
        ChangedModelError: The losses differ.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(str(target)) as file:
        rows = min(manifest.batch_size, len(source))
        expected = next(file.iter_batches(batch_size=rows, columns=["loss"]))["loss"].to_numpy()
    eps, low, high = there.placing
    refuse_other_model(
        scorer,
        source=source,
        start=0,
        expected=expected,
        kept=f"file {str(target)!r} holds the losses",
        fix="give the same model, name another output, or ask for the file to be overwritten",
        placed=lambda losses: clip_saturated(losses.loss, eps=eps, low=low, high=high),
    )
