"""The sign at the top of a report: without any leakage "Leakage found" is said in at most 5% of the audits."""

import pytest
from simulation import looked_at, seldom

from auditor.checks import smallest_mu
from auditor.core import Census, Losses, RandomSplit, Sample, Subset, UnknownSplit
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
    """The sign is the first of six looks that finds something, and all together are wrong in at most 5%.

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
    mu = smallest_mu(sizes, alpha=0.05 / 6)

    def missed(rng):
        losses = Losses(member=rng.normal(-mu, 1, sizes[0]), nonmember=rng.normal(size=sizes[1]))
        return finding(looked_at(losses)).sign.word != "Leakage found"

    assert seldom(simulated(missed, seed=44, runs=(40, 1000)), level=0.2)
