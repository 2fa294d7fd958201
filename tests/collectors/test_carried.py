"""Training records inside a model's file: each kind of model that keeps them, and what a collection says of it."""

import warnings

import numpy as np
import pandas as pd
import pytest
import skops.io
from collectors.common import QUIET
from command_line import run
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import Isomap
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KernelDensity,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LocalOutlierFactor,
    NearestCentroid,
    RadiusNeighborsClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

import auditor
from auditor import RecordTable, checks, collect
from auditor.collectors import Output, collect_to
from auditor.collectors.base.records import Records
from auditor.collectors.models.carried import carried_rows
from auditor.core import Status
from auditor.core.facts import Attack, AttackState, Carried, CarriedRows

pytestmark = QUIET

N = 57  # training records
RNG = np.random.default_rng(57)
X = RNG.normal(size=(2 * N, 4))
Y = RNG.integers(0, 3, 2 * N)
X[np.arange(2 * N), Y] += 1
INSIDE, OUTSIDE = (X[:N], Y[:N]), (X[N:], Y[N:])
WARNED = "The model's file carries training records: "


def fitted(model):
    """A copy of a model, fitted on the members."""
    return clone(model).fit(*INSIDE)


def kind(value):
    """The name of a parameter's class, the same in every process."""
    return type(value).__name__


def few(*leaves):
    """The number of leaves with one or two records and of all, from the leaf of each record in each tree."""
    sizes = np.concatenate([np.unique(column, return_counts=True)[1] for column in leaves])
    return int((sizes < 3).sum()), sizes.size


# --- Rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(),
        KNeighborsClassifier(algorithm="ball_tree"),
        KNeighborsRegressor(),
        RadiusNeighborsClassifier(5.0),
        LocalOutlierFactor(novelty=True),
        KNNImputer(),
        GaussianProcessRegressor(),
        GaussianProcessClassifier(),
        KernelRidge(kernel="rbf"),
        KernelPCA(2, kernel="rbf"),
        LabelSpreading(),
        KernelDensity(),
        SVC(kernel=lambda a, b: a @ b.T),
    ],
    ids=kind,
)
def test_models_that_keep_all_their_training_records(model):
    """Nearest neighbours, Gaussian processes and kernel methods keep every record that they were fitted on, as it was."""
    assert carried_rows(fitted(model)) == (CarriedRows(type(model).__name__, Carried.COPIES, N),)


@pytest.mark.parametrize("model", [SVC(), SVC(kernel="linear"), NuSVC(), SVR(), OneClassSVM()], ids=kind)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_support_vectors(model, form):
    """Support vector machines keep as many records as libsvm gives a coefficient, also of sparse features."""
    expected = np.unique(model.fit(form(X[:N]), Y[:N]).support_).size
    assert carried_rows(model) == (CarriedRows(type(model).__name__, Carried.COPIES, expected),)


def test_kernel_approximations_keep_the_rows_that_they_sampled():
    """The Nystroem method keeps as many records as it has components."""
    assert carried_rows(fitted(Nystroem(n_components=20))) == (CarriedRows("Nystroem", Carried.COPIES, 20),)


NEIGHBOURS = KNeighborsClassifier()
OF_NEIGHBOURS = CarriedRows("KNeighborsClassifier", Carried.COPIES, N)
AFTER = CarriedRows("KNeighborsClassifier", Carried.TRANSFORMED, N)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (make_pipeline(StandardScaler(), NEIGHBOURS), AFTER),
        (make_pipeline(FeatureUnion([("a", PCA(2))]), NEIGHBOURS), AFTER),
        (make_pipeline("passthrough", SelectKBest(k=2), NEIGHBOURS), OF_NEIGHBOURS),
        (make_pipeline(make_pipeline(StandardScaler()), make_pipeline(NEIGHBOURS)), AFTER),
        (make_pipeline(KNNImputer(), GaussianNB()), CarriedRows("KNNImputer", Carried.COPIES, N)),
        (make_pipeline(Isomap(), GaussianNB()), CarriedRows("NearestNeighbors", Carried.COPIES, N)),
        (GridSearchCV(NEIGHBOURS, {"n_neighbors": [1, 3]}, cv=2), OF_NEIGHBOURS),
        (CalibratedClassifierCV(NEIGHBOURS, cv=3), CarriedRows("KNeighborsClassifier", Carried.COPIES, 38)),
        (VotingClassifier([("a", NEIGHBOURS), ("b", GaussianNB())]), OF_NEIGHBOURS),
        (OneVsRestClassifier(NEIGHBOURS), OF_NEIGHBOURS),
        (StackingClassifier([("a", GaussianNB())], NEIGHBOURS, cv=2), AFTER),
        (BaggingClassifier(NEIGHBOURS, 3), CarriedRows("BaggingClassifier", Carried.COPIES, N)),
    ],
    ids=kind,
)
def test_parts_of_a_model(model, expected):
    """Rows are found wherever the part that keeps them is, and called transformed after more than a selection of columns."""
    assert carried_rows(fitted(model)) == (expected,)


def test_a_precomputed_kernel_holds_no_records():
    """The rows of distances between records are not records."""
    distances = np.abs(X[:N, None] - X[None, :N]).sum(axis=2)
    assert carried_rows(KNeighborsClassifier(metric="precomputed").fit(distances, Y[:N])) == ()


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LinearSVC(),
        GaussianNB(),
        MLPClassifier(max_iter=5),
        NearestCentroid(),
        make_pipeline(StandardScaler(), PCA(2), LogisticRegression()),
        KMeans(3),
        DecisionTreeClassifier(min_samples_leaf=3),
        RandomForestClassifier(5, min_samples_leaf=3),
        HistGradientBoostingClassifier(max_iter=3),
    ],
    ids=kind,
)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_models_that_keep_no_records(model):
    """Weights, means and leaves of three records or more are no records."""
    assert carried_rows(fitted(model), [Records("member", *INSIDE)]) == ()


# --- Leaves -----------------------------------------------------------------------------------------


def test_leaves_of_a_tree():
    """The leaves of a tree hold as many records as it sends there."""
    tree = fitted(DecisionTreeClassifier(max_depth=5, random_state=0))
    assert carried_rows(tree) == (
        CarriedRows("DecisionTreeClassifier", Carried.LEAVES, *few(tree.apply(X[:N]))),
    )


@pytest.mark.parametrize(
    "model",
    [ExtraTreesRegressor(7, random_state=0), GradientBoostingClassifier(n_estimators=7, random_state=0)],
    ids=kind,
)
def test_leaves_of_ensembles(model):
    """The leaves of all trees of an ensemble are counted under its name."""
    model = fitted(model)
    leaves = model.apply(X[:N]).reshape(N, -1).T
    assert carried_rows(model) == (CarriedRows(type(model).__name__, Carried.LEAVES, *few(*leaves)),)


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(7, random_state=0), IsolationForest(n_estimators=7, max_samples=30)],
    ids=kind,
)
def test_leaves_count_the_different_records_drawn_for_a_tree(model):
    """In a forest a leaf holds different records among those that were drawn for its tree."""
    model = fitted(model)
    pairs = zip(model.estimators_, model.estimators_samples_, strict=True)
    leaves = [tree.apply(X[np.unique(drawn)].astype(np.float32)) for tree, drawn in pairs]
    assert carried_rows(model) == (CarriedRows(type(model).__name__, Carried.LEAVES, *few(*leaves)),)


def test_leaves_of_histogram_boosting():
    """The leaves of histogram boosting are known by the different values that one tree predicts."""
    model = HistGradientBoostingRegressor(max_iter=1, min_samples_leaf=1, max_leaf_nodes=20)
    model.fit(X[:N], RNG.normal(size=N))
    expected = few(model.predict(X[:N]))
    assert expected[0] > 0
    assert carried_rows(model) == (CarriedRows("HistGradientBoostingRegressor", Carried.LEAVES, *expected),)


# --- Boosters of other libraries --------------------------------------------------------------------


NUMBERS = RNG.normal(size=N)


@pytest.mark.parametrize("form", ["estimator", "booster"])
def test_leaves_of_xgboost(form):
    """Where each record has a second derivative of 1, XGBoost's covers are counts."""
    model = pytest.importorskip("xgboost").XGBRegressor(n_estimators=5, max_depth=4, n_jobs=1, gamma=0)
    leaves = model.fit(X[:N], NUMBERS).apply(X[:N])
    found = carried_rows(model if form == "estimator" else model.get_booster())
    name = "XGBRegressor" if form == "estimator" else "Booster"
    assert found == (CarriedRows(name, Carried.LEAVES, *few(*leaves.T)),)


def test_xgboost_does_not_tell_the_records_of_a_leaf_under_other_objectives_or_weights():
    """Where covers are sums of other numbers, the model counts as not searched."""
    xgboost = pytest.importorskip("xgboost")
    assert carried_rows(xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(*INSIDE)) is None
    weighted = xgboost.XGBRegressor(n_estimators=2, n_jobs=1).fit(
        X[:N], NUMBERS, sample_weight=np.full(N, 0.3)
    )
    assert carried_rows(weighted) is None


def test_leaves_of_lightgbm():
    """LightGBM's model says how many records each leaf has."""
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=1, verbose=-1, n_jobs=1).fit(*INSIDE)
    leaves = model.predict(X[:N], pred_leaf=True)
    assert carried_rows(model) == (CarriedRows("LGBMClassifier", Carried.LEAVES, *few(*leaves.T)),)
    assert carried_rows(model.booster_) == (CarriedRows("Booster", Carried.LEAVES, *few(*leaves.T)),)
    larger = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(*INSIDE)
    assert carried_rows(larger) == ()


def test_leaves_of_catboost():
    """CatBoost's leaf weights are numbers of records, but not under weights of classes."""
    catboost = pytest.importorskip("catboost")
    setting = {"iterations": 5, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoostRegressor(**setting).fit(X[:N], NUMBERS)
    leaves = model.calc_leaf_indexes(X[:N])
    assert carried_rows(model) == (CarriedRows("CatBoostRegressor", Carried.LEAVES, *few(*leaves.T)),)
    weighted = catboost.CatBoostClassifier(**setting, class_weights=[1, 2.5, 0.3]).fit(*INSIDE)
    assert carried_rows(weighted) is None


# --- ONNX -------------------------------------------------------------------------------------------


def exported(model, require_extra, **options):
    """The rows that are found when an exported model is collected."""
    require_extra("onnx")
    import onnxruntime
    from skl2onnx import to_onnx

    model = fitted(model)
    options = {id(model): {"zipmap": False, **options}} if hasattr(model, "predict_proba") else None
    graph = to_onnx(model, X[:1].astype(np.float32), options=options)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    task = "classification" if options else "regression"
    return collect(session, members=INSIDE, nonmembers=OUTSIDE, task=task)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (KNeighborsClassifier(), CarriedRows("CDist", Carried.COPIES, N)),
        (
            make_pipeline(StandardScaler(), KNeighborsRegressor()),
            CarriedRows("CDist", Carried.TRANSFORMED, N),
        ),
        (GaussianProcessRegressor(), CarriedRows("CDist", Carried.COPIES, N)),
        (SVR(), CarriedRows("SVMRegressor", Carried.COPIES, fitted(SVR()).support_.size)),
        (SVC(probability=True), CarriedRows("SVMClassifier", Carried.COPIES, fitted(SVC()).support_.size)),
    ],
    ids=kind,
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_rows_in_an_onnx_graph(model, expected, require_extra):
    """An exported k-NN, Gaussian process or support vector machine keeps the rows, and its graph shows them."""
    assert exported(model, require_extra).released.rows == (expected,)


def test_the_operator_of_distances(require_extra):
    """The rows are found too where distances are computed by an operator of their own."""
    found = exported(KNeighborsClassifier(), require_extra, optim="cdist")
    assert found.released.rows == (CarriedRows("CDist", Carried.COPIES, N),)


def test_trees_in_an_onnx_graph_do_not_tell(require_extra):
    """A graph of weights was searched; the leaves of trees in a graph have no numbers of records, so that one was not."""
    assert exported(LogisticRegression(), require_extra).attacks[Attack.FILE] is AttackState.RUN
    assert Attack.FILE not in exported(DecisionTreeClassifier(), require_extra).attacks


# --- Tables that are kept along ---------------------------------------------------------------------


class Keeping(ClassifierMixin, BaseEstimator):
    """A classifier of someone's own that keeps a table beside a linear model."""

    def __init__(self, table=None):
        self.table = table

    def fit(self, features, labels):
        """Fit the linear model."""
        self.model_ = LogisticRegression().fit(features, labels)
        self.classes_ = self.model_.classes_
        self.cache_ = {"last": [self.table]}
        return self

    def predict_proba(self, features):
        """Return the probabilities of the linear model."""
        return self.model_.predict_proba(features)


@pytest.mark.parametrize(
    "form", [np.asarray, pd.DataFrame, sparse.csr_matrix, sparse.csc_matrix, lambda x: x.astype(object)]
)
def test_a_table_that_is_kept_along(form):
    """A table with audited records is found in whatever form and place, by the content of its rows."""
    model = Keeping(form(X[5:25])).fit(*INSIDE)
    found = collect(model, members=INSIDE, nonmembers=OUTSIDE)
    assert found.released.rows == (CarriedRows("Keeping", Carried.COPIES, 20),)


@pytest.mark.parametrize(
    "table", [X[:9], RNG.normal(size=(N, 4)), X[:N] + 1e-9, X[:N, :3], np.repeat(X[:5], 9, axis=0), X[:N, 0]]
)
def test_a_table_of_other_rows(table):
    """Fewer than ten different records, other values, and values of one column alone are no table of training records."""
    assert collect(Keeping(table).fit(*INSIDE), members=INSIDE, nonmembers=OUTSIDE).released.rows == ()


# --- Objects that do not want to be looked at -------------------------------------------------------


class Hostile:
    """An object with attributes that raise."""

    def __getattr__(self, name):
        raise RuntimeError(name)


def test_objects_that_raise():
    """An object that raises when it is looked at is passed over, and the model counts as searched only if rows were found."""
    model = fitted(LogisticRegression())
    model.extra_ = Hostile()
    assert carried_rows(model) is None
    model.more_ = fitted(SVC())
    [found] = carried_rows(model)
    assert found.part == "SVC"
    assert collect(model, members=INSIDE, nonmembers=OUTSIDE).released.rows == (found,)


def test_cycles_and_large_attributes():
    """Parts that contain each other, and a million values, end."""
    model = fitted(LogisticRegression())
    model.itself_, model.values_ = [model], np.zeros((10**6, 3))
    model.itself_.append(model.itself_)
    model.names_ = np.array(["name"] * 10**5, dtype=object)
    assert carried_rows(model, [Records("member", *INSIDE)]) == ()


# --- What a collection says -------------------------------------------------------------------------


def test_losses_carry_the_rows_and_are_right_all_the_same():
    """A collection warns of the rows in words; losses and results have them as facts, and the losses have no note."""
    scores = fitted(KNeighborsClassifier(3))
    with pytest.warns(
        UserWarning, match=WARNED + "KNeighborsClassifier holds 57 of them as they are. Releasing this file"
    ):
        losses = collect(scores, members=INSIDE, nonmembers=OUTSIDE)
    assert losses.released.rows == (CarriedRows("KNeighborsClassifier", Carried.COPIES, N),)
    assert losses.attacks[Attack.FILE] is AttackState.RUN
    assert losses.notes == ()
    assert "carries" not in "".join(losses.history)

    result = auditor.audit(losses, delta=1e-5)
    assert result.data["attacks"]["file"] == result.data["attacks"]["loss"] == "run"
    assert result.data["released"]["rows"] == [
        {"part": "KNeighborsClassifier", "form": "copies", "count": N, "of": None}
    ]
    assert result.check("contents").status is Status.WARN
    assert "collection" not in [item.name for item in result.checks]


def test_a_model_without_records_passes_and_a_function_is_not_searched():
    """A linear model's file was searched, and a function has none: the check is absent."""
    model = fitted(LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = collect(model, members=INSIDE, nonmembers=OUTSIDE)
        of_function = collect(
            model.predict_proba, members=INSIDE, nonmembers=OUTSIDE, output=Output.PROBABILITIES
        )
    assert auditor.audit(losses, delta=1e-5).check("contents").status is Status.OK
    assert Attack.FILE not in of_function.attacks
    result = auditor.audit(of_function, delta=1e-5)
    assert "contents" not in [item.name for item in result.checks]
    assert (result.data["attacks"]["file"], result.data["attacks"]["loss"]) == ("not run", "run")


def test_a_table_of_losses_has_no_place_for_the_search(tmp_path):
    """Losses that were written as a plain table no longer say that the file was searched, for they do not say what was found."""
    losses = collect(fitted(KNeighborsClassifier(3)), members=INSIDE, nonmembers=OUTSIDE)
    losses.to_frame().to_csv(tmp_path / "losses.csv", index=False)
    assert Attack.FILE not in auditor.read_losses(tmp_path / "losses.csv").attacks


def tables():
    """Both groups as tables."""
    for features, labels in (INSIDE, OUTSIDE):
        yield RecordTable(pd.DataFrame(features, columns=list("abcd")).assign(y=labels), label="y")


def test_files_carry_the_rows_and_warn_also_when_they_are_complete(tmp_path):
    """A file of losses has the rows in its metadata, and the report of a collection warns each time."""
    members, nonmembers = tables()
    model = fitted(SVC(kernel="linear", random_state=0))
    model = CalibratedClassifierCV(model, ensemble=False, cv=2).fit(*INSIDE)
    expected = carried_rows(model)
    call = {"members": members, "nonmembers": nonmembers}
    first, again = (collect_to(tmp_path / "losses.parquet", model, **call) for _ in range(2))
    assert first.scored_now
    assert not again.scored_now
    said = checks.contents({Attack.FILE: AttackState.RUN}, expected).message
    assert first.warnings == again.warnings == (said,)
    losses = auditor.read_losses(first.path)
    assert losses.released.rows == expected
    assert losses.notes == ()
    with pytest.warns(UserWarning, match=WARNED) as caught:
        assert collect(model, **call).released.rows == expected
    assert len(caught) == 1


def test_batches_carry_the_rows():
    """A collection from batches warns as any other."""
    model = fitted(KNeighborsClassifier(3))
    with pytest.warns(UserWarning, match=WARNED):
        found = collect(model, iter([INSIDE]), iter([OUTSIDE]))
    assert found.released.rows == (CarriedRows("KNeighborsClassifier", Carried.COPIES, N),)


def test_the_command_says_it(tmp_path, capsys):
    """The command says of a skops file that it releases its rows, and a gate on the check is not passed."""
    skops.io.dump(fitted(KNeighborsClassifier(3)), tmp_path / "model.skops")
    for name, table in zip(("in.csv", "out.csv"), tables(), strict=True):
        table.data.to_csv(tmp_path / name, index=False)
    groups = ("--members", tmp_path / "in.csv", "--nonmembers", tmp_path / "out.csv", "--label", "y")
    assert run("collect", tmp_path / "model.skops", *groups, "--out", tmp_path / "losses.parquet") == 0
    note = (
        "Note: The model's file carries training records: KNeighborsClassifier holds 57 of them as they are."
    )
    assert note in capsys.readouterr().out
    assert run("audit", tmp_path / "losses.parquet", "--fail-if", "checks.contents == warn") == 1


def test_leaves_in_words():
    """Leaves of one or two records are no rows, and the sentence about them alone is another."""
    rows = [
        CarriedRows("RandomForestClassifier", Carried.LEAVES, 1204, 2310),
        CarriedRows("SVC", Carried.TRANSFORMED, 8),
    ]
    searched = {Attack.FILE: AttackState.RUN}
    leaves = "in RandomForestClassifier, 1,204 of 2,310 leaves hold fewer than 3 training records"
    assert checks.contents(searched, rows[:1]).message == (
        f"The model's file carries values that few training records make: {leaves}."
        " Releasing this file releases these values, whatever the losses show."
    )
    assert checks.contents(searched, rows).message == (
        f"{WARNED}{leaves}; SVC holds 8 of them after a transform that may be undone."
        " Releasing this file releases these rows, whatever the losses show."
    )


def test_results_keep_the_rows(tmp_path):
    """A result that was written and read again has the rows."""
    losses = collect(fitted(KNeighborsClassifier(3)), members=INSIDE, nonmembers=OUTSIDE)
    result = auditor.audit(losses, delta=1e-5)
    again = auditor.read_result(result.save(tmp_path / "result.json"))
    assert again.data["released"]["rows"] == list(result.data["released"]["rows"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (("SVC", "copies", -1), "count must lie"),
        (("Tree", "leaves", 9, 5), "got 9 of 5"),
    ],
)
def test_rows_in_a_file_that_cannot_be_are_refused(fields, words):
    """A count is 0 or more, and of leaves no more than all."""
    with pytest.raises(auditor.InputError, match=words):
        CarriedRows(*fields)
