"""collect_runs(): one training, run many times, half with a canary and half without."""

import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from auditor import _validate
from auditor.errors import InputError
from auditor.runs.case import Case, task_name
from auditor.runs.engine import RunError, Tell, in_words, run_all
from auditor.values import Losses

__all__ = ["collect_runs"]

_FILES = 1000  # at most, unless the caller asks for more
_LEAST = 4

Train = Callable[[bool, int], float]


def collect_runs(
    train: Train,
    *,
    runs: int,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    memory: float | None = None,
    memory_per_worker: float | None = None,
    seed: int = 0,
    batch: int | None = None,
    progress: Tell | None = None,
) -> Losses:
    """Run a training many times, half with a canary and half without, and return the canary's score of every run.

    With a folder the scores are written batch by batch, and what is there is not run again. They are the same for
    any number of processes and any batch, and a larger ``runs`` with the same batch goes on from a smaller one.

    Args:
        train: Called as ``train(with_canary, seed)`` with a boolean and an integer in [0, 2^32), drawn anew for every
            run. It must take all its randomness from the seed, and return one finite number, smaller meaning more like
            a run with the canary. A training that failed must return a number too: leaving runs out breaks the audit.
        runs: An even number, 4 or more; every second run is with the canary.
        folder: Where scores are kept; nowhere by default.
        workers: Processes at once, at most; by default one for each core.
        memory: Bytes for all processes together; together with the next, it limits their number.
        memory_per_worker: Bytes that one process needs at most.
        seed: Of the whole collection.
        batch: Runs in each file, and for each process at a time; by default so many that there are at most 1,000 files.
        progress: Told a `Progress` at most once a second and at the end; ``print`` will do.

    Returns:
        The scores with the canary as members, those without as non-members, each in the order of the runs.

    Raises:
        InputError: Arguments that cannot be used, or a damaged file.
        AuditorError: The training failed, or a score is no finite number; the sentence names the run.
        OutputError: The folder cannot be written.

    >>> def noisy_count(with_canary: bool, seed: int) -> float:
    ...     return -(with_canary + np.random.default_rng(seed).laplace())
    >>> losses = collect_runs(noisy_count, runs=1000, workers=1)
    >>> losses.n_member, losses.n_nonmember
    (500, 500)
    """
    total = _validate.at_least("runs", runs, least=_LEAST)
    if total % 2:
        raise InputError(
            f"runs must be an even number, got {total}; half of them are with the canary, half without."
        )
    root = _validate.at_least("seed", seed, least=0)
    name = task_name(train, argument="train", kept=folder is not None)
    size = math.ceil(total / _FILES) if batch is None else _validate.at_least("batch", batch, least=1)
    starts = range(0, total, size)
    sizes = [min(size, total - first) for first in starts]
    cases = [
        Case(name, {"first_run": first, "runs": count}, root)
        for first, count in zip(starts, sizes, strict=True)
    ]
    limits = {"workers": workers, "memory": memory, "memory_per_worker": memory_per_worker}
    task = partial(_scores, train=train, root=root)
    found = run_all(task, cases, sizes=sizes, folder=folder, limits=limits, progress=progress)
    scores = np.concatenate([np.asarray(item["scores"], dtype=np.float64) for item in found])
    return Losses(
        member=scores[0::2],
        nonmember=scores[1::2],
        history=(f"{total:,} runs of {name.rsplit('.', 1)[-1]}, every second with the canary, seed {root}",),
    )


def _scores(case: Mapping[str, Any], *, seed: int, train: Train, root: int) -> dict[str, Any]:  # noqa: ARG001
    """The scores of one batch; each run has a seed of its own number, so that batches decide nothing."""
    first, count = case["first_run"], case["runs"]
    return {"scores": np.array([_score(train, run, root) for run in range(first, first + count)])}


def _score(train: Train, run: int, root: int) -> float:
    with_canary = run % 2 == 0
    # A key of two words that no case of `run_cases` has, which has more.
    own = int(np.random.SeedSequence([root, run]).generate_state(1)[0])
    where = f"run {run} ({'with' if with_canary else 'without'} the canary)"
    try:
        score = train(with_canary, own)
    except Exception as error:
        raise RunError(f"train failed in {where}: {in_words(error)}.") from error
    try:
        value = float(score)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        shown = _validate.one_line(ValueError(repr(score)), longest=60)
        raise RunError(
            f"train must return a finite number, got {shown} from {where}; a training that failed needs a score too,"
            " because leaving runs out would break the audit."
        )
    return value
