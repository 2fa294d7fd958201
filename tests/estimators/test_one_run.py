"""One-run audits: Steinke's test and its biased form against published values, an oracle and hand counts; orders."""

import re

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
    biased_bound,
    biased_p_value,
    draw_guesses,
    epsilon_bound,
    gdp_of_guesses,
    of_curve,
    one_run_bound,
    rejects,
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
    ("split", "losses", "reason"),
    [
        (UnknownSplit(), FAR, "not declared .* drawn uniformly at random"),
        # A balanced sample of coins of .9 has other odds than declared.
        (BernoulliSplit(0.9), FAR, "300 members among 600 .* coins of probability 0.9"),
        (RandomSplit(stratified=True), FAR, "no group labels"),
        (RandomSplit(stratified=True), APART, "no stratum has both"),
    ],
)
def test_a_split_that_supports_no_bound_has_none_and_says_why(rng, split, losses, reason):
    """Undeclared and contradicted splits and missing strata give no value."""
    by_gdp = gdp_of_guesses(draw_guesses(losses, split=split, rng=rng, thin=True), 1e-5, 0.05)
    for found in (one_run_bound(losses, split=split, delta=1e-5, rng=rng), by_gdp):
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
    assert steinke.details["tried"] == f_dp.details["tried"]
    rows = f_dp.details["tried"]
    assert (rows[0]["order"], rows[0]["guesses"]) == ("all", 400)
    assert {row["guesses"] for row in rows} == {400, 200, 100, 50, 25, 12, 6}
    assert len({row["order"] for row in rows}) == 5
    bounds = [
        epsilon_bound(
            bits=400, guesses=row["guesses"], correct=row["correct"], delta=1e-4, alpha=(1 - 0.95) / len(rows)
        )
        for row in rows
    ]
    assert f_dp.value == pytest.approx(max(bounds), abs=1e-9)
    assert (f_dp.delta, f_dp.details["pairs"], f_dp.details["left_out"]) == (1e-4, 400, 0)


def test_leakage_in_the_high_losses_is_found(rng):
    """Non-members that stand out by high losses are a tenth of all: distances alone would see a fraction of it."""
    member, nonmember = rng.gamma(1, 1, 3000), rng.gamma(1, 1, 3000)
    nonmember[:300] += 20
    found = one_run_bound(
        Losses(member=member, nonmember=nonmember), split=RandomSplit(), delta=1e-5, rng=rng
    )
    assert found.value > 3
    swapped = Losses(member=-nonmember, nonmember=-member)  # the same in the low losses
    low = one_run_bound(swapped, split=RandomSplit(), delta=1e-5, rng=rng)
    assert low.value > 3


def test_without_a_test_the_strongest_that_fits_is_taken(rng):
    """At a delta above 0 the recursion, at 0 every order and number together; a pure claim has its p-value."""
    losses = Losses(member=rng.normal(-2, 1, 400), nonmember=rng.normal(0, 1, 400))
    for delta, test in ((1e-4, FDP()), (0.0, AnyGuesses())):
        default, asked = (outcomes(losses, RandomSplit(), 3, choice, delta) for choice in (None, test))
        assert (default.value, default.method) == (asked.value, asked.method)
    found = one_run_bound(losses, split=RandomSplit(), delta=0.0, rng=rng, claimed=0.5)
    assert found.value > 0.5
    assert found.details["p_value"] < 1e-3


def test_any_number_of_guesses_is_about_pure_epsilon(rng):
    """Its bound is stated at delta 0 whatever is asked, and says so first; the number of guesses is its own choice."""
    losses = Losses(member=rng.normal(-2, 1, 400), nonmember=rng.normal(0, 1, 400))
    found = outcomes(losses, RandomSplit(), 3, AnyGuesses(), 1e-4)
    assert found.delta == 0
    assert found.assumptions[0].startswith("pure epsilon")
    assert 1 <= found.details["correct"] <= found.details["guesses"] <= 400
    assert found.value == outcomes(losses, RandomSplit(), 3, AnyGuesses(), 0.0).value


def test_unequal_coins_are_guessed_by_their_odds_at_delta_zero(rng):
    """Inclusion coins of .8: "in" at the lower half of the losses, "out" at the upper, each with its own odds."""
    coin = rng.random(500) < 0.8
    loss = rng.random(500) - coin
    losses = Losses(member=loss[coin], nonmember=loss[~coin])
    found = one_run_bound(losses, split=BernoulliSplit(0.8), delta=1e-3, rng=rng, test=AnyGuesses())
    is_member = coin[np.argsort(loss)]
    rows = {(row["order"], row["guesses"]): row for row in found.details["tried"]}
    lowest, highest = rows["lowest losses", 250], rows["highest losses", 125]
    assert lowest["correct"] == is_member[:250].sum()
    assert highest["correct"] == (~is_member[375:]).sum()
    bounds = [
        biased_bound(
            guesses=(row.get("inside", 0), row["guesses"] - row.get("inside", 0)),
            correct=row["correct"],
            inclusion=0.8,
            alpha=(1 - 0.95) / len(rows),
        )
        for row in rows.values()
    ]
    assert found.value == pytest.approx(max(bounds), abs=1e-9)
    assert (found.adjacency, found.delta) == ("add-remove", 0)


def test_coins_are_audited_at_the_asked_delta(rng):
    """Fair coins are audited at the asked delta for add/remove by either theorem, unequal ones after thinning."""
    for test in (FDP(), Steinke()):
        fair = one_run_bound(FAR, split=BernoulliSplit(0.5), delta=1e-3, rng=rng, test=test)
        assert (fair.delta, fair.details["records"]) == (1e-3, 600)
        unequal = Losses(member=np.linspace(0, 1, 800), nonmember=np.linspace(2, 3, 200))
        thinned = one_run_bound(unequal, split=BernoulliSplit(0.8), delta=1e-3, rng=rng, test=test)
        # All of the 200 are kept, and of the 800 each with chance 1/4.
        assert (thinned.delta, thinned.details["records"]) == (1e-3, 1000)
        assert 330 < thinned.details["thinned_to"] < 470
        assert "thinned" in thinned.method


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
    """A perfect attack rejects a curve of mu .5 and not one of mu 2, which it could not have: it says how many would do."""
    small, large = (
        one_run_bound(
            FAR, split=RandomSplit(), delta=1e-5, rng=rng, test=FDP(), curve=gaussian_curve(mu)
        ).details["claimed_curve"]
        for mu in (0.5, 2.0)
    )
    assert small["rejected"]
    assert small["could_have_been"]
    assert small["p_value"] < 1e-3
    assert (large["rejected"], large["could_have_been"]) == (False, False)
    # What would do: that many perfect guesses reject the curve, and no fewer.
    for bits in (large["needed"], large["needed"] - 1):
        share = (1 - 0.95) / 25
        rejected = rejects(of_curve(gaussian_curve(2.0)), bits=bits, guesses=bits, correct=bits, alpha=share)
        assert rejected == (bits == large["needed"])


def test_other_tests_do_not_judge_a_curve(rng):
    """Steinke's test says that a curve is not for it, with the reason."""
    found = one_run_bound(
        FAR, split=RandomSplit(), delta=1e-5, rng=rng, test=Steinke(), curve=gaussian_curve(1.0)
    )
    assert found.details["claimed_curve"]["rejected"] is None
    assert "f-DP" in found.details["claimed_curve"]["reason"]
