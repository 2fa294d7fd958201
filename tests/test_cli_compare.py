"""The command `auditor compare`: what it writes, and what it says to a pipeline."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import answer, refused, run as run_line

import auditor


def run(*arguments):
    """Run the command line in this process."""
    return run_line("compare", *arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results in a folder with a space and an umlaut: two quiet ones, a leaking one, and one that cannot be compared."""
    made = tmp_path_factory.mktemp("Prüfungen von heute")
    rng = np.random.default_rng(5)
    for name, shift, accuracy in (
        ("old", 0, 0.8),
        ("new", 0, 0.81),
        ("leaking", 1.5, 0.9),
        ("broken", 0, 0.7),
    ):
        losses = auditor.Losses(member=rng.normal(-shift, 1, 500), nonmember=rng.normal(0, 1, 500))
        result = auditor.audit(losses, delta=1e-5, model=name, utility=auditor.Utility(accuracy, "accuracy"))
        if name == "broken":
            check = auditor.results.Check(
                "duplicates", auditor.results.Status.FAIL, "Records are in both groups."
            )
            result = replace(result, checks=(check, *result.checks))
        result.to_json(made / f"{name}.json")
    return made


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("old", "new"), 0),
        (("old", "leaking"), 1),
        (("old", "broken"), 3),
        (("leaking", "--baseline", "old"), 1),
        (("leaking", "broken", "--baseline", "old"), 1),
        (("new", "broken", "--baseline", "old"), 3),
        (("old", "new", "leaking"), 2),
        (("old", "old"), 2),
    ],
)
def test_the_gate_stops_what_got_worse(folder, arguments, code, capsys):
    """1 for more leakage, 3 for what cannot be compared, 2 for bad input, 0 only for no more leakage shown."""
    inputs = [word if word.startswith("--") else folder / f"{word}.json" for word in arguments]
    assert run(*inputs, "--fail-if-worse", "--quiet") == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (printed.err != "") == (code != 0)


def test_losses_are_no_results(folder, capsys):
    """Tables of losses in place of results are refused with the command that audits them."""
    table = folder / "losses.csv"
    table.write_text("loss,member\n1.0,0\n2.0,1\n")
    assert "auditor audit FILE --json RESULT.json" in refused(capsys, "compare", folder / "old.json", table)


def test_the_reason_is_on_standard_error(folder, capsys):
    """Each audit that is worse or not comparable has one line on standard error, the worse ones first, quiet or not."""
    names = [folder / f"{word}.json" for word in ("old", "new", "broken", "leaking")]
    for quiet in ((), ("--quiet",)):
        assert run(*names, "--baseline", names[0], "--fail-if-worse", *quiet) == 1
        lines = capsys.readouterr().err.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["4. leaking", "3. broken"]
        assert "rose from" in lines[0]
        assert "duplicates" in lines[1]
    assert run(*names, "--baseline", names[0]) == 0
    printed = capsys.readouterr()
    assert "ore leakage" in printed.out
    assert printed.err == ""


def test_page_and_json_are_written_together(folder, tmp_path, capsys):
    """Both outputs are there and say the same, and nothing else is written."""
    page, data = tmp_path / "c p.html", tmp_path / "ç.json"
    assert run(folder / "old.json", folder / "leaking.json", "--html", page, "--json", data, "-q") == 0
    assert capsys.readouterr().out == ""
    result = json.loads(data.read_text(encoding="utf-8"))
    assert result["got_worse"] is True
    assert [item["file"] for item in result["results"]] == ["old.json", "leaking.json"]
    assert str(folder) not in page.read_text(encoding="utf-8") + data.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c p.html", "ç.json"]


def test_a_table_says_more(folder, tmp_path, capsys):
    """Strategies and utilities come from --about, by the names of the files."""
    about = tmp_path / "about.csv"
    about.write_text("result,strategy,utility\nold.json,one,0.5\nnew.json,one,0.6\nleaking.json,two,0.9\n")
    results = [folder / f"{name}.json" for name in ("old", "new", "leaking")]
    result = answer(capsys, "compare", *results, "--about", about, "--measure", "auc")
    assert result["kind"] == "comparison"
    assert [item["name"] for item in result["strategies"]] == ["one", "two"]
    assert result["strategies"][0]["utility"] == {"mean": pytest.approx(0.55), "least": 0.5, "most": 0.6}
    assert result["measure"] == "auc"


def test_a_copy_is_refused_before_anything_is_parsed(folder, tmp_path, monkeypatch, capsys):
    """Two files with the same content are refused by their names, with no result parsed and no losses read."""
    copy = tmp_path / "copy.json"
    copy.write_bytes((folder / "old.json").read_bytes())

    def parsed(*_, **__):
        raise AssertionError

    monkeypatch.setattr("auditor.results.reading._parsed", parsed)
    monkeypatch.setattr("auditor.cli.options.LossColumns.read_table", parsed)
    files = (folder / "old.json", folder / "new.json", copy, "--losses", folder / "old.json")
    assert "results 1 and 3" in (sentence := refused(capsys, "compare", *files))
    assert f"'{copy}') are the same audit; give each once." in sentence


def test_losses_are_matched_by_their_hash(tmp_path, capsys):
    """With the tables of both, in any order and by the audit's own columns, the command decides record by record."""
    rng, member = np.random.default_rng(6), np.arange(1600) < 800
    shared = rng.normal(size=1600)
    arguments = []
    for name, shift in (("old", 0.5), ("new", 0.7)):
        score = shift * member - shared + 0.1 * rng.normal(size=1600)
        rows = np.column_stack([np.arange(1600), score, member])
        np.savetxt(tmp_path / f"{name}.csv", rows, "%.9g", ",", header="who,score,member", comments="")
        columns = ("--loss-column", "score", "--higher-is-member", "--set", "id-column=who")
        result = tmp_path / f"{name}.json"
        assert run_line("audit", tmp_path / f"{name}.csv", *columns, "--json", result, "-q") == 0
        arguments.append(result)
    assert run(*arguments, "--fail-if-worse", "-q") == 0
    tables = [word for name in ("new", "old") for word in ("--losses", tmp_path / f"{name}.csv")]
    assert run(*arguments, *tables, *columns, "--fail-if-worse", "-q") == 1
    assert "on the same records, the advantage" in capsys.readouterr().err
    words = "no result has their hash"
    assert words in refused(capsys, "compare", *arguments, *tables, *columns[:2], *columns[3:])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("old", "missing"), "missing.json"),
        (("old", "new", "--measure", "auk"), "'auk'; did you mean 'auc'?"),
        (("old", "new", "--about", "missing"), "missing.json"),
        (
            ("old", "new", "leaking", "--fail-if-worse"),
            "got 3 results without one; name it with --baseline FILE",
        ),
        (("old", "new", "--html", "old"), "is a file that this command reads"),
        (("old", "new", "--baseline", "old", "--html", "-"), "--html - is not offered"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(folder, arguments, words, capsys):
    """Every bad argument is one sentence and code 2, and no file is changed."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    names = {"old", "new", "leaking", "missing"}
    inputs = [folder / f"{word}.json" if word in names else word for word in arguments]
    assert words in refused(capsys, "compare", *inputs, "--json", folder / "out.json")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
