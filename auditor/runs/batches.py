"""Which runs go into which file: those that are there stay as they are, and new batches fill what is between them."""

import bisect
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from auditor.runs.case import Case
from auditor.runs.record import DAMAGE

__all__ = ["SEEDS", "batches"]

SEEDS = 2  # the second way to make the seeds of runs; scores of the first are in other files


def batches(
    task: str, *, root: int, code: str | None, total: int, size: int, folder: Path | None
) -> list[Case]:
    """Return a case for every batch of runs, in their order; the last one in the folder may hold more than is needed.

    Args:
        task: The training's name.
        root: The seed of the whole collection.
        code: The training's fingerprint, if scores are kept.
        total: How many runs there are.
        size: Of new batches.
        folder: Where earlier ones are, if anywhere; it is there.

    >>> found = batches("train", root=0, code=None, total=10, size=4, folder=None)
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


def _batch(task: str, root: int, code: str | None, first: int, runs: int) -> Case:
    return Case(task, {"first_run": first, "runs": runs, "seeds": SEEDS}, root, code)


def _there(like: Case, folder: Path) -> Sequence[tuple[int, int]]:
    """First run and number of runs of every file of this training and seed; its name says that it is one."""
    found = []
    for path in sorted(folder.glob(f"{like.stem}-*.npz")):
        try:
            with np.load(path, allow_pickle=False) as archive:
                setting = json.loads(archive["header"].tobytes())["case"]
            first, runs = setting["first_run"], setting["runs"]
            name = _batch(like.task, like.root, None, first, runs).file_name
        except DAMAGE:  # if it should have been one of these, then it is met again by its name
            continue
        if path.name == name and isinstance(first, int) and isinstance(runs, int) and runs > 0:
            found.append((first, runs))
    return found
