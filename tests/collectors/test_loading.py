"""Files of models: each kind is read, and nothing that others wrote in one is run."""

import json
import os
import re
import sys
import textwrap
import warnings
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from collectors.common import QUIET, Trap, refused
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from skops import io as skops

from auditor import InputError
from auditor.collectors import ModelFile, RecordTable, collect
from auditor.collectors.models import load_model
from auditor.collectors.streaming import ScorerRecipe, ScoringOptions
from auditor.collectors.tables import open_source

pytestmark = QUIET

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.integers(0, 3, 60)
MODEL = LogisticRegression().fit(X, Y)


def losses_of(model):
    """Losses of a model on the two halves."""
    return collect(model, members=(X[:30], Y[:30]), nonmembers=(X[30:], Y[30:]))


# --- scikit-learn ----------------------------------------------------------------------------------


def test_a_type_that_skops_does_not_know_is_refused_by_name(tmp_path):
    """Functions and classes from elsewhere are named, and load once they are trusted."""
    path = tmp_path / "m.skops"
    skops.dump(FunctionTransformer(textwrap.dedent), path)
    with refused(r"'m.skops' holds types that are not known .*: 'textwrap.dedent'; .* trusted_types"):
        load_model(path)
    assert load_model(path, trusted_types=["textwrap.dedent"]).func is textwrap.dedent


_OWN = [
    RandomForestClassifier(5, random_state=0),
    GradientBoostingClassifier(n_estimators=3),
    HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2),
    KNeighborsClassifier(3, algorithm="kd_tree"),
    KNeighborsClassifier(3, algorithm="ball_tree", metric="manhattan"),
    make_pipeline(SelectKBest(k=2), SimpleImputer(), LogisticRegression()),
    GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2),
    CalibratedClassifierCV(LogisticRegression(), cv=2),
    VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())], voting="soft"),
    GaussianProcessClassifier(),
]


@pytest.mark.parametrize("model", _OWN, ids=lambda model: type(model).__name__)
def test_the_types_of_scikit_learn_itself_are_trusted(tmp_path, model):
    """Trees, neighbours, searches, pipelines and kernels load without a word of trust, and answer as before."""
    fitted = clone(model).fit(X, Y)
    skops.dump(fitted, tmp_path / "m.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "m.skops").predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize(
    "name",
    [
        "sklearn.datasets._base.load_files",
        "sklearn.utils._testing.TempMemmap",
        "sklearn.externals._arff.ArffDecoder",
        "sklearn.callback._transport.Anything",
        "sklearn.pipeline.Parallel",  # defined elsewhere
        "sklearn.feature_extraction.text.CountVectorizer.decode",
        "sklearn.metrics._dist_metrics.PyFuncDistance64",
        "sklearn.tree._tree.DepthFirstTreeBuilder",
        "sklearn.neighbors._base.kneighbors_graph",
        "sklearn.nothing.Nothing",
        "scipy.stats._continuous_distns.uniform_gen",
        "sklearn_extra.Anything",
        "os.system",
    ],
)
def test_what_scikit_learn_does_not_define_or_what_could_do_more_is_refused(tmp_path, name):
    """Functions, methods, names imported from elsewhere, compiled classes and whole rooms of scikit-learn need trust."""
    module, _, kind = name.rpartition(".")
    schema = {"__class__": kind, "__module__": module, "__loader__": "TypeNode", "protocol": 2}
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    with refused(
        rf"holds types that are not known to be harmless: '{re.escape(name)}'.*--set trusted-types=TYPE"
    ):
        load_model(tmp_path / "m.skops")


def _changed(tree, **columns):
    state = tree.__getstate__()
    for name, value in columns.items():
        state["nodes"][name][0] = value
    tree.__setstate__(state)


SPOILT = {
    "left": (_OWN[0], lambda model: _changed(model.estimators_[0].tree_, left_child=10**6)),
    "loop": (_OWN[0], lambda model: _changed(model.estimators_[0].tree_, right_child=0)),
    "feature": (_OWN[0], lambda model: _changed(model.estimators_[0].tree_, feature=99)),
    "width": (_OWN[0], lambda model: setattr(model.estimators_[0], "n_features_in_", 1)),
    "count": (_OWN[0], lambda model: setattr(model.estimators_[0].tree_, "node_count", 1)),
    "alone": (_OWN[8], lambda model: model.estimators_.append(model.estimators_[1].tree_)),
    "outputs": (_OWN[1], lambda model: setattr(model, "estimators_", np.hstack([model.estimators_] * 2))),
    "columns": (_OWN[1], lambda model: setattr(model, "n_features_in_", 1)),
    "bins": (_OWN[2], lambda model: model._predictors[0][0].nodes["left"].fill(10**6)),
    "category": (_OWN[2], lambda model: model._predictors[0][0].nodes["is_categorical"].fill(1)),
}


@pytest.mark.parametrize("how", SPOILT)
def test_trees_that_lead_out_of_their_tables_are_refused(tmp_path, how):
    """Compiled code would follow them anywhere: their type then needs trust, as boosters do."""
    model, spoil = SPOILT[how]
    model = clone(model).fit(X, Y)
    spoil(model)
    skops.dump(model, tmp_path / "m.skops")
    with refused(r"not known to be harmless: 'sklearn.*\.Tree(Predictor)?'"):
        load_model(tmp_path / "m.skops")


def test_search_trees_are_built_again(tmp_path):
    """Whatever the tree of a neighbours' model holds, its answers are those of its records."""
    model = clone(_OWN[3]).fit(X, Y)
    expected, state = model.predict_proba(X), list(model._tree.__getstate__())
    model._tree.__setstate__((state[0], state[1] + 10**9, *state[2:]))
    skops.dump(model, tmp_path / "m.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "m.skops").predict_proba(X), expected)


@pytest.mark.parametrize("name", ["schema.json", "numbers.npy"])
def test_a_skops_file_that_would_fill_the_memory_is_refused(tmp_path, name):
    """A file of some hundred kilobytes that unpacks into 160 MB is refused by its declared sizes, unread."""
    path = tmp_path / "m.skops"
    skops.dump(MODEL, path)
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    parts[name] = parts.get(name, b"") + b" " * 160_000_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    del parts
    with refused(r"(schema.json would take|would unpack into) 160 MB"):
        load_model(path)


def _search(step):
    return GridSearchCV(_pipeline(step), {"logisticregression__C": [1.0]}, cv=2)


def _pipeline(step):
    return make_pipeline(step, LogisticRegression())


NESTED = {
    "pipeline": _pipeline,
    "pipeline within": lambda step: make_pipeline(make_pipeline(step), LogisticRegression()),
    "columns": lambda step: _pipeline(ColumnTransformer([("a", "passthrough", []), ("b", step, 0)])),
    "union": lambda step: _pipeline(FeatureUnion([("a", CountVectorizer()), ("b", step)])),
    "search": _search,
    "calibrated": lambda step: CalibratedClassifierCV(_pipeline(step), cv=2),
    "vote": lambda step: VotingClassifier([("a", _pipeline(CountVectorizer())), ("b", _pipeline(step))]),
    "stack": lambda step: StackingClassifier([("a", _pipeline(step))], cv=2),
    "one against the rest": lambda step: OneVsRestClassifier(_pipeline(step)),
}
READING = [
    *(lambda how, kind=kind: kind(input=how) for kind in (CountVectorizer, TfidfVectorizer)),
    lambda how: HashingVectorizer(n_features=8, input=how),
]


DISGUISES = ["filename", "file", np.array("filename"), np.array(["filename"])]


@pytest.mark.parametrize(
    ("nested", "reading", "how"),
    [
        *((nested, number % len(READING), DISGUISES[0]) for number, nested in enumerate(NESTED)),
        *(("pipeline", reading, how) for reading in range(len(READING)) for how in DISGUISES[1:]),
    ],
)
def test_a_step_that_reads_the_files_that_records_name_is_refused(tmp_path, nested, reading, how):
    """However deep it lies, and however its argument is disguised, the step is named, and no file is read."""
    texts = np.array([f"word number{i % 3} of some" for i in range(12)], dtype=object)
    model = NESTED[nested](READING[reading]("content"))
    model.fit(texts.reshape(-1, 1) if nested == "columns" else texts, [0, 1] * 6)
    skops.dump(model, tmp_path / "good.skops")
    load_model(tmp_path / "good.skops", trusted_types=_INNER)
    _set_input(model, how)
    skops.dump(model, tmp_path / "m.skops")
    with refused(r"^file 'm.skops' holds a \w+ whose input is .*: it reads the files that the records name"):
        load_model(tmp_path / "m.skops", trusted_types=_INNER)


_INNER = [
    *(f"sklearn.calibration.{name}" for name in ("_CalibratedClassifier", "_SigmoidCalibration")),
    "sklearn.utils._bunch.Bunch",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.StratifiedKFold",
    # scikit-learn 1.5 keeps them in a search.
    *(f"sklearn.utils._metadata_requests.{name}" for name in ("MetadataRequest", "MethodMetadataRequest")),
]


def _set_input(part, how):
    """Change the argument of every step that takes texts, in a model that is fitted."""
    if isinstance(part, list | tuple):
        for item in part:
            _set_input(item, how)
    elif isinstance(part, dict):
        _set_input(list(part.values()), how)
    elif hasattr(part, "__dict__") and type(part).__module__.startswith("sklearn"):
        if hasattr(part, "input"):
            part.input = how
        else:
            _set_input(list(vars(part).values()), how)


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".pickle", ".sav"])
def test_a_pickle_is_refused_before_anything_in_it_runs(tmp_path, suffix):
    """The reason and the flag are named, and the file's code has not run; trusted, it runs."""
    path, mark = tmp_path / f"m{suffix}", tmp_path / "mark"
    joblib.dump(Trap(mark), path)
    with refused(r"is a pickle, and so could run any code .*--trust-pickle"):
        load_model(path)
    assert not mark.exists()
    load_model(path, trust_pickle=True)
    assert mark.exists()


def test_a_model_is_known_by_the_content_of_its_file(tmp_path):
    """Another file has another hash, by whichever name it is given; an object has none."""
    source = open_source(
        RecordTable({"x": [0.0], "y": [0]}, label="y"), task=None, member=True, name="member"
    )

    def identity(model):
        return ScorerRecipe(model, ScoringOptions(), [source])().identity

    skops.dump(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), tmp_path / "a.skops")
    one = identity(tmp_path / "a.skops")
    assert one == identity(str(tmp_path / "a.skops")) == identity(ModelFile(tmp_path / "a.skops"))
    skops.dump(LogisticRegression().fit([[0.0], [1.1]], [0, 1]), tmp_path / "a.skops")
    assert identity(tmp_path / "a.skops") != one is not None
    assert identity(load_model(tmp_path / "a.skops")) is None


# --- PyTorch ---------------------------------------------------------------------------------------


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
def test_a_module_in_a_file_is_a_program(tmp_path, torch):
    """TorchScript and pickled modules are refused with the reason, and their code does not run; trusted, they load."""
    mark = tmp_path / "mark"
    torch.save(Trap(mark), tmp_path / "trap.pt")
    torch.save(filled(torch), tmp_path / "whole.pt")
    torch.jit.trace(filled(torch), torch.zeros(1, 3, dtype=torch.float64)).save(str(tmp_path / "m.ts"))
    for name in ("trap.pt", "whole.pt", "m.ts"):
        with refused(rf"^file '{name}' holds more than weights, and so could run any code .*--trust-pickle"):
            load_model(tmp_path / name)
    assert not mark.exists()
    for name in ("whole.pt", "m.ts"):
        loaded = load_model(tmp_path / name, trust_pickle=True)
        np.testing.assert_allclose(losses_of(loaded).member, losses_of(MODEL).member, rtol=1e-12)


@pytest.mark.parametrize("prefix", ["", "_module.", "module.", "_orig_mod._module."])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_state_dict_fills_what_the_factory_builds(tmp_path, torch, prefix, wrapped):
    """Weights alone, or inside a checkpoint, under the names that wrappers give, load into the network."""
    weights = {prefix + name: value for name, value in filled(torch).state_dict().items()}
    torch.save({"epoch": 3, "state_dict": weights} if wrapped else weights, tmp_path / "m.pth")
    pytest.importorskip("safetensors.torch").save_file(weights, tmp_path / "m.safetensors")
    for name in ("m.pth", "m.safetensors"):
        loaded = load_model(tmp_path / name, factory=network)
        np.testing.assert_allclose(losses_of(loaded).member, losses_of(MODEL).member, rtol=1e-12)


def test_a_factory_is_found_in_the_working_directory(tmp_path, torch, monkeypatch):
    """The name of a function is imported from where the user is, and the import path is as before."""
    torch.save(filled(torch).state_dict(), tmp_path / "m.pt")
    (tmp_path / "nets_of_a_user.py").write_text(
        "import torch\ndef build():\n    return torch.nn.Linear(3, 3, dtype=torch.float64)\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert torch.equal(load_model("m.pt", factory="nets_of_a_user:build").weight, filled(torch).weight)
    assert sys.path == before


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (None, r"file 'm.pt' holds weights alone, so factory must build the network"),
        ("nets", "factory must be written 'module:function', got 'nets'"),
        ("no_such_module:build", "factory 'no_such_module:build' must be importable .* ModuleNotFoundError"),
        ("math:nothing", "factory 'math:nothing' must be importable .* AttributeError"),
        ("math:pi", r"factory must be a callable or 'module:function', got 'math:pi'"),
        (lambda: 1 / 0, "factory must build the network without arguments, but it failed: ZeroDivisionError"),
        (dict, r"factory must build a torch.nn.Module, got dict"),
        ("torch.nn:Identity", r"must hold the weights of Identity, but they do not fit: .*nexpected key"),
    ],
)
def test_a_factory_that_does_not_fit_is_one_sentence(tmp_path, torch, factory, sentence):
    """A fault of the factory is reported with its name."""
    torch.save(filled(torch).state_dict(), tmp_path / "m.pt")
    with refused(sentence):
        load_model(tmp_path / "m.pt", factory=factory)


# --- Boosters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".ubj", ".txt"])
@pytest.mark.parametrize("kinds", [2, 3])
def test_a_file_of_a_booster_gives_the_losses_of_its_estimator(tmp_path, suffix, kinds):
    """The raw margins of a booster in a file of XGBoost or LightGBM are those of the estimator that wrote it."""
    y = np.minimum(Y, kinds - 1)
    if suffix == ".txt":
        model = pytest.importorskip("lightgbm").LGBMClassifier(
            n_estimators=3, min_child_samples=3, verbose=-1, n_jobs=1
        )
        model.fit(X, y).booster_.save_model(str(tmp_path / "m.txt"))
    else:
        model = pytest.importorskip("xgboost").XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1)
        model.fit(X, y).save_model(tmp_path / f"m{suffix}")
    with refused(r"is read by (XGBoost|LightGBM) without checks, and so could run any code .*--trust-pickle"):
        load_model(tmp_path / f"m{suffix}")
    loaded = load_model(tmp_path / f"m{suffix}", trust_pickle=True)
    one, two = (collect(m, members=(X[:30], y[:30]), nonmembers=(X[30:], y[30:])) for m in (loaded, model))
    np.testing.assert_allclose(one.member, two.member, rtol=1e-12)
    assert "from raw margin of a" in one.history[0]


# --- Keras -----------------------------------------------------------------------------------------


def keras_model(keras, *middle):
    """The estimator as a Keras model."""
    layers = keras.layers
    net = keras.Sequential([layers.InputLayer((3,)), *middle, layers.Dense(3, activation="softmax")])
    net.layers[-1].set_weights([MODEL.coef_.T, MODEL.intercept_])
    return net


TF = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside TensorFlow, and of distutils


@TF
@pytest.mark.parametrize("name", ["m.keras", "m.h5", "folder"])
def test_a_file_or_folder_of_keras_is_the_model(tmp_path, keras, name):
    """Every format gives the estimator's losses to the rounding of float32; those that may run code must be trusted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the HDF5 format is old
        keras_model(keras).save(tmp_path / name)
    if name != "m.keras":
        with refused(r"(a SavedModel|another format than .keras), and so could run any code .*--trust-"):
            load_model(tmp_path / name)
    losses = losses_of(load_model(tmp_path / name, trust_pickle=name != "m.keras"))
    np.testing.assert_allclose(losses.member, losses_of(MODEL).member, atol=1e-5)
    assert "float32 logits" in losses.history[0]


@TF
def test_a_folder_that_export_wrote_answers_once_it_is_trusted(tmp_path, keras):
    """A graph without layers gives the probabilities of the model that it was made of."""
    keras_model(keras).export(tmp_path / "here")
    with refused(r"^folder 'here' is a SavedModel, and so could run any code .*--trust-pickle"):
        load_model(tmp_path / "here")
    losses = losses_of(load_model(tmp_path / "here", trust_pickle=True))
    np.testing.assert_allclose(losses.member, losses_of(MODEL).member, atol=1e-5)
    assert "float32 probabilities" in losses.history[0]


@TF
def test_the_bytecode_of_a_lambda_layer_does_not_run(tmp_path, keras):
    """A .keras file with bytecode is refused."""
    mark = str(tmp_path / "mark")
    layer = keras.layers.Lambda(lambda x, mark=mark: (open(mark, "a").close(), 2 * x)[1])  # noqa: PTH123
    keras_model(keras, layer).save(tmp_path / "m.keras")
    Path(mark).unlink()
    with refused(r"holds a Lambda layer, and so could run any code .*--trust-pickle"):
        load_model(tmp_path / "m.keras")
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

    def change(config):
        config["config"]["layers"][-1]["config"]["activation"] = FOREIGN[foreign]

    with refused(rf"types that are not known to be harmless: '{foreign.strip()}'; .* trusted_types"):
        load_model(rewritten(keras, tmp_path, change))


@TF
@pytest.mark.parametrize(
    "code", [part("keras.layers", "Lambda"), {"class_name": "__lambda__", "config": {"value": ["x", None, None]}}]
)  # fmt: skip
def test_no_name_makes_a_lambda_layer_harmless(tmp_path, keras, code):
    """Bytecode has no name to trust, so only trust in the whole file will do."""
    path = rewritten(keras, tmp_path, lambda config: config["config"]["layers"].insert(1, code))
    with refused(r"holds a Lambda layer, and so could run any code .*--trust-pickle"):
        load_model(path, trusted_types=["keras.layers.Lambda", "__lambda__"])


@TF
def test_the_training_of_an_inner_model_does_not_run(tmp_path, keras):
    """The compile settings of an inner model are not built, as Keras would in spite of compile=False: it can run a command."""
    mark = tmp_path / "mark"

    def running(code, **more):
        extra = dict.fromkeys(("module", "output_shape", "output_shape_module")) | {
            "output_shape_type": "raw"
        }
        config = {"name": "l", "function": code, "function_type": "function", "arguments": {}, **extra}
        return part("keras.layers", "Lambda", config, **more)

    command = [[["_CONSTANT_VALUE", -1, f"touch {mark}", {}]]]
    layers = [running(function("os", "system"), name="l", inbound_nodes=command)]
    end = [["l", 0, 0]]
    network = {"name": "f", "layers": layers, "input_layers": end, "output_layers": end}
    loss = part("keras.src.engine.functional", "Functional", network)
    inner = part("keras", "Sequential", {"name": "s", "layers": []}, compile_config={"loss": loss})
    path = rewritten(keras, tmp_path, lambda config: config["config"]["layers"].insert(1, running(inner)))
    with pytest.raises(InputError):
        load_model(path)
    assert not mark.exists()


@TF
def test_a_compiled_model_inside_another_is_loaded(tmp_path, keras):
    """Networks of the usual layers load with their weights: images, texts, arithmetic, and a compiled one inside another."""
    layers = keras.layers
    image = layers.Input((8, 8, 1))
    middle = layers.Conv2D(2, 3, activation="relu", kernel_regularizer="l2")(image)
    middle = layers.BatchNormalization()(middle)
    middle = layers.Dropout(0.1)(layers.GlobalAveragePooling2D()(middle)) + 1.0
    inner = keras.Model(image, layers.Dense(3, activation=keras.activations.gelu)(middle))
    inner.compile("adam", "mse")
    words = layers.Input((5,), dtype="int32")
    state = layers.Bidirectional(layers.LSTM(3))(layers.Embedding(10, 4)(words))
    picture = layers.Input((8, 8, 1))
    last = layers.Dense(2, activation="softmax", kernel_constraint="max_norm")
    net = keras.Model([picture, words], last(layers.Concatenate()([inner(picture), state])))
    net.save(tmp_path / "m.keras")
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(4, 8, 8, 1)).astype("float32"), rng.integers(0, 10, (4, 5))]
    np.testing.assert_array_equal(load_model(tmp_path / "m.keras")(given), net(given))


@TF
def test_pickled_weights_are_never_read(tmp_path, keras):
    """Weights in an NPZ archive, which Keras would unpickle, are passed over, and their code does not run."""
    mark = tmp_path / "mark"

    def pickled(_):
        np.savez(tmp_path / "w.npz", dense=np.array([Trap(mark)], dtype=object))
        return (tmp_path / "w.npz").read_bytes()

    path = rewritten(keras, tmp_path, dict.copy, weights=pickled, name="model.weights.npz")
    with refused(r"must hold its weights in model.weights.h5, but there are none"):
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
    with refused(r"takes the weights at 'x' from another file"):
        load_model(path)


@TF
@pytest.mark.parametrize(
    ("shape", "place"),
    [((2**20, 2**20), "weights"), ((2**40,), "weights"), ((3, 2**30), "more"), ((2**62,), "more")],
)
def test_an_array_that_is_larger_than_any_weight_is_not_read(tmp_path, keras, shape, place):
    """HDF5 data that are declared but never written would fill the memory with zeros when read; they are refused by their shape."""
    import h5py

    def declaring(content):
        weights = tmp_path / "w.h5"
        weights.write_bytes(content)
        with h5py.File(weights, "r+") as file:
            found = []
            file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
            name = found[0] if place == "weights" else "more"
            if place == "weights":
                del file[name]
            file.create_dataset(name, shape, "f4", chunks=(1,) * len(shape))
        return weights.read_bytes()

    path = rewritten(keras, tmp_path, dict.copy, weights=declaring)
    with refused(
        r"^file 'bad.keras' takes the weights at '.*' .*more numbers there than any weight of its model has"
    ):
        load_model(path)


@TF
@pytest.mark.parametrize(
    ("where", "kind"),
    [
        *(("saved_model.pb", "link"), ("keras_metadata.pb", "link"), ("assets/a", "fifo")),
        *(("variables/variables.index", "link"), ("variables/x", "linked folder")),
    ],
)
def test_the_files_of_a_saved_model_are_its_own(tmp_path, keras, where, kind):
    """A trusted SavedModel with a link to elsewhere, or with what is no file, is refused by the name of that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the format is old
        keras_model(keras).save(tmp_path / "m")
    (tmp_path / "other").mkdir()
    place = tmp_path / "m" / where
    if place.is_file():
        place.rename(tmp_path / "other" / place.name)
    else:
        (tmp_path / "other" / place.name).touch()
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to(tmp_path / "other" / (place.name if kind == "link" else ""))
    with refused(
        rf"^folder 'm' reads '{where}', which must be an ordinary file in its own folder and no link"
    ):
        load_model(tmp_path / "m", trust_pickle=True)


# --- What is no model ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("file 'model.bin'", b"x", r"must be a model in a file of a known kind \(.onnx, .skops, .keras"),
        ("file 'none.onnx'", None, r"must be the file of a model, but there is none at that path\.$"),
        ("file 'empty.skops'", b"", r"must be the file of a model, but it is empty\.$"),
        ("folder 'folder'", "folder", "must be a SavedModel, but it has no saved_model.pb"),
        ("file 'm.h5'", b"\x89HDF", "is in another format than .keras, and so could run .*--trust-pickle"),
        ("file 'm.KERAS'", b"PK", "is in another format than .keras, and so could run .*--trust-pickle"),
    ],
)
def test_what_is_no_model_is_one_sentence(tmp_path, name, content, words):
    """The file's name, without its place on this machine, and what is wrong with it."""
    path = tmp_path / name.split("'")[1]
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with refused(f"^{name} {words}") as caught:
        load_model(path)
    assert str(tmp_path) not in str(caught.value)


TRUSTED = {"m.joblib", "m.json", "m.ubj", "m.txt"}  # which are not read at all without
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
@pytest.mark.parametrize("content", [b"no model at all", bytes(range(256)) * 4, b"PK\x03\x04" + bytes(200)])
def test_a_damaged_file_is_one_sentence(tmp_path, name, content, capfd):
    """Whatever the reader raises, the sentence names the file and what it should be, on one line, without its path."""
    pytest.importorskip(DAMAGED[name])
    (tmp_path / name).write_bytes(content)
    with refused(rf"^file '{name}' (must be|is)") as caught:
        load_model(tmp_path / name, trust_pickle=name in TRUSTED, factory=dict)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    capfd.readouterr()  # some readers print
