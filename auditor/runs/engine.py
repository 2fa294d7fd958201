"""run_cases(): one task for many settings, in parallel processes, so that nothing finished is ever run again."""

import os
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from auditor import _validate
from auditor.errors import AuditorError, InputError, OutputError
from auditor.runs.case import Case, Setting, cases_of, task_name
from auditor.runs.fingerprint import fingerprint
from auditor.runs.progress import Progress, Reporter
from auditor.runs.record import Result, damaged, plain_result, read_result, write_result
from auditor.runs.workers import number_of_workers

__all__ = ["RunError", "Task", "Tell", "in_words", "made", "run_all", "run_cases"]

_OLD = 3600.0  # seconds after which nobody writes on a draft any more

Task = Callable[..., Mapping[str, Any]]
Tell = Callable[[Progress], object]
Good = Callable[[Case, Result], bool]
Outcome = tuple[int, Result | None, AuditorError | None]


class RunError(AuditorError):
    """What went wrong in a run, as a sentence that names the run."""


def run_cases(
    task: Task,
    cases: Iterable[Setting],
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    memory: float | None = None,
    memory_per_worker: float | None = None,
    seed: int = 0,
    progress: Tell | None = None,
) -> list[Result]:
    """Run a task for every case, in parallel processes, and return the results in the order of the cases.

    With a folder every result is written as soon as it is there, and a case whose result is there already is read
    and not run again: a long grid that was interrupted goes on where it stopped. A file belongs to the task's
    module and name, the case and the seed, and remembers the task's code: where that was changed since, the file is
    neither read nor made again, but named in an error. Comments and docstrings do not count. Functions that the task
    calls, values of its module and data it reads are not covered: take another folder when these change. Two calls at
    once may share a folder: each reads what the other has finished, and only cases that both are running run twice.

    Args:
        task: Called as ``task(case, seed=...)`` with a mapping and an integer in [0, 2^32) that depends on the case and
            on ``seed`` alone. It returns a flat mapping of names to numbers, texts, booleans or arrays of numbers, and
            has one thread for its linear algebra. It may be defined in a notebook.
        cases: Flat mappings of names to texts, finite numbers, booleans or None; each different from the others.
        folder: Where results are kept, one ``.npz`` file for each; created if it is not there. Nowhere by default.
        workers: Processes at once, at most; by default one for each core. With one, all runs in this process.
        memory: Bytes for all processes together; together with the next, it limits their number.
        memory_per_worker: Bytes that one process needs at most.
        seed: Another seed gives every case another one.
        progress: Told a `Progress` at most once a second and at the end; ``print`` will do.

    Returns:
        One mapping for each case, the same whether it was run now or read, with any number of processes.

    Raises:
        InputError: Arguments or results that cannot be used, or a file that is damaged or was made by other code.
        AuditorError: The task failed, and the sentence names the case; or a process ended. What is finished stays.
        OutputError: The folder cannot be written.

    >>> def area(case, seed):
    ...     return {"area": case["width"] * case["height"]}
    >>> run_cases(area, [{"width": 2, "height": 3}, {"width": 1, "height": 5}], workers=1)
    [{'area': 6}, {'area': 5}]
    """
    root = _validate.at_least("seed", seed, least=0)
    name = task_name(task, argument="task", kept=folder is not None)
    found = cases_of(cases, task=name, seed=root, code=None if folder is None else fingerprint(task))
    limits = {"workers": workers, "memory": memory, "memory_per_worker": memory_per_worker}
    return run_all(task, found, sizes=[1] * len(found), folder=folder, limits=limits, progress=progress)


def run_all(
    task: Task,
    cases: Sequence[Case],
    *,
    sizes: Sequence[int],
    folder: str | os.PathLike[str] | None,
    limits: Mapping[str, float | None],
    progress: Tell | None,
    good: Good | None = None,
) -> list[Result]:
    """Return the results of checked cases; each stands for so many runs of those that progress counts.

    A task of this package may raise `RunError`, whose sentence says all; ``good`` says whether what a file holds can be a
    result of it.
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function, such as print, got {progress!r}.")
    place = None if folder is None else made(folder)
    paths = [None if place is None else place / case.file_name for case in cases]
    results = [_kept(path, case, good) for case, path in zip(cases, paths, strict=True)]
    waiting = [index for index, result in enumerate(results) if result is None]
    most: dict[str, Any] = dict(limits)
    processes = number_of_workers(cases=len(waiting), **most)
    resumed = sum(sizes) - sum(sizes[index] for index in waiting)
    reporter = Reporter(progress, total=sum(sizes), resumed=resumed)
    with closing(_outcomes(task, cases, paths, waiting, processes)) as outcomes:
        for index, result, error in outcomes:
            if result is None:
                raise error or AuditorError("a run ended without a result.")
            path = paths[index]
            if path is not None:
                write_result(path, cases[index], result)
            results[index] = result
            reporter.add(sizes[index])
    return [result for result in results if result is not None]


def _kept(path: Path | None, case: Case, good: Good | None) -> Result | None:
    """What a file holds, if it is there."""
    found = None if path is None else read_result(path, case)
    if path is not None and found is not None and good is not None and not good(case, found):
        raise damaged(path)
    return found


def made(folder: Any) -> Path:
    """Return the folder as a path: it is there, can be written, and holds no old drafts of processes that were killed."""
    if not isinstance(folder, str | os.PathLike) or isinstance(folder, bytes):
        raise InputError(f"folder must be a text or a path, got {folder!r}.")
    from auditor.collectors.streaming.writing import drafts

    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise OutputError(f"folder {str(place)!r} cannot be made: {_validate.one_line(error)}.") from None
    if not os.access(place, os.W_OK):
        raise OutputError(f"folder {str(place)!r} cannot be written: permission denied; name another.")
    for draft in drafts(place):
        with suppress(OSError):  # another process may have taken it away, or put it in its place
            if time.time() - draft.stat().st_mtime > _OLD:
                draft.unlink()
    return place


def _outcomes(
    task: Task, cases: Sequence[Case], paths: Sequence[Path | None], waiting: Sequence[int], processes: int
) -> Generator[Outcome]:
    """The outcomes as they come, in any order."""
    from threadpoolctl import threadpool_limits

    if processes == 1 or not waiting:
        with threadpool_limits(1):
            yield from (_outcome(task, cases[index], index, paths[index]) for index in waiting)
        return
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # One result at a time, so that each is written when it is there; one thread each, so that processes do not fight.
    pool = joblib.Parallel(n_jobs=processes, batch_size=1, return_as="generator_unordered")
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        found = pool(joblib.delayed(_outcome)(task, cases[index], index, paths[index]) for index in waiting)
    try:
        with _dropped_in_silence(found):
            # Not `yield from`, which would end it before the warning is silenced.
            for outcome in found:  # noqa: UP028
                yield outcome
    except TerminatedWorkerError as error:
        raise AuditorError(
            "a worker process ended while it ran a case, most often for want of memory; give memory and memory_per_worker,"
            " or fewer workers."
        ) from error


@contextmanager
def _dropped_in_silence(found: Generator[Outcome]) -> Iterator[None]:
    """End what is still running when the reader stops, without joblib's warning that it does so."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found.close()


def _told(error: BaseException, where: str) -> AuditorError:
    """One sentence, with the trace of the process in which it happened as a note."""
    told = AuditorError(str(error) if isinstance(error, RunError) else f"{where}: {in_words(error)}.")
    told.add_note(traceback.format_exc())
    return told


def in_words(error: BaseException) -> str:
    """Return the kind of an exception and what it says, as a clause."""
    said = _validate.one_line(error if isinstance(error, Exception) else Exception(*error.args))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _outcome(task: Task, case: Case, index: int, path: Path | None = None) -> Outcome:
    """Run one case; what goes wrong is returned as a sentence, because not every exception survives the way back."""
    try:
        kept = None if path is None else read_result(path, case)  # by another call, since this one began
    except InputError as error:
        return index, None, error
    if kept is not None:
        return index, kept, None
    try:
        found = task(dict(case.setting), seed=case.seed)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the task raises
        return index, None, _told(error, f"the task failed for case {case.shown}")
    try:
        return index, plain_result(case, found), None
    except InputError as error:
        return index, None, error
