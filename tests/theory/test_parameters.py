"""Parameters for a wanted promise: they keep it, hardly better ones break it, and impossible wishes are refused."""

import contextlib
import math
from dataclasses import replace

import pytest

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.theory import (
    WantedAdvantage,
    WantedBayesSecurity,
    WantedEpsilon,
    WantedSuccess,
    WantedTPR,
    epsilon,
    gaussian_epsilon,
    noise_multiplier_for,
    sampling_rate_for,
    steps_for,
    success_rate,
    total_variation,
    tpr_exact,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
TARGETS = [
    WantedBayesSecurity(0.98),
    WantedBayesSecurity(0.5),
    WantedAdvantage(0.02, ADD_REMOVE),
    WantedTPR(0.01, at_fpr=0.001),
    WantedTPR(0.2, at_fpr=0.1, adjacency=ADD_REMOVE),
    WantedEpsilon(1.0, delta=1e-5),
    WantedEpsilon(0.1, 1e-6, REPLACE_ONE),
    WantedSuccess(0.55, prior=0.5),
    WantedSuccess(0.75, 0.3, ADD_REMOVE),
    WantedSuccess(0.92, prior=0.1),
]


def leak(target, training):
    """The quantity that must stay below the wanted number, by the public functions, and that number."""
    if isinstance(target, WantedEpsilon):
        return epsilon(training, delta=target.delta, adjacency=target.adjacency).value, target.most
    if isinstance(target, WantedTPR):
        return tpr_exact(training, fpr=target.at_fpr, adjacency=target.adjacency).value, target.most
    if isinstance(target, WantedSuccess):
        return success_rate(training, prior=target.prior, adjacency=target.adjacency).value, target.most
    advantage = total_variation(training, adjacency=target.adjacency).value
    return advantage, 1 - target.least if isinstance(target, WantedBayesSecurity) else target.most


def just_kept(target, found, worse):
    """Whether a promise is kept at what was found, and not where it is a little worse."""
    (reached, wanted), (broken, _) = (
        leak(target, found.training),
        leak(target, replace(found.training, **worse)),
    )
    return reached <= wanted + 1e-15 < broken


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_found_will_do_and_hardly_less(target):
    """Noise, sampling rate and steps keep the promise; 0.01% less protection, or one step more, breaks it."""
    noise = noise_multiplier_for(target, sampling_rate=0.002, steps=3000)
    assert just_kept(target, noise, {"noise_multiplier": noise.value * 0.9999})
    rate = sampling_rate_for(target, noise_multiplier=0.9, steps=500)
    assert just_kept(target, rate, {"sampling_rate": rate.value * 1.0001})
    steps = steps_for(target, noise_multiplier=1.1, sampling_rate=0.002)
    more = 1 if steps.value < 100_000 else math.ceil(steps.value * 1e-4)
    assert isinstance(steps.value, int)
    assert just_kept(target, steps, {"steps": steps.value + more})


def test_epsilon_without_sampling():
    """At rate 1 the noise for epsilon 1 is sqrt(T) / mu with mu(1, 1e-5) = .268051 (statistics.md, section 7)."""
    found = noise_multiplier_for(WantedEpsilon(1.0, delta=1e-5), sampling_rate=1.0, steps=9)
    assert found.value == pytest.approx(3 / 0.268051, rel=1e-5)
    assert gaussian_epsilon(3 / found.value, delta=1e-5) <= 1.0


def test_vectors():
    """One noise for a vector of rates, and one rate for a vector of noises, keep the promise of the whole run."""
    rates = [0.01] * 50 + [0.03] * 50
    found = noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=rates)
    assert 0.0999 < total_variation(DPSGD(found.value, rates)).value <= 0.1
    noises = [1.0] * 50 + [2.0] * 50
    rate = sampling_rate_for(WantedAdvantage(0.1), noise_multiplier=noises)
    assert 0.0999 < total_variation(DPSGD(noises, rate.value)).value <= 0.1


def test_fixed_size_takes_more_noise():
    """Batches of a fixed size give more away than Poisson batches, so they take more noise."""
    poisson, fixed = (
        noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=0.01, steps=500, **kind)
        for kind in ({}, {"sampling": FixedSizeSampling()})
    )
    assert fixed.value > poisson.value
    assert fixed.training.fixed_size


def test_every_rate_will_do():
    """Where even the whole training set in every step keeps the promise, the rate is 1."""
    found = sampling_rate_for(WantedBayesSecurity(0.9), noise_multiplier=1000.0, steps=10)
    assert found.value == 1.0
    assert found.promise.value >= 0.9


@pytest.mark.parametrize(
    ("target", "noise", "steps", "least"),
    [
        # Drawn at all with chance p T <= delta, the record changes nothing.
        pytest.param(WantedEpsilon(1e-3, delta=1e-12), 0.1, 10**7, 1e-19, marks=pytest.mark.long),
        (WantedEpsilon(1e-3, 1e-12, REPLACE_ONE), 0.1, 10**7, 1e-19),
        # Advantage <= 1 - (1 - p)^T <= p T.
        (WantedAdvantage(1e-12), 0.01, 10**6, 1e-18),
        (WantedBayesSecurity(1 - 1e-10), 0.01, 10**6, 1e-16),
        (WantedTPR(0.1 + 1e-10, at_fpr=0.1), 0.01, 10**6, 1e-16),
    ],
)
def test_there_is_always_a_sampling_rate(target, noise, steps, least):
    """A record that is hardly ever drawn is safe with hardly any noise, so every wish has a sampling rate."""
    found = sampling_rate_for(target, noise_multiplier=noise, steps=steps)
    assert found.value >= least * (1 - 1e-5)
    assert target.meets(found.promise.value)


@pytest.mark.parametrize(
    "target",
    [
        WantedAdvantage(1e-12),
        WantedAdvantage(1 - 1e-12),
        pytest.param(WantedTPR(0.1 + 2e-12, at_fpr=0.1), marks=pytest.mark.long),
        WantedTPR(1 - 1e-12, at_fpr=1 - 1e-11),
    ],
)
def test_extreme_wishes_give_a_number_or_a_sentence(target):
    """Wishes at the very ends of their ranges end in a parameter that keeps them or in one sentence."""
    for call in (
        lambda: noise_multiplier_for(target, sampling_rate=0.01, steps=100),
        lambda: noise_multiplier_for(target, sampling_rate=1e-200, steps=100),
        lambda: sampling_rate_for(target, noise_multiplier=1.0, steps=100),
        lambda: steps_for(target, noise_multiplier=1.0, sampling_rate=0.01),
    ):
        with contextlib.suppress(InputError):
            found = call()
            assert target.meets(found.promise.value)
            assert found.in_words().endswith(".")


def test_at_equal_priors_it_is_an_advantage():
    """Right in a share of (1 + Adv)/2: 0.55 at prior 0.5 takes the noise, the rate and the steps of advantage 0.1."""
    success, advantage = WantedSuccess(0.55, prior=0.5), WantedAdvantage(0.1)
    for call, arguments in (
        (noise_multiplier_for, {"sampling_rate": 0.01, "steps": 1000}),
        (sampling_rate_for, {"noise_multiplier": 1.0, "steps": 1000}),
        (steps_for, {"noise_multiplier": 1.0, "sampling_rate": 0.01}),
    ):
        assert call(success, **arguments).value == pytest.approx(
            call(advantage, **arguments).value, rel=2e-5, abs=1
        )


def test_a_success_rate_that_any_noise_keeps_is_refused():
    """A record that is never drawn cannot be recognised: of added records at prior 0.9 that helps guessing until they are drawn often.

    Drawn with chance d, an attacker who says "member" of whom he sees is right in a share .1 + .9 d of cases, which is 0.919
    at d = .91; of two records he is right in d + .9 (1 - d), which is more.
    """
    added = WantedSuccess(0.92, 0.9, ADD_REMOVE)
    with pytest.raises(InputError, match=r"every noise multiplier keeps the wanted success rate .* 0\.91"):
        noise_multiplier_for(added, sampling_rate=0.91, steps=1)
    assert noise_multiplier_for(added, sampling_rate=0.92, steps=1).value > 0.01
    with pytest.raises(InputError, match=r"every noise multiplier keeps .* chance of only 0\.2;"):
        noise_multiplier_for(WantedSuccess(0.92, 0.9), sampling_rate=0.2, steps=1)
    assert noise_multiplier_for(WantedSuccess(0.92, 0.9), sampling_rate=0.21, steps=1).value > 0.01


def test_a_success_rate_reads_as_a_sentence():
    """The sentence names the rate, the prior and what was reached."""
    found = noise_multiplier_for(WantedSuccess(0.92, prior=0.1), sampling_rate=0.01, steps=1000)
    assert (
        "keeps the wanted success rate of at most 0.92 at prior 0.1, replace-one (reached: 0.92"
        in found.in_words()
    )
