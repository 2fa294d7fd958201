"""Steps with different noise and sampling rates: their epsilon and their curve."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.special import ndtr

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, PoissonSampling
from auditor.theory import StepPair, claimed_curve, composed, epsilon, gaussian_epsilon

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
FIXED = FixedSizeSampling()


# --- Oracles -----------------------------------------------------------------------------------------


def step_laws(noise, rate, pair):
    """One step's losses and their masses, in each order of the two laws."""
    if pair is StepPair.FIXED_SIZE:  # positive beyond 1, mirrored, and 0 for the rest; both orders are alike
        x = np.linspace(1, 2 + 9 * noise, 200_001)
        bell = np.exp(-(x**2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi)) * (x[1] - x[0])
        up = bell * (1 - rate + rate * np.exp((2 * x - 2) / noise**2))
        losses = np.concatenate([np.log(up / bell), -np.log(up / bell), [0.0]])
        return [(losses, np.concatenate([up, bell, [1 - up.sum() - bell.sum()]]))]
    x = np.linspace(-1 - 9 * noise, 1 + 9 * noise, 200_001)
    bell = np.exp(-(x**2) / (2 * noise**2))
    bell /= bell.sum()
    up, down = (1 - rate + rate * np.exp((2 * sign * x - 1) / (2 * noise**2)) for sign in (1, -1))
    if pair is StepPair.ADD_REMOVE:
        down = np.ones_like(x)
    loss = np.log(up) - np.log(down)
    return [(loss, bell * up), (-loss, bell * down)]


def convolved_delta(training, pair, at, *, rule, spacing=2e-4):
    """The larger delta of both orders, from losses rounded by the rule and convolved step by step."""
    found = []
    for laws in zip(*(step_laws(s, p, pair) for s, p in zip(*columns(training), strict=True)), strict=True):
        total, start = np.ones(1), 0
        for loss, mass in laws:
            index = rule(loss / spacing).astype(int)
            total = fftconvolve(total, np.bincount(index - index.min(), weights=mass))
            start += index.min()
        grid = (np.arange(total.size) + start) * spacing
        above = grid > at
        found.append(float(total[above] @ -np.expm1(at - grid[above])))
    return max(found)


def columns(training):
    """Noise and rate of every step."""
    shape = (training.steps,)
    return (
        np.broadcast_to(training.noise_multiplier, shape),
        np.broadcast_to(training.sampling_rate, shape),
    )


def best_event_delta(noise, rate, a, adjacency):
    """H_a of one step: the loss grows with x, so the best event is x > c, found by bisection."""

    def ratio(x):
        up = math.log1p(rate * math.expm1((2 * x - 1) / (2 * noise**2)))
        down = (
            math.log1p(rate * math.expm1((-2 * x - 1) / (2 * noise**2))) if adjacency is REPLACE_ONE else 0.0
        )
        return up - down - math.log(a)

    low, high = -8 * noise - 2, 8 * noise + 2
    cut = low if ratio(low) >= 0 else high if ratio(high) <= 0 else brentq(ratio, low, high, xtol=1e-13)
    other = -1.0 if adjacency is REPLACE_ONE else 0.0
    tail = lambda mean: (1 - rate) * ndtr(-cut / noise) + rate * ndtr((mean - cut) / noise)  # noqa: E731
    return max(tail(1.0) - a * tail(other), 0.0)


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
def test_epsilon_lies_between_roundings(training, adjacency):
    """At the epsilon found, delta lies between convolutions of losses rounded down and rounded up."""
    if training.fixed_size and adjacency is ADD_REMOVE:
        return
    found, pair = epsilon(training, delta=1e-5, adjacency=adjacency).value, StepPair.of(training, adjacency)
    assert convolved_delta(training, pair, found, rule=np.floor) <= 1e-5
    assert convolved_delta(training, pair, found, rule=np.ceil) >= 1e-5
    # The convolution can fail: a two-hundredth of a nat to either side is told apart.
    assert convolved_delta(training, pair, found - 0.005, rule=np.floor) > 1e-5
    assert convolved_delta(training, pair, found + 0.005, rule=np.ceil) < 1e-5


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.0), (0.5, 2.0), (0.02, 0.7)])
def test_one_step_is_exact(rate, noise, adjacency):
    """One step's epsilon is that of its best event, from above and within 3e-4."""
    found = epsilon(DPSGD(noise, rate, 1), delta=1e-5, adjacency=adjacency).value
    below, above = (
        best_event_delta(noise, rate, math.exp(at), adjacency) for at in (found - 3e-4, found + 1e-9)
    )
    assert above <= 1e-5 <= below


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_no_sampling_is_one_gaussian(adjacency):
    """At rate 1, steps of noise s_t are one Gaussian with means sqrt(sum 1/s_t^2) apart, twice that if replaced."""
    noise = np.array([3.0, 5.0, 5.0, 40.0])
    distance = 2 if adjacency is REPLACE_ONE else 1
    mu = distance * math.sqrt(np.sum(noise**-2.0))
    claim = epsilon(DPSGD(noise, 1.0), delta=1e-6, adjacency=adjacency)
    assert claim.value == pytest.approx(gaussian_epsilon(mu, delta=1e-6), rel=1e-12)
    assert "exact Gaussian" in claim.method


# --- Many different steps ----------------------------------------------------------------------------


@pytest.mark.parametrize("pair", list(StepPair))
def test_many_steps_are_the_exact_gaussian_where_nearly_all_records_take_part(pair):
    """A thousand noises (a hundred of a fixed size) at a rate of almost 1 have the exact Gaussian's epsilon, from above."""
    noise = np.geomspace(6.0, 60.0, 100 if pair is StepPair.FIXED_SIZE else 1000)
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


# --- Curve -------------------------------------------------------------------------------------------
