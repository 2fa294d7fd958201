"""Scores of many trainings: half with a canary, the same whatever the batches and processes, and none left out."""

import numpy as np
import pytest
import run_tasks

import auditor
from auditor.errors import AuditorError, InputError
from auditor.runs import collecting


def both(losses):
    """The scores of both worlds."""
    return losses.member.tolist(), losses.nonmember.tolist()


def test_half_of_the_runs_are_with_the_canary():
    """Members are the runs with the canary: as many as the others, lower by the canary's share in the score."""
    losses = auditor.collect_runs(run_tasks.noisy_count, runs=4000, workers=1)
    assert (losses.n_member, losses.n_nonmember) == (2000, 2000)
    # Means of -1 and 0 with standard error 1/sqrt(2000) = 0.022; five of them.
    assert abs(losses.member.mean() + 1) < 0.11
    assert abs(losses.nonmember.mean()) < 0.11
    assert losses.history == ("4,000 runs of noisy_count, every second with the canary, seed 0",)


def test_scores_do_not_depend_on_batches_processes_or_the_folder(tmp_path):
    """Any batch, one process or two, kept or not: the same scores; another seed gives others."""
    found = both(auditor.collect_runs(run_tasks.noisy_count, runs=30, workers=1))
    assert both(auditor.collect_runs(run_tasks.noisy_count, runs=30, workers=2, batch=7)) == found
    assert both(auditor.collect_runs(run_tasks.noisy_count, runs=30, workers=1, folder=tmp_path)) == found
    assert both(auditor.collect_runs(run_tasks.noisy_count, runs=30, workers=1, folder=tmp_path)) == found
    assert both(auditor.collect_runs(run_tasks.noisy_count, runs=30, workers=1, seed=1)) != found


def test_runs_are_independent_of_each_other():
    """No two runs share a seed, so no two scores are equal, and neighbouring runs are not correlated."""
    losses = auditor.collect_runs(run_tasks.noisy_count, runs=4000, workers=1)
    noise = np.concatenate([losses.member + 1, losses.nonmember])
    assert np.unique(noise).size == 4000
    # A correlation of 2000 independent pairs has standard error 0.022.
    assert abs(np.corrcoef(losses.member, losses.nonmember)[0, 1]) < 0.11


def test_more_runs_go_on_from_fewer(tmp_path):
    """With the same batch, a larger number of runs reads the batches that are there."""
    told = []
    few = auditor.collect_runs(run_tasks.noisy_count, runs=20, batch=5, folder=tmp_path, workers=1)
    more = auditor.collect_runs(
        run_tasks.noisy_count, runs=40, batch=5, folder=tmp_path, workers=1, progress=told.append
    )
    assert (told[-1].done, told[-1].resumed) == (40, 20)
    assert more.member[:10].tolist() == few.member.tolist()


def test_cheap_runs_share_a_file(tmp_path, monkeypatch):
    """By default so many runs share a file that there are at most 1,000 files; here at most ten."""
    assert collecting._FILES == 1000
    monkeypatch.setattr(collecting, "_FILES", 10)
    auditor.collect_runs(run_tasks.noisy_count, runs=52, folder=tmp_path, workers=1)
    assert len(list(tmp_path.iterdir())) == 9  # of 6 runs each


@pytest.mark.parametrize("workers", [1, 2])
def test_a_score_that_is_no_number_is_refused_with_its_run(workers):
    """A NaN names its run and world, and is not dropped, which would bias the audit."""
    with pytest.raises(AuditorError) as caught:
        auditor.collect_runs(run_tasks.undefined, runs=4, workers=workers, batch=4)
    assert str(caught.value) == (
        "train must return a finite number, got nan from run 0 (with the canary); a training that failed needs a score too,"
        " because leaving runs out would break the audit."
    )


def test_a_training_that_fails_is_named_with_its_run(tmp_path):
    """The sentence has the run, the world and the error; mended, the collection goes on."""
    with pytest.raises(
        AuditorError, match=r"train failed in run \d+ \(.* the canary\): RuntimeError: out of memory\.$"
    ):
        auditor.collect_runs(run_tasks.broken, runs=40, batch=1, folder=tmp_path, workers=1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"runs": 5}, "runs must be an even number, got 5"),
        ({"runs": 2}, "runs must be a whole number of 4 or more, got 2"),
        ({"runs": 8, "batch": 0}, "batch must be a whole number of 1 or more"),
        ({"runs": 8, "memory": 1e6, "memory_per_worker": 1e9}, "memory must hold at least one worker"),
        ({"runs": 8, "seed": -1}, "seed must be a whole number of 0 or more"),
    ],
)
def test_bad_numbers_of_runs_are_refused(given, words):
    """What cannot be halved or batched is one sentence."""
    with pytest.raises(InputError, match=words):
        auditor.collect_runs(run_tasks.noisy_count, workers=1, **given)
