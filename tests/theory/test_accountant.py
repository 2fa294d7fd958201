"""The epsilon of a training description against references, independent oracles and its own logic."""

import math
import time

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from auditor.core import DPSGD, Adjacency, InputError
from auditor.theory import (
    StepPair,
    accountant as sampled,
    advantage_under_prior,
    bayes_security_from_advantage,
    epsilon,
    gaussian_epsilon,
    humphries,
    kinds_of,
    loss_grid,
    posterior_from_epsilon,
    precision_from_tpr,
    renyi_epsilon,
    replace_one,
    rough_epsilon,
    success_rate,
    success_rate_from_bayes_security,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
# dp-accounting 0.4 has no replace-one for the sampled Gaussian: there, the reason is tested instead of the value.
HAS_REPLACE_ONE = sampled.accountant_has_replace_one()
needs_replace_one = pytest.mark.skipif(not HAS_REPLACE_ONE, reason="needs dp-accounting 0.6.0")
ADJACENCIES = [ADD_REMOVE, REPLACE_ONE] if HAS_REPLACE_ONE else [ADD_REMOVE]


# --- Oracles -------------------------------------------------------------------------------------


def one_step_pair(training, adjacency, x):
    """Return the two densities over that of N(0, s^2), at x."""
    rate, variance = training.sampling_rate, training.noise_multiplier**2
    up = 1 - rate + rate * np.exp((2 * x - 1) / (2 * variance))
    down = 1 - rate + rate * np.exp((-2 * x - 1) / (2 * variance))
    return (up, down) if adjacency is REPLACE_ONE else (up, np.ones_like(up))


def one_step_epsilon(training, adjacency, delta):
    """Epsilon of one step: the likelihood ratio grows with x, so the best event is a half-line."""
    rate, noise = training.sampling_rate, training.noise_multiplier

    def delta_at(value):
        def excess(x):
            up, down = one_step_pair(training, adjacency, np.float64(x))
            return float(np.log(up) - np.log(down)) - value

        cut = brentq(excess, -9 * noise, 9 * noise, xtol=1e-14)
        shifted = ndtr((-1 - cut) / noise) if adjacency is REPLACE_ONE else ndtr(-cut / noise)
        upper = (1 - rate) * ndtr(-cut / noise) + rate * ndtr((1 - cut) / noise)
        return upper - math.exp(value) * ((1 - rate) * ndtr(-cut / noise) + rate * shifted)

    up, down = one_step_pair(training, adjacency, np.float64(8 * noise))
    return brentq(lambda value: delta_at(value) - delta, 1e-9, float(np.log(up / down)), xtol=1e-12)


def bracketed_epsilon(training, adjacency, delta, *, spacing):
    """Epsilon from losses rounded down and rounded up, convolved step by step: below and above the exact one."""
    noise = training.noise_multiplier
    x = np.linspace(-1 - 9 * noise, 1 + 9 * noise, 400_001)
    bell = np.exp(-(x**2) / (2 * noise**2))
    bell /= bell.sum()
    up, down = one_step_pair(training, adjacency, x)
    loss = np.log(up) - np.log(down)
    laws = [(loss, bell * up)] + ([] if adjacency is REPLACE_ONE else [(-loss, bell * down)])
    return tuple(
        max(rounded_epsilon(*law, training.steps, delta, spacing, rule) for law in laws)
        for rule in (np.floor, np.ceil)
    )


def rounded_epsilon(loss, mass, steps, delta, spacing, rule):
    """Epsilon of a loss law whose losses were rounded to the grid."""
    index = rule(loss / spacing).astype(int)
    one = np.bincount(index - index.min(), weights=mass)
    total = one
    for _ in range(steps - 1):
        size = 1 << (total.size + one.size - 1).bit_length()
        full = np.fft.irfft(np.fft.rfft(total, size) * np.fft.rfft(one, size), size)
        total = full[: total.size + one.size - 1]
    losses = (np.arange(total.size) + steps * index.min()) * spacing

    def excess(value):
        above = losses > value
        return float(total[above] @ -np.expm1(value - losses[above])) - delta

    return brentq(excess, 0, losses[-1], xtol=1e-10) if excess(0) > 0 else 0.0


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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.0), (0.5, 2.0), (0.02, 0.7)])
def test_one_step_is_exact(rate, noise, adjacency):
    """One step agrees with the closed form of a half-line event, from above."""
    training = DPSGD(noise, rate, 1)
    exact = one_step_epsilon(training, adjacency, 1e-5)
    assert exact - 1e-9 <= epsilon(training, delta=1e-5, adjacency=adjacency).value <= exact + 3e-4


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.1, 1.0, 8), (0.3, 2.0, 5)])
def test_composition_lies_between_roundings(rate, noise, steps, adjacency):
    """A composition lies between step-by-step convolutions of losses rounded down and rounded up."""
    training = DPSGD(noise, rate, steps)
    low, high = bracketed_epsilon(training, adjacency, 1e-5, spacing=2e-4)
    assert high - low < 3e-3
    assert low <= epsilon(training, delta=1e-5, adjacency=adjacency).value <= high


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_no_sampling_is_plain_gaussian_composition(adjacency):
    """At rate 1, T steps are one Gaussian with means sqrt(T) / s apart, twice that for replace-one."""
    claim = epsilon(DPSGD(10.0, 1.0, 25), delta=1e-5, adjacency=adjacency)
    # GDP eps(mu, 1e-5) of statistics.md, section 7, at mu = 0.5 and 1.
    assert claim.value == pytest.approx({ADD_REMOVE: 1.993091, REPLACE_ONE: 4.377178}[adjacency], abs=1e-6)


@pytest.mark.parametrize(
    ("noise", "steps", "delta"), [(30.0, 1_000, 1e-8), (100.0, 10_000, 1e-10), (1_000.0, 10**6, 1e-8)]
)
def test_long_compositions_do_not_fall_below_the_truth(noise, steps, delta):
    """With almost no sampling, thousands of steps agree with the exact Gaussian, never below it by rounding."""
    training = DPSGD(noise, 1 - 1e-13, steps)
    kinds = kinds_of(training.phases, pair=StepPair.ADD_REMOVE)
    grid = loss_grid(kinds, pair=StepPair.ADD_REMOVE)
    value = sampled.accountant_epsilon(kinds, delta=delta, pair=StepPair.ADD_REMOVE, grid=grid)
    exact = gaussian_epsilon(math.sqrt(steps) / noise, delta=delta)
    assert exact - 1e-9 <= value <= exact + 3e-3


@pytest.mark.parametrize("adjacency", ADJACENCIES)
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


def test_delta_zero_has_no_finite_epsilon():
    """A Gaussian mechanism is not purely private: epsilon is infinite at delta 0, and the note says why."""
    claim = epsilon(DPSGD(1.0, 0.01, 10), delta=0)
    assert claim.value == math.inf
    assert "no finite epsilon" in claim.note


def test_rarely_drawn_record_is_free():
    """Where the record enters training with probability at most delta, epsilon 0 is proven, and the note says so."""
    claim = epsilon(DPSGD(0.01, 1e-9, 1_000), delta=2e-6)
    assert claim.value == 0.0
    assert "probability at most delta" in claim.note


def test_tiny_delta_is_bounded_by_renyi():
    """A delta below rounding error gets a looser bound, above the epsilon of a larger delta, and says so."""
    training = DPSGD(1.0, 0.001, 10_000)
    claim = epsilon(training, delta=1e-14)
    assert epsilon(training, delta=1e-10).value < claim.value < 3  # Renyi, integer orders: 2.514599
    assert "Renyi" in claim.method
    assert "loose" in claim.note


def step_divergence(noise, rate):
    """One replace-one step's Kullback-Leibler divergence, by the trapezoid rule."""
    x = np.linspace(-1 - 10 * noise, 1 + 10 * noise, 200_001)
    up, down = one_step_pair(DPSGD(noise, rate, 1), REPLACE_ONE, x)
    bell = np.exp(-(x**2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi))
    return float(np.sum(bell * up * np.log(up / down)) * (x[1] - x[0]))


@needs_replace_one
def test_very_many_steps_are_bounded_by_renyi():
    """Beyond the accountant's steps the Renyi epsilon counts: near the mean loss, not the 2e11 without sampling."""
    claim = epsilon(DPSGD(1.0, 0.01, 10**11), delta=1e-5, adjacency=REPLACE_ONE)
    mean = 10**11 * step_divergence(1.0, 0.01)
    assert mean < claim.value < 1.01 * mean
    assert "Renyi" in claim.method


@needs_replace_one
def test_coarse_numbers_give_way_to_renyi():
    """So much noise that losses drown in rounding: Pinsker's inequality says that epsilon is 0, and so does it."""
    noise, rate, steps = 1e6, 1e-4, 10**7
    # Kullback-Leibler is at most chi-squared: E_Q of ((P - Q)/Q)^2 <= 4 p^2 (e^(1/s^2) - 1)/(1 - p) per step.
    divergence = steps * 4 * rate**2 * math.expm1(noise**-2) / (1 - rate)
    assert math.sqrt(divergence / 2) < 1e-5
    assert epsilon(DPSGD(noise, rate, steps), delta=1e-5, adjacency=REPLACE_ONE).value == 0.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (1.0, 0.01, 10**11, 1e-5),
        (0.049, 1e-9, 10**7, 1e-12),
        (1e6, 1e-4, 10**7, 1e-5),
        (1.0, 0.001, 10_000, 1e-14),
        (1e-4, 1e-9, 1_000, 1e-12),
        (1e7, 0.01, 10**12, 1e-12),
        (0.5, 1e-6, 10**5, 1e-5),
        (7.06, 0.31, 618_370, 3.5e-4),
    ],
)
def test_never_above_another_proven_bound(noise, rate, steps, delta, adjacency):
    """Wherever the accountant reaches its limits, the answer is at most the Renyi and the unsampled epsilon."""
    training = DPSGD(noise, rate, steps)
    value = epsilon(training, delta=delta, adjacency=adjacency).value
    distance = 1 if adjacency is ADD_REMOVE else 2
    assert value <= renyi_epsilon(training, delta=delta, adjacency=adjacency).value * (1 + 1e-12)
    assert value <= gaussian_epsilon(distance * math.sqrt(steps) / noise, delta=delta) * (1 + 1e-12)


def test_much_noise_is_not_taken_for_none():
    """A run whose exact advantage exceeds delta has an epsilon above 0, however much noise (a library says 0)."""
    noise, rate, steps, delta = 1e7, 0.01, 10**12, 1e-12
    # So many tiny steps are one Gaussian with mu = p sqrt(T)/s, to many digits.
    expected = gaussian_epsilon(rate * math.sqrt(steps) / noise, delta=delta)
    assert expected > 1e-3
    assert expected < epsilon(DPSGD(noise, rate, steps), delta=delta).value < 1.2 * expected


def test_ordinary_runs_take_no_second_bound(monkeypatch):
    """Within the accountant's range nothing else is computed, so nothing is slower there."""

    def refuse(*_args, **_kwargs):
        pytest.fail("a second bound was computed")

    monkeypatch.setattr(sampled, "phases_epsilon", refuse)
    assert "privacy loss distributions" in epsilon(DPSGD(1.0, 0.01, 1_000), delta=1e-5).method


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (0.01, 0.01, 10**6, 1e-5),
        (0.01, 0.5, 10**6, 1e-5),
        (1_000.0, 0.5, 10**6, 1e-5),
        (1_000.0, 1e-6, 10**6, 1e-5),
        (0.3, 0.02, 15_893_015, 1e-4),
        (7.06, 0.31, 618_370, 3.5e-4),
        (0.056, 1.5e-9, 391_246, 6.3e-7),
        (0.5, 1e-6, 10**5, 1e-5),
        (1e-200, 0.5, 1, 0.1),
        (1e200, 0.5, 10**18, 0.1),
        (1.0, 1e-200, 1, 1e-300),
        (0.5, 1e-200, 1, 1e-300),
        (0.01, 1e-200, 3, 1e-250),
    ],
)
def test_extreme_settings_finish(noise, rate, steps, delta, adjacency):
    """Extreme settings give an answer or a reason, in seconds."""
    start = time.perf_counter()
    claim = epsilon(DPSGD(noise, rate, steps), delta=delta, adjacency=adjacency)
    assert time.perf_counter() - start < 30
    assert claim.value is None or claim.value >= 0
    assert claim.note


def test_replace_one_or_the_version_that_has_it():
    """Replace-one is computed where dp-accounting can, else it is null and one sentence names the version."""
    claim = epsilon(DPSGD(1.0, 0.01, 100), delta=1e-5, adjacency=REPLACE_ONE)
    assert claim.adjacency is REPLACE_ONE
    if HAS_REPLACE_ONE:
        add_remove = epsilon(DPSGD(1.0, 0.01, 100), delta=1e-5)
        assert add_remove.value < claim.value < gaussian_epsilon(20.0, delta=1e-5)
    else:
        assert claim.value is None
        assert "dp-accounting 0.6.0" in claim.note


def test_old_accountant_gives_null_and_a_reason(monkeypatch):
    """Without replace-one in the accountant the value is null, never 0, and the note is one sentence."""
    monkeypatch.setattr(sampled, "accountant_has_replace_one", lambda: False)
    claim = epsilon(DPSGD(1.0, 0.01, 100), delta=1e-5, adjacency=REPLACE_ONE)
    assert claim.value is None
    assert claim.note.startswith(
        "The replace-one epsilon of sampled DP-SGD needs dp-accounting 0.6.0 or later"
    )


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, "small"])
def test_bad_delta_is_refused(delta):
    """A delta outside [0, 1) is refused in one sentence."""
    with pytest.raises(InputError, match="delta must"):
        epsilon(DPSGD(1.0, 0.01, 100), delta=delta)


def test_bad_adjacency_is_refused():
    """An unknown adjacency is refused with the nearest name."""
    with pytest.raises(InputError, match="did you mean 'replace-one'"):
        epsilon(DPSGD(1.0, 0.01, 100), delta=1e-5, adjacency="replace_one")


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda value: epsilon(value, delta=0.1), "claim must be auditor.DPSGD or auditor.StatedClaim"),
        (replace_one, "claim must be auditor.Claim"),
        (humphries, "claim must be auditor.Claim"),
        (bayes_security_from_advantage, "claim must be auditor.Claim"),
        (lambda value: rough_epsilon(value, delta=0.1), "claim must be auditor.Claim"),
        (success_rate, "training must be auditor.DPSGD"),
        (lambda value: advantage_under_prior(value, prior=0.3), "training must be auditor.DPSGD"),
        (success_rate_from_bayes_security, "claim must be auditor.Claim"),
        (lambda value: posterior_from_epsilon(value, prior=0.3), "claim must be auditor.Claim"),
        (lambda value: precision_from_tpr(value, fpr=0.1, prior=0.3), "claim must be auditor.Claim"),
    ],
)
@pytest.mark.parametrize("value", ["x", 1.0, None])
def test_wrong_types_are_refused(function, wanted, value):
    """A value of another type is refused in one sentence that names the type wanted."""
    with pytest.raises(InputError, match=f"^{wanted}, got {value!r}.$"):
        function(value)
