"""Total variation by simulation: Mahloujifar et al. 2022, Equation 12, with an interval."""

import math
import os
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock

import numpy as np
import numpy.typing as npt

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.options import DPSGD, Adjacency, Phase
from auditor.core.values import Claim, Floats
from auditor.theory.gaussian import FIXED_SIZE, StepPair, relation_of

_Progress = Callable[[int, int], None]
# Runs that go through the steps together: few enough for the processor's cache, many enough for threads not to wait for
# each other. It fixes which draw belongs to which run, so seeded results depend on it.
_BLOCK = 32_768
# Largest number of progress reports.
_REPORTS = 1_000


# --- The estimate, and its interval ---


def hoeffding(samples: int, *, confidence: float) -> float:
    """Return half the width of an interval of a mean of values in [0, 1], by P(|mean - truth| >= d) <= 2 exp(-2 m d^2).

    The paper's Proposition 8 prints exp(-m d^2 / 3), which differs from the Chernoff-Hoeffding bound (erratum).

    >>> round(hoeffding(500_000, confidence=0.95), 6)
    0.001921
    """
    return math.sqrt(math.log(2 / (1 - confidence)) / (2 * samples))


def total_variation_monte_carlo(
    training: DPSGD,
    *,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    samples: int = 500_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> Claim:
    """Return an estimate, by simulation, of the largest advantage that DP-SGD allows a membership attacker.

    With eta the loss log(in/out) of a run simulated without the record, the paper's Equation 12 is the mean of
    1 - exp(min(eta, 0)) (its Algorithm 1 prints max, an erratum). For replaced records the loss has mirrored laws under
    the two neighbours, so each value is replaced by its mean given |eta|, tanh(|eta|/2) [own]: unbiased too, and never of
    larger variance (Rao-Blackwell).
    For added or removed records the paper's own form stays: others have many times its variance after few steps.

    Time grows with ``samples`` times steps, memory with neither; steps at rate 1 are one normal together and cost
    nothing. `auditor.theory.total_variation` computes the same number to many digits in a fraction of the time.

    Args:
        training: Noise multiplier and sampling rate, also per step, steps, and how batches are drawn.
        adjacency: Relation between neighbouring training sets.
        samples: Number m of simulated runs, 2 or more.
        confidence: Level of the interval, in (0, 1), which is `hoeffding`'s.
        rng: Seeds the simulation.
        threads: Largest number of threads, by default one for each processor; the result does not depend on it.
        progress: Called with the simulated steps done and all of them, a thousand times at most and one at a time.

    Returns:
        ``advantage`` in [0, 1] with ``lower`` and ``upper``; None, with the reason in ``note``, for added or removed
        records and batches of a fixed size.

    Raises:
        InputError: An argument of another kind or out of range.

    Source: Mahloujifar et al. 2022, Equation 12 and Algorithm 1 (per-step vectors), with the errata above and to
    Proposition 8; Balle, Barthe and Gaboardi 2018 for batches of a fixed size.

    >>> training = DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=1)  # exactly .0382925
    >>> claim = total_variation_monte_carlo(training, adjacency=Adjacency.ADD_REMOVE, rng=np.random.default_rng(0))
    >>> round(claim.value, 3), round(claim.lower, 3), round(claim.upper, 3), claim.status
    (0.038, 0.036, 0.04, 'estimate')
    """
    relation = relation_of(training, adjacency)
    samples = validate.at_least("samples", samples, least=2)
    workers = (os.cpu_count() or 1) if threads is None else validate.at_least("threads", threads, least=1)
    level = validate.confidence(confidence)
    if not isinstance(rng, np.random.Generator):
        raise InputError(
            f"rng must be a numpy.random.Generator, got {rng!r}; pass numpy.random.default_rng(0)."
        )
    method = f"Monte Carlo, {samples:,} runs, Hoeffding interval (Mahloujifar et al. 2022, Equation 12)"
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        return Claim("advantage", None, None, relation, method, proven=False, note=FIXED_SIZE)
    loss = simulated(training, adjacency=relation)
    mean = _Run(loss, samples, rng, progress).mean(workers)
    half_width = hoeffding(samples, confidence=level)
    value, lower, upper = (min(max(mean + shift, 0.0), 1.0) for shift in (0.0, -half_width, half_width))
    note = "By simulation: another seed gives another number. The interval holds at its confidence for every number of samples."
    return Claim("advantage", value, None, relation, method, False, note, lower, upper, level)


# --- Draws of a DP-SGD run's privacy loss, log(in / out) summed over its steps: the inner loop ---
#
# A block of runs goes through the steps together, in place in memory that stays in the processor's cache. Each step
# gives f = in/out - 1 of every run; D, the product of 1 + f minus 1, grows by D <- D (1 + f) + f, which keeps all digits
# of a tiny sampling rate, and one logarithm serves many steps.

_Masks = npt.NDArray[np.bool_]
# Two means at twice this distance over the noise are ten deviations from the middle between them: raising a smaller
# noise to here moves a total variation by less than 1e-22 for each step, and no exponential leaves a double's range.
_LEAST_NOISE_OVER_HALF_DISTANCE = 0.1
# The total variation is below the distance over the noise for each step, so that nothing is left of it from here on.
_LARGEST_NOISE = 1e150
# A shift so large that the two laws share no mass in a double.
_LARGEST_SHIFT = 1e150
# 1 + D may fall to e^-18 before its logarithm is taken: D then still has eight digits of it.
_LARGEST_FALL = 18.0
# Steps between two logarithms at most, so that progress is reported now and then.
_MOST_STEPS = 256
# Above this, 1 + D is only "as good as certain"; no later step can bring it back with a probability worth a name,
# since a likelihood ratio of c is passed against the truth with probability at most 1 / c.
_LARGEST_RATIO = 1e300


# One step: writes f = in/out - 1 of fresh draws into the first array; the other two are memory to work in.
_Step = Callable[[np.random.Generator, Floats, Floats, _Masks], None]


def _without_record(
    rng: np.random.Generator, f: Floats, spare: Floats, _: _Masks, *, noise: float, rate: float
) -> None:
    """Add/remove, seen from the world without the record: f = p (e^((2x-1)/(2s^2)) - 1) with x ~ N(0, s^2)."""
    _draw_normal(rng, f, spare, deviation=1 / noise)
    f -= 1 / (2 * noise**2)
    np.expm1(f, out=f)
    f *= rate


def _replaced(
    rng: np.random.Generator, f: Floats, spare: Floats, mask: _Masks, *, noise: float, rate: float
) -> None:
    """Replace-one, seen from the first record: x ~ (1-p) N(0, s^2) + p N(1, s^2), against N(-1, s^2) in place of 1.

    With v = x/s^2 and c = p e^(-1/(2s^2)), f = 2 c sinh(v) / (1 - p + c e^-v).
    """
    scale = rate * math.exp(-1 / (2 * noise**2))
    _draw_shifted(rng, f, spare, mask, deviation=1 / noise, rate=rate, shift=noise**-2)
    np.negative(f, out=spare)
    np.exp(spare, out=spare)
    spare *= scale
    spare += 1 - rate
    np.sinh(f, out=f)
    f *= 2 * scale
    f /= spare


def _fixed_size(
    rng: np.random.Generator, f: Floats, spare: Floats, mask: _Masks, *, noise: float, rate: float
) -> None:
    """Batches of a fixed size, replace-one: the dominating pair of Balle, Barthe and Gaboardi 2018, in symmetric form.

    With l(y) = log(1 + p (e^((2y-2)/s^2) - 1)), the loss is l(y) if y > 1, -l(-y) if y < -1 and 0 between. Here y is
    N(0, s^2) for a record that is not drawn; for one that is drawn it is N(2, s^2), less 2 if that is below 1 [own].
    Then the law of l > 0 is that of 1-p parts N(0) and p parts N(2), and l < 0 has e^-l times its density.
    """
    _draw_shifted(rng, f, spare, mask, deviation=noise, rate=rate, shift=2.0)
    mask &= f < 1
    np.multiply(mask, 2.0, out=spare)
    f -= spare
    np.less(f, 0, out=mask)
    np.abs(f, out=spare)
    spare -= 1
    np.maximum(spare, 0, out=spare)
    spare *= 2 / noise**2
    np.expm1(spare, out=spare)
    spare *= rate  # e^l - 1; of its mirror image e^-l - 1 = -(e^l - 1) / e^l
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
    mask: _Masks,
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
class _SimulatedLoss:
    """Sampler of the loss of a whole run.

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
        """Return ``size`` draws; ``tick`` receives the number of steps done since it was last called."""
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
                        step(rng, f, spare, mask)
                        np.add(f, 1, out=spare)
                        product *= spare
                        product += f
                    # NaN is infinity, once reached, times 0.
                    loss += np.log1p(np.fmin(product, _LARGEST_RATIO, out=product), out=spare)
                    product.fill(0)
                    tick(some)
        return loss[:size]


def simulated(training: DPSGD, *, adjacency: Adjacency) -> _SimulatedLoss:
    """Return how to draw the loss of this run; fixed-size batches are for replaced records only."""
    pair = StepPair.of(training, adjacency)
    kinds = tuple(_kind(phase, pair) for phase in training.phases if phase.sampling_rate < 1)
    # Steps that every record enters are normals a known distance apart, and so is all of them together.
    shifts = [
        pair.distance * math.sqrt(phase.steps) / max(phase.noise_multiplier, 1e-100)
        for phase in training.phases
        if phase.sampling_rate == 1
    ]
    return _SimulatedLoss(
        symmetric=pair is not StepPair.ADD_REMOVE,
        shift=min(math.hypot(*shifts), _LARGEST_SHIFT),
        steps=kinds,
        length=sum(count for _, count, _ in kinds) or 1,
    )


def _kind(phase: Phase, pair: StepPair) -> tuple[_Step, int, int]:
    apart = int(min(_MOST_STEPS, max(1.0, _LARGEST_FALL / -math.log1p(-phase.sampling_rate))))
    fill, half_distance = _KINDS[pair]
    least = _LEAST_NOISE_OVER_HALF_DISTANCE * half_distance
    noise = min(max(phase.noise_multiplier, least), _LARGEST_NOISE)
    return partial(fill, noise=noise, rate=phase.sampling_rate), phase.steps, apart


# How a step of each pair is drawn, and half the distance of the means that it draws.
_KINDS = {
    StepPair.ADD_REMOVE: (_without_record, 0.5),
    StepPair.REPLACE_ONE: (_replaced, 0.5),
    StepPair.FIXED_SIZE: (_fixed_size, 1.0),
}


# --- Many runs, in blocks that threads share ---


@dataclass
class _Run:
    """One simulation: blocks of runs, each with random numbers of its own, and one tally of the finished ones."""

    loss: _SimulatedLoss
    samples: int
    rng: np.random.Generator
    progress: _Progress | None
    done: int = 0
    reported: int = 0
    lock: Lock = field(default_factory=Lock)
    stop: Event = field(default_factory=Event)

    def mean(self, threads: int) -> float:
        """Return the mean of the values."""
        size, means = np.array(self._blocks(threads)).T
        return float(size @ means) / self.samples

    def _blocks(self, threads: int) -> list[tuple[int, float]]:
        seed = self.rng.integers(0, 2**32, size=8, dtype=np.uint32).tolist()
        count = -(-self.samples // _BLOCK)
        with ThreadPoolExecutor(min(threads, count)) as pool:
            futures = [pool.submit(self._block, place, seed) for place in range(count)]
            try:
                ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                self.stop.set()  # an interrupt must not wait for the blocks to end
            for future in ended:
                future.result()  # the first error, if there was one, and not its consequences
        return [future.result() for future in futures]

    def _block(self, place: int, seed: list[int]) -> tuple[int, float]:
        """Return the number of values and their mean."""
        size = min(_BLOCK, self.samples - place * _BLOCK)
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(place,))))
        loss = self.loss.draw(size, rng=rng, tick=lambda steps: self._tick(steps * size))
        return size, float(values_of(loss, symmetric=self.loss.symmetric).mean())

    def _tick(self, work: int) -> None:
        if self.stop.is_set():
            raise InterruptedError
        if self.progress is None:
            return
        with self.lock:
            self.done += work
            total = self.samples * self.loss.length
            if self.done == total or self.done - self.reported >= total / _REPORTS:
                self.reported = self.done
                self.progress(self.done, total)


def values_of(loss: Floats, *, symmetric: bool) -> Floats:
    """Return values in [0, 1] whose mean is the total variation."""
    far = np.abs(loss) if symmetric else -loss
    value: Floats = -np.expm1(np.minimum(-far, 0))
    # Given |eta|, the world without the record has it negative with probability 1 / (1 + e^-|eta|).
    return value / (1 + np.exp(-far)) if symmetric else value
