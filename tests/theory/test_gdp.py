"""Gaussian DP: curves, exact composition, and the central limit theorem against exact and published numbers."""

import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats
from theory.references import EXACT

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, ShuffledBatches, StatedCurve
from auditor.theory import (
    claimed_curve,
    composed,
    gaussian_deltas,
    gdp_curve,
    mu_claim,
    mu_clt,
    mu_without_sampling,
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


@pytest.mark.parametrize("mu", [0.0, 1e-300, 60.0, 1e3, 1e300])
def test_extreme_curves(mu):
    """No and total separation give the diagonal and the corner, without overflow."""
    expected = 0.5 if mu < 1 else 1.0
    assert gdp_curve(mu).tpr_at(0.5) == pytest.approx(expected, abs=1e-12)
    assert gdp_curve(mu).tpr_at(0.0) == pytest.approx(2 * expected - 1, abs=1e-12)


@pytest.mark.parametrize(("training", "adjacency", "exact"), [row for row in EXACT if row[0].steps >= 1_000])
def test_limit_is_near_the_exact_total_variation(training, adjacency, exact):
    """With many steps of noise 1 the advantage at the limit's mu, 2 Phi(mu/2) - 1, is within 2.5% of the exact one."""
    mu = mu_clt(training, adjacency=adjacency).value
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


@pytest.mark.parametrize("mu", [1e-160, 1e-9, 1e-6, 2.8e-3, 2.9e-3, 0.3, 5.9, 6.1, 20.0])
def test_variance_of_a_fixed_size_against_exact_arithmetic(mu):
    """Every form of the variance agrees with 400-digit arithmetic."""
    with mpmath.workdps(400):
        m = mpmath.mpf(mu)
        inner = mpmath.exp(m * m) * mpmath.ncdf(1.5 * m) + 3 * mpmath.ncdf(-m / 2) - 2
        exact = float(mpmath.sqrt(2 * inner))
    run = DPSGD(2 / mu, 1e-3, 10**6, sampling=FIXED)
    assert mu_clt(run, adjacency="replace-one").value == pytest.approx(exact, rel=1e-11)


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


# --- One mu for the whole curve of a run, beside other libraries ---

# For error rates of 0.01 and more by gdpnum 0.1.2, PLDConverter(pld).get_mu(err=0.01), and by dp_accounting 0.6, then by
# the latter for 1e-10 and more: Phi^-1(TPR) - Phi^-1(FPR) at that FPR, TPR the least of delta(eps) + e^eps FPR over eps.
# Both with connect-the-dots at 1e-4. gdpnum's default, 1e-10, gives less where few records are drawn (0.43936 in the
# second run): it takes the two error rates from two laws, of which each was rounded on its own.
MUS_OF_RUNS = [
    (DPSGD(9.4, 0.328, 2000), 1.56343, 1.56343, 1.56847),
    (DPSGD(1.0, 0.01, 1000), 0.43215, 0.43275, 0.5222),
    (DPSGD(0.6, 0.01, 100), 0.49859, 0.4987, 1.10693),
    (DPSGD(2.0, 0.05, 500), 0.60361, 0.60366, 0.63387),
    (DPSGD(4.0, 0.25, 400), 1.26717, 1.26718, 1.2913),
    (DPSGD(20.0, 0.5, 10000), 2.50034, 2.50034, 2.5016),
    (DPSGD(1.0, 0.5, 2), 0.89227, 0.89228, 1.15851),
    (DPSGD(1.5, 0.1, 100), 0.7663, 0.76634, 0.87998),
    (DPSGD(1.1, 256 / 60000, 2343), 0.24011, 0.24135, 0.26974),
    (DPSGD(0.8, 0.002, 5000), 0.28531, 0.28928, 0.4671),
]


@pytest.mark.parametrize(("run", "by_gdpnum", "at_hundredth", "at_least"), MUS_OF_RUNS)
def test_mu_of_a_run_beside_other_libraries(run, by_gdpnum, at_hundredth, at_least):
    """It is never below theirs, and above dp_accounting's by at most 0.1%; gdpnum's are up to 1.5% too small."""
    mu = claimed_curve(run).curve.mu_and_regret(least_rate=0.01).mu
    assert 1 - 5e-5 <= mu / at_hundredth <= 1.001
    assert 1 - 5e-5 <= mu / by_gdpnum <= 1.015
    assert 1 - 5e-5 <= mu_claim(run).value / at_least <= 1.001


def test_mu_and_regret_of_the_readme_of_gdpnum():
    """Noise 9.4, rate 0.328, 2000 steps: mu 1.5685621993129137, regret 0.0010208130697719753; ours are upper bounds."""
    mu, regret = claimed_curve(DPSGD(9.4, 0.328, 2000)).curve.mu_and_regret(least_rate=1e-10)
    assert 1.5685621993129137 <= mu <= 1.5685621993129137 * 1.001
    assert 0.0010208130697719753 <= regret <= 0.0010208130697719753 + 1.5e-4


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("run", [DPSGD(1.0, 0.01, 1000), DPSGD(4.0, 0.25, 400)])
def test_mu_of_a_run_holds_for_every_attack(run, adjacency):
    """No rates and no delta that its exact law reaches are above its Gaussian curve; moved by the regret they are above it."""
    found, law = mu_claim(run, adjacency=adjacency), composed(run, adjacency=adjacency)
    assert found.proven
    regret = claimed_curve(run, adjacency=adjacency).curve.mu_and_regret(least_rate=1e-10).regret
    rates = np.geomspace(1e-10, 0.999, 25)
    assert np.all(law.tpr_at(rates) <= exact_tpr(found.value, rates) * (1 + 1e-9))
    epsilons = np.linspace(0, law.epsilon_at(exact_tpr(found.value, 1e-10)), 20)
    gaussian = gaussian_deltas(found.value, epsilons=epsilons)
    assert np.all(law.delta_at(epsilons) <= gaussian * (1 + 1e-9) + 1e-15)
    # Of the smallest regret, by its definition for both orders: delta_mu(eps) <= delta(eps) + (1 + e^eps) regret.
    gaps = (gaussian - law.delta_at(epsilons)) / (1 + np.exp(epsilons))
    assert regret * 0.98 <= gaps.max() <= regret + 1e-4


def test_words_of_mu_and_regret():
    """The note has the regret, rounded up, and says that mu alone overstates where it is above 0.01."""
    assert (
        "at most; mu alone overstates. It holds for error rates of 1e-10"
        in mu_claim(DPSGD(0.6, 0.01, 100)).note
    )
    small = mu_claim(DPSGD(9.4, 0.328, 2000)).note
    assert small.startswith("Regret 0.00115: how much the Gaussian curve overstates at most. It holds")
    assert small.endswith("and deltas of 8.26e-7 and more.")


def test_mu_where_nothing_is_promised():
    """Batches of a fixed size have none for added records, and shuffled ones one that is not proven."""
    found = mu_claim(DPSGD(1.0, 0.1, 10, sampling=FIXED))
    assert found.value is None
    assert found.note.startswith("Batches of a fixed size are accounted for replaced records only")
    assert not mu_claim(DPSGD(1.0, 0.1, 10, sampling=ShuffledBatches())).proven


@pytest.mark.parametrize(
    ("run", "mu"),
    [
        (DPSGD(2.0, 1.0, 100), 5.0),  # sqrt(100) / 2
        (DPSGD(1.0, 1.0, 100), 10.0),
        (DPSGD([1.0, 2.0, 2.0], 1.0), math.sqrt(1 + 1 / 4 + 1 / 4)),
        (StatedCurve(mu=3.0), 3.0),
    ],
)
def test_mu_is_exact_where_the_curve_is_gaussian(run, mu):
    """Steps that every record enters are Gaussian with mu^2 = sum 1/s^2, and a stated mu is its own; replaced, twice that."""
    for adjacency, factor in ((Adjacency.ADD_REMOVE, 1), (Adjacency.REPLACE_ONE, 2)):
        found = mu_claim(run, adjacency=adjacency)
        assert found.value == pytest.approx(factor * mu, rel=1e-14)
        assert found.status == "proven"
        if isinstance(run, DPSGD):
            assert mu_clt(run, adjacency=adjacency) == mu_without_sampling(run, adjacency=adjacency) == found
    assert mu_claim(StatedCurve(mu=3.0, adjacency="replace-one")).value is None  # nothing about added records
