"""Mechanisms other than DP-SGD by coins: added noise, finite laws, batches drawn with replacement, and shuffled batches.

Each is a frozen description of a mechanism, and knows its hockey-stick divergences sup P(A) - e^eps Q(A) in closed form,
or a bound on them that a pair of laws has. `MechanismLoss.of` composes any of them: such pairs compose however the queries
are chosen (Zhu, Dong and Wang 2022, Theorem 10).

Added noise. Let f be a log-concave density, f = e^-V with V convex, P the law of f(x - u) and Q that of f(x), u >= 0.

* The best event is a half-line: the loss V(x) - V(x - u) does not fall with x, since V is convex, so by Neyman and Pearson
  delta(eps) = P(x > c) - e^eps Q(x > c) where the loss passes eps at c.
* A smaller u is more private: the best test of a level alpha is x > c with Q(x > c) = alpha, whose power P(x > c) =
  Q(x > c - u) grows with u. This is the monotonicity under which Mahloujifar et al. 2022 extend their Theorem 6 to other
  noise, and all of it that one number needs.
* Several numbers at once: Gaussian noise looks along the shift only, so u is Euclidean. Of independent Laplace noise on
  each, u is the sum of the absolute shifts [own]: move the shift from 0 to u at unit speed along the coordinates. The score
  of such noise is +1 or -1, each with probability 1/2, so the power y of any fixed event changes by at most min(y, 1 - y):
  y takes all of the side of +1 first, then of -1. One number whose event is a half-line has equality, from the same
  start alpha, so no event of the many does better.
* Both orders of a symmetric f are alike: mirror x to u - x.
* Poisson sampling at rate p, a record more or less: `auditor.theory.gaussian.sampled_deltas`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
from scipy.fft import fft, ifft, next_fast_len
from scipy.signal import fftconvolve
from scipy.special import erfinv, gammaincc, logsumexp

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.options import DPSGD, Adjacency, ShuffledBatches
from auditor.core.values import Claim, Floats
from auditor.theory import gaussian
from auditor.theory.privacy_loss import PrivacyLoss

# --- Mechanisms that were run ---

_LARGEST_EPSILON = 700.0
_LARGEST_SHIFT = 1e150
# The exponent where none is given, and the largest one that leaves the powers of small numbers doubles.
_PLAIN, _STEEPEST = 2.0, 16
# Halvings until neighbouring doubles are reached.
_HALVINGS = 60
# Relative, of a sum of probabilities.
_ROUNDED_SUM = 1e-14
# Standardised noise further out has a density of e^-745, which is no double.
_FURTHEST = 745.0
# Of the incomplete gamma function of a power, relative to its value: 4e-12 was seen.
_GAMMA_ROUNDING = 1e-11
# Of sums of probabilities.
_SLACK = 1e-9
# A record that is drawn more often than this probably may be drawn any number of times.
_RARE = 1e-18
_WHOLE = partial(validate.at_least, least=1)
_SHARE = partial(validate.fraction, one=True)


def _check(mechanism: Any, **checks: Callable[[str, Any], Any]) -> None:
    for name, check in checks.items():
        object.__setattr__(mechanism, name, check(name, getattr(mechanism, name)))


def _both_signs(epsilon: Floats, positive: Floats) -> Floats:
    """Return a symmetric divergence at any epsilon from its values at |epsilon|: H(1/a) = 1 - (1 - H(a))/a."""
    return np.where(epsilon >= 0, positive, 1 - np.exp(-np.abs(epsilon)) * (1 - positive))


def _generalised_normal(u: float, epsilon: Floats, exponent: float) -> Floats:
    """Return the divergence of generalised normal noise at epsilon >= 0, where the edge c lies at u/2 or above; rounded up."""
    low, high = np.full_like(epsilon, u / 2), np.full_like(epsilon, u + _FURTHEST ** (1 / exponent))
    with np.errstate(over="ignore"):
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            over = middle**exponent - np.abs(middle - u) ** exponent > epsilon
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        near, far = (gammaincc(1 / exponent, np.abs(x) ** exponent) / 2 for x in (high - u, high))
    near = np.where(high < u, 1 - near, near)
    return np.asarray(near * (1 + _GAMMA_ROUNDING) - np.exp(epsilon) * far)


# delta of each noise at a shift of u scales and epsilon >= 0. Laplace: c = (u + eps)/2. Logistic [own]: with y = e^-c and
# r = e^{(eps-u)/2}, 1 + y = r (1 + e^u y). Neither has a loss above u.
_DELTAS: dict[str, Callable[[float, Floats, float], Floats]] = {
    "laplace": lambda u, epsilon, _: -np.expm1(np.minimum(epsilon - u, 0.0) / 2),
    "logistic": lambda u, epsilon, _: np.expm1(np.minimum(epsilon - u, 0.0) / 2) ** 2 / -np.expm1(-u),
    "gaussian": lambda u, epsilon, _: gaussian.gaussian_deltas(u, epsilons=epsilon),
    "generalised-normal": _generalised_normal,
}


@dataclass(frozen=True)
class NoisyQuery:
    """Queries of a data set with noise added, ``times`` of them, each possibly chosen by the answers before it.

    Attributes:
        noise: ``"laplace"``, ``"logistic"``, ``"gaussian"`` or ``"generalised-normal"``, of density
            e^-(|x|/scale)^exponent up to a constant: those whose density is log-concave by a known proof.
        scale: Scale of the noise, above 0; of Gaussian noise its standard deviation.
        sensitivity: Largest change of the answer by one record, above 0. Of several numbers with Laplace noise on each, the
            sum of absolute changes; with Gaussian noise, the Euclidean norm. Other noise is for one number a query.
        exponent: Exponent of generalised normal noise alone, from 1 (Laplace) to 16; 2 (default) is Gaussian noise of scale / sqrt 2.
        sampling_rate: Each query is run on a Poisson sample of the records, in (0, 1]. Below 1 neighbours are one record
            more or less, and the first law is that with the record; at 1 they are whatever the sensitivity is about.
        times: Number of queries, 1 or more.

    Raises:
        InputError: Another noise, whose best attack may be another event, or a number out of range.

    Source: Dwork et al. 2006 for Laplace noise; the module states the proven bounds for all of them.

    >>> laplace = MechanismLoss.of(NoisyQuery("laplace", scale=2.0))
    >>> laplace.epsilon_at(0.0), round(laplace.total_variation(), 6)  # 1 / 2 and 1 - e^(-1/4)
    (0.5, 0.221199)
    """

    noise: str
    scale: float
    sensitivity: float = 1.0
    exponent: float = _PLAIN
    sampling_rate: float = 1.0
    times: int = 1

    def __post_init__(self) -> None:
        validate.one_of("noise (its density must be log-concave)", self.noise, _DELTAS)
        _check(
            self,
            scale=validate.positive,
            sensitivity=validate.positive,
            exponent=validate.positive,
            sampling_rate=_SHARE,
            times=_WHOLE,
        )
        if not 1 <= self.exponent <= _STEEPEST or (
            self.exponent != _PLAIN and self.noise != "generalised-normal"
        ):
            raise InputError(
                f"exponent must be from 1 (below, the density is not log-concave and the best attack no threshold) to {_STEEPEST},"
                f" and left out for other noise than generalised-normal, got {self.exponent:g} for {self.noise}."
            )

    @property
    def largest(self) -> float:
        """The largest loss, possibly infinity."""
        bounded = self.noise in ("laplace", "logistic")
        return float(gaussian.log_mixture(self._shift, self.sampling_rate)) if bounded else math.inf

    def deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Return the divergence at epsilons of any sign, of P over Q and of Q over P."""
        if self.sampling_rate == 1:
            both = self._unsampled(epsilon)
            return both, both
        return gaussian.sampled_deltas(self._unsampled, epsilon, rate=self.sampling_rate)

    def _unsampled(self, epsilon: Floats) -> Floats:
        size = np.minimum(np.abs(epsilon), _LARGEST_EPSILON)
        return _both_signs(epsilon, _DELTAS[self.noise](self._shift, size, self.exponent))

    @property
    def _shift(self) -> float:
        return min(self.sensitivity / self.scale, _LARGEST_SHIFT)


@dataclass(frozen=True)
class FinitePair:
    """A mechanism of finitely many answers, such as randomised response: the probability of each in two worlds.

    Attributes:
        first: Probabilities that sum to 1, with the record (or with the first of two).
        second: As many, without it (or with the second).
        times: Number of uses, 1 or more.

    Raises:
        InputError: Probabilities that are negative, do not sum to 1, or are of different numbers, or no time.

    >>> truth_or_coin = MechanismLoss.of(FinitePair((0.75, 0.25), (0.25, 0.75)))
    >>> truth_or_coin.total_variation(), round(truth_or_coin.epsilon_at(0.0), 6)  # log 3
    (0.5, 1.098612)
    """

    first: Any
    second: Any
    times: int = 1

    def __post_init__(self) -> None:
        _check(self, first=_law, second=_law, times=_WHOLE)
        validate.same_length(("first", "second"), (len(self.first), len(self.second)))

    @property
    def largest(self) -> float:
        """The largest loss, infinity where an answer is for one world only."""
        pairs = [pair for pair in zip(self.first, self.second, strict=True) if max(pair) > 0]
        return max(abs(math.log(p) - math.log(q)) if p * q > 0 else math.inf for p, q in pairs)

    def deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Return the divergence at epsilons of any sign, of the first over the second and the other way."""
        return _finite(self.first, self.second, epsilon), _finite(self.second, self.first, epsilon)


def _law(name: str, shares: Any) -> tuple[float, ...]:
    law = validate.numbers(name, shares, lambda share: share >= 0, "be probabilities, 0 or more").ravel()
    if not abs(law.sum() - 1) <= _SLACK:
        raise InputError(f"{name} must sum to 1, got {law.sum():.10g}.")
    return tuple(law.tolist())


def _finite(first: tuple[float, ...], second: tuple[float, ...], epsilon: Floats) -> Floats:
    """Return the sum of max(p - e^eps q, 0): over the answers of the largest losses."""
    p, q = np.array(first), np.array(second)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(p > 0, np.log(p) - np.log(q), -math.inf)
    order = np.argsort(-loss)
    upper, lower = (np.concatenate([[0.0], np.cumsum(law[order])]) for law in (p, q))
    count = np.searchsorted(-loss[order], -epsilon, side="left")
    return np.asarray(np.maximum(upper[count] - np.exp(epsilon) * lower[count], 0.0))


@dataclass(frozen=True)
class DrawnWithReplacement:
    """DP-SGD whose batches are drawn with replacement: a record is in a batch Bin(batch_size, 1/records) times.

    Each step's divergences are bounded, for a replaced record and both orders alike, by
    (Balle, Barthe and Gaboardi 2018, sampling with replacement)

        H(a) = sum over k >= 1 of P(K = k) H_k(1 + (a - 1)/w),    w = P(K >= 1),    a >= 1,

    H_k that of N(2 k, s^2) over N(0, s^2). For, given the draws without the record, the two worlds share the law m of K = 0:
    (1 - w) m + w m1 and (1 - w) m + w m1', whose H(a) is w times that of m1 over (1 - b) m + b m1' for one b (their
    Theorem 2). The same K joins m1 with either, k records of m1 exchanged, so 2 k clipping norms away; and divergences are
    jointly convex. Below a = 1, H(a) = 1 - a + a H(1/a): convex at 1 too, since w <= 1 [own], so that a pair of laws has
    it and it composes (Zhu, Dong and Wang 2022).

    Attributes:
        noise_multiplier: Noise standard deviation over the clipping norm of the sum of the batch; of noise on its mean, times
            the batch size. Above 0.
        batch_size: Draws for one batch, 1 or more.
        records: Training records, 1 or more.
        steps: Number of steps, 1 or more.

    Raises:
        InputError: A number out of range.

    >>> one_draw = MechanismLoss.of(DrawnWithReplacement(1.0, batch_size=1, records=100))
    >>> round(one_draw.total_variation(), 6)  # erf(1 / sqrt 2) / 100
    0.006827
    """

    noise_multiplier: float
    batch_size: int
    records: int
    steps: int = 1

    def __post_init__(self) -> None:
        _check(self, noise_multiplier=validate.positive, batch_size=_WHOLE, records=_WHOLE, steps=_WHOLE)

    largest = math.inf

    @property
    def times(self) -> int:
        """Number of steps."""
        return self.steps

    def deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Return the bound at epsilons of any sign, twice."""
        from scipy.stats import binom

        drawn = binom(self.batch_size, 1 / self.records)
        counts = np.arange(1, min(self.batch_size, math.ceil(drawn.mean() + 10 * drawn.std() + 40)) + 1)
        shares = drawn.pmf(counts)
        stretched = np.log1p(np.expm1(np.minimum(np.abs(epsilon), _LARGEST_EPSILON)) / drawn.sf(0))
        result = np.full_like(stretched, drawn.sf(counts[-1]) + shares[shares <= _RARE].sum())
        for count, share in zip(counts[shares > _RARE], shares[shares > _RARE], strict=True):
            shift = min(2 * count / self.noise_multiplier, _LARGEST_SHIFT)
            result += share * gaussian.gaussian_deltas(shift, epsilons=stretched)
        both = _both_signs(epsilon, result)
        return both, both


Mechanism = NoisyQuery | FinitePair | DrawnWithReplacement

# --- The law of the composed mechanisms ---

# The finest grid that a second or so can compose: points of one step and of all, so many deviations wide.
_STEP_POINTS, _COMPOSED_POINTS, _WIDTH = 50_000, 400_000, 16
# On a finer one the masses, second differences of deltas, drown in rounding.
_FINEST = 5e-9
_TAIL = 1e-15
# Rounding of Fourier transforms, per step and per kind of step.
_ROUNDING_PER_STEP, _ROUNDING_PER_KIND = 5e-17, 1e-15
_MANY = 100
# Orders of Chernoff's bounds on each side, in units of one over the number of masses.
_CHERNOFF = 20
# Log of the probability of finite losses from which on they are not worth composing.
_NOTHING = -25.0
# Chances that the splitting of losses goes further than `MechanismLoss.between` allows, and the mass that was cut off.
_UNLIKELY = (1e-3, 1e-5, 1e-7, 1e-9, 1e-12)
_CUT_OFF = 1e-13


@dataclass(frozen=True, eq=False)
class MechanismLoss(PrivacyLoss):
    """The joint law of the privacy loss of mechanisms, each chosen adaptively; `MechanismLoss.of` makes it.

    One use of one mechanism is exact. A composition is that of privacy loss distributions rounded up by connecting the
    dots, so it is never below the truth (Doroshenko et al. 2022); the excess is second order in their grid, and
    `between` bounds it. Rounding is taken upwards too: a delta of about 1e-16 for each use drowns in it.

    Attributes:
        forward: Divergence at epsilons of any sign, of the law with the record over that without.
        backward: The other way.
        furthest: From this epsilon on every divergence is 0; possibly infinity.
        spacing: Spacing of the grid, in nats; 0 where nothing was rounded.
        times: Number of uses composed.
        attained: Whether the divergences are those of two laws, not only a bound on them.
    """

    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], Floats]
    furthest: float
    spacing: float
    times: int
    attained: bool

    @classmethod
    def of(cls, *mechanisms: Mechanism) -> "MechanismLoss":
        """Return the law of these mechanisms, all of them on the same records.

        Raises:
            InputError: There is none, or one is of another type.

        >>> fair = NoisyQuery("laplace", scale=10.0, times=30)
        >>> round(MechanismLoss.of(fair, FinitePair((0.6, 0.4), (0.4, 0.6))).epsilon_at(1e-5), 2)
        2.4
        """
        if not mechanisms:
            raise InputError("mechanisms must be one or more, got none.")
        for mechanism in mechanisms:
            validate.instance("mechanism", mechanism, get_args(Mechanism))
        times = sum(mechanism.times for mechanism in mechanisms)
        furthest = sum(mechanism.times * mechanism.largest for mechanism in mechanisms)
        attained = not any(isinstance(mechanism, DrawnWithReplacement) for mechanism in mechanisms)
        if times == 1:
            deltas = mechanisms[0].deltas
            return cls(lambda e: deltas(e)[0], lambda e: deltas(e)[1], furthest, 0.0, 1, attained)
        reaches = [(_reach(mechanism, 0), _reach(mechanism, 1)) for mechanism in mechanisms]
        spacing = _spacing(mechanisms, max(map(max, reaches)))
        forward, backward = (_composed(mechanisms, reaches, order, spacing) for order in (0, 1))
        return cls(forward, backward, furthest, spacing, times, attained)

    def between(
        self,
        epsilon: Floats,
        *,
        backward: bool = False,
        least: float = 0.0,  # noqa: ARG002 - all are as close
    ) -> tuple[Floats, Floats]:
        """Return bounds on the divergence of one order at epsilons of 0 or more; see `PrivacyLoss.between`.

        Connecting the dots splits each loss L between its two neighbours on the grid, at random with E e^-U = 1 for what
        it adds, U, of a range g. So E U <= g^2/8, and the sum of T of them exceeds t = T g^2/8 + g sqrt(T log(1/x)/2) with
        probability at most x (Hoeffding 1963, Lemma 1 and Theorem 2). Where it does not, the rounded losses less t are
        no more than the true ones: the true delta at epsilon is at least the rounded one at epsilon + t, less x [own]. The
        lower bound is 0 where only a bound on the divergences is known.
        """
        order, eps = self.backward if backward else self.forward, np.asarray(epsilon, dtype=np.float64)
        upper = np.clip(np.where(eps >= self.furthest, 0.0, order(eps)), 0.0, 1.0)
        return np.minimum(self._at_least(order, eps), upper), upper

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon at a delta, rounded up: in nats, beyond 700 the largest loss, possibly infinity.

        A delta that is the probability of an infinite loss to 14 digits counts as equal to it.

        Args:
            delta: In [0, 1).
        """
        target = validate.fraction("delta", delta, zero=True)
        least = float(self.delta_at(min(self.furthest, _LARGEST_EPSILON)))
        if least > target * (1 + _ROUNDED_SUM):
            return self.furthest
        target = max(target, least)
        return min(self.furthest, _turn(lambda epsilon: float(self.delta_at(epsilon)) > target)[1])

    def _at_least(self, order: Callable[[Floats], Floats], epsilon: Floats) -> Floats:
        if not self.attained:
            return np.zeros_like(epsilon)
        if not self.spacing:
            return order(epsilon)
        moved = [
            self.times * self.spacing**2 / 8 + self.spacing * math.sqrt(self.times * math.log(1 / chance) / 2)
            for chance in _UNLIKELY
        ]
        # Masses that rounding had put below 0 were taken upwards, which added what the whole is above 1.
        added = max(float(order(np.array(-_LARGEST_EPSILON))) - 1, 0.0)
        lower = order(np.add.outer(epsilon, moved)) - np.array(_UNLIKELY) - _CUT_OFF - added
        return np.asarray(np.maximum(lower.max(axis=-1), 0.0))


def _turn(above: Callable[[float], bool]) -> tuple[float, float]:
    """Return the end of a property of small epsilons, by halving: it holds at the lower one unless that is 0."""
    low, high = 0.0, _LARGEST_EPSILON
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return low, high if above(0.0) else 0.0


def _reach(mechanism: Mechanism, order: int) -> float:
    """Return the epsilon from which on a divergence in one order falls no further."""
    least = float(mechanism.deltas(np.array([_LARGEST_EPSILON]))[order][0]) + _RARE
    return _turn(lambda epsilon: float(mechanism.deltas(np.array([epsilon]))[order][0]) > least)[1]


def _spacing(mechanisms: tuple[Mechanism, ...], reach: float) -> float:
    """Return the spacing of the grid: the deviation of each step's loss is about the mu of its advantage."""
    apart = [min(float(mechanism.deltas(np.zeros(1))[0][0]), 0.99) for mechanism in mechanisms]
    times = [mechanism.times for mechanism in mechanisms]
    squares = (many * 8 * float(erfinv(tv)) ** 2 for many, tv in zip(times, apart, strict=True))
    finest = _FINEST * math.sqrt(sum(times) * reach)
    return max(reach / _STEP_POINTS, _WIDTH * math.sqrt(sum(squares)) / _COMPOSED_POINTS, finest, _RARE)


def _composed(
    mechanisms: tuple[Mechanism, ...], reaches: list[tuple[float, float]], order: int, spacing: float
) -> Callable[[Floats], Floats]:
    """Return the divergence of a composition in one order, rounded up: a sum over losses on a grid, and infinite ones."""
    lowest, mass, finite, rounding = 0, np.ones(1), 0.0, 0.0
    for mechanism, reach in zip(mechanisms, reaches, strict=True):
        up, down = (math.ceil(reach[side] / spacing) for side in (order, 1 - order))
        deltas = mechanism.deltas(spacing * np.arange(-down, up + 1, dtype=np.float64))[order]
        # Deltas fall with epsilon; rounding that says otherwise is taken upwards.
        falling = np.clip(np.maximum.accumulate(deltas[::-1])[::-1], 0.0, 1 - _ROUNDING_PER_KIND)
        finite += mechanism.times * math.log1p(-falling[-1])
        if finite < _NOTHING:
            return np.ones_like
        start, part = _repeated(-down, _connected(falling, spacing), mechanism.times)
        lowest, mass = lowest + start, fftconvolve(mass, part)
        rounding += _ROUNDING_PER_STEP * mechanism.times + _ROUNDING_PER_KIND + 3 * _TAIL
    losses = spacing * (lowest + np.arange(mass.size))
    # From the largest loss down: the mass of P and Q beyond each.
    laws = mass, mass * np.exp(np.minimum(-losses, _LARGEST_EPSILON))
    upper, lower = (np.append(np.cumsum(law[::-1])[::-1], 0.0) for law in laws)

    def divergence(epsilon: Floats) -> Floats:
        place = np.searchsorted(losses, epsilon, side="right")
        return np.asarray(rounding - math.expm1(finite) + upper[place] - np.exp(epsilon) * lower[place])

    return divergence


def _connected(deltas: Floats, spacing: float) -> Floats:
    """Return the masses of the first law on a grid of losses, connecting the dots (Doroshenko et al. 2022, Algorithm 1)."""
    if deltas.size == 1:
        return np.array([1 - deltas[0]])
    rise, grown = np.diff(deltas), math.expm1(spacing)
    inner = (rise[1:] - math.exp(spacing) * rise[:-1]) / grown
    ends = 1 - deltas[0] + rise[0] / grown, rise[-1] / math.expm1(-spacing)
    return np.asarray(np.maximum(np.concatenate([[ends[0]], inner, [ends[1]]]), 0.0))


def _repeated(start: int, mass: Floats, times: int) -> tuple[int, Floats]:
    """Compose equal steps, many of them in two stages, so that Chernoff's bounds on the width are near."""
    inner = math.isqrt(times) if times >= _MANY else times
    outer, rest = divmod(times, inner)
    first, composed = _power(*_power(start, mass, inner, _TAIL / outer), outer, _TAIL)
    if not rest:
        return first, composed
    second, more = _power(start, mass, rest, _TAIL)
    return first + second, np.asarray(fftconvolve(composed, more))


def _power(start: int, mass: Floats, times: int, tail: float) -> tuple[int, Floats]:
    """Return the law of a sum of equal losses: where it starts, and its masses, without tails of at most this mass.

    By Fourier transform, as long as Chernoff's bounds P(sum beyond x) <= E[e^(t loss)]^times / e^(t x) leave room for.
    """
    orders = np.concatenate([np.arange(-_CHERNOFF, 0), np.arange(1, _CHERNOFF + 1)]) / mass.size
    losses = np.arange(mass.size)
    log_moments = np.array([logsumexp(order * losses, b=mass) for order in orders])
    bounds = (times * log_moments + math.log(2 / tail)) / orders
    low = max(0, math.floor(bounds[orders < 0].max()))
    high = min((mass.size - 1) * times, math.ceil(bounds[orders > 0].min()))
    length = next_fast_len(max(high - low + 1, mass.size))
    wrapped = np.real(ifft(fft(mass, length) ** times))
    return start * times + low, np.roll(wrapped, -low)[: high - low + 1]


# --- Proven bounds for shuffled batches ---

# The order of the records is handed to the attacker: a mixture over orders of pairs of laws has no larger divergence than
# the worst of the pairs (joint convexity). In a given order a record is in one batch of each pass. So the run is a Gaussian
# mechanism, as often as passes were begun (Chua et al. 2024, How Private are DP-SGD Implementations: shuffled batches are
# no less private than fixed ones). Nothing better is proven for them: amplification by random allocation (Feldman and
# Shenfeld 2025) and balls and bins (Chua et al. 2025) let each record choose its batch by itself, and batches of a fixed
# size do not.

# Of a number of batches: rounding, not records.
_NEARLY = 1e-12
_SHUFFLED_METHOD = "Gaussian composition over passes"


def shuffled_mu(training: DPSGD, *, adjacency: Adjacency = Adjacency.REPLACE_ONE) -> Claim:
    """Return the mu that shuffled batches are proven to have: a Gaussian mechanism, as often as passes were begun.

    It is d sqrt(E)/s for E passes, d = 2 for replaced records and 1 for a record that counts as nothing; with noise by
    step, that of the E steps of least noise. It holds for batches in any order that has each record once in a pass, also
    in a fixed order known to the attacker. A pass takes 1/p steps, rounded down: a last batch that is smaller, or left out.

    Args:
        training: A run with `ShuffledBatches`.
        adjacency: Relation between neighbouring training sets. A record that is added or removed is one whose gradient counts
            as 0 in the other world, with the batches of all others as they are.

    Returns:
        ``mu``, proven. `auditor.StatedClaim.from_mu` makes the claim of it that audits judge, and that `epsilon` and
        `claimed_curve` describe further.

    Raises:
        InputError: A run with other batches, or an unknown adjacency.

    Source: Chua et al. 2024 for one order against many; Dong, Roth and Su 2022, Corollary 3.3.

    >>> passes = DPSGD(noise_multiplier=2.0, sampling_rate=0.01, steps=400, sampling=ShuffledBatches())
    >>> shuffled_mu(passes).value  # 2 sqrt(4) / 2
    2.0
    >>> from auditor.core.options import StatedClaim
    >>> from auditor.theory import epsilon
    >>> claim = StatedClaim.from_mu(shuffled_mu(passes).value, adjacency="replace-one")
    >>> round(epsilon(claim, delta=1e-5, adjacency="replace-one").value, 6)  # a Gaussian mechanism of mu 2
    9.997256
    """
    relation = gaussian.relation_of(training, adjacency)
    if not isinstance(training.sampling, ShuffledBatches):
        raise InputError(
            f"training must have shuffled batches, got {type(training.sampling).__name__}; its promise is by auditor.theory.epsilon."
        )
    left = -(-training.steps // _steps_of_a_pass(training))
    squares = 0.0
    for phase in sorted(training.phases, key=lambda phase: phase.noise_multiplier):
        taken = min(left, phase.steps)
        squares += taken / phase.noise_multiplier**2
        left -= taken
    mu = gaussian.StepPair.of(training, relation).distance * math.sqrt(squares)
    note = "Proven for every order of the records, the attacker knowing it: shuffling counts for nothing."
    if relation is Adjacency.ADD_REMOVE:
        note += " The record that is added or removed counts as nothing in the other world; the batches of all others stay."
    return Claim("mu", mu, None, relation, _SHUFFLED_METHOD, proven=True, note=note)


def _steps_of_a_pass(training: DPSGD) -> int:
    return math.floor((1 + _NEARLY) / max(phase.sampling_rate for phase in training.phases))
