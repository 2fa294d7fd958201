"""Conversions between epsilon, delta, mu, advantage, error rates, trade-off curves and Renyi divergences."""

import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from auditor.core import InputError
from auditor.curves import TradeoffCurve
from auditor.theory import (
    advantage_from_curve,
    advantage_from_renyi,
    conversions as convert,
    curve_from_renyi,
    delta_from_curve,
    delta_from_renyi,
    epsilon_from_curve,
    epsilon_from_renyi,
    gaussian_delta,
    gaussian_deltas,
    gdp_curve,
    mu_from_curve,
    profile_from_curve,
    renyi_from_mu,
    renyi_from_pure_epsilon,
)

EPSILONS = [0.01, 1.0, 8.0, 50.0]
MUS = [1e-3, 0.1, 1.0, 5.0, 30.0]

# --- Numbers --------------------------------------------------------------------------------------


# statistics.md, section 7.
def test_reference_values():
    """The published numbers come out: GDP epsilons, mus and delta, and the epsilon of error rates."""
    by_mu = [convert.epsilon_from_mu(mu, delta=1e-5) for mu in (0.5, 1.0, 2.0)]
    assert by_mu == pytest.approx([1.993091, 4.377178, 9.997256], abs=6e-7)
    by_epsilon = [convert.mu_from_epsilon(epsilon, delta=1e-5) for epsilon in (1.0, 8.0)]
    assert by_epsilon == pytest.approx([0.268051, 1.666031], abs=6e-7)
    assert convert.delta_from_mu(1.0, epsilon=1.0) == pytest.approx(0.12693674, abs=5e-9)
    assert convert.epsilon_from_rates(0.001, 0.8, delta=0.001) == pytest.approx(5.293305, abs=5e-7)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.2])
def test_epsilon_and_mu_are_inverse(epsilon, delta):
    """From epsilon to mu and back, and from mu to delta, nothing changes."""
    mu = convert.mu_from_epsilon(epsilon, delta=delta)
    assert convert.epsilon_from_mu(mu, delta=delta) == pytest.approx(epsilon, rel=1e-9)
    assert convert.delta_from_mu(mu, epsilon=epsilon) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("advantage", [0.0, 1e-12, 0.3, 0.999])
def test_advantage_and_mu_are_inverse(advantage):
    """From advantage to mu and back nothing changes; it is the delta at epsilon 0."""
    mu = convert.mu_from_advantage(advantage)
    assert convert.advantage_from_mu(mu) == pytest.approx(advantage, rel=1e-12)
    assert convert.delta_from_mu(mu, epsilon=0.0) == pytest.approx(advantage, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.5, 1.0, 1.0001, 10.0, 300.0])
def test_pure_epsilon_to_mu(epsilon):
    """The mu of pure epsilon is 2 Phi^-1(e^eps/(1 + e^eps)), by 60 digits and a root of its own."""
    mu = convert.mu_from_pure_epsilon(epsilon)
    with mpmath.workdps(300):
        corner = mpmath.erfc(mpmath.mpf(mu) / 2 / mpmath.sqrt(2)) / 2
        assert float(corner) == pytest.approx(float(1 / (1 + mpmath.exp(epsilon))), rel=1e-11)
    if epsilon == 1e-9:
        assert mu == pytest.approx(1e-9 * math.sqrt(2 * math.pi) / 2, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_pure_epsilon_mu_is_valid_and_tight(epsilon):
    """The mu-GDP curve lies above the (epsilon, 0) curve, and touches it."""
    pure = TradeoffCurve.from_epsilon_delta(epsilon, delta=0.0)
    assert mu_from_curve(pure) == pytest.approx(convert.mu_from_pure_epsilon(epsilon), rel=1e-9)


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
    assert convert.mu_from_pure_epsilon(1e4) == pytest.approx(2 * math.sqrt(2e4), rel=1e-3)
    assert convert.advantage_from_mu(1e3) == 1.0


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: convert.epsilon_from_mu(-1.0, delta=0.1), "mu must be 0 or more, got -1"),
        (lambda: convert.epsilon_from_mu(1.0, delta=1.0), r"delta must lie in \[0, 1\), got 1"),
        (lambda: convert.delta_from_mu(1.0, epsilon=-1.0), "epsilon must be 0 or more, got -1"),
        (lambda: convert.mu_from_epsilon(math.nan, delta=0.1), "epsilon must be finite, got nan"),
        (lambda: convert.mu_from_pure_epsilon(-1.0), "epsilon must be 0 or more, got -1"),
        (lambda: convert.mu_from_advantage(1.0), r"advantage must lie in \[0, 1\), got 1"),
        (lambda: convert.advantage_from_mu(-1.0), "mu must be 0 or more, got -1"),
        (lambda: convert.epsilon_from_rates(1.1, 0.0, delta=0.0), r"fpr must lie in \[0, 1\], got 1.1"),
        (lambda: convert.mu_from_rates(0.1, -0.1), r"fnr must lie in \[0, 1\], got -0.1"),
        (lambda: epsilon_from_curve(gdp_curve(1.0), delta=1.0), r"delta must lie in \[0, 1\), got 1"),
        (lambda: delta_from_curve(gdp_curve(1.0), epsilon=-1.0), "epsilon must be 0 or more, got -1"),
        (
            lambda: profile_from_curve(gdp_curve(1.0), epsilons=[0.0, math.nan]),
            "epsilons must be 0 or more, got nan at position 1",
        ),
        (
            lambda: epsilon_from_renyi([1.0], divergences=[1.0], delta=0.1),
            "orders must be finite and above 1, got 1",
        ),
        (
            lambda: delta_from_renyi([2, 3], divergences=[1.0, -2.0], epsilon=1.0),
            "divergences must be 0 or more, got -2",
        ),
        (lambda: advantage_from_renyi([2, 3], divergences=[1.0]), "orders has 2, divergences has 1"),
        (
            lambda: curve_from_renyi([], divergences=[]),
            "number of orders must be a whole number of 1 or more, got 0",
        ),
        (lambda: renyi_from_mu(1.0, order=1.0), "order must be above 1, got 1"),
        (lambda: renyi_from_pure_epsilon(-1.0, order=2.0), "epsilon must be 0 or more, got -1"),
    ],
)
def test_bad_input(call, match):
    """A number out of range is refused in one sentence that names it."""
    with pytest.raises(InputError, match=match):
        call()


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


def test_no_leakage():
    """On the diagonal every number is 0."""
    curve = TradeoffCurve([0.0, 1.0], [0.0, 1.0])
    assert epsilon_from_curve(curve, delta=0.0) == 0.0
    assert (delta_from_curve(curve, epsilon=0.0), mu_from_curve(curve), advantage_from_curve(curve)) == (
        0,
        0,
        0,
    )


def test_huge_epsilon_of_a_curve():
    """An epsilon beyond every slope leaves only the jump, without overflow."""
    curve = TradeoffCurve.from_epsilon_delta(1.0, delta=0.1)
    assert profile_from_curve(curve, epsilons=[1e4, 1e308]) == pytest.approx([0.1, 0.1])


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
    """From a Gaussian's divergences epsilon, delta, advantage and curve are above its exact ones."""
    orders = np.geomspace(1.001, 500, 200)
    divergences = [renyi_from_mu(mu, order=order) for order in orders.tolist()]
    for delta in (1e-9, 1e-5, 0.01):
        bound = epsilon_from_renyi(orders, divergences=divergences, delta=delta)
        assert bound >= convert.epsilon_from_mu(mu, delta=delta)
        assert bound <= convert.epsilon_from_mu(mu, delta=delta) * 1.3 + 0.2
    assert delta_from_renyi(orders, divergences=divergences, epsilon=1.0) >= gaussian_delta(mu, epsilon=1.0)
    assert advantage_from_renyi(orders, divergences=divergences) >= convert.advantage_from_mu(mu)
    curve = curve_from_renyi(orders, divergences=divergences)
    for fpr in (0.0, 1e-6, 0.01, 0.5, 0.99):
        assert curve.tpr_at(fpr) >= stats.norm.cdf(stats.norm.ppf(fpr) + mu) - 1e-12


@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("order", [1.5, 4.0])
def test_renyi_of_mu_by_integration(mu, order):
    """The divergence of two normals is the integral of its definition."""

    def integrand(x):
        return math.exp(order * stats.norm.logpdf(x, mu) + (1 - order) * stats.norm.logpdf(x))

    moment = integrate.quad(integrand, -40, 40, points=[order * mu], limit=300)[0]
    assert renyi_from_mu(mu, order=order) == pytest.approx(math.log(moment) / (order - 1), rel=1e-8)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.4999, 0.5001, 3.0, 1e4])
@pytest.mark.parametrize("order", [1.0001, 2.0, 50.0])
def test_renyi_of_pure_epsilon(epsilon, order):
    """The divergence of randomised response agrees with exact arithmetic, and never exceeds epsilon."""
    with mpmath.workdps(80):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        moment = (mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))
        exact = float(mpmath.log(moment) / (a - 1))
    found = renyi_from_pure_epsilon(epsilon, order=order)
    assert found == pytest.approx(exact, rel=1e-9)
    assert found <= epsilon


def test_renyi_extremes():
    """Infinite divergences promise nothing, none promise everything, and huge ones do not overflow."""
    assert epsilon_from_renyi([2.0], divergences=[math.inf], delta=1e-5) == math.inf
    assert epsilon_from_renyi([2.0, 8.0], divergences=[0.0, 0.0], delta=0.0) == 0.0
    assert epsilon_from_renyi([2.0], divergences=[1.0], delta=0.0) == math.inf
    assert delta_from_renyi([2.0], divergences=[1e308], epsilon=1e4) == 1.0
    assert delta_from_renyi([2.0, 1e6], divergences=[1.0, 1e6], epsilon=1e4) < 1e-300
    assert advantage_from_renyi([2.0], divergences=[math.inf]) == 1.0
    assert curve_from_renyi([2.0], divergences=[math.inf]).tpr_at(0.0) == 1.0
    assert renyi_from_mu(1e200, order=2.0) == math.inf
