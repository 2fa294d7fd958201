"""The test for more components."""

import math

import numpy as np
import pytest
from scipy import stats

from auditor.curves import (
    MixtureOfGaussians,
    combined_test,
    distance_test,
    fit_gaussian,
    fit_mixture,
    log_evidence,
)

ONE = MixtureOfGaussians((1.0,), (0.0,), (1.0,))
TWO = MixtureOfGaussians((0.5, 0.5), (-1.0, 1.0), (1.0, 0.5))
THREE = MixtureOfGaussians((0.2, 0.3, 0.5), (-1.0, 1.0, 0.0), (1.0, 0.5, 2.0))


def test_the_evidence_is_the_formulas(rng):
    """Log E is the log of the mean likelihood of larger candidates over the largest with so few components."""
    held = rng.normal(size=50)
    best = fit_gaussian(held)
    likelihoods = [np.exp(law.log_pdf(held).sum()) for law in (TWO, THREE)]
    expected = math.log(np.mean(likelihoods)) - stats.norm.logpdf(held, best.mean, best.sd).sum()
    assert log_evidence(held, [ONE, TWO, THREE], 1, rng=rng) == pytest.approx(expected)


def test_nothing_speaks_against_the_largest(rng):
    """With no larger candidate there is no evidence, and the distance test alone decides."""
    held = rng.normal(size=50)
    assert log_evidence(held, [ONE], 1, rng=rng) == -math.inf
    found = combined_test(held, [ONE], 1, n_fit=50, rng=rng)
    assert found == distance_test(held, ONE, n_fit=50)


def test_a_tail_that_the_distance_hardly_sees_is_seen(rng):
    """A fifth of the records with a wider spread: the likelihood tells by far more clearly than the distance."""
    x = np.where(rng.random(3000) < 0.2, rng.normal(0, 2.5, 3000), rng.normal(size=3000))
    candidates = [fit_mixture(x[:1500], components=k, rng=rng) for k in (1, 2)]
    held = x[1500:2400]
    found = combined_test(held, candidates, 1, n_fit=1500, rng=rng)
    assert found.p_value < 1e-6
    assert distance_test(held, candidates[0], n_fit=1500).p_value > 1e-3
    assert "more components" in found.test
    assert found.distance_p_value == distance_test(held, candidates[0], n_fit=1500).p_value
    assert found.p_value == 2 * found.likelihood_p_value  # the smaller of the two
    assert not combined_test(held, candidates, 2, n_fit=1500, rng=rng).rejected


def test_point_masses_speak_neither_way(rng):
    """Equal records give no evidence against a point mass, and a point mass no evidence against a spread."""
    point = MixtureOfGaussians((1.0,), (2.0,), (0.0,))
    assert log_evidence(np.full(9, 2.0), [point, ONE], 1, rng=rng) == -math.inf
    assert log_evidence(rng.normal(size=9), [ONE, point], 1, rng=rng) == -math.inf
