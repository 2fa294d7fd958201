"""collect_runs(): one training, run many times, half with a canary and half without."""

import bisect
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from auditor.collectors.streaming.engines import Engine
from auditor.core import validate
from auditor.core.errors import AuditorError, InputError
from auditor.core.values import Losses
from auditor.mechanism import run_cases

_SEEDS = 2  # the second way to make the seeds of runs; scores of the first are in other files
_FILES = 1000  # at most, unless the caller asks for more
_SHARE = 50  # of the runs before it, in a new batch where it may be the last
_LEAST = 4
_WORD = 0xFFFFFFFF
_Train = Callable[[bool, int], float]


class Watcher(Protocol):
    """Looks at pairs of runs, one with the canary and one without, in the order of their numbers."""

    def add(self, with_canary: float, without: float) -> bool:
        """Take the scores of the next pair, and return whether the evidence is enough."""

    def in_words(self) -> str:
        """Return a short phrase about the evidence so far, as ``evidence 14 of 20``."""


class Stop(Protocol):
    """A rule for when runs are enough; it decides by the scores alone."""

    def watch(self) -> Watcher:
        """Return a watcher that has seen no runs."""


def collect_runs(
    train: _Train,
    *,
    runs: int,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    memory: float | None = None,
    memory_per_worker: float | None = None,
    engine: Engine | None = None,
    seed: int = 0,
    batch: int | None = None,
    failed: float | None = None,
    stop: Stop | None = None,
    progress: run_cases.Tell | None = None,
) -> Losses:
    """Run a training many times, half with a canary and half without, and return the canary's score of every run.

    With a folder the scores are written batch by batch, and what is there is not run again. They are the same for
    any number of processes and any batch, and a larger ``runs`` goes on from a smaller one: the same runs, and more. Runs
    that choose a threshold for others need another ``seed``.

    There are two ways to choose the number of runs. Fix it before you look: a bound that is looked at again and again
    until it refutes no longer holds at its confidence. Or give ``stop=auditor.Sequential(...)``, whose evidence holds
    however often it is looked at. It is told the runs in the order of their numbers, whichever ends first, and what is
    returned ends with the pair of runs at which it had enough, even if later ones are finished: so neither the time that
    a run takes nor the number of processes decides which runs count.

    What is kept remembers the code of ``train``, as `run_cases` says; the functions that it calls are not covered.

    Args:
        train: Called as ``train(with_canary, seed)`` with a boolean and an integer in [0, 2^32), another one for
            every run. It must take all its randomness from the seed, and return one finite number, smaller meaning more like
            a run with the canary. A training that failed has a number too, its own or that of ``failed``: leaving runs
            out breaks the audit.
        runs: An even number, 4 or more; every second run is with the canary. With ``stop``, the most that are run.
        folder: Where scores are kept; nowhere by default.
        workers: Processes at once, at most; by default one for each core.
        memory: Bytes for all processes together; together with the next, it limits their number.
        memory_per_worker: Bytes that one process needs at most.
        engine: In place of processes of this machine: `RayEngine()`, for a Ray cluster. The folder stays this process's.
        seed: Of the whole collection.
        batch: Runs in each new file, and for each process at a time; by default so many that a fresh collection has at
            most 1,000 files, and with ``stop`` 2 to begin with and a fiftieth of the runs before it later. A batch that is
            interrupted is lost.
        failed: The score of a run whose training raised an error or returned no finite number, in either world; large,
            as 1e9, it says that the canary was not seen. By default such a run ends the collection, so that a mistake is
            noticed. A process that ends ends it always.
        stop: When runs are enough, as `Sequential`; after 4 at the earliest. By default all are run.
        progress: Told a `Progress` at most once a second and at the end; ``print`` will do.

    Returns:
        The scores with the canary as members, those without as non-members, each in the order of the runs. The history
        says how many failed, which is a note too, and where it was stopped; ``stopped_by_evidence`` says whether.

    Raises:
        InputError: Arguments that cannot be used, or a file that is damaged or was made by other code.
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
    name = run_cases.task_name(train, argument="train", kept=folder is not None)
    if stop is not None and (isinstance(stop, type) or not callable(getattr(stop, "watch", None))):
        raise InputError(f"stop must be a rule such as auditor.Sequential(), got {stop!r}.")
    of_failed = None if failed is None else validate.number("failed", failed)
    place = None if folder is None else run_cases.made_folder(folder)
    code = None if place is None else run_cases.fingerprint(train)
    cases = _batches(name, root=root, code=code, total=total, size=size, folder=place)
    there = [case for case in cases if place is not None and (place / case.file_name).exists()]
    run = partial(_scores, train, root, of_failed)
    work = run_cases.Runs(run, place, _all_there, _shown, sent="train", patient=stop is not None)
    taken = _Taken(total, of_failed, None if stop is None else stop.watch())
    run_cases.run_all(
        work,
        cases,
        sizes=[min(_runs(case)[1], total - _runs(case)[0]) for case in cases],
        engine=engine,
        limits={"workers": workers, "memory": memory, "memory_per_worker": memory_per_worker},
        progress=progress,
        follow=taken.add,
    )
    scores = np.array(taken.scores)
    earlier = sum(min(sum(_runs(case)), scores.size) - min(_runs(case)[0], scores.size) for case in there)
    short, lost = name.rsplit(".", 1)[-1], taken.failures()
    history = [f"{scores.size:,} runs of {short}, every second with the canary, seed {root}"]
    history += [f"{earlier:,} of them read from earlier calls"] if earlier else []
    about: Any = {"history": (*history, *lost, *taken.ending()), "notes": tuple(lost)}
    return Losses(scores[0::2], scores[1::2], stopped_by_evidence=taken.enough, **about)


def _runs(case: run_cases.Case) -> tuple[int, int]:
    """The first run of a batch, and how many it holds."""
    return int(str(case.setting["first_run"])), int(str(case.setting["runs"]))


def _shown(case: run_cases.Case) -> str:
    first, count = _runs(case)
    return f"runs {first} to {first + count - 1}"


# --- What is taken of the runs: in the order of their numbers, until they are enough ---


@dataclass
class _Taken:
    """The runs that count, in the order of their numbers.

    Attributes:
        most: How many there can be.
        failed: The score of one that failed; none where that ends the collection.
        watcher: Says when they are enough.
        early: Batches that are finished before one in front of them, by their place, or what was raised in them.
        batches: How many were taken.
        scores: Of the runs in these.
        lost: The numbers of those that failed.
        first_failure: What happened in the first of these.
        enough: Whether the watcher said so; Losses are of two pairs at least.
    """

    most: int
    failed: float | None
    watcher: Watcher | None
    early: dict[int, run_cases.Result | Exception] = field(default_factory=dict)
    batches: int = 0
    scores: list[float] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    first_failure: str = ""
    enough: bool = False

    def add(self, place: int, found: run_cases.Result | Exception) -> run_cases.Followed:
        """Take a batch when all in front of it are taken; an error counts only then."""
        self.early[place] = found
        while not self.enough and self.batches in self.early:
            found = self.early.pop(self.batches)
            if isinstance(found, Exception):
                raise found
            self._take(found)
            self.batches += 1
        return run_cases.Followed(len(self.lost), self._evidence, self.enough)

    def _take(self, found: run_cases.Result) -> None:
        lost = set(np.asarray(found.get("failed", ())).tolist())
        words = str(found.get("first_failure", "no reason is kept"))
        for score in np.asarray(found["scores"]).tolist():
            if self.enough or len(self.scores) == self.most:
                break
            self.scores.append(self._of_failed(words) if len(self.scores) in lost else score)
            if self.watcher is not None and len(self.scores) % 2 == 0:
                self.enough = self.watcher.add(*self.scores[-2:]) and len(self.scores) >= _LEAST

    @property
    def _evidence(self) -> str | None:
        return None if self.watcher is None else self.watcher.in_words()

    def _of_failed(self, words: str) -> float:
        if self.failed is None:  # a file has it, of a call to which it was given
            raise AuditorError(f"{words}; an earlier call kept that run as failed: give failed here too.")
        if not self.lost:
            self.first_failure = words
        self.lost.append(len(self.scores))
        return self.failed

    def failures(self) -> list[str]:
        """Say how many failed, if any did; with nothing else there is nothing to audit."""
        if not self.lost:
            return []
        count, with_canary = len(self.scores), sum(run % 2 == 0 for run in self.lost)
        if len(self.lost) == count:
            raise AuditorError(
                f"train must succeed now and then, but all {count:,} runs failed: {self.first_failure}."
            )
        said = f"{len(self.lost):,} of {count:,} runs failed ({with_canary:,} with the canary) and have the score"
        return [f"{said} {self.failed:g}; the first: {self.first_failure}"]

    def ending(self) -> list[str]:
        """Say where it was stopped, if it could be."""
        if self.watcher is None:
            return []
        count, most = f"{len(self.scores):,}", f"{self.most:,} runs: {self._evidence}"
        return [f"stopped after {count} of at most {most}" if self.enough else f"not stopped within {most}"]


# --- What is made of the runs, and kept in files ---


def _all_there(case: run_cases.Case, found: run_cases.Result) -> bool:
    """Whether a file holds a score for each of its runs; with fewer, all later ones would move to the other world."""
    first, count = _runs(case)
    scores, lost = found.get("scores"), found.get("failed", np.zeros(0, dtype=np.int64))
    return (
        isinstance(scores, np.ndarray)
        and scores.dtype.kind == "f"
        and scores.shape == (count,)
        and bool(np.isfinite(scores).all())
        and isinstance(lost, np.ndarray)
        and bool(np.isin(lost, np.arange(first, first + count)).all())
    )


def _scores(train: _Train, root: int, failed: float | None, case: run_cases.Case) -> dict[str, Any]:
    """The scores of one batch; each run has a seed of its own number, so that batches decide nothing.

    Where runs failed their numbers are there too, and what happened in the first one.
    """
    first, count = _runs(case)
    scores, lost = [], {}
    for run in range(first, first + count):
        try:
            scores.append(_score(train, run, root))
        except AuditorError as error:
            if failed is None:
                raise AuditorError(
                    f"{error}; mend it, or give failed, the score of a training that failed: leaving runs out would"
                    " break the audit."
                ) from error.__cause__
            scores.append(failed)
            lost[run] = str(error)
    found: dict[str, Any] = {"scores": np.array(scores)}
    return found | ({"failed": np.array([*lost]), "first_failure": next(iter(lost.values()))} if lost else {})


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
    """Four rounds; an odd factor has an inverse modulo 2^32."""
    # A key of two words that no case of `run_cases` has, which has more.
    words = np.random.SeedSequence([root, _SEEDS]).generate_state(8).tolist()
    return tuple((added, factor | 1) for added, factor in zip(words[:4], words[4:], strict=True))


def _score(train: Callable[[bool, int], Any], run: int, root: int) -> float:
    with_canary = run % 2 == 0
    own = seed_of(run, root)
    where = f"run {run} ({'with' if with_canary else 'without'} the canary)"
    try:
        score = train(with_canary, own)
    except (Exception, SystemExit) as error:
        raise AuditorError(f"train failed in {where}: {run_cases.in_words(error)}") from error
    alone: Any = score.item() if isinstance(score, np.ndarray) and score.size == 1 else score
    try:
        value = math.nan if isinstance(alone, str | bytes) else float(alone)
    except (TypeError, ValueError, RuntimeError):
        value = math.nan
    if not math.isfinite(value):
        shown = validate.one_line(ValueError(repr(score)), longest=60)
        raise AuditorError(f"train must return a finite number, got {shown} from {where}")
    return value


# --- Which runs go into which file: those that are there stay as they are, and new batches fill what is between them ---


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


def _batches(
    task: str, *, root: int, code: str | None, total: int, size: Callable[[int], int], folder: Path | None
) -> list[run_cases.Case]:
    """Return a case for every batch of runs, in their order; the last one in the folder may hold more than is needed.

    Args:
        task: The training's name.
        root: The seed of the whole collection.
        code: The training's fingerprint, if scores are kept.
        total: How many runs there are.
        size: Of a new batch, by its first run.
        folder: Where earlier ones are, if anywhere; it is there.

    >>> found = _batches("train", root=0, code=None, total=10, size=lambda _: 4, folder=None)
    >>> [(case.setting["first_run"], case.setting["runs"]) for case in found]
    [(0, 4), (4, 4), (8, 2)]
    """
    there = [] if folder is None else _there(_batch(task, root, code, 0, 1), folder)
    longest = dict(sorted(there))
    starts = [*longest, total]
    found, first = [], 0
    while first < total:
        after = starts[bisect.bisect_right(starts, first, hi=len(longest))]
        runs = longest.get(first) or min(size(first), total - first, after - first)
        found.append(_batch(task, root, code, first, runs))
        first += runs
    return found


def _batch(task: str, root: int, code: str | None, first: int, runs: int) -> run_cases.Case:
    return run_cases.Case(task, {"first_run": first, "runs": runs, "seeds": _SEEDS}, root, code)


def _there(like: run_cases.Case, folder: Path) -> Sequence[tuple[int, int]]:
    """First run and number of runs of every file of this training and seed; its name says that it is one."""
    found = []
    for path in sorted(folder.glob(f"{like.stem}-*.npz")):
        try:
            with np.load(path, allow_pickle=False) as archive:
                setting = json.loads(archive["header"].tobytes())["case"]
            first, runs = setting["first_run"], setting["runs"]
            name = _batch(like.task, like.root, None, first, runs).file_name
        except run_cases.DAMAGE:  # if it should have been one of these, then it is met again by its name
            continue
        if path.name == name and isinstance(first, int) and isinstance(runs, int) and runs > 0:
            found.append((first, runs))
    return found
