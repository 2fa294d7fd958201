"""How finely to discretise one step's privacy losses, and how to compose them, for an answer in about a second."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from auditor.choices import DPSGD, Adjacency

__all__ = ["TAIL", "Grid", "in_range", "loss_grid", "resolvable"]

Floats = npt.NDArray[np.float64]

# What dp_accounting may cut off each tail of a composition.
TAIL = 1e-15
# How far the grid may move epsilon, in nats (relative to the total KL divergence once that exceeds 1).
_TOLERANCE = 5e-5
# Most grid points of one step and of the composition: about a second and 100 MB.
_STEP_POINTS = 150_000
_COMPOSED_POINTS = 400_000
# Fewer points per step say little about a step.
_FEWEST_POINTS = 100
# Up to 1000 points dp_accounting keeps a step sparse and computes points ** steps: minutes at 1e7 steps.
_DENSE_POINTS = 2_000
# Wider than this, the exponential of the spacing is no longer of use (and overflows in the end).
_WIDEST_SPACING = 50.0
# From this many steps on, composing in two stages may pay; below, dp_accounting has no trouble with few points.
_MANY_STEPS = 100
# Outside these a step's losses exceed 1e6 nats or drown in rounding; simpler bounds say as much.
_NOISE_RANGE = (1e-3, 1e6)
_LEAST_DEVIATION = 1e-6


@dataclass(frozen=True)
class Grid:
    """How to discretise: the spacing of losses in nats, whether it is about as fine as wanted, steps composed first."""

    spacing: float
    fine: bool
    inner: int


def in_range(training: DPSGD) -> bool:
    """Return whether one step's losses can be computed with."""
    least, most = _NOISE_RANGE
    return least <= training.noise_multiplier <= most and training.sampling_rate < 1


def resolvable(training: DPSGD) -> DPSGD:
    """Return a description that is no more private, and whose losses stand above rounding error.

    A step at rate p is a step at a larger rate mixed with one that both neighbours share, so epsilon grows with p.
    """
    if not in_range(training):
        return training
    # One step's standard deviation is p sqrt(e^(1/s^2) - 1); the cap only keeps a tiny noise from overflowing.
    least = _LEAST_DEVIATION / math.sqrt(math.expm1(min(training.noise_multiplier**-2, 30.0)))
    return replace(training, sampling_rate=min(1.0, max(training.sampling_rate, least)))


def loss_grid(training: DPSGD, *, adjacency: Adjacency) -> Grid | None:
    """Return the spacing at which discretising costs little accuracy and little time, or null if there is none.

    Connecting the dots keeps each step's mass and mean of e^-L, and adds a variance of about g^2/6 and a mean of
    g^2/12 for spacing g. T steps of standard deviation v then move epsilon by about T g^2/12 (1 + 5/(v sqrt T)),
    for deltas some five standard deviations out.
    """
    loss, log_upper, log_lower = _one_step(training, adjacency=adjacency)
    steps = training.steps
    deviation = math.sqrt(float(np.exp(log_lower) @ loss**2))
    spread = float(np.ptp(loss))
    tolerance = _TOLERANCE * (1 + steps * deviation**2 / 2)
    wanted = min(
        math.sqrt(12 * tolerance / (steps * (1 + 5 / (math.sqrt(steps) * deviation)))),
        deviation / 10,
        spread / _FEWEST_POINTS,
        _WIDEST_SPACING,
    )
    # A mass is a second difference of deltas over g, so rounding adds up to 1e-16/g to each of spread/g masses
    # (never takes any away): T times their sum must stay near 1.
    least = max(wanted, spread / _STEP_POINTS, 5e-9 * math.sqrt(steps * spread))
    grids = []
    for inner in (1, math.isqrt(steps)) if steps >= _MANY_STEPS else (1,):
        widths = [
            _composed_width(*law, steps=steps, inner=inner) for law in ((loss, log_upper), (-loss, log_lower))
        ]
        spacing = max(least, max(widths) / _COMPOSED_POINTS)
        points = _DENSE_POINTS if inner == 1 and steps >= _MANY_STEPS else _FEWEST_POINTS
        if spacing <= min(spread / points, _WIDEST_SPACING):
            grids.append(Grid(spacing, spacing <= 2 * wanted, inner))
    return min(grids, key=lambda grid: grid.spacing, default=None)


def _one_step(training: DPSGD, *, adjacency: Adjacency) -> tuple[Floats, Floats, Floats]:
    """Return one step's log-ratio on a grid of outputs, ascending, and the two laws' log-masses there."""
    from scipy.special import logsumexp

    rate, noise = training.sampling_rate, training.noise_multiplier
    replaced = adjacency is Adjacency.REPLACE_ONE
    x = np.linspace(-10 * noise - replaced, 1 + 10 * noise, 20_001)

    def log_mixture(sign: float) -> Floats:
        # log of ((1-p) N(0, s^2) + p N(sign, s^2)) / N(0, s^2)
        return np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * sign * x - 1) / (2 * noise**2))

    reference = -((x / noise) ** 2) / 2
    upper = log_mixture(1.0)
    lower = log_mixture(-1.0) if replaced else np.zeros_like(x)
    masses = [reference + part - logsumexp(reference + part) for part in (upper, lower)]
    return upper - lower, masses[0], masses[1]


def _composed_width(loss: Floats, log_mass: Floats, *, steps: int, inner: int) -> float:
    """Return how wide dp_accounting will make the composed grid, in nats: its Chernoff bounds, stage by stage.

    It takes orders up to 20 / (width of what it composes): near the best order in one stage if steps are few or
    heavy-tailed, far too large (a width ten times too wide) for many light-tailed ones; two stages mend that.
    """
    from scipy.special import logsumexp

    span = float(np.ptp(loss))
    for count in (steps,) if inner == 1 else (inner, steps):
        orders = np.arange(1, 21) / span
        log_tail = math.log(2 * steps / (TAIL * count))
        high = [(count * float(logsumexp(order * loss + log_mass)) + log_tail) / order for order in orders]
        low = [(count * float(logsumexp(-order * loss + log_mass)) + log_tail) / order for order in orders]
        span = max(span, min(min(high) + min(low), count * float(np.ptp(loss))))
    return span
