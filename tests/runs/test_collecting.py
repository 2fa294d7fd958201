"""Scores of many trainings: half with a canary, the same whatever the batches and processes, and none left out."""

import functools
import json
import sys

import numpy as np
import pytest
import run_tasks
from run_tasks import both

import auditor
from auditor.core import AuditorError
from auditor.many import training_runs


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


@pytest.mark.parametrize("root", [0, 7, 2**40])
def test_no_two_runs_share_a_seed(root):
    """300,000 runs have 300,000 seeds below 2^32, where draws with replacement repeat about ten of them."""
    seeds = np.array([training_runs.seed_of(run, root) for run in range(300_000)])
    assert np.unique(seeds).size == seeds.size
    assert seeds.min() >= 0
    assert seeds.max() < 2**32
    # Uniform, for runs with the canary as for those without: means of 150,000 have standard error 2^32/sqrt(12 x 150,000).
    for world in (seeds[0::2], seeds[1::2]):
        assert abs(world.mean() / 2**32 - 0.5) < 5 / np.sqrt(12 * world.size)
    # Every bit of neighbouring seeds agrees half of the time.
    flipped = seeds[:-1] ^ seeds[1:]
    for bit in range(32):
        assert abs(((flipped >> bit) & 1).mean() - 0.5) < 5 * 0.5 / np.sqrt(flipped.size)


def test_another_root_has_other_seeds():
    """Two collections share as many seeds as chance has it: of 100,000 each 2.3, by the Poisson law at most 15."""
    first, second = ({training_runs.seed_of(run, root) for run in range(100_000)} for root in (0, 1))
    assert len(first & second) <= 15
    # Two words of a root are not taken for a root and a run.
    assert training_runs.seed_of(0, 1 + (7 << 32)) != training_runs.seed_of(7, 1)


@pytest.mark.parametrize(
    ("first", "then", "new"),
    [
        ({"runs": 10}, {"runs": 1010}, 1000),  # the default batch grows from 1 to 2
        ({"runs": 150, "batch": 100}, {"runs": 300, "batch": 100}, 150),  # the last one was of 50 runs
        ({"runs": 40, "batch": 7}, {"runs": 40, "batch": 1}, 0),
    ],
)
def test_no_run_is_made_twice_whatever_the_batches(tmp_path, first, then, new):
    """Scores in the folder are read, whatever batches they were made in, and only missing runs are run."""
    collect = functools.partial(auditor.collect_runs, run_tasks.noisy_count, workers=1)
    collect(folder=tmp_path, **first)
    told = []
    found = collect(folder=tmp_path, progress=told.append, **then)
    assert (told[-1].done, told[-1].done - told[-1].resumed) == (then["runs"], new)
    assert found.history[1:] == (f"{then['runs'] - new:,} of them read from earlier calls",)
    assert both(found) == both(collect(runs=then["runs"]))


def test_a_gap_between_batches_is_filled(tmp_path):
    """A batch that is missing in the middle is run again, and the ones around it are read."""
    collect = functools.partial(
        auditor.collect_runs, run_tasks.noisy_count, runs=40, workers=1, folder=tmp_path
    )
    whole = both(collect(batch=10))
    for path in tmp_path.iterdir():
        with np.load(path, allow_pickle=False) as archive:
            first = json.loads(archive["header"].tobytes())["case"]["first_run"]
        if first == 10:
            path.unlink()
    told = []
    assert both(collect(batch=4, progress=told.append)) == whole
    assert told[-1].resumed == 30


@pytest.mark.parametrize(
    "scores", [None, np.zeros(9), np.zeros((10, 1)), np.full(10, np.nan), np.arange(10), "text"]
)
def test_a_file_with_other_scores_than_its_runs_is_made_again(tmp_path, scores):
    """Scores that are missing, too few, no numbers or of another shape would move later runs to the other world."""
    collect = functools.partial(
        auditor.collect_runs, run_tasks.noisy_count, runs=20, workers=1, folder=tmp_path
    )
    whole = both(collect(batch=10))
    path = min(tmp_path.iterdir())
    with np.load(path, allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
    content = {"array_0": scores} if isinstance(scores, np.ndarray) else {}
    if not content:
        header |= {"arrays": [], "order": ["scores"], "values": {"scores": scores}}
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **content)
    told = []
    assert both(collect(batch=10, progress=told.append)) == whole
    assert told[-1].resumed == 10


def test_an_array_of_one_number_is_a_score():
    """A score may be an array, as of one number that NumPy computed."""
    assert auditor.collect_runs(lambda *_: np.array([1.5]), runs=4, workers=1).member.tolist() == [1.5, 1.5]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("train", "words"),
    [
        (
            run_tasks.undefined,
            r"got nan from run 0 \(with the canary\); correct it, or give failed, the score of a training that failed",
        ),
        (lambda *_: "1.5", r"must return a finite number, got '1\.5' from run 0"),
        (
            run_tasks.broken,
            r"train failed in run \d+ \(.* the canary\): RuntimeError: out of memory; correct it",
        ),
        (lambda *_: sys.exit(0), r"train failed in run 0 .*: SystemExit: 0; correct it"),
    ],
)
def test_a_training_without_a_score_is_named_with_its_run(train, words, workers):
    """A NaN, a text, an error and an exit name run and world; dropped, they would bias the audit."""
    with pytest.raises(AuditorError, match=words):
        auditor.collect_runs(train, runs=40, workers=workers, batch=40)
