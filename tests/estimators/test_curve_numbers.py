"""Advantage, Bayes security, AUC and TPR at FPR against counting, scikit-learn and hand calculation."""

import math

import numpy as np
import pytest
from oracles import brute_force_curve
from sklearn.metrics import roc_auc_score

from auditor.core import Census, Losses, Sample, Subset
from auditor.curves import count
from auditor.estimators import (
    advantage,
    auc,
    bayes_security,
    clopper_pearson,
    guaranteed_rank,
    lower_limit,
    tpr_at_fpr,
    upper_limit,
)


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


def test_the_interval_of_the_advantage_is_the_stated_band():
    """Its width is the sum of both groups' Dvoretzky-Kiefer-Wolfowitz bands; Bayes security mirrors it.

    In a census the non-members' band is there alone, at half of the error, and what holds with members as draws beside it.
    """
    counts = count(Losses(member=np.arange(900) + 0.0, nonmember=np.arange(400) + 600.0))
    found, known = (advantage(counts, confidence=0.9, members=members) for members in (Sample(), Census()))
    band = math.sqrt(math.log(4 / 0.1) / 1800) + math.sqrt(math.log(4 / 0.1) / 800)
    assert found.value - found.lower == pytest.approx(band)
    assert known.value - known.lower == pytest.approx(math.sqrt(math.log(2 / 0.1) / 800))
    assert known.details["as_draws"]["lower"] == pytest.approx(found.lower)
    assert "as_draws" not in advantage(counts, members=Subset(of=5000)).details
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
    """The row counts records strictly below the guaranteed non-member rank, with a Clopper-Pearson limit of the members'."""
    losses = Losses(member=rng.normal(-2, 1, 800), nonmember=rng.normal(0, 1, 1000))
    found = tpr_at_fpr(losses, rate=0.01)
    threshold = np.sort(losses.nonmember)[3]  # U(3; 1000, .025) = .0087, U(4; ...) = .0102
    hits = int(np.sum(losses.member < threshold))
    assert found.value == hits / 800
    assert found.lower == pytest.approx(float(lower_limit(hits, 800, 0.025)))
    assert found.details["fpr_upper"] <= 0.01
    tied = Losses(member=losses.member, nonmember=losses.nonmember.round())
    details = tpr_at_fpr(tied, rate=0.1).details
    assert details["fpr"] == (tied.nonmember < tied.sorted_nonmember[details["rank"]]).mean()
    assert details["fpr"] < details["rank"] / 1000


def test_too_fine_a_rate_is_not_resolvable():
    """A rate finer than the records allow has no value and names how many are needed; that many suffice."""
    losses = Losses(member=np.zeros(10), nonmember=np.ones(500))
    found = tpr_at_fpr(losses, rate=0.001)
    assert found.value is None
    assert found.reason == "not resolvable with 500 non-member records: at least 3,688 are needed"
    assert guaranteed_rank(0.001, n_nonmember=3688, alpha=0.025) == 0
    assert guaranteed_rank(0.001, n_nonmember=3687, alpha=0.025) is None


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
    found, sample = (make(losses, **extra, **kind) for kind in ({"members": members}, {"members": Sample()}))
    drawn = found.details["as_draws"]
    assert (drawn["value"], drawn["lower"]) == (sample.value, sample.lower)
    assert drawn["lower"] < found.lower
    assert sum("finite training set" in item for item in found.assumptions) == 1
    assert "as_draws" not in sample.details
    assert not any("finite" in item for item in sample.assumptions)
