"""collect_runs(): one training, run many times, half with a canary and half without."""

import bisect
import json
import math
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from auditor.core import validate
from auditor.core.errors import AuditorError, InputError
from auditor.core.values import Losses
from auditor.mechanism import run_cases

_SEEDS = 2  # the second way to make the seeds of runs; scores of the first are in other files
_FILES = 1000  # at most, unless the caller asks for more
_LEAST = 4
_WORD = 0xFFFFFFFF
_Train = Callable[[bool, int], float]


def collect_runs(
    train: _Train,
    *,
    runs: int,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    memory: float | None = None,
    memory_per_worker: float | None = None,
    seed: int = 0,
    batch: int | None = None,
    progress: run_cases.Tell | None = None,
) -> Losses:
    """Run a training many times, half with a canary and half without, and return the canary's score of every run.

    With a folder the scores are written batch by batch, and what is there is not run again. They are the same for
    any number of processes and any batch, and a larger ``runs`` goes on from a smaller one: the same runs, and more. Runs
    that choose a threshold for others need another ``seed``. Fix the number of runs before you look: a bound that is
    looked at again and again until it refutes no longer holds at its confidence.

    What is kept remembers the code of ``train``, as `run_cases` says; the functions that it calls are not covered.

    Args:
        train: Called as ``train(with_canary, seed)`` with a boolean and an integer in [0, 2^32), another one for
            every run. It must take all its randomness from the seed, and return one finite number, smaller meaning more like
            a run with the canary. A training that failed must return a number too: leaving runs out breaks the audit.
        runs: An even number, 4 or more; every second run is with the canary.
        folder: Where scores are kept; nowhere by default.
        workers: Processes at once, at most; by default one for each core.
        memory: Bytes for all processes together; together with the next, it limits their number.
        memory_per_worker: Bytes that one process needs at most.
        seed: Of the whole collection.
        batch: Runs in each new file, and for each process at a time; by default so many that a fresh collection has at
            most 1,000 files. A batch that is interrupted is lost.
        progress: Told a `Progress` at most once a second and at the end; ``print`` will do.

    Returns:
        The scores with the canary as members, those without as non-members, each in the order of the runs.

    Raises:
        InputError: Arguments that cannot be used, or a file that is damaged or was made by other code.
        AuditorError: The training failed, or a score is no finite number; the sentence names the run.
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
    root = validate.at_least("seed", seed, least=0)
    name = run_cases.task_name(train, argument="train", kept=folder is not None)
    size = math.ceil(total / _FILES) if batch is None else validate.at_least("batch", batch, least=1)
    place = None if folder is None else run_cases.made_folder(folder)
    code = None if place is None else run_cases.fingerprint(train)
    cases = _batches(name, root=root, code=code, total=total, size=size, folder=place)
    sizes = [min(_runs(case)[1], total - _runs(case)[0]) for case in cases]
    there = [place is not None and (place / case.file_name).exists() for case in cases]
    earlier = sum(size for size, known in zip(sizes, there, strict=True) if known)
    limits = {"workers": workers, "memory": memory, "memory_per_worker": memory_per_worker}
    run = partial(_scores, train, root)
    found = run_cases.run_all(
        run, cases, sizes=sizes, folder=place, limits=limits, progress=progress, good=_all_there
    )
    scores = np.concatenate([np.asarray(item["scores"], dtype=np.float64) for item in found])[:total]
    history = [f"{total:,} runs of {name.rsplit('.', 1)[-1]}, every second with the canary, seed {root}"]
    history += [f"{earlier:,} of them read from earlier calls"] if earlier else []
    return Losses(member=scores[0::2], nonmember=scores[1::2], history=tuple(history))


def _runs(case: run_cases.Case) -> tuple[int, int]:
    """The first run of a batch, and how many it holds."""
    return int(str(case.setting["first_run"])), int(str(case.setting["runs"]))


def _all_there(case: run_cases.Case, found: run_cases.Result) -> bool:
    """Whether a file holds a score for each of its runs; with fewer, all later ones would move to the other world."""
    scores = found.get("scores")
    return (
        isinstance(scores, np.ndarray)
        and scores.dtype.kind == "f"
        and scores.shape == (case.setting["runs"],)
        and bool(np.isfinite(scores).all())
    )


def _scores(train: _Train, root: int, case: run_cases.Case) -> dict[str, Any]:
    """The scores of one batch; each run has a seed of its own number, so that batches decide nothing."""
    first, count = _runs(case)
    return {"scores": np.array([_score(train, run, root) for run in range(first, first + count)])}


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
        raise AuditorError(f"train failed in {where}: {run_cases.in_words(error)}.") from error
    alone: Any = score.item() if isinstance(score, np.ndarray) and score.size == 1 else score
    try:
        value = math.nan if isinstance(alone, str | bytes) else float(alone)
    except (TypeError, ValueError, RuntimeError):
        value = math.nan
    if not math.isfinite(value):
        shown = validate.one_line(ValueError(repr(score)), longest=60)
        raise AuditorError(
            f"train must return a finite number, got {shown} from {where}; a training that failed needs a score too,"
            " because leaving runs out would break the audit."
        )
    return value


# --- Which runs go into which file: those that are there stay as they are, and new batches fill what is between them ---


def _batches(
    task: str, *, root: int, code: str | None, total: int, size: int, folder: Path | None
) -> list[run_cases.Case]:
    """Return a case for every batch of runs, in their order; the last one in the folder may hold more than is needed.

    Args:
        task: The training's name.
        root: The seed of the whole collection.
        code: The training's fingerprint, if scores are kept.
        total: How many runs there are.
        size: Of new batches.
        folder: Where earlier ones are, if anywhere; it is there.

    >>> found = _batches("train", root=0, code=None, total=10, size=4, folder=None)
    >>> [(case.setting["first_run"], case.setting["runs"]) for case in found]
    [(0, 4), (4, 4), (8, 2)]
    """
    there = [] if folder is None else _there(_batch(task, root, code, 0, 1), folder)
    longest = dict(sorted(there))
    starts = [*longest, total]
    found, first = [], 0
    while first < total:
        after = starts[bisect.bisect_right(starts, first, hi=len(longest))]
        runs = longest.get(first) or min(size, total - first, after - first)
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
