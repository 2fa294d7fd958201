"""One contract for every kind of model: the same softmax-linear model gives the same losses in all of them.

Where a model gives float64 or logits, losses agree to 1e-6; elsewhere within the rounding that its type implies,
eps / (p (1 - p)) for a probability p of the true class. The truth is computed from the weights with SciPy.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LogisticRegression

from auditor.collectors import Output, collect
from auditor.collectors.models import load_model

pytestmark = [
    pytest.mark.filterwarnings("ignore:the labels look as if"),  # labels that the model knows nothing of
    pytest.mark.filterwarnings("ignore:all outputs for"),
    pytest.mark.filterwarnings("ignore:the probabilities of a record sum"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inside TensorFlow, and of TorchScript
]

N = 100
RNG = np.random.default_rng(0)
X = RNG.integers(-64, 64, size=(2 * N, 5)) / 32  # exact in float32, so that only the model rounds
W, B = RNG.integers(-64, 64, size=(3, 5)) / 32, RNG.integers(-64, 64, size=3) / 32
Y = RNG.integers(0, 3, 2 * N)
Z = X @ W.T + B
WANT = logsumexp(np.where(np.arange(3) == Y[:, None], -np.inf, Z), axis=1) - Z[np.arange(2 * N), Y]
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
    from skl2onnx import to_onnx

    model = estimator()
    options = {id(model): {"zipmap": False, **({"raw_scores": True} if raw else {})}}
    return to_onnx(model, X[:1].astype(dtype), options=options).SerializeToString()


def from_file(name, write):
    """The model read back from a file."""

    def build(folder):
        write(folder / name)
        return load_model(folder / name, trust_pickle=name.endswith(".joblib"), factory=module)

    return build


def written(content):
    """What writes bytes that are made when they are needed."""
    return lambda path: path.write_bytes(content())


def skops_file(path):
    """The model in a skops file."""
    pytest.importorskip("skops.io").dump(estimator(), path)


def joblib_file(path):
    """The model in a joblib file."""
    import joblib

    joblib.dump(estimator(), path)


def script_file(path):
    """The model in TorchScript."""
    import torch

    torch.jit.trace(module(), torch.zeros(1, 5, dtype=torch.float64)).save(str(path))


def state_file(path):
    """The weights of the model."""
    import torch

    torch.save(module().state_dict(), path)


# Name: the extra, what makes the model in a folder, how it is called, and the type of its probabilities if it has none
# better.
MODELS = {
    "scikit-learn": (None, lambda _: estimator(), {}, None),
    "callable, logits": (None, lambda _: lambda x: np.asarray(x) @ W.T + B, {"output": Output.LOGITS}, None),
    "callable, probabilities": (None, lambda _: lambda x: softmax(np.asarray(x) @ W.T + B, axis=1), {}, None),
    "torch, double": ("torch", lambda _: module(), {}, None),
    "torch, double softmax": ("torch", lambda _: module(soft=True), {}, None),
    "torch, float": ("torch", lambda _: module("float32"), {}, None),
    "torch, float softmax layer": ("torch", lambda _: module("float32", layer=True), {}, None),
    "torch, float softmax": ("torch", lambda _: module("float32", soft=True), {}, np.float32),
    "torch, half softmax": ("torch", lambda _: module("float16", soft=True), {}, np.float16),
    "keras": ("tensorflow", lambda _: keras_model(None), {}, None),
    "keras, softmax": ("tensorflow", lambda _: keras_model("softmax"), {}, None),
    "keras, said to be probabilities": (
        "tensorflow",
        lambda _: keras_model("softmax"),
        {"output": Output.PROBABILITIES},
        np.float32,
    ),
    "onnx, double": ("onnx", lambda _: onnx_model(np.float64, raw=True), {}, None),
    "onnx, double probabilities": ("onnx", lambda _: onnx_model(np.float64, raw=False), {}, None),
    "onnx, float": ("onnx", lambda _: onnx_model(np.float32, raw=True), {}, None),
    "onnx, float probabilities": ("onnx", lambda _: onnx_model(np.float32, raw=False), {}, np.float32),
    "file .skops": (None, from_file("m.skops", skops_file), {}, None),
    "file .joblib": (None, from_file("m.joblib", joblib_file), {}, None),
    "file .pt, TorchScript": ("torch", from_file("m.pt", script_file), {}, None),
    "file .pth, state dict": ("torch", from_file("m.pth", state_file), {}, None),
    "file .keras": (
        "tensorflow",
        from_file("m.keras", lambda path: keras_model("softmax").save(path)),
        {},
        None,
    ),
    "folder of a SavedModel": (
        "tensorflow",
        from_file("m", lambda path: keras_model("softmax").save(path)),
        {},
        None,
    ),
    "file .onnx": ("onnx", from_file("m.onnx", written(lambda: onnx_model(np.float64, raw=True))), {}, None),
}


@pytest.fixture(params=MODELS.values(), ids=MODELS.keys())
def case(request, tmp_path, require_extra):
    """A model, how it is called, and how far each loss may be from the truth."""
    extra, build, kwargs, dtype = request.param
    if extra is not None:
        require_extra(extra)
    room = np.full(2 * N, 1e-6)
    if dtype is not None:
        # The logits are rounded too, and each of them by as much as the largest is.
        rounding = 4 * np.abs(Z).max() + 1 / (ITSELF * (1 - ITSELF))
        room = np.finfo(dtype).eps * rounding
    return build(tmp_path), kwargs, room


@pytest.mark.parametrize("form", ["array", "frame", "batches"])
def test_every_kind_of_model_gives_the_same_losses(case, form):
    """The same records and the same weights are the same losses, in any framework, from memory or from a file."""
    model, kwargs, room = case
    features = pd.DataFrame(X, columns=list("abcde")) if form == "frame" else X
    if form == "batches":
        kwargs = {**kwargs, "batch_size": 33}
    losses = collect(model, members=(features[:N], Y[:N]), nonmembers=(features[N:], Y[N:]), **kwargs)
    assert np.all(np.abs(losses.member - WANT[:N]) <= room[:N])
    assert np.all(np.abs(losses.nonmember - WANT[N:]) <= room[N:])
    assert losses.saturated == (0, 0)
