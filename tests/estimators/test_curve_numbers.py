"""Advantage, Bayes security, AUC and TPR at FPR against counting, scikit-learn and hand calculation."""

import itertools
import math

import numpy as np
import pytest
from oracles import brute_force_curve
from scipy import stats
from sklearn.metrics import roc_auc_score

from auditor.core import Census, Losses, Sample, Subset
from auditor.curves import count
from auditor.estimators import (
    advantage,
    auc,
    bayes_security,
    clopper_pearson,
    gap_limits,
    guaranteed_rank,
    lower_limit,
    tpr_at_fpr,
    upper_limit,
)
from auditor.report import Row


def tied_losses(rng, size):
    """Small samples with many ties."""
    n1, n0 = rng.integers(2, 80, 2)
    return Losses(member=rng.integers(0, size, n1) + 0.0, nonmember=rng.integers(1, size + 1, n0) + 0.0)


@pytest.mark.parametrize("size", [2, 7, 10_000])
def test_advantage_and_auc_against_counting(rng, size):
    """The advantage is the largest TPR - FPR over all thresholds, with its counts; the area is scikit-learn's; ties included."""
    for _ in range(60):
        losses = tied_losses(rng, size)
        fpr, tpr = brute_force_curve(losses.member, losses.nonmember)
        gap = advantage(count(losses))
        assert gap.value == pytest.approx(max(0.0, float(np.max(tpr - fpr))), abs=1e-12)
        hits, alarms = (gap.details[name] for name in ("true_positives", "false_positives"))
        assert hits / losses.n_member - alarms / losses.n_nonmember == pytest.approx(gap.value)
        labels = np.r_[np.ones(losses.n_member), np.zeros(losses.n_nonmember)]
        expected = roc_auc_score(labels, -np.r_[losses.member, losses.nonmember])
        assert auc(count(losses)).value == pytest.approx(expected, abs=1e-12)


def chance_of_a_gap(least, a, n1, n0):
    """P(D >= least/(n1 n0)) where members follow min(1, y + a): by counting the orders of all losses, one at a time."""
    total = 0.0
    for low, high in itertools.product(range(n1 + 1), range(n0 + 1)):
        end, missed = n0 - high, np.zeros(n1 + 1)
        missed[low] = low * n0 < least
        for j in range(end + 1):
            for i in range(low, n1 + 1):  # with j non-members passed: from the row before, and from the left
                missed[i] += missed[i - 1] if i > low else 0.0
                missed[i] *= i * n0 - j * n1 < least
        stays = missed[n1] / math.comb(n1 - low + end, end)
        total += stats.binom.pmf(low, n1, a) * stats.binom.pmf(high, n0, a) * (1 - stays)
    return total


def chance_of_no_gap(gap, a, n1, n0):
    """The largest chance over a fine grid of y that Bin(n1, y + a)/n1 - Bin(n0, y)/n0 is up to the gap."""
    hits, alarms = np.arange(n1 + 1)[:, None], np.arange(n0 + 1)[None, :]
    small = hits / n1 - alarms / n0 <= gap + 1e-12
    chances = (
        stats.binom.pmf(hits, n1, y + a) * stats.binom.pmf(alarms, n0, y) for y in np.linspace(0, 1 - a, 401)
    )
    return max(float((both * small).sum()) for both in chances)


@pytest.mark.parametrize(("sizes", "least"), [((9, 9), 63), ((12, 8), 60), ((10, 20), 140), ((8, 8), 64)])
def test_the_limits_of_the_advantage_against_counting(sizes, least):
    """Both ends leave the observed gap a chance of 2.5%: of as much at the lower end, of as little at the upper one.

    With groups of equal size exactly so; otherwise at most, and more than that a tenth of the way back.
    """
    gap = least / math.prod(sizes)
    low, high = gap_limits(gap, n_member=sizes[0], n_nonmember=sizes[1], alpha=0.05)
    assert chance_of_a_gap(least, low, *sizes) <= 0.025
    assert chance_of_a_gap(least, low + (0.15 if len({*sizes}) > 1 else 1e-4) * (gap - low), *sizes) > 0.025
    if gap < 1:
        assert chance_of_no_gap(gap, high, *sizes) <= 0.025 + 1e-9
        assert chance_of_no_gap(gap, high - 0.1 * (high - gap), *sizes) > 0.025
    else:
        assert high == 1


@pytest.mark.parametrize(("n", "half"), [(300, 0.103), (1000, 0.057), (10_000, 0.017)])
def test_the_interval_of_the_advantage_is_much_narrower_than_two_bands(n, half):
    """The half-widths are no larger than those that simulations of the same statistics gave, at 0.6 of the former ones."""
    low, high = gap_limits(round(0.4 * n) / n, n_member=n, n_nonmember=n, alpha=0.05)
    assert (high - low) / 2 <= half <= 0.62 * 2 * math.sqrt(math.log(4 / 0.05) / (2 * n))


@pytest.mark.parametrize(
    "sizes", [(2, 3), (50, 5000), (5000, 50), (900, 400), (10**6, 7 * 10**5), (None, 400)]
)
@pytest.mark.parametrize("gap", [0.0, 0.25, 0.9, 1.0])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-9])
def test_the_limits_enclose_the_gap_at_every_size(sizes, gap, alpha):
    """They lie in [0, 1] around the observed gap, and never beyond Hoeffding's inequality above it."""
    low, high = gap_limits(gap, n_member=sizes[0], n_nonmember=sizes[1], alpha=alpha)
    assert 0 <= low <= gap <= high <= 1
    spread = sum(1 / n for n in sizes if n)
    assert high <= gap + math.sqrt(math.log(2 / alpha) * spread / 2)


def test_bayes_security_mirrors_the_advantage():
    """Its upper end is 1 - the lower one; in a census what holds with members as draws stands beside it."""
    counts = count(Losses(member=np.arange(900) + 0.0, nonmember=np.arange(400) + 600.0))
    found, known = (advantage(counts, confidence=0.9, coverage=members) for members in (Sample(), Census()))
    assert found.lower < known.lower < known.value < known.upper < found.upper
    assert known.details["as_draws"]["lower"] == pytest.approx(found.lower)
    assert "as_draws" not in advantage(counts, coverage=Subset(of=5000)).details
    for gap in (found, known):
        mirrored = bayes_security(gap)
        assert (mirrored.value, mirrored.upper) == pytest.approx((1 - gap.value, 1 - gap.lower))
        assert mirrored.lower is None
    assert mirrored.details["as_draws"]["upper"] == pytest.approx(1 - found.lower)


@pytest.mark.parametrize("size", [3, 10_000])
def test_delong_against_placements(rng, size):
    """The standard error is DeLong's, from the placements of every record written out."""
    for _ in range(30):
        losses = tied_losses(rng, size)
        wins = np.sign(losses.nonmember[None, :] - losses.member[:, None]) / 2 + 0.5
        by_member, by_nonmember = wins.mean(axis=1), wins.mean(axis=0)
        expected = by_member.var(ddof=1) / losses.n_member + by_nonmember.var(ddof=1) / losses.n_nonmember
        assert auc(count(losses)).details["standard_error"] == pytest.approx(math.sqrt(expected), abs=1e-9)


def test_perfect_separation_keeps_an_open_interval():
    """At AUC 1 the interval still has a width, where DeLong's alone would have none."""
    found = auc(count(Losses(member=np.arange(20) + 0.0, nonmember=np.arange(20) + 100.0)))
    assert found.value == found.upper == 1
    assert 0.7 < found.lower < 1


def test_guaranteed_rank_is_the_last_that_keeps_the_rate():
    """The rank is the largest whose Clopper-Pearson limit is within the rate, found by a linear scan."""
    for n, rate, alpha in [(1000, 0.01, 0.025), (5000, 0.001, 0.05), (300, 0.3, 0.01)]:
        fitting = [k for k in range(n) if upper_limit(k, n, alpha) <= rate]
        expected = fitting[-1] if fitting else None
        assert guaranteed_rank(rate, n_nonmember=n, alpha=alpha) == expected


def test_tpr_at_fpr_by_hand(rng):
    """The ends count records at non-member ranks that are fixed in advance, with Clopper-Pearson limits of the members'."""
    losses = Losses(member=rng.normal(-2, 1, 800), nonmember=rng.normal(0, 1, 1000))
    found = tpr_at_fpr(losses, rate=0.01)
    ordered = np.sort(losses.nonmember)
    hits = int(np.sum(losses.member < ordered[3]))  # U(3; 1000, .02) = .0089, U(4; ...) = .0105
    assert found.lower == pytest.approx(float(lower_limit(hits, 800, 0.02)))
    assert found.details["fpr_upper"] <= 0.01
    rank = min(k for k in range(1, 1000) if stats.binom.sf(k - 1, 1000, 0.01) <= 0.005)
    above = int(np.sum(losses.member <= ordered[rank - 1]))
    assert found.upper == pytest.approx(float(upper_limit(above, 800, 0.005)))
    assert found.lower < found.value < found.upper
    tied = Losses(member=losses.member, nonmember=losses.nonmember.round())
    details = tpr_at_fpr(tied, rate=0.1).details
    assert details["fpr"] == (tied.nonmember < tied.sorted_nonmember[details["rank"]]).mean()
    assert details["fpr"] < details["rank"] / 1000


@pytest.mark.parametrize("size", [2, 7, 10_000])
def test_the_value_is_the_concave_hull_of_the_curve(rng, size):
    """At every rate it is the highest point on a line between two points of the curve, by trying all pairs."""
    for rate in (0.001, 0.1, 0.37, 0.9):
        losses = tied_losses(rng, size)
        curve = brute_force_curve(losses.member, losses.nonmember)
        fpr, tpr = (np.concatenate([[0.0], axis, [1.0]]) for axis in curve)
        low, high = np.flatnonzero(fpr <= rate)[:, None], np.flatnonzero(fpr > rate)[None, :]
        slope = (tpr[high] - tpr[low]) / (fpr[high] - fpr[low])
        expected = float(np.max(tpr[low] + slope * (rate - fpr[low])))
        assert tpr_at_fpr(losses, rate=rate).value == pytest.approx(expected, abs=1e-12)


def test_too_fine_a_rate_has_a_value_and_an_upper_limit():
    """A rate finer than the records allow has no lower limit and names how many are needed; that many suffice.

    These members are no lower than others, so that the hull is the line of guessing.
    """
    losses = Losses(member=np.arange(100) + 450.0, nonmember=np.arange(500) + 0.0)
    found = tpr_at_fpr(losses, rate=0.001)
    assert (found.value, found.lower) == (0.001, None)
    # P(Bin(500, 0.001) >= 4) = 0.0017, of 3 it is 0.014; no member is as low as the fourth.
    assert found.upper == pytest.approx(1 - 0.005 ** (1 / 100))
    reason = "not resolvable with 500 non-member records: at least 3,911 are needed"
    assert found.details["lower_reason"] == reason
    assert f"no lower end: {reason}" in Row(found).interval
    assert guaranteed_rank(0.001, n_nonmember=3911, alpha=0.02) == 0
    assert guaranteed_rank(0.001, n_nonmember=3910, alpha=0.02) is None


@pytest.mark.parametrize("function", [np.exp, lambda x: x**3, lambda x: 5 * x - 7])
@pytest.mark.parametrize(
    "build",
    [
        lambda losses: auc(count(losses)),
        lambda losses: advantage(count(losses)),
        lambda losses: tpr_at_fpr(losses, rate=0.1),
        lambda losses: clopper_pearson(losses, delta=1e-5),
    ],
    ids=["auc", "advantage", "tpr_at_fpr", "clopper_pearson"],
)
def test_increasing_maps_change_nothing(rng, build, function):
    """Numbers of the curve depend on the order of the losses only."""
    member, nonmember = rng.normal(-1, 1, 500), rng.normal(0, 1, 700)
    plain, mapped = build(Losses(member, nonmember)), build(Losses(function(member), function(nonmember)))
    assert (mapped.value, mapped.lower) == (plain.value, plain.lower)


@pytest.mark.parametrize("members", [Census(), Subset(of=3000)])
@pytest.mark.parametrize("make", [tpr_at_fpr, clopper_pearson])
def test_a_finite_set_keeps_what_holds_with_its_members_as_draws(rng, members, make):
    """Beside the number of a finite set stands that of a sample of the same losses, and the row says which it is."""
    losses = Losses(member=rng.normal(-1, 1, 2000), nonmember=rng.normal(size=2000))
    extra = {"rate": 0.01} if make is tpr_at_fpr else {"delta": 1e-5}
    found, sample = (
        make(losses, **extra, **kind) for kind in ({"coverage": members}, {"coverage": Sample()})
    )
    drawn = found.details["as_draws"]
    assert (drawn["value"], drawn["lower"]) == (sample.value, sample.lower)
    assert drawn["lower"] < found.lower
    assert sum("finite training set" in item for item in found.assumptions) == 1
    assert "as_draws" not in sample.details
    assert not any("finite" in item for item in sample.assumptions)
