"""A long collection into one Parquet file, in constant memory, that loses no work when it is stopped.

The tables are read once for the key of the collection; each unit is scored and written as a part in the folder
``<output>.parts``; in the end the parts are merged into the output, and the folder is removed.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from auditor.collectors.base.records import Records, Source, sampled_groups
from auditor.collectors.base.scorer import Scorer, differences, facts_of, file_warnings
from auditor.collectors.base.tasks import BatchLosses, clip_saturated, concatenated
from auditor.collectors.streaming import parts
from auditor.collectors.streaming.engines import Engine, LocalEngine
from auditor.collectors.streaming.parts import OWN_COLUMNS, Scoring, Unit
from auditor.collectors.streaming.trial import Preflight
from auditor.collectors.tables import collected
from auditor.collectors.tables.collected import CollectedMetadata, Digests, Manifest, Words
from auditor.collectors.tables.opening import open_table
from auditor.collectors.tables.sources import readable
from auditor.core import Array, Booleans, Floats, InputError, OutputError, drafts, whole
from auditor.records.features import hashes_of

_BATCH = 10_000  # records, where it makes no difference to the model
_LEAST = 2  # records in each group
_READ = 512  # records at once at least, where batches are small
_AGAIN = 10  # records that are scored again to recognise the model
_ROWS = 2**16  # of a row group, at least


@dataclass(frozen=True)
class CollectedReport:
    """The result of `collect_to`.

    Attributes:
        path: The file of losses, for `read_losses`.
        n_member: Number of members.
        n_nonmember: Number of non-members.
        scored_now: Number of records scored by this call.
        resumed: Number of records scored before.
        warnings: Warnings for readers of the losses, which are also in their history, and of training records in the model's file.
    """

    path: Path
    n_member: int
    n_nonmember: int
    scored_now: int
    resumed: int
    warnings: tuple[str, ...] = ()


# --- The collection ---


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Scores tables of records into a Parquet file.

    The same collection after an interruption scores only the missing records, in the same batches, and gives the same file
    bit for bit. Once the file is there, the same one scores nothing. A model that answers alike on repeat scores ten records
    again, and is refused if their losses differ from those before: when going on, when the file is there, and before the
    parts are merged, where the records of the trial are scored again too.

    Attributes:
        path: The file to write, ``.parquet``: columns ``loss``, ``member``, those that the sources give, ``fingerprint``,
            ``saturated``, ``correct`` (of a classification) and the scorer's other scores; rows in the order of the tables.
        scorer: Builds the scorer of a batch; other processes build their own with it.
        sources: The tables; together at least 2 members and 2 non-members.
        trial: Tries the scorer on some records of each group, up to 500 spread over each table, before the first is
            scored; not called when going on. Its warnings are announced.
        batch_size: Most records in each call of the model, 1 or more; default as the scorer requires, or 10,000.
        engine: Engine that runs the units.
        setting: Everything else that decides the numbers, by name; without secrets, since it is written to the file.
        without: Columns that the file does not get.
        overwrite: Whether another file at the path is replaced, and another collection's folder emptied.
        announce: Called with a sentence about each event.
        progress: Called with the stage ("Reading", "Scoring", "Merging"), the records that are done, and all of them.
    """

    path: Path
    scorer: Callable[[], Scorer]
    sources: Sequence[Source]
    trial: Callable[[Scorer, Sequence[Records]], Preflight]
    batch_size: int | None = None
    engine: Engine = LocalEngine()  # noqa: RUF009 - a frozen value
    setting: Mapping[str, Any] = field(default_factory=dict)
    without: Sequence[str] = ()
    overwrite: bool = False
    announce: Callable[[str], None] = lambda _: None
    progress: Callable[[str, int, int], None] = lambda _stage, _done, _total: None

    def run(self) -> CollectedReport:
        """Run the unfinished units.

        Raises:
            InputError: Records or outputs that cannot be scored, or a file or folder of another model, data or setting.
            OutputError: A file that cannot be written, or that another process is writing.
            KeyboardInterrupt: Stopped; its message says how to go on.
        """
        target = self.path
        folder = target.with_name(f"{target.name}.parts")
        with parts.locked(folder):
            complete = complete_file(target, overwrite=self.overwrite)
            begun = collected.read_manifest(folder / parts.MANIFEST)
            scorer = self.scorer()
            manifest = self._manifest(scorer, complete.manifest if complete else None, begun)
            work = Scoring(self.scorer, tuple(self.sources), folder, manifest, scorer)
            total = resumed = sum(manifest.counts)
            if complete is not None:
                _refuse_other_file(target, complete, work=work, scorer=scorer)
                self.announce(f"{target.name} is complete already: nothing is scored.")
                if begun is not None and begun.key == manifest.key:
                    parts.clear(folder)  # files left by a killed process
            else:
                done = self._parts_there(work, begun)
                resumed = sum(map(len, done))
                complete = self._scored(work, scorer, begun if done else None, done=done, target=target)
                parts.clear(folder)
        warned = (*complete.history[1:], *file_warnings(complete))
        return CollectedReport(target, *complete.counts, total - resumed, resumed, warned)

    def _manifest(self, scorer: Scorer, *earlier: Manifest | None) -> Manifest:
        """Return the settings that decide the numbers, with the batch size of an earlier run unless another is named."""
        size = self.batch_size or scorer.records_at_once or _BATCH
        counts, digests = self._survey(scorer, step=size)
        result = Manifest(
            model=scorer.identity,
            losses=scorer.words,
            data=digests,
            records=tuple(map(len, self.sources)),
            counts=counts,
            setting=json.loads(json.dumps(dict(self.setting))),  # as it comes back from a file
            batch_size=size,
            unit_size=parts.unit_size(self.sources, batch_size=size),
        )
        for old in filter(None, earlier if self.batch_size is None else ()):
            same = replace(result, batch_size=old.batch_size, unit_size=old.unit_size)
            result = same if same.key == old.key else result
        return result

    def _survey(self, scorer: Scorer, *, step: int) -> tuple[tuple[int, int], dict[str, str]]:
        """Read all tables once; return the numbers of members and non-members, and a SHA-256 of each column by name."""
        total, read, members = sum(map(len, self.sources)), 0, 0
        digests, rows = Digests(), max(step, _READ)
        for source in self.sources:
            for start in range(0, len(source), rows):
                batch = source.read(start, min(start + rows, len(source)))
                scorer.check(batch.records)
                columns = {"labels": batch.records.labels, **batch.columns}
                digests.add({name: _words(column) for name, column in columns.items() if name != "label"})
                digests.add(_content(batch.member, batch.fingerprint))
                read += len(batch.records)
                members += int(batch.member.sum())
                self.progress("Reading", read, total)
        if min(members, total - members) < _LEAST:
            raise InputError(
                f"the tables must hold at least {_LEAST} members and {_LEAST} non-members, got {members} and"
                f" {total - members}; name a table, or a membership column, that has both."
            )
        return (members, total - members), digests.result()

    def _parts_there(self, work: Scoring, begun: Manifest | None) -> set[Unit]:
        """Return the units whose parts are on disk; none to start again."""
        files = parts.parts_in(work.folder)
        if files and begun is None:
            raise InputError(
                f"folder {str(work.folder)!r} must hold an interrupted collection or no parts, got {files[0].name!r}"
                " without a manifest; move it away, or name another output."
            )
        changed = begun and collected.what_changed(begun, work.manifest)
        if changed and files and not self.overwrite:
            raise InputError(
                f"folder {str(work.folder)!r} holds losses of an interrupted collection, but {changed}; repeat the call"
                " that began it, delete the folder to start again, or name another output."
            )
        if begun is None or changed:
            return set()
        parts.remove(drafts(work.folder))
        return {unit for unit in work.units if work.part(unit) is not None}

    def _scored(
        self, work: Scoring, scorer: Scorer, begun: Manifest | None, *, done: set[Unit], target: Path
    ) -> CollectedMetadata:
        """Score the missing records, and merge all parts."""
        total, resumed = sum(work.manifest.counts), sum(map(len, done))
        answer = None
        if begun is not None:
            manifest = begun
            _refuse_other_model(scorer, work, manifest)
            self.announce(f"Going on: {resumed:,} of {total:,} records are scored already.")
        else:
            manifest = work.manifest
            tried = self.trial(scorer, sampled_groups(self.sources))
            for sentence in (*tried.warnings, *tried.provisional):
                self.announce(sentence)
            manifest = replace(manifest, warnings=tried.warnings, deterministic=tried.deterministic)
            answer = tried.answer
            parts.clear(work.folder)
            collected.write_manifest(work.folder / parts.MANIFEST, manifest)
        with _naming_parts(work, total):
            pending, scored = [unit for unit in work.units if unit not in done], resumed
            self.progress("Scoring", scored, total)
            with closing(self.engine.results(work, pending)) as results:
                for unit in results:
                    scored += len(unit)
                    self.progress("Scoring", scored, total)
            merging = _Merging(work, self.without)
        if pending:
            _refuse_other_model(scorer, work, manifest)
            if answer and manifest.deterministic:
                losses = answer.losses.loss
                refuse_other_losses(scorer, records=answer.records, expected=losses, place=work.folder)
        for name, digest in merging.digests.result().items():
            if manifest.data.get(name) != digest:
                raise InputError(
                    f"the {name} of the tables changed while the records were scored; delete the folder"
                    f" {work.folder.name!r} and collect again from tables that nothing writes to."
                )
        with _naming_parts(work, total):
            if target.exists() and not self.overwrite:
                raise refused_output(target, "appeared while the records were scored")
            return merging.write(target, scorer, manifest, partial(self.progress, "Merging"))


def _words(column: Array) -> Words:
    """Return a 64-bit hash of each row of a column, or of a table."""
    table = column.reshape(column.shape[0], -1)
    try:
        return hashes_of(table)
    except InputError:  # values of other types than a feature has
        texts = np.array([repr(row) for row in table.tolist()], dtype=object)[:, None]
        return hashes_of(texts)


def _content(member: Booleans, fingerprint: Words | None) -> dict[str, Words]:
    """Return the names of the columns besides the losses in the tables and in the parts."""
    words = {"membership": member.astype(np.uint64)}
    return words if fingerprint is None else {**words, "features": fingerprint}


@contextmanager
def _naming_parts(work: Scoring, total: int) -> Iterator[None]:
    """Add to an interrupt or a refusal how many records are scored, and that the same call goes on."""
    try:
        yield
    except (KeyboardInterrupt, InputError, OutputError) as error:
        n_scored = sum(len(unit) for unit in work.units if work.path(unit).exists())
        words = (
            f"{n_scored:,} of {total:,} records are scored and kept in {work.folder.name!r}, and the same call, of the same"
            " model and tables, goes on from there."
        )
        if isinstance(error, KeyboardInterrupt):
            nothing = "nothing is scored yet, and the same call starts again."
            raise KeyboardInterrupt(f"interrupted: {words if n_scored else nothing}") from error
        if not n_scored:
            raise
        kind = InputError if isinstance(error, InputError) else OutputError
        raise kind(f"{str(error).rstrip('.')}; {words}") from error


# --- Is the model the one that began: some of its losses are computed again and compared ---


def _refuse_other_model(scorer: Scorer, work: Scoring, manifest: Manifest) -> None:
    """Refuse a model that gives other losses than in the first part; one that answers at random is not held to them."""
    if not manifest.deterministic:
        return
    unit = next(unit for unit in work.units if work.path(unit).exists())
    losses = work.written(unit)["loss"].to_numpy()[: manifest.batch_size]
    records = work.sources[unit.source].read(unit.start, unit.start + losses.size).records
    refuse_other_losses(scorer, records=records, expected=losses, place=work.folder)


def refuse_other_losses(
    scorer: Scorer, *, records: Records, expected: Floats, place: Path, eps: float = 0.0
) -> None:
    """Refuse a model that gives other losses than before.

    Ten records are scored again. The same model may round otherwise in so small a batch; where they differ, the whole batch
    is scored again as it was.

    Args:
        scorer: The model.
        records: One batch of the model, or fewer.
        expected: The losses that it gave them.
        place: Folder of these.
        eps: The spacing of floats by which infinite losses got their place, if they did.

    Raises:
        InputError: The losses differ.
    """
    for n in sorted({min(_AGAIN, expected.size), expected.size}):
        now = scorer.score(records.part(0, n))
        apart = differences(expected[:n], now.loss[:n], eps=max(eps, now.eps), scale=scorer.scale) != 0
        if not apart.any():
            return
    row = int(np.argmax(apart))
    raise InputError(
        f"{str(place)!r} holds losses, but the model changed, or answers differently each time: the loss of"
        f" {records.name} {records.row(row)}, was {expected[row]:.9g} and is now {now.loss[row]:.9g}; use the model that"
        " began, find out when it changed, or name another output."
    )


# --- A file that lies there already ---


def complete_file(target: Path, *, overwrite: bool) -> CollectedMetadata | None:
    """Return the metadata of the output; none if there is no output, or none that must stay.

    Raises:
        InputError: A file that no collection of this version made.
        OutputError: A file that no collection made at all, where one may be overwritten.
    """
    if not target.exists():
        return None
    result = None
    with suppress(InputError):  # of a collection, and damaged or of another version
        result = collected.read_metadata(target)
        if result is None and overwrite:
            raise OutputError(
                f"output path {str(target)!r} holds no collected losses, and nothing else is overwritten; name another,"
                " or delete the file yourself."
            )
    if overwrite:
        return None
    if result is None or result.manifest is None:
        raise refused_output(target, "is not the result of a collection as this version writes it")
    return result


def refused_output(target: Path, reason: str) -> InputError:
    """Return the sentence for a file that is in the way."""
    return InputError(
        f"output path {str(target)!r} exists already and {reason}; name another, or request that it is overwritten."
    )


def _refuse_other_file(target: Path, complete: CollectedMetadata, *, work: Scoring, scorer: Scorer) -> None:
    """Refuse an output that is not the result of this work; whether its losses were altered since is checked when they are read."""
    manifest = complete.manifest or work.manifest
    changed = collected.what_changed(manifest, work.manifest)
    if changed:
        raise refused_output(target, f"holds other losses: {changed}")
    if not manifest.deterministic:
        return
    source = next(source for source in work.sources if len(source))
    with readable(target):
        reader = open_table(target).reader(["loss"], text=())
        losses = reader.read(0, min(manifest.batch_size, len(source), len(reader))).column("loss")
    records = source.read(0, losses.size).records
    refuse_other_losses(scorer, records=records, expected=losses, place=target, eps=complete.eps)


# --- The parts become the output, in constant memory: infinite losses get their place in the end ---


class _Merging:
    """Reads all parts for the facts needed before the first is copied, and then copies them in the order of the tables.

    Attributes:
        digests: Hashes of the membership and the features of the records that were scored.

    Raises:
        OutputError: A part is damaged.
    """

    def __init__(self, work: Scoring, without: Sequence[str]) -> None:
        self._work, self.digests = work, Digests()
        self._saturated, facts = np.zeros(2, dtype=np.int64), list[BatchLosses]()
        # The range of the finite losses with 0, and of each other score.
        self._ranges: dict[str, tuple[float, float]] = {}
        types = defaultdict[str, list[Any]](list)
        for part in map(work.written, work.units):
            facts.append(parts.facts_in(part))
            member = part["member"].to_numpy()
            hashes = part["fingerprint"].to_numpy() if "fingerprint" in part.column_names else None
            self.digests.add(_content(member, hashes))
            self._saturated += np.bincount(~member[part["saturated"].to_numpy()], minlength=2)
            for name, kind in zip(part.schema.names, part.schema.types, strict=True):
                types[name].append(kind)
                if pa.types.is_floating(kind) and name not in OWN_COLUMNS[1:]:
                    values, (low, high) = part[name].to_numpy(), self._ranges.get(name, (0.0, 0.0))
                    finite = values[np.isfinite(values)]
                    self._ranges[name] = float(finite.min(initial=low)), float(finite.max(initial=high))
        self._both = concatenated(facts)
        self._left = [name for name, kinds in types.items() if len(kinds) < len(work.units)]
        shared = [name for name in types if name not in (*self._left, *without)]
        self._schema = pa.schema([(name, _common(types[name])) for name in shared])

    def write(
        self, target: Path, scorer: Scorer, manifest: Manifest, progress: Callable[[int, int], None]
    ) -> CollectedMetadata:
        """Write the output, and return its metadata.

        Raises:
            OutputError: A part is damaged, or the output cannot be written.
        """
        content, done = Digests(), 0
        text = [column.name for column in self._schema if not pa.types.is_primitive(column.type)]
        # The metadata of the content are known when it is written, so they stand in the file and not in the schema.
        settings: Any = {"compression": "zstd", "write_page_checksum": True, "store_schema": False}
        with (
            whole(target, folder=self._work.folder) as draft,
            parquet.ParquetWriter(str(draft), self._schema, use_dictionary=text, **settings) as writer,
        ):
            for table in self._row_groups():
                writer.write_table(table, row_group_size=table.num_rows)
                content.add_content(table)
                done += table.num_rows
                progress(done, sum(manifest.counts))
            metadata = self._metadata(scorer, manifest, content.result())
            writer.add_key_value_metadata({collected.METADATA_KEY: collected.metadata_text(metadata)})
        return metadata

    def _row_groups(self) -> Iterator[Any]:
        """Yield the rows of all parts, some thousands at once; infinite losses get their place."""
        waiting: list[Any] = []
        for unit in self._work.units:
            part = self._work.written(unit).select(self._schema.names)
            for at, name in enumerate(self._schema.names):
                if name in self._ranges:
                    low, high = self._ranges[name]
                    placed = clip_saturated(part[name].to_numpy(), eps=self._both.eps, low=low, high=high)
                    part = part.set_column(at, name, pa.array(placed))
            waiting.append(part.replace_schema_metadata(None).cast(self._schema))
            if sum(table.num_rows for table in waiting) >= _ROWS or unit is self._work.units[-1]:
                yield pa.concat_tables(waiting).combine_chunks()
                waiting = []

    def _metadata(self, scorer: Scorer, manifest: Manifest, content: Mapping[str, str]) -> CollectedMetadata:
        """Return the metadata of the output: the same as `auditor.collect` says in memory."""
        member, nonmember = self._saturated.tolist()
        facts = facts_of(scorer, self._both, saturated=(member, nonmember), noticed=manifest.warnings)
        if self._left:
            alone = f"left out, because only some of the tables have it: {', '.join(self._left)}"
            facts["history"] = (*facts["history"], alone)
        return CollectedMetadata(
            **facts, counts=manifest.counts, eps=self._both.eps, content=content, manifest=manifest
        )


def _common(types: Sequence[Any]) -> Any:
    """Return the type that holds values of all of these: text, where nothing nearer does."""
    try:
        fields = [pa.schema([("column", kind)]) for kind in dict.fromkeys(types)]
        return pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return pa.string()
