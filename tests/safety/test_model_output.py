"""Output that a model makes its library write reaches standard error alone, made harmless, whatever the way."""

import contextlib
import ctypes
import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from safety import formats, loud
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from auditor import collect
from auditor.collectors.models import load_model, quietly

pytestmark = [
    pytest.mark.filterwarnings("ignore:the labels look as if"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]
HERE = Path(__file__).parents[1]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
PAIRS = {"members": (X[:60], Y[:60]), "nonmembers": (X[60:], Y[60:])}
ALL = ",".join(set(loud.WAYS) - {"large"})


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A folder with tables, and models that speak or crash while they are scored."""
    folder = tmp_path_factory.mktemp("loud")
    (folder / "tmp").mkdir()
    for name in ("speak", "crash"):
        steps = FunctionTransformer(getattr(loud, name)), LogisticRegression().fit(X, Y)
        joblib.dump(make_pipeline(*steps), folder / f"{name}.joblib")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
    frame[:60].to_csv(folder / "in.csv", index=False)
    frame[60:].to_csv(folder / "out.csv", index=False)
    return folder


def program(folder, *line, streams="", **environment):
    """Run a program of Python in a process of its own, with its streams as a line of the shell says."""
    paths = os.pathsep.join([str(HERE), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(folder / "tmp"), **environment}
    environment.pop("PYTHONUNBUFFERED", None)  # with which nothing is held back
    line = ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-W", "ignore", *map(str, line)]
    return subprocess.run(line, check=False, capture_output=True, cwd=folder, env=environment, timeout=120)


def harmless(text):
    """The lines that reached standard error, of which none commands a terminal or a build server."""
    assert formats.UNSAFE.search(text) is None
    assert formats.commands(text) == []
    assert all(line.startswith("model: ") for line in text.splitlines())
    return text


@pytest.mark.parametrize("way", loud.WAYS)
def test_words_of_a_model_reach_standard_error_alone(house, way, capfd, monkeypatch):
    """Whatever the way and however much, standard output gets nothing, and standard error lines without codes and commands."""
    monkeypatch.setenv("LOUD", way)
    model = load_model(house / "speak.joblib", trust_pickle=True)
    capfd.readouterr()
    collect(model, **PAIRS)
    ctypes.CDLL(None).fflush(None)  # as at the end of a process
    sys.stdout.write("a line of our own\n")
    found = capfd.readouterr()
    assert found.out == "a line of our own\n"
    harmless(found.err)
    assert "⟨U+0023⟩#vso[task.complete]x" in found.err or way == "large"
    assert ("x" * 400 if way == "large" else way) in found.err
    assert len(found.err) < 100_000


# Audits the labels of a model in a file, and prints the result.
LABELS = """
import auditor
model = auditor.load_model("speak.joblib", trust_pickle=True)
tables = (auditor.RecordTable(name, label="y") for name in ("in.csv", "out.csv"))
print(auditor.audit_labels(model, next(tables), reference=next(tables)).to_json())
"""


def test_a_program_keeps_a_result_apart_from_words_of_a_model(house):
    """The JSON on standard output is whole, all words are on standard error, and no file is left behind."""
    done = program(house, "-c", LABELS, LOUD=ALL)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema_version"]
    harmless(done.stderr.decode())
    assert b"model: " in done.stderr
    assert list((house / "tmp").glob("auditor-model-*")) == []


def test_the_progress_bar_stays_on_the_terminal(house):
    """In a terminal the bar moves while a model runs, and its words are lines without codes beside it."""
    here, there = pty.openpty()
    line = ["-m", "auditor", "collect", "speak.joblib", "--members", "in.csv", "--nonmembers", "out.csv"]
    line += ["--label", "y", "--out", "bar.parquet", "--trust-pickle", "--batch-size", "20"]
    paths = os.pathsep.join([str(HERE), *sys.path])
    variables = {**os.environ, "PYTHONPATH": paths, "LOUD": "descriptor 2,print", "TERM": "xterm-256color"}
    given = {"cwd": house, "env": variables, "stdin": there, "stdout": there, "stderr": there}
    with subprocess.Popen([sys.executable, *line], **given) as process:
        os.close(there)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(here, 65536):
                shown += part
    os.close(here)
    text = shown.decode()
    assert process.returncode == 0, text
    assert "Scoring" in text
    assert "\x1b[?25l" in text  # which hides the cursor for the bar
    assert "model: " in text
    assert "⟨U+001B⟩[2J" in text
    assert "\x1b[2J" not in text
    assert "\x1b]0;title" not in text
    assert "⟨U+001B⟩[?25" not in text  # nothing of the bar went the way of the model's words


SCORES = """
import os, sys
import numpy as np
from auditor import collect
from auditor.collectors.models import load_model
table = np.loadtxt("in.csv", delimiter=",", skiprows=1)
pair = table[:, :2], table[:, 2].astype(int)
losses = collect(load_model(sys.argv[1], trust_pickle=True), members=pair, nonmembers=pair)
with open("next.txt", "w") as file:
    file.write(f"{losses.member.size} {file.fileno() > 2}")
if sys.stdout is not None:
    print("own")
"""


@pytest.mark.parametrize(
    "streams", ["1>&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-", "1>/dev/full 2>/dev/full"]
)
def test_closed_and_full_descriptors(house, streams):
    """A process without standard streams scores all the same, and no file that it opens takes the number of one."""
    (house / "next.txt").unlink(missing_ok=True)
    done = program(house, "-c", SCORES, "speak.joblib", streams=streams, LOUD=ALL)
    assert (house / "next.txt").read_text() == "60 True", done.stderr
    assert done.stdout == (b"own\n" if streams == "2>&-" else b"")
    harmless(done.stderr.decode().partition("Exception ignored")[0])


def test_the_last_words_of_a_model_that_crashes_are_kept(house):
    """A process that a library ends leaves what was said in a file among the temporary ones."""
    done = program(house, "-c", SCORES, "crash.joblib")
    assert done.returncode == -signal.SIGABRT
    assert done.stdout == b""
    [left] = (house / "tmp").glob("auditor-model-*")
    assert left.read_text().startswith("the last words\n")
    left.unlink()


def state():
    """The streams, what descriptors 1 and 2 are, and which are open."""
    here = [(item.st_dev, item.st_ino) for item in (os.fstat(1), os.fstat(2))]
    return sys.stdout, sys.stderr, here, sorted(path.name for path in Path("/proc/self/fd").iterdir())


def test_uses_within_and_beside_each_other_end_with_the_descriptors_as_they_were(capfd):
    """Threads that come together and go one by one lose no word, and leave descriptors, streams and open files as before."""
    before, meet = state(), threading.Barrier(8)
    left = [threading.Event() for _ in range(9)]
    left[8].set()

    def one(number):
        with quietly():
            meet.wait(10)
            with quietly():
                os.write(1 + number % 2, f"<{number}>\n".encode())
            left[number + 1].wait(10)  # the last that came goes first
            os.write(2, b"again\n")
        left[number].set()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert state() == before
    found = capfd.readouterr()
    assert found.out == ""
    expected = [f"model: <{number}>" for number in range(8)] + ["model: again"] * 8
    assert sorted(found.err.splitlines()) == sorted(expected)


def test_an_error_comes_after_the_words_and_is_no_part_of_them(capfd):
    """An exception of a model passes through, and the output before it is shown."""

    @quietly()
    def fails():
        os.write(1, b"before\n")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert capfd.readouterr() == ("", "model: before\n")


def test_a_stream_that_stands_for_standard_error_gets_the_words_in_the_end(capfd):
    """A progress bar or a notebook in place of the streams is not written to while a model runs, but shows what it said."""
    with contextlib.redirect_stderr(io.StringIO()) as there, quietly():
        sys.stderr.write("\x1b[31mred\n")
        assert there.getvalue() == ""
    assert there.getvalue() == "model: ⟨U+001B⟩[31mred\n"
    assert capfd.readouterr() == ("", "")


def test_a_child_process_that_is_forked_meanwhile_can_use_it_too(capfd):
    """A fork inherits no lock that any thread uses at that moment."""
    stop = threading.Event()

    def others():
        while not stop.is_set():
            with quietly():
                pass

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for _ in range(20):
            if (child := os.fork()) == 0:
                signal.alarm(5)
                with quietly():
                    pass
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert "model" not in capfd.readouterr().out
