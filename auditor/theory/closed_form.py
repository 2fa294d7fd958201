"""Bayes security of DP-SGD in closed form: two approximations that cost nothing, neither of them a proof.

Bayes security is beta* = 1 - advantage: 1 means that the best attacker guesses, 0 that the attacker knows.
Both forms speak about the attacker of train-versus-fresh-record membership inference, who sees every iterate
and whose two worlds differ in one replaced record.
"""

from auditor import _validate
from auditor._format import number
from auditor.choices import DPSGD, Adjacency
from auditor.theory._gaussian_form import (
    UNCOVERED,
    ClosedForm,
    Corollary7,
    MomentMatched,
    covers,
    is_sampled,
    log_half_mu,
    overlap,
)
from auditor.values import Claim

__all__ = [
    "ClosedForm",
    "Corollary7",
    "MomentMatched",
    "bayes_security_closed_form",
    "bayes_security_moment_matched",
]

_CLOSED_FORM_NOTE = (
    "An approximation that can be on the unsafe side (too high) for a small sampling rate and many steps, the more"
    " so the lower the noise: at rate 0.001, noise 1, 50,000 steps the advantage is 0.1912 and this gives 0.1769."
    " The paper calls it a bound; our erratum on its Corollary 7 shows that it is none."
)
_NO_SAMPLING_NOTE = "Exact, because every record takes part in every step."
_MOMENT_MATCHED_NOTE = (
    "An approximation, not a bound: it came out on the safe side (below the exact value) in every setting tried,"
    " without a proof that it always does."
)
# Below this, the two forms agree as well as either is known.
_AGREEMENT = 1e-4


def bayes_security_closed_form(training: DPSGD) -> Claim:
    """Return the published closed form of the Bayes security of DP-SGD, 1 - erf(p sqrt(T) / (sqrt2 s)).

    An approximation (``proven`` is false) unless every record takes part in every step. The paper calls it a bound,
    but its error term exceeds 1 at p = 0.001, T = 50,000, s = 1, where the form overstates security (erratum to
    Corollary 7). With vectors p^2 T / s^2 becomes the sum of p_t^2 / s_t^2 [own].

    Args:
        training: Noise multiplier s, sampling rate p, steps T.

    Returns:
        ``bayes_security`` in [0, 1] for replace-one neighbours, precise to its last digits even when tiny. The note
        says by how much it may be too high here. Null for batches of a fixed size at a sampling rate below 1: the form
        is about independent coins, and would be too high for them already at large noise.

    Raises:
        InputError: ``training`` is no `DPSGD`.

    Source: Cherubin et al. 2024, Corollary 7, with the erratum above.

    >>> round(bayes_security_closed_form(DPSGD(1.0, 0.01, 1000)).value, 6)
    0.75183
    """
    _validate.instance("training", training, (DPSGD,))
    sampled = is_sampled(training)
    method = "closed form 1 - erf(p sqrt(T) / (sqrt(2) s)) (Cherubin et al. 2024, Corollary 7)"
    if not covers(Corollary7(), sampling=training.sampling, sampled=sampled):
        note = f"{UNCOVERED[:1].upper()}{UNCOVERED[1:]}."
        return Claim("bayes_security", None, None, Adjacency.REPLACE_ONE, method, proven=False, note=note)
    value = _value(log_half_mu(training, form=Corollary7()))
    return Claim(
        metric="bayes_security",
        value=value,
        delta=None,
        adjacency=Adjacency.REPLACE_ONE,
        method=method,
        proven=not sampled,
        note=_closed_form_note(training, value) if sampled else _NO_SAMPLING_NOTE,
    )


def _closed_form_note(training: DPSGD, value: float) -> str:
    """Name the unsafe regime, and how far into it this setting is."""
    excess = value - _value(log_half_mu(training, form=MomentMatched()))
    if excess <= _AGREEMENT:
        return f"{_CLOSED_FORM_NOTE} Here it agrees with the moment-matched form."
    return (
        f"{_CLOSED_FORM_NOTE} Here it may be too high by up to {number(excess)}, its distance from the moment-matched"
        " form."
    )


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
    _validate.instance("training", training, (DPSGD,))
    method = "moment-matched form 1 - erf(p sqrt(T sinh(1/s^2)) / sqrt(2))"
    if training.fixed_size:
        method = "moment-matched form for batches of a fixed size (variance of the dominating pair)"
    return Claim(
        metric="bayes_security",
        value=_value(log_half_mu(training, form=MomentMatched())),
        delta=None,
        adjacency=Adjacency.REPLACE_ONE,
        method=method,
        proven=False,
        note=_MOMENT_MATCHED_NOTE,
    )


def _value(log_half: float) -> float:
    return float(overlap(log_half))
