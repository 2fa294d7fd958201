"""Gaussian differential privacy: its curves, its exact composition, and the central limit theorem for sampled steps.

mu-GDP: no attacker does better than on N(0, 1) against N(mu, 1), so TPR <= Phi(Phi^-1(FPR) + mu).

A mu by the central limit theorem is asymptotic: it is right in the limit of many steps of small loss, and an epsilon
read off it can be far too small where delta is small, the noise is below about 1 or the steps are few. At rate 0.01,
noise 0.6, 100 steps and delta 1e-5 it gives 1.505 where the accountant gives 3.816.
"""

import math
from collections.abc import Iterable

import numpy as np

from auditor import _validate
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory.gaussian import gaussian_deltas
from auditor.theory.gdp_limit import exp, log_one_sided_variance
from auditor.tradeoff import TradeoffCurve
from auditor.values import Claim

__all__ = ["composed_mu", "gdp_curve", "mu_clt", "mu_without_sampling"]

ASYMPTOTIC = (
    "Asymptotic: right in the limit of many steps of small loss, and possibly on the unsafe side (too low) for little"
    " noise, few steps or a small delta: at rate 0.01, noise 0.6, 100 steps, delta 1e-5 its epsilon is 1.505 and the"
    " accountant's 3.816."
)
FIXED_SIZE = "Batches of a fixed size are accounted for replaced records only."
_IGNORES_SAMPLING = (
    "It ignores the sampling, as if every record were in every step, so it may be loose: usually far too large to be of"
    " use where records are sampled."
)
# So many standard deviations out no rate is a double.
_FURTHEST = 40.0
# How far computed deltas may be from the exact ones; they are raised by it.
_ROUNDING = 1e-12
# Where e^u - 1 and sinh(u) turn into u.
_LOG_TINY = -40.0


def gdp_curve(mu: float, *, points: int = 2001) -> TradeoffCurve:
    """Return the trade-off curve of mu-GDP, TPR = Phi(Phi^-1(FPR) + mu), as the lowest of many of its tangents.

    So it never lies below the true curve (beyond the last digit), and with 2001 tangents at most 0.02% of a TPR above
    it at FPRs of 1e-9 and more, 0.06% from 1e-16 on.

    Args:
        mu: 0 or more.
        points: Number of tangents on each side, 2 or more.

    Raises:
        InputError: mu is negative, or points fewer than 2.

    Source: Dong, Roth and Su 2022, Definition 2.6.

    >>> round(gdp_curve(1.0).tpr_at(0.1), 4)  # Phi(Phi^-1(.1) + 1) = .38914
    0.3891
    """
    mu = _validate.nonnegative("mu", mu)
    points = _validate.at_least("points", points, least=2)
    # The tangent of slope e^eps touches at FPR = Phi(-mu/2 - eps/mu), which runs from Phi(-mu/2) down to nothing.
    # Dense where both rates are of use; rates below e^-800 are no doubles.
    epsilons = mu * max(_FURTHEST - mu / 2, 0.0) * np.linspace(0.0, 1.0, points) ** 2
    deltas = np.minimum(gaussian_deltas(mu, epsilons=epsilons) * (1 + _ROUNDING), 1.0)
    return TradeoffCurve.from_profile(epsilons, deltas=deltas)


def composed_mu(mus: Iterable[float]) -> float:
    """Return the mu of several Gaussian-DP steps together, sqrt(mu_1^2 + mu_2^2 + ...): exact.

    Args:
        mus: One for each step, 0 or more.

    Raises:
        InputError: There is none, or one is negative.

    Source: Dong, Roth and Su 2022, Corollary 3.3.

    >>> composed_mu([3.0, 4.0])
    5.0
    """
    _validate.instance("mus", mus, (Iterable,))
    listed = [_validate.nonnegative(f"mu of step {place}", mu) for place, mu in enumerate(mus, start=1)]
    if not listed:
        raise InputError("mus must have one number for each step, got none.")
    return math.hypot(*listed)


def mu_without_sampling(training: DPSGD, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the mu of DP-SGD if every record took part in every step, sqrt(sum of (1/s_t)^2), twice it for replace-one.

    Exact if the sampling rate is 1. Below it, an upper bound that ignores the sampling and is usually far too large to
    be of use.

    Args:
        training: Noise multipliers s_t, sampling rates and steps.
        adjacency: Which training sets count as neighbours.

    Returns:
        ``mu``, proven; null for batches of a fixed size and added or removed records.

    Raises:
        InputError: The adjacency is unknown, or ``training`` is no `DPSGD`.

    Source: Dong, Roth and Su 2022, Theorem 2.7 and Corollary 3.3.

    >>> round(mu_without_sampling(DPSGD(2.0, 1.0, 100)).value, 12)
    5.0
    """
    _validate.instance("training", training, (DPSGD,))
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    method = "exact Gaussian composition" if _unsampled(training) else "Gaussian composition without sampling"
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        return Claim("mu", None, None, relation, method, proven=True, note=FIXED_SIZE)
    log_squares = [_log_square_unsampled(phase.noise_multiplier, relation) for phase in training.phases]
    note = "" if _unsampled(training) else _IGNORES_SAMPLING
    return Claim("mu", _root_of_sum(training, log_squares), None, relation, method, proven=True, note=note)


def mu_clt(training: DPSGD, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the mu that DP-SGD tends to by the central limit theorem.

    Its square is the sum over the steps of

    * p^2 (e^(1/s^2) - 1) for add/remove neighbours (Bu et al. 2020),
    * 4 p^2 sinh(1/s^2) for replace-one [own: the variance of one step's log-ratio to leading order in p],
    * 2 p^2 (e^(m^2) Phi(3m/2) + 3 Phi(-m/2) - 2) with m = 2/s for batches of a fixed size and replace-one
      (Corollary 5.4 of Dong, Roth and Su 2022; see `auditor.theory.subsampled_mu`),

    and of the exact 1/s^2 (4/s^2 for replace-one) for steps at sampling rate 1.

    Args:
        training: Noise multipliers s, sampling rates p and steps.
        adjacency: Which training sets count as neighbours.

    Returns:
        ``mu``, an approximation (``proven`` is false) unless every sampling rate is 1; null for batches of a fixed
        size and added or removed records.

    Raises:
        InputError: The adjacency is unknown, or ``training`` is no `DPSGD`.

    >>> round(mu_clt(DPSGD(1.0, 0.001, 10_000)).value, 6)
    0.131083
    """
    _validate.instance("training", training, (DPSGD,))
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    if _unsampled(training) or (training.fixed_size and relation is Adjacency.ADD_REMOVE):
        return mu_without_sampling(training, adjacency=relation)
    log_squares = [
        _log_square_unsampled(phase.noise_multiplier, relation)
        if phase.sampling_rate == 1
        else 2 * math.log(phase.sampling_rate) + _log_variance(phase.noise_multiplier, training, relation)
        for phase in training.phases
    ]
    return Claim(
        "mu",
        _root_of_sum(training, log_squares),
        None,
        relation,
        "central limit theorem of Gaussian differential privacy",
        proven=False,
        note=ASYMPTOTIC,
    )


def _unsampled(training: DPSGD) -> bool:
    return all(phase.sampling_rate == 1 for phase in training.phases)


def _log_square_unsampled(noise: float, adjacency: Adjacency) -> float:
    """Log of the square of one unsampled step's mu."""
    return 2 * (math.log(2 if adjacency is Adjacency.REPLACE_ONE else 1) - math.log(noise))


def _log_variance(noise: float, training: DPSGD, adjacency: Adjacency) -> float:
    """Log of the variance of one step's log-ratio over p^2, to leading order in p."""
    log_u = -2 * math.log(noise)
    if training.fixed_size:
        return log_one_sided_variance(exp(math.log(2) + log_u / 2))
    if log_u < _LOG_TINY:  # e^u - 1 = sinh(u) = u to all digits
        return log_u + (math.log(4) if adjacency is Adjacency.REPLACE_ONE else 0.0)
    u = exp(log_u)
    if adjacency is Adjacency.ADD_REMOVE:
        return u + math.log(-math.expm1(-u))
    return u + math.log(-math.expm1(-2 * u)) + math.log(2)


def _root_of_sum(training: DPSGD, log_squares: list[float]) -> float:
    """Square root of the sum over all steps, from the log of each phase's square."""
    logs = np.array(log_squares) + np.log([float(phase.steps) for phase in training.phases])
    return exp(float(np.logaddexp.reduce(logs)) / 2)
