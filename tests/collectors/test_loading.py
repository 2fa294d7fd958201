"""Files of models: each kind is read, and nothing that others wrote in one is run."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
import warnings
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from auditor import InputError
from auditor.collectors import collect
from auditor.collectors.loading import load_model
from auditor.collectors.predictors import predictor
from auditor.collectors.tasks import Classification

pytestmark = [
    pytest.mark.filterwarnings("ignore:the labels look as if"),  # labels that the model knows nothing of
    pytest.mark.filterwarnings("ignore:all outputs for"),
    pytest.mark.filterwarnings("ignore:the probabilities of a record sum"),
]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.integers(0, 3, 60)
MODEL = LogisticRegression().fit(X, Y)


class Trap:
    """What a hostile pickle holds: unpickled, it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def losses_of(model):
    """Losses of a model on the two halves."""
    return collect(model, members=(X[:30], Y[:30]), nonmembers=(X[30:], Y[30:]))


# --- scikit-learn ----------------------------------------------------------------------------------


def test_a_skops_file_is_the_estimator(tmp_path):
    """An estimator read back from skops gives the same losses bit for bit."""
    skops = pytest.importorskip("skops.io")
    skops.dump(MODEL, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    np.testing.assert_array_equal(losses_of(loaded).member, losses_of(MODEL).member)


def test_a_type_that_skops_does_not_know_is_refused_by_name(tmp_path):
    """Functions and classes from elsewhere are named, and load once they are trusted."""
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "m.skops"
    skops.dump(FunctionTransformer(textwrap.dedent), path)
    sentence = (
        r"file 'm.skops' holds types that are not known to be harmless: 'textwrap.dedent'; .* trusted_types"
    )
    with pytest.raises(InputError, match=sentence):
        load_model(path)
    assert load_model(path, trusted_types=["textwrap.dedent"]).func is textwrap.dedent


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".pickle", ".sav"])
def test_a_pickle_is_refused_before_anything_in_it_runs(tmp_path, suffix):
    """The reason and the flag are named, and the file's code has not run; trusted, it would have."""
    path, mark = tmp_path / f"m{suffix}", tmp_path / "mark"
    joblib.dump(Trap(str(mark)), path)
    with pytest.raises(InputError, match=r"is a pickle, and loading one runs whatever code .*--trust-pickle"):
        load_model(path)
    assert not mark.exists()
    load_model(path, trust_pickle=True)
    assert mark.exists()


def test_a_trusted_pickle_is_the_estimator(tmp_path):
    """With the flag, joblib and pickle files load."""
    joblib.dump(MODEL, tmp_path / "m.joblib")
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(MODEL))
    for name in ("m.joblib", "m.pkl"):
        loaded = load_model(tmp_path / name, trust_pickle=True)
        np.testing.assert_array_equal(losses_of(loaded).member, losses_of(MODEL).member)


def test_another_version_of_scikit_learn_is_one_warning(tmp_path):
    """However many parts of a pipeline are old, the versions are named in a single sentence."""
    state = MODEL.__getstate__()
    old = [LogisticRegression.__new__(LogisticRegression) for _ in range(3)]
    for model in old:
        model.__dict__.update(state)

    class Aged(pickle.Pickler):
        def reducer_override(self, item):
            if isinstance(item, LogisticRegression):
                return LogisticRegression, (), {**state, "_sklearn_version": "1.0.2"}
            return NotImplemented

    with (tmp_path / "m.pkl").open("wb") as file:
        Aged(file).dump(old)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_model(tmp_path / "m.pkl", trust_pickle=True)
    (warning,) = caught
    assert str(warning.message).startswith(
        "file 'm.pkl' was saved with scikit-learn 1.0.2 and is loaded with "
    )
    assert "outputs may differ" in str(warning.message)
    assert Path(warning.filename).name == Path(__file__).name


IDENTITY = """
import sys
from auditor.collectors.loading import load_model
from auditor.collectors.predictors import predictor
from auditor.collectors.tasks import Classification
for path in sys.argv[1:]:
    print(predictor(load_model(path, trust_pickle=True), task=Classification()).identity)
"""


def identity(model):
    """The identity of a classifier."""
    return predictor(model, task=Classification()).identity


def test_the_identity_of_an_estimator_is_the_same_in_another_process(tmp_path):
    """What was hashed here is hashed alike where the file is loaded, for trees, networks, neighbours and boosting."""
    models = [
        make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)),
        MLPClassifier((4,), max_iter=3, random_state=0),
        KNeighborsClassifier(),
        GradientBoostingClassifier(n_estimators=2),
        HistGradientBoostingClassifier(max_iter=2),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    ]
    paths = [tmp_path / f"{place}.joblib" for place in range(len(models))]
    for model, path in zip(models, paths, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few steps do not converge
            joblib.dump(model.fit(X, Y), path)
    for model in models:
        model.predict_proba(X)
    here = [identity(model) for model in models]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IDENTITY, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "77"},
    )
    assert done.stdout.split() == here
    assert len(set(here)) == len(here)


def test_the_identity_of_an_estimator_is_of_its_numbers(tmp_path):
    """Another coefficient is another model; scoring changes nothing; what cannot be hashed has no identity."""
    model = LogisticRegression().fit(X, Y)
    before = identity(model)
    losses_of(model)
    assert identity(model) == before is not None
    skops = pytest.importorskip("skops.io")
    skops.dump(model, tmp_path / "m.skops")
    assert identity(load_model(tmp_path / "m.skops")) == before
    model.coef_[0, 0] = np.nextafter(model.coef_[0, 0], 9)
    assert identity(model) != before
    assert identity(make_pipeline(FunctionTransformer(lambda x: x), model)) is None


# --- PyTorch ---------------------------------------------------------------------------------------


@pytest.fixture
def torch(require_extra):
    """PyTorch, where it is installed."""
    require_extra("torch")
    import torch

    return torch


def network():
    """The network that state dicts of these tests belong to."""
    import torch

    return torch.nn.Linear(3, 3, dtype=torch.float64)


def filled(torch):
    """The network with the weights of the estimator."""
    net = network()
    with torch.no_grad():
        net.weight.copy_(torch.tensor(MODEL.coef_))
        net.bias.copy_(torch.tensor(MODEL.intercept_))
    return net


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_torchscript_file_is_the_module(tmp_path, torch):
    """A scripted network needs no factory and gives the estimator's losses."""
    torch.jit.trace(filled(torch), torch.zeros(1, 3, dtype=torch.float64)).save(str(tmp_path / "m.pt"))
    loaded = load_model(tmp_path / "m.pt")
    np.testing.assert_allclose(losses_of(loaded).member, losses_of(MODEL).member, rtol=1e-12)


@pytest.mark.parametrize("prefix", ["", "_module.", "module.", "_orig_mod._module."])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_state_dict_fills_what_the_factory_builds(tmp_path, torch, prefix, wrapped):
    """Weights alone, or inside a checkpoint, under the names that wrappers give, load into the network."""
    weights = {prefix + name: value for name, value in filled(torch).state_dict().items()}
    torch.save({"epoch": 3, "state_dict": weights} if wrapped else weights, tmp_path / "m.pth")
    loaded = load_model(tmp_path / "m.pth", factory=network)
    np.testing.assert_allclose(losses_of(loaded).member, losses_of(MODEL).member, rtol=1e-12)


def test_a_safetensors_file_fills_what_the_factory_builds(tmp_path, torch):
    """Safetensors files hold weights alone as well."""
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(filled(torch).state_dict(), tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors", factory=network)
    np.testing.assert_allclose(losses_of(loaded).member, losses_of(MODEL).member, rtol=1e-12)


def test_a_factory_is_found_in_the_working_directory(tmp_path, torch, monkeypatch):
    """The name of a function is imported from where the user is, and the import path is as before."""
    torch.save(filled(torch).state_dict(), tmp_path / "m.pt")
    (tmp_path / "nets_of_a_user.py").write_text(
        "import torch\ndef build():\n    return torch.nn.Linear(3, 3, dtype=torch.float64)\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    loaded = load_model("m.pt", factory="nets_of_a_user:build")
    assert sys.path == before
    np.testing.assert_allclose(losses_of(loaded).member, losses_of(MODEL).member, rtol=1e-12)


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (None, r"file 'm.pt' holds weights alone, so factory must name what builds the network"),
        ("nets", "factory must be written 'module:function', got 'nets'"),
        ("no_such_module:build", "factory 'no_such_module:build' must be importable .* ModuleNotFoundError"),
        ("math:nothing", "factory 'math:nothing' must be importable .* AttributeError"),
        ("math:pi", r"factory must be a callable or 'module:function', got 'math:pi'"),
        (lambda: 1 / 0, "factory must build the network without arguments, but it failed: ZeroDivisionError"),
        (dict, r"factory must build a torch.nn.Module, got dict"),
    ],
)
def test_a_factory_that_does_not_fit_is_one_sentence(tmp_path, torch, factory, sentence):
    """What is wrong with the factory is said, with its name."""
    torch.save(filled(torch).state_dict(), tmp_path / "m.pt")
    with pytest.raises(InputError, match=sentence):
        load_model(tmp_path / "m.pt", factory=factory)


def test_weights_of_another_network_are_one_sentence(tmp_path, torch):
    """The layer that does not fit is named on one line."""
    torch.save(filled(torch).state_dict(), tmp_path / "m.pt")
    with pytest.raises(
        InputError, match=r"must hold the weights of Linear, but they do not fit: .*size mismatch"
    ):
        load_model(tmp_path / "m.pt", factory=lambda: torch.nn.Linear(3, 2))


def test_a_pickled_module_is_refused_and_its_code_does_not_run(tmp_path, torch):
    """torch.save of a whole object is a pickle: refused with the reason, loaded when trusted."""
    mark = tmp_path / "mark"
    torch.save(Trap(str(mark)), tmp_path / "m.pt")
    with pytest.raises(
        InputError, match=r"file 'm.pt' is a pickle, and loading one runs .* save its state dict"
    ):
        load_model(tmp_path / "m.pt")
    assert not mark.exists()
    torch.save(filled(torch), tmp_path / "whole.pt")
    loaded = load_model(tmp_path / "whole.pt", trust_pickle=True)
    np.testing.assert_allclose(losses_of(loaded).member, losses_of(MODEL).member, rtol=1e-12)


# --- Boosters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("kinds", [2, 3])
def test_a_file_of_xgboost_is_its_booster(tmp_path, suffix, kinds):
    """The booster in a file gives the losses of the estimator that wrote it."""
    xgboost = pytest.importorskip("xgboost")
    y = np.minimum(Y, kinds - 1)
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1).fit(X, y)
    model.save_model(tmp_path / f"m{suffix}")
    loaded = load_model(tmp_path / f"m{suffix}")
    one, two = (collect(m, members=(X[:30], y[:30]), nonmembers=(X[30:], y[30:])) for m in (loaded, model))
    np.testing.assert_array_equal(one.member, two.member)
    assert one.history[0].endswith("from raw margin of an XGBoost booster")


@pytest.mark.parametrize("kinds", [2, 3])
def test_a_file_of_lightgbm_is_its_booster(tmp_path, kinds):
    """Likewise for LightGBM, whose text file keeps 17 digits."""
    lightgbm = pytest.importorskip("lightgbm")
    y = np.minimum(Y, kinds - 1)
    model = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=3, verbose=-1, n_jobs=1).fit(X, y)
    model.booster_.save_model(str(tmp_path / "m.txt"))
    loaded = load_model(tmp_path / "m.txt")
    one, two = (collect(m, members=(X[:30], y[:30]), nonmembers=(X[30:], y[30:])) for m in (loaded, model))
    np.testing.assert_allclose(one.member, two.member, rtol=1e-12)
    assert one.history[0].endswith("from raw margin of a LightGBM booster")


# --- Keras -----------------------------------------------------------------------------------------


@pytest.fixture
def keras(require_extra):
    """Keras, where TensorFlow is installed."""
    require_extra("tensorflow")
    import keras

    return keras


def keras_model(keras, *middle):
    """The estimator as a Keras model."""
    layers = keras.layers
    net = keras.Sequential([layers.InputLayer((3,)), *middle, layers.Dense(3, activation="softmax")])
    net.layers[-1].set_weights([MODEL.coef_.T, MODEL.intercept_])
    return net


TF = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside TensorFlow, and of distutils


@TF
@pytest.mark.parametrize("name", ["m.keras", "folder"])
def test_a_file_or_folder_of_keras_is_the_model(tmp_path, keras, name):
    """Both formats give the estimator's losses to the rounding of float32."""
    keras_model(keras).save(tmp_path / name)
    losses = losses_of(load_model(tmp_path / name))
    np.testing.assert_allclose(losses.member, losses_of(MODEL).member, atol=1e-5)
    assert "float32 logits" in losses.history[0]


@TF
def test_a_model_of_tensorflow_privacy_is_loaded_as_what_it_predicts(tmp_path, keras):
    """A DPSequential, whose class Keras cannot find again, loads as the plain model with the same layers."""
    import tensorflow_privacy

    layers = keras.layers
    net = tensorflow_privacy.DPSequential(
        l2_norm_clip=1.0, noise_multiplier=1.0, num_microbatches=1,
        layers=[layers.InputLayer((3,)), layers.Dense(3, activation="softmax")],
    )  # fmt: skip
    net.layers[-1].set_weights([MODEL.coef_.T, MODEL.intercept_])
    net.save(tmp_path / "m.keras")
    np.testing.assert_allclose(
        losses_of(load_model(tmp_path / "m.keras")).member, losses_of(net).member, rtol=1e-6
    )


@TF
def test_the_bytecode_of_a_lambda_layer_does_not_run(tmp_path, keras):
    """A .keras file with bytecode is refused; a SavedModel with it gives its graph, which is the same function."""
    mark = str(tmp_path / "mark")
    layer = keras.layers.Lambda(lambda x, mark=mark: (open(mark, "a").close(), 2 * x)[1])  # noqa: PTH123
    net = keras_model(keras, layer)
    net.save(tmp_path / "m.keras")
    net.save(tmp_path / "folder")
    want = losses_of(net).member
    Path(mark).unlink()
    with pytest.raises(InputError, match=r"holds the bytecode of a Lambda layer, .*--trust-pickle"):
        load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(losses_of(load_model(tmp_path / "folder")).member, want, rtol=1e-5, atol=1e-5)
    assert not Path(mark).exists()


@TF
@pytest.mark.parametrize(
    ("place", "foreign"), [("subprocess", "subprocess.Popen"), ("builtins", "builtins.exec"), ("keras.utils", "keras.utils.get_file")]
)  # fmt: skip
def test_a_keras_file_that_names_other_code_is_refused(tmp_path, keras, place, foreign):
    """Keras would import whatever module a file names; only the rooms of Keras that hold parts of models may be."""
    keras_model(keras).save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    name = foreign.rpartition(".")[2]
    activation = {"module": place, "class_name": "function", "config": name, "registered_name": "function"}
    config["config"]["layers"][-1]["config"]["activation"] = activation
    parts["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(tmp_path / "bad.keras", "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    with pytest.raises(InputError, match=rf"names code that is not of Keras: '{foreign}'; .* trusted_types"):
        load_model(tmp_path / "bad.keras")


def test_the_older_format_of_keras_is_refused(tmp_path):
    """HDF5 files can run code when loaded, whatever safe mode says, and need the flag."""
    (tmp_path / "m.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(
        InputError, match=r"older HDF5 format, from which loading can run any code; .*--trust-pickle"
    ):
        load_model(tmp_path / "m.h5")


# --- What is no model ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "model.bin",
            b"x",
            r"^file 'model.bin' must be a model in a file of a known kind \(.onnx, .skops, .keras",
        ),
        ("model", b"x", r"^file 'model' must be a model in a file of a known kind"),
        (
            "none.onnx",
            None,
            r"^file 'none.onnx' must be the file of a model, but there is none at that path\.$",
        ),
        ("empty.skops", b"", r"^file 'empty.skops' must be the file of a model, but it is empty\.$"),
        ("folder", "folder", r"^folder 'folder' must be a SavedModel, but it has no saved_model.pb"),
    ],
)
def test_what_is_no_model_is_one_sentence(tmp_path, name, content, sentence):
    """The file's name, without its place on this machine, and what is wrong with it."""
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        load_model(path)
    assert str(tmp_path) not in str(caught.value)


DAMAGED = {
    "m.onnx": "onnxruntime",
    "m.skops": "skops",
    "m.pt": "torch",
    "m.safetensors": "safetensors",
    "m.json": "xgboost",
    "m.ubj": "xgboost",
    "m.txt": "lightgbm",
    "m.joblib": "joblib",
    "m.keras": "tensorflow",
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize(
    "content", [b"no model at all", bytes(range(256)) * 4, b"PK\x03\x04" + b"\x00" * 200]
)
def test_a_damaged_file_is_one_sentence(tmp_path, name, content, capfd):
    """Whatever the reader raises, the sentence names the file and what it should be, on one line, without its path."""
    pytest.importorskip(DAMAGED[name])
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"^file '{name}' (must be|is)") as caught:
        load_model(tmp_path / name, trust_pickle=name == "m.joblib", factory=dict)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    capfd.readouterr()  # some readers print


def test_a_truncated_file_of_each_kind_is_one_sentence(tmp_path, torch):
    """Half a file is as good as none."""
    torch.save(filled(torch).state_dict(), tmp_path / "m.pt")
    whole = (tmp_path / "m.pt").read_bytes()
    for size in range(1, len(whole), 97):
        (tmp_path / "m.pt").write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"^file 'm.pt' must "):
            load_model(tmp_path / "m.pt", factory=network)
