"""A training run from a table of steps: what it becomes, and every way in which the table can be wrong."""

import numpy as np
import pandas as pd
import pytest
from collectors.common import text

from auditor import DPSGD, FixedSizeSampling
from auditor.collectors import read_schedule
from auditor.core import InputError

PLAIN = "noise_multiplier,sampling_rate\n"
STEPS = "noise_multiplier,sampling_rate,steps\n"


def test_one_row_for_each_step(tmp_path):
    """Rows are steps in order; the clipping norm is read where it is there."""
    content = "sampling_rate,noise_multiplier,clipping_norm\n0.1,1.0,2.0\n0.2,1.5,3.0\n"
    assert read_schedule(text(tmp_path / "steps.csv", content)) == DPSGD(
        [1.0, 1.5], [0.1, 0.2], 2, [2.0, 3.0]
    )


def test_rows_may_stand_for_many_steps(tmp_path):
    """A column of steps repeats rows, in Parquet too; equal rows are the plain run."""
    table = pd.DataFrame({"noise_multiplier": [1.0, 2.0], "sampling_rate": [0.1, 0.1], "steps": [2, 3]})
    table.to_parquet(tmp_path / "steps.parquet")
    assert read_schedule(tmp_path / "steps.parquet") == DPSGD([1.0, 1.0, 2.0, 2.0, 2.0], 0.1)
    np.savez(tmp_path / "one.npz", noise_multiplier=[1.0], sampling_rate=[0.5], steps=[7])
    fixed = read_schedule(tmp_path / "one.npz", sampling=FixedSizeSampling())
    assert fixed == DPSGD(1.0, 0.5, 7, sampling=FixedSizeSampling())


@pytest.mark.parametrize(
    ("head", "rows", "words"),
    [
        ("", "", ["is empty; write it again"]),
        ("noise_multiplier\n", "1\n", ["'sampling_rate'", "steps.csv"]),
        ("sigma,rate\n", "1,0.1\n", ["'sigma', 'rate'", "'noise_multiplier'", "Name the"]),
        (PLAIN, "", ["at least one step", "add a row for each step"]),
        (PLAIN, "1,0\n", ["'sampling_rate'", "in (0, 1]", "got 0 (row 2", "the header being row 1"]),
        (PLAIN, "1,0.1\n-2,0.1\n", ["'noise_multiplier'", "above 0", "got -2 (row 3"]),
        (PLAIN, "x,0.1\n", ["'noise_multiplier'", "numbers", "'x'"]),
        (PLAIN, "1,0.1\n,0.1\n", ["'noise_multiplier'", "finite", "got nan (row 3"]),
        (PLAIN, "1,inf\n", ["'sampling_rate'", "finite", "got inf (row 2"]),
        (STEPS, "1,0.1,1.5\n", ["'steps'", "whole number", "got 1.5 (row 2"]),
        (STEPS, "1,0.1,9e9\n", ["at most 10,000,000 steps", "got 9,000,000,000"]),
        (STEPS, "1,0.1,1e308\n1,0.1,1e308\n", ["at most 10,000,000 steps"]),
        (STEPS.replace("steps", "Steps"), "1,0.1,5\n", ["'steps' is not in", "did you mean 'Steps'"]),
        (STEPS.replace("steps", "steps,steps"), "1,0.1,5,6\n", ["2 columns named 'steps'"]),
    ],
)
def test_bad_tables(tmp_path, head, rows, words):
    """Each fault is one sentence with the column, the rule, the value and the row."""
    with pytest.raises(InputError) as caught:
        read_schedule(text(tmp_path / "steps.csv", head + rows))
    assert all(word in str(caught.value) for word in words), caught.value
    # A schedule is no file of losses.
    assert not any(word in str(caught.value) for word in ("loss", "member", "record")), caught.value
