"""Costs of the claimed side, as ratios within one run; ``python -m pytest tests/benchmarks --long -s`` prints them.

Times are processor time, all threads counted, the best of several tries on each side: a busy machine changes little.
No test asserts a time; where one is of interest it is printed.
"""

from pathlib import Path

import numpy as np
import pytest
from command_line import printed
from stopwatch import best_time

from auditor.core import DPSGD, Adjacency
from auditor.theory import privacy_loss

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def plain_loop(training, adjacency, samples):
    """Algorithm 1 with its erratum, as one would write it down: all samples in one array, one step after another."""
    rng, noise, rate = np.random.default_rng(1), training.noise_multiplier, training.sampling_rate
    eta = np.zeros(samples)
    for _ in range(training.steps):
        x = rng.normal(0, noise, samples)
        if adjacency is REPLACE_ONE:
            x -= rng.random(samples) < rate
            eta -= np.log(1 + rate * (np.exp((-2 * x - 1) / (2 * noise**2)) - 1))
        eta += np.log(1 + rate * (np.exp((2 * x - 1) / (2 * noise**2)) - 1))
    return np.mean(1 - np.exp(np.minimum(eta, 0)))


def simulation_time(adjacency, samples, steps, *, tries):
    """The time of Algorithm 1, in a process of its own.

    What other tests have freed decides whether large arrays come from the system page by page: the time then differs by
    more than a half.
    """
    code = """if True:
        import sys
        sys.path[:0] = sys.argv[1:3]
        from test_theory_speed import ADD_REMOVE, DPSGD, REPLACE_ONE, best_time, plain_loop
        samples, steps, tries = map(int, sys.argv[4:])
        adjacency, some = (ADD_REMOVE, REPLACE_ONE)[int(sys.argv[3])], DPSGD(1.0, 0.01, steps)
        print(best_time(lambda: plain_loop(some, adjacency, samples), tries))
    """
    here = Path(__file__).parent
    chosen = int(adjacency is REPLACE_ONE)
    return float(printed(code, here, here.parent, chosen, samples, steps, tries))


@pytest.mark.parametrize(
    ("adjacency", "reference"),
    [(ADD_REMOVE, 0.1610176), pytest.param(REPLACE_ONE, 0.2643522, marks=pytest.mark.long)],
    ids=str,
)
def test_exact_total_variation_against_simulation(request, adjacency, reference, told):
    """The exact total variation is 1000 times faster than Algorithm 1 with m = 5e5 at T = 1000.

    Its error is a thousandth of the simulation's too, whose values have a standard deviation of at least 0.1 here.
    """
    full, steps = 500_000, 1000
    training = DPSGD(1.0, 0.01, steps)
    # Time is in proportion to steps and to whole blocks of samples, squared error to samples.
    share = 1 if request.config.getoption("--long") else 50
    by_paper = share * simulation_time(adjacency, full, steps // share, tries=min(share, 3))
    # Past the cache that serves a second question about the same run.
    exact = lambda: privacy_loss._law_of.__wrapped__(training, adjacency).total_variation()  # noqa: E731
    by_inversion = min(best_time(exact, 20) for _ in range(3))
    error, simulated = abs(exact() - reference), 1.96 * 0.1 / np.sqrt(full)
    told(
        f"exact total variation, {adjacency}: {by_inversion * 1000:.2f} ms, Algorithm 1 {by_paper:.1f} s"
        f" ({by_paper / by_inversion:,.0f} times); errors {error:.0e} and {simulated:.0e}"
    )
    assert by_paper >= 1000 * by_inversion
    assert error < simulated / 1000


def test_a_schedule_of_different_steps_costs_no_more_than_the_largest_exact_one(told):
    """Epsilon and total variation of 14,040 different noises take at most twice as long as those of 1,000."""

    def both(steps):
        training = DPSGD(np.linspace(0.8, 1.6, steps), 0.01)
        privacy_loss._law_of.cache_clear()
        law = privacy_loss.composed(training, adjacency=ADD_REMOVE)
        return law.epsilon_at(1e-5), law.total_variation()

    ratio = best_time(lambda: both(14_040), 2) / best_time(lambda: both(1000), 2)
    told(f"14,040 different steps/1,000: {ratio:.2f}")
    assert ratio <= 2
