"""Shared parts of every simulation of a level or a coverage."""

import numpy as np
from hypothesis import HealthCheck, settings
from scipy import stats

from auditor import AuditResult
from auditor.core import Sample
from auditor.estimators import Counts, MemberLimits, threshold_bound
from auditor.estimators.evidence import Evidence
from auditor.estimators.registry import ESTIMATORS
from auditor.estimators.setting import AuditOptions, Inputs
from auditor.pipeline import shown_together

ALPHA = 0.05


# What losses may be distributed as: bounds that go by ranks alone are the same for every law without ties.
LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "five values": lambda rng, n: rng.integers(0, 5, n) + 0.0,
    "mostly one value": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
}


def at_most(misses, runs, level=ALPHA):
    """Whether so many misses are compatible with the level: their tail probability is not below 1e-3.

    A rate that is too high is found in 9 of 10 simulations as `found_rate` says: 41% of 20 runs, 18% of 100, 12% of 300.
    """
    return stats.binom.sf(misses - 1, runs, level) > 1e-3


def found_rate(runs, level=ALPHA):
    """Return the rate of misses that so many runs tell from the level in 9 of 10 simulations."""
    refused = next(misses for misses in range(runs + 1) if not at_most(misses, runs, level))
    return float(stats.beta.ppf(0.9, refused, runs - refused + 1))


def seldom(misses, level=ALPHA):
    """Whether what missed, run by run, and each of several things that may have, is compatible with the level."""
    return all(at_most(int(number), len(misses), level) for number in np.atleast_1d(misses.sum(axis=0)))


def run_machine(request, machine, *, steps):
    """Run a stateful test machine: a few histories always drawn alike, and with ``--long`` many of all kinds."""
    often = request.config.getoption("--long")
    case = machine.TestCase
    case.settings = settings(
        max_examples=300 if often else 15,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=not often,
        suppress_health_check=list(HealthCheck),
    )
    case().runTest()


def outside(truth, found):
    """Whether the truth is not in an interval."""
    return not found.lower <= truth <= found.upper


def runs_for(request, short, long):
    """Numbers of repetitions, by the size requested."""
    return long if request.config.getoption("--long") else short


def told(name, misses, number):
    """How many missed, of how many, printed for the table of the long run."""
    print(f"\n{name}: {misses / number:.4f} of {number}")  # noqa: T201
    return misses, number


def rate_of(request, name, missed, *, seed, runs, long=4000):
    """How many audits missed, of how many."""
    rng, number = np.random.default_rng(seed), runs_for(request, runs, long)
    return told(name, sum(bool(missed(rng)) for _ in range(number)), number)


def bound_of(hits, members, alarms, nonmembers, *, delta, confidence=0.95):
    """The bound of one threshold fixed in advance, from its four counts."""
    limits = MemberLimits(Sample(), members)
    counts = Counts(hits, members, alarms, nonmembers)
    found = threshold_bound(counts, limits, delta=delta, alpha=1 - confidence)
    return max(0.0, found.epsilon)


_LOOKED_AT = ("certified bound", "one run", "measured rates", "guaranteed rates")


def evidence_of(losses, *estimators, **chosen):
    """The evidence of an audit with these estimators and options."""
    inputs = Inputs(losses, AuditOptions(**{"delta": 1e-5, **chosen}))
    return Evidence(inputs, inputs.setting, tuple(ESTIMATORS[name] for name in estimators))


def looked_at(losses, **chosen):
    """The result that a headline goes by: the rows that it looks at, and which of them hold together."""
    evidence = evidence_of(losses, *_LOOKED_AT, **chosen)
    data = evidence.inputs.described(evidence.losses)
    return result_of({**data, "shown": shown_together(evidence)}, *evidence.estimates)


def result_of(data, *estimates):
    """The result of an audit that made these estimates and nothing else."""
    empty = dict.fromkeys(("claims", "comparisons", "checks", "curves", "histograms"), ())
    return AuditResult(data=data, estimates=estimates, verdict=None, provenance={}, **empty)
