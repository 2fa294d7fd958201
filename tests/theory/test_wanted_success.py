"""Noise for a success rate at a prior: it keeps the promise by an integral of its own, and hardly less would."""

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from auditor.core import DPSGD, Adjacency, InputError
from auditor.theory import (
    Corollary7,
    WantedAdvantage,
    WantedSuccess,
    noise_multiplier_for,
    sampling_rate_for,
    steps_for,
    success_rate,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def of_one_step(noise, rate, prior, adjacency):
    """The integral of max(prior p, (1 - prior) q) over a million outputs of one step: Bayes' decision, counted."""
    x = np.linspace(-1 - 12 * noise, 1 + 12 * noise, 1_000_001)
    nothing = norm.pdf(x, 0, noise)
    first = (1 - rate) * nothing + rate * norm.pdf(x, 1, noise)
    second = nothing if adjacency is ADD_REMOVE else (1 - rate) * nothing + rate * norm.pdf(x, -1, noise)
    return trapezoid(np.maximum(prior * first, (1 - prior) * second), x)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize(("most", "prior"), [(0.55, 0.5), (0.75, 0.3), (0.92, 0.1), (0.92, 0.9)])
def test_bayes_decision_is_right_that_often_and_no_more(most, prior, adjacency):
    """At the noise found, the integral of Bayes' decision is the wanted rate, to a millionth and from below."""
    found = noise_multiplier_for(WantedSuccess(most, prior, adjacency), sampling_rate=0.95, steps=1)
    reached = of_one_step(found.value, 0.95, prior, adjacency)
    assert most - 1e-5 < reached < most + 1e-9
    assert found.promise.metric.startswith("success_rate")
    assert found.status == "proven"


def test_at_equal_priors_it_is_an_advantage():
    """Right in a share of (1 + Adv)/2: 0.55 at prior 0.5 takes the noise, the rate and the steps of advantage 0.1."""
    success, advantage = WantedSuccess(0.55, prior=0.5), WantedAdvantage(0.1)
    for call, arguments in (
        (noise_multiplier_for, {"sampling_rate": 0.01, "steps": 1000}),
        (noise_multiplier_for, {"sampling_rate": 0.01, "steps": 1000, "method": Corollary7()}),
        (sampling_rate_for, {"noise_multiplier": 1.0, "steps": 1000}),
        (steps_for, {"noise_multiplier": 1.0, "sampling_rate": 0.01}),
    ):
        assert call(success, **arguments).value == pytest.approx(
            call(advantage, **arguments).value, rel=2e-5, abs=1
        )


def test_without_sampling():
    """At rate 1 the outputs are normals sqrt(T) / s apart, for which Bayes' threshold is x = mu/2 + log(odds)/mu."""
    prior, steps = 0.2, 25
    found = noise_multiplier_for(WantedSuccess(0.85, prior, ADD_REMOVE), sampling_rate=1.0, steps=steps)
    mu = math.sqrt(steps) / found.value
    threshold = mu / 2 + math.log((1 - prior) / prior) / mu
    right = prior * norm.sf(threshold - mu) + (1 - prior) * norm.cdf(threshold)
    assert right == pytest.approx(0.85, abs=2e-6)
    assert right <= 0.85 + 1e-12


def test_what_any_noise_keeps_is_refused():
    """Who is never drawn cannot be told: of added records at prior 0.9 that helps guessing until they are drawn often.

    Drawn with chance d, an attacker who says "member" of whom he sees is right in a share .1 + .9 d of cases, which is 0.919
    at d = .91; of two records he is right in d + .9 (1 - d), which is more.
    """
    added = WantedSuccess(0.92, 0.9, ADD_REMOVE)
    with pytest.raises(InputError, match=r"every noise multiplier keeps the wanted success rate .* 0\.91"):
        noise_multiplier_for(added, sampling_rate=0.91, steps=1)
    assert of_one_step(0.01, 0.91, 0.9, ADD_REMOVE) == pytest.approx(0.919, abs=1e-9)
    assert noise_multiplier_for(added, sampling_rate=0.92, steps=1).value > 0.01
    with pytest.raises(InputError, match=r"every noise multiplier keeps .* chance of only 0\.2;"):
        noise_multiplier_for(WantedSuccess(0.92, 0.9), sampling_rate=0.2, steps=1)
    assert noise_multiplier_for(WantedSuccess(0.92, 0.9), sampling_rate=0.21, steps=1).value > 0.01


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: WantedSuccess(0.9, prior=0.1),
            r"success rate must be 1e-12 or more above 0\.9, .* got 0\.9; want",
        ),
        (lambda: WantedSuccess(0.4, prior=0.5), "which an attacker reaches by guessing, got 0.4"),
        (lambda: WantedSuccess(1.0, prior=0.5), r"wanted success rate must lie in \(0, 1\)"),
        (lambda: WantedSuccess(0.9, prior=1.0), r"prior must lie in \(0, 1\)"),
    ],
)
def test_wishes_below_guessing_are_refused(call, words):
    """No noise keeps an attacker from guessing."""
    with pytest.raises(InputError, match=words):
        call()


def test_it_reads_as_a_sentence():
    """The sentence names the rate, the prior and what was reached, and the run has that success rate."""
    found = noise_multiplier_for(WantedSuccess(0.92, prior=0.1), sampling_rate=0.01, steps=1000)
    assert (
        "keeps the wanted success rate of at most 0.92 at prior 0.1, replace-one (reached: 0.92"
        in found.in_words()
    )
    assert success_rate(found.training, prior=0.1).value <= 0.92
    worse = DPSGD(found.value * 0.999, 0.01, 1000)
    assert success_rate(worse, prior=0.1).value > 0.92
