"""The command that collects: what it writes, what it says, and one sentence for every bad input."""

import json
import re
import shlex
import subprocess
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import auditor
from auditor.cli import app, collect
from auditor.core import InputError

N = 120


def run(*arguments):
    """Run the command line in this process."""
    return app.run([str(argument) for argument in arguments])


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


def test_the_file_equals_what_collect_gives_in_memory(house):
    """The command, `collect_to`, `collect` on tables and `collect` on arrays give the same losses."""
    folder, model, tables = house
    assert run(*arguments(folder, "--quiet")) == 0
    written = auditor.read_losses(folder / "losses.parquet")
    both = [auditor.RecordTable(folder / f"{name}.csv", label="answer") for name in ("in", "out")]
    tabled = auditor.collect(folder / "model.skops", members=both[0], nonmembers=both[1])
    features = ["age", "job", "income"]
    direct = auditor.collect(
        model,
        members=(tables["in"][features], tables["in"].answer),
        nonmembers=(tables["out"][features], tables["out"].answer),
    )
    for other in (tabled, direct):
        np.testing.assert_array_equal(written.member, other.member)
        np.testing.assert_array_equal(written.nonmember, other.nonmember)
        np.testing.assert_array_equal(written.fingerprint.member, other.fingerprint.member)
        assert written.scale is other.scale
        assert written.history == other.history


def test_one_table_with_membership(house):
    """One table with a column of membership gives the losses of two."""
    folder, _, tables = house
    whole = pd.concat([tables["out"].assign(member=0), tables["in"].assign(member=1)])
    whole.to_parquet(folder / "all.parquet", index=False)
    assert run(*arguments(folder, "--quiet")) == 0
    command = ("collect", folder / "model.skops", "--records", folder / "all.parquet", "--label", "answer")
    assert run(*command, "--out", folder / "one.parquet", "--quiet") == 0
    one, two = (auditor.read_losses(folder / f"{name}.parquet") for name in ("one", "losses"))
    np.testing.assert_array_equal(one.member, two.member)
    np.testing.assert_array_equal(one.nonmember, two.nonmember)


def test_again_is_nothing_to_do(house, capsys):
    """The same command on a finished file scores nothing and says so."""
    folder, _, _ = house
    assert run(*arguments(folder)) == 0
    content = (folder / "losses.parquet").read_bytes()
    capsys.readouterr()
    assert run(*arguments(folder)) == 0
    assert "was complete already" in capsys.readouterr().out
    assert (folder / "losses.parquet").read_bytes() == content
    assert not (folder / "losses.parquet.parts").exists()


def test_a_pickle_is_refused_unless_trusted(house, capsys):
    """A joblib file is refused with the reason and the flag; with the flag it gives the same losses."""
    folder, _, _ = house
    assert run(*arguments(folder, model="model.joblib")) == 2
    error = capsys.readouterr().err
    assert "runs whatever code is in it" in error
    assert "--trust-pickle" in error
    assert run(*arguments(folder, "--trust-pickle", "--quiet", model="model.joblib")) == 0
    assert run(*arguments(folder, "--quiet", out="skops.parquet")) == 0
    one, two = (auditor.read_losses(folder / f"{name}.parquet") for name in ("losses", "skops"))
    np.testing.assert_array_equal(one.member, two.member)


def test_another_table_is_not_mixed_in(house, capsys):
    """A file of losses of other records is refused and left as it is, until it may be replaced."""
    folder, _, tables = house
    assert run(*arguments(folder, "--quiet")) == 0
    content = (folder / "losses.parquet").read_bytes()
    tables["out"].iloc[:-1].to_csv(folder / "out.csv", index=False)
    assert run(*arguments(folder)) == 2
    error = capsys.readouterr().err
    assert "holds other losses" in error
    assert "give --overwrite" in error
    assert (folder / "losses.parquet").read_bytes() == content
    assert run(*arguments(folder, "--overwrite", "--quiet")) == 0
    assert auditor.read_losses(folder / "losses.parquet").n_nonmember == N - 1


def numbered(folder, rng):
    """Two tables of one feature and labels 0 and 1, and a model of them; returns the usual command and the model."""
    frame = pd.DataFrame({"x": rng.normal(size=2 * N), "y": rng.integers(0, 2, 2 * N)})
    frame.iloc[:N].to_csv(folder / "in.csv", index=False)
    frame.iloc[N:].to_csv(folder / "out.csv", index=False)
    model = LogisticRegression().fit(frame[["x"]], frame.y)
    joblib.dump(model, folder / "model.joblib")
    files = ("--members", folder / "in.csv", "--nonmembers", folder / "out.csv")
    return ("collect", folder / "model.joblib", *files, "--label", "y", "--trust-pickle", "--quiet"), model


def test_classes_come_as_text(tmp_path, rng):
    """Classes of text name columns of numbers too: the losses of a model that knows no classes turn with them."""
    command, model = numbered(tmp_path, rng)
    known, found = tmp_path / "known.parquet", []
    assert run(*command, "--classes", "0,1", "--out", known) == 0
    tables = [auditor.RecordTable(tmp_path / f"{name}.csv", label="y") for name in ("in", "out")]
    for classes in (["0", "1"], ["1", "0"]):
        out = tmp_path / f"{classes}.parquet"
        auditor.collect_to(out, model.predict_proba, members=tables[0], nonmembers=tables[1], classes=classes)
        found.append(auditor.read_losses(out).member)
    np.testing.assert_allclose(found[0], -found[1], atol=1e-12)
    np.testing.assert_allclose(auditor.read_losses(known).member, found[0], atol=1e-9)


def test_the_models_own_classes_cannot_be_put_in_another_order(tmp_path, rng, capsys):
    """A model that knows the order of its classes is not told another, from a file and in memory."""
    command, model = numbered(tmp_path, rng)
    assert run(*command, "--classes", "1,0", "--out", tmp_path / "losses.parquet") == 2
    printed = capsys.readouterr().err
    assert "--classes must be in the order" in printed
    assert "the model itself says is '0,1', got '1,0'; leave --classes out." in printed
    assert not (tmp_path / "losses.parquet").exists()
    group = (rng.normal(size=(6, 1)), [0, 1] * 3)
    for repeats in (1, 2):
        with pytest.raises(InputError, match="the model itself says is '0,1'"):
            auditor.collect(model, members=group, nonmembers=group, classes=[1, 0], repeats=repeats)


def test_the_classes_suggested_can_be_pasted(tmp_path, rng):
    """Classes in another order than the output columns are suggested as a shell takes them, and so are accepted."""
    x = rng.normal(0, 3, 4 * N)
    names = np.array(["<=50K", ">50K"])
    labels = names[(rng.uniform(size=x.size) < 1 / (1 + np.exp(-x))).astype(int)]
    table = pd.DataFrame({"x": x, "y": labels})
    halves = [auditor.RecordTable(part, label="y") for part in (table[: 2 * N], table[2 * N :])]

    def model(features):
        p = 1 / (1 + np.exp(-features["x"].to_numpy()))
        return np.stack([1 - p, p], axis=1)

    def warned(name, classes):
        return auditor.collect_to(
            tmp_path / name, model, members=halves[0], nonmembers=halves[1], classes=classes
        ).warnings

    suggested = re.search(r"perhaps (.*)\.$", warned("wrong.parquet", [">50K", "<=50K"])[0])[1]
    assert shlex.split(f"--classes {suggested}") == ["--classes", "<=50K,>50K"]
    assert warned("right.parquet", shlex.split(suggested)[0].split(",")) == ()


def test_a_model_that_knows_its_classes_is_not_told_to_change_them(tmp_path, rng):
    """Labels that are the other way round than a model's own classes are laid to the labels, not to --classes."""
    x = rng.normal(0, 3, 4 * N)
    y = (x > 0).astype(int)
    table = pd.DataFrame({"x": x, "y": 1 - y})
    halves = [auditor.RecordTable(part, label="y") for part in (table[: 2 * N], table[2 * N :])]
    model = LogisticRegression().fit(table[["x"]], y)
    found = auditor.collect_to(
        tmp_path / "l.parquet", model, members=halves[0], nonmembers=halves[1]
    ).warnings
    assert "the model itself says its order, so check how the labels were encoded" in found[0]
    assert "--classes" not in found[0]


def test_notes_name_options():
    """The notes after a run call an argument as the command line does, as its errors do."""
    report = SimpleNamespace(
        scored_now=2, resumed=0, n_member=1, n_nonmember=1, warnings=("average with repeats= (--repeats).",)
    )
    assert "Note: average with --repeats.\n" in collect._summary(report, name="l.parquet")


@pytest.mark.parametrize(
    ("place", "more", "sentence"),
    [
        ("https://u:p@models.example.org", (), "MODEL must hold no credentials"),
        ("https://models.example.org", ("--timeout", "0"), "--timeout must be"),
        ("http://models.example.org", ("--token-variable", "T"), "accept the risk with --allow-plain-http."),
    ],
)
def test_served_models_are_refused_in_terms_of_the_command_line(house, capsys, place, more, sentence):
    """What an address and its options must be is said with MODEL and the options, before anything is sent."""
    folder, _, _ = house
    command = arguments(folder, *more)
    assert run(command[0], place, *command[2:]) == 2
    assert sentence in capsys.readouterr().err


TEXTS = "goes without --text-column, for the score of a text is of its tokens alone; leave it out."


@pytest.mark.parametrize(
    ("more", "option"),
    [
        (("--task", "classification"), "--task"),
        (("--classes", "a,b"), "--classes"),
        (("--output", "logits"), "--output"),
        (("--repeats", "2"), "--repeats"),
        (("--accept-labels",), "--accept-labels"),
        (("--output-name", "p"), "--output-name"),
        (("--request-template", "r.json"), "--request-template"),
        (("--response-path", "p"), "--response-path"),
    ],
)
@pytest.mark.parametrize("model", ["folder", "https://models.example.org/v1"])
def test_texts_take_no_option_of_tables(capsys, model, more, option):
    """What has no meaning for a text is refused and not ignored, for a model here and a served one."""
    files = ("--members", "a.csv", "--nonmembers", "b.csv", "--text-column", "text", "--out", "o.parquet")
    assert run("collect", model, *files, *more) == 2
    assert capsys.readouterr().err == f"error: {option} {TEXTS}\n"


def test_an_empty_name_reads_no_ids(house):
    """`--id-column ''` reads no ids, as the sentence about ids in both groups says."""
    folder, _, _ = house
    command = arguments(folder, "--features", "age,job,income", "--id-column", "", "--quiet")
    assert run(*command) == 0
    assert auditor.read_losses(folder / "losses.parquet").id is None


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--label", "anwser"), "did you mean 'answer'"),
        (("--classes", "yes,no,maybe"), "--classes must name each of the model's 2 output columns, got 3"),
        (("--classes", "a,b"), "is not one of the model's classes 'a', 'b'"),
        (("--features", "age,jobs"), "'jobs'"),
        (("--features", "age,job"), "income"),
        (("--concurrency", "4"), "--concurrency goes with the address of a served model"),
        (("--protocol", "v2"), "--protocol goes with the address of a served model"),
        (("--workers", "2"), "--workers goes with --engine ray"),
        (("--standard-deviation", "2"), "--standard-deviation goes with --task gaussian"),
        (("--task", "regression"), "must be one number to predict"),
        (("--text-column", "job"), "--text-column goes without --label"),
        (("--records", "x.csv"), "give either both --members and --nonmembers, or --records"),
        (("--batch-size", "0"), "--batch-size must be a whole number of 1 or more, got 0"),
        (("--repeats", "0"), "--repeats must be a whole number of 1 or more, got 0"),
        (("--longest", "9"), "--longest goes with --text-column"),
        (("--score", "mean"), "--score goes with --text-column"),
        (("--min-k-percent", "20"), "--min-k-percent goes with --text-column"),
        (("--factory", "a:b"), "--factory goes with a file of weights (.pt, "),
        (("--classes", "a,b"), "or name the class of each output column with --classes."),
        (("--classes", "a,b"), "at least 120 such records"),
        (("--output", "logits"), "--output says what a callable returns"),
        (("--task", "nonsense"), "nonsense"),
    ],
)
def test_bad_input_is_one_sentence(house, capsys, more, sentence):
    """Exit code 2, one line that names what is wrong, and no file."""
    folder, _, _ = house
    before = set(folder.iterdir())
    assert run(*arguments(folder, *more)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert sentence in printed.err
    assert set(folder.iterdir()) == before


def test_records_are_never_overwritten(house, capsys):
    """A table of records named as the output is refused and kept, even where losses may be overwritten."""
    folder, _, tables = house
    tables["out"].to_parquet(folder / "out.parquet", index=False)
    content = (folder / "out.parquet").read_bytes()
    command = ["collect", folder / "model.skops", "--members", folder / "in.csv"]
    command += ["--nonmembers", folder / "out.parquet", "--label", "answer", "--overwrite"]
    assert run(*command, "--out", folder / "out.parquet") == 2
    assert "holds no collected losses" in capsys.readouterr().err
    assert (folder / "out.parquet").read_bytes() == content


def test_shared_rows_are_refused_unless_allowed(house, capsys):
    """Non-members that are members too are refused with their rows, and nothing is written; a flag allows them."""
    folder, _, tables = house
    tables["in"].drop(columns="id").to_csv(folder / "out.csv", index=False)
    assert run(*arguments(folder)) == 2
    error = capsys.readouterr().err
    assert "--allow-shared-rows" in error
    assert not (folder / "losses.parquet").exists()
    assert run(*arguments(folder, "--allow-shared-rows", "--quiet")) == 0


def test_helps_name_every_kind_of_model(capsys):
    """The help says what MODEL may be."""
    assert run("collect", "--help") == 0
    printed = capsys.readouterr().out
    assert "--trust-pickle" in printed
    assert ".onnx" in printed
    assert "{{rows}}" in printed


def test_it_works_in_a_pipe(house):
    """As a process, without a terminal: no progress, no colours, the sentence on standard output."""
    folder, _, _ = house
    command = [sys.executable, "-m", "auditor", *map(str, arguments(folder))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("240 losses in ")
