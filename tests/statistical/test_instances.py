"""The bound of several instances holds its level for every kind of mechanism; the point value does not."""

import math
from functools import cache

import numpy as np
import pytest
from simulation import ALPHA, seldom

from auditor.core import Losses
from auditor.estimators import (
    InstanceRates,
    certified_epsilon,
    on_common_grid,
    point,
    rank_curves,
)

N = 100  # records in each group


def noise(rng):
    """No leak at all."""
    return rng.random(N), rng.random(N)


def response(rng):
    """Losses whose ratio of densities is e or 1/e everywhere: epsilon 1."""
    truthful = rng.random(N) < math.e / (1 + math.e)
    cut = 1 / (1 + math.e)
    return np.where(truthful, rng.random(N) * cut, cut + rng.random(N) * (1 - cut)), rng.random(N)


def shift(rng):
    """Members lower by one standard deviation."""
    return rng.normal(-1, 1, N), rng.normal(size=N)


def varying(rng):
    """The leak differs from model to model, from none to large."""
    return rng.normal(-rng.gamma(1, 1), 1, N), rng.normal(size=N)


def rarely_nothing(rng):
    """One model in 33 leaks nothing, the others reveal most of their members."""
    leaks = rng.random() < 0.97
    revealed = rng.random(N) < (0.9 if leaks else 1 / N)
    return np.where(revealed, -1.0 - rng.random(N), rng.random(N)), rng.random(N)


def rarely_all(rng):
    """One model in 20 reveals everything, the others nothing."""
    return rng.normal(-20 if rng.random() < 0.05 else 0, 1, N), rng.normal(size=N)


MECHANISMS = (noise, response, shift, varying, rarely_nothing, rarely_all)


@cache
def population(mechanism, *, size=400):
    """Many models of a mechanism: drawing from them is drawing models, and their own eps-bar is known exactly."""
    rng = np.random.default_rng(30)
    curves = [rank_curves(Losses(*mechanism(rng))) for _ in range(size)]
    return on_common_grid([{curve.name: curve for curve in item} for item in curves])


def drawn(models, instances, rng):
    """So many instances, drawn independently."""
    rows = rng.integers(0, models.hits.shape[0], instances)
    return InstanceRates(models.hits[rows], models.rates, models.weights, models.names)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("instances", [2, 10, 50])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_the_certified_bound_covers_eps_bar(simulated, mechanism, instances, delta):
    """With 2, 10 and 50 instances the bound exceeds the mechanism's own eps-bar in at most 5% of the audits."""
    models = population(mechanism)
    truth = point(models, delta)[0]

    def over(rng):
        return certified_epsilon(drawn(models, instances, rng), delta, ALPHA)[0] > truth + 1e-9

    assert seldom(simulated(over, seed=31, runs=(20, 400)))


def test_the_level_is_that_of_the_error_probability(simulated):
    """A bet at its fairest, all or nothing, wins as often as Markov's inequality allows and no more."""
    # One attack that calls everyone in one model of ten: two instances win 100 times the stake once in 100.
    alone = (np.array([0.1]), np.array([1.0]), ("ranks.low_members",))

    def over(rng):
        hits = (rng.random((2, 1)) < 0.1).astype(float)
        return certified_epsilon(InstanceRates(hits, *alone), 0.0, ALPHA)[0] > 0

    found = simulated(over, seed=33, runs=(400, 8000))
    assert found.any()
    assert seldom(found, 0.01)


def mostly_leaking(rng, *, instances):
    """One attack that is wrong once in 1000: it finds about 900 of 1000 members, or in one model of 33 a single one."""
    leaks = rng.random((instances, 1)) < 0.97
    share = np.where(leaks, rng.binomial(1000, 0.9, (instances, 1)) / 1000, 1e-3)
    return InstanceRates(share, np.array([1e-3]), np.array([1.0]), ("ranks.low_members",))


@pytest.mark.parametrize("instances", [10, 20, 50, pytest.param(100, marks=pytest.mark.long)])
def test_the_simulation_can_fail(simulated, instances):
    """The point value is too high where one model in 33 hardly leaks and there is none of them; the bound is not."""
    truth = math.log(0.97 * 900 + 0.03)

    def over(rng):
        item = mostly_leaking(rng, instances=instances)
        return point(item, 0.0)[0] > truth, certified_epsilon(item, 0.0, ALPHA)[0] > truth

    naive, sound = simulated(over, seed=34, runs=(20, 400)).T
    assert not seldom(naive)
    assert seldom(sound)
