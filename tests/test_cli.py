"""The command line: what it writes, its exit codes, and one sentence for every bad input."""

import json
import os
import shlex
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.cli import app


@pytest.fixture
def table(tmp_path, rng):
    """A CSV of losses with a clear leak, in a folder with a space and an umlaut."""
    folder = tmp_path / "Daten für uns"
    folder.mkdir()
    member = np.r_[np.ones(600, int), np.zeros(500, int)]
    loss = rng.normal(0, 1, 1100) - 3 * member
    path = folder / "losses.csv"
    pd.DataFrame({"loss": loss, "member": member, "id": np.arange(1100)}).to_csv(path, index=False)
    return path


def run(*arguments):
    """Run the command line in this process."""
    return app.run([str(argument) for argument in arguments])


def test_audit_prints_the_verdict_and_a_table(table, capsys):
    """Without outputs, the verdict and the numbers are printed and nothing is written."""
    before = set(table.parent.iterdir())
    assert run("audit", table) == 0
    printed = capsys.readouterr()
    assert "epsilon" in printed.out.lower()
    assert printed.err == ""
    assert set(table.parent.iterdir()) == before


def test_audit_writes_both_outputs(table, capsys):
    """The page and the JSON are written, and the JSON reads back as the same audit."""
    page, data = table.parent / "r e p.html", table.parent / "ö.json"
    assert run("audit", table, "--html", page, "--json", data, "--model-name", "model <1>", "--quiet") == 0
    assert capsys.readouterr().out == ""
    result = auditor.read_result(data)
    assert result.data["model"] == "model <1>"
    assert result.provenance["command"].startswith("auditor audit ")
    assert "'model <1>'" in result.provenance["command"]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {p.name for p in table.parent.iterdir()} == {"losses.csv", "r e p.html", "ö.json"}


def test_json_to_standard_output(table, capsys):
    """With --json - only JSON is printed."""
    assert run("audit", table, "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["schema_version"] == "2"


def test_two_files_and_a_score(tmp_path, rng, capsys):
    """Two files, a named column and a score whose high values mean member give the same as losses."""
    member, nonmember = rng.normal(-2, 1, 300), rng.normal(0, 1, 400)
    pd.DataFrame({"s": -member}).to_parquet(tmp_path / "in.parquet")
    pd.DataFrame({"s": -nonmember}).to_csv(tmp_path / "out.csv", index=False)
    arguments = ("--member-file", tmp_path / "in.parquet", "--nonmember-file", tmp_path / "out.csv")
    assert run("audit", *arguments, "--loss-column", "s", "--higher-is-member", "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    expected = auditor.audit(auditor.Losses(member=member, nonmember=nonmember))
    rows = {row["name"]: row["value"] for row in found["estimates"]}
    assert rows["auc"] == pytest.approx(expected.estimate("auc").value)
    assert found["data"]["n_nonmember"] == 400


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 0),
        (("--split", "random", "--claim-epsilon", "0.5", "--claim-delta", "1e-5"), 1),
        (("--claim-epsilon", "0.5", "--claim-delta", "1e-5"), 0),
        (("--claim-epsilon", "0.5", "--claim-delta", "1e-5", "--fail-if", "verdict == refuted"), 3),
        (("--split", "random", "--claim-epsilon", "9", "--claim-delta", "1e-9"), 0),
        (("--split", "random", "--noise-multiplier", "8", "--sampling-rate", "0.01", "--steps", "100"), 1),
        (("--fail-if", "auc > 0.9"), 1),
        (("--fail-if", "auc > 0.9", "--fail-if", "epsilon_bound.one_run > 1"), 1),
        (("--fail-if", "epsilon_bound.one_run > 1"), 3),
        (("--fail-if", "auc > 0.9999"), 0),
        (("--fail-if", "auc > 0.9", "--fail-if", "auk > 0.9"), 2),
    ],
)
def test_exit_codes(table, arguments, code):
    """0 done, 1 gate or refuted, 3 not evaluable, 2 bad input, in the precedence 2, 1, 3."""
    assert run("audit", table, *arguments, "--quiet") == code


def test_a_failed_gate_still_writes(table):
    """The report of an audit that fails a gate is what one needs to read: it is written."""
    data = table.parent / "r.json"
    assert run("audit", table, "--fail-if", "auc > 0.9", "--json", data, "--quiet") == 1
    assert data.exists()


def bad(text, name="bad.csv"):
    """A bad file, made in the test's folder."""

    def make(folder):
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


GOOD_ROWS = "".join(f"{i / 7},{i % 2}\n" for i in range(40))
BAD_FILES = {
    "NaN": (bad("loss,member\nnan,1\n" + GOOD_ROWS), ["loss", "1 NaN", "row 0"]),
    "infinite": (bad("loss,member\n" + GOOD_ROWS + "inf,1\n"), ["loss", "infinite", "row 40"]),
    "no members": (bad("loss,member\n0.1,0\n0.2,0\n0.3,0\n"), ["member"]),
    "one member": (bad("loss,member\n0.1,1\n0.2,0\n0.3,0\n"), ["member", "at least 2"]),
    "empty": (bad(""), ["empty"]),
    "misspelt column": (bad("los,member\n" + GOOD_ROWS), ["loss", "los", "member"]),
    "membership 2": (bad("loss,member\n0.5,2\n" + GOOD_ROWS), ["member", "0", "1", "2"]),
    "truncated parquet": (bad(b"PAR1\x00\x00\x15", "bad.parquet"), ["bad.parquet"]),
    "truncated npz": (bad(b"PK\x03\x04\x14\x00", "bad.npz"), ["bad.npz"]),
    "pickled": (bad(b"\x80\x04\x95", "bad.pkl"), ["pickle"]),
    "unknown kind": (bad("x", "bad.xlsx"), [".csv", ".parquet", ".npz"]),
    "missing": (lambda folder: folder / "nowhere.csv", ["nowhere.csv"]),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files(tmp_path, capsys, kind):
    """Each bad file is one sentence on standard error, exit code 2, no traceback and no output file."""
    make, words = BAD_FILES[kind]
    page = tmp_path / "page.html"
    assert run("audit", make(tmp_path), "--html", page) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    assert all(word in printed.err for word in words), printed.err
    assert not page.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--delta", "1"), ["delta", "[0, 1)", "1"]),
        (("--delta", "-0.5"), ["delta"]),
        (("--delta", "x"), ["--delta", "'x'"]),
        (("--confidence", "1"), ["confidence", "(0, 1)"]),
        (("--claim-epsilon", "1"), ["--claim-delta", "missing"]),
        (("--claim-delta", "1e-5"), ["--claim-epsilon", "missing"]),
        (("--claim-epsilon", "-1", "--claim-delta", "0"), ["--claim-epsilon", "-1"]),
        (("--noise-multiplier", "1"), ["--sampling-rate", "--steps"]),
        (("--noise-multiplier", "1", "--claim-epsilon", "1"), ["one claim at a time"]),
        (("--split", "bernoulli"), ["--inclusion"]),
        (("--inclusion", "0.5"), ["--split bernoulli"]),
        (("--split", "stratified"), ["--split"]),
        (("--member-file", "a.csv"), ["LOSSES", "--nonmember-file"]),
        (("--html", "{folder}/no/such/page.html"), ["no/such", "does not exist"]),
        (("--html", "{folder}"), ["is a folder"]),
        (("--html", "{folder}/losses.csv"), ["is a file that this command reads"]),
        (("--json", "/dev/null"), ["is not an ordinary file"]),
        (("--html", "-"), ["--json -"]),
        (("--html", "{folder}/" + 300 * "a"), ["is not a path that can be written"]),
        (("--html", "{folder}/x", "--json", "{folder}/x"), ["named twice"]),
        (("--fail-if", "auc"), ["NAME OPERATOR NUMBER"]),
        (("--loss-column", "lss"), ["lss", "loss"]),
        (("--training-size", "3"), ["--training-size", "600"]),
        (("--nonsense",), ["--nonsense"]),
    ],
)
def test_bad_arguments(table, capsys, arguments, words):
    """Each bad argument is one sentence naming it, exit code 2, and nothing is written."""
    before = set(table.parent.iterdir())
    given = [argument.format(folder=table.parent) for argument in arguments]
    assert run("audit", table, *given) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert all(word in printed.err for word in words), printed.err
    assert set(table.parent.iterdir()) == before


def test_debug_shows_the_traceback(tmp_path, capsys):
    """--debug adds the traceback to the sentence."""
    assert run("audit", tmp_path / "nowhere.csv", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(table, capsys):
    """An output path without permission is refused before any work."""
    table.parent.chmod(0o500)
    try:
        assert run("audit", table, "--html", table.parent / "page.html") == 2
        assert "permission denied" in capsys.readouterr().err
    finally:
        table.parent.chmod(0o700)


def test_a_failure_while_writing_leaves_nothing(table, monkeypatch):
    """When the second file cannot be put in place, no temporary file stays behind."""
    from auditor.core import files

    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fdopen", full_disk)
    before = set(table.parent.iterdir())
    assert run("audit", table, "--html", table.parent / "a.html", "--json", table.parent / "b.json") == 2
    assert set(table.parent.iterdir()) == before


@pytest.mark.parametrize("arguments", [("claim", "--steps", "3"), ("nonsense",), ("claim", "--delta")])
def test_usage_errors(capsys, arguments):
    """Usage errors are one sentence and exit code 2."""
    assert run(*arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_links_and_permissions_survive(table):
    """A report written through a link replaces the file behind it, which keeps its permissions."""
    behind, link = table.parent / "behind.html", table.parent / "link.html"
    behind.write_text("old")
    behind.chmod(0o600)
    link.symlink_to(behind)
    assert run("audit", table, "--html", link, "--quiet") == 0
    assert link.is_symlink()
    assert behind.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert behind.stat().st_mode & 0o777 == 0o600


def test_without_arguments_the_help_is_printed(capsys):
    """Bare `auditor` prints its help and succeeds."""
    assert run() == 0
    printed = capsys.readouterr()
    assert "Usage: auditor" in printed.out
    assert printed.err == ""


@pytest.mark.parametrize("arguments", ["audit losses.csv", "--version", "audit losses.csv --json -"])
def test_a_full_standard_output(table, arguments):
    """A full standard output is one sentence and exit code 2, and a reader that goes away is no error."""
    command = f"{shlex.quote(sys.executable)} -m auditor {arguments}"
    options = {"shell": True, "cwd": table.parent, "capture_output": True, "text": True}
    full = subprocess.run(f"{command} > /dev/full", check=False, **options)
    assert full.returncode == 2
    assert full.stderr == "error: standard output cannot be written: No space left on device.\n"
    assert subprocess.run(f"{command} | head -n 1", check=False, **options).stderr == ""


def test_names_that_are_not_text(table):
    """A model name that is not valid text is written as escapes, not refused half-way."""
    data = table.parent / "r.json"
    assert (
        run(
            "audit", table, "--model-name", "m\udcff", "--json", data, "--html", table.parent / "p.html", "-q"
        )
        == 0
    )
    assert "m\\udcff" in data.read_text(encoding="utf-8")


def test_as_a_module():
    """Python -m auditor --version prints the version."""
    done = subprocess.run(
        [sys.executable, "-m", "auditor", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"auditor {auditor.__version__}\n"


def test_the_demo_reports_two_models(tmp_path, capsys):
    """The demo trains two models, writes one page comparing them and prints its path, within a minute."""
    page = tmp_path / "demo.html"
    start = time.process_time()
    assert run("demo", "--html", page) == 0
    spent = time.process_time() - start
    printed = capsys.readouterr().out
    assert str(page) in printed
    text = page.read_text(encoding="utf-8")
    assert "over-fitted" in text
    assert "regularised" in text
    assert len(text) < 1_000_000
    assert spent < 600  # a loose guard against a hang, not a measurement
