"""Trade-off curves from losses, fits and claims against counting and closed forms."""

import numpy as np
import pytest
from oracles import brute_force_curve
from scipy import stats

from auditor.core import Losses
from auditor.curves import TradeoffCurve, count, fit_gaussian_pair


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
