"""The sign at the top of a report: without any leakage "Leakage found" is said in at most 5% of the audits."""

import numpy as np
import pytest
from simulation import at_most, runs_for

from auditor import AuditResult
from auditor.core import Census, Losses, RandomSplit, Sample, Subset, UnknownSplit
from auditor.curves import count
from auditor.estimators import advantage, auc, clopper_pearson, one_run_bound, tpr_at_fpr
from auditor.report import finding

LEAK = "Leakage found"


def result(losses, members, split=None, rng=None):
    """A result with every row that the sign looks at."""
    split = UnknownSplit() if split is None else split
    kind = {Census: "census", Subset: "subset", Sample: "sample"}[type(members)]
    counts, options = count(losses), {"members": members}
    return AuditResult(
        data={"n_member": losses.n_member, "n_nonmember": losses.n_nonmember, "members": kind},
        estimates=(
            clopper_pearson(losses, delta=1e-5, **options),
            one_run_bound(losses, split=split, delta=1e-5, rng=rng),
            advantage(counts, **options),
            auc(counts),
            *(tpr_at_fpr(losses, rate=rate, **options) for rate in (0.1, 0.01, 0.001)),
        ),
        claims=(),
        comparisons=(),
        checks=(),
        curves=(),
        histograms=(),
        verdict=None,
        provenance={},
    )


def noise(rng, size):
    """Losses that tell nothing."""
    return Losses(member=rng.normal(size=size), nonmember=rng.normal(size=size))


@pytest.mark.parametrize(
    "members", [Sample(), Census(), Subset(of=1050)], ids=lambda item: type(item).__name__
)
def test_noise_is_not_called_leakage(request, members):
    """However the members were chosen; the census's own numbers are above guessing far more often, and the test sees it."""
    rng, runs = np.random.default_rng(41), runs_for(request, 150, 2000)
    alarms, own = 0, 0
    for _ in range(runs):
        found = result(noise(rng, 1000), members, rng=rng)
        alarms += finding(found).sign.word == LEAK
        own += found.estimates[0].value > 0
    assert at_most(alarms, runs), alarms
    if isinstance(members, Census):
        assert not at_most(own, runs), own


@pytest.mark.parametrize("size", [100, 500])
@pytest.mark.parametrize("split", [RandomSplit(), UnknownSplit()], ids=lambda item: type(item).__name__)
def test_all_looks_together_keep_the_level(request, size, split):
    """The sign is the first of five looks that finds something, and all of them together are wrong in at most 5%."""
    rng, runs = np.random.default_rng(42), runs_for(request, 200, 3000)
    signs = [finding(result(noise(rng, size), Sample(), split, rng)).sign.word for _ in range(runs)]
    assert at_most(signs.count(LEAK), runs), signs.count(LEAK)


def test_a_leak_is_found_in_a_census(request):
    """Members whose losses are lower by one standard deviation are told from others in a census of 1,000."""
    rng, runs = np.random.default_rng(43), runs_for(request, 20, 200)
    for _ in range(runs):
        losses = Losses(member=rng.normal(-1, 1, 1000), nonmember=rng.normal(size=1000))
        assert finding(result(losses, Census(), rng=rng)).sign.word == LEAK
