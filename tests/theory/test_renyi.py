"""Renyi divergences of DP-SGD against closed forms, mpmath and another library, and the bounds that follow."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    rdp,
)
from oracles import fixed_size_delta
from scipy.integrate import quad
from theory.references import EXACT

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.theory import (
    epsilon,
    pinsker_renyi,
    renyi_divergence,
    renyi_epsilon,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
FIXED = FixedSizeSampling()


# --- Oracles -----------------------------------------------------------------------------------------


def binomial_divergence(noise, rate, order):
    """One step's divergence at a whole order, added record: the binomial sum (Mironov, Talwar and Zhang 2019)."""
    with mpmath.workdps(60):
        p, s = mpmath.mpf(rate), mpmath.mpf(noise)
        terms = [
            mpmath.binomial(order, k) * (1 - p) ** (order - k) * p**k * mpmath.exp((k * k - k) / (2 * s**2))
            for k in range(order + 1)
        ]
        return float(mpmath.log(mpmath.fsum(terms)) / (order - 1))


def integrated_divergence(noise, rate, order, mean):
    """One step's divergence by mpmath's quadrature, of the record-in law from the law with ``mean`` in its place."""
    with mpmath.workdps(40):
        p, s, a = mpmath.mpf(rate), mpmath.mpf(noise), mpmath.mpf(order)

        def law(x, at):
            return (1 - p) * mpmath.npdf(x, 0, s) + p * mpmath.npdf(x, at, s)

        ends = [-12 * s - 2, *mpmath.linspace(-3 * s - 1, order + 3 * s + 1, 40), 2 * order + 12 * s + 2]
        total = mpmath.quad(lambda x: law(x, 1) ** a * law(x, mean) ** (1 - a), ends)
        return float(mpmath.log(total) / (a - 1))


def fixed_size_divergence(noise, rate, order):
    """One step's divergence from its hockey-stick divergences H_a: f(t) = t^order, summed by its second derivative."""

    def slope(value):
        # a^(order-2) H_a + a^-3 a^(2-order) H_a, over da = a d log a; both orders are alike.
        weight = math.exp((order - 1) * value) + math.exp(-order * value)
        return weight * fixed_size_delta(noise, rate, value)

    total = quad(slope, 0, 40, limit=500, points=[0.01, 0.1, 1, 5])[0]
    return math.log1p(order * (order - 1) * total) / (order - 1)


# --- Divergences -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("noise", [0.01, 0.05, 0.3, 1.0, 10.0, 1000.0])
def test_whole_orders_equal_the_binomial_sum(noise, rate):
    """At whole orders, small and large, the quadrature equals the exact sum to ten digits."""
    orders = [2, 3, 8, 64, 512]
    found = renyi_divergence(DPSGD(noise, rate, 1), order=orders)
    assert found == pytest.approx([binomial_divergence(noise, rate, order) for order in orders], rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "rate", "order"),
    [
        (1.0, 0.3, 1.5),
        pytest.param(0.5, 0.01, 2.7, marks=pytest.mark.long),
        pytest.param(2.0, 0.9, 6.3, marks=pytest.mark.long),
        (0.7, 0.5, 1.01),
    ],
)
def test_fractional_orders_equal_mpmath(noise, rate, order):
    """At fractional orders, for both adjacencies, the quadrature equals that of mpmath."""
    training = DPSGD(noise, rate, 1)
    for adjacency, mean in ((ADD_REMOVE, 0), (REPLACE_ONE, -1)):
        expected = integrated_divergence(noise, rate, order, mean)
        assert renyi_divergence(training, order=order, adjacency=adjacency) == pytest.approx(
            expected, rel=1e-9
        )


@pytest.mark.parametrize("order", [1.5, 2.0, 5.0])
@pytest.mark.parametrize(("noise", "rate"), [(2.0, 0.1), (4.0, 0.01), (1.5, 0.9)])
def test_fixed_size_equals_the_integral_of_its_profile(noise, rate, order):
    """For batches of a fixed size, the divergence is that of the closed-form profile of (epsilon, delta)."""
    training = DPSGD(noise, rate, 1, sampling=FIXED)
    found = renyi_divergence(training, order=order, adjacency=REPLACE_ONE)
    assert found == pytest.approx(fixed_size_divergence(noise, rate, order), rel=1e-6)


@pytest.mark.parametrize("sampling", [DPSGD(1, 1, 1).sampling, FIXED])
def test_without_sampling_the_closed_form_holds(sampling):
    """At rate 1 the divergence is order T d^2 / (2 s^2), d = 1 or 2, by either way to draw batches."""
    training = DPSGD(3.0, 1.0, 7, sampling=sampling)
    assert renyi_divergence(training, order=2.5, adjacency=REPLACE_ONE) == pytest.approx(2.5 * 7 * 4 / 18)
    near = DPSGD(3.0, 1 - 1e-12, 7, sampling=sampling)
    assert renyi_divergence(near, order=2.5, adjacency=REPLACE_ONE) == pytest.approx(
        2.5 * 7 * 4 / 18, rel=1e-9
    )


def test_divergences_add_up_over_steps():
    """A vector's divergence is the sum of its steps', and an array of orders keeps its shape."""
    training = DPSGD([1.0, 2.0, 1.0], [0.1, 0.2, 0.1])
    orders = np.array([[1.5, 2.0], [3.0, 4.0]])
    parts = [renyi_divergence(DPSGD(s, p, 1), order=orders) for s, p in ((1.0, 0.1), (2.0, 0.2), (1.0, 0.1))]
    assert renyi_divergence(training, order=orders) == pytest.approx(sum(parts), rel=1e-12)
    assert isinstance(renyi_divergence(training, order=2), float)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    "training",
    [
        DPSGD(0.05, 1.0, 10**7),
        DPSGD(1e-3, 0.5, 10),
        DPSGD(1e6, 0.5, 10),
        DPSGD(1.0, 1e-9, 1),
        DPSGD(1e-200, 0.1, 3),
        DPSGD(1e200, 0.5, 10),
    ],
)
def test_extremes_are_numbers(training, adjacency):
    """Extreme settings give a number or infinity, growing with the order, never NaN."""
    found = renyi_divergence(training, order=[1.001, 2.0, 1e4], adjacency=adjacency)
    assert not np.isnan(found).any()
    assert (found[1:] >= found[:-1]).all()
    assert 0 <= pinsker_renyi(training, adjacency=adjacency).value <= 1
    assert renyi_epsilon(training, delta=1e-5, adjacency=adjacency).value >= 0


def test_added_records_with_a_fixed_size_have_none():
    """Batches of a fixed size have no add/remove divergence: refused as a number, null as a claim, with the reason."""
    training = DPSGD(1.0, 0.1, 1, sampling=FIXED)
    with pytest.raises(InputError, match="replaced records only"):
        renyi_divergence(training, order=2.0)
    for claim in (renyi_epsilon(training, delta=1e-5), pinsker_renyi(training)):
        assert claim.value is None
        assert "replaced records only" in claim.note


# --- Epsilon -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.01, 1000), (0.8, 0.01, 100), (2.0, 0.5, 20)])
def test_epsilon_agrees_with_another_library(noise, rate, steps):
    """The RDP epsilon lies at or little below dp-accounting's at whole orders, and above the tighter accountant's."""
    training = DPSGD(noise, rate, steps)
    accountant = rdp.RdpAccountant(orders=range(2, 200))
    accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), steps))
    value = renyi_epsilon(training, delta=1e-5).value
    assert 0.9 * accountant.get_epsilon(1e-5) < value <= accountant.get_epsilon(1e-5) * (1 + 1e-6)
    assert value > epsilon(training, delta=1e-5).value


def test_many_different_steps_are_as_good_as_one_by_one():
    """A hundred different steps, merged only to find the order, are at most another library's whole orders."""
    noise, rate = np.linspace(0.6, 2.0, 100), np.geomspace(1e-3, 2e-2, 100)
    accountant = rdp.RdpAccountant(orders=range(2, 64))
    for s, p in zip(noise.tolist(), rate.tolist(), strict=True):
        accountant.compose(PoissonSampledDpEvent(p, GaussianDpEvent(s)))
    value = renyi_epsilon(DPSGD(noise, rate), delta=1e-12).value
    theirs = accountant.get_epsilon(1e-12)
    assert 0.95 * theirs < value <= theirs * 1.002


def test_epsilon_without_sampling_lies_above_the_exact_one():
    """For a plain Gaussian the RDP epsilon is above the exact 4.377178 (mu 1, delta 1e-5), by less than 10%."""
    assert 4.377178 < renyi_epsilon(DPSGD(1.0, 1.0, 1), delta=1e-5).value < 4.82


# --- Pinsker -----------------------------------------------------------------------------------------


def test_pinsker_closed_form():
    """Without sampling the divergence is T/(2 s^2) for added records, four times that for replaced ones."""
    training = DPSGD(10.0, 1.0, 5)
    assert pinsker_renyi(training).value == pytest.approx(math.sqrt(5 / 200 / 2))
    assert pinsker_renyi(training, adjacency=REPLACE_ONE).value == pytest.approx(2 * math.sqrt(5 / 200 / 2))
    assert pinsker_renyi(DPSGD(0.1, 1.0, 5)).value == 1.0


@pytest.mark.parametrize(("training", "adjacency", "exact"), EXACT)
def test_pinsker_lies_above_the_exact_total_variation(training, adjacency, exact):
    """The bound is never below the exact advantage, and within four times of it here."""
    claim = pinsker_renyi(training, adjacency=adjacency)
    assert exact <= claim.value <= 4 * exact
    assert (claim.metric, claim.proven, claim.delta) == ("advantage", True, None)


@pytest.mark.parametrize("rate", [1e-6, 0.05, 0.4])
def test_the_limit_of_renyi_is_kullback_leibler(rate):
    """As the order falls to 1, the Renyi divergence falls to the one that Pinsker's inequality uses."""
    for sampling in (DPSGD(1, 1, 1).sampling, FIXED):
        training = DPSGD(2.0, rate, 2, sampling=sampling)
        limit = 2 * pinsker_renyi(training, adjacency=REPLACE_ONE).value ** 2
        near = renyi_divergence(training, order=1 + 1e-5, adjacency=REPLACE_ONE)
        assert limit == pytest.approx(near, rel=1e-3)


def test_pinsker_takes_the_smaller_order():
    """For added records the two orders differ, and the smaller divergence, by mpmath, is the one used."""
    p, s = 0.3, 0.6
    in_law = lambda x: (1 - p) * mpmath.npdf(x, 0, s) + p * mpmath.npdf(x, 1, s)  # noqa: E731
    out_law = lambda x: mpmath.npdf(x, 0, s)  # noqa: E731
    ends = mpmath.linspace(-8, 9, 30)
    both = [
        mpmath.quad(lambda x, one=one, other=other: one(x) * mpmath.log(one(x) / other(x)), ends)
        for one, other in ((in_law, out_law), (out_law, in_law))
    ]
    assert both[0] != pytest.approx(float(both[1]), rel=0.05)
    assert pinsker_renyi(DPSGD(s, p, 1)).value == pytest.approx(float(mpmath.sqrt(min(both) / 2)), rel=1e-8)
