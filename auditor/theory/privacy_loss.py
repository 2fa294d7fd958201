"""The exact law of DP-SGD's privacy loss: total variation, hockey-stick divergences and best attackers to many digits.

The loss S of a run is the sum of its steps' losses, and psi the product of the steps' transforms under sqrt(P Q); see
`auditor.theory.steps`. Fourier inversion on the line Re z = 1/2 gives [own; Lewis 2001 for the price of an option]

    sup_A P(A) - e^eps Q(A) = 1 - (e^{eps/2} / pi) * integral over t > 0 of Re[e^{-i t eps} psi(t)] / (t^2 + 1/4),
    TV = (1/pi) * integral over t > 0 of Re[1 - psi(t)] / (t^2 + 1/4):

a kernel that decays, so that stopping at t leaves an error of at most |psi(t)| / (pi t) if |psi| does not rise again.
The second form keeps the digits of a tiny total variation. One step, and steps without sampling, have closed forms.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from auditor.core.errors import InputError
from auditor.core.options import DPSGD, Adjacency, Phase
from auditor.core.values import Floats
from auditor.theory.gaussian import StepPair, array_of, gaussian_deltas, relation_of
from auditor.theory.steps import Step

# --- What is asked of the law of a privacy loss ---

_LARGEST_EPSILON = 700.0
_GRID = 65
_REFINED = 17


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

        >>> from auditor.core.options import DPSGD
        >>> from auditor.core.options import Adjacency
        >>> from auditor.theory import composed
        >>> law = composed(DPSGD(1.0, 1.0, 1), adjacency=Adjacency.ADD_REMOVE)
        >>> round(float(law.hockey_stick(np.e)), 8)  # statistics.md: delta(mu = 1, eps = 1)
        0.12693674
        """
        factor = array_of("a", a, lambda x: x > 0, "above 0")
        return self._clipped(np.log(np.clip(factor, math.exp(-_LARGEST_EPSILON), math.exp(_LARGEST_EPSILON))))

    def delta_at(self, epsilon: npt.ArrayLike) -> Floats:
        """Return the smallest delta at each epsilon, the larger one of both orders.

        It is rounded up by its numerical error, which grows like e^(epsilon/2) and leaves about nine digits after the
        point, fewer for few steps of little noise: for tiny deltas ask `auditor.theory.epsilon`.

        Args:
            epsilon: Any shape, 0 or more, in nats.
        """
        eps = array_of("epsilon", epsilon, lambda x: (x >= 0) & (x < math.inf), "0 or more and finite")
        eps = np.minimum(eps, _LARGEST_EPSILON)
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
        rate = array_of("fpr", fpr, lambda x: (x >= 0) & (x <= 1), "in [0, 1]")
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
        most = min(max(-math.log(fpr), 21.0), _LARGEST_EPSILON)
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


# --- The law of one training run ---

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


def composed(training: DPSGD, *, adjacency: Adjacency) -> PrivacyLoss:
    """Return the law of the privacy loss of a training run.

    Args:
        training: Noise, sampling rate and steps; vectors take time with the number of distinct steps.
        adjacency: Which training sets count as neighbours; batches of a fixed size are for replaced records only.

    Raises:
        Unresolved: Almost no noise, for which the law cannot be computed well, or no form (above).

    >>> from auditor.core.options import DPSGD
    >>> from auditor.core.options import Adjacency
    >>> law = composed(DPSGD(1.0, 0.01, 1000), adjacency=Adjacency.REPLACE_ONE)
    >>> round(law.total_variation(), 6)
    0.264352
    """
    return _law_of(training, relation_of(training, adjacency))


def only_a_bound(training: DPSGD) -> str:
    """Return why the law of this run bounds that of every two neighbours without being that of any; empty if it is one's."""
    sampled = [phase for phase in training.phases if phase.sampling_rate < 1]
    if training.fixed_size and training.steps > 1 and sampled:
        return "Batches of a fixed size are told by a pair of laws that dominates them, which no attacker may reach."
    if training.steps > 1 and any(phase.sampling_rate < _LEAST_RATE for phase in sampled):
        return f"Sampling rates below {_LEAST_RATE:g} count as {_LEAST_RATE:g}."
    return ""


@lru_cache(maxsize=8)
def _law_of(training: DPSGD, adjacency: Adjacency) -> PrivacyLoss:
    """The law, kept for the next question about the same run."""
    if training.fixed_size and adjacency is Adjacency.ADD_REMOVE:
        raise Unresolved("batches of a fixed size are accounted for replaced records only.")
    distance = StepPair.of(training, adjacency).distance
    gaussian = [phase for phase in training.phases if _is_gaussian(phase, training)]
    sampled = [phase for phase in training.phases if not _is_gaussian(phase, training)]
    shifts = (
        # With u = (2 x - 1) / (2 s^2), log(1 + p (e^u - 1)) is p u to within a share of about u, some 1e-6.
        math.sqrt(phase.steps)
        * distance
        * phase.sampling_rate
        / phase.noise_multiplier
        * (1.0 if phase.sampling_rate == 1 else 1 + 1e-5)
        for phase in gaussian
    )
    mu = min(math.hypot(*shifts), _LARGEST_MU)
    if not sampled:
        return _GaussianLaw(mu)
    least = min(phase.noise_multiplier for phase in sampled)
    if least < _LEAST_NOISE:
        raise Unresolved(
            f"the exact law needs a noise multiplier of {_LEAST_NOISE} or more where records are sampled, got {least:g}."
        )
    kind = {"replaced": adjacency is Adjacency.REPLACE_ONE, "fixed_size": training.fixed_size}
    if training.steps == 1:
        return _OneStepLaw(Step(sampled[0].noise_multiplier, sampled[0].sampling_rate, **kind))
    steps = tuple(
        (
            Step(min(phase.noise_multiplier, _MOST_NOISE), max(phase.sampling_rate, _LEAST_RATE), **kind),
            phase.steps,
        )
        for phase in sampled
    )
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


# --- The two laws in closed form: no sampling, and one step ---

# More noise counts as this much, which can only be worse.
_NOISE_OF_A_LAW = 1e100


@dataclass(frozen=True)
class _GaussianLaw(PrivacyLoss):
    """N(mu, 1) against N(0, 1): steps without sampling."""

    mu: float

    def total_variation(self) -> float:
        return math.erf(self.mu / math.sqrt(8))

    def _excess(self, epsilon: Floats) -> Floats:
        return _both_signs(epsilon, gaussian_deltas(self.mu, epsilons=np.abs(epsilon)))


@dataclass(frozen=True)
class _OneStepLaw(PrivacyLoss):
    """One sampled step: closed forms."""

    step: Step

    def total_variation(self) -> float:
        # The best test asks on which side of the middle the output lies.
        half = 1.0 if self.step.replaced else 0.5
        return self.step.rate * math.erf(half / (self.step.noise * math.sqrt(2)))

    def _excess(self, epsilon: Floats) -> Floats:
        if self.step.fixed_size:
            growth = np.expm1(np.minimum(np.abs(epsilon), _LARGEST_EPSILON))
            inner = np.logaddexp(0.0, _safe_log(growth) - math.log(self.step.rate))
            return _both_signs(epsilon, self.step.rate * gaussian_deltas(2 / self.step.noise, epsilons=inner))
        if self.step.replaced:
            return _both_signs(epsilon, self._replaced(np.abs(epsilon)))
        return self._added(epsilon)

    def _added(self, epsilon: Floats) -> Floats:
        p, s = self.step.rate, self._noise
        grown = np.expm1(np.minimum(epsilon, _LARGEST_EPSILON))
        above = grown + p  # e^eps - (1 - p)
        x = self._where(above)
        # In this order no digits are lost where e^eps is near 1.
        found = p * (ndtr((1 - x) / s) - ndtr(-x / s)) - grown * ndtr(-x / s)
        return np.where(above > 0, found, -grown)

    def _backward(self, epsilon: Floats) -> Floats:
        if self.step.replaced:
            return self._excess(epsilon)
        p, s = self.step.rate, self._noise
        # Outputs below x, where (1-p) + p e^{u(x)} = e^-eps; there are none once e^-eps <= 1 - p.
        above = np.expm1(-epsilon) + p
        x = self._where(above)
        found = p * (ndtr(x / s) - ndtr((x - 1) / s)) + np.expm1(-epsilon) * ndtr(x / s)
        return np.where(above > 0, np.exp(epsilon) * found, 0.0)

    def _replaced(self, epsilon: Floats) -> Floats:
        """At epsilon >= 0."""
        p, s = self.step.rate, self._noise
        eps = np.minimum(epsilon, _LARGEST_EPSILON)
        # (1-p) + p c y = e^eps ((1-p) + p c / y) with y = e^{x/s^2}, c = e^{-1/(2 s^2)}: x / s^2 is eps/2 + asinh(ratio).
        log_ratio = math.log1p(-p) - math.log(p) + 1 / (2 * s**2) + _safe_log(np.sinh(eps / 2))
        ratio = np.exp(np.minimum(log_ratio, _LARGEST_EPSILON))
        x = s**2 * (eps / 2 + np.arcsinh(ratio))
        drawn = ndtr((1 - x) / s) - ndtr((-1 - x) / s) - np.expm1(eps) * ndtr((-1 - x) / s)
        return np.asarray(p * drawn - (1 - p) * np.expm1(eps) * ndtr(-x / s))

    @property
    def _noise(self) -> float:
        return min(self.step.noise, _NOISE_OF_A_LAW)

    def _where(self, above: Floats) -> Floats:
        """The output at which p e^{u(x)} is this, minus infinity for 0 and less."""
        return np.asarray(
            self._noise**2 * (_safe_log(np.maximum(above, 0.0)) - math.log(self.step.rate)) + 0.5
        )


def _both_signs(epsilon: Floats, positive: Floats) -> Floats:
    """A symmetric law at any epsilon from its values at |epsilon|: sup P - e^-eps Q = 1 - e^-eps (1 - sup P - e^eps Q)."""
    negative = 1 - np.exp(-np.abs(epsilon)) * (1 - positive)
    return np.where(epsilon >= 0, positive, negative)


def _safe_log(x: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


# --- Fourier inversion of a composed privacy loss, on panels that halve until they are resolved ---

# Nodes, weights and 1 - psi.
_Piece = tuple[Floats, Floats, npt.NDArray[np.complex128]]
_NONE: _Piece = (np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.complex128))
_NODES = 33
# Of the coarse rule against the fine one: the fine one is then right to about the square of it.
_COARSE = 1e-5
_TAIL = 1e-11
_NARROWEST = 2.0**-10
# How far a last doubling may go beyond the budget.
_OVERDRAFT = 2.5
# Log of the mass that two laws share, below which no digit of anything is left to compute.
_LEAST = -42.0
# Of a sum of many terms, relative to the sum of their sizes.
_ROUNDING = 4e-16
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class _Inversion:
    """The transform on nodes, and what follows from it.

    Attributes:
        t: Shape (k,), nodes.
        weight: Shape (k,), of each node, over pi (t^2 + 1/4).
        psi: Shape (k,), the transform without its atom.
        total_variation: To within the error.
        error: Bound on what lies beyond the last node, with what the panels left unresolved.
        atom: Mass of the atom at loss 0.
    """

    t: Floats
    weight: Floats
    psi: npt.NDArray[np.complex128]
    total_variation: float
    error: float
    atom: float

    def excess(self, epsilon: Floats, *, backward: bool = False) -> Floats:
        """Return sup P(A) - e^eps Q(A) at each epsilon, or that with P and Q exchanged, whose transform is conjugate."""
        flat = np.atleast_1d(epsilon).ravel()
        found = []
        real, imaginary = self.weight * self.psi.real, self.weight * self.psi.imag * (-1 if backward else 1)
        for block in np.array_split(flat, max(1, -(-flat.size * self.t.size // _BLOCK))):
            angle = np.multiply.outer(block, self.t)
            found.append(
                np.einsum("ij,j->i", np.cos(angle), real) + np.einsum("ij,j->i", np.sin(angle), imaginary)
            )
        integral = np.concatenate(found)
        smooth = np.exp(flat / 2) * integral + self.atom * np.exp(np.minimum(flat, 0.0))
        return np.asarray((1 - smooth).reshape(np.shape(epsilon)))


def _invert(law: "_FourierLaw", frequency: float) -> _Inversion:
    """Return the inversion of a law's transform, resolved for epsilons up to ``frequency``."""
    atom, budget = law.atom, _BUDGET * min(len(law.steps), _DEAREST)
    least = law.log_shared
    if least < _LEAST:
        # The two laws hardly share anything: the shared mass bounds everything that is left out.
        none = np.zeros(1)
        return _Inversion(none, none, none.astype(complex), 1.0, math.exp(least), 0.0)
    scale = min(1.0, law.deviation)
    swings = frequency + abs(law.mean) + 6 * law.deviation
    pieces: list[_Piece] = []
    low, high, spent, rest, rough = 0.0, 0.5, 0.0, 1.0, 0.0
    while rest > _TAIL * scale:
        parts = max(1, math.ceil((high - low) * swings / 12))
        cost = _NODES * sum(step.work(high) for step, _ in law.steps)
        if spent + parts * cost > budget and (pieces or parts * cost > _OVERDRAFT * budget):
            break
        edges = np.linspace(low, high, parts + 1).tolist()
        # The lowest last, to be taken first.
        open_panels = list(zip(edges[-2::-1], edges[:0:-1], strict=True))
        ends = []
        while open_panels:
            panel = open_panels.pop()
            piece, gap = _piece(law.log_psi, panel, frequency)
            spent += cost
            narrow = panel[1] - panel[0] < (high - low) / parts * _NARROWEST
            if gap > _COARSE * scale and not narrow and spent < _OVERDRAFT * budget:
                middle = sum(panel) / 2
                open_panels += [(middle, panel[1]), (panel[0], middle)]
                continue
            rough += gap if gap > _COARSE * scale else 0.0
            pieces.append(piece)
            ends.append(float(np.max(np.abs((1 - atom) - piece[2]))))
        rest = max(ends) / (math.pi * high)
        low, high = high, 2 * high
    t, weight, unlike = (np.concatenate(column) for column in zip(*pieces or [_NONE], strict=True))
    tv = float(np.einsum("i,i", weight, unlike.real))
    psi = np.asarray((1 - atom) - unlike, dtype=np.complex128)
    # Beyond the last node psi is the atom, to within the rest.
    tv += (1 - atom) * (1 - 2 / math.pi * math.atan(2 * low))
    rounding = _ROUNDING * (atom + float(np.einsum("i,i", weight, np.abs(psi))))
    return _Inversion(t, weight, psi, min(max(tv, 0.0), 1.0), rest + rough + rounding, atom)


def _piece(
    log_psi: Callable[[Floats], npt.NDArray[np.complex128]], panel: tuple[float, float], frequency: float
) -> tuple[_Piece, float]:
    """Nodes, weights and 1 - psi on one panel, and how far two rules are apart there."""
    x, fine, coarse = _rules()
    half = (panel[1] - panel[0]) / 2
    t = panel[0] + half * (1 + x)
    kernel = half / (math.pi * (t**2 + 0.25))
    unlike = -np.expm1(log_psi(t))
    values = np.stack([unlike, unlike * np.exp(-1j * frequency * t), unlike * np.exp(1j * frequency * t)])
    two = [np.einsum("ij,j->i", values[:, ::k], rule * kernel[::k]) for k, rule in ((2, coarse), (1, fine))]
    return (t, fine * kernel, unlike), float(np.max(np.abs(two[0] - two[1])))


@cache
def _rules() -> tuple[Floats, Floats, Floats]:
    """Clenshaw-Curtis nodes in [-1, 1], ascending, their weights, and those of every other node."""
    return (
        -np.cos(np.pi * np.arange(_NODES) / (_NODES - 1)),
        _weights(_NODES - 1),
        _weights((_NODES - 1) // 2),
    )


def _weights(n: int) -> Floats:
    """Clenshaw-Curtis weights for n + 1 nodes, n even (Waldvogel 2006)."""
    angle = np.pi * np.arange(n + 1) / n
    k = np.arange(1, n // 2 + 1)
    factor = np.where(k == n // 2, 1.0, 2.0) / (4.0 * k**2 - 1)
    weight = (1 - np.cos(2 * np.multiply.outer(angle, k)) @ factor) * 2 / n
    weight[0] /= 2
    weight[-1] /= 2
    return np.asarray(weight)


# --- The law of many sampled steps ---

# Log of 1e-9 over the rounding of a double.
_DIGITS = 14.5
_DEVIATIONS = 100.0
# Numbers evaluated for one kind of step, a fraction of a second's work, and for how many kinds that is granted.
_BUDGET = 4e7
_DEAREST = 20
_OFTEN_ENOUGH = 48.0
_FALLING = 257


@dataclass(frozen=True)
class _FourierLaw(PrivacyLoss):
    """Several steps, some of them sampled: by Fourier inversion."""

    steps: tuple[tuple[Step, int], ...]
    mu: float
    _found: dict[float, _Inversion] = field(default_factory=dict, compare=False, repr=False)

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
        least = math.floor(math.log2(self.deviation))
        with np.errstate(divide="ignore"):
            powers = np.maximum(np.ceil(np.log2(np.abs(epsilon))), least)
        return np.where(epsilon == 0, 0.0, 2.0**powers)

    def _inversion(self, frequency: float) -> _Inversion:
        """The inversion for epsilons up to this one, kept for the next call."""
        if frequency not in self._found:
            self._found[frequency] = _invert(self, frequency)
        return self._found[frequency]

    @cached_property
    def _furthest(self) -> float:
        """The largest epsilon at which rounding leaves nine digits of delta, and that takes about a second at most."""
        quick = max(_DEVIATIONS * self.deviation, min(_OFTEN_ENOUGH, 10 * _DEVIATIONS * self.deviation))
        return float(min(2 * (_DIGITS - self.log_shared), quick, _LARGEST_EPSILON))

    @cached_property
    def log_shared(self) -> float:
        """Log of the mass that the two laws share."""
        return float(self.log_psi(np.zeros(1))[0].real)

    @cached_property
    def mean(self) -> float:
        """The mean of the loss."""
        return sum(count * step.moments[0] for step, count in self.steps)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of the loss."""
        return math.sqrt(sum(count * step.moments[1] for step, count in self.steps) + self.mu**2)

    @cached_property
    def atom(self) -> float:
        """The mass at loss 0."""
        return 0.0 if self.mu else math.prod(step.atom**count for step, count in self.steps)

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
