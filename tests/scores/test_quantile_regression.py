"""Quantile-regression scores and conformal thresholds."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import auditor
from auditor.core import FixedThreshold, Losses, PerGroup
from auditor.scores import Population, conformal_threshold, fit_quantile_regression


@pytest.mark.parametrize(
    ("n", "rate", "k"), [(99, 0.01, 1), (199, 0.01, 2), (99, 0.07, 7), (150, 0.05, 7), (9, 0.95, 9)]
)
def test_the_threshold_is_just_below_the_kth_smallest_score(rng, n, rate, k):
    """The rank is k = floor(rate (n + 1)): k - 1 scores are at or below the threshold, and the k-th is not, ties or not."""
    scores = rng.normal(size=n)
    rule = conformal_threshold(scores, rate=rate)
    assert isinstance(rule, FixedThreshold)
    assert np.sum(scores <= rule.threshold) == k - 1
    assert np.nextafter(rule.threshold, np.inf) == np.sort(scores)[k - 1]
    assert conformal_threshold(np.full(n, 3.0), rate=rate).threshold < 3.0


def step_world(rng, n):
    """Non-member losses N(0, 1) where the feature is 0 and N(10, 2) where it is 1."""
    feature = rng.integers(0, 2, n)
    return feature, np.where(feature == 1, rng.normal(10, 2, n), rng.normal(size=n))


def fitted(member, nonmember, held, loss, *, rng, rate=0.1, person=None, **options):
    """The score of records with these features, from the features of calibration records and their losses."""
    return fit_quantile_regression(
        (member, nonmember),
        calibration=Population(loss=loss, person=person),
        calibration_features=held,
        rate=rate,
        rng=rng,
        **options,
    )


@pytest.mark.parametrize(("quantile", "z"), [(None, -stats.norm.isf(0.1)), (0.5, 0.0)])
def test_the_score_is_the_loss_minus_the_true_quantile(rng, quantile, z):
    """On two known normals the quantile is recovered, at the rate of the threshold (-1.28 and 10 - 2.56) or its own."""
    found = fitted(np.array([0, 1]), np.array([1, 0]), *step_world(rng, 6000), rng=rng, quantile=quantile)
    moved = found.transform(Losses(member=[0.0, 0.0], nonmember=[0.0, 0.0]))
    # Standard error of a 10% quantile of 1500 normals: 0.044 times the scale.
    np.testing.assert_allclose(moved.member, [-z, -(10 + 2 * z)], atol=0.25)
    np.testing.assert_allclose(moved.nonmember, [-(10 + 2 * z), -z], atol=0.25)
    assert found.n_fitted == found.n_conformal == 3000
    assert quantile or found.threshold.threshold == pytest.approx(0, abs=0.2)


def test_the_threshold_goes_into_an_audit(rng):
    """audit() takes the fitted threshold as its rule and certifies the planted leak."""
    feature, loss = step_world(rng, 2400)
    losses = Losses(member=loss[:600] - 4 * (1 + feature[:600]), nonmember=loss[600:1200])
    found = fitted(*np.split(feature, [600, 1200]), loss[1200:], rate=0.05, rng=rng)
    result = auditor.audit(found.transform(losses), delta=1e-5, threshold=found.threshold)
    bound = result.estimate("epsilon_bound.clopper_pearson")
    assert bound.details["rule"] == "FixedThreshold"
    assert bound.value > 1.5


KINDS = {
    "column": lambda x: x[:, np.newaxis],
    "list": lambda x: x.tolist(),
    "frame": lambda x: pd.DataFrame({"x": x}),
    "text": lambda x: pd.DataFrame({"x": np.where(x == 1, "north", "east")}),
    "mixed objects": lambda x: np.array([["a", int(item)] for item in x], dtype=object)[:, 1:],
    "category": lambda x: pd.DataFrame({"x": pd.Categorical(np.where(x == 1, "b", "a"))}),
    "sparse": lambda x: sparse.csr_array(x[:, np.newaxis]),
    "missing text": lambda x: pd.DataFrame({"x": np.where(x == 1, "north", None)}),
    "missing numbers": lambda x: np.where(x == 1, 1.0, np.nan),
}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_kind_mean_the_same(kind):
    """Arrays, lists, frames, sparse matrices, texts, categories and gaps give the scores of the numbers they stand for."""
    feature, loss = step_world(np.random.default_rng(3), 800)
    parts = np.split(feature, [50, 100])

    def scored(tables):
        found = fitted(*tables, loss[100:], rng=np.random.default_rng(0))
        return found.transform(Losses(member=loss[:50], nonmember=loss[50:100])).member

    np.testing.assert_array_equal(scored(map(KINDS[kind], parts)), scored(parts))


def test_features_come_as_a_value_of_both_groups_too():
    """An object with the fields member and nonmember is taken as the pair."""
    feature, loss = step_world(np.random.default_rng(3), 800)
    pair, held = (feature[:2], feature[2:4]), feature[4:]
    one, other = (
        fit_quantile_regression(
            features,
            calibration=Population(loss=loss[4:]),
            calibration_features=held,
            rate=0.1,
            rng=np.random.default_rng(0),
        )
        for features in (pair, PerGroup(*pair))
    )
    assert one.threshold == other.threshold


def test_persons_stay_in_one_half(rng):
    """Calibration records of one person serve the regression or the threshold, never both."""
    feature, loss = step_world(rng, 40)
    person = np.repeat([0, 1, 2, 3], 10)
    found = fitted(feature[:2], feature[2:4], feature, loss, rate=0.3, person=person, rng=rng)
    assert found.n_fitted == found.n_conformal == 20
