"""The command `auditor canaries`: a table or a text in, canaries with their coins out, and the way on."""

import shlex

import numpy as np
import pandas as pd
import pytest
from command_line import refused, run
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import KNeighborsClassifier

from auditor import canaries


@pytest.fixture
def spare(tmp_path):
    """A table of records with ids, and the records that are trained on anyway."""
    frame = load_breast_cancer(as_frame=True).frame
    frame.insert(0, "id", [f"p{row:03d}" for row in range(len(frame))])
    frame["centre"] = np.where(np.arange(len(frame)) % 3 == 0, "north", "south")
    path = tmp_path / "spare.csv"
    frame[269:].to_csv(path, index=False)
    return path, frame[:269]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_from_a_table_to_an_audit(spare, tmp_path, monkeypatch, capsys, ending):
    """The commands that are printed at the end score and audit the canaries, those left out too."""
    import skops.io

    path, trained_on = spare
    monkeypatch.chdir(tmp_path)
    out, coins = tmp_path / f"canaries.{ending}", tmp_path / "coins.csv"
    made = ("canaries", path, "--label", "target", "--size", 300, "--out", out, "--coins", coins, "--seed", 1)
    assert run(*made, "--features", ",".join(trained_on.columns[1:-2])) == 0
    printed = capsys.readouterr().out
    table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert list(table) == ["id", *trained_on.columns[1:-2], "target", "member"]
    assert canaries.read_coins(coins).member.tolist() == (table["member"] == 1).tolist()
    assert f"300 canaries in {out}, {table['member'].sum()} of them with member 1." in printed
    planted = table[table["member"] == 1].drop(columns=["id", "member"])
    whole = pd.concat([trained_on[planted.columns], planted])
    model = KNeighborsClassifier(1, algorithm="brute").fit(whole.drop(columns="target"), whole["target"])
    skops.io.dump(model, tmp_path / "model.skops")
    commands = [line.split() for line in printed.splitlines() if line.startswith("  auditor ")]
    assert [words[1] for words in commands] == ["collect", "audit"]
    for words in commands:
        line = shlex.join(["model.skops" if word == "MODEL" else word for word in words[1:]])
        assert run(*shlex.split(line)) == 0, line
    assert (tmp_path / "report.html").exists()
    assert len(pd.read_parquet(tmp_path / "losses.parquet")) == 300


def test_every_kind_is_made(spare, tmp_path):
    """A pattern, wrong labels and texts, each as its function makes it with this seed."""
    path, _ = spare
    given = pd.read_csv(path)
    features, labels = given.drop(columns=["id", "target"]), given["target"]
    out = tmp_path / "made.parquet"
    stamp = {"mean radius": 99.5, "centre": "west"}
    cases = (
        (
            ("--kind", "pattern", "--pattern", "mean radius=99.5", "--pattern", "centre=west"),
            canaries.patterned(features, labels, size=9, pattern=stamp, seed=4),
        ),
        (("--kind", "mislabelled"), canaries.mislabelled(features, labels, size=9, seed=4)),
    )
    for arguments, expected in cases:
        about = ["--label", "target", "--size", "9", "--seed", "4", "--overwrite", "--quiet"]
        assert run("canaries", path, *about, *arguments, "--out", out) == 0
        found = pd.read_parquet(out).drop(columns=["id", "target", "member"])
        pd.testing.assert_frame_equal(found, expected.features, check_dtype=False)
    texts = shlex.split("canaries --kind text --template 'key ###' --alphabet 01 --size 8 --quiet --out")
    assert run(*texts, tmp_path / "t.csv") == 0
    table = pd.read_csv(tmp_path / "t.csv")
    assert sorted(table["text"]) == [f"key {number:03b}" for number in range(8)]
    assert list(table) == ["id", "text", "member"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("spare.csv --size 9", "TABLE and --label must be given"),
        ("--size 9", "TABLE and --label must be given"),
        ("spare.csv --label targe --size 9", "did you mean 'target'?"),
        ("spare.csv --label target --size 900", "size must be at most 300, the number of records, got 900"),
        ("spare.csv --label target --size 9 --pattern a=1", "--pattern goes with --kind pattern."),
        ("spare.csv --label target --size 9 --kind pattern", "--pattern FEATURE=VALUE must be given"),
        (
            "spare.csv --label target --size 9 --kind pattern --pattern age",
            "--pattern must be FEATURE=VALUE, got 'age'.",
        ),
        ("spare.csv --label target --size 9 --kind pattern --pattern age=1", "pattern must name features"),
        (
            "spare.csv --label target --size 9 --kind pattern --pattern 'mean area=x'",
            "must be a number for 'mean area'",
        ),
        ("spare.csv --label centre --features 'mean area,nope' --size 9", "column 'nope' is not in"),
        ("spare.csv --kind text --size 9", "TABLE goes without --kind text"),
        ("--kind text --label y --size 9", "--label goes without --kind text"),
        ("--kind text --template secret --size 9", "must be a text with a #"),
        ("--kind texts --size 9", "Choose from"),
        (
            "--kind text --size 9 --coins coins.xlsx",
            "--out and --coins must end in .csv or .parquet, got 'coins.xlsx'",
        ),
        ("--kind text --size 9 --coins made.csv", "is named twice"),
        (
            "--kind text --size 9 --coins spare.csv",
            "is there already, and coins cannot be had again; name another, or request that it is overwritten",
        ),
        (
            "spare.csv --label target --size 9 --coins spare.csv --overwrite",
            "is a file that this command reads",
        ),
    ],
)
@pytest.mark.usefixtures("spare")
def test_bad_input_is_exit_code_2_and_writes_nothing(tmp_path, monkeypatch, capsys, arguments, words):
    """One sentence, in the names of the options, and no file."""
    monkeypatch.chdir(tmp_path)
    assert words in refused(capsys, "canaries", *shlex.split(arguments), "--out", "made.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["spare.csv"]
