"""Numbers that dp_accounting publishes in its own tests, and two libraries that build on it; each test names file and test.

Values are copied as published and compared within the tolerance of their test. Where ours differ by design, the test states
both and proves ours.
"""

import math

import mpmath
import numpy as np
import pytest
from oracles import randomised_response_delta
from scipy import integrate, stats

from auditor import DPSGD, TradeoffCurve, theory
from auditor.core import Adjacency
from auditor.theory import composed, optimal, renyi_divergence, renyi_epsilon

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def responses(*epsilons):
    """The curve of independent randomised responses, one after another."""
    truthful, other = np.ones(1), np.ones(1)
    for truth in (1 / (1 + math.exp(-value)) for value in epsilons):
        truthful = np.concatenate([truthful * truth, truthful * (1 - truth)])
        other = np.concatenate([other * (1 - truth), other * truth])
    order = np.argsort(other / truthful)
    return TradeoffCurve(*(np.append(0, np.append(np.cumsum(p[order])[:-1], 1)) for p in (other, truthful)))


# --- dp_accounting (google/differential-privacy, python/dp_accounting/dp_accounting) ------------------


@pytest.mark.parametrize(
    ("order", "published"),
    [(2.5, 1.08548710e-03), (5, 2.18075656e-03), (50, 2.38460375e-02), (100, 1.67416308e02)],
)
def test_divergences(order, published):
    """rdp/rdp_privacy_accountant_test.py, test_compute_rdp_poisson_sampled_gaussian, to its 1e-4."""
    assert renyi_divergence(DPSGD(2.5, 0.01, 50), order=order) == pytest.approx(published, rel=1e-4)


def test_the_divergence_of_order_1_5_is_3_percent_smaller():
    """Same test: at order 1.5 its series has 6.70579741e-04; quadrature in mpmath has ours, 6.5007e-04."""

    def integrand(z):
        ratio = 0.99 + mpmath.mpf("0.01") * mpmath.exp((2 * z - 1) / mpmath.mpf("12.5"))
        return mpmath.npdf(z, 0, 2.5) * ratio**1.5

    by_quadrature = float(50 * mpmath.log(mpmath.quad(integrand, [-40, -10, 0, 10, 40])) / 0.5)
    ours = renyi_divergence(DPSGD(2.5, 0.01, 50), order=1.5)
    assert ours == pytest.approx(by_quadrature, rel=1e-9)
    assert ours == pytest.approx(6.5007e-04, rel=1e-5)
    assert 6.70579741e-04 / ours == pytest.approx(1.0316, abs=1e-4)


def test_a_gaussian_by_its_divergences():
    """rdp/rdp_privacy_accountant_test.py, test_compute_epsilon_delta_gaussian: noise 4.530877117 has (1, 1e-6), to 7 places."""
    assert renyi_epsilon(DPSGD(4.530877117, 1.0, 1), delta=1e-6).value == pytest.approx(1, abs=5e-8)


# Noise over sensitivity, sampling rate, epsilons and their deltas.
ONE_STEP = {
    "ADD": [
        (1, 1.0, [-2, -1, 0, 1, 2], [0.86749642, 0.67881797, 0.38292492, 0.12693674, 0.020923636]),
        (1 / 3, 1.0, [1], [0.78760074]),
        (1, 0.8, [1], [0.0231362104090899]),
        (1 / 3, 0.7, [1], [0.1195051215523554]),
        (1 / 3, 0.4, [1], [0.0]),
        (1, 0.3, [2], [0.0]),
        (1, 0.2, [2], [0.0]),
        (
            1,
            0.2,
            [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3],
            [0.27768558, 0.21052945, 0.14204776, 0.076584985, 0.02337934, 0.00020196, 0.0],
        ),
    ],
    "REMOVE": [
        (1, 1.0, [-2, -1, 0, 1, 2], [0.86749642, 0.67881797, 0.38292492, 0.12693674, 0.020923636]),
        (1 / 3, 1.0, [1], [0.78760074]),
        (1, 0.8, [1], [0.0816951786585355]),
        (1 / 3, 0.7, [1], [0.5356298793262404]),
        (1 / 3, 0.4, [1], [0.2888308005139968]),
        (1, 0.3, [2], [0.0003341102928869332]),
        (1, 0.2, [-0.25], [0.2211992169285951]),
        (
            1,
            0.2,
            [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5, 1.0],
            [
                0.25918178,
                0.1814346,
                0.11631708,
                0.076584985,
                0.051816131,
                0.035738492,
                0.012494629,
                0.00229682,
            ],
        ),
    ],
    "REPLACE": [
        (1, 1.0, [-2, -1, 0, 1, 2], [0.90958223, 0.81968818, 0.68268949, 0.50986166, 0.331897999]),
        (2, 0.8, [1], [0.05808665654484252]),
        (1.5, 0.8, [1], [0.13711260900644096]),
        (2 / 3, 0.7, [1], [0.4013057526509164]),
        (0.5, 0.4, [1], [0.20752885274183325]),
        (2, 0.3, [2], [2.4770380148941894e-09]),
        (2, 0.2, [-0.25], [0.22989794629827498]),
        (
            1,
            0.2,
            [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5, 1.0],
            [
                0.29584154,
                0.23846474,
                0.1841451,
                0.1365379,
                0.098340892,
                0.069858734,
                0.0250311655,
                0.004734828,
            ],
        ),
    ],
}


@pytest.mark.parametrize(("order", "vectors"), ONE_STEP.items())
def test_deltas_of_one_step(order, vectors):
    """pld/privacy_loss_mechanism_test.py, test_gaussian_get_delta_for_epsilon and its vectorized one, to 7 places."""
    for noise, rate, epsilons, published in vectors:
        law = composed(DPSGD(noise, rate, 1), adjacency=REPLACE_ONE if order == "REPLACE" else ADD_REMOVE)
        a = np.exp(epsilons)
        # sup Q - a P is 1 - a + a sup(P - Q/a).
        ours = 1 - a + a * law.hockey_stick(1 / a) if order == "ADD" else law.hockey_stick(a)
        assert ours == pytest.approx(published, abs=5e-8)


@pytest.mark.parametrize(
    ("noise", "rate", "adjacency", "value", "delta"),
    [
        (1, 1.0, ADD_REMOVE, 1.0, 0.12693674),
        (1 / 3, 1.0, ADD_REMOVE, 1.0, 0.78760074),
        (1, 1.0, ADD_REMOVE, 2.0, 0.02092364),
        (0.344, 1.0, ADD_REMOVE, 16.0, 1.016e-05),
        (1, 0.1, ADD_REMOVE, 2.0, 2.355e-06),
        (1, 0.75, ADD_REMOVE, 2.0, 0.00877201),
        (0.3, 0.3, ADD_REMOVE, 16.0, 3.294e-05),
        (0.2, 0.2, ADD_REMOVE, 16.0, 0.02302382),
        (2, 1.0, REPLACE_ONE, 1.0, 0.12693674),
        (2 / 3, 1.0, REPLACE_ONE, 1.0, 0.78760074),
        (2, 1.0, REPLACE_ONE, 2.0, 0.02092364),
        (0.688, 1.0, REPLACE_ONE, 16.0, 1.016e-05),
        (1, 0.75, REPLACE_ONE, 2.0, 0.09233932),
        (0.3, 0.3, REPLACE_ONE, 16.0, 4.960e-05),
        (1, 0.1, REPLACE_ONE, 2.0, 3.828e-06),
        (0.2, 0.2, REPLACE_ONE, 16.0, 0.02477823),
    ],
)
def test_noise_of_one_step(noise, rate, adjacency, value, delta):
    """pld/privacy_loss_mechanism_test.py, test_gaussian_from_privacy_parameters: the noise is that, to its 3 places."""
    more, less = (composed(DPSGD(noise + off, rate, 1), adjacency=adjacency) for off in (5e-4, -5e-4))
    assert more.delta_at(value) < delta < less.delta_at(value)


@pytest.mark.parametrize(("noise", "rate", "delta"), [(1.0, 0.8, 0.02313621), (0.75, 0.7, 0.01080649)])
def test_noise_for_added_records_alone_is_too_little(noise, rate, delta):
    """Same test: its noise for ADD has three times the delta for REMOVE, by quadrature; ours keeps the promise in both orders."""
    grid = np.linspace(-12, 12, 200_001)
    mixed = (1 - rate) * stats.norm.pdf(grid, 0, noise) + rate * stats.norm.pdf(grid, 1, noise)
    without = stats.norm.pdf(grid, 0, noise)
    added, removed = (
        integrate.trapezoid(np.maximum(one - math.e * other, 0), grid)
        for one, other in ((without, mixed), (mixed, without))
    )
    assert added == pytest.approx(delta, abs=5e-8)
    assert removed > 3 * delta
    wanted = theory.WantedEpsilon(1.0, delta=delta, adjacency=ADD_REMOVE)
    assert theory.noise_multiplier_for(wanted, sampling_rate=rate, steps=1).value > 1.3 * noise


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (1 / 3, 1.0, 1, 0.78760074),
        (10 / 6, 1.0, 25, 0.78760074),
        (0.67379294682, 0.01, 1, 1e-5),
        (3.20956502598 / 6, 0.001, 25, 1e-5),
    ],
)
def test_smallest_noise(noise, rate, steps, delta):
    """pld/accountant_test.py, test_get_smallest_gaussian_noise and ..._subsampled_gaussian_noise: it has the delta at epsilon 1."""
    law = composed(DPSGD(noise, rate, steps), adjacency=ADD_REMOVE)
    assert law.delta_at(1.0) == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize(
    ("each", "delta", "steps", "total_delta", "published", "ours"),
    [
        (1, 0.001, 30, 0.06, 22, 21.7096),
        (1, 0.001, 30, 0.1, 20, 19.8174),
        (0.25, 0.0, 50, 0.01, 5, 4.9415),
    ],
)
def test_optimal_composition_between_its_multiples(each, delta, steps, total_delta, published, ours):
    """pld/accountant_test.py, test_advanced_composition: its totals are multiples of 2 epsilon; ours has the delta exactly."""
    found = optimal(each, delta=delta, steps=steps, total_delta=total_delta)
    assert found == pytest.approx(ours, abs=1e-4)
    reached = [
        1 - (1 - delta) ** steps * (1 - randomised_response_delta(each, steps=steps, total=total))
        for total in (found, published, published - 2 * each)
    ]
    assert reached[0] == pytest.approx(total_delta, rel=1e-9)
    assert reached[1] < total_delta < reached[2]


@pytest.mark.parametrize(
    ("delta", "steps", "total_delta", "published"),
    [(0, 30, 0, 30), (0.2, 1, 0.1, math.inf), (0.01, 30, 0.26, math.inf)],
)
def test_composition_at_the_ends(delta, steps, total_delta, published):
    """pld/accountant_test.py, test_advanced_composition: no slack, and a delta too small (theirs None, ours infinity)."""
    found = optimal(1, delta=delta, steps=steps, total_delta=total_delta)
    assert found == published


def test_three_gaussian_steps():
    """pld/pld_privacy_accountant_test.py, test_gaussian_basic: delta, epsilon, TPR and mu of mu = 1, to its 1e-3."""
    run = DPSGD(math.sqrt(3), 1.0, 3)
    law = composed(run, adjacency=ADD_REMOVE)
    assert law.delta_at(1.0) == pytest.approx(0.126936, abs=1e-3)
    assert law.epsilon_at(0.126936) == pytest.approx(1, abs=1e-3)
    assert law.tpr_at(0.1) == pytest.approx(0.38914, abs=1e-3)
    assert theory.mu_claim(run).value == pytest.approx(1, abs=1e-3)


def test_three_sampled_steps():
    """pld/pld_privacy_accountant_test.py, test_poisson_subsampled_gaussian: delta .15594 at epsilon 1, to its 1e-3."""
    law = composed(DPSGD(0.5, 0.2, 3), adjacency=ADD_REMOVE)
    assert law.delta_at(1.0) == pytest.approx(0.15594, abs=1e-3)
    assert law.epsilon_at(0.15594) == pytest.approx(1, abs=1e-3)


def test_two_randomised_responses():
    """pld/pld_privacy_accountant_test.py, test_epsilon_basic: epsilon 3, TPR .8286 and mu 2.358, to its 1e-3."""
    curve = responses(1, 2)
    assert curve.epsilon_at(0.0) == pytest.approx(3)
    assert curve.tpr_at(0.1) == pytest.approx(0.8286, abs=1e-3)
    assert curve.mu_and_regret(least_rate=0.005).mu == pytest.approx(2.358, abs=1e-3)


@pytest.mark.parametrize(("noise", "mu"), [(0.5, 1.34898), (0.9, 0.25132), (0.99, 0.025067)])
def test_mu_of_a_randomised_response(noise, mu):
    """pld/privacy_loss_distribution_test.py, test_randomized_response_mu: here to all published digits."""
    assert responses(math.log(2 / noise - 1)).mu_and_regret().mu == pytest.approx(mu, rel=5e-5)


@pytest.mark.parametrize(
    ("curve", "fpr", "tpr"),
    [
        (TradeoffCurve.from_epsilon_delta(math.log(3), delta=0.0), [0.125, 0.25], [0.375, 0.75]),
        (
            TradeoffCurve.from_epsilon_delta(math.log(3), delta=0.0),
            [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4],
            [3e-10, 3e-9, 3e-8, 3e-7, 3e-6, 3e-5, 3e-4],
        ),
        (
            TradeoffCurve([0, 0.125, 0.375, 1], [0, 0.625, 0.875, 1]),
            [0.0625, 0.125, 0.375, 0.75],
            [0.3125, 0.625, 0.875, 0.95],
        ),
    ],
)
def test_tpr_of_a_randomised_response(curve, fpr, tpr):
    """pld/privacy_loss_distribution_test.py, test_randomized_response_tpr and ..._at_extreme_fprs, of 2 and 4 answers."""
    assert [curve.tpr_at(rate) for rate in fpr] == pytest.approx(tpr, rel=1e-9)


def test_tpr_of_a_gaussian_at_extreme_fpr():
    """pld/privacy_loss_distribution_test.py, test_gaussian_tpr_at_extreme_fpr, to its 1e-3 of the value."""
    published = [0.01830, 0.003274, 0.0005475, 8.7218e-5, 1.3385e-5, 1.99405e-6, 2.8993e-7, 4.1303e-8]
    law = composed(DPSGD(1.0, 1.0, 1), adjacency=ADD_REMOVE)
    assert law.tpr_at(np.logspace(-3, -10, 8)) == pytest.approx(published, rel=1e-3)


# --- gdpnum and riskcal ---


@pytest.mark.parametrize("value", [0.75, 1.0, 1.5, 2.0])
def test_mu_of_gdpnum(value):
    """interpretable-dp/gdpnum, tests/test_converter.py, test_rr_has_nonzero_regret: -2 Phi^-1(1/(e^eps + 1)), regret above .01."""
    mu, regret = responses(value).mu_and_regret()
    assert mu == pytest.approx(-2 * stats.norm.ppf(1 / (math.exp(value) + 1)))
    assert regret > 0.01


def test_mu_of_a_run_of_gdpnum():
    """Same project, tests/test_dpsgd.py, test_get_mu_and_regret_for_dpsgd: mu 1.567013 and a regret of at most .01, to its .01."""
    found = theory.claimed_curve(DPSGD(9.4, 2**14 / 50_000, 2000)).curve.mu_and_regret(least_rate=1e-10)
    assert found.mu == pytest.approx(1.567013, abs=1e-2)
    assert found.regret <= 1e-2


@pytest.mark.parametrize("beta", [0.25, 0.5, 0.75])
def test_noise_of_riskcal(beta):
    """bogdan-kulynych/riskcal, tests/test_blackbox.py, ..._worse_than_exact: noise 1/(Phi^-1(.9) - Phi^-1(beta)) for FNR beta."""
    wanted = theory.WantedTPR(1 - beta, at_fpr=0.1, adjacency=ADD_REMOVE)
    found = theory.noise_multiplier_for(wanted, sampling_rate=1.0, steps=1).value
    assert found == pytest.approx(1 / (stats.norm.ppf(0.9) - stats.norm.ppf(beta)), rel=2e-5)
