"""The command `auditor runs`: a table of scores in, a verdict and an exit code out."""

import json

import numpy as np
import pandas as pd
import pytest

from auditor.cli import app


@pytest.fixture
def table(tmp_path, rng):
    """Scores of 2,000 runs of each world, three standard deviations apart."""
    member = np.tile([1, 0], 2000)
    path = tmp_path / "scores.csv"
    pd.DataFrame({"loss": rng.normal(size=4000) - 3 * member, "member": member}).to_csv(path, index=False)
    return path


def run(*arguments):
    """The exit code of a command line."""
    return app.run([str(item) for item in arguments])


def test_a_refuted_claim_is_exit_code_1(table, tmp_path, capsys):
    """A claim below the bound is refuted, with the reason on standard error and the numbers on standard output."""
    target = tmp_path / "runs.json"
    claim = ("--claim-epsilon", 1, "--claim-delta", 1e-5)
    assert run("runs", table, *claim, "--json", target) == 1
    printed = capsys.readouterr()
    assert "Claim refuted" in printed.out
    assert "The claim is refuted." in printed.err
    raw = json.loads(target.read_text(encoding="utf-8"))
    assert (raw["kind"], raw["verdict"], raw["data"]["n_with"]) == ("runs", "refuted", 2000)
    assert raw["provenance"]["source"] == "scores.csv"
    assert raw["provenance"]["command"].startswith("auditor runs ")
    assert run("runs", table, "--claim-epsilon", 5.5, "--claim-delta", 1e-5, "--quiet") == 0


def test_a_threshold_is_on_the_score_as_it_is_in_the_table(tmp_path, capsys):
    """Where a larger score is like the canary, the threshold stays the one that was given: at least 2, and not at most."""
    path = tmp_path / "scores.csv"
    member = np.tile([1, 0], 100)
    score = (
        np.where(np.arange(200) % 10 < 4, 3.0, 1.0) * member
    )  # 60 or so of the runs with the canary have 3 or 1
    pd.DataFrame({"loss": score, "member": member}).to_csv(path, index=False)
    hits = int((score[member == 1] >= 2).sum())
    assert 0 < hits < 100
    target = tmp_path / "runs.json"
    command = ("runs", path, "--delta", 1e-5, "--higher-is-member", "--threshold", 2, "--json", target)
    assert run(*command) == 0
    assert f"{hits} with it and 0 without have a score of at least 2" in capsys.readouterr().out
    data = json.loads(target.read_text(encoding="utf-8"))["data"]
    assert (data["true_positives"], data["false_positives"], data["higher_is_member"]) == (hits, 0, True)
    turned = tmp_path / "turned.csv"
    pd.DataFrame({"loss": -score, "member": member}).to_csv(turned, index=False)
    assert run("runs", turned, "--delta", 1e-5, "--threshold", -2) == 0
    printed = capsys.readouterr().out.replace("−", "-")  # noqa: RUF001 the true minus sign
    assert f"{hits} with it and 0 without have a score of at most -2" in printed


def test_the_threshold_can_be_chosen_in_each_way(table, tmp_path, rng, capsys):
    """Fixed, on other runs, on a grid of ranks, or by half of the runs; two ways at once are refused."""
    others = tmp_path / "earlier.csv"
    pd.DataFrame(
        {"loss": rng.normal(size=200) - np.tile([3, 0], 100), "member": np.tile([1, 0], 100)}
    ).to_csv(others, index=False)
    ways = {
        (): "chosen on 1,000 other runs with it",
        ("--threshold", "-1.5"): "at most -1.5, a threshold fixed in advance",
        ("--threshold-runs", others): "chosen on 100 other runs with it",
        ("--rank-grid",): "ranks fixed in advance",
    }
    for arguments, words in ways.items():
        assert run("runs", table, "--delta", 1e-5, *arguments) == 0
        assert words in capsys.readouterr().out.replace("−", "-")  # noqa: RUF001 the true minus sign
    assert run("runs", table, "--delta", 1e-5, "--rank-grid", "--threshold", 1) == 2
    assert (
        "one way to choose the threshold at a time: give --threshold or --rank-grid."
        in capsys.readouterr().err
    )


def test_columns_and_worlds_are_as_told(table, tmp_path, capsys):
    """Columns of other names, scores that are higher with the canary, and replaced records are read as told."""
    frame = pd.read_csv(table).rename(columns={"loss": "score", "member": "canary"})
    frame["score"] *= -1
    frame.to_csv(tmp_path / "named.csv", index=False)
    assert run("runs", table, "--delta", 1e-5, "--adjacency", "replace-one", "--json", "-") == 0
    first = json.loads(capsys.readouterr().out)
    names = ("--loss-column", "score", "--member-column", "canary", "--higher-is-member")
    assert (
        run(
            "runs",
            tmp_path / "named.csv",
            *names,
            "--delta",
            1e-5,
            "--adjacency",
            "replace-one",
            "--json",
            "-",
        )
        == 0
    )
    second = json.loads(capsys.readouterr().out)
    assert first["estimates"] == second["estimates"]
    assert first["data"]["adjacency"] == "replace-one"


def test_a_configuration_file_gives_the_claim(table, tmp_path, monkeypatch, capsys):
    """The table [runs] of a configuration file sets options, and the result says so."""
    (tmp_path / "auditor.toml").write_text(
        "[runs]\nclaim-epsilon = 1\nclaim-delta = 1e-5\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    assert run("runs", table, "--json", "-") == 1
    printed = capsys.readouterr()
    assert "claim-epsilon" in printed.err
    assert json.loads(printed.out)["provenance"]["config"]["settings"]["claim-epsilon"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--delta is needed"),
        (("--delta", "1e-5", "--loss-column", "lose"), "column 'lose' is not in"),
        (("--delta", "1e-5", "--adjacency", "add"), "--adjacency must be one of"),
    ],
)
def test_bad_input_is_exit_code_2(table, arguments, words, capsys):
    """A missing delta, an unknown column or world is one sentence."""
    assert run("runs", table, *arguments) == 2
    assert words in capsys.readouterr().err
