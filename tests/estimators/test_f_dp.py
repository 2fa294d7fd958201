"""The f-DP recursion: published values, a slow version, and mechanisms whose tail probabilities are known exactly."""

import math

import numpy as np
import pytest
from scipy import stats

from auditor.curves import TradeoffCurve
from auditor.estimators import epsilon_bound, of_curve, of_epsilon_delta, of_gdp, rejects
from auditor.theory import gaussian_epsilon


@pytest.mark.parametrize(("m", "r", "v", "mu"), [(1000, 600, 600, 2.083475), (1000, 100, 95, 0.786812)])
def test_gaussian_references(m, r, v, mu):
    """mu_L of (1000, 600, 600) and (1000, 100, 95) at alpha .05 are the design's reference values."""
    for near, refuted in ((mu - 1e-6, True), (mu + 1e-6, False)):
        assert rejects(of_gdp(near), bits=m, guesses=r, correct=v, alpha=0.05) is refuted


def slow_rejects(smallest_fpr, m, r, v, alpha):
    """Algorithm 3 as it is printed: arrays, no shortcut, every count down to 0."""
    right, wrong = np.zeros(v + 1), np.zeros(v + 1)
    right[v], wrong[v] = alpha * v / m, alpha * (r - v) / m
    for i in range(v - 1, -1, -1):
        wrong[i] = max(wrong[i + 1], smallest_fpr(min(right[i + 1], 1.0)))
        right[i] = right[i + 1] + i / (r - i) * (wrong[i] - wrong[i + 1])
        if right[i] + wrong[i] > 1:
            break
    return bool(np.any(right + wrong > r / m))


SLOW = {
    "gaussian": lambda x: lambda y: stats.norm.cdf(stats.norm.ppf(y) - x),
    "epsilon, 1e-3": lambda x: (
        lambda y: max(0.0, 1 - 1e-3 - math.exp(x) * (1 - y), math.exp(-x) * (y - 1e-3))
    ),
}
FAST = {"gaussian": of_gdp, "epsilon, 1e-3": lambda x: of_epsilon_delta(x, delta=1e-3)}


@pytest.mark.parametrize("family", SLOW)
def test_shortcuts_change_nothing(rng, family):
    """On random counts and curves the verdict equals that of the printed algorithm without any early stop."""
    answers = set()
    for _ in range(150):
        m = int(rng.integers(5, 400))
        r = int(rng.integers(1, m + 1))
        v = int(rng.integers(r // 2, r + 1))
        alpha, x = rng.choice([0.3, 0.05, 1e-3]), rng.gamma(1.0, 1.0)
        expected = slow_rejects(SLOW[family](x), m, r, v, alpha)
        assert rejects(FAST[family](x), bits=m, guesses=r, correct=v, alpha=alpha) is expected
        answers.add(expected)
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("m", "r", "v"), [(900, 900, 700), (3000, 150, 140), (2000, 2000, 1050), (400, 400, 400)]
)
def test_bounds_sit_where_the_printed_algorithm_turns(m, r, v):
    """Just below the bound the printed algorithm rejects, and just above it does not."""
    bound = epsilon_bound(bits=m, guesses=r, correct=v, delta=1e-3, alpha=0.05)
    assert bound > 0
    for near, refuted in ((bound - 1e-7, True), (bound + 1e-7, False)):
        assert slow_rejects(SLOW["epsilon, 1e-3"](near), m, r, v, 0.05) is refuted


# --- The level, without simulation: mechanisms whose P[V >= v] is known ---------------------------------


@pytest.mark.parametrize("m", [1, 2, 10, 60, 300])
@pytest.mark.parametrize("x", [0.0, 0.5, 2.0])
def test_the_level_is_exact_on_independent_bits(m, x):
    """Where the truth gives v right guesses with probability p, it is never refuted at any level below p."""
    laws = {
        "randomised response": (of_epsilon_delta(x, delta=0.0), stats.binom(m, 1 / (1 + math.exp(-x)))),
        "gaussian": (of_gdp(x), stats.binom(m, stats.norm.cdf(x / 2))),
    }
    for curve, right in laws.values():
        for v in range(1, m + 1):
            alpha = min(float(right.sf(v - 1)) * (1 - 1e-9), 0.999)
            assert alpha == 0 or not rejects(curve, bits=m, guesses=m, correct=v, alpha=alpha)


@pytest.mark.parametrize("m", [4, 50, 400])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.2), (0.0, 0.01), (1.0, 0.05)])
def test_the_level_is_exact_when_all_bits_fall_together(m, epsilon, delta):
    """A mechanism that reveals everything at once with probability delta is (epsilon, delta)-DP and not refuted."""
    right = stats.binom(m, 1 / (1 + math.exp(-epsilon)))
    for v in range(1, m + 1):
        alpha = (delta + (1 - delta) * float(right.sf(v - 1))) * (1 - 1e-9)
        curve = of_epsilon_delta(epsilon, delta=delta)
        assert not rejects(curve, bits=m, guesses=m, correct=v, alpha=min(alpha, 0.999))


def test_the_level_can_be_reached():
    """With one bit the bound is exact: just above its true probability the truth is refuted."""
    q = 1 / (1 + math.exp(-1.0))
    curve = of_epsilon_delta(1.0 - 1e-6, delta=0.0)
    assert rejects(curve, bits=1, guesses=1, correct=1, alpha=q)
    assert not rejects(curve, bits=1, guesses=1, correct=1, alpha=q - 1e-3)


# --- Curves ------------------------------------------------------------------------------------------------


def test_what_refutes_a_curve_refutes_all_below_it(rng):
    """Refuting a point's (epsilon, delta) refutes the whole Gaussian curve through it, with the same guesses."""
    refuted = 0
    for _ in range(300):
        m = int(rng.integers(20, 500))
        r = int(rng.integers(10, m + 1))
        v = int(rng.integers(r // 2, r + 1))
        mu, delta = rng.uniform(0.05, 2), 10 ** rng.uniform(-6, -2)
        counts = {"bits": m, "guesses": r, "correct": v, "alpha": 0.05}
        piece = of_epsilon_delta(gaussian_epsilon(mu, delta=delta), delta=delta)
        if rejects(piece, **counts):
            refuted += 1
            assert rejects(of_gdp(mu), **counts)
    assert 30 < refuted < 270


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.7, 0.0), (2.0, 1e-3), (5.0, 0.3)])
def test_a_curve_of_points_is_its_formula(epsilon, delta):
    """The inverse of the three-piece curve as points equals its closed form at every true positive rate."""
    by_points = of_curve(TradeoffCurve.from_epsilon_delta(epsilon, delta=delta))
    by_formula = of_epsilon_delta(epsilon, delta=delta)
    rates = np.linspace(0, 1, 1001)[:-1]
    assert [by_points(y) for y in rates] == pytest.approx([by_formula(y) for y in rates], abs=1e-12)


def test_a_staircase_counts_as_the_concave_curve_above_it():
    """Mixing two attacks reaches the line between them, so steps below it protect nobody."""
    steps = TradeoffCurve(fpr=[0, 0.2, 0.2, 0.6, 0.6, 1], tpr=[0, 0, 0.5, 0.5, 1, 1])
    line = TradeoffCurve(fpr=[0, 0.2, 0.6, 1], tpr=[0, 0.5, 1, 1])
    rates = np.linspace(0, 1, 101)
    assert [of_curve(steps)(y) for y in rates] == pytest.approx([of_curve(line)(y) for y in rates], abs=1e-15)


def test_extreme_counts_have_bounds():
    """No right guess refutes nothing; one bit, a million bits and a perfect attack all have finite bounds."""
    assert not rejects(of_gdp(0.0), bits=10, guesses=10, correct=0, alpha=0.05)
    assert epsilon_bound(bits=1, guesses=1, correct=1, delta=0.0, alpha=0.05) == 0
    million = {"bits": 10**6, "guesses": 10**6}
    assert 0.5 < epsilon_bound(**million, correct=700_000, delta=1e-7, alpha=0.01) < math.log(7 / 3)
    assert 12 < epsilon_bound(**million, correct=10**6, delta=0.0, alpha=0.05) < 13
    for mu, refuted in ((3.0, True), (4.0, False)):
        assert rejects(of_gdp(mu), **million, correct=10**6, alpha=0.05) is refuted
    assert epsilon_bound(bits=50, guesses=50, correct=50, delta=0.9, alpha=0.05) == 0
