"""A stated claim at other deltas and neighbours, and the step from add/remove to replace-one."""

import math
from dataclasses import replace

import pytest
from scipy.special import ndtr

from auditor.core import DPSGD, Adjacency, Claim, InputError, StatedClaim
from auditor.theory import accountant as sampled, epsilon, replace_one

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


# --- A stated claim ------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_stated_at_its_own_delta(adjacency):
    """At its own delta and adjacency a stated claim is returned as it stands."""
    claim = epsilon(StatedClaim(2.0, 1e-6, adjacency), delta=1e-6, adjacency=adjacency)
    assert claim == Claim("epsilon", 2.0, 1e-6, adjacency, "stated", proven=True, note="Taken at its word.")


def test_stated_holds_at_a_larger_delta():
    """A larger delta permits at least the stated epsilon, and the note says which delta was stated."""
    claim = epsilon(StatedClaim(2.0, 1e-6), delta=1e-5)
    assert (claim.value, claim.delta) == (2.0, 1e-5)
    assert "1e-6" in claim.note


def test_stated_implies_nothing_at_a_smaller_delta():
    """A smaller delta than the stated one has no implied epsilon: null, with the reason."""
    claim = epsilon(StatedClaim(2.0, 1e-6), delta=1e-7)
    assert claim.value is None
    assert "implies no epsilon at 1e-7" in claim.note


def test_stated_add_remove_seen_as_replace_one():
    """An add/remove statement answers for replaced records from its converted delta on, and not below it."""
    stated = StatedClaim(1.0, 1e-5)
    assert epsilon(stated, delta=1e-5, adjacency=REPLACE_ONE).value is None
    assert epsilon(stated, delta=4e-5, adjacency=REPLACE_ONE).value == 2.0


def test_stated_replace_one_says_nothing_about_add_remove():
    """A replace-one statement may hide nothing about the number of records: null for add/remove."""
    claim = epsilon(StatedClaim(1.0, 1e-5, REPLACE_ONE), delta=0.5)
    assert claim.value is None
    assert "implies nothing" in claim.note


# --- From add/remove to replace-one --------------------------------------------------------------


STATED = Claim("epsilon", 1.0, 1e-5, ADD_REMOVE, "stated", proven=True)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0, 5.0])
def test_conversion_formula(value):
    """(epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta), by two steps of group privacy."""
    converted = replace_one(replace(STATED, value=value))
    assert converted.value == 2 * value
    assert converted.delta == pytest.approx((1 + math.exp(value)) * 1e-5, rel=1e-14)
    assert (converted.adjacency, converted.proven) == (REPLACE_ONE, True)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("value", [0.2, 1.0, 3.0])
def test_conversion_holds_for_gaussians_and_needs_its_larger_delta(mu, value):
    """Gaussians mu apart twice are 2 mu apart: their delta at 2 epsilon obeys the conversion, not the old delta."""

    def delta_at(distance, epsilon):
        return ndtr(distance / 2 - epsilon / distance) - math.exp(epsilon) * ndtr(
            -distance / 2 - epsilon / distance
        )

    single, double = delta_at(mu, value), delta_at(2 * mu, 2 * value)
    assert single < double <= (1 + math.exp(value)) * single


@pytest.mark.skipif(
    not sampled.accountant_has_replace_one(), reason="dp-accounting 0.4 has no replace-one to compare with"
)
def test_conversion_lies_above_the_accountant():
    """The converted epsilon is never below what the accountant finds at the same, larger delta."""
    training = DPSGD(1.0, 0.01, 300)
    converted = replace_one(epsilon(training, delta=1e-6))
    assert epsilon(training, delta=converted.delta, adjacency=REPLACE_ONE).value <= converted.value


@pytest.mark.parametrize(("value", "delta"), [(12.0, 1e-5), (1e6, 1e-300), (math.inf, 1e-5), (0.0, 0.5)])
def test_conversion_that_implies_nothing(value, delta):
    """Where the larger delta reaches 1 there is no value and no delta, without overflow, and the note says so."""
    converted = replace_one(replace(STATED, value=value, delta=delta))
    assert converted.value is None
    assert converted.delta is None
    assert "implies nothing" in converted.note


def test_conversion_at_delta_zero():
    """Pure differential privacy converts to pure differential privacy, however large epsilon is."""
    assert replace_one(replace(STATED, value=800.0, delta=0.0)).value == 1600.0
    assert replace_one(replace(STATED, value=math.inf, delta=0.0)).delta == 0.0


def test_conversion_leaves_replace_one_alone():
    """A replace-one claim is returned as it is."""
    own = replace(STATED, adjacency=REPLACE_ONE)
    assert replace_one(own) is own


def test_conversion_carries_a_missing_value_on():
    """A claim without a value converts to one without a value that carries the reason."""
    converted = replace_one(replace(STATED, value=None, note="No accountant."))
    assert converted.value is None
    assert "No accountant." in converted.note


def test_conversion_refuses_other_metrics_and_missing_deltas():
    """Only an epsilon with its delta can be converted."""
    with pytest.raises(InputError, match="claim metric must be one of 'epsilon'"):
        replace_one(replace(STATED, metric="advantage"))
    with pytest.raises(InputError, match="needs its delta"):
        replace_one(replace(STATED, delta=None))


def test_adjacency_may_be_a_string():
    """The adjacency strings of the command line work in Python too."""
    claim = epsilon(StatedClaim(1.0, 1e-5), delta=1e-5, adjacency="add-remove")
    assert claim.adjacency is ADD_REMOVE
