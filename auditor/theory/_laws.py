"""What is asked of the law of a privacy loss, and the two laws in closed form: no sampling, and one step."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.errors import InputError
from auditor.theory._one_step import Step
from auditor.values import Floats

__all__ = ["LARGEST_EPSILON", "GaussianLaw", "OneStepLaw", "PrivacyLoss"]

LARGEST_EPSILON = 700.0
# More noise counts as this much, which can only be worse.
_MOST_NOISE = 1e100
_GRID = 65
_REFINED = 17


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
        >>> from auditor.theory import composed
        >>> law = composed(DPSGD(1.0, 1.0, 1), adjacency=Adjacency.ADD_REMOVE)
        >>> round(float(law.hockey_stick(np.e)), 8)  # statistics.md: delta(mu = 1, eps = 1)
        0.12693674
        """
        factor = np.asarray(a, dtype=np.float64)
        if not np.all(factor > 0):
            raise InputError("a must be above 0.")
        return self._clipped(np.log(np.clip(factor, math.exp(-LARGEST_EPSILON), math.exp(LARGEST_EPSILON))))

    def delta_at(self, epsilon: npt.ArrayLike) -> Floats:
        """Return the smallest delta at each epsilon, the larger one of both orders.

        It is rounded up by its numerical error, which grows like e^(epsilon/2) and leaves about nine digits after the
        point, fewer for few steps of little noise: for tiny deltas ask `auditor.theory.epsilon`.

        Args:
            epsilon: Any shape, 0 or more, in nats.
        """
        eps = np.asarray(epsilon, dtype=np.float64)
        if not np.all((eps >= 0) & (eps < math.inf)):
            raise InputError("epsilon must be 0 or more and finite.")
        eps = np.minimum(eps, LARGEST_EPSILON)
        return np.asarray(np.minimum(self._both_orders(eps), self._not_above(eps)))

    def _both_orders(self, epsilon: Floats) -> Floats:
        return np.asarray(np.maximum(self._clipped(epsilon), np.clip(self._backward(epsilon), 0.0, 1.0)))

    def _backward(self, epsilon: Floats) -> Floats:
        """Return sup Q(A) - e^epsilon P(A) at epsilon >= 0: the same for symmetric laws."""
        return self._excess(epsilon)

    def _not_above(self, epsilon: Floats) -> Floats:
        """Return bounds on delta from smaller epsilons, since delta never rises: of use where padding does."""
        return np.ones_like(epsilon)

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
        found = np.array([self._lowest_line(float(value))[0] for value in flat])
        return np.asarray(np.clip(found, flat, 1.0).reshape(rate.shape))

    def tpr_error_at(self, fpr: float) -> float:
        """Return how far above the truth `tpr_at` may be at one rate, numerically; it is rounded up.

        Args:
            fpr: In [0, 1].
        """
        return float(self._padding(np.array([self._lowest_line(fpr)[1]]))[0])

    def _lowest_line(self, fpr: float) -> tuple[float, float]:
        """The least of the lines at one rate, and its epsilon: convex in e^eps, so the search widens until it turns."""
        if fpr == 0:
            return 0.0, math.inf  # whatever P can give, Q can give
        # A steeper line is above 1 there; a flatter one than e^-21 gains less than 1e-9.
        most = min(max(-math.log(fpr), 21.0), LARGEST_EPSILON)
        reach = min(1.0, most)
        while True:
            grid = np.linspace(-reach, reach, _GRID)
            best = int(np.argmin(np.exp(grid) * fpr + self._clipped(grid)))
            if 0 < best < _GRID - 1 or reach == most:
                break
            reach = min(2 * reach, most)
        for _ in range(3):
            grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)], _REFINED)
            lines = np.exp(grid) * fpr + self._clipped(grid)
            best = int(np.argmin(lines))
        return float(lines[best]), float(grid[best])

    def _padding(self, epsilon: Floats) -> Floats:
        """What `_excess` adds to stay an upper bound."""
        return np.zeros_like(epsilon)

    def _clipped(self, epsilon: Floats) -> Floats:
        eps = np.asarray(epsilon, dtype=np.float64)
        least = np.maximum(0.0, -np.expm1(np.minimum(eps, 0.0)))
        return np.asarray(np.clip(self._excess(eps), least, 1.0))


@dataclass(frozen=True)
class GaussianLaw(PrivacyLoss):
    """N(mu, 1) against N(0, 1): steps without sampling."""

    mu: float

    def total_variation(self) -> float:
        return math.erf(self.mu / math.sqrt(8))

    def _excess(self, epsilon: Floats) -> Floats:
        from auditor.theory.gaussian import gaussian_deltas

        return _both_signs(epsilon, gaussian_deltas(self.mu, epsilons=np.abs(epsilon)))


@dataclass(frozen=True)
class OneStepLaw(PrivacyLoss):
    """One sampled step: closed forms."""

    step: Step

    def total_variation(self) -> float:
        # The best test asks on which side of the middle the output lies.
        half = 1.0 if self.step.replaced else 0.5
        return self.step.rate * math.erf(half / (self.step.noise * math.sqrt(2)))

    def _excess(self, epsilon: Floats) -> Floats:
        if self.step.fixed_size:
            from auditor.theory.gaussian import gaussian_deltas

            growth = np.expm1(np.minimum(np.abs(epsilon), LARGEST_EPSILON))
            inner = np.logaddexp(0.0, _log(growth) - math.log(self.step.rate))
            return _both_signs(epsilon, self.step.rate * gaussian_deltas(2 / self.step.noise, epsilons=inner))
        if self.step.replaced:
            return _both_signs(epsilon, self._replaced(np.abs(epsilon)))
        return self._added(epsilon)

    def _added(self, epsilon: Floats) -> Floats:
        from scipy.special import ndtr

        p, s = self.step.rate, self._noise
        above = np.expm1(np.minimum(epsilon, LARGEST_EPSILON)) + p  # e^eps - (1 - p)
        x = self._where(above)
        # In this order no digits are lost where e^eps is near 1.
        found = p * (ndtr((1 - x) / s) - ndtr(-x / s)) - np.expm1(
            np.minimum(epsilon, LARGEST_EPSILON)
        ) * ndtr(-x / s)
        return np.where(above > 0, found, -np.expm1(np.minimum(epsilon, LARGEST_EPSILON)))

    def _backward(self, epsilon: Floats) -> Floats:
        if self.step.replaced:
            return self._excess(epsilon)
        from scipy.special import ndtr

        p, s = self.step.rate, self._noise
        # Outputs below x, where (1-p) + p e^{u(x)} = e^-eps; there are none once e^-eps <= 1 - p.
        above = np.expm1(-epsilon) + p
        x = self._where(above)
        found = p * (ndtr(x / s) - ndtr((x - 1) / s)) + np.expm1(-epsilon) * ndtr(x / s)
        return np.where(above > 0, np.exp(epsilon) * found, 0.0)

    def _replaced(self, epsilon: Floats) -> Floats:
        """At epsilon >= 0."""
        from scipy.special import ndtr

        p, s = self.step.rate, self._noise
        eps = np.minimum(epsilon, LARGEST_EPSILON)
        # (1-p) + p c y = e^eps ((1-p) + p c / y) with y = e^{x/s^2}, c = e^{-1/(2 s^2)}: x / s^2 is eps/2 + asinh(ratio).
        log_ratio = math.log1p(-p) - math.log(p) + 1 / (2 * s**2) + _log(np.sinh(eps / 2))
        ratio = np.exp(np.minimum(log_ratio, LARGEST_EPSILON))
        x = s**2 * (eps / 2 + np.arcsinh(ratio))
        drawn = ndtr((1 - x) / s) - ndtr((-1 - x) / s) - np.expm1(eps) * ndtr((-1 - x) / s)
        return np.asarray(p * drawn - (1 - p) * np.expm1(eps) * ndtr(-x / s))

    @property
    def _noise(self) -> float:
        return min(self.step.noise, _MOST_NOISE)

    def _where(self, above: Floats) -> Floats:
        """The output at which p e^{u(x)} is this, minus infinity for 0 and less."""
        return np.asarray(self._noise**2 * (_log(np.maximum(above, 0.0)) - math.log(self.step.rate)) + 0.5)


def _both_signs(epsilon: Floats, positive: Floats) -> Floats:
    """A symmetric law at any epsilon from its values at |epsilon|: sup P - e^-eps Q = 1 - e^-eps (1 - sup P - e^eps Q)."""
    negative = 1 - np.exp(-np.abs(epsilon)) * (1 - positive)
    return np.where(epsilon >= 0, positive, negative)


def _log(x: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))
