"""The difference of two audits covers the true one at its level, however the two depend on each other."""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import at_most, runs_for

from auditor import AuditResult
from auditor.comparison import Change, differences, headline
from auditor.core import Census, Losses, Sample
from auditor.curves import count
from auditor.estimators import advantage, auc

N = 600


def result(member, nonmember, members=Sample()):  # noqa: B008 - a frozen value
    """A result with the two rows that have a difference, and what they rest on."""
    counts = count(Losses(member=member, nonmember=nonmember))
    kind = "census" if isinstance(members, Census) else "sample"
    data = {"n_member": len(member), "n_nonmember": len(nonmember), "members": kind, "unit": "record"}
    return AuditResult(
        data=data,
        estimates=(advantage(counts, members=members), auc(counts)),
        claims=(),
        comparisons=(),
        checks=(),
        curves=(),
        histograms=(),
        verdict=None,
        provenance={},
    )


def releases(rng, shifts, correlation):
    """Two audits of the same records whose losses have this correlation; members are lower by the shift of the release."""
    root = math.sqrt(1 - correlation**2)
    draws = []
    for _ in ("member", "nonmember"):
        first = rng.normal(size=N)
        draws.append((first, correlation * first + root * rng.normal(size=N)))
    member, nonmember = draws
    return [
        result(member[release] - shift, nonmember[release])
        for release, shift in zip((0, 1), shifts, strict=True)
    ]


def truth(name, shifts):
    """The true difference for unit normals: 2 Phi(s/2) - 1 for the advantage, Phi(s/sqrt 2) for the AUC."""
    at = {
        "advantage": lambda s: 2 * stats.norm.cdf(s / 2) - 1,
        "auc": lambda s: stats.norm.cdf(s / math.sqrt(2)),
    }
    return at[name](shifts[1]) - at[name](shifts[0])


@pytest.mark.parametrize("correlation", [0.0, 0.95, -0.95, -1.0])
@pytest.mark.parametrize("shifts", [(0.3, 0.3), (0.3, 1.0), (1.5, 1.0), (3.5, 3.0)])
def test_the_difference_is_covered(request, correlation, shifts):
    """A true difference of either row lies outside its interval in at most 5% of the runs, under any dependence."""
    rng, runs = np.random.default_rng(31), runs_for(request, 150, 3000)
    misses = 0
    for _ in range(runs):
        found = differences(*releases(rng, shifts, correlation))
        misses += not all(item.lower <= truth(item.name, shifts) <= item.upper for item in found)
    assert at_most(misses, runs), misses


@pytest.mark.parametrize("correlation", [0.0, 0.95, -0.95])
def test_worse_is_seldom_said_without_a_change(request, correlation):
    """With the same true leak in both releases `worse` is said in at most 2.5% of the runs, one of two sides."""
    rng, runs = np.random.default_rng(32), runs_for(request, 200, 3000)
    alarms = sum(
        headline(differences(*releases(rng, (0.5, 0.5), correlation))).verdict is Change.WORSE
        for _ in range(runs)
    )
    assert at_most(alarms, runs, level=0.025)


def test_two_censuses_without_a_leak_seldom_differ(request):
    """Two training sets of 500 and no leakage at all: a change is said in at most 5% of the runs.

    Intervals that take the members for known say one in about every second run, which the test sees.
    """
    rng, runs = np.random.default_rng(35), runs_for(request, 200, 2000)
    alarms, known = 0, 0
    for _ in range(runs):
        pair = [result(rng.normal(size=500), rng.normal(size=20_000), Census()) for _ in range(2)]
        alarms += headline(differences(*pair)).verdict is not Change.NO_CHANGE_SHOWN
        old, new = (item.estimate("advantage") for item in pair)
        known += old.upper < new.lower or new.upper < old.lower
    assert at_most(alarms, runs), alarms
    assert not at_most(known, runs), known


def test_many_comparisons_hold_together(request):
    """Eight releases with the leak of the baseline: any of them is called changed in at most 5% of the runs."""
    rng, runs = np.random.default_rng(36), runs_for(request, 40, 500)
    alarms = 0
    for _ in range(runs):
        nine = [result(rng.normal(-0.5, 1, N), rng.normal(size=N)) for _ in range(9)]
        found = [headline(differences(nine[0], item, together=8)).verdict for item in nine[1:]]
        alarms += any(verdict is not Change.NO_CHANGE_SHOWN for verdict in found)
    assert at_most(alarms, runs), alarms


def test_independence_wrongly_assumed_would_be_caught(request):
    """The usual formula for independent samples misses far too often under negative dependence: the test can fail."""
    rng, runs = np.random.default_rng(33), runs_for(request, 200, 1000)
    misses = 0
    for _ in range(runs):
        old, new = (item.estimate("auc") for item in releases(rng, (0.5, 0.5), -0.95))
        error = math.hypot(*(item.details["standard_error"] for item in (old, new)))
        misses += abs(new.value - old.value) > stats.norm.isf(0.025) * error
    assert not at_most(misses, runs)


def test_a_large_change_is_found(request):
    """A rise of the true advantage from 0.12 to 0.45 is called worse in nearly every run at 600 records a group."""
    rng, runs = np.random.default_rng(34), runs_for(request, 40, 400)
    found = [headline(differences(*releases(rng, (0.3, 1.2), 0.5))).verdict for _ in range(runs)]
    assert found.count(Change.WORSE) >= 0.95 * runs
