"""The posterior of epsilon against slow integrals, draws, and the case that shows it is no certified bound."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from auditor.estimators import Counts, credible_lower, log_posterior_below, upper_limit


def by_mpmath(epsilon, counts, delta):
    """The posterior probability of the region, integrated over the false positive rate with 20 digits."""
    with mpmath.workdps(20):
        a, b = counts.false_positives + mpmath.mpf(1) / 2, counts.nonmembers - counts.false_positives + 0.5
        c, d = counts.true_positives + mpmath.mpf(1) / 2, counts.members - counts.true_positives + 0.5
        grow = mpmath.exp(epsilon)

        def inside(x):
            high = min(1, delta + grow * x, 1 - (1 - delta - x) / grow)
            low = max(0, (x - delta) / grow, 1 - delta - grow * (1 - x))
            return x ** (a - 1) * (1 - x) ** (b - 1) * mpmath.betainc(c, d, low, max(low, high))

        kink = (1 - delta) / (grow + 1)
        ends = sorted({0, delta, kink, (1 - delta) / grow, 1 - (1 - delta) / grow, 1 - kink, 1 - delta, 1})
        whole = mpmath.beta(a, b) * mpmath.beta(c, d)
        return float(mpmath.quad(inside, ends) / whole)


@pytest.mark.parametrize(
    ("counts", "delta", "epsilon"),
    [
        (Counts(3, 5, 1, 4), 0.0, 0.7),
        (Counts(3, 5, 1, 4), 0.01, 1.5),
        (Counts(5, 5, 0, 4), 1e-5, 2.0),
        (Counts(0, 3, 7, 9), 0.1, 1.0),
        (Counts(2, 6, 2, 6), 0.05, 0.1),
    ],
)
def test_the_posterior_probability_agrees_with_a_slow_integral(counts, delta, epsilon):
    """On few runs, whose posterior is wide and whose region has all its corners, to ten digits."""
    assert math.isclose(
        math.exp(log_posterior_below(epsilon, counts, delta=delta)),
        by_mpmath(epsilon, counts, delta),
        rel_tol=1e-8,
    )


@pytest.mark.parametrize(
    ("counts", "delta"),
    [
        (Counts(500, 1000, 10, 1000), 1e-5),
        (Counts(4922, 100_000, 174, 100_000), 1e-5),
        (Counts(90, 100, 30, 300), 0.01),
        (Counts(100, 300, 90, 100), 0.0),
    ],
)
def test_the_limit_agrees_with_draws_from_the_posterior(counts, delta, rng):
    """Of epsilons of a million drawn pairs of rates, the share below the limit is alpha, up to its standard error."""
    draws, alpha = 1_000_000, 0.05
    x = rng.beta(counts.false_positives + 0.5, counts.nonmembers - counts.false_positives + 0.5, draws)
    y = rng.beta(counts.true_positives + 0.5, counts.members - counts.true_positives + 0.5, draws)
    ratios = [(y - delta) / x, (1 - x - delta) / (1 - y), (1 - y - delta) / (1 - x), (x - delta) / y]
    limit = credible_lower(counts, delta=delta, alpha=alpha)
    below = int((np.max(ratios, axis=0) <= math.exp(limit)).sum())
    assert 1e-4 < stats.binom.cdf(below, draws, alpha) < 1 - 1e-4


def test_a_credible_limit_is_no_certified_bound():
    """Perfect guesses in 1,000 runs of each world: credible 7.207, and no valid 95% bound exceeds 5.812.

    A mechanism that always says "with" where the canary is, and wrongly so with probability p elsewhere, has epsilon
    log(1/p). It shows such counts with probability (1 - p)^1000, above 5% for p = 0.00299: a bound that is right in 95%
    of its audits may not exceed log(1/p) = 5.812 then. The credible limit does.
    """
    limit = credible_lower(Counts(1000, 1000, 0, 1000), delta=0.0, alpha=0.05)
    assert abs(limit - 7.207) < 5e-4
    share = float(upper_limit(0, 1000, 0.05))
    assert abs(math.log(1 / share) - 5.812) < 5e-4
    assert math.isclose((1 - share) ** 1000, 0.05, rel_tol=1e-9)


def test_small_tails_keep_their_digits():
    """At an error of 1e-10 the limit is still where the posterior has just that much below it."""
    counts = Counts(4922, 100_000, 174, 100_000)
    limit = credible_lower(counts, delta=1e-5, alpha=1e-10)
    assert math.isclose(log_posterior_below(limit, counts, delta=1e-5), math.log(1e-10), rel_tol=1e-9)
    assert 2.8 < limit < credible_lower(counts, delta=1e-5, alpha=1e-2)


@pytest.mark.parametrize("counts", [Counts(7, 20, 3, 30), Counts(20, 20, 0, 30), Counts(0, 20, 30, 30)])
def test_the_limit_is_alike_seen_from_either_side(counts):
    """Calling "without" what was called "with", or swapping the worlds, leaves epsilon as it is."""
    limit = credible_lower(counts, delta=1e-3, alpha=0.05)
    calls = Counts(
        counts.members - counts.true_positives,
        counts.members,
        counts.nonmembers - counts.false_positives,
        counts.nonmembers,
    )
    worlds = Counts(counts.false_positives, counts.nonmembers, counts.true_positives, counts.members)
    for other in (calls, worlds):
        assert math.isclose(credible_lower(other, delta=1e-3, alpha=0.05), limit, rel_tol=1e-9)


def test_where_delta_explains_all_the_limit_is_zero():
    """With a delta that allows every difference that was seen, the posterior has its mass at epsilon 0."""
    assert credible_lower(Counts(52, 100, 48, 100), delta=0.5, alpha=0.05) == 0.0
