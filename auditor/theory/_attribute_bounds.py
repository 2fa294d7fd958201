"""Bounds on what a sensitive attribute gives away in DP-SGD, as arithmetic on the steps, in logs [own]."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from auditor.choices import DPSGD
from auditor.values import Floats

__all__ = ["Risk", "Steps", "bound", "gaussian", "log_spread", "log_total", "steps_of"]

# exp(600) is still a double; whatever is capped there has long saturated the result.
_CAP = 600.0


class Risk(NamedTuple):
    """An advantage and what it leaves, each to its own last digit."""

    advantage: float
    security: float


@dataclass(frozen=True)
class Steps:
    """Every step in logs: sampling rate, distance over noise, distance over clip, and how often it stands for a step."""

    log_rate: Floats
    log_shift: Floats
    distance: Floats
    log_inverse_variance: Floats
    times: int


def steps_of(training: DPSGD, distance: Floats) -> Steps:
    with np.errstate(divide="ignore"):
        log_rate, log_noise, log_distance = (
            np.log(np.asarray(column, dtype=np.float64))
            for column in (training.sampling_rate, training.noise_multiplier, distance)
        )
    one = log_rate.size == log_noise.size == distance.size == 1
    return Steps(
        log_rate=log_rate,
        log_shift=np.minimum(log_distance - log_noise, _CAP / 2),
        distance=distance,
        log_inverse_variance=np.minimum(-2 * log_noise, _CAP),
        times=training.steps if one else 1,
    )


def log_total(steps: Steps, logs: Floats) -> float:
    """Return the log of the sum over steps of exp(logs)."""
    top = float(np.max(logs))
    if top == -math.inf:
        return top
    every = np.broadcast_to(logs, np.broadcast_shapes(logs.shape, steps.distance.shape))
    return top + math.log(float(np.sum(np.exp(every - top)))) + math.log(steps.times)


def gaussian(log_squared_shift: float) -> Risk:
    """Return the total variation of two unit normals from twice the log of their distance: erf(mu / (2 sqrt2))."""
    half = math.exp(min(log_squared_shift, _CAP) / 2) / (2 * math.sqrt(2))
    return Risk(math.erf(half), math.erfc(half))


def log_spread(steps: Steps, *, reach: float) -> Floats:
    """Return the log of the largest integral of (N(g) - N(h))^2 / N(0), over |g|, |h| <= 1 and |g - h| <= R.

    With u = 1 / s^2 the integral is e^(u |g|^2) + e^(u |h|^2) - 2 e^(u <g, h>) [own]. It rises in the longer of the two
    lengths, hence |h| = 1, and is then largest with g on the line to the origin, g = (1 - R) h, or with |g| = 1. The
    first is e^u [(1 - e^(-u R))^2 + e^(-u R (2 - R)) (1 - e^(-u R^2))], the second 2 e^u (1 - e^(-u R^2 / 2)).
    At R = 2 it is 4 sinh(u), as in the form for replaced records.

    In a batch of fixed size the record took the place of another one, whose gradient is then the origin: the two are
    up to 2 away from it (``reach``), which is the same with the lengths in units of 2.
    """
    u = np.exp(np.minimum(steps.log_inverse_variance + 2 * math.log(reach), _CAP))
    distance = steps.distance / reach
    with np.errstate(divide="ignore", under="ignore"):
        line = np.expm1(-u * distance) ** 2 - np.exp(-u * distance * (2 - distance)) * np.expm1(
            -u * distance**2
        )
        circle = -2 * np.expm1(-u * distance**2 / 2)
        return np.asarray(u + np.log(np.maximum(line, circle)))


def bound(steps: Steps, spread: Floats) -> Risk:
    """Return the smallest of three upper bounds on the total variation [own]; r = R / (s C) is one step's shift.

    By steps: the total variation of a run is at most the sum over its steps, p erf(r / (2 sqrt2)) each.

    By revealed draws: who also learns which steps drew the record sees Gaussians a distance r apart in those steps and
    nothing in the others: E erf(sqrt(sum of the drawn r^2) / (2 sqrt2)), and erf(sqrt(x)) is concave, so that the
    expectation of the sum in its place is an upper bound. Tight at p = 1.

    By chi-square: one step's divergence is at most p^2 [(1 - p) spread + p (e^(r^2) - 1)], because 1/x is convex and
    the second world is a mixture, and at most p^2 spread / (1 - p), where the mixture is cut to one part. One plus
    chi-square multiplies over steps, and the total variation v satisfies chi-square >= 4 v^2 up to v = 1/2 and >= v / (1 - v) beyond (the least of v^2 / (b (1 - b)) over b <= 1 - v).
    """
    from scipy.special import erf

    rate, shift = np.exp(steps.log_rate), np.exp(steps.log_shift)
    by_steps = float(np.sum(rate * erf(shift / (2 * math.sqrt(2))))) * steps.times
    revealed = gaussian(log_total(steps, steps.log_rate + 2 * steps.log_shift))
    with np.errstate(divide="ignore", under="ignore", invalid="ignore"):
        drawn = steps.log_rate + shift**2 + np.log(-np.expm1(-(shift**2)))
        rest = np.log1p(-rate)
        # At rate 1 the second form is infinite, or without meaning where the distance is 0.
        log_chi = 2 * steps.log_rate + np.fmin(np.logaddexp(rest + spread, drawn), spread - rest)
    total = float(np.sum(np.logaddexp(0.0, log_chi))) * steps.times
    by_chi_square = (
        _less(math.sqrt(math.expm1(total)) / 2)
        if total <= math.log(2)
        else Risk(-math.expm1(-total), math.exp(-total))
    )
    return min(_less(min(by_steps, 1.0)), revealed, by_chi_square, key=lambda risk: risk.advantage)


def _less(advantage: float) -> Risk:
    return Risk(advantage, 1 - advantage)
