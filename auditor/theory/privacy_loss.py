"""The exact law of DP-SGD's privacy loss: total variation, hockey-stick divergences and best attackers, between two bounds.

One step, and steps without sampling, have closed forms; everything else is composed by `auditor.theory.inversion`.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import ndtr

from auditor.core import DPSGD, Adjacency, Floats, InputError, Integers, Phase, validate
from auditor.theory import gaussian
from auditor.theory.inversion import Line, invert
from auditor.theory.schedules import Mixed, merged, most_kinds, rounded
from auditor.theory.steps import Steps, step_epsilons

# --- The interface of the law of a privacy loss ---

_LARGEST_EPSILON = 700.0
# Points of a trade-off curve, and the delta at which it ends.
_POINTS = 200
_LEAST_DELTA = 1e-13
# Epsilons that are looked at around the best line for a false positive rate, and how often.
_LINES, _CLOSER = 17, 4
_PRECISE = 1e-12
# Nothing beside 1.
_UNSEEN = 1e-17


class Unresolved(InputError):  # noqa: N818 - a state of the numbers, said in one word
    """The law cannot be computed; a bound by other means may still be there."""


class PrivacyLoss(ABC):
    """The law of the privacy loss of one training run, for one kind of neighbours.

    P is the law of all iterates with the record in (or with the first of two records), Q that without it (or with the
    second); the attacker sees every iterate. Every number is an upper bound, proven but for the rounding of elementary
    functions, which is counted; `between` gives the lower one too.
    """

    @abstractmethod
    def between(
        self, epsilon: Floats, *, backward: bool = False, least: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return bounds on sup_A P(A) - e^epsilon Q(A), or with P and Q exchanged.

        Args:
            epsilon: Any shape, 0 or more, in nats.
            backward: Whether Q comes first.
            least: Below this value bounds need not be close.

        Returns:
            The lower and the upper bound, each in [0, 1].
        """

    def total_variation(self) -> float:
        """Return sup P(A) - Q(A), the advantage of the best attacker, rounded up."""
        return float(self.between(np.zeros(1))[1][0])

    def hockey_stick(self, a: npt.ArrayLike, *, upper: bool = True) -> Floats:
        """Return sup P(A) - a Q(A), rounded up; or a lower bound on it.

        Args:
            a: Any shape, above 0.
            upper: Whether to return the upper bound.

        >>> from auditor.theory import composed
        >>> law = composed(DPSGD(1.0, 1.0, 1), adjacency=Adjacency.ADD_REMOVE)
        >>> round(float(law.hockey_stick(np.e)), 8)  # statistics.md: delta(mu = 1, eps = 1)
        0.12693674
        """
        factor = validate.numbers("a", a, lambda x: x > 0, "be above 0")
        logs = np.clip(np.log(factor), -_LARGEST_EPSILON, _LARGEST_EPSILON)
        return self._excess(np.atleast_1d(logs), upper=upper).reshape(factor.shape)

    def _excess(self, epsilon: Floats, *, upper: bool = True) -> Floats:
        """Return sup P(A) - e^eps Q(A) at epsilons of any sign: 1 - e^eps + e^eps sup Q(A) - e^-eps P(A) for the negative."""
        size, result = np.abs(epsilon), np.empty(np.shape(epsilon))
        negative = epsilon < 0
        if not negative.all():
            result[~negative] = self.between(size[~negative])[upper]
        if negative.any():
            size = size[negative]
            mirrored = self.between(size, backward=True, least=_UNSEEN)[upper]
            result[negative] = -np.expm1(-size) + np.exp(-size) * mirrored
        return np.clip(result, 0.0, 1.0)

    def delta_at(self, epsilon: npt.ArrayLike) -> Floats:
        """Return the smallest delta at each epsilon, the larger one of both orders, rounded up.

        Args:
            epsilon: Any shape, 0 or more, in nats.
        """
        eps = validate.numbers(
            "epsilon", epsilon, lambda x: (x >= 0) & (x < math.inf), "be 0 or more and finite"
        )
        eps = np.minimum(eps, _LARGEST_EPSILON)
        result = np.atleast_1d(self.between(eps)[1]).ravel()
        flat = np.atleast_1d(eps).ravel()
        open_ = self.ceiling(flat, backward=True) > result
        if open_.any():
            result[open_] = np.maximum(result[open_], self.between(flat[open_], backward=True)[1])
        return result.reshape(eps.shape)

    @abstractmethod
    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon at a delta, of both orders the larger, rounded up; possibly infinity.

        >>> from auditor.theory import composed
        >>> law = composed(DPSGD(1.0, 0.01, 1000), adjacency=Adjacency.ADD_REMOVE)
        >>> round(law.epsilon_at(1e-5), 4)
        1.8282
        """

    def ceiling(self, epsilon: Floats, *, backward: bool) -> Floats:  # noqa: ARG002 - no better one here
        """Return a quick upper bound on the result of `between`."""
        return np.ones(np.shape(epsilon))

    def tpr_at(self, fpr: npt.ArrayLike) -> Floats:
        """Return the largest true positive rate of any attacker at each false positive rate, rounded up.

        Positive means "the record is in". By duality it is the least of e^eps FPR + sup(P - e^eps Q) over real eps.

        Args:
            fpr: Any shape, in [0, 1].

        Source: Neyman and Pearson 1933; Mahloujifar et al. 2022, Corollary 11, with its least over a.
        """
        rate = validate.numbers("fpr", fpr, lambda x: (x >= 0) & (x <= 1), "be in [0, 1]")
        flat = np.atleast_1d(rate).ravel()
        result = np.array([self._lowest_line(float(value)) for value in flat])
        return np.asarray(np.clip(result, flat, 1.0).reshape(rate.shape))

    def is_close(self, *, fpr: float) -> bool:
        """Return whether the true positive rate at this error rate is known to a hundredth."""
        return self._lowest_line(fpr) <= _CLOSE * max(fpr, self._lowest_line(fpr, upper=False))

    def _lowest_line(self, fpr: float, *, upper: bool = True) -> float:
        """Return the least of the lines at one rate: convex in e^eps, so the search closes in on it."""
        if fpr == 0:
            return 0.0  # whatever P can give, Q can give
        # A steeper line is above 1 there; a flatter one than e^-21 gains less than 1e-9.
        most = min(max(-math.log(fpr), 21.0), _LARGEST_EPSILON)
        reach = min(1.0, most)
        while True:
            grid = np.linspace(-reach, reach, _LINES)
            lines = np.exp(grid) * fpr + self._excess(grid, upper=upper)
            best = int(np.argmin(lines))
            if 0 < best < _LINES - 1 or reach == most:
                break
            reach = min(2 * reach, most)
        for _ in range(_CLOSER):
            grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, _LINES - 1)], _LINES)
            lines = np.exp(grid) * fpr + self._excess(grid, upper=upper)
            best = int(np.argmin(lines))
        return float(lines[best])

    def profile(self) -> tuple[Floats, Floats]:
        """Return 200 epsilons from 0 to where delta is 1e-13, and delta there, rounded up; shape (200,) each.

        `TradeoffCurve.from_profile` makes the trade-off curve of them, for both orders and never below the true one.
        """
        furthest = min(self.epsilon_at(_LEAST_DELTA), _LARGEST_EPSILON)
        # Dense near 0, where most of a curve's bend is.
        epsilons = furthest * np.linspace(0.0, 1.0, _POINTS) ** 2
        return epsilons, np.minimum.accumulate(np.minimum(self.delta_at(epsilons), 1.0))


# --- The law of one training run ---

# Below this noise a step that has the record shows it, and the law is one of atoms.
_LEAST_NOISE = 0.05
# More noise leaves a shift of the mean only (with batches of a fixed size it counts as this much, and a smaller rate as
# this one always: either can only be worse).
_MOST_NOISE = 1e6
_LEAST_RATE = 1e-12
# Two normals further apart share nothing that a double can represent; the square of more leaves its range.
_LARGEST_MU = 1e150


def composed(training: DPSGD, *, adjacency: Adjacency) -> PrivacyLoss:
    """Return the law of the privacy loss of a training run.

    Args:
        training: Noise, sampling rate and steps; vectors take time with the number of distinct steps, of which more than 1,024
            (64 with batches of a fixed size) are described by a law that dominates theirs (`auditor.theory.schedules`). So are more
            than 128 wherever the bounds of their own law are not close.
        adjacency: Relation between neighbouring training sets; batches of a fixed size are for replaced records only.

    Raises:
        Unresolved: Almost no noise, for which the law cannot be computed well, or no form (above).

    >>> law = composed(DPSGD(1.0, 0.01, 1000), adjacency=Adjacency.REPLACE_ONE)
    >>> round(law.total_variation(), 6)
    0.264352
    """
    return _law_of(training, gaussian.relation_of(training, adjacency))


def only_a_bound(training: DPSGD) -> str:
    """Return why the law of this run bounds that of every two neighbours without being that of any; empty if it is one's."""
    sampled = [phase for phase in training.phases if phase.sampling_rate < 1]
    many = len(sampled) > most_kinds(fixed_size=training.fixed_size)
    if training.fixed_size and training.steps > 1 and sampled:
        levels = (
            f", and {len(sampled):,} different steps by the worse of a few levels: by several percent"
            if many
            else ""
        )
        return f"Batches of a fixed size are described by a pair of laws that dominates them, which no attacker may reach{levels}."
    if many:
        return f"{len(sampled):,} different steps are described by a law that dominates theirs: by less than 1e-4 of epsilon where they are alike, by several percent, at a very small delta up to a fifth, where noise and rates differ widely."
    if training.steps > 1 and any(phase.sampling_rate < _LEAST_RATE for phase in sampled):
        return f"Sampling rates below {_LEAST_RATE:g} count as {_LEAST_RATE:g}."
    return ""


@lru_cache(maxsize=8)
def _law_of(training: DPSGD, adjacency: Adjacency) -> PrivacyLoss:
    """Return the law, kept for the next question about the same run."""
    if training.fixed_size and adjacency is Adjacency.ADD_REMOVE:
        raise Unresolved("batches of a fixed size are accounted for replaced records only.")
    pair = gaussian.StepPair.of(training, adjacency)
    sampled = [phase for phase in training.phases if not _is_gaussian(phase, training)]
    shifts = (
        # With u = (2 x - 1) / (2 s^2), log(1 + p (e^u - 1)) is p u to within a share of about u, some 1e-6.
        math.sqrt(phase.steps)
        * pair.distance
        * phase.sampling_rate
        / phase.noise_multiplier
        * (1.0 if phase.sampling_rate == 1 else 1 + 1e-5)
        for phase in training.phases
        if _is_gaussian(phase, training)
    )
    mu = min(math.hypot(*shifts), _LARGEST_MU)
    if not sampled:
        return _GaussianLaw(mu)
    least = min(phase.noise_multiplier for phase in sampled)
    if least < _LEAST_NOISE:
        needs = f"the exact law needs a noise multiplier of {_LEAST_NOISE} or more where records are sampled"
        raise Unresolved(f"{needs}, got {least:g}.")
    if training.steps == 1:
        return _OneStepLaw(sampled[0].noise_multiplier, sampled[0].sampling_rate, pair)
    usual = [
        Phase(min(phase.noise_multiplier, _MOST_NOISE), max(phase.sampling_rate, _LEAST_RATE), phase.steps)
        for phase in sampled
    ]
    many = len(usual) > _FEW_KINDS and not training.fixed_size
    return _ComposedLaw(merged(usual, pair), mu, _ComposedLaw(rounded(usual, pair), mu) if many else None)


def _is_gaussian(phase: Phase, training: DPSGD) -> bool:
    """Return whether a step is two normals: every record takes part, or the noise is so large that only the mean shift is left."""
    large = phase.noise_multiplier > _MOST_NOISE and not training.fixed_size and training.steps > 1
    return phase.sampling_rate == 1 or large


# --- The two laws in closed form: no sampling, and one step ---

# More noise counts as this much, which can only be worse.
_NOISE_OF_A_LAW = 1e100


@dataclass(frozen=True)
class _GaussianLaw(PrivacyLoss):
    """N(mu, 1) against N(0, 1): steps without sampling."""

    mu: float

    def between(
        self,
        epsilon: Floats,
        *,
        backward: bool = False,  # noqa: ARG002 - both are alike
        least: float = 0.0,  # noqa: ARG002 - all are close
    ) -> tuple[Floats, Floats]:
        """See `PrivacyLoss.between`."""
        result = gaussian.gaussian_deltas(self.mu, epsilons=epsilon)
        return result, result

    def epsilon_at(self, delta: float) -> float:
        """See `PrivacyLoss.epsilon_at`."""
        return float(gaussian.gaussian_epsilons(self.mu, deltas=delta))


@dataclass(frozen=True)
class _OneStepLaw(PrivacyLoss):
    """One sampled step: closed forms."""

    noise: float
    rate: float
    pair: gaussian.StepPair

    def between(
        self,
        epsilon: Floats,
        *,
        backward: bool = False,
        least: float = 0.0,  # noqa: ARG002 - all are close
    ) -> tuple[Floats, Floats]:
        """See `PrivacyLoss.between`."""
        eps = np.minimum(np.asarray(epsilon, dtype=np.float64), _LARGEST_EPSILON)
        if self.pair is gaussian.StepPair.REPLACE_ONE:
            result = self._replaced(eps)
        else:  # of batches of a fixed size both orders are as the forward one
            mu = self.pair.distance / self.noise
            orders = gaussian.sampled_deltas(
                lambda at: gaussian.gaussian_deltas(mu, epsilons=at), eps, rate=self.rate
            )
            result = orders[backward and self.pair is gaussian.StepPair.ADD_REMOVE]
        result = np.clip(result, 0.0, 1.0)
        return result, result

    def epsilon_at(self, delta: float) -> float:
        """See `PrivacyLoss.epsilon_at`."""
        noise, rate = np.array([self.noise]), np.array([self.rate])
        return float(step_epsilons(noise, rate, self.pair, deltas=delta)[0])

    def _replaced(self, epsilon: Floats) -> Floats:
        p, s = self.rate, min(self.noise, _NOISE_OF_A_LAW)
        # (1-p) + p c y = e^eps ((1-p) + p c / y) with y = e^{x/s^2}, c = e^{-1/(2 s^2)}: x / s^2 is eps/2 + asinh(ratio).
        with np.errstate(divide="ignore"):
            log_ratio = np.log(np.sinh(epsilon / 2)) + math.log1p(-p) - math.log(p) + 1 / (2 * s**2)
        ratio = np.exp(np.minimum(log_ratio, _LARGEST_EPSILON))
        x = s**2 * (epsilon / 2 + np.arcsinh(ratio))
        drawn = ndtr((1 - x) / s) - ndtr((-1 - x) / s) - np.expm1(epsilon) * ndtr((-1 - x) / s)
        return np.asarray(p * drawn - (1 - p) * np.expm1(epsilon) * ndtr(-x / s))


# --- The law of many sampled steps ---

# Orders k = 1 + 1.5^i that are looked at.
_ORDERS = tuple(1 + 1.5**i for i in range(-45, 46))
_MIDDLE = 46
# Mass that two laws share of which no digit is left to compute.
_LEAST_MISSED = 1e-18
# Of a squared standard deviation, which rounding could put below 0.
_LEAST_SCALE = 1e-60
# Deltas below this come from Chernoff's bound.
_TINY = 1e-60
# Kinds of step from which another law stands beside, and the upper bound over the lower from which it is looked at.
_FEW_KINDS, _CLOSE = 128, 1.01


@dataclass(frozen=True, eq=False)
class _ComposedLaw(PrivacyLoss):
    """Several steps, some of them sampled: by inversion of their transform."""

    steps: Steps
    mu: float
    # A law above the run's too, from levels, for where this one is not close.
    beside: "_ComposedLaw | None" = None
    _masses: dict[tuple[float, bool], float] = field(default_factory=dict, repr=False)
    _lines: dict[tuple[int, float, bool], Line] = field(default_factory=dict, repr=False)

    def between(
        self, epsilon: Floats, *, backward: bool = False, least: float = 0.0
    ) -> tuple[Floats, Floats]:
        """See `PrivacyLoss.between`."""
        backward = backward and self.steps.backward is not self.steps
        eps = np.asarray(epsilon, dtype=np.float64)
        flat = np.atleast_1d(eps).ravel()
        # What min(P, e^eps Q) holds is at most e^(eps/2) times what the two laws share: where that is nothing, delta is 1.
        missed = np.exp(np.minimum(self._log_mass(0.5, backward=False) + flat / 2, 0.0))
        lower, upper = 1 - missed, np.ones(flat.shape)
        open_ = missed > _LEAST_MISSED
        if open_.any():
            lower[open_], upper[open_] = self._inverted(flat[open_], backward=backward, least=least)
        loose = (upper > _CLOSE * lower) & (upper > max(least, _TINY))
        if self.beside is not None and loose.any():
            other = self.beside.between(flat[loose], backward=backward, least=least)[1]
            upper[loose] = np.minimum(upper[loose], other)
        if isinstance(self.steps, Mixed):  # which is above the law of the run
            below = _ComposedLaw(self.steps.least, self.mu)
            lower = np.zeros(flat.shape) if flat.any() else below.between(flat)[0]
        return lower.reshape(eps.shape), upper.reshape(eps.shape)

    def _inverted(self, flat: Floats, *, backward: bool, least: float) -> tuple[Floats, Floats]:
        lower, upper = np.zeros(flat.shape), np.ones(flat.shape)
        ceiling = self.ceiling(flat, backward=backward)
        best = self._best(flat, backward=backward)
        # Every line serves the epsilons of one interval; its answers do not depend on other queries.
        scale = self._scale(backward=backward)
        with np.errstate(divide="ignore"):
            part = np.where(flat == 0, -1.0, np.maximum(np.ceil(np.log2(flat / scale)), 0.0))
        for index, place in sorted({*zip(best.tolist(), part.tolist(), strict=True)}):
            there = (best == index) & (part == place)
            if ceiling[there].max() < max(least, _TINY):
                upper[there] = ceiling[there]
            else:
                line = self._line(index, place, backward=backward)
                lower[there], upper[there] = line.between(flat[there])
        upper = np.minimum(upper, ceiling)
        return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)

    def epsilon_at(self, delta: float) -> float:
        """See `PrivacyLoss.epsilon_at`: infinite at 0."""
        if delta <= 0:
            return math.inf
        return max(self._epsilon_at(math.log(delta), backward=order) for order in (False, True))

    def _epsilon_at(self, log_delta: float, *, backward: bool) -> float:
        """Return an epsilon by search: down from one that is surely enough, then between two."""

        def over(epsilon: float) -> float:
            result = self.between(np.array([epsilon]), backward=backward, least=math.exp(log_delta) / 2)
            upper = float(result[1][0])
            return math.log(max(upper, sys.float_info.min)) - log_delta

        enough, step = self._enough(log_delta, backward=backward)
        if not math.isfinite(enough) or over(enough) > 0:
            return enough
        low = high = enough
        while over(low) <= 0:
            if low == 0:
                return 0.0
            low, high, step = max(low - step, 0.0), low, 2 * step
        result = float(scipy.optimize.brentq(over, low, high, xtol=_PRECISE * high, rtol=_PRECISE))
        nudge = _PRECISE * high
        while over(result) > 0 and result < high:
            result, nudge = min(result + nudge, high), 2 * nudge
        return min(result, enough)

    def _enough(self, log_delta: float, *, backward: bool) -> tuple[float, float]:
        """Return the least epsilon of all orders: where e^-((k-1) eps) times the constant of `_constant` is delta."""

        def bound(index: int) -> float:
            return (self._constant(index, backward=backward) - log_delta) / (_ORDERS[index] - 1)

        best = _descend(bound, _MIDDLE)
        return max(bound(best), 0.0), 2 / (_ORDERS[best] - 1)

    def ceiling(self, epsilon: Floats, *, backward: bool) -> Floats:
        """See `PrivacyLoss.ceiling`: by Chernoff's bound."""
        backward = backward and self.steps.backward is not self.steps
        best = self._best(epsilon, backward=backward)
        near = range(best.min(), best.max() + 1)
        constant = np.array([self._constant(index, backward=backward) for index in near])
        orders = np.array(_ORDERS)[best]
        return np.asarray(np.exp(np.minimum(constant[best - best.min()] - (orders - 1) * epsilon, 0.0)))

    def _constant(self, index: int, *, backward: bool) -> float:
        """Return the log of M(k) (k-1)^(k-1) / k^k: delta(eps) is at most that times e^-((k-1) eps), as 1 - e^-x is of e^((k-1) x)."""
        k = _ORDERS[index]
        return self._log_mass(k, backward=backward) + (k - 1) * math.log(k - 1) - k * math.log(k)

    def _best(self, epsilon: Floats, *, backward: bool) -> Integers:
        """Return the order at which the integrand is lowest, for each epsilon: the higher, the larger epsilon."""
        ends = float(epsilon.min()), float(epsilon.max())
        least, most = (self._lowest(value, backward=backward) for value in ends)
        turns = [self._turn(index, backward=backward) for index in range(least, most)]
        return least + np.searchsorted(np.array(turns), epsilon, side="left")

    def _lowest(self, epsilon: float, *, backward: bool) -> int:
        return _descend(lambda i: self._height(i, backward=backward) - (_ORDERS[i] - 1) * epsilon, _MIDDLE)

    def _height(self, index: int, *, backward: bool) -> float:
        """Return the log of the integrand at t = 0 and epsilon 0."""
        k = _ORDERS[index]
        return self._log_mass(k, backward=backward) - math.log(k * (k - 1))

    def _turn(self, index: int, *, backward: bool) -> float:
        """Return the epsilon from which on the next order is better."""
        here, there = (self._height(i, backward=backward) for i in (index, index + 1))
        return (there - here) / (_ORDERS[index + 1] - _ORDERS[index])

    def _line(self, index: int, place: float, *, backward: bool) -> Line:
        """Return the line of one order for one interval of epsilons (0 alone, up to the scale, its doubles), kept for the next call."""
        key = (index, place, backward)
        if key not in self._lines:
            high = self._scale(backward=backward) * 2.0**place if place >= 0 else 0.0
            low = high / 2 if place > 0 else 0.0
            self._lines[key] = invert(
                self.steps.backward if backward else self.steps,
                order=_ORDERS[index],
                mu=self.mu,
                centre=(low + high) / 2,
                reach=(high - low) / 2,
            )
        return self._lines[key]

    def _scale(self, *, backward: bool) -> float:
        """Return the approximate standard deviation of the loss: M(k) is about e^(k (k-1) scale^2/2)."""
        k = _ORDERS[self._lowest(0.0, backward=backward)]
        return math.sqrt(max(2 * self._log_mass(k, backward=backward), _LEAST_SCALE) / (k * (k - 1)))

    def _log_mass(self, order: float, *, backward: bool) -> float:
        if (order, backward) not in self._masses:
            steps = self.steps.backward if backward else self.steps
            with np.errstate(over="ignore", invalid="ignore"):
                mass = float(steps.count @ steps.log_masses(order)[0]) + order * (order - 1) * self.mu**2 / 2
            self._masses[order, backward] = math.inf if math.isnan(mass) else mass
        return self._masses[order, backward]


def _descend(height: Callable[[int], float], start: int) -> int:
    """Return the lowest of the orders by steps that halve: the height falls and then rises."""
    at, step = start, 16
    while step:
        around = [i for i in (at - step, at, at + step) if 0 < i < len(_ORDERS) - 1]
        best = min(around, key=height)
        at, step = (best, step) if best != at else (at, step // 2)
    return at
