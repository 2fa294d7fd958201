"""The epsilon of DP-SGD: the tightest of the bounds that work for its parameters."""

import math
from collections.abc import Iterator

from auditor._format import number
from auditor.choices import DPSGD, Adjacency
from auditor.theory import _sampled_gaussian as sampled
from auditor.theory._loss_grid import Grid, in_range, loss_grid, resolvable
from auditor.theory._merging import MOST_PHASES, kinds_of
from auditor.theory._step_pairs import StepPair
from auditor.theory.gaussian import gaussian_epsilon
from auditor.theory.renyi import MOST_SINGLY, phases_epsilon
from auditor.training import Phase
from auditor.values import Claim

__all__ = ["FIXED_SIZE_NEEDS_REPLACE_ONE", "dpsgd_epsilon", "ever_drawn", "merging_note", "unsampled_mu"]

_SAFETY = "An upper bound for an attacker who sees every iterate."
_EVERYONE = "Gaussian composition without sampling"
_RENYI = "Renyi divergences (quadrature)"
_ACCOUNTANT = "privacy loss distributions (dp-accounting)"
_NEEDS = "The replace-one epsilon of sampled DP-SGD needs dp-accounting 0.6.0 or later: pip install -U dp-accounting."
_BEYOND = " Beyond the numerical range of privacy loss distributions, so it may be loose."
FIXED_SIZE_NEEDS_REPLACE_ONE = (
    "Batches of a fixed size are accounted for replaced records only: with one record more or less, the size would"
    " change."
)
_FIXED_SIZE = " Batches of a fixed size must be drawn anew at every step; passes over the shuffled records are not covered."


def dpsgd_epsilon(training: DPSGD, *, delta: float, adjacency: Adjacency) -> Claim:
    """Return the epsilon of DP-SGD, in nats; delta in [0, 1). See `auditor.theory.epsilon`."""
    value, method, note = _bound(training, delta=delta, adjacency=adjacency)
    return Claim("epsilon", value, delta, adjacency, method, proven=True, note=note)


def ever_drawn(training: DPSGD) -> float:
    """Return a bound on the probability that a record is ever drawn: the sum of the sampling rates, at most 1."""
    return min(1.0, sum(phase.steps * phase.sampling_rate for phase in training.phases))


def unsampled_mu(training: DPSGD, *, adjacency: Adjacency) -> float:
    """Return the distance of the two worlds, in noise standard deviations, if every record took part in every step."""
    distance = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
    # d sqrt(sum of T/s^2) in logs, because the squares may leave the range of a double.
    logs = [math.log(phase.steps) / 2 - math.log(phase.noise_multiplier) for phase in training.phases]
    largest = max(logs)
    log_sum = largest + math.log(sum(math.exp(2 * (item - largest)) for item in logs)) / 2
    return math.exp(min(math.log(distance) + log_sum, 600.0))


def merging_note(training: DPSGD) -> str:
    """Return a sentence that says that steps were merged; empty if they were not."""
    if len(training.phases) <= MOST_PHASES:
        return ""
    return (
        f" Its {len(training.phases):,} different steps are accounted as fewer kinds of steps, none of them more private,"
        " so it may be a little loose."
    )


def _bound(training: DPSGD, *, delta: float, adjacency: Adjacency) -> tuple[float | None, str, str]:
    """Return the value, the method and the note."""
    plain = _without_accountant(training, delta=delta, adjacency=adjacency)
    if plain is not None:
        return plain
    everyone = gaussian_epsilon(unsampled_mu(training, adjacency=adjacency), delta=delta)
    if all(phase.sampling_rate == 1 for phase in training.phases):
        return everyone, "exact Gaussian composition", _SAFETY
    # A sampled step mixes the unsampled pair with a pair of equal laws, so it is never easier to tell apart.
    loose = " It lets every record into every step, so it may be loose."
    sampling = _amplified(training, delta=delta, pair=StepPair.of(training, adjacency))
    return min(((everyone, _EVERYONE, _SAFETY + loose), *sampling), key=lambda bound: bound[0])


def _without_accountant(
    training: DPSGD, *, delta: float, adjacency: Adjacency
) -> tuple[float | None, str, str] | None:
    """Return the answer where none can be computed or none need be."""
    if training.fixed_size and adjacency is Adjacency.ADD_REMOVE:
        return None, _ACCOUNTANT, FIXED_SIZE_NEEDS_REPLACE_ONE
    if delta == 0:
        return math.inf, "Gaussian noise", "A Gaussian mechanism has no finite epsilon at delta 0."
    if ever_drawn(training) <= delta:
        # The two worlds differ only if the record is ever drawn: probability at most the sum of the rates.
        return 0.0, "union bound over the steps", "The record enters training with probability at most delta."
    sampling = any(phase.sampling_rate < 1 for phase in training.phases)
    coins = StepPair.of(training, adjacency) is StepPair.REPLACE_ONE
    if sampling and coins and not sampled.accountant_has_replace_one():
        return None, _ACCOUNTANT, _NEEDS
    return None


def _amplified(training: DPSGD, *, delta: float, pair: StepPair) -> Iterator[tuple[float, str, str]]:
    """Yield bounds that profit from the sampling: the accountant's, and another one where that reaches its limits."""
    merged = merging_note(training)
    ending = _FIXED_SIZE if training.fixed_size else ""
    raised = resolvable(training.phases)
    value, grid = _accounted(raised, delta=delta, pair=pair)
    if grid is not None:
        limits = []
        if raised != training.phases:
            limits.append(f" Accounted at {_what(raised)}: a smaller one drowns in rounding error.")
        if not grid.fine:
            limits.append(
                f" The accountant's grid is coarse here ({grid.spacing:.2g} nats), so it may be loose."
            )
        yield value, _ACCOUNTANT, _SAFETY + merged + "".join(limits) + ending
        if not limits:
            return
    note = _SAFETY + (merged if len(training.phases) > MOST_SINGLY else "") + _BEYOND + ending
    yield phases_epsilon(training.phases, pair=pair, delta=delta), _RENYI, note


def _accounted(phases: tuple[Phase, ...], *, delta: float, pair: StepPair) -> tuple[float, Grid | None]:
    """Return the accountant's bound and its grid; infinity and none beyond its range."""
    if in_range(phases):
        kinds = kinds_of(phases, pair=pair)
        grid = loss_grid(kinds, pair=pair)
        if grid is not None and sampled.reaches(kinds, delta=delta):
            value = sampled.accountant_epsilon(kinds, delta=delta, pair=pair, grid=grid)
            if math.isfinite(value):
                return value, grid
    return math.inf, None


def _what(raised: tuple[Phase, ...]) -> str:
    least = min(phase.sampling_rate for phase in raised)
    return (
        f"sampling rate {number(least)}"
        if len(raised) == 1
        else f"sampling rates of {number(least)} and more"
    )
