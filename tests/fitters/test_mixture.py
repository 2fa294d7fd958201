"""Mixtures of normals: the density, its fit by maximum likelihood, and the choice of the number of components."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats
from sklearn.mixture import GaussianMixture

from auditor.core import Losses, Mixture
from auditor.curves import (
    Gaussian,
    MixtureOfGaussians,
    condensed,
    fit_gaussian,
    fit_mixture,
    fit_mixture_pair,
)

THREE = MixtureOfGaussians(weights=(0.5, 0.3, 0.2), means=(-1.0, 2.0, 2.5), sds=(1.0, 0.25, 3.0))


def two_groups(rng, n):
    """A clear mixture of two normals."""
    return np.where(rng.random(n) < 0.4, rng.normal(0, 1, n), rng.normal(5, 0.5, n))


@pytest.mark.parametrize("x", [-60.0, -3.0, 0.0, 2.2, 15.0, 90.0])
def test_tails_in_logs(x):
    """Both log tails and the log-density equal mpmath's sums, where the tails underflow too."""
    with mpmath.workdps(400):
        parts = list(zip(THREE.weights, THREE.means, THREE.sds, strict=True))
        below = float(mpmath.log(mpmath.fsum(w * mpmath.ncdf((mpmath.mpf(x) - m) / s) for w, m, s in parts)))
        above = float(mpmath.log(mpmath.fsum(w * mpmath.ncdf((m - mpmath.mpf(x)) / s) for w, m, s in parts)))
        density = float(mpmath.log(mpmath.fsum(w * mpmath.npdf(mpmath.mpf(x), m, s) for w, m, s in parts)))
    assert THREE.log_cdf(np.array(x)) == pytest.approx(below, rel=1e-12, abs=1e-15)
    assert THREE.log_sf(np.array(x)) == pytest.approx(above, rel=1e-12, abs=1e-15)
    assert THREE.log_pdf(np.array(x)) == pytest.approx(density, rel=1e-12)


def test_moments_and_draws_agree(rng):
    """Mean and standard deviation are those of many draws, whose distribution function is the law's."""
    draws = THREE.sample(200_000, rng)
    assert draws.mean() == pytest.approx(THREE.mean, abs=5 * THREE.sd / math.sqrt(draws.size))
    assert draws.std() == pytest.approx(THREE.sd, rel=0.02)
    assert stats.kstest(draws, lambda x: np.exp(THREE.log_cdf(x))).pvalue > 0.001


@pytest.mark.parametrize("law", [THREE, Gaussian(3.0, 0.5)])
def test_quantiles_invert_the_distribution_function(law):
    """The quantile of a level has that level below it, in both tails, to the last digits."""
    levels = np.array([1e-300, 1e-12, 0.01, 0.3, 0.5, 0.7, 0.999])
    np.testing.assert_allclose(law.log_cdf(law.quantile(levels)), np.log(levels), rtol=1e-9)
    upper = np.array([0.5, 0.999, 1 - 1e-9])
    np.testing.assert_allclose(law.log_sf(law.quantile(upper)), np.log1p(-upper), rtol=1e-7)


@pytest.mark.parametrize("law", [MixtureOfGaussians((1.0,), (2.0,), (0.0,)), Gaussian(2.0, 0.0)])
def test_a_point_mass_is_all_in_one_place(law):
    """With no spread everything lies at or below the mean, and every quantile is the mean."""
    at = np.array([1.9, 2.0, 2.1])
    assert np.exp(law.log_cdf(at)).tolist() == [0.0, 1.0, 1.0]
    assert law.quantile(np.array([0.0, 0.3, 1.0])).tolist() == [2.0, 2.0, 2.0]
    assert law.sample(3, np.random.default_rng(0)).tolist() == [2.0, 2.0, 2.0]


def test_a_point_mass_has_no_density_elsewhere():
    """The log-density is infinite in its place, and minus infinite beside it."""
    law = MixtureOfGaussians((1.0,), (2.0,), (0.0,))
    assert law.log_pdf(np.array([1.9, 2.0, 2.1])).tolist() == [-math.inf, math.inf, -math.inf]


def test_one_component_is_the_gaussian_fit(rng):
    """A mixture of one has the Gaussian fit's mean and standard deviation."""
    x = rng.gamma(2, 3, 30_000)
    one, plain = fit_mixture(x, components=1, rng=rng), fit_gaussian(x)
    assert (one.means[0], one.sds[0]) == pytest.approx((plain.mean, plain.sd), rel=1e-12)


@pytest.mark.parametrize("components", [2, 3, 5])
def test_the_likelihood_is_scikit_learns_at_least(rng, components):
    """The log-likelihood is within a nat of the best of three long scikit-learn runs, or above."""
    x = np.concatenate([THREE.sample(1500, rng), rng.gamma(2, 1, 500)])
    theirs = GaussianMixture(components, tol=1e-7, max_iter=5000, n_init=3, random_state=0).fit(x[:, None])
    ours = fit_mixture(x, components=components, rng=rng)
    assert float(ours.log_pdf(x).sum()) > theirs.score(x[:, None]) * x.size - 1.0


def test_condensing_keeps_the_likelihoods_maximum(rng):
    """The fit of a long sample by short runs has nearly the likelihood, over all records, of the fit by each record."""
    x = np.sort(THREE.sample(60_000, rng))
    fit = fit_mixture(x, components=3, rng=rng)
    assert condensed(x).values.size < x.size / 20
    theirs = GaussianMixture(3, tol=1e-8, max_iter=3000, means_init=np.array(fit.means)[:, None]).fit(
        x[:, None]
    )
    assert float(fit.log_pdf(x).sum()) > theirs.score(x[:, None]) * x.size - 1.0


def test_condensing_keeps_mean_and_variance(rng):
    """The weighted mean and the variance, within and between runs, are those of all records."""
    x = np.sort(rng.gamma(2, 3, 54_321))
    runs = condensed(x)
    mean = np.average(runs.values, weights=runs.counts)
    variance = np.average((runs.values - mean) ** 2 + runs.within, weights=runs.counts)
    assert (runs.counts.sum(), mean, variance) == (x.size, pytest.approx(x.mean()), pytest.approx(x.var()))


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e300])
def test_no_scale_matters(rng, scale):
    """A sample at any scale of float64 has the fit of the sample at scale 1."""
    x = two_groups(rng, 2000)
    plain, scaled = (fit_mixture(y, components=2, rng=np.random.default_rng(1)) for y in (x, x * scale))
    np.testing.assert_allclose(np.array(scaled.means) / scale, plain.means, rtol=1e-3)
    np.testing.assert_allclose(np.array(scaled.sds) / scale, plain.sds, rtol=1e-3)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0],
        [0.0, 0.0, 1.0],
        [7.0] * 50,
        [0.0] * 900 + [1.0] * 100,
        [0.0, 1e-300, 1e308],
        [-1e308, 0.0, 1e308],
        [-1.7e308, 1.7e308],
        [1e308] * 40 + [*range(60)],
        [*np.linspace(0, 1, 500), 1e308],
    ],
)
@pytest.mark.parametrize("components", [1, 2, 7])
def test_odd_samples_are_fitted(values, components):
    """Ties, outliers and the ends of float64 give a valid mixture without a warning."""
    values = np.array(values)
    fit = fit_mixture(values, components=components, rng=np.random.default_rng(0))
    assert fit.components <= components
    assert math.isfinite(fit.mean)
    assert min(fit.means) >= values.min() - 1e-9 * (1 + abs(values.min()))
    assert not np.isnan(fit.log_cdf(values)).any()


def test_one_outlier_does_not_smear_the_rest(rng):
    """A loss a million standard deviations away leaves the other records' fit alone."""
    x = two_groups(rng, 2000)
    fit = fit_mixture(np.append(x, 1e6), components=3, rng=rng)
    np.testing.assert_allclose(fit.sds[:2], (1.0, 0.5), rtol=0.15)


def test_the_pair_takes_as_many_as_it_needs(rng):
    """Two clear components are found in one group and one in the other, and both survive their test."""
    losses = Losses(member=two_groups(rng, 3000), nonmember=rng.normal(size=2000))
    pair = fit_mixture_pair(losses, choice=Mixture(4), rng=rng, transform="as given")
    assert (pair.member.components, pair.nonmember.components) == (2, 1)
    assert not pair.rejected
    assert pair.member_fit.n == 600
    assert (pair.n_member, pair.n_nonmember, pair.transform) == (3000, 2000, "as given")


def test_the_grid_has_every_pair_of_the_papers_figure(rng):
    """Every number of components meets every sample size of 100 to 1000, and one component is visibly too few."""
    losses = Losses(member=two_groups(rng, 5000), nonmember=rng.normal(size=420))
    pair = fit_mixture_pair(losses, choice=Mixture(3), rng=rng)
    grid = pair.member_grid
    assert grid.components == (1, 2, 3)
    assert grid.sample_sizes == tuple(range(100, 1001, 100))
    assert [len(row) for row in grid.p_values] == [10, 10, 10]
    assert max(grid.p_values[0][-3:]) < 0.05 < max(grid.p_values[1])
    assert grid.choice_p_values[0] < 0.05 <= grid.choice_p_values[1]
    assert pair.nonmember_grid.sample_sizes == (100, 200)
    assert pair.member_fit.paper.p_value == grid.p_values[1][-1]


def test_what_no_mixture_describes_is_rejected(rng):
    """Losses with a tie of a fifth of the records, or of five values, are rejected however many components there are."""
    tied = np.where(rng.random(4000) < 0.2, 0.0, rng.normal(size=4000))
    losses = Losses(member=tied, nonmember=rng.integers(0, 5, 4000) + 0.0)
    pair = fit_mixture_pair(losses, choice=Mixture(4), rng=rng)
    assert pair.member_fit.rejected
    assert pair.nonmember_fit.rejected


@pytest.mark.parametrize("size", [2, 3, 4, 5, 9])
def test_the_smallest_groups_go_through(rng, size):
    """Groups of a few records, or of one single loss, are fitted without a warning."""
    losses = Losses(member=rng.normal(size=size), nonmember=np.full(size, 3.0))
    pair = fit_mixture_pair(losses, choice=Mixture(3), rng=rng)
    assert pair.nonmember.sd == 0
    assert not pair.nonmember_fit.rejected


def test_the_pair_is_reproducible_and_shows_progress():
    """The same seed gives the same pair, and the progress goes to its end in order."""
    draws, seen = np.random.default_rng(5).normal(size=(2, 7000)), []
    first, second = (
        fit_mixture_pair(
            Losses(*draws),
            choice=Mixture(2),
            rng=np.random.default_rng(9),
            progress=lambda done, total: seen.append((done, total)),
        )
        for _ in range(2)
    )
    assert first == second
    assert seen[:6] == [(done, 6) for done in range(1, 7)]
