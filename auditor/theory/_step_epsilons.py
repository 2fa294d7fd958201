"""The exact epsilon of one sampled step at any delta: the step's privacy profile, inverted.

Added records and batches of a fixed size: the sampled step's larger delta is q delta_Gauss(log(1 + (e^eps - 1)/q)), so
its epsilon is the Gaussian's at delta/q, amplified; subsampling amplification loses nothing there (Balle, Barthe and
Gaboardi 2018, Theorems 8, 9 and 11).

Replaced records and coins, P and Q of `auditor.theory._step_pairs`: the best event is an output x > c, and with
R(t) = Phi(-t)/phi(t) the normal tails cancel into two positive parts [own],

    delta = q (Phi((1-c)/s) - (n_1/n_0) Phi(-c/s)) + q e^eps (n_-1/n_0) (Phi(-c/s) - (n_0/n_-1) Phi((-1-c)/s)),

n_m the density of N(m, s^2) at c and e^eps the ratio of the two mixtures there. Each bracket is the delta of two
Gaussians 1/s apart, which `auditor.theory.gaussian` knows to the last digits.
"""

import numpy as np
import numpy.typing as npt

from auditor.theory._step_pairs import StepPair
from auditor.theory.amplification import amplified_epsilons
from auditor.theory.gaussian import (
    gaussian_epsilons,
    log_delta_at,  # in units of a = (1 - c)/s, in which it does not cancel
)
from auditor.values import Floats

__all__ = ["step_epsilons"]

# As in auditor.theory.gaussian: where a = (1 - c)/s is looked for, and how finely.
_LOWEST = -40.0
_HIGHEST = 35.0
_FURTHEST = -1e8
_HALVINGS = 60
# Outside, the squares leave the range of a double: less noise is beyond all use, more counts as this much.
_LEAST_NOISE = 1e-150
_MOST_NOISE = 1e150
_LARGE = 30.0


def step_epsilons(noise: Floats, rate: Floats, pair: StepPair, *, deltas: npt.ArrayLike) -> Floats:
    """Return the smallest epsilon of one step at each delta, of both orders the larger, rounded up.

    Args:
        noise: Noise multipliers, above 0.
        rate: Sampling rates in (0, 1], as many.
        pair: What a step lets an attacker tell apart.
        deltas: A shape that goes with these, 0 or more; at 0 the epsilon is infinite.

    >>> one = np.ones(1)
    >>> step_epsilons(one, 0.01 * one, StepPair.REPLACE_ONE, deltas=1e-8).round(3).tolist()
    [0.849]
    """
    noise, rate, delta = np.broadcast_arrays(noise, rate, np.asarray(deltas, dtype=np.float64))
    with np.errstate(over="ignore"):
        unsampled = gaussian_epsilons(pair.distance / noise, deltas=delta / rate)
    found = amplified_epsilons(unsampled, sampling_rate=rate)
    if pair is not StepPair.REPLACE_ONE:
        return found
    # Amplified, it is a bound here too: good where records are always drawn, or epsilon is infinite.
    exact = (rate < 1) & (noise > _LEAST_NOISE) & (delta > 0)
    found[exact] = np.minimum(
        found[exact], _replaced(np.minimum(noise[exact], _MOST_NOISE), rate[exact], np.log(delta[exact]))
    )
    return found


def _replaced(noise: Floats, rate: Floats, log_delta: Floats) -> Floats:
    """Return epsilons of replaced records by halving the range of a = (1 - c)/s."""
    from scipy.special import erf

    low, high = np.full_like(noise, _LOWEST), np.minimum(1 / noise, _HIGHEST)
    none = np.log(rate) + np.log(erf(1 / (noise * np.sqrt(2)))) <= log_delta
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        over = _at(middle, noise, rate)[1] > log_delta
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.where(none, 0.0, _at(low, noise, rate)[0])


def _at(a: Floats, noise: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Return epsilon and the logarithm of delta where the event's edge is c = 1 - a s."""
    edge, mu = 1 - a * noise, 1 / noise
    towards, away = (2 * edge - 1) / (2 * noise**2), (-2 * edge - 1) / (2 * noise**2)
    epsilon = np.maximum(_log_mixture(towards, rate) - _log_mixture(away, rate), 0.0)
    first = log_delta_at(a, mu)
    second = epsilon + away + log_delta_at(np.maximum(-edge / noise, _FURTHEST), mu)
    return epsilon, np.log(rate) + np.logaddexp(first, second)


def _log_mixture(z: Floats, rate: Floats) -> Floats:
    """Return log(1 - p + p e^z) for p below 1, to the last digits also where it is tiny."""
    small = np.log1p(rate * np.expm1(np.clip(z, -1.0, _LARGE)))
    rest, log_rate = np.log1p(-rate), np.log(rate)
    # Far below 0 the first form loses the digits of 1 - p if p is near 1, the second those of p if it is near 0.
    far = np.where(
        rate < 1 / 2, np.log1p(rate * np.expm1(np.minimum(z, 0.0))), np.logaddexp(rest, log_rate + z)
    )
    return np.where(z < -1, far, np.where(z < _LARGE, small, np.logaddexp(rest, log_rate + z)))
