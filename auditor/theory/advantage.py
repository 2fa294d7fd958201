"""What an (epsilon, delta) claim means for a membership attacker: advantage and Bayes security."""

import math

from auditor import _validate
from auditor._format import given
from auditor.errors import InputError
from auditor.values import Claim

__all__ = ["bayes_security_from_advantage", "humphries", "rough_epsilon"]

_ROUGH = (
    "A rough estimate and no bound: it asks which epsilon would allow this advantage to some algorithm, not what"
    " DP-SGD promises, and usually lies far below the accountant's."
)

_WORDS = {"bayes_security": "Bayes security", "advantage": "advantage"}


def humphries(claim: Claim) -> Claim:
    """Return the largest membership advantage (TPR - FPR) that an (epsilon, delta) claim allows.

    Adv <= (e^eps - 1 + 2 delta) / (e^eps + 1), for every attacker and every threshold, between the two training
    sets that the claim calls neighbours. Tight over all (epsilon, delta)-DP algorithms, loose for DP-SGD.

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta.

    Returns:
        ``advantage`` in [0, 1] with the adjacency and the standing (``proven``) of the claim; null when the claim
        has no value.

    Raises:
        InputError: The claim is not an epsilon with its delta.

    Source: Humphries et al. 2020; Mahloujifar et al. 2022, Theorem 3.

    >>> from auditor.theory import epsilon
    >>> from auditor.choices import StatedClaim
    >>> round(humphries(epsilon(StatedClaim(1.0, 1e-5), delta=1e-5)).value, 8)
    0.46212254
    """
    _validate.instance("claim", claim, [Claim])
    _validate.known("claim metric", claim.metric, ("epsilon",))
    method = "advantage of (epsilon, delta)-DP (Humphries et al.)"
    if claim.value is None:
        return _derived(
            claim, metric="advantage", value=None, method=method, note=f"No epsilon: {claim.note}"
        )
    if claim.delta is None:
        raise InputError("an epsilon claim needs its delta, got none; state the delta of the claim.")
    # The DP region's corner nearest (0, 1) has FPR = (1 - d) / (1 + e^eps) = FNR. With t = tanh(eps/2) the
    # advantage 1 - 2 FPR is t + d (1 - t): no overflow for huge eps, no cancellation for tiny, never above 1.
    half = math.tanh(claim.value / 2)
    note = (
        f"An upper bound for every attacker, from epsilon {given(claim.value)} at delta {given(claim.delta)}."
    )
    value = half + claim.delta * (1 - half)
    return _derived(claim, metric="advantage", value=value, method=method, note=note)


def bayes_security_from_advantage(claim: Claim) -> Claim:
    """Return the Bayes security that an advantage leaves, 1 - Adv.

    An upper bound on the advantage becomes a lower bound on the Bayes security.

    Args:
        claim: An ``advantage`` claim.

    Returns:
        ``bayes_security`` in [0, 1] with the adjacency and the standing of the claim; null when the claim has no
        value.

    Raises:
        InputError: The claim is not an advantage.

    Source: Cherubin et al. 2024, Section 4.2.

    >>> from auditor.choices import Adjacency
    >>> advantage = Claim("advantage", 0.25, None, Adjacency.REPLACE_ONE, "stated", True)
    >>> bayes_security_from_advantage(advantage).value
    0.75
    """
    _validate.instance("claim", claim, [Claim])
    _validate.known("claim metric", claim.metric, ("advantage",))
    method = f"1 - advantage; {claim.method}"
    if claim.value is None:
        return _derived(claim, metric="bayes_security", value=None, method=method, note=claim.note)
    note = "A lower bound for every attacker." if claim.proven else "From an advantage that is not proven."
    return _derived(claim, metric="bayes_security", value=1 - claim.value, method=method, note=note)


def rough_epsilon(claim: Claim, *, delta: float) -> Claim:
    """Return the smallest epsilon whose Humphries bound allows this advantage: a rough estimate from one closed form.

    log((1 + Adv - 2 delta)/(1 - Adv)), which is log((2 - beta* - 2 delta)/beta*) for a Bayes security beta*. The paper
    calls it a lower bound on epsilon. It is one only where the advantage is exact or is itself a lower bound; from the
    closed forms, which are approximations, it bounds nothing (erratum to its Section 4.2.1), and it says nothing about
    how large epsilon may be.

    Args:
        claim: A ``bayes_security`` or ``advantage`` claim.
        delta: In [0, 1).

    Returns:
        ``epsilon`` in nats, 0 or more, never proven; infinite at an advantage of 1; null when the claim has no value.

    Raises:
        InputError: The claim is about something else, or delta is out of range.

    Source: Cherubin et al. 2024, Section 4.2.1, inverting Humphries et al. 2020.

    >>> from auditor.choices import DPSGD
    >>> from auditor.theory import bayes_security_closed_form
    >>> round(rough_epsilon(bayes_security_closed_form(DPSGD(1.0, 0.01, 1000)), delta=1e-5).value, 6)
    0.506908
    """
    _validate.instance("claim", claim, [Claim])
    _validate.known("claim metric", claim.metric, ("bayes_security", "advantage"))
    delta = _validate.fraction("delta", delta, zero=True)
    method = f"rough estimate by inverting the Humphries bound; {claim.method}"
    if claim.value is None:
        note = f"No {_WORDS[claim.metric]}: {claim.note}"
        return Claim("epsilon", None, delta, claim.adjacency, method, proven=False, note=note)
    # Whichever is given is exact; the other follows from it.
    is_security = claim.metric == "bayes_security"
    security, advantage = (claim.value, 1 - claim.value) if is_security else (1 - claim.value, claim.value)
    # (1 + Adv - 2 d)/(1 - Adv) = 1 + 2 (Adv - d)/(1 - Adv)
    excess = advantage - delta
    value = 0.0 if excess <= 0 else math.inf if security <= 0 else math.log1p(2 * excess / security)
    return Claim("epsilon", value, delta, claim.adjacency, method, proven=False, note=_ROUGH)


def _derived(claim: Claim, *, metric: str, value: float | None, method: str, note: str) -> Claim:
    """Return a claim without a delta of its own, with the adjacency and the standing of the one it comes from."""
    return Claim(
        metric=metric,
        value=value,
        delta=None,
        adjacency=claim.adjacency,
        method=method,
        proven=claim.proven,
        note=note,
    )
