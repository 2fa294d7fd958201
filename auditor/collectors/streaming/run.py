"""One run of a long collection: what is there already, what is left to do, and the file in the end."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from auditor.collectors.base.records import Batch, Records, Source, sampled_groups
from auditor.collectors.base.scorer import Scorer
from auditor.collectors.streaming import output
from auditor.collectors.streaming.output import NoFolderError, Workplace, locked
from auditor.collectors.streaming.units import (
    BuiltScorer,
    Collection,
    Engine,
    LocalEngine,
    UnitReport,
    unit_size,
)
from auditor.collectors.tables.collected import CollectedMetadata, Manifest, plain_setting, what_changed
from auditor.core import validate
from auditor.core.errors import InputError, OutputError

# --- What a long collection has done ---


@dataclass(frozen=True)
class CollectedReport:
    """The result of `collect_to`.

    Attributes:
        path: The file of losses, for `read_losses`.
        n_member: How many members it holds.
        n_nonmember: How many non-members.
        scored_now: How many records were scored by this call.
        resumed: How many had been scored before.
        warnings: What a reader of the losses must know; it stands in their history too.
    """

    path: Path
    n_member: int
    n_nonmember: int
    scored_now: int
    resumed: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """What was noticed when a scorer was tried on a few records.

    Attributes:
        warnings: Sentences for the history of the losses; they must hold whatever the other records give.
        deterministic: Whether the model answered alike when it was asked again.
    """

    warnings: tuple[str, ...] = ()
    deterministic: bool = True


# --- Whatever ends a collection early says what is kept of it ---


@contextmanager
def _saying_what_is_kept(scored: Callable[[], int], *, total: int, folder: str) -> Iterator[None]:
    """Add to an interrupt or a refusal how many records are scored, and that the same call goes on, if it can.

    Args:
        scored: How many, as asked at the end.
        total: Of how many.
        folder: The name of the folder that they are in.
    """

    def how_to_go_on() -> str:
        return (
            f"{scored():,} of {total:,} records are scored and kept in {folder!r}, and the same call, of the same model"
            " and tables, goes on from there"
        )

    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"interrupted: {how_to_go_on()}.") from error
    except (InputError, OutputError) as error:
        if not scored() or isinstance(error, output.ChangedDataError | output.ChangedModelError):
            raise
        kind = InputError if isinstance(error, InputError) else OutputError
        raise kind(f"{str(error).rstrip('.')}; {how_to_go_on()}.") from error


# --- One run ---


_BATCH = 10_000  # records, where it makes no difference to the model
_PROBED = 100  # units: the model is asked again after so many, for at most as many records as one has
_SAME_MODEL = "give the same model, delete the folder to begin anew, or name another output"
_ONE_MODEL = "find out when it changed, and once it stays the same delete the folder to begin anew, or name another output"


@dataclass(frozen=True, eq=False)
class _Run:
    """One call of `collect_to`, while it holds the lock: its arguments, and the reports of the parts on disk."""

    target: Path
    place: Workplace
    factory: Callable[[], Scorer]
    scorer: Scorer
    sources: tuple[Source, ...]
    batch_size: int | None
    engine: Engine
    setting: dict[str, Any]
    overwrite: bool
    watch: Callable[[Batch], None]
    before: Callable[[Scorer, Sequence[Records]], Trial]
    announce: Callable[[str], None]
    progress: Callable[[str, int, int], None]
    reports: dict[int, UnitReport] = field(default_factory=dict)

    def result(self) -> CollectedReport:
        """Do what is not done yet."""
        output.refuse_foreign(self.target, overwrite=self.overwrite)
        there, saved, ended = output.collected_metadata(self.target), self._begun(), self._ended()
        if there is None and not self.overwrite:
            self.place.refuse_foreign()
        manifest = self._as_before(self._survey(), there.manifest if there else None, saved, ended)
        complete = ended is not None and ended.key == manifest.key
        if there is not None and (complete or not self.overwrite):
            report = self._already(there, manifest)
            if saved is None or saved.key == manifest.key:
                self.place.clear()  # what a killed process left
            return report
        collection = self._collection(manifest)
        going = self._going_on(saved, manifest, collection)
        manifest = self._start(manifest) if going is None else going
        resumed = self._scored
        with _saying_what_is_kept(
            lambda: self._scored, total=sum(manifest.counts), folder=self.place.folder.name
        ):
            self._score(collection, manifest)
            found = self._merge(collection, manifest)
        return self._report(found, scored_now=sum(manifest.counts) - resumed)

    def complete(self) -> CollectedReport:
        """Return what the output holds, if it is what is asked for; the working folder need not be there."""
        output.refuse_foreign(self.target, overwrite=False)
        there = output.collected_metadata(self.target)
        if there is None:
            raise output.refused_output(self.target, output.FOREIGN)
        return self._already(there, self._as_before(self._survey(), there.manifest))

    def _begun(self) -> Manifest | None:
        try:
            return self.place.manifest()
        except InputError:
            if not self.overwrite:
                raise
            return None

    def _ended(self) -> Manifest | None:
        try:
            return self.place.finished()
        except InputError:
            return None  # the output says what it is

    def _survey(self) -> Manifest:
        """Return what is asked for."""
        if not self.sources:
            raise InputError("sources must hold at least one table, got none.")
        size = self.batch_size or self.scorer.records_at_once or _BATCH
        data = output.survey(
            self.sources,
            scorer=self.scorer,
            step=size,
            watch=self.watch,
            progress=lambda done, total: self.progress("Reading", done, total),
        )
        return Manifest(
            model=self.scorer.identity,
            losses=self.scorer.words,
            data=data.digests,
            records=tuple(map(len, self.sources)),
            counts=data.counts,
            setting=self.setting,
            batch_size=size,
            unit_size=unit_size(self.sources, batch_size=size),
        )

    def _as_before(self, manifest: Manifest, *earlier: Manifest | None) -> Manifest:
        """Return what is asked for in the batches of an earlier run of it, unless others are asked for."""
        for old in earlier:
            if old is not None and self.batch_size is None:
                same = replace(manifest, batch_size=old.batch_size, unit_size=old.unit_size)
                if same.key == old.key:
                    return same
        return manifest

    def _collection(self, manifest: Manifest) -> Collection:
        return Collection(
            scorer=self.factory,
            sources=self.sources,
            path=self.target,
            batch_size=manifest.batch_size,
            unit_size=manifest.unit_size,
            key=manifest.key,
            setting=self.setting,
        )

    # --- What is there already ---------------------------------------------------------------------

    def _already(self, there: CollectedMetadata, manifest: Manifest) -> CollectedReport:
        """Return what a complete file holds, if it is what is asked for."""
        if there.manifest is None:
            raise output.refused_output(self.target, output.FOREIGN)
        changed = what_changed(there.manifest, manifest)
        if changed:
            raise output.refused_output(self.target, f"holds other losses: {changed}")
        output.refuse_rewritten(self.target, there)
        if there.manifest.deterministic:
            output.probe_output(self.target, there, manifest=manifest, scorer=self.scorer, source=self._first)
        self.announce(f"{self.target.name} is complete already: nothing is scored.")
        return self._report(there, scored_now=0)

    def _going_on(
        self, saved: Manifest | None, manifest: Manifest, collection: Collection
    ) -> Manifest | None:
        """Return the manifest to go on with, once the parts on disk are known; none to begin anew."""
        if saved is None:
            return None
        folder = str(self.place.folder)
        changed = what_changed(saved, manifest)
        if changed and self.place.has_parts() and not self.overwrite:
            raise InputError(
                f"folder {folder!r} holds losses of an interrupted collection, but {changed}; give what it was begun"
                " with, delete the folder to begin anew, or name another output."
            )
        if changed:
            return None
        self.reports.update(self.place.parts(collection, damaged=self._tell_damaged))
        if not self.reports:
            return None
        if saved.deterministic:
            self._probe(collection, "an interrupted collection", fix=_SAME_MODEL)
        self.announce(f"Going on: {self._scored:,} of {sum(manifest.counts):,} records are scored already.")
        return saved

    def _probe(self, collection: Collection, whose: str, *, fix: str) -> None:
        """Refuse a model that is not the one that gave the first part."""
        unit, folder = self.reports[min(self.reports)].unit, self.place.folder
        kept = f"folder {str(folder)!r} holds {self._scored:,} losses of {whose}"
        output.probe_part(self.scorer, collection=collection, unit=unit, folder=folder, kept=kept, fix=fix)

    def _tell_damaged(self, path: Path) -> None:
        self.announce(f"{path.name} is damaged: its records are scored again.")

    # --- What is left to do ------------------------------------------------------------------------

    def _start(self, manifest: Manifest) -> Manifest:
        trial = self.before(self.scorer, sampled_groups(self.sources))
        manifest = replace(manifest, warnings=tuple(trial.warnings), deterministic=trial.deterministic)
        self.place.begin(manifest)
        return manifest

    @property
    def _first(self) -> Source:
        return next(source for source in self.sources if len(source))

    @property
    def _scored(self) -> int:
        return sum(len(report.unit) for report in self.reports.values())

    def _score(self, collection: Collection, manifest: Manifest) -> None:
        total = sum(manifest.counts)
        pending = [unit for unit in collection.units if unit.index not in self.reports]
        already = len(self.reports)

        def done(report: UnitReport) -> None:
            self.reports[report.unit.index] = report
            self.progress("Scoring", self._scored, total)
            new = len(self.reports) - already
            if manifest.deterministic and manifest.model is None and new % _PROBED == 0:
                self._probe(collection, "this collection", fix=_ONE_MODEL)

        self.progress("Scoring", self._scored, total)
        if pending:
            self.engine.run(collection, pending, folder=self.place.folder, scorer=self.scorer, done=done)
        missing = len(collection.units) - len(self.reports)
        if missing:
            raise OutputError(
                f"{missing} of {len(collection.units)} parts were not written; run the same again."
            )
        if pending and manifest.deterministic:
            self._probe(collection, "this collection", fix=_ONE_MODEL)

    def _merge(self, collection: Collection, manifest: Manifest) -> CollectedMetadata:
        if self.target.exists() and not self.overwrite:
            raise output.refused_output(self.target, "appeared while the records were scored")
        found = output.merge(
            collection,
            folder=self.place.folder,
            scorer=self.scorer,
            manifest=manifest,
            reports=[self.reports[unit.index] for unit in collection.units],
            progress=lambda done, total: self.progress("Merging", done, total),
        )
        self.place.finish()
        return found

    def _report(self, found: CollectedMetadata, *, scored_now: int) -> CollectedReport:
        n_member, n_nonmember = found.counts
        return CollectedReport(
            path=self.target,
            n_member=n_member,
            n_nonmember=n_nonmember,
            scored_now=scored_now,
            resumed=n_member + n_nonmember - scored_now,
            warnings=found.history[1:],
        )


# --- Collects into a file, part by part: stopped at any moment and started again, it goes on where it was ---


def stream_to(
    path: str | os.PathLike[str],
    *,
    scorer: Scorer | Callable[[], Scorer],
    sources: Sequence[Source],
    batch_size: int | None = None,
    engine: Engine | None = None,
    setting: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    watch: Callable[[Batch], None] = lambda _: None,
    before: Callable[[Scorer, Sequence[Records]], Trial] = lambda _scorer, _groups: Trial(),
    announce: Callable[[str], None] = lambda _: None,
    progress: Callable[[str, int, int], None] = lambda _stage, _done, _total: None,
) -> CollectedReport:
    """Score tables of records into a Parquet file, in constant memory and so that no work is lost.

    The parts lie in the folder ``<path>.parts`` until the file is complete. The same call after an interruption scores
    only what is not there yet, in the same batches, and gives the same file bit for bit. Once the file is there, the
    same call scores nothing. A model that answers alike on repeat is asked for ten records again, and refused if their
    losses are others than before: when going on, when the file is there, before the parts are merged, and where it has
    no identity after each hundred parts.

    Args:
        path: The file to write, ``.parquet``: columns ``loss``, ``member``, what the sources give, ``fingerprint``,
            ``saturated`` and the scorer's other scores; rows in the order of the tables.
        scorer: What scores a batch, or a factory that builds it (which other processes can do too).
        sources: The tables; together at least 2 members and 2 non-members.
        batch_size: Records in each call of the model; default what the scorer wants, or 10,000.
        engine: What runs the units; default one after another in this process.
        setting: Everything else that decides the numbers, by name; without secrets, since it is written to the file.
        overwrite: Whether another file at the path is replaced, and another collection's folder emptied.
        watch: Told of each stretch of records, in order, before any is scored.
        before: Tries the scorer on some records of each group, up to 500 spread over each table, before the first is
            scored; not called when going on.
        announce: Told in a sentence what happens.
        progress: Told the stage ("Reading", "Scoring", "Merging"), the records that are done, and all of them.

    Returns:
        Where the losses are and how many were scored.

    Raises:
        InputError: Records or outputs that cannot be scored, or a file or folder of another model, data or setting.
        OutputError: A file that cannot be written, or that another process is writing.
        KeyboardInterrupt: Stopped; its message says how to go on.
    """
    target = _target(path)
    factory = BuiltScorer(cast("Scorer", scorer)) if hasattr(scorer, "score") else scorer
    size = None if batch_size is None else validate.at_least("batch_size", batch_size, least=1)
    folder = target.with_name(f"{target.name}.parts")
    place = Workplace(folder)

    def run() -> _Run:
        return _Run(
            target=target,
            place=place,
            factory=factory,
            scorer=factory(),
            sources=tuple(sources),
            batch_size=size,
            engine=LocalEngine() if engine is None else engine,
            setting=plain_setting(setting or {}),
            overwrite=overwrite,
            watch=watch,
            before=before,
            announce=announce,
            progress=progress,
        )

    try:
        with locked(folder):
            place.refuse_elsewhere(target)
            return run().result()
    except NoFolderError:
        if overwrite or not target.exists():
            raise
        return run().complete()  # as on a disk that is read only


def _target(path: str | os.PathLike[str]) -> Path:
    try:
        target = Path(path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise OutputError(
            f"output path {str(path)!r} is not a path that can be written: {validate.one_line(error)}."
        ) from error
    if target.suffix.lower() != ".parquet":
        raise InputError(
            f"output path {str(path)!r} must end in .parquet, got {target.suffix or 'no extension'!r}; name it so."
        )
    if not target.parent.is_dir():
        raise OutputError(
            f"output path {str(path)!r} cannot be written: the folder {str(target.parent)!r} does not exist; create it"
            " first."
        )
    if target.exists() and not target.is_file():
        raise OutputError(f"output path {str(path)!r} is not an ordinary file; name one.")
    return target
