"""Bets on guesses that are learnt from revealed coins exceed the truth in at most 5% of audits, in the worst laws known."""

import numpy as np
import pytest
from scipy import special
from simulation import ALPHA, seldom

from auditor.estimators.adaptive import Classifiers, Coins, Shares, largest_refuted, log_wealth
from auditor.records.features import Table

_LAWS = {
    # What is shown of each record by a mechanism whose every coin is exactly (epsilon, 0)-DP: `shown` is the coin or its opposite.
    "randomised response": lambda shown, _: shown + 0.0,
    "in the parity of small cells": lambda shown, rng: 2 * rng.integers(0, 20, shown.size) + shown,
    "near one value only": lambda shown, rng: np.where(
        shown, rng.normal(0.5, 0.01, shown.size), rng.normal(size=shown.size)
    ),
}


def bound(score, heads, prior, rng, columns=None):
    """The bound on epsilon by coins about single records, revealed in random order."""
    order = rng.permutation(heads.size)
    coins = Coins(order[None], heads[order], prior[order])
    learners = [Shares(score)]
    if columns is not None:
        n = int(heads.sum())
        names = tuple(map(str, range(len(columns))))
        tables = [
            Table(names, tuple(c[:n] for c in columns), n),
            Table(names, tuple(c[n:] for c in columns), heads.size - n),
        ]
        learners.append(Classifiers([tables], order, rng))
    return largest_refuted(log_wealth(coins, learners)[0], ALPHA)


@pytest.mark.parametrize("size", [60, 400])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("law", _LAWS)
def test_fair_coins_are_covered(simulated, law, epsilon, size):
    """A mechanism that attains epsilon at every coin has a larger bound in at most 5% of audits."""

    def above(rng):
        heads = rng.random(size) < 0.5
        shown = heads ^ (rng.random(size) < special.expit(-epsilon))
        return bound(_LAWS[law](shown, rng), heads, np.zeros(size), rng) > epsilon

    assert seldom(simulated(above, seed=11, runs=(20, 4000)))


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_coins_of_other_odds_are_covered(simulated, epsilon):
    """Coins of .05 to .9, each with randomised responses that move its odds by a factor of e^epsilon exactly, either way."""

    def above(rng):
        prior = special.logit(rng.choice([0.05, 0.3, 0.9], 300))
        heads = rng.random(300) < special.expit(prior)
        shown = heads ^ (rng.random(300) < special.expit(-epsilon))
        return bound(shown + 0.0, heads, prior, rng) > epsilon

    assert seldom(simulated(above, seed=12, runs=(60, 4000)))


def test_a_shared_chance_is_covered(simulated):
    """In half of the runs every coin is shown with epsilon 1, in the others none: coins that are dependent through the run."""

    def above(rng):
        heads, epsilon = rng.random(300) < 0.5, rng.choice([0.0, 1.0])
        shown = heads ^ (rng.random(300) < special.expit(-epsilon))
        return bound(shown + 0.0, heads, np.zeros(300), rng) > 1

    assert seldom(simulated(above, seed=13, runs=(60, 4000)))


def test_classifiers_of_many_scores_are_covered(simulated):
    """Two columns show a coin with epsilon 1 only where both are read, among three of noise."""

    def above(rng):
        heads = np.arange(200) < rng.binomial(200, 0.5)
        shown = heads ^ (rng.random(200) < special.expit(-1.0))
        first = rng.normal(size=200)
        columns = [first, np.sign(first) * (2.0 * shown - 1), *rng.normal(size=(3, 200))]
        return bound(first, heads, np.zeros(200), rng, columns) > 1

    assert seldom(simulated(above, seed=14, runs=(3, 1000)))
