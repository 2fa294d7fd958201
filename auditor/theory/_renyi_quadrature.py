"""Renyi and Kullback-Leibler divergences of one DP-SGD step, by Gauss-Legendre quadrature in logs.

With r = dP/dQ = e^L, e^((a-1) D_a) = 1 + integral of Q (r^a - 1 - a (r - 1)), since r has mean 1 under Q. That
integrand is nowhere negative, so nothing cancels: the digits of a divergence of 1e-18 are as good as those of 1e6.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from auditor.theory._step_pairs import StepPair, log_mixture
from auditor.training import Phase
from auditor.values import Floats

__all__ = ["kullback_leibler", "log_moment_excess"]

# Normal tails beyond so many standard deviations weigh less than e^-72 of what lies within.
_REACH = 12.0
_MOST_NOISE = 1e100
# A component takes over from another within so many times s^2.
_TURN = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Below, the first terms of the series are exact to 1e-12; above, differences of exponentials are.
_SMALL = 1e-4
# Beyond, e^z - 1 is e^z to all digits, and e^z will overflow.
_LARGE = 40.0


class _Law(NamedTuple):
    """Privacy losses at the nodes, and the logarithms of the two laws' densities there with the nodes' weights."""

    loss: Floats
    log_p: Floats
    log_q: Floats


@lru_cache(maxsize=4096)  # kinds of steps share their phases
def log_moment_excess(phase: Phase, pair: StepPair, *, order: float) -> float:
    """Return log(e^((order-1) D) - 1) for one step's Renyi divergence D of this order above 1; of both orders alike."""
    law = _law(phase, pair, order)
    total = _log_sum(law.log_q + _log_excess(law.loss, order))
    if pair is StepPair.FIXED_SIZE:  # the mirrored half; the rest of the mass lies at loss 0 and adds nothing
        total = np.logaddexp(total, _log_sum(law.log_p + _log_excess(-law.loss, order)))
    return float(total)


def kullback_leibler(phase: Phase, pair: StepPair) -> tuple[float, float]:
    """Return one step's divergences of the first law from the second and of the second from the first, in nats."""
    law = _law(phase, pair, 1.0)
    forward = math.exp(_log_sum(law.log_q + _log_entropy(law.loss)))
    backward = math.exp(_log_sum(law.log_p + _log_entropy(-law.loss)))
    return (forward + backward,) * 2 if pair is StepPair.FIXED_SIZE else (forward, backward)


def _log_sum(values: Floats) -> float:
    from scipy.special import logsumexp

    return float(logsumexp(values))


def _law(phase: Phase, pair: StepPair, order: float) -> _Law:
    # Two means 2 apart at noise s are two means 1 apart at noise s/2.
    scale = 2.0 if pair is StepPair.FIXED_SIZE else 1.0
    # More noise than this counts as this much, which can only be worse.
    noise, rate = min(phase.noise_multiplier, _MOST_NOISE) / scale, phase.sampling_rate
    x, width = _nodes(noise, rate, order, pair)
    base = np.log(width) - ((x / noise) ** 2) / 2 - math.log(noise * math.sqrt(2 * math.pi))
    upper = log_mixture(x, noise=noise, rate=rate, mean=1.0)
    lower = np.zeros_like(x)
    if pair is StepPair.REPLACE_ONE:
        lower = log_mixture(x, noise=noise, rate=rate, mean=-1.0)
    return _Law(upper - lower, base + upper, base + lower)


def _nodes(noise: float, rate: float, order: float, pair: StepPair) -> tuple[Floats, Floats]:
    """Return nodes and weights wherever the integrand has mass: around its possible peaks and the turning points."""
    turn = 0.5 + noise**2 * (math.log1p(-rate) - math.log(rate)) if rate < 1 else 0.5
    # P^a Q^(1-a) peaks where x = a w - (a-1) v, w and v the shares of the components that are not at 0.
    peaks = {0.0, 1.0, order}
    turns = {turn}
    if pair is StepPair.REPLACE_ONE:
        peaks |= {-1.0, order - 1, 2 * order - 1}
        turns |= {-turn}
    reach = _REACH * noise
    low, high = min(peaks) - reach, max(peaks) + reach
    if pair is StepPair.FIXED_SIZE:
        low = 0.5
    spans = [(peak - reach, peak + reach) for peak in peaks]
    spans += [(at - _TURN * noise**2 - reach, at + _TURN * noise**2 + reach) for at in turns]
    # Finer near a turning point: the integrand's poles lie pi s^2 away from it.
    finer = noise**2 * 2.0 ** np.arange(-2, max(0, math.ceil(-math.log2(noise))) + 2)
    marks = [at + sign * step for at in turns for step in [0.0, *finer.tolist()] for sign in (-1, 1)]
    edges = [_panels(max(start, low), min(end, high), noise, marks) for start, end in _united(spans)]
    left = np.concatenate([edge[:-1] for edge in edges])
    half = np.concatenate([np.diff(edge) for edge in edges]) / 2
    inside = half > 0
    left, half = left[inside], half[inside]
    return (
        np.add.outer(left + half, np.zeros(_NODES.size)) + np.multiply.outer(half, _NODES)
    ).ravel(), np.multiply.outer(half, _WEIGHTS).ravel()


def _united(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _panels(start: float, end: float, noise: float, marks: list[float]) -> Floats:
    """Return the edges of panels of at most one standard deviation, and with edges at the marks; none if empty."""
    if end <= start:
        return np.zeros(1)
    edges = np.linspace(start, end, math.ceil((end - start) / noise) + 1)
    return np.unique(np.concatenate([edges, [mark for mark in marks if start < mark < end]]))


def _log_excess(loss: Floats, order: float) -> Floats:
    """Return log(r^a - 1 - a (r - 1)) at log r = loss."""
    far = np.maximum(np.abs(loss), order * np.abs(loss))
    with np.errstate(divide="ignore"):
        near = math.log(order * (order - 1) / 2) + 2 * np.log(np.abs(loss))
        near += np.log1p(np.clip((order + 1) * loss / 3, -0.5, 0.5))
        middle = np.where(order * loss < _LARGE, loss, 0.0)
        plain = np.log(np.maximum(np.expm1(order * middle) - order * np.expm1(middle), 0.0))
    large = np.maximum(loss, _LARGE / order)
    steep = order * large + np.log1p(
        np.exp(-order * large) * (order - 1) - order * np.exp((1 - order) * large)
    )
    return np.where(far < _SMALL, near, np.where(order * loss < _LARGE, plain, steep))


def _log_entropy(loss: Floats) -> Floats:
    """Return log(r log r - r + 1) at log r = loss: the limit of the above over a - 1."""
    with np.errstate(divide="ignore"):
        near = 2 * np.log(np.abs(loss)) - math.log(2) + np.log1p(np.clip(2 * loss / 3, -0.5, 0.5))
        middle = np.where(loss < _LARGE, loss, 0.0)
        plain = np.log(np.maximum(middle * np.exp(middle) - np.expm1(middle), 0.0))
    large = np.maximum(loss, _LARGE)
    steep = large + np.log(large - 1)
    return np.where(np.abs(loss) < _SMALL, near, np.where(loss < _LARGE, plain, steep))
