"""Quantile-regression scores and conformal thresholds."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import auditor
from auditor.core import FixedThreshold, InputError, Losses, PerGroup
from auditor.scores import Population, conformal_threshold, fit_quantile_regression


@pytest.mark.parametrize(
    ("n", "rate", "k"), [(99, 0.01, 1), (199, 0.01, 2), (99, 0.07, 7), (150, 0.05, 7), (9, 0.95, 9)]
)
def test_the_threshold_is_just_below_the_kth_smallest_score(rng, n, rate, k):
    """The rank is k = floor(rate (n + 1)): k - 1 scores are at or below the threshold, and the k-th is not."""
    scores = rng.normal(size=n)
    rule = conformal_threshold(scores, rate=rate)
    assert isinstance(rule, FixedThreshold)
    assert np.sum(scores <= rule.threshold) == k - 1
    assert np.nextafter(rule.threshold, np.inf) == np.sort(scores)[k - 1]


def test_equal_scores_are_not_called_members():
    """With all scores equal nothing is at or below the threshold, so ties cost no false positives."""
    assert conformal_threshold(np.full(200, 3.0), rate=0.5).threshold < 3.0


def test_a_rate_needs_enough_records():
    """98 records cannot give 1%, 99 can; the sentence says so."""
    with pytest.raises(
        InputError, match=r"rate 0\.01 is not resolvable with 98 non-members.*at least 99 are needed"
    ):
        conformal_threshold(np.arange(98.0), rate=0.01)
    assert conformal_threshold(np.arange(99.0), rate=0.01).threshold < 0
    with pytest.raises(InputError, match=r"rate must lie in \(0, 1\), got 0"):
        conformal_threshold(np.arange(98.0), rate=0.0)
    with pytest.raises(InputError, match="conformal losses must be finite, got 1 NaN"):
        conformal_threshold(np.array([1.0, np.nan]), rate=0.5)


def step_world(rng, n=3000):
    """Non-member losses N(0, 1) where the feature is 0 and N(10, 2) where it is 1."""
    feature = rng.integers(0, 2, n)
    return feature, np.where(feature == 1, rng.normal(10, 2, n), rng.normal(size=n))


def test_the_score_is_the_loss_minus_the_true_quantile(rng):
    """On two known normals the 10% quantile is recovered: -1.28 and 10 - 2.56."""
    feature, loss = step_world(rng, 6000)
    losses = Losses(member=[0.0, 0.0], nonmember=[0.0, 0.0])
    fitted = fit_quantile_regression(
        (np.array([0, 1]), np.array([1, 0])),
        calibration=Population(loss=loss),
        calibration_features=feature,
        rate=0.1,
        rng=rng,
    )
    low = -stats.norm.isf(0.1)
    moved = fitted.transform(losses)
    # Standard error of a 10% quantile of 1500 normals: 0.044 times the scale.
    np.testing.assert_allclose(moved.member, [-low, -(10 + 2 * low)], atol=0.25)
    np.testing.assert_allclose(moved.nonmember, [-(10 + 2 * low), -low], atol=0.25)
    assert fitted.n_fitted == fitted.n_conformal == 3000
    assert fitted.threshold.threshold == pytest.approx(0, abs=0.2)


def test_the_threshold_goes_into_an_audit(rng):
    """audit() takes the fitted threshold as its rule and certifies the planted leak."""
    feature, loss = step_world(rng, 2400)
    losses = Losses(member=loss[:600] - 4 * (1 + feature[:600]), nonmember=loss[600:1200])
    fitted = fit_quantile_regression(
        (feature[:600], feature[600:1200]),
        calibration=Population(loss=loss[1200:]),
        calibration_features=feature[1200:],
        rate=0.05,
        rng=rng,
    )
    result = auditor.audit(fitted.transform(losses), delta=1e-5, threshold=fitted.threshold)
    bound = result.estimate("epsilon_bound.clopper_pearson")
    assert bound.details["rule"] == "FixedThreshold"
    assert bound.value > 1.5


@pytest.mark.parametrize(
    "kind", ["array", "column", "list", "frame", "text", "mixed objects", "category", "sparse", "pair value"]
)
def test_tables_of_every_kind_mean_the_same(kind):
    """Arrays, lists, frames, sparse matrices, and text or categories give the scores of the numbers they stand for."""
    rng = np.random.default_rng(3)
    feature, loss = step_world(rng, 800)
    parts = feature[:50], feature[50:100], feature[100:]
    kinds = {
        "array": lambda x: x,
        "column": lambda x: x[:, np.newaxis],
        "list": lambda x: x.tolist(),
        "frame": lambda x: pd.DataFrame({"x": x}),
        "text": lambda x: pd.DataFrame({"x": np.where(x == 1, "north", "east")}),
        "mixed objects": lambda x: np.array([["a", int(item)] for item in x], dtype=object)[:, 1:],
        "category": lambda x: pd.DataFrame({"x": pd.Categorical(np.where(x == 1, "b", "a"))}),
        "sparse": lambda x: sparse.csr_array(x[:, np.newaxis]),
        "pair value": lambda x: x,
    }
    member, nonmember, held = (kinds[kind](part) for part in parts)
    features = PerGroup(member, nonmember) if kind == "pair value" else (member, nonmember)
    losses = Losses(member=loss[:50], nonmember=loss[50:100])

    def scored(pair, table):
        fitted = fit_quantile_regression(
            pair,
            calibration=Population(loss=loss[100:]),
            calibration_features=table,
            rate=0.1,
            rng=np.random.default_rng(0),
        )
        return fitted.transform(losses).member

    np.testing.assert_array_equal(scored(features, held), scored((parts[0], parts[1]), parts[2]))


def test_missing_features_are_allowed(rng):
    """NaN and None in a feature are values of their own."""
    feature, loss = step_world(rng, 800)
    table = pd.DataFrame(
        {"x": np.where(feature == 1, "north", None), "z": np.where(feature == 1, 1.0, np.nan)}
    )
    fitted = fit_quantile_regression(
        (table[:50], table[50:100]),
        calibration=Population(loss=loss[100:]),
        calibration_features=table[100:],
        rate=0.1,
        rng=rng,
    )
    moved = fitted.transform(Losses(member=loss[:50], nonmember=loss[50:100]))
    assert np.ptp(loss[:50] - moved.member) > 5


def test_a_quantile_of_its_own(rng):
    """The quantile predicted may differ from the rate of the threshold."""
    feature, loss = step_world(rng)
    fitted = fit_quantile_regression(
        (feature[:2], feature[2:4]),
        calibration=Population(loss=loss),
        calibration_features=feature,
        rate=0.1,
        quantile=0.5,
        rng=rng,
    )
    moved = fitted.transform(Losses(member=loss[:2], nonmember=loss[2:4]))
    np.testing.assert_allclose(loss[:2] - moved.member, 10 * feature[:2], atol=0.3)
    assert "minus the 0.5 quantile" in moved.history[-1]


def test_persons_stay_in_one_half(rng):
    """Calibration records of one person serve the regression or the threshold, never both."""
    feature, loss = step_world(rng, 40)
    fitted = fit_quantile_regression(
        (feature[:2], feature[2:4]),
        calibration=Population(loss=loss, person=np.repeat([0, 1, 2, 3], [10, 10, 10, 10])),
        calibration_features=feature,
        rate=0.3,
        rng=rng,
    )
    assert fitted.n_fitted == fitted.n_conformal == 20


@pytest.mark.parametrize(
    ("features", "held", "message"),
    [
        (np.zeros((3, 2)), np.zeros(60), r"features must be a pair \(members, non-members\) of tables, got ndarray"),
        ((np.zeros(2), np.zeros(2)), np.zeros(59), "calibration features has 59"),
        ((np.zeros(2), np.zeros((2, 3))), np.zeros(60), "nonmember features must have the columns of the member features"),
        ((np.zeros(2), np.float64(1)), np.zeros(60), "nonmember features must be a table"),
        ((np.zeros(2), np.full(2, np.inf)), np.zeros(60), "features must be finite or missing, got 2 infinite values"),
        ((np.zeros(3), np.zeros(2)), np.zeros(60), "member losses has 2, member features has 3"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused(rng, features, held, message):
    """Tables of other rows, columns or dimensions and infinite features are refused in one sentence."""
    with pytest.raises(InputError, match=message):
        fit_quantile_regression(
            features,
            calibration=Population(loss=rng.normal(size=60)),
            calibration_features=held,
            rate=0.1,
            rng=rng,
        ).transform(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0]))


def test_too_few_calibration_records_are_refused(rng):
    """A rate of 1% needs 99 conformal records, so 100 calibration records are too few."""
    with pytest.raises(InputError, match="not resolvable with 50 non-members"):
        fit_quantile_regression(
            (np.zeros(2), np.zeros(2)),
            calibration=Population(loss=rng.normal(size=100)),
            calibration_features=np.zeros(100),
            rng=rng,
        )
