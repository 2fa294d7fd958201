"""Whatever a model's file or a model's server does: one sentence and code 2, or a result. ``--long`` tries all of them."""

import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fuzz import hostile
from safety import formats

from auditor import AuditorError, Endpoint, collect

SEED, FEW_FILES, FEW_SERVERS = 7, 12, 25
SECONDS, MEGABYTES = 20, 700  # of one file or server; importing a library takes memory too

# Scores records by each file in turn, as the command line does, and says of each what happened, and what came through
# descriptors 1 and 2.
CHILD = """
import json, os, resource, sys, time
from pathlib import Path
from auditor.cli import run
output, folder = os.fdopen(os.dup(1), "w"), Path(sys.argv[1])
for name in sys.argv[2:]:
    began, before = time.process_time(), set(Path().rglob("*"))
    print(json.dumps({"begun": name}), file=output, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for place in (1, 2):
        os.dup2(os.open(folder / str(place), os.O_CREAT | os.O_TRUNC | os.O_RDWR), place)
    code = run(["collect", name, "--records", "records.csv", "--label", "y", "--out", "out.parquet", "--quiet"])
    sys.stdout.flush(), sys.stderr.flush()
    Path("out.parquet").unlink(missing_ok=True)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) // 1024
    new = sorted(map(str, set(Path().rglob("*")) - before))
    out, said = ((folder / place).read_bytes().decode(errors="backslashreplace") for place in "12")
    print(json.dumps({"name": name, "code": code, "out": out, "said": said, "new": new, "megabytes": grown,
                      "seconds": time.process_time() - began}), file=output, flush=True)
"""


def some(request, names, few):
    """The names to try: a seeded sample, or all of them."""
    found = sorted(names)
    return found if request.config.getoption("--long") else random.Random(SEED).sample(found, few)  # noqa: S311


def report(title, rows):
    """Say in the end of a campaign what it was."""
    print(f"\n{title}: {json.dumps(rows)}")  # noqa: T201 - for who runs it with -s


def test_hostile_files(request, tmp_path):
    """Each file is refused in one sentence or scored, runs no code, writes nothing, and takes little time and memory."""
    found = hostile.files()
    assert len(found) >= 60
    # Those whose names want to be commands are always tried.
    names = list(
        dict.fromkeys([*some(request, found, FEW_FILES), *(name for name in found if "names" in name)])
    )
    folder = tmp_path / "here"
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(found[name])
    lines = ["y,member,a,b", *(f"{i % 2},{i // 4},{i / 8},{-i}" for i in range(8))]
    (folder / "records.csv").write_text("\n".join(lines))
    aside = tmp_path / "aside"
    aside.mkdir()
    told, waiting, died = [], list(names), []
    while waiting:
        line = [sys.executable, "-W", "ignore", "-c", CHILD, str(aside), *waiting]
        child = subprocess.run(line, check=False, capture_output=True, cwd=folder, env=_environment())
        rows = [json.loads(row) for row in child.stdout.splitlines() if row.startswith(b"{")]
        told += [row for row in rows if "name" in row]
        begun = [row["begun"] for row in rows if "begun" in row]
        if child.returncode != 0:
            died.append((begun[-1:], child.returncode, child.stderr[-300:]))
        waiting = waiting[len(begun) :] if begun and child.returncode != 0 else []
    assert died == []
    assert [row["name"] for row in told] == names
    for row in told:
        own = [line for line in row["said"].splitlines() if not line.startswith("model: ")]
        assert row["code"] in (0, 2), row
        assert len(own) == (row["code"] == 2), row
        assert "".join(own).startswith("error: " if own else ""), row
        assert "this is a bug" not in row["said"], row
        assert "".join(own).isprintable(), row
        assert row["out"] == "", row
        assert formats.UNSAFE.search(row["said"]) is None, row
        assert formats.commands(row["said"]) == [], row
        assert row["new"] == [], row
        assert row["seconds"] < SECONDS, row
        assert row["megabytes"] < MEGABYTES, row
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aside", "here"]
    assert not Path("/tmp", hostile.MARK).exists()  # noqa: S108 - where a climbing archive would have put it
    told_of = [row for row in told if row["code"] == 2 and row["name"] not in row["said"]]
    assert [row for row in told_of if not re.search("records.csv|cannot be imported here", row["said"])] == []
    slowest = max((row["seconds"], row["name"]) for row in told)
    largest = max((row["megabytes"], row["name"]) for row in told)
    report("files", [len(told), sum(row["code"] == 2 for row in told), *slowest, *largest])


def _environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TF_CPP_MIN_LOG_LEVEL": "3"}


def test_hostile_servers(request, monkeypatch):
    """Each server gives losses or one sentence, in bounded time, and neither its words nor its redirects tell the token."""
    pytest.importorskip("httpx")
    monkeypatch.setenv("HOSTILE_TOKEN", hostile.SECRET)
    server, elsewhere = hostile.Hostile(), hostile.Hostile()
    found = hostile.behaviours(elsewhere.url)
    assert len(found) >= 200
    # An honest one is always queried too, so that refusals are due to the answers.
    names = dict.fromkeys([*some(request, found, FEW_SERVERS), "v1-good"])
    outcomes, slowest = {"scored": 0, "refused": 0}, ("", 0.0)
    x = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for name in names:
        protocol, server.answer = found[name]
        server.heads.clear()
        few = {"retries": 1, "timeout": 1.0, "pause": 0.01, "max_response_bytes": 1_000_000, "concurrency": 1}
        endpoint = Endpoint(server.url + hostile.PATHS[protocol], token_variable="HOSTILE_TOKEN", **few)  # noqa: S106
        began = time.monotonic()
        try:
            losses = collect(endpoint, members=(x, [0, 1, 0]), nonmembers=(x, [1, 0, 1]))
            assert np.isfinite(losses.member).all(), name
            outcomes["scored"] += 1
        except AuditorError as error:
            sentence = str(error)
            outcomes["refused"] += 1
            assert sentence.isprintable(), (name, sentence)
            assert len(sentence) < 1500, (name, sentence)
            assert "this is a bug" not in sentence, (name, sentence)
            assert not _tells(sentence), (name, sentence)
        took = time.monotonic() - began
        assert took < SECONDS, (name, took)
        slowest = max(slowest, (name, took), key=lambda item: item[1])
        assert not any(b"\r\ncookie:" in head.lower() for head in server.heads), name
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 - peak
    assert grown < MEGABYTES
    assert elsewhere.heads == []
    assert outcomes["scored"] > 0
    report("servers", [len(names), outcomes, *slowest, grown])


def _tells(sentence):
    """Whether six signs in a row of the token stand in a sentence."""
    secret = hostile.SECRET
    return any(secret[at : at + 6] in sentence for at in range(len(secret) - 5))
