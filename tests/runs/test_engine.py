"""Many runs of a task: nothing finished runs twice, whatever stopped it; the same results for any number of processes."""

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

import auditor
from auditor.core import AuditorError, InputError, OutputError
from auditor.many import Progress, Reporter


def plain(results):
    """Results as lists, so that they can be compared whole."""
    return [{name: np.asarray(value).tolist() for name, value in item.items()} for item in results]


def cases(number, marks=None, **more):
    """So many cases."""
    extra = more if marks is None else {"marks": str(marks), **more}
    return [{"x": x, **extra} for x in range(number)]


@pytest.fixture
def marks(tmp_path):
    """A folder with a file for every call."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def calls(marks):
    """How often the task was called."""
    return len(list(marks.iterdir()))


def test_results_are_in_the_order_of_the_cases_and_alike_in_one_process_and_two(tmp_path):
    """One process, two processes, and two with a folder give the same results, in the order of the cases."""
    alone = auditor.run_cases(run_tasks.tallied, cases(7), workers=1)
    beside = auditor.run_cases(run_tasks.tallied, cases(7), workers=2)
    kept = auditor.run_cases(run_tasks.tallied, cases(7), workers=2, folder=tmp_path)
    assert [item["double"] for item in alone] == [2.0 * x for x in range(7)]
    assert plain(alone) == plain(beside) == plain(kept)


def test_what_is_in_the_folder_is_read_and_not_run_again(tmp_path, marks):
    """A second call runs only new cases, and gives what is kept as it was, with its types."""
    folder = tmp_path / "runs"
    first = auditor.run_cases(run_tasks.tallied, cases(4, marks), folder=folder, workers=1)
    again = auditor.run_cases(run_tasks.tallied, cases(6, marks), folder=folder, workers=1)
    assert calls(marks) == 6
    assert plain(again[:4]) == plain(first)
    assert list(again[0]) == list(first[0])
    assert [type(value) for value in again[0].values()] == [str, float, int, bool, np.ndarray]


@pytest.mark.parametrize("change", ["case", "task", "seed"])
def test_another_case_task_or_seed_is_another_file(tmp_path, change):
    """A stored result of another case, another task or another seed is not taken for this one's."""
    run = functools.partial(auditor.run_cases, folder=tmp_path, workers=1)
    first = run(run_tasks.tallied, [{"x": 1}])
    task = run_tasks.other if change == "task" else run_tasks.tallied
    case = {"x": 1, "y": None} if change == "case" else {"x": 1}
    second = run(task, [case], seed=int(change == "seed"))
    assert len(list(tmp_path.iterdir())) == 2
    assert (first[0]["seed"] == second[0]["seed"]) == (change == "task")


def test_the_seed_depends_on_the_case_and_the_root_alone():
    """Other cases, their order and the number of processes leave the seed of a case as it is; all seeds differ."""
    run = functools.partial(auditor.run_cases, run_tasks.other, workers=1)
    forwards = [item["seed"] for item in run(cases(50))]
    backwards = [item["seed"] for item in run(cases(60)[::-1])]
    assert forwards == backwards[::-1][:50]
    assert run([{"x": 3}])[0]["seed"] == forwards[3]
    assert run([{"x": 3}], seed=1)[0]["seed"] != forwards[3]
    assert len(set(forwards)) == 50
    assert all(0 <= seed < 2**32 for seed in forwards)
    # Names in another order and NumPy's own numbers are the same case; 1, 1.0 and True are three.
    ways = ({"x": 1, "y": 2}, {"y": np.int64(2), "x": 1}, {"x": 1.0, "y": 2}, {"x": True, "y": 2})
    assert len({run([way])[0]["seed"] for way in ways}) == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_names_its_case_and_keeps_what_is_finished(tmp_path, marks, workers):
    """An error in the task is one sentence with the case and the error; the rest is not run again when it is fixed."""
    given = [*cases(4, marks), {"x": 4, "fails": True}]
    folder = tmp_path / "runs"
    sentence = r'the task failed for case \{"x": 4, "fails": true\}: ValueError: the loss is NaN\.$'
    with pytest.raises(AuditorError, match=sentence) as caught:
        auditor.run_cases(run_tasks.tallied, given, folder=folder, workers=workers)
    if workers == 1:
        assert isinstance(caught.value.__cause__, ValueError)
    else:
        assert "in tallied" in caught.value.__notes__[0]  # where it happened
    kept = len(list(folder.iterdir()))
    assert kept >= (4 if workers == 1 else 1)
    auditor.run_cases(run_tasks.tallied, given[:4], folder=folder, workers=1)
    assert calls(marks) <= 4 + (4 - min(kept, 4))
    assert len(list(folder.iterdir())) == 4


def test_a_process_that_dies_is_one_sentence(tmp_path):
    """Where a process ends, as for want of memory, the sentence says what to do, and what is finished stays."""
    given = [*cases(2), {"x": 2, "dies": True}, {"x": 3}]
    with pytest.raises(
        AuditorError, match=r"a worker process ended .* for want of memory; give fewer workers\.$"
    ):
        auditor.run_cases(run_tasks.tallied, given, folder=tmp_path, workers=2)
    found = auditor.run_cases(run_tasks.tallied, cases(2), folder=tmp_path, workers=2)
    assert [item["double"] for item in found] == [0.0, 2.0]


_LONG = """
import sys, time, pathlib, auditor
def slow(case, seed):
    (pathlib.Path(sys.argv[2]) / f"{case['x']}-{time.time_ns()}").touch()
    time.sleep(case["seconds"])
    return {"x": case["x"]}
if __name__ == "__main__":
    seconds = float(sys.argv[3])
    found = auditor.run_cases(
        slow, [{"x": x, "seconds": 0.05} for x in range(40)], folder=sys.argv[1], workers=1,
        progress=lambda line: time.sleep(seconds)
    )
    print(len(found))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of a Unix system")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_what_was_killed_goes_on_where_it_stopped(tmp_path, marks, stop):
    """Killed or interrupted in the middle, only whole files are left; the next call runs the rest and nothing twice."""
    program, folder = tmp_path / "program.py", tmp_path / "runs"
    program.write_text(_LONG, encoding="utf-8")
    command = [sys.executable, str(program), str(folder), str(marks), "0"]
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
    before = calls(marks)
    assert before <= len(kept) + 1  # at most the one that was running
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "40"
    assert calls(marks) - before == 40 - len(kept)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_ends_the_program_is_a_sentence(workers):
    """An exit inside a task names its case, in this process as in another."""
    with pytest.raises(AuditorError, match=r'^the task failed for case \{"x": .*\}: SystemExit: 3\.'):
        auditor.run_cases(run_tasks.quits, cases(2), workers=workers)


def test_what_another_call_finished_meanwhile_is_read(tmp_path, marks):
    """The first case makes another call on the same folder, which runs the second one: that one is then read."""
    about = {"marks": str(marks), "folder": str(tmp_path / "runs")}
    given = [{"x": x, **about} for x in range(2)]
    found = auditor.run_cases(run_tasks.meanwhile, given, folder=tmp_path / "runs", workers=1)
    assert [item["x"] for item in found] == [0, 1]
    assert calls(marks) == 2


def test_old_drafts_of_killed_processes_are_taken_away(tmp_path):
    """A draft of two hours ago is removed; a fresh one, which another process may be writing, and other files stay."""
    old, fresh, other = (
        tmp_path / name for name in (f".draft-{'0' * 32}", f".draft-{'1' * 32}", ".draft-mine")
    )
    for path in (old, fresh, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - 7200,) * 2)
    auditor.run_cases(run_tasks.other, cases(1), folder=tmp_path, workers=1)
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
def test_a_damaged_file_is_made_again(tmp_path, marks, damage):
    """A file that is cut off, was renamed, holds a pickle or claims 10^14 numbers is not used: its case is run again."""
    folder, given = tmp_path / "runs", cases(2, marks)
    first = auditor.run_cases(run_tasks.tallied, given, folder=folder, workers=1)
    path, other = folder.iterdir()
    content = {
        "empty": b"",
        "cut": path.read_bytes()[:-30],
        "renamed": other.read_bytes(),
        "pickle": pickle.dumps({"header": 1}),
        "huge": claiming(path, (10**14,)),
    }[damage]
    path.write_bytes(content)
    assert plain(auditor.run_cases(run_tasks.tallied, given, folder=folder, workers=1)) == plain(first)
    assert calls(marks) == 3


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("done", "must return a mapping"),
        ({1: 2.0}, "must have texts as names"),
        ({"v": object()}, "got 'v' of type object"),
        ({"v": [[1, 2], [3]]}, "got 'v' of type list"),
        ({"v": np.ma.array([1.0, 2.0], mask=[False, True])}, "got 'v' of type MaskedArray"),
        ({"v": 2**70}, "numbers of at most 64 bits .* got 'v' of type int"),
    ],
)
def test_results_that_no_file_can_hold_are_refused(result, words):
    """A result is a flat mapping to numbers, texts, truth values or arrays of numbers; the sentence names the case."""
    with pytest.raises(InputError, match=rf"{words}.* for case \{{\"x\": 0\}}\.$"):
        auditor.run_cases(lambda *_, **__: result, cases(1), workers=1)


def test_only_a_named_function_has_results_that_are_kept(tmp_path):
    """A lambda or a partial shares its name with others, so its results are not kept; without a folder it runs."""
    for task in (lambda case, seed: {"x": case["x"] + 0 * seed}, functools.partial(run_tasks.other)):
        with pytest.raises(InputError, match="task must be a named function when its results are kept"):
            auditor.run_cases(task, cases(1), folder=tmp_path)
        assert auditor.run_cases(task, cases(1), workers=1)[0]["x"] == 0
    with pytest.raises(InputError, match="task must be a function, got str"):
        auditor.run_cases("train", cases(1))


def test_a_folder_inside_a_file_is_refused_before_any_run(tmp_path):
    """Where the folder cannot be made nothing is run."""
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        auditor.run_cases(run_tasks.tallied, cases(1, tmp_path), workers=1, folder=tmp_path / "file" / "runs")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("workers", [1, 2])
def test_linear_algebra_has_one_thread(workers):
    """In this process as in others, a task's linear algebra runs in one thread, so that runs do not fight for cores."""
    found = auditor.run_cases(run_tasks.threads, cases(2), workers=workers)
    assert [item["most"] for item in found] == [1, 1]


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
