"""Steps with different noise and sampling rates: their epsilon and their curve."""

import math

import numpy as np
import pytest
from oracles import composed_delta

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, PoissonSampling
from auditor.theory import StepPair, claimed_curve, composed, epsilon, gaussian_epsilon

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
FIXED = FixedSizeSampling()


# --- Few different steps -----------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    "training",
    [
        DPSGD([0.8, 1.0, 2.0, 5.0], [0.1, 0.02, 0.3, 0.5]),
        DPSGD([1.0, 1.0, 3.0], 0.05),
        DPSGD(2.0, [0.9, 0.001, 0.1, 1.0]),
        DPSGD(1.0, 0.1, 8),
        DPSGD(2.0, 0.3, 5),
        DPSGD(2.0, 0.1, 4, sampling=FIXED),
        DPSGD(1.0, 0.02, 6, sampling=FIXED),
        DPSGD(3.0, 0.6, 5, sampling=FIXED),
    ],
)
def test_delta_at_the_epsilon_found(training, adjacency):
    """At the epsilon found, the larger delta of both orders is the one requested, by a Fourier transform on a grid."""
    if training.fixed_size and adjacency is ADD_REMOVE:
        return
    found = epsilon(training, delta=1e-5, adjacency=adjacency).value
    ends = (2.0, 0.0) if training.fixed_size else (1.0, -1.0 if adjacency is REPLACE_ONE else 0.0)
    deltas = []
    for high, low in (ends, ends[::-1]) if adjacency is ADD_REMOVE else (ends,):
        kinds = (
            (phase.noise_multiplier, phase.sampling_rate, low, high, phase.steps) for phase in training.phases
        )
        deltas.append(composed_delta(*kinds, epsilon=found, mirrored=training.fixed_size))
    assert max(deltas) == pytest.approx(1e-5, rel=5e-3)


# --- Many different steps ----------------------------------------------------------------------------


@pytest.mark.parametrize("pair", list(StepPair))
def test_many_steps_are_the_exact_gaussian_where_nearly_all_records_take_part(pair):
    """A thousand noises (sixty of a fixed size) at a rate of almost 1 have the exact Gaussian's epsilon, from above."""
    noise = np.geomspace(6.0, 60.0, 60 if pair is StepPair.FIXED_SIZE else 1000)
    sampling = FIXED if pair is StepPair.FIXED_SIZE else PoissonSampling()
    adjacency = ADD_REMOVE if pair is StepPair.ADD_REMOVE else REPLACE_ONE
    law = composed(DPSGD(noise, 1 - 1e-13, sampling=sampling), adjacency=adjacency)
    mu = pair.distance * math.sqrt(np.sum(noise**-2.0))
    for delta in (1e-10, 1e-5):
        exact = gaussian_epsilon(mu, delta=delta)
        assert exact * (1 - 1e-9) < law.epsilon_at(delta) < exact * (1 + 1e-6)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    "training",
    [
        DPSGD([1e-200, 1.0, 1e200], 0.5),
        DPSGD([0.05, 1.0], [1.0, 1e-9]),
        DPSGD([1e-3, 1e6], [1e-9, 0.5]),
        DPSGD(np.geomspace(1e-3, 1e6, 60), np.geomspace(1e-9, 1.0, 60)),
        DPSGD(np.repeat([0.5, 1e6, 2.0], 40_000), np.repeat([1e-6, 0.9, 0.2], 40_000)),
        DPSGD(1e6, np.geomspace(1e-12, 1e-3, 300)),
        DPSGD(np.repeat([0.05, 0.06], 500_000), 1.0),
    ],
)
def test_extremes_give_a_bound_and_a_curve(training, adjacency):
    """Extreme vectors give a bound no larger than without sampling, and a valid curve, never NaN."""
    claim = epsilon(training, delta=1e-5, adjacency=adjacency)
    distance = 2 if adjacency is REPLACE_ONE else 1
    mu = distance * math.hypot(
        *(math.sqrt(phase.steps) / phase.noise_multiplier for phase in training.phases)
    )
    assert 0 <= claim.value <= gaussian_epsilon(mu, delta=1e-5) * (1 + 1e-9)
    assert claim.note
    found = claimed_curve(training, adjacency=adjacency).curve
    rates = np.linspace(0, 1, 21)
    assert (np.array([found.tpr_at(float(rate)) for rate in rates]) >= rates - 1e-12).all()
