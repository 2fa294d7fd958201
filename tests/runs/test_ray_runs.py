"""Runs on a Ray cluster: the same scores and files as here, whatever happens to the workers."""

import functools
import json
import threading

import numpy as np
import pytest
import run_tasks
from run_tasks import Below, both

import auditor
from auditor.collectors.streaming import ray_session
from auditor.core import InputError

# Ray leaves files and processes to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("cluster"),
]


@pytest.fixture(scope="module")
def cluster(require_extra):
    """Ray with two processors, which all tests share: starting it takes seconds."""
    require_extra("ray")
    with ray_session(2, None):
        yield


def kept(folder):
    """The content of the files of a folder, by their names."""
    found = {}
    for path in sorted(folder.iterdir()):
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes())
            found[path.name] = header, {name: archive[name].tolist() for name in archive if name != "header"}
    return found


def test_scores_and_files_are_the_same_on_every_engine(tmp_path, capsys):
    """This process, two processes and Ray: the same scores, failed runs and files; progress is seen where it is printed."""
    ways = {
        "here": auditor.collectors.LocalEngine(),
        "processes": None,
        "ray": auditor.collectors.RayEngine(workers=2),
    }
    made = [
        auditor.collect_runs(
            run_tasks.diverging,
            runs=30,
            batch=4,
            failed=1e9,
            folder=tmp_path / name,
            engine=engine,
            workers=2 if engine is None else None,
            progress=print,
        )
        for name, engine in ways.items()
    ]
    assert both(made[0]) == both(made[1]) == both(made[2])
    assert made[0].history == made[1].history == made[2].history
    assert kept(tmp_path / "here") == kept(tmp_path / "processes") == kept(tmp_path / "ray")
    assert len(kept(tmp_path / "here")) == 8
    assert capsys.readouterr().out.count("30 of 30 runs done") == 3


def test_runs_have_one_thread_in_a_worker_too():
    """A training's linear algebra runs in one thread on Ray as in other processes, so that its sums are the same."""
    engine = auditor.collectors.RayEngine(workers=2)
    assert both(auditor.collect_runs(run_tasks.threads, runs=4, engine=engine)) == ([1, 1], [1, 1])


def test_what_was_interrupted_goes_on_and_stops_where_it_would_have(tmp_path):
    """Interrupted on Ray, gone on with on Ray: what is kept is not run again, and the same runs count as here."""
    collect = functools.partial(auditor.collect_runs, run_tasks.count_in_its_time, runs=60)
    here = collect(workers=1, stop=Below(4))
    assert here.n_member < 30
    engine = auditor.collectors.RayEngine(workers=2)
    with pytest.raises(KeyboardInterrupt):
        collect(engine=engine, folder=tmp_path, stop=Below(4, killed=3))
    before = kept(tmp_path)
    assert 4 <= len(before) < here.n_member
    found = collect(engine=engine, folder=tmp_path, stop=Below(4))
    assert both(found) == both(here)
    assert found.history[-1] == here.history[-1]
    assert before.items() <= kept(tmp_path).items()


def test_refusals_speak_of_the_training():
    """A training that cannot be sent, and one that kills its workers: the sentences name it and its runs."""
    engine = auditor.collectors.RayEngine(workers=1)
    locked = lambda *_, lock=threading.Lock(): 1.0  # noqa: E731, ARG005, B008
    with pytest.raises(
        InputError, match=r"^train must be such that .* sent a copy, .*; let the function open"
    ):
        auditor.collect_runs(locked, runs=4, engine=engine)
    with pytest.raises(
        InputError, match=r"^runs 0 to 1 could not be done: 3 Ray workers .* make the runs smaller\.$"
    ):
        auditor.collect_runs(run_tasks.deadly, runs=4, batch=2, engine=engine)
