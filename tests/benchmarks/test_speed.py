"""Speed and memory as ratios within one run: ``python -m pytest tests/benchmarks --long -s`` prints and holds them.

Times are processor time, all threads counted, the best of several tries on each side: a busy machine changes little.
"""

import tracemalloc

import numpy as np
import pytest
from command_line import printed
from oracles import best_threshold_epsilon, epsilon_on_a_grid
from stopwatch import best_time

import auditor
from auditor.core import Losses, Melded, Mixture, RankGrid
from auditor.curves import Gaussian, fit_mixture_pair
from auditor.estimators import clopper_pearson, gaussian_supremum, parametric
from auditor.estimators.betting import Bets, grid_lines
from auditor.estimators.exact_test import CalibratedTest, Hits, Statistic
from auditor.report import site
from auditor.scores import Population, References, rmia

pytestmark = pytest.mark.long


@pytest.fixture
def million(rng):
    """A million losses in each group."""
    return rng.gamma(2, 5, 1_000_000), rng.gamma(2.2, 5, 1_000_000)


SORTS = {"plain": 6, "coins": 10, "groups": 10, "people": 25}


@pytest.mark.parametrize("kind", SORTS)
def test_an_audit_costs_a_few_sorts(rng, million, kind, told):
    """audit() on 1e6 + 1e6 losses takes so many times a stable np.sort of both, which no vector instructions speed up."""
    options, columns = {}, {}
    if kind == "coins":
        options["split"] = auditor.RandomSplit()
    elif kind == "groups":
        columns["group"] = [rng.choice([f"region {i}" for i in range(10)], 1_000_000) for _ in range(2)]
    elif kind == "people":
        columns["person"] = [
            np.char.add(side, rng.integers(0, 500_000, 1_000_000).astype(str)) for side in ("m", "n")
        ]
    few = {name: [column[:1000] for column in pair] for name, pair in columns.items()}
    auditor.audit(auditor.Losses(million[0][:1000], million[1][:1000], **few), **options)  # imports
    by_sort = best_time(lambda: [np.sort(group, kind="stable") for group in million], 5)
    # A fresh value each time: the sorted copies are cached on it.
    by_audit = best_time(lambda: auditor.audit(auditor.Losses(*million, **columns), **options), 3)
    told(f"audit/sort, {kind}: {by_audit / by_sort:.1f}")
    assert by_audit <= SORTS[kind] * by_sort


def test_a_small_audit_costs_little_more_than_its_bound(rng, told):
    """audit() on 1,000 + 1,000 losses takes at most 8 times the exact p-value of one epsilon, the costliest single step."""
    groups = rng.normal(-0.3, 1, 1000), rng.normal(0, 1, 1000)
    auditor.audit(auditor.Losses(*groups))
    by_audit = best_time(lambda: auditor.audit(auditor.Losses(*groups)), 9)
    law = Statistic(1000, 1000, delta=0.0, alpha=0.05)
    by_p_value = best_time(lambda: CalibratedTest(Hits.of(Losses(*groups)), law).p_value(0.0), 9)
    told(f"audit/p-value: {by_audit / by_p_value:.1f}")
    assert by_audit <= 8 * by_p_value


def test_an_audit_needs_little_memory(million, told):
    """audit() on 1e6 + 1e6 losses allocates at most 6 times the input at its peak."""
    auditor.audit(auditor.Losses(million[0][:1000], million[1][:1000]))
    losses = auditor.Losses(*million)
    tracemalloc.start()
    auditor.audit(losses)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    told(f"peak/input: {peak / 16e6:.2f}")
    assert peak <= 6 * 16e6


def test_the_supremum_against_the_papers_grid(told):
    """One exact Epsilon* is at least 500 times faster than two million thresholds, and right where they are not."""
    laws, delta = ((0.0, 1.0), (1.0, 1.2)), 1e-5
    exact = lambda: gaussian_supremum(Gaussian(*laws[0]), Gaussian(*laws[1]), delta=delta, clip=delta)  # noqa: E731
    by_grid = best_time(lambda: epsilon_on_a_grid(*laws, delta, delta), 3)
    by_root = min(best_time(exact, 50) for _ in range(3))
    truth = best_threshold_epsilon(*laws, delta, delta)
    grid = epsilon_on_a_grid(*laws, delta, delta)
    error = abs(grid / truth - 1)
    told(f"grid/exact: {by_grid / by_root:.0f}, the grid's relative error: {error:.1e}")
    assert by_grid >= 500 * by_root
    assert exact().value == pytest.approx(truth, rel=1e-9)
    assert abs(grid / truth - 1) > 1e-9


def test_importing_is_light(told):
    """``import auditor`` takes at most twice as long as ``import numpy`` alone, the median of nine fresh processes."""

    def median(statement):
        code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        return sorted(float(printed(code)) for _ in range(9))[4]

    with_auditor, alone = median("import auditor"), median("import numpy")
    extra = (with_auditor - alone) * 1000
    told(f"import auditor/import numpy: {with_auditor / alone:.2f}, {extra:.0f} ms more")
    assert with_auditor <= 2 * alone


@pytest.mark.parametrize("rule", [RankGrid(), RankGrid(interval=Melded())])
def test_the_rank_grid_costs_at_most_three_sorts(million, rule, told):
    """From 1e6 + 1e6 raw losses to the bound, checks and sorting included, takes at most 3 times a stable np.sort of both."""
    # A fresh value each time: the sorted copies are cached on it.
    bound = lambda: clopper_pearson(Losses(*million), delta=1e-5, rule=rule)  # noqa: E731
    assert bound().value > 0
    by_sort = best_time(lambda: [np.sort(group, kind="stable") for group in million], 9)
    by_bound = best_time(bound, 9)
    told(f"{type(rule.interval).__name__}/sort: {by_bound / by_sort:.2f}")
    assert by_bound <= 3 * by_sort


def test_rmia_costs_a_few_sorts(rng, million, told):
    """RMIA on 1e6 + 1e6 records against 1e6 takes at most 20 times np.sort of the three arrays: no pair is compared."""
    losses = Losses(*million, scale="cross-entropy")
    own = rng.exponential(1.5, (2, 1_000_000))
    population = Population(loss=own[0], reference=own[1], scale="cross-entropy")
    step = rmia(References(*(rng.exponential(1.5, (2, 1_000_000)))), population=population)
    by_sort = best_time(lambda: [np.sort(values) for values in (*million, own[0])], 5)
    by_rmia = best_time(lambda: step(losses), 3)
    told(f"RMIA/sort: {by_rmia / by_sort:.1f}")
    assert by_rmia <= 20 * by_sort


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_sweep_of_twenty_components_takes_under_a_minute(rng, told, size):
    """Mixtures of 1 to 20 components, chosen, tested and turned into Epsilon*, take under 60 seconds of one core."""

    def draw():
        return np.where(rng.random(size) < 0.3, rng.gamma(2, 1, size), rng.normal(4, 1, size))

    losses, found = Losses(member=draw(), nonmember=draw()), []

    def sweep():
        found.append(parametric(fit_mixture_pair(losses, choice=Mixture(20), rng=rng), delta=1e-5))

    spent = best_time(sweep, 1)
    told(f"{size} + {size}: {spent:.1f} s")
    assert found[0].value is not None
    assert spent < 60


def test_a_folder_again_draws_nothing(rng, tmp_path, told):
    """A folder of unchanged results costs at most a fifth of its first report."""
    for place in range(12):
        losses = auditor.Losses(rng.normal(-1, 1, 200), rng.normal(0, 1, 200))
        auditor.audit(losses, model=f"Model {place}").to_json(tmp_path / f"{place}.json")
    report = lambda name: lambda: site(tmp_path, tmp_path / name)  # noqa: E731
    report("imports")()
    first, again = best_time(report("public"), 1), best_time(report("public"), 3)
    told(f"first/again: {first / again:.1f}")
    assert again <= first / 5


def test_sequential_evidence_costs_little_more_than_sorting(told, rng):
    """The bets on 50,000 pairs of runs take at most 200 times as long as sorting them, and ten times those of 2,500 pairs."""
    lines = grid_lines(1e-5)
    pairs = rng.normal([[-1.0], [0.0]], 1, (2, 50_000))
    by_sort = best_time(lambda: np.sort(pairs, kind="stable"), 5)
    by_bets, few = (
        best_time(lambda part=part: Bets(lines).add(*part), 3) for part in (pairs, pairs[:, :2500])
    )
    told(f"bets/sort: {by_bets / by_sort:.0f}, 50,000 pairs/2,500: {by_bets / few:.1f}")
    assert by_bets <= 200 * by_sort
    assert by_bets <= 10 * few
