"""A claim is judged by numbers about the training mechanism, and by nothing else."""

import dataclasses

import pytest

from auditor import audit
from auditor.checks import power
from auditor.core import (
    Adjacency,
    Claim,
    Comparison,
    Estimate,
    InputError,
    Losses,
    RandomSplit,
    StatedClaim,
    Status,
    Subject,
    Verdict,
)
from auditor.verdicts import judge

CLAIM = Claim("epsilon", 1.0, 1e-5, Adjacency.REPLACE_ONE, "stated", proven=True)
BOUND = Estimate(
    "epsilon_bound.one_run",
    2.0,
    2.0,
    None,
    0.95,
    "by hand",
    Subject.MECHANISM,
    1e-5,
    Adjacency.REPLACE_ONE,
    details={"ceiling": 5.0},
)


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


def test_no_verdict_can_be_written_under_a_model_number():
    """A comparison that holds a verdict from a number about the model cannot be built."""
    with pytest.raises(InputError, match="gives no verdict"):
        Comparison(CLAIM, "epsilon_star.gaussian", Verdict.REFUTED, "larger", Subject.MODEL)


def test_a_number_cannot_change_its_subject():
    """Relabelling a model number as a mechanism number fails without an adjacency, and the reverse fails with one."""
    with pytest.raises(InputError, match="needs the adjacency"):
        Estimate("epsilon_star.gaussian", 3.0, None, None, None, "fit", Subject.MECHANISM)
    with pytest.raises(InputError, match="has no adjacency"):
        dataclasses.replace(BOUND, subject=Subject.MODEL)


def test_conditional_and_upper_numbers_do_not_judge():
    """A bound that holds only for a Gaussian trade-off curve, and a number that bounds nothing from below, are refused."""
    with pytest.raises(InputError, match="condition"):
        judge(CLAIM, dataclasses.replace(BOUND, details={"ceiling": 5.0, "conditional": True}))
    with pytest.raises(InputError, match="no lower bound"):
        judge(CLAIM, dataclasses.replace(BOUND, lower=None, confidence=None))


def test_a_rejected_curve_refutes_below_the_claimed_epsilon():
    """The claimed trade-off curve can be rejected as a whole although the bound at one delta stays below the claim."""
    details = {"ceiling": 5.0, "claimed_curve": {"rejected": True}}
    low = dataclasses.replace(BOUND, value=0.5, lower=0.5, details=details)
    found = judge(CLAIM, low)
    assert found.verdict is Verdict.REFUTED
    assert "whole trade-off curve" in found.reason


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_another_delta_or_adjacency_is_not_judged(delta):
    """A bound at another delta or for another adjacency than the claim's gives not_evaluable, never refuted."""
    other = dataclasses.replace(BOUND, delta=2e-5) if delta else dataclasses.replace(BOUND, delta=0.0)
    assert judge(CLAIM, other).verdict is Verdict.NOT_EVALUABLE
    add_remove = dataclasses.replace(BOUND, adjacency=Adjacency.ADD_REMOVE)
    assert judge(CLAIM, add_remove).verdict is Verdict.NOT_EVALUABLE


def test_a_stated_add_remove_claim_is_converted(rng):
    """An (epsilon, delta) add/remove claim is judged by a random split as replace-one (2 epsilon, (1 + e^epsilon) delta)."""
    losses = Losses(member=rng.normal(-3, 1, 400), nonmember=rng.normal(0, 1, 400))
    result = audit(losses, split=RandomSplit(), claim=StatedClaim(epsilon=0.5, delta=1e-6))
    judged = result.comparisons[0].claim
    assert judged.value == pytest.approx(1.0)
    assert judged.delta == pytest.approx((1 + 1.6487212707001282) * 1e-6)
    assert judged.adjacency is Adjacency.REPLACE_ONE


def test_only_an_epsilon_is_judged():
    """A claim of another metric has no lower bound here to be judged by."""
    with pytest.raises(InputError, match="claim metric must be one of 'epsilon'"):
        judge(dataclasses.replace(CLAIM, metric="advantage"), BOUND)


def test_the_power_to_reject_a_curve_counts():
    """A claim above the ceiling at one delta is not refuted, not inconclusive, where its curve could have been rejected."""
    details = {"ceiling": 0.8, "claimed_curve": {"rejected": False, "could_have_been": True}}
    able = dataclasses.replace(BOUND, value=0.5, lower=0.5, details=details)
    assert judge(CLAIM, able).verdict is Verdict.NOT_REFUTED
    unable = dataclasses.replace(able, details={"ceiling": 0.8, "claimed_curve": {"rejected": False}})
    assert judge(CLAIM, unable).verdict is Verdict.INCONCLUSIVE
    assert power(able_certified(), able, CLAIM).status is Status.OK
    assert power(able_certified(), unable, CLAIM).status is Status.WARN


def able_certified():
    """A certified bound with a ceiling."""
    return Estimate(
        "epsilon_bound.clopper_pearson",
        1.0,
        1.0,
        None,
        0.95,
        "by hand",
        Subject.MODEL,
        1e-5,
        details={"ceiling": 5.0},
    )
