"""The exact law of DP-SGD's privacy loss: total variation, privacy profile and trade-off curve to many digits.

The loss S of a run is the sum of its steps' losses, and psi the product of the steps' transforms under sqrt(P Q); see
`auditor.theory._one_step`. Fourier inversion on the line Re z = 1/2 gives [own; Lewis 2001 for the price of an option]

    sup_A P(A) - e^eps Q(A) = 1 - (e^{eps/2} / pi) * integral over t > 0 of Re[e^{-i t eps} psi(t)] / (t^2 + 1/4),
    TV = (1/pi) * integral over t > 0 of Re[1 - psi(t)] / (t^2 + 1/4):

a kernel that decays, so that stopping at t leaves an error of at most |psi(t)| / (pi t) if |psi| does not rise again.
The second form keeps the digits of a tiny total variation. One step, and steps without sampling, have closed forms.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory._inversion import Inversion, invert
from auditor.theory._laws import LARGEST_EPSILON, GaussianLaw, OneStepLaw, PrivacyLoss
from auditor.theory._one_step import Step
from auditor.training import Phase
from auditor.values import Floats

__all__ = ["PrivacyLoss", "Unresolved", "composed", "only_a_bound"]

# Below this noise a step that has the record shows it, and the law is one of atoms.
_LEAST_NOISE = 0.05
# More noise leaves a shift of the mean only (with batches of a fixed size it counts as this much, and a smaller rate as
# this one always: either can only be worse).
_MOST_NOISE = 1e6
_LEAST_RATE = 1e-12
# Two normals further apart share nothing that a double can tell; the square of more leaves its range.
_LARGEST_MU = 1e150
# A larger numerical error makes other bounds better.
_LARGEST_ERROR = 2e-3
# Log of 1e-9 over the rounding of a double.
_DIGITS = 14.5
_DEVIATIONS = 100.0
# Numbers evaluated for one kind of step, a fraction of a second's work, and for how many kinds that is granted.
_BUDGET = 4e7
_DEAREST = 20
_OFTEN_ENOUGH = 48.0
_FALLING = 257


class Unresolved(InputError):  # noqa: N818 - a state of the numbers, said in one word
    """The law cannot be computed well; a bound by other means may still be there."""


def only_a_bound(training: DPSGD) -> str:
    """Return why the law of this run bounds that of every two neighbours without being that of any; empty if it is one's."""
    sampled = [phase for phase in training.phases if phase.sampling_rate < 1]
    if training.fixed_size and training.steps > 1 and sampled:
        return "Batches of a fixed size are told by a pair of laws that dominates them, which no attacker may reach."
    if training.steps > 1 and any(phase.sampling_rate < _LEAST_RATE for phase in sampled):
        return f"Sampling rates below {_LEAST_RATE:g} count as {_LEAST_RATE:g}."
    return ""


def composed(training: DPSGD, *, adjacency: Adjacency) -> PrivacyLoss:
    """Return the law of the privacy loss of a training run.

    Args:
        training: Noise, sampling rate and steps; vectors take time with the number of distinct steps.
        adjacency: Which training sets count as neighbours; batches of a fixed size are for replaced records only.

    Raises:
        Unresolved: Almost no noise, for which the law cannot be computed well, or no form (above).

    >>> from auditor.choices import DPSGD, Adjacency
    >>> law = composed(DPSGD(1.0, 0.01, 1000), adjacency=Adjacency.REPLACE_ONE)
    >>> round(law.total_variation(), 6)
    0.264352
    """
    _validate.instance("training", training, [DPSGD])
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    return _law_of(training, relation)


@lru_cache(maxsize=8)
def _law_of(training: DPSGD, adjacency: Adjacency) -> PrivacyLoss:
    """The law, kept for the next question about the same run."""
    replaced = adjacency is Adjacency.REPLACE_ONE
    if training.fixed_size and not replaced:
        raise Unresolved("batches of a fixed size are accounted for replaced records only.")
    distance = 2.0 if replaced else 1.0
    gaussian = [phase for phase in training.phases if _is_gaussian(phase, training)]
    sampled = [phase for phase in training.phases if not _is_gaussian(phase, training)]
    shifts = (
        math.sqrt(phase.steps) * distance * phase.sampling_rate / phase.noise_multiplier * _rounded_up(phase)
        for phase in gaussian
    )
    mu = min(math.hypot(*shifts), _LARGEST_MU)
    if not sampled:
        return GaussianLaw(mu)
    least = min(phase.noise_multiplier for phase in sampled)
    if least < _LEAST_NOISE:
        raise Unresolved(
            f"the exact law needs a noise multiplier of {_LEAST_NOISE} or more where records are sampled, got {least:g}."
        )
    steps = tuple(
        (
            Step(
                min(phase.noise_multiplier, _MOST_NOISE),
                max(phase.sampling_rate, _LEAST_RATE),
                replaced,
                training.fixed_size,
            ),
            phase.steps,
        )
        for phase in sampled
    )
    if training.steps == 1:
        only = sampled[0]
        return OneStepLaw(Step(only.noise_multiplier, only.sampling_rate, replaced, training.fixed_size))
    law = _FourierLaw(steps, mu)
    if not law.error <= _LARGEST_ERROR:
        raise Unresolved(
            f"the exact law is known to {law.error:.1g} only for so little noise and so few draws."
        )
    return law


def _is_gaussian(phase: Phase, training: DPSGD) -> bool:
    """Whether a step is two normals: every record takes part, or the noise is so large that only the mean shift is left."""
    large = phase.noise_multiplier > _MOST_NOISE and not training.fixed_size and training.steps > 1
    return phase.sampling_rate == 1 or large


def _rounded_up(phase: Phase) -> float:
    # With u = (2 x - 1) / (2 s^2), log(1 + p (e^u - 1)) is p u to within a share of about u, some 1e-6.
    return 1.0 if phase.sampling_rate == 1 else 1 + 1e-5


@dataclass(frozen=True)
class _FourierLaw(PrivacyLoss):
    """Several steps, some of them sampled: by Fourier inversion."""

    steps: tuple[tuple[Step, int], ...]
    mu: float
    _found: dict[float, Inversion] = field(default_factory=dict, compare=False, repr=False)

    @property
    def error(self) -> float:
        return self._inversion(0.0).error

    def total_variation(self) -> float:
        found = self._inversion(0.0)
        return min(1.0, found.total_variation + found.error)

    def _excess(self, epsilon: Floats) -> Floats:
        return self._inverted(epsilon, backward=False)

    def _backward(self, epsilon: Floats) -> Floats:
        return self._inverted(epsilon, backward=True)

    def _not_above(self, epsilon: Floats) -> Floats:
        grid, bounds = self._falling
        place = np.searchsorted(grid, epsilon, side="right") - 1
        return np.asarray(bounds[np.maximum(place, 0)])

    @cached_property
    def _falling(self) -> tuple[Floats, Floats]:
        """Epsilons from 0 on, and the least delta so far."""
        grid = self._furthest * np.linspace(0.0, 1.0, _FALLING) ** 2
        return grid, np.minimum.accumulate(self._both_orders(grid))

    def _inverted(self, epsilon: Floats, *, backward: bool) -> Floats:
        near = np.clip(epsilon, -self._furthest, self._furthest)
        # One inversion for each band of epsilons: what one gives does not depend on what else is asked.
        bands = self._bands(near)
        excess = np.empty(near.shape)
        for band in np.unique(bands):
            there = bands == band
            excess[there] = self._inversion(float(band)).excess(near[there], backward=backward)
        excess += self._padding(near)
        # In a = e^eps it is convex, 1 at 0 and never rising: a bound where e^{eps/2} would swamp the digits.
        return np.where(epsilon < near, 1 - np.exp(epsilon - near) * (1 - np.minimum(excess, 1.0)), excess)

    def _padding(self, epsilon: Floats) -> Floats:
        near = np.clip(epsilon, -self._furthest, self._furthest)
        bands = self._bands(near)
        errors = {float(band): self._inversion(float(band)).error for band in np.unique(bands)}
        return np.asarray(np.vectorize(errors.get, otypes=[np.float64])(bands) * np.exp(near / 2))

    def _bands(self, epsilon: Floats) -> Floats:
        """Powers of two that hold each epsilon: 0 alone, then from about the deviation on."""
        least = math.floor(math.log2(self._facts["deviation"]))
        with np.errstate(divide="ignore"):
            powers = np.maximum(np.ceil(np.log2(np.abs(epsilon))), least)
        return np.where(epsilon == 0, 0.0, 2.0**powers)

    def _inversion(self, frequency: float) -> Inversion:
        """The inversion for epsilons up to this one, kept for the next call."""
        if frequency not in self._found:
            self._found[frequency] = invert(self.log_psi, frequency=frequency, **self._facts)
        return self._found[frequency]

    @cached_property
    def _furthest(self) -> float:
        """The largest epsilon at which rounding leaves nine digits of delta, and that takes about a second at most."""
        log_shared = float(self.log_psi(np.zeros(1))[0].real)
        deviation = self._facts["deviation"]
        quick = max(_DEVIATIONS * deviation, min(_OFTEN_ENOUGH, 10 * _DEVIATIONS * deviation))
        return float(min(2 * (_DIGITS - log_shared), quick, LARGEST_EPSILON))

    @cached_property
    def _facts(self) -> dict[str, Any]:
        mean = sum(count * step.moments[0] for step, count in self.steps)
        variance = sum(count * step.moments[1] for step, count in self.steps) + self.mu**2
        log_atom = -math.inf if self.mu else sum(count * _log(step.atom) for step, count in self.steps)
        return {
            "deviation": math.sqrt(variance),
            "mean": mean,
            "atom": math.exp(log_atom),
            "work": lambda t: sum(step.work(t) for step, _ in self.steps),
            "budget": _BUDGET * min(len(self.steps), _DEAREST),
        }

    def log_psi(self, t: Floats) -> npt.NDArray[np.complex128]:
        """Return the log of the transform at ascending t >= 0."""
        log_size, turn = -(0.25 + t**2) * self.mu**2 / 2, np.zeros(t.size)
        for step, count in self.steps:
            unlike = np.asarray(step.unlike(t), dtype=np.complex128)
            x, y = -unlike.real, -unlike.imag
            # log(1 + x + i y) without losing the digits of small x and y, which numpy's complex log1p does.
            with np.errstate(divide="ignore"):
                size = np.log1p(np.maximum(2 * x + x * x + y * y, -1.0)) / 2
            log_size = log_size + count * size
            turn = turn + count * np.arctan2(y, 1 + x)
        return log_size + 1j * turn


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
