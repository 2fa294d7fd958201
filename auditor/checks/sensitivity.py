"""Does the parametric Epsilon* hang on a few records, or on the transform?"""

import math

import numpy as np

from auditor.estimators.gaussian_supremum import supremum
from auditor.fitters.gaussian import fit_gaussian
from auditor.transforms import Transform, log_odds, published
from auditor.values import Check, Floats, Losses, Status

__all__ = ["sensitivity"]

_TRIMMED = 0.001
_LARGEST_MOVE = 0.10
# Moves below this many nats are noise at any realistic number of records.
_NOISE = 0.05
_EXACT_TAIL = 2000
_RUN = 32


def sensitivity(losses: Losses, *, value: float, delta: float) -> Check:
    """Refit without the most extreme 0.1% of each group, and with the scale-free transform; warn at a 10% move.

    Args:
        losses: Before any transform.
        value: The published parametric Epsilon*.
        delta: It was stated at.
    """
    groups = losses.sorted_member, losses.sorted_nonmember
    without_extremes = _epsilon_star(
        losses, [_condensed(_trim(group)) for group in groups], published(), delta
    )
    scale_free = _epsilon_star(losses, [_condensed(group) for group in groups], log_odds, delta)
    details = {"value": value, "without_extremes": without_extremes, "scale_free": scale_free}
    moved = [
        f"{other:.3g} {words}"
        for other, words in (
            (without_extremes, "without the most extreme 0.1% of each group"),
            (scale_free, "with the scale-free transform"),
        )
        if _moves(value, other)
    ]
    if moved:
        message = (
            f"The parametric Epsilon* of {value:.3g} becomes {' and '.join(moved)}: it hangs on a few records or on the"
            " transform, so do not base a decision on it alone."
        )
        return Check("sensitivity", Status.WARN, message, details)
    message = "The parametric Epsilon* moves by less than 10% without the extreme records and with the other transform."
    return Check("sensitivity", Status.OK, message, details)


def _moves(value: float, other: float) -> bool:
    gap = abs(value - other)
    return gap > _NOISE and gap > _LARGEST_MOVE * max(value, other)


def _trim(ordered: Floats) -> Floats:
    """Without the most extreme 0.1% of the records, half of them from each end and at least one from each."""
    cut = max(1, math.ceil(ordered.size * _TRIMMED / 2))
    return ordered[cut:-cut] if ordered.size >= 2 * cut + 2 else ordered


def _condensed(ordered: Floats) -> tuple[Floats, Floats]:
    """Values and weights that stand for a long sorted sample: exact in both tails, means of short runs between.

    The transforms are smooth, so the moments of the transformed sample change by far less than the 10% looked for.
    """
    runs = (ordered.size - 2 * _EXACT_TAIL) // _RUN
    if runs < _EXACT_TAIL:
        return ordered, np.ones(ordered.size)
    end = _EXACT_TAIL + runs * _RUN
    means = ordered[_EXACT_TAIL:end].reshape(runs, _RUN).mean(axis=1)
    values = np.concatenate([ordered[:_EXACT_TAIL], means, ordered[end:]])
    weights = np.ones(values.size)
    weights[_EXACT_TAIL : _EXACT_TAIL + runs] = _RUN
    return values, weights


def _epsilon_star(
    losses: Losses, groups: list[tuple[Floats, Floats]], transform: Transform, delta: float
) -> float:
    (member, member_weights), (nonmember, nonmember_weights) = groups
    moved = transform(Losses(member=member, nonmember=nonmember, scale=losses.scale))
    fits = fit_gaussian(moved.member, member_weights), fit_gaussian(moved.nonmember, nonmember_weights)
    return supremum(*fits, delta=delta, clip=delta).value
