"""The Ray engine: the same parts as the local engine, whatever happens to its workers."""

import copy
import functools
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from collectors.server import Server
from collectors.streaming import fakes
from ray_faults import EachItsOwn, FirstColumn, Heavy, Table, ThreadCount

import auditor
from auditor.collectors.base import Classification, ModelScorer
from auditor.collectors.streaming import RayEngine, attempted, predictor, ray_session, result_of
from auditor.core import InputError, MissingExtraError

# Ray leaves files and processes to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BATCH, UNIT = 50, 100  # records


@pytest.fixture
def tables(rng):
    """630 members and 310 non-members of two classes: 7 and 4 units."""
    features = rng.normal(size=(940, 12))
    labels = (features[:, 0] + features[:, 1] ** 2 > 0.5).astype(int)
    member = Table("member", features[:630], labels[:630], member=True)
    return member, Table("nonmember", features[630:], labels[630:], member=False)


@pytest.fixture(scope="module")
def cluster(require_extra):
    """Ray with two processors, which several tests share: starting it takes seconds."""
    require_extra("ray")
    with ray_session(2, None):
        yield


def scoring(scorer, tables, folder, factory=None):
    """The work of scoring everything, in units of two batches."""
    folder.mkdir(exist_ok=True)
    build = factory or functools.partial(copy.copy, scorer)
    return fakes.scoring(folder, scorer, tables, batch_size=BATCH, unit_size=UNIT, factory=build)


def run(engine, scorer, tables, tmp_path, done=lambda _: None, factory=None):
    """Score everything into a fresh folder; return the work and the units that were done."""
    work, units = scoring(scorer, tables, tmp_path / "parts", factory), []
    for unit in engine.results(work, work.units):
        units.append(unit)
        done(unit)
    return work, units


def losses(work):
    """The losses of all parts in the order of the units."""
    return np.concatenate([work.part(unit)["loss"].to_numpy() for unit in work.units])


def calls(log):
    """Who scored what: (process, table, first row) of each batch."""
    lines = (line.split() for line in log.read_text(encoding="utf-8").splitlines())
    return [(int(process), name, int(row)) for process, name, row in lines]


def scikit_learn(tables):
    """A small network, whose sums would change with the order of addition."""
    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has not converged
        return MLPClassifier((40, 40), max_iter=5, random_state=0).fit(tables[0].features, tables[0].labels)


def pytorch(tables):
    """The like in PyTorch."""
    import torch

    torch.manual_seed(0)
    width = tables[0].features.shape[1]
    return torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("build", [scikit_learn, pytest.param(pytorch, marks=pytest.mark.long)])
def test_from_parquet_to_parquet(build, tables, tmp_path, require_extra):
    """Tables on disk, a model, a file of losses: `collect_to` writes the same bytes with either engine."""
    if build is pytorch:
        require_extra("torch")
    given = {}
    for argument, table in zip(("members", "nonmembers"), tables, strict=True):
        frame = pd.DataFrame(table.features.astype(np.float32)).rename(columns="x{}".format)
        frame.assign(y=table.labels).to_parquet(tmp_path / f"{argument}.parquet", row_group_size=150)
        given[argument] = auditor.RecordTable(tmp_path / f"{argument}.parquet", label="y")
    model = build(tables)
    made = []
    for name, engine in (
        ("near", auditor.collectors.LocalEngine()),
        ("far", auditor.collectors.RayEngine(workers=2)),
    ):
        path = tmp_path / f"{name}.parquet"
        report = auditor.collect_to(path, model, **given, batch_size=100, engine=engine)
        assert (report.n_member, report.n_nonmember, report.scored_now) == (630, 310, 940)
        assert not path.with_name(f"{name}.parquet.parts").exists()
        assert pd.read_parquet(path)["loss"].nunique() > 900
        made.append(path.read_bytes())
    assert made[0] == made[1]


@pytest.mark.usefixtures("cluster")
def test_each_worker_has_several_requests_under_way(tables, tmp_path, require_extra):
    """A worker sends requests about units that follow, and the file is that of the local engine."""
    require_extra("http")
    under_way, most, lock = [], [0], threading.Lock()

    def answer(method, _path, body):
        if method == "GET":
            return {}
        with lock:
            under_way.append(0)
            most[0] = max(most[0], len(under_way))
        time.sleep(0.3)
        with lock:
            under_way.pop()
        return {"predictions": [[0.5 + row[0] / 20, 0.5 - row[0] / 20] for row in body["instances"]]}

    given = {
        argument: auditor.RecordTable({"x": table.features[:, 0], "y": table.labels}, label="y")
        for argument, table in zip(("members", "nonmembers"), tables, strict=True)
    }
    with closing(Server(answer)) as server:
        address = f"{server.url}/v1/models/m:predict"
        endpoint = auditor.Endpoint(address, max_request_records=100, concurrency=2)
        for engine in (RayEngine(workers=1), auditor.collectors.LocalEngine()):
            auditor.collect_to(
                tmp_path / f"{type(engine).__name__}.parquet", endpoint, **given, engine=engine
            )
    first, second = (path.read_bytes() for path in tmp_path.glob("*.parquet"))
    assert first == second
    assert most[0] == 2  # of one worker: the units of two meet when the cluster lets them


@pytest.mark.usefixtures("cluster")
def test_each_worker_scores_and_nobody_scores_twice(tables, tmp_path):
    """Two workers share the units: each batch is scored once, in the batches of the collection."""
    scorer = FirstColumn(tmp_path / "log", company=2)
    work, _ = run(RayEngine(workers=2), scorer, tables, tmp_path)
    made = calls(scorer.log)
    assert sorted(made_of for _, *made_of in made) == [["member", row] for row in range(0, 630, BATCH)] + [
        ["nonmember", row] for row in range(0, 310, BATCH)
    ]
    assert len({process for process, *_ in made} - {os.getpid()}) == 2
    np.testing.assert_array_equal(losses(work), np.concatenate([table.features[:, 0] for table in tables]))


def killing(scorer):
    """Whom it kills, and what kills the worker at work, once."""
    killed = []

    def kill(_):
        if not killed:
            killed.append(calls(scorer.log)[-1][0])
            os.kill(killed[0], signal.SIGKILL)

    return killed, kill


@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_loses_nothing(tables, tmp_path):
    """A worker is killed at its work: all units are there in the end, each once, and at most its own is scored again."""
    scorer = FirstColumn(tmp_path / "log", seconds=0.15, company=2)
    killed, kill = killing(scorer)
    work, units = run(RayEngine(workers=2), scorer, tables, tmp_path, done=kill)
    assert sorted(unit.index for unit in units) == list(range(11))
    with pytest.raises(ProcessLookupError):
        os.kill(killed[0], 0)
    assert sorted(path.name for path in work.folder.iterdir()) == [f"part-{n:08d}" for n in range(11)]
    np.testing.assert_array_equal(losses(work), np.concatenate([table.features[:, 0] for table in tables]))
    begun = Counter((name, row // UNIT) for _, name, row in calls(scorer.log) if row % UNIT == 0)
    assert 11 <= sum(begun.values()) <= 12


# Ray counts a try that it sends to a worker while that one dies, though it never begins.
@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("cluster")
def test_records_that_kill_their_worker(tables, tmp_path):
    """After three workers died over the same rows the sentence names them; what the others finished is kept."""
    scorer = FirstColumn(tmp_path / "log", trouble="death", at=200)
    with pytest.raises(InputError, match=r"member rows 200 to 299, .*3 Ray workers died .*batch size\.$"):
        run(RayEngine(workers=2), scorer, tables, tmp_path)
    assert sum(made[1:] == ("member", 200) for made in calls(scorer.log)) == 3
    work = scoring(scorer, tables, tmp_path / "parts")
    kept = [work.part(unit) is not None for unit in work.units]
    assert any(kept)
    assert not kept[2]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("trouble", [None, "bad input"])
def test_no_worker_stays(trouble, tables, tmp_path):
    """Its processors are free for the next collection, also after an error, which is the scorer's own with a trace as a note."""
    import ray

    gc.collect()
    gc.disable()
    try:
        kept = None  # with its traceback
        try:
            run(
                RayEngine(workers=2), FirstColumn(tmp_path / "log", trouble=trouble, at=350), tables, tmp_path
            )
        except InputError as error:
            kept = error
        assert (kept is None) == (trouble is None)
        if kept is not None:
            assert str(kept) == "member label 7 is unknown (first at row 350, counting from 0)."
            assert "ray_faults.py" in kept.__notes__[0]
        deadline = time.monotonic() + 60
        while ray.available_resources().get("CPU", 0) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert ray.available_resources()["CPU"] == 2
    finally:
        gc.enable()


def test_a_bug_keeps_its_type():
    """An unforeseen error is raised unchanged, with the worker's traceback as a note; if it can, or else in words."""
    for error, kind in ((ZeroDivisionError("a bug"), ZeroDivisionError), (OddError(1, 2), RuntimeError)):
        outcome = attempted(raising, error)
        with pytest.raises(kind, match=r"a bug|OddError: 1 and 2") as raised:
            result_of(pickle.loads(pickle.dumps(outcome)))  # noqa: S301 - as it comes back
        assert "in raising" in raised.value.__notes__[0]


def raising(error):
    """Raise an error."""
    raise error


class OddError(Exception):
    """It can be pickled, and not be built again."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("threads", [1, 2])
def test_workers_compute_with_as_many_threads(threads, tables, tmp_path):
    """A worker's linear algebra has the threads of the process that started it, not the one that Ray gives it."""
    from threadpoolctl import threadpool_limits

    scorer = ThreadCount(tmp_path / "log")
    with threadpool_limits(threads):
        work, _ = run(RayEngine(workers=1), scorer, tables, tmp_path)
    assert set(losses(work)) == {threads}


@pytest.mark.usefixtures("cluster")
def test_another_model_in_the_worker(tables, tmp_path):
    """A factory that builds another model each time is refused: its losses would be mixed."""
    factory = EachItsOwn(tmp_path / "log")
    with pytest.raises(InputError, match="model must be the same in every worker"):
        run(RayEngine(1), factory(), tables, tmp_path, factory=factory)


@pytest.mark.usefixtures("cluster")
def test_a_model_that_cannot_be_sent(tables, tmp_path):
    """A model that holds a lock cannot go to another process, and the sentence says what to do."""
    locked = lambda features, lock=threading.Lock(): features[:, 0]  # noqa: E731, ARG005, B008
    scorer = ModelScorer(predictor(locked, task=Classification()))
    with pytest.raises(InputError, match=r"cannot be pickled \(.*\); name the model's file"):
        run(RayEngine(1), scorer, tables, tmp_path)


@pytest.mark.usefixtures("cluster")
def test_a_session_that_is_there_is_left_alone(tables, tmp_path):
    """Where Ray runs already it goes on running; more workers than processors would wait for ever and are refused."""
    import ray

    scorer = FirstColumn(tmp_path / "log")
    run(RayEngine(workers=1), scorer, tables, tmp_path)
    assert ray.is_initialized()
    for engine, words in (
        (RayEngine(workers=3), "workers must be at most the cluster's 2 processors, got 3"),
        (RayEngine(workers=1, address="auto"), "address must be left out"),
    ):
        with pytest.raises(InputError, match=words):
            run(engine, scorer, tables, tmp_path)


def test_its_own_session_comes_and_goes_in_silence(tmp_path, require_extra):
    """Started by the engine, Ray sends no telemetry, writes nothing to the terminal, and is gone at the end."""
    require_extra("ray")
    program = (
        "import os, sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "import numpy as np\n"
        "from ray_faults import FirstColumn, Table\n"
        "from auditor.collectors import RayEngine\nfrom collectors.streaming.fakes import scoring\n"
        f"here = Path({str(tmp_path)!r})\n"
        "scorer = FirstColumn(here / 'log')\n"
        "table = Table('member', np.arange(20.0)[:, None], np.zeros(20), member=True)\n"
        "work = scoring(here, scorer, [table], batch_size=5, unit_size=10, factory=scorer.itself)\n"
        "said = []\n"
        "for unit in RayEngine(2).results(work, work.units):\n"
        "    said.append((unit.index, os.environ['RAY_USAGE_STATS_ENABLED']))\n"
        "import ray\n"
        "assert sorted(said) == [(0, '0'), (1, '0')], said\n"
        "assert not ray.is_initialized()\n"
        "assert 'RAY_USAGE_STATS_ENABLED' not in os.environ\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_ray(tables, tmp_path, monkeypatch):
    """Where Ray is missing the sentence holds the command that installs it."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'privacy-auditor\[ray\]'"):
        run(RayEngine(), FirstColumn(tmp_path / "log"), tables, tmp_path)


@pytest.mark.usefixtures("cluster")
def test_a_large_model_outlives_its_worker(tables, tmp_path):
    """A model of 40 MB, which Ray would lose with its first worker, is there for the next; no copy stays in the end."""
    scorer = Heavy(tmp_path / "log", seconds=0.15, ballast=np.ones(5_000_000))
    _, kill = killing(scorer)
    work, units = run(RayEngine(workers=1), scorer, tables, tmp_path, done=kill)
    assert sorted(unit.index for unit in units) == list(range(11))
    assert len({process for process, *_ in calls(scorer.log)}) == 2
    assert all(path.name.startswith("part-") for path in work.folder.iterdir())
