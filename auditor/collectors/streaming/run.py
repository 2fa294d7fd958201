"""One run of a long collection: what is there already, what is left to do, and the file in the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from auditor.collectors.records import Records
from auditor.collectors.samples import sampled_groups
from auditor.collectors.scorer import Scorer
from auditor.collectors.sources.source import Batch, Source
from auditor.collectors.streaming.collection import Collection, UnitReport, unit_size
from auditor.collectors.streaming.engine import Engine
from auditor.collectors.streaming.identity import surveyed
from auditor.collectors.streaming.kept import kept
from auditor.collectors.streaming.manifest import Manifest, difference
from auditor.collectors.streaming.merge import merge
from auditor.collectors.streaming.metadata import CollectedMetadata
from auditor.collectors.streaming.output import (
    FOREIGN,
    collected,
    probe_output,
    refusal,
    refuse_foreign,
    refuse_rewritten,
)
from auditor.collectors.streaming.probe import probe_part
from auditor.collectors.streaming.report import CollectedReport, Trial
from auditor.collectors.streaming.workplace import Workplace
from auditor.errors import InputError, OutputError

__all__ = ["Run"]

_BATCH = 10_000  # records, where it makes no difference to the model
_PROBED = 100  # units: the model is asked again after so many, for at most as many records as one has
_SAME_MODEL = "give the same model, delete the folder to begin anew, or name another output"
_ONE_MODEL = "find out when it changed, and once it stays the same delete the folder to begin anew, or name another output"


@dataclass(frozen=True, eq=False)
class Run:
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
        refuse_foreign(self.target, overwrite=self.overwrite)
        there, saved, ended = collected(self.target), self._begun(), self._ended()
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
        with kept(lambda: self._scored, total=sum(manifest.counts), folder=self.place.folder.name):
            self._score(collection, manifest)
            found = self._merge(collection, manifest)
        return self._report(found, scored_now=sum(manifest.counts) - resumed)

    def complete(self) -> CollectedReport:
        """Return what the output holds, if it is what is asked for; the working folder need not be there."""
        refuse_foreign(self.target, overwrite=False)
        there = collected(self.target)
        if there is None:
            raise refusal(self.target, FOREIGN)
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
        data = surveyed(
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
            raise refusal(self.target, FOREIGN)
        changed = difference(there.manifest, manifest)
        if changed:
            raise refusal(self.target, f"holds other losses: {changed}")
        refuse_rewritten(self.target, there)
        if there.manifest.deterministic:
            probe_output(self.target, there, manifest=manifest, scorer=self.scorer, source=self._first)
        self.announce(f"{self.target.name} is complete already: nothing is scored.")
        return self._report(there, scored_now=0)

    def _going_on(
        self, saved: Manifest | None, manifest: Manifest, collection: Collection
    ) -> Manifest | None:
        """Return the manifest to go on with, once the parts on disk are known; none to begin anew."""
        if saved is None:
            return None
        folder = str(self.place.folder)
        changed = difference(saved, manifest)
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
        probe_part(self.scorer, collection=collection, unit=unit, folder=folder, kept=kept, fix=fix)

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
            raise refusal(self.target, "appeared while the records were scored")
        found = merge(
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
