"""All slices hold at once: no false bound, no interval that misses, in any of them, in at most 5% of the audits."""

import numpy as np
import pytest
from scipy import stats
from simulation import at_most, runs_for

from auditor.core import Losses
from auditor.curves import count
from auditor.estimators import auc, lower_limit, upper_limit
from auditor.results import SliceKind
from auditor.risk import slices_of

GROUPS = 20
LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "five values": lambda rng, n: rng.integers(0, 5, n) + 0.0,
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
}


def grouped(rng, law, shift, few, many):
    """Twenty groups of between ``few`` and ``many`` members and non-members each, members that much lower."""
    sizes = rng.integers(few, many, (2, GROUPS))
    n1, n0 = sizes.sum(axis=1)
    return Losses(
        member=LAWS[law](rng, n1) - shift,
        nonmember=LAWS[law](rng, n0),
        group=(np.repeat(np.arange(GROUPS), sizes[0]), np.repeat(np.arange(GROUPS), sizes[1])),
    )


def compared(found, kind):
    """The slices of this kind that have numbers."""
    return [part for part in found if part.kind is kind and part.reason is None]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("few", "many"), [(15, 40), (150, 300)])
def test_no_slice_of_noise_is_above_zero(request, law, few, many):
    """On identical distributions any bound is above 0, any AUC excludes 1/2 or any share the overall one, in at most 5%."""
    rng, runs = np.random.default_rng(1), runs_for(request, 60, 1000)
    bounds = areas = shares = 0
    for _ in range(runs):
        losses = grouped(rng, law, 0.0, few, many)
        found = slices_of(losses, delta=1e-5)
        groups = [part.estimates for part in compared(found, SliceKind.GROUP)]
        bands = [part.estimates[0] for part in compared(found, SliceKind.PERCENTILE)]
        bounds += any(bound.value > 0 for bound, _, _ in groups)
        areas += any(not area.lower <= 0.5 <= area.upper for _, area, _ in groups)
        shares += any(not item.details["lift_lower"] <= 1 <= item.details["lift_upper"] for item in bands)
    assert at_most(bounds, runs)
    assert at_most(areas, runs)
    assert at_most(shares, runs)


@pytest.mark.parametrize("shift", [1.0, 2.5])
@pytest.mark.parametrize(("few", "many"), [(15, 40), (40, 80)])
def test_intervals_cover_the_truth_in_every_group(request, shift, few, many):
    """On normal scores all AUCs and all advantages lie in their intervals at once in at least 95% of the audits."""
    rng, runs = np.random.default_rng(2), runs_for(request, 60, 1000)
    area, gap = stats.norm.cdf(shift / np.sqrt(2)), 2 * stats.norm.cdf(shift / 2) - 1
    areas = gaps = 0
    for _ in range(runs):
        found = compared(
            slices_of(grouped(rng, "normal", shift, few, many), delta=1e-5, percentiles=()), SliceKind.GROUP
        )
        areas += any(not part.estimates[1].lower <= area <= part.estimates[1].upper for part in found)
        gaps += any(not part.estimates[2].lower <= gap <= part.estimates[2].upper for part in found)
    assert at_most(areas, runs)
    assert at_most(gaps, runs)


def randomised_response(rng, epsilon):
    """Twenty groups of losses 0 or 1 whose separation is exactly epsilon."""
    n = 60 * GROUPS
    q = 1 / (1 + np.exp(-epsilon))
    labels = np.arange(n) % GROUPS
    return Losses(
        member=(rng.random(n) > q) + 0.0, nonmember=(rng.random(n) < q) + 0.0, group=(labels, labels)
    )


def test_no_bound_exceeds_a_known_epsilon(request):
    """On randomised response any bound exceeds the truth in at most 5% of the audits."""
    rng, runs, over = np.random.default_rng(3), runs_for(request, 60, 1000), 0
    for _ in range(runs):
        found = compared(slices_of(randomised_response(rng, 1.0), delta=0.0), SliceKind.GROUP)
        over += any(part.estimates[0].value > 1.0 for part in found)
    assert at_most(over, runs)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_shares_cover_in_every_band(request, fixed, share):
    """The expected share of members among a band's losses lies in every interval, for coins and for fixed numbers."""
    rng, runs, missed, n, shift = np.random.default_rng(4), runs_for(request, 400, 5000), 0, 600, 2.0
    for _ in range(runs):
        members = round(share * n) if fixed else rng.binomial(n, share)
        losses = Losses(member=rng.normal(-shift, 1, members), nonmember=rng.normal(0, 1, n - members))
        pooled = np.sort(np.concatenate([losses.member, losses.nonmember]))
        odds = share / (1 - share) * np.exp(-shift * pooled - shift * shift / 2)
        expected, at = odds / (1 + odds), 0
        for part in slices_of(losses, delta=1e-5):
            size = part.n_member + part.n_nonmember
            truth, at = expected[at : at + size].mean(), at + size
            item = part.estimates[0]
            if part.reason is None and not item.lower <= truth <= item.upper:
                missed += 1
                break
    assert at_most(missed, runs)


def band_misses(part, losses):
    """Whether a band's own 95% interval, with no thought of the other bands, leaves out the overall share."""
    size, overall = part.n_member + part.n_nonmember, losses.n_member / (losses.n_member + losses.n_nonmember)
    limits = lower_limit(part.n_member, size, 0.025), upper_limit(part.n_member, size, 0.025)
    return not limits[0] <= overall <= limits[1]


def test_the_simulation_can_fail(request):
    """Slices that each spend the whole 5% raise false alarms in far more than 5% of the audits, in groups and bands alike."""
    rng, runs, bands, areas = np.random.default_rng(5), runs_for(request, 100, 1000), 0, 0
    for _ in range(runs):
        losses = grouped(rng, "normal", 0.0, 40, 80)
        found = slices_of(losses, delta=1e-5)
        bands += any(band_misses(part, losses) for part in compared(found, SliceKind.PERCENTILE))
        for group in range(GROUPS):
            one = Losses(
                member=losses.member[losses.group.member == group],
                nonmember=losses.nonmember[losses.group.nonmember == group],
            )
            area = auc(count(one))
            if not area.lower <= 0.5 <= area.upper:
                areas += 1
                break
    assert not at_most(bands, runs)
    assert not at_most(areas, runs)
