"""Collects into a file, part by part: stopped at any moment and started again, it goes on where it was."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from auditor import _validate
from auditor.collectors.records import Records
from auditor.collectors.scorer import Scorer
from auditor.collectors.sources.source import Batch, Source
from auditor.collectors.streaming.collection import Ready
from auditor.collectors.streaming.engine import Engine, LocalEngine
from auditor.collectors.streaming.lock import NoFolderError, locked
from auditor.collectors.streaming.manifest import plain_setting
from auditor.collectors.streaming.report import CollectedReport, Trial
from auditor.collectors.streaming.run import Run
from auditor.collectors.streaming.workplace import Workplace
from auditor.errors import InputError, OutputError

__all__ = ["collect_to"]


def _untried(_scorer: Scorer, _groups: Sequence[Records]) -> Trial:
    return Trial()


def _unwatched(_batch: Batch) -> None:
    pass


def _silent(_line: str) -> None:
    pass


def _unshown(_stage: str, _done: int, _total: int) -> None:
    pass


def collect_to(
    path: str | os.PathLike[str],
    *,
    scorer: Scorer | Callable[[], Scorer],
    sources: Sequence[Source],
    batch_size: int | None = None,
    engine: Engine | None = None,
    setting: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    watch: Callable[[Batch], None] = _unwatched,
    before: Callable[[Scorer, Sequence[Records]], Trial] = _untried,
    announce: Callable[[str], None] = _silent,
    progress: Callable[[str, int, int], None] = _unshown,
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
    factory = Ready(cast("Scorer", scorer)) if hasattr(scorer, "score") else scorer
    size = None if batch_size is None else _validate.at_least("batch_size", batch_size, least=1)
    folder = target.with_name(f"{target.name}.parts")
    place = Workplace(folder)

    def run() -> Run:
        return Run(
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
            f"output path {str(path)!r} is not a path that can be written: {_validate.one_line(error)}."
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
