"""The Pareto frontier against a linear programme that looks for a better mixture of the other strategies."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import optimize

from auditor.comparison import is_on_frontier


def gain(at, utility, loss, others):
    """The most that a mixture of these others betters a strategy by in both together, or None if none is as good."""
    u, p = np.array(utility, dtype=float), np.array(loss, dtype=float)
    if not others:
        return None
    found = optimize.linprog(
        c=p[others] - u[others],
        A_ub=[-u[others], p[others]],
        b_ub=[-u[at], p[at]],
        A_eq=[np.ones(len(others))],
        b_eq=[1.0],
    )
    return u[at] * -1 + p[at] - found.fun if found.status == 0 else None


def oracle_on(utility, loss):
    """By the definition: no mixture is as good in both and better in one."""
    every = list(range(len(utility)))
    return tuple(gain(at, utility, loss, every) < 1e-7 for at in every)


small = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=9)


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
@hypothesis.given(small)
def test_the_frontier_is_what_no_mixture_betters(points):
    """On small whole numbers, full of ties and straight lines, the answer agrees with the linear programme."""
    utility, loss = zip(*points, strict=True)
    assert is_on_frontier(utility, privacy_loss=loss) == oracle_on(utility, loss)


@hypothesis.settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.given(small, st.randoms(use_true_random=False))
def test_order_and_repeats_change_nothing(points, chance):
    """Shuffling or repeating strategies leaves their places."""
    on = dict(
        zip(points, is_on_frontier([p[0] for p in points], privacy_loss=[p[1] for p in points]), strict=True)
    )
    mixed = [*points, *points]
    chance.shuffle(mixed)
    assert is_on_frontier([p[0] for p in mixed], privacy_loss=[p[1] for p in mixed]) == tuple(
        on[point] for point in mixed
    )


@pytest.mark.parametrize(
    ("utility", "loss", "on"),
    [
        ([], [], ()),
        ([0.5], [7.0], (True,)),
        ([0.5, 0.5], [1.0, 1.0], (True, True)),
        ([0.9, 0.5], [1.0, 1.0], (True, False)),
        ([0.5, 0.5], [2.0, 1.0], (False, True)),
        ([1, 2, 3], [1, 2, 3], (True, True, True)),
        ([1, 2, 3], [1, 2.5, 3], (True, False, True)),
        ([1, 2, 3], [1, 1.5, 3], (True, True, True)),
        ([0.1, 0.5, 0.9], [0.0, 1e300, 1.7e308], (True, True, True)),
    ],
)
def test_hand_made_cases(utility, loss, on):
    """None, one, repeats, ties in one number, straight lines, bends in and out, and the largest numbers."""
    assert is_on_frontier(utility, privacy_loss=loss) == on
