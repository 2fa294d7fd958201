"""Any model and tables of records of any size become a file of losses."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from auditor import _validate
from auditor.collectors import streaming
from auditor.collectors.assembly import distinct_classes
from auditor.collectors.outputs import Output
from auditor.collectors.preflight import preflight
from auditor.collectors.record_table import RecordTable
from auditor.collectors.records import Records, spelled
from auditor.collectors.scorer import Scorer
from auditor.collectors.scorers import ScorerRecipe, is_scorer
from auditor.collectors.shared_rows import SharedRows
from auditor.collectors.sources import open_groups
from auditor.collectors.sources.table_source import TableSource
from auditor.collectors.streaming import CollectedReport, Engine, Trial
from auditor.collectors.tasks import Classification, Task

__all__ = ["collect_to"]

Progress = Callable[[str, int, int], None]


def collect_to(
    path: str | os.PathLike[str],
    model: Any,
    *,
    members: RecordTable | None = None,
    nonmembers: RecordTable | None = None,
    records: RecordTable | None = None,
    task: Task | None = None,
    classes: Sequence[Any] | None = None,
    output: Output | None = None,
    repeats: int = 1,
    batch_size: int | None = None,
    allow_shared_rows: bool = False,
    engine: Engine | None = None,
    overwrite: bool = False,
    announce: Callable[[str], None] = lambda _: None,
    progress: Progress = lambda _stage, _done, _total: None,
) -> CollectedReport:
    """Score tables of records by a model, into a file that `read_losses` and ``auditor audit`` take as it is.

    Memory does not grow with the tables. What is scored is on disk at once, part by part, in the folder
    ``<path>.parts``: the same call after an interruption scores only the rest, in the same batches, and gives the same
    file. A model, table or setting that is no longer the same is refused.

    Args:
        path: The file to write, ``.parquet``.
        model: Any model that `collect` takes: an object, the path of a file or a `ModelFile`, an address or an
            `Endpoint`; or a `TextScorer`, for texts.
        members: The records that the model was trained on.
        nonmembers: Records of the same population that it never saw.
        records: Both in one table instead, which has a column of membership.
        task: What the model was trained to predict; default `Classification()`.
        classes: The label of each output column; default those that the model knows, or else 0, 1, ...
        output: What the model returns; default found out.
        repeats: Calls for each batch, whose outputs are averaged; for a model that answers differently on repeat.
        batch_size: Records for each call of the model; default what the model wants, or 10,000.
        allow_shared_rows: Whether to go on where many rows are in both groups.
        engine: What does the work: `LocalEngine()` (the default) or `RayEngine(workers)`.
        overwrite: Whether losses of another collection in the same place are replaced.
        announce: Told in a sentence what happens.
        progress: Told the stage, the records that are done, and all of them.

    Returns:
        Where the losses are, how many there are, how many of them this call scored, and what a reader must know.

    Raises:
        InputError: What `collect` refuses, rows that are in both groups, or a file or folder of another collection.
        OutputError: A file that cannot be written, or that another process is writing.
        MissingExtraError: A package that the model or the engine needs is not installed.

    >>> import tempfile, pathlib
    >>> def logit(table):
    ...     return table["x"].to_numpy()
    >>> inside = RecordTable({"x": [2.0, 1.0], "y": [1, 1]}, label="y")
    >>> outside = RecordTable({"x": [-1.0, 0.5], "y": [1, 0]}, label="y")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.parquet"
    ...     report = collect_to(path, logit, members=inside, nonmembers=outside, output=Output.LOGITS)
    >>> report.n_member, report.scored_now
    (2, 4)
    """
    texts = is_scorer(model)
    task = None if texts else (task or Classification())
    sources = open_groups(members=members, nonmembers=nonmembers, records=records, task=task)
    recipe = ScorerRecipe(
        model=model,
        task=task or Classification(),
        output=None if output is None else Output(_validate.known("output", output, list(Output))),
        classes=None if classes is None else alike(distinct_classes(classes), sources),
        repeats=_validate.at_least("repeats", repeats, least=1),
        sources=sources,
    )
    shared = SharedRows(sources)
    total = sum(map(len, sources))

    def tried(scorer: Scorer, groups: Sequence[Records]) -> Trial:
        shared_rows = tuple(shared.finish(allow=allow_shared_rows))
        found = preflight(scorer, groups, batch_size=batch_size)
        announce(found.in_words(total))
        for sentence in (*found.warnings, *found.provisional):
            announce(sentence)
        return Trial(warnings=(*shared_rows, *found.warnings), deterministic=found.deterministic)

    return streaming.collect_to(
        path,
        scorer=recipe,
        sources=sources,
        batch_size=batch_size,
        engine=engine,
        setting={"task": None if task is None else task.words, **_setting(recipe, sources)},
        overwrite=overwrite,
        watch=shared.add,
        before=tried,
        announce=announce,
        progress=progress,
    )


def alike(classes: list[Any], sources: Sequence[TableSource]) -> list[Any]:
    """Return classes that came as text, as on a command line, as the numbers or truth values that the labels are."""
    labels = sources[0].read(0, 1).records.labels
    if labels.dtype.kind not in "fiub" or not all(isinstance(name, str) for name in classes):
        return classes
    found = spelled(classes)
    # Where one spells neither, all stay text, which is matched label by label.
    return classes if any(isinstance(name, str) for name in found) else found


def _setting(recipe: ScorerRecipe, sources: Sequence[TableSource]) -> dict[str, Any]:
    names = None if recipe.classes is None else [str(name) for name in np.asarray(recipe.classes).tolist()]
    return {
        "output": None if recipe.output is None else str(recipe.output),
        "classes": names,
        "repeats": recipe.repeats,
        "features": [list(source.roles.features) for source in sources],
        "alone": [source.roles.alone for source in sources],
    }
