"""One look at all records before any is scored: are they fit, how many are there, and which are they."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.scorer import Scorer
from auditor.collectors.sources.source import Batch, Source
from auditor.collectors.streaming.engine import read_stretch
from auditor.errors import InputError
from auditor.features import Features
from auditor.fingerprints import fingerprints

__all__ = ["Data", "Digests", "surveyed"]

_LEAST = 2  # records in each group
_ROWS = 512  # read at once at least, where batches are small


@dataclass(frozen=True)
class Data:
    """What tables hold, as far as anybody must know to tell whether they are still the same.

    Attributes:
        counts: Members and non-members.
        digests: A SHA-256 of each of features, labels, membership, and what else is known, by name.
    """

    counts: tuple[int, int]
    digests: dict[str, str]


@dataclass(eq=False)
class Digests:
    """Running hashes by name, which do not depend on the stretches that the records come in."""

    running: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, words: npt.NDArray[np.uint64]) -> None:
        """Go on with the next records, one word for each."""
        self.running.setdefault(name, hashlib.sha256()).update(words.astype("<u8", copy=False).tobytes())

    def result(self) -> dict[str, str]:
        """Return the hashes in hexadecimal."""
        return {name: digest.hexdigest() for name, digest in self.running.items()}


def surveyed(
    sources: Sequence[Source],
    *,
    scorer: Scorer,
    step: int,
    watch: Callable[[Batch], None],
    progress: Callable[[int, int], None],
) -> Data:
    """Read all tables once.

    Args:
        sources: The tables.
        scorer: Checks the labels, without asking the model.
        step: Records in a batch of the model; about so many are in memory at once.
        watch: Told of each stretch, in order.
        progress: Told how many records of how many were read.

    Raises:
        InputError: Records that cannot be read or scored, or fewer than two in a group.
    """
    total, read, members = sum(map(len, sources)), 0, 0
    digests, rows = Digests(), max(step, _ROWS)
    for source in sources:
        for start in range(0, len(source), rows):
            batch = read_stretch(source, start=start, stop=min(start + rows, len(source)))
            scorer.check(batch.records)
            watch(batch)
            _add(digests, batch)
            read += len(batch.records)
            members += int(batch.member.sum())
            progress(read, total)
    if min(members, total - members) < _LEAST:
        raise InputError(
            f"the tables must hold at least {_LEAST} members and {_LEAST} non-members, got {members} and"
            f" {total - members}; name a table, or a membership column, that has both."
        )
    return Data(counts=(members, total - members), digests=digests.result())


def _add(digests: Digests, batch: Batch) -> None:
    words = {"labels": _words(batch.records.labels), "membership": batch.member.astype(np.uint64)}
    words |= {name: _words(column) for name, column in batch.columns.items() if name != "label"}
    if batch.fingerprint is not None:
        words["features"] = batch.fingerprint
    for name, values in words.items():
        digests.add(name, values)


def _words(column: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row of a column, or of a table."""
    table = column.reshape(column.shape[0], -1)
    try:
        return fingerprints(Features(member=table, nonmember=table[:0])).member
    except InputError:  # values of other types than a feature has
        texts = np.array([repr(row) for row in table.tolist()], dtype=object)[:, None]
        return fingerprints(Features(member=texts, nonmember=texts[:0])).member
