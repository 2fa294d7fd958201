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
    files = ("--members", tmp_path / "in.parquet", "--nonmembers", tmp_path / "out.csv")
    result = answer(capsys, "audit", *files, "--loss-column", "s", "--higher-is-member")
    expected = auditor.audit(auditor.Losses(member=member, nonmember=nonmember))
    rows = {row["name"]: row["value"] for row in result["estimates"]}
    assert rows["auc"] == pytest.approx(expected.estimate("auc").value)
    assert result["data"]["n_nonmember"] == 400


SOLVE = "claim --solve-for noise-multiplier"
RUN = "--noise-multiplier 1 --sampling-rate 0.01 --steps 1000"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--delta -1", ["delta must lie in [0, 1), got -1"]),
        ("--seed 1.5", ["--seed must be a whole number, got '1.5'"]),
        ("--claim-epsilon 1", ["--claim-delta", "missing"]),
        ("--noise-multiplier 1", ["--sampling-rate", "--steps", "--set schedule", "missing"]),
        ("--noise-multiplier 1 --claim-epsilon 1", ["one claim at a time"]),
        ("--claim-delta 0 --set claim-rho=1", ["one claim at a time", "--claim-delta", "--set claim-rho"]),
        ("--set claim-mu=1 --set claim-points=1:0", ["one claim at a time", "give one"]),
        ("--set claim-unit=person", ["--claim-epsilon", "claim-mu", "missing"]),
        ("--set claim-mu=-1", ["claimed mu must be above 0"]),
        ("--set claim-points=1:0.1,2", ["--set claim-points must be epsilon:delta", "1:0.1,2"]),
        ("--split propensity", ["features must be given once"]),
        ("--split propensity:overlap=0.7", ["overlap must lie in (0, 0.5)"]),
        ("--split random:stratified=x", ["stratified must be bool, got 'x'"]),
        ("--split random:0.5:seed=3", ["split must be one of", "has the fields stratified"]),
        ("--set coverage=subset", ["coverage 'subset' needs of, as in 'subset:VALUE'"]),
        ("--members a.csv", ["LOSSES", "--nonmembers"]),
        ("--json /dev/null", ["is not an ordinary file"]),
        ("--html {folder}/" + 300 * "a", ["is not a path that can be written"]),
        ("--set mixture=x", ["--set mixture must be a whole number, got 'x'"]),
        ("--set one-run-test=f-dp", ["--set one-run-test goes with --split random"]),
        ("--reference nowhere.csv", ["nowhere.csv"]),
        ("--set 'utility=1: '", ["utility name"]),
        # What else is no feature and no reference `read_features` and the placebo check hold.
        ("--features age,,income", ["--features must be names separated by single commas"]),
        ("--features id,loss --set person-column=id", ["must not name 'id'"]),
        ("--reference {table}", ["reference losses are the audited losses"]),
        ("--set schedule={table} --steps 3", ["cannot be combined with --steps"]),
        ("--set records=ranking.txt", [".csv or .parquet"]),
        (
            "power --epsilon 1 --delta 1e-5 --attack gaussian",
            ["attack 'gaussian' needs mu, as in 'gaussian:VALUE'"],
        ),
        ("power --epsilon 1 --delta 1e-5 --attack gausian:1", ["did you mean 'gaussian'"]),
        ("power --epsilon 1 --delta 1e-5 --adjacency add-remove", ["adjacency", "give runs"]),
        ("power --claim-epsilon 1 --claim-delta 1e-5", ["declared split"]),
        ("power --epsilon 1", ["one target"]),
        ("claim", ["--delta must be given: the delta at which to state epsilon."]),
        (
            "claim --delta 1e-5 --noise-multiplier 0 --sampling-rate 1 --steps 3",
            ["noise_multiplier must be above 0"],
        ),
        ("claim --delta 1e-5 --noise-multiplier 1 --sampling-rate 1/0 --steps 3", ["--sampling-rate", "1/0"]),
        ("claim --delta 1e-5 --noise-multiplier 1 --sampling-rate 1e999999999 --steps 3", ["sampling_rate"]),
        (
            "claim --delta 1e-5 --noise-multiplier 1 --sampling-rate 0.1 --set epochs=inf",
            ["epochs must be finite"],
        ),
        ("claim --delta 1e-5 {run} --set epochs=3", ["--set epochs", "--steps", "one of the two"]),
        ("claim --delta 1e-5 {run} --fpr 0", ["--fpr", "(0, 1]"]),
        ("claim --delta 1e-5 {run} --target advantage:0.1", ["--target goes with --solve-for"]),
        ("{solve} --sampling-rate 0.01 --steps 9", ["--solve-for needs --target", "got none"]),
        ("{solve} --sampling-rate 0.01 --steps 9 --target advantages:0.1", ["did you mean 'advantage'"]),
        ("{solve} --sampling-rate 0.01 --steps 9 --target epsilon:1", ["'epsilon' needs most and delta"]),
        (
            "{solve} --sampling-rate 0.01 --steps 9 --target advantage:0.1,at_fpr=0.1",
            ["'advantage' has the fields most, adjacency"],
        ),
        ("{solve} --sampling-rate 0.01 --steps 9 --target success:0.6", ["'success' needs most and prior"]),
        (
            "{solve} --target advantage:0.1 --steps 5",
            ["--solve-for noise-multiplier needs --sampling-rate and --steps"],
        ),
        (
            "{solve} --target tpr:0.0010000000000000002,at_fpr=0.001 --sampling-rate 0.01 --steps 9",
            ["true positive rate", "1e-12 or more above", "0.0010000000000000002"],
        ),
        ("runs {table} --delta 1e-5 --loss-column lose", ["column 'lose' is not in"]),
        ("runs {table} --delta 1e-5 --adjacency add", ["--adjacency", "Choose from"]),
        ("runs --counts 3 4 --delta 1e-5", ["--counts needs 4 values"]),
        (
            "runs {table} --delta 1e-5 --threshold-runs {table} --threshold fixed:1",
            ["threshold must be left out beside threshold_runs"],
        ),
    ],
)
def test_bad_arguments(table, capsys, line, words):
    """Each bad argument is one sentence naming it, exit code 2, and nothing is written."""
    before = set(table.parent.iterdir())
    places = {
        "table": shlex.quote(str(table)),
        "folder": shlex.quote(str(table.parent)),
        "run": RUN,
        "solve": SOLVE,
    }
    arguments = shlex.split((f"audit {{table}} {line}" if line.startswith("--") else line).format(**places))
    said = refused(capsys, *arguments)
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
