"""Classes that are text, labels that a table holds as numbers or truth values: the same labels where nothing is guessed."""

import numpy as np
import pytest
from collectors.common import refused
from sklearn.linear_model import LogisticRegression

from auditor.collectors import RecordTable, collect_to
from auditor.collectors.base import Records
from auditor.collectors.tables import read_losses

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(size=(N, 2))
Z = X @ [2.0, -1.0] + 0.5
Y = (Z + RNG.normal(size=N) > 0).astype(int)


def codes(labels, classes):
    """The positions of labels among classes."""
    return Records("member", np.zeros(len(labels)), np.asarray(labels)).codes(classes).tolist()


@pytest.mark.parametrize(
    ("labels", "classes", "want"),
    [
        ([0, 1, 1], ["0", "1"], [0, 1, 1]),
        ([0, 1, 1], ["1", "0"], [1, 0, 0]),
        ([0.0, 1.5], ("0", "1.5", "2"), [0, 1]),
        ([1, 2], ["01", "02"], [0, 1]),
        ([-1, 1], ["1.0", "-1.0"], [1, 0]),
        ([True, False], ["False", "True"], [1, 0]),
        ([True, False], ["true", "false"], [0, 1]),
        ([1, 0], ["0", "1", "unknown"], [1, 0]),
        ([2**53, 2**53 + 1], [str(2**53 + 1), str(2**53)], [1, 0]),
        (np.array([1, 0], dtype=object), ["0", "1"], [1, 0]),
        (["0", "1"], ["1", "0"], [1, 0]),
        (np.array(["a", "b"], dtype=object), ["b", "a"], [1, 0]),
    ],
)
def test_text_classes_match_what_they_spell(labels, classes, want):
    """An integer is the class that spells it, a truth value the class of its word, and text is text."""
    assert codes(labels, classes) == want


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1], ["1", "01", "0"]),  # two classes spell 1
        ([False, True], ["True", "true", "False"]),
        ([0, 1], ["True", "1", "0"]),
        ([0, 1], ["no", "yes"]),
        ([0, 10], ["0", "1_0"]),
        (["01", "1"], ["1", "2"]),  # text is not read as a number
        (np.array([1, "0"], dtype=object), ["0", "1"]),  # nor where some of it is none
    ],
)
def test_nothing_is_guessed(labels, classes):
    """Two classes that spell the same, other words and labels that are text themselves are refused as unknown."""
    with refused("is not one of the model's classes '"):
        codes(labels, classes)


def written(tmp_path, labels):
    """Two CSV files of features and labels."""
    tables = []
    for name, rows in (("in.csv", slice(0, N, 2)), ("out.csv", slice(1, N, 2))):
        lines = [f"{a!r},{b!r},{y}" for (a, b), y in zip(X.tolist(), labels, strict=True)][rows]
        (tmp_path / name).write_text("\n".join(["a,b,y", *lines]) + "\n")
        tables.append(RecordTable(tmp_path / name, label="y"))
    return tables


@pytest.mark.parametrize("words", [("0", "1"), ("False", "True"), ("7", "10")])
def test_a_model_of_text_labels_scores_a_csv_of_them(tmp_path, words):
    """A CSV gives numbers or truth values for the text that the model was fitted on, and the losses are the same."""
    labels = np.array(words)[Y]
    model = LogisticRegression().fit(X, labels)
    z = model.decision_function(X)
    want = np.where(labels == model.classes_[1], -z, z)
    members, nonmembers = written(tmp_path, labels)
    collect_to(tmp_path / "l.parquet", model, members=members, nonmembers=nonmembers)
    losses = read_losses(tmp_path / "l.parquet")
    np.testing.assert_allclose(losses.member, want[::2], rtol=1e-9)
    np.testing.assert_allclose(losses.nonmember, want[1::2], rtol=1e-9)
