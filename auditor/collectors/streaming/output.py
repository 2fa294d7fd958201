"""The output of a long collection: what is to be in it, what lies there already, and how the parts become it."""

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from auditor.collectors.base.records import Batch, Records, Source
from auditor.collectors.base.scorer import Scorer, collection_history, differences, reader_notes
from auditor.collectors.base.tasks import clip_saturated
from auditor.collectors.streaming.units import OWN_COLUMNS, Scoring, part_facts, parts_in, read_stretch
from auditor.collectors.tables import collected
from auditor.collectors.tables.collected import CollectedMetadata, Digests, Manifest, Words
from auditor.core.errors import InputError, OutputError
from auditor.core.files import drafts, take, unwritable, whole
from auditor.core.values import Floats
from auditor.records.features import hashes_of

# --- One look at all records before any is scored: are they fit, how many are there, and which are they ---


_LEAST = 2  # records in each group
_ROWS_LOOKED_AT = 512  # read at once at least, where batches are small


def survey(
    sources: Sequence[Source],
    *,
    scorer: Scorer,
    step: int,
    watch: Callable[[Batch], None],
    progress: Callable[[int, int], None],
) -> tuple[tuple[int, int], dict[str, str]]:
    """Read all tables once.

    Args:
        sources: The tables.
        scorer: Checks the labels, without asking the model.
        step: Records in a batch of the model; about so many are in memory at once.
        watch: Told of each stretch, in order.
        progress: Told how many records of how many were read.

    Returns:
        How many members and non-members there are, and a SHA-256 of each of features, labels, membership, and what else
        is known, by name.

    Raises:
        InputError: Records that cannot be read or scored, or fewer than two in a group.
    """
    total, read, members = sum(map(len, sources)), 0, 0
    digests, rows = Digests(), max(step, _ROWS_LOOKED_AT)
    for source in sources:
        for start in range(0, len(source), rows):
            batch = read_stretch(source, start=start, stop=min(start + rows, len(source)))
            scorer.check(batch.records)
            watch(batch)
            digests.add(_words_of(batch))
            read += len(batch.records)
            members += int(batch.member.sum())
            progress(read, total)
    if min(members, total - members) < _LEAST:
        raise InputError(
            f"the tables must hold at least {_LEAST} members and {_LEAST} non-members, got {members} and"
            f" {total - members}; name a table, or a membership column, that has both."
        )
    return (members, total - members), digests.result()


def _words_of(batch: Batch) -> dict[str, Words]:
    words = {"labels": _words(batch.records.labels), "membership": batch.member.astype(np.uint64)}
    words |= {name: _words(column) for name, column in batch.columns.items() if name != "label"}
    return words if batch.fingerprint is None else {**words, "features": batch.fingerprint}


def _words(column: npt.NDArray[Any]) -> Words:
    """A 64-bit hash of each row of a column, or of a table."""
    table = column.reshape(column.shape[0], -1)
    try:
        return hashes_of(table)
    except InputError:  # values of other types than a feature has
        texts = np.array([repr(row) for row in table.tolist()], dtype=object)[:, None]
        return hashes_of(texts)


# --- Is the model still the one that began: some of its losses are computed again and compared ---


_FIRST = 10  # records


def refuse_other_model(
    scorer: Scorer, *, records: Records, expected: Floats, place: Path, eps: float = 0.0
) -> None:
    """Refuse a model that gives other losses than before.

    Ten records are scored again. The same model may give them other roundings in so small a batch; where they differ,
    the whole batch is scored again as it was, before anybody is accused.

    Args:
        scorer: The model.
        records: One batch of the model, or fewer.
        expected: The losses that it gave them.
        place: Where these are, or the others that it gave since.
        eps: The spacing of floats by which infinite losses got their place, if they did.

    Raises:
        InputError: The losses differ.
    """
    for n in sorted({min(_FIRST, expected.size), expected.size}):
        now = scorer.score(records.part(0, n))
        found = now.loss[:n]
        apart = differences(expected[:n], found, eps=max(eps, now.eps), scale=scorer.scale) != 0
        if not apart.any():
            return
    row = int(np.argmax(apart))
    raise InputError(
        f"{str(place)!r} holds losses, but the model changed, or answers differently each time: the loss of"
        f" {records.name} {records.row(row)}, was {expected[row]:.9g} and is now {found[row]:.9g}; give the model that"
        " began, find out when it changed, or name another output."
    )


# --- A file that lies there already: whose it is, and whether it is what is asked for ---


def existing(target: Path, *, overwrite: bool) -> CollectedMetadata | None:
    """Return what the output holds; none if there is none, or none that must stay.

    Raises:
        InputError: A file that no collection of this version made.
        OutputError: A file that no collection made at all, where one may be overwritten.
    """
    if not target.exists():
        return None
    found = None
    with contextlib.suppress(InputError):  # of a collection, and damaged or of another version
        found = collected.read_metadata(target)
        if found is None and overwrite:
            raise OutputError(
                f"output path {str(target)!r} holds no collected losses, and nothing else is overwritten; name another,"
                " or delete the file yourself."
            )
    if overwrite:
        return None
    if found is None or found.manifest is None:
        raise refused_output(target, "is not the result of a collection as this version writes it")
    return found


def refused_output(target: Path, reason: str) -> InputError:
    """Return the sentence for a file that is in the way."""
    return InputError(
        f"output path {str(target)!r} exists already and {reason}; name another, or ask for it to be overwritten."
    )


def refuse_another(
    target: Path, there: CollectedMetadata, *, asked: Manifest, scorer: Scorer, source: Source
) -> None:
    """Refuse an output that is not what is asked for, or no longer what was written.

    Args:
        target: The output.
        there: What it says of itself.
        asked: What is asked for.
        scorer: The model.
        source: The first table that has records.
    """
    changed = there.manifest and collected.what_changed(there.manifest, asked)
    if changed:
        raise refused_output(target, f"holds other losses: {changed}")
    if _content_of(target) != dict(there.content):
        raise refused_output(target, "holds losses that were changed since they were collected")
    if there.manifest and there.manifest.deterministic:
        with parquet.ParquetFile(str(target)) as file:
            rows = min(asked.batch_size, len(source))
            losses = next(file.iter_batches(batch_size=rows, columns=["loss"]))["loss"].to_numpy()
        records = read_stretch(source, start=0, stop=losses.size).records
        refuse_other_model(scorer, records=records, expected=losses, place=target, eps=there.placing[0])


def _content_of(path: Path) -> dict[str, str] | None:
    """Return the hashes of a file's losses and members, read in constant memory; none if it cannot be read so."""
    try:
        with parquet.ParquetFile(str(path), page_checksum_verification=True) as file:
            return collected.content_of(file.iter_batches(batch_size=_ROWS, columns=["loss", "member"]))
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
        return None


# --- The parts become the output, in constant memory: infinite losses get their place in the end ---


_ROWS = 2**16  # of a row group, at least


@dataclass(eq=False)
class Totals:
    """What all parts together say, as far as it must be known before the first is copied.

    Attributes:
        digests: Of the membership and the features of the records that were scored.
        types: The types of each column in those parts that have it.
        saturated: How many member and non-member losses come from a probability of exactly 0 or 1.
        eps: The spacing near 1 of the model's floats.
        ranges: The range of the finite losses with 0, and of each other score.
        hard: Whether all probabilities were 0 or 1.
        shown: How many classes the shortest answer names, where some name only some; else 0.
        parts: How many there are.
    """

    digests: Digests
    types: defaultdict[str, list[Any]]
    saturated: tuple[int, int] = (0, 0)
    eps: float = 0.0
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    hard: bool = True
    shown: int = 0
    parts: int = 0

    def add(self, part: Any) -> None:
        """Go on with the next part."""
        eps, hard, shown = part_facts(part)
        self.shown = min(filter(None, (shown, self.shown)), default=0)
        self.eps = max(self.eps, eps)
        member, saturated = part["member"].to_numpy(), part["saturated"].to_numpy()
        for column in part.schema:
            if pa.types.is_floating(column.type) and column.name not in OWN_COLUMNS[1:]:
                values, (low, high) = part[column.name].to_numpy(), self.ranges.get(column.name, (0.0, 0.0))
                finite = values[np.isfinite(values)]
                self.ranges[column.name] = float(finite.min(initial=low)), float(finite.max(initial=high))
        self.saturated = (
            self.saturated[0] + int((saturated & member).sum()),
            self.saturated[1] + int((saturated & ~member).sum()),
        )
        self.hard, self.parts = self.hard and hard, self.parts + 1
        self.digests.add({"membership": member.astype(np.uint64)})
        if "fingerprint" in part.column_names:
            self.digests.add({"features": part["fingerprint"].to_numpy()})
        for column in part.schema:
            self.types[column.name].append(column.type)

    @property
    def schema(self) -> Any:
        """The columns that all parts have, each in a type that holds all of it."""
        shared = {name: types for name, types in self.types.items() if len(types) == self.parts}
        return pa.schema([pa.field(name, _common(types)) for name, types in shared.items()])

    @property
    def left(self) -> list[str]:
        """The columns that only some parts have."""
        return [name for name, types in self.types.items() if len(types) < self.parts]


def _common(types: Sequence[Any]) -> Any:
    """Return the type that holds values of all of these: text, where nothing nearer does."""
    try:
        fields = [pa.schema([pa.field("column", kind)]) for kind in dict.fromkeys(types)]
        return pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return pa.string()


def totals(work: Scoring) -> Totals:
    """Return what all parts say.

    Raises:
        OutputError: A part is damaged.
    """
    found = Totals(Digests(), defaultdict(list))
    for unit in work.units:
        found.add(work.part(unit))
    return found


def refuse_other_data(found: Totals, manifest: Manifest, *, folder: Path) -> None:
    """Refuse parts of other records than those that were surveyed."""
    for name, digest in found.digests.result().items():
        if manifest.data.get(name) != digest:
            raise InputError(
                f"the {name} of the tables changed while the records were scored; delete the folder {folder.name!r} and"
                " collect again from tables that nobody writes to."
            )


def merge(
    work: Scoring,
    found: Totals,
    *,
    target: Path,
    scorer: Scorer,
    manifest: Manifest,
    progress: Callable[[int, int], None],
) -> CollectedMetadata:
    """Write the output in the order of the tables, and return what it says of itself.

    Args:
        work: Where the parts are.
        found: What they say.
        target: Where the output goes.
        scorer: What gave the losses.
        manifest: The collection.
        progress: Told how many records of how many were written.

    Raises:
        OutputError: A part is damaged, or the output cannot be written.
    """
    schema, content, done = found.schema, Digests(), 0
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    text = [column.name for column in schema if not any(is_number(column.type) for is_number in numbers)]
    # What the file says of its content is known when that is written, so that it stands in the file and not in the schema.
    settings = {
        "use_dictionary": text,
        "compression": "zstd",
        "write_page_checksum": True,
        "store_schema": False,
    }
    with (
        whole(target, folder=work.folder) as draft,
        parquet.ParquetWriter(str(draft), schema, **settings) as writer,
    ):
        for table in _row_groups(work, schema=schema, found=found):
            writer.write_table(table, row_group_size=table.num_rows)
            content.add_content(table)
            done += table.num_rows
            progress(done, sum(manifest.counts))
        said = _metadata(scorer, found, manifest=manifest, content=content.result())
        writer.add_key_value_metadata({collected.METADATA_KEY: collected.metadata_text(said)})
    return said


def _row_groups(work: Scoring, *, schema: Any, found: Totals) -> Iterator[Any]:
    waiting: list[Any] = []
    for unit in work.units:
        part = work.part(unit)
        for name, (low, high) in found.ranges.items():
            if name in part.column_names:
                placed = clip_saturated(part[name].to_numpy(), eps=found.eps, low=low, high=high)
                part = part.set_column(part.column_names.index(name), name, pa.array(placed))
        waiting.append(part.select(schema.names).replace_schema_metadata(None).cast(schema))
        if sum(table.num_rows for table in waiting) >= _ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _metadata(
    scorer: Scorer, found: Totals, *, manifest: Manifest, content: Mapping[str, str]
) -> CollectedMetadata:
    """Return what the output is to say of itself: the same as `auditor.collect` says in memory."""
    steps = collection_history(scorer.words, saturated=found.saturated, hard=found.hard, shown=found.shown)
    alone = f"left out, because only some of the tables have it: {', '.join(found.left)}"
    return CollectedMetadata(
        scale=scorer.scale,
        history=(*steps, *manifest.warnings, *([alone] if found.left else [])),
        notes=reader_notes(manifest.warnings, hard=found.hard, shown=found.shown),
        saturated=found.saturated,
        scores=tuple(name for name in found.schema.names if name not in OWN_COLUMNS),
        counts=manifest.counts,
        placing=(found.eps, *found.ranges["loss"]),
        content=content,
        manifest=manifest,
    )


# --- The working folder beside it: one process at a time, a manifest that says whose it is, and parts ---


_LOCK = "lock"
# Where a file can be removed while it is open it is removed while it is held, so that nobody takes it in between.
_HELD_FILES_CAN_GO = os.name != "nt"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made if it is not there; left empty, it is removed in the end.

    The system lets go of the lock when the process ends, in whatever way, so that none is ever left behind.

    Raises:
        OutputError: It cannot be made or written to, another process holds it, or the disk has no locks.
    """
    path = folder / _LOCK
    try:
        folder.mkdir(exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        take(handle)
        # Its holder may have removed it between the opening and the taking, and a lock on what is gone is none.
        if not os.path.samestat(os.fstat(handle), path.stat()):
            raise BlockingIOError("another one is there")
    except OSError as error:
        os.close(handle)
        raise OutputError(
            f"output path {str(folder.with_suffix(''))!r} is being collected by another process, or its disk has no"
            f" locks ({error.strerror or error}); wait for it, or name another output."
        ) from error
    try:
        yield
    finally:
        _let_go(handle, path)


def _let_go(handle: int, path: Path) -> None:
    if not _HELD_FILES_CAN_GO:
        os.close(handle)
    with contextlib.suppress(OSError):
        if [item.name for item in path.parent.iterdir()] == [_LOCK]:
            path.unlink()
            path.parent.rmdir()
    if _HELD_FILES_CAN_GO:
        os.close(handle)


# It makes a folder a collection's, from its writing to its removal, which comes last.
MANIFEST = "manifest.json"


def begin(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into a folder without parts."""
    clear(folder)
    collected.write_manifest(folder / MANIFEST, manifest)


def clear(folder: Path) -> None:
    """Remove what a collection wrote here, if one did; nothing else is touched."""
    if (folder / MANIFEST).exists():
        _remove([*parts_in(folder), folder / MANIFEST])
    sweep(folder)


def sweep(folder: Path) -> None:
    """Remove what a process that was killed left unfinished."""
    _remove(drafts(folder))


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error
