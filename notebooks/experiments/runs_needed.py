"""How many runs an audit of a Gaussian mechanism needs, by counts alone and if the curve is taken to be Gaussian.

Both tests are given the expected counts at the best threshold, and 95% Clopper-Pearson limits, half of the error each.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from auditor import theory

__all__ = ["by_counts", "by_gdp", "runs_needed"]

_THRESHOLDS = np.linspace(-9, 9, 361)
_LEVEL = 0.025
_NOTHING = 1e-300
_CLOSE = 0.004  # of the log10 of a number of runs
_MOST = 14.0  # likewise


def by_counts(mu: float, *, runs: float, delta: float) -> float:
    """Return the certified epsilon, log((TPR_L - delta)/FPR_U), of so many runs of each world."""
    hits, alarms = runs * special.ndtr(_THRESHOLDS + mu), runs * special.ndtr(_THRESHOLDS)
    above = np.maximum(_lower(hits, runs) - delta, _NOTHING)
    return float(np.max(np.log(above / _upper(alarms, runs))))


def by_gdp(mu: float, *, runs: float, delta: float) -> float:
    """Return the epsilon of mu_L = Phi^-1(1 - FPR_U) - Phi^-1(FNR_U), of so many runs of each world."""
    alarms = _upper(runs * special.ndtr(_THRESHOLDS), runs)
    misses = _upper(runs * special.ndtr(-_THRESHOLDS - mu), runs)
    return theory.gaussian_epsilon(
        max(0.0, float(np.max(-special.ndtri(alarms) - special.ndtri(misses)))), delta=delta
    )


def runs_needed(test: Callable[..., float], *, epsilon: float, share: float, delta: float) -> float:
    """Return the fewest runs of each world, to 1%, with which a test shows this share of a Gaussian mechanism's epsilon.

    Infinity if even 10^14 runs do not show it.
    """
    mu, low, high = theory.gaussian_mu(epsilon, delta=delta), 0.0, _MOST
    if test(mu, runs=10**_MOST, delta=delta) < share * epsilon:
        return math.inf
    while high - low > _CLOSE:
        middle = (low + high) / 2
        shown = test(mu, runs=10**middle, delta=delta) >= share * epsilon
        low, high = (low, middle) if shown else (middle, high)
    return 10**high


def _lower(count: np.ndarray, runs: float) -> np.ndarray:
    """Clopper-Pearson's lower limit of a rate; nothing counted shows nothing."""
    return np.nan_to_num(stats.beta.ppf(_LEVEL, count, runs - count + 1), nan=0.0)


def _upper(count: np.ndarray, runs: float) -> np.ndarray:
    """Clopper-Pearson's upper limit of a rate; 1 where all are counted."""
    return np.nan_to_num(stats.beta.isf(_LEVEL, count + 1, runs - count), nan=1.0)
