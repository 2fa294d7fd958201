"""The Pareto frontier against a linear programme that looks for a better mixture of the other strategies."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import optimize

from auditor.comparison import on_frontier


def oracle(points):
    """By the definition: no mixture is as good in both and better in one."""
    utility, loss = np.array(points, dtype=float).T
    found = []
    for u, p in zip(utility, loss, strict=True):
        best = optimize.linprog(
            c=loss - utility, A_ub=[-utility, loss], b_ub=[-u, p], A_eq=[np.ones(len(points))], b_eq=[1.0]
        )
        found.append(p - u - best.fun < 1e-7)
    return found


small = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=9)


@hypothesis.settings(max_examples=150, deadline=None, derandomize=True)
@hypothesis.given(small, st.randoms(use_true_random=False))
def test_the_frontier_is_what_no_mixture_betters(points, chance):
    """On small whole numbers, full of ties and straight lines, in any order and repeated, the linear programme agrees."""
    found = dict(zip(points, on_frontier(points), strict=True))
    assert [found[point] for point in points] == oracle(points)
    mixed = [*points, *points]
    chance.shuffle(mixed)
    assert on_frontier(mixed) == [found[point] for point in mixed]


@pytest.mark.parametrize(
    ("utility", "loss", "on"),
    [
        ([], [], []),
        ([0.5, 0.5], [1.0, 1.0], [True, True]),
        ([0.9, 0.5], [1.0, 1.0], [True, False]),
        ([1, 2, 3], [1, 2, 3], [True, True, True]),
        ([1, 2, 3], [1, 2.5, 3], [True, False, True]),
        ([0.1, 0.9], [0.0, 1e300], [True, True]),
    ],
)
def test_hand_made_cases(utility, loss, on):
    """None, repeats, ties in one number, straight lines, bends in, and large losses."""
    assert on_frontier(list(zip(utility, loss, strict=True))) == on
