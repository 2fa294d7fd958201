"""Bounds on a membership attacker: advantage, Bayes security, true positive rates, each under a prior.

From another promise (an epsilon, a mu, an advantage), or from the training run itself. A positive, here as everywhere in
this package, is a record that was in the training set (or the first of two), and that the attacker calls so.
"""

import math

import numpy as np
from scipy.special import ndtr, ndtri

from auditor.core import DPSGD, Adjacency, Claim, as_stated, validate
from auditor.curves.tradeoff import TradeoffCurve
from auditor.theory.accountant import delta_of, derived, require_metric
from auditor.theory.gaussian import FIXED_SIZE, StepPair, as_accounted, columns, relation_of, unsampled_mu
from auditor.theory.privacy_loss import Unresolved, composed, only_a_bound

# --- Advantage and Bayes security from an epsilon, and an epsilon from them ---

_ROUGH = (
    "A rough estimate and no bound: it is the epsilon that would allow this advantage to some algorithm, not what"
    " DP-SGD promises, and usually lies far below the true one."
)


def humphries(claim: Claim) -> Claim:
    """Return the largest membership advantage (TPR - FPR) that an (epsilon, delta) claim allows.

    Adv <= (e^eps - 1 + 2 delta) / (e^eps + 1), for every attacker and every threshold, between the two training
    sets that the claim calls neighbours. Tight over all (epsilon, delta)-DP algorithms, loose for DP-SGD.

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta.

    Returns:
        ``advantage`` in [0, 1] with the adjacency and the standing (``proven``) of the claim; None when the claim
        has no value.

    Raises:
        InputError: The claim is not an epsilon with its delta.

    Source: Humphries et al. 2020; Mahloujifar et al. 2022, Theorem 3.

    >>> from auditor.theory import epsilon
    >>> from auditor.core.options import StatedClaim
    >>> round(humphries(epsilon(StatedClaim(1.0, 1e-5), delta=1e-5)).value, 8)
    0.46212254
    """
    require_metric(claim, "epsilon")
    method = "advantage of (epsilon, delta)-DP (Humphries et al.)"
    if claim.value is None:
        return derived(claim, "advantage", None, method, "")
    delta = delta_of(claim)
    # The DP region's corner nearest (0, 1) has FPR = (1 - d) / (1 + e^eps) = FNR. With t = tanh(eps/2) the
    # advantage 1 - 2 FPR is t + d (1 - t): no overflow for huge eps, no cancellation for tiny, never above 1.
    half = math.tanh(claim.value / 2)
    note = f"An upper bound for every attacker, from epsilon {as_stated(claim.value)} at delta {as_stated(delta)}."
    return derived(claim, "advantage", half + delta * (1 - half), method, note)


def bayes_security_from_advantage(claim: Claim) -> Claim:
    """Return the Bayes security that an advantage leaves, 1 - Adv.

    An upper bound on the advantage becomes a lower bound on the Bayes security.

    Args:
        claim: An ``advantage`` claim.

    Returns:
        ``bayes_security`` in [0, 1] with the adjacency and the standing of the claim; None when the claim has no
        value.

    Raises:
        InputError: The claim is not an advantage.

    Source: Cherubin et al. 2024, Section 4.2.

    >>> from auditor.core.options import Adjacency
    >>> advantage = Claim("advantage", 0.25, None, Adjacency.REPLACE_ONE, "stated", True)
    >>> bayes_security_from_advantage(advantage).value
    0.75
    """
    require_metric(claim, "advantage")
    value = None if claim.value is None else 1 - claim.value
    note = "A lower bound for every attacker." if claim.proven else "From an advantage that is not proven."
    return derived(claim, "bayes_security", value, f"1 - advantage; {claim.method}", note)


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
        ``epsilon`` in nats, 0 or more, never proven; infinite at an advantage of 1; None when the claim has no value.

    Raises:
        InputError: The claim is about something else, or delta is out of range.

    Source: Cherubin et al. 2024, Section 4.2.1, inverting Humphries et al. 2020.

    >>> from auditor.core.options import DPSGD
    >>> from auditor.theory import bayes_security_closed_form
    >>> round(rough_epsilon(bayes_security_closed_form(DPSGD(1.0, 0.01, 1000)), delta=1e-5).value, 6)
    0.506908
    """
    require_metric(claim, "bayes_security", "advantage")
    delta = validate.fraction("delta", delta, zero=True)
    method = f"rough estimate by inverting the Humphries bound; {claim.method}"
    if claim.value is None:
        return Claim("epsilon", None, delta, claim.adjacency, method, proven=False, note=claim.note)
    # Whichever is given is exact; the other follows from it.
    is_security = claim.metric == "bayes_security"
    security, advantage = (claim.value, 1 - claim.value) if is_security else (1 - claim.value, claim.value)
    # (1 + Adv - 2 d)/(1 - Adv) = 1 + 2 (Adv - d)/(1 - Adv)
    excess = advantage - delta
    value = 0.0 if excess <= 0 else math.inf if security <= 0 else math.log1p(2 * excess / security)
    return Claim("epsilon", value, delta, claim.adjacency, method, proven=False, note=_ROUGH)


# --- Total variation: the advantage of the best attacker on a training run ---
#
# An attacker who sees every iterate and says "member" on a set A has TPR - FPR = P(A) - Q(A) <= TV. Bayes security is
# 1 - TV (Chatzikokolakis et al. 2023, Theorem 1).

_REACHED = "For every attacker, also one who sees every iterate; some attacker on some data reaches it."
_BOUND = "An upper bound for every attacker, also one who sees every iterate."
_CLEARLY = 1e-12
_CLOSE = 1e-6
_FAR = 0.01


@as_accounted
def total_variation(training: DPSGD, *, adjacency: Adjacency = Adjacency.REPLACE_ONE) -> Claim:
    """Return the largest membership advantage (TPR - FPR) that a training run allows, exactly.

    Args:
        training: Noise, sampling rate and steps.
        adjacency: Relation between neighbouring training sets: train-versus-fresh-record membership inference is about
            replaced records (default).

    Returns:
        ``advantage`` in [0, 1], rounded up, between ``lower`` and ``upper``, which are proven and mostly 1e-10 apart
        (`auditor.theory.inversion`). Where there is almost no noise, and for several batches of a fixed size, an upper
        bound; ``method`` and ``note`` say so. None for batches of a fixed size and added records.

    Raises:
        InputError: The adjacency is unknown.

    Source: Mahloujifar et al. 2022, Theorem 6 (add/remove) and Zhu, Dong and Wang 2022; computed by characteristic
    function [own]. The paper's games with replaced records have another value: see the erratum on its Appendix H.

    >>> round(total_variation(DPSGD(1.0, 0.01, 1000)).value, 6)
    0.264352
    >>> round(total_variation(DPSGD(1.0, 0.01, 1000), adjacency="add-remove").value, 6)
    0.161018
    """
    relation = relation_of(training, adjacency)
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        return Claim("advantage", None, None, relation, "exact total variation", proven=True, note=FIXED_SIZE)
    limit, limit_method = _simple_bound(training, relation)
    try:
        law = composed(training, adjacency=relation)
    except Unresolved as reason:
        note = f"{_BOUND} Close to the truth where the noise is this small: {reason}"
        return Claim("advantage", limit, None, relation, limit_method, proven=True, note=note)
    lower, upper = (float(bound) for bound in law.between(np.zeros(())))
    if upper > limit * (1 + _CLEARLY):
        return Claim("advantage", limit, None, relation, limit_method, proven=True, note=_BOUND)
    closed = training.steps == 1 or not training.sampled
    how = "closed form" if closed else "characteristic function"
    loose = only_a_bound(training)
    if loose:
        method, note = f"total variation of a dominating pair ({how})", f"{_BOUND} {loose}"
    else:
        method, note = f"exact total variation ({how})", _REACHED
    if upper - lower > _CLOSE * upper:
        note = f"{_BOUND} Rounded up: the exact one is at least {as_stated(lower)}. {loose}".rstrip()
    return Claim("advantage", upper, None, relation, method, True, note, lower=lower, upper=upper)


def total_variation_a(training: DPSGD, *, a: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float:
    """Return TV_a = 1/2 integral |q - a p|, with p the density of the run with the record and q of that without.

    Its least value is |1 - a| / 2, for equal laws: (1 - a)/2 + a sup(P - Q/a) in the terms of `PrivacyLoss`.

    Args:
        training: Noise, sampling rate and steps.
        a: Above 0.
        adjacency: Relation between neighbouring training sets; replaced records are equal in both orders.

    Raises:
        InputError: a is not above 0, or the law cannot be computed well (`Unresolved`).

    Source: Mahloujifar et al. 2022, Definition 4; erratum on its Lemma 5.

    >>> round(total_variation_a(DPSGD(0.7 / 1.3, 1.0, 1), a=0.4), 6)  # errata: r = 1.3, s = 0.7
    0.489795
    """
    factor = validate.positive("a", a)
    excess = float(composed(training, adjacency=adjacency).hockey_stick(1 / factor))
    return (1 - factor) / 2 + factor * excess


def _simple_bound(training: DPSGD, adjacency: Adjacency) -> tuple[float, str]:
    """Return the smaller of two bounds: the record is never drawn, or it is in every step."""
    _, rate, steps = columns(training)
    with np.errstate(divide="ignore"):
        never = float(np.sum(steps * np.log1p(-rate)))
    mu = unsampled_mu(training, StepPair.of(training, adjacency))
    drawn, everyone = -math.expm1(never), math.erf(mu / math.sqrt(8))
    if drawn <= everyone:
        return drawn, f"chance that the record is drawn at all, {as_stated(drawn)}"
    return everyone, "Gaussian composition without sampling"


# --- The true positive rate that a promise allows at a false positive rate, which the metric names: ``tpr_at_fpr.0.01`` ---


def tpr_metric(fpr: float) -> str:
    """Return the name of the true positive rate at a false positive rate in (0, 1].

    >>> tpr_metric(0.01)
    'tpr_at_fpr.0.01'
    """
    return f"tpr_at_fpr.{validate.fraction('fpr', fpr, one=True):g}"


def tpr_from_advantage(claim: Claim, *, fpr: float) -> Claim:
    """Return the largest true positive rate that an advantage or a Bayes security allows, FPR + advantage.

    TPR <= 1 + FPR - beta*, for every prior: TPR and FPR are conditional on membership, so the prior does not enter.
    The paper's other branch, for members that are the more likely case, counts the false positives out of the wrong
    group (erratum to Proposition 9). Loose at small rates: the same advantage is granted at every one.

    Args:
        claim: An ``advantage`` or ``bayes_security`` claim.
        fpr: In (0, 1].

    Returns:
        ``tpr_at_fpr.<fpr>`` in [fpr, 1] with the adjacency and the standing of the claim; None when that has no value.

    Raises:
        InputError: The claim is another quantity, or ``fpr`` is outside (0, 1].

    Source: Cherubin et al. 2024, Proposition 9, with the erratum above.

    >>> claim = Claim("bayes_security", 0.88, None, Adjacency.REPLACE_ONE, "stated", True)
    >>> round(tpr_from_advantage(claim, fpr=0.1).value, 6)
    0.22
    """
    require_metric(claim, "advantage", "bayes_security")
    rate = validate.fraction("fpr", fpr, one=True)
    value = claim.value
    if value is not None:
        value = _clipped(rate + (value if claim.metric == "advantage" else 1 - value), rate)
    method = f"false positive rate plus advantage; {claim.method}"
    return derived(claim, tpr_metric(rate), value, method, _standing(claim, "Holds for every prior."))


def tpr_from_epsilon(claim: Claim, *, fpr: float) -> Claim:
    """Return the largest true positive rate that one (epsilon, delta) allows.

    TPR <= min(e^eps FPR + delta, 1 - e^-eps (1 - delta - FPR)).

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta.
        fpr: In (0, 1].

    Returns:
        ``tpr_at_fpr.<fpr>`` with the adjacency and the standing of the claim; None when that has no value.

    Raises:
        InputError: The claim is not an epsilon with its delta, or ``fpr`` is outside (0, 1].

    Source: Kairouz, Oh and Viswanath 2015.

    >>> claim = Claim("epsilon", 1.0, 1e-5, Adjacency.ADD_REMOVE, "stated", True)
    >>> round(tpr_from_epsilon(claim, fpr=0.01).value, 6)
    0.027193
    """
    require_metric(claim, "epsilon")
    rate = validate.fraction("fpr", fpr, one=True)
    method = f"the trade-off curve of (epsilon, delta); {claim.method}"
    if claim.value is None:
        return derived(claim, tpr_metric(rate), None, method, "")
    value, delta = 1.0, delta_of(claim)  # what an infinite epsilon allows
    if math.isfinite(claim.value):
        value = TradeoffCurve.from_epsilon_delta(claim.value, delta=delta).tpr_at(rate)
    note = f"From epsilon {as_stated(claim.value)} at delta {as_stated(delta)} alone, so it may be loose."
    return derived(claim, tpr_metric(rate), _clipped(value, rate), method, _standing(claim, note))


def _clipped(tpr: float, fpr: float) -> float:
    """Return the success of the best attacker, who does no worse than accusing at random."""
    return min(1.0, max(tpr, fpr))


def gaussian_tpr(fpr: float, mu: float) -> float:
    """Return the largest true positive rate that mu-GDP allows, Phi(Phi^-1(FPR) + mu): Dong, Roth and Su 2022, Definition 2.6.

    >>> round(gaussian_tpr(0.1, 1.0), 6)
    0.389144
    """
    return 1.0 if fpr == 1 else _clipped(float(ndtr(ndtri(fpr) + mu)), fpr)


def _standing(claim: Claim, note: str) -> str:
    return note if claim.proven else f"{note} From a number that is not proven: {claim.note}".strip()


# --- The true positive rate on a training run, exactly ---


@as_accounted
def tpr_exact(training: DPSGD, *, fpr: float, adjacency: Adjacency = Adjacency.REPLACE_ONE) -> Claim:
    """Return the true positive rate of the best attacker on DP-SGD who sees every iterate: Neyman and Pearson's test.

    From the exact law of the composed privacy loss, so that the worst pair of neighbours reaches it. For add/remove
    neighbours a positive is the run that has the record.

    Args:
        training: Noise multiplier, sampling rate, steps.
        fpr: In (0, 1].
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``tpr_at_fpr.<fpr>`` in [fpr, 1], rounded up. Where the noise is too small for the exact law, an upper bound from the
        total variation, and for several batches of a fixed size from their dominating pair; ``method`` and
        ``note`` say so. None for batches of a fixed size and added records.

    Raises:
        InputError: ``fpr`` is outside (0, 1], or the adjacency is unknown.

    Source: Neyman and Pearson 1933; Mahloujifar et al. 2022, Corollary 11.

    >>> round(tpr_exact(DPSGD(1.0, 1.0, 1), fpr=0.1, adjacency="add-remove").value, 6)
    0.389144
    """
    rate, relation = validate.fraction("fpr", fpr, one=True), Adjacency.named(adjacency)
    bound = tpr_from_advantage(total_variation(training, adjacency=relation), fpr=rate)
    try:
        law = composed(training, adjacency=relation)
        reached = float(law.tpr_at(rate))
    except Unresolved:
        return bound
    method = "the best test between the two laws of the composed privacy loss"
    note = "Exact for the worst two neighbours and an attacker who sees every iterate."
    loose = only_a_bound(training)
    if loose:
        method, note = "the best test between a dominating pair of laws", f"An upper bound. {loose}"
    elif not law.is_close(fpr=rate):
        note = "An upper bound for an attacker who sees every iterate, possibly rounded up by a hundredth or more."
    value = _clipped(min(reached, bound.value or 1.0), rate)
    return Claim(bound.metric, value, None, relation, method, proven=True, note=note)


# --- Bounds on an attacker with prior knowledge: advantage, success rate and posterior ---
#
# The prior is the probability, before the attacker looks, that the record was in the training set (for replaced records:
# that it was the first of the two). The attacker is right without looking in a share max(prior, 1 - prior) of cases.


@as_accounted
def success_rate(
    training: DPSGD, *, prior: float = 0.5, adjacency: Adjacency = Adjacency.REPLACE_ONE
) -> Claim:
    """Return how often the best attacker on DP-SGD with this prior is right about one record, exactly.

    With pi the prior, sup_A pi P(A) + (1 - pi)(1 - Q(A)) = 1 - pi + pi H_{(1-pi)/pi}, where H_b = sup_A P(A) - b Q(A)
    is the hockey-stick divergence of the outputs with (P) and without (Q) the record.

    Args:
        training: Noise multiplier, sampling rate, steps.
        prior: In (0, 1).
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``success_rate`` in [max(prior, 1 - prior), 1], named ``success_rate_at_prior.<prior>`` unless the prior is 1/2.
        Where the noise is too small for the exact law, an upper bound from the total variation. None for batches of
        a fixed size and added records.

    Raises:
        InputError: The run is no DPSGD, the prior is outside (0, 1), or the adjacency is unknown.

    Source: Mahloujifar et al. 2022, Appendix J, with the erratum to its Theorem 21.

    >>> round(success_rate(DPSGD(0.5, 0.5, 1), prior=0.3, adjacency="add-remove").value, 5)
    0.76832
    """
    belief, relation = validate.fraction("prior", prior), relation_of(training, adjacency)
    advantage, least = total_variation(training, adjacency=relation), max(belief, 1 - belief)
    value = None if advantage.value is None else _success(1 - advantage.value, least)
    try:
        law, odds = composed(training, adjacency=relation), (1 - belief) / belief
        excess, sure = (float(law.hockey_stick(odds, upper=upper)) for upper in (True, False))
    except Unresolved:
        method, note = f"prior and total variation; {advantage.method}", advantage.note
    else:
        value = min(1.0, max(least, 1 - belief + belief * excess), 1.0 if value is None else value)
        loose = only_a_bound(training)
        note = f"Guessing without the model is right in a share of {as_stated(least)}."
        if loose or belief * (excess - sure) > _FAR * value:
            note += f" An upper bound. {loose or 'It is possibly rounded up by a hundredth or more.'}"
        which = "a dominating pair of laws" if loose else "the two laws of the composed privacy loss"
        method = f"the best guess from {which} and the prior"
    return Claim(named("success_rate", belief), value, None, relation, method, proven=True, note=note)


@as_accounted
def advantage_under_prior(
    training: DPSGD, *, prior: float, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> Claim:
    """Return the membership advantage on DP-SGD under a prior, 2 (success - max(prior, 1 - prior)).

    For pi <= 1/2 it is 2 (1 - pi) TV_{pi/(1-pi)} - (1 - 2 pi). The paper adds the last term instead, which gives an
    advantage between equal laws (erratum to Theorem 21). Above 1/2 the two worlds change places.

    Args:
        training: Noise multiplier, sampling rate, steps.
        prior: In (0, 1); 1/2 gives the total variation.
        adjacency: Relation between neighbouring training sets; the paper's game adds a record.

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
    belief = validate.fraction("prior", prior)
    value = None if success.value is None else 2 * max(0.0, success.value - max(belief, 1 - belief))
    method = f"twice what looking adds; {success.method}"
    return derived(success, named("advantage", belief), value, method, success.note)


def success_rate_from_bayes_security(claim: Claim, *, prior: float = 0.5) -> Claim:
    """Return the largest success rate that a Bayes security allows under a prior, 1 - beta* (1 - max prior).

    Bayes security bounds the generalised advantage (success - max prior) / (1 - max prior) by 1 - beta* for every
    prior; for two equally likely secrets the best attacker reaches it.

    Args:
        claim: A ``bayes_security`` claim.
        prior: In (0, 1), the probability of the first of two secrets.

    Returns:
        ``success_rate`` with the adjacency and the standing of the claim (named ``success_rate_at_prior.<max prior>``
        unless that is 1/2); None when the claim has no value.

    Raises:
        InputError: The claim is another quantity, or the prior is out of range.

    Source: Cherubin et al. 2024, Section 2.3; Chatzikokolakis et al. 2023, Theorem 1.

    >>> claim = Claim("bayes_security", 0.98, None, Adjacency.REPLACE_ONE, "stated", True)
    >>> round(success_rate_from_bayes_security(claim).value, 6)
    0.51
    """
    require_metric(claim, "bayes_security")
    belief = validate.fraction("prior", prior)
    most = max(belief, 1 - belief)
    value = None if claim.value is None else _success(claim.value, most)
    method = f"prior and Bayes security; {claim.method}"
    return derived(claim, named("success_rate", most), value, method, claim.note)


def posterior_from_epsilon(claim: Claim, *, prior: float) -> Claim:
    """Return the largest belief in membership that any output can leave an attacker with: the odds times e^epsilon.

    Args:
        claim: An ``epsilon`` claim at delta 0, in nats.
        prior: In (0, 1).

    Returns:
        ``posterior_at_prior.<prior>``, never below the prior; the smallest is 1 minus that of the prior 1 - pi. None,
        with the reason, at a delta above 0: then outputs that settle the question are allowed, if rarely.

    Raises:
        InputError: The claim is not an epsilon with its delta, or the prior is outside (0, 1).

    Source: Dwork and Roth 2014, Section 2.3 (Bayes' rule on the definition).

    >>> claim = Claim("epsilon", 0.447, 0.0, Adjacency.ADD_REMOVE, "stated", True)
    >>> round(posterior_from_epsilon(claim, prior=0.5).value, 3)
    0.61
    """
    require_metric(claim, "epsilon")
    belief, name = validate.fraction("prior", prior), f"posterior_at_prior.{prior:g}"
    if claim.value is None:
        return derived(claim, name, None, claim.method, claim.note)
    delta, method = delta_of(claim), f"prior odds times e^epsilon; {claim.method}"
    if delta > 0:
        note = (
            f"A delta above 0 (here {as_stated(delta)}) allows rare outputs that settle the question, so no posterior"
            " is bounded; a precision at a false positive rate is."
        )
        return Claim(name, None, delta, claim.adjacency, method, proven=claim.proven, note=note)
    # In odds, so that a large epsilon cannot overflow.
    value = 1 / (1 + (1 - belief) / belief * math.exp(-claim.value))
    note = f"The largest belief that any output can leave, from a prior of {as_stated(belief)}."
    return Claim(name, max(value, belief), 0.0, claim.adjacency, method, proven=claim.proven, note=note)


def _success(bayes_security: float, most_likely: float) -> float:
    # This order of terms never falls below the prior.
    return most_likely + (1 - bayes_security) * (1 - most_likely)


def named(metric: str, prior: float) -> str:
    """Return the name of a quantity at a prior."""
    return metric if prior == 0.5 else f"{metric}_at_prior.{prior:g}"  # noqa: PLR2004
