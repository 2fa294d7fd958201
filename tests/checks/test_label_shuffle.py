"""The self-test shuffles membership and counts what should not be there."""

import numpy as np
import pytest

from auditor import InputError
from auditor.checks import label_shuffle
from auditor.checks.null_audits import _units
from auditor.core import FixedThreshold, Losses, Melded, PerGroup, RankGrid, Status


@pytest.mark.parametrize("rule", [RankGrid(), RankGrid(interval=Melded()), FixedThreshold(0.0)])
def test_a_leaking_model_passes(rng, rule):
    """The real leak is gone once membership is shuffled, whatever the rule."""
    losses = Losses(member=rng.normal(-2, 1, 800), nonmember=rng.normal(0, 1, 800))
    found = label_shuffle(losses, delta=1e-5, rule=rule, rng=rng, shuffles=40)
    assert found.status is Status.OK
    assert "the certified bound was positive in" in found.message
    assert found.details["shuffled"] == "records"


def of_persons(rng, straddle):
    """Ten records for each of 120 persons, whose losses are nearly equal; persons in one group or in both."""
    owner = np.repeat(np.arange(120), 10)
    values = rng.normal(size=120)[owner] + 0.1 * rng.normal(size=1200)
    order = rng.permutation(1200) if straddle else np.arange(1200)
    first, second = order[:600], order[600:]
    return Losses(
        member=values[first], nonmember=values[second], person=PerGroup(owner[first], owner[second])
    )


def test_dependent_records_fail(rng):
    """Persons of one group only are shuffled whole, and the bound that counts records is caught."""
    found = label_shuffle(of_persons(rng, straddle=False), delta=1e-5, rng=rng)
    assert found.status is Status.FAIL
    assert found.details["units"] == 120
    assert "ask for one score per person" in found.message


def test_persons_in_both_groups_are_shuffled_by_record(rng):
    """Where a coin was thrown for each record, records are what is shuffled, and the bound holds."""
    found = label_shuffle(of_persons(rng, straddle=True), delta=1e-5, rng=rng, shuffles=40)
    assert found.status is Status.OK
    assert found.details["shuffled"] == "records"


def test_records_without_a_person_are_persons_of_their_own():
    """Blank persons are not taken for one person."""
    person = PerGroup(np.array(["a", "a", "", ""]), np.array(["b", "", "c"]))
    losses = Losses(member=np.arange(4.0), nonmember=np.arange(3.0), person=person)
    _, unit, is_member, by = _units(losses, np.random.default_rng(0))
    assert is_member.sum() == 3
    assert (~is_member).sum() == 3
    assert by == "persons"
    assert unit[0] == unit[1]


def test_large_groups_are_sampled(rng):
    """Of many records a sample is shuffled, of whole persons where there are any."""
    owner = np.repeat(np.arange(1000), 5)
    losses = Losses(
        member=rng.normal(size=5000),
        nonmember=rng.normal(size=9000),
        person=(owner, np.arange(9000) + 10_000),
    )
    values, unit, is_member, _ = _units(losses, rng)
    assert values.size == 4000
    assert is_member.sum() == 400
    assert np.bincount(np.bincount(unit)).tolist() == [0, 2000, 0, 0, 0, 400]


def test_too_few_records_are_unknown(rng):
    """With a handful of records there is nothing to shuffle."""
    few = Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0])
    assert label_shuffle(few, delta=0.0, rng=rng).status is Status.UNKNOWN


def test_constant_losses_pass(rng):
    """Equal losses never give a positive bound."""
    same = Losses(member=np.full(50, 1e308), nonmember=np.full(50, 1e308))
    assert label_shuffle(same, delta=0.0, rng=rng, shuffles=5).details["positive"] == 0


def test_no_shuffles_are_one_sentence(rng):
    """At least one shuffle is needed."""
    with pytest.raises(InputError, match=r"^shuffles must be a whole number of 1 or more, got 0"):
        label_shuffle(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0]), delta=0.0, rng=rng, shuffles=0)
