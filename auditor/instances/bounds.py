"""What several instances say about the mechanism: the point value, the certified bound, and the two limits of it.

With h_ij the share that instance i rightly calls by attack j, and f_j the mechanism's error rate of that attack, an
(eps, d)-DP mechanism has E h_ij <= mu_j = e^eps f_j + d for every instance. Then for every stake s in [0, 1]

    E_j,s = prod_i (1 + s (h_ij/mu_j - 1))

is not negative and has a mean of at most 1, and so has its average over stakes and attacks with weights fixed in
advance: by Markov's inequality it reaches 1/alpha with probability at most alpha. The certified bound is the largest
eps at which it does [own; the bets of Waudby-Smith and Ramdas 2024]. It needs no law of h, no variance and no
correction for the choice among attacks, and it holds for any number of instances.
"""

import math
from typing import Any

import numpy as np

from auditor.instances.curves import ATTACKS, Evidence
from auditor.values import Floats

__all__ = ["bootstrap_lower", "certified", "instance_values", "log_mean_exp", "point"]

# All of the stake suits instances that agree; smaller stakes survive an instance that shows nothing.
_STAKES = (1.0, 0.75, 0.5, 0.25, 0.1)
_STAKE_WEIGHTS = (0.4, 0.15, 0.15, 0.15, 0.15)
_HALVINGS = 45
_RESAMPLES = 1000
# A resample in which all instances agree has no spread to divide by.
_LEAST_SPREAD = 1e-3


def point(evidence: Evidence, delta: float) -> tuple[float, int]:
    """Return eps-bar of the averaged rates (Negoescu et al. 2024, Eq. 19), and the attack that attains it."""
    logs = _log_ratios(np.einsum("ij->j", evidence.hits) / evidence.hits.shape[0], evidence.rates, delta)
    best = int(np.argmax(logs))
    return max(0.0, float(logs[best])), best


def instance_values(evidence: Evidence, delta: float) -> Floats:
    """Return Epsilon* of every instance, at the same attacks."""
    return np.asarray(np.maximum(0.0, _log_ratios(evidence.hits, evidence.rates, delta).max(axis=1)))


def log_mean_exp(values: Floats) -> tuple[float, float]:
    """Return log E[exp eps*] over the instances (Negoescu et al. 2024, Theorem 2), and its standard error."""
    largest = float(values.max())
    scaled = np.exp(values - largest)
    mean = float(scaled.mean())
    return largest + math.log(mean), float(scaled.std(ddof=1)) / (mean * math.sqrt(values.size))


def _log_ratios(hits: Floats, rates: Floats, delta: float) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(hits - delta, 0.0)) - np.log(rates))


# --- The certified bound ---------------------------------------------------------------------------


def certified(evidence: Evidence, delta: float, alpha: float) -> tuple[float, dict[str, Any]]:
    """Return the largest epsilon that the instances refute at level alpha, 0 if none, and what refutes it."""
    bound = _largest_refuted(evidence, delta, alpha)
    ceiling = _largest_refuted(evidence.of_a_perfect_attack(), delta, alpha)
    details: dict[str, Any] = {"ceiling": ceiling}
    if bound > 0:
        bets = _log_bets(evidence, delta, bound)
        stake, at = np.unravel_index(int(np.argmax(bets)), bets.shape)
        details |= {
            "attack": ATTACKS[evidence.names[int(at)]],
            "stake": _STAKES[int(stake)],
            "error_rate": float(evidence.rates[at]),
            "mean_hit_rate": float(evidence.hits[:, at].mean()),
        }
    return bound, details


def _largest_refuted(evidence: Evidence, delta: float, alpha: float) -> float:
    """sup{eps: the averaged bet is at least 1/alpha}: it falls in eps, and is at most 1 where every mu_j is 1 or more."""

    def refuted(epsilon: float) -> bool:
        return bool(np.logaddexp.reduce(_log_bets(evidence, delta, epsilon), axis=None) >= -math.log(alpha))

    low, high = 0.0, -math.log(float(evidence.rates.min()))
    if not refuted(low):
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _log_bets(evidence: Evidence, delta: float, epsilon: float) -> Floats:
    """Log of weight times bet, shape (stakes, attacks)."""
    gains = evidence.hits / (math.exp(epsilon) * evidence.rates + delta)
    with np.errstate(divide="ignore"):  # all at stake and nothing called: the bet is lost
        logs = [np.log((1 - stake) + stake * gains).sum(axis=0) for stake in _STAKES]
    return np.asarray(np.stack(logs) + np.log(_STAKE_WEIGHTS)[:, None] + np.log(evidence.weights))


# --- The bootstrap -----------------------------------------------------------------------------------


def bootstrap_lower(evidence: Evidence, delta: float, alpha: float, *, rng: np.random.Generator) -> float:
    """Return the lower end by a studentised bootstrap over instances, simultaneous over the attacks.

    Approximate: it cannot know of models so rare that none of the instances is one.
    """
    hits, size = evidence.hits, evidence.hits.shape[0]
    mean, error = hits.mean(axis=0), hits.std(axis=0, ddof=1) / math.sqrt(size)
    varies = error > 0
    if not varies.any():
        return 0.0
    hits, mean, error, rates = hits[:, varies], mean[varies], error[varies], evidence.rates[varies]
    largest = np.empty(_RESAMPLES)
    for row in range(_RESAMPLES):
        drawn = hits[rng.integers(0, size, size)]
        spread = np.maximum(drawn.std(axis=0, ddof=1) / math.sqrt(size), _LEAST_SPREAD * error)
        largest[row] = np.max((drawn.mean(axis=0) - mean) / spread)
    lower = mean - float(np.quantile(largest, 1 - alpha)) * error
    return max(0.0, float(_log_ratios(lower, rates, delta).max()))
