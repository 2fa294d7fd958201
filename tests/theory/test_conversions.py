"""Conversions between epsilon, delta, mu, advantage, error rates, trade-off curves and Renyi divergences."""

import math

import numpy as np
import pytest
from scipy import stats

from auditor.curves import TradeoffCurve
from auditor.theory import (
    advantage_from_curve,
    advantage_from_renyi,
    conversions as convert,
    delta_from_curve,
    delta_from_renyi,
    epsilon_from_curve,
    epsilon_from_renyi,
    gaussian_delta,
    gaussian_deltas,
    gdp_curve,
    mu_from_curve,
    profile_from_curve,
)

EPSILONS = [0.01, 1.0, 8.0, 50.0]
MUS = [1e-3, 0.1, 1.0, 5.0, 30.0]

# --- Numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.2])
def test_epsilon_and_mu_are_inverse(epsilon, delta):
    """From epsilon to mu and back, and from mu to delta, nothing changes."""
    mu = convert.mu_from_epsilon(epsilon, delta=delta)
    assert convert.epsilon_from_mu(mu, delta=delta) == pytest.approx(epsilon, rel=1e-9)
    assert convert.delta_from_mu(mu, epsilon=epsilon) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("advantage", [0.0, 0.01, 0.3, 0.999])
def test_the_advantage_of_mu(advantage):
    """The advantage 2 Phi(mu/2) - 1 is the delta at epsilon 0."""
    mu = 2 * stats.norm.ppf((1 + advantage) / 2)
    assert convert.advantage_from_mu(mu) == pytest.approx(advantage, rel=1e-12)
    assert convert.delta_from_mu(mu, epsilon=0.0) == pytest.approx(advantage, rel=1e-12)


@pytest.mark.parametrize("fpr", [0.0, 1e-9, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("fnr", [0.0, 1e-9, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.2])
def test_rates_are_just_allowed(fpr, fnr, delta):
    """At the epsilon of two rates all four conditions of (epsilon, delta)-DP hold, and not at one 1% smaller."""
    epsilon = convert.epsilon_from_rates(fpr, fnr, delta=delta)
    sets = ((1 - fnr, fpr), (fpr, 1 - fnr), (fnr, 1 - fpr), (1 - fpr, fnr))

    def allowed(value):
        return all(p <= math.exp(value) * q + delta + 1e-15 for p, q in sets)

    if math.isinf(epsilon):
        assert not allowed(500.0)
    else:
        assert allowed(epsilon * (1 + 1e-12))
        assert epsilon < 1e-12 or not allowed(0.99 * epsilon)


def test_mu_of_rates():
    """The mu of two rates is the one whose curve passes through them, whichever side the attacker takes."""
    fnr = 1 - stats.norm.cdf(stats.norm.ppf(0.01) + 1.3)
    assert convert.mu_from_rates(0.01, fnr) == pytest.approx(1.3, rel=1e-12)
    assert convert.mu_from_rates(0.99, 1 - fnr) == pytest.approx(1.3, rel=1e-12)
    assert convert.mu_from_rates(0.3, 0.7) == 0.0
    assert convert.mu_from_rates(0.0, 0.5) == math.inf
    assert convert.mu_from_rates(0.0, 1.0) == 0.0


def test_extremes():
    """Epsilons of 1e4, mus of 1e3 and deltas of 1e-300 give numbers, and their limits where there is one."""
    assert convert.epsilon_from_mu(1e3, delta=1e-300) == pytest.approx(5e5 + 1e3 * 37.0, rel=1e-3)
    assert convert.mu_from_epsilon(1e4, delta=1e-300) == pytest.approx(109.15, abs=0.01)
    assert convert.delta_from_mu(1e3, epsilon=1e4) == 1.0
    assert convert.epsilon_from_mu(1.0, delta=0.0) == math.inf
    assert convert.mu_from_epsilon(1.0, delta=0.0) == 0.0
    assert convert.advantage_from_mu(1e3) == 1.0


# --- Curves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 8.0, 30.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5, 0.3])
def test_curve_of_epsilon_and_delta_gives_them_back(epsilon, delta):
    """The (epsilon, delta) curve has this epsilon at this delta and this delta at this epsilon."""
    curve = TradeoffCurve.from_epsilon_delta(epsilon, delta=delta)
    assert epsilon_from_curve(curve, delta=delta) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)
    assert delta_from_curve(curve, epsilon=epsilon) == pytest.approx(delta, rel=1e-9, abs=1e-12)
    if delta:
        assert epsilon_from_curve(curve, delta=delta / 2) == math.inf
        assert mu_from_curve(curve) == math.inf


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-5, 0.05])
def test_gaussian_curve_gives_its_epsilon_back(mu, delta):
    """The dense Gaussian curve has the exact epsilon and delta, a little above and never below."""
    curve, exact = gdp_curve(mu), convert.epsilon_from_mu(mu, delta=delta)
    assert exact * (1 - 1e-9) <= epsilon_from_curve(curve, delta=delta) <= exact * 1.001 + 1e-6
    deltas = profile_from_curve(curve, epsilons=[0.0, 1.0, 5.0])
    expected = gaussian_deltas(mu, epsilons=[0.0, 1.0, 5.0])
    assert deltas == pytest.approx(expected, rel=1e-3, abs=1e-15)
    assert np.all(deltas >= expected * (1 - 1e-9) - 1e-15)


@pytest.mark.parametrize("mu", MUS)
def test_gaussian_curve_gives_its_mu_back(mu):
    """The dense Gaussian curve has its mu, a little above and never below."""
    assert mu * (1 - 1e-9) <= mu_from_curve(gdp_curve(mu)) <= mu * 1.05


def scanned(curve, deltas_or_epsilons, condition):
    """Smallest parameter at which a condition holds at 20,001 points of the curve."""
    fpr = np.linspace(0, 1, 20_001)
    tpr = np.interp(fpr, curve.fpr, curve.tpr)
    return min(value for value in deltas_or_epsilons if condition(value, fpr, tpr))


@pytest.mark.parametrize(
    "curve",
    [
        TradeoffCurve([0.0, 0.1, 0.3, 1.0], [0.0, 0.5, 0.6, 1.0]),
        TradeoffCurve([0.0, 0.0, 0.4, 0.9, 1.0], [0.0, 0.05, 0.5, 1.0, 1.0]),
        TradeoffCurve([0.0, 0.5, 1.0], [0.0, 0.1, 1.0]),
    ],
)
def test_any_curve_against_a_scan(curve):
    """On asymmetric and sagging curves epsilon and delta agree with a scan of the definition."""

    def above(epsilon, delta, fpr, tpr):
        bound = np.minimum(delta + np.exp(epsilon) * fpr, 1 - np.exp(-epsilon) * (1 - delta - fpr))
        return np.all(tpr <= bound + 1e-9)

    epsilon = scanned(curve, np.linspace(0, 5, 5001), lambda e, x, y: above(e, 0.1, x, y))
    assert epsilon_from_curve(curve, delta=0.1) == pytest.approx(epsilon, abs=2e-3)
    delta = scanned(curve, np.linspace(0, 1, 10_001), lambda d, x, y: above(0.5, d, x, y))
    assert delta_from_curve(curve, epsilon=0.5) == pytest.approx(delta, abs=2e-4)
    gap = np.max(curve.tpr - curve.fpr)
    assert advantage_from_curve(curve) == pytest.approx(max(0.0, gap))


def test_one_sided_jump_is_infinite():
    """A curve that is certain about non-members only is infinite at a smaller delta, though it starts at 0."""
    curve = TradeoffCurve([0.0, 0.7, 1.0], [0.0, 1.0, 1.0])
    assert epsilon_from_curve(curve, delta=0.1) == math.inf
    assert epsilon_from_curve(curve, delta=0.3) == pytest.approx(math.log(1 / 0.7 - 0.3 / 0.7), abs=1e-12)
    assert mu_from_curve(curve) == math.inf


# --- Renyi divergences ----------------------------------------------------------------------------


ORDERS = [1.25, 1.5, 2, 3, 4, 8, 16, 32, 64, 256]


@pytest.mark.parametrize("scale", [1e-6, 0.01, 0.5, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_renyi_agrees_with_dp_accounting(scale, delta):
    """Epsilon and delta are those of dp_accounting for the same divergences."""
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    divergences = scale * np.array(ORDERS)
    expected, _ = rdp.compute_epsilon(ORDERS, divergences, delta)
    assert epsilon_from_renyi(ORDERS, divergences=divergences, delta=delta) == pytest.approx(
        expected, rel=1e-12
    )
    for epsilon in (0.0, 0.3, 5.0):
        theirs, _ = rdp.compute_delta(ORDERS, divergences, epsilon)
        ours = delta_from_renyi(ORDERS, divergences=divergences, epsilon=epsilon)
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_renyi_of_a_gaussian_bounds_it(mu):
    """From a Gaussian's divergences epsilon, delta and advantage are above its exact ones."""
    orders = np.geomspace(1.001, 500, 200)
    divergences = orders * mu**2 / 2
    for delta in (1e-9, 1e-5, 0.01):
        bound = epsilon_from_renyi(orders, divergences=divergences, delta=delta)
        assert bound >= convert.epsilon_from_mu(mu, delta=delta)
        assert bound <= convert.epsilon_from_mu(mu, delta=delta) * 1.3 + 0.2
    assert delta_from_renyi(orders, divergences=divergences, epsilon=1.0) >= gaussian_delta(mu, epsilon=1.0)
    assert advantage_from_renyi(orders, divergences=divergences) >= convert.advantage_from_mu(mu)


def test_renyi_extremes():
    """Infinite divergences promise nothing, none promise everything, and huge ones do not overflow."""
    assert epsilon_from_renyi([2.0], divergences=[math.inf], delta=1e-5) == math.inf
    assert epsilon_from_renyi([2.0, 8.0], divergences=[0.0, 0.0], delta=0.0) == 0.0
    assert epsilon_from_renyi([2.0], divergences=[1.0], delta=0.0) == math.inf
    assert delta_from_renyi([2.0], divergences=[1e308], epsilon=1e4) == 1.0
    assert delta_from_renyi([2.0, 1e6], divergences=[1.0, 1e6], epsilon=1e4) < 1e-300
    assert advantage_from_renyi([2.0], divergences=[math.inf]) == 1.0
