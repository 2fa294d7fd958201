"""The test that decides about a fit, and the published one beside it."""

import numpy as np
import pytest
from scipy import stats

from auditor.fitters import fit_gaussian, held_out_test
from auditor.fitters.gaussian import Gaussian
from auditor.fitters.goodness_of_fit import distance_test, partition, two_sample_ks


def test_the_distance_is_scipys(rng):
    """The distance is that of SciPy's one-sample test, the p-value its asymptotic one at the effective size."""
    x = rng.normal(size=400)
    found = distance_test(x, Gaussian(0.1, 1.1), n_fit=400)
    expected = stats.kstest(x, stats.norm(0.1, 1.1).cdf)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p_value == pytest.approx(stats.kstwobign.sf(expected.statistic * np.sqrt(200)), rel=1e-9)


def test_a_point_mass_is_met_exactly():
    """Equal held-out losses have no distance from their own point mass, and all of it from another."""
    held = np.full(10, 2.0)
    assert distance_test(held, Gaussian(2.0, 0.0), n_fit=10).statistic == 0
    assert distance_test(held, Gaussian(3.0, 0.0), n_fit=10).statistic == 1
    assert distance_test(held, Gaussian(1.0, 0.0), n_fit=10).statistic == 1


def test_parts_are_disjoint_and_random(rng):
    """The kept records and the parts are the whole sample, once each, and sorted losses are not cut in order."""
    values = np.arange(100.0)
    kept, parts = partition(values, (30, 20), rng=rng)
    assert [kept.size, *(part.size for part in parts)] == [50, 30, 20]
    assert np.sort(np.concatenate([kept, *parts])).tolist() == values.tolist()
    assert all(part.min() < 25 and part.max() > 75 for part in parts)


def test_both_tests_stand_side_by_side(rng):
    """One partition serves both tests: up to 10,000 records decide, up to 1,000 of them go into the published test."""
    small = held_out_test(rng.normal(size=101), fit_gaussian, rng=rng)
    large = held_out_test(rng.normal(size=30_000), fit_gaussian, rng=rng)
    assert (small.n, small.paper.n) == (50, 50)
    assert (large.n, large.paper.n) == (10_000, 1000)
    assert "two-sample" in large.paper.test
    assert "others" in large.test


def test_the_published_test_is_scipys_two_sample_one(rng):
    """The published test is SciPy's between the held-out records and as many draws from the fit."""
    held, law = rng.normal(size=300), Gaussian(0.5, 1.0)
    found = two_sample_ks(held, law, rng=np.random.default_rng(7))
    draws = law.sample(300, np.random.default_rng(7))
    assert found.p_value == pytest.approx(stats.ks_2samp(held, draws).pvalue)
