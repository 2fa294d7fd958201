"""The difference of two audits covers the true one at its level, however the two depend on each other."""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import outside, result_of, seldom

from auditor.comparison import (
    Change,
    SameRecords,
    attack_change,
    compare_audits,
    differences,
    headline,
    mcnemar_interval,
)
from auditor.core import Census, Losses, Sample
from auditor.curves import count
from auditor.estimators import advantage, auc

N = 600


def result(member, nonmember, coverage=Sample()):  # noqa: B008 - a frozen value
    """A result with the two rows that have a difference, and what they rest on."""
    counts = count(Losses(member=member, nonmember=nonmember))
    kind = "census" if isinstance(coverage, Census) else "sample"
    data = {"n_member": len(member), "n_nonmember": len(nonmember), "members": kind, "unit": "record"}
    return result_of(data, advantage(counts, coverage=coverage), auc(counts))


def releases(rng, shifts, correlation):
    """Two audits of the same records whose losses have this correlation; members are lower by the shift of the release."""
    root = math.sqrt(1 - correlation**2)
    draws = []
    for _ in ("member", "nonmember"):
        first = rng.normal(size=N)
        draws.append((first, correlation * first + root * rng.normal(size=N)))
    return [
        result(member - shift, nonmember) for member, nonmember, shift in zip(*draws, shifts, strict=True)
    ]


def verdict(old, new, **options):
    """The difference of two results."""
    return headline(differences(old, new, **options)).verdict


def truth(name, shifts):
    """The true difference for unit normals: 2 Phi(s/2) - 1 for the advantage, Phi(s/sqrt 2) for the AUC."""
    at = {
        "advantage": lambda s: 2 * stats.norm.cdf(s / 2) - 1,
        "auc": lambda s: stats.norm.cdf(s / math.sqrt(2)),
    }
    return at[name](shifts[1]) - at[name](shifts[0])


@pytest.mark.parametrize("correlation", [0.0, 0.95, -1.0])
@pytest.mark.parametrize("shifts", [(0.3, 0.3), (0.3, 1.0), (3.5, 3.0)])
def test_the_difference_is_covered(simulated, correlation, shifts):
    """A true difference of either row lies outside its interval in at most 5% of the runs, under any dependence."""

    def missed(rng):
        return any(
            outside(truth(item.name, shifts), item)
            for item in differences(*releases(rng, shifts, correlation))
        )

    assert seldom(simulated(missed, seed=31, runs=(60, 3000)))


@pytest.mark.parametrize("correlation", [0.0, -0.95])
def test_worse_is_seldom_said_without_a_change(simulated, correlation):
    """With the same true leak in both releases `worse` is said in at most 2.5% of the runs, one of two sides."""

    def alarm(rng):
        return verdict(*releases(rng, (0.5, 0.5), correlation)) is Change.WORSE

    assert seldom(simulated(alarm, seed=32, runs=(60, 3000)), 0.025)


def test_two_censuses_without_a_leak_seldom_differ(simulated):
    """Two training sets of 500 and no leakage at all: a change is said in at most 5% of the runs.

    Intervals that take the members for known say one in about every second run, which the test sees.
    """

    def alarms(rng):
        pair = [result(rng.normal(size=500), rng.normal(size=20_000), Census()) for _ in range(2)]
        old, new = (item.estimate("advantage") for item in pair)
        return verdict(*pair) is not Change.NO_CHANGE_SHOWN, old.upper < new.lower or new.upper < old.lower

    said, known = simulated(alarms, seed=35, runs=(12, 500)).T
    assert seldom(said)
    assert not seldom(known)


def test_many_comparisons_hold_together(simulated):
    """Eight releases with the leak of the baseline: any of them is called changed in at most 5% of the runs."""

    def alarm(rng):
        first, *others = [result(rng.normal(-0.5, 1, N), rng.normal(size=N)) for _ in range(9)]
        return any(verdict(first, item, together=8) is not Change.NO_CHANGE_SHOWN for item in others)

    assert seldom(simulated(alarm, seed=36, runs=(20, 500)))


def test_an_order_is_seldom_shown_where_there_is_none(simulated):
    """Of six models that leak alike, any is put above another in at most 5% of the runs, whichever two are looked at."""

    def ordered(rng):
        audits = [result(rng.normal(-0.5, 1, N), rng.normal(size=N)) for _ in range(6)]
        found = compare_audits(audits).strategies
        return any(one.above(two) for one in found for two in found)

    assert seldom(simulated(ordered, seed=37, runs=(20, 1000)))


def test_a_large_change_is_found(simulated):
    """A rise of the true advantage from 0.12 to 0.45 is called worse in nearly every run at 600 records a group."""

    def found(rng):
        return verdict(*releases(rng, (0.3, 1.2), 0.5)) is Change.WORSE

    assert simulated(found, seed=34, runs=(20, 400)).mean() >= 0.95


# --- Record by record ---


def same(rng, shifts, correlation, sizes=(N, N)):
    """The losses of two releases on the same records, as those of `releases`."""
    root = math.sqrt(1 - correlation**2)
    first, own = ([rng.normal(size=n) for n in sizes] for _ in range(2))
    groups = [np.stack([x, correlation * x + root * y]) for x, y in zip(first, own, strict=True)]
    return SameRecords(groups[0] - np.array(shifts)[:, None], groups[1])


@pytest.mark.parametrize("chances", [(0.05, 0.05), (0.2, 0.12), (0.5, 0.5), (0.01, 0.0), (0.002, 0.001)])
@pytest.mark.parametrize("drawn", [40, 1400])
def test_mcnemars_limits_cover(simulated, chances, drawn):
    """2 (p+ - p-) lies outside the limits, on either side, in at most half of 5%, for any chances of the two changes."""
    truth = 2 * (chances[0] - chances[1])

    def missed(rng):
        gained, lost, _ = rng.multinomial(drawn, [*chances, max(0.0, 1 - sum(chances))])
        lower, upper = mcnemar_interval(int(gained), int(lost), drawn, alpha=0.05)
        return lower > truth, upper < truth

    assert seldom(simulated(missed, seed=41, runs=(1000, 20_000)), 0.025)


SHAPES = {
    "as they are": lambda groups, _: groups,
    "rounded": lambda groups, _: [np.round(group) for group in groups],
    "other scales": lambda groups, _: [np.stack([group[0], np.exp(group[1])]) for group in groups],
    "all lower": lambda groups, _: [group - np.array([[0.0], [3.0]]) for group in groups],
    "a tail of its own": lambda groups, rng: [groups[0] - 6 * (rng.random(groups[0].shape) < 0.1), groups[1]],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sizes", [(80, 80), (400, 400), (300, 2000)])
@pytest.mark.parametrize(("shift", "correlation"), [(0.0, 0.9), (2.5, 0.9)])
def test_releases_that_leak_alike_are_seldom_told_apart(simulated, shape, sizes, shift, correlation):
    """`Worse` and `better` are said in at most 2.5% each where both releases have one law, although each has thresholds."""

    def said(rng):
        found = SameRecords(*SHAPES[shape](same(rng, (shift, shift), correlation, sizes), rng))
        change = attack_change(found, alpha=0.05)
        return change.lower > 0, change.upper < 0

    assert seldom(simulated(said, seed=42, runs=(40, 4000)), 0.025)


@pytest.mark.parametrize(
    ("shifts", "correlation"), [((0.5, 0.75), 0.9), ((0.5, 0.62), 0.99), ((0.0, 0.25), 0.9)]
)
def test_pairs_see_what_results_do_not(simulated, shifts, correlation):
    """A rise that two results of 600 records a group show in hardly any run is shown record by record in most."""

    def found(rng):
        records = same(rng, shifts, correlation)
        results = [result(*pair) for pair in zip(*records, strict=True)]
        return attack_change(records, alpha=0.05).lower > 0, verdict(*results) is Change.WORSE

    paired, apart = simulated(found, seed=43, runs=(20, 1000)).mean(axis=0)
    assert paired > 0.5
    assert apart < 0.2
