"""run_cases(): one task for many settings, in parallel processes, so that nothing finished is ever run again.

Every result has a file of its own, named by the task, the setting and the seed, and is read where it is there.
"""

import dis
import hashlib
import inspect
import json
import math
import os
import re
import time
import types
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from auditor.collectors.streaming.engines import Engine, Processes, attempted, duration
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
        InputError: It cannot be called, or results are to be kept of something without a name of its own: a lambda, a
            function in a function, a method of an object, an object.
    """
    if not callable(task):
        raise InputError(f"{argument} must be a function, got {type(task).__name__}.")
    name = getattr(task, "__qualname__", "")
    of_object = not isinstance(getattr(task, "__self__", None), types.ModuleType | None)
    if kept and (not name or "<" in name or of_object):
        raise InputError(
            f"{argument} must be a named function when its results are kept in a folder, got"
            f" {name or type(task).__name__!r}, which others could be called too; write it with def at the top of a file"
            " or a notebook cell, and one for everything that varies."
        )
    return f"{getattr(task, '__module__', '')}.{name or type(task).__name__}"


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
    where = f"case {index} (counting from 0)"
    if not isinstance(case, Mapping):
        raise InputError(f"{where} must be a mapping of names to values, got {type(case).__name__}.")
    found = {name: value.item() if isinstance(value, np.generic) else value for name, value in case.items()}
    for name, value in found.items():
        if not isinstance(name, str):
            raise InputError(f"{where} must have texts as names, got {name!r}.")
        single = value is None or isinstance(value, str | int | float)
        if not single or (isinstance(value, float) and not math.isfinite(value)):
            shown = validate.one_line(ValueError(repr(value)), longest=60)
            raise InputError(
                f"{where} must hold texts, finite numbers, booleans or None, got {name} = {shown}."
            )
    return found


def _digest(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).digest()


# --- How far a set of runs has come, told at most once a second ---

_SECOND = 1.0


@dataclass(frozen=True)
class Progress:
    """How far a set of runs has come.

    Attributes:
        done: Runs that are finished, those of earlier calls included.
        total: All runs.
        resumed: Runs of earlier calls, which were read from the folder.
        elapsed: Seconds since this call began.
        remaining: Seconds that the rest will take at the pace of this call; null before its first run is done.
        failed: Runs that failed, of those before the first that is not finished.
        evidence: What the same runs say, where a rule of stopping looks at them.

    >>> str(Progress(done=12, total=40, resumed=3, elapsed=80.0, remaining=249.0))
    '12 of 40 runs done (3 from earlier) after 80 seconds, about 4 minutes to go.'
    >>> str(Progress(done=12, total=40, resumed=0, elapsed=80.0, remaining=0.0, failed=2, evidence="evidence 21 of 20"))
    '12 of 40 runs done (2 failed) after 80 seconds; evidence 21 of 20.'
    """

    done: int
    total: int
    resumed: int
    elapsed: float
    remaining: float | None
    failed: int = 0
    evidence: str | None = None

    def __str__(self) -> str:
        """Return the same as a sentence."""
        parts = [f"{self.resumed:,} from earlier"] if self.resumed else []
        parts += [f"{self.failed:,} failed"] if self.failed else []
        of_them = f" ({', '.join(parts)})" if parts else ""
        rest = f", about {duration(self.remaining)} to go" if self.remaining else ""
        rest += "" if self.evidence is None else f"; {self.evidence}"
        return f"{self.done:,} of {self.total:,} runs done{of_them} after {duration(self.elapsed)}{rest}."


Tell = Callable[[Progress], object]


@dataclass(frozen=True)
class Followed:
    """What is known of the runs before the first that is not finished.

    Attributes:
        failed: How many of them failed.
        evidence: What they say, if anything looks at them.
        enough: Whether no further runs are wanted.
    """

    failed: int = 0
    evidence: str | None = None
    enough: bool = False


class Reporter:
    """Counts runs, and tells how far they have come at most once a second and at the end."""

    def __init__(self, tell: Tell | None, *, total: int, resumed: int) -> None:
        """Start the clock."""
        self._tell, self._total, self._resumed = tell, total, resumed
        self._done, self._start = resumed, time.monotonic()
        self._told = self._start

    def add(self, runs: int, followed: Followed = Followed()) -> None:
        """Count so many more finished runs."""
        self._done += runs
        now, last = time.monotonic(), followed.enough or self._done == self._total
        if self._tell is None or (now - self._told < _SECOND and not last):
            return
        self._told = now
        elapsed, new = now - self._start, self._done - self._resumed
        to_go = 0 if last else self._total - self._done
        remaining = elapsed / new * to_go if new else None
        so_far = (self._done, self._total, self._resumed, elapsed, remaining)
        self._tell(Progress(*so_far, followed.failed, followed.evidence))


# --- Running what is not there yet ---

_OLD = 3600.0  # seconds after which nobody writes on a draft any more
_Task = Callable[..., Mapping[str, Any]]
Result = dict[str, float | str | bool | np.ndarray[Any, Any]]


def run_cases(
    task: _Task,
    cases: Iterable[_Setting],
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    memory: float | None = None,
    memory_per_worker: float | None = None,
    engine: Engine | None = None,
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
        engine: In place of processes of this machine: `RayEngine()`, for a Ray cluster.
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
    work = Runs(partial(_run, task), None if folder is None else made_folder(folder))
    sizes = [1] * len(found)
    return run_all(work, found, sizes=sizes, engine=engine, limits=limits, progress=progress)


def _run(task: _Task, case: Case) -> Mapping[str, Any]:
    try:
        return task(dict(case.setting), seed=case.seed)
    except (Exception, SystemExit) as error:
        raise AuditorError(f"the task failed for case {case.shown}: {in_words(error)}.") from error


def in_words(error: BaseException) -> str:
    """Return the kind of an exception and what it says, as a clause."""
    said = validate.one_line(error if isinstance(error, Exception) else Exception(*error.args))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


@dataclass(frozen=True)
class Runs:
    """The work of a set of runs: what is not in the folder is run.

    Attributes:
        run: Makes what one case asks for; whatever it raises should be a sentence that names the run.
        folder: Where results are kept, if they are; it is there.
        good: Whether what a file holds can be a result of a case.
        shown: What an error calls a case.
        sent: The argument that holds what is run.
        patient: Whether an error is a result like others, as where it may be about a run that does not count.
    """

    run: Callable[[Case], Mapping[str, Any]]
    folder: Path | None
    good: Callable[[Case, Result], bool] = lambda _case, _found: True
    shown: Callable[[Case], str] = lambda case: f"case {case.shown}"
    sent: str = "task"
    patient: bool = False

    if_not_sent: ClassVar[str] = "let the function make or open itself what cannot be, or leave engine out"
    if_too_large: ClassVar[str] = "make the runs smaller"

    def prepare(self) -> None:
        """Nothing takes time to build."""

    def named(self, unit: tuple[int, Case]) -> str:
        """Return the case."""
        return self.shown(unit[1])

    def __call__(self, unit: tuple[int, Case]) -> tuple[int, Result | Exception]:
        """Return the place of a case with its result."""
        index, case = unit
        result, error = attempted(self._result, case) if self.patient else (self._result(case), None)
        return index, result if error is None else error

    def _result(self, case: Case) -> Result:
        """Return the result of a case, which another call may have made since this one began."""
        found = self.kept(case)
        return _checked_result(case, self.run(case)) if found is None else found

    def kept(self, case: Case) -> Result | None:
        """Return the result that the folder holds of a case, if it holds one."""
        path = None if self.folder is None else self.folder / case.file_name
        if path is None or not path.exists():
            return None
        found = _read_result(path, case)
        if not self.good(case, found):
            raise _damaged(path)
        return found


def run_all(
    work: Runs,
    cases: Sequence[Case],
    *,
    sizes: Sequence[int],
    engine: Engine | None,
    limits: Mapping[str, Any],
    progress: Tell | None,
    follow: Callable[[int, Result | Exception], Followed] = lambda _place, _outcome: Followed(),
) -> list[Result]:
    """Return the results of checked cases; each stands for so many runs of those that progress counts.

    ``follow`` is told the place of a case and its result: of all that are kept, and then of each that is finished. It ends
    the work when it has enough, and what is not finished then is left out.
    """
    from threadpoolctl import threadpool_limits

    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function, such as print, got {progress!r}.")
    results = [work.kept(case) for case in cases]
    waiting = [unit for unit in enumerate(cases) if results[unit[0]] is None]
    chosen = _engine(engine, limits, cases=len(waiting))
    resumed = sum(sizes) - sum(sizes[index] for index, _ in waiting)
    reporter = Reporter(progress, total=sum(sizes), resumed=resumed)
    so_far = Followed()
    for index, result in enumerate(results):
        so_far = so_far if result is None else follow(index, result)
    reporter.add(0, so_far)
    with threadpool_limits(1), closing(chosen.results(work, [] if so_far.enough else waiting)) as outcomes:
        for index, outcome in outcomes:
            if not isinstance(outcome, Exception):
                results[index] = outcome
                # Here and not in another process, which is ended with a draft in its hands when a run fails.
                if work.folder is not None:
                    _write_result(work.folder / cases[index].file_name, cases[index], outcome)
            so_far = follow(index, outcome)
            reporter.add(0 if results[index] is None else sizes[index], so_far)
            if so_far.enough:
                break
    return [result for result in results if result is not None]


def _engine(engine: Engine | None, limits: Mapping[str, Any], *, cases: int) -> Engine:
    """Return what does the work: processes of this machine, if nothing else is named.

    Raises:
        InputError: Something else than an engine, or one with limits of such processes.
    """
    if engine is None:
        return Processes(number_of_workers(cases=cases, **limits))
    if isinstance(engine, type) or not callable(getattr(engine, "results", None)):
        raise InputError(f"engine must be one such as auditor.RayEngine(workers=2), got {engine!r}.")
    for name, value in limits.items():
        if value is not None:
            raise InputError(
                f"{name} must be left out where an engine is given, got {value!r}; it is about processes of this"
                " machine, and the engine has its own number of workers."
            )
    return engine


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
    import joblib

    most = joblib.cpu_count() if workers is None else validate.at_least("workers", workers, least=1)
    if (memory is None) != (memory_per_worker is None):
        raise InputError(
            "memory and memory_per_worker must be given together, got one of them; both are in bytes."
        )
    if memory is not None and memory_per_worker is not None:
        memory = validate.positive("memory", memory)
        each = validate.positive("memory_per_worker", memory_per_worker)
        if memory < each:
            raise InputError(
                f"memory must hold at least one worker, got {memory:,.0f} bytes for workers of {each:,.0f}; give more"
                " memory or make the runs smaller."
            )
        most = min(most, int(memory // each))
    return max(1, min(most, cases))


# --- The result of one run, and its file: an ``.npz`` archive, there whole or not at all, without pickles ---

_FORMAT = 1
_HEADER = "header"
_KINDS = "biuf"
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
    found = {}
    for name, value in result.items():
        if not isinstance(name, str):
            raise InputError(f"results must have texts as names, got {name!r} for case {case.shown}.")
        found[name] = _plain_value(value)
        if found[name] is None:
            raise InputError(
                "results must be texts, booleans, numbers of at most 64 bits or arrays of these numbers, got"
                f" {name} of type {type(value).__name__} for case {case.shown}."
            )
    return found


def _plain_value(value: Any) -> Any:
    """Return a value as a file holds it; none where it cannot."""
    if isinstance(value, str | bool | float) and not isinstance(value, np.generic):
        return value
    if isinstance(value, np.ma.MaskedArray):  # its mask would be lost
        return None
    try:
        array = np.array(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    if array.ndim == 0 and array.dtype.kind in f"{_KINDS}U":
        return array.item()
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
        "code": case.code,
        "order": list(result),
        "values": {name: value for name, value in result.items() if name not in arrays},
        "arrays": list(arrays),
    }
    content: dict[str, Any] = {f"array_{index}": value for index, value in enumerate(arrays.values())}
    content[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with whole(path, folder=path.parent) as draft, draft.open("wb") as file:
        np.savez(file, **content)


def _read_result(path: Path, case: Case) -> Result:
    """Return the result in a file.

    Raises:
        InputError: The file is damaged, or holds the result of something else or of other code.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(file[_HEADER].tobytes())
            arrays = {name: file[f"array_{index}"] for index, name in enumerate(header["arrays"])}
        found = {name: arrays[name] if name in arrays else header["values"][name] for name in header["order"]}
        if any(header[name] != value for name, value in {"format": _FORMAT, **case.identity}.items()):
            raise ValueError("of another run")
    except DAMAGE as error:
        raise _damaged(path) from error
    if header.get("code") != case.code:
        raise InputError(
            f"file {str(path)!r} was made by another version of the function {case.task.rsplit('.', 1)[-1]!r}, or of"
            " Python; take another folder, or delete it."
        )
    return found


def _damaged(path: Path) -> InputError:
    """Return the sentence for a file that does not hold the result that its name says."""
    return InputError(
        f"file {str(path)!r} of a finished run is damaged or another's; delete it, and the run is made again."
    )


# --- Whether a function is the one that made what is kept: a fingerprint of its code, without its comments and docstrings ---

# Of those that change what a call does; others say whether there is a docstring or an annotation.
_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a text that is the same for the same code, and another where something in the code was changed.

    It covers the instructions with their constants, the defaults, what is closed over, and the functions below a decorator
    that names what it wraps. It does not cover the functions that are called, nor values of the module. Another version of
    Python compiles the same source to other instructions.

    >>> def train(with_canary, seed):
    ...     return seed + 1.0
    >>> def changed(with_canary, seed):
    ...     return seed + 2.0
    >>> fingerprint(train) == fingerprint(changed)
    False
    """
    return hashlib.sha256(json.dumps(_essence(function, ())).encode()).hexdigest()


def _essence(value: Any, around: tuple[int, ...]) -> Any:
    """A value in values of JSON, alike in every process; of an object that shows no content, its kind."""
    if id(value) in around:  # as a function that closes over itself
        return ["again", around.index(id(value))]

    def inside(part: Any) -> Any:
        return _essence(part, (*around, id(value)))

    plain: Any
    match value:
        case types.CodeType():
            # By what each instruction means and not by numbers of constants, which a docstring moves.
            steps = [(step.opname, inside(step.argval)) for step in dis.get_instructions(value)]
            counts = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount
            plain = (
                [step for step in steps if step[0] != "EXTENDED_ARG"],
                (*counts, value.co_flags & _FLAGS, value.co_exceptiontable.hex()),
            )
        case types.FunctionType():
            defaults = value.__defaults__, value.__kwdefaults__
            plain = [inside(part) for part in (value.__code__, *defaults, list(_closed_over(value)))]
        case np.ndarray() | np.generic() if not value.dtype.hasobject:
            plain = str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()
        case tuple() | list():
            plain = [inside(item) for item in value]
        case set() | frozenset() | dict():  # in another order in every process, or of no matter
            items = value.items() if isinstance(value, dict) else value
            plain = sorted(json.dumps(inside(item)) for item in items)
        case types.ModuleType():
            plain = value.__name__
        case _:
            plain = None if " at 0x" in repr(value) else repr(value)
    wrapped = getattr(value, "__wrapped__", None)
    return [type(value).__qualname__, plain, None if wrapped is None else inside(wrapped)]


def _closed_over(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield cell.cell_contents
