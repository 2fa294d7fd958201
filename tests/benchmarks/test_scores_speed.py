"""Speed of the scores as ratios within one run: ``python -m pytest tests/benchmarks --long -s`` prints and holds them.

Times are processor time, all threads counted, the best of several tries on each side: a busy machine changes little.
"""

import time

import numpy as np
import pytest

from auditor.core import Losses
from auditor.scores import Population, References, rmia, rmia_score

pytestmark = pytest.mark.long


def best_time(action, tries):
    """The least processor time of several runs, in seconds."""
    spent = []
    for _ in range(tries):
        start = time.process_time()
        action()
        spent.append(time.process_time() - start)
    return min(spent)


def draws(rng, n):
    """Losses, reference losses and a population of n records each."""
    losses = Losses(member=rng.exponential(1.0, n), nonmember=rng.exponential(1.5, n), scale="cross-entropy")
    reference = References(member=rng.exponential(1.5, n), nonmember=rng.exponential(1.5, n))
    own = rng.exponential(1.5, (2, n))
    return losses, rmia(
        reference, population=Population(loss=own[0], reference=own[1], scale="cross-entropy")
    )


def test_rmia_grows_like_a_sort(rng, capsys):
    """Eight times the records and eight times the population take at most 16 times as long: not 64 times."""
    small, large = (draws(rng, n) for n in (125_000, 1_000_000))
    by_small = best_time(lambda: small[1](small[0]), 5)
    by_large = best_time(lambda: large[1](large[0]), 3)
    with capsys.disabled():
        print(f"\nRMIA, 8 times the records: {by_large / by_small:.1f} times the time")  # noqa: T201
    assert by_large <= 16 * by_small


def test_rmia_costs_a_few_sorts(rng, capsys):
    """RMIA on 1e6 + 1e6 records against 1e6 takes at most 20 times np.sort of the three arrays."""
    losses, step = draws(rng, 1_000_000)
    arrays = losses.member, losses.nonmember, rng.random(1_000_000)
    by_sort = best_time(lambda: [np.sort(values) for values in arrays], 5)
    by_rmia = best_time(lambda: step(losses), 3)
    with capsys.disabled():
        print(f"\nRMIA/sort: {by_rmia / by_sort:.1f}")  # noqa: T201
    assert by_rmia <= 20 * by_sort


def test_the_score_against_all_pairs(rng, capsys):
    """The published score of 1e4 records against 1e4 is at least 20 times faster than comparing all pairs, and equal."""
    x, z = rng.normal(size=(2, 10_000))
    pairs = lambda: np.array([np.mean(np.exp(item - z) > 1.0) for item in x])  # noqa: E731 - a row at a time
    by_pairs = best_time(pairs, 2)
    by_search = best_time(lambda: rmia_score(x, z), 20)
    with capsys.disabled():
        print(f"\nall pairs/search: {by_pairs / by_search:.0f}")  # noqa: T201
    assert by_pairs >= 20 * by_search
    np.testing.assert_array_equal(rmia_score(x, z), pairs())
