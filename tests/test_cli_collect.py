"""The command that collects: what it writes, what it says, and one sentence for every bad input."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from command_line import refused, run
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import auditor

N = 120


@pytest.fixture
def house(tmp_path, rng):
    """A folder with two tables and a pipeline that takes their features as they are."""
    folder = tmp_path / "Daten für uns"
    folder.mkdir()
    tables = {}
    for name, first in (("in", 0), ("out", N)):
        frame = pd.DataFrame(
            {
                "age": rng.integers(20, 60, N),
                "job": rng.choice(["cook", "judge", "clerk"], N),
                "income": rng.normal(3, 1, N),
                "id": [f"r{first + row:04d}" for row in range(N)],
                "group": rng.choice(["north", "south"], N),
            }
        )
        frame["answer"] = np.where(frame.income + rng.normal(0, 1, N) > 3, "yes", "no")
        frame.to_csv(folder / f"{name}.csv", index=False)
        tables[name] = frame
    encode = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(handle_unknown="ignore"), ["job"])
    )
    model = make_pipeline(encode, LogisticRegression()).fit(
        tables["in"][["age", "job", "income"]], tables["in"].answer
    )
    skops.io.dump(model, folder / "model.skops")
    joblib.dump(model, folder / "model.joblib")
    return folder, model, tables


def expected(model, frame):
    """The negative log-odds of the true class, from the model's own probabilities."""
    p = model.predict_proba(frame[["age", "job", "income"]])
    own = p[np.arange(len(frame)), np.searchsorted(model.classes_, frame.answer)]
    return np.log1p(-own) - np.log(own)


def arguments(folder, *more, model="model.skops", out="losses.parquet"):
    """The usual command."""
    files = ("--members", folder / "in.csv", "--nonmembers", folder / "out.csv")
    return ("collect", folder / model, *files, "--label", "answer", "--out", folder / out, *more)


def test_a_file_and_two_tables_become_losses(house, capsys):
    """The losses are those of the model's own probabilities; ids and groups come along; audit takes the file."""
    folder, model, tables = house
    assert run(*arguments(folder)) == 0
    printed = capsys.readouterr()
    assert "240 losses in" in printed.out
    assert "120 members and 120 non-members" in printed.out
    assert printed.err == ""
    losses = auditor.read_losses(folder / "losses.parquet")
    np.testing.assert_allclose(losses.member, expected(model, tables["in"]), atol=1e-6)
    np.testing.assert_allclose(losses.nonmember, expected(model, tables["out"]), atol=1e-6)
    assert losses.id.member.tolist() == tables["in"].id.tolist()
    assert losses.group.nonmember.tolist() == tables["out"].group.tolist()
    assert losses.label.member.tolist() == tables["in"].answer.tolist()
    assert losses.scale is auditor.LossScale.LOG_ODDS
    assert run("audit", folder / "losses.parquet", "--json", folder / "result.json", "--quiet") == 0
    assert json.loads((folder / "result.json").read_text(encoding="utf-8"))["data"]["n_member"] == N
    content = (folder / "losses.parquet").read_bytes()
    assert run(*arguments(folder)) == 0
    assert "was already complete" in capsys.readouterr().out
    assert (folder / "losses.parquet").read_bytes() == content


def test_one_table_of_both_groups_gives_the_losses_of_two(house):
    """The command on one table gives what it gives on two, and what `collect` gives on them."""
    folder, _, tables = house
    assert run(*arguments(folder, "--quiet")) == 0
    written = auditor.read_losses(folder / "losses.parquet")
    whole = pd.concat([tables["out"].assign(member=0), tables["in"].assign(member=1)])
    whole.to_parquet(folder / "all.parquet", index=False)
    command = ("collect", folder / "model.skops", "--records", folder / "all.parquet", "--label", "answer")
    assert run(*command, "--out", folder / "one.parquet", "--quiet") == 0
    both = [auditor.RecordTable(folder / f"{name}.csv", label="answer") for name in ("in", "out")]
    tabled = auditor.collect(folder / "model.skops", members=both[0], nonmembers=both[1])
    for other in (tabled, auditor.read_losses(folder / "one.parquet")):
        np.testing.assert_array_equal(written.member, other.member)
        np.testing.assert_array_equal(written.nonmember, other.nonmember)
        np.testing.assert_array_equal(written.fingerprint.member, other.fingerprint.member)
        assert written.scale is other.scale
    assert written.history == tabled.history


def test_another_table_is_not_mixed_in(house, capsys):
    """A file of losses of other records, or a table of records, is refused and left as it is; losses may be replaced."""
    folder, _, tables = house
    assert run(*arguments(folder, "--quiet")) == 0
    content = (folder / "losses.parquet").read_bytes()
    tables["out"].iloc[:-1].to_csv(folder / "out.csv", index=False)
    error = refused(capsys, *arguments(folder))
    assert "holds other losses" in error
    assert "request that it is overwritten" in error
    assert (folder / "losses.parquet").read_bytes() == content
    assert run(*arguments(folder, "--overwrite", "--quiet")) == 0
    assert auditor.read_losses(folder / "losses.parquet").n_nonmember == N - 1
    records = (folder / "in.csv").read_bytes()
    assert refused(capsys, *arguments(folder, "--overwrite", out="in.csv"))
    assert (folder / "in.csv").read_bytes() == records


@pytest.mark.parametrize(
    ("place", "more", "sentence"),
    [
        ("https://u:p@models.example.org", (), "url must hold no credentials"),
        ("http://models.example.org", ("--token-variable", "T"), "allow_plain_http"),
    ],
)
def test_served_models_are_refused_before_anything_is_sent(house, capsys, place, more, sentence):
    """Invalid addresses and options are refused before any request."""
    folder, _, _ = house
    command = arguments(folder, *more)
    assert sentence in refused(capsys, command[0], place, *command[2:])


def test_a_table_without_labels_is_scored_by_confidence(house):
    """`--task confidence` needs no `--label`: the losses are minus the model's largest probabilities."""
    folder, model, tables = house
    command = arguments(folder, "--features", "age,job,income", "--task", "confidence", "--quiet")
    place = command.index("--label")
    assert run(*command[:place], *command[place + 2 :]) == 0
    largest = model.predict_proba(tables["in"][["age", "job", "income"]]).max(axis=1)
    np.testing.assert_allclose(auditor.read_losses(folder / "losses.parquet").member, -largest, atol=1e-9)


def test_an_empty_name_reads_no_ids(house):
    """`--set id-column=''` reads no ids."""
    folder, _, _ = house
    command = arguments(folder, "--features", "age,job,income", "--set", "id-column=", "--quiet")
    assert run(*command) == 0
    assert auditor.read_losses(folder / "losses.parquet").id is None


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--label", "anwser"), "did you mean 'answer'"),
        (("--classes", "yes,no,maybe"), "classes must name each of the model's 2 output columns, got 3"),
        (("--features", "age,job"), "income"),
        (("--text-column", "job", "--set", "repeats=2"), "--set repeats goes without --text-column"),
        (("--protocol", "v2"), "--protocol goes with the address of a served model"),
        (("--workers", "2"), "--workers goes with --engine ray"),
        (("--task", "regression"), "must be one number to predict"),
        (("--records", "x.csv"), "give either both --members and --nonmembers, or --records"),
        (("--score", "min-k:20"), "--score goes with --text-column"),
        (("--factory", "a:b"), "--factory goes with a file of weights (.pt, "),
        (("--classes", "a,b"), "name the class of each output column with classes"),
        (("--output", "logits"), "output declares the outputs of a callable"),
    ],
)
def test_bad_input_is_one_sentence(house, capsys, more, sentence):
    """Exit code 2, one line that names what is wrong, and no file."""
    folder, _, _ = house
    before = set(folder.iterdir())
    assert sentence in refused(capsys, *arguments(folder, *more))
    assert set(folder.iterdir()) == before


def test_policies_are_collected_audited_and_reported(house, capsys):
    """From a model's file to a column, a row and a table for each policy; a bad one is refused in one sentence before any request."""
    folder, model, tables = house
    assert run(*arguments(folder, "--policies", "digits=1, label", "--quiet")) == 0
    result = pd.read_parquet(folder / "losses.parquet")
    losses = np.concatenate([expected(model, tables[name]) for name in ("in", "out")])
    assert (result["loss.label"] == (losses > 0)).all()
    odds = np.round(1 / (1 + np.exp(losses)), 1)
    inside = (odds > 0) & (odds < 1)
    rounded = odds[inside]
    np.testing.assert_allclose(result["loss.digits=1"][inside], np.log(1 / rounded - 1), atol=1e-12)
    assert run("audit", folder / "losses.parquet", "--full", "--markdown", folder / "summary.md") == 0
    for text in (capsys.readouterr().out, (folder / "summary.md").read_text(encoding="utf-8")):
        assert "Label alone" in text
        assert "All 3 rows hold together at 95% confidence" in text
    for bad, words, more in (
        ("labels", "policies must be among digits=N", ()),
        ("top1", "policies must be of a kind that this score has", ("--task", "regression")),
        ("top1", "leave repeats out", ("--set", "repeats=3")),
    ):
        assert words in refused(capsys, *arguments(folder, "--policies", bad, *more, out="bad.parquet"))


def test_a_file_of_outputs_needs_no_model(house, capsys):
    """Probabilities in one table, or in two, give the losses of the model; options of a model are refused."""
    folder, model, tables = house
    for name, frame in tables.items():
        columns = [f".pred_{label}" for label in model.classes_]
        p = pd.DataFrame(model.predict_proba(frame[["age", "job", "income"]]), columns=columns)
        tables[name] = frame.join(p).assign(member=int(name == "in"))
        tables[name].to_csv(folder / f"{name}.csv", index=False)
    pd.concat(tables.values()).to_parquet(folder / "both.parquet")
    out = ("--label", "answer", "--out", folder / "losses.parquet")
    one = ("collect", "--outputs", folder / "both.parquet", *out)
    two = ("collect", "--members", folder / "in.csv", "--nonmembers", folder / "out.csv", *out)
    for command in (one, (*two, "--overwrite", "--classes", "no,yes")):
        assert run(*command) == 0
        losses = auditor.read_losses(folder / "losses.parquet")
        np.testing.assert_allclose(losses.member, expected(model, tables["in"]), rtol=1e-7)
        np.testing.assert_allclose(losses.nonmember, expected(model, tables["out"]), rtol=1e-7)
        assert losses.id is not None
    capsys.readouterr()
    for more, sentence in (
        (("model.skops",), "--outputs goes without MODEL, got 'model.skops' too"),
        (("--factory", "a:b"), "--factory goes with the file of a model as MODEL"),
        (("--protocol", "v2"), "--protocol goes with the address of a served model"),
        (("--text-column", "job"), "--text-column goes with a language model as MODEL"),
        (("--set", "repeats=2"), "--set repeats goes with MODEL"),
        (("--records", folder / "both.parquet"), "or --records or --outputs with a column of membership"),
    ):
        assert sentence in refused(capsys, *one, *more)
