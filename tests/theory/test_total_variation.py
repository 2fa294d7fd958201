"""Total variation as a claim: reference values, agreement of methods, limits, and what is said beside the number."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.theory import composed, total_variation, total_variation_a, total_variation_by_accountant

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "adjacency", "expected", "precision"),
    [
        (0.1, 1.0, 1, ADD_REMOVE, 0.038292492, 5e-10),
        (0.01, 0.5, 1, ADD_REMOVE, 0.006826895, 5e-10),
        (0.1, 1.0, 100, ADD_REMOVE, 0.438758, 5e-7),
        (0.001, 1.0, 10_000, ADD_REMOVE, 0.0521390, 5e-8),
        (0.01, 1.0, 1000, ADD_REMOVE, 0.1610176, 5e-8),
        (0.001, 1.0, 10_000, REPLACE_ONE, 0.0861804, 5e-8),
        (0.01, 1.0, 1000, REPLACE_ONE, 0.2643522, 5e-8),
        (0.001, 1.0, 50_000, REPLACE_ONE, 0.1912326, 5e-8),
    ],
)
def test_reference_values(rate, noise, steps, adjacency, expected, precision):
    """The exact values of statistics.md, section 7, to the digits given there."""
    claim = total_variation(DPSGD(noise, rate, steps), adjacency=adjacency)
    assert claim.value == pytest.approx(expected, abs=precision)
    assert (claim.metric, claim.adjacency, claim.status) == ("advantage", adjacency, "proven")
    assert "exact" in claim.method


def test_the_adjacencies_are_apart():
    """Errata, 003 Theorem 6 against Appendix H: p = .01, s = 1, T = 1000 gives .1610 added, .2644 replaced."""
    training = DPSGD(1.0, 0.01, 1000)
    assert round(total_variation(training, adjacency="add-remove").value, 4) == 0.1610
    assert round(total_variation(training).value, 4) == 0.2644


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_exact_is_below_the_accountant(adjacency):
    """Over a grid of settings the accountant's value is never lower, and close; vectors and fixed batches included."""
    settings = [DPSGD(s, p, n) for s, p, n in itertools.product((0.7, 1.5), (0.01, 0.2), (2, 60))]
    settings.append(DPSGD([0.8, 1.2, 2.0, 1.2], [0.1, 0.02, 0.5, 0.02]))
    if adjacency is REPLACE_ONE:
        settings.append(DPSGD(2.0, 0.05, 50, sampling=FixedSizeSampling()))
    for training in settings:
        exact = total_variation(training, adjacency=adjacency)
        bound = total_variation_by_accountant(training, adjacency=adjacency)
        if bound.value is None:
            assert "dp-accounting" in bound.note
            continue
        assert -1e-9 - composed(training, adjacency=adjacency).error <= bound.value - exact.value < 2e-3, (
            training
        )


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


def test_fixed_batches_for_added_records_have_no_number():
    """The claim is there, null, with the reason."""
    training = DPSGD(1.0, 0.1, 10, sampling=FixedSizeSampling())
    for claim in (
        total_variation(training, adjacency=ADD_REMOVE),
        total_variation_by_accountant(training, adjacency=ADD_REMOVE),
    ):
        assert claim.value is None
        assert "replaced records only" in claim.note


def test_tv_a():
    """Errata, 003 Lemma 5: a = .4, r = 1.3, s = .7 gives .489795; a = 1 is the total variation; equal laws |1-a|/2."""
    assert total_variation_a(DPSGD(0.7 / 1.3, 1.0, 1), a=0.4) == pytest.approx(0.489795, abs=5e-7)
    training = DPSGD(1.0, 0.1, 30)
    one = total_variation_a(training, a=1.0)
    assert one == pytest.approx(total_variation(training, adjacency=ADD_REMOVE).value, abs=1e-9)
    for a in (0.2, 3.0):
        assert total_variation_a(DPSGD(1e6, 0.01, 1), a=a) == pytest.approx(abs(1 - a) / 2, abs=1e-6)


@pytest.mark.parametrize("a", [0.3, 1.7])
def test_tv_a_against_quadrature(a):
    """One sampled step: half the integral of |q - a p|, with p the law with the record."""
    x = np.linspace(-14.0, 15.0, 400_001)
    without = stats.norm.pdf(x)
    having = 0.7 * without + 0.3 * stats.norm.pdf(x, 1.0)
    expected = np.abs(without - a * having).sum() * (x[1] - x[0]) / 2
    assert total_variation_a(DPSGD(1.0, 0.3, 1), a=a) == pytest.approx(expected, abs=1e-7)


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


def test_monotone_beyond_the_exact_range():
    """Where bounds stand in for the exact law, less noise is still never better."""
    found = [total_variation(DPSGD(s, 0.01, 10)).value for s in (1e-3, 0.049, 0.051, 0.2, 0.5, 1.0)]
    assert np.all(np.diff(found) <= 2e-3)
    assert math.isclose(found[0], 1 - 0.99**10)


def test_bad_input():
    """An unknown adjacency and an a of 0 are refused in one sentence."""
    with pytest.raises(InputError, match="did you mean 'replace-one'"):
        total_variation(DPSGD(1.0, 0.1, 10), adjacency="replace-on")
    with pytest.raises(InputError, match="a must be above 0"):
        total_variation_a(DPSGD(1.0, 0.1, 10), a=0.0)
