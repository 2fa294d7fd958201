"""The trust checks raise false alarms as rarely as they say, and find what they are for: seeded simulations.

The sizes here suit CI; ``--long`` repeats the runs at full size.
"""

import numpy as np
import pytest
from scipy import stats
from simulation import at_most, runs_for

from auditor import checks
from auditor.checks import twins
from auditor.checks.populations import _blocks, _linear
from auditor.core import FixedThreshold, Losses, Melded, PerGroup, RankGrid, Split, Status
from auditor.curves import count
from auditor.estimators import auc
from auditor.records import Features

LEVEL = 0.01  # of every check here


def alarms(check, runs):
    """How many of the runs fail."""
    return sum(check().status is Status.FAIL for _ in range(runs))


def skewed(rng, n):
    """Columns of five values, of heavy tails, and of mostly zeros."""
    zeros = np.where(rng.random((n, 2)) < 0.8, 0.0, rng.random((n, 2)))
    return np.column_stack([rng.integers(0, 5, n), rng.standard_cauchy(n), zeros])


SHIFTLESS = {
    "50 each": (50, 50, lambda rng, n: rng.normal(size=(n, 5))),
    "50 and 400": (50, 400, lambda rng, n: rng.normal(size=(n, 5))),
    "one column of five values": (150, 150, lambda rng, n: rng.integers(0, 5, (n, 1))),
    "ties and tails": (200, 100, skewed),
    "natural twins": (150, 300, lambda rng, n: rng.integers(0, 6, (n, 2))),
    "more columns than records": (60, 60, lambda rng, n: rng.normal(size=(n, 200))),
}


@pytest.mark.parametrize("case", SHIFTLESS)
def test_shift_raises_few_false_alarms(request, case):
    """Two samples of one population are told apart in at most 1% of the runs, however small, tied or unbalanced."""
    rng, runs = np.random.default_rng(11), runs_for(request, 8, 600)
    n1, n0, draw = SHIFTLESS[case]
    found = alarms(lambda: checks.shift(Features(draw(rng, n1), draw(rng, n0)), rng=rng), runs)
    assert at_most(found, runs, LEVEL)


@pytest.mark.parametrize("copies", [2, 5])
def test_copies_raise_few_false_alarms(request, copies):
    """Records that each occur several times within the members only are no shift either."""
    rng, runs = np.random.default_rng(12), runs_for(request, 6, 600)

    def draw():
        member = np.repeat(rng.normal(size=(100, 4)), copies, axis=0)
        return checks.shift(Features(member, rng.normal(size=(100, 4))), rng=rng)

    assert at_most(alarms(draw, runs), runs, LEVEL)


def test_ordinary_cross_fitting_raises_too_many(request):
    """The simulation can fail: scored by classifiers that saw all other blocks, 1% becomes 3% or more."""
    rng, runs = np.random.default_rng(13), runs_for(request, 250, 4000)
    member, found = np.arange(450) < 50, 0
    for _ in range(runs):
        values, score = rng.normal(size=(450, 5)), np.empty(450)
        blocks = _blocks(member, rng)
        for turn, held in enumerate(blocks):
            seen = np.concatenate(blocks[:turn] + blocks[turn + 1 :])
            score[held] = stats.rankdata(_linear(values[seen], member[seen], values[held])) / held.size
        area = auc(count(Losses(member=-score[member], nonmember=-score[~member])), confidence=1 - 2 * LEVEL)
        found += area.lower > 0.5
    assert not at_most(found, runs, LEVEL)


@pytest.mark.parametrize(("n", "least"), [(1000, 0.75), pytest.param(300, 0.15, marks=pytest.mark.long)])
def test_shift_finds_a_third_of_a_standard_deviation(request, n, least):
    """A shift of 0.3 standard deviations in one of five columns is found in most runs at n = 1,000 each."""
    rng, runs = np.random.default_rng(14), runs_for(request, 6, 200)
    move = [0.3, 0, 0, 0, 0]
    found = alarms(
        lambda: checks.shift(Features(rng.normal(move, 1, (n, 5)), rng.normal(size=(n, 5))), rng=rng), runs
    )
    assert found >= least * runs


@pytest.mark.parametrize("rule", [RankGrid(), RankGrid(interval=Melded()), FixedThreshold(0.3), Split()])
def test_the_placebo_raises_few_false_alarms(request, rule):
    """A reference model that treats the groups alike is alleged to separate them in at most 1% of the runs."""
    rng, runs = np.random.default_rng(15), runs_for(request, 100, 3000)

    def draw():
        return checks.placebo(
            Losses(member=rng.gamma(2, 1, 200), nonmember=rng.gamma(2, 1, 300)), delta=0.0, rule=rule
        )

    assert at_most(alarms(draw, runs), runs, LEVEL)


@pytest.mark.parametrize("law", ["normal", "five values"])
def test_the_self_test_raises_few_false_alarms(request, law):
    """The rule nearest to its level passes its own test on independent records in at least 99% of the runs."""
    rng, runs = np.random.default_rng(16), runs_for(request, 4, 200)
    laws = {"normal": lambda n: rng.normal(size=n), "five values": lambda n: rng.integers(0, 5, n) + 0.0}

    def draw():
        losses = Losses(member=laws[law](200), nonmember=laws[law](300))
        return checks.label_shuffle(losses, delta=0.0, rule=RankGrid(interval=Melded()), rng=rng, shuffles=60)

    assert at_most(alarms(draw, runs), runs, LEVEL)


@pytest.mark.parametrize(("n1", "n0"), [(3000, 3000), (5000, 500)])
@pytest.mark.parametrize("contents", [400, 50_000])
def test_natural_twins_raise_few_false_alarms(request, n1, n0, contents):
    """A random split is alleged to overlap, or to hold copies, in at most 1% of the runs each."""
    rng, runs = np.random.default_rng(17), runs_for(request, 150, 5000)
    more = fewer = 0
    for _ in range(runs):
        # Contents of very different frequency, from singletons to common values.
        pooled = np.floor(contents * rng.random(n1 + n0) ** 3)
        found = twins(PerGroup(pooled[:n1], pooled[n1:]))
        more += found.p_more < LEVEL
        fewer += found.p_fewer < LEVEL
    assert at_most(more, runs, LEVEL)
    assert at_most(fewer, runs, LEVEL)


def test_an_overlap_of_four_in_a_thousand_is_found():
    """Of 20,000 non-members, 80 copied from the members are found beside 200 natural twins."""
    rng, found = np.random.default_rng(18), 0
    for _ in range(20):
        pooled = rng.permutation(np.append(np.arange(39_600), np.repeat(np.arange(39_600, 39_800), 2)))
        member, nonmember = pooled[:20_000], pooled[20_000:]
        nonmember = np.append(nonmember, rng.choice(member, 80, replace=False))
        found += twins(PerGroup(member, nonmember)).p_more < LEVEL
    assert found >= 19
