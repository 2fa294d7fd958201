"""Compositions of DP-SGD's steps: bounds on their epsilon and delta by dp_accounting.

The pair of output distributions of a step is described in `_step_pairs`. Every step is such a pair, whatever the
earlier steps gave.
"""

import heapq
import inspect
import math
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from auditor.theory._loss_grid import TAIL, Grid
from auditor.theory._merging import Kind
from auditor.theory._step_deltas import rounded_up
from auditor.theory._step_pairs import StepPair
from auditor.training import Phase
from auditor.values import Floats

__all__ = [
    "accountant_deltas",
    "accountant_epsilon",
    "accountant_has_replace_one",
    "reaches",
]

# A Fourier transform raised to the power T carries rounding errors into delta: at most T x 1e-17 was seen against
# the exact Gaussian composition (noise 1 to 3000, up to 1e6 steps). Five times that is taken off delta beforehand.
_ROUNDING_PER_STEP = 5e-17
# The same for each convolution of two kinds of steps: less than 1e-15 for up to 160 kinds was seen.
_ROUNDING_PER_KIND = 5e-16


def accountant_has_replace_one() -> bool:
    """Return whether the installed dp_accounting knows replace-one neighbours for the sampled Gaussian."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return bool("neighboring_relation" in inspect.signature(pld.from_gaussian_mechanism).parameters)


def reaches(kinds: tuple[Kind, ...], *, delta: float) -> bool:
    """Return whether delta stands far enough above the tail cut and the rounding error of the composition."""
    return delta >= max(1e-13, 10 * _rounding(kinds))


def _rounding(kinds: tuple[Kind, ...]) -> float:
    return _ROUNDING_PER_STEP * sum(kind.steps for kind in kinds) + _ROUNDING_PER_KIND * (len(kinds) - 1)


def accountant_epsilon(kinds: tuple[Kind, ...], *, delta: float, pair: StepPair, grid: Grid) -> float:
    """Return an upper bound on epsilon by privacy loss distributions, discretised pessimistically; infinity if none."""
    composed = _composed(kinds, pair, grid)
    if composed is None:
        return math.inf
    target = delta - _rounding(kinds)
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(composed.get_epsilon_for_delta(target))
        # It divides by a sum of e^-L, which overflows between 709 and 745 nats.
        return 746.0 if math.isinf(value) and composed.get_delta_for_epsilon(746.0) <= target else value


@lru_cache(maxsize=8)
def accountant_deltas(
    kinds: tuple[Kind, ...], *, pair: StepPair, grid: Grid, points: int
) -> tuple[Floats, Floats] | None:
    """Return epsilons from 0 to where delta drowns in rounding error, and upper bounds on delta there; null if none."""
    composed = _composed(kinds, pair, grid)
    if composed is None:
        return None
    rounding = _rounding(kinds)
    least = min(max(1e-13, 10 * rounding), 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        furthest = min(float(composed.get_epsilon_for_delta(least)), 700.0)
        # Dense near 0, where most of a curve's bend is.
        epsilons = furthest * np.linspace(0.0, 1.0, points) ** 2
        if accountant_has_replace_one():
            # One at a time: for many at once it subtracts running sums, which may round a delta down.
            deltas = np.array([float(composed.get_delta_for_epsilon(value)) for value in epsilons.tolist()])
        else:
            # dp_accounting 0.4 has one way for one and for many, a loop over all losses.
            deltas = np.asarray(composed.get_delta_for_epsilon(epsilons.tolist()), dtype=np.float64)
    deltas = np.clip(deltas + rounding, 0.0, 1.0)
    for array in (epsilons, deltas):  # they are handed out again
        array.setflags(write=False)
    return epsilons, deltas


# Epsilon, advantage and every rate of one run follow from one composition.
@lru_cache(maxsize=4)
def _composed(kinds: tuple[Kind, ...], pair: StepPair, grid: Grid) -> Any:
    """Return the privacy loss distribution of all steps, discretised pessimistically; null if there is none."""
    if len(kinds) == 1:
        return _one_kind(kinds[0], pair, grid)
    tail = TAIL / len(kinds)
    # The fewest steps first, so that the long convolutions are few.
    order = count()
    queue = []
    for kind, inner in zip(kinds, grid.inner, strict=True):
        step = rounded_up(kind, pair, spacing=grid.spacing)
        queue.append((kind.steps, next(order), _self_compose(step, kind.steps, inner, tail)))
    heapq.heapify(queue)
    while len(queue) > 1:
        (few, _, one), (more, _, other) = heapq.heappop(queue), heapq.heappop(queue)
        heapq.heappush(queue, (few + more, next(order), one.compose(other, tail)))
    return queue[0][2]


def _one_kind(kind: Kind, pair: StepPair, grid: Grid) -> Any:
    try:
        step = (
            rounded_up(kind, pair, spacing=grid.spacing)
            if pair is StepPair.FIXED_SIZE
            else _sampled_step(kind.least_private, pair, grid.spacing)
        )
    except ValueError:  # dp_accounting 0.4 refuses deltas that rounding put out of order
        return None
    return _self_compose(step, kind.steps, grid.inner[0], TAIL)


def _sampled_step(phase: Phase, pair: StepPair, spacing: float) -> Any:
    """Return the privacy loss distribution of one step with batches drawn by coins."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    # Add/remove is the default everywhere; dp_accounting 0.4 has no such argument.
    relation = (
        {"neighboring_relation": NeighboringRelation.REPLACE_ONE} if pair is StepPair.REPLACE_ONE else {}
    )
    return pld.from_gaussian_mechanism(
        phase.noise_multiplier,
        sampling_prob=phase.sampling_rate,
        value_discretization_interval=spacing,
        **relation,
    )


def _self_compose(step: Any, steps: int, inner: int, tail: float) -> Any:
    """Return the composition of equal steps, by way of a composition of ``inner`` of them."""
    if inner == 1:
        return step.self_compose(steps, tail)
    outer, rest = divmod(steps, inner)
    composed = step.self_compose(inner, tail / outer).self_compose(outer, tail)
    return composed.compose(step.self_compose(rest, tail)) if rest else composed
