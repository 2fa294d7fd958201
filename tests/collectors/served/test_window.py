"""Requests in a sliding window: order, limit, interruption and resumption, for records and for texts."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from collectors.common import refused
from collectors.streaming.fakes import digest, parts_of

from auditor import RecordTable, collect_to
from auditor.collectors import Classification
from auditor.collectors.base import ModelScorer, Records, in_batches
from auditor.collectors.served import Endpoint, Template
from auditor.collectors.streaming import predictor
from auditor.collectors.texts import CompletionsEndpoint, text_scorer

N = 600  # records, half of them members
ROWS = Template('{"inputs": {{rows}}}', "predictions")
QUICK = {"pause": 0.01, "timeout": 5.0}
pytestmark = pytest.mark.filterwarnings("ignore:the labels look as if")


def texts_in(body):
    """The prompts of a request, one or a list of them."""
    return [body["prompt"]] if isinstance(body["prompt"], str) else body["prompt"]


def numbers(body):
    """The numbers of the records in a request; -1 of texts that are cut."""
    if "inputs" in body:
        return [row[0] for row in body["inputs"]]
    return [int(text.removeprefix("text ")) if body.get("echo") else -1 for text in texts_in(body)]


def good(body):
    """The right answer; nothing is generated."""
    losses = [(number + 1) / (N + 2) for number in numbers(body)]
    if "inputs" in body:
        return {"predictions": losses}
    logs = [{"tokens": ["a", "b"], "token_logprobs": [None, -loss]} for loss in losses]
    echoes = zip(texts_in(body), logs if body.get("echo") else [None] * len(logs), strict=True)
    choices = [{"index": place, "text": text, "logprobs": own} for place, (text, own) in enumerate(echoes)]
    return {"choices": choices, "usage": {"prompt_tokens": 2 * len(choices)}}


class Unsteady:
    """Answers after a seeded exponential time, and sometimes first with a fault that passes."""

    def __init__(self, mean=0.01):
        self.rng, self.lock, self.mean = np.random.default_rng(3), threading.Lock(), mean

    def __call__(self, _method, _path, body):
        """Return the right answer, or a fault."""
        with self.lock:
            wait, fault = self.rng.exponential(self.mean), self.rng.random()
        time.sleep(wait)
        if fault < 0.05:
            return 429, {"Retry-After": "0"}, {}
        return (503, {}, {}) if fault < 0.1 else good(body)


def served(kind, url, **kwargs):
    """A model at an endpoint, and its members and non-members."""
    options = {**QUICK, "max_request_records": 5, **kwargs}
    halves = np.arange(N // 2), np.arange(N // 2, N)
    if kind == "texts":
        model = text_scorer(CompletionsEndpoint(f"{url}/v1", model="m", **options))
        tables = [RecordTable({"x": [f"text {i}" for i in half]}, features="x") for half in halves]
    else:
        model = Endpoint(url, protocol=ROWS, **options)
        tables = [RecordTable({"x": half * 1.0, "y": half % 2}, label="y") for half in halves]
    return {"model": model, "members": tables[0], "nonmembers": tables[1]}


KINDS = pytest.mark.parametrize("kind", ["records", "texts"])


def test_a_slow_answer_holds_up_no_more_than_the_window(serve):
    """While one answer is awaited eight times the concurrency are sent or wait for it, and then all come in order."""
    held = threading.Event()

    def answer(_method, _path, body):
        if numbers(body) == [0]:
            held.wait(20)
        return good(body)

    server = serve(answer)
    model = predictor(Endpoint(server.url, protocol=ROWS, concurrency=2, **QUICK), task=Classification())
    records, found = Records("member", np.arange(N)[:, None], np.ones(N, dtype=int)), []
    scoring = threading.Thread(target=lambda: found.extend(in_batches(ModelScorer(model), [records], size=1)))
    scoring.start()
    time.sleep(1)
    assert sorted(map(numbers, server.posts)) == [[number] for number in range(16)]
    held.set()
    scoring.join(30)
    p = (np.arange(N) + 1) / (N + 2)
    np.testing.assert_allclose(found[0].loss, np.log(1 - p) - np.log(p))
    assert len(server.posts) == N


@KINDS
def test_the_file_does_not_depend_on_the_concurrency(serve, tmp_path, kind):
    """With one request at a time and with sixteen, among faults that pass, the file is the same to the byte."""
    server = serve(Unsteady())
    for concurrency in (1, 16):
        options = served(kind, server.url, concurrency=concurrency)
        collect_to(tmp_path / f"{concurrency}.parquet", options.pop("model"), **options)
    assert digest(tmp_path / "1.parquet") == digest(tmp_path / "16.parquet")


@KINDS
def test_what_is_finished_before_a_failure_is_kept(serve, tmp_path, kind):
    """Batches before one that fails are on disk without gaps, and the same call sends no request about them again."""
    fails = [True]

    def answer(method, path, body):
        if fails[0] and numbers(body)[0] == 245:
            return 400, {}, {}
        return unsteady(method, path, body)

    unsteady, path = Unsteady(), tmp_path / "losses.parquet"
    server = serve(answer)
    options = served(kind, server.url, concurrency=8)
    model = options.pop("model")
    with refused(r"answered 400.* for .* rows? 245\b"):
        collect_to(path, model, **options)
    assert [part.name for part in parts_of(path)] == ["part-00000000", "part-00000001"]
    fails[0], before = False, len(server.posts)
    report = collect_to(path, model, **options)
    assert (report.resumed, report.scored_now) == (200, 400)
    again = [numbers(body)[0] for body in server.posts[before:]]
    assert min(number for number in again if number >= 10) == 200
    whole = tmp_path / "whole.parquet"
    collect_to(whole, model, **options)
    assert digest(path) == digest(whole)


@KINDS
def test_an_interrupt_gives_up_the_window(serve, tmp_path, kind):
    """After Ctrl-C nothing more is sent, and its message says what is kept."""

    def progress(_stage, done, _total):
        if done == 200:
            raise KeyboardInterrupt

    server = serve(Unsteady(0.05))
    options = served(kind, server.url, concurrency=2)
    with pytest.raises(KeyboardInterrupt, match=f"200 of {N} records are scored and kept"):
        collect_to(tmp_path / "losses.parquet", options.pop("model"), **options, progress=progress)
    time.sleep(0.3)
    sent = len(server.posts)
    time.sleep(0.3)
    assert len(server.posts) == sent
    assert sent <= N / 5


KILLED = """
import sys
from collectors.served.test_window import collect_to, served

kind, url, path = sys.argv[1:]
options = served(kind, url, concurrency=16)
print("begun", flush=True)
collect_to(path, options.pop("model"), **options)
"""


@KINDS
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_a_collection_that_is_killed_goes_on(serve, tmp_path, kind):
    """Killed while its window is full, the next call, with another concurrency, gives the undisturbed file."""
    unsteady, path, child = Unsteady(0.04), tmp_path / "losses.parquet", []

    def answer(method, where, body):
        if len(parts_of(path)) >= 2 and child:
            os.kill(child.pop(), signal.SIGKILL)
        return unsteady(method, where, body)

    server = serve(answer)
    command = [sys.executable, "-W", "ignore", "-c", KILLED, kind, server.url, str(path)]
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, cwd=Path(__file__).parent
    )
    child.append(process.pid)
    assert process.wait(60) == -signal.SIGKILL
    options = served(kind, server.url, concurrency=3)
    model = options.pop("model")
    assert collect_to(path, model, **options).resumed >= 200
    whole = tmp_path / "whole.parquet"
    collect_to(whole, model, **options)
    assert digest(path) == digest(whole)
