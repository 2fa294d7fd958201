"""Bayes security of DP-SGD in closed form: two approximations that cost nothing, neither of them a proof.

Bayes security is beta* = 1 - advantage: 1 means that the best attacker guesses, 0 that the attacker knows.
Both forms speak about the attacker of train-versus-fresh-record membership inference, who sees every iterate
and whose two worlds differ in one replaced record.
"""

import math

import numpy as np
from scipy.special import erfc

from auditor.core import DPSGD, Adjacency, Claim, Floats, number, validate
from auditor.theory import gaussian

# --- The two forms, and the Bayes security of a training run by each ---


_UNCOVERED = (
    "The published form is about batches drawn by independent coins, and batches of a fixed size give away more; use the"
    " moment-matched form."
)
_CLOSED_FORM_NOTE = (
    "An approximation that can be on the unsafe side (too high) for a small sampling rate and many steps, the more"
    " so the lower the noise: at rate 0.001, noise 1, 50,000 steps the advantage is 0.1912 and this gives 0.1769."
    " The paper's Corollary 7 is true with its error term, which is left out here, and says nothing with it in such settings."
)
_NO_SAMPLING_NOTE = "Exact, because every record takes part in every step."
_MOMENT_MATCHED_NOTE = (
    "An approximation, not a bound: it came out on the safe side (below the exact value) in every setting tried,"
    " without a proof that it always does."
)
# Below this, the two forms agree as well as either is known.
_AGREEMENT = 1e-4


@gaussian.as_accounted
def bayes_security_closed_form(training: DPSGD) -> Claim:
    """Return the published closed form of the Bayes security of DP-SGD, 1 - erf(p sqrt(T) / (sqrt2 s)).

    An approximation (``proven`` is false) unless every record takes part in every step. The paper's corollary
    is true with its error term, which exceeds 1 at p = 0.001, T = 50,000, s = 1; without it, as used, the form overstates
    security there (erratum to Corollary 7). With vectors p^2 T / s^2 becomes the sum of p_t^2 / s_t^2 [own].

    Args:
        training: Noise multiplier s, sampling rate p, steps T.

    Returns:
        ``bayes_security`` in [0, 1] for replace-one neighbours, precise to its last digits even when tiny. The note
        says by how much it may be too high here. None for batches of a fixed size at a sampling rate below 1: the form
        is about independent coins, and would be too high for them already at large noise.

    Raises:
        InputError: ``training`` is no `DPSGD`.

    Source: Cherubin et al. 2024, Corollary 7, with the erratum above.

    >>> round(bayes_security_closed_form(DPSGD(1.0, 0.01, 1000)).value, 6)
    0.75183
    """
    validate.instance("training", training, (DPSGD,))
    method = "closed form 1 - erf(p sqrt(T) / (sqrt(2) s)) (Cherubin et al. 2024, Corollary 7)"
    if training.fixed_size and training.sampled:
        return Claim(
            "bayes_security", None, None, Adjacency.REPLACE_ONE, method, proven=False, note=_UNCOVERED
        )
    noise, rate, steps = gaussian.columns(training)
    value = _overlap(_log_half(rate, steps, -2 * np.log(noise)))
    note = _NO_SAMPLING_NOTE
    if training.sampled:  # the unsafe regime, and how far into it this setting is
        excess = value - _overlap(log_half_matched(noise, rate, steps, pair=_pair(training)))
        here = f"may be too high by up to {number(excess)}, its distance from"
        note = f"{_CLOSED_FORM_NOTE} Here it {here if excess > _AGREEMENT else 'agrees with'} the moment-matched form."
    proven = not training.sampled
    return Claim("bayes_security", value, None, Adjacency.REPLACE_ONE, method, proven=proven, note=note)


@gaussian.as_accounted
def bayes_security_moment_matched(training: DPSGD) -> Claim:
    """Return the Bayes security of DP-SGD with a matched second moment, 1 - erf(p sqrt(T sinh(1/s^2)) / sqrt2).

    [own] One step's log-ratio is, for small p, about p (e^((2x-1)/(2s^2)) - e^((-2x-1)/(2s^2))) with x ~ N(0, s^2),
    whose variance is 4 p^2 sinh(1/s^2); the closed form keeps only 4 p^2 / s^2 of it. So this value is never
    above the closed form. An approximation (``proven`` is false). Variances of different steps add.

    For batches of a fixed size, one step of the dominating pair has for small p the variance
    2 p^2 (e^(m^2) Phi(3m/2) + 3 Phi(-m/2) - 2) with m = 2/s, which takes the place of 4 p^2 sinh(1/s^2).

    Args:
        training: Noise multiplier s, sampling rate p, steps T.

    Returns:
        ``bayes_security`` in [0, 1] for replace-one neighbours; exactly 0 once it falls below every double.

    Raises:
        InputError: ``training`` is no `DPSGD`.

    Source: own derivation; Dong, Roth and Su 2022, Corollary 5.4 (corrected) for batches of a fixed size.

    >>> round(bayes_security_moment_matched(DPSGD(1.0, 0.01, 1000)).value, 6)
    0.73174
    """
    validate.instance("training", training, (DPSGD,))
    method = "moment-matched form 1 - erf(p sqrt(T sinh(1/s^2)) / sqrt(2))"
    if training.fixed_size:
        method = "moment-matched form for batches of a fixed size (variance of the dominating pair)"
    value = _overlap(log_half_matched(*gaussian.columns(training), pair=_pair(training)))
    note = _MOMENT_MATCHED_NOTE
    return Claim("bayes_security", value, None, Adjacency.REPLACE_ONE, method, proven=False, note=note)


def _pair(training: DPSGD) -> gaussian.StepPair:
    return gaussian.StepPair.of(training, Adjacency.REPLACE_ONE)


# --- The Gaussian comparison behind them: one number, (mu/2)^2, adds up over steps ---
#
# The run is taken for a comparison of N(mu/2, 1) with N(-mu/2, 1), where (mu/2)^2 is the sum over the steps of
# p^2 k(s): at rate p and noise multiplier s, for one replaced record. A form is a choice of k: 1/s^2 is the
# published one, and sinh(1/s^2) the matched second moment of one step's log-ratio.


def log_half_matched(noise: Floats, rate: Floats, steps: Floats, *, pair: gaussian.StepPair) -> float:
    """Return log(mu / 2) by the matched second moment of these kinds of step; added records are for first guesses."""
    return _log_half(rate, steps, gaussian.log_variance(noise, pair) - math.log(4))


def _log_half(rate: Floats, steps: Floats, log_k: Floats) -> float:
    """Return log(mu / 2), half the distance of the two Gaussians that a form takes the run for; steps add up."""
    return float(np.logaddexp.reduce(2 * np.log(rate) + np.log(steps) + log_k)) / 2


def _overlap(log_half: float) -> float:
    """Return 1 - TV(N(0, 1), N(mu, 1)) = erfc(mu / (2 sqrt2)) from log(mu / 2)."""
    # erfc underflows to 0 from mu/2 = 39 on, so capping the exponent changes nothing.
    return float(erfc(np.exp(np.minimum(log_half, 10.0)) / math.sqrt(2)))
