"""The self-test shuffles membership and counts what should not be there."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("straddle", [False, True])
def test_persons_are_shuffled_whole_where_they_are_in_one_group(rng, straddle):
    """Of ten nearly equal records a person, whole people are shuffled, which catches the bound that counts records.

    Where a coin was thrown for each record, records are what is shuffled, and the bound holds.
    """
    owner = np.repeat(np.arange(80), 10)
    values = rng.normal(size=80)[owner] + 0.1 * rng.normal(size=800)
    first, second = np.split(rng.permutation(800) if straddle else np.arange(800), 2)
    person = PerGroup(owner[first], owner[second])
    losses = Losses(member=values[first], nonmember=values[second], person=person)
    found = label_shuffle(losses, delta=1e-5, rng=rng, shuffles=100)
    assert found.status is (Status.OK if straddle else Status.FAIL)
    assert found.details["units"] == (800 if straddle else 80)
    assert ("ask for one score per person" in found.message) == (not straddle)


def test_records_without_a_person_are_persons_of_their_own():
    """Blank people are not taken for one person."""
    person = PerGroup(np.array(["a", "a", "", ""]), np.array(["b", "", "c"]))
    losses = Losses(member=np.arange(4.0), nonmember=np.arange(3.0), person=person)
    _, unit, is_member, by = _units(losses, np.random.default_rng(0))
    assert is_member.sum() == 3
    assert (~is_member).sum() == 3
    assert by == "persons"
    assert unit[0] == unit[1]


def test_large_groups_are_sampled(rng):
    """Of many records a sample is shuffled, of whole people where there are any."""
    owner = np.repeat(np.arange(1000), 5)
    losses = Losses(
        member=rng.normal(size=5000),
        nonmember=rng.normal(size=9000),
        person=(owner, np.arange(9000) + 10_000),
    )
    values, unit, is_member, _ = _units(losses, rng)
    assert values.size == 800
    assert is_member.sum() == 80
    assert np.bincount(np.bincount(unit)).tolist() == [0, 400, 0, 0, 0, 80]


def test_too_few_records_are_unknown(rng):
    """With a handful of records there is nothing to shuffle."""
    few = Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0])
    assert label_shuffle(few, delta=0.0, rng=rng).status is Status.UNKNOWN


def test_persons_with_unequal_numbers_of_records(rng):
    """Shuffled whole, they make groups of other sizes in each shuffle, and each is judged by its own."""
    owner = np.repeat(np.arange(60), rng.integers(1, 9, 60))
    first = owner < 30
    found = label_shuffle(
        Losses(
            member=rng.normal(size=first.sum()),
            nonmember=rng.normal(size=(~first).sum()),
            person=PerGroup(owner[first], owner[~first]),
        ),
        delta=1e-3,
        rng=rng,
    )
    assert found.details["shuffled"] == "persons"
    assert found.status is Status.OK
