"""The command line beyond the first audit: mixtures, people, features, placebo, ranking, instances, power."""

import io
import json
import shlex

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from command_line import answer, refused, run
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import auditor


@pytest.fixture
def table(tmp_path, rng):
    """A CSV of losses with ids, people, a region, two features and another model's losses beside it."""
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


def status(result, name):
    """The status of one check."""
    return next(check["status"] for check in result["checks"] if check["name"] == name)


def audited(table, capsys, *arguments):
    """The JSON of an audit of the table."""
    return answer(capsys, "audit", table, *arguments)


def test_columns_have_names_of_their_own(table, capsys):
    """Ids, groups and people are read from the named columns."""
    names = ("--set", "id-column=record", "--set", "group-column=region", "--set", "person-column=owner")
    result = audited(table, capsys, *names)
    assert [result["data"][name] for name in ("unit", "combined")] == ["person", "mean"]
    assert result["data"]["records"] == [600, 600]
    assert result["data"]["persons"] == [300, 300]
    assert {item["label"] for item in result["slices"] if item["kind"] == "group"} == {"north", "south"}
    by_record = audited(table, capsys, *names, "--set", "persons=each")
    assert by_record["data"]["n_member"] == 600
    assert status(by_record, "persons") == "warn"


def test_true_classes_are_read_where_they_are_named(table, capsys):
    """The column of classes is read only when named, for two files too, and each class is a slice."""
    result = audited(table, capsys, "--set", "label-column=region")
    assert {item["label"] for item in result["slices"] if item["kind"] == "class"} == {"north", "south"}
    assert not [item for item in audited(table, capsys)["slices"] if item["kind"] == "class"]
    frame = pd.read_csv(table)
    paths = [table.with_name(name) for name in ("in.csv", "out.csv")]
    for path, side in zip(paths, (1, 0), strict=True):
        frame[frame["member"] == side].drop(columns="member").to_csv(path, index=False)
    files = ("--members", paths[0], "--nonmembers", paths[1], "--set", "label-column=region")
    assert {item["kind"] for item in answer(capsys, "audit", *files)["slices"]} == {"class", "percentile"}


def test_features_and_reference_are_checked(table, capsys):
    """Named feature columns bring the shift test, a reference table brings the placebo audit; a subset has its size."""
    reference = ("--features", "age, income", "--reference", table.with_name("reference.csv"))
    result = audited(table, capsys, *reference, "--set", "coverage=subset:5000")
    assert (status(result, "shift"), status(result, "placebo")) == ("ok", "ok")
    assert status(audited(table, capsys), "shift") == "unknown"
    assert (result["data"]["members"], result["data"]["training_size"]) == ("subset", 5000)


def test_mixtures_and_other_tests(table, capsys):
    """The options reach the audit: mixture rows, the f-DP test and other intervals."""
    options = (
        "--set",
        "mixture=2",
        "--split",
        "random",
        "--set",
        "one-run-test=f-dp",
        "--set",
        "threshold=melded",
    )
    rows = {row["name"]: row for row in audited(table, capsys, *options)["estimates"]}
    assert rows["epsilon_star.mixture"]["value"] is not None
    assert "Mahloujifar" in rows["epsilon_bound.one_run"]["method"]
    bound = "epsilon_bound.clopper_pearson"
    others = [
        audited(table, capsys, *option)["estimates"]
        for option in (
            (),
            (
                "--set",
                "threshold=clopper-pearson",
            ),
        )
    ]
    plain, lowest = (next(row for row in result if row["name"] == bound) for result in others)
    assert plain["value"] > rows[bound]["value"] > lowest["value"]


def test_losses_come_from_standard_input(table, capsys, monkeypatch):
    """`-` is a CSV from standard input, features too: the same losses; what is wrong with it is said of standard input."""
    features = ("--features", "age,income")
    plain = audited(table, capsys, *features)
    names = ("audit", "-", *features)
    for content, words in (
        (table.read_bytes(), ""),
        (b"", "standard input is empty"),
        (b"a\n1\n", "standard input"),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        if words:
            assert words in refused(capsys, *names)
        else:
            result = answer(capsys, *names)
            assert result["provenance"]["input_sha256"] == plain["provenance"]["input_sha256"]
            assert result["checks"] == plain["checks"]


def test_the_ranking_is_written(table):
    """The ranked records go to their file, with ids that no spreadsheet runs."""
    target = table.with_name("ranking.csv")
    assert run("audit", table, "--set", "id-column=record", "--set", f"records={target}", "--quiet") == 0
    ranking = pd.read_csv(target)
    assert list(ranking.columns) == ["rank", "row", "id", "posterior_odds_ranking_only"]
    assert ranking["id"].str.startswith("'=r").all()
    assert len(ranking) == 600


# --- Several models -------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path, rng):
    """The results of audits of twelve models that leak."""
    paths = [tmp_path / f"{number}.json" for number in range(12)]
    for path in paths:
        losses = auditor.Losses(member=rng.normal(-2, 1, 300), nonmember=rng.normal(0, 1, 300))
        auditor.audit(losses, disclosure="insiders").to_json(path)
    return paths


def test_instances_judge_a_claim(results, tmp_path, capsys):
    """Results of several models refute a claim when a fresh random split is declared, and not without."""
    claim = ("--claim-epsilon", 0.2, "--claim-delta", 1e-5)
    target = tmp_path / "together.json"
    assert run("instances", *results, "--split", "random", *claim, "--json", target) == 1
    assert "refuted" in capsys.readouterr().out
    assert json.loads(target.read_text(encoding="utf-8"))["verdict"] == "refuted"
    assert run("instances", *results, *claim) == 3
    assert "how membership was decided" in capsys.readouterr().out
    assert run("instances", *results, *claim, "--quiet") == 3
    assert capsys.readouterr().err.startswith("The claim could not be judged (allow_unjudged lets it pass): ")
    assert run("instances", *results, *claim, "--quiet", "--set", "allow-unjudged") == 0
    assert "delta must be given" in refused(capsys, "instances", *results, "--split", "random")


# --- Plans ----------------------------------------------------------------------------------------


def test_power_answers_with_a_number_of_records(capsys):
    """The plan is printed, or given as JSON; what no number of records can certify is exit code 3."""
    assert run("power", "--epsilon", 3, "--delta", 1e-5) == 0
    assert capsys.readouterr().out.startswith("32 members and 32 non-members certify an epsilon of 3")
    assert (
        run(
            "power",
            "--epsilon",
            1,
            "--delta",
            1e-5,
            "--split",
            "random",
            "--attack",
            "gaussian:1",
            "--json",
            "-",
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["n_member"] > 14
    assert run("power", "--epsilon", 2, "--delta", 1e-5, "--attack", "randomised-response:1") == 3
    assert "certifies an epsilon of 2" in capsys.readouterr().out


def test_power_answers_with_a_number_of_runs_or_canaries(capsys):
    """Runs with a canary and without, fixed in number or sequential, and canaries in one run can refute a claim."""
    claim = "--noise-multiplier", 1, "--sampling-rate", 1, "--steps", 1
    assert run("power", "--runs", "fixed-number", *claim) == 0
    assert capsys.readouterr().out.startswith(
        "6 runs with the canary and 6 without refute the claim of DP-SGD"
    )
    assert run("power", "--runs", "sequential", *claim, "--json", "-") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["unit"], result["estimate"]) == ("runs", "epsilon_bound.sequential")
    assert (
        run("power", "--split", "bernoulli", "--claim-epsilon", 1, "--claim-delta", 1e-5, "--json", "-") == 0
    )
    result = json.loads(capsys.readouterr().out)
    assert (result["adjacency"], result["claim"]) == ("add-remove", "epsilon 1 at delta 1e-5, add-remove")
    assert run("power", "--runs", "fixed-number", *claim, "--attack", "gaussian:1") == 3
    assert "stays within the claim" in capsys.readouterr().out


# --- Claims ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "words", "value", "code"),
    [
        ("--set claim-mu=1", "Gaussian differential privacy with mu 1, add-remove", 9.997256, 3),  # at 2 mu
        ("--set claim-rho=0.5 --claim-adjacency replace-one", "with rho 0.5, replace-one", 4.728387, 1),
        (
            "--set claim-points=1:1e-3,4.5:1e-5 --claim-adjacency replace-one",
            "epsilon 4.5 at delta 1e-5",
            4.5,
            1,
        ),
        ("--claim-epsilon 2 --claim-delta 1e-5 --set claim-unit=person", "add-remove, per person", 4.0, 0),
        (
            "--noise-multiplier 2 --sampling-rate 1 --steps 1 --set claim-unit=person",
            "1 step, per person",
            4.377178,
            1,
        ),
    ],
)
def test_a_claim_in_any_unit(table, capsys, claim, words, value, code):
    """A curve and a unit are claims on the command line, judged for replaced records by their whole curve: exit code 1."""
    line = ("audit", table, "--split", "random", "--delta", "1e-5", *claim.split())
    result = answer(capsys, *line, code=code)
    assert words in result["data"]["claim"]
    assert result["comparisons"][0]["claim"]["value"] == pytest.approx(value, abs=1e-6)


def test_the_first_point_is_the_delta_of_an_audit(table, capsys):
    """Points offer the delta of the first of them; mu has none, and takes that of the number of records."""
    result = answer(capsys, "audit", table, "--set", "claim-points=1:1e-3,4.5:1e-5", code=3)
    assert result["data"]["delta"] == 1e-3
    assert answer(capsys, "audit", table, "--set", "claim-mu=1", code=3)["data"]["delta"] < 1e-3


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("--set schedule={steps}", "noise multiplier 2 to 4"),
        ("--noise-multiplier 2 --sampling-rate 0.05 --steps 30 --set sampler=fixed-size", "fixed size"),
    ],
)
def test_a_claim_in_steps(table, capsys, claim, words):
    """An audit takes a schedule or batches of a fixed size as its claim, judges it, and tells it in the page and the data."""
    steps = table.with_name("steps.csv")
    steps.write_text("noise_multiplier,sampling_rate,steps\n2,0.05,30\n4,0.1,30\n")
    line = ("audit", table, "--split", "random", "--delta", "1e-5", *claim.format(steps=steps).split())
    result = answer(capsys, *line, code=1)
    assert words in result["data"]["claim"]
    assert result["verdict"] == "refuted"
    assert result["claims"][0]["value"] > 0


@pytest.fixture
def records(tmp_path, rng):
    """A model in a file with two tables of records: a forest, which remembers, and its member and other records."""
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    labels = (frame.a + rng.normal(size=400) > 0).astype(int)
    skops.io.dump(
        RandomForestClassifier(20, random_state=0).fit(frame[:200], labels[:200]), tmp_path / "m.skops"
    )
    frame = frame.assign(id=range(400), y=labels)
    frame[:200].to_csv(tmp_path / "in.csv", index=False)
    frame[200:].to_csv(tmp_path / "out.csv", index=False)
    return tmp_path / "m.skops", "--members", tmp_path / "in.csv", "--nonmembers", tmp_path / "out.csv"


def test_a_model_is_audited_in_one_step(records, tmp_path, capsys):
    """The audit of a model and two tables is the audit of the losses that `auditor collect` makes of them."""
    result = answer(capsys, "audit", *records, "--label", "y")
    assert run("collect", *records, "--label", "y", "--out", tmp_path / "l.parquet", "-q") == 0
    assert result["estimates"] == answer(capsys, "audit", tmp_path / "l.parquet")["estimates"]
    assert result["data"]["model"] == "m.skops"
    assert result["provenance"]["source"] == "m.skops on in.csv (members) and out.csv (non-members)"
    typed = ("--label", "y", "--features", "a,b,c", "--model", "mine", "--set", "classes=0,1")
    again = answer(capsys, "audit", *records, *typed)
    assert again["estimates"] == result["estimates"]
    assert again["data"]["model"] == "mine"


def test_what_a_model_needs_in_one_step_is_said(records, tmp_path, capsys):
    """A model alone, options of a model without one, a table in its place, an address and a pickle are one sentence each."""
    needs = (
        "needs two tables of records: auditor audit MODEL --members FILE --nonmembers FILE --label COLUMN."
    )
    assert f"m.skops' is a model and {needs}" in refused(capsys, "audit", records[0])
    assert f"error: --label {needs}" in refused(capsys, "audit", *records[1:], "--label", "y")
    assert "--label must name the column of labels" in refused(capsys, "audit", *records)
    assert "must be a model in a file" in refused(capsys, "audit", records[2], *records[1:], "--label", "y")
    served = refused(capsys, "audit", "https://m.example.org/x", *records[1:], "--label", "y")
    assert "for a served model, collect the losses first (auditor collect), then audit them." in served
    (tmp_path / "m.pkl").write_bytes(b"x")
    assert "is a pickle" in refused(capsys, "audit", tmp_path / "m.pkl", *records[1:], "--label", "y")


def test_the_advice_on_a_pickle_can_be_followed(records, tmp_path, capsys):
    """A model in a pickle is refused with an option that the same command has, and with it gives the same numbers."""
    line = ("audit", tmp_path / "m.joblib", *records[1:], "--label", "y")
    frame = pd.read_csv(records[2])
    joblib.dump(RandomForestClassifier(20, random_state=0).fit(frame[list("abc")], frame.y), line[1])
    assert "(--trust-pickle)" in refused(capsys, *line)
    honest = answer(capsys, "audit", *records, "--label", "y")
    assert answer(capsys, *line, "--trust-pickle")["estimates"] == honest["estimates"]


def test_refused_types_end_with_the_command_that_trusts_them(records, capsys):
    """It can be pasted, and then runs."""
    step = make_pipeline(FunctionTransformer(np.nan_to_num), LogisticRegression())
    names = list("abc")
    frame = pd.read_csv(records[2])
    skops.io.dump(step.fit(frame[names], frame.y), records[0])
    said = refused(capsys, "audit", *records, "--label", "y")
    command = said.partition(" To trust them, run: auditor ")[2]
    assert "--set=trusted-types=numpy" in command
    assert run(*shlex.split(command), "-q") == 0
