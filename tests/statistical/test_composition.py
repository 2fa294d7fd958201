"""Composition theorems on simulated steps that sometimes give everything away and are randomised response otherwise."""

import math

import numpy as np
import pytest
from simulation import runs_for

from auditor.theory import advanced, advanced_sharper, basic, optimal

EPSILON, DELTA, STEPS, TOTAL = 0.3, 1e-3, 60, 0.1


def simulated_delta(epsilon, runs, rng):
    """Delta of the composed steps at this epsilon, with its standard error: the mean of (1 - e^(epsilon - loss))+."""
    revealed = rng.random(runs) < -math.expm1(STEPS * math.log1p(-DELTA))
    truthful = rng.binomial(STEPS, 1 / (1 + math.exp(-EPSILON)), size=runs)
    loss = np.where(revealed, np.inf, (2 * truthful - STEPS) * EPSILON)
    parts = np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)
    return parts.mean(), parts.std() / math.sqrt(runs)


def test_optimal_delta_is_met(request):
    """At the optimal epsilon the simulated delta is the wanted one, and at 90% of it clearly more."""
    runs, rng = runs_for(request, 200_000, 20_000_000), np.random.default_rng(0)
    best = optimal(EPSILON, delta=DELTA, steps=STEPS, total_delta=TOTAL).epsilon
    delta, error = simulated_delta(best, runs, rng)
    assert abs(delta - TOTAL) < 4 * error
    delta, error = simulated_delta(0.9 * best, runs, rng)
    assert delta > TOTAL + 4 * error


@pytest.mark.parametrize("form", [advanced, advanced_sharper])
def test_advanced_forms_hold(request, form):
    """At the epsilon of either form of advanced composition the simulated delta is within its delta."""
    runs, rng = runs_for(request, 200_000, 20_000_000), np.random.default_rng(1)
    promised = form(EPSILON, delta=DELTA, steps=STEPS, slack=TOTAL - STEPS * DELTA)
    delta, error = simulated_delta(promised.epsilon, runs, rng)
    assert promised.delta == pytest.approx(TOTAL)
    assert delta <= promised.delta + 4 * error


def test_basic_holds(request):
    """Beyond the sum of the epsilons only the steps' own deltas remain."""
    runs, rng = runs_for(request, 200_000, 20_000_000), np.random.default_rng(2)
    promised = basic(EPSILON, delta=DELTA, steps=STEPS)
    delta, error = simulated_delta(promised.epsilon, runs, rng)
    assert 0 < delta <= promised.delta + 4 * error
