"""The command line: what it writes, its exit codes, and one sentence for every bad input."""

import os
import shlex

import pandas as pd
import pytest
from command_line import answer, refused, run

import auditor


def test_two_files_and_a_score(tmp_path, rng, capsys):
    """Two files, a named column and a score whose high values mean member give the same as losses."""
    member, nonmember = rng.normal(-2, 1, 300), rng.normal(0, 1, 400)
    pd.DataFrame({"s": -member}).to_parquet(tmp_path / "in.parquet")
    pd.DataFrame({"s": -nonmember}).to_csv(tmp_path / "out.csv", index=False)
    files = ("--member-file", tmp_path / "in.parquet", "--nonmember-file", tmp_path / "out.csv")
    found = answer(capsys, "audit", *files, "--loss-column", "s", "--higher-is-member")
    expected = auditor.audit(auditor.Losses(member=member, nonmember=nonmember))
    rows = {row["name"]: row["value"] for row in found["estimates"]}
    assert rows["auc"] == pytest.approx(expected.estimate("auc").value)
    assert found["data"]["n_nonmember"] == 400


GOOD_ROWS = "".join(f"{i / 7},{i % 2}\n" for i in range(40))
# How each kind of file is read and refused, `collectors/test_files.py` holds; here one of each way to go wrong.
BAD_FILES = {
    "bad.csv": ("loss,member\nnan,1\n" + GOOD_ROWS, ["loss", "1 NaN", "row 2"]),
    "empty.csv": ("", ["empty"]),
    "bad.pkl": ("\x80\x04\x95", ["pickle"]),
    "missing.csv": (None, ["missing.csv"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(tmp_path, capsys, name):
    """Each bad file is one sentence on standard error, exit code 2, no traceback and no output file."""
    content, words = BAD_FILES[name]
    path, page = tmp_path / name, tmp_path / "page.html"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    said = refused(capsys, "audit", path, "--html", page)
    assert [word for word in words if word not in said] == []
    assert not page.exists()


RUN = "--noise-multiplier 1 --sampling-rate 0.01 --steps 1000"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--delta 1", ["delta", "[0, 1)", "1"]),
        ("--claim-epsilon 1", ["--claim-delta", "missing"]),
        ("--noise-multiplier 1", ["--sampling-rate", "--steps"]),
        ("--noise-multiplier 1 --claim-epsilon 1", ["one claim at a time"]),
        ("--sampler shuffled --claim-mu 1", ["one claim at a time", "--claim-mu", "--sampler"]),
        ("--claim-delta 0 --claim-rho 1", ["one claim at a time", "--claim-delta", "--claim-rho"]),
        ("--claim-mu 1 --claim-points 1:0", ["one claim at a time", "give one"]),
        ("--claim-unit person", ["--claim-epsilon", "--claim-mu", "missing"]),
        ("--claim-mu -1", ["--claim-mu must be above 0"]),
        ("--claim-rho 0", ["--claim-rho must be above 0"]),
        ("--claim-points 1:0.1,2", ["--claim-points must be epsilon:delta", "1:0.1,2"]),
        ("--claim-points x:0.1", ["claimed epsilon of point 1 must be a number", "'x'"]),
        ("--overlap 0.2", ["--overlap goes with --split propensity"]),
        ("--split propensity", ["features must be given once"]),
        ("--split propensity --overlap 0.7", ["overlap must lie in (0, 0.5)"]),
        ("--inclusion 0.5", ["--split bernoulli"]),
        ("--member-file a.csv", ["LOSSES", "--nonmembers"]),
        ("--json /dev/null", ["is not an ordinary file"]),
        ("--html {folder}/" + 300 * "a", ["is not a path that can be written"]),
        ("--split unknown --stratified", ["--split random"]),
        ("--max-components 3", ["--max-components goes with --mixture"]),
        ("--one-run-test f-dp", ["--one-run-test goes with --split random"]),
        ("--reference nowhere.csv", ["nowhere.csv"]),
        ("--utility-name accuracy", ["--utility-name goes with --utility"]),
        ("--utility 1 --utility-name ' '", ["--utility-name"]),
        # What else is no feature and no reference `read_features` and the placebo check hold.
        ("--features age,,income", ["--features must be names with one comma between each two"]),
        ("--features id,loss --person-column id", ["must not name 'id'"]),
        ("--reference {table}", ["reference losses are the audited losses"]),
        ("--members subset", ["--training-size"]),
        ("--members census --member-coverage sample", ["contradicts --member-coverage sample"]),
        ("--schedule {table} --steps 3", ["cannot stand beside --steps"]),
        ("--records ranking.txt", [".csv or .parquet"]),
        ("power --epsilon 1 --delta 1e-5 --training-size 300", ["--member-coverage subset"]),
        ("power --epsilon 1 --delta 1e-5 --mu 1 --attack-epsilon 1", ["--attack-epsilon"]),
        ("power --epsilon 1 --delta 1e-5 --sequential", ["--sequential goes with --runs"]),
        ("power --epsilon 1 --delta 1e-5 --canaries --split random", ["--canaries is --split bernoulli"]),
        ("power --claim-epsilon 1 --claim-delta 1e-5", ["declared split"]),
        ("power --epsilon 1", ["one target"]),
        (
            "claim --delta 1e-5 --noise-multiplier 0 --sampling-rate 0.1 --steps 3",
            ["--noise-multiplier", "above 0"],
        ),
        ("claim --delta 1e-5 --noise-multiplier 1 --sampling-rate 0.1 --steps 2.5", ["--steps", "2.5"]),
        ("claim --delta 1e-5 --noise-multiplier 1", ["missing", "--sampling-rate", "--steps", "--schedule"]),
        ("claim --delta 1e-5 --noise-multiplier 1 --sampling-rate 1/0 --steps 3", ["--sampling-rate", "1/0"]),
        (
            "claim --delta 1e-5 --noise-multiplier 1 --sampling-rate 1e999999999 --steps 3",
            ["--sampling-rate"],
        ),
        ("claim --delta 1e-5 --noise-multiplier 1 --sampling-rate 0.1 --epochs inf", ["--epochs"]),
        ("claim --delta 1e-5 {run} --epochs 3", ["--epochs", "--steps", "one of the two"]),
        ("claim --delta 1e-5 --noise-multiplier 1 --sampling-rate 0.1 --epochs -1", ["--epochs", "above 0"]),
        ("claim --delta 1e-5 {run} --schedule x.csv", ["--schedule", "cannot stand beside"]),
        ("claim --delta 1e-5 {run} --delta 1", ["--delta", "[0, 1)"]),
        ("claim --delta 1e-5 {run} --fpr 0", ["--fpr", "(0, 1]"]),
        ("claim --delta 1e-5 {run} --monte-carlo 1", ["--monte-carlo", "2 or more"]),
        ("parameters", ["one wish at a time", "got none"]),
        (
            "parameters --advantage 0.1 --bayes-security 0.9",
            ["one wish at a time", "--advantage, --bayes-security"],
        ),
        ("parameters --epsilon 1", ["--epsilon and --delta go together"]),
        ("parameters --advantage 0.1 --at-fpr 0.1", ["--tpr and --at-fpr go together"]),
        ("parameters --success 0.6", ["--success and --prior go together"]),
        ("parameters --advantage 0.1 --steps 5", ["give two of", "got 1"]),
        (
            "parameters --tpr 0.0010000000000000002 --at-fpr 0.001 --sampling-rate 0.01 --steps 9",
            ["--tpr", "1e-12 or more above", "0.0010000000000000002"],
        ),
        (
            "parameters --advantage 1e-12 --sampling-rate 0.01 --steps 1000000000",
            ["no noise multiplier up to 1e12 was found", "ask for less protection"],
        ),
        ("runs {table}", ["--delta is needed"]),
        ("runs {table} --delta 1e-5 --loss-column lose", ["column 'lose' is not in"]),
        ("runs {table} --delta 1e-5 --adjacency add", ["--adjacency cannot be 'add'"]),
        (
            "runs {table} --delta 1e-5 --rank-grid --threshold 1",
            ["one way to choose the threshold at a time: give --threshold or --rank-grid."],
        ),
    ],
)
def test_bad_arguments(table, capsys, line, words):
    """Each bad argument is one sentence naming it, exit code 2, and nothing is written."""
    before = set(table.parent.iterdir())
    places = {"table": shlex.quote(str(table)), "folder": shlex.quote(str(table.parent)), "run": RUN}
    given = shlex.split((f"audit {{table}} {line}" if line.startswith("--") else line).format(**places))
    said = refused(capsys, *given)
    assert [word for word in words if word not in said] == []
    assert set(table.parent.iterdir()) == before


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


def test_the_version(capsys):
    """`auditor --version` prints the version."""
    assert run("--version") == 0
    assert capsys.readouterr().out == f"auditor {auditor.__version__}\n"


def test_the_demo_refutes_a_false_claim_and_not_a_true_one(tmp_path, capsys):
    """The demo trains three models, writes one page comparing them and prints its path."""
    page = tmp_path / "demo.html"
    assert run("demo", "--html", page) == 0
    assert str(page) in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    for name, verdict in (
        ("A forest that claims epsilon 0.5", "Claim refuted"),
        ("A logistic regression", "No claim"),
        ("The same trained with DP-SGD", "Claim not refuted"),
    ):
        row = text.partition(f"<bdi>{name}</bdi></a></th>")[2].partition("</tr>")[0]
        assert verdict in row
    assert len(text) < 1_000_000
