"""Composition theorems on simulated steps that sometimes give everything away and are randomised response otherwise."""

import math

import numpy as np
import pytest
from simulation import runs_for

from auditor.theory import advanced, advanced_sharper, basic, optimal

STEP = {"delta": 1e-3, "steps": 60}
EPSILON, TOTAL = 0.3, 0.1


@pytest.fixture
def simulated_delta(request):
    """Delta of the composed steps at an epsilon, with its standard error: the mean of (1 - e^(epsilon - loss))+."""
    runs, rng = runs_for(request, 200_000, 20_000_000), np.random.default_rng(0)
    steps = STEP["steps"]

    def at(epsilon):
        revealed = rng.random(runs) < -math.expm1(steps * math.log1p(-STEP["delta"]))
        truthful = rng.binomial(steps, 1 / (1 + math.exp(-EPSILON)), size=runs)
        loss = np.where(revealed, np.inf, (2 * truthful - steps) * EPSILON)
        parts = np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)
        return parts.mean(), parts.std() / math.sqrt(runs)

    return at


def test_optimal_delta_is_met(simulated_delta):
    """At the optimal epsilon the simulated delta is the wanted one, and at 90% of it clearly more."""
    best = optimal(EPSILON, total_delta=TOTAL, **STEP)
    delta, error = simulated_delta(best)
    assert abs(delta - TOTAL) < 4 * error
    delta, error = simulated_delta(0.9 * best)
    assert delta > TOTAL + 4 * error


@pytest.mark.parametrize("form", [basic, advanced, advanced_sharper])
def test_other_forms_hold(simulated_delta, form):
    """At the epsilon of basic composition, and of either form of the advanced one, the simulated delta is within theirs."""
    of_steps = STEP["steps"] * STEP["delta"]
    slack = {} if form is basic else {"slack": TOTAL - of_steps}
    delta, error = simulated_delta(form(EPSILON, steps=STEP["steps"], **slack))
    assert 0 < delta <= (TOTAL if slack else of_steps) + 4 * error
