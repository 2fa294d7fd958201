"""Tasks: the loss of one record by its textbook formula, and labels and outputs that do not fit."""

import numpy as np
import pytest
from collectors.common import QUIET, refused
from scipy import sparse
from scipy.stats import bernoulli, entropy, norm
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auditor import LossScale, audit, losses_from_probabilities
from auditor.collectors import Classification, GaussianLogLoss, MultiLabel, Output, SquaredError, collect
from auditor.collectors.base import Records

pytestmark = QUIET

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2 * N, 4))
SETS = (X[:, :3] + RNG.normal(size=(2 * N, 3)) > 0).astype(int)
T = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=2 * N)
TWO = np.stack([T, -3 * T + 1], axis=1)


def losses_of(model, y, task, features=X, **kwargs):
    """Losses of a model on the two halves."""
    parts = {"members": (features[:N], y[:N]), "nonmembers": (features[N:], y[N:])}
    return collect(model, **parts, task=task, **kwargs)


def by_label(p, y):
    """The sum over labels of -log P(label) + log P(not label), record by record."""
    total = np.zeros(len(y))
    for row in range(len(y)):
        for label in range(y.shape[1]):
            own = bernoulli.logpmf(y[row, label], p[row, label])
            total[row] += bernoulli.logpmf(1 - y[row, label], p[row, label]) - own
    return total


# --- No labels -------------------------------------------------------------------------------------


DOUBTS = {
    "confidence": lambda p: -np.sort(p, axis=1)[:, -1],
    "confidence:entropy": lambda p: entropy(p, axis=1),
    "confidence:margin": lambda p: np.sort(p, axis=1)[:, -2] - np.sort(p, axis=1)[:, -1],
}


@pytest.mark.parametrize("task", DOUBTS)
def test_the_doubt_of_an_answer_needs_no_labels(task, monkeypatch):
    """Every kind of output gives the score of its probabilities, whole or in blocks, and the page names the score."""
    monkeypatch.setattr("auditor.collectors.base.tasks._BLOCK", 21)
    z = RNG.normal(size=(2 * N, 3), scale=3)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    for output, values in zip(Output, (p, np.log(p), z), strict=True):
        groups = (values[:N], None), (values[N:], None)
        losses = collect(lambda x: x, *groups, task=task, output=output)
        np.testing.assert_allclose(losses.member, DOUBTS[task](p)[:N], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(losses.nonmember, DOUBTS[task](p)[N:], rtol=1e-9, atol=1e-12)
    assert losses.label is None
    assert losses.scale is LossScale.UNKNOWN
    assert losses.history[0] in audit(losses).to_html()
    two = losses_from_probabilities(p[:, 1], member=np.arange(2 * N) < N, task=task)
    np.testing.assert_allclose(
        two.member, DOUBTS[task](np.stack([1 - p[:N, 1], p[:N, 1]], axis=1)), atol=1e-12
    )


def test_labels_beside_a_confidence_are_kept_as_classes():
    """The true classes change no score, may be none of the model's, and give the slices of the report."""
    model, y = RandomForestClassifier(20, random_state=0).fit(X[:N], SETS[:N, 0]), np.repeat(["a", "b"], N)
    losses = losses_of(model, y, "confidence")
    np.testing.assert_allclose(losses.nonmember, -model.predict_proba(X[N:]).max(axis=1))
    assert set(losses.label.nonmember) == {"b"}


# --- Several labels --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [None, 2])
def test_labels_alone_have_no_confidence(size):
    """A model that returns labels is refused where its confidence is the score, which would be the same for all records."""
    rows, hard = np.arange(6), np.eye(3)[[0, 1, 2, 0, 1, 2]]
    pairs = {"members": (rows, None), "nonmembers": (rows, None), "task": "confidence", "batch_size": size}
    with refused("for the task confidence, got only 0 and 1, as of a model that returns labels"):
        collect(lambda x: hard[x], **pairs)
    hard[0] = 0.5, 0.25, 0.25  # one record with a doubt
    assert collect(lambda x: hard[x], **pairs).member[0] == -0.5


def test_the_losses_of_labels_are_summed():
    """Probabilities, log-probabilities and logits of several labels give the sum of the negative log-odds."""
    p = RNG.uniform(0.01, 0.99, size=(2 * N, 3))
    want = by_label(p, SETS)
    for form in (sparse.csr_matrix, lambda y: y.astype(bool), lambda y: y.astype(float)):  # the same labels
        losses = losses_of(lambda x: x, form(SETS), MultiLabel(), features=p)
        np.testing.assert_allclose(losses.member, want[:N], rtol=1e-10)
    for output, values in zip(Output, (p, np.log(p), np.log(p) - np.log1p(-p)), strict=True):
        losses = losses_of(lambda x: x, SETS, MultiLabel(), features=values, output=output)
        np.testing.assert_allclose(losses.member, want[:N], rtol=1e-10)
        np.testing.assert_allclose(losses.nonmember, want[N:], rtol=1e-10)
    assert losses.scale is LossScale.UNKNOWN
    assert losses.label is None


def test_saturated_labels_are_counted_and_placed_at_the_ends_of_the_type():
    """A true side at exactly 1 counts as logit(eps), and one at 0 as the smallest float64 above 0, 2^-1074."""
    p = np.array([[1.0, 0.5], [0.0, 0.25]])
    groups = {"members": (p, [[1, 0], [1, 1]]), "nonmembers": (p, [[0, 0], [0, 1]])}
    losses = collect(lambda x: x, **groups, task=MultiLabel())
    end = np.log1p(-np.finfo(float).eps) - np.log(np.finfo(float).eps)
    worst = 1074 * np.log(2)
    np.testing.assert_allclose(losses.member, [-end, worst + np.log(3)])
    np.testing.assert_allclose(losses.nonmember, [worst, -end + np.log(3)])
    assert losses.saturated == (2, 2)


def growing(dtype, output):
    """Every kind of value from certainly absent to certainly there, ends included, in steps that the type has."""
    limits = np.finfo(dtype)
    powers = 2.0 ** np.arange(limits.minexp - limits.nmant, 0.0, 3)
    if output is Output.PROBABILITIES:
        near_one = 1 - 2.0 ** np.arange(-1.0, limits.negep - 1, -1)
        return np.concatenate([[0], powers, near_one, [1 - limits.epsneg, 1]]).astype(dtype)
    most = -float(limits.max)
    values = np.concatenate(
        [[-np.inf, most], -(2.0 ** np.arange(14.0, 0, -1)), -powers[::-1], [-powers[0], 0]]
    )
    return values.astype(dtype)


@pytest.mark.parametrize("output", [Output.PROBABILITIES, Output.LOG_PROBABILITIES])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_surer_label_never_looks_less_sure(dtype, output):
    """Losses of a label that is there fall with its probability, and of one that is not they rise, ends included."""
    values = growing(dtype, output)
    assert np.all(np.diff(np.where(np.isinf(values), -1e309, values.astype(float))) >= 0)
    for truth, sign in ((True, -1), (False, 1)):
        batch = Records("member", values, np.full((values.size, 1), truth))
        found = MultiLabel().losses(values, records=batch, output=output, classes=None)
        assert np.all(sign * np.diff(found.loss) >= 0)
        assert np.isfinite(found.loss).all()
        np.testing.assert_array_equal(np.flatnonzero(found.saturated), [0, values.size - 1])
        wrong, right = (0, -1) if truth else (-1, 0)
        assert found.loss[wrong] >= -np.log(2.0) * (np.finfo(dtype).minexp - np.finfo(dtype).nmant)
        assert found.loss[wrong] > -found.loss[right] or output is Output.LOG_PROBABILITIES


def test_a_label_at_zero_is_worse_than_the_smallest_probabilities():
    """P(true) = 0 beside 1e-300 and 1e-3 gives the largest loss; labels that are whole numbers count as float64."""
    p = np.array([[0.0], [1e-300], [1e-3]])
    batch = Records("member", p, np.ones((3, 1), dtype=bool))
    losses = MultiLabel().losses(p, records=batch, output=Output.PROBABILITIES, classes=None).loss
    np.testing.assert_allclose(losses, [1074 * np.log(2), 300 * np.log(10), np.log(999)], rtol=1e-12)
    whole = np.array([[0], [1], [1]])
    losses = MultiLabel().losses(whole, records=batch, output=Output.PROBABILITIES, classes=None).loss
    np.testing.assert_allclose(losses, [1074 * np.log(2), *[-52 * np.log(2)] * 2], rtol=1e-12)


LABELLERS = {
    "predict_proba of Random": RandomForestClassifier(20, min_samples_leaf=5, random_state=0),
    "predict_proba of MultiOutputClassifier": MultiOutputClassifier(LogisticRegression()),
    "decision_function of OneVsRest": OneVsRestClassifier(LogisticRegression()),
    "predict_proba of MLPClassifier": MLPClassifier((5,), max_iter=5, random_state=0),
    " of ClassifierChain": ClassifierChain(LogisticRegression()),
    "decision_function of Pipeline": make_pipeline(OneVsRestClassifier(LogisticRegression())),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("source", "model"), LABELLERS.items(), ids=LABELLERS)
def test_estimators_of_several_labels_are_scored(source, model):
    """Lists of tables and single tables of probabilities are read by label."""
    model.fit(X[:N], SETS[:N])
    found = model.predict_proba(X)
    p = np.stack([part[:, 1] for part in found], axis=1) if isinstance(found, list) else found
    losses = losses_of(model, SETS, MultiLabel())
    np.testing.assert_allclose(losses.member, by_label(p, SETS)[:N], rtol=1e-8, atol=1e-10)
    assert source in losses.history[0]


def test_a_label_that_training_never_saw_is_certainly_absent():
    """A forest fitted on a label that is always 0 has one column for it; the class 1 has probability 0."""
    y = SETS.copy()
    y[:N, 1] = 0
    model = RandomForestClassifier(10, min_samples_leaf=5, random_state=0).fit(X[:N], y[:N])
    p = np.stack([model.predict_proba(X)[0][:, 1], np.zeros(2 * N), model.predict_proba(X)[2][:, 1]], axis=1)
    losses = losses_of(model, y, MultiLabel())
    end = np.log1p(-np.finfo(float).eps) - np.log(np.finfo(float).eps)
    others = by_label(p[:, [0, 2]], y[:, [0, 2]])
    np.testing.assert_allclose(losses.member, others[:N] - end, rtol=1e-8)


# --- Numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [T, TWO, T[:, None]])
@pytest.mark.parametrize("kind", [LinearRegression, lambda: RandomForestRegressor(5, random_state=0)])
def test_squared_errors_of_estimators(target, kind):
    """One number or several, the squares of what is left are summed."""
    model = kind().fit(X[:N], target[:N].ravel() if target.shape[1:] == (1,) else target[:N])
    left = target.reshape(2 * N, -1) - model.predict(X).reshape(2 * N, -1)
    losses = losses_of(model, target, SquaredError())
    np.testing.assert_allclose(losses.member, (left**2).sum(axis=1)[:N], rtol=1e-12)
    assert losses.history[0] == f"squared error from predict of {type(model).__name__}"
    assert losses.scale is LossScale.UNKNOWN


@pytest.mark.parametrize("deviation", [0.5, 3])
def test_the_gaussian_log_loss_with_a_given_deviation(deviation):
    """It is minus the log-density of scipy's normal distribution."""
    model = LinearRegression().fit(X[:N], T[:N])
    want = -norm.logpdf(T, loc=model.predict(X), scale=deviation)
    np.testing.assert_allclose(losses_of(model, T, GaussianLogLoss(deviation)).member, want[:N], rtol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        BayesianRidge(),
        GaussianProcessRegressor(alpha=0.1),
        make_pipeline(StandardScaler(), BayesianRidge()),
        GridSearchCV(BayesianRidge(), {"alpha_1": [1e-6, 1e-3]}, cv=2),
    ],
    ids=["ridge", "process", "pipeline", "search"],
)
def test_the_gaussian_log_loss_with_the_models_own_deviation(model):
    """Estimators that know how sure they are give mean and deviation of each record."""
    model.fit(X[:N], T[:N])
    inner = model.best_estimator_ if isinstance(model, GridSearchCV) else model
    mean, deviation = inner.predict(X, return_std=True)
    want = -norm.logpdf(T, loc=mean, scale=deviation)
    np.testing.assert_allclose(losses_of(model, T, GaussianLogLoss()).nonmember, want[N:], rtol=1e-9)


def test_means_come_first_and_deviations_after_them():
    """For two numbers the callable returns two means and then two deviations."""
    deviation = RNG.uniform(0.5, 2, size=(2 * N, 2))
    mean = RNG.normal(size=(2 * N, 2))
    want = -norm.logpdf(TWO, loc=mean, scale=deviation).sum(axis=1)
    features = np.concatenate([mean, deviation], axis=1)
    losses = losses_of(lambda x: x, TWO, GaussianLogLoss(), features=features)
    np.testing.assert_allclose(losses.member, want[:N], rtol=1e-12)


# --- What is refused -------------------------------------------------------------------------------


LINE, LOGISTIC = LinearRegression().fit(X, T), LogisticRegression().fit(X, SETS[:, 0])
FOREST = RandomForestClassifier(2).fit(X, SETS)
HOLED = np.where(np.arange(2 * N) == 4, np.nan, T)


@pytest.mark.parametrize(
    ("model", "y", "task", "words"),
    [
        (LOGISTIC, T, SquaredError(), "task SquaredError needs a regression model, got LogisticRegression"),
        (LINE, SETS[:, 0], Classification(), r"numbers, such as LinearRegression: SquaredError\(\)"),
        (LINE, T, GaussianLogLoss(), "must give the standard deviation, .* LinearRegression returns none"),
        (LINE, SETS, MultiLabel(), "give probabilities, got LinearRegression without predict_proba"),
        (FOREST, SETS[:, 0], Classification(), r"one label, got Random.* with 3; .* MultiLabel\(\)"),
        (LINE, HOLED, SquaredError(), r"member y must be finite, got nan \(first at row 4,"),
        (LINE, ["a"] * 2 * N, SquaredError(), "member y must be one number to predict"),
        (len, SETS + 1, MultiLabel(), "member y must be a table of 0 and 1 with a column for each label"),
        (np.asarray, SETS, MultiLabel(), "outputs must have a column for each of 3 labels, got 4 columns"),
        (np.asarray, T, SquaredError(), "member outputs must have 1 column, got 4"),
        (lambda x: np.zeros((len(x), 2)), T, GaussianLogLoss(), r"deviations above 0 .*, got 0 \(.*row 0,"),
        (lambda x: HOLED[: len(x)], T, SquaredError(), r"outputs must be finite, got nan \(first at row 4,"),
    ],
)
def test_what_does_not_fit_the_task_is_one_sentence(model, y, task, words):
    """The sentence names the task or the label, the record and the fix."""
    with refused(words):
        losses_of(model, y, task)


@pytest.mark.parametrize("value", [0, -1, np.nan, "a"])
def test_what_a_regression_does_not_take(value):
    """Classes, and a standard deviation that is not above 0."""
    with refused("classes must be left out of a regression, which has none"):
        losses_of(LINE, T, SquaredError(), classes=[0, 1])
    with refused("standard_deviation must be"):
        GaussianLogLoss(value)
