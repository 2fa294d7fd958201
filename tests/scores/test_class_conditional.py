"""Class-conditional scores: known medians and spreads, and classes that are small, unseen or blank."""

import numpy as np
from scipy import stats

from auditor.core import Losses
from auditor.scores import Population, class_conditional


def scored(calibration, values, group, **options):
    """The scores of these losses with their classes, the first half of them as the members; and what was done."""
    pairs = [np.split(np.asarray(column), 2) for column in (values, group)]
    moved = class_conditional(calibration, **options)(Losses(*pairs[0], group=tuple(pairs[1])))
    return np.r_[moved.member, moved.nonmember], moved.history[-1]


def low_and_middle(losses):
    """The 10% quantile and the median."""
    return np.quantile(losses, [0.1, 0.5])


def test_classes_become_comparable():
    """After standardising, the same quantile of N(5, 2) and N(-3, .5) has the same score, z/1.2816."""
    laws = {"easy": (5, 2), "hard": (-3, 0.5)}
    levels = (np.arange(4001) + 0.5) / 4001
    samples = [stats.norm.ppf(levels, *law) for law in laws.values()]
    z = np.array([-4.0, -1.0, 0.0, 2.0])
    calibration = Population(loss=np.concatenate(samples), group=np.repeat(list(laws), 4001))
    found, _ = scored(calibration, np.r_[5 + 2 * z, -3 + 0.5 * z], np.repeat(list(laws), 4))
    np.testing.assert_allclose(found[:4], z / stats.norm.isf(0.1), rtol=2e-3, atol=1e-9)
    np.testing.assert_allclose(found[:4], found[4:], rtol=1e-9, atol=1e-9)


def test_the_median_and_spread_by_hand():
    """Class losses 0, 10, ..., 100 have median 50 and 10% quantile 10: 30 scores -1/2, and those far below stay apart."""
    calibration = Population(loss=np.arange(0.0, 110.0, 10.0), group=np.zeros(11))
    found, _ = scored(calibration, [30.0, 50.0, 90.0, -350.0], np.zeros(4), least=11)
    np.testing.assert_allclose(found, [-0.5, 0.0, 1.0, -10.0])


def test_small_unseen_and_blank_classes_use_the_pooled_norm():
    """A class below the least size, one that was never seen and a blank are standardised by all calibration records."""
    calibration = Population(
        loss=np.r_[np.arange(30.0), 1000.0, 2000.0], group=np.array(["a"] * 30 + ["b", "b"])
    )
    found, step = scored(calibration, np.full(4, 7.0), ["b", "never", "", "a"], least=20)
    low, middle = low_and_middle(calibration.loss)
    np.testing.assert_allclose(found[:3], (7 - middle) / (middle - low))
    low, middle = low_and_middle(np.arange(30.0))
    np.testing.assert_allclose(found[3], (7 - middle) / (middle - low))
    assert "3 records of classes with fewer than 20" in step


def test_classes_meet_across_types(rng):
    """Class 1 is the same as an integer, a float or text."""
    loss, group = rng.normal(size=60), np.arange(60) % 2
    first, *others = (
        scored(Population(loss=loss, group=group.astype(kind)), np.arange(4.0), [0, 1, 1, 0])[0]
        for kind in (int, float, str, object)
    )
    assert all(np.array_equal(first, other) for other in others)


def test_a_class_of_equal_losses_takes_the_pooled_spread():
    """A class without spread is measured in the pooled one; with none anywhere, in 1."""
    calibration = Population(loss=np.r_[np.full(20, 5.0), np.arange(20.0)], group=np.repeat([0, 1], 20))
    low, middle = low_and_middle(calibration.loss)
    flat = Population(loss=np.full(20, 5.0), group=np.zeros(20))
    for own, spread in ((calibration, middle - low), (flat, 1.0)):
        found, _ = scored(own, [4.0, 5.0, 6.0, 7.0], np.zeros(4))
        np.testing.assert_allclose(found, np.array([-1, 0, 1, 2]) / spread)


def test_the_members_of_a_calibration_set_are_not_used(rng):
    """Held-out losses calibrate by their non-members alone."""
    nonmember, group = rng.normal(size=40), np.zeros(40)
    held = Losses(member=rng.normal(-9, 1, 40), nonmember=nonmember, group=(group, group))
    one, other = (
        scored(own, np.arange(4.0), np.zeros(4))[0] for own in (held, Population(loss=nonmember, group=group))
    )
    assert np.array_equal(one, other)
