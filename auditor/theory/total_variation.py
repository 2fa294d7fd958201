"""Total variation: the advantage of the best attacker on a training run, exactly and by the accountant.

An attacker who sees every iterate and says "member" on a set A has TPR - FPR = P(A) - Q(A) <= TV. Bayes security is
1 - TV (Chatzikokolakis et al. 2023, Theorem 1).
"""

import math

from auditor import _validate
from auditor._format import given
from auditor.choices import DPSGD, Adjacency
from auditor.theory.privacy_loss import Unresolved, composed, only_a_bound
from auditor.theory.profile import claimed_curve
from auditor.values import Claim

__all__ = [
    "total_variation",
    "total_variation_a",
    "total_variation_by_accountant",
]

_REACHED = "For every attacker, also one who sees every iterate; some attacker on some data reaches it."
_BOUND = "An upper bound for every attacker, also one who sees every iterate."
_ROUNDED = 1e-6
_CLEARLY = 1e-12


def total_variation(training: DPSGD, *, adjacency: Adjacency = Adjacency.REPLACE_ONE) -> Claim:
    """Return the largest membership advantage (TPR - FPR) that a training run allows, exactly.

    Args:
        training: Noise, sampling rate and steps.
        adjacency: Which training sets count as neighbours: train-versus-fresh-record membership inference is about
            replaced records (default).

    Returns:
        ``advantage`` in [0, 1], exact to 1e-6 and mostly to 1e-12, rounded up. Where the noise is too small for
        that, and for several batches of a fixed size, an upper bound; ``method`` and ``note`` say so. Null for batches
        of a fixed size and added records.

    Raises:
        InputError: The adjacency is unknown.

    Source: Mahloujifar et al. 2022, Theorem 6 (add/remove) and Zhu, Dong and Wang 2022; computed by characteristic
    function [own]. The paper's games with replaced records have another value: see the erratum on its Appendix H.

    >>> round(total_variation(DPSGD(1.0, 0.01, 1000)).value, 6)
    0.264352
    >>> round(total_variation(DPSGD(1.0, 0.01, 1000), adjacency="add-remove").value, 6)
    0.161018
    """
    _validate.instance("training", training, [DPSGD])
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        note = "Batches of a fixed size are accounted for replaced records only."
        return Claim("advantage", None, None, relation, "exact total variation", proven=True, note=note)
    limit, limit_method = _simple_bound(training, relation)
    try:
        law = composed(training, adjacency=relation)
    except Unresolved as reason:
        note = f"{_BOUND} Close to the truth where the noise is this small: {reason}"
        return Claim("advantage", limit, None, relation, limit_method, proven=True, note=note)
    value = law.total_variation()
    if value > limit * (1 + _CLEARLY):
        return Claim("advantage", limit, None, relation, limit_method, proven=True, note=_BOUND)
    what, note = "exact total variation", _REACHED
    loose = only_a_bound(training)
    if loose:
        what, note = "total variation of a dominating pair", f"{_BOUND} {loose}"
    if law.error > min(_ROUNDED, value / 1000):
        what = f"{what}, rounded up"
        note = f"{_BOUND} Rounded up by its numerical error of {law.error:.1g}. {loose}".rstrip()
        other = total_variation_by_accountant(training, adjacency=relation)
        if other.value is not None and other.value < value:
            return other
    closed = training.steps == 1 or all(phase.sampling_rate == 1 for phase in training.phases)
    method = f"{what} ({'closed form' if closed else 'characteristic function'})"
    return Claim("advantage", value, None, relation, method, proven=True, note=note)


def total_variation_a(training: DPSGD, *, a: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float:
    """Return TV_a = 1/2 integral |q - a p|, with p the density of the run with the record and q of that without.

    Its least value is |1 - a| / 2, for equal laws: (1 - a)/2 + a sup(P - Q/a) in the terms of `PrivacyLoss`.

    Args:
        training: Noise, sampling rate and steps.
        a: Above 0.
        adjacency: Which training sets count as neighbours; replaced records are alike in both orders.

    Raises:
        InputError: a is not above 0, or the law cannot be computed well (`Unresolved`).

    Source: Mahloujifar et al. 2022, Definition 4; erratum on its Lemma 5.

    >>> round(total_variation_a(DPSGD(0.7 / 1.3, 1.0, 1), a=0.4), 6)  # errata: r = 1.3, s = 0.7
    0.489795
    """
    factor = _validate.positive("a", a)
    excess = float(composed(training, adjacency=adjacency).hockey_stick(1 / factor))
    return (1 - factor) / 2 + factor * excess


def total_variation_by_accountant(training: DPSGD, *, adjacency: Adjacency = Adjacency.REPLACE_ONE) -> Claim:
    """Return the largest membership advantage by the accountant's delta at epsilon 0, an upper bound.

    Args:
        training: Noise, sampling rate and steps.
        adjacency: As in `total_variation`.

    Returns:
        ``advantage`` in [0, 1]; null, with the reason, where the accountant has no such neighbours.

    Raises:
        InputError: The adjacency is unknown.

    Source: Cherubin et al. 2024, Proposition 8; Doroshenko et al. 2022.

    >>> round(total_variation_by_accountant(DPSGD(1.0, 0.01, 100), adjacency="add-remove").value, 3)
    0.051
    """
    _validate.instance("training", training, [DPSGD])
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    claimed = claimed_curve(training, adjacency=relation)
    method = f"delta at epsilon 0: {claimed.note}"
    if claimed.curve is None:
        return Claim("advantage", None, None, relation, "delta at epsilon 0", proven=True, note=claimed.note)
    value = float((claimed.curve.tpr - claimed.curve.fpr).max())
    return Claim("advantage", value, None, relation, method, proven=True, note="An upper bound, rounded up.")


def _simple_bound(training: DPSGD, adjacency: Adjacency) -> tuple[float, str]:
    """Return the smaller of two bounds: the record is never drawn, or it is in every step."""
    never = sum(
        phase.steps * (math.log1p(-phase.sampling_rate) if phase.sampling_rate < 1 else -math.inf)
        for phase in training.phases
    )
    distance = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
    mu = math.hypot(
        *(math.sqrt(phase.steps) * distance / phase.noise_multiplier for phase in training.phases)
    )
    drawn, everyone = -math.expm1(never), math.erf(mu / math.sqrt(8))
    if drawn <= everyone:
        return drawn, f"chance that the record is drawn at all, {given(drawn)}"
    return everyone, "Gaussian composition without sampling"
