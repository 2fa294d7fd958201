"""Fitted scikit-learn classifiers: the most precise output that is verifiably the model's own."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import log_softmax, logsumexp
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
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from auditor import InputError, LossScale
from auditor.collectors import collect
from auditor.collectors.base import Classification, ModelScorer, Records, agreement, in_batches
from auditor.collectors.streaming import predictor

N = 120
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


def from_logits(z, y):
    """The loss by the textbook formula."""
    if z.ndim == 1:
        return (1 - 2 * y) * z
    others = np.where(np.arange(z.shape[1]) == y[:, None], -np.inf, z)
    return logsumexp(others, axis=1) - z[np.arange(len(y)), y]


def from_probabilities(p, y):
    """The loss by the textbook formula, which loses digits near 1."""
    own = p[np.arange(len(y)), y]
    return np.log(np.where(np.arange(p.shape[1]) == y[:, None], 0, p).sum(axis=1)) - np.log(own)


def exact_logit_models():
    """Classifiers whose decision function is the logit of their probabilities."""
    yield "logistic, two classes", LogisticRegression(), Y2
    yield "logistic, three classes", LogisticRegression(), Y3
    yield "pipeline", make_pipeline(StandardScaler(), LogisticRegression()), Y3
    yield "search", GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2), Y2
    yield "gradient boosting", GradientBoostingClassifier(n_estimators=5, random_state=0), Y3
    yield "gradient boosting, two classes", GradientBoostingClassifier(n_estimators=5, random_state=0), Y2
    yield "histogram boosting, two classes", HistGradientBoostingClassifier(max_iter=5), Y2
    yield "histogram boosting", HistGradientBoostingClassifier(max_iter=5), Y3
    yield "linear discriminant", LinearDiscriminantAnalysis(), Y2
    yield "stochastic gradient, two classes", SGDClassifier(loss="log_loss", random_state=0), Y2


@pytest.mark.parametrize(("model", "y"), [pytest.param(m, y, id=name) for name, m, y in exact_logit_models()])
def test_a_decision_function_that_is_the_logit_is_used(model, y):
    """Where softmax of the decision function is predict_proba, the loss comes from it and keeps every digit."""
    fitted(model, y)
    losses = audit_of(model, y)
    np.testing.assert_allclose(
        losses.member, from_logits(model.decision_function(X[:N]), y[:N]), rtol=1e-12, atol=1e-14
    )
    assert "decision_function" in losses.history[0]
    assert losses.scale is LossScale.LOG_ODDS
    assert losses.saturated == (0, 0)


def other_models():
    """Classifiers whose decision function is missing or something else."""
    yield "one against the rest", OneVsRestClassifier(LogisticRegression()), Y3
    yield "stochastic gradient, three classes", SGDClassifier(loss="log_loss", random_state=0), Y3
    yield (
        "exponential boosting",
        GradientBoostingClassifier(loss="exponential", n_estimators=5, random_state=0),
        Y2,
    )
    yield "neural network", MLPClassifier((5,), max_iter=20, random_state=0), Y3
    yield "calibrated", CalibratedClassifierCV(LinearSVC(), cv=2), Y3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "y"), [pytest.param(m, y, id=name) for name, m, y in other_models()])
def test_a_decision_function_that_is_not_the_logit_is_not_used(model, y):
    """A wrong logit would be a wrong audit, so the probabilities decide."""
    fitted(model, y)
    losses = audit_of(model, y)
    expected = from_probabilities(model.predict_proba(X[:N]), y[:N])
    np.testing.assert_allclose(losses.member, expected, rtol=1e-9, atol=1e-12)
    assert losses.history[0].endswith(f"predict_proba of {type(model).__name__}")


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize("y", [Y2, Y3])
def test_the_platt_scaling_of_a_support_vector_machine_is_respected(y):
    """SVC(probability=True) calibrates its decision function, so the probabilities are used."""
    model = fitted(SVC(probability=True, random_state=0), y)
    losses = audit_of(model, y)
    expected = from_probabilities(model.predict_proba(X[N:]), y[N:])
    np.testing.assert_allclose(losses.nonmember, expected, rtol=1e-9, atol=1e-12)
    assert "predict_proba of SVC" in losses.history[0]


@pytest.mark.parametrize("y", [Y2, Y3])
@pytest.mark.parametrize("scale", [30.0, 1e3])
def test_a_saturated_logistic_regression_loses_nothing(y, scale):
    """Where predict_proba has rounded to 0 and 1, the loss still equals the decision function."""
    model = fitted(LogisticRegression(), y)
    model.coef_ = model.coef_ * scale
    model.intercept_ = model.intercept_ * scale
    assert (model.predict_proba(X) == 1).mean() > 0.05
    losses = audit_of(model, y)
    np.testing.assert_allclose(
        losses.member, from_logits(model.decision_function(X[:N]), y[:N]), rtol=1e-12, atol=1e-14
    )
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
    losses = collect(model, members=(features, y), nonmembers=(features, y))
    np.testing.assert_allclose(losses.member, np.array([-1, -1, 1]) * 36.043653, rtol=1e-6)
    assert losses.saturated == (3, 3)


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
    losses = collect(Floored().fit(features, y), members=(features, y), nonmembers=(features, y))
    assert sum(losses.saturated) > 0
    assert "predict_proba of Floored" in losses.history[0]


def test_a_random_forest_counts_its_saturated_records():
    """Votes that are all for or all against the true class are counted and placed at the end of the scale."""
    model = fitted(RandomForestClassifier(n_estimators=10, random_state=0), Y2)
    losses = audit_of(model, Y2)
    p = model.predict_proba(X)[np.arange(2 * N), Y2]
    exact = (p == 0) | (p == 1)
    assert losses.saturated == (int(exact[:N].sum()), int(exact[N:].sum())) != (0, 0)
    assert losses.member.min() == pytest.approx(-36.043653)
    assert "member and" in losses.history[1]
    assert len(losses.history) == 2


def test_a_full_tree_is_said_to_give_hard_labels():
    """A model that answers only 0 and 1 is audited with a note that the audit is weaker."""
    losses = audit_of(fitted(DecisionTreeClassifier(random_state=0), Y2), Y2)
    assert losses.saturated == (N, N)
    assert "hard labels" in losses.history[-1]


def test_a_pipeline_on_a_data_frame_is_scored():
    """A ColumnTransformer that selects columns by name gets its data frame."""
    frame = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")})
    columns = ColumnTransformer([("n", StandardScaler(), ["size"]), ("c", OneHotEncoder(), ["kind"])])
    y = pd.Series(np.where(Y2 == 1, "yes", "no"), index=np.arange(2 * N)[::-1])
    model = make_pipeline(columns, LogisticRegression()).fit(frame[:N], y[:N])
    losses = audit_of(model, y, frame, batch_size=50)
    np.testing.assert_allclose(
        losses.member, from_logits(model.decision_function(frame[:N]), Y2[:N]), rtol=1e-12
    )


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.coo_array, lambda x: x.tolist(), pd.DataFrame])
@pytest.mark.parametrize("batch_size", [None, 7])
def test_every_kind_of_features_gives_the_same_losses(form, batch_size):
    """Sparse matrices, lists, data frames and batches change nothing."""
    features = np.round(X, 1)
    model = LogisticRegression().fit(features[:N], Y2[:N])
    expected = audit_of(model, Y2, features)
    parts = {"members": (form(features[:N]), Y2[:N]), "nonmembers": (form(features[N:]), Y2[N:])}
    if form is pd.DataFrame:
        model = LogisticRegression().fit(form(features[:N]), Y2[:N])
    losses = collect(model, **parts, batch_size=batch_size)
    np.testing.assert_allclose(losses.member, expected.member, rtol=1e-10)
    np.testing.assert_allclose(losses.nonmember, expected.nonmember, rtol=1e-10)


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


@pytest.mark.parametrize("y", [pytest.param(y, id=name) for name, y in LABELS.items()])
def test_labels_of_any_type_find_their_class(y):
    """Strings, booleans, whole floats and pandas columns give the losses of the integers they stand for."""
    expected = audit_of(fitted(LogisticRegression(), Y2), Y2)
    target = np.asarray(y).ravel() if isinstance(y, np.ndarray) else y
    model = LogisticRegression().fit(X[:N], np.asarray(target[:N]).tolist())
    losses = audit_of(model, y)
    np.testing.assert_allclose(losses.nonmember, expected.nonmember, rtol=1e-9)


def test_labels_may_be_of_another_numeric_type_than_the_classes():
    """A model fitted on integers knows 1.0 and True."""
    model = fitted(LogisticRegression(), Y2)
    expected = audit_of(model, Y2)
    for y in (Y2.astype(float), Y2.astype(bool), Y2.astype(np.uint8)):
        np.testing.assert_array_equal(audit_of(model, y).member, expected.member)


def test_classes_rename_the_columns_of_an_estimator():
    """A model fitted on encoded labels can be audited with the original ones."""
    model = fitted(LogisticRegression(), Y2)
    losses = audit_of(model, np.array(["no", "yes"])[Y2], classes=["no", "yes"])
    np.testing.assert_array_equal(losses.member, audit_of(model, Y2).member)


def test_slices_are_stratified_without_copying_the_model():
    """Ids, groups and persons reach the losses beside their records."""
    model = fitted(LogisticRegression(), Y2)
    ids, slices = (np.arange(N), np.arange(N, 2 * N)), (Y3[:N], Y3[N:])
    losses = audit_of(model, Y2, ids=ids, groups=slices, persons=ids)
    np.testing.assert_array_equal(losses.id.nonmember, ids[1])
    np.testing.assert_array_equal(losses.group.member, slices[0])
    np.testing.assert_array_equal(losses.person.member, ids[0])


# --- What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            LinearSVC().fit(X, Y2),
            "LinearSVC without predict_proba; wrap a classifier in CalibratedClassifierCV",
        ),
        (RidgeClassifier().fit(X, Y2), "RidgeClassifier without predict_proba"),
        (SVC().fit(X, Y2), "SVC without predict_proba"),
        (LinearRegression().fit(X, Y2), "LinearRegression without predict_proba"),
        (LogisticRegression(), "be fitted, got LogisticRegression without classes_; call fit first"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "be fitted, got Pipeline"),
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}), "be fitted, got GridSearchCV"),
        (
            RandomForestClassifier(n_estimators=2).fit(X, np.stack([Y2, Y3], 1)),
            "predict one label, got Random",
        ),
        (GaussianNB().fit(X, np.zeros(2 * N)), "know at least 2 classes, got GaussianNB fitted on one"),
        (LogisticRegression, "got the class LogisticRegression itself; build and fit one"),
        (3.5, r"fitted classifier with predict_proba and classes_, or a callable .* got float"),
        (None, "or a callable .* got NoneType"),
    ],
)
def test_models_that_cannot_be_audited_are_refused(model, sentence):
    """The sentence says what was passed and what to do."""
    with pytest.raises(InputError, match=f"^model must .*{sentence}"):
        audit_of(model, Y2)


def test_a_model_that_finds_itself_unfitted_is_refused():
    """scikit-learn's own NotFittedError becomes our sentence."""

    class Unfitted(LogisticRegression):
        classes_ = (0, 1)

        def predict_proba(self, features):
            raise NotFittedError(f"no coefficients for {len(features)} rows")

    with pytest.raises(InputError, match=r"model must be fitted, got an unfitted Unfitted; call fit first"):
        audit_of(Unfitted(), Y2)


def test_features_that_the_model_refuses_are_one_sentence():
    """The model's own reason is passed on with the group, on one line."""
    model = fitted(LogisticRegression(), Y2)
    broken = X[N:].copy()
    broken[5, 1] = np.nan
    with pytest.raises(
        InputError,
        match=r"nonmember X must suit the model, but .* refused it: Input X contains NaN \(first at row 5, counting from"
        r" 0, column 1\); correct it, or leave that record out\.$",
    ) as caught:
        collect(model, members=(X[:N], Y2[:N]), nonmembers=(broken, Y2[N:]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_the_wrong_number_of_columns_is_one_sentence(form):
    """Both numbers are named, and how to choose the columns."""
    model = fitted(LogisticRegression(), Y2)
    sentence = (
        r"nonmember X must have the 4 columns that LogisticRegression was trained on, got 3; .*--features"
    )
    with pytest.raises(InputError, match=sentence):
        collect(model, members=(form(X[:N]), Y2[:N]), nonmembers=(form(X[N:, :3]), Y2[N:]))


def test_a_data_frame_without_a_column_is_one_sentence():
    """A missing column that the pipeline selects by name is named."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(ColumnTransformer([("n", StandardScaler(), ["a", "d"])]), LogisticRegression())
    model.fit(frame, Y2)
    sentence = r"member X must have the 4 columns that Pipeline was fitted on, but 1 is missing: 'd'\."
    with pytest.raises(InputError, match=sentence):
        audit_of(model, Y2, frame.drop(columns="d"))
    expected = audit_of(model, Y2, frame)
    losses = audit_of(model, Y2, frame.drop(columns="b"))  # which no step of the pipeline uses
    np.testing.assert_array_equal(losses.member, expected.member)


# --- Features in the form that the model was fitted on ---------------------------------------------


NAMES = list("abcd")


@pytest.mark.parametrize(
    "model", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())]
)
@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(
    "form",
    [
        lambda x: x,
        lambda x: pd.DataFrame(x, columns=NAMES),
        lambda x: pd.DataFrame(x, columns=NAMES).astype({"a": "float64"}),
        sparse.csr_matrix,
        lambda x: x.tolist(),
    ],
)
def test_arrays_and_data_frames_stand_for_each_other(model, by_name, form):
    """A model fitted on either takes either, without a warning of names."""
    if not isinstance(model, LogisticRegression) and form is sparse.csr_matrix:
        pytest.skip("StandardScaler centres, which no sparse matrix allows")
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
        np.testing.assert_array_equal(audit_of(model, Y2, other).member, expected.member)
    with pytest.raises(InputError, match=r"but 2 are missing: 'a', 'c'\.$"):
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


def every_model():
    """All models of this file that are classifiers of one label."""
    yield from exact_logit_models()
    yield from other_models()
    yield "naive", GaussianNB(), Y3
    yield "forest", RandomForestClassifier(n_estimators=10, random_state=0), Y2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "y"), [pytest.param(m, y, id=name) for name, m, y in every_model()])
def test_a_model_is_scored_alike_from_a_few_records_and_from_all(model, y):
    """What is chosen on a sample of 20 records is what is chosen on all of them, with the same losses and words."""
    fitted(model, y)
    whole = audit_of(model, y)
    sample = (Records("member", X[:20], y[:20]),)
    found = predictor(model, task=Classification(), sample=sample)
    losses = in_batches(ModelScorer(found), Records("member", X[:N], y[:N]), size=None).loss
    finite = np.isfinite(losses)
    np.testing.assert_array_equal(losses[finite], whole.member[finite])
    assert whole.history[0].endswith(found.source)
    assert whole.saturated[0] == (~finite).sum()


def test_repeats_of_a_steady_model_change_nothing():
    """Averaging equal answers gives the answer."""
    model = fitted(LogisticRegression(), Y3)
    one, three = audit_of(model, Y3), audit_of(model, Y3, repeats=3)
    np.testing.assert_allclose(three.member, one.member, rtol=1e-12)
    assert three.history[0].endswith("averaged over 3 answers")


def test_an_unknown_label_is_named_with_its_group_row_and_the_classes():
    """The first label outside the model's classes is reported before the model is run."""
    y = Y2.copy()
    y[N + 5] = y[N + 9] = 7
    with pytest.raises(
        InputError,
        match=r"nonmember label 7 \(first at row 5, counting from 0; at least 2 such records\) .* classes 0, 1; .*classes=",
    ):
        audit_of(fitted(LogisticRegression(), Y2), y)


def test_output_is_refused_for_an_estimator():
    """What an estimator returns is found, not declared."""
    with pytest.raises(
        InputError, match="output says what a callable returns, got 'logits' with a LogisticRegression"
    ):
        audit_of(fitted(LogisticRegression(), Y2), Y2, output="logits")


def test_nan_probabilities_are_named_by_row():
    """A model that answers NaN is not scored."""

    class Broken(GaussianNB):
        def predict_proba(self, features):
            p = super().predict_proba(features)
            p[3] = np.nan
            return p

    with pytest.raises(
        InputError, match=r"member outputs must be numbers, got nan \(first at row 3, counting from 0\)"
    ):
        audit_of(fitted(Broken(), Y2), Y2)
