"""Composition theorems: the joint promise of many (epsilon, delta)-DP steps, and all theorems side by side for one run.

Each theorem speaks of steps that may depend on the results of earlier steps, with epsilons and deltas fixed beforehand.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaln

from auditor.core import DPSGD, Adjacency, Claim, Floats, as_stated, validate
from auditor.theory import gaussian
from auditor.theory.accountant import EXACT, epsilon
from auditor.theory.renyi import renyi_epsilon
from auditor.theory.steps import step_epsilons

# --- One training run, by every composition theorem ---

# Shares of delta that the steps themselves may take, tried one after the other; each is valid, so the best counts.
_SHARES = (0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 1.0)
_BASIC = "basic composition"
_ADVANCED = "advanced composition (Dwork, Rothblum and Vadhan 2010)"
_SHARPER = "advanced composition (Kairouz, Oh and Viswanath 2015, Theorem 3.4)"
_OPTIMAL = "optimal composition of (epsilon, delta) steps (Kairouz, Oh and Viswanath 2015, Theorem 3.3)"
_RENYI = "Renyi divergences (RDP accountant)"
_EVERYONE = "Gaussian differential privacy without sampling"
_LIMIT = "Gaussian differential privacy by the central limit theorem"
_METHODS = (_BASIC, _ADVANCED, _SHARPER, _OPTIMAL, _RENYI, EXACT, _EVERYONE, _LIMIT)
_VACUOUS = "Infinite: the theorem promises nothing here."
_Theorem = Callable[[Floats, Floats, float, float], float]
"""From epsilons of the kinds of step, their counts, the delta of one step and all of delta to a total epsilon."""


@gaussian.as_accounted
def compare_compositions(
    training: DPSGD, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> tuple[Claim, ...]:
    """Return the epsilon of one training run by every composition theorem, side by side.

    The theorems about (epsilon, delta) steps are given each step's exact (epsilon, delta), sampling included: of the
    pair of laws that the step gives with and without the record, or with one of two records. Every step gets the same
    share of delta: all of it by basic composition; by the others as much as is best among fixed shares from 1% on, and
    the rest is the theorem's own.

    Args:
        training: Noise multipliers, sampling rates and steps.
        delta: In [0, 1); at 0 every epsilon is infinite.
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``epsilon`` claims, each with its ``method``: basic; advanced in two forms; optimal for (epsilon, delta) steps;
        Renyi divergences; the exact law of the privacy loss (`auditor.theory.epsilon`); Gaussian DP without sampling; and,
        if there is sampling, Gaussian DP by its central limit theorem. Only the last one is not proven, and says where
        it is on the unsafe side. All are None for batches of a fixed size and added or removed records.

    Raises:
        InputError: The run is no DPSGD, delta is outside [0, 1), or the adjacency is unknown.

    Source: Dwork and Roth 2014; Kairouz, Oh and Viswanath 2015; Balle, Barthe and Gaboardi 2018; Dong, Roth and Su 2022.

    >>> claims = compare_compositions(DPSGD(0.6, 0.01, 100), delta=1e-5)
    >>> [round(claims[place].value, 3) for place in (0, 5, 7)]  # basic, privacy losses, central limit
    [343.107, 3.816, 1.505]
    """
    relation, delta = gaussian.relation_of(training, adjacency), validate.fraction("delta", delta, zero=True)
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        return tuple(
            Claim("epsilon", None, delta, relation, method, proven=True, note=gaussian.FIXED_SIZE)
            for method in _METHODS
        )
    of_steps = partial(_of_steps, training, relation, delta)
    exact = epsilon(training, delta=delta, adjacency=relation)
    rows = (
        of_steps(_BASIC, lambda epsilons, counts, *_: basic(epsilons, steps=counts), (1.0,)),
        of_steps(_ADVANCED, _with_slack(advanced)),
        of_steps(_SHARPER, _with_slack(advanced_sharper)),
        of_steps(_OPTIMAL, _worst_step),
        renyi_epsilon(training, delta=delta, adjacency=relation),
        exact,
        _gaussian(_EVERYONE, gaussian.mu_without_sampling(training, adjacency=relation), delta),
    )
    limit = gaussian.mu_clt(training, adjacency=relation)
    if limit.proven:  # no sampling: the row before is exact
        return rows
    return (*rows, _gaussian(_LIMIT, limit, delta, exact=exact.value))


def _of_steps(
    training: DPSGD,
    relation: Adjacency,
    delta: float,
    method: str,
    theorem: _Theorem,
    shares: tuple[float, ...] = _SHARES,
) -> Claim:
    """Return the theorem's claim of the steps, as (epsilon, delta) mechanisms, at the best share of delta."""
    noise, rates, counts = gaussian.columns(training)
    each = np.array(shares) * delta / training.steps
    epsilons = step_epsilons(noise, rates, gaussian.StepPair.of(training, relation), deltas=each[:, None])
    totals = [
        theorem(row, counts, one, delta) if one > 0 else math.inf
        for row, one in zip(epsilons, each.tolist(), strict=True)
    ]
    best = int(np.argmin(totals))
    note = _VACUOUS
    if math.isfinite(totals[best]):
        most = as_stated(float(epsilons[best].max()))
        note = (
            f"Each step's exact (epsilon, delta), sampling included: at most epsilon {most} at delta"
            f" {as_stated(float(each[best]))}."
        )
        if theorem is _worst_step and counts.size > 1:
            note += " Every step counts as the worst one, so it may be looser than the others."
    return Claim("epsilon", totals[best], delta, relation, method, proven=True, note=note)


def _with_slack(form: Callable[..., float]) -> _Theorem:
    """Give a form of advanced composition the rest of delta that the steps leave."""

    def theorem(epsilons: Floats, counts: Floats, each: float, total: float) -> float:
        slack = total - each * float(counts.sum())
        return form(epsilons, steps=counts, slack=slack) if slack > 0 else math.inf

    return theorem


def _worst_step(epsilons: Floats, counts: Floats, each: float, total: float) -> float:
    # (epsilon, delta)-DP is also (more than epsilon, delta)-DP, and the theorem needs equal steps.
    return optimal(float(epsilons.max()), delta=each, steps=int(counts.sum()), total_delta=total)


def _gaussian(method: str, mu: Claim, delta: float, *, exact: float | None = None) -> Claim:
    """Return the epsilon that a mu implies."""
    largest = math.inf if mu.value is None else mu.value
    value = gaussian.gaussian_epsilon(largest, delta=delta)
    note = f"mu is {as_stated(largest)}. {mu.note}".rstrip()
    if math.isinf(value):
        note = f"{_VACUOUS} {mu.note}".rstrip()
    elif exact is not None and value < exact < math.inf:
        note += f" Here it lies {as_stated(exact - value)} below the exact one."
    return Claim("epsilon", value, delta, mu.adjacency, method, proven=mu.proven, note=note)


# --- The theorems ---

# Answers that together have less than e^-800 of the mass are left out: so many standard deviations, by Hoeffding.
_REACH = 20.0


def basic(epsilons: Any, *, steps: Any) -> float:
    """Return the promise of several steps by basic composition: the sum of their epsilons, at the sum of their deltas.

    Args:
        epsilons: Epsilon of one step, in nats, 0 or more; or one for each kind of step.
        steps: Number of steps, 1 or more; or the number of each kind.

    Source: Dwork and Roth 2014, Theorem 3.16.

    >>> basic([0.5, 1.0], steps=[10, 2])
    7.0
    """
    with np.errstate(over="ignore"):
        return float(np.sum(np.multiply(steps, epsilons)))


def advanced(epsilons: Any, *, steps: Any, slack: float) -> float:
    """Return the promise of several steps by advanced composition, in its first form, at the sum of their deltas and the slack.

    epsilon sqrt(2 T ln(1/d')) + T epsilon (e^epsilon - 1) at T delta + d'; for different steps the sums over them of
    epsilon^2 under the root and of epsilon (e^epsilon - 1). The blog post prints epsilon inside the root (erratum: for
    the example below that would be 16.23).

    Args:
        epsilons: Epsilon of one step, in nats, 0 or more; or one for each kind of step.
        steps: Number of steps, 1 or more; or the number of each kind.
        slack: d', in (0, 1).

    Source: Dwork, Rothblum and Vadhan 2010, Theorem III.3.

    >>> round(advanced(0.1, steps=100, slack=1e-5), 6)
    5.850235
    """
    return _advanced(np.asarray(epsilons), np.asarray(steps), slack=slack, mean=np.expm1)


def advanced_sharper(epsilons: Any, *, steps: Any, slack: float) -> float:
    """Return the promise of several steps by advanced composition, with the largest mean that a step's loss can have.

    epsilon sqrt(2 k ln(1/d')) + k epsilon (e^epsilon - 1)/(e^epsilon + 1) at k delta + d'; for different steps sums as in
    `advanced`. The lecture slides print the second term without its factor epsilon (erratum: for the example below that
    would be 9.794).

    Args:
        epsilons: Epsilon of one step, in nats, 0 or more; or one for each kind of step.
        steps: Number of steps, 1 or more; or the number of each kind.
        slack: d', in (0, 1).

    Source: Kairouz, Oh and Viswanath 2015, Theorem 3.4 (the last of its three).

    >>> round(advanced_sharper(0.1, steps=100, slack=1e-5), 6)
    5.29811
    """
    # (e^eps - 1)/(e^eps + 1) = tanh(eps/2)
    return _advanced(np.asarray(epsilons), np.asarray(steps), slack=slack, mean=lambda x: np.tanh(x / 2))


def _advanced(epsilons: Floats, counts: Floats, *, slack: float, mean: Callable[[Floats], Floats]) -> float:
    """Return advanced composition with this mean of a step's loss, over its epsilon."""
    total = float(epsilons.max())
    with np.errstate(over="ignore"):
        if 0 < total < math.inf:  # scaled, so that no square is lost
            squares = float(np.sum(counts * (epsilons / total) ** 2))
            total *= math.sqrt(-2 * math.log(slack) * squares)
        return total + float(np.sum(counts * epsilons * mean(epsilons)))


def optimal(epsilon: float, *, delta: float = 0.0, steps: int, total_delta: float) -> float:
    """Return the best that equal (epsilon, delta)-DP steps promise at a wanted delta: no theorem can say more.

    The worst such step gives itself away with probability delta and is randomised response otherwise. So

        1 - total_delta = (1 - delta)^k (1 - d),  d = sum over l of [P_l - e^total P_l e^-((2l - k) epsilon)]_+,

    where P_l is the chance of l truthful answers among k, each truthful with probability e^epsilon / (1 + e^epsilon);
    total is found exactly, for any delta and not only at the multiples of epsilon in the paper.

    Args:
        epsilon: Epsilon of one step, in nats, 0 or more.
        delta: Delta of one step, in [0, 1].
        steps: k, 1 or more.
        total_delta: Total delta of all steps, in [0, 1).

    Returns:
        The smallest epsilon at ``total_delta``; infinity if the steps' deltas alone exceed it.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 3.3.

    >>> round(optimal(0.1, steps=100, total_delta=1e-5), 6)
    4.306791
    """
    # The rest for randomised response: 1 - (1 - total)/(1 - delta)^k.
    left = -math.expm1(math.log1p(-total_delta) - steps * math.log1p(-delta)) if delta < 1 else -1.0
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
    mean, reach = steps / (1 + math.exp(-epsilon)), _REACH * math.sqrt(steps)
    lowest = max(steps // 2 + 1, math.floor(mean - reach))
    truthful = np.arange(lowest, min(steps, math.ceil(mean + reach)) + 1, dtype=np.float64)
    losses = (2 * truthful - steps) * epsilon
    log_choices = gammaln(steps + 1) - gammaln(truthful + 1) - gammaln(steps - truthful + 1)
    log_first = log_choices - steps * np.logaddexp(0.0, -epsilon) - (steps - truthful) * epsilon
    return losses, log_first, log_first - losses
