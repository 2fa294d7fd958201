"""The Gaussian fitter and the paper's goodness of fit."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from auditor.core import Losses
from auditor.curves import Gaussian, fit_gaussian, fit_gaussian_pair, held_out_ks


def test_moments_are_scipys(rng):
    """Mean, standard deviation, skewness and kurtosis equal SciPy's on a skewed sample."""
    x = rng.gamma(2, 3, 5000) + 100
    fit = fit_gaussian(x)
    expected = (x.mean(), x.std(), stats.skew(x), stats.kurtosis(x, fisher=False))
    np.testing.assert_allclose((fit.mean, fit.sd, fit.skew, fit.kurtosis), expected, rtol=1e-10)


def test_weights_stand_for_repeats(rng):
    """A weighted fit equals the fit of the repeated values."""
    x, w = rng.normal(size=40), rng.integers(1, 9, 40)
    weighted, repeated = fit_gaussian(x, w + 0.0), fit_gaussian(np.repeat(x, w))
    found, expected = ((fit.mean, fit.sd, fit.skew, fit.kurtosis) for fit in (weighted, repeated))
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
    assert law.log_pdf(np.array(x)) == pytest.approx(stats.norm.logpdf(x, 1, 2))


def test_the_level_of_the_papers_test():
    """On normal data the held-out two-sample test rejects in about 5% of the runs: 2 to 9% of 400."""
    rng = np.random.default_rng(3)
    rejected = sum(held_out_ks(rng.normal(size=1000), fit_gaussian, rng=rng).rejected for _ in range(400))
    assert 8 <= rejected <= 36


def test_the_power_of_the_papers_test():
    """An exponential sample of 2000 is rejected nearly always."""
    rng = np.random.default_rng(4)
    rejected = sum(held_out_ks(rng.exponential(size=2000), fit_gaussian, rng=rng).rejected for _ in range(50))
    assert rejected >= 45


def test_the_size_of_the_held_out_part(rng):
    """A fifth of the records is held out, at most the paper's 1000, or as many as asked."""
    assert held_out_ks(rng.normal(size=100), fit_gaussian, rng=rng).n == 20
    assert held_out_ks(rng.normal(size=20_000), fit_gaussian, rng=rng).n == 1000
    assert held_out_ks(rng.normal(size=500), fit_gaussian, rng=rng, size=250).n == 250


def test_the_pair_is_reproducible():
    """The same seed gives the same fits and the same p-values."""
    draws = np.random.default_rng(5).normal(size=(2, 400))
    first, second = (fit_gaussian_pair(Losses(*draws), rng=np.random.default_rng(9)) for _ in range(2))
    assert first == second


def test_two_records_are_enough_to_fit(rng):
    """The smallest allowed groups go through without an error."""
    assert fit_gaussian_pair(Losses(member=[0.0, 1.0], nonmember=[0.0, 2.0]), rng=rng).n_member == 2


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_no_scale_overflows(rng, scale):
    """A sample at any scale of float64 has the moments of the sample at scale 1."""
    x = rng.gamma(2, 1, 500)
    plain, scaled = fit_gaussian(x), fit_gaussian(x * scale)
    assert scaled.mean / scale == pytest.approx(plain.mean)
    assert scaled.sd / scale == pytest.approx(plain.sd)
    assert (scaled.skew, scaled.kurtosis) == pytest.approx((plain.skew, plain.kurtosis))


def test_the_pair_keeps_the_published_test(rng):
    """Each fit is decided by its distance from half of the records, with the published test kept beside it."""
    pair = fit_gaussian_pair(Losses(member=rng.normal(size=500), nonmember=rng.normal(size=3000)), rng=rng)
    assert (pair.member_fit.n, pair.nonmember_fit.n) == (250, 1500)
    assert (pair.member_fit.paper.n, pair.nonmember_fit.paper.n) == (250, 1000)
    assert (pair.member_grid, pair.nonmember_grid) == (None, None)
