"""collect_runs(): one training, run many times, half with a canary and half without."""

import math
import os
import time
import types
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from auditor.collectors.streaming.engines import Engine, duration
from auditor.core import AuditorError, InputError, Losses, validate
from auditor.many.batches import SEEDS, Batch, Batches, Files, Result, fingerprint, made_folder
from auditor.many.whole_curve import Sequential, Watch

_FILES = 1000  # at most, unless the caller requests more
_SHARE = 50  # of the runs before it, in a new batch where it may be the last
_LEAST = 4
_SECOND = 1.0  # between two reports of progress
_WORD = 0xFFFFFFFF
_Train = Callable[[bool, int], float]
_Tell = Callable[["Progress"], object]


def collect_runs(
    train: _Train,
    *,
    runs: int,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    engine: Engine | None = None,
    seed: int = 0,
    batch: int | None = None,
    failed: float | None = None,
    stop: Sequential | None = None,
    progress: _Tell | None = None,
) -> Losses:
    """Run a training many times, half with a canary and half without, and return the canary's score of every run.

    With a folder the scores are written batch by batch, and existing scores are not computed again. They are the same for
    any number of processes and any batch, and a larger ``runs`` goes on from a smaller one: the same runs, and more. Runs
    that choose a threshold for others need another ``seed``.

    There are two ways to choose the number of runs. Fix it before you look: a bound that is looked at again and again
    until it refutes no longer holds at its confidence. Or give ``stop=auditor.Sequential(...)``, whose evidence holds
    however often it is looked at. It sees the runs in the order of their numbers, whichever ends first, and what is
    returned ends with the pair of runs at which it had enough, even if later ones are finished: so neither the time that
    a run takes nor the number of processes decides which runs count.

    A file remembers the code of ``train``: where that was changed since, the file is neither read nor made again, but named
    in an error. One that is damaged is made again. Comments and docstrings do not count; the functions and classes of the
    same package that ``train`` names do, with those that they name. Values of its module, other libraries and data it reads
    are not covered: take another folder when these change. Two calls at once may share a folder: each reads what the other
    has finished, and only batches that both are running run twice.

    Args:
        train: Called as ``train(with_canary, seed)`` with a boolean and an integer in [0, 2^32), another one for
            every run. It must take all its randomness from the seed, and return one finite number, smaller meaning more like
            a run with the canary. A training that failed has a number too, its own or that of ``failed``: leaving runs
            out breaks the audit. It has one thread for its linear algebra, and may be defined in a notebook.
        runs: An even number, 4 or more; every second run is with the canary. With ``stop``, the most that are run.
        folder: Folder of the scores; none by default.
        workers: Processes at once, at most; by default one for each core.
        engine: In place of processes of this machine: `RayEngine()`, for a Ray cluster. The folder stays this process's.
        seed: Seed of the whole collection.
        batch: Runs in each new file, and for each process at a time; by default so many that a fresh collection has at
            most 1,000 files, and with ``stop`` 2 to begin with and a fiftieth of the runs before it later. A batch that is
            interrupted is lost.
        failed: The score of a run whose training raised an error or returned no finite number, in either world; large,
            as 1e9, it says that the canary was not seen. By default such a run ends the collection, so that a mistake is
            noticed. A process that ends ends it always.
        stop: `Sequential`, the stopping rule; after 4 runs at the earliest. By default all are run.
        progress: Called with a `Progress` at most once a second and at the end; ``print`` will do.

    Returns:
        The scores with the canary as members, those without as non-members, each in the order of the runs. The history
        says how many failed, which is a note too, and where it was stopped; ``stopped_by_evidence`` says whether.

    Raises:
        InputError: Arguments that cannot be used, or a file that was made by other code.
        AuditorError: The training failed, or a score is no finite number; the sentence names the run. With ``failed``:
            all runs failed.
        OutputError: The folder cannot be written.

    >>> def noisy_count(with_canary: bool, seed: int) -> float:
    ...     return -(with_canary + np.random.default_rng(seed).laplace())
    >>> losses = collect_runs(noisy_count, runs=1000, workers=1)
    >>> losses.n_member, losses.n_nonmember
    (500, 500)
    """
    total = validate.at_least("runs", runs, least=_LEAST)
    if total % 2:
        raise InputError(
            f"runs must be an even number, got {total}; half of them are with the canary, half without."
        )
    size = _sizes(total, batch, stops=stop is not None)
    root = validate.at_least("seed", seed, least=0)
    name = _name_of(train, stored=folder is not None)
    if stop is not None and (isinstance(stop, type) or not callable(getattr(stop, "watch", None))):
        raise InputError(f"stop must be a rule such as auditor.Sequential(), got {stop!r}.")
    lost = None if failed is None else validate.number("failed", failed)
    files = None if folder is None else Files(made_folder(folder), name, root, fingerprint(train), total)
    work = Batches(partial(_result, train, root, lost), files, patient=stop is not None)
    reporter = Reporter(progress, total=total)
    taken = _Taken(total, lost, None if stop is None else stop.watch())
    with closing(work.outcomes(total=total, size=size, engine=engine, workers=workers)) as finished:
        for part, result, resumed in finished:
            new = taken.add(part, result, resumed=resumed)
            about: Any = {"failed": len(taken.lost), "evidence": taken.evidence, "enough": taken.enough}
            reporter.add(new, resumed=resumed, **about)
            if taken.enough:
                break
    return taken.losses(f"runs of {name.rsplit('.', 1)[-1]}, every second with the canary, seed {root}")


def _name_of(train: Any, *, stored: bool) -> str:
    """Return the name that the scores of a training are kept under.

    Raises:
        InputError: It cannot be called, or scores are to be kept of something without a name of its own: a lambda, a
            function in a function, a method of an object, an object.
    """
    if not callable(train):
        raise InputError(f"train must be a function, got {type(train).__name__}.")
    name = getattr(train, "__qualname__", "")
    of_object = not isinstance(getattr(train, "__self__", None), types.ModuleType | None)
    if stored and (not name or "<" in name or of_object):
        raise InputError(
            "train must be a named function when its results are kept in a folder, got"
            f" {name or type(train).__name__!r}, which others could be called too; write it with def at the top of a file"
            " or a notebook cell, and one for everything that varies."
        )
    return f"{getattr(train, '__module__', '')}.{name or type(train).__name__}"


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


class Reporter:
    """Counts runs, and reports their progress at most once a second and at the end."""

    def __init__(self, tell: _Tell | None, *, total: int) -> None:
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


# --- The runs that count: in the order of their numbers, until they are enough ---


@dataclass
class _Taken:
    """The runs that count, in the order of their numbers.

    Attributes:
        most: Largest number of runs.
        failed: The score of one that failed; none where that ends the collection.
        watcher: Says when they are enough.
        early: By its number, each run that is finished before one in front of it: its score, its error if it failed, and
            whether an earlier call made it; or the exception of its batch.
        scores: Scores of the runs that count.
        earlier: Number of these from earlier calls.
        lost: By its number, the error of each of these that failed.
        enough: Whether the watcher said so; Losses are of two pairs at least.
    """

    most: int
    failed: float | None
    watcher: Watch | None
    early: dict[int, tuple[float, str | None, bool] | Exception] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)
    earlier: int = 0
    lost: dict[int, str] = field(default_factory=dict)
    enough: bool = False

    def add(self, batch: Batch, result: Result | Exception, *, resumed: bool) -> int:
        """Add a batch, and return the number of its new runs; a run counts when all in front of it do."""
        new = 0
        if isinstance(result, Exception):
            self.early[batch.first] = result
        else:
            scores, lost = np.asarray(result.scores).tolist(), set(np.asarray(result.failed).tolist())
            for run, score in enumerate(scores[: self.most - batch.first], batch.first):
                if run >= len(self.scores) and run not in self.early:
                    self.early[run] = score, result.first_failure if run in lost else None, resumed
                    new += 1
        while not self.enough and len(self.scores) in self.early:
            self._take(self.early.pop(len(self.scores)))
        return new

    def _take(self, outcome: tuple[float, str | None, bool] | Exception) -> None:
        if isinstance(outcome, Exception):
            raise outcome
        score, failure, resumed = outcome
        if failure is not None:
            if self.failed is None:  # a file has it, of a call that had a score for it
                raise AuditorError(
                    f"{failure}; an earlier call kept that run as failed: give failed here too."
                )
            self.lost[len(self.scores)], score = failure, self.failed
        self.scores.append(score)
        self.earlier += resumed
        if self.watcher is not None and len(self.scores) % 2 == 0:
            self.enough = self.watcher.add(*self.scores[-2:]) and len(self.scores) >= _LEAST

    @property
    def evidence(self) -> str | None:
        """Evidence of the watcher, if there is one."""
        return None if self.watcher is None else self.watcher.in_words()

    def losses(self, words: str) -> Losses:
        """Return the scores; the history begins with how many runs they are, and these words.

        Raises:
            AuditorError: All runs failed, so that there is nothing to audit.
        """
        count, lost, notes = len(self.scores), list(self.lost), list[str]()
        history = [f"{count:,} {words}", f"{self.earlier:,} of them read from earlier calls"][
            : 1 + bool(self.earlier)
        ]
        if lost:
            first, with_canary = self.lost[lost[0]], sum(run % 2 == 0 for run in lost)
            if len(lost) == count:
                raise AuditorError(
                    f"train must succeed now and then, but all {count:,} runs failed: {first}."
                )
            said = (
                f"{len(lost):,} of {count:,} runs failed ({with_canary:,} with the canary) and have the score"
            )
            notes.append(f"{said} {self.failed:g}; the first: {first}")
        history += notes
        if self.watcher is not None:
            most = f"{self.most:,} runs: {self.evidence}"
            stopped = f"stopped after {count:,} of at most {most}"
            history.append(stopped if self.enough else f"not stopped within {most}")
        about: Any = {"history": tuple(history), "notes": tuple(notes), "stopped_by_evidence": self.enough}
        return Losses(np.array(self.scores[0::2]), np.array(self.scores[1::2]), **about)


# --- The result of a batch ---


def _result(train: _Train, root: int, failed: float | None, batch: Batch) -> Result:
    """Return the scores of one batch; each run has a seed of its own number, so that batches decide nothing."""
    scores, lost = [], {}
    for run in range(batch.first, batch.end):
        try:
            scores.append(_score(train, run, root))
        except AuditorError as error:
            if failed is None:
                raise AuditorError(
                    f"{error}; correct it, or give failed, the score of a training that failed: leaving runs out would"
                    " break the audit."
                ) from error.__cause__
            scores.append(failed)
            lost[run] = str(error)
    return Result(np.array(scores), np.array([*lost]), *[*lost.values()][:1])


def seed_of(run: int, root: int) -> int:
    """Return the seed of a run: a keyed bijection of its number on [0, 2^32), so that no two runs share one.

    Larger seeds would differ by chance, but NumPy's older generators and scikit-learn take none above.

    >>> len({seed_of(run, 0) for run in range(1000)})
    1000
    """
    mixed = run & _WORD
    for added, factor in _keys(root):
        mixed = (mixed ^ added) * factor & _WORD
        mixed ^= mixed >> 16
    return mixed


@cache
def _keys(root: int) -> tuple[tuple[int, int], ...]:
    """Return the keys of four rounds; an odd factor has an inverse modulo 2^32."""
    words = np.random.SeedSequence([root, SEEDS]).generate_state(8).tolist()
    return tuple((added, factor | 1) for added, factor in zip(words[:4], words[4:], strict=True))


def _score(train: Callable[[bool, int], Any], run: int, root: int) -> float:
    with_canary = run % 2 == 0
    own = seed_of(run, root)
    where = f"run {run} ({'with' if with_canary else 'without'} the canary)"
    try:
        score = train(with_canary, own)
    except (Exception, SystemExit) as error:
        said = validate.one_line(error if isinstance(error, Exception) else Exception(*error.args))
        words = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise AuditorError(f"train failed in {where}: {words}") from error
    alone: Any = score.item() if isinstance(score, np.ndarray) and score.size == 1 else score
    try:
        value = math.nan if isinstance(alone, str | bytes) else float(alone)
    except (TypeError, ValueError, RuntimeError):
        value = math.nan
    if not math.isfinite(value):
        text = validate.one_line(ValueError(repr(score)), longest=60)
        raise AuditorError(f"train must return a finite number, got {text} from {where}")
    return value


# --- The size of new batches ---


def _sizes(total: int, batch: int | None, *, stops: bool) -> Callable[[int], int]:
    """Return how many runs a new batch has, by its first one.

    Where it may be the last it has a fiftieth of the runs before it, and two at least, so that little is run in vain:
    544 files at most up to a million runs; with more, all are larger in proportion.
    """
    if batch is not None:
        size = validate.at_least("batch", batch, least=1)
        return lambda _first: size
    if not stops:
        return lambda _first: math.ceil(total / _FILES)
    least = 2 * math.ceil(total / (_FILES * _FILES))
    return lambda first: least * max(1, first // (_SHARE * least))
