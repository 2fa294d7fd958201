"""The e-process over every number of guesses: a slow version, and its exact level by listing all outcomes."""

import itertools
import math

import numpy as np
import pytest

from auditor.estimators import any_guesses_bound

STAKES = [(j + 0.5) / 16 for j in range(16)]


def slow_log_e(right, odds, epsilon):
    """The largest log E_r over every number of guesses r, factor by factor from the definition, p = q + (1 - q) u."""
    paths, best = [0.0] * len(STAKES), -math.inf
    for k, is_right in enumerate(right):
        o = odds[k % len(odds)]
        q = o * math.exp(epsilon) / (1 + o * math.exp(epsilon))
        for j, u in enumerate(STAKES):
            p = q + (1 - q) * u
            paths[j] += math.log(p / q) if is_right else math.log((1 - p) / (1 - q))
        best = max(best, math.log(sum(math.exp(x) for x in paths) / len(STAKES)))
    return best


@pytest.mark.parametrize("odds", [(1.0,), (0.25, 4.0), (2.0,)])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.97, 1.0])
def test_the_bound_is_where_the_slow_e_process_meets_the_level(rng, odds, share):
    """At the bound the largest mean product over every r is 1/alpha; at a bound of 0 it is below that."""
    for size in (1, 7, 60, 150):
        right = rng.random(size) < np.linspace(share, 0.5, size)
        found = any_guesses_bound(right, alpha=0.05, odds=odds)
        at_bound = slow_log_e(right, odds, found.bound)
        if found.bound > 0:
            assert at_bound == pytest.approx(math.log(20), abs=1e-8)
            assert slow_log_e(right[: found.guesses], odds, found.bound) == pytest.approx(at_bound, abs=1e-12)
            assert found.correct == right[: found.guesses].sum()
        else:
            assert at_bound < math.log(20) + 1e-12


def alarm_probability(size, odds, epsilon, *, assumed):
    """P[bound > epsilon] over all outcomes of guesses that are right as often as epsilon allows."""
    chances = [1 / (1 + math.exp(-epsilon) / odds[k % len(odds)]) for k in range(size)]
    total = 0.0
    for outcome in itertools.product([False, True], repeat=size):
        if any_guesses_bound(np.array(outcome), alpha=0.3, odds=assumed).bound > epsilon + 1e-9:
            total += math.prod(q if hit else 1 - q for q, hit in zip(chances, outcome, strict=True))
    return total


@pytest.mark.parametrize("odds", [(1.0,), (0.5, 2.0)])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.2])
def test_the_level_holds_over_all_outcomes(odds, epsilon):
    """Summed over every outcome of 9 guesses, the bound exceeds epsilon with probability at most alpha (here .3)."""
    assert alarm_probability(9, odds, epsilon, assumed=odds) <= 0.3


def test_wrong_odds_break_the_level():
    """Judged as fair, coins of odds 4 raise alarms without a leak far above the level."""
    assert alarm_probability(9, (4.0,), 0.0, assumed=(1.0,)) > 0.6
