"""Attackers with prior knowledge: success, advantage and posterior."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from theory.references import stated

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.theory import (
    advantage_under_prior,
    bayes_security_from_advantage,
    success_rate,
    success_rate_from_bayes_security,
    total_variation,
)
from auditor.theory.attackers import posterior_from_epsilon

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
PRIORS = [1e-9, 0.01, 0.3, 0.5, 0.7, 0.99]
RUN = DPSGD(0.8, 0.05, 60)


def one_step_success(noise, rate, prior, *, replaced):
    """Integral of the larger of the two weighted densities, by quadrature."""

    def mixture(x, mean):
        return (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, mean, noise)

    def larger(x):
        out = mixture(x, -1) if replaced else norm.pdf(x, 0, noise)
        return max(prior * mixture(x, 1), (1 - prior) * out)

    reach = 1 + 10 * noise
    return quad(larger, -reach, reach, limit=500, points=np.linspace(-reach, reach, 21))[0]


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("prior", [0.1, 0.3, 0.5, 0.8])
def test_one_step_against_quadrature(prior, replaced):
    """For one step the success rate is the integral of the larger weighted density."""
    adjacency = REPLACE_ONE if replaced else ADD_REMOVE
    found = success_rate(DPSGD(0.7, 0.4, 1), prior=prior, adjacency=adjacency).value
    assert found == pytest.approx(one_step_success(0.7, 0.4, prior, replaced=replaced), abs=1e-8)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_success_lies_between_guessing_and_bayes_security(prior, adjacency):
    """Looking never hurts, and Bayes security bounds what it adds: success <= 1 - beta* (1 - max prior)."""
    success = success_rate(RUN, prior=prior, adjacency=adjacency).value
    security = bayes_security_from_advantage(total_variation(RUN, adjacency=adjacency))
    bound = success_rate_from_bayes_security(security, prior=prior).value
    assert max(prior, 1 - prior) <= success <= bound + 1e-12


def test_out_of_range_runs():
    """Where the law cannot be resolved a bound stands in; fixed-size batches have none for added records."""
    claim = success_rate(DPSGD(0.01, 0.001, 100), prior=0.2)
    assert claim.value == pytest.approx(0.8 + 0.2 * (1 - 0.999**100), abs=1e-9)
    missing = success_rate(DPSGD(1.0, 0.01, 10, sampling=FixedSizeSampling()), adjacency=ADD_REMOVE)
    assert missing.value is None
    assert "fixed size" in missing.note
    none = advantage_under_prior(DPSGD(1.0, 0.01, 10, sampling=FixedSizeSampling()), prior=0.3)
    assert none.value is None


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("eps", [0.0, 0.447, 5.0, 800.0])
def test_posterior_multiplies_the_odds(prior, eps):
    """The largest posterior odds are the prior odds times e^epsilon, without overflow."""
    found = posterior_from_epsilon(stated("epsilon", eps, 0.0), prior=prior).value
    log_odds = math.log(prior) - math.log1p(-prior) + eps
    assert found == pytest.approx(1 / (1 + math.exp(-log_odds)), rel=1e-12)
    assert found >= prior


def test_posterior_needs_delta_zero():
    """A delta above 0 bounds no posterior, and the note says so; no delta and no epsilon are distinguished."""
    claim = posterior_from_epsilon(stated("epsilon", 1.0, 1e-5), prior=0.5)
    assert claim.value is None
    assert "no posterior is bounded" in claim.note
    assert posterior_from_epsilon(stated("epsilon", None, 0.0), prior=0.5).note == "By hand."
    with pytest.raises(InputError, match="needs its delta"):
        posterior_from_epsilon(stated("epsilon", 1.0), prior=0.5)
