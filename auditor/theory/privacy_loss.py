"""The exact law of DP-SGD's privacy loss: total variation, privacy profile and trade-off curve to many digits.

The loss S of a run is the sum of its steps' losses, and psi the product of the steps' transforms under sqrt(P Q); see
`auditor.theory._one_step`. Fourier inversion on the line Re z = 1/2 gives [own; Lewis 2001 for the price of an option]

    sup_A P(A) - e^eps Q(A) = 1 - (e^{eps/2} / pi) * integral over t > 0 of Re[e^{-i t eps} psi(t)] / (t^2 + 1/4),
    TV = (1/pi) * integral over t > 0 of Re[1 - psi(t)] / (t^2 + 1/4):

a kernel that decays, so that stopping at t leaves an error of at most |psi(t)| / (pi t) if |psi| does not rise again.
The second form keeps the digits of a tiny total variation. One step, and steps without sampling, have closed forms.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory._inversion import Inversion, invert
from auditor.theory._one_step import Step
from auditor.values import Floats

__all__ = ["PrivacyLoss", "Unresolved", "composed"]

# Below this noise a step that has the record shows it, and the law is one of atoms.
_LEAST_NOISE = 0.05
# More noise counts as this much and a smaller rate as this one, which can only be worse.
_MOST_NOISE = 1e6
_LEAST_RATE = 1e-12
# A larger numerical error makes other bounds better.
_LARGEST_ERROR = 2e-3
_LARGEST_EPSILON = 700.0
# Log of 1e-9 over the rounding of a double.
_DIGITS = 14.5
_DEVIATIONS = 100.0
# Numbers evaluated for one kind of step, a fraction of a second's work, and for how many kinds that is granted.
_BUDGET = 4e7
_DEAREST = 20
_OFTEN_ENOUGH = 48.0
_GRID = 257
_REFINED = 33


class Unresolved(InputError):  # noqa: N818 - a state of the numbers, said in one word
    """The law cannot be computed well; a bound by other means may still be there."""


class PrivacyLoss(ABC):
    """The law of the privacy loss of one training run, for one kind of neighbours.

    P is the law of all iterates with the record in (or with the first of two records), Q that without it (or with the
    second); the attacker sees every iterate.
    """

    @property
    def error(self) -> float:
        """How far above the truth the total variation may be, numerically; it is rounded up."""
        return 1e-15

    @abstractmethod
    def total_variation(self) -> float:
        """Return sup P(A) - Q(A): the advantage of the best attacker."""

    @abstractmethod
    def _excess(self, epsilon: Floats) -> Floats:
        """Return sup P(A) - e^epsilon Q(A) for any real epsilon."""

    def hockey_stick(self, a: npt.ArrayLike) -> Floats:
        """Return sup P(A) - a Q(A).

        Args:
            a: Any shape, above 0.

        >>> from auditor.choices import DPSGD, Adjacency
        >>> law = composed(DPSGD(1.0, 1.0, 1), adjacency=Adjacency.ADD_REMOVE)
        >>> round(float(law.hockey_stick(np.e)), 8)  # statistics.md: delta(mu = 1, eps = 1)
        0.12693674
        """
        factor = _positive("a", a)
        return self._clipped(np.log(factor))

    def delta_at(self, epsilon: npt.ArrayLike) -> Floats:
        """Return the smallest delta at each epsilon, the larger one of both orders.

        Args:
            epsilon: Any shape, 0 or more, in nats.
        """
        eps = np.asarray(epsilon, dtype=np.float64)
        if not np.all((eps >= 0) & (eps < math.inf)):
            raise InputError("epsilon must be 0 or more and finite.")
        eps = np.minimum(eps, _LARGEST_EPSILON)
        # sup Q - e^eps P = 1 - e^eps (1 - sup (P - e^-eps Q)).
        backward = 1 - np.exp(eps) * (1 - self._clipped(-eps))
        return np.asarray(np.maximum(self._clipped(eps), np.clip(backward, 0.0, 1.0)))

    def tpr_at(self, fpr: npt.ArrayLike) -> Floats:
        """Return the largest true positive rate of any attacker at each false positive rate.

        Positive means "the record is in". By duality it is the least of e^eps FPR + sup(P - e^eps Q) over real eps.

        Args:
            fpr: Any shape, in [0, 1].

        Source: Neyman and Pearson 1933; Mahloujifar et al. 2022, Corollary 11, with its least over a.
        """
        rate = np.asarray(fpr, dtype=np.float64)
        if not np.all((rate >= 0) & (rate <= 1)):
            raise InputError("fpr must lie in [0, 1].")
        flat = np.atleast_1d(rate).ravel()
        positive = flat[flat > 0]
        reach = self._support(float(positive.min()) if positive.size else 1.0)
        grid = np.sinh(np.linspace(-8.0, 8.0, _GRID)) / math.sinh(8.0) * reach
        excess = self._clipped(grid)
        found = np.array([self._least(float(value), grid, excess) for value in flat])
        return np.asarray(np.clip(found, flat, 1.0).reshape(rate.shape))

    def _least(self, fpr: float, grid: Floats, excess: Floats) -> float:
        """The least of the lines at one rate: on the grid, then twice on a finer one about the best."""
        if fpr == 0:
            return 0.0  # whatever P can give, Q can give
        for _ in range(2):
            best = int(np.argmin(np.exp(grid) * fpr + excess))
            grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)], _REFINED)
            excess = self._clipped(grid)
        return float(np.min(np.exp(grid) * fpr + excess))

    @abstractmethod
    def _support(self, fpr: float) -> float:
        """Return an epsilon beyond which no line is lowest at this rate."""

    def _clipped(self, epsilon: Floats) -> Floats:
        eps = np.asarray(epsilon, dtype=np.float64)
        least = np.maximum(0.0, -np.expm1(np.minimum(eps, 0.0)))
        return np.asarray(np.clip(self._excess(eps), least, 1.0))


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
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    return _composed(training, relation)


@lru_cache(maxsize=8)
def _composed(training: DPSGD, adjacency: Adjacency) -> PrivacyLoss:
    """The law, kept for the next question about the same run."""
    replaced = adjacency is Adjacency.REPLACE_ONE
    if training.fixed_size and not replaced:
        raise Unresolved("batches of a fixed size are accounted for replaced records only.")
    sampled = [phase for phase in training.phases if phase.sampling_rate < 1]
    everyone = [phase for phase in training.phases if phase.sampling_rate == 1]
    distance = 2.0 if replaced else 1.0
    # In logs: noise may be as small as a double goes.
    mu = math.sqrt(sum(phase.steps * _square(distance / phase.noise_multiplier) for phase in everyone))
    if not sampled:
        return _Gaussian(mu)
    least = min(phase.noise_multiplier for phase in sampled)
    if least < _LEAST_NOISE:
        raise Unresolved(
            f"the exact law needs a noise multiplier of {_LEAST_NOISE} or more where records are sampled, got {least:g}."
        )
    steps = tuple(
        (
            Step(
                min(phase.noise_multiplier, _MOST_NOISE), phase.sampling_rate, replaced, training.fixed_size
            ),
            phase.steps,
        )
        for phase in sampled
    )
    if training.steps == 1:
        return _OneStep(steps[0][0])
    law = _Composed(steps, mu)
    if not law.error <= _LARGEST_ERROR:
        raise Unresolved(
            f"the exact law is known to {law.error:.1g} only for so little noise and so few draws."
        )
    return law


def _square(x: float) -> float:
    return min(x, 1e150) ** 2


def _positive(name: str, values: npt.ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if not np.all((array > 0) & (array < math.inf)):
        raise InputError(f"{name} must be above 0 and finite.")
    return array


@dataclass(frozen=True)
class _Gaussian(PrivacyLoss):
    """N(mu, 1) against N(0, 1): steps without sampling."""

    mu: float

    def total_variation(self) -> float:
        return math.erf(self.mu / math.sqrt(8))

    def _excess(self, epsilon: Floats) -> Floats:
        from scipy.special import log_ndtr

        if self.mu == 0:
            return -np.expm1(np.minimum(epsilon, 0.0))
        upper = np.exp(log_ndtr(self.mu / 2 - epsilon / self.mu))
        lower = np.exp(np.minimum(epsilon + log_ndtr(-self.mu / 2 - epsilon / self.mu), 0.0))
        return np.asarray(upper - lower)

    def _support(self, fpr: float) -> float:
        from scipy.special import ndtri

        furthest = self.mu * (self.mu / 2 + abs(float(ndtri(fpr)))) if fpr < 1 else self.mu**2
        return min(furthest + 1.0, _LARGEST_EPSILON)


@dataclass(frozen=True)
class _OneStep(PrivacyLoss):
    """One sampled step: closed forms."""

    step: Step

    def total_variation(self) -> float:
        # The best test asks on which side of the middle the output lies.
        half = 1.0 if self.step.replaced else 0.5
        return self.step.rate * math.erf(half / (self.step.noise * math.sqrt(2)))

    def _excess(self, epsilon: Floats) -> Floats:
        if self.step.fixed_size:
            size = np.abs(epsilon)
            amplified = self.step.rate * _Gaussian(2 / self.step.noise)._clipped(  # noqa: SLF001 - same module
                np.log1p(np.expm1(np.minimum(size, _LARGEST_EPSILON)) / self.step.rate)
            )
            # Both orders are alike: sup P - e^-eps Q = 1 - e^-eps (1 - sup P - e^eps Q).
            return np.where(epsilon >= 0, amplified, 1 - np.exp(-size) * (1 - amplified))
        return self._replaced(epsilon) if self.step.replaced else self._added(epsilon)

    def _added(self, epsilon: Floats) -> Floats:
        from scipy.special import ndtr

        p, s = self.step.rate, self.step.noise
        factor = np.exp(np.minimum(epsilon, _LARGEST_EPSILON))
        above = np.expm1(np.minimum(epsilon, _LARGEST_EPSILON)) + p  # e^eps - (1 - p)
        with np.errstate(divide="ignore", invalid="ignore"):
            x = s**2 * np.log(above / p) + 0.5
            found = p * ndtr((1 - x) / s) - above * ndtr(-x / s)
        return np.where(above > 0, found, 1 - factor)

    def _replaced(self, epsilon: Floats) -> Floats:
        from scipy.special import ndtr

        p, s = self.step.rate, self.step.noise
        eps = np.clip(epsilon, -_LARGEST_EPSILON, _LARGEST_EPSILON)
        # (1-p) + p c y = e^eps ((1-p) + p c / y) with y = e^{x/s^2}, c = e^{-1/(2 s^2)}.
        with np.errstate(over="ignore"):
            ratio = (1 - p) / p * np.sinh(eps / 2) * math.exp(min(1 / (2 * s**2), 700.0))
        x = s**2 * (eps / 2 + np.arcsinh(ratio))
        first = (1 - p) * ndtr(-x / s) + p * ndtr((1 - x) / s)
        second = (1 - p) * ndtr(-x / s) + p * ndtr((-1 - x) / s)
        return np.asarray(first - np.exp(eps) * second)

    def _support(self, fpr: float) -> float:
        return min(-2 * math.log(fpr) + 40.0, _LARGEST_EPSILON)


@dataclass(frozen=True)
class _Composed(PrivacyLoss):
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
        near = np.clip(epsilon, -self._furthest, self._furthest)
        found = self._inversion(float(np.max(np.abs(near), initial=0.0)))
        # Rounded up, so that what follows stays an upper bound.
        excess = found.excess(near) + found.error * np.exp(near / 2)
        # In a = e^eps it is convex, 1 at 0 and never rising: a bound where e^{eps/2} would swamp the digits.
        return np.where(epsilon < near, 1 - np.exp(epsilon - near) * (1 - np.minimum(excess, 1.0)), excess)

    def _inversion(self, epsilon: float) -> Inversion:
        """The inversion for epsilons up to this one, kept for the next call."""
        frequency = 2.0 ** math.ceil(math.log2(epsilon)) if epsilon > 0 else 0.0
        if frequency not in self._found:
            self._found[frequency] = invert(self.log_psi, frequency=frequency, **self._facts)
        return self._found[frequency]

    @cached_property
    def _furthest(self) -> float:
        """The largest epsilon at which rounding leaves nine digits of delta, and that takes about a second at most."""
        log_shared = float(self.log_psi(np.zeros(1))[0].real)
        deviation = self._facts["deviation"]
        quick = max(_DEVIATIONS * deviation, min(_OFTEN_ENOUGH, 10 * _DEVIATIONS * deviation))
        return float(min(2 * (_DIGITS - log_shared), quick, _LARGEST_EPSILON))

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

    def _support(self, fpr: float) -> float:
        # Q(S > eps) <= e^{-eps/2} psi(0), and psi(0) <= 1; lines flatter than e^-21 gain less than 1e-9.
        return min(max(-2 * math.log(fpr) + 1.0, 21.0), 60.0)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
