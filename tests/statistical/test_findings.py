"""The sign at the top of a report: without any leakage "Leakage found" is said in at most 5% of the audits."""

import pytest
from simulation import result_of, seldom

from auditor.core import Census, Losses, RandomSplit, Sample, Subset, UnknownSplit
from auditor.curves import count
from auditor.estimators import advantage, auc, clopper_pearson, one_run_bound, tpr_at_fpr
from auditor.report import finding


def found(rng, members, split, size, leak=0.0):
    """Whether leakage is said to be found, by every row that the sign looks at, and whether the first is above 0."""
    losses = Losses(member=rng.normal(-leak, 1, size), nonmember=rng.normal(size=size))
    kind = {Census: "census", Subset: "subset", Sample: "sample"}[type(members)]
    counts, options = count(losses), {"members": members}
    result = result_of(
        {"n_member": size, "n_nonmember": size, "members": kind},
        clopper_pearson(losses, delta=1e-5, **options),
        one_run_bound(losses, split=split, delta=1e-5, rng=rng),
        advantage(counts, **options),
        auc(counts),
        *(tpr_at_fpr(losses, rate=rate, **options) for rate in (0.1, 0.01, 0.001)),
    )
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
    """The sign is the first of five looks that finds something, and all together are wrong in at most 5%.

    The census's own numbers are above guessing far more often, and the test sees it.
    """
    alarms, own = simulated(lambda rng: found(rng, members, split, size), seed=41, runs=(200, 3000)).T
    assert seldom(alarms)
    if isinstance(members, Census):
        assert not seldom(own)


def test_a_leak_is_found_in_a_census(simulated):
    """Members whose losses are lower by one standard deviation are told from others in a census of 1,000."""
    looks = simulated(
        lambda rng: found(rng, Census(), UnknownSplit(), 1000, leak=1.0), seed=43, runs=(20, 200)
    )
    assert looks[:, 0].all()
