"""A claim is judged by numbers about the training mechanism, and by nothing else."""

import dataclasses

import pytest

from auditor import audit
from auditor.checks import power
from auditor.core import (
    Adjacency,
    Claim,
    Estimate,
    InputError,
    Losses,
    RandomSplit,
    Status,
    Subject,
    Verdict,
)
from auditor.verdicts import compare, judge

CLAIM = Claim("epsilon", 1.0, 1e-5, Adjacency.REPLACE_ONE, "stated", proven=True)


FIELDS = {"confidence": 0.95, "method": "by hand", "delta": 1e-5, "details": {"ceiling": 5.0}, "upper": None}
ABOUT = {"subject": Subject.MECHANISM, "adjacency": Adjacency.REPLACE_ONE}
BOUND = Estimate("epsilon_bound.one_run", 2.0, 2.0, **FIELDS, **ABOUT)
CERTIFIED = Estimate("epsilon_bound.clopper_pearson", 1.0, 1.0, **FIELDS, subject=Subject.MODEL)


def test_a_mechanism_bound_judges():
    """A lower bound on the mechanism above the claim refutes it, one below does not."""
    assert judge(CLAIM, BOUND).verdict is Verdict.REFUTED
    assert judge(CLAIM, BOUND).subject is Subject.MECHANISM
    assert judge(CLAIM, dataclasses.replace(BOUND, value=0.5, lower=0.5)).verdict is Verdict.NOT_REFUTED


def test_the_two_subjects_of_a_number_cannot_be_mixed(rng):
    """Every number about the model that an audit computes is refused as a judge of a claim, whatever its size."""
    losses = Losses(member=rng.normal(-3, 1, 400), nonmember=rng.normal(0, 1, 400))
    result = audit(losses, delta=1e-5, split=RandomSplit())
    about_model = [item for item in result.estimates if item.subject is Subject.MODEL]
    assert len(about_model) > 5
    for estimate in about_model:
        with pytest.raises(InputError, match="about the model"):
            judge(CLAIM, estimate)


def test_a_rejected_curve_refutes_below_the_claimed_epsilon():
    """The claimed trade-off curve can be rejected as a whole although the bound at one delta stays below the claim."""
    details = {"ceiling": 5.0, "claimed_curve": {"rejected": True}}
    low = dataclasses.replace(BOUND, value=0.5, lower=0.5, details=details)
    found = judge(CLAIM, low)
    assert found.verdict is Verdict.REFUTED
    assert "whole trade-off curve" in found.reason


@pytest.mark.parametrize("change", [{"delta": 0.0}, {"delta": 5e-6}, {"adjacency": Adjacency.ADD_REMOVE}])
def test_a_smaller_delta_or_another_adjacency_is_not_judged(change):
    """A bound at a smaller delta or for another adjacency than the claim's gives not_evaluable, never refuted."""
    found = judge(CLAIM, dataclasses.replace(BOUND, **change))
    assert found.verdict is Verdict.NOT_EVALUABLE
    assert ("FDP()" in found.reason) == (change == {"delta": 0.0})


def test_a_bound_at_a_larger_delta_refutes():
    """An (epsilon, d)-DP algorithm is so at every larger delta, so a bound there that exceeds the claim refutes it."""
    found = judge(CLAIM, dataclasses.replace(BOUND, delta=1e-3))
    assert found.verdict is Verdict.REFUTED
    assert "delta 0.001" in found.reason


def test_the_power_to_reject_a_curve_counts():
    """A claim above the ceiling at one delta is not refuted, not inconclusive, where its curve could have been rejected."""
    details = {"ceiling": 0.8, "claimed_curve": {"rejected": False, "could_have_been": True}}
    able = dataclasses.replace(BOUND, value=0.5, lower=0.5, details=details)
    assert judge(CLAIM, able).verdict is Verdict.NOT_REFUTED
    unable = dataclasses.replace(able, details={"ceiling": 0.8, "claimed_curve": {"rejected": False}})
    assert judge(CLAIM, unable).verdict is Verdict.INCONCLUSIVE
    assert power(CERTIFIED, able, CLAIM, sizes=(1000, 1000), error=0.05).status is Status.OK
    assert power(CERTIFIED, unable, CLAIM, sizes=(1000, 1000), error=0.05).status is Status.WARN


@pytest.mark.parametrize(
    ("epsilon", "curve", "beyond"),
    [
        (1.2, {}, False),
        (2.0, {}, True),
        (2.0, {"score_could": True}, False),
        (2.0, {"score_could": False}, True),
    ],
)
def test_a_score_that_could_not_refute_says_so(epsilon, curve, beyond):
    """A claim above what this score shows with any number of records stays not refuted, and the reason says so."""
    details = {"ceiling": 5.0, "ceiling_of_score": 1.3, "claimed_curve": curve}
    found = judge(
        dataclasses.replace(CLAIM, value=epsilon),
        dataclasses.replace(BOUND, value=0.5, lower=0.5, details=details),
    )
    assert found.verdict is Verdict.NOT_REFUTED
    assert ("with any number of records: they show at most 1.3." in found.reason) is beyond


def test_of_two_equal_verdicts_the_larger_bound_is_quoted():
    """Two bounds at delta 0 judge one claim: the sentence has the one that shows more, whatever their order."""
    claim = dataclasses.replace(CLAIM, delta=0.0, value=4.0)
    low, high = (
        dataclasses.replace(BOUND, name=name, delta=0.0, value=value, lower=value, details={"ceiling": 6.0})
        for name, value in (("epsilon_bound.one_run", 0.2), ("epsilon_bound.adaptive", 1.8))
    )
    for values in ((low, high), (dataclasses.replace(low, value=2.5, lower=2.5), high)):
        [row, *_] = compare([claim], values, [], audited=claim)
        best = max(values, key=lambda item: item.value)
        assert (row.verdict, row.estimate) == (Verdict.NOT_REFUTED, best.name)
        assert f"at least {best.value}" in row.reason


def test_a_small_audit_says_what_its_score_shows():
    """Beside a ceiling below the claim stands that of the score, if it is lower still."""
    details = {"ceiling": 0.9, "ceiling_of_score": 0.2}
    reason = judge(CLAIM, dataclasses.replace(BOUND, value=0.0, lower=0.0, details=details)).reason
    assert "; guesses like these, however many, show at most 0.2." in reason
    equal = {"ceiling": 0.9, "ceiling_of_score": 0.9}
    assert (
        "guesses like these"
        not in judge(CLAIM, dataclasses.replace(BOUND, value=0.0, lower=0.0, details=equal)).reason
    )
