"""A stated claim at other deltas and neighbours, and the step from add/remove to replace-one."""

import math
from dataclasses import replace

import pytest

from auditor.core import DPSGD, Adjacency, Claim, StatedClaim
from auditor.theory import epsilon, replace_one

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


# --- A stated claim ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "delta", "adjacency", "value", "words"),
    [
        (StatedClaim(2.0, 1e-6), 1e-6, ADD_REMOVE, 2.0, "Taken at its word."),
        (StatedClaim(2.0, 1e-6, REPLACE_ONE), 1e-6, REPLACE_ONE, 2.0, "Taken at its word."),
        (StatedClaim(2.0, 1e-6), 1e-5, ADD_REMOVE, 2.0, "1e-6"),
        (StatedClaim(2.0, 1e-6), 1e-7, ADD_REMOVE, None, "implies no epsilon at 1e-7"),
        # From the converted delta on, (1 + e) 1e-5, and not below it.
        (StatedClaim(1.0, 1e-5), 4e-5, REPLACE_ONE, 2.0, "larger delta"),
        (StatedClaim(1.0, 1e-5), 1e-5, REPLACE_ONE, None, "implies no epsilon"),
        (StatedClaim(1.0, 1e-5, REPLACE_ONE), 0.5, ADD_REMOVE, None, "implies nothing"),
    ],
)
def test_a_statement_answers_where_it_applies(stated, delta, adjacency, value, words):
    """It holds for its own neighbours or replaced ones, at its delta and above; elsewhere it is null, with the reason."""
    claim = epsilon(stated, delta=delta, adjacency=adjacency)
    assert (claim.metric, claim.value, claim.delta, claim.adjacency) == ("epsilon", value, delta, adjacency)
    assert words in claim.note


# --- From add/remove to replace-one --------------------------------------------------------------


STATED = Claim("epsilon", 1.0, 1e-5, ADD_REMOVE, "stated", proven=True)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0, 5.0])
def test_conversion_formula(value):
    """(epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta), by two steps of group privacy."""
    converted = replace_one(replace(STATED, value=value))
    assert converted.value == 2 * value
    assert converted.delta == pytest.approx((1 + math.exp(value)) * 1e-5, rel=1e-14)
    assert (converted.adjacency, converted.proven) == (REPLACE_ONE, True)


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


def test_conversion_of_other_claims():
    """At delta 0 it stays at 0, whatever epsilon; a replace-one claim stays itself, and a missing value missing."""
    assert replace_one(replace(STATED, value=800.0, delta=0.0)).value == 1600.0
    assert replace_one(replace(STATED, value=math.inf, delta=0.0)).delta == 0.0
    own = replace(STATED, adjacency=REPLACE_ONE)
    assert replace_one(own) is own
    converted = replace_one(replace(STATED, value=None, note="No accountant."))
    assert converted.value is None
    assert "No accountant." in converted.note
