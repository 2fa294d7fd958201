"""Runs that are stopped when they are enough, and runs that failed: what is returned depends on the scores alone."""

import json
import sys

import numpy as np
import pytest
import run_tasks
from run_tasks import Below, InDisorder, both

import auditor
from auditor.core import AuditorError, InputError
from auditor.mechanism.training_runs import seed_of

MOST = 60
RULE = Below(4)


def in_order(train, rule=RULE, most=MOST):
    """The scores until the rule has enough: told of one run after another, by hand."""
    watcher, pairs = rule.watch(), []
    for run in range(0, most, 2):
        pairs.append([train(run + other == run, seed_of(run + other, 0)) for other in (0, 1)])
        if watcher.add(*pairs[-1]) and len(pairs) > 1:
            break
    return tuple(map(list, zip(*pairs, strict=True)))


def collect(train=run_tasks.noisy_count, **given):
    """A collection that stops."""
    return auditor.collect_runs(train, **{"runs": MOST, "stop": RULE, **given})


def test_the_time_that_a_run_takes_does_not_decide(tmp_path):
    """Low scores come at once, high ones late: one process, two and three return the runs in the order of their numbers."""
    expected = in_order(run_tasks.count_in_its_time)
    stopped = 2 * len(expected[0])
    assert 8 < stopped < MOST
    for workers in (1, 2, 3):
        found = collect(run_tasks.count_in_its_time, workers=workers, folder=tmp_path / str(workers))
        assert both(found) == expected
        assert found.history[-1] == f"stopped after {stopped} of at most {MOST} runs: difference 4 of 4"
        # What other processes finished meanwhile lies in the folder, and changes nothing.
        again = collect(run_tasks.count_in_its_time, workers=1, folder=tmp_path / str(workers))
        assert both(again) == expected
        assert again.history[1] == f"{stopped} of them read from earlier calls"


@pytest.mark.parametrize("batch", [None, 1, 3, 8])
@pytest.mark.parametrize("order", range(5))
def test_any_order_of_finishing_gives_the_same_runs(tmp_path, batch, order):
    """Whatever is finished first, in whatever batches, and whatever an interrupted call left, the same runs count."""
    expected = in_order(run_tasks.noisy_count)
    engine = InDisorder(order)
    assert both(collect(engine=engine, batch=batch)) == expected
    with pytest.raises(KeyboardInterrupt):
        collect(engine=InDisorder(order + 5), batch=batch, folder=tmp_path, stop=Below(4, killed=3))
    left = len(list(tmp_path.iterdir()))
    assert left > 0
    assert both(collect(engine=InDisorder(order + 10), folder=tmp_path)) == expected
    assert both(collect(engine=InDisorder(order), folder=tmp_path)) == expected


def test_nothing_is_begun_once_it_is_enough(tmp_path):
    """In order, the last batch that is begun is the one with the last pair; a folder that is enough has none begun."""
    expected = in_order(run_tasks.noisy_count)
    told = []
    found = collect(workers=1, folder=tmp_path, progress=told.append)
    assert both(found) == expected
    assert len(list(tmp_path.iterdir())) == len(expected[0])  # batches of 2 at first
    assert (told[-1].done, told[-1].total, told[-1].remaining) == (2 * len(expected[0]), MOST, 0)
    assert str(told[-1]).endswith("; difference 4 of 4.")
    engine = InDisorder(0)
    assert both(collect(engine=engine, folder=tmp_path, progress=told.append)) == expected
    assert engine.begun == []
    assert told[-1].evidence == "difference 4 of 4"


def test_without_enough_all_runs_count():
    """A rule that is never content changes nothing but the history."""
    found = collect(stop=Below(1000), workers=1)
    assert both(found) == both(auditor.collect_runs(run_tasks.noisy_count, runs=MOST, workers=1))
    assert found.history[-1].startswith(f"not stopped within {MOST} runs: difference ")


def test_two_pairs_are_the_least():
    """Losses are of two records at least: a rule that has enough after one pair ends with two."""
    assert collect(stop=Below(0), workers=1).n_member == 2


@pytest.mark.parametrize(("most", "least"), [(400, 2), (40_000, 2), (10**6, 2), (10**7, 20)])
def test_new_batches_are_small_and_few(most, least):
    """Where runs may be enough any time batches are of 2 at first, and later of a fiftieth of the runs before them."""
    from auditor.mechanism.training_runs import _batches, _sizes

    size = _sizes(most, None, stops=True)
    cases = _batches("train", root=0, code=None, total=most, size=size, folder=None)
    made = [(case.setting["first_run"], case.setting["runs"]) for case in cases]
    assert sum(runs for _, runs in made) == most
    assert len(made) <= 1000
    assert all(runs % 2 == 0 and runs <= max(least, first / 50) for first, runs in made)


def test_an_error_counts_only_where_its_run_does():
    """A run beyond the last that counts may raise what it will; one before it ends the collection, with its place."""
    stopped = 2 * len(in_order(run_tasks.noisy_count)[0])

    def fails_from(first):
        late = {seed_of(run, 0) for run in range(first, MOST)}

        def train(with_canary, seed):
            if seed in late:
                raise ZeroDivisionError("a bug")
            return run_tasks.noisy_count(with_canary, seed)

        return train

    for order in range(5):
        assert both(collect(fails_from(stopped), engine=InDisorder(order), batch=2)) == in_order(
            run_tasks.noisy_count
        )
        with pytest.raises(
            AuditorError, match=rf"failed in run {stopped - 2} .*: ZeroDivisionError"
        ) as caught:
            collect(fails_from(stopped - 2), engine=InDisorder(order), batch=2)
        assert "in train" in caught.value.__notes__[0]
    with pytest.raises(AuditorError, match="ZeroDivisionError: a bug; mend it, or give failed"):
        collect(fails_from(stopped), workers=1, stop=None)


# --- Runs that failed ---


def score_or(failed, runs):
    """The scores of a training that diverges, by hand, and the numbers of the runs that failed."""
    seeds = [seed_of(run, 0) for run in range(runs)]
    lost = [run for run, seed in enumerate(seeds) if seed % 3 < 2]
    scores = [
        failed if run in lost else run_tasks.noisy_count(run % 2 == 0, seed) for run, seed in enumerate(seeds)
    ]
    return (scores[0::2], scores[1::2]), lost


@pytest.mark.parametrize("given", [{"workers": 1}, {"workers": 2}, {"engine": InDisorder(3)}])
def test_a_run_that_failed_has_a_score(tmp_path, given):
    """Errors and scores that are no number stand for the one that is given, in both worlds, and are counted."""
    expected, lost = score_or(1e9, MOST)
    with_canary = sum(run % 2 == 0 for run in lost)
    assert 0 < with_canary < len(lost) < MOST
    history = rf"{len(lost)} of {MOST} runs failed ({with_canary} with the canary) and have the score 1e+09; the first: "
    ask = {"runs": MOST, "batch": 7, "failed": 1e9, "folder": tmp_path, **given}
    for _ in range(2):  # run, and read from the folder
        told = []
        found = auditor.collect_runs(run_tasks.diverging, progress=told.append, **ask)
        assert both(found) == expected
        assert found.history[-1].startswith(f"{history}train ")
        assert found.notes == found.history[-1:]
        assert f"run {lost[0]} (" in found.history[-1]
        assert told[-1].failed == len(lost)
        assert f"{len(lost)} failed) after" in str(told[-1])
    # Another score for the same runs, none at all, and a part of them.
    assert both(auditor.collect_runs(run_tasks.diverging, **{**ask, "failed": 5.0})) == score_or(5.0, MOST)[0]
    with pytest.raises(AuditorError, match=rf"run {lost[0]} .*; an earlier call kept that run as failed"):
        auditor.collect_runs(run_tasks.diverging, **{**ask, "failed": None})
    part, fewer = score_or(1e9, 10)
    found = auditor.collect_runs(run_tasks.diverging, **{**ask, "runs": 10})
    assert both(found) == part
    assert found.history[-1].startswith(f"{len(fewer)} of 10 runs failed (")


def test_where_all_runs_failed_there_is_nothing_to_audit():
    """A training that never succeeds is a mistake, whatever its failures stand for."""
    with pytest.raises(AuditorError, match=r"all 8 runs failed: train failed in run 0 .*: SystemExit: 3\.$"):
        auditor.collect_runs(lambda *_: sys.exit(3), runs=8, failed=1e9, workers=1)


def test_failed_runs_are_watched_with_their_score():
    """A rule sees the score of a failed run, and failures beyond the last run that counts are not told."""
    (members, nonmembers), lost = score_or(-1e9, MOST)
    rule = Below(3)
    watcher = rule.watch()
    enough = [watcher.add(*pair) for pair in zip(members, nonmembers, strict=True)].index(True) + 1
    assert 2 < enough < MOST // 2
    for order in range(3):
        found = collect(run_tasks.diverging, stop=rule, failed=-1e9, engine=InDisorder(order), batch=4)
        assert both(found) == (members[:enough], nonmembers[:enough])
        counted = sum(run < 2 * enough for run in lost)
        assert found.history[1].startswith(f"{counted} of {2 * enough} runs failed (")


def test_files_say_by_name_which_runs_failed(tmp_path):
    """A file names scores and failed runs; one without failures is as it always was."""
    auditor.collect_runs(run_tasks.diverging, runs=MOST, batch=MOST, failed=7.0, folder=tmp_path, workers=1)
    expected, lost = score_or(7.0, MOST)
    [path] = tmp_path.iterdir()
    with np.load(path, allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
        arrays = {name: archive[f"array_{place}"] for place, name in enumerate(header["arrays"])}
    assert (arrays["scores"][0::2].tolist(), arrays["scores"][1::2].tolist()) == expected
    assert arrays["failed"].tolist() == lost
    words = ("FloatingPointError: the loss is infinite", "train must return a finite number, got nan")
    assert any(word in header["values"]["first_failure"] for word in words)
    arrays["failed"][0] = MOST  # a run of another file
    content = {f"array_{place}": array for place, array in enumerate(arrays.values())}
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **content)
    with pytest.raises(InputError, match="is damaged or another's"):
        auditor.collect_runs(run_tasks.diverging, runs=MOST, failed=7.0, folder=tmp_path, workers=1)
    path.unlink()
    auditor.collect_runs(run_tasks.noisy_count, runs=4, batch=4, failed=7.0, folder=tmp_path, workers=1)
    [path] = tmp_path.iterdir()
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive) == ["array_0", "header"]
        assert json.loads(archive["header"].tobytes())["order"] == ["scores"]
