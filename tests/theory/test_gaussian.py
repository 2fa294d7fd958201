"""The exact epsilon of a Gaussian mechanism against published values and 60-digit arithmetic."""

import math

import mpmath
import pytest

from auditor.theory.gaussian import gaussian_epsilon


def exact_delta(mu, epsilon):
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle and Wang 2018, Theorem 8), with enough digits."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)

        def phi(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        return float(phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu))


# statistics.md, section 7: GDP eps(mu, 1e-5).
@pytest.mark.parametrize(("mu", "expected"), [(0.5, 1.993091), (1.0, 4.377178), (2.0, 9.997256)])
def test_reference_values(mu, expected):
    """The epsilon at delta 1e-5 agrees with the reference to six digits."""
    assert gaussian_epsilon(mu, delta=1e-5) == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize("mu", [1e-3, 0.05, 1.0, 20.0, 300.0])
@pytest.mark.parametrize("delta", [1e-200, 1e-10, 1e-5, 1e-4, 0.3])
def test_inverts_the_exact_delta(mu, delta):
    """Put back into the exact formula, the epsilon gives the delta it was asked for, or is 0 below it."""
    epsilon = gaussian_epsilon(mu, delta=delta)
    if epsilon == 0:
        assert exact_delta(mu, 0) <= delta
    else:
        assert exact_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)


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
        assert exact_delta(mu, result) <= delta * (1 + 1e-12)
    else:
        assert result == expected
