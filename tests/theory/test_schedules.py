"""More different steps than are composed one by one: the law that describes them dominates theirs, and hardly exceeds it."""

import math

import numpy as np
import pytest
from scipy import stats

from auditor.core import DPSGD, Adjacency
from auditor.theory import (
    StepPair,
    composed,
    epsilon,
    gaussian_epsilon,
    success_rate,
    total_variation,
    tpr_exact,
)
from auditor.theory.privacy_loss import _ComposedLaw, _law_of
from auditor.theory.schedules import merged
from auditor.theory.steps import together

ADD_REMOVE = Adjacency.ADD_REMOVE
MANY = 1100
SCHEDULES = {
    "falling noise": (np.linspace(1.6, 0.8, MANY), 0.01),
    "wide": (np.geomspace(0.7, 20, MANY), 0.02),
    "rates": (1.0, np.linspace(0.005, 0.02, MANY)),
    "four rates": (np.linspace(0.8, 1.6, MANY), np.repeat([0.01, 0.02, 0.03, 0.04], MANY // 4)),
}


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("name", SCHEDULES)
def test_merged_schedules_lie_above_the_exact_one_by_at_most_a_ten_thousandth(name, adjacency):
    """Epsilon and total variation of 1,100 different steps, against all of them composed one by one."""
    training = DPSGD(*SCHEDULES[name], MANY)
    exact = _ComposedLaw(together(training.phases, StepPair.of(training, adjacency)), 0.0)
    for found, least in (
        (epsilon(training, delta=1e-5, adjacency=adjacency).value, exact.epsilon_at(1e-5)),
        (total_variation(training, adjacency=adjacency).value, exact.total_variation()),
    ):
        assert least * (1 - 1e-9) < found < least * (1 + 1e-4)


def hockey_stick(noise, rate, pair, log_slope):
    """Sup P - e^eps Q of one step, over all outputs beyond one."""
    high, low = {StepPair.ADD_REMOVE: (1.0, 0.0), StepPair.REPLACE_ONE: (1.0, -1.0)}[pair]
    edge = np.linspace(-8, 40, 20_001) * noise
    beyond = [
        (1 - rate) * stats.norm.sf(edge, 0, noise) + rate * stats.norm.sf(edge, mean, noise)
        for mean in (high, low)
    ]
    gains = beyond[0] - math.exp(log_slope) * beyond[1]
    return max(float(gains.max()), 1 - math.exp(log_slope), 0.0)


@pytest.mark.parametrize("pair", [StepPair.ADD_REMOVE, StepPair.REPLACE_ONE])
def test_a_step_is_dominated_by_a_coin_between_its_levels(pair):
    """At every epsilon, of either sign, in the noise at one rate and in the rate at one noise."""
    for log_slope in (-1.0, -0.01, 0.0, 0.01, 0.3, 2.0, 6.0):
        for low, middle, high in ((0.3, 0.33, 0.4), (0.6, 0.7, 0.9), (1.0, 1.3, 3.0)):
            power = max((pair.distance / (2 * low)) ** 2 - 1, 1.0)
            share = (high**power - middle**power) / (high**power - low**power)
            ends = [hockey_stick(noise, 0.2, pair, log_slope) for noise in (low, high)]
            assert (
                hockey_stick(middle, 0.2, pair, log_slope) <= share * ends[0] + (1 - share) * ends[1] + 1e-7
            )
            ends = [hockey_stick(low, rate, pair, log_slope) for rate in (0.1, 0.5)]
            assert hockey_stick(low, 0.3, pair, log_slope) <= np.mean(ends) + 1e-7


def test_a_power_of_the_noise_is_needed():
    """Little noise: between levels of the noise itself a coin does not dominate, and between those of its power it does."""
    low, middle, high = 0.15, 0.2, 0.25
    ends = [hockey_stick(noise, 1.0, StepPair.REPLACE_ONE, 0.0) for noise in (low, high)]
    assert hockey_stick(middle, 1.0, StepPair.REPLACE_ONE, 0.0) > np.mean(ends)


def test_unequal_steps_are_bounded_at_every_t():
    """|product of (w_j A + (1 - w_j) B) - (w A + (1 - w) B)^n| is at most V/2 |A - B|^2, for transforms A and B of laws."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        first, second = (
            np.exp(1j * rng.uniform(0, 2 * np.pi, 3)) @ rng.dirichlet(np.ones(3)) for _ in range(2)
        )
        shares = rng.random(5)
        product = np.prod(shares * first + (1 - shares) * second)
        mean = shares.mean() * first + (1 - shares.mean()) * second
        most = np.sum((shares - shares.mean()) ** 2) / 2 * abs(first - second) ** 2
        assert abs(product - mean**5) <= most + 1e-12


@pytest.mark.parametrize("by_noise", [True, False])
def test_batches_of_a_fixed_size_take_the_worse_of_few_levels(monkeypatch, by_noise):
    """Twelve kinds by four levels show more than all twelve, and less than twelve of the worst."""
    monkeypatch.setattr("auditor.theory.schedules._KINDS_OF_FIXED_SIZE", 8)
    monkeypatch.setattr("auditor.theory.schedules._ROUNDED_OF_FIXED_SIZE", 4)
    noise, rate = (np.linspace(2.0, 3.0, 12), 0.05) if by_noise else (2.0, np.linspace(0.03, 0.05, 12))
    phases = DPSGD(noise, rate, 12, sampling="fixed-size").phases
    few = merged(phases, StepPair.FIXED_SIZE)
    assert few.count.size <= 6
    assert few.count.sum() == 12
    worst = together(DPSGD(2.0, 0.05, 12).phases, StepPair.FIXED_SIZE)
    all_of_them = together(phases, StepPair.FIXED_SIZE)
    exact, found, most = (_ComposedLaw(steps, 0.0).epsilon_at(1e-5) for steps in (all_of_them, few, worst))
    assert exact < found < 1.1 * exact < most


@pytest.mark.parametrize("count", [300, MANY])
def test_little_noise_and_few_steps_are_close_to_what_better_steps_show(count):
    """Epsilon at a small delta lies within a tenth of that with every noise raised to the next of 80 levels, composed exactly."""
    noise = np.geomspace(0.6, 4.0, count)
    found = epsilon(DPSGD(noise, 0.001, count), delta=1e-6, adjacency=Adjacency.REPLACE_ONE).value
    levels = np.geomspace(0.6, 4.0, 80)
    better = levels[np.minimum(np.searchsorted(levels, noise), 79)]
    least = epsilon(DPSGD(better, 0.001, count), delta=1e-6, adjacency=Adjacency.REPLACE_ONE).value
    assert least < found < 1.1 * least


def test_numbers_that_are_not_close_say_so(monkeypatch):
    """Where the work runs out the note does not say that the worst neighbours reach it; levels bound it where there are many."""
    training = DPSGD(np.linspace(1.0, 1.6, 150), 0.001)
    close = epsilon(training, delta=1e-5)
    monkeypatch.setattr("auditor.theory.inversion._MOST", 2e6)
    _law_of.cache_clear()
    found = epsilon(training, delta=1e-5)
    others = [tpr_exact(training, fpr=1e-3), success_rate(training)]
    _law_of.cache_clear()
    assert all("rounded up" in each.note for each in others)
    assert "reach it" in close.note
    assert found.value > 1.01 * close.value
    assert "rounded up" in found.note
    assert "reach it" not in found.note


def test_epsilon_of_different_noises_is_near_that_of_their_mean():
    """Epsilon of 300 steps lies above that of the mean noise, for it is convex in the noise, by at most a fifth."""
    training = DPSGD(np.linspace(1.0, 1.6, 300), 0.001)
    found, middle = (
        epsilon(each, delta=1e-5, adjacency=Adjacency.REPLACE_ONE).value
        for each in (training, DPSGD(1.3, 0.001, 300))
    )
    assert middle < found < 1.2 * middle


def test_many_gaussian_steps():
    """Two thousand noises at a rate of almost 1 have the exact Gaussian's epsilon and advantage, from above, and a lower bound."""
    noise = np.geomspace(20.0, 80.0, 2000)
    training, mu = DPSGD(noise, 1 - 1e-13), math.sqrt(np.sum(noise**-2.0))
    exact, law = gaussian_epsilon(mu, delta=1e-5), composed(training, adjacency=ADD_REMOVE)
    assert exact * (1 - 1e-9) < law.epsilon_at(1e-5) < exact * (1 + 1e-4)
    (lower,), (upper,) = law.between(np.zeros(1))
    truth = 2 * stats.norm.cdf(mu / 2) - 1
    assert truth * 0.99 < lower < truth < upper < truth * (1 + 1e-4)


def test_a_claim_says_that_its_steps_were_merged():
    """The notes of both, and a proven lower bound on the advantage."""
    training = DPSGD(*SCHEDULES["rates"], MANY)
    advantage = total_variation(training, adjacency=ADD_REMOVE)
    for claim in (epsilon(training, delta=1e-5), advantage):
        assert "1,100 different steps are described" in claim.note
    assert 0.99 * advantage.upper < advantage.lower < advantage.upper


def test_the_lower_bound_where_noise_and_rates_both_vary():
    """It lies below the advantage of all steps composed one by one, though the levels round the rates up."""
    rng = np.random.default_rng(1)
    training = DPSGD(rng.uniform(0.6, 2, MANY), rng.uniform(0.001, 0.05, MANY), MANY)
    exact = _ComposedLaw(together(training.phases, StepPair.of(training, ADD_REMOVE)), 0.0).total_variation()
    advantage = total_variation(training, adjacency=ADD_REMOVE)
    assert 0.9 * exact < advantage.lower < exact < advantage.upper < 1.1 * exact


def test_as_many_equal_steps_stay_exact():
    """Twenty thousand steps of few kinds are composed as they are."""
    noise = np.tile([0.8, 1.0, 1.3], 7000)
    steps = merged(DPSGD(noise, 0.01).phases, StepPair.ADD_REMOVE)
    assert steps.count.tolist() == [7000] * 3
    assert composed(DPSGD(noise, 0.01), adjacency=ADD_REMOVE).epsilon_at(1e-5) > 0
