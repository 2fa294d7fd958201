"""The Gaussian mechanism and Gaussian differential privacy: exact for steps without sampling, and the limit of sampled ones."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import erf, erfcx, erfinv, log_ndtr, ndtr

from auditor.core import DPSGD, Adjacency, Claim, Floats, InputError, ShuffledBatches, validate
from auditor.curves.tradeoff import TradeoffCurve

_P = ParamSpec("_P")
_Claim = TypeVar("_Claim", bound=Claim | tuple[Claim, ...])

# --- The pair of laws of one step ---


class StepPair(Enum):
    """The pair of output distributions of one DP-SGD step that is hardest on a record; see `auditor.theory.steps`."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"
    FIXED_SIZE = "replace-one, fixed size"

    @classmethod
    def of(cls, training: DPSGD, adjacency: Adjacency) -> "StepPair":
        """Return the pair of a training description; batches of a fixed size know replaced records only."""
        of_one_record(training)
        if training.fixed_size:
            return cls.FIXED_SIZE
        return cls.REPLACE_ONE if adjacency is Adjacency.REPLACE_ONE else cls.ADD_REMOVE

    @property
    def distance(self) -> float:
        """Distance of the two worlds if the record is drawn, in clipping norms."""
        return 1.0 if self is StepPair.ADD_REMOVE else 2.0


def of_one_record(training: DPSGD) -> None:
    """Refuse a run for people with several records, where a number is one about single records."""
    if training.records_per_person is not None:
        raise InputError(
            f"records_per_person must be left out for a number about single records, got {training.records_per_person:,};"
            " for people take auditor.theory.overview, epsilon or claimed_curve."
        )


def relation_of(training: DPSGD, adjacency: Adjacency) -> Adjacency:
    """Return the adjacency, also from its name; refuse a value that is not a run."""
    validate.instance("training", training, (DPSGD,))
    return Adjacency.named(adjacency)


SHUFFLED = (
    " Batches were shuffled and accounted as if Poisson-sampled: this is the claim, and it is not proven for such"
    " batches: auditor.theory.shuffled_mu gives the proven bound for them."
)


def as_accounted(find: Callable[_P, _Claim]) -> Callable[_P, _Claim]:
    """Mark the claims of a function as not proven if the run's batches were accounted as something else."""

    def unproven(claim: Claim) -> Claim:
        return replace(claim, proven=False, note=f"{claim.note.removesuffix(SHUFFLED)}{SHUFFLED}".strip())

    @wraps(find)
    def call(*args: _P.args, **named: _P.kwargs) -> _Claim:
        claims: Any = find(*args, **named)
        if not any(isinstance(value, DPSGD) and value.shuffled for value in (*args, *named.values())):
            return cast("_Claim", claims)
        return cast("_Claim", tuple(map(unproven, claims)) if isinstance(claims, tuple) else unproven(claims))

    return call


def columns(training: DPSGD) -> tuple[Floats, Floats, Floats]:
    """Return the noise multipliers, sampling rates and numbers of steps of a run's kinds of step."""
    of_one_record(training)
    rows = [(phase.noise_multiplier, phase.sampling_rate, phase.steps) for phase in training.phases]
    noise, rate, steps = np.array(rows, dtype=np.float64).T
    return noise, rate, steps


def log_mixture(z: npt.ArrayLike, rate: npt.ArrayLike) -> Floats:
    """Return log(1 - p + p e^z) for arrays that go together, to the last digits, infinite z too, without overflow."""
    z, p = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(rate, dtype=np.float64))
    near = np.log1p(p * np.expm1(np.minimum(z, _LARGE)))
    # Far below 0 it loses the digits of 1 - p if p is near 1; the other form loses those of p if that is near 0.
    other = (z >= _LARGE) | ((z <= -1) & (p >= 9 / 10))
    if not np.any(other):
        return np.asarray(near)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(other, np.logaddexp(np.log1p(-p), np.log(p) + z), near))


def unsampled_mu(training: DPSGD, pair: StepPair) -> float:
    """Return how many noise standard deviations the two worlds lie apart if every record takes part in every step."""
    far = pair.distance
    return math.hypot(*(far * math.sqrt(phase.steps) / phase.noise_multiplier for phase in training.phases))


# --- The Gaussian mechanism's exact epsilon, delta and mu: a composition of unsampled Gaussian steps ---
#
# N(mu, 1) against N(0, 1): delta(eps) = Phi(a) - e^eps Phi(a - mu) with a = mu/2 - eps/mu (Balle and Wang 2018,
# Theorem 8). All functions here work with a, in which the two tails never cancel.

# Up to here e^z - 1 is computed as such; beyond, in logs.
_LARGE = 30.0
# Beyond this shift (in noise standard deviations) the squares below leave the range of a double.
_LARGEST_MU = 1e150
# Phi(-40) is about 4e-350, below every positive double, so the root below cannot lie further out.
_LOWEST = -40.0
# Phi(35) is 1 to 260 digits, and a little further out erfcx overflows.
_HIGHEST = 35.0
# From here on the tail is 0, and the square of a still is a double.
FURTHEST = -1e8
# Halvings of [_LOWEST, _HIGHEST] until neighbouring doubles are reached.
_HALVINGS = 60
# Below this distance two tails are subtracted by their series.
_CLOSE = 1e-3
_TERMS = 5


def gaussian_epsilon(mu: float, *, delta: float) -> float:
    """Return the smallest epsilon at which N(mu, 1) and N(0, 1) are (epsilon, delta)-indistinguishable.

    Exact up to rounding for every mu, large or small: the unknown is a = mu/2 - epsilon/mu, in which the two
    normal tails never cancel.

    Args:
        mu: Distance of the means in noise standard deviations, 0 or more: sqrt(steps) / noise multiplier for
            add/remove neighbours, twice that for replace-one.
        delta: In [0, 1); 0 gives infinity unless ``mu`` is 0.

    Returns:
        Epsilon in nats, 0 or more, possibly infinity.

    Source: Balle and Wang 2018, Theorem 8.

    >>> round(gaussian_epsilon(1.0, delta=1e-5), 6)
    4.377178
    """
    return float(gaussian_epsilons(mu, deltas=delta))


def gaussian_epsilons(mus: npt.ArrayLike, *, deltas: npt.ArrayLike) -> Floats:
    """Return `gaussian_epsilon` for many settings at once, rounded up.

    Args:
        mus: Any shape, 0 or more.
        deltas: A shape that goes with it, 0 or more; from 1 on the epsilon is 0.

    >>> gaussian_epsilons([0.5, 1.0, 2.0], deltas=1e-5).round(6).tolist()
    [1.993091, 4.377178, 9.997256]
    """
    mu, delta = np.broadcast_arrays(np.asarray(mus, dtype=np.float64), np.asarray(deltas, dtype=np.float64))
    usable = (mu > 0) & (mu <= _LARGEST_MU) & (delta > 0)
    result = np.where((mu == 0) | (delta >= 1), 0.0, np.inf)
    mu, log_delta = mu[usable], np.log(np.minimum(delta[usable], 1.0))
    none = log_delta_at(np.minimum(mu / 2, _HIGHEST), mu) <= log_delta
    a = last_below(log_delta, lambda a: log_delta_at(a, mu), highest=mu / 2)
    result[usable] = np.where(none, 0.0, mu * (mu / 2 - a))
    return result


def last_below(log_delta: Floats, at: Callable[[Floats], Floats], *, highest: Floats) -> Floats:
    """Return the largest a of which the rising function ``at`` gives no more than this, by halving their range."""
    low, high = np.full_like(highest, _LOWEST), np.minimum(highest, _HIGHEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        over = at(middle) > log_delta
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return low


def gaussian_delta(mu: float, *, epsilon: float) -> float:
    """Return the smallest delta at which N(mu, 1) and N(0, 1) are (epsilon, delta)-indistinguishable.

    Args:
        mu: Distance of the means in noise standard deviations, 0 or more.
        epsilon: In nats, 0 or more.

    Returns:
        Delta in [0, 1], precise to its last digits even when tiny.

    Source: Balle and Wang 2018, Theorem 8.

    >>> round(gaussian_delta(1.0, epsilon=1.0), 8)
    0.12693674
    """
    return float(gaussian_deltas(mu, epsilons=epsilon))


def gaussian_deltas(mu: float, *, epsilons: npt.ArrayLike) -> Floats:
    """Return `gaussian_delta` at many epsilons at once, in their shape.

    >>> gaussian_deltas(1.0, epsilons=[0.0, 1.0]).round(8).tolist()
    [0.38292492, 0.12693674]
    """
    epsilon = np.asarray(epsilons, dtype=np.float64)
    if mu == 0:
        return np.zeros_like(epsilon)
    with np.errstate(over="ignore"):
        a = mu / 2 - epsilon / mu
    return np.asarray(np.exp(log_delta_at(np.clip(a, FURTHEST, None), np.asarray(mu))))


def sampled_deltas(
    unsampled: Callable[[Floats], Floats], epsilon: Floats, *, rate: float
) -> tuple[Floats, Floats]:
    """Return the divergences of a Poisson-sampled step, a record more or less, from its own without sampling.

    With a = e^eps and the step's H(a) = sup P - a Q, (1-p) Q + p P over Q has p H((a - 1 + p)/p), and 1 - a up to 1 - p; Q
    over it has b H(a p / b), b = 1 - a (1 - p), and 0 from b <= 0 on.

    Args:
        unsampled: H at epsilons.
        epsilon: Any sign.
        rate: p, in (0, 1).
    """
    grown = np.expm1(epsilon)
    above, rest = grown + rate, rate - (1 - rate) * grown
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        forward = rate * unsampled(np.where(above > 0, np.log1p(grown / rate), 0.0))
        backward = rest * unsampled(np.where(rest > 0, epsilon + np.log(rate / rest), 0.0))
    return np.where(above > 0, forward, -grown), np.where(rest > 0, backward, 0.0)


def gaussian_mu(epsilon: float, *, delta: float) -> float:
    """Return the largest mu at which N(mu, 1) and N(0, 1) are (epsilon, delta)-indistinguishable.

    Args:
        epsilon: In nats, 0 or more.
        delta: In [0, 1); 0 gives 0, since no other Gaussian mechanism has a finite epsilon at delta 0.

    Source: Balle and Wang 2018, Theorem 8, solved for mu.

    >>> round(gaussian_mu(1.0, delta=1e-5), 6), round(gaussian_mu(8.0, delta=1e-5), 6)
    (0.268051, 1.666031)
    """
    if delta == 0:
        return 0.0
    if epsilon == 0:  # delta = 2 Phi(mu/2) - 1
        return 2 * math.sqrt(2) * float(erfinv(delta))

    # With mu = sqrt(2 eps) e^u the unknown a = mu/2 - eps/mu is sqrt(2 eps) sinh(u): nothing cancels.
    scale = math.sqrt(2) * math.sqrt(epsilon)

    def excess(u: float) -> float:
        mu = scale * math.exp(u)
        return float(log_delta_at(np.asarray(scale * math.sinh(u)), np.asarray(mu))) - math.log(delta)

    low, high = math.asinh(_LOWEST / scale), math.asinh(_HIGHEST / scale)
    return scale * math.exp(float(scipy.optimize.brentq(excess, low, high, xtol=1e-16 * high, rtol=1e-15)))


def log_delta_at(a: Floats, mu: Floats) -> Floats:
    """Return log(Phi(a) - e^eps Phi(a - mu)), eps = mu (mu/2 - a), for a of -1e8 or more and mu above 0."""
    # e^eps Phi(a - mu) / Phi(a) = erfcx(x + h) / erfcx(x). Beyond the cap on a the second tail is nothing.
    x, h = -np.minimum(a, _HIGHEST) / math.sqrt(2), np.asarray(mu / math.sqrt(2))
    first = erfcx(x)
    # The Taylor series of erfcx around x, for tails that are too close to be subtracted.
    before, last = first, 2 * x * first - 2 / math.sqrt(math.pi)
    near = np.minimum(h, _CLOSE)
    series, power = -near * last, near
    for order in range(2, _TERMS + 1):
        before, last = last, 2 * (order - 1) * before + 2 * x * last
        power = power * near / order
        series = series - power * last
    gap = np.where(h < _CLOSE, series / first, 1 - erfcx(x + h) / first)
    return np.asarray(log_ndtr(a) + np.log(np.maximum(gap, sys.float_info.min)))


# --- Gaussian differential privacy of a training run: its curve, its exact composition, and the limit for sampled steps ---
#
# mu-GDP: no attacker does better than on N(0, 1) against N(mu, 1), so TPR <= Phi(Phi^-1(FPR) + mu).
#
# A mu by the central limit theorem is asymptotic: it is right in the limit of many steps of small loss, and an epsilon
# read off it can be far too small where delta is small, the noise is below about 1 or the steps are few. At rate 0.01,
# noise 0.6, 100 steps and delta 1e-5 it gives 1.505 where the exact one is 3.816.

_ASYMPTOTIC = (
    "Asymptotic: right in the limit of many steps of small loss, and possibly on the unsafe side (too low) for little"
    " noise, few steps or a small delta: at rate 0.01, noise 0.6, 100 steps, delta 1e-5 its epsilon is 1.505 and the"
    " exact one 3.816."
)
FIXED_SIZE = "Batches of a fixed size are accounted for replaced records only."
_IGNORES_SAMPLING = (
    "It ignores the sampling, as if every record were in every step, so it may be loose: usually far too large to be of"
    " use where records are sampled."
)
# So many standard deviations out no rate is a double.
_FURTHEST_MU = 40.0
# How far computed deltas may be from the exact ones; they are raised by it.
_ROUNDING = 1e-12


def gdp_curve(mu: float, *, points: int = 2001) -> TradeoffCurve:
    """Return the trade-off curve of mu-GDP, TPR = Phi(Phi^-1(FPR) + mu), as the lowest of many of its tangents.

    So it never lies below the true curve (beyond the last digit), and with 2001 tangents at most 0.02% of a TPR above
    it at FPRs of 1e-9 and more, 0.06% from 1e-16 on.

    Args:
        mu: 0 or more.
        points: Number of tangents on each side, 2 or more.

    Raises:
        InputError: mu is negative, or points fewer than 2.

    Source: Dong, Roth and Su 2022, Definition 2.6.

    >>> round(gdp_curve(1.0).tpr_at(0.1), 4)  # Phi(Phi^-1(.1) + 1) = .38914
    0.3891
    """
    mu = validate.nonnegative("mu", mu)
    points = validate.at_least("points", points, least=2)
    # The tangent of slope e^eps touches at FPR = Phi(-mu/2 - eps/mu), which runs from Phi(-mu/2) down to nothing.
    # Dense where both rates are of use; rates below e^-800 are no doubles.
    epsilons = mu * max(_FURTHEST_MU - mu / 2, 0.0) * np.linspace(0.0, 1.0, points) ** 2
    deltas = np.minimum(gaussian_deltas(mu, epsilons=epsilons) * (1 + _ROUNDING), 1.0)
    return TradeoffCurve.from_profile(epsilons, deltas=deltas)


@as_accounted
def mu_without_sampling(training: DPSGD, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the mu of DP-SGD if every record took part in every step, sqrt(sum of (1/s_t)^2), twice it for replace-one.

    Exact if the sampling rate is 1. Below it, an upper bound that ignores the sampling and is usually far too large to
    be of use.

    Args:
        training: Noise multipliers s_t, sampling rates and steps.
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``mu``, proven; None for batches of a fixed size and added or removed records.

    Raises:
        InputError: The adjacency is unknown, or ``training`` is no `DPSGD`.

    Source: Dong, Roth and Su 2022, Theorem 2.7 and Corollary 3.3.

    >>> round(mu_without_sampling(DPSGD(2.0, 1.0, 100)).value, 12)
    5.0
    """
    relation = relation_of(training, adjacency)
    method = "Gaussian composition without sampling" if training.sampled else "exact Gaussian composition"
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        return Claim("mu", None, None, relation, method, proven=True, note=FIXED_SIZE)
    mu = unsampled_mu(training, StepPair.of(training, relation))
    note = _IGNORES_SAMPLING if training.sampled else ""
    return Claim("mu", mu, None, relation, method, proven=True, note=note)


def mu_clt(training: DPSGD, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the mu that DP-SGD tends to by the central limit theorem.

    Its square is the sum over the steps of

    * p^2 (e^(1/s^2) - 1) for add/remove neighbours (Bu et al. 2020),
    * 4 p^2 sinh(1/s^2) for replace-one [own: the variance of one step's log-ratio to leading order in p],
    * 2 p^2 (e^(m^2) Phi(3m/2) + 3 Phi(-m/2) - 2) with m = 2/s for batches of a fixed size and replace-one
      (Corollary 5.4 of Dong, Roth and Su 2022, with a factor sqrt2 and a root over all terms that the lecture slides leave
      out: erratum),

    and of the exact 1/s^2 (4/s^2 for replace-one) for steps at sampling rate 1.

    Args:
        training: Noise multipliers s, sampling rates p and steps.
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``mu``, an approximation (``proven`` is false) unless every sampling rate is 1; None for batches of a fixed
        size and added or removed records.

    Raises:
        InputError: The adjacency is unknown, or ``training`` is no `DPSGD`.

    >>> round(mu_clt(DPSGD(1.0, 0.001, 10_000)).value, 6)
    0.131083
    """
    relation = relation_of(training, adjacency)
    if not training.sampled or (training.fixed_size and relation is Adjacency.ADD_REMOVE):
        return mu_without_sampling(training, adjacency=relation)
    pair = StepPair.of(training, relation)
    noise, rate, steps = columns(training)
    unsampled = 2 * (math.log(pair.distance) - np.log(noise))
    log_squares = np.where(rate == 1, unsampled, 2 * np.log(rate) + log_variance(noise, pair))
    log_mu = float(np.logaddexp.reduce(log_squares + np.log(steps))) / 2
    mu = math.exp(log_mu) if log_mu < _LARGEST_LOG else math.inf
    method = "central limit theorem of Gaussian differential privacy"
    return Claim("mu", mu, None, relation, method, proven=False, note=_ASYMPTOTIC)


# --- Shuffled batches: the proven mu ---

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
    relation = relation_of(training, adjacency)
    if not isinstance(training.sampling, ShuffledBatches):
        raise InputError(
            f"training must have shuffled batches, got {type(training.sampling).__name__}; its promise is by auditor.theory.epsilon."
        )
    steps_of_a_pass = math.floor((1 + _NEARLY) / max(phase.sampling_rate for phase in training.phases))
    left = -(-training.steps // steps_of_a_pass)
    squares = 0.0
    for phase in sorted(training.phases, key=lambda phase: phase.noise_multiplier):
        taken = min(left, phase.steps)
        squares += taken / phase.noise_multiplier**2
        left -= taken
    mu = StepPair.of(training, relation).distance * math.sqrt(squares)
    note = "Proven for every order of the records, the attacker knowing it: shuffling counts for nothing."
    if relation is Adjacency.ADD_REMOVE:
        note += " The record that is added or removed counts as nothing in the other world; the batches of all others stay."
    return Claim("mu", mu, None, relation, _SHUFFLED_METHOD, proven=True, note=note)


# --- The limit for one kind of step: the variance of its loss ---

_LARGEST_LOG = 709.0
# Logarithms beyond which only the leading term of one step's variance is left, and where its series takes over.
_LOG_TINY, _LOG_LARGE, _SMALL = -40.0, math.log(6), 1e-3


def log_variance(noise: Floats, pair: StepPair) -> Floats:
    """Return the log of the variance of one step's log-ratio over p^2, to leading order in p; see `mu_clt`."""
    log_u = -2 * np.log(noise)
    if pair is StepPair.FIXED_SIZE:
        return math.log(2) + log_excess(math.log(2) + log_u / 2)
    u = np.exp(np.clip(log_u, _LOG_TINY, 700.0))  # a larger u is infinite all the same
    added = pair is StepPair.ADD_REMOVE
    grown = u + np.log(-np.expm1(-u) if added else -2 * np.expm1(-2 * u))
    # e^u - 1 and sinh(u) are u to all digits where that is tiny.
    return np.where(log_u < _LOG_TINY, log_u + 2 * math.log(pair.distance), grown)


def log_excess(log_mu: Floats) -> Floats:
    """Return the log of E[(e^l - 1)^2; l > 0], the unsampled log-ratio l of N(mu, 1) to N(0, 1) being under N(0, 1).

    That is e^(mu^2) Phi(3 mu/2) + 3 Phi(-mu/2) - 2, about mu^2/2 for small mu and e^(mu^2) for large.
    """
    mu = np.exp(np.clip(log_mu, _LOG_TINY, _LOG_LARGE))
    # Phi(3 mu/2) + 3 Phi(-mu/2) - 2 in two ways: its series where the difference would cancel.
    root = math.sqrt(8)
    series = (mu**3 / -2 + 3 / 16 * mu**5) / math.sqrt(2 * math.pi)
    rest = np.where(mu < _SMALL, series, (erf(3 * mu / root) - 3 * erf(mu / root)) / 2)
    middle = np.log(np.expm1(mu**2) * ndtr(1.5 * mu) + rest)
    square = np.exp(np.minimum(2 * log_mu, 700.0))
    # The rest is below rounding from mu = 6 on.
    large = square + np.log1p(-2 * np.exp(-np.maximum(square, 1.0)))
    result = np.where(log_mu > _LOG_LARGE, large, middle)
    return np.where(log_mu < _LOG_TINY, 2 * log_mu - math.log(2), result)
