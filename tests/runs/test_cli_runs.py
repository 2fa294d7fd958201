"""The command `auditor runs`: a table of scores in, a verdict and an exit code out."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import answer, refused, run


@pytest.fixture
def table(tmp_path, rng):
    """Scores of 2,000 runs of each world, three standard deviations apart."""
    member = np.tile([1, 0], 2000)
    path = tmp_path / "scores.csv"
    pd.DataFrame({"loss": rng.normal(size=4000) - 3 * member, "member": member}).to_csv(path, index=False)
    return path


def test_a_refuted_claim_is_exit_code_1(table, tmp_path, capsys):
    """A claim below the bound is refuted, with the reason on standard error and the numbers on standard output."""
    target = tmp_path / "runs.json"
    claim = ("--claim-epsilon", 1, "--claim-delta", 1e-5)
    assert run("runs", table, *claim, "--json", target) == 1
    printed = capsys.readouterr()
    assert "Do not release. The claim is refuted: epsilon 1 claimed, at least" in printed.out
    assert "The claim is refuted." in printed.err
    raw = json.loads(target.read_text(encoding="utf-8"))
    assert (raw["kind"], raw["verdict"], raw["data"]["n_with"]) == ("runs", "refuted", 2000)
    assert raw["provenance"]["source"] == "scores.csv"
    assert raw["provenance"]["command"].startswith("auditor runs ")
    assert run("runs", table, "--claim-epsilon", 5.5, "--claim-delta", 1e-5, "--quiet") == 0


def test_a_threshold_is_on_the_score_as_it_is_in_the_table(tmp_path, capsys):
    """Where a larger score is like the canary, the threshold stays the one that was given: at least 2, and not at most."""
    member = np.tile([1, 0], 100)
    score = np.where(np.arange(200) % 10 < 4, 3.0, 1.0) * member
    hits = int((score[member == 1] >= 2).sum())
    assert 0 < hits < 100
    for name, sign in (("up", 1), ("down", -1)):
        pd.DataFrame({"loss": sign * score, "member": member}).to_csv(tmp_path / f"{name}.csv", index=False)
    up = ("runs", tmp_path / "up.csv", "--delta", 1e-5, "--higher-is-member", "--threshold", "fixed:2")
    for line, words in (
        (up, f"{hits} of 100 with it and 0 of 100 without have a score of at least that"),
        (
            ("runs", tmp_path / "down.csv", "--delta", 1e-5, "--threshold", "fixed:-2"),
            f"{hits} of 100 with it and 0 of 100 without have a score of at most that",
        ),
    ):
        assert run(*line, "--full") == 0
        assert words in " ".join(capsys.readouterr().out.replace("−", "-").split())  # noqa: RUF001 the true minus sign
    data = answer(capsys, *up)["data"]
    assert (data["true_positives"], data["false_positives"], data["higher_is_member"]) == (hits, 0, True)


def test_the_threshold_can_be_chosen_in_each_way(table, tmp_path, rng, capsys):
    """Fixed, on other runs, on a grid of ranks, or by half of the runs; two ways at once are refused."""
    others = tmp_path / "earlier.csv"
    member = np.tile([1, 0], 100)
    frame = pd.DataFrame({"loss": rng.normal(size=200) - 3 * member, "member": member})
    frame.to_csv(others, index=False)
    ways = {
        (): "chosen on 1,000 other runs with it",
        ("--threshold", "fixed:-1.5"): "At one threshold, -1.5, fixed in advance",
        ("--threshold-runs", others): "chosen on 100 other runs with it",
        (
            "--threshold",
            "rank-grid",
        ): "ranks fixed in advance",
    }
    for arguments, words in ways.items():
        assert run("runs", table, "--delta", 1e-5, "--full", *arguments) == 0
        assert words in " ".join(capsys.readouterr().out.replace("−", "-").split())  # noqa: RUF001 the true minus sign


def test_counts_of_a_published_audit_are_judged(capsys):
    """Tramer et al. 2022 report 4,922 and 174 of 100,000 runs and epsilon above 2.79 at 1 - 1e-10: so do counts typed here."""
    told = ("--counts", 4922, 100_000, 174, 100_000, "--claim-epsilon", 0.21, "--claim-delta", 1e-5)
    found = answer(capsys, "runs", *told, "--confidence", "0.9999999999", code=1)
    rows = {item["name"]: item for item in found["estimates"]}
    assert 2.79 < rows["epsilon_bound.clopper_pearson"]["value"] < 2.80
    assert (found["data"]["true_positives"], found["data"]["false_positives"]) == (4922, 174)
    assert (found["verdict"], found["provenance"]["source"]) == ("refuted", None)
    assert found["data"]["history"] == [
        "4,922 of 100,000 runs with the canary and 174 of 100,000 without it were called runs with it"
    ]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (
            ("--counts", 30, 20, 1, 20),
            "runs with the canary must be at least as many as their positives and at most 10,000,000, got 20 with 30",
        ),
        (
            ("--counts", 3, 20, 9, 10**8),
            "and at most 10,000,000, got 100,000,000 with 9 positives.",
        ),
        (
            ("--counts", 0, 1, 0, 9),
            "counts of runs with the canary must be a whole number of 2 or more, got 1.",
        ),
        (
            ("--counts", 0, 9, -1, 9),
            "counts of positives among runs without it must be a whole number of 0 or more, got -1.",
        ),
        (("--counts", 1, 9, 1, 9, "--threshold", "rank-grid"), "threshold must be left out beside counts"),
        (("--counts", 1, 9, 1, 9, "--test", "sequential"), "test must be left out beside counts"),
        (("scores.csv", "--counts", 1, 9, 1, 9), "give either a TABLE of scores, or --counts."),
        ((), "give either a TABLE of scores, or --counts."),
    ],
)
def test_counts_that_cannot_be_are_one_sentence(typed, words, capsys):
    """Counts that no runs have, or beside what needs the scores, are refused with the option and the value."""
    assert words in refused(capsys, "runs", *typed, "--delta", 1e-5)


def test_runs_that_could_not_judge_the_claim_end_with_3(tmp_path, rng, capsys):
    """Ten runs of each world cannot refute an epsilon of 5: exit code 3 with one line, with --quiet too, unless allowed."""
    path, member = tmp_path / "few.csv", np.tile([1, 0], 10)
    pd.DataFrame({"loss": rng.normal(size=20) - 9 * member, "member": member}).to_csv(path, index=False)
    typed = ("runs", path, "--claim-epsilon", 5, "--claim-delta", 1e-5, "--quiet")
    assert run(*typed) == 3
    told = capsys.readouterr().err
    assert told.startswith(
        "The claim could not be judged (allow_unjudged lets it pass): This audit could not have refuted"
    )
    assert told.count("\n") == 1
    assert run(*typed, "--set", "allow-unjudged") == 0
    assert capsys.readouterr().err == ""
