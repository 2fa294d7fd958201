"""Documents: clean once built, whoever built them, and of one kind with one set of methods."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

import auditor

JUNK = ("x", True, [], ["x"], {}, math.nan, 10**400, None)


@pytest.fixture(scope="module")
def losses():
    """Few losses with a leak."""
    rng = np.random.default_rng(0)
    return auditor.Losses(member=rng.normal(-1, 1, 60), nonmember=rng.normal(0, 1, 60))


@pytest.fixture(scope="module")
def result(losses):
    """Their audit."""
    return auditor.audit(losses, utility=auditor.Utility(0.8, "accuracy"))


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:20])
def test_what_is_not_of_its_kind_counts_as_missing(result, junk):
    """A number, a text or an object of another kind is missing once the document is built, at any depth."""
    star = result.estimate("epsilon_star.gaussian")
    details = {**star.details, "noise_floor": {"q95": junk}, "fit": junk, "at": {"fpr": junk}, "own": junk}
    row = replace(star, value=junk, lower=junk, details=details)
    made = replace(
        result,
        data={**result.data, "n_member": junk, "utility": {"value": junk}, "own": junk},
        estimates=(row,),
        checks=(replace(result.checks[0], details=junk),),
        provenance=junk,
    )
    found = made.estimate(star.name)
    numbers = (found.value, found.lower, found.details["noise_floor"]["q95"], found.details["at"]["fpr"])
    assert numbers == (None,) * 4
    assert (made.data["n_member"], made.data["utility"]["value"]) == (None, None)
    assert found.details["fit"] == ({} if junk == {} else None)
    assert (found.details["own"], made.data["own"]) == (junk, junk)  # nobody knows what it should be
    assert (made.checks[0].details, made.provenance) == ({}, {})


def test_a_sound_document_keeps_its_very_parts(result):
    """What is of its kind is not copied, however often a document is built from it."""
    again = replace(result)
    assert all(getattr(again, item.name) is getattr(result, item.name) for item in fields(result))


def test_a_text_in_the_place_of_a_configuration_stays(result):
    """The name of a configuration file stands for what it set."""
    made = replace(result, provenance={"config": "auditor.toml"})
    assert made.provenance == {"config": "auditor.toml"}
    assert replace(result, provenance={"config": 3}).provenance == {"config": None}
