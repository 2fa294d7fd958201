"""The command `auditor compare`: what it writes, and what it says to a pipeline."""

import json
from dataclasses import replace

import numpy as np
import pytest

import auditor
from auditor.cli import app


def run(*arguments):
    """Run the command line in this process."""
    return app.run(["compare", *(str(argument) for argument in arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results in a folder with a space and an umlaut: two quiet ones, a leaking one, and one that cannot be compared."""
    made = tmp_path_factory.mktemp("Prüfungen von heute")
    rng = np.random.default_rng(5)
    for name, shift, accuracy in (
        ("old", 0.0, 0.80),
        ("new", 0.0, 0.81),
        ("leaking", 1.5, 0.90),
        ("broken", 0.0, 0.7),
    ):
        losses = auditor.Losses(member=rng.normal(-shift, 1, 500), nonmember=rng.normal(0, 1, 500))
        result = auditor.audit(losses, delta=1e-5, model=name, utility=auditor.Utility(accuracy, "accuracy"))
        if name == "broken":
            check = auditor.Check("duplicates", auditor.Status.FAIL, "Records are in both groups.")
            result = replace(result, checks=(check, *result.checks))
        result.to_json(made / f"{name}.json")
    return made


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("old", "new"), 0),
        (("old", "leaking"), 1),
        (("leaking", "old"), 0),
        (("old", "broken"), 3),
        (("broken", "leaking"), 3),
        (("new", "--baseline", "old"), 0),
        (("leaking", "--baseline", "old"), 1),
        (("leaking", "broken", "--baseline", "old"), 1),
        (("new", "broken", "--baseline", "old"), 3),
        (("old", "new", "leaking"), 2),
        (("old",), 2),
        (("old", "old"), 2),
    ],
)
def test_the_gate_stops_what_got_worse(folder, arguments, code, capsys):
    """1 for more leakage, 3 for what cannot be compared, 2 for bad input, 0 only for no more leakage shown."""
    given = [word if word.startswith("--") else folder / f"{word}.json" for word in arguments]
    assert run(*given, "--fail-if-worse", "--quiet") == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (printed.err != "") == (code != 0)


def test_the_reason_is_on_standard_error(folder, capsys):
    """Each audit that is worse or not comparable has one line on standard error, the worse ones first, quiet or not."""
    names = [folder / f"{word}.json" for word in ("old", "new", "broken", "leaking")]
    for quiet in ((), ("--quiet",)):
        assert run(*names, "--baseline", names[0], "--fail-if-worse", *quiet) == 1
        lines = capsys.readouterr().err.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["4. leaking", "3. broken"]
        assert "rose from" in lines[0]
        assert "duplicates" in lines[1]
    assert run(*names, "--baseline", names[0], "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_the_terminal_names_options_alone(folder, tmp_path, capsys):
    """At a terminal what can be done is named as options of the command, never as Python."""
    bare = []
    for name in ("old", "new", "leaking"):
        result = auditor.read_result(folder / f"{name}.json")
        bare.append(tmp_path / f"{name}.json")
        replace(result, data={**result.data, "utility": None}).to_json(bare[-1])
    assert run(*bare) == 0
    printed = capsys.readouterr().out
    for option in ("--about", "--baseline", "--utility"):
        assert option in printed
    for python in ("about=", "baseline=", "measure=", "auditor.Utility"):
        assert python not in printed


def test_without_the_gate_the_code_is_0(folder, capsys):
    """More leakage is told, and without --fail-if-worse nothing is stopped."""
    assert run(folder / "old.json", folder / "leaking.json") == 0
    assert "More leakage" in capsys.readouterr().out


def test_page_and_json_are_written_together(folder, tmp_path, capsys):
    """Both outputs are there and say the same, and nothing else is written."""
    page, data = tmp_path / "c p.html", tmp_path / "ç.json"
    assert run(folder / "old.json", folder / "leaking.json", "--html", page, "--json", data, "-q") == 0
    assert capsys.readouterr().out == ""
    found = json.loads(data.read_text(encoding="utf-8"))
    assert found["got_worse"] is True
    assert [item["file"] for item in found["results"]] == ["old.json", "leaking.json"]
    assert str(folder) not in page.read_text(encoding="utf-8") + data.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c p.html", "ç.json"]


def test_json_to_standard_output(folder, capsys):
    """With --json - only JSON is printed."""
    assert run(folder / "old.json", folder / "new.json", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "comparison"


def test_a_table_says_more(folder, tmp_path, capsys):
    """Strategies and utilities come from --about, by the names of the files."""
    about = tmp_path / "about.csv"
    about.write_text("result,strategy,utility\nold.json,one,0.5\nnew.json,one,0.6\nleaking.json,two,0.9\n")
    results = [folder / f"{name}.json" for name in ("old", "new", "leaking")]
    assert run(*results, "--about", about, "--measure", "auc", "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in found["strategies"]] == ["one", "two"]
    assert found["strategies"][0]["utility"] == {"mean": pytest.approx(0.55), "least": 0.5, "most": 0.6}
    assert found["measure"] == "auc"


def test_a_baseline_among_the_results_is_read_once(folder, capsys):
    """The baseline named by another spelling of its path is the same file."""
    other = folder / ".." / folder.name / "new.json"
    assert run(folder / "old.json", folder / "new.json", "--baseline", other, "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["baseline"], len(found["results"])) == (2, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("old", "missing"), "missing.json"),
        (("old", "new", "--measure", "auk"), "'auk'; did you mean 'auc'?"),
        (("old", "new", "--about", "missing"), "missing.json"),
        (("old", "new", "leaking", "--fail-if-worse"), "--fail-if-worse needs a baseline, got 3 results"),
        (("old", "new", "--html", "old"), "is a file that this command reads"),
        (("old", "new", "--baseline", "old", "--html", "-"), "--html - is not offered"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(folder, arguments, words, capsys):
    """Every bad argument is one sentence and code 2, and no file is changed."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    names = {"old", "new", "leaking", "missing"}
    given = [folder / f"{word}.json" if word in names else word for word in arguments]
    assert run(*given, "--json", folder / "out.json") == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert len(printed.err.splitlines()) == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_is_no_result_is_refused(folder, tmp_path, capsys):
    """A file that is JSON and no result is refused by its name."""
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert run(folder / "old.json", other) == 2
    assert "other.json" in capsys.readouterr().err
