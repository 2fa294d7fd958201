"""The Pareto frontier against a linear programme that looks for a better mixture of the other strategies."""

import itertools
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import optimize

from auditor.comparison import is_on_frontier, pareto_frontier


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


def oracle_corners(utility, loss):
    """The places that no mixture of the other places is as good as."""
    places = list(zip(utility, loss, strict=True))
    return {
        places[at]
        for at in range(len(places))
        if gain(at, utility, loss, [i for i, place in enumerate(places) if place != places[at]]) is None
    }


small = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=9)


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
@hypothesis.given(small)
def test_the_frontier_is_what_no_mixture_betters(points):
    """On small whole numbers, full of ties and straight lines, both answers agree with the linear programme."""
    utility, loss = zip(*points, strict=True)
    corners = pareto_frontier(utility, privacy_loss=loss)
    assert is_on_frontier(utility, privacy_loss=loss) == oracle_on(utility, loss)
    assert {points[at] for at in corners} == oracle_corners(utility, loss)


@hypothesis.settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.given(small, st.randoms(use_true_random=False))
def test_order_and_repeats_change_nothing(points, chance):
    """Corners ascend in both, and shuffling or repeating strategies leaves their places."""
    utility, loss = zip(*points, strict=True)
    corners = [points[at] for at in pareto_frontier(utility, privacy_loss=loss)]
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(corners))
    mixed = [*points, *points]
    chance.shuffle(mixed)
    again = pareto_frontier([p[0] for p in mixed], privacy_loss=[p[1] for p in mixed])
    assert [mixed[at] for at in again] == corners
    assert all(mixed.index(mixed[at]) == at for at in again)


@pytest.mark.parametrize(
    ("utility", "loss", "corners", "on"),
    [
        ([], [], (), ()),
        ([0.5], [math.inf], (0,), (True,)),
        ([0.5, 0.5], [1.0, 1.0], (0,), (True, True)),
        ([0.9, 0.5], [1.0, 1.0], (0,), (True, False)),
        ([0.5, 0.5], [2.0, 1.0], (1,), (False, True)),
        ([1, 2, 3], [1, 2, 3], (0, 2), (True, True, True)),
        ([1, 2, 3], [1, 2.5, 3], (0, 2), (True, False, True)),
        ([1, 2, 3], [1, 1.5, 3], (0, 1, 2), (True, True, True)),
        ([0.9, 0.8, 0.7], [math.inf, math.inf, 1.0], (2, 0), (True, False, True)),
        ([0.7, 0.7], [math.inf, 5.0], (1,), (False, True)),
        ([0.1, 0.5, 0.9], [0.0, 1e300, math.inf], (0, 1, 2), (True, True, True)),
    ],
)
def test_hand_made_cases(utility, loss, corners, on):
    """None, one, repeats, ties in one number, straight lines, bends in and out, infinite losses."""
    assert pareto_frontier(utility, privacy_loss=loss) == corners
    assert is_on_frontier(utility, privacy_loss=loss) == on
