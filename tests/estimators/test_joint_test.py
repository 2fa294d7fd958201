"""The joint test: one rank by integration, the whole by listing all orders, its simulated law by drawing the records."""

import math

import numpy as np
import pytest
from oracles import chance_at_a_rank, worst_interleavings
from scipy import stats

from auditor import DPSGD
from auditor.core import Losses
from auditor.curves import TradeoffCurve
from auditor.estimators import JointTest, joint_test
from auditor.estimators.joint_test import _PANEL, _TAIL
from auditor.theory import claimed_curve

DRAWS = joint_test._DRAWS[0]  # the fewest that a p-value rests on
GAUSSIAN = claimed_curve(DPSGD(1.0, 1.0, 1)).curve
CURVES = {
    "no leak": TradeoffCurve.from_epsilon_delta(0.0, delta=0.0),
    "pure": TradeoffCurve.from_epsilon_delta(1.0, delta=0.0),
    "delta": TradeoffCurve.from_epsilon_delta(0.7, delta=0.15),
    "steep": TradeoffCurve.from_epsilon_delta(4.0, delta=1e-5),
    "gaussian": GAUSSIAN,
}


def normal(rng, mu, size):
    """Scores of so many runs in each world, ``mu`` standard deviations apart."""
    return Losses(member=rng.normal(-mu, 1, size), nonmember=rng.normal(0, 1, size))


# --- One rank ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(("members", "nonmembers"), [(30, 30), (1000, 50), (1000, 1000)])
def test_the_p_value_of_one_rank_against_an_integral(curve, members, nonmembers):
    """Never below the integral, and above it by at most the promised factor: also where hits rise within a panel."""
    curve = CURVES[curve]
    tail = JointTest(members, nonmembers, curve)._tails[0]
    for row in {0, 1, 3, tail.ranks.size - 1}:
        rank = int(tail.ranks[row])
        for hits in np.unique(np.linspace(0, members, 12).astype(int)):
            exact = chance_at_a_rank(
                rank,
                hits,
                members=members,
                nonmembers=nonmembers,
                allowed=lambda y: np.interp(y, curve.fpr, curve.tpr),
            )
            found = math.exp(tail.log_p(np.full((tail.ranks.size, 1), hits))[row, 0])
            assert exact * (1 - 1e-3) - 1e-13 <= found <= exact * math.exp(_PANEL) * (1 + 1e-3) + _TAIL * 1.01
            alone = math.exp(tail.log_p_of(np.full(tail.ranks.size, hits))[row])
            assert alone == pytest.approx(found, rel=1e-9)


# --- The law of the statistic --------------------------------------------------------------------------


@pytest.mark.parametrize(("members", "nonmembers"), [(3, 3), (2, 4), (5, 2)])
@pytest.mark.parametrize("curve", ["no leak", "pure", "delta"])
def test_the_p_value_against_all_orders(members, nonmembers, curve):
    """Whatever order is observed, its p-value is the probability of all orders with no larger a statistic."""
    curve = CURVES[curve]
    test = JointTest(members, nonmembers, curve)
    chances, statistics, seen = [], [], {}
    for chance, inside, outside in worst_interleavings(members, nonmembers, curve.fpr, curve.tpr):
        losses = Losses(member=inside, nonmember=outside)
        hits = test.observed(losses)
        least = min(float(t.log_p(h).min()) for t, h in zip(test._tails, hits, strict=True))
        chances.append(chance)
        statistics.append(least)
        seen[round(least, 8)] = losses
    assert sum(chances) == pytest.approx(1.0)
    chances, statistics = np.array(chances), np.array(statistics)
    for least, losses in seen.items():
        exact = chances[statistics <= least + 1e-7].sum()
        noise = math.sqrt(max(0.0, exact * (1 - exact)) / DRAWS)
        assert test.p_value(losses, alpha=0.05) == pytest.approx(exact, abs=4.5 * noise + 1 / DRAWS)


def drawn_one_by_one(test, draws, rng):
    """The hits of records drawn from the law that the calibration stands for, counted in the sorted records."""
    rows = []
    for _ in range(draws):
        uniform = rng.random(test.members)
        member = np.interp(uniform, test.curve.tpr, test.curve.fpr)
        losses = Losses(member=member, nonmember=rng.random(test.nonmembers))
        rows.append(np.concatenate([hits[:, 0] for hits in test.observed(losses)]))
    return np.array(rows).T.astype(float)


@pytest.mark.parametrize(("members", "nonmembers"), [(40, 40), (15, 120), (120, 15)])
@pytest.mark.parametrize("curve", CURVES)
def test_the_chain_draws_the_hits_of_records(request, rng, members, nonmembers, curve):
    """Means, squares and products of the hits at all ranks of both tails, and the statistic, are those of drawn records."""
    test = JointTest(members, nonmembers, CURVES[curve])
    draws = 2500 if request.config.getoption("--long") else 1000
    direct = drawn_one_by_one(test, draws, rng)
    chain = np.concatenate(test.drawn(draws, rng)).astype(float)
    products = [
        rows[i] * rows[j] for rows in (direct, chain) for i in range(0, 30, 4) for j in range(i, 30, 5)
    ]
    half = len(products) // 2
    for ours, theirs in zip([*chain, *products[half:]], [*direct, *products[:half]], strict=True):
        spread = math.sqrt((ours.var() + theirs.var()) / draws)
        assert abs(ours.mean() - theirs.mean()) <= 5 * spread + 1e-12

    def least(rows):
        lower = test._tails[0].ranks.size
        parts = zip(test._tails, (rows[:lower], rows[lower:]), strict=True)
        return np.minimum(*(tail.log_p(hits.astype(np.int64)).min(axis=0) for tail, hits in parts))

    assert stats.ks_2samp(least(direct), least(chain)).pvalue > 1e-4


def test_some_counts_are_enough(monkeypatch):
    """Where the p-value of a rank is computed for some counts only, the law of the statistic is that of every count."""
    found = {}
    for most in (4999, 5000):
        monkeypatch.setattr(joint_test, "_EVERY_COUNT", most)
        drawn = next(JointTest(5000, 5000, CURVES["steep"])._simulated())
        found[most] = np.quantile(drawn, [0.001, 0.01, 0.05, 0.2, 0.5])
    np.testing.assert_allclose(found[4999], found[5000], atol=0.1)


def test_upper_ranks_that_reach_among_the_lower_ones_are_counted_safely(rng):
    """Where the count from above is taken at a lower rank it never exceeds the true count."""
    test = JointTest(25, 18, CURVES["pure"])
    for _ in range(300):
        losses = Losses(member=rng.integers(0, 12, 25) - 1.0, nonmember=rng.integers(0, 12, 18) + 0.0)
        _, counted = test.observed(losses)
        thresholds = losses.sorted_member[24 - test._tails[1].ranks]
        true = (losses.nonmember[None, :] > thresholds[:, None]).sum(axis=1)
        assert (counted[:, 0] <= true).all()


# --- What the p-value does -----------------------------------------------------------------------------


def test_more_leakage_never_raises_the_p_value(rng):
    """A member that moves down, or a non-member that moves up, ties or not, leaves the p-value or lowers it."""
    test = JointTest(20, 25, CURVES["pure"])
    for _ in range(40):
        member, nonmember = rng.integers(0, 15, 20) - 1.0, rng.integers(0, 15, 25) + 0.0
        before = test.p_value(Losses(member, nonmember), alpha=0.05)
        member[rng.integers(20)] -= rng.integers(1, 4)
        nonmember[rng.integers(25)] += rng.integers(0, 3)
        # One may rest on more draws than the other.
        assert test.p_value(Losses(member, nonmember), alpha=0.05) <= before + 5 * math.sqrt(0.25 / DRAWS)


def test_equal_scores_show_nothing():
    """All scores equal have p-value 1."""
    losses = Losses(member=np.zeros(50), nonmember=np.zeros(80))
    assert JointTest(50, 80, CURVES["no leak"]).p_value(losses, alpha=0.05) == 1


@pytest.mark.parametrize(("epsilon", "delta"), [(50.0, 1e-5), (1.0, 0.9), (0.0, 0.6)])
def test_curves_that_allow_everything_are_kept(rng, epsilon, delta):
    """A claim that allows hits always, at rates below a half already, is never contradicted by a perfect attack."""
    test = JointTest(40, 40, TradeoffCurve.from_epsilon_delta(epsilon, delta=delta))
    assert test.p_value(normal(rng, 1.0, 40), alpha=0.05) > 0.5
    assert (test.p_value_of(test.perfect, alpha=0.05) > 0.99) == (epsilon == 50)


def test_the_point_is_where_the_curve_is_contradicted():
    """Non-members that stand out above are named as such, with the counts and the rate that the claim allows."""
    losses = Losses(
        member=np.arange(100.0), nonmember=np.concatenate([np.arange(60) + 0.5, np.arange(40) + 200])
    )
    test = JointTest(100, 100, CURVES["pure"])
    assert test.p_value(losses, alpha=0.05) <= 0.05
    point = test.point(test.observed(losses))
    assert (point["tail"], point["alarms"], point["hits"]) == ("upper", 0, 40)
    assert point["allowed"] == pytest.approx(math.e / 101)


# --- Power ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "size", "least"), [(2.0, 30, 0.85), (2.0, 100, 0.98), (1.5, 200, 0.95)])
def test_the_power_against_a_gaussian_claim(mu, size, least):
    """Claim mu = 1: a true mu of 2 is refuted in 9 of 10 audits of 60 runs in all and always at 200, 1.5 at 400."""
    test = JointTest(size, size, GAUSSIAN)
    rejected = [
        test.p_value(normal(np.random.default_rng([8, seed]), mu, size), alpha=0.05) <= 0.05
        for seed in range(150)
    ]
    assert np.mean(rejected) > least
