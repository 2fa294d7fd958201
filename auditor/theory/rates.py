"""The true positive rate that other promises allow at a false positive rate; see also `auditor.theory.training_rates`.

A true positive is a record that was in the training set (or the first of two) and that the attacker calls so. Every
claim here is about one false positive rate, named in its metric: ``tpr_at_fpr.0.01``.
"""

import math

from auditor import _validate
from auditor._format import given
from auditor.choices import Adjacency
from auditor.errors import InputError
from auditor.values import Claim

__all__ = [
    "tpr_from_advantage",
    "tpr_from_epsilon",
    "tpr_from_mu",
    "tpr_from_tv_a",
    "tpr_metric",
]


def tpr_metric(fpr: float) -> str:
    """Return the name of the true positive rate at a false positive rate in (0, 1].

    >>> tpr_metric(0.01)
    'tpr_at_fpr.0.01'
    """
    return f"tpr_at_fpr.{rate_of(fpr):g}"


def tpr_from_advantage(claim: Claim, *, fpr: float) -> Claim:
    """Return the largest true positive rate that an advantage or a Bayes security allows, FPR + advantage.

    TPR <= 1 + FPR - beta*, for every prior: TPR and FPR are conditional on membership, so the prior does not enter.
    The paper's other branch, for members that are the more likely case, counts the false positives out of the wrong
    group (erratum to Proposition 9). Loose at small rates: the same advantage is granted at every one.

    Args:
        claim: An ``advantage`` or ``bayes_security`` claim.
        fpr: In (0, 1].

    Returns:
        ``tpr_at_fpr.<fpr>`` in [fpr, 1] with the adjacency and the standing of the claim; null when that has no value.

    Raises:
        InputError: The claim is another quantity, or ``fpr`` is outside (0, 1].

    Source: Cherubin et al. 2024, Proposition 9, with the erratum above.

    >>> claim = Claim("bayes_security", 0.88, None, Adjacency.REPLACE_ONE, "stated", True)
    >>> round(tpr_from_advantage(claim, fpr=0.1).value, 6)
    0.22
    """
    _validate.known("claim metric", claim.metric, ("advantage", "bayes_security"))
    rate = rate_of(fpr)
    method = f"false positive rate plus advantage; {claim.method}"
    if claim.value is None:
        return _derived(claim, rate, value=None, method=method, note=claim.note)
    advantage = claim.value if claim.metric == "advantage" else 1 - claim.value
    return _derived(
        claim, rate, value=rate + advantage, method=method, note=_standing(claim, "Holds for every prior.")
    )


def tpr_from_epsilon(claim: Claim, *, fpr: float) -> Claim:
    """Return the largest true positive rate that one (epsilon, delta) allows.

    TPR <= min(e^eps FPR + delta, 1 - e^-eps (1 - delta - FPR)).

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta.
        fpr: In (0, 1].

    Returns:
        ``tpr_at_fpr.<fpr>`` with the adjacency and the standing of the claim; null when that has no value.

    Raises:
        InputError: The claim is not an epsilon with its delta, or ``fpr`` is outside (0, 1].

    Source: Kairouz, Oh and Viswanath 2015.

    >>> claim = Claim("epsilon", 1.0, 1e-5, Adjacency.ADD_REMOVE, "stated", True)
    >>> round(tpr_from_epsilon(claim, fpr=0.01).value, 6)
    0.027193
    """
    from auditor.tradeoff import TradeoffCurve

    _validate.known("claim metric", claim.metric, ("epsilon",))
    rate = rate_of(fpr)
    method = f"the trade-off curve of (epsilon, delta); {claim.method}"
    if claim.value is None:
        return _derived(claim, rate, value=None, method=method, note=claim.note)
    if claim.delta is None:
        raise InputError("an epsilon claim needs its delta, got none; state the delta of the claim.")
    value = 1.0  # what an infinite epsilon allows
    if math.isfinite(claim.value):
        value = TradeoffCurve.from_epsilon_delta(claim.value, delta=claim.delta).tpr_at(rate)
    note = f"From epsilon {given(claim.value)} at delta {given(claim.delta)} alone, so it may be loose."
    return _derived(claim, rate, value=value, method=method, note=_standing(claim, note))


def tpr_from_mu(claim: Claim, *, fpr: float) -> Claim:
    """Return the largest true positive rate that Gaussian differential privacy allows, Phi(Phi^-1(FPR) + mu).

    Args:
        claim: A ``mu`` claim, 0 or more.
        fpr: In (0, 1].

    Returns:
        ``tpr_at_fpr.<fpr>`` with the adjacency and the standing of the claim; null when that has no value.

    Raises:
        InputError: The claim is not a mu, or ``fpr`` is outside (0, 1].

    Source: Dong, Roth and Su 2022, Definition 2.6.

    >>> claim = Claim("mu", 1.0, None, Adjacency.ADD_REMOVE, "stated", True)
    >>> round(tpr_from_mu(claim, fpr=0.1).value, 6)
    0.389144
    """
    _validate.known("claim metric", claim.metric, ("mu",))
    rate = rate_of(fpr)
    method = f"the trade-off curve of two Gaussians; {claim.method}"
    if claim.value is None:
        return _derived(claim, rate, value=None, method=method, note=claim.note)
    return _derived(
        claim, rate, value=gaussian_tpr(rate, claim.value), method=method, note=_standing(claim, claim.note)
    )


def tpr_from_tv_a(value: float, *, a: float, fpr: float) -> float:
    """Return the largest true positive rate that TV_a allows, (2 FPR + 2 TV_a + a - 1) / (2 a), in [fpr, 1].

    It holds for every a, and is the exact rate for one of them at each false positive rate: the line of slope 1/a
    that touches the trade-off curve there.

    Args:
        value: TV_a, from `auditor.theory.total_variation_a`; that is a H_{1/a} + (1 - a)/2 with the hockey-stick
            divergence H_b = sup_S P(S) - b Q(S), so the bound is the line FPR/a + H_{1/a}.
        a: Above 0.
        fpr: In (0, 1].

    Raises:
        InputError: A number out of range.

    Source: Mahloujifar et al. 2022, Corollary 11.

    >>> round(tpr_from_tv_a(0.25, a=1.0, fpr=0.1), 6)
    0.35
    """
    rate, weight = rate_of(fpr), _validate.positive("a", a)
    reached = (rate + _validate.nonnegative("TV_a", value) - (1 - weight) / 2) / weight
    return clipped(reached, rate)


def rate_of(fpr: float) -> float:
    """Return the false positive rate, checked."""
    return _validate.fraction("fpr", fpr, one=True)


def relation_of(adjacency: Adjacency) -> Adjacency:
    """Return the adjacency, checked."""
    return Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))


def clipped(tpr: float, fpr: float) -> float:
    """No best attacker does worse than accusing at random."""
    return min(1.0, max(tpr, fpr))


def gaussian_tpr(fpr: float, mu: float) -> float:
    """Return Phi(Phi^-1(fpr) + mu)."""
    from scipy.special import ndtr, ndtri

    return 1.0 if fpr == 1 else clipped(float(ndtr(ndtri(fpr) + mu)), fpr)


def _standing(claim: Claim, note: str) -> str:
    return note if claim.proven else f"{note} From a number that is not proven: {claim.note}".strip()


def _derived(claim: Claim, fpr: float, *, value: float | None, method: str, note: str) -> Claim:
    reached = None if value is None else clipped(value, fpr)
    return Claim(tpr_metric(fpr), reached, None, claim.adjacency, method, proven=claim.proven, note=note)
