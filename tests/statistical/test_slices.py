"""All slices hold at once: no false bound, no interval that misses, in any of them, in at most 5% of the audits."""

import numpy as np
import pytest
from scipy import stats
from simulation import LAWS, outside, seldom

from auditor.core import Losses
from auditor.results import SliceKind
from auditor.risk import no_separation, slices_of, stands_out

GROUPS = 20


def grouped(rng, law, shift, few, many):
    """Twenty groups of between ``few`` and ``many`` members and non-members each, members that much lower."""
    sizes = rng.integers(few, many, (2, GROUPS))
    n1, n0 = sizes.sum(axis=1)
    group = tuple(np.repeat(np.arange(GROUPS), side) for side in sizes)
    return Losses(member=LAWS[law](rng, n1) - shift, nonmember=LAWS[law](rng, n0), group=group)


def compared(found, kind=SliceKind.GROUP):
    """The estimates of the slices of this kind that have numbers."""
    return [part.estimates for part in found if part.kind is kind and part.reason is None]


@pytest.mark.parametrize(
    ("law", "few", "many"),
    [
        ("normal", 15, 40),
        ("five values", 60, 120),
        pytest.param("normal", 60, 120, marks=pytest.mark.long),
        pytest.param("five values", 15, 40, marks=pytest.mark.long),
    ],
)
def test_no_slice_of_noise_is_above_zero(simulated, law, few, many):
    """On identical distributions any bound is above 0, any AUC excludes 1/2 or any share the overall one, in at most 5%."""

    def alarms(rng):
        found = slices_of(grouped(rng, law, 0.0, few, many), delta=1e-5)
        shares = [share.details for (share,) in compared(found, SliceKind.PERCENTILE)]
        return (
            any(bound.value > 0 for bound, _, _ in compared(found)),
            any(outside(0.5, area) for _, area, _ in compared(found)),
            any(not item["lift_lower"] <= 1 <= item["lift_upper"] for item in shares),
        )

    assert seldom(simulated(alarms, seed=1, runs=(20, 1000)))


@pytest.mark.parametrize(("shift", "few", "many"), [(1.0, 15, 40), (2.5, 40, 80)])
def test_intervals_cover_the_truth_in_every_group(simulated, monkeypatch, shift, few, many):
    """On normal scores all AUCs and all advantages lie in their intervals at once in at least 95% of the audits."""
    truths = stats.norm.cdf(shift / np.sqrt(2)), 2 * stats.norm.cdf(shift / 2) - 1
    monkeypatch.setattr("auditor.risk.slices._BANDS", ())  # the whole error is the groups'

    def missed(rng):
        losses = grouped(rng, "normal", shift, few, many)
        found = compared(slices_of(losses, delta=1e-5))
        return [any(outside(truth, rows[at]) for rows in found) for at, truth in enumerate(truths, start=1)]

    assert seldom(simulated(missed, seed=2, runs=(20, 1000)))


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_shares_cover_in_every_band(simulated, fixed, share):
    """The expected share of members among a band's losses lies in every interval, for coins and for fixed numbers."""
    n, shift = 600, 2.0

    def missed(rng):
        members = round(share * n) if fixed else rng.binomial(n, share)
        losses = Losses(member=rng.normal(-shift, 1, members), nonmember=rng.normal(0, 1, n - members))
        pooled = np.sort(np.concatenate([losses.member, losses.nonmember]))
        odds = share / (1 - share) * np.exp(-shift * pooled - shift * shift / 2)
        parts = slices_of(losses, delta=1e-5)
        ends = np.cumsum([part.n_member + part.n_nonmember for part in parts])[:-1]
        truths = [band.mean() for band in np.split(odds / (1 + odds), ends)]
        return any(
            part.reason is None and outside(truth, part.estimates[0])
            for part, truth in zip(parts, truths, strict=True)
        )

    assert seldom(simulated(missed, seed=4, runs=(200, 5000)))


@pytest.mark.parametrize("law", [pytest.param("normal", marks=pytest.mark.long), "five values"])
def test_holm_rejects_a_group_without_a_leak_seldom(simulated, law):
    """Where half of the groups leak, some other one is called separated in at most 5% of the audits."""
    leaks = np.arange(GROUPS) % 2 == 0

    def alarm(rng):
        parts = []
        for leak in leaks:
            member, nonmember = LAWS[law](rng, 40) - 1.5 * leak, LAWS[law](rng, 40)
            parts.append(Losses(member, nonmember))
        values = np.array([found["holm_p_value"] for found in no_separation(parts)])
        return (values[~leaks] <= 0.05).any()

    assert seldom(simulated(alarm, seed=6, runs=(30, 2000)))


@pytest.mark.parametrize(("groups", "base"), [(3, 3.0), (10, 1.0)])
@pytest.mark.parametrize("shift", [0.5, 2.5])
def test_groups_that_leak_alike_do_not_stand_out(simulated, groups, base, shift):
    """Of three to ten groups that leak alike, whose records are equally hard or not, some stands out in at most 5%."""

    def named(rng):
        side = rng.integers(groups, size=150 * groups), rng.integers(groups, size=100 * groups)
        member, nonmember = (rng.normal(base * labels) for labels in side)
        losses = Losses(member - shift, nonmember, group=tuple(labels.astype(str) for labels in side))
        found = [part for part in slices_of(losses, delta=1e-5) if part.kind is SliceKind.GROUP]
        return any(stands_out(part, found) for part in found)

    assert seldom(simulated(named, seed=4, runs=(15, 1000)))


def test_the_group_that_leaks_stands_out(simulated):
    """Where one of five groups leaks, it stands out and no other does, in at least 9 of 10 audits."""

    def wrong(rng):
        side = rng.integers(5, size=1500), rng.integers(5, size=1500)
        member, nonmember = rng.normal(-1.5 * (side[0] == 2)), rng.normal(size=1500)
        losses = Losses(member, nonmember, group=tuple(labels.astype(str) for labels in side))
        found = [part for part in slices_of(losses, delta=1e-5) if part.kind is SliceKind.GROUP]
        return [part.label for part in found if stands_out(part, found)] != ["2"]

    assert seldom(simulated(wrong, seed=5, runs=(15, 300)), level=0.1)
