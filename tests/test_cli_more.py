"""The command line beyond the first audit: mixtures, persons, features, placebo, ranking, instances, power."""

import json

import numpy as np
import pandas as pd
import pytest

from auditor.cli import app


@pytest.fixture
def table(tmp_path, rng):
    """A CSV of losses with ids, persons, a region, two features and another model's losses beside it."""
    member = np.r_[np.ones(600, int), np.zeros(600, int)]
    frame = pd.DataFrame(
        {
            "loss": rng.normal(0, 1, 1200) - 2 * member,
            "member": member,
            "record": [f"=r{number}" for number in range(1200)],
            "owner": np.repeat(np.arange(600), 2),
            "region": np.repeat(np.tile(["north", "south"], 300), 2),
            "age": rng.integers(18, 90, 1200),
            "income": rng.normal(size=1200),
        }
    )
    frame.to_csv(tmp_path / "losses.csv", index=False)
    frame.assign(loss=rng.normal(size=1200)).to_csv(tmp_path / "reference.csv", index=False)
    return tmp_path / "losses.csv"


def run(*arguments):
    """Run the command line in this process."""
    return app.run([str(argument) for argument in arguments])


def audited(table, capsys, *arguments):
    """The JSON of an audit of the table."""
    assert run("audit", table, "--json", "-", *arguments) in (0, 1)
    return json.loads(capsys.readouterr().out)


def status(result, name):
    """The status of one check."""
    return next(check["status"] for check in result["checks"] if check["name"] == name)


def test_columns_have_names_of_their_own(table, capsys):
    """Ids, groups and persons are read from the columns that are named."""
    names = ("--id-column", "record", "--group-column", "region", "--person-column", "owner")
    result = audited(table, capsys, *names)
    assert result["data"]["unit"] == "person (mean loss)"
    assert result["data"]["records"] == [600, 600]
    assert result["data"]["persons"] == [300, 300]
    assert {item["label"] for item in result["slices"] if item["kind"] == "group"} == {"north", "south"}
    by_record = audited(table, capsys, *names, "--persons", "each")
    assert by_record["data"]["n_member"] == 600
    assert status(by_record, "persons") == "warn"


def test_true_classes_are_read_where_they_are_named(table, capsys):
    """The column of classes is read only when named, for two files too, and each class is a slice."""
    result = audited(table, capsys, "--label-column", "region")
    assert {item["label"] for item in result["slices"] if item["kind"] == "class"} == {"north", "south"}
    assert not [item for item in audited(table, capsys)["slices"] if item["kind"] == "class"]
    frame = pd.read_csv(table)
    paths = [table.with_name(name) for name in ("in.csv", "out.csv")]
    for path, side in zip(paths, (1, 0), strict=True):
        frame[frame["member"] == side].drop(columns="member").to_csv(path, index=False)
    files = ("--member-file", paths[0], "--nonmember-file", paths[1], "--label-column", "region")
    assert run("audit", *files, "--json", "-") == 0
    assert {item["kind"] for item in json.loads(capsys.readouterr().out)["slices"]} == {"class", "percentile"}


def test_features_and_reference_are_checked(table, capsys):
    """Named feature columns bring the shift test, a reference table brings the placebo audit."""
    result = audited(
        table, capsys, "--features", "age, income", "--reference", table.with_name("reference.csv")
    )
    assert (status(result, "shift"), status(result, "placebo")) == ("ok", "ok")
    assert status(audited(table, capsys), "shift") == "unknown"
    assert run("audit", table, "--features", "age,incom") == 2
    assert "income" in capsys.readouterr().err


def test_mixtures_and_other_tests(table, capsys):
    """The options reach the audit: mixture rows, the f-DP test and the tighter bound."""
    options = ("--mixture", "--max-components", 2, "--split", "random", "--one-run-test", "f-dp", "--melded")
    rows = {row["name"]: row for row in audited(table, capsys, *options)["estimates"]}
    assert rows["epsilon_star.mixture"]["value"] is not None
    assert "Mahloujifar" in rows["epsilon_bound.one_run"]["method"]
    plain = {row["name"]: row for row in audited(table, capsys)["estimates"]}
    bound = "epsilon_bound.clopper_pearson"
    assert rows[bound]["value"] > plain[bound]["value"]


def test_a_subset_is_declared_with_its_size(table, capsys):
    """A random subset of a training set of known size needs that size."""
    result = audited(table, capsys, "--members", "subset", "--training-size", 5000)
    assert (result["data"]["members"], result["data"]["training_size"]) == ("subset", 5000)
    assert run("audit", table, "--members", "subset") == 2
    assert "--training-size" in capsys.readouterr().err


def test_the_ranking_is_written_with_the_rest(table, capsys):
    """The ranked records go to their file, with ids that no spreadsheet runs; another ending is refused before any work."""
    target = table.with_name("ranking.csv")
    assert run("audit", table, "--id-column", "record", "--ranking", target, "--quiet") == 0
    ranking = pd.read_csv(target)
    assert list(ranking.columns) == ["rank", "row", "id", "posterior_odds_ranking_only"]
    assert ranking["id"].str.startswith("'=r").all()
    assert len(ranking) == 600
    page = table.with_name("page.html")
    assert run("audit", table, "--ranking", table.with_name("ranking.txt"), "--html", page) == 2
    assert not page.exists()
    assert ".csv or .parquet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--split", "unknown", "--stratified"], "--split random"),
        (["--max-components", "0", "--mixture"], "--max-components"),
        (["--max-components", "3"], "--mixture"),
        (["--one-run-test", "f-dp"], "--split random"),
        (["--reference", "nowhere.csv"], "nowhere.csv"),
        (["--person-column", "nobody"], "nobody"),
    ],
)
def test_bad_choices(table, capsys, arguments, words):
    """A choice that cannot be used is one sentence with exit code 2."""
    assert run("audit", table, *arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


# --- Several models -------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path, rng):
    """The results of audits of twelve models that leak."""
    paths = []
    for number in range(12):
        member = np.r_[np.ones(300, int), np.zeros(300, int)]
        frame = pd.DataFrame({"loss": rng.normal(0, 1, 600) - 2 * member, "member": member})
        frame.to_csv(tmp_path / "one.csv", index=False)
        paths.append(tmp_path / f"{number}.json")
        assert run("audit", tmp_path / "one.csv", "--json", paths[-1], "--quiet") == 0
    return paths


def test_instances_judge_a_claim(results, tmp_path, capsys):
    """Results of several models refute a claim when a fresh random split is declared, and not without."""
    claim = ("--claim-epsilon", 0.2, "--claim-delta", 1e-5)
    target = tmp_path / "together.json"
    assert run("instances", *results, "--split", "random", *claim, "--json", target) == 1
    assert "refuted" in capsys.readouterr().out
    assert json.loads(target.read_text(encoding="utf-8"))["verdict"] == "refuted"
    assert run("instances", *results, *claim) == 0
    assert "how membership was decided" in capsys.readouterr().out


def test_instances_need_a_delta(results, capsys):
    """Without a claim the delta has to be said."""
    assert run("instances", *results, "--split", "random") == 2
    assert "--delta" in capsys.readouterr().err


# --- Plans ----------------------------------------------------------------------------------------


def test_power_answers_with_a_number_of_records(capsys):
    """The plan is printed, or given as JSON; what no number of records can certify is exit code 3."""
    assert run("power", "--epsilon", 3, "--delta", 1e-5) == 0
    assert capsys.readouterr().out.startswith("140 members and 140 non-members certify an epsilon of 3")
    assert run("power", "--epsilon", 1, "--delta", 1e-5, "--split", "random", "--mu", 1, "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["n_member"] > 14
    assert run("power", "--epsilon", 2, "--delta", 1e-5, "--attack-epsilon", 1) == 3
    assert "certifies an epsilon of 2" in capsys.readouterr().out
    assert run("power", "--epsilon", 1, "--delta", 1e-5, "--mu", 1, "--attack-epsilon", 1) == 2
    assert run("power", "--epsilon", 0, "--delta", 1e-5) == 2


def test_gates_do_not_pass_on_groups_that_cannot_be_compared(table, tmp_path, capsys):
    """Where a validity check failed, a gate on a number about leakage is not evaluable: exit code 3 either way."""
    frame = pd.read_csv(table)
    frame["age"] += 40 * frame["member"]
    frame.to_csv(tmp_path / "shifted.csv", index=False)
    for gate in ("epsilon_bound.clopper_pearson > 100", "epsilon_bound.clopper_pearson > 0.01"):
        options = ("--features", "age,income", "--fail-if", gate, "--quiet")
        assert run("audit", tmp_path / "shifted.csv", *options) == 3
    assert run("audit", table, "--features", "age,income", "--fail-if", gate, "--quiet") == 1
    capsys.readouterr()


def test_plans_refuse_what_has_no_effect(capsys):
    """A training size without a subset, and a chance that is none, are refused by the names of their options."""
    assert run("power", "--epsilon", 1, "--delta", 1e-5, "--training-size", 300) == 2
    assert "--members subset" in capsys.readouterr().err
    assert run("power", "--epsilon", 1, "--delta", 1e-5, "--chance", 1.2) == 2
    assert "--chance" in capsys.readouterr().err


# --- Columns that are no features, and references of other records ---------------------------------


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ("age,,income", "--features must be names with one comma between each two, got 'age,,income'"),
        ("age,", "has an empty name"),
        ("age,loss", "must not name 'loss'"),
        ("member", "must not name 'member'"),
        ("record", "must not name 'record'"),
        ("owner,age", "must not name 'owner'"),
    ],
)
def test_only_features_are_features(table, capsys, features, words):
    """An empty name and the columns of losses, membership, ids and persons are refused in one sentence."""
    columns = ("--id-column", "record", "--person-column", "owner")
    assert run("audit", table, "--features", features, *columns) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_two_files_refuse_membership_as_a_feature(table, tmp_path, capsys):
    """A membership column in one file for each group is no feature, and the region may be one."""
    frame = pd.read_csv(table)
    for value in (0, 1):
        frame[frame["member"] == value].to_csv(tmp_path / f"{value}.csv", index=False)
    files = ("--member-file", tmp_path / "1.csv", "--nonmember-file", tmp_path / "0.csv")
    assert run("audit", *files, "--features", "member") == 2
    assert "must not name 'member'" in capsys.readouterr().err
    assert run("audit", *files, "--features", "region", "--group-column", "region", "--quiet") in (0, 1)


def test_a_reference_of_other_records_is_refused(table, capsys):
    """The audited file itself, fewer records, and swapped membership are no reference."""
    assert run("audit", table, "--reference", table) == 2
    assert "reference losses are the audited losses" in capsys.readouterr().err
    other = table.with_name("other.csv")
    frame = pd.read_csv(table.with_name("reference.csv"))
    frame[1:].to_csv(other, index=False)
    assert run("audit", table, "--reference", other) == 2
    assert "600 members and 600 non-members, got 599 and 600" in capsys.readouterr().err
    frame.assign(member=1 - frame["member"]).to_csv(other, index=False)
    assert run("audit", table, "--reference", other, "--id-column", "record") == 2
    assert "600 of 600 member ids and 600 of 600 non-member ids" in capsys.readouterr().err


def test_a_claim_in_steps(tmp_path, capsys):
    """An audit takes a schedule or batches of a fixed size as its claim, judges it, and tells it in the page and the data."""
    rng = np.random.default_rng(0)
    member = np.repeat([1, 0], 200)
    table, steps = tmp_path / "losses.csv", tmp_path / "steps.csv"
    pd.DataFrame({"loss": rng.normal(1 - 0.5 * member, 1.0), "member": member}).to_csv(table, index=False)
    steps.write_text("noise_multiplier,sampling_rate,steps\n2,0.05,30\n4,0.1,30\n")
    ways = (
        (("--schedule", steps), "noise multiplier 2 to 4"),
        (
            ("--noise-multiplier", "2", "--sampling-rate", "0.05", "--steps", "30", "--fixed-size"),
            "fixed size",
        ),
    )
    for claim, words in ways:
        out = tmp_path / "r.json"
        line = ["audit", table, "--split", "random", "--delta", "1e-5", *claim, "--json", out, "--quiet"]
        assert run(*line) == 0
        found = json.loads(out.read_text())
        assert words in found["data"]["claim"]
        assert found["verdict"] in {"not_refuted", "inconclusive"}
        assert found["claims"][0]["value"] > 0
    both = ["audit", table, "--schedule", steps, "--steps", "3"]
    assert run(*both) == 2
    assert "cannot stand beside --steps" in capsys.readouterr().err
