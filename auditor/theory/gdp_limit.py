"""The central limit theorem of differential privacy for one kind of step: which mu many of them tend to.

Asymptotic, and possibly on the unsafe side where epsilon is read off at a small delta: see `auditor.theory.gdp`.
"""

import math

import numpy as np

from auditor import _validate
from auditor.errors import InputError
from auditor.tradeoff import TradeoffCurve

__all__ = ["exp", "limit_mu", "log_one_sided_variance", "subsampled_mu"]

_LARGEST_LOG = 709.0
# Mirror images of a symmetric curve may differ by so much.
_SYMMETRY = 1e-9
# A jump of the true positive rate that is only rounding.
_NEGLIGIBLE = 1e-300
# Where one step's variance turns into its leading term, in its several forms.
_TINY, _SMALL, _LARGE = 1e-8, 1e-3, 6.0


def subsampled_mu(mu: float, *, sampling_rate: float, steps: int) -> float:
    """Return the mu that many sampled mu-GDP steps tend to, sqrt2 q sqrt(k) sqrt(e^(mu^2) Phi(3mu/2) + 3 Phi(-mu/2) - 2).

    Asymptotic, for batches of a fixed size and replaced records. The lecture slides print it without
    the factor sqrt2 and with a root that ends too early (erratum; for the example below that would be -0.588).

    Args:
        mu: Of one step without sampling, 0 or more.
        sampling_rate: q, in (0, 1].
        steps: k, 1 or more.

    Returns:
        The limit's mu, possibly infinity.

    Raises:
        InputError: A number out of range.

    Source: Dong, Roth and Su 2022, Corollary 5.4.

    >>> round(subsampled_mu(1.0, sampling_rate=0.01, steps=1000), 6)
    0.540795
    """
    mu = _validate.nonnegative("mu", mu)
    rate = _validate.fraction("sampling_rate", sampling_rate, one=True)
    steps = _validate.at_least("steps", steps, least=1)
    if mu == 0:
        return 0.0
    return exp(math.log(rate) + (math.log(steps) + log_one_sided_variance(mu)) / 2)


def limit_mu(curve: TradeoffCurve, *, steps: int) -> float:
    """Return the mu that many steps of one symmetric trade-off curve tend to, 2 sqrt(k) k1 / sqrt(k2 - k1^2).

    k1 and k2 are the first two moments of -log|f'(x)| for x uniform in (0, 1). The lecture
    slides print k1 - k2 under the fraction (erratum).

    Args:
        curve: Of one step, for both orders of two neighbours, so that it is its own mirror image.
        steps: k, 1 or more.

    Returns:
        The limit's mu; infinity where the curve jumps, since one step's loss is then infinite with some probability.

    Raises:
        InputError: The curve is not symmetric, or steps is out of range.

    Source: Dong, Roth and Su 2022, Theorem 3.4.

    >>> from auditor.theory.gdp import gdp_curve
    >>> round(limit_mu(gdp_curve(0.1), steps=100), 3)
    1.0
    """
    steps = _validate.at_least("steps", steps, least=1)
    rates = np.linspace(0.0, 1.0, 101)[1:-1]
    mirrored = 1 - np.interp(1 - rates, curve.tpr, curve.fpr)
    apart = float(np.max(np.abs(mirrored - np.interp(rates, curve.fpr, curve.tpr))))
    if apart > _SYMMETRY:
        raise InputError(
            f"curve must be its own mirror image in TPR = 1 - FPR, got one that is {apart:.3g} away from it; make it so"
            " with auditor.theory.symmetric_amplified_curve(curve, sampling_rate=1)."
        )
    # The half above TPR = 1 - FPR mirrors the other: its rates lie near 1, where a double has lost their digits.
    along = curve.fpr + curve.tpr
    half = along < 1
    run, rise = (
        np.diff(np.append(rate[half], np.interp(1.0, along, rate))) for rate in (curve.fpr, curve.tpr)
    )
    if np.any((run == 0) & (rise > _NEGLIGIBLE)):
        return math.inf
    run, rise = run[run > 0], rise[run > 0]
    losses = np.log(rise) - np.log(run)
    first, second = float(np.sum((rise - run) * losses)), float(np.sum((rise + run) * losses**2))
    variance = second - first**2
    return 0.0 if variance <= 0 else 2 * math.sqrt(steps) * first / math.sqrt(variance)


def log_one_sided_variance(mu: float) -> float:
    """Return log of 2 (e^(mu^2) Phi(3mu/2) + 3 Phi(-mu/2) - 2), twice the integral of (w - 1)^2 where w = e^(mu x - mu^2/2) > 1."""
    from scipy.special import ndtr

    if mu > _LARGE:
        return math.log(2) + mu * mu
    # Phi(3mu/2) + 3 Phi(-mu/2) - 2 = (erf(3y) - 3 erf(y))/2 is of third order in y = mu/(2 sqrt2).
    y = mu / (2 * math.sqrt(2))
    if y < _SMALL:
        third = (24 * y**5 - 8 * y**3) / math.sqrt(math.pi)
    else:
        third = (math.erf(3 * y) - 3 * math.erf(y)) / 2
    # Divided by mu^2 and given back in logs, for a mu whose square is no double.
    grown = math.expm1(mu * mu) / (mu * mu) if mu > _TINY else 1.0
    return math.log(2) + 2 * math.log(mu) + math.log(grown * float(ndtr(1.5 * mu)) + third / mu / mu)


def exp(x: float) -> float:
    """Return e^x, infinite where it exceeds every double."""
    return math.exp(x) if x < _LARGEST_LOG else math.inf
