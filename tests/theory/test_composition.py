"""Composition theorems: errata, exact enumeration of randomised response, and a training run side by side."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, PoissonSampling
from auditor.theory import (
    StepPair,
    advanced,
    advanced_sharper,
    compare_compositions,
    gaussian_epsilon,
    optimal,
    step_epsilons,
)

REPLACED = [(sampling, "replace-one") for sampling in (PoissonSampling(), FixedSizeSampling())]
THEOREMS = "basic", "advanced", "sharper", "optimal", "renyi", "losses", "everyone", "limit"


def exact_delta(epsilons, epsilon):
    """Delta of several randomised responses at once, by enumerating all answers."""
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        loss = sum(sign * value for sign, value in zip(signs, epsilons, strict=True))
        mass = math.prod(1 / (1 + math.exp(-s * e)) for s, e in zip(signs, epsilons, strict=True))
        total += mass * max(0.0, -math.expm1(epsilon - loss))
    return total


def exact_optimal(epsilon, delta, steps, total):
    """The optimal epsilon by bisection of Kairouz, Oh and Viswanath's profile in 40-digit arithmetic."""
    with mpmath.workdps(40):
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
        truth = 1 / (1 + mpmath.exp(-e))
        masses = [mpmath.binomial(steps, k) * truth**k * (1 - truth) ** (steps - k) for k in range(steps + 1)]

        def surplus(t):
            parts = (m * (1 - mpmath.exp(t - (2 * k - steps) * e)) for k, m in enumerate(masses))
            return 1 - (1 - d) ** steps * (1 - sum(max(mpmath.mpf(0), part) for part in parts)) - total

        low, high = mpmath.mpf(0), steps * e
        if surplus(low) <= 0:
            return 0.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if surplus(middle) > 0 else (low, middle)
        return float(high)


def exact_deltas(pair, noise, rate, loss_at):
    """One step's deltas in 60 digits, of both orders, where the event's edge is this output; and epsilon there."""
    s, p, x = mpmath.mpf(noise), mpmath.mpf(rate), loss_at

    def law(mean):
        ratio = 1 - p + p * mpmath.exp((2 * mean * x - mean**2) / (2 * s**2))
        above, below = (
            (1 - p) * mpmath.ncdf(-sign * x / s) + p * mpmath.ncdf(sign * (mean - x) / s) for sign in (1, -1)
        )
        return ratio, above, below

    (up, up_above, up_below), (down, down_above, down_below) = (
        law(mean) for mean in (1, -1 if pair is StepPair.REPLACE_ONE else 0)
    )
    loss = mpmath.log(up / down)
    # Of the first law over the second beyond the edge; of the second over the first below it.
    return loss, up_above - mpmath.exp(loss) * down_above, down_below - mpmath.exp(-loss) * up_below


def exact_step(pair, noise, rate, delta):
    """One step's epsilon in 60 digits: the larger of both orders, by bisection of the event's edge."""
    with mpmath.workdps(60):
        far, middle = 40 * mpmath.mpf(noise) + 1, 0 if pair is StepPair.REPLACE_ONE else mpmath.mpf(1) / 2
        found = [0.0]
        for sign, order in ((1, 1), (-1, 2)):
            low, high = mpmath.mpf(0), far
            if exact_deltas(pair, noise, rate, middle)[order] <= delta:
                continue
            for _ in range(80):
                at = (low + high) / 2
                over = exact_deltas(pair, noise, rate, middle + sign * at)[order] > delta
                low, high = (at, high) if over else (low, at)
            found.append(float(sign * exact_deltas(pair, noise, rate, middle + sign * high)[0]))
        return max(found)


@pytest.mark.parametrize("delta", [1e-300, 1e-8, 0.3])
@pytest.mark.parametrize("rate", [1e-9, 0.5, 0.999])
@pytest.mark.parametrize("pair", [StepPair.ADD_REMOVE, StepPair.REPLACE_ONE])
def test_steps_are_exact(pair, rate, delta):
    """A step's epsilon is that of its own two laws, the larger of both orders, in 60 digits, at any delta and noise."""
    noise = np.array([0.05, 1.0, 1e3])
    found = step_epsilons(noise, np.full(noise.size, rate), pair, deltas=delta)
    expected = [exact_step(pair, value, rate, delta) for value in noise.tolist()]
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("pair", list(StepPair))
def test_steps_at_the_ends_of_a_double(pair):
    """Noise, rates and deltas at the ends of their ranges give numbers that fall with delta, never NaN."""
    noise = np.array([1e-300, 1e-149, 1e-3, 1e6, 1e200])
    for rate in (1e-300, 0.5, 1 - 1e-16, 1.0):
        deltas = np.array([0.0, 1e-310, 1e-5, 0.5, 1.0])[:, None]
        found = step_epsilons(noise, np.full(noise.size, rate), pair, deltas=deltas)
        assert not np.isnan(found).any()
        assert (found[1:] <= found[:-1]).all()
        assert (found[0] == math.inf).all()
        assert (found[-1] == 0).all()


@pytest.mark.parametrize("form", [advanced, advanced_sharper])
def test_kinds_of_step(form):
    """Steps given one by one, by kind or by number are the same."""
    together = form([0.1, 0.3], steps=[4, 2], slack=1e-6)
    assert together == pytest.approx(form([0.1] * 4 + [0.3] * 2, steps=1, slack=1e-6), rel=1e-14)


@pytest.mark.parametrize("epsilons", [[0.2] * 10, [0.05, 0.1, 0.2, 0.4, 0.8, 1.6], [1.0] * 4, [3.0, 0.01]])
@pytest.mark.parametrize("slack", [1e-6, 1e-3, 0.1])
def test_advanced_forms_bound_randomised_response(epsilons, slack):
    """Both forms hold for randomised responses of equal and different epsilons, by enumeration of all answers."""
    first, second = (form(epsilons, steps=1, slack=slack) for form in (advanced, advanced_sharper))
    assert second <= first
    assert exact_delta(epsilons, second) <= slack * (1 + 1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps", "total"),
    [
        (0.1, 0.0, 100, 1e-5),
        (1.0, 1e-6, 10, 1e-4),
        (0.01, 1e-9, 200, 1e-6),
        (3.0, 0.0, 7, 0.3),
        (1e-3, 0.0, 100, 1e-300),
        (1.0, 0.1, 1, 0.2),
        (5.0, 0.0, 30, 1e-30),
        (1.0, 0.0, 40, 1 - 1e-7),
    ],
)
def test_optimal_against_exact_arithmetic(epsilon, delta, steps, total):
    """The optimal epsilon agrees with a bisection in 40 digits, with and without a delta of each step."""
    found = optimal(epsilon, delta=delta, steps=steps, total_delta=total)
    assert found == pytest.approx(exact_optimal(epsilon, delta, steps, total), rel=1e-9)


def test_optimal_edges():
    """Deltas that exceed the whole promise nothing; no epsilon, and no delta left, give the sum."""
    assert optimal(0.1, delta=1e-6, steps=100, total_delta=1e-5) == math.inf
    assert optimal(0.0, delta=0.0, steps=100, total_delta=1e-5) == 0.0
    assert optimal(0.5, steps=8, total_delta=0.0) == 4.0
    assert optimal(1e4, steps=50, total_delta=1e-5) == pytest.approx(5e5)
    assert optimal(1e-12, steps=10**6, total_delta=1e-5) == 0.0


def test_extremes():
    """Huge epsilons are infinite where a theorem has an exponential, and no epsilon costs nothing."""
    assert advanced(1e4, steps=2, slack=1e-5) == math.inf
    assert advanced_sharper(1e4, steps=2, slack=1e-300) == pytest.approx(2e4 + 1e4 * math.sqrt(4 * 690.7755))
    assert advanced(0.0, steps=10**9, slack=0.5) == 0.0
    assert advanced_sharper(1e-200, steps=4, slack=math.exp(-0.5)) == pytest.approx(2e-200)


# --- One training run by every theorem ------------------------------------------------------------


def values(training, delta=1e-5, adjacency=Adjacency.ADD_REMOVE):
    """The epsilons by name of the theorem."""
    rows = compare_compositions(training, delta=delta, adjacency=adjacency)
    return {name: row.value for name, row in zip(THEOREMS, rows, strict=False)}


# statistics.md, section 6: accountant 3.816, CLT 1.505.
def test_the_limit_is_not_proven():
    """At rate .01, noise .6, 100 steps the accountant gives 3.816 and the limit 1.505, labelled and with its distance."""
    rows = compare_compositions(DPSGD(0.6, 0.01, 100), delta=1e-5)
    assert [row.status for row in rows] == ["proven"] * 7 + ["approximation"]
    assert rows[5].value == pytest.approx(3.816, abs=1e-3)
    assert rows[7].value == pytest.approx(1.505, abs=1e-3)
    assert "unsafe side" in rows[7].note
    assert "2.31 below the exact one" in rows[7].note
    assert all((row.metric, row.delta, row.adjacency) == ("epsilon", 1e-5, "add-remove") for row in rows)


@pytest.mark.parametrize(
    "training",
    [
        DPSGD(1.0, 0.01, 1000),
        DPSGD(0.6, 0.01, 100),
        DPSGD(10.0, 1.0, 100),
        DPSGD(50.0, 0.01, 1_000_000),
        DPSGD(2.0, 0.3, 1),
        DPSGD([1.0, 2.0, 4.0], [0.01, 0.1, 1.0]),
    ],
)
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_every_proven_theorem_is_above_the_exact_epsilon(training, adjacency):
    """No proven epsilon is below that of the exact law."""
    found = values(training, adjacency=adjacency)
    least = found["losses"] * (1 - 1e-9)
    assert all(value >= least for name, value in found.items() if name != "limit")
    assert found["sharper"] <= found["advanced"]
    if len(training.phases) == 1:
        assert found["optimal"] <= min(found["sharper"], found["basic"]) * (1 + 1e-9)


def test_unsampled_run_is_exact():
    """Without sampling Gaussian DP is exact, equals the exact law's, and there is no limit to take."""
    rows = compare_compositions(DPSGD(10.0, 1.0, 100), delta=1e-5)
    assert len(rows) == 7
    assert rows[6].value == pytest.approx(gaussian_epsilon(1.0, delta=1e-5), rel=1e-12)
    assert rows[5].value == pytest.approx(rows[6].value, rel=1e-9)


def test_one_step_needs_no_theorem():
    """For one step basic and optimal composition give the exact epsilon of the sampled Gaussian step."""
    for sampling, adjacency in ((PoissonSampling(), "add-remove"), *REPLACED):
        found = values(DPSGD(2.0, 0.3, 1, sampling=sampling), adjacency=adjacency)
        assert found["basic"] == pytest.approx(found["losses"], abs=3e-4)
        assert found["optimal"] == pytest.approx(found["basic"], rel=1e-9)


def test_basic_by_hand():
    """For added records basic composition is T times the amplified epsilon of a Gaussian step at delta/(T q)."""
    before = gaussian_epsilon(1.0, delta=1e-5 / (1000 * 0.01))
    expected = 1000 * math.log(1 + 0.01 * math.expm1(before))
    assert values(DPSGD(1.0, 0.01, 1000))["basic"] == pytest.approx(expected, rel=1e-9)


def test_basic_for_replaced_records():
    """Basic composition is T times the exact epsilon of the replace-one pair: .849 each, not 6.39 by amplification."""
    step = exact_step(StepPair.REPLACE_ONE, 1.0, 0.01, 1e-8)
    assert step == pytest.approx(0.849, abs=5e-4)
    assert values(DPSGD(1.0, 0.01, 1000), adjacency="replace-one")["basic"] == pytest.approx(
        1000 * step, rel=1e-9
    )


def test_fixed_size():
    """Batches of a fixed size have every epsilon for replaced records and none, with the reason, for added ones."""
    training = DPSGD(1.0, 0.01, 100, sampling=FixedSizeSampling())
    replaced = values(training, adjacency="replace-one")
    assert all(math.isfinite(value) for value in replaced.values())
    assert replaced["losses"] <= min(value for name, value in replaced.items() if name != "limit") * (
        1 + 1e-3
    )
    for row in compare_compositions(training, delta=1e-5):
        assert row.value is None
        assert "replaced records only" in row.note


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.9])
@pytest.mark.parametrize(
    "training", [DPSGD(0.05, 1.0, 10**7), DPSGD(1e-200, 0.5, 10), DPSGD(1e6, 0.5, 10), DPSGD(1.0, 1e-9, 10)]
)
def test_extreme_runs(training, delta, adjacency):
    """Nothing is NaN or negative in extreme runs, and delta 0 promises nothing, in words."""
    rows = compare_compositions(training, delta=delta, adjacency=adjacency)
    for row in rows:
        assert row.value is None or row.value >= 0
    if delta == 0:
        assert rows[0].value == math.inf
        assert "promises nothing" in rows[0].note
