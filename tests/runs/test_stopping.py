"""Runs that are stopped when they are enough, and runs that failed: what is returned depends on the scores alone."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import run_tasks
from command_line import refused, run as command
from run_tasks import Below, InDisorder, both

import auditor
from auditor.core import AuditorError, InputError
from auditor.curves.transforms import published
from auditor.many.batches import layout
from auditor.many.training_runs import _sizes, seed_of

MOST = 60
RULE = Below(4)


def in_order(train, rule=RULE, most=MOST):
    """The scores until the rule has enough: given one run after another, by hand."""
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
    size = _sizes(most, None, stops=True)
    made = layout([], total=most, size=size)
    assert sum(batch.count for batch in made) == most
    assert len(made) <= 1000
    assert all(batch.count % 2 == 0 and batch.count <= max(least, batch.first / 50) for batch in made)


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
    with pytest.raises(AuditorError, match="ZeroDivisionError: a bug; correct it, or give failed"):
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
    """A rule sees the score of a failed run, and failures beyond the last run that counts are not reported."""
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
    arrays["failed"][0] = MOST  # a run of another file: it is made again
    content = {f"array_{place}": array for place, array in enumerate(arrays.values())}
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **content)
    again = auditor.collect_runs(
        run_tasks.diverging, runs=MOST, batch=MOST, failed=7.0, folder=tmp_path, workers=1
    )
    assert (both(again), len(again.history)) == (expected, 2)
    path.unlink()
    auditor.collect_runs(run_tasks.noisy_count, runs=4, batch=4, failed=7.0, folder=tmp_path, workers=1)
    [path] = tmp_path.iterdir()
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive) == ["array_0", "header"]
        assert json.loads(archive["header"].tobytes())["order"] == ["scores"]


# --- That the evidence stopped them is a fact of the losses, wherever they go --------------------------


CLAIM = auditor.StatedClaim(1.0, 1e-5)


@pytest.fixture(scope="module")
def stopped():
    """Runs of a training that leaks more than it claims, which the evidence against the claim stopped."""

    def train(with_canary, seed):
        return -(3 * with_canary + np.random.default_rng(seed).normal())

    return auditor.collect_runs(train, runs=2000, workers=1, stop=auditor.Sequential(claim=CLAIM))


WRITERS = {
    "runs.csv": lambda losses, path: losses.to_frame().to_csv(path, index=False),
    "runs.tsv": lambda losses, path: losses.to_frame().to_csv(path, index=False, sep="\t"),
    "runs.parquet": lambda losses, path: losses.to_frame().to_parquet(path),
    "runs.feather": lambda losses, path: losses.to_frame().to_feather(path),
    "runs.npz": lambda losses, path: np.savez(path, **dict(losses.to_frame())),
    "runs.json": lambda losses, path: path.write_text(json.dumps(losses.to_frame().to_dict("list"))),
}


def read_again(losses, path):
    """The losses after a round trip through a file."""
    WRITERS[path.name](losses, path)
    return auditor.read_losses(json.loads(path.read_text()) if path.suffix == ".json" else path)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_keeps_that_the_evidence_stopped_the_runs(stopped, tmp_path, name):
    """Read again from a file of any kind, the runs are judged by the bets as before, and never as a fixed number."""
    read = read_again(stopped, tmp_path / name)
    assert (read.member.tolist(), read.nonmember.tolist()) == both(stopped)
    with pytest.raises(InputError, match="stopped by their evidence"):
        auditor.audit_runs(read, delta=1e-5, claim=CLAIM)
    found = auditor.audit_runs(read, delta=1e-5, claim=CLAIM, test=auditor.Sequential())
    assert found.verdict == "refuted"


def test_runs_of_a_fixed_number_have_no_such_mark():
    """Runs that no rule stopped, or that a rule let go on to the last one, are judged as a fixed number."""
    for losses in (collect(stop=None, workers=1), collect(stop=Below(10**6), workers=1)):
        assert not losses.stopped_by_evidence
        assert "stopped_by_evidence" not in losses.to_frame()
        assert auditor.audit_runs(losses, delta=1e-5).data["test"] == "FixedNumber"


def test_what_is_made_of_stopped_runs_is_no_fixed_number_either(stopped):
    """Parts, other scales, summaries, the swapped groups and tables with other runs below them keep the fact."""
    frame = stopped.to_frame()
    more = frame.drop(columns="stopped_by_evidence")
    taken = stopped.take(member=np.arange(9), nonmember=np.arange(9))
    made = [taken, stopped.swapped, published(stopped), auditor.Summary.of(stopped).losses]
    made += [auditor.read_losses(pd.concat(pair)) for pair in ((frame, more), (more, frame))]
    made += [(auditor.Summary.from_files([more]) + auditor.Summary.from_files([frame])).losses]
    halves = [part.drop(columns="member") for _, part in frame.groupby("member")]
    made += [auditor.collectors.read_loss_pair(halves[1], halves[0].drop(columns="stopped_by_evidence"))]
    assert all(item.stopped_by_evidence for item in made)


@pytest.mark.parametrize("column", ["stopped_by_evidence", "person"])
def test_parts_with_a_column_of_their_own_are_refused(stopped, tmp_path, column):
    """A folder's later part does not lose what the first one lacks, and the advice works."""
    frame = stopped.to_frame().assign(**{column: 1})
    plain = frame.drop(columns={column, "stopped_by_evidence"})
    for part, rows in (("a", plain), ("b", plain.assign(**{column: 1}))):
        rows.to_parquet(tmp_path / f"{part}.parquet")
    with pytest.raises(InputError, match=f"must have the column '{column}' in each of its parts or in none"):
        auditor.read_losses(tmp_path)
    plain.assign(**{column: np.nan}).to_parquet(tmp_path / "a.parquet")
    found = auditor.read_losses(tmp_path)
    assert found.stopped_by_evidence == (column == "stopped_by_evidence")
    assert (found.person is None) == (column == "stopped_by_evidence")


def test_a_written_summary_keeps_it(stopped, tmp_path):
    """A summary's file says that its runs were stopped, so no audit takes it."""
    path = tmp_path / "summary.parquet"
    auditor.Summary.of(stopped).write(path)
    with pytest.raises(InputError, match="stopped by their evidence"):
        auditor.audit(path)


def test_no_audit_of_a_fixed_number_takes_stopped_runs(stopped):
    """The audit of a model and that of several models hold at a fixed number of records alone: both refuse."""
    for audited in (auditor.audit, lambda runs: auditor.audit_instances([runs, runs], delta=1e-5)):
        with pytest.raises(InputError, match=r"audit them by auditor\.audit_runs with test=Sequential\(\)"):
            audited(stopped)


@pytest.mark.parametrize(("cell", "words"), [(3, "got 3; give the column another name"), ("x", "got 'x'")])
def test_a_column_of_that_name_with_other_values_is_refused(stopped, cell, words):
    """A column that means something else is not taken for the mark: one sentence names it."""
    with pytest.raises(InputError, match=f"column 'stopped_by_evidence' of .*{words}"):
        auditor.read_losses(stopped.to_frame().assign(stopped_by_evidence=cell))


def test_the_command_line_says_how_stopped_runs_are_judged(stopped, tmp_path, capsys):
    """`auditor runs` refuses them as a fixed number and names --sequential, which judges them."""
    path = tmp_path / "runs.csv"
    WRITERS[path.name](stopped, path)
    typed = ("runs", path, "--claim-epsilon", 1, "--claim-delta", 1e-5, "--quiet")
    assert "audit them by auditor.audit_runs with test=Sequential()" in refused(capsys, *typed)
    assert command(*typed, "--test", "sequential") == 1
    assert "The claim is refuted." in capsys.readouterr().err
