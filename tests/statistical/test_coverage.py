"""Every bound and interval holds its level: seeded simulations, with the binomial's own tolerance.

The sizes here suit CI; ``--long`` repeats the null and coverage runs at ten times the size.
"""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import ALPHA, at_most, runs_for

from auditor.core import BernoulliSplit, Census, FixedThreshold, Losses, RandomSplit, RankGrid, Sample, Split
from auditor.curves import Gaussian, count, fit_gaussian, fit_gaussian_pair
from auditor.estimators import (
    advantage,
    auc,
    branch_lower_bound,
    clopper_pearson,
    gaussian,
    gaussian_supremum,
    one_run_bound,
    tpr_at_fpr,
)
from auditor.results import views

LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "five values": lambda rng, n: rng.integers(0, 5, n) + 0.0,
    "mostly one value": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rule", [RankGrid(), RankGrid("lower"), FixedThreshold(0.5), Split()])
def test_no_false_alarms_on_noise(request, law, rule):
    """On identical distributions a certified bound is above 0 in at most 5% of the runs, ties or not."""
    rng, runs = np.random.default_rng(1), runs_for(request, 600, 5000)
    alarms = 0
    for _ in range(runs):
        losses = Losses(member=LAWS[law](rng, 500), nonmember=LAWS[law](rng, 700))
        alarms += clopper_pearson(losses, delta=1e-5, rule=rule).value > 0
    assert at_most(alarms, runs)


@pytest.mark.long
def test_no_false_alarms_on_much_noise():
    """The rank grid holds its level at n = 1e4 too, where the best of all thresholds gives 13%."""
    rng = np.random.default_rng(2)
    draws = (Losses(member=rng.normal(size=10_000), nonmember=rng.normal(size=10_000)) for _ in range(2000))
    assert at_most(sum(clopper_pearson(losses, delta=1e-5).value > 0 for losses in draws), 2000)


def test_the_simulation_can_fail():
    """The best of all thresholds with normal-approximation limits, a popular default, is caught by the same test."""
    rng, alarms, runs = np.random.default_rng(3), 0, 100
    z = stats.norm.isf(ALPHA / 2)
    for _ in range(runs):
        counts = count(Losses(member=rng.normal(size=1000), nonmember=rng.normal(size=1000)))
        tpr, fpr = counts.tp_below / 1000, counts.fp_below / 1000
        low = tpr - z * np.sqrt(tpr * (1 - tpr) / 1000)
        high = fpr + z * np.sqrt(fpr * (1 - fpr) / 1000)
        alarms += bool(np.any(low > high))
    assert not at_most(alarms, runs)


def randomised_response(rng, n, epsilon):
    """Losses 0 or 1 whose separation is exactly epsilon: P[0] = e^eps/(1 + e^eps) for members, 1/(1 + e^eps) for others."""
    q = 1 / (1 + math.exp(-epsilon))
    return Losses(member=(rng.random(n) > q) + 0.0, nonmember=(rng.random(n) < q) + 0.0)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("rule", [RankGrid(), FixedThreshold(0.5), Split()])
def test_the_bound_covers_randomised_response(request, epsilon, rule):
    """On randomised response with a known epsilon the bound stays below it in at least 95% of the runs."""
    rng, runs = np.random.default_rng(4), runs_for(request, 600, 5000)
    over = sum(
        clopper_pearson(randomised_response(rng, 400, epsilon), delta=0.0, rule=rule).value > epsilon
        for _ in range(runs)
    )
    assert at_most(over, runs)


@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_the_bound_covers_a_continuous_truth(request, delta):
    """On two normals the rank grid stays below the largest epsilon of any threshold."""
    rng, runs = np.random.default_rng(5), runs_for(request, 600, 5000)
    # Uniform against a mixture has a bounded ratio, so the truth is finite at delta 0 too: TPR/FPR <= 1.8 + ...
    member = lambda n: np.where(rng.random(n) < 0.8, rng.random(n) * 0.5, 0.5 + rng.random(n) * 0.5)  # noqa: E731
    truth = math.log(max((0.8 - delta) / 0.5, (0.5 - delta) / 0.2))
    over = 0
    for _ in range(runs):
        losses = Losses(member=member(2000), nonmember=rng.random(2000))
        over += clopper_pearson(losses, delta=delta).value > truth
    assert at_most(over, runs)


def test_a_census_bound_covers_the_finite_training_set(request):
    """With the training set held fixed and known, the census bound stays below that set's own epsilon."""
    rng, runs = np.random.default_rng(6), runs_for(request, 600, 5000)
    member = np.sort(rng.normal(-1, 1, 300))
    tpr = np.arange(1, 301) / 300
    fpr = stats.norm.cdf(member)
    delta = 1e-3
    # Both ratios are largest just at a member loss; the last one, with its FNR of 0, is left out of the second.
    truth = max(np.max(np.log((tpr - delta) / fpr)), np.max(np.log((1 - fpr[:-1] - delta) / (1 - tpr[:-1]))))
    over = 0
    for _ in range(runs):
        losses = Losses(member=member, nonmember=rng.normal(size=400))
        over += clopper_pearson(losses, delta=delta, members=Census()).value > truth
    assert at_most(over, runs)


# --- Mechanism level ---------------------------------------------------------------------------------


def paired_response(rng, pairs, epsilon, delta):
    """Losses from an (epsilon, delta)-DP mechanism on which of two records is the member of each pair."""
    truthful = rng.random(pairs) < 1 / (1 + math.exp(-epsilon))
    revealed = rng.random(pairs) < delta
    level = (
        np.arange(pairs) * 10.0
    )  # pairs do not mix: ranks within a pair differ by one, or by two when revealed
    low, high = level, level + 1.0 + revealed
    right = truthful | revealed
    return np.where(right, low, high), np.where(right, high, low)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1e-3), (2.5, 1e-3)])
def test_random_pairs_cover_the_mechanism(request, epsilon, delta):
    """The one-run bound on random pairs exceeds a mechanism's known epsilon in at most 5% of the runs."""
    from auditor.estimators import steinke_bound

    rng, runs, over = np.random.default_rng(7), runs_for(request, 600, 5000), 0
    for _ in range(runs):
        member, nonmember = paired_response(rng, 300, epsilon, delta)
        correct = int(np.sum(member < nonmember))
        over += steinke_bound(bits=300, guesses=300, correct=correct, delta=delta, alpha=ALPHA) > epsilon
    assert at_most(over, runs)


@pytest.mark.parametrize("law", ["normal", "five values"])
@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.5)])
def test_one_run_raises_no_false_alarms(request, law, split):
    """A mechanism that ignores its data is refuted at no epsilon, in at least 95% of the runs."""
    rng, runs, alarms = np.random.default_rng(8), runs_for(request, 400, 4000), 0
    for _ in range(runs):
        losses = Losses(member=LAWS[law](rng, 200), nonmember=LAWS[law](rng, 200))
        alarms += one_run_bound(losses, split=split, delta=1e-5, rng=rng).value > 0
    assert at_most(alarms, runs)


@pytest.mark.parametrize(("inclusion", "epsilon"), [(0.8, 0.0), (0.8, 1.0), (0.3, 1.0), (0.5, 2.0)])
def test_inclusion_coins_cover_the_mechanism(request, inclusion, epsilon):
    """Randomised response on biased inclusion coins is epsilon-DP, and the bound exceeds it in at most 5% of the runs."""
    rng, runs, over = np.random.default_rng(9), runs_for(request, 400, 4000), 0
    for _ in range(runs):
        coin = rng.random(400) < inclusion
        says_in = coin ^ (rng.random(400) > 1 / (1 + math.exp(-epsilon)))
        loss = rng.random(400) + np.where(says_in, 0.0, 1.0)
        losses = Losses(member=loss[coin], nonmember=loss[~coin])
        # Coins that came out one in a thousand are refused: no value, no alarm.
        over += (
            one_run_bound(losses, split=BernoulliSplit(inclusion), delta=0.0, rng=rng).value or 0.0
        ) > epsilon
    assert at_most(over, runs)


def test_one_run_covers_through_the_pipeline_of_pairs(request):
    """A mechanism that reveals the member of a few records and noise for the rest is covered after random pairing."""
    # Each record's bit passes randomised response at epsilon: replacing one record changes two bits, so 2 epsilon.
    rng, runs, over, epsilon = np.random.default_rng(10), runs_for(request, 400, 4000), 0, 0.7
    for _ in range(runs):
        losses = randomised_response(rng, 300, epsilon)
        jitter = Losses(
            member=losses.member + rng.random(300) / 2, nonmember=losses.nonmember + rng.random(300) / 2
        )
        over += one_run_bound(jitter, split=RandomSplit(), delta=0.0, rng=rng).value > 2 * epsilon
    assert at_most(over, runs)


# --- Intervals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [(1.0, 1.0), (1.0, 1.2), (0.5, 0.8), (0.0, 1.0)])
@pytest.mark.parametrize("clipped", [False, True])
def test_the_branch_wise_bound_covers_on_normals(request, other, clipped):
    """On normal data the parametric lower bound is below the truth in at least about 95% of the runs (.94 on the clip)."""
    rng, runs, delta = np.random.default_rng(11), runs_for(request, 250, 2500), 1e-3
    clip = delta if clipped else 0.0
    truth = gaussian_supremum(Gaussian(0, 1), Gaussian(*other), delta=delta, clip=clip).value
    over = 0
    for _ in range(runs):
        laws = fit_gaussian(rng.normal(0, 1, 800)), fit_gaussian(rng.normal(*other, 800))
        found = gaussian_supremum(*laws, delta=delta, clip=clip)
        over += branch_lower_bound(found, *laws, sizes=(800, 800), confidence=0.95) > truth
    assert at_most(over, runs, level=0.06)


@pytest.mark.parametrize("other", [(0.0, 1.0), (1.0, 1.2)])
def test_the_branch_wise_bound_covers_in_a_census(request, other):
    """With the members' law known, the parametric bound is below that law's own Epsilon* against the population."""
    rng, runs, delta = np.random.default_rng(20), runs_for(request, 400, 4000), 1e-3
    members = fit_gaussian(rng.normal(0, 1, 500))
    truth = gaussian_supremum(members, Gaussian(*other), delta=delta, clip=delta).value
    over = 0
    for _ in range(runs):
        drawn = fit_gaussian(rng.normal(*other, 500))
        found = gaussian_supremum(members, drawn, delta=delta, clip=delta)
        over += branch_lower_bound(found, members, drawn, sizes=(math.inf, 500), confidence=0.95) > truth
    assert at_most(over, runs)


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.5])
@pytest.mark.parametrize("size", [60, 600])
def test_the_auc_interval_covers(request, shift, size):
    """The two-sided AUC interval covers Phi(shift/sqrt 2) in at least 95% of the runs, small and lopsided samples too."""
    rng, runs = np.random.default_rng(12), runs_for(request, 400, 4000)
    truth = stats.norm.cdf(shift / math.sqrt(2))
    missed = 0
    for _ in range(runs):
        found = auc(count(Losses(member=rng.normal(-shift, 1, size), nonmember=rng.normal(0, 1, size // 2))))
        missed += not found.lower <= truth <= found.upper
    assert at_most(missed, runs)


@pytest.mark.parametrize("census", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_advantage_interval_covers(request, census, shift):
    """The advantage interval covers the true largest gap in at least 95% of the runs."""
    rng, runs = np.random.default_rng(13), runs_for(request, 600, 5000)
    member = np.sort(rng.normal(-shift, 1, 200))
    if census:  # the members are the whole truth: the gap is attained at a member loss
        truth = max(0.0, float(np.max(np.arange(1, 201) / 200 - stats.norm.cdf(member))))
    else:
        truth = 2 * stats.norm.cdf(shift / 2) - 1
    missed = 0
    for _ in range(runs):
        drawn = member if census else rng.normal(-shift, 1, 200)
        options = {"members": Census()} if census else {}
        found = advantage(count(Losses(member=drawn, nonmember=rng.normal(size=300))), **options)
        missed += not found.lower <= truth <= found.upper
    assert at_most(missed, runs)


@pytest.mark.parametrize("rate", [0.1, 0.01])
def test_tpr_at_fpr_keeps_both_promises(request, rate):
    """In at least 95% of the runs the threshold's true FPR is within the rate and its true TPR above the limit."""
    rng, runs, broken = np.random.default_rng(14), runs_for(request, 400, 4000), 0
    for _ in range(runs):
        losses = Losses(member=rng.normal(-1, 1, 500), nonmember=rng.normal(0, 1, 1000))
        found = tpr_at_fpr(losses, rate=rate)
        threshold = losses.sorted_nonmember[found.details["rank"]]
        broken += stats.norm.cdf(threshold) > rate or stats.norm.cdf(threshold + 1) < found.lower
    assert at_most(broken, runs)


@pytest.mark.parametrize("census", [False, True])
def test_the_band_covers_the_whole_curve(request, census):
    """The plotted band holds the true trade-off curve everywhere at once in at least 95% of the runs."""
    rng, runs, broken = np.random.default_rng(15), runs_for(request, 150, 1500), 0
    grid = np.geomspace(1e-5, 0.9999, 400)
    fixed = rng.normal(-1, 1, 300)
    thresholds = stats.norm.ppf(grid)
    truth = np.mean(fixed[:, None] <= thresholds, axis=0) if census else stats.norm.cdf(thresholds + 1)
    for _ in range(runs):
        member = fixed if census else rng.normal(-1, 1, 300)
        losses = Losses(member=member, nonmember=rng.normal(0, 1, 400))
        low, high = views._band(losses, 0.95, Census() if census else Sample())
        below = np.array([max(y for x, y in zip(low.fpr, low.tpr, strict=True) if x <= f) for f in grid])
        above = np.array([min(y for x, y in zip(high.fpr, high.tpr, strict=True) if x >= f) for f in grid])
        broken += bool(np.any(truth < below - 1e-5) or np.any(truth > above + 1e-5))
    assert at_most(broken, runs)


# --- Few records, other confidences --------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(2, 2), (5, 20), (20, 5), (100, 10)])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize("census", [False, True])
def test_few_records_hold_every_level(request, sizes, confidence, census):
    """With a handful of tied records, at low confidence too, the bound exceeds the truth as rarely as it says."""
    rng, runs, over = np.random.default_rng(16), runs_for(request, 400, 4000), 0
    values, delta = np.arange(4.0), 0.05
    p1, p0 = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    fixed = rng.choice(values, sizes[0], p=p1)
    for _ in range(runs):
        member = fixed if census else rng.choice(values, sizes[0], p=p1)
        law1 = np.bincount(fixed.astype(int), minlength=4) / sizes[0] if census else p1
        losses = Losses(member=member, nonmember=rng.choice(values, sizes[1], p=p0))
        options = {"members": Census()} if census else {}
        bound = clopper_pearson(losses, delta=delta, confidence=confidence, **options).value
        over += bound > largest_epsilon(law1, p0, delta, skip_zero_fnr=census) + 1e-12
    assert at_most(over, runs, level=1 - confidence)


def largest_epsilon(p1, p0, delta, *, skip_zero_fnr):
    """The largest log((TPR - d)/FPR) and log((TNR - d)/FNR) over the thresholds of two discrete laws."""
    tpr, fpr = np.cumsum(p1)[:-1], np.cumsum(p0)[:-1]
    fnr = 1 - tpr
    keep = fnr > 1e-12 if skip_zero_fnr else np.ones(fnr.size, bool)
    ratios = [*((tpr - delta) / fpr), *((1 - fpr - delta)[keep] / np.maximum(fnr[keep], 1e-300)), 1.0]
    return math.log(max(ratios))


@pytest.mark.parametrize("sizes", [(200, 5), (5, 200), (3, 3), (60, 15)])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_auc_interval_covers_with_few_records(request, sizes, confidence):
    """With fewer than 20 records in a group the AUC interval is wide enough for 0/1 losses and unequal spreads."""
    rng, runs = np.random.default_rng(17), runs_for(request, 400, 4000)
    missed = [0, 0]
    for _ in range(runs):
        hard = Losses(member=(rng.random(sizes[0]) < 0.1) + 0.0, nonmember=(rng.random(sizes[1]) < 0.5) + 0.0)
        wide = Losses(member=rng.normal(-5, 1, sizes[0]), nonmember=rng.normal(0, 20, sizes[1]))
        truths = 0.9 * 0.5 + (0.9 * 0.5 + 0.1 * 0.5) / 2, stats.norm.cdf(5 / math.sqrt(401))
        for index, (losses, truth) in enumerate(zip((hard, wide), truths, strict=True)):
            found = auc(count(losses), confidence=confidence)
            missed[index] += not found.lower <= truth <= found.upper
    assert all(at_most(number, runs, level=1 - confidence) for number in missed)


@pytest.mark.parametrize("sizes", [(400, 40), (30, 300)])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_one_run_covers_a_leak_in_unequal_groups(request, sizes, delta):
    """After random pairing of unequal groups, records that leak at 2 epsilon and delta are covered end to end."""
    rng, runs, over, epsilon = np.random.default_rng(18), runs_for(request, 300, 3000), 0, 0.8
    for _ in range(runs):
        base = randomised_response(rng, 400, epsilon)
        revealed = rng.random(400) < delta / 2
        member = np.where(revealed, -1.0, base.member + rng.random(400) / 2)[: sizes[0]]
        nonmember = np.where(revealed, 2.5, base.nonmember + rng.random(400) / 2)[: sizes[1]]
        losses = Losses(member=member, nonmember=nonmember)
        over += one_run_bound(losses, split=RandomSplit(), delta=delta, rng=rng).value > 2 * epsilon
    assert at_most(over, runs)


@pytest.mark.parametrize("size", [4, 20, 100, 299, 300, 500])
def test_the_parametric_bound_speaks_only_where_it_holds(request, size):
    """On identical normals the parametric row's lower bound is above 0 in at most 5% of the runs, at any size."""
    rng, runs, alarms = np.random.default_rng(19), runs_for(request, 400, 4000), 0
    for _ in range(runs):
        losses = Losses(member=rng.normal(size=size), nonmember=rng.normal(size=size))
        estimate = gaussian(fit_gaussian_pair(losses, rng=rng), delta=1e-4)
        alarms += bool(estimate.lower)
    assert at_most(alarms, runs)
