"""The files and processes of many runs: nothing finished runs twice, whatever stopped it."""

import functools
import io
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
import run_tasks
from run_tasks import both

import auditor
from auditor.core import AuditorError, InputError, OutputError
from auditor.many import Progress, Reporter

CALLS = []


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


def counted(with_canary, seed):
    """A score, and a note of the call."""
    CALLS.append(seed)
    return run_tasks.noisy_count(with_canary, seed)


def collect(train=counted, **options):
    """Four runs in two batches, in this process."""
    own = {} if "engine" in options else {"workers": 1}
    return auditor.collect_runs(train, **{"runs": 4, "batch": 2, **own, **options})


def test_another_training_or_seed_is_another_file(tmp_path):
    """Scores of another training or another seed are not taken for this one's."""
    first, second = (collect(folder=tmp_path, seed=seed) for seed in (0, 1))
    collect(run_tasks.noisy_count, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 6
    assert both(first) != both(second)
    assert (both(first), both(second)) == (both(collect()), both(collect(seed=1)))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_keeps_what_is_finished(tmp_path, workers):
    """An error in a run is one sentence with its cause or its trace; finished batches are not run again."""
    options = {"runs": 20, "workers": workers, "folder": tmp_path}
    with pytest.raises(
        AuditorError, match=r"train failed in run 11 .*: ValueError: the loss is NaN; "
    ) as caught:
        collect(run_tasks.fails_late, **options)
    if workers == 1:
        assert isinstance(caught.value.__cause__, ValueError)
    else:
        assert "in fails_late" in caught.value.__notes__[0]  # where it happened
    kept, told = len(list(tmp_path.iterdir())), []
    assert kept == 5 if workers == 1 else kept >= 1
    collect(run_tasks.fails_late, **options, failed=1e9, progress=told.append)
    assert (told[-1].done, told[-1].resumed) == (20, 2 * kept)


def test_a_process_that_dies_is_one_sentence(tmp_path):
    """Where a process ends, as for want of memory, the sentence says what to do, and what is finished stays."""
    with pytest.raises(
        AuditorError, match=r"a worker process ended .* for want of memory; give fewer workers\.$"
    ):
        collect(run_tasks.dies_late, runs=20, folder=tmp_path, workers=2)
    found = collect(run_tasks.dies_late, runs=10, folder=tmp_path, workers=2)
    assert both(found) == both(collect(run_tasks.noisy_count, runs=10))


_LONG = """
import sys, time, pathlib, auditor
def slow(with_canary, seed):
    (pathlib.Path(sys.argv[2]) / f"{seed}-{time.time_ns()}").touch()
    time.sleep(0.05)
    return float(seed)
if __name__ == "__main__":
    found = auditor.collect_runs(slow, runs=40, batch=1, folder=sys.argv[1], workers=1)
    print(found.n_member + found.n_nonmember)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of a Unix system")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_what_was_killed_goes_on_where_it_stopped(tmp_path, stop):
    """Killed or interrupted in the middle, only whole files are left; the next call runs the rest and nothing twice."""
    program, folder, marks = (tmp_path / name for name in ("program.py", "runs", "marks"))
    marks.mkdir()
    program.write_text(_LONG, encoding="utf-8")
    command = [sys.executable, str(program), str(folder), str(marks)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(folder.glob("*.npz"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(stop)
    process.wait(timeout=60)
    kept = sorted(folder.glob("*.npz"))
    assert 3 <= len(kept) < 40
    for path in kept:
        with np.load(path, allow_pickle=False) as archive:
            assert archive["header"].size
    before = len(list(marks.iterdir()))
    assert before <= len(kept) + 1  # at most the one that was running
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "40"
    assert len(list(marks.iterdir())) - before == 40 - len(kept)


class Interrupted:
    """An engine that lets another call finish after its first unit."""

    def __init__(self, call):
        self.call = call

    def results(self, work, units):
        """Yield the results of the work."""
        yield work(units[0])
        self.call()
        yield from map(work, units[1:])


def test_what_another_call_finished_meanwhile_is_read(tmp_path):
    """After the first batch another call on the same folder makes the others: these are then read."""
    call = functools.partial(collect, runs=8, folder=tmp_path)
    found = call(engine=Interrupted(call))
    assert len(CALLS) == 8
    assert both(found) == both(collect(runs=8))


def test_old_drafts_of_killed_processes_are_taken_away(tmp_path):
    """A draft of two hours ago is removed; a fresh one, which another process may be writing, and other files stay."""
    old, fresh, other = (
        tmp_path / name for name in (f".draft-{'0' * 32}", f".draft-{'1' * 32}", ".draft-mine")
    )
    for path in (old, fresh, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - 7200,) * 2)
    collect(folder=tmp_path)
    assert [path.exists() for path in (old, fresh, other)] == [False, True, True]


def claiming(path, shape):
    """Bytes of the same file whose array claims to have a shape."""
    with np.load(path, allow_pickle=False) as archive:
        header = archive["header"]
    array, made = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": shape})
    np.savez(made, header=header)
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr("array_0.npy", array.getvalue())
    return made.getvalue()


@pytest.mark.parametrize("damage", ["empty", "cut", "renamed", "pickle", "huge"])
def test_a_damaged_file_is_made_again(tmp_path, damage):
    """A file that is cut off, was renamed, holds a pickle or claims 10^14 numbers is not used: its runs are made again."""
    first = collect(folder=tmp_path)
    path, other = tmp_path.iterdir()
    content = {
        "empty": b"",
        "cut": path.read_bytes()[:-30],
        "renamed": other.read_bytes(),
        "pickle": pickle.dumps({"header": 1}),
        "huge": claiming(path, (10**14,)),
    }[damage]
    path.write_bytes(content)
    assert both(collect(folder=tmp_path)) == both(first)
    assert len(CALLS) == 6


def test_only_a_named_function_has_scores_that_are_kept(tmp_path):
    """A lambda or a partial shares its name with others, so its scores are not kept; without a folder it runs."""
    for train in (lambda *_: 1.0, functools.partial(counted)):
        with pytest.raises(InputError, match="train must be a named function when its results are kept"):
            collect(train, folder=tmp_path)
        assert collect(train).n_member == 2
    with pytest.raises(InputError, match="train must be a function, got str"):
        collect("train")


def test_a_folder_inside_a_file_is_refused_before_any_run(tmp_path):
    """Where the folder cannot be made nothing is run."""
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        collect(folder=tmp_path / "file" / "runs")
    assert CALLS == []


@pytest.mark.parametrize("workers", [1, 2])
def test_linear_algebra_has_one_thread(workers):
    """In this process as in others, a training's linear algebra runs in one thread, so that runs do not fight for cores."""
    assert both(collect(run_tasks.threads, workers=workers)) == ([1, 1], [1, 1])


def test_progress_is_told_once_a_second(monkeypatch):
    """A hundred runs of a tenth of a second each tell of themselves ten times; the rest is expected at their pace."""
    clock, told = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    reporter = Reporter(told.append, total=101)
    reporter.add(1, resumed=True)
    for step in range(1, 101):
        clock[0] = step / 10
        reporter.add(1, resumed=False)
    assert len(told) == 10
    assert told[4] == Progress(done=51, total=101, resumed=1, elapsed=5.0, remaining=5.0)
