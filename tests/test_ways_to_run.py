"""Ways to run the package beside the usual one: without docstrings and asserts (``python -OO``), and from a zip file."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command_line import leaking

import auditor

ROOT = Path(__file__).parents[1]
TRAINING = "--noise-multiplier 1 --sampling-rate 0.01 --steps 1000"
COMMANDS = [
    f"audit losses.csv --split random {TRAINING} --claim-delta 1e-5 --set label-column=group",
    "audit losses.csv --split random --claim-epsilon 1 --claim-delta 1e-5 --json a.json --html a.html --markdown a.md --junit a.xml --sarif a.sarif",
    "audit more.csv --json b.json",
    "report a.json --html again.html",
    f"claim {TRAINING} --delta 1e-5 --json c.json --html c.html",
    "power --epsilon 1 --delta 1e-5",
    "claim --solve-for noise-multiplier --target epsilon:2,delta=1e-5 --sampling-rate 0.01 --steps 1000",
    "compare a.json b.json --html compared.html",
    "report a.json --verify --losses losses.csv",
    "summarise losses.csv --out summary.parquet",
    "audit summary.parquet",
    "report . --html site",
    *(
        f"{name} --help"
        for name in ["audit", "report", "collect", "compare", "instances", "runs", "canaries"]
    ),
    *(f"{name} --help-all" for name in ("collect", "runs")),
    *("claim --help", "power --help", "summarise --help"),
    "--help",
]
# Runs every command of the list in one process, and says where the package came from.
PROGRAM = """
import contextlib, io, json, sys
import auditor
from auditor.cli.app import run
found = {}
for command in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(command.split())
    found[command] = [code, out.getvalue(), err.getvalue()]
print(json.dumps({"from": auditor.__file__, "found": found}))
"""


def found_by(folder, source, *flags):
    """The output of each command, from a process with these flags that takes the package from there."""
    folder.mkdir()
    for name, member in (("losses.csv", 150), ("more.csv", 120)):
        import numpy as np

        leaking(folder / name, np.random.default_rng(5), member=member, nonmember=150)
    line = [sys.executable, "-P", "-W", "ignore", *flags, "-c", PROGRAM, json.dumps(COMMANDS)]
    env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80"}
    done = subprocess.run(line, check=True, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    answer = json.loads(done.stdout)
    assert answer["from"].startswith(str(source))
    return {name: [code, _timeless(out), err] for name, (code, out, err) in answer["found"].items()}


def _timeless(text):
    """The same text without what differs from run to run: a hash of a result's content, which has its time."""
    return re.sub(r"[0-9a-f]{64}", "HASH", text)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """The output of each command as people usually run it."""
    found = found_by(tmp_path_factory.mktemp("usual") / "work", ROOT)
    assert {code for code, _, _ in found.values()} == {0, 1, 2}  # two claims are refused, and one is refuted
    return found


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The package in a zip file, as Spark's ``--py-files`` hands it out."""
    place = tmp_path_factory.mktemp("zip")
    shutil.copytree(
        Path(auditor.__file__).parent,
        place / "all/auditor",
        ignore=lambda _, names: [name for name in names if name == "__pycache__"],
    )
    return Path(shutil.make_archive(str(place / "package"), "zip", place / "all"))


@pytest.mark.parametrize("zipped", [False, True])
def test_every_command_prints_the_same(usual, archive, tmp_path, zipped):
    """Audits, schemas and help are the usual ones without docstrings and asserts, from a folder and from a zip file."""
    found = found_by(tmp_path / "work", archive if zipped else ROOT, "-OO")
    assert found == usual


def test_the_extra_for_addresses_has_what_its_examples_need():
    """Each kind of address in the documentation and the help of summarise is read by a package of the extra `remote`."""
    wanted = {"s3": "s3fs", "https": "fsspec[http]"}
    examples = [ROOT / "docs/how-to/summaries.md", ROOT / "auditor/cli/collect.py"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in examples)
    kinds = set(re.findall(r"auditor summarise (\w+)://", text))
    assert kinds == set(wanted)
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert {wanted[kind] for kind in kinds} == {re.split("[<>=]", item)[0] for item in extra["remote"]}
