"""Guesses about membership: joint p-values by listing all outcomes, and what makes coins coins."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats
from simulation import ALPHA

from auditor import audit, audit_instances
from auditor.core import (
    FDP,
    AnyGuesses,
    BernoulliSplit,
    Losses,
    RandomSplit,
)
from auditor.core.options import Adjacency, IndependentRuns
from auditor.curves import TradeoffCurve
from auditor.estimators import (
    curve_p_value,
    draw_guesses,
    epsilon_bound,
    of_curve,
    of_epsilon_delta,
    of_gdp,
    one_run_bound,
    pure_bound,
    pure_p_value,
    rejects,
)
from auditor.estimators.guess_tests import fdp_bound
from auditor.estimators.guesses import Guesses, GuessSet, pair_orders
from auditor.estimators.limits import poisson_binomial


def guesses_of(right, orders, prior=0.0):
    """Guesses with these outcomes in these orders, and these prior odds."""
    return Guesses(
        right=np.asarray(right, dtype=bool),
        orders={name: np.asarray(order) for name, order in orders.items()},
        prior=np.broadcast_to(np.asarray(prior, dtype=float), len(right)),
        adjacency=Adjacency.REPLACE_ONE,
        evidence="",
        assumptions=(),
        details={},
    )


ORDERS = {
    "one": [3, 1, 4, 0, 5, 9, 2, 6, 8, 7],
    "two": [7, 2, 3, 9, 1, 5, 0, 8, 4, 6],
    "part": [8, 6, 0, 1, 2],
}


def statistic(right, sets, chances):
    """The largest r KL(v/r || q) of sets given as lists of positions, with more than q right; the log of their sum breaks ties.

    Each by the variance of r coins of the mean q over that of its own.
    """
    found = []
    for chosen in sets:
        share, q, size = right[chosen].mean(), chances[chosen].mean(), len(chosen)
        miss = 0.0 if share == 1 else (1 - share) * math.log((1 - share) / (1 - q))
        scale = q * (1 - q) / (chances[chosen] * (1 - chances[chosen])).mean()
        found.append(scale * size * (share * math.log(share / q) + miss) if share > q + 1e-12 else 0.0)
    return max(found) + 1e-4 * math.log(sum(map(math.exp, found)))


# --- The joint test of pure epsilon --------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("prior", [np.zeros(10), np.tile([0.0, -1.5, 1.0, -1.5, 0.5], 2)])
def test_the_joint_p_value_against_all_outcomes(rng, prior, epsilon):
    """Ten guesses in three orders: the p-value is a 99.9% limit of the chance of all outcomes that are as extreme in any set."""
    chances = special.expit(prior + epsilon)
    sizes = {"one": (1, 2, 5), "two": (1, 2, 5), "part": (1, 2, 5)}
    sets = [list(range(10)), *([*order[:size]] for name, order in ORDERS.items() for size in sizes[name])]
    outcomes = np.array(list(itertools.product([False, True], repeat=10)))
    chance = np.prod(np.where(outcomes, chances, 1 - chances), axis=1)
    drawn = np.array([statistic(right, sets, chances) for right in outcomes])
    for _ in range(6):
        right = rng.random(10) < 0.8
        found = guesses_of(right, ORDERS, prior)
        exact = chance[drawn >= statistic(right, sets, chances) - 1e-9].sum()
        noise = math.sqrt(max(exact * (1 - exact), 1e-9) / 2000)
        p_value = pure_p_value(found, found.sets, epsilon=epsilon, alpha=ALPHA)
        assert exact - 1e-9 <= p_value <= exact + 8 * noise + 0.004


@pytest.mark.parametrize("prior", [0.0, -2.0, 1.0])
def test_perfect_guesses_have_the_chance_of_all_coins(prior):
    """All guesses right is the most extreme outcome: its chance is the product of theirs, and the bound ends where that exceeds 5%."""
    found = guesses_of(np.ones(10, dtype=bool), ORDERS, prior + np.linspace(0, 1, 10) ** 2)
    exact = [float(np.prod(special.expit(found.prior + epsilon))) for epsilon in np.arange(0, 8, 1 / 32)]
    p_value = pure_p_value(found, found.sets, epsilon=1.0, alpha=ALPHA)
    assert exact[32] * (1 - 1e-12) <= p_value < 1.001 * exact[32]
    bound, best = pure_bound(found, found.sets, alpha=ALPHA)
    assert abs(bound * 32 - max(0, sum(chance <= ALPHA for chance in exact) - 1)) <= 1
    assert best.order == "all"


def test_cells_bound_the_number_of_right_guesses(rng):
    """Of unequal odds within a cell a binomial law is stochastically above the Poisson-binomial one, its mean by 1/128 nats at most."""
    prior = rng.uniform(-0.5, 1.0, 60)
    found = guesses_of(np.ones(60, dtype=bool), {}, prior)
    counts, _ = found.cells
    assert len(counts) == 6
    for epsilon in (0.0, 1.0, 4.0):
        chances = found.chances(epsilon)
        ends = np.cumsum(counts)
        # Popoviciu: the variance of what lies within 1/4 is 1/64 at most, and half of that times q is what the mean loses.
        for cell, own in enumerate(np.split(np.sort(prior) + epsilon, ends[:-1])):
            low, law = poisson_binomial(own, np.ones(own.size))
            above = law[::-1].cumsum()[::-1]
            expected = stats.binom.sf(np.arange(low, low + law.size) - 1, counts[cell], chances[cell])
            assert (expected >= above - 1e-9).all()
            assert 0 <= special.logit(chances[cell]) - special.logit(special.expit(own).mean()) < 1 / 128


@pytest.mark.parametrize("alpha", [ALPHA, 0.01, ALPHA / 30])
def test_drawn_guesses_cost_power_and_no_level(alpha):
    """Of one order of 400 guesses, whose p-value is known: never below it, and near it close enough to reject."""
    low = int(stats.binom.isf(2 * alpha, 400, 0.5))
    seen = [*range(low, low + 12), 260]
    for correct in seen:
        found = guesses_of(np.arange(400) < correct, {})
        assert [item.guesses for item in found.sets] == [400]
        exact = stats.binom.sf(correct - 1, 400, 0.5)
        p_value = pure_p_value(found, found.sets, epsilon=0.0, alpha=alpha)
        assert exact * (1 - 1e-9) <= p_value
        assert p_value <= alpha or exact > 0.7 * alpha
        if alpha / 2 < exact < 1.5 * alpha:
            assert p_value < 2 * exact


def test_the_bound_is_the_last_epsilon_before_the_first_that_is_kept(rng):
    """All of the grid up to the bound is rejected, and the step after it is not."""
    right = rng.random(300) < np.linspace(0.95, 0.6, 300)
    found = guesses_of(right, {"sure": np.arange(300), "back": np.arange(300)[::-1]})
    bound, best = pure_bound(found, found.sets, alpha=ALPHA)
    assert bound > 0.5
    assert best.order in ("all", "sure")
    grid = np.arange(0, bound + 1e-9, 1 / 32)
    p_values = [pure_p_value(found, found.sets, epsilon=float(eps), alpha=ALPHA) for eps in grid]
    assert max(p_values) <= ALPHA < pure_p_value(found, found.sets, epsilon=bound + 1 / 32, alpha=ALPHA)


def test_cells_say_which_sets_a_guess_belongs_to(rng):
    """The guesses of every cell add up to each set's number, and a set's own positions are in no other cell."""
    found = guesses_of(rng.random(10) < 0.5, ORDERS)
    counts, belongs = found.cells
    assert counts.sum() == 10
    assert (belongs @ counts).tolist() == [item.guesses for item in found.sets]


# --- Several sets that share the error -----------------------------------------------------------------


def sets_of(*counts):
    """Sets of so many guesses and right guesses."""
    return [GuessSet(str(index), 1.0, *pair) for index, pair in enumerate(counts)]


SETS = sets_of((1000, 640), (500, 360), (120, 105), (30, 30), (5, 1))


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
def test_the_bound_of_several_sets_is_the_largest_of_each_at_its_share(delta):
    """At a fifth of the level each, whichever order they come in."""
    singles = [
        epsilon_bound(bits=1000, guesses=s.guesses, correct=s.correct, delta=delta, alpha=ALPHA / 5)
        for s in SETS
    ]
    for sets in (SETS, SETS[::-1]):
        bound, best = fdp_bound(sets, bits=1000, delta=delta, alpha=ALPHA)
        assert bound == pytest.approx(max(singles), abs=1e-8)
        assert bound == 0 or best == SETS[int(np.argmax(singles))]
    assert fdp_bound(SETS[-1:], bits=1000, delta=delta, alpha=ALPHA)[0] == 0


@pytest.mark.parametrize("finv", [of_gdp(0.4), of_epsilon_delta(0.4, delta=1e-3), of_gdp(0.0)])
def test_the_p_value_of_a_curve_is_the_level_at_which_it_begins_to_be_rejected(finv):
    """A hair above it one of the sets rejects at its share, a hair below it none does."""

    def rejected(level):
        return any(
            rejects(finv, bits=1000, guesses=s.guesses, correct=s.correct, alpha=level / len(SETS))
            for s in SETS
        )

    found = curve_p_value(finv, bits=1000, sets=SETS)
    assert rejected(min(found * 1.0001, 0.9))
    assert not rejected(found * 0.9999)
    assert curve_p_value(finv, bits=1000, sets=SETS[-1:]) == 1


def test_the_p_value_of_a_claim_goes_with_its_verdict():
    """At most 5% exactly where the bound refutes the claim; and never below the p-value of the claim alone."""
    rng = np.random.default_rng(61)
    for shift, size, split in (
        (0.0, 200, RandomSplit()),
        (0.6, 200, RandomSplit()),
        (0.6, 50, BernoulliSplit(0.8)),
    ):
        losses = Losses(member=rng.normal(-shift, 1, 200), nonmember=rng.normal(0, 1, size))
        for claimed in (0.0, 0.25, 1.0, math.inf):
            found = one_run_bound(
                losses, split=split, delta=0.0, rng=np.random.default_rng(0), claimed=claimed
            )
            assert (found.details["p_value"] <= ALPHA) == (found.value > claimed)
            if claimed < 3:
                guesses = draw_guesses(losses, split=split, rng=np.random.default_rng(0))
                alone = pure_p_value(guesses, guesses.sets, epsilon=claimed, alpha=ALPHA)
                assert found.details["p_value"] >= alone


# --- Coins: one direction each, whatever the order -----------------------------------------------------


def test_orders_of_pairs_do_not_know_who_is_the_member(rng):
    """Pairs whose two losses are exchanged are guessed in the same order, ties included."""
    for values in (rng.normal(size=(2, 80)), rng.integers(0, 6, (2, 80)).astype(float)):
        swap = rng.random(80) < 0.5
        exchanged = np.where(swap, values[::-1], values)
        for name, order in pair_orders(*values).items():
            assert np.array_equal(order, pair_orders(*exchanged)[name])


def test_orders_are_those_of_a_stable_sort(rng):
    """Each order is the first half of a stable sort by its confidence, with ties and with losses that differ in their last bits."""
    some = rng.integers(0, 6, (2, 80)).astype(float)
    for values in (rng.normal(size=(2, 81)), some, 1 + 1e-15 * some, -0.0 * some, 3e307 * (some - 3)):
        distinct = sorted(set(values.ravel()))
        ranks = np.array([[distinct.index(loss) for loss in side] for side in values])
        confidence = {
            "distance of ranks": abs(ranks[0] - ranks[1]),
            "distance of losses": abs(values[0] - values[1]),
            "larger loss": values.max(axis=0),
            "smaller loss": -values.min(axis=0),
        }
        for name, order in pair_orders(*values).items():
            expected = sorted(range(values.shape[1]), key=lambda at: -confidence[name][at])
            assert order.tolist() == expected[: len(order)]
            assert len(order) == (values.shape[1] + 1) // 2


# --- Thinning to fair coins ----------------------------------------------------------------------------


@pytest.mark.parametrize("inclusion", [0.8, 0.25])
def test_kept_coins_are_fair_and_independent(inclusion):
    """Of those kept half are members, neighbours in the order of losses agree half of the time, and enough are kept."""
    rng, agree, members, kept, records = np.random.default_rng(67), 0, 0, 0, 0
    for _ in range(60):
        coin, loss = rng.random(500) < inclusion, rng.normal(size=500)
        found = draw_guesses(
            Losses(loss[coin], loss[~coin]), split=BernoulliSplit(inclusion), rng=rng, thin=True
        )
        inside = found.right == found.inside
        assert found.fair
        kept, records, members = kept + inside.size, records + 500, members + inside.sum()
        agree += (inside[1::2] == inside[: inside.size - inside.size % 2 : 2]).sum()
    pairs = kept / 2 - 30
    assert stats.binomtest(int(members), int(kept), 0.5).pvalue > 1e-4
    assert abs(agree - kept / 4) < 5 * math.sqrt(pairs)
    assert stats.binomtest(int(kept), records, 2 * min(inclusion, 1 - inclusion)).pvalue > 1e-4


def test_thinning_does_not_look_at_losses():
    """With the same draws the same number of members and of non-members is kept, whatever the losses are."""
    coin = np.random.default_rng(68).random(400) < 0.8
    counts = set()
    for loss in (np.arange(400.0), -np.arange(400.0), np.where(coin, 0.0, 9.0)):
        found = draw_guesses(
            Losses(loss[coin], loss[~coin]),
            split=BernoulliSplit(0.8),
            rng=np.random.default_rng(1),
            thin=True,
        )
        counts.add((found.bits, int((found.right == found.inside).sum())))
    assert len(counts) == 1


def test_unequal_coins_that_were_not_thinned_are_not_pooled():
    """Results at delta 0 hold guesses about unequal coins: as fair ones they would show a leak where there is none."""
    rng, split, results, losses = np.random.default_rng(69), BernoulliSplit(0.8), [], []
    for _ in range(3):
        coin, loss = rng.random(400) < 0.8, rng.normal(size=400)
        losses.append(Losses(loss[coin], loss[~coin]))
        results.append(audit(losses[-1], delta=0.0, split=split, disclosure="insiders"))
    pooled = audit_instances(results, delta=1e-5, split=split, together=IndependentRuns()).estimates[0]
    assert pooled.value is None
    assert "fair coins of the declared probability" in pooled.reason
    asked = {"delta": 1e-5, "split": split, "one_run_test": FDP(), "disclosure": "insiders"}
    thinned = [audit(item, **asked) for item in losses]
    assert (
        audit_instances(thinned, delta=1e-5, split=split, together=IndependentRuns()).estimates[0].value == 0
    )
    assert (
        audit_instances(losses, delta=1e-5, split=split, together=IndependentRuns()).estimates[0].value == 0
    )
    other = audit_instances(
        thinned, delta=1e-5, split=BernoulliSplit(0.5), together=IndependentRuns()
    ).estimates[0]
    assert other.value is None


def test_one_run_judges_by_the_smallest_concave_curve():
    """A curve below its concave hull is judged by the hull, and the default at delta 0 takes every order."""
    curve = TradeoffCurve(fpr=[0, 0.5, 1.0], tpr=[0, 0.5, 1.0])
    assert of_curve(curve)(0.25) == 0.25
    losses = Losses(np.arange(100.0), np.arange(100.0) + 200)
    found = one_run_bound(losses, split=RandomSplit(), delta=0.0, rng=np.random.default_rng(0))
    asked = one_run_bound(
        losses, split=RandomSplit(), delta=0.0, rng=np.random.default_rng(0), test=AnyGuesses()
    )
    assert found == asked
