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
import sys
import time
import types
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from auditor.collectors.streaming.engines import Engine, Processes, Work, attempted, duration
from auditor.core import AuditorError, InputError, OutputError, drafts, validate, whole

_Setting = Mapping[str, str | int | float | bool | None]
_Task = Callable[..., Mapping[str, Any]]
Result = dict[str, float | str | bool | np.ndarray[Any, Any]]

_SHOWN = 300  # characters of a case in an error
_SECOND = 1.0  # between two reports of progress
_OLD = 3600.0  # seconds after which no process writes on a draft any more
_FORMAT = 1
_HEADER = "header"
_KINDS = "biuf"
# Exceptions of a file that was cut off, renamed or made up: also sizes that no memory holds.
_DAMAGE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, MemoryError, OverflowError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


# --- A case: a task, a setting and a seed; and the name that follows from them ---


@dataclass(frozen=True)
class Case:
    """One run.

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
    def stem(self) -> str:
        """Start of the names of all files of this task."""
        return re.sub(r"\W+", "-", self.task.rsplit(".", 1)[-1]).strip("-")[:40] or "run"

    @property
    def file_name(self) -> str:
        """The name of the file of its result: readable, and another one for whatever else decides the result."""
        return f"{self.stem}-{_digest(self.identity).hex()[:20]}.npz"

    @property
    def words(self) -> str:
        """The setting, for error messages."""
        text = json.dumps(dict(self.setting), ensure_ascii=False)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def task_name(task: Callable[..., Any], *, argument: str, stored: bool) -> str:
    """Return the name that a task's results are kept under.

    Args:
        task: Function to run.
        argument: Name of the caller's argument.
        stored: Whether results are kept in a folder, where another task must never be taken for this one.

    Raises:
        InputError: It cannot be called, or results are to be kept of something without a name of its own: a lambda, a
            function in a function, a method of an object, an object.
    """
    if not callable(task):
        raise InputError(f"{argument} must be a function, got {type(task).__name__}.")
    name = getattr(task, "__qualname__", "")
    of_object = not isinstance(getattr(task, "__self__", None), types.ModuleType | None)
    if stored and (not name or "<" in name or of_object):
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
    listed = [Case(task, _plain(index, item), seed, code) for index, item in enumerate(cases)]
    if not listed:
        raise InputError("cases must be at least one mapping, got an empty list.")
    seen = dict[bytes, int]()
    for index, case in enumerate(listed):
        first = seen.setdefault(_digest(dict(case.setting)), index)
        if first != index:
            raise InputError(
                f"cases {first} and {index} (counting from 0) are the same, {case.words}; name each once, or distinguish"
                " repetitions by a value such as 'repeat'."
            )
    return listed


def _plain(index: int, case: Any) -> dict[str, Any]:
    where = f"case {index} (counting from 0)"
    if not isinstance(case, Mapping):
        raise InputError(f"{where} must be a mapping of names to values, got {type(case).__name__}.")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in case.items()}
    for name, value in plain.items():
        if not isinstance(name, str):
            raise InputError(f"{where} must have texts as names, got {name!r}.")
        finite = not isinstance(value, float) or math.isfinite(value)
        if not finite or not isinstance(value, str | int | float | None):
            value_text = validate.one_line(ValueError(repr(value)), longest=60)
            raise InputError(
                f"{where} must hold texts, finite numbers, booleans or None, got {name} = {value_text}."
            )
    return plain


def _digest(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).digest()


# --- Progress, reported at most once a second ---


@dataclass(frozen=True)
class Progress:
    """Progress of a set of runs.

    Attributes:
        done: Runs that are finished, those of earlier calls included.
        total: All runs.
        resumed: Runs of earlier calls, which were read from the folder.
        elapsed: Seconds since this call began.
        remaining: Seconds that the rest will take at the pace of this call; None before its first run is done.
        failed: Runs that failed, of those before the first that is not finished.
        evidence: Evidence of these runs, if a stopping rule watches them.

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


class Reporter:
    """Counts runs, and reports their progress at most once a second and at the end."""

    def __init__(self, tell: Tell | None, *, total: int) -> None:
        """Start the clock."""
        if tell is not None and not callable(tell):
            raise InputError(f"progress must be a function, such as print, got {tell!r}.")
        self._tell, self._total, self._done, self._resumed = tell, total, 0, 0
        self._start = self._last = time.monotonic()

    def add(
        self, runs: int, *, resumed: bool, failed: int = 0, evidence: str | None = None, enough: bool = False
    ) -> None:
        """Count so many more runs, of this call or of earlier ones; ``enough`` ends them."""
        self._done += runs
        self._resumed += runs * resumed
        now, ended = time.monotonic(), enough or self._done == self._total
        if self._tell is None or (now - self._last < _SECOND and not ended):
            return
        self._last = now
        elapsed, new = now - self._start, self._done - self._resumed
        rest = 0 if ended else self._total - self._done
        remaining = elapsed / new * rest if new else None
        self._tell(Progress(self._done, self._total, self._resumed, elapsed, remaining, failed, evidence))


# --- Running the missing cases ---


def run_cases(
    task: _Task,
    cases: Iterable[_Setting],
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    engine: Engine | None = None,
    seed: int = 0,
    progress: Tell | None = None,
) -> list[Result]:
    """Run a task for every case, in parallel processes, and return the results in the order of the cases.

    With a folder every result is written as soon as it is there, and a case whose result is there already is read
    and not run again: a long grid that was interrupted goes on where it stopped. A file belongs to the task's
    module and name, the case and the seed, and remembers the task's code: where that was changed since, the file is
    neither read nor made again, but named in an error. One that is damaged is made again. Comments and docstrings do not count; the functions and classes
    of the same package that the task names do, with those that they name. Values of its module, other libraries and data
    it reads are not covered: take another folder when these change. Two calls at once may share a folder: each reads what
    the other has finished, and only cases that both are running run twice.

    Args:
        task: Called as ``task(case, seed=...)`` with a mapping and an integer in [0, 2^32) that depends on the case and
            on ``seed`` alone. It returns a flat mapping of names to numbers, texts, booleans or arrays of numbers, and
            has one thread for its linear algebra. It may be defined in a notebook.
        cases: Flat mappings of names to texts, finite numbers, booleans or None; each different from the others.
        folder: Folder of the results, one ``.npz`` file for each; created if needed. None by default.
        workers: Processes at once, at most; by default one for each core. With one, all runs in this process.
        engine: In place of processes of this machine: `RayEngine()`, for a Ray cluster.
        seed: Another seed gives every case another one.
        progress: Called with a `Progress` at most once a second and at the end; ``print`` will do.

    Returns:
        One mapping for each case, the same whether it was run now or read, with any number of processes.

    Raises:
        InputError: Arguments or results that cannot be used, or a file that was made by other code.
        AuditorError: The task failed, and the sentence names the case; or a process ended. Finished results stay.
        OutputError: The folder cannot be written.

    >>> def area(case, seed):
    ...     return {"area": case["width"] * case["height"]}
    >>> run_cases(area, [{"width": 2, "height": 3}, {"width": 1, "height": 5}], workers=1)
    [{'area': 6}, {'area': 5}]
    """
    root = validate.at_least("seed", seed, least=0)
    name = task_name(task, argument="task", stored=folder is not None)
    listed = _cases_of(cases, task=name, seed=root, code=None if folder is None else fingerprint(task))
    work = Runs(partial(_run, task), None if folder is None else made_folder(folder))
    reporter, results = Reporter(progress, total=len(listed)), dict[int, Result]()
    with closing(outcomes(work, listed, engine=engine, workers=workers)) as finished:
        for place, result, resumed in finished:
            results[place] = result
            reporter.add(1, resumed=resumed)
    return [results[place] for place in range(len(listed))]


def _run(task: _Task, case: Case) -> Mapping[str, Any]:
    try:
        return task(dict(case.setting), seed=case.seed)
    except (Exception, SystemExit) as error:
        raise AuditorError(f"the task failed for case {case.words}: {in_words(error)}.") from error


def in_words(error: BaseException) -> str:
    """Return the kind of an exception and its message, as a clause."""
    said = validate.one_line(error if isinstance(error, Exception) else Exception(*error.args))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


@dataclass(frozen=True)
class Runs(Work):
    """The work of a set of runs: the runs that are not in the folder.

    Attributes:
        run: Makes the result of a case; whatever it raises should be a sentence that names the run.
        folder: Existing folder of the results, if they are kept.
        good: Whether the content of a file can be a result of a case.
        patient: Whether an error is an outcome like others, as where it may be about a run that does not count.
    """

    run: Callable[[Case], Mapping[str, Any]]
    folder: Path | None
    good: Callable[[Case, Result], bool] = lambda _case, _result: True
    patient: bool = False

    sent: ClassVar[str] = "task"
    if_not_sent: ClassVar[str] = "let the function open unpicklable objects itself, or leave engine out"
    if_too_large: ClassVar[str] = "make the runs smaller"

    def named(self, unit: tuple[int, Case]) -> str:
        """Return the case."""
        return f"case {unit[1].words}"

    def __call__(self, unit: tuple[int, Case]) -> tuple[int, Any]:
        """Return the place of a case with its result."""
        place, case = unit
        result, error = attempted(self._result, case) if self.patient else (self._result(case), None)
        return place, result if error is None else error

    def _result(self, case: Case) -> Result:
        """Return the result of a case, which another call may have made since this one began."""
        result = self.stored(case)
        return _checked_result(case, self.run(case)) if result is None else result

    def stored(self, case: Case) -> Result | None:
        """Return the result that the folder holds of a case, if it holds a good one."""
        path = None if self.folder is None else self.folder / case.file_name
        result = None if path is None or not path.exists() else _read_result(path, case)
        return None if result is None or not self.good(case, result) else result


def outcomes(
    work: Runs, cases: Sequence[Case], *, engine: Engine | None, workers: int | None
) -> Generator[tuple[int, Any, bool]]:
    """Yield the place and the result of each case, and whether the folder had it: these first, others as they are finished."""
    from threadpoolctl import threadpool_limits

    stored = [work.stored(case) for case in cases]
    waiting = [unit for unit in enumerate(cases) if stored[unit[0]] is None]
    chosen = _engine(engine, workers, cases=len(waiting))
    yield from ((place, result, True) for place, result in enumerate(stored) if result is not None)
    with threadpool_limits(1), closing(chosen.results(work, waiting)) as results:
        for place, result in results:
            # Here and not in another process, which is ended with a draft in its hands when a run fails.
            if work.folder is not None and not isinstance(result, Exception):
                _write_result(work.folder / cases[place].file_name, cases[place], result)
            yield place, result, False


def _engine(engine: Engine | None, workers: int | None, *, cases: int) -> Engine:
    """Return the executor of the work: processes of this machine, if nothing else is named.

    Raises:
        InputError: Something else than an engine, or one beside a number of such processes.
    """
    if engine is None:
        import joblib

        most = joblib.cpu_count() if workers is None else validate.at_least("workers", workers, least=1)
        return Processes(max(1, min(most, cases)))
    if isinstance(engine, type) or not callable(getattr(engine, "results", None)):
        raise InputError(
            f"engine must be one such as auditor.collectors.RayEngine(workers=2), got {engine!r}."
        )
    if workers is not None:
        raise InputError(
            f"workers must be left out beside an engine, got {workers!r}; it is about processes of this machine, and the"
            " engine has its own number of workers."
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


# --- The result of one run, and its file: an ``.npz`` archive, there whole or not at all, without pickles ---


def _checked_result(case: Case, result: Any) -> Result:
    """Return the result of a task as it would come back from its file.

    Raises:
        InputError: It is no flat mapping of names to numbers, texts or numeric arrays.
    """
    if not isinstance(result, Mapping):
        raise InputError(
            f"the task must return a mapping of names to values, got {type(result).__name__} for case {case.words}."
        )
    plain = {name: _plain_value(value) for name, value in result.items()}
    for name, value in plain.items():
        if value is None or not isinstance(name, str):
            raise InputError(
                "results must have texts as names, and be texts, booleans, numbers of at most 64 bits or arrays of these numbers, got"
                f" {name!r} of type {type(result[name]).__name__} for case {case.words}."
            )
    return plain


def _plain_value(value: Any) -> Any:
    """Return a value as a file holds it; none where it cannot."""
    if isinstance(value, str | bool | float) and not isinstance(value, np.generic):
        return value
    with suppress(TypeError, ValueError, RuntimeError):
        array = np.array(value)
        if array.ndim == 0 and array.dtype.kind in f"{_KINDS}U":
            return array.item()
        if array.dtype.kind in _KINDS and not isinstance(value, np.ma.MaskedArray):  # its mask would be lost
            return array
    return None


def _write_result(path: Path, case: Case, result: Result) -> None:
    """Write a result to its file, whole or not at all.

    Raises:
        OutputError: It cannot be written, as on a full disk.
    """
    arrays = {name: value for name, value in result.items() if isinstance(value, np.ndarray)}
    values = {name: value for name, value in result.items() if name not in arrays}
    header = {"format": _FORMAT, **case.identity, "code": case.code, "order": list(result)}
    header |= {"values": values, "arrays": list(arrays)}
    content: dict[str, Any] = {f"array_{index}": value for index, value in enumerate(arrays.values())}
    content[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with whole(path, folder=path.parent) as draft, draft.open("wb") as file:
        np.savez(file, **content)


def _read_result(path: Path, case: Case) -> Result | None:
    """Return the result in a file; none where the file is damaged or of another case, so that it is made again.

    Raises:
        InputError: The result of other code.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(file[_HEADER].tobytes())
            arrays = {name: file[f"array_{index}"] for index, name in enumerate(header["arrays"])}
        result = {
            name: arrays[name] if name in arrays else header["values"][name] for name in header["order"]
        }
        made_by, identity = (header["format"], header["code"]), {name: header[name] for name in case.identity}
    except _DAMAGE:
        return None
    if made_by != (_FORMAT, case.code):
        raise InputError(
            f"file {str(path)!r} was made by another version of the function {case.task.rsplit('.', 1)[-1]!r}, of what it"
            " calls, of Python or of this package; take another folder, or delete it."
        )
    return result if identity == case.identity else None


def stored_cases(folder: Path, like: Case) -> list[Case]:
    """Return the cases of all files of one task and seed; their names say that they are such files."""
    result = []
    for path in sorted(folder.glob(f"{like.stem}-*.npz")):
        with suppress(*_DAMAGE), path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            case = Case(like.task, json.loads(archive[_HEADER].tobytes())["case"], like.root, like.code)
            result += [case] if path.name == case.file_name else []
    return result


# --- Whether a function is the one that made a stored result: a fingerprint of its code, without its comments and docstrings ---

# Of those that change what a call does; others say whether there is a docstring or an annotation.
_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_LIBRARIES = {"site-packages", "dist-packages"}


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a text that is the same for the same code, and another where something in the code was changed.

    It covers the instructions with their constants, the defaults, what is closed over, what a decorator wraps, and the
    functions and classes that the code names, unless they are of an installed library. Another version of Python compiles
    the same source to other instructions.

    >>> def train(with_canary, seed):
    ...     return seed + 1.0
    >>> def changed(with_canary, seed):
    ...     return seed + 2.0
    >>> fingerprint(train) == fingerprint(changed)
    False
    """
    return hashlib.sha256(json.dumps(_essence(function, {})).encode()).hexdigest()


def _essence(value: Any, seen: dict[int, Any]) -> Any:
    """Return a value in values of JSON, alike in every process; of an object that shows no content, its kind."""

    def inside(part: Any) -> Any:
        return _essence(part, seen)

    plain: Any = getattr(value, "__qualname__", getattr(value, "__name__", repr(value)))
    match value:
        case types.CodeType():
            # By what each instruction means and not by numbers of constants, which a docstring moves.
            steps = [(step.opname, inside(step.argval)) for step in dis.get_instructions(value)]
            counts = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount
            plain = [step for step in steps if step[0] != "EXTENDED_ARG"]
            plain += [counts, value.co_flags & _FLAGS, value.co_exceptiontable.hex()]
        case types.FunctionType() | type() if id(value) in seen:  # it calls itself, or is named again
            plain = list(seen).index(id(value))
        case types.FunctionType() | type() if not _is_of_library(value):
            seen[id(value)] = value
            plain = [inside(part) for part in _parts_of(value)]
        case np.ndarray() | np.generic() if not value.dtype.hasobject:
            plain = str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()
        case tuple() | list():
            plain = [inside(item) for item in value]
        case dict() | set() | frozenset():  # in another order in every process, or of no matter
            plain = sorted(json.dumps(inside(item)) for item in getattr(value, "items", value.__iter__)())
        case _ if " at 0x" in str(plain):
            plain = None
    wrapped = getattr(value, "__wrapped__", None)
    return [type(value).__qualname__, plain, None if wrapped is None else inside(wrapped)]


def _parts_of(value: Any) -> list[Any]:
    """Return the parts that decide the behaviour of a class or a function: bases and members, or code, values and names in it."""
    if isinstance(value, type):
        members = {name: getattr(item, "__func__", item) for name, item in vars(value).items()}
        return [
            list(value.__bases__),
            {name: item for name, item in members.items() if inspect.isfunction(item)},
        ]
    cells = []
    for cell in value.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            cells.append(cell.cell_contents)
    names = list(_names(value.__code__))
    options = [value.__globals__[name] for name in names if name in value.__globals__]
    modules = [item for item in options if inspect.ismodule(item) and not _is_of_library(item)]
    options += [vars(module)[name] for module in modules for name in names if name in vars(module)]
    called = [item for item in options if isinstance(item, types.FunctionType | type)]
    return [value.__code__, value.__defaults__, value.__kwdefaults__, cells, called]


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names in a function and in those within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_of_library(value: Any) -> bool:
    """Return whether a function, class or module is of an installed library, and so not likely to change between two calls."""
    name = str(value.__name__ if inspect.ismodule(value) else value.__module__)
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    root = name.partition(".")[0]
    return root in sys.stdlib_module_names or root == "auditor" or bool(_LIBRARIES & {*Path(file).parts})
