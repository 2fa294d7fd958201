"""One-run audits: Steinke's test and its biased form against published values, an oracle and hand counts."""

import re
from functools import partial

import numpy as np
import pytest
from oracles import steinke_p_value as slow_p_value
from scipy import stats

from auditor.core import (
    FDP,
    AnyGuesses,
    BernoulliSplit,
    Losses,
    PerGroup,
    RandomSplit,
    Steinke,
    Subject,
    UnknownSplit,
)
from auditor.curves import TradeoffCurve
from auditor.estimators import (
    any_guesses_bound,
    biased_bound,
    biased_p_value,
    epsilon_bound,
    one_run_bound,
    one_run_gdp,
    steinke_bound,
    steinke_p_value,
)
from auditor.theory import gaussian_epsilon


@pytest.mark.parametrize(
    ("r", "v", "expected"),
    [(600, 600, 5.270399), (1000, 600, 0.297227), (1000, 700, 0.731740), (100, 95, 2.165176)],
)
def test_steinke_references(r, v, expected):
    """eps_L of 1,000 bits at delta 1e-5, alpha .05 as in the design's reference values."""
    found = steinke_bound(bits=1000, guesses=r, correct=v, delta=1e-5, alpha=0.05)
    assert found == pytest.approx(expected, abs=1e-6)


def test_steinke_p_value_references():
    """p(1000,600,600, eps 4, delta 1e-5) = .0012625634 and p(10,10,9, eps 0, delta 0) = 11/1024."""
    found = steinke_p_value(bits=1000, guesses=600, correct=600, epsilon=4.0, delta=1e-5)
    assert found == pytest.approx(0.0012625634, abs=5e-11)
    assert steinke_p_value(bits=10, guesses=10, correct=9, epsilon=0.0, delta=0.0) == pytest.approx(11 / 1024)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 7.0])
@pytest.mark.parametrize(
    ("m", "r", "v"),
    [(50, 50, 50), (80, 40, 33), (300, 200, 90), (20, 5, 0), (900, 900, 700), (2000, 900, 700), (9, 9, 1)],
)
def test_steinke_against_every_term(m, r, v, epsilon):
    """The p-value equals Theorem 5.2 with every term of the maximum written out."""
    found = steinke_p_value(bits=m, guesses=r, correct=v, epsilon=epsilon, delta=1e-3)
    assert found == pytest.approx(slow_p_value(m, r, v, epsilon, 1e-3), rel=1e-8)


@pytest.mark.parametrize(
    ("guesses", "correct", "inclusion", "expected", "within"),
    [
        (200, 190, 0.8, 1.011577, 1e-6),
        (100, 90, 0.5, 1.630823, 1e-6),
        # What no leakage gives: fair coins for a biased split would invent a leak.
        (200, 160, 0.8, 0.0, 0.0),
        (200, 160, 0.5, 1.09, 5e-3),
    ],
)
def test_biased_references(guesses, correct, inclusion, expected, within):
    """eps_L of guesses that a record was included, by its coin (design)."""
    found = biased_bound(guesses=(guesses, 0), correct=correct, inclusion=inclusion, alpha=0.05)
    assert found == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("guesses", [(7, 0), (0, 9), (6, 8)])
def test_biased_p_value_against_all_outcomes(guesses):
    """The p-value equals the tail of a sum over both kinds of guesses, convolved term by term."""
    epsilon, inclusion = 0.7, 0.3
    prior = np.log(inclusion / (1 - inclusion))
    masses = [
        stats.binom.pmf(np.arange(n + 1), n, 1 / (1 + np.exp(-epsilon - sign * prior)))
        for n, sign in zip(guesses, (1, -1), strict=True)
    ]
    tail = np.convolve(*masses)[::-1].cumsum()[::-1]
    for correct in range(sum(guesses) + 1):
        found = biased_p_value(guesses=guesses, correct=correct, inclusion=inclusion, epsilon=epsilon)
        assert found == pytest.approx(tail[correct], rel=1e-10)


# --- Which test judges the guesses ------------------------------------------------------------------------

TESTS = [Steinke(), FDP(), AnyGuesses()]
FAR_SIDES = np.linspace(0, 1, 300), np.linspace(2, 3, 300)
FAR = Losses(*FAR_SIDES)


CONSTANT = Losses(member=np.ones(300), nonmember=np.ones(300))
REVERSE = Losses(member=FAR.nonmember, nonmember=FAR.member)
APART = Losses(*FAR_SIDES, group=PerGroup(np.zeros(300, int), np.ones(300, int)))


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    ("split", "adjacency"), [(RandomSplit(), "replace-one"), (BernoulliSplit(0.5), "add-remove")]
)
def test_every_test_has_a_ceiling_that_a_perfect_attack_reaches(rng, test, split, adjacency):
    """A perfect attack reaches the ceiling of each test; the reverse gives 0, no bound for it, and so do constant losses."""
    found = one_run_bound(FAR, split=split, delta=1e-5, rng=rng, test=test)
    assert found.value == found.lower == found.details["ceiling"] > 3
    assert (found.confidence, found.adjacency, found.subject) == (0.95, adjacency, Subject.MECHANISM)
    for losses in (REVERSE, CONSTANT):
        assert one_run_bound(losses, split=split, delta=1e-5, rng=rng, test=test).value == 0


@pytest.mark.parametrize(
    ("make", "split", "losses", "reason"),
    [
        (one_run_bound, UnknownSplit(), FAR, "split uniformly at random"),
        (one_run_gdp, UnknownSplit(), FAR, "not declared"),
        # A balanced sample of coins of .9 has other odds than declared.
        (one_run_bound, BernoulliSplit(0.9), FAR, "300 members among 600 .* coins of probability 0.9"),
        (partial(one_run_bound, test=FDP()), BernoulliSplit(0.52), FAR, "probability 0.5 only, not 0.52"),
        (one_run_gdp, BernoulliSplit(0.48), FAR, "probability 0.5 only, not 0.48"),
        (one_run_bound, RandomSplit(stratified=True), FAR, "no group labels"),
        (one_run_gdp, RandomSplit(stratified=True), FAR, "no group labels"),
        (one_run_bound, RandomSplit(stratified=True), APART, "no stratum has both"),
    ],
)
def test_a_split_that_supports_no_bound_has_none_and_says_why(rng, make, split, losses, reason):
    """Undeclared and contradicted splits, unfair coins where fair ones are needed, and missing strata give no value."""
    found = make(losses, split=split, delta=1e-5, rng=rng)
    assert found.value is None
    assert found.subject is Subject.MECHANISM
    assert re.search(reason, found.reason)


def outcomes(losses, split, seed, test, delta):
    """The estimate from the same pairs each time."""
    return one_run_bound(losses, split=split, delta=delta, rng=np.random.default_rng(seed), test=test)


def test_each_test_is_fed_the_same_guesses(rng):
    """The f-DP and Steinke rows hold the counts of the same pairs, and the value is the best row's own bound."""
    losses = Losses(member=rng.normal(-2, 1, 400), nonmember=rng.normal(0, 1, 400))
    steinke, f_dp = (outcomes(losses, RandomSplit(), 3, test, 1e-4) for test in (Steinke(), FDP()))
    counts = [
        [(row["guesses"], row["correct"]) for row in found.details["tried"]] for found in (steinke, f_dp)
    ]
    assert counts[0] == counts[1]
    assert [r for r, _ in counts[0]] == [400, 100, 20]
    share = (1 - 0.95) / 3
    bounds = [epsilon_bound(bits=400, guesses=r, correct=v, delta=1e-4, alpha=share) for r, v in counts[1]]
    assert f_dp.value == pytest.approx(max(bounds), abs=1e-12)
    assert (f_dp.delta, f_dp.details["pairs"], f_dp.details["left_out"]) == (1e-4, 400, 0)


def test_any_number_of_guesses_is_about_pure_epsilon(rng):
    """Its bound is stated at delta 0 whatever is asked, and says so first; the number of guesses is its own choice."""
    losses = Losses(member=rng.normal(-2, 1, 400), nonmember=rng.normal(0, 1, 400))
    found = outcomes(losses, RandomSplit(), 3, AnyGuesses(), 1e-4)
    assert found.delta == 0
    assert found.assumptions[0].startswith("pure epsilon")
    assert 1 <= found.details["correct"] <= found.details["guesses"] <= 400
    assert found.value == outcomes(losses, RandomSplit(), 3, AnyGuesses(), 0.0).value


def test_any_number_of_guesses_knows_the_odds_of_a_coin(rng):
    """Inclusion coins of .8: "out" guesses have odds 1/4 and "in" guesses odds 4, in turn, from the ends inwards."""
    coin = rng.random(500) < 0.8
    loss = rng.random(500) - coin
    losses = Losses(member=loss[coin], nonmember=loss[~coin])
    found = one_run_bound(losses, split=BernoulliSplit(0.8), delta=1e-3, rng=rng, test=AnyGuesses())
    is_member = coin[np.argsort(loss)]
    in_turn = [guess for k in range(250) for guess in (not is_member[-1 - k], is_member[k])]
    expected = any_guesses_bound(np.array(in_turn), alpha=1 - 0.95, odds=(0.25, 4.0))
    assert found.value == pytest.approx(expected.bound, abs=1e-9)
    assert found.adjacency == "add-remove"


def test_fair_inclusion_coins_have_an_f_dp_bound_at_every_delta(rng):
    """Fair coins are audited at the asked delta for add/remove by the recursion, and at delta 0 by Steinke's test."""
    f_dp, steinke = (
        one_run_bound(FAR, split=BernoulliSplit(0.5), delta=1e-3, rng=rng, test=test)
        for test in (FDP(), Steinke())
    )
    assert (f_dp.delta, f_dp.details["records"], steinke.delta) == (1e-3, 600, 0)


# --- Stratified splits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", TESTS)
def test_a_stratified_split_says_what_it_left_out(rng, test):
    """Pairs within strata are counted, with the strata and the records in no pair."""
    group = PerGroup(np.repeat(["a", "b", "c"], 100), np.repeat(["a", "b", "d"], [50, 150, 100]))
    losses = Losses(member=FAR.member, nonmember=FAR.nonmember, group=group)
    found = one_run_bound(losses, split=RandomSplit(stratified=True), delta=0.0, rng=rng, test=test)
    assert [found.details[key] for key in ("pairs", "strata", "left_out")] == [150, 2, 300]
    assert "strata" in found.method
    assert "stratum" in found.assumptions[-2]


# --- A whole claimed curve --------------------------------------------------------------------------------


def gaussian_curve(mu):
    """The mu-Gaussian curve from its whole profile."""
    deltas = np.geomspace(1e-12, 0.9, 200)
    return TradeoffCurve.from_profile([gaussian_epsilon(mu, delta=d) for d in deltas], deltas=deltas)


def test_a_claimed_curve_is_rejected_with_the_same_guesses(rng):
    """A perfect attack rejects a curve of mu .5 and not one of mu 4, which it could not have."""
    small, large = (
        one_run_bound(
            FAR, split=RandomSplit(), delta=1e-5, rng=rng, test=FDP(), curve=gaussian_curve(mu)
        ).details["claimed_curve"]
        for mu in (0.5, 4.0)
    )
    assert small == {"rejected": True, "guesses": 300, "correct": 300}
    assert large == {"rejected": False, "could_have_been": False}


def test_other_tests_do_not_judge_a_curve(rng):
    """Steinke's test says that a curve is not for it, with the reason."""
    found = one_run_bound(FAR, split=RandomSplit(), delta=1e-5, rng=rng, curve=gaussian_curve(1.0))
    assert found.details["claimed_curve"]["rejected"] is None
    assert "f-DP" in found.details["claimed_curve"]["reason"]
