"""True positive rates at a false positive rate: the papers' numbers, other routes to them, and simulated attackers."""

import math

import numpy as np
import pytest
from scipy.special import erfinv, ndtr
from theory.references import stated

from auditor.core import DPSGD, Adjacency, FixedSizeSampling
from auditor.theory import (
    bayes_security_closed_form,
    bayes_security_moment_matched,
    gaussian_tpr,
    total_variation_a,
    tpr_exact,
    tpr_from_advantage,
    tpr_from_epsilon,
    tpr_metric,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def by_gaussians(claim, fpr):
    """The true positive rate of the two Gaussians that a closed form takes a run for."""
    return gaussian_tpr(fpr, 2 * math.sqrt(2) * erfinv(1 - claim.value))


FIGURE_7 = DPSGD(2.0, 1e-4, 500_000)
RATES = [1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9, 1.0]


@pytest.mark.parametrize(
    ("fpr", "bayes", "gaussian"), [(0.1, 0.128204, 0.112978), (0.01, 0.038204, 0.012047)]
)
def test_figure_7(fpr, bayes, gaussian):
    """Cherubin et al. 2024, Figure 7: .128 and .113 at 10%, .038 and .012 at 1% (digits: statistics.md, section 7)."""
    by_security = tpr_from_advantage(bayes_security_closed_form(FIGURE_7), fpr=fpr)
    assert by_security.value == pytest.approx(bayes, abs=5e-7)
    assert by_gaussians(bayes_security_closed_form(FIGURE_7), fpr) == pytest.approx(gaussian, abs=5e-7)


@pytest.mark.parametrize("fpr", RATES)
@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.0), (1.0, 1e-5), (5.0, 0.1), (800.0, 0.0)])
def test_epsilon_gives_its_two_lines(fpr, eps, delta):
    """(epsilon, delta) allows the lower of its two lines, also where e^epsilon overflows."""
    lines = (1.0, math.exp(min(eps, 700)) * fpr + delta, 1 - math.exp(-eps) * (1 - delta - fpr))
    found = tpr_from_epsilon(stated("epsilon", eps, delta), fpr=fpr).value
    assert found == pytest.approx(max(fpr, min(lines)), abs=1e-12)


def test_no_epsilon_allows_everything():
    """An infinite epsilon allows a true positive rate of 1; a claim without a value gives none, with its reason."""
    assert tpr_from_epsilon(stated("epsilon", math.inf, 0.0), fpr=1e-9).value == 1.0
    for derive, metric in (
        (tpr_from_epsilon, "epsilon"),
        (tpr_from_advantage, "advantage"),
    ):
        claim = derive(stated(metric, None, 1e-5), fpr=0.1)
        assert (claim.value, claim.note) == (None, "By hand.")


@pytest.mark.parametrize("fpr", [1e-3, 0.01, 0.3])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_exact_for_one_step_is_the_threshold_test(fpr, adjacency):
    """For one sampled step the best test is a threshold on the output, whose rates are normal tails."""
    noise, rate = 0.8, 0.3
    out = -1.0 if adjacency is REPLACE_ONE else None

    def tail(x, mean):
        drawn = 0.0 if mean is None else rate * ndtr((mean - x) / noise)
        return (1 - rate if mean is not None else 1.0) * ndtr(-x / noise) + drawn

    low, high = -20.0, 20.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, out) > fpr else (low, middle)
    found = tpr_exact(DPSGD(noise, rate, 1), fpr=fpr, adjacency=adjacency).value
    assert found == pytest.approx(tail(low, 1.0), rel=1e-3)
    assert found >= tail(low, 1.0) - 1e-9


def test_exact_beyond_its_range_is_still_a_bound():
    """Where the law cannot be resolved, the rate follows from a bound on the total variation and says so."""
    claim = tpr_exact(DPSGD(0.01, 0.001, 100), fpr=0.1)
    assert claim.value == pytest.approx(0.1 + 1 - 0.999**100, abs=1e-9)
    assert "advantage" in claim.method
    missing = tpr_exact(DPSGD(1.0, 0.01, 10, sampling=FixedSizeSampling()), fpr=0.1, adjacency=ADD_REMOVE)
    assert missing.value is None
    assert "fixed size" in missing.note


@pytest.mark.parametrize("fpr", [0.001, 0.03, 0.4])
def test_corollary_11_is_tight_for_one_a(fpr):
    """Over all a the TV_a bound is never below the exact rate, and comes down to it (Mahloujifar et al., Corollary 11)."""
    training = DPSGD(0.9, 0.1, 50)
    exact = tpr_exact(training, fpr=fpr, adjacency=ADD_REMOVE).value
    bounds = [
        (2 * fpr + 2 * total_variation_a(training, a=a) + a - 1) / (2 * a)
        for a in np.geomspace(0.01, 4, 120).tolist()
    ]
    assert min(bounds) >= exact - 1e-7
    assert min(bounds) == pytest.approx(exact, rel=2e-3)


def test_closed_forms_are_too_low_in_the_tail():
    """The Gaussians of both forms are on the unsafe side at tiny false positive rates."""
    training = DPSGD(0.7, 0.01, 500)
    exact = tpr_exact(training, fpr=1e-6).value
    for form in (bayes_security_closed_form, bayes_security_moment_matched):
        assert by_gaussians(form(training), 1e-6) < 0.8 * exact


def test_standing_is_inherited():
    """A rate from an unproven number is unproven and passes its caveat on; the metric names the rate."""
    claim = tpr_from_advantage(bayes_security_closed_form(DPSGD(1.0, 0.01, 10)), fpr=0.001)
    assert (claim.metric, claim.adjacency, claim.proven) == ("tpr_at_fpr.0.001", REPLACE_ONE, False)
    assert "unsafe side" in claim.note
    assert tpr_metric(0.1) == "tpr_at_fpr.0.1"
