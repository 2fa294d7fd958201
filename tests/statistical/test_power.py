"""The rates that a simulation of a level finds: a wrong formula whose misses are as frequent as `found_rate` says."""

import pytest
from scipy import stats
from simulation import at_most, found_rate


@pytest.mark.parametrize("level", [0.01, 0.025, 0.05, 0.5])
@pytest.mark.parametrize("runs", [20, 60, 100, 300])
def test_a_rate_that_is_too_high_is_found_in_nine_of_ten_simulations(runs, level):
    """Misses of that rate are refused with a chance of 0.9, and misses of the level with one of at most 0.001."""
    passed = [at_most(misses, runs, level) for misses in range(runs + 1)]
    for rate, refused in ((found_rate(runs, level), pytest.approx(0.9)), (level, pytest.approx(0, abs=1e-3))):
        assert 1 - stats.binom.pmf(range(runs + 1), runs, rate) @ passed == refused
