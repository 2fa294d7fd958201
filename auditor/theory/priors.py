"""What an attacker with prior knowledge can reach: advantage, success rate, posterior and precision.

The prior is the probability, before the attacker looks, that the record was in the training set (for replaced records:
that it was the first of the two). The attacker is right without looking in a share max(prior, 1 - prior) of cases.
"""

import math
from collections.abc import Iterable, Sequence

from auditor import _validate
from auditor._format import given
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory.rates import relation_of, tpr_metric
from auditor.values import Claim

__all__ = [
    "advantage_under_prior",
    "posterior_from_epsilon",
    "precision_from_tpr",
    "success_rate",
    "success_rate_from_bayes_security",
]


def success_rate(
    training: DPSGD, *, prior: float = 0.5, adjacency: Adjacency = Adjacency.REPLACE_ONE
) -> Claim:
    """Return how often the best attacker on DP-SGD with this prior is right about one record, exactly.

    With pi the prior, sup_A pi P(A) + (1 - pi)(1 - Q(A)) = 1 - pi + pi H_{(1-pi)/pi}, where H_b = sup_A P(A) - b Q(A)
    is the hockey-stick divergence of the outputs with (P) and without (Q) the record.

    Args:
        training: Noise multiplier, sampling rate, steps.
        prior: In (0, 1).
        adjacency: Which training sets count as neighbours.

    Returns:
        ``success_rate`` in [max(prior, 1 - prior), 1], named ``success_rate_at_prior.<prior>`` unless the prior is 1/2.
        Where the noise is too small for the exact law, an upper bound from the total variation. Null for batches of
        a fixed size and added records.

    Raises:
        InputError: The run is no DPSGD, the prior is outside (0, 1), or the adjacency is unknown.

    Source: Mahloujifar et al. 2022, Appendix J, with the erratum to its Theorem 21.

    >>> round(success_rate(DPSGD(0.5, 0.5, 1), prior=0.3, adjacency="add-remove").value, 5)
    0.76832
    """
    from auditor.theory.privacy_loss import Unresolved, composed, only_a_bound
    from auditor.theory.total_variation import total_variation

    _validate.instance("training", training, [DPSGD])
    belief, relation = _prior(prior), relation_of(adjacency)
    advantage = total_variation(training, adjacency=relation)
    value = None if advantage.value is None else _success(1 - advantage.value, max(belief, 1 - belief))
    method, note = f"prior and total variation; {advantage.method}", advantage.note
    try:
        excess = float(composed(training, adjacency=relation).hockey_stick((1 - belief) / belief))
    except Unresolved:
        return Claim(_named("success_rate", belief), value, None, relation, method, proven=True, note=note)
    least = max(belief, 1 - belief)
    exact = min(1.0, max(least, 1 - belief + belief * excess), 1.0 if value is None else value)
    loose = only_a_bound(training)
    note = f"Guessing without the model is right in a share of {given(least)}."
    note += f" An upper bound. {loose}" if loose else ""
    which = "a dominating pair of laws" if loose else "the two laws of the composed privacy loss"
    method = f"the best guess from {which} and the prior"
    return Claim(_named("success_rate", belief), exact, None, relation, method, proven=True, note=note)


def advantage_under_prior(
    training: DPSGD, *, prior: float, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> Claim:
    """Return the membership advantage on DP-SGD under a prior, 2 (success - max(prior, 1 - prior)).

    For pi <= 1/2 it is 2 (1 - pi) TV_{pi/(1-pi)} - (1 - 2 pi). The paper adds the last term instead, which gives an
    advantage between equal laws (erratum to Theorem 21). Above 1/2 the two worlds change places.

    Args:
        training: Noise multiplier, sampling rate, steps.
        prior: In (0, 1); 1/2 gives the total variation.
        adjacency: Which training sets count as neighbours; the paper's game adds a record.

    Returns:
        ``advantage`` in [0, 2 min(prior, 1 - prior)], named ``advantage_at_prior.<prior>`` unless the prior is 1/2; in
        other respects as `success_rate`.

    Raises:
        InputError: The run is no DPSGD, the prior is outside (0, 1), or the adjacency is unknown.

    Source: Mahloujifar et al. 2022, Definition 20 and Theorem 21, with the erratum above.

    >>> round(advantage_under_prior(DPSGD(0.5, 0.5, 1), prior=0.3).value, 6)
    0.136631
    """
    success = success_rate(training, prior=prior, adjacency=adjacency)
    belief = _prior(prior)
    value = None if success.value is None else 2 * max(0.0, success.value - max(belief, 1 - belief))
    name, method = _named("advantage", belief), f"twice what looking adds; {success.method}"
    return Claim(name, value, None, success.adjacency, method, proven=success.proven, note=success.note)


def success_rate_from_bayes_security(claim: Claim, *, prior: float | Sequence[float] = 0.5) -> Claim:
    """Return the largest success rate that a Bayes security allows under a prior, 1 - beta* (1 - max prior).

    Bayes security bounds the generalised advantage (success - max prior) / (1 - max prior) by 1 - beta* for every
    prior, also over more than two secrets; for two equally likely ones the best attacker reaches it.

    Args:
        claim: A ``bayes_security`` claim.
        prior: In (0, 1), the probability of the first of two secrets; or the probabilities of all secrets, which are in
            (0, 1) and sum to 1.

    Returns:
        ``success_rate`` with the adjacency and the standing of the claim (named ``success_rate_at_prior.<max prior>``
        unless that is 1/2); null when the claim has no value.

    Raises:
        InputError: The claim is another quantity, or the prior is out of range.

    Source: Cherubin et al. 2024, Section 2.3; Chatzikokolakis et al. 2023, Theorem 1.

    >>> claim = Claim("bayes_security", 0.98, None, Adjacency.REPLACE_ONE, "stated", True)
    >>> round(success_rate_from_bayes_security(claim).value, 6)
    0.51
    """
    _validate.instance("claim", claim, [Claim])
    _validate.known("claim metric", claim.metric, ("bayes_security",))
    most = _most_likely(prior)
    value = None if claim.value is None else _success(claim.value, most)
    method = f"prior and Bayes security; {claim.method}"
    name = _named("success_rate", most)
    return Claim(name, value, None, claim.adjacency, method, proven=claim.proven, note=claim.note)


def posterior_from_epsilon(claim: Claim, *, prior: float) -> Claim:
    """Return the largest belief in membership that any output can leave an attacker with: the odds times e^epsilon.

    Args:
        claim: An ``epsilon`` claim at delta 0, in nats.
        prior: In (0, 1).

    Returns:
        ``posterior_at_prior.<prior>``, never below the prior; the smallest is 1 minus that of the prior 1 - pi. Null,
        with the reason, at a delta above 0: then outputs that settle the question are allowed, if rarely.

    Raises:
        InputError: The claim is not an epsilon with its delta, or the prior is outside (0, 1).

    Source: Dwork and Roth 2014, Section 2.3 (Bayes' rule on the definition).

    >>> claim = Claim("epsilon", 0.447, 0.0, Adjacency.ADD_REMOVE, "stated", True)
    >>> round(posterior_from_epsilon(claim, prior=0.5).value, 3)
    0.61
    """
    _validate.instance("claim", claim, [Claim])
    _validate.known("claim metric", claim.metric, ("epsilon",))
    belief, name = _prior(prior), f"posterior_at_prior.{prior:g}"
    if claim.value is None:
        return Claim(name, None, None, claim.adjacency, claim.method, proven=claim.proven, note=claim.note)
    if claim.delta is None:
        raise InputError("an epsilon claim needs its delta, got none; state the delta of the claim.")
    method = f"prior odds times e^epsilon; {claim.method}"
    if claim.delta > 0:
        note = (
            f"A delta above 0 (here {given(claim.delta)}) allows rare outputs that settle the question, so no posterior"
            " is bounded; a precision at a false positive rate is."
        )
        return Claim(name, None, claim.delta, claim.adjacency, method, proven=claim.proven, note=note)
    # In odds, so that a large epsilon cannot overflow.
    value = 1 / (1 + (1 - belief) / belief * math.exp(-claim.value))
    note = f"The largest belief that any output can leave, from a prior of {given(belief)}."
    return Claim(name, max(value, belief), 0.0, claim.adjacency, method, proven=claim.proven, note=note)


def precision_from_tpr(claim: Claim, *, fpr: float, prior: float) -> Claim:
    """Return how many of the accused records were in the training set, pi TPR / (pi TPR + (1 - pi) FPR).

    It grows with the true positive rate, so the largest rate at this false positive rate gives the largest precision
    there. At a smaller false positive rate an attacker accuses fewer records and may be more precise.

    Args:
        claim: A ``tpr_at_fpr.<fpr>`` claim of `auditor.theory.rates`.
        fpr: The false positive rate that it is about, in (0, 1].
        prior: In (0, 1), the share of members among those the attacker looks at.

    Returns:
        ``precision_at_fpr.<fpr>`` with the adjacency and the standing of the claim; null when that has no value.

    Raises:
        InputError: The claim is about another rate, or a number is out of range.

    Source: Bayes' rule; Jayaraman et al. 2021, Section 4.

    >>> claim = Claim("tpr_at_fpr.0.01", 0.04, None, Adjacency.REPLACE_ONE, "stated", True)
    >>> round(precision_from_tpr(claim, fpr=0.01, prior=0.5).value, 6)
    0.8
    """
    metric = tpr_metric(fpr)
    _validate.instance("claim", claim, [Claim])
    _validate.known("claim metric", claim.metric, (metric,))
    belief, rate = _prior(prior), float(fpr)
    name, method = f"precision_at_fpr.{rate:g}", f"Bayes' rule at prior {given(belief)}; {claim.method}"
    if claim.value is None:
        return Claim(name, None, None, claim.adjacency, method, proven=claim.proven, note=claim.note)
    accused = belief * claim.value
    value = accused / (accused + (1 - belief) * rate)
    return Claim(name, value, None, claim.adjacency, method, proven=claim.proven, note=claim.note)


def _prior(prior: float) -> float:
    return _validate.fraction("prior", prior)


def _most_likely(prior: float | Sequence[float]) -> float:
    if not isinstance(prior, Iterable):
        belief = _prior(prior)
        return max(belief, 1 - belief)
    listed = [_validate.fraction(f"prior of secret {place}", value) for place, value in enumerate(prior, 1)]
    total = math.fsum(listed)
    if not math.isclose(total, 1, abs_tol=1e-9):
        raise InputError(f"the prior must sum to 1 over all secrets, got {total:g} over {len(listed)}.")
    return max(listed)


def _success(bayes_security: float, most_likely: float) -> float:
    # This order of terms never falls below the prior.
    return most_likely + (1 - bayes_security) * (1 - most_likely)


def _named(metric: str, prior: float) -> str:
    return metric if prior == 0.5 else f"{metric}_at_prior.{prior:g}"  # noqa: PLR2004
