"""Time of the mixtures: ``python -m pytest tests/benchmarks --long -s`` prints and holds it.

Processor time, all threads counted.
"""

import time

import numpy as np
import pytest

from auditor.core import Losses, Mixture
from auditor.curves import fit_mixture_pair
from auditor.estimators import mixture

pytestmark = pytest.mark.long


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_sweep_of_twenty_components_takes_under_a_minute(rng, capsys, size):
    """Mixtures of 1 to 20 components, chosen, tested and turned into Epsilon*, take under 60 seconds of one core."""

    def draw():
        return np.where(rng.random(size) < 0.3, rng.gamma(2, 1, size), rng.normal(4, 1, size))

    losses = Losses(member=draw(), nonmember=draw())
    start = time.process_time()
    pair = fit_mixture_pair(losses, choice=Mixture(20), rng=rng)
    fitted = time.process_time() - start
    estimate = mixture(pair, delta=1e-5)
    spent = time.process_time() - start
    with capsys.disabled():
        print(f"\n{size} + {size}: {fitted:.1f} s for the sweep, {spent - fitted:.1f} s for the row")  # noqa: T201
    assert estimate.value is not None
    assert spent < 60
