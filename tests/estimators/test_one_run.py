"""One-run audits: Steinke's test and its biased form against published values, an oracle and hand counts."""

import numpy as np
import pytest
from oracles import steinke_p_value as slow_p_value
from scipy import stats

from auditor.core import (
    FDP,
    AnyGuesses,
    BernoulliSplit,
    InputError,
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
    steinke_bound,
    steinke_p_value,
)
from auditor.theory import gaussian_epsilon


@pytest.mark.parametrize(
    ("m", "r", "v", "expected"),
    [
        (1000, 600, 600, 5.270399),
        (1000, 1000, 600, 0.297227),
        (1000, 1000, 700, 0.731740),
        (1000, 100, 95, 2.165176),
    ],
)
def test_steinke_references(m, r, v, expected):
    """eps_L at delta 1e-5, alpha .05 as in the design's reference values."""
    assert steinke_bound(bits=m, guesses=r, correct=v, delta=1e-5, alpha=0.05) == pytest.approx(
        expected, abs=1e-6
    )


def test_steinke_p_value_references():
    """p(1000,600,600, eps 4, delta 1e-5) = .0012625634 and p(10,10,9, eps 0, delta 0) = 11/1024."""
    found = steinke_p_value(bits=1000, guesses=600, correct=600, epsilon=4.0, delta=1e-5)
    assert found == pytest.approx(0.0012625634, abs=5e-11)
    assert steinke_p_value(bits=10, guesses=10, correct=9, epsilon=0.0, delta=0.0) == pytest.approx(11 / 1024)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 7.0])
@pytest.mark.parametrize(
    ("m", "r", "v"), [(50, 50, 50), (80, 40, 33), (300, 200, 90), (20, 5, 0), (900, 900, 700)]
)
def test_steinke_against_every_term(m, r, v, epsilon):
    """The p-value equals Theorem 5.2 with every term of the maximum written out."""
    found = steinke_p_value(bits=m, guesses=r, correct=v, epsilon=epsilon, delta=1e-3)
    assert found == pytest.approx(slow_p_value(m, r, v, epsilon, 1e-3), rel=1e-8)


def test_biased_references():
    """Coins of .8, 200 guesses, 190 right: 1.011577; fair coins, 100 guesses, 90 right: 1.630823 (design)."""
    biased = biased_bound(guesses=(200, 0), correct=190, inclusion=0.8, alpha=0.05)
    fair = biased_bound(guesses=(100, 0), correct=90, inclusion=0.5, alpha=0.05)
    assert biased == pytest.approx(1.011577, abs=1e-6)
    assert fair == pytest.approx(1.630823, abs=1e-6)


def test_fair_coins_for_a_biased_split_would_invent_a_leak():
    """160 right of 200 at .8 inclusion is what no leakage gives: the right coin finds 0, a fair coin above 1 (1.09)."""
    assert biased_bound(guesses=(200, 0), correct=160, inclusion=0.8, alpha=0.05) == 0.0
    assert biased_bound(guesses=(200, 0), correct=160, inclusion=0.5, alpha=0.05) == pytest.approx(
        1.09, abs=5e-3
    )


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


def test_an_undeclared_split_is_refused_with_the_reason(rng):
    """Without a declared split the row has no value and says what must be declared."""
    found = one_run_bound(
        Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0]), split=UnknownSplit(), delta=1e-5, rng=rng
    )
    assert found.value is None
    assert found.subject is Subject.MECHANISM
    assert "split uniformly at random" in found.reason


def test_a_perfect_attack_reaches_the_ceiling(rng):
    """Separated groups reach the ceiling of both kinds of split, and say which adjacency they audit."""
    losses = Losses(member=np.linspace(0, 1, 300), nonmember=np.linspace(2, 3, 300))
    by_pairs = one_run_bound(losses, split=RandomSplit(), delta=1e-5, rng=rng)
    by_coins = one_run_bound(losses, split=BernoulliSplit(0.5), delta=1e-5, rng=rng)
    assert by_pairs.value == by_pairs.details["ceiling"] > 3
    assert by_coins.value == by_coins.details["ceiling"] > 3
    assert (by_pairs.adjacency, by_coins.adjacency) == ("replace-one", "add-remove")
    assert by_coins.delta == 0


def test_the_wrong_way_round_certifies_nothing(rng):
    """An attack whose guesses are all wrong gives 0, not a bound for the reverse."""
    losses = Losses(member=np.linspace(2, 3, 300), nonmember=np.linspace(0, 1, 300))
    assert one_run_bound(losses, split=RandomSplit(), delta=1e-5, rng=rng).value == 0
    assert one_run_bound(losses, split=BernoulliSplit(0.5), delta=1e-5, rng=rng).value == 0


@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.4)])
def test_constant_losses_certify_nothing(rng, split):
    """All-equal losses give 0 for both kinds of split."""
    losses = Losses(member=np.ones(200), nonmember=np.ones(300))
    assert one_run_bound(losses, split=split, delta=1e-5, rng=rng).value == 0


def test_unequal_groups_pair_the_smaller(rng):
    """Pairs are as many as the smaller group."""
    losses = Losses(member=rng.normal(0, 1, 50), nonmember=rng.normal(0, 1, 400))
    assert one_run_bound(losses, split=RandomSplit(), delta=1e-5, rng=rng).details["pairs"] == 50


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((10, 12, 5), "correct guesses <= guesses <= bits"),
        ((10, 5, 6), "correct guesses"),
        ((10, 0, 0), "guesses must"),
    ],
)
def test_counts_that_do_not_fit(counts, sentence):
    """Counts in the wrong order are refused."""
    bits, guesses, correct = counts
    with pytest.raises(InputError, match=sentence):
        steinke_bound(bits=bits, guesses=guesses, correct=correct, delta=0.0, alpha=0.05)


def test_coins_that_the_group_sizes_contradict_are_refused(rng):
    """A balanced sample of coins of .9 has other odds than declared, so there is no bound and the reason says why."""
    losses = Losses(member=rng.normal(-1, 1, 500), nonmember=rng.normal(0, 1, 500))
    found = one_run_bound(losses, split=BernoulliSplit(0.9), delta=0.0, rng=rng)
    assert found.value is None
    assert "500 members among 1,000 scored records do not come from coins of probability 0.9" in found.reason
    assert one_run_bound(losses, split=BernoulliSplit(0.5), delta=0.0, rng=rng).value is not None


# --- Which test judges the guesses ------------------------------------------------------------------------

TESTS = [Steinke(), FDP(), AnyGuesses()]
FAR = Losses(member=np.linspace(0, 1, 300), nonmember=np.linspace(2, 3, 300))


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.5)])
def test_every_test_has_a_ceiling_that_a_perfect_attack_reaches(rng, test, split):
    """A perfect attack reaches the ceiling of each test, the reverse gives 0, and so do constant losses."""
    found = one_run_bound(FAR, split=split, delta=1e-5, rng=rng, test=test)
    assert found.value == found.lower == found.details["ceiling"] > 3
    assert found.confidence == 0.95
    reverse = Losses(member=FAR.nonmember, nonmember=FAR.member)
    assert one_run_bound(reverse, split=split, delta=1e-5, rng=rng, test=test).value == 0
    constant = Losses(member=np.ones(300), nonmember=np.ones(300))
    assert one_run_bound(constant, split=split, delta=1e-5, rng=rng, test=test).value == 0


@pytest.mark.parametrize("test", TESTS)
def test_every_test_survives_two_records(rng, test):
    """Two pairs, and losses at the ends of the double range, give a bound and not an error."""
    losses = Losses(member=[-1e308, 0.0], nonmember=[1e308, 0.0])
    assert one_run_bound(losses, split=RandomSplit(), delta=0.0, rng=rng, test=test).value >= 0


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
    """Fair coins are audited at the asked delta for add/remove; for other coins the recursion is not proven."""
    found = one_run_bound(FAR, split=BernoulliSplit(0.5), delta=1e-3, rng=rng, test=FDP())
    assert (found.delta, found.adjacency, found.details["records"]) == (1e-3, "add-remove", 600)
    unfair = one_run_bound(FAR, split=BernoulliSplit(0.52), delta=1e-3, rng=rng, test=FDP())
    assert unfair.value is None
    assert "coins of probability 0.5 only, not 0.52" in unfair.reason


def test_an_unknown_test_is_refused(rng):
    """A test given by its name is refused: a choice is a value."""
    with pytest.raises(InputError, match=r"test must be auditor\.Steinke or auditor\.FDP or"):
        one_run_bound(FAR, split=RandomSplit(), delta=0.0, rng=rng, test="fdp")


# --- Stratified splits ------------------------------------------------------------------------------------


def test_a_stratified_split_needs_its_strata(rng):
    """Without group labels, or with none in common, a stratified split has no value and the reason says what to give."""
    split = RandomSplit(stratified=True)
    missing = one_run_bound(FAR, split=split, delta=0.0, rng=rng)
    assert missing.value is None
    assert "no group labels" in missing.reason
    apart = Losses(
        member=FAR.member, nonmember=FAR.nonmember, group=PerGroup(np.zeros(300, int), np.ones(300, int))
    )
    assert "no stratum has both" in one_run_bound(apart, split=split, delta=0.0, rng=rng).reason


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


def test_a_refuted_point_implies_a_refuted_curve(rng):
    """Whenever the bound exceeds the claimed epsilon at this delta, the whole curve is rejected; not the other way."""
    decisions = set()
    for shift in np.linspace(0, 3, 40):
        mu = rng.uniform(0.2, 1.5)
        losses = Losses(member=rng.normal(-shift, 1, 300), nonmember=rng.normal(0, 1, 300))
        found = one_run_bound(
            losses, split=RandomSplit(), delta=1e-3, rng=rng, test=FDP(), curve=gaussian_curve(mu)
        )
        by_point = found.value > gaussian_epsilon(mu, delta=1e-3)
        by_curve = found.details["claimed_curve"]["rejected"]
        assert by_curve or not by_point
        decisions.add((by_point, by_curve))
    assert decisions == {(False, False), (False, True), (True, True)}


def test_other_tests_do_not_judge_a_curve(rng):
    """Steinke's test says that a curve is not for it, with the reason."""
    found = one_run_bound(FAR, split=RandomSplit(), delta=1e-5, rng=rng, curve=gaussian_curve(1.0))
    assert found.details["claimed_curve"]["rejected"] is None
    assert "f-DP" in found.details["claimed_curve"]["reason"]
