"""collect_runs(): one training, run many times, half with a canary and half without."""

import math
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.streaming.engines import Engine
from auditor.core import AuditorError, InputError, Losses, validate
from auditor.many.run_cases import (
    Case,
    Reporter,
    Result,
    Runs,
    Tell,
    fingerprint,
    in_words,
    made_folder,
    outcomes,
    stored_cases,
    task_name,
)
from auditor.many.whole_curve import Sequential, Watch

_SEEDS = 2  # the second way to make the seeds of runs; scores of the first are in other files
_FILES = 1000  # at most, unless the caller requests more
_SHARE = 50  # of the runs before it, in a new batch where it may be the last
_LEAST = 4
_WORD = 0xFFFFFFFF
_Train = Callable[[bool, int], float]


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
    progress: Tell | None = None,
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

    A file remembers the code of ``train``, as `run_cases` says.

    Args:
        train: Called as ``train(with_canary, seed)`` with a boolean and an integer in [0, 2^32), another one for
            every run. It must take all its randomness from the seed, and return one finite number, smaller meaning more like
            a run with the canary. A training that failed has a number too, its own or that of ``failed``: leaving runs
            out breaks the audit.
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
    name = task_name(train, argument="train", stored=folder is not None)
    if stop is not None and (isinstance(stop, type) or not callable(getattr(stop, "watch", None))):
        raise InputError(f"stop must be a rule such as auditor.Sequential(), got {stop!r}.")
    lost = None if failed is None else validate.number("failed", failed)
    place = None if folder is None else made_folder(folder)
    like = Case(name, {}, root, None if place is None else fingerprint(train))
    cases = _batches(like, total=total, size=size, folder=place)
    work = _Batches(partial(_scores, train, root, lost), place, _all_there, patient=stop is not None)
    reporter = Reporter(progress, total=total)
    taken = _Taken(total, lost, None if stop is None else stop.watch())
    with closing(outcomes(work, cases, engine=engine, workers=workers)) as finished:
        for at, result, resumed in finished:
            new = taken.add(_runs(cases[at])[0], result, resumed=resumed)
            about: Any = {"failed": len(taken.lost), "evidence": taken.evidence, "enough": taken.enough}
            reporter.add(new, resumed=resumed, **about)
            if taken.enough:
                break
    return taken.losses(f"runs of {name.rsplit('.', 1)[-1]}, every second with the canary, seed {root}")


def _runs(case: Case) -> tuple[int, int]:
    """Return the first run of a batch, and how many it holds."""
    return int(str(case.setting["first_run"])), int(str(case.setting["runs"]))


class _Batches(Runs):
    """The work of batches of runs."""

    sent = "train"

    def named(self, unit: tuple[int, Case]) -> str:
        """Return the runs of a batch."""
        first, count = _runs(unit[1])
        return f"runs {first} to {first + count - 1}"


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

    def add(self, first: int, result: Result | Exception, *, resumed: bool) -> int:
        """Add a batch, and return the number of its new runs; a run counts when all in front of it do."""
        new = 0
        if isinstance(result, Exception):
            self.early[first] = result
        else:
            lost = set(np.asarray(result.get("failed", ())).tolist())
            words = str(result.get("first_failure", "no reason is kept"))
            for run, score in enumerate(np.asarray(result["scores"]).tolist()[: self.most - first], first):
                if run >= len(self.scores) and run not in self.early:
                    self.early[run] = score, words if run in lost else None, resumed
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


# --- The result of a batch, which is kept in a file ---


def _all_there(case: Case, result: Result) -> bool:
    """Return whether a file holds a score for each of its runs; with fewer, all later ones would move to the other world."""
    first, count = _runs(case)
    scores, lost = (np.asarray(result.get(name, ())) for name in ("scores", "failed"))
    good = scores.dtype.kind == "f" and scores.shape == (count,) and np.isfinite(scores).all()
    return bool(good and np.isin(lost, np.arange(first, first + count)).all())


def _scores(train: _Train, root: int, failed: float | None, case: Case) -> dict[str, Any]:
    """Return the scores of one batch; each run has a seed of its own number, so that batches decide nothing.

    If runs failed their numbers are there too, and the error of the first one.
    """
    first, count = _runs(case)
    scores, lost = [], {}
    for run in range(first, first + count):
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
    result: dict[str, Any] = {"scores": np.array(scores)}
    return result | (
        {"failed": np.array([*lost]), "first_failure": next(iter(lost.values()))} if lost else {}
    )


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
        raise AuditorError(f"train failed in {where}: {in_words(error)}") from error
    alone: Any = score.item() if isinstance(score, np.ndarray) and score.size == 1 else score
    try:
        value = math.nan if isinstance(alone, str | bytes) else float(alone)
    except (TypeError, ValueError, RuntimeError):
        value = math.nan
    if not math.isfinite(value):
        text = validate.one_line(ValueError(repr(score)), longest=60)
        raise AuditorError(f"train must return a finite number, got {text} from {where}")
    return value


# --- Assignment of runs to files: existing files stay, and new batches fill the gaps ---


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


def _batches(like: Case, *, total: int, size: Callable[[int], int], folder: Path | None) -> list[Case]:
    """Return a case for every batch of runs, in their order: those in the folder, and new ones for the gaps.

    >>> batches = _batches(Case("train", {}, 0), total=10, size=lambda _: 4, folder=None)
    >>> [(case.setting["first_run"], case.setting["runs"]) for case in batches]
    [(0, 4), (4, 4), (8, 2)]
    """
    stored = [] if folder is None else stored_cases(folder, like)
    stored = [case for case in stored if case.setting.get("seeds") == _SEEDS and _runs(case)[0] < total]
    batches, first = list[Case](), 0
    for case in (*sorted(stored, key=_runs), None):
        end = total if case is None else _runs(case)[0]
        while first < end:
            setting = {"first_run": first, "runs": min(size(first), end - first), "seeds": _SEEDS}
            batches.append(Case(like.task, setting, like.root, like.code))
            first += setting["runs"]
        if case is not None:
            batches.append(case)
            first = max(first, sum(_runs(case)))
    return batches
