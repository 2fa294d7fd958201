"""Advantage, Bayes security, AUC and TPR at FPR against counting, scikit-learn and hand calculation."""

import math

import numpy as np
import pytest
from oracles import brute_force_curve
from sklearn.metrics import roc_auc_score

from auditor.core import Census, InputError, Losses, Sample, Subset
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
def test_advantage_against_counting(rng, size):
    """The advantage is the largest TPR - FPR over all thresholds, ties included."""
    for _ in range(60):
        losses = tied_losses(rng, size)
        fpr, tpr = brute_force_curve(losses.member, losses.nonmember)
        expected = max(0.0, float(np.max(tpr - fpr)))
        assert advantage(count(losses)).value == pytest.approx(expected, abs=1e-12)


def test_advantage_interval_is_the_stated_band():
    """The half-width is the sum of both groups' Dvoretzky-Kiefer-Wolfowitz bands at a quarter of the error."""
    losses = Losses(member=np.arange(900) + 0.0, nonmember=np.arange(400) + 600.0)
    found = advantage(count(losses), confidence=0.9)
    band = math.sqrt(math.log(4 / 0.1) / 1800) + math.sqrt(math.log(4 / 0.1) / 800)
    assert found.value - found.lower == pytest.approx(band)
    known = advantage(count(losses), confidence=0.9, members=Census())
    assert known.value - known.lower == pytest.approx(math.sqrt(math.log(2 / 0.1) / 800))


def test_bayes_security_mirrors_the_advantage():
    """Bayes security is 1 - advantage, bounded above only."""
    gap = advantage(count(Losses(member=np.arange(900) + 0.0, nonmember=np.arange(400) + 600.0)))
    found = bayes_security(gap)
    assert found.value == pytest.approx(1 - gap.value)
    assert found.upper == pytest.approx(1 - gap.lower)
    assert found.lower is None


@pytest.mark.parametrize("size", [2, 7, 10_000])
def test_auc_against_scikit_learn(rng, size):
    """The area equals scikit-learn's, ties counting half."""
    for _ in range(30):
        losses = tied_losses(rng, size)
        labels = np.r_[np.ones(losses.n_member), np.zeros(losses.n_nonmember)]
        expected = roc_auc_score(labels, -np.r_[losses.member, losses.nonmember])
        assert auc(count(losses)).value == pytest.approx(expected, abs=1e-12)


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
    """The row counts members strictly below the guaranteed non-member rank, with a Clopper-Pearson limit."""
    losses = Losses(member=rng.normal(-2, 1, 800), nonmember=rng.normal(0, 1, 1000))
    found = tpr_at_fpr(losses, rate=0.01)
    threshold = np.sort(losses.nonmember)[3]  # U(3; 1000, .025) = .0087, U(4; ...) = .0102
    hits = int(np.sum(losses.member < threshold))
    assert found.value == hits / 800
    assert found.lower == pytest.approx(float(lower_limit(hits, 800, 0.025)))
    assert found.details["fpr_upper"] <= 0.01


def test_too_fine_a_rate_is_not_resolvable():
    """A rate finer than the records allow has no value and names how many are needed; that many suffice."""
    losses = Losses(member=np.zeros(10), nonmember=np.ones(500))
    found = tpr_at_fpr(losses, rate=0.001)
    assert found.value is None
    assert found.reason == "not resolvable with 500 non-member records: at least 3,688 are needed"
    assert guaranteed_rank(0.001, n_nonmember=3688, alpha=0.025) == 0
    assert guaranteed_rank(0.001, n_nonmember=3687, alpha=0.025) is None


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1])
def test_bad_rates_are_refused(rate):
    """A rate outside (0, 1) is refused by name."""
    with pytest.raises(InputError, match=r"fpr must lie in \(0, 1\)"):
        tpr_at_fpr(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0]), rate=rate)


@pytest.mark.parametrize("function", [np.exp, lambda x: x**3])
def test_increasing_maps_change_nothing(rng, function):
    """Numbers of the curve depend on the order of the losses only."""
    plain = Losses(member=rng.normal(-1, 1, 500), nonmember=rng.normal(0, 1, 700))
    mapped = Losses(member=function(plain.member), nonmember=function(plain.nonmember))
    for build in (lambda x: auc(count(x)), lambda x: advantage(count(x)), lambda x: tpr_at_fpr(x, rate=0.1)):
        assert build(mapped).value == build(plain).value
        assert build(mapped).lower == build(plain).lower


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


def test_the_advantage_of_a_census_keeps_what_holds_with_its_members_as_draws():
    """Both ends are those with a band for the members too; Bayes security mirrors them, and both say what they are about."""
    losses = Losses(member=np.arange(900) + 0.0, nonmember=np.arange(400) + 600.0)
    gap = advantage(count(losses), confidence=0.9, members=Census())
    band = math.sqrt(math.log(4 / 0.1) / 1800) + math.sqrt(math.log(4 / 0.1) / 800)
    assert gap.details["as_draws"]["lower"] == pytest.approx(gap.value - band)
    assert bayes_security(gap).details["as_draws"]["upper"] == pytest.approx(1 - gap.value + band)
    for row in (gap, bayes_security(gap)):
        assert any("can be positive without any leakage" in item for item in row.assumptions)
    assert "as_draws" not in advantage(count(losses), members=Subset(of=5000)).details


def test_the_observed_false_alarm_rate(rng):
    """The row keeps the share of non-members strictly below its threshold, which ties make smaller than the rank says."""
    losses = Losses(member=rng.integers(0, 50, 3000) + 0.0, nonmember=rng.integers(0, 200, 3000) + 0.0)
    found = tpr_at_fpr(losses, rate=0.1)
    threshold = np.sort(losses.nonmember)[found.details["rank"]]
    assert found.details["fpr"] == (losses.nonmember < threshold).mean()
    assert found.details["fpr"] < found.details["rank"] / 3000
