"""The blog post on composition (001): its lemma, theorems and statements, against the package and exact oracles.

The post prints formulas and no numbers. Elsewhere: the errata with their numbers (`test_errata.py`: advanced composition,
the Gaussian mechanism's noise, the tail that is no equivalent, the union bound), the composition theorems against exact
arithmetic and side by side for training runs (`tests/theory/test_composition.py`), Renyi divergences
(`tests/theory/test_renyi.py`). The central limit theorem is not in the post; its failing tail is held here by simulation,
and by its numbers in `tests/theory/test_gdp.py`.
"""

import math

import numpy as np
import pytest
from oracles import gaussian_mechanism_delta, randomised_response_delta
from scipy import stats

from auditor import DPSGD, theory
from auditor.theory import advanced, basic, optimal


@pytest.mark.parametrize("steps", [1, 10, 100, 1000])
@pytest.mark.parametrize("mean", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("z", [0.5, 1.0, 2.0, 4.0])
def test_lemma_1_bounds_the_exact_tail(steps, mean, z):
    """Lemma 1 (Azuma): steps of +-1 with this mean exceed T beta + z sqrt(T) with probability e^(-z^2/2) at most."""
    least = math.ceil((steps + steps * mean + z * math.sqrt(steps)) / 2)
    assert stats.binom.sf(least - 1, steps, (1 + mean) / 2) <= math.exp(-(z**2) / 2)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 2, 30])
def test_theorem_1_holds_and_cannot_be_improved_at_delta_0(epsilon, steps):
    """Theorem 1: at the sum of the epsilons randomised response has delta 0, and just below it more than 0."""
    total = basic(epsilon, steps=steps)
    assert total == pytest.approx(steps * epsilon)
    assert randomised_response_delta(epsilon, steps=steps, total=total * (1 + 1e-12)) <= 1e-15
    assert randomised_response_delta(epsilon, steps=steps, total=0.9 * total) > 0


def test_theorem_1_adds_more_deltas_than_needed():
    """Theorem 1: deltas add up, twice .3 to .6, above the .51 that is needed."""
    # Steps of delta .3 each show everything with probability 1 - .7^2 = .51: no less will do.
    assert optimal(1.0, delta=0.3, steps=2, total_delta=0.51) == pytest.approx(2.0)
    assert optimal(1.0, delta=0.3, steps=2, total_delta=0.5) == math.inf


def test_theorem_2_is_considerably_smaller_for_many_steps_only():
    """After Theorem 2: at .1 and delta' 1e-5 the sum is smaller up to 28 steps and the theorem from 29 on (by hand)."""

    def by_hand(steps):
        return 0.1 * math.sqrt(2 * steps * math.log(1e5)) + steps * 0.1 * math.expm1(0.1)

    for steps in (1, 28, 29, 1000):
        found = advanced(0.1, steps=steps, slack=1e-5)
        assert found == pytest.approx(by_hand(steps), rel=1e-12)
        assert (found < basic(0.1, steps=steps)) == (steps >= 29)


def test_the_proof_of_theorem_2_must_spend_the_slack_alone():
    """Proof of Theorem 2 (new erratum): with T delta + delta' in the exponent Lemma 1 would give less than Equation 2."""
    epsilon, steps, delta, slack = 0.1, 100, 1e-6, 1e-5
    drift = steps * epsilon * math.expm1(epsilon)
    printed_proof = drift + epsilon * math.sqrt(2 * steps * math.log(1 / (steps * delta + slack)))
    found = advanced(epsilon, steps=steps, slack=slack)
    assert found == pytest.approx(drift + epsilon * math.sqrt(2 * steps * math.log(1 / slack)), rel=1e-12)
    assert printed_proof < found - 0.5


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_equation_7_is_safe_and_not_tight(mu, delta):
    """Theorem 3, Eq. 7 for a Gaussian at the best lambda is mu^2/2 + mu sqrt(2 ln(1/delta)): above the exact epsilon."""
    noise = 1 / mu

    def at(rate):
        # alpha(lambda) = lambda D_(lambda + 1), the Renyi divergence of order lambda + 1
        return rate * theory.renyi_divergence(DPSGD(noise, 1.0, 1), order=rate + 1)

    best = math.sqrt(2 * math.log(1 / delta)) / mu
    printed = (at(best) - math.log(delta)) / best
    assert printed == pytest.approx(mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta)), rel=1e-9)
    assert min((at(rate) - math.log(delta)) / rate for rate in (0.9 * best, 1.1 * best)) > printed
    exact = theory.gaussian_epsilon(mu, delta=delta)
    assert gaussian_mechanism_delta(mu, exact) == pytest.approx(delta, rel=1e-8)
    assert exact < printed
    assert exact <= theory.renyi_epsilon(DPSGD(noise, 1.0, 1), delta=delta).value <= printed


@pytest.mark.parametrize("steps", [10, 1000])
def test_moments_beat_advanced_composition_and_lose_to_privacy_losses(steps):
    """Perturbed SGD, as far as coins describe its batches: advanced > moments > privacy losses, all proven."""
    rows = theory.compare_compositions(DPSGD(1.0, 0.01, steps), delta=1e-5)
    first, moments, losses = (rows[place] for place in (1, 4, 5))
    assert all(row.proven for row in (first, moments, losses))
    assert first.value > 3 * moments.value
    assert moments.value > 1.1 * losses.value


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 0.99])
def test_the_corrected_gaussian_mechanism_holds_below_1_and_not_for_all(epsilon):
    """Gaussian mechanism: sigma = c/epsilon keeps delta for epsilon below 1, the stated range; at 10 it does not."""
    for delta in (1e-9, 1e-5, 1e-2):
        c = math.sqrt(2 * math.log(1.25 / delta))
        assert theory.gaussian_delta(epsilon / c, epsilon=epsilon) <= delta
    c = math.sqrt(2 * math.log(1.25e5))
    assert theory.gaussian_delta(10 / c, epsilon=10.0) > 1e-5


def test_the_central_limit_fails_in_the_tail():
    """At noise .6, rate .01, 100 steps the simulated delta at the limit's epsilon 1.505 is .0021: 200 times 1e-5."""
    run, rng, runs = DPSGD(0.6, 0.01, 100), np.random.default_rng(3), 100_000
    mu = theory.mu_clt(run).value
    at = theory.gaussian_epsilon(mu, delta=1e-5)
    loss = np.zeros(runs)
    for _ in range(100):
        x = 0.6 * rng.normal(size=runs) + (rng.random(runs) < 0.01)
        loss += np.log1p(0.01 * np.expm1((2 * x - 1) / (2 * 0.6**2)))
    excess = np.maximum(0.0, -np.expm1(at - loss))
    error = excess.std() / math.sqrt(runs)
    exact = float(theory.composed(run, adjacency="add-remove").delta_at(at))
    assert abs(excess.mean() - exact) < 5 * error
    assert exact == pytest.approx(0.0021, abs=5e-5)
