"""One long collection: what is there already, what is left to do, and the file in the end."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from auditor.collectors.base.records import Batch, Records, Source, sampled_groups
from auditor.collectors.base.scorer import Scorer
from auditor.collectors.streaming import output, units
from auditor.collectors.streaming.engines import Engine, LocalEngine
from auditor.collectors.streaming.trial import Answer, Preflight
from auditor.collectors.tables.collected import CollectedMetadata, Manifest, read_manifest, what_changed
from auditor.core.errors import InputError, OutputError
from auditor.core.files import check_writable


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


def checked_target(path: str | os.PathLike[str], *, inputs: Iterable[Path] = ()) -> Path:
    """Return where the losses go, if they can be written there without replacing an input.

    Raises:
        InputError: A name that does not end in ``.parquet``.
        OutputError: As for `check_writable`.
    """
    check_writable([Path(path)], inputs=inputs)
    target = Path(path).resolve()
    if target.suffix.lower() != ".parquet":
        raise InputError(
            f"output path {str(path)!r} must end in .parquet, got {target.suffix or 'no extension'!r}; name it so."
        )
    return target


_BATCH = 10_000  # records, where it makes no difference to the model


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Scores tables of records into a Parquet file, in constant memory and so that no work is lost.

    The parts lie in the folder ``<path>.parts`` until the file is complete. The same collection after an interruption
    scores only what is not there yet, in the same batches, and gives the same file bit for bit. Once the file is there, the
    same one scores nothing. A model that answers alike on repeat is asked for ten records again, and refused if their
    losses are others than before: when going on, when the file is there, and before the parts are merged, when it is also
    asked again what it was asked on trial.

    Attributes:
        path: The file to write, ``.parquet``: columns ``loss``, ``member``, what the sources give, ``fingerprint``,
            ``saturated``, ``correct`` (of a classification) and the scorer's other scores; rows in the order of the tables.
        scorer: Builds what scores a batch; other processes build their own with it.
        sources: The tables; together at least 2 members and 2 non-members.
        batch_size: Records in each call of the model, 1 or more; default what the scorer wants, or 10,000.
        engine: What runs the units.
        setting: Everything else that decides the numbers, by name; without secrets, since it is written to the file.
        overwrite: Whether another file at the path is replaced, and another collection's folder emptied.
        watch: Told of each stretch of records, in order, before any is scored.
        trial: Tries the scorer on some records of each group, up to 500 spread over each table, before the first is
            scored; not called when going on.
        announce: Told in a sentence what happens.
        progress: Told the stage ("Reading", "Scoring", "Merging"), the records that are done, and all of them.
    """

    path: str | os.PathLike[str]
    scorer: Callable[[], Scorer]
    sources: Sequence[Source]
    batch_size: int | None = None
    engine: Engine = LocalEngine()  # noqa: RUF009 - a frozen value
    setting: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    watch: Callable[[Batch], None] = lambda _: None
    trial: Callable[[Scorer, Sequence[Records]], Preflight] | None = None
    announce: Callable[[str], None] = lambda _: None
    progress: Callable[[str, int, int], None] = lambda _stage, _done, _total: None

    def run(self) -> CollectedReport:
        """Do what is not done yet.

        Raises:
            InputError: Records or outputs that cannot be scored, or a file or folder of another model, data or setting.
            OutputError: A file that cannot be written, or that another process is writing.
            KeyboardInterrupt: Stopped; its message says how to go on.
        """
        with output.locked(self._folder):
            there = output.existing(self._target, overwrite=self.overwrite)
            begun = read_manifest(self._folder / output.MANIFEST)
            asked = self._as_before(self._asked(), there.manifest if there else None, begun)
            if there is not None:
                return self._already(there, asked, begun)
            return self._scored(asked, begun)

    @cached_property
    def _target(self) -> Path:
        return checked_target(self.path)

    @cached_property
    def _folder(self) -> Path:
        return self._target.with_name(f"{self._target.name}.parts")

    @cached_property
    def _scorer(self) -> Scorer:
        return self.scorer()

    # --- What is asked for, and what is there already ---

    def _asked(self) -> Manifest:
        size = self.batch_size or self._scorer.records_at_once or _BATCH
        told = partial(self.progress, "Reading")
        counts, digests = output.survey(
            self.sources, scorer=self._scorer, step=size, watch=self.watch, progress=told
        )
        return Manifest(
            model=self._scorer.identity,
            losses=self._scorer.words,
            data=digests,
            records=tuple(map(len, self.sources)),
            counts=counts,
            setting=json.loads(json.dumps(dict(self.setting))),  # as it comes back from a file
            batch_size=size,
            unit_size=units.unit_size(self.sources, batch_size=size),
        )

    def _as_before(self, asked: Manifest, *earlier: Manifest | None) -> Manifest:
        """Return what is asked for in the batches of an earlier run of it, unless others are asked for."""
        for old in earlier:
            if old is not None and self.batch_size is None:
                same = replace(asked, batch_size=old.batch_size, unit_size=old.unit_size)
                if same.key == old.key:
                    return same
        return asked

    def _already(self, there: CollectedMetadata, asked: Manifest, begun: Manifest | None) -> CollectedReport:
        """Return what a complete file holds, if it is what is asked for."""
        first = next(source for source in self.sources if len(source))
        output.refuse_another(self._target, there, asked=asked, scorer=self._scorer, source=first)
        self.announce(f"{self._target.name} is complete already: nothing is scored.")
        if begun is not None and begun.key == asked.key:
            output.clear(self._folder)  # what a killed process left
        return self._report(there, scored_now=0)

    def _going_on(self, begun: Manifest | None, asked: Manifest, work: units.Scoring) -> set[units.Unit]:
        """Return the units whose parts are on disk; none to begin anew."""
        parts = units.parts_in(work.folder)
        if parts and begun is None:
            raise InputError(
                f"folder {str(work.folder)!r} must hold an interrupted collection or no parts, got {parts[0].name!r}"
                " without a manifest; move it away, or name another output."
            )
        changed = begun and what_changed(begun, asked)
        if begun is None or changed:
            if changed and parts and not self.overwrite:
                raise InputError(
                    f"folder {str(work.folder)!r} holds losses of an interrupted collection, but {changed}; give what it"
                    " was begun with, delete the folder to begin anew, or name another output."
                )
            return set()
        output.sweep(work.folder)
        done = set()
        for unit in work.units:
            path = units.part_path(work.folder, unit)
            if units.read_part(path, unit=unit, key=work.key) is not None:
                done.add(unit)
            elif path.exists():
                self.announce(f"{path.name} is damaged: its records are scored again.")
        return done

    # --- What is left to do ---

    def _scored(self, asked: Manifest, begun: Manifest | None) -> CollectedReport:
        """Score what is not there yet, and put all of it together."""
        work = units.Scoring(
            self.scorer,
            tuple(self.sources),
            folder=self._folder,
            batch_size=asked.batch_size,
            unit_size=asked.unit_size,
            key=asked.key,
            identity=asked.model,
            scorer=self._scorer,
        )
        total, done = sum(asked.counts), self._going_on(begun, asked, work)
        resumed = sum(map(len, done))
        tried = None
        if begun is not None and done:
            manifest = begun
            self._refuse_other_model(manifest, work, done)
            self.announce(f"Going on: {resumed:,} of {total:,} records are scored already.")
        else:
            manifest, tried = self._begun(asked)
        with self._saying_what_is_kept(done, total):
            self._score(work, done, total)
            found = output.totals(work)
        if resumed < total:
            self._refuse_other_model(manifest, work, done, tried=tried)
        output.refuse_other_data(found, manifest, folder=work.folder)
        with self._saying_what_is_kept(done, total):
            said = self._merged(work, found, manifest)
        output.clear(self._folder)
        return self._report(said, scored_now=total - resumed)

    def _begun(self, asked: Manifest) -> tuple[Manifest, Answer | None]:
        """Write the manifest, and return it with what the model answered on trial."""
        tried = None if self.trial is None else self.trial(self._scorer, sampled_groups(self.sources))
        if tried is not None:
            asked = replace(asked, warnings=tried.warnings, deterministic=tried.deterministic)
        output.begin(self._folder, asked)
        return asked, None if tried is None else tried.answer

    def _refuse_other_model(
        self, manifest: Manifest, work: units.Scoring, done: set[units.Unit], *, tried: Answer | None = None
    ) -> None:
        """Refuse a model that is not the one that gave the first part, or was tried, unless it answers at random."""
        if not manifest.deterministic:
            return
        unit = min(done, key=lambda unit: unit.index)
        losses = work.part(unit)["loss"].to_numpy()[: work.batch_size]
        stop = unit.start + losses.size
        records = units.read_stretch(self.sources[unit.source], start=unit.start, stop=stop).records
        before = (
            [(records, losses)] if tried is None else [(records, losses), (tried.records, tried.losses.loss)]
        )
        for asked, expected in before:
            output.refuse_other_model(self._scorer, records=asked, expected=expected, place=work.folder)

    def _score(self, work: units.Scoring, done: set[units.Unit], total: int) -> None:
        pending = [unit for unit in work.units if unit not in done]
        scored = sum(map(len, done))
        self.progress("Scoring", scored, total)
        with closing(self.engine.results(work, pending)) as results:
            for unit in results:
                done.add(unit)
                scored += len(unit)
                self.progress("Scoring", scored, total)

    def _merged(self, work: units.Scoring, found: output.Totals, manifest: Manifest) -> CollectedMetadata:
        if self._target.exists() and not self.overwrite:
            raise output.refused_output(self._target, "appeared while the records were scored")
        told = partial(self.progress, "Merging")
        return output.merge(
            work, found, target=self._target, scorer=self._scorer, manifest=manifest, progress=told
        )

    @contextmanager
    def _saying_what_is_kept(self, done: set[units.Unit], total: int) -> Iterator[None]:
        """Add to an interrupt or a refusal how many records are scored, and that the same call goes on."""

        def how_to_go_on() -> str:
            kept = sum(len(unit) for unit in done if units.part_path(self._folder, unit).exists())
            if not kept:
                return "nothing is scored yet, and the same call begins anew"
            return (
                f"{kept:,} of {total:,} records are scored and kept in {self._folder.name!r}, and the same call, of the"
                " same model and tables, goes on from there"
            )

        try:
            yield
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(f"interrupted: {how_to_go_on()}.") from error
        except (InputError, OutputError) as error:
            if not done:
                raise
            kind = InputError if isinstance(error, InputError) else OutputError
            raise kind(f"{str(error).rstrip('.')}; {how_to_go_on()}.") from error

    def _report(self, found: CollectedMetadata, *, scored_now: int) -> CollectedReport:
        n_member, n_nonmember = found.counts
        return CollectedReport(
            path=self._target,
            n_member=n_member,
            n_nonmember=n_nonmember,
            scored_now=scored_now,
            resumed=n_member + n_nonmember - scored_now,
            warnings=found.history[1:],
        )
