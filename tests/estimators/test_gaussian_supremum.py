"""The exact supremum of two normals against published values, two oracles and the Gaussian mechanism."""

import math

import pytest
from hypothesis import given, settings, strategies as st
from oracles import best_threshold_epsilon, gaussian_mechanism_epsilon

from auditor.curves import Gaussian
from auditor.estimators import best_region, gaussian_supremum, mixture_supremum

UNIT = Gaussian(0.0, 1.0)
SUPREMA = [gaussian_supremum, mixture_supremum]

# members, non-members, delta, unclipped, clip = delta, clip = max(delta, 1e-3): the design's reference table, computed
# independently with mpmath and numerical search.
REFERENCE = [
    ((0, 1), (1, 1), 1e-5, 4.377178096, 3.984402, 2.906271),
    ((0, 1), (1, 1), 1e-3, 3.138670549, 2.850618, 2.850618),
    ((0, 1), (3, 1), 1e-5, 16.675494403, 9.239367, 6.139974),
    ((0, 1), (0.2, 1), 1e-5, 0.725521751, 0.725522, 0.649606),
    ((0, 1), (1, 1.2), 1e-5, 8.817621517, 5.782833, 3.707614),
    ((0.5, 0.8), (0, 1), 1e-3, 4.434829766, 3.148204, 3.148204),
    ((0, 1), (0, 1.2), 1e-5, 3.308969395, 2.888453, 1.609278),
]


@pytest.mark.parametrize(("member", "nonmember", "delta", "free", "clipped", "coarse"), REFERENCE)
def test_reference_values(member, nonmember, delta, free, clipped, coarse):
    """All three clips of the reference table are reproduced."""
    laws = Gaussian(*member), Gaussian(*nonmember)
    assert gaussian_supremum(*laws, delta=delta).value == pytest.approx(free, abs=5e-10)
    assert gaussian_supremum(*laws, delta=delta, clip=delta).value == pytest.approx(clipped, abs=5e-7)
    assert gaussian_supremum(*laws, delta=delta, clip=max(delta, 1e-3)).value == pytest.approx(
        coarse, abs=5e-7
    )


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01])
def test_equal_variances_give_the_gaussian_mechanism(mu, delta):
    """With equal variances and no clip, Epsilon* is the Gaussian mechanism's epsilon (Balle and Wang 2018)."""
    expected = gaussian_mechanism_epsilon(mu, delta)
    assert gaussian_supremum(UNIT, Gaussian(mu, 1.0), delta=delta).value == pytest.approx(expected, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    shift=st.floats(-2.5, 2.5),
    spread=st.floats(0.5, 2.0),
    delta=st.sampled_from([1e-6, 1e-3, 0.05]),
    clip=st.sampled_from([0.0, 1e-5, 1e-2]),
)
def test_against_a_dense_scan(shift, spread, delta, clip):
    """No threshold found by a dense scan and a local search beats the supremum, and the supremum is attained."""
    found = gaussian_supremum(UNIT, Gaussian(shift, spread), delta=delta, clip=clip).value
    expected = best_threshold_epsilon((0, 1), (shift, spread), delta, clip)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(
    shift=st.floats(-3, 3), spread=st.floats(0.3, 3.0), place=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3)
)
def test_no_matter_where_or_how_wide(shift, spread, place, scale):
    """Moving and scaling both laws together changes nothing."""
    plain = gaussian_supremum(UNIT, Gaussian(shift, spread), delta=1e-5, clip=1e-5).value
    moved = gaussian_supremum(
        Gaussian(place, scale), Gaussian(place + scale * shift, scale * spread), delta=1e-5, clip=1e-5
    ).value
    assert moved == pytest.approx(plain, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("supremum", SUPREMA)
def test_swapping_the_groups_swaps_the_branches(supremum):
    """Exchanging members and non-members leaves the value and exchanges m1 with m4 and m2 with m3."""
    forward = supremum(UNIT, Gaussian(1.0, 1.2), delta=1e-5)
    backward = supremum(Gaussian(1.0, 1.2), UNIT, delta=1e-5)
    values = [branch.epsilon for branch in forward.branches]
    assert [branch.epsilon for branch in backward.branches] == pytest.approx(values[::-1], rel=1e-9)


@pytest.mark.parametrize("supremum", SUPREMA)
def test_total_separation_is_the_worst_leak(supremum):
    """Laws too far apart for any clipped threshold read as the clip's ceiling, flagged, never as 0."""
    near, far = (supremum(UNIT, Gaussian(at, 1.0), delta=1e-5, clip=1e-5) for at in (8.4, 8.6))
    assert near.value == pytest.approx(11.51, abs=5e-3)
    assert not near.saturated
    assert far.value == pytest.approx(math.log((1 - 2e-5) / 1e-5))
    assert far.saturated


@pytest.mark.parametrize("supremum", SUPREMA)
def test_delta_zero_has_a_value_where_there_is_a_clip(supremum):
    """At delta 0 a clip keeps the supremum finite."""
    expected = best_threshold_epsilon((0, 1), (1, 1), 0.0, 1e-3)
    found = supremum(UNIT, Gaussian(1.0, 1.0), delta=0.0, clip=1e-3)
    assert found.value == pytest.approx(expected, rel=1e-9)


def test_best_region_reference():
    """N(0,1) against N(0,1.2) at delta 1e-5: 3.599100 by the best region (design reference)."""
    assert best_region(UNIT, Gaussian(0.0, 1.2), delta=1e-5) == pytest.approx(3.599100, abs=5e-7)


@settings(max_examples=40, deadline=None)
@given(shift=st.floats(-2, 2), spread=st.floats(0.5, 2.0))
def test_best_region_is_never_below_the_best_threshold(shift, spread):
    """A region can do whatever a threshold can, so its epsilon is at least as large; equal for equal spreads."""
    other = Gaussian(shift, spread)
    region, threshold = best_region(UNIT, other, delta=1e-4), gaussian_supremum(UNIT, other, delta=1e-4).value
    assert region >= threshold - 1e-9


def test_best_region_equals_the_threshold_for_equal_spreads():
    """With equal variances the likelihood ratio is monotone and thresholds are optimal."""
    laws = UNIT, Gaussian(1.0, 1.0)
    threshold = gaussian_supremum(*laws, delta=1e-5).value
    assert best_region(*laws, delta=1e-5) == pytest.approx(threshold, rel=1e-9)


@pytest.mark.parametrize("supremum", SUPREMA)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("clip", [0.5, 0.9])
def test_a_clip_that_leaves_nothing(supremum, delta, clip):
    """A clip of one half or more allows no threshold and gives 0, not a ceiling."""
    found = supremum(UNIT, Gaussian(9.0, 1.0), delta=delta, clip=clip)
    assert (found.value, found.saturated) == (0.0, False)


@pytest.mark.parametrize("supremum", SUPREMA)
@pytest.mark.parametrize("at", [0.1, -0.4, 0.9])
@pytest.mark.parametrize("point_first", [True, False])
def test_a_point_mass_inside_the_other_law_is_a_limit(supremum, at, point_first):
    """A group with one single loss inside the other's range has the value of an ever narrower normal, not the ceiling."""

    def value(sd, other=Gaussian(0.0, 0.5)):  # noqa: B008 - a frozen value
        laws = (Gaussian(at, sd), other) if point_first else (other, Gaussian(at, sd))
        return supremum(*laws, delta=1e-5, clip=1e-5)

    found, limit = value(0.0), value(1e-9)
    assert not found.saturated
    assert found.value == pytest.approx(limit.value, rel=1e-6)
    assert (found.fpr, found.fnr) == pytest.approx((limit.fpr, limit.fnr), abs=1e-6)
    assert value(0.0, Gaussian(at, 0.0)).value == 0
    assert value(0.0, Gaussian(9.0, 0.0)).saturated


@settings(max_examples=300, deadline=None)
@given(
    mean=st.floats(-1e8, 1e8),
    spread=st.floats(-12, 12),
    other=st.floats(-12, 12),
    delta=st.sampled_from([1e-300, 1e-12, 1e-5, 0.1, 0.5, 0.9]),
    clipped=st.booleans(),
)
def test_extreme_laws_neither_fail_nor_contradict(mean, spread, other, delta, clipped):
    """Whatever the scales, there is a value of 0 or more, and a region is never worth less than a threshold."""
    laws = Gaussian(0.0, 10.0**spread), Gaussian(mean, 10.0**other)
    found = gaussian_supremum(*laws, delta=delta, clip=delta if clipped else 0.0)
    assert found.value >= 0
    free = gaussian_supremum(*laws, delta=delta).value
    assert free >= found.value - 1e-9 * max(1.0, found.value)
    assert best_region(*laws, delta=delta) >= free


def test_a_narrow_law_far_from_zero_loses_no_digits():
    """Shifting both laws far along the losses changes nothing, even where floats there are coarser than the narrow law."""
    wide, narrow, at = 1e7, 1e-9, 33554433.0
    near = gaussian_supremum(Gaussian(-at, wide), Gaussian(0.0, narrow), delta=1e-300)
    far, clipped = (
        gaussian_supremum(Gaussian(0.0, wide), Gaussian(at, narrow), delta=1e-300, clip=clip)
        for clip in (0.0, 1e-300)
    )
    assert far.value == pytest.approx(near.value, rel=1e-12)
    assert far.value >= clipped.value


def test_best_region_far_beyond_the_exponent_range():
    """Regions worth hundreds of thousands of nats are not cut off where probabilities underflow."""
    laws = Gaussian(0.0, 1e-3), Gaussian(0.1, 0.3)
    assert best_region(*laws, delta=1e-5) >= gaussian_supremum(*laws, delta=1e-5).value > 1e5
