"""The hockey-stick divergences of one step in closed form, and its privacy loss distribution, rounded up."""

import math
from typing import Any

import numpy as np

from auditor.theory._merging import Kind
from auditor.theory._step_pairs import StepPair, log_mixture
from auditor.training import Phase
from auditor.values import Floats

__all__ = ["rounded_up", "step_deltas"]

# Normal tails beyond so many standard deviations weigh 1e-23.
_REACH = 10.0


def step_deltas(phase: Phase, pair: StepPair, *, epsilons: Floats) -> tuple[Floats, Floats]:
    """Return delta at epsilons (of any sign), of the first law over the second and of the second over the first.

    The loss grows with the output x, so the best event is x > c with L(c) = eps, or x < c with L(c) = -eps.
    """
    if pair is StepPair.FIXED_SIZE:
        both = _fixed_size(phase, np.abs(epsilons))
        # Both orders are alike, so delta(-eps) = 1 - e^-eps + e^-eps delta(eps).
        both = np.where(epsilons < 0, -np.expm1(-np.abs(epsilons)) + np.exp(-np.abs(epsilons)) * both, both)
        return both, both
    noise, rate = phase.noise_multiplier, phase.sampling_rate
    other = -1.0 if pair is StepPair.REPLACE_ONE else 0.0

    def tails(mean: float, cut: Floats) -> Floats:
        """Log-probabilities that x > cut: of (1-p) N(0, s^2) + p N(mean, s^2)."""
        from scipy.special import log_ndtr

        with np.errstate(divide="ignore"):
            rest = np.log1p(-rate)
        drawn = math.log(rate) + log_ndtr((mean - cut) / noise)
        total: Floats = np.logaddexp(rest + log_ndtr(-cut / noise), drawn)
        return total

    above = _cut(epsilons, noise, rate, pair)
    forward = np.exp(tails(1.0, above)) - np.exp(epsilons + tails(other, above))
    if pair is StepPair.REPLACE_ONE:
        return np.clip(forward, 0, 1), np.clip(forward, 0, 1)
    below = _cut(-epsilons, noise, rate, pair)
    backward = np.exp(tails(-other, -below)) - np.exp(epsilons + tails(-1.0, -below))
    return np.clip(forward, 0.0, 1.0), np.clip(backward, 0.0, 1.0)


def rounded_up(kind: Kind, pair: StepPair, *, spacing: float) -> Any:
    """Return the privacy loss distribution of one step on a grid of losses, pessimistic by connecting the dots."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    furthest = math.ceil(max(_largest_loss(phase, pair) for _, phase in kind.parts) / spacing)
    # With added records no loss is below log(1 - p), in the one order, or above its negative in the other.
    rate = max(phase.sampling_rate for _, phase in kind.parts)
    least = furthest
    if pair is StepPair.ADD_REMOVE and rate < 1:
        least = min(furthest, math.ceil(-math.log1p(-rate) / spacing))
    epsilons = spacing * np.arange(-furthest, furthest + 1, dtype=np.float64)
    mixed = np.zeros((2, epsilons.size))
    for weight, phase in kind.parts:
        mixed += weight * np.stack(step_deltas(phase, pair, epsilons=epsilons))
    # Deltas fall with epsilon; rounding that says otherwise is taken upwards.
    falling = np.clip(np.maximum.accumulate(mixed[:, ::-1], axis=1)[:, ::-1], 0.0, 1.0)
    ranges = (
        [(-least, furthest), (-furthest, least)] if pair is StepPair.ADD_REMOVE else [(-furthest, furthest)]
    )
    masses = [
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            spacing, low, high, deltas[furthest + low : furthest + high + 1]
        )
        for deltas, (low, high) in zip(falling, ranges, strict=False)
    ]
    return pld.PrivacyLossDistribution(*masses)


def _largest_loss(phase: Phase, pair: StepPair) -> float:
    noise, rate = phase.noise_multiplier, phase.sampling_rate
    far = 2.0 if pair is StepPair.FIXED_SIZE else 1.0
    x = np.array([far + _REACH * noise])
    loss = log_mixture(x, noise=noise, rate=rate, mean=far)
    if pair is StepPair.REPLACE_ONE:
        loss = loss - log_mixture(x, noise=noise, rate=rate, mean=-1.0)
    return loss.item()


def _cut(epsilons: Floats, noise: float, rate: float, pair: StepPair) -> Floats:
    """Return the output whose loss is this; minus infinity where no loss is as small."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # Added records: 1 - p + p e^z = e^eps, z = (2x - 1)/(2 s^2).
        grown = np.where(
            epsilons < 1,
            np.log(np.maximum(rate + np.expm1(np.minimum(epsilons, 1.0)), 0.0)),
            epsilons + np.log1p(-(1 - rate) * np.exp(-np.maximum(epsilons, 1.0))),
        )
        if pair is StepPair.ADD_REMOVE:
            return np.asarray(0.5 + noise**2 * (grown - math.log(rate)))
        # Replaced: with y = e^{x/s^2} and k = p e^{-1/(2 s^2)}, k y^2 + (1-p)(1 - a) y - a k = 0. By symmetry a >= 1.
        size = np.abs(epsilons)
        log_k = math.log(rate) - 1 / (2 * noise**2)
        log_b = np.log((1 - rate) / 2) + size + np.log(-np.expm1(-size))
        # y = (b + sqrt(b^2 + a k^2)) / k, b = (1-p)(a - 1)/2.
        log_root = np.logaddexp(2 * log_b, size + 2 * log_k) / 2
        return np.asarray(np.sign(epsilons) * noise**2 * (np.logaddexp(log_b, log_root) - log_k))


def _fixed_size(phase: Phase, epsilons: Floats) -> Floats:
    """Return p delta(log(1 + (e^eps - 1)/p)) for epsilons of 0 or more, delta that of N(2, s^2) against N(0, s^2)."""
    from scipy.special import log_ndtr

    rate, mu = phase.sampling_rate, 2 / phase.noise_multiplier
    # log(1 + (e^eps - 1)/p) without overflow for large epsilon or loss of digits for small.
    stretched = epsilons + np.log(rate * np.exp(-epsilons) - np.expm1(-epsilons)) - math.log(rate)
    upper = np.exp(log_ndtr(mu / 2 - stretched / mu))
    lower = np.exp(stretched + log_ndtr(-mu / 2 - stretched / mu))
    return np.clip(rate * (upper - lower), 0.0, 1.0)
