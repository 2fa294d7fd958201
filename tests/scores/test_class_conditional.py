"""Class-conditional scores: known medians and spreads, and classes that are small, unseen or blank."""

import numpy as np
import pytest
from scipy import stats

from auditor.core import InputError, Losses
from auditor.scores import Population, class_conditional


def quantiles(n, location, scale):
    """A sample of N(location, scale) without luck."""
    return stats.norm.ppf((np.arange(n) + 0.5) / n, location, scale)


def test_classes_become_comparable():
    """After standardising, the same quantile of N(5, 2) and N(-3, .5) has the same score, z/1.2816."""
    calibration = Population(
        loss=np.r_[quantiles(4001, 5, 2), quantiles(4001, -3, 0.5)], group=np.repeat(["easy", "hard"], 4001)
    )
    z = np.array([-4.0, -1.0, 0.0, 2.0])
    moved = class_conditional(calibration)(
        Losses(member=5 + 2 * z, nonmember=-3 + 0.5 * z, group=(["easy"] * 4, ["hard"] * 4))
    )
    np.testing.assert_allclose(moved.member, z / stats.norm.isf(0.1), rtol=2e-3, atol=1e-9)
    np.testing.assert_allclose(moved.member, moved.nonmember, rtol=1e-9, atol=1e-9)


def test_the_median_and_spread_by_hand():
    """Class losses 0, 10, ..., 100 have median 50 and 10% quantile 10: a loss of 30 scores -1/2."""
    calibration = Population(loss=np.arange(0.0, 110.0, 10.0), group=np.zeros(11))
    moved = class_conditional(calibration, least=11)(
        Losses(member=[30.0, 50.0], nonmember=[90.0, -350.0], group=([0, 0], [0, 0]))
    )
    np.testing.assert_allclose(np.r_[moved.member, moved.nonmember], [-0.5, 0.0, 1.0, -10.0])


def test_small_unseen_and_blank_classes_use_the_pooled_norm():
    """A class below the least size, one that was never seen and a blank are standardised by all calibration records."""
    calibration = Population(
        loss=np.r_[np.arange(30.0), 1000.0, 2000.0], group=np.array(["a"] * 30 + ["b", "b"])
    )
    losses = Losses(member=[7.0, 7.0], nonmember=[7.0, 7.0], group=(["b", "never"], ["", "a"]))
    moved = class_conditional(calibration, least=20)(losses)
    low, middle = np.quantile(calibration.loss, [0.1, 0.5])
    np.testing.assert_allclose(np.r_[moved.member, moved.nonmember[0]], (7 - middle) / (middle - low))
    own_low, own_middle = np.quantile(np.arange(30.0), [0.1, 0.5])
    np.testing.assert_allclose(moved.nonmember[1], (7 - own_middle) / (own_middle - own_low))
    assert "3 records of classes with fewer than 20 by the pooled ones" in moved.history[-1]


def test_classes_meet_across_types(rng):
    """Class 1 is the same as an integer, a float or text."""
    loss = rng.normal(size=60)
    losses = Losses(member=[0.0, 1.0], nonmember=[2.0, 3.0], group=([0, 1], [1, 0]))
    results = []
    for kind in (int, float, str, object):
        group = (np.arange(60) % 2).astype(kind)
        results.append(class_conditional(Population(loss=loss, group=group))(losses).member)
    for result in results[1:]:
        assert np.array_equal(result, results[0])


def test_a_class_of_equal_losses_takes_the_pooled_spread():
    """A class without spread is measured in the pooled one; with none anywhere, in 1."""
    calibration = Population(loss=np.r_[np.full(20, 5.0), np.arange(20.0)], group=np.repeat([0, 1], 20))
    losses = Losses(member=[4.0, 5.0], nonmember=[6.0, 7.0], group=([0, 0], [0, 0]))
    low, middle = np.quantile(calibration.loss, [0.1, 0.5])
    np.testing.assert_allclose(
        class_conditional(calibration)(losses).member, np.array([-1, 0]) / (middle - low)
    )
    flat = Population(loss=np.full(20, 5.0), group=np.zeros(20))
    np.testing.assert_allclose(class_conditional(flat)(losses).member, [-1.0, 0.0])


def test_losses_below_all_calibration_losses_stay_apart(rng):
    """The lower tail keeps its order, where a p-value within the class would tie it."""
    calibration = Population(loss=rng.normal(size=50), group=np.zeros(50))
    member = np.linspace(-9, -5, 30)
    moved = class_conditional(calibration)(
        Losses(member=member, nonmember=rng.normal(size=30), group=(np.zeros(30), np.zeros(30)))
    )
    assert np.all(np.diff(moved.member) > 0)


def test_the_members_of_a_calibration_set_are_not_used(rng):
    """Held-out losses calibrate by their non-members alone."""
    nonmember, group = rng.normal(size=40), np.zeros(40)
    held = Losses(member=rng.normal(-9, 1, 40), nonmember=nonmember, group=(group, group))
    losses = Losses(member=[0.0, 1.0], nonmember=[2.0, 3.0], group=([0, 0], [0, 0]))
    one = class_conditional(held)(losses)
    other = class_conditional(Population(loss=nonmember, group=group))(losses)
    assert np.array_equal(one.member, other.member)


def test_bad_arguments_are_refused():
    """Missing classes, a least size of 1 and other types are refused in one sentence."""
    losses = Losses(member=[0.0, 1.0], nonmember=[2.0, 3.0])
    with pytest.raises(InputError, match="class of each calibration record"):
        class_conditional(losses)
    with pytest.raises(InputError, match="class of each audited record"):
        class_conditional(Population(loss=[1.0, 2.0], group=[0, 0]))(losses)
    with pytest.raises(InputError, match="least must be a whole number of 2 or more"):
        class_conditional(Population(loss=[1.0, 2.0], group=[0, 0]), least=1)
    with pytest.raises(
        InputError, match=r"calibration must be auditor.Losses or auditor.scores.Population, got list"
    ):
        class_conditional([1.0, 2.0])
