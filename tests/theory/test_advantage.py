"""Membership advantage and Bayes security from an (epsilon, delta) claim."""

import math
from dataclasses import replace

import numpy as np
import pytest

from auditor.core import Adjacency, Claim
from auditor.theory import bayes_security_from_advantage, humphries, rough_epsilon

STATED = Claim("epsilon", 1.0, 1e-5, Adjacency.REPLACE_ONE, "stated", proven=True)


# statistics.md, section 7: Adv bound.
@pytest.mark.parametrize(("epsilon", "expected"), [(1.0, 0.46212254), (0.21, 0.10462477)])
def test_reference_values(epsilon, expected):
    """The advantage bound at delta 1e-5 agrees with the reference to eight digits."""
    assert humphries(replace(STATED, value=epsilon)).value == pytest.approx(expected, abs=5e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 7.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1, 0.9])
def test_is_the_largest_gap_of_the_privacy_region(epsilon, delta):
    """The bound is the maximum of TPR - FPR over all rates that (epsilon, delta)-DP permits, both ways round."""
    fpr = np.linspace(0, 1, 200_001)
    tpr = np.minimum(np.exp(epsilon) * fpr + delta, 1 - np.exp(-epsilon) * (1 - delta - fpr))
    best = np.max(np.minimum(tpr, 1) - fpr)
    assert humphries(replace(STATED, value=epsilon, delta=delta)).value == pytest.approx(best, abs=1e-5)


def test_extreme_epsilons():
    """Huge and infinite epsilons give 1, epsilon 0 gives delta, and a tiny epsilon keeps its digits."""
    assert humphries(replace(STATED, value=1e6)).value == 1.0
    assert humphries(replace(STATED, value=math.inf, delta=0.0)).value == 1.0
    assert humphries(replace(STATED, value=0.0)).value == 1e-5
    assert humphries(replace(STATED, value=1e-12, delta=0.0)).value == pytest.approx(5e-13, rel=1e-12)


def test_null_stays_null_with_its_reason():
    """A claim without a value gives rows without a value that carry the reason on, never 0."""
    advantage = humphries(replace(STATED, value=None, note="No accountant."))
    security = bayes_security_from_advantage(advantage)
    for claim in (advantage, security, rough_epsilon(security, delta=0.0)):
        assert claim.value is None
        assert "No accountant." in claim.note


@pytest.mark.parametrize(("metric", "value"), [("bayes_security", 0.98), ("advantage", 0.02)])
def test_rough_epsilon_is_the_printed_formula(metric, value):
    """It is log((2 - beta - 2 delta)/beta), Cherubin et al. 2024, Section 4.2.1."""
    rough = rough_epsilon(
        Claim(metric, value, None, Adjacency.REPLACE_ONE, "stated", proven=True), delta=1e-3
    )
    assert rough.value == pytest.approx(math.log((2 - 0.98 - 2e-3) / 0.98), rel=1e-12)
    assert (rough.metric, rough.delta, rough.adjacency) == ("epsilon", 1e-3, Adjacency.REPLACE_ONE)


def test_rough_epsilon_edges():
    """No advantage is 0, and full advantage infinite."""
    security = Claim("bayes_security", 1.0, None, Adjacency.REPLACE_ONE, "stated", proven=True)
    assert rough_epsilon(security, delta=0.0).value == 0.0
    assert rough_epsilon(replace(security, value=0.99), delta=0.5).value == 0.0
    assert rough_epsilon(replace(security, value=0.0), delta=0.5).value == math.inf
    assert rough_epsilon(replace(security, value=1e-300), delta=0.0).value == pytest.approx(691.47, abs=0.01)
