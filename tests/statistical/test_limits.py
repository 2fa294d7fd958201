"""Limits beyond two binomial ones hold their level: one limit for a ratio, and random subsets of a finite training set.

The sizes here suit CI; ``--long`` repeats them at ten times the size.
"""

import math

import numpy as np
import pytest
from calibration import LAWS, set_epsilon
from scipy import stats
from simulation import ALPHA, at_most, runs_for

from auditor.core import (
    Census,
    ClopperPearson,
    FixedThreshold,
    Jeffreys,
    Katz,
    Losses,
    Melded,
    RankGrid,
    Split,
    Subset,
)
from auditor.estimators import certified, clopper_pearson, confusion_bound, tpr_at_fpr

MELDED = RankGrid(interval=Melded())


# --- One limit for the ratio -------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(500, 700), (5000, 60), (60, 5000)])
@pytest.mark.parametrize("values", [0, 6])
def test_melding_raises_no_false_alarms(request, sizes, values):
    """On identical laws, tied or not, the melded bound is above 0 in at most 5% of the runs, in unequal groups too."""
    rng, runs, alarms = np.random.default_rng(1), runs_for(request, 300, 5000), 0
    draw = lambda n: rng.integers(0, values, n) + 0.0 if values else rng.random(n)  # noqa: E731
    for _ in range(runs):
        losses = Losses(member=draw(sizes[0]), nonmember=draw(sizes[1]))
        alarms += clopper_pearson(losses, delta=1e-5, rule=MELDED).value > 0
    assert at_most(alarms, runs)


@pytest.mark.parametrize("sizes", [(1000, 1000), (10_000, 100)])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_melding_covers_where_many_ranks_attain_the_truth(request, sizes, delta):
    """Where TPR = e FPR + delta on a whole range of thresholds, the melded bound exceeds 1 in at most 5% of the runs."""
    # The members' distribution function is delta + e F0 on FPR <= 0.25: an atom below everything, then e times as dense.
    rng, runs, over, edge = np.random.default_rng(2), runs_for(request, 250, 4000), 0, 0.25
    low = edge * math.e
    truth = max(1.0, math.log((1 - edge - delta) / (1 - delta - low)))
    for _ in range(runs):
        u = rng.random(sizes[0])
        beyond = edge + (1 - edge) * rng.random(sizes[0])
        member = np.where(u < delta, -1.0, np.where(u < delta + low, (u - delta) / math.e, beyond))
        losses = Losses(member=member, nonmember=rng.random(sizes[1]))
        over += clopper_pearson(losses, delta=delta, rule=MELDED).value > truth
    assert at_most(over, runs)


@pytest.mark.parametrize("sizes", [(2, 2), (5, 20), (20, 5)])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_melding_holds_with_few_records(request, sizes, confidence):
    """With a handful of records at low confidence the melded bound on randomised response keeps its level."""
    rng, runs, over = np.random.default_rng(3), runs_for(request, 250, 4000), 0
    law = LAWS[1]
    for _ in range(runs):
        losses = Losses(member=law.member(rng, sizes[0]), nonmember=law.nonmember(rng, sizes[1]))
        found = clopper_pearson(losses, delta=0.05, confidence=confidence, rule=MELDED)
        over += found.value > law.epsilon(0.05)
    assert at_most(over, runs, level=1 - confidence)


@pytest.mark.parametrize(
    ("k", "n0", "n1", "epsilon", "delta"), [(3, 200, 3000, 1.5, 0.0), (0, 50, 2000, 1.0, 0.1)]
)
def test_the_level_of_one_rank_is_exact(request, k, n0, n1, epsilon, delta):
    """At the boundary the p-value of one rank is uniform: at most 5% fall below 0.05, and far more than 2.5%."""
    rng, runs = np.random.default_rng(4), runs_for(request, 4000, 40_000)
    rate = np.minimum(1.0, math.exp(epsilon) * rng.beta(k + 1, n0 - k, runs) + delta)
    hits = rng.binomial(n1, rate)
    seen, place = np.unique(hits, return_inverse=True)
    found = certified.p_value(epsilon, certified.Ranked(np.full(seen.size, k), n0, seen, n1), delta=delta)
    below = int(np.sum(found[place] <= ALPHA))
    assert at_most(below, runs)
    assert not at_most(below, runs, level=ALPHA / 2)


# --- A random subset of a finite training set ----------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("rule", [RankGrid(interval=ClopperPearson()), None, Split()])
@pytest.mark.parametrize("times", [1.0, 1.3, 4.0])
def test_a_subset_bound_covers_its_training_set(request, law, rule, times):
    """Drawn without repetition from one training set, the bound stays below that set's own epsilon."""
    rng, runs, over, n, delta = np.random.default_rng(5), runs_for(request, 60, 1500), 0, 120, 0.02
    training = law.member(rng, int(times * n))
    truth = set_epsilon(training, law, delta=delta)
    at = rule or FixedThreshold(law.middle)
    for _ in range(runs):
        losses = Losses(member=rng.choice(training, n, replace=False), nonmember=law.nonmember(rng, 2 * n))
        found = clopper_pearson(losses, delta=delta, members=Subset(of=training.size), rule=at)
        over += found.value > truth
    assert at_most(over, runs)


def test_a_subset_at_its_least_favourable_threshold(request):
    """One threshold at a low confidence, where little is given away: hypergeometric limits keep it, a census does not."""
    rng, runs, n, law = np.random.default_rng(6), runs_for(request, 400, 5000), 60, LAWS[0]
    training, confidence = law.member(rng, 120), 0.5
    truth = max(math.log(np.mean(training <= 0) / 0.5), math.log(0.5 / np.mean(training > 0)), 0.0)
    over = {"subset": 0, "census": 0}
    for _ in range(runs):
        losses = Losses(member=rng.choice(training, n, replace=False), nonmember=law.nonmember(rng, 5000))
        for name, members in (("subset", Subset(of=120)), ("census", Census())):
            found = clopper_pearson(
                losses, delta=0.0, confidence=confidence, members=members, rule=FixedThreshold(0.0)
            )
            over[name] += found.value > truth + 1e-9
    assert at_most(over["subset"], runs, level=1 - confidence)
    assert over["census"] > over["subset"]


@pytest.mark.parametrize("times", [1.0, 1.5, 5.0])
def test_tpr_at_fpr_covers_a_training_set(request, times):
    """The hypergeometric limit of the TPR is below the training set's own TPR at that threshold, and the FPR is kept."""
    rng, runs, broken, n = np.random.default_rng(7), runs_for(request, 400, 5000), 0, 150
    training = rng.normal(-1, 1, int(times * n))
    for _ in range(runs):
        losses = Losses(member=rng.choice(training, n, replace=False), nonmember=rng.normal(size=300))
        found = tpr_at_fpr(losses, rate=0.1, members=Subset(of=training.size))
        threshold = losses.sorted_nonmember[found.details["rank"]]
        # The limit is a count over the training set's size: compare with half a record to spare.
        short = np.mean(training < threshold) < found.lower - 0.5 / training.size
        broken += stats.norm.cdf(threshold) > 0.1 or short
    assert at_most(broken, runs)


def test_a_subset_taken_for_a_census_is_caught(request):
    """The simulation can fail: taking a small random subset for the whole training set breaks the level."""
    rng, runs, over, law = np.random.default_rng(8), runs_for(request, 200, 2000), 0, LAWS[0]
    training = law.member(rng, 4000)
    truth = set_epsilon(training, law, delta=0.02)
    for _ in range(runs):
        losses = Losses(member=rng.choice(training, 100, replace=False), nonmember=law.nonmember(rng, 4000))
        over += clopper_pearson(losses, delta=0.02, members=Census()).value > truth
    assert not at_most(over, runs)


# --- Approximate limits --------------------------------------------------------------------------------


def miss_rate(interval, *, sizes, rates):
    """How often a bound exceeds the truth at one threshold, summed over all counts that are not improbable."""
    (n1, n0), (p1, p0) = sizes, rates
    truth = max(math.log(p1 / p0), math.log((1 - p0) / (1 - p1)))
    laws = [stats.binom(n, p) for n, p in ((n1, p1), (n0, p0))]
    ranges = [range(int(law.ppf(1e-6)), int(law.isf(1e-6)) + 1) for law in laws]
    return sum(
        laws[0].pmf(x) * laws[1].pmf(y)
        for x in ranges[0]
        for y in ranges[1]
        if confusion_bound(x, n1, y, n0, delta=0.0, interval=interval) > truth + 1e-12
    )


@pytest.mark.parametrize(("interval", "rates"), [(Katz(), (0.0547, 0.0547)), (Jeffreys(), (0.834, 0.0834))])
def test_approximate_limits_deserve_their_label(interval, rates):
    """With 1000 members and 30 non-members each approximate bound misses in over 6% of all outcomes, the exact one in 5%."""
    assert miss_rate(interval, sizes=(1000, 30), rates=rates) > 0.06
    assert miss_rate(ClopperPearson(), sizes=(1000, 30), rates=rates) <= ALPHA
