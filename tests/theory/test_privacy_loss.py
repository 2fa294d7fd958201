"""The exact law of the privacy loss: against quadrature, other libraries, closed forms and references."""

import math
import warnings

import numpy as np
import pytest
from oracles import composed_delta, fixed_size_delta
from scipy import integrate, stats

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.theory import claimed_curve, composed
from auditor.theory.privacy_loss import Unresolved

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
BOTH = [ADD_REMOVE, REPLACE_ONE]


def mixture(x, *, rate, noise, shift):
    """Density of (1 - rate) N(0, noise^2) + rate N(shift, noise^2)."""
    return (1 - rate) * stats.norm.pdf(x, 0, noise) + rate * stats.norm.pdf(x, shift, noise)


def pair(x, *, rate, noise, adjacency):
    """The two densities of one step."""
    first = mixture(x, rate=rate, noise=noise, shift=1.0)
    shift, share = (-1.0, rate) if adjacency is REPLACE_ONE else (0.0, 0.0)
    return first, mixture(x, rate=share, noise=noise, shift=shift)


def on_a_grid(noise, rate, steps, adjacency, epsilons):
    """Brute force: deltas by a convolution of the loss on a fine grid."""
    low = -1.0 if adjacency is REPLACE_ONE else 0.0
    return [composed_delta((noise, rate, low, 1.0, steps), epsilon=epsilon) for epsilon in epsilons]


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 0.1, 5), (0.8, 0.3, 4), (2.0, 0.5, 7), (0.6, 0.05, 20)]
)
def test_against_a_fine_histogram(noise, rate, steps, adjacency):
    """Deltas agree with a brute-force convolution of the loss on a fine grid, to its accuracy."""
    epsilons = [-0.5, 0.0, 0.3, 1.0, 2.0]
    law = composed(DPSGD(noise, rate, steps), adjacency=adjacency)
    expected = on_a_grid(noise, rate, steps, adjacency, epsilons)
    assert law.hockey_stick(np.exp(epsilons)) == pytest.approx(expected, abs=2e-7)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (0.5, 0.5), (0.3, 0.01), (3.0, 0.9)])
def test_one_step_against_quadrature(noise, rate, adjacency):
    """The closed forms of one step agree with the integral of the positive part, on both sides of 0."""
    law = composed(DPSGD(noise, rate, 1), adjacency=adjacency)

    def excess(x, a):
        first, second = pair(x, rate=rate, noise=noise, adjacency=adjacency)
        return np.maximum(first - a * second, 0)

    x = np.linspace(-15 * noise - 1, 15 * noise + 1, 400_001)
    for a in (0.3, 0.95, 1.0, 1.05, 2.0, 5.0):
        expected = integrate.trapezoid(excess(x, a), x)
        assert float(law.hockey_stick(a)) == pytest.approx(expected, abs=1e-8)
    assert law.total_variation() == pytest.approx(float(law.hockey_stick(1.0)), rel=1e-12)


@pytest.mark.parametrize("adjacency", BOTH)
def test_without_sampling_it_is_gaussian(adjacency):
    """At rate 1 the law is that of two normals; errata: delta(mu = 1, eps = 1) = .12693674."""
    distance = 2 if adjacency is REPLACE_ONE else 1
    law = composed(DPSGD(3.0 * distance, 1.0, 9), adjacency=adjacency)
    assert float(law.delta_at(1.0)) == pytest.approx(0.12693674, abs=5e-9)
    assert law.total_variation() == pytest.approx(2 * stats.norm.cdf(0.5) - 1, rel=1e-14)
    rates = np.array([1e-6, 0.01, 0.5, 0.99])
    assert law.tpr_at(rates) == pytest.approx(stats.norm.cdf(stats.norm.ppf(rates) + 1), rel=1e-4)


# dp-accounting 0.6.0, public compose at a spacing of 1e-4 and 5e-4: its epsilons at delta 1e-4 and 1e-6.
@pytest.mark.parametrize(
    ("noise", "epsilons"),
    [
        (np.repeat(np.linspace(0.8, 1.6, 6), 10), (0.536871, 1.396645)),
        pytest.param(np.linspace(0.8, 1.6, 60), (0.441094, 1.157071), marks=pytest.mark.long),
    ],
)
def test_many_kinds_of_steps(noise, epsilons):
    """The delta at dp-accounting's epsilon is the one requested, of six kinds of steps and of sixty."""
    law = composed(DPSGD(noise, 0.01), adjacency=ADD_REMOVE)
    assert law.delta_at(epsilons) == pytest.approx([1e-4, 1e-6], rel=5e-4)


def test_batches_of_fixed_size_one_step():
    """One step follows delta(eps) = p delta_Gauss(log(1 + (e^eps - 1) / p)), Balle, Barthe and Gaboardi 2018."""
    law = composed(DPSGD(1.2, 0.2, 1, sampling=FixedSizeSampling()), adjacency=REPLACE_ONE)
    epsilons = np.array([0.0, 0.5, 2.0])
    assert law.delta_at(epsilons) == pytest.approx(fixed_size_delta(1.2, 0.2, epsilons), rel=1e-10)


@pytest.mark.parametrize("adjacency", BOTH)
def test_curve_and_profile_are_two_views_of_one_law(adjacency):
    """The largest TPR - FPR is the total variation, and no point of the curve is above any (epsilon, delta) line."""
    law = composed(DPSGD(1.0, 0.02, 400), adjacency=adjacency)
    fpr = np.linspace(0, 1, 401)
    tpr = law.tpr_at(fpr)
    assert np.max(tpr - fpr) == pytest.approx(law.total_variation(), abs=1e-5)
    assert np.all(np.diff(tpr) >= -1e-12)
    for epsilon in (0.0, 0.5, 1.0):
        delta = float(law.delta_at(epsilon))
        assert np.all(tpr <= np.exp(epsilon) * fpr + delta + 1e-9)
        assert np.all(1 - fpr <= np.exp(epsilon) * (1 - tpr) + delta + 1e-9)
    assert law.tpr_at(0.0) == 0.0


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    "training",
    [
        DPSGD(1.0, 1.0, 1),
        DPSGD(1.0, 0.01, 1),
        DPSGD(0.4185, 0.0183362, 67),
        DPSGD(1.0, 0.01, 10),
        DPSGD(2.0, 0.1, 400),
    ],
    ids=lambda run: run.in_words(),
)
def test_delta_falls_with_epsilon(training, adjacency):
    """Delta does not rise, and at 60 hardly anything is left: no error is multiplied by e^epsilon."""
    law = composed(training, adjacency=adjacency)
    deltas = law.delta_at(np.linspace(0.0, 60.0, 121))
    assert np.all(np.diff(deltas) <= 1e-50)
    assert deltas[-1] < 1e-20
    assert law.delta_at(0.0) == pytest.approx(law.total_variation(), abs=1e-9)


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 0.1, 1), (0.7, 0.3, 1), (1.0, 0.1, 5), (0.8, 0.3, 4)]
)
def test_the_other_order(noise, rate, steps):
    """Added or removed: the delta of "removed" against "added" agrees with brute force on the mirrored pair."""
    law = composed(DPSGD(noise, rate, steps), adjacency=ADD_REMOVE)
    epsilons = np.array([0.02, 0.05, 0.2, 0.4])
    forward = on_a_grid(noise, rate, steps, ADD_REMOVE, epsilons)
    # sup Q - e^eps P = 1 - e^eps (1 - sup (P - e^-eps Q)), harmless at small epsilons.
    mirrored = on_a_grid(noise, rate, steps, ADD_REMOVE, -epsilons)
    backward = 1 - np.exp(epsilons) * (1 - np.array(mirrored))
    assert law.delta_at(epsilons) == pytest.approx(np.maximum(forward, backward), abs=5e-7)
    assert law.between(epsilons, backward=True)[1] == pytest.approx(np.maximum(backward, 0), abs=5e-7)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("fpr", [1e-3, 1e-5])
def test_few_steps_at_small_rates(adjacency, fpr):
    """For few steps too the best test's rate is on the curve, up to the curve's own rounding up."""
    training = DPSGD(1.0, 0.01, 10)
    reached = float(composed(training, adjacency=adjacency).tpr_at(fpr))
    bound = claimed_curve(training, adjacency=adjacency).curve.tpr_at(fpr)
    assert reached * (1 - 1e-9) <= bound <= reached * 1.02


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [
        (0.05, 0.5, 10**7),
        (0.05, 1.0, 10**7),
        (1e-300, 1.0, 1),
        (1e300, 0.3, 5),
        (0.06, 0.9, 10**7),
        (1.0, 1e-12, 10**7),
        (30.0, 0.3, 10**7),
        (0.5, 1 - 1e-12, 3),
        (1e6, 1e-9, 10),
    ],
)
def test_extremes_give_a_number(noise, rate, steps, adjacency):
    """At the ends of the ranges there is a number in [0, 1] and no warning; with all noise drowned it is 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        law = composed(DPSGD(noise, rate, steps), adjacency=adjacency)
        found = law.total_variation()
        assert 0 <= found <= 1
        assert np.all((law.delta_at([0, 1, 600]) >= 0) & (law.delta_at([0, 1, 600]) <= 1))
        assert np.all(np.diff(law.tpr_at([0.0, 1e-9, 0.1, 1.0])) >= 0)
    if noise < 1 and steps > 1000:
        assert found == 1.0


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [
        (1e200, 0.5, 1),
        (1.0, 1e-300, 1),
        (1e5, 1e-17, 1),
        (0.05, 1e-20, 1),
        (0.3, 0.7, 1),
        (1e160, 1.0, 1),
        (1e300, 1.0, 5),
    ],
)
def test_tiny_numbers_keep_their_digits(noise, rate, steps, adjacency):
    """The delta at epsilon 0 is p erf(d / (2 sqrt2 s)), or the Gaussian's, however tiny: a bound never rounds to 0."""
    half = math.sqrt(steps) * (1.0 if adjacency is REPLACE_ONE else 0.5) / noise
    expected = rate * math.erf(half / math.sqrt(2))
    law = composed(DPSGD(noise, rate, steps), adjacency=adjacency)
    assert law.total_variation() == pytest.approx(expected, rel=1e-12)
    if noise < 1e100:  # beyond, noise counts as 1e100 in the rest of the law, which can only be worse
        assert float(law.delta_at(0.0)) == pytest.approx(expected, rel=1e-9)
    assert np.all(np.diff(law.delta_at([0.0, 1e-3, 1.0, 30.0])) <= 0)


def test_what_has_no_law_is_refused():
    """Almost no noise with sampling, and fixed batches for added records, are refused in a sentence."""
    with pytest.raises(Unresolved, match=r"noise multiplier of 0\.05 or more .* got 0\.04"):
        composed(DPSGD(0.04, 0.1, 10), adjacency=ADD_REMOVE)
    with pytest.raises(Unresolved, match="replaced records only"):
        composed(DPSGD(1.0, 0.1, 10, sampling=FixedSizeSampling()), adjacency=ADD_REMOVE)
    law = composed(DPSGD(1.0, 0.1, 10), adjacency=ADD_REMOVE)
    for wrong in (lambda: law.delta_at(-0.1), lambda: law.tpr_at(1.1), lambda: law.hockey_stick(0.0)):
        with pytest.raises(InputError, match="must"):
            wrong()
