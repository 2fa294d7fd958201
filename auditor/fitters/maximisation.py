"""Expectation-maximisation for weighted values in one dimension, accelerated.

A step takes the memberships of every value under the present mixture and refits the components to them. Three steps
in a row give a direction and a step length (SQUAREM; Varadhan and Roland 2008, scheme S3): far fewer steps where
components overlap and the plain iteration crawls.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from auditor.values import Floats

__all__ = ["LEAST_VARIANCE", "LEAST_WEIGHT", "Parameters", "Runs", "condensed", "maximise"]

_EXACT_TAIL = 500
_RUNS = 1000
# Smallest component spread, beside the sample's own scale of 1: without it a component collapses onto one record.
LEAST_VARIANCE = 1e-6
LEAST_WEIGHT = 1e-300
_GAIN = 1e-3  # in nats of the whole log-likelihood, for one cycle of three steps
_CYCLES = 60


class Parameters(NamedTuple):
    """Shares, means and variances of the components."""

    weights: Floats
    means: Floats
    variances: Floats


@dataclass(frozen=True, eq=False)
class Runs:
    """A sample as runs of neighbouring values: their means, how many records each holds, their variance within."""

    values: Floats
    counts: Floats
    within: Floats


def condensed(ordered: Floats) -> Runs:
    """Return runs that stand for a long ascending sample: every record in both tails, short runs between.

    The mean and variance of the whole sample are kept exactly, so that one component is fitted as on all records.
    """
    length = (ordered.size - 2 * _EXACT_TAIL) // _RUNS
    if length <= 1:
        return Runs(ordered, np.ones(ordered.size), np.zeros(ordered.size))
    end = _EXACT_TAIL + _RUNS * length
    middle = ordered[_EXACT_TAIL:end].reshape(_RUNS, length)
    tails = (_EXACT_TAIL, ordered.size - end)
    return Runs(
        np.concatenate([ordered[:_EXACT_TAIL], middle.mean(axis=1), ordered[end:]]),
        np.repeat([1.0, length, 1.0], [tails[0], _RUNS, tails[1]]),
        np.concatenate([np.zeros(tails[0]), middle.var(axis=1), np.zeros(tails[1])]),
    )


def _step(runs: Runs, at: Parameters) -> tuple[Parameters, float]:
    """One step, and the log-likelihood (up to a constant) of where it started."""
    distance = runs.values[:, None] - at.means
    terms = distance * distance
    terms += runs.within[:, None]
    terms /= -2.0 * at.variances
    terms += np.log(at.weights) - 0.5 * np.log(at.variances)
    top = terms.max(axis=1, keepdims=True)
    terms -= top
    share = np.exp(terms, out=terms)
    total = share.sum(axis=1, keepdims=True)
    likelihood = float((runs.counts * (np.log(total) + top)[:, 0]).sum())
    share *= runs.counts[:, None] / total
    mass = np.maximum(share.sum(axis=0), LEAST_WEIGHT)
    means = np.einsum("ij,i->j", share, runs.values) / mass
    offset = runs.values[:, None] - means
    offset *= offset
    offset += runs.within[:, None]
    variances = np.maximum(np.einsum("ij,ij->j", share, offset) / mass, LEAST_VARIANCE)
    weights = np.maximum(mass / mass.sum(), LEAST_WEIGHT)
    return Parameters(weights, means, variances), likelihood


def _packed(at: Parameters) -> Floats:
    return np.concatenate([np.log(at.weights), at.means, np.log(at.variances)])


def _unpacked(theta: Floats) -> Parameters:
    logs, means, spreads = np.split(theta, 3)
    weights = np.exp(logs - logs.max())
    variances = np.exp(np.clip(spreads, math.log(LEAST_VARIANCE), 500.0))
    return Parameters(np.maximum(weights / weights.sum(), LEAST_WEIGHT), means, variances)


def maximise(runs: Runs, start: Parameters, *, cycles: int = _CYCLES) -> tuple[Parameters, float]:
    """Return the nearest maximum of the log-likelihood, and its height in nats up to a constant.

    Args:
        runs: Values of a scale near 1.
        start: Where to begin.
        cycles: Largest number of accelerated cycles.
    """
    at, best = start, -math.inf
    for _ in range(cycles):
        first, likelihood = _step(runs, at)
        if likelihood - best < _GAIN and best > -math.inf:
            break
        best = likelihood
        second, reached = _step(runs, first)
        at = _leap(runs, at, first, second, least=reached)
    return at, _step(runs, at)[1]


def _leap(
    runs: Runs, origin: Parameters, first: Parameters, second: Parameters, *, least: float
) -> Parameters:
    """Extrapolate two steps to their limit; back to the second one where that is no gain."""
    theta, one, two = (_packed(item) for item in (origin, first, second))
    r, v = one - theta, two - 2 * one + theta
    bend = float(np.sqrt((v * v).sum()))
    if bend == 0:
        return second
    length = -max(1.0, float(np.sqrt((r * r).sum())) / bend)
    third, reached = _step(runs, _unpacked(theta - 2 * length * r + length * length * v))
    return third if math.isfinite(reached) and reached >= least else second
