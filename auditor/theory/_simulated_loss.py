"""Draws of a DP-SGD run's privacy loss, log(in / out) summed over its steps: the inner loop of Monte Carlo.

A block of runs goes through the steps together, in place in memory that stays in the processor's cache. Each step
gives f = in/out - 1 of every run; D, the product of 1 + f minus 1, grows by D <- D (1 + f) + f, which keeps all digits
of a tiny sampling rate, and one logarithm serves many steps.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from auditor.choices import DPSGD, Adjacency
from auditor.training import Phase
from auditor.values import Floats

__all__ = ["SimulatedLoss", "simulated"]

Masks = npt.NDArray[np.bool_]

# Two means at twice this distance over the noise are ten deviations from the middle between them: raising a smaller
# noise to here moves a total variation by less than 1e-22 for each step, and no exponential leaves a double's range.
_LEAST_NOISE_OVER_HALF_DISTANCE = 0.1
# The total variation is below the distance over the noise for each step, so that nothing is left of it from here on.
_LARGEST_NOISE = 1e150
# A shift so large that the two laws share no mass in a double.
_LARGEST_SHIFT = 1e150
# 1 + D may fall to e^-18 before its logarithm is taken: D then still has eight digits of it.
_LARGEST_FALL = 18.0
# Steps between two logarithms at most, so that progress is told now and then.
_MOST_STEPS = 256
# Above this, 1 + D is only "as good as certain"; no later step can bring it back with a probability worth a name,
# since a likelihood ratio of c is passed against the truth with probability at most 1 / c.
_LARGEST_RATIO = 1e300


class _Step(Protocol):
    """One step: writes f = in/out - 1 of fresh draws into ``f``; ``spare`` and ``mask`` are memory to work in."""

    def fill(self, rng: np.random.Generator, f: Floats, spare: Floats, mask: Masks) -> None: ...


@dataclass(frozen=True)
class _WithoutRecord:
    """Add/remove, seen from the world without the record: f = p (e^((2x-1)/(2s^2)) - 1) with x ~ N(0, s^2)."""

    noise: float
    rate: float

    def fill(self, rng: np.random.Generator, f: Floats, spare: Floats, mask: Masks) -> None:  # noqa: ARG002
        _draw_normal(rng, f, spare, deviation=1 / self.noise)
        f -= 1 / (2 * self.noise**2)
        np.expm1(f, out=f)
        f *= self.rate


@dataclass(frozen=True)
class _Replaced:
    """Replace-one, seen from the first record: x ~ (1-p) N(0, s^2) + p N(1, s^2), against N(-1, s^2) in place of 1.

    With v = x/s^2 and c = p e^(-1/(2s^2)), f = 2 c sinh(v) / (1 - p + c e^-v).
    """

    noise: float
    rate: float

    def fill(self, rng: np.random.Generator, f: Floats, spare: Floats, mask: Masks) -> None:
        scale = self.rate * math.exp(-1 / (2 * self.noise**2))
        _draw_shifted(rng, f, spare, mask, deviation=1 / self.noise, rate=self.rate, shift=self.noise**-2)
        np.negative(f, out=spare)
        np.exp(spare, out=spare)
        spare *= scale
        spare += 1 - self.rate
        np.sinh(f, out=f)
        f *= 2 * scale
        f /= spare


@dataclass(frozen=True)
class _FixedSize:
    """Batches of a fixed size, replace-one: the dominating pair of Balle, Barthe and Gaboardi 2018, in symmetric form.

    With l(y) = log(1 + p (e^((2y-2)/s^2) - 1)), the loss is l(y) if y > 1, -l(-y) if y < -1 and 0 between. Here y is
    N(0, s^2) for a record that is not drawn; for one that is drawn it is N(2, s^2), less 2 if that is below 1 [own].
    Then the law of l > 0 is that of 1-p parts N(0) and p parts N(2), and l < 0 has e^-l times its density.
    """

    noise: float
    rate: float

    def fill(self, rng: np.random.Generator, f: Floats, spare: Floats, mask: Masks) -> None:
        _draw_shifted(rng, f, spare, mask, deviation=self.noise, rate=self.rate, shift=2.0)
        mask &= f < 1
        np.multiply(mask, 2.0, out=spare)
        f -= spare
        np.less(f, 0, out=mask)
        np.abs(f, out=spare)
        spare -= 1
        np.maximum(spare, 0, out=spare)
        spare *= 2 / self.noise**2
        np.expm1(spare, out=spare)
        spare *= self.rate  # e^l - 1; of its mirror image e^-l - 1 = -(e^l - 1) / e^l
        np.multiply(mask, spare, out=f)
        f += 1
        np.divide(spare, f, out=f)
        np.negative(f, out=f, where=mask)


def _draw_normal(rng: np.random.Generator, out: Floats, spare: Floats, *, deviation: float) -> None:
    """Draw N(0, deviation^2) by Box and Muller 1958, in half the generator's own time where NumPy vectorises tan.

    The radius is sqrt(-2 log(1 - u)), 8.6 at most: what lies beyond has probability 1e-16. With t the tangent of half
    the angle, its cosine is 2 / (1 + t^2) - 1 and its sine 2 t / (1 + t^2): one function for both.
    """
    half = out.size // 2  # both arrays have an even length
    first, second, radius, ratio = out[:half], out[half:], spare[:half], spare[half:]
    rng.random(out=radius)
    np.negative(radius, out=radius)
    np.log1p(radius, out=radius)
    radius *= -2 * deviation**2
    np.sqrt(radius, out=radius)
    rng.random(out=first)
    first -= 0.5
    first *= math.pi
    np.tan(first, out=first)
    np.multiply(first, first, out=ratio)
    ratio += 1
    np.divide(2, ratio, out=ratio)
    np.multiply(first, ratio, out=second)
    second *= radius
    np.subtract(ratio, 1, out=first)
    first *= radius


def _draw_shifted(
    rng: np.random.Generator,
    f: Floats,
    spare: Floats,
    mask: Masks,
    *,
    deviation: float,
    rate: float,
    shift: float,
) -> None:
    """Draw N(0, deviation^2), plus the shift with probability ``rate``; the mask says where."""
    _draw_normal(rng, f, spare, deviation=deviation)
    rng.random(out=spare)
    np.less(spare, rate, out=mask)
    np.multiply(mask, shift, out=spare)
    f += spare


@dataclass(frozen=True)
class SimulatedLoss:
    """How to draw the loss of a whole run.

    Attributes:
        symmetric: Whether the loss has mirrored laws under the two neighbours. It is drawn for the first of them then,
            and for the training set without the record otherwise.
        shift: Distance, in deviations, of the two normals that all steps without sampling amount to.
        steps: The other steps, each kind with its number.
        length: Steps to go through, 1 at least.
    """

    symmetric: bool
    shift: float
    steps: tuple[tuple[_Step, int, int], ...]  # the step, how often, how often between two logarithms
    length: int

    def draw(self, size: int, *, rng: np.random.Generator, tick: Callable[[int], None]) -> Floats:
        """Return ``size`` draws; ``tick`` is told the number of steps done since it was last called."""
        even = size + size % 2
        loss = np.zeros(even)
        if not self.steps:
            tick(self.length)
        if self.shift:
            sign = 1 if self.symmetric else -1
            rng.standard_normal(out=loss)
            loss += sign * self.shift / 2
            loss *= self.shift
        f, spare, product = np.empty(even), np.empty(even), np.zeros(even)
        mask = np.empty(even, dtype=np.bool_)
        # Ratios beyond a double's range are certainty, and zero ones too.
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            for step, count, apart in self.steps:
                for first in range(0, count, apart):
                    some = min(apart, count - first)
                    for _ in range(some):
                        step.fill(rng, f, spare, mask)
                        np.add(f, 1, out=spare)
                        product *= spare
                        product += f
                    # NaN is infinity, once reached, times 0.
                    loss += np.log1p(np.fmin(product, _LARGEST_RATIO, out=product), out=spare)
                    product.fill(0)
                    tick(some)
        return loss[:size]


def simulated(training: DPSGD, *, adjacency: Adjacency) -> SimulatedLoss:
    """Return how to draw the loss of this run; fixed-size batches are for replaced records only."""
    symmetric = adjacency is Adjacency.REPLACE_ONE
    distance = 2.0 if symmetric else 1.0
    sampled = [phase for phase in training.phases if phase.sampling_rate < 1]
    # Steps that every record enters are normals a known distance apart, and so is all of them together.
    whole = [phase for phase in training.phases if phase.sampling_rate == 1]
    shifts = [distance * math.sqrt(phase.steps) / max(phase.noise_multiplier, 1e-100) for phase in whole]
    kinds = tuple(_kind(phase, symmetric=symmetric, fixed_size=training.fixed_size) for phase in sampled)
    return SimulatedLoss(
        symmetric=symmetric,
        shift=min(math.hypot(*shifts), _LARGEST_SHIFT),
        steps=kinds,
        length=sum(count for _, count, _ in kinds) or 1,
    )


def _kind(phase: Phase, *, symmetric: bool, fixed_size: bool) -> tuple[_Step, int, int]:
    rate = phase.sampling_rate
    apart = int(min(_MOST_STEPS, max(1.0, _LARGEST_FALL / -math.log1p(-rate))))
    half_distance = 1.0 if fixed_size else 0.5
    least = _LEAST_NOISE_OVER_HALF_DISTANCE * half_distance
    noise = min(max(phase.noise_multiplier, least), _LARGEST_NOISE)
    kind = _FixedSize if fixed_size else _Replaced if symmetric else _WithoutRecord
    return kind(noise, rate), phase.steps, apart
