"""Outputs for pipelines: all files together, gates with their exit codes, and a stored result shown again."""

import json
from xml.etree import ElementTree as ET

import pytest
from command_line import refused, run

import auditor
from auditor.results.document import content_hash

OUTPUTS = {
    "--html": "page.html",
    "--markdown": "summary.md",
    "--junit": "tests.xml",
    "--sarif": "findings.sarif",
    "--json": "result.json",
}


def options(folder):
    """Every output in a folder."""
    return [item for option, name in OUTPUTS.items() for item in (option, folder / name)]


# --- Outputs --------------------------------------------------------------------------------------


def test_every_output_is_written_and_tells_of_the_gates(table, capsys):
    """The page, the summary, the test results, the findings and the data are all written, and all but the data hold the gates."""
    named = ("--model", "model <1>", "--fail-if", "auc > 0.9", "--quiet")
    assert run("audit", table, *options(table.parent), *named) == 1
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
    assert files["page.html"].startswith("<!doctype html>")
    result = auditor.read_result(table.parent / "result.json")
    assert (result.data["n_member"], result.data["model"]) == (600, "model <1>")
    assert result.provenance["command"].startswith("auditor audit ")
    assert "'model <1>'" in result.provenance["command"]
    assert {path.name for path in table.parent.iterdir()} == {"losses.csv", *OUTPUTS.values()}


def test_outputs_are_checked_before_any_work(table, capsys):
    """Standard output, an input, a folder, a path named twice and a missing folder are refused, and nothing is written."""
    before = set(table.parent.iterdir())
    new = table.parent / "x"
    for arguments, words in (
        (["--markdown", "-"], "--json -"),
        (["--junit", table], "is a file that this command reads"),
        (["--sarif", table.parent], "is a folder"),
        (["--html", new, "--sarif", new], "named twice"),
        (["--html", new, "--json", table.parent / "y" / ".." / "x"], "named twice"),
        (["--markdown", table.parent / "no" / "x"], "does not exist"),
    ):
        assert words in refused(capsys, "audit", table, *arguments)
    assert set(table.parent.iterdir()) == before


def test_what_the_model_is_goes_into_the_result(table):
    """The strategy, the utility with its name and direction, and the number of named records reach the result."""
    data = table.parent / "r.json"
    about = ("--set", "strategy=DP, ε = 8", "--set", "utility=0.87:loss:lower")
    assert run("audit", table, *about, "--set", "top-records=3", "--json", data, "--quiet") == 0
    result = auditor.read_result(data)
    assert result.data["strategy"] == "DP, ε = 8"
    assert result.data["utility"] == {"value": 0.87, "name": "loss", "higher_is_better": False}
    assert len(result.top_records) == 3
    assert run("audit", table, "--set", "top-records=0", "--json", data, "--quiet") == 0
    assert auditor.read_result(data).top_records == ()


# --- Gates and exit codes ---------------------------------------------------------------------------

REFUTED = ("--split", "random", "--claim-epsilon", "0.5", "--claim-delta", "1e-5")
FALSE, TRUE, NONE, WRONG = "auc > 0.9999", "auc > 0.9", "epsilon_bound.one_run.upper > 1", "auk > 0.9"


@pytest.mark.parametrize(
    ("arguments", "code", "reasons"),
    [
        (("--fail-if", FALSE), 0, 0),
        (("--fail-if", TRUE), 1, 1),
        (REFUTED, 1, 1),
        (REFUTED[2:], 3, 1),
        ((*REFUTED[2:], "--set", "allow-unjudged"), 0, 0),
        ((*REFUTED[2:], "--fail-if", FALSE), 3, 1),
        ((*REFUTED[2:], "--fail-if", TRUE), 1, 2),
        ((*REFUTED[2:], "--fail-if", WRONG), 2, 1),
        (("--split", "random", "--claim-epsilon", "9", "--claim-delta", "1e-5"), 3, 1),
        ((*REFUTED[2:], "--fail-if", "verdict == refuted"), 3, 2),
        ((*REFUTED[2:], "--set", "allow-unjudged", "--fail-if", "verdict == refuted"), 3, 1),
        ((*REFUTED, "--set", "allow-unjudged"), 1, 1),
        ((*REFUTED[:2], "--noise-multiplier", "8", "--sampling-rate", "0.01", "--steps", "100"), 1, 1),
        ((*REFUTED, "--fail-if", "verdict == refuted"), 1, 2),
        (("--fail-if", NONE), 3, 1),
        (("--fail-if", NONE, "--fail-if", TRUE), 1, 2),
        (("--fail-if", WRONG), 2, 1),
        (("--fail-if", TRUE, "--fail-if", NONE, "--fail-if", WRONG), 2, 1),
    ],
)
def test_exit_codes_and_their_reasons(table, arguments, code, reasons, capsys):
    """0 done, 1 failed, 3 not evaluable, 2 bad input; 2 before 1 before 3; with the reasons on standard error, one in each line."""
    data = table.parent / "r.json"
    assert run("audit", table, *arguments, "--quiet", "--json", data) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == reasons
    assert data.exists() == (code != 2)


def test_json_on_standard_output_stays_pure(table, capfd):
    """With gates that stop and a refuted claim, standard output is JSON and nothing else."""
    assert run("audit", table, *REFUTED, "--fail-if", TRUE, "--fail-if", NONE, "--json", "-") == 1
    printed = capfd.readouterr()
    assert json.loads(printed.out)["verdict"] == "refuted"
    assert [line.split()[0] for line in printed.err.splitlines()] == ["The", "auc", "epsilon_bound.one_run"]


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
    for option, name in OUTPUTS.items():
        getattr(result.with_policy(gates=TRUE), f"to_{option.removeprefix('--')}")(first / name)
    assert run("report", stored, *options(second), "--fail-if", TRUE, "--quiet") == 1
    for name in OUTPUTS.values():
        assert (second / name).read_bytes() == (first / name).read_bytes()
    assert run("report", stored, "--json", first / "again.json", "--quiet") == 1
    assert (first / "again.json").read_bytes() == stored.read_bytes()


def hashed(raw):
    """Return a result with the hash of its content."""
    return raw | {"provenance": raw["provenance"] | {"content_sha256": content_hash(raw)}}


def test_a_stored_result_is_printed_as_the_audit_was(table, stored, capsys):
    """`auditor report` prints what `auditor audit` printed, and judges other gates than the audit did."""
    assert run("audit", table, *REFUTED, "--seed", 3) == 1
    printed = capsys.readouterr()
    assert run("report", stored) == 1
    assert capsys.readouterr() == printed
    quiet = stored.with_name("quiet.json")
    raw = json.loads(stored.read_text(encoding="utf-8")) | {"verdict": None}
    quiet.write_text(json.dumps(hashed(raw)), encoding="utf-8")
    assert run("report", quiet, "--quiet") == 3  # a claim without a verdict is one that could not be judged
    quiet.write_text(json.dumps(hashed(raw | {"claims": [], "comparisons": []})), encoding="utf-8")
    assert run("report", quiet, "--quiet") == 0
    assert run("report", quiet, "--fail-if", TRUE, "--quiet") == 1
    assert run("report", quiet, "--fail-if", NONE, "--quiet") == 3
    assert run("report", quiet, "--fail-if", WRONG, "--quiet") == 2
