"""Total variation by simulation: Mahloujifar et al. 2022, Equation 12, with an interval."""

import math
import os
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from statistics import NormalDist
from threading import Event, Lock
from typing import NamedTuple, get_args

import numpy as np

from auditor import _validate
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory._simulated_loss import SimulatedLoss, simulated
from auditor.values import Claim, Floats

__all__ = [
    "EmpiricalBernstein",
    "Hoeffding",
    "MeanInterval",
    "SampleVariance",
    "total_variation_monte_carlo",
]

Progress = Callable[[int, int], None]

# Runs that go through the steps together: few enough for the processor's cache, many enough for threads not to wait for
# each other. It fixes which draw belongs to which run, so seeded results depend on it.
_BLOCK = 32_768
# How often progress is told, at most.
_REPORTS = 1_000


@dataclass(frozen=True)
class Hoeffding:
    """Hoeffding's inequality, P(|mean - truth| >= d) <= 2 exp(-2 m d^2): holds for every number of samples m.

    The paper's Proposition 8 prints exp(-m d^2 / 3), which is not what the Chernoff-Hoeffding bound gives (erratum).
    """

    words = "Hoeffding interval"
    note = "The interval holds at its confidence for every number of samples."

    def half_width(self, *, samples: int, variance: float, confidence: float) -> float:  # noqa: ARG002
        """Return half the width of the interval of a mean of values in [0, 1]; their variance does not matter.

        >>> round(Hoeffding().half_width(samples=500_000, variance=0.0, confidence=0.95), 6)
        0.001921
        """
        return math.sqrt(math.log(2 / (1 - confidence)) / (2 * samples))

    def samples_for(self, half_width: float, *, confidence: float = 0.95) -> int:
        """Return the number of samples whose interval has this half-width: ln(2 / (1 - confidence)) / (2 d^2).

        Args:
            half_width: Wanted error d, in (0, 1).
            confidence: Level of the interval, in (0, 1).

        Raises:
            InputError: A number out of range.

        >>> Hoeffding().samples_for(0.01, confidence=0.99999)  # the paper takes 500,000 for this
        61031
        """
        width = _validate.fraction("half_width", half_width)
        return math.ceil(math.log(2 / (1 - _validate.confidence(confidence))) / (2 * width**2))


@dataclass(frozen=True)
class EmpiricalBernstein:
    """An empirical Bernstein bound: holds for every number of samples, and is narrow where the values vary little.

    The half-width is sqrt(2 V ln(4/alpha) / m) + 7 ln(4/alpha) / (3 (m - 1)), V the sample variance; Maurer and
    Pontil 2009, Theorem 4, on both sides.
    """

    words = "empirical Bernstein interval"
    note = "The interval holds at its confidence for every number of samples."

    def half_width(self, *, samples: int, variance: float, confidence: float) -> float:
        """Return half the width of the interval of a mean of values in [0, 1], from their sample variance.

        >>> round(EmpiricalBernstein().half_width(samples=500_000, variance=0.01, confidence=0.95), 6)
        0.000439
        """
        odds = math.log(4 / (1 - confidence))
        return math.sqrt(2 * variance * odds / samples) + 7 * odds / (3 * (samples - 1))


@dataclass(frozen=True)
class SampleVariance:
    """The normal approximation, z sqrt(V / m): APPROXIMATE, it can promise too much where samples are few."""

    words = "sample-variance interval (approximate)"
    note = "The interval is the large-sample approximation and can promise too much where samples are few."

    def half_width(self, *, samples: int, variance: float, confidence: float) -> float:
        """Return half the width of the interval of a mean, from the sample variance of its values.

        >>> round(SampleVariance().half_width(samples=500_000, variance=0.01, confidence=0.95), 6)
        0.000277
        """
        return -NormalDist().inv_cdf((1 - confidence) / 2) * math.sqrt(variance / samples)


MeanInterval = Hoeffding | EmpiricalBernstein | SampleVariance


def total_variation_monte_carlo(
    training: DPSGD,
    *,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    a: float = 1.0,
    samples: int = 500_000,
    confidence: float = 0.95,
    interval: MeanInterval = Hoeffding(),
    rng: np.random.Generator,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Claim:
    """Return an estimate, by simulation, of the largest advantage that DP-SGD allows a membership attacker.

    With eta the loss log(in/out) of a run simulated without the record, the paper's Equation 12 is the mean of
    1 - exp(min(eta, 0)) (its Algorithm 1 prints max, an erratum), and for TV_a the mean of max(0, 1 - a e^eta) less
    (1 - a)/2. For replaced records the loss has mirrored laws under the two neighbours, so each value is replaced by
    its mean given |eta|, tanh(|eta|/2) at a = 1 [own]: unbiased too, and never of larger variance (Rao-Blackwell).
    For added or removed records the paper's own form stays: others have many times its variance after few steps.

    Time grows with ``samples`` times steps, memory with neither; steps at rate 1 are one normal together and cost
    nothing. `auditor.theory.total_variation` computes the same number to many digits in a fraction of the time.

    Args:
        training: Noise multiplier and sampling rate, also per step, steps, and how batches are drawn.
        adjacency: Which training sets count as neighbours.
        a: Weight in TV_a = 1/2 integral |out - a in|, above 0; 1 is the total variation.
        samples: Number m of simulated runs, 2 or more.
        confidence: Level of the interval, in (0, 1).
        interval: `Hoeffding` (default), `EmpiricalBernstein` or the approximate `SampleVariance`.
        rng: Seeds the simulation.
        threads: How many at most, by default one for each processor; the result does not depend on it.
        progress: Called with the simulated steps done and all of them, a thousand times at most and one at a time.

    Returns:
        ``advantage`` (``tv_a.<a>`` where ``a`` is not 1) with ``lower`` and ``upper``; null, with the reason in
        ``note``, for added or removed records and batches of a fixed size. TV_a lies between |1 - a|/2 and (1 + a)/2,
        and estimate and interval are cut to that.

    Raises:
        InputError: An argument of another kind or out of range.

    Source: Mahloujifar et al. 2022, Equation 12 and Algorithm 1 (per-step vectors), with the errata above and to
    Proposition 8; Balle, Barthe and Gaboardi 2018 for batches of a fixed size.

    >>> training = DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=1)  # exactly .0382925
    >>> claim = total_variation_monte_carlo(training, adjacency=Adjacency.ADD_REMOVE, rng=np.random.default_rng(0))
    >>> round(claim.value, 3), round(claim.lower, 3), round(claim.upper, 3), claim.status
    (0.038, 0.036, 0.04, 'estimate')
    """
    _validate.instance("training", training, (DPSGD,))
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    _validate.instance("interval", interval, get_args(MeanInterval))
    samples = _validate.at_least("samples", samples, least=2)
    workers = (os.cpu_count() or 1) if threads is None else _validate.at_least("threads", threads, least=1)
    weight, level = _validate.positive("a", a), _validate.confidence(confidence)
    if not isinstance(rng, np.random.Generator):
        raise InputError(
            f"rng must be a numpy.random.Generator, got {rng!r}; pass numpy.random.default_rng(0)."
        )
    name = "advantage" if weight == 1 else f"tv_a.{weight:g}"
    method = f"Monte Carlo, {samples:,} runs, {interval.words} (Mahloujifar et al. 2022, Equation 12)"
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        reason = "Batches of a fixed size are accounted for replaced records only."
        return Claim(name, None, None, relation, method, proven=False, note=reason)
    loss = simulated(training, adjacency=relation)
    mean, variance = _Run(loss, weight, samples, rng, progress).moments(workers)
    half_width = interval.half_width(samples=samples, variance=variance, confidence=level)
    value, lower, upper = (
        min(max(mean + shift + (weight - 1) / 2, abs(1 - weight) / 2), (1 + weight) / 2)
        for shift in (0.0, -half_width, half_width)
    )
    note = f"By simulation: another seed gives another number. {interval.note}"
    return Claim(name, value, None, relation, method, False, note, lower, upper, level)


class _Moments(NamedTuple):
    """Number of values, their mean, and the sum of squared deviations from the mean."""

    size: int
    mean: float
    squares: float


@dataclass
class _Run:
    """One simulation: blocks of runs, each with random numbers of its own, and one tally of what is done."""

    loss: SimulatedLoss
    weight: float
    samples: int
    rng: np.random.Generator
    progress: Progress | None
    done: int = 0
    told: int = 0
    lock: Lock = field(default_factory=Lock)
    stop: Event = field(default_factory=Event)

    def moments(self, threads: int) -> tuple[float, float]:
        """Return mean and sample variance of the values."""
        parts = self._blocks(threads)
        mean = math.fsum(part.size * part.mean for part in parts) / self.samples
        between = math.fsum(part.size * (part.mean - mean) ** 2 for part in parts)
        squares = math.fsum(part.squares for part in parts) + between
        return mean, squares / (self.samples - 1)

    def _blocks(self, threads: int) -> list[_Moments]:
        seed = self.rng.integers(0, 2**32, size=8, dtype=np.uint32).tolist()
        count = -(-self.samples // _BLOCK)
        with ThreadPoolExecutor(min(threads, count)) as pool:
            futures = [pool.submit(self._block, place, seed) for place in range(count)]
            try:
                ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                self.stop.set()  # an interrupt must not wait for the blocks to end
            for future in ended:
                future.result()  # the first error, if there was one, and not what it led to
        return [future.result() for future in futures]

    def _block(self, place: int, seed: list[int]) -> _Moments:
        size = min(_BLOCK, self.samples - place * _BLOCK)
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(place,))))
        loss = self.loss.draw(size, rng=rng, tick=lambda steps: self._tick(steps * size))
        values = _values(loss, weight=self.weight, symmetric=self.loss.symmetric)
        mean = float(values.mean())
        return _Moments(size, mean, float(np.square(values - mean).sum()))

    def _tick(self, work: int) -> None:
        if self.stop.is_set():
            raise InterruptedError
        if self.progress is None:
            return
        with self.lock:
            self.done += work
            total = self.samples * self.loss.length
            if self.done == total or self.done - self.told >= total / _REPORTS:
                self.told = self.done
                self.progress(self.done, total)


def _values(loss: Floats, *, weight: float, symmetric: bool) -> Floats:
    """Return values in [0, 1] of mean TV_a + (1 - a)/2, the integral of max(0, out - a in)."""
    far = np.abs(loss) if symmetric else -loss
    log_weight = math.log(weight)
    value: Floats = -np.expm1(np.minimum(log_weight - far, 0))
    if not symmetric:
        return value
    # Given |eta|, the world without the record has it negative with probability 1 / (1 + e^-|eta|).
    odds = np.exp(-far)
    value -= odds * np.expm1(np.minimum(log_weight + far, 0))
    value /= 1 + odds
    return value
