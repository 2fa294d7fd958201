"""Batches of runs: read from their files, or made in parallel processes and written."""

import dis
import hashlib
import inspect
import json
import os
import re
import sys
import time
import types
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from auditor.collectors.streaming.engines import Engine, Processes, Work, attempted
from auditor.core import InputError, OutputError, drafts, validate, whole

SEEDS = 2  # the second way to make the seeds of runs; scores of the first are in other files
_OLD = 3600.0  # seconds after which no process writes on a draft any more
_FORMAT = 1
_HEADER = "header"


@dataclass(frozen=True, order=True)
class Batch:
    """Runs in a row.

    Attributes:
        first: Number of the first one.
        count: Number of runs.
    """

    first: int
    count: int

    @property
    def end(self) -> int:
        """Number of the run after the last one."""
        return self.first + self.count


@dataclass(frozen=True)
class Result:
    """The result of a batch.

    Attributes:
        scores: Score of each run.
        failed: Numbers of the runs that failed.
        first_failure: Error of the first of these.
    """

    scores: Any
    failed: Any = ()
    first_failure: str = "no reason is kept"

    def is_of(self, batch: Batch) -> bool:
        """Return whether there is a score for each run; with fewer, all later ones would move to the other world."""
        scores, failed = np.asarray(self.scores), np.asarray(self.failed)
        good = scores.dtype.kind == "f" and scores.shape == (batch.count,) and np.isfinite(scores).all()
        return bool(good and np.isin(failed, np.arange(batch.first, batch.end)).all())


# --- The files of batches: ``.npz`` archives, there whole or not at all, without pickles ---


@dataclass(frozen=True)
class Files:
    """The files of the batches of one training and seed.

    Attributes:
        folder: Existing folder.
        train: Module and name of the training.
        seed: Seed of the collection.
        code: Fingerprint of the training. It is no part of a file's name, so that a training that was changed meets what
            it made before.
        total: Number of runs; files of later ones do not count.
    """

    folder: Path
    train: str
    seed: int
    code: str
    total: int

    def path(self, batch: Batch) -> Path:
        """Return the file of a batch: its name is readable, and another one for whatever else decides the result."""
        text = json.dumps(self._identity(batch), sort_keys=True)
        return self.folder / f"{self._stem}-{hashlib.sha256(text.encode()).hexdigest()[:20]}.npz"

    def stored(self) -> dict[Batch, Result]:
        """Return the batches in the folder with their results."""
        return dict(filter(None, map(self.read, sorted(self.folder.glob(f"{self._stem}-*.npz")))))

    def write(self, batch: Batch, result: Result) -> None:
        """Write the result of a batch to its file, whole or not at all.

        Raises:
            OutputError: It cannot be written, as on a full disk.
        """
        arrays, values = {"scores": result.scores}, dict[str, str]()
        if len(result.failed):
            arrays["failed"], values["first_failure"] = result.failed, result.first_failure
        header = {"format": _FORMAT, **self._identity(batch), "code": self.code}
        header |= {"order": [*arrays, *values], "values": values, "arrays": [*arrays]}
        content = {f"array_{index}": value for index, value in enumerate(arrays.values())}
        content[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with whole(self.path(batch), folder=self.folder) as draft, draft.open("wb") as file:
            np.savez(file, **content)

    def read(self, path: Path) -> tuple[Batch, Result] | None:
        """Return the batch and the result in a file; none where it is damaged or of another one, so that it is made again.

        Raises:
            InputError: The result of other code.
        """
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                header = json.loads(file[_HEADER].tobytes())
                arrays = {name: file[f"array_{index}"] for index, name in enumerate(header["arrays"])}
            batch = Batch(header["case"]["first_run"], header["case"]["runs"])
            result = Result(**header["values"], **arrays)
            own = path == self.path(batch) and header == header | self._identity(batch)
            own = own and batch.first < self.total
            made_by = header["format"], header["code"]
        except Exception:  # noqa: BLE001 - whatever a file raises that was cut off, renamed or made up
            return None
        if not own:
            return None
        if made_by != (_FORMAT, self.code):
            raise InputError(
                f"file {str(path)!r} was made by another version of the function {self.train.rsplit('.', 1)[-1]!r}, of what it"
                " calls, of Python or of this package; take another folder, or delete it."
            )
        return (batch, result) if result.is_of(batch) else None

    @property
    def _stem(self) -> str:
        return re.sub(r"\W+", "-", self.train.rsplit(".", 1)[-1]).strip("-")[:40] or "run"

    def _identity(self, batch: Batch) -> dict[str, Any]:
        """Return all that decides the result, in values of JSON."""
        case = {"first_run": batch.first, "runs": batch.count, "seeds": SEEDS}
        return {"task": self.train, "case": case, "seed": self.seed}


def layout(stored: Iterable[Batch], *, total: int, size: Callable[[int], int]) -> list[Batch]:
    """Return all batches in the order of their runs: those that are stored, and new ones for the gaps.

    >>> layout([Batch(3, 4)], total=10, size=lambda first: 2)
    [Batch(first=0, count=2), Batch(first=2, count=1), Batch(first=3, count=4), Batch(first=7, count=2), Batch(first=9, count=1)]
    """
    batches, first = list[Batch](), 0
    for batch in (*sorted(stored), Batch(total, 0)):
        while first < batch.first:
            batches.append(Batch(first, min(size(first), batch.first - first)))
            first = batches[-1].end
        batches.append(batch)
        first = max(first, batch.end)
    return batches[:-1]


# --- Making the batches that are missing ---


@dataclass(frozen=True)
class Batches(Work):
    """The work of a collection: its batches that are not in the folder.

    Attributes:
        run: Makes the result of a batch; whatever it raises should be a sentence that names the run.
        files: Of the collection, if its scores are kept.
        patient: Whether an error is an outcome like others, as where it may be about a run that does not count.
    """

    run: Callable[[Batch], Result]
    files: Files | None
    patient: bool

    sent: ClassVar[str] = "train"
    if_not_sent: ClassVar[str] = "let the function open unpicklable objects itself, or leave engine out"
    if_too_large: ClassVar[str] = "make the runs smaller"

    def named(self, unit: Batch) -> str:
        """Return the runs of a batch."""
        return f"runs {unit.first} to {unit.end - 1}"

    def __call__(self, unit: Batch) -> tuple[Batch, Any]:
        """Return a batch with its result."""
        result, error = attempted(self._result, unit) if self.patient else (self._result(unit), None)
        return unit, result if error is None else error

    def _result(self, batch: Batch) -> Result:
        """Return the result of a batch, which another call may have made since this one began."""
        stored = None if self.files is None else self.files.read(self.files.path(batch))
        return self.run(batch) if stored is None else stored[1]

    def outcomes(
        self, *, total: int, size: Callable[[int], int], engine: Engine | None, workers: int | None
    ) -> Generator[tuple[Batch, Any, bool]]:
        """Yield each batch, its result and whether the folder had it: these first, others as they are finished."""
        from threadpoolctl import threadpool_limits

        stored = {} if self.files is None else self.files.stored()
        waiting = [batch for batch in layout(stored, total=total, size=size) if batch not in stored]
        chosen = _engine(engine, workers, batches=len(waiting))
        yield from ((batch, stored[batch], True) for batch in sorted(stored))
        with threadpool_limits(1), closing(chosen.results(self, waiting)) as results:
            for batch, result in results:
                # Here and not in another process, which is ended with a draft in its hands when a run fails.
                if self.files is not None and not isinstance(result, Exception):
                    self.files.write(batch, result)
                yield batch, result, False


def _engine(engine: Engine | None, workers: int | None, *, batches: int) -> Engine:
    """Return the executor of the work: processes of this machine, if nothing else is named.

    Raises:
        InputError: Something else than an engine, or one beside a number of such processes.
    """
    if engine is None:
        import joblib

        most = joblib.cpu_count() if workers is None else validate.at_least("workers", workers, least=1)
        return Processes(max(1, min(most, batches)))
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
        functions = {name: item for name, item in members.items() if inspect.isfunction(item)}
        return [list(value.__bases__), functions]
    cells = []
    for cell in value.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            cells.append(cell.cell_contents)
    names = _names(value.__code__)
    options = [value.__globals__[name] for name in names if name in value.__globals__]
    modules = [item for item in options if inspect.ismodule(item) and not _is_of_library(item)]
    options += [vars(module)[name] for module in modules for name in names if name in vars(module)]
    called = [item for item in options if isinstance(item, types.FunctionType | type)]
    return [value.__code__, value.__defaults__, value.__kwdefaults__, cells, called]


def _names(code: types.CodeType) -> list[str]:
    """Return the names in a function and in those within it."""
    within = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return [*code.co_names, *(name for part in within for name in _names(part))]


def _is_of_library(value: Any) -> bool:
    """Return whether a function, class or module is of an installed library, and so not likely to change between two calls."""
    name = str(value.__name__ if inspect.ismodule(value) else value.__module__)
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    root = name.partition(".")[0]
    return root in sys.stdlib_module_names or root == "auditor" or bool(_LIBRARIES & {*Path(file).parts})
