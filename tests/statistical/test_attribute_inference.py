"""The bounds on attribute inference against simulated attackers who see every step."""

import math

import numpy as np
import pytest
from simulation import at_most, runs_for

from auditor.core import DPSGD
from auditor.theory import attribute_inference


def attacker(rng, *, rate, noise, truth, other, runs):
    """Log-ratios of an attacker who knows both gradients and sees every step, when ``truth`` is in the record."""
    total = np.zeros(runs)
    for gradient, rival in zip(truth, other, strict=True):
        drawn = rng.random(runs) < rate
        seen = noise * rng.normal(size=(runs, 2)) + drawn[:, None] * gradient
        for sign, mean in ((1, gradient), (-1, rival)):
            shift = (2 * (seen * mean).sum(axis=1) - mean @ mean) / (2 * noise**2)
            total += sign * np.logaddexp(math.log1p(-rate), math.log(rate) + shift)
    return total


def arrangement(kind, distance, steps):
    """Two gradients of a step, at most 1 long and this far apart: on a line from the origin, or both of length 1."""
    angle = 2 * math.asin(distance / 2)
    first = np.array([1.0, 0.0])
    second = np.array([1 - distance, 0.0]) if kind == "line" else np.array([math.cos(angle), math.sin(angle)])
    return np.tile(first, (steps, 1)), np.tile(second, (steps, 1))


SETTINGS = [(0.02, 1.0, 200), (0.1, 0.6, 30), (0.5, 2.0, 10)]


@pytest.mark.parametrize("kind", ["line", "circle"])
@pytest.mark.parametrize(("rate", "noise", "steps"), SETTINGS)
@pytest.mark.parametrize("distance", [0.3, 1.0, 1.6])
def test_no_attacker_beats_the_bound(request, rng, kind, rate, noise, steps, distance):
    """The best attacker's success rate, (1 + advantage) / 2, is compatible with the bound and the moment-matched form."""
    runs = runs_for(request, 8_000, 200_000)
    first, second = arrangement(kind, distance, steps)
    arguments = {"rate": rate, "noise": noise, "runs": runs}
    wins = (attacker(rng, truth=first, other=second, **arguments) > 0).sum()
    wins += (attacker(rng, truth=second, other=first, **arguments) > 0).sum()
    rows = attribute_inference(DPSGD(noise, rate, steps), sensitivities=distance)
    for matched_or_bound in (rows[3].value, rows[5].value):
        assert at_most(int(wins), 2 * runs, (1 + matched_or_bound) / 2)


def test_the_simulation_finds_the_published_form_too_low(request, rng):
    """The same simulation refutes Corollary 10 as a bound at low noise, where its error term is large."""
    runs = runs_for(request, 8_000, 200_000)
    first, second = arrangement("circle", 1.0, 30)
    arguments = {"rate": 0.1, "noise": 0.6, "runs": runs}
    wins = (attacker(rng, truth=first, other=second, **arguments) > 0).sum()
    wins += (attacker(rng, truth=second, other=first, **arguments) > 0).sum()
    published = attribute_inference(DPSGD(0.6, 0.1, 30), sensitivities=1.0)[1].value
    assert not at_most(int(wins), 2 * runs, (1 + published) / 2)


def test_distances_that_change_by_step(request, rng):
    """With another distance in every step the bound holds, in whatever direction the gradients point."""
    runs, steps, rate, noise = runs_for(request, 20_000, 400_000), 40, 0.1, 1.2
    distances = np.abs(np.sin(np.arange(steps)))
    turned = rng.normal(size=(steps, 2))
    first = turned / np.linalg.norm(turned, axis=1, keepdims=True)
    second = first * (1 - distances[:, None])
    wins = (attacker(rng, rate=rate, noise=noise, truth=first, other=second, runs=runs) > 0).sum()
    wins += (attacker(rng, rate=rate, noise=noise, truth=second, other=first, runs=runs) > 0).sum()
    rows = attribute_inference(DPSGD(noise, rate, steps), sensitivities=distances, fixed_in_advance=True)
    assert rows[5].proven
    assert at_most(int(wins), 2 * runs, (1 + rows[5].value) / 2)
    assert rows[5].value < 1
