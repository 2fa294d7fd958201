"""Engines do units of work and lose none: sequentially here, in processes of this machine, or on a Ray cluster.

A Ray worker prepares the work once, and reads and writes the files of its units itself. It computes with as many
threads as the process that started it, so that the numbers are the same to the last bit on machines of the same kind. A
worker that dies is started again and gets its unit again; a unit over which several die ends the work, and what is
finished stays.
"""

import io
import logging
import os
import pickle
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from auditor.core import AuditorError, InputError, explained, import_optional, validate


class Work(Protocol):
    """Function that is applied to each unit of work. It can be pickled and sent to another process.

    Attributes:
        sent: The arguments that another process is sent, the subject of error sentences.
        if_not_sent: Fix if they cannot be pickled.
        if_too_large: Way to use less memory.
        at_once: Units for each call of another process, at most; default 1.
    """

    sent: ClassVar[str]
    if_not_sent: ClassVar[str]
    if_too_large: ClassVar[str]

    def prepare(self) -> None:
        """Prepare state that takes time to build; called in each process before its first unit."""
        return

    def named(self, unit: Any) -> str:
        """Return which unit this is, the subject of error sentences."""

    def __call__(self, unit: Any) -> Any:
        """Run one unit and return its outcome; a second run leaves the same on disk."""

    def each(self, units: Iterable[Any]) -> Iterator[Any]:
        """Yield the outcome of each unit in order; work that waits for a server may begin units before their turn."""
        return map(self, units)


class Engine(Protocol):
    """Executor of work; the same units give the same results with every engine."""

    def results(self, work: Work, units: Sequence[Any]) -> Generator[Any]:
        """Yield the result of the work for each unit, in any order; if closed early, it ends the units that still run.

        Raises:
            AuditorError: Raised by the work, or one of its processes ended.
        """


@dataclass(frozen=True)
class LocalEngine:
    """Does one unit after another in this process.

    >>> LocalEngine()
    LocalEngine()
    """

    def results(self, work: Work, units: Sequence[Any]) -> Generator[Any]:
        """Yield the results of the work, in order."""
        if units:
            work.prepare()
        yield from work.each(units)


@dataclass(frozen=True)
class Processes:
    """Does units in parallel processes of this machine, each with one thread for its linear algebra.

    Attributes:
        workers: Number of workers; one is this process.
    """

    workers: int

    def results(self, work: Work, units: Sequence[Any]) -> Generator[Any]:
        """Yield the results of the work as they arrive."""
        if self.workers == 1 or not units:
            yield from LocalEngine().results(work, units)
            return
        import joblib
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        pool = joblib.Parallel(n_jobs=self.workers, batch_size=1, return_as="generator_unordered")
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            outcomes = pool(joblib.delayed(attempted)(work, unit) for unit in units)
        try:
            yield from map(result_of, outcomes)
        except TerminatedWorkerError as error:
            raise AuditorError(
                "a worker process ended at its work, most often for want of memory; give fewer workers."
            ) from error
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # joblib's, that it ends running calls
                outcomes.close()


# An exception of another process comes back as data, since not every one can be pickled and built again.


def attempted(do: Callable[..., Any], *arguments: Any) -> tuple[Any, Exception | None]:
    """Return the result of a call, or its exception with the trace as a note, as text if it cannot be pickled."""
    try:
        return do(*arguments), None
    except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence
        raised: Exception = error
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - just made; some can be pickled, and not built again
        except Exception:  # noqa: BLE001 - whatever cannot be pickled, in whatever way
            raised = RuntimeError(f"{type(error).__name__}: {error}")
        raised.add_note(f"Where it happened:\n{traceback.format_exc()}")
        return None, raised


def result_of(outcome: tuple[Any, Exception | None]) -> Any:
    """Return the result of another process, or raise its exception."""
    result, error = outcome
    if error is not None:
        raise error
    return result


# --- Ray ---

_ATTEMPTS = 3  # workers that may die over a unit
_STORE = 80 * 2**20  # bytes of shared memory; Ray's least is 75 MiB, and a larger model lies on disk
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the workers see the GPUs that this process sees
}


@dataclass(frozen=True)
class RayEngine:
    """Does units in several processes, on this machine or on a Ray cluster.

    Attributes:
        workers: Number of processes, each with its own model or training; 1 or more.
        address: Address of a running cluster (``auto``, ``ray://host:10001``), all of whose machines must have this package
            installed, and see under the same paths the files of the work: the tables, the model's file and the
            output's folder of a collection; for runs the files of the training, while their folder is this process's own.
            Default: Ray is started on this machine and stopped at the end, unless this process is connected already.

    >>> RayEngine(workers=4)
    RayEngine(workers=4, address=None)
    """

    workers: int = 2
    address: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", validate.at_least("workers", self.workers, least=1))

    def results(self, work: Work, units: Sequence[Any]) -> Generator[Any]:
        """Yield the results of the work, in the order in which workers are free.

        Raises:
            MissingExtraError: Ray is not installed.
            InputError: Raised by the work; something that cannot be sent to another process, a cluster that is not
                there or too small, or a unit over which workers died.
        """
        if not units:
            return
        import_optional("ray", purpose="the Ray engine", extra="ray")
        from ray import cloudpickle

        try:
            # As bytes, since arrays that Ray itself carries arrive read only, which some models refuse.
            packed = bytes(cloudpickle.dumps((work, _thread_counts())))
        except Exception as error:
            raise InputError(
                f"{work.sent} must be such that Ray's workers can be sent a copy, got an object that cannot be pickled"
                f" ({validate.one_line(error)}); {work.if_not_sent}."
            ) from error
        with ray_session(self.workers, self.address):
            yield from _by_actors(packed, units, workers=min(self.workers, len(units)), work=work)


class _Worker:
    """An actor in a process of its own: it prepares the work once, and does the units that it is sent."""

    def __init__(self, paths: Sequence[str]) -> None:
        # The model's class may be in one of the user's own modules.
        sys.path.extend(path for path in paths if path not in sys.path)
        self._work: Work | None = None

    def outcome(self, packed: list[Any], units: Sequence[Any]) -> tuple[Any, Exception | None]:
        """Return the outcomes of units as data: an exception inside Ray would come out as Ray's traceback."""
        return attempted(self._done, packed, units)

    def _done(self, packed: list[Any], units: Sequence[Any]) -> list[Any]:
        if self._work is None:
            import ray

            work, threads = pickle.loads(ray.get(packed[0]))  # noqa: S301 - of the process that started this one
            _use_threads(threads)
            work.prepare()
            _use_threads(threads)  # of the libraries that came with the model
            self._work = work
        return list(self._work.each(units))


def _by_actors(packed: bytes, units: Sequence[Any], *, workers: int, work: Work) -> Iterator[Any]:
    """Yield the result of each unit as it is there, to callers who may print."""
    import ray

    # This process holds it, so that it is there for the worker that takes a dead one's place.
    place = [ray.put(packed)]
    actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=_ATTEMPTS - 1)(_Worker)
    pool = [actor.remote(sys.path) for _ in range(workers)]
    size = min(getattr(work, "at_once", 1), -(-len(units) // workers))
    waiting = deque(units[start : start + size] for start in range(0, len(units), size))
    free, running = list(pool), dict[Any, tuple[Any, Any]]()
    try:
        while waiting or running:
            with _silence():
                while free and waiting:
                    worker, some = free.pop(), waiting.popleft()
                    running[worker.outcome.remote(place, some)] = worker, some
                [ended], _ = ray.wait(list(running), num_returns=1)
                worker, some = running.pop(ended)
                free.append(worker)
                outcome = ray.get(ended)
            yield from result_of(outcome)
    except ray.exceptions.RayActorError as error:
        raise InputError(
            f"{work.named(some[0])} could not be done: {_ATTEMPTS} Ray workers died of it one after another; if memory ran"
            f" out, use fewer workers or {work.if_too_large}."
        ) from error
    except ray.exceptions.RayError as error:
        raise InputError(
            f"Ray must stay up while its workers are at work, got {type(error).__name__} from it; start again with the"
            " same settings."
        ) from error
    finally:
        # The next collection in the same session would wait for their processors.
        with _silence(), suppress(ray.exceptions.RayError):  # it is down itself
            for worker in pool:
                ray.kill(worker)


def _thread_counts() -> dict[str, int]:
    """Return the number of threads of each kind of library: sums in another order would change the last bits of losses."""
    from threadpoolctl import threadpool_info

    counts = {pool["user_api"]: pool["num_threads"] for pool in threadpool_info()}
    torch = sys.modules.get("torch")
    return counts if torch is None else {**counts, "torch": torch.get_num_threads()}


def _use_threads(counts: dict[str, int]) -> None:
    """Use as many threads; Ray gives its workers one otherwise."""
    from threadpoolctl import threadpool_limits

    threadpool_limits({name: count for name, count in counts.items() if name != "torch"})
    if "torch" in counts and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(counts["torch"])


@contextmanager
def ray_session(workers: int, address: str | None) -> Iterator[None]:
    """Connect to Ray, or start it, without its messages on the terminal; stop only what was started here."""
    import ray

    connected = ray.is_initialized()
    if connected and address is not None:
        raise InputError(
            f"address must be left out where this process is connected to Ray already, got {address!r}."
        )
    before = dict(os.environ)
    os.environ.update(_QUIET)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"ray\.")  # of its own settings
            if not connected:
                _start(workers, address)
            processors = int(ray.cluster_resources().get("CPU", 0))
            if processors < workers:
                raise InputError(
                    f"workers must be at most the cluster's {processors} processors, got {workers}; ask for fewer."
                )
            yield
    finally:
        with _silence():
            if not connected:
                ray.shutdown()
        for name in _QUIET:
            del os.environ[name]
        os.environ.update({name: before[name] for name in _QUIET if name in before})


def _start(workers: int, address: str | None) -> None:
    import ray

    here = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _STORE}
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    failed = f"Ray at {address!r} cannot be reached" if address else "Ray cannot be started here"
    with explained(failed, reason=validate.one_line), _silence():
        ray.init(address=address or "local", **quiet, **({} if address else here))


def _silence() -> redirect_stdout[io.StringIO]:
    """Keep Ray's messages about its workers from standard output."""
    return redirect_stdout(io.StringIO())


# --- How long it takes ---


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> [duration(time) for time in (0.2, 45, 600, 9000, 400_000)]
    ['a second', '45 seconds', '10 minutes', '2.5 hours', '4.6 days']
    """
    for size, name, digits in ((86400, "days", 1), (3600, "hours", 1), (60, "minutes", 0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.{digits}f} {name}"
    return "a second" if seconds < 1.5 else f"{seconds:.0f} seconds"  # noqa: PLR2004
