"""How finely to discretise the steps' privacy losses, and how to compose them, for an answer in about a second."""

import math
from dataclasses import dataclass, replace

import numpy as np

from auditor.theory._merging import Kind
from auditor.theory._step_pairs import StepPair, loss_law
from auditor.training import Phase
from auditor.values import Floats

__all__ = ["TAIL", "Grid", "in_range", "loss_grid", "resolvable"]

# What dp_accounting may cut off each tail of a composition.
TAIL = 1e-15
# How far the grid may move epsilon, in nats (relative to the total KL divergence once that exceeds 1).
_TOLERANCE = 5e-5
# Most grid points of one step, of all kinds of steps and of the composition: a second or a few, and 100 MB.
_STEP_POINTS = 150_000
_ALL_POINTS = 600_000
_COMPOSED_POINTS = 400_000
# Outputs at which a step's law is looked at to choose the grid.
_LAW_POINTS = 20_001
_ROUGH_POINTS = 501
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
    """How to discretise.

    Attributes:
        spacing: Of the losses, in nats; the same for every step, since only such losses can be added.
        fine: Whether it is about as fine as wanted.
        inner: For each kind of steps, how many of its steps to compose first; 1 composes all of them at once.
    """

    spacing: float
    fine: bool
    inner: tuple[int, ...]


@dataclass(frozen=True)
class _Law:
    """The privacy losses of one kind of steps, their log-masses in both orders, and how many steps."""

    loss: Floats
    log_upper: Floats
    log_lower: Floats
    steps: int

    @classmethod
    def of(cls, kind: Kind, pair: StepPair, points: int) -> "_Law":
        parts = [
            (loss, math.log(weight) + upper, math.log(weight) + lower)
            for weight, phase in kind.parts
            for loss, upper, lower in [loss_law(phase, pair, points=points)]
        ]
        loss, upper, lower = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(loss, upper, lower, kind.steps)

    @property
    def variance(self) -> float:
        return float(np.sum(np.exp(self.log_lower) * self.loss**2))

    @property
    def spread(self) -> float:
        return float(np.ptp(self.loss))


def in_range(phases: tuple[Phase, ...]) -> bool:
    """Return whether the steps' losses can be computed with, and sampling is of any help."""
    least, most = _NOISE_RANGE
    return (
        all(phase.noise_multiplier >= least for phase in phases)
        and any(phase.noise_multiplier <= most for phase in phases)
        and any(phase.sampling_rate < 1 for phase in phases)
    )


def resolvable(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return phases that are no more private, and whose losses stand above rounding error.

    A step at rate p is a step at a larger rate mixed with one that both neighbours share, so epsilon grows with p;
    and it falls with the noise, which can be added afterwards.
    """
    return tuple(_resolvable(phase) for phase in phases) if in_range(phases) else phases


def _resolvable(phase: Phase) -> Phase:
    noise = min(phase.noise_multiplier, _NOISE_RANGE[1])
    # One step's standard deviation is p sqrt(e^(1/s^2) - 1); the cap only keeps a tiny noise from overflowing.
    least = _LEAST_DEVIATION / math.sqrt(math.expm1(min(noise**-2, 30.0)))
    rate = min(1.0, max(phase.sampling_rate, least))
    return replace(phase, noise_multiplier=noise, sampling_rate=rate)


def loss_grid(kinds: tuple[Kind, ...], *, pair: StepPair) -> Grid | None:
    """Return the spacing at which discretising costs little accuracy and little time, or null if there is none.

    Connecting the dots keeps each step's mass and mean of e^-L, and adds a variance of about g^2/6 and a mean of
    g^2/12 for spacing g. T steps of total standard deviation V then move epsilon by about T g^2/12 (1 + 5/V), for
    deltas some five standard deviations out.
    """
    laws = [_Law.of(kind, pair, _LAW_POINTS if len(kinds) == 1 else _ROUGH_POINTS) for kind in kinds]
    steps = sum(law.steps for law in laws)
    variance = sum(law.steps * law.variance for law in laws)
    spread = max(law.spread for law in laws)
    wanted = min(
        math.sqrt(12 * _TOLERANCE * (1 + variance / 2) / (steps * (1 + 5 / math.sqrt(variance)))),
        math.sqrt(variance / steps) / 10,
        spread / _FEWEST_POINTS,
        _WIDEST_SPACING,
    )
    # A mass is a second difference of deltas over g, so rounding adds up to 1e-16/g to each of spread/g masses
    # (never takes any away): T times their sum must stay near 1.
    least = max(
        wanted,
        spread / _STEP_POINTS,
        sum(law.spread for law in laws) / _ALL_POINTS,
        5e-9 * math.sqrt(sum(law.steps * law.spread for law in laws)),
    )
    if len(laws) == 1:
        return _one_kind(laws[0], wanted=wanted, least=least)
    return _several_kinds(laws, wanted=wanted, least=least)


def _one_kind(law: _Law, *, wanted: float, least: float) -> Grid | None:
    grids = []
    for inner in (1, math.isqrt(law.steps)) if law.steps >= _MANY_STEPS else (1,):
        spacing = max(least, _composed_width(law, inner=inner) / _COMPOSED_POINTS)
        points = _DENSE_POINTS if inner == 1 and law.steps >= _MANY_STEPS else _FEWEST_POINTS
        if spacing <= min(law.spread / points, _WIDEST_SPACING):
            grids.append(Grid(spacing, spacing <= 2 * wanted, (inner,)))
    return min(grids, key=lambda grid: grid.spacing, default=None)


def _several_kinds(laws: list[_Law], *, wanted: float, least: float) -> Grid | None:
    # Each kind is composed by itself, cut where its mass ends, and then with the others.
    ways = [_narrowest(law) for law in laws]
    widest = max(*(width for width, _ in ways), _joint_width(laws))
    spacing = max(least, widest / _COMPOSED_POINTS)
    if spacing > min(max(law.spread for law in laws) / _FEWEST_POINTS, _WIDEST_SPACING):
        return None
    inner = tuple(
        # Few points and many steps at once are slow, see above.
        math.isqrt(law.steps) if law.steps >= _MANY_STEPS and law.spread / spacing < _DENSE_POINTS else count
        for law, (_, count) in zip(laws, ways, strict=True)
    )
    return Grid(spacing, spacing <= 2 * wanted, inner)


def _narrowest(law: _Law) -> tuple[float, int]:
    """Return the smaller width of composing in one stage and in two, and the steps composed first."""
    counts = (1, math.isqrt(law.steps)) if law.steps >= _MANY_STEPS else (1,)
    return min((_composed_width(law, inner=inner), inner) for inner in counts)


def _composed_width(law: _Law, *, inner: int) -> float:
    """Return how wide dp_accounting will make the composed grid, in nats: its Chernoff bounds, stage by stage.

    It takes orders up to 20 / (width of what it composes): near the best order in one stage if steps are few or
    heavy-tailed, far too large (a width ten times too wide) for many light-tailed ones; two stages mend that.
    """
    widths = []
    for loss, log_mass in ((law.loss, law.log_upper), (-law.loss, law.log_lower)):
        span = law.spread
        for count in (law.steps,) if inner == 1 else (inner, law.steps):
            orders = np.arange(1, 21) / span
            log_tail = math.log(2 * law.steps / (TAIL * count))
            high = (count * _log_moments(orders, loss, log_mass) + log_tail) / orders
            low = (count * _log_moments(-orders, loss, log_mass) + log_tail) / orders
            span = max(span, min(float(high.min() + low.min()), count * law.spread))
        widths.append(span)
    return max(widths)


def _joint_width(laws: list[_Law]) -> float:
    """Return how wide the composition of all kinds is once its tails are cut, in nats: Chernoff bounds at any order."""
    variance = sum(law.steps * law.variance for law in laws)
    orders = np.geomspace(0.1, 1e3, 20) / math.sqrt(variance)
    widths = []
    for backward in (False, True):
        up, down = np.zeros(orders.size), np.zeros(orders.size)
        for law in laws:
            loss, log_mass = (-law.loss, law.log_lower) if backward else (law.loss, law.log_upper)
            up += law.steps * _log_moments(orders, loss, log_mass)
            down += law.steps * _log_moments(-orders, loss, log_mass)
        log_tail = math.log(2 / TAIL)
        widths.append(float(((up + log_tail) / orders).min() + ((down + log_tail) / orders).min()))
    return min(max(widths), sum(law.steps * law.spread for law in laws))


def _log_moments(orders: Floats, loss: Floats, log_mass: Floats) -> Floats:
    """Return the logarithms of the expectations of e^(order x loss)."""
    exponents = np.multiply.outer(orders, loss) + log_mass
    largest = exponents.max(axis=1)
    return np.asarray(largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)))
