"""What gets units of work done, and loses none of them: one after another here, or in other processes of this machine."""

import pickle
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from auditor.core.errors import AuditorError


class Work(Protocol):
    """What is done with each unit of something long. It can be pickled, so that another process can do it too."""

    @property
    def sent(self) -> str:
        """The arguments that another process is sent, the subject of error sentences."""

    @property
    def if_not_sent(self) -> str:
        """What to do where they cannot be pickled."""

    @property
    def if_too_large(self) -> str:
        """What takes less memory."""

    def prepare(self) -> None:
        """Build what takes time to build; called once in each process, before the first unit."""

    def named(self, unit: Any) -> str:
        """Return which unit this is, the subject of error sentences."""

    def __call__(self, unit: Any) -> Any:
        """Do one unit, and return what is known of it; done twice, it leaves the same on disk."""


class Engine(Protocol):
    """What does the work; whatever the engine, the same units give the same results."""

    def results(self, work: Work, units: Sequence[Any]) -> Generator[Any]:
        """Yield what the work returns for each unit, in any order; closed early, it ends what still runs.

        Raises:
            AuditorError: What the work raises, or an end of the processes that do it.
        """


@dataclass(frozen=True)
class LocalEngine:
    """Does one unit after another in this process.

    >>> LocalEngine()
    LocalEngine()
    """

    def results(self, work: Work, units: Sequence[Any]) -> Generator[Any]:
        """Yield what the work returns, in order."""
        if units:
            work.prepare()
        yield from map(work, units)


@dataclass(frozen=True)
class Processes:
    """Does units in parallel processes of this machine, each of the others with one thread for its linear algebra.

    Attributes:
        workers: How many; one is this process.
    """

    workers: int

    def results(self, work: Work, units: Sequence[Any]) -> Generator[Any]:
        """Yield what the work returns, as it is there."""
        if self.workers == 1 or not units:
            yield from LocalEngine().results(work, units)
            return
        import joblib
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        pool = joblib.Parallel(n_jobs=self.workers, batch_size=1, return_as="generator_unordered")
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            outcomes = pool(joblib.delayed(attempted)(_prepared, work, unit) for unit in units)
        try:
            for outcome in outcomes:
                yield result_of(outcome)
        except TerminatedWorkerError as error:
            raise AuditorError(
                "a worker process ended at its work, most often for want of memory; give memory and"
                " memory_per_worker, or fewer workers."
            ) from error
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # joblib's, that it ends what still runs
                outcomes.close()


def _prepared(work: Work, unit: Any) -> Any:
    work.prepare()
    return work(unit)


# --- The way back from another process: what was raised there comes as data, for not every exception survives it ---


def attempted(do: Callable[..., Any], *given: Any) -> tuple[Any, Exception | None]:
    """Return what a call returns, or else what it raises, with its trace as a note, in words where it cannot be pickled."""
    try:
        return do(*given), None
    except Exception as error:  # noqa: BLE001 - the last place that can turn an error into a sentence
        note = "Where it happened:\n" + traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - just made; some can be pickled, and not built again
            found = error
        except Exception:  # noqa: BLE001 - whatever cannot be pickled, in whatever way
            found = RuntimeError(f"{type(error).__name__}: {error}")
        found.add_note(note)
        return None, found


def result_of(outcome: tuple[Any, Exception | None]) -> Any:
    """Return what was returned in another process, or raise what was raised there."""
    result, error = outcome
    if error is not None:
        raise error
    return result


# --- How long it takes ---

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> [duration(time) for time in (0.2, 45, 600, 9000, 400_000)]
    ['a second', '45 seconds', '10 minutes', '2.5 hours', '4.6 days']
    """
    for size, name in ((_DAY, "days"), (_HOUR, "hours"), (_MINUTE, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.{0 if size == _MINUTE else 1}f} {name}"
    return "a second" if seconds < 1.5 else f"{seconds:.0f} seconds"  # noqa: PLR2004
