"""hold_out: disjoint, complete, reproducible, and blind to membership."""

import numpy as np
import pytest
from scipy import stats

from auditor.core import Losses
from auditor.scores import HoldOut, hold_out


def test_the_parts_are_disjoint_and_complete(rng):
    """Every record is in exactly one part, under its own labels."""
    losses = Losses(
        member=np.arange(50.0), nonmember=np.arange(50.0, 130.0), id=(np.arange(50), np.arange(50, 130))
    )
    held = hold_out(losses, fraction=0.3, rng=rng)
    audited, calibration = held
    for side in ("member", "nonmember"):
        values = np.concatenate([getattr(audited, side), getattr(calibration, side)])
        assert np.array_equal(np.sort(values), getattr(losses, side))
        assert np.array_equal(getattr(audited.id, side), getattr(audited, side))
        rows = getattr(held.calibration_rows, side)
        assert np.array_equal(getattr(losses, side)[rows], getattr(calibration, side))
    assert calibration.n_member + calibration.n_nonmember == 39
    assert "drawn without looking at membership" in audited.history[-1]


def test_the_same_seed_gives_the_same_parts():
    """The split depends on the generator alone."""
    losses = Losses(member=np.arange(50.0), nonmember=np.arange(50.0))
    one, other, third = (hold_out(losses, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert isinstance(one, HoldOut)
    assert np.array_equal(one.audited.member, other.audited.member)
    assert not np.array_equal(one.audited_rows.member, third.audited_rows.member)


def test_the_draw_does_not_look_at_membership(request):
    """The number of members held out follows the hypergeometric law of a draw from all records."""
    rng, runs = np.random.default_rng(5), 4000 if request.config.getoption("--long") else 1000
    losses = Losses(member=np.arange(12.0), nonmember=np.arange(18.0))
    held = np.array([hold_out(losses, fraction=0.5, rng=rng).calibration.n_member for _ in range(runs)])
    law = stats.hypergeom(30, 12, 15)
    bins = [(0, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 12)]
    observed = [np.sum((held >= low) & (held <= high)) for low, high in bins]
    expected = [runs * (law.cdf(high) - law.cdf(low - 1)) for low, high in bins]
    assert stats.chisquare(observed, np.array(expected) * (runs / np.sum(expected))).pvalue > 1e-3


@pytest.mark.parametrize("label", ["id", "person", "fingerprint"])
def test_records_that_belong_together_stay_together(rng, label):
    """Records with a person, a content or an id in common, across the groups too, are on one side; blanks are free."""
    names = rng.integers(0, 60, 200).astype(str)
    names[:40] = ""
    losses = Losses(
        member=rng.normal(size=100), nonmember=rng.normal(size=100), **{label: (names[:100], names[100:])}
    )
    held = hold_out(losses, rng=rng)
    sides = [
        set(np.concatenate([getattr(part, label).member, getattr(part, label).nonmember])) - {""}
        for part in held
    ]
    assert not sides[0] & sides[1]
    assert "" in getattr(held.audited, label).member
    assert "" in getattr(held.calibration, label).member


def test_ties_carry_over(rng):
    """A record that shares its person with one and its content with another holds all three together."""
    filler = [f"p{i}" for i in range(97)]
    person = np.array(["x", "x", "y", *filler])
    content = np.array([1, 2, 2, *range(10, 107)])
    losses = Losses(
        member=np.arange(50.0), nonmember=np.arange(50.0, 100.0), person=(person[:50], person[50:]),
        fingerprint=(content[:50], content[50:]),
    )  # fmt: skip
    for _ in range(20):
        held = hold_out(losses, rng=rng)
        assert len({0.0, 1.0, 2.0} & set(held.audited.member)) in {0, 3}


def test_labels_of_two_types_are_compared_by_what_they_say(rng):
    """An integer id among the members and the same number as text among the others are one record."""
    losses = Losses(
        member=rng.normal(size=40),
        nonmember=rng.normal(size=40),
        id=(np.arange(40), np.arange(40).astype(str)),
    )
    audited, calibration = hold_out(losses, rng=rng)
    assert set(audited.id.member.astype(str)) == set(audited.id.nonmember)
    assert audited.n_member + calibration.n_member == 40
