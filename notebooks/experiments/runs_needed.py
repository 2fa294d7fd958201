"""How many runs an audit of a Gaussian mechanism needs, by counts alone and if the curve is taken to be Gaussian.

Both tests are given the expected counts at the best threshold, and 95% Clopper-Pearson limits, half of the error each.
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from auditor import theory
from auditor.estimators.binomial import lower_limit, upper_limit

__all__ = ["by_counts", "by_gdp", "runs_needed"]

_THRESHOLDS = np.linspace(-9, 9, 361)
_LEVEL = 0.025
_NOTHING = 1e-300
_CLOSE = 0.004  # of the log10 of a number of runs


def by_counts(mu: float, *, runs: float, delta: float) -> float:
    """Return the certified epsilon, log((TPR_L - delta)/FPR_U), of so many runs of each world."""
    hits, alarms = runs * special.ndtr(_THRESHOLDS + mu), runs * special.ndtr(_THRESHOLDS)
    above = np.maximum(lower_limit(hits, runs, _LEVEL) - delta, _NOTHING)
    return float(np.max(np.log(above / upper_limit(alarms, runs, _LEVEL))))


def by_gdp(mu: float, *, runs: float, delta: float) -> float:
    """Return the epsilon of mu_L = Phi^-1(1 - FPR_U) - Phi^-1(FNR_U), of so many runs of each world."""
    alarms = upper_limit(runs * special.ndtr(_THRESHOLDS), runs, _LEVEL)
    misses = upper_limit(runs * special.ndtr(-_THRESHOLDS - mu), runs, _LEVEL)
    return theory.epsilon_from_mu(
        max(0.0, float(np.max(-special.ndtri(alarms) - special.ndtri(misses)))), delta=delta
    )


def runs_needed(test: Callable[..., float], *, epsilon: float, share: float, delta: float) -> float:
    """Return the fewest runs of each world, to 1%, with which a test shows this share of a Gaussian mechanism's epsilon."""
    mu, low, high = theory.mu_from_epsilon(epsilon, delta=delta), 0.0, 14.0
    while high - low > _CLOSE:
        middle = (low + high) / 2
        shown = test(mu, runs=10**middle, delta=delta) >= share * epsilon
        low, high = (low, middle) if shown else (middle, high)
    return 10**high
