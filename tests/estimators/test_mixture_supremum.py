"""The exact supremum of two mixtures against the Gaussian one, a brute-force oracle and mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from auditor.curves import Gaussian, MixtureOfGaussians
from auditor.estimators import gaussian_supremum, mixture_supremum

UNIT = MixtureOfGaussians((1.0,), (0.0,), (1.0,))
# Far from monotone: the numerator has a narrow and a distant component, so that every branch has several maxima.
BUSY = MixtureOfGaussians((0.55, 0.3, 0.1, 0.05), (0.0, 3.0, -2.0, 9.0), (1.0, 0.3, 0.05, 2.0))
CALM = MixtureOfGaussians((0.6, 0.4), (0.5, 3.5), (1.2, 0.8))


@settings(max_examples=60, deadline=None)
@given(
    shift=st.floats(-4, 4),
    spread=st.floats(0.3, 3.0),
    delta=st.sampled_from([1e-8, 1e-5, 1e-3, 0.05]),
    clip=st.sampled_from([0.0, 1e-5, 1e-2]),
)
def test_one_component_is_the_gaussian_supremum(shift, spread, delta, clip):
    """With one component each, value and branch are the Gaussian supremum's."""
    laws = Gaussian(0.0, 1.0), Gaussian(shift, spread)
    ours, theirs = (
        supremum(*laws, delta=delta, clip=clip) for supremum in (mixture_supremum, gaussian_supremum)
    )
    assert ours.value == pytest.approx(theirs.value, rel=1e-9, abs=1e-9)
    assert ours.saturated == theirs.saturated
    for found, expected in zip(ours.branches, theirs.branches, strict=True):
        assert found.epsilon == pytest.approx(expected.epsilon, rel=1e-9, abs=1e-9)


def test_splitting_a_component_changes_nothing():
    """A normal written as two equal halves has the normal's value."""
    halves = MixtureOfGaussians((0.5, 0.5), (1.0, 1.0), (1.2, 1.2))
    found = mixture_supremum(UNIT, halves, delta=1e-5)
    assert found.value == pytest.approx(8.817621517, abs=5e-10)  # the design's reference table


@pytest.mark.parametrize("clip", [0.0, 1e-4, 0.02])
@pytest.mark.parametrize("name", ["m1", "m2", "m3", "m4"])
def test_every_branch_is_at_a_maximum_in_mpmath(clip, name):
    """Each branch equals its ratio in mpmath, and no threshold near by or on a grid of it gives more."""
    delta, laws = 1e-4, (BUSY, CALM)
    branch = next(
        item for item in mixture_supremum(*laws, delta=delta, clip=clip).branches if item.name == name
    )
    first, upper = {"m1": (0, False), "m2": (1, True), "m3": (0, True), "m4": (1, False)}[name]

    def tail(law, x):
        parts = zip(law.weights, law.means, law.sds, strict=True)
        return mpmath.fsum(w * mpmath.ncdf((m - x if upper else x - m) / s) for w, m, s in parts)

    def ratio(x):
        excess = tail(laws[first], mpmath.mpf(x)) - delta
        return float(mpmath.log(excess / tail(laws[1 - first], mpmath.mpf(x)))) if excess > 0 else -math.inf

    def allowed(x):
        rates = [math.exp(float(part(np.array(x)))) for law in laws for part in (law.log_cdf, law.log_sf)]
        return min(rates) >= clip

    with mpmath.workdps(60):
        if branch.epsilon > 0:
            assert branch.epsilon == pytest.approx(ratio(branch.threshold), rel=1e-10)
        nearby = branch.threshold + np.array([-1e-3, -1e-5, 1e-5, 1e-3]) if branch.epsilon > 0 else []
        grid = [x for x in [*np.linspace(-8, 16, 600), *nearby] if allowed(x)]
        assert max(map(ratio, grid)) <= branch.epsilon + 1e-9


def test_the_highest_of_several_maxima_is_found():
    """A narrow component far out, of a hundred-thousandth of the members, gives the largest ratio and is not missed."""
    rare = MixtureOfGaussians((1 - 1e-4, 1e-4), (0.0, -30.0), (1.0, 1e-6))
    plain = MixtureOfGaussians((1 - 1e-9, 1e-9), (0.0, -30.0), (1.0, 1.0))
    found = mixture_supremum(rare, plain, delta=1e-5)
    # Just above the narrow component: nearly all of 1e-4 of the members, half of 1e-9 of the others.
    assert found.value == pytest.approx(math.log(9e-5 / 5e-10), abs=1e-4)
    assert found.best.threshold == pytest.approx(-30.0, abs=1e-4)


def test_total_separation_is_the_worst_leak():
    """Mixtures too far apart for any clipped threshold read as the clip's ceiling, flagged, and as what is there without one."""
    far = MixtureOfGaussians((0.5, 0.5), (40.0, 44.0), (1.0, 0.5))
    for laws in ((CALM, far), (far, CALM)):
        assert mixture_supremum(*laws, delta=1e-5, clip=1e-5).saturated
    free = mixture_supremum(CALM, far, delta=1e-5)
    assert free.value > 500
    assert not free.saturated


@settings(max_examples=20, deadline=None)
@given(
    exponents=st.lists(st.floats(-9, 9), min_size=2, max_size=5),
    mean=st.floats(-1e9, 1e9),
    delta=st.sampled_from([1e-300, 1e-12, 1e-5, 0.1, 0.9]),
    clipped=st.booleans(),
)
def test_extreme_laws_neither_fail_nor_contradict(exponents, mean, delta, clipped):
    """Whatever the scales, there is a value of 0 or more, and a clip never adds to it."""
    count = len(exponents)
    shares = (1 / count,) * count
    first = MixtureOfGaussians(
        shares, tuple(float(i) for i in range(count)), tuple(10.0**e for e in exponents)
    )
    second = MixtureOfGaussians((0.5, 0.5), (0.0, mean), (1.0, 10.0 ** exponents[0]))
    found = mixture_supremum(first, second, delta=delta, clip=delta if clipped else 0.0)
    assert found.value >= 0
    free = mixture_supremum(first, second, delta=delta).value
    assert free >= found.value - 1e-6 * max(1.0, found.value)
