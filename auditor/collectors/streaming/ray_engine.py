"""Ray Data as an engine: units go out to a pool of workers, parts come to lie in the same folder.

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
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor import _validate
from auditor.collectors.extras import needed
from auditor.collectors.scorer import Scorer
from auditor.collectors.streaming.collection import Collection, Unit, UnitReport
from auditor.collectors.streaming.ray_worker import Attempts, Errand, Letter, Threads, UnitScorer, unpacked
from auditor.collectors.streaming.writing import _DRAFT, unwritable
from auditor.errors import InputError

__all__ = ["RayEngine"]

_BLOCKS = 1000  # at most so many tasks: a task is some units, reported together
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
        object.__setattr__(self, "workers", _validate.at_least("workers", self.workers, least=1))

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
        needed("ray.data", purpose="the Ray engine", extra="ray")
        errand = Errand(collection, tuple(units), folder.absolute(), scorer.identity, Threads.here())
        workers = min(self.workers, len(units))
        with _letter(folder.absolute(), errand) as letter, _quiet(), _session(self.workers, self.address):
            for report in _reports(letter, units=len(units), workers=workers):
                done(report)


@contextmanager
def _letter(folder: Path, errand: Errand) -> Iterator[Letter]:
    """Yield where the workers find what they need, while they do.

    Ray could carry it, but loses a large argument of a worker before the worker is started again.
    """
    from ray import cloudpickle

    try:
        words = bytes(cloudpickle.dumps(errand))
    except Exception as error:
        raise InputError(
            "model and tables must be such that they can be sent to Ray's workers, got one that cannot be pickled"
            f" ({_validate.one_line(error)}); name the model's file, or use the local engine."
        ) from error
    path = folder / f"{_DRAFT}{uuid.uuid4().hex}"
    try:
        try:
            path.touch(mode=0o600, exist_ok=False)  # it may hold the model
            path.write_bytes(words)
        except OSError as error:
            raise unwritable(path, error) from error
        yield Letter(path, hashlib.sha256(words).hexdigest())
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _reports(letter: Letter, *, units: int, workers: int) -> Iterator[UnitReport]:
    """Yield the report of each unit as its part is written."""
    import ray
    from ray.data import ActorPoolStrategy

    # It takes no processor, and begins anew if it is killed itself.
    attempts = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Attempts).remote()
    positions = [{"position": position} for position in range(units)]
    outcomes = ray.data.from_items(positions, override_num_blocks=min(units, _BLOCKS)).map_batches(
        UnitScorer,
        fn_constructor_args=(letter, attempts, sys.path),
        batch_size=1,
        compute=ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    try:
        for batch in outcomes.iter_batches(batch_size=None):
            yield from map(unpacked, batch["outcome"])
    except ray.exceptions.RayError as error:
        raise InputError(
            f"Ray must stay up while records are scored, got {type(error).__name__} from it; start again with the"
            " same settings."
        ) from error


@contextmanager
def _session(workers: int, address: str | None) -> Iterator[None]:
    """Connect to Ray, or start it; stop only what was started here."""
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
        raise InputError(f"{what}: {_validate.one_line(error)}.") from error
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
    """Ray without its reports to its makers, its progress bars and its log on the terminal."""
    before = {name: os.environ.get(name) for name in _QUIET}
    os.environ.update(_QUIET)
    log = logging.getLogger("ray.data")
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            # Ray warns of its own settings, and prints what happened to its workers on standard output.
            warnings.filterwarnings("ignore", module=r"ray\.")
            from ray.data import DataContext

            context = DataContext.get_current()
            bars, level = context.enable_progress_bars, log.level
            context.enable_progress_bars = False
            log.setLevel(logging.ERROR)
            try:
                yield
            finally:
                context.enable_progress_bars = bars
                log.setLevel(level)
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
