"""Trade-off curves from losses, fits and claims against counting and closed forms, and what is read off them."""

import math

import numpy as np
import pytest
from oracles import brute_force_curve
from scipy import stats

from auditor.core import Losses
from auditor.curves import TradeoffCurve, count, fit_gaussian_pair
from auditor.theory import gaussian_deltas, gaussian_epsilon, gdp_curve

MUS = [1e-3, 0.1, 1.0, 5.0, 30.0]


@pytest.mark.parametrize("size", [2, 6, 1000])
def test_counts_against_counting(rng, size):
    """The counts below and up to each threshold are plain counts, for every kind of tie."""
    for _ in range(60):
        n1, n0 = rng.integers(2, 50, 2)
        member, nonmember = rng.integers(0, size, n1) + 0.0, rng.integers(0, size, n0) + 0.0
        counts = count(Losses(member=member, nonmember=nonmember))
        for i, t in enumerate(np.unique(nonmember)):
            expected = [
                np.sum(nonmember < t),
                np.sum(nonmember <= t),
                np.sum(member < t),
                np.sum(member <= t),
            ]
            found = [c[i] for c in (counts.fp_below, counts.fp_upto, counts.tp_below, counts.tp_upto)]
            assert found == expected


def test_the_empirical_curve_holds_every_threshold(rng):
    """Every threshold's rates lie on the curve, and its thresholds reproduce its rates."""
    member, nonmember = rng.integers(0, 9, 40) + 0.0, rng.integers(2, 12, 30) + 0.0
    curve = TradeoffCurve.from_losses(Losses(member=member, nonmember=nonmember))
    for fpr, tpr in zip(*brute_force_curve(member, nonmember), strict=True):
        spans = curve.tpr[curve.fpr == fpr]
        assert spans.size
        assert spans.min() <= tpr <= spans.max()
    for fpr, tpr, threshold in zip(curve.fpr, curve.tpr, curve.thresholds, strict=True):
        assert (np.mean(nonmember <= threshold), np.mean(member <= threshold)) == (fpr, tpr)


def test_the_fitted_curve_is_the_normals(rng):
    """The curve of two fitted normals is Phi((m0 - m1 + s0 Phi^-1(FPR))/s1)."""
    pair = fit_gaussian_pair(Losses(member=rng.normal(0, 1, 500), nonmember=rng.normal(1, 2, 500)), rng=rng)
    curve = TradeoffCurve.from_fits(pair)
    m1, s1, m0, s0 = pair.member.mean, pair.member.sd, pair.nonmember.mean, pair.nonmember.sd
    for fpr in (1e-4, 0.01, 0.3, 0.9):
        expected = stats.norm.cdf((m0 - m1 + s0 * stats.norm.ppf(fpr)) / s1)
        assert curve.tpr_at(fpr) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (0.0, 0.2), (1.0, 1e-5), (3.0, 0.1), (600.0, 0.0)]
)
def test_the_claimed_curve_is_the_closed_form(epsilon, delta):
    """TPR <= min(1, d + e^eps FPR, 1 - e^-eps (1 - d - FPR)); Kairouz, Oh and Viswanath 2015."""
    curve = TradeoffCurve.from_epsilon_delta(epsilon, delta=delta)
    for fpr in (0.0, 1e-6, 0.01, 0.2, 0.5, 0.95):
        other = 1 - np.exp(-epsilon) * (1 - delta - fpr)
        first = delta + np.exp(min(epsilon, 700)) * fpr
        # At FPR 0 the second piece would allow 1 - e^-eps (1 - d): the first binds.
        assert curve.tpr_at(fpr) == pytest.approx(min(1.0, first, max(other, 0.0)), rel=1e-9, abs=1e-12)


def test_thinning_keeps_points_and_ends(rng):
    """A thinned curve consists of points of the curve, keeps both ends and both tails."""
    curve = TradeoffCurve.from_losses(
        Losses(member=rng.normal(-1, 1, 9000), nonmember=rng.normal(0, 1, 9000))
    )
    thin = curve.thinned(points=400)
    assert thin.fpr.size <= 400
    points = set(zip(curve.fpr, curve.tpr, strict=True))
    assert all(point in points for point in zip(thin.fpr, thin.tpr, strict=True))
    assert thin.fpr[thin.fpr > 0].min() < 5 / 9000


# --- What is read off a curve: the smallest epsilon, delta, advantage and mu whose own curve lies above ---


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 8.0, 30.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5, 0.3])
def test_curve_of_epsilon_and_delta_gives_them_back(epsilon, delta):
    """The (epsilon, delta) curve has this epsilon at this delta and this delta at this epsilon."""
    curve = TradeoffCurve.from_epsilon_delta(epsilon, delta=delta)
    assert curve.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)
    assert curve.delta_at(epsilon) == pytest.approx(delta, rel=1e-9, abs=1e-12)
    if delta:
        assert curve.epsilon_at(delta / 2) == math.inf
        assert curve.mu_and_regret().mu == math.inf


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-5, 0.05])
def test_gaussian_curve_gives_its_epsilon_back(mu, delta):
    """The dense Gaussian curve has the exact epsilon and delta, a little above and never below."""
    curve, exact = gdp_curve(mu), gaussian_epsilon(mu, delta=delta)
    assert exact * (1 - 1e-9) <= curve.epsilon_at(delta) <= exact * 1.001 + 1e-6
    deltas = curve.delta_at([0.0, 1.0, 5.0])
    expected = gaussian_deltas(mu, epsilons=[0.0, 1.0, 5.0])
    assert deltas == pytest.approx(expected, rel=1e-3, abs=1e-15)
    assert np.all(deltas >= expected * (1 - 1e-9) - 1e-15)


@pytest.mark.parametrize("mu", MUS)
def test_gaussian_curve_gives_its_mu_back(mu):
    """The dense Gaussian curve has its mu, a little above and never below."""
    assert mu * (1 - 1e-9) <= gdp_curve(mu).mu_and_regret().mu <= mu * 1.05


def scanned(curve, deltas_or_epsilons, condition):
    """Smallest parameter at which a condition holds at 20,001 points of the curve."""
    fpr = np.linspace(0, 1, 20_001)
    tpr = np.interp(fpr, curve.fpr, curve.tpr)
    return min(value for value in deltas_or_epsilons if condition(value, fpr, tpr))


@pytest.mark.parametrize(
    "curve",
    [
        TradeoffCurve([0.0, 0.1, 0.3, 1.0], [0.0, 0.5, 0.6, 1.0]),
        TradeoffCurve([0.0, 0.0, 0.4, 0.9, 1.0], [0.0, 0.05, 0.5, 1.0, 1.0]),
        TradeoffCurve([0.0, 0.5, 1.0], [0.0, 0.1, 1.0]),
    ],
)
def test_any_curve_against_a_scan(curve):
    """On asymmetric and sagging curves epsilon and delta agree with a scan of the definition."""

    def above(epsilon, delta, fpr, tpr):
        bound = np.minimum(delta + np.exp(epsilon) * fpr, 1 - np.exp(-epsilon) * (1 - delta - fpr))
        return np.all(tpr <= bound + 1e-9)

    epsilon = scanned(curve, np.linspace(0, 5, 5001), lambda e, x, y: above(e, 0.1, x, y))
    assert curve.epsilon_at(0.1) == pytest.approx(epsilon, abs=2e-3)
    delta = scanned(curve, np.linspace(0, 1, 10_001), lambda d, x, y: above(0.5, d, x, y))
    assert curve.delta_at(0.5) == pytest.approx(delta, abs=2e-4)
    gap = np.max(curve.tpr - curve.fpr)
    assert curve.advantage == pytest.approx(max(0.0, gap))


def test_one_sided_jump_is_infinite():
    """A curve that is certain about non-members only is infinite at a smaller delta, though it starts at 0."""
    curve = TradeoffCurve([0.0, 0.7, 1.0], [0.0, 1.0, 1.0])
    assert curve.epsilon_at(0.1) == math.inf
    assert curve.epsilon_at(0.3) == pytest.approx(math.log(1 / 0.7 - 0.3 / 0.7), abs=1e-12)
    assert curve.mu_and_regret().mu == math.inf


def test_delta_at_an_infinite_epsilon():
    """No slope is worth a false positive there: what is left is the TPR without one."""
    assert (
        TradeoffCurve.from_epsilon_delta(1.0, delta=0.25).delta_at([700.0, math.inf]).tolist() == [0.25] * 2
    )


# --- mu and its regret ---


def smallest_shift(curve, mu):
    """The regret by its definition, on a grid: the smallest kappa with T_mu(x) <= T(x + kappa) + kappa, halved to 1e-9."""
    x = np.linspace(0, 1, 20_001)
    gaussian, low, high = stats.norm.cdf(stats.norm.ppf(x) + mu), 0.0, 1.0
    while high - low > 1e-9:
        kappa = (low + high) / 2
        enough = np.all(gaussian <= np.interp(np.minimum(x + kappa, 1), curve.fpr, curve.tpr) + kappa)
        low, high = (low, kappa) if enough else (kappa, high)
    return high


@pytest.mark.parametrize(
    ("epsilon", "theirs"),
    [(0.5, 0.035240881796198664), (1.0, 0.057546396049474424), (3.0, 0.03212726531455701)],
)
def test_mu_and_regret_of_randomised_response(epsilon, theirs):
    """The mu is 2 Phi^-1(e^eps/(1 + e^eps)), through the corner; regret delta_mu(eps)/(1 + e^eps), on the steep piece.

    Beside it is gdpnum 0.1.2's get_worst_case_regret(alphas, betas, mu, tol=1e-12), an underestimate on a grid.
    """
    mu, regret = TradeoffCurve.from_epsilon_delta(epsilon, delta=0.0).mu_and_regret()
    assert mu == pytest.approx(2 * stats.norm.ppf(1 / (1 + math.exp(-epsilon))), rel=1e-10)
    delta = float(gaussian_deltas(mu, epsilons=epsilon))
    assert regret == pytest.approx(delta / (1 + math.exp(epsilon)), rel=1e-9)
    assert theirs <= regret <= theirs + 1e-8


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.1), (2.0, 1e-5)])
def test_a_jump_has_no_mu_but_one_from_some_rate_on(epsilon, delta):
    """With a delta mu is infinite, its regret half the Bayes security; from 1e-3 on mu is that of the largest of two corners."""
    curve = TradeoffCurve.from_epsilon_delta(epsilon, delta=delta)
    mu, regret = curve.mu_and_regret()
    assert mu == math.inf
    assert regret == pytest.approx((1 - delta) / (1 + math.exp(epsilon)), rel=1e-9)
    assert regret == pytest.approx(curve.bayes_security / 2, rel=1e-9)
    corner = (1 - delta) / (1 + math.exp(epsilon))
    pairs = ((1e-3, delta + math.exp(epsilon) * 1e-3), (corner, 1 - corner))
    expected = max(stats.norm.ppf(tpr) - stats.norm.ppf(fpr) for fpr, tpr in pairs)
    some = curve.mu_and_regret(least_rate=1e-3)
    assert some.mu == pytest.approx(expected, rel=1e-9)
    assert some.regret == pytest.approx(smallest_shift(curve, some.mu), abs=1e-5)


def test_mu_and_regret_of_all_and_of_nothing():
    """Of a perfect attack mu is infinite, or as far as both error rates go; of the diagonal both numbers are 0."""
    perfect = TradeoffCurve([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    assert perfect.mu_and_regret().mu == math.inf
    assert perfect.mu_and_regret().regret < 1e-15
    assert perfect.mu_and_regret(least_rate=1e-4).mu == pytest.approx(-2 * stats.norm.ppf(1e-4), rel=1e-9)
    assert TradeoffCurve([0.0, 1.0], [0.0, 1.0]).mu_and_regret() == (0.0, 0.0)


@pytest.mark.parametrize("mu", MUS)
def test_a_gaussian_curve_has_no_regret(mu):
    """Nearly all of the regret of the lowest tangents to a Gaussian curve is what their corners add to its mu."""
    found = gdp_curve(mu).mu_and_regret(least_rate=1e-9)
    expected = min(mu, -2 * stats.norm.ppf(1e-9))  # further apart no two error rates of 1e-9 are
    assert expected * (1 - 1e-9) <= found.mu <= expected * 1.001
    assert 0 < found.regret < 1e-4


@pytest.mark.parametrize("pieces", [1, 2, 5, 30])
def test_regret_by_its_definition(rng, pieces):
    """Of the lowest of random lines, it is the smallest move of the curve by which the Gaussian one lies below it."""
    for _ in range(5):
        epsilons, deltas = rng.gamma(1.0, 1.0, pieces), rng.random(pieces) ** 3 / 2
        curve = TradeoffCurve.from_profile(epsilons, deltas=deltas)
        mu, regret = curve.mu_and_regret(least_rate=1e-6)
        assert regret == pytest.approx(smallest_shift(curve, mu), abs=2e-5)


@pytest.mark.parametrize("fpr", [0.1, 0.2])
def test_mu_is_of_both_orders_and_of_mixed_tests(fpr):
    """A corner at high rates counts by its mirror image, and from some rate on what a coin between two tests reaches."""
    low, high = (
        TradeoffCurve([0.0, *at, 1.0], [0.0, *to, 1.0]) for at, to in (([fpr], [0.7]), ([0.3], [1 - fpr]))
    )
    assert low.mu_and_regret() == pytest.approx(high.mu_and_regret(), rel=1e-9)
    # Between (0, 0) and the corner: at half of its false positive rate half of the hits.
    expected = max(stats.norm.ppf(share * 0.7) - stats.norm.ppf(share * fpr) for share in (0.5, 1.0))
    assert low.mu_and_regret(least_rate=fpr / 2).mu == pytest.approx(expected, rel=1e-9)
