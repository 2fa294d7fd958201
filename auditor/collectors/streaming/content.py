"""The hashes of losses and membership, by which an output is known for what was written."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.streaming.identity import Digests

__all__ = ["content_of", "file_content"]

_ROWS = 2**16


def content_of(tables: Iterable[Any]) -> dict[str, str]:
    """Return the SHA-256 of each of the columns ``loss`` and ``member``, however the rows are cut into tables.

    Raises:
        TypeError: Columns that are no 64-bit floats and truth values.
    """
    digests = Digests()
    for table in tables:
        if [str(table[name].type) for name in ("loss", "member")] != ["double", "bool"]:
            raise TypeError
        loss = table["loss"].to_numpy(zero_copy_only=False)
        digests.add("loss", loss.astype("<f8", copy=False).view("<u8"))
        digests.add("member", table["member"].to_numpy(zero_copy_only=False).astype(np.uint64))
    return digests.result()


def file_content(path: Path) -> dict[str, str] | None:
    """Return the same of a file, read in constant memory; none if it cannot be read so."""
    from pyarrow import ArrowException

    try:
        return content_of(_batches(path))
    except (ArrowException, OSError, KeyError, ValueError, TypeError):
        return None


def _batches(path: Path) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(str(path), page_checksum_verification=True) as file:
        yield from file.iter_batches(batch_size=_ROWS, columns=["loss", "member"])
