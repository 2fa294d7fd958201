"""Predict callables become losses, and bad calls one sentence."""

from collections import deque

import numpy as np
import pytest
from collectors.common import QUIET, refused

from auditor import LossScale
from auditor.collectors import Output, collect
from auditor.core import MissingExtraError

pytestmark = QUIET

Z = np.array([[2.0, 0.0, -1.0], [0.5, 0.1, 3.0], [-2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
Y = [0, 2, 1, 1]
P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
EXPECTED = [np.log(np.delete(row, y).sum()) - np.log(row[y]) for row, y in zip(P, Y, strict=True)]


def scored(outputs, y=Y, **kwargs):
    """Losses of a model that is a table: record i gets row i."""
    rows = np.arange(len(y))
    table = np.asarray(outputs)
    return collect(lambda x: table[x], members=(rows, y), nonmembers=(rows[::-1], y[::-1]), **kwargs)


@pytest.mark.parametrize("batch_size", [None, 1, 3, 100])
@pytest.mark.parametrize(
    ("outputs", "output"),
    [(P, "probabilities"), (np.log(P), Output.LOG_PROBABILITIES), (Z + 100, Output.LOGITS)],
)
def test_every_kind_of_output_gives_the_same_losses(outputs, output, batch_size):
    """Probabilities, log-probabilities and shifted logits of one model agree, in any batches."""
    losses = scored(outputs, output=output, batch_size=batch_size)
    np.testing.assert_allclose(losses.member, EXPECTED, rtol=1e-12)
    np.testing.assert_allclose(losses.nonmember, EXPECTED[::-1], rtol=1e-12)
    assert losses.scale is LossScale.LOG_ODDS
    assert str(Output(output)) in losses.history[0]


@pytest.mark.parametrize(
    "outputs", [np.eye(3, dtype=int)[[0, 2, 1, 0]], np.array([1, 0, 1, 1]), [True, False, True, True]]
)
def test_hard_labels_work_and_are_named_a_weaker_audit(outputs):
    """One-hot rows, or 0 and 1 alone, give two values of the loss and a note."""
    losses = scored(outputs, [0, 1, 1, 0])
    assert losses.saturated == (4, 4)
    assert len(np.unique(losses.member)) == 2
    assert "weaker 0/1-loss audit" in losses.history[-1]


def test_an_error_inside_the_callable_is_one_sentence_and_its_cause():
    """The callable, the group and the exception are named, and the exception stays the cause."""

    def predict(x):
        if 3 in x:
            raise ZeroDivisionError("no\nway.")
        return np.full(len(x), 0.5)

    groups = {"members": ([1, 2], [0, 1]), "nonmembers": ([3, 4], [0, 1])}
    with refused(r"^predict failed on the nonmember records: ZeroDivisionError: no way\.$") as caught:
        collect(predict, **groups)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(MissingExtraError, match=r"^pip install something$"):  # it is already ours
        collect(lambda _: (_ for _ in ()).throw(MissingExtraError("pip install something")), **groups)


class Unreadable:
    """An output that refuses to become an array, like a tensor that is part of a graph."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("detach it first")


def test_outputs_beyond_the_doubles_make_no_noise():
    """Logits too large for a double count as certain, without a warning."""
    top = np.finfo(float).max
    losses = scored(np.array([[top, -top], [-top, top], [0.0, 1.0]]), [0, 0, 1], output="logits")
    assert losses.saturated == (2, 2)
    scored(np.full(4, np.finfo(np.longdouble).max), [0, 1, 0, 1], output="logits")


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (Unreadable(), r"be numbers in rows of equal length, got Unreadable: detach it first\."),
        ([[0.5, 0.5], [1.0]], "be numbers in rows of equal length, got list: "),
        (np.ma.masked_array([0.5, 0.5], mask=[True, False]), "be numbers, got masked values"),
        (np.full((3, 2), 0.5), "have one row for each of 4 records"),
        (np.full((1, 2), 0.5), "have one row for each of 4 records"),
        (np.log(P), "output=Output.LOG_PROBABILITIES"),
        (np.array([0, 2, 1, 2]), "return a probability for each class and not a predicted label"),
        (np.array(["a", "b", "c", "d"]), "an array of type <U1; return a probability for each class"),
        (np.array([{}, {}, {}, {}]), "be numbers .*got ndarray"),
    ],
)
def test_bad_outputs_are_refused_in_one_sentence(outputs, words):
    """The group, the value, the row and the fix are named."""
    with refused(f"^member outputs must .*{words}"):
        collect(lambda _: outputs, members=(Z, Y), nonmembers=(Z, Y))


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"y": [0, 1, 2, 3]}, r"member label 3 \(first at row 3, .* classes 0, 1, 2;"),
        (
            {"y": ["a", "b", "c", "a"]},
            r"member label 'a' .* name the class of each output column with classes=",
        ),
        ({"y": [0, 1, np.nan, 0]}, r"member label nan \(first at row 2"),
        ({"y": np.array([[0], [1], [2], [0, 1]], dtype=object)}, "member labels must be numbers or strings"),
        ({"y": np.ma.masked_equal(Y, 1)}, "member y must have no masked values, got 2"),
        ({"classes": [0, 1, 2, 3]}, "classes must name each of the model's 3 output columns, got 4 names"),
        ({"classes": [0, 1, 1]}, "classes must be distinct"),
        ({"classes": "abc"}, "classes must be a list of labels, .* got 'abc'"),
        ({"classes": [[0, 1], [1, 2]]}, "classes must be a list of labels"),
        (
            {"ids": ([[1], [1, 2]], [1])},
            "member ids must hold rows of equal length, got rows of different lengths",
        ),
        ({"ids": ([1, 2, 3], [1, 2, 3, 4])}, "same length: member y has 4, member ids has 3"),
        ({"persons": np.arange(4)}, r"persons must be a pair \(members, non-members\), got ndarray"),
        ({"output": "logit"}, "output must be one of 'probabilities', .*got 'logit'; did you mean 'logits'"),
        ({"batch_size": 0}, "batch_size must be a whole number of 1 or more, got 0"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(kwargs, words):
    """The argument or group, the value, the row and the fix are named."""
    with refused(words):
        scored(P, **kwargs)


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (Z, r"members must be a pair \(X, y\), got ndarray"),
        ((Z, Y, Y), r"members must be a pair \(X, y\), got tuple"),
        ((Z, Y[:3]), "same length: member X has 4, member y has 3"),
        ((Z, np.eye(3)[Y]), r"member y must be one label for each record, got shape \(4, 3\)"),
        ((Z[:1], [1]), "members must hold at least 2 records, got 1"),
        (("data.csv", Y), "member X must be an array, a DataFrame, .* got str"),
        ((iter(Z), Y), "member X must be an array, a DataFrame"),
        ((deque(Z), Y), "X must be an array or a list to be taken in parts, got deque"),
        ((Z, [[0], [1], [2], [0, 1]]), "member y must hold rows of equal length, got rows of different"),
    ],
)
def test_bad_groups_are_refused_before_the_model_runs(members, sentence):
    """Shapes and lengths are checked first; the model is never called."""

    def never(_):
        raise AssertionError

    with refused(sentence):
        collect(never, members=members, nonmembers=(Z, Y), batch_size=2)


@pytest.mark.parametrize(
    "features",
    [[[1, 2], [3, 4]], np.array([[1.0, 2.0], [3.0, 4.0]]), ["a text", "another"], [["a", 1], ["b", 2]]],
)
def test_fingerprints_of_the_features_come_along(features):
    """Equal records of both groups have equal fingerprints, different ones not, whatever holds the features."""
    losses = collect(
        lambda x: np.full(len(x), 0.4), members=(features, [0, 1]), nonmembers=(features[::-1], [0, 1])
    )
    assert losses.fingerprint.member.tolist() == losses.fingerprint.nonmember[::-1].tolist()
    assert losses.fingerprint.member[0] != losses.fingerprint.member[1]


def test_features_that_cannot_be_hashed_have_no_fingerprint():
    """Records of different lengths are scored all the same."""
    records = [[1, 2], [3]]
    losses = collect(lambda x: np.full(len(x), 0.4), members=(records, [0, 1]), nonmembers=(records, [0, 1]))
    assert losses.fingerprint is None


def test_no_classes_are_no_classes():
    """An empty list of classes is one sentence."""
    with refused("is not one of the model's classes|classes must"):
        scored(P, classes=[])
