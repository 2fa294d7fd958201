"""Certified bounds: limits, ceilings and counts against published values and an oracle."""

import numpy as np
import pytest
from oracles import exact_binomial_upper
from statsmodels.stats.proportion import proportion_confint

from auditor.choices import Census, FixedThreshold, RankGrid, Sample, Split
from auditor.errors import InputError
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.estimators.clopper_pearson import clopper_pearson, confusion_bound
from auditor.estimators.rank_grid import ranks
from auditor.values import Losses


@pytest.mark.parametrize(
    ("k", "n", "alpha"), [(0, 20, 0.05), (3, 50, 1e-3), (49, 50, 0.025), (50, 50, 0.05), (2, 30, 1e-14)]
)
def test_limits_against_the_definition(k, n, alpha):
    """Both limits solve the binomial tail equation exactly, far into the tail too."""
    assert upper_limit(k, n, alpha) == pytest.approx(exact_binomial_upper(k, n, alpha), rel=1e-9)
    assert lower_limit(n - k, n, alpha) == pytest.approx(1 - exact_binomial_upper(k, n, alpha), rel=1e-9)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (5, 1000), (950, 1000), (1000, 1000)])
def test_limits_against_statsmodels(k, n):
    """The two-sided limits equal statsmodels' 'beta' method."""
    low, high = proportion_confint(k, n, alpha=0.05, method="beta")
    assert lower_limit(k, n, 0.025) == pytest.approx(low, rel=1e-12)
    assert upper_limit(k, n, 0.025) == pytest.approx(high, rel=1e-12)


def test_limit_references():
    """U(0;1000,.05), L and U(5;1000,.025), L(950;1000,.025) as in the design's reference values."""
    assert upper_limit(0, 1000, 0.05) == pytest.approx(0.00299125, abs=5e-9)
    assert lower_limit(5, 1000, 0.025) == pytest.approx(0.00162542, abs=5e-9)
    assert upper_limit(5, 1000, 0.025) == pytest.approx(0.01162947, abs=5e-9)
    assert lower_limit(950, 1000, 0.025) == pytest.approx(0.93460951, abs=5e-9)


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
    assert confusion_bound(tp, p, fp, n, delta=delta) == pytest.approx(expected, abs=5e-7)


def test_backpropagation_clipping_case():
    """Tramer et al. 2022: TPR 4922/1e5, FPR 174/1e5, 5e-11 a side: 2.795 against a claim of 0.21."""
    bound = confusion_bound(4922, 100_000, 174, 100_000, delta=1e-5, confidence=1 - 1e-10)
    assert upper_limit(174, 100_000, 5e-11) == pytest.approx(0.00274455, abs=5e-9)
    assert lower_limit(4922, 100_000, 5e-11) == pytest.approx(0.04491796, abs=5e-9)
    assert bound == pytest.approx(2.795000, abs=5e-6)


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
    by_grid = clopper_pearson(losses, delta=0.0)
    by_threshold = clopper_pearson(losses, delta=0.0, rule=FixedThreshold(0.5))
    assert by_grid.details["ceiling"] == pytest.approx(grid, abs=1e-6)
    assert by_threshold.details["ceiling"] == pytest.approx(one_threshold, abs=1e-6)
    assert by_grid.value == pytest.approx(by_grid.details["ceiling"])
    assert by_threshold.value == pytest.approx(by_threshold.details["ceiling"])


def test_rank_grid_by_hand():
    """On 40 + 40 records the bound equals the union bound written out rank by rank."""
    rng = np.random.default_rng(5)
    member, nonmember = np.sort(rng.normal(-3, 1, 40)), np.sort(rng.normal(0, 1, 40))
    ks = [0, 1, 2, 3, 5, 8, 11, 17]
    assert ranks(40).tolist() == ks
    level = 0.05 / (2 * (len(ks) + len(ks)))
    best = 0.0
    for k in ks:
        hits = int(np.sum(member < nonmember[k]))
        best = max(best, np.log(max(lower_limit(hits, 40, level) - 1e-3, 1e-300) / upper_limit(k, 40, level)))
        hits = int(np.sum(nonmember > member[39 - k]))
        best = max(best, np.log(max(lower_limit(hits, 40, level) - 1e-3, 1e-300) / upper_limit(k, 40, level)))
    found = clopper_pearson(Losses(member=member, nonmember=nonmember), delta=1e-3)
    assert found.value == pytest.approx(best, rel=1e-12)


def test_mean_bound_references(rng):
    """The mean rank-grid bound, n = 1000 on N(-1,1)|N(0,1), is 1.326, and the split rule's 1.083 (design)."""

    def mean(rule):
        draws = [Losses(member=rng.normal(-1, 1, 1000), nonmember=rng.normal(0, 1, 1000)) for _ in range(300)]
        return np.mean([clopper_pearson(losses, delta=1e-5, rule=rule).value for losses in draws])

    assert mean(RankGrid()) == pytest.approx(1.326, abs=0.05)
    assert mean(Split()) == pytest.approx(1.083, abs=0.06)


def test_one_tail_spends_the_error_on_one_tail():
    """Asking for one tail raises the ceiling and never reports the other."""
    losses = Losses(member=np.zeros(1000), nonmember=np.ones(1000))
    both, lower = (
        clopper_pearson(losses, delta=0.0, rule=RankGrid(tails)).value for tails in ("both", "lower")
    )
    assert lower > both
    assert clopper_pearson(losses, delta=0.0, rule=RankGrid("upper")).details["tail"] == "upper"


@pytest.mark.parametrize("rule", [RankGrid(), FixedThreshold(1.0), FixedThreshold(0.5), Split()])
def test_equal_losses_give_exactly_zero(rule):
    """All-equal losses certify nothing under any rule, with no residue of rounding."""
    losses = Losses(member=np.ones(500), nonmember=np.ones(500))
    found = clopper_pearson(losses, delta=1e-5, rule=rule)
    assert (found.value, found.lower, found.upper) == (0.0, 0.0, None)


@pytest.mark.parametrize("function", [np.exp, lambda x: x**3, lambda x: 5 * x - 7])
def test_increasing_maps_change_nothing(rng, function):
    """The bound depends on the order of the losses only."""
    member, nonmember = rng.normal(-1, 1, 700), rng.normal(0, 1, 900)
    plain = clopper_pearson(Losses(member=member, nonmember=nonmember), delta=1e-5).value
    mapped = clopper_pearson(Losses(member=function(member), nonmember=function(nonmember)), delta=1e-5).value
    assert mapped == plain


def test_a_census_knows_the_members(rng):
    """A census gives a larger bound than a sample on the same separated data, and says what it compares."""
    losses = Losses(member=rng.normal(-2, 1, 2000), nonmember=rng.normal(0, 1, 2000))
    sample, census = (clopper_pearson(losses, delta=1e-5, **kind) for kind in ({}, {"members": Census()}))
    assert census.value > sample.value
    assert any("every training record was scored" in words for words in census.assumptions)


def test_a_census_never_divides_by_an_exact_zero():
    """In a census the FNR above the largest member is exactly 0, leakage or not: that rank is left out."""
    losses = Losses(member=np.linspace(0, 1, 400), nonmember=np.linspace(0, 1.2, 400))
    found = clopper_pearson(losses, delta=1e-5, members=Census())
    assert np.isfinite(found.value)
    assert np.isfinite(clopper_pearson(losses, delta=0.0, members=Census(), rule=FixedThreshold(1.1)).value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"delta": 1.0}, r"delta must lie in \[0, 1\), got 1"),
        ({"delta": -1e-9}, "delta must lie in"),
        ({"delta": 0.0, "confidence": 1.0}, r"confidence must lie in \(0, 1\), got 1"),
        ({"delta": 0.0, "confidence": 0.0}, "confidence must lie in"),
    ],
)
def test_bad_arguments_are_named(options, sentence):
    """Delta outside [0, 1) and confidence outside (0, 1) are refused by name."""
    with pytest.raises(InputError, match=sentence):
        clopper_pearson(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0]), **options)


def test_counts_that_do_not_fit_are_refused():
    """More hits than trials is an error that names the count."""
    with pytest.raises(InputError, match="trials for true_positives must be a whole number of 11 or more"):
        confusion_bound(11, 10, 0, 10, delta=0.0)


def test_too_few_records_to_split():
    """A split that leaves fewer than two records on a side is refused."""
    with pytest.raises(InputError, match="records on each side of a split"):
        clopper_pearson(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0]), delta=0.0, rule=Split())


def test_a_census_ceiling_is_never_passed():
    """With one missed member a census can show more than with none, and the ceiling allows for that."""
    losses = Losses(member=np.r_[np.zeros(9999), 5.0], nonmember=np.full(100, 3.0))
    found = clopper_pearson(losses, delta=0.0, members=Census(), rule=FixedThreshold(1.0))
    assert found.value == pytest.approx(found.details["ceiling"])


@pytest.mark.parametrize("rule", [RankGrid(), RankGrid("upper"), RankGrid("lower"), FixedThreshold(0.5)])
@pytest.mark.parametrize("members", [Census(), Sample()])
def test_two_records_are_enough_for_a_bound(rule, members):
    """The smallest groups have a bound and a ceiling, even where a census leaves a tail no rank at all."""
    found = clopper_pearson(
        Losses(member=[0.0, 0.1], nonmember=[1.0, 2.0]), delta=0.0, rule=rule, members=members
    )
    assert 0 <= found.value <= found.details["ceiling"] < 10
