"""The output of a collection, where a file lies there already: whose it is, and whether its model is still the same."""

import contextlib
from pathlib import Path

from auditor.collectors.batch_losses import settled
from auditor.collectors.scorer import Scorer
from auditor.collectors.sources.source import Source
from auditor.collectors.streaming.content import file_content
from auditor.collectors.streaming.manifest import Manifest
from auditor.collectors.streaming.metadata import CollectedMetadata, read_metadata
from auditor.collectors.streaming.probe import refuse_other_model
from auditor.errors import InputError, OutputError

__all__ = ["FOREIGN", "collected", "probe_output", "refusal", "refuse_foreign", "refuse_rewritten"]

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
    found = collected(target)
    if found is None or found.manifest is None:
        raise refusal(target, FOREIGN)


def refusal(target: Path, reason: str) -> InputError:
    """Return the sentence for a file that is in the way."""
    return InputError(
        f"output path {str(target)!r} exists already and {reason}; name another, or ask for it to be overwritten."
    )


def collected(target: Path) -> CollectedMetadata | None:
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
    if file_content(target) != dict(there.content):
        raise refusal(target, "holds losses that were changed since they were collected")


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
        placed=lambda losses: settled(losses.loss, eps=eps, low=low, high=high),
    )
