"""The test that decides about a fit, and the published one beside it."""

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.core import Losses
from auditor.curves import (
    SAMPLE_SIZES,
    Gaussian,
    distance_test,
    fit_gaussian,
    fit_gaussian_pair,
    held_out_tests,
    partition,
    two_sample_ks,
)


def test_the_distance_is_scipys(rng):
    """The distance is that of SciPy's one-sample test, the p-value its asymptotic one at the effective size."""
    x = rng.normal(size=400)
    found = distance_test(x, Gaussian(0.1, 1.1), n_fit=400)
    expected = stats.kstest(x, stats.norm(0.1, 1.1).cdf)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p_value == pytest.approx(stats.kstwobign.sf(expected.statistic * np.sqrt(200)), rel=1e-9)


@pytest.mark.parametrize(("at", "distance"), [(2.0, 0), (3.0, 1), (1.0, 1)])
def test_a_point_mass_is_met_exactly(at, distance):
    """Equal held-out losses have no distance from their own point mass, and all of it from another."""
    assert distance_test(np.full(10, 2.0), Gaussian(at, 0.0), n_fit=10).statistic == distance


def test_parts_are_disjoint_and_random(rng):
    """The kept records and the parts are the whole sample, once each, and sorted losses are not cut in order."""
    values = np.arange(100.0)
    kept, parts = partition(values, (30, 20), rng=rng)
    assert [kept.size, *(part.size for part in parts)] == [50, 30, 20]
    assert np.sort(np.concatenate([kept, *parts])).tolist() == values.tolist()
    assert all(part.min() < 25 and part.max() > 75 for part in parts)


def test_both_tests_stand_side_by_side(rng):
    """One partition serves both tests: up to 10,000 records decide, up to 1,000 of them go into the published test."""
    small, _ = held_out_tests(rng.normal(size=101), fit_gaussian, rng=rng)
    large, _ = held_out_tests(rng.normal(size=30_000), fit_gaussian, rng=rng)
    assert (small.n, small.paper.n) == (50, 50)
    assert (large.n, large.paper.n) == (10_000, 1000)
    assert "two-sample" in large.paper.test
    assert "others" in large.test


@pytest.mark.parametrize("m", [1, 2, 7, 300, 1000])
@pytest.mark.parametrize("mean", [0.0, 0.02, 0.5, 9.0])
def test_the_published_test_is_scipys_two_sample_one(rng, m, mean):
    """The published test is SciPy's exact one between the held-out records and as many draws, with ties too."""
    law = Gaussian(mean, 1.0)
    held, draws = rng.normal(size=m), law.sample(m, np.random.default_rng(7))
    held[: m // 4] = draws[: m // 4]
    found = two_sample_ks(held, law, rng=np.random.default_rng(7))
    expected = stats.ks_2samp(held, draws, method="exact")
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)


def test_the_grid_changes_no_other_number():
    """Asking for more sample sizes leaves the fits, their tests and every later draw of the generator as they were."""
    draws = np.random.default_rng(5).normal(size=(2, 700))
    plain, more = np.random.default_rng(9), np.random.default_rng(9)
    first = fit_gaussian_pair(Losses(*draws), rng=plain)
    second = fit_gaussian_pair(Losses(*draws), rng=more, sample_sizes=SAMPLE_SIZES)
    assert first.member_grid is None
    assert second.member_grid.sample_sizes == (100, 200, 300)
    assert (first.member_fit, first.nonmember_fit) == (second.member_fit, second.nonmember_fit)
    assert plain.random() == more.random()


def test_the_grid_is_the_published_test_at_every_size(rng):
    """Every p-value is SciPy's between the first held-out records and as many draws, and the largest the one kept."""
    values, seed = rng.normal(size=4000), 11
    test, grid = held_out_tests(
        values, fit_gaussian, rng=np.random.default_rng(seed), sample_sizes=SAMPLE_SIZES
    )
    again = np.random.default_rng(seed)
    kept, (held,) = partition(values, (2000,), rng=again)
    law, (other,) = fit_gaussian(kept), again.spawn(1)
    expected = [stats.ks_2samp(held[:size], law.sample(size, other)).pvalue for size in SAMPLE_SIZES[:-1]]
    assert grid.p_values[0][:-1] == pytest.approx(expected)
    assert grid.p_values[0][-1] == test.paper.p_value
    assert (grid.components, grid.sample_sizes) == ((1,), tuple(range(100, 1001, 100)))
    assert grid.choice_p_values == (test.p_value,)


def test_every_audit_keeps_the_grid(rng):
    """Without mixtures too the details hold Figure 6 for one normal, in the keys of the mixture's; few records one column."""
    for records, sizes in ((700, [100, 200, 300]), (20, [10])):
        losses = Losses(member=rng.normal(-1, 1, records), nonmember=rng.normal(size=records))
        grid = auditor.audit(losses).estimate("epsilon_star.gaussian").details["fit"]["grid"]
        for side in ("member", "nonmember"):
            assert set(grid[side]) == {"components", "sample_sizes", "p_values", "choice_p_values"}
            assert (grid[side]["components"], grid[side]["sample_sizes"]) == ([1], sizes)
            assert len(grid[side]["p_values"][0]) == len(sizes)
