"""Conversions between epsilon, delta, mu, advantage, error rates and Renyi divergences."""

import math

import numpy as np
import pytest
from scipy import stats

from auditor.theory import (
    conversions as convert,
    epsilon_from_renyi,
)

EPSILONS = [0.01, 1.0, 8.0, 50.0]

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


def test_extremes():
    """Epsilons of 1e4, mus of 1e3 and deltas of 1e-300 give numbers, and their limits where there is one."""
    assert convert.epsilon_from_mu(1e3, delta=1e-300) == pytest.approx(5e5 + 1e3 * 37.0, rel=1e-3)
    assert convert.mu_from_epsilon(1e4, delta=1e-300) == pytest.approx(109.15, abs=0.01)
    assert convert.delta_from_mu(1e3, epsilon=1e4) == 1.0
    assert convert.epsilon_from_mu(1.0, delta=0.0) == math.inf
    assert convert.mu_from_epsilon(1.0, delta=0.0) == 0.0
    assert convert.advantage_from_mu(1e3) == 1.0


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


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_renyi_of_a_gaussian_bounds_it(mu):
    """From a Gaussian's divergences epsilon is above its exact one."""
    orders = np.geomspace(1.001, 500, 200)
    divergences = orders * mu**2 / 2
    for delta in (1e-9, 1e-5, 0.01):
        bound = epsilon_from_renyi(orders, divergences=divergences, delta=delta)
        assert bound >= convert.epsilon_from_mu(mu, delta=delta)
        assert bound <= convert.epsilon_from_mu(mu, delta=delta) * 1.3 + 0.2


def test_renyi_extremes():
    """Infinite divergences promise nothing, none promise everything, and huge ones do not overflow."""
    assert epsilon_from_renyi([2.0], divergences=[math.inf], delta=1e-5) == math.inf
    assert epsilon_from_renyi([2.0, 8.0], divergences=[0.0, 0.0], delta=0.0) == 0.0
    assert epsilon_from_renyi([2.0], divergences=[1.0], delta=0.0) == math.inf
