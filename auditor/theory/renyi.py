"""Renyi divergences of DP-SGD and the promises that follow from them: an epsilon, and an advantage by Pinsker's inequality."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from auditor.core import DPSGD, Adjacency, Claim, Floats, InputError, Phase, validate
from auditor.theory.gaussian import FIXED_SIZE, StepPair, as_accounted, relation_of
from auditor.theory.steps import together

# --- A training run: its divergences, the epsilon by the best of many orders, and the advantage by Pinsker's inequality ---

# More different steps than this are taken together.
_FEW = 20
# More noise counts as this much, which can only be worse.
_MOST_NOISE = 1e100
# Below this noise, or by so many e-folds, a step shows whether it drew the record.
_LITTLE, _SHOWN = 0.05, 40.0
# With so little noise a smaller rate counts as this one, which can only be worse.
_LEAST_RATE = 1e-20
# Beyond, e^x - 1 is e^x to all digits.
_LARGE = 40.0
# The order that stands for Kullback and Leibler's divergence, from above.
_NEXT_TO_1 = 1 + 2.0**-44
# Logarithms of order - 1: from where little noise is best accounted to where little leakage is.
_SEARCH = np.log(np.geomspace(1e-3, 1e5, 25))
# The square of more leaves the range of a double.
_LARGEST_RATIO = 1e150


def renyi_divergence(
    training: DPSGD, *, order: npt.ArrayLike, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> Any:
    """Return the Renyi divergence between the outputs of neighbouring training sets, the larger of both orders.

    It adds up over steps. T steps' is T distance^2 order / (2 s^2) without sampling; otherwise it is computed by
    quadrature, to about 1e-10 of its value or to 1e-17, whichever is more. (dp-accounting's series do not always converge at
    fractional orders, and know added records only.) For added records the record-in law stands first, which is the larger
    order; batches of a fixed size are described by the pair that dominates them, so theirs is an upper bound. With noise below
    0.05, rates below 1e-20 count as 1e-20.

    Args:
        training: Poisson-sampled steps, or batches of a fixed size.
        order: Above 1, whole or fractional; a number or an array of any shape.
        adjacency: Relation between neighbouring training sets.

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
    orders = validate.numbers("order", order, lambda x: (x > 1) & (x < np.inf), "be finite and above 1")
    pair = StepPair.of(training, relation)
    result = _total(training.phases, pair, orders.ravel()).reshape(orders.shape)
    return result if result.shape else float(result)


@as_accounted
def renyi_epsilon(training: DPSGD, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the epsilon that follows from the Renyi divergences at many orders: the RDP (moments) accountant.

    Proven, at every delta. `auditor.theory.epsilon` is tighter, and returns this only where there is almost no noise.

    Args:
        training: Poisson-sampled steps, or batches of a fixed size.
        delta: In [0, 1).
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``epsilon`` in nats; infinite at delta 0. None, with a note, for added records with batches of a fixed size.

    Raises:
        InputError: The run is no DPSGD, delta is outside [0, 1), or the adjacency is unknown.

    Source: Mironov 2017; Canonne, Kamath and Steinke 2020, Proposition 12, for the conversion.

    >>> round(renyi_epsilon(DPSGD(1.0, 0.01, 1000), delta=1e-5).value, 2)
    2.1
    """
    relation, delta = relation_of(training, adjacency), validate.fraction("delta", delta, zero=True)
    method = "Renyi divergences (RDP accountant)"
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        return Claim("epsilon", None, delta, relation, method, proven=True, note=FIXED_SIZE)
    value = phases_epsilon(training.phases, pair=StepPair.of(training, relation), delta=delta)
    note = "An upper bound for an attacker who sees every iterate, by the best of many orders."
    return Claim("epsilon", value, delta, relation, method, proven=True, note=note)


def phases_epsilon(phases: tuple[Phase, ...], *, pair: StepPair, delta: float) -> float:
    """Return the smallest bound on epsilon over the orders."""
    return _least(lambda orders: _total(phases, pair, orders), delta=delta, logs=_SEARCH)


@as_accounted
def pinsker_renyi(training: DPSGD, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return a bound on the attacker's advantage by Pinsker's inequality: sqrt(D/2), at most 1.

    D is the Kullback-Leibler divergence, the limit of the Renyi divergences at order 1, where they are smallest. The
    inequality holds for both orders of the two neighbours, so the smaller divergence counts.

    Args:
        training: Poisson-sampled steps, or batches of a fixed size.
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``advantage`` (the total variation) in [0, 1]. None, with a note, for added records with batches of a fixed
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
    # Convex in the pair of laws, so at most that of the steps that draw the record.
    drawn = sum(phase.steps * phase.sampling_rate * _unsampled(phase, pair) for phase in training.phases)
    orders = (_divergence(training.phases, pair, _NEXT_TO_1, backward=order) for order in (False, True))
    total = min(drawn, *orders)
    note = "An upper bound; loose, most of all where the advantage is large."
    return Claim("advantage", min(1.0, math.sqrt(total / 2)), None, relation, method, proven=True, note=note)


def _unsampled(phase: Phase, pair: StepPair) -> float:
    """Return distance^2 / (2 s^2): a step's divergence per order; infinity where that overflows."""
    ratio = pair.distance / phase.noise_multiplier
    return ratio**2 / 2 if ratio < _LARGEST_RATIO else math.inf


def _total(phases: tuple[Phase, ...], pair: StepPair, orders: Floats) -> Floats:
    """Return the divergence of all steps at each order above 1, of the first law from the second."""
    return np.array([_divergence(phases, pair, order) for order in orders.tolist()])


@lru_cache(maxsize=4096)  # every delta uses the same orders
def _divergence(phases: tuple[Phase, ...], pair: StepPair, order: float, *, backward: bool = False) -> float:
    """Return the divergence of all steps at one order, never above the one without sampling."""
    total, composed = 0.0, []
    for phase in phases:
        if phase.sampling_rate == 1:
            total += phase.steps * order * _unsampled(phase, pair)
        elif _noise(phase, pair) < _LITTLE or _by_order(phase, pair, order):
            divergence = _shown(phase, pair, order, backward=backward)
            total += phase.steps * min(divergence, order * _unsampled(phase, pair))
        else:
            composed.append(replace(phase, noise_multiplier=min(phase.noise_multiplier, _MOST_NOISE)))
    # Few kinds of step each on a grid of its own, more on one.
    for some in [composed] if len(composed) > _FEW else [[phase] for phase in composed]:
        steps = together(some, pair)
        masses = (steps.backward if backward else steps).log_masses(order)[0]
        whole = order * np.array([_unsampled(phase, pair) for phase in some])
        total += float(steps.count @ np.minimum(np.maximum(masses, 0.0) / (order - 1), whole))
    return total


# --- One step that shows its record where it draws it ---
#
# With so little noise, or at so high an order, no output is likely both with and without the record: P^k Q^(1-k) is that of
# one component of each law wherever it has mass, and e^((k-1) D) - 1 is
#
#     (1-p)^k - 1 + p^k e^(k (k-1) d^2/(2 s^2))               for added records, d = 1;
#     -p + p^k (1-p)^(1-k) e^(k (k-1) d^2/(2 s^2))            for replaced records and coins, d = 1;
#     -p + p^k e^(k (k-1) d^2/(2 s^2))                        for batches of a fixed size, d = 2;
#
# what is left out is below e^-40 of that. Each is written as two terms of k - 1, which keep their digits near order 1.


def _by_order(phase: Phase, pair: StepPair, order: float) -> bool:
    noise, odds = _noise(phase, pair), math.log(order) - math.log(phase.sampling_rate)
    return (order - 1) / noise > (_SHOWN + odds) * noise


def _shown(phase: Phase, pair: StepPair, order: float, *, backward: bool) -> float:
    p, less, added = phase.sampling_rate, order - 1, pair is StepPair.ADD_REMOVE
    if not _by_order(phase, pair, order):
        p = max(p, _LEAST_RATE)
    stays, ratio = math.log1p(-p), 1 / _noise(phase, pair)
    if backward and added:
        return -stays
    if ratio > _LARGEST_RATIO:
        return math.inf
    grown = math.log(p) + order / 2 * ratio**2 - (stays if pair is StepPair.REPLACE_ONE else 0.0)
    if less * grown > _LARGE:
        return float(np.logaddexp(order * stays if added else stays, math.log(p) + less * grown)) / less
    rest = (1 - p) * math.expm1(less * stays) if added else 0.0
    return max(0.0, math.log1p(rest + p * math.expm1(less * grown)) / less)


def _noise(phase: Phase, pair: StepPair) -> float:
    # Two means 2 apart at noise s are two means 1 apart at noise s/2.
    return phase.noise_multiplier / (2 if pair is StepPair.FIXED_SIZE else 1)


# --- From Renyi divergences to epsilon ---
#
# A Renyi guarantee bounds the divergence, in nats and for both orders of two neighbours, at one or several orders above 1.
# Every conversion from it holds for all mechanisms that meet it; with several orders the best one counts.


def _least(renyi: Callable[[Floats], Floats], *, delta: float, logs: Floats) -> float:
    """Return the least epsilon of all orders, near these log(order - 1): D + log(1 - 1/order) - log(order delta)/(order - 1).

    Every order gives a bound, so the search need not be perfect (Canonne, Kamath and Steinke 2020, Proposition 12).
    """
    if delta == 0:
        return math.inf

    def at(logs: Floats) -> Floats:
        with np.errstate(over="ignore"):
            less = np.exp(logs)
            order = 1 + less
            return np.asarray(renyi(order) + np.log1p(-1 / order) - (np.log(order) + math.log(delta)) / less)

    values = at(logs)
    best = int(values.argmin())
    if not math.isfinite(values[best]):
        return math.inf
    around = logs[max(best - 1, 0)], logs[min(best + 1, logs.size - 1)]
    result = scipy.optimize.minimize_scalar(
        lambda log: at(np.array([log])).item(), bounds=around, method="bounded"
    )
    return max(0.0, float(min(result.fun, values[best])))


# Of the search for the best order: how far it reaches in logarithms, and in how many steps.
_SPREAD, _ORDERS = math.log(1e4), 201


def epsilon_from_rho(rho: float, *, delta: float) -> float:
    """Return an epsilon that rho-zCDP implies at this delta, by the best of all orders.

    Args:
        rho: Above 0: Renyi divergences are at most rho times their order.
        delta: In [0, 1); 0 gives infinity.

    Raises:
        InputError: A number out of range.

    Source: Bun and Steinke 2016; Canonne, Kamath and Steinke 2020, Proposition 12 (its Proposition 7 at the best order).
    Where the total variation is at most delta, epsilon is 0: Pinsker, and Bretagnolle and Huber 1979.

    >>> round(epsilon_from_rho(0.5, delta=1e-5), 4)  # a Gaussian of mu 1 has 4.3772
    4.7284
    """
    rho, delta = validate.positive("rho", rho), validate.fraction("delta", delta, zero=True)
    if delta >= min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho))):
        return 0.0
    # About sqrt(log(1/delta)/rho) above 1.
    centre = 0.5 * (math.log(max(-math.log(delta), 1e-4)) - math.log(rho)) if delta else 0.0
    logs = np.linspace(centre - _SPREAD, centre + _SPREAD, _ORDERS)
    return _least(lambda orders: rho * orders, delta=delta, logs=logs)
