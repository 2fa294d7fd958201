"""Bayes security of DP-SGD in closed form: two approximations that cost nothing, neither of them a proof.

Bayes security is beta* = 1 - advantage: 1 means that the best attacker guesses, 0 that the attacker knows.
Both forms speak about the attacker of train-versus-fresh-record membership inference, who sees every iterate
and whose two worlds differ in one replaced record.
"""

import math

from auditor.choices import DPSGD, Adjacency
from auditor.values import Claim

__all__ = ["bayes_security_closed_form", "bayes_security_moment_matched"]

_CLOSED_FORM_NOTE = (
    "An approximation that can be on the unsafe side (too high) for a small sampling rate and many steps:"
    " at rate 0.001, noise 1, 50,000 steps the advantage is 0.1912 and this gives 0.1769."
    " The paper calls it a bound; our erratum on its Corollary 7 shows that it is none."
)
_MOMENT_MATCHED_NOTE = (
    "An approximation, not a bound: it came out on the safe side (below the exact value) in every setting tried,"
    " without a proof that it always does."
)


def bayes_security_closed_form(training: DPSGD) -> Claim:
    """Return the published closed form of the Bayes security of DP-SGD, 1 - erf(p sqrt(T) / (sqrt2 s)).

    An approximation (``proven`` is false). The paper calls it a bound, but its error term exceeds 1 at p = 0.001,
    T = 50,000, s = 1, where the form overstates security (erratum to Corollary 7).

    Args:
        training: Noise multiplier s, sampling rate p, steps T.

    Returns:
        ``bayes_security`` in [0, 1] for replace-one neighbours, precise to its last digits even when tiny.

    Source: Cherubin et al. 2024, Corollary 7, with the erratum above.

    >>> round(bayes_security_closed_form(DPSGD(1.0, 0.01, 1000)).value, 6)
    0.75183
    """
    # Each step contributes the log-ratio of N(p, s^2) and N(-p, s^2): mu = 2 p sqrt(T) / s in all.
    half_mu = (
        math.log(training.sampling_rate) + math.log(training.steps) / 2 - math.log(training.noise_multiplier)
    )
    return Claim(
        metric="bayes_security",
        value=_gaussian_overlap(half_mu),
        delta=None,
        adjacency=Adjacency.REPLACE_ONE,
        method="closed form 1 - erf(p sqrt(T) / (sqrt(2) s)) (Cherubin et al. 2024, Corollary 7)",
        proven=False,
        note=_CLOSED_FORM_NOTE,
    )


def bayes_security_moment_matched(training: DPSGD) -> Claim:
    """Return the Bayes security of DP-SGD with a matched second moment, 1 - erf(p sqrt(T sinh(1/s^2)) / sqrt2).

    [own] One step's log-ratio is, for small p, about p (e^((2x-1)/(2s^2)) - e^((-2x-1)/(2s^2))) with x ~ N(0, s^2),
    whose variance is 4 p^2 sinh(1/s^2); the closed form keeps only 4 p^2 / s^2 of it. So this value is never
    above the closed form. An approximation (``proven`` is false).

    Args:
        training: Noise multiplier s, sampling rate p, steps T.

    Returns:
        ``bayes_security`` in [0, 1] for replace-one neighbours; exactly 0 once it falls below every double.

    >>> round(bayes_security_moment_matched(DPSGD(1.0, 0.01, 1000)).value, 6)
    0.73174
    """
    half_mu = (
        math.log(training.sampling_rate)
        + (math.log(training.steps) + _log_sinh_inverse_square(training.noise_multiplier)) / 2
    )
    return Claim(
        metric="bayes_security",
        value=_gaussian_overlap(half_mu),
        delta=None,
        adjacency=Adjacency.REPLACE_ONE,
        method="moment-matched form 1 - erf(p sqrt(T sinh(1/s^2)) / sqrt(2))",
        proven=False,
        note=_MOMENT_MATCHED_NOTE,
    )


def _gaussian_overlap(log_half_mu: float) -> float:
    """Return 1 - TV(N(0, 1), N(mu, 1)) = erfc(mu / (2 sqrt2)) from log(mu / 2)."""
    from scipy.special import erfc

    # erfc underflows to 0 from mu/2 = 39 on, so capping the exponent changes nothing.
    return float(erfc(math.exp(min(log_half_mu, 10.0)) / math.sqrt(2)))


def _log_sinh_inverse_square(noise: float) -> float:
    """Return log sinh(u) at u = 1/noise^2, without overflow for tiny noise or underflow for huge noise."""
    log_u = -2 * math.log(noise)
    if log_u < -20:  # noqa: PLR2004  sinh(u) = u to all digits
        return log_u
    u = math.exp(min(log_u, 700.0))  # a larger u saturates the value to 0 all the same
    return u + math.log(-math.expm1(-2 * u)) - math.log(2)
