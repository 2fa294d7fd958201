"""What a Ray worker does: it builds the scorer once, and scores and writes each unit that it is given.

Outcomes, good or bad, go back as data: an error raised inside Ray would come out as Ray's traceback, and a worker that
was killed would look like a model that failed.
"""

import hashlib
import os
import pickle
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from auditor.collectors.scorer import Scorer
from auditor.collectors.streaming.collection import Collection, Unit, UnitReport
from auditor.collectors.streaming.engine import score_unit
from auditor.collectors.streaming.part import checked_part, part_path
from auditor.errors import InputError

__all__ = ["Attempts", "Errand", "Letter", "Threads", "UnitScorer", "packed", "unpacked"]

_ATTEMPTS = 3  # workers that may die over a unit
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Threads:
    """How many threads a process computes with: sums in another order would change the last bits of the losses.

    Attributes:
        variables: The environment variables by which libraries that are loaded later decide; none where unset.
        pools: Threads of the libraries that are loaded, by what they do (``blas``, ``openmp``).
        torch: Threads of PyTorch, if it is loaded.
    """

    variables: Mapping[str, str | None]
    pools: Mapping[str, int]
    torch: int | None

    @classmethod
    def here(cls) -> "Threads":
        """Return those of this process."""
        from threadpoolctl import threadpool_info

        pools: dict[str, int] = {}
        for pool in threadpool_info():
            pools[pool["user_api"]] = max(pool["num_threads"], pools.get(pool["user_api"], 1))
        torch = sys.modules.get("torch")
        variables = {name: os.environ.get(name) for name in _VARIABLES}
        return cls(variables, pools, None if torch is None else torch.get_num_threads())

    def use(self) -> None:
        """Make this process compute with as many; Ray gives its workers one thread otherwise."""
        from threadpoolctl import threadpool_limits

        for name, value in self.variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        threadpool_limits(dict(self.pools))
        torch = sys.modules.get("torch")
        if torch is not None and self.torch is not None:
            torch.set_num_threads(self.torch)


@dataclass(frozen=True, eq=False)
class Errand:
    """What every worker needs to know.

    Attributes:
        collection: What the units belong to.
        units: The units to score, which are handed out by their position.
        folder: Where their parts go.
        identity: That of the model in the process that started the workers; none where it cannot be known.
        threads: Those of that process.
    """

    collection: Collection
    units: tuple[Unit, ...]
    folder: Path
    identity: str | None
    threads: Threads


@dataclass(frozen=True)
class Letter:
    """Where a pickled `Errand` lies, and its SHA-256: what anybody else put there is not unpickled."""

    path: Path
    digest: str

    def read(self) -> Errand:
        """Return the errand."""
        words = self.path.read_bytes()
        if hashlib.sha256(words).hexdigest() != self.digest:
            raise InputError(
                f"file {str(self.path)!r} must stay as it is while Ray's workers read it, and has changed; start again."
            )
        return cast("Errand", pickle.loads(words))  # noqa: S301 - as the process that started this one wrote it


class Attempts:
    """An actor that outlives the workers and counts how often each unit was begun."""

    def __init__(self) -> None:
        self._begun: Counter[int] = Counter()

    def begin(self, position: int) -> int:
        """Return how often, this time included."""
        self._begun[position] += 1
        return self._begun[position]


class UnitScorer:
    """An actor: Ray builds one in each worker and calls it with the positions of some units.

    It takes the `Letter` with its errand, the handle of the `Attempts`, and where modules are found in the process that started
    it: the model's class may be in one of the user's own.
    """

    def __init__(self, letter: Letter, attempts: Any, paths: Sequence[str]) -> None:
        sys.path.extend(path for path in paths if path not in sys.path)
        self._letter = letter
        self._attempts = attempts
        self._errand: Errand | None = None
        self._scorer: Scorer | None = None

    def __call__(self, batch: dict[str, npt.NDArray[np.int64]]) -> dict[str, list[bytes]]:
        """Return the outcome of each unit: a pickled `UnitReport`, or the pickled exception."""
        return {"outcome": [self._outcome(int(position)) for position in batch["position"]]}

    def _outcome(self, position: int) -> bytes:
        try:
            return pickle.dumps(self._report(position))
        except Exception as error:  # noqa: BLE001 - the process that started the workers raises it
            return packed(error)

    def _report(self, position: int) -> UnitReport:
        if self._errand is None:
            self._errand = self._letter.read()
        errand = self._errand
        collection, unit = errand.collection, errand.units[position]
        # A worker that was killed may have written its part before it could say so.
        there = checked_part(part_path(errand.folder, unit), unit=unit, key=collection.key)
        if there is not None:
            return there
        self._begin(position, unit, errand)
        return score_unit(
            collection, unit, folder=errand.folder, scorer=self._model(errand), sources=collection.sources
        )

    def _model(self, errand: Errand) -> Scorer:
        if self._scorer is None:
            errand.threads.use()
            scorer = errand.collection.scorer()
            errand.threads.use()  # of the libraries that came with the model
            _refuse_another(scorer.identity, errand.identity)
            self._scorer = scorer
        return self._scorer

    def _begin(self, position: int, unit: Unit, errand: Errand) -> None:
        """Refuse a unit that kills whoever scores it."""
        import ray

        if ray.get(self._attempts.begin.remote(position)) > _ATTEMPTS:
            name = errand.collection.sources[unit.source].name
            raise InputError(
                f"{name} rows {unit.start} to {unit.stop - 1}, counting from 0, could not be scored: {_ATTEMPTS} Ray"
                " workers died over them one after another; if memory ran out, use fewer workers or a smaller batch size."
            )


def _refuse_another(found: str | None, wanted: str | None) -> None:
    if found != wanted:
        raise InputError(
            "model must be the same in every worker, but a Ray worker built another one than the process that started"
            " it; leave the model's file alone while records are scored, and fix what is drawn at random when it is built."
        )


def packed(error: Exception) -> bytes:
    """Return an exception with its traceback as a note, or its words where it cannot be pickled."""
    error.add_note("In a Ray worker:\n" + traceback.format_exc())
    error.__cause__ = error.__context__ = None
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)  # noqa: S301 - just made; some exceptions pickle, and then cannot be built again
    except Exception:  # noqa: BLE001 - whatever is wrong with it, its words can be sent
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        plain.add_note(error.__notes__[-1])
        return pickle.dumps(plain)
    return packed


def unpacked(outcome: Any) -> UnitReport:
    """Return the report of a unit, or raise what its worker raised."""
    found = pickle.loads(outcome)  # noqa: S301 - from a worker that this process started
    if isinstance(found, Exception):
        raise found
    report: UnitReport = found
    return report
