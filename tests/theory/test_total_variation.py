"""Total variation as a claim: reference values, agreement of methods, limits, and what is said beside the number."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from theory.references import EXACT

from auditor.core import DPSGD, Adjacency, FixedSizeSampling
from auditor.theory import total_variation, total_variation_a

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize(("training", "adjacency", "exact"), EXACT)
def test_reference_values(training, adjacency, exact):
    """The exact values of statistics.md, section 7, to the digits given there."""
    claim = total_variation(training, adjacency=adjacency)
    precision = 5e-10 if training.steps == 1 else 5e-7 if training.steps == 100 else 5e-8
    assert claim.value == pytest.approx(exact, abs=precision)
    assert (claim.metric, claim.adjacency, claim.status) == ("advantage", adjacency, "proven")
    assert "exact" in claim.method


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_little_noise_gives_the_limit(adjacency):
    """With almost no noise the attacker knows exactly whether the record was ever drawn: 1 - (1 - p)^T."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for noise in (0.01, 1e-3, 1e-200):
            claim = total_variation(DPSGD(noise, 0.01, 50), adjacency=adjacency)
            assert claim.value == pytest.approx(1 - 0.99**50, rel=1e-12)
            assert claim.proven
            assert "upper bound" in claim.note
        assert total_variation(DPSGD(0.05, 1.0, 10**7), adjacency=adjacency).value == 1.0
        for noise in (1.0, 1e200):
            assert total_variation(DPSGD(noise, 1e-200, 5), adjacency=adjacency).value <= 5.1e-200
        nearly = total_variation(DPSGD(0.06, 0.01, 50), adjacency=adjacency).value
    assert nearly == pytest.approx(1 - 0.99**50, abs=2e-3)


def test_tv_a():
    """Errata, 003 Lemma 5: a = .4, r = 1.3, s = .7 gives .489795; a = 1 is the total variation; equal laws |1-a|/2."""
    assert total_variation_a(DPSGD(0.7 / 1.3, 1.0, 1), a=0.4) == pytest.approx(0.489795, abs=5e-7)
    training = DPSGD(1.0, 0.1, 30)
    one = total_variation_a(training, a=1.0)
    assert one == pytest.approx(total_variation(training, adjacency=ADD_REMOVE).value, abs=1e-9)
    for a in (0.2, 3.0):
        assert total_variation_a(DPSGD(1e6, 0.01, 1), a=a) == pytest.approx(abs(1 - a) / 2, abs=1e-6)


@pytest.mark.parametrize(("adjacency", "distance"), [(ADD_REMOVE, 1), (REPLACE_ONE, 2)])
def test_noise_that_leaves_only_a_shift(adjacency, distance):
    """At huge noise T steps are one Gaussian of shift p d sqrt(T) / s, also beyond where the transform is used."""
    for noise in (3e5, 2.5e7, 1e12):
        mu = 0.01 * distance * math.sqrt(1000) / noise
        claim = total_variation(DPSGD(noise, 0.01, 1000), adjacency=adjacency)
        assert claim.value == pytest.approx(math.erf(mu / math.sqrt(8)), rel=3e-5)
        assert claim.value >= math.erf(mu / math.sqrt(8))
        assert "exact" in claim.method


def test_what_is_only_a_bound_says_so():
    """Several batches of a fixed size, and tiny rates, have a dominating pair: their number is called an upper bound."""
    for training in (DPSGD(2.0, 0.1, 10, sampling=FixedSizeSampling()), DPSGD(1e3, 1e-14, 10)):
        claim = total_variation(training)
        assert "exact" not in claim.method
        assert "An upper bound" in claim.note
        assert "reaches it" not in claim.note
    assert "exact" in total_variation(DPSGD(2.0, 0.1, 1, sampling=FixedSizeSampling())).method


@pytest.mark.parametrize("a", [0.3, 1.7])
def test_tv_a_against_quadrature(a):
    """One sampled step: half the integral of |q - a p|, with p the law with the record."""
    x = np.linspace(-14.0, 15.0, 400_001)
    without = stats.norm.pdf(x)
    having = 0.7 * without + 0.3 * stats.norm.pdf(x, 1.0)
    expected = np.abs(without - a * having).sum() * (x[1] - x[0]) / 2
    assert total_variation_a(DPSGD(1.0, 0.3, 1), a=a) == pytest.approx(expected, abs=1e-7)
