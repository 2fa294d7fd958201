"""Gaussian DP: curves, exact composition, and the central limit theorem against exact and published numbers."""

import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.curves import TradeoffCurve
from auditor.theory import (
    advantage_from_curve,
    composed_mu,
    gaussian_epsilon,
    gdp_curve,
    limit_mu,
    mu_clt,
    mu_without_sampling,
    subsampled_mu,
    symmetric_amplified_curve,
)

FIXED = FixedSizeSampling()


def exact_tpr(mu, fpr):
    """Phi(Phi^-1(FPR) + mu)."""
    return stats.norm.cdf(stats.norm.ppf(fpr) + mu)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 4.0, 20.0])
def test_curve_is_never_below_and_close(mu):
    """The curve is at least Phi(Phi^-1(FPR) + mu) and at most 0.06% above it at FPRs of 1e-16 and more."""
    curve = gdp_curve(mu)
    fprs = np.concatenate([np.geomspace(1e-200, 0.5, 300), np.linspace(0.5, 1, 51)])
    found, exact = np.array([curve.tpr_at(fpr) for fpr in fprs.tolist()]), exact_tpr(mu, fprs)
    known = found < 0.999  # above, the oracle's own rounding shows
    assert np.all(found[known] >= exact[known] * (1 - 1e-9))
    usual = fprs >= 1e-16
    assert np.all(found[usual] <= np.minimum(1, exact[usual] * (1 + 6e-4)) + 1e-15)


# Paper 000, Figure 7 (p=1e-4, T=5e5, s=2; mu = 2 p sqrt(T)/s): statistics.md, section 7.
def test_published_rates():
    """The f-DP rates of the paper's Figure 7 come out."""
    curve = gdp_curve(2 * 1e-4 * math.sqrt(5e5) / 2)
    assert curve.tpr_at(0.1) == pytest.approx(0.112978, abs=6e-6)
    assert curve.tpr_at(0.01) == pytest.approx(0.012047, abs=1e-6)


@pytest.mark.parametrize("mu", [0.0, 1e-300, 60.0, 1e3, 1e300])
def test_extreme_curves(mu):
    """No and total separation give the diagonal and the corner, without overflow."""
    expected = 0.5 if mu < 1 else 1.0
    assert gdp_curve(mu).tpr_at(0.5) == pytest.approx(expected, abs=1e-12)
    assert gdp_curve(mu).tpr_at(0.0) == pytest.approx(2 * expected - 1, abs=1e-12)


def test_composition_of_mus():
    """The mus of steps add up in squares, of any size."""
    assert composed_mu([3.0, 4.0]) == 5.0
    assert composed_mu([3e200, 4e200]) == pytest.approx(5e200)
    with pytest.raises(InputError, match="mus must have one number for each step, got none"):
        composed_mu([])
    with pytest.raises(InputError, match="mu of step 2 must be 0 or more, got -1"):
        composed_mu([1.0, -1.0])


def test_without_sampling_is_exact():
    """At sampling rate 1 mu is sqrt(sum 1/s^2), twice it for replaced records, and proven."""
    training = DPSGD([1.0, 2.0, 2.0], 1.0)
    for adjacency, factor in ((Adjacency.ADD_REMOVE, 1), (Adjacency.REPLACE_ONE, 2)):
        claim = mu_without_sampling(training, adjacency=adjacency)
        assert claim.value == pytest.approx(factor * math.sqrt(1.5))
        assert (claim.metric, claim.adjacency, claim.status) == ("mu", adjacency, "proven")
        assert mu_clt(training, adjacency=adjacency) == claim


def test_without_sampling_says_that_it_may_be_loose():
    """Below rate 1 the same number is an upper bound, and says so."""
    claim = mu_without_sampling(DPSGD(1.0, 0.1, 4))
    assert claim.value == pytest.approx(2.0)
    assert "ignores the sampling" in claim.note
    assert "far too large to be of use where records are sampled" in claim.note


# statistics.md, section 7: exact TV at (p, T, s); TV = 2 Phi(mu/2) - 1 in the limit.
@pytest.mark.parametrize(
    ("rate", "steps", "adjacency", "exact"),
    [
        (0.001, 10_000, Adjacency.ADD_REMOVE, 0.0521390),
        (0.01, 1_000, Adjacency.ADD_REMOVE, 0.1610176),
        (0.001, 10_000, Adjacency.REPLACE_ONE, 0.0861804),
        (0.01, 1_000, Adjacency.REPLACE_ONE, 0.2643522),
        (0.001, 50_000, Adjacency.REPLACE_ONE, 0.1912326),
    ],
)
def test_limit_is_near_the_exact_total_variation(rate, steps, adjacency, exact):
    """With many steps of noise 1 the advantage at the limit's mu is within 2.5% of the exact one."""
    mu = mu_clt(DPSGD(1.0, rate, steps), adjacency=adjacency).value
    assert math.erf(mu / (2 * math.sqrt(2))) == pytest.approx(exact, rel=0.025)


@pytest.mark.parametrize("noise", [0.6, 1.0, 3.0])
@pytest.mark.parametrize(
    ("adjacency", "sampling"), [("add-remove", None), ("replace-one", None), ("replace-one", FIXED)]
)
def test_limit_is_the_variance_of_one_step(noise, adjacency, sampling):
    """One step's mu^2 is the variance of its log-ratio over p^2, in the limit of small rates, by quadrature."""
    rate = 1e-13
    distance = 2.0 if sampling else 1.0

    def log_ratio(x):
        tilts = [math.expm1((2 * sign * distance * x - distance**2) / (2 * noise**2)) for sign in (1, -1)]
        plain = math.log1p(rate * tilts[0])
        if sampling:
            return max(plain, 0.0)
        return plain - (math.log1p(rate * tilts[1]) if adjacency == "replace-one" else 0.0)

    def moment(x):
        return stats.norm.pdf(x, 0, noise) * log_ratio(x) ** 2

    ends = (-12 * noise, 12 * noise + 4 / noise)
    points = np.linspace(*ends, 50)[1:-1].tolist()
    variance = integrate.quad(moment, *ends, points=points, limit=500, epsabs=0)[0]
    # A symmetric loss comes with either sign: its one-sided moment counts twice.
    training = DPSGD(noise, rate, 1, sampling=sampling) if sampling else DPSGD(noise, rate, 1)
    found = mu_clt(training, adjacency=adjacency).value
    assert found == pytest.approx(math.sqrt((2 if sampling else 1) * variance), rel=2e-4)


def test_phases_add_up_in_squares():
    """A run of several kinds of step has the root of the sum of the squares of its parts, unsampled ones exact."""
    whole = mu_clt(DPSGD([1.0, 1.0, 2.0, 4.0], [0.01, 0.01, 0.1, 1.0])).value
    parts = [mu_clt(DPSGD(1.0, 0.01, 2)).value, mu_clt(DPSGD(2.0, 0.1, 1)).value, 1 / 4]
    assert whole == pytest.approx(math.hypot(*parts), rel=1e-12)


def test_limit_can_be_on_the_unsafe_side_and_says_so():
    """At rate 0.01, noise 0.6, 100 steps and delta 1e-5 the limit's epsilon is 1.505, and the note says what is right."""
    claim = mu_clt(DPSGD(0.6, 0.01, 100))
    assert gaussian_epsilon(claim.value, delta=1e-5) == pytest.approx(1.505, abs=5e-4)
    assert claim.status == "approximation"
    assert "unsafe side" in claim.note
    assert "3.816" in claim.note


@pytest.mark.parametrize("function", [mu_clt, mu_without_sampling])
def test_fixed_size_has_no_add_remove_mu(function):
    """Batches of a fixed size are accounted for replaced records only."""
    claim = function(DPSGD(1.0, 0.1, 10, sampling=FIXED))
    assert claim.value is None
    assert "replaced records only" in claim.note
    with pytest.raises(InputError, match="adjacency must be one of"):
        function(DPSGD(1.0, 0.1, 10), adjacency="either")


# statistics.md, section 7 and errata.md: the corrected Corollary 5.4.
def test_subsampled_reference():
    """The corrected Corollary 5.4 gives .540795 at q=.01, k=1000, mu=1."""
    assert subsampled_mu(1.0, sampling_rate=0.01, steps=1000) == pytest.approx(0.540795, abs=5e-7)


@pytest.mark.parametrize("mu", [1e-160, 1e-9, 1e-6, 2.8e-3, 2.9e-3, 0.3, 5.9, 6.1, 20.0])
def test_subsampled_against_exact_arithmetic(mu):
    """Every form of the variance agrees with 400-digit arithmetic."""
    with mpmath.workdps(400):
        m = mpmath.mpf(mu)
        inner = mpmath.exp(m * m) * mpmath.ncdf(1.5 * m) + 3 * mpmath.ncdf(-m / 2) - 2
        exact = float(mpmath.sqrt(2 * inner))
    assert subsampled_mu(mu, sampling_rate=1.0, steps=1) == pytest.approx(exact, rel=1e-11)


def test_subsampled_extremes_and_bad_input():
    """No separation is 0, total separation infinite, and bad numbers one sentence."""
    assert subsampled_mu(0.0, sampling_rate=0.1, steps=5) == 0.0
    assert subsampled_mu(1e3, sampling_rate=0.1, steps=5) == math.inf
    with pytest.raises(InputError, match="steps must be a whole number of 1 or more, got 0"):
        subsampled_mu(1.0, sampling_rate=0.1, steps=0)
    with pytest.raises(InputError, match="sampling_rate must lie in"):
        subsampled_mu(1.0, sampling_rate=1.1, steps=1)


@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0])
def test_functional_of_a_gaussian_curve(mu):
    """Theorem 3.4 applied to a Gaussian curve gives mu sqrt(k): k1 = mu^2/2 and k2 - k1^2 = mu^2."""
    assert limit_mu(gdp_curve(mu), steps=25) == pytest.approx(5 * mu, rel=1e-3)


def test_functional_of_a_sampled_curve_is_the_corollary():
    """Theorem 3.4 applied to a sampled Gaussian curve tends to Corollary 5.4 for small rates."""
    curve = symmetric_amplified_curve(gdp_curve(1.0), sampling_rate=1e-3)
    expected = subsampled_mu(1.0, sampling_rate=1e-3, steps=10**6)
    assert limit_mu(curve, steps=10**6) == pytest.approx(expected, rel=0.01)


def test_functional_of_randomised_response():
    """For the (epsilon, 0) curve k1 = eps tanh(eps/2) and k2 = eps^2, by hand."""
    found = limit_mu(TradeoffCurve.from_epsilon_delta(0.3, delta=0.0), steps=4)
    assert found == pytest.approx(4 * math.tanh(0.15) / math.sqrt(1 - math.tanh(0.15) ** 2), rel=1e-9)


def test_functional_limits_and_bad_input():
    """No leakage is 0, a jump is infinite, and a curve that is no mirror image of itself is refused."""
    assert limit_mu(TradeoffCurve([0.0, 1.0], [0.0, 1.0]), steps=9) == 0.0
    assert limit_mu(TradeoffCurve.from_epsilon_delta(0.3, delta=0.1), steps=9) == math.inf
    with pytest.raises(InputError, match=r"curve must be its own mirror image .*symmetric_amplified_curve"):
        limit_mu(TradeoffCurve([0.0, 0.1, 1.0], [0.0, 0.3, 1.0]), steps=9)


@pytest.mark.parametrize("noise", [1e-200, 1e-3, 0.05, 1e6, 1e200])
@pytest.mark.parametrize(("adjacency", "sampling"), [("add-remove", None), ("replace-one", FIXED)])
def test_extreme_noise(noise, adjacency, sampling):
    """Almost no noise gives an infinite mu and huge noise a tiny one with all its digits, never NaN."""
    options = {"sampling": sampling} if sampling else {}
    value = mu_clt(DPSGD(noise, 0.5, 10**7, **options), adjacency=adjacency).value
    if noise > 1:
        factor = 2.0 if sampling else 1.0  # the limit of large noise: p sqrt(T) distance / s
        assert value == pytest.approx(factor * 0.5 * math.sqrt(1e7) / noise, rel=1e-5)
    else:
        assert value > 1e10


def test_more_noise_is_never_worse():
    """Mu falls with noise and grows with rate and steps, for every kind of neighbour."""
    for adjacency in Adjacency:
        by_noise = [mu_clt(DPSGD(s, 0.1, 10), adjacency=adjacency).value for s in (0.2, 0.7, 1.0, 30.0)]
        by_rate = [mu_clt(DPSGD(1.0, p, 10), adjacency=adjacency).value for p in (1e-6, 0.1, 0.9)]
        assert by_noise == sorted(by_noise, reverse=True)
        assert by_rate == sorted(by_rate)


def test_advantage_of_the_curve():
    """The largest gap of the curve is 2 Phi(mu/2) - 1."""
    assert advantage_from_curve(gdp_curve(1.0)) == pytest.approx(0.38292492, rel=1e-6)


@pytest.mark.parametrize("function", [mu_clt, mu_without_sampling])
def test_another_type_is_refused(function):
    """Anything but a DP-SGD run, and a single number where there should be several, is refused in one sentence."""
    with pytest.raises(InputError, match=r"training must be auditor\.DPSGD, got 'x'\."):
        function("x")
    with pytest.raises(InputError, match="mus must be"):
        composed_mu(3.0)
