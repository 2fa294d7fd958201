"""Amplification by subsampling: the formula, the curves, and the sampled Gaussian by direct integration."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.curves import TradeoffCurve
from auditor.theory import (
    amplified,
    gaussian_delta,
    gdp_curve,
    log_mixture,
    symmetric_amplified_curve,
)


def hockey_stick(upper, lower, epsilon, noise):
    """Integral of (P - e^eps Q)+ for two mixtures, each a list of (weight, mean), on a fine grid."""
    x = np.linspace(-10 * noise - 1, 1 + 10 * noise, 400_001)
    first, second = (sum(w * stats.norm.pdf(x, mean, noise) for w, mean in law) for law in (upper, lower))
    return integrate.trapezoid(np.maximum(first - math.exp(epsilon) * second, 0.0), x)


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
def test_extremes(epsilon, rate, expected):
    """Tiny, huge and infinite epsilons and rates give their limits."""
    assert float(log_mixture(epsilon, rate)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.0), (0.01, 0.5), (0.5, 2.0), (0.9, 0.7)])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_bounds_the_sampled_gaussian(rate, noise, epsilon):
    """The amplified Gaussian bounds both orders for added records, exactly in one, and also replaced records."""
    # Before sampling the epsilon was log(1 + (e^eps - 1)/q); a replaced record is twice as far away.
    before = math.log1p(math.expm1(epsilon) / rate)
    near, far = (rate * gaussian_delta(distance / noise, epsilon=before) for distance in (1.0, 2.0))
    inside, outside = [(1 - rate, 0.0), (rate, 1.0)], [(1.0, 0.0)]
    other = [(1 - rate, 0.0), (rate, -1.0)]
    assert amplified(before, delta=near / rate, sampling_rate=rate)[0] == pytest.approx(epsilon)
    assert hockey_stick(inside, outside, epsilon, noise) == pytest.approx(near, rel=1e-6, abs=1e-14)
    assert hockey_stick(outside, inside, epsilon, noise) <= near * (1 + 1e-6)
    assert hockey_stick(inside, other, epsilon, noise) <= far * (1 + 1e-6)


def test_too_little_would_be_noticed():
    """The quadrature can tell: a delta 1% smaller would not bound the sampled Gaussian."""
    near = 0.1 * gaussian_delta(1.0, epsilon=math.log1p(math.expm1(0.5) / 0.1))
    assert hockey_stick([(0.9, 0.0), (0.1, 1.0)], [(1.0, 0.0)], 0.5, 1.0) > 0.99 * near


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_curve_agrees_with_the_formula(rate):
    """At q delta the amplified curve of (epsilon, delta) has exactly the amplified epsilon, and lies below its curve."""
    curve = symmetric_amplified_curve(TradeoffCurve.from_epsilon_delta(1.5, delta=0.01), sampling_rate=rate)
    least, small = amplified(1.5, delta=0.01, sampling_rate=rate)
    assert curve.epsilon_at(small) == pytest.approx(least, rel=1e-9)
    implied = TradeoffCurve.from_epsilon_delta(least, delta=small)
    assert all(curve.tpr_at(x) <= implied.tpr_at(x) + 1e-12 for x in np.linspace(0, 1, 201).tolist())


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_curve_of_the_sampled_gaussian(rate):
    """The amplified curve of a Gaussian step has the privacy profile that integration gives."""
    curve = symmetric_amplified_curve(gdp_curve(1.0), sampling_rate=rate)
    deltas = curve.delta_at([0.0, 0.1, 1.0])
    laws = [(1 - rate, 0.0), (rate, 1.0)], [(1.0, 0.0)]
    for epsilon, delta in zip((0.0, 0.1, 1.0), deltas.tolist(), strict=True):
        both = max(hockey_stick(*laws, epsilon, 1.0), hockey_stick(*laws[::-1], epsilon, 1.0))
        assert both - 1e-9 <= delta <= both * (1 + 1e-4) + 1e-9
