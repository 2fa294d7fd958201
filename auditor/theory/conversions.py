"""From one way of stating privacy to another: epsilon and delta, mu of Gaussian DP, advantage, and error rates.

Trade-off curves have theirs in `auditor.theory.curve_conversions`, Renyi divergences in
`auditor.theory.renyi_conversions`. Two kinds are kept apart: what holds for every mechanism with the first statement,
and what holds for Gaussian mechanisms only; each docstring says which. All epsilons are in nats.
"""

import math

import numpy as np

from auditor import _validate
from auditor.theory.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu

__all__ = [
    "advantage_from_mu",
    "delta_from_mu",
    "epsilon_from_mu",
    "epsilon_from_rates",
    "mu_from_advantage",
    "mu_from_epsilon",
    "mu_from_pure_epsilon",
    "mu_from_rates",
]


def epsilon_from_mu(mu: float, *, delta: float) -> float:
    """Return the smallest epsilon at this delta that mu-GDP implies, for every mu-GDP mechanism.

    Args:
        mu: 0 or more.
        delta: In [0, 1); at 0 only mu = 0 has a finite epsilon.

    Raises:
        InputError: A number out of range.

    Source: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.

    >>> round(epsilon_from_mu(0.5, delta=1e-5), 6)
    1.993091
    """
    mu, delta = _validate.nonnegative("mu", mu), _validate.fraction("delta", delta, zero=True)
    return gaussian_epsilon(mu, delta=delta)


def delta_from_mu(mu: float, *, epsilon: float) -> float:
    """Return the smallest delta at this epsilon that mu-GDP implies, for every mu-GDP mechanism.

    Args:
        mu: 0 or more.
        epsilon: 0 or more.

    Raises:
        InputError: A number out of range.

    Source: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.

    >>> round(delta_from_mu(1.0, epsilon=1.0), 8)
    0.12693674
    """
    mu, epsilon = _validate.nonnegative("mu", mu), _validate.nonnegative("epsilon", epsilon)
    return gaussian_delta(mu, epsilon=epsilon)


def mu_from_epsilon(epsilon: float, *, delta: float) -> float:
    """Return the mu of the Gaussian mechanism that is exactly (epsilon, delta)-DP.

    For Gaussian mechanisms only: (epsilon, delta)-DP with a delta above 0 implies no mu at all, since it allows a true
    positive rate of delta without a false positive.

    Args:
        epsilon: 0 or more.
        delta: In [0, 1); 0 gives 0. For mechanisms with delta 0 see `mu_from_pure_epsilon`.

    Raises:
        InputError: A number out of range.

    Source: Balle and Wang 2018, Theorem 8, solved for mu.

    >>> round(mu_from_epsilon(1.0, delta=1e-5), 6), round(mu_from_epsilon(8.0, delta=1e-5), 6)
    (0.268051, 1.666031)
    """
    epsilon = _validate.nonnegative("epsilon", epsilon)
    return gaussian_mu(epsilon, delta=_validate.fraction("delta", delta, zero=True))


def mu_from_pure_epsilon(epsilon: float) -> float:
    """Return the smallest mu such that every (epsilon, 0)-DP mechanism is mu-GDP, 2 Phi^-1(e^epsilon / (1 + e^epsilon)).

    The corner of the (epsilon, 0) curve lies on the mu-GDP curve, which is concave and so lies above the two straight
    pieces that meet there.

    Args:
        epsilon: 0 or more.

    Raises:
        InputError: Epsilon is negative.

    Source: Liu et al. 2022 (Identification, Amplification and Measurement: A Bridge to Gaussian Differential Privacy).

    >>> round(mu_from_pure_epsilon(1.0), 6)
    1.232035
    """
    from scipy.special import ndtri_exp

    epsilon = _validate.nonnegative("epsilon", epsilon)
    if epsilon > 1:
        return -2 * float(ndtri_exp(-np.logaddexp(0.0, epsilon)))
    # e^eps/(1 + e^eps) = (1 + tanh(eps/2))/2 is near 1/2 here.
    return 2 * _quantile_above_half(math.tanh(epsilon / 2))


def mu_from_advantage(advantage: float) -> float:
    """Return the mu of the Gaussian mechanism whose best attacker has this advantage, 2 Phi^-1((1 + advantage) / 2).

    Args:
        advantage: TPR - FPR, in [0, 1); 1 minus the Bayes security.

    Raises:
        InputError: The advantage is out of range.

    Source: Dong, Roth and Su 2022, Corollary 2.13 at epsilon 0.

    >>> round(mu_from_advantage(0.3829249225480262), 6)
    1.0
    """
    return 2 * _quantile_above_half(_validate.fraction("advantage", advantage, zero=True))


def advantage_from_mu(mu: float) -> float:
    """Return the largest advantage (TPR - FPR) that mu-GDP allows, 2 Phi(mu/2) - 1; Bayes security is 1 minus it.

    Args:
        mu: 0 or more.

    Raises:
        InputError: mu is negative.

    Source: Dong, Roth and Su 2022, Corollary 2.13 at epsilon 0.

    >>> round(advantage_from_mu(1.0), 8)
    0.38292492
    """
    return math.erf(_validate.nonnegative("mu", mu) / (2 * math.sqrt(2)))


def epsilon_from_rates(fpr: float, fnr: float, *, delta: float) -> float:
    """Return the smallest epsilon at which (epsilon, delta)-DP allows a test with these error rates.

    The rates are exact ones; for rates measured on records see `auditor.estimators.single_threshold`.

    Args:
        fpr: False positive rate, in [0, 1].
        fnr: False negative rate, in [0, 1].
        delta: In [0, 1).

    Returns:
        Epsilon, 0 or more; infinity if no epsilon allows them.

    Raises:
        InputError: A rate out of range.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 2.4, for both orders of the two neighbours.

    >>> round(epsilon_from_rates(0.001, 0.8, delta=0.001), 6)
    5.293305
    """
    fpr, fnr = _rate("fpr", fpr), _rate("fnr", fnr)
    delta = _validate.fraction("delta", delta, zero=True)
    pairs = ((1 - fnr, fpr), (1 - fpr, fnr), (fnr, 1 - fpr), (fpr, 1 - fnr))
    return max(0.0, *(_log_ratio(larger - delta, smaller) for larger, smaller in pairs))


def mu_from_rates(fpr: float, fnr: float) -> float:
    """Return the smallest mu at which mu-GDP allows a test with these error rates, |Phi^-1(1 - FPR) - Phi^-1(FNR)|.

    Args:
        fpr: False positive rate, in [0, 1].
        fnr: False negative rate, in [0, 1].

    Returns:
        mu, 0 or more; infinity if one rate is 0 or 1 and the other does not make up for it.

    Raises:
        InputError: A rate out of range.

    Source: Dong, Roth and Su 2022, Definition 2.6.

    >>> round(mu_from_rates(0.15865525393145707, 0.5), 6)
    1.0
    """
    from scipy.special import ndtri

    fpr, fnr = _rate("fpr", fpr), _rate("fnr", fnr)
    if fpr + fnr == 1:
        return 0.0
    return abs(float(ndtri(fpr)) + float(ndtri(fnr)))


def _rate(name: str, value: float) -> float:
    return _validate.fraction(name, value, zero=True, one=True)


def _log_ratio(larger: float, smaller: float) -> float:
    """The log of a ratio, in which a positive number over 0 is infinite and nothing over anything is no evidence."""
    if larger <= 0:
        return -math.inf
    return math.inf if smaller == 0 else math.log(larger) - math.log(smaller)


def _quantile_above_half(twice: float) -> float:
    """Phi^-1((1 + x)/2) with all digits of a small x."""
    from scipy.special import erfinv

    return math.sqrt(2) * float(erfinv(twice))
