"""How a simulation is repeated."""

import numpy as np
import pytest


@pytest.fixture
def simulated(request):
    """The outcomes of an event in so many repetitions, in a short and in a long run: one row for each."""

    def repeat(event, *, seed, runs):
        rng, (short, long) = np.random.default_rng(seed), runs
        return np.array([event(rng) for _ in range(long if request.config.getoption("--long") else short)])

    return repeat
