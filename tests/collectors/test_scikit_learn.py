"""Fitted scikit-learn classifiers: the most precise output that is verifiably the model's own."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from collectors.common import from_logits, refused
from scipy import sparse
from scipy.special import log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from auditor import LossScale, SquaredError
from auditor.collectors import collect
from auditor.collectors.base import (
    Classification,
    ModelScorer,
    Records,
    agreement,
    in_batches,
)
from auditor.collectors.models import load_model
from auditor.collectors.streaming import predictor

N = 120
_SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))
NAMES = list("abcd")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2 * N, 4))
Y2 = (X[:, 0] + RNG.normal(size=2 * N) > 0).astype(int)
Y3 = np.digitize(X[:, 0] + RNG.normal(size=2 * N), [-0.7, 0.7])


def audit_of(model, y, features=X, **kwargs):
    """Losses of a model fitted on the first half."""
    return collect(model, members=(features[:N], y[:N]), nonmembers=(features[N:], y[N:]), **kwargs)


def fitted(model, y):
    """The model fitted on the first half."""
    return model.fit(X[:N], y[:N])


def from_probabilities(p, y):
    """The loss by the textbook formula, which loses digits near 1."""
    own = p[np.arange(len(y)), y]
    return np.log(np.where(np.arange(p.shape[1]) == y[:, None], 0, p).sum(axis=1)) - np.log(own)


LOGITS = {
    "logistic, two classes": (LogisticRegression(), Y2),
    "logistic, three classes": (LogisticRegression(), Y3),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), Y3),
    "search": (GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2), Y2),
    "gradient boosting": (GradientBoostingClassifier(n_estimators=5, random_state=0), Y3),
    "gradient boosting, two classes": (GradientBoostingClassifier(n_estimators=5, random_state=0), Y2),
    "histogram boosting, two classes": (HistGradientBoostingClassifier(max_iter=5), Y2),
    "histogram boosting": (HistGradientBoostingClassifier(max_iter=5), Y3),
    "linear discriminant": (LinearDiscriminantAnalysis(), Y2),
    "stochastic gradient, two classes": (SGDClassifier(loss="log_loss", random_state=0), Y2),
}
EXPONENTIAL = GradientBoostingClassifier(loss="exponential", n_estimators=5, random_state=0)
OTHERS = {
    "one against the rest": (OneVsRestClassifier(LogisticRegression()), Y3),
    "stochastic gradient, three classes": (SGDClassifier(loss="log_loss", random_state=0), Y3),
    "exponential boosting": (EXPONENTIAL, Y2),
    "neural network": (MLPClassifier((5,), max_iter=20, random_state=0), Y3),
    "calibrated": (CalibratedClassifierCV(LinearSVC(), cv=2), Y3),
    "platt, two classes": (SVC(probability=True, random_state=0), Y2),
    "platt, three classes": (SVC(probability=True, random_state=0), Y3),
}


@pytest.mark.parametrize(("model", "y"), LOGITS.values(), ids=LOGITS)
def test_a_decision_function_that_is_the_logit_is_used(model, y):
    """Where softmax of the decision function is predict_proba, the loss comes from it and keeps every digit."""
    fitted(model, y)
    losses = audit_of(model, y)
    want = from_logits(model.decision_function(X[:N]), y[:N])
    np.testing.assert_allclose(losses.member, want, rtol=1e-12, atol=1e-14)
    assert "decision_function" in losses.history[0]
    assert losses.scale is LossScale.LOG_ODDS
    assert losses.saturated == (0, 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize(("model", "y"), OTHERS.values(), ids=OTHERS)
def test_a_decision_function_that_is_not_the_logit_is_not_used(model, y):
    """A wrong logit would be a wrong audit, so the probabilities decide."""
    fitted(model, y)
    losses = audit_of(model, y)
    expected = from_probabilities(model.predict_proba(X[:N]), y[:N])
    np.testing.assert_allclose(losses.member, expected, rtol=1e-9, atol=1e-12)
    assert losses.history[0].endswith(f"predict_proba of {type(model).__name__}")


@pytest.mark.parametrize("y", [Y2, Y3])
@pytest.mark.parametrize("scale", [30.0, 1e3])
def test_a_saturated_logistic_regression_loses_nothing(y, scale):
    """Where predict_proba has rounded to 0 and 1, the loss still equals the decision function."""
    model = fitted(LogisticRegression(), y)
    model.coef_ = model.coef_ * scale
    model.intercept_ = model.intercept_ * scale
    assert (model.predict_proba(X) == 1).mean() > 0.05
    losses = audit_of(model, y)
    want = from_logits(model.decision_function(X[:N]), y[:N])
    np.testing.assert_allclose(losses.member, want, rtol=1e-12, atol=1e-14)
    assert losses.saturated == (0, 0)
    assert np.abs(losses.member).max() > 37


def test_logits_are_verified_where_only_a_few_rows_are_not_rounded_away():
    """When the spread of rows tells nothing, all rows are looked at."""
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.uniform(800, 900, size=(1199, 1)), [[0.3]]])
    model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([0.0])
    y = np.ones(1200, dtype=int)
    losses = collect(model, members=(features, y), nonmembers=(features[::-1], y))
    np.testing.assert_array_equal(losses.member, -features[:, 0])


def test_logits_that_nothing_can_verify_are_not_used():
    """If every probability has underflowed, the loss is saturated and says so."""
    model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([0.0])
    features, y = np.array([[800.0], [-900.0], [1000.0]]), [1, 0, 0]
    with pytest.warns(UserWarning, match="exactly 0 or 1"):
        losses = collect(model, members=(features, y), nonmembers=(features[:2], y[:2]))
    np.testing.assert_allclose(losses.member, np.array([-1, -1, 1]) * 36.043653, rtol=1e-6)
    assert losses.saturated == (3, 2)
    assert "hard labels" in losses.history[-1]


@pytest.mark.parametrize(
    ("factor", "dtype", "answer"),
    [(1.0, np.float64, True), (1.0, np.float32, True), (1.001, np.float64, False), (2.0, np.float32, False)],
)
def test_agreement_is_strict_in_both_precisions(factor, dtype, answer):
    """Logits wrong by one part in a thousand are refused in float64, rounding of either type is not."""
    z = np.random.default_rng(0).normal(scale=20, size=(50, 3))
    p = np.exp(log_softmax(z, axis=1)).astype(dtype)
    assert agreement((factor * z).astype(dtype), probabilities=p) is answer


def test_agreement_of_rounded_rows_is_unknown():
    """Rows of exactly 0 and 1 neither confirm nor refute."""
    z = np.array([800.0, 900.0])
    assert agreement(z, probabilities=np.array([[0.0, 1.0], [0.0, 1.0]])) is None
    assert agreement(-z, probabilities=np.array([[0.0, 1.0], [0.0, 1.0]])) is False


@pytest.mark.parametrize("model", [GaussianNB(), BernoulliNB(binarize=0.0)])
def test_log_probabilities_are_used_where_probabilities_underflow(model):
    """Naive Bayes keeps its log-probabilities finite far below the smallest float."""
    features = np.random.default_rng(0).normal(size=(200, 4000)) + np.repeat([[-0.5], [0.5]], 100, axis=0)
    y = np.repeat([0, 1], 100)
    model.fit(features, y)
    wrong = 1 - y
    assert (model.predict_proba(features) == 0).any()
    losses = collect(model, members=(features, y), nonmembers=(features, wrong))
    log_p = model.predict_log_proba(features)
    expected = log_p[np.arange(200), 1 - y] - log_p[np.arange(200), y]
    np.testing.assert_allclose(losses.member, expected, rtol=1e-12)
    np.testing.assert_allclose(losses.nonmember, -expected, rtol=1e-12)
    assert losses.saturated == (0, 0)
    assert "predict_log_proba of" in losses.history[0]


def test_log_probabilities_with_a_floor_are_not_believed():
    """A method that replaces 0 by the smallest normal float before the log adds nothing true."""

    class Floored(GaussianNB):
        def predict_log_proba(self, features):
            return np.maximum(super().predict_log_proba(features), np.log(np.finfo(float).tiny))

        def predict_proba(self, features):
            return np.exp(super().predict_log_proba(features))

    features = np.random.default_rng(0).normal(size=(40, 2000)) + np.repeat([[-0.5], [0.5]], 20, axis=0)
    y = np.repeat([0, 1], 20)
    with pytest.warns(UserWarning, match="exactly 0 or 1"):
        losses = collect(Floored().fit(features, y), members=(features, y), nonmembers=(features, y))
    assert sum(losses.saturated) > 0
    assert "predict_proba of Floored" in losses.history[0]


LABELS = {
    "strings": np.array(["no", "yes"])[Y2],
    "objects": np.array(["no", "yes"], dtype=object)[Y2],
    "booleans": Y2.astype(bool),
    "floats": Y2.astype(float),
    "series": pd.Series(Y2),
    "categories": pd.Series(np.array(["no", "yes"])[Y2], dtype="category"),
    "nullable": pd.Series(Y2, dtype="Int64"),
    "column": Y2[:, None],
    "list": Y2.tolist(),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_labels_of_any_type_find_their_class(y):
    """Strings, booleans, whole floats and pandas columns give the losses of the integers they stand for."""
    expected = audit_of(fitted(LogisticRegression(), Y2), Y2)
    target = np.asarray(y).ravel() if isinstance(y, np.ndarray) else y
    model = LogisticRegression().fit(X[:N], np.asarray(target[:N]).tolist())
    losses = audit_of(model, y)
    np.testing.assert_allclose(losses.nonmember, expected.nonmember, rtol=1e-9)


def test_classes_rename_the_columns_of_an_estimator():
    """A model fitted on encoded labels can be audited with the original ones."""
    model = fitted(LogisticRegression(), Y2)
    losses = audit_of(model, np.array(["no", "yes"])[Y2], classes=["no", "yes"])
    np.testing.assert_array_equal(losses.member, audit_of(model, Y2).member)
    with refused(
        "the model itself says is 0, 1, got 1, 0"
    ):  # a model that knows their order gets no other one
        audit_of(model, Y2, classes=[1, 0])


# --- What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (LinearSVC().fit(X, Y2), "LinearSVC without predict_proba; .* in CalibratedClassifierCV"),
        (LogisticRegression(), "be fitted, got LogisticRegression without classes_; call fit first"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "be fitted, got Pipeline"),
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}), "be fitted, got GridSearchCV"),
        (GaussianNB().fit(X, np.zeros(2 * N)), "know at least 2 classes, got GaussianNB fitted on one"),
        (LogisticRegression, "got the class LogisticRegression itself; build and fit one"),
        (3.5, r"fitted classifier with predict_proba and classes_, or a callable .* got float"),
        (None, "or a callable .* got NoneType"),
    ],
)
def test_models_that_cannot_be_audited_are_refused(model, sentence):
    """The sentence says what was passed and what to do."""
    with refused(f"^model must .*{sentence}"):
        audit_of(model, Y2)


def test_a_model_that_finds_itself_unfitted_is_refused():
    """scikit-learn's own NotFittedError becomes our sentence."""

    class Unfitted(LogisticRegression):
        classes_ = (0, 1)

        def predict_proba(self, features):
            raise NotFittedError(f"no coefficients for {len(features)} rows")

    with refused(r"model must be fitted, got an unfitted Unfitted; call fit first"):
        audit_of(Unfitted(), Y2)


def test_features_that_the_model_refuses_are_one_sentence():
    """The model's own reason is passed on with the group, as of a missing value or column."""
    frame = pd.DataFrame(X, columns=NAMES)
    model = make_pipeline(ColumnTransformer([("n", StandardScaler(), ["a", "d"])]), LogisticRegression())
    model.fit(frame, Y2)
    broken = frame.assign(a=np.where(np.arange(2 * N) == N + 5, np.nan, X[:, 0]))
    with refused(r"nonmember X must suit the model, .*: Input X contains NaN"):
        audit_of(model, Y2, broken)
    with refused(r"member X must suit the model, but Pipeline.predict_proba refused it: .*missing: .*'d'"):
        audit_of(model, Y2, frame.drop(columns="d"))
    losses = audit_of(model, Y2, frame.drop(columns="b"))  # which no step of the pipeline uses
    np.testing.assert_array_equal(losses.member, audit_of(model, Y2, frame).member)


# --- Features in the form that the model was fitted on ---------------------------------------------


@pytest.mark.parametrize("model", [LogisticRegression(), make_pipeline(LogisticRegression())])
@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(
    "form", [np.asarray, lambda x: pd.DataFrame(x, columns=NAMES), sparse.csr_matrix, np.ndarray.tolist]
)
def test_arrays_and_data_frames_stand_for_each_other(model, by_name, form):
    """A model fitted on either takes either, without a warning of names."""
    model.fit(pd.DataFrame(X[:N], columns=NAMES) if by_name else X[:N], Y2[:N])
    want = from_logits(model.decision_function(pd.DataFrame(X, columns=NAMES) if by_name else X), Y2)
    parts = {"members": (form(X[:N]), Y2[:N]), "nonmembers": (form(X[N:]), Y2[N:])}
    np.testing.assert_allclose(collect(model, **parts).member, want[:N], rtol=1e-10)


def test_columns_are_found_by_name():
    """Other columns and another order change nothing where the model knows the names."""
    frame = pd.DataFrame(X, columns=NAMES)
    model = LogisticRegression().fit(frame[:N], Y2[:N])
    expected = audit_of(model, Y2, frame)
    for other in (frame[["d", "b", "a", "c"]], frame.assign(z="text")):
        rtol = 0 if _SKLEARN >= (1, 6) else 1e-14
        np.testing.assert_allclose(audit_of(model, Y2, other).member, expected.member, rtol=rtol)
    with refused(r"member X must suit the model, .* now missing: - a - c"):
        audit_of(model, Y2, frame[["b", "d"]])


def test_a_column_of_text_feeds_a_pipeline_of_words():
    """A table with one column is the list of texts that a vectorizer wants."""
    texts = np.where(Y2 == 1, "good fine", "bad poor").astype(object)
    texts[::7] = "good bad"
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts[:N], Y2[:N])
    want = from_logits(model.decision_function(texts), Y2)
    losses = audit_of(model, Y2, pd.DataFrame({"text": texts}))
    np.testing.assert_allclose(losses.member, want[:N], rtol=1e-10)


# --- XGBoost and LightGBM --------------------------------------------------------------------------


def boosted(library, **kwargs):
    """A small classifier of XGBoost or LightGBM."""
    module = pytest.importorskip(library)
    if library == "xgboost":
        return module.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1, **kwargs)
    return module.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1, n_jobs=1, **kwargs)


def margins(model, features):
    """The raw margins of a classifier of XGBoost or LightGBM."""
    if hasattr(model, "booster_"):
        return model.predict_proba(features, raw_score=True)
    return model.predict(features, output_margin=True)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("y", [Y2, Y3], ids=["two", "three"])
def test_the_raw_margin_of_a_booster_is_the_logit(library, y):
    """Where the raw margins reproduce predict_proba, the losses come from them."""
    model = fitted(boosted(library), y)
    losses = audit_of(model, y)
    want = from_logits(np.asarray(margins(model, X), dtype=np.float64), y)
    np.testing.assert_allclose(losses.member, want[:N], rtol=1e-6, atol=1e-9)
    assert "as logits they reproduce its predict_proba" in losses.history[0]


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_booster_inside_a_pipeline_or_a_search_is_asked_for_its_margin(library):
    """The margin is that of the last step, of what the steps before it make of the features."""
    pipeline = make_pipeline(StandardScaler(), boosted(library)).fit(
        pd.DataFrame(X[:N], columns=NAMES), Y2[:N]
    )
    search = GridSearchCV(boosted(library), {"max_depth": [1, 2]}, cv=2).fit(X[:N], Y2[:N])
    scaled = pipeline[0].transform(pd.DataFrame(X, columns=NAMES))
    cases = ((pipeline, pipeline[-1], scaled), (search, search.best_estimator_, X))
    for model, inner, features in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = from_logits(np.asarray(margins(inner, features), dtype=np.float64), Y2)
        losses = audit_of(model, Y2)
        np.testing.assert_allclose(losses.member, want[:N], rtol=1e-6, atol=1e-9)
        assert "as logits they reproduce" in losses.history[0]


def test_a_sure_booster_does_not_saturate():
    """Margins of hundreds, whose float32 probabilities are exactly 0 and 1, keep their order."""
    model = boosted("xgboost", learning_rate=60.0, reg_lambda=0.0)
    losses = audit_of(fitted(model, Y2), Y2)
    assert (model.predict_proba(X[:N]) == 1).any()
    assert losses.saturated == (0, 0)


# --- The predictor that streams --------------------------------------------------------------------

FOREST = RandomForestClassifier(n_estimators=10, random_state=0)
EVERY = {**LOGITS, **OTHERS, "naive": (GaussianNB(), Y3), "forest": (FOREST, Y2)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize(("model", "y"), EVERY.values(), ids=EVERY)
def test_a_model_is_scored_alike_from_a_few_records_and_from_all(model, y):
    """The choice on a sample of 20 records is the choice on all of them, with the same losses and words."""
    fitted(model, y)
    whole = audit_of(model, y)
    sample = (Records("member", X[:20], y[:20]),)
    found = predictor(model, task=Classification(), sample=sample)
    (scored,) = in_batches(ModelScorer(found), [Records("member", X[:N], y[:N])], size=None)
    losses = scored.loss
    finite = np.isfinite(losses)
    np.testing.assert_array_equal(losses[finite], whole.member[finite])
    assert whole.history[0].endswith(found.source)
    assert whole.saturated[0] == (~finite).sum()


# --- CatBoost, regressions, and several outputs ---


def test_catboost_classifies_and_regresses_from_objects_and_files(tmp_path):
    """The losses are those of its own predictions, though its regressors have empty classes; its files must be trusted."""
    catboost = pytest.importorskip("catboost")
    few = {"iterations": 5, "verbose": 0, "allow_writing_files": False}
    target = X[:, 0] * 2
    models = {
        "c.cbm": (catboost.CatBoostClassifier(**few).fit(X, Y2), Y2, Classification()),
        "r.cbm": (catboost.CatBoostRegressor(**few).fit(X, target), target, SquaredError()),
    }
    for name, (model, y, task) in models.items():
        model.save_model(tmp_path / name)
        with refused(r"is read by CatBoost without checks, and so could run any code .*--trust-pickle"):
            load_model(tmp_path / name)
        if name == "r.cbm":
            expected = (model.predict(X) - y) ** 2
        else:
            p = model.predict_proba(X)[np.arange(2 * N), y]
            expected = np.log1p(-p) - np.log(p)
        for scored in (model, load_model(tmp_path / name, trust_pickle=True)):
            found = collect(scored, members=(X[:N], y[:N]), nonmembers=(X[N:], y[N:]), task=task)
            np.testing.assert_allclose(found.member, expected[:N], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found.nonmember, expected[N:], rtol=1e-9, atol=1e-12)
