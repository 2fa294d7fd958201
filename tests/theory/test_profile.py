"""Trade-off curves from privacy profiles: exact corners, never below the truth, and close to it."""

import math

import numpy as np
import pytest
from scipy import stats

from auditor.core import DPSGD, Adjacency, InputError, StatedClaim
from auditor.curves import TradeoffCurve
from auditor.estimators import of_curve, of_gdp, rejects
from auditor.theory import claimed_curve, epsilon, gaussian_epsilon

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
RATES = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 60), 1 - np.geomspace(0.5, 1e-9, 60), [1.0]])


def tpr(curve, rates):
    """The curve at many false positive rates."""
    return np.array([curve.tpr_at(float(rate)) for rate in rates])


# --- Corners ------------------------------------------------------------------------------------------


def test_the_curve_is_the_lowest_of_all_pieces(rng):
    """At every rate the curve equals the minimum over the given (epsilon, delta), straight from the definition."""
    for size in (1, 2, 5, 40):
        epsilons, deltas = rng.gamma(1.0, 2.0, size), rng.random(size) ** 4
        curve = TradeoffCurve.from_profile(epsilons, deltas=deltas)
        lowest = [
            min(
                min(1.0, d + math.exp(e) * a, 1 - math.exp(-e) * max(0.0, 1 - d - a))
                for e, d in zip(epsilons, deltas, strict=True)
            )
            for a in RATES
        ]
        assert tpr(curve, RATES) == pytest.approx(lowest, abs=1e-12)


def test_points_that_say_nothing_change_nothing():
    """Repeated, implied and unordered points leave the curve as it is."""
    plain = TradeoffCurve.from_profile([0.0, 1.0, 800.0], deltas=[0.3, 0.1, 0.05])
    noisy = TradeoffCurve.from_profile(
        [1.0, 0.0, 800.0, 1.0, 900.0, 0.5, 2.0], deltas=[0.1, 0.3, 0.09, 0.2, 0.05, 0.9, 0.1]
    )
    assert tpr(noisy, RATES) == pytest.approx(tpr(plain, RATES), abs=1e-15)


@pytest.mark.parametrize(
    ("epsilons", "deltas", "sentence"),
    [
        ([], [], "number of epsilons"),
        ([1.0], [0.1, 0.2], "epsilons"),
        ([-1.0], [0.1], r"epsilons must lie in \[0, inf\], got -1 at position 0"),
        ([1.0, 2.0], [0.1, math.nan], r"deltas must lie in \[0, 1\], got nan at position 1"),
    ],
)
def test_bad_profiles_are_refused(epsilons, deltas, sentence):
    """Empty, unequal and impossible profiles are refused in one sentence with the place."""
    with pytest.raises(InputError, match=sentence):
        TradeoffCurve.from_profile(epsilons, deltas=deltas)


# --- DP-SGD -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("training", "adjacency", "mu"),
    [
        (DPSGD(1.0, 1.0, 1), ADD_REMOVE, 1.0),
        (DPSGD(1.0, 1.0, 1), REPLACE_ONE, 2.0),
        (DPSGD(20.0, 1.0, 100), ADD_REMOVE, 0.5),
        (DPSGD(2.0, 1 - 1e-12, 4), ADD_REMOVE, 1.0),
        (DPSGD(2.0, 1 - 1e-12, 4), REPLACE_ONE, 2.0),
    ],
)
def test_unsampled_training_has_the_gaussian_curve(training, adjacency, mu):
    """Without sampling the curve is Phi(Phi^-1(a) + mu): never below it, and within 2e-4, by either route."""
    found = claimed_curve(training, adjacency=adjacency)
    gap = tpr(found.curve, RATES) - stats.norm.cdf(stats.norm.ppf(RATES) + mu)
    assert gap.min() >= -1e-13
    assert gap.max() < 2e-4


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("rate", "noise"), [(0.3, 0.8), (0.01, 0.6)])
def test_one_sampled_step_is_never_below_the_exact_curve(rate, noise, adjacency):
    """At exact points of both orders of one sampled step, from normal tails, the curve lies on or above, and near."""
    found = claimed_curve(DPSGD(noise, rate, 1), adjacency=adjacency)
    at = np.linspace(-6 * noise - 1, 6 * noise + 1, 400)
    mixture = lambda mean: [  # noqa: E731
        (1 - rate) * tail(at / noise) + rate * tail((at - mean) / noise)
        for tail in (stats.norm.sf, stats.norm.cdf)
    ]
    with_record, without = mixture(1.0), mixture(-1.0 if adjacency is REPLACE_ONE else 0.0)
    for fpr, exact in ((without[0], with_record[0]), (with_record[1], without[1])):
        gap = tpr(found.curve, fpr) - exact
        assert gap.min() >= -1e-12
    if adjacency is REPLACE_ONE:
        assert gap.max() < 1e-4


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_curve_agrees_with_the_claimed_epsilon(adjacency):
    """The curve lies below the three pieces of the exact epsilon at a delta, and touches them."""
    training = DPSGD(1.0, 0.02, 200)
    found = claimed_curve(training, adjacency=adjacency)
    for delta in (1e-7, 1e-4):
        value = epsilon(training, delta=delta, adjacency=adjacency).value
        piece = TradeoffCurve.from_epsilon_delta(value, delta=delta)
        gap = tpr(piece, RATES) - tpr(found.curve, RATES)
        assert gap.min() >= -1e-6  # 200 points of the profile, and the lines between
        assert np.min(gap / tpr(piece, RATES)) < 0.02


def test_the_whole_curve_says_more_than_one_point():
    """By the whole curve, guesses refute a claim that they do not refute by its epsilon at one delta."""
    curve = of_curve(claimed_curve(DPSGD(1.0, 1.0, 1)).curve)
    counts = {"bits": 1000, "guesses": 1000, "correct": 960, "alpha": 0.05}
    point = TradeoffCurve.from_epsilon_delta(gaussian_epsilon(1.0, delta=1e-5), delta=1e-5)
    assert rejects(of_gdp(1.01), **counts)
    assert rejects(curve, **counts)
    assert not rejects(of_curve(point), **counts)


# --- Statements ---------------------------------------------------------------------------------------


def test_a_statement_has_its_own_curve():
    """A stated (epsilon, delta) has its three pieces; for replaced records those of (2 epsilon, (1 + e^epsilon) delta)."""
    claim = StatedClaim(1.0, 1e-3)
    own, replaced = (claimed_curve(claim, adjacency=adjacency).curve for adjacency in Adjacency)
    assert own.tpr_at(0.0) == pytest.approx(1e-3)
    assert replaced.tpr_at(0.01) == pytest.approx((1 + math.e) * 1e-3 + math.exp(2) * 0.01)


def test_a_statement_that_implies_nothing_has_no_curve():
    """Replace-one says nothing of adding a record; a converted delta of 1 or more still leaves the curve of two steps."""
    assert claimed_curve(StatedClaim(1.0, 0.0, REPLACE_ONE)).curve is None
    twice = claimed_curve(StatedClaim(9.0, 0.1), adjacency=REPLACE_ONE).curve
    assert twice.tpr_at(0.0) == pytest.approx(
        1 - 0.8 * math.exp(-9), abs=1e-15
    )  # T(.1) on the second piece of T
    with pytest.raises(InputError, match="adjacency"):
        claimed_curve(StatedClaim(1.0, 0.0), adjacency="swap")
