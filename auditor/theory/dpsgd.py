"""The epsilon of DP-SGD: the tightest of the bounds that work for its parameters."""

import math

from auditor._format import number
from auditor.choices import DPSGD, Adjacency
from auditor.theory import _sampled_gaussian as sampled
from auditor.theory._loss_grid import in_range, loss_grid, resolvable
from auditor.theory.gaussian import gaussian_epsilon
from auditor.values import Claim

__all__ = ["dpsgd_epsilon"]

_SAFETY = "An upper bound for an attacker who sees every iterate."
_ACCOUNTANT = "privacy loss distributions (dp-accounting)"
_NEEDS = "The replace-one epsilon of sampled DP-SGD needs dp-accounting 0.6.0 or later: pip install -U dp-accounting."


def dpsgd_epsilon(training: DPSGD, *, delta: float, adjacency: Adjacency) -> Claim:
    """Return the epsilon of DP-SGD, in nats; delta in [0, 1). See `auditor.theory.epsilon`."""
    value, method, note = _bound(training, delta=delta, adjacency=adjacency)
    return Claim("epsilon", value, delta, adjacency, method, proven=True, note=note)


def _bound(training: DPSGD, *, delta: float, adjacency: Adjacency) -> tuple[float | None, str, str]:
    """Return the value, the method and the note, edge cases first."""
    if delta == 0:
        return math.inf, "Gaussian noise", "A Gaussian mechanism has no finite epsilon at delta 0."
    if training.sampling_rate * training.steps <= delta:
        # The two worlds differ only if the record is ever drawn: probability at most p T.
        return 0.0, "union bound over the steps", "The record enters training with probability at most delta."
    everyone = _unsampled(training, delta=delta, adjacency=adjacency)
    if training.sampling_rate == 1:
        return everyone, "exact Gaussian composition", _SAFETY
    if adjacency is Adjacency.REPLACE_ONE and not sampled.accountant_has_replace_one():
        return None, _ACCOUNTANT, _NEEDS
    value, method, note = _amplified(training, delta=delta, adjacency=adjacency)
    if everyone <= value:
        loose = " It lets every record into every step, so it may be loose."
        return everyone, "Gaussian composition without sampling", _SAFETY + loose
    return value, method, note


def _unsampled(training: DPSGD, *, delta: float, adjacency: Adjacency) -> float:
    """Return the epsilon if every record took part in every step: exact at rate 1, an upper bound below it."""
    # A sampled step mixes the unsampled pair with a pair of equal laws, so it is never easier to tell apart.
    distance = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
    log_mu = math.log(distance) + math.log(training.steps) / 2 - math.log(training.noise_multiplier)
    return gaussian_epsilon(math.exp(min(log_mu, 700.0)), delta=delta)


def _amplified(training: DPSGD, *, delta: float, adjacency: Adjacency) -> tuple[float, str, str]:
    """Return a bound that profits from the sampling: the accountant's, or a looser one beyond its range."""
    raised = resolvable(training)
    if not in_range(raised):
        return math.inf, "", ""  # the bound without sampling is at hand
    note = _SAFETY
    if raised != training:
        note += f" Accounted at sampling rate {number(raised.sampling_rate)}: a smaller one drowns in rounding error."
    grid = loss_grid(raised, adjacency=adjacency)
    if grid is not None and sampled.reaches(raised, delta=delta):
        value = sampled.accountant_epsilon(raised, delta=delta, adjacency=adjacency, grid=grid)
        if math.isfinite(value):
            coarse = f" The accountant's grid is coarse here ({grid.spacing:.2g} nats), so it may be loose."
            return value, _ACCOUNTANT, note if grid.fine else note + coarse
    value = sampled.renyi_epsilon(raised, delta=delta, adjacency=adjacency)
    note += " Beyond the numerical range of privacy loss distributions, so it may be loose."
    return value, "Renyi divergences (dp-accounting)", note
