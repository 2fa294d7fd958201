"""The sign at the top of a report: without any leakage "Leakage found" is said in at most 5% of the audits."""

import numpy as np
import pytest
from simulation import looked_at, seldom

from auditor.checks import smallest_mu
from auditor.core import Census, Losses, RandomSplit, Sample, Subset, UnknownSplit
from auditor.estimators.omnibus import omnibus
from auditor.report import finding


def found(rng, members, split, size, leak=0.0):
    """Whether leakage is said to be found, by every row that the sign looks at, and whether the first is above 0."""
    losses = Losses(member=rng.normal(-leak, 1, size), nonmember=rng.normal(size=size))
    result = looked_at(losses, coverage=members, split=split)
    return finding(result).sign.word == "Leakage found", result.estimates[0].value > 0


@pytest.mark.parametrize(
    ("members", "split", "size"),
    [
        (Sample(), UnknownSplit(), 1000),
        (Census(), UnknownSplit(), 1000),
        (Subset(of=1050), UnknownSplit(), 1000),
        *((Sample(), split, size) for split in (RandomSplit(), UnknownSplit()) for size in (100, 500)),
    ],
)
def test_noise_is_not_called_leakage(simulated, members, split, size):
    """One test of all losses decides whether there is a finding, and it is wrong in at most 5%.

    The census's own numbers are above guessing far more often, and the test sees it.
    """
    alarms, own = simulated(lambda rng: found(rng, members, split, size), seed=41, runs=(30, 3000)).T
    assert seldom(alarms)
    if isinstance(members, Census):
        assert not seldom(own)


def test_a_leak_is_found_in_a_census(simulated):
    """Members whose losses are lower by one standard deviation are distinguished from others in a census of 1,000."""
    looks = simulated(
        lambda rng: found(rng, Census(), UnknownSplit(), 1000, leak=1.0), seed=43, runs=(6, 200)
    )
    assert looks[:, 0].all()


@pytest.mark.parametrize("sizes", [(15, 15), (30, 30), (400, 100), (1000, 1000)])
def test_the_stated_leak_is_found_in_four_of_five(simulated, sizes):
    """Normal losses that are the stated mu apart are found in at least 80% of the audits."""
    mu = smallest_mu(sizes, alpha=0.6 * 0.05)

    def missed(rng):
        losses = Losses(member=rng.normal(-mu, 1, sizes[0]), nonmember=rng.normal(size=sizes[1]))
        return finding(looked_at(losses)).sign.word != "Leakage found"

    assert seldom(simulated(missed, seed=44, runs=(40, 1000)), level=0.2)


@pytest.mark.parametrize("spread", ["none", "tied", "higher", "high_tail"])
def test_a_direction_that_is_not_there_is_seldom_stated(simulated, spread):
    """No leak, members lower nowhere, or higher nowhere: the direction that is not there is stated in at most its share."""

    def wrong(rng):
        member, nonmember = rng.normal(size=60), rng.normal(size=90)
        if spread == "tied":
            member, nonmember = rng.integers(0, 5, 60), rng.integers(0, 5, 90)
        elif spread == "higher":
            member = member + 1
        elif spread == "high_tail":
            member = np.minimum(member, 1.0)  # members are nowhere higher
        losses = Losses(member=member.astype(float), nonmember=nonmember.astype(float))
        p_values = omnibus(losses, rng=np.random.default_rng(int(rng.integers(2**31))))
        low, high = p_values[0] <= 0.05 * 2 / 3, p_values[1] <= 0.05 / 3
        return {"higher": low, "high_tail": high}.get(spread, low or high)

    assert seldom(simulated(wrong, seed=45, runs=(60, 4000)))
