"""One-run audits: coins of their own odds against published values, an oracle and hand counts; orders, and the tests."""

import math
import re

import numpy as np
import pytest
from oracles import steinke_p_value
from scipy import optimize, special, stats

from auditor import audit
from auditor.collectors import from_columns
from auditor.core import (
    FDP,
    Adjacency,
    AnyGuesses,
    BernoulliSplit,
    EachRecord,
    InputError,
    Losses,
    PerGroup,
    RandomSplit,
    StatedClaim,
    Subject,
    UnknownSplit,
)
from auditor.curves import TradeoffCurve
from auditor.estimators import (
    draw_guesses,
    epsilon_bound,
    gdp_of_guesses,
    kinds_of,
    of_curve,
    one_run_bound,
    poisson_binomial_tail,
    pure_bound,
    rejects,
)
from auditor.estimators.guesses import Guesses
from auditor.records import Features, per_person
from auditor.theory import gaussian_epsilon


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize(
    ("m", "r", "v"), [(1000, 600, 600), (1000, 1000, 700), (1000, 31, 22), (100, 50, 35)]
)
def test_the_recursion_takes_the_place_of_theorem_5_2(m, r, v, delta):
    """Theorem 5.2 of Steinke, Nasr and Jagielski refutes at most 0.02 more with the same guesses, and often less."""
    bound = epsilon_bound(bits=m, guesses=r, correct=v, delta=delta, alpha=0.05)
    assert steinke_p_value(m, r, v, bound + 0.02, delta) > 0.05


@pytest.mark.parametrize(
    ("guesses", "correct", "inclusion", "epsilon"),
    [(200, 190, 0.8, 1.011577), (100, 90, 0.5, 1.630823)],
)
def test_biased_references(guesses, correct, inclusion, epsilon):
    """The p-value of so many right guesses "in" is 5% at the epsilon of the design's table."""
    prior = np.log(inclusion / (1 - inclusion))
    assert poisson_binomial_tail([epsilon + prior], [guesses], correct) == pytest.approx(0.05, abs=1e-6)


def by_hand(log_odds, counts):
    """The law of the number of successes, convolved coin by coin: [P[0], P[1], ...]."""
    law = np.ones(1)
    for chance in special.expit(np.repeat(log_odds, counts)):
        law = np.convolve(law, [1 - chance, chance])
    return law


@pytest.mark.parametrize("spread", [0.3, 2.0, 8.0])
def test_tails_of_unequal_coins_against_a_convolution(rng, spread):
    """Every tail is that of the convolved law, and never below it; certain coins are counted as such."""
    for size in (1, 7, 60, 400):
        odds, counts = rng.normal(0, spread, size), rng.integers(1, 4, size)
        if size == 7:
            odds[:2] = -np.inf, np.inf
        tails = by_hand(odds, counts)[::-1].cumsum()[::-1]
        found = np.array([poisson_binomial_tail(odds, counts, least) for least in range(tails.size)])
        assert found == pytest.approx(np.minimum(tails, 1), abs=2e-12)
        assert (found >= np.minimum(tails, 1) - 1e-14).all()


def test_tails_of_many_coins(rng):
    """A million coins of one kind have the binomial's tail; kinds are never made less likely, and little more."""
    chance = float(special.expit(0.3))
    least = round(1e6 * chance + 1000)
    expected = stats.binom.sf(least - 1, 10**6, chance)
    assert poisson_binomial_tail([0.3], [10**6], least) == pytest.approx(expected, rel=1e-6)
    odds = rng.normal(0, 1, 5000)
    kinds, counts = kinds_of(odds)
    assert (kinds.size <= 1025, counts.sum()) == (True, 5000)
    rounded = np.repeat(kinds, counts) - np.sort(odds)
    assert (rounded >= 0).all()
    assert rounded.max() <= np.ptp(odds) / 1024


# --- Which test judges the guesses ------------------------------------------------------------------------

TESTS = [FDP(), AnyGuesses()]
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
    assert found.value == found.lower == found.details["ceiling"] == found.details["ceiling_of_score"] > 3
    assert (found.confidence, found.adjacency, found.subject) == (0.95, adjacency, Subject.MECHANISM)
    for losses in (REVERSE, CONSTANT):
        assert one_run_bound(losses, split=split, delta=1e-5, rng=rng, test=test).value == 0


@pytest.mark.parametrize("test", TESTS)
def test_the_ceiling_of_a_score_is_that_of_its_share_of_right_guesses(rng, test):
    """It is the logit of the largest exact upper limit of that share; more guesses, as often right, certify less."""
    losses = Losses(member=rng.normal(-0.05, 1, 3000), nonmember=rng.normal(0, 1, 3000))
    found = one_run_bound(losses, split=RandomSplit(), delta=1e-5, rng=rng, test=test)
    tried, level = found.details["tried"], 0.05 / len(found.details["tried"])
    rates = [
        stats.binomtest(item["correct"], item["guesses"]).proportion_ci(1 - 2 * level, method="exact").high
        for item in tried
    ]
    top = special.logit(max(rates))
    assert found.details["ceiling_of_score"] == pytest.approx(top)
    assert found.value <= top < found.details["ceiling"] / 2
    counts = {"bits": 10**5, "guesses": 10**5, "correct": int(max(rates) * 10**5)}
    assert 0.9 * top < epsilon_bound(**counts, delta=1e-5, alpha=0.05) <= top


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
    """The rows of both tests hold the counts of the same pairs, and the value is the best row's own bound."""
    losses = Losses(member=rng.normal(-2, 1, 400), nonmember=rng.normal(0, 1, 400))
    f_dp, pure = (outcomes(losses, RandomSplit(), 3, test, 1e-4) for test in TESTS)
    assert pure.details["tried"] == f_dp.details["tried"]
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
    """Its bound is stated at delta 0 whatever delta is requested, and says so first; the number of guesses is its own choice."""
    losses = Losses(member=rng.normal(-2, 1, 400), nonmember=rng.normal(0, 1, 400))
    found = outcomes(losses, RandomSplit(), 3, AnyGuesses(), 1e-4)
    assert found.delta == 0
    assert found.details["pure"]
    assert 1 <= found.details["correct"] <= found.details["guesses"] <= 400
    assert found.value == outcomes(losses, RandomSplit(), 3, AnyGuesses(), 0.0).value


def test_unequal_coins_are_guessed_by_their_odds_at_delta_zero(rng):
    """Inclusion coins of .8: "in" at the lower half of the losses, "out" at the upper, each with its own odds."""
    coin = rng.random(500) < 0.8
    loss = rng.normal(size=500) - 2 * coin
    losses = Losses(member=loss[coin], nonmember=loss[~coin])
    found = one_run_bound(losses, split=BernoulliSplit(0.8), delta=1e-3, rng=rng, test=AnyGuesses())
    is_member = coin[np.argsort(loss)]
    rows = {(row["order"], row["guesses"]): row for row in found.details["tried"]}
    lowest, highest = rows["lowest losses", 250], rows["highest losses", 125]
    assert lowest["correct"] == is_member[:250].sum()
    assert highest["correct"] == (~is_member[375:]).sum()
    prior = np.log([0.8 / 0.2, 0.2 / 0.8])

    def scaled(epsilon, row):
        """Chernoff's exponent of a row, as if its variance were that of equal coins, and the factor that makes it so."""
        inside, size = row.get("inside", 0), row["guesses"]
        parts, chance = np.array([inside, size - inside]) / size, special.expit(epsilon + prior)
        q = parts @ chance
        factor, right = q * (1 - q) / (parts @ (chance * (1 - chance))), max(row["correct"] / size, q)
        return factor * size * special.rel_entr([right, 1 - right], [q, 1 - q]).sum(), factor

    def below_sum(epsilon, row):
        """How far the sum over the sets is from 5%: the joint p-value is not larger."""
        exponent, _ = scaled(epsilon, row)
        return 1.001 * sum(math.exp(-exponent / scaled(epsilon, other)[1]) for other in rows.values()) - 0.05

    least = max(
        optimize.brentq(below_sum, 0, 20, args=(row,)) for row in rows.values() if below_sum(0, row) < 0
    )
    assert math.floor(32 * least) / 32 <= found.value
    # More right guesses in the most informative set are more extreme, whatever the others.
    of = found.details
    kinds = of["inside"], of["guesses"] - of["inside"]
    assert 0 < by_hand(found.value + prior, kinds)[of["correct"] + 1 :].sum() <= 0.05
    assert (found.adjacency, found.delta) == ("add-remove", 0)


# --- Coins of each record's own ---------------------------------------------------------------------------


def own_odds(rng, size=3000, epsilon=3.0):
    """Features that decide the odds of membership and move the losses; membership, which the losses give away; the odds."""
    feature = rng.normal(0, 1, size)
    chance = special.expit(feature)
    coin = rng.random(size) < chance
    says_out = coin == (rng.random(size) > special.expit(epsilon))
    return feature, coin, chance, says_out - 0.3 * feature + 0.1 * rng.random(size)


def test_a_known_design_with_odds_of_its_own_reaches_a_verdict(rng):
    """Odds that depend on the features are no shift: thinned groups are alike, and a wrong claim is refuted."""
    feature, coin, chance, loss = own_odds(rng)
    losses = Losses(member=loss[coin], nonmember=loss[~coin])
    features = Features(member=feature[coin], nonmember=feature[~coin])
    given = {"features": features, "claim": StatedClaim(epsilon=1.0, delta=1e-5), "disclosure": "insiders"}
    found = audit(losses, split=BernoulliSplit((chance[coin], chance[~coin])), **given)
    assert found.verdict == "refuted"
    assert {check.name: check.status for check in found.checks}["shift"] == "ok"
    assert found.data["inclusion"] is None
    kept = found.data["n_member"] + found.data["n_nonmember"]
    assert kept == pytest.approx(2 * np.minimum(chance, 1 - chance).sum(), abs=5 * math.sqrt(3000 / 4))
    assert f"{kept:,} of 3,000 kept" in found.data["history"][-1]
    row = found.estimate("epsilon_bound.one_run")
    assert 1 < row.value < 3
    assert row.details["inclusion_range"] == [chance.min(), chance.max()]
    # Without the declaration of the odds the same records show a shift.
    assert audit(losses, split=RandomSplit(), **given).verdict == "not_evaluable"


def test_a_column_says_what_the_split_can(rng):
    """A pair of columns, the field of the losses and a column of a table are the same declaration; two at once are refused."""
    _, coin, chance, loss = own_odds(rng, 400)
    pair = chance[coin], chance[~coin]
    plain, own = tossed(loss, coin), tossed(loss, coin, inclusion=pair)
    read = from_columns(loss, member=coin, inclusion=chance)
    asked = (plain, BernoulliSplit(pair)), (own, BernoulliSplit()), (read, BernoulliSplit())
    bounds = {
        one_run_bound(losses, split=split, delta=0.0, rng=np.random.default_rng(0)).value
        for losses, split in asked
    }
    assert len(bounds) == 1
    assert np.array_equal(
        own.take(member=np.array([3, 1]), nonmember=np.array([0, 2])).inclusion.member, pair[0][[3, 1]]
    )
    for split in (BernoulliSplit(pair), BernoulliSplit(0.5)):
        with pytest.raises(InputError, match="inclusion must be left out"):
            audit(own, split=split)


def tossed(loss, coin, **columns):
    """The losses of records whose membership was decided by these coins."""
    return Losses(member=loss[coin], nonmember=loss[~coin], **columns)


def test_verify_asks_for_the_odds_that_stood_beside_the_losses(rng, tmp_path, capsys):
    """Odds given as a pair are no part of the losses: without their column the numbers are not made again, with it they agree."""
    from auditor.cli import app

    _, coin, chance, loss = own_odds(rng, 400)
    pair = chance[coin], chance[~coin]
    plain, result = tossed(loss, coin), tmp_path / "result.json"
    audit(plain, split=BernoulliSplit(pair), delta=1e-3).to_json(result)
    for losses, code, words in (
        (plain, 3, "a column inclusion"),
        (tossed(loss, coin, inclusion=pair), 0, "agree"),
    ):
        losses.to_frame().to_csv(tmp_path / "losses.csv", index=False)
        assert app.run(["report", str(result), "--verify", "--losses", str(tmp_path / "losses.csv")]) == code
        told = capsys.readouterr()
        assert words in told.out + told.err


def test_odds_that_the_groups_contradict_are_refused(rng):
    """Odds of the members and of the non-members that were exchanged are found, for their numbers do not fit."""
    _, coin, chance, loss = own_odds(rng)
    swapped = BernoulliSplit((1 - chance[coin], 1 - chance[~coin]))
    found = one_run_bound(tossed(loss, coin), split=swapped, delta=0.0, rng=rng)
    assert found.value is None
    assert "do not come from coins" in found.details["reason"]


@pytest.mark.parametrize("odds", [(0.2, 0.8), (0.2, 0.5, 0.8), (0.1, 0.3, 0.5, 0.7), (0.3,)])
def test_tied_odds_are_refused_no_more_than_promised(rng, odds):
    """Strata with a rate each: true declarations are refused in at most 1 of 1,000, though members stand before the others."""
    refused = 0
    for _ in range(60):
        chance = rng.choice(odds, 400)
        coin = rng.random(400) < chance
        split = BernoulliSplit((chance[coin], chance[~coin]))
        refused += one_run_bound(tossed(rng.random(400), coin), split=split, delta=0.0, rng=rng).value is None
    assert refused <= 1


def test_what_contradicts_a_declaration_of_coins(rng):
    """Unlike odds under a split that draws all alike, and people who have a record in each group throughout, are no coins."""
    _, coin, chance, loss = own_odds(rng, 400)
    with pytest.raises(InputError, match=r"split must be auditor\.BernoulliSplit"):
        audit(tossed(loss, coin, inclusion=(chance[coin], chance[~coin])), split=RandomSplit())
    person = np.arange(300), np.arange(300)
    pairs = Losses(rng.random(300), rng.random(300), person=person, group=person)
    for split, told in (
        (BernoulliSplit(), False),
        (RandomSplit(), False),
        (RandomSplit(stratified=True), True),
    ):
        row = audit(pairs, split=split, persons=EachRecord()).estimate("epsilon_bound.one_run")
        assert (row.value is not None) == told
        assert told or "dealt between the groups" in row.details["reason"]


def test_too_few_left_by_thinning_is_said(rng):
    """Members of probability .01 and others of .99 leave nothing that is fair: the sentence says of how many records."""
    chance = np.where(np.arange(60) % 2, 0.01, 0.99)
    coin = chance > 0.5
    losses = tossed(rng.random(60), coin, inclusion=(chance[coin], chance[~coin]))
    with pytest.raises(InputError, match=r"thinning to fair coins left .* of 60 records"):
        audit(losses, split=BernoulliSplit())


@pytest.mark.parametrize("wrong", [0.0, 1.0, np.nan, -0.1])
def test_certain_membership_is_no_coin(wrong):
    """A probability of 0 or 1 is refused by what it is and where."""
    with pytest.raises(InputError, match=r"member inclusion must lie in \(0, 1\), got .*first at"):
        BernoulliSplit(([0.5, wrong], [0.5, 0.5]))
    with pytest.raises(InputError, match=r"non-?member inclusion must lie in \(0, 1\), got .*first at"):
        Losses(member=[0, 1], nonmember=[0, 1], inclusion=([0.5, 0.5], [0.5, wrong]))


def test_a_person_has_one_coin(rng):
    """Odds of a person's records must agree for a score of people; with them the people split by chance are counted."""
    pair = rng.random(100) + 0.0, rng.random(100) + 0.0
    person = np.repeat(np.arange(50), 2), np.repeat(np.arange(50, 100), 2)
    odds = np.full(100, 0.5), np.tile([0.4, 0.5], 50)
    with pytest.raises(InputError, match="inclusion must be the same for all records of a person"):
        audit(Losses(*pair, person=person, inclusion=odds), split=BernoulliSplit())
    one = Losses(*pair, person=person, inclusion=(np.full(100, 0.01), np.full(100, 0.01)))
    expected = per_person(one, choice=EachRecord()).in_both_by_chance
    assert expected == pytest.approx(100 * (1 - 0.99**2 - 0.01**2))


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
    """The test of pure epsilons says that a curve is not for it, with the reason."""
    found = one_run_bound(
        FAR, split=RandomSplit(), delta=1e-5, rng=rng, test=AnyGuesses(), curve=gaussian_curve(1.0)
    )
    assert found.details["claimed_curve"]["rejected"] is None
    assert "f-DP" in found.details["claimed_curve"]["reason"]


def test_one_set_of_own_odds_has_the_bound_of_its_poisson_binomial_law(rng):
    """The tail at the bound is at most 5%, and two steps of the grid above it more: draws and cells cost less than one step."""
    prior = rng.normal(size=2000)
    right = rng.random(2000) < special.expit(prior + 1)
    guesses = Guesses(right, {}, prior, Adjacency.ADD_REMOVE, "", (), {})
    bound, by = pure_bound(guesses, guesses.sets, alpha=0.05)
    odds, counts = kinds_of(prior)
    low, high = (poisson_binomial_tail(odds + bound + more, counts, by.correct) for more in (0, 2 / 32))
    assert low <= 0.05 < high
