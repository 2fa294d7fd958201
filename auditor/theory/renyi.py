"""Renyi divergences of DP-SGD, and what they promise: an epsilon, and an advantage by Pinsker's inequality."""

import math
from typing import overload

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory._merging import Kind, kinds_of
from auditor.theory._renyi_quadrature import kullback_leibler, log_moment_excess
from auditor.theory._step_pairs import StepPair
from auditor.training import Phase
from auditor.values import Claim, Floats

__all__ = ["MOST_SINGLY", "phases_epsilon", "pinsker_renyi", "renyi_divergence", "renyi_epsilon"]

# So many different steps are taken one by one: at every order, or at the best ones only. It takes a second or two.
_FEW = 200
MOST_SINGLY = 2_000
_NEARBY = np.log([0.8, 1.0, 1.25, 1.6])
_FIXED_SIZE = "batches of a fixed size are accounted for replaced records only"
# Logarithms of order - 1: from where little noise is best accounted to where little leakage is.
_SEARCH = np.log(np.geomspace(1e-3, 1e5, 25))
# Below, a step's losses leave the range in which quadrature says more than the bound without sampling.
_LEAST_NOISE = 1e-6
# The square of more leaves the range of a double.
_LARGEST_RATIO = 1e150


@overload
def renyi_divergence(training: DPSGD, *, order: float, adjacency: Adjacency = ...) -> float: ...
@overload
def renyi_divergence(
    training: DPSGD, *, order: npt.ArrayLike, adjacency: Adjacency = ...
) -> float | Floats: ...
def renyi_divergence(
    training: DPSGD, *, order: npt.ArrayLike, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> float | Floats:
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
    _validate.instance("training", training, [DPSGD])
    relation = _relation(adjacency)
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        raise InputError(f"{_FIXED_SIZE}; ask for adjacency 'replace-one'.")
    orders = np.asarray(order, dtype=np.float64)
    if not (np.isfinite(orders) & (orders > 1)).all():
        raise InputError(f"order must be finite and above 1, got {order!r}.")
    pair = StepPair.of(training, relation)
    parts = [phase.steps * _phase(phase, pair, orders.ravel()) for phase in training.phases]
    found: Floats = np.sum(parts, axis=0).reshape(orders.shape)
    return found if found.shape else float(found)


def renyi_epsilon(training: DPSGD, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the epsilon that follows from the Renyi divergences at many orders: the RDP (moments) accountant.

    Proven, at every delta. In ordinary settings `auditor.theory.epsilon` is tighter; where privacy loss distributions
    reach their numerical limits this may be, and then it is what `auditor.theory.epsilon` returns.

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
    _validate.instance("training", training, [DPSGD])
    delta = _validate.fraction("delta", delta, zero=True)
    relation = _relation(adjacency)
    value: float | None = None
    note = _capitalised(_FIXED_SIZE)
    if not (training.fixed_size and relation is Adjacency.ADD_REMOVE):
        value = phases_epsilon(training.phases, pair=StepPair.of(training, relation), delta=delta)
        note = "An upper bound for an attacker who sees every iterate, by the best of many orders."
    return Claim(
        "epsilon", value, delta, relation, "Renyi divergences (RDP accountant)", proven=True, note=note
    )


def phases_epsilon(phases: tuple[Phase, ...], *, pair: StepPair, delta: float) -> float:
    """Return the smallest bound on epsilon over the orders: every order gives one, so the search need not be perfect."""
    from scipy.optimize import minimize_scalar

    if delta == 0:
        return math.inf
    single = tuple(Kind(((1.0, phase),), phase.steps) for phase in phases)
    kinds = single if len(phases) <= _FEW else kinds_of(phases, pair=pair)

    def bound(kinds: tuple[Kind, ...], log_excess: Floats) -> Floats:
        orders = 1 + np.exp(log_excess)
        gain = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
        return np.asarray(_divergences(kinds, pair, orders) + gain)

    values = bound(kinds, _SEARCH)
    best = int(values.argmin())
    around = _SEARCH[max(best - 1, 0)], _SEARCH[min(best + 1, _SEARCH.size - 1)]
    if not math.isfinite(values[best]):
        return math.inf
    found = minimize_scalar(lambda at: bound(kinds, np.array([at])).item(), bounds=around, method="bounded")
    at, least = (found.x, found.fun) if found.fun < values[best] else (_SEARCH[best], values[best])
    if _FEW < len(phases) <= MOST_SINGLY:
        # Merged steps say about which orders are best, and at these every step is taken as it is.
        least = min(least, float(bound(single, at + _NEARBY).min()))
    return max(0.0, float(least))


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
    _validate.instance("training", training, [DPSGD])
    relation = _relation(adjacency)
    method = "Pinsker's inequality with the Kullback-Leibler divergence, sqrt(D/2)"
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        note = _capitalised(_FIXED_SIZE)
        return Claim("advantage", None, None, relation, method, proven=True, note=note)
    pair = StepPair.of(training, relation)
    both = np.array([_step_kullback_leibler(phase, pair) for phase in training.phases])
    total = min(float(np.sum(np.array([p.steps for p in training.phases]) * column)) for column in both.T)
    note = "An upper bound; loose, most of all where the advantage is large."
    return Claim("advantage", min(1.0, math.sqrt(total / 2)), None, relation, method, proven=True, note=note)


def _relation(adjacency: Adjacency) -> Adjacency:
    return Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))


def _step_kullback_leibler(phase: Phase, pair: StepPair) -> tuple[float, float]:
    if phase.sampling_rate == 1 or phase.noise_multiplier < _LEAST_NOISE:
        # Convex in the pair of laws, so at most the share of steps that draw the record; exact at rate 1.
        return (phase.sampling_rate * _unsampled(phase, pair),) * 2
    return kullback_leibler(phase, pair)


def _unsampled(phase: Phase, pair: StepPair) -> float:
    """Return distance^2 / (2 s^2): a step's divergence per order; infinity where that overflows."""
    ratio = pair.distance / phase.noise_multiplier
    return ratio**2 / 2 if ratio < _LARGEST_RATIO else math.inf


def _divergences(kinds: tuple[Kind, ...], pair: StepPair, orders: Floats) -> Floats:
    """Return the sum of all steps' divergences at these orders."""
    return np.asarray(np.sum([kind.steps * _step(kind, pair, orders) for kind in kinds], axis=0))


def _step(kind: Kind, pair: StepPair, orders: Floats) -> Floats:
    if len(kind.parts) == 1:
        return _phase(kind.least_private, pair, orders)
    # The moments e^((a-1) D) of a coin that is seen are averages, nearly all the larger one where it overflows.
    logs = [math.log(weight) + (orders - 1) * _phase(phase, pair, orders) for weight, phase in kind.parts]
    return np.asarray(np.logaddexp(*logs) / (orders - 1))


def _phase(phase: Phase, pair: StepPair, orders: Floats) -> Floats:
    whole: Floats = orders * _unsampled(phase, pair)
    if phase.sampling_rate == 1 or phase.noise_multiplier < _LEAST_NOISE:
        return whole
    excess = np.array([log_moment_excess(phase, pair, order=order) for order in orders.tolist()])
    # Never above what holds without sampling.
    return np.asarray(np.minimum(whole, np.logaddexp(0.0, excess) / (orders - 1)))


def _capitalised(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."
