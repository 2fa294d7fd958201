"""The contract of every score: labels, history, the input, finite values, and calibration data that are not audited."""

import dataclasses

import numpy as np
import pytest

from auditor import scores
from auditor.core import InputError, Losses, LossScale, PerGroup
from auditor.scores import Population, References

LABELS = ("id", "group", "person", "fingerprint")


def build(name, losses, calibration, features, held_features):
    """The score of this name, with four reference models that find every record as hard as 1."""
    ones = {side: np.ones((getattr(losses, side).size, 4)) for side in PerGroup._fields}
    reference = References(**ones, id=losses.id)
    shadows = References(**ones, id=losses.id, trained_on=[rows * [0, 1, 0, 1] for rows in ones.values()])
    if name == "fit_quantile_regression":
        given = {"calibration": calibration, "calibration_features": held_features, "rate": 0.1}
        return scores.fit_quantile_regression(features, **given, rng=np.random.default_rng(0)).transform
    steps = {
        "difficulty": lambda: scores.difficulty(reference),
        "rmia": lambda: scores.rmia(reference, population=calibration),
        "rmia, online": lambda: scores.rmia(shadows, population=calibration),
        "likelihood_ratio": lambda: scores.likelihood_ratio(shadows),
        "class_conditional": lambda: scores.class_conditional(calibration),
    }
    return steps[name]()


CALIBRATED = ["rmia", "rmia, online", "class_conditional", "fit_quantile_regression"]
EVERY = ["difficulty", "likelihood_ratio", *CALIBRATED]


def world(member, nonmember, held, *, labels=LABELS):
    """Losses, calibration records with labels of their own, and features."""
    sizes = len(member), len(nonmember), len(held)
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    columns = {name: [part % 2 for part in parts] if name == "group" else parts for name in labels}
    pairs = {name: column[:2] for name, column in columns.items()}
    losses = Losses(member=member, nonmember=nonmember, scale="log-odds", saturated=(1, 0), **pairs)
    own = {name: column[2] for name, column in columns.items()}
    calibration = Population(loss=held, reference=np.ones((sizes[2], 4)), scale="log-odds", **own)
    features = tuple(part % 7 + 0.0 for part in parts)
    return losses, calibration, features[:2], features[2]


@pytest.fixture
def drawn(rng):
    """Losses of 30 members, 40 non-members and 60 calibration records."""
    return tuple(rng.normal(size=size) for size in (30, 40, 60))


@pytest.mark.parametrize("name", EVERY)
def test_a_score_keeps_the_labels_and_says_what_it_did(drawn, name):
    """Labels travel along, the history grows by one step, the scale is unknown, and the input is left alone."""
    losses, *rest = world(*drawn)
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
@pytest.mark.parametrize(("label", "word"), [("id", "id"), ("fingerprint", "content")])
@pytest.mark.parametrize("side", ["member", "nonmember"])
def test_audited_records_cannot_calibrate(drawn, name, label, word, side):
    """An id, or without ids a content, that is on both sides is refused, with how many there are."""
    losses, calibration, *rest = world(*drawn, labels=("group", label))
    mixed = np.r_[getattr(getattr(losses, label), side)[:3], getattr(calibration, label)[3:]]
    overlapping = dataclasses.replace(calibration, **{label: mixed})
    with pytest.raises(InputError, match=f"no audited record, got 3 of 60 with the {word} of one"):
        build(name, losses, overlapping, *rest)(losses)


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_copy_of_the_audited_nonmembers_cannot_calibrate(rng, drawn, name):
    """Even without labels, the audited non-members' own losses are refused in any order."""
    losses, calibration, *rest = world(*drawn[:2], rng.permutation(drawn[1]), labels=("group",))
    with pytest.raises(InputError, match="40 losses equal to the audited non-members'"):
        build(name, losses, calibration, *rest)(losses)


@pytest.mark.parametrize("name", CALIBRATED)
def test_the_history_says_whether_disjointness_was_checked(drawn, name):
    """With ids the history says so, without ids or fingerprints it says that nothing was checked."""
    for labels, phrase in (
        (("group", "id"), "no id in common with the audited records"),
        (("group", "fingerprint"), "no content in common"),
        (("group",), "not checked to be disjoint"),
    ):
        losses, *rest = world(*drawn, labels=labels)
        assert phrase in build(name, losses, *rest)(losses).history[-1]


def test_natural_twins_with_other_ids_are_different_records(drawn):
    """Where ids show that records differ, equal content is no overlap."""
    losses, calibration, *_ = world(*drawn)
    same = tuple(np.zeros(size) for size in (30, 40, 60))
    twins = dataclasses.replace(losses, fingerprint=same[:2])
    own = dataclasses.replace(calibration, fingerprint=same[2])
    assert "no id in common" in scores.class_conditional(own)(twins).history[-1]


@pytest.mark.parametrize("ids", [[4, 9], [4.0, 9.0], ["4", "9"], np.array([4, None], dtype=object), ["", ""]])
def test_ids_meet_across_types_and_blank_ids_are_nobodys(rng, ids):
    """An id is the same as an integer, a float or text; a blank is no id."""
    losses = Losses(*rng.normal(size=(2, 2)), id=(["1", ""], ["3", "4"]), group=([0, 0], [0, 0]))
    score = scores.class_conditional(Population(loss=rng.normal(size=2), group=[0, 0], id=ids))
    if not any(ids):
        assert "not checked" in score(losses).history[-1]
        return
    with pytest.raises(InputError, match="got 1 of 2 with the id"):
        score(losses)


@pytest.mark.parametrize("name", CALIBRATED)
def test_calibration_losses_of_another_scale_are_refused(drawn, name):
    """Cross-entropies cannot calibrate log-odds."""
    losses, *rest = world(*map(np.abs, drawn))
    other = dataclasses.replace(losses, scale="cross-entropy")
    with pytest.raises(InputError, match="scale of the audited losses, got log-odds and cross-entropy"):
        build(name, other, *rest)(other)


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
