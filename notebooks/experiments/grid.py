"""Run the cases of a figure: at once with small settings, and announced, kept and resumed with full ones."""

import hashlib
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

__all__ = ["run_all", "run_grid", "seconds_needed"]

Case = Mapping[str, Any]
Task = Callable[..., Mapping[str, Any]]

_MOST_WORKERS = 6  # of 600 MB each: one holds one small model or one table


def run_all(
    task: Task,
    cases: Sequence[Case],
    *,
    folder: str | Path | None = None,
    workers: int | None = None,
    verbose: int = 0,
) -> list[Mapping[str, Any]]:
    """Run a task for every case in parallel processes and return the results in the order of the cases.

    Args:
        task: Called as ``task(case, seed=...)``, with a seed of the case alone; it returns a flat mapping of names to numbers,
            texts, booleans or arrays.
        cases: Flat mappings of names to texts, numbers, booleans or None.
        folder: Where the result of each case is kept, as ``.npz``, and read by later calls. Name another folder, or delete
            it, after a change of the task.
        workers: Processes at once; by default one for each core.
        verbose: How much joblib says of the progress.
    """
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=workers or joblib.cpu_count(), batch_size=1, verbose=verbose)
        return parallel(joblib.delayed(_result)(task, dict(case), folder) for case in cases)


def _result(task: Task, case: Case, folder: str | Path | None) -> Mapping[str, Any]:
    digest = hashlib.sha256(json.dumps(case, sort_keys=True, default=np.generic.item).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    path = None if folder is None else Path(folder) / f"{task.__name__}-{digest.hex()[:20]}.npz"
    if path is not None and path.exists():
        with np.load(path) as file:
            return {name: value[()] if value.ndim == 0 else value for name, value in file.items()}
    result = task(case, seed=int(np.random.SeedSequence([0, *words]).generate_state(1)[0]))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{uuid.uuid4().hex}.draft")
        with draft.open("wb") as file:
            np.savez(file, **result)
        draft.replace(path)
    return result


def run_grid(
    task: Task,
    cases: Sequence[Case],
    *,
    name: str,
    full: bool,
    alike: Sequence[str],
    size: str | None = None,
    trial: int = 1,
) -> list[Mapping[str, Any]]:
    """Run a task for every case and return the results in the order of the cases.

    With full settings it says first about how long that takes, then works in parallel processes, and keeps each result
    under the folder in the environment variable ``RUNS`` as soon as it is there; what is there is not run again.

    Args:
        task: As for `run_all`.
        cases: Flat mappings.
        name: Folder below ``RUNS``.
        full: Whether these are the full settings.
        alike: Cases that are equal in these entries take equally long.
        size: The entry of a case that its time grows with, such as the number of runs; None where there is none.
        trial: The size with which the time is measured.
    """
    if not full:
        return run_all(task, cases, workers=1)
    cores = os.cpu_count() or 1
    minutes = seconds_needed(task, cases, alike=alike, size=size, trial=trial) / 60 / cores
    print(
        f"{len(cases)} cases: about {minutes:.1f} minutes on {cores} free cores, less what is kept from before."
    )
    folder = Path(os.environ.get("RUNS", "runs")) / name
    return run_all(task, cases, folder=folder, workers=min(cores, _MOST_WORKERS), verbose=5)


def seconds_needed(
    task: Task, cases: Sequence[Case], *, alike: Sequence[str], size: str | None, trial: int
) -> float:
    """Return the seconds that all cases take one after the other, from a small trial of each kind."""
    each: dict[tuple[Any, ...], float] = {}
    total = 0.0
    for case in cases:
        kind = tuple(case[entry] for entry in alike)
        if kind not in each:
            start = time.perf_counter()
            task({**case, size: trial} if size else case, seed=0)
            each[kind] = (time.perf_counter() - start) * (case[size] / trial if size else 1.0)
        total += each[kind]
    return total
