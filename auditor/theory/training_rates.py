"""The true positive rate that an attacker can reach on DP-SGD at a false positive rate: approximate, bounded and exact.

As everywhere in this package, a positive is the record that was in the training set (or the first of two).
"""

import math

from auditor._format import given
from auditor.choices import DPSGD, Adjacency, TrainingClaim
from auditor.theory._gaussian_form import ClosedForm, Corollary7, log_half_mu
from auditor.theory.rates import (
    clipped,
    gaussian_tpr,
    rate_of,
    relation_of,
    tpr_from_advantage,
    tpr_metric,
)
from auditor.values import Claim

__all__ = ["tpr_closed_form", "tpr_exact", "tpr_from_curve"]

# A larger relative error is said, and another bound may be better.
_ROUNDED = 1e-3


def tpr_closed_form(training: DPSGD, *, fpr: float, form: ClosedForm = Corollary7()) -> Claim:  # noqa: B008
    """Return the true positive rate of the two Gaussians that a closed form takes DP-SGD for.

    APPROXIMATE. The Gaussian stands in for the middle of the privacy loss, and a small rate is decided in its tail,
    which is heavier: both forms are then on the unsafe side, the published one nearly always.

    Args:
        training: Noise multiplier, sampling rate, steps.
        fpr: In (0, 1].
        form: `Corollary7` (default; mu = 2 p sqrt(T) / s) or `MomentMatched`.

    Returns:
        ``tpr_at_fpr.<fpr>`` for replace-one neighbours, not proven.

    Raises:
        InputError: ``fpr`` is outside (0, 1], or the form is not about batches drawn like this.

    Source: Cherubin et al. 2024, Figure 7 (its f-DP bound); own for the matched moment.

    >>> round(tpr_closed_form(DPSGD(2.0, 1e-4, 500_000), fpr=0.1).value, 6)
    0.112978
    """
    rate = rate_of(fpr)
    mu = 2 * math.exp(min(log_half_mu(training, form=form), 10.0))
    note = (
        "An approximation that is mostly too low, by the more the smaller the false positive rate and the noise."
        if isinstance(form, Corollary7)
        else "An approximation that can be too low for very small false positive rates and is mostly too high elsewhere."
    )
    method = f"the two Gaussians of the closed form {type(form).__name__}, mu {given(mu)}"
    return Claim(
        tpr_metric(rate), gaussian_tpr(rate, mu), None, Adjacency.REPLACE_ONE, method, proven=False, note=note
    )


def tpr_from_curve(
    claim: TrainingClaim, *, fpr: float, adjacency: Adjacency = Adjacency.REPLACE_ONE
) -> Claim:
    """Return the largest true positive rate on the whole trade-off curve that a training description allows.

    Args:
        claim: DP-SGD parameters (the accountant's whole profile), or a stated (epsilon, delta).
        fpr: In (0, 1].
        adjacency: Which training sets count as neighbours.

    Returns:
        ``tpr_at_fpr.<fpr>``, an upper bound; null, with the reason, where there is no such curve.

    Raises:
        InputError: ``fpr`` is outside (0, 1], or the adjacency is unknown.

    Source: Dong, Roth and Su 2022, Proposition 2.12.

    >>> from auditor.choices import StatedClaim
    >>> round(tpr_from_curve(StatedClaim(1.0, 0.0, "replace-one"), fpr=0.1).value, 6)
    0.271828
    """
    from auditor.theory.profile import claimed_curve

    rate = rate_of(fpr)
    relation = relation_of(adjacency)
    found = claimed_curve(claim, adjacency=relation)
    if found.curve is None:
        return Claim(
            tpr_metric(rate), None, None, relation, "trade-off curve", proven=True, note=_sentence(found.note)
        )
    note = "An upper bound for every attacker, in either order of the two training sets."
    value = found.curve.tpr_at(rate)
    return Claim(tpr_metric(rate), value, None, relation, found.note, proven=True, note=note)


def tpr_exact(training: DPSGD, *, fpr: float, adjacency: Adjacency = Adjacency.REPLACE_ONE) -> Claim:
    """Return the true positive rate of the best attacker on DP-SGD who sees every iterate: Neyman and Pearson's test.

    From the exact law of the composed privacy loss, so that the worst pair of neighbours reaches it. For add/remove
    neighbours a positive is the run that has the record.

    Args:
        training: Noise multiplier, sampling rate, steps.
        fpr: In (0, 1].
        adjacency: Which training sets count as neighbours.

    Returns:
        ``tpr_at_fpr.<fpr>`` in [fpr, 1]. Where the noise is too small for the exact law, an upper bound from the total
        variation or the accountant, and for several batches of a fixed size from their dominating pair; ``method`` and
        ``note`` say so. Null for batches of a fixed size and added records.

    Raises:
        InputError: ``fpr`` is outside (0, 1], or the adjacency is unknown.

    Source: Neyman and Pearson 1933; Mahloujifar et al. 2022, Corollary 11.

    >>> round(tpr_exact(DPSGD(1.0, 1.0, 1), fpr=0.1, adjacency="add-remove").value, 6)
    0.389144
    """
    from auditor.theory.privacy_loss import Unresolved, composed, only_a_bound
    from auditor.theory.total_variation import total_variation

    rate, relation = rate_of(fpr), relation_of(adjacency)
    bound = tpr_from_advantage(total_variation(training, adjacency=relation), fpr=rate)
    try:
        law = composed(training, adjacency=relation)
        reached, error = float(law.tpr_at(rate)), law.tpr_error_at(rate)
    except Unresolved:
        return bound
    method = "the best test between the two laws of the composed privacy loss"
    note = "Exact for the worst two neighbours and an attacker who sees every iterate."
    loose = only_a_bound(training)
    if loose:
        method, note = "the best test between a dominating pair of laws", f"An upper bound. {loose}"
    if error > _ROUNDED * reached:
        note = f"An upper bound: rounded up by its numerical error of {error:.1g}."
        other = tpr_from_curve(training, fpr=rate, adjacency=relation)
        if other.value is not None and other.value < reached:
            return other
    value = clipped(min(reached, bound.value or 1.0), rate)
    return Claim(bound.metric, value, None, relation, method, proven=True, note=note)


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:].rstrip(".") + "."
