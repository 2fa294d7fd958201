"""The epsilon that a training description promises, and what it promises for replaced records."""

import math

from auditor import _validate
from auditor._format import given
from auditor.choices import DPSGD, Adjacency, StatedClaim, TrainingClaim
from auditor.errors import InputError
from auditor.theory.dpsgd import dpsgd_epsilon
from auditor.values import Claim

__all__ = ["epsilon", "replace_one"]


def epsilon(claim: TrainingClaim, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the epsilon that a training description promises at this delta.

    DP-SGD is accounted as a Poisson-sampled Gaussian mechanism, with privacy loss distributions that are rounded
    up, so the value is an upper bound, within 3e-4 of the exact one in ordinary settings. Where those reach their
    limits (a delta near rounding error, almost no noise, very many steps) it is the smallest of theirs, of one by Renyi
    divergences and of Gaussian composition without sampling, and ``method`` says which.
    Many different steps are accounted as fewer kinds of steps, none of them more private, and ``note`` says so.
    Batches of a fixed size are accounted for replaced records only; for added ones the value is null.

    Args:
        claim: DP-SGD parameters, or a stated (epsilon, delta).
        delta: In [0, 1). A Gaussian mechanism has no finite epsilon at 0.
        adjacency: Which training sets count as neighbours.

    Returns:
        ``epsilon`` in nats. Its value is null, and ``note`` says why, when it cannot be computed or when the
        statement does not imply one; it is never silently 0.

    Raises:
        InputError: The claim is of another type, delta is outside [0, 1), or the adjacency is unknown.

    Source: Doroshenko et al. 2022 (Connect the Dots); Balle and Wang 2018 for a sampling rate of 1; Balle, Barthe and
    Gaboardi 2018, Theorem 11, for batches of a fixed size.

    >>> from auditor.choices import DPSGD
    >>> round(epsilon(DPSGD(1.0, 0.01, 1000), delta=1e-5).value, 3)
    1.828
    >>> epsilon(StatedClaim(2.0, 1e-6), delta=1e-5).value
    2.0
    """
    _validate.instance("claim", claim, [DPSGD, StatedClaim])
    delta = _validate.fraction("delta", delta, zero=True)
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    if isinstance(claim, StatedClaim):
        return _stated(claim, delta=delta, adjacency=relation)
    return dpsgd_epsilon(claim, delta=delta, adjacency=relation)


def replace_one(claim: Claim) -> Claim:
    """Return what an add/remove claim promises for replaced records: (2 epsilon, (1 + e^epsilon) delta).

    Replacing is removing and then adding: P(S) <= e^eps P'(S) + d <= e^eps (e^eps P''(S) + d) + d.

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta.

    Returns:
        ``epsilon`` for replace-one neighbours at the larger delta; the claim itself if it is replace-one already.
        The value and the delta are null when the larger delta reaches 1, which implies nothing.

    Raises:
        InputError: The claim is not an epsilon with its delta.

    Source: Dwork and Roth 2014, group privacy (Theorem 2.2) for two steps, with its delta.

    >>> converted = replace_one(epsilon(StatedClaim(1.0, 1e-5), delta=1e-5))
    >>> converted.value, round(converted.delta, 10)
    (2.0, 3.71828e-05)
    """
    _validate.instance("claim", claim, [Claim])
    _validate.known("claim metric", claim.metric, ("epsilon",))
    if claim.adjacency is Adjacency.REPLACE_ONE:
        return claim
    method = f"remove, then add: (2 epsilon, (1 + e^epsilon) delta); {claim.method}"
    if claim.value is None:
        return _converted(claim, value=None, delta=None, method=method, note=f"No epsilon: {claim.note}")
    if claim.delta is None:
        raise InputError("an epsilon claim needs its delta, got none; state the delta of the claim.")
    delta = _two_step_delta(claim.value, claim.delta)
    if delta >= 1:
        note = (
            f"Epsilon {given(claim.value)} at delta {given(claim.delta)} becomes a delta of 1 or more for replaced"
            " records, which implies nothing about them."
        )
        return _converted(claim, value=None, delta=None, method=method, note=note)
    note = f"From the add/remove epsilon {given(claim.value)} at delta {given(claim.delta)}; mind the larger delta."
    return _converted(claim, value=2 * claim.value, delta=delta, method=method, note=note)


def _two_step_delta(value: float, delta: float) -> float:
    if delta == 0:
        return 0.0
    # In logs, because e^epsilon may overflow: a delta of 1 or more is all that matters then.
    return math.inf if value + math.log(delta) > 1 else delta + math.exp(value + math.log(delta))


def _converted(claim: Claim, *, value: float | None, delta: float | None, method: str, note: str) -> Claim:
    return Claim("epsilon", value, delta, Adjacency.REPLACE_ONE, method, proven=claim.proven, note=note)


def _stated(claim: StatedClaim, *, delta: float, adjacency: Adjacency) -> Claim:
    """Return a stated epsilon where it applies: for its own neighbours or replaced ones, at its delta or above."""
    own = Claim("epsilon", float(claim.epsilon), float(claim.delta), claim.adjacency, "stated", proven=True)
    if adjacency is Adjacency.ADD_REMOVE and claim.adjacency is Adjacency.REPLACE_ONE:
        note = "A replace-one statement implies nothing about adding or removing a record."
        return Claim("epsilon", None, delta, adjacency, "stated", proven=True, note=note)
    base = replace_one(own) if adjacency is Adjacency.REPLACE_ONE else own
    value, note = base.value, base.note or "Taken at its word."
    if value is not None and base.delta is not None:
        if delta > base.delta:
            note += f" Stated at delta {given(base.delta)}; the same epsilon holds at every larger delta."
        elif delta < base.delta:
            note += f" It holds from delta {given(base.delta)} up and implies no epsilon at {given(delta)}."
            value = None
    return Claim("epsilon", value, delta, adjacency, base.method, proven=True, note=note)
