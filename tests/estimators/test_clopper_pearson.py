"""Certified bounds: limits, ceilings and counts against published values and an oracle."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy
from oracles import exact_binomial_upper
from scipy import integrate, stats
from simulation import bound_of

from auditor.core import (
    Calibrated,
    Census,
    ClopperPearson,
    FixedThreshold,
    Losses,
    Melded,
    RankGrid,
    Sample,
    Split,
    Subset,
)
from auditor.estimators import (
    clopper_pearson,
    limits,
    lower_count,
    lower_limit,
    melding,
    ranks,
    tpr_at_fpr,
    upper_count,
    upper_limit,
)

TWO_LIMITS = RankGrid(interval=ClopperPearson())
MELDED = RankGrid(interval=Melded())

_SCIPY = tuple(map(int, scipy.__version__.split(".")[:2]))


@pytest.mark.parametrize(
    ("k", "n", "alpha"), [(0, 20, 0.05), (3, 50, 1e-3), (49, 50, 0.025), (50, 50, 0.05), (2, 30, 1e-14)]
)
def test_limits_against_the_definition(k, n, alpha):
    """Both limits solve the binomial tail equation exactly, far into the tail too."""
    assert upper_limit(k, n, alpha) == pytest.approx(exact_binomial_upper(k, n, alpha), rel=1e-9)
    assert lower_limit(n - k, n, alpha) == pytest.approx(1 - exact_binomial_upper(k, n, alpha), rel=1e-9)


@pytest.mark.parametrize(
    ("tp", "p", "fp", "n", "delta", "expected"),
    [
        (500, 1000, 10, 1000, 1e-5, 3.241995),
        (1000, 1000, 0, 1000, 0.0, 5.600588),
        (100, 100, 0, 100, 1e-5, 3.28133597),
        (90, 100, 10, 100, 0.0, 1.54215239),
    ],
)
def test_confusion_references(tp, p, fp, n, delta, expected):
    """Single-threshold bounds of the design's reference values."""
    assert bound_of(tp, p, fp, n, delta=delta) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("n", "one_threshold", "grid"),
    [
        (100, 3.281346, 2.671753),
        (1000, 5.600588, 4.936418),
        (10_000, 7.904833, 7.198661),
        (100_000, 10.207584, 9.474546),
        (1_000_000, 12.510186, 11.751365),
    ],
)
def test_ceiling_references(n, one_threshold, grid):
    """The ceilings of a perfect attack at delta 0, for one threshold and for the rank grid (design)."""
    losses = Losses(member=np.zeros(n), nonmember=np.ones(n))
    for rule, expected in ((TWO_LIMITS, grid), (FixedThreshold(0.5), one_threshold)):
        found = clopper_pearson(losses, delta=0.0, rule=rule)
        assert found.details["ceiling"] == pytest.approx(expected, abs=1e-6)
        assert found.value == pytest.approx(found.details["ceiling"])


def test_rank_grid_by_hand():
    """On 40 + 40 records the bound equals the union bound written out rank by rank."""
    rng = np.random.default_rng(5)
    member, nonmember = np.sort(rng.normal(-3, 1, 40)), np.sort(rng.normal(0, 1, 40))
    ks = [0, 1, 2, 3, 5, 8, 11, 17]
    assert ranks(40).tolist() == ks
    level = 0.05 / (2 * (len(ks) + len(ks)))
    best = 0.0
    for k in ks:
        for hits in (np.sum(member < nonmember[k]), np.sum(nonmember > member[39 - k])):
            excess = max(lower_limit(int(hits), 40, level) - 1e-3, 1e-300)
            best = max(best, np.log(excess / upper_limit(k, 40, level)))
    found = clopper_pearson(Losses(member=member, nonmember=nonmember), delta=1e-3, rule=TWO_LIMITS)
    assert found.value == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(("rule", "expected"), [(TWO_LIMITS, 1.326), (Split(), 1.083), (MELDED, 1.67)])
def test_mean_bound_references(rng, rule, expected):
    """The mean bound, n = 1000 on N(-1,1)|N(0,1): 1.326 by the rank grid, 1.083 by the split rule (design), 1.67 melded."""
    draws = [Losses(member=rng.normal(-1, 1, 1000), nonmember=rng.normal(0, 1, 1000)) for _ in range(300)]
    found = [clopper_pearson(losses, delta=1e-5, rule=rule).value for losses in draws]
    assert np.mean(found) == pytest.approx(expected, abs=0.06)


def test_one_tail_spends_the_error_on_one_tail():
    """Asking for one tail raises the ceiling and never reports the other."""
    losses = Losses(member=np.zeros(1000), nonmember=np.ones(1000))
    both, lower = (
        clopper_pearson(losses, delta=0.0, rule=RankGrid(tails, ClopperPearson())).value
        for tails in ("both", "lower")
    )
    assert lower > both
    assert clopper_pearson(losses, delta=0.0, rule=RankGrid("upper")).details["tail"] == "upper"


@pytest.mark.parametrize(
    "rule",
    [RankGrid(), TWO_LIMITS, MELDED, FixedThreshold(1.0), FixedThreshold(0.5), Split()],
)
def test_equal_losses_give_exactly_zero(rule):
    """All-equal losses certify nothing under any rule, with no residue of rounding."""
    losses = Losses(member=np.ones(500), nonmember=np.ones(500))
    found = clopper_pearson(losses, delta=1e-5, rule=rule)
    assert (found.value, found.lower, found.upper) == (0.0, 0.0, None)


@pytest.mark.parametrize(("delta", "rule"), [(1e-5, RankGrid()), (0.0, FixedThreshold(1.1))])
def test_a_census_never_divides_by_an_exact_zero(delta, rule):
    """In a census the FNR above the largest member is exactly 0, leakage or not: that rank is left out."""
    losses = Losses(member=np.linspace(0, 1, 400), nonmember=np.linspace(0, 1.2, 400))
    assert np.isfinite(clopper_pearson(losses, delta=delta, coverage=Census(), rule=rule).value)


def test_a_census_ceiling_is_never_passed():
    """With one missed member a census can show more than with none, and the ceiling allows for that."""
    losses = Losses(member=np.r_[np.zeros(9999), 5.0], nonmember=np.full(100, 3.0))
    found = clopper_pearson(losses, delta=0.0, coverage=Census(), rule=FixedThreshold(1.0))
    assert found.value == pytest.approx(found.details["ceiling"])


@pytest.mark.parametrize(
    "rule",
    [
        RankGrid(tails, interval)
        for tails in ("both", "upper", "lower")
        for interval in (Calibrated(), ClopperPearson(), Melded())
    ]
    + [FixedThreshold(0.5)],
)
@pytest.mark.parametrize("members", [Census(), Sample(), Subset(of=2), Subset(of=3)])
def test_two_records_are_enough_for_a_bound(rule, members):
    """The smallest groups have a bound and a ceiling, even where a census leaves a tail no rank at all."""
    found = clopper_pearson(
        Losses(member=[0.0, 0.1], nonmember=[1.0, 2.0]), delta=0.0, rule=rule, coverage=members
    )
    assert 0 <= found.value <= found.details["ceiling"] < 10


# --- One limit for the ratio -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "n0", "v", "n1"), [(0, 10, 10, 10), (3, 50, 20, 40), (400, 1000, 500, 900), (7, 9, 1, 5)]
)
def test_the_melded_p_value_counts_orderings(k, n0, v, n1):
    """At epsilon 0 and delta 0 the p-value is that of v others among the first v + k of all orderings: hypergeometric."""
    expected = stats.hypergeom.sf(v - 1, n0 + n1, n1, v + k)
    candidate = melding.Ranked(np.array([k]), n0, np.array([v]), n1)
    assert melding.p_value(0.0, candidate, delta=0.0)[0] == pytest.approx(expected, rel=1e-9, abs=4e-12)


@pytest.mark.parametrize(
    ("k", "n0", "v", "n1", "epsilon", "delta"),
    [
        (0, 100, 60, 80, 3.0, 1e-3),
        (2, 10**6, 500, 10**6, 4.0, 1e-5),
        (0, 2, 1, 2, 0.5, 0.3),
        (0, 10**6, 10**6, 10**6, 11.0, 0.0),
    ],
)
def test_the_melded_p_value_against_quadrature(k, n0, v, n1, epsilon, delta):
    """The p-value is the mean binomial tail over the law of the ranked rate, by adaptive quadrature."""

    def integrand(u):
        b = stats.beta.ppf(u, k + 1, n0 - k)
        return stats.binom.sf(v - 1, n1, min(1.0, math.exp(epsilon) * b + delta))

    turn = stats.beta.cdf(min(1.0, max(0.0, (v / n1 - delta) * math.exp(-epsilon))), k + 1, n0 - k)
    points = sorted({0.0, 1.0, *(float(np.clip(turn + step, 0, 1)) for step in np.linspace(-0.1, 0.1, 9))})
    pieces = [
        integrate.quad(integrand, *ends, epsabs=1e-14, epsrel=1e-10, limit=200) for ends in pairwise(points)
    ]
    expected = sum(value for value, _ in pieces)
    candidate = melding.Ranked(np.array([k]), n0, np.array([v]), n1)
    found = melding.p_value(epsilon, candidate, delta=delta)[0]
    assert found == pytest.approx(expected, rel=1e-6, abs=4e-12)


def test_the_melded_bound_is_the_best_of_all_ranks(rng):
    """The search over ranks finds the largest of the bounds that slow bisection gives, rank by rank and tail by tail."""
    member, nonmember = np.sort(rng.normal(-1, 1, 90)), np.sort(rng.normal(size=70))
    delta, expected = 0.02, 0.0
    tails = (nonmember, member), (-member[::-1], -nonmember[::-1])
    level = 0.05 / sum(ranks(own.size).size for own, _ in tails)
    for own, other in tails:
        for k in ranks(own.size):
            hits = int(np.sum(other < own[k]))
            candidate = melding.Ranked(np.array([k]), own.size, np.array([hits]), other.size)
            low, high = 0.0, 20.0
            for _ in range(50):
                middle = (low + high) / 2
                refuted = melding.p_value(middle, candidate, delta=delta)[0] <= level
                low, high = (middle, high) if refuted else (low, middle)
            expected = max(expected, low)
    found = clopper_pearson(Losses(member, nonmember), delta=delta, rule=MELDED)
    assert found.value == pytest.approx(expected, abs=1e-7)
    assert found.value > 0.5


@pytest.mark.parametrize("tails", ["both", "lower", "upper"])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_melding_never_gives_less(rng, tails, delta):
    """The melded bound is at least that of two limits on any data, ties included, and so is its ceiling."""
    for shift, size in ((0.0, 40), (0.5, 300), (2.0, 1000), (5.0, 200)):
        for cut in (2, 8):
            losses = Losses(
                member=np.round(rng.normal(-shift, 1, size), cut),
                nonmember=np.round(rng.normal(size=2 * size), cut),
            )
            two, one = (
                clopper_pearson(losses, delta=delta, rule=RankGrid(tails, interval))
                for interval in (ClopperPearson(), Melded())
            )
            assert one.value >= two.value
            assert one.details["ceiling"] > two.details["ceiling"]
            assert one.value <= one.details["ceiling"] + 1e-9


@pytest.mark.parametrize("confidence", [1e-3, 0.5, 1 - 1e-11])
def test_melding_survives_any_confidence(confidence):
    """Levels near 0 and near 1 have a bound between 0 and the ceiling."""
    losses = Losses(member=np.arange(500.0), nonmember=np.arange(500.0) + 300)
    found = clopper_pearson(losses, delta=1e-3, confidence=confidence, rule=MELDED)
    assert 0 <= found.value <= found.details["ceiling"] + 1e-9


def test_nothing_to_meld_in_a_census(rng):
    """Where one of the two rates is known exactly, both kinds of limits are the same."""
    losses = Losses(member=rng.normal(-1, 1, 300), nonmember=rng.normal(size=400))
    for members in (Census(), Subset(of=900)):
        one, two = (
            clopper_pearson(losses, delta=1e-3, coverage=members, rule=RankGrid(interval=interval))
            for interval in (Melded(), ClopperPearson())
        )
        assert (one.value, one.method) == (two.value, two.method)


# --- A random subset of a finite training set ----------------------------------------------------------


def exact_lower(x, n, population, alpha):
    """The smallest number marked with P[x or more of n drawn] above alpha, in exact fractions."""
    for marked in range(population + 1):
        ways = sum(math.comb(marked, j) * math.comb(population - marked, n - j) for j in range(x, n + 1))
        if Fraction(ways, math.comb(population, n)) > Fraction(alpha):
            return marked
    raise AssertionError


@pytest.mark.parametrize(("n", "population"), [(5, 5), (6, 7), (10, 25), (12, 100)])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-4])
def test_hypergeometric_limits_against_fractions(n, population, alpha):
    """Both limits of every count equal those of exact rational arithmetic."""
    options = {"drawn": n, "population": population, "alpha": alpha}
    lows = [exact_lower(x, n, population, alpha) for x in range(n + 1)]
    assert lower_count(np.arange(n + 1), **options).tolist() == lows
    assert upper_count(np.arange(n + 1), **options).tolist() == [population - low for low in reversed(lows)]


def test_ranks_of_a_subset_follow_the_same_law():
    """The number of records above the (k+1)-th largest drawn one passes its limit as rarely as stated, by enumeration."""
    n, population, alpha = 4, 10, 0.2
    for k in range(n):
        limit = int(upper_count(k, drawn=n, population=population, alpha=alpha))
        # The (k+1)-th largest drawn record has rank j + 1 from above: k of the j above it were drawn.
        chance = [
            Fraction(math.comb(j, k) * math.comb(population - j - 1, n - k - 1), math.comb(population, n))
            for j in range(population)
        ]
        assert sum(chance) == 1
        assert sum(chance[limit + 1 :]) <= Fraction(alpha)
        assert sum(chance[limit:]) > Fraction(alpha)


def test_a_fully_scored_subset_knows_the_tpr(rng):
    """With every training record scored, the limit of the TPR at a guaranteed FPR is the count there itself."""
    losses = Losses(member=rng.normal(-1, 1, 200), nonmember=rng.normal(size=400))
    found = tpr_at_fpr(losses, rate=0.1, coverage=Subset(of=200))
    assert found.lower == found.details["true_positives"] / 200
    assert tpr_at_fpr(losses, rate=0.1, coverage=Subset(of=400)).lower < found.lower


@pytest.mark.parametrize("n", [10**6, 10**8, 10**10])
@pytest.mark.parametrize("p", [1e-6, 0.39])
def test_binomial_chances_are_right_of_any_number_of_trials(n, p):
    """Both tails agree with the sum of chances, each from the one before by its ratio, where SciPy's binomial fails."""
    reach = 12 * math.sqrt(n * p * (1 - p)) + 30
    k = np.arange(max(0, math.floor(n * p - reach)), math.ceil(n * p + reach))
    logs = np.append(0.0, np.cumsum(np.log((n - k[:-1]) / (k[:-1] + 1) * (p / (1 - p)))))
    chances = np.exp(logs - logs.max())
    upto = np.cumsum(chances) / chances.sum()
    at = np.linspace(0, k.size - 1, 41).astype(int)
    # SciPy 1.13 is wrong by 1.6e-7 for the largest n.
    close = 1e-7 if _SCIPY >= (1, 14) else 2e-7
    assert limits.chance_up_to(k[at], n, p) == pytest.approx(upto[at], abs=close)
    assert limits.chance_above(k[at], n, p) == pytest.approx(1 - upto[at], abs=close)
    assert limits.chance_above(np.array([-1.0, n]), n, p).tolist() == [1.0, 0.0]
