"""The placebo audit asks whether a model that saw nothing separates the groups."""

import numpy as np
import pytest

from auditor import InputError
from auditor.checks import placebo
from auditor.core import Losses, Status


def test_without_a_reference_there_is_no_check():
    """No reference losses, no line in the report."""
    assert placebo(None, delta=1e-5) is None


@pytest.mark.parametrize(("gap", "way"), [(-1.0, "easier"), (1.0, "harder")])
def test_both_directions_fail(rng, gap, way):
    """Members that are easier, or harder, for a model that saw no record are named."""
    reference = Losses(member=rng.normal(gap, 1, 1500), nonmember=rng.normal(0, 1, 1500))
    found = placebo(reference, delta=1e-5)
    assert found.status is Status.FAIL
    assert f"members are {way} for it" in found.message
    assert found.details["confidence_each"] == pytest.approx(0.995)


def test_alike_groups_pass_with_the_ceiling(rng):
    """Equal groups pass, and the sentence says what could have been shown."""
    found = placebo(Losses(member=rng.normal(size=1500), nonmember=rng.normal(size=1500)), delta=1e-5)
    assert found.status is Status.OK
    assert found.details["bound_members_easier"] == 0
    assert 5 < found.details["ceiling"] < 7
    assert "at 99% confidence" in found.message


@pytest.mark.parametrize("value", [0.0, 1e308])
def test_constant_and_huge_losses_are_no_alarm(value):
    """Two records in each group, all equal and huge, at delta 0, are no evidence."""
    same = Losses(member=[value, value], nonmember=[value, value])
    assert placebo(same, delta=0.0).status is Status.OK


# --- The reference is of the audited records ------------------------------------------------------


@pytest.fixture
def audited(rng):
    """Losses of 30 members and 20 non-members with ids."""
    return Losses(
        member=rng.normal(size=30), nonmember=rng.normal(size=20), id=(np.arange(30), np.arange(30, 50))
    )


def refused(reference, audited):
    """The sentence with which a reference is refused."""
    with pytest.raises(InputError) as error:
        placebo(reference, audited=audited, delta=0.0)
    return str(error.value)


def test_the_same_records_in_any_order_are_accepted(rng, audited):
    """Ids may be in another order and of another type; without ids equal counts are enough."""
    names = (rng.permutation(30).astype(str), rng.permutation(np.arange(30.0, 50.0)))
    for ids in (names, None):
        reference = Losses(member=rng.normal(size=30), nonmember=rng.normal(size=20), id=ids)
        assert placebo(reference, audited=audited, delta=0.0).status is Status.OK


def test_other_records_are_refused_with_their_number(rng, audited):
    """Other counts, other ids and swapped membership are refused, and the sentence counts what is missing."""
    member, nonmember = rng.normal(size=30), rng.normal(size=20)
    assert "got 29 and 20" in refused(Losses(member=member[:29], nonmember=nonmember), audited)
    for ids, missing in ((np.arange(2, 32), 2), (np.r_[0, np.arange(29)], 1)):
        other = Losses(member=member, nonmember=nonmember, id=(ids, np.arange(30, 50)))
        assert f"{missing} of 30 member ids and 0 of 20 non-member ids" in refused(other, audited)
    even = audited.take(member=np.arange(20), nonmember=np.arange(20))
    swapped = Losses(member=nonmember, nonmember=member[:20], id=(even.id.nonmember, even.id.member))
    assert "20 of 20 member ids and 20 of 20 non-member ids" in refused(swapped, even)


def test_the_audited_losses_are_no_reference(rng, audited):
    """The audited file itself, in any order, is refused; right-or-wrong losses may agree by coincidence."""
    assert refused(audited, audited).startswith("reference losses are the audited losses themselves (all 50")
    mixed = audited.take(member=rng.permutation(30), nonmember=rng.permutation(20))
    assert "themselves" in refused(mixed, audited)
    assert "themselves" in refused(*[Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4])] * 2)
    for pair in (([0.0] * 9 + [1.0], [0.0] * 5 + [1.0] * 5), ([0.0, 0.0], [0.0, 0.0])):
        few = Losses(member=pair[0], nonmember=pair[1])
        assert placebo(few, audited=few, delta=0.0).status is Status.OK
