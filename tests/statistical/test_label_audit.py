"""Levels of the label audit, on randomised response of labels: with the true law, and with one whose odds are off."""

import numpy as np
import pytest
from scipy import special
from simulation import ALPHA, seldom

from auditor.estimators import pure_bound, pure_p_value
from auditor.many import draw_labels, label_guesses

RECORDS = 400
KINDS = np.array([0.5, 0.2, 0.75, 0.9])  # of records, by what the law says of label 1


def told_by_randomised_response(rng, law, truth, epsilon):
    """Labels of this law, and the posterior of each label given the true law and the noisy labels."""
    n, k = truth.shape
    labels = (np.cumsum(truth, axis=1) < rng.random(n)[:, None]).sum(axis=1)
    kept = rng.random(n) < np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    noisy = np.where(kept, labels, (labels + rng.integers(1, k, n)) % k)
    believed = truth * np.where(np.arange(k) == noisy[:, None], np.exp(epsilon), 1.0)
    real, shown = draw_labels(law, labels, rng)
    at = np.arange(n), shown
    return np.log(believed[at] / believed.sum(axis=1)), np.log(law[at]), real


def two_labels(off):
    """A law of two labels, and a true one whose odds are off by up to a factor of e^off, up or down."""
    one = np.tile(KINDS, RECORDS // KINDS.size)
    signs = np.where(np.arange(RECORDS) < RECORDS // 2, 1, -1)
    return [np.stack([1 - p, p], axis=1) for p in (one, special.expit(special.logit(one) + off * signs))]


def four_labels(_off):
    """A law of four labels, which is the true one."""
    law = np.array([[0.4, 0.3, 0.2, 0.1], [0.85, 0.05, 0.05, 0.05]])[np.arange(RECORDS) % 2]
    return law, law


def audited(rng, world, epsilon, off=0.0):
    """The guesses of one audit."""
    return label_guesses(*told_by_randomised_response(rng, *world(off), epsilon), rng)


def refuted(guesses, epsilon):
    """Whether they refute this epsilon, as every bound above it needs: all are of the grid."""
    return pure_p_value(guesses, guesses.sets, epsilon=epsilon, alpha=ALPHA) <= ALPHA


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("world", [two_labels, four_labels])
def test_the_epsilon_of_randomised_response_is_seldom_refuted(simulated, world, epsilon):
    """With the true law, at most as often as the level says."""
    assert seldom(
        simulated(lambda rng: refuted(audited(rng, world, epsilon), epsilon), seed=51, runs=(100, 4000))
    )


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 6.0])
def test_the_bound_is_no_idle_number(simulated, epsilon):
    """It is a good part of the epsilon of randomised response, and near what 400 perfect answers show, which no leak exceeds."""

    def bound(rng):
        guesses = audited(rng, two_labels, epsilon)
        return pure_bound(guesses, guesses.sets, alpha=ALPHA)[0]

    assert (min(epsilon, 4) - 0.5) / 2 < simulated(bound, seed=53, runs=(10, 200)).mean() < 8


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("off", [0.25, 1.0])
def test_a_law_that_is_off_costs_what_its_odds_are_off_by(simulated, off, epsilon):
    """With odds off by e^kappa, the bound less kappa exceeds epsilon at most as often as the bound says."""

    def above(rng):
        return refuted(audited(rng, two_labels, epsilon, off), epsilon + off)

    assert seldom(simulated(above, seed=52, runs=(60, 4000)))
