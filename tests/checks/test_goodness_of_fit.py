"""What the check on the fit says when a mixture was asked for."""

import numpy as np
import pytest

from auditor import checks
from auditor.core import Losses, Mixture, Status
from auditor.curves import fit_gaussian_pair, fit_mixture_pair


def two_humps(rng, n):
    """A clear mixture of two normals."""
    return np.where(rng.random(n) < 0.5, rng.normal(-4, 1, n), rng.normal(4, 1, n))


def checked(losses, rng):
    """The check on both fits of these losses."""
    mixture = fit_mixture_pair(losses, choice=Mixture(3), rng=rng)
    return checks.goodness_of_fit(fit_gaussian_pair(losses, rng=rng), mixture)


def test_a_mixture_that_survives_is_said_beside_the_warning(rng):
    """Normals are rejected and mixtures not: the warning stays, and the mixture's components are said."""
    found = checked(Losses(member=two_humps(rng, 3000), nonmember=rng.normal(size=3000)), rng)
    assert found.status is Status.WARN
    assert "The member losses do not look normal" in found.message
    assert "not rejected (components: 2 for the members and 1 for the non-members)" in found.message
    assert found.details["rejected"]
    assert not found.details["mixture"]["rejected"]
    assert found.details["mixture"]["components"] == {"member": 2, "nonmember": 1}


def test_a_mixture_that_is_rejected_too_warns(rng):
    """Where mixtures do not fit either, the check warns, names the group and points to the certified bound."""
    found = checked(Losses(member=rng.integers(0, 5, 3000) + 0.0, nonmember=rng.normal(size=3000)), rng)
    assert found.status is Status.WARN
    assert "The member losses do not look like a mixture of normals either" in found.message
    assert "rely on the certified bound" in found.message


def test_normals_that_fit_are_said_beside_the_mixture(rng):
    """Where both survive, both are said."""
    found = checked(Losses(member=rng.normal(size=2000), nonmember=rng.normal(1, 1, 2000)), rng)
    assert found.status is Status.OK
    assert "A normal is not rejected for either group" in found.message
    assert "Mixtures of normals are not rejected" in found.message


@pytest.mark.parametrize("member", [np.full(100, 2.0), np.arange(12.0)])
def test_too_little_to_tell_stays_unknown(rng, member):
    """One single loss, or a dozen, is as unknown with a mixture as without."""
    found = checked(Losses(member=member, nonmember=rng.normal(size=500)), rng)
    assert found.status is Status.UNKNOWN
    assert found.details["mixture"]["components"]["member"] >= 1
