"""The exact test: its p-values by listing all orders and by drawing records, its bound by what is known of the law."""

import math

import numpy as np
import pytest
from oracles import worst_interleavings
from scipy import stats
from simulation import ALPHA

from auditor.core import Census, Losses, Melded, RankGrid
from auditor.curves import TradeoffCurve
from auditor.estimators import clopper_pearson
from auditor.estimators.certified import positive_bounds
from auditor.estimators.exact_test import CalibratedTest, Hits, Statistic, chances_up_to, least_epsilons


def judged(member, nonmember, delta, alpha=ALPHA):
    """The test of these scores."""
    hits = Hits.of(Losses(member=member, nonmember=nonmember))
    return CalibratedTest(hits, Statistic(len(member), len(nonmember), delta, alpha))


# --- The p-value ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("members", "nonmembers"), [(3, 3), (2, 5), (5, 2), (4, 3)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.7, 0.15), (2.5, 0.4)])
def test_the_p_value_against_all_orders(members, nonmembers, epsilon, delta):
    """Whatever order is observed, its p-value is the probability of all orders with as large a statistic."""
    curve = TradeoffCurve.from_epsilon_delta(epsilon, delta=delta)
    orders = [
        (chance, judged(inside, outside, delta))
        for chance, inside, outside in worst_interleavings(members, nonmembers, curve.fpr, curve.tpr)
    ]
    chances = np.array([chance for chance, _ in orders])
    statistics = np.array([test.statistic for _, test in orders])
    assert chances.sum() == pytest.approx(1.0)
    seen = {}
    for _, test in orders:
        seen.setdefault(round(test.statistic, 8) if math.isfinite(test.statistic) else None, test)
    for test in seen.values():
        exact = chances[statistics >= test.statistic - 1e-7].sum()
        assert test.p_value(epsilon) == pytest.approx(exact, abs=3e-9, rel=2e-4)


def test_more_leakage_never_raises_the_p_value(rng):
    """A member that moves down, or a non-member that moves up, ties or not, leaves the p-value or lowers it."""
    for _ in range(60):
        member, nonmember = rng.integers(0, 15, 20) - 1.0, rng.integers(0, 15, 25) + 0.0
        before = judged(member, nonmember, 0.01)
        member[rng.integers(20)] -= rng.integers(1, 4)
        nonmember[rng.integers(25)] += rng.integers(0, 3)
        after = judged(member, nonmember, 0.01)
        assert after.p_value(0.4) <= before.p_value(0.4) + 1e-9
        assert after.epsilon_bound >= before.epsilon_bound


def test_a_larger_epsilon_has_a_larger_p_value(rng):
    """The p-value never falls as epsilon grows, and the bound is where it passes alpha."""
    for alpha in (0.05, 0.001, 1e-6):
        test = judged(rng.normal(-1.5, 1, 150), rng.normal(0, 1, 120), 1e-4, alpha)
        p_values = [test.p_value(epsilon) for epsilon in np.linspace(0, 4, 60)]
        assert (np.diff(p_values) >= -1e-9).all()
        bound = test.epsilon_bound
        assert bound > 0
        assert test.p_value(bound) <= alpha < test.p_value(bound + 2e-4)


# --- The bound -----------------------------------------------------------------------------------------


def test_scores_that_say_nothing():
    """Equal scores, members above non-members, and a delta that allows everything have a bound of 0."""
    assert judged(np.zeros(50), np.zeros(80), 0.0).epsilon_bound == 0
    assert judged(np.ones(50), np.zeros(80), 0.0).p_value(0.0) == 1
    assert judged(np.zeros(5), np.ones(5), 0.9).epsilon_bound == 0


@pytest.mark.parametrize("epsilon", [19.9, 20.1, 50.0, 800.0])
def test_claims_that_allow_everything_are_kept(epsilon):
    """No few records refute an epsilon near 20 or above it, however well they are distinguished."""
    apart = judged(np.zeros(200), np.ones(150), 1e-5)
    assert apart.p_value(epsilon) > 0.99


@pytest.mark.parametrize(
    ("mu", "size", "published", "runs"),
    [
        (1.0, 300, 1.31, 60),
        pytest.param(1.0, 300, 1.31, 1000, marks=pytest.mark.long),
        pytest.param(1.0, 1000, 1.77, 300, marks=pytest.mark.long),
        pytest.param(2.0, 1000, 3.48, 300, marks=pytest.mark.long),
    ],
)
def test_the_mean_bound_of_two_normals(mu, size, published, runs):
    """N(-mu, 1) given N(0, 1) at delta 1e-5: no lower than another test's, computed apart, and below the truth."""
    bounds = []
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        bounds.append(judged(rng.normal(-mu, 1, size), rng.normal(0, 1, size), 1e-5).epsilon_bound)
    noise = 3 * np.std(bounds) / math.sqrt(runs)
    assert published - 0.04 - noise < np.mean(bounds) < 1.1 * published + noise


def test_total_separation_gives_the_most(rng):
    """More separation never lowers the bound, and that of a perfect attack is about the Clopper-Pearson ceiling."""
    noise = rng.normal(size=(2, 100))
    bounds = [judged(noise[0] - mu, noise[1], 0.0).epsilon_bound for mu in (0.0, 1.0, 2.0, 4.0, 50.0)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == CalibratedTest(Hits.perfect(100, 100), Statistic(100, 100, 0.0, ALPHA)).epsilon_bound
    # At one rank alone all of alpha is spent on log(V/B): 3.28 by two limits of alpha/2 each is below it.
    assert 3.281346 < bounds[-1] < 4.5


# --- Beside `Melded` -------------------------------------------------------------------------------------

_AT = [0.05, 0.01, 0.05 / 30, 0.05 / 60]
_SCORES = {
    "normal": lambda rng, n: (rng.normal(-1, 1, n), rng.normal(0, 1, n)),
    "saturated": lambda rng, n: (rng.exponential(size=n) * (rng.random(n) > 0.7), rng.exponential(size=n)),
    "atoms": lambda rng, n: (rng.binomial(4, 0.3, n) + 0.0, rng.binomial(4, 0.6, n) + 0.0),
}


@pytest.mark.parametrize("scores", _SCORES)
@pytest.mark.parametrize(
    ("size", "runs"),
    [(30, 4), (300, 2), (3000, 1), *(pytest.param(10**k, 5, marks=pytest.mark.long) for k in (2, 4, 5))],
)
def test_the_default_is_never_below_its_own_option(scores, size, runs):
    """On the same losses, at small errors too: the melded bound at fixed ranks is part of what is calibrated."""
    for seed, delta in ((seed, delta) for seed in range(runs) for delta in (0.0, 1e-5)):
        member, nonmember = _SCORES[scores](np.random.default_rng([size, seed]), size)
        losses = Losses(member=member, nonmember=nonmember)
        for alpha in _AT:
            asked = {"delta": delta, "confidence": 1 - alpha}
            own = clopper_pearson(losses, **asked)
            melded = clopper_pearson(losses, **asked, rule=RankGrid(interval=Melded()))
            assert own.details["interval"] == "Calibrated"
            assert own.value >= melded.value
            assert own.details["ceiling"] >= melded.details["ceiling"] - 1e-4


# --- Audits that are drawn from the law ------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 30, 1e-6])
@pytest.mark.parametrize(("sizes", "delta"), [((150, 120), 1e-4), ((40, 300), 0.02)])
def test_drawn_audits_against_exact_sums(rng, sizes, delta, alpha):
    """Weighted, the drawn audits have the chance that the sums have, at any level; the p-value is an upper limit of it."""
    for shift in (0.3, 1.0, 2.0):
        exact = judged(rng.normal(-shift, 1, sizes[0]), rng.normal(0, 1, sizes[1]), delta, alpha)
        drawn = CalibratedTest(exact.hits, exact.law, drawn=True)
        near = max(0.0, exact.statistic)
        least, weights = least_epsilons(exact.law.corners(exact.statistic), exact.law, near=near)
        for epsilon in (near, near + 0.1, exact.epsilon_bound):
            shares = np.where(least <= epsilon, weights, 0.0)
            error = shares.std() / math.sqrt(shares.size)
            assert abs(shares.mean() - exact.p_value(epsilon)) < 4.5 * error + 1e-3 * exact.p_value(epsilon)
            assert error < 0.1 * exact.p_value(epsilon)
            assert exact.p_value(epsilon) < drawn.p_value(epsilon) < 1.4 * exact.p_value(epsilon)
        assert exact.epsilon_bound - 0.06 < drawn.epsilon_bound <= exact.epsilon_bound
        assert drawn.p_value(0.0) >= exact.p_value(0.0) - 2e-9  # what the sums add for rounding
        assert exact.p_value(4.0) - 1e-9 <= drawn.p_value(4.0) <= exact.p_value(4.0) + 0.05


def test_limits_of_drawn_chances():
    """Of equal weights the limit is about that of a binomial number; of fewer than 30 draws that of 30."""
    limits = chances_up_to(np.ones(2500))
    counts = np.array([0, 1, 10, 30, 100, 400])
    known = stats.beta.ppf(0.999, counts + 1, 2500 - counts)
    assert (limits[counts] >= known).all()
    assert (limits[counts[3:]] <= 1.1 * known[3:]).all()
    assert limits[0] == limits[30]
    assert (np.diff(chances_up_to(np.random.default_rng(0).exponential(size=2500))) >= 0).all()


@pytest.mark.parametrize("sizes", [(200, 100), (100, 300)])
def test_the_most_of_a_census_is_what_drawn_audits_show(sizes):
    """A perfect attack on a census is bounded in closed form, by either tail, where drawn audits bound it."""
    law = Statistic(*sizes, 1e-3, ALPHA, Census())
    perfect = CalibratedTest(Hits.perfect(*sizes), law, drawn=True)
    least, _ = least_epsilons(law.corners(perfect.statistic), law, draws=20_000)
    assert perfect.epsilon_bound == pytest.approx(np.quantile(least, ALPHA), abs=0.03)


def test_what_was_seen_before_decides_no_bound():
    """However many audits of the same sizes came before, as many have a bound above a value as by their bounds one by one."""
    rng, rule = np.random.default_rng(3), {"delta": 1e-4, "confidence": 0.9, "rule": RankGrid()}
    for sizes in [(40, 50), (40, 50), (50, 40), (40, 50)]:
        audits = [Losses(rng.normal(-0.4, 1, sizes[0]), rng.normal(size=sizes[1])) for _ in range(12)]
        bounds = [clopper_pearson(audit, **rule).value for audit in audits]
        for above in (0.0, 0.2):
            assert positive_bounds(audits, **rule, above=above) == sum(bound > above for bound in bounds)
