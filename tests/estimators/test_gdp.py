"""Numbers that hold if the trade-off curve is Gaussian: formulas, labels and reasons."""

import copy
import math

import numpy as np
import pytest
from oracles import exact_binomial_upper, gaussian_mechanism_epsilon
from scipy import special

from auditor.core import BernoulliSplit, Census, Losses, RandomSplit, Subject
from auditor.estimators import draw_guesses, gdp_of_guesses, model_gdp, of_gdp, ranks, rejects

FAR = Losses(member=np.linspace(0, 1, 300), nonmember=np.linspace(2, 3, 300))


def one_run_gdp(split, losses, delta, rng):
    """The one-run number at 95%, from guesses about fair coins."""
    return gdp_of_guesses(draw_guesses(losses, split=split, rng=rng, thin=True), delta, 1 - 0.95)


def slow_mu(losses, alpha):
    """Both tails, rank by rank, with mpmath's limits: Phi^-1(1 - FPR_U) - Phi^-1(FNR_U)."""
    member, nonmember = np.sort(losses.member), np.sort(losses.nonmember)
    n1, n0 = member.size, nonmember.size
    level = alpha / (2 * (ranks(n0).size + ranks(n1).size))
    found = []
    for k in ranks(n0):
        misses = int(np.sum(member >= nonmember[k]))
        found.append((exact_binomial_upper(int(k), n0, level), exact_binomial_upper(misses, n1, level)))
    for k in ranks(n1):
        alarms = int(np.sum(nonmember <= member[n1 - 1 - k]))
        found.append((exact_binomial_upper(alarms, n0, level), exact_binomial_upper(int(k), n1, level)))
    return max(special.ndtri(1 - fpr) - special.ndtri(fnr) for fpr, fnr in found)


@pytest.mark.parametrize(("sizes", "shift"), [((30, 50), 1.0), ((60, 20), 3.0)])
def test_mu_is_the_best_over_ranks_and_tails(rng, sizes, shift):
    """mu_L equals a slow scan of every rank with exact limits, and epsilon is that of the Gaussian mechanism."""
    losses = Losses(member=rng.normal(-shift, 1, sizes[0]), nonmember=rng.normal(0, 1, sizes[1]))
    found = model_gdp(losses, delta=1e-3)
    expected = slow_mu(losses, 1 - 0.95)
    if expected > 0:
        assert found.details["mu"] == pytest.approx(expected, abs=1e-7)
        assert found.value == pytest.approx(gaussian_mechanism_epsilon(expected, 1e-3), abs=1e-6)
    else:
        assert found.details["mu"] == found.value == 0


@pytest.mark.parametrize(
    ("split", "name", "subject", "adjacency"),
    [
        (None, "epsilon_bound.gdp", Subject.MODEL, None),
        (RandomSplit(), "epsilon_bound.one_run_gdp", Subject.MECHANISM, "replace-one"),
        (BernoulliSplit(0.5), "epsilon_bound.one_run_gdp", Subject.MECHANISM, "add-remove"),
    ],
)
def test_the_label_comes_first(rng, split, name, subject, adjacency):
    """Each number says first that it is conditional, in words and in its details, and whom it is about."""
    found = one_run_gdp(split, FAR, 1e-5, rng) if split else model_gdp(FAR, delta=1e-5)
    assert (found.name, found.subject, found.adjacency) == (name, subject, adjacency)
    assert found.assumptions[0].startswith("conditional on a Gaussian trade-off curve")
    assert found.details["conditional"] is True
    assert found.value == found.lower == found.details["ceiling"] > 3
    assert found.upper is None


def test_one_run_mu_is_the_recursions(rng):
    """The one-run mu is the largest of the recursion over the fixed list of guesses, which share the error."""
    losses = Losses(member=rng.normal(-2, 1, 400), nonmember=rng.normal(0, 1, 400))
    same = copy.deepcopy(rng)
    found = one_run_gdp(RandomSplit(), losses, 1e-5, rng)
    guesses = draw_guesses(losses, split=RandomSplit(), rng=same)
    mu, share = found.details["mu"], (1 - 0.95) / len(guesses.sets)
    for near, refuted in ((mu - 1e-9, True), (mu + 1e-9, False)):
        counts = [{"guesses": item.guesses, "correct": item.correct} for item in guesses.sets]
        assert any(rejects(of_gdp(near), bits=400, **count, alpha=share) for count in counts) == refuted
    assert found.value == pytest.approx(gaussian_mechanism_epsilon(mu, 1e-5), abs=1e-6)


def test_delta_zero_has_no_value_and_says_why(rng):
    """At delta 0 a Gaussian curve has no finite epsilon: no value, the reason, and mu all the same."""
    for found in (model_gdp(FAR, delta=0.0), one_run_gdp(RandomSplit(), FAR, 0.0, rng)):
        assert found.value is found.lower is found.confidence is None
        assert "no finite epsilon at delta 0" in found.reason
        assert found.details["mu"] > 1


def test_extreme_losses_give_numbers(rng):
    """Constant, tied, huge and reversed losses give 0 or a finite number, for two records too."""
    for member, nonmember in (
        (np.ones(50), np.ones(80)),
        ([1.0, 1.0], [1.0, 1.0]),
        ([-1e308, 1e308], [1e308, -1e308]),
        (FAR.nonmember, FAR.member),
    ):
        losses = Losses(member=member, nonmember=nonmember)
        assert model_gdp(losses, delta=1e-5).value == 0
        assert one_run_gdp(RandomSplit(), losses, 1e-5, rng).value == 0
    huge = Losses(member=np.full(500, -1e308), nonmember=np.full(500, 1e308))
    assert math.isfinite(model_gdp(huge, delta=1e-300).value)


def test_a_census_is_a_draw_from_the_curve():
    """A finite training set has no Gaussian curve, so a census gets the same number and says what it counts as."""
    census = model_gdp(FAR, delta=1e-5, coverage=Census())
    assert census.value == model_gdp(FAR, delta=1e-5).value
    assert "as a draw from that curve" in census.assumptions[-1]
