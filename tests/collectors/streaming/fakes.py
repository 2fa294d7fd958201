"""A small table and a small model for the tests of long collections; the model records its queries."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from auditor.collectors.base import Batch, BatchLosses, Records
from auditor.collectors.streaming import Collection, Preflight, Scoring
from auditor.collectors.tables.collected import Manifest
from auditor.core import LossScale


@dataclass(frozen=True)
class FakeSource:
    """Records 0..n-1 of a seed: two features, a label, an id and a group; the feature 0 is the record's number."""

    name: str
    n: int
    member: bool
    seed: int = 0
    first: int = 0
    shift: float = 0.0
    hashed: bool = True
    ids: str = "text"

    def __len__(self):
        """How many records there are."""
        return self.n

    def read(self, start, stop):
        """Return some records."""
        number = np.arange(self.first + start, self.first + stop)
        features = np.stack([number.astype(np.float64), np.sin(number + self.seed) + self.shift], axis=1)
        columns = {"group": np.array([f"g{i % 3}" for i in number], dtype=object), "label": number % 2}
        if self.ids == "text":
            columns["id"] = np.array([f"r{i}" for i in number], dtype=object)
        elif self.ids == "number":
            columns["id"] = number
        records = Records(self.name, features, number % 2, first_row=start)
        member = np.full(stop - start, self.member)
        return (Batch if self.hashed else Unhashed)(records, member, columns)


class Unhashed(Batch):
    """Records whose features cannot be hashed."""

    fingerprint = None


@dataclass
class FakeScorer:
    """Losses sin(7 x) * 3 of the record's number x; every 17th is saturated; each call goes to the log."""

    log: Path | None = None
    factor: float = 3.0
    identity: str | None = "model-1"
    records_at_once: int | None = 10
    noise: float = 0.0
    fail_at: int = -1
    meanwhile: Callable = lambda _records: None
    calls: int = 0
    words: str = "negative log-odds of the true class from a fake"
    scale: LossScale = LossScale.LOG_ODDS

    def check(self, records):
        """Refuse a label of 9."""
        assert not (records.labels == 9).any()

    def score(self, records):
        """Return losses, and one other score."""
        number = records.features[:, 0]
        self.meanwhile(records)
        self.calls += 1
        if self.log is not None:
            line = " ".join(str(int(item)) for item in number) + "\n"
            with self.log.open("a") as file:
                file.write(line)
        if self.fail_at in number:
            raise ValueError(self.fail_at)
        loss = np.sin(7 * number) * self.factor + self.noise * self.calls
        saturated = number % 17 == 0
        loss = np.where(saturated, np.copysign(np.inf, loss), loss)
        eps = float(np.finfo(np.float32).eps)
        return BatchLosses(loss=loss, saturated=saturated, eps=eps, more={"other": number / 7})


def tables(n=57, m=45, **changes):
    """Members and non-members, as two tables."""
    return (
        FakeSource("members", n, member=True, **changes),
        FakeSource("nonmembers", m, member=False, first=1000, **changes),
    )


def asked(log):
    """The records requested of a model, in order."""
    return [int(word) for word in log.read_text().split()] if log.exists() else []


def digest(path):
    """The SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def stream_to(path, *, scorer, sources, deterministic=True, warnings=(), tried=lambda *_: None, **settings):
    """Collect the losses of an existing scorer; the trial is reported, with the given findings."""

    def trial(*arguments):
        tried(*arguments)
        return Preflight(deterministic, warnings)

    return Collection(path=Path(path), scorer=lambda: scorer, sources=sources, trial=trial, **settings).run()


def scoring(folder, scorer, sources, *, batch_size, unit_size, factory=None, **setting):
    """The work of scoring tables, without a collection around it."""
    manifest = Manifest(
        model=scorer.identity,
        losses=scorer.words,
        data={},
        records=tuple(map(len, sources)),
        counts=(0, 0),
        setting=setting,
        batch_size=batch_size,
        unit_size=unit_size,
    )
    return Scoring(factory or (lambda: scorer), tuple(sources), folder, manifest, scorer)


def parts_of(path):
    """The parts beside an output."""
    return sorted(path.with_name(path.name + ".parts").glob("part-*"))


def part_numbers(part):
    """The numbers of the records in a part, behind whose seal is a Parquet file."""
    table = parquet.read_table(pa.BufferReader(part.read_bytes()[hashlib.sha256().digest_size :]))
    return [round(7 * other) for other in table["other"].to_pylist()]
