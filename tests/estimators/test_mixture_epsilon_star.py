"""``epsilon_star.mixture``: its value, its lower bound, and what the row says."""

import json
import math

import numpy as np
import pytest

from auditor.core import Census, Losses, Mixture
from auditor.curves import MixtureOfGaussians, fit_gaussian_pair, fit_mixture_pair
from auditor.estimators import parametric, supremum

MEMBERS = MixtureOfGaussians((0.3, 0.7), (0.0, 3.0), (1.0, 1.0))
OTHERS = MixtureOfGaussians((0.2, 0.8), (0.5, 4.0), (1.0, 1.2))


@pytest.fixture(scope="module")
def pair():
    """Mixtures fitted to 4000 records of each of two mixtures."""
    rng = np.random.default_rng(11)
    losses = Losses(member=MEMBERS.sample(4000, rng), nonmember=OTHERS.sample(4000, rng))
    return fit_mixture_pair(losses, choice=Mixture(3), rng=rng, transform="none")


def test_the_row_says_what_was_fitted_and_where_it_is_attained(pair):
    """Components, both tests, the grid, the three values and the place are all in the details, as JSON."""
    estimate = parametric(pair, delta=1e-5, extra={"more": 1})
    details = json.loads(json.dumps(estimate.details))
    assert estimate.name == "epsilon_star.mixture"
    assert details["fit"]["member"]["components"] == len(details["fit"]["member"]["weights"]) == 2
    assert details["fit"]["paper"]["member"]["ks_n"] == 1000
    assert details["fit"]["grid"]["nonmember"]["components"] == [1, 2, 3]
    assert details["clip"] == 1e-5
    assert details["supported"]["value"] < estimate.value <= details["unclipped"] + 1e-6
    assert details["at"]["on_clip"] in (True, False)
    assert details["standard_error"] is None
    assert details["more"] == 1
    truth = supremum.mixture_supremum(MEMBERS, OTHERS, delta=1e-5, clip=1e-5).value
    assert estimate.value == pytest.approx(truth, rel=0.2)
    assert (estimate.lower, estimate.confidence) == (None, None)
    assert "number of components was chosen" in details["lower_reason"]


def test_a_census_has_only_the_non_members_uncertainty(rng):
    """When every member was scored the error is smaller."""
    losses = Losses(member=rng.normal(-0.5, 1, 500), nonmember=rng.normal(0, 1, 500))
    pair = fit_mixture_pair(losses, choice=Mixture(1), rng=rng)
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
