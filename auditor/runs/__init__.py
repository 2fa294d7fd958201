"""Audits of a training mechanism from many runs of it: the runs, their scores, and what these show.

`run_cases` runs a task for many settings, in parallel and so that it can be resumed; `collect_runs` runs one training
many times, half with a canary and half without; `audit_runs` says what the scores show about the training's epsilon.

>>> def noisy_sum(with_canary: bool, seed: int) -> float:
...     return -(float(with_canary) + float(np.random.default_rng(seed).normal()))
>>> import numpy as np
>>> runs = collect_runs(noisy_sum, runs=2000, workers=1)
>>> result = audit_runs(runs, delta=1e-5)  # noise of standard deviation 1: the epsilon is 4.38
>>> 0.5 < result.estimate("epsilon_bound.clopper_pearson").value < 4.38
True
"""

from auditor.runs.audit import audit_runs
from auditor.runs.collecting import collect_runs
from auditor.runs.engine import run_cases
from auditor.runs.progress import Progress
from auditor.runs.result import RunsResult
from auditor.runs.text import text

__all__ = ["Progress", "RunsResult", "audit_runs", "collect_runs", "run_cases", "text"]
