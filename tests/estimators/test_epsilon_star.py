"""Epsilon*: standard errors, the empirical value, and what the parametric row says."""

import math

import numpy as np
import pytest
from oracles import brute_force_curve, epsilon_of_rates
from scipy import stats

from auditor.core import Census, Losses
from auditor.curves import Gaussian, fit_gaussian, fit_gaussian_pair, published
from auditor.estimators import empirical, gaussian_supremum, largest_lower_bound, parametric, standard_error
from auditor.estimators.epsilon_star import logistic_value


def test_standard_error_reference():
    """N(0,1) given N(1,1.2), delta 1e-5, n = 2000 per group, no clip: .757950 (design reference)."""
    laws = Gaussian(0.0, 1.0), Gaussian(1.0, 1.2)
    best = gaussian_supremum(*laws, delta=1e-5).best
    assert standard_error(best, *laws, sizes=(2000, 2000)) == pytest.approx(0.757950, abs=5e-7)


@pytest.mark.parametrize("clip", [0.0, 1e-2])
@pytest.mark.parametrize("other", [(1.0, 1.2), (1.0, 0.8), (-0.7, 1.1), (0.6, 1.0)])
def test_standard_error_is_the_delta_method(clip, other):
    """The closed form equals finite differences of the best branch in all four fitted parameters."""
    delta, n1, n0 = 1e-3, 3000, 1000
    at = np.array([0.0, 1.0, *other])
    laws = Gaussian(*at[:2]), Gaussian(*at[2:])
    best = gaussian_supremum(*laws, delta=delta, clip=clip).best

    def value(theta):
        moved = gaussian_supremum(Gaussian(*theta[:2]), Gaussian(*theta[2:]), delta=delta, clip=clip)
        return next(branch.epsilon for branch in moved.branches if branch.name == best.name)

    step = 1e-5
    gradient = np.array([(value(at + step * e) - value(at - step * e)) / (2 * step) for e in np.eye(4)])
    variances = np.array([at[1] ** 2 / n1, at[1] ** 2 / (2 * n1), at[3] ** 2 / n0, at[3] ** 2 / (2 * n0)])
    expected = math.sqrt(float(np.square(gradient) @ variances))
    assert standard_error(best, *laws, sizes=(n1, n0)) == pytest.approx(expected, rel=1e-4)


def test_standard_error_from_moments_needs_no_normal(rng):
    """With the sample's own moments, the standard error matches the spread over repeated exponential samples."""
    values, claimed = [], []
    for _ in range(300):
        laws = [fit_gaussian(rng.exponential(scale, 4000)) for scale in (1.0, 1.5)]
        found = gaussian_supremum(*laws, delta=1e-2)
        values.append(found.value)
        claimed.append(standard_error(found.best, *laws, sizes=(4000, 4000), normal=False))
    assert np.mean(claimed) == pytest.approx(np.std(values), rel=0.15)


def test_a_census_has_only_the_non_members_uncertainty():
    """With infinitely many members only the non-member law adds variance."""
    laws = Gaussian(0.0, 1.0), Gaussian(1.0, 1.2)
    best = gaussian_supremum(*laws, delta=1e-5).best
    both = standard_error(best, *laws, sizes=(2000, 2000)) ** 2
    parts = [standard_error(best, *laws, sizes=sizes) ** 2 for sizes in ((math.inf, 2000), (2000, math.inf))]
    assert sum(parts) == pytest.approx(both, rel=1e-12)


def test_saturated_has_no_lower_bound():
    """A ceiling is not an estimate with an error, so it has no parametric lower bound."""
    laws = Gaussian(0.0, 1.0), Gaussian(9.0, 1.0)
    found = gaussian_supremum(*laws, delta=1e-5, clip=1e-5)
    errors = [standard_error(branch, *laws, sizes=(100, 100)) for branch in found.branches]
    assert largest_lower_bound(found, errors, confidence=0.95) is None


def test_rejected_fit_has_no_interval(rng):
    """A rejected fit leaves the value and takes away the lower bound and the confidence."""
    losses = Losses(member=rng.choice([0.0, 5.0, 9.0], 4000), nonmember=rng.exponential(1, 4000))
    estimate = parametric(fit_gaussian_pair(published(losses), rng=rng), delta=1e-4)
    assert estimate.details["fit"]["rejected"]
    assert estimate.value is not None
    assert (estimate.lower, estimate.confidence) == (None, None)


def test_details_say_where_it_is_attained(rng):
    """On the paper's clip the row says so, and that the data do not reach there."""
    losses = Losses(member=rng.normal(0, 1, 2000), nonmember=rng.normal(1, 1, 2000))
    details = parametric(fit_gaussian_pair(losses, rng=rng), delta=1e-5, coverage=Census()).details
    assert details["at"]["on_clip"]
    assert not details["at"]["reached_by_data"]
    assert details["supported"]["clip"] == 10 / 2000
    assert details["supported"]["value"] < details["unclipped"]


@pytest.mark.parametrize("clip", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05])
def test_empirical_against_counting(rng, clip, delta):
    """The empirical value equals a maximum over every threshold, with ties of every kind."""
    checked = 0
    for _ in range(150):
        n1, n0 = rng.integers(2, 60, 2)
        size = rng.choice([3, 10, 1000])
        member = rng.integers(0, size, n1) + 0.0
        nonmember = rng.integers(0, size, n0) + float(rng.choice([0, size // 3]))
        fpr, tpr = brute_force_curve(member, nonmember)
        inside = (fpr > clip) & (fpr < 1 - clip) & (tpr > clip) & (tpr < 1 - clip)
        if inside.any():
            expected = epsilon_of_rates(fpr[inside], tpr[inside], delta)
            found = empirical(Losses(member=member, nonmember=nonmember), delta=delta, clip=clip).value
            assert found == pytest.approx(expected, abs=1e-12)
            checked += 1
    assert checked > 50


@pytest.mark.parametrize(("member", "nonmember"), [(0.0, 1.0), (1.0, 0.0)])
def test_empirical_total_separation_is_the_ceiling(member, nonmember):
    """Perfectly separated groups read as log((1 - c - delta)/c), flagged, whichever way round."""
    found = empirical(Losses(member=np.full(50, member), nonmember=np.full(50, nonmember)), delta=1e-5)
    assert found.value == pytest.approx(math.log((1 - 0.001 - 1e-5) / 0.001))
    assert found.details["saturated"]


@pytest.mark.parametrize("clip", [1e-4, 0.025])
@pytest.mark.parametrize("other", [(1.0, 1.0), (-0.7, 1.6), (0.5, 0.6), (9.0, 1.0)])
def test_logistic_laws_against_their_rates(clip, other):
    """The value of two logistic laws is the largest ratio of their rates over a dense grid, or the clip's ceiling."""
    delta, (mean, sd) = 1e-5, other
    laws = (stats.logistic(at, scale * math.sqrt(3) / math.pi) for at, scale in ((0, 1), (mean, sd)))
    member, nonmember = laws
    q = np.linspace(-30, 40, 700_001)
    fpr, tpr = nonmember.cdf(q), member.cdf(q)
    inside = (fpr >= clip) & (fpr <= 1 - clip) & (tpr >= clip) & (tpr <= 1 - clip)
    ceiling = math.log((1 - clip - delta) / clip)
    expected = epsilon_of_rates(fpr[inside], tpr[inside], delta) if inside.any() else ceiling
    found = logistic_value(Gaussian(0.0, 1.0), Gaussian(*other), delta=delta, clip=clip)
    assert found == pytest.approx(expected, abs=1e-3)


def test_the_limit_is_that_of_the_supported_values(rng):
    """It is below both values that the records support, by what the published value is above its own lower limit."""
    losses = Losses(member=rng.normal(0, 1, 400), nonmember=rng.normal(1, 1, 400))
    estimate = parametric(fit_gaussian_pair(losses, rng=rng), delta=1e-3)
    supported = estimate.details["supported"]
    error = max(estimate.details[name] for name in ("standard_error", "standard_error_from_moments"))
    interval = stats.norm.isf(0.05 / 4) * error
    assert supported["logistic"] < supported["value"] < supported["logistic"] + interval
    assert estimate.lower == pytest.approx(supported["logistic"] - interval)


def test_no_limit_where_the_tails_decide(rng):
    """Where logistic laws of the same means and spreads give less by more than the interval, there is no limit."""
    losses = Losses(member=rng.normal(0, 1, 20_000), nonmember=rng.normal(1, 1, 20_000))
    estimate = parametric(fit_gaussian_pair(losses, rng=rng), delta=1e-5)
    assert not estimate.details["fit"]["rejected"]
    assert (estimate.lower, estimate.confidence) == (None, None)
    assert "logistic" in estimate.details["lower_reason"]
