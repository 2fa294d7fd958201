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
from auditor.collectors.base import Classification
from auditor.collectors.models import load_model, touching_operations, without_training
from auditor.collectors.streaming import predictor

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


@pytest.mark.parametrize("name", ["schema.json", "numbers.npy"])
def test_a_skops_file_that_would_fill_the_memory_is_refused(tmp_path, name):
    """A file of some hundred kilobytes that unpacks into 160 MB is refused by its declared sizes, unread."""
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "m.skops"
    skops.dump(MODEL, path)
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    parts[name] = parts.get(name, b"") + b" " * 160_000_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    del parts
    with pytest.raises(InputError, match=r"(schema.json would take|would unpack into) 160 MB"):
        load_model(path)


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
from auditor.collectors.models import load_model
from auditor.collectors.streaming import predictor
from auditor.collectors.base import Classification
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


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("operation", ["save", "from_file"])
def test_a_torchscript_file_that_touches_files_is_refused(tmp_path, torch, operation):
    """Operations that read or write files are named before any code of the file runs; trusted, they load."""

    class Touching(torch.nn.Module):
        def __init__(self, mark):
            super().__init__()
            self.mark = mark

    class Saving(Touching):
        def forward(self, x):
            torch.save(x, self.mark)
            return x

    class Reading(Touching):
        def forward(self, x):
            return x + torch.from_file(self.mark, False, 3)

    net = {"save": Saving, "from_file": Reading}[operation](str(tmp_path / "mark"))
    torch.jit.script(net).save(str(tmp_path / "m.ts"))
    sentence = rf"^file 'm.ts' holds operations that may touch files or run other code: {operation}; .*--trust-pickle"
    with pytest.raises(InputError, match=sentence):
        load_model(tmp_path / "m.ts")
    assert isinstance(load_model(tmp_path / "m.ts", trust_pickle=True), torch.jit.ScriptModule)


HIDDEN = {
    "spaces": "torch . save (x)",
    "a comment": "(torch. # of\n save)(x)",
    "a comment after a string": '("#", torch. # of\n save)(x)',
    "a method": "(x).save(y)",
    "a name as text": 'getattr(torch, "save")(x)',
    "a name inside another": 'getattr(getattr(self, "a"), "save")(x)',
    "escapes": 'getattr(torch, "sa\\x76e")(x)',
    "joined texts": 'getattr(torch, "sa" "ve")(x)',
    "another library": "ops.image.read_file(x)",
    "another process": "ops.prim.rpc_sync(x)",
    "a class of a library": "__torch__.torch.classes.aoti.Runner(x)",
}
HARMLESS = (
    'x = "to save # (it)"',
    'getattr(getattr(self, "0"), "1")',
    "self.classes",
    "self.ops",
    "ops.quantized.linear(x)",
    "__torch__.torch.classes.quantized.LinearPackedParamsBase",
    "saved = 3",
)


@pytest.mark.parametrize("how", HIDDEN)
def test_operations_are_found_however_they_are_written(how):
    """Spaces, comments, escapes and names in texts hide nothing from the look at TorchScript code."""
    assert list(touching_operations(HIDDEN[how]))


@pytest.mark.parametrize("code", HARMLESS)
def test_words_that_call_nothing_are_no_operations(code):
    """Texts, comments, attributes and quantised layers are not taken for operations that touch files."""
    assert not list(touching_operations(code))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_the_identity_of_a_torchscript_file_is_of_its_code_and_constants(tmp_path, torch):
    """Loaded twice it is the same; another constant, attribute or operation makes another, with equal weights."""

    def scaled(slope):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.slope = slope

            def forward(self, x):
                return self.slope * x

        return Net()

    def cut(slope):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.slope = slope

            def forward(self, x):
                return self.slope * torch.relu(x)

        return Net()

    def saved(net):
        torch.jit.script(net).save(str(tmp_path / "m.ts"))
        return identity(load_model(tmp_path / "m.ts"))

    first = saved(scaled(1.0))
    assert saved(scaled(1.0)) == first
    assert len({first, saved(scaled(2.0)), saved(cut(1.0))}) == 3


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_the_identity_of_a_torchscript_file_is_of_the_constants_of_inner_parts(tmp_path, torch):
    """A number that tracing froze into an inner part, which the outer code does not show, counts."""

    def traced(constant):
        held = torch.tensor([1.0, 2.0, constant])

        class Part(torch.nn.Module):
            def forward(self, x):
                return x * held

        torch.jit.trace(torch.nn.Sequential(Part()), torch.ones(1, 3)).save(str(tmp_path / "m.ts"))
        return identity(load_model(tmp_path / "m.ts"))

    assert traced(3.0) == traced(3.0) != traced(4.0)


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
    with pytest.raises(InputError, match=r"holds a Lambda layer, whose code could do .*--trust-pickle"):
        load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(losses_of(load_model(tmp_path / "folder")).member, want, rtol=1e-5, atol=1e-5)
    assert not Path(mark).exists()


def rewritten(keras, folder, change, *, weights=None, name="model.weights.h5"):
    """A .keras file whose configuration was changed, and perhaps its weights."""
    keras_model(keras).save(folder / "m.keras")
    with zipfile.ZipFile(folder / "m.keras") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    change(config)
    parts["config.json"] = json.dumps(config).encode()
    if weights is not None:
        parts[name] = weights(parts.pop("model.weights.h5"))
    with zipfile.ZipFile(folder / "bad.keras", "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    return folder / "bad.keras"


def function(place, name):
    """How a configuration names a function."""
    return {"module": place, "class_name": "function", "config": name, "registered_name": name}


def part(place, kind, config=None, **more):
    """How a configuration names a layer."""
    return {"module": place, "class_name": kind, "registered_name": None, "config": config or {}, **more}


OPERATION = "keras.src.layers.core.tf_op_layer"
INNER = part("keras.layers", "StringLookup", {"vocabulary": "/etc/hostname"})
FOREIGN = {
    "subprocess.Popen": function("subprocess", "Popen"),
    "builtins.exec": function("builtins", "exec"),
    "keras.utils.get_file": function("keras.utils", "get_file"),
    "keras.utils.get_file ": function("keras", "utils.get_file"),
    "keras.src.utils.data_utils.get_file": function("keras.src.utils.data_utils", "get_file"),
    "keras.models.load_model": function("keras.models", "load_model"),
    "os.__typespec__": part("os", "__typespec__", spec_name="system"),
    "keras.layers.utils.get_file": part("keras.layers", "utils.get_file"),
    "tf.io.write_file": part(OPERATION, "TFOpLambda", {"function": "io.write_file"}),
    "keras.src.layers.core.tf_op_layer.ClassMethod": part(OPERATION, "ClassMethod", {"cls_symbol": "io.gfile.GFile"}),
    "keras.layers.StringLookup": part("keras.layers", "TimeDistributed", {"layer": INNER}),
    "keras.layers.TextVectorization": part("keras.layers", "TextVectorization", {"vocabulary": "/etc/hostname"}),
    "keras.layers.TFSMLayer": part("keras.layers", "TFSMLayer", {"filepath": "folder"}),
    "keras.layers.TorchModuleWrapper": part("keras.layers", "TorchModuleWrapper"),
    "keras.layers.house>Dense": {**part("keras.layers", "Dense"), "registered_name": "house>Dense"},
    "Dense": {"class_name": "Dense", "config": {"units": 3}},
    "keras.activations.deserialize": "deserialize",
}  # fmt: skip


@TF
@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_keras_file_that_names_what_is_not_on_the_list_is_refused(tmp_path, keras, foreign):
    """Keras would import whatever a file names, at any depth; only parts known to be harmless may be named."""
    path = rewritten(
        keras, tmp_path, lambda config: config["config"]["layers"][-1]["config"].update(activation=FOREIGN[foreign])
    )  # fmt: skip
    sentence = rf"names parts that are not known to be harmless: '{foreign.strip()}'; .* trusted_types"
    with pytest.raises(InputError, match=sentence):
        load_model(path)


@TF
@pytest.mark.parametrize(
    "code", [part("keras.layers", "Lambda"), {"class_name": "__lambda__", "config": {"value": ["x", None, None]}}]
)  # fmt: skip
def test_no_name_makes_a_lambda_layer_harmless(tmp_path, keras, code):
    """Bytecode has no name to trust, so only trust in the whole file will do."""
    path = rewritten(keras, tmp_path, lambda config: config["config"]["layers"].insert(1, code))
    with pytest.raises(InputError, match=r"holds a Lambda layer, whose code could do .*--trust-pickle"):
        load_model(path, trusted_types=["keras.layers.Lambda", "__lambda__"])


@TF
def test_the_training_of_an_inner_model_does_not_run(tmp_path, keras):
    """What an inner model was compiled with is not built, as Keras would in spite of compile=False: it can run a command."""
    mark = tmp_path / "mark"

    def running(code, **more):
        extra = {
            "module": None,
            "output_shape": None,
            "output_shape_type": "raw",
            "output_shape_module": None,
        }
        config = {"name": "l", "function": code, "function_type": "function", "arguments": {}, **extra}
        return part("keras.layers", "Lambda", config, **more)

    command = [[["_CONSTANT_VALUE", -1, f"touch {mark}", {}]]]
    network = {
        "name": "f",
        "layers": [running(function("os", "system"), name="l", inbound_nodes=command)],
        "input_layers": [["l", 0, 0]],
        "output_layers": [["l", 0, 0]],
    }
    loss = part("keras.src.engine.functional", "Functional", network)
    inner = part("keras", "Sequential", {"name": "s", "layers": []}, compile_config={"loss": loss})
    path = rewritten(keras, tmp_path, lambda config: config["config"]["layers"].insert(1, running(inner)))
    with pytest.raises(InputError):
        load_model(path)
    assert not mark.exists()
    assert without_training([inner]) == [part("keras", "Sequential", {"name": "s", "layers": []})]


@TF
def test_a_compiled_model_inside_another_is_loaded(tmp_path, keras):
    """Networks of the usual layers load with their weights: images, texts, arithmetic, and a compiled one inside another."""
    layers = keras.layers
    image = layers.Input((8, 8, 1))
    middle = layers.BatchNormalization()(
        layers.Conv2D(2, 3, activation="relu", kernel_regularizer="l2")(image)
    )
    middle = layers.Dropout(0.1)(layers.GlobalAveragePooling2D()(middle)) + 1.0
    inner = keras.Model(image, layers.Dense(3, activation=keras.activations.gelu)(middle))
    inner.compile("adam", "mse")
    words = layers.Input((5,), dtype="int32")
    state = layers.Bidirectional(layers.LSTM(3))(layers.Embedding(10, 4)(words))
    picture = layers.Input((8, 8, 1))
    joined = layers.Concatenate()([inner(picture), state])
    net = keras.Model(
        [picture, words], layers.Dense(2, activation="softmax", kernel_constraint="max_norm")(joined)
    )
    net.save(tmp_path / "m.keras")
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(4, 8, 8, 1)).astype("float32"), rng.integers(0, 10, (4, 5))]
    np.testing.assert_array_equal(load_model(tmp_path / "m.keras")(given), net(given))


@TF
def test_pickled_weights_are_never_read(tmp_path, keras):
    """Weights in an NPZ archive, which Keras would unpickle, are passed over, and their code does not run."""
    mark = tmp_path / "mark"

    def pickled(_):
        np.savez(tmp_path / "w.npz", dense=np.array([Trap(str(mark))], dtype=object))
        return (tmp_path / "w.npz").read_bytes()

    path = rewritten(keras, tmp_path, dict.copy, weights=pickled, name="model.weights.npz")
    with pytest.raises(InputError, match=r"must hold its weights in model.weights.h5, but there are none"):
        load_model(path)
    assert not mark.exists()


@TF
@pytest.mark.parametrize("how", ["link", "storage", "view"])
def test_weights_that_lie_in_another_file_are_refused(tmp_path, keras, how):
    """HDF5 can take an array from any file of this machine, by a link, as storage, or as a view."""
    import h5py

    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["secret"] = np.ones((3, 3))

    def elsewhere(content):
        weights = tmp_path / "w.h5"
        weights.write_bytes(content)
        with h5py.File(weights, "r+") as file:
            if how == "link":
                file["x"] = h5py.ExternalLink(str(other), "/secret")
            elif how == "storage":
                file.create_dataset("x", (3, 3), "f8", external=[(str(other), 0, 72)])
            else:
                layout = h5py.VirtualLayout((3, 3), "f8")
                layout[...] = h5py.VirtualSource(str(other), "secret", (3, 3))
                file.create_virtual_dataset("x", layout)
        return weights.read_bytes()

    path = rewritten(keras, tmp_path, dict.copy, weights=elsewhere)
    with pytest.raises(InputError, match=r"takes the weights at '/+x' from another file"):
        load_model(path)


# --- SavedModels -----------------------------------------------------------------------------------


def saved_with(keras, folder, act):
    """A SavedModel that does something beside predicting."""

    class Acting(keras.Model):
        def __init__(self):
            super().__init__()
            self.last = keras.layers.Dense(3, activation="softmax")

        def call(self, x):
            return self.last(act(x))

    net = Acting()
    net(X.astype("float32"))
    net.save(folder, save_format="tf")
    return net


@TF
@pytest.mark.parametrize("operation", ["WriteFile", "ReadFile", "EagerPyFunc", "SaveV2", "PrintV2"])
def test_a_saved_model_that_touches_files_is_refused(tmp_path, keras, operation):
    """Operations that read or write files, or call Python, are found in every function and named; trusted, they load."""
    import tensorflow as tf

    mark = str(tmp_path / "mark")
    Path(mark).write_text("1")

    def act(x):
        if operation == "WriteFile":
            tf.io.write_file(mark, "x")
        elif operation == "ReadFile":
            return x * tf.strings.to_number(tf.io.read_file(mark))
        elif operation == "EagerPyFunc":
            return tf.ensure_shape(tf.py_function(lambda y: y, [x], tf.float32), (None, 3))
        elif operation == "SaveV2":
            tf.raw_ops.SaveV2(prefix=mark, tensor_names=["x"], shape_and_slices=[""], tensors=[x])
        else:
            tf.print("x", output_stream=f"file://{mark}")
        return x

    saved_with(keras, tmp_path / "folder", act)
    with pytest.raises(
        InputError, match=rf"^folder 'folder' holds operations that may touch .*: {operation}; .*"
    ):
        load_model(tmp_path / "folder")
    assert isinstance(load_model(tmp_path / "folder", trust_pickle=True), keras.Model)


@TF
def test_a_saved_model_of_ones_own_class_is_its_graph(tmp_path, keras):
    """A class that Keras does not know is restored from its graph, with the same outputs."""
    net = saved_with(keras, tmp_path / "folder", lambda x: 2 * x)
    np.testing.assert_allclose(
        losses_of(load_model(tmp_path / "folder")).member, losses_of(net).member, rtol=1e-5
    )


@TF
def test_a_layer_of_a_saved_model_is_not_built_from_what_its_description_names(tmp_path, keras):
    """A description that asks for any function of TensorFlow is passed over for the layer's graph."""
    from keras.protobuf import saved_metadata_pb2

    mark = tmp_path / "mark"
    keras_model(keras, keras.layers.Activation("relu", name="middle")).save(tmp_path / "folder")
    place = tmp_path / "folder" / "keras_metadata.pb"
    metadata = saved_metadata_pb2.SavedMetadata.FromString(place.read_bytes())
    want = losses_of(load_model(tmp_path / "folder")).member
    for node in metadata.nodes:
        described = json.loads(node.metadata)
        layers = [
            item for item in described["config"].get("layers", []) if item["config"]["name"] == "middle"
        ]
        for item in [*layers, *([described] if described["name"] == "middle" else [])]:
            item["class_name"] = "TextVectorization"
            item["config"] = {"name": "middle", "vocabulary": str(mark)}
        if described["name"] == "middle":
            described["must_restore_from_config"] = True
        node.metadata = json.dumps(described)
    place.write_bytes(metadata.SerializeToString())
    np.testing.assert_allclose(losses_of(load_model(tmp_path / "folder")).member, want, rtol=1e-6)


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
