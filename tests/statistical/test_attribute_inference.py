"""The bounds on attribute inference against simulated attackers who see every step."""

import math

import numpy as np
import pytest
from simulation import at_most, runs_for

from auditor.core import DPSGD
from auditor.theory import attribute_inference


def log_ratios(rng, runs, training, truth, other):
    """Log-ratios of an attacker who knows both gradients and sees every step, when ``truth`` is in the record."""
    rate, noise = training.sampling_rate, training.noise_multiplier
    total = np.zeros(runs)
    for gradient, rival in zip(truth, other, strict=True):
        drawn = rng.random(runs) < rate
        seen = noise * rng.normal(size=(runs, 2)) + drawn[:, None] * gradient
        for sign, mean in ((1, gradient), (-1, rival)):
            shift = (2 * (seen * mean).sum(axis=1) - mean @ mean) / (2 * noise**2)
            total += sign * np.logaddexp(math.log1p(-rate), math.log(rate) + shift)
    return total


def beats(rng, runs, training, first, second, advantage):
    """Whether the best attacker wins more often than (1 + advantage)/2, whichever gradient is in the record."""
    pairs = (first, second), (second, first)
    wins = sum((log_ratios(rng, runs, training, *pair) > 0).sum() for pair in pairs)
    return not at_most(int(wins), 2 * runs, (1 + advantage) / 2)


def arrangement(kind, distance, steps):
    """Two gradients of a step, at most 1 long and this far apart: on a line from the origin, or both of length 1."""
    angle = 2 * math.asin(distance / 2)
    first = np.array([1.0, 0.0])
    second = np.array([1 - distance, 0.0]) if kind == "line" else np.array([math.cos(angle), math.sin(angle)])
    return np.tile(first, (steps, 1)), np.tile(second, (steps, 1))


@pytest.mark.parametrize("kind", ["line", "circle"])
@pytest.mark.parametrize("training", [DPSGD(1.0, 0.02, 200), DPSGD(0.6, 0.1, 30), DPSGD(2.0, 0.5, 10)])
@pytest.mark.parametrize("distance", [0.3, 1.0, 1.6])
def test_no_attacker_beats_the_bound(request, rng, kind, training, distance):
    """The best attacker's success rate is compatible with the bound and with the moment-matched form.

    At low noise, where its error term is large, Corollary 10 as published is refuted as a bound.
    """
    gradients = arrangement(kind, distance, training.steps)
    rows = attribute_inference(training, sensitivities=distance)
    runs = runs_for(request, 8_000, 200_000)
    for matched_or_bound in (rows[3].value, rows[5].value):
        assert not beats(rng, runs, training, *gradients, matched_or_bound)
    if (kind, training.noise_multiplier, distance) == ("circle", 0.6, 1.0):
        assert beats(rng, runs, training, *gradients, rows[1].value)


def test_distances_that_change_by_step(request, rng):
    """With another distance in every step the bound holds, in whatever direction the gradients point."""
    training = DPSGD(1.2, 0.1, 40)
    distances = np.abs(np.sin(np.arange(40)))
    turned = rng.normal(size=(40, 2))
    first = turned / np.linalg.norm(turned, axis=1, keepdims=True)
    second = first * (1 - distances[:, None])
    bound = attribute_inference(training, sensitivities=distances, fixed_in_advance=True)[5]
    assert bound.proven
    assert not beats(rng, runs_for(request, 20_000, 400_000), training, first, second, bound.value)
    assert bound.value < 1
