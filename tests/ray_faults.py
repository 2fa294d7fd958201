"""Tables and scorers for the tests of the Ray engine, in a module that the workers can import."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from auditor.collectors.base import Batch, BatchLosses, Records
from auditor.core import InputError, LossScale


@dataclass(frozen=True)
class Table:
    """Arrays as a source."""

    name: str
    features: np.ndarray
    labels: np.ndarray
    member: bool

    def __len__(self):
        return len(self.features)

    def read(self, start, stop):
        """The rows, with their numbers as ids."""
        records = Records(self.name, self.features[start:stop], self.labels[start:stop], start)
        member = np.full(stop - start, self.member)
        return Batch(records, member, {"id": np.arange(start, stop), "label": self.labels[start:stop]})


@dataclass(frozen=True)
class FirstColumn:
    """The first feature as the loss; each call is written to a log as process, table and first row.

    Attributes:
        log: The file.
        seconds: How long a call takes.
        trouble: What happens to the rows from ``at``.
        at: The first row of those records of the table ``member``.
        company: How many processes must have begun before a call goes on, within a minute.
    """

    log: Path
    seconds: float = 0.0
    trouble: str = ""
    at: int = -1
    company: int = 1
    identity: str | None = None

    words = "the first feature"
    scale = LossScale.UNKNOWN
    records_at_once = None

    def itself(self):
        """Return the scorer, as a factory does."""
        return self

    def check(self, records):
        """Anything goes."""

    def score(self, records):
        """Return the losses, or make the trouble."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {records.name} {records.numbers[0]}\n")
        end = time.monotonic() + 60
        while len({line.split()[0] for line in self.log.open(encoding="utf-8")}) < self.company:
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(self.seconds)
        if records.name == "member" and records.numbers[0] == self.at:
            _make(self.trouble, records)
        return BatchLosses(records.features[:, 0].copy(), np.zeros(len(records), dtype=bool))


def _make(trouble, records):
    if trouble == "death":
        os.kill(os.getpid(), signal.SIGKILL)
    if trouble == "bad input":
        raise InputError(f"{records.name} label 7 is unknown (first at {records.row(0)}).")


@dataclass(frozen=True)
class ThreadCount(FirstColumn):
    """As the loss, how many threads the linear algebra of the process has."""

    def score(self, records):
        """Return the count."""
        from threadpoolctl import threadpool_info

        found = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        return BatchLosses(np.full(len(records), float(max(found))), np.zeros(len(records), dtype=bool))


@dataclass(frozen=True)
class Heavy(FirstColumn):
    """It carries something large."""

    ballast: np.ndarray | None = None


@dataclass(frozen=True)
class EachItsOwn:
    """A factory whose scorer is another one in every process."""

    log: Path

    def __call__(self):
        """Return one that says which process built it."""
        return FirstColumn(self.log, identity=str(os.getpid()))
