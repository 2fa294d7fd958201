"""Monte Carlo total variation against exact values, the paper's own algorithm, and its limits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, PoissonSampling
from auditor.theory import composed, simulated
from auditor.theory.monte_carlo import (
    _draw_normal,
    hoeffding,
    total_variation_monte_carlo,
    values_of,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
POISSON, FIXED = PoissonSampling(), FixedSizeSampling()
KINDS = [(ADD_REMOVE, POISSON), (REPLACE_ONE, POISSON), (REPLACE_ONE, FIXED)]


def estimate(training, seed=0, *, adjacency=REPLACE_ONE, samples=500_000, **arguments):
    """The estimate, and its standard error by other draws."""
    setting = {"adjacency": adjacency, "samples": samples, **arguments}
    claim = total_variation_monte_carlo(training, rng=np.random.default_rng(seed), **setting)
    law = simulated(training, adjacency=adjacency)
    loss = law.draw(min(samples, 20_000), rng=np.random.default_rng([seed, 1]), tick=lambda _: None)
    return claim, values_of(loss, symmetric=law.symmetric).std(ddof=1) / math.sqrt(samples)


@pytest.mark.parametrize(
    "training",
    [
        DPSGD(0.7, 0.05, 50),
        DPSGD(0.5, 0.9, 5),
        DPSGD(0.3, 0.5, 6),
        DPSGD([1.0] * 20 + [0.5] * 5 + [2.0] * 3, [0.1] * 20 + [0.02] * 5 + [1.0] * 3),
        DPSGD(2.0, 0.003, 600),  # several logarithms
    ],
)
@pytest.mark.parametrize(("adjacency", "sampling"), KINDS)
def test_agrees_with_the_exact_law(training, adjacency, sampling):
    """For every kind of step, and vectors, the estimate is within 4.5 standard errors of the exact law."""
    training = replace(training, sampling=sampling)
    claim, error = estimate(training, seed=3, adjacency=adjacency, samples=40_000)
    exact = composed(training, adjacency=adjacency).total_variation()
    assert abs(claim.value - exact) <= 4.5 * error + 1e-8


def test_the_normals_are_normal():
    """Both halves of the draws are normal up to the fourth moment and beyond, and do not depend on each other."""
    rng, out, spare = np.random.default_rng(19), np.empty(1_000_000), np.empty(1_000_000)
    _draw_normal(rng, out, spare, deviation=1.0)
    first, second = np.split(out, 2)
    for half in (first, second):
        assert stats.kstest(half, "norm").pvalue > 1e-3
        assert abs(np.mean(half**4) - 3) <= 4 * math.sqrt(96 / half.size)  # Var x^4 = 105 - 9
        tail = np.sum(np.abs(half) > 3.5)
        assert abs(tail - half.size * 2 * stats.norm.sf(3.5)) <= 4 * math.sqrt(tail)
    for one, other in ((first, second), (first**2, second**2), (first**2, second)):
        assert abs(np.corrcoef(one, other)[0, 1]) <= 4 / math.sqrt(first.size)
    _draw_normal(np.random.default_rng(19), wide := np.empty(1_000_000), spare, deviation=3.0)
    assert np.allclose(wide, 3 * out, rtol=1e-13)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_the_number_of_threads_does_not_matter(adjacency):
    """One, two and five threads give the same claim to the last digit; another seed gives another."""
    training = DPSGD(1.0, 0.1, 3)
    settings = {"adjacency": adjacency, "samples": 70_001}
    claims = [estimate(training, 9, threads=threads, **settings) for threads in (1, 2, 5, None)]
    assert all(claim == claims[0] for claim in claims)
    assert estimate(training, 10, **settings)[0].value != claims[0][0].value


@pytest.mark.parametrize(
    ("adjacency", "sampling", "pinned"),
    [  # seen alike under numpy 1.26.4 and 2.4.6
        (ADD_REMOVE, POISSON, 0.15641992246825417),
        (REPLACE_ONE, POISSON, 0.26860962109508707),
        (REPLACE_ONE, FIXED, 0.32204872651206135),
    ],
)
def test_a_seed_gives_the_same_number_on_every_numpy(adjacency, sampling, pinned):
    """A seeded run gives the same number under numpy 1.26 and 2.4, to the rounding of their exponentials."""
    training = DPSGD([0.8, 1.0], [0.2, 0.3], sampling=sampling)
    claim, _ = estimate(training, seed=12, adjacency=adjacency, samples=20_000)
    assert claim.value == pytest.approx(pinned, rel=1e-12)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_steps_without_sampling_cost_nothing(adjacency):
    """At rate 1 the run is one normal: 1e7 steps at noise 0.05 give 1, and 1e6 at noise 1000 the exact value, at once."""
    assert simulated(DPSGD(0.05, 1.0, 10_000_000), adjacency=adjacency).length == 1  # nothing to go through
    sure, _ = estimate(DPSGD(0.05, 1.0, 10_000_000), adjacency=adjacency)
    some, error = estimate(DPSGD(1000.0, 1.0, 1_000_000), adjacency=adjacency)
    assert sure.value == 1
    shift = (2.0 if adjacency is REPLACE_ONE else 1.0) * math.sqrt(1_000_000) / 1000.0
    assert abs(some.value - (2 * stats.norm.cdf(shift / 2) - 1)) <= 4 * error


@pytest.mark.parametrize("noise", [0.05, 0.01, 1e-3, 1e-200])
@pytest.mark.parametrize(("adjacency", "sampling"), KINDS)
def test_almost_no_noise(noise, adjacency, sampling):
    """With almost no noise a record shows as soon as it is drawn: total variation 1 - (1 - p)^T, without overflow."""
    training = DPSGD(noise, 0.02, 60, sampling=sampling)
    claim, error = estimate(training, seed=13, adjacency=adjacency, samples=20_000)
    # Seen from the world without the record there is no chance left at all.
    assert abs(claim.value - (1 - 0.98**60)) <= 4 * error + 1e-12


@pytest.mark.parametrize("rate", [0.5, 0.999, 1 - 1e-12])
@pytest.mark.parametrize(("adjacency", "sampling"), KINDS)
def test_certainty_is_one(rate, adjacency, sampling):
    """Many steps with little noise give exactly 1, however far the likelihood ratios leave a double's range."""
    training = DPSGD(0.06, rate, 2000, sampling=sampling)
    claim, _ = estimate(training, adjacency=adjacency, samples=500)
    assert claim.value == claim.upper == 1


@pytest.mark.parametrize("rate", [1e-6, 1e-12, 1e-100])
def test_tiny_rates_keep_their_digits(rate):
    """One step at rate p gives p (2 Phi(1/(2s)) - 1), or with 1/s for replaced records, in relative terms."""
    for (adjacency, sampling), reach in zip(KINDS, (0.5, 1.0, 1.0), strict=True):
        training = DPSGD(1.5, rate, 1, sampling=sampling)
        claim, error = estimate(training, adjacency=adjacency, samples=100_000)
        exact = rate * (2 * stats.norm.cdf(reach / 1.5) - 1)
        assert abs(claim.value - exact) <= 4 * error
        assert error < 0.01 * exact


def test_the_interval_by_its_formula():
    """The half-width is Hoeffding's 1963; 61,031 samples do where the paper takes 500,000 by its Proposition 8."""
    assert hoeffding(1000, confidence=0.9) == pytest.approx(math.sqrt(math.log(20) / 2000))
    assert hoeffding(61_031, confidence=1 - 1e-5) <= 0.01 < hoeffding(61_030, confidence=1 - 1e-5)


@pytest.mark.parametrize(
    "training",
    [DPSGD(1.0, 0.1, 700), DPSGD([1.0, 2.0, 3.0], 0.1), DPSGD(1.0, 1.0, 9), DPSGD(1.0, 0.99, 5000)],
)
def test_progress_counts_up_to_all(training):
    """Progress rises to the total, which is the last report, in about a thousand calls at most."""
    told, samples = [], 70_001 if training.steps < 1000 else 100
    settings = {"rng": np.random.default_rng(0), "threads": 2, "progress": lambda *step: told.append(step)}
    total_variation_monte_carlo(training, samples=samples, **settings)
    done, totals = zip(*told, strict=True)
    assert list(done) == sorted(set(done))
    assert len(set(totals)) == 1
    assert done[-1] == totals[0]
    assert len(told) <= 1001


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_can_stop_the_simulation(threads):
    """An exception of progress ends the simulation, which would take minutes, and reaches the caller."""
    told = []

    def stop(done, total):
        told.append(done / total)
        raise KeyError

    settings = {"samples": 70_001, "rng": np.random.default_rng(0), "threads": threads, "progress": stop}
    with pytest.raises(KeyError):
        total_variation_monte_carlo(DPSGD(1.0, 0.5, 200_000), **settings)
    assert max(told) < 0.05
    assert len(told) <= 3  # once for each block of runs at most
