"""Ray as an engine: units go out to a pool of workers, and what is known of them comes back.

Each worker prepares the work once, and reads and writes itself what a unit reads and writes. It computes with as many
threads as the process that started it, so that the numbers are the same to the last bit on machines of the same kind. A
worker that dies is started again and given its unit again; a unit over which several die ends the work, and what is
finished stays.
"""

import contextlib
import io
import logging
import os
import pickle
import sys
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from auditor.collectors.base.scorer import import_optional
from auditor.collectors.streaming.engines import Work, attempted, result_of
from auditor.core import validate
from auditor.core.errors import InputError

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
        workers: How many processes, each with its own model or training; 1 or more.
        address: Of a running cluster (``auto``, ``ray://host:10001``), all of whose machines must have this package
            installed, and see under the same paths what the work reads and writes: the tables, the model's file and the
            output's folder of a collection; of runs what the training reads, while their folder is this process's own.
            Default: Ray is started on this machine and stopped at the end, unless this process is connected already.

    >>> RayEngine(workers=4)
    RayEngine(workers=4, address=None)
    """

    workers: int = 2
    address: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", validate.at_least("workers", self.workers, least=1))

    def results(self, work: Work, units: Sequence[Any]) -> Generator[Any]:
        """Yield what the work returns, in the order in which workers are free.

        Raises:
            MissingExtraError: Ray is not installed.
            InputError: What the work raises, something that cannot be sent to another process, a cluster that is not
                there or too small, or a unit over which workers died.
        """
        if not units:
            return
        import_optional("ray", purpose="the Ray engine", extra="ray")
        packed = _packed(work)
        with ray_session(self.workers, self.address):
            yield from _results(packed, units, workers=min(self.workers, len(units)), work=work)


# --- The workers, and how units are given to them ---


def _packed(work: Work) -> bytes:
    """Return the work, and with how many threads it is done, as bytes.

    Arrays that Ray itself carries arrive read only, which some models refuse.
    """
    from ray import cloudpickle

    try:
        return bytes(cloudpickle.dumps((work, _Threads.here())))
    except Exception as error:
        raise InputError(
            f"{work.sent} must be such that Ray's workers can be sent a copy, got what cannot be pickled"
            f" ({validate.one_line(error)}); {work.if_not_sent}."
        ) from error


class _Worker:
    """An actor in a process of its own: it prepares the work once, and does one unit after another.

    It is given where modules are found in the process that started it: the model's class may be in one of the user's own.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        sys.path.extend(path for path in paths if path not in sys.path)
        self._work: Work | None = None

    def outcome(self, packed: list[Any], unit: Any) -> tuple[Any, Exception | None]:
        """Return what comes of a unit, good or bad, as data: raised inside Ray it would come out as Ray's traceback."""
        return attempted(self._done, packed, unit)

    def _done(self, packed: list[Any], unit: Any) -> Any:
        if self._work is None:
            import ray

            [place] = packed
            work, threads = pickle.loads(ray.get(place))  # noqa: S301 - of the process that started this one
            threads.use()
            work.prepare()
            threads.use()  # of the libraries that came with the model
            self._work = work
        return self._work(unit)


def _results(packed: bytes, units: Sequence[Any], *, workers: int, work: Work) -> Iterator[Any]:
    """Yield the result of each unit as it is there, to callers who may print."""
    import ray

    # Held here and not by a worker, so that it is there for whoever takes a dead one's place.
    place = [ray.put(packed)]
    actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=_ATTEMPTS - 1)(_Worker)
    pool = [actor.remote(sys.path) for _ in range(workers)]
    free, waiting = list(pool), deque(units)
    at_work: dict[Any, tuple[Any, Any]] = {}
    try:
        while waiting or at_work:
            with _silence():
                while free and waiting:
                    worker, unit = free.pop(), waiting.popleft()
                    at_work[worker.outcome.remote(place, unit)] = worker, unit
                [ended], _ = ray.wait(list(at_work), num_returns=1)
                worker, unit = at_work.pop(ended)
                free.append(worker)
                outcome = ray.get(ended)
            yield result_of(outcome)
    except ray.exceptions.RayActorError as error:
        raise InputError(
            f"{work.named(unit)} could not be done: {_ATTEMPTS} Ray workers died of it one after another; if memory ran"
            f" out, use fewer workers or {work.if_too_large}."
        ) from error
    except ray.exceptions.RayError as error:
        raise InputError(
            f"Ray must stay up while its workers are at work, got {type(error).__name__} from it; start again with the"
            " same settings."
        ) from error
    finally:
        # Whoever collects next in the same session would wait for their processors.
        with _silence(), contextlib.suppress(ray.exceptions.RayError):  # it is down itself
            for worker in pool:
                ray.kill(worker)


@dataclass(frozen=True)
class _Threads:
    """How many threads a process computes with: sums in another order would change the last bits of the losses.

    Attributes:
        pools: Threads of the libraries that are loaded, by what they do (``blas``, ``openmp``).
        torch: Threads of PyTorch, if it is loaded.
    """

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
        return cls(pools, None if torch is None else torch.get_num_threads())

    def use(self) -> None:
        """Make this process compute with as many; Ray gives its workers one thread otherwise."""
        from threadpoolctl import threadpool_limits

        threadpool_limits(dict(self.pools))
        torch = sys.modules.get("torch")
        if torch is not None and self.torch is not None:
            torch.set_num_threads(self.torch)


# --- Ray itself is started and stopped without a word on the terminal ---


@contextmanager
def ray_session(workers: int, address: str | None) -> Iterator[None]:
    """Connect to Ray, or start it, without its words on the terminal; stop only what was started here."""
    import ray

    there = ray.is_initialized()
    if there and address is not None:
        raise InputError(
            f"address must be left out where this process is connected to Ray already, got {address!r}."
        )
    with _quiet():
        if not there:
            _start(workers, address)
        try:
            _refuse_small(workers)
            yield
        finally:
            if not there:
                with _silence():
                    ray.shutdown()


def _start(workers: int, address: str | None) -> None:
    import ray

    plain: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    here = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _STORE}
    try:
        with _silence():
            ray.init(address=address or "local", **plain, **({} if address else here))
    except Exception as error:
        what = f"Ray at {address!r} cannot be reached" if address else "Ray cannot be started here"
        raise InputError(f"{what}: {validate.one_line(error)}.") from error


def _refuse_small(workers: int) -> None:
    import ray

    processors = int(ray.cluster_resources().get("CPU", 0))
    if processors < workers:
        raise InputError(
            f"workers must be at most the cluster's {processors} processors, got {workers}; ask for fewer."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray without its reports to its makers and its warnings."""
    before = {name: os.environ[name] for name in _QUIET if name in os.environ}
    os.environ.update(_QUIET)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"ray\.")  # of its own settings
            yield
    finally:
        for name in _QUIET:
            del os.environ[name]
        os.environ.update(before)


def _silence() -> contextlib.redirect_stdout[io.StringIO]:
    """Keep from standard output what Ray says there of its workers."""
    return contextlib.redirect_stdout(io.StringIO())
