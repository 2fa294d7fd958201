"""The Gaussian fitter and the paper's goodness of fit."""

import dataclasses

import mpmath
import numpy as np
import pytest
from scipy import stats

from auditor.curves import Gaussian, fit_gaussian


def test_moments_are_scipys(rng):
    """Mean, standard deviation, skewness and kurtosis equal SciPy's on a skewed sample."""
    x = rng.gamma(2, 3, 5000) + 100
    fit = fit_gaussian(x)
    expected = (x.mean(), x.std(), stats.skew(x), stats.kurtosis(x, fisher=False))
    np.testing.assert_allclose(dataclasses.astuple(fit), expected, rtol=1e-10)


def test_weights_stand_for_repeats(rng):
    """A weighted fit equals the fit of the repeated values."""
    x, w = rng.normal(size=40), rng.integers(1, 9, 40)
    found, expected = map(dataclasses.astuple, (fit_gaussian(x, w + 0.0), fit_gaussian(np.repeat(x, w))))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e12])
def test_equal_values_have_no_spread(value):
    """Equal values give exactly that mean and a standard deviation of exactly 0, however many and however large."""
    for size in (2, 3, 7, 11, 50, 1001):
        assert fit_gaussian(np.full(size, value)) == Gaussian(value, 0.0)


@pytest.mark.parametrize("x", [-39.0, -5.0, 0.0, 3.0, 30.0])
def test_tails_in_logs(x):
    """Both log tails are exact where the tails themselves underflow."""
    law = Gaussian(1.0, 2.0)
    with mpmath.workdps(250):
        below = float(mpmath.log(mpmath.ncdf((x - 1) / 2)))
        above = float(mpmath.log(mpmath.ncdf((1 - x) / 2)))
    assert law.log_cdf(np.array(x)) == pytest.approx(below, rel=1e-12, abs=1e-300)
    assert law.log_sf(np.array(x)) == pytest.approx(above, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_no_scale_overflows(rng, scale):
    """A sample at any scale of float64 has the moments of the sample at scale 1."""
    x = rng.gamma(2, 1, 500)
    plain, scaled = fit_gaussian(x), fit_gaussian(x * scale)
    found = scaled.mean / scale, scaled.sd / scale, scaled.skew, scaled.kurtosis
    assert found == pytest.approx(dataclasses.astuple(plain))
