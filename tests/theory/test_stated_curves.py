"""Claims that carry a whole curve, for both kinds of neighbours: mu, rho and several points."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from scipy.special import ndtr, ndtri

from auditor import Adjacency, InputError, StatedClaim, StatedCurve, TradeoffCurve
from auditor.theory import (
    claimed_curve,
    claims,
    epsilon,
    epsilon_from_rho,
    gaussian_epsilon,
    group_curve,
)
from auditor.verdicts import PrivacyUnit
from tests import oracles

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
RATES = np.concatenate([np.geomspace(1e-9, 0.5, 60), 1 - np.geomspace(0.5, 1e-9, 60)])
POINTS = [(0.5, 1e-3), (2.0, 1e-6), (1.0, 1e-4)]
CURVES = [
    StatedClaim.from_mu(0.2),
    StatedClaim.from_mu(1.0),
    StatedClaim.from_mu(6.0, adjacency=REPLACE_ONE),
    StatedClaim.from_rho(0.01),
    StatedClaim.from_rho(0.5),
    StatedClaim.from_rho(8.0, adjacency=REPLACE_ONE),
    StatedClaim.from_points(POINTS),
    StatedClaim.from_points([(0.0, 0.3), (3.0, 0.0)], adjacency=REPLACE_ONE),
]


def tpr(curve, rates=RATES):
    """The curve at many false positive rates."""
    return np.array([curve.tpr_at(float(rate)) for rate in rates])


def allowed(points, rates):
    """The largest TPR that all of these (epsilon, delta) allow, from the definition, for both orders of neighbours."""
    return np.min(
        [
            np.minimum(
                np.minimum(1, d + math.exp(e) * rates), 1 - math.exp(-e) * np.maximum(0, 1 - d - rates)
            )
            for e, d in points
        ],
        axis=0,
    )


# --- Epsilon at a delta ---------------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "value"), [(0.5, 1.993091), (1.0, 4.377178), (2.0, 9.997256)])
def test_mu_at_a_delta(mu, value):
    """The published epsilon of mu-GDP at 1e-5, of twice that mu for replaced records, and the exact one at others."""
    claim = StatedClaim.from_mu(mu)
    assert epsilon(claim, delta=1e-5).value == pytest.approx(value, abs=5e-7)
    replaced = epsilon(claim, delta=1e-3, adjacency=REPLACE_ONE).value
    assert replaced == pytest.approx(oracles.gaussian_mechanism_epsilon(2 * mu, 1e-3), rel=1e-9)
    assert epsilon(claim, delta=0.0).value == math.inf


@pytest.mark.parametrize("rho", [1e-4, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_rho_at_a_delta(rho, delta):
    """The best order of Canonne, Kamath and Steinke, for replaced records at 4 rho; Bun and Steinke's lies above it."""
    claim = StatedClaim.from_rho(rho)
    found = epsilon(claim, delta=delta)
    assert found.value == pytest.approx(oracles.zcdp_epsilon(rho, delta), rel=1e-6, abs=1e-9)
    assert found.value <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert epsilon(claim, delta=delta, adjacency=REPLACE_ONE).value == epsilon_from_rho(4 * rho, delta=delta)
    assert found.value >= gaussian_epsilon(math.sqrt(2 * rho), delta=delta)  # N(mu, 1) is mu^2/2-zCDP


@pytest.mark.skipif(not hasattr(dp_accounting, "ZCDpEvent"), reason="dp-accounting 0.4 has no such event")
def test_rho_beside_dp_accounting():
    """No larger than what dp_accounting finds among its fixed orders, and close to it."""
    for rho in (0.01, 0.5, 4.0):
        theirs = RdpAccountant().compose(dp_accounting.ZCDpEvent(rho)).get_epsilon(1e-6)
        assert theirs - 0.02 * theirs <= epsilon_from_rho(rho, delta=1e-6) <= theirs + 1e-9


def test_epsilon_where_it_is_0_or_infinite():
    """At delta 0 rho implies no epsilon; from the bound on the total variation on, epsilon is 0."""
    assert epsilon_from_rho(0.5, delta=0.0) == math.inf
    assert epsilon_from_rho(0.02, delta=0.1) == 0.0  # Pinsker
    assert epsilon_from_rho(3.0, delta=math.sqrt(-math.expm1(-3.0)) + 1e-9) == 0.0  # Bretagnolle and Huber
    assert epsilon_from_rho(0.02, delta=0.0999) > 0
    for rho in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match="rho must"):
            epsilon_from_rho(rho, delta=1e-5)


def test_points_at_a_delta():
    """At a stated delta the stated epsilon, between two what both allow together, below all of them none."""
    claim = StatedClaim.from_points(POINTS)
    assert [epsilon(claim, delta=delta).value for _, delta in POINTS] == [value for value, _ in POINTS]
    rates = np.geomspace(1e-9, 0.5, 400_001)
    for delta in (1e-5, 5e-4, 0.01):
        gap = allowed(POINTS, rates) - delta
        brute = math.log(max(1.0, float((gap / rates).max())))
        assert epsilon(claim, delta=delta).value == pytest.approx(brute, abs=1e-4)
    below = epsilon(claim, delta=1e-7)
    assert below.value is None
    assert "imply no epsilon at delta 1e-7" in below.note


@pytest.mark.parametrize("claim", CURVES, ids=StatedCurve.in_words)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_curve_holds_its_epsilon(claim, adjacency):
    """The curve of a claim reaches (delta, epsilon) as theory.epsilon states it, and lies hardly above it."""
    if (claim.adjacency, adjacency) == (REPLACE_ONE, ADD_REMOVE):
        assert claimed_curve(claim, adjacency=adjacency).curve is None
        found = epsilon(claim, delta=0.1, adjacency=adjacency)
        assert found.value is None
        assert "implies nothing about adding" in found.note
        return
    curve = claimed_curve(claim, adjacency=adjacency).curve
    mirrored = 1 - tpr(curve)
    inside = mirrored > 1e-5  # where the distance from 1 has its digits
    assert tpr(curve, mirrored[inside]) == pytest.approx(
        1 - RATES[inside], abs=1e-9
    )  # both orders of two neighbours
    for delta in (1e-5, 1e-3, 0.05):
        value = epsilon(claim, delta=delta, adjacency=adjacency).value
        if value is not None and value > 0:
            found = curve.delta_at(value)
            assert found <= delta * 1.02
            if claim.rho is None:  # whose curve has Pinsker's bound too
                assert found >= delta * (1 - 1e-6)


# --- Curves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_curves_of_mu_and_rho_are_not_below_the_gaussian(mu):
    """That of mu is the Gaussian's to 2e-3, replaced records at 2 mu; that of rho = mu^2/2 lies above both."""
    for adjacency, apart in ((ADD_REMOVE, mu), (REPLACE_ONE, 2 * mu)):
        exact = ndtr(ndtri(RATES) + apart)
        own, rho = (
            tpr(claimed_curve(claim, adjacency=adjacency).curve)
            for claim in (StatedClaim.from_mu(mu), StatedClaim.from_rho(mu**2 / 2))
        )
        assert np.all(own >= exact - 1e-12)
        assert np.all(own <= exact + 2e-3)
        assert np.all(rho >= exact - 1e-12)


@pytest.mark.parametrize("records", [1, 2, 5, 7])
def test_records_in_turn_by_brute_force(rng, records):
    """T(... T(x)) at every rate, of random profiles with and without a jump at 0."""
    for size in (1, 2, 5, 20):
        epsilons, deltas = rng.gamma(1.0, 2.0, size), rng.random(size) ** 4 * rng.integers(0, 2, size)
        points = list(zip(epsilons, deltas, strict=True))
        curve = group_curve(TradeoffCurve.from_profile(epsilons, deltas=deltas), records)
        reached = np.append(0.0, RATES)
        for _ in range(records):
            reached = allowed(points, reached)
        assert tpr(curve, np.append(0.0, RATES)) == pytest.approx(reached, abs=1e-12)


def test_removing_and_adding_known_mechanisms():
    """Twice randomised response of epsilon is at small rates that of 2 epsilon; nothing and everything stay as they are."""
    pure = group_curve(TradeoffCurve.from_epsilon_delta(1.0, delta=0.0), 2)
    assert pure.tpr_at(1e-3) == pytest.approx(1e-3 * math.exp(2), rel=1e-12)
    nothing = group_curve(TradeoffCurve.from_epsilon_delta(0.0, delta=0.0), 2)
    assert tpr(nothing) == pytest.approx(RATES, abs=1e-15)
    everything = group_curve(TradeoffCurve([0.0, 0.0, 1.0], [0.0, 1.0, 1.0]), 2)
    assert everything.tpr_at(0.0) == 1.0


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.01])
def test_a_stated_point_twice_is_never_above_its_conversion(value, delta):
    """The curve of (epsilon, delta) for replaced records lies below that of (2 epsilon, (1 + e^epsilon) delta), by more than rounding."""
    curve = claimed_curve(StatedClaim(value, delta), adjacency=REPLACE_ONE).curve
    converted = TradeoffCurve.from_epsilon_delta(2 * value, delta=(1 + math.exp(value)) * delta)
    assert np.all(tpr(curve) <= tpr(converted) + 1e-14)
    if value:
        corner = converted.fpr[2]
        assert curve.tpr_at(corner) < converted.tpr_at(corner) - 1e-6


# --- What an audit sets its numbers against ---------------------------------------------------------


def test_everything_that_a_curve_promises():
    """Epsilon for both kinds of neighbours at the delta requested, the Gaussian's advantage at 2 mu, Bayes security."""
    own, replaced, advantage, security = claims(StatedClaim.from_mu(1.0), delta=1e-5)
    assert (own.adjacency, replaced.adjacency, replaced.delta) == (ADD_REMOVE, REPLACE_ONE, 1e-5)
    assert replaced.value == pytest.approx(9.997256, abs=5e-7)
    assert advantage.value == pytest.approx(2 * ndtr(1.0) - 1, abs=1e-12)
    assert security.value == pytest.approx(2 - 2 * ndtr(1.0), abs=1e-12)
    assert [row.metric for row in claims(CURVES[2], delta=1e-5)] == ["epsilon", "advantage", "bayes_security"]
    rho = claims(StatedClaim.from_rho(0.005, adjacency="replace-one"), delta=1e-5)[1]
    assert rho.value == pytest.approx(0.05, abs=1e-12)  # Pinsker: sqrt(rho/2)


# --- Values ---------------------------------------------------------------------------------------


def test_units_in_words():
    """A claim for people says so, whatever its kind; one for records says nothing."""
    assert StatedClaim(1.0, 0.0, unit="person").in_words() == "epsilon 1 at delta 0, add-remove, per person"
    curve = StatedClaim.from_points([(1.0, 0.1)], unit="person", adjacency="replace-one")
    assert curve.in_words() == "epsilon 1 at delta 0.1, replace-one, per person"
    assert curve.unit is PrivacyUnit.PERSON
    many = StatedClaim.from_points([(float(place), 0.1**place) for place in range(1, 8)])
    assert many.in_words() == "7 points from epsilon 1 at delta 0.1 to epsilon 7 at delta 1e-7, add-remove"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: StatedClaim.from_mu(0.0), "claimed mu must be above 0, got 0"),
        (lambda: StatedClaim.from_rho(math.inf), "claimed rho must be finite"),
        (lambda: StatedClaim.from_points([]), "one of mu, rho and points, got none"),
        (lambda: StatedClaim.from_points([1.0, 2.0]), "must be pairs"),
        (lambda: StatedClaim.from_points([(1.0, 0.1), (2.0, 1.0)]), "claimed delta of point 2 must lie in"),
        (lambda: StatedCurve(mu=1.0, points=[(1.0, 0.1)]), "got mu and points"),
        (lambda: StatedClaim.from_mu(1.0, unit="user"), "unit must be one of 'record', 'person', got 'user'"),
        (lambda: StatedClaim.from_mu(1.0, adjacency="swap"), "adjacency must be"),
    ],
)
def test_bad_claims(make, sentence):
    """One sentence with the argument, the rule and the value."""
    with pytest.raises(InputError, match=sentence):
        make()
