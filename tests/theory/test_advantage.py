"""Membership advantage and Bayes security from an (epsilon, delta) claim."""

import math
from dataclasses import replace

import numpy as np
import pytest

from auditor.core import Adjacency, Claim, InputError
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


def test_never_above_one_and_monotone():
    """The advantage grows with epsilon and with delta and never exceeds 1."""
    by_epsilon = [humphries(replace(STATED, value=e, delta=0.5)).value for e in (0, 0.5, 3, 20, 40, 800)]
    by_delta = [humphries(replace(STATED, delta=d)).value for d in (0, 1e-9, 0.1, 0.5, 0.999999)]
    assert by_epsilon == sorted(by_epsilon)
    assert by_delta == sorted(by_delta)
    assert max(by_epsilon + by_delta) <= 1


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("proven", [True, False])
def test_keeps_adjacency_and_standing(adjacency, proven):
    """A derived number is about the same neighbours, and is proven exactly when its source is."""
    advantage = humphries(replace(STATED, adjacency=adjacency, proven=proven))
    security = bayes_security_from_advantage(advantage)
    for derived, metric in ((advantage, "advantage"), (security, "bayes_security")):
        assert (derived.metric, derived.adjacency, derived.proven) == (metric, adjacency, proven)
        assert derived.delta is None
        assert derived.note


def test_bayes_security_is_the_complement():
    """Bayes security from an advantage is 1 minus it."""
    advantage = humphries(STATED)
    assert bayes_security_from_advantage(advantage).value == 1 - advantage.value


def test_null_stays_null_with_its_reason():
    """A claim without a value gives rows without a value that carry the reason on, never 0."""
    missing = replace(STATED, value=None, note="No accountant.")
    advantage = humphries(missing)
    security = bayes_security_from_advantage(advantage)
    assert advantage.value is None
    assert security.value is None
    assert "No accountant." in advantage.note
    assert "No accountant." in security.note


def test_wrong_metric_is_refused():
    """Only an epsilon has a Humphries bound, and only an advantage a complement."""
    with pytest.raises(InputError, match="claim metric must be one of 'epsilon', got 'advantage'"):
        humphries(replace(STATED, metric="advantage"))
    with pytest.raises(InputError, match="claim metric must be one of 'advantage', got 'epsilon'"):
        bayes_security_from_advantage(STATED)


def test_missing_delta_is_refused():
    """An epsilon without its delta bounds nothing."""
    with pytest.raises(InputError, match="needs its delta"):
        humphries(replace(STATED, delta=None))


def test_rough_epsilon_inverts_the_bound():
    """The rough epsilon of a Humphries advantage, or of the security it leaves, is the epsilon it came from."""
    for epsilon in (0.01, 1.0, 7.0):
        advantage = humphries(replace(STATED, value=epsilon))
        for claim in (advantage, bayes_security_from_advantage(advantage)):
            rough = rough_epsilon(claim, delta=1e-5)
            assert rough.value == pytest.approx(epsilon, rel=1e-9)
            assert (rough.metric, rough.delta, rough.adjacency) == ("epsilon", 1e-5, claim.adjacency)


def test_rough_epsilon_is_the_printed_formula():
    """It is log((2 - beta - 2 delta)/beta), Cherubin et al. 2024, Section 4.2.1."""
    security = Claim("bayes_security", 0.98, None, Adjacency.REPLACE_ONE, "stated", proven=True)
    expected = math.log((2 - 0.98 - 2e-3) / 0.98)
    assert rough_epsilon(security, delta=1e-3).value == pytest.approx(expected, rel=1e-12)


def test_rough_epsilon_is_never_proven():
    """Whatever it comes from, it is labelled a rough estimate and no bound."""
    rough = rough_epsilon(humphries(STATED), delta=1e-5)
    assert rough.status == "approximation"
    assert "rough" in rough.method
    assert "no bound" in rough.note


def test_rough_epsilon_edges():
    """No advantage is 0, full advantage infinite, a null claim stays null, and the rest is refused."""
    security = Claim("bayes_security", 1.0, None, Adjacency.REPLACE_ONE, "stated", proven=True)
    assert rough_epsilon(security, delta=0.0).value == 0.0
    assert rough_epsilon(replace(security, value=0.99), delta=0.5).value == 0.0
    assert rough_epsilon(replace(security, value=0.0), delta=0.5).value == math.inf
    assert rough_epsilon(replace(security, value=1e-300), delta=0.0).value == pytest.approx(691.47, abs=0.01)
    missing = rough_epsilon(replace(security, value=None, note="Nothing known."), delta=0.0)
    assert missing.value is None
    assert "Nothing known." in missing.note
    with pytest.raises(
        InputError, match="claim metric must be one of 'bayes_security', 'advantage', got 'epsilon'"
    ):
        rough_epsilon(STATED, delta=0.0)
    with pytest.raises(InputError, match="delta must lie in"):
        rough_epsilon(security, delta=1.0)
