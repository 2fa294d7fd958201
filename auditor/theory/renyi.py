"""Renyi divergences of DP-SGD, what they promise (an epsilon; an advantage, by Pinsker's inequality), and what any do."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.options import DPSGD, Adjacency, Phase
from auditor.core.values import Claim, Floats
from auditor.theory.gaussian import FIXED_SIZE, StepPair, array_of, as_accounted, columns, relation_of
from auditor.theory.steps import log_ratio, together

# --- A training run: its divergences, the epsilon by the best of many orders, and the advantage by Pinsker's inequality ---

# More different steps than this, with such noise, are taken together.
_FEW = 20
_LITTLE, _MUCH = 0.05, 1e6
# Logarithms of order - 1: from where little noise is best accounted to where little leakage is.
_SEARCH = np.log(np.geomspace(1e-3, 1e5, 25))
# Below, a step's losses leave the range in which quadrature says more than the bound without sampling.
_LEAST_NOISE = 1e-6
# The square of more leaves the range of a double.
_LARGEST_RATIO = 1e150


def renyi_divergence(
    training: DPSGD, *, order: npt.ArrayLike, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> Any:
    """Return the Renyi divergence between what neighbouring training sets give, of both orders the larger.

    It adds up over steps. One step's is T distance^2 order / (2 s^2) without sampling; otherwise it is computed by
    quadrature, to about 1e-10 of its value. (dp-accounting's series do not always converge at fractional orders, and
    know added records only.) For added records the record-in law stands first, which is the larger order; batches of
    a fixed size are described by the pair that dominates them, so theirs is an upper bound.

    Args:
        training: Poisson-sampled steps, or batches of a fixed size.
        order: Above 1, whole or fractional; a number or an array of any shape.
        adjacency: Which training sets count as neighbours.

    Returns:
        Nats, 0 or more, possibly infinity: a number, or an array of the shape of ``order``.

    Raises:
        InputError: The run is no DPSGD, an order of 1 or less, an unknown adjacency, or added records with batches of
            a fixed size.

    Source: Mironov 2017; Mironov, Talwar and Zhang 2019, Theorem 5, for which order is the larger.

    >>> renyi_divergence(DPSGD(2.0, 1.0, 10), order=4.0)  # 4 x 10 / (2 x 2^2)
    5.0
    >>> round(renyi_divergence(DPSGD(1.0, 0.01, 1000), order=2.0), 6)  # 1000 log(1 + 0.01^2 (e - 1))
    0.171813
    """
    relation = relation_of(training, adjacency)
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        raise InputError(
            "batches of a fixed size are accounted for replaced records only; ask for adjacency 'replace-one'."
        )
    orders = _orders("order", order)
    pair = StepPair.of(training, relation)
    parts = [phase.steps * _phase(phase, pair, orders.ravel()) for phase in training.phases]
    found: Floats = np.sum(parts, axis=0).reshape(orders.shape)
    return found if found.shape else float(found)


@as_accounted
def renyi_epsilon(training: DPSGD, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the epsilon that follows from the Renyi divergences at many orders: the RDP (moments) accountant.

    Proven, at every delta. `auditor.theory.epsilon` is tighter, and returns this only where there is almost no noise.

    Args:
        training: Poisson-sampled steps, or batches of a fixed size.
        delta: In [0, 1).
        adjacency: Which training sets count as neighbours.

    Returns:
        ``epsilon`` in nats; infinite at delta 0. Null, with a note, for added records with batches of a fixed size.

    Raises:
        InputError: The run is no DPSGD, delta is outside [0, 1), or the adjacency is unknown.

    Source: Mironov 2017; Canonne, Kamath and Steinke 2020, Proposition 12, for the conversion.

    >>> round(renyi_epsilon(DPSGD(1.0, 0.01, 1000), delta=1e-5).value, 2)
    2.1
    """
    relation, delta = relation_of(training, adjacency), validate.fraction("delta", delta, zero=True)
    value: float | None = None
    note = FIXED_SIZE
    if not (training.fixed_size and relation is Adjacency.ADD_REMOVE):
        value = phases_epsilon(training.phases, pair=StepPair.of(training, relation), delta=delta)
        note = "An upper bound for an attacker who sees every iterate, by the best of many orders."
    return Claim(
        "epsilon", value, delta, relation, "Renyi divergences (RDP accountant)", proven=True, note=note
    )


def phases_epsilon(phases: tuple[Phase, ...], *, pair: StepPair, delta: float) -> float:
    """Return the smallest bound on epsilon over the orders: every order gives one, so the search need not be perfect."""
    if delta == 0:
        return math.inf

    def bound(log_excess: Floats) -> Floats:
        orders = 1 + np.exp(log_excess)
        gain = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
        return np.asarray(_total(phases, pair, orders) + gain)

    values = bound(_SEARCH)
    best = int(values.argmin())
    around = _SEARCH[max(best - 1, 0)], _SEARCH[min(best + 1, _SEARCH.size - 1)]
    if not math.isfinite(values[best]):
        return math.inf
    found = minimize_scalar(lambda at: bound(np.array([at])).item(), bounds=around, method="bounded")
    return max(0.0, float(min(found.fun, values[best])))


@as_accounted
def pinsker_renyi(training: DPSGD, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return a bound on the attacker's advantage by Pinsker's inequality: sqrt(D/2), at most 1.

    D is the Kullback-Leibler divergence, the limit of the Renyi divergences at order 1, where they are smallest. The
    inequality holds for both orders of the two neighbours, so the smaller divergence counts.

    Args:
        training: Poisson-sampled steps, or batches of a fixed size.
        adjacency: Which training sets count as neighbours.

    Returns:
        ``advantage`` (the total variation) in [0, 1]. Null, with a note, for added records with batches of a fixed
        size.

    Raises:
        InputError: The run is no DPSGD, or the adjacency is unknown.

    Source: Mahloujifar et al. 2022, Pinsker's bound with Renyi divergences.

    >>> round(pinsker_renyi(DPSGD(2.0, 1.0, 1)).value, 6)  # sqrt(1/(2 x 2^2) / 2)
    0.25
    """
    relation = relation_of(training, adjacency)
    method = "Pinsker's inequality with the Kullback-Leibler divergence, sqrt(D/2)"
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        return Claim("advantage", None, None, relation, method, proven=True, note=FIXED_SIZE)
    pair = StepPair.of(training, relation)
    both = np.array([_kullback_leibler(phase, pair) for phase in training.phases])
    total = float((columns(training)[2] @ both).min())
    note = "An upper bound; loose, most of all where the advantage is large."
    return Claim("advantage", min(1.0, math.sqrt(total / 2)), None, relation, method, proven=True, note=note)


def _unsampled(phase: Phase, pair: StepPair) -> float:
    """Return distance^2 / (2 s^2): a step's divergence per order; infinity where that overflows."""
    ratio = pair.distance / phase.noise_multiplier
    return ratio**2 / 2 if ratio < _LARGEST_RATIO else math.inf


def _total(phases: tuple[Phase, ...], pair: StepPair, orders: Floats) -> Floats:
    """Return the divergence of all steps at each order, of many of ordinary noise at once."""
    ordinary = [
        phase for phase in phases if phase.sampling_rate < 1 and _LITTLE < phase.noise_multiplier < _MUCH
    ]
    if len(ordinary) <= _FEW:
        ordinary = []
    rest = [phase for phase in phases if phase not in ordinary] if ordinary else phases
    total = sum((phase.steps * _phase(phase, pair, orders) for phase in rest), np.zeros(orders.size))
    if ordinary:
        steps = together(ordinary, pair)
        unsampled = np.array([_unsampled(phase, pair) for phase in ordinary])
        for place, order in enumerate(orders.tolist()):
            sampled = steps.log_masses(order)[0] / (order - 1)
            total[place] += float(steps.count @ np.minimum(sampled, order * unsampled))
    return np.asarray(total)


def _phase(phase: Phase, pair: StepPair, orders: Floats) -> Floats:
    whole: Floats = orders * _unsampled(phase, pair)
    if phase.sampling_rate == 1 or phase.noise_multiplier < _LEAST_NOISE:
        return whole
    excess = np.array([_log_moment_excess(phase, pair, order=order) for order in orders.tolist()])
    # Never above what holds without sampling.
    return np.asarray(np.minimum(whole, np.logaddexp(0.0, excess) / (orders - 1)))


# --- From Renyi divergences to epsilon ---
#
# A Renyi guarantee bounds D_alpha(P || Q), in nats and for both orders of two neighbours, at one or several alpha > 1.
# Every conversion from it holds for all mechanisms that meet it; with several alpha the best one counts.


def epsilon_from_renyi(orders: npt.ArrayLike, *, divergences: npt.ArrayLike, delta: float) -> float:
    """Return an epsilon that Renyi divergences imply at this delta.

    At each order D + log(1 - 1/alpha) - log(alpha delta)/(alpha - 1); and 0 where delta^2 >= 1 - e^-D, since that
    bounds the total variation.

    Args:
        orders: alpha, each above 1, shape (k,) or one number.
        divergences: D_alpha at each order, 0 or more; infinity is allowed.
        delta: In [0, 1); 0 gives infinity unless a divergence is 0.

    Returns:
        Epsilon in nats, 0 or more, possibly infinite.

    Raises:
        InputError: A number out of range, or arrays that differ in length.

    Source: Canonne, Kamath and Steinke 2020, Proposition 12; Bretagnolle and Huber 1979 for the second.

    >>> round(epsilon_from_renyi([2, 4, 8, 16], divergences=[1, 2, 4, 8], delta=1e-5), 4)
    5.0879
    """
    alpha, renyi = _guarantee(orders, divergences)
    delta = validate.fraction("delta", delta, zero=True)
    if delta**2 >= -math.expm1(-float(renyi.min())):
        return 0.0
    return math.inf if delta == 0 else max(0.0, float(_epsilons(alpha, renyi, delta).min()))


# Of the search for the best order: how far it reaches in logarithms, and in how many steps.
_SPREAD, _ORDERS = math.log(1e4), 201


def epsilon_from_rho(rho: float, *, delta: float) -> float:
    """Return an epsilon that rho-zCDP implies at this delta: `epsilon_from_renyi` at the best of all orders.

    Args:
        rho: Above 0: Renyi divergences are at most rho times their order.
        delta: In [0, 1); 0 gives infinity.

    Raises:
        InputError: A number out of range.

    Source: Bun and Steinke 2016; Canonne, Kamath and Steinke 2020, Proposition 12 (its Proposition 7 at the best order).

    >>> round(epsilon_from_rho(0.5, delta=1e-5), 4)  # a Gaussian of mu 1 has 4.3772
    4.7284
    """
    rho, delta = validate.positive("rho", rho), validate.fraction("delta", delta, zero=True)
    if delta == 0:
        return math.inf
    if delta >= math.sqrt(rho / 2):  # Pinsker's bound on the total variation
        return 0.0
    # About sqrt(log(1/delta)/rho) above 1; every order gives a bound, so a search that narrows twice is enough.
    centre = 0.5 * (math.log(max(-math.log(delta), _SMALL)) - math.log(rho))
    logs = np.linspace(centre - _SPREAD, centre + _SPREAD, _ORDERS)
    for _ in range(2):
        best = int(_epsilons(1 + np.exp(logs), rho * (1 + np.exp(logs)), delta).argmin())
        logs = np.linspace(logs[max(best - 1, 0)], logs[min(best + 1, _ORDERS - 1)], _ORDERS)
    # Orders next to 1 bound the total variation, for a delta above which epsilon is 0.
    orders = np.concatenate([[1 + _SMALL**3], 1 + np.exp(logs)])
    return epsilon_from_renyi(orders, divergences=rho * orders, delta=delta)


def _epsilons(alpha: Floats, renyi: Floats, delta: float) -> Floats:
    """The epsilon at each order, possibly below 0, at a delta above 0."""
    with np.errstate(over="ignore"):
        return np.asarray(renyi + np.log1p(-1 / alpha) - (np.log(alpha) + math.log(delta)) / (alpha - 1))


def _orders(name: str, orders: npt.ArrayLike) -> Floats:
    return array_of(name, orders, lambda x: (x > 1) & (x < np.inf), "finite and above 1")


def _guarantee(orders: npt.ArrayLike, divergences: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Orders and divergences as two checked arrays."""
    alpha, renyi = np.atleast_1d(
        _orders("orders", orders), array_of("divergences", divergences, lambda x: x >= 0, "0 or more")
    )
    validate.same_length(("orders", "divergences"), (alpha.size, renyi.size))
    validate.at_least("number of orders", alpha.size, least=1)
    return alpha, renyi


# --- Renyi and Kullback-Leibler divergences of one DP-SGD step, by Gauss-Legendre quadrature in logs ---
#
# With r = dP/dQ = e^L, e^((a-1) D_a) = 1 + integral of Q (r^a - 1 - a (r - 1)), since r has mean 1 under Q. That
# integrand is nowhere negative, so nothing cancels: the digits of a divergence of 1e-18 are as good as those of 1e6.

# Normal tails beyond so many standard deviations weigh less than e^-72 of what lies within.
_REACH = 12.0
_MOST_NOISE = 1e100
# A component takes over from another within so many times s^2.
_TURN = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Below, the first terms of the series are exact to 1e-12; above, differences of exponentials are.
_SMALL = 1e-4
# Beyond, e^z - 1 is e^z to all digits, and e^z will overflow.
_LARGE = 40.0


@lru_cache(maxsize=4096)  # kinds of steps share their phases
def _log_moment_excess(phase: Phase, pair: StepPair, *, order: float) -> float:
    """Return log(e^((order-1) D) - 1) for one step's Renyi divergence D of this order above 1; of both orders alike."""
    law = _law(phase, pair, order)
    total = logsumexp(law.log_q + _log_excess(law.loss, order))
    if pair is StepPair.FIXED_SIZE:  # the mirrored half; the rest of the mass lies at loss 0 and adds nothing
        total = np.logaddexp(total, logsumexp(law.log_p + _log_excess(-law.loss, order)))
    return float(total)


def _kullback_leibler(phase: Phase, pair: StepPair) -> tuple[float, float]:
    """Return one step's divergences of the first law from the second and of the second from the first, in nats."""
    if phase.sampling_rate == 1 or phase.noise_multiplier < _LEAST_NOISE:
        # Convex in the pair of laws, so at most the share of steps that draw the record; exact at rate 1.
        return (phase.sampling_rate * _unsampled(phase, pair),) * 2
    law = _law(phase, pair, 1.0)
    forward = math.exp(logsumexp(law.log_q + _log_entropy(law.loss)))
    backward = math.exp(logsumexp(law.log_p + _log_entropy(-law.loss)))
    return (forward + backward,) * 2 if pair is StepPair.FIXED_SIZE else (forward, backward)


class _Law(NamedTuple):
    """Privacy losses at the nodes, and the logarithms of the two laws' densities there with the nodes' weights."""

    loss: Floats
    log_p: Floats
    log_q: Floats


def _law(phase: Phase, pair: StepPair, order: float) -> _Law:
    # Two means 2 apart at noise s are two means 1 apart at noise s/2.
    scale = 2.0 if pair is StepPair.FIXED_SIZE else 1.0
    # More noise than this counts as this much, which can only be worse.
    noise, rate = min(phase.noise_multiplier, _MOST_NOISE) / scale, phase.sampling_rate
    x, width = _nodes(noise, rate, order, pair)
    base = np.log(width) - ((x / noise) ** 2) / 2 - math.log(noise * math.sqrt(2 * math.pi))
    upper = log_ratio(x, noise=noise, rate=rate, mean=1.0)
    lower = np.zeros_like(x)
    if pair is StepPair.REPLACE_ONE:
        lower = log_ratio(x, noise=noise, rate=rate, mean=-1.0)
    return _Law(upper - lower, base + upper, base + lower)


def _nodes(noise: float, rate: float, order: float, pair: StepPair) -> tuple[Floats, Floats]:
    """Return nodes and weights wherever the integrand has mass: around its possible peaks and the turning points."""
    turn = 0.5 + noise**2 * (math.log1p(-rate) - math.log(rate)) if rate < 1 else 0.5
    # P^a Q^(1-a) peaks where x = a w - (a-1) v, w and v the shares of the components that are not at 0.
    peaks = {0.0, 1.0, order}
    turns = {turn}
    if pair is StepPair.REPLACE_ONE:
        peaks |= {-1.0, order - 1, 2 * order - 1}
        turns |= {-turn}
    reach = _REACH * noise
    low, high = min(peaks) - reach, max(peaks) + reach
    if pair is StepPair.FIXED_SIZE:
        low = 0.5
    spans = [(peak - reach, peak + reach) for peak in peaks]
    spans += [(at - _TURN * noise**2 - reach, at + _TURN * noise**2 + reach) for at in turns]
    # Finer near a turning point: the integrand's poles lie pi s^2 away from it.
    finer = noise**2 * 2.0 ** np.arange(-2, max(0, math.ceil(-math.log2(noise))) + 2)
    marks = [at + sign * step for at in turns for step in [0.0, *finer.tolist()] for sign in (-1, 1)]
    edges = [_panels(max(start, low), min(end, high), noise, marks) for start, end in _united(spans)]
    left = np.concatenate([edge[:-1] for edge in edges])
    half = np.concatenate([np.diff(edge) for edge in edges]) / 2
    inside = half > 0
    left, half = left[inside], half[inside]
    return (
        np.add.outer(left + half, np.zeros(_NODES.size)) + np.multiply.outer(half, _NODES)
    ).ravel(), np.multiply.outer(half, _WEIGHTS).ravel()


def _united(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _panels(start: float, end: float, noise: float, marks: list[float]) -> Floats:
    """Return the edges of panels of at most one standard deviation, and with edges at the marks; none if empty."""
    if end <= start:
        return np.zeros(1)
    edges = np.linspace(start, end, math.ceil((end - start) / noise) + 1)
    return np.unique(np.concatenate([edges, [mark for mark in marks if start < mark < end]]))


def _log_excess(loss: Floats, order: float) -> Floats:
    """Return log(r^a - 1 - a (r - 1)) at log r = loss."""
    far = np.maximum(np.abs(loss), order * np.abs(loss))
    with np.errstate(divide="ignore"):
        near = math.log(order * (order - 1) / 2) + 2 * np.log(np.abs(loss))
        near += np.log1p(np.clip((order + 1) * loss / 3, -0.5, 0.5))
        middle = np.where(order * loss < _LARGE, loss, 0.0)
        plain = np.log(np.maximum(np.expm1(order * middle) - order * np.expm1(middle), 0.0))
    large = np.maximum(loss, _LARGE / order)
    steep = order * large + np.log1p(
        np.exp(-order * large) * (order - 1) - order * np.exp((1 - order) * large)
    )
    return np.where(far < _SMALL, near, np.where(order * loss < _LARGE, plain, steep))


def _log_entropy(loss: Floats) -> Floats:
    """Return log(r log r - r + 1) at log r = loss: the limit of the above over a - 1."""
    with np.errstate(divide="ignore"):
        near = 2 * np.log(np.abs(loss)) - math.log(2) + np.log1p(np.clip(2 * loss / 3, -0.5, 0.5))
        middle = np.where(loss < _LARGE, loss, 0.0)
        plain = np.log(np.maximum(middle * np.exp(middle) - np.expm1(middle), 0.0))
    large = np.maximum(loss, _LARGE)
    steep = large + np.log(large - 1)
    return np.where(np.abs(loss) < _SMALL, near, np.where(loss < _LARGE, plain, steep))
