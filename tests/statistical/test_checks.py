"""The trust checks raise false alarms as rarely as they say, and find what they are for: seeded simulations.

The sizes here suit CI; ``--long`` repeats the runs at full size.
"""

import numpy as np
import pytest
from simulation import seldom

from auditor import checks
from auditor.core import Losses, Melded, PerGroup, RankGrid, Status
from auditor.estimators.twins import twins
from auditor.records import Features

LEVEL = 0.01  # of every check here


def skewed(rng, n):
    """Columns of five values, of heavy tails, and of mostly zeros."""
    zeros = np.where(rng.random((n, 2)) < 0.8, 0.0, rng.random((n, 2)))
    return np.column_stack([rng.integers(0, 5, n), rng.standard_cauchy(n), zeros])


def normal(columns):
    """So many normal columns."""
    return lambda rng, n: rng.normal(size=(n, columns))


# Numbers of records, what draws them, and how often each member occurs: copies within the members are no shift either.
SHIFTLESS = {
    "50 each": (50, 50, normal(5), 1),
    "50 and 400": (50, 400, normal(5), 1),
    "one column of five values": (150, 150, lambda rng, n: rng.integers(0, 5, (n, 1)), 1),
    "ties and tails": (200, 100, skewed, 1),
    "natural twins": (150, 300, lambda rng, n: rng.integers(0, 6, (n, 2)), 1),
    "more columns than records": (60, 60, normal(200), 1),
    "members twice": (100, 100, normal(4), 2),
    "members five times": (100, 100, normal(4), 5),
}


@pytest.mark.parametrize("case", SHIFTLESS)
def test_shift_raises_few_false_alarms(simulated, case):
    """Two samples of one population are distinguished in at most 1% of the runs, however small, tied or unbalanced."""
    n1, n0, draw, copies = SHIFTLESS[case]

    def alarm(rng):
        features = Features(np.repeat(draw(rng, n1), copies, axis=0), draw(rng, n0))
        return checks.shift(features, rng=rng).status is Status.FAIL

    assert seldom(simulated(alarm, seed=11, runs=(8, 600)), LEVEL)


def test_confidence_that_is_not_masked_raises_few_questions(simulated):
    """Lower losses throughout, at the accuracy where right and wrong answers tell most of that, and no difference at all."""

    def asked(rng):
        pairs = [(rng.normal(-shift, 1, 1000), rng.normal(0, 1, 1000)) for shift in (0.0, 0.3)]
        found = [checks.masking(Losses(*pair, correct=tuple(side < 0 for side in pair))) for pair in pairs]
        return [check.status is Status.UNKNOWN for check in found]

    assert seldom(simulated(asked, seed=31, runs=(100, 5000)), LEVEL)


@pytest.mark.parametrize(("n", "least"), [(1000, 0.75), pytest.param(300, 0.15, marks=pytest.mark.long)])
def test_shift_finds_a_third_of_a_standard_deviation(simulated, n, least):
    """A shift of 0.3 standard deviations in one of five columns is found in most runs at n = 1,000 each."""

    def found(rng):
        features = Features(rng.normal([0.3, 0, 0, 0, 0], 1, (n, 5)), rng.normal(size=(n, 5)))
        return checks.shift(features, rng=rng).status is Status.FAIL

    assert simulated(found, seed=14, runs=(6, 200)).mean() >= least


def test_the_placebo_raises_few_false_alarms(simulated):
    """A reference model that treats the groups alike is alleged to separate them in at most 1% of the runs."""

    def alarm(rng):
        losses = Losses(member=rng.gamma(2, 1, 200), nonmember=rng.gamma(2, 1, 300))
        return checks.placebo(losses, delta=0.0).status is Status.FAIL

    assert seldom(simulated(alarm, seed=15, runs=(60, 3000)), LEVEL)


@pytest.mark.parametrize("law", ["normal", "five values"])
def test_the_self_test_raises_few_false_alarms(simulated, law):
    """The rule nearest to its level passes its own test on independent records in at least 99% of the runs."""

    def alarm(rng):
        losses = Losses(
            *(rng.normal(size=n) if law == "normal" else rng.integers(0, 5, n) for n in (200, 300))
        )
        rule = RankGrid(interval=Melded())
        found = checks.label_shuffle(losses, delta=0.0, rule=rule, rng=rng, shuffles=60)
        return found.status is Status.FAIL

    assert seldom(simulated(alarm, seed=16, runs=(4, 200)), LEVEL)


def test_an_overlap_of_four_in_a_thousand_is_found(simulated):
    """Of 20,000 non-members, 80 copied from the members are found beside 200 natural twins."""

    def found(rng):
        pooled = rng.permutation(np.append(np.arange(39_600), np.repeat(np.arange(39_600, 39_800), 2)))
        member, nonmember = pooled[:20_000], pooled[20_000:]
        nonmember = np.append(nonmember, rng.choice(member, 80, replace=False))
        return twins(PerGroup(member, nonmember)).p_more < LEVEL

    assert simulated(found, seed=18, runs=(20, 20)).sum() >= 19
