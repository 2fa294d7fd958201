"""Run the cases of a figure: at once with small settings, and announced, kept and resumed with full ones."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor import run_cases

__all__ = ["run_grid", "seconds_needed"]

Case = Mapping[str, Any]
Task = Callable[..., Mapping[str, Any]]

_MOST_WORKERS = 6  # of 600 MB each: one holds one small model or one table


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
        task: As for ``auditor.run_cases``.
        cases: Flat mappings.
        name: Folder below ``RUNS``.
        full: Whether these are the full settings.
        alike: Cases that are equal in these entries take equally long.
        size: The entry of a case that its time grows with, such as the number of runs; None where there is none.
        trial: The size with which the time is measured.
    """
    if not full:
        return run_cases(task, cases, workers=1)
    cores = os.cpu_count() or 1
    minutes = seconds_needed(task, cases, alike=alike, size=size, trial=trial) / 60 / cores
    print(
        f"{len(cases)} cases: about {minutes:.1f} minutes on {cores} free cores, less what is kept from before."
    )
    folder = Path(os.environ.get("RUNS", "runs")) / name
    return run_cases(task, cases, folder=folder, progress=print, workers=min(cores, _MOST_WORKERS))


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
