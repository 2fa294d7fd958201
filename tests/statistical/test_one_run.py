"""One-run audits hold their level and cover what is known: every test, on pairs, strata and coins."""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import ALPHA, at_most, runs_for

from auditor.core import FDP, AnyGuesses, BernoulliSplit, Losses, PerGroup, RandomSplit, Steinke
from auditor.curves import TradeoffCurve
from auditor.estimators import (
    epsilon_bound,
    model_gdp,
    of_curve,
    of_gdp,
    one_run_bound,
    one_run_gdp,
    rejects,
    steinke_bound,
)
from auditor.theory import gaussian_epsilon

TESTS = [Steinke(), FDP(), AnyGuesses()]


def bound(losses, split, test, delta, rng):
    """The bound; 0 where coins that came out one in a thousand are refused."""
    return one_run_bound(losses, split=split, delta=delta, rng=rng, test=test).value or 0.0


# --- No leak -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", [FDP(), AnyGuesses()])
@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.5)])
@pytest.mark.parametrize("tied", [False, True])
def test_no_false_alarms_on_noise(request, test, split, tied):
    """A mechanism that ignores its data is refuted at no epsilon in at least 95% of the runs, ties or not."""
    rng, runs, alarms = np.random.default_rng(31), runs_for(request, 100, 5000), 0
    for _ in range(runs):
        draw = rng.integers(0, 5, 400) + 0.0 if tied else rng.normal(size=400)
        size = int(rng.binomial(400, 0.5)) if isinstance(split, BernoulliSplit) else 200
        alarms += bound(Losses(member=draw[:size], nonmember=draw[size:]), split, test, 1e-4, rng) > 0
    assert at_most(alarms, runs)


def test_the_simulation_can_fail(request):
    """The best of all numbers of guesses, each judged at the full level, is caught by the same test."""
    rng, runs, alarms = np.random.default_rng(32), runs_for(request, 150, 1000), 0
    for _ in range(runs):
        v = np.cumsum(rng.random(200) < 0.5)
        r = np.arange(1, 201)
        alarms += bool(np.any(stats.binom.sf(v - 1, r, 0.5) <= ALPHA))
    assert not at_most(alarms, runs)


# --- A known pure epsilon ---------------------------------------------------------------------------------


def laplace(rng, sizes, epsilon):
    """Each record's score is Laplace, shifted for members by ``epsilon``: replacing one record changes two of them."""
    return Losses(member=rng.laplace(-epsilon, 1, sizes[0]), nonmember=rng.laplace(0, 1, sizes[1]))


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(("sizes", "epsilon"), [((200, 200), 0.5), ((60, 500), 1.5)])
def test_pairs_of_laplace_scores_are_covered(request, test, sizes, epsilon):
    """Laplace scores of epsilon each are 2 epsilon for a pair, where confidence tells something; no bound exceeds it."""
    rng, runs, over = np.random.default_rng(33), runs_for(request, 60, 4000), 0
    for _ in range(runs):
        over += bound(laplace(rng, sizes, epsilon), RandomSplit(), test, 0.0, rng) > 2 * epsilon
    assert at_most(over, runs)


@pytest.mark.parametrize("test", [FDP(), AnyGuesses()])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_orientations_by_randomised_response_are_covered(request, test, epsilon):
    """Which of a pair is the member, told truly with e^eps/(1 + e^eps): the sharpest pure mechanism, end to end."""
    rng, runs, over, n = np.random.default_rng(34), runs_for(request, 80, 4000), 0, 200
    # One record of each of n strata is drawn, and the stratum tells the truth or lies.
    strata = PerGroup(np.arange(n), np.arange(n))
    for _ in range(runs):
        truthful = rng.random(n) < 1 / (1 + math.exp(-epsilon))
        level = rng.permutation(n) * 10.0
        losses = Losses(
            member=np.where(truthful, level, level + 1),
            nonmember=np.where(truthful, level + 1, level),
            group=strata,
        )
        over += bound(losses, RandomSplit(stratified=True), test, 0.0, rng) > epsilon
    assert at_most(over, runs)


@pytest.mark.parametrize(("inclusion", "epsilon"), [(0.8, 0.0), (0.8, 1.0), (0.3, 1.0), (0.5, 2.0)])
def test_any_number_of_guesses_covers_inclusion_coins(request, inclusion, epsilon):
    """Laplace scores on biased inclusion coins are epsilon-DP for add/remove, and the e-process stays below it."""
    rng, runs, over = np.random.default_rng(35), runs_for(request, 80, 4000), 0
    for _ in range(runs):
        coin = rng.random(400) < inclusion
        loss = rng.laplace(0, 1, 400) - epsilon * coin
        losses = Losses(member=loss[coin], nonmember=loss[~coin])
        over += bound(losses, BernoulliSplit(inclusion), AnyGuesses(), 1e-3, rng) > epsilon
    assert at_most(over, runs)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.02), (1.0, 0.02), (1.0, 1e-3)])
@pytest.mark.parametrize("together", [False, True])
def test_f_dp_covers_what_delta_hides(request, epsilon, delta, together):
    """Orientations revealed with probability delta, each by itself or all together, stay within (epsilon, delta)."""
    rng, runs, over, m = np.random.default_rng(36), runs_for(request, 150, 5000), 0, 300
    for _ in range(runs):
        revealed = rng.random() < delta if together else rng.random(m) < delta
        right = revealed | (rng.random(m) < 1 / (1 + math.exp(-epsilon)))
        v = int(right.sum())
        over += epsilon_bound(bits=m, guesses=m, correct=v, delta=delta, alpha=ALPHA) > epsilon
    assert at_most(over, runs)


# --- A Gaussian mechanism -----------------------------------------------------------------------------


def gaussian(rng, size, mu):
    """One unit normal score for each record, members shifted so that a pair is told apart as at distance mu."""
    return Losses(member=rng.normal(-mu / math.sqrt(2), 1, size), nonmember=rng.normal(0, 1, size))


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_gaussian_pairs_are_covered(request, mu):
    """On pairs at distance mu the f-DP mu, its epsilon and the (epsilon, delta) bound stay below the truth."""
    rng, runs, delta = np.random.default_rng(37), runs_for(request, 60, 3000), 1e-3
    truth, over, points = gaussian_epsilon(mu, delta=delta), 0, 0
    for _ in range(runs):
        losses = gaussian(rng, 300, mu)
        over += one_run_gdp(losses, split=RandomSplit(), delta=delta, rng=rng).details["mu"] > mu
        points += bound(losses, RandomSplit(), FDP(), delta, rng) > truth
    assert at_most(over, runs)
    assert at_most(points, runs)


def test_fair_coins_are_covered_at_their_delta(request):
    """Gaussian scores on fair inclusion coins, members shifted by mu: the add/remove bound stays below the truth."""
    rng, runs, delta, mu, over = np.random.default_rng(38), runs_for(request, 80, 3000), 1e-2, 1.0, 0
    truth = gaussian_epsilon(mu, delta=delta)
    for _ in range(runs):
        coin = rng.random(400) < 0.5
        loss = rng.normal(size=400) - mu * coin
        losses = Losses(member=loss[coin], nonmember=loss[~coin])
        over += bound(losses, BernoulliSplit(0.5), FDP(), delta, rng) > truth
    assert at_most(over, runs)


def test_the_true_curve_is_rarely_rejected(request):
    """The mechanism's own curve, and the point bound with it, are wrong together in at most 5% of the runs."""
    rng, runs, delta, mu, wrong = np.random.default_rng(39), runs_for(request, 60, 3000), 1e-3, 1.5, 0
    deltas = np.geomspace(1e-10, 0.9, 80)
    curve = TradeoffCurve.from_profile([gaussian_epsilon(mu, delta=d) for d in deltas], deltas=deltas)
    truth = gaussian_epsilon(mu, delta=delta)
    for _ in range(runs):
        found = one_run_bound(
            gaussian(rng, 300, mu), split=RandomSplit(), delta=delta, rng=rng, test=FDP(), curve=curve
        )
        wrong += found.details["claimed_curve"]["rejected"] or found.value > truth
    assert at_most(wrong, runs)


def test_a_curve_below_the_truth_is_rejected(request):
    """The claimed curve has power: at true distance 3 a claim of mu 0.6 is rejected almost always."""
    rng, runs, caught = np.random.default_rng(40), runs_for(request, 40, 400), 0
    for _ in range(runs):
        right = gaussian(rng, 500, 3.0)
        v = int(np.sum(right.member < right.nonmember))
        caught += rejects(of_gdp(0.6), bits=500, guesses=500, correct=v, alpha=ALPHA)
    assert caught > 0.95 * runs
    assert not rejects(
        of_curve(TradeoffCurve(fpr=[0, 0, 1], tpr=[0, 1, 1])), bits=9, guesses=9, correct=9, alpha=ALPHA
    )


# --- Strata -------------------------------------------------------------------------------------------


def uneven_strata(rng):
    """No leak: the score knows the stratum only. Of each stratum a fixed number was drawn, at unequal rates."""
    counts = {0: (150, 50), 1: (50, 150)}
    columns = [np.repeat([0, 1], [counts[0][side], counts[1][side]]) for side in (0, 1)]
    member, nonmember = (column + rng.random(column.size) for column in columns)
    return Losses(member=member, nonmember=nonmember, group=PerGroup(*columns))


@pytest.mark.parametrize("test", TESTS)
def test_pairs_within_strata_raise_no_alarms(request, test):
    """With strata drawn at unequal rates and no leak, pairing within strata holds the level."""
    rng, runs, alarms = np.random.default_rng(41), runs_for(request, 60, 3000), 0
    for _ in range(runs):
        alarms += bound(uneven_strata(rng), RandomSplit(stratified=True), test, 0.0, rng) > 0
    assert at_most(alarms, runs)


def test_pairs_across_such_strata_invent_a_leak():
    """The same split declared as unstratified raises an alarm every time: the declaration is not a formality."""
    rng = np.random.default_rng(42)
    assert all(bound(uneven_strata(rng), RandomSplit(), Steinke(), 0.0, rng) > 0.3 for _ in range(20))


@pytest.mark.parametrize("test", [FDP(), AnyGuesses()])
def test_pairs_within_strata_cover_a_leak(request, test):
    """Laplace scores of epsilon each, on top of strata that differ, stay covered at 2 epsilon."""
    rng, runs, over, epsilon = np.random.default_rng(43), runs_for(request, 60, 3000), 0, 0.5
    for _ in range(runs):
        base = uneven_strata(rng)
        noise = laplace(rng, (200, 200), epsilon)
        losses = Losses(
            member=3 * np.floor(base.member) + noise.member,
            nonmember=3 * np.floor(base.nonmember) + noise.nonmember,
            group=base.group,
        )
        over += bound(losses, RandomSplit(stratified=True), test, 0.0, rng) > 2 * epsilon
    assert at_most(over, runs)


# --- Conditional on a Gaussian curve ------------------------------------------------------------------


def test_the_gaussian_conversion_covers_gaussian_scores(request):
    """On normal scores of distance mu, mu_L stays below mu and the epsilon below its own."""
    rng, runs, over = np.random.default_rng(44), runs_for(request, 60, 3000), 0
    for _ in range(runs):
        losses = Losses(member=rng.normal(-1, 1, 2000), nonmember=rng.normal(0, 1, 2000))
        found = model_gdp(losses, delta=1e-5)
        over += found.details["mu"] > 1 or found.value > gaussian_epsilon(1.0, delta=1e-5)
    assert at_most(over, runs)


def test_the_gaussian_conversion_exceeds_the_truth_on_laplace_scores(request):
    """On Laplace scores of true epsilon 1 both conversions exceed 1 nearly always, which is why they are labelled."""
    rng, runs = np.random.default_rng(45), runs_for(request, 5, 300)
    model = mechanism = 0
    for _ in range(runs):
        model += model_gdp(laplace(rng, (5000, 5000), 1.0), delta=1e-5).value > 1
        pairs = laplace(rng, (20_000, 20_000), 0.5)
        mechanism += one_run_gdp(pairs, split=RandomSplit(), delta=1e-5, rng=rng).value > 1
    assert model > 0.9 * runs
    assert mechanism > 0.9 * runs


# --- Against each other ------------------------------------------------------------------------------


def test_where_each_test_is_strongest(request):
    """On Gaussian pairs f-DP is at least about as high as Steinke at delta 1e-3, and the e-process highest at delta 0."""
    rng, runs = np.random.default_rng(46), runs_for(request, 6, 100)
    totals = dict.fromkeys(("steinke", "f_dp", "steinke, pure", "any"), 0.0)
    for _ in range(runs):
        losses, seed = gaussian(rng, 1000, 2.0), int(rng.integers(2**32))
        for name, test, delta in (
            ("steinke", Steinke(), 1e-3),
            ("f_dp", FDP(), 1e-3),
            ("steinke, pure", Steinke(), 0.0),
            ("any", AnyGuesses(), 0.0),
        ):
            totals[name] += bound(losses, RandomSplit(), test, delta, np.random.default_rng(seed)) / runs
    assert totals["f_dp"] > totals["steinke"] + 0.05
    assert totals["any"] > totals["steinke, pure"]
    assert steinke_bound(bits=1000, guesses=50, correct=50, delta=0.0, alpha=ALPHA / 3) < totals["any"]
