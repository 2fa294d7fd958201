"""What the tests of many runs run: in a module of its own, so that worker processes can import it."""

import os
import sys
import uuid
from pathlib import Path

import numpy as np

import auditor


def tallied(case, seed):
    """Leave a mark for every call, and return a little of every kind."""
    if "marks" in case:
        (Path(case["marks"]) / uuid.uuid4().hex).touch()
    if case.get("fails"):
        raise ValueError("the loss is\nNaN")
    if case.get("dies"):
        os._exit(1)
    drawn = np.random.default_rng(seed).normal(size=3)
    return {"name": f"ä {case['x']}", "double": 2.0 * case["x"], "seed": seed, "even": True, "drawn": drawn}


def other(case, seed):
    """Another task on the same cases."""
    return {"x": case["x"], "seed": seed}


def quits(case, seed):  # noqa: ARG001 - as every task
    """A task that ends its program."""
    sys.exit(3)


def meanwhile(case, seed):  # noqa: ARG001 - as every task
    """A task whose first case has another call run the second one."""
    (Path(case["marks"]) / uuid.uuid4().hex).touch()
    if case["x"] == 0:
        auditor.run_cases(meanwhile, [{**case, "x": 1}], folder=case["folder"], workers=1)
    return {"x": case["x"]}


def threads(case, seed):  # noqa: ARG001 - as every task
    """How many threads the linear algebra of a run may use."""
    from threadpoolctl import threadpool_info

    return {"most": max((item["num_threads"] for item in threadpool_info()), default=1)}


def noisy_count(with_canary, seed):
    """A count with normal noise: epsilon 4.377 at delta 1e-5."""
    return -(float(with_canary) + np.random.default_rng(seed).normal())


def broken(with_canary, seed):
    """A training that fails now and then."""
    if seed % 2:
        raise RuntimeError("out of memory")
    return float(with_canary)


def undefined(with_canary, seed):  # noqa: ARG001 - as every training
    """A training that diverges with the canary."""
    return float("nan") if with_canary else 1.0
