"""Attribute inference against the forms of the paper, reference values, mpmath and exact quadrature."""

import math

import mpmath
import numpy as np
import pytest
from oracles import composed_delta
from scipy.stats import norm

from auditor.core import DPSGD, Adjacency, FixedSizeSampling
from auditor.theory import (
    attribute_inference,
    bayes_security_closed_form,
    bayes_security_moment_matched,
    log_spread,
    steps_of,
    total_variation,
)

PUBLISHED, MATCHED, BOUND = 1, 3, 5  # places of the advantages


def advantages(training, distances):
    """The three advantages: published, moment-matched, bound."""
    return [row.value for row in attribute_inference(training, sensitivities=distances)[1:6:2]]


def mirrored_advantage(*kinds):
    """Total variation of steps that mirror the positive losses of a line, each noise, rate, first, second, how many."""
    return composed_delta(*((s, p, low, high, n) for s, p, high, low, n in kinds), mirrored=True, cells=2**19)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "distance"),
    [
        (0.7, 0.02, 100, 1.0),
        (0.6, 0.1, 30, 0.5),
        (1.0, 0.6, 5, 1.0),
        (0.5, 0.001, 500, 0.2),
        (1.0, 0.01, 1000, 1.6),
    ],
)
def test_bound_is_that_of_the_mirrored_line(noise, rate, steps, distance):
    """The bound is the composed total variation of the pair that dominates each step, by independent code."""
    expected = mirrored_advantage((noise, rate, 1.0, 1 - distance, steps))
    row = attribute_inference(DPSGD(noise, rate, steps), sensitivities=distance, fixed_in_advance=True)[5]
    assert row.value == pytest.approx(expected, abs=1e-6)
    assert row.method.startswith("total variation of dominating pairs")
    assert row.proven


def test_steps_of_several_kinds_compose():
    """Each step has its own noise, rate and distance; steps without sampling are Gaussian."""
    kinds = [(0.7, 0.05, 0.4, 40), (1.0, 0.1, 1.2, 30), (9.0, 1.0, 0.9, 5), (1.0, 0.2, 0.0, 25)]
    noise, rate, distance, count = (np.array(column) for column in zip(*kinds, strict=True))
    training = DPSGD(np.repeat(noise, count), np.repeat(rate, count), clipping_norm=0.25)
    row = attribute_inference(training, sensitivities=0.25 * np.repeat(distance, count))[5]
    expected = mirrored_advantage(*((s, p, 1.0, 1 - r, k) for s, p, r, k in kinds if r))
    assert row.value == pytest.approx(expected, abs=1e-6)


def test_many_distances_are_rounded_up(rng):
    """Ten distances are composed as they are; a thousand lie between a small and the largest one in all steps."""
    training, distances = DPSGD(0.6, 0.03, 1000), rng.uniform(0.2, 1.0, 1000)
    found = attribute_inference(training, sensitivities=distances)[5].value
    few = mirrored_advantage(*((0.6, 0.03, 1.0, 1 - r, 1) for r in distances[::100]))
    assert attribute_inference(DPSGD(0.6, 0.03, 10), sensitivities=distances[::100])[
        5
    ].value == pytest.approx(few, abs=1e-6)
    lowered, largest = (attribute_inference(training, sensitivities=r)[5].value for r in (0.3, 1.0))
    assert lowered < found < largest


def test_grows_with_the_distance_up_to_membership():
    """A larger distance is never safer; at 2 C the bound is the exact advantage of membership inference."""
    training = DPSGD(0.8, 0.03, 200)
    found = [attribute_inference(training, sensitivities=r)[5].value for r in (0.05, 0.3, 1, 1.5, 1.99, 2)]
    assert found == sorted(found)
    assert found[-1] == total_variation(training).value
    assert found[-2] == pytest.approx(found[-1], rel=1e-2)


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 0.01, 1000), (3.51, 256 / 32561, 2540), (0.7, 0.2, 5)]
)
def test_largest_distance_is_membership(noise, rate, steps):
    """At R = 2 C Corollary 10 is Corollary 7, and the moment-matched forms agree too."""
    training = DPSGD(noise, rate, steps, clipping_norm=0.3)
    rows = attribute_inference(training, sensitivities=np.full(steps, 0.6))
    assert rows[0].value == pytest.approx(bayes_security_closed_form(training).value, rel=1e-12)
    assert rows[2].value == pytest.approx(bayes_security_moment_matched(training).value, rel=1e-9)
    assert [row.metric for row in rows[6:]] == ["bayes_security"] * 3


def test_corollary_10_with_vectors_by_mpmath(rng):
    """The published form sums (p R / (s C))^2 over steps of different rate, noise, clip and distance."""
    steps = 7
    rate, noise, clip = rng.random(steps), rng.uniform(1, 5, steps), rng.uniform(0.1, 9, steps)
    distance = 2 * clip * rng.random(steps)
    rows = attribute_inference(DPSGD(noise, rate, clipping_norm=clip), sensitivities=distance)
    with mpmath.workdps(40):
        terms = [(p * r / (s * c)) ** 2 for p, r, s, c in zip(rate, distance, noise, clip, strict=True)]
        expected = mpmath.erfc(mpmath.sqrt(mpmath.fsum(terms)) / (2 * mpmath.sqrt(2)))
    assert rows[0].value == pytest.approx(float(expected), rel=1e-12)
    assert rows[1].value == pytest.approx(1 - float(expected), rel=1e-12)


def test_one_step_is_exact():
    """For one step the bound is the total variation itself, p (2 Phi(r / 2) - 1) with r = R / (s C), also of 1e-9."""
    for rate, noise, distance in ((0.3, 0.4, 1.0), (0.01, 1.0, 2.0), (1.0, 5.0, 0.1), (1e-3, 1e6, 1.0)):
        exact = rate * math.erf(distance / noise / math.sqrt(8))
        assert advantages(DPSGD(noise, rate, 1), distance)[2] == pytest.approx(exact, rel=1e-9)


def test_without_sampling_all_is_exact():
    """At rate 1 the bound and Corollary 10 are the total variation of Gaussians sqrt(sum r^2) apart."""
    distances = np.array([0.1, 0.8, 0.0, 2.0])
    exact = 2 * norm.cdf(np.linalg.norm(distances) / 3.0 / 2) - 1
    published, _, bound = advantages(DPSGD(3.0, 1.0, 4), distances)
    assert published == pytest.approx(exact, rel=1e-12)
    assert bound == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("noise", [0.6, 1.0, 3.0])
@pytest.mark.parametrize(("rate", "steps"), [(0.01, 300), (0.1, 20), (0.6, 5)])
@pytest.mark.parametrize("distance", [0.2, 1.0, 1.7])
def test_bound_and_matched_form_are_above_the_truth(noise, rate, steps, distance):
    """For gradients on one line, C and C - R in all steps, the exact advantage is below the bound and the matched form."""
    exact = composed_delta((noise, rate, 1 - distance, 1.0, steps))
    published, matched, bound = advantages(DPSGD(noise, rate, steps), distance)
    assert exact <= bound + 1e-6
    assert exact <= matched + 1e-6
    assert published <= matched


def test_published_form_is_on_the_unsafe_side():
    """At p = .01, s = 1, T = 1000 and gradients 0 and C, the exact advantage is .1610 and Corollary 10 gives .1256."""
    rows = attribute_inference(DPSGD(1.0, 0.01, 1000), sensitivities=1.0)
    assert rows[PUBLISHED].value == pytest.approx(0.12563, abs=1e-5)
    assert rows[MATCHED].value > 0.1610176
    assert "0.1610" in rows[PUBLISHED].note
    assert "error term" in rows[PUBLISHED].note


@pytest.mark.parametrize(("noise", "distance"), [(0.5, 0.1), (0.5, 1.3), (1.0, 1.0), (2.0, 0.6), (2.0, 2.0)])
def test_spread_is_the_worst_arrangement(noise, distance):
    """The closed form of the largest integral of (N(g) - N(h))^2 / N(0) is what a grid over arrangements finds."""
    u = 1 / noise**2
    worst = 0.0
    for a in np.linspace(0, 1, 201):
        for b in np.linspace(0, 1, 201):
            if abs(a - b) <= distance <= a + b + 1e-12:
                inner = (a * a + b * b - distance**2) / 2
                worst = max(worst, math.exp(u * a * a) + math.exp(u * b * b) - 2 * math.exp(u * inner))
    found = math.exp(float(log_spread(steps_of(DPSGD(noise, 0.1, 1), np.asarray(distance)), reach=1.0)))
    assert found >= worst * (1 - 1e-12)
    assert found == pytest.approx(worst, rel=0.03)


def test_fixed_size_batches_are_never_safer():
    """In a batch of fixed size the record took another's place, which may be farther away."""
    for distance in (0.1, 1.0, 2.0):
        poisson = advantages(DPSGD(1.0, 0.05, 100), distance)
        fixed = advantages(DPSGD(1.0, 0.05, 100, sampling=FixedSizeSampling()), distance)
        assert fixed[0] == poisson[0]
        assert fixed[1] > poisson[1]
        assert fixed[2] >= poisson[2]
    assert fixed[2] == pytest.approx(mirrored_advantage((1.0, 0.05, 2.0, 0.0, 100)), abs=1e-6)
    nearer = advantages(DPSGD(1.0, 0.05, 100, sampling=FixedSizeSampling()), 0.6)
    assert nearer[2] == pytest.approx(mirrored_advantage((1.0, 0.05, 2.0, 1.4, 100)), abs=1e-6)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "distance", "expected"),
    [
        (1e-300, 0.5, 10**7, 1.0, 1.0),
        (0.05, 1.0, 10**7, 2.0, 1.0),
        (1e200, 0.5, 5, 1.0, 0.0),
        (1.0, 1.0, 5, 0.0, 0.0),
        (1.0, 0.1, 5, 0.0, 0.0),
        (1e-308, 0.5, 3, 1e-300, None),
    ],
)
def test_extremes_saturate_without_warnings(noise, rate, steps, distance, expected):
    """No overflow, no underflow and no meaningless number at either end of every parameter."""
    found = advantages(DPSGD(noise, rate, steps), distance)
    assert all(0 <= value <= 1 for value in found)
    if expected is not None:
        assert [found[0], found[2]] == pytest.approx([expected, expected], abs=1e-100)


def test_standing_depends_on_whether_the_distances_were_measured():
    """Only distances fixed in advance prove the bound; measured ones carry the privacy note, and neither form is a proof."""
    training = DPSGD(1.0, 0.1, 3)
    measured = attribute_inference(training, sensitivities=[0.1, 0.2, 0.3])
    fixed = attribute_inference(training, sensitivities=[0.1, 0.2, 0.3], fixed_in_advance=True)
    assert [row.status for row in measured[:6]] == ["approximation"] * 6
    assert [row.status for row in fixed[:6]] == ["approximation"] * 4 + ["proven"] * 2
    assert [row.value for row in measured] == [row.value for row in fixed]
    assert all("do not publish it where membership matters" in row.note for row in measured[:6])
    assert not any("do not publish" in row.note for row in fixed)
    assert "no proof" in measured[5].note
    assert {row.adjacency for row in measured} == {Adjacency.REPLACE_ONE}
    assert [row.metric for row in measured] == [
        *["attribute_bayes_security", "attribute_advantage"] * 3,
        *["bayes_security"] * 3,
    ]


def test_never_more_than_membership():
    """Where the distances give no smaller bound, it is the exact advantage on the whole record, proven without them."""
    training = DPSGD(0.7, 0.02, 100)
    rows = attribute_inference(training, sensitivities=2.0)
    exact = composed_delta((0.7, 0.02, -1.0, 1.0, 100))
    assert rows[5].value == pytest.approx(exact, abs=1e-5)
    assert rows[4].value == rows[8].value == 1 - rows[5].value
    assert rows[5].status == rows[8].status == "proven"
    assert "whole record" in rows[5].note
    smaller = attribute_inference(training, sensitivities=0.1)
    assert smaller[5].value < rows[5].value
    assert smaller[5].status == "approximation"


def test_rounding_above_twice_the_clip_is_allowed():
    """A distance that single precision puts a millionth above 2 C is 2 C."""
    exact, above = (advantages(DPSGD(1.0, 0.1, 3), r) for r in (2.0, 2.000001))
    assert exact == above
