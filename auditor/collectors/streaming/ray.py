"""Ray as an engine: units go out to a pool of workers, parts come to lie in the same folder.

Each worker builds the model once, reads its rows itself, and writes its parts itself; only the reports come back. The
batches are those of `LocalEngine` and so are the threads that each worker computes with, so the losses are the same to
the last bit on machines of the same kind. A worker that dies is started again, and the units that it had are given out
again; one that dies again and again over the same unit ends the collection, whose finished parts stay.
"""

import contextlib
import hashlib
import io
import logging
import os
import pickle
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from auditor.collectors.base.scorer import Scorer, import_optional
from auditor.collectors.streaming.units import (
    Collection,
    Unit,
    UnitReport,
    checked_part,
    part_path,
    score_unit,
)
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.files import new_draft, unwritable

# --- What a Ray worker does: it builds the scorer once, and scores and writes each unit that it is given ---
#
# Outcomes, good or bad, go back as data: an error raised inside Ray would come out as Ray's traceback, and a worker that
# was killed would look like a model that failed.


_ATTEMPTS = 3  # workers that may die over a unit
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class _Threads:
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
    def here(cls) -> "_Threads":
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
class _UnitTask:
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
    threads: _Threads


@dataclass(frozen=True)
class SealedTask:
    """Where a pickled `_UnitTask` lies, and its SHA-256: what anybody else put there is not unpickled."""

    path: Path
    digest: str

    def read(self) -> _UnitTask:
        """Return the task."""
        words = self.path.read_bytes()
        if hashlib.sha256(words).hexdigest() != self.digest:
            raise InputError(
                f"file {str(self.path)!r} must stay as it is while Ray's workers read it, and has changed; start again."
            )
        return cast("_UnitTask", pickle.loads(words))  # noqa: S301 - as the process that started this one wrote it


class _Attempts:
    """An actor that outlives the workers and counts how often each unit was begun."""

    def __init__(self) -> None:
        self._begun: Counter[int] = Counter()

    def begin(self, position: int) -> int:
        """Return how often, this time included."""
        self._begun[position] += 1
        return self._begun[position]


class _UnitScorer:
    """An actor: Ray builds one in each worker and calls it with the position of one unit after another.

    It takes the `SealedTask` with its task, the handle of the `_Attempts`, and where modules are found in the process that started
    it: the model's class may be in one of the user's own.
    """

    def __init__(self, sealed: SealedTask, attempts: Any, paths: Sequence[str]) -> None:
        sys.path.extend(path for path in paths if path not in sys.path)
        self._sealed = sealed
        self._attempts = attempts
        self._task: _UnitTask | None = None
        self._scorer: Scorer | None = None

    def outcome(self, position: int) -> bytes:
        """Return the outcome of a unit: a pickled `UnitReport`, or the pickled exception."""
        try:
            return pickle.dumps(self._report(position))
        except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence
            return packed_error(error)

    def _report(self, position: int) -> UnitReport:
        if self._task is None:
            self._task = self._sealed.read()
        task = self._task
        collection, unit = task.collection, task.units[position]
        # A worker that was killed may have written its part before it could say so.
        there = checked_part(part_path(task.folder, unit), unit=unit, key=collection.key)
        if there is not None:
            return there
        self._begin(position, unit, task)
        return score_unit(
            collection, unit, folder=task.folder, scorer=self._model(task), sources=collection.sources
        )

    def _model(self, task: _UnitTask) -> Scorer:
        if self._scorer is None:
            task.threads.use()
            scorer = task.collection.scorer()
            task.threads.use()  # of the libraries that came with the model
            _refuse_another(scorer.identity, task.identity)
            self._scorer = scorer
        return self._scorer

    def _begin(self, position: int, unit: Unit, task: _UnitTask) -> None:
        """Refuse a unit that kills whoever scores it."""
        import ray

        if ray.get(self._attempts.begin.remote(position)) > _ATTEMPTS:
            name = task.collection.sources[unit.source].name
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


def packed_error(error: Exception) -> bytes:
    """Return an exception with its traceback as a note, or its words where it cannot be pickled."""
    error.add_note("In a Ray worker:\n" + traceback.format_exc())
    error.__cause__ = error.__context__ = None
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)  # noqa: S301 - just made; some exceptions pickle, and then cannot be built again
    except Exception:  # noqa: BLE001 - whatever cannot be pickled, in whatever way
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        plain.add_note(error.__notes__[-1])
        return pickle.dumps(plain)
    return packed


def unpacked_report(outcome: Any) -> UnitReport:
    """Return the report of a unit, or raise what its worker raised."""
    found = pickle.loads(outcome)  # noqa: S301 - from a worker that this process started
    if isinstance(found, Exception):
        raise found
    report: UnitReport = found
    return report


# --- The engine: it hands the units out, and starts and stops Ray ---


_STORE = 80 * 2**20  # bytes of shared memory; Ray's least is 75 MiB, and only reports pass through it
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # it is written to standard error past Python
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the workers see the GPUs that this process sees
}


@dataclass(frozen=True)
class RayEngine:
    """Scores units in several processes, on this machine or on a Ray cluster.

    Attributes:
        workers: How many processes, each with its own model; 1 or more.
        address: Of a running cluster (``auto``, ``ray://host:10001``), all of whose machines must see the tables, the
            model's file and the output's folder under the same paths, and have this package installed. Default: Ray is
            started on this machine and stopped at the end, unless this process is connected already.

    >>> RayEngine(workers=4)
    RayEngine(workers=4, address=None)
    """

    workers: int = 2
    address: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", validate.at_least("workers", self.workers, least=1))

    def run(
        self,
        collection: Collection,
        units: Sequence[Unit],
        *,
        folder: Path,
        scorer: Scorer,
        done: Callable[[UnitReport], None],
    ) -> None:
        """Score these units, in the order in which workers are free.

        Raises:
            MissingExtraError: Ray is not installed.
            InputError: What `LocalEngine` refuses, a model that cannot be sent to another process, a cluster that is
                not there or too small, or a unit over which workers died.
        """
        if not units:
            return
        import_optional("ray", purpose="the Ray engine", extra="ray")
        task = _UnitTask(collection, tuple(units), folder.absolute(), scorer.identity, _Threads.here())
        workers = min(self.workers, len(units))
        with _sealed(folder.absolute(), task) as sealed, ray_session(self.workers, self.address):
            for report in _reports(sealed, units=len(units), workers=workers):
                done(report)


@contextmanager
def _sealed(folder: Path, task: _UnitTask) -> Iterator[SealedTask]:
    """Yield where the workers find what they need, while they do.

    Ray could carry it, but loses a large argument of a worker before the worker is started again.
    """
    from ray import cloudpickle

    try:
        words = bytes(cloudpickle.dumps(task))
    except Exception as error:
        raise InputError(
            "model and tables must be such that they can be sent to Ray's workers, got one that cannot be pickled"
            f" ({validate.one_line(error)}); name the model's file, or use the local engine."
        ) from error
    path = new_draft(folder)
    try:
        try:
            path.touch(mode=0o600, exist_ok=False)  # it may hold the model
            path.write_bytes(words)
        except OSError as error:
            raise unwritable(path, error) from error
        yield SealedTask(path, hashlib.sha256(words).hexdigest())
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _reports(sealed: SealedTask, *, units: int, workers: int) -> Iterator[UnitReport]:
    """Yield the report of each unit as its part is written."""
    import ray
    from ray.util import ActorPool

    # It takes no processor, and begins anew if it is killed itself.
    attempts = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Attempts).remote()
    # The time after the last attempt is for the sentence about the unit.
    worker = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=_ATTEMPTS)(_UnitScorer)
    pool = [worker.remote(sealed, attempts, sys.path) for _ in range(workers)]
    try:
        outcomes = ActorPool(pool).map_unordered(
            lambda one, position: one.outcome.remote(position), range(units)
        )
        yield from map(unpacked_report, outcomes)
    except ray.exceptions.RayActorError as error:
        raise InputError(
            f"model and tables must be such that Ray's workers can open them, but {_ATTEMPTS + 1} workers died one after"
            " another before they scored anything; if memory ran out, use fewer workers, or use the local engine."
        ) from error
    except ray.exceptions.RayError as error:
        raise InputError(
            f"Ray must stay up while records are scored, got {type(error).__name__} from it; start again with the"
            " same settings."
        ) from error
    finally:
        # Whoever collects next in the same session would wait for their processors.
        with contextlib.suppress(ray.exceptions.RayError):  # it is down itself
            for one in (*pool, attempts):
                ray.kill(one)


@contextmanager
def ray_session(workers: int, address: str | None) -> Iterator[None]:
    """Connect to Ray, or start it, without its words on the terminal; stop only what was started here."""
    with _quiet(), _connected(workers, address):
        yield


@contextmanager
def _connected(workers: int, address: str | None) -> Iterator[None]:
    import ray

    if ray.is_initialized():
        if address is not None:
            raise InputError(
                f"address must be left out where this process is connected to Ray already, got {address!r}."
            )
        _refuse_small(workers)
        yield
        return
    plain: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    here = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _STORE}
    try:
        with _hushed():
            ray.init(address=address or "local", **plain, **({} if address else here))
    except Exception as error:
        what = f"Ray at {address!r} cannot be reached" if address else "Ray cannot be started here"
        raise InputError(f"{what}: {validate.one_line(error)}.") from error
    try:
        _refuse_small(workers)
        yield
    finally:
        ray.shutdown()


def _refuse_small(workers: int) -> None:
    import ray

    processors = int(ray.cluster_resources().get("CPU", 0))
    if processors < workers:
        raise InputError(
            f"workers must be at most the cluster's {processors} processors, got {workers}; ask for fewer."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray without its reports to its makers and its log on the terminal."""
    before = {name: os.environ.get(name) for name in _QUIET}
    os.environ.update(_QUIET)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            # Ray warns of its own settings, and prints what happened to its workers on standard output.
            warnings.filterwarnings("ignore", module=r"ray\.")
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _hushed() -> Iterator[None]:
    """Nothing on standard error, not even from below Python: Ray says there that it was told to say nothing."""
    with Path(os.devnull).open("wb") as nowhere:
        kept = os.dup(2)
        try:
            os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
