"""ONNX models: those the tests make, and one that they do not; classes from the graph, inputs by column."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from collectors.common import QUIET, refused
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from auditor.collectors import collect

pytestmark = QUIET

X, Y = load_iris(return_X_y=True)
X32 = X.astype(np.float32)
NAMES = np.array(["virginica", "setosa", "versicolor"])[Y]  # the alphabet is not the order of the numbers


@pytest.fixture(autouse=True)
def _onnx(require_extra):
    """The runtime and the converter, where they are installed."""
    require_extra("onnx")


def converted(model, **options):
    """A fitted estimator as a session of an ONNX model."""
    from skl2onnx import to_onnx

    return opened(to_onnx(model, X32[:1], options={id(model): options} if options else None))


def opened(model):
    """A session of a model."""
    import onnxruntime

    return onnxruntime.InferenceSession(model.SerializeToString())


def losses_of(model, y=Y, features=X, **kwargs):
    """Losses with the even rows for members."""
    return collect(model, members=(features[::2], y[::2]), nonmembers=(features[1::2], y[1::2]), **kwargs)


def room(losses):
    """How far float32 probabilities p may put a loss from the truth: a few eps / (p (1 - p))."""
    p = 1 / (1 + np.exp(np.abs(losses)))
    return 8 * np.finfo(np.float32).eps * (1 + np.abs(losses)) / (p * (1 - p))


CASES = {
    "dictionaries": (LogisticRegression(max_iter=500), Y, {}),
    "dictionaries of names": (LogisticRegression(max_iter=500), NAMES, {}),
    "columns": (LogisticRegression(max_iter=500), Y, {"zipmap": False}),
    "columns of names": (LogisticRegression(max_iter=500), NAMES, {"zipmap": False}),
    "numbers that do not count up": (LogisticRegression(max_iter=500), 7 - 2 * Y, {"zipmap": False}),
    "two classes": (LogisticRegression(), (Y > 0).astype(int), {"zipmap": False}),
    "boosting": (GradientBoostingClassifier(n_estimators=3), NAMES, {"zipmap": False}),
    "network": (MLPClassifier((4,), max_iter=2000, random_state=0), NAMES, {"zipmap": False}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_converted_classifier_gives_the_losses_of_the_estimator(case):
    """Whatever form the probabilities have and whatever the classes are called, to the rounding of float32."""
    model, y, options = CASES[case]
    model.fit(X32, y)
    classes = model.classes_ if case == "network" else None  # whose graph does not name them
    found, want = losses_of(converted(model, **options), y, classes=classes), losses_of(model, y, X32)
    assert np.all(np.abs(found.member - want.member) <= room(want.member))
    assert np.all(np.abs(found.nonmember - want.nonmember) <= room(want.nonmember))
    assert "float32 probabilities of an ONNX model's output" in found.history[0]


@pytest.mark.parametrize("y", [Y, (Y > 0).astype(int), np.array(["p", "a"])[(Y > 0).astype(int)]])
def test_raw_scores_are_logits(y):
    """A graph exported with raw scores loses nothing; the -s and s of two classes are one logit, not two."""
    model = LogisticRegression(max_iter=500).fit(X32, y)
    found, want = losses_of(converted(model, raw_scores=True, zipmap=False), y), losses_of(model, y)
    np.testing.assert_allclose(found.member, want.member, atol=1e-5)
    assert "float32 logits" in found.history[0]


def test_a_published_file_gives_the_losses_of_its_weights():
    """A package ships a logistic regression of iris on two columns; its losses are computed from its weights.

    The graph takes exactly three records at a time, so the last call of a group must be filled up. It gives each class
    a sigmoid and divides by their sum. It holds more coefficients than it uses: those of the first six places.
    """
    import onnx
    import onnxruntime
    from onnx import helper

    path = Path(onnxruntime.__file__).parent / "datasets" / "logreg_iris.onnx"
    node = onnx.load(path).graph.node[0]
    values = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    assert (node.op_type, values["post_transform"]) == ("LinearClassifier", b"LOGISTIC")
    weights = np.array(values["coefficients"][:6]).reshape(3, 2)
    p = 1 / (1 + np.exp(-(X[:, :2] @ weights.T + np.array(values["intercepts"]))))
    own = p[np.arange(150), Y]
    want = np.log(p.sum(axis=1) - own) - np.log(own)
    losses = collect(path, members=(X[:76, :2], Y[:76]), nonmembers=(X[76:, :2], Y[76:]))
    assert np.all(np.abs(losses.member - want[:76]) <= room(want[:76]))
    assert np.all(np.abs(losses.nonmember - want[76:]) <= room(want[76:]))
    assert np.ptp(want) > 3


def test_each_input_takes_the_column_of_its_name():
    """A pipeline with a column of text has an input for each column, filled from a data frame in any order."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    frame = pd.DataFrame({"a": X32[:, 0], "k": np.where(X32[:, 1] > 3, "wide", "thin"), "b": X32[:, 2]})
    columns = ColumnTransformer([("n", StandardScaler(), ["a", "b"]), ("c", OneHotEncoder(), ["k"])])
    model = make_pipeline(columns, LogisticRegression()).fit(frame, Y)
    number, text = FloatTensorType([None, 1]), StringTensorType([None, 1])
    content = opened(convert_sklearn(model, initial_types=[("a", number), ("k", text), ("b", number)]))
    found, want = losses_of(content, Y, frame[["k", "b", "a"]]), losses_of(model, Y, frame)
    assert np.all(np.abs(found.member - want.member) <= 4 * room(want.member))
    with refused("member X must have a column for each input of the model, .*: 'k'"):
        losses_of(content, Y, frame.drop(columns="k"))
    with refused(r"a table with a column for each of the model's 3 inputs \('a', 'k', 'b'\), got"):
        losses_of(content, Y, X)
    with refused(r"member X, column 'a', must be numbers for this model, got text \('long'\)"):
        losses_of(content, Y, frame.assign(a="long"))


def test_a_session_and_a_path_are_the_same_model(tmp_path):
    """However the model arrives, its losses are the same."""
    import onnxruntime

    session = converted(LogisticRegression(max_iter=500).fit(X32, Y))
    path = tmp_path / "m.onnx"
    path.write_bytes(session._model_bytes)
    forms = [session, path, str(path), onnxruntime.InferenceSession(path)]
    losses = [losses_of(form).member for form in forms]
    assert all(np.array_equal(one, losses[0]) for one in losses)


def test_classes_that_cannot_be_known_are_asked_for():
    """Where the graph does not name its classes, the names are requested."""
    model = MLPClassifier((4,), max_iter=2000, random_state=0).fit(X32, NAMES)
    one = X32[Y == 0][:10]
    with refused(r"member label 'virginica' .* name the class of each output column with classes="):
        collect(
            converted(model, zipmap=False),
            members=(one, ["virginica"] * 10),
            nonmembers=(one, ["virginica"] * 10),
        )


def test_a_graph_without_scores_is_refused():
    """A model that gives labels alone has no losses to give."""
    import onnx

    session = converted(LogisticRegression(max_iter=500).fit(X32, Y), zipmap=False)
    graph = onnx.load_model_from_string(session._model_bytes)
    del graph.graph.output[1]
    with refused("model must have one output of scores, got 0 among 'label'; export it with"):
        losses_of(opened(graph))
