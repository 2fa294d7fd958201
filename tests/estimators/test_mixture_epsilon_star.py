"""``epsilon_star.mixture``: its standard error, its lower bound, and what the row says."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from auditor.core import Census, Losses, Mixture
from auditor.curves import MixtureOfGaussians, fit_gaussian_pair, fit_mixture, fit_mixture_pair
from auditor.estimators import QuantileVariance, parametric, supremum

MEMBERS = MixtureOfGaussians((0.3, 0.7), (0.0, 3.0), (1.0, 1.0))
OTHERS = MixtureOfGaussians((0.2, 0.8), (0.5, 4.0), (1.0, 1.2))


@pytest.fixture(scope="module")
def pair():
    """Mixtures fitted to 4000 records of each of two mixtures."""
    rng = np.random.default_rng(11)
    losses = Losses(member=MEMBERS.sample(4000, rng), nonmember=OTHERS.sample(4000, rng))
    return fit_mixture_pair(losses, choice=Mixture(3), rng=rng, transform="none")


@pytest.mark.parametrize(("z", "upper"), [(-3.0, False), (0.4, False), (2.5, True)])
def test_one_component_is_the_normals_error(z, upper):
    """For one component n times the variance of a quantile is sd^2 (1 + z^2/2)."""
    law = MixtureOfGaussians((1.0,), (5.0,), (2.0,))
    expected = 4 * (1 + z * z / 2)
    assert QuantileVariance(law).at(5 + 2 * z, upper=upper) == pytest.approx(expected, rel=1e-6)


def test_the_error_of_a_quantile_is_what_repeated_fits_show():
    """The standard error of a mixture's quantiles, far out too, matches their spread over repeated fits."""
    rng, n = np.random.default_rng(12), 3000
    levels = np.array([1e-4, 0.1, 0.6, 0.999])
    found = np.array(
        [fit_mixture(MEMBERS.sample(n, rng), components=2, rng=rng).quantile(levels) for _ in range(120)]
    )
    variance = QuantileVariance(MEMBERS)
    claimed = [
        math.sqrt(variance.at(float(at), upper=level > 0.5) / n)
        for at, level in zip(MEMBERS.quantile(levels), levels, strict=True)
    ]
    np.testing.assert_allclose(claimed, found.std(axis=0), rtol=0.25)


def test_either_tail_gives_the_same_error():
    """The variance at a point does not depend on which tail it is computed from."""
    variance = QuantileVariance(OTHERS)
    assert variance.at(2.0, upper=True) == pytest.approx(variance.at(2.0, upper=False), rel=1e-9)


def test_equal_components_have_no_error():
    """Two components in the same place cannot be distinguished: the information is singular."""
    twice = QuantileVariance(MixtureOfGaussians((0.5, 0.5), (0.0, 0.0), (1.0, 1.0)))
    assert twice.singular
    assert math.isinf(twice.at(0.3, upper=False))


def test_the_row_says_what_was_fitted_and_where_it_is_attained(pair):
    """Components, both tests, the grid, the three values, the place and the error are all in the details, as JSON."""
    estimate = parametric(pair, delta=1e-5, extra={"more": 1})
    details = json.loads(json.dumps(estimate.details))
    assert estimate.name == "epsilon_star.mixture"
    assert details["fit"]["member"]["components"] == len(details["fit"]["member"]["weights"]) == 2
    assert details["fit"]["paper"]["member"]["ks_n"] == 1000
    assert details["fit"]["grid"]["nonmember"]["components"] == [1, 2, 3]
    assert details["clip"] == 1e-5
    assert details["supported"]["value"] < estimate.value <= details["unclipped"] + 1e-6
    assert details["at"]["on_clip"] in (True, False)
    assert details["standard_error"] > 0
    assert details["more"] == 1
    truth = supremum.mixture_supremum(MEMBERS, OTHERS, delta=1e-5, clip=1e-5).value
    assert abs(estimate.value - truth) < 4 * details["standard_error"]
    assert (estimate.lower, estimate.confidence) == (None, None)
    assert "number of components was chosen" in details["lower_reason"]


def test_a_census_has_only_the_non_members_uncertainty(pair):
    """When every member was scored the error is smaller."""
    sample, census = parametric(pair, delta=1e-5), parametric(pair, delta=1e-5, coverage=Census())
    assert census.details["standard_error"] < sample.details["standard_error"]


def test_one_component_each_has_the_normals_bound(rng):
    """Where one component is enough for both groups the row has a lower bound, about that of two normals.

    That of the normals takes the larger one of two standard errors, of a normal and of the sample's own moments.
    """
    losses = Losses(member=rng.normal(-0.5, 1, 2500), nonmember=rng.normal(0, 1, 2500))
    estimate = parametric(fit_mixture_pair(losses, choice=Mixture(1), rng=rng), delta=5e-3)
    normals = parametric(fit_gaussian_pair(losses, rng=rng), delta=5e-3)
    assert 0 < normals.lower <= estimate.lower + 1e-6
    assert estimate.lower == pytest.approx(normals.lower, abs=0.1)


@pytest.mark.parametrize(
    ("member", "at", "reason"),
    [
        (lambda rng: rng.normal(size=500), 0, "at least 2000 records"),
        (lambda _: np.full(3000, 1.0), 0, "one single loss"),
        (lambda rng: rng.normal(size=3000), 60, ""),
    ],
    ids=["few records", "one single loss", "total separation"],
)
def test_where_there_is_no_interval(rng, member, at, reason):
    """Below 2000 records, without any spread and at the ceiling there is a value without a lower bound, with its reason."""
    losses = Losses(member=member(rng), nonmember=rng.normal(at, 1, 3000))
    estimate = parametric(fit_mixture_pair(losses, choice=Mixture(2), rng=rng), delta=1e-4)
    assert estimate.value is not None
    assert estimate.lower is None
    assert reason in (estimate.details["lower_reason"] or "")
    if estimate.details["saturated"]:
        assert estimate.value == pytest.approx(math.log((1 - 2e-4) / 1e-4))
        assert estimate.details["at"] is None
    assert estimate.details["saturated"] == (at > 0)


@pytest.mark.parametrize("n", [60, 300, 2500])
@pytest.mark.parametrize("far", [1e20, 1e160, 1e300])
def test_records_far_from_all_others_are_no_nonsense(rng, n, far):
    """An extreme record in each group gives no warning, no NaN, and no finite error that is not one."""
    losses = Losses(
        member=np.r_[far, rng.normal(-1, 1, n - 1)], nonmember=np.r_[rng.normal(0, 1, n - 1), -far]
    )
    row = parametric(fit_mixture_pair(losses, choice=Mixture(3), rng=rng), delta=1e-5)
    json.dumps(row.details, allow_nan=False)
    assert math.isfinite(row.value)
    assert row.lower is None or 0 <= row.lower <= row.value


@pytest.mark.parametrize("far", [1e3, 1e14, 1e17, 1e20, 1e154, 1e160, 1e300])
def test_the_error_beside_a_component_far_away(far):
    """Records that surely belong to one component give its normal's error and that of its share, or an infinite one.

    With q where w F(z) is fixed, dq = -sd (dm/sd + z dlog sd) - F/(w f) dw, and n times the variances of the three
    are 1/w, 1/(2 w) and w (1 - w).
    """
    law = MixtureOfGaussians((0.9, 0.1), (0.0, far), (1.0, far / 100))
    variance = QuantileVariance(law)
    expected = 3 / 0.9 + (stats.norm.cdf(-2) / stats.norm.pdf(-2)) ** 2 * 0.1 / 0.9
    assert variance.at(-2.0, upper=False) in (math.inf, pytest.approx(expected, rel=1e-6))
    assert far > 1e20 or variance.at(-2.0, upper=False) < math.inf
    for point in (30.0, 1e3, far / 2, far, 2 * far, -far):
        for upper in (False, True):
            assert variance.at(point, upper=upper) >= 0
