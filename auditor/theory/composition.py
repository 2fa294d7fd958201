"""Composition theorems: what many (epsilon, delta)-DP steps promise together.

Each theorem speaks of steps that may depend on what earlier steps gave, with epsilons and deltas fixed beforehand.
`auditor.theory.compare_compositions` sets them side by side for a training run.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from auditor import _validate
from auditor.errors import InputError
from auditor.theory.amplification import EpsilonDelta
from auditor.values import Floats

__all__ = ["advanced", "advanced_sharper", "basic", "optimal"]

# Answers that together have less than e^-800 of the mass are left out: so many standard deviations, by Hoeffding.
_REACH = 20.0


def basic(epsilon: Any, *, delta: Any = 0.0, steps: Any = 1) -> EpsilonDelta:
    """Return what steps promise by basic composition: the sums of their epsilons and of their deltas.

    Args:
        epsilon: Of one step, in nats, 0 or more; or one for each kind of step.
        delta: Of one step, in [0, 1]; likewise.
        steps: How many, 1 or more; or how many of each kind.

    Raises:
        InputError: A number out of range, or vectors of different lengths.

    Source: Dwork and Roth 2014, Theorem 3.16.

    >>> basic([0.5, 1.0], delta=0.0, steps=[10, 2])
    EpsilonDelta(epsilon=7.0, delta=0.0)
    """
    epsilons, deltas, counts = _kinds(epsilon, delta, steps)
    return EpsilonDelta(basic_epsilon(epsilons, counts), _total(deltas, counts))


def advanced(epsilon: Any, *, delta: Any = 0.0, steps: Any = 1, slack: float) -> EpsilonDelta:
    """Return what steps promise by advanced composition, in its first form.

    epsilon sqrt(2 T ln(1/d')) + T epsilon (e^epsilon - 1) at T delta + d'; for different steps the sums over them of
    epsilon^2 under the root and of epsilon (e^epsilon - 1). The blog post prints epsilon inside the root (erratum: for
    the example below that would be 16.23).

    Args:
        epsilon: Of one step, in nats, 0 or more; or one for each kind of step.
        delta: Of one step, in [0, 1]; likewise.
        steps: How many, 1 or more; or how many of each kind.
        slack: d', what is added to the deltas, in (0, 1).

    Raises:
        InputError: A number out of range, or vectors of different lengths.

    Source: Dwork, Rothblum and Vadhan 2010, Theorem III.3.

    >>> round(advanced(0.1, steps=100, slack=1e-5).epsilon, 6)
    5.850235
    """
    epsilons, deltas, counts = _kinds(epsilon, delta, steps)
    slack = _validate.fraction("slack", slack)
    return EpsilonDelta(advanced_epsilon(epsilons, counts, slack), min(1.0, _total(deltas, counts) + slack))


def advanced_sharper(epsilon: Any, *, delta: Any = 0.0, steps: Any = 1, slack: float) -> EpsilonDelta:
    """Return what steps promise by advanced composition, with the largest mean that a step's loss can have.

    epsilon sqrt(2 k ln(1/d')) + k epsilon (e^epsilon - 1)/(e^epsilon + 1) at k delta + d'; for different steps sums as in
    `advanced`. The lecture slides print the second term without its factor epsilon (erratum: for the example below that
    would be 9.794).

    Args:
        epsilon: Of one step, in nats, 0 or more; or one for each kind of step.
        delta: Of one step, in [0, 1]; likewise.
        steps: How many, 1 or more; or how many of each kind.
        slack: d', what is added to the deltas, in (0, 1).

    Raises:
        InputError: A number out of range, or vectors of different lengths.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 3.4 (the last of its three).

    >>> round(advanced_sharper(0.1, steps=100, slack=1e-5).epsilon, 6)
    5.29811
    """
    epsilons, deltas, counts = _kinds(epsilon, delta, steps)
    slack = _validate.fraction("slack", slack)
    return EpsilonDelta(sharper_epsilon(epsilons, counts, slack), min(1.0, _total(deltas, counts) + slack))


def optimal(epsilon: float, *, delta: float = 0.0, steps: int, total_delta: float) -> EpsilonDelta:
    """Return the best that equal (epsilon, delta)-DP steps promise at a wanted delta: no theorem can say more.

    The worst such step gives itself away with probability delta and is randomised response otherwise. So

        1 - total_delta = (1 - delta)^k (1 - d),  d = sum over l of [P_l - e^total P_l e^-((2l - k) epsilon)]_+,

    where P_l is the chance of l truthful answers among k, each truthful with probability e^epsilon / (1 + e^epsilon);
    total is found exactly, for any delta and not only at the multiples of epsilon in the paper.

    Args:
        epsilon: Of one step, in nats, 0 or more.
        delta: Of one step, in [0, 1).
        steps: k, 1 or more.
        total_delta: Of all steps, in [0, 1).

    Returns:
        The smallest epsilon at ``total_delta``; infinity if the steps' deltas alone exceed it.

    Raises:
        InputError: A number out of range.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 3.3.

    >>> round(optimal(0.1, steps=100, total_delta=1e-5).epsilon, 6)
    4.306791
    """
    epsilon = _validate.nonnegative("epsilon", epsilon)
    delta = _validate.fraction("delta", delta, zero=True)
    steps = _validate.at_least("steps", steps, least=1)
    total = _validate.fraction("total_delta", total_delta, zero=True)
    return EpsilonDelta(optimal_epsilon(epsilon, delta, steps, total), total)


def basic_epsilon(epsilons: Floats, counts: Floats) -> float:
    """Return the sum over kinds; unlike the public function, epsilons may be infinite."""
    with np.errstate(over="ignore"):
        return float(np.sum(counts * epsilons))


def advanced_epsilon(epsilons: Floats, counts: Floats, slack: float) -> float:
    """Return the first form over kinds; epsilons may be infinite."""
    with np.errstate(over="ignore"):
        return _deviation(epsilons, counts, slack) + float(np.sum(counts * epsilons * np.expm1(epsilons)))


def sharper_epsilon(epsilons: Floats, counts: Floats, slack: float) -> float:
    """Return the second form over kinds; epsilons may be infinite."""
    # (e^eps - 1)/(e^eps + 1) = tanh(eps/2)
    with np.errstate(over="ignore"):
        return _deviation(epsilons, counts, slack) + float(np.sum(counts * epsilons * np.tanh(epsilons / 2)))


def optimal_epsilon(epsilon: float, delta: float, steps: int, total: float) -> float:
    """Return the optimal epsilon; unlike in the public function, epsilon may be infinite."""
    # What is left for randomised response: 1 - (1 - total)/(1 - delta)^k.
    left = -math.expm1(math.log1p(-total) - steps * math.log1p(-delta)) if delta < 1 else -1.0
    if left < 0 or math.isinf(epsilon):
        return math.inf
    if left == 0 or epsilon == 0:
        return steps * epsilon
    losses, log_first, log_second = _truthful(epsilon, steps)
    first = np.logaddexp.accumulate(log_first[::-1])[::-1]
    second = np.logaddexp.accumulate(log_second[::-1])[::-1]
    # delta at each loss, falling; it is linear in e^total between two of them.
    deltas = np.exp(first) * -np.expm1(np.minimum(losses + second - first, 0.0))
    at = min(int(np.searchsorted(-deltas, -left)), losses.size - 1)
    log_share = math.log(left) - float(first[at])
    if log_share >= 0:
        return 0.0
    return max(0.0, float(first[at] - second[at]) + math.log(-math.expm1(log_share)))


def _truthful(epsilon: float, steps: int) -> tuple[Floats, Floats, Floats]:
    """Return the positive losses of randomised response, ascending, and the two laws' log-masses there."""
    from scipy.special import gammaln

    mean, reach = steps / (1 + math.exp(-epsilon)), _REACH * math.sqrt(steps)
    lowest = max(steps // 2 + 1, math.floor(mean - reach))
    truthful = np.arange(lowest, min(steps, math.ceil(mean + reach)) + 1, dtype=np.float64)
    losses = (2 * truthful - steps) * epsilon
    log_choices = gammaln(steps + 1) - gammaln(truthful + 1) - gammaln(steps - truthful + 1)
    log_first = log_choices - steps * np.logaddexp(0.0, -epsilon) - (steps - truthful) * epsilon
    return losses, log_first, log_first - losses


def _deviation(epsilons: Floats, counts: Floats, slack: float) -> float:
    largest = float(epsilons.max())
    if largest in {0.0, math.inf}:
        return largest
    # Scaled, so that no square is lost.
    return largest * math.sqrt(-2 * math.log(slack) * float(np.sum(counts * (epsilons / largest) ** 2)))


def _total(deltas: Floats, counts: Floats) -> float:
    return min(1.0, float(np.sum(counts * deltas)))


def _kinds(epsilon: Any, delta: Any, steps: Any) -> tuple[Floats, Floats, Floats]:
    """Epsilons, deltas and numbers of steps of each kind, checked and of one length."""
    columns = {"epsilon": _listed(epsilon), "delta": _listed(delta), "steps": _listed(steps)}
    lengths = {name: len(column) for name, column in columns.items() if len(column) != 1}
    if 0 in lengths.values():
        raise InputError(f"{next(iter(lengths))} must have one number for each kind of step, got none.")
    _validate.same_length(tuple(lengths), tuple(lengths.values()))
    size = max(lengths.values(), default=1)
    checked = (
        [_validate.nonnegative("epsilon", value) for value in columns["epsilon"]],
        [_validate.fraction("delta", value, zero=True, one=True) for value in columns["delta"]],
        [float(_validate.at_least("steps", value, least=1)) for value in columns["steps"]],
    )
    epsilons, deltas, counts = (np.broadcast_to(np.array(column), (size,)) for column in checked)
    return epsilons, deltas, counts


def _listed(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]
