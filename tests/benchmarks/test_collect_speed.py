"""Speed and memory of collecting losses, as ratios within one run: ``python -m pytest tests/benchmarks --long -s``.

Times are processor time, all threads counted, the best of several tries on each side: a busy machine changes little.
Without ``--long`` the same is done on fewer records, and held to bounds that fixed costs and a busy machine leave room in.
"""

import asyncio
import sys
import threading
import time
import tracemalloc
import warnings
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from collectors.server import Server
from command_line import printed
from stopwatch import best_time

import auditor
from auditor.collectors import collect_texts
from auditor.collectors.base import Classification, ModelScorer, Records, in_batches
from auditor.collectors.streaming import predictor
from auditor.collectors.texts import CompletionsEndpoint

FEATURES, WIDTH = 20, 512  # of the records, and of the hidden layers of the networks
WIDE = 2048  # where records are few, so that what a collection costs once, some 3 ms, is not all that is measured


def groups(rng, n, dtype=np.float64):
    """Members and non-members, n records in all, of two classes."""
    features = rng.normal(size=(n, FEATURES)).astype(dtype)
    labels = (features[:, 0] + features[:, 1] ** 2 > 0.5).astype(int)
    half = n // 2
    return (features[:half], labels[:half]), (features[half:], labels[half:])


def network(rng, width=WIDTH):
    """A multi-layer perceptron of two hidden layers, hardly trained: its speed does not depend on its weights."""
    from sklearn.neural_network import MLPClassifier

    (features, labels), _ = groups(rng, 4000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has not converged
        return MLPClassifier((width, width), max_iter=2, random_state=0).fit(features, labels)


def in_scikit_learn(rng, n, width=WIDTH):
    """Its predict_proba, a group at a time as `collect` requests it."""
    model, both = network(rng, width), groups(rng, n)
    return model, both, lambda: [model.predict_proba(x) for x, _ in both]


def in_onnx(rng, n, width=WIDTH):
    """The same network run by onnxruntime."""
    import onnxruntime
    from skl2onnx import to_onnx

    both = groups(rng, n, np.float32)
    model = network(rng, width)
    exported = to_onnx(model, both[0][0][:1], options={"zipmap": False})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    return session, both, lambda: [session.run(None, {name: x}) for x, _ in both]


def in_pytorch(rng, n, width=WIDTH):
    """A network of the same shape, in the batches in which `collect` requests it."""
    import torch

    both = groups(rng, n, np.float32)
    layers = [
        torch.nn.Linear(FEATURES, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
    ]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 2)).eval()
    sample = [Records("member", both[0][0][:9], both[0][1][:9])]
    size = predictor(model, task=Classification(), sample=sample).records_at_once

    def ask():
        with torch.inference_mode():
            for x, _ in both:
                for start in range(0, len(x), size):
                    model(torch.from_numpy(x[start : start + size])).numpy()

    return model, both, ask


def in_lightgbm(rng, n, width=WIDTH):
    """Boosted trees, as many as a hidden layer has units."""
    lightgbm = pytest.importorskip("lightgbm")
    both = groups(rng, n)
    model = lightgbm.LGBMClassifier(n_estimators=width, n_jobs=1, verbose=-1).fit(*groups(rng, 8000)[0])
    return model, both, lambda: [model.predict_proba(x) for x, _ in both]


KINDS = {"scikit_learn": in_scikit_learn, "lightgbm": in_lightgbm, "onnx": in_onnx, "torch": in_pytorch}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n", "most"),
    [
        (10_000, 1.6),
        pytest.param(1000, 1.6, marks=pytest.mark.long),
        pytest.param(10_000, 1.3, marks=pytest.mark.long),
        pytest.param(200_000, 1.3, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_overhead(kind, n, most, rng, told, require_extra):
    """`collect` takes at most 1.3 times as long as the model's own prediction of the same batches, 1.6 below 1e4 records."""
    if kind in ("onnx", "torch"):
        require_extra(kind)
    model, (members, nonmembers), ask = KINDS[kind](rng, n, WIDE if n < 10_000 else WIDTH)
    collect = lambda: auditor.collect(model, members=members, nonmembers=nonmembers)  # noqa: E731
    ask()
    collect()  # both sides are warm
    ratio = best_time(collect, 5) / best_time(ask, 5)
    told(f"{kind}, {n:,} records: collect takes {ratio:.3f} times the model's own prediction")
    assert ratio <= most


# --- Memory ----------------------------------------------------------------------------------------

WRITE = """
import sys
import numpy as np, pyarrow as pa
from pyarrow import parquet

path, n, width, seed = sys.argv[1], *map(int, sys.argv[2:])
rng = np.random.default_rng(seed)
names = [f"x{place}" for place in range(width)]
schema = pa.schema([*((name, pa.float64()) for name in names), ("y", pa.int64())])
with parquet.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
    for start in range(0, n, 50_000):
        x = rng.normal(size=(min(50_000, n - start), width))
        columns = dict(zip(names, x.T)) | {"y": (x[:, 0] > 0).astype(np.int64)}
        writer.write_table(pa.table(columns, schema=schema))
"""

# The peak is that of the program itself; getrusage would count the process that started it.
COLLECT = r"""
import re, sys
import numpy as np, pandas as pd
from pathlib import Path
from sklearn.linear_model import LogisticRegression
import auditor

folder, width = sys.argv[1], int(sys.argv[2])
x = pd.DataFrame(np.random.default_rng(0).normal(size=(500, width))).rename(columns=lambda place: f"x{place}")
model = LogisticRegression().fit(x, (x["x0"] > 0).astype(int))
report = auditor.collect_to(
    f"{folder}/losses.parquet",
    model,
    members=auditor.RecordTable(f"{folder}/members.parquet", label="y"),
    nonmembers=auditor.RecordTable(f"{folder}/nonmembers.parquet", label="y"),
)
peak = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]
print(report.scored_now, peak)
"""


def peak_memory(folder, n, width):
    """The most memory, in bytes, of a process that collects n records from Parquet to Parquet; the file is checked."""
    import pandas as pd

    for seed, name in enumerate(("members", "nonmembers")):
        printed(WRITE, folder / f"{name}.parquet", n // 2, width, seed)
    scored, kilobytes = map(int, printed(COLLECT, folder, width).split())
    assert scored == n
    found = pd.read_parquet(folder / "losses.parquet", columns=["loss", "member"])
    assert len(found) == n
    assert found["member"].sum() == n // 2
    assert np.isfinite(found["loss"]).all()
    for path in Path(folder).glob("*.parquet"):
        path.unlink()
    return 1024 * kilobytes


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize(("n", "width", "more"), [(200_000, 64, 40e6), (600_000, 1, 6e6)])
def test_memory_does_not_grow_with_the_table(tmp_path, told, n, width, more):
    """Twice the records (64 columns: 102 MB more) cost at most 40 MB more memory, and at most 10 bytes a record of one column."""
    small, large = (peak_memory(tmp_path, size, width=width) for size in (n, 2 * n))
    told(f"collecting {n:,} records: {small / 1e6:.0f} MB; {2 * n:,}: {large / 1e6:.0f} MB")
    assert large - small <= more


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_thirty_million_records_in_half_a_gigabyte(tmp_path, told):
    """3e7 records from Parquet to Parquet take less than 500 MB of memory."""
    peak = peak_memory(tmp_path, 30_000_000, width=1)
    told(f"collecting 3e7 records: {peak / 1e6:.0f} MB")
    assert peak < 500e6


def test_adding_summaries_holds_a_few(tmp_path, rng, told):
    """Four times the summaries take at most 1.2 times the memory of Python at its peak."""
    losses = auditor.Losses(rng.normal(size=2000), rng.normal(size=2000))
    auditor.Summary.of(losses).write(tmp_path / "part.parquet")
    peaks = []
    for n in (400, 1600):
        tracemalloc.start()
        auditor.Summary.from_files([tmp_path / "part.parquet"] * n)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    told(f"adding 1,600 summaries / 400: {peaks[1] / peaks[0]:.2f} of the memory")
    assert peaks[1] <= 1.2 * peaks[0]


# --- Columns ---------------------------------------------------------------------------------------


def logits(table):
    """The first feature as the logit of the second class."""
    return table["x0"].to_numpy()


@pytest.mark.parametrize(
    ("kind", "n", "columns"),
    [
        ("parquet", 1_000, 1_000),
        pytest.param("csv", 10_000, 2_000, marks=pytest.mark.long),
        pytest.param("parquet", 10_000, 2_000, marks=pytest.mark.long),
    ],
)
def test_time_is_linear_in_the_columns(tmp_path, rng, told, kind, n, columns):
    """Four times the columns take at most six times as long; fixed costs are the same on both sides."""
    import pandas as pd

    def tables(width):
        for name in ("members", "nonmembers"):
            x = rng.normal(size=(n // 2, width)).round(3)
            frame = pd.DataFrame(x, columns=[f"x{place}" for place in range(width)])
            frame["y"] = (frame["x0"] > 0).astype(int)
            path = tmp_path / f"{name}-{width}.{kind}"
            frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
            yield name, auditor.RecordTable(path, label="y")

    def collect(width, given):
        out = tmp_path / f"losses-{width}.parquet"
        report = auditor.collect_to(
            out, logits, **given, output=auditor.collectors.Output.LOGITS, overwrite=True
        )
        out.unlink()
        assert report.scored_now == n

    given = {width: dict(tables(width)) for width in (columns // 4, columns)}
    ratio = best_time(lambda: collect(columns, given[columns]), 2) / best_time(
        lambda: collect(columns // 4, given[columns // 4]), 2
    )
    told(f"{kind}, {n:,} records: {columns:,} columns take {ratio:.1f} times as long as {columns // 4:,}")
    assert ratio <= 6


# --- Concurrency -----------------------------------------------------------------------------------


def sleeping(method, _, body):
    """A served model that thinks for 100 ms about each request, however many records it has."""
    if method == "GET":
        return {"name": "sleeping", "ready": True}
    time.sleep(0.1)
    return {"predictions": [[0.25, 0.75]] * len(body["instances"])}


def test_concurrent_requests(rng, told, require_extra):
    """Sixteen requests at once to a server that sleeps are at least five times as fast as one at a time."""
    require_extra("http")
    records = Records("member", *groups(rng, 1280)[0])
    took = {}
    with closing(Server(sleeping)) as server:
        address = f"{server.url}/v1/models/sleeping:predict"
        for concurrency in (1, 16):
            endpoint = auditor.Endpoint(address, concurrency=concurrency, max_request_records=10)
            scorer = ModelScorer(predictor(endpoint, task=Classification()))
            start = time.perf_counter()
            (losses,) = in_batches(scorer, [records], size=len(records))
            took[concurrency] = time.perf_counter() - start
            np.testing.assert_allclose(np.abs(losses.loss), np.log(3))
    told(f"one request at a time / sixteen at once: {took[1] / took[16]:.1f}")
    assert took[1] >= 5 * took[16]


EACH, AT_ONCE = 10, 16  # records in a request, and requests


def exponential(mean):
    """A served model, or a completions endpoint, that thinks for a seeded exponential time about each request."""
    waits, lock = np.random.default_rng(1), threading.Lock()

    def answer(method, _, body):
        if method == "GET":
            return {"name": "exponential", "ready": True}
        with lock:
            wait = waits.exponential(mean)
        time.sleep(wait)
        if "prompt" not in body:
            return {
                "predictions": [[0.25 + row[0] % 5 / 8, 0.75 - row[0] % 5 / 8] for row in body["instances"]]
            }
        logs = {"tokens": ["a", "b"], "token_logprobs": [None, -1.0]} if body.get("echo") else None
        choices = [{"index": i, "text": text, "logprobs": logs} for i, text in enumerate(body["prompt"])]
        return {"choices": choices, "usage": {"prompt_tokens": 2 * len(choices)}}

    return answer


def by_semaphore(url, requests):
    """Send so many requests, at most sixteen at once."""
    import httpx

    async def send(client, free):
        async with free:
            (
                await client.post(f"{url}/v1/models/exponential:predict", json={"instances": [[0.0]] * EACH})
            ).raise_for_status()

    async def send_all():
        free, limits = asyncio.Semaphore(AT_ONCE), httpx.Limits(max_keepalive_connections=AT_ONCE)
        async with httpx.AsyncClient(timeout=60, limits=limits) as client:
            await asyncio.gather(*(send(client, free) for _ in range(requests)))

    asyncio.run(send_all())


def by_window(how, url, requests, folder):
    """Collect the losses of the records of so many requests."""
    n = requests * EACH
    options = {"concurrency": AT_ONCE, "max_request_records": EACH}
    endpoint = auditor.Endpoint(f"{url}/v1/models/exponential:predict", **options)
    texts = CompletionsEndpoint(f"{url}/v1", model="exponential", **options)
    halves = np.arange(n // 2) * 1.0, np.arange(n // 2, n) * 1.0
    if how == "scoring":
        groups = [Records("member", half[:, None], half.astype(int) % 2) for half in halves]
        list(in_batches(ModelScorer(predictor(endpoint, task=Classification())), groups, size=None))
    elif how == "collect":
        auditor.collect(endpoint, *[(half[:, None], half.astype(int) % 2) for half in halves])
    elif how == "collect_to":
        members, nonmembers = [{"x": half, "y": half.astype(int) % 2} for half in halves]
        path = folder / "losses.parquet"
        auditor.collect_to(path, endpoint, members=members, nonmembers=nonmembers, label="y", overwrite=True)
    else:
        members, nonmembers = [[f"text {number}" for number in half] for half in halves]
        collect_texts(texts, members=members, nonmembers=nonmembers)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("how", "requests", "mean"),
    [
        ("scoring", 320, 0.06),
        ("texts", 320, 0.06),
        *(pytest.param(how, 640, 0.3, marks=pytest.mark.long) for how in ("collect", "collect_to", "texts")),
    ],
)
def test_a_slow_answer_holds_up_few_others(tmp_path, told, require_extra, how, requests, mean):
    """With exponential latencies a collection, its trial included, takes at most 1.3 times as long as a plain semaphore."""
    require_extra("http")
    took = []
    with closing(Server(exponential(0.0))) as server:
        by_window(how, server.url, 8, tmp_path)  # all is imported
    for run in (by_semaphore, partial(by_window, how, folder=tmp_path)):
        with closing(Server(exponential(mean))) as server:
            start = time.perf_counter()
            run(server.url, requests)
            took.append(time.perf_counter() - start)
    told(f"{how}, {requests} requests of {mean:g} s on average: {took[1] / took[0]:.2f} times a semaphore")
    assert took[1] <= 1.3 * took[0]
