"""What every score keeps: labels, history, the input, finite values, and calibration data that are not audited."""

import numpy as np
import pytest

from auditor import scores
from auditor.core import InputError, Losses, LossScale, PerGroup
from auditor.scores import Population, References

LABELS = ("id", "group", "person", "fingerprint")


def build(name, losses, calibration, features, held_features):
    """The score of this name, with one reference model that finds every record as hard as 1."""
    reference = References(
        member=np.ones((losses.n_member, 2)), nonmember=np.ones((losses.n_nonmember, 2)), id=losses.id
    )
    if name == "difficulty":
        return scores.difficulty(reference)
    if name == "difficulty, median":
        return scores.difficulty(reference, centre=scores.Median())
    if name == "rmia":
        return scores.rmia(reference, population=calibration)
    if name == "class_conditional":
        return scores.class_conditional(calibration)
    return scores.fit_quantile_regression(
        features,
        calibration=calibration,
        calibration_features=held_features,
        rate=0.1,
        rng=np.random.default_rng(0),
    ).transform


EVERY = ["difficulty", "difficulty, median", "rmia", "class_conditional", "fit_quantile_regression"]
CALIBRATED = EVERY[2:]


def world(member, nonmember, held, *, scale="log-odds", labels=LABELS):
    """Losses, calibration records with labels of their own, and features."""
    sizes = len(member), len(nonmember), len(held)
    first = np.arange(sum(sizes))
    parts = np.split(first, np.cumsum(sizes)[:-1])
    columns = dict.fromkeys(labels, parts)
    if "group" in labels:
        columns["group"] = [part % 2 for part in parts]
    losses = Losses(
        member=member,
        nonmember=nonmember,
        scale=scale,
        saturated=(1, 0),
        **{name: column[:2] for name, column in columns.items()},
    )
    calibration = Population(
        loss=held,
        reference=np.ones((sizes[2], 2)),
        scale=scale,
        **{name: column[2] for name, column in columns.items()},
    )
    features = tuple(part % 7 + 0.0 for part in parts)
    return losses, calibration, features[:2], features[2]


@pytest.mark.parametrize("name", EVERY)
def test_a_score_keeps_the_labels_and_says_what_it_did(rng, name):
    """Labels travel along, the history grows by one step, the scale is unknown, and the input is left alone."""
    losses, *rest = world(rng.normal(size=30), rng.normal(size=40), rng.normal(size=60))
    before = losses.member.copy()
    moved = build(name, losses, *rest)(losses)
    for label in LABELS:
        for old, new in zip(getattr(losses, label), getattr(moved, label), strict=True):
            assert np.array_equal(old, new)
    assert len(moved.history) == len(losses.history) + 1
    assert moved.scale is LossScale.UNKNOWN
    assert moved.saturated == (1, 0)
    assert np.array_equal(losses.member, before)


@pytest.mark.parametrize("name", EVERY)
def test_a_score_treats_members_and_nonmembers_alike(rng, name):
    """Swapping the groups swaps the scores: no score looks at membership."""
    member, nonmember, held = rng.normal(size=30), rng.normal(size=30), rng.normal(size=60)
    losses, calibration, features, held_features = world(member, nonmember, held)
    swapped = Losses(
        member=nonmember,
        nonmember=member,
        scale=losses.scale,
        **{label: tuple(reversed(getattr(losses, label))) for label in LABELS},
    )
    one = build(name, losses, calibration, features, held_features)(losses)
    other = build(name, swapped, calibration, features[::-1], held_features)(swapped)
    assert np.array_equal(one.member, other.nonmember)
    assert np.array_equal(one.nonmember, other.member)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("value", [0.0, 3.0, -1e308, 1e308])
def test_equal_losses_stay_equal(name, value):
    """Records of equal loss, class, features and difficulty have equal scores, finite at the ends of float64."""
    losses, calibration, _, _ = world(np.full(4, value), np.full(3, value), np.full(25, value))
    features = np.zeros(4), np.zeros(3)
    moved = build(name, losses, calibration, features, np.zeros(25))(losses)
    assert np.unique(np.concatenate([moved.member, moved.nonmember])).size == 1


@pytest.mark.parametrize("name", EVERY)
def test_extreme_losses_stay_finite(rng, name):
    """Losses at both ends of float64, two records a group, give finite scores and no warning."""
    held = np.where(rng.random(60) < 0.5, -1.7e308, 1.7e308)
    losses, *rest = world(np.array([-1.7e308, 0.0]), np.array([0.0, 1.7e308]), held)
    moved = build(name, losses, *rest)(losses)
    assert np.all(np.isfinite(np.concatenate([moved.member, moved.nonmember])))
    assert moved.member[0] <= moved.nonmember[1]


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize("label", ["id", "fingerprint"])
@pytest.mark.parametrize("side", ["member", "nonmember"])
def test_audited_records_cannot_calibrate(rng, name, label, side):
    """An id, or without ids a content, that is on both sides is refused, with how many there are."""
    losses, calibration, *rest = world(
        rng.normal(size=30), rng.normal(size=40), rng.normal(size=60), labels=("group", label)
    )
    mixed = getattr(calibration, label).copy()
    mixed[:3] = getattr(getattr(losses, label), side)[:3]
    overlapping = Population(
        loss=calibration.loss,
        reference=calibration.reference,
        group=calibration.group,
        scale=calibration.scale,
        **{label: mixed},
    )
    word = {"id": "id", "fingerprint": "content"}[label]
    with pytest.raises(InputError, match=f"no audited record, got 3 of 60 with the {word} of one"):
        build(name, losses, overlapping, *rest)(losses)


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_copy_of_the_audited_nonmembers_cannot_calibrate(rng, name):
    """Even without labels, the audited non-members' own losses are refused in any order."""
    nonmember = rng.normal(size=40)
    losses, calibration, *rest = world(
        rng.normal(size=30), nonmember, rng.permutation(nonmember), labels=("group",)
    )
    with pytest.raises(InputError, match="40 losses equal to the audited non-members'"):
        build(name, losses, calibration, *rest)(losses)


@pytest.mark.parametrize("name", CALIBRATED)
def test_the_history_says_whether_disjointness_was_checked(rng, name):
    """With ids the history says so, without ids or fingerprints it says that nothing was checked."""
    data = rng.normal(size=30), rng.normal(size=40), rng.normal(size=60)
    for labels, phrase in (
        (("group", "id"), "no id in common with the audited records"),
        (("group", "fingerprint"), "no content in common"),
        (("group",), "not checked to be disjoint"),
    ):
        losses, *rest = world(*data, labels=labels)
        assert phrase in build(name, losses, *rest)(losses).history[-1]


def test_natural_twins_with_other_ids_are_different_records(rng):
    """Where ids show that records differ, equal content is no overlap."""
    same = np.zeros(30), np.zeros(40)
    losses = Losses(
        member=rng.normal(size=30),
        nonmember=rng.normal(size=40),
        id=(np.arange(30), np.arange(30, 70)),
        fingerprint=same,
        group=same,
    )
    calibration = Population(
        loss=rng.normal(size=25), id=np.arange(70, 95), fingerprint=np.zeros(25), group=np.zeros(25)
    )
    moved = scores.class_conditional(calibration)(losses)
    assert "no id in common" in moved.history[-1]


def test_ids_meet_across_types_and_blank_ids_are_nobodys(rng):
    """An id is the same as an integer, a float or text; a blank is no id."""
    losses = Losses(
        member=rng.normal(size=2),
        nonmember=rng.normal(size=2),
        id=(["1", ""], ["3", "4"]),
        group=([0, 0], [0, 0]),
    )
    loss, group = rng.normal(size=2), [0, 0]
    for ids in (
        np.array([4, 9]),
        np.array([4.0, 9.0]),
        np.array(["4", "9"]),
        np.array([4, None], dtype=object),
    ):
        with pytest.raises(InputError, match="got 1 of 2 with the id"):
            scores.class_conditional(Population(loss=loss, group=group, id=ids))(losses)
    blank = Population(loss=loss, group=group, id=["", ""])
    assert "not checked" in scores.class_conditional(blank)(losses).history[-1]


@pytest.mark.parametrize("name", CALIBRATED)
def test_calibration_losses_of_another_scale_are_refused(rng, name):
    """Cross-entropies cannot calibrate log-odds."""
    losses, calibration, *rest = world(rng.random(30), rng.random(40), rng.random(60))
    other = Losses(
        member=losses.member,
        nonmember=losses.nonmember,
        group=losses.group,
        scale="cross-entropy",
        id=losses.id,
    )
    with pytest.raises(
        InputError, match="must be on the scale of the audited losses, got log-odds and cross-entropy"
    ):
        build(name, other, calibration, *rest)(other)


def test_per_group_is_what_a_hold_out_gives(rng):
    """References and features follow a hold-out by its rows, ids or not."""
    whole = Losses(member=rng.normal(size=50), nonmember=rng.normal(size=50))
    reference = References(member=whole.member + 1, nonmember=whole.nonmember + 1)
    held = scores.hold_out(whole, rng=rng)
    assert isinstance(held.audited_rows, PerGroup)
    moved = scores.difficulty(reference.take(held.audited_rows))(held.audited)
    np.testing.assert_allclose(np.concatenate([moved.member, moved.nonmember]), -1.0)
    population = Population.from_losses(held.calibration, reference=reference.take(held.calibration_rows))
    np.testing.assert_allclose(population.reference[:, 0], held.calibration.nonmember + 1)
