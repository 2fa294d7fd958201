"""Descriptions of a DP-SGD training run, as values: what was done, not what follows from it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.numbers import given


@dataclass(frozen=True)
class PoissonSampling:
    """Each step draws each record by an independent coin of probability ``sampling_rate``."""


@dataclass(frozen=True)
class FixedSizeSampling:
    """Each step draws a batch of fixed size, uniformly and without repetition; ``sampling_rate`` is its share.

    Every step draws anew: passes over shuffled records are another thing and not covered. The size of the training set
    is then public, so such a run is accounted for replaced records only.
    """


Sampling = PoissonSampling | FixedSizeSampling


@dataclass(frozen=True)
class Phase:
    """Steps of equal noise and sampling rate, wherever they stand in the run.

    Attributes:
        noise_multiplier: As in `DPSGD`.
        sampling_rate: As in `DPSGD`.
        steps: How many.
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int


@dataclass(frozen=True)
class DPSGD:
    """DP-SGD: ``steps`` times the sum of clipped gradients of a random batch, plus N(0, (noise_multiplier x clip)^2).

    One number holds for all steps; a vector gives each step its own, and ``steps`` may then be left out. The vectors
    must have been fixed before training: noise that was chosen by what earlier steps gave has no such accounting.

    Attributes:
        noise_multiplier: Noise standard deviation over the clipping norm, above 0; a number or one for each step.
        sampling_rate: Probability that a record enters a step, in (0, 1]; a number or one for each step.
        steps: Number of steps, 1 or more.
        clipping_norm: Largest Euclidean norm of one record's gradient, above 0; a number or one for each step. What is
            promised to records does not depend on it, since the noise is a multiple of it.
        sampling: `PoissonSampling` (default) or `FixedSizeSampling`.

    Raises:
        InputError: A parameter out of range, vectors of different lengths, or no number of steps.

    Source: Abadi et al. 2016; Mahloujifar et al. 2022, Algorithm 1, for the vectors.

    >>> DPSGD(noise_multiplier=1.1, sampling_rate=0.004, steps=14040).in_words()
    'DP-SGD with noise multiplier 1.1, sampling rate 0.004 and 14,040 steps'
    >>> DPSGD([1.0, 1.0, 2.0], 0.01).phases
    (Phase(noise_multiplier=1.0, sampling_rate=0.01, steps=2), Phase(noise_multiplier=2.0, sampling_rate=0.01, steps=1))
    """

    noise_multiplier: (
        Any  # float or tuple of floats once built; anything number-like or a sequence of it goes in
    )
    sampling_rate: Any
    steps: Any = None  # an int once built
    clipping_norm: Any = 1.0
    sampling: Sampling = PoissonSampling()

    def __post_init__(self) -> None:
        columns = {name: _column(name, getattr(self, name)) for name in _CHECKS}
        steps = None if self.steps is None else validate.at_least("steps", self.steps, least=1)
        lengths = {name: len(column) for name, column in columns.items() if isinstance(column, tuple)}
        if steps is None and not lengths:
            raise InputError("steps must be given where every step has the same parameters, got none.")
        counted = lengths if steps is None else {**lengths, "steps": steps}
        if len(set(counted.values())) > 1:
            listed = ", ".join(
                f"{name} is {count}" if name == "steps" else f"{name} has {count}"
                for name, count in counted.items()
            )
            raise InputError(f"vectors must have one number for each step: {listed}.")
        object.__setattr__(self, "steps", next(iter(counted.values())))
        for name, column in columns.items():
            object.__setattr__(self, name, column[0] if _constant(column) else column)
        validate.instance("sampling", self.sampling, get_args(Sampling))

    @classmethod
    def from_noise_deviation(
        cls,
        noise_deviation: Any,
        *,
        sampling_rate: Any,
        clipping_norm: Any,
        steps: int | None = None,
        sampling: Sampling = PoissonSampling(),
    ) -> "DPSGD":
        """Return the description of a run whose noise was given as a standard deviation, not as a multiple of the clip.

        Args:
            noise_deviation: Standard deviation of the noise on the sum of gradients, above 0; one or one per step.
            sampling_rate: As in the class.
            clipping_norm: As in the class; it matters here.
            steps: As in the class.
            sampling: As in the class.

        Raises:
            InputError: As in the class.

        >>> DPSGD.from_noise_deviation(2.0, sampling_rate=0.1, clipping_norm=[1.0, 4.0]).noise_multiplier
        (2.0, 0.5)
        """
        deviation = _column("noise_deviation", noise_deviation)
        clip = _column("clipping_norm", clipping_norm)
        if isinstance(deviation, tuple) and isinstance(clip, tuple) and len(deviation) != len(clip):
            raise InputError(
                "vectors must have one number for each step:"
                f" noise_deviation has {len(deviation)}, clipping_norm has {len(clip)}."
            )
        multiplier = np.asarray(deviation, dtype=np.float64) / np.asarray(clip, dtype=np.float64)
        return cls(multiplier, sampling_rate, steps, clip, sampling)

    @property
    def constant(self) -> bool:
        """Whether every step has the same noise multiplier and sampling rate."""
        return not isinstance(self.noise_multiplier, tuple) and not isinstance(self.sampling_rate, tuple)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The steps, gathered by noise multiplier and sampling rate: their order changes no promise."""
        if self.constant:
            return (Phase(self.noise_multiplier, self.sampling_rate, self.steps),)
        shape = (self.steps,)
        pairs = np.stack(
            [np.broadcast_to(self.noise_multiplier, shape), np.broadcast_to(self.sampling_rate, shape)]
        )
        kinds, counts = np.unique(pairs, axis=1, return_counts=True)
        return tuple(
            Phase(noise, rate, count)
            for noise, rate, count in zip(*kinds.tolist(), counts.tolist(), strict=True)
        )

    @property
    def sampled(self) -> bool:
        """Whether any step leaves records out."""
        return any(phase.sampling_rate < 1 for phase in self.phases)

    @property
    def fixed_size(self) -> bool:
        """Whether batches have a fixed size."""
        return isinstance(self.sampling, FixedSizeSampling)

    def in_words(self) -> str:
        """Return the description as a phrase."""
        return (
            f"DP-SGD with noise multiplier {_range(self.noise_multiplier)}, sampling rate {_range(self.sampling_rate)}"
            f" and {self.steps:,} {'step' if self.steps == 1 else 'steps'}"
            + (", batches of a fixed size" if self.fixed_size else "")
        )


def _rate(name: str, value: object) -> float:
    return validate.fraction(name, value, one=True)


_CHECKS = {
    "noise_multiplier": validate.positive,
    "sampling_rate": _rate,
    "clipping_norm": validate.positive,
}


def _column(name: str, values: Any) -> Any:
    """Return one checked number, or a tuple of them."""
    check = _CHECKS.get(name, validate.positive)
    if isinstance(values, np.ndarray):
        values = values.tolist()  # a number, if the array has no axis
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        return check(name, values)
    listed = list(values)
    if not listed:
        raise InputError(f"{name} must have one number for each step, got an empty vector.")
    if len(listed) == 1:
        return (check(name, listed[0]),)
    return tuple(check(f"{name} of step {place}", value) for place, value in enumerate(listed, start=1))


def _constant(column: Any) -> bool:
    return isinstance(column, tuple) and all(value == column[0] for value in column)


def _range(value: Any) -> str:
    return (
        f"{given(min(value))} to {given(max(value))} (by step)" if isinstance(value, tuple) else given(value)
    )
