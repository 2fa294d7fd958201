"""The Poisson-sampled Gaussian mechanism, composed: bounds on its epsilon by dp_accounting.

One step's pair of output distributions, noise s and rate p (the part along one record's clipped gradient):
add/remove (1-p) N(0, s^2) + p N(1, s^2) against N(0, s^2); replace-one (1-p) N(0, s^2) + p N(1, s^2) against
(1-p) N(0, s^2) + p N(-1, s^2). Every step is such a pair, whatever the earlier steps gave.
"""

import inspect
import math
from typing import Any

import numpy as np

from auditor.choices import DPSGD, Adjacency
from auditor.theory._loss_grid import TAIL, Grid
from auditor.values import Floats

__all__ = [
    "accountant_deltas",
    "accountant_epsilon",
    "accountant_has_replace_one",
    "reaches",
    "renyi_epsilon",
]

# A Fourier transform raised to the power T carries rounding errors into delta: at most T x 1e-17 was seen against
# the exact Gaussian composition (noise 1 to 3000, up to 1e6 steps). Five times that is taken off delta beforehand.
_ROUNDING_PER_STEP = 5e-17


def accountant_has_replace_one() -> bool:
    """Return whether the installed dp_accounting knows replace-one neighbours for the sampled Gaussian."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return "neighboring_relation" in inspect.signature(pld.from_gaussian_mechanism).parameters


def reaches(training: DPSGD, *, delta: float) -> bool:
    """Return whether delta stands far enough above the tail cut and the rounding error of the composition."""
    return delta >= max(1e-13, 10 * _ROUNDING_PER_STEP * training.steps)


def accountant_epsilon(training: DPSGD, *, delta: float, adjacency: Adjacency, grid: Grid) -> float:
    """Return an upper bound on epsilon by privacy loss distributions, discretised pessimistically; infinity if none."""
    composed = _composed(training, adjacency, grid)
    if composed is None:
        return math.inf
    target = delta - _ROUNDING_PER_STEP * training.steps
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(composed.get_epsilon_for_delta(target))
        # It divides by a sum of e^-L, which overflows between 709 and 745 nats.
        return 746.0 if math.isinf(value) and composed.get_delta_for_epsilon(746.0) <= target else value


def accountant_deltas(
    training: DPSGD, *, adjacency: Adjacency, grid: Grid, points: int
) -> tuple[Floats, Floats] | None:
    """Return epsilons from 0 to where delta drowns in rounding error, and upper bounds on delta there; null if none."""
    composed = _composed(training, adjacency, grid)
    if composed is None:
        return None
    rounding = _ROUNDING_PER_STEP * training.steps
    least = min(max(1e-13, 10 * rounding), 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        furthest = min(float(composed.get_epsilon_for_delta(least)), 700.0)
        # Dense near 0, where most of a curve's bend is.
        epsilons = furthest * np.linspace(0.0, 1.0, points) ** 2
        # One at a time: for many at once it subtracts running sums, which may round a delta down.
        deltas = np.array([float(composed.get_delta_for_epsilon(value)) for value in epsilons.tolist()])
    return epsilons, np.clip(deltas + rounding, 0.0, 1.0)


def _composed(training: DPSGD, adjacency: Adjacency, grid: Grid) -> Any:
    """Return the privacy loss distribution of all steps, discretised pessimistically; null if there is none."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    # Add/remove is the default everywhere; dp_accounting 0.4 has no such argument.
    relation = (
        {"neighboring_relation": NeighboringRelation.REPLACE_ONE}
        if adjacency is Adjacency.REPLACE_ONE
        else {}
    )
    try:
        step = pld.from_gaussian_mechanism(
            float(training.noise_multiplier),
            sampling_prob=float(training.sampling_rate),
            value_discretization_interval=grid.spacing,
            **relation,
        )
    except ValueError:  # dp_accounting 0.4 refuses deltas that rounding put out of order
        return None
    return _self_compose(step, int(training.steps), grid.inner)


def _self_compose(step: Any, steps: int, inner: int) -> Any:
    """Return the composition of equal steps, by way of a composition of ``inner`` of them."""
    if inner == 1:
        return step.self_compose(steps, TAIL)
    outer, rest = divmod(steps, inner)
    composed = step.self_compose(inner, TAIL / outer).self_compose(outer, TAIL)
    return composed.compose(step.self_compose(rest, TAIL)) if rest else composed


def renyi_epsilon(training: DPSGD, *, delta: float, adjacency: Adjacency) -> float:
    """Return an upper bound on epsilon by Renyi divergences: looser, but good at every delta."""
    import dp_accounting
    from dp_accounting import rdp

    # Whole orders only: for fractional ones dp_accounting's series does not always converge.
    accountant = rdp.RdpAccountant(orders=[*range(2, 65), 128, 256, 512, 1024])
    step = dp_accounting.PoissonSampledDpEvent(
        float(training.sampling_rate), dp_accounting.GaussianDpEvent(float(training.noise_multiplier))
    )
    accountant.compose(dp_accounting.SelfComposedDpEvent(step, int(training.steps)))
    if adjacency is Adjacency.ADD_REMOVE:
        return float(accountant.get_epsilon(delta))
    # It knows add/remove only: find a smaller delta from which (2 eps, (1 + e^eps) delta) stays below this one.
    for halvings in range(1, 200):
        smaller = delta * 0.5**halvings
        bound = float(accountant.get_epsilon(smaller)) if smaller > 0 else math.inf
        if bound + math.log(max(smaller, 1e-320)) < 0 and smaller + math.exp(bound) * smaller <= delta:
            return 2 * bound
    return math.inf
