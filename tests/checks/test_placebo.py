"""The placebo audit asks whether a model that saw nothing separates the groups."""

import pytest

from auditor import InputError
from auditor.checks import placebo
from auditor.choices import FixedThreshold, RankGrid, Split
from auditor.values import Losses, Status


def test_without_a_reference_there_is_no_check():
    """No reference losses, no line in the report."""
    assert placebo(None, delta=1e-5) is None


@pytest.mark.parametrize("rule", [RankGrid(), FixedThreshold(0.0), Split()])
@pytest.mark.parametrize(("gap", "way"), [(-1.0, "easier"), (1.0, "harder")])
def test_both_directions_fail(rng, rule, gap, way):
    """Members that are easier, or harder, for a model that saw no record are named, with any rule."""
    reference = Losses(member=rng.normal(gap, 1, 1500), nonmember=rng.normal(0, 1, 1500))
    found = placebo(reference, delta=1e-5, rule=rule)
    assert found.status is Status.FAIL
    assert f"members are {way} for it" in found.message
    assert found.details["confidence_each"] == pytest.approx(0.995)


def test_alike_groups_pass_with_the_ceiling(rng):
    """Equal groups pass, and the sentence says what could have been shown."""
    found = placebo(Losses(member=rng.normal(size=1500), nonmember=rng.normal(size=1500)), delta=1e-5)
    assert found.status is Status.OK
    assert found.details["bound_members_easier"] == 0
    assert 4 < found.details["ceiling"] < 6
    assert "at 99% confidence" in found.message


@pytest.mark.parametrize("value", [0.0, 1e308])
def test_constant_and_huge_losses_are_no_alarm(value):
    """Two records in each group, all equal and huge, at delta 0, are no evidence."""
    same = Losses(member=[value, value], nonmember=[value, value])
    assert placebo(same, delta=0.0).status is Status.OK


def test_a_bad_level_is_one_sentence():
    """A probability of false alarms outside (0, 1) is refused by name."""
    with pytest.raises(InputError, match=r"^false_alarms must lie in \(0, 1\), got 2"):
        placebo(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0]), delta=0.0, false_alarms=2)
