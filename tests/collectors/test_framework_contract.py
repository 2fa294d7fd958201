"""One contract for every kind of model: the same softmax-linear model gives the same losses in all of them.

Where a model gives float64 or logits, losses agree to 1e-6; elsewhere within the rounding that its type implies,
eps / (p (1 - p)) for a probability p of the true class. The truth is computed from the weights with SciPy.
"""

import inspect

import numpy as np
import pandas as pd
import pytest
from collectors.common import QUIET, from_logits, refused
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from auditor.collectors import MultiLabel, Output, SquaredError, collect

# Deprecation is warned of inside TensorFlow.
pytestmark = [*QUIET, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

N = 100
RNG = np.random.default_rng(0)
X = RNG.integers(-64, 64, size=(2 * N, 5)) / 32  # exact in float32, so that only the model rounds
W, B = RNG.integers(-64, 64, size=(3, 5)) / 32, RNG.integers(-64, 64, size=3) / 32
Y = RNG.integers(0, 3, 2 * N)
Z = X @ W.T + B
WANT = from_logits(Z, Y)
ITSELF = 1 / (1 + np.exp(WANT))  # the probability of the true class


def estimator():
    """The model in scikit-learn."""
    model = LogisticRegression().fit(X, np.arange(2 * N) % 3)
    model.coef_, model.intercept_ = W.copy(), B.copy()
    return model


def module(dtype="float64", *, soft=False, layer=False):
    """The model in PyTorch: logits, a softmax function, or a softmax layer."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(5, 3, dtype=torch.float64)
            self.last = torch.nn.Softmax(dim=1) if layer else None
            with torch.no_grad():
                self.linear.weight.copy_(torch.tensor(W))
                self.linear.bias.copy_(torch.tensor(B))

        def forward(self, x):
            z = self.linear(x)
            if self.last is not None:
                return self.last(z)
            return torch.softmax(z, dim=1) if soft else z

    return Net().to(getattr(torch, dtype))


def keras_model(activation):
    """The model in Keras."""
    import keras

    model = keras.Sequential([keras.layers.InputLayer((5,)), keras.layers.Dense(3, activation=activation)])
    model.layers[-1].set_weights([W.T, B])
    return model


def onnx_model(dtype, *, raw):
    """The model in ONNX."""
    import onnxruntime
    from skl2onnx import to_onnx

    model = estimator()
    options = {id(model): {"zipmap": False, **({"raw_scores": True} if raw else {})}}
    model = to_onnx(model, X[:1].astype(dtype), options=options)
    return onnxruntime.InferenceSession(model.SerializeToString())


# Name: the extra, what makes the model, how it is called, and the type of its probabilities if it has none
# better.
MODELS = {
    "scikit-learn": (None, estimator, {}, None),
    "callable, logits": (None, lambda: lambda x: np.asarray(x) @ W.T + B, {"output": Output.LOGITS}, None),
    "callable, probabilities": (None, lambda: lambda x: softmax(np.asarray(x) @ W.T + B, axis=1), {}, None),
    "torch, double": ("torch", module, {}, None),
    "torch, double softmax": ("torch", lambda: module(soft=True), {}, None),
    "torch, float": ("torch", lambda: module("float32"), {}, None),
    "torch, float softmax layer": ("torch", lambda: module("float32", layer=True), {}, None),
    "torch, float softmax": ("torch", lambda: module("float32", soft=True), {}, np.float32),
    "torch, half softmax": ("torch", lambda: module("float16", soft=True), {}, np.float16),
    "keras": ("tensorflow", lambda: keras_model(None), {}, None),
    "keras, softmax": ("tensorflow", lambda: keras_model("softmax"), {}, None),
    "keras, said to be probabilities": (
        "tensorflow",
        lambda: keras_model("softmax"),
        {"output": Output.PROBABILITIES},
        np.float32,
    ),
    "onnx, double": ("onnx", lambda: onnx_model(np.float64, raw=True), {}, None),
    "onnx, double probabilities": ("onnx", lambda: onnx_model(np.float64, raw=False), {}, None),
    "onnx, float": ("onnx", lambda: onnx_model(np.float32, raw=True), {}, None),
    "onnx, float probabilities": ("onnx", lambda: onnx_model(np.float32, raw=False), {}, np.float32),
}


@pytest.fixture(params=MODELS.values(), ids=MODELS.keys())
def case(request, require_extra):
    """A model, how it is called, and how far each loss may be from the truth."""
    extra, build, kwargs, dtype = request.param
    if extra is not None:
        require_extra(extra)
    room = np.full(2 * N, 1e-6)
    if dtype is not None:
        # The logits are rounded too, and each of them by as much as the largest is.
        rounding = 4 * np.abs(Z).max() + 1 / (ITSELF * (1 - ITSELF))
        room = np.finfo(dtype).eps * rounding
    return build(), kwargs, room


@pytest.mark.parametrize("form", ["array", "frame", "batches"])
def test_every_kind_of_model_gives_the_same_losses(case, form):
    """The same records and the same weights are the same losses, in any framework."""
    model, kwargs, room = case
    features = pd.DataFrame(X, columns=list("abcde")) if form == "frame" else X
    if form == "batches":
        kwargs = {**kwargs, "batch_size": 33}
    losses = collect(model, members=(features[:N], Y[:N]), nonmembers=(features[N:], Y[N:]), **kwargs)
    assert np.all(np.abs(losses.member - WANT[:N]) <= room[:N])
    assert np.all(np.abs(losses.nonmember - WANT[N:]) <= room[N:])
    assert losses.saturated == (0, 0)


def test_the_wrong_number_of_columns_is_one_sentence(case):
    """Every kind of model but functions knows how many columns it was trained on."""
    model, kwargs, _ = case
    if inspect.isfunction(model):
        pytest.skip("it takes what it is given")
    few = X[:, :4]
    sentence = r"^member X must have the 5 columns that .* was trained on, got 4; .*\(features\)"
    with refused(sentence):
        collect(model, members=(few[:N], Y[:N]), nonmembers=(few[N:], Y[N:]), **kwargs)


# --- Other tasks, and outputs that could be two things ----------------------------------------------

SMALL = Z / 16  # whose sigmoids lose little in float32


def torch_net(units, last):
    """Small logits in PyTorch; what comes last is a layer, or a function that nothing can see."""
    import torch

    layer = torch.nn.Linear(5, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(W / 16))
        layer.bias.copy_(torch.tensor(B / 16))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.last = layer, torch.nn.Sigmoid() if last == "sigmoid" else None

        def forward(self, x):
            z = self.layer(x)[:, :units]
            return torch.sigmoid(z) if last == "hidden" else self.last(z) if self.last else z

    return Net()


def keras_net(units, last):
    """The same in Keras."""
    import keras

    dense = keras.layers.Dense(units, activation=last if last == "sigmoid" else None)
    hidden = [keras.layers.Lambda(keras.activations.sigmoid)] if last == "hidden" else []
    net = keras.Sequential([keras.layers.InputLayer((5,)), dense, *hidden])
    dense.set_weights([W[:units].T / 16, B[:units] / 16])
    return net


def onnx_net(units, last):
    """The same in ONNX, where every function is a node."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None]) for name in ("x", "y")]
    held = {"w": W[:units].T / 16, "b": B[:units] / 16}
    tensors = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in held.items()]
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["z"])]
    nodes.append(helper.make_node("Sigmoid" if last else "Identity", ["z"], ["y"]))
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString())


@pytest.fixture(params=[("torch", torch_net), ("tensorflow", keras_net), ("onnx", onnx_net)])
def net(request, require_extra):
    """A function that makes a network of so many outputs, with this last layer."""
    extra, make = request.param
    require_extra(extra)
    return make


def halves(model, y, **kwargs):
    """The losses of all records, the halves for the groups."""
    found = collect(model, members=(X[:N], y[:N]), nonmembers=(X[N:], y[N:]), **kwargs)
    return np.concatenate([found.member, found.nonmember]), found.history[0]


@pytest.mark.parametrize("last", [None, "sigmoid", "hidden"])
def test_other_tasks(net, last):
    """Two classes in one column, several labels and numbers, from logits or from whatever goes through a sigmoid."""
    sets, two = np.eye(3, dtype=int)[Y], np.minimum(Y, 1)
    near = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(halves(net(1, last), two)[0], from_logits(SMALL[:, 0], two), **near)
    want = np.where(sets == 1, -SMALL, SMALL).sum(axis=1)
    np.testing.assert_allclose(halves(net(3, last), sets, task=MultiLabel())[0], want, **near)
    given = SMALL[:, 0] if last is None else 1 / (1 + np.exp(-SMALL[:, 0]))
    found, _ = halves(net(1, last), two.astype(float), task=SquaredError())
    np.testing.assert_allclose(found, (two - given) ** 2, **near)


@pytest.mark.parametrize("last", ["sigmoid", "hidden"])
def test_sigmoids_of_several_classes_are_refused(net, last):
    """One sigmoid for each class is neither a softmax nor logits, unless the caller says what it is."""
    with refused(r"rows that do not sum to 1 .* pass output=Output.LOGITS .*MultiLabel"):
        halves(net(3, last), Y)
    want = from_logits(1 / (1 + np.exp(-SMALL)), Y)
    np.testing.assert_allclose(halves(net(3, "hidden"), Y, output=Output.LOGITS)[0], want, atol=1e-5)


def test_values_taken_for_probabilities_by_their_range_are_named(net):
    """Without a sigmoid to be seen the history says why they count as probabilities, unless the caller said it."""
    taken, two = "(taken for probabilities, since all lie in [0, 1])", np.minimum(Y, 1)
    assert halves(net(1, "hidden"), two)[1].endswith(taken)
    assert taken not in halves(net(1, "hidden"), two, output=Output.PROBABILITIES)[1]
    assert taken not in halves(net(1, None), two)[1]
    assert (taken in halves(net(1, "sigmoid"), two)[1]) == (net is onnx_net)
