"""Steps with different noise and sampling rates: the accountant, its merging of many steps, and its curve."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.special import erf, erfinv, ndtr

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, Phase
from auditor.theory import (
    MOST_PHASES,
    StepPair,
    accountant as sampled,
    claimed_curve,
    epsilon,
    gaussian_epsilon,
    kinds_of,
    loss_grid,
    step_deltas,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
# dp-accounting 0.4 has no replace-one for the sampled Gaussian.
ADJACENCIES = list(Adjacency) if sampled.accountant_has_replace_one() else [ADD_REMOVE]
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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
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


# --- Closed forms of one step ------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    ("noise", "rate"), [(1.0, 0.1), (0.4, 0.01), (3.0, 0.8), (1.0, 1 - 1e-9), (50.0, 1e-4)]
)
def test_closed_deltas_equal_the_best_event(noise, rate, adjacency):
    """The closed-form deltas of one step equal those of the best event, found by bisection, at either sign."""
    pair = StepPair.REPLACE_ONE if adjacency is REPLACE_ONE else StepPair.ADD_REMOVE
    at = np.concatenate([-np.geomspace(3, 1e-3, 12), [0.0], np.geomspace(1e-3, 3, 12)])
    forward, backward = step_deltas(Phase(noise, rate, 1), pair, epsilons=at)
    expected = np.array([best_event_delta(noise, rate, math.exp(value), adjacency) for value in at])
    assert forward == pytest.approx(expected, abs=2e-14)
    # The other order: delta'(eps) = 1 - e^eps + e^eps delta(-eps).
    assert backward == pytest.approx(-np.expm1(at) + np.exp(at) * expected[::-1], abs=3e-13)


# --- Many different steps ----------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", [*Adjacency, None])
def test_divergences_are_convex_in_advantage_and_rate(adjacency, rng):
    """[own] H_a lies below its chord in the unsampled advantage 2 Phi(d/(2s)) - 1, and in the rate: 6,000 chords.

    In the noise itself it does not, so the test can fail.
    """
    pair = {ADD_REMOVE: StepPair.ADD_REMOVE, REPLACE_ONE: StepPair.REPLACE_ONE, None: StepPair.FIXED_SIZE}[
        adjacency
    ]
    at = np.linspace(-6, 6, 41)
    scale = pair.distance / (2 * math.sqrt(2))
    above = False
    for _ in range(50):
        noise = np.sort(np.exp(rng.uniform(-1, 2, 2)))
        rate = np.sort(10 ** rng.uniform(-4, 0, 2))
        share = rng.random()
        mix = lambda pair_: share * pair_[0] + (1 - share) * pair_[1]  # noqa: B023, E731
        middle = scale / erfinv(mix(erf(scale / noise)))

        def both(s, p):
            return np.stack(step_deltas(Phase(float(s), float(p), 1), pair, epsilons=at))

        assert (both(middle, rate[0]) <= mix([both(s, rate[0]) for s in noise]) + 1e-13).all()
        assert (both(noise[0], mix(rate)) <= mix([both(noise[0], p) for p in rate]) + 1e-13).all()
        above |= bool(
            (both(mix(1 / noise) ** -1, rate[0]) > mix([both(s, rate[0]) for s in noise]) + 1e-9).any()
        )
    assert above


@pytest.mark.parametrize("pair", list(StepPair))
def test_many_steps_are_never_below_the_exact_gaussian(pair):
    """With almost no sampling, merged steps have the exact Gaussian's epsilon, from above, within 1%."""
    training = DPSGD(np.geomspace(6.0, 60.0, 1000), 1 - 1e-13)
    kinds = kinds_of(training.phases, pair=pair)
    assert len(training.phases) == 1000 > len(kinds)
    grid = loss_grid(kinds, pair=pair)
    mu = pair.distance * math.sqrt(sum(phase.steps / phase.noise_multiplier**2 for phase in training.phases))
    for delta in (1e-10, 1e-5):
        found = sampled.accountant_epsilon(kinds, delta=delta, pair=pair, grid=grid)
        exact = gaussian_epsilon(mu, delta=delta)
        assert exact < found < 1.01 * exact + 3e-3


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("varying", ["noise", pytest.param("rate", marks=pytest.mark.long)])
def test_merging_costs_little(varying, adjacency):
    """Merged steps give an epsilon above that of the steps as they are, by less than 1% if one parameter varies."""
    count = 2 * MOST_PHASES
    noise = np.linspace(0.8, 1.6, count) if varying == "noise" else 1.0
    rate = np.linspace(0.01, 0.04, count) if varying == "rate" else 0.02
    training = DPSGD(noise, rate)
    claim = epsilon(training, delta=1e-5, adjacency=adjacency)
    exact = as_they_are(training, adjacency, 1e-5)
    # Both grids round up, by up to about 1e-3.
    assert 0.999 * exact < claim.value < 1.01 * exact
    assert "different steps" in claim.note


def as_they_are(training, adjacency, delta):
    """Epsilon without merging: every step a kind of its own."""
    pair = StepPair.of(training, adjacency)
    kinds = [kinds_of((phase,), pair=pair)[0] for phase in training.phases]
    grid = loss_grid(tuple(kinds), pair=pair)
    return sampled.accountant_epsilon(tuple(kinds), delta=delta, pair=pair, grid=grid)


@pytest.mark.parametrize("sampling", [DPSGD(1, 1, 1).sampling, FIXED])
def test_kinds_keep_the_steps_and_never_gain_privacy(sampling, rng):
    """Merging keeps the number of steps, stays within a limit, and averages to no less leakage in each sense."""
    training = DPSGD(rng.uniform(0.5, 5, 700), rng.uniform(0.001, 0.9, 700), sampling=sampling)
    pair = StepPair.of(training, REPLACE_ONE)
    kinds = kinds_of(training.phases, pair=pair)
    assert sum(kind.steps for kind in kinds) == 700
    assert len(kinds) <= 240
    for kind in kinds:
        assert sum(weight for weight, _ in kind.parts) == pytest.approx(1.0)
        assert kind.least_private.noise_multiplier == min(p.noise_multiplier for _, p in kind.parts)

    def leak(weighted):
        return sum(w * erf(pair.distance / (2 * math.sqrt(2) * p.noise_multiplier)) for w, p in weighted)

    before = leak([(phase.steps, phase) for phase in training.phases])
    after = sum(kind.steps * leak(kind.parts) for kind in kinds)
    assert before <= after < 1.2 * before


@pytest.mark.parametrize("adjacency", ADJACENCIES)
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
