"""The lecture on auditing (002): the runs that an audit needs, and the planted bug of its audit acted out again.

Elsewhere: errata with their numbers in `test_errata.py`; the odds 39 and 61 of 100 in `tests/report/test_recognition.py`; the
audit of backpropagation clipping in `tests/runs/test_audit_runs.py`; composition, curves and Gaussian DP in `tests/theory`.
"""

import math

import numpy as np
import pytest
from experiments import mechanisms, runs_needed
from scipy import special

import auditor
from auditor import DPSGD, theory
from auditor.estimators import lower_limit, upper_limit

CLAIM = auditor.StatedClaim(epsilon=0.21, delta=1e-5)


@pytest.mark.parametrize("test", [runs_needed.by_counts, runs_needed.by_gdp])
def test_a_share_that_no_runs_show_needs_infinitely_many(test):
    """No number of runs shows more than all of epsilon: the answer is infinity, not the end of the search."""
    assert runs_needed.runs_needed(test, epsilon=1.0, share=1.01, delta=1e-5) == math.inf
    assert math.isfinite(runs_needed.runs_needed(test, epsilon=1.0, share=0.9, delta=1e-5))


def test_the_runs_that_are_needed_are_those():
    """With the number of runs found, simulated audits at the best threshold show the share of epsilon in about half."""
    epsilon, share, delta = 8.0, 0.5, 1e-5
    mu = theory.gaussian_mu(epsilon, delta=delta)
    n = round(runs_needed.runs_needed(runs_needed.by_counts, epsilon=epsilon, share=share, delta=delta))
    z = np.linspace(-5, -1, 401)
    bounds = np.log(
        (lower_limit(n * special.ndtr(z + mu), n, 0.025) - delta) / upper_limit(n * special.ndtr(z), n, 0.025)
    )
    at, rng = z[np.argmax(bounds)], np.random.default_rng(4)
    hits, alarms = (rng.binomial(n, special.ndtr(x), 2000) for x in (at + mu, at))
    shown = np.log((lower_limit(hits, n, 0.025) - delta) / upper_limit(alarms, n, 0.025))
    assert np.mean(shown >= share * epsilon) == pytest.approx(0.5, abs=0.1)


def test_the_runs_that_a_gaussian_test_needs_are_those():
    """With the number that `by_gdp` needs, simulated audits at the best threshold show the share of epsilon in about half."""
    epsilon, share, delta = 1.0, 0.75, 1e-5
    mu = theory.gaussian_mu(epsilon, delta=delta)
    n = round(runs_needed.runs_needed(runs_needed.by_gdp, epsilon=epsilon, share=share, delta=delta))

    def shown(alarms, misses):
        return -special.ndtri(upper_limit(alarms, n, 0.025)) - special.ndtri(upper_limit(misses, n, 0.025))

    z = np.linspace(-3, 3, 401)
    at = z[np.argmax(shown(n * special.ndtr(z), n * special.ndtr(-z - mu)))]
    rng = np.random.default_rng(6)
    drawn = shown(rng.binomial(n, special.ndtr(at), 2000), rng.binomial(n, special.ndtr(-at - mu), 2000))
    least = theory.gaussian_mu(share * epsilon, delta=delta)
    assert np.mean(drawn >= least) == pytest.approx(0.5, abs=0.1)
    assert np.mean(drawn >= theory.gaussian_mu(1.1 * share * epsilon, delta=delta)) < 0.4


# --- The bug, planted ------------------------------------------------------------------------------


def moved(*, per_record):
    """How far the canary moves the mean gradient before noise, at the start."""
    with_it, without = (mechanisms.SETUP.data(with_canary=there) for there in (True, False))
    start = np.zeros(with_it.shape[1])
    ends = [mechanisms.mean_gradient(batch, start, per_record=per_record) for batch in (with_it, without)]
    return float(np.linalg.norm(ends[0] - ends[1]))


def test_the_bug_is_a_sensitivity_wrong_by_a_factor_of_the_batch():
    """The canary moves the mean of clipped gradients by C/B, which the noise is for, and the clipped mean by 40 times it."""
    promised = mechanisms.SETUP.clip / mechanisms.SETUP.batch
    assert moved(per_record=True) == pytest.approx(promised, rel=1e-9)
    assert moved(per_record=False) > 40 * promised


def test_the_correct_mechanism_keeps_its_claim():
    """By the accountant the noise of both mechanisms gives epsilon .21 at 1e-5 if a record moves the mean by C/B."""
    setup = mechanisms.SETUP
    run = DPSGD(mechanisms.noise_multiplier(), setup.sampling_rate, setup.steps)
    assert mechanisms.CLAIM == CLAIM
    assert theory.epsilon(run, delta=1e-5).value == pytest.approx(0.21, abs=1e-3)
    assert theory.epsilon(run, delta=1e-5).value <= 0.21 + 1e-9


@pytest.fixture(scope="module", params=[(500, 2000), pytest.param((5000, 100_000), marks=pytest.mark.long)])
def audits(request):
    """Both mechanisms, audited with trainings that chose the threshold and others that were counted."""
    choosing, judged = request.param
    found = {}
    for train in (mechanisms.train_correctly, mechanisms.train_with_bug):
        others = auditor.collect_runs(train, runs=choosing, seed=1, workers=1)
        losses = auditor.collect_runs(train, runs=judged, seed=0, workers=1)
        found[train] = auditor.audit_runs(losses, threshold_runs=others, delta=1e-5, claim=CLAIM)
    return found


def test_the_planted_bug_is_refuted_and_the_correct_mechanism_is_not(audits):
    """With the bug epsilon is 2 at least, at 95%; without it the same audit keeps the claim, far below its ceiling."""
    bug, correct = (audits[train] for train in (mechanisms.train_with_bug, mechanisms.train_correctly))
    assert (bug.verdict, correct.verdict) == ("refuted", "not_refuted")
    assert bug.estimate("epsilon_bound.clopper_pearson").value > 2
    bound = correct.estimate("epsilon_bound.clopper_pearson")
    assert bound.value <= 0.21
    assert bound.details["ceiling"] > 5
