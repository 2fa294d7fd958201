"""The epsilon of a training description against references, independent oracles and its own logic."""

import math
import time

import numpy as np
import pytest

from auditor.core import DPSGD, Adjacency
from auditor.theory import claimed_curve, epsilon, gaussian_epsilon, renyi_epsilon

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


# --- DP-SGD --------------------------------------------------------------------------------------


# statistics.md, section 7: accountant eps(1e-5) add/remove, tolerance 3e-4; (.6, 100) from section 6.
@pytest.mark.parametrize(
    ("rate", "noise", "steps", "expected", "tolerance"),
    [
        (0.01, 0.8, 100, 1.510838, 3e-4),
        (0.01, 1.0, 1_000, 1.828237, 3e-4),
        (0.001, 1.0, 10_000, 0.475782, 3e-4),
        (0.01, 0.6, 100, 3.816, 1e-3),
    ],
)
def test_reference_values(rate, noise, steps, expected, tolerance):
    """The add/remove epsilon at delta 1e-5 agrees with the reference values."""
    claim = epsilon(DPSGD(noise, rate, steps), delta=1e-5)
    assert claim.value == pytest.approx(expected, abs=tolerance)
    assert (claim.metric, claim.delta, claim.adjacency, claim.proven) == ("epsilon", 1e-5, ADD_REMOVE, True)
    assert "loose" not in claim.note


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_monotone_in_every_parameter(adjacency):
    """More noise or a larger delta lower epsilon; a larger rate or more steps raise it."""

    def value(noise=1.0, rate=0.02, steps=60, delta=1e-5):
        return epsilon(DPSGD(noise, rate, steps), delta=delta, adjacency=adjacency).value

    noise = [value(noise=s) for s in (0.01, 0.3, 0.7, 1.0, 3.0, 100.0, 1e5)]
    rate = [value(rate=p) for p in (1e-9, 1e-6, 0.001, 0.02, 0.5, 1.0)]
    steps = [value(steps=t) for t in (1, 10, 99, 100, 1_000, 30_000)]
    delta = [value(delta=d) for d in (0.0, 1e-30, 1e-12, 1e-5, 0.1, 0.9)]
    assert noise == sorted(noise, reverse=True)
    assert rate == sorted(rate)
    assert steps == sorted(steps)
    assert delta == sorted(delta, reverse=True)


def test_the_ends_of_delta():
    """Epsilon is infinite at delta 0, and 0 where the record enters training with probability at most delta."""
    assert epsilon(DPSGD(1.0, 0.01, 10), delta=0).value == math.inf
    assert epsilon(DPSGD(0.01, 1e-9, 1_000), delta=2e-6).value == 0.0


def test_a_tiny_delta_keeps_its_digits():
    """A delta of 1e-14, or of 1e-200, has the exact epsilon, above that of a larger delta and below Renyi's bound."""
    training = DPSGD(1.0, 0.001, 10_000)
    claim = epsilon(training, delta=1e-14)
    assert epsilon(training, delta=1e-10).value < claim.value < 2.514599  # Renyi, integer orders
    assert "exact" in claim.method
    every = DPSGD(5.0, 1 - 1e-13, 100)  # almost the Gaussian of mu 2
    assert epsilon(every, delta=1e-200).value == pytest.approx(gaussian_epsilon(2.0, delta=1e-200), rel=1e-9)


def test_much_noise_is_not_taken_for_none():
    """A run whose exact advantage exceeds delta has an epsilon above 0, however much noise (a library says 0)."""
    noise, rate, steps, delta = 1e7, 0.01, 10**12, 1e-12
    # So many tiny steps are one Gaussian with mu = p sqrt(T)/s, to many digits.
    expected = gaussian_epsilon(rate * math.sqrt(steps) / noise, delta=delta)
    assert expected > 1e-3
    assert epsilon(DPSGD(noise, rate, steps), delta=delta).value == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (0.01, 0.01, 10**6, 1e-5),
        (1_000.0, 0.5, 10**6, 1e-5),
        (1.0, 0.01, 10**11, 1e-5),
        (1.0, 0.001, 10_000, 1e-14),
        (1e-4, 1e-9, 1_000, 1e-12),
        (1e7, 0.01, 10**12, 1e-12),
        (0.3, 0.02, 15_893_015, 1e-4),
        (7.06, 0.31, 618_370, 3.5e-4),
        (0.056, 1.5e-9, 391_246, 6.3e-7),
        (1e-200, 0.5, 1, 0.1),
        (1e200, 0.5, 10**18, 0.1),
        (1.0, 1e-200, 1, 1e-300),
        (0.01, 1e-200, 3, 1e-250),
    ],
)
def test_extreme_settings_have_a_bound_in_seconds(noise, rate, steps, delta, adjacency):
    """Where the accountant reaches its limits, there is a curve, and an epsilon at most Renyi's and the unsampled one."""
    start, training = time.perf_counter(), DPSGD(noise, rate, steps)
    claim = epsilon(training, delta=delta, adjacency=adjacency)
    assert time.perf_counter() - start < 30
    found = claimed_curve(training, adjacency=adjacency)
    assert claim.note
    fpr = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 30), 1 - np.geomspace(0.5, 1e-9, 30), [1.0]])
    tpr = np.array([found.curve.tpr_at(rate) for rate in fpr.tolist()])
    assert np.all((fpr - 1e-12 <= tpr) & (tpr <= np.minimum(1.0, fpr + min(1.0, rate * steps)) + 1e-12))
    distance = 1 if adjacency is ADD_REMOVE else 2
    others = (
        renyi_epsilon(training, delta=delta, adjacency=adjacency).value,
        gaussian_epsilon(distance * math.sqrt(steps) / noise, delta=delta),
    )
    assert 0 <= claim.value <= min(others) * (1 + 1e-12)
