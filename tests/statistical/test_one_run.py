"""One-run audits hold their level and cover what is known, where `test_levels` does not look: the tests that are requested."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from simulation import ALPHA, seldom

from auditor.core import FDP, AnyGuesses, BernoulliSplit, Losses, PerGroup, RandomSplit
from auditor.curves import TradeoffCurve
from auditor.estimators import (
    draw_guesses,
    gdp_of_guesses,
    model_gdp,
    of_curve,
    of_gdp,
    one_run_bound,
    rejects,
)
from auditor.estimators.one_run import bound_of
from auditor.theory import gaussian_epsilon

TESTS = [FDP(), AnyGuesses()]


def bound(losses, split, test, delta, rng):
    """The bound; 0 where coins that came out one in a thousand are refused."""
    return one_run_bound(losses, split=split, delta=delta, rng=rng, test=test).value or 0.0


def tossed(loss, coin):
    """The losses of records whose membership was decided by these coins."""
    return Losses(member=loss[coin], nonmember=loss[~coin])


# --- No leak -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.5)])
def test_no_false_alarms_on_tied_noise(simulated, test, split):
    """A mechanism that ignores its data is refuted at no epsilon in at least 95% of the runs, though losses tie."""

    def alarm(rng):
        draw = rng.integers(0, 5, 400) + 0.0
        size = int(rng.binomial(400, 0.5)) if isinstance(split, BernoulliSplit) else 200
        return bound(tossed(draw, np.arange(400) < size), split, test, 1e-4, rng) > 0

    assert seldom(simulated(alarm, seed=31, runs=(30, 5000)))


@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.5)])
@pytest.mark.parametrize("test", [FDP(), AnyGuesses()])
def test_sets_of_ten_guesses_or_more_are_covered(simulated, test, split):
    """As a result that may be shared has them: randomised responses of epsilon 1 have a bound above it in 5% at most."""
    delta, epsilon = (0.0 if test == AnyGuesses() else 1e-5), 1.0
    truth = 2 * epsilon if isinstance(split, RandomSplit) else epsilon

    def above(rng):
        coin = rng.permutation(np.arange(120) < 60) if truth > epsilon else rng.random(120) < 0.5
        shown = coin ^ (rng.random(120) < 1 / (1 + np.exp(epsilon)))
        guesses = replace(draw_guesses(tossed(1.0 - shown, coin), split=split, rng=rng), least=10)
        assert min(item.guesses for item in guesses.sets) >= 10
        found = bound_of(guesses, test=test, delta=delta, confidence=1 - ALPHA, curve=None, claimed=None)
        return (found.value or 0.0) > truth

    assert seldom(simulated(above, seed=37, runs=(60, 3000)))


# --- A known pure epsilon ---------------------------------------------------------------------------------


def laplace(rng, sizes, epsilon):
    """Each record's score is Laplace, shifted for members by ``epsilon``: replacing one record changes two of them."""
    return Losses(member=rng.laplace(-epsilon, 1, sizes[0]), nonmember=rng.laplace(0, 1, sizes[1]))


@pytest.mark.parametrize("test", TESTS)
def test_pairs_of_laplace_scores_are_covered(simulated, test):
    """Laplace scores of epsilon each are 2 epsilon for a pair, where confidence tells something; no bound exceeds it."""
    sizes, epsilon = (60, 500), 1.5

    def over(rng):
        return bound(laplace(rng, sizes, epsilon), RandomSplit(), test, 0.0, rng) > 2 * epsilon

    assert seldom(simulated(over, seed=33, runs=(25, 4000)))


@pytest.mark.parametrize("sizes", [(300, 300), (400, 40), (30, 300)])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_a_leak_in_unequal_groups_is_covered(simulated, sizes, delta):
    """After random pairing, records that leak by randomised response of epsilon, and all with delta, are covered."""
    # Replacing one record changes two bits, so 2 epsilon.
    epsilon = 0.8
    q = 1 / (1 + math.exp(-epsilon))

    def over(rng):
        said = (rng.random(400) > q) + rng.random(400) / 2, (rng.random(400) < q) + rng.random(400) / 2
        revealed = rng.random(400) < delta / 2
        sides = (np.where(revealed, end, loss) for end, loss in zip((-1.0, 2.5), said, strict=True))
        losses = Losses(*(side[:size] for side, size in zip(sides, sizes, strict=True)))
        return bound(losses, RandomSplit(), FDP(), delta, rng) > 2 * epsilon

    assert seldom(simulated(over, seed=18, runs=(100, 3000)))


@pytest.mark.parametrize("by", ["randomised response", "laplace"])
@pytest.mark.parametrize(
    ("test", "inclusion", "epsilon"),
    [(FDP(), 0.5, 2.0), (AnyGuesses(), 0.8, 0.0), (AnyGuesses(), 0.3, 1.0)],
)
def test_inclusion_coins_are_covered(simulated, test, by, inclusion, epsilon):
    """Randomised response and Laplace scores on biased inclusion coins are epsilon-DP for add/remove, and covered."""

    def over(rng):
        coin = rng.random(400) < inclusion
        says_out = coin == (rng.random(400) > 1 / (1 + math.exp(-epsilon)))
        loss = rng.laplace(0, 1, 400) - epsilon * coin if by == "laplace" else rng.random(400) + says_out
        return bound(tossed(loss, coin), BernoulliSplit(inclusion), test, 0.0, rng) > epsilon

    assert seldom(simulated(over, seed=35, runs=(30, 4000)))


def own_odds(rng, size, epsilon, spread=1.5):
    """Records whose score leans on a feature that their odds depend on too, and tells membership by randomised response."""
    feature = rng.normal(0, 1, size)
    chance = special.expit(spread * feature)
    coin = rng.random(size) < chance
    says_out = coin == (rng.random(size) > special.expit(epsilon))
    return says_out - 0.3 * feature + 0.1 * rng.random(size), coin, chance


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_coins_of_their_own_odds_are_covered(simulated, epsilon, delta):
    """Odds between about 1% and 99% that go with the scores: at delta 0 all coins are guessed, else a thinned part."""

    def over(rng):
        loss, coin, chance = own_odds(rng, 400, epsilon)
        split = BernoulliSplit((chance[coin], chance[~coin]))
        return bound(tossed(loss, coin), split, None, delta, rng) > epsilon

    assert seldom(simulated(over, seed=47, runs=(60, 4000)))


# --- A Gaussian mechanism -----------------------------------------------------------------------------


def gaussian(rng, size, mu):
    """One unit normal score for each record, members shifted so that a pair is distinguished as at distance mu."""
    return Losses(member=rng.normal(-mu / math.sqrt(2), 1, size), nonmember=rng.normal(0, 1, size))


def test_gaussian_pairs_are_covered(simulated):
    """On pairs at distance mu the f-DP mu, its epsilon and the (epsilon, delta) bound stay below the truth."""
    delta, mu = 1e-3, 2.5

    def over(rng):
        losses = gaussian(rng, 300, mu)
        guesses = draw_guesses(losses, split=RandomSplit(), rng=rng)
        found = gdp_of_guesses(guesses, delta, ALPHA).details["mu"]
        return found > mu, bound(losses, RandomSplit(), FDP(), delta, rng) > gaussian_epsilon(mu, delta=delta)

    assert seldom(simulated(over, seed=37, runs=(60, 3000)))


def test_the_true_curve_is_rarely_rejected(simulated):
    """The mechanism's own curve, and the point bound with it, are wrong together in at most 5% of the runs."""
    delta, mu = 1e-3, 1.5
    deltas = np.geomspace(1e-10, 0.9, 80)
    curve = TradeoffCurve.from_profile([gaussian_epsilon(mu, delta=d) for d in deltas], deltas=deltas)

    def wrong(rng):
        losses = gaussian(rng, 300, mu)
        found = one_run_bound(losses, split=RandomSplit(), delta=delta, rng=rng, test=FDP(), curve=curve)
        return found.details["claimed_curve"]["rejected"] or found.value > gaussian_epsilon(mu, delta=delta)

    assert seldom(simulated(wrong, seed=39, runs=(60, 3000)))


def test_a_curve_below_the_truth_is_rejected(simulated):
    """The claimed curve has power: at true distance 3 a claim of mu 0.6 is rejected almost always."""

    def caught(rng):
        right = gaussian(rng, 500, 3.0)
        v = int(np.sum(right.member < right.nonmember))
        return rejects(of_gdp(0.6), bits=500, guesses=500, correct=v, alpha=ALPHA)

    assert simulated(caught, seed=40, runs=(40, 400)).mean() > 0.95
    assert not rejects(
        of_curve(TradeoffCurve(fpr=[0, 0, 1], tpr=[0, 1, 1])), bits=9, guesses=9, correct=9, alpha=ALPHA
    )


# --- Strata -------------------------------------------------------------------------------------------


def uneven_strata(rng):
    """No leak: the score knows the stratum only. Of each stratum a fixed number was drawn, at unequal rates."""
    columns = np.repeat([0, 1], [150, 50]), np.repeat([0, 1], [50, 150])
    member, nonmember = (column + rng.random(column.size) for column in columns)
    return Losses(member=member, nonmember=nonmember, group=PerGroup(*columns))


@pytest.mark.parametrize("test", TESTS)
def test_pairs_within_strata_raise_no_alarms(simulated, test):
    """With strata drawn at unequal rates and no leak, pairing within strata holds the level."""

    def alarm(rng):
        return bound(uneven_strata(rng), RandomSplit(stratified=True), test, 0.0, rng) > 0

    assert seldom(simulated(alarm, seed=41, runs=(30, 3000)))


# --- Conditional on a Gaussian curve ------------------------------------------------------------------


def test_the_gaussian_conversion_covers_gaussian_scores(simulated):
    """On normal scores of distance mu, mu_L stays below mu and the epsilon below its own."""

    def over(rng):
        losses = Losses(member=rng.normal(-1, 1, 2000), nonmember=rng.normal(0, 1, 2000))
        found = model_gdp(losses, delta=1e-5)
        return found.details["mu"] > 1 or found.value > gaussian_epsilon(1.0, delta=1e-5)

    assert seldom(simulated(over, seed=44, runs=(60, 3000)))
