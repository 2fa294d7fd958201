"""The parts of a collection become its output, in constant memory: infinite losses get their place in the end."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.assembly import history, noted
from auditor.collectors.batch_losses import settled
from auditor.collectors.scorer import Scorer
from auditor.collectors.streaming.collection import Collection, UnitReport
from auditor.collectors.streaming.content import content_of
from auditor.collectors.streaming.identity import Digests
from auditor.collectors.streaming.manifest import Manifest
from auditor.collectors.streaming.metadata import KEY, CollectedMetadata, metadata_text
from auditor.collectors.streaming.part import OWN, part_path, whole_part
from auditor.collectors.streaming.writing import whole
from auditor.errors import InputError

__all__ = ["ChangedDataError", "merge", "merged_metadata"]

_ROWS = 2**16  # of a row group, at least


class ChangedDataError(InputError):
    """The tables are not what they were when the collection began, and neither are the losses in the parts."""


def merged_metadata(
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
    steps = history(scorer.words, saturated=saturated, hard=hard)
    alone = [f"left out, because only some of the tables have it: {', '.join(left)}"] if left else []
    return CollectedMetadata(
        scale=scorer.scale,
        history=(*steps, *manifest.warnings, *alone),
        notes=noted(manifest.warnings, hard=hard),
        saturated=saturated,
        scores=tuple(name for name in names if name not in OWN),
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

    schema, left = _schema([part_path(folder, unit) for unit in collection.units])
    found = merged_metadata(scorer, manifest=manifest, reports=reports, names=schema.names, left=left)
    # The footer says what the columns are before they are written, so that these two are read twice.
    content = content_of(_narrow(collection, folder, found=found))
    found = replace(found, content=content)
    schema = schema.with_metadata({KEY: metadata_text(found)})
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


def _narrow(collection: Collection, folder: Path, *, found: CollectedMetadata) -> Iterator[Any]:
    """Yield the losses and members of the output, part by part."""
    for unit in collection.units:
        yield _placed(whole_part(part_path(folder, unit), columns=["loss", "member"]), found)


def _placed(part: Any, found: CollectedMetadata) -> Any:
    """Return a part with its infinite losses at their places."""
    import pyarrow as pa

    eps, low, high = found.placing
    loss = settled(part["loss"].to_numpy(), eps=eps, low=low, high=high)
    return part.set_column(part.column_names.index("loss"), "loss", pa.array(loss))


def _tables(collection: Collection, folder: Path, *, schema: Any, found: CollectedMetadata) -> Iterator[Any]:
    """Yield the output in row groups; nothing is written after the last unless all is what was surveyed."""
    import pyarrow as pa

    digests, waiting, rows = Digests(), [], 0
    for unit in collection.units:
        part = whole_part(part_path(folder, unit))
        digests.add("membership", _words(part["member"]))
        if "fingerprint" in part.column_names:
            digests.add("features", _words(part["fingerprint"]))
        waiting.append(_placed(part, found).select(schema.names).cast(schema))
        rows += part.num_rows
        if rows >= _ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()
    _refuse_other_data(collection, digests, found)


def _refuse_other_data(collection: Collection, digests: Digests, found: CollectedMetadata) -> None:
    surveyed = found.manifest.data if found.manifest else {}
    for name, digest in digests.result().items():
        if surveyed.get(name) != digest:
            raise ChangedDataError(
                f"the {name} of the tables changed while the records were scored; delete the folder"
                f" {collection.path.name + '.parts'!r} and collect again from tables that nobody writes to."
            )


def _words(column: Any) -> Any:
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
