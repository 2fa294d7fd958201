"""Everything one training description promises, in the order in which a report shows it."""

from auditor import _validate
from auditor.choices import Adjacency, StatedClaim, TrainingClaim
from auditor.theory.accountant import epsilon, replace_one
from auditor.theory.advantage import bayes_security_from_advantage, humphries
from auditor.theory.closed_form import bayes_security_closed_form, bayes_security_moment_matched
from auditor.theory.total_variation import total_variation
from auditor.values import Claim

__all__ = ["claims"]


def claims(claim: TrainingClaim, *, delta: float) -> tuple[Claim, ...]:
    """Return every number that follows from one training description.

    Membership inference on train-versus-fresh records is a question about replaced records, so advantage and
    Bayes security are those for replaced records: exact for DP-SGD, from the (converted) epsilon for a statement.

    Args:
        claim: DP-SGD parameters, or a stated (epsilon, delta).
        delta: In [0, 1), for DP-SGD; a statement keeps its own delta.

    Returns:
        For DP-SGD: the add/remove epsilon, the replace-one epsilon by the accountant (null with the reason if it
        cannot) and by conversion, the advantage, the Bayes security it leaves, and the two approximations of it;
        for batches of a fixed size only what is about replaced records.
        For a statement: its epsilon, the replace-one conversion of an add/remove one, advantage, Bayes security.

    Raises:
        InputError: Delta is outside [0, 1).

    >>> from auditor.choices import DPSGD
    >>> [item.metric for item in claims(DPSGD(1.0, 0.5, 2), delta=1e-5)][3:]
    ['advantage', 'bayes_security', 'bayes_security', 'bayes_security']
    """
    delta = _validate.fraction("delta", delta, zero=True)
    if isinstance(claim, StatedClaim):
        own = epsilon(claim, delta=claim.delta, adjacency=claim.adjacency)
        converted = replace_one(own)
        rows = (own,) if converted is own else (own, converted)
        return (*rows, *_attacker(converted))
    accounted = epsilon(claim, delta=delta, adjacency=Adjacency.REPLACE_ONE)
    advantage = total_variation(claim, adjacency=Adjacency.REPLACE_ONE)
    rest = (
        advantage,
        bayes_security_from_advantage(advantage),
        bayes_security_closed_form(claim),
        bayes_security_moment_matched(claim),
    )
    if claim.fixed_size:
        return (accounted, *rest)
    add_remove = epsilon(claim, delta=delta)
    return (add_remove, accounted, replace_one(add_remove), *rest)


def _attacker(claim: Claim) -> tuple[Claim, Claim]:
    advantage = humphries(claim)
    return advantage, bayes_security_from_advantage(advantage)
