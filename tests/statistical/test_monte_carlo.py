"""The intervals of the Monte Carlo total variation hold their level, and the estimate has no bias."""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import ALPHA, outside, seldom

from auditor.core import DPSGD, Adjacency, FixedSizeSampling
from auditor.theory.monte_carlo import (
    Hoeffding,
    SampleVariance,
    total_variation_monte_carlo,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
REPLACED = 0.1 * (2 * stats.norm.cdf(1) - 1)  # p (2 Phi(mu/2) - 1) with mu = 2/s

# Setting, adjacency, exact value (statistics.md, section 7), samples a run, runs for CI and at full size.
SETTINGS = {
    "one step": (DPSGD(1.0, 0.1, 1), ADD_REMOVE, 0.038292492, 2000, (400, 5000)),
    "one step, little noise": (DPSGD(0.5, 0.01, 1), ADD_REMOVE, 0.006826895, 2000, (400, 5000)),
    "100 steps": (DPSGD(1.0, 0.1, 100), ADD_REMOVE, 0.438758, 500, (100, 3000)),
    "one step, replaced": (DPSGD(1.0, 0.1, 1), REPLACE_ONE, REPLACED, 2000, (400, 5000)),
    "1000 steps, replaced": (DPSGD(1.0, 0.01, 1000), REPLACE_ONE, 0.2643522, 200, (25, 1500)),
    "fixed size": (
        DPSGD(1.0, 0.1, 1, sampling=FixedSizeSampling()), REPLACE_ONE, REPLACED, 2000, (400, 5000),
    ),
}  # fmt: skip


def claims(training, adjacency, *, samples, **arguments):
    """One simulation."""
    return lambda rng: total_variation_monte_carlo(
        training, adjacency=adjacency, samples=samples, rng=rng, threads=1, **arguments
    )


def missed(exact, *setting, **arguments):
    """Whether the interval of one simulation does not hold the exact value."""
    return lambda rng: outside(exact, claims(*setting, **arguments)(rng))


@pytest.mark.parametrize("interval", [Hoeffding(), SampleVariance()])
@pytest.mark.parametrize("name", SETTINGS)
def test_intervals_cover(simulated, name, interval):
    """Every interval misses the exact value in at most 5% of the simulations, and the mean of all has no bias."""
    training, adjacency, exact, samples, runs = SETTINGS[name]

    def value_and_miss(rng):
        claim = claims(training, adjacency, samples=samples, interval=interval)(rng)
        return claim.value, outside(exact, claim)

    values, misses = simulated(value_and_miss, seed=1, runs=runs).T
    assert seldom(misses)
    assert abs(np.mean(values) - exact) <= 4 * np.std(values, ddof=1) / math.sqrt(values.size)


def test_the_simulation_can_fail(simulated):
    """It catches the approximate interval where few samples differ, and the printed Algorithm 1; Hoeffding's survives."""
    # Almost no noise: a run shows the record with probability 0.002 and else hardly anything.
    for interval, holds in ((SampleVariance(), False), (Hoeffding(), True)):
        event = missed(0.002, DPSGD(0.05, 0.002, 1), REPLACE_ONE, samples=100, interval=interval)
        assert seldom(simulated(event, seed=5, runs=(300, 300))) == holds
    width = Hoeffding().half_width(samples=2000, variance=1.0, confidence=1 - ALPHA)

    def wrong(rng):
        eta = np.log(1 + 0.1 * (np.exp((2 * rng.normal(size=2000) - 1) / 2) - 1))
        return abs(np.mean(1 - np.exp(np.maximum(eta, 0))) - 0.038292492) > width

    assert not seldom(simulated(wrong, seed=6, runs=(300, 300)))
