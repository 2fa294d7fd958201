"""What a pipeline gets: the outputs beside each other, gates with their exit codes, and a stored result shown again."""

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.cli import app

OUTPUTS = {
    "--html": "page.html",
    "--markdown": "summary.md",
    "--junit": "tests.xml",
    "--sarif": "findings.sarif",
    "--json": "result.json",
}


@pytest.fixture
def table(tmp_path, rng):
    """A table of losses with a clear leak, in a folder with a space and an umlaut."""
    folder = tmp_path / "für uns"
    folder.mkdir()
    member = np.r_[np.ones(600, int), np.zeros(500, int)]
    loss = rng.normal(0, 1, 1100) - 3 * member
    path = folder / "losses.csv"
    pd.DataFrame({"loss": loss, "member": member, "id": np.arange(1100)}).to_csv(path, index=False)
    return path


def run(*arguments):
    """Run the command line in this process."""
    return app.run([str(argument) for argument in arguments])


def options(folder):
    """Every output in a folder."""
    return [item for option, name in OUTPUTS.items() for item in (option, folder / name)]


def process(*arguments, folder=None):
    """Run the command line in a process of its own."""
    line = [sys.executable, "-m", "auditor", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)


# --- Outputs --------------------------------------------------------------------------------------


def test_every_output_is_written_and_tells_of_the_gates(table, capsys):
    """The page, the summary, the test results, the findings and the data are all written, and all but the data hold the gates."""
    assert run("audit", table, *options(table.parent), "--fail-if", "auc > 0.9", "--quiet") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    sentence = printed.err.strip()
    assert sentence.startswith("auc is ")
    files = {name: (table.parent / name).read_text(encoding="utf-8") for name in OUTPUTS.values()}
    failures = [item.get("message") for item in ET.fromstring(files["tests.xml"]).iter("failure")]  # noqa: S314
    assert sentence in failures
    run_of = json.loads(files["findings.sarif"])["runs"][0]
    assert sentence in [item["message"]["text"] for item in run_of["results"]]
    assert run_of["invocations"][0]["exitCode"] == 1
    assert "✕ failed" in files["summary.md"]
    assert "auc &gt; 0.9" in files["page.html"]
    assert json.loads(files["result.json"])["data"]["n_member"] == 600


@pytest.mark.parametrize("option", [option for option in OUTPUTS if option != "--json"])
def test_outputs_are_checked_before_any_work(table, capsys, option):
    """Standard output, an input, a folder, a path named twice and a missing folder are refused, and nothing is written."""
    before = set(table.parent.iterdir())
    other = "--sarif" if option != "--sarif" else "--junit"
    for arguments, words in (
        ([option, "-"], "--json -"),
        ([option, table], "is a file that this command reads"),
        ([option, table.parent], "is a folder"),
        ([option, table.parent / "x", other, table.parent / "x"], "named twice"),
        ([option, table.parent / "x", "--json", table.parent / "y" / ".." / "x"], "named twice"),
        ([option, table.parent / "no" / "x"], "does not exist"),
    ):
        assert run("audit", table, *arguments) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert set(table.parent.iterdir()) == before


def test_outputs_appear_together_or_not_at_all(table, monkeypatch):
    """When one of the outputs cannot be made, none of them is written."""
    from auditor.report import ci

    def broken(*_, **__):
        raise RuntimeError

    monkeypatch.setattr(ci, "sarif", broken)
    before = set(table.parent.iterdir())
    assert run("audit", table, *options(table.parent), "--quiet") == 2
    assert set(table.parent.iterdir()) == before


def test_what_the_model_is_goes_into_the_result(table):
    """The strategy, the utility with its name and direction, and the number of named records reach the result."""
    data = table.parent / "r.json"
    about = ("--strategy", "DP, ε = 8", "--utility", 0.87, "--utility-name", "loss", "--lower-is-better")
    assert run("audit", table, *about, "--top-records", 3, "--json", data, "--quiet") == 0
    result = auditor.read_result(data)
    assert result.data["strategy"] == "DP, ε = 8"
    assert result.data["utility"] == {"value": 0.87, "name": "loss", "higher_is_better": False}
    assert len(result.top_records) == 3
    assert run("audit", table, "--top-records", 0, "--json", data, "--quiet") == 0
    assert auditor.read_result(data).top_records == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--utility-name", "accuracy"], ["--utility-name", "--utility"]),
        (["--lower-is-better"], ["--lower-is-better", "--utility"]),
        (["--utility", "nan"], ["--utility must be finite"]),
        (["--utility", "good"], ["--utility", "good"]),
        (["--utility", "1", "--utility-name", " "], ["--utility-name"]),
        (["--top-records", "-1"], ["--top-records", "-1"]),
        (["--top-records", "some"], ["--top-records", "some"]),
    ],
)
def test_bad_words_about_the_model(table, capsys, arguments, words):
    """What cannot be used is one sentence that names the option, and exit code 2."""
    assert run("audit", table, *arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert all(word in error for word in words), error


# --- Gates and exit codes ---------------------------------------------------------------------------

REFUTED = ("--split", "random", "--claim-epsilon", "0.5", "--claim-delta", "1e-5")
FALSE, TRUE, NONE, WRONG = "auc > 0.9999", "auc > 0.9", "epsilon_bound.one_run.upper > 1", "auk > 0.9"


@pytest.mark.parametrize(
    ("arguments", "code", "reasons"),
    [
        (("--fail-if", FALSE), 0, 0),
        (("--fail-if", TRUE), 1, 1),
        (REFUTED, 1, 1),
        ((*REFUTED, "--fail-if", FALSE), 1, 1),
        ((*REFUTED, "--fail-if", "verdict == refuted"), 1, 2),
        (("--fail-if", NONE), 3, 1),
        (("--fail-if", NONE, "--fail-if", FALSE), 3, 1),
        (("--fail-if", NONE, "--fail-if", TRUE), 1, 2),
        ((*REFUTED, "--fail-if", NONE), 1, 2),
        (("--fail-if", WRONG), 2, 1),
        (("--fail-if", TRUE, "--fail-if", NONE, "--fail-if", WRONG), 2, 1),
        ((*REFUTED, "--fail-if", WRONG), 2, 1),
    ],
)
def test_exit_codes_and_their_reasons(table, arguments, code, reasons, capsys):
    """0 done, 1 failed, 3 not evaluable, 2 bad input; 2 before 1 before 3; each told on standard error, one line a reason."""
    data = table.parent / "r.json"
    assert run("audit", table, *arguments, "--quiet", "--json", data) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == reasons
    assert data.exists() == (code != 2)


@pytest.mark.parametrize(("gate", "code"), [(FALSE, 0), (TRUE, 1), (NONE, 3), (WRONG, 2)])
def test_a_process_ends_with_the_code(table, gate, code):
    """What the command line answers is the exit code of its process."""
    assert process("audit", table, "--fail-if", gate, "--quiet").returncode == code


def test_json_on_standard_output_stays_pure(table):
    """With gates that stop and a refuted claim, standard output is JSON and nothing else."""
    done = process("audit", table, *REFUTED, "--fail-if", TRUE, "--fail-if", NONE, "--json", "-")
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "refuted"
    assert [line.split()[0] for line in done.stderr.splitlines()] == [
        "The",
        "auc",
        "epsilon_bound.one_run",
    ]


def test_gates_that_pass_are_told_to_a_person(table, capsys):
    """Without --quiet, a gate that passed is told with the numbers, and standard error stays empty."""
    assert run("audit", table, "--fail-if", FALSE) == 0
    printed = capsys.readouterr()
    assert "✓ auc is " in printed.out
    assert printed.err == ""


def test_gates_are_read_before_any_file(tmp_path, capsys):
    """A gate that cannot be read is refused although the table is not there either."""
    assert run("audit", tmp_path / "nowhere.csv", "--fail-if", "auc => 1") == 2
    assert "NAME OPERATOR NUMBER" in capsys.readouterr().err
    assert run("report", tmp_path / "nowhere.json", "--fail-if", "auc > nan") == 2
    assert "finite number" in capsys.readouterr().err


def test_a_closed_standard_error_keeps_the_exit_code(table):
    """Where nobody can be told the reason, the exit code still says it."""
    line = f'"{sys.executable}" -m auditor audit losses.csv --fail-if "{TRUE}" --quiet 2>&-'
    assert subprocess.run(line, shell=True, check=False, cwd=table.parent).returncode == 1  # noqa: S602


# --- A stored result ------------------------------------------------------------------------------


@pytest.fixture
def stored(table):
    """The result of an audit, stored."""
    path = table.parent / "stored.json"
    assert run("audit", table, *REFUTED, "--json", path, "--quiet", "--seed", 3) == 1
    return path


def test_a_stored_result_gives_the_same_outputs(table, stored):
    """Every output from a stored result is byte for byte what the audit itself wrote, and so is the exit code."""
    first, second = table.parent / "first", table.parent / "second"
    first.mkdir()
    second.mkdir()
    result = auditor.read_result(stored)
    gates = ["auc > 0.9"]
    for option, name in OUTPUTS.items():
        write = getattr(result, f"to_{option.removeprefix('--')}")
        write(first / name) if option == "--json" else write(first / name, gates=gates)
    assert run("report", stored, *options(second), "--fail-if", gates[0], "--quiet") == 1
    for name in OUTPUTS.values():
        assert (second / name).read_bytes() == (first / name).read_bytes()
    assert (second / "result.json").read_bytes() == stored.read_bytes()


def test_a_stored_result_is_printed_as_the_audit_was(table, stored, capsys):
    """`auditor report` prints what `auditor audit` printed, and judges other gates than the audit did."""
    assert run("audit", table, *REFUTED, "--seed", 3) == 1
    printed = capsys.readouterr()
    assert run("report", stored) == 1
    assert capsys.readouterr() == printed
    quiet = stored.with_name("quiet.json")
    raw = json.loads(stored.read_text(encoding="utf-8")) | {"verdict": None}
    quiet.write_text(json.dumps(raw), encoding="utf-8")
    assert run("report", quiet, "--quiet") == 0
    assert run("report", quiet, "--fail-if", TRUE, "--quiet") == 1
    assert run("report", quiet, "--fail-if", NONE, "--quiet") == 3
    assert run("report", quiet, "--fail-if", WRONG, "--quiet") == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ("", "not valid JSON"),
        ("[]", "not an audit result"),
        ('{"schema_version": "2"}', "damaged"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, capsys, content, words):
    """A file that is missing or is no result is one sentence and exit code 2, and nothing is written."""
    path, page = tmp_path / "r.json", tmp_path / "page.html"
    if content is not None:
        path.write_text(content)
    assert run("report", path, "--html", page) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not page.exists()


def test_a_stored_result_is_not_overwritten(stored, capsys):
    """No output replaces the result that is read."""
    before = stored.read_bytes()
    for option in OUTPUTS:
        assert run("report", stored, option, stored) == 2
        assert "is a file that this command reads" in capsys.readouterr().err
    assert stored.read_bytes() == before
