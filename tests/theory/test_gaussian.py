"""The exact epsilon, delta and mu of a Gaussian mechanism against published values and exact arithmetic."""

import math

import numpy as np
import pytest
from oracles import gaussian_mechanism_delta
from scipy import stats

from auditor.theory import (
    gaussian_delta,
    gaussian_deltas,
    gaussian_epsilon,
    gaussian_epsilons,
    gaussian_mu,
    log_mixture,
)


@pytest.mark.parametrize("mu", [1e-3, 0.05, 1.0, 20.0, 300.0])
@pytest.mark.parametrize("delta", [1e-200, 1e-10, 1e-5, 1e-4, 0.3])
def test_inverts_the_gaussian_mechanism_delta(mu, delta):
    """Put back into the exact formula, the epsilon gives the requested delta, or is 0 below it."""
    epsilon = gaussian_epsilon(mu, delta=delta)
    if epsilon == 0:
        assert gaussian_mechanism_delta(mu, 0) <= delta
    else:
        assert gaussian_mechanism_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(
    ("mu", "delta", "expected"),
    [
        (0.0, 0.0, 0.0),  # identical distributions
        (1.0, 0.0, math.inf),  # no finite epsilon at delta 0
        (1e200, 0.5, math.inf),  # beyond a double
        (1e-300, 1e-5, 0.0),
        (1e-20, 1e-300, pytest.approx(0.0, abs=1e-18)),
        (1e10, 1e-5, pytest.approx(5e19, rel=1e-8)),  # mu^2 / 2 to leading order
        (100.0, 1 - 1e-16, 0.0),  # 1 - 2 Phi(-50) is 1 to all digits, but delta is the double below it
    ],
)
def test_edges(mu, delta, expected):
    """Edge cases give their limits rather than overflow, NaN or an exception."""
    result = gaussian_epsilon(mu, delta=delta)
    if delta > 0.9:
        assert gaussian_mechanism_delta(mu, result) <= delta * (1 + 1e-12)
    else:
        assert result == expected


@pytest.mark.parametrize("mu", [1e-12, 1e-6, 1.4e-3, 1.5e-3, 0.1, 1.0, 30.0, 75.0, 1000.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-3, 1.0, 100.0, 1e4])
def test_delta_is_exact(mu, epsilon):
    """Delta agrees with exact arithmetic to eleven digits, on both sides of the switch between its two forms."""
    exact = 0.0 if epsilon / mu > 100 else gaussian_mechanism_delta(mu, epsilon)
    assert gaussian_delta(mu, epsilon=epsilon) == pytest.approx(exact, rel=1e-11, abs=1e-299)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-9, 1e-3, 1.0, 8.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-20, 1e-5, 0.5, 1 - 1e-9])
def test_mu_inverts_the_gaussian_mechanism_delta(epsilon, delta):
    """Put into the exact formula, mu gives the requested delta."""
    mu = gaussian_mu(epsilon, delta=delta)
    assert gaussian_mechanism_delta(mu, epsilon) == pytest.approx(delta, rel=1e-9)


def test_many_at_once_are_the_same():
    """The vectorised epsilons and deltas are those of the functions for one setting, never below them by a digit."""
    mus, deltas = [0.0, 0.05, 1e10, 1e200], [1e-300, 0.3]
    many = gaussian_epsilons(mus, deltas=np.array(deltas)[:, None]).tolist()
    assert many == [[gaussian_epsilon(mu, delta=delta) for mu in mus] for delta in deltas]
    assert gaussian_epsilons([1.0, 1.0, 0.0], deltas=[0.0, 1.5, 0.0]).tolist() == [math.inf, 0.0, 0.0]
    ones = [gaussian_delta(1.3, epsilon=epsilon) for epsilon in (0.0, 2.0)]
    assert gaussian_deltas(1.3, epsilons=[0.0, 2.0]).tolist() == ones


def test_extremes_of_delta_and_mu():
    """Equal laws, laws far apart and settings beyond a double give their limits."""
    assert gaussian_delta(0.0, epsilon=1.0) == 0.0
    assert gaussian_delta(1e300, epsilon=1e4) == 1.0
    assert gaussian_delta(1e-320, epsilon=1e4) == 0.0
    assert gaussian_mu(1.0, delta=0.0) == 0.0
    assert gaussian_mu(0.0, delta=0.5) == pytest.approx(2 * stats.norm.ppf(0.75), rel=1e-14)
    assert gaussian_mu(1e300, delta=0.5) == pytest.approx(math.sqrt(2) * 1e150, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "rate", "expected"),
    [
        (0.0, 0.3, 0.0),
        (1e-12, 0.1, 1e-13),
        (2.0, 1.0, 2.0),
        (1e4, 0.5, 1e4 + math.log(0.5)),
        (1e300, 1e-9, 1e300),
        (math.inf, 0.5, math.inf),
        (0.5, 1e-300, 1e-300 * math.expm1(0.5)),
    ],
)
def test_extremes_of_a_mixture(epsilon, rate, expected):
    """Tiny, huge and infinite epsilons and rates give their limits."""
    assert float(log_mixture(epsilon, rate)) == pytest.approx(expected, rel=1e-12)
