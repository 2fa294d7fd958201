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

from auditor import DPSGD, theory
from auditor.theory import basic


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 2, 30])
def test_theorem_1_holds_and_cannot_be_improved_at_delta_0(epsilon, steps):
    """Theorem 1: at the sum of the epsilons randomised response has delta 0, and just below it more than 0."""
    total = basic(epsilon, steps=steps)
    assert total == pytest.approx(steps * epsilon)
    assert randomised_response_delta(epsilon, steps=steps, total=total * (1 + 1e-12)) <= 1e-15
    assert randomised_response_delta(epsilon, steps=steps, total=0.9 * total) > 0


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
