"""Every bound and interval holds its level: seeded simulations, with the binomial's own tolerance.

The sizes here suit CI; ``--long`` repeats the null and coverage runs at ten times the size.
"""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import LAWS, outside, seldom

from auditor.core import (
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
from auditor.curves import Gaussian, count, fit_gaussian, fit_gaussian_pair
from auditor.estimators import (
    advantage,
    auc,
    band,
    clopper_pearson,
    gaussian_supremum,
    largest_lower_bound,
    parametric,
    standard_error,
    tpr_at_fpr,
)

MELDED, TWO_LIMITS = RankGrid(interval=Melded()), RankGrid(interval=ClopperPearson())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("rule", "sizes"),
    [
        *(
            (rule, (500, 700))
            for rule in (
                TWO_LIMITS,
                RankGrid("lower", ClopperPearson()),
                MELDED,
                FixedThreshold(0.5),
                Split(),
            )
        ),
        (MELDED, (5000, 60)),
        (MELDED, (60, 5000)),
        # Where the best of all thresholds gives 13%.
        pytest.param(TWO_LIMITS, (10_000, 10_000), marks=pytest.mark.long),
    ],
)
def test_no_false_alarms_on_noise(simulated, law, rule, sizes):
    """On identical distributions a certified bound is above 0 in at most 5% of the runs, ties or not."""

    def alarm(rng):
        losses = Losses(*(LAWS[law](rng, size) for size in sizes))
        return clopper_pearson(losses, delta=1e-5, rule=rule).value > 0

    assert seldom(simulated(alarm, seed=1, runs=(300, 5000)))


@pytest.mark.parametrize("rule", [TWO_LIMITS, MELDED])
@pytest.mark.parametrize("sizes", [(1000, 1000), (10_000, 100)])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_the_bound_covers_where_many_ranks_attain_the_truth(simulated, rule, sizes, delta):
    """Where TPR = e FPR + delta on a whole range of thresholds, the bound exceeds 1 in at most 5% of the runs."""
    # The members' distribution function is delta + e F0 on FPR <= 0.25: an atom below everything, then e times as dense.
    edge = 0.25
    low = edge * math.e
    truth = max(1.0, math.log((1 - edge - delta) / (1 - delta - low)))

    def over(rng):
        u = rng.random(sizes[0])
        beyond = edge + (1 - edge) * rng.random(sizes[0])
        member = np.where(u < delta, -1.0, np.where(u < delta + low, (u - delta) / math.e, beyond))
        losses = Losses(member=member, nonmember=rng.random(sizes[1]))
        return clopper_pearson(losses, delta=delta, rule=rule).value > truth

    assert seldom(simulated(over, seed=2, runs=(250, 4000)))


def test_a_census_bound_covers_the_finite_training_set(simulated):
    """With the training set held fixed and known, the census bound stays below that set's own epsilon."""
    member = np.sort(np.random.default_rng(6).normal(-1, 1, 300))
    tpr = np.arange(1, 301) / 300
    fpr = stats.norm.cdf(member)
    delta = 1e-3
    # Both ratios are largest just at a member loss; the last one, with its FNR of 0, is left out of the second.
    truth = max(np.max(np.log((tpr - delta) / fpr)), np.max(np.log((1 - fpr[:-1] - delta) / (1 - tpr[:-1]))))

    def over(rng):
        losses = Losses(member=member, nonmember=rng.normal(size=400))
        return clopper_pearson(losses, delta=delta, coverage=Census(), rule=TWO_LIMITS).value > truth

    assert seldom(simulated(over, seed=7, runs=(300, 5000)))


def largest_epsilon(p1, p0, delta, *, skip_zero_fnr):
    """The largest log((TPR - d)/FPR) and log((TNR - d)/FNR) over the thresholds of two discrete laws."""
    tpr, fpr = np.cumsum(p1)[:-1], np.cumsum(p0)[:-1]
    fnr = 1 - tpr
    keep = fnr > 1e-12 if skip_zero_fnr else np.ones(fnr.size, bool)
    ratios = [*((tpr - delta) / fpr), *((1 - fpr - delta)[keep] / np.maximum(fnr[keep], 1e-300)), 1.0]
    return math.log(max(ratios))


@pytest.mark.parametrize("sizes", [(2, 2), (5, 20), (20, 5), (100, 10)])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize(
    ("members", "rule"), [(Sample(), TWO_LIMITS), (Sample(), MELDED), (Census(), TWO_LIMITS)]
)
def test_few_records_hold_every_level(simulated, sizes, confidence, members, rule):
    """With a handful of tied records, at low confidence too, the bound exceeds the truth as rarely as it says."""
    values, delta, census = np.arange(4.0), 0.05, members == Census()
    p1, p0 = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    fixed = np.random.default_rng(16).choice(values, sizes[0], p=p1)
    law1 = np.bincount(fixed.astype(int), minlength=4) / sizes[0] if census else p1
    truth = largest_epsilon(law1, p0, delta, skip_zero_fnr=census)

    def over(rng):
        member = fixed if census else rng.choice(values, sizes[0], p=p1)
        losses = Losses(member=member, nonmember=rng.choice(values, sizes[1], p=p0))
        found = clopper_pearson(losses, delta=delta, confidence=confidence, coverage=members, rule=rule)
        return found.value > truth + 1e-12

    assert seldom(simulated(over, seed=17, runs=(250, 4000)), 1 - confidence)


# --- Intervals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "clipped", "census"),
    [
        *((other, clip, False) for other in ((1, 1), (1, 1.2), (0.5, 0.8), (0, 1)) for clip in (False, True)),
        ((0, 1), True, True),
        ((1, 1.2), True, True),
    ],
)
def test_the_branch_wise_bound_covers_on_normals(simulated, other, clipped, census):
    """The parametric lower bound is below the truth in about 95% of the runs (.94 on the clip), in a census that set's own."""
    delta = 1e-3
    clip = delta if clipped else 0.0
    known = fit_gaussian(np.random.default_rng(20).normal(0, 1, 500)) if census else Gaussian(0, 1)
    truth = gaussian_supremum(known, Gaussian(*other), delta=delta, clip=clip).value
    sizes = (math.inf, 500) if census else (800, 800)

    def over(rng):
        member = known if census else fit_gaussian(rng.normal(0, 1, 800))
        laws = member, fit_gaussian(rng.normal(*other, sizes[1]))
        found = gaussian_supremum(*laws, delta=delta, clip=clip)
        errors = [standard_error(branch, *laws, sizes=sizes) for branch in found.branches]
        return largest_lower_bound(found, errors, confidence=0.95) > truth

    assert seldom(simulated(over, seed=11, runs=(250, 2500)), 0.05 if census else 0.06)


@pytest.mark.parametrize("size", [4, 299, 300])
def test_the_parametric_bound_speaks_only_where_it_holds(simulated, size):
    """On identical normals the parametric row's lower bound is above 0 in at most 5% of the runs, at any size."""

    def alarm(rng):
        losses = Losses(member=rng.normal(size=size), nonmember=rng.normal(size=size))
        return bool(parametric(fit_gaussian_pair(losses, rng=rng), delta=1e-4).lower)

    assert seldom(simulated(alarm, seed=19, runs=(200, 4000)))


def apart(shift, spread=1.0):
    """Members lower by so much than others of this spread, and the AUC of the two."""
    truth = stats.norm.cdf(shift / math.hypot(1, spread))
    return lambda rng, n1, n0: (rng.normal(-shift, 1, n1), rng.normal(0, spread, n0)), truth


def right_or_wrong(rng, n1, n0):
    """Losses 0 or 1, wrong in a tenth and in a half of the records."""
    return (rng.random(n1) < 0.1) + 0.0, (rng.random(n0) < 0.5) + 0.0


AREAS = {
    "alike": apart(0.0),
    "near": apart(0.5),
    "far": apart(2.5),
    "unequal spreads": apart(5.0, 20.0),
    "0 or 1": (right_or_wrong, 0.9 * 0.5 + (0.9 * 0.5 + 0.1 * 0.5) / 2),
}


@pytest.mark.parametrize("law", AREAS)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("sizes", [(600, 300), (60, 30), (60, 15), (200, 5), (5, 200), (3, 3)])
def test_the_auc_interval_covers(simulated, law, sizes, confidence):
    """The two-sided AUC interval covers the truth as often as it says, for few records, ties and unequal spreads too."""
    draw, truth = AREAS[law]

    def missed(rng):
        return outside(truth, auc(count(Losses(*draw(rng, *sizes))), confidence=confidence))

    assert seldom(simulated(missed, seed=12, runs=(250, 4000)), 1 - confidence)


def least_favourable(a):
    """Members that are a share of a below all non-members, and alike with the rest: where the lower end is tightest."""
    return lambda rng, n1, n0: (rng.random(n1) - a, rng.random(n0))


GAPS = {
    "alike": (apart(0.0)[0], 0.0),
    "near": (apart(1.0)[0], 2 * stats.norm.cdf(0.5) - 1),
    "shifted": (least_favourable(0.3), 0.3),
    "one tail": (
        lambda rng, n1, n0: (rng.random(n1) * np.where(rng.random(n1) < 0.1, 0.01, 1), rng.random(n0)),
        0.099,
    ),
    "0 or 1": (right_or_wrong, 0.4),
    "worst above": (lambda rng, n1, n0: ((rng.random(n1) > 0.65) + 0.0, (rng.random(n0) > 0.35) + 0.0), 0.3),
}


@pytest.mark.parametrize("sizes", [(20, 20), (50, 5000), (300, 200)])
@pytest.mark.parametrize("law", GAPS)
def test_each_limit_of_the_advantage_covers(simulated, law, sizes):
    """Neither end lies on the wrong side of the true largest gap in more than 2.5% of the runs, its part of the error."""
    draw, truth = GAPS[law]

    def missed(rng):
        found = advantage(count(Losses(*draw(rng, *sizes))))
        return found.lower > truth, found.upper < truth

    assert seldom(simulated(missed, seed=18, runs=(25, 3000)), 0.025)


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_advantage_interval_of_a_census_covers(simulated, shift):
    """The interval covers the largest gap between a fixed training set and the population in at least 95% of the runs."""
    member = np.sort(np.random.default_rng(13).normal(-shift, 1, 200))
    # The members are the whole truth: the gap is attained at a member loss.
    truth = max(0.0, float(np.max(np.arange(1, 201) / 200 - stats.norm.cdf(member))))

    def missed(rng):
        counts = count(Losses(member=member, nonmember=rng.normal(size=300)))
        return outside(truth, advantage(counts, coverage=Census()))

    assert seldom(simulated(missed, seed=14, runs=(100, 5000)))


@pytest.mark.parametrize("rate", [0.1, 0.01])
@pytest.mark.parametrize("times", [None, 1.0, 1.5, 5.0])
def test_tpr_at_fpr_keeps_both_promises(simulated, rate, times):
    """The threshold's true FPR is within the rate, and the true TPR, of the law or of a training set, above the limit.

    And what the best threshold within the rate recognises is not above the upper limit.
    """
    best = stats.norm.ppf(rate)
    training = None if times is None else np.random.default_rng(7).normal(-1, 1, int(times * 150))
    members = Sample() if training is None else Subset(of=training.size)

    def broken(rng):
        member = rng.normal(-1, 1, 500) if training is None else rng.choice(training, 150, replace=False)
        losses = Losses(member=member, nonmember=rng.normal(0, 1, 1000))
        found = tpr_at_fpr(losses, rate=rate, coverage=members)
        threshold = losses.sorted_nonmember[found.details["rank"]]
        # The limit is a count over the training set's size: compare with half a record to spare.
        tpr = (
            stats.norm.cdf(threshold + 1)
            if training is None
            else np.mean(training < threshold) + 0.5 / training.size
        )
        most = (
            stats.norm.cdf(best + 1) if training is None else np.mean(training < best) - 0.5 / training.size
        )
        return stats.norm.cdf(threshold) > rate or tpr < found.lower or most > found.upper

    assert seldom(simulated(broken, seed=14, runs=(200, 4000)))


@pytest.mark.parametrize("census", [False, True])
def test_the_band_covers_the_whole_curve(simulated, census):
    """The plotted band holds the true trade-off curve everywhere at once in at least 95% of the runs."""
    grid = np.geomspace(1e-5, 0.9999, 400)
    fixed = np.random.default_rng(15).normal(-1, 1, 300)
    thresholds = stats.norm.ppf(grid)
    truth = np.mean(fixed[:, None] <= thresholds, axis=0) if census else stats.norm.cdf(thresholds + 1)

    def broken(rng):
        losses = Losses(member=fixed if census else rng.normal(-1, 1, 300), nonmember=rng.normal(0, 1, 400))
        low, high = band._band(losses, 0.95, Census() if census else Sample())
        below = np.array([max(y for x, y in zip(low.fpr, low.tpr, strict=True) if x <= f) for f in grid])
        above = np.array([min(y for x, y in zip(high.fpr, high.tpr, strict=True) if x >= f) for f in grid])
        return np.any(truth < below - 1e-5) or np.any(truth > above + 1e-5)

    assert seldom(simulated(broken, seed=16, runs=(150, 1500)))
