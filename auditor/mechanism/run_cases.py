"""run_cases(): one task for many settings, in parallel processes, so that nothing finished is ever run again.

Every result has a file of its own, named by the task, the setting and the seed, and is read where it is there.
"""

import dataclasses
import dis
import enum
import hashlib
import inspect
import json
import math
import os
import re
import sys
import time
import traceback
import types
import warnings
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from auditor.core import validate
from auditor.core.errors import AuditorError, InputError, OutputError
from auditor.core.files import drafts, whole

# --- What one run is of: a task, a setting and a seed; and the name that follows from them ---

_Setting = Mapping[str, str | int | float | bool | None]
_SHOWN = 300  # characters of a case in an error


@dataclass(frozen=True)
class Case:
    """One run that is to be made.

    Attributes:
        task: Module and name of the function that is run.
        setting: The flat mapping that it is run for, in plain values.
        root: The seed of the whole set of runs.
        code: The fingerprint of the function, where results are kept; it is no part of the name, so that a function that
            was changed meets what it made before.
    """

    task: str
    setting: _Setting
    root: int
    code: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides the result, in values of JSON."""
        return {"task": self.task, "case": dict(self.setting), "seed": self.root}

    @property
    def seed(self) -> int:
        """The seed of this run, in [0, 2^32): of the case alone, whatever the other cases and the task are."""
        words = np.frombuffer(_digest(dict(self.setting)), dtype="<u4").tolist()
        return int(np.random.SeedSequence([self.root, *words]).generate_state(1)[0])

    @property
    def file_name(self) -> str:
        """The name of the file of its result: readable, and another one for whatever else decides the result."""
        return f"{self.stem}-{_digest(self.identity).hex()[:20]}.npz"

    @property
    def stem(self) -> str:
        """How the names of all files of this task begin."""
        return re.sub(r"\W+", "-", self.task.rsplit(".", 1)[-1]).strip("-")[:40] or "run"

    @property
    def shown(self) -> str:
        """The setting as a reader of an error sees it."""
        text = json.dumps(dict(self.setting), ensure_ascii=False)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def task_name(task: Callable[..., Any], *, argument: str, kept: bool) -> str:
    """Return the name that a task's results are kept under.

    Args:
        task: What is run.
        argument: What the caller calls it.
        kept: Whether results are kept in a folder, where another task must never be taken for this one.

    Raises:
        InputError: It cannot be called, or results are to be kept of something without a name of its own.
    """
    if not callable(task):
        raise InputError(f"{argument} must be a function, got {type(task).__name__}.")
    name = getattr(task, "__qualname__", "")
    shown = name or type(task).__name__
    why = _why_not_its_own(task, name) if kept else None
    if why is not None:
        varies = "give what varies as values of the cases"
        raise InputError(
            f"{argument} must be a named function when its results are kept in a folder, got {shown!r}, {why}; write it"
            " with def at the top of a file or a notebook cell, and"
            f" {varies if argument == 'task' else 'one for everything that varies'}."
        )
    return f"{getattr(task, '__module__', '')}.{shown}"


def _why_not_its_own(task: Any, name: str) -> str | None:
    """Why the name does not say which function it is; null where it does."""
    if not name or "<lambda>" in name:
        return "which others could be called too"
    if "<locals>" in name:
        return "which is another function for everything that it was made with"
    if not isinstance(getattr(task, "__self__", None), types.ModuleType | None):
        return "which does something else for every object that it belongs to"
    return None


def _cases_of(cases: Iterable[_Setting], *, task: str, seed: int, code: str | None) -> list[Case]:
    """Return the cases in plain values.

    Raises:
        InputError: Something else than flat mappings of names to single values, no case, or one case twice.
    """
    if isinstance(cases, Mapping | str) or not isinstance(cases, Iterable):
        raise InputError(f"cases must be a list of mappings, got {type(cases).__name__}.")
    found = [Case(task, _plain(index, item), seed, code) for index, item in enumerate(cases)]
    if not found:
        raise InputError("cases must be at least one mapping, got an empty list.")
    seen: dict[bytes, int] = {}
    for index, case in enumerate(found):
        first = seen.setdefault(_digest(dict(case.setting)), index)
        if first != index:
            raise InputError(
                f"cases {first} and {index} (counting from 0) are the same, {case.shown}; give each once, or tell"
                " repetitions apart by a value such as 'repeat'."
            )
    return found


def _plain(index: int, case: Any) -> dict[str, Any]:
    if not isinstance(case, Mapping):
        raise InputError(
            f"case {index} (counting from 0) must be a mapping of names to values, got {type(case).__name__}."
        )
    return {_name(index, name): _value(index, name, value) for name, value in case.items()}


def _name(index: int, name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"case {index} (counting from 0) must have texts as names, got {name!r}.")
    return name


def _value(index: int, name: str, value: Any) -> str | int | float | bool | None:
    single = value.item() if isinstance(value, np.generic) else value
    good = single is None or isinstance(single, str | int | float)
    if not good or (isinstance(single, float) and not math.isfinite(single)):
        shown = validate.one_line(ValueError(repr(value)), longest=60)
        raise InputError(
            f"case {index} (counting from 0) must hold texts, finite numbers, booleans or None, got {name} = {shown}."
        )
    plain: str | int | float | bool | None = single
    return plain


def _digest(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).digest()


# --- How far a set of runs has come, told at most once a second ---

_SECOND, _MINUTE, _HOUR = 1.0, 60, 3600


@dataclass(frozen=True)
class Progress:
    """How far a set of runs has come.

    Attributes:
        done: Runs that are finished, those of earlier calls included.
        total: All runs.
        resumed: Runs of earlier calls, which were read from the folder.
        elapsed: Seconds since this call began.
        remaining: Seconds that the rest will take at the pace of this call; null before its first run is done.

    >>> str(Progress(done=12, total=40, resumed=3, elapsed=80.0, remaining=249.0))
    '12 of 40 runs done (3 from earlier) after 1 min 20 s, about 4 min 9 s to go.'
    """

    done: int
    total: int
    resumed: int
    elapsed: float
    remaining: float | None

    def __str__(self) -> str:
        """Return the same as a sentence."""
        earlier = f" ({self.resumed:,} from earlier)" if self.resumed else ""
        left = self.total - self.done
        rest = f", about {_duration(self.remaining)} to go" if left and self.remaining is not None else ""
        return f"{self.done:,} of {self.total:,} runs done{earlier} after {_duration(self.elapsed)}{rest}."


class Reporter:
    """Counts runs, and tells how far they have come at most once a second and at the end."""

    def __init__(self, tell: Callable[[Progress], object] | None, *, total: int, resumed: int) -> None:
        """Start the clock."""
        self._tell, self._total, self._resumed = tell, total, resumed
        self._done, self._start = resumed, time.monotonic()
        self._told = self._start
        if resumed == total:
            self.add(0)

    def add(self, runs: int) -> None:
        """Count so many more finished runs."""
        self._done += runs
        now = time.monotonic()
        if self._tell is None or (now - self._told < _SECOND and self._done < self._total):
            return
        self._told = now
        elapsed, new = now - self._start, self._done - self._resumed
        remaining = elapsed / new * (self._total - self._done) if new else None
        self._tell(Progress(self._done, self._total, self._resumed, elapsed, remaining))


def _duration(seconds: float | None) -> str:
    whole = round(seconds or 0.0)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


# --- Running what is not there yet ---

_OLD = 3600.0  # seconds after which nobody writes on a draft any more
_Task = Callable[..., Mapping[str, Any]]
Tell = Callable[[Progress], object]
Result = dict[str, float | str | bool | np.ndarray[Any, Any]]
_Good = Callable[[Case, Result], bool]
_Outcome = tuple[int, Result | None, AuditorError | None]


class RunError(AuditorError):
    """What went wrong in a run, as a sentence that names the run."""


def run_cases(
    task: _Task,
    cases: Iterable[_Setting],
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
    root = validate.at_least("seed", seed, least=0)
    name = task_name(task, argument="task", kept=folder is not None)
    found = _cases_of(cases, task=name, seed=root, code=None if folder is None else fingerprint(task))
    limits = {"workers": workers, "memory": memory, "memory_per_worker": memory_per_worker}
    return run_all(task, found, sizes=[1] * len(found), folder=folder, limits=limits, progress=progress)


def run_all(
    task: _Task,
    cases: Sequence[Case],
    *,
    sizes: Sequence[int],
    folder: str | os.PathLike[str] | None,
    limits: Mapping[str, float | None],
    progress: Tell | None,
    good: _Good | None = None,
) -> list[Result]:
    """Return the results of checked cases; each stands for so many runs of those that progress counts.

    A task of this package may raise `RunError`, whose sentence says all; ``good`` says whether what a file holds can be a
    result of it.
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function, such as print, got {progress!r}.")
    place = None if folder is None else made_folder(folder)
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
                _write_result(path, cases[index], result)
            results[index] = result
            reporter.add(sizes[index])
    return [result for result in results if result is not None]


def _kept(path: Path | None, case: Case, good: _Good | None) -> Result | None:
    """What a file holds, if it is there."""
    found = None if path is None else _read_result(path, case)
    if path is not None and found is not None and good is not None and not good(case, found):
        raise _damaged(path)
    return found


def made_folder(folder: Any) -> Path:
    """Return the folder as a path: it is there, can be written, and holds no old drafts of processes that were killed."""
    if not isinstance(folder, str | os.PathLike) or isinstance(folder, bytes):
        raise InputError(f"folder must be a text or a path, got {folder!r}.")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise OutputError(f"folder {str(place)!r} cannot be made: {validate.one_line(error)}.") from None
    if not os.access(place, os.W_OK):
        raise OutputError(f"folder {str(place)!r} cannot be written: permission denied; name another.")
    for draft in drafts(place):
        with suppress(OSError):  # another process may have taken it away, or put it in its place
            if time.time() - draft.stat().st_mtime > _OLD:
                draft.unlink()
    return place


def _outcomes(
    task: _Task, cases: Sequence[Case], paths: Sequence[Path | None], waiting: Sequence[int], processes: int
) -> Generator[_Outcome]:
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
def _dropped_in_silence(found: Generator[_Outcome]) -> Iterator[None]:
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
    said = validate.one_line(error if isinstance(error, Exception) else Exception(*error.args))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _outcome(task: _Task, case: Case, index: int, path: Path | None = None) -> _Outcome:
    """Run one case; what goes wrong is returned as a sentence, because not every exception survives the way back."""
    try:
        kept = None if path is None else _read_result(path, case)  # by another call, since this one began
    except InputError as error:
        return index, None, error
    if kept is not None:
        return index, kept, None
    try:
        found = task(dict(case.setting), seed=case.seed)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the task raises
        return index, None, _told(error, f"the task failed for case {case.shown}")
    try:
        return index, _checked_result(case, found), None
    except InputError as error:
        return index, None, error


# --- How many processes run at once: as many as there are cores, cases and memory for ---


def number_of_workers(
    *, cases: int, workers: int | None, memory: float | None, memory_per_worker: float | None
) -> int:
    """Return the number of processes.

    Args:
        cases: Runs to be made.
        workers: At most so many; the machine's cores by default.
        memory: Bytes for all of them.
        memory_per_worker: Bytes that one of them needs at most, as measured by the caller.

    Raises:
        InputError: One of the two amounts of memory without the other, or less memory than one process needs.

    >>> number_of_workers(cases=100, workers=8, memory=6e9, memory_per_worker=1.5e9)
    4
    """
    if workers is None:
        import joblib

        most = int(joblib.cpu_count())
    else:
        most = validate.at_least("workers", workers, least=1)
    if (memory is None) != (memory_per_worker is None):
        raise InputError(
            "memory and memory_per_worker must be given together, got one of them; both are in bytes."
        )
    if memory is not None and memory_per_worker is not None:
        most = min(most, _fitting(memory, memory_per_worker))
    return max(1, min(most, cases))


def _fitting(memory: float, each: float) -> int:
    memory, each = validate.positive("memory", memory), validate.positive("memory_per_worker", each)
    if memory < each:
        raise InputError(
            f"memory must hold at least one worker, got {memory:,.0f} bytes for workers of {each:,.0f}; give more memory"
            " or make the runs smaller."
        )
    return int(memory // each)


# --- The result of one run, and its file: an ``.npz`` archive, there whole or not at all, without pickles ---

_FORMAT = 1
_HEADER = "header"
_KINDS = "biuf"
_BITS = 64
# What a file that was cut off, renamed or made up can raise: also sizes that no memory holds.
DAMAGE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, MemoryError, OverflowError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def _checked_result(case: Case, result: Any) -> Result:
    """Return the result of a task as it would come back from its file.

    Raises:
        InputError: It is no flat mapping of names to numbers, texts or numeric arrays.
    """
    if not isinstance(result, Mapping):
        raise InputError(
            f"the task must return a mapping of names to values, got {type(result).__name__} for case {case.shown}."
        )
    return {_checked_name(case, name): _checked_value(case, name, value) for name, value in result.items()}


def _checked_name(case: Case, name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"results must have texts as names, got {name!r} for case {case.shown}.")
    return name


def _checked_value(case: Case, name: str, value: Any) -> Any:
    if isinstance(value, str | bool | float) and not isinstance(value, np.generic):
        return value
    array = _array(value)
    if array is None and type(value) is int:
        raise InputError(
            f"results must be whole numbers of at most {_BITS} bits, got {name} of {value.bit_length():,} bits for case"
            f" {case.shown}; return it as a text or a floating point number."
        )
    if array is None:
        raise InputError(
            f"results must be numbers, texts, booleans or arrays of numbers, got {name} of type"
            f" {type(value).__name__} for case {case.shown}."
        )
    return array if array.ndim else array.item()


def _array(value: Any) -> np.ndarray[Any, Any] | None:
    if isinstance(value, np.ma.MaskedArray):  # its mask would be lost
        return None
    try:
        array = np.array(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    if array.ndim == 0 and array.dtype.kind == "U":  # a text of NumPy's
        return array
    return array if array.dtype.kind in _KINDS else None


def _write_result(path: Path, case: Case, result: Result) -> None:
    """Write a result to its file, whole or not at all.

    Raises:
        OutputError: It cannot be written, as on a full disk.
    """
    arrays = {name: value for name, value in result.items() if isinstance(value, np.ndarray)}
    header = {
        "format": _FORMAT,
        **case.identity,
        **({} if case.code is None else {"code": case.code, "python": PYTHON}),
        "order": list(result),
        "values": {name: value for name, value in result.items() if name not in arrays},
        "arrays": list(arrays),
    }
    content: dict[str, Any] = {f"array_{index}": value for index, value in enumerate(arrays.values())}
    content[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with whole(path, folder=path.parent) as draft, draft.open("wb") as file:
        np.savez(file, **content)


def _read_result(path: Path, case: Case) -> Result | None:
    """Return the result in a file; none if there is no such file.

    Raises:
        InputError: The file is damaged, or holds the result of something else or of other code.
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(file[_HEADER].tobytes())
            arrays = {name: file[f"array_{index}"] for index, name in enumerate(header["arrays"])}
        found = {name: arrays[name] if name in arrays else header["values"][name] for name in header["order"]}
        whose = {"format": _FORMAT, **case.identity} == {
            name: header[name] for name in ("format", *case.identity)
        }
    except DAMAGE as error:
        raise _damaged(path) from error
    if not whose:
        raise InputError(
            f"file {str(path)!r} holds the result of another run than its name says; delete it, and the run is made"
            " again."
        )
    _check_code(path, case, header)
    return found


def _damaged(path: Path) -> InputError:
    """Return the sentence for a file that holds no result."""
    return InputError(
        f"file {str(path)!r} of a finished run is damaged; delete it, and the run is made again."
    )


def _check_code(path: Path, case: Case, header: Mapping[str, Any]) -> None:
    """Refuse what other code made; files of earlier releases do not say by which they were made."""
    code, python = header.get("code"), header.get("python")
    if code is None or case.code is None or (code, python) == (case.code, PYTHON):
        return
    name = case.task.rsplit(".", 1)[-1]
    if python == PYTHON:
        raise InputError(
            f"file {str(path)!r} was made by another version of the function {name!r}; take another folder, or delete it."
        )
    raise InputError(
        f"file {str(path)!r} was made with Python {python}, and with {PYTHON} it cannot be told whether the function"
        f" {name!r} is still the same; take another folder, or delete it."
    )


# --- Whether a function is the one that made what is kept: a fingerprint of its code, without its comments and docstrings ---

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Whose instructions these are: another version of Python compiles the same source to other ones."""
# Of those that change what a call does; others say whether there is a docstring or an annotation.
_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), slice)


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a text that is the same for the same code, and another where something in the code was changed.

    It covers the instructions with their constants, the defaults, what is closed over, and the functions below a decorator
    that names what it wraps. It does not cover the functions that are called, nor values of the module.

    >>> def train(with_canary, seed):
    ...     return seed + 1.0
    >>> def changed(with_canary, seed):
    ...     return seed + 2.0
    >>> fingerprint(train) == fingerprint(changed)
    False
    """
    parts = json.dumps(_function(function, ()), sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()


def _function(function: Any, seen: tuple[int, ...]) -> Any:
    """Every level of a decorated function, the outermost first."""
    if id(function) in seen:  # a function that closes over itself
        return ["again", seen.index(id(function))]
    seen = (*seen, id(function))
    code = getattr(function, "__code__", None)
    wrapped = getattr(function, "__wrapped__", None)
    return [
        _code(code, seen) if isinstance(code, types.CodeType) else type(function).__qualname__,
        _plain_constant(getattr(function, "__defaults__", None), seen),
        _plain_constant(getattr(function, "__kwdefaults__", None), seen),
        [_plain_constant(inside, seen) for inside in _cells(function)],
        None if wrapped is None else _function(wrapped, seen),
    ]


def _cells(function: Any) -> Iterator[Any]:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            yield None


def _code(code: types.CodeType, seen: tuple[int, ...]) -> Any:
    # By what each instruction means and not by numbers of constants, which a docstring moves; it is never loaded itself.
    steps = [
        [step.opname, _plain_constant(step.argval, seen)]
        for step in dis.get_instructions(code)
        if step.opname != "EXTENDED_ARG"
    ]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _FLAGS
    return [steps, counts, code.co_exceptiontable.hex()]


def _plain_constant(value: Any, seen: tuple[int, ...]) -> Any:
    """A constant or a default in values of JSON, alike in every process; of an object without a plain form, its kind."""
    plain: Any
    match value:
        case types.CodeType():
            plain = _code(value, seen)
        case types.FunctionType():
            plain = _function(value, seen)
        case enum.Enum():
            plain = value.name
        case np.ndarray() | np.generic() if not value.dtype.hasobject:
            plain = str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()
        case _ if isinstance(value, _PLAIN):
            plain = repr(value)
        case tuple() | list():
            plain = [_plain_constant(item, seen) for item in value]
        case set() | frozenset():  # in another order in every process
            plain = sorted(json.dumps(_plain_constant(item, seen)) for item in value)
        case dict():
            plain = sorted(
                json.dumps([_plain_constant(item, seen) for item in pair]) for pair in value.items()
            )
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            plain = [_plain_constant(getattr(value, item.name), seen) for item in dataclasses.fields(value)]
        case _:
            plain = getattr(value, "__qualname__", None)
    return [type(value).__qualname__, plain]
