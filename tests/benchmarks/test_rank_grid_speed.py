"""The certified bound at all ranks costs little more than sorting: ``python -m pytest tests/benchmarks --long -s``.

Times are processor time, all threads counted, the best of several tries on each side: a busy machine changes little.
The comparison with another library is ``reports/benchmarks/jax_privacy.py``.
"""

import time

import numpy as np
import pytest

import auditor
from auditor.core import Melded, RankGrid
from auditor.estimators import clopper_pearson

pytestmark = pytest.mark.long


def best_time(action, tries):
    """The least processor time of several runs, in seconds."""
    spent = []
    for _ in range(tries):
        start = time.process_time()
        action()
        spent.append(time.process_time() - start)
    return min(spent)


@pytest.mark.parametrize("rule", [RankGrid(), RankGrid(interval=Melded())])
def test_the_rank_grid_costs_at_most_three_sorts(rng, rule, capsys):
    """From 1e6 + 1e6 raw losses to the bound, checks and sorting included, takes at most 3 times np.sort of both."""
    member, nonmember = rng.gamma(2, 5, 1_000_000), rng.gamma(2.2, 5, 1_000_000)
    # A fresh value each time: the sorted copies are cached on it.
    bound = lambda: clopper_pearson(auditor.Losses(member, nonmember), delta=1e-5, rule=rule)  # noqa: E731
    assert bound().value > 0
    by_sort = best_time(lambda: [np.sort(group) for group in (member, nonmember)], 9)
    by_bound = best_time(bound, 9)
    with capsys.disabled():
        print(f"\n{type(rule.interval).__name__}/sort: {by_bound / by_sort:.2f}")  # noqa: T201
    assert by_bound <= 3 * by_sort
